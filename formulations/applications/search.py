"""How a configuration of a board is searched for several applications.

CP-SAT goes in two phases. First the objective is minimised. If that proves nothing in its share of the time, better
schedules are refuted: a model without an objective, only with a cap just below the best value, is found infeasible far
sooner (or has a better one).

The genetic search (`evolved`) has as many objectives as applications, their responses, and energy. What misses a
deadline is penalised for each such application; tasks run in the order of the graph.

Searches start (`starts`) from schedules with each application on one processor, or all by a list schedule.

Source: `heterogeneous_mapping_and_banks` 3.3.5.2 (genetic search).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product, takewhile

from formulations.applications.space import Goal, Several, answers, floor, responses
from formulations.mapping.board import Asking
from formulations.mapping.search import assignments, list_scheduled
from formulations.mapping.space import Assignment, Schedule
from formulations.problem import Model, Report, Steps, Unable

#: Schedules that are tried at most.
_MOST = 3_000


def apart(several: Several) -> Iterator[Assignment]:
    """All assignments with each application on one processor; what cannot run there is on a core of its own."""
    mapping = several.mapping
    choices = product(range(len(mapping.processors)), repeat=len(several.streams))
    for chosen in islice(choices, _MOST):
        at: list[int] = []
        for a, (stream, p) in enumerate(zip(several.streams, chosen, strict=True)):
            spare = mapping.host[a % len(mapping.host)]
            for i in stream.tasks:
                able = mapping.able[i]
                at.append(p if p in able else spare if spare in able else able[0])
        yield tuple(at)


def starts(several: Several, goal: Goal, number: int = 20) -> list[Schedule]:
    """The best of these by deadlines missed, then by the objective; each in the order of the graph."""
    lists = (list_scheduled(several.mapping, rule) for rule in ("heft", "cpop", "peft"))
    found = [several.plain(at) for at in dict.fromkeys([*apart(several), *lists])]

    def key(one: Schedule) -> tuple[int, int]:
        """Deadlines missed; the responses together, periods twice where unknown, or if none is missed the objective."""
        known = responses(several, one)
        late = sum(r is None or r > s.deadline for r, s in zip(known, several.streams, strict=True))
        total = [2 * s.period if r is None else r for r, s in zip(known, several.streams, strict=True)]
        return late, sum(total) if late else several.figure(one, goal, total)

    return sorted(found, key=key)[:number]


#: Assignments that are tried at most; each has one schedule or more.
MOST = 50_000
#: Of the time limit that the first phase may take; if there is none, seconds. Of what is left a refutation may take.
_SHARE, _FIRST_S, _REST = 0.4, 60.0, 0.8
_LEAST_S = 0.1
#: Generations without a time limit; what a missed deadline adds, in periods.
_GENERATIONS, _PENALTY = 100, 10


@dataclass(frozen=True)
class Asked(Asking):
    """One configuration, what is minimised, and the most that objectives may come to."""

    several: Several
    goal: Goal
    caps: tuple[tuple[Goal, int], ...] = ()

    def worth(self, schedule: Schedule) -> int | None:
        """The objective, None if a deadline is missed or a cap broken."""
        several, kept = self.several, self.several.kept(schedule)
        if kept is None or any(several.figure(schedule, goal, kept) > cap for goal, cap in self.caps):
            return None
        return several.figure(schedule, self.goal, kept)

    def floor(self) -> int:
        """By `formulations.applications.space.floor`."""
        return floor(self.several, self.goal)

    def starts(self) -> list[Schedule]:
        """What is known, each application on one processor, and list schedules."""
        return [*self.known, *starts(self.several, self.goal)]


class _Search:
    """What is known: the best schedule, its value, and a lower bound for all schedules."""

    def __init__(self, asked: Asked) -> None:
        self.asked, self.clock, known = asked, asked.clock, asked.starts()
        self.best, self.hint = asked.best(known), known[0]
        self.unit, self.bound = asked.several.unit(asked.goal), asked.floor()

    @property
    def value(self) -> int | None:
        """Of the best schedule."""
        return None if self.best is None else self.asked.worth(self.best)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C has ended a solver."""
        return bool(self.asked.stats.get("interrupted"))

    def run(self) -> Steps[Schedule]:
        """Minimise, then refute."""
        limit = self.clock.left
        report = yield from self._solve(self.value, _FIRST_S if limit is None else _SHARE * limit)
        if report.bound is not None and report.schedule is None and self.best is None and not self.interrupted:
            report = yield from self._solve(None, self._left())
        if report.bound is None:
            return None, None
        if not self.interrupted:
            yield from self._refute()
        return self.best, self.bound

    def _left(self, share: float = 1.0) -> float | None:
        return None if self.clock.left is None else max(_LEAST_S, share * self.clock.remaining)

    def _refute(self) -> Generator[Model[Schedule], Report[Schedule], None]:
        """Ask for better schedules; if that takes too long, for much better ones."""
        share, cap = _REST, None if self.value is None else self.value - self.unit
        while (value := self.value) is not None and cap is not None and self.bound < value:
            seconds = self._left(share)
            if seconds is not None and seconds <= _LEAST_S:
                return
            report = yield from self._solve(cap, seconds, aimless=True)
            if self.interrupted:
                return
            if report.bound is None:
                self.bound = max(self.bound, cap + self.unit)
            elif report.schedule is None:
                share = 1.0
                cap = (self.bound + cap) // 2
                continue
            cap = None if self.value is None else self.value - self.unit

    def _solve(
        self, cap: int | None, seconds: float | None, *, aimless: bool = False
    ) -> Generator[Model[Schedule], Report[Schedule], Report[Schedule]]:
        """Solve with a cap of the objective, or for any schedule within it."""
        from formulations.applications.cp_sat import applications_cp_model  # late: models import their solvers

        asked = self.asked
        caps = [*asked.caps, *([] if cap is None else [(asked.goal, cap)])]
        built = applications_cp_model(asked.several, asked.goal, caps)
        if aimless:
            built.model.clear_objective()  # type: ignore[no-untyped-call]
        built.hint(self.hint if self.best is None else self.best)
        report = yield Model(built.model, built.chosen, unit=self.unit, seconds=seconds, turns=True, solver="cp-sat")
        if not aimless:
            self.bound = max(self.bound, report.bound or 0)
        if report.schedule is not None:
            self.best = asked.best([report.schedule, *([] if self.best is None else [self.best])])
        return report


