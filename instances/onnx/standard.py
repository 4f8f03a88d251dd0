"""Fused and quantised operators of ``com.microsoft``, as the standard operators that they are made of.

Scales and zero points are dropped: they change numbers, not shapes. The operators keep the node's name. What has
another layout of its maps (``channels_last``) stays as it is, and so do the attentions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx
from onnx import helper

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


def standardise(graph: onnx.GraphProto, opset: int) -> dict[str, onnx.NodeProto]:
    """Replace fused and quantised nodes of a graph by standard ones; return the nodes that tensors were made by."""
    originals: dict[str, onnx.NodeProto] = {}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        made = _Rewriter(node, opset).nodes()
        nodes.extend(made or [node])
        originals.update((name, node) for new in made for name in new.output)
    if originals:
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        originals = {k: onnx.NodeProto.FromString(node.SerializeToString()) for k, node in originals.items()}
        del graph.node[:]
        graph.node.extend(copies)
    return originals


class _Rewriter:
    """Makes the standard nodes of one node."""

    def __init__(self, node: onnx.NodeProto, opset: int) -> None:
        self.node = node
        self.opset = opset
        self.made: list[onnx.NodeProto] = []

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

    def _input(self, index: int) -> str:
        return self.node.input[index] if index < len(self.node.input) else ""

    def _output(self, index: int = 0) -> str:
        return self.node.output[index] if index < len(self.node.output) else ""

    def _flag(self, name: str) -> bool:
        return any(a.name == name and a.i for a in self.node.attribute)

    def _text(self, name: str) -> str:
        return next((a.s.decode("utf-8", "replace") for a in self.node.attribute if a.name == name), "")

    def _main(self, op: str, inputs: Sequence[str], output: str = "") -> None:
        """Add the node that keeps the name and the attributes."""
        while inputs and not inputs[-1]:
            inputs = inputs[:-1]
        new = helper.make_node(op, inputs, [output or self._output()], name=self.node.name)
        new.attribute.extend(a for a in self.node.attribute if a.name not in _DROPPED)
        self.made.append(new)

    def _then(self, op: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        """Add a node before or behind another; return what it makes."""
        label = self.node.name or self._output()
        output = output or f"{label}:{op}"
        self.made.append(helper.make_node(op, inputs, [output], name=f"{label}:{op}", **attributes))
        return output

    def _inner(self) -> str:
        return f"{self.node.name or self._output()}:inner"

    def activated(self, op: str) -> None:
        """FusedConv and FusedGemm: a sum with a fourth input, and an activation, may come behind."""
        activation, inner = self._text("activation"), self._inner()
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
        axes = next((list(a.ints) for a in self.node.attribute if a.name == "axes"), [])
        if not axes or self.opset < _AXES_ARE_INPUTS:
            self._main("ReduceMean", [self._input(0)])
            return
        name = f"{self.node.name or self._output()}:axes"
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
