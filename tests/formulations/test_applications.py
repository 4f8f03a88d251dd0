"""Several applications: responses by hand, the model against every schedule, the safe rule against simulation."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from ortools.sat.python import cp_model

from formulations.applications import problem
from formulations.applications.cp_sat import applications_cp_model
from formulations.applications.problem import hunted
from formulations.applications.search import SEARCHES, Asked
from formulations.applications.space import Goal, Rule, Several, Stream, answers, floor, responses
from formulations.mapping.space import Mapping, Schedule
from formulations.problem import Report
from hwmodels.board.replay import Referee, Repeated
from instances.applications import applications, is_several
from instances.errors import InputError
from instances.load import dump_network, load_network
from instances.machine.boards import Group
from instances.network.tasks import Task, TaskGraph, tasks
from solver import Plan, check, solve
from solver.calls.solve import ask as question
from solver.calls.solve import show
from solver.cli.main import main
from solver.problems.applications import ApplicationsProblem, rows_of
from solver.search import driver_cp_sat
from solver.uses.bench.applications import row
from tests.effort import tries
from tests.lies import Lie, changed

# ---- by hand ---------------------------------------------------------------------------------------------------------


def several(
    parts: list[tuple[int, int, list[list[int | None]]]], edges: list[tuple[int, int]], *, copy: int = 0,
    cores: int = 1, gpus: int = 0, rule: Rule = "safe",
) -> Several:  # fmt: skip
    """Applications (period, deadline, times by task and processor)."""
    groups = [Group(f"cpu{k}", 1) for k in range(cores)] + [Group(f"acc{k}", 0) for k in range(gpus)]
    number, times = len(groups), [tuple(row) for _, _, rows in parts for row in rows]
    copies = np.full((len(edges), number, number), copy, dtype=np.int64)
    copies[:, range(number), range(number)] = 0
    graph = TaskGraph("n", tuple(Task(f"t{i}", "conv", 1, 1, 1, 0) for i in range(len(times))), tuple(edges))
    mapping = Mapping(
        graph, tuple(groups), tuple(times), copies, tuple(range(1, number + 1)), tuple(range(cores)), cores,
        (1,) * number, 4,
    )  # fmt: skip
    streams, begin = [], 0
    for k, (period, deadline, rows) in enumerate(parts):
        streams.append(Stream(f"a{k}", range(begin, begin + len(rows)), period, deadline))
        begin += len(rows)
    return Several(mapping, tuple(streams), rule)


def test_two_tasks_on_a_core_by_hand() -> None:
    """A takes 3 of 10, B 4 of 12. A waits for a B that has begun: 4 + 3 = 7 by both rules.

    B: in a window of 10 two releases of A may reach (one 7 before, ceil(17 / 10) = 2): 4 + 2*3 = 10. Printed:
    floor(12 / 10) = 1, 4 + 3 = 7, the worst that happens: B begins once A has ended, and is not interrupted.
    """
    parts: list[tuple[int, int, list[list[int | None]]]] = [(10, 10, [[3]]), (12, 12, [[4]])]
    one = several(parts, [])
    assert responses(one, one.plain((0, 0))) == (7, 10)
    other = several(parts, [], rule="printed")
    assert responses(other, other.plain((0, 0))) == (7, 7)
    assert hunted(one, one.plain((0, 0)), 2_000) == [6, 7]  # B begins at least a tick before


@pytest.mark.parametrize(
    ("first", "second", "response"),
    [
        ((20, 5), (15, 3), 8), ((10, 3), (10, 4), 10), ((12, 2), (12, 7), 11), ((6, 2), (12, 4), 10),
        ((9, 4), (13, 4), None),
    ],
)  # fmt: skip
def test_releases_reach_by_the_response_of_the_other(
    first: tuple[int, int], second: tuple[int, int], response: int | None
) -> None:
    """A takes a of a period P, B b of D, on one core. A waits for a B that has begun: a + b. B waits for n releases of
    A: R = b + n a, n = ceil((R + a + b) / P).

    (20, 5), (15, 3): 3 + 5, ceil(16 / 20) = 1. (10, 3), (10, 4): 4 + 2*3, ceil(17 / 10) = 2. (12, 2), (12, 7): 7 + 2*2,
    ceil(20 / 12) = 2. (6, 2), (12, 4): 4 + 3*2, ceil(16 / 6) = 3. (9, 4), (13, 4): 4 + 2*4 = 12, but ceil(20 / 9) = 3,
    and 4 + 3*4 is beyond 13. Without the a + b of A it were 8, 7, 9, 6 and 8.
    """
    (period, a), (deadline, b) = first, second
    made = several([(period, period, [[a]]), (deadline, deadline, [[b]])], [])
    assert responses(made, made.plain((0, 0))) == (a + b, response)
    solver = cp_model.CpSolver()
    status = solver.solve(applications_cp_model(made, Goal((1,))).model)
    found = round(solver.objective_value) if status == cp_model.OPTIMAL else None
    assert (status in (cp_model.OPTIMAL, cp_model.INFEASIBLE), found) == (True, response)


def test_the_longest_of_all_that_are_lower_blocks() -> None:
    """One core, tasks of 2, 3 and 9: the first one waits for the 9 of the third, 11; for the second it were 5."""
    made = several([(40, 40, [[2]]), (50, 50, [[3]]), (60, 60, [[9]])], [])
    assert responses(made, made.plain((0, 0, 0)))[0] == 11
    solver = cp_model.CpSolver()
    assert solver.solve(applications_cp_model(made, Goal((0,))).model) == cp_model.OPTIMAL
    assert round(solver.objective_value) == 11


def test_the_later_of_two_loose_tasks_begins_when_the_other_ends() -> None:
    """b then c on the other core, a beside c: b 0-1, a 1-2, c 1-2. With a first c ends at 3."""
    made = several([(10, 10, [[1, None], [1, None], [None, 1]])], [(1, 2)], cores=2)
    solver = cp_model.CpSolver()
    assert solver.solve(applications_cp_model(made, Goal((0,))).model) == cp_model.OPTIMAL
    assert round(solver.objective_value) == 2


def test_the_printed_rule_forgets_what_is_carried_in() -> None:
    """A takes 3 of 6, B four tasks of 2 in 11: by Eq. 3.11 B needs 8 + floor(11 / 6)*3 = 11, and A 3 + 2 = 5.

    Both released at 0: A 0-3, B 3-5, 5-7, A 7-10, B 10-12, A 12-15, B 15-17: B takes 17, its deadline is missed.
    """
    parts: list[tuple[int, int, list[list[int | None]]]] = [(6, 6, [[3]]), (11, 11, [[2]] * 4)]
    edges = [(1, 2), (2, 3), (3, 4)]
    made = several(parts, edges, rule="printed")
    assert responses(made, made.plain((0,) * 5)) == (5, 11)
    assert (
        Referee(
            made.mapping.graph.edges, made.mapping.times, {}, [Repeated(((0,),), 6), Repeated(((1, 2, 3, 4),), 11)]
        ).run((0, 0), 13)[1]
        == 17
    )
    assert responses(several(parts, edges), made.plain((0,) * 5)) == (5, None)


def test_lists_that_are_no_plan_and_one_that_never_ends() -> None:
    """Task 1 waits for 0, which comes after it: released at 3, not done by 10, it counts with twice 10 from 3 on."""
    edges, times = [(0, 1)], [[2, None], [1, 1]]
    for lists, said in (
        (((0,), ()), "the lists hold 1 tasks"), (((0, 1), (1,)), "or some twice; there are 2"),
        (((), (0, 1)), "task 0: processor 1 cannot run it"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            Referee(edges, times, {}, [Repeated(lists, 20)])
    assert Referee(edges, times, {}, [Repeated(((1, 0), ()), 20)]).run((3,), 10) == [17]
    assert Referee(edges, times, {(0, 0, 1): 4}, [Repeated(((0,), (1,)), 20)]).run((3,), 10) == [2 + 4 + 1]


def test_a_path_is_blocked_wherever_it_comes_to_a_processor() -> None:
    """A: core 2, GPU 3, core 2, a copy takes 1; B: 5 on the core or 4 on the GPU between two tasks of 1 on the core.

    A alone: 2+1, 3+1, 2 = 9. With B's middle task on the core: A is blocked by 5 on its way in and by 5 coming back
    from the GPU, where nothing of B is: 19. On the GPU (4, and 1 to copy its result): 2 + 5 + 2 + 9 = 18, as the
    first task of B takes 1 + 1 with its copy.
    """
    parts: list[tuple[int, int, list[list[int | None]]]] = [
        (40, 40, [[2, None], [9, 3], [2, None]]), (60, 60, [[1, None], [5, 4], [1, None]]),
    ]  # fmt: skip
    made = several(parts, [(0, 1), (1, 2), (3, 4), (4, 5)], copy=1, gpus=1)
    assert responses(made, made.plain((0, 1, 0, 0, 0, 0)))[0] == 19
    assert responses(made, made.plain((0, 1, 0, 0, 1, 0)))[0] == 18


def test_the_printed_rule_counts_all_that_follows_a_task() -> None:
    """A takes 3 of 20 on the core. B, of 30: 2 on the core, 4 and 5 on the GPU: 11, and once A at the first task."""
    parts: list[tuple[int, int, list[list[int | None]]]] = [(20, 20, [[3, 9]]), (30, 30, [[2, 9], [9, 4], [9, 5]])]
    made = several(parts, [(1, 2), (2, 3)], gpus=1, rule="printed")
    assert responses(made, made.plain((0, 0, 1, 1))) == (3 + 2, 11 + 3)


def test_a_task_that_reads_two_waits_for_the_later_one() -> None:
    """2 and 3 side by side, then 1: 4 at least, on two cores; a tick of either costs 1 or 2 fJ: 6 at least."""
    made = several([(30, 30, [[2, 2], [3, 3], [1, 1]])], [(0, 2), (1, 2)], cores=2)
    assert (made.paths, floor(made, Goal((0,))), floor(made, Goal(()))) == ((4,), 4, 6)
    assert responses(made, made.plain((0, 1, 1))) == (4,)


def test_figures_by_hand() -> None:
    """The schedule above with B on the core: A begins its tasks at 0, 2 + 1 and 3 + 3 + 1, B at 0, 1 and 6."""
    parts: list[tuple[int, int, list[list[int | None]]]] = [
        (40, 40, [[2, None], [9, 3], [2, None]]), (60, 60, [[1, None], [5, 4], [1, None]]),
    ]  # fmt: skip
    for deadline in (19, 18):
        parts[0] = (40, deadline, parts[0][2])
        made = several(parts, [(0, 1), (1, 2), (3, 4), (4, 5)], copy=1, gpus=1)
        part = problem.ApplicationsPart("n", {(): made})
        said = part.named(made.plain((0, 1, 0, 0, 0, 0)), ())
        assert bool(part.contains(said)) == (deadline == 18)
        found = part.figures_of(said, part.replay(said))
        assert [(one.time, one.copies) for one in found.tasks] == [(2, 1), (3, 1), (2, 0), (1, 0), (5, 0), (1, 0)]
        assert (found.starts, found.alone) == ((0, 3, 7, 0, 1, 6), (9, 7))
        assert [one.loads for one in found.processors] == [(5, 7), (4, 0)]
        assert part.goals["response"] == Goal((0, 1))


# ---- against everything ----------------------------------------------------------------------------------------------


@st.composite
def instances(draw: st.DrawFn) -> Several:
    """Two or three applications of one to three tasks, up to three processors."""
    cores, gpus = draw(st.integers(1, 2)), draw(st.integers(0, 1))
    parts: list[tuple[int, int, list[list[int | None]]]] = []
    edges: list[tuple[int, int]] = []
    begin = 0
    for _ in range(draw(st.integers(2, 3))):
        number = draw(st.integers(1, 3 if begin < 4 else 2))
        rows: list[list[int | None]] = [
            [draw(st.integers(0, 6)) for _ in range(cores)] + [draw(st.sampled_from([None, 1, 3])) for _ in range(gpus)]
            for _ in range(number)
        ]
        period = draw(st.integers(5, 60))
        parts.append((period, draw(st.integers(max(1, period // 2), period)), rows))
        edges += [
            (begin + i, begin + j) for i in range(number) for j in range(i + 1, number) if draw(st.booleans())
        ]  # fmt: skip
        begin += number
    rule: Rule = draw(st.sampled_from(["safe", "printed"]))
    return several(parts, edges, copy=draw(st.integers(0, 3)), cores=cores, gpus=gpus, rule=rule)


def value_of(made: Several, schedule: Schedule, goal: Goal) -> int | None:
    kept = made.kept(schedule)
    return None if kept is None else made.figure(schedule, goal, kept)


@settings(max_examples=tries(10, 40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(made=instances(), goal=st.sampled_from([(), (0,), (1,), (0, 1)]))
def test_the_model_is_every_schedule(made: Several, goal: tuple[int, ...]) -> None:
    aim = Goal(goal)
    values = [value for one in answers(made) if (value := value_of(made, one, aim)) is not None]
    built = applications_cp_model(made, aim)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(built.model)
    assert status == (cp_model.OPTIMAL if values else cp_model.INFEASIBLE)
    if values:
        assert value_of(made, built.chosen(solver), aim) == min(values)
        unit = 1 if goal else made.mapping.energy_unit
        assert round(solver.objective_value) * unit == min(values)


@settings(max_examples=tries(10, 40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(made=instances(), goal=st.sampled_from([(), (0,), (1,), (0, 1)]), most=st.sampled_from([6, 9, 12, 99]))
def test_what_the_first_model_leaves_open_is_refuted(made: Several, goal: tuple[int, ...], most: int) -> None:
    """Nothing is known of the first model: better schedules are asked for until there are none. A limit is kept."""
    aim, first = Goal(goal), Goal((0,))
    kept = [one for one in answers(made) if (value_of(made, one, first) or 0) <= most]
    values = [value for one in kept if (value := value_of(made, one, aim)) is not None]
    steps = SEARCHES["auto"](Asked(made, aim, ((first, most),)))
    model, report = next(steps), Report[Schedule](None, 0)
    try:
        while True:
            model = steps.send(report)
            said = driver_cp_sat.solve(model.model)
            bound = None if said.status == "INFEASIBLE" else said.bound or 0
            report = Report(model.decode(said.solver) if said.solved else None, bound)
    except StopIteration as end:
        schedule, bound = end.value
    assert (bound, schedule is None) == (min(values, default=None), not values)
    assert schedule is None or (value_of(made, schedule, aim), value_of(made, schedule, first) <= most) == (bound, True)


@settings(max_examples=tries(20, 60), deadline=None)
@given(made=instances(), data=st.data())
def test_the_safe_rule_is_never_exceeded(made: Several, data: st.DataObject) -> None:
    """Every response seen is at most the one computed, up to the first application that is not schedulable.

    If one is not, those of higher priority hold still: they wait for it at most as long as they are blocked.
    """
    made = Several(made.mapping, made.streams, "safe")
    at = tuple(data.draw(st.sampled_from(few)) for few in made.mapping.able)
    found = responses(made, made.plain(at))
    seen = hunted(made, made.plain(at), 300)
    for response, longest in zip(found, seen, strict=True):
        if response is None:
            break
        assert longest <= response


# ---- input -----------------------------------------------------------------------------------------------------------


def test_applications_are_parts_of_one_network() -> None:
    made = applications("lenet5@33ms,lenet5@1.5s/800ms")
    first, second = made.applications
    assert (first.name, first.period_us, first.deadline_us) == ("lenet5", 33_000, 33_000)
    assert (second.name, second.period_us, second.deadline_us) == ("lenet5#2", 1_500_000, 800_000)
    assert len(made.network.operators) == first.operators + second.operators
    assert made.network.operators[0].name.startswith("lenet5:")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lenet5@33ms,mobilenet_v1", "'mobilenet_v1' has no period"),
        ("lenet5@33", "'33' is no time"),
        ("lenet5@0.1us", "'0.1us' is no time"),
        ("lenet5@33ms/40ms", "deadline 40000 us is after the period"),
        ("lenet@33ms", "lenet"),
        ("lenet5@2000s", "'2000s' is no time"),
    ],
)
def test_applications_that_make_no_sense(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        applications(text)


def test_times_are_whole_microseconds() -> None:
    assert [one.period_us for one in applications("lenet5@1.001ms").applications] == [1001]


def test_paths_and_names_are_no_applications_by_chance(tmp_path: Path) -> None:
    """A path may have an @; names that would be taken apart again are refused in one line."""
    folder = tmp_path / "a@5ms"
    folder.mkdir()
    dump_network(load_network("lenet5"), folder / "net.json")
    assert not is_several(str(folder / "net.json"))
    assert not is_several("a" * 300 + ".json")
    odd = load_network("lenet5").model_copy(update={"name": "lenet5:b"})
    dump_network(odd, tmp_path / "odd.json")
    with pytest.raises(InputError, match="'lenet5:b': its name has one of"):
        applications(f"{tmp_path / 'odd.json'}@9ms")


def test_times_are_rounded_up() -> None:
    """LeNet takes 1,076.5 us on a core: a deadline of 1,076 is missed, whatever a tick is."""
    for options in ({}, {"settings": "tick_ps=500000000"}):
        plan = solve("lenet5@1076us", "hikey970", pins="cpu_config=1,1,1,1", **options, problem="applications")
        assert plan.status == "INFEASIBLE"
    with pytest.raises(InputError, match="times the shortest"):
        solve("lenet5@2ms,lenet5@20s", "hikey970", problem="applications")


def test_what_is_not_tried_is_not_refuted() -> None:
    """On (4) LeNet does not end in 1.2 ms; the time limit is over before (1,1,1,1), where it does."""
    plan = solve("lenet5@1200us", "hikey970", time_limit_s=0.01, problem="applications")
    assert plan.status in ("NO_SOLUTION_FOUND", "FEASIBLE", "OPTIMAL")


def test_a_file_of_applications(tmp_path: Path) -> None:
    path = tmp_path / "apps.json"
    entries: list[dict[str, object]] = [{"network": "lenet5", "period_us": 9_000} for _ in range(2)]
    entries[1]["deadline_us"] = 7_000
    path.write_text(json.dumps({"format": "certile-application-set/1", "applications": entries}))
    made = applications(path)
    assert [(one.name, one.deadline_us) for one in made.applications] == [("lenet5", 9_000), ("lenet5#2", 7_000)]
    path.write_text(json.dumps({"format": "certile-application-set/1", "applications": [{"network": "lenet5"}]}))
    with pytest.raises(InputError, match="period_us"):
        applications(path)


# ---- plans -----------------------------------------------------------------------------------------------------------

TWO = "lenet5@5ms,lenet5@8ms/6ms"


@pytest.fixture(scope="module")
def plan() -> Plan:
    return solve(TWO, "hikey970", pins="cpu_config=1,1,1,1", problem="applications")


@pytest.mark.slow(3)
def test_a_plan_is_proven_checked_and_follows_its_schema(plan: Plan) -> None:
    assert (plan.status, plan.gap, plan.part.replay.ok) == ("OPTIMAL", 0, True)
    assert check(plan).ok
    Draft202012Validator(ApplicationsProblem().schema()).validate(json.loads(plan.to_json()))
    for engine in ("apart", "ga"):
        other = solve(TWO, "hikey970", engine=engine, pins="cpu_config=1,1,1,1", time_limit_s=1, problem="applications")
        assert other.objective is None or other.objective.value >= plan.objective.value


def test_the_least_responses_in_turn(plan: Plan) -> None:
    """The least response of each alone is at most its response when all are minimised together; so is their sum."""
    assert plan.status == "OPTIMAL"
    least = []
    for number in (1, 2):
        one = solve(TWO, "hikey970", objective=f"response:{number}", pins="cpu_config=1,1,1,1", problem="applications")
        assert one.status == "OPTIMAL"
        least.append(one.objective.value)
    assert all(a <= row.response for a, row in zip(least, rows_of(plan), strict=True))
    turned = solve(TWO, "hikey970", objective="response:1,energy", pins="cpu_config=1,1,1,1", problem="applications")
    assert turned.status == "OPTIMAL"
    assert turned.objective.value == least[0]


_PART = "parts", 0
_TASKS = *_PART, "schedule", "tasks"
#: More than the profile that is estimated says.
_SLOW = {task.name: {"1*": 999.0, "npu": None, "gpu": None} for task in tasks(applications(TWO).network).tasks}

LIES: dict[str, Lie] = {
    "measures.response:lenet5: the plan says": ((*_PART, "measures", "response:lenet5"), 1),
    "replay.counts.lenet5: the plan says": ((*_PART, "replay", "counts", "lenet5"), 1),
    "figures.alone": ((*_PART, "figures", "alone", 0), 1),
    "tasks: the plan has": (_TASKS, lambda rows: rows[1:]),
    "stands before a task": (_TASKS, lambda rows: rows[::-1]),
    "cannot run on npu": ((*_TASKS, 0, "processor"), "npu"),
    "no response within its deadline": (("options", "profile"), {"times": _SLOW}),
    "asks? for another one": ((*_PART, "schedule", "cpu_config"), [4]),
    "analysis=safe or analysis=printed": (("options", "pins"), ["cpu_config=1,1,1,1", "analysis=other"]),
    "replay.compared: the plan says True": (("options", "pins"), ["cpu_config=1,1,1,1", "analysis=printed"]),
    "unit": (("unit",), "fJ"),
    "several applications minimise": (("objectives",), ["response:other"]),
}


def test_an_engine_that_proves_nothing_is_not_believed() -> None:
    best = solve(TWO, "hikey970", objective="energy", pins="cpu_config=1,1,1,1", problem="applications")
    problems = check(changed(best, (("engine",), "apart"))).problems
    assert any("proves nothing" in line for line in problems), problems


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        (("network_data", "applications", 0, "operators"), 1, "their operators are not those of the network"),
        (("network_data", "applications", 0, "name"), "lenet5#2", "their operators are not those of the network"),
        (("network_data", "applications"), [], "their operators are not those of the network"),
        ((*_PART, "schedule", "draws"), 0, "draws: Input should be greater than or equal to 500"),
        ((*_PART, "schedule", "draws"), 10**6, "draws: Input should be less than or equal to 20000"),
    ],
)
def test_nonsense_is_no_plan(plan: Plan, where: tuple[str | int, ...], value: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        changed(plan, (where, value))


@pytest.mark.parametrize("message", LIES)
def test_lies_are_found(plan: Plan, message: str) -> None:
    report = check(changed(plan, LIES[message]))
    assert not report.ok
    assert any(re.search(message, line) for line in report.problems), report.problems


def test_a_response_that_the_simulation_exceeds_is_a_fault(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a tick; what it just reaches is none."""
    made = [row.response for row in rows_of(plan)]
    for more in (0, 1):
        monkeypatch.setattr(problem, "hunted", lambda *_, m=more: [made[0], made[1] + m])
        found = " ".join(check(plan).problems)
        assert (f"response {made[1]} by analysis, {made[1] + 1} simulated" in found) == bool(more)


