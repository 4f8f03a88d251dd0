"""Which layer applies a function that stands between layers, and what tensors are held as.

Element-wise functions behind a layer belong to it as long as nobody else reads what lies between, up to the last one
whose result the machine's elements can hold: the layer applies them when a result is complete. Those that layers alone
read are applied by their readers, through a concatenation too if every reader can; the host applies them again for what
ends in results of the model. All others are the host's.

An example, quantised: of ``conv, quantise, dequantise, relu, quantise, dequantise, conv`` the first convolution applies
four functions, and its map holds integers; the second one applies the last function to what it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from instances.network.operators import Concat, Eltwise, Input, MatMul, Opaque, Operator, Reshape
from instances.network.stores import inputs_of
from instances.network.workload import Layer
from instances.onnx.model import OnnxModel
from solver.uses.emit.integers import rescaled, softmax
from solver.uses.emit.kinds import FLOATS, KINDS, NAMES, QUANTISERS, Elements, Grid, grid_of, require
from solver.uses.emit.moves import moves
from solver.uses.emit.pointwise import stage
from solver.uses.emit.several import is_gridded
from solver.uses.emit.text import identifier, indented


@dataclass(frozen=True)
class Chain:
    """The functions that a reader applies, in their order: to what is stored, or to the parts of a concatenation."""

    operators: tuple[Operator, ...]
    joined: Concat | None = None
    parts: tuple[Chain, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.operators or self.joined)


@dataclass
class Passing:
    """The functions between the layers of a model, on a machine with some elements."""

    model: OnnxModel
    elements: Elements

    @cached_property
    def results(self) -> frozenset[str]:
        """Operators whose tensors are results of the model."""
        return frozenset(self.model.results.values())

    @cached_property
    def layers(self) -> Mapping[str, Layer]:
        """The layers by their operators."""
        return {layer.name: layer for layer in self.model.network.layers}

    @cached_property
    def readers(self) -> Mapping[str, list[Operator]]:
        """By operator those that read its result."""
        readers: dict[str, list[Operator]] = {o.name: [] for o in self.model.network.operators}
        for operator in self.model.network.operators:
            for name in operator.inputs:
                readers[name].append(operator)
        return readers

    @cached_property
    def last(self) -> frozenset[str]:
        """Operators of the host behind which there are only others, and results of the model."""
        found: set[str] = set()
        for operator in reversed(self.model.network.operators):
            alone = operator.name not in self.layers and not isinstance(operator, Concat)
            if alone and found.issuperset(r.name for r in self.readers[operator.name]):
                found.add(operator.name)
        return frozenset(found)

    # ---- kinds -----------------------------------------------------------------------------------------------------

    @cached_property
    def kinds(self) -> Mapping[str, str]:
        """By operator the kind of its tensor, as the model says."""
        found = {"": "f32"}
        for operator in self.model.network.operators:
            found[operator.name] = self._kind(operator, found[operator.inputs[0] if operator.inputs else ""])
        return found

    def _kind(self, operator: Operator, given: str) -> str:
        """The kind of one tensor; `given`: of the first that is read."""
        if isinstance(operator, Input):
            return kind_of(self.model.element(self.model.first[operator.name]), operator.name)
        if isinstance(operator, Opaque):  # what is picked by indices is of the table's type
            stated = self.model.type_in_file(self.model.first.get(operator.name, ""))
            return KINDS.get(stated, given if moves(operator) else "f32")
        if operator.name not in self.model.origin:
            return given
        node = self.model.node(operator.name)
        if node.op in QUANTISERS:
            return grid_of(self.model, node).kind if node.op == "QuantizeLinear" else "f32"
        if node.op == "Cast":
            return kind_of(node.element("to", "float32"), operator.name)
        return given

    def said(self, name: str, kind: str) -> str:
        """What the file calls elements of an operator: sums of integers that are spelled out are real numbers here."""
        stated = self.model.type_in_file(self.model.first.get(name, ""))
        return stated if kind in FLOATS and stated else NAMES[kind]

    def stored(self, name: str) -> str:
        """The kind in which an operator's elements lie in memory."""
        network = self.model.network
        while name in self.read:
            name = network.operator(name).inputs[0]
        operator = network.operator(name)
        if name in self.behind or name in self.applied:
            end = self.ends[name]
            held, made = self.elements.held(self.kinds[end]), self.said(end, self.kinds[end])
            said = f"its result is of {made}, and out_bytes is {self.elements.machine.out_bytes}"
            said += ": quantise it right behind the layer" if self.elements.quantised else ""
            require(held, f"layer {name}", said)
            return held
        if isinstance(operator, Reshape | Concat):
            return self.by_host(operator.inputs[0])
        if name in self.constants:
            return self.constants[name].kind
        return self.elements.held(self.kinds[name]) or self.kinds[name]

    @cached_property
    def constants(self) -> Mapping[str, Grid]:
        """By operator the integers of constants that stand for real numbers in a quantised model, read by layers alone.

        Those of the file where it has quantised them; what it leaves real becomes integers around 0.
        """
        found = {}
        for name, readers in self.readers.items():
            operator = self.model.network.operator(name)
            real = isinstance(operator, Input) and operator.constant and self.kinds[name] in FLOATS
            if not real or self.elements.held(self.kinds[name]) or name in self.results:
                continue
            if not all(reader.name in self.layers and name in self.inputs_of(reader) for reader in readers):
                continue
            tensor = self.model.first[name]
            grid = self._in_file(name, tensor) or self.elements.grid_around(self.model.constant(tensor))
            if grid is not None:
                found[name] = grid
        return found

    def _in_file(self, name: str, tensor: str) -> Grid | None:
        """The grid of a constant that the file has quantised; None where its readers cannot take it as it is.

        Scales along an axis are for layers that take real numbers, of one place each.
        """
        stands = self.model.quantised(tensor)
        if stands is None or not np.array_equal(stands.real(), self.model.constant(tensor)):
            return None
        grid = self.elements.grid_held(stands)
        by_place = all(isinstance(reader, Eltwise) for reader in self.readers[name]) and self.elements.rule == "float"
        return grid if grid is not None and (grid.axis is None or by_place) else None

    def inputs_of(self, operator: Operator) -> tuple[str, ...]:
        """The operators whose results a layer reads as its inputs."""
        return inputs_of(self.model.network, operator, self.layers[operator.name])

    def by_host(self, name: str) -> str:
        """The kind in which the host finds an operator's elements: it applies what readers else would."""
        return self.kinds[name] if name in self.read else self.stored(name)

    def step(self, name: str) -> float:
        """The distance of the real numbers that a tensor's integers stand for; 0 for other tensors."""
        network = self.model.network
        while isinstance(operator := network.operator(name), Reshape):
            name = operator.inputs[0]
        if self.kinds[name] not in FLOATS:
            return 1
        if not self.per_tensor(operator):
            return 0
        return float(grid_of(self.model, self.model.node(name)).scale[0])

    # ---- functions -------------------------------------------------------------------------------------------------

    @cached_property
    def behind(self) -> Mapping[str, tuple[Operator, ...]]:
        """By layer the functions that it applies to its results."""
        chains: dict[str, tuple[Operator, ...]] = {}
        for name in self.layers:
            chain: list[Operator] = []
            last, held, moved = self.model.network.operator(name), 0, False
            while len(self.readers[last.name]) == 1 and last.name not in self.results:
                last = self.readers[last.name][0]
                if not self._single(last):
                    if not self._moves(last) and not (held == 0 and self._joins_sums(last)):
                        break
                    moved = True
                    continue
                if moved and not self._anywhere(last):
                    break
                chain.append(last)
                held = len(chain) if self.elements.held(self.kinds[last.name]) else held
            chains[name] = tuple(chain[:held])
        return chains

    @cached_property
    def ends(self) -> Mapping[str, str]:
        """By layer, and by function that it applies, the last of these."""
        found = {}
        for name, chain in self.behind.items():
            found.update(dict.fromkeys([name, *(o.name for o in chain)], chain[-1].name if chain else name))
        return found

    @cached_property
    def applied(self) -> frozenset[str]:
        """All operators that layers apply to their results."""
        return frozenset(o.name for chain in self.behind.values() for o in chain)

    def _single(self, operator: Operator) -> bool:
        """Whether it changes elements one by one."""
        if isinstance(operator, Reshape):
            node = self.model.node(operator.name) if operator.name in self.model.origin else None
            return operator.fn == "identity" and node is not None and node.op in ("Cast", "Identity", "Dropout")
        return isinstance(operator, Eltwise) and len(operator.inputs) == 1 and self._stage(operator) is not None

    def _anywhere(self, operator: Operator) -> bool:
        """Whether a function does not ask where an element lies."""
        return not getattr(self._stage(operator), "tables", ())

    def _moves(self, operator: Operator) -> bool:
        """Whether it lays elements of a quantised model otherwise, and fills none in."""
        fills = isinstance(operator, Reshape) and operator.fn == "pad"
        return self.elements.quantised and isinstance(operator, Reshape) and not fills

    def _joins_sums(self, operator: Operator) -> bool:
        """Whether it joins results of layers of a quantised model that none of them can hold before."""
        joins = self.elements.quantised and isinstance(operator, Concat)
        return joins and all(map(self._is_sum, operator.inputs))

    def _is_sum(self, name: str, moved: bool = True) -> bool:
        """Whether a tensor holds a layer's results that are not quantised yet, and one operator alone reads it.

        `moved`: elements may have been moved before; not where a function behind asks for their places.
        """
        operator = self.model.network.operator(name)
        if self.elements.held(self.kinds[name]) or len(self.readers[name]) != 1 or name in self.results:
            return False
        if name in self.layers:
            return True
        if self._single(operator):
            return self._is_sum(operator.inputs[0], moved and self._anywhere(operator))
        if isinstance(operator, Concat):
            return moved and self._joins_sums(operator)
        return moved and self._moves(operator) and self._is_sum(operator.inputs[0])

    def _stage(self, operator: Operator) -> object:
        return stage(self.model, operator, "t", ["0"] * len(operator.shape))

    @cached_property
    def read(self) -> frozenset[str]:
        """Operators that their readers apply: all of them are layers, or such operators themselves."""
        refused, joins = set[str](), [o for o in self.model.network.operators if isinstance(o, Concat)]
        while True:
            found = _Readers(self, refused).found
            broken = {join.name for join in joins if join.name in found and not found.issuperset(join.inputs)}
            if not broken:
                return frozenset(found)
            refused |= broken

    @cached_property
    def whole(self) -> Mapping[str, tuple[Operator, ...]]:
        """By quantiser that the host computes all operators from a dequantiser on, if it does that in whole numbers."""
        found: dict[str, tuple[Operator, ...]] = {}
        for last in self.model.network.operators if self.elements.rule != "float" else ():
            chain = self._from_dequantiser(last)
            if chain and (softmax(self.model, chain, "", "") or self.rescaled(chain, ["0"] * len(last.shape))[1]):
                found[last.name] = chain
        return found

    @cached_property
    def inside(self) -> frozenset[str]:
        """What lies within these, and nobody else reads."""
        ends = frozenset(self.whole)
        inner = [one.name for chain in self.whole.values() for one in chain[:-1]]
        return frozenset(name for name in inner if len(self.readers[name]) == 1 and name not in self.results) - ends

    def _from_dequantiser(self, last: Operator) -> tuple[Operator, ...]:
        """The operators of the host that make each its one input, up to a quantiser; none if nothing dequantises."""
        chain, others = [last], self.applied | self.read
        node = self.model.node(last.name) if last.name in self.model.origin else None
        if node is None or node.op != "QuantizeLinear" or last.name in others:
            return ()
        while isinstance(one := chain[0], Eltwise) and len(one.inputs) == 1 and one.shape == last.shape:
            one = self.model.network.operator(one.inputs[0])
            chain.insert(0, one)
            if self.per_tensor(one):
                return tuple(chain)
            if len(self.readers[one.name]) > 1 or one.name in self.results or one.name in others:
                break
        return ()

    def rescaled(self, chain: Sequence[Operator], place: Sequence[str]) -> tuple[list[str], list[str]]:
        """Tables and C of all operators of a chain at once; none if it is not of whole numbers."""
        last, *found = rescaled(self.model, chain, self.elements.rule, "t", place) or (0, [], [])
        return (found[0], found[1]) if last == len(chain) - 1 else ([], [])

    def before(self, name: str) -> Chain:
        """The functions that a reader of `name` applies."""
        chain: list[Operator] = []
        while name in self.read:
            operator = self.model.network.operator(name)
            if isinstance(operator, Concat):
                return Chain(tuple(chain), operator, tuple(map(self.before, operator.inputs)))
            chain.insert(0, operator)
            name = operator.inputs[0]
        return Chain(tuple(chain))

    def per_tensor(self, operator: Operator) -> bool:
        """Whether it dequantises, with one scale."""
        node = self.model.node(operator.name) if operator.name in self.model.origin else None
        return node is not None and node.op == "DequantizeLinear" and grid_of(self.model, node).axis is None


