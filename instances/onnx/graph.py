"""What the ONNX conversions work on: one node, the graph being converted, and which of its constants are one tensor.

Tensors are told apart by name. What is made of a constant without changing its elements (a transpose, the integers of a
DequantizeLinear) is the same tensor; other results of constants are the same where the same node kinds make them of the
same tensors. Two initialisers with equal numbers are two tensors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TypeVar

import numpy as np
import onnx
from onnx import helper
from pydantic import BaseModel, ValidationError

from instances.errors import InputError
from instances.network.operators import Concat, Conv, Eltwise, MatMul, Opaque, Operator, Shape
from instances.onnx.shapes import STANDARD, Inferred, used_tensors

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


Kind = TypeVar("Kind", bound=BaseModel)


class Unsupported(Exception):
    """Raised by a conversion that leaves the node opaque; says why."""


@dataclass(frozen=True)
class Node:
    """One ONNX node with its attributes as plain values."""

    proto: onnx.NodeProto

    @property
    def op(self) -> str:
        """The operator's name, with its domain unless it is the standard one."""
        domain = self.proto.domain
        return self.proto.op_type if domain in STANDARD else f"{domain}.{self.proto.op_type}"

    @property
    def label(self) -> str:
        """The node's name, or its first output's."""
        return self.proto.name or next((o for o in self.proto.output if o), self.proto.op_type)

    def input(self, index: int) -> str:
        """Return the name of an input tensor, empty when absent."""
        return self.proto.input[index] if index < len(self.proto.input) else ""

    @property
    def output(self) -> str:
        """The first output tensor."""
        return self.proto.output[0] if self.proto.output else ""

    @cached_property
    def _attributes(self) -> dict[str, object]:
        return {a.name: helper.get_attribute_value(a) for a in self.proto.attribute if not a.ref_attr_name}

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        value = self._attributes.get(name, default)
        return value if isinstance(value, int) else default

    def number(self, name: str, default: float) -> float:
        """Return a numeric attribute."""
        value = self._attributes.get(name, default)
        return float(value) if isinstance(value, int | float) else default

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Return a list attribute of integers, None when absent."""
        value = self._attributes.get(name)
        return None if value is None or not hasattr(value, "__iter__") else tuple(int(x) for x in value)

    def numbers(self, name: str) -> tuple[float, ...]:
        """Return a list attribute of numbers, empty when absent."""
        value = self._attributes.get(name)
        return tuple(float(x) for x in value) if hasattr(value, "__iter__") else ()

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list attribute of texts, empty when absent."""
        value = self._attributes.get(name)
        found = value if isinstance(value, list | tuple) else ()
        return tuple(x.decode("utf-8", "replace") if isinstance(x, bytes) else str(x) for x in found)

    def element(self, name: str, default: str) -> str:
        """Return an attribute that is an element type, as numpy calls it."""
        stated = self.integer(name, 0)
        return str(helper.tensor_dtype_to_np_dtype(stated)) if stated else default

    def text(self, name: str, default: str) -> str:
        """Return a text attribute."""
        value = self._attributes.get(name, default)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


@dataclass(frozen=True)
class Derived:
    """A constant that the reader makes up: a function of constants of the file, which is called where numbers matter.

    The function takes elements along, and does not compute with them, where the first constant is quantised: then it
    is called of the integers, of their scales and of their zero points.
    """

    function: Callable[..., np.ndarray]
    tensors: tuple[str, ...]


