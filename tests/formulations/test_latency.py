"""Latency of one inference alone: by hand, engines against all orders of all assignments, simulation, plans, pins."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations.clock import Clock
from formulations.mapping import engines
from formulations.mapping.latency import (
    best_order,
    busy,
    critical,
    dispatched,
    horizon,
    latencies,
    once,
    order_by,
    timetable,
    unrelated,
)  # fmt: skip
from formulations.mapping.problem import replayed
from formulations.mapping.space import Assignment, Limits, Mapping
from hwmodels.board.replay import replay_mapping
from instances.errors import InputError
from solver import check, pareto
from solver.calls.solve import show
from solver.cli.main import main
from solver.plan.plan import Plan
from tests.adversary.mapping import TESTER, Case
from tests.effort import tries
from tests.lies import Lie, changed
from tests.mapping_answers import ENGINES, answer, instance, orders, planned

EXACT = ("auto", "milp", "milp-cbc", "cp-sat", "exhaustive")


# ---- by hand ---------------------------------------------------------------------------------------------------------

#: A task of 4, two of 6 that read it, one of 2 that reads both; two cores, a copy takes 1.
FORK = instance([[4, 4], [6, 6], [6, 6], [2, 2]], [(0, 1), (0, 2), (1, 3), (2, 3)], 1, 2)


def test_a_fork_by_hand() -> None:
    """All on one core: 4 + 6 + 6 + 2 = 18.

    Task 2 on the other core: task 0 takes 4 and copies until 5; both cores work until 11, task 2 copies until 12, and
    task 3 on the first core ends at 14. Nothing is faster: the chain 0, 1, 3 takes 12 without copies, and on two cores
    there is a copy to the second one and one from it.
    """
    at, order = (0, 0, 1, 0), (0, 1, 2, 3)
    made = timetable(FORK, at, order)
    assert (made.starts, made.ends, made.latency) == ((0, 5, 5, 12), (5, 11, 12, 14), 14)
    assert timetable(FORK, (0, 0, 0, 0), order).latency == 18
    for name in EXACT:
        said = answer(name, FORK, "latency", Limits(), 20)
        assert (said.status, said.bound) == ("OPTIMAL", 14), name
        assert timetable(FORK, said.schedule.at, said.schedule.order).latency == 14
    assert unrelated(FORK) == [(1, 2)]
    assert critical(FORK, at, made.starts) == [3, 2, 0]


def test_the_order_of_tasks_counts() -> None:
    """Two chains of one core: a short task whose reader takes 9 elsewhere, and a long one of 5.

    Short first: 1, copy until 2, the reader ends at 11. Long first: 5, then 1 and its copy until 7, the reader ends at
    16.
    """
    made = instance([[5, None, None], [1, None, None], [None, None, 9]], [(1, 2)], 1, 2)
    ends = {0, 2}
    assert set(made.graph.first) == {0, 1}
    assert set(made.graph.last) == ends
    made = instance([[5, None, None], [1, None, None], [None, 9, None]], [(1, 2)], 1, 2)
    at = (0, 0, 1)
    assert [timetable(made, at, order).latency for order in ((0, 1, 2), (1, 0, 2), (1, 2, 0))] == [16, 11, 11]
    order, _ = best_order(made, at, 100, 1000)
    assert order is not None
    assert timetable(made, at, order).latency == 11
    assert timetable(made, at, dispatched(made, at)).latency == 11
    assert best_order(made, at, 11, 1000)[0] is None
    assert best_order(made, at, 100, 1)[1] < 0


def test_tasks_of_no_length_come_before_others() -> None:
    """On one core a task of 5, and one of 0 that hands to a task of 5 on the accelerator: in 5, not 10."""
    made = instance([[5, None], [0, None], [None, 5], [0, None]], [(1, 2), (2, 3)], 0, 1)
    assert timetable(made, (0, 0, 1, 0), order_by(made, (0, 0, 1, 0), [0, 0, 0, 5])).latency == 5
    for name in EXACT:
        said = answer(name, made, "latency", Limits(), 20)
        assert (said.status, said.bound) == ("OPTIMAL", 5), name


def test_less_energy_takes_longer() -> None:
    """The fork with a second core that takes 3 fJ a tick, the first one 1.

    One core: 18 fJ in 18 ticks. In 14 ticks one task is on the other core, with its copies: the cheap core then runs
    0, 1, 3 and a copy (13 ticks), the other one task and copy (7 ticks, 21 fJ): 34 fJ.
    """
    made = instance([[4, 4], [6, 6], [6, 6], [2, 2]], [(0, 1), (0, 2), (1, 3), (2, 3)], 1, 2, (1, 3))
    for name in EXACT:
        for limit, energy in ((18, 18), (17, 34), (14, 34)):
            said = answer(name, made, "energy", Limits(latency=limit), 20)
            assert (said.status, said.bound) == ("OPTIMAL", energy), (name, limit)
        said = answer(name, made, "energy", Limits(latency=13), 20)
        refused = ("INFEASIBLE", "NO_SOLUTION_FOUND") if name == "milp-cbc" else ("INFEASIBLE",)
        assert said.status in refused, name


def test_a_search_that_gives_up_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the fork the chain of 4, 6 and 2 is a bound, and no more."""
    asked = engines.Asked(FORK, "latency", Limits(), clock=Clock(0.0))
    assert engines.exhaustive(asked)[1] == 12
    monkeypatch.setattr(engines, "_STEPS", 3)
    assert answer("exhaustive", FORK, "latency").bound == 12


