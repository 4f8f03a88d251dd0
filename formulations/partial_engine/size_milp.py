"""MILP model of F4 engine size (PuLP): the sets, variables and constraints of `formulations.partial_engine.size`."""

from __future__ import annotations

from collections.abc import Sequence

import pulp

from formulations.partial_engine.size import Rates, Size, ranked

__all__ = ["size_model"]


def size_model(sizes: Sequence[Size], aim: Rates, dsps: int, brams: int) -> tuple[pulp.LpProblem, list[int]]:
    """Return the model, which minimises a negative rank, and the levels."""
    problem = pulp.LpProblem("size", pulp.LpMinimize)
    kept = [size.dsps <= dsps and size.brams <= brams for size in sizes]
    y = [
        pulp.LpVariable(f"y_{size.e_in}_{size.e_out}", 0, int(may), cat="Integer")
        for size, may in zip(sizes, kept, strict=True)
    ]
    for name in ("e_in", "e_out"):
        values = sorted({getattr(size, name) for size in sizes})
        one = {value: pulp.LpVariable(f"{name}_{value}", 0, 1) for value in values}
        problem += pulp.lpSum(one.values()) == 1
        for value in values:
            problem += pulp.lpSum(v for v, s in zip(y, sizes, strict=True) if getattr(s, name) == value) == one[value]
    levels, ranks = ranked(sizes, aim)
    k = pulp.LpVariable("k", 0, len(levels) - 1)
    for row in ranks:
        problem += k <= pulp.lpSum(rank * v for v, rank in zip(y, row, strict=True))
    problem.setObjective(-k)
    return problem, levels
