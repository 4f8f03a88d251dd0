"""The least time of a class, piece by piece: against nests of the class, all nests of one dimension, and by hand."""

from __future__ import annotations

import random
from itertools import combinations, islice

import numpy as np
import pytest

from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.hidden import Hidden
from hwmodels.nest.price.ranges import Ranges
from hwmodels.nest.price.sequences import Sequences
from hwmodels.nest.price.skeleton import cores, skeleton_of
from hwmodels.schedule import Hold, Loop, Nest
from instances.machine.machine import Compute, Transfer
from instances.network.workload import Layer
from tests.hwmodels.test_hidden import hidden_of, nests, point, widened
from tests.small import machine

#: How many ways to begin and to end, and how many loads and stores, are told apart.
HOW = ((1, 0), (64, 0), (1, 2), (64, 3))


def test_no_class_has_a_bound_above_the_time_of_a_nest_in_it() -> None:
    # Classes of one nest, whose bound is its time nearly always, and larger ones around it.
    rng, met, compared = random.Random(7), 0, 0
    for nest, time, hidden, one in islice(nests(rng, 20), 330):
        some, _ = hidden.tightened(Ranges.joined([one, widened(rng, hidden, one)]))
        for number in np.flatnonzero(Sequences.known(hidden, some)):
            counted, told, levels = (True, 64, 0) if number == 0 else (rng.random() < 0.5, *rng.choice(HOW))
            part = some.take(np.array([number]))
            bound = Sequences(hidden, part, counted=counted, told=told, levels=levels, work=200_000).bound
            assert bound is None or bound <= time, (hidden.layer, hidden.machine, nest, bound, time)
            if number == 0 and bound is not None and not hidden.machine.by_address:
                met, compared = met + int(bound == time), compared + 1
    assert met > 0.95 * compared > 0.95 * 250


def test_pieces_of_a_loop_inside_another_one_take_the_same_wherever_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    # Filters that two loops cut, rows outside, between or inside: told once for all sizes, and where each piece is.
    rng, compared = random.Random(3), 0
    for _ in range(60):
        layer = Layer.conv("x", channels=2, filters=rng.randint(3, 7), size=(rng.randint(1, 3), 2))
        on = machine(
            ocm_bytes=10**6, buffering="double", overlap="double_buffered",
            compute=Compute(model="array", rows=2, cols=2, cycle_ticks=rng.randint(1, 9)),
            transfer=Transfer(call_ticks=rng.randint(0, 30), segment_ticks=2, byte_ticks=3),
        )  # fmt: skip
        nest: list[Hold | Loop] = [Loop("m", 3), Hold("W"), Loop("m", 2), Hold("OUT")]
        nest.insert(rng.choice((0, 1, 2, 3)), Loop("r", 1))
        hidden, _ = hidden_of(layer, on, Nest((Hold("IN"), *nest)))
        every = hidden.classes([{("m", 1): (2, layer.m, 1, rng.randint(1, layer.m))}])
        every.cuts[:] = [[d != "r" or layer.r > 1] for d, _ in hidden.loops]
        inner = hidden.loops.index(("m", 2))
        for ends in (every.first_most, every.last_most):
            ends[inner] = rng.choice((1, 2, layer.m))
        some, fits = hidden.tightened(every)
        if fits.all():
            once = Sequences(hidden, some, counted=False, told=1).bound
            with monkeypatch.context() as patched:
                patched.setattr(Sequences, "_anywhere", lambda self, at, place, asked: False)
                each = Sequences(hidden, some, counted=False, told=1).bound
            assert once is not None
            assert each is not None
            assert once == each
            compared += 1
    assert compared > 40


#: Rows of one column and channel; two loops over them, IN or OUT held between.
ROWS = {
    "IN first": ("IN", "OUT"),
    "OUT first": ("OUT", "IN"),
}


