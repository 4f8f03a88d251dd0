"""The units of work of one process step, for the replay of bank programs: what `hwmodels.replay_bank_time` follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hwmodels.replay_bank_time import Column, Unit
from instances.feature_maps import Stage

__all__ = ["Processed", "units_of"]


@dataclass(frozen=True)
class Processed:
    """What a process step did.

    Attributes
    ----------
    made : sequence of (int, int or None, int)
        For every column of the result its number, the load that it waits for, and its work.
    wrote : sequence of int
        Bytes of every column that do not stay; each unit leaves its part to write, rounded up.
    ends : sequence of int
        For every tile consumed how many of the columns are made when its last one is. A tile is consumed once it is
        there, though no column may begin in it.
    loads : sequence of int or None
        What brought every tile consumed; the banks of the first `staying` do not become free.
    """

    made: Sequence[tuple[int, int | None, int]]
    wrote: Sequence[int]
    ends: Sequence[int]
    loads: Sequence[int | None]
    staying: int


def units_of(
    stage: Stage, done: Processed, share: int, streams: Mapping[int, int], last: int
) -> tuple[list[Unit], list[int]]:
    """Return the units, and where in the script of the last one banks become free.

    Parameters
    ----------
    share : int
        Bytes of the weights that come for each group.
    streams : mapping
        Bytes that are streamed for a column of a sum.
    last : int
        The last column of the result.
    """
    columns, freed = [Column(cycles, needs) for _, needs, cycles in done.made], list[int]()
    if stage.kind == "sum":
        units = [Unit(stage.name, streams.get(result, 0), result != last) for result, _, _ in done.made]
        for unit, column, left in zip(units, columns, done.wrote, strict=True):
            unit.script.append(column)
            unit.left = left
        return units, freed
    script: list[Column | int] = []
    for at in range(len(columns) + 1):
        for tile, load in enumerate(done.loads):
            if done.ends[tile] == at:
                script.append(Column(0, load))
                freed += [len(script)] * (tile >= done.staying)
        script += columns[at : at + 1]
    more, left = [True] * (stage.groups - 1) + [False], -(-sum(done.wrote) // stage.groups)
    return [Unit(stage.name, share, another, script=list(script), left=left) for another in more], freed
