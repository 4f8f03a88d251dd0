"""Engines ``greedy`` and ``naive``: heuristics of practice (`formulations.tiling.heuristics`)."""

from __future__ import annotations

from formulations.tiling.heuristics import fullest_memory, largest_tile
from formulations.tiling.pick import complete
from formulations.tiling.space import Space
from solver.engines.base import EngineResult, Limits, guessed


def run_greedy(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Engine ``greedy``: the largest tile that fits, the best order or dataflow for it."""
    return guessed(space, lambda: largest_tile(space, complete(objectives)))


def run_naive(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Engine ``naive``: fill the memory (`optimal_tiling_dma` section 6.1, at least 80 % where a tile does)."""
    return guessed(space, lambda: fullest_memory(space, complete(objectives)))
