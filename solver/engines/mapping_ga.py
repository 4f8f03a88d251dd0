"""Engine ``ga`` for mapping: the genetic scheduler of the source, with DEAP.

A chromosome is the processor of every task. Two-point crossover, uniform mutation, tournaments, the best one kept. It
starts from everything on one processor, the list schedules and random assignments; without those seeds it is far worse
(``ga-unseeded``). A whole population is priced at once.

`front` has two objectives, period and energy, and selects by SPEA2.

Source: `heterogeneous_mapping_and_banks` 3.3.4.2 (Fig. 3.19, 3.20), which selects by SPEA2: for one objective that is
its order.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from deap import tools

from formulations.mapping.latency import latencies
from formulations.mapping.problem import Assignment, Schedule
from formulations.mapping.search import Pricer, starts
from solver.engines.genetic import spea2
from solver.mapping.base import Asked, Decided

__all__ = ["evolve", "front", "run"]

#: Chromosomes of a generation; generations without a time limit; chances of crossover, and of mutation, by task.
_SIZE, _GENERATIONS, _CROSS, _MUTATE = 120, 300, 0.7, 0.04


def run(asked: Asked, *, seeded: bool = True, seed: int = 0) -> Decided:
    """Evolve."""
    (schedule,) = asked.scheduled([evolve(asked, seeded=seeded, seed=seed)])
    return asked.answer(schedule, None, f"deap {version('deap')}", {"seed": seed})


def evolve(asked: Asked, *, seeded: bool, seed: int) -> Assignment:
    """Return the best assignment of a run."""
    rng, start, mapping = random.Random(seed), time.monotonic(), asked.mapping
    pricer = Pricer(mapping, asked.limits)
    first = [list(one) for one in starts(mapping)] if seeded else []
    first += [[rng.choice(able) for able in mapping.able] for _ in range(_SIZE - len(first))]
    population = _priced(first, pricer, asked)
    best, generation = min(population, key=lambda one: one[0]), 0
    state = random.getstate()
    random.seed(seed)  # DEAP draws from the module's generator
    try:
        while _goes_on(asked, start, generation):
            children = [list(_duel(population, rng)[1]) for _ in range(_SIZE - 1)]
            for one, two in zip(children[::2], children[1::2], strict=False):
                if len(one) > 2 and rng.random() < _CROSS:
                    tools.cxTwoPoint(one, two)
            for child in children:
                _mutate(child, mapping.able, rng)
            population = [best, *_priced(children, pricer, asked)]
            best, generation = min(population, key=lambda one: one[0]), generation + 1
    finally:
        random.setstate(state)
    return tuple(best[1])


def front(asked: Asked, *, seed: int = 0) -> list[Assignment]:
    """Return assignments that no other found beats in period and energy, by period."""
    start, mapping = time.monotonic(), asked.mapping
    pricer = Pricer(mapping, asked.limits)

    def price(found: Sequence[Assignment]) -> list[tuple[float, ...]]:
        periods, energies, kept = pricer(np.array(found, dtype=np.int64))
        broken = np.where(kept, 0.0, 2.0**60)
        return list(zip((periods + broken).tolist(), (energies + broken).tolist(), strict=True))

    found = spea2(starts(mapping), mapping.able, price, lambda n: _goes_on(asked, start, n), seed)
    kept = list[Assignment]()
    for at in sorted((at for at in found if asked.worth(Schedule(at)) is not None), key=lambda at: price([at])):
        if not kept or mapping.price(at).energy < mapping.price(kept[-1]).energy:
            kept.append(at)
    return kept


def _goes_on(asked: Asked, start: float, generation: int) -> bool:
    limit = asked.time_limit_s
    return generation < _GENERATIONS if limit is None else time.monotonic() - start < limit


Chromosome = list[int]


def _priced(found: list[Chromosome], pricer: Pricer, asked: Asked) -> list[tuple[int, Chromosome]]:
    """Values, with a penalty for what breaks a limit."""
    periods, energies, kept = pricer(np.array(found, dtype=np.int64))
    values: Any = periods if asked.aim == "period" else energies
    if asked.alone:
        _, ends = latencies(asked.mapping, np.array(found, dtype=np.int64))
        values = ends if asked.aim == "latency" else values
        kept &= ends <= (2**60 if asked.limits.latency is None else asked.limits.latency)
    values = np.where(kept, values, 2**60)
    return list(zip(values.tolist(), found, strict=True))


def _duel(population: list[tuple[int, Chromosome]], rng: random.Random) -> tuple[int, Chromosome]:
    """The best of three."""
    return min((rng.choice(population) for _ in range(3)), key=lambda one: one[0])


def _mutate(child: Chromosome, able: tuple[tuple[int, ...], ...], rng: random.Random) -> None:
    for i, few in enumerate(able):
        if rng.random() < _MUTATE:
            child[i] = rng.choice(few)
