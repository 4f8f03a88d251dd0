"""ONNX operators that work element by element or move data, and the table of all conversions.

**Repeating** (Expand, Tile, and Gather by constant indices) is data that moves. Repeating along an axis is a change of
size by nearest neighbours: an axis of one element in front of those that stay together becomes as many rows. Every
element is read once and written as often as it is wanted. Where indices repeat in no even way, every element of the
result reads the one that it is by itself.

**Taking and setting** elements by constant indices is data that moves, too. What is taken is kept, and elements that
are wanted again are read again, as above. What is set stands behind the data that it replaces: of both together every
element of the result is one, none of them twice. An example: rows 0 and 2 of 3 are set. Data and updates are 5 rows,
and the result is rows 3, 1 and 4 of these.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import numpy as np
from pydantic import ValidationError

from instances.errors import InputError
from instances.network.operators import Concat, Conv, Eltwise, MatMul, Pool, Reshape, Shape
from instances.onnx.asked import options
from instances.onnx.compute import conv, gemm, global_pool, macs_of, matmul, pool, reduce, runs_a_graph
from instances.onnx.control import MOST_PASSES
from instances.onnx.graph import Graph, Node, Unsupported
from instances.onnx.products import NORMS, attention, einsum, mean_variance, norm
from instances.onnx.recurrent import recurrent
from instances.onnx.resize import conv_transpose, grid_sample, resampled, resize
from instances.onnx.shapes import MOST_INDICES
from instances.onnx.steps import Move, Steps
from instances.validation import explain_faults

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

    Raises Unsupported if elements are wanted again, and there are too many.
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


logger = logging.getLogger(__name__)

#: ONNX name -> our element-wise function of one tensor.
UNARY = {
    "Abs": "abs", "Ceil": "ceil", "Celu": "celu", "Clip": "clip", "Cos": "cos", "DequantizeLinear": "dequantize",
    "Elu": "elu", "Erf": "erf", "Exp": "exp", "Floor": "floor", "Gelu": "gelu",
    "HardSigmoid": "hard_sigmoid", "HardSwish": "hard_swish", "IsInf": "is_inf", "IsNaN": "is_nan",
    "LeakyRelu": "leaky_relu", "Log": "log", "LogSoftmax": "log_softmax",
    "LpNormalization": "lp_norm", "LRN": "lrn", "Mish": "mish", "Neg": "neg", "Not": "not", "PRelu": "prelu",
    "QuantizeLinear": "quantize", "Reciprocal": "reciprocal", "Relu": "relu", "Round": "round", "Selu": "selu",
    "Shrink": "shrink", "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin", "Softmax": "softmax",
    "Softplus": "softplus", "Softsign": "softsign", "Sqrt": "sqrt", "Swish": "swish", "Tan": "tan", "Tanh": "tanh",
    "ThresholdedRelu": "thresholded_relu",
}  # fmt: skip
NARY = {
    "Add": "add", "And": "and", "Div": "div", "Equal": "equal", "Greater": "greater", "GreaterOrEqual": "greater",
    "Less": "less", "LessOrEqual": "less", "Max": "max", "Mean": "mean", "Min": "min", "Mod": "mod", "Mul": "mul",
    "Or": "or", "Pow": "pow", "Sub": "sub", "Sum": "add", "Where": "where", "Xor": "xor",
}  # fmt: skip
#: Operators that may not be planned without knowing every shape.
COMPUTES = frozenset(
    """AveragePool Conv ConvInteger Gemm GlobalAveragePool GlobalMaxPool MatMul MatMulInteger MaxPool QLinearConv
    QLinearMatMul""".split()
)
#: Why an operator that runs a graph is still there (`instances.onnx.control`).
_OF_THE_DATA = f"it runs a graph, as often as the data say or more than {MOST_PASSES} times"
#: Operators whose first input says a size, not only the further ones; inputs that say which graph is run and how often,
#: where not the first two.
_OF_SIZES = frozenset(("ConstantOfShape", "Range"))
_DECIDES = {"If": slice(0, 1), "Scan": slice(0, 0)}
#: Operators with several results.
SEVERAL = frozenset("Attention DynamicQuantizeLinear GRU LSTM RNN Split".split())


def convert(node: Node, graph: Graph) -> None:
    """Add the operators for one node; nothing for constants, an opaque one for what is not supported.

    Raises InputError if a shape that is needed is missing or shapes contradict each other.
    """
    if all(graph.is_constant(o) for o in node.proto.output if o):
        return
    graph.node, before = graph.originals.get(node.output, node.proto), graph.made_so_far()
    try:
        handler = HANDLERS.get(node.op)
        if handler is None:
            decides = node.proto.input[_DECIDES.get(node.op, slice(0, 2))]
            raise Unsupported(
                f"{_OF_THE_DATA}{_add(options(graph, decides))}" if runs_a_graph(node) else "no conversion"
            )
        tensors = graph.activations(node)
        first = next((o for o in node.proto.output if o), "")
        if not all(map(graph.has_shape, tensors)) or (node.op not in COMPUTES and not graph.has_shape(first)):
            if node.op in COMPUTES:
                for tensor in tensors:
                    graph.shape(tensor)
            decides = node.proto.input[0 if node.op in _OF_SIZES else 1 :]
            raise Unsupported(f"a shape is unknown{_add(options(graph, decides))}")
        if node.op not in SEVERAL and any(o and graph.readers[o] for o in node.proto.output[1:]):
            raise Unsupported("its further outputs are used")
        handler(node, graph)
    except InputError:
        raise
    except Unsupported as reason:
        graph.drop(before)
        logger.debug("%s: operator %r (%s) stays opaque: %s", graph.where, node.label, node.op, reason)
        graph.opaque(node, str(reason), macs_of(node, graph))
    except ValidationError as error:
        raise graph.fault(node, explain_faults(error, Conv)) from None
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise graph.fault(node, f"malformed attributes or inputs ({error})") from error


def _add(helps: str) -> str:
    return f": add {helps}" if helps else ""


# --- element by element ------------------------------------------------------------------------------------------


def _unary(node: Node, graph: Graph) -> None:
    tensors = graph.activations(node)
    if tensors != [node.input(0)]:
        raise Unsupported("its parameters are not constant")
    further = [t for t in node.proto.input[1:] if t]
    parameters = graph.count(further) if node.op == "PRelu" else 0  # the others' are no trained parameters
    graph.place(node, graph.made(node, Eltwise, tensors, fn=UNARY[node.op], parameters=parameters))


def _nary(node: Node, graph: Graph) -> None:
    inputs = [t for t in node.proto.input if t]
    tensors = [t for t in inputs if not graph.is_constant(t)]
    constants = [t for t in inputs if graph.is_constant(t)]
    if len(tensors) == 1 and len(constants) == 1 and _fold(node, graph, tensors[0], constants[0]):
        return
    steps, wanted = Steps(node, graph), graph.shape(node.output)
    given = np.broadcast_shapes(*map(graph.shape, tensors))
    parameters = graph.count(t for t in constants if graph.size(t) > 1)
    absorbed = len(tensors) == len(constants) == 1 and _absorbed(node, graph, tensors[0], constants[0])
    if not absorbed and any(graph.size(t) > 1 for t in constants):  # they are read as operands, single numbers are not
        read = [t for t in inputs if graph.size(t) > 1 or not graph.is_constant(t)]
        operands = [steps.source(t, operand=True) for t in read]
        steps.finish(steps.add(Eltwise, operands, fn=NARY[node.op], parameters=parameters))
        return
    if len(given) < len(wanted) and len(tensors) == 1:  # a constant with more axes adds some
        source = steps.move(graph.maker(tensors[0]), wanted, "in")
        steps.finish(steps.add(Eltwise, [source], fn=NARY[node.op], parameters=parameters))
        return
    graph.place(node, graph.made(node, Eltwise, tensors, fn=NARY[node.op], parameters=parameters))


def _absorbed(node: Node, graph: Graph, tensor: str, constant: str) -> bool:
    """Whether a factor or addend for every channel can be part of the weights and bias of the layer before it.

    So it can behind another such one, too.
    """
    axis = graph.channels.get(tensor, -1)
    if tensor in graph.foldable:
        axis = graph.rank(tensor) - 1 if isinstance(graph.operators[graph.foldable[tensor]], MatMul) else 1
    found = axis >= 0 and graph.only_reader(tensor) and _per_channel(node, graph, tensor, constant, axis)
    if found:
        graph.channels[node.output] = axis
    return found


def _per_channel(node: Node, graph: Graph, tensor: str, constant: str, axis: int) -> bool:
    """Whether a node adds or multiplies by one number for every index of an axis."""
    rank = graph.rank(tensor)
    shape = graph.known.shapes.get(constant) or ()
    padded = (1,) * (rank - len(shape)) + tuple(shape)
    per_channel = len(padded) == rank and padded[axis] == graph.size(constant) == graph.shape(tensor)[axis]
    in_the_way = node.op in ("Sub", "Div") and node.input(0) == constant
    return per_channel and not in_the_way and node.op in ("Add", "Sub", "Mul", "Div")


def _quantize(node: Node, graph: Graph) -> None:
    """Convert DynamicQuantizeLinear: what is quantised, and a pooling of all of it that finds its range."""
    steps, outputs = Steps(node, graph), [o for o in node.proto.output[1:] if graph.readers[o]]
    source = steps.source(node.input(0))
    if outputs:
        shape = steps.shape(source)
        whole = steps.move(source, (1, 1, prod(shape[:-1]), shape[-1]), "whole")
        found = steps.add(Pool, [whole], "range", fn="global_max")
        for tensor in outputs:
            steps.finish(found, (1,), tensor)
    steps.finish(steps.add(Eltwise, [source], fn="quantize"))


def _fold(node: Node, graph: Graph, tensor: str, constant: str) -> bool:
    """Fold a per-channel constant into the layer or batch norm before it; return whether that was possible.

    An addend becomes the bias. A factor or addend behind a batch norm becomes part of it (the original Caffe
    models split each batch norm into a normalisation and a scale).
    """
    into = graph.foldable.get(tensor)
    if into is None or not graph.only_reader(tensor):
        return False
    operator = graph.operators[into]
    axis = graph.rank(tensor) - 1 if isinstance(operator, MatMul) else 1
    if not _per_channel(node, graph, tensor, constant, axis):
        return False
    normed = isinstance(operator, Eltwise) or (isinstance(operator, Conv) and operator.batch_norm)
    if not normed:
        if node.op not in ("Add", "Sub") or not isinstance(operator, Conv | MatMul):
            return False
        graph.replace(into, bias=True)
    graph.alias(node.output, tensor, [constant])
    return True


def _batch_norm(node: Node, graph: Graph) -> None:
    """Fold a batch norm into the convolution before it, if nothing else reads that one's output."""
    tensor = node.input(0)
    if graph.activations(node) != [tensor] or graph.rank(tensor) < 2:
        raise Unsupported("its parameters are not constant")
    into = graph.foldable.get(tensor)
    operator = graph.operators.get(into or "")
    if into and isinstance(operator, Conv) and not operator.batch_norm and graph.only_reader(tensor):
        graph.replace(into, batch_norm=True)
        graph.count(node.proto.input[1:3], into)
        graph.alias(node.output, tensor, node.proto.input[1:])
        return
    made = graph.made(node, Eltwise, [tensor], fn="batch_norm", parameters=graph.count(node.proto.input[1:3]))
    graph.place(node, made, foldable=True)


