"""Banks in time: lower bounds on what is left to the end of a network, in bytes, in ticks, and in weighted sums.

An example: three stages are left, and each takes at least 100 ticks whatever stays on chip. Then 300 ticks are left.
The bounds here do the same along shortest paths, so that they also know what can stay.

Sets
    N       nodes (s, f): a state s of `formulations.banks.network`, and what was asked for ahead of the stages to come:
            f, the first weights of the next stage that has any
    A       arcs (n, a, n'): stage a leads from node n to node n'
Given
    W       ticks: a wait so long that it hides the latency of every request
    points  for every arc pairs (bytes, ticks), one for each undominated program of its stage; ticks are
            ``ticks + wait - W``, where the stage begins W ticks before its first weights are there, and leaves `wait`.
            A stage that is not searched yet has one pair instead, a lower bound on all its programs
    p, q    weights of a sum
Variables
    left[n] >= 0, the least ``p*bytes + q*ticks`` from n to the end
Objective
    ``left[n] = min over arcs (n, a, n') and their points of (p*bytes + q*ticks + left[n'])``, 0 where all are done
Optimal means
    Shortest paths in an acyclic graph. Bytes are exact once all stages are searched. Ticks count from when the first
    weights of a stage are there to when those of the next one are. They are a lower bound: a stage that begins w ticks
    before its first weights come gains at most the latency of the requests made in these ticks, and no more once w
    reaches W.

Source: the bounds are ours; times as in `formulations.banks.search`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.banks.network import NEVER, Graph, Point, State, Visit, lowest
from formulations.banks.search import Programs
from formulations.banks.tasks import Program, Task
from formulations.banks.times import Node, Times
from formulations.banks.timing import First
from formulations.clock import ENDLESS, Clock

Ints = NDArray[np.int64]
#: Costs beyond which 64 bits might not hold the sums; how many times more a searched stage may cost than its bound.
_FAR, _MORE = 2**61, 2**10


class Alone:
    """What is left from a node to the end, at least; by itself cheap bounds: the work of every stage to come."""

    def __init__(self, times: Times) -> None:
        #: The sums ``p*bytes + q*ticks`` that are bounded, bytes and ticks first.
        self.weights = [(1, 0), (0, 1)]
        cycle, fixed = times.clock.cycle, times.clock.fixed
        begun = cycle if times.by_cycle else 0  # a cycle of it may be over as weights come
        self._work = [max(0, stage.cycles * cycle - begun) + fixed for stage in times.walk.stages]
        self._after: dict[int, int] = {}

    def left(self, node: Node) -> tuple[int, ...] | None:
        """The least sums to the end, of bytes nothing is known; None if there is no way worth going."""
        return 0, self.ticks(node.state.done)

    def __len__(self) -> int:
        """The nodes that are known."""
        return len(self._after)

    def ticks(self, done: int) -> int:
        """Until the end, once some stages are done."""
        if done not in self._after:
            self._after[done] = sum(ticks for at, ticks in enumerate(self._work) if not done >> at & 1)
        return self._after[done]


class ByState(Alone):
    """The fewest bytes of a graph, and cheap bounds of ticks."""

    def __init__(self, graph: Graph, times: Times) -> None:
        super().__init__(times)
        self.graph = graph

    def left(self, node: Node) -> tuple[int, ...] | None:
        """The least bytes and ticks to the end."""
        fewest = self.graph.bytes[self.graph.number[node.state]]
        return None if fewest == NEVER else (fewest, self.ticks(node.state.done))

    def __len__(self) -> int:
        return len(self.graph.number)


class ByNode(Alone):
    """All nodes and arcs; raises TimeUp.

    At first every stage counts with a lower bound on its programs; `tighten` has the programs themselves searched.
    """

    def __init__(self, times: Times, limit: Clock = ENDLESS) -> None:
        super().__init__(times)
        self.times, self.limit = times, limit
        starts = times.starts(State())
        self.number = {Node(State(), first): at for at, first in enumerate(starts)}
        #: Ticks until the first weights are there.
        self._begun = [times.begun(first) for first in starts]
        self._ways: list[_Way] = []
        self._known: dict[object, list[int | None]] = {}
        #: Arcs from node to node by a way, all from one layer of nodes ahead of those from the next.
        self._arcs, self._layers = self._explore()
        self._ends = [at for node, at in self.number.items() if node.state.done == times.walk.all]
        self._bytes, self._ticks = self._costs(1, 0), self._costs(0, 1)
        self._lefts: list[tuple[int, ...]] = []
        self.bound([])

    def bound(self, sums: Iterable[tuple[int, int]]) -> None:
        """Bound some sums beside bytes and ticks."""
        self.weights = [(1, 0), (0, 1), *sums]
        costs = [self._bytes, self._ticks, *(self._costs(p, q) for p, q in self.weights[2:])]
        self._lefts = list(zip(*(self._left(one).tolist() for one in costs), strict=True))

    def tighten(self, most: int = NEVER) -> None:
        """Search the programs of all stages that may be on a path of no more than so many ticks, and bound by them."""
        while vague := self._vague(most):
            for number in vague:
                self.limit.tick()
                way = self._ways[number]
                way.search()
                self._bytes[number], self._ticks[number] = way.cost(1, 0), way.cost(0, 1)
        self.bound(self.weights[2:])

    def _vague(self, most: int) -> list[int]:
        """The ways that are not searched, on paths that may take no more than so many ticks."""
        (begins, ends, ways), ticks = self._arcs, self._ticks
        spent, left = self._spent(ticks), self._left(ticks)
        near = np.unique(ways[spent[begins] + ticks[ways] + left[ends] <= min(most, _never(ticks) // 2)])
        return [way for way in near.tolist() if not self._ways[way].exact]

    def left(self, node: Node) -> tuple[int, ...] | None:
        """The least sums to the end."""
        at = self.number.get(node)
        return None if at is None or self._lefts[at][0] >= _FAR else self._lefts[at]

    def __len__(self) -> int:
        return len(self.number)

    # ---- sums ------------------------------------------------------------------------------------------------------

    def _costs(self, p: int, q: int) -> NDArray[Any]:
        """What every way costs; in Python's integers where 64 bits are too few."""
        costs = [way.cost(p, q) for way in self._ways]
        small = max(costs, default=0) * len(self._layers) < _FAR // _MORE
        return np.array(costs, dtype=np.int64 if small else object)

    def _left(self, costs: NDArray[Any]) -> NDArray[Any]:
        """By node what is left to the end."""
        begins, ends, ways = self._arcs
        left = np.full(len(self.number), _never(costs), dtype=costs.dtype)
        left[self._ends] = 0
        for layer in reversed(self._layers):
            np.minimum.at(left, begins[layer], costs[ways[layer]] + left[ends[layer]])
        return left

    def _spent(self, ticks: NDArray[Any]) -> NDArray[Any]:
        """By node a lower bound on the ticks of all ways to it."""
        begins, ends, ways = self._arcs
        spent = np.full(len(self.number), _never(ticks), dtype=ticks.dtype)
        spent[: len(self._begun)] = self._begun
        for layer in self._layers:
            np.minimum.at(spent, ends[layer], spent[begins[layer]] + ticks[ways[layer]])
        return spent

    # ---- nodes -----------------------------------------------------------------------------------------------------

    def _explore(self) -> tuple[tuple[Ints, Ints, Ints], list[slice]]:
        """Follow all nodes, stage by stage."""
        number, layer, layers = self.number, list(self.number), list[slice]()
        begins, ends, ways = list[int](), list[int](), list[int]()
        while layer:
            following: list[Node] = []
            before = len(begins)
            for begin, node in enumerate(layer, len(number) - len(layer)):
                self.limit.tick()
                for after, way in self._onward(node):
                    end = number.get(after)
                    if end is None:
                        number[after] = end = len(number)
                        following.append(after)
                    begins.append(begin)
                    ends.append(end)
                    ways.append(way)
            layers.append(slice(before, len(begins)))
            layer = following
        return (np.array(begins, np.int64), np.array(ends, np.int64), np.array(ways, np.int64)), layers

    def _onward(self, node: Node) -> Iterator[tuple[Node, int]]:
        """The nodes that follow, each with the way to it."""
        all_ways = self._ways
        for visit, direction, tasks in self.times.visits(node):
            known: dict[First, tuple[Programs, list[int | None]]] = {}
            for number, (task, program) in enumerate(tasks):
                after = visit.after(direction, task)
                for following in self.times.onward(visit, node.following, after):
                    if following not in known:
                        known[following] = self._alike(visit, direction, tasks, following)
                    programs, ways = known[following]
                    way = ways[number]
                    if way is None:
                        ways[number] = way = len(all_ways)
                        all_ways.append(_Way(visit, task, program, programs, self.times.base(visit, direction)[1]))
                    yield Node(after, following), way

    def _alike(
        self, visit: Visit, direction: int, tasks: list[tuple[Task, Program]], following: First
    ) -> tuple[Programs, list[int | None]]:
        """The programs of a visit, and the ways of its tasks as far as they are known; alike visits share them."""
        wait, _ = self.times.base(visit, direction)
        programs = self.times.programs(visit, direction, following=following, wait=wait)
        key = id(tasks), id(programs), visit.alike  # both live as long as the walk and the times
        if key not in self._known:
            self._known[key] = [None] * len(tasks)
        return programs, self._known[key]


class _Way:
    """A task of a visit with the stage that follows: bytes, and ticks as `ByNode` counts them."""

    def __init__(self, visit: Visit, task: Task, program: Program, programs: Programs, lead: int) -> None:
        self.visit, self.task, self.programs, self.lead, self.exact = visit, task, programs, lead, False
        ticks = programs.bound(task) - lead
        self.points: list[Point] = [Point(visit.bytes(task, program), ticks)]

    def cost(self, p: int, q: int) -> int:
        """The least sum."""
        return min([p * size + q * ticks for size, ticks in self.points])

    def search(self) -> None:
        """Search all undominated programs."""
        visit, ready = self.visit, self.programs.timing.ready
        found = self.programs.of(self.task)
        ends = [ready(one.ticks, one.wait) - self.lead for one in found]
        self.points = lowest(Point(visit.bytes(self.task, o.program), end) for o, end in zip(found, ends, strict=True))
        self.exact = True


def _never(costs: NDArray[Any]) -> int:
    """More than any sum of such costs."""
    return 2 * _FAR if costs.dtype == np.int64 else NEVER
