"""All mappings of a network that no other beats in period and energy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from formulations.clock import Clock
from formulations.mapping.problem import Schedule
from formulations.problem import Goal
from solver.mapping.ask import MappingSetting, ask
from solver.mapping.base import Decided, Engine
from solver.mapping.engines import MAPPING_ENGINES
from solver.mapping.plan import MappingPlan
from solver.mapping.search import decided, plan_of
from solver.question import Question

__all__ = ["MappingFront", "front"]

#: Of the time limit that the exact walk may take; periods that are tried after it.
_WALK, _POINTS = 0.5, 8


@dataclass(frozen=True)
class MappingFront:
    """Plans by period, each with the least energy up to some period (its last pin), or with a bound of that energy.

    Attributes
    ----------
    proven : bool
        Whether these are all plans of the front.
    """

    plans: tuple[MappingPlan, ...]
    proven: bool


@dataclass(frozen=True)
class _Point:
    """An answer for the least energy up to a period."""

    best: Decided
    most: int
    period: int
    energy: int


def front(question: Question) -> MappingFront:
    """Return the front of period and energy of a network.

    From the least energy on: the least energy below the last period, then the least period with it (epsilon
    constraint). If half of the time limit does not suffice for all of it, the rest goes to the least period and some
    periods in between: each plan then says how far its energy is from the least one at most. Engine ``ga`` is the
    source's: SPEA2 on both objectives, without bounds. Errors and checks as in `solver.mapping.search.solved`.
    """
    start, chosen = time.monotonic(), MAPPING_ENGINES[question.engine]
    asked, clock = ask(replace(question, objectives=("energy", "period"))), Clock.of(question.time_limit_s)
    if chosen.name == "ga":
        points, proven = _evolved(asked, clock), False
    else:
        half = None if question.time_limit_s is None else _WALK * question.time_limit_s
        points, proven = _walk(asked, chosen, Clock.of(half))
    if not proven and chosen.name != "ga":
        points += _between(asked, chosen, points, clock)
    kept = [one for one in points if not any(_beats(other, one) for other in points)]
    kept = list({(one.period, one.energy): one for one in reversed(kept)}.values())
    plans = (_planned(asked, chosen, one, start) for one in sorted(kept, key=lambda one: one.period))
    return MappingFront(tuple(plans), proven)


def _evolved(asked: MappingSetting, clock: Clock) -> list[_Point]:
    """What a genetic search finds on every configuration."""
    from solver.engines import mapping_ga  # late: the engines' package imports every solver

    found, configurations = list[_Point](), asked.demands.configurations
    for number, configuration in enumerate(configurations):
        request = asked.asked(configuration, Goal("energy"), clock.share(len(configurations) - number).left)
        for at in mapping_ga.front(request):
            best = Decided(Schedule(at), None, "FEASIBLE", configuration=configuration)
            found.append(_point(asked, best, None))
    return found


def _beats(one: _Point, other: _Point) -> bool:
    mine, yours = (one.period, one.energy), (other.period, other.energy)
    return mine != yours and one.period <= other.period and one.energy <= other.energy


def _walk(asked: MappingSetting, engine: Engine, clock: Clock) -> tuple[list[_Point], bool]:
    """The exact front from the least energy on, and whether it is all of it."""
    most, found = None, list[_Point]()
    while not clock.over:
        least = decided(asked, engine.run, Goal("energy", _upto(most)), clock.half())
        if least.value is None:
            return found, least.status == "INFEASIBLE"
        if least.status != "OPTIMAL":
            return [*found, _point(asked, least, most)], False
        goal, best = Goal("period", {**_upto(most), "energy": least.value}), least
        quick = decided(asked, engine.run, goal, clock.half())
        if quick.schedule is not None:
            best = replace(least, schedule=quick.schedule, configuration=quick.configuration)
        if quick.status != "OPTIMAL":  # the least energy is proven, the least period with it is not
            return [*found, _point(asked, replace(best, status="FEASIBLE"), most)], False
        point = _point(asked, best, most)
        found.append(replace(point, most=point.period))
        most = point.period - 1
    return found, False


def _between(asked: MappingSetting, engine: Engine, known: Sequence[_Point], clock: Clock) -> list[_Point]:
    """The least period, and the least energies at some periods above it."""
    quick, found = decided(asked, engine.run, Goal("period"), clock.share(_POINTS + 1)), list[_Point]()
    if quick.schedule is None:
        return found
    first = _point(asked, quick, None)
    last = min((one.period for one in known), default=2 * first.period)
    for number in range(_POINTS):
        period = first.period + (last - first.period) * number // _POINTS
        if clock.over:
            break
        least = decided(asked, engine.run, Goal("energy", _upto(period)), clock.share(_POINTS - number))
        if least.schedule is not None:
            found.append(_point(asked, least, period))
    if not any(one.period <= first.period for one in found):  # the plan that is known, with no bound of its energy
        found.append(replace(first, best=replace(quick, bound=None, status="FEASIBLE")))
    return found


def _upto(period: int | None) -> dict[str, int]:
    return {} if period is None else {"period": period}


def _point(asked: MappingSetting, best: Decided, most: int | None) -> _Point:
    assert best.schedule is not None
    price = asked.instance(best.configuration).price(best.schedule.at, asked.demands.limits.cap)
    pinned = asked.demands.limits.period
    known = [one for one in (most, pinned) if one is not None]
    return _Point(best, max([price.period, *([min(known)] if known else [])]), price.period, price.energy)


def _planned(asked: MappingSetting, engine: Engine, one: _Point, start: float) -> MappingPlan:
    """The plan, with the period up to which its energy is the least one as a pin."""
    pins = (*asked.options.pins, f"period<={one.most}")
    asked = replace(asked, options=asked.options.model_copy(update={"pins": pins}))
    return plan_of(asked, engine, one.best, start)
