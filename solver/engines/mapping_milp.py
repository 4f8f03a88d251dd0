"""Engines ``milp`` and ``clustering`` for mapping: `formulations.mapping_milp` with HiGHS or CBC.

The decoded assignment is priced in integers. It counts as proven only if the solver's bound, less a quarter of the unit
for its tolerances, rounds up to that price; and only if no coefficient is so large that a variable within the solver's
tolerance of an integer changes a row by a whole unit (found wrong at 10**7): else the answer has no bound. HiGHS does
not presolve (`solver.engines.solvers_milp`): most mappings are solved three times as fast and more without it.
"""

from __future__ import annotations

from importlib.metadata import version
from math import ceil
from typing import Literal

import pulp

from formulations.mapping import clusters
from formulations.mapping_milp import MappingModel, model
from solver.engines.solvers_milp import bound_by
from solver.mapping_base import Asked, Decided, best_of
from solver.plan import Stat, Status

__all__ = ["LARGEST", "SOLVED", "least_of", "run", "solved"]

#: Coefficients up to which HiGHS and CBC are believed: a millionth of one is at most a unit.
LARGEST = 1_000_000
SOLVED = (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible)


def run(asked: Asked, *, solver: str = "highs", clustered: Literal["", "=", "<="] = "") -> Decided:
    """Solve."""
    made = model(asked.mapping, asked.aim, asked.limits, clustered=clustered)
    bound, versions, stats = solved(made, asked, solver, asked.largest)
    believed = asked.largest <= LARGEST
    if made.problem.sol_status == pulp.LpSolutionInfeasible and believed:
        return Decided(None, None, "INFEASIBLE", versions, stats)
    found = [made.chosen()] if made.problem.sol_status in SOLVED else []
    if not clustered:
        found += asked.known
    at = best_of(asked, found)
    least = least_of(asked, bound)
    if at is None:
        return Decided(None, least, "NO_SOLUTION_FOUND", versions, stats)
    if clustered and not _clustered(asked, at, clustered):
        return Decided(
            None, least, "NO_SOLUTION_FOUND", versions, {**stats, "note": "the solver's answer is no clustering"}
        )
    value = asked.value(at)
    status: Status = "OPTIMAL" if least is not None and least >= value else "FEASIBLE"
    return Decided(at, None if least is None else min(least, value), status, versions, stats)


def solved(made: MappingModel, asked: Asked, solver: str, largest: int) -> tuple[float | None, str, dict[str, Stat]]:
    """Solve a model; return its bound as far as it is believed, versions and statistics."""
    if asked.least:
        made.problem += made.problem.objective >= asked.least // asked.unit
    bound = bound_by(solver, made.problem, asked.time_limit_s, presolve=False)
    package = "highspy" if solver == "highs" else "pulp"
    versions = f"pulp {version('pulp')}, {package} {version(package)}"
    stats: dict[str, Stat] = {"variables": len(made.problem.variables()), "constraints": len(made.problem.constraints)}
    if largest > LARGEST:
        bound, stats["note"] = None, "times are too large for a proof by this solver: a larger tick_ps helps"
    return bound, versions, stats


def least_of(asked: Asked, bound: float | None) -> int | None:
    """What no assignment undercuts, by a solver's bound."""
    return None if bound is None else max(asked.least, asked.unit * ceil(bound - 0.25))


def _clustered(asked: Asked, at: tuple[int, ...], clustered: str) -> bool:
    found = clusters(asked.mapping, at)
    return all(number == 1 if clustered == "=" else number <= 1 for number in found)
