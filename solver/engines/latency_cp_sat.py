"""Engine ``cp-sat`` when latency counts: `latency_cp_sat`, from the best timetable that is known."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version

from formulations.mapping.latency import least_latency
from formulations.mapping.latency_cp_sat import latency_cp_model
from solver.engines.driver_cp_sat import solve
from solver.mapping.base import Asked, Decided, Timed, begun, best_timed, decided, latest, timed

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
    said = solve(built.mapping.model, asked.time_limit_s, turns=True)
    versions = f"ortools {version('ortools')}"
    if said.status == "INFEASIBLE":
        return Decided(None, None, "INFEASIBLE", versions, said.stats)
    found = list(known)
    if said.solved:
        found.append(timed(asked, built.mapping.chosen(said.solver), built.begun(said.solver)))
    bound = max(asked.least, unit * said.least())
    return decided(asked, best_timed(asked, found), bound, versions, said.stats)
