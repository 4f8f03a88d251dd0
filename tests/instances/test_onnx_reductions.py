"""Reductions over any axes, what repeats elements, recurrent cells of 8 bits: planned, with shapes of onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from instances.network.network import Network
from instances.network.operators import Pool
from instances.onnx.reader import read_onnx
from tests.onnx_models import model_of

FLOAT = TensorProto.FLOAT
SHAPE = (2, 3, 4, 5)
REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


def read(
    folder: Path, op: str, shape: tuple[int, ...], *constants: object, opset: int = 17, **attributes: Any
) -> tuple[Network, tuple[int, ...]]:
    """The network of one node, and the shape that onnxruntime gives its result."""
    held = {f"c{k}": value for k, value in enumerate(constants)}
    path, node = folder / "model.onnx", helper.make_node(op, ["x", *held], ["y"], "node", **attributes)
    onnx.save(model_of([node], {"x": shape}, held=held, opset=opset), path)
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    made = session.run(None, {"x": np.abs(np.random.default_rng(0).normal(size=shape)).astype(np.float32)})[0]
    return read_onnx(path), made.shape or (1,)


@pytest.mark.parametrize("kind", REDUCTIONS)
@pytest.mark.parametrize("opset", [13, 18])
def test_every_reduction_is_a_pooling_of_all_that_it_reads(kind: str, opset: int, tmp_path: Path) -> None:
    """120 elements are read, and 2 * 3 * 5 are made: axis 2, as an attribute or as an input."""
    as_input = opset == 18 or kind == "Sum"
    axes = ([np.array([2], np.int64)], {}) if as_input else ([], {"axes": [2]})
    network, shape = read(tmp_path, f"Reduce{kind}", SHAPE, *axes[0], opset=opset, **axes[1])
    assert network.opaque == ()
    assert network.operators[-1].shape == shape == (2, 3, 1, 5)
    (layer,) = network.layers
    assert layer.g * layer.r * layer.c * layer.kh * layer.kw == 120
    (pool,) = (one for one in network.operators if isinstance(one, Pool))
    assert pool.fn == ("global_max" if kind in ("Max", "Min") else "global_avg")


AXES: list[tuple[list[int] | None, dict[str, int], tuple[int, ...]]] = [
    ([0], {}, (1, 3, 4, 5)), ([1], {}, (2, 1, 4, 5)), ([3], {}, (2, 3, 4, 1)), ([-1], {}, (2, 3, 4, 1)),
    ([-4], {}, (1, 3, 4, 5)), ([0, 2], {}, (1, 3, 1, 5)), ([3, 1], {}, (2, 1, 4, 1)), ([2, 3], {}, (2, 3, 1, 1)),
    ([1, -1], {"keepdims": 0}, (2, 4)), ([0, 1, 2, 3], {"keepdims": 0}, (1,)), (None, {}, (1, 1, 1, 1)),
    (None, {"keepdims": 0}, (1,)), ([], {}, (1, 1, 1, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("axes", "attributes", "wanted"), AXES)
def test_axes(axes: list[int] | None, attributes: dict[str, int], wanted: tuple[int, ...], tmp_path: Path) -> None:
    given = [] if axes is None else [np.array(axes, np.int64)]
    network, shape = read(tmp_path, "ReduceSum", SHAPE, *given, **attributes)
    assert network.opaque == ()
    assert network.operators[-1].shape == wanted == shape
    assert len(network.layers) == 1


def test_of_other_ranks(tmp_path: Path) -> None:
    for shape, axes in (((7,), [0]), ((3, 7), [1]), ((2, 3, 7), [0, 2]), ((2, 2, 2, 2, 3), [1, 4])):
        network, made = read(tmp_path, "ReduceL2", shape, axes=axes)
        assert network.opaque == ()
        assert network.operators[-1].shape == made


# --- what repeats elements --------------------------------------------------------------------------------------------

REPEATED: list[tuple[str, tuple[int, ...], object, dict[str, int], int]] = [
    ("Expand", (1, 3, 1, 1), [1, 3, 4, 5], {}, 1), ("Expand", (1, 3, 1, 5), [2, 3, 4, 5], {}, 2),
    ("Expand", (3, 1), [2, 3, 4], {}, 2), ("Expand", (1,), [6, 2], {}, 1), ("Expand", (2, 3), [1, 3], {}, 0),
    ("Expand", (2, 1, 3), [2, 4, 3], {}, 1),
    ("Tile", (2, 3), [1, 2], {}, 1), ("Tile", (2, 3), [3, 2], {}, 2), ("Tile", (1, 2, 3, 4), [1, 1, 2, 2], {}, 2),
    ("Tile", (2, 3), [1, 1], {}, 0),
    ("Gather", (2, 3), [0, 0, 1, 1], {"axis": 0}, 1), ("Gather", (2, 3), [0, 1, 0, 1], {"axis": 0}, 1),
    ("Gather", (1, 3, 4), [1, 2, 1, 2], {"axis": 1}, 1), ("Gather", (1, 3, 4), [[0, 0], [2, 2]], {"axis": -1}, 1),
    ("Gather", (5, 4), [-1, -1, -1], {"axis": 0}, 1), ("Gather", (1, 8), [3, 3], {"axis": 1}, 1),
]  # fmt: skip


@pytest.mark.parametrize(("op", "shape", "given", "attributes", "layers"), REPEATED)
def test_elements_are_read_once_and_written_as_often_as_they_are_wanted(
    op: str, shape: tuple[int, ...], given: object, attributes: dict[str, int], layers: int, tmp_path: Path
) -> None:
    network, made = read(tmp_path, op, shape, np.array(given, np.int64), **attributes)
    assert network.opaque == ()
    assert network.operators[-1].shape == made
    assert len(network.layers) == layers
    if layers:
        last = network.layers[-1]
        assert last.b * last.g * last.m * last.r * last.c == np.prod(made)


def test_an_expanded_gate_by_hand(tmp_path: Path) -> None:
    """3 elements are read, 60 are written."""
    network, _ = read(tmp_path, "Expand", (1, 3, 1, 1), np.array([1, 3, 4, 5], np.int64))
    (layer,) = network.layers
    assert layer.g * layer.n * layer.h * layer.l == 3
    assert layer.g * layer.m * layer.r * layer.c == 60


# --- recurrent cells of 8 bits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("states", [True, False])
def test_an_lstm_of_8_bits_is_planned_as_the_lstm(lanes: int, bias: bool, states: bool, tmp_path: Path) -> None:
    """5 steps of 8 inputs, 6 units, 4 gates: 5 * 4 * 6 * (8 + 6) = 1,680 products for each direction."""
    rng = np.random.default_rng(2)
    way = {"direction": "bidirectional"} if lanes == 2 else {}
    integers = {
        "W": rng.integers(-9, 9, (lanes, 8, 24)).astype(np.int8),
        "R": rng.integers(-9, 9, (lanes, 6, 24)).astype(np.int8),
    }
    grids = {name: np.full(lanes, 0.1, np.float32) for name in ("ws", "rs")} | {
        name: np.zeros(lanes, np.int8) for name in ("wz", "rz")
    }
    more = {"B": np.zeros((lanes, 48), np.float32)} if bias else {}
    more |= {name: np.zeros((lanes, 1, 6), np.float32) for name in ("h", "c")} if states else {}
    names = ["x", "W", "R", "B" * bias, "", "h" * states, "c" * states, "", "ws", "wz", "rs", "rz"]
    quantised = helper.make_node(
        "DynamicQuantizeLSTM", names, ["y", "last"], "cell", domain="com.microsoft", hidden_size=6, **way
    )
    real = helper.make_node("LSTM", names[:7], ["y", "last"], "cell", hidden_size=6, **way)
    plain = {name: value.astype(np.float32).transpose(0, 2, 1) for name, value in integers.items()}
    found = []
    for k, (node, weights) in enumerate([(quantised, integers | grids), (real, plain)]):
        path = tmp_path / f"model{k}.onnx"
        onnx.save(model_of([node], {"x": (5, 1, 8)}, ("y", "last"), weights | more, domain="com.microsoft"), path)
        found.append(read_onnx(path))
    assert found[0].opaque == ()
    assert found[0].macs == 1680 * lanes
    assert found[0].parameters == found[1].parameters == lanes * (24 * 14 + 48 * bias)
    assert [one.signature() for one in found[0].layers] == [one.signature() for one in found[1].layers]
