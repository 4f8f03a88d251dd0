"""The pieces that one core's loops cut its ranges in, dimension by dimension, for all candidate chains of steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.bilinear import Ints
from hwmodels.nest.boxes import Axis, axes_of, input_windows
from hwmodels.nest.choices import Choices
from hwmodels.nest.pieces import Pieces, Window, cut, nominal, windows
from hwmodels.nest.relaxed import Relaxed, ideal_count, ideal_cut, ideal_once, ideal_parts, ideal_windows
from hwmodels.nest.skeleton import Core, Skeleton, cores
from instances.machine import Machine
from instances.workload import DIMS, RELEVANT, Layer

__all__ = ["CorePieces"]

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

    def _axes(self, tensor: str, slide: tuple[str, int] | None = None, resident: int | None = None) -> list[Axis]:
        operand = "W" if tensor == "BIAS" else tensor
        return axes_of(self.layer, self.machine, tensor, lambda dim: self._pieces(dim, operand, slide, resident))

    def _smaller(self, operand: str) -> bool:  # loops may cut less of it than on the first core
        return self.core.smaller(cores(self.layer, self.skeleton.spatial)[0], RELEVANT[operand])
