"""C of the operators that become several, move elements or look at many: executed, and compared with onnxruntime."""

from __future__ import annotations

import random
import re
from pathlib import Path

import onnx
import pytest

from solver.emit.compile import compile_model
from tests.emitted import BUILDS, build_and_run
from tests.operator_models import KINDS, model

STRICT = "-O1 -Wall -Wextra -Werror"
FLOATS = dict.fromkeys(("in_bytes", "w_bytes", "out_bytes", "psum_bytes"), 4)
EVERY = [(kind, name) for kind, cases in KINDS.items() for name in cases]
#: Of every kind some that cover most of its code.
FEW = [
    ("Resize", "linear half_pixel"), ("Resize", "nearest scattered"), ("ConvTranspose", "5x5 of stride 3"),
    ("ConvTranspose", "groups that overlap"), ("cell", "LSTM both"), ("cell", "GRU reset behind"),
    ("move", "Pad reflect"), ("move", "Slice backwards"), ("other", "Conv of frames"), ("other", "Einsum grouped"),
]  # fmt: skip


def difference(printed: str) -> float:
    """How far results are from those of onnxruntime, of the largest one; transfers have to be as planned."""
    assert "transfers as planned" in printed, printed
    found = re.search(r"differ from those expected by ([0-9.e+-]+) of the largest one", printed)
    assert found, printed
    return float(found[1])


def run(kind: str, name: str, folder: Path, problem: str, flags: str) -> float:
    """Compile a case, what no plan has between convolutions, run it, and compare."""
    pytest.importorskip("onnxruntime")
    path = folder / "it.onnx"
    onnx.save(model(KINDS[kind][name], between=kind in ("move", "function")), path)
    made = compile_model(path, "scratchpad_768k", folder / "c", settings=FLOATS, problem=problem, time_limit_s=20)
    assert made.plan.problem == problem
    return difference(build_and_run(folder / "c", flags))


@pytest.mark.parametrize(("kind", "name"), FEW)
def test_operators(tmp_path: Path, kind: str, name: str) -> None:
    """Within 1e-5 of the largest result: sums of a few numbers of single precision."""
    assert run(kind, name, tmp_path, "tiling", STRICT) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), [one for one in EVERY if one not in FEW])
def test_more_operators(tmp_path: Path, kind: str, name: str) -> None:
    """The others, with sanitizers and without, with a DMA that copies at once or late."""
    assert run(kind, name, tmp_path, "tiling", random.Random(name).choice(BUILDS)) < 1e-5
