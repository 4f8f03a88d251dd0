"""Replay of a bank program in time: the units of work of a stage, on one processing element and one DRAM bus.

**Time**, event by event (`clocked`). The element goes through units of work, one after the other: a unit is one group
of filters over the columns of one process step (a sum: one column). Before a unit it waits for the unit's weights (a
sum: its streamed column), before a column for the tiles that the column needs. DRAM requests are served in the order in
which they are made. When a unit begins, the weights of the next group (a sum: the next column) are asked for, then the
loads that open the stage, then, in the last group of a step, the weights of the step or stage that follows. Later loads
are asked for when a bank becomes free in the last group. A request that is made at t is on the bus from
``max(t + latency, end of the request before)``.

Writes take no time, or are requests like others. Then a unit, as it begins, first asks for what the unit before has
left to write, the first one of a stage for what leaves the chip though others read it; the last one of a step, ahead of
the weights of what follows, for columns that the step drops and a load brings again. A stage ends when all is written.

Source: `heterogeneous_mapping_and_banks` 4.1.2.1 (Eq. 4.1, 4.2), 4.2.3.

**Units** of work (`Units`), as the replay of a bank program finds them. A process step goes through its columns once
for each group; a sum is a unit a column. A load that waits for a bank is noted in the script of the step's last group,
where the bank becomes free; others behind it.

**By cycle**, as the published simulator has it (`clocked_by_cycle`). The element reads a word of the map and of the
weights a cycle, and waits, once the first cycle of what it reads is over, until it is there: the weights in the first
cycle of a unit, a tile where the first kernel column reads it.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

from instances.machine.machine import Banks, Transfer
from instances.machine.sections import ADDER_CYCLES
from instances.network.feature_maps import Stage


@dataclass(frozen=True)
class Column:
    """A column of the result: cycles, and the last load that brings what it needs.

    `waits`: by cycles all such loads, each with the cycles of the column ahead of what reads it first; `pixel`: cycles
    of its first pixel.
    """

    cycles: int
    needs: int | None
    waits: tuple[tuple[int, int], ...] = ()
    pixel: int = 0


@dataclass
class Unit:
    """One group of filters over one process step."""

    stage: str
    weights: int
    """Bytes that have to come for it."""
    more: bool = False
    """Whether another group of the step (a sum: another column) comes after it."""
    opening: list[int] = field(default_factory=list)
    """Loads that are asked for when it begins."""
    script: list[Column | int] = field(default_factory=list)
    """Columns, and loads (their numbers) that are asked for between them."""
    drops: int = 0
    again: int = 0
    left: int = 0
    """`drops`, `again`, `left`: bytes to write: as the unit begins, ahead of all else; ahead of the weights of what
    follows; of its own result.
    """
    bias: int = 0
    """Bytes of the biases of its stage."""
    asks: Literal["each", "first", "never"] = "each"
    """Which units of its stage ask for the weights of the next one: each, the first one of the stage, none."""
    alone: bool = False
    """Whether the first weights of its stage are asked for as the stage begins, not before."""
    average: int = 0
    """Cycles for the average of what the stage computed, once its last unit is done."""


@dataclass
class Spent:
    """Ticks of a stage: until it ends, and waiting among them for tiles, for weights, and at its end for writes."""

    ticks: int = 0
    waits_for_maps: int = 0
    waits_for_weights: int = 0
    waits_for_writes: int = 0


@dataclass(frozen=True)
class StageFigures:
    """What a stage moves, in bytes by what they are, and takes, in ticks."""

    load: int
    """Of the map that is read from banks."""
    weight: int
    streamed: int
    """Of the second operands of sums."""
    bias: int
    write: int
    """Also of columns that this stage drops, or loads again."""
    ticks: int
    """Until the stage ends, from the end of the one before."""
    waits_for_maps: int
    waits_for_weights: int
    waits_for_writes: int
    """`waits_for_maps`, `waits_for_weights`, `waits_for_writes`: what of it the processing elements wait."""

    @property
    def bytes(self) -> int:
        """All bytes."""
        return self.load + self.weight + self.streamed + self.bias + self.write

    @property
    def waits(self) -> int:
        """All ticks of waiting."""
        return self.waits_for_maps + self.waits_for_weights + self.waits_for_writes


def latency(dram: Transfer, size: int) -> int:
    """Ticks before a request of so many bytes is on the bus, if that is free."""
    ticks = dram.call_ticks
    if dram.row_bytes:
        ticks += dram.row_ticks * (size // dram.row_bytes)
    if dram.refresh_bytes:
        ticks += dram.refresh_ticks * -(-size // dram.refresh_bytes)
    return ticks


class _Bus:
    """DRAM, one request after the other."""

    def __init__(self, dram: Transfer) -> None:
        self.dram, self.end = dram, 0

    def ask(self, now: int, size: int) -> int:
        """Return when a request is served."""
        if not size:
            return now
        self.end = max(now + latency(self.dram, size), self.end) + self.dram.byte_ticks * size
        return self.end


def clocked(
    units: Sequence[Unit], loads: Sequence[int], dram: Transfer, cycle: int, fixed_cycles: int, *, writing: bool
) -> dict[str, Spent]:
    """Follow the units in time.

    Parameters
    ----------
    loads : sequence of int
        Bytes of every load.
    cycle : int
        Ticks of a cycle.
    fixed_cycles : int
        Of every stage beside its columns.
    writing : bool
        Whether writes take time.
    """
    bus, now, written, left = _Bus(dram), 0, 0, 0
    spent: dict[str, Spent] = {}
    there = bus.ask(0, units[0].weights) if units else 0
    arrived: dict[int, int] = {}
    for unit, after in zip(units, [*units[1:], None], strict=True):
        begin, mine, needed = now, spent.setdefault(unit.stage, Spent()), there
        if writing:
            written = max([written, *(bus.ask(now, size) for size in (left, unit.drops))])
            left = unit.left
        if after is not None and unit.more:
            there = bus.ask(now, after.weights)
        for load in unit.opening:
            arrived[load] = bus.ask(now, loads[load])
        if writing:
            written = max(written, bus.ask(now, unit.again))
        if after is not None and not unit.more:
            there = bus.ask(now, after.weights)
        if needed > now:
            mine.waits_for_weights += needed - now
            now = needed
        for item in unit.script:
            if isinstance(item, int):
                arrived[item] = bus.ask(now, loads[item])
                continue
            if item.needs is not None and arrived[item.needs] > now:
                mine.waits_for_maps += arrived[item.needs] - now
                now = arrived[item.needs]
            now += item.cycles * cycle
        if after is None or after.stage != unit.stage:
            written, left = max(written, bus.ask(now, left)), 0
            now += (fixed_cycles + unit.average) * cycle
            if written > now:
                mine.waits_for_writes += written - now
                now = written
        mine.ticks += now - begin
    return spent


#: What a bank holds: a letter, the map, its first column.
Held = tuple[str, str, int]


@dataclass
class Moved:
    """Bytes that went over the bus, and what was wrong with the program."""

    load: int = 0
    weight: int = 0
    streamed: int = 0
    bias: int = 0
    write: int = 0
    faults: list[str] = field(default_factory=list)
    stages: dict[str, tuple[int, int, int, int, int]] = field(default_factory=dict)
    """The same for every stage: load, weight, streamed, bias, write."""
    history: list[tuple[str, str, dict[int, Held]]] = field(default_factory=list)
    """After every action: the stage, the action, and what each bank holds as (letter, map, first column); L is being
    loaded, P processed, O made, I there.
    """
    units: list[Unit] = field(default_factory=list)
    loads: list[int] = field(default_factory=list)
    """`units`, `loads`: what `clocked` follows in time."""

    def figures(self, spent: Mapping[str, Spent]) -> dict[str, StageFigures]:
        """Return what every stage moves and takes, by its name, in the order that they run; `spent` may be empty."""
        return {name: StageFigures(*parts, **vars(spent.get(name, Spent()))) for name, parts in self.stages.items()}

    @property
    def parts(self) -> tuple[int, int, int, int, int]:
        """Bytes by what they are."""
        return self.load, self.weight, self.streamed, self.bias, self.write

    @property
    def total(self) -> int:
        """All bytes."""
        return sum(self.parts)


class Made(NamedTuple):
    """A column of the result that a step makes: which one, cycles for a group, bytes that do not stay.

    `waits`: loads, each with the cycles of the column ahead of what reads it first; `pixel`: cycles of its first pixel.
    """

    result: int
    cycles: int
    waits: tuple[tuple[int, int], ...]
    wrote: int = 0
    pixel: int = 0


class Consumed(NamedTuple):
    """A tile that a step consumes: the load that brought it, its first place in the pass, and the one behind it.

    `end`: so many columns of the step are made when the last one is made whose window begins in it.
    """

    load: int | None
    first: int
    behind: int
    end: int = 0


@dataclass
class Units:
    """The units of one stage."""

    stage: Stage
    banks: Banks
    moved: Moved
    rows: int
    last: int
    """`rows`, `last`: pixels of a column of the result; the column that is made last."""
    alone: bool = False
    """Whether its first streamed column cannot be asked for before it begins: the stage before makes it."""
    late: int = 0
    """Bytes that are written as it begins, because they are streamed."""
    streams: dict[int, int] = field(default_factory=dict)
    """Of a sum: bytes that are streamed for a column."""
    freed: list[tuple[list[Column | int], int]] = field(default_factory=list)
    """Where banks become free: a script of a unit, and a place there."""
    ahead: list[int] = field(default_factory=list)
    """Loads ahead of the first step."""
    steps: int = 0
    opened: Unit | None = None
    """The first unit."""

    def ask(self, size: int) -> None:
        """Note when a load is asked for: as the stage begins, or as the step before it frees a bank."""
        self.moved.loads.append(size)
        number = len(self.moved.loads) - 1
        if not self.steps:
            self.ahead.append(number)
            return
        script = self.moved.units[-1].script
        where, at = self.freed.pop(0) if self.freed else (script, len(script))
        where.insert(at, number)
        self.freed = [(other, place + (other is where)) for other, place in self.freed]

    def step(self, made: Sequence[Made], consumed: Sequence[Consumed], staying: int) -> None:
        """Note the units of a step: for every column the loads that it waits for, and its work.

        First come, first served, a tile is consumed once it is there, though no column may begin in it; by cycles only
        what is read is waited for. The banks of the first `staying` tiles do not become free.
        """
        if self.banks.by_cycle and self.stage.kind == "patches":
            made, consumed = self._pixels(consumed)
        self.freed = []
        summed = self.stage.kind == "sum"
        units = self._sums(made, consumed, staying) if summed else self._groups(made, consumed, staying)
        if self.ahead and units:
            units[0].opening, self.ahead = self.ahead, []
        if self.opened is None and units:
            self.opened = units[0]
            self.opened.drops += self.late
        self.moved.units += units
        self.steps += 1

    def _column(self, one: Made) -> Column:
        if self.banks.by_cycle:
            return Column(one.cycles, None, one.waits, one.pixel)
        return Column(one.cycles, max((load for load, _ in one.waits), default=None))

    def _unit(self, weights: int, *, more: bool) -> Unit:
        stage = self.stage
        return Unit(stage.name, weights, more, bias=stage.bias_bytes, asks=stage.asks, alone=self.alone)

    def _sums(self, made: Sequence[Made], consumed: Sequence[Consumed], staying: int) -> list[Unit]:
        """A column each; by cycle banks become free in the column behind the last one that needs them."""
        units = [self._unit(self.streams.get(one.result, 0), more=one.result != self.last) for one in made]
        for unit, one in zip(units, made, strict=True):
            unit.script.append(self._column(one))
            unit.left = one.wrote
        if self.banks.by_cycle:
            ends = [tile.end for tile in consumed[staying:]]
            self.freed = [(units[end].script, 0) for end in ends if end < len(units)]
        return units

    def _groups(self, made: Sequence[Made], consumed: Sequence[Consumed], staying: int) -> list[Unit]:
        """A group each."""
        stage, script, freed = self.stage, list[Column | int](), list[int]()
        for at in range(len(made) + 1):
            for number, tile in enumerate(consumed):
                if tile.end == at:
                    script += [] if self.banks.by_cycle else [Column(0, tile.load)]
                    freed += [len(script)] * (number >= staying)
            script += [self._column(one) for one in made[at : at + 1]]
        share = stage.share if stage.anew(self.banks) or not self.steps else 0
        left = -(-sum(one.wrote for one in made) // stage.groups)
        units = []
        for number in range(stage.groups):
            mine = 0 if stage.kind == "depthwise" and number else share
            units.append(self._unit(mine, more=number + 1 < stage.groups))
            units[-1].script, units[-1].left = list(script), left
        self.freed = [(units[-1].script, at) for at in freed]
        return units

    def _pixels(self, consumed: Sequence[Consumed]) -> tuple[list[Made], list[Consumed]]:
        """The pixels of the tiles, a patch each, cut where columns of the result begin: a step may end within one."""
        first, behind, pixel = consumed[0].first, consumed[-1].behind, self.stage.first_cycles
        columns = range(first // self.rows, -(-behind // self.rows))
        made = []
        for x in columns:
            begin, end = max(first, x * self.rows), min(behind, (x + 1) * self.rows)
            tiles = [tile for tile in consumed if tile.first < end and tile.behind > begin and tile.load is not None]
            waits = [(tile.load, (max(tile.first, begin) - begin) * pixel) for tile in tiles]
            made.append(Made(x, (end - begin) * pixel, tuple(waits), pixel=pixel))  # type: ignore[arg-type]
        return made, [tile._replace(end=-(-tile.behind // self.rows) - columns[0]) for tile in consumed]


#: What the bus brings beside tiles: biases of the stage that runs, and of the next one with weights.
_OWN, _NEXT = -1, -2


@dataclass
class _CycleBus:
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

    bus: _CycleBus
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
    units: Sequence[Unit], loads: Sequence[int], dram: Transfer, cycle: int, fixed_cycles: int
) -> dict[str, Spent]:
    """Follow the units in time, cycle by cycle; parameters as of `clocked`.

    Of `fixed_cycles` those in which a stage asks for loads are no part.
    """
    bus = _CycleBus(dram, cycle)
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
