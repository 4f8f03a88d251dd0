"""Suite ``emit``: one network planned five ways as C, with a scratchpad as large as the host's second cache.

What a plan saves is bytes between a scratchpad and the memory behind it. A host has a cache there, which moves bytes
by itself while others are computed with; the run times say what is left of the difference.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Machine
from instances.onnx.reader import read_onnx
from instances.problems import nested
from solver.ask.progress import Progress
from solver.calls.solve import solve
from solver.plan.plan import Plan
from solver.uses.bench.demo import wheel_model
from solver.uses.bench.report import Cell, Report
from solver.uses.emit.emit import emit_c

#: Of the onnx package: SqueezeNet 1.1 at 224x224.
_MODEL = "light_squeezenet"
_BANK = 16 * 1024
_L2_BYTES = 1 << 20
#: Runs of every program, in turn; the medians count.
_RUNS = 7
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


class _Way(NamedTuple):
    """How the network is planned."""

    name: str
    problem: str = "tiling"
    engine: str = "auto"


_WAYS = (
    _Way("naive", engine="naive"), _Way("greedy", engine="greedy"), _Way("optimum of each layer"),
    *(_Way(problem, problem) for problem in nested("network")),
)  # fmt: skip


def l2_bytes(caches: Path = _CACHES) -> int:
    """The size of the host's second cache; 1 MiB where it does not say so."""
    for entry in sorted(caches.glob("index*")):
        level, size = ((entry / name).read_text().strip() for name in ("level", "size"))
        if level == "2" and size.endswith("K"):
            return int(size[:-1]) * 1024
    return _L2_BYTES


def _compiler() -> str:
    name = os.environ.get("CC", "gcc")
    if not shutil.which(name):
        raise InputError(f"no C compiler: {name} is not there; CC names another")
    return name


def _built(way: _Way, machine: Machine, model: Path, folder: Path) -> Plan:
    """Plan the model, write the program and build it."""
    pins = ["turns=no"] if way.problem == "fusion" else []
    plan = solve(
        read_onnx(model), machine, problem=way.problem, engine=way.engine, objective="bytes", pins=pins,
        all_kinds=way.problem == "tiling",
    )  # fmt: skip
    emit_c(plan, folder, model)
    flags = ["-std=c11", "-O2", "-DCERTILE_CHECK", "-o", "certile"]
    sources = sorted(path.name for path in folder.glob("*.c"))
    subprocess.run([_compiler(), *flags, *sources, "-lm"], cwd=folder, check=True)
    return plan


def _cpu_s(folder: Path) -> float:
    """CPU seconds of one run; RuntimeError if it does not compute or move what is planned."""
    import resource  # not on every system

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(["./certile"], cwd=folder, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ran.returncode:
        raise RuntimeError(f"{folder.name}: {ran.stdout}{ran.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def emit(progress: Progress, model: Path | None = None, runs: int = _RUNS) -> Report:
    """Bytes and run times of one network, planned by rules, layer by layer, with maps on chip, and fused."""
    _compiler()
    model = model or wheel_model(_MODEL)
    size = l2_bytes() // _BANK * _BANK
    fields = dict.fromkeys(("in_bytes", "w_bytes", "out_bytes", "psum_bytes"), "4")
    machine = load_machine("scratchpad_768k", {**fields, "ocm_bytes": str(size), "ocm_banks": str(size // _BANK)})
    report = Report("emit", progress=progress)
    with tempfile.TemporaryDirectory() as root:
        folders = {way: Path(root) / f"{number}" for number, way in enumerate(_WAYS)}
        plans = {way: _built(way, machine, model, folders[way]) for way in report.each(_WAYS, lambda way: way.name)}
        seconds: dict[_Way, list[float]] = {way: [] for way in _WAYS}
        for _ in report.each(range(runs)):
            for way, folder in folders.items():
                seconds[way].append(_cpu_s(folder))
    heads = ["planned", "status", "bytes", "bytes ratio", "CPU ms", "time ratio", "least ms", "most ms"]
    section = report.section(f"{model.stem}, single precision, {size // 1024} KiB on chip", heads)
    first = _WAYS[0]
    for way, plan in plans.items():
        section.rows.append(_row(way, plan, plans[first], seconds[way], seconds[first]))
    section.notes += [
        "Ratios to the first row. CPU time of the whole program, reading weights included: the median of"
        f" {runs} runs in turn.",
    ]
    return report


def _row(way: _Way, plan: Plan, naive: Plan, seconds: list[float], slow: list[float]) -> list[Cell]:
    assert plan.objective is not None
    assert naive.objective is not None
    moved, median = plan.objective.value, statistics.median(seconds)
    said: list[Cell] = [moved, moved / naive.objective.value, 1000 * median, median / statistics.median(slow)]
    return [way.name, plan.status, *said, 1000 * min(seconds), 1000 * max(seconds)]
