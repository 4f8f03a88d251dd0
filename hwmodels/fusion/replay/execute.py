"""Executing a group on integers in a memory of so many bytes: layer by layer, visit by visit, row by row.

The memory (`Memory`) has the bytes that are counted, and not one more. Weights that stay are
loaded into it, the others pass through a buffer in it, filter by filter; pieces are loaded and made into it, and rows
are given back as soon as no reader has yet to see them. Which these are is found here, from the windows of all pieces
that readers will make: a reader needs what lies at or behind the first pixel of its next window in this step of rows,
and of its next one in a later step. If there is no byte left, or a pixel is read that is not there, that is a fault.

Every piece is computed tap by tap from what is read in the memory, and compared with the layers computed whole, one
after the other. Layers without weights add what is under their window; sums are taken modulo a prime, so that a whole
network's numbers stay small.

**Memory.** It knows who holds which bytes, and the numbers in them. Maps lie in it pixel by pixel, in any free bytes:
an element of two bytes takes two, and its number lies in the first. What is given back is overwritten with nonsense.
Nothing is ever counted here: there are bytes, or there are none left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hwmodels.fusion.replay.count import resident_rows, weight_bytes, weight_owners
from hwmodels.fusion.replay.strips import ALL, Moment, Reads, Walk, channels
from hwmodels.nest.replay.cores import spread
from hwmodels.nest.replay.execute import Operands, direct
from instances.machine.machine import Machine
from instances.network.stores import Stores

NONSENSE = 10**6 + 3


class Full(Exception):
    """Nothing is left."""


class Memory:
    """Bytes, those that are free last."""

    def __init__(self, size: int) -> None:
        self.values = np.full(size, NONSENSE, np.int64)
        self._free = np.arange(size)
        self._left = size
        self.most = 0
        """The most bytes that were ever taken."""

    @property
    def taken(self) -> int:
        """Bytes that are taken now."""
        return len(self.values) - self._left

    def take(self, count: int) -> Ints:
        """Take so many bytes; raises Full."""
        if count > self._left:
            raise Full(f"{self.taken:,} of {len(self.values):,} bytes are taken, {count:,} more are needed")
        self._left -= count
        self.most = max(self.most, self.taken)
        return self._free[self._left : self._left + count].copy()

    def give(self, places: Ints) -> None:
        """Give bytes back."""
        self.values[places] = NONSENSE
        self._free[self._left : self._left + places.size] = places.ravel()
        self._left += places.size


class Strip:
    """What of a map (elements of a pixel, rows, columns) lies in a memory, each element in so many bytes."""

    def __init__(self, memory: Memory, shape: Sequence[int], size: int) -> None:
        self.memory = memory
        self.places = np.full((*shape, size), -1, np.int64)

    @property
    def bytes(self) -> int:
        """Bytes that it takes."""
        return int((self.places >= 0).sum())

    def put(self, at: tuple[slice | Ints, slice, slice], values: Ints) -> None:
        """Write elements, in new bytes where they have none; raises Full."""
        places = self.places[at]
        missing = places < 0
        places[missing] = self.memory.take(int(missing.sum()))
        self.places[at] = places
        self.memory.values[places[..., 0]] = values

    def get(self, at: tuple[slice | Ints, slice, slice]) -> Ints:
        """Read elements; -1 does not hold any, and reads nonsense."""
        places = self.places[at][..., 0]
        if not self.memory.values.size:
            return np.full(places.shape, NONSENSE, np.int64)
        read: Ints = np.where(places >= 0, self.memory.values[places], NONSENSE)
        return read

    def holds(self, at: tuple[slice | Ints, slice, slice]) -> bool:
        """Whether all elements are there."""
        return bool((self.places[at] >= 0).all())

    def drop(self, elements: slice | Ints, pixels: npt.NDArray[np.bool_]) -> None:
        """Give some pixels back, of some elements."""
        mine = self.places[elements]
        gone = pixels[None, :, :, None] & (mine >= 0)
        if gone.any():
            self.memory.give(mine[gone])
            mine[gone] = -1
            self.places[elements] = mine


Ints = npt.NDArray[np.int64]
PRIME = 251
_EVERY = (slice(None),) * 3


@dataclass(frozen=True)
class Executed:
    """What happened.

    Attributes
    ----------
    faults : tuple of str
        What did not fit, was missing, or differs from the layers run whole.
    most_bytes : int
        The most bytes that were taken at once.
    held : tuple of tuple of int
        Whenever a layer had made a piece or added to it: bytes of every stream, then of partial sums.
    """

    faults: tuple[str, ...]
    most_bytes: int
    held: tuple[tuple[int, ...], ...]


def execute(
    found: Stores, machine: Machine, walk: Walk, size: int | None, *, watched: bool = False, computed: bool = True
) -> Executed:  # fmt: skip
    """Run a group on integers in so many bytes, or in as many as there may ever be. The streams must fit the layers.

    `watched`: note what every stream holds. `computed`: if not, zeros are written and none compared: rows come and go.
    """
    return _Execution(found, machine, walk, size, watched=watched, computed=computed).run()


class _Missing(Exception):
    """A pixel is read that is not there."""


class _Execution:
    """Maps have the shape (elements of a pixel, rows, columns)."""

    def __init__(
        self, found: Stores, machine: Machine, walk: Walk, size: int | None, *, watched: bool, computed: bool
    ) -> None:  # fmt: skip
        self.found, self.machine, self.walk, self.group = found, machine, walk, walk.run
        self.rng, self.watched, self.computed = np.random.default_rng(20), watched, computed
        self.operands: dict[int, Operands] = {}
        self.owners = weight_owners(found, walk.run)
        self.whole: dict[int, Ints] = {}
        self.outside: dict[tuple[int, int, int], Ints] = {}
        for t in range(self.group.first, self.group.last + 1):
            if computed:
                self._run_whole(t)
            else:
                layer = walk.layers[t]
                self.whole[t] = np.zeros((layer.b * channels(layer), layer.r, layer.c), np.int64)
        self.maps = [self._whole_map(k) for k in range(len(self.group.streams))]
        self.stay = [self._stay(k, mine) for k, mine in enumerate(self.maps)]
        stores = [stream.store for stream in self.group.streams]
        for made, place in self.group.in_place.items():  # one place: what is made overwrites what is read
            self.stay[stores.index(made)] = self.stay[stores.index(place)]
        self.rows = [resident_rows(found, walk, k) for k in range(len(self.maps))]
        self.memory, self.reads = Memory(self._everything() if size is None else size), Reads(walk)
        self.strips: list[Strip] = []
        self.sums: dict[int, Strip] = {}
        self.held: list[tuple[int, ...]] = []

    def run(self) -> Executed:
        """Take every visit of the walk."""
        wrong: dict[str, None] = {}
        try:
            self._begin()
            for visit, moments in enumerate(self.walk.each_visit()):
                self.reads.begin(visit)
                self._give_back(range(len(self.maps)))
                for moment in moments:
                    self._take(moment, wrong)
        except (Full, _Missing) as error:
            wrong[str(error)] = None
        return Executed(tuple(wrong), self.memory.most, tuple(self.held))

    def _everything(self) -> int:
        """Bytes of all weights and maps, and of sums in place of each."""
        layers = [self.walk.layers[t] for t in range(self.group.first, self.group.last + 1)]
        widest = max(self.machine.in_bytes, self.machine.out_bytes) + self.machine.psum_bytes
        return 2 * sum(weight_bytes(x, self.machine) for x in layers) + widest * sum(x.size for x in self.maps)

    def _begin(self) -> None:
        """Load the weights that stay, and keep room for a filter of the others."""
        self.weights, buffer = [], 0
        for k, t in enumerate(range(self.group.first, self.group.last + 1)):
            layer, stay = self.walk.layers[t], self.group.weights[k]
            whole = weight_bytes(layer, self.machine)
            places = self.memory.take(min(stay, whole))
            if self.computed:
                self.memory.values[places] = self._weight_stream(t)[: len(places)]
            self.weights.append(places)
            stay = self.group.weights[self.owners[k]]
            buffer = max(buffer, whole // channels(layer) if stay < whole else 0)
        self.filter = self.memory.take(buffer)
        for k, mine in enumerate(self.maps):
            stream = self.group.streams[k]
            size = self.machine.in_bytes if stream.outside else self.machine.out_bytes
            self.strips.append(Strip(self.memory, mine.shape, 0 if self._stays_whole(k) else size))

    def _take(self, moment: Moment, wrong: dict[str, None]) -> None:
        k, (top, bottom), (left, right) = moment.stream, moment.rows, moment.columns
        mine = self._channels(k, moment.block) if k in self.walk.between else slice(None)
        at = mine, slice(top, bottom), slice(left, right)
        t, something = self.group.first + k, top < bottom and left < right
        if moment.kind in ("shrink", "reserve"):
            return
        if something and moment.kind == "load":
            self._put(k, at, self.maps[k][at])
        elif something and moment.kind == "sums":
            layer = self.walk.layers[t]
            size = max(self.machine.psum_bytes, self.machine.out_bytes)
            self.sums[k] = Strip(self.memory, (layer.b * channels(layer), bottom - top, right - left), size)
            self.sums[k].put(_EVERY, np.zeros(self.sums[k].places.shape[:-1], np.int64))
        elif something and moment.kind == "add" and k in self.walk.summed:
            added = self._sums(moment)
            self.sums[k].put(_EVERY, self.sums[k].get(_EVERY) + added.reshape(-1, *added.shape[-2:]))
        elif something and (moment.kind == "add" or k not in self.walk.ends or k in self.walk.summed):
            at = self._channels(k, moment.block), *at[1:]
            piece = self._made(moment)
            self._put(k, at, piece)
            if (piece != self.maps[k][at]).any():
                wrong[f"layer {self.walk.layers[t].name}: computed strip by strip, its result differs"] = None
        if moment.kind in ("make", "add"):
            if self.watched:
                sums = sum(one.bytes for one in self.sums.values())
                self.held.append((*(strip.bytes for strip in self.strips), sums))
            self._after(moment)

    def _after(self, moment: Moment) -> None:
        """Give back what nobody needs when a layer has made its piece; of layers that take turns what is between."""
        k, blocks = moment.stream, {one.last - self.group.first: one for one in self.group.blocks}
        if moment.kind == "add":
            between = range(blocks[k].first - self.group.first, k)
            for one in between:
                self._drop(one, self._channels(one, moment.block), after=one + 1)
        elif k not in self.walk.between:
            first = blocks[k].first if k in blocks else self.group.first + k
            self.reads.done(range(first, self.group.first + k + 1))
            self._give_back(one for one in range(len(self.maps)) if one not in self.walk.between)

    def _give_back(self, streams: Iterator[int] | range) -> None:
        for k in streams:
            self._drop(k, slice(None))

    def _drop(self, k: int, elements: slice | Ints, after: int | None = None) -> None:
        """Give back what no reader has yet to see; `after`: a layer that has run, of layers that take turns."""
        needed = self.reads.needed(k, self.maps[k].shape[1:], after)
        self.strips[k].drop(elements, ~needed)

    def _put(self, k: int, at: tuple[slice | Ints, slice, slice], piece: Ints) -> None:
        """A piece into the memory, and into the rows that stay beyond the group."""
        try:
            if not self._stays_whole(k):
                self.strips[k].put(at, piece)
        except Full as error:
            stream = self.group.streams[k]
            name = self.walk.layers[stream.maker].name
            raise Full(
                f"layer {name}: no room for a piece of {self.found.stores[stream.store].name}: {error}"
            ) from None
        top, bottom = at[1].start, at[1].stop
        stays = max(top, min(bottom, self.rows[k]))
        self.stay[k][at[0], top:stays, at[2]] = piece[:, : stays - top]

    def _stays_whole(self, k: int) -> bool:
        store = self.group.streams[k].store
        return store in self.group.residents and self.group.residents[store][0] == self.found.stores[store].rows

    def _channels(self, k: int, block: int) -> slice | Ints:
        """The elements of a pixel that a block of a stream has: of every image of a batch some channels."""
        if block == ALL:
            return slice(None)
        layer = self.walk.layers[self.group.first + k]
        every = np.arange(layer.b * channels(layer)).reshape(layer.b, self.walk.turns[k], -1)
        chosen: Ints = every[:, block].ravel()
        return chosen

    # ---- weights -----------------------------------------------------------------------------------------------------

    def _weight_stream(self, t: int) -> Ints:
        """The bytes of a layer's weights, filter by filter: every byte says the number that it is a part of."""
        layer, machine = self.walk.layers[t], self.machine
        if layer.weights == "none":
            return np.zeros(0, np.int64)
        filters = self.operands[t].weights.reshape(channels(layer), -1).repeat(machine.w_bytes, axis=1)
        biases = self.operands[t].bias.reshape(-1, 1).repeat(machine.bias_bytes if layer.bias else 0, axis=1)
        return np.concatenate([filters, biases], axis=1).ravel()

    def _filters(self, t: int) -> tuple[Ints, Ints]:
        """Weights and biases of a layer as its piece takes them: from what stays, and filter by filter."""
        layer, held, machine = self.walk.layers[t], self.weights[self.owners[t - self.group.first]], self.machine
        if layer.weights == "none":
            return self.operands[t].weights, self.operands[t].bias
        every = self._weight_stream(t).reshape(channels(layer), -1)
        read, size = np.empty_like(every), every.shape[1]
        stay = self.memory.values[held]
        for f in range(channels(layer)):
            kept = stay[f * size : (f + 1) * size]
            through = self.filter[: size - len(kept)]
            self.memory.values[through] = every[f, len(kept) :]
            read[f] = np.concatenate([kept, self.memory.values[through]])
        taps = layer.n * layer.kh * layer.kw * machine.w_bytes
        weights = read[:, :taps][:, :: machine.w_bytes].reshape(self.operands[t].weights.shape)
        counted = layer.bias and machine.bias_bytes
        bias = read[:, taps].reshape(layer.g, layer.m) if counted else self.operands[t].bias
        return weights, bias

    # ---- layers whole ------------------------------------------------------------------------------------------------

    def _run_whole(self, t: int) -> None:
        layer = self.found.layers[t]
        inputs = tuple(self._taken(t, k, self._whole_input(t, s)) for k, s in enumerate(self.found.reads[t]))
        shape = (layer.g, layer.m, layer.n, layer.kh, layer.kw)
        weights = np.ones(shape, np.int64) if layer.weights == "none" else self.rng.integers(-9, 10, shape)
        bias = self.rng.integers(-99, 100, (layer.g, layer.m)) if layer.bias else np.zeros((layer.g, layer.m), np.int64)
        if (owner := self.group.first + self.owners[t - self.group.first]) < t:
            weights = self.operands[owner].weights.reshape(shape)
            bias = self.operands[owner].bias.reshape(bias.shape) if layer.bias else bias
        self.operands[t] = Operands(inputs, weights, bias)
        self.whole[t] = direct(layer, self.operands[t]).reshape(-1, layer.r, layer.c) % PRIME

    def _whole_input(self, t: int, store: int) -> Ints:
        made = [p for p, _ in self.found.stores[store].parts if self.group.first <= p < t]  # of the group, before t
        if made:
            return np.concatenate([self.whole[p] for p in made])
        given = self.found.operand(t, store)
        key = store, given.rows, given.columns
        if key not in self.outside:
            seen = [self.found.operand(u, store) for u in self.found.stores[store].readers]
            elements = max(x.elements for x in seen if (x.rows, x.columns) == key[1:])
            self.outside[key] = self.rng.integers(0, PRIME, (elements, *key[1:]))
        return self.outside[key]

    def _taken(self, t: int, number: int, pixels: Ints) -> Ints:
        """What an input of a layer has of a map, (b, g, n, rows, columns): of more elements a pixel the first.

        What it lacks is spread.
        """
        layer, lacks = self.walk.layers[t], self.walk.layers[t].patterns[number]
        b, g = (1 if d in lacks else layer.extent(d) for d in "bg")
        given = pixels[: b * g * layer.n].reshape(b, g, layer.n, *pixels.shape[1:])
        return spread(given, layer) if lacks else given

    # ---- strips ------------------------------------------------------------------------------------------------------

    def _whole_map(self, k: int) -> Ints:
        stream = self.group.streams[k]
        if not stream.outside:
            return self.whole[stream.maker]
        seen = [self.found.operand(u, stream.store) for u in stream.readers]  # others may see more of the store
        every = self._whole_input(stream.maker, stream.store)[: max(x.elements for x in seen)]
        pitch = self.walk.found.pitch.get(stream.maker) if stream.outside else None
        return every if pitch is None else every[:, :: pitch.down, :: pitch.across]

    def _stay(self, k: int, whole: Ints) -> Ints:
        """The rows that stay beyond the group: of a map from outside they are there."""
        stay, there = np.full_like(whole, NONSENSE), resident_rows(self.found, self.walk, k)
        if self.group.streams[k].outside:
            stay[:, :there] = whole[:, :there]
        return stay

    def _input(self, moment: Moment, store: int) -> Ints:
        """What a layer reads of a store, rows and columns of the window from its first pixel on; raises _Missing."""
        t = self.group.first + moment.stream
        layer, parts, given = self.walk.layers[t], [], self.walk.found.operand(t, store)
        for k, stream in enumerate(self.group.streams):
            if stream.store != store or t not in stream.readers:
                continue
            top, bottom = self.walk.sees(t, k, "rows", moment.rows)
            left, right = self.walk.sees(t, k, "columns", moment.columns)
            mine = self._channels(k, moment.block) if k in self.walk.between else slice(None)
            border = min(bottom, max(top, self.rows[k]))
            at = mine, slice(border, bottom), slice(left, right)
            if not self._stays_whole(k) and not self.strips[k].holds(at):
                name = self.found.stores[store].name
                raise _Missing(f"layer {layer.name}: rows {border} to {bottom - 1} of {name} are not all in the memory")
            if not self.computed:
                continue
            piece = np.full((len(self.maps[k]), given.rows, given.columns), NONSENSE, np.int64)
            piece[:, top:border, left:right] = self.stay[k][:, top:border, left:right]
            if not self._stays_whole(k):
                piece[at] = self.strips[k].get(at)
            parts.append(piece)
        return np.concatenate(parts) if self.computed else np.zeros(0, np.int64)

    def _made(self, moment: Moment) -> Ints:
        """A piece of a layer, or a block of its channels."""
        k, t = moment.stream, self.group.first + moment.stream
        if not self.computed:
            return self._rows_only(moment)
        groups, filters, _ = self._share(k, moment.block)
        if k in self.walk.summed:
            strip, bias = self.sums.pop(k), self.operands[t].bias
            sums = strip.get(_EVERY).reshape(self.walk.layers[t].b, *bias.shape, *strip.places.shape[1:3])
            strip.drop(slice(None), np.ones(strip.places.shape[1:3], np.bool_))
        else:
            sums, bias = self._sums(moment), self._filters(t)[1]
        sums = sums + bias[None, groups, filters, None, None]
        return sums.reshape(-1, *sums.shape[3:]) % PRIME

    def _rows_only(self, moment: Moment) -> Ints:
        """Read what a piece is made of, and make zeros of it."""
        k, (top, bottom), (left, right) = moment.stream, moment.rows, moment.columns
        if (strip := self.sums.pop(k, None)) is not None:
            strip.drop(slice(None), np.ones(strip.places.shape[1:3], np.bool_))
        else:
            for store in self.found.reads[self.group.first + k]:
                self._input(moment, store)
        return self.maps[k][self._channels(k, moment.block), top:bottom, left:right]

    def _share(self, k: int, block: int) -> tuple[slice, slice, slice]:
        """Groups, filters and input channels of a block: the maker's channels, or those that are added to sums."""
        layer, every = self.walk.layers[self.group.first + k], slice(None)
        if block == ALL:
            return every, every, every
        if k in self.walk.summed:
            return every, every, _part(layer.n, self.walk.turns[k], block)
        some = _part(channels(layer), self.walk.turns[k], block)
        return (every, some, every) if layer.g == 1 else (some, every, every)

    def _sums(self, moment: Moment) -> Ints:
        """Sums of products of a piece, tap by tap, (b, g, m, rows, columns); of a block what it adds, or its own."""
        k, rows, columns = moment.stream, moment.rows, moment.columns
        t = self.group.first + k
        if not self.computed:
            for store in self.found.reads[t]:
                self._input(moment, store)
            return np.zeros((1, 1, 1), np.int64)
        groups, filters, inputs = self._share(k, moment.block)
        layer, weights = self.walk.layers[t], self._filters(t)[0][groups, filters, inputs]
        out = np.zeros((layer.b, *weights.shape[:2], rows[1] - rows[0], columns[1] - columns[0]), np.int64)
        for number, store in enumerate(self.found.reads[t]):
            source = self._taken(t, number, self._input(moment, store))[:, groups, inputs]
            for i in range(layer.kh):
                y = np.arange(*rows) * layer.stride_h - layer.pad_top + i * layer.dilation_h
                for j in range(layer.kw):
                    x = np.arange(*columns) * layer.stride_w - layer.pad_left + j * layer.dilation_w
                    inside = ((y >= 0) & (y < layer.h))[:, None] & (x >= 0) & (x < layer.l)
                    tap = source[..., y.clip(0, layer.h - 1)[:, None], x.clip(0, layer.l - 1)]
                    tap = np.where(inside, tap, 0)
                    out += np.einsum("bgnrc,gmn->bgmrc", tap, weights[:, :, :, i, j])
        return out


def _part(size: int, turns: int, block: int) -> slice:
    """The numbers of a block."""
    return slice(size // turns * block, size // turns * (block + 1))
