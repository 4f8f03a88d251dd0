"""Engine ``cp-sat`` for several applications."""

from __future__ import annotations

from importlib.metadata import version

from ortools.sat.python import cp_model

from formulations.applications_cp_sat import applications_cp_model
from formulations.applications_search import starts
from instances.errors import InputError
from solver.applications_engines import Asked, Found
from solver.plan import Stat

__all__ = ["run"]


def run(asked: Asked) -> Found:
    """Solve."""
    several, goal = asked.several, asked.goal
    known, versions = starts(several, goal), f"ortools {version('ortools')}"
    best = asked.best(known)
    most = None if best is None else asked.value(best)
    built = applications_cp_model(several, goal, [*asked.caps, *([] if most is None else [(goal, most)])])
    built.hint(known[0] if best is None else best)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 8
    if asked.time_limit_s is not None:
        solver.parameters.max_time_in_seconds = asked.time_limit_s
    status: object = solver.solve(built.model)
    if status == cp_model.MODEL_INVALID:
        raise InputError(f"engine cp-sat: the model is not one of 64 bits: {built.model.validate()[:200]}")
    stats: dict[str, Stat] = {"branches": solver.num_branches, "conflicts": solver.num_conflicts}
    if status == cp_model.INFEASIBLE:
        return Found(None, None, "INFEASIBLE", versions, stats)
    solved = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    found = asked.best([*([built.chosen(solver)] if solved else []), *([] if best is None else [best])])
    unit = 1 if goal.streams else several.mapping.energy_unit
    bound = unit * max(0, round(solver.best_objective_bound))
    if found is None:
        return Found(None, bound, "NO_SOLUTION_FOUND", versions, stats)
    value = asked.value(found)
    assert value is not None
    return Found(found, min(bound, value), "OPTIMAL" if bound >= value else "FEASIBLE", versions, stats)
