"""Small models of the kinds that people deploy, with random weights, as torch and onnxruntime's quantiser write them.

`MODELS` has a maker for each; maps are so small that a plan of any problem takes a second or so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
Shape = Sequence[int | str]


def model_of(
    nodes: Sequence[onnx.NodeProto], inputs: Mapping[str, Shape] | Sequence[onnx.ValueInfoProto],
    results: Sequence[str] = (), held: Mapping[str, object] | Sequence[onnx.TensorProto] = (), *, opset: int = 17,
    ir: int = 8, domain: str = "", kind: int = FLOAT,
) -> onnx.ModelProto:  # fmt: skip
    """A model of nodes: shapes of its inputs and values of its constants by name; results: of the last node."""
    info = helper.make_tensor_value_info
    given = [info(name, kind, shape) for name, shape in inputs.items()] if isinstance(inputs, Mapping) else inputs
    made = [info(name, kind, None) for name in results or nodes[-1].output]
    constants = (
        [numpy_helper.from_array(np.asarray(x), k) for k, x in held.items()] if isinstance(held, Mapping) else held
    )
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(helper.make_graph(nodes, "g", given, made, constants), opset_imports=opsets, ir_version=ir)


class Net:
    """A graph that grows: every call adds a node and returns its result."""

    def __init__(self, opset: int = 17, seed: int = 5) -> None:
        self.opset, self.rng = opset, np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []

    def input(self, *shape: int | str, name: str = "x", kind: int = FLOAT) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        return name

    def const(self, value: object, kind: type = np.int64) -> str:
        self.tensors.append(numpy_helper.from_array(np.asarray(value, kind), f"c{len(self.tensors)}"))
        return self.tensors[-1].name

    def weight(self, *shape: int) -> str:
        spread = 1 / np.sqrt(max(1, np.prod(shape[1:])))
        return self.const(self.rng.normal(scale=spread, size=shape), np.float32)

    def many(self, op: str, results: int, *inputs: str, domain: str = "", **attributes: object) -> list[str]:
        names = [f"t{len(self.nodes)}_{k}" for k in range(results)]
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, names, name, domain=domain, **attributes))
        return names

    def __call__(self, op: str, *inputs: str, **attributes: object) -> str:
        return self.many(op, 1, *inputs, **attributes)[0]

    def model(self, *results: str, domain: str = "", shape: Shape | None = None) -> onnx.ModelProto:
        """The model; `shape` of its result where shape inference does not know it."""
        outputs = [helper.make_tensor_value_info(name, FLOAT, shape) for name in results]
        graph = helper.make_graph(self.nodes, "made", self.inputs, outputs, self.tensors)
        opsets = [helper.make_opsetid("", self.opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
        made = helper.make_model(graph, opset_imports=opsets, ir_version=8 if self.opset < 21 else 10)
        for info in shape_inference.infer_shapes(made, data_prop=True).graph.output if shape is None else ():
            next(o for o in made.graph.output if o.name == info.name).CopyFrom(info)
        return made

    # ---- blocks ----------------------------------------------------------------------------------------------------

    def conv(
        self, x: str, given: int, made: int, k: int = 1, s: int = 1, g: int = 1, act: str = "Relu", **more: object
    ) -> str:
        """A convolution with a bias, padded so that only the stride makes the map smaller, and a function."""
        fields = {"pads": [k // 2] * 4, "strides": [s, s], "group": g, "kernel_shape": [k, k], **more}
        y = self("Conv", x, self.weight(made, given // g, k, k), self.weight(made), **fields)
        return self.act(y, act)

    def act(self, x: str, act: str) -> str:
        if act == "SiLU":
            return self("Mul", x, self("Sigmoid", x))
        if act == "Gelu":
            half = self("Erf", self("Div", x, self.const(np.sqrt(2), np.float32)))
            both = self("Mul", x, self("Add", half, self.const(1, np.float32)))
            return self("Mul", both, self.const(0.5, np.float32))
        if act == "Clip":
            return self("Clip", x, self.const(0, np.float32), self.const(6, np.float32))
        return self(act, x) if act else x

    def norm(self, x: str, channels: int) -> str:
        some = [self.weight(channels), self.weight(channels), self.weight(channels)]
        return self("BatchNormalization", x, *some, self.const(np.ones(channels), np.float32))

    def fc(self, x: str, given: int, made: int) -> str:
        return self("Gemm", x, self.weight(made, given), self.weight(made), transB=1)

    def head(self, x: str, channels: int, classes: int = 5) -> str:
        return self.fc(self("Flatten", self("GlobalAveragePool", x)), channels, classes)

    def gate(self, x: str, channels: int, act: str = "Sigmoid") -> str:
        """Squeeze and excite."""
        y = self.conv(self("GlobalAveragePool", x), channels, 2)
        return self("Mul", x, self.conv(y, 2, channels, act=act))

    def linear(self, x: str, given: int, made: int) -> str:
        """A product with constant weights, as torch exports it of tokens."""
        return self("Add", self("MatMul", x, self.weight(given, made)), self.weight(made))

    def layer_norm(self, x: str, features: int) -> str:
        """As exporters before opset 17 spell it."""
        centred = self("Sub", x, self("ReduceMean", x, axes=[-1]))
        squares = self("ReduceMean", self("Pow", centred, self.const(2, np.float32)), axes=[-1])
        deviation = self("Sqrt", self("Add", squares, self.const(1e-5, np.float32)))
        scaled = self("Mul", self("Div", centred, deviation), self.weight(features))
        return self("Add", scaled, self.weight(features))

    def heads(self, x: str, tokens: int, features: int, number: int, order: Sequence[int]) -> str:
        y = self("Reshape", self.linear(x, features, features), self.const([1, tokens, number, features // number]))
        return self("Transpose", y, perm=order)

    def attention(self, x: str, tokens: int, features: int, number: int = 2) -> str:
        q = self.heads(x, tokens, features, number, (0, 2, 1, 3))
        k = self.heads(x, tokens, features, number, (0, 2, 3, 1))
        v = self.heads(x, tokens, features, number, (0, 2, 1, 3))
        scores = self("Div", self("MatMul", q, k), self.const(np.sqrt(features / number), np.float32))
        mixed = self("Transpose", self("MatMul", self("Softmax", scores, axis=-1), v), perm=(0, 2, 1, 3))
        return self.linear(self("Reshape", mixed, self.const([1, tokens, features])), features, features)

    def upsample(self, x: str, mode: str = "nearest", how: str = "asymmetric", times: float = 2) -> str:
        scales = self.const([1, 1, times, times], np.float32)
        more = {"nearest_mode": "floor"} if mode == "nearest" else {}
        return self("Resize", x, "", scales, mode=mode, coordinate_transformation_mode=how, **more)

    def pool(self, x: str, k: int = 2, s: int = 2, p: int = 0, op: str = "MaxPool") -> str:
        return self(op, x, kernel_shape=[k, k], strides=[s, s], pads=[p] * 4)

    def concat(self, *parts: str, axis: int = 1) -> str:
        return self("Concat", *parts, axis=axis)


# --- classifiers ------------------------------------------------------------------------------------------------------


def lenet() -> onnx.ModelProto:
    n = Net()
    x = n.pool(n.conv(n.input(1, 1, 16, 16), 1, 4, 5))
    x = n("Flatten", n.pool(n.conv(x, 4, 8, 5)))
    return n.model(n.fc(n("Relu", n.fc(x, 128, 16)), 16, 10))


def alexnet() -> onnx.ModelProto:
    n = Net()
    x = n.pool(n.conv(n.input(1, 3, 33, 33), 3, 8, 5, 2), 3, 2)
    x = n("LRN", n.conv(x, 8, 8, 3, g=2), size=3)
    return n.model(n("Softmax", n.head(n.pool(x, 3, 2), 8), axis=1))


def vgg() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.conv(n.input(1, 3, 16, 16), 3, 8, 3), 8, 8, 3)
    x = n.conv(n.conv(n.pool(x), 8, 16, 3), 16, 16, 3)
    return n.model(n.fc(n("Flatten", n.pool(x)), 256, 10))


def resnet() -> onnx.ModelProto:
    n = Net()
    x = n.pool(n.conv(n.input(1, 3, 32, 32), 3, 8, 7, 2), 3, 2, 1)
    y = n.conv(n.conv(x, 8, 8, 3), 8, 8, 3, act="")
    x = n("Relu", n("Add", y, x))
    y = n.conv(n.conv(x, 8, 16, 3, 2), 16, 16, 3, act="")
    x = n("Relu", n("Add", y, n.conv(x, 8, 16, 1, 2, act="")))
    return n.model(n.head(x, 16))


def bottleneck() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 16, 8, 8)
    y = n("Relu", n.norm(n.conv(x, 16, 4, act=""), 4))
    y = n("Relu", n.norm(n.conv(y, 4, 4, 3, act=""), 4))
    x = n("Relu", n("Add", n.norm(n.conv(y, 4, 16, act=""), 16), x))
    return n.model(n.head(x, 16))


def preact_resnet() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.input(1, 3, 12, 12), 3, 8, 3, act="")
    y = n.conv(n("Relu", n.norm(x, 8)), 8, 8, 3, act="")
    y = n.conv(n("Relu", n.norm(y, 8)), 8, 8, 3, act="")
    return n.model(n.head(n("Relu", n("Add", x, y)), 8))


def mobilenet_v1() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.input(1, 3, 16, 16), 3, 8, 3, 2, act="Clip")
    for given, made, s in ((8, 16, 1), (16, 16, 2)):
        x = n.conv(n.conv(x, given, given, 3, s, given, "Clip"), given, made, act="Clip")
    return n.model(n.head(x, 16))


def mobilenet_v2() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.input(1, 3, 16, 16), 3, 8, 3, 2, act="Clip")
    for _ in range(2):
        y = n.conv(n.conv(x, 8, 24, act="Clip"), 24, 24, 3, g=24, act="Clip")
        x = n("Add", n.conv(y, 24, 8, act=""), x)
    return n.model(n.head(x, 8))


def mobilenet_v3() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.input(1, 3, 16, 16), 3, 8, 3, 2, act="HardSwish")
    y = n.conv(n.conv(x, 8, 16, act="HardSwish"), 16, 16, 5, g=16, act="HardSwish")
    y = n("Mul", y, n("HardSigmoid", n.conv(n.conv(n("GlobalAveragePool", y), 16, 4), 4, 16, act=""), alpha=1 / 6))
    return n.model(n.head(n("Add", x, n.conv(y, 16, 8, act="")), 8))


def efficientnet() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.input(1, 3, 16, 16), 3, 8, 3, 2, act="SiLU")
    y = n.gate(n.conv(n.conv(x, 8, 16, act="SiLU"), 16, 16, 3, g=16, act="SiLU"), 16)
    return n.model(n.head(n.conv(n("Add", n.conv(y, 16, 8, act=""), x), 8, 16, act="SiLU"), 16))


def squeezenet() -> onnx.ModelProto:
    n = Net()
    x = n.pool(n.conv(n.input(1, 3, 21, 21), 3, 8, 3, 2), 3)
    for given in (8, 16):
        y = n.conv(x, given, 4)
        x = n.concat(n.conv(y, 4, 8), n.conv(y, 4, 8, 3))
    return n.model(n("Flatten", n("GlobalAveragePool", n.conv(x, 16, 5))))


def densenet() -> onnx.ModelProto:
    n = Net()
    x, channels = n.conv(n.input(1, 3, 12, 12), 3, 8, 3), 8
    for _ in range(3):
        x, channels = n.concat(x, n.conv(n("Relu", n.norm(x, channels)), channels, 4, 3, act="")), channels + 4
    return n.model(n.head(n.pool(n.conv(x, 20, 8), op="AveragePool"), 8))


def shufflenet() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.input(1, 3, 16, 16), 3, 8, 3, 2)
    a, b = n.many("Split", 2, x, n.const([4, 4]), axis=1)
    b = n.conv(n.conv(n.conv(b, 4, 4), 4, 4, 3, g=4, act=""), 4, 4)
    x = n("Reshape", n.concat(a, b), n.const([1, 2, 4, 8, 8]))
    x = n("Reshape", n("Transpose", x, perm=(0, 2, 1, 3, 4)), n.const([1, 8, 8, 8]))
    return n.model(n.head(n.conv(x, 8, 16), 16))


def inception() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.input(1, 3, 12, 12), 3, 8, 3)
    parts = [n.conv(x, 8, 4), n.conv(n.conv(x, 8, 4), 4, 6, 3), n.conv(n.conv(x, 8, 2), 2, 4, 5)]
    return n.model(n.head(n.concat(*parts, n.conv(n.pool(x, 3, 1, 1), 8, 2)), 16))


def ghostnet() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.input(1, 3, 16, 16), 3, 8, 3, 2)
    y = n.conv(x, 8, 4)
    y = n.concat(y, n.conv(y, 4, 4, 3, g=4))
    return n.model(n.head(n("Add", x, y), 8))


def res2net() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.input(1, 3, 10, 10), 3, 12, 3)
    a, b, c = n.many("Split", 3, n.conv(x, 12, 12), n.const([4, 4, 4]), axis=1)
    b = n.conv(b, 4, 4, 3)
    c = n.conv(n("Add", b, c), 4, 4, 3)
    return n.model(n.head(n("Add", n.conv(n.concat(a, b, c), 12, 12, act=""), x), 12))


def squeeze_excite() -> onnx.ModelProto:
    n = Net()
    return n.model(n.gate(n.conv(n.input(1, 3, 16, 16), 3, 8, 3), 8))


# --- detection --------------------------------------------------------------------------------------------------------


def yolo_neck(mode: str = "nearest", how: str = "asymmetric") -> onnx.ModelProto:
    n = Net()
    fine = n.conv(n.input(1, 3, 16, 16), 3, 8, 3, 2, act="SiLU")
    deep = n.conv(fine, 8, 16, 3, 2, act="SiLU")
    x = n.conv(n.concat(n.upsample(n.conv(deep, 16, 8, act="SiLU"), mode, how), fine), 16, 8, 3, act="SiLU")
    y = n.conv(n.concat(n.conv(x, 8, 8, 3, 2, act="SiLU"), deep), 24, 8, act="SiLU")
    return n.model(n.conv(x, 8, 6, act=""), n.conv(y, 8, 6, act=""))


def yolo_v8() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.input(1, 3, 16, 16), 3, 8, 3, 2, act="SiLU")
    a, b = n.many("Split", 2, n.conv(x, 8, 8, act="SiLU"), n.const([4, 4]), axis=1)
    c = n("Add", n.conv(n.conv(b, 4, 4, 3, act="SiLU"), 4, 4, 3, act="SiLU"), b)
    x = n.conv(n.concat(a, b, c), 12, 8, act="SiLU")
    pooled = [n.conv(x, 8, 4, act="SiLU")]
    for _ in range(3):
        pooled.append(n.pool(pooled[-1], 5, 1, 2))
    return n.model(n.conv(n.concat(*pooled), 16, 8, act="SiLU"))


def yolo_head() -> onnx.ModelProto:
    """Boxes of two levels as rows, with an anchor grid of constants."""
    n = Net()
    one = n.conv(n.input(1, 4, 8, 8), 4, 8, 3, act="SiLU")
    two = n.conv(one, 8, 8, 3, 2, act="SiLU")
    rows = [n("Reshape", n.conv(x, 8, 6, act=""), n.const([1, 6, -1])) for x in (one, two)]
    boxes = n("Transpose", n("Sigmoid", n.concat(*rows, axis=2)), perm=(0, 2, 1))
    return n.model(n("Mul", n("Add", boxes, n.weight(1, 80, 6)), n.weight(1, 80, 1)))


def fpn() -> onnx.ModelProto:
    """The heads are applied to all levels with the same weights."""
    n = Net()
    one = n.conv(n.input(1, 3, 16, 16), 3, 8, 3)
    two = n.conv(one, 8, 8, 3, 2)
    deep = n.conv(two, 8, 8)
    both = n("Add", n.conv(one, 8, 8), n.upsample(deep))
    w, b = n.weight(6, 8, 3, 3), n.weight(6)
    return n.model(*(n("Conv", x, w, b, pads=[1] * 4, kernel_shape=[3, 3]) for x in (both, deep)))


def ssd() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.input(1, 3, 16, 16), 3, 8, 3, 2)
    y = n.conv(x, 8, 8, 3, 2)
    flat = [n("Flatten", n("Transpose", n.conv(z, 8, 4, 3, act=""), perm=(0, 2, 3, 1))) for z in (x, y)]
    return n.model(n.concat(*flat))


def blazeface() -> onnx.ModelProto:
    """A residual whose skip is pooled and gets channels of zeros."""
    n = Net()
    x = n.conv(n.input(1, 3, 16, 16), 3, 8, 5, 2)
    y = n.conv(n.conv(x, 8, 8, 3, 2, 8, ""), 8, 12, act="")
    skip = n("Pad", n.pool(x), n.const([0, 0, 0, 0, 0, 4, 0, 0]))
    x = n("Relu", n("Add", y, skip))
    return n.model(n.conv(x, 12, 2, act=""), n.conv(x, 12, 16, act=""))


# --- maps out of maps -------------------------------------------------------------------------------------------------


def unet(up: str) -> onnx.ModelProto:
    n = Net()
    one = n.conv(n.input(1, 3, 16, 16), 3, 8, 3)
    deep = n.conv(n.pool(one), 8, 16, 3)
    if up == "transposed":
        big = n("ConvTranspose", deep, n.weight(16, 8, 2, 2), n.weight(8), kernel_shape=[2, 2], strides=[2, 2])
    else:
        mode, how = up.split(" ")
        big = n.conv(n.upsample(deep, mode, how), 16, 8)
    return n.model(n.conv(n.conv(n.concat(big, one), 16, 8, 3), 8, 2, act=""))


def segmenter() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.conv(n.input(1, 3, 16, 16), 3, 8, 3, 2), 8, 8, 3, 2)
    fields = {"kernel_shape": [4, 4], "strides": [2, 2], "pads": [1] * 4}
    x = n("Relu", n("ConvTranspose", x, n.weight(8, 8, 4, 4), n.weight(8), **fields))
    return n.model(n("ConvTranspose", x, n.weight(8, 2, 4, 4), n.weight(2), **fields))


def autoencoder() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.conv(n.input(1, 1, 16, 16), 1, 4, 3, 2), 4, 8, 3, 2)
    fields = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}
    x = n("Relu", n("ConvTranspose", x, n.weight(8, 4, 3, 3), n.weight(4), **fields))
    return n.model(n("Sigmoid", n("ConvTranspose", x, n.weight(4, 1, 3, 3), n.weight(1), **fields)))


def espcn() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.conv(n.input(1, 1, 12, 12), 1, 8, 5, act="Tanh"), 8, 4, 3, act="")
    return n.model(n("DepthToSpace", x, blocksize=2, mode="CRD"))


def deeplab() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.input(1, 3, 12, 12), 3, 8, 3)
    parts = [n.conv(x, 8, 4)] + [n.conv(x, 8, 4, 3, dilations=[d, d], pads=[d] * 4) for d in (2, 3)]
    return n.model(n.conv(n.concat(*parts), 12, 3, act=""))


# --- sound ------------------------------------------------------------------------------------------------------------


def ds_cnn() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 1, 25, 10)
    x = n("Relu", n("Conv", x, n.weight(8, 1, 10, 4), n.weight(8), strides=[2, 2], pads=[4, 1, 5, 1]))
    for _ in range(2):
        x = n.conv(n.conv(x, 8, 8, 3, g=8), 8, 8)
    return n.model(n("Softmax", n.head(x, 8), axis=1))


def wake_word(cell: str, direction: str = "forward") -> onnx.ModelProto:
    """A convolution, its columns as steps, a recurrent cell, a product of the last state."""
    n = Net()
    x = n.conv(n.input(1, 1, 8, 6), 1, 4, 3, 1)
    x = n("Reshape", n("Transpose", x, perm=(3, 0, 1, 2)), n.const([6, 1, 32]))
    gates, lanes = {"LSTM": 4, "GRU": 3, "RNN": 1}[cell], 2 if direction == "bidirectional" else 1
    weights = [n.weight(lanes, gates * 8, 32), n.weight(lanes, gates * 8, 8), n.weight(lanes, 2 * gates * 8)]
    more = {"linear_before_reset": 1} if cell == "GRU" else {}
    _, last = n.many(cell, 2, x, *weights, hidden_size=8, direction=direction, **more)
    last = n("Reshape", n("Transpose", last, perm=(1, 0, 2)), n.const([1, 8 * lanes]))
    return n.model(n.fc(last, 8 * lanes, 3))


def tcn() -> onnx.ModelProto:
    n = Net()
    x, given = n.input(1, 4, 20), 4
    for d in (1, 2, 4):
        y = n("Conv", x, n.weight(8, given, 3), n.weight(8), dilations=[d], pads=[2 * d, 0], kernel_shape=[3])
        x, given = n("Relu", y), 8
    return n.model(n("Conv", x, n.weight(2, 8, 1), n.weight(2), kernel_shape=[1]))


def anomaly() -> onnx.ModelProto:
    n = Net()
    x, sizes = n.input(1, 40), (40, 16, 16, 4, 16, 40)
    for given, made in pairwise(sizes):
        x = n.fc(x, given, made)
        x = x if made == 40 else n("Relu", x)
    return n.model(x)


# --- tokens -----------------------------------------------------------------------------------------------------------


def encoder(norm: str = "LayerNormalization") -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 6, 16)
    normed = (lambda y: n(norm, y, n.weight(16), n.weight(16))) if norm else (lambda y: n.layer_norm(y, 16))
    x = normed(n("Add", x, n.attention(x, 6, 16)))
    y = n.linear(n("Relu", n.linear(x, 16, 32)), 32, 16)
    return n.model(normed(n("Add", x, y)))


def vit() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.input(1, 3, 16, 16), 3, 16, 4, act="", pads=[0] * 4, strides=[4, 4])
    x = n("Transpose", n("Reshape", x, n.const([1, 16, 16])), perm=(0, 2, 1))
    x = n("Add", n.concat(n.weight(1, 1, 16), x), n.weight(1, 17, 16))
    x = n("Add", x, n.attention(n("LayerNormalization", x, n.weight(16), n.weight(16)), 17, 16))
    y = n("LayerNormalization", x, n.weight(16), n.weight(16))
    x = n("Add", x, n.linear(n.act(n.linear(y, 16, 32), "Gelu"), 32, 16))
    return n.model(n.fc(n("Gather", x, n.const(0), axis=1), 16, 5))


def mixer() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 9, 16)
    y = n("Transpose", n("LayerNormalization", x, n.weight(16), n.weight(16)), perm=(0, 2, 1))
    x = n("Add", x, n("Transpose", n.linear(n.act(n.linear(y, 9, 12), "Gelu"), 12, 9), perm=(0, 2, 1)))
    return n.model(n("ReduceMean", n("Add", x, n.linear(n("Relu", n.linear(x, 16, 32)), 32, 16)), axes=[1], keepdims=0))


def convnext() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.input(1, 3, 16, 16), 3, 8, 4, act="", pads=[0] * 4, strides=[4, 4])
    y = n("Transpose", n.conv(x, 8, 8, 7, g=8, act=""), perm=(0, 2, 3, 1))
    y = n("LayerNormalization", y, n.weight(8), n.weight(8))
    y = n.linear(n.act(n.linear(y, 8, 16), "Gelu"), 16, 8)
    return n.model(n.head(n("Add", x, n("Transpose", n("Mul", y, n.weight(8)), perm=(0, 3, 1, 2))), 8))


def masked_attention() -> onnx.ModelProto:
    """Queries of one sequence, keys and values of another; scores with a mask of tokens by tokens."""
    n = Net()
    x, seen = n.input(1, 4, 8), n.input(1, 6, 8, name="seen")
    mask = n.input(1, 4, 6, name="mask")
    keys = n("Transpose", n.linear(seen, 8, 8), perm=(0, 2, 1))
    scores = n("Add", n("MatMul", n.linear(x, 8, 8), keys), mask)
    return n.model(n("MatMul", n("Softmax", scores, axis=-1), n.linear(seen, 8, 8)))


# --- reductions, branches, loops --------------------------------------------------------------------------------------


def reductions() -> onnx.ModelProto:
    """Channels are divided by their length, rows summed, the largest kept."""
    n = Net()
    x = n.conv(n.input(1, 3, 8, 8), 3, 8, 3)
    length = n("ReduceL2", x, axes=[1])
    x = n.conv(n("Div", x, n("Add", length, n.const(1e-3, np.float32))), 8, 8)
    rows = n("ReduceSum", x, n.const([2]), keepdims=0)
    return n.model(n("ReduceMax", rows, axes=[2], keepdims=0))


def branch(size: int = 8) -> onnx.ModelProto:
    """A map with more than 6 rows is pooled before the last convolution, another is not."""
    n = Net()
    x = n.conv(n.input(1, 3, size, size), 3, 8, 3)
    rows = n("Gather", n("Shape", x), n.const(2))
    large = n("Greater", rows, n.const(6))
    pooled = helper.make_node("MaxPool", [x], ["pooled"], kernel_shape=[2, 2], strides=[2, 2])
    same = helper.make_node("Identity", [x], ["same"])
    graphs = [
        helper.make_graph([node], name, [], [helper.make_tensor_value_info(node.output[0], FLOAT, [1, 8, None, None])])
        for node, name in ((pooled, "then"), (same, "else"))
    ]
    return n.model(n.conv(n("If", large, then_branch=graphs[0], else_branch=graphs[1]), 8, 4), shape=[1, 4, "h", "w"])


def loop(times: int = 3) -> onnx.ModelProto:
    """The same layer some times over, its weights from outside of the loop."""
    n = Net()
    x, w = n.input(1, 16), n.weight(16, 16)
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["h", w], ["product"]), helper.make_node("Tanh", ["product"], ["h_out"]),
            helper.make_node("Identity", ["go"], ["go_out"]),
        ],
        "body",
        [helper.make_tensor_value_info(name, kind, []) for name, kind in (("i", INT64), ("go", TensorProto.BOOL))]
        + [helper.make_tensor_value_info("h", FLOAT, [1, 16])],
        [helper.make_tensor_value_info("go_out", TensorProto.BOOL, []),
         helper.make_tensor_value_info("h_out", FLOAT, [1, 16])],
    )  # fmt: skip
    y = n("Loop", n.const(times), "", n.fc(x, 16, 16), body=body)
    return n.model(n.fc(y, 16, 4), shape=[1, 4])


# --- quantised --------------------------------------------------------------------------------------------------------


def quantised() -> onnx.ModelProto:
    """QDQ as onnxruntime's static quantiser writes it: activations uint8, weights int8 by channel."""
    n = Net()

    def activation(x: str, scale: float) -> str:
        grid = n.const(scale, np.float32), n.const(128, np.uint8)
        return n("DequantizeLinear", n("QuantizeLinear", x, *grid), *grid)

    def conv(x: str, given: int, made: int, k: int) -> str:
        scales = n.const(n.rng.uniform(0.002, 0.01, made), np.float32)
        w = n.const(n.rng.integers(-127, 128, (made, given, k, k)), np.int8)
        w = n("DequantizeLinear", w, scales, n.const(np.zeros(made), np.int8), axis=0)
        return n("Conv", x, w, kernel_shape=[k, k], pads=[k // 2] * 4)

    x = activation(n.input(1, 3, 8, 8), 0.02)
    x = activation(n("Relu", conv(x, 3, 8, 3)), 0.03)
    y = activation(conv(x, 8, 8, 3), 0.05)
    return n.model(activation(conv(activation(n("Add", x, y), 0.06), 8, 4, 1), 0.1))


def dynamic_matmul() -> onnx.ModelProto:
    """Two products as onnxruntime's dynamic quantiser writes them."""
    n = Net()
    x = n.input(4, 16)
    for given, made in ((16, 12), (12, 5)):
        q, scale, zero = n.many("DynamicQuantizeLinear", 3, x)
        w = n.const(n.rng.integers(-127, 128, (given, made)), np.int8)
        product = n("Cast", n("MatMulInteger", q, w, zero, n.const(0, np.int8)), to=FLOAT)
        scaled = n("Mul", product, n("Mul", scale, n.const(0.01, np.float32)))
        x = n("Relu", n("Add", scaled, n.weight(made)))
    return n.model(x)


def dynamic_lstm() -> onnx.ModelProto:
    """onnxruntime's LSTM with weights of 8 bits: transposed, with a scale for each direction."""
    n = Net()
    x = n.input(5, 1, 8)
    weights = [n.const(n.rng.integers(-127, 128, shape), np.int8) for shape in ((1, 8, 24), (1, 6, 24))]
    grids = [n.const([0.01], np.float32), n.const([0], np.int8), n.const([0.01], np.float32), n.const([0], np.int8)]
    given = [x, *weights, n.weight(1, 48), "", "", "", "", *grids]
    y = n.many("DynamicQuantizeLSTM", 1, *given, domain="com.microsoft", hidden_size=6)[0]
    return n.model(n.linear(n("Squeeze", y, n.const([1, 2])), 6, 3), domain="com.microsoft", shape=[5, 3])


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    **{f.__name__: f for f in (
        lenet, alexnet, vgg, resnet, bottleneck, preact_resnet, mobilenet_v1, mobilenet_v2, mobilenet_v3, efficientnet,
        squeezenet, densenet, shufflenet, inception, ghostnet, res2net, squeeze_excite, yolo_v8, yolo_head, fpn, ssd,
        blazeface, segmenter, autoencoder, espcn, deeplab, ds_cnn, tcn, anomaly, vit, mixer, convnext, masked_attention,
        reductions, branch, loop, quantised, dynamic_matmul, dynamic_lstm,
    )},
    "yolo_neck_nearest": yolo_neck, "yolo_neck_linear": partial(yolo_neck, "linear", "half_pixel"),
    "unet_transposed": partial(unet, "transposed"), "unet_nearest": partial(unet, "nearest asymmetric"),
    "unet_linear": partial(unet, "linear half_pixel"), "unet_corners": partial(unet, "linear align_corners"),
    "wake_word_gru": partial(wake_word, "GRU"), "wake_word_lstm": partial(wake_word, "LSTM"),
    "wake_word_both_ways": partial(wake_word, "LSTM", "bidirectional"), "wake_word_rnn": partial(wake_word, "RNN"),
    "encoder": encoder, "encoder_decomposed": partial(encoder, ""),
}  # fmt: skip


def saved(name: str, folder: Path) -> Path:
    """Write a model into a folder."""
    path = folder / f"{name}.onnx"
    onnx.save(MODELS[name](), path)
    return path
