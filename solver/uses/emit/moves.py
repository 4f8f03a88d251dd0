"""Operators of ONNX that move elements, as the same elements seen otherwise: pitches, not copies, as far as they go.

What picks elements along every axis (slices, gathers with constant indices, paddings, repetitions) is one rule: the
result has, along each axis, those elements of the operator's input whose numbers stand in a list; -1 stands for one
that is filled in. Lists of regular steps are seen by pitches (backwards and in place, too), others the host copies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from instances.network.operators import Opaque, Operator, Shape
from instances.onnx.graph import Node
from instances.onnx.model import OnnxModel
from solver.uses.emit.kinds import require
from solver.uses.emit.values import Value

RESHAPES = frozenset("Reshape Flatten Squeeze Unsqueeze Identity Dropout Cast CastLike".split())
BLOCKS = ("DepthToSpace", "SpaceToDepth")
#: Stands for an element that is filled in.
FILLED = -1


@dataclass(frozen=True, eq=False)
class Picked:
    """Along every axis of a tensor the elements that a result has; `fill` stands for the others."""

    axes: tuple[np.ndarray, ...]
    fill: float = 0.0

    @property
    def shape(self) -> Shape:
        """Of the result, before it is given another one."""
        return tuple(map(len, self.axes))

    def seen(self, value: Value) -> Value | None:
        """The result where its elements lie; None if they are no regular steps apart, or filled in."""
        begins, steps = [], []
        for axis in self.axes:
            step = int(axis[1] - axis[0]) if len(axis) > 1 else 1
            if (axis == FILLED).any() or (np.diff(axis) != step).any():
                return None
            begins.append(int(axis[0]))
            steps.append(step)
        return value.part(begins, steps, self.shape)


def moves(operator: Operator) -> bool:
    """Whether C of an operator that no plan has is a copy."""
    return isinstance(operator, Opaque) and operator.kind in PICKS


def moved(model: OnnxModel, operator: Operator, value: Value) -> Value | Picked | None:
    """Return the elements of an operator's result where they lie, in their order, maybe under another shape.

    What cannot be seen so is returned as lists, of an input of the same shape. None if the operator's input has to be
    copied first, so that its elements lie one after the other. Raises InputError for an operator that is not known, or
    whose numbers are not constant.
    """
    if operator.name not in model.origin:
        return value
    node = model.node(operator.name)
    if node.op in RESHAPES:
        return value
    if node.op == "Transpose":
        return value.permuted(node.integers("perm") or tuple(reversed(range(len(value.shape)))))
    if node.op in BLOCKS:
        return _blocks(node, value)
    picked = picks(model, operator, value.shape)
    if picked is None:
        return value
    lead = len(picked.axes) - len(value.shape)
    longer = Value(value.array, (1,) * lead + value.shape, (0,) * lead + value.pitch, value.offset)
    return picked.seen(longer) or picked


def picks(model: OnnxModel, operator: Operator, shape: Shape) -> Picked | None:
    """Return which elements of an input of this shape an operator takes; None for one that keeps all in their order.

    Raises InputError as `moved`.
    """
    node = model.node(operator.name)
    where = f"operator {operator.name} ({node.op})"
    if node.op not in PICKS:  # an operator of its own kind that is told by its shapes: nothing moves
        require(prod(shape) == prod(operator.shape), where, "how it moves elements is not known")
        return None
    return PICKS[node.op](model, node, operator, shape)


def _whole(shape: Shape) -> list[np.ndarray]:
    return [np.arange(size) for size in shape]


def _split(model: OnnxModel, node: Node, operator: Operator, shape: Shape) -> Picked:
    axis = node.integer("axis", 0) % len(shape)
    output = next(k for k, t in enumerate(node.proto.output) if model.makers.get(t) == operator.name)
    sizes = node.integers("split")
    sizes = tuple(model.constant(node.input(1)).ravel().tolist()) if not sizes and node.input(1) else sizes
    sizes = sizes or (-(-shape[axis] // len(node.proto.output)),) * len(node.proto.output)
    begin, axes = sum(sizes[:output]), _whole(shape)
    axes[axis] = axes[axis][begin : begin + sizes[output]]
    return Picked(tuple(axes))


def _gather(model: OnnxModel, node: Node, operator: Operator, shape: Shape) -> Picked:
    axis, axes = node.integer("axis", 0) % len(shape), _whole(shape)
    where = f"operator {operator.name} ({node.op})"
    require(model.is_constant(node.input(1)), where, "its indices depend on the data")
    axes[axis] = model.constant(node.input(1)).ravel().astype(int) % shape[axis]
    return Picked(tuple(axes))


def _slice(model: OnnxModel, node: Node, operator: Operator, shape: Shape) -> Picked:
    def numbers(index: int, name: str) -> list[int] | None:
        if node.integers(name) is not None:
            return list(node.integers(name) or ())
        return [int(x) for x in model.constant(node.input(index)).ravel()] if node.input(index) else None

    starts, ends = numbers(1, "starts") or [], numbers(2, "ends") or []
    chosen, steps = numbers(3, "axes") or list(range(len(starts))), numbers(4, "steps") or [1] * len(starts)
    axes = _whole(shape)
    for axis, start, end, step in zip(chosen, starts, ends, steps, strict=True):
        axes[axis] = axes[axis][slice(start, end if step > 0 or end >= -shape[axis] else None, step)]
    return Picked(tuple(axes))


def _pad(model: OnnxModel, node: Node, operator: Operator, shape: Shape) -> Picked:
    """`numpy.pad` of the numbers of the elements does what Pad does of the elements."""
    where, mode = f"operator {operator.name} ({node.op})", node.text("mode", "constant")
    given = node.integers("pads") or tuple(int(x) for x in model.constant(node.input(1)).ravel())
    chosen = model.constant(node.input(3)).ravel() % len(shape) if node.input(3) else np.arange(len(shape))
    fill = float(model.constant(node.input(2)).ravel()[0]) if node.input(2) else node.number("value", 0.0)
    require(mode in ("constant", "reflect", "edge", "wrap"), where, f"padding by {mode!r}")
    filled: Any = {"constant_values": FILLED} if mode == "constant" else {}
    axes = _whole(shape)
    for k, axis in enumerate(chosen):
        before, behind = given[k], given[k + len(chosen)]
        cut = axes[axis][max(-before, 0) : shape[axis] - max(-behind, 0)]
        axes[axis] = np.pad(cut, (max(before, 0), max(behind, 0)), mode=mode, **filled)  # type: ignore[call-overload]
    return Picked(tuple(axes), fill)


def _expand(model: OnnxModel, node: Node, operator: Operator, shape: Shape) -> Picked:
    longer = (1,) * (len(operator.shape) - len(shape)) + tuple(shape)
    return Picked(tuple(
        np.arange(size) if size > 1 or after == 1 else np.zeros(after, int)
        for size, after in zip(longer, operator.shape, strict=True)
    ))  # fmt: skip


def _tile(model: OnnxModel, node: Node, operator: Operator, shape: Shape) -> Picked:
    return Picked(tuple(np.arange(after) % size for size, after in zip(shape, operator.shape, strict=True)))


PICKS: dict[str, Callable[[OnnxModel, Node, Operator, Shape], Picked]] = {
    "Expand": _expand, "Gather": _gather, "Pad": _pad, "Slice": _slice, "Split": _split, "Tile": _tile,
}  # fmt: skip


def _blocks(node: Node, value: Value) -> Value | None:
    """Blocks of channels become blocks of pixels, or the other way round."""
    b, c, h, w = value.shape
    k = node.integer("blocksize", 1)
    if node.op == "SpaceToDepth":
        cut, order = value.reshaped((b, c, h // k, k, w // k, k)), (0, 3, 5, 1, 2, 4)
    elif node.text("mode", "DCR") == "DCR":
        cut, order = value.reshaped((b, k, k, c // (k * k), h, w)), (0, 3, 4, 1, 5, 2)
    else:
        cut, order = value.reshaped((b, c // (k * k), k, k, h, w)), (0, 1, 4, 2, 5, 3)
    return cut and cut.permuted(order)
