"""ONNX operators that give a map another size, or read it where a grid says: Resize, Upsample and GridSample."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from instances.onnx_graph import Graph, Node, Unsupported
from instances.onnx_interpolation import OLD_INPUTS, interpolation
from instances.onnx_steps import OWN, Means, Steps
from instances.operators import Resample, Shape

#: Dimensions of a map.
MAP = 4
#: Interpolations, from the narrowest on.
_REACH = ("nearest", "linear", "cubic")
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
    scales = _scales(node, graph, before, after)
    source = steps.source(node.input(0))
    last = len(before) - (2 if len(before) >= MAP else 1)
    for first, behind in [(last, len(before)), *((axis, axis + 1) for axis in range(last))]:
        if tuple(before[first:behind]) == after[first:behind]:
            continue
        lead, rest = prod(before[:first]), before[behind:]
        batch = before[0] if first > 1 else 1
        source = steps.move(source, (batch, lead // batch, *_two(before[first:behind], rest)), "in")
        matrices = [
            None if one == other else interpolation(node, mode).matrix(one, other, scale)
            for one, other, scale in zip(before[first:behind], after[first:behind], scales[first:behind], strict=True)
        ]
        both = [*matrices, None] if rest else [*[None] * (2 - len(matrices)), *matrices]
        before[first:behind] = after[first:behind]
        source = resampled(steps, source, mode, _two(before[first:behind], rest), both)
    steps.finish(source, after)


def _scales(node: Node, graph: Graph, before: Sequence[int], after: Sequence[int]) -> list[float]:
    """The scale of every axis: as the node says it, else the ratio of the sizes."""
    found = [other / one for one, other in zip(before, after, strict=True)]
    axes = [axis % len(before) for axis in node.integers("axes") or range(len(before))]
    which = 1 if node.op == "Upsample" or len(node.proto.input) <= OLD_INPUTS else 2
    given = graph.value(node.input(which)) if node.input(which) else None
    said = node.numbers("scales") if given is None else tuple(float(x) for x in given.ravel())
    sizes = graph.value(node.input(3)) if node.input(3) else None
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if sizes is not None and policy != "stretch":
        ratios = [float(size) / before[axis] for size, axis in zip(sizes.ravel(), axes, strict=True)]
        said = (min(ratios) if policy == "not_larger" else max(ratios),) * len(axes)
    for axis, scale in zip(axes, said, strict=False):
        found[axis] = scale
    return found


def resampled(
    steps: Steps, source: str, mode: str, size: Sequence[int], matrices: Sequence[np.ndarray | None], *,
    anywhere: bool = False,
) -> str:  # fmt: skip
    """Add a layer, with as narrow windows as have all that its elements are made of, or none if these lie anywhere."""
    names = ["" if one is None else steps.derive("taps", lambda m=one: m) for one in matrices]
    means = Means("Resample", names, domain=OWN)
    for fn in _REACH[_REACH.index(mode) :]:
        made = Resample(name="resample", inputs=("map",), shape=(1,), fn=fn, size=tuple(size), anywhere=anywhere)
        layer = made.layer([steps.shape(source)])
        if made.scattered([steps.shape(source)]) or all(
            one is None or _fits(one, *axis)
            for one, axis in zip(matrices, (
                (layer.r, layer.stride_h, layer.pad_top, layer.kh), (layer.c, layer.stride_w, layer.pad_left, layer.kw)
            ), strict=True)
        ):  # fmt: skip
            return steps.add(Resample, [source], means=means, fn=fn, size=tuple(size), anywhere=anywhere)
    raise Unsupported("elements that lie beyond its window")


def _fits(matrix: np.ndarray, blocks: int, stride: int, pad: int, taps: int) -> bool:
    """Whether all that a block of the result takes lies in its window."""
    rows, columns = np.nonzero(matrix)
    first = rows // (len(matrix) // blocks) * stride - pad
    return bool(((columns >= first) & (columns < first + taps)).all())


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
