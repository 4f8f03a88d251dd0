"""The CP-SAT model of one order: a number of a chain for every dimension, its factors by table, products one by one.

Variables
    x[d]        which chain of dimension d
    f[d, q]     its factor of product q: element x[d] of the column of the table
    P[q]        product over d of f[d, q]
Objective and constraints are the rows of `formulations.levels.terms` over P. Products stay below 2**53.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ortools.sat.python import cp_model

from formulations.levels.search import Searched
from formulations.levels.terms import Row
from formulations.problem import Unable

_LARGEST, _SUM, _CHAINS = 2**53, 2**60, 4000


@dataclass
class CpModel:
    """A model, and what its objective leaves out."""

    model: cp_model.CpModel
    choice: list[cp_model.IntVar]
    constant: int

    def chosen(self, solver: Any) -> tuple[int, ...]:
        """The chains of a solution."""
        return tuple(int(solver.value(one)) for one in self.choice)


def cp_model_of(searched: Searched, below: int | None) -> CpModel | None:
    """Return the model of an order, None if its least factors do not fit; raises Unable for too many chains."""
    tables, floor, aim = searched.terms.tables, searched.floor(), searched.row
    caps = [(row, most) for row, most in searched.caps if isinstance(row, Row)]
    if not isinstance(aim, Row) or len(caps) < len(searched.caps):
        raise Unable("transfers that overlap have no CP-SAT model: use --engine search")
    if floor is None or (below is not None and floor >= below):
        return None
    if any(len(table) > _CHAINS for table in tables):
        raise Unable(f"a dimension has more than {_CHAINS:,} chains: use --engine search")
    model = cp_model.CpModel()
    choice = [model.new_int_var(0, len(table) - 1, f"x{a}") for a, table in enumerate(tables)]
    products = [_product(model, choice, tables, q) for q in range(searched.terms.count)]
    most = [prod(int(table[:, q].max()) for table in tables) for q in range(searched.terms.count)]
    if any(_most(row, most) > _SUM for row in (aim, *(row for row, _ in caps))):
        raise Unable("sums are too large for CP-SAT: use --engine search")
    made = CpModel(model, choice, aim.constant)
    for row, cap in caps:
        model.add(_sum(model, row, products, most) <= cap - row.constant)
    objective = _sum(model, aim, products, most)
    if below is not None:
        model.add(objective <= below - 1 - aim.constant)
    model.minimize(objective)
    return made


def _product(model: cp_model.CpModel, choice: list[cp_model.IntVar], tables: Any, q: int) -> Any:
    """The product of the factors that the chosen chains have."""
    total: Any = 1
    most = least = 1
    for one, table in zip(choice, tables, strict=True):
        column = [int(x) for x in table[:, q]]
        if max(column) == 1:
            continue
        factor = model.new_int_var(min(column), max(column), "")
        model.add_element(one, column, factor)
        most, least = most * max(column), least * min(column)
        if most > _LARGEST:
            raise Unable("products are too large for CP-SAT: use --engine search")
        if isinstance(total, int):
            total = factor
            continue
        larger = model.new_int_var(least, most, "")
        model.add_multiplication_equality(larger, [total, factor])
        total = larger
    return total


def _most(row: Row, most: Sequence[int]) -> int:
    """The most that a row can be, each of its terms for itself."""
    pairs = sum(factor * most[one] * 2 * most[two] for (one, two), factor in row.pairs.items())
    return abs(row.constant) + sum(factor * most[q] for q, factor in row.factors.items()) + pairs


def _sum(model: cp_model.CpModel, row: Row, products: list[Any], most: Sequence[int]) -> Any:
    total: Any = sum(factor * products[q] for q, factor in row.factors.items())
    for (one, two), factor in row.pairs.items():
        visits = model.new_int_var(0, most[one] * most[two], "")
        model.add_multiplication_equality(visits, [products[one], products[two]])
        total = total + factor * (2 * visits - products[one])
    return total
