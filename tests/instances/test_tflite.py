"""TFLite files: every operator against TFLite's interpreter, counts made a second way, files that are damaged."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import pytest
import tflite

from formulations.compulsory import input_bytes, result_bytes, weight_bytes
from instances.errors import InputError
from instances.load import load_machine, load_network
from instances.network.network import Network
from instances.network.stores import stores
from instances.tflite import model
from instances.tflite.file import ModelFile
from instances.tflite.model import Subgraph, TfliteFile
from instances.tflite.scope import OPAQUE
from instances.tflite.translate import CONVERTERS, translate
from tests.onnx_models import Net as OnnxNet
from tests.tflite_models import NONE, RELU, RELU6, SAME, VALID, Net, ds_cnn, of_network, packed

Maker = Callable[[Net], object]


def _unary(op: str, *, low: float = -2, high: float = 2, **options: object) -> Maker:
    def make(net: Net) -> None:
        x = net.op("MUL", net.input(1, 4, 5, 3), net.const(high - low, "float32"))
        net.op(op, net.op("ADD", x, net.const(low, "float32")), **options)

    return make


def _binary(op: str, **options: object) -> Maker:
    """Of a map that is held channels first with a map, a row, a channel and a number."""

    def make(net: Net) -> None:
        x = net.conv(net.input(1, 4, 5, 3), 3, act=RELU)
        x = net.op("ADD", x, net.const(0.5, "float32"))
        positive = [np.abs(net.rng.normal(size=shape)) + 0.5 for shape in ((1, 4, 5, 3), (5, 3), (3,), ())]
        for other in positive:
            x = net.op(op, x, net.const(other, "float32"), **options)

    return make


def _compared(op: str) -> Maker:
    def make(net: Net) -> None:
        x = net.conv(net.input(1, 4, 5, 3), 3)
        net.op("CAST", net.op(op, x, net.const(np.zeros(3), "float32"), kind="bool"), kind="float32")

    return make


def _reduced(op: str, axes: list[int], *, keeps: bool) -> Maker:
    def make(net: Net) -> None:
        x = net.conv(net.input(2, 4, 5, 3), 3)
        shape = [1 if k in axes else n for k, n in enumerate(net.shape(x)) if keeps or k not in axes]
        net.op(op, x, net.const(axes), shape=shape, KeepDims=keeps)

    return make


def _pool(op: str, padding: int) -> Maker:
    def make(net: Net) -> None:
        x = net.input(1, 7, 8, 3)
        shape = (1, 4, 4, 3) if padding == SAME else (1, 3, 3, 3)
        net.op(op, x, shape=shape, FilterHeight=3, FilterWidth=3, StrideH=2, StrideW=2, Padding=padding)

    return make


def _moved(op: str, shape: list[int], *numbers: object, first: bool = True, **options: object) -> Maker:
    """Of a map of 2 x 4 x 6 x 3, channels first or not."""

    def make(net: Net) -> None:
        x = net.input(2, 4, 6, 3)
        x = net.conv(x, 3) if first else net.op("RESHAPE", x, net.const([48, 3]), shape=(48, 3))
        x = x if first else net.op("RESHAPE", x, net.const([2, 4, 6, 3]), shape=(2, 4, 6, 3))
        net.op(op, x, *(net.const(one) for one in numbers), shape=shape, **options)

    return make


def _strided(net: Net) -> None:
    x = net.conv(net.input(2, 4, 6, 3), 3)
    read = (net.const(one) for one in ([0, 3, 1, 1], [2, 0, 6, 2], [1, -1, 2, 1]))
    net.op("STRIDED_SLICE", x, *read, shape=(2, 3, 3), BeginMask=1, EndMask=0, ShrinkAxisMask=8)


def _strided_anew(net: Net) -> None:
    """x[..., None, 1:] with an axis that is new."""
    x = net.input(4, 6, 3)
    read = (net.const(one) for one in ([0, 0, 1], [0, 0, 0], [1, 1, 1]))
    net.op("STRIDED_SLICE", x, *read, shape=(4, 6, 1, 2), EllipsisMask=1, NewAxisMask=2, EndMask=4)


def _split(net: Net) -> None:
    x = net.conv(net.input(1, 4, 6, 3), 6)
    parts = [net.tensor((1, 4, 6, 2)) for _ in range(3)]
    net.many("SPLIT", [net.const(3), x], parts, NumSplits=3)
    others = [net.tensor((1, 4, n, 2)) for n in (1, 5)]
    net.many("SPLIT_V", [parts[0], net.const([1, 5]), net.const(2)], others, NumSplits=2)
    net.op("CONCATENATION", others[1], others[0], shape=(1, 4, 6, 2), Axis=2)


def _packs(net: Net) -> None:
    x = net.input(3, 4)
    rows = [net.tensor((4,)) for _ in range(3)]
    net.many("UNPACK", [x], rows, Num=3, Axis=0)
    net.op("PACK", rows[2], rows[0], shape=(4, 2), ValuesCount=2, Axis=1)


def _transposed(padding: int, stride: int) -> Maker:
    def make(net: Net) -> None:
        x = net.input(1, 5, 6, 3)
        sizes = [n * stride if padding == SAME else (n - 1) * stride + 3 for n in (5, 6)]
        read = net.const([1, *sizes, 4]), net.weight(4, 3, 3, 3), x, net.weight(4)
        net.op(
            "TRANSPOSE_CONV",
            *read,
            shape=(1, *sizes, 4),
            kind="float32",
            Padding=padding,
            StrideH=stride,
            StrideW=stride,
        )

    return make


def _resized(op: str, sizes: tuple[int, int], **options: object) -> Maker:
    def make(net: Net) -> None:
        net.op(op, net.input(1, 4, 5, 3), net.const(sizes), shape=(1, *sizes, 3), **options)

    return make


def _block(net: Net) -> None:
    """Of MobileNet, with its sum, a pool over all and a classifier."""
    x = net.conv(net.input(1, 9, 9, 3), 8, 3, stride=2, act=RELU6)
    y = net.conv(net.conv(net.conv(x, 16, act=RELU6), 16, 3, deep=True, act=RELU6), 8)
    x = net.op("ADD", x, y, FusedActivationFunction=NONE)
    net.op("SOFTMAX", net.dense(net.op("MEAN", x, net.const([1, 2]), shape=(1, 8)), 4), Beta=1.0)


def _flattened(net: Net) -> None:
    """Rows, columns and channels of a map become channels, in the order of the file."""
    x = net.conv(net.input(2, 6, 6, 3), 4, 3, stride=2, padding=VALID)
    x = net.op("RESHAPE", x, net.const([2, 16]), shape=(2, 16))
    net.dense(net.dense(x, 7, act=RELU), 3)


def _anchors(net: Net) -> None:
    """What detectors do with their maps."""
    x = net.conv(net.input(1, 8, 8, 3), 8, 3, stride=2)
    parts = [net.op("RESHAPE", net.conv(one, 4), net.const([1, n, 2]), shape=(1, n, 2))
             for one, n in ((x, 32), (net.conv(x, 8, 3, stride=2), 8))]  # fmt: skip
    x = net.op("CONCATENATION", *parts, shape=(1, 40, 2), Axis=1)
    net.op("LOGISTIC", x)


def _attention(net: Net) -> None:
    x = net.input(6, 8)
    q, k, v = (net.op("RESHAPE", net.dense(x, 8), net.const([6, 2, 4]), shape=(6, 2, 4)) for _ in range(3))
    q, k, v = (net.op("TRANSPOSE", one, net.const([1, 0, 2]), shape=(2, 6, 4)) for one in (q, k, v))
    scores = net.op("SOFTMAX", net.op("BATCH_MATMUL", q, k, shape=(2, 6, 6), AdjY=True), Beta=0.5)
    net.op("BATCH_MATMUL", scores, v, shape=(2, 6, 4))


def _dilated_as_batches(net: Net) -> None:
    x = net.input(1, 6, 8, 3)
    x = net.op("SPACE_TO_BATCH_ND", x, net.const([2, 2]), net.const([[1, 1], [2, 0]]), shape=(4, 4, 5, 3))
    x = net.conv(x, 4, 3)
    net.op("BATCH_TO_SPACE_ND", x, net.const([2, 2]), net.const([[1, 1], [0, 2]]), shape=(1, 6, 8, 4))


def _halves(net: Net) -> None:
    """Weights of 16 bits that are made real numbers."""
    held = net.rng.normal(size=(4, 3, 3, 3))
    w = net.op("DEQUANTIZE", net.const(held, "float16"), kind="float32")
    x = net.input(1, 5, 5, 3)
    options = {"Padding": SAME, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    net.op("CONV_2D", x, w, net.weight(4), shape=(1, 5, 5, 4), kind="float32", **options)


def _three_axes(net: Net) -> None:
    x, w = net.input(1, 4, 5, 6, 2), net.const(net.rng.normal(size=(3, 3, 3, 2, 4)), "float32")
    options = {f"Dilation{axis}Factor": 1 for axis in "DHW"} | {f"Stride{axis}": 2 for axis in "DHW"}
    net.op("CONV_3D", x, w, shape=(1, 2, 3, 3, 4), Padding=SAME, **options)


def _prelu(net: Net) -> None:
    x = net.conv(net.input(1, 4, 5, 3), 6)
    net.op("PRELU", x, net.const(np.abs(net.rng.normal(size=(1, 1, 6))), "float32"))


def _padded(net: Net, *, pooled: bool = False) -> None:
    """Zeros around a map that two convolutions read, and maybe a pooling."""
    x = net.op("PAD", net.input(1, 6, 6, 3), net.const([[0, 0], [1, 2], [0, 1], [0, 0]]), shape=(1, 9, 7, 3))
    parts = [net.conv(x, 4, 3, stride=2, padding=VALID), net.conv(x, 3, 3, stride=2, padding=VALID, deep=True)]
    if pooled:
        options = {"FilterHeight": 3, "FilterWidth": 3, "StrideH": 2, "StrideW": 2, "Padding": VALID}
        parts.append(net.op("MAX_POOL_2D", x, shape=(1, 4, 3, 3), **options))
    net.op("CONCATENATION", *parts, shape=(1, 4, 3, 7 + 3 * pooled), Axis=3)


def _select(net: Net) -> None:
    x = net.conv(net.input(1, 4, 5, 3), 3)
    seen = net.op("GREATER", x, net.const(0.0, "float32"), kind="bool")
    net.op("SELECT_V2", seen, x, net.const(0.25, "float32"), kind="float32")


def _gathered(net: Net) -> None:
    x = net.conv(net.input(1, 4, 5, 3), 3)
    x = net.op("GATHER", x, net.const([2, 0, 2]), shape=(1, 4, 3, 3), Axis=2)
    net.op("GATHER_ND", x, net.const([[0, 1], [0, 3]]), shape=(2, 3, 3))


def _shapes(net: Net) -> None:
    """Sizes, and what is made of them, are constants."""
    x = net.input(2, 3)
    sizes = net.op("SHAPE", x, shape=(2,), kind="int32", OutType=2)
    filled = net.op("FILL", sizes, net.const(1.5, "float32"), shape=(2, 3), kind="float32")
    net.op("ADD", net.op("ADD", x, filled), net.op("ZEROS_LIKE", filled))


def _lane(net: Net, channels: int, units: int, *, coupled: bool, sees: bool, made: int) -> list[int]:
    """Weights of gates, of the state, peepholes, biases, and a projection to `made` numbers, if that are others."""
    gates = [-1 if coupled and k == 0 else net.weight(units, n) for n in (channels, made) for k in range(4)]
    peepholes = [-1 if not sees or (coupled and k == 0) else net.weight(units) for k in range(3)]
    biases = [-1 if coupled and k == 0 else net.const(net.rng.normal(size=units), "float32") for k in range(4)]
    return [*gates, *peepholes, *biases, *((net.weight(made, units), -1) if made != units else (-1, -1))]


def _lstm(
    net: Net, *, batch: int = 2, major: bool = False, coupled: bool = False, sees: bool = False, made: int = 3,
    both: bool = False, merged: bool = True, act: int = 4, **more: float,
) -> None:  # fmt: skip
    steps, channels, units = 5, 4, 3
    lead = (steps, batch) if major else (batch, steps)
    x = net.input(*lead, channels)
    lanes = [_lane(net, channels, units, coupled=coupled, sees=sees, made=made) for _ in range(1 + both)]
    states = [net.tensor((batch, n), variable=True) for _ in lanes for n in (made, units)]
    rest = [-1] * (9 if both else 4)
    ends = [net.tensor((*lead, made * (1 + (both and merged)))) for _ in range(1 + (both and not merged))]
    name = f"{'BI' if both else 'UNI'}DIRECTIONAL_SEQUENCE_LSTM"
    options = {"TimeMajor": major, "FusedActivationFunction": act} | ({"MergeOutputs": merged} if both else {}) | more
    net.many(name, [x, *lanes[0], *(lanes[1] if both else []), *states, *rest], ends, **options)


def _rnn(net: Net, *, both: bool = False, merged: bool = False) -> None:
    x, lanes = net.input(1, 5, 4), list[int]()
    for _ in range(1 + both):
        lanes += [net.weight(3, 4), net.weight(3, 3), net.weight(3), net.tensor((1, 3), variable=True)]
    ends = [net.tensor((1, 5, 3 * (1 + merged))) for _ in range(1 + (both and not merged))]
    options = {"FusedActivationFunction": 4} | ({"MergeOutputs": merged} if both else {})
    name = f"{'BI' if both else 'UNI'}DIRECTIONAL_SEQUENCE_RNN"
    net.many(name, [x, *lanes, *([-1] * 3 if both else [])], ends, **options)


def _svdf(net: Net, rank: int = 2) -> None:
    x, state = net.input(2, 4), net.tensor((2, 6 * 5), variable=True)
    read = x, net.weight(6, 4), net.weight(6, 5), net.weight(6 // rank), state
    net.op("SVDF", *read, shape=(2, 6 // rank), Rank=rank, FusedActivationFunction=RELU)


def _embedding(net: Net) -> None:
    at = net.input(4, kind="int32")
    net.op("EMBEDDING_LOOKUP", at, net.weight(9, 5), shape=(4, 5), kind="float32")


LSTMS: dict[str, dict[str, Any]] = {
    "": {},
    "-major": {"major": True},
    "-clipped": {"CellClip": 0.2},
    "-coupled": {"coupled": True},
    "-sees": {"sees": True},
    "-coupled-sees": {"coupled": True, "sees": True},
    "-projected": {"made": 2, "ProjClip": 0.1},
    "-relu": {"act": RELU},
    "-both": {"both": True, "merged": False},
    "-merged": {"both": True, "major": True},
    "-both-clipped": {"both": True, "CellClip": 0.2, "sees": True, "merged": False},
    # Of more images than one the interpreter takes the state of the first two where it joins rows by image.
    "-merged-rows": {"both": True, "batch": 1},
}
CASES: dict[str, Maker] = {
    **{op: _unary(op) for op in (
        "ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "HARD_SWISH", "LOGISTIC", "NEG", "RELU", "RELU6", "RELU_N1_TO_1",
        "RELU_0_TO_1", "ROUND", "SIGN", "SIN", "SQUARE", "TANH", "SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "GELU",
    )},
    **{op: _unary(op, low=0.1, high=3) for op in ("LOG", "SQRT", "RSQRT")},
    **{op: _binary(op) for op in (
        "ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "POW", "SQUARED_DIFFERENCE", "FLOOR_DIV",
    )},
    "FLOOR_MOD": lambda net: net.op("FLOOR_MOD", net.input(2, 3, kind="int32"), net.const([2, 3, 4])),
    "LEAKY_RELU": _unary("LEAKY_RELU", Alpha=0.3), "GELU-tanh": _unary("GELU", Approximate=True),
    "SOFTMAX-beta": _unary("SOFTMAX", Beta=2.0),
    "LOCAL_RESPONSE_NORMALIZATION": _unary(
        "LOCAL_RESPONSE_NORMALIZATION", Radius=1, Bias=1.0, Alpha=0.3, Beta=0.75
    ),
    **{op: _compared(op) for op in ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")},
    **{f"{op}-{axes}-{keeps}": _reduced(op, axes, keeps=keeps)
       for op, axes, keeps in (
           ("MEAN", [1, 2], True), ("MEAN", [1, 2], False), ("MEAN", [3], True), ("MEAN", [3], False),
           ("MEAN", [1], False), ("SUM", [2], False), ("REDUCE_MAX", [1, 2], False), ("REDUCE_MIN", [2, 3], True),
           ("REDUCE_PROD", [0, 3], False),
       )},
    **{f"{op}-{padding}": _pool(op, padding) for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
       for padding in (SAME, VALID)},
    "CONCATENATION": lambda net: net.op(
        "CONCATENATION", net.conv(net.input(1, 4, 5, 3), 2), net.const(np.ones((1, 4, 5, 1)), "float32"),
        shape=(1, 4, 5, 3), Axis=3,
    ),
    "RESHAPE": _moved("RESHAPE", [2, 24, 1, 3], [2, 24, 1, 3]),
    "RESHAPE-mixed": _moved("RESHAPE", [2, 8, 9], [2, 8, 9]),
    "SQUEEZE": lambda net: net.op("SQUEEZE", net.conv(net.input(1, 5, 1, 3), 4), shape=(5, 4)),
    "EXPAND_DIMS": lambda net: net.conv(
        net.op("EXPAND_DIMS", net.input(1, 5, 3), net.const(2), shape=(1, 5, 1, 3)), 4, 3
    ),
    "TRANSPOSE": _moved("TRANSPOSE", [2, 6, 4, 3], [0, 2, 1, 3]),
    "TRANSPOSE-first": _moved("TRANSPOSE", [2, 3, 4, 6], [0, 3, 1, 2]),
    "TRANSPOSE-last": lambda net: net.conv(
        net.op("TRANSPOSE", net.input(1, 3, 4, 5), net.const([0, 2, 3, 1]), shape=(1, 4, 5, 3)), 2, 3
    ),
    "SLICE": _moved("SLICE", [2, 2, 6, 1], [0, 1, 0, 1], [2, 2, -1, 1]),
    "SLICE-last": _moved("SLICE", [2, 2, 6, 1], [0, 1, 0, 1], [2, 2, -1, 1], first=False),
    "STRIDED_SLICE": _strided, "STRIDED_SLICE-new": _strided_anew,
    "PAD": _moved("PAD", [2, 7, 6, 4], [[0, 0], [1, 2], [0, 0], [1, 0]]),
    "PADV2": lambda net: net.op(
        "PADV2", net.conv(net.input(1, 4, 5, 3), 3), net.const([[0, 0], [1, 0], [0, 2], [0, 0]]),
        net.const(-1.5, "float32"), shape=(1, 5, 7, 3),
    ),
    "MIRROR_PAD": _moved("MIRROR_PAD", [2, 7, 7, 3], [[0, 0], [1, 2], [0, 1], [0, 0]], Mode=0),
    "TILE": _moved("TILE", [2, 8, 6, 9], [1, 2, 1, 3]),
    "BROADCAST_TO": lambda net: net.op("BROADCAST_TO", net.input(1, 1, 3), net.const([2, 4, 3]), shape=(2, 4, 3)),
    "GATHER": _gathered, "SPLIT": _split, "PACK": _packs, "EMBEDDING_LOOKUP": _embedding,
    "DEPTH_TO_SPACE": lambda net: net.op(
        "DEPTH_TO_SPACE", net.conv(net.input(1, 3, 4, 3), 8), shape=(1, 6, 8, 2), BlockSize=2
    ),
    "SPACE_TO_DEPTH": _moved("SPACE_TO_DEPTH", [2, 2, 3, 12], BlockSize=2),
    "SPACE_TO_BATCH_ND": _dilated_as_batches, "SHAPE": _shapes,
    **{f"TRANSPOSE_CONV-{padding}-{stride}": _transposed(padding, stride)
       for padding in (SAME, VALID) for stride in (1, 2, 3)},
    **{f"RESIZE-{op}-{sizes[0]}-{'-'.join(options) or 'plain'}": _resized(f"RESIZE_{op}", sizes, **options)
       for op in ("BILINEAR", "NEAREST_NEIGHBOR") for sizes in ((8, 10), (7, 9), (2, 3))
       for options in ({}, {"AlignCorners": True}, {"HalfPixelCenters": True})},
    "block": _block, "flattened": _flattened, "anchors": _anchors, "attention": _attention, "halves": _halves,
    "CONV_3D": _three_axes, "PRELU": _prelu, "SELECT_V2": _select, "SVDF": _svdf,
    "SVDF-1": lambda net: _svdf(net, 1), **{f"LSTM{name}": partial(_lstm, **more) for name, more in LSTMS.items()},
    "RNN": _rnn, "RNN-both": partial(_rnn, both=True), "RNN-merged": partial(_rnn, both=True, merged=True),
    "dilated": lambda net: net.conv(net.input(1, 9, 9, 3), 4, 3, dilation=2, padding=SAME),
    "padded-same": lambda net: net.conv(
        net.op("PAD", net.input(1, 6, 6, 3), net.const([[0, 0], [1, 1], [1, 1], [0, 0]]), shape=(1, 8, 8, 3)), 4, 3
    ),
    "padded": _padded, "padded-pooled": lambda net: _padded(net, pooled=True),
    "strided": lambda net: net.conv(net.input(1, 8, 9, 3), 4, 5, stride=3, padding=SAME),
}  # fmt: skip


#: Operators without a reference kernel; that of the local response leaves out a channel of each window.
_NO_REFERENCE = {"BROADCAST_TO", "CEIL", "ELU", "LOCAL_RESPONSE_NORMALIZATION", "ROUND"}


def made(make: Maker) -> bytes:
    net = Net()
    make(net)
    return packed(net)


def ran(data: bytes, calls: int = 2, seed: int = 1) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """What TFLite's interpreter makes of random inputs, and what the ONNX model does, as the file lays them out."""
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    runtime = pytest.importorskip("onnxruntime")
    kernels = litert.OpResolverType
    names = {one.name for graph in TfliteFile(data, "x").subgraphs for one in graph.operators}
    kind = kernels.BUILTIN_WITHOUT_DEFAULT_DELEGATES if names & _NO_REFERENCE else kernels.BUILTIN_REF
    runs = litert.Interpreter(model_content=data, experimental_op_resolver_type=kind)
    runs.allocate_tensors()
    found = translate(data, "network x.tflite")
    onnx.checker.check_model(found.model, full_check=True)
    session = runtime.InferenceSession(found.model.SerializeToString())
    rng, pairs = np.random.default_rng(seed), []
    state = {name: _first(found, name, begin) for name, begin in found.begins.items()}
    for _ in range(calls):
        feeds = dict(state)
        for one, info in zip(runs.get_input_details(), session.get_inputs(), strict=False):
            value = _drawn(rng, one)
            runs.set_tensor(one["index"], value)
            feeds[info.name] = _first(found, info.name, value)
        runs.invoke()
        names = [info.name for info in session.get_outputs()]
        results = dict(zip(names, session.run(names, feeds), strict=True))
        state = {name: results[result] for name, result in found.states.items()}
        details = runs.get_output_details()
        mine = [np.moveaxis(results[name], 1, -1) if name in found.turned else results[name]
                for name in names[: len(details)]]  # fmt: skip
        pairs.append(([runs.get_tensor(one["index"]) for one in details], mine))
    return pairs


