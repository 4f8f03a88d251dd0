"""Candidate chains of equal steps: those that the loops over one dimension may have, outermost first.

A dimension with L loops (L <= 2) takes a chain t_1 >= .. >= t_L of steps that make n_1 <= .. <= n_L pieces; a loop
whose step cuts nothing is left out of the nest. `grid` lists all chains, the others those that an optimum needs.

Claim (`undominated`)
    A chain may be dropped for another one with the same loops cut that is nowhere above it in t_1, t_2, n_1, n_2 and,
    on MAC arrays, in ``sum ceil(piece/lanes)``.
Proof
    Every factor of every table (`hwmodels.nest.price.core`) is one of these, or does not fall as they grow: tiles grow
    with the steps; visits, calls and segments with the pieces; the sum of unclipped input extents is ``E*S + n*(reach -
    S)``. Three exceptions: (1) reach < S, where more pieces skip more rows (also below a cut kernel): `skipping`
    keeps every number of pieces; (2) padding: pieces that begin or end in it are clipped. The first and the last piece
    of every chain are clipped alike, and where the padding is at most the stride no others are: `Edge` says which
    pieces may be clipped more, and chains with such pieces are kept. The largest tile of two or three pieces may be a
    clipped one; if the padding before exceeds that behind or the stride, such chains are compared by their true largest
    tiles (with four pieces some t_2 lies inside); (3) bursts, ``sum ceil(piece*inner/burst)``: where these are priced,
    the caller takes `windowed_chains`.
    Chains with fewer pieces of the first loop need longer steps, so classes of n_1 are compared on their own.

Claim (`cheapest`)
    Where only bytes and capacities count, the chains (t, t) and (t, smallest) of b, g, m and n suffice.
Proof
    Two of the operands depend on the dimension, X held outside the second loop and Y inside; the third, Z, is moved
    once for each piece outside its Hold. If Z is held innermost, n_2 counts and n_1 does not: (t_2, t_2) has the
    smallest n_2 and no larger tile. If Z is held between, n_1 counts and n_2 does not: the smallest t_2 is best. If Z
    is held outermost, nothing counts. Cut reductions change the bytes of partial sums, so the uncut chain stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from formulations.pareto import pareto
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.pieces import Window, windows


@dataclass(frozen=True)
class Sizes:
    """The steps that the loops over one dimension may take, ascending: all but the last loop, and the last one."""

    outer: Ints
    inner: Ints

    @classmethod
    def of(cls, sizes: Ints) -> Sizes:
        """The same steps for all loops."""
        return cls(sizes, sizes)


def divisors(extent: int) -> Ints:
    """All divisors of `extent`, ascending."""
    sizes = np.arange(1, extent + 1, dtype=np.int64)
    result: Ints = sizes[extent % sizes == 0]
    return result


def even_steps(extents: tuple[int, ...], sizes: Ints) -> Ints:
    """Of `sizes`, ascending, the smallest step for every number of pieces (on every core)."""
    first = np.zeros(len(sizes), np.bool_)
    first[:1] = True
    for extent in extents:
        pieces = -(-extent // sizes)
        first[1:] |= pieces[1:] != pieces[:-1]
    result: Ints = sizes[first]
    return result


def grid(sizes: Ints, inner: Ints, depth: int) -> Ints:
    """All chains of `depth` steps (T, depth), the last one from `inner`, the others from `sizes`; never growing."""
    if depth == 1:
        return inner[:, None]
    outer = np.repeat(sizes, len(inner))
    last = np.tile(inner, len(sizes))
    keep = last <= outer
    return np.stack([outer[keep], last[keep]], axis=1)


def cheapest(extents: tuple[int, ...], sizes: Ints, inner: Ints, depth: int) -> Ints:
    """The chains that suffice where only bytes and capacities count (second claim above)."""
    even = even_steps(extents, inner)
    if depth == 1 or not len(inner):
        return even[:, None]
    outer = even_steps(extents, sizes[sizes > inner[0]])
    same = np.stack([even, even], axis=1)
    return np.concatenate([same, np.stack([outer, np.full_like(outer, inner[0])], axis=1)])


def pairs(sizes: Sizes, depth: int) -> int:
    """Number of chains of allowed steps."""
    if depth < 2:
        return len(sizes.inner)
    return int((len(sizes.outer) - np.searchsorted(sizes.outer, sizes.inner)).sum())


def even_pairs(extents: tuple[int, ...], sizes: Sizes, depth: int) -> Ints:
    """Chains of even steps only."""
    return grid(even_steps(extents, sizes.outer), even_steps(extents, sizes.inner), depth)


def windowed_chains(extents: tuple[int, ...], sizes: Sizes, depth: int) -> Ints:
    """Where bursts are priced: any step of one cut, even steps of two."""
    if depth == 1:
        return sizes.inner[:, None]
    same = np.stack([sizes.inner, sizes.inner], axis=1)
    late = np.stack([np.full_like(sizes.inner, sizes.outer[-1]), sizes.inner], axis=1)
    return np.unique(np.concatenate([same, late, even_pairs(extents, sizes, depth)]), axis=0)


def rounded(extents: tuple[int, ...], sizes: Ints, lanes: int) -> Ints:
    """Even steps and multiples of `lanes`."""
    lane = sizes[sizes % lanes == 0] if lanes > 1 else sizes[:0]
    return np.union1d(even_steps(extents, sizes), lane)


@dataclass(frozen=True)
class Edge:
    """Where padding can matter (case 2): all in steps of the dimension."""

    before: int = 0
    after: int = 0
    """`before`, `after`: pieces but the first of at most `before`, and last pieces of at most `after`, may be clipped.
    """
    windows: tuple[Window, ...] = ()
    """If the largest of few tiles may be clipped: of the kernel and of the parts that it may be cut in."""
    ranges: tuple[tuple[int, int], ...] = ()
    """The cores' ranges of the dimension, for these."""
    lopsided: bool = False
    """Whether the padding before exceeds that behind by more than the stride: then two tiles count as few, however they
    are cut again.
    """


