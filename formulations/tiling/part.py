"""Tiling and slicing, one layer: nests in the memory of a core, priced, replayed and compared.

A layer, a machine and pins stand for a `Space` of nests (`formulations.tiling.tiling`). It is built when it is first
asked for: building counts as search. Where a machine has several memories off the chip the homes of the operands
are settled first (`formulations.homes`): a part for each of them.

One `Search` of a part goes through its objectives: `solver.search` asks for them goal by goal, `_Whole.steps` has
`Search.minimise` take up each where it left off (`NestPart.begun`), and `_Whole.floor` claims nothing meanwhile, so
that no goal is passed over.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Protocol

from formulations.clock import Clock
from formulations.pins import Pins
from formulations.problem import SOLVERS, Goal, Part, Piece, Priced, Replayed, Stats, Steps
from formulations.tiling.search import Search
from formulations.tiling.space import Space, bound_without_search, closed_form_bound, in_unit, stage_of
from formulations.tiling.staged import Staged
from hwmodels.nest.buffers import Buffer, buffers
from hwmodels.nest.homes import machine_with_homes
from hwmodels.nest.price.causes import terms_of
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.limits import compulsory_bytes, lower_bound_bytes, tensor_bytes
from hwmodels.nest.replay.referee import replay
from hwmodels.outcome import MEASURES, OPERANDS, Counts, Outcome
from hwmodels.schedule import Nest
from instances.machine.machine import Machine
from instances.network.workload import Layer, refuse_long

#: Homes of the operands of a layer: IN, W, OUT with a name each.
Assignment = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class NestFigures:
    """What a plan says of a nest beside its measures."""

    decision: dict[str, int | str]
    """The decisions that the nest stands for: `loops` (the nest in a line: letters are loops, IN, W, OUT are holds),
    `T_M` and the like (the largest innermost tile), `cuts_R`, `cuts_C` (how loops cut rows or columns: one entry a
    loop, outermost first, places or ``by 2``), `buffers_IN` and the like, `held` (IN in lines), `home_W` and the like;
    `partition` and `dataflow` of problem slicing.
    """
    counts: dict[str, Counts]
    """What moves between the chip and memory (docs/transfer.md), by what it is: OUT is final results written, PSUM
    partial sums written and read back.
    """
    occupancy_bytes: dict[str, int]
    """The most that is taken of every memory of a core."""
    buffers: tuple[Buffer, ...]
    """Where the tiles lie on chip (on the core with the largest tiles, others alike)."""
    lower_bound_bytes: int | None
    """What no plan of the layer can do without (docs/limits.md): every input, weight and output once, or the I/O lower
    bound for the machine's memory, whichever is larger; None where a paper's printed equations are the price.
    """

    @property
    def total(self) -> Counts:
        """All that moves."""
        return sum(self.counts.values(), Counts())


class Builder(Protocol):
    """Builds the space of one layer on one machine; `full` leaves out the candidate reduction."""

    def __call__(self, layer: Layer, machine: Machine, pins: Pins, *, full: bool = False) -> Space:
        """Build the space; raises InputError where layer, machine or pins do not fit the problem."""
        ...


class NestPart(Part[Nest]):
    """A layer to plan; `build` is a module-level function, so that parts can be sent to other processes.

    Where the nest is `given` it may be any one of docs/nest.md, and not only one that the problem looks at; without
    `bounding` solvers are asked of all candidates, none removed by bounds. Raises InputError if a dimension is long.
    """

    search: Search | None = None
    """The search that was begun last."""

    def __init__(
        self, layer: Layer, machine: Machine, build: Builder, pins: Pins, *, full: bool = False, homes: Assignment = (),
        optional: bool = False, given: bool = False, bounding: bool = True,
    ) -> None:  # fmt: skip
        refuse_long(layer)  # at once: bounds in closed form count along every axis, before a space is built
        self.name, self.layer, self.machine, self.homes = layer.name, layer, machine, homes
        self.build, self.pins, self.full, self.optional, self.given = build, pins, full, optional, given
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
        return machine_with_homes(self.layer, self.machine, dict(self.homes))

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
        outcome, homes = self.outcome(schedule), dict(self.homes)
        terms = {name: terms_of(name, self.layer, self.machine, outcome, homes) for name in MEASURES}
        return Priced(outcome.measures, terms, _counts(outcome))

    def replay(self, schedule: Nest) -> Replayed:
        """The same, counted by walking through the nest."""
        walked = replay(self.layer, self.machine, schedule)
        faults = tuple(walked.faults) if walked.ok else tuple(walked.faults) or ("replay is not ok and names no fault",)
        return Replayed(
            walked.outcome.measures, faults, _counts(walked.outcome), compared=self.compared,
            tally={"steps": walked.steps}, executed=int(walked.executed),
        )  # fmt: skip

    @property
    def compared(self) -> bool:
        """Whether the price is what a machine does, and not a paper's printed equations."""
        return self.machine.reading != "literal"

    @property
    def must(self) -> dict[str, int]:
        """Every needed input, weight and output once; nothing where a paper's printed equations are the price."""
        return {"bytes": compulsory_bytes(self.layer, self.machine)} if self.compared else {}

    def figures_of(self, schedule: Nest, walked: Replayed) -> NestFigures:
        """What follows from a nest beside its measures."""
        outcome = self.outcome(schedule)
        decision = {name: v if isinstance(v, str) else int(v) for name, v in self.space.decision(schedule).items()}
        return NestFigures(
            decision, {o: outcome.by_operand.get(o, Counts()) for o in OPERANDS}, dict(outcome.occupancy_bytes),
            buffers(self.layer, self.machine, schedule),
            lower_bound_bytes(self.layer, self.machine) if self.compared else None,
        )  # fmt: skip

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
        on, least = part.on, closed_form_bound(part.layer, part.on, key)
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
        return self.so_far(), max(self._closed(goal), bound_without_search(space, goal.measure, known, hurry=hurry))


def _counts(outcome: Outcome) -> dict[str, int]:
    """The counts of every operand, and the memory that is taken."""
    figures = dict[str, int]()
    for operand in OPERANDS:
        counts = outcome.by_operand.get(operand, Counts()).to_json()
        figures |= {f"{operand} {kind}": count for kind, count in counts.items()}
    return figures | {f"occupancy of {memory}": size for memory, size in outcome.occupancy_bytes.items() if size}
