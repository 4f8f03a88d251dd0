"""A `formulations.problem.Model` solved outside the loop of `solver.search`, by CP-SAT or HiGHS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Generic, TypeVar

from formulations.problem import Model
from solver.engines import driver_cp_sat, driver_milp
from solver.engines.driver import Said
from solver.plan import Stat

__all__ = ["Solved", "solve", "versions"]

S = TypeVar("S")


@dataclass(frozen=True)
class Solved(Generic[S]):
    """The answer of a solver.

    Attributes
    ----------
    bound : int or None
        No schedule costs less; what the schedule costs if it is `proven`.
    empty : bool
        Whether there is no schedule at all.
    """

    schedule: S | None
    bound: int | None
    proven: bool
    empty: bool
    stopped: bool
    stats: dict[str, Stat]


def versions(engine: str) -> str:
    """Name the solver of engine "cp-sat" or "milp" with its version."""
    return f"ortools {version('ortools')}" if engine == "cp-sat" else driver_milp.versions("highs")


def solve(made: Model[S], engine: str, time_limit_s: float | None, cost: Callable[[S], int]) -> Solved[S]:
    """Minimise; `cost` is what a schedule costs by its own price."""
    said: Said
    if engine == "cp-sat":
        said = answer = driver_cp_sat.solve(made.model, time_limit_s, turns=made.turns, parameters=made.parameters)
        schedule = made.decode(answer.solver) if said.solved else None
    else:
        said = driver_milp.solve("highs", made.model, time_limit_s)
        schedule = made.decode(made.model) if said.solved else None
    bound = None if said.bound is None else made.base + made.unit * said.bound
    proven = False
    if schedule is not None:
        value = cost(schedule)
        proven = said.agrees((value - made.base) / made.unit) if made.priced else said.status == "OPTIMAL"
        bound = value if proven else None if bound is None else min(bound, value)
    return Solved(schedule, bound, proven, said.status == "INFEASIBLE", said.stopped, said.stats)
