"""The arrays of a network off the chip, and what the host copies between layers.

Every layer reads arrays in its own layout and writes one. Where a tensor already lies as its reader wants it, that
array is read; else the host copies it. What is joined along channels is written in place where channels are outermost
(CHW, one image). Operators of one input that change single elements, and what is not planned, are left as they are:
without a model a network is run on integers, its element-wise functions are the identity, poolings and element-wise
layers add.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np

from instances.errors import InputError
from instances.machine import Machine
from instances.network import Network
from instances.operators import Concat, Eltwise, Input, MatMul, Opaque, Operator, Reshape, Shape
from instances.stores import inputs_of
from instances.workload import Layer
from solver.emit.host import element_by_element, of_rows, stage_of
from solver.emit.kinds import BYTES, FLOATS, KINDS, dtype
from solver.emit.meaning import Meaning
from solver.emit.moves import moved
from solver.emit.pointwise import Stage, require
from solver.emit.text import identifier
from solver.emit.values import Axis, Value, axes_of, in_layer, pitches, rows_of, shared_right


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
    steps_of: dict[str, float] = field(default_factory=dict)
    """Results that integers stand for -> their scale."""
    steps: list[Copy | Host | Run] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    """By operator."""


def arranged(network: Network, machine: Machine, meaning: Meaning | None = None) -> Arranged:
    """Lay the tensors of a network out; with a model's meaning also what operators between layers do.

    Raises
    ------
    InputError
        If results cannot be read again: they have other bytes than inputs.
    """
    if machine.in_bytes != machine.out_bytes:
        said = f"in_bytes is {machine.in_bytes}, out_bytes {machine.out_bytes}"
        raise InputError(f"machine {machine.name}: {said}: layers read what others wrote")
    return (_Arranger(network, machine) if meaning is None else _ModelArranger(meaning, machine)).run()


class _Arranger:
    def __init__(self, network: Network, machine: Machine) -> None:
        self.network, self.machine, self.made = network, machine, Arranged()
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

    def array(self, name: str, elements: int, element: int | None = None) -> str:
        """A new array."""
        self.made.arrays[name] = elements, element or self.machine.in_bytes
        return name

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
        shape = operator.shape
        pitch = rows_of(shape)
        if len(shape) == 4 and self.machine.in_layout == "HWC":
            _, c, h, w = shape
            pitch = (c * h * w, 1, w * c, c)
        return Value(self.array(name, prod(shape), self.element(operator)), shape, pitch)

    def _reshaped(self, name: str, operator: Operator, source: Value) -> Value:
        if seen := source.reshaped(operator.shape):
            return seen
        flat = Value(self.array(name, prod(source.shape)), source.shape, rows_of(source.shape))
        self._copy(flat, source, f"{operator.name}: elements one after the other")
        return Value(name, operator.shape, rows_of(operator.shape))

    def _resized(self, name: str, operator: Reshape, source: Value) -> Value:
        """What is sliced or padded where: without a model, the first elements of every axis."""
        if len(source.shape) != len(operator.shape):
            smaller = min(prod(source.shape), prod(operator.shape))
            made = Value(self.array(name, prod(operator.shape)), operator.shape, rows_of(operator.shape))
            flat = self._reshaped(f"{name}_flat", operator.model_copy(update={"shape": (prod(source.shape),)}), source)
            self._copy(Value(name, (smaller,), (1,)), flat.part((0,), (1,), (smaller,)), operator.name)
            return made
        both = tuple(map(min, source.shape, operator.shape))
        zero, one = (0,) * len(both), (1,) * len(both)
        if both == operator.shape:
            return source.part(zero, one, both)
        made = self._fresh(name, operator)
        self._copy(made.part(zero, one, both), source.part(zero, one, both), f"{operator.name}: padded with zeros")
        return made

    def _concat(self, name: str, operator: Concat) -> Value:
        whole = self.homes.get(operator.name) or self._fresh(name, operator)
        begin = [0] * len(operator.shape)
        for source in operator.inputs:
            value = self.made.values[source]
            part = whole.part(begin, (1,) * len(begin), value.shape)
            if not value.same_places(part):
                self._copy(part, value, f"{operator.name}: {source} beside the others")
            begin[operator.axis] += value.shape[operator.axis]
        return whole

    def _joined(self) -> dict[str, Value]:
        """Results that are written where they are joined: each in its part of an array of the last concatenation."""
        homes: dict[str, Value] = {}
        if self.machine.in_layout != "CHW" or self.machine.out_layout != "CHW":
            return homes
        for number, operator in reversed(list(enumerate(self.network.operators))):
            if (
                not isinstance(operator, Concat)
                or operator.axis != 1
                or len(operator.shape) != 4
                or operator.shape[0] > 1
            ):
                continue
            if operator.name not in homes:
                homes[operator.name] = self._fresh(f"map_{number:03}_{identifier(operator.name)}", operator)
            whole, channel = homes[operator.name], 0
            for name in operator.inputs:
                source = self.network.operator(name)
                part = whole.part((0, channel, 0, 0), (1, 1, 1, 1), source.shape)
                channel += source.shape[1]
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
            value = self.made.values[source]
            if isinstance(operator, MatMul) and len(operator.inputs) > 1 and not shared:
                value = value.broadcast((*operator.shape[:-2], *value.shape[-2:]))
            if isinstance(operator, Eltwise):
                value = value.broadcast(operator.shape)
            inputs.append(self._read(f"in_{name}_{k}", value, operator, layer, "IN", shared))
        weights = None
        if layer.weights == "activation":
            value = self.made.values[operator.inputs[1]]
            value = value if shared else value.broadcast((*operator.shape[:-2], *value.shape[-2:]))
            weights = self._read(f"w_{name}", value, operator, layer, "W", shared)
        elif layer.weights == "constant":
            elements = layer.g * layer.m * layer.n * layer.kh * layer.kw
            weights = Value(self.array(f"w_{name}", elements, self.machine.w_bytes), (elements,), (1,))
            self.made.data.append(f"w_{name}")
        result = self._write(f"map_{name}", operator, layer, shared)
        self.made.values[operator.name] = result
        self.made.steps.append(Run(layer, tuple(inputs), weights, result))

    def _seen(self, operator: Operator, operand: str, shape: Shape, shared: bool) -> tuple[Axis, ...]:
        axes = axes_of(operator, operand, shape)
        return tuple(("r",) if axis == ("g",) and shared else axis for axis in axes) if operand != "W" else axes

    def _read(self, name: str, value: Value, operator: Operator, layer: Layer, operand: str, shared: bool) -> Value:
        """A tensor in a layer's layout, copied if it lies otherwise."""
        axes = self._seen(operator, operand, value.shape, shared)
        wanted = in_layer(name, value.shape, axes, pitches(operand, layer, self.machine))
        if wanted.pitch == value.pitch or wanted.same_places(Value(name, value.shape, value.pitch)):
            return value
        if (known := self.copies.get((value, wanted.pitch))) is None:
            self.array(name, prod(value.shape), self.machine.w_bytes if operand == "W" else None)
            self._copy(wanted, value, f"{operator.name} reads it in the layout of its machine")
            known = self.copies[value, wanted.pitch] = wanted
        return known

    def _write(self, name: str, operator: Operator, layer: Layer, shared: bool) -> Value:
        """Where a layer's result goes: the array in which it is joined with others, or one of its own."""
        axes = self._seen(operator, "OUT", operator.shape, shared)
        wanted = in_layer(name, operator.shape, axes, pitches("OUT", layer, self.machine))
        home = self.homes.get(operator.name)
        if home is not None and wanted.same_places(Value(name, home.shape, home.pitch)):
            return home
        self.array(name, prod(operator.shape))
        return wanted

    def _copy(self, to: Value, source: Value, why: str) -> None:
        self.made.steps.append(Copy(to, source, why))


