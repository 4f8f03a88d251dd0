"""Engines ``milp`` and ``clustering`` for mapping: `formulations.mapping.milp`, and `latency_milp`, with HiGHS or CBC.

The decoded schedule is priced in integers. It counts as proven only if the solver's bound rounds up to that price and
is believed (`solver.engines.driver_milp`): else the answer has no bound. Latencies are proven quickly where few tasks
may run side by side; where many may, the disjunctions bound poorly and only small networks are proven.
"""

from __future__ import annotations

from typing import Literal

from formulations.mapping.latency_milp import latency_model
from formulations.mapping.milp import model
from formulations.mapping.problem import Assignment, clusters
from solver.engines.driver_milp import MilpSolver, solve, versions
from solver.mapping.base import Asked, Decided
from solver.plan import Stat

__all__ = ["run"]


def run(asked: Asked, solver: MilpSolver = "highs", clustered: Literal["", "=", "<="] = "") -> Decided:
    """Solve."""
    if asked.alone:
        made = latency_model(asked.mapping, asked.aim, asked.limits, asked.latest)
    else:
        made = model(asked.mapping, asked.aim, asked.limits, clustered=clustered)
    if asked.least:
        made.problem += made.problem.objective >= asked.least // asked.unit
    said = solve(solver, made.problem, asked.time_limit_s)
    stats: dict[str, Stat] = {"variables": len(made.problem.variables()), "constraints": len(made.problem.constraints)}
    stats |= said.stats
    if not said.believed:
        stats["note"] = "times are too large for a proof by this solver: a larger tick_ps helps"
    if said.status == "INFEASIBLE":
        return Decided(None, None, "INFEASIBLE", versions(solver), stats)
    bound = None if said.bound is None else max(asked.least, asked.unit * said.bound)
    solutions = [made.chosen()] if said.solved else []
    if clustered and solutions and not _clustered(asked, solutions[0].at, clustered):
        solutions, stats["note"] = [], "the solver's answer is no clustering"
    best = asked.best(solutions if clustered else [*solutions, *asked.known])
    return asked.answer(best, bound, versions(solver), stats)


def _clustered(asked: Asked, assignment: Assignment, clustered: str) -> bool:
    numbers = clusters(asked.mapping, assignment)
    return all(number == 1 if clustered == "=" else number <= 1 for number in numbers)
