"""Executing a group on integers, strip by strip, in buffers that lose what is not kept.

Every map has a buffer with its last strips and one with the rows that stay on chip. What leaves the area of a map is
overwritten with nonsense, so that reading it shows. Every piece is computed tap by tap from the buffers, and compared
with the layers computed whole, one after the other. Layers without weights add what is under their window; sums are
taken modulo a prime, so that a whole network's numbers stay small.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hwmodels.fusion.replay_count import kept, resident_rows
from hwmodels.fusion.replay_strips import ALL, Moment, Walk, channels
from hwmodels.nest.execute import Operands, direct
from instances.stores import Stores
from instances.workload import Layer

Ints = npt.NDArray[np.int64]
PRIME = 251
NONSENSE = 10**6 + 3


def execute(found: Stores, walk: Walk) -> tuple[str, ...]:
    """Run a group on integers; returns the names of what differs from the layers run whole.

    The walk must be free of faults: streams fit the layers, and every window lies on chip.
    """
    return _Execution(found, walk).run()


class _Execution:
    """Buffers have the shape (elements of a pixel, rows, columns)."""

    def __init__(self, found: Stores, walk: Walk) -> None:
        self.found, self.walk, self.group = found, walk, walk.run
        self.rng = np.random.default_rng(20)
        self.operands: dict[int, Operands] = {}
        self.whole: dict[int, Ints] = {}
        self.outside: dict[tuple[int, int, int], Ints] = {}
        for t in range(self.group.first, self.group.last + 1):
            self._run_whole(t)
        maps = [self._whole_map(k) for k in range(len(self.group.streams))]
        self.strips = [np.full_like(mine, NONSENSE) for mine in maps]
        self.stay = [self._stay(k, mine) for k, mine in enumerate(maps)]
        self.rows = [resident_rows(found, walk, k) for k in range(len(maps))]
        self.maps = maps
        self.sums: dict[int, Ints] = {}

    def run(self) -> tuple[str, ...]:
        """Take every moment of the walk."""
        wrong: dict[str, None] = {}
        for moment in self.walk.moments():
            k, (top, bottom), (left, right) = moment.stream, moment.rows, moment.columns
            mine = self._channels(k, moment.block) if k in self.walk.between else slice(None)
            kept(self.strips[k][mine], moment.area, NONSENSE)
            if top >= bottom or left >= right or moment.kind == "sums":
                continue
            if moment.kind == "add":
                self.sums[k] = self.sums.get(k, 0) + self._sums(moment)
                continue
            want = self.maps[k][mine, top:bottom, left:right]
            piece = want if moment.kind == "load" else self._made(moment)
            if (piece != want).any():
                wrong[self.walk.layers[self.group.first + k].name] = None
            self.strips[k][mine, top:bottom, left:right] = piece
            stays = max(top, min(bottom, self.rows[k]))
            self.stay[k][mine, top:stays, left:right] = piece[:, : stays - top]
        return tuple(f"layer {name}: computed strip by strip, its result differs" for name in wrong)

    def _channels(self, k: int, block: int) -> slice | Ints:
        """The elements of a pixel that a block of a stream has: of every image of a batch some channels."""
        if block == ALL:
            return slice(None)
        layer = self.walk.layers[self.group.first + k]
        every = np.arange(layer.b * channels(layer)).reshape(layer.b, self.walk.turns[k], -1)
        chosen: Ints = every[:, block].ravel()
        return chosen

    # ---- layers whole ------------------------------------------------------------------------------------------------

    def _run_whole(self, t: int) -> None:
        layer = self.walk.layers[t]
        inputs = tuple(self._taken(layer, self._whole_input(t, s)) for s in self.found.reads[t])
        shape = (layer.g, layer.m, layer.n, layer.kh, layer.kw)
        weights = np.ones(shape, np.int64) if layer.weights == "none" else self.rng.integers(-9, 10, shape)
        bias = self.rng.integers(-99, 100, (layer.g, layer.m)) if layer.bias else np.zeros((layer.g, layer.m), np.int64)
        self.operands[t] = Operands(inputs, weights, bias)
        self.whole[t] = direct(layer, self.operands[t]).reshape(-1, layer.r, layer.c) % PRIME

    def _whole_input(self, t: int, store: int) -> Ints:
        made = self._makers(t, store)
        if made:
            return np.concatenate([self.whole[p] for p in made])
        key = store, self.walk.layers[t].h, self.walk.layers[t].l
        if key not in self.outside:
            readers = [self.walk.layers[u] for u in self.found.stores[store].readers]
            elements = max(x.b * x.g * x.n for x in readers if (x.h, x.l) == key[1:])
            self.outside[key] = self.rng.integers(0, PRIME, (elements, *key[1:]))
        return self.outside[key]

    def _makers(self, t: int, store: int) -> list[int]:
        """The layers of the group that made parts of a store before layer t runs."""
        return [p for p, _ in self.found.stores[store].parts if self.group.first <= p < t]

    def _taken(self, layer: Layer, pixels: Ints) -> Ints:
        """What a layer reads of a map, (b, g, n, rows, columns): of more elements a pixel than it sees, the first."""
        return pixels[: layer.b * layer.g * layer.n].reshape(layer.b, layer.g, layer.n, *pixels.shape[1:])

    # ---- strips ------------------------------------------------------------------------------------------------------

    def _whole_map(self, k: int) -> Ints:
        stream = self.group.streams[k]
        return self._whole_input(stream.maker, stream.store) if stream.outside else self.whole[stream.maker]

    def _stay(self, k: int, whole: Ints) -> Ints:
        """The rows that stay: of a map from outside they are there."""
        stay, there = np.full_like(whole, NONSENSE), resident_rows(self.found, self.walk, k)
        if self.group.streams[k].outside:
            stay[:, :there] = whole[:, :there]
        return stay

    def _input(self, t: int, store: int) -> Ints:
        """What lies on chip of a store that layer t reads; nonsense where nothing does."""
        parts = []
        for k, stream in enumerate(self.group.streams):
            if stream.store == store and t in stream.readers:
                parts.append(
                    np.concatenate([self.stay[k][:, : self.rows[k]], self.strips[k][:, self.rows[k] :]], axis=1)
                )
        return np.concatenate(parts)

    def _made(self, moment: Moment) -> Ints:
        """A piece of a layer, or a block of its channels."""
        k = moment.stream
        groups, filters, _ = self._share(k, moment.block)
        sums = self.sums.pop(k) if k in self.walk.summed else self._sums(moment)
        sums = sums + self.operands[self.group.first + k].bias[None, groups, filters, None, None]
        return sums.reshape(-1, *sums.shape[3:]) % PRIME

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
        groups, filters, inputs = self._share(k, moment.block)
        layer, weights = self.walk.layers[t], self.operands[t].weights[groups, filters, inputs]
        out = np.zeros((layer.b, *weights.shape[:2], rows[1] - rows[0], columns[1] - columns[0]), np.int64)
        for store in self.found.reads[t]:
            source = self._taken(layer, self._input(t, store))[:, groups, inputs]
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
