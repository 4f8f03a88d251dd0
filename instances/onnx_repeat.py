"""ONNX operators that repeat elements: Expand, Tile, and Gather by constant indices. Data that moves.

Repeating along an axis is a change of size by nearest neighbours: an axis of one element in front of those that stay
together becomes as many rows. Every element is read once and written as often as it is wanted. Where indices repeat in
no even way, every element of the result reads the one that it is by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from instances.onnx_graph import Graph, Node, Unsupported
from instances.onnx_resize import resampled
from instances.onnx_steps import Steps

#: Elements by those that they may be: a table of as many is made.
MOST_CHOICES = 2**24


def expand(node: Node, graph: Graph) -> None:
    """Convert Expand: axes of one element are repeated, those beside each other at once."""
    steps = Steps(node, graph)
    source, after = steps.source(node.input(0)), graph.shape(node.output)
    given = graph.shape(node.input(0)) if graph.rank(node.input(0)) else ()
    before = [1] * (len(after) - len(given)) + list(given)
    axis = 0
    while axis < len(after):
        end = axis
        while end < len(after) and before[end] == 1:
            end += 1
        if (times := prod(after[axis:end])) > 1:
            source = _repeated(steps, source, prod(after[:axis]), times)
        axis = max(end, axis + 1)
    steps.finish(source, after)


def tile(node: Node, graph: Graph) -> None:
    """Convert Tile: the elements of an axis and of those behind it are repeated one behind the other."""
    steps = Steps(node, graph)
    source, after = steps.source(node.input(0)), graph.shape(node.output)
    for axis, size in enumerate(graph.shape(node.input(0))):
        if after[axis] > size:
            source = _repeated(steps, source, prod(after[:axis]), after[axis] // size)
    steps.finish(source, after)


def gather(node: Node, graph: Graph, picked: Sequence[int]) -> None:
    """Convert Gather of constant indices, some of them more than once: what is picked, each as often as the others."""
    axis = node.integer("axis", 0) % graph.rank(node.input(0))
    number = len(picked)
    for times in (t for t in range(number, 1, -1) if number % t == 0):
        for once, each in ((picked[: number // times], 1), (picked[::times], times)):
            again = np.repeat(once, times) if each > 1 else np.tile(once, times)
            if len(set(once)) == len(once) and list(again) == list(picked):
                _gathered(node, graph, axis, once, times, each)
                return
    steps = Steps(node, graph)
    made = picked_along(steps, steps.source(node.input(0)), np.array(picked), axis)
    steps.finish(made, graph.shape(node.output))


def picked_along(steps: Steps, source: str, picked: np.ndarray, axis: int) -> str:
    """Take elements of an axis in any order, each as often as it is wanted.

    Raises
    ------
    Unsupported
        If elements are wanted again, and there are too many.
    """
    shape = steps.shape(source)
    once, places = np.unique(picked, return_inverse=True)
    if len(once) == len(picked):
        return source if list(picked) == list(range(shape[axis])) else steps.pick(source, picked, axis, "picked")
    if len(picked) * len(once) > MOST_CHOICES:
        raise Unsupported(f"{len(picked):,} indices that repeat elements unevenly, of {len(once):,}")
    if len(once) < shape[axis]:
        source = steps.pick(source, once, axis, "kept")
    lead, rest = prod(shape[:axis]), prod(shape[axis + 1 :])
    source = steps.move(source, (1, lead, len(once), rest), "in")
    taken = np.zeros((len(picked), len(once)), np.float32)
    taken[np.arange(len(picked)), places.ravel()] = 1
    made = resampled(steps, source, "nearest", (len(picked), rest), [taken, None], anywhere=True)
    return steps.move(made, (*shape[:axis], len(picked), *shape[axis + 1 :]), "taken")


def _gathered(node: Node, graph: Graph, axis: int, once: Sequence[int], times: int, each: int) -> None:
    """Keep some elements of an axis, then repeat each of them, or all together."""
    steps, shape = Steps(node, graph), list(graph.shape(node.input(0)))
    source = steps.source(node.input(0))
    shape[axis] = kept = len(once)
    if list(once) != list(range(graph.shape(node.input(0))[axis])):
        source = steps.pick(source, once, axis, "kept")
    lead = prod(shape[:axis]) * (kept if each > 1 else 1)
    steps.finish(_repeated(steps, source, lead, times), graph.shape(node.output))


def _repeated(steps: Steps, source: str, lead: int, times: int) -> str:
    """Repeat what lies behind the first axes, so many elements, in front of which a new axis stands."""
    rest = prod(steps.shape(source)) // lead
    source = steps.move(source, (1, lead, 1, rest), "in")
    return resampled(steps, source, "nearest", (times, rest), [np.ones((times, 1)), None])
