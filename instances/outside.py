"""What comes from outside a network, and which layers read how much of it through whatever moves, pads and joins it.

An example: a map of 8 x 8 elements gets a column of copies on each side before a layer reads it. The layer sees 80
elements, 16 of which are none of the map's: what it must read are 64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from instances.operators import Concat, Eltwise, Input, MatMul, Opaque, Operator, Reshape

if TYPE_CHECKING:
    from instances.network import Network

#: The right operand of a product, where an input has a number.
RIGHT = -1


@dataclass(frozen=True)
class Reading:
    """An operand of a layer that holds what comes from outside."""

    layer: int
    operand: int
    """The number of the input, or `RIGHT`."""
    of: str
    """What is read: the same name means the same elements at the same places."""
    others: int
    """So many of its elements may be none of the tensor's: padding, copies, other parts."""


@dataclass(frozen=True)
class Outside:
    """A tensor that no layer makes."""

    name: str
    elements: int
    readings: tuple[Reading, ...]


def outside(
    network: Network, layers: Sequence[str], reads: Sequence[Sequence[str]]
) -> tuple[Outside, ...]:  # fmt: skip
    """Return what comes from outside, zeros left out: nothing reads them.

    Parameters
    ----------
    layers, reads
        The names of the layers, and for each the operators that its inputs come from.
    """
    number = {name: t for t, name in enumerate(layers)}
    held: dict[str, dict[str, int]] = {}  # of what an operator makes the least that is of each tensor
    same: dict[str, str] = {}  # what leaves its map where it is -> what makes the map
    found: dict[str, list[Reading]] = {}
    for operator in network.operators:
        name = operator.name
        if isinstance(operator, Input | Opaque):
            zeros = isinstance(operator, Input) and operator.zeros
            held[name] = {} if zeros else {name: prod(operator.shape)}
            found |= {} if zeros else {name: []}
        elif name in number:
            held[name] = {}
            operands = dict(enumerate(reads[number[name]]))
            if isinstance(operator, MatMul) and len(operator.inputs) > 1:
                operands[RIGHT] = operator.inputs[1]
            for k, source in operands.items():
                size = prod(network.operator(source).shape)
                for tensor, least in held[source].items():
                    found[tensor].append(Reading(number[name], k, same.get(source, source), size - least))
        else:
            held[name] = _moved(network, operator, held)
            if isinstance(operator, Eltwise) or (isinstance(operator, Reshape) and operator.fn == "identity"):
                same[name] = same.get(operator.inputs[0], operator.inputs[0])
    return tuple(Outside(name, prod(network.operator(name).shape), tuple(readings)) for name, readings in found.items())


def _moved(network: Network, operator: Operator, held: dict[str, dict[str, int]]) -> dict[str, int]:
    """What is left of every tensor when elements are moved, padded, cut off or joined."""
    before = [held[name] for name in operator.inputs]
    if isinstance(operator, Concat):  # a tensor may come in twice
        return {tensor: max(one.get(tensor, 0) for one in before) for one in before for tensor in one}
    cut = prod(network.operator(operator.inputs[0]).shape) - prod(operator.shape)
    return {tensor: max(0, least - max(0, cut)) for tensor, least in before[0].items()}