def test_no_schedule_says_so() -> None:
    """Two LeNets that have to be done within 0.2 ms: their shortest path takes longer on every processor."""
    plan = solve("lenet5@200us,lenet5@200us", "galaxy_s9", problem="applications")
    assert (plan.status, plan.objective, plan.part.schedule) == ("INFEASIBLE", None, None)
    assert "lenet5: it takes at least" in plan.conflicts[0]
    assert check(plan).ok


def test_a_row_of_the_suite() -> None:
    machine, rule, objective, status, optimum, *others = row(TWO, "hikey970", "response:1", 20)
    assert (machine, rule, objective, status) == ("hikey970", "safe", "response:1", "OPTIMAL")
    apart, genetic, bound, gap, agrees, _ = others
    assert optimum == bound
    assert (gap, agrees) == (0, True)
    for other in (apart, genetic):
        assert other is None or (isinstance(other, int) and isinstance(optimum, int) and other >= optimum)


@pytest.mark.slow(2)
def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "apps.json"
    call = ["solve", TWO, "-m", "hikey970", "--engine", "apart", "--pin", "cpu_config=1,1,1,1"]
    assert main([*call, "-o", str(out), "--compare", "ga", "--time-limit", "1"]) == 0
    assert "stays within all responses" in capsys.readouterr().out
    assert main(["check", str(out)]) == 0
    assert main(["show", str(out), "--all"]) == 0
    said = capsys.readouterr().out
    assert "lenet5#2: every 8,000 us" in said
    made: Any = Plan.load(out)
    task = made.schedule.tasks[0].task
    assert task in show(made, task)
    for wrong, message in {
        "--objective": ("period", "objective 'period'"), "--pin": ("cap=50", "several applications know"),
        "--problem": ("tiling", "these are several"), "--engine": ("milp", "milp"), "--size": ("32x32", "--size"),
    }.items():  # fmt: skip
        assert main(["solve", TWO, "-m", "hikey970", wrong, message[0]]) == 2
        assert message[1] in capsys.readouterr().err
    assert main(["solve", "lenet5", "-m", "hikey970", "--problem", "applications"]) == 2
    assert "with their periods" in capsys.readouterr().err
    assert main(["pareto", TWO, "-m", "hikey970"]) == 2
    assert "planned together" in capsys.readouterr().err


@pytest.mark.slow(14)
def test_three_networks_never_miss() -> None:
    """Section 3.3.5.3: periods of 33, 40 and 50 ms; with an NPU there is a schedule, and 10,000 offsets agree."""
    three = "squeezenet1_1@33ms,mobilenet_v1@40ms,mobilenet_v2@50ms"
    found = solve(three, "hikey970", engine="apart", pins="cpu_config=1,1,1,1", problem="applications")
    assert check(found).ok
    (part,) = ApplicationsProblem().parts(question(three, "hikey970", pins="cpu_config=1,1,1,1")[1])
    seen = hunted(part.instances[1, 1, 1, 1], part.numbered(found.schedule), 10_000, seed=1)
    assert all(longest <= row.response for longest, row in zip(seen, rows_of(found), strict=True))
    none = solve(three, "galaxy_s9", pins="cpu_config=1,1,1,1", problem="applications")
    assert none.status == "INFEASIBLE"
