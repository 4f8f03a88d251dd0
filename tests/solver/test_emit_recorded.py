"""What programs are compared with: onnxruntime, or the file's graph in NumPy; and what a check says that fails."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from instances.onnx.model import OnnxModel, evaluated, read_model
from solver.uses.emit.compile import compile_model
from solver.uses.emit.network import recorded
from tests.emitted import build_and_run, small_model
from tests.quantised import Maker, quantised_model

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("make") is None, reason="needs gcc and make")
FLOATS = dict.fromkeys(("in_bytes", "w_bytes", "out_bytes", "psum_bytes"), 4)


def twice(path: Path) -> None:
    """Write y = conv(x), z = y + x; both are results."""
    rng, info = np.random.default_rng(1), helper.make_tensor_value_info
    weights = [numpy_helper.from_array(rng.normal(0, 1, (2, 2, 1, 1)).astype(np.float32), "w")]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["y"], name="c"),
        helper.make_node("Add", ["y", "x"], ["z"], name="a"),
    ]
    made = [info(name, onnx.TensorProto.FLOAT, (1, 2, 3, 4)) for name in "xyz"]
    graph = helper.make_graph(nodes, "twice", made[:1], made[1:], initializer=weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def by_both(model: OnnxModel, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, bytes]:
    """What onnxruntime records and what the reference does."""
    first = recorded(model)
    assert first.judge.startswith("onnxruntime")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    second = recorded(model)
    monkeypatch.undo()
    assert second.judge.startswith("the reference of onnx")
    assert first.files["input.bin"] == second.files["input.bin"]
    return first.files["expected.bin"], second.files["expected.bin"]


def test_real_numbers_are_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Norms of opset 9, dilations, padded averages, slices, shuffles: within 1e-5."""
    pytest.importorskip("onnxruntime")
    small_model(tmp_path / "m.onnx")
    one, two = (np.frombuffer(x, np.float32) for x in by_both(read_model(tmp_path / "m.onnx"), monkeypatch))
    assert one.size == 5 + 16 * 4 * 8
    assert np.abs(one - two).max() < 1e-5 * np.abs(one).max()


@pytest.mark.parametrize("operators", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_quantised_numbers_are_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, operators: bool
) -> None:  # fmt: skip
    """Both forms, zero points, scales by channel, poolings, joins: nearly all equal, the others a step apart."""
    pytest.importorskip("onnxruntime")
    quantised_model(random.Random(seed), tmp_path / "m.onnx", operators=operators)
    model = read_model(tmp_path / "m.onnx")
    one, two = (np.frombuffer(x, np.uint8) for x in by_both(model, monkeypatch))
    assert (one == two).mean() > 0.97


def test_poolings_by_hand(tmp_path: Path) -> None:
    """Rows 1 2 3 4 5, windows of 3, stride 2, one column of padding in front: [pad 1 2] [2 3 4] [4 5 beyond]."""
    info = helper.make_tensor_value_info
    both = {"kernel_shape": [1, 3], "strides": [1, 2], "pads": [0, 1, 0, 0], "ceil_mode": 1}
    nodes = [
        helper.make_node("MaxPool", ["x"], ["most"], **both),
        helper.make_node("AveragePool", ["x"], ["mean"], **both),
    ]
    nodes.append(helper.make_node("AveragePool", ["x"], ["padded"], count_include_pad=1, **both))
    made = [info(name, onnx.TensorProto.FLOAT, None) for name in ("most", "mean", "padded")]
    graph = helper.make_graph(nodes, "pools", [info("x", onnx.TensorProto.FLOAT, (1, 1, 1, 5))], made)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "m.onnx")
    x = {"x": np.float32([[[[1, 2, 3, 4, 5]]]])}
    most, mean, padded = evaluated(tmp_path / "m.onnx", x, ["most", "mean", "padded"])
    assert most.ravel().tolist() == [2, 4, 5]
    assert mean.ravel().tolist() == [1.5, 3, 4.5]
    assert padded.ravel().tolist() == [1, 3, 4.5]  # what rounding up adds is no padding


@pytest.mark.slow(2)
@needs_gcc
@pytest.mark.parametrize("runtime", [True, False])
def test_a_check_that_fails_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: bool) -> None:
    """With onnxruntime and without it a changed weight shows, and a program that is right does not fail."""
    if runtime:
        pytest.importorskip("onnxruntime")
    else:
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
    twice(tmp_path / "m.onnx")
    compile_model(tmp_path / "m.onnx", "scratchpad_768k", tmp_path / "c", settings=FLOATS)
    judge = "onnxruntime" if runtime else "the reference of onnx"
    assert f"compared with {judge}" in build_and_run(tmp_path / "c", "-O0")
    weights = np.fromfile(tmp_path / "c" / "weights.bin", np.float32)
    weights[0] += 1  # channel 0 of y and z is off by channel 0 of x
    weights.tofile(tmp_path / "c" / "weights.bin")
    x = np.fromfile(tmp_path / "c" / "input.bin", np.float32).reshape(2, 3, 4)[0]
    row, column = np.unravel_index(np.abs(x).argmax(), x.shape)
    ran = subprocess.run(["./certile"], cwd=tmp_path / "c", capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    failed = re.findall(
        r"FAILED: result (\w): the largest difference is at (\[[\d, ]+\]): (\S+), .* has (\S+); (.*)", ran.stdout
    )
    assert [one[:2] for one in failed] == [("y", f"[0, 0, {row}, {column}]"), ("z", f"[0, 0, {row}, {column}]")]
    assert float(failed[0][2]) - float(failed[0][3]) == pytest.approx(x[row, column], rel=1e-5)
    assert re.match(r"look at layer c \(layer_000_c\.c\)", failed[0][4])


@pytest.mark.slow(1)
@needs_gcc
def test_nobody_has_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The program says that it has nothing to compare with; so does the log."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setattr("solver.uses.emit.network.evaluated", lambda *_: 1 / 0)
    twice(tmp_path / "m.onnx")
    compile_model(tmp_path / "m.onnx", "scratchpad_768k", tmp_path / "c", settings=FLOATS)
    assert "nothing to compare with" in caplog.text
    assert "results are compared with nothing" in build_and_run(tmp_path / "c", "-O0")


@pytest.mark.slow(3)
@needs_gcc
def test_signed_maps_compare_exactly(tmp_path: Path) -> None:
    """onnxruntime is asked for integers of signed maps: of 10 layers all elements are equal, and the share is said."""
    pytest.importorskip("onnxruntime")
    maker = Maker(random.Random(8), kind="int8", weight_kind="int8")
    one = maker.quantised("x", (1, 4, 6, 6), 4 / 127)
    for _ in range(10):
        one = maker.pointwise(one)
        maker.result(one)
    maker.save(tmp_path / "m.onnx", (1, 4, 6, 6))
    compile_model(tmp_path / "m.onnx", "scratchpad_768k", tmp_path / "c", time_limit_s=20)
    printed = build_and_run(tmp_path / "c", "-O0")
    assert f"results: {10 * 144} of {10 * 144} elements exact, the others within 0 steps (100.000 % exact)" in printed
