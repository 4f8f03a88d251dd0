"""F1 and F2, one layer: nests in the memory of a core, priced, replayed and compared.

A layer, a machine and pins stand for a `Space` of nests (`formulations.tiling.problem`). It is built when it is first
asked for: building counts as search. Where a machine has several memories off the chip the homes of the operands
are settled first (`formulations.homes`): a part for each of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property
from typing import Protocol

from formulations.pins import Pins
from formulations.problem import Goal, Part, Piece, Priced, Replayed
from formulations.tiling.floors import closed, in_unit, stage_of
from formulations.tiling.space import Space
from hwmodels.nest.homes import settled
from hwmodels.nest.limits import tensor_bytes
from hwmodels.nest.price import price
from hwmodels.nest.replay import replay
from hwmodels.outcome import OPERANDS, Counts, Outcome
from hwmodels.schedule import Nest
from instances.machine import Machine
from instances.workload import Layer

#: Homes of the operands of a layer: IN, W, OUT with a name each.
Assignment = tuple[tuple[str, str], ...]


class Builder(Protocol):
    """Builds the space of one layer on one machine; `full` leaves out the candidate reduction."""

    def __call__(self, layer: Layer, machine: Machine, pins: Pins, *, full: bool = False) -> Space:
        """Build the space; raises InputError where layer, machine or pins do not fit the problem."""
        ...


class NestPart(Part[Nest]):
    """A layer to plan; `build` is a module-level function, so that parts can be sent to other processes.

    Where the nest is `given` it may be any one of docs/nest.md, and not only one that the problem looks at.
    """

    def __init__(
        self, layer: Layer, machine: Machine, build: Builder, pins: Pins, *, full: bool = False, homes: Assignment = (),
        spare: bool = False, given: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.layer, self.machine, self.homes = layer.name, layer, machine, homes
        self.build, self.pins, self.full, self.spare, self.given = build, pins, full, spare, given
        self._priced: dict[Nest, Outcome] = {}

    def __getstate__(self) -> dict[str, object]:
        """The part without its space, which is built anew in another process."""
        return {name: value for name, value in vars(self).items() if name not in ("space", "on")}

    @property
    def key(self) -> Hashable:
        """Layers of one signature with the same homes are alike."""
        return self.layer.signature(), self.homes

    @cached_property
    def on(self) -> Machine:
        """The machine with the homes; raises InputError if the layer may not have them."""
        return settled(self.layer, self.machine, dict(self.homes))

    @cached_property
    def space(self) -> Space:
        """All nests; raises InputError if the problem does not fit the machine."""
        return self.build(self.layer, self.on, self.pins, full=self.full)

    @property
    def size(self) -> Mapping[str, int]:
        """Of the space if it is built, else nothing."""
        return self.space.size if "space" in vars(self) else {}

    def pieces(self, goal: Goal) -> Iterator[Piece[Nest]]:
        """The whole space: engines search it in their own order (`solver.engines`)."""
        yield _Whole(self)

    def outcome(self, nest: Nest) -> Outcome:
        """The price of a nest with all counts; raises InputError if it is malformed."""
        if nest not in self._priced:
            nest.validate_for(self.layer)
            self._priced[nest] = price(self.layer, self.machine, nest)
        return self._priced[nest]

    def price(self, schedule: Nest) -> Priced:
        """Time, bytes and energy, and what they are made of."""
        return Priced(_figures(self.outcome(schedule)))

    def replay(self, schedule: Nest) -> Replayed:
        """The same, counted by walking through the nest."""
        walked = replay(self.layer, self.machine, schedule)
        faults = tuple(walked.faults) if walked.ok else tuple(walked.faults) or ("replay is not ok and names no fault",)
        counts = {"steps": walked.steps, "executed": int(walked.executed)}
        return Replayed(_figures(walked.outcome), faults, counts, compared=self.machine.reading != "literal")

    def contains(self, schedule: Nest) -> tuple[str, ...]:
        """Memories that are too small, and whether problem and pins allow the nest."""
        faults = self.overflows(schedule)
        if self.given and not self.pins.pins:
            return tuple(faults)
        if not self.space.contains(schedule):
            demands = f" with {', '.join(map(str, self.pins.pins))}" if self.pins.pins else ""
            faults.append(f"the schedule is no plan of problem {self.space.problem}{demands}")
        return tuple(faults)

    def overflows(self, schedule: Nest) -> list[str]:
        """Memories that are too small."""
        taken = self.outcome(schedule).occupancy_bytes
        return [
            f"memory {memory}: {taken[memory]} bytes are taken, {self.machine.name} has {size}"
            for memory, size in self.machine.memories.items()
            if taken.get(memory, 0) > size
        ]

    def explain(self) -> tuple[str, ...]:
        """A minimal set of demands that no nest meets together."""
        return self.space.explain()

    def label(self, schedule: Nest) -> str:
        """The decisions that the nest stands for."""
        return ", ".join(f"{name} {value}" for name, value in self.space.decision(schedule).items())


class _Whole(Piece[Nest]):
    """All nests of a layer."""

    def __init__(self, part: NestPart) -> None:
        self.part = part

    def floor(self, goal: Goal) -> int:
        """A bound in closed form; where transfers wait for each other, every operand has to be moved once."""
        part, key = self.part, stage_of(goal.measure, self.part.on)
        on, least = part.on, closed(part.layer, part.on, key)
        if key == "time" and on.off_chip and on.tles * on.tlts == 1 and on.timing != "double_buffered":
            moved = sum(on.transfer_of(op).byte_ticks * n for op, n in tensor_bytes(part.layer, on).items())
            least = max(least, on.layer_ticks + moved)
        return in_unit(part.layer, on, goal.measure, least)


def _figures(outcome: Outcome) -> dict[str, int]:
    """The measures, the counts of every operand, and the memory that is taken."""
    figures = dict(outcome.measures)
    for operand in OPERANDS:
        counts = outcome.by_operand.get(operand, Counts()).to_json()
        figures |= {f"{operand} {kind}": count for kind, count in counts.items()}
    return figures | {f"occupancy of {memory}": size for memory, size in outcome.occupancy_bytes.items() if size}
