"""Load OR-Tools and highspy into this one process, solve one knapsack with each, and print what happened as JSON.

Run in a child process (a clash of the two HiGHS libraries may kill it):
``python tests/versions/probe.py ortools,highspy cp-sat,milp`` gives the order of the imports and of the solves.

The knapsack has 16 items and 3 resources; its optimum is enumerated here too, so a wrong answer is seen.
"""

from __future__ import annotations

import importlib
import itertools
import json
import sys

ITEMS = 16
VALUE = [31, 47, 13, 29, 53, 17, 41, 23, 37, 19, 43, 11, 59, 7, 61, 5]
WEIGHT = [[(7 * i * i + 13 * i * r + 5 * r + 3) % 29 + 4 for i in range(ITEMS)] for r in range(3)]
LIMIT = [sum(row) // 3 for row in WEIGHT]


def by_enumeration() -> int:
    """The largest value over all 2**16 choices."""
    best = 0
    for pick in itertools.product((0, 1), repeat=ITEMS):
        if all(
            sum(w * p for w, p in zip(row, pick, strict=True)) <= cap for row, cap in zip(WEIGHT, LIMIT, strict=True)
        ):
            best = max(best, sum(v * p for v, p in zip(VALUE, pick, strict=True)))
    return best


def by_cp_sat() -> int:
    """The value that CP-SAT proves."""
    cp_model = importlib.import_module("ortools.sat.python.cp_model")
    model = cp_model.CpModel()
    pick = [model.new_bool_var(f"x{i}") for i in range(ITEMS)]
    for row, cap in zip(WEIGHT, LIMIT, strict=True):
        model.add(sum(w * p for w, p in zip(row, pick, strict=True)) <= cap)
    model.maximize(sum(v * p for v, p in zip(VALUE, pick, strict=True)))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    if status != cp_model.OPTIMAL:
        raise RuntimeError(f"CP-SAT: {solver.status_name(status)}")
    return round(solver.objective_value)


def by_milp() -> int:
    """The value that HiGHS proves, through PuLP."""
    pulp = importlib.import_module("pulp")
    problem = pulp.LpProblem("knapsack", pulp.LpMaximize)
    pick = [pulp.LpVariable(f"x{i}", cat="Binary") for i in range(ITEMS)]
    problem += pulp.lpSum(v * p for v, p in zip(VALUE, pick, strict=True))
    for row, cap in zip(WEIGHT, LIMIT, strict=True):
        problem += pulp.lpSum(w * p for w, p in zip(row, pick, strict=True)) <= cap
    problem.solve(pulp.HiGHS(msg=False, gapRel=0, threads=1))
    if problem.sol_status != pulp.LpSolutionOptimal:
        raise RuntimeError(f"HiGHS: {pulp.LpSolution[problem.sol_status]}")
    return round(pulp.value(problem.objective))


def main() -> None:
    """Import in the order asked for, solve in the order asked for, print one JSON object."""
    imports, solves = (argument.split(",") for argument in sys.argv[1:3])
    for name in imports:
        # CP-SAT's own module is what loads the shared library of OR-Tools.
        importlib.import_module({"ortools": "ortools.sat.python.cp_model", "highspy": "highspy"}[name])
    answers = {name: {"cp-sat": by_cp_sat, "milp": by_milp}[name]() for name in solves}
    again = {name: {"cp-sat": by_cp_sat, "milp": by_milp}[name]() for name in solves}
    highs = importlib.import_module("highspy").Highs()
    print(
        json.dumps(
            {
                "right": answers == again and set(answers.values()) == {by_enumeration()},
                "answers": answers,
                "enumerated": by_enumeration(),
                "highs_in_use": highs.version(),  # of the library the loader bound, which need not be the one installed
                "ortools": importlib.import_module("ortools").__version__,
            }
        )
    )


if __name__ == "__main__":
    main()
