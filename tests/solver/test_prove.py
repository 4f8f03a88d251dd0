"""What `check` makes of claims: who may claim what, what heuristics refute, and solving again."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from instances.errors import InputError, PlanMismatch
from instances.load import load_machine, load_network, unmet_overrides
from solver import Plan, check, pareto, solve
from solver.calls.check import Proof, _by_part, _impossible, doubts
from solver.calls.check import prove_again as prove
from solver.calls.solve import show
from solver.cli.main import main
from solver.plan.claims import Claim
from solver.plan.plan import load_plan
from solver.problems.layers import LayerRow
from solver.problems.registry import claims_of, problem_of
from tests.formulations.test_joint import FOUR as SHARED
from tests.golden_plans import chain, skip
from tests.lies import changed

UNPROVEN = "legal, claims re-priced; optimality not re-proven"


def forged(engine: str = "naive") -> Plan:
    """lenet5's c1 as engine `naive` plans it, said to be proven by `exhaustive`."""
    plan = solve("lenet5", "scratchpad_64k", engine=engine, layers="c3", settings={"ocm_bytes": 2048})
    crown = {"status": "OPTIMAL", "bound": plan.objective.value, "gap": 0.0}
    return rowed(plan, crown).model_copy(update={"engine": "exhaustive"})


def rowed(plan: Plan, said: dict[str, Any]) -> Plan:
    """A plan of one layer with another status, bound or gap, of the layer and of all."""
    (row,) = plan.parts
    mine = {name: value for name, value in said.items() if name != "bound"}
    if "bound" in said:
        mine["bounds"] = {plan.objectives[0]: said["bound"]}
    return plan.model_copy(update={**said, "parts": (row.model_copy(update=mine),)})


# ---- claims ----------------------------------------------------------------------------------------------------------


def claim(status: str, values: tuple[int, ...], bounds: tuple[int | None, ...]) -> Claim:
    return Claim("", status, ("bytes", "time"), values, bounds)


#: What is claimed, what another plan has, and what that refutes: (10, 5) is better than (10, 7) where both are proven.
REFUTED = [
    (claim("OPTIMAL", (10, 7), (10, 7)), (9, 9), "status OPTIMAL in bytes 10"),
    (claim("OPTIMAL", (10, 7), (10, 7)), (10, 5), "status OPTIMAL in time 7"),
    (claim("OPTIMAL", (10, 7), (10, 7)), (11, 1), None),  # fewer ticks for more bytes are no better plan
    (claim("OPTIMAL", (10, 7), (10, 7)), (10, 7), None),
    (claim("FEASIBLE", (10, 7), (8, None)), (7, 9), "bound 8"),
    (claim("FEASIBLE", (10, 7), (8, None)), (8, 1), None),  # better, but nothing says that there is no better one
    (claim("FEASIBLE", (10, 7), (None, 6)), (10, 5), "bound 6"),
    (claim("FEASIBLE", (10, 7), (8, 7)), (9, 4), "bound 7"),  # 9 bytes are better than 10, so time counts: 4 < 7
    (claim("NO_SOLUTION_FOUND", (), (8, None)), (7, 9), "bound 8"),
    (claim("INFEASIBLE", (), (None, None)), (7, 9), "status INFEASIBLE"),
    (claim("INFEASIBLE", (), (None, None)), (), None),
]


@pytest.mark.parametrize(("one", "other", "said"), REFUTED)
def test_a_plan_refutes_bounds_above_its_values(one: Claim, other: tuple[int, ...], said: str | None) -> None:
    assert one.refuted_by(claim("FEASIBLE", other, (None, None))) == said


