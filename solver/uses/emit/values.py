"""Tensors of a network as arrays off the chip: how operators and layers see the same elements.

An example: a map of 8 channels, 4 rows and 4 columns is an operator's tensor (1, 8, 4, 4). A layer on a machine with
layout HWC has it with channels innermost: pitches (128, 1, 32, 8). Flattened it is (1, 128), whose elements are not a
regular pitch apart any more, so a product of matrices reads a copy. Such copies are the host's, and no part of a plan.

    Value   an operator's tensor: an array, where its first element lies, and the pitch of every axis (all in elements)
    axes    of a layer's tensor the dimensions that an operator's axis consists of: channels are (g, n), tokens are r
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from instances.machine.machine import Machine
from instances.network.operators import Eltwise, MatMul, Operator, Shape
from instances.network.workload import DIMS, Layer

#: Axes of the operands in storage order, by layout; input rows and columns stand under r and c.
AXES = {
    "IN": {"CHW": "bgnrc", "HWC": "brcgn"},
    "OUT": {"CHW": "bgmrc", "HWC": "brcgm"},
    "W": {"OIHW": "gmnij", "OHWI": "gmijn"},
}
#: Of an operator's axis, the dimensions of the layer that it consists of, outermost first; empty for an axis of one.
Axis = tuple[str, ...]


@dataclass(frozen=True)
class Value:
    """A tensor of a network."""

    array: str
    shape: Shape
    pitch: tuple[int, ...]
    offset: int = 0

    def reshaped(self, shape: Shape) -> Value | None:
        """The same elements in the same order under another shape; None if they are no regular pitch apart then."""
        if pitch := _split(_merged(self.shape, self.pitch), shape):
            return Value(self.array, shape, pitch, self.offset)
        return None

    def permuted(self, order: Sequence[int]) -> Value:
        """The axes in another order."""
        shape, pitch = (tuple(of[a] for a in order) for of in (self.shape, self.pitch))
        return Value(self.array, shape, pitch, self.offset)

    def part(self, begins: Sequence[int], steps: Sequence[int], shape: Shape) -> Value:
        """Some elements along every axis."""
        offset = self.offset + sum(b * p for b, p in zip(begins, self.pitch, strict=True))
        return Value(self.array, shape, tuple(p * s for p, s in zip(self.pitch, steps, strict=True)), offset)

    def broadcast(self, shape: Shape) -> Value:
        """Repeated along axes of one element."""
        lead = len(shape) - len(self.shape)
        axes = zip((1,) * lead + self.shape, shape, (0,) * lead + self.pitch, strict=True)
        return Value(self.array, shape, tuple(0 if x == 1 != y else p for x, y, p in axes), self.offset)

    def same_places(self, other: Value) -> bool:
        """Whether every element lies in the same place."""
        pairs = zip(self.shape, self.pitch, other.pitch, strict=True)
        same = (self.array, self.offset, self.shape) == (other.array, other.offset, other.shape)
        return same and all(size == 1 or mine == its for size, mine, its in pairs)

    def joined(self, axis: int, shapes: Sequence[Shape]) -> Iterator[Value]:
        """The parts that it is joined of along an axis."""
        begin = [0] * len(self.shape)
        for shape in shapes:
            yield self.part(begin, (1,) * len(begin), shape)
            begin[axis] += shape[axis]


def rows_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the pitches of a tensor whose elements lie one after the other, the last axis innermost."""
    return tuple(prod(shape[k + 1 :]) for k in range(len(shape)))


def contiguous(array: str, shape: Shape) -> Value:
    """Return a tensor of its own whose last axis is innermost."""
    return Value(array, shape, rows_of(shape))


def _merged(shape: Shape, pitch: Sequence[int]) -> list[tuple[int, int]]:
    """Size and pitch of as few axes as have the same elements in the same order."""
    axes: list[tuple[int, int]] = []
    for size, step in zip(shape, pitch, strict=True):
        if size == 1:
            continue
        if axes and axes[-1][1] == size * step:
            axes[-1] = axes[-1][0] * size, step
        else:
            axes.append((size, step))
    return axes


