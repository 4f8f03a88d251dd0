"""How many elements of what a layer reads are different ones: whatever moves, pads and joins maps on the way to it.

An example: a map of 8 x 8 elements gets a column of copies on each side before a layer reads it. The layer sees 80
elements, 16 of which are none of the map's: what it must read are 64. `copies_of` says so of a layer by itself,
`outside` of what comes from outside a network, which several layers may read.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import NamedTuple

from instances.network.operators import (
    GRID,
    Concat,
    Correlation,
    Eltwise,
    Input,
    MatMul,
    Opaque,
    Operator,
    Resample,
    Reshape,
)
from instances.network.workload import Layer

#: The right operand of a product, where an input has a number.
RIGHT = -1


#: The operator that is cut, and along every axis the first index, how many there are, and from one to the next.
Box = tuple[str, tuple[tuple[int, int, int], ...]]


class Part(NamedTuple):
    """Different elements that an operator's result holds."""

    tensors: frozenset[str]
    """What layers make, or comes from outside: the elements are of these."""
    least: int
    """So many of them at least."""
    among: int
    """They lie among so many elements of the result, of which every pixel has as many."""
    boxes: tuple[Box, ...] = ()
    """Slices that all of them are from, one cut from the other; empty: not known."""
    operand: int = 0
    """The number of the operand that it is, where it is one of a layer's."""


#: What the result of every operator holds, parts that have no element in common.
Held = Mapping[str, tuple[Part, ...]]


@dataclass(frozen=True)
class Reading:
    """An operand of a layer that holds what comes from outside."""

    layer: int
    operand: int
    """The number of the input, or `RIGHT`."""
    of: str
    """What is read: the same name means the same elements at the same places."""
    part: Part
    """What the operand holds; the other elements are padding, copies, other parts."""
    size: int
    """Elements of the operator whose result is read; of a grid those that the operand has."""


def sources_of(operator: Operator, shapes: Sequence[Sequence[int]], layer: Layer) -> tuple[str, ...]:
    """Return the operators whose results a layer reads as IN, one for each input; no right operand of a product."""
    if isinstance(operator, MatMul):
        return operator.inputs[:1]
    if isinstance(operator, Resample) and operator.scattered([tuple(shape) for shape in shapes]):
        grids = operator.inputs[1:] * GRID
        return (*grids, *operator.inputs[:1] * (layer.inputs - len(grids)))
    return operator.inputs


def _seen(operator: Operator, k: int, part: Part) -> Part:
    """What operand k holds of a part of what it reads: of a grid one number of every pixel."""
    if not isinstance(operator, Resample) or len(operator.inputs) == 1 or k >= GRID:
        return part
    batch, _, rows, columns = operator.shape
    size = batch * rows * columns
    box = (operator.inputs[1], ((0, batch, 1), (0, rows, 1), (0, columns, 1), (k, 1, 1)))
    return part._replace(least=max(0, part.least - (GRID - 1) * size), among=size, boxes=(*part.boxes, box))


def held(operators: Sequence[Operator], layers: frozenset[str], *, made: bool = True) -> Held:
    """Return what the result of every operator holds of what comes from outside and, if `made`, of what layers make.

    Zeros are nothing.
    """
    found: dict[str, tuple[Part, ...]] = {}
    sizes: dict[str, int] = {}
    for operator in operators:
        name = operator.name
        size = sizes[name] = prod(operator.shape)
        if name in layers or isinstance(operator, Input | Opaque):
            nothing = (isinstance(operator, Input) and operator.zeros) or (name in layers and not made)
            found[name] = () if nothing else (Part(frozenset((name,)), size, size),)
        elif isinstance(operator, Concat):
            beside = operator.axis == 1 and len(operator.shape) == 4
            every = apart([part for source in operator.inputs for part in found[source]])
            found[name] = tuple(part if beside else part._replace(among=size) for part in every)
        elif _in_place(operator):
            found[name] = found[operator.inputs[0]]
        else:
            found[name] = _moved(operator, found[operator.inputs[0]], sizes[operator.inputs[0]], size)
    return found


def _moved(operator: Operator, parts: tuple[Part, ...], before: int, after: int) -> tuple[Part, ...]:
    """What is left when elements are turned, padded or cut off: of several parts in all, as none has to keep any."""
    if after >= before or not parts:
        return tuple(part._replace(among=after) for part in parts)
    least = sum(part.least for part in parts)
    boxes = parts[0].boxes if len(parts) == 1 else ()
    if least == before and isinstance(operator, Reshape) and operator.starts:  # nothing is in it twice
        steps = operator.steps or (1,) * len(operator.shape)
        boxes = (*boxes, (operator.inputs[0], tuple(zip(operator.starts, operator.shape, steps, strict=True))))
    tensors = frozenset[str]().union(*(part.tensors for part in parts))
    return (Part(tensors, max(0, least - (before - after)), after, boxes),)


