"""A network as the tensors that lie off the chip: feature maps with the time they are needed, and the weights.

Time is the number of the operator that runs. A map is there from the operator that makes it (inputs of the network:
from the begin) until the last one that reads it (results of the network: until the end). Element-wise operators of one
input and reshapes leave a map where it is; what is concatenated shares one place, which is there from its first part
on. Weights are there all the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from instances.network import Network
from instances.operators import Concat, Eltwise, Input, MatMul, Operator, Reshape
from instances.stores import Groups
from instances.workload import Layer


@dataclass(frozen=True)
class Tensor:
    """One map."""

    name: str
    """The operator that makes it, or the concatenation that it is part of."""
    elements: int
    """Of what layers make."""
    outside: int
    """Elements of what comes from outside the network."""
    first: int
    """The operator from which on it is there."""
    last: int
    """The last operator at which it is there."""


@dataclass(frozen=True)
class Use:
    """A layer with the numbers of the maps that it reads as IN and as W (None: constant weights), and writes."""

    layer: Layer
    reads: tuple[int, ...]
    weights: int | None
    writes: int


@dataclass(frozen=True)
class Tensors:
    """All maps and layers of a network; operators are numbered 0 to `last`."""

    maps: tuple[Tensor, ...]
    uses: tuple[Use, ...]
    last: int


def alone(layer: Layer) -> Tensors:
    """A layer by itself: its inputs, its result and, for a product of activations, its other input."""
    maps = [Tensor(f"input {k + 1} of {layer.name}", 0, layer.input_elements(k), 0, 0) for k in range(layer.inputs)]
    weights = None
    if layer.weights == "activation":
        weights = len(maps)
        maps.append(Tensor(f"weights of {layer.name}", 0, layer.g * layer.m * layer.n * layer.kh * layer.kw, 0, 0))
    maps.append(Tensor(layer.name, layer.b * layer.g * layer.m * layer.r * layer.c, 0, 0, 0))
    use = Use(layer, tuple(range(layer.inputs)), weights, len(maps) - 1)
    return Tensors(tuple(maps), (use,), 0)


def tensors(network: Network) -> Tensors:
    """Return the maps of a network, and which layer reads and writes which."""
    groups = Groups([o.name for o in network.operators])
    for operator in network.operators:
        if _in_place(operator):
            groups.join(operator.name, operator.inputs[0])
        elif isinstance(operator, Concat):
            for name in operator.inputs:
                groups.join(name, operator.name)
    roots = list(dict.fromkeys(groups.find(o.name) for o in network.operators))
    number = {o.name: roots.index(groups.find(o.name)) for o in network.operators}
    read = {name for o in network.operators for name in o.inputs}
    last = len(network.operators) - 1
    made, outside = [0] * len(roots), [0] * len(roots)
    begin, end = [last] * len(roots), [0] * len(roots)
    for time, operator in enumerate(network.operators):
        mine = number[operator.name]
        if isinstance(operator, Input):
            outside[mine] += prod(operator.shape)
        elif not (_in_place(operator) or isinstance(operator, Concat)):
            made[mine] += prod(operator.shape)
        begin[mine] = min(begin[mine], 0 if isinstance(operator, Input) else time)
        for at in (mine, *(number[name] for name in operator.inputs)):
            end[at] = max(end[at], time)
        if operator.name not in read:
            end[mine] = last
    maps = map(Tensor, roots, made, outside, begin, end)
    return Tensors(tuple(maps), tuple(_uses(network, number)), last)


def _in_place(operator: Operator) -> bool:
    return isinstance(operator, Reshape) or (isinstance(operator, Eltwise) and len(operator.inputs) == 1)


def _uses(network: Network, number: dict[str, int]) -> list[Use]:
    found = []
    for operator in network.operators:
        layer = operator.layer(network.input_shapes(operator))
        if layer is None:
            continue
        names: tuple[str, ...] = operator.inputs
        weights = None
        if isinstance(operator, MatMul) and len(names) == 2:
            weights = number[operator.inputs[1]]
            names = names[:1]
        found.append(Use(layer, tuple(dict.fromkeys(number[n] for n in names)), weights, number[operator.name]))
    return found
