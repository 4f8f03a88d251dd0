"""What an engine says of one layer on a mesh, by the loop of all problems."""

from __future__ import annotations

from typing import NamedTuple

from formulations.clock import ENDLESS, Clock
from formulations.mesh.price import DECISIONS
from formulations.mesh.problem import MeshFormulation, MeshPart
from formulations.pins import parse_pins
from hwmodels.schedule import Choice, Layout
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver.search.loop import decide_part


class Said(NamedTuple):
    """An answer for one objective."""

    status: str
    value: int | None
    bound: int | None
    choice: Choice | None
    layout: Layout | None


def answer(
    engine: str, layer: Layer, machine: Machine, measure: str, pins: tuple[str, ...] = (), clock: Clock = ENDLESS
) -> Said:
    """Ask an engine."""
    part = MeshPart(layer, machine, parse_pins(pins, DECISIONS))
    said = decide_part(MeshFormulation(), part, (measure,), engine, clock)
    choice, layout = (None, None) if said.schedule is None else (said.schedule.choice, said.schedule.layout)
    return Said(said.status, said.values.get(measure), said.bounds[measure], choice, layout)
