"""Engines for several applications on one configuration of a board."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from formulations.applications.problem import answers
from formulations.applications.search import starts
from formulations.mapping.search import assignments
from solver.applications.base import Asked, Found
from solver.plan import Stat

__all__ = ["APPLICATION_ENGINES", "ApplicationEngine"]

#: Assignments that are tried at most; each has one schedule or more.
_MOST = 50_000


@dataclass(frozen=True)
class ApplicationEngine:
    """A way to decide."""

    name: str
    summary: str
    proves: bool
    run: Callable[[Asked], Found]


def _cp_sat(asked: Asked) -> Found:
    from solver.engines import applications_cp_sat  # late: the engines' package imports every solver

    return applications_cp_sat.run(asked)


def _ga(asked: Asked) -> Found:
    from solver.engines import applications_ga

    return applications_ga.run(asked)


def _apart(asked: Asked) -> Found:
    one = asked.best(starts(asked.several, asked.goal))
    return Found(one, None, "NO_SOLUTION_FOUND" if one is None else "FEASIBLE")


def _exhaustive(asked: Asked) -> Found:
    number = assignments(asked.several.mapping)
    if number > _MOST:
        note = f"{number:.3g} assignments, at most {_MOST:,} are tried"
        return Found(None, None, "NO_SOLUTION_FOUND", stats={"note": note})
    priced = ((asked.value(one), one) for one in answers(asked.several))
    kept = ((value, one) for value, one in priced if value is not None)
    least = min(kept, key=lambda found: found[0], default=None)
    stats: dict[str, Stat] = {"assignments": number}
    if least is None:
        return Found(None, None, "INFEASIBLE", stats=stats)
    return Found(least[1], least[0], "OPTIMAL", stats=stats)


APPLICATION_ENGINES: dict[str, ApplicationEngine] = {
    engine.name: engine
    for engine in (
        ApplicationEngine("auto", "cp-sat", True, _cp_sat),
        ApplicationEngine("cp-sat", "flows, paths and releases with CP-SAT, from the best start", True, _cp_sat),
        ApplicationEngine("exhaustive", f"all schedules, up to {_MOST:,} assignments", True, _exhaustive),
        ApplicationEngine("ga", "genetic by SPEA2: all responses and energy", False, _ga),
        ApplicationEngine(
            "apart", "each application on one processor, or a list schedule: the best of these", False, _apart
        ),
    )
}
