"""Engine ``cp-sat`` for the problem mesh: `formulations.mesh_cp_sat` with OR-tools."""

from __future__ import annotations

from importlib.metadata import version

from ortools.sat.python import cp_model

from formulations.mesh_cp_sat import cp_model_of
from formulations.mesh_search import Halves
from solver.engines.solvers_cp_sat import heard
from solver.mesh_base import Answer, Asked, Decided, led, searched

__all__ = ["run"]


def run(asked: Asked) -> Decided:
    """Solve."""
    return searched(asked, led(_solve), f"ortools {version('ortools')}")


def _solve(found: Halves, measure: str) -> Answer:
    made = cp_model_of(found, measure)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    # Rows leave options out by propagation; probing and relaxations cost more here than they spare.
    solver.parameters.cp_model_probing_level = 0
    solver.parameters.symmetry_level = 0
    solver.parameters.linearization_level = 0
    if (seconds := found.member.setup.clock.left) is not None:
        solver.parameters.max_time_in_seconds = seconds
    status = solver.status_name(heard(solver, made.model))
    if status == "MODEL_INVALID":
        raise RuntimeError(made.model.validate())
    if status == "INFEASIBLE":
        return Answer(None, None, empty=True)
    bound = round(solver.best_objective_bound)
    if status not in ("OPTIMAL", "FEASIBLE"):
        return Answer(None, bound)
    return Answer(made.chosen(solver), bound)