#: What is claimed, what another engine proves, and whether that is enough.
PROVEN = [
    (claim("OPTIMAL", (10, 7), (10, 7)), claim("OPTIMAL", (10, 7), (10, 7)), True),
    (claim("OPTIMAL", (10, 7), (10, 7)), claim("FEASIBLE", (10, 7), (10, None)), False),
    (claim("FEASIBLE", (10, 7), (8, None)), claim("FEASIBLE", (12, 7), (9, None)), True),
    (claim("FEASIBLE", (10, 7), (8, None)), claim("FEASIBLE", (12, 7), (7, None)), False),
    # a bound of time that holds up to 9 bytes says nothing of plans of 10
    (claim("FEASIBLE", (10, 7), (8, 6)), claim("OPTIMAL", (9, 6), (9, 6)), False),
    (claim("INFEASIBLE", (), (None, None)), claim("INFEASIBLE", (), (None, None)), True),
    (claim("OPTIMAL", (10, 7), (10, 7)), claim("INFEASIBLE", (), (None, None)), False),
]


@pytest.mark.parametrize(("one", "other", "enough"), PROVEN)
def test_a_proof_covers_a_claim(one: Claim, other: Claim, enough: bool) -> None:
    assert one.proven_by(other) is enough


# ---- without solving -------------------------------------------------------------------------------------------------


def test_a_bound_above_the_first_pass_is_refuted() -> None:
    report = check(forged())
    (line,) = report.problems
    assert line.startswith("layer c3: status OPTIMAL in time")
    assert "engine first pass has a plan of time" in line
    assert (report.ok, report.proof, report.verdict) == (False, "none", "refuted: 1 claims")


@pytest.mark.parametrize("engine", ["naive", "greedy"])
def test_who_proves_nothing_claims_nothing(engine: str) -> None:
    lie = solve("lenet5", "scratchpad_64k", layers="c1", objective="bytes").model_copy(update={"engine": engine})
    assert check(lie).problems == (f"layer c1: status OPTIMAL: engine {engine} proves nothing",)


@pytest.mark.few(4)
@pytest.mark.parametrize("engine", ["oracle", "auto", "tso-noburst", "dynamic", ""])
def test_engines_that_there_are_not(engine: str) -> None:
    lie = solve("lenet5", "scratchpad_64k", layers="c1", objective="bytes").model_copy(update={"engine": engine})
    assert any("there is none of this name for problem tiling" in line for line in check(lie).problems)


def test_what_a_heuristic_shows_without_a_search_it_may_claim() -> None:
    """1x1 convolutions: greedy moves every byte once, which no plan can do without."""
    plan = solve(chain(4, 2, size=4, taps=1), SHARED, engine="greedy", problem="joint")
    assert (plan.status, check(plan).problems) == ("OPTIMAL", ())
    worse = solve(chain(4, 2, size=4, taps=1), SHARED, engine="no-reuse", problem="joint")
    assert (worse.status, check(worse).problems) == ("FEASIBLE", ())
    said = {"bound": worse.objective.value, "gap": 0.0, "status": "OPTIMAL"}
    row = {"parts.0.bounds.bytes": said["bound"], "parts.0.gap": 0.0, "parts.0.status": "OPTIMAL"}
    lie = changed(worse, *said.items(), *row.items())
    assert "status OPTIMAL: engine no-reuse proves nothing" in check(lie).problems


def test_settings_are_those_of_the_machine() -> None:
    machine = load_machine("scratchpad_64k", {"ocm_bytes": "4096"})
    assert unmet_overrides(machine, ["ocm_bytes=4096", "byte_ticks=1"]) == ()
    assert unmet_overrides(machine, ["ocm_bytes=4097", "transfer.byte_ticks=7"]) == (
        "ocm_bytes=4097", "transfer.byte_ticks=7",
    )  # fmt: skip
    plan = solve("lenet5", "scratchpad_64k", layers="c1", settings=["ocm_bytes=4096"])
    assert check(plan).ok
    for settings, said in ((["ocm_bytes=4095"], "is not what machine_data has"), (["x=1"], "unknown machine field")):
        lie = changed(plan, ("options.settings", settings))
        assert any(line.startswith("options.settings") and said in line for line in check(lie).problems)


