"""Variables, and operators that keep state between calls or run along time: SVDF, LSTM, RNN."""

from __future__ import annotations

import numpy as np
import tflite

from instances.errors import InputError
from instances.tflite.layers import bias_of, weights_of
from instances.tflite.model import Operator
from instances.tflite.pointwise import activated
from instances.tflite.scope import Converters, Scope, Untranslatable

CONVERTERS = Converters()


# --- variables --------------------------------------------------------------------------------------------------------


@CONVERTERS.of("VAR_HANDLE")
def _handle(scope: Scope, operator: Operator) -> None:
    scope.handles[operator.outputs[0]] = _name(scope, operator)


def assigned(scope: Scope) -> frozenset[str]:
    """The variables that a subgraph assigns, by name."""
    handles = {one.outputs[0]: _name(scope, one) for one in scope.graph.operators if one.name == "VAR_HANDLE"}
    every = (one.input(0) for one in scope.graph.operators if one.name == "ASSIGN_VARIABLE")
    return frozenset(handles.get(number, "") for number in every)


def _name(scope: Scope, operator: Operator) -> str:
    shared = operator.option("SharedName", None)
    return shared.decode("utf-8", "replace") if shared else scope.tensor(operator.outputs[0]).name


@CONVERTERS.of("CALL_ONCE")
def _begin(scope: Scope, operator: Operator) -> None:
    """What runs before the first call: constants that variables hold then."""
    number = operator.option("InitSubgraphIndex")
    if not 0 <= number < len(scope.file.subgraphs):
        raise Untranslatable(f"it runs subgraph {number} of {len(scope.file.subgraphs)}")
    graph, handles = scope.file.subgraphs[number], dict[int, str]()
    inner = Scope(scope.file, graph)
    for one in graph.operators:
        if one.name == "VAR_HANDLE":
            handles[one.outputs[0]] = _name(inner, one)
        elif one.name == "ASSIGN_VARIABLE":
            data = graph.tensors[one.input(1)].data
            if data is None:
                raise Untranslatable("a variable begins with what is computed")
            scope.begins[handles.get(one.input(0), "")] = data
        else:
            raise Untranslatable(f"it runs {one.name}")


@CONVERTERS.of("READ_VARIABLE")
def _read(scope: Scope, operator: Operator) -> None:
    name, y = scope.handles.get(operator.input(0), ""), operator.outputs[0]
    if not name:
        raise Untranslatable("its variable is not known")
    if name not in scope.variables and name in scope.begins and name not in scope.assigned:
        scope.put_stored(y, scope.literal(scope.begins[name], name))  # it stays what it is
    elif name not in scope.variables:
        scope.fed[name] = scope.feed(y, name), y
        scope.variables[name] = y
    elif (held := scope.variables[name]) != y:
        _alike(scope, name, held, y)
        first = scope.is_first((held,), len(scope.shape(held)))
        scope.put_stored(y, scope.stored(held, first=first), first=first)


@CONVERTERS.of("ASSIGN_VARIABLE")
def _assign(scope: Scope, operator: Operator) -> None:
    if (name := scope.handles.get(operator.input(0), "")) == "":
        raise Untranslatable("its variable is not known")
    scope.variables[name] = operator.input(1)


def _alike(scope: Scope, name: str, one: int, other: int) -> None:
    shapes = scope.shape(one), scope.shape(other)
    if shapes[0] != shapes[1]:
        said = f"variable {name!r} is of {list(shapes[0])} and of {list(shapes[1])}"
        raise InputError(f"{scope.file.where}: {said}")


def keep(scope: Scope) -> None:
    """Declare what stays as results behind those of the model: variables that were read, tensors by their number."""
    for number, made in scope.stays.items():
        fed, _ = scope.fed.pop(f"tensor {number}")
        scope.states[fed] = result = scope.result(made, number)
        scope.kept[result] = number
        scope.begins[fed] = _zeros(scope, number)
    begun = {fed: scope.begins.pop(fed) for fed in list(scope.states)}
    for name, (fed, tensor) in scope.fed.items():
        if (held := scope.variables[name]) != tensor:
            _alike(scope, name, held, tensor)
            scope.begins.setdefault(name, _zeros(scope, tensor))
            scope.states[fed] = result = scope.give(held, first=fed in scope.turned)
            scope.kept[result] = held
    named = {name: fed for name, (fed, _) in scope.fed.items()}
    scope.begins = {named[name]: begin for name, begin in scope.begins.items() if name in named} | begun


