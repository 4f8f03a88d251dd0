"""Weights that several nodes of an ONNX file read are one tensor: it counts once, and operators say whose it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from pydantic import ValidationError

from instances.load import load_network
from instances.network.network import Network
from instances.network.operators import Conv, Input, MatMul, Operator
from instances.network.stores import stores

#: A node: operator, inputs, output, attributes.
Nodes = list[tuple[str, str, str, dict[str, object]]]


def read(folder: Path, x: tuple[int, ...], constants: dict[str, tuple[int, ...]], nodes: Nodes) -> Network:
    """A network of nodes; inputs are x and, of the same shape, z; constants whose names begin with "q" are int8."""
    held = [
        numpy_helper.from_array(np.ones(shape, np.int8 if name[0] == "q" else np.float32), name)
        for name, shape in constants.items()
    ]
    made = [helper.make_node(op, given.split(), [out], name=out, **more) for op, given, out, more in nodes]
    infos = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, x) for name in "xz"]
    read = {name for _, given, _, _ in nodes for name in given.split()}
    ends = [out for *_, out, _ in nodes if out not in read]
    results = [helper.make_tensor_value_info(out, onnx.TensorProto.FLOAT, None) for out in ends]
    graph = helper.make_graph(made, "g", infos, results, initializer=held)
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), folder / "one.onnx")
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
    "two tensors of equal numbers": (
        MAP, {**W4, "u": (4, 4, 1, 1)}, [("Conv", "x w", "a", {}), ("Conv", "a u", "b", {})], {}, 32,
    ),
    "transposed convolutions, phase by phase": (
        MAP, {"w": (4, 4, 4, 4)},
        [("ConvTranspose", f"{one} w", out, {"strides": [2, 2], "pads": [1, 1, 1, 1]}) for one, out in ("xa", "zb")],
        {f"b:phase{k}": f"a:phase{k}" for k in range(4)}, 256,
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
