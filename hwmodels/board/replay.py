"""Referee for mappings of one network or several: inferences go through the processors, event by event.

**One network** (`replay_mapping`). Every processor repeats its list of tasks; an entry (task, stage) works on the
inference that came `stage` rounds ago. A task begins when its processor is free, its operands are there, a buffer is
free for its result on every edge, and, if none comes before it, its inference has been released: one a period. It then
computes, and copies its result to the processors that read it. Nothing is taken from the formulation: not the loads,
not the starts. One inference alone runs in the same way.

Source: `heterogeneous_mapping_and_banks` Eq. 3.9 (the rate of many iterations), 3.3.6 (double buffering, waiting).

**Several applications** (`Referee`): releases at given offsets, processors that take what is ready by priority.
A task is ready when its operands are there and the task before it in its application's list for the processor has
ended; its processor takes, whenever it is free, the ready task of the highest priority, the oldest inference first, and
runs it with the copies of its result without interruption. Nothing is taken from the formulation but the lists.

Source: `heterogeneous_mapping_and_banks` 3.3.5.1 (non-preemptive, relative offsets unknown).
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Seen:
    """What the simulation saw."""

    faults: tuple[str, ...]
    period: int
    """Ticks between releases that the processors kept up with: 0 if they did not."""
    latency: int
    """The most ticks from release to the end of an inference."""
    busy: tuple[int, ...]
    """Ticks of one inference by processor."""


def replay_mapping(
    edges: Sequence[tuple[int, int]], times: Sequence[Sequence[int | None]],
    copies: Mapping[tuple[int, int, int], int], lists: Sequence[Sequence[tuple[int, int]]], buffers: Sequence[int],
    period: int,
) -> Seen:  # fmt: skip
    """Run a mapping.

    Parameters
    ----------
    times : by task and processor, None where a task cannot run
    copies : ticks by (edge, processor before, processor after)
    lists : by processor the tasks in order, each with its stage
    buffers : by edge
    period : ticks; 0 for one inference alone, whose latency is the period then: the next one may come
    """
    faults = _misplaced(times, lists)
    if faults:
        return Seen(tuple(faults), 0, 0, ())
    # Enough to fill the pipeline, and to see in its second half whether the first one has kept up.
    number = 40 + 4 * max(stage for few in lists for _, stage in few) if period else 1
    return _Run(edges, times, copies, lists, buffers, period, number).seen()


def _misplaced(times: Sequence[Sequence[int | None]], lists: Sequence[Sequence[tuple[int, int]]]) -> list[str]:
    faults, tasks, placed = [], len(times), [i for few in lists for i, _ in few]
    if sorted(placed) != list(range(tasks)):
        faults.append(f"tasks: {tasks} have to be in the lists once each, {len(placed)} are")
    for p, few in enumerate(lists):
        faults += [f"task {i}: processor {p} cannot run it" for i, _ in few if i < tasks and times[i][p] is None]
    return faults


class _Run:
    """The simulation: a processor goes on as soon as it may, until none can."""

    def __init__(
        self, edges: Sequence[tuple[int, int]], times: Sequence[Sequence[int | None]],
        copies: Mapping[tuple[int, int, int], int], lists: Sequence[Sequence[tuple[int, int]]],
        buffers: Sequence[int], period: int, inferences: int,
    ) -> None:  # fmt: skip
        self.lists, self.buffers, self.period, self.number = lists, buffers, period, inferences
        at = {i: p for p, few in enumerate(lists) for i, _ in few}
        self.into: list[list[tuple[int, int]]] = [[] for _ in at]
        self.out: list[list[tuple[int, int]]] = [[] for _ in at]
        self.ticks = [times[i][at[i]] or 0 for i in range(len(at))]
        for e, (i, j) in enumerate(edges):
            self.into[j].append((e, i))
            self.out[i].append((e, j))
            if at[i] != at[j]:
                self.ticks[i] += copies[e, at[i], at[j]]
        #: When task i ended with each inference; where every processor is in its list, and since when it is free.
        self.ends: list[list[int]] = [[] for _ in at]
        self.place, self.free, self.busy = [0] * len(lists), [0] * len(lists), [0] * len(lists)
        moved = True
        while moved:
            moved = False
            for p in range(len(self.lists)):
                while self._step(p):
                    moved = True

    def _step(self, p: int) -> bool:
        """One task, if what it waits for is known to come."""
        few = self.lists[p]
        turn, entry = divmod(self.place[p], len(few)) if few else (0, 0)
        if not few or turn >= self.number + max(stage for _, stage in few):
            return False
        i, stage = few[entry]
        inference = turn - stage
        if not 0 <= inference < self.number:
            self.place[p] += 1
            return True
        begin = self._begin(p, i, inference)
        if begin is None:
            return False
        self.free[p] = begin + self.ticks[i]
        self.busy[p] += self.ticks[i]
        self.ends[i].append(self.free[p])
        self.place[p] += 1
        return True

    def _begin(self, p: int, i: int, inference: int) -> int | None:
        waits = [self.free[p]] if self.into[i] else [self.free[p], inference * self.period]
        for _, before in self.into[i]:
            if len(self.ends[before]) <= inference:
                return None
            waits.append(self.ends[before][inference])
        for e, after in self.out[i]:
            old = inference - self.buffers[e]
            if old < 0:
                continue
            if len(self.ends[after]) <= old:
                return None
            waits.append(self.ends[after][old])
        return max(waits)

    def seen(self) -> Seen:
        stuck = [i for i, ends in enumerate(self.ends) if len(ends) < self.number]
        if stuck:
            after = f" after {len(self.ends[stuck[0]])} inferences" if self.period else ""
            return Seen((f"task {stuck[0]} waits forever{after}",), 0, 0, ())
        last = [max(ends[n] for ends in self.ends) for n in range(self.number)]
        latencies = [end - n * self.period for n, end in enumerate(last)]
        half, busy = self.number // 2, tuple(ticks // self.number for ticks in self.busy)
        if not self.period:
            return Seen((), latencies[0], latencies[0], busy)
        kept = max(latencies[half:]) <= max(latencies[:half]) and max(busy) <= self.period
        faults = () if kept else (f"the processors fall behind releases every {self.period} ticks",)
        return Seen(faults, self.period if kept else 0, max(latencies), busy)


@dataclass(frozen=True)
class Repeated:
    """An application: by processor its tasks in order, and ticks between releases."""

    lists: tuple[tuple[int, ...], ...]
    period: int


class Referee:
    """Simulates one plan for many offsets.

    Parameters
    ----------
    edges : pairs of tasks
    times : by task and processor, None where a task cannot run
    copies : ticks by (edge, processor before, processor after)
    streams : by priority, the highest first

    Raises
    ------
    ValueError
        If a task is in no list or two, or a processor cannot run what its list has.
    """

    def __init__(
        self, edges: Sequence[tuple[int, int]], times: Sequence[Sequence[int | None]],
        copies: Mapping[tuple[int, int, int], int], streams: Sequence[Repeated],
    ) -> None:  # fmt: skip
        self.streams, self.number = streams, len(streams[0].lists)
        at = {i: p for stream in streams for p, few in enumerate(stream.lists) for i in few}
        if sorted(i for s in streams for few in s.lists for i in few) != list(range(len(times))):
            raise ValueError(f"the lists hold {len(at)} tasks, or some twice; there are {len(times)}")
        self.at, self.ticks = [at[i] for i in range(len(times))], [0] * len(times)
        for i, p in at.items():
            time = times[i][p]
            if time is None:
                raise ValueError(f"task {i}: processor {p} cannot run it")
            self.ticks[i] = time
        self.after: list[list[int]] = [[] for _ in times]
        self.needs = [0] * len(times)
        for e, (i, j) in enumerate(edges):
            self._follows(i, j)
            if at[i] != at[j]:
                self.ticks[i] += copies[e, at[i], at[j]]
        for stream in streams:
            for few in stream.lists:
                for i, j in pairwise(few):
                    self._follows(i, j)
        self.tasks = [sorted(i for few in stream.lists for i in few) for stream in streams]

    def _follows(self, i: int, j: int) -> None:
        self.after[i].append(j)
        self.needs[j] += 1

    def run(self, offsets: Sequence[int], until: int) -> list[int]:
        """Return the longest response of every application over all inferences released before a time.

        An application whose inference is never done has twice the time from its offset on.
        """
        events: list[tuple[int, int, int, int]] = []
        for a, (stream, offset) in enumerate(zip(self.streams, offsets, strict=True)):
            events += [(t, 0, a, t) for t in range(offset, until, stream.period)]
        heapq.heapify(events)
        ready: list[list[tuple[int, int, int]]] = [[] for _ in range(self.number)]
        free = [True] * self.number
        open_: dict[tuple[int, int], list[int]] = {}
        worst = [0] * len(self.streams)
        while events:
            now, touched = events[0][0], set[int]()
            while events and events[0][0] == now:
                _, kind, first, released = heapq.heappop(events)
                if kind == 0:
                    self._release(first, released, open_, ready, touched)
                else:
                    free[self.at[first]] = True
                    touched.add(self.at[first])
                    self._end(first, kind - 1, released, now, open_, ready, touched, worst)
            for p in touched:
                if free[p] and ready[p]:
                    a, released, i = heapq.heappop(ready[p])
                    free[p] = False
                    heapq.heappush(events, (now + self.ticks[i], a + 1, i, released))
        for a, released in open_:
            worst[a] = max(worst[a], 2 * until - released)
        return worst

    def _release(
        self, a: int, released: int, open_: dict[tuple[int, int], list[int]], ready: list[list[tuple[int, int, int]]],
        touched: set[int],
    ) -> None:  # fmt: skip
        open_[a, released] = [*self.needs, len(self.tasks[a])]
        for i in self.tasks[a]:
            if not self.needs[i]:
                heapq.heappush(ready[self.at[i]], (a, released, i))
                touched.add(self.at[i])

    def _end(
        self, i: int, a: int, released: int, now: int, open_: dict[tuple[int, int], list[int]],
        ready: list[list[tuple[int, int, int]]], touched: set[int], worst: list[int],
    ) -> None:  # fmt: skip
        needs = open_[a, released]
        for j in self.after[i]:
            needs[j] -= 1
            if not needs[j]:
                heapq.heappush(ready[self.at[j]], (a, released, j))
                touched.add(self.at[j])
        needs[-1] -= 1
        if not needs[-1]:
            del open_[a, released]
            worst[a] = max(worst[a], now - released)

    def hunt(self, draws: int, seed: int = 0) -> list[int]:
        """Return the longest responses seen over random offsets, each for three of the longest periods.

        Every other draw lets the applications of higher priority, or lower, arrive while one of them is on its way.
        """
        rng, worst = random.Random(seed), [0] * len(self.streams)
        longest = max(stream.period for stream in self.streams)
        for draw in range(draws):
            offsets = [rng.randrange(stream.period) for stream in self.streams]
            if draw % 2:
                base = rng.choice(offsets)
                near = [self.ticks[rng.choice(few)] for few in self.tasks]
                offsets = [
                    (base + rng.randrange(-ticks, ticks + 1)) % stream.period
                    for ticks, stream in zip(near, self.streams, strict=True)
                ]
            seen = self.run(offsets, 3 * longest)
            worst = [max(a, b) for a, b in zip(worst, seen, strict=True)]
        return worst
