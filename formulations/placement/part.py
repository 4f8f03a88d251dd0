"""All placements of an instance, as the part that is decided; see `formulations.placement` for the engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from formulations.clock import Clock
from formulations.pins import Pins
from formulations.placement.instance import Instance
from formulations.placement.packing import Cut, Packing, Split
from formulations.placement.peak import least_peak
from formulations.placement.search import fit
from formulations.problem import Goal, Model, Part, Piece, Priced, Replayed, Steps
from hwmodels.placement.replay import replay
from hwmodels.placement.schedule import Place, Placement
from instances.network.buffers import Buffers, Memory

if TYPE_CHECKING:
    from formulations.placement.cp_sat import Master

#: Nodes of a search for a smaller set that does not fit, and the most buffers of a set that is worth it.
_CUT_NODES, _CUT_BUFFERS = 4_000, 80
#: Of the first turn nodes of the exact search, and work of CP-SAT (a unit takes ten seconds to a minute); how much more
#: the next turns have. CP-SAT is soon done where rectangles are cut from one, the search where lives are those of maps.
_NODES, _WORK, _GROWTH = 30_000, 0.05, 32
#: Nodes of the search for what a master puts in a memory.
_SHARED_NODES = 1_000_000


@dataclass(frozen=True)
class _Packed:
    """One memory: addresses, or none; what its buffers are not below (None: they do not fit); a set that shows it."""

    addresses: Mapping[str, int] | None
    least: int | None
    witness: frozenset[str]
    undecided: bool = False


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
            yield Everything(self.instance)

    def price(self, schedule: Placement) -> Priced:
        """Bytes of what is off the chip, bytes that lie where others are preferred, and bytes of memories."""
        return self.instance.price(schedule)

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
        return self.instance.contains(schedule)

    def explain(self) -> tuple[str, ...]:
        """Buffers that are too large, or too many at one time; else that no addresses exist."""
        room, number = sum(self.instance.capacity.values()), len(self.instance.buffers)
        said = f"no addresses for {number} buffers in {room:,} bytes"
        alive = f"though at most {self.instance.least_load:,} are alive at one time"
        return self.instance.plain or (f"{said}, {alive}",)


class Everything(Piece[Placement]):
    """All placements."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance

    def floor(self, goal: Goal) -> int:
        """Bytes of the fullest time."""
        if goal.measure == "bytes":
            return self.instance.least_spill
        return self.instance.least_load if goal.measure == "peak" else 0

    def cp_sat(self, goal: Goal) -> Model[Placement]:
        """The model of rectangles."""
        return self._rectangles(goal)

    def milp(self, goal: Goal) -> Model[Placement]:
        """The model of orders."""
        from formulations.placement import milp  # late: solvers are slow to import

        return milp.build(self.instance, goal)

    def steps(self, goal: Goal, engine: str) -> Steps[Placement]:
        """Engine search: a master, packing, cuts; others as always."""
        return self._search(goal) if engine == "search" else super().steps(goal, engine)

    def _search(self, goal: Goal) -> Steps[Placement]:
        if len(self.instance.memories) == 1 and all(b.spill is None for b in self.instance.buffers):
            return self._addresses(goal)
        return self._shared(goal)

    def _addresses(self, goal: Goal) -> Steps[Placement]:
        """One memory, nothing to decide but addresses: the exact search and CP-SAT by turns, each time for longer."""
        (memory,) = self.instance.memories
        names = [b.name for b in self.instance.buffers]
        packing, best, bound = self.instance.packing(names, memory), None, self.floor(goal)
        capacity = min([self.instance.capacity[memory.name], *self._most_peak(goal)])
        for rounds, (nodes, work) in enumerate(_turns(), 1):
            goal.stats["rounds"] = rounds
            told = self._packing(packing, capacity, goal, nodes)
            if told.addresses is not None:
                best = Placement(tuple(Place(name, memory.name, a) for name, a in told.addresses.items()))
                value = self._value(best, goal)
                if goal.measure != "peak" or value <= max(bound, told.least or 0):
                    return best, value if goal.measure == "peak" else bound
                goal, capacity = replace(goal, below=value, known=best), value - 1
            elif not told.undecided:
                return best, goal.below if best is not None else None
            bound = max(bound, told.least or 0) if goal.measure == "peak" else bound
            if goal.clock.over:
                break
            said = yield self._rectangles(self._at_most(goal, bound), work)
            if said.schedule is not None:
                return said.schedule, bound
            if said.bound is None and goal.measure != "peak":
                return best, None
            if said.bound is None:
                bound = bound // packing.unit * packing.unit + packing.unit
                if bound > capacity:
                    return best, goal.below if best is not None else None
        return best, bound

    def _at_most(self, goal: Goal, bound: int) -> Goal:
        """Ask for what reaches a bound: that is easier than to look for the least."""
        return replace(goal, caps={**goal.caps, "peak": bound}, below=None) if goal.measure == "peak" else goal

    def _packing(self, packing: Packing, capacity: int, goal: Goal, nodes: int) -> _Packed:
        """What one turn of the exact search says."""
        if goal.measure == "peak":
            return _least(packing, capacity, goal.clock, nodes)
        return _fitted(packing, capacity, goal.clock, nodes)

    def _rectangles(self, goal: Goal, work: float | None = None) -> Model[Placement]:
        from formulations.placement import cp_sat

        return cp_sat.build(self.instance, goal, work)

    def _shared(self, goal: Goal) -> Steps[Placement]:
        """Several memories, or buffers that may leave: a master, packing, cuts; at last the model of rectangles."""
        from formulations.placement.cp_sat import Master

        master, bound, best = Master(self.instance), self.floor(goal), None
        for rounds in count(1):
            told = yield self._model(master, goal)
            if told.bound is None:
                return best, None if best is None else self._value(best, goal)
            bound, split = max(bound, told.bound), cast("Split | None", told.schedule)
            if split is None:
                return best, bound
            goal.stats["rounds"] = rounds
            packed = {m.name: self._packed(m, split, goal) for m in self.instance.memories}
            made = self._made(split, packed)
            if made is not None and self._meets(made, goal):
                best, value = made, self._value(made, goal)
                if value <= bound:
                    return best, bound
                goal = replace(goal, below=value, known=made)
            cuts = [cut for cut in _cuts(split, packed) if cut not in master.cuts]
            if not cuts or goal.clock.over:
                break
            master.cuts += cuts
        if goal.clock.over:
            return best, bound
        said = yield self._rectangles(goal)
        if said.bound is None:
            return best, None if best is None else self._value(best, goal)
        return (best if said.schedule is None else said.schedule), max(bound, said.bound)

    def _model(self, master: Master, goal: Goal) -> Model[Any]:
        from formulations.placement.cp_sat import read

        model, x, top = master.model(goal)
        return Model(model, lambda solver: read(self.instance, solver, x, top), solver="cp-sat")

    def _packed(self, memory: Memory, split: Split, goal: Goal) -> _Packed:
        names = split.inside[memory.name]
        if not names:
            return _Packed({}, 0, frozenset())
        packing, capacity = self.instance.packing(names, memory), self.instance.capacity[memory.name]
        if goal.measure == "peak" or "peak" in goal.caps:
            return _least(packing, capacity, goal.clock, _SHARED_NODES)
        return _fitted(packing, capacity, goal.clock, _SHARED_NODES)

    def _most_peak(self, goal: Goal) -> Sequence[int]:
        """What the peak may be, by the goal."""
        below = [goal.below - 1] if goal.measure == "peak" and goal.below is not None else []
        return [*below, *([goal.caps["peak"]] if "peak" in goal.caps else [])]

    def _made(self, split: Split, packed: Mapping[str, _Packed]) -> Placement | None:
        """The placement, if all memories are packed."""
        where = dict[str, Place]()
        for memory, told in packed.items():
            if told.addresses is None:
                return None
            where |= {name: Place(name, memory, address) for name, address in told.addresses.items()}
        return Placement(tuple(where[b.name] for b in self.instance.buffers if b.name in where))

    def _value(self, made: Placement, goal: Goal) -> int:
        return self.instance.price(made).measures[goal.measure]

    def _meets(self, made: Placement, goal: Goal) -> bool:
        measures = self.instance.price(made).measures
        under = goal.below is None or measures[goal.measure] < goal.below
        return under and all(measures[name] <= most for name, most in goal.caps.items())


