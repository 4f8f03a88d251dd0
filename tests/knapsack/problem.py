"""The knapsack, its price, its replay and its searches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import prod

import pulp
from ortools.sat.python import cp_model
from pydantic import BaseModel, ConfigDict

from formulations.pins import Decision, Pins
from formulations.problem import Formulation, Goal, Model, Part, Piece, Priced, Replayed
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.workload import Layer

INFERENCES = 10


def weights(layer: Layer) -> int:
    """How many a layer has."""
    return prod(layer.extent(d) for d in "mnij")


class Kept(BaseModel):
    """The layers whose weights stay."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    layers: tuple[str, ...]


class Weights(Part[Kept]):
    """The network."""

    def __init__(self, network: Network, machine: Machine, pins: Pins) -> None:
        self.name, self.room = network.name, machine.ocm_bytes or 0
        self.sizes = {x.name: weights(x) * machine.w_bytes for x in network.conv_layers}
        most = [int(pin.value) for pin in pins.of("most")]
        self.most = min([len(self.sizes), *most])

    def pieces(self, goal: Goal) -> Iterator[Piece[Kept]]:
        yield Subsets(self)

    def price(self, schedule: Kept) -> Priced:
        if not set(schedule.layers) <= set(self.sizes):
            raise InputError(f"layers {', '.join(schedule.layers)}: the network has {', '.join(self.sizes)}")
        room = sum(self.sizes[name] for name in schedule.layers)
        total = sum(self.sizes.values())
        terms = {"first": total, "again": (INFERENCES - 1) * (total - room)}
        return Priced({"bytes": sum(terms.values()), "room": room}, {"bytes": terms})

    def replay(self, schedule: Kept) -> Replayed:
        moved, held, faults = 0, dict[str, int](), list[str]()
        for _ in range(INFERENCES):
            for name, size in self.sizes.items():
                if name not in held:
                    moved += size
                    if name in schedule.layers:
                        held[name] = size
            if sum(held.values()) > self.room:
                faults.append(f"{sum(held.values())} bytes are on chip, there is room for {self.room}")
        return Replayed({"bytes": moved, "room": sum(held.values())}, tuple(dict.fromkeys(faults)))

    def contains(self, schedule: Kept) -> tuple[str, ...]:
        known = len(set(schedule.layers)) == len(schedule.layers) and set(schedule.layers) <= set(self.sizes)
        few = len(schedule.layers) <= self.most
        return (*(() if known else ("a layer is unknown, or stays twice",)), *(() if few else ("more stay than most",)))

    def explain(self) -> tuple[str, ...]:
        return ()


class Subsets(Piece[Kept]):
    """All subsets."""

    def __init__(self, part: Weights) -> None:
        self.part = part

    def floor(self, goal: Goal) -> int:
        return 0 if goal.measure == "room" else sum(self.part.sizes.values())

    def exact(self, goal: Goal, engine: str) -> tuple[Kept | None, int | None]:
        found = []
        for number in range(self.part.most + 1):
            for names in combinations(self.part.sizes, number):
                priced = self.part.price(Kept(layers=names)).measures
                if priced["room"] <= self.part.room and all(priced[m] <= most for m, most in goal.caps.items()):
                    found.append((priced[goal.measure], names))
        value, names = min(found, default=(None, ()))
        if value is None or (goal.below is not None and value >= goal.below):
            return None, None
        return Kept(layers=names), value

    def _constraints(self, x: dict[str, object], goal: Goal) -> tuple[object, list[object]]:
        sizes, total = self.part.sizes, sum(self.part.sizes.values())
        room = sum(sizes[name] * x[name] for name in sizes)
        measures = {"room": room, "bytes": INFERENCES * total - (INFERENCES - 1) * room}
        rows = [room <= self.part.room, sum(x.values()) <= self.part.most]
        rows += [measures[m] <= most for m, most in goal.caps.items()]
        if goal.below is not None:
            rows.append(measures[goal.measure] <= goal.below - 1)
        return measures[goal.measure], rows

    def cp_sat(self, goal: Goal) -> Model[Kept]:
        model = cp_model.CpModel()
        x = {name: model.new_bool_var(name) for name in self.part.sizes}
        objective, rows = self._constraints(x, goal)
        for row in rows:
            model.add(row)
        model.minimize(objective)
        return Model(model, lambda solver: Kept(layers=tuple(n for n in x if solver.value(x[n]))))

    def milp(self, goal: Goal) -> Model[Kept]:
        model = pulp.LpProblem("knapsack", pulp.LpMinimize)
        x = {name: pulp.LpVariable(f"x{k}", cat="Binary") for k, name in enumerate(self.part.sizes)}
        objective, rows = self._constraints(x, goal)
        model += objective
        for row in rows:
            model += row
        return Model(model, lambda _: Kept(layers=tuple(n for n in x if round(x[n].value() or 0))))


def largest_first(part: Weights, goal: Goal) -> Kept | None:
    """As many as fit, the largest first."""
    kept: list[str] = []
    for name in sorted(part.sizes, key=lambda one: -part.sizes[one]):
        if len(kept) < part.most and sum(part.sizes[one] for one in (*kept, name)) <= part.room:
            kept.append(name)
    return Kept(layers=tuple(name for name in part.sizes if name in kept))


class Knapsack(Formulation[Kept]):
    """Whose weights stay."""

    name = "knapsack"
    summary = "whose weights stay on chip from one inference to the next"
    schedule = Kept
    measures = {"bytes": "bytes", "room": "bytes on chip"}  # noqa: RUF012
    decisions = {"most": Decision("how many layers' weights may stay: most=2")}  # noqa: RUF012
    engines = {  # noqa: RUF012
        "exact": "all subsets", "cp-sat": "CP-SAT (ortools)", "milp": "MILP with HiGHS", "milp-cbc": "MILP with CBC",
    }  # fmt: skip
    heuristics = {"largest": ("the largest that fit", largest_first)}  # noqa: RUF012
    quick = ("largest",)
    examples = (("lenet5", "scratchpad_24k"),)

    def read(
        self, network: Network, machine: Machine, pins: Pins, layers: Sequence[str] | None
    ) -> Sequence[Part[Kept]]:
        if machine.ocm_bytes is None:
            raise InputError(f"machine {machine.name}: problem knapsack needs a shared memory (ocm_bytes)")
        return [Weights(network, machine, pins)]


PROBLEM = Knapsack
