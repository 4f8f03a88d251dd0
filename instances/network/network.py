"""Networks: operator graphs with shapes, without weights.

A `Network` is a tuple of operators in topological order. Making one checks it: names are unique, inputs exist and
come earlier, and every declared shape is what the inputs give. `unlike_elements` compares the element types of a
network's file with the sizes of elements that a machine counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from difflib import get_close_matches
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, ValidationError, model_validator

from instances.errors import InputError, did_you_mean
from instances.frozen import Sparse
from instances.machine.machine import Machine
from instances.network.operators import Conv, Input, MatMul, Opaque, Operator, Reshape, Shape
from instances.network.outside import copies_of, held
from instances.network.workload import Layer

if TYPE_CHECKING:
    import networkx as nx

#: At most so many faults are spelled out in one message.
MOST_FAULTS = 5


class Network(Sparse):
    """A network as an operator graph."""

    LEFT_OUT: ClassVar = frozenset(("map_type", "weight_type", "in_dram"))

    name: str = Field(min_length=1, max_length=200)
    """Short name, as in ``certile solve NAME``."""
    description: str = ""
    """One line: what it is and the public definition it follows."""
    map_type: str = Field("", max_length=40)
    """Element type of the maps in the file that it was read from: ``float32``, ``int8``; empty: not known."""
    weight_type: str = Field("", max_length=40)
    """That of the weights."""
    operators: tuple[Operator, ...] = Field(min_length=1)
    """In topological order; an operator names the producers of its inputs."""
    in_dram: tuple[str, ...] = ()
    """Operators whose maps lie in DRAM, whatever is planned: where the host moves them or computes with them.
    ``NAME (weights)``: weights that several layers read, after the first of them.
    """

    @model_validator(mode="after")
    def _is_a_graph_with_shapes(self) -> Network:
        for check in (self._name_faults, self._order_faults, self._shape_faults, self._weight_faults):
            faults = check()
            if faults:
                more = f"; and {len(faults) - MOST_FAULTS} more" if len(faults) > MOST_FAULTS else ""
                raise ValueError("; ".join(faults[:MOST_FAULTS]) + more)
        return self

    def _name_faults(self) -> list[str]:
        counts = Counter(o.name for o in self.operators)
        faults = [f"operator name {name!r} is used {k} times" for name, k in counts.items() if k > 1]
        faults += [
            f"in_dram names {name!r}, which does not exist"
            for name in self.in_dram
            if name.removesuffix(" (weights)") not in counts
        ]
        for operator in self.operators:
            for producer in operator.inputs:
                if producer not in counts:
                    near = get_close_matches(producer, counts, n=1)
                    hint = f" (did you mean {near[0]!r}?)" if near else ""
                    faults.append(f"operator {operator.name!r}: input {producer!r} does not exist{hint}")
        return faults

    def _order_faults(self) -> list[str]:
        position = {o.name: i for i, o in enumerate(self.operators)}
        late = [(o.name, p) for o in self.operators for p in o.inputs if position[p] >= position[o.name]]
        if not late:
            return []
        import networkx as nx  # late: a sixth of a second, and few commands need it

        graph = nx.DiGraph((p, o.name) for o in self.operators for p in o.inputs)
        try:
            cycle = [edge[0] for edge in nx.find_cycle(graph, source=late[0][0])]
        except nx.NetworkXNoCycle:
            return [f"operator {name!r} comes before its input {producer!r}" for name, producer in late]
        names = [repr(n) for n in cycle]
        shown = names if len(names) <= 8 else [*names[:7], "...", names[-1]]
        return [f"the graph has a cycle: {' -> '.join([*shown, names[0]])}"]

    def _shape_faults(self) -> list[str]:
        shapes: dict[str, Shape] = {}
        faults: list[str] = []
        for operator in self.operators:
            shapes[operator.name] = operator.shape
            inputs = [shapes[p] for p in operator.inputs]
            try:
                inferred = operator.infer(inputs)
            except ValueError as error:
                faults.append(f"operator {operator.name!r}: {_plain(error)}")
                continue
            shapes[operator.name] = tuple(inferred)  # so that one wrong shape is one fault
            if tuple(inferred) != operator.shape:
                faults.append(
                    f"operator {operator.name!r}: declared shape {operator.shape}, its inputs give {tuple(inferred)}"
                )
        return faults

    def _weight_faults(self) -> list[str]:
        """What `weights_of` names comes earlier, and has as many constant weights, and biases to share."""
        found: dict[str, Layer] = {}
        shapes = {o.name: o.shape for o in self.operators}
        faults: list[str] = []
        for operator in self.operators:
            if not isinstance(operator, Conv | MatMul) or len(operator.inputs) != 1:
                continue
            layer, of = operator.layer([shapes[operator.inputs[0]]]), operator.weights_of
            found[operator.name] = layer
            where = f"operator {operator.name!r}: weights_of {of!r}"
            if operator.own_bias and not (of and layer.bias):
                faults.append(f"operator {operator.name!r}: own_bias is for biases beside weights_of")
            elif of and (of not in found or of == operator.name):
                faults.append(f"{where} is no earlier convolution or product with constant weights")
            elif of and layer.weight_elements != found[of].weight_elements:
                numbers = f"{found[of].weight_elements:,} weights, here are {layer.weight_elements:,}"
                faults.append(f"{where} has {numbers}: one tensor has as many for all")
            elif of and layer.bias and not (found[of].bias or operator.own_bias):
                faults.append(f"{where} has no biases: say own_bias")
        return faults

    @cached_property
    def _by_name(self) -> dict[str, Operator]:
        return {o.name: o for o in self.operators}

    def operator(self, name: str) -> Operator:
        """Return the operator called `name`.

        Raises
        ------
        InputError
            If there is none; names the closest ones.
        """
        if name not in self._by_name:
            raise InputError(f"network {self.name} has no operator {name!r}{_hint(name, list(self._by_name))}")
        return self._by_name[name]

    def input_shapes(self, operator: Operator) -> tuple[Shape, ...]:
        """Return the shapes of the inputs of `operator`, in order."""
        return tuple(self._by_name[p].shape for p in operator.inputs)

    @property
    def graph(self) -> nx.DiGraph[str]:
        """The graph: nodes are operator names with attributes ``operator`` and ``shape``, edges follow the data."""
        import networkx as nx  # late, as above

        graph: nx.DiGraph[str] = nx.DiGraph(name=self.name)
        for operator in self.operators:
            graph.add_node(operator.name, operator=operator, shape=operator.shape)
            graph.add_edges_from((p, operator.name) for p in operator.inputs)
        return graph

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """Every operator that moves data of its own: conv, matmul, pool, and eltwise of two or more inputs.

        Element-wise operators of one input are fused into their producer; concat and reshapes move nothing, but what
        they pad or join with itself is no element of its own (`Layer.copies`).
        """
        made = [(o, layer) for o in self.operators if (layer := o.layer(self.input_shapes(o))) is not None]
        parts = held(self.operators, frozenset(layer.name for _, layer in made))
        copies = [copies_of(layer, o, self.input_shapes(o), parts) for o, layer in made]
        return tuple(
            Layer.model_validate({**dict(layer), "copies": some}) if some else layer
            for (_, layer), some in zip(made, copies, strict=True)
        )

    @property
    def conv_layers(self) -> tuple[Layer, ...]:
        """The layers that multiply: conv and matmul."""
        return tuple(layer for layer in self.layers if layer.kind in ("conv", "matmul") and layer.weights != "none")

    def layer(self, name: str) -> Layer:
        """Return the layer called `name`.

        Raises
        ------
        InputError
            If there is none; names the closest ones, or what the operator of that name is.
        """
        for layer in self.layers:
            if layer.name == name:
                return layer
        if name in self._by_name:
            raise InputError(
                f"network {self.name}: operator {name!r} ({self._by_name[name].op}) is not a layer: "
                "only conv, matmul, pool and eltwise operators of two or more inputs are"
            )
        raise InputError(f"network {self.name} has no layer {name!r}{_hint(name, [x.name for x in self.layers])}")

    @property
    def macs(self) -> int:
        """Multiply-accumulates of conv and matmul layers (the convention of published totals)."""
        return sum(layer.macs for layer in self.layers)

    @property
    def parameters(self) -> int:
        """Trained constants in elements: weights, biases, two per batch-norm channel."""
        return sum(o.count_parameters(self.input_shapes(o)) for o in self.operators)

    @property
    def opaque(self) -> tuple[Opaque, ...]:
        """The operators that are kept but not planned."""
        return tuple(o for o in self.operators if isinstance(o, Opaque))

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for every operator that certile cannot plan."""
        return tuple(
            f"operator {o.name!r} ({o.kind}) is kept as opaque: it will not be planned{_why(o)}"
            for o in self.opaque
            if not o.result_of
        )

    @property
    def unplanned(self) -> str:
        """What the MAC total leaves out: kinds of opaque operators with their MACs; empty if there are none."""
        kinds: dict[str, list[Opaque]] = {}
        for operator in self.opaque:
            if not operator.result_of:
                kinds.setdefault(operator.kind, []).append(operator)
        parts = []
        for kind, found in sorted(kinds.items()):
            known = [o.macs for o in found if o.macs is not None]
            said = f"{sum(known):,} MACs" if len(known) == len(found) else "MACs not known"
            parts.append(f"{kind} x{len(found)} ({said})")
        return ", ".join(parts)

    def with_batch(self, batch: int) -> Network:
        """Return the network for another batch size (the leading dimension of every tensor).

        Raises
        ------
        InputError
            If `batch` is not positive, the inputs disagree on it, or a tensor's leading dimension does not scale.
        """
        if batch < 1:
            raise InputError(f"batch {batch}: a positive number is needed")
        olds = {o.shape[0] for o in self.operators if isinstance(o, Input) and not o.constant} or {1}
        if len(olds) > 1:
            raise InputError(f"network {self.name}: inputs have different batch sizes {sorted(olds)}, none can be set")
        old = olds.pop()
        if old == batch:
            return self

        def scaled(operator: Operator, _: Shape) -> Shape:
            if isinstance(operator, Input) and operator.constant:
                return operator.shape
            lead = operator.shape[0] * batch
            if lead % old:
                raise ValueError(f"operator {operator.name!r}: its leading dimension is not the batch")
            return (lead // old, *operator.shape[1:])

        return self.remade(scaled, f"batch {batch}")

    def with_size(self, rows: int, columns: int) -> Network:
        """Return the network for inputs of another size; features that are made of whole maps grow with them.

        Raises
        ------
        InputError
            If a size is not positive, an input has no rows and columns, or an operator cannot follow.
        """
        if rows < 1 or columns < 1:
            raise InputError(f"size {rows}x{columns}: positive numbers are needed")

        def scaled(operator: Operator, given: Shape) -> Shape:
            if isinstance(operator, Input) and operator.constant:
                return operator.shape
            if isinstance(operator, Input) and len(operator.shape) == 4:
                return (*operator.shape[:2], rows, columns)
            if isinstance(operator, Reshape) and len(operator.shape) == 2 and operator.shape[0] == given[0]:
                return (given[0], prod(given[1:]))
            raise ValueError(f"operator {operator.name!r} has shape {operator.shape}, which has no other size")

        return self.remade(scaled, f"inputs of {rows}x{columns}")

    def remade(
        self, scaled: Callable[[Operator, Shape], Shape], what: str,
        fields: Callable[[Operator, Shape], dict[str, int]] = lambda _, __: {},
    ) -> Network:  # fmt: skip
        """The network with new shapes: `scaled` says those that cannot be inferred, given the shape of what is read.

        `fields` says what else an operator has anew. Raises InputError, with `what` it cannot have, where operators do
        not follow.
        """
        shapes: dict[str, Shape] = {}
        made: list[Operator] = []
        try:
            for old in self.operators:
                given = [shapes[p] for p in old.inputs]
                operator = old.model_copy(update=fields(old, given[0] if given else ()))
                if isinstance(operator, Input | Reshape | Opaque):
                    shape = scaled(operator, given[0] if given else ())
                else:
                    shape = operator.infer(given)
                shapes[operator.name] = shape
                place = {"starts": (), "steps": ()} if isinstance(operator, Reshape) and shape != operator.shape else {}
                made.append(operator.model_copy(update={"shape": shape, **place}))
            own = {field: getattr(self, field) for field in type(self).model_fields}
            return Network(**{**own, "operators": tuple(made)})
        except ValueError as error:
            raise InputError(f"network {self.name} cannot have {what}: {_plain(error)}") from error


def _plain(error: ValueError) -> str:
    """Return what is wrong, of pydantic its messages without their frame."""
    if not isinstance(error, ValidationError):
        return str(error)
    return "; ".join(e["msg"].removeprefix("Value error, ") for e in error.errors()[:MOST_FAULTS])


def _hint(name: str, known: list[str]) -> str:
    if near := did_you_mean(name, known, cutoff=0.5):
        return f"; {near.strip()}"
    shown = ", ".join(known[:12]) + (f", ... ({len(known)} in all)" if len(known) > 12 else "")
    return f"; it has {shown}" if known else ""


def _why(operator: Opaque) -> str:
    """The reason and the MACs of an opaque operator, as far as they are known."""
    reason = f", {operator.reason}" if operator.reason else ""
    return f"{reason} ({operator.macs:,} MACs)" if operator.macs else reason


#: Bits of an element, by the beginning of its type's name.
_BITS = {
    "float64": 64, "float32": 32, "float16": 16, "bfloat16": 16, "float8": 8, "float4": 4, "int64": 64, "uint64": 64,
    "int32": 32, "uint32": 32, "int16": 16, "uint16": 16, "int8": 8, "uint8": 8, "int4": 4, "uint4": 4, "bool": 8,
}  # fmt: skip


def unlike_elements(network: Network, machine: Machine) -> tuple[str, ...]:
    """Return a line if the file's elements have other sizes than those that the machine counts; else none."""
    counted = (
        ("maps", network.map_type, {"in_bytes": machine.in_bytes, "out_bytes": machine.out_bytes}),
        ("weights", network.weight_type, {"w_bytes": machine.w_bytes}),
    )
    said, changes = [], []
    for what, element, fields in counted:
        bits = next((bits for name, bits in _BITS.items() if element.startswith(name)), 0)
        other = {field: size for field, size in fields.items() if bits and size * 8 != bits}
        if other:
            has = " and ".join(f"{field} {size}" for field, size in other.items())
            said.append(f"{what} of {element} ({bits / 8:g} bytes each; the machine has {has})")
            changes += [f"--set {field}={bits // 8}" for field in other if bits >= 8]
    if not said:
        return ()
    hint = f": {' '.join(changes)} counts as the file does" if changes else ""
    return (f"network {network.name}, machine {machine.name}: the file holds {', '.join(said)}{hint}",)
