"""Which layers may run together strip by strip, and the maps that they pass through a group.

A group is a run of layers a..b in the network's order. A **stream** is a map, or the part of one that a layer of the
group writes, while it passes through the group: from the layer that makes it (or, if it comes from outside, the first
that reads it) to the last that reads it. The path of an outside map that several layers of the group read is one
stream (it is kept until the last has read it) or one for each of them (it is read twice).

A group is legal if
    a map that layers of the group write and read has rows of its own (`instances.stores.Store.whole` says which have
    not), and all its parts that are there by then are written in the group;
    none of its layers has inputs that are broadcast: these run by themselves;
    nothing that must be complete before one of its layers begins (the right operand of a product, what an operator
    without a plan reads) is computed in it;
    strips of one height per step suit all its maps: walking through strides, every map has one rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from instances.machine import Machine
from instances.network import Network
from instances.stores import Stores, stores
from instances.stores import barriers as _barriers
from instances.workload import Layer

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Axis = Literal["rows", "columns"]
#: What a map advances by while the last one of its group advances by one.
Rate = int | Fraction
AXES: tuple[Axis, Axis] = ("rows", "columns")


@dataclass(frozen=True)
class Window:
    """How a layer's outputs see its input along an axis: output x reads inputs x * stride - pad and reach - 1 more."""

    reach: int
    stride: int
    pad: int
    inputs: int
    outputs: int


def window(layer: Layer, axis: Axis) -> Window:
    """Return the window; a layer with one output moves by the whole map."""
    if axis == "rows":
        reach, stride = (layer.kh - 1) * layer.dilation_h + 1, layer.stride_h
        pad, inputs, outputs = layer.pad_top, layer.h, layer.r
    else:
        reach, stride = (layer.kw - 1) * layer.dilation_w + 1, layer.stride_w
        pad, inputs, outputs = layer.pad_left, layer.l, layer.c
    return Window(reach, max(stride, inputs) if outputs == 1 else stride, pad, inputs, outputs)


@dataclass(frozen=True)
class Stream:
    """A map, or a part of it, on its way through a group.

    Attributes
    ----------
    store : int
    maker : int
        The layer that makes it; of an outside map the first that reads it.
    readers : tuple of int
        The layers of the group that read it, ascending.
    outside : bool
        Whether it is read from outside the group.
    result : bool
        Whether somebody outside the group uses what the group makes of it.
    pixel : int
        Bytes of one row and column of it.
    """

    store: int
    maker: int
    readers: tuple[int, ...]
    outside: bool
    result: bool
    pixel: int

    @property
    def last(self) -> int:
        """The layer after which nothing of it is needed."""
        return max((self.maker, *self.readers))


