"""Walking one core's nest step by step: which tile is resident when, and what moves because of it.

The walk visits every innermost iteration in order. It is vectorised over blocks of iterations: a block carries, for
every looped dimension, the number of the piece that each iteration works on; everything that must survive from one
block to the next (what is resident, which outputs have partial sums, what the pipeline is waiting for) is carried
explicitly. Nothing is derived from trip counts: a transfer happens where two consecutive steps lie in different
iterations of the loops that fetch an operand (docs/nest.md), and a result is final when all the steps that contribute
to it have been seen. In snake order a loop runs backwards where the positions of the loops outside it add up to an odd
number, and a transfer happens where two consecutive steps work on different tiles.

Beside it: what is fetched of a tile of IN that slides, by addresses, and what IN takes in lines (docs/nest.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np
import numpy.typing as npt

from hwmodels.nest.replay.counts import Axis, Stored, call_of, price
from hwmodels.nest.replay.cuts import Cuts, operand_at
from hwmodels.outcome import Counts
from instances.machine.machine import Transfer

Ints = npt.NDArray[np.int64]
#: Iterations that are walked at once (memory: about 100 bytes each).
BLOCK_STEPS = 1 << 18


class Places:
    """The tiles of one operand at its Hold, numbered: the tile that every innermost iteration works on.

    `levels`: the relevant dimensions, with the number of loops over each that stand outside the Hold.
    """

    def __init__(self, cuts: Mapping[str, Cuts], levels: Mapping[str, int]) -> None:
        self.shape = tuple(len(cuts[d].start[k]) for d, k in levels.items())
        self.size = int(np.prod(self.shape, dtype=np.int64))
        self.index: dict[str, Ints] = {}
        weight = self.size
        for (dim, level), size in zip(levels.items(), self.shape, strict=True):
            weight //= size
            if size > 1:
                self.index[dim] = cuts[dim].ancestor(level) * weight

    def tiles(self, ids: Mapping[str, Ints], steps: int) -> Ints:
        """Return the tile of each of `steps` iterations, given their innermost pieces."""
        parts = [index[ids[dim]] for dim, index in self.index.items()]
        if not parts:
            return np.zeros(steps, np.int64)
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total


def blocks(
    cuts: Mapping[str, Cuts], loops: Sequence[tuple[str, int]], ids: dict[str, Ints], odd: Ints | None = None
) -> Iterator[dict[str, Ints]]:
    """Yield the innermost pieces of consecutive iterations, block by block, in the order of the nest.

    `odd` is 1 where the positions of the loops outside add up to an odd number; None if all loops run forwards.
    """
    for depth, (dim, level) in enumerate(loops):
        mine = ids[dim]
        number, first = cuts[dim].number[level][mine], cuts[dim].first[level][mine]
        total, size = int(number.sum()), len(mine)
        if total > BLOCK_STEPS and size > 1:
            bounds = np.linspace(0, size, min(size, -(-total // BLOCK_STEPS)) + 1).astype(np.int64)
            for a, b in pairwise(bounds):
                part = None if odd is None else odd[a:b]
                yield from blocks(cuts, loops[depth:], {d: v[a:b] for d, v in ids.items()}, part)
            return
        offset = np.arange(total, dtype=np.int64) - np.repeat(np.cumsum(number) - number, number)
        if odd is not None:
            odd = np.repeat(odd, number)
            offset = np.where(odd == 1, np.repeat(number, number) - 1 - offset, offset)
            odd = (odd + offset) % 2
        ids = {d: np.repeat(first, number) + offset if d == dim else np.repeat(v, number) for d, v in ids.items()}
    yield ids


def changes(visits: Ints, last: int) -> Ints:
    """Positions at which another visit begins than the last one."""
    changed = np.empty(len(visits), bool)
    changed[0] = visits[0] != last
    np.not_equal(visits[1:], visits[:-1], out=changed[1:])
    return np.flatnonzero(changed)


class Moved:
    """Ticks that each step of a block loads and stores, apart for operands with one buffer and with two."""

    def __init__(self, size: int) -> None:
        self.load = {number: np.zeros(size, np.int64) for number in (1, 2)}
        self.store = {number: np.zeros(size + 1, np.int64) for number in (1, 2)}


class Pipeline:
    """Double buffering: while step k computes, step k+1 is loaded and the result of step k-1 is stored.

    Operands with a single buffer are loaded and stored between the steps, which adds up.
    """

    def __init__(self) -> None:
        self.time, self.pending, self.stored = 0, -1, 0

    def take(self, moved: Moved, compute: Ints) -> None:
        """Advance by one block; ``store[0]`` is the step before the block."""
        load, store = moved.load[2], moved.store[2]
        self.time += int(moved.load[1].sum()) + int(moved.store[1].sum())
        if self.pending < 0:
            self.time += int(load[0])
        else:
            self.time += max(self.pending, int(load[0]), self.stored)
        self.time += int(np.maximum(np.maximum(compute[:-1], load[1:]), store[:-2]).sum())
        self.pending, self.stored = int(compute[-1]), int(store[-2])

    def close(self, last_store: int) -> int:
        """Drain: the last step computes while the one before is stored, then its own result is."""
        return self.time + max(self.pending, self.stored) + last_store


class _Input:
    """IN or W: fetched whenever the loops that fetch it begin another iteration (a visit)."""

    def __init__(self, places: Places, visits: Places, price: Ints) -> None:
        self.places, self.visits, self.price = places, visits, price
        self.fetches = np.zeros(places.size, np.int64)
        self.visit = -1

    def take(self, tiles: Ints, visits: Ints, load: Ints | None) -> None:
        at = changes(visits, self.visit)
        fetched = tiles[at]
        np.add.at(self.fetches, fetched, 1)
        if load is not None:
            load[at] += self.price[fetched]
        self.visit = int(visits[-1])


class _Turning(_Input):
    """IN where it slides in snake order: what is fetched of a tile depends on the tile that is there."""

    def __init__(self, places: Places, rest: Callable[[int, int], int]) -> None:
        super().__init__(places, places, np.zeros(0, np.int64))
        self.rest, self.pairs = rest, dict[tuple[int, int], int]()

    def take(self, tiles: Ints, visits: Ints, load: Ints | None) -> None:
        at = changes(visits, self.visit)
        before = np.concatenate(([self.visit], visits))[at]
        codes, which, often = np.unique(
            (before + 1) * self.places.size + visits[at], return_inverse=True, return_counts=True
        )
        pairs = [(int(code) // self.places.size - 1, int(code) % self.places.size) for code in codes]
        for pair, number in zip(pairs, often, strict=True):
            self.pairs[pair] = self.pairs.get(pair, 0) + int(number)
        if load is not None:
            load[at] += np.array([self.rest(*pair) for pair in pairs], np.int64)[which.ravel()]
        self.visit = int(visits[-1])


class _Output:
    """OUT: accumulates while its tile stays, then leaves as a result or as partial sums that come back later.

    `due` is the number of steps that contribute to every tile; `done` how many did in visits that have ended.
    """

    def __init__(self, places: Places, price: Ints, psum_price: Ints, due: Ints, first_read: bool) -> None:
        self.places, self.price, self.psum_price, self.due, self.first_read = places, price, psum_price, due, first_read
        self.done, self.reads, self.spills, self.finals = (np.zeros(places.size, np.int64) for _ in range(4))
        self.resident, self.visit, self.stayed = -1, -1, 0

    def take(self, tiles: Ints, visits: Ints, load: Ints | None, store: Ints | None) -> None:
        """Account for one block; ``store[0]`` is the step before the block, ``store[k]`` step k - 1 of the block."""
        at = changes(visits, self.visit)
        self.visit = int(visits[-1])
        if not len(at):
            self.stayed += len(tiles)
            return
        keys, lengths = tiles[at], np.diff(at, append=len(tiles))
        began = self.resident >= 0
        if began:
            keys = np.concatenate(([self.resident], keys))
            lengths = np.concatenate(([self.stayed + at[0]], lengths))
        before = self.done[keys] + _sums_of_earlier(keys, lengths)
        back = (before > 0) | self.first_read
        left, final = keys[:-1], (before + lengths == self.due[keys])[:-1]
        back, came = back[1:] if began else back, keys[1:] if began else keys
        np.add.at(self.reads, came[back], 1)
        np.add.at(self.finals, left[final], 1)
        np.add.at(self.spills, left[~final], 1)
        np.add.at(self.done, left, lengths[:-1])
        if load is not None and store is not None:
            load[at[back]] += self.psum_price[came[back]]
            store[at if began else at[1:]] += np.where(final, self.price[left], self.psum_price[left])
        self.resident, self.stayed = int(keys[-1]), int(lengths[-1])

    def close(self) -> int:
        """Write the last tile; return the price."""
        key = self.resident
        self.done[key] += self.stayed
        final = self.done[key] == self.due[key]
        (self.finals if final else self.spills)[key] += 1
        return int((self.price if final else self.psum_price)[key])


def _sums_of_earlier(keys: Ints, lengths: Ints) -> Ints:
    """For every visit, the summed lengths of the earlier visits of the same tile in this list."""
    if (keys[1:] > keys[:-1]).all():
        return np.zeros(len(keys), np.int64)
    order = np.argsort(keys, kind="stable")
    ordered, running = keys[order], np.cumsum(lengths[order]) - lengths[order]
    new = np.empty(len(keys), bool)
    new[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    heads = np.flatnonzero(new)
    result = np.empty_like(running)
    result[order] = running - np.repeat(running[heads], np.diff(heads, append=len(keys)))
    return result


@dataclass(frozen=True)
class Traffic:
    """What the walk needs to know of the core: its cuts and loops, its tiles and their prices in ticks."""

    cuts: Mapping[str, Cuts]
    loops: Sequence[tuple[str, int]]
    """Sequence of (str, int). The loops, outermost first: dimension and level (0 for the first loop over it)."""
    levels: Mapping[str, Mapping[str, int]]
    """For IN, W, OUT the relevant dimensions and how many loops over each are outside the Hold; inputs that are
    broadcast have entries of their own (`hwmodels.nest.replay.cuts.row_of`), here and in what follows.
    """
    visits: Mapping[str, Mapping[str, int]]
    """For IN, W, OUT how many loops over each dimension are among those whose iterations fetch it."""
    buffers: Mapping[str, int]
    """For IN, W, OUT one or two."""
    prices: Mapping[str, Ints]
    """Mapping of str to array. Per row (IN, W, OUT, PSUM) the price of every tile."""
    work: Mapping[str, Ints]
    """Mapping of str to array. Per dimension a factor for every innermost piece; a step computes for the product, in
    ticks.
    """
    first_read: bool
    pipelined: bool
    """Whether to follow the double-buffered pipeline."""
    snake: bool = False
    """Whether loops run to and fro; `visits` are then not used."""
    rest: Callable[[int, int], int] | None = None
    """Price of fetching IN when another tile of it is there (-1: none), by the numbers of both; None: `prices` say."""


@dataclass(frozen=True)
class Tally:
    """What the walk saw: per row how often each tile moved, times in ticks, and what is wrong with the output.

    `pairs` are the tiles of IN after each other, where what is fetched depends on both, and how often they came.
    """

    moves: dict[str, Ints]
    steps: int
    compute_ticks: int
    pipeline_ticks: int
    faults: tuple[str, ...]
    pairs: Mapping[tuple[int, int], int]


def walk(traffic: Traffic) -> Tally:
    """Walk all iterations of one core's nest in order."""
    cuts = traffic.cuts
    moving = {d: 0 for d, c in cuts.items() if c.leaves > 1}
    everything = Places(cuts, {d: len(cuts[d].start) - 1 for d in moving})
    moved_in = [op for op in traffic.levels if op != "OUT"]
    visits = {op: Places(cuts, loops) for op, loops in (traffic.levels if traffic.snake else traffic.visits).items()}
    inputs = {op: _Input(Places(cuts, traffic.levels[op]), visits[op], traffic.prices[op]) for op in moved_in}
    turning = _Turning(inputs["IN"].places, traffic.rest) if traffic.rest else None
    if turning:
        inputs["IN"] = turning
    places = Places(cuts, traffic.levels["OUT"])
    prices = traffic.prices["OUT"], traffic.prices["PSUM"]
    output = _Output(places, *prices, _due(cuts, traffic.levels["OUT"]), traffic.first_read)
    pipeline = Pipeline()
    seen = np.zeros(everything.size, bool)
    steps = compute_ticks = 0
    # a loop that cuts nothing does not change the iteration it is in
    loops = [(d, k) for d, k in traffic.loops if len(cuts[d].start[k + 1]) > len(cuts[d].start[k])]
    even = np.zeros(1, np.int64) if traffic.snake else None
    for ids in blocks(cuts, loops, {d: np.zeros(1, np.int64) for d in moving}, even):
        size = len(next(iter(ids.values()))) if ids else 1
        moved = Moved(size) if traffic.pipelined else None
        for op, operand in inputs.items():
            load = moved.load[traffic.buffers[operand_at(op)]] if moved else None
            operand.take(operand.places.tiles(ids, size), operand.visits.tiles(ids, size), load)
        load = moved.load[traffic.buffers["OUT"]] if moved else None
        store = moved.store[traffic.buffers["OUT"]] if moved else None
        output.take(places.tiles(ids, size), visits["OUT"].tiles(ids, size), load, store)
        compute = _compute(traffic.work, ids, size)
        seen[everything.tiles(ids, size)] = True
        compute_ticks += int(compute.sum())
        steps += size
        if moved:
            pipeline.take(moved, compute)
    last = output.close()
    time = pipeline.close(last) if traffic.pipelined else 0
    moves = {op: operand.fetches for op, operand in inputs.items()}
    moves.update(OUT=output.finals, PSUM=output.reads + output.spills)
    faults = _faults(cuts, seen, steps, output.finals)
    return Tally(moves, steps, compute_ticks, time, faults, turning.pairs if turning else {})


