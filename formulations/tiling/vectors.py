"""Vectors of a dimension without windows: what serial time sees of every way to cut it, and ways that have them.

Sets
    a loop cuts E in n pieces of at most t; a second one cuts q groups of at most t1 in P pieces of at most t2; the
    MAC array takes ``sum ceil(piece/l)`` = C rounds of its l lanes
Vectors
    (n, t, C) of one loop, (q, t1, P, t2, C) of two: trips, tiles and rounds are all that tables of calls, runs, bytes,
    memory and compute multiply, and none of them falls as they grow. So the vectors that no way to cut is below give
    lower bounds for all of them, and a way that has the vector of a bound is an optimum.
Lemma 1 (lanes)
    Let t = a*l + b, 0 <= b < l. The least C of n pieces is ``max(n, ceil(E/l))`` if ``n*a*l >= E``, else
    ``max(n, n*a + ceil((E - n*a*l)/b))``.
    Proof. A piece takes a round at least, and l outputs a round at most. A piece of at most t holds at most
    ``min(c*l, a*l + b)`` outputs in c rounds, and a + 1 rounds are what it may use. So in C rounds n pieces hold at
    most ``C*l`` if ``C <= n*a``, else ``n*a*l + (C - n*a)*b``. Pieces of t, of a*l and one rest attain it.
Lemma 2 (two loops)
    Let u = floor(t1/t2). Then ``P >= max(q, ceil(E/t2))`` if ``q*u*t2 >= E``, else ``P >= q*u + ceil((E -
    q*u*t2)/(t1 - u*t2))``: Lemma 1 with lanes t2, groups for pieces and pieces for rounds. C is at least that of P
    pieces of t2, and that of q pieces of t1, as ``ceil(x/l) + ceil(y/l) >= ceil((x + y)/l)``.
More pieces than the fewest matter only until they cost no rounds: `rows` stops there.

Nearly all vectors are attained (`attained` looks for a way); of one that is not, the bound stays and no plan meets it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from formulations.pareto import pareto
from formulations.tiling.entries import chain, entry, trim
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.pieces import rounds
from hwmodels.nest.price.relaxed import packed, unpacked

#: Ways that are tried to attain a vector.
_TRIES = 64


def fewest_pieces(extent: int, groups: Ints, most: Ints, piece: Ints) -> Ints:
    """The fewest pieces of at most `piece` in so many groups of at most `most` (Lemma 2)."""
    fits = most // piece * piece
    short = extent - groups * fits
    more = groups * (fits // piece) + -(-short // np.maximum(most - fits, 1))
    least: Ints = np.where(short <= 0, np.maximum(groups, -(-extent // piece)), more)
    return least


def vectors(extent: int, lanes: int, classes: Ints, most: tuple[int, ...] = (), *, every: bool = False) -> Ints:
    """The chains of vectors (T, L), as `packed` entries, of classes (K, L) of largest pieces, at most `most` by loop.

    A class of a loop are all sizes that make as few pieces as its entry does; lanes are 1 where there are none. With
    `every` also those of larger pieces than others have: for prices that fall with the size of a piece.
    """
    if not len(classes):
        return classes
    made = _two if classes.shape[1] == 2 else _one
    limits = most or (extent,) * classes.shape[1]
    return made(extent, lanes, np.ascontiguousarray(np.unique(classes, axis=0)).tobytes(), limits, every)


def _least(found: Ints, sizes: list[int], every: bool) -> Ints:
    """The vectors that no other one is below; with `every` of those with the same `sizes` (rows) only."""
    if not every:
        return found[:, pareto(found)]
    order = np.lexsort(found[sizes])
    found = found[:, order]
    edges = np.flatnonzero((found[sizes][:, 1:] != found[sizes][:, :-1]).any(axis=0)) + 1
    parts = np.split(np.arange(found.shape[1]), edges)
    return found[:, np.concatenate([at[pareto(found[:, at])] for at in parts])]


def _sizes(extent: int, entry: int) -> Ints:
    """The sizes of a class."""
    number = -(-extent // entry)
    return np.arange(entry, (extent if number == 1 else -(-extent // (number - 1)) - 1) + 1, dtype=np.int64)


@lru_cache(maxsize=512)
def _one(extent: int, lanes: int, classes: bytes, limits: tuple[int, ...], every: bool) -> Ints:
    most = np.unique(np.concatenate([_sizes(extent, int(x)) for x in np.frombuffer(classes, np.int64)]))
    most = most[most <= limits[0]]
    least = -(-extent // most)
    number, at = _ranges(least, np.maximum(least, _enough(extent, most, lanes)))
    most = most[at]
    found = _least(np.stack([number, most, rounds(extent, number, most, lanes)]), [1], every)
    return packed(*found)[:, None]


@lru_cache(maxsize=512)
def _two(extent: int, lanes: int, classes: bytes, limits: tuple[int, ...], every: bool) -> Ints:
    pairs = np.concatenate([
        np.stack([x.ravel() for x in np.meshgrid(_sizes(extent, int(a)), _sizes(extent, int(b)), indexing="ij")])
        for a, b in np.frombuffer(classes, np.int64).reshape(-1, 2)
    ], axis=1)  # fmt: skip
    t1, t2 = pairs[:, (pairs[1] <= pairs[0]) & (pairs[0] <= limits[0]) & (pairs[1] <= limits[1])]
    fits = t1 // t2 * t2
    fewest = -(-extent // t1)
    most = np.maximum(-(-extent // fits), _enough(extent, t1, lanes))
    q, at = _ranges(fewest, np.maximum(fewest, most))
    t1, t2 = t1[at], t2[at]
    least, outer = fewest_pieces(extent, q, t1, t2), rounds(extent, q, t1, lanes)
    if not every:  # larger groups matter only where they need fewer pieces, or rounds
        order = np.lexsort((t1, q, t2))
        same = np.stack([x[order] for x in (t2, q, least, outer)])
        order = order[(np.diff(same, axis=1, prepend=-1) != 0).any(axis=0)]
        q, t1, t2, least, outer = (x[order] for x in (q, t1, t2, least, outer))
    number, at = _ranges(least, np.maximum(least, _enough(extent, t2, lanes)))
    q, t1, t2 = q[at], t1[at], t2[at]
    used = np.maximum(rounds(extent, number, t2, lanes), outer[at])
    found = _least(np.stack([q, t1, number, t2, used]), [1, 3], every)
    return np.stack([packed(found[0], found[1], found[4]), packed(*found[2:])], axis=1)


def _enough(extent: int, most: Ints, lanes: int) -> Ints:
    """Pieces beyond which more of them save no round: those of whole rounds suffice."""
    whole = most // lanes * lanes
    return np.where(whole > 0, -(-extent // np.maximum(whole, 1)), 0)


def _ranges(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """All integers from `first` to `last`, and of which of them each is."""
    often = last - first + 1
    at = np.repeat(np.arange(len(often)), often)
    return first[at] + np.arange(len(at)) - np.repeat(np.cumsum(often) - often, often), at


# ---- ways to cut -----------------------------------------------------------------------------------------------------


def attained(extent: int, lanes: int, vector: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the entries of a chain with at most this vector of `packed` entries; None if none of some ways has it."""
    levels = list(zip(*(x.tolist() for x in unpacked(np.array(vector))), strict=True))
    number, most, used = levels[-1]
    for pieces in _pieces(extent, lanes, number, most, used):
        if len(levels) == 1:
            ends = np.cumsum(pieces)
            return (entry(tuple(int(x) for x in ends)),)
        groups = _gathered(pieces, *levels[0][:2])
        if groups is not None:
            return chain(groups)
    return None


