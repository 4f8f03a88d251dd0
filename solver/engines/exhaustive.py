"""Engine ``exhaustive``: the search of `formulations.tiling.search`."""

from __future__ import annotations

import time

import numpy as np

from formulations.tiling.floors import floor
from formulations.tiling.pick import proven_of
from formulations.tiling.search import Search
from formulations.tiling.space import Space
from solver.engines.base import EngineResult, Limits, Status, told


def run(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Look at every candidate of the space; OPTIMAL if every objective asked for is proven."""
    deadline, end = limits.ends()
    return decided(Search(space, objectives, limits.bounding, deadline, end=end), f"numpy {np.__version__}")


def decided(search: Search, version: str) -> EngineResult:
    """Run a search and return what it says: OPTIMAL if every objective asked for is proven."""
    start, space, objectives = time.monotonic(), search.space, search.objectives
    try:
        search.run()
    except KeyboardInterrupt:
        search.broken = True
    pick, stats, aim = search.best, search.stats, search.aims[0]
    wall = time.monotonic() - start
    if pick is None:
        none: Status = "INFEASIBLE" if search.whole and not search.broken else "NO_SOLUTION_FOUND"
        bound = None if none == "INFEASIBLE" else floor(space, objectives[0], search.bound, hurry=search.hurried)
        return EngineResult(none, None, None, bound, wall, version, stats)
    proven = proven_of(objectives, space.machine, search.proven)
    bound = pick.measures[objectives[0]]
    if not proven:
        bound = min(bound, floor(space, objectives[0], search.bounds.get(aim), hurry=search.hurried))
    stats |= told(objectives, proven, stopped=search.broken or (search.stopped and search.ties))
    if not search.ties:
        stats["ties"] = "broken among some of the candidates"
    status: Status = "OPTIMAL" if proven == objectives else "FEASIBLE"
    return EngineResult(status, pick.nest, pick.measures, bound, wall, version, stats)
