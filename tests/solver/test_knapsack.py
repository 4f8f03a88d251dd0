"""A formulation that is one folder and one line of registry: solve, check, show, pareto, bench and list serve it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import certile
from formulations.clock import Clock
from formulations.pins import Pins
from formulations.problem import Goal, Model, Priced, Replayed
from instances.load import load_machine
from instances.measured import Profile
from instances.network.network import Network
from instances.network.operators import Conv, Input
from instances.problems import PROBLEMS, Line
from solver.ask.question import Question
from solver.cli.main import main
from solver.plan.plan import Asked, Objective, PartPlan, worst
from solver.problems.problem import Problem
from solver.search import deciding, driver_cp_sat, driver_milp
from solver.search.driver import Said
from solver.search.driver_milp import MilpAnswer
from solver.search.loop import Answer, _PartSearch, decide_part
from solver.search.verdict import price_and_replay, proven_of, rows_of, totals_of, verdicts_of
from tests.knapsack import Knapsack
from tests.knapsack import problem as knapsack
from tests.knapsack.problem import Kept, Subsets, Weights

ENGINES = ("exact", "cp-sat", "milp", "milp-cbc")


def row_of(*sizes: int) -> Network:
    """Layers with weights of so many bytes."""
    layers = (
        Conv(name=f"c{n}", inputs=("in",), shape=(1, 1, 1, 9 - n), filters=1, kernel=(1, n)) for n in sizes
    )  # fmt: skip
    return Network(name="row", operators=(Input(name="in", shape=(1, 1, 1, 8)), *layers))


#: Weights of 3, 4 and 5 bytes; 7 fit.
ROW = row_of(3, 4, 5)
SMALL = load_machine("scratchpad_24k", {"ocm_bytes": "7", "reserved_bytes": "0"})


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line of registry."""
    monkeypatch.setitem(PROBLEMS, "knapsack", Line("ocm_bytes w_bytes", package="tests.knapsack"))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_optimum_by_hand(engine: str) -> None:
    """{3, 4} stay: 12 bytes once, 5 nine times more."""
    plan = certile.solve(ROW, SMALL, problem="knapsack", engine=engine)
    assert (plan.status, plan.objective.value, plan.bound) == ("OPTIMAL", 57, 57)
    assert plan.parts[0].schedule == Kept(layers=("c3", "c4"))
    assert certile.check(plan).ok


def test_several_objectives_each_with_a_bound() -> None:
    plan = certile.solve(ROW, SMALL, problem="knapsack", objective="bytes,room", engine="cp-sat")
    assert (plan.parts[0].bounds, plan.status) == ({"bytes": 57, "room": 7}, "OPTIMAL")