@pytest.mark.slow(1)
def test_same_as_names_a_layer_that_is_the_same() -> None:
    plan = solve("squeezenet1_1", "nmp", layers=["fire2/expand1x1", "fire3/expand1x1"])
    assert plan.layers[1].same_as == "fire2/expand1x1"
    assert check(plan).ok
    rows = (plan.parts[0], plan.parts[1].model_copy(update={"same_as": "fire9"}))
    said = "layer fire3/expand1x1: same_as: the plan says fire9, it equals fire2/expand1x1"
    assert check(plan.model_copy(update={"parts": rows})).problems == (said,)


def test_that_nothing_fits_is_proven_again() -> None:
    honest = solve("lenet5", "galaxy_s9", pins=["cpu_config=4", "period<=1"], problem="mapping")
    report = check(honest)
    assert (report.ok, report.verdict) == (True, "no plan; derived again that there is none")
    assert check(honest, prove=True).proof == "proven"
    lie = changed(honest, ("options.pins", ["cpu_config=4"]))
    assert any("engine heft has a schedule" in line for line in check(lie).problems)


def test_a_plan_of_joint_claims_no_time() -> None:
    with pytest.raises(InputError, match="problem joint decides bytes"):
        solve(chain(4, size=4), SHARED, objective="bytes,time", problem="joint")
    lie = changed(solve(chain(4, size=4, taps=1), SHARED, problem="joint"), ("objectives", ["bytes", "time"]))
    assert any("problem joint minimises bytes and energy" in line for line in check(lie).problems)


# ---- replay ----------------------------------------------------------------------------------------------------------


def literal(layer: str) -> tuple[Plan, LayerRow]:
    plan = solve("flownet_s", "zynq7020", settings=["reading=literal"], layers=layer)
    return plan, plan.layers[0]


def test_a_literal_plan_that_cannot_run_is_refused_and_says_so() -> None:
    """The paper's memory equation counts 8 input rows for 4 output rows of stride 2; a 7x7 kernel needs 13."""
    plan, row = literal("conv_1")
    assert (row.replay.ok, row.replay.compared) == (False, False)
    assert "replay is not ok: conv_1 cannot run as priced by the paper's literal equations" in show(plan)
    report = check(plan)
    assert f"layer conv_1: replay is not ok: {row.replay.faults[0]}" in report.problems
    assert not report.ok


def test_a_literal_plan_that_runs_is_ok() -> None:
    plan = solve("lenet5", "zynq7020", settings=["reading=literal"])
    assert all(row.replay is not None and row.replay.ok and not row.replay.compared for row in plan.layers)
    assert check(plan).problems == ()
    assert "replayed, not compared (literal reading)" in show(plan)


# ---- solving again ---------------------------------------------------------------------------------------------------


@pytest.mark.slow(1)
@pytest.mark.parametrize(("objective", "statuses"), [("bytes", ["OPTIMAL"]), ("time", ["OPTIMAL", "FEASIBLE"])])
def test_proven_by_another_engine(objective: str, statuses: list[str]) -> None:
    plan = solve("lenet5", "scratchpad_64k", layers="c1", objective=objective)
    assert plan.status in statuses
    report = check(plan, prove=True)
    assert (report.ok, report.proof, report.better) == (True, "proven", None)
    what = "optimality" if plan.status == "OPTIMAL" else "bound"
    assert report.verdict == f"legal, claims re-priced; {what} proven again by cp-sat"


@pytest.mark.slow(4)
def test_refuted_with_the_better_plan() -> None:
    report = check(forged(), prove=True)
    assert (report.ok, report.proof) == (False, "refuted")
    best = solve("lenet5", "scratchpad_64k", layers="c3", settings={"ocm_bytes": 2048})
    assert report.better.objective == best.objective
    assert report.to_json()["better"] == {"engine": "cp-sat", "objective": report.better.objective.model_dump()}
    assert f"a better plan has time {report.better.objective.value:,} ticks" in report.verdict
    assert check(report.better).ok


