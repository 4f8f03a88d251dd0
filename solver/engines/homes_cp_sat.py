"""Engine ``cp-sat`` for homes: `formulations.homes.cp_sat`."""

from __future__ import annotations

from collections.abc import Sequence

from formulations.homes.cp_sat import cp_sat
from formulations.homes.problem import Chosen, Places
from solver.engines.driver_cp_sat import solve
from solver.homes.base import Housed

__all__ = ["least_overflow", "run"]


def run(places: Places, measure: int | None, kept: Sequence[int], time_limit_s: float | None) -> Housed:
    """Minimise one measure; `kept` are the most that those before it may be."""
    built = cp_sat(places, measure, kept)
    said = solve(built.model, time_limit_s)
    if said.status == "INFEASIBLE":
        return Housed(None, 0, proven=True, infeasible=True)
    chosen = built.chosen(said.solver) if said.solved else None
    return Housed(chosen, said.least(), proven=said.status == "OPTIMAL", stopped=said.stopped)


def least_overflow(places: Places) -> Chosen:
    """Homes that exceed the memories by the fewest bytes."""
    built = cp_sat(places, None, overflow=True)
    return built.chosen(solve(built.model, 10.0).solver)
