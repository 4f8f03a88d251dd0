"""The pieces that one core's loops cut its ranges in, dimension by dimension, for all candidate chains of steps.

**Lines** (docs/nest.md). What IN moves and takes in lines are products of vectors, one of each axis.
The two loops that slide fetch every element of a sweep once: new rows of each pass times new columns of each step, the
product of the two vectors that `hwmodels.nest.pieces.windows` gives for either loop; the sweep is repeated by every
loop outside the two. The buffer holds ``again * width + (rows - again) * columns`` elements of each channel: the rows
that two windows of neighbouring passes share, at most, over the widest pass, and the other rows of the largest window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.bilinear import Ints
from hwmodels.nest.boxes import Axis, axes_of, input_windows
from hwmodels.nest.choices import Choices
from hwmodels.nest.pieces import Pieces, Window, cut, nominal, windows
from hwmodels.nest.relaxed import Relaxed, ideal_count, ideal_cut, ideal_once, ideal_parts, ideal_windows
from hwmodels.nest.skeleton import Core, Skeleton, cores
from hwmodels.nest.spans import begins
from instances.machine import Machine
from instances.workload import DIMS, RELEVANT, Layer

Mask = NDArray[np.bool_]


class CorePieces:
    """How the loops of one skeleton cut one core's ranges, and the axes of the tensors in these pieces."""

    def __init__(self, layer: Layer, machine: Machine, skeleton: Skeleton, core: Core, choices: Choices) -> None:
        self.layer, self.machine, self.skeleton, self.core, self.choices = layer, machine, skeleton, core, choices
        self._uniform = machine.edge_tiles == "uniform"
        self._extents = {d: core.extent(d) for d in DIMS}
        by_address = any(transfer.by_address for transfer in machine.transfers)
        self._begin = {d: core.range(d)[0] if by_address else 0 for d in DIMS}
        self._steps, self._ideal = choices.steps, choices.ideal

    def _cut(self, dim: str, level: int | None = None) -> Pieces:
        """The pieces of `dim` after its first `level` loops (all by default)."""
        steps = self._steps[dim][:, :level]
        if self._ideal is None or not steps.shape[1]:
            return cut(self._extents[dim], steps, self._begin[dim])
        if dim in self._ideal and self._ideal[dim] != "sums":
            bound = ideal_cut if self._ideal[dim] == "steps" else ideal_count
            return bound(self._extents[dim], steps[:, -1])
        return Relaxed(cut(self._extents[dim], steps))

    def _trips(self, dim: str, level: int | None = None) -> Ints:
        return self._cut(dim, level).number

    def _real(self, dim: str, level: int) -> Mask:
        """Whether the loop over `dim` at `level` cuts something."""
        result: Mask = self._trips(dim, level + 1) > self._trips(dim, level)
        return result

    def _share(self, dim: str) -> int:
        """The nominal size of the core's range: the step of the spatial cut."""
        return next((i.step for i in reversed(self.skeleton.spatial) if i.dim == dim), self.layer.extent(dim))

    def _nominal(self, dim: str, level: int) -> Ints:
        """The step that the nest states for `dim` after `level` loops; of free pieces the largest."""
        if not level:
            return np.array([self._share(dim)], np.int64)
        steps = self._steps[dim][:, :level]
        return np.where(steps[:, -1] > 0, steps[:, -1], cut(self._share(dim), steps).largest)

    def _pieces(
        self, dim: str, operand: str, slide: tuple[str, int] | None = None, resident: int | None = None
    ) -> Pieces:
        """The pieces of `dim` at the Hold of `operand`, without resident rows; r and c of IN are the input's."""
        level = self.skeleton.level(dim, operand)
        if operand == "IN" and dim in ("r", "c"):
            return self._input_pieces(dim, level, slide, resident)
        if operand == "OUT" and dim == "r" and resident:
            return self._written(level, resident)
        return nominal(self._nominal(dim, level), self._trips(dim, level)) if self._uniform else self._cut(dim, level)

    def _written(self, level: int, resident: int) -> Pieces:
        """The rows of the result's pieces that go to DRAM."""
        steps = self._steps["r"][:, :level]
        if self._ideal is not None and level and self._ideal.get("r", "sums") != "sums":
            bound = ideal_cut if self._ideal["r"] == "steps" else ideal_count
            return bound(self._extents["r"], steps[:, -1], resident)
        written = Window(1, 1, 1, 0, self.layer.r, resident)
        pieces = windows(*self.core.range("r"), steps, np.zeros((1, 0), np.int64), written)
        return pieces if self._ideal is None else Relaxed(pieces, int(pieces.number.max(initial=0)))

    def _input_pieces(self, dim: str, level: int, slide: tuple[str, int] | None, resident: int | None) -> Pieces:
        kernel, window = {"r": "i", "c": "j"}[dim], input_windows(self.layer, resident)[dim]
        inner = self.skeleton.level(kernel, "IN")
        if self._uniform:
            count = self._trips(dim, level) * self._trips(kernel, inner)
            return nominal(window.nominal(self._nominal(dim, level), self._nominal(kernel, inner)), count)
        along = "outer" if self.skeleton.line else ""  # loops beyond the one it slides along cut nothing
        if slide and slide[0] in (dim, kernel):
            along = "outer" if slide[0] == dim else "inner"
            level, inner = (slide[1] + 1, inner) if along == "outer" else (level, slide[1] + 1)
        steps, taps = self._steps[dim][:, :level], self._steps[kernel][:, :inner]
        if self._ideal is not None:
            return self._bounded(dim, steps, taps, window, along)
        return windows(*self.core.range(dim), steps, taps, window, along)

    def _bounded(self, dim: str, steps: Ints, taps: Ints, window: Window, along: str) -> Pieces:
        """The least that windows may be however their loops cut."""
        once = self.machine.line or (self.machine.sliding and (self.machine.snake or self._smaller("IN")))
        if once and (steps.shape[1] or taps.shape[1]):
            return ideal_once(*self.core.range(dim), self._windowed(dim, steps, taps, window, ""), window)
        return self._windowed(dim, steps, taps, window, along)

    def _windowed(self, dim: str, steps: Ints, taps: Ints, window: Window, along: str) -> Pieces:
        """The least that windows may be where IN slides along one loop at most."""
        lo, hi = self.core.range(dim)
        if not steps.shape[1] and not taps.shape[1]:
            return windows(lo, hi, steps, taps, window, along)
        how = (self._ideal or {}).get(dim)
        if how == "steps":
            most = steps[:, -1] if steps.shape[1] else np.array([hi - lo])
            parts = taps[:, -1] if taps.shape[1] else np.array([window.taps])
            if window.trivial and hi <= window.size:
                return ideal_cut(hi - lo, most)
            return ideal_windows(lo, hi, most, parts, window, along)
        if taps.shape[1] or how is not None:
            return ideal_parts(lo, hi, steps, taps, window, along, counts=how == "counts")
        # fetches of nothing: beyond the end of the map, or of rows that are on chip
        idle = window.clipping(lo, hi)[1] // window.stride if along else 0
        if window.first or window.pad >= window.reach or window.clipping(lo, hi)[1] >= window.reach:
            idle = hi - lo
        return Relaxed(windows(lo, hi, steps, taps, window, along), idle)

    def _axes(
        self, tensor: str, slide: tuple[str, int] | None = None, resident: int | None = None, lacks: str = ""
    ) -> list[Axis]:
        operand = "W" if tensor == "BIAS" else tensor
        return axes_of(self.layer, self.machine, tensor, lambda dim: self._pieces(dim, operand, slide, resident), lacks)

    def _smaller(self, operand: str) -> bool:  # loops may cut less of it than on the first core
        return self.core.smaller(self._first, RELEVANT[operand])

    @cached_property
    def _first(self) -> Core:
        return cores(self.layer, self.skeleton.spatial)[0]


