"""How one layer is decided: by an engine, or with hardly any time by the first plan that fits.

Example: 95 layers and a limit of 1 s. Each takes some hundredths of a second here: the first plan that fits among few
tile sizes (extents halved again and again), all operands held at one depth as in textbooks if that fits, and a bound in
closed form (`formulations.tiling.floors.closed`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from formulations.clock import Clock
from formulations.tiling.part import NestPart
from hwmodels.schedule import Nest
from instances.jsonfile import LARGEST_INTEGER
from solver.formulated import Job
from solver.plan import Stat
from solver.search import Answer, unanswered

if TYPE_CHECKING:
    from solver.engines.base import Engine, EngineResult

#: Seconds that a quick plan may take.
_QUICK_S = 5.0


def job_of(part: NestPart, objectives: tuple[str, ...], engine: Engine, *, bounding: bool = True) -> Job:
    """Return the work of deciding a layer."""
    return Job(part, objectives, partial(_searched, engine, bounding), _quick, _QUICK_S)


def _searched(
    engine: Engine, bounding: bool, part: NestPart, objectives: tuple[str, ...], clock: Clock, end_s: float | None
) -> Answer[Nest]:
    """Run an engine; where one that proves has no plan a quick one stands in, with the better bound of both."""
    from solver.engines.base import Limits  # late: importing the engines' package imports every solver

    if part.space.crowded:  # no engine needs to look for what does not fit with the smallest tiles
        return Answer(None, {}, dict.fromkeys(objectives), "INFEASIBLE")
    left = None if clock.left is None else max(0.01, clock.remaining)  # 0 would mean no limit to some solvers
    said = _answer(part, objectives, engine.run(part.space, objectives, Limits(left, end_s, bounding)))
    if said.status != "NO_SOLUTION_FOUND" or not engine.proves:
        return said
    quick, first = _quick(part, objectives), objectives[0]
    bound = min(max(said.bound or 0, quick.bound or 0), quick.values.get(first, LARGEST_INTEGER))
    stats = {**said.stats, **quick.stats, "stopped": "time limit"}
    return replace(quick, bounds={**quick.bounds, first: bound}, versions=said.versions, stats=stats)


def _answer(part: NestPart, objectives: tuple[str, ...], found: EngineResult) -> Answer[Nest]:
    """What an engine says; bounds of the later objectives are their values where it calls them proven."""
    proven = objectives if found.status == "OPTIMAL" else str(found.stats.get("proven", "")).split(",")
    values, nest = found.measures or {}, None if found.nest is None else found.nest.at(dict(part.homes))
    bounds = {name: values.get(name) if name in proven else None for name in objectives}
    bounds[objectives[0]] = None if found.bound is None else int(found.bound)
    return Answer(nest, values, bounds, found.status, found.versions, _plain(found.stats))


def _quick(part: NestPart, objectives: tuple[str, ...]) -> Answer[Nest]:
    """Return a plan in no time, FEASIBLE with a bound; NO_SOLUTION_FOUND with a bound if none of few sizes fits."""
    from formulations.tiling.pick import stages
    from formulations.tiling.search import Search

    first, said = stages(objectives, part.on)[0], unanswered(part, objectives)
    pick = Search(part.space.uniform(), objectives, deadline=0.0).first(first)
    pick = pick or Search(part.space, objectives, deadline=0.0).first(first)
    if pick is None:
        return said
    bounds = {name: None if bound is None else min(bound, pick.measures[name]) for name, bound in said.bounds.items()}
    return Answer(pick.nest.at(dict(part.homes)), pick.measures, bounds, "FEASIBLE")


def _plain(stats: Mapping[str, object]) -> dict[str, Stat]:
    """Return engine statistics as plain JSON values."""
    plain: dict[str, Stat] = {}
    for name, value in stats.items():
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            value = None
        plain[name] = value if value is None or isinstance(value, bool | int | float | str) else str(value)
    return plain
