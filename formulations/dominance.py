"""Dominance between choices of one branch: what the solvers' models may leave out.

Claim
    A spatial choice s is superfluous for a set of tables if another choice s' has ``a[k, s'] <= a[k, s]`` in every row
    k of every objective and capacity table: with the channel factors non-negative, replacing s by s' in any plan
    lowers no value. The same holds for channel choices. Of equal choices the first is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from formulations.space import Branch
from hwmodels.bilinear import Bilinear, Ints

__all__ = ["pareto", "undominated"]

_BLOCK = 256


def pareto(features: Ints) -> Ints:
    """Return the columns of `features` (K, P) that no other column is at or below, ascending."""
    if features.shape[0] == 0:
        return np.arange(min(1, features.shape[1]))
    features = np.unique(features, axis=0)
    scale = np.maximum(features.max(axis=1, keepdims=True), 1)
    order = np.argsort((features / scale).sum(axis=0), kind="stable")
    kept = order[:0]
    for i in range(0, len(order), _BLOCK):
        block = order[i : i + _BLOCK]
        block = block[~_below(features[:, kept], features[:, block]).any(axis=0)]
        dominates = _below(features[:, block], features[:, block])
        mutual = dominates & dominates.T
        rank = np.arange(len(block))
        dominates &= ~(mutual & (rank[:, None] >= rank[None, :]))
        kept = np.concatenate([kept, block[~dominates.any(axis=0)]])
    return np.sort(kept)


def _below(one: Ints, two: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Matrix: whether column i of `one` is at or below column j of `two` in every row."""
    result = np.ones((one.shape[1], two.shape[1]), np.bool_)
    for mine, other in zip(one, two, strict=True):
        result &= mine[:, None] <= other[None, :]
    return result


def undominated(branch: Branch, measures: Sequence[str]) -> Branch:
    """Drop the choices of `branch` that are superfluous for these measures and all capacities."""

    def tables(b: Branch) -> list[Bilinear]:
        return [t for m in measures for t in b.tables(m)] + [t for _, t, _ in b.capacity]

    if branch.empty:
        return branch
    branch = branch.take(s=pareto(np.concatenate([t.a for t in tables(branch)])))
    return branch.take(q=pareto(np.concatenate([t.b for t in tables(branch)])))