@pytest.mark.slow(2)
def test_what_claims_nothing_is_no_lie_but_a_better_plan_is_named() -> None:
    plan = solve("lenet5", "scratchpad_64k", engine="naive", layers="c3", settings={"ocm_bytes": 2048})
    assert (check(plan).ok, check(plan).verdict) == (True, UNPROVEN)
    report = check(plan, prove=True)
    assert (report.ok, report.proof) == (True, "proven")
    assert "nothing was claimed; the optimum proven again by exhaustive; a better plan has time" in report.verdict


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ([("OPTIMAL", "OPTIMAL")], "proven"),
        ([("INFEASIBLE", "OPTIMAL")], "proven"),
        ([("FEASIBLE", "FEASIBLE"), ("FEASIBLE", "FEASIBLE")], "undecided"),
        ([("OPTIMAL", "FEASIBLE"), ("OPTIMAL", "NO_SOLUTION_FOUND")], "undecided"),  # some of it is not all
        ([("OPTIMAL", "FEASIBLE"), ("FEASIBLE", "OPTIMAL")], "proven"),  # one engine the one, one the other
    ],
)
def test_a_plan_is_proven_if_all_layers_are(
    said: list[tuple[str, str]], state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers of one engine after the other to two layers of which nothing is claimed; none is asked in vain."""
    plan = solve("lenet5", "scratchpad_64k", engine="naive", layers=["c3", "f6"], objective="bytes")
    answers = [
        plan.model_copy(update={"parts": tuple(
            row.model_copy(update={"status": status}) for row, status in zip(plan.parts, pair, strict=True)
        )})
        for pair in said
    ]  # fmt: skip
    asked = iter(answers)
    monkeypatch.setattr(type(problem_of(plan)), "resolve", lambda *_: next(asked))
    found = prove(plan, None)
    assert (found.state, found.refutations, list(asked)) == (state, (), [])
    assert found.said.startswith(
        f"nothing was claimed; the optimum {'proven again' if state == 'proven' else 'not decided'} by "
    )


@pytest.fixture(scope="module")
def moved() -> Plan:
    """c1 of lenet5 with the fewest bytes: OPTIMAL."""
    return solve("lenet5", "scratchpad_64k", layers="c1", objective="bytes")


def less(plan: Plan, bytes_: int, *, status: str = "OPTIMAL") -> Plan:
    """The same with so many bytes fewer, as an engine would say."""
    (row,), value = plan.parts, plan.objective.value - bytes_
    bound = value if status == "OPTIMAL" else None
    said = {"status": status, "measures": {**row.measures, "bytes": value}, "bounds": {"bytes": bound}}
    objective = plan.objective.model_copy(update={"value": value})
    return plan.model_copy(update={"parts": (row.model_copy(update=said),), "objective": objective})


#: What is said by one engine after the other, what is found, and how many bytes fewer the better plan moves.
ASKED = [
    ([(0, "OPTIMAL")], "proven", None),
    ([(0, "FEASIBLE"), (0, "OPTIMAL")], "proven", None),  # without a bound it proves nothing
    ([(1, "OPTIMAL")], "refuted", 1),
    ([(0, "FEASIBLE"), (2, "FEASIBLE")], "refuted", 2),
    ([InputError("cannot"), (0, "OPTIMAL")], "proven", None),
    ([InputError("cannot"), PlanMismatch("cannot")], "undecided", None),
    ([(-3, "FEASIBLE"), (-1, "FEASIBLE")], "undecided", None),
]


@pytest.mark.parametrize(("answers", "state", "better"), ASKED)
def test_engines_are_asked_until_it_is_known(
    answers: list[Any], state: str, better: int | None, moved: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 8 seconds the first of two engines has half, the second what is left after 5."""
    asked, said, seconds = list[tuple[Any, ...]](), iter(answers), iter((0.0, 0.0, 5.0, 9.0))

    def resolve(_: object, plan: Plan, *how: Any) -> Plan:
        asked.append(how)
        if isinstance(one := next(said), Exception):
            raise one
        return less(plan, one[0], status=one[1])

    monkeypatch.setattr(type(problem_of(moved)), "resolve", resolve)
    monkeypatch.setattr("solver.calls.check.time", SimpleNamespace(monotonic=lambda: next(seconds)))
    found = prove(moved, 8.0, 3)
    assert asked == [("cp-sat", 4.0, 3), ("exhaustive", 3.0, 3)][: len(answers)]
    assert (found.state, bool(found.refutations)) == (state, state == "refuted")
    assert (found.better and moved.objective.value - found.better.objective.value) == better
    assert found.said.count("cannot") == sum(isinstance(one, Exception) for one in answers)


def test_no_engine_is_begun_when_the_time_is_over(moved: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter((0.0, 0.0, 8.0))
    monkeypatch.setattr(type(problem_of(moved)), "resolve", lambda *_: less(moved, -1, status="FEASIBLE"))
    monkeypatch.setattr("solver.calls.check.time", SimpleNamespace(monotonic=lambda: next(seconds)))
    assert prove(moved, 8.0).said == "optimality not decided by cp-sat in this time"


@pytest.mark.parametrize(
    ("doubted", "state", "refuted", "problems", "proof", "verdict"),
    [
        ([], "proven", (), (), "proven", "legal, claims re-priced; said"),
        ([], "undecided", (), (), "undecided", "legal, claims re-priced; said"),
        (["x"], "undecided", (), ("x",), "refuted", "refuted without solving; said"),
        (["x"], "proven", (), ("x",), "refuted", "refuted without solving; said"),
        (["x"], "refuted", ("y", "x"), ("y", "x"), "refuted", "said"),
        (["x"], None, (), ("x",), "none", "refuted: 1 claims"),
        ([], None, (), (), "none", UNPROVEN),
    ],
)
def test_what_is_refuted_in_either_way_is_not_ok(
    doubted: list[str], state: Any, refuted: tuple[str, ...], problems: tuple[str, ...], proof: str, verdict: str,
    moved: Plan, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("solver.calls.check.doubts", lambda *_, **__: doubted)
    monkeypatch.setattr("solver.calls.check.prove_again", lambda *_: Proof(state, refuted, None, "said"))
    found = check(moved, prove=state is not None)
    assert (found.ok, found.problems, found.proof, found.verdict) == (not problems, problems, proof, verdict)


def test_an_answer_that_is_no_plan_shows_nothing(moved: Plan) -> None:
    """Of layers together: what the others have, if they have a plan."""
    assert _by_part(moved, moved)[""].values == (moved.objective.value,)
    assert _by_part(moved, moved.model_copy(update={"objective": None}))[""].values == ()


@pytest.mark.slow(7)
def test_a_bound_below_the_optimum_is_proven() -> None:
    plan = forged()
    least = solve("lenet5", "scratchpad_64k", layers="c3", settings={"ocm_bytes": 2048}).bound
    assert plan.objective is not None

    def bounded(bound: int) -> Plan:
        gap = (plan.objective.value - bound) / plan.objective.value
        said = {"status": "FEASIBLE", "bound": bound, "gap": gap}
        return rowed(plan, said)

    assert check(bounded(least), prove=True).proof == "proven"
    report = check(bounded(least + 1), prove=True)
    assert report.proof == "refuted"
    assert report.problems[0].startswith(f"layer c3: bound {least + 1}: engine cp-sat has a plan of time {least}")


def test_a_plan_on_a_front_of_banks_is_the_best_of_those_no_slower() -> None:
    machine = load_machine("midap", {"banks.count": "3", "banks.map_bytes": "6144", "banks.residuals": "chip"})
    front = pareto(skip(64, 8), machine, problem="banks").plans
    assert len(front) > 1
    for plan in front:
        assert plan.options.most == {"time": plan.measures["time"]}
        assert check(plan).ok
        assert check(plan, prove=True).proof == "proven"
    assert check(changed(front[-1], ("options.most", {})), prove=True).proof == "refuted"
    said = check(changed(front[-1], ("objectives", ["bytes"])), prove=True).problems
    assert "objectives: bytes; a plan of a front (options.most) has bytes,time" in said
    less = changed(front[-1], ("options.most.time", lambda time: time - 1))
    assert any("options.most: time" in line for line in check(less).problems)
    fewest = solve(skip(64, 8), machine, objective="bytes", problem="banks")
    assert claims_of(front[0])[0].values[0] == fewest.objective.value


# ---- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.slow(5)
def test_check_prove_and_its_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad, better = (tmp_path / name for name in ("good.json", "bad.json", "better.json"))
    solve("lenet5", "scratchpad_64k", layers="c1").save(good)
    forged().save(bad)
    assert main(["check", str(good)]) == 0
    assert capsys.readouterr().out.rstrip().endswith(f"ok; 1 schedules re-priced and replayed, 1 of them executed on "
                                                     f"integers; {UNPROVEN}")  # fmt: skip
    assert main(["check", str(good), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == UNPROVEN
    assert main(["check", str(good), "--prove", "-o", str(better)]) == 0
    assert "no better plan is known: nothing is written" in capsys.readouterr().out
    assert not better.exists()
    assert main(["check", str(bad)]) == 1
    assert main(["check", str(bad), "--prove", "-o", str(better)]) == 1
    out = capsys.readouterr().out
    assert "refuted by cp-sat; a better plan has time" in out
    assert f"written to {better}" in out
    assert check(load_plan(better), prove=True).proof == "proven"


@pytest.mark.slow(3)
def test_undecided_is_exit_code_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bound above what takes no search: five configurations of inception_v3 take longer than a fifth of a second."""
    path, plan = (
        tmp_path / "plan.json",
        solve(load_network("inception_v3"), "galaxy_s9", engine="heft", problem="mapping"),
    )
    bound, value = plan.bound + 1, plan.objective.value
    raised = rowed(plan, {"status": "FEASIBLE", "bound": bound, "gap": (value - bound) / value})
    raised.model_copy(update={"engine": "milp"}).save(path)
    assert main(["check", str(path), "--prove", "--time-limit", "0.2"]) == 4
    assert "not decided by" in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--time-limit", "3"], ["-o", "x.json"]])
def test_what_only_prove_takes(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path / "plan.json"), *options]) == 2
    assert "only for check --prove" in capsys.readouterr().err
    with pytest.raises(InputError, match="only proving again takes one"):
        check(forged(), time_limit_s=1.0)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({}, "not proven again in"),
        ({"": claim("NO_SOLUTION_FOUND", (), (None, None))}, "not proven again in"),
        ({"": claim("INFEASIBLE", (), (None, None))}, ""),
        ({"": claim("FEASIBLE", (3, 4), (None, None))}, "has a plan"),
    ],
)
def test_infeasible_is_believed_only_if_an_engine_says_it_again(
    found: dict[str, Claim], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("solver.calls.check._claims_again", lambda *_: found)
    asked = SimpleNamespace(problem="mapping", objectives=("period",), options=SimpleNamespace(pins=()))
    lines = list(_impossible(asked))
    assert [said in line for line in lines] == [True] * bool(said)
    nothing = solve("lenet5", "galaxy_s9", pins=["cpu_config=4", "period<=1"], problem="mapping")
    monkeypatch.setattr(type(problem_of(nothing)), "doubters", lambda *_: ())
    assert (list(doubts(nothing)), list(doubts(nothing, infeasible=False))) == (lines, [])
