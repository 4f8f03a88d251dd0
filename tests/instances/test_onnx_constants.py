"""Constants that are no weights: what of a file is read as an operand, and what layers take into weights and biases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from certile import solve
from instances.network.network import Network
from instances.onnx.reader import read_onnx


def network(tmp_path: Path, shape: tuple[int, ...], nodes: list[tuple[str, list[str]]], **constants: object) -> Network:
    """A chain of nodes from x on; `prev` is the result before."""
    made, last = [], "x"
    for k, (op, inputs) in enumerate(nodes):
        given = [last if name == "prev" else name for name in inputs]
        made.append(helper.make_node(op, given, [f"t{k}"], name=f"n{k}"))
        last = f"t{k}"
    held = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    graph = helper.make_graph(
        made, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, None)], held,
    )  # fmt: skip
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return read_onnx(path)


def zeros(*shape: int, kind: type = np.float32) -> np.ndarray:
    return np.zeros(shape, kind)


OPERANDS = {
    # rows of positions for tokens, for a batch too
    "positions": ((1, 6, 8), [("Add", ["prev", "k"])], zeros(1, 6, 8), ("", ""), 2 * 48),
    "positions of a batch": ((3, 6, 8), [("Add", ["prev", "k"])], zeros(1, 6, 8), ("", "b"), 144 + 48),
    "positions without a batch": ((3, 6, 8), [("Add", ["prev", "k"])], zeros(6, 8), ("", "b"), 144 + 48),
    # what nothing before can take in: a scale behind an activation, of tokens, in front of everything
    "by channel": ((1, 4, 5, 5), [("Relu", ["prev"]), ("Mul", ["prev", "k"])], zeros(1, 4, 1, 1), ("", "rc"), 104),
    "scale of features": ((1, 6, 8), [("Mul", ["prev", "k"])], zeros(8), ("", "r"), 48 + 8),
    "scale, constant first": ((1, 6, 8), [("Div", ["k", "prev"])], zeros(8), ("r", ""), 48 + 8),
    "grid of anchors": ((1, 3, 4, 4, 2), [("Add", ["prev", "k"])], zeros(1, 1, 4, 4, 2), ("", "b"), 96 + 32),
    "mask": ((1, 4, 6, 6), [("Add", ["prev", "k"])], zeros(1, 1, 6, 6), ("", "g"), 144 + 36),
    "a row": ((1, 2, 6, 6), [("Max", ["prev", "k"])], zeros(6), ("", "gr"), 72 + 6),
    "the whole map": ((1, 2, 6, 6), [("Sub", ["prev", "k"])], zeros(1, 2, 6, 6), ("", ""), 144),
    "more axes": ((6, 8), [("Add", ["prev", "k"])], zeros(1, 6, 8), ("", ""), 96),
    "larger than the map": ((1, 1, 8), [("Mul", ["prev", "k"])], zeros(1, 6, 8), ("r", ""), 8 + 48),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERANDS)
def test_constants_are_read_from_where_they_lie(tmp_path: Path, name: str) -> None:
    shape, nodes, constant, lacks, read = OPERANDS[name]
    found = network(tmp_path, shape, nodes, k=constant)
    (layer,) = found.layers
    assert layer.patterns == lacks
    assert sum(map(layer.input_elements, range(layer.inputs))) == read
    assert found.parameters == constant.size
    plan = solve(found, "scratchpad_64k", objective="bytes", all_kinds=True)
    assert plan.objective.value == read + layer.g * layer.b * layer.r * layer.c


def test_where_with_a_constant_mask_and_a_number(tmp_path: Path) -> None:
    found = network(
        tmp_path, (1, 4, 6, 6), [("Where", ["k", "prev", "least"])], k=zeros(1, 1, 6, 6, kind=np.bool_),
        least=np.float32(-1e9),
    )  # fmt: skip
    (layer,) = found.layers
    assert layer.patterns == ("g", "")


@pytest.mark.parametrize("value", [np.float32(2), zeros(1), zeros(1, 1, 1)])
def test_single_numbers_are_free(tmp_path: Path, value: object) -> None:
    assert network(tmp_path, (1, 4, 6, 6), [("Mul", ["prev", "k"])], k=value).layers == ()


def test_what_a_layer_takes_into_its_weights_and_bias_is_no_operand(tmp_path: Path) -> None:
    """A factor, then an addend for every channel behind a convolution; for every feature behind a product."""
    channels = zeros(8, 1, 1)
    found = network(
        tmp_path, (1, 4, 5, 5), [("Conv", ["prev", "w"]), ("Mul", ["prev", "a"]), ("Add", ["prev", "b"])],
        w=zeros(8, 4, 1, 1), a=channels, b=channels + 1,
    )  # fmt: skip
    assert [layer.kind for layer in found.layers] == ["conv"]
    assert found.parameters == 32 + 8 + 8
    product = network(
        tmp_path, (1, 6, 8), [("MatMul", ["prev", "w"]), ("Add", ["prev", "b"])], w=zeros(8, 4), b=zeros(4)
    )  # fmt: skip
    assert [(layer.kind, layer.bias) for layer in product.layers] == [("matmul", True)]


def test_a_constant_operand_has_one_shape_for_every_batch_and_size(tmp_path: Path) -> None:
    found = network(tmp_path, (1, 4, 6, 6), [("Relu", ["prev"]), ("Mul", ["prev", "k"])], k=zeros(4, 1, 1))
    (layer,) = found.with_batch(5).layers
    assert (layer.b, layer.patterns) == (5, ("", "brc"))
    (layer,) = found.with_size(9, 3).layers
    assert (layer.r, layer.c, layer.patterns) == (9, 3, ("", "rc"))
