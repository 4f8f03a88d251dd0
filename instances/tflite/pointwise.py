"""Operators that make each element from the same one of their inputs, reductions, and changes of element types."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import tflite

from instances.tflite.model import Operator
from instances.tflite.scope import Converters, Scope, Untranslatable, channels_first

CONVERTERS = Converters()


_UNARY = {
    "ABS": "Abs", "CEIL": "Ceil", "COS": "Cos", "ELU": "Elu", "EXP": "Exp", "FLOOR": "Floor", "HARD_SWISH": "HardSwish",
    "LOG": "Log", "LOGICAL_NOT": "Not", "LOGISTIC": "Sigmoid", "NEG": "Neg", "RELU": "Relu", "ROUND": "Round",
    "SIGN": "Sign", "SIN": "Sin", "SQRT": "Sqrt", "TANH": "Tanh",
}  # fmt: skip
_BINARY = {
    "ADD": "Add", "DIV": "Div", "EQUAL": "Equal", "GREATER": "Greater", "GREATER_EQUAL": "GreaterOrEqual",
    "LESS": "Less", "LESS_EQUAL": "LessOrEqual", "LOGICAL_AND": "And", "LOGICAL_OR": "Or", "MAXIMUM": "Max",
    "MINIMUM": "Min", "MUL": "Mul", "POW": "Pow", "SUB": "Sub",
}  # fmt: skip
_CLIPPED = {"RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0)}
_REDUCED = {
    "MEAN": "ReduceMean", "REDUCE_MAX": "ReduceMax", "REDUCE_MIN": "ReduceMin", "REDUCE_PROD": "ReduceProd",
    "SUM": "ReduceSum",
}  # fmt: skip
#: Activation that is fused into an operator -> operator.
_FUSED = {
    tflite.ActivationFunctionType.RELU: "RELU", tflite.ActivationFunctionType.RELU_N1_TO_1: "RELU_N1_TO_1",
    tflite.ActivationFunctionType.RELU6: "RELU6", tflite.ActivationFunctionType.TANH: "TANH",
    tflite.ActivationFunctionType.SIGN_BIT: "",
}  # fmt: skip


def activated(scope: Scope, name: str, code: int, label: str, kind: str = "float32") -> str:
    """What an activation that is fused into an operator makes of its real numbers."""
    if code == tflite.ActivationFunctionType.NONE:
        return name
    operator = _FUSED.get(code, "")
    if operator in _CLIPPED:
        return _clip(scope, name, f"{label}/{operator.lower()}", *_CLIPPED[operator], kind)
    if operator not in _UNARY:
        raise Untranslatable(f"activation {code} is fused into it")
    return scope.node(_UNARY[operator], name, name=f"{label}/{operator.lower()}")


def _clip(scope: Scope, name: str, label: str, low: float, high: float, kind: str = "float32") -> str:
    ends = (scope.literal(np.array(end, kind)) for end in (low, high))
    return scope.node("Clip", name, *ends, name=label)


@CONVERTERS.of(*_UNARY)
def _unary(scope: Scope, operator: Operator) -> None:
    _single(scope, operator, _UNARY[operator.name])


def _single(scope: Scope, operator: Operator, op: str, **attributes: Any) -> None:
    """An operator of one input, in the order that this has."""
    x, y = operator.input(0), operator.outputs[0]
    first = scope.is_first((x,), len(scope.shape(x)))
    made = scope.node(op, scope.value(x, first=first), name=scope.label(operator), **attributes)
    scope.put(y, made, first=first)


@CONVERTERS.of(*_CLIPPED)
def _clipped(scope: Scope, operator: Operator) -> None:
    x, y = operator.input(0), operator.outputs[0]
    first = scope.is_first((x,), len(scope.shape(x)))
    made = _clip(scope, scope.value(x, first=first), scope.label(operator), *_CLIPPED[operator.name])
    scope.put(y, made, first=first)


@CONVERTERS.of("LEAKY_RELU")
def _leaky(scope: Scope, operator: Operator) -> None:
    _single(scope, operator, "LeakyRelu", alpha=float(operator.option("Alpha")))


@CONVERTERS.of("GELU")
def _gelu(scope: Scope, operator: Operator) -> None:
    _single(scope, operator, "Gelu", approximate="tanh" if operator.option("Approximate") else "none")


@CONVERTERS.of("RSQRT", "SQUARE")
def _two_nodes(scope: Scope, operator: Operator) -> None:
    x, y, label = operator.input(0), operator.outputs[0], scope.label(operator)
    first = scope.is_first((x,), len(scope.shape(x)))
    value = scope.value(x, first=first)
    if operator.name == "SQUARE":
        made = scope.node("Mul", value, value, name=label)
    else:
        made = scope.node("Reciprocal", scope.node("Sqrt", value, name=f"{label}/sqrt"), name=label)
    scope.put(y, made, first=first)


@CONVERTERS.of(
    *_BINARY, "ADD_N", "FLOOR_DIV", "FLOOR_MOD", "NOT_EQUAL", "PRELU", "SELECT", "SELECT_V2", "SQUARED_DIFFERENCE"
)
def _broadcast(scope: Scope, operator: Operator) -> None:
    """An operator of several inputs that are broadcast, in the order that one of them has."""
    y, label, name = operator.outputs[0], scope.label(operator), operator.name
    rank = len(scope.shape(y))
    first = scope.is_first(operator.inputs, rank)
    if name == "SELECT" and len({len(scope.shape(k)) for k in operator.inputs}) > 1:
        raise Untranslatable("its condition has fewer axes than what it selects")
    read = [scope.operand(k, rank, first=first) for k in operator.inputs]
    match name:
        case "ADD_N":
            made = scope.node("Sum", *read, name=label)
        case "FLOOR_DIV":
            made = scope.node("Div", *read, name=label)
            if scope.tensor(y).kind.startswith("float"):
                made = scope.node("Floor", made, name=f"{label}/floor")
            else:
                raise Untranslatable("it divides whole numbers")
        case "FLOOR_MOD":
            if scope.tensor(y).kind.startswith("float"):
                whole = scope.node("Floor", scope.node("Div", *read, name=f"{label}/div"), name=f"{label}/floor")
                made = scope.node("Sub", read[0], scope.node("Mul", whole, read[1], name=f"{label}/mul"), name=label)
            else:
                made = scope.node("Mod", *read, name=label)
        case "NOT_EQUAL":
            made = scope.node("Not", scope.node("Equal", *read, name=f"{label}/equal"), name=label)
        case "PRELU":
            made = scope.node("PRelu", *read, name=label)
        case "SELECT" | "SELECT_V2":
            made = scope.node("Where", *read, name=label)
        case "SQUARED_DIFFERENCE":
            less = scope.node("Sub", *read, name=f"{label}/sub")
            made = scope.node("Mul", less, less, name=label)
        case _:
            made = scope.node(_BINARY[name], *read, name=label)
    if name in ("ADD", "SUB", "MUL", "DIV"):
        tensor = scope.tensor(y)
        kind = tensor.kind if tensor.kind in ("int32", "int64") and not tensor.quantised else "float32"
        made = activated(scope, made, operator.option("FusedActivationFunction"), label, kind)
    scope.put(y, made, first=first)


@CONVERTERS.of("QUANTIZE")
def _quantise(scope: Scope, operator: Operator) -> None:
    """Integers of other scales, or of real numbers."""
    x, y = operator.input(0), operator.outputs[0]
    first = scope.is_first((x,), len(scope.shape(x)))
    scope.put(y, scope.value(x, first=first), first=first)


@CONVERTERS.of("DEQUANTIZE")
def _dequantise(scope: Scope, operator: Operator) -> None:
    """Real numbers of integers, or of numbers of 16 bits; those of a constant stay its meaning."""
    x, y = operator.input(0), operator.outputs[0]
    if scope.constant(x) is not None:
        scope.same(y, x)
        return
    first = scope.is_first((x,), len(scope.shape(x)))
    scope.put(y, scope.value(x, first=first), first=first)


@CONVERTERS.of("DENSIFY")
def _densify(scope: Scope, operator: Operator) -> None:
    """A constant that the file states some elements of: `Tensor.data` has them all."""
    if scope.constant(operator.input(0)) is None:
        raise Untranslatable("it is of no constant")
    scope.same(operator.outputs[0], operator.input(0))


@CONVERTERS.of("CAST")
def _cast(scope: Scope, operator: Operator) -> None:
    x, y = operator.input(0), operator.outputs[0]
    if scope.tensor(y).quantised:
        raise Untranslatable("its result has a scale")
    first = scope.is_first((x,), len(scope.shape(x)))
    to = int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(scope.tensor(y).kind)))
    held = scope.stored(x, first=first)
    scope.put_stored(y, scope.node("Cast", held, name=scope.label(operator), to=to), first=first)


@CONVERTERS.of("SOFTMAX", "LOG_SOFTMAX")
def _softmax(scope: Scope, operator: Operator) -> None:
    x, y, label = operator.input(0), operator.outputs[0], scope.label(operator)
    rank = len(scope.shape(x))
    first = scope.is_first((x,), rank)
    value, beta = scope.value(x, first=first), 1.0
    if operator.name == "SOFTMAX" and (beta := float(operator.option("Beta", 1.0))) != 1:
        value = scope.node("Mul", value, scope.literal(np.array(beta, np.float32)), name=f"{label}/beta")
    op = "Softmax" if operator.name == "SOFTMAX" else "LogSoftmax"
    scope.put(y, scope.node(op, value, name=label, axis=1 if first else -1), first=first)


@CONVERTERS.of("L2_NORMALIZATION")
def _normalise(scope: Scope, operator: Operator) -> None:
    x, y, label = operator.input(0), operator.outputs[0], scope.label(operator)
    first = scope.is_first((x,), len(scope.shape(x)))
    made = scope.node("LpNormalization", scope.value(x, first=first), name=label, axis=1 if first else -1, p=2)
    scope.put(y, activated(scope, made, operator.option("FusedActivationFunction"), label), first=first)


@CONVERTERS.of("LOCAL_RESPONSE_NORMALIZATION")
def _local_response(scope: Scope, operator: Operator) -> None:
    """ONNX divides alpha by the number of channels that are summed."""
    x, y = operator.input(0), operator.outputs[0]
    if len(scope.shape(x)) != 4:
        raise Untranslatable("its input has no rows and columns")
    size = 2 * operator.option("Radius") + 1
    made = scope.node(
        "LRN", scope.value(x, first=True), name=scope.label(operator), size=size,
        alpha=float(operator.option("Alpha")) * size, beta=float(operator.option("Beta")),
        bias=float(operator.option("Bias")),
    )  # fmt: skip
    scope.put(y, made, first=True)


@CONVERTERS.of(*_REDUCED)
def _reduced(scope: Scope, operator: Operator) -> None:
    x, y, label = operator.input(0), operator.outputs[0], scope.label(operator)
    shape, rank = scope.shape(x), len(scope.shape(x))
    axes = sorted({axis % rank for axis in scope.numbers(operator.input(1), "axes")}) if rank else []
    keeps = bool(operator.option("KeepDims"))
    stay = [axis for axis in range(rank) if axis not in axes]
    # Without these axes the others are in the order of the file if channels are not among them, or nothing but the
    # batch stays before them.
    ordered = keeps or stay == [0, rank - 1] or len(stay) < 2 or rank - 1 not in stay
    first = ordered and scope.is_first((x,), rank)
    if (
        first
        and axes == list(range(1, rank - 1))
        and operator.name == "MEAN"
        and (scope.tensor(x).quantised or scope.tensor(x).kind.startswith("float"))
    ):
        made = scope.node("GlobalAveragePool", scope.value(x, first=True), name=label)
        if not keeps:
            made = scope.shaped(made, (shape[0], shape[-1]), label)
        scope.put(y, made, first=keeps)
        return
    if not axes and rank:  # ONNX would reduce all
        scope.put(y, scope.value(x, first=first), first=first)
        return
    order = [channels_first(rank).index(axis) for axis in axes] if first else axes
    made = scope.node(
        _REDUCED[operator.name], scope.value(x, first=first), scope.literal(sorted(order)), name=label,
        keepdims=int(keeps),
    )  # fmt: skip
    scope.put(y, made, first=first and keeps)
