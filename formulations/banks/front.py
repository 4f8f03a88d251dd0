"""Banks in time: the fewest bytes, the fewest ticks, or the exact front of both over a whole network.

Sets
    states of `formulations.banks.network`, with the bytes of the first weights of the stage that comes next; labels of
    a state: bytes, ticks and the wait for those weights that a path to it has cost
Given
    for a stage in one direction, what it finds and leaves, and the wait for its first weights: all programs that no
    other beats in bytes, ticks and the next stage's wait (`formulations.banks.search`)
Variables
    those of `formulations.banks.network`, and one of these programs for every stage
Objectives
    min bytes, min ticks until the last stage ends
Constraints
    those of `formulations.banks.network` and `formulations.banks.search`
Optimal means
    A label that is nowhere greater stays so (all times are sums and maxima), so dominated ones are dropped. What
    follows a label depends on its wait alone: for the fewest ticks, of labels with the same wait the one with the least
    (ticks, bytes) is enough. Dropped are also those that cannot end below the plans known: from a state on there is a
    least number of bytes, of ticks, and of weighted sums of both (`formulations.banks.network`). What is left is exact.
    The plans known at first come from the same search with few labels a stage.

`PathLabel` is what a path to a state has cost, `Onward` how labels follow each other, stage by stage.

Source: `heterogeneous_mapping_and_banks` 4.1.3 (two objectives), 4.2.3; the front is ours.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from formulations.banks.bounds import Alone, ByNode, ByState
from formulations.banks.network import NEVER, BankPlan, Graph, Point, State, Visit, Walk, lowest
from formulations.banks.overtaking import Complete, TooMany
from formulations.banks.search import Programs
from formulations.banks.tasks import Program, Task
from formulations.banks.times import Node, Times
from formulations.banks.timing import First, Timed, undominated
from formulations.clock import ENDLESS, Clock, TimeUp
from hwmodels.banks.steps import DramClock


class Ways(NamedTuple):
    """Whose times labels have, whose bound them; where weights overtake, all programs, if they are asked for."""

    times: Times
    lower: Times
    complete: Complete | None = None


class Way(NamedTuple):
    """How a label came about."""

    before: PathLabel
    visit: Visit
    direction: int
    task: Task
    timed: Timed


class Waits(NamedTuple):
    """When the first weights of a stage are there, and its biases."""

    wait: int
    late: int


class PathLabel(NamedTuple):
    """A path to a node: bytes, ticks, and ticks then until weights that were asked for are there; when work may begin.

    `late`: the same for biases.
    """

    bytes: int
    ticks: int
    wait: int
    way: Way | None
    ready: int = 0
    late: int = 0

    @property
    def waits(self) -> Waits:
        """What stages onward wait for what was asked for."""
        return Waits(self.wait, self.late)

    @property
    def point(self) -> Point:
        """What it costs."""
        return Point(self.bytes, self.ticks)


class Room(NamedTuple):
    """What there is room for: bytes, ticks until the next first weights are there, and sums ``p*bytes + q*ticks``."""

    bytes: int
    ready: int
    sums: list[tuple[int, int, int]]


class Onward:
    """The labels that follow those of one node with one visit; `waiting`: by what they wait for its first weights."""

    def __init__(
        self, ways: Ways, visit: Visit, direction: int, waiting: dict[Waits, list[PathLabel]], *, bounded: bool
    ) -> None:
        self.ways, self.visit, self.direction, self.waiting, self.bounded = ways, visit, direction, waiting, bounded
        self._programs: dict[tuple[First, int, int], Programs] = {}

    def programs(self, following: First, wait: int, late: int) -> Programs:
        """The programs of the visit, if the stage's own first weights, and its biases, are there after a wait."""
        key = following, wait, late
        if key not in self._programs:
            found = self.ways.times.programs(self.visit, self.direction, following=following, wait=wait, late=late)
            self._programs[key] = found
        return self._programs[key]

    def _wait(self, wait: int) -> int:
        """When the stage's own first weights are there."""
        visit = self.visit
        return self.ways.times.wait(visit.state, visit.at, visit.source, self.direction, wait)

    def labels(self, task: Task, program: Program, following: First, rooms: list[Room]) -> Iterator[PathLabel]:
        """What comes of a task, where there is room; `program` moves the fewest bytes."""
        visit, fewest, least = self.visit, self.visit.bytes(task, program), 0
        if self.bounded:  # what the stage takes at least, from its first weights to the next one's
            lower = self.ways.lower
            wait, lead = lower.base(visit, self.direction)
            least = lower.programs(visit, self.direction, following=following, wait=wait).bound(task) - lead
        for waits, labels in self.waiting.items():
            going = [label for label in labels if fits(rooms, label.bytes + fewest, label.ready + least)]
            if not going:
                continue
            for one in self._of(task, following, waits, going, rooms):
                size = visit.bytes(task, one.program)
                for label in going:
                    spent, ticks = label.bytes + size, label.ticks + one.ticks
                    ready = following.ready(ticks, one.wait, one.late)
                    if fits(rooms, spent, ready):
                        way = Way(label, visit, self.direction, task, one)
                        yield PathLabel(spent, ticks, one.wait, way, ready, one.late)

    def _of(
        self, task: Task, following: First, waits: Waits, going: Sequence[PathLabel], rooms: list[Room]
    ) -> Sequence[Timed]:
        """The programs of a task that labels with these waits may go on with."""
        wait = self._wait(waits.wait)
        if self.ways.times is self.ways.lower:
            return self.programs(following, wait, waits.late).of(task)
        bounds = self.ways.lower.programs(self.visit, self.direction, following=following, wait=wait)
        latest = max(room.ready for room in rooms) - min(label.ticks for label in going)
        if all(bounds.timing.ready(one.ticks, one.wait) > latest for one in bounds.of(task)):
            return ()
        quick = self.programs(following, wait, waits.late)
        good = quick.good(task, bounds.of(task))
        if self.ways.complete is None:
            return good
        return self.ways.complete.of(task, self.visit.prices, quick.timing, wait, latest, good)


