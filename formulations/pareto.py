"""Undominated columns of integer tables."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.price.bilinear import Ints

_BLOCK = 256


def pareto(features: Ints) -> Ints:
    """Return the columns of `features` (K, P) that no other column is at or below, ascending; of equal ones the first.

    A column that is nowhere above another and somewhere below it comes before it in the order of the sums, so one pass
    suffices.
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
    scale = np.maximum(features.max(axis=1, keepdims=True), 1)
    order = np.argsort((features / scale).sum(axis=0), kind="stable")
    # values by their ranks in each row: comparisons stay, and small numbers compare faster
    ranks = np.stack([np.unique(row, return_inverse=True)[1].ravel() for row in features]).astype(np.int32)
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


def _below(one: NDArray[np.int32], two: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Matrix: whether column i of `one` is at or below column j of `two` in every row."""
    result = np.ones((one.shape[1], two.shape[1]), np.bool_)
    for mine, other in zip(one, two, strict=True):
        result &= mine[:, None] <= other[None, :]
    return result
