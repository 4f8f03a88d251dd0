"""F6 banks in time: the fewest bytes, the fewest ticks, or the exact front of both over a whole network.

Sets
    states of `formulations.bank_network`, with the bytes of the first weights of the stage that comes next; labels of a
    state: bytes, ticks and the wait for those weights that a path to it has cost
Given
    for a stage in one direction, what it finds and leaves, and the wait for its first weights: all programs that no
    other beats in bytes, ticks and the next stage's wait (`formulations.bank_time`)
Variables
    those of `formulations.bank_network`, and one of these programs for every stage
Objectives
    min bytes, min ticks until the last stage ends
Constraints
    those of `formulations.bank_network` and `formulations.bank_time`
Optimal means
    A label that is nowhere greater stays so (all times are sums and maxima), so dominated ones are dropped; so are
    those that cannot end below the plans known: from a state on there is a least number of bytes, of ticks, and of
    weighted sums of both (`formulations.bank_graph`). What is left is exact. The plans known at first come from the
    same search with few labels a stage.

Source: `heterogeneous_mapping_and_banks` 4.1.3 (two objectives), 4.2.3; the front is ours.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from formulations.bank_graph import NEVER, Graph, OutOfTime, Point, lowest
from formulations.bank_labels import Timed, undominated
from formulations.bank_network import BankPlan, State, Visit, Walk
from formulations.bank_times import Times
from formulations.banks import Program, Task
from hwmodels.bank_clock import Clock
from instances.errors import InputError
from instances.feature_maps import Stages
from instances.machine import Banks

__all__ = ["Aim", "Found", "decide"]

#: What is asked for: lexicographic minima, or the front.
Aim = Literal["bytes", "time", "front"]
#: Labels of a stage that are followed at first, for each bound; before the expensive bounds if time is short.
_HURRIED = (3, 30)
_WIDTHS = {"bytes": (), "time": (10,), "front": (10, 10, 10)}


@dataclass(frozen=True)
class Found:
    """Plans with their ticks, by bytes, and what none undercuts.

    Attributes
    ----------
    proven : bool
        Whether the plans are optimal, for a front: all of it.
    """

    plans: tuple[tuple[BankPlan, int], ...]
    bytes_bound: int
    ticks_bound: int
    proven: bool
    labels: int
    states: int


class _Way(NamedTuple):
    """How a label came about."""

    before: _Label
    visit: Visit
    direction: int
    task: Task
    timed: Timed


class _Label(NamedTuple):
    bytes: int
    ticks: int
    wait: int
    way: _Way | None

    @property
    def point(self) -> Point:
        return Point(self.bytes, self.ticks)


class _Node(NamedTuple):
    """A state, and the bytes of the first weights of the stage that comes next."""

    state: State
    following: int


class _Search:
    """The search through all labels."""

    def __init__(self, walk: Walk, times: Times, aim: Aim, until: float | None) -> None:
        self.walk, self.times, self.aim, self.until = walk, times, aim, until
        self.graph = Graph(walk, times, until, timed=aim != "bytes" and until is None)
        self.known: dict[Point, _Label] = {}
        self.corners = [(NEVER, NEVER)]
        self.labels = 0
        if aim == "bytes":
            self.corners = [(self.graph.bytes[0], NEVER)]

    # ---- what is known -----------------------------------------------------------------------------------------

    def learn(self, ends: Sequence[_Label]) -> None:
        """Remember plans, and where better ones may lie: below (bytes, ticks) of one of the corners."""
        found = {label.point: label for label in ends} | self.known
        points = lowest(found)
        if self.aim == "time":
            points = points[-1:]
        self.known = {point: found[point] for point in points}
        if not points:
            return
        if self.aim == "bytes":
            self.corners = [(points[0].bytes, points[0].ticks - 1)]
        elif self.aim == "time":
            self.corners = [(NEVER, points[0].ticks - 1), (points[0].bytes - 1, points[0].ticks)]
        else:
            ends_at = [*(p.bytes - 1 for p in points[1:]), NEVER]
            self.corners = [(b, p.ticks - 1) for b, p in zip(ends_at, points, strict=True)]
            self.corners.append((points[0].bytes - 1, NEVER))

    def hopeless(self, at: int, spent: int, ticks: int) -> bool:
        """Whether nothing that goes on from a state, with so much spent, beats the plans known."""
        graph = self.graph
        least_bytes, least_ticks = spent + graph.bytes[at], ticks + graph.ticks[at]
        sums = [(p, q, p * spent + q * ticks + least[at]) for (p, q), least in graph.sums.items()]
        return not any(
            b >= least_bytes and t >= least_ticks and all(p * b + q * t >= least for p, q, least in sums)
            for b, t in self.corners
        )

    def bound_sums(self) -> None:
        """Bound the weighted sums along which the plans known are convex."""
        hull: list[Point] = []
        for point in self.known:
            while len(hull) > 1 and _above(hull[-2], hull[-1], point):
                hull.pop()
            hull.append(point)
        self.graph.sums.clear()
        for one, two in pairwise(hull):
            self.graph.add(one.ticks - two.ticks, two.bytes - one.bytes)

    # ---- labels --------------------------------------------------------------------------------------------------

    def run(self, width: int | None = None) -> list[_Label]:
        """All labels of the end that may be better than the plans known; with a width, few labels are followed."""
        clock, start = self.times.clock, State()
        layer = {
            _Node(start, first): [_Label(0, 0, clock.served(0, 0, first), None)] for first in self.times.starts(start)
        }
        for _ in self.walk.stages:
            new: dict[_Node, list[_Label]] = {}
            for node, labels in layer.items():
                for after, label in self._onward(node, labels):
                    new.setdefault(after, []).append(label)
            layer = {node: undominated(labels) for node, labels in new.items()}
            self.labels += sum(map(len, layer.values()))
            if width is not None:
                layer = self._best(layer, width)
        return [label for labels in layer.values() for label in labels]

    def _options(self, node: _Node) -> Iterator[tuple[Visit, int, Task, Program]]:
        """The stages that may come next if their first weights are so many bytes."""
        for at, source, direction in self.times.starts(node.state).get(node.following, ()):
            visit = Visit(self.walk, node.state, at, source)
            for task, program in self.walk.programs(node.state, at, source, direction, visit.prices):
                yield visit, direction, task, program

    def _onward(self, node: _Node, labels: list[_Label]) -> Iterator[tuple[_Node, _Label]]:
        if self.until is not None and time.monotonic() > self.until:
            raise OutOfTime
        for visit, direction, task, program in self._options(node):
            after = visit.after(direction, task)
            at, fewest = self.graph.number[after], visit.bytes(task, program)
            hopeful = [x for x in labels if not self.hopeless(at, x.bytes + fewest, x.ticks)]
            if not hopeful:
                continue
            for following in self.times.starts(after) or (0,):
                for label in hopeful:
                    for one in self.times.programs(visit, direction, task, following=following, wait=label.wait):
                        spent, ticks = label.bytes + visit.bytes(task, one.program), label.ticks + one.ticks
                        if not self.hopeless(at, spent, ticks):
                            way = _Way(label, visit, direction, task, one)
                            yield _Node(after, following), _Label(spent, ticks, one.wait, way)

    def _best(self, layer: dict[_Node, list[_Label]], width: int) -> dict[_Node, list[_Label]]:
        """Those that can still come to the least bytes, ticks, and weighted sums."""
        graph = self.graph
        found = [(node, label, graph.number[node.state]) for node, labels in layer.items() for label in labels]
        chosen: dict[tuple[_Node, _Label], None] = {}
        orders = {(1, 0): graph.bytes, (0, 1): graph.ticks, **graph.sums}
        for (p, q), least in orders.items():
            found.sort(key=lambda x: (p * x[1].bytes + q * (x[1].ticks + x[1].wait) + least[x[2]], x[1][:3]))
            chosen.update(((node, label), None) for node, label, _ in found[:width])
        kept: dict[_Node, list[_Label]] = {}
        for node, label in chosen:
            kept.setdefault(node, []).append(label)
        return kept

    def plan(self, label: _Label) -> BankPlan:
        """Follow a label back."""
        steps = []
        way = label.way
        while way is not None:
            visit = way.visit
            steps.append(
                self.walk.step(visit.state, visit.at, visit.source, way.direction, way.task, way.timed.program)
            )
            way = way.before.way
        return BankPlan(tuple(reversed(steps)))


def _above(one: Point, two: Point, three: Point) -> bool:
    """Whether the point in the middle is not below the line through the others."""
    return (two.ticks - one.ticks) * (three.bytes - two.bytes) >= (three.ticks - two.ticks) * (two.bytes - one.bytes)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Pause the collector: it takes a tenth of the time to find no cycles in millions of tuples that live on."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_uncollected()
def decide(
    found: Stages, banks: Banks, clock: Clock, aim: Aim, *, waiting: bool = True, time_limit_s: float | None = None
) -> Found:
    """Return the plan with the fewest bytes (then ticks), with the fewest ticks (then bytes), or the front.

    Parameters
    ----------
    waiting : bool
        Whether results may wait on chip for a stage that does not read them from the banks
        (`formulations.bank_graph.optimum`).
    time_limit_s : float, optional
        Then the plans found so far are returned, and `proven` is False; so with Ctrl-C.

    Raises
    ------
    InputError
        If a stage has no program in these banks.
    """
    until = None if time_limit_s is None else time.monotonic() + time_limit_s
    walk = Walk(found, banks, waiting=waiting)
    times = Times(walk, clock)
    try:
        search = _Search(walk, times, aim, until)
    except (OutOfTime, KeyboardInterrupt):
        return Found((), 0, 0, proven=False, labels=0, states=0)
    if search.graph.bytes[0] == NEVER:
        stage, size = search.graph.stuck(), f"{banks.count} banks of {banks.bank_bytes} bytes"
        raise InputError(f"network {found.network}: stage {stage} has no program in {size}")
    proven = True
    try:
        if aim != "bytes" and until is not None:  # plans first, the expensive bounds then
            for few in _HURRIED:
                search.learn(search.run(few))
            search.graph = Graph(walk, times, until)
        for width in (*_WIDTHS[aim], None):
            if aim == "front":
                search.bound_sums()
            search.learn(search.run(width))
    except (OutOfTime, KeyboardInterrupt):
        proven = False
    return _found(search, proven=proven)


def _found(search: _Search, *, proven: bool) -> Found:
    plans = tuple((search.plan(label), point.ticks) for point, label in search.known.items())
    graph, points = search.graph, list(search.known)
    least_bytes, least_ticks = graph.bytes[0], graph.ticks[0]
    if proven and search.aim != "bytes":
        least_ticks = points[-1].ticks
    if proven and search.aim == "bytes":
        least_ticks = 0
    return Found(plans, least_bytes, least_ticks, proven, search.labels, len(graph.number))