def _due(cuts: Mapping[str, Cuts], levels: Mapping[str, int]) -> Ints:
    """Per OUT tile, the number of innermost steps that must contribute to it."""
    due = np.ones(1, np.int64)
    for dim, level in levels.items():
        below = np.bincount(cuts[dim].ancestor(level), minlength=len(cuts[dim].start[level]))
        due = np.multiply.outer(due, below).ravel()
    rest = [c.leaves for d, c in cuts.items() if d not in levels]
    return due * np.prod(rest, dtype=np.int64)


def _compute(work: Mapping[str, Ints], ids: Mapping[str, Ints], size: int) -> Ints:
    """Ticks that each step computes."""
    fixed = 1
    parts = []
    for dim, factor in work.items():
        if dim in ids and (factor != factor[0]).any():
            parts.append(factor[ids[dim]])
        else:
            fixed *= int(factor[0])
    total = np.full(size, fixed, np.int64)
    for part in parts:
        total *= part
    return total


def _faults(cuts: Mapping[str, Cuts], seen: npt.NDArray[np.bool_], steps: int, finals: Ints) -> tuple[str, ...]:
    """Check that every piece of work was done once and every output tile was finished once."""
    faults = [f"nest: the pieces of {d} do not partition its range" for d, c in cuts.items() if not c.partition()]
    if steps != len(seen) or not seen.all():
        faults.append(f"nest: {steps} steps visit {int(seen.sum())} of {len(seen)} pieces of work")
    for wrong, what in ((finals == 0, "never finished"), (finals > 1, "finished more than once")):
        if wrong.any():
            faults.append(f"output: {int(wrong.sum())} of {len(finals)} tiles {what}")
    return tuple(faults)