# ---- engines against everything --------------------------------------------------------------------------------------


@st.composite
def mappings(draw: st.DrawFn, most: int = 5) -> Mapping:
    number, cores, gpus = draw(st.integers(1, most)), draw(st.integers(1, 3)), draw(st.integers(0, 1))
    edges = draw(st.sets(st.tuples(st.integers(0, most), st.integers(0, most))))
    kept = sorted((i, j) for i, j in edges if i < j < number)
    rows: list[list[int | None]] = []
    for _ in range(number):
        cpu: list[int | None] = [draw(st.integers(0, 12)) for _ in range(cores)]
        rows.append(cpu + [draw(st.one_of(st.none(), st.integers(0, 6))) for _ in range(gpus)])
    watts = tuple(draw(st.integers(1, 3)) for _ in range(cores + gpus))
    return instance(rows, kept, draw(st.integers(0, 5)), cores, watts)


@pytest.mark.parametrize("seed", range(tries(7, 30)))
def test_engines_agree_with_all_orders_of_all_assignments(seed: int) -> None:
    """Cases of `tests.adversary.mapping` in which latency counts, by every engine that proves."""
    drawn = (TESTER.case(random.Random(f"latency {seed} {n}")) for n in count())
    case = next(one for one in drawn if isinstance(one, Case) and (one.aim == "latency" or one.latency is not None))
    case = replace(case, engines=("exhaustive", "milp", "cp-sat", "auto"))
    assert [one.what for one in TESTER.run(case, random.Random(seed))] == []


@settings(max_examples=tries(15, 60), deadline=None, suppress_health_check=list(HealthCheck))
@given(mappings(5), st.randoms(use_true_random=False))
def test_active_schedules_hold_the_best_order(made: Mapping, rng: random.Random) -> None:
    at = tuple(rng.choice(able) for able in made.able)
    all_orders = [timetable(made, at, order).latency for order in orders(made)]
    order, left = best_order(made, at, horizon(made) + 1, 10**6)
    assert order is not None
    assert left >= 0
    assert timetable(made, at, order).latency == min(all_orders)
    low, high = latencies(made, np.array([at]))
    assert low[0] <= min(all_orders)
    assert high[0] == timetable(made, at, tuple(range(len(at)))).latency
    assert max(all_orders) <= horizon(made)


@settings(max_examples=tries(15, 60), deadline=None, suppress_health_check=list(HealthCheck))
@given(mappings(7), st.randoms(use_true_random=False))
def test_the_simulation_ends_with_the_timetable(made: Mapping, rng: random.Random) -> None:
    at: Assignment = tuple(rng.choice(able) for able in made.able)
    for order in (dispatched(made, at), order_by(made, at, [rng.random() for _ in at])):
        planned = once(made, at, order)
        seen = replayed(made, at, planned, 0)
        assert seen.faults == ()
        assert max(1, seen.latency) == planned.latency
        assert seen.busy == made.price(at).loads
        chain = critical(made, at, planned.starts)
        assert sum(busy(made, at)[i] for i in chain) == seen.latency  # nothing waits in a semi-active timetable


