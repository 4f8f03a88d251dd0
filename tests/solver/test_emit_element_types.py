"""The lines that say why no C is written name the element types of the file, and every operator once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

from instances.load import load_machine, load_network
from instances.onnx.model import read_model
from solver.uses.emit.preflight import refusals

HELD = {
    "tab": np.ones((20, 8), np.float32), "w": np.ones((8, 8), np.float32), "w10": np.ones((10, 8), np.float32),
    "wq": np.ones((8, 8), np.uint8), "kq": np.ones((4, 4, 3, 3), np.uint8), "z": np.array(3, np.uint8),
    "s": np.ones(8, np.float32), "v": np.array([0, 1], np.float32), "d": np.array(10), "k": np.array([1]),
}  # fmt: skip
#: Inputs, results, body, and the refusals of C, without what they have in common.
CASES: dict[str, tuple[str, str, str, list[str]]] = {
    "embedding": (
        "int64[1,5] i", "float[1,5,8] y", "[g] e = Gather(tab, i) [m] y = MatMul(e, w)",
        ["operator g (Gather): its indices depend on the data"],
    ),
    "embedding of int32": (
        "int32[1,5] i", "float[1,5,8] y", "[g] e = Gather(tab, i) [m] y = MatMul(e, w)",
        ["operator g (Gather): its indices depend on the data"],
    ),
    "embedding and a function": (
        "int64[1,5] i", "float[1,5,8] y", "[g] e = Gather(tab, i) r = Relu(e) [m] y = MatMul(r, w)",
        ["operator g (Gather): its indices depend on the data"],
    ),
    "one-hot": (
        "int64[1,5] i", "float[1,5,8] y", "[g] e = OneHot<axis=-1>(i, d, v) [m] y = MatMul(e, w10)",
        ["operator g (OneHot): no conversion"],
    ),
    "elements by ids": (
        "int64[5,8] i", "float[5,8] y", "[g] e = GatherElements(tab, i) [m] y = MatMul(e, w)",
        ["operator g (GatherElements): indices that depend on the data"],
    ),
    "ids of elements": (
        "float[5,8] x", "int64[5] a, float[5,8] y", "[g] a = ArgMax<axis=1,keepdims=0>(x) [m] y = MatMul(x, w)",
        ["operator g (ArgMax): no conversion"],
    ),
    "both results of TopK": (
        "float[5,8] x", "float[5,1] a, int64[5,1] b", "[m] y = MatMul(x, w) [t] a, b = TopK(y, k)",
        ["operator t (TopK): no conversion"],
    ),
    "both results of a norm": (
        "float[5,8] x", "float[5,8] a, float[5,1] b",
        "[m] y = MatMul(x, w) [t] a, b = LayerNormalization(y, s)",
        ["operator t (LayerNormalization): its further outputs are used"],
    ),
    "three results of a norm": (
        "float[5,8] x", "float[5,8] a, float[5,1] b, float[5,1] c",
        "[m] y = MatMul(x, w) [t] a, b, c = LayerNormalization(y, s)",
        ["operator t (LayerNormalization): its further outputs are used"],
    ),
    "a pool with indices": (
        "float[1,4,8,8] x", "float[1,4,4,4] a, int64[1,4,4,4] b",
        "r = Relu(x) [c] q = MaxPool<kernel_shape=[1,1]>(r) [t] a, b = MaxPool<kernel_shape=[2,2],strides=[2,2]>(q)",
        ["operator t (MaxPool): its further outputs are used"],
    ),
    "two operators of two results": (
        "float[5,8] x", "float[5,1] a, int64[5,1] b, float[5,1] c, int64[5,1] e",
        "[m] y = MatMul(x, w) [t] a, b = TopK(y, k) [u] c, e = TopK<largest=0>(y, k)",
        ["operator t (TopK): no conversion", "operator u (TopK): no conversion"],
    ),
}  # fmt: skip


def saved(folder: Path, inputs: str, results: str, body: str) -> Path:
    """A model of opset 17 in the text form of ONNX, with the constants that it reads."""
    text = f'<ir_version: 8, opset_import: ["" : 17]> it ({inputs}) => ({results}) {{ {body} }}'
    model = onnx.parser.parse_model(text)
    read = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(numpy_helper.from_array(HELD[name], name) for name in HELD if name in read)
    onnx.save(model, folder / "it.onnx")
    return folder / "it.onnx"


@pytest.mark.parametrize("case", CASES)
def test_refusals_are_true_and_said_once(tmp_path: Path, case: str) -> None:
    """Nothing is said of layers whose maps are real numbers; an operator of several results has one line."""
    *parts, wanted = CASES[case]
    path = saved(tmp_path, *parts)
    settings = dict.fromkeys(("in_bytes", "w_bytes", "out_bytes", "psum_bytes"), "4")
    found = refusals(read_model(path), load_machine("scratchpad_768k", settings))
    assert [reason.removesuffix(": no C is written") for reason in found.always] == wanted
    network = load_network(str(path))
    assert len(network.warnings) == len(wanted)
    assert network.map_type == "float32"
    for reason in wanted:
        kind = reason.split("(")[1].split(")")[0]
        assert f"{kind} x{sum(f'({kind})' in one for one in wanted)} " in network.unplanned


@pytest.mark.parametrize(
    ("inputs", "body", "layer"),
    [
        ("uint8[1,4,6,6] x", "[c] y = ConvInteger(x, kq, z)", "c"),
        ("uint8[5,8] x", "[c] y = MatMulInteger(x, wq, z)", "c"),
        ("int8[5,8] x", "[c] y = MatMulInteger(x, wq)", "c"),
    ],
)  # fmt: skip
def test_sums_of_integers_are_called_so(tmp_path: Path, inputs: str, body: str, layer: str) -> None:
    """An integer product alone makes int32, though C would hold it as real numbers."""
    path = saved(tmp_path, inputs, f"int32[{'1,4,4,4' if 'Conv' in body else '5,8'}] y", body)
    settings = {"in_bytes": "1", "w_bytes": "1", "out_bytes": "1", "psum_bytes": "4"}
    found = refusals(read_model(path), load_machine("scratchpad_768k", settings))
    wanted = f"layer {layer}: its result is of int32, and out_bytes is 1: quantise it right behind the layer"
    assert [reason.removesuffix(": no C is written") for reason in found.always] == [wanted]
