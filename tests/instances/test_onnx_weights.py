"""Weights that several nodes of an ONNX file read are one tensor: it counts once, and operators say whose it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from pydantic import ValidationError

from certile import solve
from instances.load import load_network
from instances.network.network import Network
from instances.network.operators import Conv, Input, MatMul, Operator
from instances.network.stores import stores
from instances.onnx.reader import read_onnx
from tests.onnx_models import model_of

#: A node: operator, inputs, output, attributes.
Nodes = list[tuple[str, str, str, dict[str, object]]]


def read(folder: Path, x: tuple[int, ...], constants: dict[str, tuple[int, ...]], nodes: Nodes) -> Network:
    """A network of nodes; inputs are x and, of the same shape, z; constants whose names begin with "q" are int8."""
    held = {name: np.ones(shape, np.int8 if name[0] == "q" else np.float32) for name, shape in constants.items()}
    made = [helper.make_node(op, given.split(), [out], name=out, **more) for op, given, out, more in nodes]
    read = {name for _, given, _, _ in nodes for name in given.split()}
    ends = [out for *_, out, _ in nodes if out not in read]
    onnx.save(model_of(made, {"x": x, "z": x}, ends, held), folder / "one.onnx")
    return load_network(str(folder / "one.onnx"))


MAP, TOKENS = (1, 4, 8, 8), (1, 6, 4)
W4 = {"w": (4, 4, 1, 1)}
#: By kind: shape of the inputs, constants, nodes; weights_of by name; parameters.
KINDS: dict[str, tuple[tuple[int, ...], dict[str, tuple[int, ...]], Nodes, dict[str, str], int]] = {
    "a convolution on two levels": (
        MAP, W4, [("Conv", "x w", "a", {}), ("MaxPool", "x", "p", {"kernel_shape": [2, 2], "strides": [2, 2]}),
                  ("Conv", "p w", "b", {})], {"b": "a"}, 16,
    ),
    "three times in a row": (
        MAP, W4, [("Conv", "x w", "a", {}), ("Conv", "a w", "b", {}), ("Conv", "b w", "c", {})],
        {"b": "a", "c": "a"}, 16,
    ),
    "with a bias that is shared": (
        MAP, {**W4, "v": (4,)}, [("Conv", "x w v", "a", {}), ("Conv", "a w v", "b", {})], {"b": "a"}, 20,
    ),
    "with biases of their own": (
        MAP, {**W4, "v": (4,), "u": (4,)},
        [("Conv", "x w v", "a", {}), ("Conv", "a w u", "b", {}), ("Conv", "b w u", "c", {})], {"b": "a", "c": "b"}, 24,
    ),
    "products of tokens, sums folded": (
        TOKENS, {"w": (4, 4), "v": (4,)},
        [("MatMul", "x w", "a", {}), ("Add", "a v", "s", {}), ("MatMul", "s w", "b", {}), ("Add", "b v", "t", {})],
        {"b": "a"}, 20,
    ),
    "tied weights: encoded, and decoded by the transpose": (
        TOKENS, {"w": (4, 400)},
        [("MatMul", "x w", "a", {}), ("Transpose", "w", "wt", {"perm": [1, 0]}), ("MatMul", "a wt", "b", {})],
        {"b": "a"}, 1600,
    ),
    "Gemm in both directions": (
        (6, 4), {"w": (4, 5)}, [("Gemm", "x w", "a", {}), ("Gemm", "a w", "b", {"transB": 1})], {"b": "a"}, 20,
    ),
    "integers with a scale for each reader": (
        MAP, {"q": (4, 4, 1, 1), "s": (), "t": ()},
        [("DequantizeLinear", "q s", "w", {}), ("Conv", "x w", "a", {}), ("DequantizeLinear", "q t", "u", {}),
         ("Conv", "a u", "b", {})], {"b": "a"}, 16,
    ),
    "made of one tensor in the same way": (
        TOKENS, {"w": (40, 40), "s": (), "i": ()},
        [("Mul", "w s", "u", {}), ("Mul", "w s", "v", {}), ("Mul", "w i", "t", {}),
         *(("MatMul", f"r {name}", f"{name}.m", {}) for name in "uvt"),
         ("Concat", "x x x x x x x x x x", "r", {"axis": 2})], {"v.m": "u.m"}, 3200,
    ),
    "made of one tensor by other attributes": (
        MAP, W4, [("Elu", "w", "u", {}), ("Elu", "w", "v", {"alpha": 2.0}), ("Conv", "x u", "a", {}),
                  ("Conv", "a v", "b", {})], {}, 32,
    ),
    "two tensors of equal numbers": (
        MAP, {**W4, "u": (4, 4, 1, 1)}, [("Conv", "x w", "a", {}), ("Conv", "a u", "b", {})], {}, 32,
    ),
    "transposed convolutions, phase by phase": (
        MAP, {"w": (4, 4, 4, 4)},
        [("ConvTranspose", f"{one} w", out, {"strides": [2, 2], "pads": [1, 1, 1, 1]}) for one, out in ("xa", "zb")],
        {f"b:phase{k}": f"a:phase{k}" for k in range(4)}, 256,
    ),
    "transposed convolutions that begin elsewhere: other taps make a phase": (
        MAP, {"w": (4, 4, 4, 4)},
        [("ConvTranspose", f"{one} w", out, {"strides": [2, 2], "pads": pads})
         for one, out, pads in (("x", "a", [1, 1, 1, 1]), ("z", "b", [0, 0, 2, 2]))], {}, 512,
    ),
    "videos, frame by frame": (
        (1, 4, 3, 6, 6), {"w": (4, 4, 3, 3, 3)},
        [("Conv", "x w", "a", {"pads": [1] * 6}), ("Conv", "a w", "b", {"pads": [1] * 6})], {"b": "a"}, 432,
    ),
    "a table that is looked up and multiplied by": (
        TOKENS, {"w": (400, 4), "q": (5,)},
        [("Cast", "z", "n", {"to": onnx.TensorProto.INT64}), ("Gather", "w n", "e", {}),
         ("Transpose", "w", "wt", {"perm": [1, 0]}), ("MatMul", "x wt", "a", {})], {}, 1600,
    ),
    "the same, multiplied by first": (
        TOKENS, {"w": (400, 4)},
        [("Transpose", "w", "wt", {"perm": [1, 0]}), ("MatMul", "x wt", "a", {}),
         ("Cast", "z", "n", {"to": onnx.TensorProto.INT64}), ("Gather", "w n", "e", {})], {}, 1600,
    ),
    "one of six axes that is not planned after all": (
        (2, 1, 2, 1, 2, 1), {"k": (1, 2, 1, 2, 1, 2)}, [("Add", "x k", "a", {}), ("Mul", "z k", "b", {})], {}, 8,
    ),
    "norms with one scale": (
        TOKENS, {"w": (4,), "v": (4,)},
        [("LayerNormalization", "x w v", "a", {}), ("LayerNormalization", "a w v", "b", {})], {}, 8,
    ),
    "two cells with the same weights, other biases": (
        (3, 1, 4), {"w": (1, 4, 4), "r": (1, 4, 4), "v": (1, 8), "u": (1, 8)},
        [("RNN", "x w r v", "a", {"hidden_size": 4}), ("RNN", "z w r u", "b", {"hidden_size": 4})],
        {**{f"a:t{k}.R": "a:t0.R" for k in (1, 2)}, "b:x": "a:x", "b:t0.R": "a:t0.R",
         **{f"b:t{k}.R": "b:t0.R" for k in (1, 2)}}, 16 + 16 + 8 + 8,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_one_tensor_counts_once(tmp_path: Path, kind: str) -> None:
    x, constants, nodes, shared, parameters = KINDS[kind]
    made = {out for *_, out, _ in nodes} | {"x", "z", *constants}
    nodes = sorted(nodes, key=lambda node: node[2] != "r" or "r" not in made)  # what is joined comes first
    network = read(tmp_path, x, constants, nodes)
    found = {o.name: o.weights_of for o in network.operators if isinstance(o, Conv | MatMul) and o.weights_of}
    assert found == shared
    assert network.parameters == parameters
    assert Network.model_validate(network.model_dump(mode="json")) == network


def two(**fields: object) -> Network:
    """Two products, the second with the weights of the first."""
    first = MatMul(name="a", inputs=("x",), shape=(6, 4), out_features=4)
    second = MatMul.model_validate({"name": "b", "inputs": ("a",), "shape": (6, 4), "out_features": 4, **fields})
    return Network(name="two", operators=(Input(name="x", shape=(6, 4)), first, second))


def test_what_is_said_is_checked() -> None:
    assert two(weights_of="a").parameters == 16
    assert two(weights_of="a", bias=True, own_bias=True).parameters == 16 + 4
    for fields, said in (
        ({"weights_of": "b"}, "weights_of 'b' is no earlier convolution or product with constant weights"),
        ({"weights_of": "x"}, "weights_of 'x' is no earlier"),
        ({"weights_of": "c"}, "weights_of 'c' is no earlier"),
        ({"weights_of": "a", "out_features": 3, "shape": (6, 3)}, "has 16 weights, here are 12"),
        ({"weights_of": "a", "bias": True}, "has no biases: say own_bias"),
        ({"bias": True, "own_bias": True}, "own_bias is for biases beside weights_of"),
        ({"weights_of": "a", "inputs": ("a", "x"), "out_features": None}, "a matmul of two inputs has no constant"),
    ):
        with pytest.raises(ValidationError, match=said):
            two(**fields)


def test_a_network_without_shared_weights_is_written_as_before() -> None:
    assert not {"weights_of", "own_bias", "zeros"} & set(str(two().model_dump()).replace("'", " ").split())


def test_layers_know_the_first_reader_of_their_weights() -> None:
    """Constant weights by their operator, right operands of products of two inputs by the map, however it is moved."""
    made: list[Operator] = [
        Input(name="x", shape=(4, 4)), Input(name="r", shape=(4, 4)),
        MatMul(name="a", inputs=("x",), shape=(4, 4), out_features=4),
        MatMul(name="b", inputs=("a", "r"), shape=(4, 4)),
        MatMul(name="c", inputs=("b",), shape=(4, 4), out_features=4, weights_of="a"),
        MatMul(name="d", inputs=("c", "r"), shape=(4, 4), transpose_b=True),
        MatMul(name="e", inputs=("d",), shape=(4, 4), out_features=4, weights_of="c"),
        MatMul(name="f", inputs=("e", "a"), shape=(4, 4)), MatMul(name="g", inputs=("f", "c"), shape=(4, 4)),
    ]  # fmt: skip
    # a and c have the same weights, but are two maps: f and g read unlike operands
    assert stores(Network(name="n", operators=tuple(made))).weights_of == (0, 1, 0, 1, 0, 5, 6)


# ---- Constants that are no weights: what of a file is read as an operand, and what layers take into weigh


def network(tmp_path: Path, shape: tuple[int, ...], nodes: list[tuple[str, list[str]]], **constants: object) -> Network:
    """A chain of nodes from x on; `prev` is the result before."""
    made, last = [], "x"
    for k, (op, inputs) in enumerate(nodes):
        given = [last if name == "prev" else name for name in inputs]
        made.append(helper.make_node(op, given, [f"t{k}"], name=f"n{k}"))
        last = f"t{k}"
    path = tmp_path / "m.onnx"
    onnx.save(model_of(made, {"x": shape}, [last], constants), path)
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
    apart = network(tmp_path, (1, 4, 5, 5), [("Conv", ["prev", "w"]), ("Div", ["k", "prev"])], w=zeros(8, 4, 1, 1),
                    k=channels)  # fmt: skip
    assert [layer.inputs for layer in apart.layers] == [1, 2]  # numbers that are divided by a map are read
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
