"""C of the operators that become several, move elements or look at many: executed, and compared with onnxruntime."""

from __future__ import annotations

import random
import re
from pathlib import Path

import onnx
import pytest

from instances.errors import InputError
from instances.network.network import Network
from instances.network.operators import Conv, Input, Reshape
from solver.calls.solve import solve
from solver.uses.emit.compile import Compiled, compile_model
from tests.effort import THOROUGH, in_turn
from tests.emitted import BUILDS, build_and_run
from tests.onnx_models import MODELS, saved
from tests.operator_models import KINDS, model

STRICT = f"-O{int(THOROUGH)} -Wall -Wextra -Werror"
FLOATS = dict.fromkeys(("in_bytes", "w_bytes", "out_bytes", "psum_bytes"), 4)
BYTES = {"in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 4}
#: Models of 8 bits, and those that are refused, with a part of the reason.
QUANTISED = ("quantised",)
REFUSED = dict.fromkeys(("dynamic_matmul", "dynamic_lstm"), "its scale depends on the data")
EVERY = [(kind, name) for kind, cases in KINDS.items() for name in cases]
#: Of every kind some that cover most of its code.
FEW = [
    ("Resize", "linear half_pixel"), ("Resize", "nearest scattered"), ("ConvTranspose", "5x5 of stride 3"),
    ("ConvTranspose", "groups that overlap"), ("cell", "LSTM both"), ("cell", "GRU reset behind"),
    ("move", "Pad reflect"), ("move", "Slice backwards"), ("other", "Conv of frames"), ("other", "Einsum grouped"),
    ("other", "ReduceL2"),
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


@pytest.mark.slow(1)
@pytest.mark.parametrize(("kind", "name"), FEW)
def test_operators(tmp_path: Path, kind: str, name: str) -> None:
    """Within 1e-5 of the largest result: sums of a few numbers of single precision."""
    assert run(kind, name, tmp_path, "tiling", STRICT) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), [one for one in EVERY if one not in FEW])
def test_more_operators(tmp_path: Path, kind: str, name: str) -> None:
    """The others, with sanitizers and without, with a DMA that copies at once or late."""
    assert run(kind, name, tmp_path, "tiling", random.Random(name).choice(BUILDS)) < 1e-5


@pytest.mark.slow(1)
@pytest.mark.parametrize(("kind", "name"), [("Resize", "nearest to sizes"), ("ConvTranspose", "4x4 of stride 2")])
def test_operators_on_chip(tmp_path: Path, kind: str, name: str) -> None:
    """A joint plan keeps the blocks of a Resize, and the map that all phases read, where they are."""
    assert run(kind, name, tmp_path, "joint", STRICT) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name", "problem"), in_turn(EVERY, ("joint", "fusion")))
def test_more_operators_on_chip(tmp_path: Path, kind: str, name: str, problem: str) -> None:
    """No operator is refused because of what a plan of whole networks keeps."""
    assert run(kind, name, tmp_path, problem, random.Random(name).choice(BUILDS)) < 1e-5


@pytest.mark.slow(1)
def test_what_the_host_needs_lies_in_memory(tmp_path: Path) -> None:
    """Channels are padded by the host: that map alone leaves the chip, and the report says what it costs.

    A map of 30 pixels: 4 channels are written, 4 * 30 * 4 = 480 bytes, and a convolution reads 8, 960 bytes.
    """
    path = tmp_path / "it.onnx"
    onnx.save(model(KINDS["move"]["Pad channels"], between=True), path)
    made = compile_model(path, "scratchpad_768k", tmp_path / "c", settings=FLOATS)
    assert made.plan.problem == "joint"
    assert made.plan.network_data.in_dram == ("c",)  # the convolution, by its tensor
    assert "480 bytes written, 960 read" in made.note


@pytest.mark.slow
@pytest.mark.parametrize(("name", "problem"), in_turn([(name,) for name in MODELS], (None, "tiling", "fusion")))
def test_models(tmp_path: Path, name: str, problem: str | None) -> None:
    """Models of the kinds that people deploy; what is refused says that it depends on the data."""
    pytest.importorskip("onnxruntime")
    path = saved(name, tmp_path)
    settings = BYTES if name in QUANTISED else FLOATS

    def compiled() -> Compiled:
        return compile_model(
            path, "scratchpad_768k", tmp_path / "c", settings=settings, problem=problem, time_limit_s=10
        )

    if name in REFUSED:
        with pytest.raises(InputError, match=REFUSED[name]):
            compiled()
        return
    assert compiled().plan.problem == (problem or "joint")
    assert "transfers as planned" in build_and_run(tmp_path / "c", random.Random(name).choice(BUILDS))


def test_a_group_reads_a_part_of_a_map_that_another_layer_sees_whole() -> None:
    """The referee loads what the group reads: 4 of 8 channels of 16 pixels, no matter that a later layer reads all."""
    network = Network(
        name="parts",
        operators=(
            Input(name="x", shape=(1, 8, 4, 4)),
            Reshape(name="half", inputs=("x",), shape=(1, 4, 4, 4), fn="slice"),
            Conv(name="one", inputs=("half",), shape=(1, 4, 4, 4), filters=4, kernel=(1, 1)),
            Conv(name="two", inputs=("one",), shape=(1, 4, 4, 4), filters=4, kernel=(1, 1)),
            Conv(name="all", inputs=("x",), shape=(1, 8, 4, 4), filters=8, kernel=(1, 1)),
        ),
    )
    plan = solve(network, "scratchpad_768k", problem="fusion", pins=["fuse=one..two", "cut=two"])
    assert plan.status == "OPTIMAL"
