"""The best of all nests of a tiny layer on one core without a timeline: any loops, any places, any Holds.

A state is the set of places where loops have cut so far, of all dimensions: pieces, and so tiles and trips, depend on
nothing else, whatever loops made them. A loop adds places of one dimension. What an operand moves depends on the state
where it is held, and for IN that slides on the places that the last loop added. So the least nest is a shortest path:

    f[held, v, room]   the least so far where these operands are held, in so much room
    loops              f[held, v] = min over u <= v of f[held, u]
    a Hold             of X at v costs what all loops so far ask for; after a loop that X does not depend on that may be
                       more than the nest costs, but the same Hold before that loop is looked at too
    IN that slides     goes from u to v by the one loop over r, c, i or j that cuts in between
    inputs             of which some are broadcast are priced one by one; from then on until all are, and IN is held,
                       no loop cuts what one that is priced depends on

Partial sums take room if n, i or j is cut anywhere, even inside the Hold of OUT: so twice, once without such loops.
Prices are those of `tests.adversary.pricing`; the nest that is found is confirmed by replay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from instances.machine.machine import Machine
from instances.network.workload import DIMS, REDUCTION, RELEVANT, Layer
from tests.adversary.anneal import Goal, Witness, agreed
from tests.adversary.boxes import Cut
from tests.adversary.moves import Form
from tests.adversary.pricing import Cost, Item, Pricer

Ints = NDArray[np.int64]
#: More than any value; the first of two measures counts this often.
_FAR, _FIRST = 1 << 60, 1 << 28
#: What is held: inputs that are priced, W, OUT, and IN when all its inputs are held.
_Held = frozenset[str]


@dataclass
class _Step:
    """Ways from states to others, each by a Hold behind a loop or none: room and value."""

    before: _Held
    item: str
    starts: Ints
    ends: Ints
    room: Ints
    value: Ints


def able(layer: Layer, machine: Machine, places: int) -> bool:
    """Whether `least` knows the machine, and the layer has at most so many places to cut."""
    if machine.tles * machine.tlts > 1 or machine.line or machine.snake or machine.off_chip or machine.im2col_rows:
        return False
    if machine.edge_tiles == "uniform" or machine.timing == "double_buffered" or machine.buffering != "single":
        return False
    return len(machine.memories) == 1 and sum(layer.extent(d) - 1 for d in DIMS) <= places


def least(goal: Goal) -> Witness | None:
    """Return the best nest, confirmed by replay; None if none fits. Of machines and layers that are `able`."""
    found = [one for cut in (False, True) if (one := _Lattice(goal, cut=cut).best()) is not None]
    if not found:
        return None
    value, form = min(found, key=lambda one: one[0])
    split = (value,) if len(goal.measures) == 1 else divmod(value, _FIRST)
    return agreed(goal, tuple(int(x) for x in split), form)


@dataclass
class _Lattice:
    goal: Goal
    cut: bool
    """Whether OUT has room for partial sums, and loops may cut n, i and j."""
    steps: dict[_Held, list[_Step]] = field(default_factory=dict)
    raw: dict[_Held, Ints] = field(default_factory=dict)
    values: dict[_Held, Ints] = field(default_factory=dict)

    def __post_init__(self) -> None:
        layer, machine = self.goal.layer, self.goal.machine
        self.layer, self.machine, self.pricer = layer, machine, Pricer(layer, machine)
        (self.core,) = self.pricer.cores(())
        self.free = [d for d in DIMS if layer.extent(d) > 1 and (self.cut or d not in REDUCTION)]
        self.first, bits = dict[str, int](), 0
        for d in self.free:
            self.first[d], bits = bits, bits + layer.extent(d) - 1
        self.states = np.arange(1 << bits, dtype=np.int64)
        self.inputs = [f"IN{k}" for k in range(layer.inputs)] if layer.broadcast else []
        self.names = [*self.inputs, *(x for x in layer.operands if x != "IN" or not self.inputs)]
        self.mine = {x: RELEVANT[x] for x in layer.operands}
        self.mine |= {x: RELEVANT["IN"] - set(layer.patterns[k]) for k, x in enumerate(self.inputs)}
        result = max(machine.psum_bytes, machine.out_bytes) if self.cut else machine.out_bytes
        self.element = {"OUT": result}
        self.costs: dict[tuple[object, ...], Cost] = {}
        (size,) = machine.memories.values()
        whole = sum(self._cost(x, 0, "", 0).tile * self.element.get(x, 1) for x in self.names)
        self.most = min(size - machine.reserved_bytes, whole * machine.buffers(None))

    # ---- states ----------------------------------------------------------------------------------------------------

    def _mask(self, d: str) -> int:
        return ((1 << self.layer.extent(d) - 1) - 1) << self.first[d] if d in self.first else 0

    def _places(self, d: str, state: int) -> tuple[int, ...]:
        return tuple(
            x for x in range(1, self.layer.extent(d)) if d in self.first and state >> self.first[d] + x - 1 & 1
        )

    def _pieces(self, d: str) -> Ints:
        """How many pieces a dimension has in every state."""
        number = np.ones_like(self.states)
        for x in range(self.layer.extent(d) - 1 if d in self.first else 0):
            number += self.states >> self.first[d] + x & 1
        return number

    # ---- prices ----------------------------------------------------------------------------------------------------

    def _cost(self, item: str, state: int, last: str, before: int) -> Cost:
        """Of an operand held behind loops that cut so, the last one over `last`, before which it was cut `before`."""
        key = item, state, last, before
        if key not in self.costs:
            loops: list[Cut] = []
            for d in sorted(self.free, key=lambda d: (d == last, d in self.mine[item])):
                for part in (before, state & ~before) if d == last else (state,):
                    if places := self._places(d, part):
                        loops.append((d, places))
            if item in self.inputs:
                spans = dict(zip(DIMS, self.core.spans, strict=True))
                self.costs[key] = self.pricer._new((), spans, "IN", tuple(loops), int(item[2:]))
            else:
                self.costs[key] = self.pricer.cost((), self.core.spans, item, tuple(loops))
        return self.costs[key]

    def _value(self, item: str, cost: Cost) -> int:
        total, operand = 0, "IN" if item in self.inputs else item
        of = {"bytes": cost.moved, "time": cost.load + cost.store,
              "energy": cost.moved * self.machine.byte_fj_of(operand)}  # fmt: skip
        for name in self.goal.measures:
            total = total * _FIRST + of[name]
        return total

    def _rest(self) -> Ints:
        """What all states cost beside what moves."""
        total = np.zeros_like(self.states)
        for name in self.goal.measures:
            more = np.zeros_like(self.states)
            if name == "energy":
                more += self.machine.mac_fj * self.layer.macs
            if name == "time":
                more += self.machine.layer_ticks
                if self.machine.timing == "serial":
                    more += self._computing()
            total = total * _FIRST + more
        return total

    def _computing(self) -> Ints:
        unit, layer = self.machine.compute, self.layer
        ticks = np.full_like(self.states, layer.inputs * unit.cycle_ticks)
        if unit.model == "none":
            return 0 * ticks
        lanes = {"g": unit.cols} if layer.m == layer.n == 1 else {"m": unit.rows, "n": unit.cols}
        largest = dict[str, Ints]()
        for d in DIMS:
            where = [self._places(d, int(v)) for v in self.states]
            sizes = [np.diff([0, *places, layer.extent(d)]) for places in where]
            largest[d] = np.array([one.max() for one in sizes])
            if unit.model == "tile":
                ticks *= self._pieces(d)
            else:
                ticks *= np.array([(-(-one // lanes.get(d, 1))).sum() for one in sizes])
        if unit.model == "tile":
            window = prod((largest[d] for d in "rcij"), start=np.ones_like(ticks))
            ticks *= prod((largest[d] for d in "bgnm"), start=-(-window // unit.macs_per_cycle))
        return ticks

    # ---- ways ------------------------------------------------------------------------------------------------------

    def best(self) -> tuple[int, Form] | None:
        """The least value and its nest; None if nothing fits."""
        if self.most < 0:
            return None
        every = frozenset({*self.names, "IN"})
        start = np.full((len(self.states), self.most + 1), _FAR)
        start[0, 0] = 0
        self.raw = {frozenset(): start}
        for held in self._orders():
            if held not in self.raw:
                continue
            self.values[held] = self._spread(self.raw[held], self._open(held))
            for step in self._ahead(held):
                self._take(held, step)
        if every not in self.values:
            return None
        total = self.values[every] + self._rest()[:, None]
        v, room = np.unravel_index(int(total.argmin()), total.shape)
        if self.values[every][v, room] >= _FAR:
            return None
        return int(total[v, room]), Form((), tuple(self._back(every, int(v), int(room))))

    def _orders(self) -> Iterator[_Held]:
        names = [*self.names, *(["IN"] if self.inputs else [])]
        found = [frozenset(n for k, n in enumerate(names) if one >> k & 1) for one in range(1 << len(names))]
        return iter(sorted(found, key=len))

    def _open(self, held: _Held) -> list[str]:
        """The dimensions that loops may cut now."""
        waiting = [x for x in self.inputs if x in held and "IN" not in held]
        return [d for d in self.free if all(d not in self.mine[x] for x in waiting)]

    def _spread(self, raw: Ints, dims: list[str]) -> Ints:
        """The least over all states with fewer places."""
        found = raw.copy()
        for d in dims:
            for x in range(self.layer.extent(d) - 1):
                bit = 1 << self.first[d] + x
                with_ = self.states[self.states & bit != 0]
                found[with_] = np.minimum(found[with_], found[with_ ^ bit])
        return found

    def _ahead(self, held: _Held) -> Iterator[_Step]:
        for item in self.names:
            if item in held:
                continue
            if item == "IN" and self.machine.sliding:
                yield from self._sliding(held)
            else:
                yield self._priced(held, item, self.states, self.states, "")
        if self.inputs and "IN" not in held and all(x in held for x in self.inputs):
            nothing = np.zeros_like(self.states)
            yield _Step(held, "IN", self.states, self.states, nothing, nothing)

    def _sliding(self, held: _Held) -> Iterator[_Step]:
        mine = sum(self._mask(d) for d in self.mine["IN"])
        uncut = self.states[self.states & mine == 0]
        yield self._priced(held, "IN", uncut, uncut, "")
        for d in self.free:
            mask = self._mask(d)
            if d in "rcij":
                pairs = [(int(v) & ~mask | part, int(v)) for v in self.states for part in _within(int(v) & mask)]
            elif d in self.mine["IN"]:
                bits = [1 << k for k in range(mask.bit_length()) if mask >> k & 1]
                pairs = [(int(v) ^ bit, int(v)) for v in self.states for bit in bits if int(v) & bit]
            else:
                continue
            starts, ends = np.array(pairs, np.int64).reshape(-1, 2).T
            yield self._priced(held, "IN", starts, ends, d)

    def _priced(self, held: _Held, item: str, starts: Ints, ends: Ints, last: str) -> _Step:
        mine = sum(self._mask(d) for d in self.mine[item])
        often = np.prod([self._pieces(d) for d in DIMS if d not in self.mine[item]], axis=0)[ends]
        mask = self._mask(last) if last in "rcij" and last else 0
        room, value = np.zeros_like(ends), np.zeros_like(ends)
        factor = self.element.get(item, 1) * self.machine.buffers(None)
        for k, (u, v) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            if item == "OUT":  # what comes back is not in proportion to how often it is visited
                cost = self._cost(item, v, "", 0)
                value[k] = self._value(item, cost)
            else:
                cost = self._cost(item, v & mine, last, u & mask)
                value[k] = self._value(item, cost) * often[k]
            room[k] = cost.tile * factor
        return _Step(held, item, starts, ends, room, value)

    def _take(self, held: _Held, step: _Step) -> None:
        after = held | {step.item}
        self.steps.setdefault(after, []).append(step)
        new = self.raw.setdefault(after, np.full((len(self.states), self.most + 1), _FAR))
        old = self.values[held]
        for room in np.unique(step.room):
            if room > self.most:
                continue
            at = np.flatnonzero(step.room == room)
            reached = np.minimum(old[step.starts[at], : self.most + 1 - room] + step.value[at, None], _FAR)
            np.minimum.at(new[:, room:], step.ends[at], reached)

    # ---- the nest --------------------------------------------------------------------------------------------------

    def _back(self, held: _Held, state: int, room: int) -> list[Item]:
        value = int(self.values[held][state, room])
        mask = sum(self._mask(d) for d in self._open(held))
        for part in (state & ~mask | x for x in (state & mask, *_within(state & mask))):
            if self.raw[held][part, room] == value:
                break
        loops = self._loops(part, state)
        if not held:
            return loops
        for step in self.steps[held]:
            at = np.flatnonzero((step.ends == part) & (step.room <= room))
            good = self.values[step.before][step.starts[at], room - step.room[at]] + step.value[at] == value
            if good.any():
                k = int(at[np.flatnonzero(good)[0]])
                items = self._back(step.before, int(step.starts[k]), room - int(step.room[k]))
                hold: list[Item] = [] if step.item in self.inputs else [(step.item, None)]
                return [*items, *self._loops(int(step.starts[k]), part), *hold, *loops]
        raise AssertionError("no step leads here")

    def _loops(self, before: int, after: int) -> list[Item]:
        return [(d, places) for d in self.free if (places := self._places(d, after & ~before))]


def _within(mask: int) -> list[int]:
    """All proper subsets of a set of bits."""
    found, part = list[int](), mask
    while part:
        part = part - 1 & mask
        found.append(part)
    return found
