"""Mapping latency: one inference alone on the processors of a board, from its begin to the end of its last task.

Sets, given
    as in `formulations.mapping.space`: tasks i in topological order, edges e = (i, j), processors p, time, copy,
    host; if tasks may be divided, the tasks below are their parts (`formulations.mapping.space`)
Variables
    at[i] in able[i]; an order of the tasks that no task precedes those it reads from
Derived
    d[i]     = time[i][at[i]] + sum over e = (i, j) of copy[e][at[i]][at[j]]                          (Eq. 3.7)
    start[i] = max(0, end[k] for all k that i reads, end of the task before i on its processor in the order)
    end[i]   = start[i] + d[i]                                                                   (Eq. 3.5, 3.6)
    latency  = max(1, max_i end[i])
Objective
    min latency [ticks]; or min period, min energy with a limit on it
Constraints
    (RUN), (HOST) as in `formulations.mapping.space`; limits of period and energy are those of the same assignment
Assumes
    A processor is not interrupted: a task and all copies of its result are one block, and the result is there for every
    reader at the end of the block. That is what the pipeline and its simulation do too: the sender signals once, when
    its buffers are written (3.3.6), so the order of the copies of a task does not matter. A reader whose own copy ends
    earlier waits for the others all the same: no reader is promised a result too early.
Optimal means
    No other assignment with any start times of uninterrupted blocks ends earlier: starting every block as early as the
    order of each processor allows (semi-active) never ends later, and every choice of orders without a circle is the
    restriction of one order of all tasks.

Source: `heterogeneous_mapping_and_banks` 3.3.4.1 (Eq. 3.5 to 3.7), 3.3.5.3 (minimum response times).

**Pipeline** (`pipelined`) of an assignment: when tasks run in a period, and how many results wait between them.

Given
    the assignment at[i], durations d[i] = time[i][at[i]] + the copies of its result, edges e = (i, j), the period T
Derived
    start[i]    tasks of a processor one after the other in topological order, from the beginning of the period on
    stage[i]    the fewest periods so that every operand is there: for e = (i, j)
                start[j] + T*stage[j] >= start[i] + T*stage[i] + d[i]                       (Eq. 3.5)
    latency     of one inference: max_i start[i] + T*stage[i] + d[i]
    buffers[e]  results of i that are written or not yet read to the end: ceil((end of j - start of i) / T)
In period n the processor of i works on inference n - stage[i]. Tasks of a processor fill at most its load, which is at
most T, so no two of them overlap (Eq. 3.6).

Source: `heterogeneous_mapping_and_banks` 3.3.4.1 (Fig. 3.18), 3.3.6 (buffers between processors); retiming.

**Floor**: what no assignment undercuts, without any search; for limits that pass before a bound is proven.
Example: tasks that take at least 3 and 5 ticks wherever they run, on two processors. No period is below 5, the longest
task, nor below 4, half of all work. Copies count nothing, each task is where it costs the least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formulations.mapping.search import handed_table, used, work_table
from formulations.mapping.space import Aim, Assignment, Ints, Mapping, Order, Schedule, parts


@dataclass(frozen=True)
class Pipeline:
    """Starts in the period and stages by task, results that wait by edge, and ticks from first start to last end."""

    starts: tuple[int, ...]
    stages: tuple[int, ...]
    durations: tuple[int, ...]
    buffers: tuple[int, ...]
    latency: int


def pipelined(mapping: Mapping, at: Assignment, period: int) -> Pipeline:
    """Return the pipeline of an assignment."""
    edges, free, durations = mapping.graph.edges, [0] * len(mapping.processors), busy(mapping, at)
    starts = []
    for i, p in enumerate(at):
        starts.append(free[p] % period)  # no time is left for what takes none: it begins with the next period
        free[p] += durations[i]
    stages = [0] * len(at)
    for i, j in sorted(edges, key=lambda e: e[1]):
        there = starts[i] + period * stages[i] + durations[i]
        stages[j] = max(stages[j], -(-(there - starts[j]) // period))
    begun = [start + period * stage for start, stage in zip(starts, stages, strict=True)]
    ends = [begin + duration for begin, duration in zip(begun, durations, strict=True)]
    buffers = tuple(max(1, -(-(ends[j] - begun[i]) // period)) for i, j in edges)
    return Pipeline(tuple(starts), tuple(stages), durations, buffers, max(ends))


def busy(mapping: Mapping, at: Assignment) -> tuple[int, ...]:
    """Return what every task takes, with the copies of its result."""
    durations = [mapping.times[i][p] or 0 for i, p in enumerate(at)]
    for e, (i, j) in enumerate(mapping.graph.edges):
        durations[i] += int(mapping.copies[e, at[i], at[j]])
    return tuple(durations)


@dataclass(frozen=True)
class Timetable:
    """When the tasks of one inference begin and end."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def latency(self) -> int:
        """The end of the last one."""
        return max(1, *self.ends)


