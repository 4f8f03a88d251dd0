"""Engine ``cp-sat`` for runs: the least bound over all choices, and an order in passes that meets it."""

from __future__ import annotations

import time
from importlib.metadata import version

from ortools.sat.python import cp_model

from formulations.runs_cp_sat import runs_cp_model
from formulations.runs_stages_cp_sat import solve_stages
from solver.engines.solvers_cp_sat import heard
from solver.plan import Stat
from solver.runs_base import RunsAsked, RunsDecided, best_passes, closed, finished

__all__ = ["run"]


def run(asked: RunsAsked) -> RunsDecided:
    """Solve."""
    start = time.monotonic()
    problem, versions = asked.problem, f"ortools {version('ortools')}"
    known = best_passes(problem, problem.branches[0])
    branches = [branch for branch in problem.branches if branch.least <= known.bytes]
    made = runs_cp_model(branches, known.bytes, stay=problem.stay)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    if asked.time_limit_s is not None:
        solver.parameters.max_time_in_seconds = asked.time_limit_s
    status = heard(solver, made.model)
    bound = made.base + max(0, round(solver.best_objective_bound))
    found = [known]
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        found.append(best_passes(problem, branches[made.chosen(solver)]))
    stats: dict[str, Stat] = {"choices": len(branches), "branches": solver.num_branches}
    return closed(asked, finished(found, bound, versions, stats), solve_stages, start)