class _Readers:
    """Finds the operators that their readers apply.

    Readers come first. `direct`: those whose elements readers know the place of; `last`: those that have to be the only
    function (of right operands of products).
    """

    def __init__(self, passing: Passing, refused: set[str]) -> None:
        self.passing, self.network, self.refused = passing, passing.model.network, refused
        self.found, self.direct, self.last = set[str](), set[str](), set[str]()
        for operator in reversed(self.network.operators):
            self._look(operator)
        self._prune()

    def _look(self, operator: Operator) -> None:
        passing, name = self.passing, operator.name
        readers = passing.readers[name]
        if not readers or name in passing.applied | passing.results | self.refused:
            return
        ways = {self._way(reader, name) for reader in readers if reader.name not in passing.last}
        if "" in ways or not ways:
            return
        if isinstance(operator, Concat):
            able = ways == {"direct"} and self._joins(operator)
        else:
            able = isinstance(operator, Eltwise) and passing._single(operator)
            able = able and (ways == {"direct"} or passing._anywhere(operator))
            able = able and ("last" not in ways or passing.per_tensor(operator))
        if able:
            self.found.add(name)
            self.direct |= {name} if ways == {"direct"} else set()
            self.last |= {name} if "last" in ways else set()

    def _way(self, reader: Operator, name: str) -> str:
        """How a reader takes a function's result: with its place, without, or as the last one; empty if it does not."""
        if reader.name in self.found:
            return "" if reader.name in self.last else "direct" if reader.name in self.direct else "anywhere"
        if reader.name not in self.passing.layers or is_gridded(reader):  # where the host looks at map and grid
            return ""
        inputs = self.passing.inputs_of(reader)
        if isinstance(reader, MatMul) and name in reader.inputs[1:]:
            return "" if name in inputs else "last"
        return "direct" if name in inputs else "anywhere" if isinstance(reader, Eltwise) else ""

    def _joins(self, operator: Concat) -> bool:
        """Whether a concatenation is of channels that are dequantised from one kind."""
        parts = [self.network.operator(name) for name in operator.inputs]
        kinds = {self.passing.kinds[part.inputs[0]] if part.inputs else "" for part in parts}
        alike = all(map(self.passing.per_tensor, parts)) and len(kinds) == 1
        return alike and operator.axis == 1 and len(operator.shape) == 4

    def _prune(self) -> None:
        """Readers apply nothing to what the machine's elements cannot hold."""
        for operator in self.network.operators:
            if operator.name not in self.found or isinstance(operator, Concat):
                continue
            source = operator.inputs[0]
            outside = source not in self.found and source not in self.passing.applied | set(self.passing.behind)
            if outside and not self.passing.elements.held(self.passing.kinds[self._origin(source)]):
                self.found.discard(operator.name)

    def _origin(self, name: str) -> str:
        """Where elements come from that are only moved."""
        operator = self.network.operator(name)
        while isinstance(operator, Reshape | Concat) and operator.name not in self.found | self.passing.applied:
            operator = self.network.operator(operator.inputs[0])
        return operator.name


