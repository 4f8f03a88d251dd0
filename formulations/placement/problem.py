"""Placement as a formulation: what may be asked, by which engines, and heuristics to compare with.

All placements of an instance are the part that is decided; see `formulations.placement` for the engines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, cast

from formulations.pins import Decision, Pins
from formulations.placement.instance import GREEDY, Instance, placed
from formulations.placement.packing import Cut, Split
from formulations.placement.search import Packed, fitted, least_peak
from formulations.problem import Formulation, Goal, Model, Part, Piece, Priced, Replayed, Steps, Unable
from hwmodels.placement.replay import replay
from hwmodels.schedule import Place, Placement
from instances.errors import InputError, choices
from instances.machine.machine import Machine
from instances.network.buffers import Buffer, Buffers, Memory
from instances.network.network import Network

#: Of the first turn nodes of the exact search, and work of CP-SAT (a unit takes ten seconds to a minute); how much more
#: the next turns have. CP-SAT is soon done where rectangles are cut from one, the search where lives are those of maps.
_NODES, _WORK, _GROWTH = 30_000, 0.05, 32
#: Nodes of the search for what a master puts in a memory.
_SHARED_NODES = 1_000_000


@dataclass(frozen=True)
class MemoryUse:
    """A memory on chip."""

    name: str
    bytes: int
    """That may be used."""
    peak: int
    """The bytes up to the highest one that is used."""
    load: int
    """The most bytes that are alive in it at one time."""


class PlacementPart(Part[Placement]):
    """The buffers, with what pins say."""

    def __init__(self, given: Buffers, pins: Pins) -> None:
        self.name, self.instance = given.name, Instance(given, pins)

    def pieces(self, goal: Goal) -> Iterator[Piece[Placement]]:
        """One: everything; none if it is plain that it does not fit."""
        if not self.instance.plain:
            yield Everything(self)

    def price(self, schedule: Placement) -> Priced:
        """Bytes of what is off the chip, bytes that lie where others are preferred, and bytes of memories."""
        instance, where = self.instance, {place.buffer: place for place in schedule.places}
        names = [m.name for m in instance.memories]
        for name, place in where.items():
            if name not in instance.numbers or place.memory not in names:
                raise InputError(
                    f"place {name} in {place.memory}: there are memories {choices(names)} and no such buffer"
                )
        if len(where) < len(schedule.places):
            raise InputError("a buffer is placed twice")
        outside = {b.name: b.spill or 0 for b in instance.buffers if b.name not in where}
        tops = dict.fromkeys(names, 0)
        displaced = 0
        for name, place in where.items():
            buffer = instance.buffers[instance.numbers[name]]
            if buffer.memories and place.memory not in buffer.memories:
                raise InputError(f"buffer {name}: {place.memory} is none of its memories {choices(buffer.memories)}")
            tops[place.memory] = max(tops[place.memory], place.address + buffer.size)
            displaced += buffer.size * instance.rank(buffer, place.memory)
        return Priced(
            {"bytes": sum(outside.values()), "preference": displaced, "peak": sum(tops.values())},
            {"bytes": outside, "peak": tops},
        )

    def replay(self, schedule: Placement) -> Replayed:
        """What the referee sees."""
        walked = replay(self.instance.asked, schedule)
        measures = {
            "bytes": walked.spilled_bytes, "preference": walked.displaced_bytes, "peak": sum(walked.peaks.values()),
        }  # fmt: skip
        return Replayed(measures, walked.faults)

    def figures_of(self, schedule: Placement, walked: Replayed) -> tuple[MemoryUse, ...]:
        """How full memories are."""
        tops, found = self.price(schedule).terms["peak"], list[MemoryUse]()
        for memory in self.instance.memories:
            inside = {place.buffer for place in schedule.places if place.memory == memory.name}
            names = [b.name for b in self.instance.buffers if b.name in inside]
            load = int(self.instance.packing(names, memory).load.max(initial=0)) if names else 0
            found.append(MemoryUse(memory.name, self.instance.capacity[memory.name], tops[memory.name], load))
        return tuple(found)

    def contains(self, schedule: Placement) -> tuple[str, ...]:
        """Fixed addresses and the pin `cap`."""
        instance, faults = self.instance, []
        for place in schedule.places:
            buffer = instance.buffers[instance.numbers[place.buffer]]
            if buffer.offset is not None and place.address != buffer.offset:
                faults.append(f"buffer {buffer.name} lies at {place.address}, it has to at {buffer.offset}")
            if place.address + buffer.size > instance.capacity[place.memory]:
                faults.append(
                    f"buffer {buffer.name} reaches beyond {instance.capacity[place.memory]} bytes of {place.memory}"
                )
        return tuple(faults)

    def explain(self) -> tuple[str, ...]:
        """Buffers that are too large, or too many at one time; else that no addresses exist."""
        room, number = sum(self.instance.capacity.values()), len(self.instance.buffers)
        said = f"no addresses for {number} buffers in {room:,} bytes"
        alive = f"though at most {self.instance.least_load:,} are alive at one time"
        return self.instance.plain or (f"{said}, {alive}",)


class Everything(Piece[Placement]):
    """All placements."""

    def __init__(self, part: PlacementPart) -> None:
        self.part, self.instance = part, part.instance

    def floor(self, goal: Goal) -> int:
        """Bytes of the fullest time."""
        if goal.measure == "bytes":
            return self.instance.least_spill
        return self.instance.least_load if goal.measure == "peak" else 0

    def cp_sat(self, goal: Goal, work: float | None = None) -> Model[Placement]:
        """The model of rectangles, for so much work."""
        from formulations.placement import cp_sat  # late: solvers are slow to import

        return cp_sat.build(self.instance, goal, work)

    def milp(self, goal: Goal) -> Model[Placement]:
        """The model of orders."""
        from formulations.placement import milp

        return milp.build(self.instance, goal)

    def steps(self, goal: Goal, engine: str) -> Steps[Placement]:
        """Engine search: a master, packing, cuts; others as always."""
        if engine != "search":
            return super().steps(goal, engine)
        if len(self.instance.memories) == 1 and all(b.spill is None for b in self.instance.buffers):
            return self._addresses(goal)
        return self._shared(goal)

    def _addresses(self, goal: Goal) -> Steps[Placement]:
        """One memory, nothing to decide but addresses: the exact search and CP-SAT by turns, each time for longer."""
        (memory,) = self.instance.memories
        names, least = [b.name for b in self.instance.buffers], goal.measure == "peak"
        packing, best, bound = self.instance.packing(names, memory), None, self.floor(goal)
        below = [goal.below - 1] if least and goal.below is not None else []
        capacity = min([self.instance.capacity[memory.name], *below, *(m for n, m in goal.caps.items() if n == "peak")])
        for turn in count():
            goal.stats["rounds"] = turn + 1
            told = (least_peak if least else fitted)(packing, capacity, goal.clock, _NODES * _GROWTH**turn)
            if told.addresses is not None:
                best = Placement(tuple(Place(name, memory.name, a) for name, a in told.addresses.items()))
                value = self._value(best, goal)
                if not least or value <= max(bound, told.least or 0):
                    return best, value if least else bound
                goal, capacity = replace(goal, below=value, known=best), value - 1
            elif not told.undecided:
                return best, goal.below if best is not None else None
            bound = max(bound, told.least or 0) if least else bound
            if goal.clock.over:
                break
            # What reaches the bound: that is easier than to look for the least.
            asked = replace(goal, caps={**goal.caps, "peak": bound}, below=None) if least else goal
            said = yield self.cp_sat(asked, _WORK * _GROWTH**turn)
            if said.schedule is not None:
                return said.schedule, bound
            if said.bound is None and not least:
                return best, None
            if said.bound is None:
                bound = bound // packing.unit * packing.unit + packing.unit
                if bound > capacity:
                    return best, goal.below if best is not None else None
        return best, bound

    def _shared(self, goal: Goal) -> Steps[Placement]:
        """Several memories, or buffers that may leave: a master, packing, cuts; at last the model of rectangles."""
        from formulations.placement.cp_sat import master

        known, bound, best = list[Cut](), self.floor(goal), None
        for rounds in count(1):
            told = yield cast(Model[Any], master(self.instance, known, goal))
            if told.bound is None:
                return best, None if best is None else self._value(best, goal)
            bound, split = max(bound, told.bound), cast("Split | None", told.schedule)
            if split is None:
                return best, bound
            goal.stats["rounds"] = rounds
            packed = {m.name: self._packed(m, split, goal) for m in self.instance.memories}
            made = self._made(packed)
            if made is not None and self._meets(made, goal):
                best, value = made, self._value(made, goal)
                if value <= bound:
                    return best, bound
                goal = replace(goal, below=value, known=made)
            taught = [Cut(name, one.witness, one.least) for name, one in packed.items() if one.beyond(split.tops[name])]
            cuts = [cut for cut in taught if cut not in known]
            if not cuts or goal.clock.over:
                break
            known += cuts
        if goal.clock.over:
            return best, bound
        said = yield self.cp_sat(goal)
        if said.bound is None:
            return best, None if best is None else self._value(best, goal)
        return (best if said.schedule is None else said.schedule), max(bound, said.bound)

    def _packed(self, memory: Memory, split: Split, goal: Goal) -> Packed:
        names = split.inside[memory.name]
        if not names:
            return Packed({}, 0, frozenset())
        search = least_peak if goal.measure == "peak" or "peak" in goal.caps else fitted
        packing, capacity = self.instance.packing(names, memory), self.instance.capacity[memory.name]
        return search(packing, capacity, goal.clock, _SHARED_NODES)

    def _made(self, packed: Mapping[str, Packed]) -> Placement | None:
        """The placement, if all memories are packed."""
        where = dict[str, Place]()
        for memory, told in packed.items():
            if told.addresses is None:
                return None
            where |= {name: Place(name, memory, address) for name, address in told.addresses.items()}
        return Placement(tuple(where[b.name] for b in self.instance.buffers if b.name in where))

    def _value(self, made: Placement, goal: Goal) -> int:
        return self.part.price(made).measures[goal.measure]

    def _meets(self, made: Placement, goal: Goal) -> bool:
        measures = self.part.price(made).measures
        under = goal.below is None or measures[goal.measure] < goal.below
        return under and all(measures[name] <= most for name, most in goal.caps.items())


def _heuristic(name: str) -> Callable[[PlacementPart, Goal], Placement | None]:
    def run(part: PlacementPart, goal: Goal) -> Placement | None:
        made = placed(part.instance.buffers, part.instance.rooms, name)
        if made is None:
            raise Unable(f"heuristic {name} finds no room for a buffer that has to be on chip")
        return made

    return run


def _best(part: PlacementPart, goal: Goal) -> Placement | None:
    """The best of all heuristics."""
    made = [found for name in GREEDY if (found := placed(part.instance.buffers, part.instance.rooms, name)) is not None]
    order = (goal.measure, "bytes", "preference", "peak")
    priced = [(part.price(one).measures, one) for one in made]
    kept = [row for row in priced if all(row[0][name] <= most for name, most in goal.caps.items())]
    return min(kept, key=lambda row: [row[0][name] for name in order], default=(None, None))[1]


class PlacementFormulation(Formulation[Placement]):
    """Memory and address of every buffer."""

    name = "placement"
    summary = "memory and address of every buffer of a plan, or of a CSV file"
    schedule = Placement
    figures = tuple[MemoryUse, ...]
    target = Buffers
    whole = True
    measures = {"bytes": "bytes", "preference": "bytes", "peak": "bytes"}  # noqa: RUF012
    decisions = {  # noqa: RUF012
        "cap": Decision("cap<=65536: the most bytes of every memory that may be used"),
        "spill": Decision(
            "spill=no: all has to be on chip; spill=yes: all may lie off the chip, written and read once where the "
            "file says nothing", ("yes", "no")
        ),
    }  # fmt: skip
    engines = {  # noqa: RUF012
        "search": "a master for memories (CP-SAT), and an exact search of our own for addresses",
        "cp-sat": "CP-SAT: rectangles of times and addresses",
        "milp": "MILP with HiGHS: which of two lies below, small instances",
        "milp-cbc": "the same with CBC",
    }
    heuristics = {  # noqa: RUF012
        "greedy": ("the best of the five below", _best),
        "size": ("the largest first, at the lowest address", _heuristic("size")),
        "lifetime": ("the longest-lived first, at the lowest address", _heuristic("lifetime")),
        "area": ("bytes times lifetime, the largest first, at the lowest address", _heuristic("area")),
        "time": ("in the order of their times, at the lowest address", _heuristic("time")),
        "best-fit": ("the largest first, in the narrowest gap", _heuristic("best-fit")),
    }
    ties = ("bytes", "preference")
    starts = ("greedy",)
    quick = ("greedy",)

    def read(
        self, network: Network | Buffers, machine: Machine, pins: Pins, layers: Sequence[str] | None
    ) -> Sequence[PlacementPart]:  # fmt: skip
        """Return all buffers as one part, in memories of their own or of the machine.

        Raises InputError for a network, a machine without memories of that kind, and pins with an operator of no
        meaning.
        """
        if not isinstance(network, Buffers):
            raise InputError("problem placement: buffers are expected, a .csv or .json file of them, or a plan file")
        if strange := [str(pin) for pin in pins.pins if pin.op != ("<=" if pin.name == "cap" else "=")]:
            raise InputError(f"pin {strange[0]}: write cap<=N, spill=yes or spill=no")
        return [PlacementPart(in_memories(network, machine), pins)]


def in_memories(given: Buffers, machine: Machine) -> Buffers:
    """Return buffers with memories: those of a machine, beside what is reserved there, if they bring none.

    Raises InputError if the machine has no memories with addresses.
    """
    if given.memories:
        return given
    if not machine.memories or machine.banks is not None:
        raise InputError(
            f"machine {machine.name}: problem placement needs a memory with addresses (ocm_bytes, or the three buffers)"
        )
    memories = [
        Memory(name=name, bytes=size, bank_bytes=machine.bank_bytes if machine.ocm_banks else 0)
        for name, size in machine.memories.items()
    ]
    life = {"lower": min(b.lower for b in given.buffers), "upper": max(b.upper for b in given.buffers)}
    reserved = [
        Buffer(
            name=f"reserved in {memory.name}", **life, size=machine.reserved_bytes, offset=0, memories=(memory.name,)
        )
        for memory in memories
        if machine.reserved_bytes
    ]
    try:
        return Buffers(
            name=given.name, buffers=(*given.buffers, *reserved), memories=tuple(memories), conflicts=given.conflicts
        )
    except ValueError as error:
        said = str(error).split("Value error, ")[-1].split(" [type=")[0]
        raise InputError(f"buffers {given.name} on machine {machine.name}: {said}") from None