def test_a_simulation_finds_a_circle() -> None:
    """Task 0 behind task 1 in the list of one core, though task 1 reads it."""
    times = [[1, 1], [1, 1]]
    assert "waits forever" in replay_mapping([(0, 1)], times, {}, [[(1, 0), (0, 0)], []], [1], 0).faults[0]
    assert "once each" in replay_mapping([(0, 1)], times, {}, [[(0, 0)], []], [1], 0).faults[0]


# ---- plans -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plan() -> Plan:
    return planned("mobilenet_v1", objective="latency,energy", pins=["cpu_config=4"])


def test_a_plan_is_proven_and_checks(plan: Plan, tmp_path: Path) -> None:
    assert (plan.status, plan.gap, plan.part.replay.ok) == ("OPTIMAL", 0.0, True)
    assert plan.measures["latency"] == plan.bound == plan.part.replay.counts["latency"]
    assert plan.measures["period"] < plan.measures["latency"]  # a pipeline overlaps inferences
    assert plan.objective.terms["waiting"] == 0
    plan.save(tmp_path / "plan.json")
    assert check(tmp_path / "plan.json").problems == ()


_PART = "parts", 0
_TASKS = *_PART, "schedule", "tasks"

LIES: dict[str, Lie] = {
    "it starts before the result of": ((*_TASKS, 5, "start"), 0),
    "one inference alone has no stages": ((*_TASKS, 0, "stage"), 1),
    "and a buffer an edge": ((*_PART, "schedule", "waiting", 0, "buffers"), 2),
    "measures: the plan says": ((*_PART, "measures"), lambda said: {k: v for k, v in said.items() if k != "latency"}),
    "measures.latency: the plan says": ((*_TASKS, -1, "start"), 10**6),
    "latency 29158 is above the limit 29000": (("options", "pins"), ["cpu_config=4", "latency<=29000"]),
}


def test_tasks_that_overlap_are_found_out() -> None:
    made = planned("squeezenet1_1", objective="latency", engine="single", pins=["cpu_config=4", "conv10=cpu0"])
    rows = made.schedule.tasks
    one, two = (next(n for n, r in enumerate(rows) if r.task == f"fire2/expand{k}x{k}") for k in (1, 3))
    assert rows[one].processor == rows[two].processor
    problems = check(changed(made, ((*_TASKS, one, "start"), rows[two].start))).problems
    assert any("it starts at" in line and "runs fire2/expand" in line for line in problems), problems


@pytest.mark.parametrize("said", LIES)
def test_a_plan_that_lies_is_found_out(plan: Plan, said: str) -> None:
    problems = check(changed(plan, LIES[said])).problems
    assert any(said in line for line in problems), problems


def test_a_plan_with_slack_is_a_plan(plan: Plan) -> None:
    """Somebody else's starts, each ten times as late, priced as they are: only the figures of the plan are wrong."""
    late = changed(plan, (_TASKS, lambda rows: [row | {"start": 10 * row["start"]} for row in rows]))
    problems = check(late).problems
    assert problems
    assert all("the plan says" in line for line in problems), problems


def test_a_plan_in_the_terminal(plan: Plan) -> None:
    assert "one inference alone in 29,158 us" in show(plan)
    shown = show(plan, details=True)
    assert "one inference; a letter is a task" in shown
    assert "(n)" not in shown
    assert "us of an inference on" in show(plan, "conv1")