def _first(found: ModelFile, name: str, value: np.ndarray) -> np.ndarray:
    return np.moveaxis(value, -1, 1) if name in found.turned else value


def _drawn(rng: np.random.Generator, one: dict[str, object]) -> np.ndarray:
    kind = np.dtype(one["dtype"])  # type: ignore[call-overload]
    if kind.kind == "f":
        return rng.random(one["shape"]).astype(kind)  # type: ignore[call-overload]
    limits = (0, 9) if kind.itemsize > 2 else (np.iinfo(kind).min, np.iinfo(kind).max)
    return rng.integers(*limits, one["shape"], kind)  # type: ignore[call-overload]


@pytest.mark.parametrize("name", CASES)
def test_an_operator_computes_what_the_interpreter_does(name: str) -> None:
    """Real numbers, to single precision."""
    data = made(CASES[name])
    assert not [node.op_type for node in translate(data, "x").model.graph.node if node.domain == OPAQUE]
    for theirs, mine in ran(data):
        for one, other in zip(theirs, mine, strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(other, one, rtol=2e-5, atol=2e-5)


# --- quantised --------------------------------------------------------------------------------------------------------


def _whole(kind: str) -> Maker:
    """A block of MobileNet of integers, with everything that such networks have behind it."""
    scale, zero = {"int8": (0.02, 3), "uint8": (0.02, 120), "int16": (1e-4, 0)}[kind]
    other, at = {"int8": (0.07, -20), "uint8": (0.07, 90), "int16": (3e-4, 0)}[kind]

    def make(net: Net) -> None:
        x = net.conv(net.input(1, 9, 9, 3, kind=kind, scale=scale, zero=zero), 8, 3, stride=2, act=RELU6)
        y = net.conv(net.conv(net.conv(x, 8, act=RELU6), 8, 3, deep=True, act=RELU6), 8)
        x = net.op("ADD", x, y, scale=other, zero=at)
        same = {"scale": other, "zero": at}
        x = net.op("MAX_POOL_2D", x, shape=(1, 3, 3, 8), FilterHeight=2, FilterWidth=2, StrideH=2, StrideW=2, **same)
        x = net.op("PAD", x, net.const([[0, 0], [1, 0], [0, 1], [0, 0]]), shape=(1, 4, 4, 8), **same)
        y = net.conv(x, 8, 3)
        x = net.op("CONCATENATION", x, net.op("QUANTIZE", y, **same), shape=(1, 4, 4, 16), Axis=3, **same)
        x = net.op(
            "AVERAGE_POOL_2D", x, shape=(1, 2, 2, 16), FilterHeight=2, FilterWidth=2, StrideH=2, StrideW=2, **same
        )
        x = net.op("RESHAPE", x, net.const([1, 64]), shape=(1, 64), **same)
        net.dense(x, 5)

    return make


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16"])
def test_integers_are_those_of_the_interpreter(kind: str) -> None:
    """Of onnxruntime's real numbers: a step apart at the most, as halves are rounded otherwise."""
    for theirs, mine in ran(made(_whole(kind)), calls=3):
        assert theirs[0].dtype == mine[0].dtype == kind
        assert np.abs(theirs[0].astype(int) - mine[0].astype(int)).max() <= 1
        assert len(np.unique(theirs[0])) > 2  # else nothing is compared


@pytest.mark.parametrize("taps", [1, 2, 3, 4, 5])
def test_phases_of_transposed_convolutions(taps: int) -> None:
    """Every stride and padding, filters with scales of their own: a step from the interpreter at the most."""
    for stride in (1, 2, 3):
        for padding in (SAME, VALID):
            net = Net()
            x = net.input(2, 5, 6, 8, kind="int8", scale=0.02, zero=3)
            sizes = [n * stride if padding == SAME else (n - 1) * stride + taps for n in (5, 6)]
            scales = [0.01, 0.02, 0.03]
            w = net.const(net.rng.integers(-127, 127, (3, taps, taps, 8)), "int8", scale=scales, zero=[0] * 3)
            b = net.const(net.rng.integers(-500, 500, 3), "int32", scale=[0.02 * one for one in scales])
            net.op(
                "TRANSPOSE_CONV", net.const([2, *sizes, 3]), w, x, b, shape=(2, *sizes, 3), kind="int8",
                Padding=padding, StrideH=stride, StrideW=stride, scale=0.5, zero=-20,
            )  # fmt: skip
            data = packed(net)
            made = {node.op_type for node in translate(data, "x").model.graph.node}
            phases = taps >= stride and (padding == SAME or taps % stride == 0)
            assert ("ConvTranspose" in made) != phases
            assert "opaque" not in [one.op for one in _network(data).operators]
            for theirs, mine in ran(data, calls=1):
                assert np.abs(theirs[0].astype(int) - mine[0].astype(int)).max() <= 1


def test_element_types_and_layers_of_integers() -> None:
    found = _network(made(_whole("int8")))
    assert (found.map_type, found.weight_type, found.opaque) == ("int8", "int8", ())
    assert _network(made(_whole("uint8"))).map_type == "uint8"
    kinds = [layer.kind for layer in found.layers]
    assert kinds.count("conv") == 5
    assert kinds.count("pool") == 2


def _network(data: bytes) -> Network:
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / "m.tflite").write_bytes(data)
        return load_network(path)


