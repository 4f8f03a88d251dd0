"""Plan one layer or every layer of a network, and where there are several memories off the chip choose homes."""

from __future__ import annotations

from dataclasses import dataclass

from formulations.homes.places import Places
from formulations.homes.read import check_home_pins, places_of
from formulations.pins import Pins
from formulations.tiling.nests import Nests
from formulations.tiling.part import Assignment, NestPart
from instances.applications import Applications
from instances.buffers import Buffers
from instances.errors import InputError
from instances.problems import nested
from instances.variants import Variants
from instances.workload import Layer
from solver.homes.solve import assignments
from solver.options import pick_layers, pick_nests, pick_pins
from solver.question import Question


@dataclass(frozen=True)
class Request:
    """What is asked about layers, checked; `places` where the machine has several memories off the chip."""

    asked: Question
    name: str
    layers: tuple[Layer, ...]
    formulation: Nests
    pins: Pins
    places: Places | None = None

    def part(self, layer: Layer, homes: Assignment = (), *, spare: bool = False) -> NestPart:
        """A layer with homes of its operands."""
        build = self.formulation.build
        return NestPart(
            layer, self.asked.machine, build, self.pins, full=self.asked.full, homes=homes, spare=spare,
            bounding=self.asked.bounding,
        )  # fmt: skip


def prepare(question: Question) -> Request:
    """Check everything that is asked, before any time is spent; raises InputError."""
    machine, target = question.machine, question.target
    if isinstance(target, Applications):
        raise InputError("several applications are planned together, by problem applications only")
    if isinstance(target, Buffers | Variants):
        raise InputError(f"target {target.name}: problem {question.problem} plans networks, this is something else")
    if machine.problem not in nested():
        raise InputError(f"machine {machine.name}: it is meant for problem {machine.problem}, not {question.problem}")
    if isinstance(target, tuple):
        raise InputError("layers of a plan: they are planned again by the plan")
    formulation = pick_nests(question.problem)
    demands = pick_pins(question.pins, formulation)
    check_home_pins(machine, demands)
    picked = pick_layers(target, question.layers, all_kinds=question.all_kinds)
    places = places_of(target, picked, machine, demands) if machine.off_chip else None
    return Request(question, target.name, picked, formulation, demands, places)


def options(request: Request, places: Places, needed: dict[str, Assignment]) -> dict[tuple[str, Assignment], NestPart]:
    """Every layer with all homes that its operands may have: first those that are needed, then where most is open."""
    layers = {layer.name: layer for layer in request.layers}
    open_ = [item.bytes if len(item.homes) > 1 else 0 for item in places.items]
    large = sorted(places.tables, key=lambda table: -sum(open_[x] for x in table.operands.values()))
    options = {(name, homes): request.part(layers[name], homes) for name, homes in needed.items()}
    for table in large:
        for homes in assignments(places, table):
            if (table.layer, homes) not in options:
                options[table.layer, homes] = request.part(layers[table.layer], homes, spare=True)
    return options
