"""Lower bounds for boxes: all combinations of some chains of every axis.

Claim
    Every table is a sum of products of non-negative vectors, one for each axis. With every factor of the other axes at
    its least value in the box, a table is a lower bound for each chain of one axis; a chain whose bound exceeds a
    capacity or a limit is in no choice of the box that matters.
Cutting a box in parts along one axis raises the least values of the parts, so that their bounds exclude more: branch
and bound over boxes (`Bounds.leaves`). What is left is laid out choice by choice, of large boxes part by part: of some
layers there are 50 million, and few of them are left when each is bounded by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.choices import AXIS, Q_DIMS, S_DIMS, Choices, Slides
from hwmodels.nest.price.skeleton import Skeleton
from hwmodels.nest.price.tables import nest_tables
from instances.machine.machine import Machine
from instances.network.workload import Layer

AXES = (*S_DIMS, *Q_DIMS)
#: More than any memory has.
LARGEST = 2**62
#: Bounds are taken again while a box shrinks to at most this share, ...
_WORTH = 0.8
#: ... and boxes with a side above this size are cut in this many parts, again while half of it goes.
_LAID, _PARTS, _HALF = 200_000, 8, 0.5
_SIDES = ((*S_DIMS, "slide"), Q_DIMS)
#: Choices of a side that are laid out at a time.
_AT_ONCE = 500_000
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
    """`steps`, `tiles`, `slides`, `ideal`: as in `hwmodels.nest.price.choices.Choices`."""

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
            each = self._fits(box, limits)
            kept = {axis: box[axis][fits.any(axis=1)] for axis, fits in zip(AXES, each, strict=True)}
            kept["slide"] = box["slide"][np.all([fits.any(axis=0) for fits in each], axis=0)]
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

    def many(self, boxes: Iterable[Box]) -> bool:
        """Whether the boxes have more combinations than are laid out at a time."""
        found = list(boxes)
        return any(sum(prod(len(box[d]) for d in dims) for box in found) > _AT_ONCE for dims in _SIDES)

    def parts(self, boxes: Iterable[Box], limits: Limits) -> Iterator[Box]:
        """Cut boxes until each can be laid out at once."""
        for box in boxes:
            large = [dims for dims in _SIDES if prod(len(box[d]) for d in dims) > _AT_ONCE]
            axis = max((d for dims in large for d in dims if d != "slide"), key=lambda d: len(box[d]), default=AXES[0])
            if not large or len(box[axis]) == 1:
                yield box
                continue
            some = (self.bounded({**box, axis: part}, limits) for part in np.array_split(box[axis], 2))
            yield from self.parts((part for part in some if size(part)), limits)

    def choices(self, boxes: Iterable[Box]) -> Choices:
        """All combinations in some boxes, the last axis running fastest."""
        found = list(boxes)
        every = Choices(self.steps, self.tiles, {}, self.slides, ideal=self.ideal)
        return _numbered(every, [
            [np.ravel_multi_index(np.ix_(*(box[d] for d in dims)), _shape(every, dims)).ravel() for box in found]
            for dims in _SIDES
        ])  # fmt: skip


def joined(parts: Sequence[Choices]) -> Choices:
    """Return all choices of some parts, one or more, in their order, each once."""
    return _numbered(parts[0], [
        [np.ravel_multi_index(tuple(part.index[d] for d in dims), _shape(part, dims)) for part in parts]
        for dims in _SIDES
    ])  # fmt: skip


def _shape(every: Choices, dims: Sequence[str]) -> list[int]:
    return [max(1, len(every.slides)) if d == "slide" else len(every.tiles[d]) for d in dims]


def _numbered(every: Choices, sides: Sequence[Sequence[Ints]]) -> Choices:
    """Return the choices with these numbers among all of either side, each once."""
    index: dict[str, Ints] = {}
    for dims, flat in zip(_SIDES, sides, strict=True):
        numbers = np.sort(np.concatenate([np.zeros(0, np.int64), *flat]), kind="stable")  # runs: merged, not hashed
        numbers = numbers[np.diff(numbers, prepend=-1) > 0]
        places = np.unravel_index(numbers, _shape(every, dims))
        index.update(zip(dims, (i.astype(np.int64) for i in places), strict=True))
    return replace(every, index=index)
