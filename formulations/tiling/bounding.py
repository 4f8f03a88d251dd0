"""Lower bounds for boxes: all combinations of some chains of every axis.

Claim
    Every table is a sum of products of non-negative vectors, one for each axis. With every factor of the other axes at
    its least value in the box, a table is a lower bound for each chain of one axis; a chain whose bound exceeds a
    capacity or a limit is in no choice of the box that matters.
Cutting a box in parts along one axis raises the least values of the parts, so that their bounds exclude more: branch
and bound over boxes (`Bounds.leaves`). What is left is laid out choice by choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.bilinear import Ints
from hwmodels.nest.choices import AXIS, Q_DIMS, S_DIMS, Choices, Slides
from hwmodels.nest.skeleton import Skeleton
from hwmodels.nest.tables import nest_tables
from instances.machine import Machine
from instances.workload import Layer

AXES = (*S_DIMS, *Q_DIMS)
#: More than any memory has.
LARGEST = 2**62
#: Bounds are taken again while a box shrinks to at most this share, ...
_WORTH = 0.8
#: ... and boxes with a side above this size are cut in this many parts, again while half of it goes.
_LAID, _PARTS, _HALF = 200_000, 8, 0.5
_SIDES = ((*S_DIMS, "slide"), Q_DIMS)
#: Per axis, and under "slide", the indices of what is left.
Box = Mapping[str, Ints]
Limits = Mapping[str, int]


def size(box: Box) -> int:
    """Combinations in the box, slides aside."""
    return prod(len(box[axis]) for axis in AXES)


@dataclass(frozen=True)
class Bounds:
    """The chains of one skeleton's axes, and what bounds say about boxes of them."""

    layer: Layer
    machine: Machine
    skeleton: Skeleton
    steps: Mapping[str, Ints]
    tiles: Mapping[str, Ints]
    slides: Slides
    ideal: Mapping[str, str] | None = None
    """`steps`, `tiles`, `slides`, `ideal`: as in `hwmodels.nest.choices.Choices`."""

    def whole(self) -> dict[str, Ints]:
        """All chains with all slides."""
        return {**{d: np.arange(len(self.tiles[d])) for d in AXES}, "slide": np.arange(max(1, len(self.slides)))}

    def taken(self, box: Box) -> tuple[dict[str, Ints], dict[str, Ints]]:
        """The steps and tiles of a box."""
        return {d: self.steps[d][box[a]] for d, a in AXIS.items()}, {d: self.tiles[d][box[a]] for d, a in AXIS.items()}

    def within(self, box: Box) -> Bounds:
        """Only the chains of a box, with all slides."""
        steps, tiles = self.taken(box)
        return replace(self, steps=steps, tiles=tiles)

    def bounded(self, box: Box, limits: Limits) -> Box:
        """Drop chains and slides whose lower bound exceeds a capacity or a limit, until little more drops."""
        before = 2 * size(box)
        while 0 < size(box) <= before * _WORTH:
            before = size(box)
            kept = dict(box)
            for axis, fits in zip(AXES, self._fits(box, limits), strict=True):
                kept[axis] = box[axis][fits.any(axis=1)]
                kept["slide"] = np.intersect1d(kept["slide"], box["slide"][fits.any(axis=0)])
            box = kept if len(kept["slide"]) else {**kept, AXES[0]: box[AXES[0]][:0]}
        return box

    def _fits(self, box: Box, limits: Limits) -> list[NDArray[np.bool_]]:
        """Per axis which chains (T, slides) may stay within capacities and limits, with which slide."""
        machine = self.machine
        slides = tuple(self.slides[k] for k in box["slide"]) if self.slides else ()
        floor = Choices.floor(*self.taken(box), slides, self.ideal)
        tables = nest_tables(self.layer, machine, self.skeleton, floor, measures=tuple(limits))
        most = limits.get("ocm", LARGEST)
        rows = [(t, min(machine.memories[name], most)) for name, parts in tables.capacity.items() for t in parts]
        rows += [(t, limits["time"]) for t in tables.time if "time" in limits]
        rows += [(getattr(tables, m), limits[m]) for m in ("bytes", "energy") if m in limits]
        over = [(table.a * table.b).sum(axis=0) > limit for table, limit in rows]
        fits: NDArray[np.bool_] = ~np.any(over, axis=0)
        each = np.cumsum([len(box[axis]) for axis in AXES])[:-1]
        return np.split(fits.reshape(-1, max(1, len(slides))), each)

    def leaves(self, box: Box, limits: Limits) -> Iterator[Box]:
        """Cut a box until its parts are small, or bounds exclude little more."""
        counts = {dims: prod(len(box[d]) for d in dims) for dims in _SIDES}
        side = max(counts, key=lambda dims: counts[dims])
        if counts[side] <= _LAID:
            yield box
            return
        axis = max((d for d in side if d != "slide"), key=lambda d: len(box[d]))
        parts = [self.bounded({**box, axis: part}, limits) for part in np.array_split(box[axis], _PARTS)]
        parts = [part for part in parts if size(part)]
        left = sum(prod(len(part[d]) for d in side) for part in parts)
        for part in parts:
            if left > counts[side] * _HALF:
                yield part
            else:
                yield from self.leaves(part, limits)

    def choices(self, boxes: Iterable[Box]) -> Choices:
        """All combinations in some boxes, the last axis running fastest."""
        found = list(boxes)
        index: dict[str, Ints] = {}
        for dims in _SIDES:
            shape = [max(1, len(self.slides)) if d == "slide" else len(self.tiles[d]) for d in dims]
            flat = [np.ravel_multi_index(np.ix_(*(box[d] for d in dims)), shape).ravel() for box in found]
            every = np.sort(np.concatenate([np.zeros(0, np.int64), *flat]), kind="stable")  # runs: merged, not hashed
            every = every[np.diff(every, prepend=-1) > 0]
            index.update(zip(dims, (i.astype(np.int64) for i in np.unravel_index(every, shape)), strict=True))
        return Choices(self.steps, self.tiles, index, self.slides, ideal=self.ideal)
