"""MILP model of F4 engine size (PuLP): the sets, variables and constraints of `formulations.engine_size`."""

from __future__ import annotations

from collections.abc import Sequence

import pulp

from formulations.engine_size import Rates, Size

__all__ = ["size_model"]


def size_model(
    sizes: Sequence[Size], aim: Rates, dsps: int, brams: int
) -> tuple[pulp.LpProblem, list[pulp.LpVariable]]:
    """Return the model, a minimisation of the negative rate, and y in the order of the sizes."""
    problem = pulp.LpProblem("size", pulp.LpMinimize)
    y = [pulp.LpVariable(f"y_{size.e_in}_{size.e_out}", cat="Binary") for size in sizes]
    for name in ("e_in", "e_out"):
        values = sorted({getattr(size, name) for size in sizes})
        one = {value: pulp.LpVariable(f"{name}_{value}", 0, 1) for value in values}
        problem += pulp.lpSum(one.values()) == 1
        for value in values:
            problem += pulp.lpSum(v for v, s in zip(y, sizes, strict=True) if getattr(s, name) == value) == one[value]
    problem += pulp.lpSum(size.dsps * v for v, size in zip(y, sizes, strict=True)) <= dsps
    problem += pulp.lpSum(size.brams * v for v, size in zip(y, sizes, strict=True)) <= brams
    if aim == "mean":
        problem.setObjective(pulp.lpSum(-size.value("mean") * v for v, size in zip(y, sizes, strict=True)))
        return problem, y
    worst = pulp.LpVariable("worst", 0)
    for n in range(len(sizes[0].rates)):
        problem += worst <= pulp.lpSum(size.rates[n] * v for v, size in zip(y, sizes, strict=True))
    problem.setObjective(-worst)
    return problem, y
