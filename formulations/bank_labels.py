"""F6 banks, inside one stage: what programs cost in time, action by action.

The clock of a program: requests to DRAM, units of work and what they wait for, as `formulations.bank_time` states them.
A label holds all times that the rest of a program depends on, so that the search may follow many programs at once, a
policy one.

Where writes take time, every unit of work leaves a part of the result, which is written as the unit after it begins.
Nothing of a stage is left to write when it ends: so a stage finds a bus that is free once its first weights are there.

Source: `heterogeneous_mapping_and_banks` 4.1.2.1 (Eq. 4.1, 4.2), 4.2.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from operator import gt
from typing import NamedTuple, Protocol, TypeVar

from formulations.banks import Action, Prices, Program, Task, reloaded, told, told_apart
from hwmodels.bank_clock import Clock
from hwmodels.bank_steps import State

__all__ = ["Label", "Labels", "Timed", "Timing", "Writes", "along", "undominated"]


@dataclass(frozen=True)
class Writes:
    """What a stage writes, where that takes time.

    Attributes
    ----------
    column : int
        Bytes of a column of the result.
    stays : tuple of int, optional
        Columns that are not written, in the order in which they are made, from the first to before the second; those
        that the goal keeps by default.
    alone, dropped : int
        First columns of the map that is read that only the chip has though other stages will read them; bytes of each.
        Those that do not stay are written as the stage begins.
    """

    column: int
    stays: tuple[int, int] | None = None
    alone: int = 0
    dropped: int = 0

    def sizes(self, task: Task) -> tuple[int, ...]:
        """Bytes of the columns of the result that are written: ``sizes[x]`` of the first x."""
        return _sizes(self.column, task.goal.stays if self.stays is None else self.stays, task.stage.results)

    def at_first(self, task: Task) -> int:
        """Bytes that are written as the stage begins."""
        return max(0, self.alone - task.retain * task.stage.tile) * self.dropped


@cache
def _sizes(column: int, stays: tuple[int, int], columns: int) -> tuple[int, ...]:
    return tuple(accumulate((0 if stays[0] <= x < stays[1] else column for x in range(columns)), initial=0))


@dataclass(frozen=True)
class Timing:
    """What a stage takes, in one direction.

    Attributes
    ----------
    ticks : tuple of int
        Until each column of the result is done, for one group of filters: ``ticks[x]`` for the first x columns.
    groups : int
        Of filters.
    share : int
        Bytes of the weights of one group.
    anew : bool
        Whether they come with every process step.
    streams : tuple of int
        Of a sum: bytes that are streamed for every column; else empty.
    following : int
        Bytes of the first weights (a sum: the first streamed column) of the stage that follows.
    late : bool
        Whether loads wait for the end of the step before them (a coarser estimate).
    writes : Writes, optional
        What is written; nothing that takes time by default.
    """

    clock: Clock
    ticks: tuple[int, ...]
    groups: int = 1
    share: int = 0
    anew: bool = False
    streams: tuple[int, ...] = ()
    following: int = 0
    late: bool = False
    writes: Writes | None = None


@dataclass(frozen=True)
class Timed:
    """A program with its bytes, ticks until it ends, and ticks then until the next stage's first weights are there."""

    program: Program
    bytes: int
    ticks: int
    wait: int


class Label(NamedTuple):
    """A path to a state.

    Attributes
    ----------
    now, bus, weights : int
        Ticks when the last step ended, when the bus is free, when the weights of the next unit are there. At the end
        of a stage `bus` is when all is served that was asked for ahead of the next stage's weights.
    ready : tuple of int
        When each tile on chip is there.
    freed : tuple of int
        When banks became free in the last step, those that no load has taken yet.
    pending : int
        Bytes that the last unit has left to write.
    """

    bytes: int
    now: int
    bus: int
    weights: int
    ready: tuple[int, ...]
    freed: tuple[int, ...]
    pending: int = 0
    made: tuple[Label, State, Action] | None = None

    def dominates(self, other: Label) -> bool:
        """Whether nothing is greater."""
        if self.bytes > other.bytes or self.now > other.now or self.bus > other.bus or self.weights > other.weights:
            return False
        if self.pending > other.pending or any(map(gt, self.ready, other.ready)):
            return False
        return all(self.release(i) <= other.release(i) for i in range(max(len(self.freed), len(other.freed))))

    def release(self, at: int) -> int:
        """When the bank is free that a load takes."""
        return self.freed[at] if at < len(self.freed) else self.now


