"""Sweeps run here: equal tables for any number of workers, failures recorded, stopped and continued."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import psutil
import pytest

import certile
from instances.errors import InputError
from solver.ask.watch import Watch
from solver.cli.main import main
from solver.cli.sweep import _code
from solver.uses.sweep import run as sweep_run
from solver.uses.sweep.estimate import Estimate
from solver.uses.sweep.front import machine_fronts
from solver.uses.sweep.pools import LocalPool, PoolLost
from solver.uses.sweep.rows import Sweep, load_sweep
from solver.uses.sweep.run import run_sweep, sweep
from solver.uses.sweep.show import group_table, table_csv, table_json
from solver.uses.sweep.tasks import FAILED, Solved, Task

ROOT = Path(__file__).resolve().parents[2]
#: Of 5 bytes there is no plan for either layer.
SPEC: dict[str, Any] = {
    "networks": ["lenet5"], "layers": ["f6", "output"], "machines": ["scratchpad_64k"], "objectives": ["bytes"],
    "pins": ["order=OS"], "set": {"ocm_bytes": [5, 512, 1024]},
}  # fmt: skip


# --- the pool --------------------------------------------------------------------------------------------------------


@pytest.fixture
def fake_tasks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "data" / "fakes"))
    return importlib.import_module("fake_tasks")


def _results(pool: LocalPool, count: int) -> dict[int, Solved]:
    found: dict[int, Solved] = {}
    end = time.monotonic() + 120
    while len(found) < count and time.monotonic() < end:
        said = pool.get(0.1)
        if said is not None:
            assert said.number not in found, "one result a task"
            found[said.number] = said
    return found


@pytest.mark.slow(6)
def test_what_kills_its_process_costs_only_itself(fake_tasks: ModuleType, tmp_path: Path) -> None:
    kinds = ["fine", "dies", "fine", "dies once", "raises", "dies", "fine", "dies", "fine", "dies", "fine", "fine"]
    pool = LocalPool(2)
    try:
        for number, kind in enumerate(kinds):
            pool.put(fake_tasks.FakeTask(number, kind, str(tmp_path)))
        found = _results(pool, len(kinds))
    finally:
        pool.close()
    expected = {"fine": "OPTIMAL", "dies": "WORKER_DIED", "dies once": "OPTIMAL", "raises": "DEFECT"}
    assert {n: said.status for n, said in found.items()} == {n: expected[kind] for n, kind in enumerate(kinds)}
    assert found[1].error == "worker process ended with code -9, 2 times"
    assert (found[1].tries, found[3].tries, found[0].tries) == (2, 2, 1)
    assert "a fault of its own" in found[4].error
    assert len(list(tmp_path.glob("1-*"))) == 2, "tried twice"


def test_what_does_not_end_is_ended(fake_tasks: ModuleType, tmp_path: Path) -> None:
    pool = LocalPool(1)
    try:
        pool.put(fake_tasks.FakeTask(0, "fine", str(tmp_path)))  # the process is ready then
        assert _results(pool, 1)[0].status == "OPTIMAL"
        pool.put(fake_tasks.FakeTask(1, "sleeps", str(tmp_path), 0.5))
        pool.put(fake_tasks.FakeTask(2, "fine", str(tmp_path), 100.0))
        found = _results(pool, 2)
    finally:
        pool.close()
    assert (found[1].status, found[1].tries, found[1].stopped) == ("TIME_OUT", 1, "time limit")
    assert found[1].error == "the process did not end within 0.5 s"
    assert found[2].status == "OPTIMAL"


def test_a_closed_pool_leaves_no_process(fake_tasks: ModuleType, tmp_path: Path) -> None:
    before = {*psutil.Process().children(recursive=True)}  # other tests may have left Python's resource tracker
    pool = LocalPool(2)
    for number in range(4):
        pool.put(fake_tasks.FakeTask(number, "sleeps", str(tmp_path)))
    end = time.monotonic() + 60
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    workers = {*psutil.Process().children(recursive=True)} - before
    assert len(workers) >= 2
    pool.close()
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert not alive


def test_without_processes_the_pool_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solver.search.workers._BOOT", "import sys; sys.exit(3)")
    pool = LocalPool(1)
    try:
        pool.put(None)
        pool = LocalPool(1)
        pool.put(type("Task", (), {"number": 1, "patience_s": None})())
        with pytest.raises(PoolLost, match="no worker process comes to be ready"):
            pool.get(60.0)
    finally:
        pool.close()


# --- whole sweeps ----------------------------------------------------------------------------------------------------


@pytest.mark.slow(5)
def test_equal_tables_for_any_number_of_workers(tmp_path: Path) -> None:
    one = sweep(SPEC, tmp_path / "1.sqlite", jobs=1)
    two = sweep(SPEC, tmp_path / "2.sqlite", jobs=2)
    assert table_csv(one) == table_csv(two)
    assert table_json(one) == table_json(two)
    assert one.tasks == {"INFEASIBLE": 2, "OPTIMAL": 4}
    assert [row["status"] for row in one.rows] == ["INFEASIBLE", "INFEASIBLE", *["OPTIMAL"] * 4]
    assert "the smallest tile of f6 needs" in str(one.rows[0]["error"])
    assert "seconds" not in table_csv(one)
    assert "seconds" in table_csv(one, seconds=True)
    assert sweep(SPEC, tmp_path / "1.sqlite").rows == one.rows, "seconds too: nothing was done again"


@pytest.mark.slow(3)
def test_rows_are_what_solve_says_and_plans_are_checked(tmp_path: Path) -> None:
    found = sweep(SPEC, tmp_path / "a.sqlite", jobs=1)
    for row in found.rows:
        plan = certile.solve(
            "lenet5", "scratchpad_64k", layers=[str(row["layer"])], objective="bytes", pins=["order=OS"],
            settings=[f"ocm_bytes={row['ocm_bytes']}"], jobs=1,
        )  # fmt: skip
        mine = found.plan(row)
        assert mine.status == plan.status == row["status"]
        assert (mine.machine_data, mine.options) == (plan.machine_data, plan.options)
        assert mine.machine_digest == plan.machine_digest
        assert mine.network_digest == plan.network_digest
        assert [one.layer for one in mine.layers] == [row["layer"]]
        assert certile.check(mine).ok
        if plan.objective is not None:
            assert plan.objective.value == row["value"]


@pytest.mark.slow(4)
def test_machines_are_summed_by_repeats_and_compared(tmp_path: Path) -> None:
    """A network of two equal layers and another: 2 a + b; the front by definition."""
    network = {
        "format": "certile-network/1", "name": "twice",
        "operators": [
            {"op": "input", "name": "x", "shape": [1, 4, 4, 4]},
            {"op": "conv", "name": "a", "inputs": ["x"], "shape": [1, 4, 4, 4], "filters": 4, "kernel": [1, 1]},
            {"op": "conv", "name": "same", "inputs": ["a"], "shape": [1, 4, 4, 4], "filters": 4, "kernel": [1, 1]},
            {"op": "conv", "name": "b", "inputs": ["same"], "shape": [1, 2, 4, 4], "filters": 2, "kernel": [1, 1]},
        ],
    }  # fmt: skip
    (tmp_path / "twice.json").write_text(json.dumps(network))
    spec = {
        "networks": [str(tmp_path / "twice.json")], "machines": ["scratchpad_64k"], "objectives": ["bytes"],
        "pins": ["order=OS"], "set": {"ocm_bytes": [4, 32, 200], "transfer.byte_ticks": [1, 3]},
    }  # fmt: skip
    found = sweep(spec, tmp_path / "a.sqlite", jobs=2)
    assert [(row["layer"], row["repeats"]) for row in found.rows[:2]] == [("a", 2), ("b", 1)]
    (group,) = machine_fronts(found)
    assert group.units == {"bytes": "bytes", "time": "ps", "memory": "bytes on chip", "energy": "fJ"}
    assert [point.lacking for point in group.points] == [2, 2, 0, 0, 0, 0]
    assert group.incomplete == 2
    for point in group.points[2:]:
        a, b = (
            row for row in found.rows
            if (row["ocm_bytes"], row["transfer.byte_ticks"]) == tuple(point.settings.values())
        )  # fmt: skip
        for axis, scale in (("bytes", 1), ("time", 125), ("energy", 1)):
            assert point.values[axis] == scale * (2 * int(a[axis]) + int(b[axis]))
        assert point.values["memory"] == point.settings["ocm_bytes"]
    values = [tuple(point.values.values()) for point in group.points[2:]]
    beaten = [any(w != v and all(x <= y for x, y in zip(w, v, strict=True)) for w in values) for v in values]
    assert [point.front for point in group.points[2:]] == [not one for one in beaten]
    assert any(beaten)
    assert not all(beaten)
    (byte_group,) = machine_fronts(found, axes=["bytes"])
    assert {p.values["bytes"] for p in byte_group.front} == {min(v[0] for v in values)}
    assert len(machine_fronts(found, group=["layer"])) == 2
    with pytest.raises(InputError, match="--axes speed: expected"):
        machine_fronts(found, axes=["speed"])
    with pytest.raises(InputError, match="--group colour: expected"):
        machine_fronts(found, group=["colour"])
    kept = found.where(["ocm_bytes>=32", "layer=a"])
    assert len(kept.rows) == 4
    with pytest.raises(InputError, match="unknown name 'ocm_byte': did you mean ocm_bytes"):
        found.where(["ocm_byte=3"])


def _row(machine: str, objective: str, problem: str, **more: Any) -> dict[str, Any]:
    columns = Sweep(Path("x"), [], (), ("time", "bytes", "energy", "period"), {}).columns
    fixed = {
        "network": "n", "layer": "", "repeats": 1, "machine": machine, "problem": problem, "objective": objective,
        "engine": "e", "pins": "", "status": "OPTIMAL", "value": 1, "stopped": "",
    }  # fmt: skip
    return {**dict.fromkeys(columns), **fixed, **more}


def test_machines_of_different_ticks_are_compared_in_picoseconds() -> None:
    """200 ticks of 5 ps are less than twice 60 of 20; joint has no measure time, a mapping minimises its period."""
    rows = [
        _row("fast", "bytes", "joint", tick_ps=5, time=200, bytes=10, memory_bytes=64),
        _row("slow", "bytes", "joint", tick_ps=20, time=60, bytes=10, memory_bytes=64, layer="a", repeats=2),
        _row("board", "period", "mapping", tick_ps=1000, period=7, energy=3),
        _row("lost", "period", "mapping", tick_ps=1000, status="TIME_OUT", value=None),
        _row("none", "time", "tiling", tick_ps=1000, status="TIME_OUT", value=None),
    ]
    sweep = Sweep(Path("x"), rows, (), ("time", "bytes", "energy", "period"), {})
    joint, mapping, none = machine_fronts(sweep)
    assert [(p.machine, p.values["time"], p.front) for p in joint.points] == [
        ("fast", 1000, True),
        ("slow", 2400, False),
    ]
    assert joint.units == {"bytes": "bytes", "time": "ps", "memory": "bytes on chip"}
    assert [p.values for p in mapping.front] == [{"period": 7000, "energy": 3}]
    assert (mapping.units, mapping.incomplete) == ({"period": "ps", "energy": "fJ"}, 1)
    assert (none.units, none.front, none.incomplete) == ({}, [], 1)
    assert all(group_table(group, everything=True) for group in (joint, mapping, none))


@pytest.mark.slow(3)
def test_time_limits_are_marked(tmp_path: Path) -> None:
    spec = {
        "networks": ["vgg16"], "layers": ["conv3_2"], "machines": ["scratchpad_64k"], "objectives": ["bytes"],
        "engines": ["cp-sat"], "set": {"ocm_bytes": [24576]}, "time_limit_s": 0.5,
    }  # fmt: skip
    found = sweep(spec, tmp_path / "a.sqlite", jobs=1)
    (row,) = found.rows
    assert row["time_limit_s"] == 0.5
    assert row["status"] in ("FEASIBLE", "NO_SOLUTION_FOUND")
    assert row["stopped"] == "time limit"


# --- stopped and continued -------------------------------------------------------------------------------------------


def _process(*args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "solver", "sweep", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def _when(path: Path, done: int, process: subprocess.Popen[str]) -> None:
    """Wait until so many tasks are committed."""
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        try:
            tasks = load_sweep(path).tasks
            if sum(tasks.values()) - tasks.get("WAITING", sum(tasks.values())) >= done and tasks:
                return
        except InputError:
            pass  # not there yet
        time.sleep(0.05)


@pytest.mark.slow(25)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_keeps_what_is_done_and_the_same_command_continues(number: signal.Signals, tmp_path: Path) -> None:
    spec, path = tmp_path / "spec.json", tmp_path / "a.sqlite"
    spec.write_text(json.dumps({**SPEC, "set": {"ocm_bytes": {"from": 512, "to": 1500, "step": 4}}}))
    process = _process(str(spec), "-o", str(path), "-j", "2")
    _when(path, 3, process)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    name = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}[number]
    *told, line = err.splitlines()
    assert all(one.endswith(" left") for one in told), "how far it is, where it takes long"
    assert line.startswith(f"certile: sweep: stopped by {name}: ")
    assert "tasks wait, the same command continues" in line
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert not alive
    before = load_sweep(path)
    assert before.waiting > 0
    assert not [p for p in tmp_path.iterdir() if p.suffix in (".lock", "")]
    again = _process(str(spec), "-o", str(path), "-j", "2", "--json")
    _when(path, sum(before.tasks.values()) - before.waiting + 3, again)
    again.send_signal(number)
    assert json.loads(again.communicate(timeout=60)[0])["done"] >= 3
    after = {row["task"]: row for row in load_sweep(path).rows}
    done = [row for row in before.rows if row["status"] != "WAITING"]
    assert all({**after[row["task"]], "layer": 0} == {**row, "layer": 0} for row in done), "not done again"


@pytest.mark.slow(15)
def test_a_worker_that_is_killed_costs_nothing(tmp_path: Path) -> None:
    spec, path = tmp_path / "spec.json", tmp_path / "a.sqlite"
    spec.write_text(json.dumps({**SPEC, "set": {"ocm_bytes": {"from": 512, "to": 700, "step": 4}}}))
    process = _process(str(spec), "-o", str(path), "-j", "2")
    for done in (2, 12, 22):
        _when(path, done, process)
        workers = psutil.Process(process.pid).children()
        if workers:
            workers[0].kill()
    out, err = process.communicate(timeout=180)
    assert (process.returncode, err) == (0, ""), err
    assert "96 OPTIMAL" in out
    found = load_sweep(path)
    assert found.tasks == {"OPTIMAL": 96}
    assert table_csv(found) == table_csv(sweep(json.loads(spec.read_text()), tmp_path / "b.sqlite", jobs=2))


# --- the command line ------------------------------------------------------------------------------------------------


def test_reasons_why_points_mean_nothing() -> None:
    """Five are said, the others counted."""
    said = Estimate(9, 3, bad={f"reason {k}": 1 + (k == 1) for k in range(6)}).lines()
    assert said[0] == "9 points, 3 distinct tasks; 7 points mean nothing"
    assert said[1:3] == ["1 point: reason 0", "2 points: reason 1"]
    assert said[6:] == ["and 1 more kind of such points"]


def test_what_is_done_takes_no_time() -> None:
    """2 of 6 tasks are left, each of 3 seconds, in two processes."""
    said = Estimate(6, 6, before=4, tried=1, seconds=3.0, jobs=2)
    assert (said.to_json()["estimate_s"], said.lines()[-1].split(":")[0]) == (3.0, "about 3.0 s")


class Here:
    """A pool without processes."""

    def __init__(self, count: int) -> None:
        self.room, self.waiting = count, list[Task]()

    put = property(lambda self: self.waiting.append)

    def get(self, seconds: float) -> Solved:
        return self.waiting.pop(0).decide(None, Watch())

    def close(self) -> None:
        """Nothing is left."""


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_run, "LocalPool", Here)


@pytest.mark.usefixtures("here")
def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(json.dumps(SPEC))
    assert main(["sweep", "mine.yaml", "--dry-run"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("6 points, 6 distinct tasks\nabout ")
    assert (err, list(tmp_path.glob("*.sqlite"))) == ("", [])
    assert main(["sweep", "run", "mine.yaml", "-j", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("mine.sqlite: 6 rows, 6 distinct tasks: 2 INFEASIBLE, 4 ")
    assert main(["sweep", "mine.yaml", "--dry-run", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["points"], said["tasks"], said["done"], said["tried"]) == (6, 6, 6, 0)
    assert main(["sweep", "show", "mine.sqlite"]) == 0
    out = capsys.readouterr().out
    assert "2 of 3 machines no other beats in bytes, time, memory, energy; 1 lack a plan of some layer" in out
    assert main(["sweep", "show", "mine.sqlite", "--json", "--all", "-w", "layer=f6"]) == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert [point["front"] for point in group["points"]] == [False, True, True]
    assert main(["sweep", "show", "mine.sqlite", "--csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main(["sweep", "table", "mine.sqlite", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 6
    assert main(["sweep", "table", "mine.sqlite", "-o", "rows.csv"]) == 0
    assert len(Path("rows.csv").read_text().splitlines()) == 7
    capsys.readouterr()
    assert main(["sweep", "plan", "mine.sqlite", "-w", "layer=f6", "-w", "ocm_bytes=512", "-o", "plan.json"]) == 0
    assert main(["check", "plan.json"]) == 0
    capsys.readouterr()
    assert main(["sweep", "plan", "mine.sqlite", "-w", "layer=f6"]) == 2
    assert "3 rows, one is needed; they differ in ocm_bytes" in capsys.readouterr().err
    assert main(["sweep", "example", "quick"]) == 0
    assert capsys.readouterr().out.startswith("# the smallest one")
    for command in ("run", "show", "table", "plan", "example"):
        assert main(["sweep", command, "--help"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) <= 40
        assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["none.yaml"], "sweep none.yaml: no such file"),
        (["quick", "--retry", "all"], "--retry all: expected failed or open"),
        (["quick", "--dask", "nowhere"], "--dask nowhere: write an address such as tcp://host:8786, or an existing"),
        (["show", "none.sqlite"], "sweep file none.sqlite: no such file"),
        (["quick", "-o", "no/folder.sqlite"], "cannot be written"),
        (["quick", "-j", "-1"], "jobs -1"),
        (["example", "quack"], "unknown example 'quack': did you mean quick"),
    ],
)
def test_bad_options_are_one_line(
    args: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", *args]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("said", "code"),
    [({}, 0), *(({status: 1}, 4) for status in (*FAILED, "WAITING") if status != "DEFECT"), ({"DEFECT": 1}, 6),
     ({"DEFECT": 1, "TIME_OUT": 2}, 6)],
)  # fmt: skip
def test_how_a_sweep_ends(said: dict[str, int], code: int) -> None:
    assert _code(SimpleNamespace(tasks={"OPTIMAL": 3, "FEASIBLE": 1, "INFEASIBLE": 2, **said})) == code


@pytest.mark.usefixtures("here")
def test_failures_are_shown_and_retried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, path = tmp_path / "s.json", str(tmp_path / "a.sqlite")
    spec.write_text(json.dumps({**SPEC, "set": {"ocm_bytes": [512, 0]}, "pins": ["order=OS", "ordre=OS"]}))
    assert main(["sweep", str(spec), "-o", path, "-j", "1"]) == 4
    out = capsys.readouterr().out
    assert "2 rows BAD_INPUT: " in out
    assert "ordre" in out
    assert run_sweep(str(spec), path, jobs=1, retry="failed", silent=True).done == 2, "what was not tried is no better"