def slid(tensor: Stored, cuts: Mapping[str, Cuts], dim: str, level: int) -> Stored:
    """What is fetched of every tile of IN when it slides along the loop over `dim` that makes its pieces at `level`.

    The pieces that one piece of the level before is cut in follow each other; each fetches what lies behind the
    farthest end of those before it.
    """
    axes = []
    for axis in tensor.axes:
        if dim in axis.dims and len(axis.dims) == 2:
            along = axis.dims.index(dim)
            start, extent = np.moveaxis(axis.start, along, 0).copy(), np.moveaxis(axis.extent, along, 0)
            ends = start + extent
            for head, number in zip(cuts[dim].first[level - 1], cuts[dim].number[level - 1], strict=True):
                held = np.maximum.accumulate(ends[head : head + number], axis=0)
                start[head + 1 : head + number] = np.maximum(start[head + 1 : head + number], held[:-1])
            left = np.maximum(ends - start, 0)
            axis = Axis(axis.size, axis.dims, np.moveaxis(start, 0, along), np.moveaxis(left, 0, along))
        axes.append(axis)
    return Stored(tuple(axes), tensor.element)


def lined_bytes(tensor: Stored, cuts: Mapping[str, Cuts], outer: tuple[str, int], inner: tuple[str, int]) -> int:
    """Bytes that IN takes in lines: for all columns of a pass the rows read again, for those of a window all rows.

    `outer` and `inner` are the loops that slide (dimension, level of the pieces they make); rows are what the outer one
    moves over, columns the inner one.
    """
    again, width, beyond, columns = lined_sizes(tensor, cuts, outer, inner)
    plane = tensor.element * prod(int(axis.extent.max()) for axis in tensor.axes if len(axis.dims) == 1)
    return plane * (again * width + beyond * columns)


