"""A subgraph of a TFLite file while its operators become nodes: tensors in both orders of axes, names, ends."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from instances.errors import InputError
from instances.tflite.model import Operator, Subgraph, Tensor, TfliteFile

#: The domain of operators that have no counterpart.
OPAQUE = "tflite"
#: From so many axes on inputs are declared channels first.
_MAPS = 4
#: Tensors of so many axes may be held channels first.
_ORDERED = 3


Converter = Callable[["Scope", Operator], None]


class Converters(dict[str, Converter]):
    """Operator -> what translates it."""

    def of(self, *names: str) -> Callable[[Converter], Converter]:
        """Register what translates operators."""

        def register(function: Converter) -> Converter:
            self.update(dict.fromkeys(names, function))
            return function

        return register


class Untranslatable(Exception):
    """Says why an operator has no counterpart."""


def channels_first(rank: int) -> tuple[int, ...]:
    """The axes of a tensor in the order of ONNX."""
    return (0, rank - 1, *range(1, rank - 1))


def channels_last(rank: int) -> tuple[int, ...]:
    """The axes of a tensor that has channels first in the order of TFLite."""
    return (0, *range(2, rank), 1)


@dataclass
class Scope:
    """A subgraph while its operators are translated."""

    file: TfliteFile
    graph: Subgraph
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    outputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    declared: list[onnx.ValueInfoProto] = field(default_factory=list)
    """Shapes of what operators without a counterpart make."""
    states: dict[str, str] = field(default_factory=dict)
    begins: dict[str, np.ndarray] = field(default_factory=dict)
    stays: dict[int, str] = field(default_factory=dict)
    """Tensor that stays between calls -> what it holds at last."""
    kept: dict[str, int] = field(default_factory=dict)
    handles: dict[int, str] = field(default_factory=dict)
    """Tensor that names a variable -> its name."""
    assigned: frozenset[str] = frozenset()
    """Variables that the subgraph assigns."""
    variables: dict[str, int] = field(default_factory=dict)
    """Name of a variable -> the tensor that it holds."""
    fed: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Name of a variable, or of a tensor that stays -> the input that it is, and a tensor like it."""
    padded: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    """Tensor that convolutions read as another one with zeros around it -> that, and pads of rows and columns."""
    turned: set[str] = field(default_factory=set)
    orders: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Weights of fully connected layers -> the sizes of the map in whose order they are, if they are in that of one."""
    _held: dict[tuple[int, bool], str] = field(default_factory=dict)
    _real: dict[tuple[int, bool], str] = field(default_factory=dict)
    _alias: dict[int, int] = field(default_factory=dict)
    _weights: dict[Hashable, str] = field(default_factory=dict)
    _labels: set[str] = field(default_factory=set)
    _flat: dict[int, int] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)
    _claimed: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._names |= {tensor.name for tensor in self.graph.tensors}

    # ---- tensors -----------------------------------------------------------------------------------------------------

    def tensor(self, number: int) -> Tensor:
        """A tensor by its number; raises Untranslatable for an input that is not given."""
        if number < 0:
            raise Untranslatable("an input is missing")
        return self.graph.tensors[number]

    def shape(self, number: int) -> tuple[int, ...]:
        """Its sizes, in the order of the file."""
        return self.tensor(number).shape

    def label(self, operator: Operator) -> str:
        """What an operator is called: TFLite names its results alone, each by all that was fused into it."""
        name = self.tensor(operator.outputs[0]).name if operator.outputs else ""
        return name.split(";")[0] or operator.name.lower()

    def readers(self, number: int) -> list[Operator] | None:
        """The operators that read a tensor; None for a result of the model."""
        if number in self.graph.outputs:
            return None
        return [one for one in self.graph.operators if number in one.inputs]

    def constant(self, number: int) -> np.ndarray | None:
        """The elements of a constant as the file has them; None if it is computed or not given."""
        return None if number < 0 else self.tensor(self.source(number)).data

    def numbers(self, number: int, what: str) -> tuple[int, ...]:
        """Whole numbers that a constant holds; raises Untranslatable if it is none."""
        if (found := self.constant(number)) is None:
            raise Untranslatable(f"its {what} are computed")
        return tuple(map(int, found.reshape(-1)))

    def source(self, number: int) -> int:
        """The constant that a tensor is the meaning of, or the tensor itself."""
        return self._alias.get(number, number)

    def is_first(self, numbers: Iterable[int], rank: int) -> bool:
        """Whether one of some tensors of a rank, but constants, is held channels first."""
        return rank >= _ORDERED and any(
            (k, True) in self._held for k in numbers
            if k >= 0 and len(self.shape(k)) == rank and self.constant(k) is None
        )  # fmt: skip

    def stored(self, number: int, *, first: bool = False) -> str:
        """The ONNX tensor with the elements of a tensor as they are, in an order of axes."""
        rank = len(self.shape(number))
        first = first and rank >= _ORDERED
        if number in self._alias:
            of = self.source(number)
            alike = self.tensor(of).kind == self.tensor(number).kind
            return self.stored(of, first=first) if alike else self.value(of, first=first)
        if (number, first) not in self._held:
            tensor = self.tensor(number)
            if number in self._flat and (number, False) not in self._held:
                held = self.stored(self._flat[number])
                self._held[number, False] = self.shaped(held, tensor.shape, tensor.name)
                return self.stored(number, first=first)
            if tensor.data is not None:
                data = tensor.data.transpose(channels_first(rank)) if first else tensor.data
                self._held[number, first] = self.literal(data, tensor.name)
            elif (number, not first) in self._held:
                self._held[number, first] = self._turned(number, first)
            elif tensor.variable:
                self.fed[f"tensor {number}"] = self.feed(number), number
                self.variables[f"tensor {number}"] = number
                return self.stored(number, first=first)
            else:
                raise InputError(f"{self.file.where}: tensor {tensor.name!r} is read before it is made")
        return self._held[number, first]

    def _turned(self, number: int, first: bool) -> str:
        shape, rank = self.shape(number), len(self.shape(number))
        name, held = self.tensor(number).name, self._held[number, not first]
        order = channels_first(rank) if first else channels_last(rank)
        if prod(shape[1:-1]) == 1 or shape[-1] == 1:
            made = tuple(shape[k] for k in channels_first(rank)) if first else shape
            return self.node("Reshape", held, self.literal(made), name=f"{name}/reshape")
        return self.node("Transpose", held, name=f"{name}/transpose", perm=order)

    def value(self, number: int, *, first: bool = False) -> str:
        """The ONNX tensor with the real numbers that a tensor stands for, or with its elements if it has no scale."""
        number = self.source(number)
        first = first and len(self.shape(number)) >= _ORDERED
        key, tensor = (number, first), self.tensor(number)
        if key not in self._real:
            held = self.stored(number, first=first)
            if tensor.quantised:
                self._real[key] = self.dequantised(held, tensor, self._axis(tensor, first))
            elif tensor.kind == "float16":
                self._real[key] = self.node("Cast", held, name=f"{tensor.name}/cast", to=onnx.TensorProto.FLOAT)
            else:
                self._real[key] = held
        return self._real[key]

    def _axis(self, tensor: Tensor, first: bool) -> int:
        return channels_first(len(tensor.shape)).index(tensor.axis) if first else tensor.axis

    def operand(self, number: int, rank: int, *, first: bool) -> str:
        """`value` of a tensor that is broadcast to so many axes."""
        mine = self.shape(number)
        if not first or len(mine) == rank or prod(mine) == 1:
            return self.value(number, first=first)
        shape, tensor = (1,) * (rank - len(mine)) + mine, self.tensor(self.source(number))
        if tensor.data is None or tensor.scale.size > 1 or tensor.kind == "float16":
            whole = self.shaped(self.value(number), shape, tensor.name)
            return self.node("Transpose", whole, name=f"{tensor.name}/transpose", perm=channels_first(rank))
        held = self.literal(tensor.data.reshape(shape).transpose(channels_first(rank)), tensor.name)
        return self.dequantised(held, tensor, 0) if tensor.quantised else held

    def put(self, number: int, name: str, *, first: bool = False) -> None:
        """Say which ONNX tensor has the real numbers of a tensor; integers are made of them if it has a scale."""
        tensor = self.tensor(number)
        first = first and len(tensor.shape) >= _ORDERED
        self._overwritten(number)
        if tensor.quantised:
            name = self.quantised(name, tensor, self._axis(tensor, first))
        else:
            name = self._named(name, tensor)
        self._held[number, first] = name

    def put_stored(self, number: int, name: str, *, first: bool = False) -> None:
        """Say which ONNX tensor has the elements of a tensor."""
        self._overwritten(number)
        name = self._named(name, self.tensor(number))
        self._held[number, first and len(self.shape(number)) >= _ORDERED] = name

    def _overwritten(self, number: int) -> None:
        """Forget what a tensor was: another operator makes it again."""
        for key in ((number, False), (number, True)):
            self._held.pop(key, None)
            self._real.pop(key, None)
        self._flat.pop(number, None)

    def _named(self, name: str, tensor: Tensor) -> str:
        """Name what the last node makes as the file does, if nobody has read it yet."""
        read = name in self._held.values() or name in self._real.values()
        if read or not self.nodes or list(self.nodes[-1].output) != [name]:
            return name
        name = self.nodes[-1].output[0] = self.claim(tensor.name)
        return name

    def flatten(self, number: int, of: int) -> None:
        """Say that a tensor is another one that is held channels first, in the order of the file with two axes."""
        self._flat[number] = of

    def flat(self, number: int) -> tuple[str, tuple[int, ...]] | None:
        """The real numbers of such a tensor with two axes, channels first, and its sizes but the batch in the file.

        Or of one of more axes that is held so itself.
        """
        if (of := self._flat.get(number)) is None:
            if not self.is_first((number,), len(self.shape(number))):
                return None
            of = number
        sizes = self.shape(of)
        held = self.shaped(self.stored(of, first=True), (sizes[0], prod(sizes[1:])), self.tensor(number).name)
        return self.meant(held, number), sizes[1:]

    def meant(self, held: str, number: int) -> str:
        """The real numbers of elements that a tensor has, moved."""
        tensor = self.tensor(number)
        if tensor.scale.size > 1:
            raise Untranslatable("what it moves has several scales")
        return self.dequantised(held, tensor, 0) if tensor.quantised else held

    def same(self, number: int, as_: int) -> None:
        """Say that a tensor is the meaning of a constant."""
        self._alias[number] = self.source(as_)

    def forget(self, nodes: int, constants: int) -> None:
        """Take back what was made from a node and a constant on."""
        gone = {name for node in self.nodes[nodes:] for name in node.output}
        gone |= {one.name for one in self.constants[constants:]}
        del self.nodes[nodes:], self.constants[constants:]
        self._held = {key: name for key, name in self._held.items() if name not in gone}
        self._real = {key: name for key, name in self._real.items() if name not in gone}
        self._weights = {key: name for key, name in self._weights.items() if name not in gone}
        self.stays = {key: name for key, name in self.stays.items() if name not in gone}

    def once(self, key: Hashable, make: Callable[[], str]) -> str:
        """What is made of a constant, the same for all that read it so: layers share weights."""
        if key not in self._weights:
            self._weights[key] = make()
        return self._weights[key]

    # ---- nodes -------------------------------------------------------------------------------------------------------

    def unique(self, wanted: str) -> str:
        """A name for a tensor that no other one has."""
        name, k = wanted or "tensor", 1
        while name in self._names:
            name, k = f"{wanted or 'tensor'}_{k}", k + 1
        self._names.add(name)
        return name

    def claim(self, wanted: str) -> str:
        """The name of a tensor of the file, for the first that asks for it."""
        if not wanted or wanted in self._claimed:
            return self.unique(wanted)
        self._claimed.add(wanted)
        return wanted

    def literal(self, value: np.ndarray | Sequence[int], name: str = "const") -> str:
        """A constant; whole numbers that are no array are of 64 bits."""
        made = value if isinstance(value, np.ndarray) else np.array(value, np.int64)
        name = self.unique(name)
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(made).reshape(made.shape), name))
        return name

    def node(self, op: str, *inputs: str, name: str, domain: str = "", **attributes: Any) -> str:
        """Add a node with one result; return that."""
        return self.several(op, inputs, 1, name=name, domain=domain, **attributes)[0]

    def several(
        self, op: str, inputs: Sequence[str], outputs: int, *, name: str, domain: str = "", **attributes: Any
    ) -> list[str]:  # fmt: skip
        """Add a node with several results; return these."""
        made = [self.unique(name) for _ in range(outputs)]
        label, k = name, 1
        while label in self._labels:
            label, k = f"{name}_{k}", k + 1
        self._labels.add(label)
        kept = {key: value for key, value in attributes.items() if value is not None}
        made_node: Any = helper.make_node
        self.nodes.append(made_node(op, list(inputs), made, label, domain=domain, **kept))
        return made

    def shaped(self, held: str, shape: Sequence[int], name: str) -> str:
        """Add a Reshape."""
        return self.node("Reshape", held, self.literal(shape), name=f"{name}/reshape")

    def dequantised(self, held: str, tensor: Tensor, axis: int) -> str:
        """The real numbers of integers in the order in which they are held."""
        wide = tensor.kind in ("int32", "int64")  # sums and biases, around 0
        one = tensor.scale.size == 1
        if wide and tensor.zero.any():
            shape = () if one else [-1 if k == axis else 1 for k in range(len(tensor.shape))]
            less = self.literal(tensor.zero.astype(tensor.kind).reshape(shape))
            held = self.node("Sub", held, less, name=f"{tensor.name}/centred")
        scale = self.literal(tensor.scale.reshape(()) if one else tensor.scale, f"{tensor.name}/scale")
        zero = [] if wide else [self._zero(tensor)]
        return self.node(
            "DequantizeLinear", held, scale, *zero, name=f"{tensor.name}/real", axis=None if one else axis
        )  # fmt: skip

    def quantised(self, real: str, tensor: Tensor, axis: int) -> str:
        """The integers of real numbers, by the name of the tensor that has them."""
        self.rounded(real, tensor, tensor.name, axis)
        self.nodes[-1].output[0] = made = self.claim(tensor.name)
        return made

    def rounded(self, real: str, tensor: Tensor, name: str, axis: int = 0) -> str:
        """The integers of real numbers with the scales of a tensor."""
        one = tensor.scale.size == 1
        if tensor.kind not in ("int8", "uint8", "int16"):
            raise Untranslatable(f"its result is of {tensor.kind} with a scale")
        scale = self.literal(tensor.scale.reshape(()) if one else tensor.scale, f"{tensor.name}/scale")
        return self.node("QuantizeLinear", real, scale, self._zero(tensor), name=name, axis=None if one else axis)

    def _zero(self, tensor: Tensor) -> str:
        zero = tensor.zero.astype(tensor.kind)
        return self.literal(zero.reshape(()) if zero.size == 1 else zero, f"{tensor.name}/zero")

    # ---- ends --------------------------------------------------------------------------------------------------------

    def feed(self, number: int, name: str = "") -> str:
        """Declare a tensor that comes from outside; return its name."""
        tensor, rank = self.tensor(number), len(self.shape(number))
        first = rank >= _MAPS
        name = self.claim(name or tensor.name or f"input{number}")
        shape = tuple(tensor.shape[k] for k in channels_first(rank)) if first else tensor.shape
        self.inputs.append(helper.make_tensor_value_info(name, element_of(tensor), shape))
        self._held[number, first] = name
        if first:
            self.turned.add(name)
        return name

    def give(self, number: int, *, first: bool | None = None) -> str:
        """Declare a tensor as a result; return its name. Maps of four axes and more as they are held."""
        tensor, rank = self.tensor(number), len(self.shape(number))
        if first is None:
            first = rank >= _MAPS and (self.source(number), True) in self._held
        name = self.stored(number, first=first)
        taken = {info.name for info in (*self.inputs, *self.outputs)} | {one.name for one in self.constants}
        if name in taken:
            name = self.node("Identity", name, name=tensor.name or "result")
        return self.result(name, number, first=first)

    def result(self, name: str, number: int, *, first: bool = False) -> str:
        """Declare an ONNX tensor as a result that is like a tensor."""
        tensor, rank = self.tensor(number), len(self.shape(number))
        shape = self.ordered(number, tensor.shape) if first else tensor.shape
        self.outputs.append(helper.make_tensor_value_info(name, element_of(tensor), shape))
        if first and rank >= _ORDERED:
            self.turned.add(name)
        return name

    def ordered(self, number: int, some: Sequence[int] | None = None) -> tuple[int, ...]:
        """The axes of a tensor channels first, or what is given for each axis in that order."""
        order = channels_first(len(self.shape(number)))
        return order if some is None else tuple(some[k] for k in order)

    def opaque(self, operator: Operator, reason: str) -> None:
        """Keep an operator that has no counterpart."""
        read = [self.stored(k) for k in operator.inputs if k >= 0 and self._has_numbers(k)]
        name = operator.name if not reason else f"{operator.name} ({reason})"
        made = self.several(name, read, max(1, len(operator.outputs)), name=self.label(operator), domain=OPAQUE)
        for number, tensor in zip(operator.outputs, made, strict=False):
            if self._has_numbers(number):
                found = self.tensor(number)
                self.declared.append(helper.make_tensor_value_info(tensor, element_of(found), found.shape))
                self._held[number, False] = tensor

    def _has_numbers(self, number: int) -> bool:
        return self.tensor(number).kind not in ("resource", "variant", "string")


def element_of(tensor: Tensor) -> int:
    """The element type of a tensor as ONNX numbers it; raises InputError for none."""
    try:
        return int(helper.np_dtype_to_tensor_dtype(np.dtype(tensor.kind)))
    except (TypeError, KeyError):
        raise InputError(f"tensor {tensor.name!r} holds {tensor.kind}: numbers are read") from None
