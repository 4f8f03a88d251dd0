"""Engine ``cp-sat`` for mapping, in two phases: a bound from the merged cores, then the model itself."""

from __future__ import annotations

import time
from importlib.metadata import version

from formulations.mapping.cp_sat import cp_model_of
from formulations.mapping.problem import Assignment, merged
from solver.engines.driver_cp_sat import solve
from solver.mapping.base import Asked, Decided, best_of
from solver.plan import Stat

__all__ = ["run"]

#: Of the time limit that the first phase may take; if there is none, seconds.
_SHARE, _FIRST_S = 0.4, 60.0


def run(asked: Asked) -> Decided:
    """Solve."""
    start, limit, unit = time.monotonic(), asked.time_limit_s, asked.unit
    versions, stats = f"ortools {version('ortools')}", dict[str, Stat]()
    least, known = asked.least, best_of(asked, list(asked.known))
    small = merged(asked.mapping)
    if len(small.processors) < len(asked.mapping.processors):
        # The merged problem's own bounds only: a lower bound of this problem need not be one there.
        built = cp_model_of(small, asked.aim, asked.limits)
        said = solve(built.model, _FIRST_S if limit is None else _SHARE * limit, turns=True)
        if said.status == "INFEASIBLE":
            return Decided(None, None, "INFEASIBLE", versions, stats)
        least = max(least, unit * said.least())
        stats["merged_bound"] = least
        stats |= said.stats
        if said.stopped:
            return _answer(asked, known, least, versions, stats)
    most = None if known is None else asked.value(known) // unit
    built = cp_model_of(asked.mapping, asked.aim, asked.limits, least=least // unit, most=most)
    if known is not None:
        built.hint(known)
    left = None if limit is None else max(0.1, limit - (time.monotonic() - start))
    said = solve(built.model, left, turns=True)
    stats |= said.stats
    if said.status == "INFEASIBLE":
        return Decided(None, None, "INFEASIBLE", versions, stats)
    at = best_of(asked, [*([built.chosen(said.solver)] if said.solved else []), *asked.known])
    return _answer(asked, at, max(least, unit * said.least()), versions, stats)


def _answer(asked: Asked, at: Assignment | None, bound: int, versions: str, stats: dict[str, Stat]) -> Decided:
    """What is known of an assignment and a bound."""
    if at is None:
        return Decided(None, bound, "NO_SOLUTION_FOUND", versions, stats)
    value = asked.value(at)
    return Decided(at, min(bound, value), "OPTIMAL" if bound >= value else "FEASIBLE", versions, stats)
