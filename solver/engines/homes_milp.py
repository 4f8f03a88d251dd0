"""Engines ``milp`` (HiGHS) and ``milp-cbc`` for homes: `formulations.homes_milp`.

Gaps are 0 and below half a unit (the gcd of the costs). The decoded homes are checked and priced in integers: those
that break a constraint are left out and the model is solved again; others count as proven only if their price is within
half a unit of what the solver reports.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import pulp

from formulations.homes import Chosen, Places
from formulations.homes_milp import Milp, milp
from solver.engines.solvers_milp import highs
from solver.homes_base import Housed

__all__ = ["run_cbc", "run_highs"]

#: Ways to choose homes that are left out one by one before the search gives up.
_MOST_CUTS = 50


def _cbc(time_limit_s: float | None) -> pulp.LpSolver:
    return pulp.PULP_CBC_CMD(msg=False, timeLimit=time_limit_s, gapRel=0.0, gapAbs=0.49, threads=1)


def _run(
    make: Callable[[float | None], pulp.LpSolver],
    places: Places,
    measure: int | None,
    kept: Sequence[int],
    time_limit_s: float | None,
) -> Housed:
    built = milp(places, measure, kept)
    for _ in range(_MOST_CUTS):
        found = _solved(built, make, measure, kept, time_limit_s)
        if isinstance(found, Housed):
            return found
        built.exclude(found)  # within the tolerance of floats, but not of integers
    return Housed(None, built.constant, proven=False)


def _solved(
    built: Milp,
    make: Callable[[float | None], pulp.LpSolver],
    measure: int | None,
    kept: Sequence[int],
    time_limit_s: float | None,
) -> Housed | Chosen:
    """Solve once; return the homes by themselves if they break a constraint in integers."""
    places = built.places
    built.problem.solve(make(None if time_limit_s is None else max(0.01, time_limit_s)))
    status = built.problem.sol_status
    if status == pulp.LpSolutionInfeasible:
        return Housed(None, 0, proven=True, infeasible=True)
    bound = _bound(built)
    if status not in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        return Housed(None, bound, proven=False)
    chosen = built.chosen()
    priced = places.price(chosen)
    over = priced is None or any(one > most for one, most in zip(priced, kept, strict=False))
    if priced is None or over or next(places.faults(chosen), None) is not None:
        return chosen
    value = places.taste(chosen) if measure is None else priced[measure] if places.tables else 0
    reported = float(pulp.value(built.problem.objective) or 0.0) * built.unit + built.constant
    proven = status == pulp.LpSolutionOptimal and abs(value - reported) <= built.unit / 2
    return Housed(chosen, value if proven else min(bound, value), proven)


def _bound(built: Milp) -> int:
    """The dual bound where the solver states one; the sum of every layer's least otherwise."""
    try:
        found = float(built.problem.solverModel.getInfo().mip_dual_bound)
    except (AttributeError, TypeError):
        return built.constant
    if not math.isfinite(found):
        return built.constant
    return built.constant + max(0, math.ceil((found * (1 - 1e-9) - 1e-6) * built.unit))


def run_highs(places: Places, measure: int | None, kept: Sequence[int], time_limit_s: float | None) -> Housed:
    """Minimise one measure with HiGHS, without its presolve (`solver.engines.solvers_milp`)."""
    return _run(partial(highs, presolve=False), places, measure, kept, time_limit_s)


def run_cbc(places: Places, measure: int | None, kept: Sequence[int], time_limit_s: float | None) -> Housed:
    """Minimise one measure with CBC."""
    return _run(_cbc, places, measure, kept, time_limit_s)
