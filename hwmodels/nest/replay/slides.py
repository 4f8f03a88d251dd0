"""What is fetched of a tile of IN that slides, by addresses, and what IN takes in lines (docs/nest.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from hwmodels.nest.replay.counts import Axis, Stored, call_of, price
from hwmodels.nest.replay.cuts import Cuts
from hwmodels.outcome import Counts
from instances.machine.machine import Transfer


def slid(tensor: Stored, cuts: Mapping[str, Cuts], dim: str, level: int) -> Stored:
    """What is fetched of every tile of IN when it slides along the loop over `dim` that makes its pieces at `level`.

    The pieces that one piece of the level before is cut in follow each other; each fetches what lies behind the
    farthest end of those before it.
    """
    axes = []
    for axis in tensor.axes:
        if dim in axis.dims and len(axis.dims) == 2:
            along = axis.dims.index(dim)
            start, extent = np.moveaxis(axis.start, along, 0).copy(), np.moveaxis(axis.extent, along, 0)
            ends = start + extent
            for head, number in zip(cuts[dim].first[level - 1], cuts[dim].number[level - 1], strict=True):
                held = np.maximum.accumulate(ends[head : head + number], axis=0)
                start[head + 1 : head + number] = np.maximum(start[head + 1 : head + number], held[:-1])
            left = np.maximum(ends - start, 0)
            axis = Axis(axis.size, axis.dims, np.moveaxis(start, 0, along), np.moveaxis(left, 0, along))
        axes.append(axis)
    return Stored(tuple(axes), tensor.element)


def lined_bytes(tensor: Stored, cuts: Mapping[str, Cuts], outer: tuple[str, int], inner: tuple[str, int]) -> int:
    """Bytes that IN takes in lines: for all columns of a pass the rows read again, for those of a window all rows.

    `outer` and `inner` are the loops that slide (dimension, level of the pieces they make); rows are what the outer one
    moves over, columns the inner one.
    """
    again, width, beyond, columns = lined_sizes(tensor, cuts, outer, inner)
    plane = tensor.element * prod(int(axis.extent.max()) for axis in tensor.axes if len(axis.dims) == 1)
    return plane * (again * width + beyond * columns)


def lined_sizes(
    tensor: Stored, cuts: Mapping[str, Cuts], outer: tuple[str, int], inner: tuple[str, int]
) -> tuple[int, int, int, int]:
    """The places of a plane in lines: rows read again, the width of a pass; other rows and columns of a window.

    `outer` and `inner` as of `lined_bytes`.
    """
    again = rows = columns = width = 0
    for axis in tensor.axes:
        start, stop = axis.start, axis.start + axis.extent
        if len(axis.dims) == 1:
            continue
        dim, level = outer if outer[0] in axis.dims else inner
        start, stop = (np.moveaxis(x, axis.dims.index(dim), 0) for x in (start, stop))
        for head, number in zip(cuts[dim].first[level - 1], cuts[dim].number[level - 1], strict=True):
            lo, hi = start[head : head + number], stop[head : head + number]
            there = hi > lo
            if dim == outer[0]:
                both = there[1:] & there[:-1]
                again = max(again, int(np.where(both, hi[:-1] - lo[1:], 0).max(initial=0)))
                rows = max(rows, int((hi - lo).max()))
            else:
                reach = np.where(there, hi, -1).max(axis=0) - np.where(there, lo, axis.size).min(axis=0)
                width = max(width, int(reach.max()))
                columns = max(columns, int((hi - lo).max()))
    return again, width, rows - again, columns


class Between:
    """What is fetched of a tile of IN while another one lies on chip, in snake order.

    Where they differ in one range of r, c, i or j, only what lies beyond the tile that is there; else all of it.
    """

    def __init__(
        self, parts: Sequence[Stored], dims: Sequence[str], shape: Sequence[int], transfer: Transfer, slides: bool
    ) -> None:
        self.parts, self.dims, self.shape, self.transfer, self.slides = parts, dims, tuple(shape), transfer, slides
        self.known: dict[tuple[int, int], Counts] = {}

    def counts(self, there: int, tile: int) -> Counts:
        """Count fetching the tile of this number; `there` is -1 if none is on chip."""
        if (there, tile) not in self.known:
            self.known[there, tile] = self._count(there, tile)
        return self.known[there, tile]

    def ticks(self, there: int, tile: int) -> int:
        """The price of `counts`."""
        return price(self.counts(there, tile), self.transfer)

    def _count(self, there: int, tile: int) -> Counts:
        after = dict(zip(self.dims, np.unravel_index(tile, self.shape), strict=True))
        before = dict(zip(self.dims, np.unravel_index(max(there, 0), self.shape), strict=True))
        moved = "".join(d for d in self.dims if before[d] != after[d])
        along = moved if self.slides and there >= 0 and moved in ("r", "c", "i", "j") else ""
        total = Counts()
        for part in self.parts:
            extents, base = [], 0
            for axis, pitch in zip(part.axes, part.pitch, strict=True):
                lo, hi = _ends(axis, after)
                first, end = _ends(axis, before)
                if along and along in axis.dims and first < end:
                    lo, hi = (lo, min(hi, first)) if lo < first else (max(lo, end), hi)
                extents.append(max(hi - lo, 0))
                base += lo * pitch
            burst = self.transfer.burst_bytes
            shape = tuple(axis.size for axis in part.axes)
            total += call_of([(shape, tuple(extents), part.element, base % burst if burst else 0)], self.transfer)
        return total


def _ends(axis: Axis, index: Mapping[str, np.integer]) -> tuple[int, int]:
    """Where a tile begins and ends along an axis."""
    piece = tuple(int(index[d]) for d in axis.dims)
    start = int(axis.start[piece])
    return start, start + int(axis.extent[piece])
