"""Rows by hand: a flow has paths and no other points, and both kinds of solver find the cheapest."""

from __future__ import annotations

from itertools import product

import pulp
import pytest
from ortools.sat.python import cp_model

from formulations.rows import flow
from formulations.rows_cp_sat import cp_sat
from formulations.rows_milp import milp

#: From a to d: by b for 2 + 2, by c for 1 + 4, at once for 6; c is also reached from b, for nothing.
ARCS = (("a", "b", 2), ("b", "d", 2), ("a", "c", 1), ("c", "d", 4), ("a", "d", 6), ("b", "c", 0))
PATHS = {(0, 1), (2, 3), (4,), (0, 3, 5)}


def test_points_of_a_flow_are_its_paths() -> None:
    rows = flow(ARCS, "a", ("d",))
    points = {
        tuple(k for k, x in enumerate(point) if x)
        for point in product((0, 1), repeat=rows.size)
        if all(
            (low is None or low <= sum(n * point[k] for k, n in terms.items()))
            and (high is None or sum(n * point[k] for k, n in terms.items()) <= high)
            for terms, low, high in rows.rows
        )
    }
    assert points == PATHS
    assert {path: sum(rows.unit * rows.cost.get(k, 0) for k in path) for path in PATHS}[0, 1] == 4


@pytest.mark.parametrize("kind", ["cp-sat", "milp"])
def test_solvers_find_the_cheapest_path(kind: str) -> None:
    rows = flow(ARCS, "a", ("d",))

    def read(on: object) -> tuple[int, ...]:
        return tuple(k for k in range(rows.size) if on(k))

    if kind == "cp-sat":
        made = cp_sat(rows, read)
        solver = cp_model.CpSolver()
        assert solver.solve(made.model) == cp_model.OPTIMAL
        assert made.decode(solver) == (0, 1)
    else:
        made = milp(rows, read)
        made.model.solve(pulp.HiGHS(msg=False))
        assert made.decode(None) == (0, 1)
