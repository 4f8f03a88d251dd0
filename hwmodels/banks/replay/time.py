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

**Words.** `Element` reads a map word by word, and `windows` are what a column of a result is made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from instances.machine.machine import Banks, Transfer
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
    units: Sequence[Unit],
    loads: Sequence[int],
    dram: Transfer,
    cycle: int,
    fixed_cycles: int = 0,
    *,
    writing: bool = False,
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
        return self.load + self.weight + self.streamed + self.bias + self.write


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


def windows(stage: Stage, computed: tuple[int, int], columns: int) -> list[range]:
    """For every column of the result the columns, of so many, that it is made of; `computed`: its columns and rows."""
    results, rows = computed
    if stage.kind == "patches":
        return [range(x * rows, (x + 1) * rows) for x in range(results)]
    if stage.kind == "whole":
        return [range(columns)] * results
    first = [x * stage.stride - stage.before for x in range(results)]
    return [range(max(0, f), min(columns, f + (stage.taps - 1) * stage.dilation + 1)) for f in first]


def taps(stage: Stage, result: int, columns: int) -> int:
    """Columns of the window that lie inside a map of so many."""
    if stage.kind in ("patches", "sum"):
        return 1
    first = result * stage.stride - stage.before
    return sum(0 <= first + t * stage.dilation < columns for t in range(stage.taps))


def must_load(columns: int, read: int, tile: int, banks: Banks) -> int:
    """Columns that a stage has to load if its windows read the first so many: all, or in whole tiles."""
    return columns if banks.unread == "loaded" else min(columns, -(-read // tile) * tile)


@dataclass
class Element:
    """The processing element as it reads a map word by word, pixel by pixel, in the order of the pass."""

    stage: Stage
    banks: Banks
    order: list[int]
    """The columns of the map, in the order of the pass."""
    tile: int
    """Columns of a tile."""
    read: tuple[int, int] | None = None
    """The word that was read last: its tile, its number."""

    def cycles(self, result: int) -> int:
        """Cycles of a column of the result, for one group of filters."""
        stage, columns, spent = self.stage, len(self.order), 0
        if stage.reads is None:
            return stage.tap_cycles * taps(stage, result, columns)
        places = self._places(result)
        for y in range(stage.reads.results):
            for place in places:
                spent += self._kernel_column(place, y)
        return spent

    def touched(self, result: int) -> list[tuple[int, int]]:
        """The columns of the map that a column's first pixel reads, by place, each with the cycles ahead of it."""
        return self._first_pixel(result)[0]

    def pixel(self, result: int) -> int:
        """Cycles of a column's first pixel."""
        return self.stage.first_cycles if self.stage.kind == "patches" else self._first_pixel(result)[1]

    def _first_pixel(self, result: int) -> tuple[list[tuple[int, int]], int]:
        spent, found, read = 0, list[tuple[int, int]](), self.read
        for place in self._places(result):
            found.append((place, spent))
            spent += self.stage.first_cycles if self.stage.reads is None else self._kernel_column(place, 0)
        self.read = read
        return found, spent

    def _places(self, result: int) -> list[int]:
        """The places of the columns that a window reads, in the order of the pass."""
        stage = self.stage
        if stage.kind == "sum":
            return [self.order.index(result)]
        first = result * stage.stride - stage.before
        window = {first + t * stage.dilation for t in range(stage.taps)}
        return [place for place, column in enumerate(self.order) if column in window]

    def _kernel_column(self, place: int, y: int) -> int:
        """Walk through the weights of one kernel column that lie over the map; a word of them a cycle."""
        reads, word = self.stage.reads, self.banks.lanes
        assert reads is not None
        over = [k for k in range(reads.high) if 0 <= y * reads.stride - reads.before + k < reads.rows]
        if not over:
            return 0
        row = y * reads.stride - reads.before + over[0]
        address = (place % self.tile * reads.rows + row) * reads.pixel
        weights = range(over[0] * reads.pixel, (over[-1] + 1) * reads.pixel)
        spent = weights[-1] // word - weights[0] // word + 1
        if weights[0] % word < address % word and self.read != (place // self.tile, address // word):
            spent += 1  # only then the first product has all its bytes
        self.read = place // self.tile, (address + len(weights) - 1) // word
        return spent
