"""F1 and F2, one layer: nests in the memory of a core, priced, replayed and compared.

A layer, a machine and pins stand for a `Space` of nests (`formulations.tiling.problem`). It is built when it is first
asked for: building counts as search. Where a machine has several memories off the chip the homes of the operands
are settled first (`formulations.homes`): a part for each of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property
from math import inf
from typing import Protocol

from formulations.clock import Clock
from formulations.pins import Pins
from formulations.problem import SOLVERS, Goal, Part, Piece, Priced, Replayed, Stats, Steps
from formulations.tiling.floors import closed, floor, in_unit, stage_of
from formulations.tiling.search import Search
from formulations.tiling.space import Space
from formulations.tiling.staged import Staged
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

    Where the nest is `given` it may be any one of docs/nest.md, and not only one that the problem looks at; without
    `bounding` solvers are asked of all candidates, none removed by bounds.
    """

    search: Search | None = None
    """The search that was begun last."""

    def __init__(
        self, layer: Layer, machine: Machine, build: Builder, pins: Pins, *, full: bool = False, homes: Assignment = (),
        spare: bool = False, given: bool = False, bounding: bool = True,
    ) -> None:  # fmt: skip
        self.name, self.layer, self.machine, self.homes = layer.name, layer, machine, homes
        self.build, self.pins, self.full, self.spare, self.given = build, pins, full, spare, given
        self.bounding = bounding
        self._priced: dict[Nest, Outcome] = {}

    def __getstate__(self) -> dict[str, object]:
        """The part without its space, which is built anew in another process."""
        return {name: value for name, value in vars(self).items() if name not in ("space", "on", "search")}

    @classmethod
    def of(cls, space: Space, *, bounding: bool = True) -> NestPart:
        """The layer of a space."""
        part = cls(space.layer, space.machine, lambda *_, **__: space, space.pins, bounding=bounding)
        part.on = space.machine
        return part

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

    @property
    def stats(self) -> Stats:
        """Of the search."""
        return {} if self.search is None else self.search.stats

    def pieces(self, goal: Goal) -> Iterator[Piece[Nest]]:
        """The whole space, searched in an order of its own; nothing if it is seen at once that nothing fits."""
        if not ("space" in vars(self) and self.space.crowded):
            yield _Whole(self)

    def begun(self, goal: Goal, engine: str) -> Search:
        """The search by an engine: a new one for the first of its objectives."""
        asked, clock = goal.objectives or (goal.measure,), goal.clock
        search = self.search
        if search is None or goal.measure == asked[0]:
            kept = dict(goal.caps)
            if engine in SOLVERS:
                search = Staged(self.space, asked, self.bounding, kept=kept, engine=engine)
            else:
                search = Search(self.space, asked, self.bounding, kept=kept)
            self.search = search
        search.deadline, search.end = (None if until == inf else until for until in (clock.until, clock.end))
        if isinstance(search, Staged):
            search.said = goal.stats
        return search

    def at_home(self, nest: Nest) -> Nest:
        """A nest of the space with the homes of the operands."""
        return nest.at(dict(self.homes))

    def polished(self, schedule: Nest, clock: Clock) -> Nest:
        """Where loops run to and fro, in a better order, if the search has not proven that there is none."""
        if self.search is None or self.search.best is None:
            return schedule
        self.search.deadline = None if clock.until == inf else clock.until
        self.search.turn()
        return self.at_home(self.search.best.nest)

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
    """All nests of a layer: one search settles all objectives, one after the other."""

    def __init__(self, part: NestPart) -> None:
        self.part = part

    def floor(self, goal: Goal) -> int:
        """A bound in closed form; where transfers wait for each other, every operand has to be moved once.

        None of a later objective while the search goes on: it is to settle that too, as it keeps what it has settled.
        """
        part = self.part
        search, later = part.search, goal.measure not in goal.objectives[:1]
        if goal.objectives and later and search and not (search.stopped or search.broken or goal.clock.over):
            return 0
        return self._closed(goal)

    def _closed(self, goal: Goal) -> int:
        """A bound in closed form."""
        part, key = self.part, stage_of(goal.measure, self.part.on)
        on, least = part.on, closed(part.layer, part.on, key)
        if key == "time" and on.off_chip and on.tles * on.tlts == 1 and on.timing != "double_buffered":
            moved = sum(on.transfer_of(op).byte_ticks * n for op, n in tensor_bytes(part.layer, on).items())
            least = max(least, on.layer_ticks + moved)
        return in_unit(part.layer, on, goal.measure, least)

    def so_far(self) -> Nest | None:
        """The best nest of the search."""
        search = self.part.search
        return None if search is None or search.best is None else self.part.at_home(search.best.nest)

    def steps(self, goal: Goal, engine: str) -> Steps[Nest]:
        """Settle a measure, unless it was settled with another one, or the search has ended."""
        space = self.part.space
        if space.crowded:  # nobody needs to look for what does not fit with the smallest tiles
            return None, None
        search, stage = self.part.begun(goal, engine), stage_of(goal.measure, space.machine)
        if not search.stopped and stage not in search.kept:
            try:
                yield from search.minimise(stage)
            except KeyboardInterrupt:
                search.broken = True
                raise
            finally:
                for name in ("branches", "conflicts"):  # of one model of many
                    goal.stats.pop(name, None)
        if stage in search.settled and stage not in search.bounds:
            return self.so_far(), None
        known, hurry = search.bounds.get(stage), search.hurried or stage not in search.settled
        return self.so_far(), max(self._closed(goal), floor(space, goal.measure, known, hurry=hurry))


def _figures(outcome: Outcome) -> dict[str, int]:
    """The measures, the counts of every operand, and the memory that is taken."""
    figures = dict(outcome.measures)
    for operand in OPERANDS:
        counts = outcome.by_operand.get(operand, Counts()).to_json()
        figures |= {f"{operand} {kind}": count for kind, count in counts.items()}
    return figures | {f"occupancy of {memory}": size for memory, size in outcome.occupancy_bytes.items() if size}
