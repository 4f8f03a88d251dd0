"""What every dimension contributes to each price, for all chains of steps that an order of Stays may cut it by.

For an order and a dimension d the loops over d are variables t_1 >= .. >= t_v, one before each Stay where a loop may
stand (`Order.may_cut`); two of them are one where nothing between them counts pieces, and the last one is 1 where
nothing inside it does: a smaller tile is better then. By Stay k, with the loops over d outside it:

    moved[k]  its factor of the bytes: pieces if the operand does not depend on d; of IN all rows (columns) of the
              windows; else 1 (its extent is in the coefficient)
    tile[k]   its factor of the tile: the largest piece, or window; 1 if the operand does not depend on d
    calls[k]  its factor of the transfers: pieces (windows that fetch something)
    first[k]  its factor of the first tile: the largest piece, or the first window; of OUT of the last tile: all of the
              dimension, or 1 if it is cut, as the last piece may be of any size
    lanes     rounds of lanes over the innermost pieces

A price is a sum over Stays of coefficients times products over d of these (`formulations.levels.terms`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from formulations.levels import chains
from formulations.levels.orders import Order
from hwmodels.levels.price import lanes_of, window_of, windowed
from hwmodels.levels.schedule import LevelNest, Stay
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.pieces import cut
from instances.machine.machine import Machine
from instances.network.workload import RELEVANT, Layer


@dataclass(frozen=True)
class Layout:
    """Which variable every Stay sees, and which variables are searched."""

    seen: tuple[int, ...]
    """By Stay the number of loops over the dimension outside it."""
    slid: tuple[bool, ...]
    """By Stay whether IN slides along the last of these."""
    depth: int
    """Loops."""
    free: int
    """Of these, the ones that are searched: the others, one at most, have step 1."""


@dataclass(frozen=True)
class Axis:
    """The factors of one dimension for T chains."""

    dim: str
    steps: Ints
    """Loops (T, v), outermost first."""
    layout: Layout
    moved: Ints
    """(K, T) for K Stays, as `tile` and `calls`."""
    tile: Ints
    calls: Ints
    first: Ints
    lanes: Ints
    """(T,)."""


def layout(
    order: Order, dim: str, *, windows: bool, calls: bool, ends: bool, residents: frozenset[Stay] = frozenset(),
    clipped: bool = False,
) -> Layout:  # fmt: skip
    """Return the variables of a dimension.

    `windows`: whether pieces count for what IN fetches; `calls`: whether transfers are counted; `ends`: whether the
    innermost pieces are; `residents`: Stays that hold all of their operand; `clipped`: whether padding
    clips windows: then two loops may make pieces that one does not.
    """
    seen, slid, depth, counted = list[int](), list[bool](), 0, True
    for k, stay in enumerate(order.stays):
        along = order.slides[k] == dim
        if order.may_cut(k, dim) and (counted or along or clipped):
            depth, counted = depth + 1, False
        seen.append(depth)
        slid.append(along)
        here = dim not in RELEVANT[stay.operand] or (stay.operand == "IN" and windows and not along)
        counted = counted or here or calls or stay in residents
    counted = counted or ends
    return Layout(tuple(seen), tuple(slid), depth, depth if counted else depth - 1)


#: Up to so many rows (columns) loops are told apart that only padding makes different; chains by their largest windows.
_APART, _CLIPPED = 28, 35_000
#: Which chains: all that may be needed; cells of them, with bounds of their factors (`chains.relaxed`); some to begin
#: with (`chains.ends`), with their last pieces; or those of an order's part, with bounds.
How = Literal["", "cells", "some", "part"]
#: A column of factors: its kind, the loops outside, and whether IN slides along the last of them.
Column = tuple[str, int, bool]


def axis(
    layer: Layer, machine: Machine, order: Order, dim: str, needs: frozenset[str], *,
    residents: frozenset[Stay] = frozenset(), how: How = "", near: LevelNest | None = None,
) -> Axis:  # fmt: skip
    """Return the factors of all chains of a dimension that may matter, for the measures `needs`.

    `needs`: of "calls", "lanes" and "first", what is counted beside bytes and tiles. `residents`: Stays that hold all
    of their operand. `how`: which chains. `near`: a nest of the order, whose chain is listed in any case,
    and those that differ from it in one step.
    """
    lanes = lanes_of(layer, machine).get(dim, 0) if "lanes" in needs else 0
    wide = dim in "rc" and not window_of(layer, dim).trivial
    apart = wide and window_of(layer, dim).clipping(0, layer.extent(dim)) != (0, 0)
    clipped = layer.extent(dim) <= _APART and (apart or 0 < lanes < layer.extent(dim))
    made = layout(
        order, dim, windows=wide, calls="calls" in needs, ends=bool(lanes), residents=residents, clipped=clipped
    )
    columns = [_columns(order, made, k, dim) for k in range(len(order.stays))]
    chosen = [0, 1, *([2] if "calls" in needs else []), *([3] if "first" in needs else [])]
    kept = [{kind: stay[kind] for kind in chosen} for stay in columns]
    asked = tuple(sorted({column for stay in kept for column in stay.values()}))
    pinned = [k for k, stay in enumerate(order.stays) if stay in residents and dim in RELEVANT[stay.operand]]
    whole = max((made.seen[k] for k in pinned), default=0)
    known = () if near is None else seen_in(near, order, made, layer, dim)[: made.free]
    same = layer.model_copy(update={"name": "x"})
    how = "part" if order.part and not how else how
    table = _table(same, dim, made.depth, made.free, asked, how, lanes, whole, known)
    moved, tile, calls, first = (
        np.stack([table.values[stay.get(kind, _ONE)] for stay in kept]) for kind in range(4)
    )  # fmt: skip
    return Axis(dim, table.steps, made, moved, tile, calls, first, table.values[_LANES])


_ONE, _LANES = ("one", 0, False), ("lanes", 0, False)


def _columns(order: Order, made: Layout, k: int, dim: str) -> tuple[Column, Column, Column, Column]:
    """Where the factors of a Stay's bytes, tile, transfers and first tile stand."""
    operand, v, slid = order.stays[k].operand, made.seen[k], made.slid[k] and made.seen[k] > 0
    pieces = ("pieces", v, False)
    if dim not in RELEVANT[operand]:
        return pieces, _ONE, pieces, _ONE
    if operand == "OUT":
        return _ONE, ("tile", v, False), pieces, ("last", v, False)
    if operand == "W" or dim in "bgn":
        return _ONE, ("tile", v, False), pieces, ("tile", v, False)
    if dim in "ij":
        return _ONE, _ONE, pieces, _ONE
    return ("rows", v, slid), ("window", v, False), ("fetches", v, slid), ("first", v, False)


