"""Sweeps on two workers: tasks a second, bytes a task in the file of results, and what a million tasks would take.

The first row solves nothing: one process makes points, adds them, and records a plan for each, which is what a single
writer can do at most, however many workers there are. The others are sweeps; their seconds run from the first result
to the last, so the start of the workers is not in them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from instances.load import dump_network
from instances.network.network import Network
from instances.network.operators import Conv, Input
from solver.ask.watch import Watch
from solver.uses.bench.report import Cell, Suite, Table
from solver.uses.sweep.pools import LocalPool
from solver.uses.sweep.run import Stop, SweepProgress, drive
from solver.uses.sweep.spec import read_spec
from solver.uses.sweep.store import Store
from solver.uses.sweep.tasks import Expansion, Solved

_WORKERS, _MILLION = 2, 10**6
_SCRATCHPAD = {"machines": ["scratchpad_64k"], "objectives": ["bytes"]}
_RECORDED = 20_000
_ONE = Network(
    name="one",
    operators=(
        Input(name="x", shape=(1, 1, 1, 1)),
        Conv(name="one", inputs=("x",), shape=(1, 1, 1, 1), filters=1, kernel=(1, 1)),
    ),
)
#: What is swept: a name, and a spec; ``ONE`` is a file with one multiplication.
SWEEPS: Mapping[str, Mapping[str, Any]] = {
    "one multiplication": {
        "networks": ["ONE"], **_SCRATCHPAD, "pins": ["order=OS"],
        "set": {"ocm_bytes": {"from": 6, "to": 1005, "step": 1}},
    },
    "LeNet-5, 1 to 64 KiB, three buses": {
        "networks": ["lenet5"], **_SCRATCHPAD,
        "set": {"ocm_bytes": {"from": 1024, "to": 65536, "times": 2}, "transfer.byte_ticks": [1, 2, 4]},
    },
    "SqueezeNet 1.1, 64 to 256 KiB": {
        "networks": ["squeezenet1_1"], **_SCRATCHPAD, "set": {"ocm_bytes": {"from": 65536, "to": 262144, "times": 2}},
    },
}  # fmt: skip


class _Timed(SweepProgress):
    """Remembers when the first and the last task ended."""

    first = last = 0.0
    number = 0

    def advance(self, said: Solved) -> None:
        """One more has ended."""
        self.last = time.monotonic()
        self.first = self.first or self.last
        self.number += 1


def _row(name: str) -> list[Cell]:
    with tempfile.TemporaryDirectory() as folder:
        tasks, seconds, size = _swept(Path(folder), SWEEPS[name]) if name in SWEEPS else _bookkeeping(Path(folder))
    rate = tasks / seconds
    return [
        name, tasks, round(rate, 1), round(size / tasks), round(_MILLION / rate / 3600, 1),
        round(size / tasks * _MILLION / 1e9, 2),
    ]  # fmt: skip


sweep_suite = Suite("sweep", (
    Table(
        f"Sweeps on {_WORKERS} workers",
        ["sweep", "tasks", "tasks/s", "bytes a task", "hours for 10^6", "GB for 10^6"],
        ("no search: points, writes", *SWEEPS), _row,
        ["bytes: the whole file, plans included; hours: of so many workers, twice as many halve them"],
    ),
))  # fmt: skip


def _bookkeeping(folder: Path) -> tuple[int, float, int]:
    """Points, a file, and results that cost nothing: of a plan of one task for all."""
    spec = {"networks": ["lenet5"], "layers": ["c3"], **_SCRATCHPAD}
    path = folder / "a.sqlite"
    begin = time.monotonic()
    with Store(path) as store:
        store.add(
            Expansion(read_spec({**spec, "set": {"ocm_bytes": {"from": 1000, "to": 999 + _RECORDED, "step": 1}}}))
        )
        spent = time.monotonic() - begin
        with Watch() as watch:
            said = next(store.waiting()).decide(None, watch)
        begin = time.monotonic()
        for task in store.waiting():
            text = said.plan.replace('"ocm_bytes":1000', f'"ocm_bytes":{999 + task.number}')
            store.record(replace(said, number=task.number, plan=text))
    return _RECORDED, spent + time.monotonic() - begin, path.stat().st_size


def _swept(folder: Path, spec: Mapping[str, Any]) -> tuple[int, float, int]:
    """A sweep by two workers: tasks, seconds from the first result to the last, bytes of the file."""
    dump_network(_ONE, folder / "one.json")
    networks = [str(folder / "one.json") if name == "ONE" else name for name in spec["networks"]]
    path, timed = folder / "a.sqlite", _Timed(1, silent=True)
    with Store(path) as store:
        store.add(Expansion(read_spec({**spec, "networks": networks})))
        pool = LocalPool(_WORKERS)
        try:
            drive(store, pool, timed, Stop())
        finally:
            pool.close()
    return timed.number - 1, max(1e-9, timed.last - timed.first), path.stat().st_size
