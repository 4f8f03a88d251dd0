"""Small models of one operator each, between convolutions or alone, for the C that is written of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.onnx_models import model_of

#: Name -> shape of the input, operator, further inputs (constants), attributes; `ahead` are pads of zeros before it.
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
        constants += [None, _weights(ways, batch, hidden)] + ([_weights(ways, batch, hidden)] if op == "LSTM" else [])
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
    "LSTM coupled": _cell("LSTM", 4, 2, 2, input_forget=1), "LSTM clipped": _cell("LSTM", 4, 2, 2, clip=0.3),
    "LSTM of other functions": _cell("LSTM", 4, 2, 1, activations=["HardSigmoid", "Relu", "Softsign"],
                                     activation_alpha=[0.3], activation_beta=[0.4]),
    "GRU": _cell("GRU", 3, 3, 2), "GRU reset behind": _cell("GRU", 3, 3, 2, linear_before_reset=1),
    "GRU both": _cell("GRU", 3, 2, 2, "bidirectional", linear_before_reset=1, state=True),
    "GRU reverse": _cell("GRU", 3, 2, 1, "reverse", state=True),
    "RNN": _cell("RNN", 1, 3, 2), "RNN both": _cell("RNN", 1, 3, 2, "bidirectional", bias=False),
    "RNN Relu": _cell("RNN", 1, 3, 2, activations=["Relu"], clip=0.5),
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
    "Elu": ((1, 4, 5, 6), "Elu", [], {"alpha": 0.7}), "Clip": ((1, 4, 5, 6), "Clip", [np.array(-0.5, _FLOAT)], {}),
}  # fmt: skip
OTHERS: dict[str, Case] = {
    "Einsum by constants": ((2, 3, 4), "Einsum", [_weights(3, 4, 5)], {"equation": "bij,ijk->bk"}),
    "Einsum grouped": ((2, 3, 4), "Einsum", [_weights(3, 4, 5)], {"equation": "bij,ijk->bik"}),
    "MatMul of many": ((2, 3, 4), "MatMul", [_weights(2, 4, 5)], {}),
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
    "of more channels": _padded((1, 3, 6, 6), [0, 1, 1, 1, 0, 0, 1, 1], "Conv", _weights(4, 4, 3, 3)),
    "MaxPool": _padded((1, 3, 6, 6), [0, 0, 0, 0, 0, 0, 1, 1], "MaxPool", kernel_shape=[3, 3], strides=[2, 2]),
    "AveragePool": _padded((1, 3, 6, 6), [0, 0, 1, 1, 0, 0, 1, 1], "AveragePool", kernel_shape=[2, 2]),
    "ConvTranspose": _padded((1, 3, 4, 4), [0, 0, 1, 1, 0, 0, 1, 1], "ConvTranspose", _weights(3, 2, 2, 2),
                             strides=[2, 2]),
}  # fmt: skip
KINDS: dict[str, dict[str, Case]] = {
    "Resize": RESIZE, "ConvTranspose": TRANSPOSED, "cell": CELLS, "move": MOVES, "function": FUNCTIONS, "other": OTHERS,
    "padded": PADDED,
}  # fmt: skip


def model(case: Case, *, between: bool = False, opset: int = 21) -> onnx.ModelProto:
    """Return a model of an operator; `between` 1x1 convolutions and functions, where it takes maps and makes maps."""
    shape, op, constants, attributes = case[0], case[1], case[2], dict(case[3])
    ahead, then = attributes.pop("ahead", None), attributes.pop("then", None)
    tensors, nodes, source = [], [], "x"

    def constant(name: str, value: object) -> str:
        if value is None:
            return ""
        tensors.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    if between:
        nodes.append(helper.make_node("Conv", ["x", constant("w_in", _weights(shape[1], shape[1], 1, 1))], ["c"]))
        nodes.append(helper.make_node("Relu", ["c"], ["r"]))
        source = "r"
    if ahead is not None:
        nodes.append(helper.make_node("Pad", [source, constant("pads", np.array(ahead, np.int64))], ["padded"]))
        source = "padded"
    given = [source, *(constant(f"k{k}", value) for k, value in enumerate(constants))]
    made = ["y", "y_h", "y_c"] if op == "LSTM" else ["y", "y_h"] if op in ("GRU", "RNN") else ["y"]
    nodes.append(helper.make_node(op, given, made, name="it", **attributes))  # type: ignore[arg-type]
    if then is not None:
        nodes.append(helper.make_node("Add", ["y", constant("then", then)], ["sum"]))
        made = ["sum"]
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