def streaming(kind: str = "float32", *, assigns: bool = True) -> bytes:
    """Frames of a call behind those of the calls before, as converters write it: a variable and what it begins with."""
    scale = {"scale": 0.05, "zero": -3} if kind == "int8" else {}
    begin, net = Net(), Net()
    held = begin.tensor((), "resource", name="handle")
    begin.many("VAR_HANDLE", [], [held], SharedName="frames")
    lists = {key: [value] for key, value in scale.items()}
    begin.many("ASSIGN_VARIABLE", [held, begin.const(np.full((1, 2, 1, 4), -3 if scale else 0), kind, **lists)], [])
    net.many("CALL_ONCE", [], [], InitSubgraphIndex=1)
    x, variable = net.input(1, 1, 1, 4, kind=kind, **scale), net.tensor((), "resource", name="handle")
    net.many("VAR_HANDLE", [], [variable], SharedName="frames")
    old = net.tensor((1, 2, 1, 4), kind, **lists)
    net.many("READ_VARIABLE", [variable], [old])
    every = net.op("CONCATENATION", old, x, shape=(1, 3, 1, 4), kind=kind, Axis=1, **scale)
    read = (net.const(one) for one in ([0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]))
    last = net.op("STRIDED_SLICE", every, *read, shape=(1, 2, 1, 4), BeginMask=13, EndMask=15, **scale)
    if assigns:
        net.many("ASSIGN_VARIABLE", [variable, last], [])
    net.dense(net.op("RESHAPE", every, net.const([1, 12]), shape=(1, 12), **scale), 5)
    made = net.operators[-1]["outputs"]
    return packed(net, begin, outputs=made)


