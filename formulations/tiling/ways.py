"""All ways to cut a dimension of which no other one is better in all that serial time sees (the kernel whole).

They are of rows or columns, which IN has windows of, and OUT; or of channels, which two operands depend on, as well.

Sets
    kinds of cores k with ranges [lo, hi); a place x in 0..E of the longest range; a piece [a, b), on every core cut off
    where its range ends
Labels
    of a way to cut [0, x): for every kind of core the trips of the loops, the windows of IN that hold the whole map,
    the rows of all, the windows that hold a part of it and their bursts, the bursts of the pieces of OUT; for all cores
    the largest window, the largest piece at the Hold of OUT, and that of the last loop. Sums and largest values: a
    label that is nowhere above another one stays so whatever is cut behind it.
Search
    dynamic programming over the places of a group (`_pieces`) and of groups (`ways`), labels that others are nowhere
    above being dropped. Exact for bursts that are counted aligned, for padding, for cores of unequal ranges and for IN
    that slides along one of the loops; a group begins anew there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from formulations.pareto import pareto
from formulations.tiling.entries import chain
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.pieces import Window

#: Places times largest groups times largest pieces up to which all ways are looked at.
_MOST = 60_000


@dataclass(frozen=True)
class Axis:
    """What a search for ways to cut is about."""

    window: Window
    ranges: tuple[tuple[int, int], ...]
    """Of the kinds of cores, the longest first."""
    levels: tuple[int, int]
    """Loops outside the Hold of IN, and outside that of OUT."""
    slide: bool
    """Whether IN slides along the last loop outside its Hold."""
    reads: int
    """Bytes of a row of IN, or of a column."""
    writes: tuple[int, ...]
    """Bytes of a row of results, and of partial sums where these are others."""
    burst: int
    """Bytes; 0 if bursts do not count."""
    fits: bool = False
    """Whether all pieces fit that may be made, so that it counts no further how large they are."""

    @property
    def extent(self) -> int:
        """Of the longest range."""
        return self.ranges[0][1] - self.ranges[0][0]

    @property
    def sums(self) -> int:
        """Sums of a label, of one loop."""
        return len(self.ranges) * (5 + len(self.writes))

    @property
    def alike(self) -> bool:
        """Whether pieces of one size are alike wherever they are."""
        return self.window.trivial and len(self.ranges) == 1

    def piece(self, level: int, begin: int, end: int, *, fresh: bool) -> tuple[list[int], int]:
        """What a piece at a level adds for every kind of core, and its largest window."""
        found, largest = list[int](), 0
        for lo, hi in self.ranges:
            stop = min(end, hi - lo)
            if stop <= begin:
                found += [0] * (5 + len(self.writes))
                continue
            rows = new = 0
            if self.levels[0] == level:
                first, last = self._rows(lo + begin, lo + stop)
                before = 0 if fresh or not self.slide else self._rows(lo + begin - 1, lo + begin)[1]
                rows, new = max(0, last - first), max(0, last - max(first, before))
            part = 0 < new < self.window.size
            found += [1, int(new == self.window.size), new, int(part), self._bursts(new * self.reads) if part else 0]
            out = self.levels[1] == level and (stop - begin < self.window_out)
            found += [self._bursts((stop - begin) * one) if out else 0 for one in self.writes]
            largest = max(largest, rows)
        return found, largest

    @property
    def window_out(self) -> int:
        """Outputs of all cores."""
        return max(hi for _, hi in self.ranges)

    def _rows(self, begin: int, end: int) -> tuple[int, int]:
        window = self.window
        first = max(begin * window.stride - window.pad, window.first)
        return first, min((end - 1) * window.stride - window.pad + window.reach, window.size)

    def _bursts(self, size: int) -> int:
        return -(-size // self.burst) if self.burst else 0


#: Groups of pieces.
Way = tuple[tuple[int, ...], ...]
#: Labels (N, F), and beside each the groups of pieces that it is about.
Labels = tuple[Ints, list[Way]]


@lru_cache(maxsize=256)
def ways(axis: Axis, most: tuple[int, ...]) -> Ints | None:
    """The chains (T, L) of all ways that no other one is better than, in pieces of at most `most` by loop.

    None where there are too many places to look at.
    """
    extent, depth = axis.extent, max(axis.levels)
    group = min(most[0], extent)
    piece, grouped = min(most[-1], extent), depth == 2
    if (
        extent * group + group * piece if axis.alike and grouped else extent * piece * (group if grouped else 1)
    ) > _MOST:
        return None
    if depth == 1:
        made = _pieces(axis, 1, 0, extent, most[0])
        one = [] if extent not in made else [chain([list(way[0])])[-1] for way in made[extent][1]]
        return np.array(one, np.int64).reshape(-1, 1)
    if axis.alike:
        first = _pieces(axis, 2, 0, group, most[1])
        inner = [{begin + size: labels for size, labels in first.items()} for begin in range(extent)]
    else:
        inner = [_pieces(axis, 2, begin, min(extent, begin + group), most[1]) for begin in range(extent)]
    found: dict[int, Labels] = {0: (np.zeros((1, 2 * axis.sums + 3), np.int64), [()])}
    for end in range(1, extent + 1):
        some = [
            _joined(axis, found[begin], inner[begin][end], begin, end)
            for begin in range(max(0, end - group), end) if begin in found and end in inner[begin]
        ]  # fmt: skip
        if some:
            found[end] = _best(axis, some)
    rows = [] if extent not in found else [chain([list(g) for g in way]) for way in found[extent][1]]
    return np.array(rows, np.int64).reshape(-1, 2)


def _pieces(axis: Axis, level: int, begin: int, end: int, most: int) -> dict[int, Labels]:
    """By place the labels of ways to cut what lies between `begin` and it in pieces."""
    size = axis.sums
    found: dict[int, Labels] = {begin: (np.zeros((1, size + 3), np.int64), [((),)])}
    for stop in range(begin + 1, end + 1):
        some = list[Labels]()
        for start in range(max(begin, stop - most), stop):
            if start not in found:
                continue
            labels, made = found[start]
            sums, window = axis.piece(level, start, stop, fresh=start == begin)
            out = stop - start if axis.levels[1] == level else 0
            added = np.concatenate([
                labels[:, :size] + np.array(sums), np.maximum(labels[:, size:], [window, out, stop - start])
            ], axis=1)  # fmt: skip
            longer: list[Way] = [((*way[0], stop - start),) for way in made]
            some.append((added, longer))
        if some:
            found[stop] = _best(axis, some)
    return found


def _joined(axis: Axis, before: Labels, group: Labels, begin: int, end: int) -> Labels:
    """Every way to cut what lies before, with every way to cut a group behind it."""
    size = axis.sums
    one, two = (x.ravel() for x in np.meshgrid(np.arange(len(before[0])), np.arange(len(group[0])), indexing="ij"))
    left, right = before[0][one], group[0][two]
    sums, window = axis.piece(1, begin, end, fresh=begin == 0)
    out = end - begin if axis.levels[1] == 1 else 0
    largest = np.maximum(np.maximum(left[:, 2 * size :], right[:, size:]), [window, out, 0])
    labels = np.concatenate([left[:, :size] + np.array(sums), left[:, size : 2 * size] + right[:, :size], largest], 1)
    return labels, [(*before[1][i], *group[1][j]) for i, j in zip(one.tolist(), two.tolist(), strict=True)]


def _best(axis: Axis, some: Sequence[Labels]) -> Labels:
    """The labels that no others are below."""
    labels = np.concatenate([one for one, _ in some])
    made = [way for _, ways_ in some for way in ways_]
    kept = pareto(np.ascontiguousarray(labels[:, : -3 if axis.fits else None].T))
    return labels[kept], [made[k] for k in kept.tolist()]
