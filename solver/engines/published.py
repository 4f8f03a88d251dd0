"""Published heuristics, named after their papers."""

from __future__ import annotations

from formulations.tiling.heuristics import noburst_ties
from formulations.tiling.space import Space
from solver.engines.base import EngineResult, Limits, guessed


def run_tso_noburst(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """TSO-noburst (`tso_burst_slicing` Alg. 4, lines 12-13): the best plan if bursts were free, at its real price.

    Many plans tie under the volume model. Of these the one that takes the least time with bursts is returned: what is
    left of the difference to the optimum is due to the model alone.
    """
    return guessed(space, lambda: (noburst_ties(space) or (None,))[0])