class Labels:
    """Labels of one stage."""

    def __init__(self, task: Task, prices: Prices, timing: Timing, wait: int) -> None:
        self.task, self.prices, self.timing, self.wait = task, prices, timing, wait
        self.clock, self.stage = timing.clock, task.stage
        self.following = self.clock.served(0, 0, timing.following)
        self.several = len(timing.streams) > 1 if timing.streams else timing.groups > 1
        #: Bytes of the first columns of the result that are written, if that takes time.
        self.sizes = timing.writes.sizes(task) if timing.writes else ()
        #: When what leaves the chip as the stage begins is written.
        dropped = timing.writes.at_first(task) if timing.writes else 0
        self.begun = self.clock.served(0, wait, dropped) if dropped else wait
        #: When the weights of the second unit are there: they are asked for ahead of the loads that open the stage.
        second = (timing.streams[1] if timing.streams else timing.share) if self.several else 0
        self.second = self.clock.served(0, self.begun, second)

    # ---- actions ---------------------------------------------------------------------------------------------

    def begin(self, state: State) -> Label:
        """The stage begins; the weights of its first unit are there after `wait` ticks."""
        return Label(0, 0, max(self.begun, self.second), self.wait, (0,) * self.stage.tiles(state), ())

    def follow(self, label: Label, begun: State, state: State, action: Action, after: State) -> Label:
        """The label after an action."""
        if action.name == "process":
            return self.process(label, begun, state, action, after)
        columns = after.loaded - state.loaded
        bus = self.clock.served(label.release(0), label.bus, columns * self.prices.column)
        ready = (*label.ready, bus)
        spent = label.bytes + columns * self.prices.column
        made = label, state, action
        return Label(spent, label.now, bus, label.weights, ready, label.freed[1:], label.pending, made)

    def process(self, label: Label, begun: State, state: State, action: Action, after: State) -> Label:
        """The label after a process step."""
        tiles, again = action.tiles, reloaded(begun, state, after) * self.prices.reload
        run = _Step(self, label, state, tiles, after, again)
        run.go()
        spent = label.bytes + self.prices.step + again
        ready = tuple(max(time, run.now) for time in label.ready[tiles:]) if after.loaded == state.loaded else ()
        freed = [] if self.timing.late else run.freed
        while freed and freed[-1] == run.now:
            freed.pop()
        bus = run.served if run.last else run.bus
        if not self.sizes or run.pending or after.loaded < self.stage.columns:
            earliest = freed[0] if freed else run.now
            bus = max(bus, earliest + self.clock.dram.call_ticks)  # the next request is not on the bus before that
        made = label, state, action
        return Label(spent, run.now, bus, max(run.weights, run.now), ready, tuple(freed), run.pending, made)

    def along(self, begun: State, program: Program) -> Timed | None:
        """The costs of a program; None if it does not fit."""
        label, state = self.begin(begun), begun
        for action in told_apart(program):
            after = self.task.load(state) if action.name == "load" else self.task.process(state, action.tiles)
            if after is None:
                return None
            label, state = self.follow(label, begun, state, action, after), after
        return self.timed([label])[0]

    def timed(self, ends: Sequence[Label]) -> list[Timed]:
        """What the programs of some labels cost, all columns done: those that no other beats."""
        fixed, made = self.clock.fixed, []
        for end in ends:
            ticks = max(end.now + fixed, self._written(end)) if self.sizes else end.now + fixed
            wait = max(0, end.weights - ticks) if self.timing.following else 0
            made.append(Timed(self._program(end), end.bytes, ticks, wait))
        return undominated(sorted(made, key=lambda timed: timed.program.steps))

    def _written(self, end: Label) -> int:
        """When all that a stage writes is written, once all columns are done."""
        if not end.pending:
            return end.bus
        return self.clock.served(end.now, end.weights if self.timing.following else end.bus, end.pending)

    def _program(self, end: Label) -> Program:
        path, done = [State(self.stage.columns, self.stage.columns, self.stage.results)], []
        made = end.made
        while made is not None:
            label, state, action = made
            path.append(state)
            done.append(action)
            made = label.made
        return told(path[::-1], done[::-1])


class _Costs(Protocol):
    """Bytes, ticks, and ticks that are then waited."""

    @property
    def bytes(self) -> int: ...
    @property
    def ticks(self) -> int: ...
    @property
    def wait(self) -> int: ...


C = TypeVar("C", bound=_Costs)


def undominated(found: Iterable[C]) -> list[C]:
    """Those that no other beats in bytes, ticks and the end of the wait; the first of those that are equal."""
    best: list[C] = []
    for one in sorted(found, key=lambda t: (t.bytes, t.ticks, t.wait)):
        if not any(o.ticks <= one.ticks and o.ticks + o.wait <= one.ticks + one.wait for o in best):
            best.append(one)
    return best


