"""The arrays of a network off the chip, and what the host copies between layers.

Every layer reads arrays in its own layout and writes one. Where a tensor already lies as its reader wants it, that
array is read; else the host copies it. What is joined along channels is written in place where channels are outermost
(CHW, one image). Operators of one input that change single elements, and what is not planned, are left as they are:
without a model a network is run on integers, its element-wise functions are the identity, poolings and element-wise
layers add.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

import numpy as np

from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Concat, Eltwise, Input, MatMul, Opaque, Operator, Reshape, Shape
from instances.network.stores import Stores, inputs_of, stores
from instances.network.workload import Layer
from solver.uses.emit.text import identifier
from solver.uses.emit.values import Axis, Value, axes_of, contiguous, in_blocks, in_layer, pitches, shared_right


@dataclass(frozen=True)
class Copy:
    """The host copies a tensor."""

    to: Value
    source: Value
    why: str


@dataclass(frozen=True)
class Host:
    """The host computes what no plan has."""

    lines: tuple[str, ...]
    why: str
    rows: bool
    """Whether it is a function of certile_rows.h."""


@dataclass(frozen=True)
class Run:
    """A layer runs; arrays by name, with the first element of each."""

    layer: Layer
    inputs: tuple[Value, ...]
    weights: Value | None
    result: Value
    bias: str = ""
    """The array of its biases."""


def host_between(steps: Sequence[Copy | Host | Run]) -> str:
    """Say what the host computes between the first layer and the last one; nothing if it computes nothing there."""
    runs = [k for k, step in enumerate(steps) if isinstance(step, Run)]
    hosts = (step for step in steps[runs[0] : runs[-1]] if isinstance(step, Host)) if runs else ()
    return next((f"the host computes between layers ({step.why})" for step in hosts), "")


@dataclass
class Arranged:
    """Arrays (name -> elements, bytes of one), which of them are data, and what happens in turn."""

    arrays: dict[str, tuple[int, int]] = field(default_factory=dict)
    data: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    """`inputs`, `results`: of a model."""
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    """Of a model, those of `data` that are read as maps."""
    biases: dict[str, int] = field(default_factory=dict)
    """Arrays of biases, with their bytes."""
    steps_of: dict[str, float] = field(default_factory=dict)
    """Results that integers stand for -> their scale."""
    states: list[tuple[str, str]] = field(default_factory=list)
    """Of a model, inputs that a call begins with, and the results of the call before that they are."""
    begins: dict[str, bytes] = field(default_factory=dict)
    """Such inputs -> what the first call begins with, if that is not zeros."""
    steps: list[Copy | Host | Run] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    """By operator."""

    def place(self, value: Value) -> str:
        """Where a tensor begins, as C."""
        size = self.arrays[value.array][1]
        return value.array if value.offset == 0 else f"{value.array} + {value.offset * size}"


class Arranger:
    """Lays a network out, without a model."""

    def __init__(self, network: Network, machine: Machine, homes_of_weights: Sequence[str] = ()) -> None:
        self.network, self.machine, self.made = network, machine, Arranged()
        self.homes_of_weights = homes_of_weights
        #: Of constants the arrays: layers whose tensor is the same, in the same order and memory, have one.
        self.shared: dict[Hashable, str] = {}
        self.homes = self._joined()
        self.copies: dict[tuple[Value, tuple[int, ...]], Value] = {}

    def run(self) -> Arranged:
        """Go through the operators."""
        for number, operator in enumerate(self.network.operators):
            layer = operator.layer(self.network.input_shapes(operator))
            if layer is not None:
                self._layer(number, operator, layer)
            else:
                self.made.values[operator.name] = self._value(number, operator)
        return self.made

    @cached_property
    def planned(self) -> Stores:
        """The layers, and which of them have one tensor of weights."""
        return stores(self.network)

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of every layer."""
        return {layer.name: t for t, layer in enumerate(self.planned.layers)}

    def array(self, name: str, elements: int, element: int | None = None) -> str:
        """A new array."""
        self.made.arrays[name] = elements, element or self.machine.in_bytes
        return name

    def new(self, name: str, shape: Shape, element: int | None = None) -> Value:
        """A new array for a tensor whose last axis is innermost."""
        return contiguous(self.array(name, prod(shape), element), shape)

    def element(self, operator: Operator) -> int:
        """The bytes in which an operator's elements lie in memory."""
        return self.machine.in_bytes

    # ---- operators without a layer ---------------------------------------------------------------------------------

    def _value(self, number: int, operator: Operator) -> Value:
        name = f"map_{number:03}_{identifier(operator.name)}"
        if isinstance(operator, Input | Opaque):
            self.made.data.append(name)
            return self._fresh(name, operator)
        if isinstance(operator, Concat):
            return self._concat(name, operator)
        source = self.made.values[operator.inputs[0]]
        if isinstance(operator, Reshape) and operator.fn in ("slice", "pad") and source.shape != operator.shape:
            return self._resized(name, operator, source)
        return source if source.shape == operator.shape else self._reshaped(name, operator, source)

    def _fresh(self, name: str, operator: Operator) -> Value:
        """A new array for a tensor: a map in the machine's layout, others with the last axis innermost."""
        made = self.new(name, operator.shape, self.element(operator))
        if len(made.shape) == 4 and self.machine.in_layout == "HWC":
            _, c, h, w = made.shape
            return replace(made, pitch=(c * h * w, 1, w * c, c))
        return made

    def _reshaped(self, name: str, operator: Operator, source: Value) -> Value:
        if seen := source.reshaped(operator.shape):
            return seen
        self._flat(name, source, operator.name)
        return contiguous(name, operator.shape)

    def _flat(self, name: str, value: Value, why: str) -> Value:
        """A copy whose elements lie one after the other."""
        made = self.new(name, value.shape, self.made.arrays[value.array][1])
        self._copy(made, value, f"{why}: elements one after the other")
        return made

    def _resized(self, name: str, operator: Reshape, source: Value) -> Value:
        """What is sliced or padded where: without a model, the first elements of every axis."""
        if len(source.shape) != len(operator.shape):
            smaller = min(prod(source.shape), prod(operator.shape))
            made = self.new(name, operator.shape)
            flat = self._reshaped(f"{name}_flat", operator.model_copy(update={"shape": (prod(source.shape),)}), source)
            self._copy(contiguous(name, (smaller,)), replace(flat, shape=(smaller,)), operator.name)
            return made
        both = tuple(map(min, source.shape, operator.shape))
        if both == operator.shape:
            return replace(source, shape=both)
        made = self._fresh(name, operator)
        self._copy(replace(made, shape=both), replace(source, shape=both), f"{operator.name}: padded with zeros")
        return made

    def _concat(self, name: str, operator: Concat) -> Value:
        whole = self.homes.get(operator.name) or self._fresh(name, operator)
        values = [self.made.values[source] for source in operator.inputs]
        parts = whole.joined(operator.axis, [value.shape for value in values])
        for source, value, part in zip(operator.inputs, values, parts, strict=True):
            if not value.same_places(part):
                self._copy(part, value, f"{operator.name}: {source} beside the others")
        return whole

    def _joined(self) -> dict[str, Value]:
        """Results that are written where they are joined: each in its part of an array of the last concatenation."""
        homes: dict[str, Value] = {}
        if self.machine.in_layout != "CHW" or self.machine.out_layout != "CHW":
            return homes
        for number, operator in reversed(list(enumerate(self.network.operators))):
            if not (isinstance(operator, Concat) and operator.axis == 1 and len(operator.shape) == 4):
                continue
            if operator.shape[0] > 1:
                continue
            if operator.name not in homes:
                homes[operator.name] = self._fresh(f"map_{number:03}_{identifier(operator.name)}", operator)
            parts = homes[operator.name].joined(1, self.network.input_shapes(operator))
            for name, part in zip(operator.inputs, parts, strict=True):
                homes.setdefault(self._maker(name), part)
        return homes

    def _maker(self, name: str) -> str:
        """The operator whose result it is: before those of one input that leave elements where they are."""
        operator = self.network.operator(name)
        while len(operator.inputs) == 1 and self._same(operator):
            operator = self.network.operator(operator.inputs[0])
        return operator.name

    def _same(self, operator: Operator) -> bool:
        """Whether an operator of one input leaves its elements where they are."""
        if self.network.operator(operator.inputs[0]).shape != operator.shape:
            return False
        return isinstance(operator, Eltwise) or (isinstance(operator, Reshape) and operator.fn == "identity")

    # ---- layers ----------------------------------------------------------------------------------------------------

    def _layer(self, number: int, operator: Operator, layer: Layer) -> None:
        name = f"{number:03}_{identifier(operator.name)}"
        right = self.network.operator(operator.inputs[1]).shape if len(operator.inputs) > 1 else ()
        shared = shared_right(operator, right)
        inputs = []
        for k, source in enumerate(inputs_of(self.network, operator, layer)):
            value = self._operand(k, source, operator, layer)
            if isinstance(operator, MatMul) and len(operator.inputs) > 1 and not shared:
                value = value.broadcast((*operator.shape[:-2], *value.shape[-2:]))
            if isinstance(operator, Eltwise):
                value = value.broadcast((1,) * (len(operator.shape) - len(value.shape)) + value.shape)
            inputs.append(self._read(f"in_{name}_{k}", value, operator, layer, "IN", shared, layer.patterns[k]))
        weights = None
        if layer.weights == "activation":
            value = self.made.values[operator.inputs[1]]
            value = value if shared else value.broadcast((*operator.shape[:-2], *value.shape[-2:]))
            weights = self._read(f"w_{name}", value, operator, layer, "W", shared)
        elif layer.weights == "constant":
            weights = self._constant_weights(f"w_{name}", operator, layer)
        result = self._write(f"map_{name}", operator, layer, shared)
        self.made.values[operator.name] = result
        bias = self._bias(operator, layer) if layer.bias else ""
        self.made.steps.append(Run(layer, tuple(inputs), weights, result, bias))
        if layer.kind == "resample":
            self.made.values[operator.name] = self._unblocked(f"map_{name}_rows", operator, result)

    def _constant_weights(self, name: str, operator: Operator, layer: Layer) -> Value:
        """The array of a layer's constants, which it may have in common with others."""
        array = self.shared.setdefault(self._alike(operator, layer, biases=False), name)
        if array not in self.made.arrays:
            self.made.data.append(self.array(array, layer.weight_elements, self.machine.w_bytes))
        return Value(array, (layer.weight_elements,), (1,))

    def _bias(self, operator: Operator, layer: Layer) -> str:
        """The same of its biases."""
        name = f"layer_{self.number[layer.name]:03}_{identifier(layer.name)}_bias"
        array = self.shared.setdefault(self._alike(operator, layer, biases=True), name)
        if array not in self.made.biases:
            self.made.biases[array] = layer.g * layer.m * (self.machine.bias_bytes or 4)
        return array

    def _alike(self, operator: Operator, layer: Layer, *, biases: bool) -> Hashable:
        """What layers whose weights (or biases) are one array have in common: the tensor, its numbers, its memory."""
        t, of = self.number[layer.name], self.planned.biases_of if biases else self.planned.weights_of
        home = self.homes_of_weights[t] if self.homes_of_weights else ""
        numbers = self._numbers(operator, layer, biases=biases) if of.count(of[t]) > 1 else b""
        return biases, of[t], home, numbers, layer.g * layer.m if biases else layer.weight_elements

    def _numbers(self, operator: Operator, layer: Layer, *, biases: bool) -> bytes:
        """The constants of a layer, as they lie off the chip."""
        return b""

    def _unblocked(self, name: str, operator: Operator, result: Value) -> Value:
        """A map of another size, of which layers write blocks side by side as filters."""
        if seen := result.reshaped(operator.shape):
            return seen
        to = self.homes.get(operator.name) or self._fresh(name, operator)
        b, g, r, c = to.pitch
        blocks = Value(to.array, result.shape, (b, g, r * result.shape[3], r, c * result.shape[5], c), to.offset)
        self._copy(blocks, result, f"{operator.name}: blocks as pixels")
        return to

    def _operand(self, k: int, source: str, operator: Operator, layer: Layer) -> Value:
        """What a layer reads as its k-th input."""
        return self.made.values[source]

    def _seen(self, operator: Operator, operand: str, shape: Shape, layer: Layer, shared: bool) -> tuple[Axis, ...]:
        axes = axes_of(operator, operand, shape, layer)
        return tuple(("r",) if axis == ("g",) and shared else axis for axis in axes) if operand != "W" else axes

    def _read(
        self, name: str, value: Value, operator: Operator, layer: Layer, operand: str, shared: bool, lacks: str = ""
    ) -> Value:  # fmt: skip
        """A tensor in a layer's layout, copied if it lies otherwise; with one element along what it lacks."""
        axes = self._seen(operator, operand, value.shape, layer, shared)
        wanted = in_layer(name, value.shape, axes, pitches(operand, layer, self.machine, lacks))
        if wanted.pitch == value.pitch or wanted.same_places(Value(name, value.shape, value.pitch)):
            return value
        if (known := self.copies.get((value, wanted.pitch))) is None:
            self.array(name, prod(value.shape), self.machine.w_bytes if operand == "W" else None)
            self._copy(wanted, value, f"{operator.name} reads it in the layout of its machine")
            known = self.copies[value, wanted.pitch] = wanted
        return known

    def _write(self, name: str, operator: Operator, layer: Layer, shared: bool) -> Value:
        """Where a layer's result goes: the array in which it is joined with others, or one of its own."""
        if layer.kind == "resample":
            shape, parts = in_blocks(operator, layer)
            self.array(name, prod(shape))
            return in_layer(name, shape, parts, pitches("OUT", layer, self.machine))
        axes = self._seen(operator, "OUT", operator.shape, layer, shared)
        wanted = in_layer(name, operator.shape, axes, pitches("OUT", layer, self.machine))
        home = self.homes.get(operator.name)
        if home is not None and wanted.same_places(Value(name, home.shape, home.pitch)):
            return home
        self.array(name, prod(operator.shape))
        return wanted

    def _copy(self, to: Value, source: Value, why: str) -> None:
        self.made.steps.append(Copy(to, source, why))