class _Grid:
    """All pairs of steps of two loops, and the counts of their pieces."""

    def __init__(self, sizes: Ints, inner: Ints) -> None:
        self.t1, self.t2 = sizes[:, None], inner[None, :]
        self.valid = self.t2 <= self.t1

    def pieces(self, extent: int) -> tuple[Ints, Ints]:
        """The numbers n_1 (T, 1) and n_2 (T, U) of pieces."""
        whole, rest = extent // self.t1, extent % self.t1
        n2: Ints = whole * -(-self.t1 // self.t2) + -(-rest // self.t2)
        return whole + (rest > 0), n2

    def lanes(self, extent: int, lanes: int) -> Ints:
        """``sum ceil(piece/lanes)`` over the innermost pieces (T, U)."""
        whole, rest = extent // self.t1, extent % self.t1
        tile = -(-self.t2 // lanes)
        used: Ints = whole * (self.t1 // self.t2 * tile + -(-(self.t1 % self.t2) // lanes))
        used += rest // self.t2 * tile + -(-(rest % self.t2) // lanes)
        return used

    def clipped(self, extent: int, edge: Edge) -> NDArray[np.bool_]:
        """Which chains have pieces that may be clipped though they are neither first nor last, or short last ones."""
        last1 = np.where(extent % self.t1 > 0, extent % self.t1, self.t1)
        last2 = np.where(last1 % self.t2 > 0, last1 % self.t2, self.t2)
        result: NDArray[np.bool_] = (self.t2 <= edge.before) | (np.minimum(last1, last2) <= edge.after)
        return result & self.valid


@lru_cache(maxsize=1024)
def _undominated(extents: tuple[int, ...], sizes: bytes, inner: bytes, lanes: int, skipping: bool, edge: Edge) -> Ints:
    grid = _Grid(np.frombuffer(sizes, np.int64), np.frombuffer(inner, np.int64))
    pieces = [grid.pieces(extent) for extent in extents]
    used = [grid.lanes(e, lanes) for e in extents] if lanes > 1 else []
    kept = _improving(grid.valid, np.sum([n2 for _, n2 in pieces], axis=0), used)
    row, column = np.nonzero(kept)
    t1, t2 = grid.t1[row, 0], grid.t2[0, column]
    n1, n2 = (np.stack(n) for n in zip(*((a[row, 0], b[row, column]) for a, b in pieces), strict=True))
    features = np.stack([t1, t2, *n2, *(u[row, column] for u in used)])
    chosen = _by_class(features, np.concatenate([n1, n2 if skipping else n2 > n1]))
    chains = [np.stack([t1, t2], axis=1)[chosen]]
    if edge != Edge():
        forced = np.logical_or.reduce([grid.clipped(e, edge) for e in extents])
        row, column = np.nonzero(forced)
        chains.append(np.stack([grid.t1[row, 0], grid.t2[0, column]], axis=1))
    if edge.windows:
        chains.append(_few_pieces(grid, pieces, edge))
    result: Ints = np.unique(np.concatenate(chains), axis=0)
    return result


def _improving(valid: NDArray[np.bool_], number: Ints, used: list[Ints]) -> NDArray[np.bool_]:
    """Along a row of equal t_1: whether t_2 makes fewer pieces, or as many with less rounding, than all smaller steps.

    Pieces never rise with t_2, so the smaller steps that make no more pieces make as many: one comparison of
    (pieces, rounding) with the least so far suffices.
    """
    kept = valid.copy()
    better = np.zeros_like(valid[:, 1:])
    for rounding in used or [np.zeros_like(number)]:
        both = np.where(valid, number * (int(rounding.max(initial=0)) + 1) + rounding, 2**60)
        better |= both[:, 1:] < np.minimum.accumulate(both, axis=1)[:, :-1]
    kept[:, 1:] &= better
    return kept


def _by_class(features: Ints, classes: Ints) -> Ints:
    """The undominated columns within every class of equal columns of `classes`."""
    order = np.lexsort(classes[::-1])
    ordered = classes[:, order]
    edges = np.flatnonzero((ordered[:, 1:] != ordered[:, :-1]).any(axis=0)) + 1
    return np.concatenate([part[pareto(features[:, part])] for part in np.split(order, edges)])


def _few_pieces(grid: _Grid, pieces: list[tuple[Ints, Ints]], edge: Edge) -> Ints:
    """Chains of few pieces on some core, undominated in steps, pieces and true largest tiles."""
    few = np.logical_or.reduce([(n2 <= 3) | ((n1 <= 2) & edge.lopsided) for n1, n2 in pieces])
    row, column = np.nonzero(grid.valid & few)
    chains = np.stack([grid.t1[row, 0], grid.t2[0, column]], axis=1)
    n1, n2 = (np.stack(n) for n in zip(*((a[row, 0], b[row, column]) for a, b in pieces), strict=True))
    whole = np.zeros((1, 0), np.int64)
    tiles = [
        windows(lo, hi, np.minimum(chains[:, :level], hi - lo), whole, window).largest
        for window in edge.windows
        for lo, hi in edge.ranges
        for level in (1, 2)
    ]
    return chains[_by_class(np.stack([*chains.T, *n2, *tiles]), np.concatenate([n1, n2 > n1]))]


def undominated(
    extents: tuple[int, ...],
    sizes: Ints,
    inner: Ints,
    depth: int,
    *,
    lanes: int = 0,
    skipping: bool = False,
    edge: Edge = Edge(),
) -> Ints:
    """The chains that the first claim above leaves, shape (T, depth).

    Parameters
    ----------
    extents : tuple of int
        Of the dimension on every core.
    sizes, inner : ndarray of int64, ascending
        The steps allowed to the first and to the last loop.
    lanes : int
        Of the MAC array along this dimension; 0 if there are none.
    skipping : bool
        Whether more pieces can move less (case 1).
    edge : Edge
        Where padding can matter (case 2).
    """
    if not len(inner) or not len(sizes):
        return np.zeros((0, depth), np.int64)
    if depth == 1:
        whole = np.array([max(extents)], np.int64)
        return _undominated(extents, whole.tobytes(), inner.tobytes(), lanes, skipping, edge)[:, 1:]
    return _undominated(extents, sizes.tobytes(), inner.tobytes(), lanes, skipping, edge)
