"""Published heuristics, named after their papers."""

from __future__ import annotations

import time

import numpy as np

from formulations.space import Space
from hwmodels.price import price
from solver.engines.base import EngineResult, Limits
from solver.engines.exhaustive import best_pick

__all__ = ["run_tso_noburst"]


def run_tso_noburst(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """TSO-noburst (`tso_burst_slicing` Alg. 4, lines 12-13): the best plan if bursts were free, at its real price.

    Many plans tie under the volume model; ties go to fewer bytes, then to the first branch and the smallest sizes.
    """
    start = time.monotonic()
    volume = space.machine.transfer.model_copy(update={"burst_ticks": 0})
    blind = space.build(space.machine.model_copy(update={"transfer": volume}), space.pins)
    pick, _ = best_pick(blind, ("time",))
    version = f"numpy {np.__version__}"
    if pick is None:
        return EngineResult("NO_SOLUTION_FOUND", None, None, None, time.monotonic() - start, version)
    measures = price(space.layer, space.machine, pick.nest).measures
    return EngineResult("FEASIBLE", pick.nest, measures, None, time.monotonic() - start, version)
