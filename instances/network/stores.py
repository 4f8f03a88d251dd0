"""A network as layers that read and write stores: the feature maps that may stay on chip between layers.

Stores
    A layer writes one part of one store. Element-wise operators of one input and reshapes leave a map where it is; what
    is concatenated shares a store, every part in its own channels (or, joined along another axis, in its own place).
    A store has `rows` rows, the rows of its maps; every row has ``sum of the parts' row bytes``.
Rows
    The first rows of a store may stay on chip. A reshape (but one that changes nothing), a reader or writer with
    another number of rows, one that reads a matrix transposed or pixels anywhere, and a sum of more than two need all
    of it there or nothing: such a store stays whole or not at all.
DRAM
    What comes from outside, what an operator without a plan of its own reads or writes, the right operand of a product
    of two inputs and operands of it that are broadcast lie in DRAM: their stores never stay. An operator that nobody
    reads is a result of the network: its store may stay for readers, but is written whole. What is joined with itself
    (x beside relu(x)) has more elements than layers make: like an operator without a plan its concatenation reads x in
    DRAM, and is a store of its own there. An example: x has 4 channels, a layer that reads x beside relu(x) reads 8 of
    them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import NamedTuple, Self

from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, MatMul, Opaque, Operator, Resample, Reshape
from instances.network.outside import RIGHT, Reading, outside, several_parts, sources_of
from instances.network.workload import Layer

#: What weights that several layers read are called, after the first.
WEIGHTS = " (weights)"
#: Maps that a sum of more reads stay whole or not at all.
MOST_INPUTS = 2


@dataclass(frozen=True)
class Store:
    """One place for feature maps."""

    name: str
    """The operator whose result it is, or the concatenation of the results."""
    rows: int
    """Of every map in it."""
    parts: tuple[tuple[int, int], ...]
    """The layers that write it (numbers), each with the elements of one row of its part."""
    readers: tuple[int, ...]
    """The layers that read it, ascending, each once."""
    whole: bool
    """Whether it stays whole or not at all."""
    dram: bool
    """Whether it must lie in DRAM."""
    results: int
    """Elements of it that are results of the network: if any, it is written whole."""
    zeros: bool = False
    """Whether it is an input of zeros, which are read from nowhere."""
    weights: int = 0
    """Of weights that several layers multiply by their elements; such a store has no parts, its readers are those of
    `Stores.shared`.
    """
    biases: int | None = 0
    """Elements of the biases that come with the weights; None if the layers have biases of their own."""

    @property
    def row_elements(self) -> int:
        """Elements of a row of all parts."""
        return sum(elements for _, elements in self.parts)

    def row_bytes(self, machine: Machine) -> int:
        """Bytes of a row on chip; all of the weights."""
        if self.weights:
            return self.weights * machine.w_bytes + (self.biases or 0) * machine.bias_bytes
        return self.row_elements * machine.out_bytes

    def seen(self, rows: int, extent: int) -> int:
        """What a layer that sees the store with `extent` rows has of it, if so many of its rows are on chip."""
        if self.zeros:
            return extent
        return (extent if rows else 0) if self.whole else rows


class Operand(NamedTuple):
    """A store as a layer reads it.

    An example: of a map of 8 channels and its gate, one element a channel, both in batches of 1, a layer reads 8
    elements in each of 5 x 5 pixels, and 8 in one pixel: `lacks` is "rc" there.
    """

    lacks: str
    """The dimensions along which it has one element only (`Layer.broadcast`)."""
    elements: int
    """Of a pixel."""
    rows: int
    columns: int


class Pitch(NamedTuple):
    """Where pixels lie of a map that a layer samples."""

    down: int
    across: int
    """`down`, `across`: rows and columns from one that is read to the next."""
    rows: int
    columns: int
    """`rows`, `columns`: of the map."""


@dataclass(frozen=True)
class Stores:
    """The layers of a network in its order, and the stores between them."""

    network: str
    layers: tuple[Layer, ...]
    stores: tuple[Store, ...]
    reads: tuple[tuple[int, ...], ...]
    """For every layer the store of each input (as many as `Layer.inputs`, in its order)."""
    writes: tuple[int, ...]
    """For every layer its store."""
    members: tuple[tuple[str, ...], ...] = ()
    """For every store the operators whose results lie in it, in the network's order."""
    copied: frozenset[str] = frozenset()
    """Concatenations with elements that no layer makes: something is joined with itself."""
    barriers: tuple[int, ...] = ()
    """For every layer the last layer that must be complete before it begins, -1 if none must."""
    weights_of: tuple[int, ...] = ()
    """For every layer the first one whose W operand is the same tensor; itself if it is, or if there is none."""
    biases_of: tuple[int, ...] = ()
    """The same of the biases."""
    outside: tuple[Reading, ...] = ()
    """What layers read of what no layer makes."""
    shared: tuple[int, ...] = ()
    """For every layer the store of the weights that it multiplies by and others do, too; -1 if there is none."""
    apart: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """Layer and store -> of how many different parts it reads the store, where they are several: halves of a map, maps
    that are joined elsewhere.
    """
    pitch: Mapping[int, Pitch] = field(default_factory=dict)
    """Layers whose input is sampled (`sampled`) -> where its pixels lie."""

    def operand(self, step: int, store: int) -> Operand:
        """A store as the first input of a layer reads it that does."""
        layer = self.layers[step]
        lacks = layer.patterns[self.reads[step].index(store)]
        each = [1 if d in lacks else layer.extent(d) for d in "bg"]
        rows, columns = 1 if "r" in lacks else layer.h, 1 if "c" in lacks else layer.l
        return Operand(lacks, prod(each) * layer.n, rows, columns)

    def skips(self, step: int) -> bool:
        """Whether a layer reads single pixels of its map with others between: a kernel of 1 x 1 that strides."""
        layer = self.layers[step]
        kernel = layer.kh, layer.kw, layer.pad_top, layer.pad_left, layer.inputs
        return kernel == (1, 1, 0, 0, 1) and max(layer.stride_h, layer.stride_w) > 1 and not layer.copies

    def sampled(self, steps: Collection[int]) -> Self:
        """The same where some layers that skip pixels have a map of those alone that they read, and move by 1.

        An example: a kernel of 1 x 1 with stride 2 on 28 x 28 pixels reads every second one. Sampled it is a kernel of
        1 x 1 with stride 1 on 14 x 14 pixels, which lie 2 rows and 2 columns apart (`pitch`).
        """
        if not (some := set(steps) - self.pitch.keys()):
            return self
        layers, pitch = list(self.layers), dict(self.pitch)
        for step in some:
            layer = layers[step]
            pitch[step] = Pitch(layer.stride_h, layer.stride_w, layer.h, layer.l)
            layers[step] = layer.model_copy(update={"h": layer.r, "l": layer.c, "stride_h": 1, "stride_w": 1})
        return replace(self, layers=tuple(layers), pitch=pitch)

    def unlike(self, step: int) -> bool:
        """Whether a layer reads a store twice, broadcast along different dimensions."""
        layer = self.layers[step]
        pairs = set(zip(self.reads[step], layer.patterns, strict=True))
        return len(pairs) > len(set(self.reads[step]))

    def layer(self, step: int, on_chip: Mapping[int, int], unwritten: int) -> Layer:
        """A layer with what it finds on chip: rows by store, and the rows of its result that are never written."""
        layer, made = self.layers[step], self.stores[self.writes[step]]
        given = tuple(
            self.stores[s].seen(on_chip.get(s, 0), layer.input_rows(k)) for k, s in enumerate(self.reads[step])
        )
        fields = {"resident_in": given, "resident_out": made.seen(unwritten, layer.r)}
        return layer.model_copy(update={**fields, "resident_w": on_chip.get(self.shared[step], 0) > 0})


