"""Bounds on pieces against every way to cut small dimensions: no figure that a table reads is above the true one.

Pieces are what loops may make of up to 5 outputs, in groups and not, and of up to 4 taps in steps; `windows` says what
they fetch. The number, the sum and the largest are compared, and what runs of addresses are counted from: pieces that
span the map (`full`), those that do not (`partial`), their bursts (`partial_windows`) and lanes (`ceil_sum`).
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest

from formulations.tiling.chains import even_steps
from formulations.tiling.cuts import Cut, complete, free_chains, sure, timed_chains, whole_windows
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.core import CorePieces
from hwmodels.nest.price.pieces import Pieces, Window, code_of, cut, windows
from hwmodels.nest.price.relaxed import (
    Relaxed,
    ideal_count,
    ideal_cut,
    ideal_once,
    ideal_parts,
    ideal_windows,
    least_cycles,
    part_window,
)
from tests.effort import tries

#: Windows of the test that always runs, and of the slow one.
FEW = tries(60, 600)


def drawn(number: int, seed: int) -> list[tuple[int, int, Window]]:
    """Ranges [lo, hi) of up to 5 outputs and windows over them that a layer may have, with rows on chip or without.

    A layer's first and last window hold a row of the map (`instances.network.workload.Layer`); others may hold padding
    only.
    """
    rng = random.Random(seed)
    found: list[tuple[int, int, Window]] = []
    while len(found) < number:
        extent, stride, taps, dilation = (rng.randint(1, most) for most in (5, 3, 4, 2))
        lo, behind, reach = rng.choice((0, 0, 1, 2)), rng.choice((0, 0, 1)), (taps - 1) * dilation + 1
        pad, below = rng.randint(0, reach - 1), rng.randint(1 - stride, reach - 1)
        size = (lo + extent + behind - 1) * stride - pad + reach - below
        if size > 0:
            first = rng.choice((0, 0, 0, rng.randint(1, size)))
            found.append((lo, lo + extent, Window(stride, dilation, taps, pad, size, first)))
    return found


@lru_cache(maxsize=64)
def places(extent: int, depth: int) -> Ints:
    """All chains of `depth` loops over `extent`, each cutting at any places."""
    if not depth:
        return np.zeros((1, 0), np.int64)
    ways: list[tuple[int, ...]] = [way for count in range(extent) for way in combinations(range(1, extent), count)]
    chains: list[tuple[int, ...]] = [(entry(extent, way),) for way in ways]
    if depth == 2:
        chains = [(entry(extent, one), entry(extent, two)) for two in ways for one in ways if set(one) <= set(two)]
    return np.array(chains, np.int64).reshape(-1, depth)


def entry(extent: int, way: tuple[int, ...]) -> int:
    """The entry of a chain that cuts at these places."""
    return code_of(way) if way else extent


def even(extent: int, chains: Ints) -> Ints:
    """The steps that stand for these chains in bounds: for the largest pieces the smallest that makes as many."""
    known = even_steps((extent,), np.arange(1, extent + 1, dtype=np.int64))
    largest = [cut(extent, chains[:, : k + 1]).largest for k in range(chains.shape[1])]
    steps = [known[np.searchsorted(known, one, "right") - 1] for one in largest]
    return np.array(steps, np.int64).reshape(-1, len(chains)).T


def pairs(outer: Ints, inner: Ints) -> tuple[Ints, Ints]:
    """Every chain of the outputs beside every one of the taps."""
    one, two = (x.ravel() for x in np.meshgrid(np.arange(len(outer)), np.arange(len(inner)), indexing="ij"))
    return outer[one], inner[two]


def figures(pieces: Pieces, extent: int) -> dict[str, Ints]:
    """All that tables read of the pieces of an axis of `extent`."""
    bursts = {f"bursts of {unit}": pieces.partial_windows(extent, inner, unit) for inner, unit in ((1, 2), (3, 4))}
    return {
        "number": pieces.number, "sum": pieces.sum, "largest": pieces.largest, "full": pieces.full(extent),
        "partial": pieces.partial(extent), **bursts,
    }  # fmt: skip


def compare(bound: Pieces, true: Pieces, extent: int, told: object, *but: str) -> int:
    """No figure of the bound is above the true one, but for some; how many were compared."""
    below, above = figures(bound, extent), figures(true, extent)
    for name, least in below.items():
        wrong = np.flatnonzero((least > above[name]) & (name not in but))
        assert not len(wrong), (name, told, int(wrong[0]), int(least[wrong[0]]), int(above[name][wrong[0]]))
    return len(above["sum"]) * len(above)


def numbers(lo: int, hi: int, chains: Ints) -> Ints:
    """How many pieces each loop of the chains has made."""
    made = [cut(hi - lo, chains[:, : k + 1]).number for k in range(chains.shape[1])]
    return np.array(made, np.int64).reshape(-1, len(chains)).T


def against_every_cut(cases: list[tuple[int, int, Window]]) -> int:
    """Bounds by numbers of pieces, by chains and by largest pieces, for all that loops may make of outputs and taps."""
    compared = 0
    for lo, hi, window in cases:
        for depth, inside in ((1, 0), (1, 1), (2, 0), (2, 1), (1, 2), (0, 1)):
            outer, taps = pairs(places(hi - lo, depth), places(window.taps, inside))
            likewise = even(window.taps, taps)
            most = even(hi - lo, outer)[:, -1] if depth else np.array([hi - lo])
            parts = likewise[:, -1] if inside else np.array([window.taps])
            for slide in ("", "outer", "inner")[: 3 if inside else 2]:
                true = windows(lo, hi, outer, taps, window, slide)
                told = (lo, hi, window, depth, inside, slide)
                for counts in (True, False):
                    steps = numbers(lo, hi, outer) if counts else outer
                    bound = ideal_parts(lo, hi, steps, likewise, window, slide, counts=counts)
                    compared += compare(bound, true, window.size, (*told, counts))
                bound = ideal_windows(lo, hi, most, parts, window, slide)
                compared += compare(bound, true, window.size, told)
                uncut = likewise[:, -1] == window.taps if inside else np.ones(len(outer), np.bool_)
                for turning in (True, False):
                    once = ideal_once(lo, hi, windows(lo, hi, outer, taps, window, ""), window, uncut, turning=turning)
                    compared += compare(once, true, window.size, told, "largest")
    return compared


def test_no_bound_is_above_any_way_to_cut() -> None:
    assert against_every_cut(drawn(FEW, seed=1)) > 500_000


def test_a_part_smaller_than_the_largest_may_lie_in_the_padding() -> None:
    """Three taps, padding 1, cut 2 + 1, five rows one by one: the last row of the one tap is padding, 9 fetches."""
    window = Window(1, 1, 3, 1, 5)
    one, cut_in_two = np.array([[1]]), np.array([[2]])
    assert windows(0, 5, one, cut_in_two, window).number.tolist() == [9]
    assert ideal_parts(0, 5, np.array([[5]]), cut_in_two, window, "", counts=True).number.tolist() == [9]
    assert ideal_parts(0, 5, one, cut_in_two, window, "", counts=False).number.tolist() == [9]


def test_rows_of_parts_by_hand() -> None:
    """Stride 2, taps 2 + 1 of dilation 2 over three of 9 rows, without padding.

    Two taps reach over 3 rows and one over 1: rows one by one are 3*3 + 3*1 = 12, all rows at once 7 + 5 = 12. Cut in
    two, 2*2 + 2*3 = 5 + 3 and 2 + 2*1: (3-2)*2 + 2*3 = 8 and (3-2)*2 + 2*1 = 4.
    """
    window = Window(2, 2, 3, 0, 9)
    for pieces, rows in ((1, 12), (2, 12), (3, 12)):
        bound = ideal_parts(0, 3, np.array([[pieces]]), np.array([[2]]), window, "", counts=True)
        assert (bound.sum.tolist(), bound.number.tolist()) == ([rows], [2 * pieces])


def test_a_map_within_one_window_is_one_run() -> None:
    """Two taps four rows apart under stride 3 use 8 of 9 rows, but all at once are fetched as the whole map."""
    window = Window(3, 2, 2, 1, 9)
    for bound in (
        ideal_windows(0, 4, np.array([4]), np.array([2]), window, ""),
        ideal_parts(0, 4, np.array([[1]]), np.zeros((1, 0), np.int64), window, "", counts=True),
    ):
        got = figures(bound, 9)
        assert {name: int(value[0]) for name, value in got.items()} == {
            "number": 1, "sum": 9, "largest": 9, "full": 1, "partial": 0, "bursts of 2": 0, "bursts of 4": 0,
        }  # fmt: skip


# ---- candidates that stand for all ways to cut ---------------------------------------------------------------------


def against_listed(cases: list[tuple[int, int, Window]]) -> int:
    """Every way to cut has a listed chain whose bounds are nowhere above, in all figures at once."""
    compared = 0
    for lo, hi, window in cases:
        axis = Cut(window, ((lo, hi),), (1, 0))
        for levels in ((1, 0), (1, 1), (1, 2), (2, 1)):
            if not window.trivial and complete(one := replace(axis, levels=levels)):
                compared += listed(one, None, window)
            one = replace(axis, levels=levels, counted=False)
            for part in np.unique(even(window.taps, places(window.taps, 1))):
                if complete(one):
                    compared += listed(replace(one, window=part_window(window, int(part))), int(part), window)
    return compared


def listed(axis: Cut, part: int | None, window: Window) -> int:
    """The chains for a kernel that is whole, or that is cut in parts of at most so many taps."""
    (lo, hi), level = axis.ranges[0], axis.levels[0]
    sizes = np.arange(1, hi - lo + 1, dtype=np.int64)
    chains = np.concatenate([free_chains(axis, sizes), whole_windows(axis, sizes)])
    ways, kernels = places(hi - lo, max(axis.levels)), places(window.taps, 0 if part is None else 1)
    if part is not None:
        kernels = kernels[even(window.taps, kernels)[:, 0] == part]
    compared = 0
    for slide in ("", "outer"):
        below = [least(axis, chains[:, :level], part, window, along) for along in (slide, "")]
        for kernel in kernels:
            true = [windows(lo, hi, ways[:, :level], kernel[None, :], window, along) for along in (slide, "")]
            bounds, values = together(axis, below, chains, window), together(axis, true, ways, window)
            reached = (bounds[:, :, None] <= values[:, None, :]).all(axis=0).any(axis=0)
            assert reached.all(), (axis, part, slide, kernel, ways[~reached][0])
            compared += values.size
    return compared


def least(axis: Cut, chains: Ints, part: int | None, window: Window, slide: str) -> Pieces:
    """The bounds of chains, as `hwmodels.nest.price.core` asks for them."""
    asked = SimpleNamespace(
        core=SimpleNamespace(range={"r": axis.ranges[0]}.get), _ideal={} if part is None else {"r": "sums"}
    )
    taps = np.zeros((1, 0), np.int64) if part is None else np.array([[part]])
    return CorePieces._windowed(asked, "r", chains, taps, window, slide)


def together(axis: Cut, of_in: list[Pieces], chains: Ints, window: Window) -> Ints:
    """All that prices read of ways to cut, (F, T): what IN fetches, its tile, pieces of OUT, trips of the loops.

    Pieces that span the map are left out: a run more is never fewer than one that joins others.
    """
    (lo, hi), out = axis.ranges[0], axis.levels[1]
    fetched = {name: value for name, value in figures(of_in[0], window.size).items() if name not in ("full", "largest")}
    rows = [*fetched.values(), of_in[1].largest]
    of_out = cut(hi - lo, chains[:, :out])
    rows += [cut(hi - lo, chains[:, : k + 1]).number for k in range(chains.shape[1])]
    rows += [np.broadcast_to(of_out.largest, (len(chains),))] if out else []
    return np.stack(rows)


def test_every_way_to_cut_has_a_listed_chain_with_bounds_nowhere_above() -> None:
    assert against_listed(drawn(FEW // 5, seed=3)) > 30_000


def seen(axis: Cut, chains: Ints, slide: str) -> Ints:
    """All that serial time sees of ways to cut (F, T) on every core, the kernel whole where IN is held."""
    (of_in, of_out), whole, rows = axis.levels, np.zeros((1, 0), np.int64), list[Ints]()
    held = [windows(*span, chains[:, :of_in], whole, axis.window, "").largest for span in axis.ranges]
    for lo, hi in axis.ranges:
        fetched = windows(lo, hi, chains[:, :of_in], whole, axis.window, slide)
        rows += [fetched.number, fetched.sum, fetched.partial(axis.window.size)]
        rows += [cut(hi - lo, chains[:, : k + 1]).number for k in range(chains.shape[1])]
    rows += [np.max(held, axis=0)]
    rows += [cut(axis.extent, chains[:, :of_out]).largest] if of_out else []
    return np.stack([np.broadcast_to(row, (len(chains),)) for row in rows])


def test_serial_time_needs_no_other_way_to_cut_than_those_listed() -> None:
    compared = 0
    for lo, hi, window in drawn(FEW, seed=5):
        for levels in ((1, 0), (1, 1), (1, 2), (2, 1)):
            cores, fewer = ((lo, hi), (hi, 2 * hi - lo)), ((lo, hi), (hi, 2 * hi - lo - 1))
            for ranges, slide in product((cores[:1], cores, fewer[: hi - lo]), ("", "outer")):
                axis = Cut(window, ranges, levels)
                if window.trivial or not sure(axis, sliding=bool(slide)):
                    continue
                ways = places(hi - lo, max(levels))
                listed = timed_chains(axis, np.arange(1, hi - lo + 1), sliding=bool(slide))
                true = seen(axis, ways, slide)
                below = (seen(axis, listed, slide)[:, :, None] <= true[:, None, :]).all(axis=0).any(axis=0)
                assert below.all(), (axis, slide, ways[~below][0], true[:, ~below][:, 0])
                compared += true.size
    assert compared > 10_000


@pytest.mark.parametrize(("window", "extent", "levels"), [
    # two pieces of 4 and 3 results hold all 5 rows of the map each
    (Window(1, 1, 4, 2, 5), 7, (2, 1)),
    # of 1 + 2 rows the first one is on chip and no fetch
    (Window(1, 1, 1, 0, 3, 1), 3, (1, 1)),
])  # fmt: skip
def test_where_serial_time_may_need_other_ways_to_cut(window: Window, extent: int, levels: tuple[int, int]) -> None:
    axis = Cut(window, ((0, extent),), levels)
    assert complete(axis)
    assert not sure(axis, sliding=False)
    true = seen(axis, places(extent, max(levels)), "")
    listed = seen(axis, timed_chains(axis, np.arange(1, extent + 1), sliding=False), "")
    assert not (listed[:, :, None] <= true[:, None, :]).all(axis=0).any(axis=0).all()


def test_a_last_row_that_fetches_nothing_spares_a_call() -> None:
    """Five rows of 3 taps with padding 1, two at a time, sliding: 1 + 2 + 2 would be three calls, 2 + 2 + 1 are two."""
    axis = Cut(Window(1, 1, 3, 1, 5), ((0, 5),), (1, 1))
    listed = timed_chains(axis, np.arange(1, 3), sliding=True)
    assert seen(axis, listed, "outer")[[0, -1]].min(axis=1).tolist() == [2, 1]


# ---- bursts of pieces that fit, cycles of tiles ----------------------------------------------------------------------


def partitions(total: int, number: int, most: int) -> list[list[int]]:
    """All lists of at least so many pieces of at most `most` with this sum."""
    if not total:
        return [[]] if number <= 0 else []
    return [
        [one, *rest] for one in range(1, min(most, total) + 1) for rest in partitions(total - one, number - 1, most)
    ]


@pytest.mark.parametrize(("inner", "unit"), [(3, 4), (7, 8), (2, 8), (9, 4), (4, 4)])
def test_bursts_of_pieces_that_fit(inner: int, unit: int) -> None:
    """At least so many pieces of at most 1..5 elements, 1 to 8 elements in all: the fewest bursts there are."""
    for most, total, number in product(range(1, 6), range(1, 9), range(1, 9)):
        ways = partitions(total, number, most)
        if ways:
            least = min(sum(-(-size * inner // unit) for size in way) for way in ways)
            bound = ideal_count(total, np.array([number])).within(most)
            assert bound.bursts(bound.sum, bound.number, inner, unit).tolist() == [least], (most, total, number)


def test_bursts_by_hand() -> None:
    """14 rows of 112 bytes in bursts of 128: 13 at least; where 4 rows fit 4, 4, 4 and 2 take 4 + 4 + 4 + 2."""
    rows = ideal_count(14, np.array([2]))
    assert [one.bursts(rows.sum, rows.number, 112, 128).tolist() for one in (rows, rows.within(4))] == [[13], [14]]


def test_cycles_of_tiles_by_hand() -> None:
    """Five rows of 3 columns, one tap, 4 MACs a cycle: whole ceil(15/4) = 4, element by element 15.

    In two pieces of rows 2 * ceil(9/4) = 6, in three 3 * ceil(6/4) = 6, in five 5 * ceil(3/4) = 5: 5 for two or more.
    """
    pieces = (np.array([1, 2, 5]), np.array([1, 1, 1]), np.array([1, 1, 3]), np.array([1, 1, 1]))
    assert least_cycles((5, 1, 3, 1), pieces, 4).tolist() == [4, 5, 15]


# ---- pieces of results -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extent", range(1, 7))
@pytest.mark.parametrize("first", [0, 1, 2, 7])
def test_rows_that_are_written(extent: int, first: int) -> None:
    """Pieces of a result of which the first rows stay on chip: by largest pieces, by numbers, and of candidates."""
    written = Window(1, 1, 1, 0, extent, first)
    for depth in (1, 2):
        chains = places(extent, depth)
        true = windows(0, extent, chains, np.zeros((1, 0), np.int64), written)
        bounds = [
            ideal_cut(extent, even(extent, chains)[:, -1], first),
            ideal_count(extent, numbers(0, extent, chains)[:, -1], first),
            Relaxed(true, int(true.number.max())),
        ]
        for number, bound in enumerate(bounds):
            compare(bound, true, extent, (extent, first, depth, number))
        if not first:
            free = cut(extent, chains)
            lanes = [bound.ceil_sum(2) <= free.ceil_sum(2) for bound in (*bounds[:2], Relaxed(free))]
            assert np.all(lanes)
