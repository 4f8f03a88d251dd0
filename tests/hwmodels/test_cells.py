"""Few places for many: cells against all ways to cut, what a class takes by cells against nests, and by hand."""

from __future__ import annotations

import random
from itertools import combinations, islice, pairwise

import numpy as np
import pytest

from hwmodels.nest.price.cells import PLAIN, Cells, Ways
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.ranges import Ranges
from hwmodels.nest.price.sequences import Sequences, orders
from hwmodels.schedule import Hold, Loop, Nest
from instances.machine.machine import Compute, Transfer
from instances.network.workload import Layer
from tests.hwmodels.test_hidden import hidden_of, nests, point, widened
from tests.small import machine


def represented(cuts: list[int], cell: int) -> list[tuple[int, int, int]]:
    """Pieces that stand for all, and elements: of several in one cell the first or the last of all, if it is there."""
    found = list[tuple[int, int, int]]()
    for a, b in pairwise(cuts):
        again = found and a // cell == b // cell == found[-1][0] // cell == found[-1][1] // cell
        if again and b == cuts[-1]:
            found[-1] = (a, b, max(b - a, found[-1][2]) if found[-1][0] == cuts[0] else b - a)
        elif not again:
            found.append((a, b, b - a))
    return found


def stands(ways: Ways, cuts: list[int], cell: int, end: int) -> bool:
    """Whether some way with no larger pieces goes where these cuts are."""
    place, pieces = 0, represented(cuts, cell)
    for a, b, size in pieces:
        last, further = b == cuts[-1], 2 * (b // cell) if b // cell > a // cell else 2 * (a // cell) + 1
        there = end if last else further
        alike = (ways.last == last) & (ways.begin == place) & (ways.end == there)
        if not (alike & (ways.size <= size)).any():
            return False
        place = there
    return True


def banded(cells: Cells, ways: Ways, cuts: list[int]) -> Ways:
    """Those with a first and a last piece of about these sizes."""
    first, last = cuts[1] - cuts[0], cuts[-1] - cuts[-2]
    return cells.banded(ways, (max(first - 1, 1), first + 1), (max(last - 1, 1), last + 1), whole=True)


@pytest.mark.parametrize("cell", [2, 3, 5])
@pytest.mark.parametrize("extent", [7, 10, 12])
def test_all_ways_to_cut_have_one_that_stands_for_them(extent: int, cell: int) -> None:
    cells = Cells("m", cell)
    whole = cells.whole(extent)
    for number in range(1, 4):
        for some in combinations(range(1, extent), number):
            cuts = [0, *some, extent]
            assert stands(whole, cuts, cell, 0), cuts
            assert stands(banded(cells, whole, cuts), cuts, cell, 0), cuts


@pytest.mark.parametrize("begin", [0, 1, 2, 5])
@pytest.mark.parametrize("cell", [2, 3])
def test_pieces_inside_pieces_span_as_many_cells(begin: int, cell: int) -> None:
    # A piece from there up to each end, which a loop inside cuts; one element stands for those of no cell or one.
    cells, extent = Cells("m", cell), 12
    within, shift = cells.within(extent, begins=begin == 0), begin // cell * cell
    for end in range(begin + 1, extent + 1):
        spanned = end // cell - begin // cell
        size = max(spanned * cell if begin == 0 else (spanned - 1) * cell + 1, 1)  # of what stands for the piece
        assert cells.number(size) == (spanned if size > 1 else 0)
        for number in range(4):
            for some in combinations(range(begin + 1, end), number):
                cuts = [x - shift for x in (begin, *some, end)]
                ways = banded(cells, within, cuts)
                if size > 1:
                    assert stands(within, cuts, cell, spanned), cuts
                    assert stands(ways, cuts, cell, spanned), cuts
                else:
                    only = ways.last & (ways.begin == 0) & (ways.end == 0)
                    assert (ways.size[only] <= np.diff(cuts).max()).any(), cuts


def test_one_place_stands_for_several_pieces_in_it_by_hand() -> None:
    # Five channels in cells of two: 0-1, 2-3, 4. The first piece has one at least if it ends in cell 0, two up to cell
    # 1, four up to cell 2, or all; the last one has what is behind its cell, and one.
    ways = Cells("g", 2).whole(5)
    first = {(int(a), int(b)) for a, b in zip(ways.end[ways.begin == 0], ways.size[ways.begin == 0], strict=True)}
    assert first == {(1, 1), (2, 2), (4, 4), (0, 5)}
    last = ways.take(ways.last)
    assert dict(zip(last.begin.tolist(), last.size.tolist(), strict=True)) == {0: 5, 1: 4, 2: 2, 3: 2, 4: 1, 5: 1}


def test_no_bound_by_cells_is_above_the_time_of_a_nest() -> None:
    # Classes of one nest, opened along a dimension, with a few ways to begin and to end, loads and stores.
    rng, compared, near = random.Random(5), 0, 0
    for nest, time, hidden, one in islice(nests(rng, 30), 300):
        some, _ = hidden.tightened(Ranges.joined([one, widened(rng, hidden, one)]))
        for number in np.flatnonzero(Sequences.known(hidden, some)):
            part = some.take(np.array([number]))
            for d in sorted(PLAIN & {hidden.loops[n][0] for n in np.flatnonzero(part.cuts[:, 0])}):
                opened, loops = part.take(np.array([0])), [n for n, (x, _) in enumerate(hidden.loops) if x == d]
                for kind, (least, most) in enumerate(opened.pairs):
                    least[loops] = 1
                    most[loops] = hidden.extent[d] if kind != 1 else most[loops]
                opened, _ = hidden.tightened(opened)
                how = {"told": rng.choice((1, 2, 4)), "levels": rng.choice((1, 2, 8)), "work": 10**6}
                cells = Cells(d, rng.randint(2, max(2, hidden.extent[d] // 2)))
                found = [
                    Sequences(hidden, opened, order, counted=False, cells=cells, **how).bound or 0
                    for order in orders(hidden, opened)
                ]
                assert min(found) <= time, (hidden.layer, hidden.machine, nest, cells, how, found, time)
                compared, near = compared + 1, near + int(min(found) > 0.8 * time)
    assert compared > 100
    assert near > 0.7 * compared


OUT = Hold("OUT")
ON = machine(
    ocm_bytes=10**6, buffering="double", overlap="double_buffered", compute=Compute(model="none"),
    transfer=Transfer(call_ticks=9, segment_ticks=2, byte_ticks=3),
)  # fmt: skip


def test_cells_of_two_loops_stand_for_all_their_cuts() -> None:
    # All ways to cut channels by two loops, W held inside the first one, outside rows. Where less is told apart of how
    # pieces begin and end, IN of a first piece is loaded for less than what is computed of it.
    channels, times = 9, list[int]()
    layer = Layer(name="x", b=1, g=channels, m=1, n=1, r=2, c=1, h=2, l=1)
    for outer in (some for n in (1, 2) for some in combinations(range(1, channels), n)):
        for inner in (some for n in (1, 2) for some in combinations(set(range(1, channels)) - {*outer}, n)):
            cuts = np.diff([0, *sorted({*outer, *inner}), channels])
            first = Loop("g", int(np.diff([0, *outer, channels]).max()), outer)
            nest = Nest(
                (first, Hold("W"), Loop("g", int(cuts.max()), tuple(sorted(inner))), Loop("r", 1), Hold("IN"), OUT)
            )
            times.append(price(layer, ON, nest).time_ticks)
    hidden, trees = hidden_of(layer, ON, nest)
    some = point(hidden, trees)
    for least, most in some.pairs:
        for number, (d, _) in enumerate(hidden.loops):
            if d == "g":
                least[number], most[number] = 1, channels
    some.cuts[:] = 1
    some, _ = hidden.tightened(some)
    bounds = [
        min(
            Sequences(
                hidden, some, order, counted=False, told=told, levels=32, cells=Cells("g", cell), work=10**8
            ).bound
            or 0
            for order in orders(hidden, some)
        )
        for told, cell in ((8, 2), (2, 2), (2, 3), (1, 3))
    ]
    assert all(bound <= min(times) for bound in bounds), (bounds, min(times))
    assert bounds[0] > 0.7 * min(times) > max(bounds[1:])
