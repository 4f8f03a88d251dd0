"""The file of a sweep: whole after every kill, one writer, damaged files refused in one line, extensions."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances.errors import InputError
from solver.uses.sweep.rows import load_sweep
from solver.uses.sweep.show import table_csv
from solver.uses.sweep.spec import read_spec
from solver.uses.sweep.store import Store
from solver.uses.sweep.tasks import Expansion, Solved
from tests.effort import tries

ROOT = Path(__file__).resolve().parents[2]
SPEC: dict[str, Any] = {
    "networks": ["lenet5"], "layers": ["f6", "output"], "machines": ["scratchpad_64k"], "objectives": ["bytes"],
    "set": {"ocm_bytes": [512, 1024, 2048]},
}  # fmt: skip


def _asked(**more: Any) -> Expansion:
    return Expansion(read_spec({**SPEC, **more}))


def _solved(number: int, value: int = 7) -> Solved:
    return Solved(number, "OPTIMAL", value, "bytes", value, 0.0, {"bytes": value}, plan='{"a": 1}', seconds=0.5)


def test_points_and_tasks_are_added_once(tmp_path: Path) -> None:
    with Store(tmp_path / "a.sqlite") as store:
        assert store.add(_asked()) == 6
        assert store.add(_asked()) == 0
        assert store.counts == {"WAITING": 6}
        tasks = list(store.waiting())
        assert [task.number for task in tasks] == [1, 2, 3, 4, 5, 6]
        for task in tasks:
            store.record(_solved(task.number))
    with Store(tmp_path / "a.sqlite") as store:
        assert store.counts == {"OPTIMAL": 6}
        assert list(store.waiting()) == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.sqlite"], "at rest it is one file"


def test_equal_layers_of_different_networks_are_one_task(tmp_path: Path) -> None:
    """ResNet-18 and ResNet-34 begin alike; in each of them many layers are equal."""
    asked = Expansion(read_spec({"networks": ["resnet50", "resnet50"], "machines": ["nmp"], "layers": "all"}))
    points = list(asked)
    with Store(tmp_path / "a.sqlite") as store:
        store.add(asked)
        (count,) = store.data.execute("SELECT count(*) FROM tasks").fetchone()
    one = {p.digest for p in points}
    assert count == len(one) < len(points)
    # 53 convolutions and the classifier; a bottleneck's layers repeat within a stage
    assert sum(p.target.repeats for p in points) == 2 * 54
    assert len(one) == len(points) // 2 < 30


def test_what_no_answer_depends_on_makes_no_other_task(tmp_path: Path) -> None:
    machine = json.loads((ROOT / "instances" / "machines" / "scratchpad_64k.json").read_text())
    other = tmp_path / "mine.json"
    other.write_text(json.dumps({**machine, "description": "another text", "sources": {}}))
    points = list(_asked(machines=["scratchpad_64k", str(other)]))
    assert len({p.digest for p in points}) == 6 == len(points) // 2
    points = list(_asked(engines=["auto", "exhaustive"]))
    assert len({p.digest for p in points}) == 6
    # what an answer depends on does: engines, the time that a search has, machines
    for more in ({"engines": ["auto", "greedy"]}, {"machines": ["scratchpad_64k", "scratchpad_512k"]}):
        assert len({p.digest for p in _asked(**more)}) == 12
    assert len({p.digest for limit in (1, 600) for p in _asked(time_limit_s=limit)}) == 12


def test_combinations_that_mean_nothing_are_recorded_and_not_run(tmp_path: Path) -> None:
    with Store(tmp_path / "a.sqlite") as store:
        store.add(_asked(problems=["tiling", "mesh"], engines=["auto", "policies"], set={"ocm_bytes": [512, 0]}))
        counts = store.counts
    assert counts == {"BAD_INPUT": 6, "WAITING": 3}, "mesh on a scratchpad is found out by who solves it"
    rows = load_sweep(tmp_path / "a.sqlite").rows
    errors = {str(row["error"]) for row in rows if row["status"] == "BAD_INPUT"}
    assert any("unknown engine 'policies'" in text or "policies" in text for text in errors)
    assert any("ocm_bytes" in text and "greater than 0" in text for text in errors)


# --- another spec on the same file -----------------------------------------------------------------------------------


def test_a_larger_spec_extends_and_keeps_what_is_done(tmp_path: Path) -> None:
    small, large = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
    more = {"ocm_bytes": [256, 512, 1024, 2048, 4096]}
    with Store(small) as store:
        store.add(_asked())
        for task in list(store.waiting()):
            store.record(_solved(task.number))
    with Store(small) as store:
        assert store.add(_asked(set=more)) == 4
        assert store.counts == {"OPTIMAL": 6, "WAITING": 4}
        for task in list(store.waiting()):
            store.record(_solved(task.number))
    with Store(large) as store:
        store.add(_asked(set=more))
        for task in list(store.waiting()):
            store.record(_solved(task.number))
    assert table_csv(load_sweep(small)) == table_csv(load_sweep(large)), "the order is that of the last spec"


def test_a_machine_that_changes_gets_another_result(tmp_path: Path) -> None:
    """100 bytes of memory, of which 200 are taken, then 300; then none, then other ticks: no row says what was."""
    file, path = tmp_path / "mine.json", tmp_path / "a.sqlite"
    machine = json.loads((ROOT / "instances" / "machines" / "scratchpad_64k.json").read_text())
    asked = {"machines": [str(file)], "set": {"ocm_bytes": [100]}, "layers": ["f6"]}

    def first(**changes: int) -> tuple[object, ...]:
        """Of the machine as it is now; how many rows there are."""
        file.write_text(json.dumps(machine | changes))
        with Store(path) as store:
            store.add(_asked(**asked), keep=True)
            for task in list(store.waiting()):
                store.record(_solved(task.number, 100 + task.number))
        row, *old = load_sweep(path).rows
        return row["status"], row["value"], str(row["error"]).partition(": ")[2], len(old)

    said = "leaves nothing of memory ocm (100 bytes)"
    assert first(reserved_bytes=200) == ("BAD_INPUT", None, f"reserved_bytes 200 {said}", 0)
    assert first(reserved_bytes=300) == ("BAD_INPUT", None, f"reserved_bytes 300 {said}", 0)
    assert first(reserved_bytes=0) == ("OPTIMAL", 103, "", 1)
    assert first(reserved_bytes=0, tick_ps=7) == ("OPTIMAL", 104, "", 2)
    assert first(reserved_bytes=0) == ("OPTIMAL", 103, "", 2)


def test_a_spec_that_lacks_points_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with Store(path) as store:
        store.add(_asked())
        before = list(store.data.iterdump())
        with pytest.raises(InputError, match=r"holds 4 points .*first: lenet5 f6 .*ocm_bytes=512.*-o, or --add"):
            store.add(_asked(set={"ocm_bytes": [2048, 4096]}))
        assert list(store.data.iterdump()) == before
        assert store.add(_asked(set={"ocm_bytes": [2048, 4096]}), keep=True) == 2
    rows = load_sweep(path).rows
    assert [row["ocm_bytes"] for row in rows[::2]] == [2048, 4096, 512, 1024], "what is kept comes last"


def test_a_sweep_without_points_is_refused(tmp_path: Path) -> None:
    with Store(tmp_path / "a.sqlite") as store, pytest.raises(InputError, match="no point is left"):
        store.add(_asked(exclude={"layer": ["f6", "output"]}))


def test_retry(tmp_path: Path) -> None:
    with Store(tmp_path / "a.sqlite") as store:
        store.add(_asked())
        ends = ["OPTIMAL", "FEASIBLE", "INFEASIBLE", "WORKER_DIED", "TIME_OUT", "DEFECT"]
        for task, status in zip(list(store.waiting()), ends, strict=True):
            store.record(Solved(task.number, status, error="why"))
        store.commit()
        assert store.retry("failed") == 3
        assert [task.number for task in store.waiting()] == [4, 5, 6]
        assert store.retry("open") == 1
        assert store.counts == {"INFEASIBLE": 1, "OPTIMAL": 1, "WAITING": 4}


def test_numbers_beyond_64_bits(tmp_path: Path) -> None:
    with Store(tmp_path / "a.sqlite") as store:
        store.add(_asked())
        store.record(_solved(1, 2**70 + 1))
    row = load_sweep(tmp_path / "a.sqlite").rows[0]
    assert (row["value"], row["bound"], row["bytes"]) == (2**70 + 1,) * 3


# --- changed by hand --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    ["value = 5", "value = 5, bound = 5", "bound = 6", "status = 'FEASIBLE'", "gap = 0.5", "unit = 'ticks'",
     "measures = '{\"bytes\": 5}'", "stopped = 'time limit'", "error = 'x'", "digest = 'x'", "machine = 1",
     "value = '7'"],
)  # fmt: skip
def test_a_changed_result_is_left_out_and_runs_again(
    change: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.sqlite"
    with Store(path) as store:
        store.add(_asked())
        for task in list(store.waiting()):
            store.record(_solved(task.number))
    with sqlite3.connect(path) as data:
        data.execute(f"UPDATE tasks SET {change} WHERE id = 3")
    data.close()
    found = load_sweep(path)
    assert (len(found.rows), found.tasks) == (5, {"OPTIMAL": 5})
    (line,) = capsys.readouterr().err.splitlines()
    assert "1 result was changed after it was written (lenet5 f6): left out" in line
    with Store(path) as store:
        assert "it runs again" in capsys.readouterr().err
        assert [task.number for task in store.waiting()] == [3]
        store.record(_solved(3))
    assert len(load_sweep(path).rows) == 6
    assert capsys.readouterr().err == ""


def test_results_that_nobody_found_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.sqlite"
    with Store(path) as store:
        store.add(_asked())
        store.record(_solved(1))
    with sqlite3.connect(path) as data:
        data.execute("UPDATE tasks SET status = 'OPTIMAL', value = 1 WHERE id = 2")  # one that has not run
        data.execute("UPDATE tasks SET value = 1 WHERE id = 1")
    data.close()
    assert load_sweep(path).tasks == {"WAITING": 4}
    assert "2 results were changed after they were written (lenet5 f6, lenet5 output)" in capsys.readouterr().err


# --- killed at every statement ---------------------------------------------------------------------------------------

#: Imports once, and for every n forks a child that is killed at its n-th statement; then the file is looked at.
DRIVER = """
import json, os, signal, sqlite3, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from solver.uses.sweep.rows import load_sweep
from solver.uses.sweep.show import table_csv
from solver.uses.sweep.spec import read_spec
from solver.uses.sweep.store import Store
from solver.uses.sweep.tasks import Expansion
from solver.uses.sweep.tasks import Solved

