"""A sweep that is killed again and again at random moments ends with the same table as one that nobody disturbs."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from instances.load import dump_network
from instances.network.network import Network
from instances.network.operators import Conv, Input
from solver.cli.main import main
from solver.uses.sweep.rows import load_sweep
from solver.uses.sweep.show import table_csv

ROOT = Path(__file__).resolve().parents[2]
#: 5,000 are asked for by hand (they take 4 minutes on two processors); the tasks take about 12 ms each.
TASKS = int(os.environ.get("CERTILE_SWEEP_TASKS", "1000"))
KILLS = 10


def _spec(folder: Path, tasks: int) -> Path:
    """A sweep of so many tasks: one multiplication, from memories that are too small for it on."""
    network = Network(
        name="tiny",
        operators=(
            Input(name="x", shape=(1, 1, 1, 1)),
            Conv(name="one", inputs=("x",), shape=(1, 1, 1, 1), filters=1, kernel=(1, 1)),
        ),
    )
    dump_network(network, folder / "tiny.json")
    spec = folder / "spec.yaml"
    spec.write_text(
        f"networks: [{folder / 'tiny.json'}]\nmachines: [scratchpad_64k]\nobjectives: [bytes]\npins: [order=OS]\n"
        f"set: {{ocm_bytes: {{from: 1, to: {tasks}, step: 1}}}}\n"
    )
    return spec


def _start(spec: Path, out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "solver", "sweep", str(spec), "-o", str(out), "-j", "2"]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def _done(path: Path) -> dict[int, tuple[str, float, int]]:
    """What is committed: number, status, seconds (which no second run would hit again), tries."""
    if not path.exists():
        return {}
    data = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        assert data.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = data.execute("SELECT id, status, seconds, tries FROM tasks WHERE status != 'WAITING'").fetchall()
    except sqlite3.OperationalError as error:
        assert "no such table" in str(error)  # noqa: PT017 - killed before the tables were there
        return {}
    finally:
        data.close()
    return {number: (status, seconds, tries) for number, status, seconds, tries in rows}


@pytest.mark.slow(90)
def test_ten_kills_change_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = _spec(tmp_path, TASKS)
    calm, killed = tmp_path / "calm.sqlite", tmp_path / "killed.sqlite"
    begin = time.monotonic()
    assert main(["sweep", str(spec), "-o", str(calm), "-j", "2"]) == 0
    pace_s = time.monotonic() - begin

    rng, before, counts, workers = (
        random.Random(5),
        dict[int, tuple[str, float, int]](),
        list[int](),
        list[psutil.Process](),
    )
    for kill in range(KILLS):
        process = _start(spec, killed)
        # two while it starts, the others after up to a twentieth of the tasks, at any moment between two commits
        wanted = -1 if kill in (1, 6) else len(before) + rng.randint(0, TASKS // 20)
        while process.poll() is None and wanted >= 0 and len(_done(killed)) <= wanted:
            time.sleep(0.05)
        time.sleep(rng.uniform(0.0, 0.5))
        assert process.poll() is None, f"it was done before the last kill: {process.stderr and process.stderr.read()}"
        workers += psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        now = _done(killed)
        assert before.items() <= now.items(), "a result was lost, or a task that had ended was run again"
        before = now
        counts.append(len(now))
    assert counts[-1] < TASKS
    assert len(set(counts)) > 3, f"the kills came at different moments: {counts}"

    last = _start(spec, killed)
    _, err = last.communicate()
    assert last.returncode == 0, err
    after = _done(killed)
    assert before.items() <= after.items()
    assert len(after) == TASKS
    assert table_csv(load_sweep(killed)) == table_csv(load_sweep(calm))
    statuses = load_sweep(calm).tasks
    assert statuses["OPTIMAL"] > TASKS // 2
    assert statuses["INFEASIBLE"] > 0
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert not alive, "workers outlived the process that was killed"
    with capsys.disabled():
        print(f"\n{TASKS} tasks: {pace_s:.0f} s undisturbed; done at the kills: {counts}")