def fits(rooms: list[Room], spent: int, ready: int) -> bool:
    """Whether there is room for so much."""
    for most, latest, sums in rooms:
        if spent <= most and ready <= latest and (not sums or all(p * spent + q * ready <= at for p, q, at in sums)):
            return True
    return False


#: What is asked for: lexicographic minima, or the front.
Aim = Literal["bytes", "time", "front"]
#: Labels of a stage that are followed at first to find a quick plan; to find a front, and how often.
_FEW, _MORE, _FRONTS = 3, 10, 3
#: Labels inside stages that are followed to prove a plan where weights overtake; then it has a bound.
_MOST = 1_000_000
#: In turn the stages are searched that may be on paths up to these parts of the way from the bound to the plan found:
#: what is found on the shortest paths leaves fewer of the others.
_PARTS = (16, 4, 1)


@dataclass(frozen=True)
class Found:
    """Plans with their ticks, by bytes, and lower bounds for all plans."""

    plans: tuple[tuple[BankPlan, int], ...]
    bytes_bound: int
    ticks_bound: int
    proven: bool
    """Whether the plans are optimal, for a front: all of it."""
    labels: int
    states: int
    stopped: bool = False
    """Whether Ctrl-C ended the search."""


class _Search:
    """The search through all labels."""

    def __init__(self, walk: Walk, ways: Ways, aim: Aim, limit: Clock) -> None:
        self.walk, self.ways, self.times, self.aim, self.limit = walk, ways, ways.times, aim, limit
        self.bounds = Alone(ways.lower)
        #: Plans by what they cost, and rivals that are no plans of these stages.
        self.known: dict[Point, PathLabel | None] = {}
        self.corners = [(NEVER, NEVER)]
        self.labels = 0

    # ---- what is known -----------------------------------------------------------------------------------------

    def learn(self, ends: Sequence[PathLabel]) -> None:
        """Remember plans, and where better ones may lie: below (bytes, ticks) of one of the corners."""
        found = {**{label.point: label for label in ends}, **self.known}
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

    def rooms(self, left: tuple[int, ...]) -> list[Room]:
        """How much may be spent where so much is left: with more nothing that goes on beats the plans known."""
        sums = [(p, q, rest) for (p, q), rest in zip(self.bounds.weights[2:], left[2:], strict=True)]
        return [
            Room(b - left[0], t - left[1], [(p, q, p * b + q * t - rest) for p, q, rest in sums])
            for b, t in self.corners if b >= left[0] and t >= left[1]
        ]  # fmt: skip

    def quickest(self) -> int:
        """The fewest ticks of the plans known."""
        return min((point.ticks for point in self.known), default=NEVER)

    def convex(self) -> list[tuple[int, int]]:
        """The weighted sums along which the plans known are convex."""
        hull: list[Point] = []
        for point in self.known:
            while len(hull) > 1 and _above(hull[-2], hull[-1], point):
                hull.pop()
            hull.append(point)
        return [(one.ticks - two.ticks, two.bytes - one.bytes) for one, two in pairwise(hull)]

    def least(self) -> Point | None:
        """Lower bounds on bytes and ticks; None if there is no way to the end."""
        start, times = State(), self.times
        firsts = [(times.begun(first), Node(start, first)) for first in times.starts(start)]
        lefts = [(wait, left) for wait, node in firsts if (left := self.bounds.left(node)) is not None]
        if not lefts:
            return None
        return Point(min(left[0] for _, left in lefts), min(wait + left[1] for wait, left in lefts))

    # ---- labels --------------------------------------------------------------------------------------------------

    def run(self, width: int | None = None) -> list[PathLabel]:
        """All labels of the end that may be better than the plans known; with a width, few labels are followed."""
        times, start = self.times, State()
        layer = {
            Node(start, first): [PathLabel(0, 0, (begun := times.begun(first)), None, begun)]
            for first in times.starts(start)
        }
        for _ in self.walk.stages:
            new: dict[Node, list[PathLabel]] = {}
            for node, labels in layer.items():
                for after, label in self._onward(node, labels):
                    new.setdefault(after, []).append(label)
            layer = {node: self._kept(labels) for node, labels in new.items()}
            self.labels += sum(map(len, layer.values()))
            if width is not None:
                layer = self._best(layer, width)
        return [label for labels in layer.values() for label in labels]

    def complete(self) -> None:
        """Where weights overtake, follow all labels that may be better than the plans known."""
        if self.times.clock.overtakes:
            self.ways = self.ways._replace(complete=Complete(self.aim == "time", _MOST))
            self.learn(self.run())

    def _onward(self, node: Node, labels: list[PathLabel]) -> Iterator[tuple[Node, PathLabel]]:
        self.limit.tick()
        waiting: dict[Waits, list[PathLabel]] = {}
        for label in labels:
            waiting.setdefault(label.waits, []).append(label)
        for visit, direction, tasks in self.times.visits(node):
            onward = Onward(self.ways, visit, direction, waiting, bounded=isinstance(self.bounds, ByNode))
            for task, program in tasks:
                after = visit.after(direction, task)
                for following in self.times.onward(visit, node.following, after):
                    reached = Node(after, following)
                    left = self.bounds.left(reached)
                    if left is not None and (rooms := self.rooms(left)):
                        for label in onward.labels(task, program, following, rooms):
                            yield reached, label

    def _kept(self, labels: list[PathLabel]) -> list[PathLabel]:
        """Those that no other of the same node makes superfluous."""
        if self.aim == "time":
            least: dict[Waits, PathLabel] = {}
            for label in labels:
                known = least.get(label.waits)
                if known is None or (label.ticks, label.bytes) < (known.ticks, known.bytes):
                    least[label.waits] = label
            labels = list(least.values())
        if self.ways.complete is None:
            return undominated(labels)
        waits: dict[Waits, list[PathLabel]] = {}  # where weights overtake, a shorter wait may be the worse one
        for label in labels:
            waits.setdefault(label.waits, []).append(label)
        return [label for alike in waits.values() for label in undominated(alike)]

    def _best(self, layer: dict[Node, list[PathLabel]], width: int) -> dict[Node, list[PathLabel]]:
        """Those that can still come to the least bytes, ticks, and weighted sums."""
        found = [
            (node, label, left)
            for node, labels in layer.items() if (left := self.bounds.left(node)) is not None for label in labels
        ]  # fmt: skip
        chosen: dict[tuple[Node, PathLabel], None] = {}
        for k, (p, q) in enumerate(self.bounds.weights):
            found.sort(key=lambda x: (p * x[1].bytes + q * x[1].ready + x[2][k], x[1][:3]))
            chosen.update(((node, label), None) for node, label, _ in found[:width])
        kept: dict[Node, list[PathLabel]] = {}
        for node, label in chosen:
            kept.setdefault(node, []).append(label)
        return kept

    def plan(self, label: PathLabel) -> BankPlan:
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
def decide(walk: Walk, clock: DramClock, aim: Aim, *, limit: Clock = ENDLESS, rivals: Iterable[Point] = ()) -> Found:
    """Return the plan with the fewest bytes (then ticks), with the fewest ticks (then bytes), or the front.

    `limit`: when it is over, the plans found so far are returned, and `proven` is False; so with Ctrl-C. `rivals`: what
    is known otherwise: only plans that none of them beats or equals are returned. If none is, `proven` says that there
    is no such plan. Raises InputError if a stage has no program in these banks.
    """
    lower = Times(walk, clock.bound(), shifting=aim != "bytes", lean=aim == "bytes")
    ways = Ways(Times(walk, clock, shifting=False, lean=aim == "bytes") if clock.overtakes else lower, lower)
    search, proven, stopped = _Search(walk, ways, aim, limit), True, False
    search.known = dict.fromkeys(rivals)
    search.learn(())
    try:
        if aim == "bytes":
            _fewest(search)
        else:
            _fastest(search)
    except (TimeUp, TooMany):
        proven = False
    except KeyboardInterrupt:
        proven, stopped = False, True
    plans = tuple((search.plan(label), point.ticks) for point, label in search.known.items() if label is not None)
    least = search.least() or Point(0, 0)
    if proven and aim != "bytes":
        least = least._replace(ticks=search.quickest())
    return Found(plans, *least, proven, search.labels, len(search.bounds), stopped)


