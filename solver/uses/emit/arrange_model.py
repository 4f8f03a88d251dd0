"""The arrays of a model off the chip, what the host copies and computes between layers, and elements of several kinds.

Layers read and write elements as the machine has them; inputs and results of a model, and real numbers that the host
computes with, are held as the model has them, and converted where they meet.

Functions that no plan has, the host computes in C: element by element behind what several read, and those of whole
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import GRID, Concat, Eltwise, Input, Opaque, Operator, Resample, Reshape, Shape
from instances.network.workload import Layer
from instances.onnx.graph import Node
from instances.onnx.model import OnnxModel
from solver.uses.emit.arithmetic import Arithmetic
from solver.uses.emit.arrange import Arranged, Arranger, Host
from solver.uses.emit.integers import softmax
from solver.uses.emit.kinds import BYTES, C_TYPES, FLOATS, dtype, require, rounded
from solver.uses.emit.meaning import Meaning
from solver.uses.emit.moves import Picked, moved, moves
from solver.uses.emit.passing import kind_of, statements
from solver.uses.emit.pointwise import Stage, stage
from solver.uses.emit.several import Gridded, is_gridded
from solver.uses.emit.states import paired
from solver.uses.emit.text import block, floats_of, identifier, literal, longs
from solver.uses.emit.values import Value, contiguous

#: Functions of whole rows.
OF_ROWS = (
    "GroupNormalization", "InstanceNormalization", "LRN", "LayerNormalization", "LogSoftmax", "LpNormalization",
    "RMSNormalization", "Softmax",
)  # fmt: skip


def of_rows(model: OnnxModel, operator: Eltwise, to: str, source: str) -> list[str]:
    """Return the call of a function of whole rows, on arrays whose elements lie one after the other.

    Raises InputError for a function that is not known.
    """
    node, shape = model.node(operator.name), operator.shape
    old, last = node.op.endswith("Softmax") and model.opset < 13, 1 if node.op == "LRN" else -1
    axis = node.integer("axis", 1 if old else last) % len(shape)
    # The axes that are taken together: one, or all from one on, of Softmax up to opset 12.
    end = len(shape) if old or node.op in ("LayerNormalization", "RMSNormalization") else axis + 1
    outer, size, inner = prod(shape[:axis]), prod(shape[axis:end]), prod(shape[end:])
    given = f"{to}, {source}, {outer}, {size}"
    if node.op in ("Softmax", "LogSoftmax"):
        return [f"certile_softmax({given}, {inner}, {int(node.op == 'LogSoftmax')});"]
    if node.op == "LRN":
        numbers = (node.number("alpha", 1e-4), node.number("beta", 0.75), node.number("bias", 1.0))
        return [f"certile_lrn({given}, {inner}, {node.integer('size', 1)}, {', '.join(map(literal, numbers))});"]
    if node.op == "LpNormalization":
        return [f"certile_lp({given}, {inner}, {node.integer('p', 2)});"]
    if node.op == "LayerNormalization":
        return _normalised(model, node, to, source, (outer, size), shape[axis:], (1, 1))
    if node.op == "RMSNormalization":
        table = floats_of("scale", np.broadcast_to(model.constant(node.input(1)), shape[axis:]))
        return block("", [table, f"certile_rms({given}, {literal(node.number('epsilon', 1e-5))}, scale);"])
    require(node.op in OF_ROWS, f"operator {operator.name} ({node.op})", "its function is not known")
    groups = node.integer("num_groups", 1) if node.op == "GroupNormalization" else shape[1]
    held = model.constant(node.input(1)).shape
    rows = (shape[0] * groups, prod(shape[1:]) // groups)
    return _normalised(model, node, to, source, rows, held, (groups, prod(shape[1:]) // held[0]))


def _normalised(
    model: OnnxModel, node: Node, to: str, source: str, rows: tuple[int, int], held: Shape, places: tuple[int, int]
) -> list[str]:  # fmt: skip
    """Rows (their number and size) with mean 0 and variance 1, scaled and shifted by numbers of the shape `held`.

    `places`: how many rows have numbers of their own, and how many elements beside each other share one.
    """
    tables, names = [], []
    for k, name in ((1, "scale"), (2, "shift")):
        if node.input(k):
            tables.append(floats_of(name, np.broadcast_to(model.constant(node.input(k)), held)))
        names.append(name if node.input(k) else "NULL")
    given = ", ".join(map(str, (*rows, literal(node.number("epsilon", 1e-5)), *names, *places)))
    return block("", [*tables, f"certile_normalise({to}, {source}, {given});"])


def arranged(
    network: Network, machine: Machine, meaning: Meaning | None = None, homes_of_weights: Sequence[str] = ()
) -> Arranged:  # fmt: skip
    """Lay the tensors of a network out; with a model's meaning also what operators between layers do.

    `homes_of_weights`: by layer the memory off the chip that a plan names; none if it names no such. Raises InputError
    as `check_elements`.
    """
    check_elements(machine)
    if meaning is None:
        return Arranger(network, machine, homes_of_weights).run()
    return ModelArranger(meaning, machine, homes_of_weights).run()


def check_elements(machine: Machine) -> None:
    """Raise InputError if results cannot be read again: they have other bytes than inputs."""
    if machine.in_bytes != machine.out_bytes:
        said = f"in_bytes is {machine.in_bytes}, out_bytes {machine.out_bytes}"
        raise InputError(f"machine {machine.name}: {said}: layers read what others wrote")


class ModelArranger(Arranger):
    """The same for a model: operators do what its nodes say."""

    def __init__(self, meaning: Meaning, machine: Machine, homes_of_weights: Sequence[str] = ()) -> None:
        self.meaning, self.model, self.passing = meaning, meaning.model, meaning.passing
        self.completed: dict[str, Value] = {}
        self.gridded: dict[str, list[Value]] = {}
        super().__init__(meaning.model.network, machine, homes_of_weights)

    def run(self) -> Arranged:
        """Go through the operators, then lay the results out."""
        made = super().run()
        for k, tensor in enumerate(self.model.outputs):
            if (maker := self.model.results.get(tensor)) is not None:
                value, kind = made.values[maker], kind_of(self.model.element(tensor), maker)
                to = self._outer(f"output_{k}", tensor, value.shape, kind)
                self.made.results.append(to.array)
                self._bring(to, kind, value, self.passing.stored(maker), "a result")
                if step := self.passing.step(maker):
                    self.made.steps_of[to.array] = step
        for given, result in paired(self.model, self.meaning.states):
            state = f"input_{given}", f"output_{result}"
            number = (self.made.arrays[state[0]][0],)
            self._copy(contiguous(state[0], number), contiguous(state[1], number), "state for the next call")
            self.made.states.append(state)
            begin = self.model.file.begins.get(list(self.model.inputs)[given])
            if begin is not None and begin.any():
                self.made.begins[state[0]] = begin.tobytes()
        return made

    def element(self, operator: Operator) -> int:
        """By what the machine holds it as, or the model."""
        return BYTES[self.passing.stored(operator.name)]

    def _value(self, number: int, operator: Operator) -> Value:
        name = f"map_{number:03}_{identifier(operator.name)}"
        if isinstance(operator, Input):
            return self._given(name, operator)
        if isinstance(operator, Opaque):
            where = f"operator {operator.result_of or operator.name} ({operator.kind})"
            require(moves(operator), where, operator.reason or "it is not planned")
        if isinstance(operator, Concat):
            kinds = {self.passing.stored(source) for source in operator.inputs}
            require(len(kinds) == 1, f"operator {operator.name}", f"it joins elements of {' and '.join(sorted(kinds))}")
            return self._concat(name, operator)
        if operator.name in self.passing.applied | self.passing.read | self.passing.inside:
            return self.made.values[operator.inputs[0]]
        if operator.name in self.passing.whole:
            return self._in_whole_numbers(name, operator, self.passing.whole[operator.name])
        source = self._complete(operator.inputs[0])
        if isinstance(operator, Eltwise):
            return self._computed(name, operator, source)
        assert isinstance(operator, Reshape | Opaque)  # of an embedding the first that is read are ids
        alike = {self.passing.kinds[one] in FLOATS for one in (operator.name, operator.inputs[0])}
        fits = len(alike) == 1 or isinstance(operator, Opaque)
        require(fits, f"operator {operator.name}", "integers become real numbers, or the other way round")
        return self._moved(name, operator, source)

    def _operand(self, k: int, source: str, operator: Operator, layer: Layer) -> Value:
        """What a layer reads as its k-th input: of a map that is read element by element its k-th neighbours."""
        value = super()._operand(k, source, operator, layer)
        if not (isinstance(operator, Resample) and layer.kind == "eltwise"):
            return value
        if is_gridded(operator):
            return self._gridded(operator)[k]
        rows, columns = Arithmetic(self.passing, operator, layer).resized.gathered(k)
        picked = Picked((np.arange(value.shape[0]), np.arange(value.shape[1]), rows, columns))
        number = self.network.operators.index(operator)
        return self._picked(f"near_{number:03}_{k}", operator, value, picked)

    def _gridded(self, operator: Resample) -> list[Value]:
        """What a layer reads of a map where a grid says: two parts of every pixel, then the neighbours."""
        if operator.name in self.gridded:
            return self.gridded[operator.name]
        kinds = [self.passing.by_host(name) for name in operator.inputs]
        made = Gridded(operator, self.model.node(operator.name))
        made.check(kinds)
        source, grid = map(self._complete, operator.inputs)
        number, (batch, _, rows, columns) = self.network.operators.index(operator), operator.shape
        parts = [self.new(f"part_{number:03}_{k}", (batch, 1, rows, columns)) for k in range(GRID)]
        near = [self._fresh(f"near_{number:03}_{k}", operator) for k in range(operator.taps**2)]
        lines = made.found(near, parts, source, grid, self.made.place)
        self._host(lines, f"{operator.name}: neighbours where its grid says", rows=True)
        self.gridded[operator.name] = [*parts, *near]
        return self.gridded[operator.name]

    def _numbers(self, operator: Operator, layer: Layer, *, biases: bool) -> bytes:
        """Integers of one tensor may differ: those of biases stand for multiples of two scales."""
        made = self.meaning.trained(operator, layer)
        return (made.bias if biases else made.weights).tobytes()

    def _complete(self, name: str) -> Value:
        """A tensor with the functions that its readers apply else."""
        value, chain = self.made.values[name], self.passing.before(name)
        if not chain:
            return value
        if name not in self.completed:
            kinds = self.passing.kinds[name], self.passing.stored(name)
            to = self.new(f"complete_{len(self.completed):03}_{identifier(name)}", value.shape, BYTES[kinds[0]])
            place = [f"i{k}" for k in range(len(value.shape))]
            rule = self.meaning.elements.rule
            tables, changes = statements(self.model, chain, lambda _: place, "t", rule=rule)
            lines = self._each(to, value, Stage((), tuple(changes)), kinds)
            self._host(block("", [*tables, *lines]), f"{name}: layers apply it to what they read, the host to a result")
            self.completed[name] = to
        return self.completed[name]

    def _given(self, name: str, operator: Input) -> Value:
        """An input of the model, or constants that are read as one."""
        tensor = self.model.first[operator.name]
        kind, held = self.passing.kinds[operator.name], self.passing.stored(operator.name)
        if operator.name not in self.model.inputs.values():
            value = self.new(name, operator.shape, BYTES[held])
            self.made.data.append(name)
            values, grid = self.model.constant(tensor), self.passing.constants.get(operator.name)
            self.made.constants[name] = values.astype(dtype(held)) if grid is None else rounded(values, grid)
            return value
        value = self._outer(f"input_{len(self.made.inputs)}", tensor, operator.shape, kind)
        self.made.inputs.append(value.array)
        return self._as(name, value, kind, held)

    def _outer(self, name: str, tensor: str, shape: Shape, kind: str) -> Value:
        """A new array for an input or a result of the model, as its file lays it out."""
        file = self.model.file
        value = self.new(name, file.shape(tensor, shape), BYTES[kind])
        return value.permuted((0, len(shape) - 1, *range(1, len(shape) - 1))) if tensor in file.turned else value

    def _as(self, name: str, value: Value, kind: str, wanted: str) -> Value:
        """A tensor in elements of another kind, one after the other; itself if it is of that kind."""
        if kind == wanted:
            return value
        made = self.new(name, value.shape, BYTES[wanted])
        self._bring(made, wanted, value, kind, "elements of another kind")
        return made

    def _bring(self, to: Value, wanted: str, source: Value, kind: str, why: str) -> None:
        """Copy, maybe into elements of another kind."""
        if kind == wanted:
            self._copy(to, source, why)
        else:
            self._host(self._each(to, source, Stage((), ()), (wanted, kind)), why)

    def _host(self, lines: Sequence[str], why: str, *, rows: bool = False) -> None:
        self.made.steps.append(Host(tuple(lines), why, rows))

    def _each(self, to: Value, source: Value, made: Stage, kinds: tuple[str, str]) -> list[str]:
        """Loops that apply a stage to every element of a tensor; `kinds`: of the result, and of what is read."""
        names, (wanted, kind) = [f"i{k}" for k in range(len(to.shape))], kinds

        def at(value: Value, kind: str) -> str:
            axes = zip(names, value.pitch, to.shape, strict=True)
            terms = [f"{name} * {pitch}" for name, pitch, size in axes if size > 1]
            return f"{self.made.place(value)} + ({' + '.join(terms) or '0'}) * {BYTES[kind]}"

        cast = "" if wanted in FLOATS else f"({C_TYPES[wanted]})"
        body = [f"float x = certile_get_{kind}({at(source, kind)});", *made.statements,
                f"certile_put_{wanted}({at(to, wanted)}, {cast}x);"]  # fmt: skip
        for name, size in zip(reversed(names), reversed(to.shape), strict=True):
            body = block(f"for (long {name} = 0; {name} < {size}; {name}++)", body)
        return block("", [*made.lines(), *body])

    def _moved(self, name: str, operator: Operator, source: Value) -> Value:
        seen = moved(self.model, operator, source)
        if seen is None:
            flat = self._flat(f"{name}_in", source, operator.name)
            seen = moved(self.model, operator, flat)
            assert seen is not None
        if isinstance(seen, Picked):
            return self._picked(name, operator, source, seen)
        made = seen if seen.shape == operator.shape else seen.reshaped(operator.shape)
        if made is not None:
            return made
        self._flat(name, seen, operator.name)
        return contiguous(name, operator.shape)

    def _picked(self, name: str, operator: Operator, source: Value, picked: Picked) -> Value:
        """Elements that the host copies one by one, into an array as readers want it."""
        there = to = self._fresh(name, operator)
        if picked.shape != operator.shape:
            to, there = contiguous(name, operator.shape), contiguous(name, picked.shape)
        kind = self.passing.stored(operator.inputs[0])
        lead, lines, names = len(there.shape) - len(source.shape), list[str](), list[str]()
        for k, (axis, size) in enumerate(zip(picked.axes, (0,) * lead + source.shape, strict=True)):
            listed = k >= lead and not (len(axis) == size and (axis == np.arange(size)).all())
            lines += [f"static const long axis{k}[] = {{{', '.join(map(str, axis))}}};"] if listed else []
            names.append(f"axis{k}" if listed else "NULL")
        value, place = int(picked.fill) if kind not in FLOATS else literal(picked.fill), self.made.place
        pitches = longs(there.pitch), longs((0,) * lead + source.pitch)
        lines += [
            f"unsigned char fill[{BYTES[kind]}];",
            f"certile_put_{kind}(fill, {value});",
            f"certile_pick({place(there)}, {pitches[0]}, {place(source)}, {pitches[1]},",
            f"             {longs(there.shape)}, (const long *const[]){{{', '.join(names)}}}, {len(names)},",
            f"             {BYTES[kind]}, fill);",
        ]
        self._host(block("", lines), f"{operator.name}: elements one by one")
        return to

    def _computed(self, name: str, operator: Eltwise, source: Value) -> Value:
        """A function that no layer applies."""
        made = stage(self.model, operator, "t", [f"i{k}" for k in range(len(operator.shape))])
        kind, wanted = self.passing.by_host(operator.inputs[0]), self.passing.stored(operator.name)
        if made is not None:
            to = self.homes.get(operator.name) or self._fresh(name, operator)
            self._host(self._each(to, source, made, (wanted, kind)), f"{operator.name}: no part of the plan")
            return to
        flat = self._as(f"{name}_real", source, kind, "f32")
        if not flat.same_places(contiguous(flat.array, flat.shape)):
            flat = self._flat(f"{name}_in", flat, operator.name)
        to = self.new(f"{name}_rows" if wanted != "f32" else name, operator.shape, BYTES["f32"])
        lines = of_rows(self.model, operator, self.made.place(to), self.made.place(flat))
        self._host(lines, f"{operator.name}: no part of the plan", rows=True)
        return self._as(name, to, "f32", wanted)

    def _in_whole_numbers(self, name: str, operator: Operator, chain: Sequence[Operator]) -> Value:
        """What a chain of functions makes of integers without real numbers between."""
        first = chain[0].inputs[0]
        source, kind = self._complete(first), self.passing.by_host(first)
        wanted, why = self.passing.stored(operator.name), f"{chain[-2].name}: no part of the plan"
        if not softmax(self.model, chain, "", ""):
            made = self.passing.rescaled(chain, [f"i{k}" for k in range(len(operator.shape))])
            to = self.homes.get(operator.name) or self._fresh(name, operator)
            self._host(block("", [*made[0], *self._each(to, source, Stage((), tuple(made[1])), (wanted, kind))]), why)
            return to
        if not source.same_places(contiguous(source.array, source.shape)):
            source = self._flat(f"{name}_in", source, operator.name)
        to = self.new(name, operator.shape, BYTES[wanted])
        self._host(softmax(self.model, chain, self.made.place(to), self.made.place(source)), why, rows=True)
        return to

    def _same(self, operator: Operator) -> bool:
        if isinstance(operator, Eltwise):
            return operator.name in self.passing.applied | self.passing.read | self.passing.inside
        return super()._same(operator)
