"""All mappings of a network that no other beats in period and energy."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from formulations.mapping.problem import Limits
from solver.mapping.ask import Best, Setting, ask, decided, left
from solver.mapping.base import Asked, Decided
from solver.mapping.engines import MAPPING_ENGINES, MappingEngine
from solver.mapping.plan import MappingPlan
from solver.mapping.solve import plan_of
from solver.question import Question

__all__ = ["MappingFront", "front"]

#: Of the time limit that the exact walk may take; periods that are tried after it.
_WALK, _POINTS = 0.5, 8
#: What is left of a time limit is at least so much.
_LEAST_S = 0.1


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

    best: Best
    most: int
    period: int
    energy: int


def front(question: Question) -> MappingFront:
    """Return the front of period and energy of a network.

    From the least energy on: the least energy below the last period, then the least period with it (epsilon
    constraint). If half of the time limit does not suffice for all of it, the rest goes to the least period and some
    periods in between: each plan then says how far its energy is from the least one at most. Engine ``ga`` is the
    source's: SPEA2 on both objectives, without bounds. Errors and checks as in `solver.mapping.solve.solve`.
    """
    start, chosen = time.monotonic(), MAPPING_ENGINES[question.engine]
    asked = ask(replace(question, objectives=("energy", "period")))
    points, proven = (_evolved(asked, start), False) if chosen.name == "ga" else _walk(asked, chosen, start)
    if not proven and chosen.name != "ga":
        points += _between(asked, chosen, points, start)
    kept = [one for one in points if not any(_beats(other, one) for other in points)]
    kept = list({(one.period, one.energy): one for one in reversed(kept)}.values())
    plans = (_planned(asked, chosen, one, start) for one in sorted(kept, key=lambda one: one.period))
    return MappingFront(tuple(plans), proven)


def _evolved(asked: Setting, start: float) -> list[_Point]:
    """What a genetic search finds on every configuration."""
    from solver.engines import mapping_ga  # late: the engines' package imports every solver

    found, limits = list[_Point](), asked.demands.limits
    configurations = asked.demands.configurations
    for number, configuration in enumerate(configurations):
        seconds = left(asked, start)
        share = None if seconds is None else seconds / (len(configurations) - number)
        request = Asked(asked.instance(configuration), "energy", limits, share)
        for at in mapping_ga.front(request):
            price = request.mapping.price(at, limits.cap)
            best = Best(Decided(at, None, "FEASIBLE"), configuration, price.energy)
            found.append(_Point(best, price.period, price.period, price.energy))
    return found


def _beats(one: _Point, other: _Point) -> bool:
    mine, yours = (one.period, one.energy), (other.period, other.energy)
    return mine != yours and one.period <= other.period and one.energy <= other.energy


def _walk(asked: Setting, engine: MappingEngine, start: float) -> tuple[list[_Point], bool]:
    """The exact front from the least energy on, and whether it is all of it."""
    limits, found = asked.demands.limits, list[_Point]()
    while True:
        seconds = left(asked, start)
        if seconds is not None and asked.options.time_limit_s is not None:
            seconds = (seconds - (1 - _WALK) * asked.options.time_limit_s) / 2
            if seconds <= 0:
                return found, False
        least = decided(asked, engine, "energy", limits, seconds)
        if least.said.at is None or least.value is None:
            return found, least.said.status == "INFEASIBLE"
        if least.said.status != "OPTIMAL":
            return [*found, _point(asked, least, limits)], False
        quick = decided(asked, engine, "period", replace(limits, energy=least.value), seconds)
        best = (
            least
            if quick.said.at is None
            else replace(quick, said=replace(least.said, at=quick.said.at, order=quick.said.order))
        )
        if quick.said.status != "OPTIMAL":  # the least energy is proven, the least period with it is not
            best = replace(best, said=replace(best.said, status="FEASIBLE"))
        found.append(_point(asked, best, limits))
        if quick.said.status != "OPTIMAL":
            return found, False
        found[-1] = replace(found[-1], most=found[-1].period)
        limits = replace(limits, period=found[-1].period - 1)


def _between(asked: Setting, engine: MappingEngine, known: list[_Point], start: float) -> list[_Point]:
    """The least period, and the least energies at some periods above it."""
    limits, found = asked.demands.limits, list[_Point]()
    seconds = left(asked, start)
    quick = decided(asked, engine, "period", limits, None if seconds is None else seconds / (_POINTS + 1))
    if quick.said.at is None:
        return found
    first = _point(asked, quick, limits)
    last = min((one.period for one in known), default=2 * first.period)
    for number in range(_POINTS):
        period = first.period + (last - first.period) * number // _POINTS
        seconds = left(asked, start)
        if seconds is not None and seconds <= _LEAST_S:
            break
        bounded = replace(limits, period=period)
        least = decided(asked, engine, "energy", bounded, None if seconds is None else seconds / (_POINTS - number))
        if least.said.at is not None:
            found.append(_point(asked, least, bounded))
    if not any(one.period <= first.period for one in found):  # the plan that is known, with no bound of its energy
        found.append(replace(first, best=replace(quick, said=replace(quick.said, bound=None, status="FEASIBLE"))))
    return found


def _point(asked: Setting, best: Best, limits: Limits) -> _Point:
    assert best.said.at is not None
    price = asked.instance(best.configuration).price(best.said.at, limits.cap)
    most = price.period if limits.period is None else limits.period
    return _Point(best, max(most, price.period), price.period, price.energy)


def _planned(asked: Setting, engine: MappingEngine, one: _Point, start: float) -> MappingPlan:
    """The plan, with the period up to which its energy is the least one as a pin."""
    pins = (*asked.options.pins, f"period<={one.most}")
    return plan_of(replace(asked, options=asked.options.model_copy(update={"pins": pins})), engine, one.best, start)
