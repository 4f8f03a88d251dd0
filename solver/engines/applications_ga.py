"""Engine ``ga`` for several applications: the genetic scheduler of the source, with DEAP and SPEA2.

A chromosome is the processor of every task. There are as many objectives as applications, their responses, and energy;
what misses a deadline is penalised for each such application. Selection is SPEA2, on parents and children together.

Source: `heterogeneous_mapping_and_banks` 3.3.5.2, 3.3.4.3.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from deap import base, tools

from formulations.applications import Schedule, Several, responses
from formulations.applications_search import starts
from solver.applications_engines import Asked, Found

__all__ = ["evolve", "run"]

#: Chromosomes of a generation; generations without a time limit; chances of crossover, and of mutation, by task.
_SIZE, _GENERATIONS, _CROSS, _MUTATE = 60, 100, 0.7, 0.02
#: What a missed deadline adds, in periods.
_PENALTY = 10


class _Chromosome(list[int]):
    """With its objectives."""

    def __init__(self, genes: Sequence[int], weights: tuple[float, ...]) -> None:
        super().__init__(genes)
        self.fitness: Any = _fitness(weights)


def _fitness(weights: tuple[float, ...]) -> Any:
    """DEAP reads the weights from the class."""
    return type("_Fitness", (base.Fitness,), {"weights": weights})()


def run(asked: Asked, *, seed: int = 0) -> Found:
    """Evolve; of the last generation the best for the objective."""
    found = [asked.several.plain(tuple(one)) for one in evolve(asked, seed=seed)]
    best = asked.best(found)
    stats = {"seed": seed, "front": len(found)}
    return Found(best, None, "NO_SOLUTION_FOUND" if best is None else "FEASIBLE", f"deap {version('deap')}", {**stats})


def evolve(asked: Asked, *, seed: int) -> list[tuple[int, ...]]:
    """Return the assignments of the last generation."""
    several, start, rng = asked.several, time.monotonic(), random.Random(seed)
    able, weights = several.mapping.able, (-1.0,) * (len(several.streams) + 1)
    first = [one.at for one in starts(several, asked.goal, _SIZE // 2)]
    first += [tuple(rng.choice(few) for few in able) for _ in range(_SIZE - len(first))]
    population = [_priced(several, _Chromosome(one, weights)) for one in first]
    generation, state = 0, random.getstate()
    random.seed(seed)  # DEAP draws from the module's generator
    try:
        while _goes_on(asked, start, generation):
            children = [_Chromosome(rng.choice(population), weights) for _ in range(_SIZE)]
            for one, two in zip(children[::2], children[1::2], strict=True):
                if len(one) > 2 and rng.random() < _CROSS:
                    tools.cxTwoPoint(one, two)
            for child in children:
                for i, few in enumerate(able):
                    if rng.random() < _MUTATE:
                        child[i] = rng.choice(few)
            population = tools.selSPEA2(population + [_priced(several, one) for one in children], _SIZE)
            generation += 1
    finally:
        random.setstate(state)
    return list(dict.fromkeys(tuple(one) for one in population))


def _goes_on(asked: Asked, start: float, generation: int) -> bool:
    limit = asked.time_limit_s
    return generation < _GENERATIONS if limit is None else time.monotonic() - start < limit


def _priced(several: Several, one: _Chromosome) -> _Chromosome:
    schedule = Schedule(tuple(one), tuple(range(len(one))))
    values: list[float] = []
    for response, stream in zip(responses(several, schedule), several.streams, strict=True):
        late = response is None or response > stream.deadline
        values.append((2 * stream.period if response is None else response) + late * _PENALTY * stream.period)
    one.fitness.values = (*values, several.mapping.price(schedule.at).energy)
    return one
