"""ONNX operators that give a map another size, or read it where a grid says: Resize, Upsample and GridSample."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from instances.onnx_graph import Graph, Node, Unsupported
from instances.onnx_steps import Steps
from instances.operators import Resample, Shape

#: Dimensions of a map.
MAP = 4
_MODES = {
    "nearest": "nearest", "linear": "linear", "bilinear": "linear", "cubic": "cubic", "bicubic": "cubic",
}  # fmt: skip


def resize(node: Node, graph: Graph) -> None:
    """Convert Resize and Upsample: the last two axes at once, any other by itself (interpolations are separable)."""
    before, after, mode = list(graph.shape(node.input(0))), graph.shape(node.output), _mode(node)
    if node.text("coordinate_transformation_mode", "") == "tf_crop_and_resize":
        raise Unsupported("a part of the map")
    if node.integer("antialias", 0):
        raise Unsupported("an interpolation whose window grows with the factor (antialias)")
    if len(before) != len(after):
        raise graph.fault(node, f"{len(after)} sizes for {len(before)} axes")
    steps = Steps(node, graph)
    source = steps.source(node.input(0))
    last = len(before) - (2 if len(before) >= MAP else 1)
    for first, behind in [(last, len(before)), *((axis, axis + 1) for axis in range(last))]:
        if tuple(before[first:behind]) == after[first:behind]:
            continue
        lead, rest = prod(before[:first]), before[behind:]
        batch = before[0] if first > 1 else 1
        source = steps.move(source, (batch, lead // batch, *_two(before[first:behind], rest)), "in")
        before[first:behind] = after[first:behind]
        source = steps.add(Resample, [source], fn=mode, size=_two(before[first:behind], rest))
    steps.finish(source, after)


def _two(size: Sequence[int], rest: Sequence[int]) -> tuple[int, ...]:
    """Return rows and columns of what changes: one axis of several in front of others lies along the rows."""
    return (*size, prod(rest)) if rest else (*(1,) * (2 - len(size)), *size)


def grid_sample(node: Node, graph: Graph) -> None:
    """Convert GridSample of a map."""
    if graph.rank(node.input(0)) != MAP:
        raise Unsupported(f"an input with {graph.rank(node.input(0))} dimensions")
    steps = Steps(node, graph)
    sources = [steps.source(node.input(k)) for k in range(2)]
    size: Shape = steps.shape(sources[1])[1:3]
    steps.finish(steps.add(Resample, sources, fn=_mode(node, "linear"), size=size))


def _mode(node: Node, default: str = "nearest") -> str:
    mode = node.text("mode", default)
    if mode not in _MODES:
        raise Unsupported(f"an interpolation {mode!r}")
    return _MODES[mode]
