"""The options of a group: bytes on chip while it runs strip by strip, layers that take turns, weights that it loads.

While a layer runs every stream is in one of the states of `formulations.fusion.strips`: before its piece is made in a
visit, while that happens, and then by how many of its readers have run. Its bytes in a state are a sum over classes of
its columns, each times their rows. A **moment** says how many bytes a pixel of every stream takes in each state; the
bytes of all streams at all moments of all steps are one product of matrices.

Turns
    Layers p..q may take turns: p makes a block of the K channels of its map, layers in between pass it on channel by
    channel (depthwise convolutions, pooling), q adds it to its sums; then comes the next block. Room for the block of
    every map between them is reserved when it begins, room for the sums when the first one does. With blocks of c
    channels, and the others of the maps between them either done or to come, the bytes of block i = 0..K/c - 1 are

        sum over maps m between:  c / K made_m + i c / K after_m + (1 - (i + 1) c / K) before_m
        + sums of the piece of q + before_q + all other streams as they are while p runs,

    linear in i, so the first and the last block are enough. With c = 1 they are fewest. An example: two products of
    512 x 64 by 64 x 512 by 512 x 64. In strips of 256 rows, 16 KiB of the input and 128 KiB of the inner map take
    144 KiB; in turns 16 KiB of the input, 256 bytes of the inner map and 16 KiB of sums (of 1 byte) take 33 KiB.

    They take turns only where K channels of the first map are more than what the sums take in addition:
        K * bytes of an element * strides in between and of q > channels of q * (bytes of a sum - bytes of an element)

    Where q, too, makes each channel from that one (pooling, a depthwise convolution) there are no sums: room for its
    piece is reserved when the first block begins. It may join the map with others from outside, element by element:
    these are loaded before the first block. Objective time alone looks at such turns (`passing_of`).

Which layers take turns is decided by the least peak: let peak_t be that of layer t by itself, peak_pq that of turns;
    best_t = min of  max(best_(t-1), peak_t),  max(best_(p-1), peak_pt) over turns p..t

Weights
    A layer with W_l bytes of weights runs in n_l visits. In f bytes beside the streams, R_l bytes of it stay; the rest
    is streamed, a filter at a time, in every visit through one buffer of sigma bytes, the largest filter of those
    layers that do not stay whole. So a group loads
        min over sigma:  sum_l W_l + (n_l - 1) (W_l - R_l),   sum_l R_l + sigma <= f,   R_l = W_l where a filter > sigma
    The best R for a sigma fills the room in the order of n_l: exact, as R_l is any number of bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from formulations.fusion.groups import NEVER, Group, window
from formulations.fusion.strips import (
    BEFORE,
    DONE,
    MADE,
    Columns,
    Floats,
    Ints,
    Mode,
    Strips,
    columns_of,
    rows_of,
    states_of,
)
from hwmodels.schedule import Blocks
from instances.network.workload import Layer

#: Layers p..q of a group that may take turns, by number.
Turns = tuple[int, int]


def turns_of(group: Group) -> tuple[Turns, ...]:
    """Return the layers that may take turns for channels of the maps between them."""
    return tuple((first, last) for last in group.layers for first in _firsts(group, last))


def passing_of(group: Group) -> tuple[Turns, ...]:
    """Return neighbours that may take turns, of which the second makes each channel from one of the first."""
    layers = group.net.layers
    return tuple(
        (t, t + 1) for t in group.layers[:-1]
        if (_alone(group, t) or _joined(group, t)) and 1 in (layers[t].g, layers[t].m)
        and (layers[t + 1].g, layers[t + 1].m, layers[t + 1].n) == (channels_of(layers[t]), 1, 1) != (1, 1, 1)
    )  # fmt: skip


def channels_of(layer: Layer) -> int:
    """Return the channels of a layer's result."""
    return layer.g * layer.m


