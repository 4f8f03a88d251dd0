"""The open sizes of an ONNX file's inputs, and which numbers they get.

A size is open if the file gives it a name, no number, -1 or 0. Its number is, in this
order, that of its axis in the shape that is asked for its input; of the symbol ``input[axis]``; of its name; of its
name on another axis; and, of a first axis, the batch. What inputs alone decide is decided here: sizes that a file
declares of other tensors are what shape inference is told where it knows nothing (`instances.onnx.shapes`).
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from instances.errors import InputError
from instances.network.operators import LARGEST, Shape

#: Names that say nothing: two sizes that are called so need not be equal.
_NAMELESS = frozenset(("", "?", "*", "-1", "None", "none", "unknown"))
#: What sizes without a name are called in the options that are printed, by the rank of their input.
_LETTERS: Mapping[int, str] = {3: "NCL", 4: "NCHW", 5: "NCDHW"}


@dataclass(frozen=True)
class Asked:
    """The sizes that are asked for, and the values of inputs that are constants (`instances.onnx.values`)."""

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

    Raises
    ------
    InputError
        If a size stays open (says which option gives it a number), a name or an input is not there, or two of the
        numbers contradict each other.
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
    strange = [name for name in asked.shapes if name not in {info.name for info in inputs}]
    if strange:
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
