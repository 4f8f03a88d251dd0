"""Steps and transfers of a plan of fusion: what its runs do on the engine and on the DMA queue (`hwmodels.timeline`).

A visit of a group (a step of rows, and inside it a step of columns) has a step for every layer that makes something;
layers that take turns have one together. While it runs lie on chip

    the strips of all streams as they are while the layer runs (`Memory.held`), maps that stay beside the group,
    weights that stay, from the first step that reads them to the last one, and of the weights that do not stay a block

Transfers: a piece of a map from outside is due in the first step of the layer that reads it, a piece of a result is
released by the step that makes it, weights that stay are due in the first step that reads them. Weights that do not
stay are loaded in blocks of filters, a step for each. A block is so large that the next one finds room beside it, whole
rounds of lanes where it may, or else a filter.

The transfers of a plan keep their order (`formulations.prefetch.guards.settled`), so that what is stored and loaded
again, a map between groups or partial sums, is stored before.

A layer by itself has a step for every tile of its nest. What its nest loads for a tile is due in its step; so that no
byte is missing, each operand of it counts as its largest tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np

from formulations.fusion.memory import Memory
from formulations.fusion.schedule import GroupTime
from formulations.fusion.strips import Ints
from hwmodels.nest.buffers import buffers
from hwmodels.nest.price.choices import trees_of
from hwmodels.nest.price.overlap import Timeline as TiledTime
from hwmodels.nest.price.skeleton import cores, skeleton_of
from hwmodels.schedule import Nest
from hwmodels.timeline.schedule import Load, Move, Step, Store, Timeline
from instances.machine.machine import Machine
from instances.network.workload import Layer

#: More bytes than a transfer has.
WHOLE = 2**62


@dataclass
class Part:
    """Steps of a run, and its transfers; steps count from 1."""

    steps: list[Step] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)

    def load(self, ticks: int, size: int, due: int) -> None:
        """Add a load, if it is one, that begins in the step that reads it."""
        if size:
            self.moves.append(Load(int(ticks), int(size), due, due))

    def store(self, ticks: int, size: int, released: int) -> None:
        """Add a store, if it is one, that the next step waits for."""
        if size:
            self.moves.append(Store(int(ticks), int(size), released, released + 1))


def joined(parts: Sequence[Part]) -> Timeline:
    """The runs one after the other."""
    steps, moves = list[Step](), list[Move]()
    for part in parts:
        begin = len(steps)
        for one in part.moves:
            moves.append(
                replace(one, due=one.due + begin, guard=one.guard + begin) if isinstance(one, Load)
                else replace(one, released=one.released + begin, limit=one.limit + begin)
            )  # fmt: skip
        steps += part.steps
    return Timeline(tuple(steps), tuple(moves))


class GroupSteps:
    """The steps of a group in so many bytes, beside which others lie on chip.

    Weights are loaded in transfers of filters of at most so many bytes (`most`), or of a filter.
    """

    def __init__(self, time: GroupTime, memory: Memory, room: int, beside: int, most: int) -> None:
        self.most = most
        self.time, self.run, self.group, self.room, self.beside = time, time.run, time.group, room, beside
        self.turns = {t: one for one in self.run.blocks for t in range(one.first, one.last + 1)}
        self.held = memory.held(self.run.blocks)
        self.pieces = [self._pieces(k) for k in range(len(self.group.streams))]
        self.outside = dict[int, list[int]]()
        """Streams from outside by the layer for which their pieces come."""
        for k, stream in enumerate(self.group.streams):
            if stream.outside:
                self.outside.setdefault(stream.maker, []).append(k)
        self.part, self.came = Part(), list[tuple[int, int]]()

    def _pieces(self, k: int) -> tuple[Ints, Ints, Ints]:
        """Pixels that are made, ticks and bytes that are moved of a stream, by visit."""
        time, stream = self.time, self.group.streams[k]
        rows, columns = time.spans(k)
        pixels = np.multiply.outer(rows[1] - rows[0], columns[1] - columns[0])
        if not stream.outside:
            rows, columns = time.new(k, rows, columns)
        moved = np.multiply.outer(rows[1] - rows[0], columns[1] - columns[0]) * stream.pixel
        return pixels, np.where(moved > 0, time.boxes(k, rows, columns), 0), moved

    def steps(self) -> Part:
        """All visits, with the weights that stay."""
        read = dict[int, tuple[int, int]]()
        for down in range(self.time.visits[0]):
            for across in range(self.time.visits[1]):
                self._visit(down, across, read)
        steps = self.part.steps
        for owner, kept in enumerate(self.run.weights):
            if kept and owner in read:
                first, last = read[owner]
                self._weights(owner, kept, first)
                for t in range(first, last + 1):
                    steps[t - 1] = replace(steps[t - 1], bytes=steps[t - 1].bytes + kept)
        return self.part

    def _visit(self, down: int, across: int, read: dict[int, tuple[int, int]]) -> None:
        begin = 0
        for k, t in enumerate(self.group.layers):
            self.came += [self._moved(j, down, across) for j in self.outside.get(t, ())]
            if self.pieces[k][0][down, across]:
                turned = self.turns.get(t)
                if turned is None or t == turned.first:
                    begin = len(self.part.steps) + 1
                    self._run(k, down, across, turned.last - turned.first + 1 if turned else 1)
                owner = self.group.owners[k]
                read[owner] = min(begin, *read.get(owner, (begin,))), len(self.part.steps)
                self.part.store(*self._moved(k, down, across), len(self.part.steps))

    def _moved(self, k: int, down: int, across: int) -> tuple[int, int]:
        """Ticks and bytes of a piece that is loaded or stored."""
        _, ticks, size = self.pieces[k]
        return int(ticks[down, across]), int(size[down, across])

    def _run(self, k: int, down: int, across: int, together: int) -> None:
        """The steps of a layer in a visit, of several that take turns; the first one reads what has come."""
        for ticks, size in self.came:
            self.part.load(ticks, size, len(self.part.steps) + 1)
        self.came.clear()
        made = [int(self.pieces[j][0][down, across]) for j in range(k, k + together)]
        held = int(self.held[down, k, across]) + self.beside
        if together > 1:
            self._turn(range(k, k + together), made, held)
            return
        for size, computed in self._blocks(k, self.room - held - sum(self.run.weights)):
            self.part.steps.append(Step(self.time.busy(k, made[0], computed), held + size))
            self._weights(k, size, len(self.part.steps))

    def _turn(self, layers: range, pixels: list[int], held: int) -> None:
        """The step of layers that take turns: weights that do not stay are there as a whole.

        Without room for them they come in turns: the step has all memory, so that nothing else moves meanwhile.
        """
        sizes = {k: self._streamed(k) for k in layers}
        size, at = held + sum(sizes.values()), len(self.part.steps) + 1
        busy = sum(self.time.busy(k, made) for k, made in zip(layers, pixels, strict=True))
        if size + sum(self.run.weights) > self.room:
            size = self.room - sum(self.run.weights)
            self.part.load(sum(self.time.streamed(k) for k in layers), size - held, at)
        else:
            for k, each in sizes.items():
                self._weights(k, each, at)
        self.part.steps.append(Step(busy, size))

    def _weights(self, k: int, size: int, due: int) -> None:
        """Load so many bytes of a layer's weights, in transfers of so many filters."""
        _, each = self.time.filters(k)
        number, rest = divmod(size, each) if each else (0, 0)
        most = max(1, self.most // each) if each else 1
        for at in range(0, number, most):
            self.part.load(*self.time.block(k, min(most, number - at)), due)
        if rest:
            self.part.load(self.time.resident(self.group.layers[k], rest), rest, due)

    def _streamed(self, k: int) -> int:
        """Bytes of a layer's weights that do not stay."""
        number, size = self.time.filters(k)
        return number * size - (self.run.weights[self.group.owners[k]] % size if number else 0)

    def _blocks(self, k: int, left: int) -> list[tuple[int, int]]:
        """Bytes that are loaded of every block of a visit, and filters that are computed; 0 for all.

        Those that stay, or of which a part stays, are computed with the first block.
        """
        number, size = self.time.filters(k)
        if not number:
            return [(0, 0)]
        layer = self.group.net.layers[self.group.layers[k]]
        most, lanes = max(1, left // 2 // size), self.time.round(k)
        most = number if number * size <= left // 2 else most - most % lanes or most
        filters = [min(most, number - at) for at in range(0, number, most)]
        first = number * size - self._streamed(k), layer.g * layer.m - number
        return [(each * size - first[0] * (not at), each + first[1] * (not at)) for at, each in enumerate(filters)]


def nest_steps(layer: Layer, machine: Machine, nest: Nest, beside: int) -> Part:
    """The steps of a layer by itself, beside which bytes lie on chip."""
    skeleton, part = skeleton_of(layer, nest), Part()
    trees = trees_of(cores(layer, skeleton.spatial)[0], nest.loops())
    tiled = TiledTime(layer, machine, skeleton, nest.loops(), trees, line=nest.line)
    sizes = {one.name: one.bytes for one in buffers(layer, machine, nest)}
    moved, numbers = list[tuple[int, Ints, Ints]](), count(1)
    for one in tiled.parts:
        name = one[0] if one[0] in sizes else f"{one[0]}{next(numbers)}"
        moved.append((sizes[name], *tiled.transfers(*one)))
    begins = np.any([load > 0 for _, load, _ in moved], axis=0)
    begins[1:] |= np.any([store > 0 for *_, store in moved], axis=0)[:-1]
    begins[0] = True
    own, number = sum(sizes.values()) + beside, np.cumsum(begins)
    part.steps = [Step(int(one), own) for one in np.add.reduceat(tiled.compute(), np.flatnonzero(begins))]
    for size, load, store in moved:
        for t in np.flatnonzero(load):
            part.load(load[t], size, int(number[t]))
        for t in np.flatnonzero(store):
            part.store(store[t], size, int(number[t]))
    return part