def exhaustive(asked: Asked) -> tuple[Schedule | None, int | None]:
    """All schedules."""
    number = assignments(asked.several.mapping)
    if number > MOST:
        raise Unable(f"{number:.3g} assignments, at most {MOST:,} are tried")
    asked.stats["assignments"] = number
    best = asked.best(takewhile(lambda _: not asked.clock.over, answers(asked.several)))
    if asked.clock.over:
        return best, asked.floor()
    return best, None if best is None else asked.worth(best)


SEARCHES: dict[str, Callable[[Asked], Steps[Schedule]]] = dict.fromkeys(
    ("auto", "cp-sat"), lambda asked: _Search(asked).run()
)


def evolved(asked: Asked, seed: int = 0) -> list[Schedule]:
    """Evolve, and return the last generation."""
    from formulations.mapping.genetic import SIZE, spea2  # late: DEAP

    several = asked.several

    def price(found: Sequence[Assignment]) -> list[tuple[float, ...]]:
        return [_values(several, at) for at in found]

    first = [one.at for one in starts(several, asked.goal, SIZE)]
    last = spea2(first, several.mapping.able, price, asked.clock, seed, _GENERATIONS)
    asked.stats.update(seed=seed, kept=len(last))
    return [several.plain(at) for at in last]


def _values(several: Several, at: Assignment) -> tuple[float, ...]:
    values = list[float]()
    for response, stream in zip(responses(several, several.plain(at)), several.streams, strict=True):
        late = response is None or response > stream.deadline
        values.append((2 * stream.period if response is None else response) + late * _PENALTY * stream.period)
    return (*values, several.mapping.price(at).energy)
