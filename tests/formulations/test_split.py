"""Tasks divided between two processors: by hand, engines against all places, parts, simulation, plans, pins."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations.mapping.engines import Asked
from formulations.mapping.latency import dispatched, horizon, latencies, once, pipelined, timetable
from formulations.mapping.problem import replayed
from formulations.mapping.search import Pricer, list_scheduled
from formulations.mapping.space import Aim, Assignment, Limits, Mapping, Split, build, merged, parts, places_of
from hwmodels.board.price import copied_ps, estimated
from instances.errors import InputError
from instances.load import load_machine, load_network
from instances.measured import Profile
from instances.network.tasks import tasks
from solver import check, pareto
from solver.calls.solve import show
from solver.plan.plan import Plan
from solver.problems.mapping import MappingProblem
from tests.effort import tries
from tests.lies import Lie, changed
from tests.mapping_answers import ENGINES, answer, instance, orders, planned

EXACT = ("auto", "milp", "cp-sat", "exhaustive")


# ---- by hand ---------------------------------------------------------------------------------------------------------


def test_places_by_hand() -> None:
    """Two processors and thirds: two whole ones, 1 + 2 and 2 + 1. Without division the processors."""
    split = Split(3, frozenset(), 0, np.zeros((0, 2, 2, 2), dtype=np.int64))
    assert places_of(2, split) == (((0, 3),), ((1, 3),), ((0, 1), (1, 2)), ((0, 2), (1, 1)))
    assert places_of(2, None) == (((0, 1),), ((1, 1),))


def test_one_task_by_hand() -> None:
    """12 ticks on the first core, 4 on the second: 4 whole; a quarter on the first 3, the rest on the second 3.

    That takes 6 fJ, whole 4. If parts wait for 1, both take 3 + 1, which is no better than whole.
    """
    aims: list[tuple[Aim, int]] = [("period", 3), ("latency", 3), ("energy", 4)]
    for name in EXACT:
        for aim, value in aims:
            said = answer(name, instance([[12, 4]], [], shares=4), aim, Limits(), 20)
            assert (said.status, said.bound) == ("OPTIMAL", value), (name, aim)
        said = answer(name, instance([[12, 4]], [], shares=4, sync=1), "period", Limits(), 20)
        assert (said.status, said.bound) == ("OPTIMAL", 4), name
    waiting = instance([[12, 4]], [], shares=4, sync=1)
    place = waiting.places.index(((0, 1), (1, 3)))
    assert waiting.price((place,)).loads == (4, 4)


def test_copies_of_parts_by_hand() -> None:
    """Task 0 in halves on both cores, task 1 whole on the first: only the second core hands its half over.

    Task 0: 10 and 10, halves 5 and 5. Two shares of four take 1 + 2*2 = 5 to copy, all of them 1 + 4*2 = 9. Task 1 in
    halves too: each core hands its half to the other one.
    """
    made = instance([[10, 10], [6, 6]], [(0, 1)], 1, each=2, shares=4)
    half = made.places.index(((0, 2), (1, 2)))
    assert made.price((half, 0)).loads == (5 + 6, 5 + 5)
    assert made.price((0, half)).loads == (10 + 9 + 3, 3)
    assert made.price((half, half)).loads == (5 + 5 + 3, 5 + 5 + 3)
    flat = parts(made, (half, half))
    assert [task.name for task in flat.mapping.graph.tasks] == ["t0@cpu0", "t0@cpu1", "t1@cpu0", "t1@cpu1"]
    assert (flat.at, flat.shares) == ((0, 1, 0, 1), ((0, 2), (0, 2), (1, 2), (1, 2)))
    assert [task.results for task in flat.mapping.graph.tasks] == [5, 5, 5, 5]  # half of 9, rounded up
    assert flat.mapping.price(flat.at) == made.price((half, half))
    begun = timetable(flat.mapping, flat.at, dispatched(flat.mapping, flat.at))
    assert (begun.starts, begun.latency) == ((0, 0, 10, 10), 13)


def test_a_solver_that_errs_is_not_asked_so() -> None:
    """All on the second core takes 0 + 0 + 1; HiGHS 1.11 with presolve calls this model infeasible."""
    made = instance([[0, 0], [3, 0], [0, 1]], [(0, 1), (1, 2)], shares=2, each=2, divided={1, 2})
    for name in EXACT:
        said = answer(name, made, "latency", Limits(), 20)
        assert (said.status, said.bound) == ("OPTIMAL", 1), name


def test_a_network_in_quarters() -> None:
    """Bytes, ticks and waiting of parts come from the board: galaxy_s9, cores in one group."""
    machine, graph = load_machine("galaxy_s9"), tasks(load_network("squeezenet1_1"))
    board = machine.processors
    made = build(graph, board, (4,), estimated(graph, board), machine.tick_ps, 4)
    names = {task.name: i for i, task in enumerate(graph.tasks)}
    assert not {names["input"], names["pool10.softmax"]} & made.split.tasks
    assert {names["conv1"], names["pool1"], names["fire2/concat"]} <= made.split.tasks
    conv, whole = names["conv1"], made.times[names["conv1"]][0]
    assert whole is not None
    assert made.part(conv, 0, 1) == -(-whole // 4) + 122  # split_sync_ns, in microseconds
    e = graph.edges.index((conv, names["pool1"]))
    size = graph.tasks[conv].results // 4 * board.element_bytes
    assert made.sent(e, 1)[0, 1] == round(copied_ps(size, board.copying, out=False, into=True) / 1e6)
    assert made.able[names["input"]] == (0,)
    assert len(made.able[conv]) == 2 + 3
    assert made.whole.able[conv] == (0, 1)


# ---- engines against everything --------------------------------------------------------------------------------------


@st.composite
def mappings(draw: st.DrawFn, most: int = 4, processors: int = 3) -> Mapping:
    number, cores = draw(st.integers(1, most)), draw(st.integers(1, 2))
    gpus, shares = draw(st.integers(0, processors - cores)), draw(st.integers(2, 3))
    edges = draw(st.sets(st.tuples(st.integers(0, most), st.integers(0, most))))
    kept = sorted((i, j) for i, j in edges if i < j < number)
    alike = draw(st.booleans())
    rows: list[list[int | None]] = []
    for _ in range(number):
        one = draw(st.integers(0, 12))
        cpu: list[int | None] = [one if alike else draw(st.integers(0, 12)) for _ in range(cores)]
        rows.append(cpu + [draw(st.one_of(st.none(), st.integers(0, 9))) for _ in range(gpus)])
    watts = (*[draw(st.integers(1, 3))] * cores, *(draw(st.integers(1, 3)) for _ in range(gpus)))
    divided = {i for i in range(number) if draw(st.integers(0, 3))}
    copy, each = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    return instance(
        rows, kept, copy, cores, watts, each=each, shares=shares, sync=draw(st.integers(0, 1)), divided=divided
    )


def least(made: Mapping, aim: Aim, limits: Limits) -> int | None:
    """All assignments, priced by their parts; of latencies all orders of the parts."""
    found = []
    for at in product(*made.able):
        flat = parts(made, at)
        price = flat.mapping.price(flat.at, limits.cap)
        assert price == made.price(at, limits.cap)
        values = {"period": price.period, "energy": price.energy}
        if aim == "latency":
            values["latency"] = min(timetable(flat.mapping, flat.at, o).latency for o in orders(flat.mapping))
        if limits.period is None or price.period <= limits.period:
            found.append(values[aim])
    return min(found, default=None)


@settings(max_examples=tries(12, 50), deadline=None, suppress_health_check=list(HealthCheck))
@given(mappings(), st.sampled_from(["period", "energy"]), st.sampled_from([100, 60]), st.booleans())
def test_engines_agree_with_all_places(made: Mapping, aim: Aim, cap: int, tight: bool) -> None:
    limits = Limits(cap)
    if tight:
        fastest = least(made, "period", limits)
        limits = Limits(cap, period=fastest + (2 if aim == "energy" else -1))
    expected = least(made, aim, limits)
    for name in EXACT:
        said = answer(name, made, aim, limits, 20)
        if expected is None:
            assert (said.status, said.schedule) == ("INFEASIBLE", None), name
            continue
        assert (said.status, said.bound) == ("OPTIMAL", expected), name
        assert said.schedule is not None
        assert Asked(made, aim, limits).value(said.schedule) == expected
    whole = least(made.whole, aim, limits)
    assert whole is None or (expected is not None and expected <= whole)


@settings(max_examples=tries(10, 30), deadline=None, suppress_health_check=list(HealthCheck))
@given(mappings(3))
def test_latencies_agree_with_all_orders_of_all_parts(made: Mapping) -> None:
    expected = least(made, "latency", Limits())
    for name in EXACT:
        said = answer(name, made, "latency", Limits(), 20)
        assert (said.status, said.bound) == ("OPTIMAL", expected), name
        assert said.schedule is not None
        assert Asked(made, "latency", Limits()).value(said.schedule) == expected


@settings(max_examples=tries(10, 40), deadline=None, suppress_health_check=list(HealthCheck))
@given(mappings(), st.sampled_from(["period", "energy"]))
def test_merged_cores_bound_divided_tasks(made: Mapping, aim: Aim) -> None:
    """The bound of merged cores, by all assignments of them: their loads are shared by as many as they stand for."""
    small, best = merged(made), least(made, aim, Limits())
    assert best is not None
    if len(small.processors) == len(made.processors):
        return
    found = []
    for at in product(*small.able):
        loads = small.loads(at)
        used = sum(g.cores * load for g, load in zip(small.processors, loads, strict=True))
        spread = max(-(-load // n) for load, n in zip(loads, small.number, strict=True))
        energy = sum(w * load for w, load in zip(small.watts, loads, strict=True))
        found.append(max(1, spread, -(-used // small.total)) if aim == "period" else energy)
    assert min(found) <= best


@settings(max_examples=tries(15, 60), deadline=None, suppress_health_check=list(HealthCheck))
@given(mappings(6), st.randoms(use_true_random=False))
def test_every_pipeline_of_parts_runs_at_its_period(made: Mapping, rng: random.Random) -> None:
    at: Assignment = tuple(rng.choice(able) for able in made.able)
    price, flat = made.price(at), parts(made, at)
    periods, energies, _ = Pricer(made, Limits())(np.array([at]))
    assert (price.period, price.energy) == (periods[0], energies[0])
    pipeline = pipelined(flat.mapping, flat.at, price.period)
    seen = replayed(flat.mapping, flat.at, pipeline, price.period)
    assert (seen.faults, seen.busy) == ((), price.loads)
    order = dispatched(flat.mapping, flat.at)
    alone = replayed(flat.mapping, flat.at, once(flat.mapping, flat.at, order), 0)
    made_of_it = timetable(flat.mapping, flat.at, order).latency
    assert max(1, alone.latency) == made_of_it <= horizon(made)
    low, high = latencies(made, np.array([at]))
    assert low[0] <= min(made_of_it, high[0])
    assert high[0] == timetable(flat.mapping, flat.at, tuple(range(len(flat.at)))).latency
    assert all(a < len(made.processors) for a in list_scheduled(made, "heft"))


# ---- plans -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def divided() -> Plan:
    """The least latency where dividing pays: every task takes 40 ms on two cores and on the GPU."""
    times = {task.name: {"2": 40_000.0, "gpu": 40_000.0} for task in tasks(load_network("lenet5")).tasks}
    pins = ["cpu_config=2,2", "split=on", "s2=cpu0"]
    return planned("lenet5", objective="latency", pins=pins, profile=Profile.model_validate({"times": times}))


def test_a_plan_with_parts_checks(divided: Plan, tmp_path: Path) -> None:
    assert divided.status == "OPTIMAL"
    some = [row for row in divided.schedule.tasks if row.share < 4]
    assert some
    assert len({row.task for row in some}) * 2 == len(some)
    assert all(row.share == 4 for row in divided.schedule.tasks if row.task in ("input", "s2"))
    assert next(row.processor for row in divided.schedule.tasks if row.task == "s2") == "cpu0"
    divided.save(tmp_path / "plan.json")
    assert check(tmp_path / "plan.json").problems == ()
    whole = planned("lenet5", objective="latency", pins=["cpu_config=2,2"])
    assert {row.share for row in whole.schedule.tasks} == {1}


def test_parts_in_the_terminal(divided: Plan) -> None:
    name = next(row.task for row in divided.schedule.tasks if row.share < 4)
    shown = show(divided, details=True)
    assert f"{name} 2/4" in shown
    one = show(divided, name)
    assert one.count(" on cpu") + one.count(" on gpu") >= 2
    assert f"{name} 2/4" in MappingProblem().sheet(divided).columns[0].cells


_PART = "parts", 0
_TASKS = *_PART, "schedule", "tasks"


def _divided(plan: Plan) -> int:
    return next(n for n, row in enumerate(plan.schedule.tasks) if row.share < 4)


LIES: dict[str, Callable[[Plan], tuple[Lie, ...]]] = {
    "(1 of 4) and": lambda p: (((*_TASKS, _divided(p), "share"), 1),),
    "task input: it cannot run on cpu1 (3 of 4)": lambda _: (
        ((*_TASKS, 0, "processor"), "cpu1"), ((*_TASKS, 0, "share"), 3)
    ),
    "it cannot run on cpu0 (4 of 2)": lambda _: ((("options", "pins"), ["cpu_config=2,2", "split=2", "s2=cpu0"]),),
    "measures.latency": lambda _: (((*_TASKS, -1, "start"), 10**6),),
    "figures.tasks[": lambda p: (((*_PART, "figures", "tasks", _divided(p), "time"), 1),),
    "tasks: the plan has 11, the network 10": lambda _: ((_TASKS, lambda rows: [*rows, rows[0]]),),
}  # fmt: skip


@pytest.mark.parametrize("said", LIES)
def test_a_plan_that_lies_is_found_out(divided: Plan, said: str) -> None:
    problems = check(changed(divided, *LIES[said](divided))).problems
    assert any(said in line for line in problems), problems


@pytest.mark.slow(2)
def test_dividing_pays_where_cores_are_alike() -> None:
    """DenseNet-40 on two pairs of cores: a sixth of the latency, both proven."""
    found = []
    for split in ("off", "on"):
        made = planned("densenet40", objective="latency", pins=["cpu_config=2,2", f"split={split}"], time_limit_s=60)
        assert (made.status, check(made).problems) == ("OPTIMAL", ())
        found.append(made.bound)
    assert found == [39967, 32816]


def test_fronts_of_divided_tasks() -> None:
    front = pareto("lenet5", "galaxy_s9", pins=["cpu_config=4", "split=on"], problem="mapping")
    assert front.proven
    assert [check(one).problems for one in front.plans] == [()] * len(front.plans)


@pytest.mark.few(2)
@pytest.mark.parametrize("engine", sorted(set(ENGINES) - {"clustering", "clustering-most"}))
@pytest.mark.parametrize("objective", ["period", "latency"])
def test_every_engine_gives_a_plan_that_checks(engine: str, objective: str) -> None:
    made = planned("lenet5", engine=engine, objective=objective, pins=["cpu_config=4", "split=2"], time_limit_s=2)
    assert made.decided
    assert check(made).problems == ()


@pytest.mark.parametrize(
    ("pins", "engine", "said"),
    [
        (["split=1"], "auto", "a whole number from 2 to 8"),
        (["split=half"], "auto", "a whole number from 2 to 8"),
        (["split=on", "split=off"], "auto", "split is pinned already"),
        (["split<=2"], "auto", "problem mapping knows cpu_config"),
        (["split=on"], "clustering", "a cluster is of whole tasks, leave out the pin split"),
        (["split=on"], "clustering-most", "a cluster is of whole tasks, leave out the pin split"),
    ],
)
def test_what_is_refused(pins: list[str], engine: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        planned("lenet5", engine=engine, pins=pins)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
