"""What every engine for several applications takes and returns."""

from __future__ import annotations

from dataclasses import dataclass, field

from formulations.applications.problem import Goal, Schedule, Several
from solver.plan import Stat, Status

__all__ = ["Asked", "Found"]


@dataclass(frozen=True)
class Asked:
    """One configuration, what is minimised, and the most that objectives may come to."""

    several: Several
    goal: Goal
    time_limit_s: float | None
    caps: tuple[tuple[Goal, int], ...] = ()

    def best(self, found: list[Schedule]) -> Schedule | None:
        """The schedule with the least objective of those that keep deadlines and caps."""
        values = [(value, n) for n, one in enumerate(found) if (value := self.value(one)) is not None]
        return found[min(values)[1]] if values else None

    def value(self, one: Schedule) -> int | None:
        """The objective, None if a deadline is missed or a cap broken."""
        for goal, cap in self.caps:
            value = self.several.value(one, goal)
            if value is None or value > cap:
                return None
        return self.several.value(one, self.goal)


@dataclass(frozen=True)
class Found:
    """An engine's answer; `bound` is in the unit of the objective."""

    schedule: Schedule | None
    bound: int | None
    status: Status
    versions: str = ""
    stats: dict[str, Stat] = field(default_factory=dict)
