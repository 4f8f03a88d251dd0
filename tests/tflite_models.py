"""Small TFLite files, written table by table: every operator that is read, and networks as they are exported."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import tflite

from instances.load import load_network
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, MatMul, Pool, Reshape

KINDS = {
    "float32": tflite.TensorType.FLOAT32, "float16": tflite.TensorType.FLOAT16, "int32": tflite.TensorType.INT32,
    "int64": tflite.TensorType.INT64, "uint8": tflite.TensorType.UINT8, "int8": tflite.TensorType.INT8,
    "int16": tflite.TensorType.INT16, "bool": tflite.TensorType.BOOL, "resource": tflite.TensorType.RESOURCE,
}  # fmt: skip
SAME, VALID = tflite.Padding.SAME, tflite.Padding.VALID
NONE, RELU, RELU6 = (getattr(tflite.ActivationFunctionType, name) for name in ("NONE", "RELU", "RELU6"))
#: Operator -> the table of its options, where the name does not say it.
OPTIONS = {
    "CONV_2D": "Conv2DOptions", "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions", "CONV_3D": "Conv3DOptions",
    "AVERAGE_POOL_2D": "Pool2DOptions", "MAX_POOL_2D": "Pool2DOptions", "L2_POOL_2D": "Pool2DOptions",
    "MEAN": "ReducerOptions", "SUM": "ReducerOptions", "REDUCE_MAX": "ReducerOptions", "REDUCE_MIN": "ReducerOptions",
    "REDUCE_PROD": "ReducerOptions", "L2_NORMALIZATION": "L2NormOptions", "BATCH_MATMUL": "BatchMatMulOptions",
    "LOCAL_RESPONSE_NORMALIZATION": "LocalResponseNormalizationOptions", "SVDF": "SVDFOptions",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTMOptions", "UNIDIRECTIONAL_SEQUENCE_RNN":
    "SequenceRNNOptions", "BIDIRECTIONAL_SEQUENCE_LSTM": "BidirectionalSequenceLSTMOptions",
    "BIDIRECTIONAL_SEQUENCE_RNN": "BidirectionalSequenceRNNOptions",
}  # fmt: skip
#: Operator -> the version that the interpreter has, if not the first one.
VERSIONS = {"BROADCAST_TO": 2, "FULLY_CONNECTED": 4, "ADD": 4, "BATCH_MATMUL": 2} | dict.fromkeys(
    ("CONV_2D", "DEPTHWISE_CONV_2D"), 3
)  # fmt: skip


class Net:
    """A subgraph that grows: `op` adds an operator with one result and returns the number of that."""

    def __init__(self, seed: int = 5) -> None:
        self.rng = np.random.default_rng(seed)
        self.tensors: list[dict[str, Any]] = []
        self.operators: list[dict[str, Any]] = []
        self.inputs: list[int] = []

    def tensor(
        self, shape: Sequence[int], kind: str = "float32", *, data: np.ndarray | None = None, name: str = "",
        scale: Sequence[float] = (), zero: Sequence[int] = (), axis: int = 0, variable: bool = False,
    ) -> int:  # fmt: skip
        self.tensors.append({
            "shape": [*shape], "kind": kind, "data": data, "name": name or f"t{len(self.tensors)}", "scale": [*scale],
            "zero": [*zero] or [0] * len(scale), "axis": axis, "variable": variable,
        })  # fmt: skip
        return len(self.tensors) - 1

    def input(self, *shape: int, kind: str = "float32", name: str = "x", scale: float = 0, zero: int = 0) -> int:
        self.inputs.append(
            self.tensor(shape, kind, name=name, scale=[scale] if scale else [], zero=[zero] if scale else [])
        )
        return self.inputs[-1]

    def const(self, value: object, kind: str = "int32", **more: Any) -> int:
        data = np.asarray(value, kind)
        return self.tensor(data.shape, kind, data=data, **more)

    def weight(self, *shape: int) -> int:
        spread = 1 / np.sqrt(max(1, np.prod(shape) / max(shape)))
        return self.const(self.rng.normal(scale=spread, size=shape), "float32")

    def shape(self, number: int) -> list[int]:
        return list(self.tensors[number]["shape"])

    def many(self, op: str, inputs: Sequence[int], outputs: Sequence[int], **options: Any) -> None:
        self.operators.append({"op": op, "inputs": [*inputs], "outputs": [*outputs], "options": options})

    def op(
        self, op: str, *inputs: int, shape: Sequence[int] | None = None, kind: str = "", scale: float = 0,
        zero: int = 0, **options: Any,
    ) -> int:  # fmt: skip
        """`shape`, `kind`: those of the first input, if not stated."""
        first = self.tensors[inputs[0]]
        made = self.tensor(
            first["shape"] if shape is None else shape, kind or first["kind"], scale=[scale] if scale else [],
            zero=[zero] if scale else [],
        )  # fmt: skip
        self.many(op, inputs, [made], **options)
        return made

    # ---- networks ----------------------------------------------------------------------------------------------------

    def conv(
        self, x: int, filters: int, kernel: int | tuple[int, int] = 1, *, stride: int = 1, padding: int = SAME,
        act: int = NONE, deep: bool = False, bias: bool = True, dilation: int = 1,
    ) -> int:  # fmt: skip
        """A convolution of real numbers, or of integers with a scale for every filter where its input has one."""
        batch, rows, columns, channels = self.shape(x)
        taps = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        shape = (1, *taps, filters) if deep else (filters, *taps, channels)
        made = [
            -(-n // stride) if padding == SAME else (n - (k - 1) * dilation - 1) // stride + 1
            for n, k in zip((rows, columns), taps, strict=True)
        ]
        reach = [(k - 1) * dilation + 1 for k in taps]
        weights = self.rng.normal(scale=(reach[0] * reach[1] * (1 if deep else channels)) ** -0.5, size=shape)
        options: dict[str, Any] = {
            "Padding": padding, "StrideH": stride, "StrideW": stride, "FusedActivationFunction": act,
            "DilationHFactor": dilation, "DilationWFactor": dilation, **({"DepthMultiplier": 1} if deep else {}),
        }  # fmt: skip
        op = "DEPTHWISE_CONV_2D" if deep else "CONV_2D"
        out = (batch, *made, filters)
        if not self.tensors[x]["scale"]:
            read = [x, self.const(weights, "float32"), *([self.weight(filters)] if bias else [])]
            return self.op(op, *read, shape=out, **options)
        return self._integers(op, x, weights, 3 if deep else 0, out, options)

    def dense(self, x: int, filters: int, *, act: int = NONE) -> int:
        channels = self.shape(x)[-1]
        rows = int(np.prod(self.shape(x))) // channels
        weights = self.rng.normal(scale=channels**-0.5, size=(filters, channels))
        options = {"FusedActivationFunction": act}
        if not self.tensors[x]["scale"]:
            read = x, self.const(weights, "float32"), self.weight(filters)
            return self.op("FULLY_CONNECTED", *read, shape=(rows, filters), **options)
        return self._integers("FULLY_CONNECTED", x, weights, None, (rows, filters), options)

    def _integers(
        self, op: str, x: int, weights: np.ndarray, axis: int | None, out: Sequence[int], options: dict[str, Any]
    ) -> int:  # fmt: skip
        kind = self.tensors[x]["kind"]
        axis = None if kind == "uint8" else axis  # one scale, as such files have
        others = None if axis is None else tuple(k for k in range(weights.ndim) if k != axis)
        scales = np.abs(weights).max(axis=others).reshape(-1) / 127
        spread = scales.reshape([-1 if k == axis else 1 for k in range(weights.ndim)])
        held = np.rint(weights / spread).astype(np.int8 if kind != "uint8" else np.int64)
        zero = 128 if kind == "uint8" else 0
        w = self.const(
            held + zero, "uint8" if kind == "uint8" else "int8", scale=scales.tolist(), zero=[zero] * len(scales),
            axis=axis or 0,
        )  # fmt: skip
        sums = scales * self.tensors[x]["scale"][0]
        biases = np.rint(self.rng.normal(scale=0.2, size=out[-1]) / sums)
        b = self.const(biases, "int64" if kind == "int16" else "int32", scale=sums.tolist())
        zero = {"int8": -7, "uint8": 121, "int16": 0}[kind]
        scale = 2e-4 if kind == "int16" else 0.05
        return self.op(op, x, w, b, shape=out, scale=scale, zero=zero, **options)


#: Scale and zero point of every map of `of_network`.
_MAPS = {"scale": 0.05, "zero": -7}


def of_network(network: Network) -> bytes:
    """A network of convolutions, sums, poolings and joined maps with random int8 weights, as TFLite's converter has it.

    Functions are fused into the layer before, pads that stride and window do not imply are an operator.
    """
    net, made = Net(), dict[str, int]()
    for one in network.operators:
        source = made[one.inputs[0]] if one.inputs else -1
        shape = [one.shape[k] for k in (0, 2, 3, 1)] if len(one.shape) == 4 else list(one.shape)
        if isinstance(one, Input):
            made[one.name] = net.input(*shape, kind="int8", name=one.name, **_MAPS)
        elif isinstance(one, Conv):
            made[one.name] = _convolved(net, one, source)
        elif isinstance(one, Pool):
            sizes = net.shape(source)[1:3] if one.fn == "global_avg" else one.kernel
            windows = dict(zip(("FilterHeight", "FilterWidth"), sizes, strict=True))
            steps = dict(zip(("StrideH", "StrideW"), one.stride, strict=True))
            kind = "MAX_POOL_2D" if one.fn == "max" else "AVERAGE_POOL_2D"
            valid = [(n - k) // s + 1 for n, k, s in zip(net.shape(source)[1:3], sizes, one.stride, strict=True)]
            padding = VALID if valid == shape[1:3] else SAME
            made[one.name] = net.op(kind, source, shape=shape, Padding=padding, **windows, **steps, **_MAPS)
        elif isinstance(one, Concat):
            made[one.name] = net.op("CONCATENATION", *(made[x] for x in one.inputs), shape=shape, Axis=3, **_MAPS)
        elif isinstance(one, MatMul):
            made[one.name] = net.dense(source, one.out_features)
        elif isinstance(one, Eltwise) and one.fn in ("relu", "relu6"):
            net.operators[-1]["options"]["FusedActivationFunction"] = RELU if one.fn == "relu" else RELU6
            made[one.name] = source
        elif isinstance(one, Eltwise) and one.fn == "add":
            made[one.name] = net.op("ADD", *(made[x] for x in one.inputs), shape=shape, **_MAPS)
        elif isinstance(one, Eltwise) and one.fn == "softmax":
            made[one.name] = net.op("SOFTMAX", source, shape=shape, scale=1 / 256, zero=-128, Beta=1.0)
        elif isinstance(one, Reshape) and one.fn == "reshape":
            made[one.name] = net.op("RESHAPE", source, net.const(shape), shape=shape, **_MAPS)
        else:
            raise NotImplementedError(one)
    return packed(net)


def ds_cnn() -> bytes:
    """Keyword spotting on 49 x 10 features as MLPerf Tiny has it (DS-CNN of Zhang et al., Hello Edge, 2017)."""
    net = Net()
    x = net.conv(net.input(1, 49, 10, 1, kind="int8", **_MAPS), 64, (10, 4), stride=2, act=RELU)
    for _ in range(4):
        x = net.conv(net.conv(x, 64, 3, deep=True, act=RELU), 64, act=RELU)
    sizes = {"FilterHeight": 25, "FilterWidth": 5, "StrideH": 25, "StrideW": 5}
    x = net.op("AVERAGE_POOL_2D", x, shape=(1, 1, 1, 64), Padding=VALID, **sizes, **_MAPS)
    x = net.dense(net.op("RESHAPE", x, net.const([1, 64]), shape=(1, 64), **_MAPS), 12)
    net.op("SOFTMAX", x, scale=1 / 256, zero=-128, Beta=1.0)
    return packed(net)


def _convolved(net: Net, one: Conv, x: int) -> int:
    """A convolution of `of_network`."""
    _, rows, columns, channels = net.shape(x)
    same = [
        max(0, (-(-n // s) - 1) * s + k - n) for n, s, k in zip((rows, columns), one.stride, one.kernel, strict=True)
    ]
    top, left, bottom, right = one.pad
    padding = VALID
    if [(top, bottom), (left, right)] == [(n // 2, n - n // 2) for n in same] and any(one.pad):
        padding = SAME
    elif any(one.pad):
        pads, shape = [[0, 0], [top, bottom], [left, right], [0, 0]], (1, rows + top + bottom, columns + left + right)
        x = net.op("PAD", x, net.const(pads), shape=(*shape, channels), **_MAPS)
    deep = one.groups > 1
    y = net.conv(x, one.filters, one.kernel[0], stride=one.stride[0], padding=padding, deep=deep)
    net.tensors[y].update(scale=[_MAPS["scale"]], zero=[_MAPS["zero"]])
    return y


def packed(*nets: Net, outputs: Sequence[int] = (), version: int = 3) -> bytes:
    """The bytes of a file: subgraphs, the first one with these results (of the last operator, if none is stated)."""
    builder = flatbuffers.Builder(1024)
    buffers = [_buffer(builder, None)]
    codes: list[str] = []
    graphs = []
    for net in nets:
        tensors = []
        for one in net.tensors:
            number = 0
            if one["data"] is not None:
                number = len(buffers)
                buffers.append(_buffer(builder, one["data"]))
            tensors.append(_tensor(builder, one, number))
        operators = []
        for one in net.operators:
            if one["op"] not in codes:
                codes.append(one["op"])
            operators.append(_operator(builder, one, codes.index(one["op"])))
        results = outputs if outputs and net is nets[0] else net.operators[-1]["outputs"] if net.operators else []
        fields = [
            ("Tensors", _offsets(builder, tensors)), ("Inputs", builder.CreateNumpyVector(_int32(net.inputs))),
            ("Outputs", builder.CreateNumpyVector(_int32(results))), ("Operators", _offsets(builder, operators)),
            ("Name", builder.CreateString("main")),
        ]  # fmt: skip
        graphs.append(_table(builder, "SubGraph", fields))
    made = []
    for code in codes:
        number = getattr(tflite.BuiltinOperator, code, tflite.BuiltinOperator.CUSTOM)
        custom = [("CustomCode", builder.CreateString(code))] if number == tflite.BuiltinOperator.CUSTOM else []
        fields = [
            ("DeprecatedBuiltinCode", min(number, 127)),
            ("BuiltinCode", number),
            ("Version", VERSIONS.get(code, 1)),
            *custom,
        ]
        made.append(_table(builder, "OperatorCode", fields))
    root = _table(builder, "Model", [
        ("Version", version), ("OperatorCodes", _offsets(builder, made)), ("Subgraphs", _offsets(builder, graphs)),
        ("Buffers", _offsets(builder, buffers)), ("Description", builder.CreateString("certile's tests")),
    ])  # fmt: skip
    builder.Finish(root, b"TFL3")
    return bytes(builder.Output())


def _int32(numbers: Sequence[int]) -> np.ndarray:
    return np.asarray(numbers, np.int32)


def _offsets(builder: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for one in reversed(offsets):
        builder.PrependUOffsetTRelative(one)
    return int(builder.EndVector())


def _table(builder: flatbuffers.Builder, name: str, fields: Sequence[tuple[str, Any]]) -> int:
    getattr(tflite, f"{name}Start")(builder)
    for field, value in fields:
        getattr(tflite, f"{name}Add{field}")(builder, value)
    return int(getattr(tflite, f"{name}End")(builder))


def _buffer(builder: flatbuffers.Builder, data: np.ndarray | None) -> int:
    if data is None:
        return _table(builder, "Buffer", [])
    raw = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
    return _table(builder, "Buffer", [("Data", builder.CreateNumpyVector(raw))])


def _tensor(builder: flatbuffers.Builder, one: dict[str, Any], buffer: int) -> int:
    fields = [
        ("Shape", builder.CreateNumpyVector(_int32(one["shape"]))), ("Type", KINDS[one["kind"]]), ("Buffer", buffer),
        ("Name", builder.CreateString(one["name"])), ("IsVariable", one["variable"]),
    ]  # fmt: skip
    if one["scale"]:
        stated = [
            ("Scale", builder.CreateNumpyVector(np.asarray(one["scale"], np.float32))),
            ("ZeroPoint", builder.CreateNumpyVector(np.asarray(one["zero"], np.int64))),
            ("QuantizedDimension", one["axis"]),
        ]  # fmt: skip
        fields.append(("Quantization", _table(builder, "QuantizationParameters", stated)))
    return _table(builder, "Tensor", fields)


def _operator(builder: flatbuffers.Builder, one: dict[str, Any], code: int) -> int:
    fields = [
        ("OpcodeIndex", code), ("Inputs", builder.CreateNumpyVector(_int32(one["inputs"]))),
        ("Outputs", builder.CreateNumpyVector(_int32(one["outputs"]))),
    ]  # fmt: skip
    name = OPTIONS.get(one["op"], "".join(part.capitalize() for part in one["op"].split("_")) + "Options")
    kind = getattr(tflite.BuiltinOptions, name, None)
    if kind is not None and hasattr(tflite, f"{name}Start"):
        given = [
            (field, builder.CreateString(value) if isinstance(value, str) else value)
            for field, value in one["options"].items()
        ]  # fmt: skip
        table = _table(builder, name, given)
        fields += [("BuiltinOptionsType", kind), ("BuiltinOptions", table)]
    return _table(builder, "Operator", fields)


def main(arguments: Sequence[str]) -> None:
    """Write int8 files with random weights: ``python -m tests.tflite_models NAME ... ``, bundled networks or ds_cnn."""
    for name in arguments:
        Path(f"{name}.tflite").write_bytes(ds_cnn() if name == "ds_cnn" else of_network(load_network(name)))


if __name__ == "__main__":
    main(sys.argv[1:])