class Groups:
    """Operators whose results share a store (disjoint sets)."""

    def __init__(self, names: Sequence[str]) -> None:
        self.parent = {name: name for name in names}

    def find(self, name: str) -> str:
        """The name of the set."""
        while self.parent[name] != name:
            name = self.parent[name]
        return name

    def join(self, one: str, two: str) -> None:
        """Put both in one set, named after `two`'s."""
        self.parent[self.find(one)] = self.find(two)


def inputs_of(network: Network, operator: Operator, layer: Layer) -> tuple[str, ...]:
    """Return the operators whose results a layer reads as IN, one for each input; no right operand of a product."""
    return sources_of(operator, network.input_shapes(operator), layer)


def stores(network: Network) -> Stores:
    """Return the layers of a network and the stores between them; raises InputError if the network has no layer."""
    found = _Reader(network).read()
    if not found.layers:
        raise InputError(f"network {network.name} has no layers to plan")
    number = {layer.name: t for t, layer in enumerate(found.layers)}
    weights = _same(network, number, biases=False), _same(network, number, biases=True)
    reads = [inputs_of(network, network.operator(layer.name), layer) for layer in found.layers]
    found = replace(
        found, barriers=barriers(network, found), weights_of=weights[0], biases_of=weights[1],
        outside=outside(network.operators, list(number), reads), shared=(-1,) * len(number),
        apart=several_parts(network.operators, list(number), found.reads, reads),
    )  # fmt: skip
    return _with_weights(found, network.in_dram)


