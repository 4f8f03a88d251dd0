"""Engines for several applications on one configuration of a board."""

from __future__ import annotations

from formulations.applications.problem import answers
from formulations.mapping.search import assignments
from solver.applications.base import Asked
from solver.mapping.base import Decided, Engine, quickly
from solver.plan import Stat

__all__ = ["APPLICATION_ENGINES"]

#: Assignments that are tried at most; each has one schedule or more.
_MOST = 50_000


def _cp_sat(asked: Asked) -> Decided:
    from solver.engines import applications_cp_sat  # late: the engines' package imports every solver

    return applications_cp_sat.run(asked)


def _ga(asked: Asked) -> Decided:
    from solver.engines import applications_ga

    return applications_ga.run(asked)


def _exhaustive(asked: Asked) -> Decided:
    number = assignments(asked.several.mapping)
    if number > _MOST:
        note = f"{number:.3g} assignments, at most {_MOST:,} are tried"
        return asked.answer(None, None, stats={"note": note})
    best, stats = asked.best(answers(asked.several)), dict[str, Stat](assignments=number)
    if best is None:
        return Decided(None, None, "INFEASIBLE", stats=stats)
    return asked.answer(best, asked.worth(best), stats=stats)


APPLICATION_ENGINES = {
    engine.name: engine
    for engine in (
        Engine("auto", "cp-sat", True, _cp_sat),
        Engine("cp-sat", "flows, paths and releases with CP-SAT, from the best start", True, _cp_sat),
        Engine("exhaustive", f"all schedules, up to {_MOST:,} assignments", True, _exhaustive),
        Engine("ga", "genetic by SPEA2: all responses and energy", False, _ga),
        Engine("apart", "each application on one processor, or a list schedule: the best of these", False, quickly),
    )
}
