"""Engines ``milp`` (HiGHS) and ``milp-cbc`` for homes: `formulations.homes.milp`.

The decoded homes are checked and priced in integers: those that break a constraint are left out and the model is solved
again; others count as proven only if their price is what the solver reports (`solver.engines.driver_milp`).
"""

from __future__ import annotations

from collections.abc import Sequence

from formulations.homes.milp import Milp, milp
from formulations.homes.problem import Chosen, Places
from solver.engines.driver_milp import MilpSolver, solve
from solver.homes.base import Housed

__all__ = ["run_cbc", "run_highs"]

#: Ways to choose homes that are left out one by one before the search gives up.
_MOST_CUTS = 50


def _run(
    solver: MilpSolver,
    places: Places,
    measure: int | None,
    kept: Sequence[int],
    time_limit_s: float | None,
) -> Housed:
    built = milp(places, measure, kept)
    for _ in range(_MOST_CUTS):
        found = _solved(built, solver, measure, kept, time_limit_s)
        if isinstance(found, Housed):
            return found
        built.exclude(found)  # within the tolerance of floats, but not of integers
    return Housed(None, built.constant, proven=False)


def _solved(
    built: Milp,
    solver: MilpSolver,
    measure: int | None,
    kept: Sequence[int],
    time_limit_s: float | None,
) -> Housed | Chosen:
    """Solve once; return the homes by themselves if they break a constraint in integers."""
    places = built.places
    said = solve(solver, built.problem, time_limit_s)
    if said.status == "INFEASIBLE":
        return Housed(None, 0, proven=True, infeasible=True)
    bound = built.constant + built.unit * said.least()
    if not said.solved:
        return Housed(None, bound, proven=False, stopped=said.stopped)
    chosen = built.chosen()
    priced = places.price(chosen)
    over = priced is None or any(one > most for one, most in zip(priced, kept, strict=False))
    if priced is None or over or next(places.faults(chosen), None) is not None:
        return Housed(None, bound, proven=False, stopped=True) if said.stopped else chosen
    value = places.taste(chosen) if measure is None else priced[measure] if places.tables else 0
    proven = said.agrees((value - built.constant) / built.unit)
    return Housed(chosen, value if proven else min(bound, value), proven, stopped=said.stopped)


def run_highs(places: Places, measure: int | None, kept: Sequence[int], time_limit_s: float | None) -> Housed:
    """Minimise one measure with HiGHS."""
    return _run("highs", places, measure, kept, time_limit_s)


def run_cbc(places: Places, measure: int | None, kept: Sequence[int], time_limit_s: float | None) -> Housed:
    """Minimise one measure with CBC."""
    return _run("cbc", places, measure, kept, time_limit_s)