def _last(extent: int, steps: Ints) -> Ints:
    """The last pieces of chains (T, v)."""
    length = np.full(len(steps), extent, np.int64)
    for step in steps.T:
        length = (length - 1) % step + 1
    return length


@dataclass(frozen=True)
class _Table:
    """Chains, and columns of their factors."""

    steps: Ints
    values: Mapping[Column, Ints]


@lru_cache(maxsize=1024)
def _table(
    layer: Layer, dim: str, depth: int, free: int, asked: tuple[Column, ...], how: How, lanes: int, whole: int,
    known: tuple[int, ...],
) -> _Table:  # fmt: skip
    """The chains of which no other one is below in the columns asked for; the first `whole` loops cut nothing.

    Of cells, and where other loops may cut between these ("part"), factors are bounds.
    """
    extent, relax = layer.extent(dim), how == "cells"
    bounds = how in ("cells", "part")
    wide = dim in "rc" and not window_of(layer, dim).trivial
    least, most = _chains(layer, dim, free, wide and not bounds, how, 0 if bounds else lanes)
    if known and not relax:
        least = most = np.unique(np.concatenate([least, _around(known, extent)]), axis=0)
    kept = (most[:, :whole] == extent).all(axis=1)
    ones, every = np.ones((int(kept.sum()), depth - free), np.int64), np.full((int(kept.sum()), 1), extent, np.int64)
    least, most = (np.concatenate([every, some[kept], ones], axis=1) for some in (least, most))
    steps, one = least[:, 1:], np.ones(len(least), np.int64)
    pieces = -(-extent // most) if relax else np.concatenate([one[:, None], chains.pieces(extent, steps)], axis=1)
    values = {_ONE: one, _LANES: one}
    for column in asked:
        kind, v, slid = column
        if kind in ("tile", "pieces"):
            values[column] = (least if kind == "tile" else pieces)[:, v]
        elif kind == "last":
            ends = _last(extent, steps[:, :v]) if how == "some" else 1
            values[column] = np.where(most[:, v] < extent, ends, extent)
        elif kind == "first":
            low, high = window_of(layer, dim).rows(0 * one, least[:, v], 0, window_of(layer, dim).taps)
            values[column] = np.maximum(high - low, 0)
        elif kind != "one":
            found = (
                _least_inputs(layer, dim, least[:, v], pieces[:, v], pieces[:, max(v - 1, 0)], slid)
                if bounds
                else _inputs(layer, dim, steps[:, :v], slid)
            )
            values[column] = found[("rows", "window", "fetches").index(kind)]
    if lanes:
        fewest = np.maximum(-(-extent // lanes), pieces[:, -1])
        values[_LANES] = fewest if bounds else cut(extent, steps).ceil_sum(lanes)
    rows = chains.thin(np.stack([*values.values()])) if how != "some" else np.arange(len(steps))
    return _Table(steps[rows], {column: value[rows] for column, value in values.items()})


def seen_in(nest: LevelNest, order: Order, made: Layout, layer: Layer, dim: str) -> tuple[int, ...]:
    """The chain of a dimension, by variable, in a nest whose Stays are those of the order."""
    places = {stay: k for k, stay in nest.stays()}
    tiles = [(layer.extent(dim), *nest.steps(places[stay])[dim])[-1] for stay in order.stays]
    return tuple(tiles[made.seen.index(v)] for v in range(1, made.depth + 1))


def _around(chain: tuple[int, ...], extent: int) -> Ints:
    """A chain, and all that differ from it in one step."""
    ends = (extent, *chain, 1)
    found = [
        (*chain[:k], step, *chain[k + 1 :]) for k in range(len(chain)) for step in range(ends[k + 2], ends[k] + 1)
    ]  # fmt: skip
    return np.array(found, np.int64).reshape(-1, len(chain))


def _chains(layer: Layer, dim: str, free: int, wide: bool, how: How, lanes: int) -> tuple[Ints, Ints]:
    """The chains that are looked at, twice; or from where to where their cells reach."""
    extent, number = layer.extent(dim), chains.number(layer.extent(dim), free)
    if how == "cells":
        return chains.relaxed(extent, free)
    if how == "some":
        found = chains.every(chains.ends(extent, free), free)
    elif number > _most(layer, dim):
        found = chains.every(chains.few(extent, free), free)
    else:
        exact = number <= _CLIPPED or (wide and not chains.regular(extent, window_of(layer, dim)))
        own = exact and wide and not _plain(layer, dim)
        found = chains.steps(extent, free, lanes, window_of(layer, dim) if own else None)
    return found, found


def _most(layer: Layer, dim: str) -> int:
    """How many chains are all listed."""
    counted = dim in "rc" and not window_of(layer, dim).trivial
    return (
        chains.MANY_WINDOWS if counted and not chains.regular(layer.extent(dim), window_of(layer, dim)) else chains.MANY
    )


def complete(layer: Layer, dim: str, made: Layout) -> bool:
    """Whether all chains of a dimension are looked at."""
    return chains.number(layer.extent(dim), made.free) <= _most(layer, dim)


def _plain(layer: Layer, dim: str) -> bool:
    """Whether windows overlap and none is clipped, so that chains are compared by their pieces."""
    window = window_of(layer, dim)
    return window.reach >= window.stride and window.clipping(0, layer.extent(dim)) == (0, 0)


def _inputs(layer: Layer, dim: str, steps: Ints, slid: bool) -> tuple[Ints, Ints, Ints]:
    """Rows (columns) that IN fetches, the largest window, and windows that fetch something, for chains (T, v)."""
    if not steps.shape[1]:
        steps = np.full((len(steps), 1), layer.extent(dim), np.int64)
    held = windowed(layer, dim, steps)
    fetched = windowed(layer, dim, steps, "outer") if slid else held
    return fetched.sum, held.largest, fetched.number


def _least_inputs(
    layer: Layer, dim: str, size: Ints, pieces: Ints, passes: Ints, slid: bool
) -> tuple[Ints, Ints, Ints]:
    """The same from below: by the least size and number of pieces, and of passes of the loop that IN slides along."""
    window, extent = window_of(layer, dim), layer.extent(dim)
    before, behind = window.clipping(0, extent)
    largest = np.maximum((size - 1) * window.stride + window.reach - before - behind, 1)
    whole = int(windowed(layer, dim, np.full((1, 1), extent, np.int64)).sum[0])
    number = passes if slid else pieces
    if window.reach < window.stride:
        total = np.full(len(size), extent * window.reach - before - behind)
        return total, largest, np.ones_like(size)
    # what padding clips at most of pieces that are not the first or the last
    last = (extent - 1) * window.stride - window.pad + window.reach - window.size
    clipped = sum(max(0, reach - r * window.stride) for reach in (window.pad, last) for r in range(1, extent))
    total = whole + (number - 1) * (window.reach - window.stride)
    total = np.maximum(total - np.where(number > 1, clipped, 0), whole)
    if max(window.pad, last) >= window.reach:
        return total, largest, np.ones_like(size)
    # every window holds something; of those that slide the last ones may add nothing
    idle = max(0, last // window.stride) if slid else 0
    return total, largest, np.maximum(pieces - idle, number)
