"""Kept plans are not believed: whatever was done to a file, the question is answered as without it, with one line."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import certile
from instances.load import load_machine
from instances.measured import Profile
from solver.ask.progress import Bar
from solver.calls import cache
from solver.calls.cache import path_of
from solver.calls.solve import answered, ask
from solver.plan.plan import Plan
from tests.golden_plans import chain

SMALL = chain(2, 2, size=3, taps=1)
ASKED: dict[str, Any] = {"objective": "bytes", "settings": ["ocm_bytes=20"]}
Json = Any


def solved(**more: Any) -> Plan:
    return certile.solve(SMALL, "scratchpad_24k", **{**ASKED, **more})


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a kept plan."""
    monkeypatch.setenv("CERTILE_CACHE", str(tmp_path))
    assert solved().status == "OPTIMAL"
    (file,) = tmp_path.iterdir()
    return file


def answer(plan: Plan) -> Json:
    """What a plan says beside times and versions of statistics."""
    return [plan.status, plan.objective, plan.bound, [row.schedule for row in getattr(plan, "layers", ())]]


def edited(change: Callable[[Json], object]) -> Callable[[Path], object]:
    def edit(file: Path) -> None:
        data = json.loads(file.read_text())
        change(data)
        file.write_text(json.dumps(data))

    return edit


def _raised(data: Json) -> None:
    """All figures of a plan that claims one byte more, and nothing that contradicts itself."""
    data["bound"] += 1
    data["objective"]["value"] += 1


