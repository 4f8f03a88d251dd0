"""The command line: output, files and exit codes. Bad input is in test_bad_options.py."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from instances.errors import InputError
from instances.library_format import file_schema
from instances.load import list_machines, list_networks
from instances.network.network import Network
from solver import Plan, solve
from solver.ask.names import version
from solver.calls.check import CheckReport
from solver.cli.exits import MEANINGS
from solver.cli.main import COMMANDS, GROUPS, main
from solver.plan.front import Front, FrontPart, FrontPoint
from solver.problems.registry import pick_problem

FAKES = Path(__file__).parents[1] / "data" / "fakes"
ROOT = Path(__file__).resolve().parents[2]
#: lenet5 on a scratchpad, in this process: a second for five layers.
LENET = ("solve", "lenet5", "--machine", "scratchpad_64k", "--jobs", "1")


def _process(*args: str, **more: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "solver", *args]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False, **more)


# --- solve -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow(3)
def test_solve_prints_a_table_and_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(LENET) == 0
    out, err = capsys.readouterr()
    lines = [line.rstrip() for line in out.splitlines()]
    assert err == ""
    heads = ["layer", "time (us)", "gap (%)", "bytes", "energy (uJ)", "x limit", "loop order", "tile", "wall (s)"]
    assert re.split("  +", lines[0]) == heads
    assert [line.split()[0] for line in lines[2:7]] == ["c1", "c3", "c5", "f6", "output"]
    assert any(line.startswith("5 layers") for line in lines)
    plan = solve("lenet5", "scratchpad_64k", jobs=1)
    assert plan.bound is not None
    said = f"{plan.status}; time {plan.objective.value:,} ticks, bound {plan.bound:,}, gap "
    assert f"lenet5 on scratchpad_64k (tiling, exhaustive): {said}" in lines[-1]
    assert "replay agrees" in lines[-1]


def test_solve_json_is_the_plan_and_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert main([*LENET, "--json", "-o", str(path), "-l", "c1"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert Plan.from_json(out) == Plan.load(path)


#: Options of several commands, as they are written and as they are asked, with the commands that have them.
OPTIONS: list[tuple[tuple[str, ...], dict[str, Any], str]] = [
    (("-m", "scratchpad_24k"), {"machine": "scratchpad_24k"}, "solve pareto explain"),
    (("-l", "c3", "-l", "c1"), {"layers": ["c3", "c1"]}, "solve pareto explain"),
    (("--problem", "slicing"), {"problem": "slicing"}, "solve pareto explain"),
    (("--pin", "T_M<=8", "--pin", "order=OS"), {"pins": ["T_M<=8", "order=OS"]}, "solve pareto explain"),
    (("--set", "ocm_bytes=32"), {"settings": ["ocm_bytes=32"]}, "solve pareto explain"),
    (("--all-kinds",), {"all_kinds": True}, "solve pareto explain"),
    (("--full",), {"full": True}, "solve explain"),
    (("--engine", "cp-sat"), {"engine": "cp-sat"}, "solve pareto"),
    (("--time-limit", "7"), {"time_limit_s": 7.0}, "solve pareto"),
    (("--memory-limit", "1GiB"), {"memory_limit": "1GiB"}, "solve pareto"),
    (("--profile", "times.csv"), {"profile": "times.csv"}, "solve pareto"),
    (("--objective", "bytes,time"), {"objective": "bytes,time"}, "solve"),
    (("--no-bounding",), {"bounding": False}, "solve"),
    (("-j", "3"), {"jobs": 3}, "solve"),
    (("--axes", "bytes,ocm"), {"axes": "bytes,ocm"}, "pareto"),
]


@pytest.mark.parametrize("command", ["solve", "pareto", "explain"])
def test_every_option_is_asked(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two images of 64 x 48 pixels; beside what is given nothing is asked."""
    seen: list[Any] = []

    def ask(target: Network, machine: str, **asked: Any) -> None:
        assert target.operators[0].shape == (2, 1, 64, 48)
        seen.append({"machine": machine, **{name: one for name, one in asked.items() if name != "progress"}})
        raise InputError("enough")

    for name in ("ask", "find_front"):
        monkeypatch.setattr(f"solver.cli.solve.{name}", ask)
    mine = [(text, asked) for text, asked, commands in OPTIONS if command in commands.split()]
    sized = [command, "lenet5", "--batch", "2", "--size", "64x48"]
    assert main([*sized, *(word for text, _ in mine for word in text)]) == 2
    assert main(sized) == 2
    wanted = {name: one for _, asked in mine for name, one in asked.items()}
    usual = {"engine": "auto", "bounding": True, "jobs": 0, "all_kinds": False, "full": False}
    assert seen == [wanted, {name: usual.get(name) for name in wanted}]


