"""ONNX operators that multiply or pool (Conv, Gemm, MatMul and kin), and how often those that are not planned multiply.

Windows have a kernel, stride, dilation and padding along rows and columns (`Window`).

**Three dimensions** are convolutions and poolings of frames. A 3-D convolution is one in two dimensions with a batch of
output frames. Each sees the frames of its window as channels: the same products, every one of them. What it costs: a
frame that several windows share is read for each of them, and frames of zeros before and behind are read too. A kernel
of one pixel runs along time in one convolution, one of a single frame or of windows that do not overlap reads nothing
twice.

**Multiply-accumulates** of nodes that are not planned are counted by `macs_of`, so that no total leaves them out
without a word. A node multiplies

* Conv and its kin: one product for each output element, input channel of its group and tap: ``|out| * |W| / filters``;
* ConvTranspose: each input element meets each filter and tap of its group: ``|in| * |W| / channels``;
* MatMul, Gemm and their kin: ``|out| * inner``;
* Einsum: ``prod(sizes of all letters) * (operands - 1)``;
* LSTM, GRU, RNN: every weight once for each step and image: ``steps * batch * (|W| + |R|)``;
* Attention: every key meets the queries, and every value the results: ``keys * (|queries| + |out|)``.

Other standard operators work element by element or move data: none. What runs a graph of its own, transforms into
frequencies, or is no standard operator, is not known.
"""

from __future__ import annotations

from collections import Counter
from math import prod

import numpy as np

from instances.network.operators import Conv, Input, MatMul, Pool, Shape
from instances.onnx.graph import Graph, Node, Unsupported
from instances.onnx.products import contract, letters_of, matmul_terms
from instances.onnx.steps import Means, Steps, Window, Windows, attributes_of, fields_of


def windows(node: Node, kernel: Shape, size: Shape) -> list[Window]:
    """Return what the windows of a node do along every axis of its kernel; `size` is that of the map."""
    axes = len(kernel)
    strides, dilations = node.integers("strides") or (1,) * axes, node.integers("dilations") or (1,) * axes
    pads = node.integers("pads") or (0,) * (2 * axes)
    if len(strides) != axes or len(dilations) != axes or len(pads) != 2 * axes:
        raise Unsupported("attributes of different ranks")
    mode = node.text("auto_pad", "NOTSET")
    both = list(zip(pads[:axes], pads[axes:], strict=True))
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        given = zip(size, kernel, strides, dilations, strict=True)
        both = [_same(*axis, mode == "SAME_UPPER") for axis in given]
    elif mode == "VALID":
        both = [(0, 0)] * axes
    return [Window(k, s, d, *pad) for k, s, d, pad in zip(kernel, strides, dilations, both, strict=True)]


def window(node: Node, kernel: Shape, size: Shape) -> Windows:
    """Return what the windows of a node do in two dimensions: others get a first axis of 1."""
    if not 1 <= len(kernel) <= 2:
        raise Unsupported(f"{len(kernel)}-dimensional windows")
    first, *second = windows(node, kernel, size[-len(kernel) :])
    return (first, second[0]) if second else (Window(), first)


