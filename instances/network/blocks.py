"""Maps whose channels are stored, moved and computed in whole blocks (`Machine.channel_block`).

With blocks of N a map of C channels has ``N*ceil(C/N)``: those that fill the last block are zeros, which take the same
room, bytes and MACs as others, and so do the weights over them. NHCWB16 of Ethos-U has N = 16, the surfaces of NVDLA
8 or 32 bytes. The channels are the second axis of maps with rows and columns, the last one of matrices.

Not all maps can be: an image (a map from outside with fewer channels than a block) is read as it is, two maps that are
multiplied have no channels, groups of channels may end inside a block, moves of channels (slices, shuffles,
transposes) may begin there, and maps that are added up may have their zeros in other places (what is joined of parts
has them behind each part). Such maps stay as they are (where all have whole blocks anyway, that is no difference), and
with them all that are tied to them: a pool, a sum, a concatenation and a depthwise convolution read and make the same
channels. Layers by themselves follow the same rule: their input is from outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TypeVar, cast

from instances.network.network import Network
from instances.network.operators import (
    Concat,
    Conv,
    Correlation,
    Eltwise,
    Input,
    MatMul,
    Opaque,
    Operator,
    Reshape,
    Shape,
)
from instances.network.workload import Layer

T = TypeVar("T")


def in_blocks(target: T, block: int) -> T:
    """Return a network or a layer with its channels in whole blocks; other targets as they are."""
    if block > 1 and isinstance(target, Layer):
        return cast(T, _layer(target, block))
    return cast(T, _network(target, block)) if block > 1 and isinstance(target, Network) else target


def rounded(channels: int, block: int) -> int:
    """Channels of a map that is made in whole blocks."""
    return -(-channels // block) * block


def _layer(layer: Layer, block: int) -> Layer:
    """A layer by itself."""
    if layer.kind == "matmul" and layer.weights == "none":
        return layer
    if layer.m == layer.n == 1 and layer.g > 1:
        sizes = {"g": layer.g if layer.g < block else rounded(layer.g, block)}
    elif layer.g == 1:
        sizes = {"m": rounded(layer.m, block), "n": layer.n if layer.n < block else rounded(layer.n, block)}
    else:
        return layer
    return Layer.model_validate({**dict(layer), **sizes})


def _network(network: Network, block: int) -> Network:
    """A network, operator by operator."""
    plain = _plain(network, block)

    def fields(operator: Operator, given: Shape) -> dict[str, int]:
        if isinstance(operator, MatMul) and operator.out_features is not None and operator.name not in plain:
            return {"out_features": rounded(operator.out_features, block)}
        if not isinstance(operator, Conv):
            return {}
        if _depthwise(operator, network):
            return {"groups": given[1], "filters": given[1] * operator.filters // operator.groups}
        return {} if operator.name in plain else {"filters": rounded(operator.filters, block)}

    def scaled(operator: Operator, given: Shape) -> Shape:
        shape = operator.shape
        if not operator.inputs:
            return shape if operator.name in plain else _widened(shape, block)
        before = network.operator(operator.inputs[0]).shape
        if given == before:
            return shape
        return (given[0], prod(given[1:])) if _flattens(operator, before) else _at(shape, given[_axis(before)])

    return network.remade(scaled, f"channels in blocks of {block}", fields)


def _axis(shape: Shape) -> int:
    """Where the channels of a map are."""
    return 1 if len(shape) == 4 else len(shape) - 1


def _at(shape: Shape, channels: int) -> Shape:
    """A map with other channels."""
    axis = _axis(shape)
    return (*shape[:axis], channels, *shape[axis + 1 :])


def _widened(shape: Shape, block: int) -> Shape:
    """A map from outside in whole blocks; what is broadcast along the channels stays."""
    return _at(shape, rounded(shape[_axis(shape)], block)) if shape and shape[_axis(shape)] > 1 else shape


# ---- which maps are no blocks ----------------------------------------------------------------------------------------


def _plain(network: Network, block: int) -> set[str]:
    """The maps that stay as they are: by operator, with all that are tied to them."""
    tied = {operator.name: operator.name for operator in network.operators}

    def root(name: str) -> str:
        while tied[name] != name:
            tied[name] = tied[tied[name]]
            name = tied[name]
        return name

    for operator in network.operators:
        for name in operator.inputs if _ties(operator, network) else ():
            tied[root(name)] = root(operator.name)
    apart = {root(name) for operator in network.operators for name in _apart(operator, network, block)}
    while True:
        plain = {name for name in tied if root(name) in apart}
        more = {root(name) for name in _unlike(network, plain, block)}
        if more <= apart:
            return plain
        apart |= more


def _unlike(network: Network, plain: set[str], block: int) -> Iterator[str]:
    """The operators whose maps would have other channels than each other: sums, and what is joined elsewhere."""
    channels = dict[str, int]()
    for operator in network.operators:
        read = [channels[name] for name in operator.inputs]
        mine = operator.shape[_axis(operator.shape)] if operator.shape else 1
        joins = isinstance(operator, Concat) and operator.axis == _axis(operator.shape)
        if isinstance(operator, Eltwise | Concat) and not joins:
            if len({number for number in read if number > 1}) > 1:
                yield operator.name
            channels[operator.name] = max(read)
        elif operator.name in plain or (isinstance(operator, Input) and mine == 1):
            channels[operator.name] = mine
        elif joins:
            channels[operator.name] = sum(read)
        elif _ties(operator, network):
            before = network.operator(operator.inputs[0]).shape
            channels[operator.name] = read[0] * mine // before[_axis(before)]
        else:
            channels[operator.name] = rounded(mine, block)


def _depthwise(operator: Operator, network: Network) -> bool:
    """Whether each filter of a convolution reads one channel."""
    if not isinstance(operator, Conv) or operator.groups == 1:
        return False
    return operator.groups == network.operator(operator.inputs[0]).shape[1]


def _ties(operator: Operator, network: Network) -> bool:
    """Whether an operator makes the channels that it reads."""
    return not isinstance(operator, Input | Conv | MatMul | Correlation) or _depthwise(operator, network)


def _apart(operator: Operator, network: Network, block: int) -> Iterator[str]:
    """The maps that an operator reads or makes, and that have to stay as they are for it."""
    shapes: Mapping[str, Shape] = {name: network.operator(name).shape for name in operator.inputs}
    if isinstance(operator, Input):
        shape = operator.shape
        if shape and shape[_axis(shape)] < block and not operator.constant:
            yield operator.name
    elif (
        isinstance(operator, Correlation)
        or (isinstance(operator, MatMul) and len(shapes) > 1)
        or (isinstance(operator, Conv) and operator.groups > 1 and not _depthwise(operator, network))
    ):
        yield from (*shapes, operator.name)
    elif isinstance(operator, Reshape | Opaque) and shapes and not _follows(operator, next(iter(shapes.values()))):
        yield operator.name


def _flattens(operator: Operator, before: Shape) -> bool:
    """Whether a map becomes a row of a matrix."""
    return isinstance(operator, Reshape) and operator.shape == (before[0], prod(before[1:]))


def _follows(operator: Operator, before: Shape) -> bool:
    """Whether what moves elements, or is not known, leaves channels where they are, or makes one row of all."""
    after, axis = operator.shape, _axis(before)
    stays = isinstance(operator, Opaque) or (
        isinstance(operator, Reshape) and operator.fn in ("slice", "pad", "identity")
    )
    return _flattens(operator, before) or (stays and len(after) == len(before) and after[axis] == before[axis])
