"""Free pieces: the cuts of rows (or columns) of the result that an optimum may need where windows slide over an input.

Sets
    [a, b) with 0 <= a < b <= E a piece of the outputs; L(a, b) the rows of IN that its window fetches: from
    ``a*S - P`` to ``(b-1)*S - P + reach``, clipped to the map and to the rows that are not on chip (`first`)
Candidates
    A loop cuts E in pieces; a second one cuts them again. What a nest's price sees of them, for bytes, is: the numbers
    of pieces n_1, n_2, the largest L at the Hold of IN (w), the largest piece at the Hold of OUT (t), and sum L.
    `free_chains` lists, for every way to cut, one that is nowhere above it in these.
Why these suffice
    (a) If [a, b) fits under w and t, so does all that lies in it: pieces that are each as large as possible are the
    fewest. (b) ``sum L = const + sum of ov(x) over the places x where pieces meet``, ov(x) the overlap of the windows
    before and behind x. Away from clipped borders ov is ``reach - S``, so there sum L counts pieces. (c) A place x so
    near the begin that the window behind it is clipped there (`x*S - P < first`) is no place to cut IN alone: without
    it, the piece behind it has the same window, and there is one piece less. So such places matter only where the
    largest piece of OUT is what cuts, and if its size t reaches beyond them at most one of them: each is tried (`z`),
    and likewise those before the end (`y`). (d) Cut in q groups and these in pieces, the fewest pieces are found by
    adding pieces to groups, the largest gain first: the gain of one more piece in a group never rises.
Assumes
    One range of outputs, or several (cores) of the same extent without places as in (c); windows that overlap or touch
    (reach >= S), or no clipping and sum L counted at the first loop; t = 1 or t at least the number of places of (c)
    with part of an overlap. Elsewhere `complete` is False: what is listed may miss an optimum, and a bound has to
    prove it (`hwmodels.nest.price.relaxed`).

`Cut` is a dimension as loops may cut it; `entry` makes the entries of chains that stand for its pieces. `two_loops`
cuts it in groups and these in pieces (argument: (d)).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np

from formulations.pareto import pareto
from formulations.tiling.entries import chain, ends_of, entry, even, every_chain, groups_of, sizes, trim
from formulations.tiling.vectors import every_number
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.pieces import Window
from hwmodels.nest.price.relaxed import part_window

#: Up to this extent all numbers of groups and pieces are listed, where windows lie apart.
_APART = 32
#: Cores may have up to so many outputs less than others.
_UNEVEN = 8


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

    @property
    def uneven(self) -> int:
        """How many outputs the shortest range of a core has less than the longest."""
        return self.extent - min(hi - lo for lo, hi in self.ranges)

    @property
    def apart(self) -> bool:
        """Whether all windows lie apart, whole: what a piece fetches is told by its size."""
        return self.skips and not self.clipped and len(self.ranges) == 1

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
    if cut.apart:
        return cut.depth == 1 or cut.extent <= _APART
    if cut.skips and (cut.clipped or (inner, outer) == (2, 1)):
        return False
    if len(cut.ranges) > 1:
        free = all(max(window.clipping(*r)) <= window.stride for r in cut.ranges)
        return free and len({hi - lo for lo, hi in cut.ranges}) == 1
    some = [int((cut.overlap[p] > 0).sum()) for p in cut.places if len(p)]
    return inner > outer or cut.levels == (1, 2) or max(some, default=0) <= 2


# ---- two loops -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Groups:
    """Cases of q groups between z and y, each cut in pieces; arrays (N,) of first, middle and last group."""

    most: tuple[Ints, Ints, Ints]
    """(first, middle, last). Outputs that a group may have."""
    once: tuple[Ints, Ints, Ints]
    """(first, middle, last). Outputs of a group's first piece (of the last group: of its last one)."""
    more: Ints
    """Ndarray. Outputs of every further piece, but for what is left of a group."""
    alone: Ints
    """Ndarray. Outputs of a piece that is all of [z, y): as many, or 0."""
    before: Ints
    between: Ints
    behind: Ints
    """`before`, `between`, `behind`: ndarray. Outputs up to z, between z and y, and from y on."""
    limit: Ints
    """Ndarray. The largest piece of OUT at the first loop, or a number that is no limit."""

    def fewest(self, q: Ints) -> Ints:
        """The fewest pieces in q groups; 0 if they do not suffice."""
        times = (np.ones_like(q), q - 2, np.ones_like(q))
        missing = self.between - sum(k * f for k, f in zip(times, self.once, strict=True))
        rest = [m - f for m, f in zip(self.most, self.once, strict=True)]
        whole = sum(k * (r // self.more) for k, r in zip(times, rest, strict=True))
        extra = np.clip(-(-missing // self.more), 0, whole)
        missing = missing - extra * self.more
        left = np.stack([r % self.more for r in rest])
        order = np.argsort(-left, axis=0, kind="stable")
        ordered, number = np.take_along_axis(left, order, 0), np.take_along_axis(np.stack(times), order, 0)
        for size, count in zip(ordered, number, strict=True):
            taken = np.clip(-(-missing // np.maximum(size, 1)), 0, np.where(size > 0, count, 0))
            extra, missing = extra + taken, missing - taken * size
        usable = (missing <= 0) & ((q == 2) | (self.once[1] > 0))
        return np.where(q == 1, self._in_one(), np.where(usable, q + extra, 0))

    def _in_one(self) -> Ints:
        """The fewest pieces in one group; 0 if it is too large."""
        rest = np.maximum(self.between - self.once[0] - self.once[2], 0)
        several = np.where((self.once[1] > 0) | (rest == 0), 2 + -(-rest // self.more), 0)
        number = np.where(self.alone == self.between, 1, several)
        return np.where((self.between <= self.limit) & (number <= self.between), number, 0)

    def enough(self, *, whole: bool) -> Ints:
        """The fewest groups, at least 2, that suffice; if `whole`, filled with whole pieces only."""
        size = [f + (m - f) // self.more * self.more if whole else m for f, m in zip(self.once, self.most, strict=True)]
        rest = np.maximum(self.between - size[0] - size[2], 0)
        return np.where(rest == 0, 2, 2 + np.where(size[1] > 0, -(-rest // np.maximum(size[1], 1)), self.between))

    def take(self, at: Ints) -> _Groups:
        """Some of the cases."""
        one, two = (tuple(x[at] for x in side) for side in (self.most, self.once))
        rest = (x[at] for x in (self.more, self.alone, self.before, self.between, self.behind, self.limit))
        return _Groups(one, two, *rest)  # type: ignore[arg-type]

    def made(self, k: int, q: int, number: int) -> list[list[int]]:
        """The groups of case k: q between z and y with `number` pieces in all, and those beyond."""
        limit = int(self.limit[k])
        middle = self._one(k, number) if q == 1 else self._several(k, q)
        return [*_alone(int(self.before[k]), limit), *middle, *_alone(int(self.behind[k]), limit)[::-1]]

    def _one(self, k: int, number: int) -> list[list[int]]:
        if number == 1:
            return [[int(self.between[k])]]
        sizes = [int(self.once[0][k]), *[int(self.more[k])] * (number - 2), int(self.once[2][k])]
        trim([sizes], sum(sizes) - int(self.between[k]))
        return [sizes]

    def _several(self, k: int, q: int) -> list[list[int]]:
        kinds = [0, *[1] * (q - 2), 2]
        more, made = int(self.more[k]), [[int(self.once[kind][k])] for kind in kinds]
        rest = [int(self.most[kind][k]) - group[0] for kind, group in zip(kinds, made, strict=True)]
        missing = int(self.between[k]) - sum(group[0] for group in made)
        for j, group in enumerate(made):
            while missing > 0 and rest[j] >= more:
                group.append(more)
                rest[j], missing = rest[j] - more, missing - more
        for j in sorted(range(q), key=lambda j: rest[j] if rest[j] < more else 0, reverse=True):
            if missing > 0 and 0 < rest[j] < more:
                made[j].append(rest[j])
                missing -= rest[j]
        made[-1].reverse()  # the last piece of all is the one whose window is clipped
        trim(made, -missing)
        return made


def two_loops(cut: Cut, inner: Ints, one_loop: Callable[[Cut, Ints], Ints]) -> Ints:
    """The chains of two loops that an optimum may need; `one_loop` lists those of one."""
    early, late = (_NONE, _NONE) if cut.levels[0] == 1 else cut.places
    rows = [_uncut(cut, inner, one_loop)]
    for z in (0, *early, *(-early[-1:])):
        for y in (cut.extent, *late, *(-late[:1])):
            if abs(z) < abs(y):
                rows.append(_grouped(cut, inner, int(z), int(y)))
    made = [groups for groups_of, _ in rows for groups in groups_of]
    if not made:
        return np.zeros((0, 2), np.int64)
    best = _best(cut, np.concatenate([features for _, features in rows], axis=1))
    return np.array([chain(made[k]) for k in best], np.int64)


def _best(cut: Cut, features: Ints) -> Ints:
    """The columns that no other can replace; where pieces skip rows only one with as many groups (row 2) can."""
    if not cut.skips:
        return pareto(features)
    classes = [np.flatnonzero(features[2] == q) for q in np.unique(features[2])]
    return np.sort(np.concatenate([at[pareto(features[:, at])] for at in classes]))


#: Groups of pieces, and their features (6, N).
Listed = tuple[list[list[list[int]]], Ints]


def _uncut(cut: Cut, inner: Ints, one_loop: Callable[[Cut, Ints], Ints]) -> Listed:
    """One group only: the first loop cuts nothing."""
    once = one_loop(replace(cut, levels=(1, 0)), inner) if cut.levels[0] == 2 else even(cut.extent, inner)
    return _judged(cut, inner, [[sizes(int(x), cut.extent)] for x in once[:, 0]])


def _judged(cut: Cut, inner: Ints, made: list[list[list[int]]]) -> Listed:
    """Groups of pieces and their features; those whose largest piece is not allowed are left out."""
    allowed = set(inner.tolist())
    kept = [groups for groups in made if max(max(g) for g in groups) in allowed]
    features = [_two_features(cut, groups) for groups in kept]
    return kept, np.array(features, np.int64).reshape(-1, 6).T


def _grouped(cut: Cut, inner: Ints, z: int, y: int) -> Listed:
    """Groups some of which end at z and begin at y; below 0: at the multiples of the limit next to these places."""
    groups, window, piece = _cases(cut, inner, z, y)
    fewest, plain = groups.enough(whole=False), groups.enough(whole=True)
    if cut.skips:
        plain = groups.between
    if (z, y) != (0, cut.extent):
        fewest = np.where(groups.between <= groups.limit, 1, fewest)
    plain = np.maximum(np.minimum(plain, groups.between), fewest)
    often = np.where(fewest <= groups.between, plain - fewest + 1, 0)
    at = np.repeat(np.arange(len(often)), often)
    q = fewest[at] + np.arange(len(at)) - np.repeat(np.cumsum(often) - often, often)
    number = groups.take(at).fewest(q)
    good = np.flatnonzero((number > 0) & (number <= groups.between[at]))
    at, q, number = at[good], q[good], number[good]
    if not len(at):
        return [], np.zeros((6, 0), np.int64)
    # first by what is allowed, then (`_judged`) by what the pieces really are
    beyond = (-(-groups.before // groups.limit) - (-groups.behind // groups.limit))[at]
    # overlaps at z and y differ from case to case where these do
    where = [groups.before[at], groups.behind[at]]
    best = _best(cut, np.stack([window[at], piece[at], q + beyond, number + beyond, *where, *(-x for x in where)]))
    return _judged(cut, inner, [groups.made(int(at[k]), int(q[k]), int(number[k])) for k in best])


def _cases(cut: Cut, inner: Ints, z: int, y: int) -> tuple[_Groups, Ints, Ints]:
    """All limits on groups and pieces, and beside them the limits on windows and on pieces of OUT."""
    extent, ws = cut.extent, cut.windows
    ends = cut.ends(ws)
    every = np.arange(1, extent + 1) if cut.levels[0] == 2 else inner
    w, t = (x.ravel() for x in np.meshgrid(np.arange(len(ws)), every, indexing="ij"))
    begin = np.full_like(t, z) if z >= 0 else -z // t * t
    end = np.full_like(t, y) if y > 0 else extent - (extent + y) // t * t
    between = end - begin
    place = np.clip(begin, 0, extent - 1)
    ending = ends[w] >= end[:, None]
    last = np.where(ending.any(axis=1), end - np.argmax(ending, axis=1), 0)
    sizes = (
        np.minimum(ends[w, place] - begin, between),
        np.maximum((ws - cut.window.reach) // cut.window.stride + 1, 0)[w],
        np.minimum(last, between),
    )
    alone = np.where(ends[w, place] >= end, between, 0)
    once = (np.minimum(sizes[0], t), np.minimum(sizes[1], t), np.minimum(sizes[2], t))
    if cut.levels[0] == 1:
        most, more, limit = sizes, t, np.full_like(t, extent + 1)
        keep = t <= np.maximum(np.maximum(*sizes[:2]), sizes[2])
    else:
        free = sizes[1] > 0
        most = (np.where(free, t, once[0]), np.where(free, t, once[1]), np.where(free, t, once[2]))
        more, limit = np.maximum(sizes[1], 1), t
        keep = t >= sizes[1]
    groups = _Groups(most, once, more, alone, begin, between, extent - end, limit)
    at = np.flatnonzero(keep & (between > 0) & (once[0] > 0) & (once[2] > 0))
    return groups.take(at), ws[w[at]], t[at]


def _alone(size: int, t: int) -> list[list[int]]:
    """`size` outputs beyond z or y as groups of one piece, as large as allowed but for the first."""
    number = -(-size // t)
    return [[size - (number - 1) * t], *[[t]] * (number - 1)] if number else []


def _two_features(cut: Cut, groups: list[list[int]]) -> list[int]:
    """The largest window and piece of OUT, groups, pieces, overlaps where groups meet and where pieces do."""
    ends = [*accumulate(size for group in groups for size in group)]
    outer = [*accumulate(map(sum, groups))]
    of_in, of_out = (outer, ends) if cut.levels[0] == 1 else (ends, outer)
    window = int(cut.length[[0, *of_in[:-1]], of_in].max())
    piece = max(b - a for a, b in zip((0, *of_out[:-1]), of_out, strict=True))
    again = int(cut.overlap[outer].sum()), int(cut.overlap[of_in].sum())
    return [window, piece, len(groups), len(ends), *again]


__all__ = ["Cut", "complete", "every_cut", "free_chains", "whole_windows"]

_NONE = np.zeros(0, np.int64)


# ---- one loop ------------------------------------------------------------------------------------------------


def _one_loop(cut: Cut, inner: Ints) -> Ints:
    """Chains of one loop outside the Hold of IN, and of OUT if that depends on it."""
    extent, every = cut.extent, len(inner) == cut.extent
    if cut.skips:
        return _balanced(extent, inner)
    ws = cut.windows
    ends = cut.ends(ws)
    longest = (ends - np.arange(extent)).max(axis=1)
    sizes = inner if cut.levels[1] or not every else inner[-1:]
    w, t = (x.ravel() for x in np.meshgrid(np.arange(len(ws)), sizes, indexing="ij"))
    # a window that is no limit beside t, or a t that is none beside the window, is listed once
    shortest = np.maximum((ws - cut.window.reach) // cut.window.stride + 1, 0)
    keep = (t >= shortest[w]) & (
        (t <= longest[w]) | (t == sizes[np.minimum(np.searchsorted(sizes, longest[w]), len(sizes) - 1)])
    )
    w, t = w[keep], t[keep]
    early, late = cut.places if cut.levels[1] else (_NONE, _NONE)
    cases = [(w, t, np.full_like(w, z), np.full_like(w, y)) for z in (0, *early) for y in (extent, *late) if z < y]
    w, t, z, y = (np.concatenate(x) for x in zip(*cases, strict=True))
    made, fits = _filled(cut, ends, w, t, z, y)
    made = made[fits]
    features = _features(cut, made)
    allowed = np.isin(features[1], inner)
    made, features = made[allowed], features[:, allowed]
    best = pareto(features) if len(made) else _NONE
    return np.array([[entry(ends_of(row))] for row in made[best]], np.int64).reshape(-1, 1)


def _filled(cut: Cut, ends: Ints, w: Ints, t: Ints, z: Ints, y: Ints) -> tuple[Ints, np.ndarray]:
    """Ends of the pieces (P, N) under limits w (index of `ends`) and t, that meet at z and y; which cases have one."""
    extent = cut.extent
    at = np.zeros(len(w), np.int64)
    first = np.where(z > 0, z - (-(-z // t) - 1) * t, 0)  # the shorter piece first: those before z end far from it
    steps = []
    while (at < extent).any():
        open_ = at < extent
        place = np.minimum(at, extent - 1)
        bound = np.where(at < z, z, np.where(at < y, y, extent))
        reach = np.minimum(np.minimum(ends[w, place], at + t), bound)
        reach = np.where((at == 0) & (z > 0), np.minimum(first, ends[w, 0]), reach)
        stuck = open_ & (reach <= at)
        at = np.where(open_, np.where(stuck, 2 * extent + 1, reach), at)
        steps.append(np.where(open_, at, extent))
        if len(steps) > extent:
            break
    made = np.stack(steps, axis=1) if steps else np.zeros((len(w), 0), np.int64)
    return made, (made <= extent).all(axis=1) & (at == extent)


def _features(cut: Cut, made: Ints) -> Ints:
    """Largest window, largest piece, number of pieces, sum of overlaps; shape (4, P)."""
    begin = np.concatenate([np.zeros((len(made), 1), np.int64), made[:, :-1]], axis=1)
    size = made - begin
    here = np.minimum(begin, cut.extent - 1)
    return np.stack([
        np.where(size > 0, cut.length[here, made], 0).max(axis=1), size.max(axis=1), (size > 0).sum(axis=1),
        cut.overlap[made].sum(axis=1),
    ])  # fmt: skip


def _balanced(extent: int, inner: Ints) -> Ints:
    """For every number of pieces some of equal size: where more pieces skip more rows."""
    rows = []
    for number in range(1, extent + 1):
        size = -(-extent // number)
        if size in inner:
            rows.append(entry(tuple(-(-extent * k // number) for k in range(1, number + 1))))
    return np.array(rows, np.int64).reshape(-1, 1)


@lru_cache(maxsize=512)
def _listed(cut: Cut, inner: bytes) -> Ints:
    sizes = np.frombuffer(inner, np.int64)
    if not len(sizes):
        return np.zeros((0, cut.depth), np.int64)
    if cut.levels[0] == 0:
        return even(cut.extent, sizes)
    if cut.depth == 2 and cut.apart:
        return every_number(cut.extent, sizes)
    return _one_loop(cut, sizes) if cut.depth == 1 else two_loops(cut, sizes, _one_loop)


def free_chains(cut: Cut, inner: Ints) -> Ints:
    """The chains (T, depth) that an optimum may need: steps, or lists of places (`hwmodels.nest.price.pieces`).

    Parameters
    ----------
    inner : ndarray of int64, ascending
        What the largest piece of all may be.
    """
    return _listed(_shorter(cut), inner.tobytes())


def _shorter(cut: Cut) -> Cut:
    """A cut with the same chains, the same for as many windows as can be told.

    Where sum L does not count, only how windows compare matters. With k taps less, of a map that is as much smaller,
    every window is shorter by ``k*dilation``, as long as none is shorter than that: so they compare as before.
    """
    window = cut.window
    if cut.counted:
        return cut
    least = int(cut.length[np.arange(cut.extent), np.arange(1, cut.extent + 1)].min())
    taps = max(1, window.taps - least // window.dilation)
    return replace(cut, window=part_window(window, taps))


def whole_windows(cut: Cut, inner: Ints) -> Ints:
    """Chains with a piece that is not all outputs but has all rows of the map in its window.

    Whole tiles of a map are fewer runs of addresses, which is worth time.
    """
    made = []
    for begin, end in zip(*np.nonzero(np.triu(cut.length == cut.window.size, 1)), strict=True):
        sizes = [int(x) for x in (begin, end - begin, cut.extent - end) if x]
        if len(sizes) > 1 and max(sizes) in inner:
            made.append(sizes)
    ends = [tuple(int(x) for x in np.cumsum(sizes)) for sizes in made]
    if cut.depth == 1:
        return np.array([[entry(e)] for e in ends], np.int64).reshape(-1, 1)
    rows = [(entry(e), entry(e)) for e in ends]
    if cut.levels[0] == 1:
        rows += [(entry(e), int(x)) for e in ends for x in even(cut.extent, inner)[:, 0]]
    return np.array(rows, np.int64).reshape(-1, 2)


def apart_ends(cut: Cut, inner: Ints, most: int) -> Ints:
    """Chains whose last outputs, 1 to `most` of them, are pieces of their own, behind free pieces of all others."""
    rows = []
    for behind in range(1, most + 1):
        extent = cut.extent - behind
        ranges = tuple((lo, min(hi, lo + extent)) for lo, hi in cut.ranges)
        for row in free_chains(replace(cut, ranges=ranges), inner[inner <= extent]):
            groups = groups_of(extent, row)
            for size in range(1, behind + 1):
                tail = [*_alone(behind, size)[0], *[size] * (-(-behind // size) - 1)]
                if max(max(map(max, groups)), *tail) in inner:
                    rows += [chain(way)[-cut.depth :] for way in _ended(groups, tail, cut.depth)]
    return np.array(rows, np.int64).reshape(-1, cut.depth)


def _ended(groups: list[list[int]], tail: list[int], depth: int) -> Iterator[list[list[int]]]:
    """Yield groups with the pieces of a tail in the last one, in a new one, or each in one of its own."""
    for joined in range(len(tail) + 1) if depth == 2 else (len(tail),):
        begun = [*groups[:-1], [*groups[-1], *tail[:joined]]]
        rest = tail[joined:]
        yield [*begun, *([one] for one in rest)]
        if len(rest) > 1:
            yield [*begun, rest]


def sure(cut: Cut, *, sliding: bool) -> bool:
    """Whether `timed_chains` lists a way nowhere above any way to cut, in all that serial time sees of IN and OUT.

    That is the trips of both loops, what IN fetches, in how many windows, how many of these do not hold the whole map,
    the largest window, and the largest piece of OUT, on every core. So it is with nothing on chip, where every output
    has a row of the map and at most one of some pieces holds the whole map; on several cores if no window slides to the
    end of the map, and none is clipped by more than a stride where cores have unequal ranges.
    """
    window, ends = cut.window, [cut.window.clipping(*one) for one in cut.ranges]
    if window.first or not cut.counted or (cut.skips and not cut.apart):
        return False
    if window.pad >= window.reach or max(behind for _, behind in ends) >= window.reach:
        return False
    if cut.uneven:
        close = cut.uneven <= _UNEVEN and max(max(one) for one in ends) <= window.stride
        if sliding or not close or window.reach < window.stride:
            return False
    elif not complete(cut) or (sliding and len(ends) > 1 and any(behind >= window.stride for _, behind in ends)):
        return False
    begin, end = np.nonzero(np.triu(cut.length == window.size, 1))
    return 2 * int((end - begin).min(initial=cut.extent)) > cut.extent


def timed_chains(cut: Cut, inner: Ints, *, sliding: bool) -> Ints:
    """The chains that the least time may need (`sure`).

    Beside `free_chains` and whole maps these have last pieces of their own: where IN slides such may fetch nothing, as
    the map has ended before, which spares a call (worth a piece where OUT is cut by the same loop); a core with a
    shorter range has no such pieces.
    """
    lo, hi = cut.ranges[0]
    behind = cut.uneven
    if sliding and len(cut.ranges) == 1 and cut.levels == (1, 1):
        ends = np.arange(lo, hi - 1) * cut.window.stride - cut.window.pad + cut.window.reach
        behind = int((ends >= cut.window.size).sum())
    return np.concatenate([free_chains(cut, inner), whole_windows(cut, inner), apart_ends(cut, inner, behind)])


def every_cut(cut: Cut, inner: Ints) -> Ints:
    """All chains there are: every way to cut in pieces, and to gather these in groups (small extents only)."""
    return every_chain(cut.extent, cut.depth, inner)
