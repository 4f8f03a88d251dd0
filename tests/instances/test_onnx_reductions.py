"""Reductions over any axes, what repeats elements, recurrent cells of 8 bits: planned, with shapes of onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from formulations.compulsory import compulsory_bytes as network_bytes
from hwmodels.nest.price.limits import compulsory_bytes
from instances.load import dump_network, load_machine, load_network
from instances.network.network import Network
from instances.network.operators import Pool, Resample
from instances.network.stores import stores
from instances.onnx.reader import read_onnx
from solver.cli.main import main
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


# ---- Resize, Upsample and GridSample of ONNX files: data that moves, and how much ------------------------------------

Shape = tuple[int, ...]


def resized(
    folder: Path, op: str, inputs: list[Shape], constants: dict[str, np.ndarray] | None = None, *, opset: int = 18,
    **attributes: object,
) -> Network:  # fmt: skip
    """The network of one node between two Relus; a constant's name says its position."""
    given = constants or {}
    names = [f"t{k}" for k in range(len(inputs))]
    infos = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in zip(names, inputs, strict=True)]
    taken = ["a", *names[1:], *([""] * (2 - len(names)) if "sizes" in given or "scales2" in given else [])]
    if "sizes" in given:
        taken += [""]
    nodes = [
        helper.make_node("Relu", ["t0"], ["a"]),
        helper.make_node(op, [*taken, *given], ["b"], name="node", **attributes),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    onnx.save(model_of(nodes, infos, held=given, opset=opset), folder / "one.onnx")
    return load_network(str(folder / "one.onnx"))


def sizes(*values: int) -> dict[str, np.ndarray]:
    return {"sizes": np.array(values, np.int64)}


@pytest.mark.parametrize(("mode", "after", "window"), [
    # filters for a block (m), windows (r, c), kernel, stride: what of the map makes a block of the result
    ("nearest", (12, 8), (4, (6, 4), (1, 1), (1, 1))),
    ("linear", (12, 8), (4, (6, 4), (3, 3), (1, 1))),  # a neighbour at each side
    ("cubic", (12, 8), (4, (6, 4), (5, 5), (1, 1))),
    ("cubic", (6, 8), (2, (6, 4), (1, 5), (1, 1))),  # rows stay as they are
    ("cubic", (3, 4), (1, (3, 4), (4, 1), (2, 1))),
    ("nearest", (9, 4), (3, (3, 4), (2, 1), (2, 1))),  # two rows become three
    ("linear", (9, 4), (3, (3, 4), (4, 1), (2, 1))),
    ("linear", (3, 2), (1, (3, 2), (2, 2), (2, 2))),  # every element of a block is read
    ("nearest", (5, 4), (5, (1, 4), (6, 1), (6, 1))),  # nothing in common: one block
])  # fmt: skip
def test_windows_of_a_map_of_another_size(
    tmp_path: Path, mode: str, after: tuple[int, int], window: tuple[object, ...]
) -> None:
    network = resized(tmp_path, "Resize", [(1, 3, 6, 4)], sizes(1, 3, *after), mode=mode)
    assert network.opaque == ()
    (layer,) = network.layers
    assert (layer.m, (layer.r, layer.c), (layer.kh, layer.kw), (layer.stride_h, layer.stride_w)) == window
    assert (layer.g * layer.m * layer.r * layer.c, layer.macs) == (3 * after[0] * after[1], 0)
    assert network.operators[-1].shape == (1, 3, *after)


def test_large_blocks_read_every_neighbour(tmp_path: Path) -> None:
    """A map of 11 rows and 4 columns becomes 13 and 4: two rows of the map for every element of the result."""
    (layer,) = resized(tmp_path, "Resize", [(1, 3, 11, 4)], sizes(1, 3, 13, 4), mode="linear").layers
    assert (layer.kind, layer.inputs, layer.g, layer.r, layer.c) == ("eltwise", 2, 3, 13, 4)
    (layer,) = resized(tmp_path, "Resize", [(1, 3, 11, 11)], sizes(1, 3, 13, 13), mode="cubic").layers
    assert layer.inputs == 16


def test_other_axes_and_ranks(tmp_path: Path) -> None:
    network = resized(tmp_path, "Resize", [(1, 3, 5)], sizes(1, 3, 10), mode="linear")  # a sequence
    assert [(x.g, x.m, x.r, x.c, x.kh, x.kw) for x in network.layers] == [(3, 2, 1, 5, 1, 3)]
    network = resized(tmp_path, "Resize", [(1, 3, 2, 6, 4)], sizes(1, 3, 4, 12, 8), mode="linear")  # a video
    # rows and columns of two frames of three channels, then frames: of 96 pixels each, twice as many
    assert [(x.g, x.m, x.r, x.c) for x in network.layers] == [(6, 4, 6, 4), (3, 2, 2, 96)]
    assert network.operators[-1].shape == (1, 3, 4, 12, 8)
    network = resized(tmp_path, "Resize", [(1, 3, 6, 4)], sizes(1, 3, 6, 4))
    assert network.layers == ()


@pytest.mark.parametrize("opset", [7, 9])
def test_upsample(tmp_path: Path, opset: int) -> None:
    scales = [1.0, 1.0, 2.0, 2.0]
    given = {"scales": np.array(scales, np.float32)} if opset == 9 else None
    attributes = {} if opset == 9 else {"scales": scales}
    network = resized(tmp_path, "Upsample", [(1, 3, 6, 4)], given, opset=opset, **attributes)
    assert [(x.kind, x.m) for x in network.layers] == [("resample", 4)]
    assert network.operators[-1].shape == (1, 3, 12, 8)


@pytest.mark.parametrize(("attributes", "said"), [
    ({"antialias": 1, "mode": "linear"}, "antialias"),
    ({"coordinate_transformation_mode": "tf_crop_and_resize"}, "a part of the map"),
])  # fmt: skip
def test_what_stays_opaque(tmp_path: Path, attributes: dict[str, object], said: str) -> None:
    (kept,) = resized(tmp_path, "Resize", [(1, 3, 6, 4)], sizes(1, 3, 3, 2), **attributes).opaque
    assert said in kept.reason
    assert kept.macs == 0


@pytest.mark.parametrize(("mode", "channels", "operands"), [
    ("bilinear", 3, 4 + 2), ("nearest", 3, 1 + 2), ("bicubic", 3, 16 + 2), ("bilinear", 1, 4 + 2),
])  # fmt: skip
def test_a_grid_reads_every_neighbour(tmp_path: Path, mode: str, channels: int, operands: int) -> None:
    network = resized(tmp_path, "GridSample", [(2, channels, 6, 4), (2, 5, 7, 2)], mode=mode)
    (layer,) = network.layers
    assert (layer.kind, layer.inputs) == ("eltwise", operands)
    assert (layer.b, layer.g, layer.r, layer.c) == (2, channels, 5, 7)
    assert layer.patterns[:2] == (("g", "g") if channels > 1 else ("", ""))  # two numbers for every pixel
    assert network.operators[-1].shape == (2, channels, 5, 7)
    # at least the map, both numbers of 2 * 35 pixels, and results
    must = 2 * channels * 24 + 2 * 2 * 35 + 2 * channels * 35
    machine = load_machine("scratchpad_768k")
    assert compulsory_bytes(layer, machine) == network_bytes(stores(network), machine) == must


def test_what_is_read_anywhere_stays_whole_or_not_at_all(tmp_path: Path) -> None:
    """A layer in front makes the map, rows of which a grid reads as it likes."""
    network = resized(tmp_path, "GridSample", [(1, 3, 5, 7), (1, 5, 7, 2)], mode="nearest")
    pool = {"op": "pool", "name": "p", "inputs": ["t0"], "shape": [1, 3, 5, 7], "fn": "max", "kernel": [1, 1]}
    fields = network.model_dump(mode="json")
    fields["operators"][2:] = [pool, {**fields["operators"][3], "inputs": ["p", "t1"]}]
    found = stores(Network.model_validate(fields))
    assert [found.stores[s].whole for s in found.reads[1]] == [True] * 3
    assert found.barriers == (-1, 0)  # it begins when the map is complete


def test_a_resample_is_written_and_read_again(tmp_path: Path) -> None:
    network = resized(tmp_path, "Resize", [(1, 3, 6, 4)], sizes(1, 3, 12, 8), mode="linear")
    dump_network(network, tmp_path / "net.json")
    assert load_network(tmp_path / "net.json") == network


def test_bytes_of_a_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """72 elements are read and 288 are written, a byte each."""
    dump_network(resized(tmp_path, "Resize", [(1, 3, 6, 4)], sizes(1, 3, 12, 8)), tmp_path / "net.json")
    arguments = ["solve", str(tmp_path / "net.json"), "-m", "scratchpad_64k", "--objective", "bytes", "--all-kinds"]
    assert main(arguments) == 0
    assert "bytes 360" in capsys.readouterr().out


def test_a_grid_of_another_size_is_refused() -> None:
    made = Resample(name="r", inputs=("a", "b"), shape=(1, 3, 5, 7), size=(5, 7))
    with pytest.raises(ValueError, match=r"needs a grid of shape \(1, 5, 7, 2\), its second input has \(1, 5, 6, 2\)"):
        made.infer([(1, 3, 9, 9), (1, 5, 6, 2)])
