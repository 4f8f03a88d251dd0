"""What every engine for several applications is asked."""

from __future__ import annotations

from dataclasses import dataclass

from formulations.applications.problem import Goal, Several, floor
from formulations.applications.search import starts
from formulations.mapping.problem import Schedule
from solver.mapping.base import Asking

__all__ = ["Asked"]


@dataclass(frozen=True)
class Asked(Asking):
    """One configuration, what is minimised, the most that objectives may come to, and schedules to start from."""

    several: Several
    goal: Goal
    time_limit_s: float | None
    caps: tuple[tuple[Goal, int], ...] = ()
    known: tuple[Schedule, ...] = ()

    def worth(self, schedule: Schedule) -> int | None:
        """The objective, None if a deadline is missed or a cap broken."""
        several, kept = self.several, self.several.kept(schedule)
        if kept is None or any(several.figure(schedule, goal, kept) > cap for goal, cap in self.caps):
            return None
        return several.figure(schedule, self.goal, kept)

    def floor(self) -> int:
        """By `formulations.applications.problem.floor`."""
        return floor(self.several, self.goal)

    def starts(self) -> list[Schedule]:
        """What is known, each application on one processor, and list schedules."""
        return [*self.known, *starts(self.several, self.goal)]
