"""How many elements of what a layer reads are different ones: whatever moves, pads and joins maps on the way to it.

An example: a map of 8 x 8 elements gets a column of copies on each side before a layer reads it. The layer sees 80
elements, 16 of which are none of the map's: what it must read are 64. `copies_of` says so of a layer by itself,
`outside` of what comes from outside a network, which several layers may read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from instances.operators import Concat, Correlation, Eltwise, Input, MatMul, Opaque, Operator, Resample, Reshape
from instances.workload import Layer

#: The right operand of a product, where an input has a number.
RIGHT = -1


class Part(NamedTuple):
    """What an operator's result holds of a tensor."""

    least: int
    """So many different elements at least."""
    among: int
    """They lie among so many elements of the result, of which every pixel has as many."""


#: Of every operator the tensors that its result holds.
Held = Mapping[str, Mapping[str, Part]]


@dataclass(frozen=True)
class Reading:
    """An operand of a layer that holds what comes from outside."""

    layer: int
    operand: int
    """The number of the input, or `RIGHT`."""
    of: str
    """What is read: the same name means the same elements at the same places."""
    part: Part
    """What the operand holds of the tensor; the other elements are padding, copies, other parts."""
    size: int
    """Elements of the operator whose result is read."""


@dataclass(frozen=True)
class Outside:
    """A tensor that no layer makes."""

    name: str
    elements: int
    readings: tuple[Reading, ...]


def sources_of(operator: Operator, shapes: Sequence[Sequence[int]], layer: Layer) -> tuple[str, ...]:
    """Return the operators whose results a layer reads as IN, one for each input; no right operand of a product."""
    if isinstance(operator, MatMul):
        return operator.inputs[:1]
    if isinstance(operator, Resample) and operator.scattered([tuple(shape) for shape in shapes]):
        grids = operator.inputs[1:] * -(-2 // layer.g)  # as many operands as the layer has for them
        return (*operator.inputs[:1] * (layer.inputs - len(grids)), *grids)
    return operator.inputs


def held(operators: Sequence[Operator], layers: frozenset[str]) -> Held:
    """Return what the result of every operator holds of what layers make or comes from outside; zeros are nothing."""
    sizes = {operator.name: prod(operator.shape) for operator in operators}
    found: dict[str, dict[str, Part]] = {}
    for operator in operators:
        name, size = operator.name, sizes[operator.name]
        if isinstance(operator, Input) and operator.zeros:
            found[name] = {}
        elif name in layers or isinstance(operator, Input | Opaque):
            found[name] = {name: Part(size, size)}
        elif isinstance(operator, Concat):
            before = [one for source in operator.inputs for one in found[source].items()]
            most = {tensor: max(part for other, part in before if other == tensor) for tensor, _ in before}
            beside = operator.axis == 1 and len(operator.shape) == 4
            found[name] = {tensor: Part(least, among if beside else size) for tensor, (least, among) in most.items()}
        elif _in_place(operator):
            found[name] = found[operator.inputs[0]]
        else:
            cut = max(0, sizes[operator.inputs[0]] - size)
            found[name] = {tensor: Part(max(0, n - cut), size) for tensor, (n, _) in found[operator.inputs[0]].items()}
    return found


def _in_place(operator: Operator) -> bool:
    """Whether every element stays where it is."""
    return isinstance(operator, Eltwise) or (isinstance(operator, Reshape) and operator.fn == "identity")


def copies_of(layer: Layer, operator: Operator, shapes: Sequence[Sequence[int]], parts: Held) -> tuple[int, ...]:
    """Return of every operand of a layer how many elements are padding or copies (`Layer.copies`).

    Parameters
    ----------
    operator, shapes
        The operator that becomes the layer, and the shapes of its inputs.
    parts
        What all operators hold (`held`).
    """
    if isinstance(operator, Correlation):
        return ()
    total = {name: prod(shape) for name, shape in zip(operator.inputs, shapes, strict=True)}
    reads = [(name, layer.input_elements(k)) for k, name in enumerate(sources_of(operator, shapes, layer))]
    if layer.weights == "activation":
        reads.append((operator.inputs[1], layer.weight_elements))
    most: dict[str, tuple[int, int]] = {}  # of every tensor the most elements that one operand holds, and which
    for k, (name, size) in enumerate(reads):
        for tensor, (least, _) in parts[name].items():
            some = max(0, min(size, total[name]) - (total[name] - least))
            if some > most.get(tensor, (0, 0))[0]:
                most[tensor] = some, k
    own = [sum(some for some, at in most.values() if at == k) for k in range(len(reads))]
    copies = tuple(size - min(size, mine) for (_, size), mine in zip(reads, own, strict=True))
    return copies if any(copies) else ()


def outside(
    operators: Sequence[Operator], layers: Sequence[str], reads: Sequence[Sequence[str]]
) -> tuple[Outside, ...]:  # fmt: skip
    """Return what comes from outside, zeros left out: nothing reads them.

    Parameters
    ----------
    layers, reads
        The names of the layers, and for each the operators that its inputs come from.
    """
    number = {name: t for t, name in enumerate(layers)}
    sizes = {operator.name: prod(operator.shape) for operator in operators}
    parts = held(operators, frozenset(layers))
    same: dict[str, str] = {}  # what leaves its map where it is -> what makes the map
    found: dict[str, list[Reading]] = {}
    for operator in operators:
        name = operator.name
        if isinstance(operator, Input | Opaque):
            found |= {tensor: [] for tensor in parts[name]}
        elif name in number:
            operands = dict(enumerate(reads[number[name]]))
            if isinstance(operator, MatMul) and len(operator.inputs) > 1:
                operands[RIGHT] = operator.inputs[1]
            for k, source in operands.items():
                for tensor in parts[source].keys() & found.keys():
                    of = same.get(source, source)
                    found[tensor].append(Reading(number[name], k, of, parts[source][tensor], sizes[source]))
        elif _in_place(operator):
            same[name] = same.get(operator.inputs[0], operator.inputs[0])
    return tuple(Outside(name, sizes[name], tuple(readings)) for name, readings in found.items())
