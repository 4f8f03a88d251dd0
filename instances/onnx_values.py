"""Inputs of an ONNX file that are said to be constant: ``--value sr=16000``.

Files for several sample rates or languages choose by an input which part of them runs. With its value such an input is
a constant of the file and no input any more; every element of it has the value. What the value decides is decided by
shape inference and constant folding, as if the file had been exported so (`onnx_shapes`, `onnx_control`).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from math import prod

import numpy as np
import onnx
from onnx import helper, numpy_helper

from instances.errors import InputError
from instances.onnx_graph import Graph
from instances.onnx_shapes import used_tensors
from instances.onnx_sizes import Asked, bind

#: An input with more elements is data, and no constant.
LARGEST = 2**24
#: What compares an input with numbers: these are examples of values.
_COMPARES = frozenset("Equal Greater GreaterOrEqual Less LessOrEqual".split())
#: What leaves a single number as it is.
_PASSES = frozenset("Cast Flatten Gather Identity Reshape Slice Squeeze Unsqueeze".split())


def give(model: onnx.ModelProto, asked: Asked, where: str) -> tuple[Asked, dict[str, np.ndarray]]:
    """Make inputs constants; return the sizes of those that are left, and the value of every other one.

    Raises
    ------
    InputError
        If there is no such input, its element type has no such value, or a size of an input is open.
    """
    if not asked.values:
        return asked, {}
    graph = model.graph
    constants = {tensor.name for tensor in graph.initializer} | {one.values.name for one in graph.sparse_initializer}
    inputs = [info for info in graph.input if info.name not in constants]
    if strange := [name for name in asked.values if name not in {info.name for info in inputs}]:
        there = ", ".join(repr(info.name) for info in inputs) or "none"
        raise InputError(f"{where}: value: no input is called {', '.join(map(repr, strange))}; it has {there}")
    sized = onnx.GraphProto(input=inputs)
    bind(sized, (), asked, where)
    sizes = {info.name: tuple(size.dim_value for size in info.type.tensor_type.shape.dim) for info in sized.input}
    kinds = {info.name: info.type.tensor_type.elem_type for info in inputs}
    given = {name: _filled(name, value, sizes[name], kinds[name], where) for name, value in asked.values.items()}
    left = [onnx.ValueInfoProto.FromString(i.SerializeToString()) for i in graph.input if i.name not in given]
    del graph.input[:]
    graph.input.extend(left)
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in given.items())
    return Asked(asked.batch, {}, {name: shape for name, shape in sizes.items() if name not in given}), given


def _filled(name: str, value: float, shape: tuple[int, ...], kind: int, where: str) -> np.ndarray:
    """A tensor whose elements all have a value; raises InputError for one that its element type does not have."""
    said = f"{where}: value {name}={value}"
    if prod(shape) > LARGEST:
        raise InputError(f"{said}: input {name!r} has {prod(shape):,} elements; up to {LARGEST:,} can have one value")
    try:
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind))
    except (KeyError, TypeError):
        dtype = np.dtype(object)
    known = str(helper.tensor_dtype_to_string(kind)).rpartition(".")[2].lower() if kind else "no known type"
    if dtype.kind == "b":
        wanted, fits = "true, false, 1 or 0 is needed", value in (0, 1)
    elif dtype.kind in "iu":
        limits = np.iinfo(dtype)
        wanted = f"an integer from {limits.min} to {limits.max} is needed"
        fits = value == int(value) and limits.min <= value <= limits.max
    elif dtype.kind == "f" or "float" in dtype.name:
        with np.errstate(all="ignore"):
            wanted, fits = "a number that the type holds is needed", bool(np.isfinite(np.asarray(value).astype(dtype)))
    else:
        wanted, fits = "only numbers and true or false can be said", False
    if not fits:
        raise InputError(f"{said}: input {name!r} is of {known}: {wanted}")
    return np.full(shape, int(value) if dtype.kind in "iu" else value, dtype)


def said_of(given: Mapping[str, np.ndarray]) -> str:
    """What a network's description says of such inputs."""
    return ", ".join(f"input {name} = {value.reshape(-1)[0]}" for name, value in given.items() if value.size)


def options(graph: Graph, tensors: Iterable[str]) -> str:
    """Return the options that make tensors constants, where single numbers among the inputs decide them; else nothing.

    An input that is compared with a number is shown with it.
    """
    makers = {name: node for node in graph.proto.node for name in node.output if name}
    open_, seen, found = [name for name in tensors if name], set[str](), list[str]()
    while open_:
        name = open_.pop()
        if name in seen or graph.is_constant(name):
            continue
        seen.add(name)
        if name in makers:
            open_ += used_tensors(makers[name])
        elif graph.size(name) != 1:
            return ""
        else:
            found.append(name)
    return " ".join(f"--value {shlex.quote(f'{name}={_example(graph, name)}')}" for name in sorted(found))


def _example(graph: Graph, tensor: str) -> str:
    """A number with which an input is compared, behind what does not change it."""
    if any(i.name == tensor and i.type.tensor_type.elem_type == onnx.TensorProto.BOOL for i in graph.proto.input):
        return "true"
    names = {tensor}
    for node in graph.proto.node:
        if node.op_type in _PASSES and node.input[0] in names:
            names.update(node.output)
        if node.op_type in _COMPARES and names.intersection(node.input):
            for other in node.input:
                value = graph.value(other)
                if value is not None and value.size == 1:
                    return str(value.reshape(-1)[0])
    return "NUMBER"
