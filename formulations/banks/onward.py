"""F6 banks in time: labels of a network, and how they follow each other, stage by stage (`banks.front`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from formulations.banks.bounds import Point
from formulations.banks.network import Visit
from formulations.banks.overtaking import Complete
from formulations.banks.programs import Programs
from formulations.banks.tasks import Program, Task
from formulations.banks.times import Times
from formulations.banks.timing import First, Timed


class Ways(NamedTuple):
    """Whose times labels have, whose bound them; where weights overtake, all programs, if they are asked for."""

    times: Times
    lower: Times
    complete: Complete | None = None


class Way(NamedTuple):
    """How a label came about."""

    before: Label
    visit: Visit
    direction: int
    task: Task
    timed: Timed


class Waits(NamedTuple):
    """When the first weights of a stage are there, and its biases."""

    wait: int
    late: int


class Label(NamedTuple):
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
        self, ways: Ways, visit: Visit, direction: int, waiting: dict[Waits, list[Label]], *, bounded: bool
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

    def labels(self, task: Task, program: Program, following: First, rooms: list[Room]) -> Iterator[Label]:
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
                        yield Label(spent, ticks, one.wait, way, ready, one.late)

    def _of(
        self, task: Task, following: First, waits: Waits, going: Sequence[Label], rooms: list[Room]
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