# --- counts -----------------------------------------------------------------------------------------------------------


def _counted(data: bytes) -> tuple[int, int]:
    """MACs and weights (biases, too) of a file, from the shapes of its tensors alone."""
    graph = TfliteFile(data, "x").subgraphs[0]
    macs, tensors = 0, set[int]()
    for one in graph.operators:
        shapes = {k: graph.tensors[k].shape for k in (*one.inputs, *one.outputs) if k >= 0}
        elements = {k: int(np.prod(shape)) for k, shape in shapes.items()}
        held = shapes[one.inputs[1]] if len(one.inputs) > 1 else ()
        match one.name:
            case "CONV_2D" | "FULLY_CONNECTED":
                macs += elements[one.outputs[0]] * int(np.prod(held[1:]))
            case "DEPTHWISE_CONV_2D":
                macs += elements[one.outputs[0]] * int(np.prod(held[:-1]))
            case "CONV_3D":
                macs += elements[one.outputs[0]] * int(np.prod(held[:-1]))
            case "TRANSPOSE_CONV":  # every element of the input is multiplied by all that its channel has
                macs += elements[one.inputs[2]] * elements[one.inputs[1]] // held[-1]
            case "BATCH_MATMUL":
                macs += elements[one.outputs[0]] * shapes[one.inputs[0]][-1]
            case _:
                continue
        behind = 1 if one.name != "TRANSPOSE_CONV" else 3
        if graph.tensors[one.inputs[1]].data is not None or one.name != "BATCH_MATMUL":
            tensors |= {k for k in (one.inputs[1], *one.inputs[behind + 1 : behind + 2], *one.inputs[3:]) if k >= 0}
    return macs, sum(int(np.prod(graph.tensors[k].shape)) for k in tensors)


