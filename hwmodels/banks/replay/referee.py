"""Replay of a bank program: every bank and every column followed, from stage to stage.

Nothing of the price's arithmetic is used. Banks hold columns of maps; DRAM holds, part by part of a map, the columns
that were written. A load brings the next columns that are not on chip; a process step makes every column of the result
whose window begins in the tiles that it consumes and is on chip; banks that results need must be free before the
consumed ones are. A column that leaves the chip and still has readers is written, and so is one that is loaded again
though DRAM does not have it. Patches make one pixel each: a column of the result is made from its first one on. The
average of what a stage computes is made once its last tile is let go.

`Element` reads a map word by word, and `windows` are what a column of a result is made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hwmodels.banks.replay.time import Consumed, Made, Moved, Units
from hwmodels.schedule import StageRun
from instances.machine.machine import Banks
from instances.network.feature_maps import Stage, Stages

__all__ = ["Chip", "Moved", "replay_banks"]


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


@dataclass
class _Bank:
    """Columns of a map in one bank, in the order that its next reader takes them, and the load that brought them."""

    map: str
    columns: list[int]
    load: int | None = None
    number: int | None = None


@dataclass
class Chip:
    """What lies on chip and in DRAM between two stages, and what has been moved."""

    found: Stages
    size: Banks
    moved: Moved = field(default_factory=Moved)
    banks: list[_Bank] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    #: The map that the last stage wrote.
    last: str = ""
    #: For every part (stage) the columns that DRAM has.
    dram: dict[str, set[int]] = field(default_factory=dict)

    def fault(self, text: str) -> None:
        """Note what is wrong."""
        self.moved.faults.append(text)

    # ---- maps ------------------------------------------------------------------------------------------------

    def parts(self, name: str) -> list[Stage]:
        """The stages that write a map."""
        return [s for s in self.found.stages if s.target == name]

    def awaited(self, name: str) -> bool:
        """Whether stages that have not begun read a map."""
        return any(s.name not in self.done for s in self.found.stages if name in (s.source, *s.streamed))

    def on_chip(self, name: str) -> list[_Bank]:
        """The banks that hold columns of a map."""
        return [bank for bank in self.banks if bank.map == name]

    def write(self, name: str, columns: Iterable[int]) -> int:
        """Write what DRAM does not have of some columns; returns the bytes."""
        before = self.moved.write
        for part in self.parts(name):
            missing = set(columns) - self.dram.setdefault(part.name, set())
            self.moved.write += len(missing) * part.written
            self.dram[part.name] |= missing
        return self.moved.write - before

    def reads(self, run: StageRun) -> bool:
        """Whether a stage reads one of its operands from the banks; all of them must have been made."""
        stage = self.found.named(run.stage)
        operands = dict.fromkeys((stage.source, *stage.streamed))
        if run.source not in operands:
            self.fault(f"{stage.name}: reads {run.source} from the banks, its operands are {', '.join(operands)}")
            return False
        for name in operands:
            for part in self.parts(name):
                if part.name not in self.done:
                    self.fault(f"{stage.name}: reads {name} before {part.name} has run")
        return True

    def note(self, stage: str, action: str, letters: dict[int, str]) -> None:
        """Write down what the banks hold, those with numbers."""
        held = {
            bank.number: (letters.get(id(bank), "I"), bank.map, min(bank.columns, default=0))
            for bank in self.banks
            if bank.number is not None
        }
        if held:
            self.moved.history.append((stage, action, held))

    # ---- one stage -------------------------------------------------------------------------------------------

    def run(self, run: StageRun) -> None:
        """Follow one stage."""
        stage = self.found.named(run.stage)
        computed = self.found.computed(stage)
        if stage.name in self.done:
            self.fault(f"{stage.name} runs twice")
        readable = self.reads(run)
        self.done.add(stage.name)
        if not readable:
            return
        source = self.found.maps[run.source]
        for name in (run.source, *([stage.target] if run.keep else [])):
            if self.found.maps[name].rows * self.found.maps[name].stored > self.size.bank_bytes:
                self.fault(f"{stage.name}: a column of {name} does not fit a bank of {self.size.bank_bytes} bytes")
                return
        order = list(range(source.columns))[:: -1 if run.backwards else 1]
        results = list(range(computed[0]))[:: -1 if run.backwards else 1]
        reader = _Reader(self, run, stage, order, results, windows(stage, computed, source.columns))
        reader.units.streams, reader.units.late = self._streams(stage, run.source)
        reader.units.alone = self.last in {stage.source, *stage.streamed} - {run.source}
        for name, tiles in run.actions:
            if name == "load":
                while tiles and reader.load():
                    tiles -= 1
            else:
                reader.process(tiles)
        reader.end()
        steps = sum(name != "load" for name, _ in run.actions) if stage.anew(self.size) else 1
        self.moved.weight += stage.weight_bytes * steps
        self.moved.bias += stage.bias_bytes
        self.moved.streamed += sum(reader.units.streams.values())
        for bank in list(self.banks):
            if bank.map != stage.target and not self.awaited(bank.map):
                self.banks.remove(bank)
        self.last = stage.target

    def _streams(self, stage: Stage, source: str) -> tuple[dict[int, int], int]:
        """Bytes of the operands that come from DRAM, by column; bytes that have to be written for this."""
        found, late = dict[int, int](), 0
        for name in {stage.source, *stage.streamed} - {source}:
            there = {c for bank in self.on_chip(name) for c in bank.columns if self.size.residuals == "chip"}
            rest = [c for c in range(self.found.maps[name].columns) if c not in there]
            late += self.write(name, rest)
            for column in rest:
                found[column] = found.get(column, 0) + self.found.maps[name].rows * self.found.maps[name].stored
        return found, late


class _Reader:
    """The tiles of a stage on their way through the banks."""

    def __init__(
        self, machine: Chip, run: StageRun, stage: Stage, order: list[int], results: list[int], needed: list[range]
    ) -> None:  # fmt: skip
        self.machine, self.run, self.stage, self.order, self.results = machine, run, stage, order, results
        self.place = {column: at for at, column in enumerate(order)}
        self.needed = [[c for c in need[:: -1 if run.backwards else 1] if c in self.place] for need in needed]
        #: So many columns are read by windows, in the order of the pass.
        self.behind = max((self.place[need[-1]] + 1 for need in self.needed if need), default=0)
        found = machine.found.maps
        self.tile = min(len(order), machine.size.bank_bytes // (found[run.source].rows * found[run.source].stored))
        self.tiles = self._target_tiles(found[stage.target].rows * found[stage.target].stored)
        self.waiting = sorted(machine.on_chip(run.source), key=lambda bank: min(self.place[c] for c in bank.columns))
        for bank in self.waiting:
            bank.columns.sort(key=lambda c: self.place[c])
        self.made = 0
        self.read = self._found() if run.tiles else 0
        self.upto = sum(len(bank.columns) for bank in self.waiting)
        self.staying = 0
        rows, last = machine.found.computed(stage)[1], results[-1]
        self.units = Units(stage, machine.size, machine.moved, rows, last)
        self.begun: dict[int, _Bank] = {}
        self.element = Element(stage, machine.size, order, self.tile)
        if stage.target != run.source and (there := machine.on_chip(stage.target)):
            self.tiles = [set(bank.columns) for bank in there]
            self.begun = dict(enumerate(there))

    def _found(self) -> int:
        """Compare the tiles that are on chip with the plan; returns how many there are."""
        said = [(t.bank, t.first, t.end) for t in self.run.tiles if not t.loaded]
        there = [(b.number, min(b.columns), max(b.columns) + 1) for b in self.waiting]
        if said != there:
            self.machine.fault(f"{self.stage.name}: banks hold {there}, the plan says {said}")
        return len(there)

    def _target_tiles(self, column_bytes: int) -> list[set[int]]:
        """The tiles of the result that stay."""
        run, size = self.run, self.machine.size.bank_bytes // column_bytes
        columns = [0] if self.stage.pooled else self.results
        made = columns[::-1] if run.last else columns
        if run.keep and run.keep > -(-len(made) // size):
            self.machine.fault(f"{self.stage.name}: keeps {run.keep} tiles, {self.stage.target} has fewer")
            return []
        return [set(made[i * size : (i + 1) * size]) for i in range(run.keep)]

    def _take(self, bank: _Bank) -> None:
        if bank.number is not None and any(other.number == bank.number for other in self.machine.banks):
            self.machine.fault(f"{self.stage.name}: bank {bank.number} is taken twice, for {bank.map} as well")
        if bank.number is not None and not 0 <= bank.number < self.machine.size.count:
            self.machine.fault(f"{self.stage.name}: there is no bank {bank.number}")
        if len(self.machine.banks) >= self.machine.size.count:
            self.machine.fault(f"{self.stage.name}: no bank is free for {bank.map}")
        self.machine.banks.append(bank)

    def load(self) -> bool:
        """Bring the next tile, if there is one; what DRAM lacks of it is written for this."""
        begin = self.place[self.waiting[-1].columns[-1]] + 1 if self.waiting else self._restart()
        columns = self.order[begin : begin + self.tile]
        self.upto = begin + len(columns)
        if not columns:
            self.machine.fault(f"{self.stage.name}: nothing is left to load")
            return False
        must = must_load(len(self.order), self.behind, self.tile, self.machine.size)
        if begin >= max(must, self.run.retain * self.tile):
            self.machine.fault(
                f"{self.stage.name}: no window reads columns {columns}, none of them stays, banks.unread is left"
            )
        held = {c for bank in self.machine.on_chip(self.run.source) for c in bank.columns}
        if held & set(columns):
            self.machine.fault(f"{self.stage.name}: columns {sorted(held & set(columns))} are on chip already")
        self.machine.write(self.run.source, columns)
        source = self.machine.found.maps[self.run.source]
        size = len(columns) * source.rows * source.stored
        self.machine.moved.load += size
        self.units.ask(size)
        bank = _Bank(self.run.source, columns, len(self.machine.moved.loads) - 1, self._number(columns))
        self.waiting.append(bank)
        self._take(bank)
        self.machine.note(self.stage.name, "load", {id(bank): "L"})
        return True

    def _restart(self) -> int:
        """Where loads go on once nothing is on chip: where the next window begins."""
        if self.made == len(self.results) or self.stage.kind == "patches":
            return self.upto
        return min(self.upto, *(self.place[c] for c in self.needed[self.results[self.made]]))

    def _number(self, columns: list[int]) -> int | None:
        """The bank that the plan gives to the next tile."""
        if not self.run.tiles:
            return None
        at, self.read = self.read, self.read + 1
        if at >= len(self.run.tiles):
            self.machine.fault(f"{self.stage.name}: the plan has no bank for tile {at}")
            return None
        tile = self.run.tiles[at]
        if (tile.first, tile.end, tile.loaded) != (min(columns), max(columns) + 1, True):
            where = f"columns {min(columns)} to {max(columns) + 1}, loaded"
            self.machine.fault(f"{self.stage.name}: tile {at} is {where}, the plan says {tile}")
        return tile.bank

    def process(self, tiles: int) -> None:
        """Consume the first tiles."""
        run = self.run
        consumed, self.waiting = self.waiting[:tiles], self.waiting[tiles:]
        if len(consumed) < tiles:
            self.machine.fault(f"{self.stage.name}: processes {tiles} tiles, {len(consumed)} are on chip")
            return
        there = {c for bank in (*consumed, *self.waiting) for c in bank.columns}
        mine = {c for bank in consumed for c in bank.columns}
        end = max((self.place[c] for c in mine), default=-1)
        where = {c: bank for bank in (*consumed, *self.waiting) for c in bank.columns}
        made = list[Made]()
        ends = [(bank.load, self.place[bank.columns[0]], self.place[bank.columns[-1]] + 1) for bank in consumed]
        tiles_read = [Consumed(*one) for one in ends]
        while self.made < len(self.results):
            result = self.results[self.made]
            needed = self.needed[result]
            if self.stage.kind == "patches":
                needed = needed[:1]
            if not set(needed) <= there or (needed and self.place[needed[0]] > end):
                break
            wrote, waits = self._store(result), self._waits(result, needed, where)
            pixel = self.element.pixel(result) if self.machine.size.by_cycle else 0
            made.append(Made(result, self.element.cycles(result), waits, wrote, pixel))
            self.made += 1
            for at, bank in enumerate(consumed):
                if needed and self.place[needed[0]] <= self.place[bank.columns[-1]]:
                    tiles_read[at:] = [tile._replace(end=len(made)) for tile in tiles_read[at:]]
        if self.waiting and self.made < len(self.results) and self.stage.kind != "patches":
            lost = set(self.needed[self.results[self.made]]) & mine
            if lost:
                self.machine.fault(f"{self.stage.name}: columns {sorted(lost)} are dropped before their last use")
        letters = {id(bank): "O" for bank in self.begun.values()} | {id(bank): "P" for bank in consumed}
        self.machine.note(self.stage.name, f"process {tiles}", letters)
        self.units.step(made, tiles_read, run.retain - self.staying)
        for bank in consumed:
            if self.staying < self.run.retain:
                self.staying += 1
            else:
                self.machine.banks.remove(bank)
                if self.machine.awaited(bank.map):
                    size = self.machine.write(bank.map, bank.columns)
                    if self.units.opened:
                        self.units.opened.drops += size
        if not self.waiting:
            size = self.machine.write(run.source, self.order[self._restart() : self.upto])
            if size:
                self.machine.moved.units[-1].again += size

    def _waits(self, result: int, needed: Sequence[int], where: Mapping[int, _Bank]) -> tuple[tuple[int, int], ...]:
        """The loads that a column waits for, each with the cycles ahead of what reads it first."""
        touched = [(place, 0) for place in map(self.place.__getitem__, needed)]
        if self.machine.size.by_cycle and self.stage.kind != "patches":
            touched = self.element.touched(result)
        found: dict[int, int] = {}
        for place, before in touched:
            load = where[self.order[place]].load
            if load is not None:
                found.setdefault(load, before)
        return tuple(found.items())

    def _store(self, column: int) -> int:
        """Put a column of the result where it belongs; returns the bytes of it that are written."""
        stage, machine = self.stage, self.machine
        if stage.pooled:
            if column != self.results[-1]:
                return 0
            column = 0
        at = next((i for i, tile in enumerate(self.tiles) if column in tile), None)
        lasting = machine.found.lasting(stage.target)
        if at is not None and at not in self.begun:
            number = self.run.results[at].bank if at < len(self.run.results) else None
            self.begun[at] = _Bank(stage.target, [], None, number)
            if not stage.pooled:
                self._take(self.begun[at])
        if at is not None and column not in self.begun[at].columns:
            self.begun[at].columns.append(column)
        if at is not None and not lasting:
            return 0
        machine.moved.write += stage.written
        machine.dram.setdefault(stage.name, set()).add(column)
        return stage.written

    def _average(self, cycles: int) -> None:
        """Take a bank for the average, if it stays, and note what it takes."""
        for bank in self.begun.values():
            self._take(bank)
        if self.units.steps and self.machine.moved.units[-1].stage == self.stage.name:
            self.machine.moved.units[-1].average = cycles
        self.machine.note(self.stage.name, "average", {id(bank): "O" for bank in self.begun.values()})

    def end(self) -> None:
        """All of the result is made, all of the source consumed, and its tiles that stay are as many as were asked."""
        name = self.stage.name
        if self.stage.pooled:
            self._average(self.stage.pooled.cycles)
        if self.made < len(self.results):
            self.machine.fault(f"{name}: only {self.made} of {len(self.results)} columns are made")
        if self.waiting:
            self.machine.fault(f"{name}: {len(self.waiting)} tiles are never processed")
        if self.behind > self.upto:  # patches are made ahead of them
            self.machine.fault(f"{name}: columns that its result needs are never loaded")
        elif must_load(len(self.order), self.behind, self.tile, self.machine.size) > self.upto:
            self.machine.fault(f"{name}: the last tiles are never loaded, banks.unread is {self.machine.size.unread}")
        if self.staying < self.run.retain:
            self.machine.fault(f"{name}: only {self.staying} of {self.run.retain} tiles stay")
        if self.run.tiles and self.read < len(self.run.tiles):
            self.machine.fault(f"{name}: {len(self.run.tiles)} tiles are stated, {self.read} are read")
        said = sorted((t.bank, t.first, t.end) for t in self.run.results if not t.loaded)
        made = sorted((b.number or 0, min(b.columns), max(b.columns) + 1) for b in self.begun.values())
        if self.run.tiles and said != made:
            self.machine.fault(f"{name}: banks hold {made} of the result, the plan says {said}")


def replay_banks(found: Stages, banks: Banks, runs: Sequence[StageRun]) -> Moved:
    """Follow a program through all stages and count what it moves.

    Returns
    -------
    Moved
        With a fault for everything that the banks or DRAM do not allow.
    """
    machine = Chip(found, banks)
    for run in runs:
        before = machine.moved.parts
        machine.run(run)
        a, b, c, d, e = (new - old for new, old in zip(machine.moved.parts, before, strict=True))
        machine.moved.stages[run.stage] = a, b, c, d, e
    if missing := [s.name for s in found.stages if s.name not in machine.done]:
        machine.fault(f"stages that never run: {', '.join(missing)}")
    for name in filter(found.lasting, found.maps):
        for part in found.stages:
            if part.target == name and len(machine.dram.get(part.name, ())) < found.maps[name].columns:
                machine.fault(f"result {name} is not all in DRAM")
    return machine.moved
