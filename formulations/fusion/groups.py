"""Which layers may run together strip by strip, and the maps that they pass through a group.

A group is a run of layers a..b in the network's order. A **stream** is a map, or the part of one that a layer of the
group writes, while it passes through the group: from the layer that makes it (or, if it comes from outside, the first
that reads it) to the last that reads it. The path of an outside map that several layers of the group read is one
stream (it is kept until the last has read it) or one for each of them (it is read twice).

An outside map may be **sampled** where all its readers in the group are 1 x 1 windows that skip the same pixels: only
those that they read are loaded. The group then sees the network with these layers on a smaller map, stride 1
(`Net.sampled`), and rows and columns of the stream count the pixels that are loaded. No row of the map is on chip
beside the group: what stays has all its pixels.

A group is legal if
    a map that layers of the group write and read has rows of its own (`instances.network.stores.Store.whole` says which
    have not), and all its parts that are there by then are written in the group;
    no layer of it reads one map in two ways, broadcast along different dimensions, or several parts of one store from
    outside, which has one strip;
    nothing that must be complete before one of its layers begins (the right operand of a product, what an operator
    without a plan reads) is computed in it;
    strips of one height per step suit all its maps: walking through strides, every map has one rate.

What is broadcast along rows (columns alike) has one row for all rows of the layer that reads it:
    from outside, as a channel gate or a mask of one row, it does not advance: its rate is 0. It is loaded in the first
    step, and held until its last reader has made its last row; where nothing is kept from step to step it is loaded in
    each;
    made in the group, its row is there for the first row of R that are made of it: its rate is 1 / R of its reader's.
    Only strips of all R rows give whole rows: a gate needs the whole map before its first reader runs. With less high
    strips it is made before the group: a cut there leaves the map on chip just as well.
Along an axis where it has as many rows as its reader it is like any other map: the mean of each row over its columns is
a map of one column that moves along rows, and strips of full width may make it and read it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from instances.machine.machine import Machine
from instances.measured import Profile, timed
from instances.network.network import Network
from instances.network.stores import Stores, stores
from instances.network.stores import barriers as _barriers
from instances.network.workload import Layer

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Axis = Literal["rows", "columns"]
#: More bytes than anything moves.
NEVER = 2**60
#: What a map advances by while the last one of its group advances by one.
Rate = int | Fraction
AXES: tuple[Axis, Axis] = ("rows", "columns")


@dataclass(frozen=True)
class Window:
    """How a layer's outputs see its input along an axis: output x reads inputs x * stride - pad and reach - 1 more.

    `stride`: 0 of an input with one element for all outputs.
    """

    reach: int
    stride: int
    pad: int
    inputs: int
    outputs: int


def window(layer: Layer, axis: Axis, lacks: str = "") -> Window:
    """Return the window; a layer with one output moves by the whole map.

    `lacks`: the dimensions along which the input has one element only.
    """
    if axis[0] in lacks:
        return Window(1, 0, 0, 1, layer.r if axis == "rows" else layer.c)
    if axis == "rows":
        reach, stride = (layer.kh - 1) * layer.dilation_h + 1, layer.stride_h
        pad, inputs, outputs = layer.pad_top, layer.h, layer.r
    else:
        reach, stride = (layer.kw - 1) * layer.dilation_w + 1, layer.stride_w
        pad, inputs, outputs = layer.pad_left, layer.l, layer.c
    return Window(reach, max(stride, inputs) if outputs == 1 else stride, pad, inputs, outputs)


@dataclass(frozen=True)
class Stream:
    """A map, or a part of it, on its way through a group."""

    store: int
    maker: int
    """The layer that makes it; of an outside map the first that reads it."""
    readers: tuple[int, ...]
    """The layers of the group that read it, ascending."""
    outside: bool
    """Whether it is read from outside the group."""
    result: bool
    """Whether somebody outside the group uses what the group makes of it."""
    pixel: int
    """Bytes of one row and column of it."""

    @property
    def last(self) -> int:
        """The layer after which nothing of it is needed."""
        return max((self.maker, *self.readers))


@dataclass(frozen=True, eq=False)
class Group:
    """Layers `first` to `last` with the streams between them.

    `twice`: outside maps with a stream for each reader. `sampled`: outside maps of which only those pixels are loaded
    that are read (`sampleable`); `net` is the network as its layers see it then.
    """

    net: Net
    first: int
    last: int
    twice: frozenset[int] = frozenset()
    sampled: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if self.sampled:
            steps = frozenset(t for t in self.layers if self.sampled.intersection(self.net.reads[t]))
            object.__setattr__(self, "net", self.net.sampled(steps))

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
                pixel = max(net.operand(u, store).elements for u in some) * net.element_bytes
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

    @cached_property
    def sampleable(self) -> frozenset[int]:
        """The outside stores of which all its readers skip the same pixels."""
        found = set[int]()
        for store in self.outside:
            readers = [t for t in self.layers if store in self.net.reads[t]]
            windows = {(one.h, one.l, one.stride_h, one.stride_w) for one in (self.net.layers[t] for t in readers)}
            if len(windows) == 1 and all(map(self.net.skips, readers)):
                found.add(store)
        return frozenset(found)

    @property
    def alike(self) -> bool:
        """Whether all readers of a map from outside that is loaded once for them see the same rows and columns."""
        seen = self.net.operand
        return all(len({seen(u, s.store)[2:] for u in s.readers}) == 1 for s in self.streams if s.outside)

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
        if any(net.layers[t].broadcast and net.unlike(t) for t in self.layers):
            return False
        if any(t in self.layers and store not in self.made for t, store in net.apart):
            return False
        for t in self.layers:
            for store in set(net.reads[t]) & self.made:
                parts = [p for p, _ in net.stores[store].parts if p < t]
                made = [net.layers[p] for p in parts]
                elements = net.operand(t, store).elements * net.apart.get((t, store), 1)
                if elements > sum(x.b * x.g * x.m for x in made):  # the rest comes from outside
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
        moves = [
            (net.writes[t], s, stride if stride >= 1 or s in self.made else 0)
            for t in self.layers
            for s, stride in strides[t].items()
        ]
        changed = True
        while changed:
            changed = False
            for out, source, stride in reversed(moves):
                changed |= (out in rate) != (source in rate) and (out in rate or stride > 0)
                if out in rate and rate.setdefault(source, rate[out] * stride) != rate[out] * stride:
                    return None
                if source in rate and out not in rate and stride > 0:
                    rate[out] = _over(rate[source], stride)
        return rate if all(rate.get(s, 0) > 0 for s in self.made) and all(s in rate for s in self.outside) else None


class Net(Stores):
    """The layers and stores of a network on a machine, and what must be complete before each layer."""

    barriers: tuple[int, ...]
    element_bytes: int
    sum_bytes: int
    strides: dict[Axis, tuple[dict[int, Rate], ...]]
    """What every layer's stores advance by while its result advances by one; 1 / R where one row is there for R."""
    rates: dict[tuple[int, int, Axis], dict[int, Rate] | None]
    views: dict[frozenset[int], Net]
    """The same with inputs of some layers sampled, by these (`sampled`)."""

    @classmethod
    def read(cls, network: Network, machine: Machine, profile: Profile | None = None) -> Net:
        """Read a network with times of its layers; raises InputError if it has no layers, or these do not fit."""
        found = timed(stores(network), machine, profile)
        net = cls(**vars(found))
        object.__setattr__(net, "barriers", tuple(_barriers(network, net)))
        object.__setattr__(net, "element_bytes", machine.out_bytes)
        object.__setattr__(net, "sum_bytes", max(machine.psum_bytes, machine.out_bytes))
        net._begin()
        return net

    def _begin(self) -> None:
        """Find the strides of all layers; nothing else is known."""
        steps = range(len(self.layers))
        object.__setattr__(self, "strides", {axis: tuple(self._strides(t, axis) for t in steps) for axis in AXES})
        object.__setattr__(self, "rates", {})
        object.__setattr__(self, "views", {})

    def sampled(self, steps: Collection[int]) -> Net:
        """As of all stores; each view is made once."""
        some = frozenset(steps).difference(self.pitch)
        if some and some not in self.views:
            view = super().sampled(some)
            object.__setattr__(view, "element_bytes", self.element_bytes)
            object.__setattr__(view, "sum_bytes", self.sum_bytes)
            view._begin()
            self.views[some] = view
        return self.views[some] if some else self

    def window(self, step: int, store: int, axis: Axis) -> Window:
        """How a layer's outputs see a store that it reads."""
        return window(self.layers[step], axis, self.operand(step, store).lacks)

    def _strides(self, step: int, axis: Axis) -> dict[int, Rate]:
        windows = {store: self.window(step, store, axis) for store in set(self.reads[step])}
        return {store: one.stride or Fraction(1, one.outputs) for store, one in windows.items()}

    def in_place(self, step: int) -> tuple[int, ...]:
        """The maps in whose place a layer may put its result, by store.

        It is the last to read them, element by element for the same element of its result: a sum, a product.
        """
        layer, made = self.layers[step], self.stores[self.writes[step]]
        around = layer.kh, layer.kw, layer.stride_h, layer.stride_w, layer.m, layer.n
        if layer.weights != "none" or around != (1,) * 6 or (layer.h, layer.l) != (layer.r, layer.c):
            return ()
        if made.whole or [t for t, _ in made.parts] != [step] or self.unlike(step):
            return ()
        read = (s for s in dict.fromkeys(self.reads[step]) if not self.operand(step, s).lacks)
        return tuple(s for s in read if self._gives_place(s, step))

    def _gives_place(self, store: int, step: int) -> bool:
        """Whether a map has the rows of a layer's result, and is read as a whole, for the last time, by that layer.

        A result of the network may still be on its way to DRAM then.
        """
        mine, made = self.stores[store], self.stores[self.writes[step]]
        alike = (mine.rows, mine.row_elements) == (made.rows, made.row_elements)
        read = mine.readers[-1] == step and (step, store) not in self.apart
        return alike and read and not (mine.whole or mine.zeros or mine.results)

    def streams_unlike(self, store: int) -> bool:
        """Whether the layers that read a store see other rows or columns than those that write it."""
        written = {(self.layers[t].r, self.layers[t].c) for t, _ in self.stores[store].parts}
        read = {self.operand(t, store)[2:] for t in self.stores[store].readers}
        return len(written | read) > 1


def _over(rate: Rate, stride: Rate) -> Rate:
    """A rate over a stride; numbers stay integers where they can, as fractions are slow."""
    return rate // stride if isinstance(rate, int) and rate % stride == 0 else Fraction(rate) / stride
