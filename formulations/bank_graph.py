"""F6 banks as a graph: all states of a network, the ways between them, and what no way to the end undercuts.

Sets
    states of `formulations.bank_network`, numbered so that every way leads to a higher number; arcs: pairs of states
    that a stage joins
Given
    for every arc the undominated costs of the programs on it: bytes, and ticks if nothing is waited for at the start
    (0 if only bytes count)
Variables
    for every state the least ``p*bytes + q*ticks`` to the end
Optimal means
    Shortest paths in an acyclic graph. Bytes are exact; ticks are a lower bound, because the wait for the first weights
    of a stage and the weights of the next one on the bus only add to them.

Source: shortest paths over the states of `formulations.bank_network`; the bounds are ours.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from formulations.bank_network import BankPlan, State, Walk
from formulations.bank_times import Times
from instances.errors import InputError
from instances.feature_maps import Stages
from instances.machine import Banks

__all__ = ["NEVER", "Graph", "OutOfTime", "Point", "lowest", "optimum"]

#: More than any cost.
NEVER = 2**200


class OutOfTime(Exception):
    """The time limit has passed."""


class Point(NamedTuple):
    """What a plan or a part of it costs."""

    bytes: int
    ticks: int


def lowest(points: Iterable[Point]) -> list[Point]:
    """Those that no other beats, by bytes."""
    found: list[Point] = []
    for point in sorted(points):
        if not found or point.ticks < found[-1].ticks:
            found.append(point)
    return found


class Graph:
    """All states and arcs.

    Parameters
    ----------
    times : Times, optional
        What stages take; without it ticks are 0.
    timed : bool
        False for cheap bounds on ticks: what the stages to come compute.
    until : float, optional
        When to give up, on `time.monotonic`.

    Raises
    ------
    OutOfTime
    """

    def __init__(
        self, walk: Walk, times: Times | None = None, until: float | None = None, *, timed: bool = True
    ) -> None:
        self.walk, self.times, self.until = walk, times if timed else None, until
        self.arcs: list[list[tuple[int, tuple[Point, ...]]]] = []
        self.number: dict[State, int] = {State(): 0}
        self._explore()
        self.bytes, self.ticks = self.least(1, 0), self.least(0, 1)
        if times is not None and not timed:
            clock = times.clock
            alone = [stage.cycles * clock.cycle + clock.fixed for stage in walk.stages]
            left = {
                done: sum(t for at, t in enumerate(alone) if not done >> at & 1)
                for done in {s.done for s in self.number}
            }
            self.ticks = [left[state.done] for state in self.number]
        self.sums: dict[tuple[int, int], list[int]] = {}

    def add(self, p: int, q: int) -> None:
        """Bound ``p*bytes + q*ticks`` too."""
        self.sums[p, q] = self.least(p, q)

    def least(self, p: int, q: int) -> list[int]:
        """The least ``p*bytes + q*ticks`` from every state to the end; `NEVER` where there is no way."""
        found = [NEVER] * len(self.number)
        for state, at in reversed(self.number.items()):
            if state.done == self.walk.all:
                found[at] = 0
                continue
            for onward, points in self.arcs[at]:
                cost = found[onward] + p * points[0].bytes + q * points[0].ticks
                for point in points[1:]:
                    cost = min(cost, found[onward] + p * point.bytes + q * point.ticks)
                if cost < found[at]:
                    found[at] = cost
        return found

    def stuck(self) -> str:
        """The stage that no way gets past, if there is no way to the end."""
        furthest = max((s for s in self.number if s.done != self.walk.all), key=lambda s: s.done.bit_count())
        return self.walk.stages[self.walk.next(furthest)[0]].name

    def follow(self, chosen: Mapping[int, int]) -> BankPlan:
        """The plan with the fewest bytes along some arcs from the first state on."""
        states, at = list(self.number), 0
        steps = []
        while at in chosen:
            onward = chosen[at]
            ways = [way for way in self.walk.visits(states[at]) if way[0].after(way[1], way[2]) == states[onward]]
            visit, direction, task, program = min(ways, key=lambda way: way[0].bytes(way[2], way[3]))
            steps.append(self.walk.step(states[at], visit.at, visit.source, direction, task, program))
            at = onward
        return BankPlan(tuple(steps))

    def _explore(self) -> None:
        same: dict[tuple[Point, ...], tuple[Point, ...]] = {}
        layer = [State()]
        while layer:
            following: list[State] = []
            for state in layer:
                if self.until is not None and time.monotonic() > self.until:
                    raise OutOfTime
                ways: dict[int, list[Point]] = {}
                for visit, direction, task, program in self.walk.visits(state):
                    after = visit.after(direction, task)
                    onward = self.number.get(after)
                    if onward is None:
                        self.number[after] = onward = len(self.number)
                        following.append(after)
                    points = ways.setdefault(onward, [])
                    if self.times is None:
                        points.append(Point(visit.bytes(task, program), 0))
                        continue
                    for one in self.times.programs(visit, direction, task, following=0, wait=0):
                        points.append(Point(visit.bytes(task, one.program), one.ticks))
                arcs = [(at, tuple(lowest(points) if len(points) > 1 else points)) for at, points in ways.items()]
                self.arcs.append([(at, same.setdefault(few, few)) for at, few in arcs])
            layer = following


def optimum(found: Stages, banks: Banks, *, waiting: bool = True) -> BankPlan:
    """Return a plan with the fewest bytes, whatever its time.

    Parameters
    ----------
    waiting : bool
        Whether results may wait on chip for a stage that does not read them from the banks, as second operands of sums
        do; the published compiler streams those from DRAM.

    Raises
    ------
    InputError
        If a stage has no program in these banks.
    """
    graph = Graph(Walk(found, banks, waiting=waiting))
    least, at = graph.bytes, 0
    if least[0] == NEVER:
        raise InputError(f"stage {graph.stuck()}: no program fits in {banks.count} banks of {banks.bank_bytes} bytes")
    chosen: dict[int, int] = {}
    while graph.arcs[at]:
        chosen[at] = next(on for on, points in graph.arcs[at] if points[0].bytes + least[on] == least[at])
        at = chosen[at]
    return graph.follow(chosen)
