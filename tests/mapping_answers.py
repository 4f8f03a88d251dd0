"""What engines say of one configuration of a board, for tests."""

from __future__ import annotations

from dataclasses import dataclass, replace

from formulations.clock import Clock
from formulations.mapping.engines import Asked
from formulations.mapping.problem import MappingFormulation, MappingPart
from formulations.mapping.space import Configuration, Limits, Mapping, Schedule
from formulations.problem import Goal, Stats
from solver.plan.plan import Status
from solver.search.loop import settled

__all__ = ["ENGINES", "Said", "answer"]

ENGINES = (*MappingFormulation.engines, *MappingFormulation.heuristics)


@dataclass(frozen=True)
class Said:
    """An answer for one objective."""

    schedule: Schedule | None
    status: Status
    bound: int | None
    stats: Stats


class Knowing(MappingPart):
    """A part of which something is known."""

    least: int = 0
    known: tuple[Schedule, ...] = ()

    def asked(self, configuration: Configuration, goal: Goal) -> Asked:
        return replace(super().asked(configuration, goal), least=self.least, known=self.known)


def answer(
    engine: str, made: Mapping, aim: str, limits: Limits | None = None, seconds: float = 20, *, least: int = 0,
    known: tuple[Schedule, ...] = (),
) -> Said:  # fmt: skip
    """Decide; a lower bound and some schedules may be known."""
    part = Knowing("n", {(): made}, limits, alone=aim == "latency")
    part.least, part.known = least, known
    said = settled(MappingFormulation(), part, (aim,), engine, Clock.of(seconds))
    schedule = None if said.schedule is None else part.numbered(said.schedule)
    return Said(schedule, said.status, said.bounds[aim], dict(said.stats))
