"""Rows for CP-SAT."""

from __future__ import annotations

from typing import TypeVar

from ortools.sat.python import cp_model

from formulations.problem import Model
from formulations.rows import Read, Rows, Terms

S = TypeVar("S")


def cp_sat(rows: Rows, read: Read[S], *, relaxed: bool = False) -> Model[S]:
    """Return the model; `relaxed`: the linear relaxation carries the proof, and is solved in full."""
    model = cp_model.CpModel()
    xs = [model.new_int_var(0, rows.most.get(number, 1), f"x{number}") for number in range(rows.size)]

    def total(terms: Terms) -> cp_model.LinearExprT:
        return cp_model.LinearExpr.weighted_sum([xs[k] for k in terms], list(terms.values()))

    for terms, low, high in rows.rows:
        model.add_linear_constraint(
            total(terms), cp_model.INT_MIN if low is None else low, cp_model.INT_MAX if high is None else high
        )
    model.minimize(total(rows.cost))
    return Model(
        model, lambda solver: read(lambda k: solver.boolean_value(xs[k])), rows.base, rows.unit,
        parameters={"linearization_level": 2} if relaxed else {}, turns=relaxed,
    )  # fmt: skip
