"""The drivers of CP-SAT and of MILP solvers: bounds as integers, what is believed, Ctrl-C, one seed one plan."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import pulp
import pytest
from ortools.sat.python import cp_model

from instances.errors import InputError
from solver import solve
from solver.calls.check import check
from solver.search import driver_cp_sat, driver_milp
from solver.search.driver import least_whole
from tests.effort import thinned
from tests.golden_plans import FLAT, MESH, PAIRS, SHARED, SMALL


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
    assert said.bound < said.solver.objective_value < 0
    assert any(said.solver.boolean_value(x) for x in taken)


def test_cp_sat_answers() -> None:
    model = cp_model.CpModel()
    x = model.new_int_var(0, 9, "x")
    model.add(2 * x <= 13)
    model.maximize(3 * x)
    said = driver_cp_sat.solve(model, maximised=True)
    assert (said.status, said.bound, said.solved, said.stopped) == ("OPTIMAL", 18, True, False)
    assert "interrupted" not in said.stats
    model.add(x >= 7)
    said = driver_cp_sat.solve(model)
    assert (said.status, said.bound, said.least(4), said.solved) == ("INFEASIBLE", None, 4, False)
    model.add(x * 2**62 + x * 2**62 >= 0)
    with pytest.raises(InputError, match="not one of 64 bits"):
        driver_cp_sat.solve(model)


def test_the_same_seed_finds_the_same_plan() -> None:
    plans = set()
    for _ in range(3):
        model, taken = knapsacks(2, 16)
        said = driver_cp_sat.solve(model)
        assert said.status == "OPTIMAL"
        plans.add((tuple(said.solver.boolean_value(x) for x in taken), said.solver.num_branches))
    assert len(plans) == 1


@pytest.mark.parametrize(
    ("target", "machine", "objective", "cores"),
    [
        ("squeezenet1_1", "galaxy_s9", "period", "4"),
        ("mobilenet_v1", "galaxy_s9", "latency", "2,2"),
        (PAIRS, "hikey970", "response", "2,2"),
    ],
)
def test_the_same_question_has_the_same_plan(target: Any, machine: str, objective: str, cores: str) -> None:
    """Eight workers that raced found one of several equal plans, another one each time."""
    one, two = (
        solve(target, machine, objective=objective, engine="cp-sat", pins=[f"cpu_config={cores}"]) for _ in range(2)
    )
    assert one.status == "OPTIMAL"
    assert one.schedule == two.schedule
    assert one.part.stats == two.part.stats


def milp_knapsacks(number: int) -> pulp.LpProblem:
    draw, problem = random.Random(1), pulp.LpProblem("knapsacks", pulp.LpMinimize)
    taken = [pulp.LpVariable(f"x{n}", cat="Binary") for n in range(number)]
    for _ in range(30):
        problem += pulp.lpSum(draw.randint(10, 1000) * x for x in taken) <= 200 * number
    problem.setObjective(-pulp.lpSum(draw.randint(100, 1000) * x for x in taken))
    return problem


@pytest.mark.slow(2)
@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_milp_solvers_are_told_to_stop_and_keep_what_they_have(solver: driver_milp.MilpSolver) -> None:
    ctrl_c(1.0)
    said = driver_milp.solve(solver, milp_knapsacks(200), 60)
    assert (said.status, said.stopped, said.stats) == ("FEASIBLE", True, {"interrupted": True})
    assert said.objective < 0
    assert said.bound is None if solver == "cbc" else said.least(-(10**9)) < said.objective
    assert not said.agrees(said.objective)
    running = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "args="], capture_output=True, text=True)
    assert "cbc" not in running.stdout


@pytest.mark.slow(1)
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGCONT])
def test_cbc_that_does_not_hear(monkeypatch: pytest.MonkeyPatch, sent: signal.Signals) -> None:
    """It is told as soon as it is started, and dies or misses it; then it is told again, at last killed."""
    monkeypatch.setattr(driver_milp, "interruptible", lambda work, stop: (stop(), work(), True)[1:])
    monkeypatch.setattr(driver_milp, "_STOP", sent)
    said = driver_milp.solve("cbc", milp_knapsacks(200), 60)
    assert (said.bound, said.stopped) == (None, True)
    assert said.status == "NO_SOLUTION_FOUND" or (said.status == "FEASIBLE" and sent == signal.SIGINT)


@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_milp_answers(solver: driver_milp.MilpSolver, monkeypatch: pytest.MonkeyPatch) -> None:
    x, problem = pulp.LpVariable("x", 0, 9, cat="Integer"), pulp.LpProblem("toy", pulp.LpMinimize)
    problem += 2 * x >= 5
    problem.setObjective(3 * x)
    said = driver_milp.solve(solver, problem)
    assert (said.status, said.bound, said.solved, said.stopped) == ("OPTIMAL", 9, True, False)
    assert (said.agrees(9), said.agrees(10), said.agrees(8)) == (True, False, False)
    problem += x <= 2
    said = driver_milp.solve(solver, problem)
    assert (said.status, said.solved, said.objective) == ("INFEASIBLE", False, None)
    monkeypatch.setattr(driver_milp, "LARGEST", 0)
    large = driver_milp.solve(solver, problem)
    assert (large.status, large.bound, large.believed) == ("NO_SOLUTION_FOUND", None, False)
    del problem.constraints["_C2"]
    large = driver_milp.solve(solver, problem)
    assert (large.status, large.bound, large.agrees(9)) == ("OPTIMAL", None, True)


#: The first line of CBC's solution of min 3 x with x = 2, and what is made of it: status, bound, objective.
CBC = [
    ("Optimal - objective value 6", ("OPTIMAL", 6, 6.0)),
    ("Stopped on time - objective value 6", ("FEASIBLE", None, 6.0)),
    ("Stopped on time (no integer solution - continuous used) - objective value 1", ("NO_SOLUTION_FOUND", None, None)),
    ("Infeasible - objective value 0", ("INFEASIBLE", None, None)),
    ("Integer infeasible - objective value 0", ("INFEASIBLE", None, None)),
    ("Unbounded - objective value 0", ("NO_SOLUTION_FOUND", None, None)),
]


@pytest.mark.parametrize(("said", "wanted"), CBC)
def test_what_cbc_says(said: str, wanted: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script in the place of CBC: its last argument names the file that the solution goes to."""
    script = tmp_path / "cbc"
    write = f'shift $(($# - 1))\nprintf "{said}\\n 0 X0000000 2 3\\n" > "$1"'
    script.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n{write}')
    script.chmod(0o755)
    monkeypatch.setattr(driver_milp._Cbc, "pulp_cbc_path", str(script))
    problem = pulp.LpProblem("toy", pulp.LpMinimize)
    x = pulp.LpVariable("x", 0, 9, cat="Integer")
    problem += x >= 1
    problem.setObjective(3 * x)
    found = driver_milp.solve("cbc", problem, 7.5)
    assert (found.status, found.bound, found.objective) == wanted
    assert found.agrees(6) == (found.status == "OPTIMAL")
    assert "-sec 7.5 -ratio 0.0 -allow 0.49 -threads 1 " in (tmp_path / "asked").read_text()
    script.write_text("#!/bin/sh\nexit 3")
    with pytest.raises(pulp.PulpSolverError, match="CBC ended with 3 and no answer"):
        driver_milp.solve("cbc", problem)


