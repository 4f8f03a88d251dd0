"""Engine ``cp-sat``: the CP-SAT models of `formulations.cp_sat`, one per branch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from ortools.sat.python import cp_model

from formulations.branch import Branch
from formulations.cp_sat import build_cp_sat
from formulations.space import Space
from solver.engines.base import EngineResult, Limits
from solver.engines.staged import Answer, solve_staged

__all__ = ["run"]


def _solve(
    branch: Branch,
    objective: str,
    at_most: int | None,
    levels: Mapping[str, int],
    cuts: Sequence[tuple[int, int]],
    limits: Limits,
) -> Answer:
    if at_most is not None and at_most < 0:
        return Answer(None, 0, True)
    built = build_cp_sat(branch, objective, at_most=at_most, levels=levels, cuts=cuts)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = limits.workers
    solver.parameters.random_seed = limits.seed
    solver.parameters.catch_sigint_signal = False
    if limits.time_limit_s is not None:
        solver.parameters.max_time_in_seconds = limits.time_limit_s
    status = solver.status_name(solver.solve(built.model))
    if status == "INFEASIBLE":
        return Answer(None, None if at_most is None else at_most + 1, True)
    if status == "MODEL_INVALID":
        raise RuntimeError(f"CP-SAT refused the model: {built.model.validate()}")
    bound = math.ceil(solver.best_objective_bound - 1e-6)
    if status in ("OPTIMAL", "FEASIBLE"):
        return Answer(built.decode(solver), bound, status == "OPTIMAL")
    return Answer(None, bound, False)


def run(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Solve with CP-SAT."""
    return solve_staged(_solve, space, objectives, limits, f"ortools {version('ortools')}")