def test_compare_adds_a_ratio_column(capsys: pytest.CaptureFixture[str]) -> None:
    asked: dict[str, Any] = {"settings": ["ocm_bytes=2048"], "objective": "bytes", "pins": ["holds=uniform"]}
    naive, best = (
        solve("lenet5", "scratchpad_64k", layers="c3", engine=engine, **asked).objective.value
        for engine in ("naive", "exhaustive")
    )
    assert naive > best
    options = ["--set", *asked["settings"], "--objective", "bytes", "--pin", *asked["pins"]]
    assert main([*LENET, "-l", "c3", *options, "--compare", "naive,exhaustive"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[4:6] == ["naive", "exhaustive"]
    assert lines[2].split()[3:5] == [f"{naive / best:.3f}", "1.000"]


@pytest.mark.slow(2)
def test_all_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LENET, "--all-kinds", "--json"]) == 0
    assert "pool" in {p.workload.kind for p in Plan.from_json(capsys.readouterr().out).layers}


def test_infeasible_is_exit_code_3_and_is_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert main([*LENET, "-l", "c1", "--set", "ocm_bytes=5", "-o", str(path)]) == 3
    out = capsys.readouterr().out
    assert "INFEASIBLE: memory ocm" in out
    assert "1 of 1 layers without a schedule: c1" in out
    assert Plan.load(path).status == "INFEASIBLE"
    assert main(["check", str(path)]) == 0


def test_no_solution_is_exit_code_4(capsys: pytest.CaptureFixture[str], fakes: ModuleType) -> None:
    assert main([*LENET, "-l", "c1", "--engine", "gives_up", "--time-limit", "1"]) == 4
    assert "NO_SOLUTION_FOUND" in capsys.readouterr().out


def test_ctrl_c_is_no_failure(capsys: pytest.CaptureFixture[str], fakes: ModuleType) -> None:
    """The best plan so far is printed; its status decides the exit code, never 130."""
    assert main([*LENET, "-l", "c1", "--engine", "uses_its_time", "--time-limit", "0.1"]) == 0
    assert "FEASIBLE; time" in capsys.readouterr().out
    assert main(["solve", str(FAKES / "hard.json"), "-m", "scratchpad_64k", "-j", "1", "--engine", "interrupted"]) == 0
    assert "FEASIBLE; time" in capsys.readouterr().out


def test_a_refused_plan_is_one_line(capsys: pytest.CaptureFixture[str], fakes: ModuleType) -> None:
    assert main([*LENET, "-l", "c1", "--engine", "lies_about_value", "--jobs", "1"]) == 6
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "engine lies_about_value: bytes [bytes]: engine says" in err


