"""MILP models of partial_engine (PuLP): the bounds for all orders, and the engine's size.

The bounds are those of `formulations.partial_engine.bounds`, the size is that of `formulations.partial_engine.size`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulp

from formulations.partial_engine.bounds import Bounded, bounded
from formulations.partial_engine.size import Rates, Size, ranked
from formulations.partial_engine.space import Branch


def runs_model(branches: Sequence[Branch], known: int, *, stay: bool = False) -> tuple[pulp.LpProblem, Bounded]:
    """Return the model of the bounds of some choices; some order moves `known` bytes."""
    problem = pulp.LpProblem("runs", pulp.LpMinimize)
    found = bounded(branches, known, lambda name, most: pulp.LpVariable(name, 0, most, cat="Integer"), stay=stay)
    for row in found.rows:
        problem += row
    problem.setObjective(pulp.LpAffineExpression(found.terms))
    return problem, found


def size_model(sizes: Sequence[Size], aim: Rates, dsps: int, brams: int) -> tuple[pulp.LpProblem, list[int]]:
    """Return the model, which minimises a negative rank, and the levels."""
    problem = pulp.LpProblem("size", pulp.LpMinimize)
    kept = [int(size.dsps <= dsps and size.brams <= brams) for size in sizes]
    y = [pulp.LpVariable(f"y_{n}", 0, may, cat="Integer") for n, may in enumerate(kept)]
    levels, ranks = ranked(sizes, aim)
    k = pulp.LpVariable("k", 0, len(levels) - 1)
    problem += pulp.lpSum(y) == 1
    for row in ranks:
        problem += k <= pulp.lpSum(rank * v for v, rank in zip(y, row, strict=True))
    problem.setObjective(-k)
    return problem, levels