class Graph:
    """The operators made so far, and where each tensor comes from."""

    def __init__(
        self, proto: onnx.GraphProto, known: Inferred, where: str, originals: Mapping[str, onnx.NodeProto],
        tensors: Tensors,
    ) -> None:  # fmt: skip
        self.proto = proto
        self.known = known
        self.where = where
        self.operators: dict[str, Operator] = {}
        #: Tensor -> name of the operator that makes it.
        self.makers: dict[str, str] = {}
        #: Tensor that is a result of the model -> the operator whose tensor it is: of its own where others read it too.
        self.results: dict[str, str] = {}
        #: Tensor -> name of the convolution, product or norm into which a per-channel constant could be folded.
        self.foldable: dict[str, str] = {}
        #: Tensor -> its axis of channels, behind factors and addends that such a layer can take into its weights.
        self.channels: dict[str, int] = {}
        #: Tensor -> (padded tensor, pads) for zero padding that a convolution may absorb.
        self.padding: dict[str, tuple[str, tuple[int, int, int, int]]] = {}
        #: Which constants are one tensor; operator -> its weights; tensor -> the operator that counts it as parameters.
        self.tensors = tensors
        self.weights: dict[str, Weights] = {}
        self.trained: dict[int | str, str] = {}
        #: Tensors whose size is unknown -> where that began.
        self.unknown: dict[str, str] = {}
        #: The node that is being converted; operator -> the node that it was made of; tensor -> nodes folded before it.
        self.node: onnx.NodeProto | None = None
        #: Tensor -> the node of the file, where a standard one stands for it.
        self.originals = originals
        self.origin: dict[str, onnx.NodeProto] = {}
        #: Operator -> the tensor that it was made for; the element-wise nodes that it stands for, where it is several.
        self.tensor_of: dict[str, str] = {}
        self.bodies: dict[str, tuple[onnx.NodeProto, ...]] = {}
        #: Constants that are not in the file -> how they are computed of those that are.
        self.derived: dict[str, Derived] = {}
        self.folded: dict[str, tuple[onnx.NodeProto, ...]] = {}
        self.readers = Counter(x for n in proto.node for x in used_tensors(n)) + Counter(o.name for o in proto.output)

    def is_constant(self, tensor: str) -> bool:
        """Whether a tensor does not depend on the inputs."""
        return tensor in self.known.constants

    def value(self, tensor: str) -> np.ndarray | None:
        """Return the value of a small constant, if it is known."""
        return self.known.values.get(tensor)

    def integers(self, tensor: str) -> tuple[int, ...] | None:
        """Return the value of a small integer constant as a tuple."""
        value = self.value(tensor)
        return None if value is None else tuple(int(x) for x in value.reshape(-1))

    def has_shape(self, tensor: str) -> bool:
        """Whether the shape of a tensor is known and not empty."""
        shape = self.known.shapes.get(tensor)
        return shape is not None and all(shape) and tensor not in self.unknown

    def shape(self, tensor: str) -> Shape:
        """Return the shape of a tensor (a single number has shape (1,)).

        Raises InputError if it is not known; says where that began.
        """
        shape = self.known.shapes.get(tensor)
        if shape is not None and not all(shape):
            raise InputError(f"{self.where}: tensor {tensor!r} has the empty shape {shape}")
        if shape is None or tensor in self.unknown:
            began = f" (unknown since {self.unknown[tensor]})" if tensor in self.unknown else ""
            raise InputError(f"{self.where}: the shape of tensor {tensor!r} is missing and cannot be inferred{began}")
        return shape or (1,)

    def rank(self, tensor: str) -> int:
        """Return the number of dimensions of a tensor with a known shape (0 for a single number)."""
        return len(self.known.shapes.get(tensor) or ())

    def size(self, tensor: str) -> int:
        """Return the number of elements of a tensor, 0 when unknown."""
        shape = self.known.shapes.get(tensor)
        return 0 if shape is None else prod(shape)

    def maker(self, tensor: str) -> str:
        """Return the name of the operator that makes a tensor."""
        if tensor not in self.makers:
            raise InputError(f"{self.where}: tensor {tensor!r} is used but nothing produces it")
        return self.makers[tensor]

    def activations(self, node: Node) -> list[str]:
        """Return the tensors a node reads that depend on the inputs."""
        return [t for t in used_tensors(node.proto) if not self.is_constant(t)]

    def unique(self, wanted: str) -> str:
        """Return a printable operator name that is not taken yet."""
        base = "".join(c if c.isprintable() else "_" for c in wanted)[:480] or "unnamed"
        name, count = base, 1
        while name in self.operators:
            count += 1
            name = f"{base}_{count}"
        return name

    def made(self, node: Node, kind: type[Kind], tensors: Iterable[str], **fields: object) -> Kind:
        """Return an operator for a node that reads tensors; of the shape (1,) until `place` infers it."""
        inputs = tuple(map(self.maker, tensors))
        return kind.model_validate({"name": self.unique(node.label), "inputs": inputs, "shape": (1,), **fields})

    def emit(self, operator: Operator, tensor: str, *, foldable: bool = False) -> str:
        """Add an operator that makes `tensor`; return its name."""
        self.operators[operator.name] = operator
        self.makers[tensor] = operator.name
        self.tensor_of[operator.name] = tensor
        if self.node is not None:
            self.origin[operator.name] = self.node
        if foldable:
            self.foldable[tensor] = operator.name
        return operator.name

    def derive(self, wanted: str, function: Callable[..., np.ndarray], *tensors: str) -> str:
        """Return a new constant that is computed of others."""
        name, count = wanted, 1
        while name in self.derived or name in self.known.shapes:
            count += 1
            name = f"{wanted}_{count}"
        self.derived[name] = Derived(function, tensors)
        self.known.constants.add(name)
        return name

    def replace(self, name: str, **fields: object) -> None:
        """Change fields of an operator that was added before."""
        self.operators[name] = self.operators[name].model_copy(update=fields)

    def made_so_far(self) -> tuple[int, int]:
        """Return how many operators there are, and parameters that count: what `drop` goes back to."""
        return len(self.operators), len(self.trained)

    def drop(self, kept: tuple[int, int]) -> None:
        """Take back all operators but the first ones: those of a node that is not converted after all."""
        dropped = set(list(self.operators)[kept[0] :])
        for name in dropped:
            del self.operators[name]
            self.origin.pop(name, None)
            self.bodies.pop(name, None)
            self.weights.pop(name, None)
        for number in list(self.trained)[kept[1] :]:
            del self.trained[number]
        for table in (self.makers, self.foldable):
            for tensor in [tensor for tensor, name in table.items() if name in dropped]:
                del table[tensor]

    def weigh(self, name: str, tensor: str, part: str = "", bias: str = "") -> str:
        """Note what an operator multiplies by; return its name."""
        self.weights[name] = Weights(tensor, part, (bias,) if bias else ())
        number = self.tensors.number(tensor)
        before = self.operators.get(self.trained.get(number, ""))
        if isinstance(before, Opaque):  # an embedding: the product counts the table
            self.replace(before.name, parameters=before.parameters - self.size(tensor))
        self.trained[number] = name
        return name

    def count(self, tensors: Iterable[str], name: str = "") -> int:
        """Return the elements of constants that nothing counts yet as parameters; `name` does from now on."""
        fresh = [tensor for tensor in tensors if self.tensors.number(tensor) not in self.trained]
        self.trained.update((self.tensors.number(tensor), name) for tensor in fresh)
        return sum(map(self.size, fresh))

    def alias(self, tensor: str, source: str, constants: Iterable[str]) -> None:
        """Let `tensor` be the tensor `source`: the operator between them, with its constants, was folded away."""
        self.makers[tensor] = self.makers[source]
        into = self.foldable[source]
        if into in self.weights:
            mine = self.weights[into]
            self.weights[into] = replace(mine, biases=(*mine.biases, *constants))
        self.folded[into] = (*self.folded.get(into, ()), *([self.node] if self.node is not None else []))
        self.foldable[tensor] = self.foldable[source]

    def only_reader(self, tensor: str) -> bool:
        """Whether exactly one node reads a tensor and it is no output of the model."""
        return self.readers[tensor] == 1

    def fault(self, node: Node, reason: str) -> InputError:
        """Return the error that a node contradicts itself or its inputs."""
        return InputError(f"{self.where}: operator {node.label!r} ({node.op}): {reason}")

    def place(self, node: Node, operator: Operator, *, foldable: bool = False) -> None:
        """Infer the shape of `operator`, compare it with what ONNX says, and add it for the node's first output.

        Raises
        ------
        Unsupported
            If the operator's rules do not cover the node but ONNX knows the shape.
        InputError
            If the shapes of the file contradict each other.
        """
        tensor = node.output
        said = self.shape(tensor) if self.has_shape(tensor) else None
        try:
            shape = tuple(operator.infer([self.operators[i].shape for i in operator.inputs]))
        except ValueError as error:
            reason = "; ".join(e["msg"] for e in error.errors()) if isinstance(error, ValidationError) else str(error)
            if said is None:
                raise self.fault(node, reason) from None
            raise Unsupported(reason) from None
        if said is not None and said != shape:
            if isinstance(operator, Eltwise | Concat):
                raise Unsupported("a constant operand changes the shape")
            raise self.fault(node, f"the file's shapes give {said}, its inputs give {shape}")
        self.known.shapes[tensor] = shape
        self.emit(operator.model_copy(update={"shape": shape}), tensor, foldable=foldable)

    def opaque(self, node: Node, reason: str, macs: int | None) -> None:
        """Keep a node as opaque operators, one for each output that is read (at least one); the first has its MACs."""
        tensors = self.activations(node)
        inputs = tuple(dict.fromkeys(self.maker(t) for t in tensors))
        constants = [t for t in used_tensors(node.proto) if self.is_constant(t)]
        held = [t for t in constants if self.size(t) > 1 and not self._describes_shape(t)]
        parameters = self.count(held, self.unique(node.label))
        outputs = [o for o in node.proto.output if o and self.readers[o]] or [node.output or node.label]
        first = ""
        for index, tensor in enumerate(outputs):
            if not self.has_shape(tensor):
                since = next((self.unknown[t] for t in tensors if t in self.unknown), "")
                helps = f": {reason}" if "--value" in reason else ""
                self.unknown[tensor] = since or f"operator {node.label!r} ({node.op}){helps}"
            shape = (1,) if tensor in self.unknown else self.shape(tensor)
            name = self.unique(node.label if index == 0 else f"{node.label}:{index}")
            made = Opaque(
                name=name, inputs=inputs, shape=shape, kind=node.op, parameters=0 if index else parameters,
                dynamic=tensor in self.unknown, reason=reason[:500], macs=0 if index else macs,
                result_of=first,
            )  # fmt: skip
            first = first or name
            self.emit(made, tensor)

    def _describes_shape(self, tensor: str) -> bool:
        value = self.value(tensor)
        return value is not None and value.dtype.kind in "iub"
