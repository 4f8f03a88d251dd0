"""Engine ``ga`` for several applications: as many objectives as applications, their responses, and energy.

What misses a deadline is penalised for each such application; tasks run in the order of the graph.

Source: `heterogeneous_mapping_and_banks` 3.3.5.2.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.metadata import version

from formulations.applications.problem import responses
from formulations.applications.search import starts
from formulations.mapping.problem import Assignment
from solver.applications.base import Asked
from solver.engines.genetic import SIZE, spea2
from solver.mapping.base import Decided

__all__ = ["run"]

#: Generations without a time limit; what a missed deadline adds, in periods.
_GENERATIONS, _PENALTY = 100, 10


def run(asked: Asked, *, seed: int = 0) -> Decided:
    """Evolve; of the last generation the best for the objective."""
    several, begin, limit = asked.several, time.monotonic(), asked.time_limit_s
    first = [one.at for one in starts(several, asked.goal, SIZE)]

    def goes_on(generation: int) -> bool:
        return generation < _GENERATIONS if limit is None else time.monotonic() - begin < limit

    def price(found: Sequence[Assignment]) -> list[tuple[float, ...]]:
        return [_values(asked, at) for at in found]

    found = [several.plain(at) for at in spea2(first, several.mapping.able, price, goes_on, seed)]
    return asked.answer(asked.best(found), None, f"deap {version('deap')}", {"seed": seed, "kept": len(found)})


def _values(asked: Asked, at: Assignment) -> tuple[float, ...]:
    several, values = asked.several, list[float]()
    for response, stream in zip(responses(several, several.plain(at)), several.streams, strict=True):
        late = response is None or response > stream.deadline
        values.append((2 * stream.period if response is None else response) + late * _PENALTY * stream.period)
    return (*values, several.mapping.price(at).energy)
