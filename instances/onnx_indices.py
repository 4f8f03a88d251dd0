"""ONNX operators that take or set elements by constant indices: data that moves.

What is taken is kept, and elements that are wanted again are read again (`onnx_repeat`). What is set stands behind the
data that it replaces: of both together every element of the result is one, none of them twice. An example: rows 0 and
2 of 3 are set. Data and updates are 5 rows, and the result is rows 3, 1 and 4 of these.
"""

from __future__ import annotations

from math import prod

import numpy as np

from instances.onnx_graph import Graph, Node, Unsupported
from instances.onnx_repeat import picked_along
from instances.onnx_shapes import MOST_INDICES
from instances.onnx_steps import Steps
from instances.onnx_values import options
from instances.operators import Shape

#: What is moved in more pieces than this stays opaque: its C would be a table of as many numbers.
MOST_PIECES = 2**18


def known_indices(node: Node, graph: Graph) -> np.ndarray:
    """Return the indices, the second input; raises Unsupported if they are not known."""
    tensor = node.input(1)
    if not graph.is_constant(tensor):
        helps = options(graph, [tensor])
        raise Unsupported(f"indices that depend on the data{f': add {helps}' if helps else ''}")
    value = graph.value(tensor)
    if value is None:
        raise Unsupported(f"more than {MOST_INDICES:,} indices")
    return value.astype(np.int64)


def gather_by(node: Node, graph: Graph) -> None:
    """Convert GatherElements and GatherND: pieces of the data in any order, each as often as it is wanted."""
    steps, shape, found = Steps(node, graph), graph.shape(node.input(0)), known_indices(node, graph)
    if node.op == "GatherElements":
        numbers, lead = _elements(node, found, shape), len(shape)
    else:
        numbers, lead = _corners(found, shape, node.integer("batch_dims", 0))
    source = steps.move(steps.source(node.input(0)), _pieces(shape, lead), "pieces")
    steps.finish(picked_along(steps, source, numbers, 0), graph.shape(node.output))


def scatter(node: Node, graph: Graph) -> None:
    """Convert ScatterND and ScatterElements (once called Scatter)."""
    if (combined := node.text("reduction", "none")) != "none":
        raise Unsupported(f"it combines elements with others ({combined})")
    steps, shape, found = Steps(node, graph), graph.shape(node.input(0)), known_indices(node, graph)
    numbers, lead = _corners(found, shape, 0) if node.op == "ScatterND" else (_elements(node, found, shape), len(shape))
    if len(np.unique(numbers)) < len(numbers):
        raise Unsupported("indices that set an element twice")
    pieces = _pieces(shape, lead)
    wanted = np.arange(pieces[0])
    wanted[numbers] = pieces[0] + np.arange(len(numbers))
    updates = steps.move(steps.source(node.input(2)), (len(numbers), pieces[1]), "updates")
    if len(numbers) == pieces[0]:
        made = picked_along(steps, updates, wanted - pieces[0], 0)
    else:
        data = steps.move(steps.source(node.input(0)), pieces, "data")
        made = picked_along(steps, steps.concat([data, updates], "beside", axis=0), wanted, 0)
    steps.finish(made, shape)


def _pieces(shape: Shape, lead: int) -> Shape:
    """Pieces that move as a whole, and the elements of each."""
    pieces = prod(shape[:lead])
    if pieces > MOST_PIECES:
        raise Unsupported(f"{pieces:,} pieces of a map by indices; up to {MOST_PIECES:,} are planned")
    return pieces, prod(shape[lead:])


def _elements(node: Node, indices: np.ndarray, shape: Shape) -> np.ndarray:
    """The elements, numbered, that indices along one axis mean, each where it stands along the others."""
    axis = node.integer("axis", 0) % len(shape)
    places: list[np.ndarray] = list(np.indices(indices.shape))
    places[axis] = _inside(indices, shape[axis])
    return np.ravel_multi_index(places, shape).ravel()


def _corners(indices: np.ndarray, shape: Shape, batch: int) -> tuple[np.ndarray, int]:
    """The pieces, numbered, that rows of indices along the first axes mean, and how many axes number a piece."""
    lead = batch + indices.shape[-1]
    places: list[np.ndarray] = list(np.indices(indices.shape[:-1])[:batch])
    places += [_inside(indices[..., k], shape[batch + k]) for k in range(indices.shape[-1])]
    return np.ravel_multi_index(places, shape[:lead]).ravel(), lead


def _inside(indices: np.ndarray, size: int) -> np.ndarray:
    """Indices from the begin; those from the end are negative."""
    return np.where(indices < 0, indices + size, indices)
