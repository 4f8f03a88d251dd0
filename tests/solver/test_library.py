"""The library: checked without a solver, damage is found, strangers are judged, and it is solved again."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from instances.errors import InputError
from instances.library_format import Instance, family, instance, library, load_family
from solver import Plan, check, solve
from solver.cli.main import main
from solver.uses.library.check import check_instance, decisions, judge, judge_solution, question_of, solutions
from tests.library.counts import table
from tests.library.families import FAMILIES
from tests.library.make import better, instance_of, make

ROOT = Path(__file__).resolve().parents[2]
ALL = tuple(library())
#: A small one of every problem, with a schedule.
SMALL = {
    "tiling": "tiling-corners/pad-5x5", "slicing": "slicing-nmp/lenet-c3-time", "mesh": "mesh-arrays/c3-tiny-dram",
    "levels": "levels-memories/tiny-both",
    "partial_engine": "engine-partial/mobilenet_v1-conv4-16", "mapping": "mapping-boards/lenet5-22-period",
    "applications": "applications-boards/two-lenets-4", "banks": "banks-midap/lenet5-bytes",
    "joint": "joint-scratchpad/flat", "hybrid": "hybrid-midap/chain-bytes", "fusion": "fusion-chains/skip",
    "placement": "placement-corners/two-memories", "selection": "selection-profiles/tiny-period",
}  # fmt: skip
PROBLEM_NAMES = tuple(SMALL)


# ---- checking --------------------------------------------------------------------------------------------------------


#: Families of large networks: seconds of pricing and replaying.
LARGE = {"fusion-networks": 12, "banks-midap": 6}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.slow(LARGE[one])) if one in LARGE else one for one in FAMILIES]
)
def test_every_instance_is_as_it_says(name: str) -> None:
    """Every value is reached by its decisions, priced and replayed; conflicts of infeasible ones are derived again."""
    for one in family(name).instances:
        found = check_instance(one)
        assert found.ok, (one.name, found.problems)
        assert found.note == "", one.name
        assert (found.schedules > 0) == (one.known.status != "INFEASIBLE")


def test_the_families_are_those_of_the_script() -> None:
    """Every case has an instance, in its order, that asks the same."""
    for name, spec in FAMILIES.items():
        cases, made = list(spec.cases()), family(name).instances
        assert [f"{name}/{case.name}" for case in cases] == [one.name for one in made]
        for case, one in zip(cases, made, strict=True):
            asked = (case.problem, tuple(case.objectives.split(",")), case.pins, case.machine, case.set)
            assert asked == (one.problem, one.objectives, one.pins, one.machine.name, one.machine.set)


def test_the_page_counts_right() -> None:
    """`python -m tests.library --counts` prints the table anew."""
    page = ROOT / "docs" / "library.md"
    if not page.is_file():
        pytest.skip("no documents beside the tests")
    assert table() in page.read_text(encoding="utf-8")


@pytest.mark.slow(4)
def test_no_check_needs_a_solver() -> None:
    """All of the library is checked in a process that can import none."""
    script = (
        "import sys\n"
        "for name in ('ortools', 'highspy', 'pulp'): sys.modules[name] = None\n"
        "from solver.cli.main import main\n"
        f"sys.exit(main(['library', 'check', {', '.join(map(repr, (*SMALL.values(), *_infeasible())))}]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(SMALL) + len(_infeasible())} ok, 0 failed" in done.stdout
    assert "take a solver" not in done.stdout


def _infeasible() -> list[str]:
    """One of every problem."""
    return list({one.problem: one.name for one in ALL if one.known.status == "INFEASIBLE"}.values())


def _edited(one: Instance, edit: Callable[[dict[str, Any]], object], *, sealed: bool = True) -> Instance:
    """An instance with one fault, sealed as if nothing had happened."""
    data = one.model_dump(mode="json")
    edit(data)
    made = Instance.model_validate(data)
    return made.sealed() if sealed else made


FAULTS: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "value": ("known.values", lambda d: d["known"]["values"].update(bytes=78)),
    "bound above": ("is above the value", lambda d: d["known"].update(bound=80)),
    "bound below": ("status OPTIMAL with bound 78", lambda d: d["known"].update(bound=78)),
    "gap": ("known.gap", lambda d: d["known"].update(gap=0.5)),
    "feasible": ("status FEASIBLE, but", lambda d: d["known"].update(status="FEASIBLE")),
    "infeasible": ("status INFEASIBLE with values", lambda d: d["known"].update(status="INFEASIBLE")),
    "class": ("difficulty", lambda d: d.update(difficulty="hard")),
    "schedule": (
        "certificate:|known.values", lambda d: d["certificate"]["plan"]["parts"][0]["schedule"]["nest"].pop(1)
    ),
    "larger tile": (
        "certificate:", lambda d: d["certificate"]["plan"]["parts"][0].update(schedule={"nest": [
            {"hold": "W"}, {"hold": "IN"}, {"hold": "OUT"}]}),
    ),
    "no schedule": ("parts: a list of objects is needed", lambda d: d["certificate"].update(plan={})),
    "other layer": ("of them, expected", lambda d: d["certificate"]["plan"]["parts"][0].update(name="x")),
    "target": ("its digest is", lambda d: d["target"]["layer"].update(m=2)),
    "machine": ("its digest is", lambda d: d["machine"]["set"].update(ocm_bytes=20)),
    "nobody": ("nobody proved it", lambda d: d["certificate"].update(proven_by=[])),
    "somebody": ("engine greedy did not prove it", lambda d: d["certificate"].update(proven_by=["greedy"])),
    "better proof": ("has a plan of 77", lambda d: d["certificate"]["proofs"][0].update(value=77, status="FEASIBLE")),
    "other proof": ("proves 80", lambda d: d["certificate"]["proofs"][0].update(value=80)),
    "proof of none": ("that there is no plan", lambda d: d["certificate"]["proofs"][0].update(status="INFEASIBLE")),
    "pins": ("certificate:", lambda d: d.update(pins=["T_R=5"])),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_damage_is_found_although_it_is_sealed(fault: str) -> None:
    said, edit = FAULTS[fault]
    found = check_instance(_edited(instance(SMALL["tiling"]), edit))
    assert any(part in line for line in found.problems for part in said.split("|")), found.problems


@pytest.mark.slow(2)
def test_what_no_arithmetic_shows_breaks_the_seal() -> None:
    """The bound of an open instance may be any number below the value: only the seal knows which one it was."""
    one = next(one for one in ALL if one.difficulty == "open" and one.known.bound)
    damaged = _edited(one, lambda d: d["known"].update(bound=d["known"]["bound"] - 1), sealed=False)
    assert any(line.startswith("digest:") for line in check_instance(damaged).problems)
    noted = _edited(one, lambda d: d.update(note="harmless?"), sealed=False)
    assert any(line.startswith("digest:") for line in check_instance(noted).problems)


def test_conflicts_are_derived_again() -> None:
    one = instance("tiling-corners/infeasible-memory")
    wrong = _edited(one, lambda d: d["certificate"].update(conflicts=["memory ocm: too small"]))
    assert check_instance(wrong).problems == ("conflicts: 'memory ocm: too small' is not so",)
    none = _edited(one, lambda d: d["certificate"].update(conflicts=[]))
    assert "status INFEASIBLE without conflicts" in check_instance(none).problems
    unproven = _edited(one, lambda d: d["certificate"].update(proven_by=[]))
    assert any("nobody proved it" in line for line in check_instance(unproven).problems)


def _integers(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all integers."""
    if isinstance(data, dict):
        return [place for key, value in data.items() for place in _integers(value, (*path, key))]
    if isinstance(data, list):
        return [place for n, value in enumerate(data) for place in _integers(value, (*path, n))]
    return [path] if isinstance(data, int) and not isinstance(data, bool) else []


