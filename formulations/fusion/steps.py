"""Steps and transfers of plans of fusion: what their runs do on the engine and on the DMA queue (`hwmodels.timeline`).

A visit of a group (a step of rows, and inside it a step of columns) has a step for every layer that makes something;
layers that take turns have one together, or one for every block of channels where nothing is added up, with the weights
of that block. Where a halo is loaded again, a piece may come in a visit in which its reader makes nothing, and go
before it comes again: then there is a step of no ticks. While a step runs lie on chip

    the strips of all streams as they are while the layer runs (`Memory.held`), maps that stay beside the group,
    weights that stay, from the first step that reads them to the last one, and of the weights that do not stay a block

Transfers: a piece of a map from outside is due in the first step of the layer that reads it, a piece of a result is
released by the step that makes it, weights that stay are due in the first step that reads them. Weights that do not
stay are loaded in blocks of filters, a step for each. A block has at most so many bytes as are asked for, and the next
one finds room beside it; it has whole rounds of lanes where it may, or else a filter. In the first visit those that
stay come block by block, too.

`GroupSteps` lays out several ways of rows one after the other, as arrays: for the price of all options of a group, and
for the timeline of one. The transfers of a plan keep their order (`formulations.prefetch.guards.settled`), so that what
is stored and loaded again, a map between groups or partial sums, is stored before.

A layer by itself has the steps of its nest (`nest_steps`).

Of plans with too many transfers each layer or group is one step (`whole`): what all take one after the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from formulations.fusion.group_time import GroupTime, cycles_of
from formulations.fusion.near import Kind, Near
from formulations.fusion.orders import WHOLE
from formulations.fusion.strips import Ints, Mask
from hwmodels.levels.schedule import Box
from hwmodels.nest.homes import operand_of
from hwmodels.outcome import OPERANDS
from hwmodels.schedule import Blocks
from hwmodels.timeline.schedule import Load, Move, Step, Store, Timeline
from instances.machine.machine import Machine


class Piece(NamedTuple):
    """Of a store the rows that are moved, and the channels; all of them, if they are not given."""

    store: int
    begin: int
    end: int
    first: int = 0
    last: int = WHOLE


@dataclass
class Part:
    """Steps of a run, and its transfers; steps count from 1."""

    steps: list[Step] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    pieces: list[tuple[Piece, ...]] = field(default_factory=list)
    """Of every transfer the pieces of maps that it moves."""
    layers: list[int] = field(default_factory=list)
    """Of every step its layer, the first of those that take turns."""
    names: list[tuple[str, int]] = field(default_factory=list)
    """Of every transfer its operand, and the layer that reads or makes it."""
    queues: Mapping[str, int] = field(default_factory=dict)
    """The DMA queue that moves an operand, if there are several (`queues_of`)."""

    def load(self, name: tuple[str, int], ticks: int, size: int, due: int, *pieces: Piece, ready: int = 1) -> None:
        """Add a load, if it is one, that begins in the step that reads it."""
        if size:
            queue = self.queues.get(name[0], 0)
            self._add(name, Load(int(ticks), int(size), due, due, queue, ready), pieces)

    def store(self, name: tuple[str, int], ticks: int, size: int, released: int, *pieces: Piece) -> None:
        """Add a store, if it is one, that the next step waits for."""
        if size:
            queue = self.queues.get(name[0], 0)
            self._add(name, Store(int(ticks), int(size), released, released + 1, queue), pieces)

    def _add(self, name: tuple[str, int], one: Move, pieces: tuple[Piece, ...]) -> None:
        self.names.append(name)
        self.moves.append(one)
        self.pieces.append(pieces)


def queues_of(machine: Machine) -> Mapping[str, int]:
    """The DMA queue that moves each operand; partial sums are moved as results are."""
    return {operand: machine.channel_of(operand_of(operand)) for operand in OPERANDS}


def joined(parts: Sequence[Part], ahead: int | None = None) -> Timeline:
    """The runs one after the other. What they store is loaded when it is stored, at the earliest.

    Loads begin so many runs `ahead` of their own at the most, if that is given.
    """
    steps, moves, stored = list[Step](), list[Move](), defaultdict[int, list[tuple[int, ...]]](list)
    begins = list[int]()
    for part in parts:
        begins.append(len(steps))
        begin, made, ready = len(steps), list[tuple[Piece, int]](), _ready(part, stored)
        if ahead is not None:
            ready = np.maximum(ready, begins[max(0, len(begins) - 1 - ahead)])
        for one, pieces, step in zip(part.moves, part.pieces, ready.tolist(), strict=True):
            if isinstance(one, Load):
                step = max(step + 1, one.ready + begin * (one.ready > 1))
                moves.append(replace(one, due=one.due + begin, guard=one.guard + begin, ready=step))
            else:
                moves.append(replace(one, released=one.released + begin, limit=one.limit + begin))
                made += [(piece, one.released + begin) for piece in pieces]
        for piece, released in made:
            stored[piece.store].append((*piece[1:], released))
        steps += part.steps
    return Timeline(tuple(steps), tuple(moves))


def _ready(part: Part, stored: Mapping[int, Sequence[tuple[int, ...]]]) -> Ints:
    """The last steps that store something of what each transfer loads, 0 if none does, (moves,)."""
    ready, loads = np.zeros(len(part.moves), np.int64), defaultdict[int, list[tuple[int, ...]]](list)
    for k, (one, pieces) in enumerate(zip(part.moves, part.pieces, strict=True)):
        for piece in pieces if isinstance(one, Load) else ():
            loads[piece.store].append((k, *piece[1:]))
    for store in loads.keys() & stored.keys():
        at, *mine = np.array(loads[store], np.int64).T[:, :, None]
        *others, released = np.array(stored[store], np.int64).T
        both = (mine[0] < others[1]) & (others[0] < mine[1]) & (mine[2] < others[3]) & (others[2] < mine[3])
        np.maximum.at(ready, at[:, 0], np.where(both, released, 0).max(axis=1))
    return ready


@dataclass(frozen=True)
class Moves:
    """Transfers, those that are alike together."""

    number: Ints
    ticks: Ints
    bytes: Ints
    """`ticks`, `bytes`: of one of them."""
    step: Ints
    """In which they are due, or by which they are released; from 0."""
    stream: Ints
    """Of which they are a piece; below 0: weights of the layer -1 - stream of the group."""
    rows: Ints
    """Of it, (2, transfers)."""

    def by_step(self, each: Ints, steps: int) -> Ints:
        """The sum of the ticks or bytes of all, (steps,)."""
        return np.bincount(self.step, self.number * each, steps).astype(np.int64)


class GroupSteps:
    """The steps of a group in ways of rows, one after the other, and one of columns; all ways several times over.

    Parameters
    ----------
    time : GroupTime
        Ticks of its pieces, along rows in all ways.
    held : (times x row steps, layers, column steps)
        Bytes on chip while each layer runs: its strips (`Memory.held`), and what others take.
    kept : (times x ways, layers)
        Bytes of weights that stay, by the first layer that has them (`Group.owners`).
    room : int
        Bytes on chip.
    most : int
        The most bytes of a block and of a transfer of weights; a round of lanes, or else a filter, may have more.
    still : (times x ways, streams), optional
        Streams of which nothing is moved, for their maps stay on chip.
    maps : int
        The most bytes of a transfer of a map; a row may have more.
    """

    def __init__(
        self, time: GroupTime, held: Ints, kept: Ints, room: int, most: int = WHOLE, still: Mask | None = None,
        maps: int = WHOLE,
    ) -> None:  # fmt: skip
        self.time, self.group, self.kept, self.room, self.most, self.maps = time, time.group, kept, room, most, maps
        self.still = np.zeros((len(kept), len(self.group.streams)), np.bool_) if still is None else still
        group, layers, sizes = self.group, range(len(self.group.layers)), np.diff(time.down.first)
        self.layers, self.owners = layers, np.array(group.owners)
        turned = {t - group.first: one for one in time.around.blocks for t in range(one.first, one.last + 1)}
        #: Of every layer the one whose steps are its own: itself, or the first of those that take turns with it.
        self.runs = np.array([turned[k].first - group.first if k in turned else k for k in layers])
        self.together = np.array([k in turned for k in layers])
        self.times = len(kept) // len(sizes)
        self.rows = np.append(0, np.cumsum(np.tile(sizes, self.times)))
        """Where the row steps of every way begin, (times x ways + 1,)."""
        self.way = np.repeat(np.arange(len(kept)), np.diff(self.rows))
        self.pixels = self._again(np.stack([self._pixels(k) for k in layers], axis=2))
        self.held = held.swapaxes(1, 2)
        self.number, self.size = np.array([time.filters(k) for k in layers], np.int64).T
        self.lanes = np.array([time.round(k) for k in layers])
        self.outputs = np.array([one.g * one.m for one in (group.net.layers[t] for t in group.layers)])
        stay = kept[:, self.owners]
        self.streamed = self.number - np.where(self.number > 0, stay // np.maximum(self.size, 1), 0)
        """Filters of which something does not stay, (times x ways, layers)."""
        self.gone = np.where(self.number > 0, stay % np.maximum(self.size, 1), 0)
        """Bytes of the first one of them that stay."""
        self.turns = self._in_blocks(time.around.blocks)
        """Blocks of channels of layers that take turns, if each is a step; else 1, (times x ways, layers)."""
        self._lay_out()

    def _in_blocks(self, blocks: Sequence[Blocks]) -> Ints:
        """Blocks of turns that add nothing up, where the weights of one find room; if not, all are one step."""
        turns: Ints = np.ones_like(self.streamed)
        first = self.group.first
        for one in blocks:
            if self.group.net.layers[one.last].g > 1:
                mine = slice(one.first - first, one.last - first + 1)
                count = int(self.outputs[mine.start]) // one.channels
                size = (np.minimum(one.channels, self.streamed[:, mine]) * self.size[mine]).sum(axis=1)
                held = np.maximum.reduceat(self.held[:, :, mine].max(axis=(1, 2)), self.rows[:-1])
                fits = held + self.kept.sum(axis=1) + size <= self.room
                turns[:, mine] = np.where(fits, count, 1)[:, None]
        return turns

    def _again(self, each: Ints) -> Ints:
        """The same for all times."""
        return np.tile(each, (self.times, *(1,) * (each.ndim - 1))) if self.times > 1 else each

    def _pixels(self, k: int) -> Ints:
        """Pixels of a layer in every visit, (row steps, column steps)."""
        rows, columns = self.time.spans(k)
        made: Ints = np.multiply.outer(rows[1] - rows[0], columns[1] - columns[0])
        return made

    def _lay_out(self) -> None:
        """Blocks of every way and layer, and where the steps of every visit are."""
        active = np.zeros(self.pixels.shape, np.bool_)
        for k in self.layers:  # of those that take turns the first one may be done before the last one
            active[:, :, self.runs[k]] |= self.pixels[:, :, k] > 0
        idle = self._idle() & ~active
        left = self.room - self.held.max(axis=1) - self.kept.sum(axis=1)[self.way][:, None]
        streamed = self.streamed[self.way]
        self.filters = self._filters(left, streamed)
        """Of a block, (times x row steps, layers)."""
        blocks = np.where(self.together | (streamed == 0), self.turns[self.way], -(-streamed // self.filters))
        self.counts = np.where(active, blocks[:, None], idle)
        self.ahead = np.zeros_like(self.counts)
        """Steps of a visit for filters that stay, ahead of its blocks: in the first one, (as `counts`)."""
        self.fill, more = self._fill()
        for w, k in np.argwhere(more):
            mine = active[self.rows[w] : self.rows[w + 1], :, k]
            if mine.any():
                row, column = divmod(int(np.argmax(mine.ravel())), mine.shape[1])
                self.ahead[self.rows[w] + row, column, k] = more[w, k]
        self.counts += self.ahead
        ends = np.cumsum(self.counts.ravel())
        self.starts = (ends - self.counts.ravel()).reshape(self.counts.shape)
        self.steps = int(ends[-1])
        self.first = np.append(self.starts[self.rows[:-1], 0, 0], self.steps)
        """Where the steps of every way begin, (times x ways + 1,)."""
        self.entry = entry = np.repeat(np.arange(self.counts.size), self.counts.ravel())
        self.idle = idle.ravel()[entry]
        """Steps in which a layer makes nothing of what is loaded for it."""
        self.before = self.ahead.ravel()[entry]
        self.layer = entry % len(self.layers)
        self.block = np.arange(self.steps) - self.starts.ravel()[entry] - self.before
        """Of what does not stay; below 0: filters that stay."""
        self.at = np.repeat(np.arange(len(self.kept)), np.diff(self.first)), self.layer
        self.passed = self.turns[self.at] > 1
        """Steps of a block of layers that take turns."""
        self.joint = self.together[self.layer] & ~self.passed
        """Steps of all blocks of such layers."""

    def _idle(self) -> Mask:
        """In which visits a piece is loaded of which some is loaded again, by its first reader, (as `counts`)."""
        again = self.time.down.again[:, None] | self.time.across.again
        loaded = np.zeros((*again.shape, len(self.layers)), np.int64)
        for k, stream in enumerate(self.group.streams if again.any() else ()):
            if stream.outside:
                loaded[:, :, self.runs[stream.maker - self.group.first]] |= again & (self._pixels(k) > 0)
        idle: Mask = self._again(loaded) > 0
        return idle

    def _filters(self, left: Ints, streamed: Ints) -> Ints:
        """Filters of a block: two blocks fit, rounds of lanes where they may, no more bytes than are asked for."""
        each = np.maximum(self.size, 1)
        half = np.maximum(1, left // 2 // each)
        most = np.minimum(half, np.maximum(self.lanes, self.most // each))
        rounds = np.where(most % self.lanes < most, most - most % self.lanes, most)
        filters: Ints = np.maximum(1, np.where(streamed <= most, streamed, rounds))
        return filters

    def _fill(self) -> tuple[Ints, Ints]:
        """Filters of a step in which they come to stay, by layer, and how many such steps go ahead, by way and layer.

        The others are computed with the first block of those that do not stay, or last.
        """
        most = np.maximum(self.lanes, self.most // np.maximum(self.size, 1))
        fill: Ints = most - most % self.lanes
        stay = np.where(self.owners == np.array(self.layers), self.number - self.streamed, 0)
        more = np.where(self.streamed > 0, stay // fill, -(-stay // fill) - 1)
        return fill, np.where(self.together, 0, np.maximum(0, more))

    # ---- steps -------------------------------------------------------------------------------------------------------

    @cached_property
    def loaded(self) -> Ints:
        """Filters that are loaded for every step; 0 for layers that take turns."""
        most = self.filters[self.entry // self.counts[0].size, self.layer]
        filters: Ints = np.clip(self.streamed[self.at] - self.block * most, 0, most)
        filters[self.together[self.layer] | (self.block < 0) | self.idle] = 0
        return filters

    @cached_property
    def ticks(self) -> Ints:
        """Ticks of every step; filters that stay are computed with the first block, but for those that go ahead."""
        cycles = np.zeros(self.pixels.shape, np.int64)
        for k in self.layers:
            cycles[:, :, self.runs[k]] += self.time.cycles(k, self.pixels[:, :, k])
        every, lanes = cycles.ravel()[self.entry], self.lanes[self.layer]
        outputs, fill = self.outputs[self.layer], self.fill[self.layer]
        computed = self.loaded + np.where(self.block == 0, outputs - self.streamed[self.at] - self.before * fill, 0)
        computed = np.where(self.together[self.layer], outputs, np.where(self.block < 0, fill, computed))
        self.computed = np.where(self.idle, 0, computed)
        shared: Ints = -(-every * -(-computed // lanes) // -(-outputs // lanes))
        ticks: Ints = np.where(computed < outputs, shared, every)
        ticks[self.passed] = self._of_blocks()
        ticks *= self.time.machine.compute.cycle_ticks
        return ticks if self.time.near is None else np.maximum(ticks, self._through(self.time.near))

    def _through(self, near: Near) -> Ints:
        """Ticks of every step whose tiles go through nearer memories."""
        ticks = np.zeros(self.steps, np.int64)
        for k in self.layers:
            mine = np.flatnonzero((self.layer == k) & (self.computed > 0))
            kinds, which = self.kinds(near, k)
            what = which[self.entry[mine]], self.computed[mine], self._begins[mine]
            ticks[mine] = near.ticks(self.group.layers[k], kinds, *what)
        return ticks

    def kinds(self, near: Near, k: int) -> tuple[list[Kind], Ints]:
        """The kinds of pieces that a layer makes, and which one every entry has."""
        kinds, which = near.kinds(self.group.layers[k], *self.time.spans(k))
        return kinds, np.repeat(self._again(which).ravel(), len(self.layers))

    def boxes(self, near: Near) -> list[list[tuple[int, Box]]]:
        """Of every step the boxes that it makes, with their layer."""
        _, kinds, made = self.ticks, {k: self.kinds(near, k) for k in self.layers}, list[list[tuple[int, Box]]]()
        each = (one.tolist() for one in (self.entry, self.layer, self.computed, self._begins))
        for entry, k, number, first in zip(*each, strict=True):
            t, kind = self.group.layers[k], kinds[k][0][int(kinds[k][1][entry])]
            made.append([(t, box) for box in near.boxes(t, kind, number, first)])
        return made

    @cached_property
    def _begins(self) -> Ints:
        """The first filter of every step."""
        later = self.block * self.filters[self.entry // self.counts[0].size, self.layer]
        later += self.outputs[self.layer] - self.streamed[self.at]
        ahead: Ints = (np.minimum(self.block, 0) + self.before) * self.fill[self.layer]
        return np.where(self.block > 0, later, ahead)

    def _of_blocks(self) -> Ints:
        """Cycles of blocks of layers that take turns, each layer's rounds of lanes by themselves."""
        steps = np.flatnonzero(self.passed)
        cycles, turns = np.zeros(len(steps), np.int64), self.turns[self.at][steps]
        for k in np.flatnonzero(self.together).tolist() if len(steps) else ():
            layer, pixels = self.group.net.layers[self.group.layers[k]], self._made(k, steps)
            every = cycles_of(layer, self.time.machine, pixels)
            lanes, outputs = int(self.lanes[k]), int(self.outputs[k])
            shared = -(-every * -(-(outputs // turns) // lanes) // -(-outputs // lanes))
            cycles += np.where(self.runs[k] == self.layer[steps], shared, 0)
        return cycles

    @cached_property
    def weights(self) -> Ints:
        """Bytes of weights that are there for one step alone."""
        gone = np.where((self.block == 0) & (self.loaded > 0), self.gone[self.at], 0)
        size: Ints = self.loaded * self.size[self.layer] - gone
        if not self.together.any():
            return size
        for k in np.flatnonzero(self.together).tolist():
            steps = np.flatnonzero(self.layer == self.runs[k])
            size[steps] += self.in_turns(k, steps)
        left = self.room - self.kept.sum(axis=1)[self.at[0]] - self.held.ravel()[self.entry]
        self.tight = np.flatnonzero(self.joint & (size > left))
        """Steps of layers that take turns whose weights come in turns: they have all memory."""
        size[self.tight] = left[self.tight]
        return size

    def in_turns(self, k: int, steps: Ints) -> Ints:
        """Bytes of a layer's weights that do not stay, of those that take turns: of the block of a step, or all."""
        way, size = self.at[0][steps], int(self.size[k])
        channels = self.outputs[k] // self.turns[way, k]
        first, stay = self.block[steps] * channels, self.number[k] - self.streamed[way, k]
        filters = np.minimum(first + channels, self.number[k]) - np.maximum(first, stay)
        cut = (first <= stay) & (stay < first + channels)
        moved = np.maximum(0, filters) * size - np.where(cut, self.gone[way, k], 0)
        needed: Ints = np.where(self._made(k, steps) > 0, moved, 0)
        return needed

    def _made(self, k: int, steps: Ints) -> Ints:
        """Pixels of a layer in the visits of some steps."""
        made: Ints = self.pixels[:, :, k].ravel()[self.entry[steps] // len(self.layers)]
        return made

    @cached_property
    def bytes(self) -> Ints:
        """Bytes on chip in every step."""
        change = np.zeros(self.steps + 1, np.int64)
        for owner, (ways, _, last) in self.read.items():
            np.add.at(change, last + 1, -self.kept[ways, owner])
            for size, step in self._filled(owner):
                np.add.at(change, step, size)
        lies: Ints = self.held.ravel()[self.entry] + self.weights + np.cumsum(change)[:-1]
        return lies

    @cached_property
    def read(self) -> dict[int, tuple[Ints, Ints, Ints]]:
        """Ways in which weights stay, with the first and the last step that reads them, by the layer that has them."""
        found = {}
        for owner in np.flatnonzero(self.kept.any(axis=0)):
            steps = np.flatnonzero(np.isin(self.layer, self.runs[self.owners == owner]) & ~self.idle)
            begin, end = (np.searchsorted(steps, self.first[at]) for at in (slice(None, -1), slice(1, None)))
            ways = np.flatnonzero((self.kept[:, owner] > 0) & (begin < end))
            found[int(owner)] = ways, steps[begin[ways]], steps[end[ways] - 1]
        return found

    def _filled(self, owner: int) -> Iterator[tuple[Ints, Ints]]:
        """Yield bytes of weights that come to stay, and the step that reads them first."""
        ways, first, _ = self.read[owner]
        kept, before = self.kept[ways, owner], self.before[first]
        if (turned := self.passed[first] & (self.layer[first] == self.runs[owner])).any():  # block by block
            each, count = self.outputs[owner] // self.turns[ways, owner] * self.size[owner], self.turns[ways, owner]
            for block in range(int(count.max())):
                some = turned & (block < count)
                yield np.clip(kept - block * each, 0, each)[some], first[some] + block
            kept, first, before, ways = kept[~turned], first[~turned], before[~turned], ways[~turned]
        each = int(self.fill[owner] * self.size[owner])
        way = np.repeat(np.arange(len(ways)), before)
        yield np.full(len(way), each), first[way] + np.arange(len(way)) - (np.cumsum(before) - before)[way]
        yield kept - before * each, first + before

    # ---- transfers ---------------------------------------------------------------------------------------------------

    @cached_property
    def inputs(self) -> Moves:
        """Pieces of maps from outside."""
        made = list[Moves]()
        for k, stream in enumerate(self.group.streams):
            if stream.outside:
                rows, columns = self.time.spans(k)
                reader = int(self.runs[stream.maker - self.group.first])
                due = np.minimum(self.starts[:, :, reader], (self.first[1:] - 1)[self.way][:, None])
                made.append(self._pieces(k, rows, columns, due))
        return _concatenated(made)

    @cached_property
    def loads(self) -> Moves:
        """Pieces of maps from outside, blocks of weights, and weights that stay."""
        made = [self.inputs]
        size = self.weights
        tight = self.tight if self.together.any() else np.zeros(0, np.int64)
        for k in self.layers:
            steps = np.setdiff1d(np.flatnonzero(self.layer == self.runs[k]), tight, assume_unique=True)
            mine = self.in_turns(k, steps) if self.together[k] else size[steps]
            made += self._weights(k, mine, steps)
        if len(tight):
            made.append(self._turns(tight))
        for owner in self.read:
            for sizes, first in self._filled(owner):
                made += self._weights(owner, sizes, first)
        return _concatenated(made)

    @cached_property
    def stores(self) -> Moves:
        """Pieces of results."""
        made = []
        for k in self.layers:
            rows, columns = self.time.new(k, *self.time.spans(k))
            begin = self.first[:-1][self.way][:, None]
            released = np.maximum(
                self.starts[:, :, k] + np.maximum(self.counts[:, :, k], 1 - self.together[k]) - 1, begin
            )
            made.append(self._pieces(k, rows, columns, released))
        return _concatenated(made)

    def _pieces(self, k: int, rows: Ints, columns: Ints, steps: Ints) -> Moves:
        """Pieces of a stream that are moved."""
        size = np.multiply.outer(rows[1] - rows[0], columns[1] - columns[0]) * self.group.streams[k].pixel
        if not size.any():
            return _concatenated(())
        moved = (size := self._again(size)) > 0
        moved &= ~self.still[self.way, k][:, None]
        ticks = self._again(self.time.boxes(k, rows, columns))[moved]
        spans = np.tile(rows, self.times)[..., None], columns[:, None, :]
        along, across = (np.stack([np.broadcast_to(side, moved.shape)[moved] for side in span]) for span in spans)
        one = np.ones(len(ticks), np.int64)
        made = Moves(one, ticks, size[moved], steps[moved], one * k, along)
        return made if int(made.bytes.max(initial=0)) <= self.maps else self._in_parts(made, across)

    def _in_parts(self, moves: Moves, columns: Ints) -> Moves:
        """Pieces of maps in transfers of fewer rows, of no more bytes than are asked for if a row has no more."""
        begin, end = moves.rows
        each = moves.bytes // (end - begin)
        high = np.maximum(1, self.maps // each)
        number = -(-(end - begin) // high)
        high = -(-(end - begin) // number)
        which = np.repeat(np.arange(len(number)), -(-(end - begin) // high))
        at = np.arange(len(which)) - np.searchsorted(which, which)
        rows = np.stack(
            [begin[which] + at * high[which], np.minimum(end[which], begin[which] + (at + 1) * high[which])]
        )
        k = int(moves.stream[0])
        ticks = self.time.pieces(k, rows, columns[:, which])
        size = (rows[1] - rows[0]) * each[which]
        return Moves(np.ones_like(which), ticks, size, moves.step[which], moves.stream[which], rows)

    def _weights(self, k: int, size: Ints, steps: Ints) -> list[Moves]:
        """So many bytes of a layer's weights for every step, in transfers of filters."""
        each = int(self.size[k])
        if not each:
            return []
        most = max(1, self.most // each)
        number, rest = np.divmod(size, each)
        some = np.full_like(size, most), number % most, rest
        counts, units = (number // most, some[1] > 0, rest > 0), (each, each, 1)
        return [
            self._alike(k, part[mine], unit, count[mine].astype(np.int64), steps[mine])
            for count, part, unit in zip(counts, some, units, strict=True) if (mine := count > 0).any()
        ]  # fmt: skip

    def _alike(self, k: int, units: Ints, unit: int, number: Ints, steps: Ints) -> Moves:
        """Transfers of a layer's weights, of so many units of bytes each: few different ones, each priced once."""
        ticks = np.zeros(int(units.max()) + 1, np.int64)
        ticks[units] = 1
        for each in np.flatnonzero(ticks).tolist():
            ticks[each] = self.time.resident(self.group.layers[k], each * unit)
        return _weights(k, number, ticks[units], units * unit, steps)

    def _turns(self, steps: Ints) -> Moves:
        """A transfer for all weights of layers that take turns."""
        ticks = np.zeros_like(steps)
        for k in np.flatnonzero(self.together).tolist():
            each = np.array([self.time.streamed(k, int(kept)) for kept in self.kept[:, self.owners[k]]], np.int64)
            mine = (self.runs[k] == self.layer[steps]) & (self._made(k, steps) > 0)
            ticks += np.where(mine, each[self.at[0][steps]], 0)
        first = self.runs[np.flatnonzero(self.together)[0]]
        return _weights(int(first), np.ones_like(steps), ticks, self.weights[steps], steps)

    @property
    def transfers(self) -> int:
        """How many there are of all ways."""
        return int(self.loads.number.sum() + self.stores.number.sum())

    def whole(self, more: int = 0) -> Part:
        """One step, after all loads (of `more` ticks) and before all stores: the only way, one after the other."""
        loads, stores = (int((moves.number * moves.ticks).sum()) for moves in (self.loads, self.stores))
        first, size, queues = self.group.first, int(self.bytes.max()), queues_of(self.time.machine)
        return whole(first, int(self.ticks.sum()), size, loads + more, stores, queues)

    def part(self) -> Part:
        """The steps and transfers of the only way."""
        first, streams = self.group.first, self.group.streams
        steps = [Step(*one) for one in zip(self.ticks.tolist(), self.bytes.tolist(), strict=True)]
        made = Part(steps, queues=queues_of(self.time.machine))
        made.layers = (first + self.layer).tolist()
        for moves, add in ((self.loads, made.load), (self.stores, made.store)):
            each = moves.ticks, moves.bytes, moves.step + 1, moves.stream, *moves.rows
            for *move, k, begin, end in zip(*(np.repeat(one, moves.number).tolist() for one in each), strict=True):
                if k < 0:
                    add(("W", first - 1 - k), *move)
                else:
                    name = "IN" if streams[k].outside else "OUT", streams[k].maker
                    add(name, *move, self._piece(k, begin, end))
        return made

    def _piece(self, k: int, begin: int, end: int) -> Piece:
        """Rows of a stream; all that its map has where its reader sees other ones."""
        stream, net = self.group.streams[k], self.group.net
        rows = net.operand(stream.maker, stream.store).rows if stream.outside else net.layers[stream.maker].r
        mine = net.stores[stream.store].rows
        if stream.outside and (pitch := net.pitch.get(stream.maker)) is not None:
            rows, begin, end = pitch.rows, begin * pitch.down, (end - 1) * pitch.down + 1
        return Piece(stream.store, begin, end) if rows == mine else Piece(stream.store, 0, mine)


def _weights(k: int, number: Ints, ticks: Ints, sizes: Ints, steps: Ints) -> Moves:
    """Transfers of weights of a layer."""
    return Moves(number, ticks, sizes, steps, np.full_like(steps, -1 - k), np.zeros((2, len(steps)), np.int64))


def _concatenated(moves: Sequence[Moves]) -> Moves:
    if not moves:
        return _weights(0, *(np.zeros(0, np.int64) for _ in range(4)))
    names = "number", "ticks", "bytes", "step", "stream", "rows"
    return Moves(*(np.concatenate([getattr(one, name) for one in moves], axis=-1) for name in names))


def whole(layer: int, ticks: int, size: int, loads: int, stores: int, queues: Mapping[str, int]) -> Part:
    """One step with ticks of loads and stores; all loads in the queue of inputs."""
    part = Part([Step(ticks, size)], layers=[layer], queues=queues)
    part.load(("IN", layer), loads, size * (loads > 0), 1)
    part.store(("OUT", layer), stores, size * (stores > 0), 1)
    return part