# --- moving data -------------------------------------------------------------------------------------------------


def _move(node: Node, graph: Graph, fn: Move, **place: tuple[int, ...]) -> None:
    tensor = node.input(0)
    if tensor not in graph.activations(node):
        raise Unsupported("its data input is constant")
    graph.place(node, graph.made(node, Reshape, [tensor], shape=graph.shape(node.output), fn=fn, **place))


def _slice(node: Node, graph: Graph) -> None:
    """Convert Slice, Gather with constant indices, Expand and Tile."""
    before, after = prod(graph.shape(node.input(0))), prod(graph.shape(node.output))
    picked = None
    fixed = graph.is_constant(node.input(1)) and graph.value(node.input(1)) is None
    if node.op == "Gather" and not (fixed and before >= after):  # many indices are not looked at: each once, we take it
        picked = [int(k) for k in known_indices(node, graph).ravel()]
    size = graph.shape(node.input(0))[node.integer("axis", 0)] if picked else 0
    if picked is not None and len({k % size for k in picked}) < len(picked):
        gather(node, graph, [k % size for k in picked])
    elif before < after and node.op in ("Expand", "Tile"):
        (expand if node.op == "Expand" else tile)(node, graph)
    else:
        starts, steps = _place(node, graph) if node.op == "Slice" else ((), ())
        _move(node, graph, "slice", starts=starts, steps=steps)


