"""Classes of nests of one skeleton: by loop how many pieces there are, and how large the largest, first and last are.

Sets
    loops (d, k), the k-th over dimension d; behind it d is cut in P pieces in all, whatever groups they stand in
    a class says ``fewest <= P <= most``, and of the largest piece, of the first and of the last one how large they are;
    and of every loop whether it cuts anything, or may
Pieces
    all have an element, the largest no more than fits: so ``E - (P - 1)*high`` is the least of any piece; a loop over
    the same dimension further in makes no fewer pieces, and none larger
Room
    the largest tiles of all operands fit together, each in all its buffers: with the least of the others known, what is
    left for one bounds its largest piece of every dimension
A class is split in two by what it says of one loop (`formulations.tiling.splitting`), so ranges are tightened again and
again (`Sizes.tightened`) until numbers and sizes are known, or a bound excludes it (`hwmodels.nest.price.hidden`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.boxes import input_windows
from hwmodels.nest.price.choices import KERNELS
from hwmodels.nest.price.pieces import Window
from hwmodels.nest.price.relaxed import least_window, smallest_windows
from hwmodels.nest.price.skeleton import Core, Skeleton
from instances.machine.machine import Machine
from instances.network.workload import DIMS, REDUCTION, RELEVANT, Layer

#: Rounds of tightening: what one loop says of another one is known after the first.
_ROUNDS = 2
Mask = NDArray[np.bool_]
#: A dimension and which of the loops over it, from one on.
Loop = tuple[str, int]


@dataclass(frozen=True)
class Ranges:
    """N classes; arrays (loops, N), from and up to."""

    fewest: Ints
    """Pieces."""
    most: Ints
    low: Ints
    """The largest piece."""
    high: Ints
    first: Ints
    """The first piece."""
    first_most: Ints
    last: Ints
    """The last piece."""
    last_most: Ints
    cuts: Ints
    """1 if the loop cuts some piece for sure; `cuts_most`: 0 if it cuts none for sure."""
    cuts_most: Ints

    @classmethod
    def of(cls, fewest: Ints, most: Ints, low: Ints, high: Ints, *ends: Ints) -> Ranges:
        """Of loops that may cut; with first and last pieces of any size up to the largest, if `ends` do not say."""
        one = np.ones_like(fewest)
        first, first_most, last, last_most = ends or (one, high.copy(), one.copy(), high.copy())
        zero = np.zeros_like(fewest)
        return cls(fewest, most, low, high, first, first_most, last, last_most, zero, one.copy())

    @classmethod
    def joined(cls, parts: Sequence[Ranges]) -> Ranges:
        """All classes of some, in their order."""
        return cls(*(np.concatenate([getattr(part, f.name) for part in parts], axis=1) for f in fields(cls)))

    def take(self, at: Ints | Mask) -> Ranges:
        """Some of the classes."""
        return Ranges(*(getattr(self, f.name)[:, at] for f in fields(self)))

    @property
    def pairs(self) -> tuple[tuple[Ints, Ints], ...]:
        """From and up to: pieces, the largest, the first and the last one (not whether loops cut)."""
        return (
            (self.fewest, self.most), (self.low, self.high), (self.first, self.first_most), (self.last, self.last_most)
        )  # fmt: skip

    @property
    def told(self) -> Mask:
        """Of which classes it is known which loops cut (N,)."""
        told: Mask = (self.cuts == self.cuts_most).all(axis=0)
        return told

    def __len__(self) -> int:
        return int(self.fewest.shape[1])


class Sizes:
    """How large tiles and pieces are in classes of one core's nests; IN slides along `slide`, if along a loop."""

    def __init__(
        self, layer: Layer, machine: Machine, skeleton: Skeleton, core: Core, slide: tuple[str, int] | None
    ) -> None:
        self.layer, self.machine, self.core, self.slide = layer, machine, core, slide
        self.skeleton = skeleton.last(slide) if slide else skeleton
        self.extent = {d: core.extent(d) for d in DIMS}
        self.loops = tuple((d, k) for d in DIMS for k in range(1, skeleton.levels(d) + 1))
        self.levels = {d: skeleton.levels(d) for d in DIMS}
        self.ops = tuple(sorted(skeleton.depth, key=lambda op: skeleton.depth[op]))
        self.level = {op: {d: skeleton.level(d, op) for d in DIMS} for op in self.ops}
        self.buffers = {op: machine.buffers(skeleton.buffers.get(op)) for op in self.ops}
        self.element = {
            "IN": machine.in_bytes * len(layer.loaded), "W": machine.w_bytes, "OUT": machine.out_bytes
        }  # fmt: skip
        self.axes = {"IN": ("b", "g", "n", "r", "c"), "W": tuple(sorted(RELEVANT["W"])), "OUT": tuple("bgmrc")}
        self._at = {loop: number for number, loop in enumerate(self.loops)}
        self.windows, self._places = input_windows(layer), {d: core.range(d) for d in KERNELS}

    def classes(self, parts: Sequence[Mapping[Loop, tuple[int, int, int, int]]]) -> Ranges:
        """One class for each of the `parts`: what is known of some loops (fewest, most, low, high); of others all."""
        rows = [
            [part.get(loop, (1, e, 1, e)) for loop in self.loops for e in (self.extent[loop[0]],)] for part in parts
        ]
        table = np.array(rows, np.int64).reshape(len(parts), len(self.loops), 4)
        return Ranges.of(*(np.ascontiguousarray(table[:, :, k].T) for k in range(4)))

    # ---- pieces ----------------------------------------------------------------------------------------------------

    def sized(self, sizes: Ints, dim: str, level: int) -> Ints:
        """Sizes (N,) of pieces after so many loops over a dimension, of an array (loops, N)."""
        return sizes[self._at[dim, level]] if level else np.full(sizes.shape[1], self.extent[dim])

    def counted(self, numbers: Ints, dim: str, level: int) -> Ints:
        """Numbers (N,) of pieces after so many loops over a dimension, of an array (loops, N)."""
        return numbers[self._at[dim, level]] if level else np.ones(numbers.shape[1], np.int64)

    def least(self, some: Ranges, dim: str, level: int) -> Ints:
        """Elements (N,) that any piece has at least."""
        if dim in KERNELS.values():
            return self.edge(some, some.first, dim, level)
        extent = self.extent[dim]
        fewest = extent - (self.counted(some.most, dim, level) - 1) * self.sized(some.high, dim, level)
        return np.maximum(1, fewest) if level else np.full(len(some), extent)

    def edge(self, some: Ranges, sizes: Ints, dim: str, level: int) -> Ints:
        """The first (or last) piece (N,), as `sizes` say; a part of the kernel has a tap, or all of them for sure."""
        if dim not in KERNELS.values():
            return self.sized(sizes, dim, level)
        extent = self.extent[dim]
        return np.where(self.sized(some.low, dim, level) == extent, extent, 1)

    def tightened(self, some: Ranges) -> tuple[Ranges, Mask]:
        """The same classes with tighter ranges, and which of them hold a nest that fits, as far as that is told."""
        found = Ranges(*(getattr(some, f.name).copy() for f in fields(some)))
        fits = np.ones(len(found), np.bool_)
        for _ in range(_ROUNDS):
            for number, (dim, level) in enumerate(self.loops):
                if level > 1:
                    self._nested(found, number)
                else:
                    self._outer(found, number, self.extent[dim])
                self._shared(found, number, self.extent[dim])
                if dim not in KERNELS.values():
                    self._ends(found, number, self.extent[dim])
            for below, above in found.pairs:  # what holds no nest is made regular, and remembered
                fits &= (below <= above).all(axis=0)
                np.maximum(above, 1, out=above)
                np.minimum(below, above, out=below)
            fits &= (found.cuts <= found.cuts_most).all(axis=0)
            np.maximum(found.cuts_most, found.cuts, out=found.cuts_most)
            fits &= self._roomy(found)
        return found, fits

    def _outer(self, found: Ranges, loop: int, extent: int) -> None:
        """Whether the first loop over a dimension cuts it."""
        np.maximum(found.cuts[loop], found.fewest[loop] > 1, out=found.cuts[loop])
        np.minimum(found.cuts_most[loop], found.most[loop] > 1, out=found.cuts_most[loop])
        np.maximum(found.fewest[loop], 1 + found.cuts[loop], out=found.fewest[loop])
        whole = found.cuts_most[loop] == 0
        found.most[loop][whole] = 1
        for below, _ in found.pairs[1:]:
            below[loop][whole] = extent

    def _nested(self, found: Ranges, inner: int) -> None:
        """Pieces of a loop and of the one before it over the same dimension; alike where the loop cuts nothing.

        Groups of pieces have one each at least, the first and the last one as many as they need.
        """
        outer = inner - 1
        cuts, may = found.cuts[inner], found.cuts_most[inner]
        np.maximum(cuts, found.fewest[inner] > found.most[outer], out=cuts)
        np.minimum(may, found.most[inner] > found.fewest[outer], out=may)
        np.maximum(found.fewest[inner], found.fewest[outer] + cuts, out=found.fewest[inner])
        np.minimum(found.most[outer], found.most[inner] - cuts, out=found.most[outer])
        same = may == 0
        for number, (below, above) in enumerate(found.pairs):
            if number:
                np.maximum(below[outer], below[inner], out=below[outer])
                np.minimum(above[inner], above[outer], out=above[inner])
            below[inner] = np.where(same, np.maximum(below[inner], below[outer]), below[inner])
            above[inner] = np.where(same, np.minimum(above[inner], above[outer]), above[inner])
            below[outer] = np.where(same, below[inner], below[outer])
            above[outer] = np.where(same, above[inner], above[outer])
        self._grouped(found, inner)

    @staticmethod
    def _grouped(found: Ranges, inner: int) -> None:
        """How many pieces the groups of the loop before need: the first and the last one, the largest, one all others.

        And how large the first and the last group are at most, with what is left of the pieces.
        """
        outer = inner - 1
        groups, high, first_last = found.fewest[outer], np.maximum(found.high[inner], 1), found.pairs[2:]
        needs = [1 + np.maximum(0, -(-(below[outer] - above[inner]) // high)) for below, above in first_last]
        ends, largest = sum(needs), -(-found.low[outer] // high)
        middle = found.low[outer] > np.maximum(found.first_most[outer], found.last_most[outer])
        several = np.where(middle, np.maximum(groups - 3, 0) + ends + largest, groups - 1 + largest)
        fewest = np.where(groups > 1, np.maximum(groups - 2 + ends, several), largest)
        np.maximum(found.fewest[inner], fewest, out=found.fewest[inner])
        for need, (_, above) in zip(needs, first_last, strict=True):
            others = groups - 2 + ends - need
            most = above[inner] + np.maximum(found.most[inner] - others - 1, 0) * high
            above[outer] = np.where(groups > 1, np.minimum(above[outer], most), above[outer])

    def _shared(self, found: Ranges, loop: int, extent: int) -> None:
        """Numbers and the largest piece: all pieces make up the extent."""
        fewest, most, low, high = (x[loop] for pair in found.pairs[:2] for x in pair)
        np.maximum(fewest, -(-extent // np.maximum(high, 1)), out=fewest)
        np.minimum(most, extent - low + 1, out=most)
        np.maximum(low, -(-extent // np.maximum(most, 1)), out=low)
        np.minimum(high, extent - fewest + 1, out=high)

    def _ends(self, found: Ranges, loop: int, extent: int) -> None:
        """The first and the last piece: one piece is both, two are all there is."""
        fewest, most, low, high = (x[loop] for pair in found.pairs[:2] for x in pair)
        ends = found.pairs[2:]
        for (below, above), (other_below, other_above) in (ends, ends[::-1]):
            np.minimum(above[loop], high, out=above[loop])
            rest = np.where(most > 1, extent - other_above[loop] - (most - 2) * high, extent)
            np.maximum(below[loop], rest, out=below[loop])
            left = extent - other_below[loop] - (fewest - 2)
            above[loop] = np.where(fewest > 1, np.minimum(above[loop], left), above[loop])
            np.maximum(low, below[loop], out=low)
        (first, first_most), (last, last_most) = ((x[loop] for x in pair) for pair in ends)
        middle = extent - first - last - np.maximum(fewest - 3, 0)  # the largest stands between the ends, or is one
        np.minimum(high, np.maximum(np.maximum(first_most, last_most), middle), out=high)

    # ---- tiles -----------------------------------------------------------------------------------------------------

    def tile(self, some: Ranges, op: str, *, most: bool = False) -> dict[str, Ints]:
        """Elements (N,) along every axis of an operand's largest tile, at least or at most."""
        level, sizes = self.level[op], some.high if most else some.low
        found = {d: self.sized(sizes, d, level[d]) for d in self.axes[op] if op != "IN" or d not in KERNELS}
        for d in KERNELS if op == "IN" else ():
            found[d] = self._longest(some, d) if most else self._window(some, d)
        return {d: found[d] for d in self.axes[op]}

    def _longest(self, some: Ranges, dim: str) -> Ints:
        """Rows (columns) of the largest window at most."""
        outputs, taps = (self.sized(some.high, d, self.level["IN"][d]) for d in (dim, KERNELS[dim]))
        return self.windows[dim].nominal(outputs, taps)

    def _window(self, some: Ranges, dim: str) -> Ints:
        """Rows (columns) of the largest window at least."""
        window, place = self.windows[dim], self._places[dim]
        outputs, taps = (self.sized(some.low, d, self.level["IN"][d]) for d in (dim, KERNELS[dim]))
        rows: Ints = smallest_windows(*place, window)[outputs - 1, taps - 1]
        least = least_window(*place, window)[self.counted(some.most, dim, self.level["IN"][dim])]
        return np.where(taps == window.taps, np.maximum(rows, least), rows)

    def held(self, some: Ranges, op: str) -> Ints:
        """Bytes (N,) on chip of an element of a tile, at least; of all inputs together."""
        if op != "OUT":
            return np.full(len(some), self.element[op])
        partial = np.zeros(len(some), np.bool_)
        for d in REDUCTION:
            partial |= self.counted(some.fewest, d, self.levels[d]) > 1
        return np.where(partial, max(self.machine.psum_bytes, self.machine.out_bytes), self.machine.out_bytes)

    def room(self, some: Ranges) -> tuple[dict[str, Ints], Mask]:
        """By operand the most elements (N,) of a tile beside the least of the others; whether the least of all fit."""
        machine = self.machine
        each = {op: self.held(some, op) * self.buffers[op] for op in self.ops}
        mine = {op: prod(self.tile(some, op).values()) * each[op] for op in self.ops}
        taken = {name: np.full(len(some), machine.reserved_bytes) for name in machine.memories}
        for op in self.ops:
            taken[machine.memory_of(op)] = taken[machine.memory_of(op)] + mine[op]
        left = {name: size - taken[name] for name, size in machine.memories.items()}
        fits: Mask = np.all([some_left >= 0 for some_left in left.values()], axis=0)
        return {op: np.maximum(left[machine.memory_of(op)] + mine[op], 0) // each[op] for op in self.ops}, fits

    def _roomy(self, found: Ranges) -> Mask:
        """Bound the largest pieces by what fits beside the least of all others."""
        room, fits = self.room(found)
        for op in self.ops:
            tile = self.tile(found, op)
            elements = np.maximum(prod(tile.values()), 1)
            for d, own in tile.items():
                if not self.level[op][d]:
                    continue
                high = found.high[self._at[d, self.level[op][d]]]
                most = room[op] * own // elements
                if op == "IN" and d in KERNELS:
                    most = self._outputs(found, d, most)
                np.minimum(high, most, out=high)
        fits &= (found.low <= found.high).all(axis=0)
        np.maximum(found.high, found.low, out=found.high)
        return fits

    def _outputs(self, some: Ranges, dim: str, rows: Ints) -> Ints:
        """The most outputs whose window has at most so many rows."""
        window = self.windows[dim]
        taps = self.sized(some.low, KERNELS[dim], self.level["IN"][KERNELS[dim]])
        reach = (taps - 1) * window.dilation + 1
        most: Ints = np.maximum(0, rows + sum(window.clipping(*self._places[dim])) - reach) // window.stride + 1
        return most


@lru_cache(maxsize=256)
def first_rows(lo: int, hi: int, window: Window) -> Ints:
    """Rows that the first outputs of [lo, hi) need under the first taps, each counted once, (E, K)."""
    place = np.arange(lo, hi)[:, None] * window.stride - window.pad + np.arange(window.taps) * window.dilation
    place = np.where((place >= window.first) & (place < window.size), place, -1)
    used = [[len({*rows[:, :u].ravel().tolist()} - {-1}) for u in range(1, window.taps + 1)] for rows in _firsts(place)]
    return np.array(used, np.int64)


def _firsts(rows: Ints) -> Iterator[Ints]:
    """The first row, the first two, and so on."""
    return (rows[:end] for end in range(1, len(rows) + 1))