def _alone(group: Group, t: int) -> bool:
    """Whether the map of a layer is for the next one alone, which reads nothing else."""
    net = group.net
    return _private(group, t) and net.reads[t + 1] == (net.writes[t],)


def _joined(group: Group, t: int) -> bool:
    """Whether the next layer alone reads it, and joins it element by element with maps from outside."""
    net, layer = group.net, group.net.layers[t + 1]
    reads, made = net.reads[t + 1], {net.writes[u] for u in group.layers}
    once = reads.count(net.writes[t]) == 1 and made.intersection(reads) == {net.writes[t]}
    return _private(group, t) and once and layer.kind == "eltwise" and not layer.broadcast


def _private(group: Group, t: int) -> bool:
    """Whether a layer makes all of a map, which the next one alone reads."""
    net = group.net
    store = net.stores[net.writes[t]]
    return store.readers == (t + 1,) and len(store.parts) == 1 and not (store.results or store.dram)


def _firsts(group: Group, last: int) -> Iterator[int]:
    """The layers that may begin the turns that one ends, which adds up channels."""
    layers, net = group.net.layers, group.net
    adds, moved = layers[last], _strides(layers[last])
    extra = adds.m * (net.sum_bytes - net.element_bytes)
    for first in range(last - 1, group.first - 1, -1):
        makes = layers[first]
        if adds.g > 1 or not _alone(group, first) or channels_of(makes) != adds.n:
            return
        if 1 in (makes.g, makes.m) and adds.n * net.element_bytes * moved > extra and adds.n > 1:
            yield first
        if (makes.g, makes.m, makes.n) != (adds.n, 1, 1):
            return
        moved *= _strides(makes)


def _strides(layer: Layer) -> int:
    return window(layer, "rows").stride * window(layer, "columns").stride


