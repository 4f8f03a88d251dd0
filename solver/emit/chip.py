"""Maps that stay on chip between layers: where their elements lie in the one range of addresses that they have.

A store whose first rows may stay has its rows one after the other, each with all its channels: in the order of the
machine's layout, so that what lies on chip of a row is contiguous, and rows that leave are the last ones. One that
stays whole or not at all lies like its tensor. All operators of a store see parts of one tensor, the last
concatenation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from instances.errors import InputError
from instances.machine import Machine
from instances.network import Network
from instances.operators import Concat, Eltwise, Operator, Reshape
from instances.stores import Store
from instances.workload import Layer
from solver.emit.frame import Kept
from solver.emit.values import Axis, Value, axes_of, rows_of


@dataclass(frozen=True)
class ChipMap:
    """A store on chip, and how its operators lie in it."""

    store: Store
    values: Mapping[str, Value]

    def kept(self, operator: Operator, operand: str, name: str, layer: Layer, address: int, rows: int) -> Kept:
        """Where a layer's input (or result) called `name` lies; `rows` of the layer's tensor are there.

        Raises
        ------
        InputError
            If its elements are no regular pitch apart.
        """
        value = self.values.get(name)
        pitch = None if value is None else _pitch(value, axes_of(operator, operand, value.shape), operand, layer)
        if value is None or pitch is None:
            said = f"map {self.store.name} stays on chip, where {operator.name} does not see it as regular rows"
            raise InputError(f"layer {layer.name}: {said}: no C is written")
        return Kept("ocm", address, rows, pitch, value.offset)


def chip_map(network: Network, store: Store, members: Sequence[str], machine: Machine) -> ChipMap:
    """Return how the operators of a store (`members`) lie in it.

    Raises
    ------
    InputError
        If they are no parts of one tensor: some results are joined twice.
    """
    inside = set(members)
    joins = [network.operator(name) for name in members if isinstance(network.operator(name), Concat)]
    joined = {name for join in joins for name in join.inputs}
    roots = [join for join in joins if _last(network, join, inside) not in joined]
    first = next(name for name in members if not set(network.operator(name).inputs) & inside)
    root = roots[0] if roots else network.operator(first)
    if prod(root.shape) != store.rows * store.row_elements:
        said = f"a tensor of {prod(root.shape):,} elements, results of {store.rows * store.row_elements:,}"
        raise InputError(
            f"map {store.name} stays on chip; it is {said}: joined with itself or with several: no C is written"
        )
    values = {root.name: _tensor(root, store, machine)}
    _spread(network, members, values)
    return ChipMap(store, values)


def _last(network: Network, operator: Operator, inside: set[str]) -> str:
    """The last operator of one input behind a concatenation, inside the store."""
    name = operator.name
    readers = [o for o in network.operators if o.inputs == (name,) and o.name in inside and not isinstance(o, Concat)]
    return _last(network, readers[0], inside) if len(readers) == 1 else name


def _tensor(root: Operator, store: Store, machine: Machine) -> Value:
    shape = root.shape
    if store.whole or len(shape) != 4:
        return Value("", shape, rows_of(shape))
    b, c, _, w = shape
    if machine.out_layout == "HWC":
        return Value("", shape, (w * c, 1, b * w * c, c))
    return Value("", shape, (c * w, w, b * c * w, 1))


def _spread(network: Network, members: Sequence[str], values: dict[str, Value]) -> None:
    """Find the other operators of a store from those that are known, until nothing new is found."""
    inside, before = set(members), -1
    while len(values) > before:
        before = len(values)
        for operator in network.operators:
            mine = values.get(operator.name)
            if isinstance(operator, Concat) and mine is not None:
                begin = [0] * len(mine.shape)
                for name in operator.inputs:
                    size = network.operator(name).shape
                    values.setdefault(name, mine.part(begin, (1,) * len(begin), size))
                    begin[operator.axis] += size[operator.axis]
            elif isinstance(operator, Eltwise | Reshape) and len(operator.inputs) == 1 and operator.name in inside:
                _through(network, operator, values)


def _through(network: Network, operator: Eltwise | Reshape, values: dict[str, Value]) -> None:
    """An operator of one input leaves elements where they are."""
    if isinstance(operator, Reshape) and operator.fn in ("slice", "pad") and operator.inputs[0]:
        before = network.operator(operator.inputs[0]).shape
        if before != operator.shape:
            return
    one, two = operator.inputs[0], operator.name
    for known, other in ((one, two), (two, one)):
        if known in values and other not in values:
            seen = values[known].reshaped(network.operator(other).shape)
            if values[known].shape == network.operator(other).shape:
                seen = values[known]
            if seen is not None:
                values[other] = seen


def _pitch(value: Value, axes: Sequence[Axis], operand: str, layer: Layer) -> Mapping[str, int] | None:
    """Pitches along b, g, n (m of a result), r and c; None if an axis has no regular pitch."""
    channel = "n" if operand == "IN" else "m"
    found: dict[str, tuple[int, int]] = {}  # by dimension: elements so far, and the pitch of the innermost axis
    for size, dims, step in zip(reversed(value.shape), reversed(axes), reversed(value.pitch), strict=True):
        inner = dims[-1]
        if inner in found and size > 1 and found[inner][0] > 1 and step != found[inner][0] * found[inner][1]:
            return None
        if inner not in found or found[inner][0] == 1:
            found[inner] = size, step
        else:
            found[inner] = found[inner][0] * size, found[inner][1]
    pitch = {d: found.get(d, (1, 0))[1] for d in ("b", "g", channel, "r", "c")}
    if ("g", channel) in axes:  # channels of a group follow each other
        pitch["g"] = pitch[channel] * layer.extent(channel)
    return pitch
