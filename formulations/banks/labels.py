"""Banks, inside one stage: what programs cost in time, action by action.

The clock of a program: requests to DRAM, units of work and what they wait for, as `formulations.banks.search` states
them. A label holds all times that the rest of a program depends on, so that the search may follow many programs at
once, a policy one.

Where weights overtake loads (`DramClock.overtakes`) time is counted by cycles, in `formulations.banks.cycles`.

Where writes take time, every unit of work leaves a part of the result, which is written as the unit after it begins.
Nothing of a stage is left to write when it ends: so a stage finds a bus that is free once its first weights are there.

Source: `heterogeneous_mapping_and_banks` 4.1.2.1 (Eq. 4.1, 4.2), 4.2.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import gt
from typing import NamedTuple

from formulations.banks.cycles import ByCycle, Ended, Later
from formulations.banks.tasks import Action, Prices, Program, Task, reloaded, told, told_apart
from formulations.banks.timing import Script, Timed, Timing, undominated
from hwmodels.banks.steps import PassState


class Label(NamedTuple):
    """A path to a state."""

    bytes: int
    now: int
    bus: int
    weights: int
    """`now`, `bus`, `weights`: ticks when the last step ended, when the bus is free, when the weights of the next unit
    are there. At the end of a stage `bus` is when all is served that was asked for ahead of the next stage's weights.
    """
    ready: tuple[int, ...]
    """When each tile on chip is there."""
    freed: tuple[int, ...]
    """When banks became free in the last step, those that no load has taken yet."""
    pending: int = 0
    """Bytes that the last unit has left to write."""
    made: tuple[Label, PassState, Action] | None = None
    biases: tuple[int, ...] = ()
    """By cycle: when those of the stage are there, and those of the next one."""
    later: tuple[Later, ...] = ()
    """By cycle, of a sum: for every time in `freed` the streams that are asked for behind the load."""

    @property
    def lacking(self) -> bool:
        """Whether biases are still under way."""
        return any([time > self.now for time in self.biases])  # noqa: C419 (quicker)

    def dominates(self, other: Label) -> bool:
        """Whether nothing is greater."""
        if self.bytes > other.bytes or self.now > other.now or self.bus > other.bus or self.weights > other.weights:
            return False
        if self.pending > other.pending or any(map(gt, self.ready, other.ready)):
            return False
        if any(map(gt, self.biases, other.biases)):
            return False
        if len(self.later) != len(other.later) or any(
            any(map(gt, a, b)) for a, b in zip(self.later, other.later, strict=True)
        ):
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
        self.scripts = timing.scripts.setdefault(task.stage, {})
        self.by_cycle = ByCycle(task, timing, wait) if timing.columns else None
        self.following = self.clock.served(0, 0, timing.following.weights)
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

    def begin(self, state: PassState) -> Label:
        """The stage begins; the weights of its first unit are there after `wait` ticks."""
        if self.by_cycle:
            now, bus, biases = self.by_cycle.begun()
            return Label(0, now, bus, self.wait, (0,) * self.stage.tiles(state), (), biases=biases)
        return Label(0, 0, max(self.begun, self.second), self.wait, (0,) * self.stage.tiles(state), ())

    def follow(self, label: Label, begun: PassState, state: PassState, action: Action, after: PassState) -> Label:
        """The label after an action."""
        if action.name == "process":
            return self.process(label, begun, state, action, after)
        columns = after.loaded - state.loaded
        bus = there = self.clock.served(label.release(0), label.bus, columns * self.prices.column)
        spent = label.bytes + columns * self.prices.column
        made, now, later = (label, state, action), label.now, label.later
        if later:
            there, bus = later[0].loaded(self.clock, bus), later[0].ahead(bus)
        if self.by_cycle and not label.freed:
            now += self.clock.cycle
        return label._replace(
            bytes=spent,
            now=now,
            bus=bus,
            ready=(*label.ready, there),
            freed=label.freed[1:],
            made=made,
            later=later[1:],
        )

    def process(self, label: Label, begun: PassState, state: PassState, action: Action, after: PassState) -> Label:
        """The label after a process step."""
        tiles, again = action.tiles, reloaded(begun, state, after) * self.prices.reload
        if self.by_cycle:
            bus = label.bus
            for streams in label.later:
                bus = streams.ahead(bus)
            step = self.by_cycle.step(label.now, bus, label.weights, label.ready, label.biases, state, tiles, after)
        elif self.timing.streams:
            step = self._columns(label, state, tiles, after)
        else:
            step = self._groups(label, state, tiles, after, again)
        now, freed = step.now, [] if self.timing.late else step.freed
        while freed and freed[-1] == now and not self.by_cycle:
            freed.pop()
        bus = step.served if after.first == self.stage.columns else step.bus
        if not self.sizes or step.pending or after.loaded < self.stage.columns:
            bus = max(bus, (freed[0] if freed else now) + self.clock.dram.call_ticks)  # no request is on the bus before
        ready = tuple([max(time, now) for time in step.ready]) if after.loaded == state.loaded else ()
        spent, made = label.bytes + self.prices.step + again, (label, state, action)
        biases = tuple([max(time, now) for time in step.biases])
        weights = max(step.weights, now)
        return Label(spent, now, bus, weights, ready, tuple(freed), step.pending, made, biases, step.later)

    # ---- units -----------------------------------------------------------------------------------------------

    def _asked(self, now: int, bus: int, pending: int, again: int, ask: int) -> tuple[int, int, int]:
        """A unit begins: what is left is written, it asks for the weights of the next one.

        When what is written is served, and all, and when those weights are there.
        """
        for size in (pending, again):
            if size:
                bus = self.clock.served(now, bus, size)
        if not ask:
            return bus, bus, now
        there = self.clock.served(now, bus, ask)
        return bus, there, there

    def _groups(self, label: Label, state: PassState, tiles: int, after: PassState, again: int) -> Ended:
        """The units of a step: groups of filters. What is loaded again may have to be written."""
        timing, script, groups = self.timing, self._script(state, tiles, after.made), self.timing.groups
        first = state.first == 0 and state.made == 0
        share = timing.share if first or timing.anew else 0
        onward = timing.following.weights if after.first == self.stage.columns else timing.share * timing.anew
        left = 0
        if self.sizes:
            left = -(-(self.sizes[after.made] - self.sizes[state.made]) // groups)
        else:
            again = 0
        ask = onward if groups == 1 else 0 if first else share  # the first step's is ahead of the loads
        served, bus, weights = self._asked(label.now, label.bus, label.pending, again if groups == 1 else 0, ask)
        now, freed = max(label.now, label.weights), list[int]()
        for tile, work, leaves in script.first:
            now = max(now, label.ready[tile])
            freed += [now + ticks for ticks in leaves]
            now += work
        if groups > 1:
            if first:
                weights = self.second
            now, bus, weights = self._between(groups - 2, now, bus, weights, script.work, share, left)
            served, bus, asked = self._asked(now, bus, left, again, onward)
            now, weights = max(now, weights), asked
            freed = [now + ticks for ticks in script.freed]
            now += script.work
        return Ended(now, bus, served, weights, left, freed, label.ready[tiles:])

    def _between(
        self, count: int, now: int, bus: int, weights: int, work: int, share: int, size: int
    ) -> tuple[int, int, int]:
        """The groups between the first and the last one: when they end, the bus is free, the next weights are there."""
        if not share and not size:
            return (max(now, weights) + work * count, bus, now) if count else (now, bus, weights)
        clock = self.clock
        latency, transfer = clock.latency(share), clock.dram.byte_ticks * share
        once = twice = None  # how far the bus was ahead after the groups before, and when they ended
        while count:
            begun = now
            if size:
                bus = clock.served(now, bus, size)
            if share:
                bus = max(now + latency, bus) + transfer
            now, weights = max(now, weights) + work, bus if share else begun
            count -= 1
            if twice and bus - now == twice[0]:  # as two groups before: what is left takes as long, two by two
                ahead = count // 2 * (now - twice[1])
                now, bus, weights, count = now + ahead, bus + ahead, weights + ahead, count % 2
            once, twice = (bus - now, now), once
        return now, bus, weights

    def _columns(self, label: Label, state: PassState, tiles: int, after: PassState) -> Ended:
        """The units of a sum: a column each, with its streamed bytes."""
        timing, there, upto = self.timing, label.ready, self.stage.units(state, 0, after.made)[0]
        asks, ticks, served, sizes = (
            (*timing.streams, timing.following.weights),
            timing.ticks,
            self.clock.served,
            self.sizes,
        )
        _, now, bus, weights, _, _, pending, *_ = label
        at, done = 0, bus
        for column in range(state.made, after.made):
            if pending:
                bus = served(now, bus, pending)
            if sizes:
                pending = sizes[column + 1] - sizes[column]
            done = bus
            if column == 0 and self.several:
                asked = self.second
            elif asks[column + 1]:
                asked = bus = served(now, bus, asks[column + 1])
            else:
                asked = now
            while upto[at] <= column:
                at += 1
            now = max(now, weights, there[at]) + ticks[column + 1] - ticks[column]
            weights = asked
        return Ended(now, bus, done, weights, pending, [], there[tiles:])

    def _script(self, state: PassState, tiles: int, made: int) -> Script:
        """What a step does, whenever it begins."""
        stay = self.task.staying(state)
        key = state.first, state.loaded, state.made, tiles, made, stay
        found = self.scripts.get(key)
        if found is None:
            self.scripts[key] = found = self._scripted(state, tiles, made, stay)
        return found

    def _scripted(self, state: PassState, tiles: int, made: int, stay: int) -> Script:
        ticks, (upto, free) = self.timing.ticks, self.stage.units(state, tiles, made)
        freed, at = [(number, max(end, state.made)) for number, end in free[stay:]], 0
        done, first = state.made, list[tuple[int, int, tuple[int, ...]]]()
        for number, end in enumerate(upto):
            if number >= tiles and end <= done:
                continue
            begin, done, leaves = done, max(done, end), list[int]()
            while at < len(freed) and freed[at][0] <= number and freed[at][1] <= done:
                leaves.append(ticks[max(begin, freed[at][1])] - ticks[begin])
                at += 1
            first.append((number, ticks[done] - ticks[begin], tuple(leaves)))
        begin = ticks[state.made]
        return Script(tuple(first), tuple(ticks[end] - begin for _, end in freed), ticks[made] - begin)

    # ---- programs --------------------------------------------------------------------------------------------

    def along(self, begun: PassState, program: Program) -> Timed | None:
        """The costs of a program; None if it does not fit, or is one of another pass."""
        label, state = self.begin(begun), begun
        for action in told_apart(program.actions):
            after = None if state.first == self.stage.columns else self.task.follow(state, action)
            if after is None:
                return None
            label, state = self.follow(label, begun, state, action, after), after
        return self._costs(label, program) if state.first == self.stage.columns else None

    def timed(self, ends: Sequence[Label]) -> list[Timed]:
        """What the programs of some labels cost, all columns done: the undominated ones."""
        found = [self._costs(end, self._program(end)) for end in ends]
        return undominated(sorted(found, key=lambda one: one.program.steps))

    def _costs(self, end: Label, program: Program) -> Timed:
        """What a program costs that leads to a label."""
        ticks = end.now + self.clock.fixed
        if self.sizes:
            ticks = max(ticks, self._written(end))
        wait = max(0, end.weights - ticks) if self.timing.following.weights or self.by_cycle else 0
        late = max(0, end.biases[-1] - ticks) if end.biases else 0
        if self.clock.relaxed:  # as if the next stage waited for both at once
            wait, late = max(wait, self.timing.ready(0, wait, late)), 0
        return Timed(program, end.bytes, ticks, wait, late)

    def _written(self, end: Label) -> int:
        """When all that a stage writes is written, once all columns are done."""
        if not end.pending:
            return end.bus
        return self.clock.served(end.now, end.weights if self.timing.following.weights else end.bus, end.pending)

    def _program(self, end: Label) -> Program:
        path, done = [PassState(self.stage.columns, self.stage.columns, self.stage.results)], []
        made = end.made
        while made is not None:
            label, state, action = made
            path.append(state)
            done.append(action)
            made = label.made
        return told(path[::-1], done[::-1])


def along(task: Task, prices: Prices, timing: Timing, program: Program, wait: int = 0) -> Timed:
    """Return what a program costs."""
    search, begun = Labels(task, prices, timing, wait), task.begin()
    found = None if begun is None else search.along(begun, program)
    assert found is not None
    return found
