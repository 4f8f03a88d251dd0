"""Rows for MILP solvers (PuLP)."""

from __future__ import annotations

from typing import TypeVar

import pulp

from formulations.problem import Model
from formulations.rows import Read, Rows

S = TypeVar("S")


def milp(rows: Rows, read: Read[S]) -> Model[S]:
    """Return the model; where every corner is whole, without integers: the simplex method ends in one."""
    problem = pulp.LpProblem("rows", pulp.LpMinimize)
    kind = "Continuous" if rows.integral else "Integer"
    xs = [pulp.LpVariable(f"x{number}", 0, rows.most.get(number, 1), cat=kind) for number in range(rows.size)]
    none = pulp.LpVariable("none", 0, 0)
    for terms, low, high in rows.rows:
        total = pulp.LpAffineExpression([(xs[k], n) for k, n in terms.items()] or [(none, 1)])
        if low is not None and low == high:
            problem.addConstraint(pulp.LpConstraint(total, pulp.LpConstraintEQ, rhs=low))
            continue
        if low is not None:
            problem.addConstraint(pulp.LpConstraint(total, pulp.LpConstraintGE, rhs=low))
        if high is not None:
            problem.addConstraint(pulp.LpConstraint(total, pulp.LpConstraintLE, rhs=high))
    problem.setObjective(pulp.LpAffineExpression([(xs[k], n) for k, n in rows.cost.items()]))
    return Model(problem, lambda _: read(lambda k: (xs[k].value() or 0.0) > 0.5), rows.base, rows.unit, priced=True)
