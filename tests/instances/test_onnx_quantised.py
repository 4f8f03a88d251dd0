"""Operators on quantised tensors spelled out, where numbers matter: the plan of the file stays that of the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from instances.errors import InputError
from instances.network.stores import stores
from instances.onnx.model import read_model
from instances.onnx.quantised import move_integers, one_for_each, spell_out
from instances.onnx.reader import read_onnx
from tests.onnx_models import model_of

FILES = sorted((Path(__file__).parent.parent / "data" / "onnx").glob("*_q*.onnx"))


@pytest.mark.few(7)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_layers_and_stores_are_those_that_were_planned(path: Path) -> None:
    model, planned = read_model(path), read_onnx(path)
    assert model.network.layers == planned.layers
    one, two = stores(model.network), stores(planned)
    assert (one.reads, one.writes, one.barriers) == (two.reads, two.writes, two.barriers)
    kept = [
        [(s.rows, s.parts, s.readers, s.whole, s.dram, s.results) for s in found.stores] for found in (one, two)
    ]  # fmt: skip
    assert kept[0] == kept[1]
    assert not any(node.op_type.startswith("QLinear") or node.domain for node in model.origin.values())


def made(nodes: list[onnx.NodeProto], **constants: np.ndarray | np.generic) -> onnx.ModelProto:
    return model_of(nodes, {"x": (2, 3)}, "y", constants, domain="com.microsoft", kind=onnx.TensorProto.UINT8)


def moved_through(zero: int) -> onnx.ModelProto:
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["d"]), helper.make_node("Transpose", ["d"], ["t"]),
        helper.make_node("QuantizeLinear", ["t", "s", "z2"], ["q"]), helper.make_node("Identity", ["q"], ["y"]),
    ]  # fmt: skip
    return made(nodes, s=np.float32(0.1), z=np.uint8(3), z2=np.uint8(zero))


def test_integers_are_moved_where_quantising_undoes_dequantising() -> None:
    model, other = moved_through(3), moved_through(4)
    assert move_integers(model)
    assert [(n.op_type, *n.input) for n in model.graph.node] == [("Transpose", "x"), ("Identity", "t")]
    assert not move_integers(other)


def test_every_reader_has_a_dequantize_linear_of_its_own() -> None:
    nodes = [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["d"]), helper.make_node("Mul", ["d", "d"], ["y"])]
    model = made(nodes, s=np.float32(0.1), z=np.uint8(3))
    assert one_for_each(model)
    assert [n.op_type for n in model.graph.node] == ["DequantizeLinear", "DequantizeLinear", "Mul"]
    assert len(set(model.graph.node[2].input)) == 2
    assert not one_for_each(model)


def test_a_product_of_integers_is_spelled_out() -> None:
    """QGemm by 2 columns, each with its scale: the bias has the product of the scales, 0.1 * 0.5 and 0.1 * 0.25."""
    node = helper.make_node(
        "QGemm", ["x", "s", "z", "w", "sw", "zw", "b", "s", "z"], ["y"], "n", domain="com.microsoft"
    )
    weights = np.arange(6, dtype=np.int8).reshape(3, 2)
    model = made([node], s=np.float32(0.1), z=np.uint8(3), w=weights, sw=np.float32([0.5, 0.25]),
                 zw=np.zeros(2, np.int8), b=np.int32([7, 8]))  # fmt: skip
    assert spell_out(model)
    assert [n.op_type for n in model.graph.node] == [*["DequantizeLinear"] * 3, "Gemm", "QuantizeLinear"]
    assert model.graph.node[3].name == "n"
    scales = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    assert scales["n:bias_scale"].tolist() == (np.float32(0.1) * np.float32([0.5, 0.25])).tolist()
    assert not spell_out(model)


def test_what_integers_stand_for(tmp_path: Path) -> None:
    """(5 - 1) * 0.5 and (5 - 1) * 0.25; scales of blocks are refused."""
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=0),
        helper.make_node("Cast", ["x"], ["c"], to=1), helper.make_node("MatMul", ["c", "d"], ["y"]),
        helper.make_node("DequantizeLinear", ["w", "s2", "z2"], ["blocks"], axis=0),
    ]  # fmt: skip
    scale = np.float32([0.5, 0.25, 1])
    model = made(nodes, w=np.full((3, 1), 5, np.int8), s=scale, z=np.ones(3, np.int8), s2=np.ones((3, 1), np.float32),
                 z2=np.ones((3, 1), np.int8))  # fmt: skip
    onnx.save(model, tmp_path / "m.onnx")
    read = read_model(tmp_path / "m.onnx")
    assert read.constant("d").tolist() == [[2], [1], [4]]
    assert read.quantised("w") is None
    with pytest.raises(InputError, match="a scale for every block"):
        read.constant("blocks")
