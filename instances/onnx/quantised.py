"""Fused and quantised operators, of ``com.microsoft`` and of ONNX, as the standard operators that they are made of.

**Planning** needs sizes alone: `standardise` drops scales and zero points, which change numbers, not shapes. The
operators keep the node's name. What has another layout of its maps (``channels_last``) stays as it is, and so do the
attentions.

**Where numbers matter** operators on quantised tensors are spelled out: DequantizeLinear, the operator on real numbers,
QuantizeLinear. An operator such as QLinearConv is replaced by what it is defined as, so that only one form of quantised
models is left to be understood. The operator in the middle keeps the name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from instances.onnx.graph import Node
from instances.onnx.shapes import opset_of, refill

DOMAIN = "com.microsoft"
#: Quantised operator -> the standard one, and the positions of its inputs that are no scales or zero points.
_QUANTISED: dict[str, tuple[str, tuple[int, ...]]] = {
    "QLinearAdd": ("Add", (0, 3)), "QLinearMul": ("Mul", (0, 3)), "QLinearWhere": ("Where", (0, 1, 4)),
    "QLinearSigmoid": ("Sigmoid", (0,)), "QLinearLeakyRelu": ("LeakyRelu", (0,)),
    "QLinearSoftmax": ("Softmax", (0,)), "QLinearAveragePool": ("AveragePool", (0,)),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", (0,)), "QGemm": ("Gemm", (0, 3, 6)),
    "QLinearConv": ("QLinearConv", tuple(range(9))), "QuantizeLinear": ("QuantizeLinear", (0, 1, 2)),
    "DequantizeLinear": ("DequantizeLinear", (0, 1, 2)),
    "Gelu": ("Gelu", (0,)), "QuickGelu": ("Swish", (0,)), "SimplifiedLayerNormalization": ("RMSNormalization", (0, 1)),
}  # fmt: skip
#: Attributes that say nothing of sizes.
_DROPPED = frozenset({"activation", "activation_alpha", "activation_beta", "activation_gamma", "activation_params",
                      "alpha", "beta", "channels_last", "opset", "transBatchA", "transBatchB"})  # fmt: skip

#: Those of them that a recurrent cell keeps.
_OF_CELLS = frozenset({"activation_alpha", "activation_beta"})


#: From this opset on the axes of a reduction are an input.
_AXES_ARE_INPUTS = 18


class _Maker:
    """Makes nodes that stand for one node."""

    def __init__(self, node: onnx.NodeProto, opset: int) -> None:
        self.node, self.opset = node, opset
        self.made: list[onnx.NodeProto] = []
        self._label, self._input = Node(node).label, Node(node).input

    def _late_axes(self) -> list[int]:
        """The axes of a reduction, if the model's version has them as an input and this node as an attribute."""
        axes = next((list(a.ints) for a in self.node.attribute if a.name == "axes"), [])
        return axes if self.opset >= _AXES_ARE_INPUTS else []


def standardise(graph: onnx.GraphProto, opset: int) -> dict[str, onnx.NodeProto]:
    """Replace fused and quantised nodes of a graph by standard ones; return the nodes that tensors were made by."""
    return _replaced(graph, lambda node: _Rewriter(node, opset).nodes())


def spell_out(model: onnx.ModelProto) -> bool:
    """Replace operators on quantised tensors in a model; return whether there were any."""
    constants, opset = _Constants(model.graph), opset_of(model.opset_import)
    return bool(_replaced(model.graph, lambda node: _Speller(node, opset, constants).nodes()))


def _replaced(
    graph: onnx.GraphProto, stands_for: Callable[[onnx.NodeProto], list[onnx.NodeProto]]
) -> dict[str, onnx.NodeProto]:  # fmt: skip
    """Replace nodes by those that stand for them, if there are any; return the nodes that tensors were made by."""
    originals: dict[str, onnx.NodeProto] = {}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        made = stands_for(node)
        nodes.extend(made or [node])
        originals.update((name, node) for new in made for name in new.output)
    if originals:
        originals = {name: deepcopy(node) for name, node in originals.items()}
        refill(graph.node, nodes)
    return originals


