"""Engine ``cp-sat`` for the joint problem: `formulations.joint_cp_sat`, from the greedy plan."""

from __future__ import annotations

import math
from importlib.metadata import version

from ortools.sat.python import cp_model

from formulations.joint import NEVER, Choice, Joint
from formulations.joint_cp_sat import SUBSOLVERS, cp_sat
from solver.engines.solvers_cp_sat import heard
from solver.joint_base import Mastered

__all__ = ["run"]

_WORKERS = 2


def run(joint: Joint, time_limit_s: float | None, hint: Choice | None) -> Mastered:
    """Solve."""
    versions = f"ortools {version('ortools')}"
    built, solver = cp_sat(joint, hint), cp_model.CpSolver()
    solver.parameters.num_workers = _WORKERS
    solver.parameters.linearization_level = 2
    solver.parameters.subsolvers[:] = list(SUBSOLVERS)
    if time_limit_s is not None:
        solver.parameters.max_time_in_seconds = time_limit_s
    status = solver.status_name(heard(solver, built.model))
    if status == "INFEASIBLE":
        return Mastered(None, NEVER, versions)
    bound = max(0, math.ceil(solver.best_objective_bound - 1e-6))
    if status not in ("OPTIMAL", "FEASIBLE"):
        return Mastered(None, bound, versions)
    choice = joint.price(built.chosen(solver))
    return Mastered(choice, choice.bytes if status == "OPTIMAL" else min(bound, choice.bytes), versions)
