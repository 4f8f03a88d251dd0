"""Genetic search for mapping, with DEAP: the scheduler of the source, for one objective or several.

A chromosome is the processor of every task; there is two-point crossover and uniform mutation. `evolve` has tournaments
for one objective and keeps the best one. It starts from everything on one processor, the list schedules and random
assignments; without those seeds it is far worse (``ga-unseeded``). A whole population is priced at once. `front` has
two objectives, period and energy; they and any others are selected by SPEA2.

Source: `heterogeneous_mapping_and_banks` 3.3.4.2, 3.3.4.3 (Fig. 3.19, 3.20), which selects by SPEA2: for one objective
that is its order; Zitzler et al. 2001.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, takewhile
from typing import Any, TypeVar

import numpy as np
from deap import base, tools

from formulations.clock import Clock
from formulations.mapping.engines import Asked
from formulations.mapping.latency import latencies
from formulations.mapping.search import Pricer, starts
from formulations.mapping.space import Assignment, Schedule

#: Chromosomes of a generation, and chance of mutation by task: of several objectives, and of one. Chance of crossover.
SIZE, _MUTATE, _SIZE_OF_ONE, _MUTATE_ONE, _CROSS = 60, 0.02, 120, 0.04, 0.7
#: Generations without a time limit.
_GENERATIONS = 300
#: Values of chromosomes, one tuple of objectives for each.
Price = Callable[[Sequence[Assignment]], list[tuple[float, ...]]]
Genes = TypeVar("Genes", bound=list[int])


class _Chromosome(list[int]):
    """Genes with DEAP's fitness."""

    fitness: Any


@contextmanager
def _generations(clock: Clock, most: int, seed: int) -> Iterator[Iterator[int]]:
    """Count generations: until the time is up, or so many without a limit. DEAP draws from the module's generator."""
    state = random.getstate()
    random.seed(seed)
    try:
        yield iter(range(most)) if clock.left is None else takewhile(lambda _: not clock.over, count())
    finally:
        random.setstate(state)


def _bred(
    children: list[Genes], able: Sequence[Sequence[int]], rng: random.Random, mutate: float
) -> list[Genes]:  # fmt: skip
    """Cross and mutate chromosomes."""
    for one, two in zip(children[::2], children[1::2], strict=False):
        if len(one) > 2 and rng.random() < _CROSS:
            tools.cxTwoPoint(one, two)
    for child in children:
        for i, few in enumerate(able):
            if rng.random() < mutate:
                child[i] = rng.choice(few)
    return children


# ---- one objective ---------------------------------------------------------------------------------------------------


def evolve(asked: Asked, *, seeded: bool = True, seed: int = 0) -> Assignment:
    """Return the best assignment of a run."""
    rng, mapping = random.Random(seed), asked.mapping
    asked.stats["seed"] = seed
    pricer = Pricer(mapping, asked.limits)
    first = [list(one) for one in starts(mapping)] if seeded else []
    first += [[rng.choice(able) for able in mapping.able] for _ in range(_SIZE_OF_ONE - len(first))]
    population = _priced(first, pricer, asked)
    best = min(population, key=lambda one: one[0])
    with _generations(asked.clock, _GENERATIONS, seed) as generations:
        for _ in generations:
            duels = ([rng.choice(population) for _ in range(3)] for _ in range(_SIZE_OF_ONE - 1))
            children = [list(min(few, key=lambda one: one[0])[1]) for few in duels]
            population = [best, *_priced(_bred(children, mapping.able, rng, _MUTATE_ONE), pricer, asked)]
            best = min(population, key=lambda one: one[0])
    return tuple(best[1])


def _priced(found: list[list[int]], pricer: Pricer, asked: Asked) -> list[tuple[int, list[int]]]:
    """Values, with a penalty for what breaks a limit."""
    periods, energies, kept = pricer(np.array(found, dtype=np.int64))
    values: Any = periods if asked.aim == "period" else energies
    if asked.alone:
        _, ends = latencies(asked.mapping, np.array(found, dtype=np.int64))
        values = ends if asked.aim == "latency" else values
        kept &= ends <= (2**60 if asked.limits.latency is None else asked.limits.latency)
    values = np.where(kept, values, 2**60)
    return list(zip(values.tolist(), found, strict=True))


# ---- several objectives ----------------------------------------------------------------------------------------------


def front(asked: Asked, *, seed: int = 0) -> list[Assignment]:
    """Return assignments that no other found beats in period and energy, by period."""
    mapping, pricer = asked.mapping, Pricer(asked.mapping, asked.limits)

    def price(found: Sequence[Assignment]) -> list[tuple[float, ...]]:
        periods, energies, kept = pricer(np.array(found, dtype=np.int64))
        broken = np.where(kept, 0.0, 2.0**60)
        return list(zip((periods + broken).tolist(), (energies + broken).tolist(), strict=True))

    found = spea2(starts(mapping), mapping.able, price, asked.clock, seed)
    kept = list[Assignment]()
    for at in sorted((at for at in found if asked.worth(Schedule(at)) is not None), key=lambda at: price([at])):
        if not kept or mapping.price(at).energy < mapping.price(kept[-1]).energy:
            kept.append(at)
    return kept


def spea2(
    first: Sequence[Assignment], able: Sequence[Sequence[int]], price: Price, clock: Clock, seed: int,
    generations: int = _GENERATIONS,
) -> list[Assignment]:  # fmt: skip
    """Return the last generation, each assignment once; all objectives are minimised.

    `first`: what half of the first generation is at most; random assignments fill it up. `generations`: how many there
    are without a time limit.
    """
    rng = random.Random(seed)
    genes = [list(one) for one in first[: SIZE // 2]]
    genes += [[rng.choice(few) for few in able] for _ in range(SIZE - len(genes))]
    population = _valued([_Chromosome(one) for one in genes], price)
    with _generations(clock, generations, seed) as counted:
        for _ in counted:
            children = [_Chromosome(rng.choice(population)) for _ in range(SIZE)]
            population = tools.selSPEA2(population + _valued(_bred(children, able, rng, _MUTATE), price), SIZE)
    return list(dict.fromkeys(tuple(one) for one in population))


def _valued(found: list[_Chromosome], price: Price) -> list[_Chromosome]:
    values = price([tuple(one) for one in found])
    kind = type("_Fitness", (base.Fitness,), {"weights": (-1.0,) * len(values[0])})  # DEAP reads them from the class
    for one, value in zip(found, values, strict=True):
        one.fitness = kind(value)
    return found