def _pieces(extent: int, lanes: int, number: int, most: int, used: int) -> Iterator[list[int]]:
    """Yield so many pieces in at most `used` rounds: some of `most`, the others of whole rounds or alike."""
    whole = max(1, most // lanes * lanes)
    for full in range(min(number, extent // most), max(-1, min(number, extent // most) - _TRIES), -1):
        left, rest = extent - full * most, number - full
        if rest == 0 and left == 0:
            yield [most] * full
        if rest <= 0 or not rest <= left <= rest * most:
            continue
        for size in dict.fromkeys((whole, -(-left // rest))):
            pieces = _filled(left, rest, min(size, most))
            if pieces and sum(-(-x // lanes) for x in pieces) + full * -(-most // lanes) <= used:
                yield [*[most] * full, *pieces]


def _filled(left: int, number: int, size: int) -> list[int]:
    """So many pieces of `size`, of which the last are as small as their sum asks for; none if that is more."""
    if left > number * size:
        return []
    pieces = [size] * number
    surplus = number * size - left
    for j in range(number - 1, -1, -1):
        taken = min(surplus, size - 1)
        pieces[j], surplus = pieces[j] - taken, surplus - taken
    return pieces


def _gathered(pieces: list[int], number: int, most: int) -> list[list[int]] | None:
    """So many groups of at most `most`, by first fit, largest pieces first; None if they do not fit so."""
    if len(pieces) < number:
        return None
    groups: list[list[int]] = [[] for _ in range(number)]
    room = [most] * number
    for piece in sorted(pieces, reverse=True):
        at = next((k for k in range(number) if room[k] >= piece), None)
        if at is None:
            return None
        groups[at].append(piece)
        room[at] -= piece
    for group in groups:  # more groups than are needed: each takes a piece of another one
        if not group:
            group.append(next(other for other in groups if len(other) > 1).pop())
    return sorted(groups, key=sum, reverse=True)


def every_number(extent: int, inner: Ints) -> Ints:
    """Chains of two loops with every number of groups and pieces: where more of either skip more rows.

    Of one number of both, those whose largest groups and pieces no others are below.
    """
    every = np.arange(1, extent + 1, dtype=np.int64)
    q, t1, t2 = (x.ravel() for x in np.meshgrid(every, every, inner, indexing="ij"))
    least = np.where((t2 <= t1) & (q * t1 >= extent), fewest_pieces(extent, q, t1, t2), extent + 1)
    rows = []
    for groups in every:
        for pieces in every[groups - 1 :]:
            at = np.flatnonzero((q == groups) & (least <= pieces))
            at = at[pareto(np.stack([t1[at], t2[at]]))] if len(at) else at
            made = [_balanced(extent, int(groups), int(pieces), int(t1[k]), int(t2[k])) for k in at]
            rows += [chain(one) for one in made if max(map(max, one)) in inner]
    return np.array(rows, np.int64).reshape(-1, 2)


def _balanced(extent: int, groups: int, pieces: int, most: int, piece: int) -> list[list[int]]:
    """So many groups of at most `most`, and pieces of at most `piece`, which are enough (`vectors`, Lemma 2).

    A piece more in a group never makes room for more than the one before did: so groups have as many each.
    """
    made = [[piece] * ((pieces + k) // groups) for k in range(groups - 1, -1, -1)]
    for group in made:
        trim([group], max(0, sum(group) - most))
    trim(made, sum(map(sum, made)) - extent)
    return made