def timetable(mapping: Mapping, at: Assignment, order: Order) -> Timetable:
    """Start every task of an order as early as it can."""
    durations, free = busy(mapping, at), [0] * len(mapping.processors)
    starts, ends = [0] * len(at), [0] * len(at)
    for i in order:
        starts[i] = max([free[at[i]], *(ends[k] for k in mapping.graph.before[i])])
        ends[i] = free[at[i]] = starts[i] + durations[i]
    return Timetable(tuple(starts), tuple(ends))


def once(mapping: Mapping, at: Assignment, order: Order) -> Pipeline:
    """Return the timetable of an order as a pipeline that one inference goes through: no stages, a buffer an edge."""
    made = timetable(mapping, at, order)
    buffers = (1,) * len(mapping.graph.edges)
    return Pipeline(made.starts, (0,) * len(at), busy(mapping, at), buffers, made.latency)


def critical(mapping: Mapping, at: Assignment, starts: Sequence[int]) -> list[int]:
    """Return the tasks that one inference waits for, backwards from the one that ends last."""
    durations, order = busy(mapping, at), order_by(mapping, at, starts)
    place = {i: n for n, i in enumerate(order)}
    ends = [start + d for start, d in zip(starts, durations, strict=True)]
    chain = [max(range(len(at)), key=lambda i: (ends[i], place[i]))]
    while True:
        i = chain[-1]
        before = [
            k for k in order[: place[i]] if ends[k] <= starts[i] and (at[k] == at[i] or k in mapping.graph.before[i])
        ]
        if not before:
            return chain
        chain.append(max(before, key=lambda k: (ends[k], place[k])))


def order_by(mapping: Mapping, at: Assignment, starts: Sequence[float]) -> Order:
    """Return an order of the tasks by the times at which they should begin, none before those it reads from.

    Of those that begin together the shorter one comes first: one of no length may come before another.
    """
    wishes = [(round(start, 3), d) for start, d in zip(starts, busy(mapping, at), strict=True)]
    return tuple(mapping.graph.picked(wishes.__getitem__))


def usual(mapping: Mapping, at: Assignment) -> Schedule:
    """Return an assignment with the usual order of its parts (`dispatched`)."""
    flat = parts(mapping, at)
    return Schedule(at, dispatched(flat.mapping, flat.at))


def scheduled(mapping: Mapping, at: Assignment, starts: dict[tuple[int, int], float]) -> Schedule:
    """Return an assignment with the order of its parts that follows from starts by task and processor."""
    flat = parts(mapping, at)
    keys = [(i, p) for (i, _), p in zip(flat.shares, flat.at, strict=True)]
    return Schedule(at, order_by(flat.mapping, flat.at, [starts[key] for key in keys]))


def begun(mapping: Mapping, schedule: Schedule) -> dict[tuple[int, int], int]:
    """Return the starts of parts by task and processor."""
    flat = parts(mapping, schedule.at)
    starts = timetable(flat.mapping, flat.at, schedule.order).starts
    return {(i, p): start for (i, _), p, start in zip(flat.shares, flat.at, starts, strict=True)}


