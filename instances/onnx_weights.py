"""Which constants of an ONNX file are one tensor, and which operators read it.

Tensors are told apart by name. What is made of a constant without changing its elements (a transpose, the integers of a
DequantizeLinear) is the same tensor; other results of constants are the same where the same node kinds make them of the
same tensors. Two initialisers with equal numbers are two tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import onnx

from instances.onnx_shapes import used_tensors
from instances.operators import Conv, MatMul, Operator

#: Operators whose first input is the tensor that they make, in another order or element type.
SAME = frozenset("Cast CastLike DequantizeLinear Flatten Identity Reshape Squeeze Transpose Unsqueeze".split())


class Tensors:
    """The constants of a file, each with the number of the tensor that it is."""

    def __init__(self, graph: onnx.GraphProto, constants: Iterable[str]) -> None:
        self._number: dict[object, int] = {}
        self._of: dict[str, int] = {name: self._numbered(name) for name in constants}
        for tensor in graph.initializer:
            self._of.setdefault(tensor.name, self._numbered(tensor.name))
        for node in graph.node:
            self._made(node)

    def _numbered(self, what: object) -> int:
        return self._number.setdefault(what, len(self._number))

    def _made(self, node: onnx.NodeProto) -> None:
        """Number what a node makes of constants."""
        used = used_tensors(node)
        if not all(name in self._of for name in (used[:1] if node.op_type in SAME else used)):
            return
        if node.op_type in SAME and used:
            self._of[node.output[0]] = self._of[used[0]]
            return
        attributes = tuple(sorted(a.SerializeToString(deterministic=True) for a in node.attribute))
        given = tuple(self._of.get(name, -1) for name in node.input)
        for k, name in enumerate(node.output):
            # what is made of nothing has its name alone
            key = (node.domain, node.op_type, attributes, given, k) if given else name
            self._of[name] = self._numbered(key)

    def number(self, tensor: str) -> int | str:
        """Return what all names of a tensor have in common."""
        return self._of.get(tensor, tensor)


@dataclass(frozen=True)
class Weights:
    """What a convolution or product multiplies by."""

    tensor: str
    part: str = ""
    """Which part of the tensor, where several operators are made of one node."""
    biases: tuple[str, ...] = ()
    """The constants that make its biases, those of a batch norm among them: it scales results, not the weights."""


def share(operators: dict[str, Operator], weights: Mapping[str, Weights], tensors: Tensors) -> None:
    """Let operators say whose weights theirs are."""
    found: dict[object, str] = {}
    for name, operator in list(operators.items()):
        mine = weights.get(name)
        if mine is None or not isinstance(operator, Conv | MatMul):
            continue
        layer = operator.layer([operators[x].shape for x in operator.inputs])
        key = tensors.number(mine.tensor), mine.part, layer.weight_elements
        alike = (*key, *map(tensors.number, mine.biases))
        of = found.get(alike) or found.get(key)
        if of:
            own = layer.bias and alike not in found
            operators[name] = operator.model_copy(update={"weights_of": of, "own_bias": own})
        found.setdefault(key, name)
        found.setdefault(alike, name)
