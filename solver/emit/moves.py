"""Operators of ONNX that move elements, as the same elements seen otherwise: pitches, not copies, as far as they go."""

from __future__ import annotations

from math import prod

import numpy as np

from instances.onnx_graph import Node
from instances.onnx_model import OnnxModel
from instances.operators import Reshape, Shape
from solver.emit.pointwise import require
from solver.emit.values import Value

_RESHAPES = frozenset("Reshape Flatten Squeeze Unsqueeze Identity Dropout Cast CastLike Expand Tile".split())


def moved(model: OnnxModel, operator: Reshape, value: Value) -> Value | None:
    """Return the elements of an operator's result where they lie, in their order, maybe under another shape.

    None if the operator's input has to be copied first, so that its elements lie one after the other.

    Raises
    ------
    InputError
        For an operator that is not known, or whose numbers are not constant.
    """
    if operator.name not in model.origin:
        return value
    node = model.node(operator.name)
    where = f"operator {operator.name} ({node.op})"
    if node.op in _RESHAPES or operator.fn == "identity" or node.op not in _MOVES:
        lifted = node.op in _LIFTED and operator.fn == "reshape" and prod(value.shape) == prod(operator.shape)
        made = node.op in _RESHAPES or lifted
        require(made, where, "how it moves elements is not known")
        return value
    if node.op == "Transpose":
        order = node.integers("perm") or tuple(reversed(range(len(value.shape))))
        return value.permuted(order)
    if node.op in ("DepthToSpace", "SpaceToDepth"):
        return _blocks(node, value)
    begins, steps = _part(model, node, operator, value.shape)
    return value.part(begins, steps, _sizes(begins, steps, operator, value.shape))


#: Layers of one dimension are lifted to maps and back.
_LIFTED = frozenset("Conv MaxPool AveragePool GlobalAveragePool GlobalMaxPool ReduceMean ReduceMax".split())
_MOVES = frozenset("Transpose Slice Split Gather DepthToSpace SpaceToDepth".split())


def _part(model: OnnxModel, node: Node, operator: Reshape, shape: Shape) -> tuple[list[int], list[int]]:
    """Where a slice begins along every axis, and its steps."""
    begins, steps = [0] * len(shape), [1] * len(shape)
    where = f"operator {operator.name} ({node.op})"
    if node.op == "Split":
        axis = node.integer("axis", 0) % len(shape)
        output = next(k for k, t in enumerate(node.proto.output) if model.makers.get(t) == operator.name)
        sizes = node.integers("split") or (
            tuple(int(x) for x in model.constant(node.input(1)).ravel()) if node.input(1) else ()
        )
        sizes = sizes or (-(-shape[axis] // len(node.proto.output)),) * len(node.proto.output)
        begins[axis] = sum(sizes[:output])
    elif node.op == "Gather":
        axis = node.integer("axis", 0) % len(shape)
        numbers = model.constant(node.input(1)).ravel() % shape[axis]
        step = int(numbers[1] - numbers[0]) if len(numbers) > 1 else 1
        require(step > 0 and (np.diff(numbers) == step).all(), where, "elements that are no regular step apart")
        begins[axis], steps[axis] = int(numbers[0]), step
    else:
        for axis, begin, step in _slices(model, node, len(shape)):
            require(step > 0, where, "backwards")
            begins[axis] = min(max(begin + shape[axis] if begin < 0 else begin, 0), shape[axis])
            steps[axis] = step
    return begins, steps


def _slices(model: OnnxModel, node: Node, rank: int) -> list[tuple[int, int, int]]:
    def numbers(index: int, name: str) -> list[int] | None:
        if node.integers(name) is not None:
            return list(node.integers(name) or ())
        return [int(x) for x in model.constant(node.input(index)).ravel()] if node.input(index) else None

    begins = numbers(1, "starts") or []
    axes, steps = numbers(3, "axes") or list(range(len(begins))), numbers(4, "steps") or [1] * len(begins)
    return [(axis % rank, begin, step) for axis, begin, step in zip(axes, begins, steps, strict=True)]


def _sizes(begins: list[int], steps: list[int], operator: Reshape, shape: Shape) -> Shape:
    """How many elements there are along every axis: of one that the result has not, one."""
    if len(operator.shape) == len(shape):
        return operator.shape
    kept = list(operator.shape)
    sizes = []
    for axis, size in enumerate(shape):
        whole = (begins[axis], steps[axis]) == (0, 1) and kept and kept[0] == size
        sizes.append(kept.pop(0) if whole else 1)
    return tuple(sizes)


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
