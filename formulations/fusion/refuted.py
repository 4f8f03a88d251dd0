"""What the referees of runs and of nests say against the steps of a timeline: they take too little, or miss work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from formulations.fusion.schedule import Runs
from hwmodels.fusion.replay.referee import FusedReplay, FusionReplay

if TYPE_CHECKING:
    from formulations.fusion.part import FusionPart


def too_short(part: FusionPart, runs: Runs, walked: FusionReplay) -> Iterator[str]:
    """Yield the runs whose steps take less than the referees see them compute, or than their nests take."""
    numbered, laid = [*part.numbered(runs)], part.laid(runs)
    for (first, last, _), said, mine in zip(numbered, walked.runs, laid.parts, strict=False):
        computed = said.compute_ticks if isinstance(said, FusedReplay) else said.outcome.compute_ticks
        if (taken := sum(step.ticks for step in mine.steps)) < computed:
            yield f"{part.prices.name(first, last)}: its steps take {taken:,} ticks, to compute takes {computed:,}"
    if part.near_referee is None:
        return
    every, near = part.timelines.near_steps(runs, numbered), part.groups.near
    nests = runs.near or (near.used(box for steps in every for some in steps for box in some) if near else ())
    for (first, last, _), said, mine, steps in zip(numbered, walked.runs, laid.parts, every, strict=False):
        macs = said.macs if isinstance(said, FusedReplay) else part.net.layers[first].macs
        taken_by = [step.ticks for step in mine.steps]
        yield from part.near_referee.faults(nests, part.prices.name(first, last), macs, taken_by, steps)
