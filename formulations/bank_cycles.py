"""F6 banks, inside one stage: what programs cost in time, cycle by cycle, where weights overtake loads.

The clock is that of the published simulator: `hwmodels.replay_bank_cycles` states it, and counts it on its own. A unit
asks for the weights of the next one when it begins, and waits for its own when its first cycle is over; for a tile when
the cycle is over that reads it first. A load for which no bank is awaited takes a cycle of the element.

`ready` of a label is when a tile is there if all weights asked for since delay it. Unless they do, it is there when the
last of them are, and so before anything that waited for them: the two differ only by the weights that were asked for
last. Those delay a load if it is not over when they begin, ``ready > s``; here times are no sums and maxima, and an
earlier request may delay more (`Clock.relaxed` leaves this delay out).

Source: the public MIDAP simulator of 2020-09-02; `heterogeneous_mapping_and_banks` 4.1.2.1 (Eq. 4.1, 4.2).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from formulations.bank_tasks import Task
from formulations.bank_timing import Script, Timing
from hwmodels.bank_clock import Clock
from hwmodels.bank_steps import State

__all__ = ["ByCycle", "Ended"]


class Ended(NamedTuple):
    """How a process step ends, as a label has it.

    `served`: when all is but what the last unit asks for; `ready`: when the tiles are there that it does not consume.
    """

    now: int
    bus: int
    served: int
    weights: int
    pending: int
    freed: list[int]
    ready: tuple[int, ...]


class _Free(NamedTuple):
    """A bank becomes free when the first cycle of a column is over; the loads of the same column come a cycle apart.

    `column`: ticks of the step's work ahead of it. `late`: the loads ahead of this one.
    """

    column: int
    late: int


class _Weights:
    """Weights that overtake the loads under way during a step.

    Attributes
    ----------
    end, over : int
        When the last weights are there; by how much those asked for so far delay a load.
    """

    def __init__(self, clock: Clock, end: int) -> None:
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

    def many(self, count: int, size: int, end: int) -> None:
        """So many have been asked for, the last ones are there at `end`; all were waited for."""
        if size and count:
            self.end, self.over, self.last = end, self.over + self.clock.transfer(size) * count, (0, 0)

    def there(self, ready: int) -> int:
        """When a tile is there for what waits for it now."""
        begin, takes = self.last
        ready += self.over - takes
        return ready if self.clock.relaxed or ready <= begin else ready + takes


class ByCycle:
    """The units of the process steps of one stage."""

    def __init__(self, task: Task, timing: Timing, wait: int) -> None:
        self.task, self.timing, self.wait = task, timing, wait
        self.clock, self.stage = timing.clock, task.stage
        self.cycle = self.clock.cycle
        assert timing.columns is not None
        self.columns = timing.columns
        self.scripts = timing.scripts.setdefault(task.stage, {})

    def begun(self) -> tuple[int, int]:
        """When the first load may be asked for; when the bus is free: biases are asked for at once."""
        bus = self.wait
        for size in self.timing.biases:
            bus = self.clock.served(0, bus, size) if size else bus
        return self.cycle, bus

    def step(
        self, now: int, bus: int, needed: int, ready: tuple[int, ...], state: State, tiles: int, after: State
    ) -> Ended:
        """A process step that begins now, with tiles on chip that are ready then, and the next weights when needed."""
        weights = _Weights(self.clock, needed)
        if self.timing.streams:
            return self._sums(weights, now, bus, needed, ready, state, tiles, after)
        script = self._script(state, tiles, after)
        if not script.work:
            return self._idle(weights, now, bus, needed, ready, state, tiles, after)
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
            if tile >= 0:
                now = max(now, weights.there(ready[tile]))
            freed += [now + ticks for ticks in leaves]
            now += work
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
        left = tuple([weights.there(time) for time in ready[tiles:]])
        bus = max(bus + weights.over, weights.end)
        return Ended(now, bus, bus, asked, 0, freed, left)

    def _onward(self, after: State) -> int:
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
        self, weights: _Weights, now: int, bus: int, needed: int, ready: tuple[int, ...], state: State, tiles: int,
        after: State,
    ) -> Ended:  # fmt: skip
        """A step that makes no column: its units ask for weights; the next one that makes some waits for them."""
        timing, first = self.timing, state.first == 0 and state.made == 0
        left, sizes = list(ready[tiles:]), list[int]()
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
        return Ended(now, bus, bus, weights.end, 0, [], tuple(left))

    def _sums(
        self, weights: _Weights, now: int, bus: int, needed: int, ready: tuple[int, ...], state: State, tiles: int,
        after: State,
    ) -> Ended:  # fmt: skip
        """The units of a sum: a column each, with its streamed bytes."""
        timing, upto, number = self.timing, self.stage.units(state, 0, after.made)[0], 0
        asks, ticks = (*timing.streams, timing.following.weights), timing.ticks
        for column in range(state.made, after.made):
            asked = weights.ask(now, asks[column + 1])
            while upto[number] <= column:
                number += 1
            now = max(now + self.cycle, needed, weights.there(ready[number]))
            now += ticks[column + 1] - ticks[column] - self.cycle
            needed = asked
        left = tuple([weights.there(time) for time in ready[tiles:]])
        bus = max(bus + weights.over, weights.end)
        return Ended(now, bus, bus, needed, 0, [], left)

    # ---- scripts -----------------------------------------------------------------------------------------------

    def _script(self, state: State, tiles: int, after: State) -> Script:
        """What a step does, whenever it begins."""
        retain, tile = self.task.retain, self.stage.tile
        stay = retain - min(retain, -(-state.first // tile)) if retain else 0
        key = state.first, state.loaded, state.made, tiles, after.made, stay
        found = self.scripts.get(key)
        if found is None:
            self.scripts[key] = found = self._scripted(state, tiles, after, stay)
        return found

    def _scripted(self, state: State, tiles: int, after: State, stay: int) -> Script:
        """Works and waits in the order in which they come; the first cycle of a unit is not part of the first work."""
        begin, cycle = self.place(state.first, state.made), self.cycle
        work = self.place(after.first, after.made) - begin
        if not work:
            return Script((), (), 0)
        marks = [(cycle, -1), *sorted(self._touched(state, tiles, after, begin))]
        frees = self._freed(state, tiles, after, stay, begin, work)
        leaves: list[list[int]] = [[] for _ in marks]
        for offset in frees:
            at = bisect_right(marks, (offset.column + cycle, self.stage.columns)) - 1
            leaves[at].append(offset.column + cycle + offset.late * cycle - marks[at][0])
        ends = [*(offset for offset, _ in marks[1:]), work]
        parts = zip(marks, ends, leaves, strict=True)
        first = tuple((number, end - offset, tuple(free)) for (offset, number), end, free in parts)
        return Script(first, tuple(offset.column + offset.late * cycle for offset in frees), work)

    def place(self, first: int, made: int) -> int:
        """Ticks of a group up to a state; patches are made pixel by pixel."""
        patches, ticks = self.stage.patches, self.timing.ticks
        return ticks[1] // patches * first if patches else ticks[made]

    def _touched(self, state: State, tiles: int, after: State, begin: int) -> Iterator[tuple[int, int]]:
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

    def _freed(self, state: State, tiles: int, after: State, stay: int, begin: int, work: int) -> list[_Free]:
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
