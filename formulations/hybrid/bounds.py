"""Hybrid: what some stages cost that begin and end with empty banks: bounds without a search, and what pieces cost.

**Bounds** (`floor`, `Stagewise`):

Bytes
    weights and biases once; weights that come with every process step once for every B tiles of the map; maps from
    outside once; maps that leave once; of every other map that is made, the columns beyond B - 1 tiles, written and
    loaded: a tile of what is read lies beside all that stays. Where no map waits for a sum (`Banks.residuals` = dram),
    a sum streams all operands but one, and what is streamed is written: the operands count for which this is least.
Ticks
    of every stage, by itself, with its first weights and biases there, nothing that stays, and the number of tiles on
    chip that is best for it: a lower bound on all its programs, or the quickest of them. Times are those of the bus
    that is never slower (`DramClock.bound`): sums and maxima, so more room, and less to wait for, delays nothing. Where
    maps wait for sums, or writes take time, the cycles of computing.

**Needed** (`boxes`): what of every map some result needs, along both axes. Pieces load and compute no more, where whole
stages do. An example: a pool of one column with stride 2 over three columns needs the first and the last one. A program
that runs it whole loads all three tiles; in pieces of a column of its result the one between is in no piece.

Of a map that several stages read, what one of them needs is taken, the one that needs most: a lower bound.

**Costs** (`Costs`): what a piece costs, at least, at best, and by the published policies; equal pieces once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from formulations.banks.front import Found, decide
from formulations.banks.network import BankPlan, Point, State, Walk, optimum
from formulations.banks.numbers import numbered, plan_followed_by
from formulations.banks.policies import hide
from formulations.banks.published import published
from formulations.banks.readings import clock_of, floor_of, may_wait, once
from formulations.banks.search import Programs
from formulations.banks.stage import fewest
from formulations.banks.tasks import Task
from formulations.banks.times import Times
from formulations.banks.timing import First
from formulations.clock import ENDLESS, Clock
from hwmodels.banks.steps import DramClock, TileGoal
from hwmodels.schedule import StageRun
from instances.errors import InputError
from instances.machine.machine import Banks, Machine
from instances.network.feature_maps import Stage, Stages
from instances.network.pieces import Piece, operands


def floor(found: Stages, banks: Banks, clock: DramClock, *, waiting: bool) -> Point | None:
    """Return a lower bound on bytes and ticks of some stages; None if a column fits in no bank.

    `waiting`: whether maps may wait on chip for a sum.
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

    def __init__(self, banks: Banks, clock: DramClock, *, waiting: bool) -> None:
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
        goal = TileGoal(
            walk.found.maps[stage.target].columns, walk.tile[stage.target], 0, mirrored=False, average=pooled
        )
        for source, fresh in zip(walk.sources(at), self._fresh(walk, at), strict=True):
            prices = walk.prices(done, at, source)
            for way in (0, 1):
                timing = times.timing(done, at, source, way, First(0, waits=False))
                for there in range(1 if fresh else min(self.banks.count, walk.tiles[source]) + 1):
                    task = Task(walk.passed(at, source, way), self.banks.count, there, goal)
                    if task.begin() is None or fewest(task, prices) is None:
                        continue
                    programs = Programs(prices, timing)
                    found = programs.of(task) if searched else [None]
                    least += [programs.bound(task)] if found and not searched else [one.ticks for one in found if one]
        return min(least, default=None)


Mask = npt.NDArray[np.bool_]
#: Columns and rows.
Box = tuple[Mask, Mask]


def least_of(found: Stages, clock: DramClock) -> Point:
    """Return what no plan of groups can do without: bytes that must move once, ticks of computing what is needed."""
    needed = boxes(found, found.stages, {name for name in found.maps if found.lasting(name)})
    made = {stage.target for stage in found.stages}
    read = sum(size(box) * found.maps[name].stored for name, box in needed.items() if name not in made)
    work = cycles(found, found.stages, needed) * clock.cycle + clock.fixed * len(found.stages)
    return Point(once(found) + read, work)


def boxes(found: Stages, stages: Sequence[Stage], whole: Collection[str]) -> dict[str, Box]:
    """Return what stages need of every map, if some maps are needed whole; nothing of others that nobody needs."""
    needed = {
        name: (np.ones(found.maps[name].columns, np.bool_), np.ones(found.maps[name].rows, np.bool_)) for name in whole
    }
    for stage in reversed(stages):
        if stage.target not in needed:
            continue
        for name in operands(stage):
            box = _needs(found, stage, name, needed[stage.target])
            if name not in needed or size(box) > size(needed[name]):
                needed[name] = box
    return needed


def cycles(found: Stages, stages: Sequence[Stage], needed: dict[str, Box]) -> int:
    """Return the cycles of computing what is needed of every stage, once."""
    return sum(_cycles(found, stage, needed[stage.target]) for stage in stages if stage.target in needed)


def size(box: Box) -> int:
    """Return the pixels of a box."""
    return int(box[0].sum()) * int(box[1].sum())


def _needs(found: Stages, stage: Stage, name: str, out: Box) -> Box:
    """What a stage reads of an operand for some of its target."""
    one, high = found.maps[name], found.heights[stage.name]
    if stage.pooled is not None:
        return np.ones(one.columns, np.bool_), np.ones(one.rows, np.bool_)
    if stage.kind in ("sum", "patches"):
        return out  # patches lie as the pixels of the result do
    return (
        _window(out[0], stage.taps, stage.stride, stage.dilation, stage.before, one.columns),
        _window(out[1], high.taps, high.stride, high.dilation, high.before, one.rows),
    )


