"""Mapping of several applications: each runs once a period, on processors that they share.

Sets
    applications a = 0, 1, ... by priority, the highest first; tasks i of a; processors p
Given
    period P[a], deadline D[a] <= P[a], ticks; times and copies of `formulations.mapping.space`; any release offsets
Variables
    at[i]   the processor of task i
    i -> j  the order of tasks of one application on one processor, where precedence leaves it open
Derived
    d[i]    ticks of task i with the copies of its result, which follow it at once; it is not interrupted
    W[a][p] sum of d[i] over the tasks of a at p
    B[a][p] max of d[j] over the tasks at p of lower priority: what may have begun just before; 0 for the lowest
    ASAP[i] TAIL[i] longest paths through the tasks of a, by precedence and order, to the begin of i and from there on
    R[a]    response: from release to the last result, by one of two rules
Rule `safe`
    Whenever an inference is not computing along the path of tasks that each waited for the one before, it waits for one
    processor: for a task of lower priority that was there when the path came to the processor, at most B, or for tasks
    of higher priority. In any time R[a] + R[h] there are at most ceil((R[a] + R[h]) / P[h]) releases of h whose
    inferences reach into a window of R[a] (one of them carried in). So
        L'[a] = longest path with B[a][p] added wherever the path comes to a processor p
        R[a]  = L'[a] + sum over h < a of ceil((R[a] + R[h]) / P[h]) * sum of W[h][p] over the p that a runs on
    No inference is late as long as none was before, so the R of all hold together.
Rule `printed`
    Eq. 3.11: MAI[i] - sum over h of dbf(h, P[a]) - B >= 0 for every task, MAI[i] = ALAP[i] - ASAP[i] by the deadline,
    dbf(h, t) = floor(t / P[h]) * W[h][at[i]]. The least deadline that it holds for is
        R[a] = max over i of ASAP[i] + TAIL[i] + B[a][at[i]] + sum over h < a of floor(P[a] / P[h]) * W[h][at[i]]
    Every task alone has its slack, and inferences carried in are not counted: it may call schedulable what is not.
Objectives
    min R[a] of one application, min sum of all R, min energy of one inference of each [fJ]
Constraints
    (RUN), (HOST) of `formulations.mapping.space`; (DEADLINE) R[a] <= D[a] for all a
Optimal means
    No other assignment and order that the rule accepts has a smaller objective.

Source: `heterogeneous_mapping_and_banks` 3.3.5.1, Eq. 3.10, 3.11 (non-preemptive); the safe rule is ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Literal

from formulations.mapping.latency import busy, unrelated
from formulations.mapping.space import Assignment, Mapping, Schedule

Rule = Literal["safe", "printed"]


@dataclass(frozen=True)
class Stream:
    """One application: its tasks in the graph of all, ticks from release to release, and until it has to end."""

    name: str
    tasks: range
    period: int
    deadline: int


@dataclass(frozen=True)
class Goal:
    """What is minimised: the responses of some applications together, or energy if there are none."""

    streams: tuple[int, ...]


@dataclass(frozen=True)
class Several:
    """Applications on one configuration of a board, the highest priority first."""

    mapping: Mapping
    streams: tuple[Stream, ...]
    rule: Rule = "safe"

    @cached_property
    def loose(self) -> tuple[tuple[int, int], ...]:
        """Pairs of tasks of one application that precedence leaves in either order, if a processor can run both."""
        able = [set(few) for few in self.mapping.able]
        owner = {i: a for a, stream in enumerate(self.streams) for i in stream.tasks}
        pairs = unrelated(self.mapping)
        return tuple((i, j) for i, j in pairs if owner[i] == owner[j] and able[i] & able[j])

    @cached_property
    def heads(self) -> tuple[dict[int, int], ...]:
        """By task and processor ticks that its begin takes at least: the longest of the shortest paths to it."""
        mapping, found = self.mapping, list[dict[int, int]]()
        into: list[list[tuple[int, int]]] = [[] for _ in mapping.times]
        for e, (i, j) in enumerate(mapping.graph.edges):
            into[j].append((e, i))
        for j, able in enumerate(mapping.able):
            ways = {p: [min(found[i][q] + self._ticks(e, i, q, p) for q in found[i]) for e, i in into[j]] for p in able}
            found.append({p: max(few, default=0) for p, few in ways.items()})
        return tuple(found)

    @cached_property
    def tails(self) -> tuple[dict[int, int], ...]:
        """By task and processor ticks from its begin to the end at least."""
        mapping, found = self.mapping, dict[int, dict[int, int]]()
        out: list[list[tuple[int, int]]] = [[] for _ in mapping.times]
        for e, (i, j) in enumerate(mapping.graph.edges):
            out[i].append((e, j))
        for i in reversed(range(len(out))):
            ways = {
                p: [min(self._ticks(e, i, p, q) + tail for q, tail in found[j].items()) for e, j in out[i]]
                for p in mapping.able[i]
            }
            found[i] = {p: max(few, default=mapping.times[i][p] or 0) for p, few in ways.items()}
        return tuple(found[i] for i in range(len(out)))

    def _ticks(self, e: int, i: int, p: int, q: int) -> int:
        """Ticks of a task at p and of one copy of its result."""
        return (self.mapping.times[i][p] or 0) + int(self.mapping.copies[e, p, q])

    def unit(self, goal: Goal) -> int:
        """What every value of an objective is a multiple of."""
        return 1 if goal.streams else self.mapping.energy_unit

    def plain(self, at: Assignment) -> Schedule:
        """An assignment with the tasks in the order of the graph."""
        return Schedule(at, tuple(range(len(at))))

    @cached_property
    def paths(self) -> tuple[int, ...]:
        """What an application takes alone at least: the longest of the shortest paths through it."""
        heads, tails = self.heads, self.tails
        return tuple(max(min(heads[i][p] + tails[i][p] for p in heads[i]) for i in s.tasks) for s in self.streams)

    def kept(self, schedule: Schedule) -> tuple[int, ...] | None:
        """The responses, None if a deadline is missed."""
        found = zip(responses(self, schedule), self.streams, strict=True)
        kept = tuple(r for r, stream in found if r is not None and r <= stream.deadline)
        return kept if len(kept) == len(self.streams) else None

    def figure(self, schedule: Schedule, goal: Goal, kept: Sequence[int]) -> int:
        """The objective of a schedule with its responses."""
        return sum(kept[a] for a in goal.streams) if goal.streams else self.mapping.price(schedule.at).energy


def floor(several: Several, goal: Goal) -> int:
    """Return what no schedule undercuts: every path alone where it is shortest, or every task where it takes least."""
    if goal.streams:
        return sum(several.paths[a] for a in goal.streams)
    mapping = several.mapping
    return sum(min(mapping.watts[p] * (mapping.times[i][p] or 0) for p in able) for i, able in enumerate(mapping.able))


class _Paths:
    """Longest paths of one schedule."""

    def __init__(self, several: Several, schedule: Schedule) -> None:
        mapping, at = several.mapping, schedule.at
        self.at, self.durations = at, busy(mapping, at)
        number = len(mapping.processors)
        self.loads = [[0] * number for _ in several.streams]
        self.before: list[list[int]] = [list(few) for few in mapping.graph.before]
        self.blocks = [[0] * number for _ in several.streams]
        longest, last = [0] * number, dict[tuple[int, int], int]()
        owner = {i: a for a, stream in enumerate(several.streams) for i in stream.tasks}
        for i in schedule.order:
            a, p = owner[i], at[i]
            self.loads[a][p] += self.durations[i]
            if (a, p) in last:
                self.before[i].append(last[a, p])
            last[a, p] = i
        for a in reversed(range(len(several.streams))):
            self.blocks[a] = list(longest)
            for i in several.streams[a].tasks:
                longest[at[i]] = max(longest[at[i]], self.durations[i])

    def longest(self, order: Sequence[int], entry: Sequence[int]) -> dict[int, int]:
        """By task the latest begin, if coming to a processor takes `entry` more."""
        begins: dict[int, int] = {}
        for i in order:
            extra = entry[self.at[i]]
            begins[i] = max(
                (begins[k] + self.durations[k] + (extra if self.at[k] != self.at[i] else 0) for k in self.before[i]),
                default=extra,
            )
        return begins


def begins(several: Several, schedule: Schedule) -> dict[int, int]:
    """Return by task when it begins after its release, if no other application is there."""
    return _Paths(several, schedule).longest(schedule.order, [0] * len(several.mapping.processors))


def responses(several: Several, schedule: Schedule) -> tuple[int | None, ...]:
    """Return the response of every application in ticks; None if it is above the period, or one before it is.

    The least that the rule of `several` allows for.
    """
    paths, found = _Paths(several, schedule), list[int | None]()
    for a, stream in enumerate(several.streams):
        order = [i for i in schedule.order if i in stream.tasks]
        one = _safe(several, paths, a, order, found) if several.rule == "safe" else _printed(several, paths, a, order)
        found.append(one if one is not None and one <= stream.period else None)
    return tuple(found)


def _safe(several: Several, paths: _Paths, a: int, order: Sequence[int], before: Sequence[int | None]) -> int | None:
    begins = paths.longest(order, paths.blocks[a])
    alone = max(begins[i] + paths.durations[i] for i in order)
    used = {paths.at[i] for i in order}
    demands = [sum(paths.loads[h][p] for p in used) for h in range(a)]
    now, response = -1, alone
    while now < response <= several.streams[a].period:
        now, response = response, alone
        for h, (earlier, demand) in enumerate(zip(before, demands, strict=True)):
            if earlier is None:
                return None
            response += -(-(now + earlier) // several.streams[h].period) * demand
    return response


def _printed(several: Several, paths: _Paths, a: int, order: Sequence[int]) -> int:
    begins, period = paths.longest(order, [0] * len(paths.blocks[a])), several.streams[a].period
    tails: dict[int, int] = {}
    for i in reversed(order):
        tails[i] = tails.get(i, 0) + paths.durations[i]
        for k in paths.before[i]:
            tails[k] = max(tails.get(k, 0), tails[i])
    interference = [
        block + sum(period // several.streams[h].period * paths.loads[h][p] for h in range(a))
        for p, block in enumerate(paths.blocks[a])
    ]
    return max(begins[i] + tails[i] + interference[paths.at[i]] for i in order)


def orders(several: Several, at: Assignment) -> Iterator[Schedule]:
    """All schedules of an assignment: every order of the loose pairs on one processor."""
    pairs = [(i, j) for i, j in several.loose if at[i] == at[j]]
    for turned in product((False, True), repeat=len(pairs)):
        edges = ((j, i) if turn else (i, j) for (i, j), turn in zip(pairs, turned, strict=True))
        graph = replace(several.mapping.graph, edges=(*several.mapping.graph.edges, *edges))
        order = tuple(graph.picked(lambda _: 0))
        if len(order) == len(at):  # else some wait in a circle
            yield Schedule(at, order)


def answers(several: Several) -> Iterator[Schedule]:
    """All schedules of all assignments: the reference on tiny instances."""
    for at in product(*several.mapping.able):
        yield from orders(several, at)
