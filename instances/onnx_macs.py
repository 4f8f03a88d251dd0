"""Multiply-accumulates of ONNX nodes that are not planned, so that no total leaves them out without a word.

A node multiplies

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

from instances.onnx_graph import Graph, Node
from instances.onnx_products import letters_of
from instances.operators import Shape

#: Position of the weights, and of the two factors.
_CONVS = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3, "DeformConv": 1}
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