@pytest.mark.parametrize("engine", ["cp-sat", "milp", "milp-cbc"])
def test_ctrl_c_keeps_what_the_solver_had(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends the first search: the second objective is not asked for, and has no bound."""
    calls = []

    def stopped(work: Callable[[], object], stop: Callable[[], None]) -> tuple[object, bool]:
        calls.append(stop)
        return work(), True

    for driver in (driver_cp_sat, driver_milp):
        monkeypatch.setattr(driver, "interruptible", stopped)
    plan = certile.solve(ROW, SMALL, problem="knapsack", objective="bytes,room", engine=engine)
    assert (len(calls), plan.status, plan.parts[0].stats.get("interrupted")) == (1, "FEASIBLE", True)
    assert certile.check(plan).ok


def test_a_heuristic_proves_nothing_but_its_floor() -> None:
    """5 alone: 12 + 9 * 7."""
    plan = certile.solve(ROW, SMALL, problem="knapsack", engine="largest")
    assert (plan.status, plan.objective.value, plan.bound) == ("FEASIBLE", 75, 12)
    report = certile.check(plan, prove=True)
    assert report.ok
    assert report.better.objective.value == 57


def test_pins_keep_and_lies_are_found() -> None:
    pinned = certile.solve(ROW, SMALL, problem="knapsack", pins=["most<=1"])
    assert pinned.objective.value == 75
    free = certile.solve(ROW, SMALL, problem="knapsack")
    lie = free.model_copy(update={"options": free.options.model_copy(update={"pins": ("most<=1",)})})
    assert "more stay than most" in certile.check(lie).problems[0]
    five = certile.solve(ROW, roomy := SMALL.model_copy(update={"ocm_bytes": 12}), problem="knapsack", pins=["most<=1"])
    lie = five.model_copy(update={"options": certile.solve(ROW, roomy, problem="knapsack").options})  # all fit
    assert certile.check(lie).problems == (
        "layer row: status OPTIMAL in bytes 75: engine largest has a plan of bytes 12",
    )
    row = free.parts[0].model_copy(update={"schedule": Kept(layers=("c4", "c5"))})
    assert "room for 7" in certile.check(free.model_copy(update={"parts": (row,)})).problems[0]
    with pytest.raises(certile.InputError, match="unknown decision 'least'"):
        certile.solve(ROW, SMALL, problem="knapsack", pins=["least=1"])
    worse = certile.solve(ROW, SMALL, problem="knapsack", engine="largest")
    row = worse.parts[0].model_copy(update={"status": "OPTIMAL", "bounds": {"bytes": 75}, "gap": 0.0})
    claimed = worse.model_copy(
        update={"parts": (row,), "status": "OPTIMAL", "bound": 75, "gap": 0.0, "engine": "exact"}
    )
    assert certile.check(claimed, prove=True).proof == "refuted"


def test_a_check_asks_what_was_asked() -> None:
    """All options of a plan, but for the time that it took."""
    asked = Asked(
        time_limit_s=3.0, settings=("ocm_bytes=7",), layers=("c3",), pins=("most<=1",), full=True, bounding=False,
        all_kinds=True, profile=Profile(times={"c3": {"gpu": 2.0}}),
    )  # fmt: skip
    plan: Any = SimpleNamespace(options=asked, network_data=ROW, machine_data=SMALL, objectives=("room",))
    problem = Problem(Knapsack())
    found = problem.question(plan)
    assert problem.options_of(found) == asked.model_copy(update={"time_limit_s": None})
    assert (found.network, found.machine, found.objectives, found.problem) == (ROW, SMALL, ("room",), "knapsack")


@pytest.mark.parametrize("engine", ENGINES)
def test_the_front_by_hand(engine: str) -> None:
    """Rooms 7, 5, 4, 3 and 0: 57, 75, 84, 93, 120 bytes."""
    front = certile.pareto(ROW, SMALL, problem="knapsack", engine=engine)
    assert [tuple(point.values.values()) for point in front.parts[0].points] == [
        (57, 7), (75, 5), (84, 4), (93, 3), (120, 0),
    ]  # fmt: skip
    assert front.proven or engine == "milp-cbc"  # PuLP hands back no proof of CBC that nothing is left


def test_a_front_ends_with_the_time() -> None:
    """What is quick is a point that proves nothing."""
    front = certile.pareto(ROW, SMALL, problem="knapsack", time_limit_s=1e-9)
    assert [tuple(point.values.values()) for point in front.parts[0].points] == [(75, 5)]
    assert not front.proven


def test_the_command_line_serves_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "plan.json")
    asked = ["lenet5", "--machine", "scratchpad_24k", "--problem", "knapsack"]
    assert main(["solve", *asked, "--compare", "largest", "-o", out]) == 0
    assert "largest" in capsys.readouterr().out
    assert main(["check", out, "--prove"]) == 0
    assert main(["show", out]) == 0
    assert main(["pareto", *asked, "--axes", "bytes,room"]) == 0
    assert main(["explain", *asked]) == 0
    capsys.readouterr()
    for kind, name in (("problems", "knapsack"), ("engines", "largest"), ("objectives", "room"), ("pins", "most")):
        option = [] if kind == "problems" else ["--problem", "knapsack"]
        assert main(["list", kind, *option, "--json"]) == 0
        assert name in json.loads(capsys.readouterr().out)
    assert main(["schema", "knapsack"]) == 0
    capsys.readouterr()
    assert main(["bench", "knapsack", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["sections"][0]["rows"]
    assert {row["engine"] for row in rows} == {*ENGINES, "largest"}


def test_a_limit_of_memory_gives_a_quick_plan() -> None:
    plan = certile.solve(ROW, SMALL, problem="knapsack", memory_limit="1MiB")
    assert (plan.objective.value, plan.bound) in ((75, 12), (57, 57))  # the search may end before it is told
    for wrong in ("lots", 0, "-1"):
        with pytest.raises(certile.InputError, match="memory limit"):
            certile.solve(ROW, SMALL, problem="knapsack", memory_limit=wrong)


# ---- the loop: what is no proof --------------------------------------------------------------------------------------


def started(network: Network, engine: str, clock: Clock | None = None) -> tuple[str, int, int | None]:
    """Status, bytes and bound of a search that begins with the largest that fit."""
    formulation = Knapsack()
    formulation.starts = ("largest",)
    said = decide_part(formulation, Weights(network, SMALL, Pins()), ["bytes"], engine, clock or Clock.of(60))
    return said.status, said.values["bytes"], said.bound


@pytest.mark.parametrize("engine", ENGINES)
def test_a_piece_is_searched_for_a_schedule_that_is_better_by_one(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Two inferences, weights of 3, 4 and 6 bytes: {6} moves 13 + 7 = 20, {3, 4} 13 + 6 = 19, which is the floor."""
    monkeypatch.setattr(knapsack, "INFERENCES", 2)
    monkeypatch.setattr(Subsets, "floor", lambda *_: 19)
    assert started(row_of(3, 4, 6), engine) == ("OPTIMAL", 19, 19)
    monkeypatch.setattr(Subsets, "floor", lambda *_: 18)
    assert started(row_of(3, 4, 6), engine) == ("OPTIMAL", 19, 19)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_not_searched_as_time_is_over_has_its_floor(engine: str) -> None:
    """{5} moves 12 + 9 * 7 = 75; that nothing moves fewer than 12 is all that is known of the rest."""
    assert started(ROW, engine, Clock(0.0, lambda: 1.0)) == ("FEASIBLE", 75, 12)


FIVE, BOTH = Kept(layers=("c5",)), Kept(layers=("c3", "c4"))  # 75 bytes and 57, of 12 that must move


def _no_schedule(_: object) -> Kept:
    raise certile.InputError("out of the model")


def milp(status: Any, objective: float) -> MilpAnswer:
    """Without a bound: coefficients are too large to believe one."""
    return MilpAnswer(status, None, False, objective, False)


#: What a solver says of a model whose solution is {5}, where 12 are proven; the schedule, the bound, whether to ask
#: again, and what is proven then.
REPORTS: list[tuple[Said, dict[str, object], tuple[Kept | None, int | None, bool, int]]] = [
    (Said("OPTIMAL", 75, False), {}, (FIVE, 75, False, 12)),
    (Said("OPTIMAL", 20, False), {"base": 15, "unit": 3}, (FIVE, 75, False, 12)),
    (Said("FEASIBLE", 20, False), {}, (FIVE, 20, False, 12)),
    (Said("FEASIBLE", 5, False), {}, (FIVE, 12, False, 12)),  # less than is known
    (Said("FEASIBLE", None, False), {}, (FIVE, 12, False, 12)),
    (Said("FEASIBLE", 5, False), {"own_bound": True}, (FIVE, 5, False, 12)),
    (Said("FEASIBLE", None, False), {"own_bound": True}, (FIVE, 0, False, 12)),
    (Said("OPTIMAL", 75, False), {"proves": False}, (FIVE, 12, False, 12)),
    (Said("NO_SOLUTION_FOUND", 20, False), {}, (None, 20, False, 12)),
    (Said("NO_SOLUTION_FOUND", None, False), {}, (None, 12, False, 12)),
    (Said("INFEASIBLE", None, False), {}, (None, None, False, 12)),
    (Said("INFEASIBLE", None, False), {"proves": False}, (None, 12, False, 12)),
    (Said("OPTIMAL", 20, False), {"decode": _no_schedule}, (None, 20, False, 12)),
    (Said("OPTIMAL", 20, False), {"decode": lambda _: None}, (None, 20, True, 20)),  # a cut: the piece grew tighter
    (Said("OPTIMAL", 20, False), {"decode": lambda _: None, "own_bound": True}, (None, 20, True, 12)),
    (Said("FEASIBLE", 20, True), {"decode": lambda _: None}, (None, 20, False, 12)),  # Ctrl-C: nobody asks again
    (milp("OPTIMAL", 75.4), {"priced": True}, (FIVE, 75, False, 12)),
    (milp("OPTIMAL", 20.0), {"priced": True, "base": 15, "unit": 3}, (FIVE, 75, False, 12)),
    (milp("OPTIMAL", 74.4), {"priced": True}, (FIVE, 12, False, 12)),  # not what it costs
    (milp("OPTIMAL", 75.0), {}, (FIVE, 12, False, 12)),
    (milp("OPTIMAL", 75.0), {"priced": True, "proves": False}, (FIVE, 12, False, 12)),
    (milp("FEASIBLE", 75.0), {"priced": True}, (FIVE, 12, False, 12)),  # cut short: less may be left
    (milp("OPTIMAL", 33.0), {"priced": True, "cost": lambda: 33}, (FIVE, 33, False, 12)),
]


@pytest.mark.parametrize(("said", "more", "wanted"), REPORTS)
def test_what_a_solver_says_of_a_model(
    said: Said, more: dict[str, object], wanted: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    search = _PartSearch(Knapsack(), Weights(ROW, SMALL, Pins()), "cp-sat")
    search.proven = 12
    monkeypatch.setattr(search, "solved", lambda *_: (said, None))
    told = search.report(Model(None, **{"decode": lambda _: FIVE, **more}), Goal("bytes"))
    assert (told.schedule, told.bound, told.again, search.proven) == wanted


def test_nobody_asks_a_solver_again_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    search = _PartSearch(Knapsack(), Weights(ROW, SMALL, Pins()), "cp-sat")
    monkeypatch.setattr(search, "solved", lambda *_: (Said("FEASIBLE", 20, False), None))
    assert not search.report(Model(None, lambda _: None), Goal("bytes", clock=Clock(0.0, lambda: 1.0))).again


def told(
    monkeypatch: pytest.MonkeyPatch, said: list[tuple[Kept | None, int | None]], *objectives: str,
    most: dict[str, int] | None = None, seen: list[float | None] | None = None, **fields: object,
) -> tuple[Answer[Kept], list[tuple[object, ...]]]:  # fmt: skip
    """What is answered where a search says these one after the other, and each question: measure, below, caps, least.

    There are 16 seconds, which do not pass; `seen` gets how many each question has.
    """
    asked, answers, formulation, clock = [], iter(said), Knapsack(), Clock(16.0, lambda: 0.0)
    for name, value in fields.items():
        setattr(formulation, name, value)

    def exact(self: Subsets, goal: Goal, engine: str) -> tuple[Kept | None, int | None]:
        asked.append((goal.measure, goal.below, dict(goal.caps), dict(goal.least)))
        (seen if seen is not None else []).append(goal.clock.left)
        return next(answers)

    monkeypatch.setattr(Subsets, "exact", exact)
    return decide_part(formulation, Weights(ROW, SMALL, Pins()), objectives, "exact", clock, most=most), asked


@pytest.mark.parametrize(
    ("said", "status", "bounds", "asked"),
    [
        ([(BOTH, 57), (None, None)], "OPTIMAL", {"bytes": 57, "room": 7},
         [("bytes", None, {}, {}), ("room", 7, {"bytes": 57}, {"bytes": 57})]),
        ([(FIVE, 60), (None, 3)], "FEASIBLE", {"bytes": 60, "room": 3},  # {5} takes 5 bytes of room
         [("bytes", None, {}, {}), ("room", 5, {"bytes": 75}, {"bytes": 60})]),
        ([(None, 20)], "NO_SOLUTION_FOUND", {"bytes": 20, "room": 0}, [("bytes", None, {}, {})]),
        ([(None, None)], "INFEASIBLE", {"bytes": None, "room": None}, [("bytes", None, {}, {})]),
        ([(FIVE, 75), (BOTH, 3)], "FEASIBLE", {"bytes": 75, "room": 3},  # 7 bytes of room are more than 5
         [("bytes", None, {}, {}), ("room", 5, {"bytes": 75}, {"bytes": 75})]),
    ],
)  # fmt: skip
def test_goals_one_after_the_other(
    said: list[tuple[Kept | None, int | None]], status: str, bounds: dict[str, int | None], asked: list[object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    found, questions = told(monkeypatch, said, "bytes", "room", quick=())
    assert (found.status, dict(found.bounds), questions) == (status, bounds, asked)


def test_ties_have_no_bound_and_caps_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    found, asked = told(monkeypatch, [(FIVE, 75), (None, None)], "bytes", most={"room": 5}, ties=("room",))
    assert (found.status, found.bounds) == ("OPTIMAL", {"bytes": 75})
    assert asked == [("bytes", None, {"room": 5}, {}), ("room", 5, {"room": 5, "bytes": 75}, {"bytes": 75})]
    found, _ = told(monkeypatch, [(FIVE, 40)], "bytes", most={"bytes": 60}, quick=("largest",))  # {5} moves 75
    assert (found.status, found.schedule, found.bounds) == ("NO_SOLUTION_FOUND", None, {"bytes": 40})


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [({}, [8, 16]), ({"halves": False}, [16, 16]), ({"ties": ("bytes",), "tie_share": 9.0}, [16, 1])],
)
def test_an_objective_has_half_of_the_time_where_others_follow_and_ties_a_second(
    fields: dict[str, object], seconds: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float | None] = []
    names = ("room",) if "ties" in fields else ("room", "bytes")
    told(monkeypatch, [(FIVE, 0), (None, 20)], *names, seen=seen, **fields)
    assert seen == pytest.approx(seconds, abs=0.1)  # of what the objectives took ties have nine times as much


# ---- the front, and answers that are tried again ---------------------------------------------------------------------

NOTHING, AXES = Kept(layers=()), ("bytes", "room")


def axed(schedule: Kept | None, status: Any, **stats: bool) -> Answer[Kept]:
    """An answer whose bounds are what its status says."""
    values = {} if schedule is None else dict(Weights(ROW, SMALL, Pins()).price(schedule).measures)
    bounds = {name: values.get(name) if status == "OPTIMAL" else None for name in AXES}
    return Answer(schedule, values, bounds, status, stats=stats)


@pytest.mark.parametrize(
    ("said", "points", "proven"),
    [
        ([axed(BOTH, "OPTIMAL"), axed(None, "INFEASIBLE")], 1, True),
        ([axed(BOTH, "OPTIMAL"), axed(None, "NO_SOLUTION_FOUND")], 1, False),  # the time ended: points may be missing
        ([axed(BOTH, "FEASIBLE"), axed(None, "INFEASIBLE")], 1, False),
        ([axed(BOTH, "OPTIMAL"), axed(FIVE, "OPTIMAL", interrupted=True)], 2, False),
        ([axed(BOTH, "OPTIMAL"), axed(NOTHING, "OPTIMAL")], 2, True),  # nothing takes less room than none
        ([axed(BOTH, "FEASIBLE"), axed(NOTHING, "OPTIMAL")], 2, False),
        ([axed(None, "INFEASIBLE")], 0, True),
    ],
)
def test_a_front_is_proven_if_every_point_and_its_end_is(
    said: list[Answer[Kept]], points: int, proven: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A point is searched for with less room than the one before took: 6 after {3, 4}, 4 after {5}."""
    answers, caps = iter(said), []

    def decided(*_: object, most: dict[str, int], **__: object) -> Answer[Kept]:
        caps.append(dict(most))
        return next(answers)

    monkeypatch.setattr(deciding, "decide_part", decided)
    found, sure = deciding.lowest(Knapsack(), Weights(ROW, SMALL, Pins()), Question(ROW, SMALL, AXES), AXES)
    assert (len(found), sure) == (points, proven)
    assert caps == [{}, {"room": 6}][: len(said)]


def said(schedule: Kept | None, bound: int | None, status: Any = "FEASIBLE") -> Answer[Kept]:
    return Answer(schedule, axed(schedule, status).values, {"bytes": bound}, status, wall_s=1.5)


@pytest.mark.parametrize(
    ("one", "two", "wanted"),
    [
        (None, said(FIVE, 20), (FIVE, 20, "FEASIBLE", 1.5)),
        (said(FIVE, 20), said(BOTH, 12), (BOTH, 20, "FEASIBLE", 3.0)),
        (said(BOTH, None), said(FIVE, 30), (BOTH, 30, "FEASIBLE", 3.0)),
        (said(FIVE, None), said(FIVE, None), (FIVE, None, "FEASIBLE", 3.0)),
        (said(FIVE, 20), said(None, 75, "NO_SOLUTION_FOUND"), (FIVE, 75, "OPTIMAL", 3.0)),
        (said(None, 20, "NO_SOLUTION_FOUND"), said(FIVE, 12), (FIVE, 20, "FEASIBLE", 3.0)),
        (said(FIVE, 20), said(BOTH, 57, "OPTIMAL"), (BOTH, 57, "OPTIMAL", 1.5)),
        (said(None, 20, "NO_SOLUTION_FOUND"), said(None, None, "INFEASIBLE"), (None, None, "INFEASIBLE", 1.5)),
    ],
)
def test_of_two_answers_the_better_schedule_and_the_better_bound(
    one: Answer[Kept] | None, two: Answer[Kept], wanted: tuple[object, ...]
) -> None:
    found = deciding._better(one, two)
    assert (found.schedule, found.bound, found.status, found.wall_s) == wanted


# ---- the verdict -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("priced", "walked", "said"),
    [
        (({"a": 1}, {}), ({"a": 1}, {}), ()),
        (({"a": 1}, {}), ({"a": 2}, {}), ("a: priced 1, replayed 2",)),
        (({"a": 1, "b": 0}, {}), ({"a": 1}, {}), ("b: priced 0, replayed None",)),
        (({"a": 1}, {}), ({"a": 1, "b": 0}, {}), ("b: priced None, replayed 0",)),
        (({}, {}), ({"a": 1}, {}), ("a: priced None, replayed 1",)),
        (({"a": 1}, {"n": 3}), ({"a": 1}, {}), ("n: priced 3, replayed None",)),
        (({"a": 1}, {"n": 3}), ({"a": 1}, {"n": 3, "o": 4}), ("o: priced None, replayed 4",)),
        (({"a": 1}, {"n": 3}), ({"a": 1}, {"n": 4}), ("n: priced 3, replayed 4",)),
        (({"a": 1}, {}), ({"a": 1}, {"n": 3}), ()),  # a formulation that prices no counts claims none
        (({"a": 1}, {"n": 3}), ({"b": 1}, {"n": 3}), ("a: priced 1, replayed None", "b: priced None, replayed 1")),
    ],
)  # fmt: skip
def test_what_only_price_or_only_replay_has_is_a_difference(
    priced: tuple[dict[str, int], ...], walked: tuple[dict[str, int], ...], said: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    part = Weights(ROW, SMALL, Pins())
    monkeypatch.setattr(part, "price", lambda _: Priced(priced[0], counts=priced[1]))
    monkeypatch.setattr(part, "replay", lambda _: Replayed(walked[0], counts=walked[1]))
    assert price_and_replay(part, Kept(layers=())).disagreements == said


def rows(*answers: Answer[Kept]) -> list[PartPlan]:
    """What a plan says of parts called r0, r1, ..., with these answers."""
    pairs = []
    for number, answer in enumerate(answers):
        part = Weights(ROW, SMALL, Pins())
        part.name = f"r{number}"
        pairs.append((part, answer))
    return list(rows_of(verdicts_of(pairs)))


def test_what_a_plan_says_of_all_parts() -> None:
    """75 and 57 bytes with 5 and 7 of room; what is first moved, 12 each, and again."""
    found = partial(totals_of, AXES, unit="bytes", where=lambda row: f"{row.name}: ")
    both = found(rows(axed(FIVE, "OPTIMAL"), said(BOTH, 20)))
    assert both == {
        "status": "FEASIBLE", "bound": 95, "gap": 37 / 132, "conflicts": (), "measures": {"bytes": 132, "room": 12},
        "objective": Objective(value=132, unit="bytes", terms={"first": 24, "again": 108}),
    }  # fmt: skip
    lost = found(rows(axed(FIVE, "OPTIMAL"), said(None, 20, "NO_SOLUTION_FOUND")))
    nothing = {"gap": None, "objective": None, "measures": None}
    assert lost == {"status": "NO_SOLUTION_FOUND", "bound": 95, "conflicts": (), **nothing}
    none = found(rows(axed(FIVE, "OPTIMAL"), replace(said(None, 20, "INFEASIBLE"), conflicts=("full",))))
    assert none == {"status": "INFEASIBLE", "bound": None, "conflicts": ("r1: full",), **nothing}
    assert found(rows(said(FIVE, None), said(BOTH, 20)))["bound"] is None


def test_the_status_of_all_is_the_worst() -> None:
    order: tuple[Any, ...] = ("OPTIMAL", "FEASIBLE", "NO_SOLUTION_FOUND", "INFEASIBLE")
    for one, two in product(order, order):
        assert worst((one, two)) == max(one, two, key=order.index)


@pytest.mark.parametrize(
    ("bounds", "proven"),
    [((75, 5), ["bytes", "room"]), ((75, 3), ["bytes"]), ((60, 5), []), ((75, None), ["bytes"])],
)
def test_objectives_are_proven_from_the_first_one_on(bounds: tuple[int | None, ...], proven: list[str]) -> None:
    """What is proven of room holds for the bytes that were found, which may not be the fewest."""
    values = axed(FIVE, "FEASIBLE").values
    one = Answer(FIVE, values, dict(zip(AXES, bounds, strict=True)), "FEASIBLE")
    part = Weights(ROW, SMALL, Pins())
    assert proven_of(AXES, verdicts_of([(part, one), (part, axed(FIVE, "OPTIMAL"))])) == proven


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ({}, ""),
        ({"values": {"bytes": 74, "room": 5}}, "engine says 74, priced 75"),
        ({"status": "INFEASIBLE"}, "status INFEASIBLE comes with a schedule"),
        ({"bounds": {"bytes": 74, "room": 5}}, "status OPTIMAL with bound 74 and value 75"),
        ({"bounds": {"bytes": 75, "room": 6}}, "bounds: room 6 is above the value 5"),
        ({"schedule": Kept(layers=("c4", "c5"))}, "9 bytes are on chip, there is room for 7"),
        ({"schedule": Kept(layers=("c5", "c5"))}, "a layer is unknown, or stays twice"),
    ],
)
def test_what_no_plan_is_made_of(lie: dict[str, Any], said: str) -> None:
    pairs = [(Weights(ROW, SMALL, Pins()), replace(axed(FIVE, "OPTIMAL"), **lie))]
    if not said:
        assert deciding.accepted(pairs)[0].faults == ()
        return
    with pytest.raises(certile.PlanMismatch, match=f"^row: .*{said}"):
        deciding.accepted(pairs)
