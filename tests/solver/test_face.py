"""`certile`: one call for every problem, plans as files, frames and tables, and answers that are kept."""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path

import pytest

import certile
from solver.calls import cache
from solver.calls.solve import ask
from solver.problems.registry import PROBLEMS
from tests.golden_plans import CASES, Case
from tests.golden_plans import solve as asked_by_golden_plans

SMALL = "lenet5", "scratchpad_64k"


def first(problem: str) -> Case:
    """A small request of a problem."""
    return next(case for case in CASES if case.problem == problem and case.ask is asked_by_golden_plans)


def test_the_signature_is_the_documented_one() -> None:
    names = list(inspect.signature(certile.solve).parameters)
    assert names[:12] == [
        "target", "machine", "problem", "objective", "engine", "pins", "settings", "layers", "profile", "time_limit_s",
        "jobs", "progress",
    ]  # fmt: skip
    assert set(certile.__all__) >= {
        "solve",
        "pareto",
        "check",
        "explain",
        "show",
        "load_plan",
        "Network",
        "Layer",
        "Plan",
    }


@pytest.mark.few(1)
@pytest.mark.parametrize("problem", sorted(PROBLEMS))
def test_one_call_for_every_problem(problem: str, tmp_path: Path) -> None:
    case = first(problem)
    options = {key: value for key, value in case.options.items() if key != "problem"}
    plan = certile.solve(case.target, case.machine, problem=problem, **options)
    assert isinstance(plan, certile.Plan)
    assert (plan.format, plan.problem) == ("certile-plan/3", problem)
    plan.save(tmp_path / "plan.json")
    assert certile.load_plan(tmp_path / "plan.json") == plan
    assert certile.check(tmp_path / "plan.json").ok
    assert plan.network in certile.show(plan) or plan.layers[0].layer in certile.show(plan)
    assert "<table>" in plan._repr_html_()


def test_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = certile.solve(*SMALL, objective="bytes").to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert {"layer", "measures.bytes"} <= set(frame.columns)


@pytest.mark.parametrize(
    ("problem", "name", "number", "columns"),
    [
        ("joint", "energy", 2, {"layer", "bytes.W", "ticks"}),  # two convolutions
        ("fusion", "energy", 1, {"layer", "bytes.W", "visits"}),  # both in a group
        ("banks", "nothing waits", 4, {"layer", "ticks"}),  # two convolutions beside another one, and their sum
        ("placement", "bytes, search", 6, {"layer", "memory", "address"}),
        ("selection", "energy, none", 17, {"layer", "variant", "time"}),
        ("mapping", "period, single", 10, {"task", "processor", "start"}),
    ],
)
def test_frames_of_whole_plans_have_a_row_for_each_that_is_decided(
    problem: str, name: str, number: int, columns: set[str]
) -> None:
    pytest.importorskip("pandas")
    frame = next(one for one in CASES if (one.problem, one.name) == (problem, name)).solve().to_frame()
    assert len(frame) == number
    assert columns <= set(frame.columns)


def test_frames_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(certile.InputError, match="pip install"):
        certile.solve(*SMALL, layers="c1").to_frame()


@pytest.mark.slow(2)
def test_a_repeated_solve_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CERTILE_CACHE", str(tmp_path))
    asked = {"objective": "bytes", "layers": "c1"}
    one = certile.solve(*SMALL, **asked)
    assert one.status == "OPTIMAL"
    (file,) = tmp_path.iterdir()
    again = certile.solve(*SMALL, **asked, time_limit_s=50)
    assert (again.layers, again.wall_s) == (one.layers, one.wall_s)
    assert again.options.time_limit_s == 50
    for other in (
        {"pins": ["T_M<=3"]},
        {"settings": ["ocm_bytes=9000"]},
        {"engine": "cp-sat"},
        {"objective": "energy"},
    ):
        before = len(list(tmp_path.iterdir()))
        certile.solve(*SMALL, **{**asked, **other})
        assert len(list(tmp_path.iterdir())) == before + 1, other
    file.write_text("{", encoding="utf-8")
    assert certile.solve(*SMALL, **asked).layers[0].schedule == one.layers[0].schedule
    json.loads(file.read_text(encoding="utf-8"))
    number = len(list(tmp_path.iterdir()))
    assert certile.solve(*SMALL, layers="c1", objective="bytes", engine="greedy").status == "FEASIBLE"
    assert len(list(tmp_path.iterdir())) == number  # what is not proven is not kept
    monkeypatch.setenv("CERTILE_CACHE", "off")
    certile.solve(*SMALL, objective="bytes", layers="c3")
    assert len(list(tmp_path.iterdir())) == number
    assert cache.path_of(ask(*SMALL)[1]) is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"problem": "fusion2"}, "unknown problem"),
        ({"engine": "best"}, "unknown engine"),
        ({"profile": "times.csv"}, r"measured times \(--profile\): not for problem tiling"),
        ({"problem": "joint", "objective": "time"}, "problem joint decides bytes"),
        ({"problem": "applications"}, "name networks with their periods"),
        ({"objective": "speed"}, "unknown objective 'speed'"),
    ],
)
def test_bad_requests_are_one_line(options: dict[str, str], said: str) -> None:
    with pytest.raises(certile.InputError, match=said) as caught:
        certile.solve(*SMALL, **options)
    assert "\n" not in str(caught.value)


def test_unknown_axes_are_refused_everywhere() -> None:
    for target, machine in (SMALL, ("lenet5", "midap"), ("lenet5", "galaxy_s9"), ("lenet5", "vectormesh_128")):
        with pytest.raises(certile.InputError, match="has fronts of"):
            certile.pareto(target, machine, axes="speed,bytes")
    with pytest.raises(certile.InputError, match="problem joint has fronts of bytes or memory"):
        certile.pareto("lenet5", "scratchpad_64k", problem="joint", axes="time,memory", settings={"ocm_banks": 16})