def latency_of(mapping: Mapping, schedule: Schedule) -> int:
    """Return the latency of a schedule, in the usual order of its parts if it has none."""
    flat = parts(mapping, schedule.at)
    return timetable(flat.mapping, flat.at, schedule.order or dispatched(flat.mapping, flat.at)).latency


def horizon(mapping: Mapping) -> int:
    """Return a latency that no sensible plan exceeds: all tasks one after the other, where they take longest."""
    longest = sum(int(work_table(mapping, i).sum(axis=1).max()) for i in range(len(mapping.times)))
    return max(1, longest + sum(int(handed_table(mapping, e).sum(axis=2).max()) for e in range(len(mapping.copies))))


def dispatched(mapping: Mapping, at: Assignment) -> Order:
    """Return an order for an assignment: of the tasks that can begin first the one with the longest rest."""
    durations, graph, order = busy(mapping, at), mapping.graph, list[int]()
    rest = _rests(durations, graph.after)
    there, free = [0] * len(at), [0] * len(mapping.processors)
    for i in graph.picked(lambda i: (max(there[i], free[at[i]]), -rest[i])):
        order.append(i)
        free[at[i]] = end = max(there[i], free[at[i]]) + durations[i]
        for j in graph.after[i]:
            there[j] = max(there[j], end)
    return tuple(order)


def best_order(mapping: Mapping, at: Assignment, below: int, steps: int) -> tuple[Order | None, int]:
    """Search all orders of an assignment.

    Returns
    -------
    order : tuple of int or None
        The best one if its latency is less than `below`.
    steps : int
        What is left of the steps that the search may take; negative if it has ended early.
    """
    search = _Orders(mapping, at, below, steps)
    search.go(0, 0)
    return search.best, search.steps


class _Orders:
    """Depth first, over active schedules (Giffler and Thompson 1960).

    Of the tasks that may come next take the one that can end first: on its processor comes now one that can begin
    before that end, or else it could itself come before and delay nothing.
    """

    def __init__(self, mapping: Mapping, at: Assignment, below: int, steps: int) -> None:
        self.at, self.before, self.durations = at, mapping.graph.before, busy(mapping, at)
        self.shortest = mapping.shortest
        self.rest = _rests(self.durations, mapping.graph.after)
        self.left = [0] * len(mapping.processors)
        for p, d in zip(at, self.durations, strict=True):
            self.left[p] += d
        self.free, self.ends = [0] * len(mapping.processors), [-1] * len(at)
        self.below, self.steps = below, steps
        self.best: Order | None = None
        self.order: list[int] = []

    def go(self, end: int, placed: int) -> None:
        """Go on with some tasks placed, of which the last one ends at `end`."""
        self.steps -= 1
        if self.steps < 0 or any(f + w >= self.below for f, w in zip(self.free, self.left, strict=True)):
            return
        if placed == len(self.at):
            if max(self.shortest, end) < self.below:
                self.below, self.best = max(self.shortest, end), tuple(self.order)
            return
        starts = self._starts()
        if any(start + self.rest[i] >= self.below for i, start in starts.items()):
            return
        first = min(starts, key=lambda i: starts[i] + self.durations[i])
        soon, p = starts[first] + self.durations[first], self.at[first]
        for i, start in starts.items():
            if i == first or (self.at[i] == p and start < soon):
                self._place(i, start, end, placed)

    def _starts(self) -> dict[int, int]:
        """When the tasks can begin that may come next."""
        found = {}
        for i, p in enumerate(self.at):
            there = [self.ends[k] for k in self.before[i]]
            if self.ends[i] < 0 and all(t >= 0 for t in there):
                found[i] = max([self.free[p], *there])
        return found

    def _place(self, i: int, start: int, end: int, placed: int) -> None:
        p, d = self.at[i], self.durations[i]
        free = self.free[p]
        self.free[p] = self.ends[i] = start + d
        self.left[p] -= d
        self.order.append(i)
        self.go(max(end, start + d), placed + 1)
        self.order.pop()
        self.left[p] += d
        self.free[p], self.ends[i] = free, -1


