"""Chains of steps of one dimension, as many as an order of Holds has places to cut it.

A chain t_1 >= .. >= t_v of integers cuts a range of E in n_1 <= .. <= n_v pieces, the last one of every cut possibly
smaller (docs/nest.md). `steps` lists those that an optimum needs.

Claim
    A chain may be dropped for one that is nowhere above it in t_1 .. t_v and n_1 .. n_v.
Proof
    Every factor of a price (`formulations.levels.axes`) is a tile, which grows with its t, or does not fall as the n
    grow: visits and calls are n, rounds of lanes are compared by themselves, and the sum of input windows is
    ``E*S + n*(reach - S)`` where they overlap. Where they do not (reach < S), or padding clips them, these sums and the
    largest windows are compared, too: of 8 rows, 5 and then 3 make 3, 2, 3, and with padding of 1 no window of three
    taps has more than 4 rows; 3 alone makes 3, 3, 2, and one of 5. (Of more than some 35,000 chains, as four loops over
    56 rows, such windows are counted as those of their steps: what is lost is a row of a tile.)

Where a dimension has too many chains to list (`MANY`), steps are taken from `few`. For a bound, `relaxed` has cells
l_k <= t_k <= u_k that cover all chains: tiles are at least those of l_k, pieces at least ``ceil(E / u_k)``, whatever
the cuts are.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from formulations.pareto import pareto
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.pieces import Window, cut, windows

#: Chains that are all listed; and where sums of windows are compared, which takes longer; of `few` steps; of `ends`.
MANY, MANY_WINDOWS, SOME, BEGIN = 2_000_000, 300_000, 20_000, 800
#: Above this comparing all chains with each other takes longer than it saves.
_MOST = 1500
#: Ranges up to which pieces of pairs of steps stand in a table, for as many chains.
_TABLED = 256
#: Outputs of chains that are looked at together.
_CELLS = 4_000_000


def number(extent: int, depth: int) -> int:
    """How many chains of `depth` steps there are."""
    return comb(extent + depth - 1, depth)


def every(steps: Ints, depth: int) -> Ints:
    """All chains (T, depth) of some steps, given in ascending order; never growing."""
    if not depth:
        return np.zeros((1, 0), np.int64)
    last = np.arange(len(steps), dtype=np.int64)
    rows = last[:, None]
    for _ in range(depth - 1):
        each = rows[:, -1] + 1
        above = np.repeat(np.arange(len(rows)), each)
        inner = np.arange(len(above)) - np.repeat(np.cumsum(each) - each, each)
        rows = np.concatenate([rows[above], inner[:, None]], axis=1)
    made: Ints = steps[rows]
    return made


def pieces(extent: int, chains: Ints) -> Ints:
    """How many pieces every cut of the chains (T, v) leaves, (T, v)."""
    pairs = _pairs(extent) if extent <= _TABLED < len(chains) else None
    whole = np.full(len(chains), extent)
    found = [_count(whole, [*chains[:, :k].T], pairs) for k in range(1, chains.shape[1] + 1)]
    return np.stack(found, axis=1) if found else np.zeros((len(chains), 0), np.int64)


def _count(length: Ints, steps: list[Ints], pairs: NDArray[np.int32] | None) -> Ints:
    """The pieces that steps (T,) make of ranges (T,), one after the other: those of full steps, and of the rest."""
    if len(steps) == 1:
        made: Ints = -(-length // steps[0])
    elif len(steps) == 2 and pairs is not None:
        made = pairs[length, steps[0], steps[1]].astype(np.int64)
    else:
        whole, inner = length // steps[0], steps[1:]
        made = whole * _count(steps[0], inner, pairs) + _count(length - whole * steps[0], inner, pairs)
    return made


@lru_cache(maxsize=8)
def _pairs(extent: int) -> NDArray[np.int32]:
    """The pieces that two steps make of a range, by range and steps, up to `extent` each."""
    size = np.arange(extent + 1)
    one = -(-size[:, None] // np.maximum(size, 1))
    whole, rest = np.divmod(size[:, None], np.maximum(size, 1))
    made: NDArray[np.int32] = (whole[:, :, None] * one[None, :, :] + one[rest]).astype(np.int32)
    return made


def _thinned(chains: Ints, made: Ints) -> tuple[Ints, Ints]:
    """Leave out chains that differ from another one in one step, and in pieces of that cut, and are above it."""
    for equal in (True, False):
        for k in reversed(range(chains.shape[1])):
            table = np.concatenate([chains, made], axis=1).T
            apart = {k} if equal else {k, k + chains.shape[1]}
            rest = [row for i, row in enumerate(table) if i not in apart]
            kept = _falling(rest, chains[:, k], chains[:, k] if equal else made[:, k])
            chains, made = chains[kept], made[kept]
    return chains, made


def _falling(group: list[Ints], by: Ints, value: Ints) -> Ints:
    """Of every group, in the order of `by`, those whose value is below all before."""
    sizes = [int(row.max(initial=0)) + 1 for row in (*group, by, value)]
    if prod(sizes) < 1 << 62:  # as one number they are sorted several times faster
        code = np.zeros(len(by), np.int64)
        for row, size in zip(reversed(group), reversed(sizes[:-2]), strict=True):
            code = code * size + row
        order = np.argsort((code * sizes[-2] + by) * sizes[-1] + value, kind="stable")
        changes = np.diff(code[order], prepend=-1) != 0
    else:
        order = np.lexsort([value, by, *group])
        changes = np.any([np.diff(row[order], prepend=-1) != 0 for row in group], axis=0)
    number = np.cumsum(changes) if group else np.zeros(len(order), np.int64)
    least = np.minimum.accumulate(value[order] - number * (1 << 40))
    kept: Ints = order[np.diff(least, prepend=1 << 62) < 0]
    return kept


def regular(extent: int, window: Window) -> bool:
    """Whether the sum of windows follows from the number of pieces: only the first and the last one are clipped."""
    last = (extent - 1) * window.stride - window.pad + window.reach - window.size
    return window.reach >= window.stride >= max(window.pad, last)


def _windows(extent: int, chains: Ints, window: Window) -> Ints:
    """The largest windows of chains (T, v), and their sum where that has to be counted, (T, 1 or 2).

    With three pieces of the full step one of them lies inside, where nothing clips it.
    """
    step = chains[:, -1]
    if not regular(extent, window):
        seen = windows(0, extent, chains, np.zeros((1, 0), np.int64), window)
        return np.stack([seen.largest, seen.sum], axis=1)
    made = cut(extent, chains)
    rest = np.flatnonzero(np.where(made.length == step[:, None], made.count, 0).sum(axis=1) < 3)
    largest = (step - 1) * window.stride + window.reach
    for some in np.array_split(rest, 1 + len(rest) * extent // _CELLS):
        largest[some] = _clipped(extent, chains[some], window)
    return largest[:, None]


def _clipped(extent: int, chains: Ints, window: Window) -> Ints:
    """The largest windows of chains (T, v), from where their pieces begin and end."""
    place = np.broadcast_to(np.arange(extent, dtype=np.int64), (len(chains), extent))
    left = place
    for step in chains.T[:, :, None]:
        left = left % step
    begins = left == 0
    after = np.where(begins, place, extent)[:, ::-1]
    end = np.concatenate(
        [np.minimum.accumulate(after, axis=1)[:, ::-1][:, 1:], np.full((len(chains), 1), extent)], axis=1
    )
    low, high = window.rows(place, end, 0, window.taps)
    found: Ints = np.where(begins, high - low, 0).max(axis=1, initial=0)
    return found


def thin(features: Ints) -> Ints:
    """Return columns of (K, T) such that every other one is at or above one of them in every row, ascending."""
    distinct = np.unique(features[(features != features[:, :1]).any(axis=1)], axis=0)
    kept = np.arange(features.shape[1]) if len(distinct) else np.zeros(1, np.int64)
    for row in range(len(distinct)):
        left = distinct[:, kept]
        kept = kept[_falling([*np.delete(left, row, axis=0)], left[row], left[row])]
    return np.sort(kept) if len(kept) > _MOST else kept[pareto(np.ascontiguousarray(distinct[:, kept]))]


@lru_cache(maxsize=256)
def steps(extent: int, depth: int, lanes: int = 0, window: Window | None = None) -> Ints:
    """The chains (T, depth) that an optimum needs, by the claim above; all steps are allowed.

    `lanes`: rounds of so many lanes over the innermost pieces count, too; 0: they do not. `window`: windows that are
    compared by themselves.
    """
    found = every(np.arange(1, extent + 1, dtype=np.int64), depth)
    if not depth:
        return found
    made = pieces(extent, found)
    if lanes:
        made = np.concatenate([made, cut(extent, found).ceil_sum(lanes)[:, None]], axis=1)
    if window is None:
        return _least(found, made)
    seen = np.concatenate([_windows(extent, found[:, :k], window) for k in range(1, depth + 1)], axis=1)
    if not regular(extent, window):
        return _least(found, np.concatenate([made, seen], axis=1))
    # A chain with a window below that of its step may be needed though another one has less of all else. Two pieces,
    # the first one clipped as much as the last, are no case: as few pieces of smaller steps have no larger window.
    before, behind = window.clipping(0, extent)
    inside = made[:, :depth] > (2 if before == behind else 1)
    small = (inside & (seen < (found - 1) * window.stride + window.reach)).any(axis=1)
    kept = np.isin(np.arange(len(found)), _rows(found, _least(found, made))) | small
    return _least(found[kept], np.concatenate([made, seen], axis=1)[kept])


def _least(found: Ints, made: Ints) -> Ints:
    """The chains of which no other one is at or below in steps and all else that is counted."""
    found, made = _thinned(found, made)
    kept: Ints = found[pareto(np.ascontiguousarray(np.concatenate([found.T, made.T])))]
    return kept


def _rows(found: Ints, some: Ints) -> Ints:
    """Where some chains stand among others, all of small steps."""
    base = int(found.max(initial=1)) + 1
    codes = [sum(column * base**k for k, column in enumerate(chains.T)) for chains in (found, some)]
    order = np.argsort(codes[0], kind="stable")
    made: Ints = order[np.searchsorted(codes[0], codes[1], sorter=order)]
    return made


@lru_cache(maxsize=256)
def few(extent: int, depth: int) -> Ints:
    """Steps to choose from where there are too many, ascending, from 1 to the extent.

    The smallest step for every number of pieces, and all divisors; or of these those for 1, 2, 3, 4, 6, 8, .. pieces;
    or the latter alone: the most of which `SOME` chains can be made.
    """
    sizes = np.arange(1, extent + 1, dtype=np.int64)
    count = -(-extent // sizes)
    smallest, whole = np.diff(count, prepend=extent + 1) != 0, extent % sizes == 0
    round_ = np.isin(count, [*(1 << k for k in range(21)), *(3 << k for k in range(20))]) & smallest
    ends = (sizes == 1) | (sizes == extent)
    for kept in (smallest | whole, whole | round_, round_ | ends):
        if number(int(kept.sum()), depth) <= SOME:
            break
    made: Ints = sizes[kept]
    return made


@lru_cache(maxsize=256)
def ends(extent: int, depth: int) -> Ints:
    """Steps to begin with, ascending: for 1, 2, 3, 4, 6, 8, .. pieces the smallest, and the one with the smallest rest.

    Of so many pieces that `BEGIN` chains can be made of them, with 1 and the extent.
    """
    sizes = np.arange(1, extent + 1, dtype=np.int64)
    count = -(-extent // sizes)
    for kept in (range(1, extent + 1), [*(1 << k for k in range(21)), *(3 << k for k in range(20))], [2, 4, 16, 64]):
        some = np.isin(count, [*kept])
        edge = (np.diff(count, prepend=extent + 1) != 0) | (np.diff(count, append=0) != 0)
        for chosen in (some & edge, some & (np.diff(count, prepend=extent + 1) != 0)):
            chosen = chosen | (sizes == 1) | (sizes == extent)
            if number(int(chosen.sum()), depth) <= BEGIN:
                found: Ints = sizes[chosen]
                return found
    made: Ints = sizes[[0, -1]] if extent > 1 else sizes
    return made


@lru_cache(maxsize=256)
def relaxed(extent: int, depth: int) -> tuple[Ints, Ints]:
    """Cells of chains: from which step on, and up to which; (T, depth) each. All chains are in some cell."""
    grid = few(extent, depth)
    ends = np.append(grid[1:] - 1, extent)
    cells = every(np.arange(len(grid), dtype=np.int64), depth)
    return grid[cells], ends[cells]
