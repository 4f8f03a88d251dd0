"""F7 hybrid: lower bounds on what some stages cost that begin and end with empty banks, without a search.

Bytes
    weights and biases once; weights that come with every process step once for every B tiles of the map; maps from
    outside once; maps that leave once; of every other map that is made, the columns beyond B - 1 tiles, written and
    loaded: a tile of what is read lies beside all that stays. Where no map waits for a sum (`Banks.residuals` = dram),
    a sum streams all operands but one, and what is streamed is written: the operands count for which this is least.
Ticks
    of every stage, by itself, with its first weights and biases there, nothing that stays, and the number of tiles on
    chip that is best for it: a lower bound on all its programs, or the quickest of them. Times are those of the bus
    that is never slower (`Clock.bound`): sums and maxima, so more room, and less to wait for, delays nothing. Where
    maps wait for sums, or writes take time, the cycles of computing.
"""

from __future__ import annotations

from dataclasses import replace

from formulations.banks.bounds import Point
from formulations.banks.network import Walk
from formulations.banks.programs import Programs
from formulations.banks.readings import floor_of
from formulations.banks.stage import fewest
from formulations.banks.states import State
from formulations.banks.tasks import Task
from formulations.banks.times import Times
from formulations.banks.timing import First
from hwmodels.banks.clock import Clock
from hwmodels.banks.steps import Goal
from instances.errors import InputError
from instances.machine import Banks
from instances.pieces import operands
from instances.stage import Stage, Stages


def floor(found: Stages, banks: Banks, clock: Clock, *, waiting: bool) -> Point | None:
    """Return a lower bound on bytes and ticks of some stages; None if a column fits in no bank.

    Parameters
    ----------
    waiting : bool
        Whether maps may wait on chip for a sum.
    """
    most = banks.count
    try:
        tiles = {name: one.tile(banks) for name, one in found.maps.items()}
    except InputError:
        return None
    total, ticks = floor_of(found, banks, clock)
    made = {stage.target for stage in found.stages}
    written = dict.fromkeys(made, 0)
    for stage in found.stages:
        written[stage.target] += stage.written
        if stage.anew(banks) and banks.unread == "loaded":
            in_banks = -(-found.maps[stage.source].columns // tiles[stage.source])
            total += stage.weight_bytes * (-(-in_banks // most) - 1)
    sums = {name for stage in found.stages if stage.kind == "sum" for name in operands(stage)}
    spilled = dict.fromkeys(made, 0)
    for name in made:
        if found.users[name]:
            spilled[name] = max(0, found.maps[name].columns - (most - 1) * tiles[name])
            if banks.unread == "loaded" or name in sums:
                total += spilled[name] * found.maps[name].column_bytes
            total += 0 if found.lasting(name) else spilled[name] * written[name]
    if not waiting:
        total += sum(_streamed(found, stage, made, spilled, written) for stage in found.stages if stage.kind == "sum")
    return Point(total, ticks)


def _streamed(found: Stages, stage: Stage, made: set[str], spilled: dict[str, int], written: dict[str, int]) -> int:
    """What a sum streams and has written beyond what is counted, at least: the operand from the banks is its choice."""

    def more(name: str) -> int:
        if name not in made:
            return 0
        one, again = found.maps[name], len(found.users[name]) > 1
        writes = 0 if found.lasting(name) else (one.columns - spilled[name]) * written[name]
        return writes + (one.columns - (0 if again else spilled[name])) * one.column_bytes

    extra = [more(name) for name in operands(stage)]
    return sum(extra) - max(extra)


class Stagewise:
    """What stages take at least, each by itself; equal ones once."""

    def __init__(self, banks: Banks, clock: Clock, *, waiting: bool) -> None:
        self.banks, self.clock, self.waiting = banks, clock, waiting
        self._known: dict[object, int | None] = {}

    def ticks(self, found: Stages, *, searched: bool = False) -> list[int] | None:
        """Return the ticks of every stage, at least; `searched`: of its quickest program. None if a stage has none."""
        if any(one.column_bytes > self.banks.bank_bytes for one in found.maps.values()):
            return None
        walk = Walk(found, self.banks, waiting=self.waiting)
        times = Times(walk, self.clock.bound(), shifting=False)
        made = [self._of(walk, times, at, searched=searched) for at in range(len(found.stages))]
        known = [ticks for ticks in made if ticks is not None]
        return known if len(known) == len(made) else None

    def _of(self, walk: Walk, times: Times, at: int, *, searched: bool) -> int | None:
        stage, maps = walk.stages[at], walk.found.maps
        if (stage.kind == "sum" and self.waiting) or times.writing:
            return stage.cycles * self.clock.cycle + self.clock.fixed - (self.clock.cycle if times.by_cycle else 0)
        bare = replace(stage, name="", source="", target="", streamed=())
        sizes = [(maps[name].columns, maps[name].rows, maps[name].stored) for name in operands(stage)]
        key = bare, tuple(sizes), maps[stage.target].columns, walk.tile[stage.target], self._fresh(walk, at), searched
        if key not in self._known:
            self._known[key] = self._least(walk, times, at, searched=searched)
        return self._known[key]

    @staticmethod
    def _fresh(walk: Walk, at: int) -> tuple[bool, ...]:
        """Of which operands nothing can be on chip: they come from outside, and nothing else reads them."""
        return tuple(not walk.makers[name] and walk.readers[name] == 1 << at for name in walk.sources(at))

    def _least(self, walk: Walk, times: Times, at: int, *, searched: bool) -> int | None:
        stage, done, least = walk.stages[at], State(walk.all), list[int]()
        pooled = stage.pooled.columns if stage.pooled else 0
        goal = Goal(walk.found.maps[stage.target].columns, walk.tile[stage.target], 0, mirrored=False, average=pooled)
        for source, fresh in zip(walk.sources(at), self._fresh(walk, at), strict=True):
            prices = walk.prices(done, at, source)
            for way in (0, 1):
                timing = times.timing(done, at, source, way, First(0, waits=False))
                for there in range(1 if fresh else min(self.banks.count, walk.tiles(source)) + 1):
                    task = Task(walk.passed(at, source, way), self.banks.count, there, goal)
                    if task.begin() is None or fewest(task, prices) is None:
                        continue
                    programs = Programs(prices, timing)
                    found = programs.of(task) if searched else [None]
                    least += [programs.bound(task)] if found and not searched else [one.ticks for one in found if one]
        return min(least, default=None)
