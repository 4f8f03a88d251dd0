"""Banks, between stages: which tiles stay on chip from stage to stage, and in which order branches run.

Sets
    stages s of a network; maps m; states (D, R): the stages D are done, R holds for some maps with readers to come how
    many tiles k are on chip, and at which end of the map (a map of one tile may be read from both)
Given
    readers of every map; for a stage in one direction, with some banks, tiles at the start, tiles that stay and a goal,
    the program with the fewest bytes (`formulations.banks.stage`)
Variables
    an order of the stages, the operand of a sum that is read from the banks, and after every stage the tiles that stay:
    of its result (first or last ones), and of the map that it read (first ones)
Objective
    min bytes = columns loaded, weights, biases, streamed operands that are not on chip, columns written
Constraints
    (ORDER)    a stage follows those that make its operands; a branch that is begun is finished: if stages that read the
               last result can run, one of them is next
    (BANKS)    tiles on chip of all maps, and what the program takes, <= B
    (WRITE)    a column is written when it leaves the chip and still has readers, or is a result of the network; one
               that is loaded again though it was on chip is written too
    (CONCAT)   the parts of a concatenation are written in place; which of its tiles stay is decided with the first part
Optimal means
    Dynamic programming over the states: no other choice of the variables moves fewer bytes. Tiles are read in order,
    those on chip first; a branch is not left before it ends; a waiting operand stays whole or goes at once.
    `Graph` has all states, numbered so that every way leads to a higher number, with arcs between states that a stage
    joins, of the fewest bytes of the programs on each: the fewest bytes to the end are shortest paths.

Source: `heterogeneous_mapping_and_banks` 4.1.3 (Fig. 4.5), 4.2.1, 4.2.4; beyond it: residual operands may wait on chip,
orders and tiles are decided exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from formulations.banks.stage import fewest
from formulations.banks.tasks import Prices, Program, Task
from formulations.banks.timing import Writes
from formulations.clock import ENDLESS, Clock
from formulations.rows import Rows, flow
from hwmodels.banks.steps import Pass, TileGoal
from instances.errors import InputError
from instances.machine.machine import Banks
from instances.network.feature_maps import Stage, Stages

#: More than any cost.
NEVER = 2**200
T = TypeVar("T")


class Point(NamedTuple):
    """What a plan or a part of it costs."""

    bytes: int
    ticks: int


def lowest(points: Iterable[Point]) -> list[Point]:
    """The undominated points, by bytes."""
    return lowest_by(points, lambda point: point)


def lowest_by(found: Iterable[T], point: Callable[[T], Point]) -> list[T]:
    """Those of undominated points, by bytes; the first of those that are equal."""
    best: list[T] = []
    for one in sorted(found, key=point):
        if not best or point(one).ticks < point(best[-1]).ticks:
            best.append(one)
    return best


class Resident(NamedTuple):
    """Tiles of a map on chip: its first columns (end 0, also for a map of one tile) or its last ones, from there on.

    DRAM does not have the first `unwritten` of these tiles.
    """

    map: str
    tiles: int
    end: int
    unwritten: int


class State(NamedTuple):
    """The stages that are done, as a set of bits, the last one, and what is on chip."""

    done: int = 0
    last: int = -1
    residents: tuple[Resident, ...] = ()

    def of(self, name: str) -> Resident | None:
        """What is on chip of a map."""
        for resident in self.residents:
            if resident.map == name:
                return resident
        return None


class Volume(NamedTuple):
    """Bytes between DRAM and chip by what they are."""

    load: int = 0
    weight: int = 0
    streamed: int = 0
    bias: int = 0
    write: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.load + self.weight + self.streamed + self.bias + self.write


@dataclass(frozen=True)
class Step:
    """One stage as planned."""

    stage: Stage
    source: str
    """The map that is read from the banks."""
    direction: int
    """1 if its columns are read from the last one on."""
    task: Task
    program: Program
    """`task`, `program`: what the stage finds and leaves, and its control steps."""
    after: State
    """What is on chip when it is done."""
    volume: Volume
    """Columns that have to be written because this stage loads them again, or drops them, count here."""


@dataclass(frozen=True)
class BankPlan:
    """A plan for all stages, in the order that they run."""

    steps: tuple[Step, ...]

    @property
    def volume(self) -> Volume:
        """What all stages move."""
        return Volume(*map(sum, zip(*(step.volume for step in self.steps), strict=True)))


class Walk:
    """The states of a network and the steps between them.

    `waiting`: whether results may wait on chip for a stage that does not read them from the banks, as second operands
    of sums do; the published compiler streams those from DRAM.
    """

    def __init__(self, found: Stages, banks: Banks, *, waiting: bool = True) -> None:
        self.found, self.banks, self.waiting = found, banks, waiting
        self.stages = found.stages
        self.makers: dict[str, list[int]] = {name: [] for name in found.maps}
        readers = dict.fromkeys(found.maps, 0)
        for at, stage in enumerate(self.stages):
            self.makers[stage.target].append(at)
            for name in self.sources(at):
                readers[name] |= 1 << at
        #: The stages that read a map, as a set of bits; columns of its tiles, and how many; bytes of a column written.
        self.readers = readers
        self.tile = {name: one.tile(banks) for name, one in found.maps.items()}
        self.tiles = {name: -(-one.columns // self.tile[name]) for name, one in found.maps.items()}
        self.written = {name: sum(self.stages[m].written for m in made) for name, made in self.makers.items()}
        self.all = (1 << len(self.stages)) - 1
        #: Whether the weights of a stage come with every process step.
        self.anew = [stage.anew(banks) for stage in self.stages]
        self._next: dict[tuple[int, int], list[int]] = {}
        self._last: dict[tuple[int, int], int] = {}
        self._evens: dict[int, bool] = {}
        self._reached: dict[int, frozenset[int]] = {}
        self._passes: dict[tuple[int, str, int, int], Pass] = {}
        self._alike: dict[Pass, Pass] = {}
        self._same: dict[Task, Task] = {}
        self._goals_of: dict[tuple[int, int, int], list[TileGoal]] = {}
        self._options: dict[object, list[tuple[Task, Program]]] = {}

    # ---- order -----------------------------------------------------------------------------------------------

    def next(self, state: State) -> list[int]:
        """The stages that may run next."""
        key = state.done, state.last
        if key not in self._next:
            ready = [at for at in range(len(self.stages)) if self.ready(state.done, at)]
            last = self.stages[state.last].target if state.last >= 0 else ""
            self._next[key] = [at for at in ready if last in self.sources(at)] or ready
        return self._next[key]

    def last(self, done: int, at: int) -> int:
        """The stage that was last if one that reads its result has to be next, else -1: then it makes no difference."""
        key = done, at
        if key not in self._last:
            target = self.stages[at].target
            self._last[key] = at if any(target in self.sources(onward) for onward in self.next(State(*key))) else -1
        return self._last[key]

    def ready(self, done: int, at: int) -> bool:
        """Whether a stage has not run, and all that it reads is made."""
        return not done >> at & 1 and all(done >> m & 1 for name in self.sources(at) for m in self.makers[name])

    def between(self, heads: tuple[int, ...]) -> frozenset[int]:
        """The stages of the paths that begin with `heads`, up to where they all meet."""
        reached = [self._after(at) for at in heads]
        return frozenset.union(*reached) - frozenset.intersection(*reached)

    def _after(self, at: int) -> frozenset[int]:
        """A stage and all that depend on it."""
        if at in self._reached:
            return self._reached[at]
        found = {at}
        for later in range(at + 1, len(self.stages)):
            if any(m in found for name in self.sources(later) for m in self.makers[name]):
                found.add(later)
        self._reached[at] = frozenset(found)
        return self._reached[at]

    def stays(self, name: str, done: int, last: int) -> bool:
        """Whether tiles of a map may stay: for any reader, or only for those that read it from the banks."""
        if self.waiting:
            return self.waits(name, done)
        if name != self.stages[last].target or len(self.makers[name]) > 1:
            ahead = (s for at, s in enumerate(self.stages) if not done >> at & 1)
            return any(s.source == name and s.kind != "sum" for s in ahead)
        return any(name in self.sources(at) for at in self.next(State(done, last)))

    def waits(self, name: str, done: int) -> bool:
        """Whether a map has readers to come."""
        return bool(self.readers[name] & ~done)

    # ---- what a stage may find and leave ----------------------------------------------------------------------

    def sources(self, at: int) -> tuple[str, ...]:
        """The operands that may be read from the banks."""
        stage = self.stages[at]
        return (stage.source, *stage.streamed)

    def passed(self, at: int, source: str, direction: int, least: int = 0) -> Pass:
        """The stage in one direction; through so many tiles at least, if those that no window reads may be left."""
        key = at, source, direction, least
        if key not in self._passes:
            one = self._passed(at, source, direction, least)
            self._passes[key] = self._alike.setdefault(one, one)  # equal stages share what they know
        return self._passes[key]

    def _passed(self, at: int, source: str, direction: int, least: int) -> Pass:
        stage, (results, rows) = self.stages[at], self.found.computed(self.stages[at])
        columns, tile = self.found.maps[source].columns, self.tile[source]
        if stage.kind == "patches":
            return Pass(columns, tile, results, patches=rows)
        before = stage.after if direction else stage.before
        ends = columns
        if self.banks.unread == "left":
            tiles = -(-stage.ends(results, backwards=bool(direction)) // tile)
            ends = min(columns, max(tiles, least) * tile)
        return Pass(ends, tile, results, stage.reach, stage.stride, before, beyond=columns - ends)

    def prices(self, state: State, at: int, source: str) -> Prices:
        """What a program is charged; reloads cost a write only if the columns are not in DRAM, or get there anyway."""
        stage, found = self.stages[at], state.of(source)
        there = found is None or found.unwritten < found.tiles or self.waits(source, state.done | 1 << at)
        reload = 0 if there else self.written[source]
        return Prices(self.found.maps[source].column_bytes, stage.weight_bytes if self.anew[at] else 0, reload)

    def tasks_from(self, state: State, at: int, source: str) -> Iterator[tuple[int, Task]]:
        """The tasks that read a given operand from the banks, each with the direction."""
        after, found = state.done | 1 << at, state.of(source)
        free = self._free(state, source)
        on_chip = found.tiles if found else 0
        retains = range(min(self.tiles[source], free) + 1) if self.stays(source, after, at) else range(1)
        for direction in self.directions(state, at, source):
            passes = [self.passed(at, source, direction, max(on_chip, retain)) for retain in retains]
            for goal in self._goals(at, keeps=self._keeps(state, at)):
                for retain, stage in zip(retains, passes, strict=True):
                    if goal.beside(retain, stage.all_tiles) > free:
                        break  # no tile finds a bank beside all that stays
                    task = Task(stage, free, on_chip, goal, retain)
                    yield direction, self._same.setdefault(task, task)

    def _free(self, state: State, source: str) -> int:
        """Banks that no map but the source takes."""
        return self.banks.count - sum(r.tiles for r in state.residents if r.map != source)

    def first(self, state: State, target: str) -> bool:
        """Whether no part of a map is made yet."""
        return not any(state.done >> m & 1 for m in self.makers[target])

    def _keeps(self, state: State, at: int) -> bool:
        """Whether tiles of a result may stay and it is not decided yet."""
        target = self.stages[at].target
        return self.first(state, target) and self.stays(target, state.done | 1 << at, at)

    def _goals(self, at: int, *, keeps: bool) -> list[TileGoal]:
        target = self.stages[at].target
        key = columns, tile, average = self.found.maps[target].columns, self.tile[target], self._average(at)
        if key not in self._goals_of:
            most = min(self.tiles[target], self.banks.count)
            sides = (False, True) if self.tiles[target] > 1 else (False,)
            kept = [TileGoal(columns, tile, k, mirrored, average) for k in range(1, most + 1) for mirrored in sides]
            self._goals_of[key] = [TileGoal(columns, tile, 0, mirrored=False, average=average), *kept]
        return self._goals_of[key] if keeps else self._goals_of[key][:1]

    def _average(self, at: int) -> int:
        """Columns that a stage computes if its target is their average, else 0."""
        pooled = self.stages[at].pooled
        return pooled.columns if pooled else 0

    # ---- steps -------------------------------------------------------------------------------------------------

    def step(self, state: State, at: int, source: str, direction: int, task: Task, program: Program) -> Step:
        """The step of a stage with a program."""
        visit = Visit(self, state, at, source)
        return Step(
            self.stages[at], source, direction, task, program, visit.after(direction, task), visit.volume(task, program)
        )

    def columns(self, resident: Resident) -> int:
        """Columns on chip."""
        return min(self.found.maps[resident.map].columns, resident.tiles * self.tile[resident.map])

    def outside(self, state: State, name: str) -> int:
        """Columns of a map that a sum streams: those that are not on chip, or all (`Banks.residuals`)."""
        resident = state.of(name) if self.banks.residuals == "chip" else None
        return self.found.maps[name].columns - (self.columns(resident) if resident else 0)

    def directions(self, state: State, at: int, source: str) -> tuple[int, ...]:
        """How an operand may be read: from the end where it is on chip, a single tile from both, if they differ."""
        found = state.of(source)
        if found and self.tiles[source] > 1:
            return (found.end,)
        return (0,) if self._even(at) else (0, 1)

    def _even(self, at: int) -> bool:
        """Whether both directions are the same: all maps are single tiles, and the windows symmetric."""
        if at not in self._evens:
            source, target = self.stages[at].source, self.stages[at].target
            single = all(self.tiles[name] == 1 for name in (target, *self.sources(at)))
            self._evens[at] = single and self.passed(at, source, 0) == self.passed(at, source, 1)
        return self._evens[at]

    def resident(self, name: str, tiles: int, end: int, unwritten: int) -> Resident:
        """What is on chip of a map; a single tile has no end."""
        return Resident(name, tiles, end if self.tiles[name] > 1 else 0, unwritten)

    def operands(self, state: State, at: int) -> list[str]:
        """The operands to read from the banks: one that is on chip, where the others may not be."""
        there = [name for name in self.sources(at) if state.of(name)]
        return there if there and not self.waiting else list(self.sources(at))

    def visits(self, state: State) -> Iterator[tuple[Visit, int, list[tuple[Task, Program]]]]:
        """All stages that may be next, with operand, direction, and what may stay with the best programs."""
        for at in self.next(state):
            for source in self.operands(state, at):
                visit = Visit(self, state, at, source)
                for direction in self.directions(state, at, source):
                    yield visit, direction, self.programs(state, at, source, direction, visit.prices)

    def programs(
        self, state: State, at: int, source: str, direction: int, prices: Prices
    ) -> list[tuple[Task, Program]]:
        """What may stay, with the best programs; the same for equal stages in states that leave them the same banks."""
        found, after, target = state.of(source), state.done | 1 << at, self.stages[at].target
        key = (
            self.passed(at, source, direction), self.found.maps[target].columns, self.tile[target], prices,
            found.tiles if found else 0, self._free(state, source), self.stays(source, after, at),
            self._keeps(state, at), self._average(at),
        )  # fmt: skip
        if key not in self._options:
            # the freest first, then from the tightest on: they bound those between (`Programs`)
            tasks = [task for way, task in self.tasks_from(state, at, source) if way == direction]
            tasks[1:] = sorted(tasks[1:], key=lambda task: -task.retain - task.goal.keep)
            self._options[key] = [(task, program) for task in tasks if (program := fewest(task, prices)) is not None]
        return self._options[key]


class Visit:
    """A stage in a state, with an operand to read from the banks: what all its programs share."""

    def __init__(self, walk: Walk, state: State, at: int, source: str) -> None:
        self.walk, self.state, self.at, self.source = walk, state, at, source
        self.stage, self.prices, self.done = walk.stages[at], walk.prices(state, at, source), state.done | 1 << at
        self._last = walk.last(self.done, at)
        target, found = self.stage.target, state.of(source)
        self._target = begun = state.of(target)
        self._begun = walk.columns(begun) if begun else None
        self._result, self._columns = walk.found.lasting(target), walk.found.maps[target].columns
        self._left = [
            r for r in state.residents if r.map != source and (r.map == target or walk.waits(r.map, self.done))
        ]
        self._unwritten = found.unwritten if found else 0
        streamed = [name for name in walk.sources(at) if name != source]
        self._streamed = sum(walk.outside(state, name) * walk.found.maps[name].column_bytes for name in streamed)
        #: Bytes of streamed columns that only the chip has, though they are streamed from DRAM.
        self._late = 0
        if walk.banks.residuals == "dram":
            there = [r for r in state.residents if r.map in streamed]
            self._late = sum(walk.columns(r._replace(tiles=r.unwritten)) * walk.written[r.map] for r in there)
            self._left = [r._replace(unwritten=0) if r in there else r for r in self._left]
        #: Columns of the source that only the chip has and others will read, and bytes to write one.
        self._only_here, self._written = 0, walk.written[source]
        if found is not None and walk.waits(source, self.done):
            self._only_here = walk.columns(found._replace(tiles=found.unwritten))

    @property
    def alike(self) -> tuple[object, ...]:
        """Visits that are alike move the same bytes with the same programs."""
        return self.at, self._begun, self._only_here, self._written, self._streamed, self._late, self.prices

    def volume(self, task: Task, program: Program) -> Volume:
        """What the stage moves."""
        load, weight, write = self._moved(task, program)
        return Volume(load, weight, self._streamed, self.stage.bias_bytes, write)

    def bytes(self, task: Task, program: Program) -> int:
        """All of `volume`."""
        return sum(self._moved(task, program), self._streamed + self.stage.bias_bytes)

    def _moved(self, task: Task, program: Program) -> tuple[int, int, int]:
        """What depends on the program: loads, weights, and writes."""
        stage, prices, goal = self.stage, self.prices, task.goal
        kept = 0 if self._result else goal.kept if self._begun is None else self._begun
        written = (goal.columns - kept) * stage.written + program.reloaded * prices.reload + self._late
        if self._only_here:
            written += max(0, self._only_here - task.retain * task.stage.tile) * self._written
        weights = prices.step * program.steps if prices.step else stage.weight_bytes
        return program.loaded * prices.column, weights, written

    def writes(self, direction: int) -> Writes:
        """What is written, column by column."""
        stays, columns = None, self._columns
        if self._result:
            stays = 0, 0
        elif self._target is not None and self._begun is not None:
            first = 0 if self._target.end == direction else columns - self._begun
            stays = first, first + self._begun
        return Writes(self.stage.written, stays, self._only_here, self._written, self._late)

    def after(self, direction: int, task: Task) -> State:
        """What is on chip afterwards."""
        left, goal = list(self._left), task.goal
        if goal.keep:
            unwritten = 0 if self._result else goal.keep
            left.append(self.walk.resident(self.stage.target, goal.keep, direction ^ goal.mirrored, unwritten))
        if task.retain:
            left.append(self.walk.resident(self.source, task.retain, direction, min(task.retain, self._unwritten)))
        if len(left) > 1:
            left.sort()
        return State(self.done, self._last, tuple(left))


# ---- all states ------------------------------------------------------------------------------------------------------


class Graph:
    """All states and arcs; raises TimeUp."""

    def __init__(self, walk: Walk, limit: Clock = ENDLESS) -> None:
        self.walk, self.limit = walk, limit
        #: By state the states that follow it, each with the fewest bytes on the way.
        self.arcs: list[list[tuple[int, int]]] = []
        self.number: dict[State, int] = {State(): 0}
        self._known: dict[object, list[int]] = {}
        self._explore()
        #: By state the fewest bytes to the end; `NEVER` where there is no way.
        self.bytes = self._least()

    def _least(self) -> list[int]:
        found = [NEVER] * len(self.number)
        for state, at in reversed(self.number.items()):
            if state.done == self.walk.all:
                found[at] = 0
            else:
                found[at] = min((NEVER, *(found[onward] + size for onward, size in self.arcs[at])))
        return found

    def stuck(self) -> InputError:
        """What there is to say if there is no way to the end: the stage that none gets past."""
        furthest = max((s for s in self.number if s.done != self.walk.all), key=lambda s: s.done.bit_count())
        stage, banks = self.walk.stages[self.walk.next(furthest)[0]].name, self.walk.banks
        size = f"{banks.count} banks of {banks.bank_bytes} bytes"
        return InputError(f"network {self.walk.found.network}: stage {stage} has no program in {size}")

    def rows(self) -> Rows:
        """Return a path from the first state to an end as rows, a variable for every arc in order."""
        ends = {number for state, number in self.number.items() if state.done == self.walk.all}
        return flow(((at, onward, size) for at, arcs in enumerate(self.arcs) for onward, size in arcs), 0, ends)

    def chosen(self, value: Callable[[int], bool]) -> BankPlan:
        """Return the plan of a solution of `rows`."""
        arcs = ((at, onward) for at, ways in enumerate(self.arcs) for onward, _ in ways)
        return self.follow({at: onward for number, (at, onward) in enumerate(arcs) if value(number)})

    def follow(self, chosen: Mapping[int, int]) -> BankPlan:
        """The plan with the fewest bytes along some arcs from the first state on."""
        states, at = list(self.number), 0
        steps = []
        while at in chosen:
            onward = chosen[at]
            ways = [
                (visit, direction, task, program)
                for visit, direction, tasks in self.walk.visits(states[at])
                for task, program in tasks if visit.after(direction, task) == states[onward]
            ]  # fmt: skip
            visit, direction, task, program = min(ways, key=lambda way: way[0].bytes(way[2], way[3]))
            steps.append(self.walk.step(states[at], visit.at, visit.source, direction, task, program))
            at = onward
        return BankPlan(tuple(steps))

    def _explore(self) -> None:
        layer = [State()]
        while layer:
            following: list[State] = []
            for state in layer:
                self.limit.tick()
                ways: dict[int, int] = {}
                for visit, direction, tasks in self.walk.visits(state):
                    for (task, _), size in zip(tasks, self._sizes(visit, tasks), strict=True):
                        after = visit.after(direction, task)
                        onward = self.number.get(after)
                        if onward is None:
                            self.number[after] = onward = len(self.number)
                            following.append(after)
                        ways[onward] = min(size, ways.get(onward, size))
                self.arcs.append(list(ways.items()))
            layer = following

    def _sizes(self, visit: Visit, tasks: list[tuple[Task, Program]]) -> list[int]:
        """What the programs of a visit move; alike visits share it."""
        key = id(tasks), visit.alike  # the tasks live as long as the walk
        if key not in self._known:
            self._known[key] = [visit.bytes(task, program) for task, program in tasks]
        return self._known[key]


def optimum(walk: Walk) -> BankPlan:
    """Return a plan with the fewest bytes, whatever its time; raises InputError if a stage has no program."""
    graph = Graph(walk)
    least, at = graph.bytes, 0
    if least[0] == NEVER:
        raise graph.stuck()
    chosen: dict[int, int] = {}
    while graph.arcs[at]:
        chosen[at] = next(on for on, size in graph.arcs[at] if size + least[on] == least[at])
        at = chosen[at]
    return graph.follow(chosen)
