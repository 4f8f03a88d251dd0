"""ONNX operators that give a map another size, or read it where a grid says: Resize, GridSample, ConvTranspose and kin.

`Interpolation` says how Resize interpolates along an axis, as a matrix: by element of the result what it takes of those
of the map. An example: 2 elements become 4, linear, half_pixel. The centres of the result lie at -0.25, 0.25, 0.75 and
1.25 of the map, which is continued at its ends: rows (1, 0), (0.75, 0.25), (0.25, 0.75), (0, 1).

**ConvTranspose** has one of three forms; the first and the last multiply each input element by each tap.

* **Phases**, where the output is `stride` times the input in rows and columns (the usual padding): of the kernel, every
  stride-th tap makes every stride-th pixel. Each of the ``S_h * S_w`` phases is a convolution of the input; their
  results are joined and interleaved. With stride 1 that is one plain convolution.
* **One convolution** with stride 1 where the output is no larger than the input, or the kernel dilated: what is cut off
  is not computed.
* **Columns** otherwise, and where windows do not overlap: a 1x1 convolution makes all taps of each input element, and
  windows that overlap are added. Without overlap the result is only reordered. Taps of a dilated kernel lie apart: each
  is added by itself.

The stride-expanded input of the textbooks, with its products by zero, is never made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

import numpy as np

from instances.network.operators import Eltwise, Resample, Shape
from instances.onnx.graph import Graph, Node, Unsupported
from instances.onnx.steps import OWN, Means, Steps, Window

#: Inputs of the first version of Resize: the map and the scales.
OLD_INPUTS = 2


class Interpolation:
    """How a node interpolates; `mode` is nearest, linear or cubic.

    Upsample, and Resize of opset 10 (which has no region as an input), take the first corners of elements.
    """

    def __init__(self, node: Node, mode: str) -> None:
        old = node.op == "Upsample" or len(node.proto.input) <= OLD_INPUTS
        self.mode = mode
        self.coordinates = "asymmetric" if old else node.text("coordinate_transformation_mode", "half_pixel")
        self.nearest = "simple" if old else node.text("nearest_mode", "round_prefer_floor")
        self.cubic, self.exclude = node.number("cubic_coeff_a", -0.75), bool(node.integer("exclude_outside", 0))

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
            None if one == other else Interpolation(node, mode).matrix(one, other, scale)
            for one, other, scale in zip(before[first:behind], after[first:behind], scales[first:behind], strict=True)
        ]
        both = [*matrices, None] if rest else [*[None] * (2 - len(matrices)), *matrices]
        before[first:behind] = after[first:behind]
        how = {"coordinates": Interpolation(node, mode).coordinates} if mode == "linear" else {}
        source = resampled(steps, source, mode, _two(before[first:behind], rest), both, attributes=how)
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
    anywhere: bool = False, attributes: Mapping[str, object] | None = None,
) -> str:  # fmt: skip
    """Add a layer, with as narrow windows as have all that its elements are made of, or none if these lie anywhere.

    `attributes`: what the operator says beside its matrices.
    """
    names = ["" if one is None else steps.derive("taps", lambda m=one: m) for one in matrices]
    means = Means("Resample", names, attributes or {}, domain=OWN)
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


# --- ConvTranspose ----------------------------------------------------------------------------------------------------

#: More convolutions or summands than these are not worth a plan.
MOST_PARTS = 64
Pair = tuple[int, int]


class _Transposed:
    """A transposed convolution of a map in two dimensions; `begin` pixels are cut off before the result."""

    def __init__(self, node: Node, graph: Graph) -> None:
        shape, out = graph.shape(node.input(0)), graph.shape(node.output)
        self.channels, per_group, *kernel = graph.shape(node.input(1))
        self.groups, axes = node.integer("group", 1), len(kernel)
        stride = node.integers("strides") or (1,) * axes
        dilation = node.integers("dilations") or (1,) * axes
        if self.channels != shape[1] or self.channels % self.groups or per_group * self.groups != out[1]:
            said = f"weights for {self.channels} channels in {self.groups} groups, its input has {shape[1]}"
            raise graph.fault(node, said)
        if not len(shape) - 2 == axes == len(stride) == len(dilation):
            raise Unsupported("attributes of different ranks")
        whole = [(i - 1) * s + (k - 1) * d + 1 for i, s, k, d in zip(shape[2:], stride, kernel, dilation, strict=True)]
        begin = _begin(node, [w - o for w, o in zip(whole, out[2:], strict=True)])
        self.size, self.out, self.kernel = _pair(shape[2:], 1), _pair(out[2:], 1), _pair(tuple(kernel), 1)
        self.stride, self.dilation, self.begin = _pair(stride, 1), _pair(dilation, 1), _pair(begin, 0)

    @property
    def in_phases(self) -> bool:
        """Whether every phase of the output is as large as the input, and has taps."""
        scaled = all(o == s * i for o, s, i in zip(self.out, self.stride, self.size, strict=True))
        plain = all(d == 1 or s == 1 for d, s in zip(self.dilation, self.stride, strict=True))
        taps = all(k >= s for k, s in zip(self.kernel, self.stride, strict=True))
        return (
            scaled and plain and taps and all(self._fits(axis) for axis in (0, 1)) and prod(self.stride) <= MOST_PARTS
        )

    def _fits(self, axis: int) -> bool:
        return all(0 <= x < self.phase(axis, p)[0] * self.dilation[axis] for p in range(self.stride[axis])
                   for x in self.phase(axis, p)[1:])  # fmt: skip

    @property
    def apart(self) -> bool:
        """Whether windows do not overlap."""
        return all(k <= s for k, s in zip(self.kernel, self.stride, strict=True))

    @property
    def covers(self) -> bool:
        """Whether every element of the result is one tap of one window."""
        axes = zip(self.size, self.stride, self.begin, self.out, strict=True)
        return self.kernel == self.stride and not any(self.dilated) and all(i * s - b >= o for i, s, b, o in axes)

    @property
    def dilated(self) -> tuple[bool, bool]:
        """Along which axes taps lie apart."""
        return self.dilation[0] > 1 < self.kernel[0], self.dilation[1] > 1 < self.kernel[1]

    @property
    def plain(self) -> bool:
        """Whether it is one convolution, which makes no more products or has no better form."""
        smaller = all(o <= i for o, i in zip(self.out, self.size, strict=True))
        return self.stride == (1, 1) and (smaller or any(self.dilated))

    def taps(self, axis: int) -> list[tuple[int, int, int]]:
        """Taps along an axis that are placed together: the first, how many, and the pixel where the first one falls."""
        kernel, stride, dilation = self.kernel[axis], self.stride[axis], self.dilation[axis]
        if self.dilated[axis]:
            return [(tap, 1, tap * dilation) for tap in range(kernel)]
        return [(tap, min(kernel - tap, stride), tap) for tap in range(0, kernel, stride)]

    def phase(self, axis: int, phase: int) -> tuple[int, int, int]:
        """Return the taps of a phase along an axis, and its padding before and behind."""
        stride, dilation = self.stride[axis], self.dilation[axis]
        first = (phase + self.begin[axis]) % stride
        taps = -(-(self.kernel[axis] - first) // stride)
        before = (taps - 1) * dilation - (phase + self.begin[axis]) // stride
        return taps, before, (taps - 1) * dilation - before


def conv_transpose(node: Node, graph: Graph) -> None:
    """Convert ConvTranspose of a map or a sequence."""
    tensor, weights = node.input(0), node.input(1)
    if not graph.is_constant(weights) or not graph.has_shape(weights):
        raise Unsupported("weights that are not constant")
    if graph.rank(tensor) not in (3, 4) or not graph.has_shape(node.output):
        raise Unsupported(f"an input with {graph.rank(tensor)} dimensions")
    window = _Transposed(node, graph)
    steps = Steps(node, graph)
    batch, filters = graph.shape(node.output)[:2]
    source = steps.move(steps.source(tensor), (batch, window.channels, *window.size), "in")
    if window.in_phases and not window.apart:
        made = _phases(steps, source, window, filters)
    elif window.plain:
        made = _plain(steps, source, window, filters)
    else:
        made = _columns(steps, source, window, filters)
    steps.finish(made, graph.shape(node.output))


def _weights(steps: Steps, w: _Transposed, begin: Pair, step: Pair, taps: Shape) -> str:
    """The weights of a convolution that makes one pixel of every `step`: filters, channels of a group, taps turned."""
    channels, groups = w.channels, w.groups

    def arranged(weights: np.ndarray) -> np.ndarray:
        whole = weights.reshape(groups, channels // groups, -1, *w.kernel).swapaxes(1, 2)
        mine = whole[..., begin[0] :: step[0], begin[1] :: step[1]][..., ::-1, ::-1]
        return mine.reshape(-1, channels // groups, *taps)

    return steps.derive("W", arranged, steps.node.input(1))


def _pair(values: tuple[int, ...], fill: int) -> Pair:
    return (values[0], values[1]) if len(values) > 1 else (fill, values[0])


def _begin(node: Node, cut: list[int]) -> tuple[int, ...]:
    """Return how much is cut off before the result; `cut` is that before and behind (negative: output padding)."""
    mode, pads = node.text("auto_pad", "NOTSET"), node.integers("pads")
    if mode in ("SAME_UPPER", "SAME_LOWER") or node.integers("output_shape"):  # pads do not count
        more = node.integers("output_padding") or (0,) * len(cut)
        totals = [max(behind + one, 0) for behind, one in zip(cut, more, strict=True)]
        # the odd one is cut at the end where it says so, else at the begin
        return tuple(total // 2 if mode == "SAME_UPPER" else total - total // 2 for total in totals)
    return (0,) * len(cut) if pads is None or mode == "VALID" else pads[: len(cut)]


def _phases(steps: Steps, source: str, w: _Transposed, filters: int) -> str:
    rows, columns = w.stride
    parts = []
    for number, (i, j) in enumerate(product(range(rows), range(columns))):
        (kh, top, bottom), (kw, left, right) = w.phase(0, i), w.phase(1, j)
        windows = Window(kh, 1, w.dilation[0], top, bottom), Window(kw, 1, w.dilation[1], left, right)
        suffix = f"phase{number}" if rows * columns > 1 else ""
        first = ((i + w.begin[0]) % rows, (j + w.begin[1]) % columns)
        mine = _weights(steps, w, first, w.stride, (kh, kw))
        part = f"{suffix} of {w.stride}, {w.begin}"  # all phases together have every tap once
        made = steps.conv(source, mine, steps.node.input(1), windows, filters, w.groups, suffix=suffix, part=part)
        parts.append(steps.bias(made, steps.node.input(2), lambda b: b.reshape(-1, 1, 1)))
    if len(parts) == 1:
        return parts[0]
    batch, _, *size = steps.shape(source)
    made = steps.move(steps.concat(parts, "join", axis=1), (batch, *w.stride, filters, *size), "split")
    return _interleaved(steps, steps.permute(made, (0, 3, 4, 1, 5, 2), "order"))


def _plain(steps: Steps, source: str, w: _Transposed, filters: int) -> str:
    """A convolution with the kernel turned; rows and columns that no result is made of are cut off first."""
    reach = [(k - 1) * d for k, d in zip(w.kernel, w.dilation, strict=True)]
    before = [r - b for r, b in zip(reach, w.begin, strict=True)]
    behind = [o - i + r - b for o, i, r, b in zip(w.out, w.size, reach, before, strict=True)]
    size = [i + min(b, 0) + min(e, 0) for i, b, e in zip(w.size, before, behind, strict=True)]
    if min(size) < 1:
        raise Unsupported("a transposed convolution of which nothing is left")
    used = steps.cut(source, (*steps.shape(source)[:2], *size), "used", (0, 0, *(max(-b, 0) for b in before)))
    rows, columns = (
        Window(w.kernel[k], 1, w.dilation[k], max(before[k], 0), max(min(behind[k], reach[k]), 0)) for k in (0, 1)
    )
    turned = _weights(steps, w, (0, 0), (1, 1), w.kernel)
    made = steps.conv(used, turned, steps.node.input(1), (rows, columns), filters, w.groups)
    # Rows and columns that no window reaches (output padding) are added behind it.
    whole = steps.pad(made, (steps.shape(made)[0], filters, *w.out), "rest")
    return steps.bias(whole, steps.node.input(2), lambda b: b.reshape(-1, 1, 1))


def _interleaved(steps: Steps, source: str) -> str:
    """Blocks of pixels (batch, filters, rows, their rows, columns, their columns) as a map."""
    batch, filters, rows, down, columns, across = steps.shape(source)
    return steps.move(source, (batch, filters, rows * down, columns * across), "map")


def _columns(steps: Steps, source: str, w: _Transposed, filters: int) -> str:
    blocks = [w.taps(axis) for axis in (0, 1)]
    if prod(map(len, blocks)) > MOST_PARTS:
        raise Unsupported(f"{prod(map(len, blocks))} windows overlap in a pixel")
    batch, taps = steps.shape(source)[0], prod(w.kernel)

    def arranged(weights: np.ndarray) -> np.ndarray:
        whole = weights.reshape(w.groups, w.channels // w.groups, -1).swapaxes(1, 2)
        return whole.reshape(-1, w.channels // w.groups, 1, 1)

    weights = steps.node.input(1)
    one = (Window(), Window())
    made = steps.conv(source, steps.derive("W", arranged, weights), weights, one, filters * taps, w.groups)
    bias = steps.node.input(2)
    if w.covers:
        made, bias = steps.bias(made, bias, lambda b: np.repeat(b, taps).reshape(-1, 1, 1)), ""
    made = steps.move(made, (batch, filters, *w.kernel, *w.size), "taps")
    full = tuple(i * s + b[-1][2] for i, b, s in zip(w.size, blocks, w.stride, strict=True))
    parts = []
    for at in product(*blocks):
        first, mine, begin = zip(*at, strict=True)
        part = steps.cut(made, (batch, filters, *mine, *w.size), "taps", (0, 0, *first, 0, 0))
        filled = steps.pad(part, (batch, filters, *w.stride, *w.size), "filled")
        whole = _interleaved(steps, steps.permute(filled, (0, 1, 4, 2, 5, 3), "order"))
        parts.append(steps.pad(whole, (batch, filters, *full), "placed", (0, 0, *begin)))
    total = parts[0] if len(parts) == 1 else steps.add(Eltwise, parts, "sum", Means("Sum"), fn="add")
    # Cut the map off, and add the rows and columns that no window reaches.
    least = [min(f - b, o) for f, b, o in zip(full, w.begin, w.out, strict=True)]
    cut = steps.cut(total, (batch, filters, *least), "cut", (0, 0, *w.begin))
    return steps.bias(steps.pad(cut, (batch, filters, *w.out), "rest"), bias, lambda b: b.reshape(-1, 1, 1))