def _turns() -> Iterator[tuple[int, float]]:
    """Yield nodes of the exact search and work of CP-SAT, turn after turn."""
    nodes, work = _NODES, _WORK
    while True:
        yield nodes, work
        nodes, work = nodes * _GROWTH, work * _GROWTH


def _fitted(packing: Packing, capacity: int, clock: Clock, nodes: int) -> _Packed:
    """Addresses below a capacity; a small set that has none, if that is shown."""
    addresses = dict[str, int]()
    for part in packing.parts():
        told = fit(part, capacity, clock, nodes=nodes)
        if told.status == "stopped":
            return _Packed(None, 0, frozenset(), undecided=True)
        if told.status == "does not fit":
            return _Packed(None, None, _smaller(part, capacity, clock))
        addresses |= {b.name: a for b, a in zip(part.buffers, told.addresses, strict=True)}
    return _Packed({b.name: addresses[b.name] for b in packing.buffers}, 0, frozenset())


def _least(packing: Packing, capacity: int, clock: Clock, nodes: int) -> _Packed:
    """The least bytes that buffers take, and a part of them that takes as many."""
    told = least_peak(packing, capacity, clock, nodes=nodes)
    witness, names = frozenset(told.witness), [b.name for b in packing.buffers]
    if told.addresses is None:
        return _Packed(None, None if told.bound > capacity else told.bound, witness, told.bound <= capacity)
    return _Packed(dict(zip(names, told.addresses, strict=True)), told.bound, witness, told.bound < (told.peak or 0))


def _cuts(split: Split, packed: Mapping[str, _Packed]) -> list[Cut]:
    """What a packing teaches the master."""
    found = []
    for memory, told in packed.items():
        if told.witness and (told.least is None or told.least > split.tops.get(memory, 0)):
            found.append(Cut(memory, told.witness, told.least))
    return found


def _smaller(packing: Packing, capacity: int, clock: Clock) -> frozenset[str]:
    """Of buffers that do not fit as few as still do not: one after the other is left out if a short search says so."""
    kept = list(range(len(packing.buffers)))
    for number in tuple(kept) if len(kept) <= _CUT_BUFFERS else ():
        less = [k for k in kept if k != number]
        if (
            less
            and not clock.over
            and fit(packing.of(less), capacity, clock, nodes=_CUT_NODES).status == "does not fit"
        ):
            kept = less
    return frozenset(packing.buffers[k].name for k in kept)
