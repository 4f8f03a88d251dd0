"""Where maps, weights and partial sums lie off the chip, and the runs of addresses of what is moved of them.

Tensors lie one after the other, each from a multiple of `ALIGNED` bytes on, in the layout that the machine says. The
parts of a map that is joined lie one behind the other, each by itself, as the layers make them; weights that several
layers read lie there once. Partial sums have a place of their own, as large as the result in their own bytes.

An example: 8 x 8 pixels of 4 channels of a byte (HWC) are 256 bytes. Rows 2 and 3 are a run of 64 bytes from byte 64
on, columns 0-3 of them two runs of 16 bytes, from bytes 64 and 96 on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from formulations.fusion.groups import Net
from instances.errors import InputError
from instances.machine.machine import Machine

Ints = NDArray[np.int64]
Span = tuple[int, int]
#: Bytes of the boundaries on which tensors begin: lines of caches and of most DRAM.
ALIGNED = 64
#: All that there is.
ALL = 0, 2**60
Kind = Literal["map", "sums", "weights"]


class Box(NamedTuple):
    """What is moved of a map, begin and end along each axis; channels are those of all groups, in several ranges."""

    rows: Span = ALL
    columns: Span = ALL
    channels: tuple[Span, ...] = (ALL,)
    images: Span = ALL


class Extent(NamedTuple):
    """The sizes of a map."""

    images: int
    rows: int
    columns: int
    channels: int

    @property
    def elements(self) -> int:
        """Of all images."""
        return prod(self)


def runs(extents: Sequence[int], spans: Sequence[Span], start: int, element: int) -> Ints:
    """Return runs of addresses, (N, 2) first byte and bytes each, of a box of a tensor, axes outermost first."""
    clipped = [(max(lo, 0), min(hi, extent)) for (lo, hi), extent in zip(spans, extents, strict=True)]
    if any(lo >= hi for lo, hi in clipped):
        return np.zeros((0, 2), np.int64)
    size, starts, whole = element, np.array([start], np.int64), True
    pitch = element
    for (lo, hi), extent in zip(reversed(clipped), reversed(extents), strict=True):
        if whole:
            starts, size = starts + lo * pitch, size * (hi - lo)
        else:
            starts = np.add.outer(np.arange(lo, hi) * pitch, starts).ravel()
        whole, pitch = whole and hi - lo == extent, pitch * extent
    return np.stack([starts, np.full_like(starts, size)], axis=1)


class Dram:
    """The places of all tensors of a network; raises InputError for biases that are moved with weights."""

    def __init__(self, net: Net, machine: Machine) -> None:
        self.net, self.machine = net, machine
        if machine.bias_bytes:
            raise InputError("biases have bytes: where they lie off the chip is not laid out")
        self.places: dict[tuple[Kind, int], Span] = {}
        """By map (store), layer whose partial sums they are, or first layer that has the weights: address and bytes."""
        self.end = 0
        for s, store in enumerate(net.stores):
            if store.readers or store.parts:
                self._add("map", s, sum(each.elements for _, each in self._parts(s)) * machine.out_bytes)
        for t, layer in enumerate(net.layers):
            if self._owner(t) == t and layer.weight_elements:
                self._add("weights", t, layer.weight_elements * machine.w_bytes)
            self._add("sums", t, self._made(t).elements * machine.psum_bytes)

    def _add(self, kind: Kind, number: int, size: int) -> None:
        self.places[kind, number] = self.end, size
        self.end += -(-size // ALIGNED) * ALIGNED

    def _owner(self, t: int) -> int:
        return self.net.weights_of[t] if self.net.weights_of else t

    def _made(self, t: int) -> Extent:
        layer = self.net.layers[t]
        return Extent(layer.b, layer.r, layer.c, layer.g * layer.m)

    def _read(self, t: int, s: int) -> Extent:
        """A map as a layer reads it."""
        seen = self.net.operand(t, s)
        images = 1 if "b" in seen.lacks else self.net.layers[t].b
        return Extent(images, seen.rows, seen.columns, seen.elements // images)

    def _parts(self, s: int) -> list[tuple[int, Extent]]:
        """The layers that make a map with what each makes; of what comes from outside what is read at the most."""
        store = self.net.stores[s]
        if store.weights:
            return []
        if store.parts:
            return [(t, self._made(t)) for t, _ in store.parts]
        return [(-1, max((self._read(t, s) for t in store.readers), key=lambda one: one.elements))]

    # ---- what is moved -----------------------------------------------------------------------------------------------

    def read(self, t: int, s: int, box: Box) -> Ints:
        """The runs that a layer loads of a map.

        Of a map that it sees with other rows or columns than those that made it, a box of what it sees.
        """
        seen, start, first, found = self._read(t, s), self.places["map", s][0], 0, []
        parts = self._parts(s)
        if any(part[:3] != seen[:3] for _, part in parts):
            return self._box(seen, box, start, self.machine.in_bytes, self.machine.in_layout)
        for _, part in parts:
            mine = tuple((lo - first, hi - first) for lo, hi in box.channels if lo < first + part.channels)
            found.append(
                self._box(part, box._replace(channels=mine), start, self.machine.in_bytes, self.machine.in_layout)
            )
            start, first = start + part.elements * self.machine.in_bytes, first + part.channels
        return np.concatenate(found)

    def made(self, t: int, box: Box) -> Ints:
        """The runs that a layer stores of its result."""
        s = self.net.writes[t]
        start = self.places["map", s][0]
        for maker, part in self._parts(s):
            if maker == t:
                return self._box(part, box, start, self.machine.out_bytes, self.machine.out_layout)
            start += part.elements * self.machine.out_bytes
        raise KeyError(t)

    def sums(self, t: int, box: Box) -> Ints:
        """The runs of partial sums of a layer."""
        start = self.places["sums", t][0]
        return self._box(self._made(t), box, start, self.machine.psum_bytes, self.machine.out_layout)

    @staticmethod
    def _box(extent: Extent, box: Box, start: int, element: int, layout: str) -> Ints:
        found = []
        for channels in box.channels:
            axes = {"b": box.images, "r": box.rows, "c": box.columns, "m": channels}
            sizes = dict(zip("brcm", extent, strict=True))
            order = "bmrc" if layout == "CHW" else "brcm"
            found.append(runs([sizes[d] for d in order], [axes[d] for d in order], start, element))
        return np.concatenate(found) if found else np.zeros((0, 2), np.int64)

    def weights(self, t: int, spans: Mapping[str, Span]) -> Ints:
        """The runs of a box of a layer's weights: groups g, filters m, channels n, rows i, columns j of the kernel."""
        layer = self.net.layers[t]
        order = "gmnij" if self.machine.w_layout == "OIHW" else "gmijn"
        start = self.places["weights", self._owner(t)][0]
        return runs([layer.extent(d) for d in order], [spans[d] for d in order], start, self.machine.w_bytes)

    def weight_bytes(self, t: int, first: int, at: int, size: int) -> Ints:
        """So many bytes of a layer's weights, from place `at` of those behind the `first` ones; round and round."""
        start, there = self.places["weights", self._owner(t)]
        start, there, found = start + first, there - first, []
        while size:
            begin = at % there
            found.append((start + begin, min(size, there - begin)))
            at, size = at + found[-1][1], size - found[-1][1]
        return np.array(found, np.int64).reshape(-1, 2)
