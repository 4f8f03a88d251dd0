"""Engine ``cp-sat`` for engine sizes."""

from __future__ import annotations

from collections.abc import Sequence

from formulations.partial_engine.size import Rates, Size
from formulations.partial_engine.size_cp_sat import size_cp_model
from instances.partial_engine import PartialEngine
from solver.engines.driver_cp_sat import solve

__all__ = ["run"]


def run(sizes: Sequence[Size], aim: Rates, engine: PartialEngine) -> int:
    """Return a rate that no size exceeds."""
    model, levels = size_cp_model(sizes, aim, engine.dsps, engine.brams)
    bound = solve(model, maximised=True).bound
    return levels[-1 if bound is None else bound]