def _with_weights(found: Stores, in_dram: Sequence[str]) -> Stores:
    """Add a store for every tensor that several layers multiply by, and that comes from outside."""
    maps = {tensor for one in found.outside if one.operand != RIGHT for tensor in one.part.tensors}
    given = {one.layer for one in found.outside if one.part.least == one.size and not one.part.tensors & maps}
    made, shared = list(found.stores), list(found.shared)
    for first in dict.fromkeys(found.weights_of):
        readers = [t for t, of in enumerate(found.weights_of) if of == first]
        layers = [found.layers[t] for t in readers]
        outer = all(one.weights == "constant" or t in given for t, one in zip(readers, layers, strict=True))
        if len(readers) < 2 or not outer or len({one.weight_elements for one in layers}) > 1:
            continue
        name = f"{layers[0].name}{WEIGHTS}"
        if name in in_dram:
            continue
        biases = {found.biases_of[t] if one.bias else -1 for t, one in zip(readers, layers, strict=True)}
        each = layers[0].g * layers[0].m * layers[0].bias if len(biases) == 1 else None
        for t in readers:
            shared[t] = len(made)
        made.append(Store(name, 1, (), (), True, False, 0, weights=layers[0].weight_elements, biases=each))
    added = ((),) * (len(made) - len(found.stores))
    return replace(found, stores=tuple(made), shared=tuple(shared), members=(*found.members, *added))


def _same(network: Network, number: Mapping[str, int], *, biases: bool) -> tuple[int, ...]:
    """Return for every layer the first one whose W operand, or whose biases, are the same tensor."""
    maps: dict[str, str] = {}  # what is moved -> what it was
    tensors: dict[str, tuple[str, str]] = {}
    for operator in network.operators:
        name = operator.name
        if isinstance(operator, Conv | MatMul) and len(operator.inputs) == 1:
            of = name if biases and operator.own_bias else operator.weights_of or name
            tensors[name] = tensors.get(of, ("weights", of))
        elif isinstance(operator, MatMul) and not biases:
            tensors[name] = "map", maps.get(operator.inputs[1], operator.inputs[1])
        elif isinstance(operator, Reshape) and operator.fn in ("reshape", "transpose", "identity"):
            maps[name] = maps.get(operator.inputs[0], operator.inputs[0])
    first: dict[tuple[str, str], int] = {}
    return tuple(first.setdefault(tensors.get(name, ("", name)), t) for name, t in number.items())