def apart(parts: Iterable[Part]) -> list[Part]:
    """Return parts that have no element in common: the largest, and those that are of others or lie apart from it."""
    kept: list[Part] = []
    of: dict[str, list[Part]] = {}
    for part in sorted(parts, key=lambda part: -part.least):
        others = [other for tensor in part.tensors for other in of.get(tensor, ())]
        if all(any(_disjoint(a, b) for a in part.boxes for b in other.boxes) for other in others):
            kept.append(part)
            for tensor in part.tensors:
                of.setdefault(tensor, []).append(part)
    return kept


def _disjoint(one: Box, two: Box) -> bool:
    """Whether two slices of one operator have no element in common: along some axis no index."""
    return one[0] == two[0] and any(
        a + (n - 1) * s < b or b + (m - 1) * t < a or (a - b) % gcd(s, t) > 0
        for (a, n, s), (b, m, t) in zip(one[1], two[1], strict=True)
    )


def _in_place(operator: Operator) -> bool:
    """Whether every element stays where it is."""
    return isinstance(operator, Eltwise) or (isinstance(operator, Reshape) and operator.fn == "identity")


def copies_of(layer: Layer, operator: Operator, shapes: Sequence[Sequence[int]], parts: Held) -> tuple[int, ...]:
    """Return of every operand of a layer how many elements are padding or copies (`Layer.copies`).

    The operator becomes the layer, its inputs have these shapes; `parts` is what all operators hold (`held`).
    """
    if isinstance(operator, Correlation):
        return ()
    total = {name: prod(shape) for name, shape in zip(operator.inputs, shapes, strict=True)}
    reads = [(name, layer.input_elements(k)) for k, name in enumerate(sources_of(operator, shapes, layer))]
    if layer.weights == "activation":
        reads.append((operator.inputs[1], layer.weight_elements))
    pieces = [
        _seen(operator, k, part)._replace(least=max(0, min(size, total[name]) - (total[name] - part.least)), operand=k)
        for k, (name, size) in enumerate(reads)
        for part in parts[name]
    ]
    own = [0] * len(reads)
    for part in apart(pieces):
        own[part.operand] += part.least
    copies = tuple(size - min(size, mine) for (_, size), mine in zip(reads, own, strict=True))
    return copies if any(copies) else ()


def outside(
    operators: Sequence[Operator], layers: Sequence[str], reads: Sequence[Sequence[str]]
) -> tuple[Reading, ...]:  # fmt: skip
    """Return what layers read of what comes from outside, zeros left out: nothing reads them.

    `layers`: their names; `reads`: for each the operators that its inputs come from.
    """
    number = {name: t for t, name in enumerate(layers)}
    sizes = {operator.name: prod(operator.shape) for operator in operators}
    parts = held(operators, frozenset(layers), made=False)
    same: dict[str, str] = {}  # what leaves its map where it is -> what makes the map
    found: list[Reading] = []
    for operator in operators:
        name = operator.name
        if name in number:
            operands = dict(enumerate(reads[number[name]]))
            if isinstance(operator, MatMul) and len(operator.inputs) > 1:
                operands[RIGHT] = operator.inputs[1]
            for k, source in operands.items():
                of = same.get(source, source)
                for part in parts[source]:
                    seen = _seen(operator, k, part)
                    size = sizes[source] if seen is part else seen.among
                    found.append(Reading(number[name], k, of, seen, size))
        elif _in_place(operator):
            same[name] = same.get(operator.inputs[0], operator.inputs[0])
    return tuple(found)


def several_parts(
    operators: Sequence[Operator], layers: Sequence[str], reads: Sequence[Sequence[int]], names: Sequence[Sequence[str]]
) -> dict[tuple[int, int], int]:
    """Return for every layer and store of how many different parts the layer reads it, where they are several.

    Neighbours that elements read by themselves are parts, too. `reads` and `names`: by layer the stores of its inputs,
    and the operators; `layers`: the names of the layers.
    """
    known = {one.name: one for one in operators}
    parts: dict[tuple[int, int], set[tuple[Hashable, ...]]] = {}
    for t, (layer, read, given) in enumerate(zip(layers, reads, names, strict=True)):
        if len(set(read)) < len(read):
            for k, (store, name) in enumerate(zip(read, given, strict=True)):
                neighbour = (k,) if isinstance(known[layer], Resample) else ()
                parts.setdefault((t, store), set()).add((*_origin(known, name), *neighbour))
    return {key: len(some) for key, some in parts.items() if len(some) > 1}


def _origin(known: Mapping[str, Operator], name: str) -> tuple[Hashable, ...]:
    """What made a map, and how it was cut or moved since; functions of single elements change neither."""
    moves: list[Hashable] = []
    while True:
        operator = known[name]
        if isinstance(operator, Reshape):
            if operator.fn not in ("identity", "reshape"):
                where = operator.starts or name  # two moves that do not say where are taken for different ones
                moves.append((operator.fn, where, operator.steps, operator.shape))
        elif not (isinstance(operator, Eltwise) and len(operator.inputs) == 1):
            return (name, *moves)
        name = operator.inputs[0]
