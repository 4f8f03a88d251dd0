"""Reads ONNX and TFLite files into networks: shapes and structure only, weights are never looked at.

Opsets 7 to 23; a TFLite file is read as the ONNX model that it is (`instances.tflite`). What certile cannot plan is
kept in the graph as an opaque operator and reported with its reason and MACs (`Network.warnings`, `Network.unplanned`,
and as a logged warning). Data kept in other files is not opened at all.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import onnx
from onnx import inliner
from pydantic import ValidationError

from instances.errors import InputError
from instances.network.network import Network
from instances.network.operators import Input, Opaque, Reshape
from instances.onnx.asked import Asked, bind, give, said_of
from instances.onnx.compute import folded_macs
from instances.onnx.control import unroll
from instances.onnx.file import open_model
from instances.onnx.graph import Graph, Node, Tensors, share
from instances.onnx.ops import convert
from instances.onnx.quantised import standardise
from instances.onnx.shapes import STANDARD, infer, opset_of, sort_nodes, strip_weights
from instances.tflite.file import ModelFile
from instances.validation import explain_faults

logger = logging.getLogger(__name__)

OLDEST_OPSET = 7
NEWEST_OPSET = 23


def read_onnx(
    path: str | os.PathLike[str], *, batch: int | None = None, symbols: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None, values: Mapping[str, float] | None = None,
) -> Network:  # fmt: skip
    """Read an ONNX or TFLite file.

    Operators keep the names of the ONNX nodes (their first output's where a node has none), made unique.

    Parameters
    ----------
    batch : int, optional
        Bound to the first size of the inputs where it is symbolic (1 by default), else the network is rescaled to it.
    symbols, shapes, values
        As of `instances.load.load_network`; symbols by their name in the file or as ``input[axis]``.

    Raises
    ------
    InputError
        If the file is no such model, its opset is not supported, or shapes are missing or contradict each other.
    """
    return read_graph(path, Asked(batch, symbols or {}, shapes or {}, values or {}))[0]


def read_graph(path: str | os.PathLike[str], asked: Asked, *, file: ModelFile | None = None) -> tuple[Network, Graph]:
    """Read a model file as `read_onnx` does; return also which nodes operators were made of.

    `file` is what it holds, if that is in memory already; its model is changed.
    """
    where = f"network {os.fspath(path)}"
    asked.check(where)
    file = file or open_model(path, where)
    model = file.model
    _check(model, where)
    model = _inline(model, where)
    asked, given = give(model, asked, where)
    unroll(model, asked, where)
    originals = standardise(model.graph, opset_of(model.opset_import))
    known = strip_weights(model.graph, where)
    sort_nodes(model.graph, where)
    tensors = Tensors(model.graph, known.constants)
    batch_bound = bind(model.graph, known.constants, asked, where)
    infer(model, known, where)
    maps, weights = element_types(model.graph, known.constants, known.types)
    graph = Graph(model.graph, known, where, originals, tensors)
    try:
        for info in model.graph.input:
            if info.name not in known.constants:
                graph.emit(Input(name=graph.unique(info.name), shape=graph.shape(info.name)), info.name)
        for proto in model.graph.node:
            convert(Node(proto), graph)
        _results(graph)
        _drop_unused(graph)
        share(graph.operators, graph.weights, graph.tensors)
        if len(graph.operators) == sum(isinstance(o, Input) for o in graph.operators.values()):
            raise InputError(f"{where}: holds constants only, no operator of the inputs")
        network = Network(
            name=Path(path).stem,
            description="; ".join(filter(None, (_describe(file, path), said_of(given), folded_macs(graph)))),
            map_type=maps,
            weight_type=weights,
            operators=tuple(graph.operators.values()),
        )
    except ValidationError as error:
        raise InputError(f"{where}: {explain_faults(error, Network)}") from None
    if asked.batch is not None and not batch_bound:
        network = network.with_batch(asked.batch)
    if network.opaque:
        number = len(network.warnings)
        logger.warning("%s: %d operators are kept as opaque and not planned: %s", where, number, network.unplanned)
    return network, graph


def _check(model: onnx.ModelProto, where: str) -> None:
    if not model.HasField("graph"):
        raise InputError(f"{where}: not an ONNX model: it holds no graph")
    if not model.graph.node:
        raise InputError(f"{where}: the graph has no operators")
    if not any(one.domain in STANDARD for one in model.opset_import):
        raise InputError(f"{where}: states no opset of the standard operators")
    _check_texts(model.graph, where)
    if not OLDEST_OPSET <= (opset := opset_of(model.opset_import)) <= NEWEST_OPSET:
        raise InputError(f"{where}: opset {opset}, supported are {OLDEST_OPSET} to {NEWEST_OPSET}")


def _check_texts(graph: onnx.GraphProto, where: str) -> None:
    """Refuse names that are not UTF-8, which the protobuf library hands out as bytes."""
    texts: list[object] = []
    for node in graph.node:
        texts += [node.name, node.op_type, node.domain, *node.input, *node.output]
        for attribute in node.attribute:
            texts += [attribute.name, attribute.ref_attr_name]
            for inner in [attribute.g] if attribute.HasField("g") else list(attribute.graphs):
                _check_texts(inner, where)
    for info in [*graph.input, *graph.output, *graph.value_info]:
        texts += [info.name, *(size.dim_param for size in info.type.tensor_type.shape.dim)]
    texts += [tensor.name for tensor in graph.initializer]
    texts += [sparse.values.name for sparse in graph.sparse_initializer]
    if not all(isinstance(text, str) for text in texts):
        raise InputError(f"{where}: a name in the graph is not UTF-8 text")


def _inline(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """Replace calls of functions that the model itself defines by their bodies."""
    if not model.functions:
        return model
    try:
        inlined: onnx.ModelProto = inliner.inline_local_functions(model)
    except Exception as error:  # noqa: BLE001 - the C++ side raises many types
        raise InputError(f"{where}: its local functions cannot be expanded: {str(error)[:200]}") from None
    return inlined


def _results(graph: Graph) -> None:
    """Results that operators read, too, get an operator that nobody reads, so that they count as results."""
    graph.node = None
    read = {name for operator in graph.operators.values() for name in operator.inputs}
    for info in graph.proto.output:
        maker = graph.makers.get(info.name)
        if maker is None:
            continue
        graph.results[info.name] = maker
        if maker in read and graph.has_shape(info.name):
            name = graph.unique(f"{info.name} (result)")
            graph.operators[name] = Reshape(
                name=name, inputs=(maker,), shape=graph.operators[maker].shape, fn="identity"
            )  # fmt: skip
            graph.results[info.name] = name


def _drop_unused(graph: Graph) -> None:
    """Take out what no result of the model, and nothing that is reported, is made of: it would count as a result."""
    wanted = list(graph.results.values())
    if not wanted:
        return
    wanted += [name for name, operator in graph.operators.items() if isinstance(operator, Input | Opaque)]
    needed: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in needed:
            needed.add(name)
            wanted += graph.operators[name].inputs
    for name in [name for name in graph.operators if name not in needed]:
        del graph.operators[name]


def _describe(file: ModelFile, path: str | os.PathLike[str]) -> str:
    producer = "".join(c for c in str(file.model.producer_name) if c.isprintable())[:60]
    about = f"opset {opset_of(file.model.opset_import)}{', by ' + producer if producer else ''}"
    return f"read from {Path(path).name} ({file.about or about})"


# --- element types ----------------------------------------------------------------------------------------------------

#: Position of the data and of the weights.
_FACTORS = {
    **dict.fromkeys("Conv ConvInteger ConvTranspose Gemm MatMul MatMulInteger LSTM GRU RNN".split(), (0, 1)),
    **dict.fromkeys("QLinearConv QLinearMatMul".split(), (0, 3)),
}
#: Operators whose result has the type of their zero point, and its position.
_QUANTISERS = {"QuantizeLinear": 2, "QLinearConv": 7, "QLinearMatMul": 7}
#: Operators whose result has one type always.
_MAKERS = {
    "DynamicQuantizeLinear": onnx.TensorProto.UINT8, "ConvInteger": onnx.TensorProto.INT32,
    "MatMulInteger": onnx.TensorProto.INT32,
}  # fmt: skip


def element_types(
    graph: onnx.GraphProto, constants: Collection[str], inferred: Mapping[str, int]
) -> tuple[str, str]:  # fmt: skip
    """Return the element types of maps and of weights: the most frequent among products (empty: not known).

    What is quantised in between (QDQ) counts as what it is quantised to. `inferred` has what shape inference says.
    """
    stated = {tensor.name: tensor.data_type for tensor in graph.initializer}
    stated |= {info.name: info.type.tensor_type.elem_type for info in graph.input}
    makers = {name: node for node in graph.node for name in node.output if name}

    def type_of(tensor: str) -> int:
        return stated.get(tensor) or inferred.get(tensor, 0)

    def held(tensor: str) -> tuple[str, int]:
        """Follow a tensor to where its elements come from: a tensor, and its type (0: not known)."""
        for _ in range(len(makers) + 1):
            node = makers.get(tensor)
            if node is None:
                break
            if node.op_type in _QUANTISERS:
                at = _QUANTISERS[node.op_type]
                return tensor, held(node.input[at])[1] if at < len(node.input) else onnx.TensorProto.UINT8
            if node.op_type in _MAKERS or node.op_type == "ConstantOfShape" or not node.input:
                # ConstantOfShape reads a shape, of another type than what it makes: float32 unless it says so
                unsaid = onnx.TensorProto.FLOAT if node.op_type == "ConstantOfShape" else 0
                value = next((a.t.data_type for a in node.attribute if a.name == "value"), unsaid)
                return tensor, _MAKERS.get(node.op_type, value)
            if node.op_type == "Cast":
                return tensor, next((a.i for a in node.attribute if a.name == "to"), 0)
            made, read = type_of(tensor), type_of(node.input[0])
            if made and read and made != read and node.op_type != "DequantizeLinear":  # OneHot: of indices numbers
                return tensor, made
            tensor = node.input[0]
        return tensor, stated.get(tensor, 0)

    maps, products = Counter[int](), Counter[int]()
    for node in graph.node:
        data, weights = _FACTORS.get(node.op_type, (0, 0))
        if weights and len(node.input) > weights:
            maps[held(node.input[data])[1]] += 1
            root, kind = held(node.input[weights])
            products[kind if root in constants else 0] += 1
    del maps[0], products[0]
    if not maps:
        maps.update(info.type.tensor_type.elem_type for info in graph.input[:1])
    most, held_most = (_name((counter.most_common(1) or [(0, 0)])[0][0]) for counter in (maps, products))
    return most, held_most


def _name(kind: int) -> str:
    """Return what an element type is called: float32, int8, ..."""
    known = onnx.TensorProto.DataType
    name = known.Name(kind).lower() if kind in known.values() else ""
    return {"float": "float32", "double": "float64", "undefined": ""}.get(name, name)
