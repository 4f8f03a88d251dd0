"""F6 banks in time: labels of a network, and how they follow each other, stage by stage (`formulations.bank_front`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from formulations.bank_bounds import Point
from formulations.bank_network import Visit
from formulations.bank_overtaking import Complete
from formulations.bank_tasks import Program, Task
from formulations.bank_time import Programs
from formulations.bank_times import Times
from formulations.bank_timing import Timed

__all__ = ["Label", "Onward", "Room", "Ways", "fits"]


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


class Label(NamedTuple):
    """A path to a node: bytes, ticks, and what is then waited for the first weights of the next stage."""

    bytes: int
    ticks: int
    wait: int
    way: Way | None

    @property
    def point(self) -> Point:
        """What it costs."""
        return Point(self.bytes, self.ticks)

    @property
    def ready(self) -> int:
        """When the first weights of the next stage are there."""
        return self.ticks + self.wait


class Room(NamedTuple):
    """What there is room for: bytes, ticks until the next first weights are there, and sums ``p*bytes + q*ticks``."""

    bytes: int
    ready: int
    sums: list[tuple[int, int, int]]


class Onward:
    """The labels that follow those of one node with one visit; `waiting`: by what they wait for its first weights."""

    def __init__(
        self, ways: Ways, visit: Visit, direction: int, waiting: dict[int, list[Label]], *, bounded: bool
    ) -> None:
        self.ways, self.visit, self.direction, self.waiting, self.bounded = ways, visit, direction, waiting, bounded
        self._programs: dict[tuple[int, int], Programs] = {}

    def programs(self, following: int, wait: int) -> Programs:
        """The programs of the visit."""
        key = following, wait
        if key not in self._programs:
            found = self.ways.times.programs(self.visit, self.direction, following=following, wait=wait)
            self._programs[key] = found
        return self._programs[key]

    def labels(self, task: Task, program: Program, following: int, rooms: list[Room]) -> Iterator[Label]:
        """What comes of a task, where there is room; `program` moves the fewest bytes."""
        visit, fewest, least = self.visit, self.visit.bytes(task, program), 0
        if self.bounded:  # what the stage takes at least, from its first weights to the next one's
            lower = self.ways.lower
            hidden = lower.programs(visit, self.direction, following=following, wait=lower.hidden)
            least = hidden.bound(task) - lower.hidden
        for wait, labels in self.waiting.items():
            going = [label for label in labels if fits(rooms, label.bytes + fewest, label.ready + least)]
            if not going:
                continue
            for one in self._of(task, following, wait, going, rooms):
                size = visit.bytes(task, one.program)
                for label in going:
                    spent, ticks = label.bytes + size, label.ticks + one.ticks
                    if fits(rooms, spent, ticks + one.wait):
                        yield Label(spent, ticks, one.wait, Way(label, visit, self.direction, task, one))

    def _of(self, task: Task, following: int, wait: int, going: Sequence[Label], rooms: list[Room]) -> Sequence[Timed]:
        """The programs of a task that labels with this wait may go on with."""
        if self.ways.complete is None:
            return self.programs(following, wait).of(task)
        latest = max(room.ready for room in rooms) - min(label.ticks for label in going)
        bounds = self.ways.lower.programs(self.visit, self.direction, following=following, wait=wait).of(task)
        if all(one.ticks + one.wait > latest for one in bounds):
            return ()
        quick = self.programs(following, wait)
        return self.ways.complete.of(task, self.visit.prices, quick.timing, wait, latest, quick.of(task))


def fits(rooms: list[Room], spent: int, ready: int) -> bool:
    """Whether there is room for so much."""
    for most, latest, sums in rooms:
        if spent <= most and ready <= latest and (not sums or all(p * spent + q * ready <= at for p, q, at in sums)):
            return True
    return False
