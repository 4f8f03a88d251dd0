"""Small models of the shapes that some release answered wrongly, with optima worked out by hand; prints JSON.

``python tests/versions/reported.py`` asks the installed versions. Used by `test_versions.py` and, over several
releases, for the table in `docs/versions.md`.
"""

from __future__ import annotations

import importlib
import json
from typing import NamedTuple


class Answer(NamedTuple):
    """What an engine said (None: no optimum proven) and what is right."""

    said: float | None
    right: float


def _highs(problem) -> float | None:  # type: ignore[no-untyped-def]
    pulp = importlib.import_module("pulp")
    problem.solve(pulp.HiGHS(msg=False, gapRel=0, threads=1))
    return float(pulp.value(problem.objective)) if problem.sol_status == pulp.LpSolutionOptimal else None


def stuffing() -> Answer:
    """One row shared by a cheap continuous and a dear integer column (HiGHS issue 2957: wrong in 1.14.0).

    min 3x + 5z, x + z >= 6.5, x and z in 0..10, z integer: x alone is cheaper per unit, 3 * 6.5 = 19.5.
    """
    pulp = importlib.import_module("pulp")
    problem = pulp.LpProblem("stuffing", pulp.LpMinimize)
    x = pulp.LpVariable("x", 0, 10)
    z = pulp.LpVariable("z", 0, 10, cat="Integer")
    problem += 3 * x + 5 * z
    problem += x + z >= 6.5
    return Answer(_highs(problem), 19.5)


def big_m() -> Answer:
    """A binary behind a big M that is not worth paying (HiGHS issue 2975: wrong in 1.14.0).

    min 3b + 5000y, a + b = 8, a <= 50y: y = 0 forces a = 0, b = 8 and costs 24.
    """
    pulp = importlib.import_module("pulp")
    problem = pulp.LpProblem("big_m", pulp.LpMinimize)
    a, b = pulp.LpVariable("a", 0), pulp.LpVariable("b", 0)
    y = pulp.LpVariable("y", cat="Binary")
    problem += 3 * b + 5000 * y
    problem += a + b == 8
    problem += a - 50 * y <= 0
    return Answer(_highs(problem), 24.0)


def absolute() -> Answer:
    """The distance to a target out of reach (OR-Tools issue 4568: infeasible in 9.12).

    x in 0..7, target 9: |7 - 9| = 2.
    """
    cp_model = importlib.import_module("ortools.sat.python.cp_model")
    model = cp_model.CpModel()
    x = model.new_int_var(0, 7, "x")
    distance = model.new_int_var(0, cp_model.INT32_MAX, "distance")
    model.add_abs_equality(distance, x - 9)
    model.minimize(distance)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    return Answer(solver.objective_value if status == cp_model.OPTIMAL else None, 2.0)


MODELS = {"stuffing": stuffing, "big_m": big_m, "absolute": absolute}

if __name__ == "__main__":
    print(json.dumps({name: ask()._asdict() for name, ask in MODELS.items()}))
