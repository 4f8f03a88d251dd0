"""Undominated columns of integer tables."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.price.bilinear import Ints

_BLOCK = 256
#: Columns from which on they may be laid out as a grid, and cells at most: for each of them, and at a time.
_MANY, _CELLS, _SLICE = 20_000, 5_000, 1 << 24


def pareto(features: Ints) -> Ints:
    """Return the columns of `features` (K, P) that no other column is at or below, ascending; of equal ones the first.

    A column that is nowhere above another and somewhere below it comes before it in the order of the sums, so one pass
    suffices. Many columns of few values are laid out as a grid instead (`_on_grid`).
    """
    if features.shape[0] == 0 or features.shape[1] < 2:
        return np.arange(min(1, features.shape[1]))
    return _pareto(features.shape[0], np.ascontiguousarray(features).tobytes())


@lru_cache(maxsize=2048)
def _pareto(rows: int, data: bytes) -> Ints:
    given = np.frombuffer(data, np.int64).reshape(rows, -1)
    distinct = {row.tobytes(): row for row in given if (row != row[0]).any()}
    if not distinct:
        return np.zeros(1, np.int64)
    features = np.stack(list(distinct.values()))
    # values by their ranks in each row: comparisons stay, and small numbers compare faster
    ranks = np.stack([np.unique(row, return_inverse=True)[1].ravel() for row in features]).astype(np.int32)
    counts = sorted(int(row.max()) + 1 for row in ranks)
    cells, number = prod(counts[:-1]), features.shape[1]
    if len(counts) > 1 and number >= _MANY and cells <= _CELLS * number and prod(counts[:-2]) <= _SLICE:
        return _on_grid(ranks)
    scale = np.maximum(features.max(axis=1, keepdims=True), 1)
    order = np.argsort((features / scale).sum(axis=0), kind="stable")
    kept = order[:0]
    for i in range(0, len(order), _BLOCK):
        block = order[i : i + _BLOCK]
        block = block[~_below(ranks[:, kept], ranks[:, block]).any(axis=0)]
        dominates = _below(ranks[:, block], ranks[:, block])
        mutual = dominates & dominates.T
        rank = np.arange(len(block))
        dominates &= ~(mutual & (rank[:, None] >= rank[None, :]))
        kept = np.concatenate([kept, block[~dominates.any(axis=0)]])
    return np.sort(kept)


def _on_grid(ranks: NDArray[np.int32]) -> Ints:
    """The same by the values of one row in a grid of all others, slice by slice along one of them.

    A column falls if the least value of all cells at or below its own, in its slice or one before, is no larger.
    """
    value, along, *rest = np.argsort(-ranks.max(axis=1), kind="stable")
    shape = tuple(int(ranks[k].max()) + 1 for k in rest)
    cell = np.ravel_multi_index(tuple(ranks[rest]), shape) if rest else np.zeros(ranks.shape[1], np.int64)
    order = np.lexsort((ranks[value], cell, ranks[along]))
    order = order[(np.diff(np.stack([cell, ranks[along]])[:, order], axis=1, prepend=-1) != 0).any(axis=0)]
    least, kept = np.full(shape, np.iinfo(np.int32).max, np.int32), list[Ints]()
    flat = least.reshape(-1)
    for at in np.split(order, np.flatnonzero(np.diff(ranks[along, order])) + 1):
        here, mine = cell[at], ranks[value, at]
        falls = flat[here] <= mine
        flat[here] = np.minimum(flat[here], mine)
        for axis in range(len(shape)):
            np.minimum.accumulate(least, axis=axis, out=least)
        for axis, k in enumerate(rest):
            inner = ranks[k, at] > 0
            falls[inner] |= flat[here[inner] - prod(shape[axis + 1 :])] <= mine[inner]
        kept.append(at[~falls])
    return np.sort(np.concatenate(kept))


def _below(one: NDArray[np.int32], two: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Matrix: whether column i of `one` is at or below column j of `two` in every row."""
    result = np.ones((one.shape[1], two.shape[1]), np.bool_)
    for mine, other in zip(one, two, strict=True):
        result &= mine[:, None] <= other[None, :]
    return result
