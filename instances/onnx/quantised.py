"""Operators on quantised tensors, spelled out: DequantizeLinear, the operator on real numbers, QuantizeLinear.

Planning needs sizes alone and drops scales (`instances.onnx.standard`). Where numbers matter an operator such as
QLinearConv is replaced by what it is defined as, so that only one form of quantised models is left to be understood.
The operator in the middle keeps the name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from instances.onnx.standard import DOMAIN

#: Operators with one input: tensor, scale, zero point; then scale and zero point of the result.
_UNARY = {
    "QLinearSigmoid": "Sigmoid", "QLinearLeakyRelu": "LeakyRelu", "QLinearSoftmax": "Softmax",
    "QLinearAveragePool": "AveragePool", "QLinearGlobalAveragePool": "GlobalAveragePool",
    "QLinearReduceMean": "ReduceMean",
}  # fmt: skip
_BINARY = {"QLinearAdd": "Add", "QLinearMul": "Mul"}
#: Operators that are standard ones, for integers of more types.
_WIDE = ("QuantizeLinear", "DequantizeLinear")
#: Operators that move elements of their first input (of all inputs: Concat).
_MOVES = frozenset(
    """Concat DepthToSpace Flatten Gather Identity Reshape Slice SpaceToDepth Split Squeeze Transpose
    Unsqueeze""".split()
)
_DROPPED = frozenset({"opset", "channels_last"})
#: From this opset on the axes of a reduction are an input; a softmax is along one axis.
_AXES_ARE_INPUTS, _ONE_AXIS = 18, 13


def spell_out(model: onnx.ModelProto) -> bool:
    """Replace operators on quantised tensors in a model; return whether there were any."""
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    speller = _Speller(model.graph, opset)
    nodes, found = [], False
    for node in model.graph.node:
        made = speller.spelled(node)
        found = found or bool(made)
        nodes += made or [onnx.NodeProto.FromString(node.SerializeToString())]
    if found:
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    return found


def move_integers(model: onnx.ModelProto) -> bool:
    """Let operators move integers where their results are quantised as their inputs were; return whether any is."""
    found = False
    while _Mover(model.graph).move():
        found = True
    return found


def one_for_each(model: onnx.ModelProto) -> bool:
    """Give every reader of dequantised numbers a DequantizeLinear of its own; return whether any was added.

    So that one that computes real numbers, or a result of the model, does not keep the others from reading integers.
    """
    graph = model.graph
    read = {info.name for info in graph.output}
    shared = {node.output[0]: node for node in graph.node if node.op_type == "DequantizeLinear"}
    nodes = []
    for node in graph.node:
        for k, name in enumerate(node.input):
            if name in read and name in shared:
                own = onnx.NodeProto.FromString(shared[name].SerializeToString())
                own.name = own.output[0] = node.input[k] = f"{name}:for:{node.name or node.output[0]}:{k}"
                nodes.append(own)
            read |= {name} & set(shared)
        nodes.append(onnx.NodeProto.FromString(node.SerializeToString()))
    added = len(nodes) > len(graph.node)
    del graph.node[:]
    graph.node.extend(nodes)
    return added


class _Constants:
    """Small constants of a graph."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.tensors = {tensor.name: tensor for tensor in graph.initializer}
        self.makers = {name: node for node in graph.node for name in node.output if name}

    def _value(self, tensor: str) -> np.ndarray | None:
        if tensor in self.tensors:
            return numpy_helper.to_array(self.tensors[tensor])
        maker = self.makers.get(tensor)
        held = [a.t for a in maker.attribute if a.name == "value"] if maker and maker.op_type == "Constant" else []
        return numpy_helper.to_array(held[0]) if held else None


