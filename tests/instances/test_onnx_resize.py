"""Resize, Upsample and GridSample of ONNX files: data that moves, and how much."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from formulations.compulsory import compulsory_bytes as network_bytes
from hwmodels.nest.price.limits import compulsory_bytes
from instances.load import dump_network, load_machine, load_network
from instances.network.network import Network
from instances.network.operators import Resample
from instances.network.stores import stores
from solver.cli.main import main
from tests.onnx_models import model_of

Shape = tuple[int, ...]


def read(
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
    ("nearest", (9, 4), (3, (3, 4), (2, 1), (2, 1))),  # two rows become three
    ("linear", (9, 4), (3, (3, 4), (4, 1), (2, 1))),
    ("linear", (3, 2), (1, (3, 2), (2, 2), (2, 2))),  # every element of a block is read
    ("nearest", (5, 4), (5, (1, 4), (6, 1), (6, 1))),  # nothing in common: one block
])  # fmt: skip
def test_windows_of_a_map_of_another_size(
    tmp_path: Path, mode: str, after: tuple[int, int], window: tuple[object, ...]
) -> None:
    network = read(tmp_path, "Resize", [(1, 3, 6, 4)], sizes(1, 3, *after), mode=mode)
    assert network.opaque == ()
    (layer,) = network.layers
    assert (layer.m, (layer.r, layer.c), (layer.kh, layer.kw), (layer.stride_h, layer.stride_w)) == window
    assert (layer.g * layer.m * layer.r * layer.c, layer.macs) == (3 * after[0] * after[1], 0)
    assert network.operators[-1].shape == (1, 3, *after)


def test_large_blocks_read_every_neighbour(tmp_path: Path) -> None:
    """A map of 11 rows and 4 columns becomes 13 and 4: two rows of the map for every element of the result."""
    (layer,) = read(tmp_path, "Resize", [(1, 3, 11, 4)], sizes(1, 3, 13, 4), mode="linear").layers
    assert (layer.kind, layer.inputs, layer.g, layer.r, layer.c) == ("eltwise", 2, 3, 13, 4)
    (layer,) = read(tmp_path, "Resize", [(1, 3, 11, 11)], sizes(1, 3, 13, 13), mode="cubic").layers
    assert layer.inputs == 16


def test_other_axes_and_ranks(tmp_path: Path) -> None:
    network = read(tmp_path, "Resize", [(1, 3, 5)], sizes(1, 3, 10), mode="linear")  # a sequence
    assert [(x.g, x.m, x.r, x.c, x.kh, x.kw) for x in network.layers] == [(3, 2, 1, 5, 1, 3)]
    network = read(tmp_path, "Resize", [(1, 3, 2, 6, 4)], sizes(1, 3, 4, 12, 8), mode="linear")  # a video
    # rows and columns of two frames of three channels, then frames: of 96 pixels each, twice as many
    assert [(x.g, x.m, x.r, x.c) for x in network.layers] == [(6, 4, 6, 4), (3, 2, 2, 96)]
    assert network.operators[-1].shape == (1, 3, 4, 12, 8)
    network = read(tmp_path, "Resize", [(1, 3, 6, 4)], sizes(1, 3, 6, 4))
    assert network.layers == ()


@pytest.mark.parametrize("opset", [7, 9])
def test_upsample(tmp_path: Path, opset: int) -> None:
    scales = [1.0, 1.0, 2.0, 2.0]
    given = {"scales": np.array(scales, np.float32)} if opset == 9 else None
    attributes = {} if opset == 9 else {"scales": scales}
    network = read(tmp_path, "Upsample", [(1, 3, 6, 4)], given, opset=opset, **attributes)
    assert [(x.kind, x.m) for x in network.layers] == [("resample", 4)]
    assert network.operators[-1].shape == (1, 3, 12, 8)


@pytest.mark.parametrize(("attributes", "said"), [
    ({"antialias": 1, "mode": "linear"}, "antialias"),
    ({"coordinate_transformation_mode": "tf_crop_and_resize"}, "a part of the map"),
])  # fmt: skip
def test_what_stays_opaque(tmp_path: Path, attributes: dict[str, object], said: str) -> None:
    (kept,) = read(tmp_path, "Resize", [(1, 3, 6, 4)], sizes(1, 3, 3, 2), **attributes).opaque
    assert said in kept.reason
    assert kept.macs == 0


@pytest.mark.parametrize(("mode", "channels", "operands"), [
    ("bilinear", 3, 4 + 2), ("nearest", 3, 1 + 2), ("bicubic", 3, 16 + 2), ("bilinear", 1, 4 + 2),
])  # fmt: skip
def test_a_grid_reads_every_neighbour(tmp_path: Path, mode: str, channels: int, operands: int) -> None:
    network = read(tmp_path, "GridSample", [(2, channels, 6, 4), (2, 5, 7, 2)], mode=mode)
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
    network = read(tmp_path, "GridSample", [(1, 3, 5, 7), (1, 5, 7, 2)], mode="nearest")
    pool = {"op": "pool", "name": "p", "inputs": ["t0"], "shape": [1, 3, 5, 7], "fn": "max", "kernel": [1, 1]}
    fields = network.model_dump(mode="json")
    fields["operators"][2:] = [pool, {**fields["operators"][3], "inputs": ["p", "t1"]}]
    found = stores(Network.model_validate(fields))
    assert [found.stores[s].whole for s in found.reads[1]] == [True] * 3
    assert found.barriers == (-1, 0)  # it begins when the map is complete


def test_a_resample_is_written_and_read_again(tmp_path: Path) -> None:
    network = read(tmp_path, "Resize", [(1, 3, 6, 4)], sizes(1, 3, 12, 8), mode="linear")
    dump_network(network, tmp_path / "net.json")
    assert load_network(tmp_path / "net.json") == network


def test_bytes_of_a_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """72 elements are read and 288 are written, a byte each."""
    dump_network(read(tmp_path, "Resize", [(1, 3, 6, 4)], sizes(1, 3, 12, 8)), tmp_path / "net.json")
    arguments = ["solve", str(tmp_path / "net.json"), "-m", "scratchpad_64k", "--objective", "bytes", "--all-kinds"]
    assert main(arguments) == 0
    assert "bytes 360" in capsys.readouterr().out


def test_a_grid_of_another_size_is_refused() -> None:
    made = Resample(name="r", inputs=("a", "b"), shape=(1, 3, 5, 7), size=(5, 7))
    with pytest.raises(ValueError, match=r"needs a grid of shape \(1, 5, 7, 2\), its second input has \(1, 5, 6, 2\)"):
        made.infer([(1, 3, 9, 9), (1, 5, 6, 2)])