def test_highs_that_has_no_time() -> None:
    """What it has then is no optimum; and no solution, where 40 things have to fill four sacks to the last gram."""
    found = driver_milp.solve("highs", milp_knapsacks(60), 1e-9)
    assert (found.status in ("FEASIBLE", "NO_SOLUTION_FOUND"), found.stopped) == (True, False)
    assert found.least(-(10**9)) < (found.objective or 0) or not found.solved
    assert not found.agrees(found.objective or 0)
    draw, problem = random.Random(1), pulp.LpProblem("split", pulp.LpMinimize)
    taken = [pulp.LpVariable(f"x{n}", cat="Binary") for n in range(40)]
    problem.setObjective(pulp.lpSum(taken))
    for _ in range(4):
        sizes = [draw.randint(10, 1000) for _ in taken]
        problem += pulp.lpSum(size * x for size, x in zip(sizes, taken, strict=True)) == sum(sizes) // 2
    found = driver_milp.solve("highs", problem, 1e-9)
    assert (found.status, found.objective, found.agrees(0)) == ("NO_SOLUTION_FOUND", None, False)


@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_a_constant_counts_and_integers_alone_may_be_infeasible(solver: driver_milp.MilpSolver) -> None:
    """With constant 120: 120 - 36 = 84 is the least with 3x + 4y + 5z <= 4; 0 < x + y < 1 only between integers."""
    x, y, z = (pulp.LpVariable(name, cat="Binary") for name in "xyz")
    problem = pulp.LpProblem("toy", pulp.LpMinimize)
    problem += 3 * x + 4 * y + 5 * z <= 4
    problem.setObjective(-27 * x - 36 * y - 45 * z + 120)
    said = driver_milp.solve(solver, problem)
    assert (said.status, said.bound, said.objective) == ("OPTIMAL", 84, 84.0)
    problem += 4 * x + 4 * y + 5 * z <= 3
    problem += 4 * x + 4 * y + 5 * z >= 1
    said = driver_milp.solve(solver, problem)
    assert (said.status, said.bound is None or said.bound > 10**6) == ("INFEASIBLE", True)


