"""What the referees of runs and of nests say against the steps of a timeline: they take too little, or miss work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hwmodels.fusion.replay.referee import FusedReplay
from hwmodels.levels.replay.near import NearReplay
from hwmodels.levels.schedule import Box, NearStep
from hwmodels.nest.replay.referee import Replay


@dataclass(frozen=True)
class Seen:
    """A run as a referee sees it, with the ticks of its steps in the timeline."""

    name: str
    said: FusedReplay | Replay
    macs: int
    taken: Sequence[int]
    """Ticks of its steps; of one for all of them, where there are too many transfers."""


def too_short(runs: Sequence[Seen]) -> Iterator[str]:
    """Yield the runs whose steps take less than the referee sees them compute."""
    for run in runs:
        computed = run.said.compute_ticks if isinstance(run.said, FusedReplay) else run.said.outcome.compute_ticks
        if (taken := sum(run.taken)) < computed:
            yield f"{run.name}: its steps take {taken:,} ticks, to compute takes {computed:,}"


def near_faults(
    runs: Sequence[Seen], referee: NearReplay, nests: Sequence[NearStep],
    boxes: Sequence[Sequence[Sequence[tuple[int, Box]]]],
) -> Iterator[str]:  # fmt: skip
    """Yield what is wrong with nests of nearer memories; `boxes`: by run and step."""
    for run, steps in zip(runs, boxes, strict=False):
        yield from referee.faults(nests, run.name, run.macs, run.taken, steps)
    yield from referee.counted(nests, (box for steps in boxes for some in steps for box in some))


def too_many(peak: int, room: int) -> Iterator[str]:
    """A fault if the timeline takes more bytes than there are."""
    if peak > room:
        yield f"at some time steps and the transfers beside them take {peak:,} bytes, there are {room:,}"
