"""Nests of layers by themselves: one by hand, and none below the bounds of certile."""

from __future__ import annotations

import random

import pytest

from tests.adversary.network_time import planned
from tests.adversary.network_time_events import Job, Search
from tests.adversary.network_time_nests import Nest, below, layer, runs_of
from tests.adversary.network_time_nets import Tiny
from tests.effort import tries

#: 8 rows of a pixel, 3 taps and padding 1.
PADDED = Tiny((1, 8, 1), (("conv", (0,), 1, 3, 1, 1),), 100, call=800, cycle=1000)


def test_taps_above_the_first_row_by_hand() -> None:
    """Taps outside, rows inside, results on chip: a tap comes in 801 ticks, 24 steps of 1,000, 808 for all results.

    The first step has no row to load, the second one waits for none that has not come by then: 22 rows in 801 each.
    """
    single = [(k, k + 1) for k in range(8)]
    pieces = {d: [(0, 1)] for d in "mncj"} | {"r": single, "i": single[:3]}
    part = Nest(PADDED, pieces, "irmncj", {"in": 2, "w": 1, "out": 0}).part()
    assert part is not None
    assert [(one.size, one.step) for one in part.moves][:3] == [(1, 1), (1, 2), (1, 3)]
    assert (len(part.steps), part.steps[0]) == (24 - 1, (1000, 1 + 1 + 8))
    job = Job(tuple(part.steps), tuple(part.moves))
    assert Search(job, 100, 2**40).run() == 801 + 24 * 1000 + 808


def test_runs_by_hand() -> None:
    """2 of 4 rows of 3 columns of 2 channels: one run, with 2 columns two, of a channel as many as pixels."""
    whole = 4, 3, 2
    assert runs_of(((0, 2), (0, 3), (0, 2)), whole) == 1
    assert runs_of(((0, 2), (0, 2), (0, 2)), whole) == 2
    assert runs_of(((0, 2), (0, 3), (0, 1)), whole) == 6


@pytest.mark.slow(6)
def test_no_nest_is_below_the_bound() -> None:
    """Seed 1 was wrong once: 832 ticks of a nest that begins in the padding, the bound was 837."""
    for seed in range(1, tries(2, 200)):
        rng = random.Random(seed)
        case = layer(rng)
        bound = planned(case).part.bounds.get("time")
        assert bound is None or below(case, bound, rng, 2) is None
