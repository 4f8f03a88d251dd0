"""MACs, weights and compulsory bytes counted a second time: over the nodes of ONNX files, and operators of the zoo."""

from __future__ import annotations

from math import prod
from pathlib import Path

import onnx
import pytest
from onnx import shape_inference

from formulations.compulsory import compulsory_bytes, weight_bytes
from instances.load import load_machine, load_network
from instances.network.operators import Conv, MatMul
from instances.network.stores import stores

DATA = Path(__file__).parent / "data" / "onnx"
#: Exports whose every shape onnx infers. Left out: Einsum, and detr, a part of which is made of constants alone.
FILES = sorted(
    path.name
    for kind in ("dynamo", "qdq")
    for path in DATA.glob(f"*_{kind}.onnx")
    if path.name[:4] not in ("eins", "detr")
)
#: Constants that are no weights: first states; biases by place and masks; the class's token and rows of positions.
CONSTANTS = {"rnn": 4 * 8, "swin": 512 + 2304, "vit": 8 + 17 * 8}
#: What holds its input between frames of zeros: what is read of it is not followed in all.
FRAMES = "r3d"
#: Nodes that leave the elements of a constant as they are.
SAME = frozenset("Cast DequantizeLinear Flatten Identity QuantizeLinear Reshape Squeeze Transpose Unsqueeze".split())


class File:
    """What a file computes, from its nodes alone; a weight is its initialiser, whatever is made of it on the way."""

    def __init__(self, path: Path) -> None:
        graph = shape_inference.infer_shapes(onnx.load(path, load_external_data=False), data_prop=True).graph
        infos = (*graph.input, *graph.value_info, *graph.output)
        self.shapes = {i.name: tuple(d.dim_value for d in i.type.tensor_type.shape.dim) for i in infos}
        self.shapes |= {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
        self.of = {tensor.name: tensor.name for tensor in graph.initializer}
        self.macs, self.weights = 0, dict[str, int]()
        given = {i.name for i in graph.input} - set(self.of)
        self.moved = sum(prod(self.shapes[name]) for name in (*given, *(o.name for o in graph.output)))
        for node in graph.node:
            self._node(node)

    def _node(self, node: onnx.NodeProto) -> None:
        inputs, out = list(node.input), self.shapes.get(node.output[0], ())
        if node.op_type == "Constant":
            value = next((a.t for a in node.attribute if a.name == "value"), None)
            if value is not None:
                self.of[node.output[0]], self.shapes[node.output[0]] = node.output[0], tuple(value.dims)
        elif node.op_type in SAME and inputs[0] in self.of:
            self.of[node.output[0]] = self.of[inputs[0]]
        elif node.op_type in ("Conv", "ConvTranspose"):
            seen = self.shapes[inputs[0]] if node.op_type == "ConvTranspose" else out
            self._add(prod(seen) * prod(self.shapes[inputs[1]][1:]), inputs[1])
        elif node.op_type in ("MatMul", "Gemm"):
            self._add(prod(out) * self.shapes[inputs[0]][-1], *inputs[:2])
        elif node.op_type in ("LSTM", "GRU", "RNN"):
            steps = prod(self.shapes[inputs[0]][:2])
            self._add(steps * sum(prod(self.shapes[name]) for name in inputs[1:3]), *inputs[1:3])

    def _add(self, macs: int, *weights: str) -> None:
        self.macs += macs
        self.weights |= {self.of[name]: prod(self.shapes[self.of[name]]) for name in weights if name in self.of}


@pytest.mark.parametrize("file", FILES)
def test_files_are_counted_alike(file: str) -> None:
    network, counted = load_network(str(DATA / file)), File(DATA / file)
    machine = load_machine("scratchpad_64k")  # a byte an element, biases for nothing
    assert network.macs == counted.macs
    found = stores(network)
    assert weight_bytes(found, machine) == sum(counted.weights.values())
    kind = file.split("_")[0]
    least = sum(counted.weights.values()) + counted.moved + CONSTANTS.get(kind, 0)
    must = compulsory_bytes(found, machine)
    assert must == least or (kind == FRAMES and must < least)


@pytest.mark.parametrize("name", ["lenet5", "squeezenet1_1", "mobilenet_v2", "resnet50", "inception_v3", "vgg16"])
def test_networks_of_the_zoo_are_counted_alike(name: str) -> None:
    network, machine = load_network(name), load_machine("scratchpad_64k")
    macs = weights = 0
    for operator in network.operators:
        if isinstance(operator, Conv):
            each = network.operator(operator.inputs[0]).shape[1] // operator.groups * prod(operator.kernel)
            macs, weights = macs + prod(operator.shape) * each, weights + operator.filters * each
        elif isinstance(operator, MatMul) and len(operator.inputs) == 1:
            inner = network.operator(operator.inputs[0]).shape[-1]
            macs, weights = macs + prod(operator.shape) * inner, weights + operator.shape[-1] * inner
    assert (network.macs, weight_bytes(stores(network), machine)) == (macs, weights)