def test_the_largest_coefficient() -> None:
    """Every row in its own unit, the objective too; constants do not count."""
    x, y = (pulp.LpVariable(name, 0, 9, cat="Integer") for name in "xy")
    problem = pulp.LpProblem("toy", pulp.LpMinimize)
    problem += 100 * x + 300 * y <= 10**9
    problem.setObjective(x + y + 77)
    assert driver_milp.largest(problem) == 3
    problem += 0.5 * x - 4.5 * y <= 1
    assert driver_milp.largest(problem) == 4.5
    problem.setObjective(12 * x - 60 * y)
    assert driver_milp.largest(problem) == 5
    problem += x - driver_milp.LARGEST * y <= 1
    assert driver_milp.solve("highs", problem).believed
    problem += x - (driver_milp.LARGEST + 1) * y <= 1
    assert not driver_milp.solve("highs", problem).believed


def wrongly_presolved() -> pulp.LpProblem:
    """Issue 3274 of HiGHS; the optimum is 0, all variables 0."""
    problem = pulp.LpProblem("presolve", pulp.LpMinimize)
    x0, x1, x3 = (pulp.LpVariable(f"x{n}", low, cat="Integer") for n, low in ((0, None), (1, None), (3, 0)))
    x2 = pulp.LpVariable("x2", 0)
    for row in (x1 - x2 >= 0, x0 + x2 - x3 == 0, -68 * x2 - x3 >= -12):
        problem += row
    problem.setObjective(x1)
    return problem


def test_highs_does_not_presolve() -> None:
    """The pinned release states a wrong optimum with presolve, bound and all (a right one: presolve may come back)."""
    said = driver_milp.solve("highs", wrongly_presolved())
    assert (said.status, said.bound, said.objective) == ("OPTIMAL", 0, 0.0)
    presolved = wrongly_presolved()
    presolved.solve(pulp.HiGHS(msg=False, presolve="choose"))
    info = presolved.solverModel.getInfo()
    assert (presolved.sol_status, info.objective_function_value, info.mip_dual_bound) == (1, 1.0, 1.0)


# --- Ctrl-C in whatever asks a solver --------------------------------------------------------------------------------

SOLVERS = ("cp-sat", "milp", "milp-cbc")
BOARD = ("lenet5", "galaxy_s9")
ASKED: dict[str, tuple[tuple[Any, ...], dict[str, Any], tuple[str, ...]]] = {
    "tiling": ((SMALL, "scratchpad_24k"), {"bounding": False, "objective": "bytes,time", "jobs": 1}, SOLVERS),
    "banks": (("lenet5", "midap"), {"objective": "bytes"}, ("cp-sat", "milp")),
    "period": (BOARD, {"objective": "period,energy"}, ("auto", *SOLVERS)),
    "latency": (BOARD, {"objective": "latency,energy"}, SOLVERS),
    "latency, then energy": (("squeezenet1_1", "galaxy_s9"), {"objective": "latency,energy"}, ("auto",)),
    "latency, a section's model": (("shufflenet_1x", "galaxy_s9"), {"objective": "latency"}, ("auto",)),
    "divided": (BOARD, {"objective": "period", "pins": ["split=on"]}, ("auto",)),
    "divided, latency": (("shufflenet_1x", "galaxy_s9"), {"objective": "latency", "pins": ["split=on"]}, ("auto",)),
    "applications": ((PAIRS, "hikey970"), {"objective": "response,energy"}, ("cp-sat",)),
    "mesh": ((SMALL, MESH[0]), {"objective": "dram,time", "settings": MESH[1]}, SOLVERS),
    "engine": (("lenet5", "partial_cnn_16"), {}, SOLVERS),
    "joint": ((FLAT, SHARED[0]), {"problem": "joint", "settings": SHARED[1]}, ("cp-sat", "milp")),
}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "engine"), [(name, engine) for name, asked in ASKED.items() for engine in thinned(asked[-1], 2)]
)
def test_whoever_asks_keeps_what_the_solver_had_and_stops(
    name: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends the first search of a solver: no other follows, and the plan is there and verified."""
    calls = []

    def stopped(work: Callable[[], Any], stop: Callable[[], None]) -> tuple[Any, bool]:
        calls.append(name)
        return work(), True

    for driver in (driver_cp_sat, driver_milp):
        monkeypatch.setattr(driver, "interruptible", stopped)
    target, options, _ = ASKED[name]
    plan = solve(*target, engine=engine, **options)
    assert len(calls) == 1
    told = [plan.stats, *(part.stats for part in plan.parts)]
    assert any(stats.get("interrupted") for stats in told)
    if name != "tiling":  # its other layers are left
        assert plan.bound is None or plan.bound <= plan.objective.value
    assert check(plan).ok
