"""Variables, and the operator that keeps what it has seen between calls: SVDF."""

from __future__ import annotations

import numpy as np

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


def kept(scope: Scope, number: int, made: str) -> None:
    """Say what a tensor that stays holds behind an operator that changes it in place."""
    tensor = scope.tensor(number)
    if f"tensor {number}" not in scope.fed or number in scope.stays:
        raise Untranslatable("its state is no variable of its own")
    made = scope.quantised(made, tensor, tensor.axis) if tensor.quantised else made
    scope.stays[number] = made


# --- SVDF -------------------------------------------------------------------------------------------------------------


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
    kept(scope, state, flat)
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
