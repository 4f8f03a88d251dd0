"""A plan of a layer in no time, with a bound, for when a search had to end before it had one.

Example: 95 layers and a limit of 1 s. Each takes some hundredths of a second here: the first plan that fits among few
tile sizes (extents halved again and again), all operands held at one depth as in textbooks if that fits, and a bound in
closed form (`solver.engines.floors.closed`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from solver.engines.base import EngineResult, stage_of, stages
from solver.engines.exhaustive import Search
from solver.engines.floors import closed, in_unit

if TYPE_CHECKING:
    from formulations.tiling.space import Space

__all__ = ["quick"]


def quick(space: Space, objectives: tuple[str, ...], why: str) -> EngineResult:
    """Return a plan of a space, FEASIBLE with a bound; NO_SOLUTION_FOUND with a bound if none of few sizes fits.

    Parameters
    ----------
    why : str
        What ended the search; stands in the stats.
    """
    begun, machine = time.monotonic(), space.machine
    first = stages(objectives, machine)[0]
    pick = Search(space.uniform(), objectives, deadline=0.0).first(first)
    pick = pick or Search(space, objectives, deadline=0.0).first(first)
    least = closed(space.layer, machine, stage_of(objectives[0], machine))
    bound = in_unit(space.layer, machine, objectives[0], least)
    wall, stats = time.monotonic() - begun, dict[str, object](stopped=why)
    if pick is None:
        return EngineResult("NO_SOLUTION_FOUND", None, None, bound, wall, stats=stats)
    return EngineResult(
        "FEASIBLE", pick.nest, pick.measures, min(bound, pick.measures[objectives[0]]), wall, stats=stats
    )