class _Mover(_Constants):
    """Takes one pair of a DequantizeLinear and QuantizeLinears away."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        super().__init__(graph)
        self.results = {info.name for info in graph.output}
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        for node in graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)

    def move(self) -> bool:
        """Change the first operator that can be; return whether one was."""
        for node in self.graph.node:
            if node.op_type not in _MOVES or not node.input:
                continue
            moved = list(node.input) if node.op_type == "Concat" else [node.input[0]]
            made = [self.makers.get(name) for name in moved]
            grids = [self._grid(one, "DequantizeLinear") for one in made]
            quantisers = [reader for name in node.output for reader in self.readers.get(name, [])]
            again = [self._grid(one, "QuantizeLinear") for one in quantisers]
            free = not self.results & {*node.output, *(o for one in quantisers for o in one.output)}
            if quantisers and free and grids[0] is not None and all(g == grids[0] for g in grids + again):
                self._take_away(node, [one.input[0] for one in made if one], quantisers)
                return True
        return False

    def _grid(self, node: onnx.NodeProto | None, op: str) -> tuple[object, ...] | None:
        """Scale, zero point and type; None for another operator, or scales along an axis."""
        if node is None or node.op_type != op:
            return None
        scale = self._value(node.input[1])
        zero = self._value(node.input[2]) if len(node.input) > 2 and node.input[2] else np.zeros((), np.uint8)
        stated = any(a.name in ("output_dtype", "block_size") and a.i for a in node.attribute)
        if scale is None or zero is None or scale.size > 1 or stated or self._made_of_constants(node.input[0]):
            return None
        return scale.item(), zero.item(), zero.dtype

    def _made_of_constants(self, tensor: str) -> bool:
        return tensor in self.tensors or self._value(tensor) is not None

    def _take_away(self, node: onnx.NodeProto, integers: Sequence[str], quantisers: list[onnx.NodeProto]) -> None:
        node.input[: len(integers)] = integers
        names = {one.output[0]: one.input[0] for one in quantisers}
        gone = {id(one) for one in quantisers}
        kept = [onnx.NodeProto.FromString(one.SerializeToString()) for one in self.graph.node if id(one) not in gone]
        for one in kept:
            one.input[:] = [names.get(name, name) for name in one.input]
        read = {name for one in kept for name in one.input} | self.results
        kept = [one for one in kept if one.op_type != "DequantizeLinear" or one.output[0] in read]
        infos = [info for info in self.graph.value_info if info.name not in node.output]
        infos = [onnx.ValueInfoProto.FromString(info.SerializeToString()) for info in infos]
        for old, new in ((self.graph.node, kept), (self.graph.value_info, infos)):
            del old[:]
            old.extend(new)


class _Speller(_Constants):
    def __init__(self, graph: onnx.GraphProto, opset: int) -> None:
        super().__init__(graph)
        self.opset = opset
        self.node = onnx.NodeProto()
        self.made: list[onnx.NodeProto] = []

    def spelled(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """What stands for a node; nothing if it stays."""
        self.node, self.made = node, []
        if any(a.name == "channels_last" and a.i for a in node.attribute):
            return []
        name = node.op_type
        if node.domain == DOMAIN and name in _UNARY and self._plain_softmax():
            self._main(_UNARY[name], [self._real(0)], *self._axes(), result=(3, 4))
        elif node.domain == DOMAIN and name in _BINARY:
            self._main(_BINARY[name], [self._real(0), self._real(3)], result=(6, 7))
        elif node.domain == DOMAIN and name in _WIDE:
            self.made.append(onnx.NodeProto.FromString(node.SerializeToString()))
            self.made[0].domain = ""
        elif (handler := _HANDLERS.get((node.domain.removeprefix("ai.onnx"), name))) is not None:
            handler(self)
        return self.made

    # ---- operators -------------------------------------------------------------------------------------------------

    def conv(self) -> None:
        """QLinearConv: the scale of the bias is the product of the others'."""
        bias = [self._bias(8, self._number(1) * self._number(4))] if self._input(8) else []
        self._main("Conv", [self._real(0), self._real(3, 0), *bias], result=(6, 7))

    def matmul(self) -> None:
        """QLinearMatMul: the right operand may have a scale for every column."""
        self._main("MatMul", [self._real(0), self._real(3, self._last(3))], result=(6, 7))

    def gemm(self) -> None:
        """QGemm: as QLinearConv; without scale of the result it is real."""
        numbers = {a.name: helper.get_attribute_value(a) for a in self.node.attribute}
        scale = self._number(1) * self._number(4) * numbers.get("alpha", 1.0)
        bias = [self._bias(6, scale)] if self._input(6) else []
        columns = 0 if numbers.get("transB", 0) else 1
        self._main("Gemm", [self._real(0), self._real(3, columns), *bias], result=(7, 8))

    def concat(self) -> None:
        """QLinearConcat: scale and zero point of the result come first."""
        self._main("Concat", [self._real(k) for k in range(2, len(self.node.input), 3)], result=(0, 1))

    def integer(self) -> None:
        """ConvInteger and MatMulInteger: scales are one; the result holds integers."""
        op = self.node.op_type.removesuffix("Integer")
        one = self._constant("one", np.float32(1))
        real = [self._dequantised(self._input(k), one, self._input(k + 2), None) for k in (0, 1)]
        self._main(op, real)

    # ---- parts -----------------------------------------------------------------------------------------------------

    @property
    def _label(self) -> str:
        return self.node.name or next((o for o in self.node.output if o), self.node.op_type)

    def _input(self, index: int) -> str:
        return self.node.input[index] if index < len(self.node.input) else ""

    def _number(self, index: int) -> np.ndarray:
        """A scale; one where it is no constant, which is refused later."""
        value = self._value(self._input(index))
        return np.ones(1, np.float32) if value is None else value.astype(np.float32).reshape(-1)

    def _last(self, index: int) -> int:
        value = self._value(self._input(index))
        return -1 if value is None else value.ndim - 1

    def _constant(self, what: str, value: np.ndarray | np.floating) -> str:
        name = f"{self._label}:{what}"
        if name not in self.tensors:
            self.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
            self.tensors[name] = self.graph.initializer[-1]
        return name

    def _real(self, index: int, axis: int | None = None) -> str:
        """The tensor that tensor, scale and zero point stand for; `axis` if scales may be along one."""
        return self._dequantised(self._input(index), self._input(index + 1), self._input(index + 2), axis)

    def _dequantised(self, tensor: str, scale: str, zero: str, axis: int | None) -> str:
        name = f"{self._label}:real{len(self.made)}"
        found = self._value(scale)
        along = {"axis": axis} if axis is not None and found is not None and found.size > 1 else {}
        given = [tensor, scale, zero] if zero else [tensor, scale]
        self.made.append(helper.make_node("DequantizeLinear", given, [name], name=name))
        self.made[-1].attribute.extend(helper.make_attribute(key, value) for key, value in along.items())
        return name

    def _bias(self, index: int, scale: np.ndarray) -> str:
        scale = scale.astype(np.float32)
        name = self._constant("bias_scale", scale if scale.size > 1 else scale.reshape(()))
        return self._dequantised(self._input(index), name, "", 0)

    def _plain_softmax(self) -> bool:
        """Whether a softmax is along the last axis, or is meant as the model's version means it."""
        numbers = {a.name: a.i for a in self.node.attribute}
        meant = numbers.get("opset", self.opset)
        alike = (meant < _ONE_AXIS) == (self.opset < _ONE_AXIS)
        return self.node.op_type != "QLinearSoftmax" or alike or numbers.get("axis", -1) == -1

    def _axes(self) -> list[str]:
        """Of a reduction its axes as an input, where the model's version has them so."""
        axes = next((list(a.ints) for a in self.node.attribute if a.name == "axes"), [])
        if not axes or self.opset < _AXES_ARE_INPUTS:
            return []
        return [self._constant("axes", np.array(axes, np.int64))]

    def _main(self, op: str, inputs: Sequence[str], *further: str, result: tuple[int, int] | None = None) -> None:
        """Add the operator, and the quantisation of its result if that has a scale."""
        quantised = result is not None and self._input(result[0])
        output = f"{self._label}:exact" if quantised else self.node.output[0]
        new = helper.make_node(op, [*inputs, *further], [output], name=self._label)
        dropped = _DROPPED | ({"axes"} if further else frozenset())
        new.attribute.extend(a for a in self.node.attribute if a.name not in dropped)
        self.made.append(new)
        if quantised and result is not None:
            given = [output, *(self._input(k) for k in result if self._input(k))]
            name = f"{self._label}:quantised"
            self.made.append(helper.make_node("QuantizeLinear", given, [self.node.output[0]], name=name))


_HANDLERS: dict[tuple[str, str], Callable[[_Speller], None]] = {
    ("", "QLinearConv"): _Speller.conv, (DOMAIN, "QLinearConv"): _Speller.conv,
    ("", "QLinearMatMul"): _Speller.matmul, (DOMAIN, "QGemm"): _Speller.gemm,
    (DOMAIN, "QLinearConcat"): _Speller.concat,
    ("", "ConvInteger"): _Speller.integer, ("", "MatMulInteger"): _Speller.integer,
}  # fmt: skip