@dataclass(frozen=True, eq=False)
class Group:
    """Layers `first` to `last` with the streams between them; `twice`: outside maps with a stream for each reader."""

    net: Net
    first: int
    last: int
    twice: frozenset[int] = frozenset()

    @property
    def layers(self) -> range:
        """Its layers by number."""
        return range(self.first, self.last + 1)

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        """The streams: of every layer, then from outside."""
        net, made = self.net, []
        for t in self.layers:
            store = net.writes[t]
            readers = tuple(u for u in range(t + 1, self.last + 1) if store in net.reads[u])
            layer = net.layers[t]
            pixel = layer.b * layer.g * layer.m * net.element_bytes
            made.append(Stream(store, t, readers, False, self.used_after(store) or not readers, pixel))
        for store in self.outside:
            readers = tuple(u for u in self.layers if store in net.reads[u])
            for some in [(u,) for u in readers] if store in self.twice else [readers]:
                seen = [net.layers[u] for u in some]
                pixel = max(layer.b * layer.g * layer.n for layer in seen) * net.element_bytes
                made.append(Stream(store, some[0], some, True, False, pixel))
        return tuple(made)

    @cached_property
    def owners(self) -> tuple[int, ...]:
        """For every layer by its place in the group the first one that has its weights and biases, itself if none."""
        net, first = self.net, dict[int, int]()
        owners = []
        for k, t in enumerate(self.layers):
            tensor = net.shared[t] if net.shared else -1
            alike = tensor >= 0 and net.stores[tensor].biases is not None
            owners.append(first.setdefault(tensor, k) if alike else k)
        return tuple(owners)

    def together(self, visits: Sequence[int]) -> tuple[int, ...]:
        """In how many visits weights are needed, by the first layer that has them; 0 for the others."""
        every = [0] * len(visits)
        for owner, number in zip(self.owners, visits, strict=True):
            every[owner] += int(number)
        return tuple(every)

    @cached_property
    def made(self) -> frozenset[int]:
        """The stores that its layers write."""
        return frozenset(self.net.writes[t] for t in self.layers)

    @cached_property
    def outside(self) -> tuple[int, ...]:
        """The stores that it reads and does not write, in the order of reading."""
        read = (s for t in self.layers for s in self.net.reads[t])
        return tuple(dict.fromkeys(s for s in read if s not in self.made))

    @cached_property
    def shared(self) -> frozenset[int]:
        """The outside stores that several of its layers read."""
        return frozenset(s for s in self.outside if sum(s in self.net.reads[t] for t in self.layers) > 1)

    @property
    def alike(self) -> bool:
        """Whether all readers of a map from outside that is loaded once for them see the same rows and columns."""
        layers = self.net.layers
        return all(len({(layers[u].h, layers[u].l) for u in s.readers}) == 1 for s in self.streams if s.outside)

    def used_after(self, store: int) -> bool:
        """Whether somebody outside the group needs what it makes of a store."""
        mine = self.net.stores[store]
        return mine.dram or mine.results > 0 or mine.readers[-1:] > (self.last,) or not mine.readers

    @cached_property
    def legal(self) -> bool:
        """Whether it may run strip by strip, but for rates."""
        net = self.net
        if any(net.barriers[t] >= self.first for t in self.layers):
            return False
        if any(net.layers[t].broadcast for t in self.layers):
            return False
        for t in self.layers:
            for store in set(net.reads[t]) & self.made:
                parts = [p for p, _ in net.stores[store].parts if p < t]
                seen, made = net.layers[t], [net.layers[p] for p in parts]
                if seen.b * seen.g * seen.n > sum(x.b * x.g * x.m for x in made):  # the rest comes from outside
                    return False
                if net.stores[store].whole or any(p < self.first for p in parts) or net.streams_unlike(store):
                    return False
        return True

    def rates(self, axis: Axis) -> dict[int, Rate] | None:
        """Rows (columns) of every store that a step advances for one of the last layer's; None if they are unlike."""
        key = self.first, self.last, axis
        if key not in self.net.rates:
            self.net.rates[key] = self._rates(axis)
        return self.net.rates[key]

    def _rates(self, axis: Axis) -> dict[int, Rate] | None:
        net = self.net
        rate: dict[int, Rate] = {net.writes[self.last]: 1}
        strides = net.strides[axis]
        moves = [(net.writes[t], s, strides[t]) for t in self.layers for s in set(net.reads[t])]
        changed = True
        while changed:
            changed = False
            for out, source, stride in reversed(moves):
                changed |= (out in rate) != (source in rate)
                if out in rate and rate.setdefault(source, rate[out] * stride) != rate[out] * stride:
                    return None
                if source in rate and out not in rate:
                    rate[out] = _over(rate[source], stride)
        return rate if all(s in rate for s in (*self.made, *self.outside)) else None


class Net(Stores):
    """The layers and stores of a network on a machine, and what must be complete before each layer."""

    barriers: tuple[int, ...]
    element_bytes: int
    sum_bytes: int
    strides: dict[Axis, tuple[int, ...]]
    rates: dict[tuple[int, int, Axis], dict[int, Rate] | None]

    @classmethod
    def read(cls, network: Network, machine: Machine) -> Net:
        """Read a network; raises InputError if it has no layers."""
        found = stores(network)
        net = cls(**vars(found))
        object.__setattr__(net, "barriers", tuple(_barriers(network, net)))
        object.__setattr__(net, "element_bytes", machine.out_bytes)
        object.__setattr__(net, "sum_bytes", max(machine.psum_bytes, machine.out_bytes))
        strides = {axis: tuple(window(layer, axis).stride for layer in net.layers) for axis in AXES}
        object.__setattr__(net, "strides", strides)
        object.__setattr__(net, "rates", {})
        return net

    def streams_unlike(self, store: int) -> bool:
        """Whether the layers that read a store see other rows or columns than those that write it."""
        written = {(self.layers[t].r, self.layers[t].c) for t, _ in self.stores[store].parts}
        read = {(self.layers[t].h, self.layers[t].l) for t in self.stores[store].readers}
        return len(written | read) > 1


def _over(rate: Rate, stride: int) -> Rate:
    """A rate over a stride; numbers stay integers where they can, as fractions are slow."""
    return rate // stride if isinstance(rate, int) and rate % stride == 0 else Fraction(rate) / stride