class _Reader:
    """Goes through the operators once."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.groups = Groups([o.name for o in network.operators])
        self.layers: list[Layer] = []
        self.made: list[str] = []
        self.read_names: list[tuple[str, ...]] = []
        self.dram: set[str] = set()
        self.whole: set[str] = set()
        self.rows: dict[str, int] = {}
        self.copied: set[str] = set()
        self.elements: dict[str, int] = {}
        """Of what an operator makes that no other one does; none of those that leave a map where it is."""
        self.read_by_some = {name for operator in network.operators for name in operator.inputs}

    def read(self) -> Stores:
        """Make layers and stores."""
        for operator in self.network.operators:
            self._operator(operator)
        self._rows()
        self.dram |= set(self.network.in_dram)
        self.whole |= set(self.network.in_dram)  # nobody takes its rows as they come
        roots = [self.groups.find(name) for name in self.made]
        read = [self.groups.find(name) for names in self.read_names for name in names]
        number = {root: at for at, root in enumerate(dict.fromkeys([*roots, *read]))}
        reads = tuple(tuple(number[self.groups.find(n)] for n in names) for names in self.read_names)
        writes = tuple(number[self.groups.find(name)] for name in self.made)
        members: dict[str, list[str]] = {root: [] for root in number}
        for name in self.groups.parent:
            members.setdefault(self.groups.find(name), []).append(name)
        parts: list[list[int]] = [[] for _ in number]
        readers: list[dict[int, None]] = [{} for _ in number]
        for k, (given, made) in enumerate(zip(reads, writes, strict=True)):
            parts[made].append(k)
            for at in given:
                readers[at][k] = None
        made_of = (self._store(root, members[root], parts[at], tuple(readers[at])) for root, at in number.items())
        return Stores(
            self.network.name, tuple(self.layers), tuple(made_of), reads, writes,
            tuple(tuple(members[root]) for root in number), frozenset(self.copied),
        )  # fmt: skip

    def _operator(self, operator: Operator) -> None:
        layer = operator.layer(self.network.input_shapes(operator))
        if isinstance(operator, (Input, Opaque)):
            self._from_outside(operator)
        elif isinstance(operator, Reshape) or (isinstance(operator, Eltwise) and layer is None):
            self.groups.join(operator.name, operator.inputs[0])
            before = self.network.operator(operator.inputs[0]).shape
            turned = isinstance(operator, Reshape) and operator.fn in ("transpose", "slice") and not operator.starts
            if isinstance(operator, Reshape) and (turned or operator.shape != before):
                self.whole.add(operator.name)
        elif isinstance(operator, Concat):
            self._concat(operator)
        elif layer is not None:
            names = self._inputs(operator, layer)
            self.layers.append(layer)
            self.made.append(operator.name)
            self.elements[operator.name] = self._elements(operator.name)
            self.read_names.append(names)

    def _from_outside(self, operator: Operator) -> None:
        """What no layer makes: it lies in DRAM, with what it is made of."""
        self.dram |= {operator.name, *operator.inputs}
        self.elements[operator.name] = self._elements(operator.name)

    def _concat(self, operator: Concat) -> None:
        roots = {self.groups.find(name) for name in operator.inputs}
        there = sum(size for name, size in self.elements.items() if self.groups.find(name) in roots)
        if self._elements(operator.name) > there:
            self.copied.add(operator.name)
            self._from_outside(operator)
            return
        for name in operator.inputs:
            self.groups.join(name, operator.name)
        if len(operator.shape) != 4 or operator.axis != 1:
            self.whole.add(operator.name)

    def _inputs(self, operator: Operator, layer: Layer) -> tuple[str, ...]:
        """The operators whose results the layer reads as IN."""
        names = inputs_of(self.network, operator, layer)
        if isinstance(operator, MatMul):
            self.dram |= set(operator.inputs[1:])
            if operator.transpose_a:
                self.whole.add(operator.inputs[0])
            if self._elements(operator.inputs[0]) != layer.g * layer.r * layer.n:  # broadcast
                self.dram.add(operator.inputs[0])
        if isinstance(operator, Resample) and operator.scattered(self.network.input_shapes(operator)):
            self.whole |= set(operator.inputs)  # any of its rows may read any of theirs
        if isinstance(operator, Eltwise):
            shapes = {name: self.network.operator(name).shape for name in (*names, operator.name)}
            odd = {name for name, shape in shapes.items() if len(shape) != 4} if layer.broadcast else set()
            self.whole |= odd if operator.name not in odd else set(names)
        return names

    def _elements(self, name: str) -> int:
        return prod(self.network.operator(name).shape)

    def _rows(self) -> None:
        """The rows of every store, and which stores are seen with other rows."""
        for layer, name, names in zip(self.layers, self.made, self.read_names, strict=True):
            read = [(self.groups.find(n), layer.input_rows(k)) for k, n in enumerate(names)]
            for root, rows in [(self.groups.find(name), layer.r), *read]:
                if self.rows.setdefault(root, rows) != rows:
                    self.whole.add(root)
            # what one layer sees with unlike rows lies in DRAM
            self.dram |= {root for root, rows in read if rows != dict(read)[root]}

    def _store(self, root: str, names: Sequence[str], parts: Sequence[int], readers: tuple[int, ...]) -> Store:
        """A store of the maps `names` that layers `parts` make and `readers` read."""
        members, layers = set(names), self.layers
        whole = bool(self.whole & members) or any(layers[k].inputs > MOST_INPUTS for k in readers)
        rows = 1 if whole else self.rows[root]
        return Store(
            root, rows,
            tuple((k, (one := layers[k]).b * one.g * one.m * one.r * one.c // rows) for k in parts),
            readers, whole, bool(self.dram & members),
            sum(self._elements(name) for name in members - self.read_by_some), not parts and self._zeros(members),
        )  # fmt: skip

    def _zeros(self, members: set[str]) -> bool:
        there = (self.network.operator(name) for name in members - set(self.network.in_dram))
        given = [o for o in there if not o.inputs]
        return bool(given) and all(isinstance(o, Input) and o.zeros for o in given)


def barriers(network: Network, found: Stores) -> tuple[int, ...]:
    """Return for every layer the last layer that must be complete before it begins, -1 if none must.

    A layer takes rows as they come, but for the right operand of a product and what is computed by an operator without
    a plan. What is broadcast comes as it has rows, too.
    """
    number = {layer.name: t for t, layer in enumerate(found.layers)}
    behind: dict[str, int] = {}  # the last layer among what an operator is computed from, itself included
    ready: dict[str, int] = {}  # the last layer that must be complete before an operator begins
    for operator in network.operators:
        passing = () if operator.name in found.copied else _passing(network, operator, number)
        hard = [behind[name] for name in operator.inputs if name not in passing]
        through = [ready[name] for name in passing if name not in number]
        ready[operator.name] = max([-1, *hard, *through])
        behind[operator.name] = max([number.get(operator.name, -1), *(behind[name] for name in operator.inputs)])
    return tuple(ready[layer.name] for layer in found.layers)


def _passing(network: Network, operator: Operator, number: dict[str, int]) -> tuple[str, ...]:
    """The inputs whose rows it may take as they come."""
    if isinstance(operator, MatMul):
        return operator.inputs[:1]
    if isinstance(operator, Resample) and operator.scattered(network.input_shapes(operator)):
        return ()
    if operator.name in number or isinstance(operator, (Concat, Eltwise, Reshape, Input)):
        return operator.inputs
    return ()