folder, spec = Path(sys.argv[1]), json.loads(sys.argv[3])
asked = Expansion(read_spec(spec))
connect = sqlite3.connect

def work(path, done):
    with Store(path) as store:
        store.add(asked)
        for task in list(store.waiting()):
            store.record(Solved(task.number, "OPTIMAL", 7, "bytes", 7, 0.0, {"bytes": 7}, plan='{"a": 1}'))
            store.commit()
            done(task.number)

def killed(path, n, log):
    left = n
    def count(statement):
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
    def traced(*args, **more):
        made = connect(*args, **more)
        made.set_trace_callback(count)
        return made
    sqlite3.connect = traced
    with open(log, "a") as stream:
        def done(number):
            stream.write(f"{number}\\n")
            stream.flush()
        work(path, done)
    os._exit(0)

n, said = 0, []
while True:
    n += 1
    path, log = folder / f"{n}.sqlite", folder / f"{n}.log"
    child = os.fork()
    if not child:
        killed(path, n, log)
    _, status = os.waitpid(child, 0)
    promised = log.read_text().split() if log.exists() else []
    alive = os.WIFEXITED(status)
    kept = []
    if path.exists() and path.stat().st_size:
        data = connect(path)
        if data.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            raise SystemExit(f"{n}: not whole")
        tables = [name for (name,) in data.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if tables:
            kept = [str(k) for (k,) in data.execute("SELECT id FROM tasks WHERE status = 'OPTIMAL' ORDER BY id")]
            (plans,) = data.execute("SELECT count(*) FROM plans").fetchone()
            (points,) = data.execute("SELECT count(*) FROM points").fetchone()
            if plans != len(kept) or points not in (0, 6) or len(tables) != 9:
                raise SystemExit(f"{n}: half of a transaction: {plans} {points} {tables}")
        data.close()
    if kept[: len(promised)] != promised or len(kept) > len(promised) + 1:
        raise SystemExit(f"{n}: promised {promised}, kept {kept}")
    again = []
    work(path, again.append)
    if [str(k) for k in again] != [str(k) for k in range(1, 7) if str(k) not in kept]:
        raise SystemExit(f"{n}: kept {kept}, done again {again}")
    said.append(table_csv(load_sweep(path)))
    if alive:
        break
print(json.dumps([n, len(set(said))]))
"""


@pytest.mark.slow(6)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_killed_at_every_statement_nothing_is_lost_or_done_twice(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(tmp_path), str(ROOT), json.dumps(SPEC)], capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    statements, tables = json.loads(done.stdout)
    assert statements > 60
    assert tables == 1


# --- one writer ------------------------------------------------------------------------------------------------------


@pytest.mark.slow(2)
def test_a_second_writer_is_refused_in_one_line_and_readers_are_not(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with Store(path) as store:
        store.add(_asked())
        with pytest.raises(InputError, match=f"process {os.getpid()} is writing it"):
            Store(path)
        assert load_sweep(path).waiting == 6
        link = tmp_path / "link.sqlite"
        link.symlink_to(path)
        with pytest.raises(InputError, match="is writing it"):
            Store(link)
        code = "import sys; from solver.cli.main import main; sys.exit(main(sys.argv[1:]))"
        spec = tmp_path / "spec.json"
        spec.write_text(json.dumps(SPEC))
        other = subprocess.run(
            [sys.executable, "-c", code, "sweep", str(spec), "-o", str(path)], capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120, check=False,
        )  # fmt: skip
        assert (other.returncode, other.stdout, len(other.stderr.splitlines())) == (2, "", 1)
        assert "is writing it" in other.stderr
    Store(path).close()


def test_what_a_killed_writer_left_behind_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / "a.sqlite.lock").write_text("1\n")
    Store(tmp_path / "a.sqlite").close()
    assert not (tmp_path / "a.sqlite.lock").exists()


# --- files that are no sweep -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "a.sqlite"
    with Store(path) as store:
        store.add(_asked(set={"ocm_bytes": {"from": 512, "to": 900, "step": 8}}))
        for task in list(store.waiting()):
            store.record(_solved(task.number))
    return path


def _refused(path: Path) -> list[str]:
    """What reading and writing say."""
    said = []
    calls: list[Callable[[], object]] = [lambda: load_sweep(path), lambda: Store(path).close()]
    for call in calls:
        with pytest.raises(InputError) as caught:
            call()
        said.append(str(caught.value))
        assert len(said[-1].splitlines()) == 1
        assert str(path) in said[-1]
    return said


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(whole: Path, share: float, tmp_path: Path) -> None:
    path = tmp_path / "cut.sqlite"
    data = whole.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    assert all("damaged" in said for said in _refused(path))
    assert not (tmp_path / "cut.sqlite.lock").exists()


def test_other_files_are_refused(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text('{"format": "certile-plan/3"}')
    assert all("is no file of a sweep" in said for said in _refused(path))
    path = tmp_path / "other.sqlite"
    sqlite3.connect(path).execute("CREATE TABLE t (x)").connection.close()
    assert all("SQLite file of something else" in said for said in _refused(path))
    path = tmp_path / "later.sqlite"
    path.write_bytes(whole.read_bytes())
    data = sqlite3.connect(path)
    data.execute("UPDATE meta SET value = 'certile-sweep/9' WHERE key = 'format'")
    data.commit()
    data.close()
    assert all("format is 'certile-sweep/9', this version reads 'certile-sweep/1'" in said for said in _refused(path))
    assert all("no regular file" in said for said in _refused(tmp_path))
    with pytest.raises(InputError, match="no such file"):
        load_sweep(tmp_path / "none.sqlite")
    with pytest.raises(InputError, match="cannot be written"):
        Store(tmp_path / "none" / "a.sqlite")


@settings(max_examples=tries(15, 60))
@given(where=st.integers(0, 2**20), flip=st.integers(1, 255))
def test_flipped_bytes_are_refused_in_one_line_or_harmless(
    whole: Path, where: int, flip: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("flipped") / "a.sqlite"
    data = bytearray(whole.read_bytes())
    data[where % len(data)] ^= flip
    path.write_bytes(data)
    try:
        sweep = load_sweep(path)
        for row in sweep.rows[:2]:
            table_csv(sweep)
            sweep.plan(row)
    except InputError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
