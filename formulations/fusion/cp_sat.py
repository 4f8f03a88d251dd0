"""CP-SAT model of F11 fusion: the variables, rows and objective of `formulations.fusion.linear` on Booleans.

The linear relaxation carries the proof, so it is solved in full (`linearization_level` 2), as in problem joint.
"""

from __future__ import annotations

from collections.abc import Sequence

from ortools.sat.python import cp_model

from formulations.fusion.linear import Limit, Linear
from formulations.fusion.problem import Fusion, Taken
from formulations.problem import Model


def cp_sat(fusion: Fusion, limits: Sequence[Limit] = ()) -> Model[tuple[Taken, ...]]:
    """Build the model; `limits`: what a byte and a MAC count of a measure, and the most of it."""
    linear = Linear(fusion, limits)
    model = cp_model.CpModel()
    xs = [model.new_bool_var(f"x{number}") for number in range(linear.size)]

    def total(terms: dict[int, int]) -> cp_model.LinearExprT:
        return cp_model.LinearExpr.weighted_sum([xs[k] for k in terms], list(terms.values()))

    for row in linear.rows:
        model.add_linear_constraint(
            total(row.terms), cp_model.INT_MIN if row.low is None else row.low,
            cp_model.INT_MAX if row.high is None else row.high,
        )  # fmt: skip
    model.minimize(total(linear.cost))
    return Model(
        model, lambda solver: linear.path(lambda k: solver.boolean_value(xs[k])), linear.base, linear.unit,
        parameters={"linearization_level": 2}, turns=True,
    )  # fmt: skip
