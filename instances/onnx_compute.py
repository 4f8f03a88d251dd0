"""ONNX operators that multiply or pool: Conv, Gemm, MatMul, pooling, and their quantised kin."""

from __future__ import annotations

from math import prod

import numpy as np

from instances.onnx_frames import conv3d, global_pool3d, pool3d
from instances.onnx_graph import Graph, Node, Unsupported
from instances.onnx_products import contract, matmul_terms
from instances.onnx_steps import Steps
from instances.onnx_windows import window
from instances.operators import Conv, Input, MatMul, Pool, Shape

Pads = tuple[int, int, int, int]


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
    weights = node.input(weight)
    if not graph.is_constant(weights) or not graph.has_shape(weights):
        raise Unsupported("weights that are not constant")
    filters, _, *kernel = graph.shape(weights)
    tensor = node.input(0)
    if graph.is_constant(tensor) and tensor not in graph.makers:  # a map of constants lies in DRAM as an input does
        graph.emit(Input(name=graph.unique(tensor), shape=graph.shape(tensor)), tensor)
    if len(kernel) == 3 and graph.rank(tensor) == 5:
        conv3d(node, graph, weights, node.input(bias) if bias is not None else "")
        return
    extra: Pads = (0, 0, 0, 0)
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
    view = window(node, tuple(kernel), shape[2:])
    view["pad"] = tuple(a + b for a, b in zip(view["pad"], extra, strict=True))
    biased = bias is not None and bool(node.input(bias))
    if bias is not None and biased and not graph.is_constant(node.input(bias)):
        raise Unsupported("a bias that is not constant")
    operator = graph.made(node, Conv, [source], filters=filters, groups=node.integer("group", 1), bias=biased, **view)
    channels = graph.shape(weights)[1] * operator.groups
    if channels != shape[1]:
        raise graph.fault(node, f"weights for {channels} channels, its input has {shape[1]}")
    if filters % operator.groups:
        raise graph.fault(node, f"groups {operator.groups} must divide channels {channels} and filters {filters}")
    _finish(node, graph, operator)
    graph.weigh(operator.name, weights, bias=node.input(bias) if bias is not None and biased else "")


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
    elif node.number("alpha", 1.0) != 1.0:
        steps = Steps(node, graph)
        made = steps.add(MatMul, [steps.source(a), steps.source(b)], transpose_a=left, transpose_b=right)
        steps.finish(steps.bias(steps.times(made, node.number("alpha", 1.0), "alpha"), _addend(node, graph, c)))
    else:
        graph.place(node, graph.made(node, MatMul, (a, b), bias=bool(c), transpose_a=left, transpose_b=right))


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
    if len(kernel) == 3 and graph.rank(node.input(0)) == 5:
        fn = "max" if node.op == "MaxPool" else "avg"
        pool3d(node, graph, fn, kernel, bool(node.integer("ceil_mode", 0)))
        return
    source, shape = _map(node, graph, node.input(0))
    view, ceil = window(node, kernel, shape[2:]), bool(node.integer("ceil_mode", 0))
    fn = "max" if node.op == "MaxPool" else "avg"
    _finish(node, graph, graph.made(node, Pool, [source], fn=fn, ceil_mode=ceil, **view))


def global_pool(node: Node, graph: Graph) -> None:
    """Convert GlobalAveragePool and GlobalMaxPool."""
    if graph.rank(node.input(0)) == 5:
        global_pool3d(node, graph, "global_max" if node.op == "GlobalMaxPool" else "global_avg")
        return
    source, _ = _map(node, graph, node.input(0))
    fn = "global_max" if node.op == "GlobalMaxPool" else "global_avg"
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
