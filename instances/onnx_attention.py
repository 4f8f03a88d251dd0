"""Attention of ONNX (opset 23): a product of queries and keys, a softmax of every row, a product with the values.

Heads that share keys are rows of one product, so that no key is repeated.
"""

from __future__ import annotations

import numpy as np

from instances.onnx_graph import Graph, Node, Unsupported
from instances.onnx_products import PRODUCT_TURNED
from instances.onnx_steps import Means, Steps
from instances.operators import Eltwise, MatMul, Shape

#: Dimensions where heads are an axis of their own: batch, heads, tokens, features.
_APART = 4
_MASK, _PAST, _LENGTHS = 3, 4, 6


def attention(node: Node, graph: Graph) -> None:
    """Convert Attention of three or four dimensions, with a mask, and with keys and values of tokens before."""
    steps, given = Steps(node, graph), node.proto.input
    if len(given) > _LENGTHS and given[_LENGTHS]:
        raise Unsupported("sequences of different lengths")
    if any(o and graph.readers[o] for o in node.proto.output[3:]):
        raise Unsupported("its products are used")
    queries = _heads(steps, node.input(0), node.integer("q_num_heads", 0), "q")
    both = []
    for which, suffix in ((1, "k"), (2, "v")):
        made, past = _heads(steps, node.input(which), node.integer("kv_num_heads", 0), suffix), node.input(which + 3)
        if past:
            made = steps.concat([steps.source(past), made], suffix, axis=2)
        present = node.proto.output[which] if which < len(node.proto.output) else ""
        if present and graph.readers[present]:
            steps.finish(made, tensor=present)
        both.append(made)
    made = _product(steps, queries, *both)
    if graph.rank(node.input(0)) != _APART:
        made = steps.permute(made, (0, 2, 1, 3), "order")
    steps.finish(made, graph.shape(node.output))


def _heads(steps: Steps, tensor: str, number: int, suffix: str) -> str:
    """Return an operand with an axis of its heads: batch, heads, tokens, features."""
    source = steps.source(tensor)
    shape = steps.shape(source)
    if len(shape) == _APART:
        return source
    batch, tokens, features = shape
    if number < 1 or features % number:
        raise Unsupported(f"{number} heads of {features} features")
    return steps.permute(steps.move(source, (batch, tokens, number, features // number), suffix), (0, 2, 1, 3), suffix)


def _product(steps: Steps, queries: str, keys: str, values: str) -> str:
    (batch, heads, tokens, features), shared = steps.shape(queries), steps.shape(keys)[1]
    if heads % shared:
        raise Unsupported(f"{heads} heads of queries and {shared} of keys")
    together = heads // shared * tokens
    queries = steps.move(queries, (batch, shared, together, features), "q")
    scores = steps.add(MatMul, [queries, keys], "scores", PRODUCT_TURNED, transpose_b=True)
    scores = steps.times(scores, steps.node.number("scale", 0) or features**-0.5, "scale")
    if (cap := steps.node.number("softcap", 0)) > 0:
        scores = steps.times(scores, 1 / cap, "softcap")
        scores = steps.times(steps.add(Eltwise, [scores], "softcap", Means("Tanh"), fn="tanh"), cap, "softcap")
    before = steps.shape(keys)[2]
    scores = _masked(steps, scores, (batch, heads, tokens, before))
    scores = steps.add(Eltwise, [scores], "softmax", Means("Softmax", (), {"axis": -1}), fn="softmax")
    scores = steps.move(scores, (batch, shared, together, before), "scores")
    made = steps.add(MatMul, [scores, values], means=Means("MatMul"))
    return steps.move(made, (batch, heads, tokens, steps.shape(values)[3]), "heads")


def _masked(steps: Steps, scores: str, shape: Shape) -> str:
    """Add the mask, and minus infinity for keys that come after a query."""
    mask, causal = steps.node.input(_MASK), bool(steps.node.integer("is_causal", 0))
    known = [mask] if mask and steps.graph.is_constant(mask) else []
    if not mask and not causal:
        return scores
    scores = steps.move(scores, shape, "scores")
    if mask and not known:
        scores = steps.add(Eltwise, [scores, steps.source(mask)], "mask", Means("Add"), fn="add")
    if not known and not causal:
        return scores
    tokens, keys = shape[2:]
    cached = steps.graph.shape(steps.node.input(_PAST))[2] if steps.node.input(_PAST) else 0
    reach = cached if causal else keys

    def addend(*given: np.ndarray) -> np.ndarray:
        made = np.where(np.tri(tokens, keys, reach), np.float32(0), np.float32(-np.inf))
        for one in given:
            made = made + (np.where(one, np.float32(0), np.float32(-np.inf)) if one.dtype == bool else one)
        return made

    constant = steps.derive("mask", addend, *known)
    return steps.add(Eltwise, [scores], "mask" if known else "causal", Means("Add", [constant]), fn="add")
