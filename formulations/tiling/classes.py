"""Classes of ways to cut every dimension, from which lower bounds on all nests of a skeleton are made.

A class of a dimension is a chain of entries: how large the largest pieces are ("steps"), how many there are ("counts"),
candidates whose windows are bounds for kernels in parts ("sums"), or candidates than which no way to cut is better
("listed"). What is left open is told apart by `finer`, in "vectors" and in ways to cut as they are ("exact": rows, or
channels where nothing else is cut, so that bursts of two operands are counted of the same pieces); see
`hwmodels.nest.price.relaxed`. Rows, and columns, are looked at apart where the kernel is whole at the Hold of IN and
where it is not: with the kernel whole the ways to cut can be listed (`formulations.tiling.cuts.sure`). Where rows are
few all ways to cut them are listed beside all ways to cut kernel rows, each with its own windows, and none is missed.
Nests that hold IN in lines have classes of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from formulations.tiling.bounding import AXES
from formulations.tiling.chains import Sizes, even_pairs, grid
from formulations.tiling.cuts import Cut, complete, free_chains, sure, timed_chains, whole_windows
from formulations.tiling.entries import every_chain
from formulations.tiling.listing import Listing, Steps, tiles_of
from formulations.tiling.vectors import attained, vectors
from formulations.tiling.ways import Axis, ways
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.boxes import input_windows, pitches_of
from hwmodels.nest.price.choices import AXIS, KERNELS, Q_DIMS, Choices, Slides
from hwmodels.nest.price.core import CorePieces
from hwmodels.nest.price.pieces import Window, cut
from hwmodels.nest.price.relaxed import part_window, unpacked
from hwmodels.nest.price.skeleton import cores
from instances.machine.machine import Machine
from instances.network.workload import DIMS, RELEVANT, Layer

#: Extents up to which bounds go by numbers of pieces, by loops over the dimension.
_COUNTED = {1: 256, 2: 32}
#: Ways to cut rows and kernel rows that are all listed, if they are no more.
_EVERY = 20_000


@dataclass(frozen=True)
class Classes:
    """Chains of every dimension (T, L), what is their largest piece (T,), and how they are meant."""

    steps: Steps
    tiles: Steps
    ideal: Mapping[str, str]
    """As in `hwmodels.nest.price.choices.Choices.ideal`."""

    def slides(self, listing: Listing) -> Slides:
        """The loops along which IN may slide; in lines it does along both."""
        return () if self.ideal.get("IN") == "lines" else listing.slides


def classes_of(listing: Listing, measures: Sequence[str]) -> Iterator[Classes]:
    """Yield classes that hold every nest of the skeleton together."""
    ideal = {d: "steps" for d in DIMS if listing.skeleton.levels(d)}
    channels = {d: _steps(listing, d) for d in "bgmn"}
    for rows, columns in product(_axis(listing, "r", "i", measures), _axis(listing, "c", "j", measures)):
        found = {**channels, "r": rows.outer, "i": rows.taps, "c": columns.outer, "j": columns.taps}
        how = {**ideal, **{d: one.how for d, one in (("r", rows), ("c", columns)) if d in ideal}}
        one = Classes(found, tiles_of(listing, found), {d: word for d, word in how.items() if word})
        yield one
        if listing.lines:
            yield _lined(listing, one)


def _lined(listing: Listing, plain: Classes) -> Classes:
    """The same with IN in lines: both rows and columns are cut outside its Hold."""
    steps, tiles = dict(plain.steps), dict(plain.tiles)
    for d, kernel in (("r", "i"), ("c", "j")):
        chains = steps[d][:, : listing.skeleton.level(d, "IN")]
        cuts = chains[:, -1] > 1 if plain.ideal.get(d) == "counts" else cut(listing.share(d), chains).number > 1
        for one in (d, kernel):
            steps[one], tiles[one] = steps[one][cuts], tiles[one][cuts]
    return Classes(steps, tiles, {**plain.ideal, "IN": "lines"})


def finer(listing: Listing, choices: Choices, measures: Sequence[str]) -> Classes:
    """Return the classes of some choices in more parts: vectors in the place of steps, all ways to cut rows.

    Where bursts are priced, and where a core computes whole tiles, larger pieces than are needed may pay.
    """
    ideal, steps, tiles = dict(choices.ideal or {}), dict[str, Ints](), dict[str, Ints]()
    for axis in AXES:
        used = np.unique(choices.index[axis])
        for d in (d for d in DIMS if AXIS[d] == axis):
            steps[d], tiles[d] = choices.steps[d][used], choices.tiles[d][used]
    by_size = any(price.burst_ticks for price in listing.machine.transfers) or listing.machine.compute.model == "tile"
    room = _room(listing, replace(choices, steps=dict(steps)))
    for d in "bgmn":
        if len(listing.extents(d)) == 1 and ideal.get(d) == "steps" and _free_steps(listing, d):
            most = _largest(listing, room, d)
            every = _channel_ways(listing, d, choices, most) if by_size and "time" in measures else None
            if every is not None:
                steps[d], ideal[d] = every, "exact"
                tiles[d] = tiles_of(listing, steps)[d]
                continue
            lanes = listing.lanes(d) if "time" in measures else 0
            steps[d] = vectors(listing.share(d), max(1, lanes), steps[d], most, every=by_size)
            ideal[d], tiles[d] = "vectors", unpacked(steps[d][:, -1])[1]
    for d, kernel in (("r", "i"), ("c", "j")):
        parts = _every(listing, d, kernel, choices)
        if parts is not None:
            steps[d], steps[kernel] = parts.outer, parts.taps
            made = tiles_of(listing, {d: parts.outer, kernel: parts.taps})
            tiles[d], tiles[kernel] = made[d], made[kernel]
            ideal |= {dim: parts.how for dim in (d, kernel) if listing.skeleton.levels(dim)}
            continue
        if not by_size or d not in ideal:
            continue
        found = _ways(listing, d, replace(choices, steps=steps, ideal=ideal), measures)
        if found is not None:
            taps = np.unique(steps[kernel], axis=0)
            pairs = _beside(found, taps, "exact")
            steps[d], steps[kernel], ideal[d] = pairs.outer, pairs.taps, pairs.how
            made = tiles_of(listing, {d: steps[d], kernel: steps[kernel]})
            tiles[d], tiles[kernel] = made[d], made[kernel]
    return Classes(steps, tiles, ideal)


def _every(listing: Listing, dim: str, kernel: str, choices: Choices) -> _Pairs | None:
    """All ways to cut rows and kernel rows, where classes tell less than each of them; None where they are many.

    So it is where IN may be held for a part of the kernel, which may lie in the padding, and where `sure` is not.
    """
    skeleton, level = listing.skeleton, listing.skeleton.level(kernel, "IN")
    dims = [d for d in (dim, kernel) if skeleton.levels(d)]
    parts = choices.steps[kernel][np.unique(choices.index[dim])][:, level - 1 : level]
    number = prod((skeleton.levels(d) + 1) ** (listing.share(d) - 1) for d in dims)
    whole = not level or bool((parts == listing.share(kernel)).all())
    told = whole and not (dim == "r" and listing.layer.resident_out)
    told = told and (not skeleton.levels(dim) or (choices.ideal or {}).get(dim) in ("listed", "exact"))
    if told or number > _EVERY:
        return None
    machine = listing.machine
    if machine.edge_tiles == "uniform" or machine.line or machine.snake:
        return None
    if not all(len(listing.extents(d)) == 1 and _free_steps(listing, d) for d in dims):
        return None
    rows, taps = (every_chain(listing.share(d), skeleton.levels(d), listing.sizes[d].inner) for d in (dim, kernel))
    return _beside(rows, taps, "exact")


def _ways(listing: Listing, dim: str, choices: Choices, measures: Sequence[str]) -> Ints | None:
    """All ways to cut rows (columns) that may matter; None where they are too many, or are told by other things too."""
    layer, machine, skeleton = listing.layer, listing.machine, listing.skeleton
    kernel, level = KERNELS[dim], skeleton.level(KERNELS[dim], "IN")
    parts = choices.steps[kernel][:, level - 1] if level else np.array([layer.extent(kernel)])
    plain = _plain(layer, machine) and (choices.ideal or {}).get("IN") != "lines"
    if "time" not in measures or not plain or (parts != layer.extent(kernel)).any() or not _free_steps(listing, dim):
        return None
    every = cores(layer, skeleton.spatial)
    window, (burst, *others) = input_windows(layer)[dim], {price.burst_bytes for price in machine.transfers}
    kinds = {(core.extent(dim), window.clipping(*core.range(dim))): core.range(dim) for core in every}
    bytes_of = {op: dict(pitches_of(layer, machine, op))[dim] for op in ("IN", "OUT", "PSUM")}
    slide = {level for d, level in listing.slides if d == dim}
    levels = skeleton.level(dim, "IN"), skeleton.level(dim, "OUT")
    if others or len(listing.slides) > 1 or slide - {levels[0] - 1}:
        return None
    ranges = tuple(sorted(kinds.values(), key=lambda one: one[0] - one[1]))
    written = tuple(sorted({bytes_of["OUT"], bytes_of["PSUM"]}))
    axis = Axis(window, ranges, levels, bool(slide), bytes_of["IN"], written, burst)
    return ways(axis, _largest(listing, _room(listing, choices), dim))


def _channel_ways(listing: Listing, dim: str, choices: Choices, most: tuple[int, ...]) -> Ints | None:
    """The same for channels, filters and the batch where no choice cuts anything else: no windows, no lanes.

    So pieces up to `most` fit, if the two operands that depend on the dimension lie in memories of their own.
    """
    layer, machine, skeleton = listing.layer, listing.machine, listing.skeleton
    operands = [op for op in ("IN", "W", "OUT") if op in skeleton.depth and dim in RELEVANT[op]]
    burst, *others = {price.burst_bytes for price in machine.transfers}
    cut_else = any(choices.steps[d].size and (choices.steps[d] < listing.share(d)).any() for d in DIMS if d != dim)
    if cut_else or others or len(operands) != 2 or machine.im2col_rows or not _plain(layer, machine):
        return None
    levels = skeleton.level(dim, operands[0]), skeleton.level(dim, operands[1])
    together = machine.memory_of(operands[0]) == machine.memory_of(operands[1])
    if max(levels) < skeleton.levels(dim) or together or (layer.bias and dim == "m") or listing.lanes(dim) > 1:
        return None
    moved, extent = (*operands, "PSUM") if "OUT" in operands else operands, listing.share(dim)
    reads, *writes = (dict(pitches_of(layer, machine, op))[dim] for op in moved)
    window, written = Window(1, 1, 1, 0, extent), tuple(sorted({*writes}))
    return ways(Axis(window, ((0, extent),), levels, False, reads, written, burst, fits=True), most)


def _plain(layer: Layer, machine: Machine) -> bool:
    """Whether every operand is read and written whole, in one order."""
    return not (layer.broadcast or any(layer.residents) or layer.resident_out or machine.snake)


def _room(listing: Listing, choices: Choices) -> Mapping[tuple[str, str], int]:
    """By operand and dimension the largest piece that fits with the smallest of all others in these choices."""
    first = cores(listing.layer, listing.skeleton.spatial)[0]
    return CorePieces(listing.layer, listing.machine, listing.skeleton, first, choices).fitting


def _largest(listing: Listing, room: Mapping[tuple[str, str], int], dim: str) -> tuple[int, ...]:
    """The largest pieces that fit, by loop."""
    skeleton = listing.skeleton
    levels = range(1, skeleton.levels(dim) + 1)
    fits = [[n for (op, d), n in room.items() if d == dim and skeleton.level(d, op) in range(1, k + 1)] for k in levels]
    return tuple(min([listing.share(dim), *some]) for some in fits)


def _free_steps(listing: Listing, dim: str) -> bool:
    """Whether loops may cut a dimension anywhere, in pieces up to some size."""
    inner = listing.sizes[dim].inner
    return dim not in listing.even and len(inner) == int(inner.max(initial=0))


def made(listing: Listing, choices: Choices, s: int, q: int) -> dict[str, Ints] | None:
    """Return the chains (1, L) of a way to cut that a choice of classes stands for; None where none is known."""
    ideal, steps = choices.ideal or {}, dict[str, Ints]()
    for d in DIMS:
        at = choices.index[AXIS[d]][q if d in Q_DIMS else s]
        row = choices.steps[d][at]
        if len(row) and ideal.get(d) == "vectors":
            chain = attained(listing.share(d), max(1, listing.lanes(d)), tuple(map(int, row)))
            if chain is None:
                return None
            row = np.array(chain, np.int64)
        elif len(row) and ideal.get(d) == "counts":
            return None
        steps[d] = row[None, :]
    return steps


def inner_tile(listing: Listing, steps: Mapping[str, Ints]) -> dict[str, int]:
    """Return steps of loops inside all Holds that save cycles of tiles (Eq. 7) where these chains (1, L) cut.

    Of channels pieces of unequal sizes count as the largest: steps of which all pieces have as many. Of rows and
    columns those whose tiles, rounded up to whole cycles, take the fewest.
    """
    macs, share = listing.machine.compute.macs_per_cycle, {d: listing.share(d) for d in DIMS}
    last = {d: int(tile[0]) for d, tile in tiles_of(listing, steps).items()}

    def trips(d: str) -> Ints:
        """Pieces with one more loop, by its step from 1 to the tile."""
        more = np.arange(1, last[d] + 1, dtype=np.int64)[:, None]
        return cut(share[d], np.concatenate([np.repeat(steps[d], len(more), axis=0), more], axis=1)).number

    found = {}
    for d in "bgmn":
        work = trips(d) * np.arange(1, last[d] + 1)
        best = last[d] - int(work[::-1].argmin())
        found[d] = best
    rows, columns, kernel = trips("r"), trips("c"), last["i"] * last["j"]
    sizes = np.arange(1, last["r"] + 1)[:, None] * np.arange(1, last["c"] + 1)
    cycles = rows[:, None] * columns * -(-sizes * kernel // macs)
    r, c = np.unravel_index(cycles.size - 1 - int(cycles.ravel()[::-1].argmin()), cycles.shape)
    found |= {"r": int(r) + 1, "c": int(c) + 1}
    return {d: step for d, step in found.items() if step < last[d]}


def _steps(listing: Listing, dim: str) -> Ints:
    """How large the largest pieces are."""
    depth, sizes = listing.skeleton.levels(dim), listing.sizes[dim]
    if not depth or not len(sizes.inner):
        return listing.plain(dim)
    outer = np.arange(int(sizes.inner[0]), listing.share(dim) + 1, dtype=np.int64)
    return even_pairs(listing.extents(dim), Sizes(outer, sizes.inner), depth)


@dataclass(frozen=True)
class _Pairs:
    """Chains of rows beside chains of kernel rows (or of columns), and how those of rows are meant."""

    outer: Ints
    taps: Ints
    how: str


def _axis(listing: Listing, dim: str, kernel: str, measures: Sequence[str]) -> list[_Pairs]:
    """All pairs of chains of rows and of kernel rows, the kernel whole at the Hold of IN first."""
    taps, level = _steps(listing, kernel), listing.skeleton.level(kernel, "IN")
    if not level or not len(taps) or listing.machine.edge_tiles == "uniform":
        return [_pairs(listing, dim, taps, np.full(len(taps), listing.layer.extent(kernel)), measures)]
    parts = taps[:, level - 1]
    if "time" not in measures:
        return [_pairs(listing, dim, taps, parts, measures)]
    whole = parts == listing.layer.extent(kernel)
    return [_pairs(listing, dim, taps[at], parts[at], measures) for at in (whole, ~whole) if at.any()]


def _pairs(listing: Listing, dim: str, taps: Ints, parts: Ints, measures: Sequence[str]) -> _Pairs:
    """Chains of rows for each of the `taps`, whose largest parts at the Hold of IN are `parts`."""
    if not listing.skeleton.levels(dim) or not len(taps) or listing.machine.edge_tiles == "uniform":
        return _beside(_steps(listing, dim), taps, "steps")
    timed, sliding = "time" in measures, listing.machine.sliding
    inner = np.arange(1, int(listing.sizes[dim].inner.max(initial=0)) + 1, dtype=np.int64)
    whole = None if listing.several(dim) else listing.axis(dim, bound=True)
    if timed and whole and (parts == whole.window.taps).all() and sure(whole, sliding=sliding):
        return _beside(np.unique(timed_chains(whole, inner, sliding=sliding), axis=0), taps, "listed")
    axes = _axes(listing, dim, parts)
    counted = axes is not None and all(axis.counted for axis in axes.values())
    if not counted and _countable(listing, dim, parts):
        return _beside(_numbers(listing, dim), taps, "counts")
    if axes is None:
        return _beside(_steps(listing, dim), taps, "steps")
    chains = {u: _free(axis, inner, timed=timed) for u, axis in axes.items()}
    made = [chains[int(u)] for u in parts]
    return _Pairs(
        np.concatenate(made), np.repeat(taps, [len(one) for one in made], axis=0), "" if counted else "sums"
    )  # fmt: skip


def _free(axis: Cut, inner: Ints, *, timed: bool) -> Ints:
    """Free pieces, each way once."""
    found = [free_chains(axis, inner), *([whole_windows(axis, inner)] if timed else [])]
    return np.unique(np.concatenate(found), axis=0)


def _beside(outer: Ints, taps: Ints, how: str) -> _Pairs:
    one, two = np.meshgrid(np.arange(len(outer)), np.arange(len(taps)), indexing="ij")
    return _Pairs(outer[one.ravel()], taps[two.ravel()], how)


def _axes(listing: Listing, dim: str, parts: Ints) -> dict[int, Cut] | None:
    """For every part of the kernel how rows (columns) may be cut for it; None if candidates may miss some way."""
    axis = listing.axis(dim, bound=True)
    if axis is None or listing.several(dim):
        return None
    if (parts == axis.window.taps).all() and complete(axis):
        return {axis.window.taps: axis}
    axis = replace(axis, counted=False)
    if not complete(axis):
        return None
    return {int(u): replace(axis, window=part_window(axis.window, int(u))) for u in np.unique(parts)}


def _countable(listing: Listing, dim: str, parts: Ints) -> bool:
    """Whether bounds go by numbers of pieces: where a part of the kernel leaves out rows between its taps."""
    window, extents = input_windows(listing.layer)[dim], listing.extents(dim)
    gaps = bool((((parts - 1) * window.dilation + 1) < window.stride).any())
    few = _COUNTED[listing.skeleton.levels(dim)]
    return gaps and extents[0] <= few and len(extents) == 1 and listing.axis(dim, bound=True) is not None


def _numbers(listing: Listing, dim: str) -> Ints:
    """All numbers of pieces that loops can make, fewer by the first one."""
    every, inner = listing.share(dim), listing.sizes[dim].inner
    least = -(-every // int(inner[-1])) if len(inner) else every + 1
    numbers = np.arange(1, every + 1, dtype=np.int64)
    pairs_ = grid(numbers, numbers, 2)[:, ::-1] if listing.skeleton.levels(dim) == 2 else numbers[:, None]
    return pairs_[pairs_[:, -1] >= least]
