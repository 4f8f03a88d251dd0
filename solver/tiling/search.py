"""How one layer is decided: by the loop of all formulations, or with hardly any time by the first plan that fits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile

from formulations.clock import ENDLESS, Clock
from formulations.tiling.nests import NESTS, Nests
from formulations.tiling.part import NestPart
from formulations.tiling.space import Space
from hwmodels.outcome import MEASURES
from hwmodels.schedule import Nest
from solver.deciding import Job
from solver.plan import proof
from solver.search import Answer, hasty, settled

#: Seconds that a quick plan may take.
_QUICK_S = 5.0


def job_of(formulation: Nests, part: NestPart, objectives: tuple[str, ...], engine: str) -> Job:
    """Return the work of deciding a layer."""
    return Job(part, objectives, partial(searched, formulation, engine), partial(hasty, formulation), _QUICK_S)


def searched(
    formulation: Nests, engine: str, part: NestPart, objectives: tuple[str, ...], clock: Clock
) -> Answer[Nest]:  # fmt: skip
    """Decide a layer, and say which of several objectives are proven; it is one piece, whatever was asked."""
    said = settled(formulation, part, objectives, engine, clock)
    proven = takewhile(lambda name: said.bounds[name] == said.values.get(name), objectives)
    claims = proof(objectives, proven) if said.values and engine in formulation.engines else {}
    stats = {**said.stats, **claims}
    return replace(said, stats={name: value for name, value in stats.items() if name != "pieces"})


def decide(
    space: Space, objectives: Sequence[str], engine: str = "exhaustive", clock: Clock = ENDLESS, *,
    bounding: bool = True,
) -> Answer[Nest]:  # fmt: skip
    """Decide a space by an engine of its problem; the values are time, bytes and energy."""
    start, part = time.monotonic(), NestPart.of(space, bounding=bounding)
    said = searched(NESTS[space.problem], engine, part, tuple(objectives), clock)
    values = {name: said.values[name] for name in MEASURES if said.values}
    return replace(said, values=values, wall_s=time.monotonic() - start)
