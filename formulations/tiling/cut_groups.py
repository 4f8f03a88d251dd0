"""Two loops over one dimension: groups, and the pieces that each is cut in (argument: `cuts`, (d))."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from formulations.pareto import pareto
from formulations.tiling.cut_axis import Cut, chain, even, sizes
from hwmodels.nest.bilinear import Ints

_NONE = np.zeros(0, np.int64)


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
        _trim([sizes], sum(sizes) - int(self.between[k]))
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
        _trim(made, -missing)
        return made


def _trim(groups: list[list[int]], surplus: int) -> None:
    """Take `surplus` outputs away, leaving at least one in every piece, from the last but first pieces on."""
    for group in reversed(groups):
        for j in range(len(group) - 1, -1, -1):
            taken = min(surplus, group[j] - 1)
            group[j], surplus = group[j] - taken, surplus - taken


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