def _place(node: Node, graph: Graph) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the first index and the step of a Slice along every axis; nothing where they are not known or go back."""
    before, after = graph.shape(node.input(0)), graph.shape(node.output)
    late = [graph.integers(node.input(k)) if node.input(k) else None for k in (1, 3, 4)]
    starts = late[0] or tuple(node.integers("starts") or ())
    axes = late[1] or tuple(node.integers("axes") or ()) or tuple(range(len(starts)))
    steps = late[2] or (1,) * len(starts)
    if not starts or len(before) != len(after) or not len(starts) == len(axes) == len(steps) or min(steps) < 1:
        return (), ()
    first, step = [0] * len(before), [1] * len(before)
    for axis, start, each in zip(axes, starts, steps, strict=True):
        size = before[axis]
        first[axis], step[axis] = min(max(start + size if start < 0 else start, 0), size), each
    return tuple(first), tuple(step) if max(step) > 1 else ()


def _split(node: Node, graph: Graph) -> None:
    source, rank, begin = graph.maker(node.input(0)), graph.rank(node.input(0)), 0
    axis = node.integer("axis", 0) % rank
    for index, tensor in enumerate(node.proto.output):
        known = bool(tensor) and graph.has_shape(tensor)
        if tensor and graph.readers[tensor]:
            if not known:
                raise Unsupported("a part's size is unknown")
            name, shape = graph.unique(f"{node.label}:{index}"), graph.shape(tensor)
            starts = tuple(begin if k == axis else 0 for k in range(rank)) if begin >= 0 else ()
            graph.emit(Reshape(name=name, inputs=(source,), shape=shape, fn="slice", starts=starts), tensor)
        begin = begin + graph.shape(tensor)[axis] if known and begin >= 0 else -1  # -1: not known from here on


def _pad(node: Node, graph: Graph) -> None:
    """Convert Pad; zeros around rows and columns are remembered, so that a convolution can absorb them."""
    tensor, rank = node.input(0), graph.rank(node.input(0))
    pads = _pads(node, graph, rank)
    if any(p < 0 for p in pads):
        raise Unsupported("negative pads")
    if not any(pads):
        _move(node, graph, "identity")
        return
    _move(node, graph, "pad")
    value = graph.value(node.input(2)) if node.input(2) else None
    zero = not node.input(2) or (value is not None and not value.any())
    zero = zero and node.text("mode", "constant") == "constant"
    if rank == 4 and zero and not float(node.text("value", "0")) and not any(pads[i] for i in (0, 1, 4, 5)):
        graph.padding[node.output] = (tensor, (pads[2], pads[3], pads[6], pads[7]))


def _pads(node: Node, graph: Graph, rank: int) -> tuple[int, ...]:
    """Return the pads before all axes, then those behind; an input may say which axes are meant."""
    given = node.integers("pads") or graph.integers(node.input(1))
    axes = graph.integers(node.input(3)) if node.input(3) else tuple(range(rank))
    if given is None or axes is None or len(given) != 2 * len(axes):
        raise Unsupported("pads that are not known")
    pads = [0] * (2 * rank)
    for number, axis in enumerate(axes):
        pads[axis % rank], pads[axis % rank + rank] = given[number], given[number + len(axes)]
    return tuple(pads)


def _concat(node: Node, graph: Graph) -> None:
    tensors = [t for t in node.proto.input if t and (graph.size(t) or not graph.is_constant(t))]
    for tensor in tensors:  # a constant part lies in DRAM as an input does; one of no elements is none
        Steps(node, graph).source(tensor)
    axis = node.integer("axis", 1) % max(graph.rank(tensors[0]), 1)
    graph.place(node, graph.made(node, Concat, tensors, axis=axis))


def _each(names: str, handler: Callable[[Node, Graph], None]) -> dict[str, Callable[[Node, Graph], None]]:
    return dict.fromkeys(names.split(), handler)


HANDLERS: dict[str, Callable[[Node, Graph], None]] = {
    **dict.fromkeys(UNARY, _unary), **dict.fromkeys(NARY, _nary),
    **dict.fromkeys(NORMS, norm), **_each("MeanVarianceNormalization", mean_variance),
    **_each("BatchNormalization", _batch_norm), **_each("DynamicQuantizeLinear", _quantize),
    **_each("Concat", _concat), **_each("Pad", _pad),
    **_each("GatherElements GatherND", gather_by), **_each("Scatter ScatterElements ScatterND", scatter),
    **_each("Split", _split), **_each("Expand Gather Slice Tile", _slice),
    **_each("DepthToSpace Flatten Reshape SpaceToDepth Squeeze Unsqueeze", partial(_move, fn="reshape")),
    **_each("Cast CastLike Dropout Identity", partial(_move, fn="identity")),
    **_each("Transpose", partial(_move, fn="transpose")),
    **_each("Conv", conv), **_each("ConvInteger", partial(conv, bias=None)),
    **_each("QLinearConv", partial(conv, weight=3, bias=8)),
    **_each("Gemm", gemm), **_each("MatMul MatMulInteger", matmul), **_each("QLinearMatMul", partial(matmul, right=3)),
    **_each("Attention", attention), **_each("ConvTranspose", conv_transpose), **_each("Einsum", einsum),
    **_each("GRU LSTM RNN", recurrent), **_each("Resize Upsample", resize), **_each("GridSample", grid_sample),
    **_each("AveragePool MaxPool", pool), **_each("GlobalAveragePool GlobalMaxPool", global_pool),
    **_each("ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin", reduce),
    **_each("ReduceProd ReduceSum ReduceSumSquare", reduce),
}  # fmt: skip
