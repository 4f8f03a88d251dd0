"""Heuristics of practice: the largest tile that fits, and the DMA paper's fill-the-memory rule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from formulations.tiling.branch import Branch
from formulations.tiling.space import Space
from hwmodels.nest.choices import Q_DIMS, S_DIMS
from solver.engines.base import EngineResult, Limits, Pick, complete, guessed, vector


def largest_tile(space: Space, wanted: tuple[str, ...]) -> Pick | None:
    """For every order of uniform Holds the largest tile (in multiply-accumulates) that fits; of these the best plan."""
    picks = []
    for branch in space.uniform().branches:
        volume = np.multiply.outer(_volume(branch, S_DIMS), _volume(branch, Q_DIMS))
        picks.append(_first(branch, np.where(branch.feasible(), volume, -1)))
    found = [p for p in picks if p is not None]
    return min(found, key=lambda p: vector(p.measures, wanted), default=None)


def fullest_memory(space: Space, wanted: tuple[str, ...]) -> Pick | None:
    """The tile that fills the most of the on-chip memory, as the DMA paper's naive setting (section 6.1) aims at.

    The first branch is used as it comes (no order or dataflow is compared), ties go to the smallest sizes.
    """
    for branch in space.uniform().branches:
        taken = sum((table.matrix() for _, table, _ in branch.capacity), np.zeros(branch.choices.shape))
        pick = _first(branch, np.where(branch.feasible(), taken, -1))
        if pick is not None:
            return pick
    return None


def _volume(branch: Branch, dims: tuple[str, ...]) -> NDArray[np.float64]:
    volume: NDArray[np.float64] = np.prod([branch.choices.values(d).astype(np.float64) for d in dims], axis=0)
    return volume


def _first(branch: Branch, score: NDArray[np.float64]) -> Pick | None:
    if not score.size or score.max() < 0:
        return None
    s, q = (int(i) for i in np.unravel_index(int(score.argmax()), score.shape))
    return Pick(branch, s, q, branch.measures(s, q))


def run_greedy(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Engine ``greedy``: the largest tile that fits, the best order or dataflow for it."""
    return guessed(space, lambda: largest_tile(space, complete(objectives)))


def run_naive(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Engine ``naive``: fill the memory (`optimal_tiling_dma` section 6.1, at least 80 % where a tile does)."""
    return guessed(space, lambda: fullest_memory(space, complete(objectives)))