EDITS: dict[str, Callable[[Path], object]] = {
    "status": edited(lambda data: data.update(status="FEASIBLE")),
    "status of a row": edited(lambda data: data["parts"][0].update(status="FEASIBLE")),
    "bound": edited(lambda data: data.update(bound=data["bound"] - 1)),
    "value and bound": edited(_raised),
    "infeasible": edited(lambda data: data.update(status="INFEASIBLE", conflicts=["no way"])),
    "version": edited(lambda data: data.update(certile="0.0.1")),
    "format": edited(lambda data: data.update(format="certile-plan/9")),
    "machine": edited(lambda data: data["machine_data"].update(ocm_bytes=200)),
    "pins": edited(lambda data: data["options"].update(pins=["T_M<=1"])),
    "objectives": edited(lambda data: data.update(objectives=["energy"])),
    "doubled objectives": edited(lambda data: data.update(objectives=["bytes", "bytes"])),
    "no objectives": edited(lambda data: data.update(objectives=[])),
    "a layer less": edited(lambda data: data["parts"].pop()),
    "statistics": edited(lambda data: data["stats"].pop("kept")),
    "statistics of another kind": edited(lambda data: data.update(stats=[])),
    "seal": edited(lambda data: data["stats"].update(kept="sha256:0")),
    "cut short": lambda file: file.write_bytes(file.read_bytes()[:-20]),
    "empty": lambda file: file.write_bytes(b""),
    "not JSON": lambda file: file.write_bytes(b"\x00\xff" * 50),
    "deep": lambda file: file.write_text("[" * 100_000),
    "an array": lambda file: file.write_text("[]"),
    "huge number": lambda file: file.write_text(file.read_text().replace('"bound": ', '"bound": 1e400, "x": ', 1)),
}  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.parametrize("name", EDITS)
def test_a_changed_file_is_set_aside(name: str, kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = answer(Plan.load(kept))
    EDITS[name](kept)
    changed = kept.read_bytes()
    assert answer(solved()) == right
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"certile: warning: kept plan {kept}: ")
    assert line.endswith(f"; set aside as {kept.name}.bad, solved anew")
    assert kept.with_name(f"{kept.name}.bad").read_bytes() == changed
    assert answer(solved()) == right, "and the new one is kept"
    assert capsys.readouterr().err == ""


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "other",
    [{"pins": ["T_M<=1"]}, {"settings": ["ocm_bytes=18"]}, {"objective": "energy"}, {"layers": "c0"},
     {"engine": "cp-sat"}],
)  # fmt: skip
def test_a_plan_of_another_question_is_set_aside(
    other: dict[str, Any], kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right = answer(Plan.load(kept))
    solved(**other)
    (file,) = {*kept.parent.iterdir()} - {kept}
    shutil.copy(file, kept)
    assert answer(solved()) == right
    assert capsys.readouterr().err.count("set aside") == 1


@pytest.mark.slow(1)
def test_a_sealed_plan_is_compared_and_priced(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even with a seal that is right: as a defect of certile would have written it."""
    right = answer(Plan.load(kept))
    monkeypatch.setattr("solver.calls.cache._seal", lambda path, fields: "sha256:mine")
    for change, said in (
        (lambda data: data.update(bound=data["bound"] - 1), "gap"),
        (lambda data: data["parts"][0]["measures"].update(bytes=1), "measures"),
        (lambda data: data.update(problem="slicing"), "its problem is not the one that is asked"),
        (lambda data: data.update(network="other"), "its network is not the one that is asked"),
    ):
        edited(lambda data: (data["stats"].update(kept="sha256:mine"), change(data)))(kept)  # noqa: B023
        assert answer(solved()) == right
        assert said in capsys.readouterr().err


@pytest.mark.slow(2)
def test_a_folder_that_cannot_be_written_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = answer(solved())
    file = tmp_path / "file"
    file.write_text("x")
    for place in (file, file / "below", Path("/proc/no"), tmp_path / ("x" * 300)):
        monkeypatch.setenv("CERTILE_CACHE", str(place))
        assert answer(solved()) == wanted


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_is_left_alone(
    make: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CERTILE_CACHE", str(tmp_path))
    path = path_of(ask(SMALL, "scratchpad_24k", **ASKED)[1])
    assert path is not None
    make(str(path))
    assert solved().status == "OPTIMAL"
    assert list(tmp_path.iterdir()) == [path]


#: Another value of every field of a question that decides its answer; limits and how it is told do not.
OTHERS: dict[str, Any] = {
    "target": chain(2, 2, size=3), "machine": load_machine("scratchpad_24k"), "objectives": ("time",),
    "problem": "slicing", "engine": "cp-sat", "pins": ("T_M<=1",), "layers": ("c0",), "full": True, "bounding": False,
    "all_kinds": True, "profile": Profile(network="chain", times={"c0": {"gpu": 2.0}}),
}  # fmt: skip


def test_whatever_decides_an_answer_is_in_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also measured times of the same network."""
    monkeypatch.setenv("CERTILE_CACHE", "somewhere")
    one = ask(SMALL, "scratchpad_24k", **ASKED)[1]
    same = {"settings": ("ocm_bytes=20",), "time_limit_s": 1.0, "memory_bytes": 1 << 30, "jobs": 2, "title": "x",
            "progress": Bar()}  # fmt: skip
    assert {*OTHERS, *same} == {field.name for field in fields(one)}
    assert {path_of(replace(one, **{name: value})) for name, value in same.items()} == {path_of(one)}
    others = [replace(one, **{name: value}) for name, value in OTHERS.items()]
    others.append(replace(one, profile=Profile(network="chain", times={"c0": {"gpu": 3.0}})))
    assert len({path_of(other) for other in (one, *others)}) == 1 + len(others)


def test_the_plan_is_saved_before_it_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CERTILE_CACHE", str(tmp_path))
    seen: list[list[Path]] = []
    answered(*ask(SMALL, "scratchpad_24k", **ASKED), lambda plan: seen.append(list(tmp_path.iterdir())))
    assert seen == [[]]
    assert len(list(tmp_path.iterdir())) == 1


def test_plans_are_kept_for_this_code_alone() -> None:
    """The files whose digest is in the name of a kept plan are those of all four rooms, this one among them."""
    assert {file.relative_to(cache.home()).parts[0] for file in cache.files()} == {
        "instances", "hwmodels", "formulations", "solver",
    }  # fmt: skip
    assert Path(cache.__file__).resolve() in cache.files()