class _Step:
    """One process step on its way."""

    def __init__(self, search: Labels, label: Label, state: State, tiles: int, after: State, again: int) -> None:
        self.search, self.label, self.state, self.after, self.tiles = search, label, state, after, tiles
        #: Bytes to write: left by the unit before, by each unit of this step, and of columns to be loaded again.
        self.pending = label.pending
        self.left = self.again = 0
        if search.sizes:
            self.left = -(-(search.sizes[after.made] - search.sizes[state.made]) // search.timing.groups)
            self.again = again
        #: When all is served but what the last unit asks for.
        self.served = 0
        self.now, self.bus, self.weights = label.now, label.bus, label.weights
        self.second = search.second
        self.ticks, self.freed = search.timing.ticks, list[int]()
        self.first = state.first == 0 and state.made == 0
        self.last = after.first == search.stage.columns
        self.upto, self.free = search.stage.units(state, tiles, after.made)

    def go(self) -> None:
        """Run all units of the step."""
        timing = self.search.timing
        if timing.streams:
            self._columns()
            return
        groups = timing.groups
        if groups == 1:
            self._unit(self._next(), self.again)
            self._work(self._free_at())
            return
        share = timing.share if self.first or timing.anew else 0
        self._unit(None if self.first else share)  # the first step's second group is asked for ahead of the loads
        self._work(())
        work = self.ticks[self.after.made] - self.ticks[self.state.made]
        self._groups(groups - 2, share, work)
        self._unit(self._next(), self.again)
        begin = self.ticks[self.state.made]
        self.freed = [self.now + max(0, self.ticks[at] - begin) for _, at in self._free_at()]
        self.now += work
        self.weights = self.second

    def _unit(self, ask: int | None, again: int = 0) -> None:
        """A unit begins: what is left is written, it asks for the weights of the next one, and waits for its own."""
        clock = self.search.clock
        for size in (self.pending, again):
            if size:
                self.bus = clock.served(self.now, self.bus, size)
        self.pending, self.served = self.left, self.bus
        if ask is None:
            self.second = self.search.second
        elif ask:
            self.second = self.bus = clock.served(self.now, self.bus, ask)
        else:
            self.second = self.now
        self.now = max(self.now, self.weights)

    def _groups(self, count: int, share: int, work: int) -> None:
        """The groups between the first and the last one, as `_unit` would run them."""
        now, bus, weights, clock, size = self.now, self.bus, self.weights, self.search.clock, self.left
        latency, transfer = clock.latency(share), clock.dram.byte_ticks * share
        once = twice = None  # how far the bus was ahead after the groups before, and when they ended
        left = count if share or size else 0
        while left:
            begun = now
            if size:
                bus = clock.served(now, bus, size)
            if share:
                bus = max(now + latency, bus) + transfer
            now, weights = max(now, weights) + work, bus if share else begun
            left -= 1
            if twice and bus - now == twice[0]:  # as two groups before: what is left takes as long, two by two
                ahead = left // 2 * (now - twice[1])
                now, bus, weights, left = now + ahead, bus + ahead, weights + ahead, left % 2
            once, twice = (bus - now, now), once
        if not (share or size) and count:
            now = max(now, weights) + work * count
        self.now, self.bus, self.weights = now, bus, weights

    def _next(self) -> int:
        """Bytes of the weights of the next step or stage."""
        timing = self.search.timing
        return timing.following if self.last else timing.share * timing.anew

    def _work(self, free: Sequence[tuple[int, int]]) -> None:
        """The columns of the first group: they wait for tiles."""
        done, now, ticks, at = self.state.made, self.now, self.ticks, 0
        for number, (there, upto) in enumerate(zip(self.label.ready, self.upto, strict=True)):
            if number >= self.tiles and upto <= done:
                continue
            now, upto = max(now, there), max(done, upto)
            while at < len(free) and free[at][0] <= number and free[at][1] <= upto:
                self.freed.append(now + ticks[max(done, free[at][1])] - ticks[done])
                at += 1
            now += ticks[upto] - ticks[done]
            done = upto
        self.now, self.weights = now, self.second

    def _free_at(self) -> Sequence[tuple[int, int]]:
        """The tiles whose banks become free, and how many columns are done then."""
        retain = self.search.task.retain
        stayed = min(retain, -(-self.state.first // self.search.stage.tile)) if retain else 0
        return self.free[retain - stayed :]

    def _columns(self) -> None:
        """The units of a sum: a column each, with its streamed bytes."""
        search, ticks, there, upto, at = self.search, self.ticks, self.label.ready, self.upto, 0
        asks, served = (*search.timing.streams, search.timing.following), search.clock.served
        now, bus, weights, second, pending = self.now, self.bus, self.weights, self.second, self.pending
        sizes = search.sizes
        for column in range(self.state.made, self.after.made):  # as `_unit` would run them
            if pending:
                bus = served(now, bus, pending)
            if sizes:
                pending = sizes[column + 1] - sizes[column]
            self.served = bus
            if column == 0 and search.several:
                second = search.second
            elif asks[column + 1]:
                second = bus = served(now, bus, asks[column + 1])
            else:
                second = now
            while upto[at] <= column:
                at += 1
            now = max(now, weights, there[at]) + ticks[column + 1] - ticks[column]
            weights = second
        self.now, self.bus, self.weights, self.second, self.pending = now, bus, weights, second, pending


def along(task: Task, prices: Prices, timing: Timing, program: Program, wait: int = 0) -> Timed:
    """Return what a program costs."""
    search, begun = Labels(task, prices, timing, wait), task.begin()
    found = None if begun is None else search.along(begun, program)
    assert found is not None
    return found
