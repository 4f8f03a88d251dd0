"""What is said of a model before there is a plan: all that would be refused, not the first of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from instances.errors import InputError
from instances.load import load_machine
from instances.onnx_model import read_model
from solver.emit import compile as compiling
from solver.emit.compile import compile_model
from solver.emit.preflight import Refusals, refusals

FLOAT = TensorProto.FLOAT
FLOATS = ["in_bytes=4", "w_bytes=4", "out_bytes=4"]


def saved(folder: Path, nodes: list[onnx.NodeProto], shape: tuple[int, ...], **constants: np.ndarray) -> Path:
    """A model of one input x, whose result is that of the last node."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", FLOAT, shape)],
        [helper.make_tensor_value_info(nodes[-1].output[0], FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )  # fmt: skip
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def asked(path: Path, machine: str = "scratchpad_768k", **settings: str) -> Refusals:
    return refusals(read_model(path), load_machine(machine, settings))


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


def two_faults(folder: Path) -> Path:
    """A convolution, then two operators that nobody computes, one behind the other."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "conv"), helper.make_node("CumSum", ["a", "axis"], ["b"], "sum1"),
        helper.make_node("CumSum", ["b", "axis"], ["c"], "sum2"),
    ]  # fmt: skip
    return saved(folder, nodes, (1, 3, 8, 8), w=weights(4, 3, 1, 1), axis=np.array(2))


def test_every_refusal_is_named(tmp_path: Path) -> None:
    reasons = asked(two_faults(tmp_path)).of("tiling")
    assert len(reasons) == 3  # elements of one byte, and two operators
    assert [word for word in ("in_bytes=4", "sum1", "sum2") if any(word in reason for reason in reasons)] == [
        "in_bytes=4", "sum1", "sum2",
    ]  # fmt: skip


def test_a_model_without_faults_has_no_reason(tmp_path: Path) -> None:
    path = saved(tmp_path, [helper.make_node("Conv", ["x", "w"], ["a"])], (1, 3, 8, 8), w=weights(4, 3, 1, 1))
    found = asked(path, in_bytes="4", w_bytes="4", out_bytes="4")
    assert found.of("tiling") == found.of("joint") == found.of("fusion") == ()


def test_compile_asks_before_it_searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def search(*_: object, **__: object) -> None:
        raise AssertionError("a search before the refusal")

    monkeypatch.setattr(compiling, "solve", search)
    with pytest.raises(InputError, match=r"sum1.*sum2"):
        compile_model(two_faults(tmp_path), "scratchpad_768k", tmp_path / "out", settings=FLOATS)
    assert not (tmp_path / "out").exists()


def test_a_map_that_the_host_computes_with_cannot_stay(tmp_path: Path) -> None:
    """A local response norm between two convolutions is the host's: what it reads and makes lies off the chip."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "one"), helper.make_node("LRN", ["a"], ["b"], "norm", size=3),
        helper.make_node("Conv", ["b", "v"], ["c"], "two"),
    ]  # fmt: skip
    path = saved(tmp_path, nodes, (1, 3, 8, 8), w=weights(4, 3, 1, 1), v=weights(4, 4, 1, 1))
    found = asked(path, in_bytes="4", w_bytes="4", out_bytes="4")
    assert found.of("tiling") == ()
    assert len(found.of("joint")) == 1
    assert "stays on chip" in found.of("joint")[0]
