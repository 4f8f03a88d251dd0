"""An ONNX file with its weights: what `instances.onnx.reader` leaves out, for the C code that runs the network.

`read_onnx` never looks at weights. Here the file is read once more, with the data that lies in other files; a constant
is found by name, and what is computed from constants alone is evaluated by the reference implementation of ONNX.
Operators on quantised tensors are spelled out (`instances.onnx.quantised`).

`evaluated` says what a model computes, node by node in NumPy: for hosts without onnxruntime. The file's graph is
evaluated by the reference implementation of ONNX, on the tensors that the file has. Nothing of how certile reads, plans
or writes a network is used. Here are the operators that it does not know (quantised ones of other opsets and of
onnxruntime's domain), batch norms, whose older versions it trains, and poolings, which it computes element by element
in Python.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import helper, inliner, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from instances.errors import InputError
from instances.network.network import Network
from instances.onnx.asked import Asked, give
from instances.onnx.control import unroll
from instances.onnx.file import open_model
from instances.onnx.graph import Graph, Node
from instances.onnx.quantised import move_integers, one_for_each, spell_out
from instances.onnx.reader import read_graph
from instances.onnx.shapes import evaluate, opset_of
from instances.tflite.file import ModelFile

#: The axis that a DequantizeLinear has scales along, if it does not say.
_SCALES_ALONG = 1
#: Operators that take elements of their first input along as they are.
_TAKERS = frozenset(
    """Expand Flatten Gather GatherElements GatherND Identity Reshape Slice Split Squeeze Tile Transpose
    Unsqueeze""".split()
)


@dataclass(frozen=True)
class Quantised:
    """Integers with scales and zero points: they stand for (integer - zero) * scale."""

    integers: np.ndarray
    scale: np.ndarray
    zero: np.ndarray
    """`scale`, `zero`: one number, or one for every place along an axis of the integers."""
    axis: int | None

    def spread(self) -> tuple[np.ndarray, np.ndarray]:
        """`scale` and `zero`, so that they can be broadcast to the integers."""
        along = [] if self.axis is None else [-1 if k == self.axis else 1 for k in range(self.integers.ndim)]
        return self.scale.reshape(along), self.zero.reshape(along)

    def real(self) -> np.ndarray:
        """What they stand for."""
        scale, zero = self.spread()
        centred = self.integers.astype(np.int64) - zero.astype(np.int64)
        return np.asarray(centred * scale, self.scale.dtype)


class OnnxModel:
    """A network, the nodes of the file that its operators stand for, and the constants of the file.

    It is made of what the reader knows, of what the file holds where numbers matter, of the element types of the file's
    tensors, and of its inputs that are constants.
    """

    def __init__(
        self, network: Network, graph: Graph, path: Path, file: ModelFile, types: Mapping[str, int],
        given: Mapping[str, np.ndarray],
    ) -> None:  # fmt: skip
        self.network, self.path, self.where, model = network, path, graph.where, file.model
        #: What the file says beside its graph; its model is spelled out.
        self.file = file
        #: Operator -> what it computes: the node that it was made of, or the node that the file would have in its
        #: place, where one node became several operators (`instances.onnx.steps`).
        self.origin = graph.origin
        #: Operator -> the element-wise nodes that it stands for together; the last one makes its result.
        self.bodies = graph.bodies
        #: Constants that such nodes read and the file does not have.
        self.derived = graph.derived
        #: Operator -> nodes behind it that it has taken in: batch norms, sums with a constant for every channel.
        self.folded = graph.folded
        #: Tensor -> operator; operator -> the tensor under which made nodes read it.
        self.makers, self.tensor_of = graph.makers, graph.tensor_of
        #: Results of the model; of those that operators make the operator: of its own where others read it, too.
        self.outputs, self.results = tuple(info.name for info in model.graph.output), graph.results
        self._tensors = {tensor.name: tensor for tensor in model.graph.initializer}
        outer = [info.name for info in model.graph.input if info.name not in self._tensors]
        #: Tensors that come from outside -> operators, in the file's order.
        self.inputs = {name: graph.makers[name] for name in outer}
        infos = (*model.graph.input, *model.graph.output)
        #: Element types of inputs and results, and of the file's tensors, as ONNX numbers them (0 or none: not known).
        self.elements, self.types = {info.name: info.type.tensor_type.elem_type for info in infos}, types
        #: Inputs of the file that are constants here, with what whoever runs the file has to feed it.
        self.given = given
        reached = set(outer)
        for node in model.graph.node:
            if any(name in reached for name in node.input):
                reached.update(o for o in node.output if o not in graph.known.constants)  # sizes depend on no data
        self._nodes = {o: node for node in model.graph.node for o in node.output if o and o not in reached}
        self._opsets, self._values = list(model.opset_import), dict(graph.known.values)

    @cached_property
    def first(self) -> Mapping[str, str]:
        """Operator -> its first tensor: later ones are what was folded into it, or into who reads it."""
        return {operator: tensor for tensor, operator in reversed(list(self.makers.items()))}

    @property
    def opset(self) -> int:
        """The version of the standard operators."""
        return opset_of(self._opsets)

    def node(self, operator: str) -> Node:
        """The node of an operator; raises InputError for one that has none."""
        if operator not in self.origin:
            raise InputError(f"{self.where}: operator {operator!r} is of no node of the file")
        return Node(self.origin[operator])

    def body(self, operator: str) -> tuple[Node, ...]:
        """The element-wise nodes that an operator stands for; none for one that is a node by itself."""
        return tuple(map(Node, self.bodies.get(operator, ())))

    def constant(self, tensor: str) -> np.ndarray:
        """The value of a constant tensor; raises InputError if it depends on an input, or cannot be evaluated."""
        if tensor in self._values:
            return self._values[tensor]
        if tensor in self._tensors:
            value = self._held(tensor)
        elif tensor in self.derived:
            made = self.derived[tensor]
            value = np.asarray(made.function(*map(self.constant, made.tensors)))
        elif (stands := self.quantised(tensor)) is not None:
            value = stands.real()
        elif tensor in self._nodes:
            value = self._evaluated(tensor)
        else:
            raise InputError(f"{self.where}: tensor {tensor!r} is no constant")
        self._values[tensor] = value
        return value

    def quantised(self, tensor: str) -> Quantised | None:
        """The integers that a constant is the meaning of (by a DequantizeLinear); None if it is made otherwise.

        Raises InputError for scales of blocks, which are not read.
        """
        if (made := self.derived.get(tensor)) is not None:
            whole = self.quantised(made.tensors[0]) if len(made.tensors) == 1 else None
            return None if whole is None else _taken_along(made.function, whole, f"{self.where}: tensor {tensor!r}")
        proto = self._nodes.get(tensor)
        if proto is not None and proto.op_type in _TAKERS:
            return self._taken(tensor, proto)
        if proto is None or proto.op_type != "DequantizeLinear":
            return None
        node = Node(proto)
        integers, scale = self.constant(node.input(0)), self.constant(node.input(1))
        zero = self.constant(node.input(2)) if node.input(2) else np.zeros(1, integers.dtype)
        zero = np.broadcast_to(zero.reshape(-1), scale.size)
        axis = node.integer("axis", _SCALES_ALONG) % max(integers.ndim, 1) if scale.size > 1 else None
        if node.integer("block_size", 0) or scale.ndim > 1:
            raise InputError(f"{self.where}: tensor {tensor!r} has a scale for every block: one for an axis is read")
        return Quantised(integers, scale.reshape(-1), zero, axis)

    def _taken(self, tensor: str, proto: onnx.NodeProto) -> Quantised | None:
        """The integers of a constant that takes elements of another; None where scales are no longer along an axis."""
        whole = self.quantised(proto.input[0])
        try:
            return whole and _taken_along(partial(self._evaluated, tensor), whole, self.where)
        except InputError:
            return None

    def element(self, tensor: str) -> str:
        """The element type of an input or a result of the model, or of a constant, as numpy calls it."""
        if tensor in self.elements:
            return str(helper.tensor_dtype_to_np_dtype(self.elements[tensor]))
        return str(self.constant(tensor).dtype)

    def type_in_file(self, tensor: str) -> str:
        """The element type of a tensor of the file, as numpy calls it; empty if it is not known."""
        number = self.types.get(tensor, 0)
        return str(helper.tensor_dtype_to_np_dtype(number)) if number else ""

    def _held(self, tensor: str) -> np.ndarray:
        try:
            return numpy_helper.to_array(self._tensors[tensor])
        except ValueError as error:
            raise InputError(f"{self.where}: tensor {tensor!r} does not hold its data ({error})") from None

    def is_constant(self, tensor: str) -> bool:
        """Whether no input of the model reaches a tensor."""
        found = (self._values, self._tensors, self._nodes, self.derived)
        return tensor not in self.makers and any(tensor in table for table in found)

    def _evaluated(self, tensor: str, first: np.ndarray | None = None) -> np.ndarray:
        """What a node makes of constants; `first`: what its first input is taken as."""
        node = self._nodes[tensor]
        feeds = {name: self.constant(name) for name in node.input if name}
        feeds |= {} if first is None else {node.input[0]: first}
        try:
            found = evaluate(node, feeds, self._opsets)
        except Exception as error:  # noqa: BLE001 - the evaluator raises many types
            what = f"constant {tensor!r} ({node.op_type})"
            raise InputError(f"{self.where}: {what} cannot be evaluated: {str(error)[:150]}") from None
        return np.asarray(found[[n for n in node.output if n].index(tensor)])


def _taken_along(function: Callable[..., np.ndarray], whole: Quantised, where: str) -> Quantised:
    """Integers with their scales and zero points after a function that takes elements along."""
    parts = (np.broadcast_to(x, whole.integers.shape) for x in (whole.integers, *whole.spread()))
    integers, scale, zero = (np.asarray(function(part)) for part in parts)
    for axis in (None, *range(integers.ndim)):
        lines = [np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1) if axis is not None else x.reshape(1, -1)
                 for x in (scale, zero)]  # fmt: skip
        if all((line == line[:, :1]).all() for line in lines):
            return Quantised(integers, lines[0][:, 0], lines[1][:, 0], axis)
    raise InputError(f"{where} has scales along an axis that was cut or joined with others: no C is written")


def read_model(
    path: str | os.PathLike[str], *, batch: int | None = None, symbols: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None, values: Mapping[str, float] | None = None,
) -> OnnxModel:  # fmt: skip
    """Read a model file with its weights, as `read_onnx` does without; raises InputError if data is missing, too."""
    asked = Asked(batch, symbols or {}, shapes or {}, values or {})
    network, graph = read_graph(path, asked)
    types, file = dict(graph.known.types), open_model(path, graph.where, weights=True)
    model = file.model
    model = inliner.inline_local_functions(model) if model.functions else model
    asked, given = give(model, asked, graph.where)
    if any([unroll(model, asked, graph.where), spell_out(model), move_integers(model), one_for_each(model)]):
        spelled = onnx.ModelProto()
        spelled.CopyFrom(model)
        network, graph = read_graph(path, asked, file=replace(file, model=spelled))
    return OnnxModel(network, graph, Path(path), replace(file, model=model), types, given)


#: What evaluates.
JUDGE = f"the reference of onnx {onnx.__version__}"
_MICROSOFT = "com.microsoft"


def evaluated(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray], results: Sequence[str]) -> list[np.ndarray]:
    """Return the results of a model; raises whatever the evaluator does for an operator that it does not know."""
    evaluator: Any = ReferenceEvaluator(model, new_ops=_operators())
    return [np.asarray(value) for value in evaluator.run(list(results), dict(feeds))]


def _along(value: np.ndarray, rank: int, axis: int) -> np.ndarray:
    """A scale or zero point by channel, so that it can be broadcast."""
    return value.reshape([-1 if k == axis % max(rank, 1) else 1 for k in range(rank)] if value.size > 1 else ())


def _real(x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None, axis: int = 1) -> np.ndarray:
    offset = 0 if zero is None else _along(zero, x.ndim, axis).astype(np.int64)
    centred = (x.astype(np.int64) - offset).astype(np.float32)
    return np.asarray(centred * _along(scale, x.ndim, axis), np.float32)


def _integers(x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None, axis: int = 1) -> np.ndarray:
    zero = np.zeros((), np.uint8) if zero is None else zero
    limits = np.iinfo(zero.dtype)
    steps = np.rint(x / _along(scale, x.ndim, axis)) + _along(zero, x.ndim, axis).astype(np.float64)
    return np.asarray(np.clip(steps, limits.min, limits.max).astype(zero.dtype))


def _windows(x: np.ndarray, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int],
             dilations: Sequence[int], beyond: float) -> np.ndarray:  # fmt: skip
    """All windows of a map, the taps along the last axes."""
    n = len(kernel)
    room = [(0, 0), (0, 0), *zip(pads[:n], pads[n:], strict=True)]
    padded = np.pad(x, room, constant_values=beyond)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    seen = sliding_window_view(padded, reach, axis=tuple(range(2, 2 + n)))
    every = (slice(None), slice(None), *(slice(None, None, s) for s in strides))
    return np.asarray(seen[(*every, *(slice(None, None, d) for d in dilations))])


def _pads(x: np.ndarray, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
          pads: Sequence[int], auto_pad: str, ceil: bool) -> list[int]:  # fmt: skip
    """Pads on either side as they are meant, with what rounding up adds behind."""
    n, found = len(kernel), list(pads)
    for k in range(n):
        size, reach = x.shape[2 + k], (kernel[k] - 1) * dilations[k] + 1
        if auto_pad.startswith("SAME"):
            whole = max(0, (-(-size // strides[k]) - 1) * strides[k] + reach - size)
            less, more = whole // 2, whole - whole // 2
            found[k], found[n + k] = (more, less) if auto_pad == "SAME_LOWER" else (less, more)
        elif ceil:
            rest = (size + found[k] + found[n + k] - reach) % strides[k]
            last = size + found[k] + found[n + k] - reach + (strides[k] - rest if rest else 0)
            if rest and last < size + found[k]:  # a window that begins beyond the map is none
                found[n + k] += strides[k] - rest
    return found


def _pooled(x: np.ndarray, op: str, given: Mapping[str, Any]) -> np.ndarray:
    kernel = list(given["kernel_shape"])
    n = len(kernel)
    strides, dilations = list(given.get("strides") or [1] * n), list(given.get("dilations") or [1] * n)
    stated = list(given.get("pads") or [0] * 2 * n)
    pads = _pads(x, kernel, strides, dilations, stated, given.get("auto_pad") or "NOTSET", bool(given.get("ceil_mode")))
    taps = tuple(range(-n, 0))
    if op == "max":
        least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        return np.asarray(_windows(x, kernel, strides, pads, dilations, least).max(axis=taps))
    counted = np.pad(np.ones(x.shape[2:], np.float32), list(zip(stated[:n], stated[n:], strict=True)),
                     constant_values=1 if given.get("count_include_pad") else 0)  # fmt: skip
    rest = [p - s for p, s in zip(pads, stated, strict=True)]
    number = _windows(counted[None, None], kernel, strides, rest, dilations, 0).sum(axis=taps)
    total = _windows(x, kernel, strides, pads, dilations, 0).astype(np.float64).sum(axis=taps)
    return np.asarray(total / number).astype(x.dtype)


def _operators() -> list[type[OpRun]]:
    """Classes by name and domain, as the evaluator takes them."""

    def made(name: str, domain: str, run: Any) -> type[OpRun]:
        return type(name, (OpRun,), {"op_domain": domain, "_run": run})

    def said(given: Mapping[str, Any], name: str, default: Any) -> Any:
        return default if given.get(name) is None else given[name]

    def quantise(self: Any, x: Any, scale: Any, zero: Any = None, **given: Any) -> tuple[np.ndarray]:
        return (_integers(x, scale, zero, said(given, "axis", 1)),)

    def dequantise(self: Any, x: Any, scale: Any, zero: Any = None, **given: Any) -> tuple[np.ndarray]:
        return (_real(x, scale, zero, said(given, "axis", 1)),)

    def largest(self: Any, x: Any, **given: Any) -> tuple[np.ndarray]:
        return (_pooled(x, "max", given),)

    def average(self: Any, x: Any, **given: Any) -> tuple[np.ndarray]:
        return (_pooled(x, "mean", given),)

    def both(op: Any) -> Any:
        def run(self: Any, a: Any, sa: Any, za: Any, b: Any, sb: Any, zb: Any, s: Any, z: Any = None, **_: Any) -> Any:
            return (_integers(op(_real(a, sa, za), _real(b, sb, zb)), s, z),)

        return run

    def one(op: Any) -> Any:
        def run(self: Any, x: Any, sx: Any, zx: Any, s: Any, z: Any = None, **given: Any) -> Any:
            return (_integers(op(_real(x, sx, zx), given), s, z),)

        return run

    def joined(self: Any, s: Any, z: Any, *parts: Any, axis: int = 1, **_: Any) -> tuple[np.ndarray]:
        real = [_real(*parts[k : k + 3]) for k in range(0, len(parts), 3)]
        return (_integers(np.concatenate(real, axis), s, z),)

    def gemm(self: Any, a: Any, sa: Any, za: Any, b: Any, sb: Any, zb: Any, c: Any = None, s: Any = None, z: Any = None,
             **given: Any) -> tuple[np.ndarray]:  # fmt: skip
        left = _real(a, sa, za)
        turned = bool(given.get("transB"))
        right = _real(b, sb, zb, 0 if turned else 1)
        real = (left.T if given.get("transA") else left) @ (right.T if turned else right)
        alpha = np.float32(said(given, "alpha", 1))
        real = real * alpha
        if c is not None:
            real = real + c.astype(np.float32) * (sa * sb * alpha)
        return (real.astype(np.float32) if s is None else _integers(real, s, z),)

    def norm(self: Any, x: Any, scale: Any, shift: Any, mean: Any, variance: Any, **given: Any) -> tuple[np.ndarray]:
        factor = scale / np.sqrt(variance + np.float32(said(given, "epsilon", 1e-5)))
        return ((x * _along(factor, x.ndim, 1) + _along(shift - mean * factor, x.ndim, 1)).astype(x.dtype),)

    def leaky(x: np.ndarray, given: Mapping[str, Any]) -> np.ndarray:
        return np.where(x < 0, np.float32(given.get("alpha") or 0.01) * x, x)

    plain = [("QuantizeLinear", quantise), ("DequantizeLinear", dequantise)]
    found = [made(name, domain, run) for name, run in plain for domain in ("", _MICROSOFT)]
    found += [made("MaxPool", "", largest), made("AveragePool", "", average)]
    found.append(made("BatchNormalization", "", norm))
    for name, op in (("QLinearAdd", np.add), ("QLinearMul", np.multiply)):
        found.append(made(name, _MICROSOFT, both(op)))
    for name, single in (
        ("QLinearSigmoid", lambda x, _: 1 / (1 + np.exp(-x))), ("QLinearLeakyRelu", leaky),
        ("QLinearAveragePool", lambda x, given: _pooled(x, "mean", given)),
        ("QLinearGlobalAveragePool", lambda x, _: x.mean(axis=tuple(range(2, x.ndim)), keepdims=True)),
    ):  # fmt: skip
        found.append(made(name, _MICROSOFT, one(single)))
    return [*found, made("QLinearConcat", _MICROSOFT, joined), made("QGemm", _MICROSOFT, gemm)]
