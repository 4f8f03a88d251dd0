"""Element types of an ONNX file: what the maps and the weights of its products are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import onnx

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


class _Types:
    """What is known of the tensors of a graph."""

    def __init__(self, graph: onnx.GraphProto, inferred: Mapping[str, int]) -> None:
        self.inferred = inferred
        self.stated = {tensor.name: tensor.data_type for tensor in graph.initializer}
        self.stated.update({info.name: info.type.tensor_type.elem_type for info in graph.input})
        self.makers = {name: node for node in graph.node for name in node.output if name}

    def type_of(self, tensor: str) -> int:
        """The type of a tensor as the file or shape inference has it (0: not known)."""
        return self.stated.get(tensor) or self.inferred.get(tensor, 0)

    def held(self, tensor: str) -> tuple[str, int]:
        """Follow a tensor to where its elements come from: a tensor, and its type (0: not known)."""
        for _ in range(len(self.makers) + 1):
            node = self.makers.get(tensor)
            if node is None:
                break
            if node.op_type in _QUANTISERS:
                at = _QUANTISERS[node.op_type]
                zero = self.held(node.input[at])[1] if at < len(node.input) else onnx.TensorProto.UINT8
                return tensor, zero
            if node.op_type in _MAKERS or node.op_type == "ConstantOfShape" or not node.input:
                # ConstantOfShape reads a shape, of another type than what it makes: float32 unless it says so
                unsaid = onnx.TensorProto.FLOAT if node.op_type == "ConstantOfShape" else 0
                value = next((a.t.data_type for a in node.attribute if a.name == "value"), unsaid)
                return tensor, _MAKERS.get(node.op_type, value)
            if node.op_type == "Cast":
                return tensor, next((a.i for a in node.attribute if a.name == "to"), 0)
            made, read = self.type_of(tensor), self.type_of(node.input[0])
            if made and read and made != read and node.op_type != "DequantizeLinear":  # OneHot: of indices numbers
                return tensor, made
            tensor = node.input[0]
        return tensor, self.stated.get(tensor, 0)


def element_types(
    graph: onnx.GraphProto, constants: Collection[str], inferred: Mapping[str, int]
) -> tuple[str, str]:  # fmt: skip
    """Return the element types of maps and of weights: the most frequent among products (empty: not known).

    What is quantised in between (QDQ) counts as what it is quantised to. `inferred` has what shape inference says.
    """
    types = _Types(graph, inferred)
    found: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
    for node in graph.node:
        data, weights = _FACTORS.get(node.op_type, (0, 0))
        if weights and len(node.input) > weights:
            found[0][types.held(node.input[data])[1]] += 1
            root, kind = types.held(node.input[weights])
            found[1][kind if root in constants else 0] += 1
    for counter in found:
        del counter[0]
    if not found[0]:
        found[0].update(info.type.tensor_type.elem_type for info in graph.input[:1])
    maps, held = (_name((counter.most_common(1) or [(0, 0)])[0][0]) for counter in found)
    return maps, held


def _name(kind: int) -> str:
    """Return what an element type is called: float32, int8, ..."""
    known = onnx.TensorProto.DataType
    name = known.Name(kind).lower() if kind in known.values() else ""
    return {"float": "float32", "double": "float64", "undefined": ""}.get(name, name)
