"""Engine ``cp-sat`` when latency counts: `formulations.latency_cp_sat`, from the best timetable that is known."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version

from ortools.sat.python import cp_model

from formulations.latency import least_latency
from formulations.latency_cp_sat import latency_cp_model
from solver.engines.mapping_cp_sat import solve_model
from solver.mapping_base import Asked, Decided, Timed, begun, best_timed, decided, latest, timed
from solver.plan import Stat

__all__ = ["run"]


def run(asked: Asked, known: list[Timed]) -> Decided:
    """Solve."""
    if asked.aim == "latency":
        asked = replace(asked, least=max(asked.least, least_latency(asked.mapping)))
    mapping, unit, first = asked.mapping, asked.unit, best_timed(asked, known)
    built = latency_cp_model(
        mapping, asked.aim, asked.limits, latest=latest(asked, known), least=asked.least // unit,
        most=None if first is None else asked.value(*first) // unit,
    )  # fmt: skip
    if first is not None:
        built.hint(first[0], begun(asked, first))
    solver, status, stopped = solve_model(built.mapping, asked.time_limit_s)
    versions = f"ortools {version('ortools')}"
    stats: dict[str, Stat] = {"branches": solver.num_branches, "conflicts": solver.num_conflicts}
    if stopped:
        stats["interrupted"] = True
    if status == cp_model.INFEASIBLE:
        return Decided(None, None, "INFEASIBLE", versions, stats)
    found = list(known)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        at = built.mapping.chosen(solver)
        found.append(timed(asked, at, built.begun(solver)))
    bound = max(asked.least, unit * round(solver.best_objective_bound))
    return decided(asked, best_timed(asked, found), bound, versions, stats)