def _window(out: Mask, taps: int, stride: int, dilation: int, before: int, extent: int) -> Mask:
    """What windows reach, with what lies between their taps: a piece has all of that."""
    found, first = np.zeros(extent, np.bool_), np.flatnonzero(out) * stride - before
    for more in range((taps - 1) * dilation + 1):
        at = first + more
        found[at[(at >= 0) & (at < extent)]] = True
    return found


def _cycles(found: Stages, stage: Stage, out: Box) -> int:
    if stage.pooled is not None:
        return stage.cycles
    columns = np.flatnonzero(out[0])
    inside = len(columns)
    if stage.kind not in ("sum", "patches"):
        at = columns[:, None] * stage.stride - stage.before + np.arange(stage.taps) * stage.dilation
        inside = int(((at >= 0) & (at < found.maps[stage.source].columns)).sum())
    return stage.groups * inside * sum(found.heights[stage.name].cycles[y] for y in np.flatnonzero(out[1]))


class Program(NamedTuple):
    """A bank program of a piece, and what it costs."""

    point: Point
    runs: tuple[StageRun, ...]


@dataclass(frozen=True)
class Known:
    """What is known of a piece: programs that no other beats, fewest bytes first, and what none is below."""

    programs: tuple[Program, ...]
    bound: Point
    proven: bool = True


class Costs:
    """What pieces cost on a machine with banks."""

    def __init__(self, machine: Machine, waiting: bool | None = None) -> None:
        assert machine.banks is not None
        self.banks, self.clock = machine.banks, clock_of(machine)
        self.waiting = may_wait(machine, waiting)
        self.searches = 0
        self.stagewise = Stagewise(self.banks, self.clock, waiting=self.waiting)
        self._walks: dict[Piece, Walk] = {}
        self._floors: dict[tuple[Piece, bool], Point | None] = {}
        self._known: dict[tuple[Piece, str], Known | None] = {}

    def walk(self, piece: Piece) -> Walk:
        """The states of a piece; raises InputError if a column fits in no bank."""
        if piece not in self._walks:
            self._walks[piece] = Walk(piece.found, self.banks, waiting=self.waiting)
        return self._walks[piece]

    def of(self, piece: Piece, plan: BankPlan) -> Point:
        """Bytes and ticks of a plan."""
        return Point(plan.volume.total, Times(self.walk(piece), self.clock).of(plan))

    def program(self, piece: Piece, plan: BankPlan, ticks: int | None = None) -> Program:
        """The program of a plan."""
        point = self.of(piece, plan) if ticks is None else Point(plan.volume.total, ticks)
        return Program(point, tuple(numbered(plan, self.banks)))

    # ---- searches ----------------------------------------------------------------------------------------------------

    def fewest(self, piece: Piece) -> Known | None:
        """The program with the fewest bytes; None if there is no program."""
        return self._once(piece, "fewest", lambda: self._single(piece, optimum(self.walk(piece))))

    def least(self, piece: Piece, aim: str, limit: Clock = ENDLESS) -> Known | None:
        """The program with the least time, or the front of both; None if there is no program; raises TimeUp."""
        return self._once(piece, aim, lambda: self._decided(piece, aim, limit))

    def policy(self, piece: Piece, measure: str) -> Known | None:
        """The program of MIN, or of HIDE for time; None if the policy gets stuck, or a map waits that may not."""

        def made() -> Known:
            free = Walk(piece.found, self.banks)
            known = self._single(piece, hide(free, self.clock) if measure == "time" else published(free))
            plan_followed_by(self.walk(piece), known.programs[0].runs)  # raises InputError if it is not of the space
            return known

        return self._once(piece, f"policy {measure}", made)

    def _once(self, piece: Piece, what: str, make: Callable[[], Known | None]) -> Known | None:
        key = piece, what
        if key not in self._known:
            self.searches += 1
            try:
                self._known[key] = make()
            except InputError:
                self._known[key] = None
        return self._known[key]

    def _single(self, piece: Piece, plan: BankPlan) -> Known:
        program = self.program(piece, plan)
        return Known((program,), program.point)

    def _decided(self, piece: Piece, aim: str, limit: Clock) -> Known:
        said: Found = decide(self.walk(piece), self.clock, "front" if aim == "front" else "time", limit=limit)
        programs = tuple(self.program(piece, plan, ticks) for plan, ticks in said.plans)
        return Known(programs, Point(said.bytes_bound, said.ticks_bound), said.proven)

    # ---- bounds ------------------------------------------------------------------------------------------------------

    def bare(self, found: Stages) -> Point | None:
        """What some stages do not cost less than."""
        return floor(found, self.banks, self.clock, waiting=self.waiting)

    def floor(self, piece: Piece, *, timed: bool = False) -> Point | None:
        """What no program of a piece is below; None if a column fits in no bank, or a stage has no program.

        `timed`: whether ticks are bounded stage by stage, instead of by the cycles of computing.
        """
        key = piece, timed
        if key not in self._floors:
            point = self.bare(piece.found)
            if point is not None and timed:
                ticks = self.stagewise.ticks(piece.found)
                point = None if ticks is None else point._replace(ticks=max(point.ticks, sum(ticks)))
            self._floors[key] = point
        return self._floors[key]