def test_opaque_operators_are_mentioned(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", str(FAKES / "opaque.json"), "-m", "scratchpad_64k", "-j", "1", "--json"]) == 0
    err = capsys.readouterr().err
    assert "certile: warning: operator 'what' (Mystery) is kept as opaque" in err
    assert err.splitlines()[-1] == "certile: warning: and 1 more"


def test_help_fits_a_screen_and_every_option_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    options = [line for line in lines if line.strip().startswith("-")]
    assert len(options) >= 18
    assert all(len(line.split("  ")) > 2 for line in options), "each says what it does on its line"


def test_a_reader_may_leave_after_all_was_written() -> None:
    command = f"{sys.executable} -m solver list networks | head -n 1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow(2)
def test_with_closed_stdout_the_plan_is_written(tmp_path: Path) -> None:
    """``certile solve .. | true``"""
    args = " ".join(("solve", "lenet5", "-m", "scratchpad_64k", "-j", "1", "-l", "c1", "--set", "ocm_bytes=5"))
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m solver {args} -o {tmp_path}/p.json | true; echo ${{PIPESTATUS[0]}}"],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.stdout.strip(), done.stderr) == ("5", "certile: output: standard output: its reader left early\n")
    assert (tmp_path / "p.json").exists()


@pytest.mark.slow(2)
def test_a_terminal_without_unicode_is_served() -> None:
    done = _process_ascii("solve", "lenet5", "-m", "scratchpad_64k", "-j", "1", "-l", "c1")
    assert (done.returncode, done.stderr) == (0, "")


def _process_ascii(*args: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    return subprocess.run(
        [sys.executable, "-m", "solver", *args], capture_output=True, text=True, env=environment, check=False
    )


# --- check -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "plan.json"
    assert main([*LENET, "-l", "c1", "--json", "-o", str(path)]) == 0
    return path


def test_check_says_what_was_done(plan_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(plan_file)]) == 0
    assert "ok; 1 schedules re-priced and replayed" in capsys.readouterr().out


def test_check_fails_with_a_line_for_every_mismatch(
    plan_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = json.loads(plan_file.read_text())
    data["bound"] -= 1
    data["machine"] = "nmp"
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(data))
    assert main(["check", str(bad)]) == 1
    lines = capsys.readouterr().out.splitlines()
    said = [line.split(":")[1].strip() for line in lines[:-1]]
    assert (said[:2], said[2].partition(" with")[0], said[3:]) == (["machine", "gap"], "status OPTIMAL", ["bound"])
    assert "FAILED, " in lines[-1]
    assert main(["check", str(bad), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False


#: Commands, the function that each calls, and with what.
HANDED: list[tuple[str, str, tuple[Any, ...], dict[str, Any]]] = [
    ("compile m.onnx -m nmp -o out --problem tiling --objective bytes --pin T_C<=3 --set ocm_bytes=5 --time-limit 7 "
     "--memory-limit 1GiB --batch 2 --requantise float --state h0=hn --transfers steps",
     "emit.compile_model", ("m.onnx", "nmp", "out"),
     {"problem": "tiling", "objective": "bytes", "pins": ["T_C<=3"], "settings": ["ocm_bytes=5"], "time_limit_s": 7.0,
      "memory_limit": "1GiB", "batch": 2, "symbols": {}, "shapes": {}, "values": {}, "requantise": "float",
      "states": {"h0": "hn"}, "transfers": "steps"}),
    ("why plan.json -l c1 --marginal memory --time-limit 3 --no-rivals", "why.explain", ("read plan.json", "c1"),
     {"marginal": ["memory"], "time_limit_s": 3.0, "rivals": False}),
    ("why plan.json", "why.explain", ("read plan.json", None), {"marginal": (), "time_limit_s": None, "rivals": True}),
    ("show plan.json --layer c1 --all", "solve.show_plan", ("plan.json", "c1"), {"details": True, "timeline": False}),
    ("show plan.json --timeline", "solve.show_plan", ("plan.json", None), {"details": False, "timeline": True}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "place", "args", "more"), HANDED)
def test_what_commands_hand_on(
    line: str, place: str, args: tuple[Any, ...], more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def called(*args: Any, progress: object = None, **more: Any) -> None:
        seen.append((args, {name: one or () if name == "marginal" else one for name, one in more.items()}))
        raise InputError("enough")

    monkeypatch.setattr(f"solver.cli.{place}", called)
    monkeypatch.setattr("solver.cli.why.sound_plan", lambda path: f"read {path}")
    assert main(line.split()) == 2
    assert seen == [(args, more)]


@pytest.mark.parametrize(
    ("status", "options", "code"),
    [("OPTIMAL", [], 0), ("INFEASIBLE", [], 3), ("INFEASIBLE", ["--marginal", "memory"], 0)],
)
def test_how_a_why_ends(status: str, options: list[str], code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solver.cli.why.sound_plan", lambda _: SimpleNamespace(status=status))
    monkeypatch.setattr("solver.cli.why.explain", lambda *_, **__: "words")
    assert main(["why", "plan.json", *options]) == code


REPORT = CheckReport(True, (), 1, 1)


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (REPORT, 0), (replace(REPORT, proof="proven"), 0), (replace(REPORT, proof="undecided"), 4),
        (replace(REPORT, ok=False, problems=("x",), proof="refuted"), 1),
        (replace(REPORT, ok=False, problems=("x",), proof="undecided"), 1),
    ],
)  # fmt: skip
def test_how_a_check_ends(
    report: CheckReport, code: int, plan_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A better plan is written where one is asked for, and only if there is one."""
    seen: list[Any] = []
    better, out = Plan.load(plan_file), tmp_path / "better.json"
    for found in (None, better):
        asked = replace(report, better=found)
        monkeypatch.setattr("solver.cli.check.check_plan", lambda *a, **k: (seen.append((a, k)), asked)[1])  # noqa: B023
        assert main(["check", "x.json", "--prove", "--time-limit", "3", "-j", "2", "-o", str(out)]) == code
        assert out.exists() == (found is not None)
        assert main(["check", "x.json", "--json"]) == code
    assert Plan.load(out) == better
    assert seen[:2] == [
        (("x.json",), {"prove": True, "time_limit_s": 3.0, "jobs": 2}),
        (("x.json",), {"prove": False, "time_limit_s": None, "jobs": 0}),
    ]


@pytest.mark.parametrize(("points", "code"), [((1, 2), 0), ((0, 2), 3), ((0, 0), 3)])
def test_a_front_without_a_plan_is_infeasible(
    points: tuple[int, ...], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = tuple(
        FrontPart(f"c{n}", (FrontPoint({"bytes": 1}, {}),) * count, True, True) for n, count in enumerate(points)
    )
    front = Front("tiling", "x", "m", {"bytes": "bytes"}, parts)
    monkeypatch.setattr("solver.cli.solve.find_front", lambda *_, **__: front)
    assert main(["pareto", "lenet5", "-m", "nmp"]) == code


# --- explain, list, import, doctor, schema, bench --------------------------------------------------------------------


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    args = ("explain", "lenet5", "-m", "scratchpad_64k", "-l", "c1")
    assert main(args) == 0
    out = capsys.readouterr().out
    assert "c1: feasible; " in out
    assert "--pin T_M: " in out
    assert main([*args, "--set", "ocm_bytes=5"]) == 3
    assert "c1: infeasible: memory ocm" in capsys.readouterr().out
    assert main([*args, "--json"]) == 0
    row = json.loads(capsys.readouterr().out)[0]
    assert (row["layer"], row["feasible"], row["conflicts"]) == ("c1", True, [])
    assert row["size"]["points"] >= row["size"]["skeletons"] > 0


PROBLEMS = (
    "tiling slicing banks joint hybrid fusion mapping applications partial_engine mesh placement selection levels"
)
ENGINES = (
    "exhaustive cp-sat milp milp-cbc greedy naive first-fit tso-noburst dynamic sequence min min-all dls hide "
    "double-buffer naive-reuse greedy-multipath no-reuse auto clustering clustering-most heft cpop peft single ga "
    "ga-unseeded apart passes paper hand no-sharing policies per-layer pure-fusion hybrid-paper cascade strips beam "
    "descent search size lifetime area time best-fit sections steps all none double-buffered group-by-group "
    "greedy-prefetch anneal descend halving"
)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("networks", list_networks),
        ("machines", list_machines),
        ("problems", PROBLEMS.split),
        ("engines", ENGINES.split),
    ],
)
def test_list(kind: str, expected: Callable[[], Sequence[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", kind]) == 0
    out = capsys.readouterr().out
    assert [name for name in expected() if name not in out] == []
    assert main(["list", kind, "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == set(expected())


def test_import_writes_a_network_that_solve_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Conv", ["x", "w"], ["y"], name="conv", kernel_shape=[3, 3])],
            "net",
            [helper.make_tensor_value_info("x", kind, ["batch", 3, 8, 8])],
            [helper.make_tensor_value_info("y", kind, None)],
            [helper.make_tensor("w", kind, [4, 3, 3, 3], [0.0] * 108)],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    onnx.save(model, tmp_path / "model.onnx")
    out = tmp_path / "net.json"
    assert main(["import", str(tmp_path / "model.onnx"), "-o", str(out), "--batch", "2"]) == 0
    # 2 maps of 6x6 pixels, 4 filters of 3*3*3
    assert f"{2 * 36 * 4 * 27:,} MACs, 108 parameters" in capsys.readouterr().out
    assert main(["solve", str(out), "-m", "scratchpad_64k", "-j", "1", "--json"]) == 0
    assert Plan.from_json(capsys.readouterr().out).layers[0].workload.b == 2


def test_doctor(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert [w for w in ("certile", "instances: ", "solver: ", "ortools ", "highspy ") if w not in out] == []
    import formulations

    monkeypatch.setattr(formulations, "__file__", "/elsewhere/formulations/__init__.py")
    assert main(["doctor"]) == 2
    assert "2 folders" in capsys.readouterr().out


def test_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert capsys.readouterr().out == json.dumps(pick_problem("tiling").schema(), indent=1) + "\n"


@pytest.mark.parametrize("kind", ["network", "machine"])
def test_schema_of_files_that_users_write(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", kind]) == 0
    assert capsys.readouterr().out == file_schema(kind)


def test_a_demand_for_buffers_that_the_machine_decides_says_how_to_choose(capsys: pytest.CaptureFixture[str]) -> None:
    """Before, it said INFEASIBLE: pin buffers_IN=2, and nothing of the machine that has one buffer each."""
    assert main(["solve", "lenet5", "-m", "scratchpad_64k", "--layer", "c1", "--pin", "buffers_IN=2"]) == 3
    hint = "machine scratchpad_64k has buffering=single; to choose: --set buffering=choose"
    assert hint in " ".join(capsys.readouterr().out.split())


def test_a_network_without_products_names_the_way_to_plan_the_rest(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pool = {
        "op": "pool",
        "name": "p",
        "inputs": ["in"],
        "shape": [1, 2, 2, 2],
        "fn": "max",
        "kernel": [2, 2],
        "stride": [2, 2],
    }
    first = {"op": "input", "name": "in", "shape": [1, 2, 4, 4]}
    path = tmp_path / "pools.json"
    path.write_text(json.dumps({"format": "certile-network/1", "name": "pools", "operators": [first, pool]}))
    assert main(["solve", str(path), "-m", "scratchpad_64k"]) == 2
    said = "no conv or matmul layers to plan; pools and element-wise layers: --all-kinds"
    assert said in capsys.readouterr().err
    assert main(["solve", str(path), "-m", "scratchpad_64k", "--all-kinds"]) == 0


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"certile {version()}\n"


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command has a line in its group, which 80 columns do not cut; every exit code is said."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main([]) == 2
    said = capsys.readouterr().out
    for group, lines in GROUPS.items():
        assert f"\n{group}:\n" in said
        assert all(f"\n  {name:14}  {line}\n" in said for name, (_, line) in lines.items())
    flat = " ".join(said.split())
    assert all(f"{code} {meaning}" in flat for code, meaning in MEANINGS.items())


def test_documents_name_every_command_and_exit_code() -> None:
    pages = Path(__file__).parents[2] / "docs"
    commands = (pages / "commands.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `certile ([\w-]+)`", commands, re.MULTILINE) == list(COMMANDS)
    codes = (pages / "files.md").read_text(encoding="utf-8").split("| code | meaning |")[1].split("\n\n")[0]
    assert re.findall(r"^\| (\d+) ", codes, re.MULTILINE) == [str(code) for code in MEANINGS]


def test_bench_runs_a_suite(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = SimpleNamespace(table="a table", to_json=lambda: {"rows": [1]})
    benchmarks = importlib.import_module("solver.uses.bench")
    monkeypatch.setattr(benchmarks, "suites", lambda: {"tiny": ("one row", lambda progress: report)})
    out = tmp_path / "bench.json"
    assert main(["bench", "tiny", "-o", str(out)]) == 0
    assert capsys.readouterr().out == "a table\n"
    assert json.loads(out.read_text()) == {"rows": [1]}
    assert main(["bench", "tiny", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"rows": [1]}
    assert main(["list", "suites"]) == 0
    assert "one row" in capsys.readouterr().out


def test_ctrl_c_elsewhere_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module("solver.uses.bench"), "suites", interrupted)
    assert main(["bench", "tiny"]) == 130
    err = capsys.readouterr().err
    assert err.splitlines()[-1].startswith("certile: interrupted")


def test_as_a_module_and_from_another_folder(tmp_path: Path) -> None:
    done = _process("list", "machines", cwd=tmp_path)
    assert done.returncode == 0
    assert "scratchpad_64k" in done.stdout
    assert done.stderr == ""