def lined_sizes(
    tensor: Stored, cuts: Mapping[str, Cuts], outer: tuple[str, int], inner: tuple[str, int]
) -> tuple[int, int, int, int]:
    """The places of a plane in lines: rows read again, the width of a pass; other rows and columns of a window.

    `outer` and `inner` as of `lined_bytes`.
    """
    again = rows = columns = width = 0
    for axis in tensor.axes:
        start, stop = axis.start, axis.start + axis.extent
        if len(axis.dims) == 1:
            continue
        dim, level = outer if outer[0] in axis.dims else inner
        start, stop = (np.moveaxis(x, axis.dims.index(dim), 0) for x in (start, stop))
        for head, number in zip(cuts[dim].first[level - 1], cuts[dim].number[level - 1], strict=True):
            lo, hi = start[head : head + number], stop[head : head + number]
            there = hi > lo
            if dim == outer[0]:
                both = there[1:] & there[:-1]
                again = max(again, int(np.where(both, hi[:-1] - lo[1:], 0).max(initial=0)))
                rows = max(rows, int((hi - lo).max()))
            else:
                reach = np.where(there, hi, -1).max(axis=0) - np.where(there, lo, axis.size).min(axis=0)
                width = max(width, int(reach.max()))
                columns = max(columns, int((hi - lo).max()))
    return again, width, rows - again, columns


