"""Suite library: means by hand, verdicts, results of strangers, and what is loud."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from instances.errors import InputError
from instances.library_format import Instance, instance
from solver.ask.progress import Silent
from solver.cli.main import main
from solver.uses.bench.library import Run, _sums, library, shifted_geomean
from tests.emitted import residual_model

PAD, OPEN, NONE = "tiling-corners/pad-5x5", "tiling-corners/pinned-tile", "tiling-corners/infeasible-memory"
HEAD = "instance,value,seconds,status\n"


def test_shifted_geometric_means_by_hand() -> None:
    assert shifted_geomean([3.0], 1.0) == pytest.approx(3.0)
    assert shifted_geomean([0.0, 3.0], 1.0) == pytest.approx(1.0)  # sqrt(1 * 4) - 1
    assert shifted_geomean([1.0, 7.0], 1.0) == pytest.approx(3.0)  # sqrt(2 * 8) - 1
    assert shifted_geomean([0.0, 0.0], 1.0) == 0.0
    assert shifted_geomean([], 1.0) == 0.0


def _run(one: Instance, status: str, *values: int, **more: object) -> Run:
    return Run(one, "mine", status, 1.0, dict(zip(one.objectives, values, strict=False)), **more)


def test_verdicts() -> None:
    """The optimum of the first is 79; of the second a bound below its value is known; the third has no schedule."""
    pad, opened, none = instance(PAD), instance(OPEN), instance(NONE)
    assert opened.known.status == "FEASIBLE"
    value, bound = opened.value, opened.known.bound
    assert bound < value
    wrong, worse, nothing = ("CONTRADICTION", False, False), ("worse", False, False), ("nothing", False, False)
    proven, better, reached = ("proven", True, True), ("BETTER", False, True), ("best reached", False, True)
    for run, verdict, gap in (
        (_run(pad, "OPTIMAL", 79), proven, 0.0), (_run(pad, "FEASIBLE", 79), reached, 0.0),
        (_run(pad, "FEASIBLE", 158), worse, 50.0), (_run(pad, "OPTIMAL", 80), wrong, 1.25),
        (_run(pad, "FEASIBLE", 78), wrong, 0.0), (_run(pad, "INFEASIBLE"), wrong, 100.0),
        (_run(pad, "NO_SOLUTION_FOUND"), nothing, 100.0),
        (_run(opened, "OPTIMAL", value), proven, 0.0), (_run(opened, "FEASIBLE", value - 1), better, 0.0),
        (_run(opened, "OPTIMAL", value - 1), ("BETTER", True, True), 0.0),
        (_run(opened, "OPTIMAL", value + 1), wrong, 100 / (value + 1)),
        (_run(opened, "FEASIBLE", bound - 1), wrong, 0.0),
        (_run(none, "INFEASIBLE"), proven, 0.0), (_run(none, "FEASIBLE", 5), wrong, 100.0),
        (_run(none, "NO_SOLUTION_FOUND"), nothing, 100.0),
    ):  # fmt: skip
        assert ((run.verdict, run.proven, run.reached), run.gap) == (verdict, gap), run


def test_later_objectives_count() -> None:
    one = instance("placement-corners/two-memories")
    best = tuple(one.known.values.values())
    assert len(best) == 2
    assert _run(one, "FEASIBLE", *best).verdict == "best reached"
    assert _run(one, "FEASIBLE", best[0], best[1] + 1).verdict == "worse"
    assert _run(one, "FEASIBLE", best[0], best[1] - 1).verdict == "CONTRADICTION"
    assert _run(one, "FEASIBLE", best[0]).verdict == "best reached"  # of a stranger the first one is known


def test_sums_by_hand() -> None:
    """Of a limit of 9 s a proof counts the 1 s that it took, or 9 if it took 20; reached without a proof: 9 s."""
    one, late = instance(PAD), replace(_run(instance(PAD), "OPTIMAL", 79), seconds=20.0)
    for runs, took in (([_run(one, "FEASIBLE", 79)], 9), ([_run(one, "OPTIMAL", 79)], 1), ([late], 9)):
        assert list(_sums(runs, 9.0)) == [["tiling", "mine", 1, int(runs[0].proven), 1, pytest.approx(took), 0.0]]
    other = _run(instance("placement-corners/two-memories"), "NO_SOLUTION_FOUND")
    rows = {row[0]: row[2:] for row in _sums([_run(one, "FEASIBLE", 158), other], 9.0)}  # gaps of 50 and 100 %
    assert rows["tiling"] == [1, 0, 0, pytest.approx(9), pytest.approx(50)]
    assert rows["all"] == [2, 0, 0, pytest.approx(9), pytest.approx((51 * 101) ** 0.5 - 1)]


@pytest.mark.slow(2)
def test_an_engine_is_run_and_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    args = ["bench", "library", "--only", "tiling-corners/pad-5x", "--engine", "cp-sat", "--time-limit", "20"]
    assert main([*args, "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert "shifted geomean s" in said
    data = json.loads(out.read_text())
    runs = {row["instance"]: row for row in data["runs"]}
    assert set(runs) == {PAD, f"{PAD}-time", "tiling-corners/pad-5x1"}
    assert (runs[PAD]["status"], runs[PAD]["value"], runs[PAD]["verdict"]) == ("OPTIMAL", 79, "proven")
    (row,) = data["summary"]
    assert (row["problem"], row["engine"], row["instances"]) == ("tiling", "cp-sat", 3)
    assert row["proven"] == sum(run["status"] == "OPTIMAL" for run in runs.values())
    assert data["contradictions"] == []


def test_heuristics_are_never_proven_and_count_the_limit() -> None:
    report = library(Silent(), only=PAD, engine="greedy", time_limit_s=9)
    (row,) = [row for row in report.to_json()["summary"] if row["problem"] == "tiling"]
    assert row["proven"] == 0
    assert row["shifted geomean s"] == pytest.approx(9)


def test_problems_without_the_engine_are_named(tmp_path: Path) -> None:
    report = library(Silent(), only="corners/t", engine="search", difficulty="easy", time_limit_s=10)
    data = report.to_json()
    assert {row["instance"].split("-")[0] for row in data["runs"]} == {"placement"}
    assert any("of problem tiling left out" in line for line in report.sections[-1].notes)
    with pytest.raises(InputError, match="engine warp: none of these instances can be asked of it"):
        library(Silent(), only=PAD, engine="warp")
    with pytest.raises(InputError, match="--only zzz: no such instance"):
        library(Silent(), only="zzz")


def test_results_of_strangers_stand_beside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "theirs.csv"
    path.write_text(f"{HEAD}{PAD},80,0.5,FEASIBLE\n{NONE},,0.1,INFEASIBLE\nothers/x,1,1,OPTIMAL\n", encoding="utf-8")
    out = tmp_path / "out.json"
    assert main(["bench", "library", "--only", "tiling-corners/", "--results", str(path), "-o", str(out)]) == 0
    said = capsys.readouterr().out
    data = json.loads(out.read_text())
    theirs = {row["instance"]: row for row in data["runs"] if row["engine"] == "theirs"}
    ours = [row for row in data["runs"] if row["engine"] == "certile (recorded)"]
    assert len(theirs) == len(ours)  # those without a line count too
    assert (theirs[PAD]["value"], theirs[PAD]["gap %"], theirs[PAD]["verdict"]) == (80, 1.25, "worse")
    assert theirs[NONE]["verdict"] == "proven"
    assert theirs[OPEN]["verdict"] == "nothing"
    assert f"theirs: {len(theirs) - 2} instances have no line" in said
    assert "theirs: 1 lines of instances that were not asked for" in said


def test_what_contradicts_a_proof_is_loud(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "theirs.csv"
    path.write_text(f"{HEAD}{PAD},70,0.5,OPTIMAL\n", encoding="utf-8")
    assert main(["bench", "library", "--only", PAD, "--results", str(path)]) == 7
    out, err = capsys.readouterr()
    assert "CONTRADICTION" in out
    assert f"contradiction: {PAD}: theirs OPTIMAL bytes 70 (not seen by a referee); known OPTIMAL bytes 79" in err


def test_what_improves_is_loud(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = instance(OPEN).value
    path = tmp_path / "theirs.csv"
    path.write_text(f"{HEAD}{OPEN},{value - 1},0.5,FEASIBLE\n", encoding="utf-8")
    assert main(["bench", "library", "--only", OPEN, "--results", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "BETTER THAN KNOWN" in out
    assert f"improvement: {OPEN}: theirs FEASIBLE bytes {value - 1:,}" in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("instance,value\nx,1\n", "columns instance, seconds, status, value are needed"),
        ("", "is empty"),
        (f"{HEAD}{PAD},80,0.5,GOOD\n", "line 2: status 'GOOD': expected OPTIMAL"),
        (f"{HEAD}{PAD},8e1,0.5,OPTIMAL\n", "line 2: value '8e1': a whole number"),
        (f"{HEAD}{PAD},,0.5,OPTIMAL\n", "line 2: status OPTIMAL needs a value"),
        (f"{HEAD}{PAD},80,0.5,INFEASIBLE\n", "line 2: status INFEASIBLE has no value"),
        (f"{HEAD}{PAD},80,soon,OPTIMAL\n", "line 2: seconds 'soon': a number"),
        (f"{HEAD}{PAD},80,nan,OPTIMAL\n", "line 2: seconds 'nan'"),
        (f"{HEAD}{PAD},79,1,OPTIMAL\n{PAD},79,1,OPTIMAL\n", "line 3: tiling-corners/pad-5x5 stands twice"),
        (f"{HEAD}{PAD},79\n", "line 2: status ''"),
    ],
)
def test_bad_results_are_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "theirs.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        library(Silent(), only=PAD, results=str(path))


def test_options_of_the_suite_are_not_for_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "tso", "--engine", "cp-sat", "--class", "easy"]) == 2
    assert "--engine, --class: for suite library, not for tso" in capsys.readouterr().err
    assert main(["bench", "tso", "--only", "x"]) == 2
    assert "--only: rows of suites fusion, fusion-time and library can be chosen" in capsys.readouterr().err
    assert main(["bench", "library", "--time-limit", "-1"]) == 2
    assert "time limit" in capsys.readouterr().err


# ---- The suite that runs programs: rows, the host's cache, and hosts without a compiler ------------------------------

bench = import_module("solver.uses.bench.emit")


@pytest.mark.slow(8)
def test_a_row_for_every_way_to_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fused, weights, input and result move once; joint, three banks of 16 KiB hold few of the maps of 8 KiB."""
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(bench, "l2_bytes", lambda: 48 * 1024)
    residual_model(tmp_path / "model.onnx")
    (section,) = bench.emit(Silent(), tmp_path / "model.onnx", 1).sections
    rows = {row[0]: dict(zip(section.columns, row, strict=True)) for row in section.rows}
    assert list(rows) == ["naive", "greedy", "optimum of each layer", "joint", "fusion"]
    moved = {name: row["bytes"] for name, row in rows.items()}
    # every layer reads its maps, of 8 * 16 * 16, and writes one: two each, the sum of two maps three
    assert moved["optimum of each layer"] == 4 * (9 * 8 * 16 * 16 + 3 * 8 * 8 * 9)
    assert moved["fusion"] == 4 * (2 * 8 * 16 * 16 + 3 * 8 * 8 * 9) < moved["joint"] < moved["optimum of each layer"]
    assert (rows["naive"]["bytes ratio"], rows["naive"]["time ratio"]) == (1, 1)
    assert all(row["least ms"] == row["CPU ms"] == row["most ms"] > 0 for row in rows.values())


def test_the_second_cache_of_the_host(tmp_path: Path) -> None:
    for index, (level, size) in enumerate([("1", "32K"), ("2", "512K"), ("3", "8192K")]):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "level").write_text(f"{level}\n")
        (tmp_path / f"index{index}" / "size").write_text(f"{size}\n")
    assert bench.l2_bytes(tmp_path) == 512 * 1024
    assert bench.l2_bytes(tmp_path / "nothing") == 1 << 20


def test_no_compiler_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(InputError, match="no C compiler: no-such-compiler is not there; CC names another"):
        bench.emit(Silent())


def test_a_program_that_fails_is_named(tmp_path: Path) -> None:
    (tmp_path / "certile").write_text("#!/bin/sh\necho 1 layers as one network: transfers NOT as planned\nexit 1\n")
    (tmp_path / "certile").chmod(0o755)
    with pytest.raises(RuntimeError, match="NOT as planned"):
        bench._cpu_s(tmp_path)
