"""What a network reads and writes, counted element by element over its operators, without layers, stores or nests.

Every element that an operator makes, or that comes from outside, has a number of its own; 0 is padding, which nobody
reads or writes. Operators that only move a map hand on the numbers. What a layer reads is a set of numbers, whichever
of its operands they stand in. An example: a 3x1 kernel with a row of padding on both sides of a map of one row reads
the numbers {0, 1}, an element.

Claims about whole networks are held against these sets, where the adversaries of problems believe the layers and stores
that the formulations have, too: an operand that is not one, weights once for every layer, padding that counts, and a
result that is not written would be the same on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from formulations.compulsory import compulsory_bytes
from hwmodels.nest.price.limits import tensor_bytes
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, MatMul, Operator, Pool, Reshape
from instances.network.stores import stores

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Layered:
    """An operator that computes: the numbers that it reads of every operand, and those of its result."""

    name: str
    reads: tuple[frozenset[int], ...]
    padded: bool
    """Whether a map that it reads was padded before, or has elements twice."""
    writes: frozenset[int]
    weights: tuple[str, int]
    """The tensor that it multiplies by, and its elements; none of operators without weights."""
    biases: int
    right: frozenset[int] = frozenset()
    """The numbers of a right operand that is a map: they have the bytes of weights."""
    skips: bool = False
    """Whether its windows leave out some of a map."""

    @property
    def exact(self) -> bool:
        """Whether no less may be said: what is padded is not skipped, no right operand is another one as well."""
        return not (self.padded and self.skips) and not any(one & self.right for one in self.reads)


class Elements:
    """The elements of a network of convolutions, pools, element-wise operators, products with weights, and moves."""

    def __init__(self, network: Network, machine: Machine) -> None:
        self.network, self.machine = network, machine
        self.numbers: dict[str, Numbers] = {}
        self.outside: set[int] = set()
        self.layers: list[Layered] = []
        self._next = 1
        for operator in network.operators:
            self._operator(operator, [self.numbers[name] for name in operator.inputs])

    # ---- what is counted ---------------------------------------------------------------------------------------------

    @cached_property
    def results(self) -> frozenset[int]:
        """The elements made by layers that are results of the network, whoever else reads them."""
        read = {name for operator in self.network.operators for name in operator.inputs}
        sinks = [self.numbers[o.name] for o in self.network.operators if o.name not in read]
        return frozenset(n for one in sinks for n in one.ravel().tolist()) - self.outside - {0}

    @property
    def constant_bytes(self) -> int:
        """Weights, every tensor once, and biases."""
        tensors = dict(layer.weights for layer in self.layers if layer.weights[1])
        biases = sum(layer.biases for layer in self.layers) * self.machine.bias_bytes
        return sum(tensors.values()) * self.machine.w_bytes + biases

    @property
    def once(self) -> int:
        """Bytes where all that layers make stays on chip, and every layer reads what comes from outside for itself."""
        return self._bytes(sum(self._read_by(layer, self.outside) for layer in self.layers))

    @property
    def least(self) -> int:
        """The same where what comes from outside is read once, whoever needs it."""
        return self._bytes(self._read(self.layers, self.outside))

    @property
    def plain(self) -> bool:
        """Whether what must move is the least, and no less may be said.

        All that layers make is read or a result, so nothing of it may be left out; what is padded is not skipped, and
        what is a right operand is no other one as well.
        """
        maps, right = _read_of(self.layers)
        whole = all(layer.writes <= maps | right | self.results for layer in self.layers)
        return whole and not maps & right and not any(one.padded and one.skips for one in self.layers)

    def distinct(self, layer: Layered) -> int:
        """Bytes of a layer by itself, every element once."""
        return self._read([layer]) + self._own(layer)

    def alone(self, layer: Layered) -> int:
        """The same, each of its operands once."""
        return self._read_by(layer) + self._own(layer)

    def _own(self, layer: Layered) -> int:
        """Weights, biases and results."""
        machine = self.machine
        own = layer.weights[1] * machine.w_bytes + layer.biases * machine.bias_bytes
        return own + len(layer.writes) * machine.out_bytes

    def _read(self, layers: Sequence[Layered], among: Set[int] | None = None) -> int:
        """Bytes of different elements that some layers read."""
        maps, right = (one if among is None else one & among for one in _read_of(layers))
        sizes = self.machine.in_bytes, self.machine.w_bytes
        return len(maps) * sizes[0] + len(right) * sizes[1] - len(maps & right) * min(sizes)

    def _read_by(self, layer: Layered, among: Set[int] | None = None) -> int:
        """Bytes that a layer reads, each of its operands once."""
        parts = [replace(layer, reads=(one,), right=frozenset()) for one in layer.reads]
        return sum(self._read([one], among) for one in (*parts, replace(layer, reads=())))

    def _bytes(self, read: int) -> int:
        return self.constant_bytes + read + len(self.results) * self.machine.out_bytes

    # ---- operators ---------------------------------------------------------------------------------------------------

    def _operator(self, operator: Operator, given: Sequence[Numbers]) -> None:
        if isinstance(operator, Concat):
            made = np.concatenate(list(given), operator.axis)
        elif isinstance(operator, Reshape):
            made = _moved(operator, given[0])
        elif isinstance(operator, Eltwise) and len(given) == 1:
            made = given[0]
        else:
            made = np.arange(self._next, self._next + prod(operator.shape)).reshape(operator.shape)
            self._next += made.size
        self.numbers[operator.name] = made
        if isinstance(operator, Input):
            self.outside.update(made.ravel().tolist())
        elif not isinstance(operator, Concat | Reshape) and made is not given[0]:
            some = [_seen(operator, one) for one in given]
            seen = [frozenset(one.ravel().tolist()) for one in some]
            reads, padded = [one - {0} for one in seen], any(_uneven(one) for one in given)
            right = reads.pop() if isinstance(operator, MatMul) and len(given) > 1 else frozenset[int]()
            self.layers.append(Layered(
                operator.name, tuple(reads), padded, frozenset(made.ravel().tolist()), *_constants(operator, given),
                right, any(one.size < whole.size for one, whole in zip(some, given, strict=True)),
            ))  # fmt: skip


def _read_of(layers: Sequence[Layered]) -> tuple[frozenset[int], frozenset[int]]:
    """The elements that layers read as maps, and as right operands."""
    empty = frozenset[int]()
    return empty.union(*(one for layer in layers for one in layer.reads)), empty.union(*(x.right for x in layers))


def _uneven(given: Numbers) -> bool:
    """Whether a map has padding in it, or an element twice."""
    found, many = np.unique(given, return_counts=True)
    return bool(found[0] == 0 or many.max() > 1)


def _moved(operator: Reshape, given: Numbers) -> Numbers:
    """The numbers where an operator puts them; what it pads with stands behind."""
    if operator.fn == "transpose":
        raise ValueError(f"{operator.name}: how it transposes is not known")
    flat = np.zeros(prod(operator.shape), np.int64)
    if operator.fn == "pad" and len(operator.shape) == given.ndim:
        made = flat.reshape(operator.shape)
        made[tuple(slice(size) for size in given.shape)] = given
        return made
    size = min(flat.size, given.size)
    flat[:size] = given.ravel()[:size]
    return flat.reshape(operator.shape)


def _seen(operator: Operator, given: Numbers) -> Numbers:
    """What an operator reads of an operand: all, or what its windows reach."""
    if not isinstance(operator, Conv | Pool) or operator.kernel is None:
        return given
    reached = [
        {at for start in range(size) for tap in range(taps) if 0 <= (at := start * step - pad + tap * apart) < extent}
        for size, taps, step, pad, apart, extent in zip(
            operator.shape[2:], operator.kernel, operator.stride, operator.pad[:2], operator.dilation, given.shape[2:],
            strict=True,
        )
    ]  # fmt: skip
    return given[:, :, sorted(reached[0])][:, :, :, sorted(reached[1])]


def _constants(operator: Operator, given: Sequence[Numbers]) -> tuple[tuple[str, int], int]:
    """The tensor of weights with its elements, and biases."""
    if isinstance(operator, Conv):
        size = operator.filters * given[0].shape[1] // operator.groups * prod(operator.kernel)
        return (operator.weights_of or operator.name, size), operator.filters * operator.bias
    if isinstance(operator, MatMul) and len(given) == 1:
        size = given[0].shape[-1] * operator.shape[-1]
        return (operator.weights_of or operator.name, size), operator.shape[-1] * operator.bias
    return ("", 0), 0


def miscounted(network: Network, machine: Machine) -> list[str]:
    """What is said to move at least, of layers by themselves and of all of them, and is not what their elements are."""
    found, counted = stores(network), Elements(network, machine)
    faults = []
    for layer, bare, mine in zip(network.layers, found.layers, counted.layers, strict=True):
        said, right = sum(tensor_bytes(bare, machine).values()), counted.alone(mine)
        if said < right or (said > right and not mine.padded):
            faults.append(f"{mine.name} is said to move {said}, its elements are {right}")
        said, right = sum(tensor_bytes(layer, machine).values()), counted.distinct(mine)
        if said > right or (said < right and mine.exact):
            faults.append(f"{mine.name} is said to move {said} at least, its different elements are {right}")
    said = compulsory_bytes(found, machine)
    if said > counted.least or (counted.plain and not found.copied and said < counted.least):
        faults.append(f"{said} bytes are said to move at least, what is read and made are {counted.least}")
    return faults
