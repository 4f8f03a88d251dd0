"""Genetic search for several objectives with DEAP: two-point crossover, uniform mutation, selection by SPEA2.

A chromosome is the processor of every task. All objectives are minimised.

Source: `heterogeneous_mapping_and_banks` 3.3.4.2, 3.3.4.3 (DEAP, SPEA2); Zitzler et al. 2001.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from deap import base, tools

from formulations.mapping.problem import Assignment

__all__ = ["CROSS", "SIZE", "spea2"]

#: Chromosomes of a generation, chances of crossover, and of mutation by task.
SIZE, CROSS, _MUTATE = 60, 0.7, 0.02
#: Values of chromosomes, one tuple of objectives for each.
Price = Callable[[Sequence[Assignment]], list[tuple[float, ...]]]


class _Chromosome(list[int]):
    """Genes with DEAP's fitness."""

    fitness: Any


def spea2(
    first: Sequence[Assignment], able: Sequence[Sequence[int]], price: Price, goes_on: Callable[[int], bool], seed: int
) -> list[Assignment]:
    """Return the last generation, each assignment once.

    Parameters
    ----------
    first : sequence of Assignment
        What half of the first generation is at most; random assignments fill it up.
    goes_on : callable
        Whether there is another generation, after some number of them.
    """
    rng = random.Random(seed)
    starts = [list(one) for one in first[: SIZE // 2]]
    starts += [[rng.choice(few) for few in able] for _ in range(SIZE - len(starts))]
    population = _valued([_Chromosome(genes) for genes in starts], price)
    generation, state = 0, random.getstate()
    random.seed(seed)  # DEAP draws from the module's generator
    try:
        while goes_on(generation):
            children = [_Chromosome(rng.choice(population)) for _ in range(SIZE)]
            for one, two in zip(children[::2], children[1::2], strict=True):
                if len(one) > 2 and rng.random() < CROSS:
                    tools.cxTwoPoint(one, two)
            for child in children:
                for i, few in enumerate(able):
                    if rng.random() < _MUTATE:
                        child[i] = rng.choice(few)
            population = tools.selSPEA2(population + _valued(children, price), SIZE)
            generation += 1
    finally:
        random.setstate(state)
    return list(dict.fromkeys(tuple(one) for one in population))


def _valued(found: list[_Chromosome], price: Price) -> list[_Chromosome]:
    values = price([tuple(one) for one in found])
    kind = type("_Fitness", (base.Fitness,), {"weights": (-1.0,) * len(values[0])})  # DEAP reads them from the class
    for one, value in zip(found, values, strict=True):
        one.fitness = kind(value)
    return found
