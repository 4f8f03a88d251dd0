"""All mappings of a network that no other beats in period and energy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from formulations.clock import Clock
from formulations.mapping.part import MappingPart
from formulations.mapping.problem import Schedule
from formulations.problem import Goal
from hwmodels.board.schedule import MappingSchedule
from solver.generic import GenericProblem
from solver.plan import Plan
from solver.question import Question
from solver.search import Answer, settled, status_of

#: Of the time limit that the exact walk may take, and of that the next point; periods that are tried after it.
_WALK, _EACH, _POINTS = 0.5, 4 / 3, 8


@dataclass(frozen=True)
class _Point:
    """An answer for the least energy up to a period."""

    said: Answer[MappingSchedule]
    most: int
    period: int
    energy: int


def front(problem: GenericProblem, question: Question) -> tuple[list[Plan], bool]:
    """Return the front of period and energy of a network, and whether it is all of it.

    Plans by period, each with the least energy up to some period (its last pin), or with a bound of that energy.

    From the least energy on: the least energy below the last period, then the least period with it (epsilon
    constraint). If half of the time limit does not suffice for all of it, the rest goes to the least period and some
    periods in between: each plan then says how far its energy is from the least one at most. Engine ``ga`` is the
    source's: SPEA2 on both objectives, without bounds. Errors and checks as in `solver.generic`.
    """
    start, walk = time.monotonic(), _Walk(problem, replace(question, objectives=("energy", "period")))
    clock = Clock.of(question.time_limit_s)
    if question.engine == "ga":
        points, proven = walk.evolved(clock), False
    else:
        points, proven = walk.exact(Clock.of(None if clock.left is None else _WALK * clock.left))
    if not proven and question.engine != "ga":
        points += walk.between(points, clock)
    kept = [one for one in points if not any(_beats(other, one) for other in points)]
    kept = list({(one.period, one.energy): one for one in reversed(kept)}.values())
    return [walk.planned(one, start) for one in sorted(kept, key=lambda one: one.period)], proven


def _beats(one: _Point, other: _Point) -> bool:
    mine, yours = (one.period, one.energy), (other.period, other.energy)
    return mine != yours and one.period <= other.period and one.energy <= other.energy


class _Walk:
    """Answers for caps of the period."""

    def __init__(self, problem: GenericProblem, question: Question) -> None:
        self.problem, self.question = problem, question
        (part,) = problem.parts(question)
        assert isinstance(part, MappingPart)
        self.part = part

    def asked(self, measures: tuple[str, ...], most: int | None, clock: Clock) -> Answer[MappingSchedule]:
        """Minimise, with a period of at most so much."""
        caps = {} if most is None else {"period": most}
        return settled(self.problem.formulation, self.part, measures, self.question.engine, clock, most=caps)

    def point(self, said: Answer[MappingSchedule], most: int | None) -> _Point:
        """A point of the front, maybe."""
        known = [one for one in (most, self.part.limits.period) if one is not None]
        period, energy = said.values["period"], said.values["energy"]
        return _Point(said, max([period, *([min(known)] if known else [])]), period, energy)

    def evolved(self, clock: Clock) -> list[_Point]:
        """What a genetic search finds on every configuration."""
        from formulations.mapping.genetic import front as evolved  # late: DEAP

        found = []
        for piece in self.part.pieces(Goal("energy", clock=clock)):
            for at in evolved(piece.asked(Goal("energy", clock=clock))):
                schedule = piece.named(Schedule(at))
                values = self.part.price(schedule).measures
                said = Answer(schedule, values, {"energy": None, "period": None}, "FEASIBLE")
                found.append(self.point(said, None))
        return found

    def exact(self, clock: Clock) -> tuple[list[_Point], bool]:
        """The exact front from the least energy on, and whether it is all of it."""
        most, found = None, list[_Point]()
        while not clock.over:
            said = self.asked(("energy", "period"), most, clock.share(_EACH))
            if said.schedule is None:
                return found, said.status == "INFEASIBLE"
            point = self.point(said, most)
            if said.status != "OPTIMAL":
                return [*found, point], False
            found.append(replace(point, most=point.period))
            most = point.period - 1
        return found, False

    def between(self, known: Sequence[_Point], clock: Clock) -> list[_Point]:
        """The least period, and the least energies at some periods above it."""
        quick, found = self.asked(("period",), None, clock.share(_POINTS + 1)), list[_Point]()
        if quick.schedule is None:
            return found
        first = self.point(quick, None)
        last = min((one.period for one in known), default=2 * first.period)
        for number in range(_POINTS):
            period = first.period + (last - first.period) * number // _POINTS
            if clock.over:
                break
            least = self.asked(("energy",), period, clock.share(_POINTS - number))
            if least.schedule is not None:
                found.append(self.point(least, period))
        if not any(one.period <= first.period for one in found):  # the plan that is known, with no bound of its energy
            found.append(replace(first, said=replace(quick, bounds={"energy": None})))
        return found

    def planned(self, point: _Point, start: float) -> Plan:
        """The plan, with the period up to which its energy is the least one as a pin."""
        question = replace(self.question, pins=(*self.question.pins, f"period<={point.most}"))
        bounds = {name: point.said.bounds.get(name) for name in question.objectives}
        values = {name: point.said.values[name] for name in bounds}
        said = replace(point.said, bounds=bounds, status=status_of(values, bounds, empty=False))
        (part,) = self.problem.parts(question)
        return self.problem.made(question, [(part, said)], start)
