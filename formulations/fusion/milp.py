"""MILP model of F11 fusion (PuLP): the variables, rows and objective of `formulations.fusion.linear`.

The cost counts in the gcd of its coefficients. A group reads and writes nothing that its arc is not taken for, so the
relaxation couples arcs only by PATH and SHRINK.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulp

from formulations.fusion.linear import Limit, Linear
from formulations.fusion.problem import Fusion, Taken
from formulations.problem import Model


def milp(fusion: Fusion, limits: Sequence[Limit] = ()) -> Model[tuple[Taken, ...]]:
    """Build the model; `limits`: what a byte and a MAC count of a measure, and the most of it."""
    linear = Linear(fusion, limits)
    problem = pulp.LpProblem("fusion", pulp.LpMinimize)
    xs = [pulp.LpVariable(f"x{number}", cat="Binary") for number in range(linear.size)]
    none = pulp.LpVariable("none", 0, 0)
    for row in linear.rows:
        total = pulp.LpAffineExpression([(xs[k], n) for k, n in row.terms.items()] or [(none, 1)])
        if row.low == row.high:
            problem += total == row.low
            continue
        if row.low is not None:
            problem += total >= row.low
        if row.high is not None:
            problem += total <= row.high
    problem.setObjective(pulp.LpAffineExpression([(xs[k], n) for k, n in linear.cost.items()]))

    def decode(_: pulp.LpProblem) -> tuple[Taken, ...]:
        return linear.path(lambda k: (xs[k].value() or 0.0) > 0.5)

    return Model(problem, decode, linear.base, linear.unit, priced=True)
