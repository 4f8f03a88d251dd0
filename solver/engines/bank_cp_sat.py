"""Engine ``cp-sat`` for banks: the state arcs of `formulations.bank_cp_sat`."""

from __future__ import annotations

import math
import time
from importlib.metadata import version

from ortools.sat.python import cp_model

from formulations.bank_cp_sat import build_arcs
from formulations.bank_graph import OutOfTime
from solver.bank_base import Asked, Decided, graph_of, tied
from solver.engines.solvers_cp_sat import heard
from solver.plan import Stat

__all__ = ["run"]

_WORKERS = 2


def run(asked: Asked) -> Decided:
    """Solve with CP-SAT; of equal plans the fastest."""
    begun, versions = time.monotonic(), f"ortools {version('ortools')}"
    try:
        graph, left = graph_of(asked)
    except OutOfTime:
        return Decided(None, None, "NO_SOLUTION_FOUND", versions)
    built, solver = build_arcs(graph), cp_model.CpSolver()
    solver.parameters.num_workers = _WORKERS
    if left is not None:
        solver.parameters.max_time_in_seconds = left
    status = solver.status_name(heard(solver, built.model))
    stats: dict[str, Stat] = {"states": len(graph.number), "arcs": len(built.arcs)}
    bound = math.ceil(solver.best_objective_bound - 1e-6)
    if status == "INFEASIBLE":
        return Decided(None, None, "INFEASIBLE", versions, stats)
    if status not in ("OPTIMAL", "FEASIBLE"):
        return Decided(None, max(0, bound), "NO_SOLUTION_FOUND", versions, stats)
    plan = graph.follow(built.chosen(solver))
    if status == "FEASIBLE":
        return Decided(plan, bound, "FEASIBLE", versions, stats)
    fastest, proven = tied(asked, plan, begun)
    return Decided(fastest, plan.volume.total, "OPTIMAL", versions, stats, tied=proven)