class Between:
    """What is fetched of a tile of IN while another one lies on chip, in snake order.

    Where they differ in one range of r, c, i or j, only what lies beyond the tile that is there; else all of it.
    """

    def __init__(
        self, parts: Sequence[Stored], dims: Sequence[str], shape: Sequence[int], transfer: Transfer, slides: bool
    ) -> None:
        self.parts, self.dims, self.shape, self.transfer, self.slides = parts, dims, tuple(shape), transfer, slides
        self.known: dict[tuple[int, int], Counts] = {}

    def counts(self, there: int, tile: int) -> Counts:
        """Count fetching the tile of this number; `there` is -1 if none is on chip."""
        if (there, tile) not in self.known:
            self.known[there, tile] = self._count(there, tile)
        return self.known[there, tile]

    def ticks(self, there: int, tile: int) -> int:
        """The price of `counts`."""
        return price(self.counts(there, tile), self.transfer)

    def _count(self, there: int, tile: int) -> Counts:
        after = dict(zip(self.dims, np.unravel_index(tile, self.shape), strict=True))
        before = dict(zip(self.dims, np.unravel_index(max(there, 0), self.shape), strict=True))
        moved = "".join(d for d in self.dims if before[d] != after[d])
        along = moved if self.slides and there >= 0 and moved in ("r", "c", "i", "j") else ""
        total = Counts()
        for part in self.parts:
            extents, base = [], 0
            for axis, pitch in zip(part.axes, part.pitch, strict=True):
                lo, hi = _ends(axis, after)
                first, end = _ends(axis, before)
                if along and along in axis.dims and first < end:
                    lo, hi = (lo, min(hi, first)) if lo < first else (max(lo, end), hi)
                extents.append(max(hi - lo, 0))
                base += lo * pitch
            shape = tuple(axis.size for axis in part.axes)
            total += call_of([(shape, tuple(extents), part.element, base)], self.transfer)
        return total


def _ends(axis: Axis, index: Mapping[str, np.integer]) -> tuple[int, int]:
    """Where a tile begins and ends along an axis."""
    piece = tuple(int(index[d]) for d in axis.dims)
    start = int(axis.start[piece])
    return start, start + int(axis.extent[piece])