@dataclass(frozen=True, eq=False)
class Memory:
    """Bytes on chip of a group in ways of rows and ways of columns."""

    group: Group
    rows: Strips
    columns: Strips
    stores: tuple[int, ...]
    """Those that may lie on chip anyway: then their streams take nothing. Subset i has the stores of the bits of i."""
    turns: tuple[Turns, ...] = ()
    """Layers that may take turns."""

    def peaks(self) -> Ints:
        """The least peak over turns of one channel each, (subsets, ways of rows, ways of columns)."""
        moments = [self._plain(t) for t in self.group.layers]
        if not self.turns:
            return self._most(moments, lambda held: held.max(axis=1, keepdims=True))[:, 0]
        for first, last in self.turns:
            moments += self._turned(Blocks(first, last, 1))
        count = len(self.group.layers)

        def each(held: Floats) -> Floats:
            """Layers by themselves, then turns: of each the first and the last block."""
            turned = np.maximum(held[:, count::2], held[:, count + 1 :: 2])
            return np.concatenate([held[:, :count], turned], axis=1)

        most = self._most(moments, each)
        return self._least(most[:, :count], dict(zip(self.turns, most[:, count:].swapaxes(0, 1), strict=True)))

    def peak(self, blocks: Sequence[Blocks]) -> int:
        """The peak of one way, all stores on chip, when these layers take turns."""
        turned = {t for one in blocks for t in range(one.first, one.last + 1)}
        moments = [self._plain(t) for t in self.group.layers if t not in turned]
        moments += [moment for one in blocks for moment in self._turned(one)]
        return self._one(moments)

    def held(self, blocks: Sequence[Blocks]) -> Ints:
        """Bytes of one way in every visit while each layer runs, (row steps, layers, column steps).

        Those that take turns are one: of each the most of its turns.
        """
        turned = {t: one for one in blocks for t in range(one.first, one.last + 1)}
        rows = []
        for t in self.group.layers:
            moments = self._turned(turned[t]) if t in turned else [self._plain(t)]
            rows.append(self._now(moments).max(axis=1))
        held: Ints = np.rint(np.stack(rows, axis=1)).astype(np.int64)
        return held

    def by_stream(self, blocks: Sequence[Blocks] = ()) -> Ints:
        """Bytes of every stream in every visit, (moments, streams, row steps, layers, column steps).

        While each layer runs; of those that take turns in the first and the last block: two moments, else one. Of one
        way of columns; no store is on chip, and no turns have sums.
        """
        moments = np.stack([self._alone] * (2 if blocks else 1))  # (moments, layers, streams, states)
        for one in blocks:
            for moment, (own, _) in zip(moments, self._turned(one), strict=True):
                moment[one.first - self.group.first : one.last - self.group.first + 1] = own
        held = np.stack([[self._bytes(own, [k]) for k in range(len(self.group.streams))] for own in moments])
        each: Ints = np.rint(held).astype(np.int64)
        return each

    def fewest(self, most: int) -> tuple[Blocks, ...]:
        """Turns for one way, all stores on chip, with a peak that is nowhere above `most`, where a layer by itself is.

        They are as few as possible, of as many channels.
        """
        alone = [self._one([self._plain(t)]) for t in self.group.layers]
        ways: list[tuple[Blocks, ...] | None] = [()]
        for k, t in enumerate(self.group.layers):
            fitting = [ways[k]] if alone[k] <= most else []
            for first in (p for p, last in self.turns if last == t):
                before = ways[first - self.group.first]
                if before is not None and (blocks := self._widest(first, t, most)) is not None:
                    fitting.append((*before, blocks))
            ways.append(min((way for way in fitting if way is not None), key=len, default=None))
        assert ways[-1] is not None
        return ways[-1]

    def _widest(self, first: int, last: int, most: int) -> Blocks | None:
        """Turns of the most channels that fit."""
        count = self.group.net.layers[last].n
        for channels in (size for size in range(count // 2, 0, -1) if count % size == 0):
            blocks = Blocks(first, last, channels)
            if self._one(self._turned(blocks)) <= most:
                return blocks
        return None

    def _least(self, alone: Ints, turned: dict[Turns, Ints]) -> Ints:
        """The least of the greatest peaks, layer after layer; peaks are (subsets, layers, ways ..)."""
        least = [np.zeros_like(alone[:, 0])]
        for k, t in enumerate(self.group.layers):
            best = np.maximum(least[k], alone[:, k])
            for (first, last), peak in turned.items():
                if last == t:
                    best = np.minimum(best, np.maximum(least[first - self.group.first], peak))
            least.append(best)
        return least[-1]

    # ---- moments -----------------------------------------------------------------------------------------------------

    def _plain(self, t: int) -> tuple[Floats, Floats]:
        """Bytes of a pixel of every stream in every state while a layer runs, (streams, states); no sums."""
        own = self._alone[t - self.group.first].copy()
        return own, np.zeros_like(own)

    @cached_property
    def _alone(self) -> Floats:
        """The same for every layer, (layers, streams, states)."""
        alone = np.zeros((len(self.group.layers), len(self.group.streams), states_of(self.group)))
        for k, stream in enumerate(self.group.streams):
            for t in self.group.layers:
                run = sum(u < t for u in stream.readers)
                state = BEFORE if t < stream.maker else MADE if t == stream.maker else DONE + run
                alone[t - self.group.first, k, state] = stream.pixel
        return alone

    def _turned(self, blocks: Blocks) -> list[tuple[Floats, Floats]]:
        """The same for the first and the last block of turns, with the sums (what is made of the last map)."""
        group, layer = self.group, self.group.net.layers[blocks.last]
        own, sums = self._plain(blocks.first)
        for k, stream in enumerate(group.streams):
            if stream.outside and blocks.first < stream.maker <= blocks.last:  # there before the first block
                own[k] = 0
                own[k, MADE] = stream.pixel
        result, channels = blocks.last - group.first, channels_of(group.net.layers[blocks.first])
        if layer.g > 1:  # it adds nothing up: its piece is there from the first block on
            own[result, BEFORE], own[result, MADE] = 0, group.streams[result].pixel
        else:
            sums[result, MADE] = layer.b * layer.m * group.net.sum_bytes
            sums[result, BEFORE] = -sums[result, MADE]
        moments = []
        for other in (BEFORE, DONE + 1):
            mine = own.copy()
            for k in range(blocks.first - group.first, result):
                part = group.streams[k].pixel * blocks.channels // channels
                mine[k] = 0
                mine[k, MADE], mine[k, other] = part, group.streams[k].pixel - part
            moments.append((mine, sums))
        return moments

    # ---- products ----------------------------------------------------------------------------------------------------

    def _one(self, moments: Sequence[tuple[Floats, Floats]]) -> int:
        """The most bytes of some moments of one way, all stores on chip."""
        return round(float(self._now(moments).max()))

    def _now(self, moments: Sequence[tuple[Floats, Floats]]) -> Floats:
        """Bytes of all streams at some moments, (row steps, moments, column steps)."""
        own, sums = (np.stack(each) for each in zip(*moments, strict=True))
        return self._bytes(own * self._fixed[:, None] + sums, range(len(self._fixed)))

    def _most(self, moments: Sequence[tuple[Floats, Floats]], joined: Callable[[Floats], Floats]) -> Ints:
        """The most bytes of moments that are joined, (subsets, joined moments, ways of rows, ways of columns)."""
        own, sums = (np.stack(each) for each in zip(*moments, strict=True))
        mine = [[k for k, stream in enumerate(self.group.streams) if stream.store == s] for s in self.stores]
        always = np.flatnonzero(self._fixed | sums.any(axis=(0, 2)))
        taken = [self._bytes(own * self._fixed[:, None] + sums, always), *(self._bytes(own, ks) for ks in mine)]
        result = []
        for subset in range(2 ** len(self.stores)):
            held = sum((part for bit, part in enumerate(taken[1:]) if not subset >> bit & 1), taken[0])
            result.append(self.rows.most(self.columns.most(joined(held), 2), 0).swapaxes(0, 1))
        peak: Ints = np.rint(np.stack(result)).astype(np.int64)
        return peak

    @cached_property
    def _fixed(self) -> npt.NDArray[np.bool_]:
        """Streams that always take room."""
        return np.array([stream.store not in self.stores for stream in self.group.streams])

    def _bytes(self, moments: Floats, streams: Sequence[int] | Ints) -> Floats:
        """Bytes of some streams at every moment, (row steps, moments, column steps)."""
        mine = np.flatnonzero(np.isin(self._columns.stream, streams))
        pixels = moments[:, self._columns.stream[mine]]  # (moments, classes, states)
        wide = np.einsum("mcx,cxt->cmt", pixels, self._columns.columns[mine], optimize=True)
        product: Floats = np.tensordot(self._rows[mine], wide, axes=(0, 0))
        return product

    @cached_property
    def _columns(self) -> Columns:
        return columns_of(self.group, self.columns)

    @cached_property
    def _rows(self) -> Floats:
        return rows_of(self.rows, self._columns)


# ---- options, and their weights --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """How a group runs: strip height and width of its last map, the halo along each axis, what is read in which way."""

    height: int
    width: int
    rows: Mode
    columns: Mode
    twice: frozenset[int] = frozenset()
    sampled: frozenset[int] = frozenset()
    """`twice`, `sampled`: as of `Group`."""

    @property
    def recomputes(self) -> bool:
        """Whether something is computed again."""
        return "recompute" in (self.rows, self.columns)


@dataclass(frozen=True)
class Weights:
    """The weights of the layers of a group, in bytes, and the bytes of a filter of each."""

    bytes: tuple[int, ...]
    filters: tuple[int, ...]

    def loaded(self, visits: Sequence[int], room: Ints) -> Ints:
        """Return the least bytes that are loaded in so much room; `NEVER` where a filter finds none."""
        total = sum(w * n for w, n in zip(self.bytes, visits, strict=True))
        best = np.full(room.shape, NEVER, np.int64)
        most = int(room.max())
        for sigma, kept, rest in self._streamed:
            must = sum(self.bytes[k] for k in kept) + sigma
            if must > most:
                continue
            order = sorted((k for k in rest if visits[k] > 1), key=lambda k: -visits[k])
            sizes = np.cumsum([0, *(self.bytes[k] for k in order)])
            gains = np.array([*(visits[k] - 1 for k in order), 0])
            saved = np.cumsum([0, *(self.bytes[k] * (visits[k] - 1) for k in order)])
            left = room - must
            free = np.maximum(left, 0)
            place = np.searchsorted(sizes, free, side="right") - 1
            gained = saved[place] + (free - sizes[place]) * gains[place]
            always = sum(self.bytes[k] * (visits[k] - 1) for k in kept)
            best = np.where(left >= 0, np.minimum(best, total - always - gained), best)
        return best

    def resident(self, visits: Sequence[int], room: int) -> tuple[int, ...]:
        """Return the bytes of every layer's weights that stay, for the least loads."""
        return tuple(self.residents(visits, np.array([room]))[0].tolist())

    def residents(self, visits: Sequence[int], rooms: Ints) -> Ints:
        """The same for several rooms, (rooms, layers)."""
        most, chosen = np.full(len(rooms), NEVER, np.int64), np.zeros((len(rooms), len(self.bytes)), np.int64)
        sizes, again = np.array(self.bytes, np.int64), np.array(visits, np.int64) - 1
        for sigma, kept, rest in self._streamed:
            always = [k in kept for k in range(len(sizes))]
            left = rooms - sigma - int(sizes[always].sum())
            if (left < 0).all():
                continue
            stay = np.tile(sizes * always, (len(rooms), 1))
            order = sorted((k for k in rest if visits[k] > 1), key=lambda k: -visits[k])
            before = np.cumsum([0, *sizes[order]])[:-1]
            stay[:, order] = np.clip(left[:, None] - before, 0, sizes[order])
            moved = np.where(left >= 0, sizes.sum() + ((sizes - stay) * again).sum(axis=1), NEVER)
            better = moved < most
            most[better], chosen[better] = moved[better], stay[better]
            if (most == sizes.sum()).all():
                break
        return chosen

    @cached_property
    def buffers(self) -> list[tuple[int, int]]:
        """Every buffer for streaming with the bytes that it takes together with weights that must stay for it."""
        taken = [(sigma, sigma + sum(self.bytes[k] for k in kept)) for sigma, kept, _ in self._streamed]
        return [(sigma, must) for at, (sigma, must) in enumerate(taken) if all(must < m for _, m in taken[:at])]

    @cached_property
    def _streamed(self) -> list[tuple[int, frozenset[int], tuple[int, ...]]]:
        """Every buffer for streaming, with the layers that must stay for it, and the others."""
        weighty = [k for k, w in enumerate(self.bytes) if w]
        return [
            (
                sigma, frozenset(k for k in weighty if self.filters[k] > sigma),
                tuple(k for k in weighty if self.filters[k] <= sigma),
            )
            for sigma in sorted({0, *(self.filters[k] for k in weighty)})
        ]  # fmt: skip


def weights_of(group: Group, sizes: Sequence[int]) -> Weights:
    """Return the weights of a group; `sizes`: the bytes of those of every layer of the network.

    Weights that several of its layers have are those of the first (`Group.together`: in the visits of all).
    """
    mine = [sizes[t] if owner == k else 0 for k, (t, owner) in enumerate(zip(group.layers, group.owners, strict=True))]
    layers = [group.net.layers[t] for t in group.layers]
    return Weights(tuple(mine), tuple(size // (x.g * x.m) for size, x in zip(mine, layers, strict=True)))
