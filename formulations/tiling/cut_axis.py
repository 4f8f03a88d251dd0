"""A dimension as loops may cut it, and the entries of chains that stand for its pieces (see `cuts`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from formulations.tiling.chains import even_steps
from hwmodels.nest.bilinear import Ints
from hwmodels.nest.pieces import Window
from hwmodels.nest.spans import code_of, how

_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Cut:
    """A dimension as loops cut it."""

    window: Window
    """Over the input's axis."""
    ranges: tuple[tuple[int, int], ...]
    """Of the cores, the largest first."""
    levels: tuple[int, int]
    """Loops outside the Hold of IN, and outside that of OUT."""
    counted: bool = True
    """Whether sum L counts; else only sizes and numbers do."""

    @property
    def extent(self) -> int:
        """Of the largest core."""
        return self.ranges[0][1] - self.ranges[0][0]

    @property
    def depth(self) -> int:
        """Loops over the dimension."""
        return max(self.levels)

    @cached_property
    def length(self) -> Ints:
        """L(a, b), shape (E, E + 1), the largest of all cores; 0 where b <= a."""
        longest: Ints = np.max([self._length(lo, hi) for lo, hi in self.ranges], axis=0)
        return longest

    @property
    def windows(self) -> Ints:
        """The lengths that windows have, ascending."""
        first, end = np.triu_indices(self.extent)
        return np.unique(self.length[first, end + 1])

    def _ends(self, lo: int, hi: int) -> tuple[Ints, Ints]:
        w = self.window
        a, b = np.arange(self.extent), np.minimum(np.arange(self.extent + 1), hi - lo)
        return np.maximum((lo + a) * w.stride - w.pad, w.first), np.minimum(
            (lo + b - 1) * w.stride - w.pad + w.reach, w.size
        )

    def _length(self, lo: int, hi: int) -> Ints:
        first, last = self._ends(lo, hi)
        length = np.maximum(last[None, :] - first[:, None], 0)
        return np.where(np.arange(self.extent + 1)[None, :] > np.arange(self.extent)[:, None], length, 0)

    @cached_property
    def overlap(self) -> Ints:
        """ov(x) for x in 0..E (0 at both ends)."""
        first, last = self._ends(*self.ranges[0])
        result = np.zeros(self.extent + 1, np.int64)
        if not self.counted:
            return result
        inside = last[1:-1] - first[1:]
        result[1:-1] = np.maximum(inside, 0) if self.window.reach >= self.window.stride else inside
        return result

    @property
    def skips(self) -> bool:
        """Whether more pieces fetch less."""
        return self.counted and self.window.reach < self.window.stride

    @cached_property
    def places(self) -> tuple[Ints, Ints]:
        """The places of (c) that are worth trying: those behind the begin, those before the end."""
        window, inside, lo = self.window, np.arange(1, self.extent), self.ranges[0][0]
        if self.skips or len(self.ranges) > 1:
            return _NONE, _NONE
        ov = self.overlap[1:-1]
        early = inside[(lo + inside) * window.stride - window.pad < window.first]
        late = inside[(lo + inside - 1) * window.stride - window.pad + window.reach > window.size]
        free_early, free_late = early[ov[early - 1] == 0][-1:], late[ov[late - 1] == 0][:1]
        return (
            np.concatenate([free_early, early[ov[early - 1] > 0]]),
            np.concatenate([late[ov[late - 1] > 0], free_late]),
        )

    @property
    def clipped(self) -> bool:
        """Whether any window is clipped."""
        return any(sum(self.window.clipping(*r)) > 0 for r in self.ranges)

    def ends(self, w: Ints) -> Ints:
        """The farthest end of a piece from a on whose window is at most w, shape (W, E); a if there is none."""
        columns = [a + np.searchsorted(self.length[a, a + 1 :], w, "right") for a in range(self.extent)]
        return np.stack(columns, axis=1)


def complete(cut: Cut) -> bool:
    """Whether `free_chains` lists all that an optimum in bytes may need ("Assumes" there)."""
    window = cut.window
    inner, outer = cut.levels
    if inner == 0:
        return True
    if cut.skips and (cut.clipped or (inner, outer) == (2, 1)):
        return False
    if len(cut.ranges) > 1:
        free = all(max(window.clipping(*r)) <= window.stride for r in cut.ranges)
        return free and len({hi - lo for lo, hi in cut.ranges}) == 1
    some = [int((cut.overlap[p] > 0).sum()) for p in cut.places if len(p)]
    return inner > outer or cut.levels == (1, 2) or max(some, default=0) <= 2


# ---- entries of chains ---------------------------------------------------------------------------------------


def ends_of(row: Ints) -> tuple[int, ...]:
    """Where pieces end, ascending, each place once."""
    return tuple(int(x) for x in np.unique(row))


def entry(ends: tuple[int, ...]) -> int:
    """The entry of a chain for pieces with these ends: a step if they are equal steps."""
    step = ends[0]
    if all(b - a == step for a, b in pairwise(ends[:-1])) and (len(ends) == 1 or ends[-1] - ends[-2] <= step):
        return step
    return code_of(ends[:-1])


def even(extent: int, inner: Ints) -> Ints:
    """Of the steps allowed the smallest for every number of pieces, as chains (T, 1)."""
    return even_steps((extent,), inner)[:, None]


def sizes(entry: int, extent: int) -> list[int]:
    """The pieces that an entry of a chain makes."""
    step = how(entry)
    ends = (*range(step, extent, step), extent) if isinstance(step, int) else (*step, extent)
    return [b - a for a, b in zip((0, *ends[:-1]), ends, strict=True)]


def chain(groups: list[list[int]]) -> tuple[int, int]:
    """The entries of both loops."""
    inner = tuple(accumulate(size for group in groups for size in group))
    outer = tuple(accumulate(map(sum, groups)))
    step = max(b - a for a, b in zip((0, *inner[:-1]), inner, strict=True))
    steps = {x for a, b in pairwise((0, *outer)) for x in range(a + step, b, step)}
    return entry(outer), step if steps | set(outer) == set(inner) else code_of(inner[:-1])
