"""A good nest of a small layer on one memory and those behind it, in about a millisecond: for the steps of networks.

Each operand has one memory behind the first. Nests of three kinds are compared, with F filters (of all groups, or the
groups themselves) in pieces of q, rows in pieces of p, columns in pieces of w:

    rows      all weights stay           W | r p, c w | IN, OUT             (q = F)
    filters   weights once, the input for each of their pieces     m q | W | r p, c w | IN, OUT
    maps      the input once, weights for each of its pieces       r p, c w | IN | m q | W, OUT

Where nothing fits, columns, input channels (inside OUT) and batches are cut. With C ticks of compute,
D of transfers, and the first and last tiles, a nest takes roughly

    max(C, D) + first loads + last store        C + D in place of max(C, D) where a memory has one buffer

and the best few are followed (`hwmodels.levels.pipeline`). What comes out is no proven optimum: no step is below
`least` (`formulations.fusion.near`), and bounds take that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from hwmodels.levels.price import window_of
from hwmodels.levels.schedule import Cut, LevelNest, Stay
from hwmodels.nest.price.bilinear import Ints
from instances.machine.levels import Level
from instances.machine.machine import Machine
from instances.network.workload import Layer


@dataclass(frozen=True)
class _Sizes:
    """Pieces of rows, columns, filters (groups) and channels, (candidates,) each."""

    p: Ints
    w: Ints
    q: Ints
    n: Ints


def nests(layer: Layer, machine: Machine, most: int) -> Iterator[LevelNest]:
    """Yield so many nests that fit, the most promising one first; none if not even single elements do."""
    quick = _Quick(layer, machine)
    for columns, channels, batch in _finer(layer):
        if found := quick.best(columns, channels, batch, most):
            yield from found
            return


def _finer(layer: Layer) -> Iterator[tuple[int, int, int]]:
    """Pieces of columns, channels and batches that are looked at: whole ones first."""
    columns, channels = _halves(layer.c), _halves(layer.n)
    batches = dict.fromkeys((layer.b, 1))
    for n, w, b in product(channels, columns, batches):
        yield w, n, b


def _halves(size: int) -> list[int]:
    return list(dict.fromkeys(-(-size // 2**k) for k in range(size.bit_length() + 1)))


def _pieces(size: int, lanes: int) -> Ints:
    """Sizes of pieces that make a number of equal ones; whole rounds of lanes, if there are several."""
    parts = np.arange(1, size + 1) if size <= 64 else np.unique(np.geomspace(1, size, 64).astype(np.int64))
    some = -(-size // parts)
    rounds = np.minimum(-(-some // lanes) * lanes, size)
    made: Ints = np.unique(np.concatenate([some, rounds]))
    return made


#: As many tiles are followed at the most; a referee runs the loops one by one.
TILES = 200_000


class _Quick:
    def __init__(self, layer: Layer, machine: Machine) -> None:
        assert machine.levels is not None
        self.layer, self.machine = layer, machine
        first, *near = machine.levels.memories
        self.first, self.near = first, near
        self.holds: dict[str, Level] = {operand: one for one in near for operand in one.operands}
        unit = machine.compute
        single = layer.m == layer.n == 1
        self.lanes = (unit.cols if single else unit.rows) if unit.model == "array" else 1
        self.depth = unit.cols if unit.model == "array" and not single else 1
        self.filters, self.dim = (layer.g, "g") if layer.g > 1 else (layer.m, "m")
        self.rows, self.across = _pieces(layer.r, 1), _pieces(self.filters, self.lanes)

    def best(self, columns: int, channels: int, batch: int, most: int) -> list[LevelNest]:
        """The best nests with these pieces, by their rough time."""
        p, q = (one.ravel() for one in np.meshgrid(self.rows, self.across))
        sizes = _Sizes(p, np.full_like(p, columns), q, np.full_like(p, channels))
        fits = self._fits(sizes, batch)
        if not fits.any():
            return []
        sizes = _Sizes(*(one[fits] for one in (sizes.p, sizes.w, sizes.q, sizes.n)))
        rough = np.stack([self._rough(sizes, kind) for kind in (False, True)])
        order = np.argsort(rough, axis=None, kind="stable")
        made = dict[LevelNest, None]()
        for k in order[: 3 * most].tolist():
            kind, at = divmod(k, len(sizes.p))
            made[self._nest(sizes, at, batch, maps=bool(kind))] = None
        return list(made)[:most]

    # ---- tiles -------------------------------------------------------------------------------------------------------

    def _window(self, rows: Ints, axis: str) -> Ints:
        one = window_of(self.layer, axis)
        read: Ints = np.minimum((rows - 1) * one.stride + one.reach, one.size)
        return read

    def _tiles(self, sizes: _Sizes, batch: int) -> dict[str, Ints]:
        """Bytes of a tile of every operand."""
        one, machine = self.layer, self.machine
        groups, filters = (sizes.q, one.m) if self.dim == "g" else (1, sizes.q)
        read = self._window(sizes.p, "r") * self._window(sizes.w, "c")
        bias = machine.bias_bytes if one.bias else 0
        parts = machine.psum_bytes if sizes.n[0] < one.n else 0
        results = batch * groups * filters * sizes.p * sizes.w
        return {
            "IN": batch * groups * sizes.n * read * one.inputs * machine.in_bytes,
            "W": groups * filters * (sizes.n * one.kh * one.kw * machine.w_bytes + bias) * (one.weights != "none"),
            "OUT": np.asarray(results * max(machine.out_bytes, parts)),
        }

    def _fits(self, sizes: _Sizes, batch: int) -> Ints:
        """Whether all tiles find room."""
        tiles = self._tiles(sizes, batch)
        layer = self.layer
        number = -(-layer.r // sizes.p) * -(-layer.c // sizes.w) * -(-self.filters // sizes.q) * -(-layer.n // sizes.n)
        fits = number * -(-layer.b // batch) <= TILES
        for one in self.near:
            taken = sum(tiles[operand] for operand in one.operands)
            fits &= one.reserved_bytes + one.buffers * taken <= (one.bytes or 0)
        return fits  # type: ignore[return-value]

    def _rough(self, sizes: _Sizes, maps: bool) -> Ints:
        """Roughly the ticks of a nest."""
        one, tiles, price = self.layer, self._tiles(sizes, self.layer.b), self.first
        high, wide, some = -(-one.r // sizes.p), -(-one.c // sizes.w), -(-self.filters // sizes.q)
        pieces, parts = high * wide, -(-one.n // sizes.n)
        by_filters = some if self.dim == "m" else 1
        read = self._read(sizes, high)
        reads = read * (1 if maps and parts[0] == 1 else by_filters)
        weighs = one.weight_elements * self.machine.w_bytes * (pieces if maps or parts[0] > 1 else 1)
        weighs = weighs * (one.weights != "none")
        stored = prod((one.b, one.g, one.m, one.r, one.c)) * self.machine.out_bytes
        groups = 1 if self.dim == "m" else some
        calls_in = pieces * groups * parts * (1 if maps and parts[0] == 1 else by_filters) * one.inputs
        calls_w = some * parts * (pieces if maps or parts[0] > 1 else 1) * (one.weights != "none")
        moved = (reads + weighs + stored) * price.byte_ticks + (calls_in + calls_w + pieces * some) * price.call_ticks
        computed = self._compute(sizes, some)
        edge = sum(tiles.values()) * price.byte_ticks + 3 * price.call_ticks
        ahead = all(memory.buffers > 1 for memory in self.near)
        made: Ints = (np.maximum(computed, moved) if ahead else computed + moved) + edge
        return made

    def _read(self, sizes: _Sizes, high: Ints) -> Ints:
        """Bytes of the input once; with the rows that windows share, if these do not slide."""
        one = self.layer
        rows = one.h if self.machine.sliding else high * self._window(sizes.p, "r")
        columns = one.l if sizes.w[0] == one.c else self._window(sizes.w, "c") * -(-one.c // sizes.w)
        read: Ints = rows * columns * np.full_like(high, one.b * one.g * one.n * one.inputs * self.machine.in_bytes)
        return read

    def _compute(self, sizes: _Sizes, some: Ints) -> Ints:
        """Ticks of the PEs."""
        one, unit = self.layer, self.machine.compute
        last = self.filters - (some - 1) * sizes.q
        rounds = (some - 1) * -(-sizes.q // self.lanes) + -(-last // self.lanes)
        if self.dim == "g" and one.m * one.n > 1:
            rounds = np.full_like(some, one.g * -(-one.m // self.lanes))
        parts = -(-one.n // sizes.n)
        deep = parts * -(-sizes.n // self.depth)
        ticks: Ints = rounds * deep * (one.b * one.r * one.c * one.kh * one.kw * one.inputs * unit.cycle_ticks)
        return ticks

    # ---- nests -------------------------------------------------------------------------------------------------------

    def _nest(self, sizes: _Sizes, at: int, batch: int, maps: bool) -> LevelNest:
        """One as items; loops that cut nothing are left out."""
        one = self.layer
        p, w, q, n = (int(each[at]) for each in (sizes.p, sizes.w, sizes.q, sizes.n))
        first = self._cut("b", batch, one.b)
        pixels = [*self._cut("c", w, one.c), *self._cut("r", p, one.r)]
        filters, parts = self._cut(self.dim, q, self.filters), self._cut("n", n, one.n)
        inputs, weights, results = (self._stay(operand) for operand in ("IN", "W", "OUT"))
        if parts:
            items = [*filters, *pixels, *results, *parts, *inputs, *weights]
        elif maps and weights and self.dim == "m":
            items = [*pixels, *inputs, *filters, *weights, *results]
        else:
            items = [*filters, *weights, *pixels, *inputs, *results]
        return LevelNest((*first, *items))

    def _stay(self, operand: str) -> list[Cut | Stay]:
        if operand not in self.layer.operands:
            return []
        at: Level = self.holds[operand]
        return [Stay(operand, at.name)]  # type: ignore[arg-type]

    def _cut(self, dim: str, step: int, size: int) -> list[Cut | Stay]:
        return [Cut(dim, step)] if step < size else []  # type: ignore[arg-type]
