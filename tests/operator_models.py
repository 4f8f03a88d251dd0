"""Small models of one operator each, between convolutions or alone, for the C that is written of them.

`as_read` makes a model again of what the reader makes of one: a program of standard nodes, to be run and compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from instances.network.operators import Concat, Conv, Input, MatMul, Pool, Resample, Reshape
from instances.network.workload import Layer
from instances.onnx.graph import Node
from instances.onnx.model import OnnxModel, read_model
from tests.onnx_models import model_of

#: Name -> shape of the input, operator, further inputs (constants; a text is a tensor), attributes; `ahead` are pads
#: before it (of zeros, or as `pad` says), `then` what comes behind it: a constant that is added, or nodes.
Case = tuple[tuple[int, ...], str, Sequence[object], dict[str, object]]
_RNG = np.random.default_rng(7)
_FLOAT = np.float32


def _weights(*shape: int) -> np.ndarray:
    return (_RNG.normal(size=shape) * 0.4).astype(_FLOAT)


def _resize(size: tuple[int, int], to: Sequence[float], sizes: bool = False, **attributes: object) -> Case:
    whole = [1, 4, *to] if sizes else [1.0, 1.0, *to]
    last = [None, None, np.array(whole, np.int64)] if sizes else [None, np.array(whole, _FLOAT)]
    return (1, 4, *size), "Resize", last, attributes


def _transposed(size: tuple[int, ...], weights: tuple[int, ...], bias: bool = True, **attributes: object) -> Case:
    channels, groups = weights[0], int(attributes.get("group", 1))  # type: ignore[call-overload]
    constants = [_weights(*weights), *([_weights(weights[1] * groups)] if bias else [])]
    return (1, channels, *size), "ConvTranspose", constants, attributes


def _cell(op: str, gates: int, steps: int, batch: int, direction: str = "forward", bias: bool = True,
          state: bool = False, **attributes: object) -> Case:  # fmt: skip
    ways, hidden, inputs = (2 if direction == "bidirectional" else 1), 5, 3
    constants: list[object] = [_weights(ways, gates * hidden, inputs), _weights(ways, gates * hidden, hidden)]
    constants.append(_weights(ways, 2 * gates * hidden) if bias else None)
    if state:
        states = [_weights(ways, batch, hidden) * (np.arange(hidden) > 0) for _ in range(1 + (op == "LSTM"))]
        constants += [None, *(each.astype(_FLOAT) for each in states)]  # some of their numbers are zero
    return (steps, batch, inputs), op, constants, {"hidden_size": hidden, "direction": direction, **attributes}


RESIZE: dict[str, Case] = {
    "nearest asymmetric floor": _resize((5, 4), (2, 2), mode="nearest", coordinate_transformation_mode="asymmetric",
                                        nearest_mode="floor"),
    "nearest asymmetric ceil": _resize((5, 4), (2, 3), mode="nearest", coordinate_transformation_mode="asymmetric",
                                       nearest_mode="ceil"),
    "nearest half_pixel": _resize((5, 4), (3, 2), mode="nearest", nearest_mode="round_prefer_ceil"),
    "nearest align_corners": _resize((5, 4), (2, 2), mode="nearest", coordinate_transformation_mode="align_corners"),
    "nearest to sizes": _resize((6, 4), (9, 7), True, mode="nearest", coordinate_transformation_mode="asymmetric"),
    "nearest down": _resize((6, 8), (0.5, 0.5), mode="nearest", nearest_mode="floor"),
    "linear half_pixel": _resize((5, 4), (2, 2), mode="linear"),
    "linear asymmetric": _resize((5, 4), (2, 2), mode="linear", coordinate_transformation_mode="asymmetric"),
    "linear align_corners": _resize((5, 4), (2, 3), mode="linear", coordinate_transformation_mode="align_corners"),
    "linear pytorch_half_pixel": _resize((5, 4), (1, 7), True, mode="linear",
                                         coordinate_transformation_mode="pytorch_half_pixel"),
    "linear to sizes": _resize((6, 4), (9, 10), True, mode="linear"),
    "linear scattered": _resize((13, 11), (10, 17), True, mode="linear"),
    "nearest scattered": _resize((13, 11), (10, 17), True, mode="nearest"),
    "linear down": _resize((8, 6), (0.5, 0.5), mode="linear"),
    "cubic": _resize((5, 4), (2, 2), mode="cubic"),
    "cubic exclude_outside": _resize((5, 4), (2, 2), mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5),
    "cubic down": _resize((8, 6), (0.5, 0.5), mode="cubic"),
    "cubic scattered": _resize((11, 4), (13, 8), True, mode="cubic"),
    "rows only": _resize((5, 4), (2, 1), mode="linear"),
    "cubic columns only": _resize((5, 4), (1, 2), mode="cubic"),
    "nearest, the first corner": ((1, 4, 5, 7), "Resize", [np.zeros(0, _FLOAT), np.array([1, 1, 0.6, 1.5], _FLOAT)],
                                  {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "opset": 11,
                                   "nearest_mode": "round_prefer_ceil"}),
    "half_pixel_symmetric": _resize((7, 5), (0.7, 1.5), mode="linear", opset=19,
                                    coordinate_transformation_mode="half_pixel_symmetric"),
    "as large as fits": ((1, 4, 6, 4), "Resize", [None, None, np.array([9, 7], np.int64)],
                         {"axes": [2, 3], "mode": "linear", "keep_aspect_ratio_policy": "not_larger"}),
    "as small as covers": ((1, 4, 6, 4), "Resize", [None, None, np.array([7, 9], np.int64)],
                           {"axes": [3, 2], "mode": "linear", "keep_aspect_ratio_policy": "not_smaller"}),
    "axes": ((1, 4, 5, 3), "Resize", [None, np.array([2.0, 1.5], _FLOAT)], {"axes": [3, 2], "mode": "linear"}),
    "of frames": ((1, 2, 3, 4, 5), "Resize", [None, np.array([1, 1, 2, 1, 1.5], _FLOAT)], {"mode": "nearest"}),
    "of a sequence": ((1, 2, 5), "Resize", [None, np.array([1, 1, 1.5], _FLOAT)], {"mode": "linear"}),
    "Upsample": ((1, 4, 3, 5), "Upsample", [np.array([1, 1, 3, 2], _FLOAT)], {"mode": "nearest", "opset": 9}),
    "opset 10": ((1, 4, 6, 5), "Resize", [np.array([1, 1, 0.5, 2], _FLOAT)], {"mode": "linear", "opset": 10}),
}  # fmt: skip
TRANSPOSED: dict[str, Case] = {
    "2x2 of stride 2": _transposed((4, 5), (4, 3, 2, 2), strides=[2, 2]),
    "3x3 of stride 2 with output padding": _transposed((4, 5), (4, 3, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1],
                                                       output_padding=[1, 1]),
    "4x4 of stride 2": _transposed((4, 5), (4, 3, 4, 4), strides=[2, 2], pads=[1, 1, 1, 1]),
    "5x5 of stride 3": _transposed((4, 4), (4, 3, 5, 5), strides=[3, 3], pads=[2, 2, 2, 2]),
    "3x3 of stride 2 cut": _transposed((4, 5), (4, 3, 3, 3), strides=[2, 2]),
    "3x3 of stride 1": _transposed((4, 5), (4, 3, 3, 3), pads=[1, 1, 1, 1]),
    "dilated": _transposed((6, 5), (4, 3, 3, 3), dilations=[2, 2], pads=[2, 2, 2, 2]),
    "dilated and cut": _transposed((6, 5), (4, 2, 3, 3), dilations=[2, 1], pads=[4, 2, 4, 1], group=2),
    "dilated of stride 2": _transposed((4, 5), (4, 2, 3, 3), strides=[2, 1], dilations=[2, 3], pads=[3, 2, 2, 2],
                                       group=2, output_padding=[1, 0]),
    "groups": _transposed((4, 5), (4, 2, 4, 4), strides=[2, 2], pads=[1, 1, 1, 1], group=2),
    "groups that overlap": _transposed((4, 5), (4, 2, 3, 3), strides=[2, 2], group=2),
    "groups apart": _transposed((4, 5), (4, 2, 2, 2), strides=[2, 2], group=2, bias=False),
    "dilated apart": _transposed((4, 5), (4, 3, 2, 2), strides=[2, 2], dilations=[3, 1], pads=[0, 0, 2, 0]),
    "kernel below stride": _transposed((4, 5), (4, 3, 2, 2), strides=[3, 3], output_padding=[1, 0]),
    "strides that differ": _transposed((4, 5), (4, 3, 4, 3), strides=[2, 1], pads=[1, 1, 1, 1]),
    "sequence": _transposed((7,), (4, 3, 4), strides=[2], pads=[1, 1]),
    "same_upper": _transposed((4, 5), (4, 3, 3, 3), strides=[2, 2], auto_pad="SAME_UPPER"),
    # of the size that is asked for the odd pixel is cut at the begin, but with SAME_UPPER
    "to an odd size": _transposed((5, 5), (4, 3, 3, 3), strides=[2, 2], output_shape=[10, 11]),
    "to a smaller size": _transposed((5, 4), (4, 3, 4, 4), strides=[2, 2], output_shape=[7, 9]),
    "to a size in phases": _transposed((4, 5), (4, 3, 4, 4), strides=[2, 2], output_shape=[8, 10]),
    "to a size with pads": _transposed((4, 5), (4, 3, 3, 3), strides=[2, 2], output_shape=[8, 10], pads=[1, 1, 1, 1]),
    "to a size with output padding": _transposed((4, 5), (4, 3, 3, 3), strides=[2, 2], output_shape=[8, 11],
                                                 output_padding=[1, 1]),
    "to a size same_upper": _transposed((5, 5), (4, 3, 3, 3), strides=[2, 2], output_shape=[10, 10],
                                        auto_pad="SAME_UPPER"),
    "to a size same_lower": _transposed((5, 5), (4, 3, 3, 3), strides=[2, 2], output_shape=[10, 10],
                                        auto_pad="SAME_LOWER"),
    "to a size of stride 1": _transposed((5, 6), (4, 3, 4, 3), output_shape=[5, 7]),
    "to a size in groups": _transposed((4, 5), (4, 2, 3, 3), strides=[2, 2], output_shape=[8, 10], group=2),
    "to a size dilated": _transposed((6, 5), (4, 3, 3, 2), dilations=[2, 2], output_shape=[7, 6]),
    "a sequence to a size": _transposed((7,), (4, 3, 4), strides=[3], output_shape=[19]),
}  # fmt: skip
CELLS: dict[str, Case] = {
    "LSTM": _cell("LSTM", 4, 3, 2), "LSTM reverse": _cell("LSTM", 4, 3, 1, "reverse"),
    "LSTM both": _cell("LSTM", 4, 2, 2, "bidirectional", state=True),
    "LSTM without biases": _cell("LSTM", 4, 2, 2, bias=False),
    "LSTM coupled": _cell("LSTM", 4, 2, 2, input_forget=1),
    "LSTM clipped": _cell("LSTM", 4, 2, 2, clip=0.2, state=True),
    "LSTM of other functions": _cell("LSTM", 4, 2, 1, activations=["HardSigmoid", "Relu", "Softsign"],
                                     activation_alpha=[0.3], activation_beta=[0.4]),
    "GRU": _cell("GRU", 3, 3, 2), "GRU reset behind": _cell("GRU", 3, 3, 2, linear_before_reset=1),
    "GRU both": _cell("GRU", 3, 2, 2, "bidirectional", linear_before_reset=1, state=True),
    "GRU reverse": _cell("GRU", 3, 2, 1, "reverse", state=True),
    "RNN": _cell("RNN", 1, 3, 2), "RNN both": _cell("RNN", 1, 3, 2, "bidirectional", bias=False, state=True),
    "RNN Relu": _cell("RNN", 1, 3, 2, activations=["Relu"], clip=0.5),
    "GRU of other functions": _cell("GRU", 3, 2, 1, "bidirectional", activation_alpha=[0.5, 0.3, 0.7, 2.0],
                                    activation_beta=[0.4, 0.6],
                                    activations=["HardSigmoid", "LeakyRelu", "Affine", "Elu"]),
    "RNN HardSigmoid": _cell("RNN", 1, 2, 1, activations=["HardSigmoid"]),
    "RNN ScaledTanh": _cell("RNN", 1, 3, 2, activations=["ScaledTanh"], activation_alpha=[1.5], activation_beta=[0.5]),
}  # fmt: skip


def _ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


MOVES: dict[str, Case] = {
    "Pad channels": ((1, 4, 5, 6), "Pad", [_ints(0, 1, 0, 0, 0, 3, 0, 0)], {}),
    "Pad with a number": ((1, 4, 5, 6), "Pad", [_ints(0, 0, 1, 2, 0, 0, 0, 1), np.array(1.5, _FLOAT)], {}),
    "Pad reflect": ((1, 4, 5, 6), "Pad", [_ints(0, 0, 1, 2, 0, 0, 2, 1)], {"mode": "reflect"}),
    "Pad edge": ((1, 4, 5, 6), "Pad", [_ints(0, 0, 1, 2, 0, 0, 2, 1)], {"mode": "edge"}),
    "Slice with steps": ((1, 4, 7, 6), "Slice", [_ints(1, 0), _ints(7, 6), _ints(2, 3), _ints(2, 3)], {}),
    "Slice backwards": ((1, 4, 7, 6), "Slice", [_ints(6), _ints(-100), _ints(2), _ints(-2)], {}),
    "Slice from the end": ((1, 4, 7, 6), "Slice", [_ints(-3, -9), _ints(7, 4), _ints(2, -1)], {}),
    "Pad some axes": ((1, 4, 5, 6), "Pad", [_ints(1, 2, 3, 0), None, _ints(-1, 1)], {}),
    "Concat with a constant": ((1, 4, 5, 6), "Concat", [_weights(1, 2, 5, 6), "x"], {"axis": -3}),
    "Split": ((1, 7, 2, 3), "Split", [_ints(2, 5)], {"axis": 1, "made": ["y", "y1"]}),
    "Slice of channels": ((1, 4, 5, 6), "Slice", [_ints(1), _ints(3), _ints(1)], {}),
    "Gather any": ((1, 4, 5, 6), "Gather", [_ints(2, 0, 3)], {"axis": 1}),
    "Gather repeated": ((1, 4, 5, 6), "Gather", [_ints(0, 0, 1, 3, 3)], {"axis": 3}),
    "Gather unevenly": ((1, 4, 5, 6), "Gather", [_ints(0, 1, 2, 1, 2, 3, 2, 3, -1)], {"axis": 2}),
    "GatherND": ((1, 4, 5, 6), "GatherND", [_ints(0, 3, 0, 1, 0, 3, 0, 0).reshape(1, 4, 2)], {}),
    "ScatterND": ((1, 4, 5, 6), "ScatterND", [_ints(0, 3, 0, 1).reshape(2, 2), _weights(2, 5, 6)], {}),
    "Gather one": ((1, 4, 5, 6), "Gather", [_ints(-1)], {"axis": 2}),
    "Expand": ((1, 4, 1, 6), "Expand", [_ints(1, 4, 3, 6)], {}),
    "Tile": ((1, 4, 3, 2), "Tile", [_ints(1, 1, 2, 3)], {}),
    "Transpose": ((1, 4, 5, 6), "Transpose", [], {"perm": [0, 2, 3, 1]}),
    "Reshape": ((1, 4, 5, 6), "Reshape", [_ints(1, 5, 4, 6)], {}),
    "DepthToSpace": ((1, 4, 5, 6), "DepthToSpace", [], {"blocksize": 2}),
    "SpaceToDepth": ((1, 4, 4, 6), "SpaceToDepth", [], {"blocksize": 2}),
}  # fmt: skip
FUNCTIONS: dict[str, Case] = {
    "HardSwish": ((1, 4, 5, 6), "HardSwish", [], {}),
    "HardSigmoid": ((1, 4, 5, 6), "HardSigmoid", [], {"alpha": 0.3}),
    "Gelu": ((1, 4, 5, 6), "Gelu", [], {}), "Gelu tanh": ((1, 4, 5, 6), "Gelu", [], {"approximate": "tanh"}),
    "Softmax of channels": ((1, 4, 5, 6), "Softmax", [], {"axis": 1}),
    "Softmax of rows": ((1, 4, 5, 6), "Softmax", [], {"axis": 2}),
    "LogSoftmax": ((1, 4, 5, 6), "LogSoftmax", [], {"axis": 3}),
    "LayerNormalization": ((1, 4, 5, 6), "LayerNormalization", [_weights(6), _weights(6)], {"axis": -1}),
    "LayerNormalization of maps": ((1, 4, 5, 6), "LayerNormalization", [_weights(5, 6)], {"axis": 2}),
    "InstanceNormalization": ((1, 4, 5, 6), "InstanceNormalization", [_weights(4), _weights(4)], {}),
    "LpNormalization": ((1, 4, 5, 6), "LpNormalization", [], {"axis": 1, "p": 2}),
    "LRN": ((1, 4, 5, 6), "LRN", [], {"size": 3}),
    "PRelu": ((1, 4, 5, 6), "PRelu", [_weights(4, 1, 1)], {}),
    "Elu": ((1, 4, 5, 6), "Elu", [], {"alpha": 0.7}), "Clip": ((1, 4, 5, 6), "Clip", [np.array(-0.5, _FLOAT)], {}),
}  # fmt: skip
OTHERS: dict[str, Case] = {
    "Einsum by constants": ((2, 3, 4), "Einsum", [_weights(3, 4, 5)], {"equation": "bij,ijk->bk"}),
    "Einsum grouped": ((2, 3, 4), "Einsum", [_weights(3, 4, 5)], {"equation": "bij,ijk->bik"}),
    "MatMul of many": ((2, 3, 4), "MatMul", [_weights(2, 4, 5)], {}),
    "Einsum without sums": ((3, 4), "Einsum", [_weights(4, 5)], {"equation": "ij,jk->jik"}),
    "Einsum of itself": ((2, 3, 4), "Einsum", ["x"], {"equation": "bij,bkj->bik"}),
    "Einsum turned": ((2, 3, 4), "Einsum", ["x"], {"equation": "bji,bjk->bki"}),
    "Einsum implicit": ((3, 4), "Einsum", [_weights(5, 3)], {"equation": "ij,ki"}),
    "Einsum of weights first": ((2, 3, 4), "Einsum", ["x"], {"equation": "oj,...ij->...io", "first": _weights(5, 4)}),
    "MatMul of weights first": ((2, 4, 3), "MatMul", ["x"], {"first": _weights(5, 4)}),
    "MatMul by a vector": ((2, 3, 4), "MatMul", [_weights(4)], {}),
    "MatMul by one": ((3, 4), "MatMul", [_weights(1, 4, 5)], {}),
    "MatMul of few by many": ((3, 4), "MatMul", [_weights(2, 4, 5)], {}),
    "Gemm of itself turned": ((4, 3), "Gemm", ["x", _weights(1, 4)], {"transB": 1, "alpha": 0.5, "beta": 3.0}),
    "Gemm of itself": ((4, 3), "Gemm", ["x", _weights(3)], {"transA": 1, "beta": 0.5}),
    "Gemm turned": ((3, 4), "Gemm", [_weights(3, 5), _weights(5)], {"transA": 1, "alpha": 0.5, "beta": 2.0}),
    # an addend is a bias only where it is the same for every row
    "Gemm with an addend a row": ((3, 5), "Gemm", [_weights(5, 4), _weights(3, 1)], {}),
    "Gemm of a square with an addend a row": ((4, 5), "Gemm", [_weights(5, 4), _weights(4, 1)], {"beta": 0.5}),
    "Gemm with addends for all": ((3, 5), "Gemm", [_weights(4, 5), _weights(3, 4)], {"transB": 1}),
    "Gemm with a row of addends": ((3, 5), "Gemm", [_weights(5, 4), _weights(1, 4)], {}),
    "Gemm with one addend": ((3, 5), "Gemm", [_weights(5, 4), _weights(1, 1)], {}),
    "Gemm with a number": ((3, 5), "Gemm", [_weights(5, 4), _weights()], {"alpha": 2.0}),
    "Gemm of one row": ((1, 5), "Gemm", [_weights(5, 4), _weights(1, 1)], {}),
    "Gemm turned with an addend a row": ((5, 3), "Gemm", [_weights(5, 4), _weights(3, 1)], {"transA": 1}),
    "MatMul of a square, then rows": ((4, 5), "MatMul", [_weights(5, 4)], {"then": _weights(4, 1)}),
    "Conv of frames": ((1, 2, 4, 5, 6), "Conv", [_weights(3, 2, 3, 3, 3), _weights(3)],
                       {"pads": [1, 1, 1, 1, 1, 1], "strides": [2, 1, 1]}),
    "Conv of frames in groups": ((1, 4, 4, 5, 6), "Conv", [_weights(4, 2, 2, 3, 3)], {"group": 2}),
    "Conv along time": ((1, 2, 6, 3, 3), "Conv", [_weights(3, 2, 3, 1, 1)], {"dilations": [2, 1, 1]}),
    "Conv of windows": ((1, 2, 4, 5, 6), "Conv", [_weights(3, 2, 2, 3, 3)], {"strides": [2, 1, 1]}),
    "Conv of a sequence": ((1, 3, 9), "Conv", [_weights(4, 3, 3), _weights(4)], {"pads": [1, 1]}),
    "Conv same_lower": ((2, 3, 8, 7), "Conv", [_weights(4, 3, 3, 2)],
                        {"auto_pad": "SAME_LOWER", "strides": [2, 3]}),
    "Conv same_upper": ((1, 3, 8, 7), "Conv", [_weights(4, 3, 2, 4)], {"auto_pad": "SAME_UPPER"}),
    "Conv of one side": ((1, 4, 6, 9), "Conv", [_weights(6, 2, 2, 3), _weights(6)],
                         {"group": 2, "pads": [1, 0, 0, 2], "strides": [1, 2], "dilations": [2, 1]}),
    "Conv, then a norm and more": (
        (1, 3, 4, 5), "Conv", [_weights(4, 3, 1, 1), _weights(4)],
        {"then": [("BatchNormalization", _weights(4), _weights(4), _weights(4), _weights(4) ** 2),
                  ("Mul", _weights(4, 1, 1)), ("Sub", _weights(1, 4, 1, 1)), ("Relu",)]}),
    "Conv, then by and from numbers": ((1, 3, 4, 5), "Conv", [_weights(4, 3, 1, 1), _weights(4)], {
        "then": [("~Sub", _weights(4, 1, 1)), ("Sigmoid",), ("~Div", _weights(4, 1, 1))]}),
    "Conv, then from, then by numbers": ((1, 3, 4, 5), "Conv", [_weights(4, 3, 1, 1)], {
        "then": [("Div", _weights(4, 1, 1) + 2), ("~Sub", _weights(4, 1, 1)), ("Mul", _weights(4, 1, 1))]}),
    "Conv by numbers": ((1, 3, 4, 5), "Conv", [_weights(4, 3, 1, 1)], {"then": [("Mul", _weights(4, 1, 1))]}),
    "Conv divides": ((1, 3, 4, 5), "Conv", [_weights(4, 3, 1, 1), np.full(4, 9, _FLOAT)], {
        "then": [("~Div", _weights(4, 1, 1))]}),
    "MatMul, then a sum and a factor": ((3, 5), "MatMul", [_weights(5, 4)],
                                        {"then": [("Add", _weights(4)), ("Mul", _weights(4)), ("Add", _weights(4))]}),
    "MaxPool apart": ((1, 2, 9, 8), "MaxPool", [], {"kernel_shape": [3, 2], "strides": [2, 1], "dilations": [2, 3],
                                                    "pads": [1, 0, 2, 1]}),
    "MaxPool rounded up": ((1, 2, 8, 6), "MaxPool", [], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "AveragePool of pads": ((1, 2, 6, 5), "AveragePool", [], {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1],
                                                              "count_include_pad": 1}),
    "MaxPool same_lower": ((1, 2, 7, 6), "MaxPool", [], {"kernel_shape": [4, 3], "strides": [2, 2],
                                                         "auto_pad": "SAME_LOWER"}),
    "AveragePool rounded up": ((1, 2, 8, 7), "AveragePool", [], {"kernel_shape": [3, 2], "strides": [2, 3],
                                                                 "pads": [1, 0, 0, 1], "ceil_mode": 1}),
    "AveragePool of a sequence": ((1, 2, 9), "AveragePool", [], {"kernel_shape": [3], "strides": [2], "pads": [1, 0]}),
    "GlobalMaxPool of frames": ((2, 2, 4, 5, 6), "GlobalMaxPool", [], {}),
    "GlobalMaxPool of a sequence": ((2, 3, 5), "GlobalMaxPool", [], {}),
    "MaxPool of padded frames": ((1, 2, 4, 5, 6), "MaxPool", [], {"kernel_shape": [3, 2, 2], "strides": [1, 2, 1],
                                                                  "pads": [1, 0, 0, 1, 1, 0]}),
    "Conv of frames apart": ((1, 2, 5, 5, 6), "Conv", [_weights(3, 2, 2, 3, 3)], {"dilations": [2, 1, 1]}),
    "AveragePool of padded frames": ((1, 2, 4, 5, 6), "AveragePool", [], {
        "kernel_shape": [2, 2, 2], "pads": [1, 0, 1, 0, 1, 0], "count_include_pad": 1}),
    "Conv of padded frames": ((1, 2, 5, 5, 3), "Conv", [_weights(3, 2, 2, 1, 1), _weights(3)],
                              {"pads": [1, 0, 0, 0, 0, 0], "strides": [2, 1, 1], "dilations": [2, 1, 1]}),
    "MeanVarianceNormalization": ((2, 3, 4, 5), "MeanVarianceNormalization", [], {"axes": [1, 3]}),
    "MaxPool of frames": ((1, 2, 4, 6, 6), "MaxPool", [], {"kernel_shape": [2, 2, 2], "strides": [2, 2, 2]}),
    "AveragePool of frames": ((1, 2, 4, 6, 6), "AveragePool", [], {"kernel_shape": [2, 3, 2], "strides": [1, 2, 2]}),
    "GlobalAveragePool of frames": ((1, 2, 4, 5, 6), "GlobalAveragePool", [], {}),
    "ReduceMean of channels": ((1, 4, 5, 6), "ReduceMean", [_ints(1)], {}),
    "ReduceMean of rows": ((1, 4, 5, 6), "ReduceMean", [_ints(2)], {"keepdims": 0}),
    "ReduceSum of channels": ((1, 4, 5, 6), "ReduceSum", [_ints(1)], {}),
    "ReduceSum of all": ((2, 3, 4), "ReduceSum", [], {"keepdims": 0}),
    "ReduceMin": ((1, 4, 5, 6), "ReduceMin", [_ints(2, 3)], {}),
    "ReduceL1": ((1, 4, 5, 6), "ReduceL1", [_ints(3)], {}), "ReduceL2": ((1, 4, 5, 6), "ReduceL2", [_ints(-1)], {}),
    "ReduceSumSquare": ((2, 3, 4), "ReduceSumSquare", [_ints(1)], {}),
    "ReduceMean without axes": ((2, 3, 4), "ReduceMean", [_ints()], {"noop_with_empty_axes": 1, "then": [("Relu",)]}),
    "ReduceMax of two": ((2, 4, 5, 6), "ReduceMax", [_ints(1, 3)], {}),
}  # fmt: skip


def _padded(
    shape: tuple[int, ...], ahead: list[int], op: str, *constants: np.ndarray, **attributes: object
) -> Case:  # fmt: skip
    return shape, op, constants, {"ahead": ahead, **attributes}


#: What frameworks with padding at one side only export: the input is padded, then comes a layer.
PADDED: dict[str, Case] = {
    "Conv": _padded((1, 1, 4, 4), [0, 0, 1, 1, 0, 0, 1, 1], "Conv", _weights(2, 1, 3, 3)),
    "Conv with biases": _padded((1, 3, 6, 5), [0, 0, 1, 1, 0, 0, 1, 1], "Conv", _weights(4, 3, 3, 3), _weights(4)),
    "Conv of stride 2": _padded((1, 3, 8, 8), [0, 0, 0, 0, 0, 0, 1, 1], "Conv", _weights(4, 3, 3, 3), strides=[2, 2]),
    "Conv with pads": _padded((1, 3, 6, 5), [0, 0, 1, 0, 0, 0, 0, 2], "Conv", _weights(4, 3, 3, 3), pads=[1, 1, 1, 1]),
    "Conv by channel": _padded((1, 4, 6, 6), [0, 0, 1, 1, 0, 0, 1, 1], "Conv", _weights(4, 1, 3, 3), group=4),
    "Conv of a sequence": _padded((1, 3, 9), [0, 0, 2, 0, 0, 0], "Conv", _weights(4, 3, 3)),
    "Conv, then a sum": _padded((1, 3, 6, 6), [0, 0, 1, 1, 0, 0, 1, 1], "Conv", _weights(4, 3, 3, 3),
                                then=_weights(4, 1, 1)),
    "Conv, then columns": _padded((1, 3, 4, 4), [0, 0, 1, 1, 0, 0, 1, 1], "Conv", _weights(4, 3, 3, 3),
                                  then=_weights(4, 1)),
    "of more channels behind": _padded((1, 3, 6, 6), [0, 0, 1, 1, 0, 1, 1, 1], "Conv", _weights(4, 4, 3, 3)),
    "of more channels": _padded((1, 3, 6, 6), [0, 1, 1, 1, 0, 0, 1, 1], "Conv", _weights(4, 4, 3, 3)),
    "Conv behind a reflection": _padded((1, 2, 5, 6), [0, 0, 1, 1, 0, 0, 1, 1], "Conv", _weights(4, 2, 3, 3),
                                        pad=("reflect",)),
    "Conv behind ones": _padded((1, 2, 5, 6), [0, 0, 1, 1, 0, 0, 1, 1], "Conv", _weights(4, 2, 3, 3),
                                pad=("constant", np.array(1.0, _FLOAT))),
    "Conv dilated": _padded((1, 2, 7, 6), [0, 0, 2, 0, 0, 0, 0, 2], "Conv", _weights(4, 2, 3, 3), dilations=[2, 1],
                            pads=[1, 0, 0, 0]),
    "Conv of what others read": _padded((1, 2, 5, 6), [0, 0, 1, 1, 0, 0, 1, 1], "Conv", _weights(2, 2, 3, 3),
                                        pads=[1, 1, 1, 1], then=[("Add", "padded")]),
    "Conv far away": _padded((1, 2, 7, 6), [0, 0, 0, 3, 0, 0, 0, 0], "Conv", _weights(4, 2, 3, 3), dilations=[2, 1]),
    "Conv same": _padded((1, 2, 7, 6), [0, 0, 1, 0, 0, 0, 0, 1], "Conv", _weights(4, 2, 3, 3), auto_pad="SAME_UPPER",
                         strides=[2, 2]),
    "MaxPool": _padded((1, 3, 6, 6), [0, 0, 0, 0, 0, 0, 1, 1], "MaxPool", kernel_shape=[3, 3], strides=[2, 2]),
    "AveragePool": _padded((1, 3, 6, 6), [0, 0, 1, 1, 0, 0, 1, 1], "AveragePool", kernel_shape=[2, 2]),
    "ConvTranspose": _padded((1, 3, 4, 4), [0, 0, 1, 1, 0, 0, 1, 1], "ConvTranspose", _weights(3, 2, 2, 2),
                             strides=[2, 2]),
}  # fmt: skip


def _attention(
    heads: tuple[int, int], tokens: tuple[int, int, int], *mask: object, apart: bool = True, **attributes: object
) -> Case:  # fmt: skip
    """Heads of queries and of keys; queries, keys, and keys of before; 2 images, 4 features of keys and 3 of values."""
    (many, few), (queries, keys, past) = heads, tokens
    if apart:
        shape, held = (2, many, queries, 4), [_weights(2, few, keys, 4), _weights(2, few, keys, 3)]
    else:
        shape, held = (2, queries, many * 4), [_weights(2, keys, few * 4), _weights(2, keys, few * 3)]
        attributes |= {"q_num_heads": many, "kv_num_heads": few}
    before = [_weights(2, few, past, 4), _weights(2, few, past, 3)] if past else []
    made = ["y", "keys", "values"][: 3 if past else 1]
    return shape, "Attention", [*held, *(mask or [None]), *before], {"opset": 23, "made": made, **attributes}


ATTENTION: dict[str, Case] = {
    "plain": _attention((2, 2), (3, 5, 0)), "shared": _attention((4, 2), (3, 5, 0), _weights(3, 5), scale=0.3),
    "beside": _attention((2, 2), (3, 5, 0), apart=False), "capped": _attention((2, 1), (3, 3, 0), softcap=0.4),
    "causal": _attention((2, 2), (3, 3, 0), is_causal=1),
    "causal with a past": _attention((2, 1), (3, 3, 2), is_causal=1, apart=False),
    "masked": _attention((2, 2), (3, 4, 2), np.arange(18).reshape(3, 6) % 4 > 0),
    "both": _attention((2, 2), (3, 3, 0), _weights(2, 1, 3, 3), is_causal=1),
}  # fmt: skip
#: What is read, and of which no C is written, or not between convolutions.
READ: dict[str, Case] = {
    "GatherElements": ((3, 4), "GatherElements", [_ints(2, 0, 0, -1, 1, 2, 0, 0).reshape(2, 4)], {"axis": 0}),
    "Expand in front": ((4, 1, 3), "Expand", [_ints(2, 4, 5, 1)], {}),
    "LayerNormalization by itself": ((6,), "LayerNormalization", ["x", "x"], {"axis": 0}),
    "a constant less": ((2, 4, 5), "Sub", ["x"], {"first": _weights(5)}),
    "a square": ((2, 4, 5), "Mul", ["x"], {}),
    "a mask": ((2, 4, 5), "Where", ["x", _weights(4, 1)], {"first": _weights(2, 1, 5) > 0}),
    "the mean of three": ((2, 4, 5), "Mean", ["x", _weights(4, 5)], {}),
    "more axes": ((4, 5), "Add", [_weights(2, 1, 5)], {}),
    "BatchNormalization": ((2, 4, 5), "BatchNormalization", [*map(_weights, (4, 4, 4)), _weights(4) ** 2], {}),
    "ReduceProd": ((2, 3, 4), "ReduceProd", [_ints(0, -1)], {"keepdims": 0}),
    "ReduceLogSumExp": ((2, 3, 4), "ReduceLogSumExp", [_ints(1)], {}),
}  # fmt: skip
KINDS: dict[str, dict[str, Case]] = {
    "attention": ATTENTION,
    "Resize": RESIZE, "ConvTranspose": TRANSPOSED, "cell": CELLS, "move": MOVES, "function": FUNCTIONS, "other": OTHERS,
    "padded": PADDED,
}  # fmt: skip


def model(case: Case, *, between: bool = False, opset: int = 21) -> onnx.ModelProto:
    """Return a model of an operator; `between` 1x1 convolutions and functions, where it takes maps and makes maps."""
    shape, op, constants, attributes = case[0], case[1], case[2], dict(case[3])
    ahead, then, opset = attributes.pop("ahead", None), attributes.pop("then", ()), attributes.pop("opset", opset)
    beyond, first = attributes.pop("pad", ("constant",)), attributes.pop("first", None)
    tensors, nodes, source = [], [], "x"

    def constant(name: str, value: object) -> str:
        if value is None or isinstance(value, str):
            return value or ""
        tensors.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    if between:
        nodes.append(helper.make_node("Conv", ["x", constant("w_in", _weights(shape[1], shape[1], 1, 1))], ["c"]))
        nodes.append(helper.make_node("Relu", ["c"], ["r"]))
        source = "r"
    if ahead is not None:
        pads = [source, constant("pads", np.array(ahead, np.int64)), *(constant("beyond", k) for k in beyond[1:])]
        nodes.append(helper.make_node("Pad", pads, ["padded"], mode=beyond[0]))
        source = "padded"
    given = [source] if first is None else [constant("first", first)]
    given += [constant(f"k{k}", value) for k, value in enumerate(constants)]
    made = ["y", "y_h", "y_c"] if op == "LSTM" else ["y", "y_h"] if op in ("GRU", "RNN") else ["y"]
    made = attributes.pop("made", made)
    nodes.append(helper.make_node(op, given, made, name="it", **attributes))  # type: ignore[arg-type]
    for behind, *held in [("Add", then)] if isinstance(then, np.ndarray) else then:  # type: ignore[attr-defined]
        given = [made[0], *(constant(f"{made[0]}{k}", value) for k, value in enumerate(held))]
        made = [f"{made[0]}_{behind}"]
        turned = behind.startswith("~")  # the constant comes first
        nodes.append(helper.make_node(behind.strip("~"), given[::-1] if turned else given, made))
    if between:
        nodes.append(helper.make_node("LeakyRelu", ["y"], ["v"], alpha=0.5))
        nodes.append(helper.make_node("Conv", ["v", constant("w_out", _weights(3, _channels(case), 1, 1))], ["z"]))
        made = ["z"]
    whole = model_of(nodes, {"x": shape}, made, tensors, opset=opset, ir=10)
    return onnx.shape_inference.infer_shapes(whole, data_prop=True)


def _channels(case: Case) -> int:
    """The channels of what an operator makes."""
    alone = model(case)
    return alone.graph.output[0].type.tensor_type.shape.dim[1].dim_value


# ---- what a model is read as -----------------------------------------------------------------------------------------


def _window(o: Conv | Pool, layer: Layer) -> dict[str, object]:
    """As it is planned; what lies behind a map is not said there."""
    apart = {"dilations": (layer.dilation_h, layer.dilation_w)} if o.dilation != (1, 1) else {}
    return apart | {"kernel_shape": (layer.kh, layer.kw), "strides": (layer.stride_h, layer.stride_w),
                    "pads": (layer.pad_top, layer.pad_left, *o.pad[2:])}  # fmt: skip


def _pooling(o: Pool, layer: Layer, node: Node, opset: int) -> tuple[str, list[str], dict[str, object]]:
    """Its operator, further inputs, attributes; a reduction is of rows and columns, however they came there."""
    if o.fn == "max":
        return "MaxPool", [], _window(o, layer) | {"ceil_mode": int(o.ceil_mode)}
    if o.fn == "avg":
        counted = {"count_include_pad": node.integer("count_include_pad", 0), "ceil_mode": int(o.ceil_mode)}
        return "AveragePool", [], _window(o, layer) | counted
    late = opset >= 18 or node.op == "ReduceSum"
    if not node.op.startswith("Reduce") or late:
        return node.op, ["rows, columns"] if node.op.startswith("Reduce") else [], {}
    return node.op, [], {"axes": [2, 3]}


def as_read(path: Path) -> tuple[OnnxModel, onnx.ModelProto]:
    """What the operators of a file are said to be, as a model: windows, groups and axes are those that are planned.

    All that operators make are results.
    """
    found = read_model(path)
    nodes, held, names = list[onnx.NodeProto](), dict[str, np.ndarray](), found.tensor_of
    layers = {layer.name: layer for layer in found.network.layers}

    def own(tensor: str) -> str:
        if tensor and tensor not in found.makers and tensor not in names.values():
            held[tensor] = found.constant(tensor)
        return names[found.makers[tensor]] if tensor in found.makers else tensor

    def put(op: str, inputs: Sequence[str], output: str, **fields: object) -> None:
        nodes.append(helper.make_node(op, inputs, [output], **fields))  # type: ignore[arg-type]

    def again(node: onnx.NodeProto, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        nodes.append(onnx.NodeProto())
        nodes[-1].CopyFrom(node)
        nodes[-1].input[:], nodes[-1].output[:] = inputs, outputs

    for o in found.network.operators:
        if o.name not in names:  # a result that others read, too
            names[o.name] = names[o.inputs[0]]
            continue
        made, given = names[o.name], [names[name] for name in o.inputs]
        if isinstance(o, Input):
            if o.name not in found.inputs.values():
                held[made] = found.constant(made) * (not o.zeros)
            continue
        node, behind = found.node(o.name), [*map(Node, found.folded.get(o.name, ()))]
        chain = [made] if not behind else [f"{made}:{k}" for k in range(len(behind))] + [made]
        if body := found.body(o.name):
            inner = {tensor for one in body for tensor in one.proto.output} | {*given}
            for one in body:
                again(one.proto, [t if t in inner else own(t) for t in one.proto.input], one.proto.output)
        elif isinstance(o, Conv):
            weights = found.constant(node.input(1))
            held[f"{made}:w"] = weights.reshape(*weights.shape[:2], *o.kernel)
            put(
                "Conv",
                [given[0], f"{made}:w", own(node.input(2))],
                chain[0],
                group=layers[o.name].g,
                **_window(o, layers[o.name]),
            )
        elif isinstance(o, Pool):
            held["rows, columns"] = np.array([2, 3])
            op, inputs, fields = _pooling(o, layers[o.name], node, found.opset)
            put(op, [*given, *inputs], made, **fields)
        elif isinstance(o, Resample) and len(given) == 1:
            for k, equation in ((1, "bcjk,ij->bcik"), (2, "bckj,ij->bcki")):
                if node.input(k):
                    held[node.input(k)] = found.constant(node.input(k)).astype(np.float32)
                    put("Einsum", [given[0], node.input(k)], f"{made}:{k}", equation=equation)
                    given = [f"{made}:{k}"]
            put("Identity", given, made)
        elif isinstance(o, Concat) and node.op == "Concat":
            put("Concat", given, made, axis=o.axis)
        elif isinstance(o, MatMul) and (len(given) == 2 or len(o.shape) != 2):
            turned, lead = (o.transpose_b, "...") if len(given) == 2 else (node.integer("transB", 0), "")
            equation = f"...{'ji' if o.transpose_a else 'ij'},{lead}{'kj' if turned else 'jk'}->...ik"
            put("Einsum", [*given, own(node.input(1))][:2], f"{made}:p", equation=equation)
            added = own(node.input(2)) if o.bias and not behind else ""
            put("Add" if added else "Identity", [f"{made}:p", added][: 1 + bool(added)], chain[0])
        elif node.output not in {tensor for one in nodes for tensor in one.output}:  # a Split makes several maps
            several = len(node.proto.output) > 1
            again(node.proto, [*map(own, node.proto.input)], node.proto.output if several else chain[:1])
        for k, one in enumerate(behind):
            mine = [chain[k] if found.makers.get(t) == o.name else own(t) for t in one.proto.input]
            again(one.proto, mine, chain[k + 1 : k + 2])
    size = {names[o.name]: o.shape for o in found.network.operators}
    inputs = [helper.make_tensor_value_info(t, found.elements[t], size[names[n]]) for t, n in found.inputs.items()]
    results = [onnx.ValueInfoProto(name=tensor) for node in nodes for tensor in node.output if tensor in size]
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in held.items()]
    graph = helper.make_graph(nodes, "read", inputs, results, constants)
    opsets = [helper.make_opsetid("", max(found.opset, 13))]
    return found, helper.make_model(graph, opset_imports=opsets, ir_version=10)


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray], *, exact: bool = False) -> dict[str, np.ndarray]:
    """The results of a model, by onnxruntime, node by node.

    `exact`: where a processor has no VNNI the kernels of operators on bytes leave 16 bits; others, which do not, are
    among its optimisations.
    """
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    level = runtime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_EXTENDED if exact else level.ORT_DISABLE_ALL
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([info.name for info in model.graph.output], session.run(None, feeds), strict=True))


def computed(path: Path, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The results of a file by what its operators are said to be; shapes, and where parts lie, are as planned."""
    found, read = as_read(path)
    values = {found.tensor_of[n]: feeds[t] for t, n in found.inputs.items()} | run(read, feeds)
    biases = {layer.name: layer.bias for layer in found.network.layers}
    for o in found.network.operators:
        if isinstance(o, Conv | MatMul) and len(o.inputs) == 1:  # a factor makes no bias
            taken = {one.op_type for one in found.folded.get(o.name, ())} & {"Add", "Sub", "BatchNormalization"}
            assert biases[o.name] == bool(found.node(o.name).input(2) or taken), o.name
        assert isinstance(o, Input) or values[found.tensor_of[o.name]].shape == o.shape, o.name
        if isinstance(o, Reshape) and o.starts and found.tensor_of[o.inputs[0]] in values:
            steps = o.steps or (1,) * len(o.shape)
            part = tuple(slice(b, b + (n - 1) * s + 1, s) for b, n, s in zip(o.starts, o.shape, steps, strict=True))
            assert (values[found.tensor_of[o.inputs[0]]][part] == values[found.tensor_of[o.name]]).all(), o.name
    return {tensor: values[found.tensor_of[found.results[tensor]]] for tensor in found.outputs}
