"""Banks, inside one stage: what programs cost in time, cycle by cycle, where weights overtake loads.

The clock is that of the published simulator: `hwmodels.banks.replay.time` states it, and counts it on its own. A unit
asks for the weights of the next one when it begins, and waits for its own when its first cycle is over; for a tile when
the cycle is over that reads it first; for the biases of the stage when its first pixel is at the adder, at the latest
when the first unit ends. A load for which no bank is awaited takes a cycle of the element.

`ready` of a label is when a tile is there if all weights asked for since delay it. Unless they do, it is there when the
last of them are, and so before anything that waited for them: the two differ only by the weights that were asked for
last. Those delay a load if it is not over when they begin, ``ready > s``; here times are no sums and maxima, and an
earlier request may delay more (`DramClock.relaxed` leaves this delay out). So it is with biases, which may still be
under way when the stage ends that asked for them. In bounds the next stage waits for its biases as it waits for its
first weights, as much earlier as it needs them later (`First.lead`). What it asks for then would have delayed them, or
comes behind them: nothing in a bound is later than it is.

Source: the public MIDAP simulator of 2020-09-02; `heterogeneous_mapping_and_banks` 4.1.2.1 (Eq. 4.1, 4.2).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from formulations.banks.tasks import Task
from formulations.banks.timing import Script, Timing
from hwmodels.banks.steps import DramClock, PassState
from instances.machine.sections import ADDER_CYCLES

#: What a part of a step waits for, if it is not a tile (`Script.first`).
_NONE, _BIASES = -1, -2


class Ended(NamedTuple):
    """How a process step ends, as a label has it.

    `served`: when all is but what the last unit asks for; `ready`: when the tiles are there that it does not consume;
    `biases`: when those of the stage and of the next one are; `later`: for every bank in `freed` what streams are asked
    for behind the load that takes it, `bus` is then as the first of these loads finds it.
    """

    now: int
    bus: int
    served: int
    weights: int
    pending: int
    freed: list[int]
    ready: tuple[int, ...]
    biases: tuple[int, ...] = ()
    later: tuple[Later, ...] = ()


class Later(NamedTuple):
    """What is asked for between a load and the next one that a step with streams makes room for, or its end."""

    takes: int
    end: int
    """`takes`, `end`: ticks of these streams on the bus; when the last one of the step so far is there."""
    over: int
    begin: int
    last: int
    """`over`, `begin`, `last`: by how much streams delay the load in all, but for the last one of the step; when that
    one begins, what it takes.
    """

    def loaded(self, clock: DramClock, end: int) -> int:
        """When a load is there that would end then."""
        end += self.over
        return end if clock.relaxed or end <= self.begin else end + self.last

    def ahead(self, bus: int) -> int:
        """When the bus is free after these streams, if it was free at some time before them."""
        return max(bus + self.takes, self.end)

    def moved(self, by: int) -> Later:
        """The same later."""
        return self._replace(end=self.end + by, begin=self.begin + by)


class _Free(NamedTuple):
    """A bank becomes free when the first cycle of a column is over; the loads of the same column come a cycle apart.

    `column`: ticks of the step's work ahead of it. `late`: the loads ahead of this one.
    """

    column: int
    late: int


class _Weights:
    """Weights that overtake the loads under way during a step."""

    def __init__(self, clock: DramClock, end: int) -> None:
        #: `end`, `over`: when the last weights are there; by how much those asked for so far delay a load.
        self.clock, self.end, self.over, self.last = clock, end, 0, (0, 0)

    def ask(self, now: int, size: int) -> int:
        """Ask for weights; return when they are there, now if there are none."""
        self.last = 0, 0
        if not size:
            return now
        takes = self.clock.transfer(size)
        begin = max(now + self.clock.latency(size), self.end)
        self.end, self.over, self.last = begin + takes, self.over + takes, (begin, takes)
        return self.end

    def later(self, points: list[tuple[int, int]]) -> tuple[Later, ...]:
        """What is asked for between points of a step, each `over` and `end` there, and its end."""
        begin, last = self.last
        found = []
        for (over, _), (next_over, end) in pairwise([*points, (self.over, self.end)] if points else ()):
            behind = self.over > over  # the last ones are asked for behind this point
            delay = self.over - over - last * behind
            found.append(Later(next_over - over, end, delay, begin * behind, last * behind))
        return tuple(found)

    def many(self, count: int, size: int, end: int) -> None:
        """So many have been asked for, the last ones are there at `end`; all were waited for."""
        if size and count:
            self.end, self.over, self.last = end, self.over + self.clock.transfer(size) * count, (0, 0)

    def there(self, ready: int) -> int:
        """When a tile is there, or biases are, for what waits for it now."""
        begin, takes = self.last
        ready += self.over - takes
        return ready if self.clock.relaxed or ready <= begin else ready + takes

    def all(self, times: tuple[int, ...]) -> tuple[int, ...]:
        """When tiles are there, or biases are."""
        return tuple([self.there(time) for time in times])


class ByCycle:
    """The units of the process steps of one stage."""

    def __init__(self, task: Task, timing: Timing, wait: int) -> None:
        self.task, self.timing, self.wait = task, timing, wait
        self.clock, self.stage = timing.clock, task.stage
        self.cycle = self.clock.cycle
        assert timing.columns is not None
        self.columns = timing.columns
        self.scripts = timing.scripts.setdefault(task.stage, {})
        #: Ticks of work until the biases are needed.
        self.adder = (self.columns.pixel + ADDER_CYCLES) * self.cycle

    def begun(self) -> tuple[int, int, tuple[int, ...]]:
        """When the first load may be asked for, the bus is free, and biases are there: they are asked for at once."""
        clock, owed = self.clock, self.timing.owed
        asked, bus = list[int](), max(self.wait, owed)
        for size in self.timing.biases:
            asked.append(clock.served(0, bus, size))
            bus = max(bus, asked[-1])
        return self.cycle, bus, (max(owed, asked[0]), asked[1]) if asked else (0, owed)

    def step(
        self, now: int, bus: int, needed: int, ready: tuple[int, ...], biases: tuple[int, ...], state: PassState,
        tiles: int, after: PassState,
    ) -> Ended:  # fmt: skip
        """A process step that begins now, with tiles on chip that are ready then, and the next weights when needed."""
        weights = _Weights(self.clock, needed)
        if self.timing.streams:
            return self._sums(weights, now, bus, needed, ready, biases, state, tiles, after)
        script = self._script(state, tiles, after)
        if not script.work:
            return self._idle(weights, now, bus, needed, ready, biases, state, tiles, after)
        own, _ = biases
        timing, groups, cycle = self.timing, self.timing.groups, self.cycle
        first = state.first == 0 and state.made == 0
        each = timing.asks == "each"
        share = timing.share if each and (first or timing.anew) else 0
        onward = self._onward(after)
        ask = onward if each and groups == 1 else share if groups > 1 else 0
        if timing.asks == "first" and first:
            ask = timing.following.weights
        asked = weights.ask(now, ask)
        waits = needed if each or (first and timing.asks == "first") else 0
        now, freed, begun = max(now + cycle, waits), list[int](), now
        for tile, work, leaves in script.first:
            if tile != _NONE:
                now = max(now, weights.there(own if tile == _BIASES else ready[tile]))
            freed += [now + ticks for ticks in leaves]
            now += work
        if script.adder:
            now = max(now, weights.there(own) - script.adder)
        if not each:
            asked = asked if ask else max(needed, begun)
            now, freed = self._others(now, freed, script)
        elif groups > 1:
            now, asked = self._between(groups - 2, now, asked, script.work, share)
            weights.many(groups - 2, share, asked)
            begun, there = now, asked
            asked = weights.ask(begun, onward)
            now = max(begun + cycle, there)
            freed = [now + ticks for ticks in script.freed]
            now += script.work - cycle
        bus = max(bus + weights.over, weights.end)
        return Ended(now, bus, bus, asked, 0, freed, weights.all(ready[tiles:]), weights.all(biases))

    def _onward(self, after: PassState) -> int:
        """What the last unit of a step asks for."""
        if after.first == self.stage.columns:
            return self.timing.following.weights
        return self.timing.share * self.timing.anew

    def _others(self, now: int, freed: list[int], script: Script) -> tuple[int, list[int]]:
        """The groups after the first one, if they wait for nothing: when they end, and free banks."""
        groups = self.timing.groups
        if groups == 1:
            return now, freed
        now += (groups - 2) * script.work
        return now + script.work, [now + self.cycle + ticks for ticks in script.freed]

    def _between(self, count: int, now: int, weights: int, work: int, share: int) -> tuple[int, int]:
        """The groups between the first and the last one: when they end, and the next weights are there."""
        cycle = self.cycle
        if not share:
            return (max(now + cycle, weights) + work * count - cycle, now) if count else (now, weights)
        latency, transfer = self.clock.latency(share), self.clock.transfer(share)
        once = twice = None  # how far the weights were ahead after the groups before, and when they ended
        while count:
            begun, there = now, weights
            weights = max(begun + latency, there) + transfer
            now = max(begun + cycle, there) + work - cycle
            count -= 1
            if twice and weights - now == twice[0]:  # as two groups before: what is left takes as long, two by two
                ahead = count // 2 * (now - twice[1])
                now, weights, count = now + ahead, weights + ahead, count % 2
            once, twice = (weights - now, now), once
        return now, weights

    def _idle(
        self, weights: _Weights, now: int, bus: int, needed: int, ready: tuple[int, ...], biases: tuple[int, ...],
        state: PassState, tiles: int, after: PassState,
    ) -> Ended:  # fmt: skip
        """A step that makes no column: its units ask for weights; the next one that makes some waits for them."""
        timing, first = self.timing, state.first == 0 and state.made == 0
        left, kept, sizes = [*ready[tiles:], *biases], len(ready) - tiles, list[int]()
        if timing.asks == "each":
            share = timing.share if first or timing.anew else 0
            sizes = [share] * (timing.groups - 1) + [self._onward(after)]
        elif first and timing.asks == "first":
            sizes = [timing.following.weights]
        for size in sizes:
            weights.ask(now, size)
            begin, takes = weights.last
            left = [time if self.clock.relaxed or time <= begin else time + takes for time in left]
        bus = max(bus + weights.over, weights.end)
        if first and timing.asks == "first":
            now = max(now, needed)
        return Ended(now, bus, bus, weights.end, 0, [], tuple(left[:kept]), tuple(left[kept:]))

    def _sums(
        self, weights: _Weights, now: int, bus: int, needed: int, ready: tuple[int, ...], biases: tuple[int, ...],
        state: PassState, tiles: int, after: PassState,
    ) -> Ended:  # fmt: skip
        """The units of a sum: a column each, with its streamed bytes."""
        timing, upto, number = self.timing, self.stage.units(state, 0, after.made)[0], 0
        asks, ticks, frees = (*timing.streams, timing.following.weights), timing.ticks, self._frees(state, tiles, after)
        freed, points = list[int](), list[tuple[int, int]]()
        if not state.made and not timing.streams[0]:
            needed = 0  # the weights that are under way are nobody's
        for column in range(state.made, after.made):
            asked = weights.ask(now, asks[column + 1])
            while upto[number] <= column:
                number += 1
            now = max(now + self.cycle, needed, weights.there(ready[number]))
            for free in frees:
                if free.column == ticks[column] - ticks[state.made]:
                    freed.append(now + free.late * self.cycle)
                    points.append((weights.over, weights.end))
            now += ticks[column + 1] - ticks[column] - self.cycle
            needed = asked
        served = max(bus + weights.over, weights.end)
        if freed:
            bus = max(bus + points[0][0], points[0][1])
        later = weights.later(points)
        left = weights.all(ready[tiles:])
        return Ended(now, bus if freed else served, served, needed, 0, freed, left, weights.all(biases), later)

    def _frees(self, state: PassState, tiles: int, after: PassState) -> list[_Free]:
        """Where the banks of a step become free, but for those that do with its end."""
        begin = self.place(state.first, state.made)
        return self._freed(
            state, tiles, after, self.task.staying(state), begin, self.place(after.first, after.made) - begin
        )

    # ---- scripts -----------------------------------------------------------------------------------------------

    def _script(self, state: PassState, tiles: int, after: PassState) -> Script:
        """What a step does, whenever it begins."""
        stay = self.task.staying(state)
        key = state.first, state.loaded, state.made, tiles, after.made, stay
        found = self.scripts.get(key)
        if found is None:
            self.scripts[key] = found = self._scripted(state, tiles, after, stay)
        return found

    def _scripted(self, state: PassState, tiles: int, after: PassState, stay: int) -> Script:
        """Works and waits in the order in which they come; the first cycle of a unit is not part of the first work."""
        begin, cycle = self.place(state.first, state.made), self.cycle
        work = self.place(after.first, after.made) - begin
        if not work:
            return Script((), (), 0)
        marks = [(cycle, _NONE), *sorted(self._waits(state, tiles, after, begin, work))]
        frees = self._freed(state, tiles, after, stay, begin, work)
        leaves: list[list[int]] = [[] for _ in marks]
        for offset in frees:
            at = bisect_right(marks, (offset.column + cycle, self.stage.columns)) - 1
            leaves[at].append(offset.column + cycle + offset.late * cycle - marks[at][0])
        ends = [*(offset for offset, _ in marks[1:]), work]
        parts = zip(marks, ends, leaves, strict=True)
        first = tuple((number, end - offset, tuple(free)) for (offset, number), end, free in parts)
        last = tuple(offset.column + offset.late * cycle for offset in frees)
        return Script(first, last, work, 0 if begin else max(0, self.adder - work))

    def place(self, first: int, made: int) -> int:
        """Ticks of a group up to a state; patches are made pixel by pixel."""
        patches, ticks = self.stage.patches, self.timing.ticks
        return ticks[1] // patches * first if patches else ticks[made]

    def _waits(
        self, state: PassState, tiles: int, after: PassState, begin: int, work: int
    ) -> Iterator[tuple[int, int]]:
        """After which work of the first group of a step it waits for what."""
        if not begin and self.adder <= work:
            yield self.adder, _BIASES
        yield from self._touched(state, tiles, after, begin)

    def _touched(self, state: PassState, tiles: int, after: PassState, begin: int) -> Iterator[tuple[int, int]]:
        """After which work of a step the cycle is over that reads a tile first, and the tile."""
        stage, cycle = self.stage, self.cycle
        for number in range(tiles if stage.patches else stage.tiles(state)):
            lo = state.first + number * stage.tile
            if stage.patches:
                yield self.place(lo, 0) - begin + cycle, number
                continue
            hi, at = min(state.loaded, lo + stage.tile), max(state.made, stage.complete(lo))
            for column in range(at, after.made):
                places = self.columns.touched[column]
                before = next((spent for place, spent in places if lo <= place < hi), None)
                if before is not None:
                    yield self.timing.ticks[column] - begin + before * cycle + cycle, number
                if before is not None or (places and places[0][0] >= hi):
                    break

    def _freed(self, state: PassState, tiles: int, after: PassState, stay: int, begin: int, work: int) -> list[_Free]:
        """Where the banks of a step become free, but for those that do with its end."""
        ticks, found = self.timing.ticks, list[_Free]()
        for _, end in self.stage.units(state, tiles, after.made)[1][stay:]:
            column = max(end, state.made)
            while column < len(ticks) - 1 and ticks[column + 1] == ticks[column]:
                column += 1
            offset = ticks[column] - begin
            if offset >= work:
                break
            found.append(_Free(offset, sum(one.column == offset for one in found)))
        return found