NETWORKS: dict[str, Callable[[], bytes]] = {
    **{name: partial(made, CASES[name]) for name in (
        "block", "flattened", "anchors", "dilated", "strided", "padded", "padded-pooled", "CONV_3D", "attention",
        "halves", "SELECT_V2", "GATHER", "SPLIT", "DEPTH_TO_SPACE", "SPACE_TO_BATCH_ND",
        *(f"TRANSPOSE_CONV-{padding}-{stride}" for padding in (SAME, VALID) for stride in (1, 2, 3)),
    )},
    **{kind: partial(made, _whole(kind)) for kind in ("int8", "uint8", "int16")},
    "streaming": partial(streaming, "int8"), "streaming-float": streaming, "ds_cnn": ds_cnn,
    **{name: partial(lambda name: of_network(load_network(name)), name) for name in (
        "mobilenet_v1_025", "fd_mobilenet", "squeezenet1_1", "mobilenet_v2",
    )},
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_macs_and_weights_counted_from_the_tensors(name: str) -> None:
    """31 files; what stays on chip between calls is no weight."""
    data = NETWORKS[name]()
    found = _network(data)
    assert (found.macs, found.parameters) == _counted(data)


@pytest.mark.parametrize("name", [*(key for key in NETWORKS if not key.startswith(("TRANSPOSE", "CONV_3D")))])
def test_compulsory_bytes_counted_from_the_tensors(name: str) -> None:
    """Weights and results once, and of inputs the rows and columns that some window reads; a byte an element."""
    data = NETWORKS[name]()
    found, graph = stores(_network(data)), TfliteFile(data, "x").subgraphs[0]
    machine = load_machine("scratchpad_64k")
    assert weight_bytes(found, machine) == _counted(data)[1] - _biases(graph)
    if not any(one.name == "CALL_ONCE" for one in graph.operators) and name not in ("GATHER", "SPLIT", "attention"):
        assert result_bytes(found, machine) == sum(int(np.prod(graph.tensors[k].shape)) for k in graph.outputs)
        assert input_bytes(found, machine) == _read(graph)


def _biases(graph: Subgraph) -> int:
    """Elements of all biases: `bias_bytes` is 0."""
    read = {one.input(3 if one.name == "TRANSPOSE_CONV" else 2) for one in graph.operators if one.name in _BIASED}
    return sum(int(np.prod(graph.tensors[k].shape)) for k in read if k >= 0)


_BIASED = ("CONV_2D", "DEPTHWISE_CONV_2D", "CONV_3D", "FULLY_CONNECTED", "TRANSPOSE_CONV")


def _read(graph: Subgraph) -> int:
    """Elements of the input that windows of convolutions and poolings read, or all."""
    (x,) = graph.inputs
    shape = graph.tensors[x].shape
    padded = {one.outputs[0]: one for one in graph.operators if one.name == "PAD" and one.inputs[0] == x}
    seen = np.zeros(shape[1:-1], np.bool_)
    for one in graph.operators:
        if one.name in ("CONV_2D", "DEPTHWISE_CONV_2D") and one.inputs[0] in (x, *padded):
            made, held = graph.tensors[one.outputs[0]].shape, graph.tensors[one.inputs[1]].shape
            around = graph.tensors[padded[one.inputs[0]].inputs[1]].data if one.inputs[0] in padded else None
            axes = []
            for k, axis in enumerate("HW"):
                step, gap = one.option(f"Stride{axis}"), one.option(f"Dilation{axis}Factor")
                taps, size = held[1 + k], shape[1 + k]
                whole = max(0, (-(-size // step) - 1) * step + (taps - 1) * gap + 1 - size)
                pad = (
                    int(around[1 + k, 0]) if around is not None else 0 if one.option("Padding") == VALID else whole // 2
                )
                at = np.arange(made[1 + k])[:, None] * step + np.arange(taps) * gap - pad
                axes.append(np.unique(at[(at >= 0) & (at < size)]))
            seen[np.ix_(*axes)] = True
        elif (x in one.inputs and one.name != "PAD") or (one.inputs and one.inputs[0] in padded):
            seen[:] = True
    return int(seen.sum()) * shape[0] * shape[-1] if seen.ndim else int(np.prod(shape))


def test_zeros_around_windows_are_pads_of_the_convolutions() -> None:
    """Layers read the map as it is; where others read the zeros, too, they are there."""
    plain, pooled = (_network(made(CASES[name])) for name in ("padded", "padded-pooled"))
    assert [o.op for o in plain.operators] == ["input", "conv", "conv", "concat"]
    assert {(one.pad_top, one.pad_left) for one in plain.layers} == {(1, 0)}
    assert "reshape" in [o.op for o in pooled.operators]


def test_the_onnx_twin_has_the_same_layers(tmp_path: Path) -> None:
    """The same network as torch exports it: channels first, explicit pads. Layers, and so plans, are equal."""
    net = OnnxNet()
    x = net.input(1, 3, 8, 8)
    x = net.conv(x, 3, 8, 3, 2, pads=[0, 0, 1, 1])
    y = net.conv(net.conv(x, 8, 8, 3, g=8), 8, 8, act="")
    onnx.save(net.model(net.head(net("Add", x, y), 8)), tmp_path / "twin.onnx")
    twin = load_network(tmp_path / "twin.onnx")

    def make(net: Net) -> None:
        x = net.conv(net.input(1, 8, 8, 3), 8, 3, stride=2, act=RELU)
        y = net.conv(net.conv(x, 8, 3, deep=True, act=RELU), 8)
        x = net.op("MEAN", net.op("ADD", x, y), net.const([1, 2]), shape=(1, 8))
        net.dense(x, 5)

    found = _network(made(make))
    plain = [[layer.model_copy(update={"name": ""}) for layer in one.layers] for one in (found, twin)]
    assert plain[0] == plain[1]
    assert [o.op for o in found.operators] == [o.op for o in twin.operators]


@pytest.mark.parametrize("name", ["mobilenet_v2", *(pytest.param(name, marks=pytest.mark.slow(1)) for name in (
    "mobilenet_v1", "efficientnet_lite0", "fd_mobilenet", "squeezenet1_1", "vgg16"
))])  # fmt: skip
def test_bundled_networks_have_the_same_layers_as_tflite(name: str) -> None:
    """Quantised, functions fused, pads of their own: equal layers, so equal plans; MACs counted from the tensors."""
    network = load_network(name)
    data = of_network(network)
    found = _network(data)
    plain = [[layer.model_copy(update={"name": ""}) for layer in one.layers] for one in (found, network)]
    assert plain[0] == plain[1]
    assert found.macs == network.macs == _counted(data)[0]
    assert (found.map_type, found.weight_type, found.opaque) == ("int8", "int8", ())


# --- variables --------------------------------------------------------------------------------------------------------


def test_variables_are_states_that_begin_as_the_file_says() -> None:
    found = translate(streaming("int8"), "x")
    assert list(found.states) == ["frames"]
    assert found.begins["frames"].shape == (1, 2, 1, 4)
    assert (found.begins["frames"] == -3).all()
    for theirs, mine in ran(streaming("int8"), calls=4):
        assert np.abs(theirs[0].astype(int) - mine[0].astype(int)).max() <= 1


# --- what is not read -------------------------------------------------------------------------------------------------


def test_a_custom_operator_is_kept_with_its_name() -> None:
    def make(net: Net) -> None:
        net.op("FancyPostProcess", net.conv(net.input(1, 8, 8, 3), 4), shape=(1, 10, 4))

    found = _network(made(make))
    assert found.opaque
    assert "FancyPostProcess (custom)" in " ".join(found.warnings)


@pytest.mark.parametrize("name", ["IF", "WHILE"])
def test_what_runs_other_subgraphs_is_kept_and_says_so(name: str) -> None:
    net, other = Net(), Net()
    other.op("RELU", other.input(1, 4, 4, 2))
    x, made = net.conv(net.input(1, 4, 4, 3), 2), net.tensor((1, 4, 4, 2))
    read = [x] if name == "WHILE" else [net.op("GREATER", net.input(), net.const(0.5, "float32"), kind="bool"), x]
    net.many(name, read, [made], **dict.fromkeys(_SUBGRAPHS[name], 1))
    net.conv(made, 5)
    found = _network(packed(net, other))
    assert f"tflite.{name} (its subgraphs are not read)" in " ".join(found.warnings)
    assert found.macs == 16 * 2 * 3 + 16 * 5 * 2


_SUBGRAPHS = {"IF": ("ThenSubgraphIndex", "ElseSubgraphIndex"), "WHILE": ("CondSubgraphIndex", "BodySubgraphIndex")}


def test_weights_that_are_computed_are_kept_with_the_reason() -> None:
    def make(net: Net) -> None:
        x = net.input(1, 8, 8, 3)
        w = net.op("RESHAPE", net.op("SIN", net.input(4, 27)), net.const([4, 3, 3, 3]), shape=(4, 3, 3, 3))
        options = {"Padding": SAME, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
        net.op("CONV_2D", x, w, net.weight(4), shape=(1, 8, 8, 4), **options)

    assert "CONV_2D (its weights are computed)" in " ".join(_network(made(make)).warnings)


def test_an_axis_that_a_tensor_does_not_have_is_named() -> None:
    """It was counted round: axis 7 of 4 axes as axis 3."""

    def make(net: Net) -> None:
        x = net.input(1, 4, 4, 3)
        net.op("CONCATENATION", x, net.conv(x, 5), shape=(1, 4, 4, 8), Axis=7)

    assert "CONCATENATION (axis 7 of a tensor with 4 axes)" in " ".join(_network(made(make)).warnings)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"\x08\0\0\0TFL2 and more", "not a TFLite file: TFL3 is missing at byte 4"),
        (b"\x08\x00\x00\x00TFL3", "not a TFLite file, or cut off"),
        (packed(Net()), "the graph has no operators"),
    ],
)
def test_what_is_no_file_is_one_line(data: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        _network(data)
    assert "\n" not in str(caught.value)


ONE = {"Padding": SAME, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}


def test_what_an_operator_that_is_kept_had_begun_is_taken_back() -> None:
    """Constants and orders of axes that it had asked for are there for the next reader, too."""

    def make(net: Net) -> None:
        x, c = net.input(2, 3, kind="int32"), net.const([1, 2, 3])
        net.op("ADD", net.op("FLOOR_DIV", x, c), c)

    def other(net: Net) -> None:
        x = net.op("RESHAPE", net.input(1, 48), net.const([1, 4, 4, 3]), shape=(1, 4, 4, 3))
        w = net.op("RESHAPE", net.op("SIN", net.input(4, 27)), net.const([4, 3, 3, 3]), shape=(4, 3, 3, 3))
        y = net.op("CONV_2D", x, w, net.weight(4), shape=(1, 4, 4, 4), **ONE)
        net.op("CONCATENATION", y, net.conv(x, 5, 3), shape=(1, 4, 4, 9), Axis=3)

    assert _network(made(make)).opaque
    found = _network(made(other))
    assert len(found.opaque) == 1
    assert found.macs == 16 * 5 * 27


def test_weights_that_two_layers_share_are_there_once() -> None:
    def make(net: Net) -> None:
        x, w, b = net.input(1, 6, 6, 4), net.weight(4, 3, 3, 4), net.weight(4)
        for _ in range(2):
            x = net.op("CONV_2D", x, w, b, shape=(1, 6, 6, 4), **ONE)

    found = _network(made(make))
    assert found.parameters == 4 * 9 * 4 + 2 * 4  # biases of their own
    assert found.macs == 2 * 36 * 4 * 36


@pytest.mark.parametrize("flat_first", [True, False])
def test_weights_that_a_flattened_map_and_rows_share_are_there_once(flat_first: bool) -> None:
    """A fully connected layer of a map of 4 x 4 x 2, and one of rows as they are, in either order."""

    def make(net: Net) -> None:
        x, w = net.conv(net.input(1, 4, 4, 3), 2, 3), net.weight(5, 32)
        flat = net.op("RESHAPE", x, net.const([1, 32]), shape=(1, 32))
        parts = [flat, net.input(1, 32, name="rows")][:: 1 if flat_first else -1]
        net.op("ADD", *(net.op("FULLY_CONNECTED", one, w, shape=(1, 5)) for one in parts))

    assert _network(made(make)).parameters == 2 * 27 + 2 + 5 * 32
    for theirs, mine in ran(made(make)):
        np.testing.assert_allclose(mine[0], theirs[0], rtol=2e-5, atol=2e-5)


def _new_and_gone(net: Net) -> None:
    """x[None, :, 1] of four axes: as many axes as before, in another order than a part of it has."""
    y = net.op("RESHAPE", net.input(1, 60), net.const([5, 4, 3, 1]), shape=(5, 4, 3, 1))
    read = (net.const(one) for one in ([0, 0, 1], [0, 5, 2], [1, 1, 1]))
    net.op("STRIDED_SLICE", y, *read, shape=(1, 5, 3, 1), NewAxisMask=1, ShrinkAxisMask=4)


def _rest(net: Net) -> None:
    net.op("FLOOR_MOD", net.input(2, 3), net.const([0.3, 0.4, -0.7], "float32"))


def _nothing_reduced(net: Net) -> None:
    net.op("MEAN", net.input(2, 3, 4), net.const(np.zeros(0)), shape=(2, 3, 4), KeepDims=True)


def _looked_up(net: Net) -> None:
    table = net.const(np.arange(45).reshape(9, 5), "int8", scale=[0.1])
    net.op("EMBEDDING_LOOKUP", net.input(4, kind="int32"), table, shape=(4, 5), kind="float32")


def _cut_off(net: Net) -> None:
    net.op("ADD", net.input(2, 3, kind="int32"), net.const([1, -20, 3]), FusedActivationFunction=RELU6)


def _made_again(net: Net) -> None:
    x = net.input(2)
    net.many("NEG", [x], [y := net.tensor((2,))])
    net.many("EXP", [y], [y])
    net.op("RELU", y)


@pytest.mark.parametrize("make", [_new_and_gone, _rest, _nothing_reduced, _looked_up, _cut_off, _made_again])
def test_what_was_found_by_random_graphs(make: Maker) -> None:
    for theirs, mine in ran(made(make)):
        np.testing.assert_allclose(mine[0], theirs[0], rtol=2e-5, atol=2e-5)


def test_two_integers_of_four_bits_lie_in_a_byte() -> None:
    """The first one in the lower half, with their signs."""
    assert model._unpacked(np.array([0x21, 0xF8], np.uint8)).tolist() == [1, 2, -8, -1]


def test_elements_that_alone_are_stated() -> None:
    """Rows of 2 x 2 blocks: of four rows and columns the block at (0, 2) and the one at (2, 0), row by row.

    Levels: rows of blocks (dense, 2), columns of blocks (segments 0, 1, 2 of indices 1, 0), two rows and two columns of
    a block (dense).
    """

    def level(size: int = 0, segments: list[int] | None = None, indices: list[int] | None = None) -> SimpleNamespace:
        dense = tflite.DimensionType.DENSE if segments is None else tflite.DimensionType.SPARSE_CSR
        return SimpleNamespace(
            Format=lambda: dense, DenseSize=lambda: size, ArraySegmentsType=lambda: 0, ArrayIndicesType=lambda: 0,
            ArraySegments=lambda: segments, ArrayIndices=lambda: indices,
        )  # fmt: skip

    levels = [level(2), level(segments=[0, 1, 2], indices=[1, 0]), level(2), level(2)]
    sparsity = SimpleNamespace(
        TraversalOrderAsNumpy=lambda: np.array([0, 1, 2, 3]), BlockMapAsNumpy=lambda: np.array([0, 1]),
        DimMetadataLength=lambda: len(levels), DimMetadata=lambda k: levels[k],
    )  # fmt: skip
    with patch.object(model, "_vector", lambda _, table: np.array(table, np.int64)):
        found = model._dense(np.arange(1, 9), (4, 4), sparsity)
    assert found.tolist() == [[0, 0, 1, 2], [0, 0, 3, 4], [5, 6, 0, 0], [7, 8, 0, 0]]


def test_a_variable_that_nobody_assigns_is_a_constant() -> None:
    data = streaming("int8", assigns=False)
    found = translate(data, "x")
    assert (found.states, [info.name for info in found.model.graph.input]) == ({}, ["x"])
    for theirs, mine in ran(data, calls=3):
        assert np.abs(theirs[0].astype(int) - mine[0].astype(int)).max() <= 1


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda net: net.op("RELU", net.tensor((1,) * 9)), "has 9 axes"),
        (lambda net: net.op("ZEROS_LIKE", net.input(2), shape=(2**28, 2)), "at most 8 axes and 134,217,728 elements"),
        (lambda net: net.op("RELU", net.input(2, kind="int8", scale=0.1, zero=300)), "has zero points from 300 to 300"),
        (lambda net: net.op("RELU", net.tensor((2,), "resource")), "is read before it is made|resource"),
    ],
)  # fmt: skip
def test_what_no_tensor_is(make: Maker, said: str) -> None:
    with pytest.raises(InputError, match=said):
        _network(made(make))


