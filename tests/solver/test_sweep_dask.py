"""Sweeps on Dask clusters: a local one of two workers, and a real scheduler with workers as processes on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from instances.errors import InputError
from solver.uses.sweep.pools import ClusterPool
from solver.uses.sweep.rows import load_sweep
from solver.uses.sweep.run import run_sweep, sweep
from solver.uses.sweep.show import table_csv

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow(40),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::FutureWarning"),
]
ROOT = Path(__file__).resolve().parents[2]
SPEC: dict[str, Any] = {
    "networks": ["lenet5"], "layers": ["f6", "output"], "machines": ["scratchpad_64k"], "objectives": ["bytes"],
    "pins": ["order=OS"], "set": {"ocm_bytes": [5, *range(512, 560, 4)]},
}  # fmt: skip


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The table of one process here."""
    return table_csv(sweep(SPEC, tmp_path_factory.mktemp("alone") / "a.sqlite", jobs=1))


def test_a_local_cluster_of_two_workers(alone: str, tmp_path: Path) -> None:
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        found = sweep(SPEC, tmp_path / "a.sqlite", dask=cluster.scheduler_address)
    assert table_csv(found) == alone
    assert found.tasks == {"INFEASIBLE": 2, "OPTIMAL": 24}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Path, list[subprocess.Popen[bytes]]]]:
    """`dask scheduler` and two `dask worker` on loopback, by a scheduler file."""
    file = tmp_path / "scheduler.json"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
    quiet: dict[str, Any] = {
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "env": environment,
        "cwd": tmp_path,
    }
    dask = [sys.executable, "-m", "dask"]
    processes = [
        subprocess.Popen(
            [*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)],
            **quiet,
        )
    ]
    processes += [
        subprocess.Popen(
            [*dask, "worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-dashboard", "--no-nanny",
             "--local-directory", str(tmp_path)], **quiet,
        )
        for _ in range(2)
    ]  # fmt: skip
    end = time.monotonic() + 60
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.1)
    yield file, processes
    children = [
        child for one in processes if one.poll() is None for child in psutil.Process(one.pid).children(recursive=True)
    ]
    for one in processes:
        one.kill()
        one.wait()
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive, "a process of a worker outlived it"


def test_a_scheduler_and_workers_one_of_which_is_killed(
    cluster: tuple[Path, list[subprocess.Popen[bytes]]], alone: str, tmp_path: Path
) -> None:
    file, (_, first, _second) = cluster
    path, spec = tmp_path / "a.sqlite", tmp_path / "spec.json"
    spec.write_text(json.dumps(SPEC))
    process = subprocess.Popen(
        [sys.executable, "-m", "solver", "sweep", str(spec), "-o", str(path), "--dask", str(file)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    end = time.monotonic() + 90
    while time.monotonic() < end and process.poll() is None:
        try:
            if load_sweep(path).tasks.get("OPTIMAL", 0) >= 2:
                break
        except InputError:
            pass
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    assert "24 OPTIMAL" in out
    found = load_sweep(path)
    assert table_csv(found) == alone


def test_a_cluster_that_goes_is_said_and_the_sweep_continues_elsewhere(
    cluster: tuple[Path, list[subprocess.Popen[bytes]]], alone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, processes = cluster
    monkeypatch.setattr("solver.uses.sweep.pools._CONNECT_S", 20.0)
    before = ClusterPool.get

    def get(pool: ClusterPool, seconds: float) -> object:
        said = before(pool, seconds)
        if said is not None:
            for one in processes:
                one.kill()
        return said

    monkeypatch.setattr(ClusterPool, "get", get)
    done = run_sweep(SPEC, tmp_path / "a.sqlite", dask=str(file), silent=True)
    assert "is gone" in done.stopped
    assert 0 < done.done < 26
    assert done.left == 26 - done.done
    found = sweep(SPEC, tmp_path / "a.sqlite", jobs=1)
    assert table_csv(found) == alone


def test_no_scheduler_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solver.uses.sweep.pools._CONNECT_S", 1.0)
    with pytest.raises(InputError, match=r"--dask tcp://127\.0\.0\.1:9: no scheduler there"):
        sweep(SPEC, tmp_path / "a.sqlite", dask="tcp://127.0.0.1:9")
    assert load_sweep(tmp_path / "a.sqlite").waiting == 26