def _same(size: int, kernel: int, stride: int, dilation: int, upper: bool) -> tuple[int, int]:
    """Return the pads before and after for which the output has ceil(size / stride) elements."""
    total = max((-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
    less = total // 2
    return (less, total - less) if upper else (total - less, less)


def _frames(time: Window, given: int) -> int:
    """Return how many frames come out of a window along time."""
    room = given + time.before + time.after - (time.kernel - 1) * time.dilation - 1
    if room < 0:
        raise ValueError(f"a window of {time.kernel} frames over {given} frames")
    return room // time.stride + 1


def conv3d(node: Node, graph: Graph, weights: str, bias: str) -> None:
    """Convert a convolution of a video (batch, channels, frames, rows, columns)."""
    steps = Steps(node, graph)
    source = steps.source(node.input(0))
    batch, channels, frames, *size = steps.shape(source)
    filters, per_group, *kernel = graph.shape(weights)
    groups = node.integer("group", 1)
    if per_group * groups != channels or filters % groups:
        raise graph.fault(
            node, f"weights for {per_group * groups} channels in {groups} groups, its input has {channels}"
        )
    time, rows, columns = windows(node, tuple(kernel), (frames, *size))
    if all((w.kernel, w.stride, w.before, w.after) == (1, 1, 0, 0) for w in (rows, columns)):
        source = steps.move(source, (batch, channels, frames, size[0] * size[1]), "in")
        flat = steps.derive("W", lambda w: w.reshape(*w.shape[:3], 1), weights)
        made = steps.conv(source, flat, weights, (time, Window()), filters, groups, bias=bias)
        steps.finish(made, (batch, filters, _frames(time, frames), *size), inner=made)
        return
    source = steps.permute(source, (0, 2, 1, 3, 4), "frames")
    source = _in_channels(steps, source, time, groups)
    # frames of a window stand before the channels of a group
    flat = steps.derive("W", lambda w: w.swapaxes(1, 2).reshape(len(w), -1, *w.shape[3:]), weights)
    inner = steps.conv(source, flat, weights, (rows, columns), filters, groups, bias=bias)
    made = steps.move(inner, (batch, _frames(time, frames), filters, *steps.shape(inner)[2:]), "split")
    steps.finish(steps.permute(made, (0, 2, 1, 3, 4), "order"), inner=inner)


def _in_channels(steps: Steps, source: str, time: Window, groups: int) -> str:
    """Return one map for every output frame: the frames of its window as channels, group by group."""
    batch, frames, channels, rows, columns = steps.shape(source)
    out = _frames(time, frames)
    padded = (batch, frames + time.before + time.after, channels, rows, columns)
    source = steps.pad(source, padded, "zeros", (0, time.before, 0, 0, 0))
    if time.kernel == time.stride and time.dilation == 1 and groups == 1:  # windows lie one behind the other
        source = steps.cut(source, (batch, out * time.kernel, channels, rows, columns), "used")
        return steps.move(source, (batch * out, time.kernel * channels, rows, columns), "windows")
    shape: Shape = (batch, out, groups, channels // groups, rows, columns)
    taps = []
    for tap in range(time.kernel):
        start, step = (0, tap * time.dilation, 0, 0, 0), (1, time.stride, 1, 1, 1)
        part = steps.cut(source, (batch, out, channels, rows, columns), f"frame{tap}", start, step)
        taps.append(steps.move(part, shape, f"frame{tap}"))
    made = steps.concat(taps, "windows", axis=3)
    return steps.move(made, (batch * out, time.kernel * channels, rows, columns), "windows")


def pool3d(node: Node, graph: Graph, fn: str, kernel: Shape, ceil: bool) -> None:
    """Convert pooling of a video: over rows and columns of each frame, then over time."""
    steps = Steps(node, graph)
    source = steps.source(node.input(0))
    batch, channels, frames, *size = steps.shape(source)
    time, rows, columns = windows(node, kernel, (frames, *size))
    padded = any(pad for axis in (time, rows, columns) for pad in (axis.before, axis.after))
    if fn == "avg" and padded and not node.integer("count_include_pad", 0):
        raise Unsupported("an average in three dimensions that leaves padding out")
    counted = {"ceil_mode": int(ceil)} | ({"count_include_pad": 1} if fn == "avg" else {})

    def pooled(source: str, suffix: str, window: Windows) -> str:
        means = Means("MaxPool" if fn == "max" else "AveragePool", (), attributes_of(window) | counted)
        return steps.add(Pool, [source], suffix, means, fn=fn, ceil_mode=ceil, **fields_of(window))

    made = pooled(steps.move(source, (batch, channels * frames, *size), "frames"), "", (rows, columns))
    size = list(steps.shape(made)[2:])
    if (time.kernel, time.stride) != (1, 1):
        made = steps.move(made, (batch, channels, frames, size[0] * size[1]), "columns")
        made = pooled(made, "time", (time, Window()))
        frames = steps.shape(made)[2]
    steps.finish(made, (batch, channels, frames, *size))


def global_pool3d(node: Node, graph: Graph, fn: str) -> None:
    """Convert global pooling of a video."""
    steps = Steps(node, graph)
    source = steps.source(node.input(0))
    batch, channels, frames, rows, columns = steps.shape(source)
    source = steps.move(source, (batch, channels, frames, rows * columns), "in")
    means = Means("GlobalMaxPool" if fn == "global_max" else "GlobalAveragePool")
    steps.finish(steps.add(Pool, [source], means=means, fn=fn), (batch, channels, 1, 1, 1))


def _map(node: Node, graph: Graph, tensor: str) -> tuple[str, Shape]:
    """Return the tensor with a feature map and its shape; a one-dimensional one gets a row axis of 1."""
    shape = graph.shape(tensor)
    if graph.rank(tensor) == 4:
        return tensor, shape
    if graph.rank(tensor) != 3:
        raise Unsupported(f"an input with {graph.rank(tensor)} dimensions")
    lifted = (shape[0], shape[1], 1, shape[2])
    return graph.tensor_of[Steps(node, graph).move(graph.maker(tensor), lifted, "in")], lifted


def _finish(node: Node, graph: Graph, operator: Conv | Pool) -> None:
    """Add the operator; give a one-dimensional one its three-dimensional output back."""
    if graph.rank(node.input(0)) == 4:
        graph.place(node, operator, foldable=isinstance(operator, Conv))
        return
    try:
        batch, channels, _, size = operator.infer([graph.operators[operator.inputs[0]].shape])
    except ValueError as error:
        raise Unsupported(str(error)) from None
    inner = graph.emit(operator.model_copy(update={"shape": (batch, channels, 1, size)}), f"{operator.name} (tensor)")
    Steps(node, graph).finish(inner, (batch, channels, size), inner=inner if isinstance(operator, Conv) else "")


def conv(node: Node, graph: Graph, weight: int = 1, bias: int | None = 2) -> None:
    """Convert Conv, ConvInteger and QLinearConv (`weight` and `bias` are input positions; None: it has no bias)."""
    weights, biases = node.input(weight), "" if bias is None else node.input(bias)
    if not graph.is_constant(weights) or not graph.has_shape(weights):
        raise Unsupported("weights that are not constant")
    filters, _, *kernel = graph.shape(weights)
    tensor = node.input(0)
    if graph.is_constant(tensor) and tensor not in graph.makers:  # a map of constants lies in DRAM as an input does
        graph.emit(Input(name=graph.unique(tensor), shape=graph.shape(tensor)), tensor)
    if len(kernel) == 3 and graph.rank(tensor) == 5:
        conv3d(node, graph, weights, biases)
        return
    extra = (0, 0, 0, 0)
    if tensor in graph.padding and graph.only_reader(tensor):
        inner, pads = graph.padding[tensor]
        reach = [(k - 1) * d for k, d in zip(kernel, node.integers("dilations") or (1, 1), strict=False)]
        stated = node.integers("pads") or (0, 0, 0, 0)
        # Padding beyond the kernel's reach would make windows of zeros only; that stays a padding of its own.
        fits = len(reach) == 2 and all(pads[i] + stated[i] <= reach[i % 2] for i in range(4))
        if fits and node.text("auto_pad", "NOTSET") in ("NOTSET", "VALID"):
            graph.operators.pop(graph.maker(tensor))
            graph.makers[tensor] = graph.maker(inner)
            tensor, extra = inner, pads
    source, shape = _map(node, graph, tensor)
    view = fields_of(window(node, tuple(kernel), shape[2:]))
    view["pad"] = tuple(a + b for a, b in zip(view["pad"], extra, strict=True))
    if biases and not graph.is_constant(biases):
        raise Unsupported("a bias that is not constant")
    groups = node.integer("group", 1)
    operator = graph.made(node, Conv, [source], filters=filters, groups=groups, bias=bool(biases), **view)
    channels = graph.shape(weights)[1] * operator.groups
    if channels != shape[1]:
        raise graph.fault(node, f"weights for {channels} channels, its input has {shape[1]}")
    if filters % operator.groups:
        raise graph.fault(node, f"groups {operator.groups} must divide channels {channels} and filters {filters}")
    _finish(node, graph, operator)
    graph.weigh(operator.name, weights, bias=biases)


def gemm(node: Node, graph: Graph) -> None:
    """Convert Gemm: constant weights give a fully connected layer, else a product of two inputs."""
    a, b, c = node.input(0), node.input(1), node.input(2)
    left, right = bool(node.integer("transA", 0)), bool(node.integer("transB", 0))
    fixed = graph.is_constant(b)
    rows = bool(c) and prod(graph.shape(c)[:-1]) > 1  # no bias: another addend for every row
    if graph.is_constant(a) or (left and fixed) or rows or (c and not graph.is_constant(c)):
        terms = ("ba" if left else "ab", "cb" if right else "bc", "ac")
        contract(node, graph, (a, b), terms, _addend(node, graph, c), node.number("alpha", 1.0))
    elif fixed:
        _fully_connected(node, graph, a, b, right, c)
    elif c or node.number("alpha", 1.0) != 1.0:
        steps = Steps(node, graph)
        made = steps.add(MatMul, [steps.source(a), steps.source(b)], transpose_a=left, transpose_b=right)
        steps.finish(steps.bias(steps.times(made, node.number("alpha", 1.0), "alpha"), _addend(node, graph, c)))
    else:
        graph.place(node, graph.made(node, MatMul, (a, b), transpose_a=left, transpose_b=right))


def _addend(node: Node, graph: Graph, tensor: str) -> str:
    """The third operand of Gemm, times beta."""
    beta = node.number("beta", 1.0)
    if not tensor or beta == 1:
        return tensor
    if not graph.is_constant(tensor):
        raise Unsupported("an addend that is not constant, with a factor")
    made = graph.derive(f"{node.label}:beta (constant)", lambda c: c * np.float32(beta), tensor)
    graph.known.shapes[made] = graph.known.shapes[tensor]
    return made


def _fully_connected(node: Node, graph: Graph, a: str, b: str, transposed: bool, bias: str) -> None:
    shape = graph.shape(b)
    inner, features = (shape[1], shape[0]) if transposed else shape
    if graph.shape(a)[-1] != inner:
        raise graph.fault(node, f"weights for {inner} features, its input has shape {graph.shape(a)}")
    made = graph.made(node, MatMul, [a], out_features=features, bias=bool(bias))
    graph.place(node, made, foldable=True)
    graph.weigh(made.name, b, bias=bias)


def matmul(node: Node, graph: Graph, right: int = 1) -> None:
    """Convert MatMul, MatMulInteger and QLinearMatMul (`right` is the right operand's position)."""
    a, b = node.input(0), node.input(right)
    plain = graph.rank(a) >= 2 and graph.rank(b) == 2 and not graph.is_constant(a)
    if plain and graph.is_constant(b):
        _fully_connected(node, graph, a, b, False, "")
    elif graph.is_constant(a) or graph.is_constant(b) or graph.rank(a) < 2 or graph.rank(b) < 2:
        shapes = [graph.known.shapes.get(tensor) or () for tensor in (a, b)]
        contract(node, graph, (a, b), matmul_terms(*shapes))
    else:
        graph.place(node, graph.made(node, MatMul, (a, b)))


def pool(node: Node, graph: Graph) -> None:
    """Convert MaxPool and AveragePool."""
    kernel = node.integers("kernel_shape")
    if not kernel:
        raise graph.fault(node, "kernel_shape is missing")
    fn, ceil = "max" if node.op == "MaxPool" else "avg", bool(node.integer("ceil_mode", 0))
    if len(kernel) == 3 and graph.rank(node.input(0)) == 5:
        pool3d(node, graph, fn, kernel, ceil)
        return
    source, shape = _map(node, graph, node.input(0))
    view = fields_of(window(node, kernel, shape[2:]))
    _finish(node, graph, graph.made(node, Pool, [source], fn=fn, ceil_mode=ceil, **view))


def global_pool(node: Node, graph: Graph) -> None:
    """Convert GlobalAveragePool and GlobalMaxPool."""
    fn = "global_max" if node.op == "GlobalMaxPool" else "global_avg"
    if graph.rank(node.input(0)) == 5:
        global_pool3d(node, graph, fn)
        return
    source, _ = _map(node, graph, node.input(0))
    _finish(node, graph, graph.made(node, Pool, [source], fn=fn))


def reduce(node: Node, graph: Graph) -> None:
    """Convert reductions: poolings of a whole map, over whichever axes are reduced."""
    steps, tensor = Steps(node, graph), node.input(0)
    shape, rank = graph.shape(tensor), graph.rank(tensor)
    given = node.integers("axes") or (graph.integers(node.input(1)) if node.input(1) else ())
    if given is None:
        raise Unsupported("a reduction over axes that are not known")
    if not given and node.integer("noop_with_empty_axes", 0):
        steps.finish(steps.source(tensor))
        return
    axes = sorted(axis % rank for axis in given) or list(range(rank))
    kept = [axis for axis in range(rank) if axis not in axes]
    source = steps.source(tensor)
    if axes != [2, 3] or rank != 4:
        source = steps.permute(source, [*kept, *axes], "in")
        lead, last = prod(shape[axis] for axis in kept), shape[axes[-1]]
        source = steps.move(source, (1, lead, prod(shape) // lead // last, last), "in")
    pooled = steps.add(Pool, [source], fn="global_max" if node.op in ("ReduceMax", "ReduceMin") else "global_avg")
    out = [1 if axis in axes else size for axis, size in enumerate(shape)]
    steps.finish(pooled, out if node.integer("keepdims", 1) else [shape[axis] for axis in kept] or [1])


#: Position of the weights, and of the two factors.
_CONVS = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3, "DeformConv": 1, "ConvTranspose": 1}
_PRODUCTS = {
    "MatMul": (0, 1), "MatMulInteger": (0, 1), "QLinearMatMul": (0, 3), "Gemm": (0, 1), "com.microsoft.QGemm": (0, 3),
    "com.microsoft.FusedMatMul": (0, 1),
}  # fmt: skip
#: Position of the keys that an attention has seen before.
_PAST = 4
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
_UNKNOWN = frozenset({"DFT", "STFT"})


def runs_a_graph(node: Node) -> bool:
    """Whether a node holds graphs (If, Loop, Scan, SequenceMap)."""
    return any(a.HasField("g") or a.graphs for a in node.proto.attribute)


def macs_of(node: Node, graph: Graph) -> int | None:
    """Return the multiply-accumulates of a node, None where they are not known."""

    def shape(tensor: str) -> Shape | None:
        return graph.shape(tensor) if tensor and graph.has_shape(tensor) else None

    out = shape(node.output)
    if node.op in _CONVS:
        meets, weights = shape(node.input(0)) if node.op == "ConvTranspose" else out, shape(node.input(_CONVS[node.op]))
        return None if meets is None or weights is None else prod(meets) * prod(weights[1:])
    if node.op in _PRODUCTS:
        one = shape(node.input(_PRODUCTS[node.op][0]))
        return None if out is None or one is None else prod(out) * one[-2 if node.integer("transA", 0) else -1]
    if node.op == "Einsum":
        return _einsum(node.text("equation", ""), [shape(tensor) for tensor in node.proto.input])
    if node.op == "Attention":
        return _attention([shape(tensor) for tensor in node.proto.input], out)
    if node.op in _RECURRENT:
        steps, one, two = (shape(node.input(k)) for k in range(3))
        return None if steps is None or one is None or two is None else prod(steps[:2]) * (prod(one) + prod(two))
    return None if "." in node.op or node.op in _UNKNOWN or runs_a_graph(node) else 0


def _einsum(equation: str, shapes: list[Shape | None]) -> int | None:
    known = [shape for shape in shapes if shape is not None]
    if len(known) != len(shapes):
        return None
    try:
        terms, _ = letters_of(equation.replace(" ", ""), list(map(len, known)))
    except ValueError:
        return None
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, known, strict=True):
        for letter, size in zip(term, shape, strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
    return prod(sizes.values()) * (len(terms) - 1)


def _attention(shapes: list[Shape | None], out: Shape | None) -> int | None:
    """Queries, keys, values, a mask, keys of tokens before: their tokens are the last axis but one."""
    queries, keys, *_ = shapes
    before = shapes[_PAST] if len(shapes) > _PAST else None
    if queries is None or keys is None or out is None:
        return None
    return (keys[-2] + (before[-2] if before else 0)) * (prod(queries) + prod(out))


def folded_macs(graph: Graph) -> str:
    """Say what of constants multiplies and is left out, or may multiply; an empty text if there is nothing."""
    counts = [(node.op, macs_of(node, graph)) for node in map(Node, graph.known.folded)]
    found = [(op, macs) for op, macs in counts if macs != 0]
    if not found:
        return ""
    kinds = ", ".join(f"{kind} x{number}" for kind, number in sorted(Counter(op for op, _ in found).items()))
    known = [macs for _, macs in found if macs is not None]
    said = f"{sum(known):,} MACs" if len(known) == len(found) else "MACs not known"
    return f"made of constants only and left out: {kinds} ({said})"
