"""Integer rows over choices: a model that solvers of both kinds take, said once.

Variables    x[0], ..., x[size - 1] in {0, 1}, or integers up to most[k]; in [0, 1] for MILP solvers where `integral`
             says that every corner of the rows is whole
Objective    min base + unit * sum cost[k] x[k]
Constraints  low <= sum terms[k] x[k] <= high for every row

Example: a flow on three arcs, of which two leave node 0 and one node 1, is rows {0: 1, 1: 1} = 1 and {1: -1, 2: 1} = 0.
`formulations.rows_cp_sat` and `formulations.rows_milp` hand rows to solvers.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import NamedTuple, TypeVar

from formulations.problem import Model

#: A variable's number -> its coefficient.
Terms = dict[int, int]
S = TypeVar("S")
#: Reads a schedule from a solution: from whether a variable is 1.
Read = Callable[[Callable[[int], bool]], S]


#: A model of rows for one kind of solver.
Build = Callable[["Rows", Read[S]], "Model[S]"]


class Row(NamedTuple):
    """``low <= sum of terms <= high``; None is no bound."""

    terms: Terms
    low: int | None
    high: int | None


@dataclass(eq=False)
class Rows:
    """A model; `cost` counts in the greatest common divisor of its coefficients, `unit`."""

    size: int = 0
    most: dict[int, int] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    cost: Terms = field(default_factory=dict)
    base: int = 0
    unit: int = 1
    integral: bool = False

    def new(self, most: int = 1) -> int:
        """Return the number of a new variable."""
        if most != 1:
            self.most[self.size] = most
        self.size += 1
        return self.size - 1

    def add(self, terms: Mapping[int, int], low: int | None, high: int | None) -> None:
        """Add a row."""
        self.rows.append(Row({x: n for x, n in terms.items() if n}, low, high))

    def limit(self, terms: Mapping[int, int], most: int) -> None:
        """Add a row with an upper bound, over the greatest common divisor of its terms."""
        unit = gcd(*terms.values()) or 1
        self.add({x: n // unit for x, n in terms.items()}, None, most // unit)

    def minimise(self, terms: Mapping[int, int], base: int = 0) -> None:
        """Say the objective."""
        self.base, self.unit = base, gcd(*terms.values()) or 1
        self.cost = {x: n // self.unit for x, n in terms.items() if n}


def flow(arcs: Iterable[tuple[Hashable, Hashable, int]], first: Hashable, ends: Container[Hashable]) -> Rows:
    """Return a cheapest path from a node to one of `ends` as rows; a variable for every arc (from, to, cost).

    Constraints  (FLOW)  the arcs that leave `first` are one more than those that enter it; elsewhere but at the ends as
                         many leave as enter

    The matrix is a network's, so every corner is whole (searches for integers took 20 GB for 88,000 arcs).
    """
    made, costs, nodes = Rows(integral=True), Terms(), dict[Hashable, Terms]()
    nodes[first] = {}
    for begin, end, cost in arcs:
        x = made.new()
        costs[x] = cost
        nodes.setdefault(begin, {})[x] = 1
        nodes.setdefault(end, {})[x] = -1
    for node, terms in nodes.items():
        if node not in ends:
            made.add(terms, int(node == first), int(node == first))
    made.minimise(costs)
    return made
