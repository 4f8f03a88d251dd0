"""Bounds of single classes at little work: below every nest, shared by classes, and with the best way to cut."""

from __future__ import annotations

import random
from itertools import islice

import numpy as np

from formulations.tiling.settling import Settled, Work
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.sequences import Sequences
from hwmodels.schedule import Hold, Loop, Nest
from instances.machine.machine import Compute, Transfer
from instances.network.workload import Layer
from tests.hwmodels.test_hidden import hidden_of, nests, point
from tests.small import machine


def test_no_bound_is_above_the_time_of_a_nest_of_the_class() -> None:
    # Asked for plans that take a tick more than the nest, and ten times as long.
    met, compared = 0, 0
    for nest, time, hidden, one in islice(nests(random.Random(11), 20), 100):
        some, _ = hidden.tightened(one)
        if Sequences.known(hidden, some)[0]:
            settled = Settled(hidden, Work(300_000))
            bound, again = settled.bound(some, 0, time + 1), settled.bound(some, 0, 10 * time)
            assert max(bound, again) <= time, (hidden.layer, hidden.machine, nest, bound, time)
            met, compared = met + int(bound == time), compared + 1
    assert met > 0.8 * compared > 0.8 * 60


def rows(limit: int) -> tuple[Layer, Nest]:
    """Eight rows that a loop cuts in pieces of so many."""
    layer = Layer.conv("x", channels=2, filters=3, size=(8, 2), kernel=(3, 1), pad=(1, 0, 1, 0))
    return layer, Nest((Hold("W"), Loop("r", limit), Hold("IN"), Hold("OUT")))


def test_classes_that_cut_the_longest_dimension_share_a_bound_and_its_best_way_is_kept() -> None:
    layer, nest = rows(3)
    on = machine(
        ocm_bytes=120, buffering="double", overlap="double_buffered", sliding=True,
        compute=Compute(model="array", rows=2, cols=2, cycle_ticks=9),
        transfer=Transfer(call_ticks=11, segment_ticks=2, byte_ticks=3),
    )  # fmt: skip
    hidden, trees = hidden_of(layer, on, nest)
    one, fits = hidden.tightened(point(hidden, trees))
    assert fits.all()
    settled = Settled(hidden, Work(10**6))
    time = price(layer, on, nest).time_ticks
    bound = settled.bound(one, 0, 10 * time)
    (way,) = settled.ways
    places = way["r"][0]
    assert isinstance(places, tuple)
    largest = int(np.diff([0, *places, 8]).max())
    best = Nest((Hold("W"), Loop("r", largest, places), Hold("IN"), Hold("OUT")))
    least = price(layer, on, best).time_ticks
    assert least <= bound <= time
    # a plan as good as that is the best of all such classes: no more work is done for another one
    left = settled.work.left
    other, _ = hidden.tightened(point(hidden, hidden_of(layer, on, rows(2)[1])[1]))
    assert settled.bound(other, 0, least) >= least
    assert settled.work.left == left


def test_bounds_of_smaller_pieces_do_not_hold_for_larger_ones() -> None:
    # A call takes 200 ticks: pieces of four rows are better than those of two.
    layer, nest = rows(4)
    on = machine(
        ocm_bytes=10**6, buffering="double", overlap="double_buffered", sliding=True, compute=Compute(model="none"),
        transfer=Transfer(call_ticks=200, segment_ticks=0, byte_ticks=1),
    )  # fmt: skip
    hidden, trees = hidden_of(layer, on, nest)
    large, _ = hidden.tightened(point(hidden, trees))
    small, _ = hidden.tightened(point(hidden, hidden_of(layer, on, rows(2)[1])[1]))
    time = price(layer, on, nest).time_ticks
    settled = Settled(hidden, Work(10**6))
    known = 0
    for _ in range(3):  # of the largest pieces that fit, then of those
        known = settled.shared(small, known, time + 1)
    assert known > time
    assert settled.shared(large, 0, time + 1) <= time
    assert settled.bound(large, 0, time + 1) <= time


def test_nothing_is_bounded_without_work() -> None:
    layer, nest = rows(2)
    hidden, trees = hidden_of(layer, machine(ocm_bytes=10**6, buffering="double", overlap="double_buffered"), nest)
    settled = Settled(hidden, Work(0))
    one, _ = hidden.tightened(point(hidden, trees))
    assert (settled.shared(one, 7, 10**9), settled.bound(one, 7, 10**9), np.size(settled.ways)) == (7, 7, 0)
