"""Replay of a bank program in time, cycle by cycle, as the published simulator has it.

The element reads a word of the map and of the weights a cycle, and waits, once the first cycle of what it reads is
over, until it is there: the weights in the first cycle of a unit, a tile where the first kernel column reads it.

Requests
    for weights (a sum: streamed columns): when a unit begins, for the unit after it; a depthwise stage, whose weights
    are one request, asks with its first unit for those of the stage that follows; pooling asks for nothing, so the
    stage ahead of it asks for those behind it; what the stage before makes is asked for as a stage begins.
    Without columns a unit waits for nothing, and the next one that has some for its weights too.
    for biases: as a stage with weights begins, for the next one.
    for tiles: one a cycle as a stage begins, after a cycle of nothing; later in the last unit of a step, when the
    first cycle of a column is over that needs the tile no more, one a cycle; or at the step's end, a cycle each.
Bus
    Latency and transfer are whole cycles. Weights are served among themselves; a load that would have ended after they
    begin ends later by what they take; loads and biases come one after the other.

Source: the public MIDAP simulator of 2020-09-02, its cycle-by-cycle level 0, but for three things: biases are there in
time, what is on the bus of biases, or of a tile that no window reads, is forgotten with its stage, and nothing waits
for writes. Each makes a plan seem quicker than it is, by some cycles in small stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from hwmodels.replay_bank_moved import Moved
from hwmodels.replay_bank_time import Column, Spent, Unit, clocked, latency
from instances.machine import Banks, Transfer

__all__ = ["clocked_by_cycle", "spent_on"]


@dataclass
class _Bus:
    """DRAM: `weights` and `end` say when the last weights, the last request is over; `arrived` when every load is."""

    dram: Transfer
    cycle: int
    weights: int = 0
    end: int = 0
    arrived: dict[int, int] = field(default_factory=dict)

    def _whole(self, ticks: int) -> int:
        return -(-ticks // self.cycle) * self.cycle

    def _latency(self, size: int) -> int:
        return self._whole(latency(self.dram, size))

    def load(self, now: int, size: int, number: int | None = None) -> None:
        """Ask for a tile, or for biases."""
        if not size:
            return
        self.end = max(now + self._latency(size), self.end) + self._whole(self.dram.byte_ticks * size)
        if number is not None:
            self.arrived[number] = self.end

    def forget(self) -> None:
        """A stage ends: only weights that were asked for are still under way."""
        self.end = self.weights
        self.arrived.clear()

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
    """The processing element."""

    bus: _Bus
    loads: Sequence[int]
    cycle: int
    now: int = 0

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
        ahead = [(load, before) for load, before in column.waits if not before]
        for load, before in (*ahead, (None, 0), *(one for one in column.waits if one[1])):
            if load is None:
                for late, number in enumerate(waiting):
                    self.bus.load(self.now + late * self.cycle, self.loads[number], number)
                continue
            self.now += (before + 1 - worked) * self.cycle
            worked = before + 1
            arrived = self.bus.arrived.get(load, 0)
            if arrived > self.now:
                spent.waits_for_maps += arrived - self.now
                self.now = arrived
        self.now += (column.cycles - worked) * self.cycle


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
        if opening.asks != "never":
            if at == weighted[0] or opening.alone:
                there[at] = bus.fetch(begin, opening.weights)
            if at == weighted[0]:
                bus.load(begin, opening.bias)
            if after is not None:
                bus.load(begin, after.bias)
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
