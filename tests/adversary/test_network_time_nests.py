"""Nests of layers, one after the other: some by hand, and none below the bounds of certile."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from tests.adversary.network_time import joined, planned
from tests.adversary.network_time_events import Job, Search, simulate
from tests.adversary.network_time_groups import Beside, Part, beside
from tests.adversary.network_time_nests import Loop, Nest, below, network, runs_of
from tests.adversary.network_time_nets import Tiny
from tests.effort import tries

#: 8 rows of a pixel, 3 taps and padding 1.
PADDED = Tiny((1, 8, 1), (("conv", (0,), 1, 3, 1, 1),), 100, call=800, cycle=1000)
#: 2 pixels of 4 channels, 2 filters of a tap; sums of 2 bytes.
TWICE = Tiny((4, 2, 1), (("conv", (0,), 2, 1, 1, 0),), 9, sums=2)
#: 4 pixels of 24 channels, 12 filters of a tap; a run of a map costs 60 ticks.
SLICED = Tiny(
    (24, 1, 4), (("conv", (0,), 12, 1, 1, 0),), 108, byte=10, segment=60, cycle=4, lanes=(12, 1), flash=(0, 0, 10)
)
#: 8 pixels of 8 channels, which are stored again, and 2 filters of a tap for them.
FORK = Tiny((8, 1, 8), (("pool", (0,), 0, 1, 1, 0), ("conv", (0,), 2, 1, 1, 0)), 87)
NOTHING = Beside(frozenset(), 0)


def _made(case: Tiny, t: int, loops: Sequence[Loop], held: Mapping[str, int], near: Beside = NOTHING) -> Part:
    """The steps and transfers of a nest."""
    part = Nest(case, t, loops, held, near).part()
    assert part is not None
    return part


def _bound(case: Tiny) -> int:
    """What certile says that no schedule is below."""
    bound = planned(case).part.bounds["time"]
    assert bound is not None
    return bound


def test_taps_above_the_first_row_by_hand() -> None:
    """Taps outside, rows inside, results on chip: a tap comes in 801 ticks, 24 steps of 1,000, 808 for all results.

    The first step has no row to load, the second one waits for none that has not come by then: 22 rows in 801 each.
    """
    part = _made(PADDED, 0, [Loop("i", (1, 2)), Loop("r", tuple(range(1, 8)))], {"in": 2, "w": 1, "out": 0})
    assert [(one.size, one.step) for one in part.moves][:3] == [(1, 1), (1, 2), (1, 3)]
    assert (len(part.steps), part.steps[0]) == (24 - 1, (1000, 1 + 1 + 8))
    assert Search(joined((part,)), 100, 2**40).run() == 801 + 24 * 1000 + 808


def test_sums_leave_between_parts_and_stay_in_them_by_hand() -> None:
    """Half of the channels after the other, filter by filter inside, channel by channel inside of these.

    8 steps of 2 ticks: 4 bytes of the input for 4 of them, a byte of weights for each, 2 sums of a filter for 2. These
    leave after the first half and come back for the second. In just these 9 bytes nothing runs beside anything else.
    """
    loops = Loop("n", (2,)), Loop("m", (1,)), Loop("n", (1, 2, 3))
    part = _made(TWICE, 0, loops, {"in": 1, "out": 2, "w": 3})
    assert part.steps == [(2, 4 + 1 + 2 * 2)] * 8
    assert [(one.load, one.size, one.step) for one in part.moves if one.store >= 1000] == [
        (False, 4, 2), (False, 4, 4), (True, 4, 5), (True, 4, 7),
    ]  # fmt: skip
    assert [(one.size, one.step) for one in part.moves if one.store == 1] == [(2, 6), (2, 8)]
    assert Search(joined((part,)), 9, 2**40).run() == 2 * 4 + 8 + 4 * 4 + 2 * 2 + 8 * 2
    assert Nest(TWICE, 0, loops, {"in": 1, "out": 0, "w": 3}, NOTHING).part() is None  # all sums: 13 bytes


def test_channels_cut_twice_by_hand() -> None:
    """The input in two slices, 4 runs each, weights of a channel at a time: one loop of channels has as many of both.

    48 bytes of a slice, 12 of weights, 48 sums: no room for more, so all that is moved and computed adds up. What is
    moved is a bound; one above this schedule is seen, or is given up for one by counting, as a plan is below it.
    """
    part = _made(SLICED, 0, (Loop("n", (12,)), Loop("n", tuple(range(1, 24)))), {"in": 1, "w": 2, "out": 0})
    assert part.steps == [(4 * 4, 48 + 12 + 48)] * 24
    moved = 10 * (96 + 288 + 48) + 60 * (2 * 4 + 1)
    assert Search(joined((part,)), 108, 2**40).run() == moved + 24 * 16
    assert moved <= _bound(SLICED) <= moved + 24 * 16


def _when(job: Job, first: int) -> list[int]:
    """Loads lie beside the step before their own, of a first step beside itself, which waits for the first store."""
    last = len(job.steps) + 1
    return [
        (max(1, one.step - (one.step != first)) if one.load else first if one.step == 1 else last)
        for one in job.moves
    ]  # fmt: skip


def test_results_that_are_yet_to_be_stored_by_hand() -> None:
    """4 steps of two channels of the pool, 16 bytes each; then 8 of a channel and 2 weights, 26 bytes on chip.

    Three of the four results leave while the second layer runs: 48 + 26 + 10 bytes that are loaded for its next step.
    Loads and stores of the first layer alone are 128 ticks, the second one takes 128, and its result 1 or more.
    """
    pool = _made(FORK, 0, [Loop("m", (2, 4, 6))], {"in": 1, "w": 1, "out": 1})
    conv = _made(FORK, 1, [Loop("n", tuple(range(1, 8)))], {"in": 1, "w": 1, "out": 0})
    assert (pool.steps, conv.steps) == ([(16, 32)] * 4, [(16, 8 + 2 + 16)] * 8)
    job = joined((pool, conv))
    loads, stores = ([k for k, one in enumerate(job.moves) if one.load == load] for load in (True, False))
    order = loads[:4]
    for k in range(4):  # a result of the pool, loads for two steps
        order += [stores[k], *loads[4 + 4 * k : 8 + 4 * k]]
    assert simulate(job, 87, order + stores[4:], _when(job, 5)) == 246
    assert _bound(FORK) <= 246 < 128 + 128 + 1


def test_a_map_on_chip_by_hand() -> None:
    """The first layer stores nothing, the second one loads weights alone: both have all of the map, 32 bytes."""
    case = Tiny((1, 4, 4), (("conv", (0,), 2, 1, 1, 0), ("conv", (1,), 1, 1, 1, 0)), 100)
    held = {"in": 0, "w": 0, "out": 0}
    parts = [_made(case, t, (), held, beside(case, t, t, frozenset({1}))) for t in (0, 1)]
    assert [part.steps[0][1] for part in parts] == [32 + 16 + 2 + 32, 32 + 2 + 16]
    assert [[one.size for one in part.moves] for part in parts] == [[16, 2], [2, 16]]


def test_runs_by_hand() -> None:
    """2 of 4 rows of 3 columns of 2 channels: one run, with 2 columns two, of a channel as many as pixels."""
    whole = 4, 3, 2
    assert runs_of(((0, 2), (0, 3), (0, 2)), whole) == 1
    assert runs_of(((0, 2), (0, 2), (0, 2)), whole) == 2
    assert runs_of(((0, 2), (0, 3), (0, 1)), whole) == 6


def _holds(seed: int, count: int, seconds: float) -> bool:
    """Whether no schedule is found below the bound of a network of so many layers."""
    rng = random.Random(seed)
    case = network(rng, count)
    bound = planned(case).part.bounds.get("time")
    return bound is None or below(case, bound, rng, seconds) is None


@pytest.mark.parametrize(("count", "seed"), [(1, 3), (1, 6), (2, 1), (2, 2), (2, 6)])
def test_no_nest_is_below_the_bound(count: int, seed: int) -> None:
    """One layer, or two."""
    assert _holds(seed, count, 0.3)


@pytest.mark.slow(20)
@pytest.mark.parametrize("count", [1, 2])
def test_no_nest_of_more_networks_is_below_the_bound(count: int) -> None:
    """The same of more of them, for longer."""
    assert all(_holds(seed, count, 2) for seed in range(11, tries(13, 111)))