@_uncollected()
def few_labels(walk: Walk, clock: DramClock, limit: Clock = ENDLESS) -> BankPlan | None:
    """Return a plan with few ticks: of every stage the few labels with the least are followed, a matter of seconds.

    None if none of them comes to the end; raises TimeUp.
    """
    times = Times(walk, clock, shifting=False)
    search = _Search(walk, Ways(times, times), "time", limit)
    search.learn(search.run(_FEW))
    return next((search.plan(label) for label in search.known.values() if label is not None), None)


def _fewest(search: _Search) -> None:
    """Find the fewest bytes, then ticks."""
    graph = Graph(search.walk, search.limit)
    if graph.bytes[0] == NEVER:
        raise graph.stuck()
    search.bounds, search.corners = ByState(graph, search.ways.lower), [min((graph.bytes[0], NEVER), *search.corners)]
    search.learn(search.run())
    search.complete()


def _fastest(search: _Search) -> None:
    """Find the fewest ticks, then bytes, or the front: by bounds that are cheap at first."""
    bounds = ByNode(search.ways.lower, search.limit)
    search.bounds = bounds
    least = search.least()
    if least is None:
        raise Graph(search.walk, search.limit).stuck()
    if search.aim == "time":
        for part in _PARTS:
            search.learn(search.run(_FEW))
            least = search.least() or least
            bounds.tighten(least.ticks + (search.quickest() - least.ticks) // part)
    else:
        search.learn(search.run(_FEW))
        bounds.tighten()
        for _ in range(_FRONTS):
            bounds.bound(search.convex())
            search.learn(search.run(_MORE))
        bounds.bound(search.convex())
    search.learn(search.run(_MORE if search.times.clock.overtakes else None))
    search.complete()