def test_a_state_that_is_an_input_is_kept_as_opaque() -> None:
    def make(net: Net) -> None:
        read = net.input(2, 4), net.weight(6, 4), net.weight(6, 2), net.weight(3), net.input(2, 12)
        net.op("SVDF", *read, shape=(2, 3), Rank=2)

    assert "its state is no variable of its own" in " ".join(_network(made(make)).warnings)


def test_files_that_are_cut_or_changed_are_read_or_one_line() -> None:
    """Every fault of a length or an offset: 400 files, no traceback."""
    whole, rng = made(_block), np.random.default_rng(3)
    refused = 0
    for k in range(400):
        data = bytearray(whole)
        if k % 4 == 0:
            data = data[: rng.integers(8, len(data))]
        else:
            for _ in range(k % 4):
                at = rng.integers(8, len(data) - 4)
                data[at : at + 4] = [bytes(rng.bytes(4)), b"\xff\xff\xff\x7f", b"\0\0\0\0"][rng.integers(3)]
        refused += _refused(bytes(data))
    assert refused > 100


def _refused(data: bytes) -> bool:
    """Whether a file is refused, in one line; other errors are not caught."""
    try:
        _network(data)
    except InputError as error:
        return "\n" not in str(error)
    return False


def test_every_operator_that_is_translated_has_a_case() -> None:
    cases = {one.name for make in CASES.values() for one in TfliteFile(made(make), "x").subgraphs[0].operators}
    elsewhere = {"QUANTIZE", "CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"}
    unseen = {"DENSIFY", "LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT", "RANGE", "RANK", "SELECT", "ADD_N"}
    assert set(CONVERTERS) - cases - elsewhere == unseen
