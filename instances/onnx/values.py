"""Inputs of an ONNX file that are said to be constant (``--value sr=16000``), and its element types.

Files for several sample rates or languages choose by an input which part of them runs. With its value such an input is
a constant of the file and no input any more; every element of it has the value. What the value decides is decided by
shape inference and constant folding, as if the file had been exported so (`instances.onnx.shapes`,
`instances.onnx.control`).

`element_types` says what the maps and the weights of its products are made of.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from math import prod

import numpy as np
import onnx
from onnx import helper, numpy_helper

from instances.errors import InputError
from instances.onnx.graph import Graph
from instances.onnx.shapes import refill, used_tensors
from instances.onnx.sizes import Asked, bind

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
    refill(graph.input, [info for info in graph.input if info.name not in given])
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


#: Position of the data and of the weights.
_FACTORS = {
    **dict.fromkeys("Conv ConvInteger ConvTranspose Gemm MatMul MatMulInteger LSTM GRU RNN".split(), (0, 1)),
    **dict.fromkeys("QLinearConv QLinearMatMul".split(), (0, 3)),
}
#: Operators whose result has the type of their zero point, and its position.
_QUANTISERS = {"QuantizeLinear": 2, "QLinearConv": 7, "QLinearMatMul": 7}
#: Operators whose result has one type always.
_MAKERS = {
    "DynamicQuantizeLinear": onnx.TensorProto.UINT8, "ConvInteger": onnx.TensorProto.INT32,
    "MatMulInteger": onnx.TensorProto.INT32,
}  # fmt: skip


class _Types:
    """What is known of the tensors of a graph."""

    def __init__(self, graph: onnx.GraphProto, inferred: Mapping[str, int]) -> None:
        self.inferred = inferred
        self.stated = {tensor.name: tensor.data_type for tensor in graph.initializer}
        self.stated.update({info.name: info.type.tensor_type.elem_type for info in graph.input})
        self.makers = {name: node for node in graph.node for name in node.output if name}

    def type_of(self, tensor: str) -> int:
        """The type of a tensor as the file or shape inference has it (0: not known)."""
        return self.stated.get(tensor) or self.inferred.get(tensor, 0)

    def held(self, tensor: str) -> tuple[str, int]:
        """Follow a tensor to where its elements come from: a tensor, and its type (0: not known)."""
        for _ in range(len(self.makers) + 1):
            node = self.makers.get(tensor)
            if node is None:
                break
            if node.op_type in _QUANTISERS:
                at = _QUANTISERS[node.op_type]
                zero = self.held(node.input[at])[1] if at < len(node.input) else onnx.TensorProto.UINT8
                return tensor, zero
            if node.op_type in _MAKERS or node.op_type == "ConstantOfShape" or not node.input:
                # ConstantOfShape reads a shape, of another type than what it makes: float32 unless it says so
                unsaid = onnx.TensorProto.FLOAT if node.op_type == "ConstantOfShape" else 0
                value = next((a.t.data_type for a in node.attribute if a.name == "value"), unsaid)
                return tensor, _MAKERS.get(node.op_type, value)
            if node.op_type == "Cast":
                return tensor, next((a.i for a in node.attribute if a.name == "to"), 0)
            made, read = self.type_of(tensor), self.type_of(node.input[0])
            if made and read and made != read and node.op_type != "DequantizeLinear":  # OneHot: of indices numbers
                return tensor, made
            tensor = node.input[0]
        return tensor, self.stated.get(tensor, 0)


def element_types(
    graph: onnx.GraphProto, constants: Collection[str], inferred: Mapping[str, int]
) -> tuple[str, str]:  # fmt: skip
    """Return the element types of maps and of weights: the most frequent among products (empty: not known).

    What is quantised in between (QDQ) counts as what it is quantised to. `inferred` has what shape inference says.
    """
    types = _Types(graph, inferred)
    found: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
    for node in graph.node:
        data, weights = _FACTORS.get(node.op_type, (0, 0))
        if weights and len(node.input) > weights:
            found[0][types.held(node.input[data])[1]] += 1
            root, kind = types.held(node.input[weights])
            found[1][kind if root in constants else 0] += 1
    for counter in found:
        del counter[0]
    if not found[0]:
        found[0].update(info.type.tensor_type.elem_type for info in graph.input[:1])
    maps, held = (_name((counter.most_common(1) or [(0, 0)])[0][0]) for counter in found)
    return maps, held


def _name(kind: int) -> str:
    """Return what an element type is called: float32, int8, ..."""
    known = onnx.TensorProto.DataType
    name = known.Name(kind).lower() if kind in known.values() else ""
    return {"float": "float32", "double": "float64", "undefined": ""}.get(name, name)
