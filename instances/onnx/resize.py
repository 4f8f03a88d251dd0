"""ONNX operators that give a map another size, or read it where a grid says: Resize, Upsample and GridSample.

`interpolation` says how Resize interpolates along an axis, as a matrix: by element of the result what it takes of those
of the map. An example: 2 elements become 4, linear, half_pixel. The centres of the result lie at -0.25, 0.25, 0.75 and
1.25 of the map, which is continued at its ends: rows (1, 0), (0.75, 0.25), (0.25, 0.75), (0, 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from instances.network.operators import Resample, Shape
from instances.onnx.graph import Graph, Node, Unsupported
from instances.onnx.steps import OWN, Means, Steps

#: Inputs of the first version of Resize: the map and the scales.
OLD_INPUTS = 2


@dataclass(frozen=True)
class Interpolation:
    """The attributes of a Resize, or what an Upsample does."""

    mode: str
    coordinates: str
    nearest: str
    cubic: float
    exclude: bool

    def matrix(self, before: int, after: int, scale: float) -> np.ndarray:
        """The elements of the result by those of the map; in single precision, as onnxruntime rounds."""
        x = self._places(before, after, np.float32(scale))
        if self.mode == "nearest":
            return _rows(before, [(self._rounded(x), np.ones(after))])
        if self.mode == "linear":
            x = np.clip(x, 0, before - 1)
            low = np.floor(x)
            return _rows(before, [(low, 1 - (x - low)), (low + 1, x - low)])
        low = np.floor(x)
        taps = [(low + k, _cubic(np.abs(x - low - k), self.cubic)) for k in range(-1, 3)]
        if self.exclude:
            taps = [(at, np.where((at >= 0) & (at < before), weight, 0)) for at, weight in taps]
            total = sum(weight for _, weight in taps)
            taps = [(at, weight / total) for at, weight in taps]
        return _rows(before, taps)

    def _places(self, before: int, after: int, scale: np.float32) -> np.ndarray:
        """Where elements of the result lie in the map."""
        x, half = np.arange(after, dtype=np.float32), np.float32(0.5)
        if self.coordinates == "align_corners":
            return x * np.float32(before - 1) / np.float32(after - 1) if after > 1 else x * 0
        if self.coordinates == "asymmetric":
            return x / scale
        if self.coordinates == "tf_half_pixel_for_nn":
            return (x + half) / scale
        if self.coordinates == "pytorch_half_pixel" and after == 1:
            return x * 0
        if self.coordinates in ("half_pixel", "pytorch_half_pixel"):
            return (x + half) / scale - half
        if self.coordinates == "half_pixel_symmetric":
            offset = before / 2 * (1 - after / (float(scale) * before))
            return np.float32(offset) + (x + half) / scale - half
        raise Unsupported(f"coordinates {self.coordinates!r}")

    def _rounded(self, x: np.ndarray) -> np.ndarray:
        half = np.float32(0.5)
        rounded: dict[str, np.ndarray] = {
            "round_prefer_floor": np.ceil(x - half), "round_prefer_ceil": np.floor(x + half), "floor": np.floor(x),
            "ceil": np.ceil(x), "simple": np.floor(x),
        }  # fmt: skip
        if self.nearest not in rounded:
            raise Unsupported(f"the nearest element by {self.nearest!r}")
        return rounded[self.nearest]


def interpolation(node: Node, mode: str) -> Interpolation:
    """Return how a node interpolates; `mode` is nearest, linear or cubic.

    Upsample, and Resize of opset 10 (which has no region as an input), take the first corners of elements.
    """
    old = node.op == "Upsample" or len(node.proto.input) <= OLD_INPUTS
    return Interpolation(
        mode, "asymmetric" if old else node.text("coordinate_transformation_mode", "half_pixel"),
        "simple" if old else node.text("nearest_mode", "round_prefer_floor"), node.number("cubic_coeff_a", -0.75),
        bool(node.integer("exclude_outside", 0)),
    )  # fmt: skip


def _rows(before: int, taps: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Add up what elements of the result take; beyond its ends a map is continued by its last elements."""
    made = np.zeros((len(taps[0][0]), before), np.float32)
    for at, weight in taps:
        np.add.at(made, (np.arange(len(made)), np.clip(at, 0, before - 1).astype(int)), weight.astype(np.float32))
    return made


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    """The weight of an element at a distance (Keys, 1981)."""
    near = (a + 2) * distance**3 - (a + 3) * distance**2 + 1
    far = a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


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
