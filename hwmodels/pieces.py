"""Cutting a dimension in pieces, for all candidate steps at once.

A step T cuts the range [lo, hi) into ``ceil((hi-lo)/T)`` pieces, the last one possibly smaller. An output piece [r0,
r1) needs the input rows ``r0*S-P .. (r1-1)*S-P+(K-1)*D``, clipped to the map (docs/nest.md; TSO Eq. 1 without the
clipping).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from hwmodels.bilinear import Ints

__all__ = ["Pieces", "Window", "cut", "nominal", "trips", "windows"]


@dataclass(frozen=True)
class Window:
    """A sliding window along one axis: stride, reach ``(K-1)*D+1``, padding before, map size."""

    stride: int
    reach: int
    pad: int
    size: int

    def nominal(self, step: Ints) -> Ints:
        """Input extent of a full tile of `step` outputs, at most the map."""
        return np.minimum((step - 1) * self.stride + self.reach, self.size)


class Pieces:
    """The pieces that each of T steps makes: `length` and `count`, both of shape (T, P).

    Pieces of one step with the same length may be listed once with their count; unused places have count 0.
    Sums over the pieces are kept, because many tables ask for the same ones.
    """

    def __init__(self, length: Ints, count: Ints) -> None:
        self.length = length
        self.count = np.where(length > 0, count, 0)
        self._kept: dict[tuple[int, ...], Ints] = {}

    @cached_property
    def number(self) -> Ints:
        """Pieces that hold anything, per step."""
        total: Ints = self.count.sum(axis=1)
        return total

    @cached_property
    def sum(self) -> Ints:
        """Sum of the lengths, per step."""
        total: Ints = (self.length * self.count).sum(axis=1)
        return total

    @cached_property
    def largest(self) -> Ints:
        """Longest piece, per step."""
        longest: Ints = np.where(self.count > 0, self.length, 0).max(axis=1)
        return longest

    def full(self, extent: int) -> Ints:
        """Number of pieces that span all of `extent`, per step."""
        if (key := (extent,)) not in self._kept:
            self._kept[key] = np.where(self.length == extent, self.count, 0).sum(axis=1)
        return self._kept[key]

    def partial(self, extent: int) -> Ints:
        """Number of pieces shorter than `extent`, per step."""
        return self.number - self.full(extent)

    def partial_windows(self, extent: int, inner_bytes: int, window: int) -> Ints:
        """Sum over the pieces shorter than `extent` of ``ceil(length*inner_bytes/window)``, per step."""
        if (key := (extent, inner_bytes, window)) not in self._kept:
            bursts = -(-self.length * inner_bytes // window)
            self._kept[key] = np.where(self.length < extent, bursts * self.count, 0).sum(axis=1)
        return self._kept[key]

    def ceil_sum(self, unit: int) -> Ints:
        """Sum over the pieces of ``ceil(length/unit)``, per step."""
        total: Ints = (-(-self.length // unit) * self.count).sum(axis=1)
        return total


def trips(extent: int, step: Ints) -> Ints:
    """Return ``ceil(extent/step)``."""
    return -(-extent // step)


@lru_cache(maxsize=4096)
def _cut(extent: int, steps: bytes) -> Pieces:
    step = np.frombuffer(steps, np.int64)
    return Pieces(
        np.stack([np.minimum(step, extent), extent % step], axis=1),
        np.stack([extent // step, extent % step > 0], axis=1).astype(np.int64),
    )


@lru_cache(maxsize=4096)
def _nominal(steps: bytes, count: bytes, window: Window | None) -> Pieces:
    step, number = np.frombuffer(steps, np.int64), np.frombuffer(count, np.int64)
    return Pieces((window.nominal(step) if window else step)[:, None], number[:, None])


def nominal(step: Ints, count: Ints, window: Window | None = None) -> Pieces:
    """Return `count` full pieces for every step, as the papers count (`edge_tiles = "uniform"`)."""
    return _nominal(step.tobytes(), count.tobytes(), window)


def cut(extent: int, step: Ints) -> Pieces:
    """Cut a range of `extent` with every step."""
    return _cut(extent, step.tobytes())


@lru_cache(maxsize=4096)
def _windows(lo: int, hi: int, steps: bytes, window: Window) -> Pieces:
    step = np.frombuffer(steps, np.int64)
    start = lo + np.arange(int(trips(hi - lo, step).max()), dtype=np.int64)[None, :] * step[:, None]
    stop = np.minimum(start + step[:, None], hi)
    first = np.maximum(start * window.stride - window.pad, 0)
    last = np.minimum((stop - 1) * window.stride - window.pad + window.reach, window.size)
    inside = start < hi
    return Pieces(np.where(inside, np.maximum(last - first, 0), 0), inside.astype(np.int64))


def windows(lo: int, hi: int, step: Ints, window: Window) -> Pieces:
    """Return the input pieces under the output range [lo, hi) for every step."""
    if window.stride == window.reach == 1 and not window.pad and hi <= window.size:
        return cut(hi - lo, step)
    return _windows(lo, hi, step.tobytes(), window)
