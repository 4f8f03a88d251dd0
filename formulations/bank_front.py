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

from formulations.bank_bounds import Alone, Bounds, ByNode, ByState, Node, Point, lowest, options
from formulations.bank_graph import NEVER, Graph, OutOfTime
from formulations.bank_labels import Timed, undominated
from formulations.bank_network import BankPlan, State, Visit, Walk
from formulations.bank_time import Programs
from formulations.bank_times import Times
from formulations.banks import Task
from hwmodels.bank_clock import Clock
from instances.errors import InputError
from instances.feature_maps import Stages
from instances.machine import Banks

__all__ = ["Aim", "Found", "decide"]

#: What is asked for: lexicographic minima, or the front.
Aim = Literal["bytes", "time", "front"]
#: Labels of a stage that are followed at first, for each bound; more only if the cheap bounds are within a hundredth of
#: the plan found, as few nodes are left to follow then; then with the expensive bounds.
_HURRIED, _CLOSE = (3, 30), 1.01
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

    @property
    def ready(self) -> int:
        """When the first weights of the next stage are there."""
        return self.ticks + self.wait


class _Search:
    """The search through all labels."""

    def __init__(self, walk: Walk, times: Times, aim: Aim, until: float | None) -> None:
        self.walk, self.times, self.aim, self.until = walk, times, aim, until
        self.bounds: Bounds = Alone(walk, times, computing=True)
        self.known: dict[Point, _Label] = {}
        self.corners = [(NEVER, NEVER)]
        self.labels = 0

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

    def hopeless(self, left: tuple[int, ...], spent: int, ready: int) -> bool:
        """Whether nothing that goes on beats the plans known, with so much spent when the next weights are there."""
        least_bytes, least_ticks = spent + left[0], ready + left[1]
        corners = [(b, t) for b, t in self.corners if b >= least_bytes and t >= least_ticks]
        if not corners or len(left) == 2:
            return not corners
        weights = self.bounds.weights
        sums = [(p, q, p * spent + q * ready + left[k]) for k, (p, q) in enumerate(weights) if k > 1]
        return not any(all(p * b + q * t >= least for p, q, least in sums) for b, t in corners)

    def convex(self) -> list[tuple[int, int]]:
        """The weighted sums along which the plans known are convex."""
        hull: list[Point] = []
        for point in self.known:
            while len(hull) > 1 and _above(hull[-2], hull[-1], point):
                hull.pop()
            hull.append(point)
        return [(one.ticks - two.ticks, two.bytes - one.bytes) for one, two in pairwise(hull)]

    def least(self) -> Point | None:
        """What no plan undercuts; None if there is no way to the end."""
        start, clock = State(), self.times.clock
        firsts = [(clock.served(0, 0, first), Node(start, first)) for first in self.times.starts(start)]
        lefts = [(wait, left) for wait, node in firsts if (left := self.bounds.left(node)) is not None]
        if not lefts:
            return None
        return Point(min(left[0] for _, left in lefts), min(wait + left[1] for wait, left in lefts))

    # ---- labels --------------------------------------------------------------------------------------------------

    def run(self, width: int | None = None) -> list[_Label]:
        """All labels of the end that may be better than the plans known; with a width, few labels are followed."""
        clock, start = self.times.clock, State()
        layer = {
            Node(start, first): [_Label(0, 0, clock.served(0, 0, first), None)] for first in self.times.starts(start)
        }
        for _ in self.walk.stages:
            new: dict[Node, list[_Label]] = {}
            for node, labels in layer.items():
                for after, label in self._onward(node, labels):
                    new.setdefault(after, []).append(label)
            layer = {node: undominated(labels) for node, labels in new.items()}
            self.labels += sum(map(len, layer.values()))
            if width is not None:
                layer = self._best(layer, width)
        return [label for labels in layer.values() for label in labels]

    def _onward(self, node: Node, labels: list[_Label]) -> Iterator[tuple[Node, _Label]]:
        if self.until is not None and time.monotonic() > self.until:
            raise OutOfTime
        times, hidden, bounded = self.times, self.times.hidden, isinstance(self.bounds, ByNode)
        for visit, direction, tasks in options(self.walk, times, node):
            ahead: dict[int, Programs] = {}
            for task, program in tasks:
                after, fewest, least = visit.after(direction, task), visit.bytes(task, program), 0
                for following in times.starts(after):
                    onward = Node(after, following)
                    left = self.bounds.left(onward)
                    if left is None:
                        continue
                    if bounded:  # what the stage takes at least, from its first weights to the next one's
                        if following not in ahead:
                            ahead[following] = times.programs(visit, direction, following=following, wait=hidden)
                        least = min([one.ticks + one.wait for one in ahead[following].of(task)]) - hidden
                    for label in labels:
                        if self.hopeless(left, label.bytes + fewest, label.ready + least):
                            continue
                        programs = times.programs(visit, direction, following=following, wait=label.wait)
                        for one in programs.of(task):
                            spent, ticks = label.bytes + visit.bytes(task, one.program), label.ticks + one.ticks
                            if not self.hopeless(left, spent, ticks + one.wait):
                                yield onward, _Label(spent, ticks, one.wait, _Way(label, visit, direction, task, one))

    def _best(self, layer: dict[Node, list[_Label]], width: int) -> dict[Node, list[_Label]]:
        """Those that can still come to the least bytes, ticks, and weighted sums."""
        found = [
            (node, label, left)
            for node, labels in layer.items() if (left := self.bounds.left(node)) is not None for label in labels
        ]  # fmt: skip
        chosen: dict[tuple[Node, _Label], None] = {}
        for k, (p, q) in enumerate(self.bounds.weights):
            found.sort(key=lambda x: (p * x[1].bytes + q * x[1].ready + x[2][k], x[1][:3]))
            chosen.update(((node, label), None) for node, label, _ in found[:width])
        kept: dict[Node, list[_Label]] = {}
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
    search, proven = _Search(walk, Times(walk, clock, shifting=aim != "bytes"), aim, until), True
    try:
        if aim == "bytes":
            _fewest(search)
        else:
            _fastest(search)
    except (OutOfTime, KeyboardInterrupt):
        proven = False
    plans = tuple((search.plan(label), point.ticks) for point, label in search.known.items())
    least = search.least() or Point(0, 0)
    if proven and aim != "bytes":
        least = least._replace(ticks=plans[-1][1])
    return Found(plans, *least, proven, search.labels, len(search.bounds))