@pytest.mark.parametrize("holds", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("taps", [1, 3, 5])
def test_the_bound_is_the_least_time_where_one_dimension_is_cut(holds: tuple[str, str], taps: int) -> None:
    # All ways to cut 6 rows in several groups, of which some are cut further, by numbers of groups and of pieces.
    layer = Layer.conv("x", channels=1, filters=1, size=(6, 1), kernel=(taps, 1), pad=(taps // 2, 0, taps // 2, 0))
    on = machine(
        ocm_bytes=10**6, buffering="double", overlap="double_buffered", sliding=True, compute=Compute(model="none"),
        transfer=Transfer(call_ticks=7, segment_ticks=2, byte_ticks=3),
    )  # fmt: skip
    times = dict[tuple[int, int], list[int]]()
    for cuts in (some for n in range(2, 6) for some in combinations(range(1, 6), n)):
        for outer in (some for n in range(1, len(cuts)) for some in combinations(cuts, n)):
            sizes = np.diff([0, *cuts, 6])
            first = Loop("r", int(np.diff([0, *outer, 6]).max()), outer)
            second = Loop("r", int(sizes.max()), tuple(x for x in cuts if x not in outer))
            nest = Nest((Hold("W"), first, Hold(holds[0]), second, Hold(holds[1])))
            times.setdefault((len(outer) + 1, len(cuts) + 1), []).append(price(layer, on, nest).time_ticks)
    skeleton = skeleton_of(layer, nest)
    hidden = Hidden(layer, on, skeleton, cores(layer, skeleton.spatial)[0], ("r", 1 if holds[1] == "IN" else 0))
    every = hidden.classes([{}])
    every.cuts[:] = 1
    for counted in (True, False):
        least = Sequences(hidden, hidden.tightened(every)[0], counted=counted).bound
        assert least is not None
        assert least <= min(min(some) for some in times.values())
    for (groups, pieces), some in times.items():
        one = hidden.classes([{("r", 1): (groups, groups, 1, 6), ("r", 2): (pieces, pieces, 1, 6)}])
        assert Sequences(hidden, hidden.tightened(one)[0]).bound == min(some)


@pytest.mark.parametrize("size", [7, 8])
def test_the_places_of_one_loop_are_the_best_of_all(size: int) -> None:
    # All ways to cut the rows by one loop, no piece larger than three.
    layer = Layer.conv("x", channels=2, filters=3, size=(size, 2), kernel=(3, 1), pad=(1, 0, 1, 0))
    on = machine(
        ocm_bytes=10**6, buffering="double", overlap="double_buffered", sliding=True,
        compute=Compute(model="array", rows=2, cols=2, cycle_ticks=9),
        transfer=Transfer(call_ticks=11, segment_ticks=2, byte_ticks=3),
    )  # fmt: skip
    times = {}
    for cuts in (some for n in range(1, size) for some in combinations(range(1, size), n)):
        nest = Nest((Hold("W"), Loop("r", int(np.diff([0, *cuts, size]).max()), cuts), Hold("IN"), Hold("OUT")))
        if np.diff([0, *cuts, size]).max() <= 3:
            times[cuts] = price(layer, on, nest).time_ticks
    hidden, _ = hidden_of(layer, on, nest)
    some = hidden.classes([{("r", 1): (2, size, 1, 3)}])
    some.cuts[:] = 1
    found = Sequences(hidden, hidden.tightened(some)[0], counted=False)
    assert (found.bound, times[found.places["r"][0]]) == (min(times.values()), min(times.values()))


@pytest.mark.parametrize("counted", [True, False])
def test_partial_sums_come_back_behind_the_first_channels_alone(counted: bool) -> None:
    # Six channels, two at a time, in each of which rows go by: of the first two nothing comes back.
    layer = Layer.conv("x", channels=6, filters=2, size=(3, 2))
    on = machine(
        ocm_bytes=10**6, buffering="double", overlap="double_buffered", compute=Compute(model="none"), psum_bytes=4,
        transfer=Transfer(call_ticks=7, segment_ticks=0, byte_ticks=1),
    )  # fmt: skip
    nest = Nest((Loop("n", 2), Hold("W"), Loop("r", 1), Hold("IN"), Hold("OUT")))
    hidden, trees = hidden_of(layer, on, nest)
    some, _ = hidden.tightened(point(hidden, trees))
    assert Sequences(hidden, some, counted=counted).bound == price(layer, on, nest).time_ticks


def test_what_the_last_loop_does_not_move_is_not_fetched_again() -> None:
    # W stands inside the loop over rows, on which it does not depend: it is fetched for every filter.
    layer = Layer.conv("x", channels=2, filters=2, size=(3, 2))
    on = machine(
        ocm_bytes=10**6, buffering="double", overlap="double_buffered", compute=Compute(model="none"),
        transfer=Transfer(call_ticks=7, segment_ticks=0, byte_ticks=1),
    )  # fmt: skip
    nest = Nest((Hold("IN"), Loop("m", 1), Loop("r", 1), Hold("W"), Hold("OUT")))
    hidden, trees = hidden_of(layer, on, nest)
    some, _ = hidden.tightened(point(hidden, trees))
    assert Sequences(hidden, some).bound == price(layer, on, nest).time_ticks


def test_by_hand_and_by_little_work() -> None:
    # Two rows, one each: L 8, then max(C, L), max(C, S), S with L = S = 7 + 1 and C = 0: 8 + 8 + 8 + 8.
    layer = Layer.conv("x", channels=1, filters=1, size=(2, 1))
    on = machine(
        ocm_bytes=10**6, buffering="double", overlap="double_buffered", compute=Compute(model="none"),
        transfer=Transfer(call_ticks=7, segment_ticks=0, byte_ticks=1),
    )  # fmt: skip
    hidden, trees = hidden_of(layer, on, Nest((Hold("W"), Loop("r", 1), Hold("IN"), Hold("OUT"))))
    one, _ = hidden.tightened(point(hidden, trees))
    assert Sequences(hidden, one).bound == 8 + 8 + 8 + 8 + 8  # W with the first row
    found = Sequences(hidden, one, work=150)
    assert (found.bound, found.work) == (None, 150 - 10)  # spans of one size; the way through two places takes more
    assert Sequences(hidden, one, work=2 * 60 - 1).bound is None  # known before anything is done
    assert not Sequences.known(hidden, Ranges.of(*(np.ones((1, 1), np.int64) for _ in range(8)))).any()
