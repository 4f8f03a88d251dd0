"""Exact Pareto fronts of a layer: which plans no other beats in all of bytes, time and on-chip memory.

Two axes (a, b): minimise a, then b among the least a; then the same below that b, until nothing is left. Each step is
a proven lexicographic optimum, so the points are the whole front. With three axes (bytes, time, memory) the front of
two is found for the whole memory and again for one byte less than the largest point of it took, and so on: a point of
the front is found at the first memory size that no point of the front for it exceeds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from formulations.space import Space
from hwmodels.schedule import Nest
from instances.errors import InputError, choices
from solver.engines.exhaustive import Search

__all__ = ["AXES", "Front", "Point", "front"]

#: What a front may be about, with units.
AXES: dict[str, str] = {"bytes": "bytes", "time": "ticks", "ocm": "bytes on chip"}


@dataclass(frozen=True)
class Point:
    """One plan of a front: its values along the axes, all its measures and its nest."""

    values: tuple[int, ...]
    measures: dict[str, int]
    nest: Nest


@dataclass(frozen=True)
class Front:
    """The points in ascending order of the first axis; `complete` unless the time ran out."""

    axes: tuple[str, ...]
    points: tuple[Point, ...]
    complete: bool


def front(space: Space, axes: Sequence[str] = ("bytes", "time"), *, time_limit_s: float | None = None) -> Front:
    """Return all plans of `space` that no other is at or below in all `axes` and below in one.

    Raises
    ------
    InputError
        If the axes are not two or three different ones of `AXES`, the machine has no shared memory ("ocm"), or its
        time is a timeline, which ties cannot be broken for exactly.
    """
    wanted = tuple(axes)
    if not 2 <= len(wanted) <= 3 or len(set(wanted)) < len(wanted) or set(wanted) - set(AXES):
        raise InputError(f"axes {','.join(wanted)}: expected two or three of {choices(AXES)}")
    if "ocm" in wanted and space.machine.ocm_bytes is None:
        raise InputError(f"machine {space.machine.name}: axis ocm needs a shared memory (ocm_bytes)")
    if "time" in wanted and any(member.timeline for member in space.members):
        raise InputError(f"machine {space.machine.name}: double-buffered time has no exact front; set overlap=serial")
    deadline = None if time_limit_s is None else time.monotonic() + time_limit_s
    points, complete = _front(space, wanted, {}, deadline)
    return Front(wanted, tuple(sorted(_undominated(points), key=lambda p: p.values)), complete)


def _front(
    space: Space, axes: tuple[str, ...], limits: dict[str, int], deadline: float | None
) -> tuple[list[Point], bool]:
    found: list[Point] = []
    if len(axes) == 3:
        last = axes.index("ocm")
        order = (*(a for a in axes if a != "ocm"), "ocm")
        while True:
            layer, complete = _two(space, order, axes, dict(limits), deadline)
            found += layer
            if not layer or not complete:
                return found, complete
            limits = {"ocm": max(p.values[last] for p in layer) - 1}
    return _two(space, axes, axes, limits, deadline)


def _two(
    space: Space, order: tuple[str, ...], axes: tuple[str, ...], limits: dict[str, int], deadline: float | None
) -> tuple[list[Point], bool]:
    """The front of the first two axes of `order` within limits; ties by the third."""
    found: list[Point] = []
    while True:
        search = Search(space, order, deadline=deadline, kept=dict(limits))
        pick = search.run()
        if pick is None or not search.whole:
            return found, search.whole
        found.append(Point(tuple(pick.measures[a] for a in axes), pick.measures, pick.nest))
        limits[order[1]] = pick.measures[order[1]] - 1


def _undominated(points: list[Point]) -> list[Point]:
    def beaten(one: Point) -> bool:
        return any(
            two.values != one.values and all(b <= a for a, b in zip(one.values, two.values, strict=True))
            for two in points
        )

    return list({p.values: p for p in points if not beaten(p)}.values())