#: Beyond all rows.
_FAR = 1 << 60


def _vectors(lo: int, hi: int, steps: Ints, taps: Ints, window: Window) -> tuple[Ints, Ints, Ints]:
    """Rows that two windows of a pass share, rows of the longest, and of the widest pass, for T chains.

    `steps` (T, L) are those of the output dimension down to the loop that slides, `taps` (T, L') all of the kernel's
    outside the Hold; entries below 0 are lists of places (`hwmodels.nest.spans`). Of columns alike. IN in lines takes,
    for an element of its other dimensions, ``again * width + (longest - again) * columns``: `again` and `longest` of
    the outer axis, `width` and `longest` (its columns) of the inner one.
    """
    window_of = _windows(lo, hi, steps, taps, window)
    again = np.where(window_of.follows, window_of.before - window_of.first, 0).max(axis=(1, 2))
    longest = np.where(window_of.here, window_of.end - window_of.first, 0).max(axis=(1, 2), initial=0)
    there = window_of.here & (window_of.end > window_of.first)
    passes = np.flatnonzero(window_of.passes)
    ends, begins_ = (np.where(there, x, none) for x, none in ((window_of.end, -1), (window_of.first, _FAR)))
    across = [
        f.reduceat(x.reshape(-1, x.shape[2]), passes, axis=0) for f, x in ((np.maximum, ends), (np.minimum, begins_))
    ]
    per_pass = (across[0] - across[1]).max(axis=1)
    first_pass = np.flatnonzero(np.diff(passes // (hi - lo), prepend=-1))
    width = np.maximum.reduceat(per_pass, first_pass)
    return np.maximum(again, 0), longest, np.maximum(width, 0)


def line_products(
    ranges: Sequence[tuple[int, int]], steps: Sequence[tuple[Ints, Ints]], window: Sequence[Window]
) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
    """What IN in lines takes for an element of its other dimensions, as products of a vector of either loop, summed.

    Ranges, steps with those of the kernel, and windows are those of the two loops that slide, the outer one first.
    """
    (again, rows, _), (_, columns, width) = (
        _vectors(*span, *chains, one) for span, chains, one in zip(ranges, steps, window, strict=True)
    )
    return (again, width), (np.maximum(rows - again, 0), columns)


@dataclass(frozen=True)
class _Windows:
    """Windows by chain, output that begins a piece and tap that begins a part, (T, E, K); `passes` (T, E)."""

    first: Ints
    end: Ints
    before: Ints
    here: Mask
    follows: Mask
    passes: Mask


def _windows(lo: int, hi: int, steps: Ints, taps: Ints, window: Window) -> _Windows:
    """The windows of all pieces, and where the piece before it ends."""
    number = max(len(steps), len(taps))
    made, passes = (np.broadcast_to(x, (number, hi - lo)) for x in begins(hi - lo, steps))
    part = np.broadcast_to(begins(window.taps, taps)[0], (number, window.taps))
    stop, last = _ends(made), _ends(part)
    r0, i0 = lo + np.arange(hi - lo)[None, :, None], np.arange(window.taps)
    first, end = window.rows(r0, (lo + stop)[:, :, None], i0, last[:, None, :])
    before = window.rows(r0, r0, i0, last[:, None, :])[1]
    here = made[:, :, None] & part[:, None, :]
    return _Windows(np.broadcast_to(first, here.shape), end, before, here, here & ~passes[:, :, None], passes)


def _ends(first: NDArray[np.bool_]) -> Ints:
    """For every position the start of the next piece behind it."""
    extent = first.shape[1]
    here = np.where(first, np.arange(extent), extent)
    following = np.concatenate([here[:, 1:], np.full((len(here), 1), extent)], axis=1)
    ends: Ints = np.minimum.accumulate(following[:, ::-1], axis=1)[:, ::-1].astype(np.int64)
    return ends
