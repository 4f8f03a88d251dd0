"""Engines ``milp`` and ``clustering`` for mapping: `formulations.mapping.milp` with HiGHS or CBC.

The decoded assignment is priced in integers. It counts as proven only if the solver's bound rounds up to that price and
is believed (`solver.engines.driver_milp`): else the answer has no bound.
"""

from __future__ import annotations

from typing import Literal

from formulations.mapping.milp import MappingModel, model
from formulations.mapping.problem import clusters
from solver.engines.driver_milp import MilpAnswer, MilpSolver, solve, versions
from solver.mapping.base import Asked, Decided, best_of
from solver.plan import Stat, Status

__all__ = ["least_of", "run", "solved"]


def run(asked: Asked, *, solver: MilpSolver = "highs", clustered: Literal["", "=", "<="] = "") -> Decided:
    """Solve."""
    made = model(asked.mapping, asked.aim, asked.limits, clustered=clustered)
    said, stats = solved(made, asked, solver)
    if said.status == "INFEASIBLE":
        return Decided(None, None, "INFEASIBLE", versions(solver), stats)
    found = [made.chosen()] if said.solved else []
    if not clustered:
        found += asked.known
    at = best_of(asked, found)
    least = least_of(asked, said)
    if at is None:
        return Decided(None, least, "NO_SOLUTION_FOUND", versions(solver), stats)
    if clustered and not _clustered(asked, at, clustered):
        return Decided(
            None,
            least,
            "NO_SOLUTION_FOUND",
            versions(solver),
            {**stats, "note": "the solver's answer is no clustering"},
        )
    value = asked.value(at)
    status: Status = "OPTIMAL" if least is not None and least >= value else "FEASIBLE"
    return Decided(at, None if least is None else min(least, value), status, versions(solver), stats)


def solved(made: MappingModel, asked: Asked, solver: MilpSolver) -> tuple[MilpAnswer, dict[str, Stat]]:
    """Solve a model; return the answer and statistics."""
    if asked.least:
        made.problem += made.problem.objective >= asked.least // asked.unit
    said = solve(solver, made.problem, asked.time_limit_s)
    stats: dict[str, Stat] = {"variables": len(made.problem.variables()), "constraints": len(made.problem.constraints)}
    stats |= said.stats
    if not said.believed:
        stats["note"] = "times are too large for a proof by this solver: a larger tick_ps helps"
    return said, stats


def least_of(asked: Asked, said: MilpAnswer) -> int | None:
    """A lower bound for all assignments, from a solver's bound."""
    return None if said.bound is None else max(asked.least, asked.unit * said.bound)


def _clustered(asked: Asked, at: tuple[int, ...], clustered: str) -> bool:
    found = clusters(asked.mapping, at)
    return all(number == 1 if clustered == "=" else number <= 1 for number in found)
