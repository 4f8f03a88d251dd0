"""First half of the ONNX reader: infers every shape, folds the constants that shapes depend on.

Weights are never looked at: tensors of more than `SMALL` elements (`MOST_INDICES` wide integers), and all tensors
kept in other files, are turned into inputs of the graph before anything else happens, so that no code after that could
read them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

from instances.errors import InputError
from instances.network.operators import Shape

#: Domains of the standard operators.
STANDARD = ("", "ai.onnx")
#: Tensors up to this size may describe shapes, axes or pads; larger ones are weights.
SMALL = 1024
#: Integers of 32 and 64 bits are indices: so many of them are read.
MOST_INDICES = 2**16
#: Shape inference passes the values of tensors of one axis on, a record for each, up to so many.
LONGEST_LIST = 2**20
#: Operators that may be evaluated on small constants: their results are never larger than their inputs' sum.
FOLDABLE = frozenset(
    """Abs Add And Cast Ceil Concat Div Equal Flatten Floor Gather Greater GreaterOrEqual Identity Less LessOrEqual Max
    Min Mod Mul Neg Not Or ReduceMax ReduceMin ReduceProd ReduceSum Reshape Slice Split Sqrt Squeeze Sub Transpose
    Unsqueeze Where""".split()
)
#: Operators that may be evaluated where shape inference says that their results are small.
GROWING = frozenset("Expand Pad Range Tile".split())
#: Operators that shape inference does not know, at all or in older opsets: their first result has the shape of their
#: first input (`GroupNorm` and `RotaryEmbedding` of com.microsoft, too).
SAME_SHAPE = frozenset(
    """Gelu GroupNorm GroupNormalization HardSwish LayerNormalization MeanVarianceNormalization Mish RMSNormalization
    RotaryEmbedding Swish""".split()
)
RANDOM = frozenset("Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike".split())


#: What multiplies, all of it with its data first; and which operands of convolutions are always weights.
CONVS = frozenset("Conv ConvInteger QLinearConv ConvTranspose DeformConv".split())
PRODUCTS = CONVS | frozenset("Einsum Gemm MatMul MatMulInteger QLinearMatMul".split())


@dataclass
class Inferred:
    """What is known of the tensors: shapes (None: unknown), which are constant, and the small constant values."""

    shapes: dict[str, Shape | None] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)
    values: dict[str, np.ndarray] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)
    """Element types as ONNX numbers them; 0 or none: not known."""
    folded: list[onnx.NodeProto] = field(default_factory=list)
    """Nodes whose results are constants: products and other work that no plan holds may be among them."""


def strip_weights(graph: onnx.GraphProto, where: str) -> Inferred:
    """Turn large and external constants into inputs; return what the graph's constants are.

    Raises InputError for a tensor with negative sizes.
    """
    known = Inferred()
    declared = {i.name for i in graph.input}

    def declare(name: str, data_type: int, shape: Shape) -> None:
        known.constants.add(name)
        known.shapes[name] = shape
        if name not in declared:
            declared.add(name)
            graph.input.append(helper.make_tensor_value_info(name, data_type, list(shape)))

    def stays(tensor: onnx.TensorProto, name: str) -> bool:
        """Record a constant; return whether it is small enough to stay, else declare it as an input."""
        shape = tuple(tensor.dims)
        if any(size < 0 for size in shape):
            raise InputError(f"{where}: tensor {name!r} has a negative size in its shape {shape}")
        most = MOST_INDICES if tensor.data_type in (onnx.TensorProto.INT32, onnx.TensorProto.INT64) else SMALL
        if prod(shape) <= most and not _external(tensor):
            try:
                known.values[name] = numpy_helper.to_array(tensor)
            except Exception:  # noqa: BLE001 - odd element types and short data: the value stays unknown
                pass
            else:
                known.constants.add(name)
                known.shapes[name] = shape
                return True
        declare(name, tensor.data_type, shape)
        return False

    kept_tensors = [tensor for tensor in graph.initializer if stays(tensor, tensor.name)]
    for sparse in graph.sparse_initializer:
        declare(sparse.values.name, sparse.values.data_type, tuple(sparse.dims))
    kept_nodes = []
    for node in graph.node:
        value = next((a for a in node.attribute if a.name == "value" and a.HasField("t")), None)
        plain = node.op_type == "Constant" and len(node.output) == 1
        if not (plain and value) or stays(value.t, node.output[0]):
            kept_nodes.append(node)
    del graph.sparse_initializer[:]
    refill(graph.initializer, kept_tensors)
    refill(graph.node, kept_nodes)
    return known


def _external(tensor: onnx.TensorProto) -> bool:
    return tensor.data_location == onnx.TensorProto.EXTERNAL or len(tensor.external_data) > 0


def refill(field: Any, items: Iterable[Any]) -> None:
    """Let a repeated field of a message hold copies of items, which may be some of its own."""
    copies = [deepcopy(item) for item in items]
    del field[:]
    field.extend(copies)


def opset_of(opsets: Iterable[onnx.OperatorSetIdProto]) -> int:
    """Return the version of the standard operators."""
    return int(next(one.version for one in opsets if one.domain in STANDARD))


def used_tensors(node: onnx.NodeProto) -> list[str]:
    """Return the tensors that a node reads, with those its subgraphs take from outside."""
    used = [name for name in node.input if name]
    for attribute in node.attribute:
        for graph in [attribute.g] if attribute.HasField("g") else list(attribute.graphs):
            inner = {i.name for i in graph.input} | {t.name for t in graph.initializer}
            for sub in graph.node:
                used.extend(name for name in used_tensors(sub) if name not in inner)
                inner.update(sub.output)
            used.extend(o.name for o in graph.output if o.name not in inner)
    return list(dict.fromkeys(used))


def sort_nodes(graph: onnx.GraphProto, where: str) -> None:
    """Put the nodes in topological order, keeping the file's order where it can stay.

    Raises InputError if a tensor is produced twice or there is a cycle (named).
    """
    maker: dict[str, int] = {}
    for index, node in enumerate(graph.node):
        for name in node.output:
            if name and name in maker:
                raise InputError(f"{where}: tensor {name!r} is produced by two operators")
            if name:
                maker[name] = index
    edges = [(maker[x], i) for i, node in enumerate(graph.node) for x in used_tensors(node) if x in maker]
    if all(before < after for before, after in edges):
        return  # as it should be, and as it nearly always is
    import networkx as nx  # late: a sixth of a second

    order: nx.DiGraph[int] = nx.DiGraph()
    order.add_nodes_from(range(len(graph.node)))
    order.add_edges_from(edges)
    try:
        indices = list(nx.lexicographical_topological_sort(order))
    except nx.NetworkXUnfeasible:
        cycle = [graph.node[edge[0]] for edge in nx.find_cycle(order)][:8]
        names = [repr(node.name or next(iter(node.output), node.op_type)) for node in cycle]
        raise InputError(f"{where}: the graph has a cycle: {' -> '.join([*names, names[0]])}") from None
    refill(graph.node, [graph.node[i] for i in indices])


def _infos(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    yield from graph.input
    yield from graph.value_info
    yield from graph.output


def infer(model: onnx.ModelProto, known: Inferred, where: str) -> None:
    """Fill `known` with every shape that can be inferred, folding shape arithmetic in between.

    What the file declares of other tensors than inputs is believed where nothing is inferred, and nowhere else.

    Raises InputError if shape inference itself refuses the model.
    """
    declared = _take_declared(model.graph)
    while True:  # every round finds a value or a shape that none before did
        try:
            graph = shape_inference.infer_shapes(model, data_prop=not _long_lists(model.graph)).graph
        except Exception as error:  # noqa: BLE001 - the C++ side raises many types
            raise InputError(f"{where}: shape inference fails: {str(error)[:200] or type(error).__name__}") from None
        for info in _infos(graph):
            shape = _shape(info)
            if shape is not None or info.name not in known.shapes:
                known.shapes[info.name] = shape
        found = fold(graph.node, known, list(model.opset_import))
        known.types.update((i.name, i.type.tensor_type.elem_type) for i in _infos(graph))
        passed = _pass_on(model.graph, known)
        if all(known.shapes.get(o) is not None for n in graph.node for o in n.output if o):
            break
        if not (found or passed or _declare_next(model.graph, known, declared)):
            break
        _make_initializers(model.graph, found)
    _spread_constants(model.graph, known)


def _long_lists(graph: onnx.GraphProto) -> bool:
    """Whether a tensor of one axis is too long for values to be passed on: each would be a record of the inference."""
    sizes = [list(tensor.dims) for tensor in graph.initializer]
    sizes += [[dim.dim_value for dim in info.type.tensor_type.shape.dim] for info in _infos(graph)]
    return any(len(one) == 1 and one[0] > LONGEST_LIST for one in sizes)


def _take_declared(graph: onnx.GraphProto) -> dict[str, Shape]:
    """Take the shapes that a file declares of results and inner tensors out of it; return those that are numbers."""
    found = {}
    made = {name for node in graph.node for name in node.output}
    # what is said of a constant would hide its value from shape inference
    refill(graph.value_info, [info for info in graph.value_info if info.name in made])
    for info in (*graph.value_info, *graph.output):
        shape = _shape(info)
        if shape is not None and all(shape):
            found[info.name] = shape
        if info.type.HasField("tensor_type") and info.name in made:
            info.type.tensor_type.ClearField("shape")
    return found


def _declare_next(graph: onnx.GraphProto, known: Inferred, declared: dict[str, Shape]) -> bool:
    """Believe what is declared of the first tensors that are not inferred; say whether there were any."""
    unknown = {o for node in graph.node for o in node.output if o and known.shapes.get(o) is None}
    some = [
        o for node in graph.node if not unknown.intersection(node.input) for o in node.output
        if o in unknown and o in declared
    ] or [o for node in graph.node for o in node.output if o in unknown and o in declared]  # fmt: skip
    infos = {info.name: info for info in (*graph.value_info, *graph.output)}
    for name in some:
        known.shapes[name] = declared[name]
        sizes = infos[name].type.tensor_type.shape.dim
        sizes.extend(onnx.TensorShapeProto.Dimension(dim_value=size) for size in declared[name])
    return bool(some)


def _pass_on(graph: onnx.GraphProto, known: Inferred) -> bool:
    """Give results the shape of what is read, where shape inference does not know the operator; say whether any."""
    found = False
    for node in graph.node:
        shape = known.shapes.get(node.input[0]) if node.op_type in SAME_SHAPE and node.input else None
        if shape is not None and node.output and known.shapes.get(node.output[0]) is None:
            known.shapes[node.output[0]] = shape
            kind = known.types.get(node.input[0]) or onnx.TensorProto.FLOAT
            graph.value_info.append(helper.make_tensor_value_info(node.output[0], kind, shape))
            found = True
    return found


def _shape(info: onnx.ValueInfoProto) -> Shape | None:
    if not info.type.HasField("tensor_type") or not info.type.tensor_type.HasField("shape"):
        return None
    sizes = info.type.tensor_type.shape.dim
    if not all(size.HasField("dim_value") and size.dim_value >= 0 for size in sizes):
        return None
    return tuple(size.dim_value for size in sizes)


def fold(
    nodes: Iterable[onnx.NodeProto], known: Inferred, opsets: list[onnx.OperatorSetIdProto]
) -> dict[str, np.ndarray]:
    """Evaluate what can be on small constants; return the new values."""
    found: dict[str, np.ndarray] = {}
    for node in nodes:
        if node.domain not in STANDARD or all(o in known.values for o in node.output):
            continue
        outputs = _evaluate(node, known, opsets)
        for name, value in zip(node.output, outputs, strict=False):
            new = bool(name) and name not in known.values
            if new and isinstance(value, np.ndarray | np.generic) and value.size <= _most(value.dtype):
                found[name] = np.asarray(value)
                known.values[name] = found[name]
                known.shapes[name] = tuple(found[name].shape)
    known.constants.update(found)
    return found


def _most(kind: np.dtype) -> int:
    """So many elements of a kind are looked at."""
    return MOST_INDICES if kind in (np.int32, np.int64) else SMALL


def _evaluate(node: onnx.NodeProto, known: Inferred, opsets: list[onnx.OperatorSetIdProto]) -> list[object]:
    if node.op_type in ("Shape", "Size") and len(node.input) == 1:
        shape = known.shapes.get(node.input[0])
        if shape is None:
            return []
        bounds = {a.name: a.i for a in node.attribute}
        part = np.array(shape, dtype=np.int64)[bounds.get("start", 0) : bounds.get("end", len(shape))]
        return [part if node.op_type == "Shape" else np.array(prod(shape), dtype=np.int64)]
    if any(_external(a.t) or a.HasField("sparse_tensor") for a in node.attribute):
        return []
    foldable = node.op_type in FOLDABLE or (node.op_type == "Constant" and not node.input)
    if node.op_type == "ConstantOfShape" and len(node.input) == 1 and node.input[0] in known.values:
        sizes = [abs(int(size)) for size in known.values[node.input[0]].reshape(-1)]
        fill = next((numpy_helper.to_array(a.t).dtype for a in node.attribute if a.name == "value"), np.dtype("f4"))
        foldable = prod(sizes) <= _most(fill)
    if node.op_type in GROWING:
        size = known.shapes.get(node.output[0])
        first = known.values.get(node.input[0])
        foldable = size is not None and first is not None and prod(size) <= _most(first.dtype)
    if not foldable or any(name and name not in known.values for name in node.input):
        return []
    feeds = {name: known.values[name] for name in node.input if name}
    try:
        with np.errstate(all="ignore"):
            return evaluate(node, feeds, opsets)
    except Exception:  # noqa: BLE001 - what cannot be evaluated stays unknown, which is reported where it matters
        return []


def evaluate(
    node: onnx.NodeProto, feeds: Mapping[str, np.ndarray], opsets: Sequence[onnx.OperatorSetIdProto]
) -> list[object]:  # fmt: skip
    """Return what the reference implementation of ONNX makes of a node with these inputs; raises whatever it does."""
    kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in feeds.items()}
    inputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in kinds.items()]
    outputs = [helper.make_tensor_value_info(n, onnx.TensorProto.UNDEFINED, None) for n in node.output if n]
    tiny = helper.make_model(helper.make_graph([node], "one", inputs, outputs), opset_imports=opsets)
    return list(ReferenceEvaluator(tiny).run(None, dict(feeds)))


def _make_initializers(graph: onnx.GraphProto, found: dict[str, np.ndarray]) -> None:
    """Replace evaluated nodes by their values, so that the next round of shape inference sees them."""
    kept = [node for node in graph.node if not all(o in found for o in node.output if o)]
    made = {o for n in kept for o in n.output}
    refill(graph.node, kept)
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in found.items() if name not in made)


def _spread_constants(graph: onnx.GraphProto, known: Inferred) -> None:
    """Mark the outputs of operators that read constants only; but a product of a constant map is computed.

    Such maps are what a network starts from (a flow of zeros, the queries of a decoder). A product that makes weights
    for others is folded like any other arithmetic on constants.
    """
    given = set(known.constants)
    _spread(graph, known, frozenset())
    weights = _weights(graph, known)
    computed = {
        node.output[0] for node in graph.node
        if node.op_type in PRODUCTS and node.output and node.output[0] in known.constants - given - weights
    }  # fmt: skip
    if computed:
        known.constants.intersection_update(given)
        _spread(graph, known, computed)
    known.folded.extend(n for n in graph.node if n.output and n.output[0] in known.constants)


def _spread(graph: onnx.GraphProto, known: Inferred, computed: Collection[str]) -> None:
    for node in graph.node:
        used = used_tensors(node)
        if node.op_type == "CastLike":  # its second input only says which element type
            used = used[:1]
        made_from_nothing = node.op_type == "Constant" and not used
        if node.op_type not in RANDOM and (made_from_nothing or (used and all(n in known.constants for n in used))):
            known.constants.update(o for o in node.output if o and o not in computed)


def _weights(graph: onnx.GraphProto, known: Inferred) -> set[str]:
    """Return the constants that weights are made of: what stands behind the data of a product."""
    found: set[str] = set()
    for node in reversed(graph.node):
        if any(o in found for o in node.output):
            found.update(used_tensors(node))
        elif node.op_type in CONVS or (node.op_type in PRODUCTS and not all(n in known.constants for n in node.input)):
            found.update(name for name in node.input[1:] if name in known.constants)
    return found