class _Rewriter(_Maker):
    """Makes the standard nodes of one node."""

    def nodes(self) -> list[onnx.NodeProto]:
        """Return them; none for a node that stays."""
        node = self.node
        if node.domain == DOMAIN and node.input and node.output and not self._flag("channels_last"):
            if node.op_type in _QUANTISED:
                op, positions = _QUANTISED[node.op_type]
                self._main(op, [self._input(k) for k in positions])
            elif node.op_type in _FUSED:
                _FUSED[node.op_type](self)
        return self.made

    def _output(self, index: int = 0) -> str:
        return self.node.output[index] if index < len(self.node.output) else ""

    def _flag(self, name: str) -> bool:
        return any(a.name == name and a.i for a in self.node.attribute)

    def _main(self, op: str, inputs: Sequence[str], output: str = "") -> None:
        """Add the node that keeps the name and the attributes."""
        while inputs and not inputs[-1]:
            inputs = inputs[:-1]
        new = helper.make_node(op, inputs, [output or self._output()], name=self.node.name)
        new.attribute.extend(a for a in self.node.attribute if a.name not in _DROPPED)
        self.made.append(new)

    def _then(self, op: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        """Add a node before or behind another; return what it makes."""
        output = output or f"{self._label}:{op}"
        self.made.append(helper.make_node(op, inputs, [output], name=f"{self._label}:{op}", **attributes))
        return output

    def _inner(self) -> str:
        return f"{self._label}:inner"

    def activated(self, op: str) -> None:
        """FusedConv and FusedGemm: a sum with a fourth input, and an activation, may come behind."""
        given = (a.s.decode("utf-8", "replace") for a in self.node.attribute if a.name == "activation")
        activation, inner = next(given, ""), self._inner()
        addend = self._input(3)
        self._main(op, [self._input(k) for k in range(3)], inner if activation or addend else "")
        if addend:
            inner = self._then("Add", [inner, addend], "" if activation else self._output())
        if activation:
            self._then(activation, [inner], self._output())

    def product(self) -> None:
        """FusedMatMul: operands may be transposed, which an Einsum can say."""
        a, b = "ji" if self._flag("transA") else "ij", "kj" if self._flag("transB") else "jk"
        if self._flag("transBatchA") or self._flag("transBatchB"):
            return
        new = helper.make_node(
            "Einsum", [self._input(0), self._input(1)], [self._output()], name=self.node.name,
            equation=f"...{a},...{b}->...ik",
        )  # fmt: skip
        self.made.append(new)

    def biased_product(self, bias: int) -> None:
        """DynamicQuantizeMatMul and MatMulIntegerToFloat: a product and a bias."""
        biased = bool(self._input(bias))
        self._main("MatMul", [self._input(0), self._input(1)], self._inner() if biased else "")
        if biased:
            self._then("Add", [self._inner(), self._input(bias)], self._output())

    def recurrent(self) -> None:
        """DynamicQuantizeLSTM: an LSTM whose weights are transposed integers."""
        weights = [self._then("Transpose", [self._input(k)], f"{self._inner()}:{k}", perm=[0, 2, 1]) for k in (1, 2)]
        given = [self._input(0), *weights, *(self._input(k) for k in range(3, 8))]
        new = helper.make_node("LSTM", given, list(self.node.output), name=self.node.name)
        new.attribute.extend(a for a in self.node.attribute if a.name not in _DROPPED - _OF_CELLS)
        self.made.append(new)

    def concat(self) -> None:
        """QLinearConcat: scale and zero point of the result, then tensor, scale and zero point of each part."""
        self._main("Concat", list(self.node.input)[2::3])

    def mean(self) -> None:
        """QLinearReduceMean: its axes are an attribute in every version."""
        axes = self._late_axes()
        if not axes:
            self._main("ReduceMean", [self._input(0)])
            return
        name = f"{self._label}:axes"
        self.made.append(helper.make_node("Constant", [], [name], value_ints=axes))
        self._main("ReduceMean", [self._input(0), name])
        self.made[-1].attribute.remove(next(a for a in self.made[-1].attribute if a.name == "axes"))

    def gelu(self) -> None:
        """BiasGelu and FastGelu: a bias may come first."""
        tensor = self._input(0)
        if self._input(1):
            tensor = self._then("Add", [tensor, self._input(1)])
        self._main("Gelu", [tensor])

    def norm(self, op: str, bias: int) -> None:
        """SkipLayerNormalization: a sum (which may be a result too), a bias, and a norm with scale and shift."""
        total = self._then("Add", [self._input(0), self._input(1)], "" if self._input(bias) else self._output(3))
        if self._input(bias):
            last = helper.make_node("Add", [total, self._input(bias)], [self._output(3) or self._inner()])
            self.made.append(last)
            total = last.output[0]
        self._main(op, [total, *(self._input(k) for k in range(2, bias))])


_FUSED: dict[str, Callable[[_Rewriter], None]] = {
    "FusedConv": lambda r: r.activated("Conv"), "FusedGemm": lambda r: r.activated("Gemm"),
    "FusedMatMul": _Rewriter.product, "QLinearConcat": _Rewriter.concat, "BiasGelu": _Rewriter.gelu,
    "QLinearReduceMean": _Rewriter.mean, "FastGelu": _Rewriter.gelu,
    "DynamicQuantizeLSTM": _Rewriter.recurrent,
    "DynamicQuantizeMatMul": lambda r: r.biased_product(4),
    "MatMulIntegerToFloat": lambda r: r.biased_product(6),
    "SkipLayerNormalization": lambda r: r.norm("LayerNormalization", 4),
    "SkipSimplifiedLayerNormalization": lambda r: r.norm("RMSNormalization", 3),
}  # fmt: skip
#: Operators of `DOMAIN` that standard ones stand for.
REPLACED = frozenset((*_QUANTISED, *_FUSED))


# --- where numbers matter --------------------------------------------------------------------------------------------

#: Operators of one or two inputs, each a tensor, scale and zero point; behind them those of the result.
_ALIKE = {name: made for name, made in _QUANTISED.items() if name.startswith("QLinear") and made[1] in ((0,), (0, 3))}
_ALIKE["QLinearReduceMean"] = "ReduceMean", (0,)
#: Operators that are standard ones, for integers of more types.
_WIDE = ("QuantizeLinear", "DequantizeLinear")
#: Operators that move elements of their first input (of all inputs: Concat).
_MOVES = frozenset(
    """Concat DepthToSpace Flatten Gather Identity Reshape Slice SpaceToDepth Split Squeeze Transpose
    Unsqueeze""".split()
)
_SAY_NOTHING = frozenset({"opset", "channels_last"})
#: From this opset on a softmax is along one axis.
_ONE_AXIS = 13


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
                own = deepcopy(shared[name])
                own.name = own.output[0] = node.input[k] = f"{name}:for:{node.name or node.output[0]}:{k}"
                nodes.append(own)
            read |= {name} & set(shared)
        nodes.append(node)
    added = len(nodes) > len(graph.node)
    refill(graph.node, nodes)
    return added


class _Constants:
    """Small constants of a graph."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.tensors = {tensor.name: tensor for tensor in graph.initializer}
        self.makers = {name: node for node in graph.node for name in node.output if name}

    def value(self, tensor: str) -> np.ndarray | None:
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
        scale = self.value(node.input[1])
        zero = self.value(node.input[2]) if len(node.input) > 2 and node.input[2] else np.zeros((), np.uint8)
        stated = any(a.name in ("output_dtype", "block_size") and a.i for a in node.attribute)
        if scale is None or zero is None or scale.size > 1 or stated or self._made_of_constants(node.input[0]):
            return None
        return scale.item(), zero.item(), zero.dtype

    def _made_of_constants(self, tensor: str) -> bool:
        return tensor in self.tensors or self.value(tensor) is not None

    def _take_away(self, node: onnx.NodeProto, integers: Sequence[str], quantisers: list[onnx.NodeProto]) -> None:
        node.input[: len(integers)] = integers
        names = {one.output[0]: one.input[0] for one in quantisers}
        gone = {id(one) for one in quantisers}
        kept = [one for one in self.graph.node if id(one) not in gone]
        for one in kept:
            one.input[:] = [names.get(name, name) for name in one.input]
        read = {name for one in kept for name in one.input} | self.results
        kept = [one for one in kept if one.op_type != "DequantizeLinear" or one.output[0] in read]
        refill(self.graph.node, kept)
        refill(self.graph.value_info, [info for info in self.graph.value_info if info.name not in node.output])


class _Speller(_Maker):
    """Spells one node out."""

    def __init__(self, node: onnx.NodeProto, opset: int, constants: _Constants) -> None:
        super().__init__(node, opset)
        self.constants = constants

    def nodes(self) -> list[onnx.NodeProto]:
        """What stands for the node; nothing if it stays."""
        node = self.node
        if any(a.name == "channels_last" and a.i for a in node.attribute):
            return []
        name = node.op_type
        if node.domain == DOMAIN and name in _ALIKE and self._plain_softmax():
            op, places = _ALIKE[name]
            behind = 3 * len(places)
            self._main(op, [self._real(k) for k in places], *self._axes(), result=(behind, behind + 1))
        elif node.domain == DOMAIN and name in _WIDE:
            self.made.append(deepcopy(node))
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

    def _number(self, index: int) -> np.ndarray:
        """A scale; one where it is no constant, which is refused later."""
        value = self.constants.value(self._input(index))
        return np.ones(1, np.float32) if value is None else value.astype(np.float32).reshape(-1)

    def _last(self, index: int) -> int:
        value = self.constants.value(self._input(index))
        return -1 if value is None else value.ndim - 1

    def _constant(self, what: str, value: np.ndarray | np.floating) -> str:
        name = f"{self._label}:{what}"
        held = self.constants
        if name not in held.tensors:
            held.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
            held.tensors[name] = held.graph.initializer[-1]
        return name

    def _real(self, index: int, axis: int | None = None) -> str:
        """The tensor that tensor, scale and zero point stand for; `axis` if scales may be along one."""
        return self._dequantised(self._input(index), self._input(index + 1), self._input(index + 2), axis)

    def _dequantised(self, tensor: str, scale: str, zero: str, axis: int | None) -> str:
        name = f"{self._label}:real{len(self.made)}"
        found = self.constants.value(scale)
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
        axes = self._late_axes()
        return [self._constant("axes", np.array(axes, np.int64))] if axes else []

    def _main(self, op: str, inputs: Sequence[str], *further: str, result: tuple[int, int] | None = None) -> None:
        """Add the operator, and the quantisation of its result if that has a scale."""
        quantised = result is not None and self._input(result[0])
        output = f"{self._label}:exact" if quantised else self.node.output[0]
        new = helper.make_node(op, [*inputs, *further], [output], name=self._label)
        dropped = _SAY_NOTHING | ({"axes"} if further else frozenset())
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
