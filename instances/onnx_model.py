"""An ONNX file with its weights: what `onnx_reader` leaves out, for the C code that runs the network.

`read_onnx` never looks at weights. Here the file is read once more, with the data that lies in other files; a constant
is found by name, and what is computed from constants alone is evaluated by the reference implementation of ONNX.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, inliner, numpy_helper
from onnx.reference import ReferenceEvaluator

from instances.errors import InputError
from instances.network import Network
from instances.onnx_graph import Node
from instances.onnx_reader import read_graph


@dataclass
class OnnxModel:
    """A network, the nodes of the file that its operators stand for, and the constants of the file."""

    network: Network
    path: Path
    where: str
    origin: Mapping[str, onnx.NodeProto]
    """Operator -> the node that it was made of."""
    folded: Mapping[str, tuple[onnx.NodeProto, ...]]
    """Operator -> nodes behind it that it has taken in: batch norms, sums with a constant for every channel."""
    makers: Mapping[str, str]
    """Tensor -> operator."""
    outputs: tuple[str, ...]
    """Tensors that are results of the model."""
    inputs: Mapping[str, str]
    """Tensors that come from outside -> operators, in the file's order."""
    _tensors: Mapping[str, onnx.TensorProto] = field(repr=False)
    _nodes: Mapping[str, onnx.NodeProto] = field(repr=False)
    _opsets: list[onnx.OperatorSetIdProto] = field(repr=False)
    _values: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    @property
    def opset(self) -> int:
        """The version of the standard operators."""
        return next(o.version for o in self._opsets if o.domain in ("", "ai.onnx"))

    def node(self, operator: str) -> Node:
        """The node of an operator; raises InputError for one that has none."""
        if operator not in self.origin:
            raise InputError(f"{self.where}: operator {operator!r} is of no node of the file")
        return Node(self.origin[operator])

    def constant(self, tensor: str) -> np.ndarray:
        """The value of a constant tensor.

        Raises
        ------
        InputError
            If it depends on an input, or cannot be evaluated.
        """
        if tensor in self._values:
            return self._values[tensor]
        if tensor in self._tensors:
            value = self._held(tensor)
        elif tensor in self._nodes:
            value = self._evaluated(tensor)
        else:
            raise InputError(f"{self.where}: tensor {tensor!r} is no constant")
        self._values[tensor] = value
        return value

    def _held(self, tensor: str) -> np.ndarray:
        try:
            return numpy_helper.to_array(self._tensors[tensor])
        except ValueError as error:
            raise InputError(f"{self.where}: tensor {tensor!r} does not hold its data ({error})") from None

    def is_constant(self, tensor: str) -> bool:
        """Whether no input of the model reaches a tensor."""
        return tensor not in self.makers and (tensor in self._tensors or tensor in self._nodes)

    def _evaluated(self, tensor: str) -> np.ndarray:
        node = self._nodes[tensor]
        feeds = {name: self.constant(name) for name in node.input if name}
        kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in feeds.items()}
        inputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in kinds.items()]
        outputs = [helper.make_tensor_value_info(n, onnx.TensorProto.UNDEFINED, None) for n in node.output if n]
        tiny = helper.make_model(helper.make_graph([node], "constant", inputs, outputs), opset_imports=self._opsets)
        try:
            found: list[Any] = list(ReferenceEvaluator(tiny).run(None, feeds))
        except Exception as error:  # noqa: BLE001 - the evaluator raises many types
            said = str(error)[:150]
            raise InputError(
                f"{self.where}: constant {tensor!r} ({node.op_type}) cannot be evaluated: {said}"
            ) from None
        return np.asarray(found[[n for n in node.output if n].index(tensor)])


def read_model(
    path: str | os.PathLike[str], *, batch: int | None = None, symbols: Mapping[str, int] | None = None
) -> OnnxModel:
    """Read an ONNX file with its weights.

    Parameters
    ----------
    batch, symbols
        As of `instances.onnx_reader.read_onnx`.

    Raises
    ------
    InputError
        As `read_onnx`; also if data in other files is missing.
    """
    network, graph = read_graph(path, batch=batch, symbols=symbols)
    try:
        model = onnx.load(os.fspath(path), load_external_data=True)
    except Exception as error:  # noqa: BLE001 - missing files, short data
        raise InputError(f"{graph.where}: its weights cannot be read: {str(error)[:200]}") from None
    model = inliner.inline_local_functions(model) if model.functions else model
    inputs = {info.name for info in model.graph.input} - {tensor.name for tensor in model.graph.initializer}
    reached = set(inputs)
    for node in model.graph.node:
        if any(name in reached for name in node.input):
            reached.update(node.output)
    return OnnxModel(
        network, Path(path), graph.where, graph.origin, graph.folded, graph.makers,
        tuple(info.name for info in model.graph.output),
        {info.name: graph.makers[info.name] for info in model.graph.input if info.name in inputs},
        {t.name: t for t in model.graph.initializer},
        {o: node for node in model.graph.node for o in node.output if o and o not in reached},
        list(model.opset_import), dict(graph.known.values),
    )  # fmt: skip


def is_onnx(path: str | os.PathLike[str]) -> bool:
    """Whether a path names an ONNX file."""
    return Path(path).suffix.lower() == ".onnx"
