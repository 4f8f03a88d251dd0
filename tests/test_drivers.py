"""The drivers of CP-SAT and of MILP solvers: bounds as integers, what is believed, Ctrl-C, one seed one plan."""

from __future__ import annotations

import os
import random
import signal
import threading
from math import inf, nan

import pulp
import pytest
from ortools.sat.python import cp_model

from instances.errors import InputError
from solver.engines import driver_cp_sat, driver_milp
from solver.engines.rounding import least_whole


@pytest.mark.parametrize(
    ("bound", "least"),
    [
        (5.0, 5), (4.9999999, 5), (5.0000001, 5), (5.00001, 6), (5.5, 6), (0.0, 0), (-0.0, 0), (-3.2, -3), (-4.0, -4),
        (inf, None), (-inf, None), (nan, None),
        (2.0**52 + 1, 2**52 + 1),  # a float still holds every integer ...
        (2.0**53, 2**53 - 4), (2.0**60, 2**60 - 512), (-(2.0**60), -(2**60) - 512),  # ... and here two steps are 4, 512
    ],
)  # fmt: skip
def test_bounds_as_integers(bound: float, least: int | None) -> None:
    assert least_whole(bound) == least


@pytest.mark.parametrize(("bound", "least"), [(7.0, 7), (6.51, 7), (7.24, 7), (7.26, 8), (-0.2, 0)])
def test_bounds_less_a_quarter(bound: float, least: int) -> None:
    assert least_whole(bound, 0.25) == least


def knapsacks(seed: int, number: int) -> tuple[cp_model.CpModel, list[cp_model.IntVar]]:
    """Many knapsacks over the same things: seconds with a few, never with many."""
    draw, model = random.Random(seed), cp_model.CpModel()
    taken = [model.new_bool_var(f"x{n}") for n in range(number)]
    for _ in range(30):
        model.add(cp_model.LinearExpr.weighted_sum(taken, [draw.randint(10, 1000) for _ in taken]) <= 200 * number)
    model.minimize(-cp_model.LinearExpr.weighted_sum(taken, [draw.randint(100, 1000) for _ in taken]))
    return model, taken


def ctrl_c(after: float) -> None:
    threading.Timer(after, lambda: os.kill(os.getpid(), signal.SIGINT)).start()


def test_cp_sat_is_told_to_stop_and_keeps_what_it_has() -> None:
    model, taken = knapsacks(1, 200)
    ctrl_c(1.0)
    said = driver_cp_sat.solve(model, 60)
    assert (said.status, said.stopped, said.stats["interrupted"]) == ("FEASIBLE", True, True)
    assert said.bound is not None
    assert said.bound < said.solver.objective_value < 0
    assert any(said.solver.boolean_value(x) for x in taken)
    with pytest.raises(KeyboardInterrupt):
        said.heard()


def test_cp_sat_answers() -> None:
    model = cp_model.CpModel()
    x = model.new_int_var(0, 9, "x")
    model.add(2 * x <= 13)
    model.maximize(3 * x)
    said = driver_cp_sat.solve(model, maximised=True)
    assert (said.status, said.bound, said.solved, said.stopped) == ("OPTIMAL", 18, True, False)
    assert said.heard() is said
    model.add(x >= 7)
    said = driver_cp_sat.solve(model)
    assert (said.status, said.bound, said.least(4), said.solved) == ("INFEASIBLE", None, 4, False)
    model.add(x * 2**62 + x * 2**62 >= 0)
    with pytest.raises(InputError, match="not one of 64 bits"):
        driver_cp_sat.solve(model)


@pytest.mark.parametrize("workers", [1, 4])
def test_the_same_seed_finds_the_same_plan(workers: int) -> None:
    plans = set()
    for _ in range(3):
        model, taken = knapsacks(2, 16)
        said = driver_cp_sat.solve(model, workers=workers)
        assert said.status == "OPTIMAL"
        plans.add((tuple(said.solver.boolean_value(x) for x in taken), said.solver.num_branches))
    assert len(plans) == 1


def milp_knapsacks(number: int) -> pulp.LpProblem:
    draw, problem = random.Random(1), pulp.LpProblem("knapsacks", pulp.LpMinimize)
    taken = [pulp.LpVariable(f"x{n}", cat="Binary") for n in range(number)]
    for _ in range(30):
        problem += pulp.lpSum(draw.randint(10, 1000) * x for x in taken) <= 200 * number
    problem.setObjective(-pulp.lpSum(draw.randint(100, 1000) * x for x in taken))
    return problem


def test_highs_is_told_to_stop_and_keeps_what_it_has() -> None:
    ctrl_c(1.0)
    said = driver_milp.solve("highs", milp_knapsacks(200), 60)
    assert (said.status, said.stopped) == ("FEASIBLE", True)
    assert said.bound is not None
    assert said.objective is not None
    assert said.bound < said.objective < 0
    assert not said.agrees(said.objective)
    with pytest.raises(KeyboardInterrupt):
        said.heard()


@pytest.mark.parametrize("solver", ["highs", "cbc"])
@pytest.mark.parametrize("presolve", [True, False])
def test_milp_answers(solver: driver_milp.MilpSolver, presolve: bool) -> None:
    x, problem = pulp.LpVariable("x", 0, 9, cat="Integer"), pulp.LpProblem("toy", pulp.LpMinimize)
    problem += 2 * x >= 5
    problem.setObjective(3 * x)
    said = driver_milp.solve(solver, problem, presolve=presolve)
    assert (said.status, said.bound, said.solved, said.stopped) == ("OPTIMAL", 9, True, False)
    assert (said.agrees(9), said.agrees(10), said.agrees(8)) == (True, False, False)
    large = driver_milp.solve(solver, problem, presolve=presolve, largest=driver_milp.LARGEST + 1)
    assert (large.status, large.bound, large.believed) == ("OPTIMAL", None, False)
    problem += x <= 2
    said = driver_milp.solve(solver, problem, presolve=presolve)
    assert (said.status, said.solved, said.objective) == ("INFEASIBLE", False, None)
    large = driver_milp.solve(solver, problem, presolve=presolve, largest=driver_milp.LARGEST + 1)
    assert (large.status, large.bound) == ("NO_SOLUTION_FOUND", None)


def test_presolve_that_errs_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is called infeasible is solved again without presolve, and that answer counts."""
    x, problem = pulp.LpVariable("x", 0, 9, cat="Integer"), pulp.LpProblem("toy", pulp.LpMinimize)
    problem += 2 * x >= 5
    problem.setObjective(3 * x)
    right = driver_milp._Highs.findSolutionValues

    def wrong(self: driver_milp._Highs, lp: pulp.LpProblem) -> tuple[int, int]:
        found = right(self, lp)
        presolved = self.optionsDict["presolve"] == "choose"
        return (pulp.LpStatusInfeasible, pulp.LpSolutionInfeasible) if presolved else found

    monkeypatch.setattr(driver_milp._Highs, "findSolutionValues", wrong)
    said = driver_milp.solve("highs", problem, 30, presolve=True)
    assert (said.status, said.bound) == ("OPTIMAL", 9)