def _split(axes: list[tuple[int, int]], shape: Shape) -> tuple[int, ...] | None:
    """Pitches of a shape that has the elements of some axes; None if one of its axes has parts of several."""
    left = list(axes)
    pitch = []
    for size in reversed(shape):
        if size == 1:
            pitch.append(1)
            continue
        if not left or left[-1][0] % size:
            return None
        whole, step = left.pop()
        pitch.append(step)
        if whole > size:
            left.append((whole // size, step * size))
    return tuple(reversed(pitch)) if not left else None


# ---- tensors of layers ---------------------------------------------------------------------------------------------


def storage_order(operand: str, machine: Machine) -> str:
    """Return the axes of an operand off the chip, outermost first."""
    return AXES[operand][getattr(machine, f"{operand.lower()}_layout")]


def sizes_of(operand: str, layer: Layer, lacks: str = "") -> Mapping[str, int]:
    """Return the elements of a layer's tensor along its dimensions, input rows and columns under r and c.

    `lacks`: dimensions along which an input has one element.
    """
    rows = {"r": layer.h, "c": layer.l} if operand == "IN" else {}
    return {d: layer.extent(d) for d in DIMS} | rows | dict.fromkeys(lacks, 1)


def pitches(operand: str, layer: Layer, machine: Machine, lacks: str = "") -> Mapping[str, int]:
    """Return the pitch of every dimension of a layer's tensor off the chip; `lacks` as of `sizes_of`."""
    sizes, order = sizes_of(operand, layer, lacks), storage_order(operand, machine)
    return dict(zip(order, rows_of([sizes[d] for d in order]), strict=True))


def dims_of(shape: Shape, layer: Layer) -> tuple[str, ...]:
    """Return the dimension along every axis of an element-wise layer's result."""
    if len(shape) == 4:
        return tuple("bgrc")
    order, found = "brcg", list[str]()
    at, left = 3, layer.g
    for size in reversed(shape):
        while size > 1 and left == 1:
            at -= 1
            left = layer.extent(order[at])
        left //= size
        found.append(order[at])
    return tuple(reversed(found))


def axes_of(operator: Operator, operand: str, shape: Shape, layer: Layer) -> tuple[Axis, ...]:
    """Return the dimensions of a layer's operand by axes of an operator's tensor of this shape.

    `operand` is IN, W (of a product of two inputs) or OUT; of IN the shape is the input's, without broadcasting.
    """
    channel = {"IN": "n", "OUT": "m"}.get(operand, "")
    if isinstance(operator, MatMul):
        lead = ("g",) if len(operator.inputs) > 1 else ("r",)
        if len(operator.inputs) == 1:
            last: tuple[Axis, ...] = ("r",), (channel,)
        elif operand == "W":
            last = (("m",), ("n",)) if operator.transpose_b else (("n",), ("m",))
        else:
            last = (("n",), ("r",)) if operand == "IN" and operator.transpose_a else (("r",), (channel,))
        return (*(lead for _ in shape[:-2]), *last)
    if isinstance(operator, Eltwise):
        return tuple((d,) for d in dims_of(operator.shape, layer))[len(operator.shape) - len(shape) :]
    if len(shape) == 4:
        return ("b",), ("g", channel), ("r",), ("c",)
    return *(("r",) for _ in shape[:-1]), ("g",)


def blocks_of(operator: Operator, layer: Layer) -> tuple[int, int]:
    """Rows and columns of the blocks of a map of another size: the filters of the layer."""
    return operator.shape[2] // layer.r, operator.shape[3] // layer.c


def in_blocks(operator: Operator, layer: Layer) -> tuple[Shape, tuple[Axis, ...]]:
    """Return the result of a map of another size with axes for the blocks, and the dimensions that they consist of."""
    down, over = blocks_of(operator, layer)
    shape = (*operator.shape[:2], layer.r, down, layer.c, over)
    return shape, (("b",), ("g",), ("r",), ("m",), ("c",), ("m",))


def shared_right(operator: Operator, right: Shape) -> bool:
    """Whether a product has one right operand for all its left ones, which are then rows of one product."""
    return isinstance(operator, MatMul) and len(right) == 2 and not operator.transpose_a


def in_layer(array: str, shape: Shape, axes: Sequence[Axis], pitch: Mapping[str, int]) -> Value:
    """Return a tensor as it lies in a layer's array; axes that share a dimension follow each other in it."""
    found: list[int] = []
    taken: dict[str, int] = {}
    for size, dims in zip(reversed(shape), reversed(axes), strict=True):
        inner = dims[-1]
        step = pitch[inner] * taken.get(inner, 1)
        taken[inner] = taken.get(inner, 1) * size
        found.append(step)
    return Value(array, shape, tuple(reversed(found)))


# ---- places of elements --------------------------------------------------------------------------------------------


def coordinates_of(operator: Operator, layer: Layer) -> Sequence[str]:
    """Return the place of the result b, g, m, r, c along every axis of an operator's tensor, as C texts."""
    shape = operator.shape
    if layer.kind == "resample":
        down, over = blocks_of(operator, layer)
        return "b", "g", f"r * {down} + m / {over}", f"c * {over} + m % {over}"
    if layer.kind == "eltwise":
        return _element(shape, layer, "r", "c")
    if len(shape) == 4 and layer.kind != "matmul":
        return "b", f"g * {layer.m} + m" if layer.m > 1 else "g", "r", "c"
    if layer.kind == "matmul" and layer.g > 1:
        return *_apart("g", shape[:-2]), "r", "m"
    return *_apart("r", shape[:-1]), "m"


def _apart(number: str, shape: Shape) -> list[str]:
    """The place along every axis of an element with this number."""
    return [f"{number} / {pitch} % {size}" for size, pitch in zip(shape, rows_of(shape), strict=True)]


def _element(shape: Shape, layer: Layer, row: str, column: str) -> Sequence[str]:
    """The place of an element along every axis of an element-wise layer's result."""
    names, inner, found = {"b": "b", "g": "g", "r": row, "c": column}, dict.fromkeys("bgrc", 1), list[str]()
    for size, d in zip(reversed(shape), reversed(dims_of(shape, layer)), strict=True):
        whole = size == layer.extent(d)
        found.append(names[d] if whole else f"{names[d]} / {inner[d]} % {size}" if size > 1 else "0")
        inner[d] *= size
    return tuple(reversed(found))


def coordinates_in(operator: Operator, source: Operator, layer: Layer) -> Sequence[str]:
    """Return the place of the input b, g, n, row, column along every axis of the tensor that a layer reads."""
    shape = source.shape
    if layer.kind == "eltwise":
        return _element(operator.shape, layer, "row", "column")[len(operator.shape) - len(shape) :]
    if layer.kind != "matmul" and len(shape) == 4:
        return "b", f"g * {layer.n} + n" if layer.n > 1 else "g", "row", "column"
    if layer.kind == "matmul" and len(operator.inputs) > 1:
        swapped = isinstance(operator, MatMul) and operator.transpose_a
        return *_apart("g", shape[:-2]), *(("n", "row") if swapped else ("row", "n"))
    return *_apart("row", shape[:-1]), "n"
