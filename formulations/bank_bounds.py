"""F6 banks in time: what no way to the end of a network undercuts, in bytes, in ticks, and in sums of both.

Sets
    nodes (s, f): states of `formulations.bank_network`, and the bytes f of the first weights of the stage that comes
    next; arcs: pairs of nodes that a stage joins
Given
    W, a wait that hides the latency of every request; for every arc the programs that no other beats, each with its
    bytes and ``ticks + wait - W``, if the stage begins W ticks before its first weights are there and leaves `wait`
Variables
    for every node the least ``p*bytes + q*ticks`` to the end
Optimal means
    Shortest paths in an acyclic graph. Bytes are exact. Ticks, counted from when the first weights of a stage are there
    to when those of the next one are, are a lower bound: a stage that begins w ticks before its first weights comes can
    only gain the latency of the requests made in that time, and gains nothing more once w is at least W.

Source: the bounds are ours; times as in `formulations.bank_time`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple, Protocol

from formulations.bank_graph import NEVER, Graph, OutOfTime
from formulations.bank_labels import Timing
from formulations.bank_network import State, Visit, Walk
from formulations.bank_time import Programs
from formulations.bank_times import Times
from formulations.banks import Prices, Program, Task
from hwmodels.bank_steps import Goal

__all__ = ["Alone", "Bounds", "ByNode", "ByState", "Node", "Point", "lowest", "options"]


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


class Node(NamedTuple):
    """A state, and the bytes of the first weights of the stage that comes next."""

    state: State
    following: int


def options(walk: Walk, times: Times, node: Node) -> Iterator[tuple[Visit, int, list[tuple[Task, Program]]]]:
    """The stages that may come next if their first weights are so many bytes, with what may stay."""
    visit = None
    for at, source, direction in times.starts(node.state).get(node.following, ()):
        if visit is None or (visit.at, visit.source) != (at, source):  # both directions are one visit
            visit = Visit(walk, node.state, at, source)
        yield visit, direction, walk.programs(node.state, at, source, direction, visit.prices)


class Bounds(Protocol):
    """What is left from a node to the end, at least."""

    @property
    def weights(self) -> list[tuple[int, int]]:
        """The sums ``p*bytes + q*ticks`` that are bounded, bytes and ticks first."""
        ...

    def left(self, node: Node) -> tuple[int, ...] | None:
        """The least sums to the end; None if there is no way worth going."""
        ...

    def __len__(self) -> int:
        """The nodes that are known."""
        ...


class Alone:
    """Cheap bounds: what every stage to come takes in the best state that it could find."""

    def __init__(self, walk: Walk, times: Times, *, computing: bool = False) -> None:
        self.weights = [(1, 0), (0, 1)]
        self._left: dict[int, int] = {}
        self._known: dict[object, int] = {}
        if computing:  # what takes no search
            clock = times.clock
            self._alone = [stage.cycles * clock.cycle + clock.fixed for stage in walk.stages]
        else:
            self._alone = [self._least(walk, times, at) for at in range(len(walk.stages))]

    def _least(self, walk: Walk, times: Times, at: int) -> int:
        """Ticks of a stage that nothing else leaves fewer banks, and that waits for no streams."""
        target, found = walk.stages[at].target, [NEVER]
        goal = Goal(walk.found.maps[target].columns, walk.tile[target], 0, mirrored=False)
        for source in walk.sources(at):
            prices, banks = walk.prices(State(), at, source), walk.banks.count
            stays = walk.makers[source] or walk.readers[source].bit_count() > 1
            on_chip = min(walk.tiles(source), banks) if stays else 0
            for direction in (0, 1):
                timing = times.timing(State(), at, source, direction, 0)
                timing = replace(timing, streams=(0,) * len(timing.streams))
                one = walk.passed(at, source, direction)
                tasks = [Task(one, banks, tiles, goal) for tiles in range(on_chip + 1)]
                found.append(self._quickest(tasks, prices, timing, times.hidden))
        return min(found)

    def _quickest(self, tasks: list[Task], prices: Prices, timing: Timing, wait: int) -> int:
        """The least ticks of some tasks; equal stages share the answer."""
        key = *tasks, prices, timing
        if key not in self._known:
            ways = (way for task in tasks for way in Programs(prices, timing, wait).of(task))
            self._known[key] = min((way.ticks - wait for way in ways), default=NEVER)
        return self._known[key]

    def left(self, node: Node) -> tuple[int, ...] | None:
        """Of bytes nothing is known."""
        return 0, self.ticks(node.state.done)

    def __len__(self) -> int:
        return len(self._left)

    def ticks(self, done: int) -> int:
        """Until the end, once some stages are done."""
        if done not in self._left:
            self._left[done] = sum(ticks for at, ticks in enumerate(self._alone) if not done >> at & 1)
        return self._left[done]


class ByState:
    """The fewest bytes of a graph, and cheap bounds of ticks."""

    def __init__(self, graph: Graph, times: Times) -> None:
        self.graph, self.weights = graph, [(1, 0), (0, 1)]
        self.alone = Alone(graph.walk, times, computing=True)

    def left(self, node: Node) -> tuple[int, ...] | None:
        """The least bytes and ticks to the end."""
        fewest = self.graph.bytes[self.graph.number[node.state]]
        return None if fewest == NEVER else (fewest, self.alone.ticks(node.state.done))

    def __len__(self) -> int:
        return len(self.graph.number)


class ByNode:
    """All nodes and arcs.

    Parameters
    ----------
    until : float, optional
        When to give up, on `time.monotonic`.
    most : int, optional
        Ticks of a plan that is known: nodes from where none is quicker are not followed.
    cheap : Alone, optional
        The bounds that say so, if they are made already.

    Raises
    ------
    OutOfTime
    """

    def __init__(
        self, walk: Walk, times: Times, until: float | None = None, most: int = NEVER, cheap: Alone | None = None
    ) -> None:
        self.walk, self.times, self.until, self.most = walk, times, until, most
        self.arcs: list[list[tuple[int, tuple[Point, ...]]]] = []
        self.number = {Node(State(), first): at for at, first in enumerate(times.starts(State()))}
        self._known: dict[object, _Costs] = {}
        self._explore(cheap or Alone(walk, times))
        self.weights: list[tuple[int, int]] = []
        self._lefts: list[tuple[int, ...]] = []
        self.bound([])

    def bound(self, sums: Iterable[tuple[int, int]]) -> None:
        """Bound some sums beside bytes and ticks."""
        self.weights = [(1, 0), (0, 1), *sums]
        self._lefts = list(zip(*(self._sums(p, q) for p, q in self.weights), strict=True))

    def left(self, node: Node) -> tuple[int, ...] | None:
        """The least sums to the end."""
        at = self.number.get(node)
        if at is None or self._lefts[at][0] == NEVER:
            return None
        return self._lefts[at]

    def __len__(self) -> int:
        return len(self.number)

    def _sums(self, p: int, q: int) -> list[int]:
        found = [NEVER] * len(self.number)
        for (state, _), at in reversed(self.number.items()):
            if state.done == self.walk.all:
                found[at] = 0
                continue
            least = NEVER
            for onward, points in self.arcs[at]:
                rest = found[onward]
                for size, ticks in points:
                    least = min(least, rest + p * size + q * ticks)
            found[at] = least
        return found

    def _explore(self, cheap: Alone) -> None:
        """Follow all nodes, stage by stage; `spent` is what no way to a node undercuts."""
        number = self.number
        layer = list(number)
        spent = [self.times.clock.served(0, 0, node.following) for node in layer]
        while layer:
            following: list[Node] = []
            for node in layer:
                if self.until is not None and time.monotonic() > self.until:
                    raise OutOfTime
                ticks, arcs = spent[len(self.arcs)], list[tuple[int, tuple[Point, ...]]]()
                self.arcs.append(arcs)
                if ticks + cheap.ticks(node.state.done) > self.most:
                    continue
                for after, points in self._ways(node).items():
                    least = ticks + min([point.ticks for point in points])
                    onward = number.get(after)
                    if onward is None:
                        number[after] = onward = len(number)
                        spent.append(least)
                        following.append(after)
                    elif least < spent[onward]:
                        spent[onward] = least
                    arcs.append((onward, points))
            layer = following

    def _ways(self, node: Node) -> dict[Node, tuple[Point, ...]]:
        """The nodes that follow, with the least costs on the way."""
        ways: dict[Node, tuple[Point, ...]] = {}
        starts = self.times.starts
        for visit, direction, tasks in options(self.walk, self.times, node):
            known: dict[int, _Costs] = {}
            for number, (task, _) in enumerate(tasks):
                after = visit.after(direction, task)
                for following in starts(after):
                    costs = known.get(following)
                    if costs is None:
                        known[following] = costs = self._costs(visit, direction, tasks, following)
                    points = costs.points[number]
                    if points is None:
                        costs.points[number] = points = self._points(visit, task, costs.programs)
                    onward = Node(after, following)
                    if onward in ways:
                        points = tuple(lowest((*points, *ways[onward])))
                    ways[onward] = points
        return ways

    def _costs(self, visit: Visit, direction: int, tasks: list[tuple[Task, Program]], following: int) -> _Costs:
        """What the tasks of a visit cost; visits that are alike share it."""
        programs = self.times.programs(visit, direction, following=following, wait=self.times.hidden)
        key = id(tasks), id(programs), visit.alike  # both live as long as the walk and the times
        if key not in self._known:
            self._known[key] = _Costs(programs, [None] * len(tasks))
        return self._known[key]

    def _points(self, visit: Visit, task: Task, programs: Programs) -> tuple[Point, ...]:
        wait = self.times.hidden
        points = [Point(visit.bytes(task, one.program), one.ticks + one.wait - wait) for one in programs.of(task)]
        return tuple(lowest(points) if len(points) > 1 else points)


class _Costs(NamedTuple):
    """The programs of a visit, and the costs of its tasks as far as they are known."""

    programs: Programs
    points: list[tuple[Point, ...] | None]