#: Numbers that do not matter for a value: where a map lies and how often chance is drawn; of others more than half do.
@pytest.mark.few(5)
@pytest.mark.parametrize("problem", PROBLEM_NAMES)
def test_a_number_changed_in_a_schedule_is_never_worth_more(problem: str) -> None:
    """Another schedule may be legal and cost the same, but never less than what is optimal; most are refused."""
    one = instance(SMALL[problem])
    places = _integers(one.certificate.plan)
    found = []
    for place in places[:: max(1, len(places) // 12)]:
        plan = copy.deepcopy(one.certificate.plan)
        at = plan
        for key in place[:-1]:
            at = at[key]
        at[place[-1]] += 1
        judged = judge_solution(one, plan)
        found.append(judged)
        if judged.valid and one.known.status == "OPTIMAL":
            assert tuple(judged.values.values()) >= tuple(one.known.values.values()), place
            assert not judged.refutes
    if places:
        assert any(not judged.valid or judged.values != one.known.values for judged in found)


# ---- decisions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", PROBLEM_NAMES)
def test_certificates_hold_decisions_only_and_missing_ones_are_named(problem: str) -> None:
    one = instance(SMALL[problem])
    asked, question = question_of(one)
    plan = one.certificate.plan
    assert set(plan) == {"parts"}
    assert judge(asked, question, plan).values == one.known.values
    nonsense = {**plan, "objective": {"value": 0}, "measures": "wrong", "status": "OPTIMAL"}
    assert judge(asked, question, nonsense).values == one.known.values  # what follows from decisions is not read
    assert judge(asked, question, {"parts": plan["parts"][1:]}).faults
    assert judge(asked, question, {"parts": "none"}).faults
    assert judge(asked, question, {}).faults


# ---- strangers -------------------------------------------------------------------------------------------------------


def test_a_plan_file_finds_its_instance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = solve("library:tiling-corners/pad-5x5", engine="greedy")
    plan.save(tmp_path / "plan.json")
    (found,) = solutions(tmp_path / "plan.json", ALL)
    assert (found.name, found.valid, found.improves) == ("tiling-corners/pad-5x5", True, False)
    assert found.values == {"bytes": plan.objective.value}
    assert found.gap == (plan.objective.value - 79) / plan.objective.value
    assert main(["library", "check", "--solutions", str(tmp_path)]) == 0
    assert "tiling-corners/pad-5x5" in capsys.readouterr().out


def test_strangers_write_decisions_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nest = [{"hold": "W"}, {"loop": "r", "step": 1}, {"hold": "IN"}, {"loop": "c", "step": 1}, {"hold": "OUT"}]
    mine = {"instance": "tiling-corners/ample", "plan": {"parts": [{"name": "ample", "schedule": {"nest": nest}}]}}
    bad = copy.deepcopy(mine)
    bad["instance"] = "tiling-corners/pad-5x5"
    path = tmp_path / "found.json"
    path.write_text(json.dumps([mine, bad]), encoding="utf-8")
    good, wrong = solutions(path, ALL)
    assert good.valid
    assert good.values["bytes"] >= 6912
    assert not wrong.valid
    assert main(["library", "check", "--solutions", str(path), "--json"]) == 1
    assert [row["valid"] for row in json.loads(capsys.readouterr().out)] == [True, False]


def test_a_better_solution_is_loud_and_refutes_what_is_claimed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A library that claims too much: 80 bytes for the layer of 79."""
    worse = {"values": {"bytes": 80}, "bound": 80, "gap": 0.0}
    claimed = _edited(instance(SMALL["tiling"]), lambda d: d["known"].update(worse))
    plan = claimed.certificate.plan
    found = judge_solution(claimed, plan)
    assert (found.improves, found.refutes) == (True, "bound 80 of bytes")
    opened = _edited(claimed, lambda d: d["known"].update(bound=70, gap=0.125, status="FEASIBLE"))
    found = judge_solution(opened, plan)
    assert (found.improves, found.refutes) == (True, "")
    none = _edited(claimed, lambda d: d["known"].update(status="INFEASIBLE", values={}, bound=None, gap=None))
    assert judge_solution(none, plan).refutes == "status INFEASIBLE"
    whole = family("tiling-corners").model_copy(update={"instances": (opened,)})
    (tmp_path / "lib.json").write_text(whole.to_json(), encoding="utf-8")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.json").write_text(json.dumps({"instance": opened.name, "plan": plan}), encoding="utf-8")
    args = ["library", "check", "--file", str(tmp_path / "lib.json"), "--solutions", str(tmp_path / "mine")]
    assert main(args) == 0
    out, err = capsys.readouterr()
    assert "BETTER THAN KNOWN" in out
    assert "better than known: tiling-corners/pad-5x5" in err


def test_solutions_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for text, said in (
        ("[1]", 'a plan file is expected, or {"instance": NAME'),
        ('{"instance": "a/b", "plan": {}}', "no instance 'a/b'"),
        ('{"format": "certile-plan/3"}', "field problem is"),
    ):  # fmt: skip
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=said.replace("{", r"\{")):
            solutions(path, ALL)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no \.json file is in this folder"):
        solutions(tmp_path / "empty", ALL)
    solve("lenet5", "scratchpad_64k", layers="c1", engine="greedy").save(path)
    with pytest.raises(InputError, match="no instance asks this of this target"):
        solutions(path, ALL)


# ---- commands --------------------------------------------------------------------------------------------------------


def test_show_and_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "banks-midap/lenet5-bytes"
    assert main(["library", "show", name]) == 0
    said = capsys.readouterr().out
    assert f"{name}: problem banks, minimise bytes" in said
    assert "target: lenet5" in said
    out = tmp_path / "one.json"
    assert main(["library", "export", name, "-o", str(out)]) == 0
    (one,) = load_family(out).instances
    assert one == instance(name).whole()
    capsys.readouterr()
    assert main(["library", "check", "--file", str(out), "--json"]) == 0
    assert [row["ok"] for row in json.loads(capsys.readouterr().out)] == [True]
    assert main(["library", "show", name, "--file", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["digest"] == one.digest


def test_a_failed_check_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = _edited(instance(SMALL["tiling"]), FAULTS["value"][1])
    whole = family("tiling-corners").model_copy(update={"instances": (wrong,)})
    (tmp_path / "wrong.json").write_text(whole.to_json(), encoding="utf-8")
    assert main(["library", "check", "-f", str(tmp_path / "wrong.json")]) == 1
    assert "mismatch: tiling-corners/pad-5x5: known.values" in capsys.readouterr().out


def test_an_instance_is_a_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "library:placement-corners/two-memories", "--json"]) == 0
    plan = Plan.from_json(capsys.readouterr().out)
    assert plan.objectives == ("bytes", "peak")
    assert plan.objective.value == instance("placement-corners/two-memories").value
    assert check(plan).ok
    assert main(["solve", "library:tiling-corners/pad-5x5", "-m", "nmp"]) == 2
    assert "it brings its machine, scratchpad_24k" in capsys.readouterr().err
    assert main(["list", "library"]) == 0
    assert "tiling-corners" in capsys.readouterr().out


# ---- solved again ----------------------------------------------------------------------------------------------------


def _solved(one: Instance, engine: str = "auto") -> None:
    plan = solve(f"library:{one.name}", engine=engine, time_limit_s=60, jobs=1)
    assert plan.status == one.known.status, one.name
    if plan.objective is not None:
        found = judge(*question_of(one), decisions(plan))
        assert found.values == one.known.values, one.name


@pytest.mark.few(3)
@pytest.mark.parametrize("problem", PROBLEM_NAMES)
def test_a_small_one_of_every_problem_is_solved_again(problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CERTILE_CACHE", "off")
    _solved(instance(SMALL[problem]))


@pytest.mark.slow(2)
def test_instances_are_made_again_alike(tmp_path: Path) -> None:
    """Seconds aside: engines and solvers are seeded."""
    spec = FAMILIES["tiling-corners"]
    case = next(case for case in spec.cases() if case.name == "pad-5x5")
    made, before = instance_of(case, spec), instance("tiling-corners/pad-5x5")
    assert (made.known, made.certificate.plan) == (before.known, before.certificate.plan)
    found = make(spec, tmp_path, only=["pad-5x5"])
    assert load_family(tmp_path / "tiling-corners.json") == found
    assert [one.name for one in found.instances] == ["tiling-corners/pad-5x5"]


def test_what_was_known_is_not_forgotten() -> None:
    one = instance(SMALL["tiling"])
    worse = _edited(one, lambda d: d["known"].update(status="FEASIBLE", bound=70, values={"bytes": 85}))
    lower = _edited(one, lambda d: d["known"].update(status="FEASIBLE", bound=71, values={"bytes": 85}))
    other = _edited(worse, lambda d: d.update(pins=["T_R=1"]))
    assert better(worse, one) is one
    assert better(one, worse) is one
    assert better(worse, lower) is lower
    assert better(lower, worse) is lower
    assert better(worse, None) is worse
    assert better(other, one) is other  # another question
