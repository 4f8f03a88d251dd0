"""What of every map some result needs, along both axes: pieces load and compute no more, where whole stages do.

An example: a pool of one column with stride 2 over three columns needs the first and the last one. A program that runs
it whole loads all three tiles; in pieces of a column of its result the one between is in no piece.

Of a map that several stages read, what one of them needs is taken, the one that needs most: a lower bound.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from formulations.banks.bounds import Point
from formulations.banks.readings import once
from hwmodels.banks.clock import Clock
from instances.pieces import operands
from instances.stage import Stage, Stages

Mask = npt.NDArray[np.bool_]
#: Columns and rows.
Box = tuple[Mask, Mask]


def least_of(found: Stages, clock: Clock) -> Point:
    """Return what no plan of groups can do without: bytes that must move once, ticks of computing what is needed."""
    needed = boxes(found, found.stages, {name for name in found.maps if found.lasting(name)})
    made = {stage.target for stage in found.stages}
    read = sum(size(box) * found.maps[name].stored for name, box in needed.items() if name not in made)
    work = cycles(found, found.stages, needed) * clock.cycle + clock.fixed * len(found.stages)
    return Point(once(found) + read, work)


def boxes(found: Stages, stages: Sequence[Stage], whole: Collection[str]) -> dict[str, Box]:
    """Return what stages need of every map, if some maps are needed whole; nothing of others that nobody needs."""
    needed = {
        name: (np.ones(found.maps[name].columns, np.bool_), np.ones(found.maps[name].rows, np.bool_)) for name in whole
    }
    for stage in reversed(stages):
        if stage.target not in needed:
            continue
        for name in operands(stage):
            box = _needs(found, stage, name, needed[stage.target])
            if name not in needed or size(box) > size(needed[name]):
                needed[name] = box
    return needed


def cycles(found: Stages, stages: Sequence[Stage], needed: dict[str, Box]) -> int:
    """Return the cycles of computing what is needed of every stage, once."""
    return sum(_cycles(found, stage, needed[stage.target]) for stage in stages if stage.target in needed)


def size(box: Box) -> int:
    """Return the pixels of a box."""
    return int(box[0].sum()) * int(box[1].sum())


def _needs(found: Stages, stage: Stage, name: str, out: Box) -> Box:
    """What a stage reads of an operand for some of its target."""
    one, high = found.maps[name], found.heights[stage.name]
    if stage.pooled is not None:
        return np.ones(one.columns, np.bool_), np.ones(one.rows, np.bool_)
    if stage.kind in ("sum", "patches"):
        return out  # patches lie as the pixels of the result do
    return (
        _window(out[0], stage.taps, stage.stride, stage.dilation, stage.before, one.columns),
        _window(out[1], high.taps, high.stride, high.dilation, high.before, one.rows),
    )


def _window(out: Mask, taps: int, stride: int, dilation: int, before: int, extent: int) -> Mask:
    """What windows reach, with what lies between their taps: a piece has all of that."""
    found, first = np.zeros(extent, np.bool_), np.flatnonzero(out) * stride - before
    for more in range((taps - 1) * dilation + 1):
        at = first + more
        found[at[(at >= 0) & (at < extent)]] = True
    return found


def _cycles(found: Stages, stage: Stage, out: Box) -> int:
    if stage.pooled is not None:
        return stage.cycles
    columns = np.flatnonzero(out[0])
    inside = len(columns)
    if stage.kind not in ("sum", "patches"):
        at = columns[:, None] * stage.stride - stage.before + np.arange(stage.taps) * stage.dilation
        inside = int(((at >= 0) & (at < found.maps[stage.source].columns)).sum())
    return stage.groups * inside * sum(found.heights[stage.name].cycles[y] for y in np.flatnonzero(out[1]))
