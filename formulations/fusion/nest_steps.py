"""Steps and transfers of a layer by itself: a step for every tile of its nest that something is moved for.

What its nest loads for a tile is due in its step; so that no byte is missing, each operand of it counts as its largest
tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import pairwise
from math import prod

import numpy as np

from formulations.fusion.near import Near
from formulations.fusion.steps import Part, Piece, queues_of, whole
from formulations.fusion.strips import Ints, Mask
from hwmodels.levels.schedule import Box
from hwmodels.nest.buffers import buffers
from hwmodels.nest.price.choices import trees_of
from hwmodels.nest.price.overlap import Timeline as TiledTime
from hwmodels.nest.price.skeleton import cores, skeleton_of
from hwmodels.schedule import Nest
from hwmodels.timeline.schedule import Step
from instances.machine.machine import Machine
from instances.network.workload import Layer


class NestSteps:
    """The steps of a layer by itself, beside which bytes lie on chip.

    Parameters
    ----------
    reads, writes : sequence of Piece
        Its maps. Of a map with the rows and channels of the layer pieces are those of tiles.
    number : int
        Of the layer.
    """

    def __init__(
        self, layer: Layer, machine: Machine, nest: Nest, beside: int, reads: Sequence[Piece] = (),
        writes: Sequence[Piece] = (), number: int = 0, near: Near | None = None,
    ) -> None:  # fmt: skip
        self.near = near
        self.layer, self.reads, self.writes, self.number, self.machine = layer, reads, writes, number, machine
        skeleton = skeleton_of(layer, nest)
        trees = trees_of(cores(layer, skeleton.spatial)[0], nest.loops())
        self.tiled = TiledTime(layer, machine, skeleton, nest.loops(), trees, line=nest.line)
        sizes = {one.name: one.bytes for one in buffers(layer, machine, nest)}
        inputs = iter(_inputs(layer))
        self.moved = [
            (one, sizes.get(next(inputs) if one[0] == "IN" else one[0], 0), *self.tiled.transfers(*one))
            for one in self.tiled.parts
        ]  # fmt: skip
        self.own = sum(sizes.values()) + beside

    @property
    def transfers(self) -> int:
        """How many there are."""
        return sum(int((load > 0).sum() + (store > 0).sum()) for _, size, load, store in self.moved if size)

    @property
    def begins(self) -> Mask:
        """The tiles that a step begins with: something is moved for them, or after the one before."""
        begins: Mask = np.any([load > 0 for _, _, load, _ in self.moved], axis=0)
        begins[1:] |= np.any([store > 0 for *_, store in self.moved], axis=0)[:-1]
        begins[0] = True
        return begins

    @cached_property
    def spans(self) -> list[slice]:
        """The tiles of every step."""
        marks = [*np.flatnonzero(self.begins).tolist(), self.tiled.count]
        return [slice(*pair) for pair in pairwise(marks)]

    @cached_property
    def ticks(self) -> list[int]:
        """Ticks of every step."""
        computed = [int(one) for one in np.add.reduceat(self.tiled.compute(), np.flatnonzero(self.begins))]
        if self.near is None:
            return computed
        every = zip(computed, self.boxes(self.near), strict=True)
        return [max(one, sum(self.near.step(t, box)[1] for t, box in some)) for one, some in every]

    def boxes(self, near: Near) -> list[list[tuple[int, Box]]]:
        """Of every step the boxes that it makes: one, if its tiles are one; else a tile after the other."""
        every, first = self.tiled.ranges(), np.flatnonzero(self.begins)
        joined = {
            d: (np.minimum.reduceat(low, first), np.maximum.reduceat(high, first)) for d, (low, high) in every.items()
        }
        volumes = [
            prod((high - low for low, high in some.values()), start=np.ones(1, np.int64)) for some in (every, joined)
        ]
        one = volumes[1] == np.add.reduceat(volumes[0], first)
        alone, together = near.tiles(self.number, every), near.tiles(self.number, joined)
        return [
            [(self.number, together[k])] if one[k] else [(self.number, box) for box in alone[span]]
            for k, span in enumerate(self.spans)
        ]

    def part(self) -> Part:
        """A step for every tile that something is moved for, and all transfers."""
        layer, moved, begins = self.layer, self.moved, self.begins
        part = Part(queues=queues_of(self.machine))
        at = np.cumsum(begins)
        part.steps = [Step(one, self.own) for one in self.ticks]
        part.layers = [self.number] * len(part.steps)
        for one, size, load, store in moved:
            maps, stored = () if one[0] == "W" and layer.weights == "constant" else self.reads, np.flatnonzero(store)
            name, tile = (one[0], self.number), self._tile(one)
            for t in np.flatnonzero(load).tolist():  # partial sums: after all that was stored
                before = int(np.searchsorted(stored, t))
                ready = 1 + int(at[stored[before - 1]]) if before else 1
                part.load(name, load[t], size, int(at[t]), *(tile(piece, t) for piece in maps), ready=ready)
            for t in stored.tolist():
                part.store(name, store[t], size, int(at[t]), *(tile(piece, t) for piece in self.writes))
        return part

    def _tile(self, one: tuple[str, int, str]) -> Callable[[Piece, int], Piece]:
        """What of a map belongs to a tile."""
        if one[0] == "W" or one[2]:
            return lambda piece, _: piece
        return partial(_of_tile, self.layer, one[0], *self.tiled.tiles(*one))

    def whole(self, more: int = 0) -> Part:
        """One step, after all loads (of `more` ticks) and before all stores: the tiles one after the other."""
        loads = sum(int(load.sum()) for _, _, load, _ in self.moved)
        stores = sum(int(store.sum()) for *_, store in self.moved)
        ticks, queues = sum(self.ticks), queues_of(self.machine)
        return whole(self.number, ticks, self.own, loads + more, stores, queues)


def _of_tile(layer: Layer, operand: str, rows: Ints, channels: Ints, piece: Piece, t: int) -> Piece:
    """The rows and channels of a tile in a map; all of the map if its layer sees other ones."""
    extents = (layer.h, layer.g * layer.n) if operand == "IN" else (layer.r, layer.g * layer.m)
    if (piece.end - piece.begin, piece.last - piece.first) != extents:
        return piece
    return Piece(piece.store, *rows[t].tolist(), *channels[t].tolist())


def _inputs(layer: Layer) -> list[str]:
    """The names of the buffers of inputs that are loaded (`Layer.loaded`)."""
    numbered = enumerate(zip(layer.residents, layer.patterns, strict=True), 1)
    return ["IN" + str(n) * (layer.inputs > 1) for n, (there, lacks) in numbered if not (there and "r" in lacks)]