class _ModelArranger(_Arranger):
    """The same for a model: operators do what its nodes say."""

    def __init__(self, meaning: Meaning, machine: Machine) -> None:
        self.meaning, self.model, self.passing = meaning, meaning.model, meaning.passing
        super().__init__(meaning.model.network, machine)
        meaning.values = self.made.values

    def run(self) -> Arranged:
        """Go through the operators, then lay the results out."""
        made = super().run()
        for k, tensor in enumerate(self.model.outputs):
            if (maker := self.model.makers.get(tensor)) is not None:
                value, kind = made.values[maker], KINDS[self.model.element(tensor)]
                name = self.array(f"output_{k}", prod(value.shape), BYTES[kind])
                self.made.results.append(name)
                self._bring(contiguous(name, value.shape), kind, value, self.passing.stored(maker), "a result")
                if step := self.passing.step(maker):
                    self.made.steps_of[name] = step
        return made

    def element(self, operator: Operator) -> int:
        """By what the machine holds it as, or the model."""
        return BYTES[self.passing.stored(operator.name)]

    def _value(self, number: int, operator: Operator) -> Value:
        name = f"map_{number:03}_{identifier(operator.name)}"
        if isinstance(operator, Input):
            return self._given(name, operator)
        if isinstance(operator, Opaque):
            said = operator.reason or "it is not planned"
            raise InputError(f"operator {operator.name} ({operator.kind}): {said}: no C is written")
        if isinstance(operator, Concat):
            kinds = {self.passing.stored(source) for source in operator.inputs}
            require(len(kinds) == 1, f"operator {operator.name}", f"it joins elements of {' and '.join(sorted(kinds))}")
            return self._concat(name, operator)
        source = self.made.values[operator.inputs[0]]
        if operator.name in self.passing.applied | self.passing.read:
            return source
        if isinstance(operator, Eltwise):
            return self._computed(name, operator, source)
        assert isinstance(operator, Reshape)
        if operator.fn == "pad" and self.model.node(operator.name).op == "Pad":
            return self._padded(name, operator, source)
        alike = {self.passing.kinds[one] in FLOATS for one in (operator.name, operator.inputs[0])}
        require(len(alike) == 1, f"operator {operator.name}", "integers become real numbers, or the other way round")
        return self._moved(name, operator, source)

    def _given(self, name: str, operator: Input) -> Value:
        """An input of the model, or constants that are read as one."""
        tensor = next(tensor for tensor, maker in self.model.makers.items() if maker == operator.name)
        kind, held = self.passing.kinds[operator.name], self.passing.stored(operator.name)
        if operator.name not in self.model.inputs.values():
            value = contiguous(self.array(name, prod(operator.shape), BYTES[held]), operator.shape)
            self.made.data.append(name)
            self.made.constants[name] = self.model.constant(tensor).astype(dtype(held))
            return value
        array = self.array(f"input_{len(self.made.inputs)}", prod(operator.shape), BYTES[kind])
        value = contiguous(array, operator.shape)
        self.made.inputs.append(value.array)
        return self._as(name, value, kind, held)

    def _as(self, name: str, value: Value, kind: str, wanted: str) -> Value:
        """A tensor in elements of another kind, one after the other; itself if it is of that kind."""
        if kind == wanted:
            return value
        made = contiguous(self.array(name, prod(value.shape), BYTES[wanted]), value.shape)
        self._bring(made, wanted, value, kind, "elements of another kind")
        return made

    def _bring(self, to: Value, wanted: str, source: Value, kind: str, why: str) -> None:
        """Copy, maybe into elements of another kind."""
        if kind == wanted:
            self._copy(to, source, why)
            return
        lines = element_by_element(to, source, Stage((), ()), self._address, (wanted, kind))
        self.made.steps.append(Host(tuple(lines), why, rows=False))

    def _address(self, value: Value) -> str:
        size = self.made.arrays[value.array][1]
        return value.array if value.offset == 0 else f"{value.array} + {value.offset * size}"

    def _moved(self, name: str, operator: Reshape, source: Value) -> Value:
        seen = moved(self.model, operator, source)
        if seen is None:
            flat = self._flat(f"{name}_in", source, operator.name)
            seen = moved(self.model, operator, flat)
            assert seen is not None
        made = seen if seen.shape == operator.shape else seen.reshaped(operator.shape)
        if made is not None:
            return made
        self._flat(name, seen, operator.name)
        return contiguous(name, operator.shape)

    def _flat(self, name: str, value: Value, why: str) -> Value:
        """A copy whose elements lie one after the other."""
        made = contiguous(self.array(name, prod(value.shape), self.made.arrays[value.array][1]), value.shape)
        self._copy(made, value, f"{why}: elements one after the other")
        return made

    def _padded(self, name: str, operator: Reshape, source: Value) -> Value:
        node = self.model.node(operator.name)
        pads = node.integers("pads") or tuple(int(x) for x in self.model.constant(node.input(1)).ravel())
        value = self.model.constant(node.input(2)).any() if node.input(2) else node.number("value", 0)
        plain = not value and node.text("mode", "constant") == "constant" and len(pads) == 2 * len(operator.shape)
        require(plain, f"operator {operator.name}", "padding that is not with zeros")
        if not self._read_by_anybody(operator):
            return contiguous(name, operator.shape)
        made = contiguous(self.array(name, prod(operator.shape), self.element(operator)), operator.shape)
        ones = (1,) * len(operator.shape)
        self._copy(made.part(pads[: len(operator.shape)], ones, source.shape), source, f"{operator.name}: padded")
        return made

    def _read_by_anybody(self, operator: Operator) -> bool:
        return operator.name in self.passing.results or bool(self.passing.readers[operator.name])

    def _computed(self, name: str, operator: Eltwise, source: Value) -> Value:
        """A function that no layer applies."""
        made = stage_of(self.model, operator, "t")
        kind, wanted = (self.passing.stored(one) for one in (operator.inputs[0], operator.name))
        if made is not None:
            to = self.homes.get(operator.name) or self._fresh(name, operator)
            lines = element_by_element(to, source, made, self._address, (wanted, kind))
            self.made.steps.append(Host(tuple(lines), f"{operator.name}: no part of the plan", rows=False))
            return to
        flat = self._as(f"{name}_real", source, kind, "f32")
        if not flat.same_places(contiguous(flat.array, flat.shape)):
            flat = self._flat(f"{name}_in", flat, operator.name)
        rows = f"{name}_rows" if wanted != "f32" else name
        to = contiguous(self.array(rows, prod(operator.shape), BYTES["f32"]), operator.shape)
        lines = of_rows(self.model, operator, self._address(to), self._address(flat))
        self.made.steps.append(Host(tuple(lines), f"{operator.name}: no part of the plan", rows=True))
        return self._as(name, to, "f32", wanted)

    def _same(self, operator: Operator) -> bool:
        if isinstance(operator, Eltwise):
            return operator.name in self.passing.applied | self.passing.read
        return super()._same(operator)


def contiguous(name: str, shape: Shape) -> Value:
    """A tensor of its own whose last axis is innermost."""
    return Value(name, shape, rows_of(shape))
