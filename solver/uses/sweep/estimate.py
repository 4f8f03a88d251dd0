"""How much a sweep asks before it is run: points, distinct tasks, combinations that mean nothing, and about how long.

The time is that of some tasks, evenly spaced over those that wait, times their number: tried in this process for a few
seconds. One that does not end within what is left of these seconds counts as long as it was given: then the estimate is
"at least".
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from solver.ask.options import processors
from solver.ask.watch import Watch
from solver.uses.sweep.rows import duration
from solver.uses.sweep.tasks import Expansion, Point, Task

#: Seconds in which tasks are tried, the most of them, and the seconds of one.
_TRY_S, _MOST, _ONE_S = 5.0, 24, 2.0
#: Reasons why points mean nothing that are said.
_SAID = 5


@dataclass(frozen=True)
class Estimate:
    """What a sweep asks."""

    points: int
    tasks: int
    """Distinct ones that can be solved."""
    bad: Mapping[str, int] = field(default_factory=dict)
    """Points that mean nothing by what is said of them."""
    before: int = 0
    """Tasks that a file of results has already."""
    tried: int = 0
    seconds: float | None = None
    """Of one task, the mean of those that were tried."""
    at_least: bool = False
    """Whether some of them did not end in time."""
    limit_s: float | None = None
    """The most that all tasks can take by their time limits; None if one has none."""
    jobs: int = 1

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        total = None if self.seconds is None else self.seconds * (self.tasks - self.before) / self.jobs
        return {
            "points": self.points, "tasks": self.tasks, "done": self.before, "bad": dict(self.bad), "tried": self.tried,
            "seconds_a_task": self.seconds, "estimate_s": total, "at_least": self.at_least, "limit_s": self.limit_s,
            "jobs": self.jobs,
        }  # fmt: skip

    def lines(self) -> list[str]:
        """Return the same for people."""
        done = f"; {self.before:,} of them are done" if self.before else ""
        bad = sum(self.bad.values())
        said = f"; {_points(bad)} mean{'s' * (bad == 1)} nothing" if bad else ""
        lines = [f"{self.points:,} points, {self.tasks:,} distinct tasks{done}{said}"]
        lines += [f"{_points(number)}: {error}" for error, number in list(self.bad.items())[:_SAID]]
        if len(self.bad) > _SAID:
            more = len(self.bad) - _SAID
            lines.append(f"and {more:,} more kind{'s' * (more > 1)} of such points")
        if self.seconds is not None:
            left = self.tasks - self.before
            least = "at least " if self.at_least else "about "
            lines.append(
                f"{least}{duration(self.seconds * left / self.jobs)}: {left:,} tasks x {self.seconds:.3g} s (the mean"
                f" of {self.tried}) in {self.jobs} processes"
            )
        if self.limit_s is not None:
            lines.append(f"at most {duration(self.limit_s / self.jobs)} by the time limits")
        return lines


def _points(number: int) -> str:
    return f"{number:,} point{'s' * (number != 1)}"


def estimate(points: Expansion, *, jobs: int = 0, known: frozenset[str] = frozenset()) -> Estimate:
    """Count the tasks of a sweep and try some.

    Parameters
    ----------
    points : Expansion
        The sweep.
    jobs : int
        Processes that will run it; 0: as many as there are processors.
    known : set of str
        Digests of tasks that are done.
    """
    seen: dict[int, bool] = {}
    bad: dict[str, int] = {}
    number, limit = 0, 0.0
    for point in points:
        number += 1
        key = int(point.digest.removeprefix("sha256:")[:15], 16)
        if point.error:
            bad[point.error] = bad.get(point.error, 0) + 1
        elif key not in seen:
            seen[key] = point.digest in known
            limit += point.asked.time_limit_s or float("inf")
    before = sum(seen.values())
    found = Estimate(
        number, len(seen), dict(sorted(bad.items(), key=lambda item: -item[1])), before,
        limit_s=None if limit in (0.0, float("inf")) else limit, jobs=jobs or processors(),
    )  # fmt: skip
    tried, at_least = _tried(_sample(points, {key for key, done in seen.items() if not done}))
    if not tried:
        return found
    return replace(found, tried=len(tried), seconds=sum(tried) / len(tried), at_least=at_least)


def _sample(points: Expansion, keys: set[int]) -> list[Point]:
    """Points of some tasks, evenly spaced, in an order that spreads early ones."""
    step = max(1, len(keys) // _MOST)
    chosen: list[Point] = []
    count = 0
    for point in points:
        key = int(point.digest.removeprefix("sha256:")[:15], 16)
        if key in keys:
            keys.discard(key)
            count += 1
            if (count - 1) % step == step // 2:
                chosen.append(point)
    return [point for k in range(5) for point in chosen[k::5]]


def _tried(points: list[Point]) -> tuple[list[float], bool]:
    """Seconds of tasks, as many as there is time for, and whether some did not end."""
    seconds: list[float] = []
    at_least = False
    end = time.monotonic() + _TRY_S
    with Watch() as watch:
        if points:
            _task(points[0], _ONE_S).decide(None, watch)  # imports, and what is computed once
        for point in points:
            left = min(_ONE_S, end - time.monotonic())
            if left <= 0.1 or watch.stopped:
                break
            limit = point.asked.time_limit_s
            said = _task(point, left if limit is None else min(left, limit)).decide(None, watch)
            seconds.append(said.seconds)
            at_least = at_least or (bool(said.stopped) and (limit is None or limit > left))
    return seconds, at_least


def _task(point: Point, limit_s: float) -> Task:
    asked, target = replace(point.asked, time_limit_s=limit_s), point.target
    return Task(0, bool(target.layer), target.text, point.machine.text, asked, target.layers)