@pytest.mark.slow(4)
@pytest.mark.parametrize(
    ("network", "config", "value"),
    [
        ("squeezenet1_1", "4", 26303), pytest.param("squeezenet1_1", "1,1,1,1", 28327, marks=pytest.mark.slow),
        pytest.param("mobilenet_v2", "4", 40080, marks=pytest.mark.slow),
        pytest.param("densenet40", "1,1,1,1", 39364, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_networks_are_proven(network: str, config: str, value: int) -> None:
    """Two engines prove the same."""
    for engine in ("auto", "cp-sat"):
        made = planned(network, objective="latency", engine=engine, pins=[f"cpu_config={config}"], time_limit_s=30)
        assert (made.status, made.bound) == ("OPTIMAL", value), engine


@pytest.mark.few(1)
@pytest.mark.parametrize("engine", sorted(set(ENGINES) - {"clustering", "clustering-most"}))
def test_every_engine_gives_a_plan_that_checks(engine: str) -> None:
    made = planned("lenet5", "hikey970", engine=engine, objective="latency", pins=["cpu_config=2,2"], time_limit_s=3)
    assert made.decided
    assert check(made).problems == ()
    best = planned("lenet5", "hikey970", objective="latency", pins=["cpu_config=2,2"])
    assert made.measures["latency"] >= best.measures["latency"]


@pytest.mark.slow(5)
def test_objectives_combine() -> None:
    """The second one is the best among what is as good in the first one; limits say the same."""
    pins = ["cpu_config=2,2"]
    quick = planned("mobilenet_v1", objective="latency,period,energy", pins=pins)
    steady = planned("mobilenet_v1", objective="period,latency", pins=pins)
    usual = planned("mobilenet_v1", pins=pins)
    assert steady.measures["period"] == usual.measures["period"] < quick.measures["period"]
    assert quick.measures["latency"] < steady.measures["latency"]
    limit = f"latency<={quick.measures['latency']}"
    same = planned("mobilenet_v1", pins=[*pins, limit])
    assert same.measures["period"] == quick.measures["period"]
    for made in (quick, steady, same):
        assert (made.status, "latency" in made.measures, check(made).problems) == ("OPTIMAL", True, ())


def test_fronts_keep_a_limit_of_latency() -> None:
    best = planned("lenet5", objective="latency", pins=["cpu_config=4"])
    front = pareto(
        "lenet5", "galaxy_s9", pins=["cpu_config=4", f"latency<={best.measures['latency']}"], problem="mapping"
    )
    assert front.proven
    assert [check(plan).problems for plan in front.plans] == [()] * len(front.plans)
    assert {plan.measures["latency"] for plan in front.plans} == {best.measures["latency"]}


def test_a_limit_that_nothing_keeps() -> None:
    made = planned("lenet5", objective="energy", pins=["latency<=10"])
    assert (made.status, made.part.schedule) == ("INFEASIBLE", None)
    assert made.conflicts == ("latency<=10: below what one inference takes within the other limits",)
    assert check(made).problems == ()


@pytest.mark.parametrize(
    ("objective", "pins", "engine", "said"),
    [
        ("latency", ["cap=50"], "auto", "pin cap: how busy cores are is counted over periods"),
        ("energy", ["cap=50", "latency<=90000"], "auto", "add period to the objectives or pin period<=N"),
        ("latency", [], "clustering", "engine clustering: it does not decide latency; auto, milp"),
        ("latency,latency", [], "auto", "may stand once"),
        ("latency", ["latency<=0"], "auto", "a whole number from 1"),
        ("latency", ["latency<=5", "latency<=6"], "auto", "latency is pinned already"),
    ],
)
def test_what_is_refused(objective: str, pins: list[str], engine: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        planned("lenet5", objective=objective, pins=pins, engine=engine)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_cap_holds_for_the_period() -> None:
    made = planned("lenet5", objective="latency,period", pins=["cap=50", "cpu_config=4"])
    free = planned("lenet5", objective="latency,period", pins=["cpu_config=4"])
    assert made.measures["latency"] == free.measures["latency"]
    assert made.measures["period"] > free.measures["period"]


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "plan.json")
    said = "solve lenet5 -m galaxy_s9 --objective latency --pin cpu_config=4 --compare heft,single --out".split()
    assert main([*said, out]) == 0
    printed = capsys.readouterr().out
    assert "OPTIMAL" in printed
    assert "latency of others over auto: heft 1" in printed
    data = json.loads(Path(out).read_text(encoding="utf-8"))
    assert (sorted(data["measures"]), data["objectives"], data["unit"]) == (
        ["energy", "latency", "period"],
        ["latency"],
        "ticks",
    )
    assert main(["check", out]) == 0
    assert main(["show", out, "--all"]) == 0
    assert "one inference;" in capsys.readouterr().out
