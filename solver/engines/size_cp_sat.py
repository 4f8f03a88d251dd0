"""Engine ``cp-sat`` for engine sizes."""

from __future__ import annotations

from collections.abc import Sequence

from ortools.sat.python import cp_model

from formulations.engine_size import Rates, Size
from formulations.engine_size_cp_sat import size_cp_model
from instances.partial_engine import PartialEngine
from solver.engines.solvers_cp_sat import heard

__all__ = ["run"]


def run(sizes: Sequence[Size], aim: Rates, engine: PartialEngine) -> int:
    """Return a rate that no size exceeds."""
    model, levels = size_cp_model(sizes, aim, engine.dsps, engine.brams)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    heard(solver, model)
    return levels[round(solver.best_objective_bound)]
