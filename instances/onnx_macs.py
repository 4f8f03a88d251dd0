"""Multiply-accumulates of ONNX nodes that are not planned, so that no total leaves them out without a word.

A node multiplies

* Conv and its kin: one product for each output element, input channel of its group and tap: ``|out| * |W| / filters``;
* ConvTranspose: each input element meets each filter and tap of its group: ``|in| * |W| / channels``;
* MatMul, Gemm and their kin: ``|out| * inner``;
* Einsum: ``prod(sizes of all letters) * (operands - 1)``;
* LSTM, GRU, RNN: every weight once for each step and image: ``steps * batch * (|W| + |R|)``.

Other standard operators work element by element or move data: none. What runs a graph of its own, or is no standard
operator, is not known.
"""

from __future__ import annotations

from math import prod

from instances.onnx_graph import Graph, Node
from instances.operators import Shape

#: Position of the weights, and of the two factors.
_CONVS = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3, "DeformConv": 1}
_PRODUCTS = {
    "MatMul": (0, 1), "MatMulInteger": (0, 1), "QLinearMatMul": (0, 3), "Gemm": (0, 1), "com.microsoft.QGemm": (0, 3),
    "com.microsoft.FusedMatMul": (0, 1),
}  # fmt: skip
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
_UNKNOWN = frozenset({"Attention", "If", "Loop", "Scan"})


def macs_of(node: Node, graph: Graph) -> int | None:
    """Return the multiply-accumulates of a node, None where they are not known."""

    def shape(tensor: str) -> Shape | None:
        return graph.shape(tensor) if tensor and graph.has_shape(tensor) else None

    out = shape(node.output)
    if node.op in _CONVS:
        weights = shape(node.input(_CONVS[node.op]))
        return None if out is None or weights is None else prod(out) * prod(weights[1:])
    if node.op == "ConvTranspose":
        data, weights = shape(node.input(0)), shape(node.input(1))
        return None if data is None or weights is None else prod(data) * prod(weights[1:])
    if node.op in _PRODUCTS:
        one = shape(node.input(_PRODUCTS[node.op][0]))
        return None if out is None or one is None else prod(out) * one[-2 if node.integer("transA", 0) else -1]
    if node.op == "Einsum":
        return _einsum(node.text("equation", ""), [shape(tensor) for tensor in node.proto.input])
    if node.op in _RECURRENT:
        steps, one, two = (shape(node.input(k)) for k in range(3))
        return None if steps is None or one is None or two is None else prod(steps[:2]) * (prod(one) + prod(two))
    return None if "." in node.op or node.op in _UNKNOWN else 0


def _einsum(equation: str, shapes: list[Shape | None]) -> int | None:
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=False):
        if shape is None or len(term) != len(shape) or "." in term:
            return None
        sizes.update(zip(term, shape, strict=True))
    return prod(sizes.values()) * (len(terms) - 1)


def folded_macs(graph: Graph) -> str:
    """Say what products of constants are left out; an empty text if there are none."""
    nodes = [Node(proto) for proto in graph.known.folded]
    counts = [macs_of(node, graph) or 0 for node in nodes]
    if not nodes:
        return ""
    kinds = ", ".join(f"{kind} x{sum(n.op == kind for n in nodes)}" for kind in sorted({n.op for n in nodes}))
    return f"made of constants only and left out: {kinds} ({sum(counts):,} MACs)"