def _rests(durations: Sequence[int], after: Sequence[Sequence[int]]) -> list[int]:
    """From the begin of every task to the end of the last one that waits for it, if no processor is ever taken."""
    rest = list(durations)
    for i in reversed(range(len(rest))):
        rest[i] += max((rest[j] for j in after[i]), default=0)
    return rest


def latencies(mapping: Mapping, at: Ints) -> tuple[Ints, Ints]:
    """Return lower bounds, and the latencies in topological order, of assignments of shape (number, tasks)."""
    number, processors, tasks = len(at), len(mapping.processors), at.shape[1]
    took, there = [work_table(mapping, i)[at[:, i]] for i in range(tasks)], used(mapping)
    for e, (i, j) in enumerate(mapping.graph.edges):
        took[i] = took[i] + handed_table(mapping, e)[at[:, i], at[:, j]]
    free = np.zeros((number, processors), dtype=np.int64)
    paths, ends = np.zeros((number, tasks), dtype=np.int64), np.zeros((number, tasks), dtype=np.int64)
    for i, before in enumerate(mapping.graph.before):
        begin = np.zeros(number, dtype=np.int64)
        for k in before:
            paths[:, i], begin = np.maximum(paths[:, i], paths[:, k]), np.maximum(begin, ends[:, k])
        paths[:, i] += took[i].max(axis=1)
        here = there[at[:, i]]
        free = np.where(here, np.maximum(free, begin[:, None]) + took[i], free)
        ends[:, i] = np.where(here, free, 0).max(axis=1)
    loads = np.add.reduce(took)
    least = np.maximum(np.maximum(paths.max(axis=1), loads.max(axis=1)), mapping.shortest)
    return least, np.maximum(ends.max(axis=1), mapping.shortest)


@dataclass(frozen=True)
class Block:
    """A task on a processor, for models."""

    places: tuple[int, ...]
    """Those at which it is there."""
    start: tuple[int, int]
    """Names its start: (task, processor), or (task, -1) for all blocks of a task that is whole."""
    takes: tuple[tuple[int, int], ...]
    """Places and processors whose work and copies it takes, whichever of them is chosen."""


def blocks_of(mapping: Mapping) -> dict[tuple[int, int], Block]:
    """Return the blocks by task and processor.

    The blocks of a whole task share their start, and a length that is the sum over all places: but for one it is 0.
    """
    found = {}
    for i, able in enumerate(mapping.able):
        pairs = tuple((a, p) for a in able for p, _ in mapping.places[a])
        divided = len(pairs) > len(able)
        for p in {p for _, p in pairs}:
            mine = tuple(pair for pair in pairs if pair[1] == p)
            start, takes = ((i, p), mine) if divided else ((i, -1), pairs)
            found[i, p] = Block(tuple(a for a, _ in mine), start, takes)
    return found


def unrelated(mapping: Mapping) -> list[tuple[int, int]]:
    """Return the pairs of tasks of which neither has to wait for the other."""
    number = len(mapping.times)
    later = [0] * number  # bit j of later[i]: task j waits for task i
    for i, j in sorted(mapping.graph.edges, reverse=True):
        later[i] |= later[j] | 1 << j
    return [(i, j) for i in range(number) for j in range(i + 1, number) if not later[i] >> j & 1]


def floor(mapping: Mapping, aim: Aim) -> int:
    """Return a bound on the period or the latency in ticks, or on the energy in fJ."""
    ways = [[mapping.work(i, a) for a in able] for i, able in enumerate(mapping.able)]
    if aim == "energy":
        return sum(min(sum(mapping.watts[p] * t for p, t in way) for way in of) for of in ways)
    least, ends = [min(max(t for _, t in way) for way in of) for of in ways], list[int]()
    if aim == "latency":  # the longest chain of tasks, each where it is fastest
        for i, took in enumerate(least):
            ends.append(took + max((ends[k] for k in mapping.graph.before[i]), default=0))
        return max(1, *ends)
    work = sum(min(sum(t for _, t in way) for way in of) for of in ways)
    return max(1, *least, -(-work // len(mapping.processors)))