def _zeros(scope: Scope, number: int) -> np.ndarray:
    """A tensor of real numbers 0."""
    one = scope.tensor(number)
    return np.full(one.shape, int(one.zero[0]) if one.quantised else 0, one.kind)


def _kept(scope: Scope, number: int, made: str) -> None:
    """Say what a tensor that stays holds behind an operator that changes it in place."""
    tensor = scope.tensor(number)
    if f"tensor {number}" not in scope.fed or number in scope.stays:
        raise Untranslatable("its state is no variable of its own")
    made = scope.quantised(made, tensor, tensor.axis) if tensor.quantised else made
    scope.stays[number] = made


# --- operators that run along time ------------------------------------------------------------------------------------


@CONVERTERS.of("SVDF")
def _svdf(scope: Scope, operator: Operator) -> None:
    """Features of a call are filtered along time: every filter has a memory of its last ones, `rank` make a result."""
    x, features, times, state, y = *(operator.input(k) for k in (0, 1, 2, 4)), operator.outputs[0]
    label, rank = scope.label(operator), operator.option("Rank")
    (batch, _), (filters, memory) = scope.shape(x), scope.shape(times)
    if rank < 1 or filters % rank:
        raise Untranslatable(f"{filters} filters of rank {rank}")
    weights = weights_of(scope, features, (0, 1))
    made = scope.node("Gemm", scope.value(x), weights, name=f"{label}/features", transB=1)
    made = scope.shaped(made, (batch, filters, 1), f"{label}/features")
    old = scope.shaped(scope.value(state), (batch, filters, memory), f"{label}/memory")
    if memory > 1:
        parts = (scope.literal(some) for some in ((1,), (memory,), (2,)))
        old = scope.node("Slice", old, *parts, name=f"{label}/older")
        made = scope.node("Concat", old, made, name=f"{label}/memory", axis=2)
    flat = scope.shaped(made, scope.shape(state), f"{label}/state")
    _kept(scope, state, flat)
    if (tensor := scope.tensor(state)).quantised:
        made = scope.shaped(
            scope.dequantised(scope.quantised(flat, tensor, 0), tensor, 0), (batch, filters, memory), f"{label}/kept"
        )  # fmt: skip
    along = weights_of(scope, times, (0, 1), (filters, 1, memory))
    made = scope.node("Conv", made, along, name=f"{label}/time", group=filters, kernel_shape=[memory])
    made = scope.shaped(made, (batch, filters // rank, rank), f"{label}/ranks")
    if rank > 1:
        made = scope.node("ReduceSum", made, scope.literal((2,)), name=f"{label}/rank", keepdims=0)
    else:
        made = scope.shaped(made, (batch, filters), f"{label}/units")
    for bias in bias_of(scope, operator.input(3), state, times):
        made = scope.node("Add", made, bias, name=f"{label}/bias")
    scope.put(y, activated(scope, made, operator.option("FusedActivationFunction"), label))


#: Gates of an LSTM in the order of ONNX (input, output, forget, cell), by their place in TFLite.
_GATES = (0, 3, 1, 2)
_ACTIVATIONS = {
    tflite.ActivationFunctionType.TANH: "Tanh", tflite.ActivationFunctionType.RELU: "Relu",
}  # fmt: skip


@CONVERTERS.of("UNIDIRECTIONAL_SEQUENCE_LSTM")
def _lstm(scope: Scope, operator: Operator) -> None:
    x, y, label = operator.input(0), operator.outputs[0], scope.label(operator)
    if operator.input(1) < 0:
        raise Untranslatable("its input and forget gates are one")
    if any(operator.input(k) >= 0 for k in (9, 10, 11, 16, 17, *range(20, 24))):
        raise Untranslatable("it has peepholes, a projection, or norms")
    if operator.option("FusedActivationFunction") != tflite.ActivationFunctionType.TANH:
        raise Untranslatable("its activation is no tanh")
    if clip := float(operator.option("CellClip")):
        scope.notes.append(f"{label}: the state of its cells is not clipped at {clip:g}")
    units = scope.shape(operator.input(5))[1]
    weights, recurrent = (
        _joined(scope, [operator.input(first + k) for k in _GATES], f"{label}/{name}")
        for first, name in ((1, "weights"), (5, "recurrent"))
    )
    biases = _biases(scope, [operator.input(12 + k) for k in _GATES], x, operator.input(1), units, label)
    states = operator.input(18), operator.input(19)
    batch = scope.shape(states[0])[0]
    begins = [scope.shaped(scope.value(k), (1, batch, units), f"{label}/begin") for k in states]
    read = _by_time(scope, operator, scope.value(x), label)
    made, *lasts = scope.several(
        "LSTM", (read, weights, recurrent, biases, "", *begins), 3, name=label, hidden_size=units
    )  # fmt: skip
    for k, last in zip(states, lasts, strict=True):
        _kept(scope, k, scope.shaped(last, scope.shape(k), f"{label}/state"))
    scope.put(y, _rows(scope, operator, made, label))


@CONVERTERS.of("UNIDIRECTIONAL_SEQUENCE_RNN")
def _rnn(scope: Scope, operator: Operator) -> None:
    x, y, label = operator.input(0), operator.outputs[0], scope.label(operator)
    activation = _ACTIVATIONS.get(operator.option("FusedActivationFunction"))
    if activation is None:
        raise Untranslatable("its activation is neither tanh nor relu")
    units, batch = scope.shape(operator.input(2))[0], scope.shape(operator.input(4))[0]
    weights, recurrent = (_joined(scope, [operator.input(k)], label) for k in (1, 2))
    biases = _biases(scope, [operator.input(3)], x, operator.input(1), units, label)
    begin = scope.shaped(scope.value(operator.input(4)), (1, batch, units), f"{label}/begin")
    read = _by_time(scope, operator, scope.value(x), label)
    made, last = scope.several(
        "RNN", (read, weights, recurrent, biases, "", begin), 2, name=label, hidden_size=units,
        activations=[activation],
    )  # fmt: skip
    _kept(scope, operator.input(4), scope.shaped(last, scope.shape(operator.input(4)), f"{label}/state"))
    scope.put(y, _rows(scope, operator, made, label))


def _joined(scope: Scope, numbers: list[int], label: str) -> str:
    """Weights of all gates, one behind the other, for one direction."""
    parts = [weights_of(scope, k, (0, 1)) for k in numbers]
    whole = parts[0] if len(parts) == 1 else scope.node("Concat", *parts, name=label, axis=0)
    rows, channels = scope.shape(numbers[0])
    return scope.shaped(whole, (1, len(numbers) * rows, channels), label)


def _biases(scope: Scope, numbers: list[int], x: int, weights: int, units: int, label: str) -> str:
    """Biases of all gates for the inputs, and none for the state."""
    none = np.zeros(units, np.float32)
    parts = [one for k in numbers for one in bias_of(scope, k, x, weights) or (scope.literal(none, f"{label}/bias"),)]
    zeros = scope.literal(np.zeros(units * len(numbers), np.float32), f"{label}/bias")
    return scope.shaped(scope.node("Concat", *parts, zeros, name=f"{label}/bias", axis=0), (1, -1), f"{label}/bias")


def _by_time(scope: Scope, operator: Operator, value: str, label: str) -> str:
    """The input as [steps, batch, channels]."""
    if operator.option("TimeMajor"):
        return value
    return scope.node("Transpose", value, name=f"{label}/steps", perm=(1, 0, 2))


def _rows(scope: Scope, operator: Operator, made: str, label: str) -> str:
    """The result of all steps as the file has it, from [steps, directions, batch, units]."""
    steps, batch, units = (scope.shape(operator.outputs[0])[k] for k in ((0, 1, 2) if operator.option("TimeMajor")
                                                                         else (1, 0, 2)))  # fmt: skip
    made = scope.shaped(made, (steps, batch, units), f"{label}/steps")
    if operator.option("TimeMajor"):
        return made
    return scope.node("Transpose", made, name=f"{label}/rows", perm=(1, 0, 2))