def kind_of(name: str, operator: str) -> str:
    """Return the kind of an element type, as numpy calls it; raises InputError for one that C does not have."""
    require(name in KINDS, f"operator {operator}", f"elements of {name}")
    return KINDS[name]


# ---- chains as C ---------------------------------------------------------------------------------------------------


def statements(
    model: OnnxModel, chain: Chain, place: Callable[[Operator], Sequence[str]], prefix: str, begin: int = 0, *,
    rule: str = "float",
) -> tuple[list[str], list[str]]:  # fmt: skip
    """Return tables and statements; channels are those of a whole in which the chain begins at `begin`.

    Integers that become those of another scale do so by a rule (`solver.uses.emit.requantise`).

    `place` gives, of an operator, the C texts of an element's place along every axis of its tensor; names of tables
    begin with `prefix`.
    """
    tables, lines = list[str](), list[str]()
    if chain.joined is not None:  # what becomes of an element depends on the part that its channel is of
        channel, end = place(chain.joined)[1], begin
        for k, (name, part) in enumerate(zip(chain.joined.inputs, chain.parts, strict=True)):
            more, body = statements(model, part, place, f"{prefix}{k}_", end, rule=rule)
            end += model.network.operator(name).shape[1]
            tables += more
            last = k == len(chain.parts) - 1
            head = "} else {" if last and k else f"{'} else ' if k else ''}if ({channel} < {end}) {{"
            lines += [head, *indented(body)]
        lines.append("}")
    skipped = 0
    for number, one in enumerate(chain.operators):
        if skipped:
            skipped -= 1
            continue
        at = list(place(one))
        at[1:2] = [f"({at[1]} - {begin})"] if begin else at[1:2]
        if rule != "float" and (whole := rescaled(model, chain.operators[number:], rule, f"{prefix}{number}", at)):
            skipped, more, body = whole
            tables += more
            lines += [f"/* {identifier(chain.operators[number + skipped].name)} */", *body]
            continue
        made = stage(model, one, f"{prefix}{number}", at)
        assert made is not None
        tables += made.lines()
        lines += [f"/* {identifier(one.name)} */", *made.statements]
    return tables, lines
