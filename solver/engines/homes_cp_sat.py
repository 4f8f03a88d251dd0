"""Engine ``cp-sat`` for homes: `formulations.homes_cp_sat`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ortools.sat.python import cp_model

from formulations.homes import Chosen, Places
from formulations.homes_cp_sat import cp_sat
from solver.engines.solvers_cp_sat import heard
from solver.homes_base import Housed

__all__ = ["least_overflow", "run"]


def _solver(time_limit_s: float | None) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    if time_limit_s is not None:
        solver.parameters.max_time_in_seconds = max(0.01, time_limit_s)
    return solver


def run(places: Places, measure: int | None, kept: Sequence[int], time_limit_s: float | None) -> Housed:
    """Minimise one measure; `kept` are the most that those before it may be."""
    built, solver = cp_sat(places, measure, kept), _solver(time_limit_s)
    status = solver.status_name(heard(solver, built.model))
    if status == "INFEASIBLE":
        return Housed(None, 0, proven=True, infeasible=True)
    bound = max(0, math.ceil(solver.best_objective_bound - 1e-6)) if math.isfinite(solver.best_objective_bound) else 0
    if status not in ("OPTIMAL", "FEASIBLE"):
        return Housed(None, bound, proven=False)
    return Housed(built.chosen(solver), bound, proven=status == "OPTIMAL")


def least_overflow(places: Places) -> Chosen:
    """Homes that exceed the memories by the fewest bytes."""
    built, solver = cp_sat(places, None, overflow=True), _solver(10.0)
    heard(solver, built.model)
    return built.chosen(solver)
