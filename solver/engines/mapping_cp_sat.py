"""Engine ``cp-sat`` for mapping, from the best schedule that is known.

In a pipeline in two phases: a bound from the merged cores, then the model itself.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version

from formulations.clock import Clock
from formulations.mapping.cp_sat import MappingCpModel, cp_model_of
from formulations.mapping.latency_cp_sat import latency_cp_model
from formulations.mapping.problem import Schedule, merged
from solver.engines.driver_cp_sat import solve
from solver.mapping.base import Asked, Decided
from solver.plan import Stat

__all__ = ["run"]

#: Of the time limit that the first phase may take; if there is none, seconds.
_SHARE, _FIRST_S = 0.4, 60.0


def run(asked: Asked) -> Decided:
    """Solve."""
    clock, best = Clock.of(asked.time_limit_s), asked.best(asked.known)
    versions, stats = f"ortools {version('ortools')}", dict[str, Stat]()
    small = merged(asked.mapping)
    if not asked.alone and len(small.processors) < len(asked.mapping.processors):
        # The merged problem's own bounds only: a lower bound of this problem need not be one there.
        built = cp_model_of(small, asked.aim, asked.limits)
        said = solve(built.model, _FIRST_S if asked.time_limit_s is None else _SHARE * asked.time_limit_s, turns=True)
        if said.status == "INFEASIBLE":
            return Decided(None, None, "INFEASIBLE", versions, stats)
        asked = replace(asked, least=max(asked.least, asked.unit * said.least()))
        stats = {"merged_bound": asked.least, **said.stats}
        if said.stopped:
            return asked.answer(best, asked.least, versions, stats)
    built = _model(asked, best)
    said = solve(built.model, clock.left, turns=True)
    stats |= said.stats
    if said.status == "INFEASIBLE":
        return Decided(None, None, "INFEASIBLE", versions, stats)
    solutions = [built.chosen(said.solver)] if said.solved else []
    return asked.answer(
        asked.best([*solutions, *asked.known]), max(asked.least, asked.unit * said.least()), versions, stats
    )


def _model(asked: Asked, best: Schedule | None) -> MappingCpModel:
    """The model with what is known of the objective, and a hint."""
    least, most = asked.least // asked.unit, None if best is None else asked.value(best) // asked.unit
    if asked.alone:
        latest = asked.latest
        built = latency_cp_model(asked.mapping, asked.aim, asked.limits, latest=latest, least=least, most=most)
    else:
        built = cp_model_of(asked.mapping, asked.aim, asked.limits, least=least, most=most)
    if best is not None:
        built.hint(best)
    return built
