"""What an engine is asked about one configuration of a board, and what it answers; `solver.applications` asks alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from formulations.mapping.floor import floor
from formulations.mapping.latency import horizon, latency_of, usual
from formulations.mapping.problem import Aim, Assignment, Limits, Mapping, Schedule
from formulations.mapping.search import starts
from solver.plan import Stat, Status

__all__ = ["Asked", "Asking", "Decided", "Engine", "quickly"]


@dataclass(frozen=True)
class Decided:
    """An answer; `bound` is in the unit of the objective.

    Attributes
    ----------
    value : int or None
        The objective of the schedule.
    configuration : tuple of int
        The cores that the schedule is for, once several configurations have been asked.
    """

    schedule: Schedule | None
    bound: int | None
    status: Status
    versions: str = ""
    stats: dict[str, Stat] = field(default_factory=dict)
    value: int | None = None
    configuration: tuple[int, ...] = ()

    @property
    def interrupted(self) -> bool:
        """Whether a signal or a limit ended the search."""
        return bool(self.stats.get("interrupted"))


class Asking(ABC):
    """A question about one configuration."""

    time_limit_s: float | None

    @abstractmethod
    def worth(self, schedule: Schedule) -> int | None:
        """Return the objective of a schedule, None if it does not keep the limits."""

    @abstractmethod
    def floor(self) -> int:
        """Return what no schedule is below, without a search."""

    @abstractmethod
    def starts(self) -> list[Schedule]:
        """Return what searches start from."""

    def best(self, schedules: Iterable[Schedule]) -> Schedule | None:
        """Return the first one with the least objective of those that keep the limits."""
        least, best = None, None
        for schedule in schedules:
            worth = self.worth(schedule)
            if worth is not None and (least is None or worth < least):
                least, best = worth, schedule
        return best

    def answer(
        self, best: Schedule | None, bound: int | None, versions: str = "", stats: dict[str, Stat] | None = None
    ) -> Decided:
        """Return the answer of a search that has not found the question infeasible."""
        value = None if best is None else self.worth(best)
        if value is None:
            return Decided(None, bound, "NO_SOLUTION_FOUND", versions, stats or {})
        status: Status = "OPTIMAL" if bound is not None and bound >= value else "FEASIBLE"
        return Decided(best, None if bound is None else min(bound, value), status, versions, stats or {}, value)


@dataclass(frozen=True)
class Engine:
    """A way to decide; `alone`: whether it decides the latency of one inference."""

    name: str
    summary: str
    proves: bool
    run: Callable[[Any], Decided]
    alone: bool = True


def quickly(asked: Asking) -> Decided:
    """Return the best of the usual starts: for a search that is stopped, or has no time."""
    return asked.answer(asked.best(asked.starts()), None)


@dataclass(frozen=True)
class Asked(Asking):
    """What is minimised on one configuration, the limits, and what is known already.

    Attributes
    ----------
    least : int
        A lower bound for all assignments, as far as known.
    known : tuple of Schedule
        Some to start from.
    """

    mapping: Mapping
    aim: Aim
    limits: Limits
    time_limit_s: float | None
    least: int = 0
    known: tuple[Schedule, ...] = ()

    @property
    def alone(self) -> bool:
        """Whether the latency of one inference counts, so that tasks need an order."""
        return self.aim == "latency" or self.limits.latency is not None

    @property
    def unit(self) -> int:
        """What every energy is a multiple of, 1 for periods."""
        return self.mapping.energy_unit if self.aim == "energy" else 1

    @property
    def latest(self) -> int:
        """A latency that all schedules keep that are looked for."""
        if self.limits.latency is not None:
            return min(self.limits.latency, horizon(self.mapping))
        first = self.best(self.known)
        return horizon(self.mapping) if first is None else latency_of(self.mapping, first)

    def figures(self, schedule: Schedule) -> dict[str, int]:
        """Period and energy, and latency where it counts."""
        price = self.mapping.price(schedule.at, self.limits.cap)
        latency = {"latency": latency_of(self.mapping, schedule)} if self.alone else {}
        return {"period": price.period, "energy": price.energy, **latency}

    def value(self, schedule: Schedule) -> int:
        """The objective of a schedule."""
        return self.figures(schedule)[self.aim]

    def worth(self, schedule: Schedule) -> int | None:
        """The same, None if a limit is not kept."""
        figures, limits = self.figures(schedule), self.limits
        limit = {"period": limits.period, "energy": limits.energy, "latency": limits.latency}
        kept = all(value <= most for name, value in figures.items() if (most := limit[name]) is not None)
        return figures[self.aim] if kept else None

    def floor(self) -> int:
        """By `formulations.mapping.floor`."""
        return floor(self.mapping, self.aim)

    def scheduled(self, assignments: Iterable[Assignment]) -> list[Schedule]:
        """Return assignments as schedules, in the usual order where an order counts."""
        return [usual(self.mapping, at) if self.alone else Schedule(at) for at in assignments]

    def starts(self) -> list[Schedule]:
        """What is known, all on one processor, and list schedules."""
        return [*self.known, *self.scheduled(dict.fromkeys(starts(self.mapping)))]

    def started(self) -> Asked:
        """Return the same from the usual starts on, with the bound that takes no search."""
        kept = [start for start in self.starts() if self.worth(start) is not None]
        return replace(self, known=tuple(dict.fromkeys(kept)), least=max(self.least, self.floor()))
