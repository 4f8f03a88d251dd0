"""Networks of real size as torch exports them: planned, written as C, run, and compared with onnxruntime.

CERTILE_TORCH_PYTHON names a Python that has torch, onnx and onnxscript (by default the one that runs the tests).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from certile import compile_model, emit_c, solve
from solver.plan.plan import Plan
from tests.emitted import build_and_run

PYTHON = os.environ.get("CERTILE_TORCH_PYTHON", sys.executable)
SCRIPT = Path(__file__).parent / "data" / "onnx" / "networks.py"
FLOATS = ["in_bytes=4", "w_bytes=4", "out_bytes=4", "psum_bytes=4"]
#: What the networks multiply at 224x224, as published.
MACS = {"squeezenet": 349_151_936, "mobilenet": 300_774_272, "resnet": 4_089_184_256}

pytest.importorskip("onnxruntime")
if subprocess.run([PYTHON, "-c", "import torch, onnx, onnxscript"], capture_output=True, check=False).returncode:
    pytest.skip(f"{PYTHON} has no torch, onnx and onnxscript", allow_module_level=True)
pytestmark = pytest.mark.slow(100)


def exported(folder: Path, name: str, *options: str) -> Path:
    """The file of a network."""
    subprocess.run([PYTHON, str(SCRIPT), str(folder), name, *options], check=True, capture_output=True)
    return folder / f"{name}.onnx"


def ran(folder: Path) -> None:
    """Transfers as planned (the program checks every one), results within 1e-4 of the largest."""
    printed = build_and_run(folder, "-O2")
    assert "transfers as planned" in printed
    found = re.search(r"differ from those expected by (\S+)", printed)
    assert float(found.group(1)) < 1e-4


@pytest.mark.parametrize("exporter", [[], ["--dynamo"]])
@pytest.mark.parametrize("name", sorted(MACS))
def test_with_maps_on_chip(tmp_path: Path, name: str, exporter: list[str]) -> None:
    model = exported(tmp_path, name, *exporter)
    made = compile_model(model, "scratchpad_768k", tmp_path / "c", settings=FLOATS, problem="joint")
    assert (made.macs, made.plan.problem, made.plan.status) == (MACS[name], "joint", "OPTIMAL")
    ran(tmp_path / "c")


@pytest.mark.parametrize("name", sorted(MACS))
def test_for_the_least_time(tmp_path: Path, name: str) -> None:
    """What is planned if nothing is asked for."""
    made = compile_model(exported(tmp_path, name), "scratchpad_768k", tmp_path / "c", settings=FLOATS)
    assert (made.plan.problem, made.plan.objectives) == ("fusion", ("time",))
    ran(tmp_path / "c")


@pytest.mark.parametrize(("name", "more"), [("squeezenet", 0), ("mobilenet", 33_568), ("resnet", 0)])
def test_in_groups(tmp_path: Path, name: str, more: int) -> None:
    """MobileNetV2 needs 4 % more memory than its plan counts, for buffers that keep one size all the time."""
    model = exported(tmp_path, name)
    plan: Plan = solve(
        model, "scratchpad_768k", problem="fusion", objective="bytes", settings=FLOATS, pins=["turns=no"]
    )
    assert any(row.visits > 1 for row in plan.part.figures)
    emit_c(plan, tmp_path / "c", model, memory_bytes=786_432 + more if more else None)
    ran(tmp_path / "c")
