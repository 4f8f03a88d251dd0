"""Norms of ONNX: one operator with its scale and shift where these are constants, which the host computes.

A scale or shift that is computed of the data is multiplied and added behind the norm, by layers of two operands.
"""

from __future__ import annotations

from math import prod

import numpy as np

from instances.onnx_graph import Graph, Node, Unsupported
from instances.onnx_steps import Means, Steps
from instances.operators import Eltwise, Shape

#: Operator -> our function of one tensor.
NORMS = {
    "GroupNormalization": "group_norm", "InstanceNormalization": "instance_norm", "LayerNormalization": "layer_norm",
    "RMSNormalization": "rms_norm",
}  # fmt: skip
#: Whose scale has a number for every channel or group, not for every element of a row.
_BY_CHANNEL = frozenset(("GroupNormalization", "InstanceNormalization"))
_AXES = (0, 2, 3)
#: MeanVarianceNormalization adds 1e-9 to the deviation, so its square to the variance.
_LEAST_VARIANCE = 1e-18


def norm(node: Node, graph: Graph) -> None:
    """Convert a norm with a scale and a shift, constants or not."""
    steps, shape = Steps(node, graph), graph.shape(node.input(0))
    groups = node.integer("num_groups", 0) if node.op == "GroupNormalization" else 1
    if groups < 1 or (node.op in _BY_CHANNEL and shape[1] % groups):
        raise Unsupported(f"{groups} groups of {shape[1]} channels")
    given = [tensor for tensor in node.proto.input[1:3] if tensor]
    source, inside = steps.source(node.input(0)), _scaled(node, graph)
    if all(graph.is_constant(tensor) and _spreads(graph.shape(tensor), inside) for tensor in given):
        parameters = graph.count(given)
        steps.finish(steps.add(Eltwise, [source], fn=NORMS[node.op], parameters=parameters))
        return
    constants = [steps.derive("one", lambda: np.ones(inside, np.float32))]
    if node.op in _BY_CHANNEL:
        constants.append(steps.derive("zero", lambda: np.zeros(inside, np.float32)))
    named = {"num_groups": groups} if node.op == "GroupNormalization" else {"axis": node.integer("axis", -1)}
    attributes = {"epsilon": node.number("epsilon", 1e-5), **(named if node.op != "InstanceNormalization" else {})}
    made = steps.add(Eltwise, [source], "norm", Means(node.op, constants, attributes), fn=NORMS[node.op])
    for tensor, op in ((node.input(1), "Mul"), (node.input(2), "Add")):
        if not tensor:
            continue
        operand = steps.operand(tensor)
        if node.op in _BY_CHANNEL:  # channels, or groups of channels, in the middle
            made = steps.move(made, (shape[0], *inside, prod(shape[1:]) // inside[0]), op.lower())
            operand = steps.move(operand, (1, *inside, 1), f"{op.lower()}.by")
        parameters = graph.count([tensor]) if graph.is_constant(tensor) else 0
        made = steps.add(Eltwise, [made, operand], op.lower(), Means(op), fn=op.lower(), parameters=parameters)
    steps.finish(made)


def _scaled(node: Node, graph: Graph) -> Shape:
    """The shape of the scale: as given by channel or group, else that of a row.

    Up to opset 20 a GroupNormalization has one for every group, since then for every channel.
    """
    if node.op in _BY_CHANNEL:
        return graph.shape(node.input(1))
    shape = graph.shape(node.input(0))
    return shape[node.integer("axis", -1) % len(shape) :]


def _spreads(small: Shape, shape: Shape) -> bool:
    """Whether a tensor can be broadcast to a shape."""
    try:
        return np.broadcast_shapes(small, shape) == shape
    except ValueError:
        return False


def mean_variance(node: Node, graph: Graph) -> None:
    """Convert MeanVarianceNormalization: a norm of rows without a scale, where the axes are the last ones."""
    steps, rank = Steps(node, graph), graph.rank(node.input(0))
    axes = sorted({axis % rank for axis in node.integers("axes") or _AXES})
    kept = [axis for axis in range(rank) if axis not in axes]
    order = [*kept, *axes]
    source = steps.permute(steps.source(node.input(0)), order, "in")
    row = steps.shape(source)[len(kept) :]
    means = Means(
        "LayerNormalization", [steps.derive("one", lambda: np.ones(row, np.float32))],
        {"axis": len(kept), "epsilon": _LEAST_VARIANCE},
    )  # fmt: skip
    made = steps.add(Eltwise, [source], means=means, fn="layer_norm")
    steps.finish(steps.permute(made, [order.index(axis) for axis in range(rank)], "order"))
