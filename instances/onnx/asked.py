"""What is asked of the inputs of an ONNX file: numbers for open sizes, and values of inputs that are constants.

**Sizes.** A size is open if the file gives it a name, no number, -1 or 0. Its number is, in this order, that of its
axis in the shape that is asked for its input; of the symbol ``input[axis]``; of its name; of its name on another axis;
and, of a first axis, the batch. What inputs alone decide is decided here: sizes that a file declares of other tensors
are what shape inference is told where it knows nothing (`instances.onnx.shapes`).

**Values** (``--value sr=16000``). Files for several sample rates or languages choose by an input which part of them
runs. With its value such an input is a constant of the file and no input any more; every element of it has the value.
What the value decides is decided by shape inference and constant folding, as if the file had been exported so
(`instances.onnx.shapes`, `instances.onnx.control`).
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
import onnx
from onnx import helper, numpy_helper

from instances.errors import InputError
from instances.network.operators import LARGEST, Shape
from instances.onnx.graph import Graph
from instances.onnx.shapes import refill, used_tensors

#: Names that say nothing: two sizes that are called so need not be equal.
_NAMELESS = frozenset(("", "?", "*", "-1", "None", "none", "unknown"))
#: What sizes without a name are called in the options that are printed, by the rank of their input.
_LETTERS: Mapping[int, str] = {3: "NCL", 4: "NCHW", 5: "NCDHW"}


@dataclass(frozen=True)
class Asked:
    """The sizes that are asked for, and the values of inputs that are constants."""

    batch: int | None = None
    symbols: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)

    def check(self, where: str) -> None:
        """Raise InputError for sizes that are no positive numbers, and values that are no numbers."""
        if self.batch is not None and self.batch < 1:
            raise InputError(f"{where}: batch {self.batch}: a positive number is needed")
        for name, size in self.symbols.items():
            if not _is_size(size):
                raise InputError(f"{where}: symbol {name}={size}: a positive number is needed")
        for name, sizes in self.shapes.items():
            if isinstance(sizes, str | bytes) or not all(map(_is_size, sizes)):
                raise InputError(f"{where}: shape of {name}: positive numbers are needed, such as {name}=1,3,224,224")
        for name, value in self.values.items():
            if not isinstance(value, int | float | np.number | np.bool_) or not math.isfinite(value):
                raise InputError(f"{where}: value of {name}: a number is needed, such as {name}=16000")


def _is_size(size: object) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and 1 <= size <= LARGEST


@dataclass
class _Axis:
    """An open size."""

    tensor: str
    number: int
    name: str
    proto: onnx.TensorShapeProto.Dimension
    size: int | None = None

    @property
    def place(self) -> str:
        """The symbol that is this axis alone."""
        return f"{self.tensor}[{self.number}]"

    @property
    def symbol(self) -> str:
        """How it is called."""
        return self.name or self.place


def bind(graph: onnx.GraphProto, constants: Collection[str], asked: Asked, where: str) -> bool:
    """Give every open size of the inputs its number; return whether the batch was one of them.

    Raises InputError if a size stays open (says which option gives it a number), a name or an input is not there, or
    two of the numbers contradict each other.
    """
    inputs = [info for info in graph.input if info.name not in constants]
    _check_names(inputs, asked, where)
    axes: list[_Axis] = []
    for info in inputs:
        axes += _open_axes(info, asked.shapes.get(info.name), where)
    _check_symbols(axes, asked, where)
    for axis in axes:
        _ask(axis, asked, where)
    table = _numbers(axes, asked)
    for axis in axes:
        axis.size = table.get(axis.name) if axis.size is None else axis.size
    bound = any(axis.number == 0 and axis.symbol not in asked.symbols for axis in axes)
    table |= _batch(axes, 1 if asked.batch is None else asked.batch)
    if still := [axis for axis in axes if axis.size is None]:
        raise InputError(f"{where}: {_open(still, axes, inputs)}")
    for axis in axes:
        axis.proto.dim_value = axis.size or 0
    for info in (*graph.value_info, *graph.output):
        for size in info.type.tensor_type.shape.dim:
            if size.dim_param in table:
                size.dim_value = table[size.dim_param]
    return bound


def _check_names(inputs: Sequence[onnx.ValueInfoProto], asked: Asked, where: str) -> None:
    for info in inputs:
        if not info.type.HasField("tensor_type"):
            raise InputError(f"{where}: input {info.name!r} is not a tensor with a shape")
    _refuse_strange(asked.shapes, inputs, where)


def _refuse_strange(names: Iterable[str], inputs: Sequence[onnx.ValueInfoProto], where: str) -> None:
    if strange := [name for name in names if name not in {info.name for info in inputs}]:
        there = ", ".join(repr(info.name) for info in inputs) or "none"
        raise InputError(f"{where}: no input is called {', '.join(map(repr, strange))}; it has {there}")


def _open_axes(info: onnx.ValueInfoProto, wanted: Sequence[int] | None, where: str) -> list[_Axis]:
    """The open sizes of an input, with those numbers that its shape gives them."""
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        if wanted is None:
            option = shlex.quote(f"{info.name}=1,3,224,224")
            raise InputError(f"{where}: input {info.name!r} has no shape: say it, such as --shape {option}")
        tensor.shape.dim.extend(onnx.TensorShapeProto.Dimension() for _ in wanted)
        if not wanted:
            tensor.shape.SetInParent()
    sizes = tensor.shape.dim
    if wanted is not None and len(wanted) != len(sizes):
        raise InputError(f"{where}: shape {_text(info.name, wanted)}: input {info.name!r} has {len(sizes)} axes")
    axes = []
    for number, proto in enumerate(sizes):
        if proto.dim_value < -1:
            raise InputError(f"{where}: input {info.name!r} has the negative size {proto.dim_value} at axis {number}")
        if proto.dim_value <= 0:
            axes.append(_Axis(info.name, number, proto.dim_param, proto, wanted[number] if wanted else None))
        elif wanted is not None and wanted[number] != proto.dim_value:
            said = f"input {info.name!r} has {proto.dim_value} at axis {number}, and that is not open"
            other = f" (--batch {wanted[0]} makes another network of it)" if number == 0 else ""
            raise InputError(f"{where}: shape {_text(info.name, wanted)}: {said}{other}")
    return axes


def _check_symbols(axes: Sequence[_Axis], asked: Asked, where: str) -> None:
    seen = {axis.symbol for axis in axes}
    unknown = [name for name in asked.symbols if name not in seen | {axis.place for axis in axes}]
    if unknown:
        there = f"it has {', '.join(sorted(seen))}" if seen else "it has none"
        raise InputError(f"{where}: no symbolic size is called {', '.join(map(repr, unknown))}; {there}")


def _ask(axis: _Axis, asked: Asked, where: str) -> None:
    """Give an axis the number that is asked for it by name; one by its shape must be the same."""
    for name in (axis.place, axis.name):
        if name in asked.symbols:
            if axis.size not in (None, asked.symbols[name]):
                said = f"symbol {name}={asked.symbols[name]}, and the shape of {axis.tensor!r} has {axis.size} there"
                raise InputError(f"{where}: {said}: give one of them")
            axis.size = asked.symbols[name]
            return
    if axis.number == 0 and axis.size is not None and asked.batch not in (None, axis.size):
        said = f"batch {asked.batch}, and the shape of {axis.tensor!r} begins with {axis.size}"
        raise InputError(f"{where}: {said}: give one of them")


def _numbers(axes: Sequence[_Axis], asked: Asked) -> dict[str, int]:
    """Names with one number, wherever they stand."""
    found: dict[str, set[int]] = {}
    for axis in axes:
        if axis.name not in _NAMELESS and axis.size is not None:
            found.setdefault(axis.name, set()).add(axis.size)
    table = {name: min(sizes) for name, sizes in found.items() if len(sizes) == 1}
    apart = {name for name, sizes in found.items() if len(sizes) > 1}
    return table | {name: size for name, size in asked.symbols.items() if name not in apart | _NAMELESS}


def _batch(axes: Sequence[_Axis], batch: int) -> dict[str, int]:
    """Give first axes that are still open the batch; return the names that are the batch wherever they stand."""
    within = Counter((axis.tensor, axis.name) for axis in axes)
    twice = {name for (_, name), number in within.items() if number > 1}  # the batch is no other axis of its input
    names = {axis.name for axis in axes if axis.number == 0 and axis.size is None} - _NAMELESS - twice
    for axis in axes:
        if axis.size is None and (axis.number == 0 or axis.name in names):
            axis.size = batch
    return dict.fromkeys(names, batch)


def _open(still: Sequence[_Axis], axes: Sequence[_Axis], inputs: Sequence[onnx.ValueInfoProto]) -> str:
    """Which sizes are open, and the options that say them."""
    names = list(dict.fromkeys(axis.symbol for axis in still))
    symbols = " ".join(f"--symbol {shlex.quote(f'{name}=SIZE')}" for name in names)
    shapes, letters = [], list[str]()
    for info in inputs:
        mine = {axis.number: axis for axis in axes if axis.tensor == info.name}
        if not any(axis.tensor == info.name for axis in still):
            continue
        rank, sizes = len(info.type.tensor_type.shape.dim), list[str]()
        for number, proto in enumerate(info.type.tensor_type.shape.dim):
            if number not in mine:
                sizes.append(str(proto.dim_value))
            elif (size := mine[number].size) is not None:
                sizes.append(str(size))
            else:
                nameless = mine[number].name in _NAMELESS or not mine[number].name.isidentifier()
                twice = [axis.name for axis in mine.values()].count(mine[number].name) > 1
                letter = _LETTERS.get(rank, "ABCDEFGH")[number] if nameless or twice else mine[number].name
                sizes.append(letter)
                letters.append(letter)
        shapes.append(f"--shape {shlex.quote(info.name + '=' + ','.join(sizes))}")
    given = " and ".join(dict.fromkeys(letters))
    said = ", ".join(map(repr, names))
    return f"symbolic sizes {said} are open: add {symbols}, or {' '.join(shapes)} with numbers for {given}"


def _text(name: str, sizes: Shape | Sequence[int]) -> str:
    return f"{name}={','.join(map(str, sizes))}"


# --- values ---------------------------------------------------------------------------------------------------------

#: An input with more elements is data, and no constant.
MOST_ELEMENTS = 2**24
#: What compares an input with numbers: these are examples of values.
_COMPARES = frozenset("Equal Greater GreaterOrEqual Less LessOrEqual".split())
#: What leaves a single number as it is.
_PASSES = frozenset("Cast Flatten Gather Identity Reshape Slice Squeeze Unsqueeze".split())


def give(model: onnx.ModelProto, asked: Asked, where: str) -> tuple[Asked, dict[str, np.ndarray]]:
    """Make inputs constants; return the sizes of those that are left, and the value of every other one.

    Raises InputError if there is no such input, its element type has no such value, or a size of an input is open.
    """
    if not asked.values:
        return asked, {}
    graph = model.graph
    constants = {tensor.name for tensor in graph.initializer} | {one.values.name for one in graph.sparse_initializer}
    inputs = [info for info in graph.input if info.name not in constants]
    _refuse_strange(asked.values, inputs, f"{where}: value")
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
    if prod(shape) > MOST_ELEMENTS:
        raise InputError(
            f"{said}: input {name!r} has {prod(shape):,} elements; up to {MOST_ELEMENTS:,} can have one value"
        )
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