def _fewest(search: _Search) -> None:
    """Find the fewest bytes, then ticks."""
    graph = Graph(search.walk, search.until)
    if graph.bytes[0] == NEVER:
        raise _no_program(graph)
    search.bounds, search.corners = ByState(graph, search.times), [(graph.bytes[0], NEVER)]
    search.learn(search.run())


def _fastest(search: _Search) -> None:
    """Find the fewest ticks, then bytes, or the front: plans first, by cheap bounds, the expensive ones then."""
    alone = Alone(search.walk, search.times)
    search.bounds = alone
    aim, cheap, most = search.aim, search.least(), NEVER
    for width in _HURRIED:
        search.learn(search.run(width))
        most = min((point.ticks for point in search.known), default=NEVER)
        if cheap is None or most > cheap.ticks * _CLOSE:
            break
    bounds = ByNode(search.walk, search.times, search.until, most if aim == "time" else NEVER, alone)
    search.bounds = bounds
    if search.least() is None:
        raise _no_program(Graph(search.walk, search.until))
    for few in (*_WIDTHS[aim], None):
        if aim == "front":
            bounds.bound(search.convex())
        search.learn(search.run(few))


def _no_program(graph: Graph) -> InputError:
    walk = graph.walk
    size = f"{walk.banks.count} banks of {walk.banks.bank_bytes} bytes"
    return InputError(f"network {walk.found.network}: stage {graph.stuck()} has no program in {size}")
