"""Exact fronts of a space of nests: which plans no other beats in all of bytes, time and on-chip memory.

Two axes (a, b): minimise a, then b among the least a; then the same below that b, until b is the least there is, or
nothing is left. Where each step is a proven lexicographic optimum the points are the whole front (`NestFront.proven`);
else they are the front of the nests that were looked at, and a nest may lie below it. With three axes (bytes, time,
memory) the front of two is found for the whole memory and again for one byte less than the largest point of it took,
and so on: a point of the front is found at the first memory size that no point of the front for it exceeds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from formulations.tiling.search import Search
from formulations.tiling.space import Space
from hwmodels.schedule import Nest
from instances.errors import InputError, choices

#: What a front may be about, with units.
AXES: dict[str, str] = {"bytes": "bytes", "time": "ticks", "ocm": "bytes on chip"}


@dataclass(frozen=True)
class Point:
    """One plan of a front: its values along the axes, all its measures, its bytes on chip and its nest."""

    values: tuple[int, ...]
    measures: dict[str, int]
    ocm: int
    nest: Nest


@dataclass(frozen=True)
class NestFront:
    """The points in ascending order of the first axis; `complete` unless the time ran out.

    `proven` if no nest whatever lies below the front; else it is that of the candidates.
    """

    axes: tuple[str, ...]
    points: tuple[Point, ...]
    complete: bool
    proven: bool


def front_of_space(
    space: Space, axes: Sequence[str] = ("bytes", "time"), *, time_limit_s: float | None = None
) -> NestFront:
    """Return all plans of `space` that no other is at or below in all `axes` and below in one.

    Raises InputError if the axes are not two or three different ones of `AXES`, the machine has no shared memory
    ("ocm"), or its time is a timeline, which ties cannot be broken for exactly.
    """
    wanted = tuple(axes)
    if not 2 <= len(wanted) <= 3 or len(set(wanted)) < len(wanted) or set(wanted) - set(AXES):
        raise InputError(f"axes {','.join(wanted)}: expected two or three of {choices(AXES)}")
    if "ocm" in wanted and space.machine.ocm_bytes is None:
        raise InputError(f"machine {space.machine.name}: axis ocm needs a shared memory (ocm_bytes)")
    if "time" in wanted and any(member.timeline for member in space.members):
        raise InputError(f"machine {space.machine.name}: double-buffered time has no exact front; set overlap=serial")
    deadline = None if time_limit_s is None else time.monotonic() + time_limit_s
    points, complete, proven = _front(space, wanted, {}, deadline)
    return NestFront(wanted, tuple(sorted(unbeaten(points), key=lambda p: p.values)), complete, complete and proven)


def _front(
    space: Space, axes: tuple[str, ...], limits: dict[str, int], deadline: float | None
) -> tuple[list[Point], bool, bool]:
    found: list[Point] = []
    proven = True
    if len(axes) == 3:
        last = axes.index("ocm")
        order = (*(a for a in axes if a != "ocm"), "ocm")
        while True:
            layer, complete, sure = _two(space, order, axes, dict(limits), deadline)
            found, proven = found + layer, proven and sure
            if not layer or not complete:
                return found, complete, proven
            limits = {"ocm": max(p.values[last] for p in layer) - 1}
    return _two(space, axes, axes, limits, deadline)


def _two(
    space: Space, order: tuple[str, ...], axes: tuple[str, ...], limits: dict[str, int], deadline: float | None
) -> tuple[list[Point], bool, bool]:
    """The front of the first two axes of `order` within limits, ties by the third; whether it is whole, and proven."""
    found: list[Point] = []
    proven, end = True, _least(space, order[1], limits, deadline)
    while True:
        search = Search(space, order, deadline=deadline, kept=dict(limits))
        pick = search.run()
        proven &= search.whole if pick is None else search.proven == search.aims
        late = search.stopped and search.ties  # else only ties by other measures were cut short
        if pick is None or late:
            return found, not late, proven
        outcome = pick.branch.outcome(pick.s, pick.q)
        values = tuple(pick.measures[a] for a in axes)
        found.append(Point(values, outcome.measures, max(outcome.occupancy_bytes.values()), pick.nest))
        if pick.measures[order[1]] == end:
            return found, True, proven
        limits[order[1]] = pick.measures[order[1]] - 1


def _least(space: Space, axis: str, limits: dict[str, int], deadline: float | None) -> int | None:
    """The least along an axis by itself, if it is proven: often it is where nothing below it with time is refuted."""
    search = Search(space, (axis,), deadline=deadline, kept=dict(limits), polishing=False)
    pick = search.run()
    return pick.measures[axis] if pick is not None and search.whole else None


def unbeaten(points: list[Point]) -> list[Point]:
    """Return the points that no other is at or below in all axes, one of those with equal values."""

    def beaten(one: Point) -> bool:
        return any(
            two.values != one.values and all(b <= a for a, b in zip(one.values, two.values, strict=True))
            for two in points
        )

    return list({p.values: p for p in points if not beaten(p)}.values())
