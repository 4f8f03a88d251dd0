"""What an engine says of one layer on a small engine, by the loop of all problems."""

from __future__ import annotations

from typing import NamedTuple

from formulations.clock import ENDLESS, Clock
from formulations.partial_engine.orders import Step, from_text
from formulations.partial_engine.problem import DECISIONS, EngineFormulation, EnginePart
from formulations.pins import parse_pins
from hwmodels.partial_engine.schedule import EngineSchedule
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver.search.loop import decide_part


class Said(NamedTuple):
    """An answer; `bytes` of DRAM."""

    status: str
    bytes: int | None
    bound: int | None
    schedule: EngineSchedule | None

    @property
    def steps(self) -> list[Step]:
        """The program."""
        return from_text(self.schedule.program)


def answer(
    engine: str, layer: Layer, machine: Machine, pins: tuple[str, ...] = (), clock: Clock = ENDLESS
) -> Said:  # fmt: skip
    """Ask an engine."""
    part = EnginePart(layer, machine, parse_pins(pins, DECISIONS))
    said = decide_part(EngineFormulation(), part, ("bytes",), engine, clock)
    return Said(said.status, said.values.get("bytes"), said.bounds["bytes"], said.schedule)
