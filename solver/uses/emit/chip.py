"""Maps that stay on chip between layers: where their elements lie in the one range of addresses that they have.

A store whose first rows may stay has its rows one after the other, each with all its channels: in the order of the
machine's layout, so that what lies on chip of a row is contiguous, and rows that leave are the last ones. One that
stays whole or not at all lies like its tensor. All operators of a store see parts of one tensor, the last
concatenation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Concat, Eltwise, Operator, Resample, Reshape, Shape
from instances.network.stores import Store
from instances.network.workload import Layer
from solver.uses.emit.frame import Kept
from solver.uses.emit.kinds import require
from solver.uses.emit.meaning import Meaning
from solver.uses.emit.moves import moved
from solver.uses.emit.values import Axis, Value, axes_of, contiguous, in_blocks


class ChipMap:
    """A store on chip, and how its operators (`members`) lie in it: maybe with an axis cut into several."""

    def __init__(
        self, network: Network, store: Store, members: Sequence[str], machine: Machine, meaning: Meaning | None
    ) -> None:  # fmt: skip
        self.network, self.store, self.meaning = network, store, meaning
        self.members = [network.operator(name) for name in members]
        root = self._root()
        self.elements = prod(root.shape)
        self.values = {root.name: _tensor(root, store, machine)}
        self._spread()

    def kept(self, operator: Operator, operand: str, name: str, layer: Layer, address: int, rows: int) -> Kept:
        """Where a layer's input (or result) called `name`, of this shape, lies; `rows` of the layer's tensor are there.

        Raises InputError if its elements are no regular pitch apart, or results are joined twice and so are no parts of
        one tensor.
        """
        if self.elements != (there := self.store.rows * self.store.row_elements):
            said = f"a tensor of {self.elements:,} elements, results of {there:,}: joined several times"
            raise InputError(f"map {self.store.name} stays on chip; it is {said}: no C is written")
        gathered = operand == "IN" and isinstance(operator, Resample) and layer.kind == "eltwise"
        where = f"layer {layer.name}"
        said = f"map {self.store.name} stays on chip, where elements of {operator.name} read their neighbours"
        require(not gathered, where, said)
        value, shape = self.values.get(name), operator.shape if operand == "OUT" else self.network.operator(name).shape
        axes = axes_of(operator, operand, shape, layer)
        if operand == "OUT" and layer.kind == "resample":
            shape, axes = in_blocks(operator, layer)
            value = value and value.reshaped(shape)
        terms = None if value is None else _terms(value, shape, axes, layer, operand)
        if value is None or terms is None:
            said = f"map {self.store.name} stays on chip, where {operator.name} does not see it as regular rows"
            raise InputError(f"{where}: {said}: no C is written")
        columns = [pitch for text, pitch in terms if "{c}" in text]
        return Kept("ocm", address, rows, tuple(t for t in terms if "{c}" not in t[0]), sum(columns), value.offset)

    def same(self, one: str, other: str) -> bool:
        """Whether two names are of the same elements in the same places."""
        value = self.values.get(one)
        return one == other or (value is not None and value == self.values.get(other))

    def _root(self) -> Operator:
        """The last concatenation of the store, or the layer whose result it is."""
        inside, joined = {one.name for one in self.members}, set[str]()
        for operator in reversed(self.members):  # what is joined, and what it was before operators of one input
            passed = operator.name in joined and len(operator.inputs) == 1 and operator.inputs[0] in inside
            if isinstance(operator, Concat) or passed:
                joined.update(operator.inputs)
        joins = [one for one in self.members if isinstance(one, Concat) and one.name not in joined]
        return joins[-1] if joins else next(one for one in self.members if not inside.intersection(one.inputs))

    def _spread(self) -> None:
        """Find the other operators of the store from those that are known, until nothing new is found."""
        before = -1
        while len(self.values) > before:
            before = len(self.values)
            for operator in self.members:
                mine = self.values.get(operator.name)
                if isinstance(operator, Concat) and mine is not None:
                    parts = mine.joined(operator.axis, self.network.input_shapes(operator))
                    for name, part in zip(operator.inputs, parts, strict=True):
                        self.values.setdefault(name, part)
                elif isinstance(operator, Eltwise | Reshape) and len(operator.inputs) == 1:
                    self._through(operator)

    def _through(self, operator: Eltwise | Reshape) -> None:
        """An operator of one input: what it makes of what is known, or what it was made of."""
        source, name, values = operator.inputs[0], operator.name, self.values
        shape = self.network.operator(source).shape
        if (source in values) == (name in values):
            return
        if isinstance(operator, Eltwise):
            if self.meaning is None or name in self.meaning.passing.applied | self.meaning.passing.read:
                known = values.get(source) or values[name]
                values.update({source: known, name: known})
        elif source in values:
            if (seen := self._after(operator, values[source], shape)) is not None:
                values[name] = seen.reshaped(operator.shape) or seen
        elif (before := self._before(operator, values[name], shape)) is not None:
            values[source] = before

    def _after(self, operator: Reshape, value: Value, shape: Shape) -> Value | None:
        """What an operator makes of a tensor, where that lies; without a model a slice is the first elements."""
        if self.meaning is not None and value.shape == shape:
            found = moved(self.meaning.model, operator, value)
            return found if isinstance(found, Value) else None
        if operator.fn not in ("slice", "pad") or shape == operator.shape:
            return value
        if operator.fn == "pad" or self.meaning is not None:
            return None
        if len(shape) != len(operator.shape):
            flat = value.reshaped((prod(shape),))
            return flat and replace(flat, shape=(prod(operator.shape),))
        return replace(value, shape=operator.shape) if len(value.shape) == len(shape) else None

    def _before(self, operator: Reshape, value: Value, shape: Shape) -> Value | None:
        """What a result was made of, where that lies: of one with all elements, in their order or with axes turned."""
        whole = contiguous("", shape)
        seen = self._after(operator, whole, shape)
        if seen is None or prod(shape) != prod(operator.shape):
            return None
        given = seen.reshaped(operator.shape)
        if given and given.same_places(contiguous("", operator.shape)):
            return value.reshaped(shape)
        order = [next((k for k, pitch in enumerate(seen.pitch) if pitch == mine), -1) for mine in whole.pitch]
        turned = seen.shape == value.shape and sorted(order) == list(range(len(shape)))
        return value.permuted(order) if turned else None


def _tensor(root: Operator, store: Store, machine: Machine) -> Value:
    shape = root.shape
    if store.whole or len(shape) != 4:
        return contiguous("", shape)
    b, c, _, w = shape
    if machine.out_layout == "HWC":
        return Value("", shape, (w * c, 1, b * w * c, c))
    return Value("", shape, (c * w, w, b * c * w, 1))


def _terms(
    value: Value, shape: Sequence[int], axes: Sequence[Axis], layer: Layer, operand: str
) -> list[tuple[str, int]] | None:  # fmt: skip
    """The place of an element as a sum of terms of b, g, n (m of a result), r and c with their pitches.

    None if an axis of the layer's tensor is no product of axes of the value, or columns lie irregularly.
    """
    terms: list[tuple[str, int]] = []
    left = list(zip(value.shape, value.pitch, strict=True))
    number = {"IN": layer.n, "OUT": layer.m}[operand]
    inner = dict.fromkeys("bgnmrc", 1)  # of axes that share a dimension, elements further in
    for size, dims in zip(reversed(shape), reversed(axes), strict=True):
        last = f"{{{dims[-1]}}}"
        text = last if len(dims) == 1 else f"({{g}} * {number} + {last})"
        rest = size
        while rest > 1:
            if not left or rest % left[-1][0]:
                return None
            part, pitch = left.pop()
            if part == 1:
                continue
            divisor = inner[dims[-1]] * (size // rest)
            whole = part == size and inner[dims[-1]] == 1 and sum(d == dims for d in axes) == 1
            term = text if whole else f"{text} / {divisor} % {part}"
            if "{c}" in term and not whole:
                return None
            terms.append((term, pitch))
            rest //= part
        inner[dims[-1]] *= size
    return terms if all(part == 1 for part, _ in left) else None
