"""What every engine takes and returns."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from formulations.tiling.pick import Pick
from formulations.tiling.space import Space
from hwmodels.nest.price import price
from hwmodels.schedule import Nest
from solver.plan import proof

Status = Literal["OPTIMAL", "FEASIBLE", "INFEASIBLE", "NO_SOLUTION_FOUND"]
#: The problems an engine handles when it handles all.
ALL = frozenset({"tiling", "slicing"})


@dataclass(frozen=True)
class Limits:
    """Limits of one engine call."""

    time_limit_s: float | None = None
    end_s: float | None = None
    """Seconds until nothing may take time any more, bounds of what is left open included."""
    bounding: bool = True
    """Whether solvers may use a heuristic upper bound and separable lower bounds to remove choices first."""

    def ends(self) -> tuple[float | None, float | None]:
        """Both limits from now on, as times of `time.monotonic`."""
        now = time.monotonic()
        deadline, end = (None if seconds is None else now + seconds for seconds in (self.time_limit_s, self.end_s))
        return deadline, end


@dataclass(frozen=True)
class EngineResult:
    """The answer for one layer; `bound` is a proven lower bound on the first objective."""

    status: Status
    nest: Nest | None
    measures: dict[str, int] | None
    bound: int | None
    wall_s: float
    versions: str = ""
    stats: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Engine:
    """A way of deciding a `Space`."""

    name: str
    summary: str
    proves: bool
    run: Callable[[Space, tuple[str, ...], Limits], EngineResult]
    problems: frozenset[str] = ALL


def told(objectives: tuple[str, ...], proven: tuple[str, ...], *, stopped: bool) -> dict[str, object]:
    """What a plan says about its proof: which of several objectives are proven, and that a search was left open."""
    said: dict[str, object] = {**proof(objectives, proven)}
    return {**said, "left_open": True} if stopped and proven != objectives else said


def guessed(space: Space, find: Callable[[], Pick | Nest | None]) -> EngineResult:
    """Run a heuristic: its plan proves nothing."""
    start = time.monotonic()
    found, version = find(), f"numpy {np.__version__}"
    nest = found.nest if isinstance(found, Pick) else found
    wall = time.monotonic() - start
    if nest is None:
        return EngineResult("NO_SOLUTION_FOUND", None, None, None, wall, version)
    return EngineResult("FEASIBLE", nest, price(space.layer, space.machine, nest).measures, None, wall, version)
