"""Replay of a bank program in time, cycle by cycle, as the published simulator has it.

The element reads a word of the map and of the weights a cycle, and waits, once the first cycle of what it reads is
over, until it is there: the weights in the first cycle of a unit, a tile where the first kernel column reads it.

Requests
    for weights (a sum: streamed columns): when a unit begins, for the unit after it; a depthwise stage, whose weights
    are one request, asks with its first unit for those of the stage that follows; pooling asks for nothing, so the
    stage ahead of it asks for those behind it; what the stage before makes is asked for as a stage begins.
    Without columns a unit waits for nothing, and the next one that has some for its weights too.
    for biases: as a stage with weights begins, for the next one, and by the first one for its own. A stage waits for
    its biases when its first pixel reaches the adder that takes them.
    for tiles: one a cycle as a stage begins, after a cycle of nothing; later in the last group of a step (a sum: in any
    column), when the first cycle of a column is over that needs the tile no more, one a cycle; or at the step's end, a
    cycle each.
Bus
    Latency and transfer are whole cycles. Weights are served among themselves; loads and biases come one after the
    other. What would have ended after weights begin ends later by what they take: biases also in later stages.

Source: the public MIDAP simulator of 2020-09-02, its cycle-by-cycle level 0, but for three things: what is on the bus
of a tile that no window reads is forgotten with its stage, biases are waited for at the latest as the first unit ends,
and nothing waits for writes. Each makes a plan seem quicker than it is, by some cycles in small stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from hwmodels.banks.replay.time import Column, Moved, Spent, Unit, clocked, latency
from instances.machine.machine import Banks, Transfer
from instances.machine.sections import ADDER_CYCLES

#: What the bus brings beside tiles: biases of the stage that runs, and of the next one with weights.
_OWN, _NEXT = -1, -2


@dataclass
class _Bus:
    """DRAM: `weights` and `end` say when the last weights, the last request is over; `arrived` when tiles, biases."""

    dram: Transfer
    cycle: int
    weights: int = 0
    end: int = 0
    arrived: dict[int, int] = field(default_factory=dict)

    def _whole(self, ticks: int) -> int:
        return -(-ticks // self.cycle) * self.cycle

    def _latency(self, size: int) -> int:
        return self._whole(latency(self.dram, size))

    def load(self, now: int, size: int, number: int) -> None:
        """Ask for a tile, or for biases."""
        if not size:
            return
        self.end = max(now + self._latency(size), self.end) + self._whole(self.dram.byte_ticks * size)
        self.arrived[number] = self.end

    def forget(self) -> None:
        """A stage ends: only weights and biases that were asked for are still under way."""
        self.arrived = {number: end for number, end in self.arrived.items() if number == _NEXT}
        self.end = max(self.weights, *self.arrived.values(), 0)

    def turn(self) -> None:
        """A stage begins that takes the biases that were asked for."""
        self.arrived = dict.fromkeys([_OWN], self.arrived[_NEXT]) if _NEXT in self.arrived else {}

    def fetch(self, now: int, size: int) -> int:
        """Ask for weights; return when they are there."""
        if not size:
            return now
        begin, takes = max(now + self._latency(size), self.weights), self._whole(self.dram.byte_ticks * size)
        self.weights = begin + takes
        for number, end in self.arrived.items():
            if end > begin:
                self.arrived[number] = end + takes
        self.end = max(self.weights, self.end + takes)
        return self.weights


@dataclass
class _Element:
    """The processing element; `adder`: cycles of work until its first pixel takes the biases, 0 once it has them."""

    bus: _Bus
    loads: Sequence[int]
    cycle: int
    now: int = 0
    adder: int | None = None

    def open(self, loads: Sequence[int]) -> None:
        """A stage begins: a cycle of nothing, and one for every load."""
        self.now += self.cycle
        for number in loads:
            self.bus.load(self.now, self.loads[number], number)
            self.now += self.cycle

    def unit(self, unit: Unit, there: int, spent: Spent) -> bool:
        """Go through a unit whose weights are there at some time; whether it makes anything, so waits for them."""
        waiting, began = list[int](), False
        for item in unit.script:
            if isinstance(item, int):
                waiting.append(item)
            elif item.cycles:
                self._column(item, 0 if began else there, waiting, spent)
                waiting, began = [], True
        if began and self.adder:
            self._wait(_OWN, self.adder, spent)
            self.adder = 0
        for number in waiting:
            self.bus.load(self.now, self.loads[number], number)
            self.now += self.cycle
        return began

    def _column(self, column: Column, there: int, waiting: Sequence[int], spent: Spent) -> None:
        worked = 1
        self.now += self.cycle
        if there > self.now:
            spent.waits_for_weights += there - self.now
            self.now = there
        waits = sorted((*column.waits, *self._biases(column)), key=lambda one: one[1])
        ahead = [(load, before) for load, before in waits if not before]
        for load, before in (*ahead, (None, 0), *(one for one in waits if one[1])):
            if load is None:
                for late, number in enumerate(waiting):
                    self.bus.load(self.now + late * self.cycle, self.loads[number], number)
                continue
            self.now += (before + 1 - worked) * self.cycle
            worked = before + 1
            self._wait(load, 0, spent)
        self.now += (column.cycles - worked) * self.cycle

    def _biases(self, column: Column) -> list[tuple[int, int]]:
        """The wait for the biases, if it is in this column: after the cycles ahead of the one that takes them."""
        if self.adder is None:
            self.adder = column.pixel + ADDER_CYCLES
        needed, self.adder = self.adder, max(0, self.adder - column.cycles)
        return [(_OWN, needed - 1)] if needed and not self.adder else []

    def _wait(self, number: int, early: int, spent: Spent) -> None:
        """Wait for a tile, or for biases, that is needed so many cycles later."""
        late = self.bus.arrived.get(number, 0) - early * self.cycle - self.now
        if late > 0 and number == _OWN:
            spent.waits_for_weights += late
        elif late > 0:
            spent.waits_for_maps += late
        self.now += max(0, late)


def clocked_by_cycle(
    units: Sequence[Unit], loads: Sequence[int], dram: Transfer, cycle: int, fixed_cycles: int = 0
) -> dict[str, Spent]:
    """Follow the units in time.

    Parameters
    ----------
    loads : sequence of int
        Bytes of every load.
    cycle : int
        Ticks of a cycle.
    fixed_cycles : int
        Of every stage beside its columns and the cycles in which it asks for loads.
    """
    bus = _Bus(dram, cycle)
    element = _Element(bus, loads, cycle)
    runs = [list(run) for _, run in groupby(units, key=lambda unit: unit.stage)]
    weighted = [at for at, run in enumerate(runs) if run[0].asks != "never"]
    onward = dict(pairwise(weighted))
    there: dict[int, int] = {}
    spent: dict[str, Spent] = {}
    for at, run in enumerate(runs):
        begin, mine, opening = element.now, Spent(), run[0]
        spent[opening.stage] = mine
        after = runs[onward[at]][0] if at in onward else None
        element.adder = 0
        if opening.asks != "never":
            element.adder = None
            bus.turn()
            if at == weighted[0] or opening.alone:
                there[at] = bus.fetch(begin, opening.weights)
            if at == weighted[0]:
                bus.load(begin, opening.bias, _OWN)
            if after is not None:
                bus.load(begin, after.bias, _NEXT)
        element.open(opening.opening)
        ready = there.get(at, begin)
        asking = {"each": len(run) - 1, "first": 0, "never": -1}[opening.asks]
        for number, unit in enumerate(run):
            following = 0
            if number == asking and after is not None and not after.alone:
                there[onward[at]] = bus.fetch(element.now, after.weights)
            elif number + 1 < len(run) and unit.asks == "each":
                following = bus.fetch(element.now, run[number + 1].weights)
            if element.unit(unit, ready, mine):
                ready = 0
            elif unit.weights and unit.asks == "first":
                element.now = max(element.now, ready)
            ready = max(ready, following)
        bus.forget()
        element.now += (fixed_cycles + run[-1].average) * cycle
        mine.ticks = element.now - begin
    return spent


def spent_on(banks: Banks, moved: Moved, dram: Transfer, cycle: int, *, writing: bool) -> dict[str, Spent]:
    """Follow a bank program in time, as its machine counts it; `writing`: whether writes take time."""
    if banks.by_cycle:
        return clocked_by_cycle(moved.units, moved.loads, dram, cycle, banks.stage_cycles)
    return clocked(moved.units, moved.loads, dram, cycle, banks.stage_cycles, writing=writing)
