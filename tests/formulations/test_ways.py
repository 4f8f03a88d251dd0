"""All ways to cut rows by dynamic programming, against every way there is, in all that tables read of them."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from formulations.pins import Pins
from formulations.tiling.problem import NESTS
from formulations.tiling.ways import Axis, ways
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.pieces import Window, cut, windows
from instances.load import load_machine
from instances.machine.machine import Transfer
from instances.network.workload import Layer
from solver.problems.tiling import decide_space
from tests.effort import tries
from tests.hwmodels.test_ideal import places


def drawn(rng: random.Random) -> Axis:
    """Up to 5 outputs on one core, or on two of which the second may have fewer."""
    extent, stride, taps, dilation = (rng.randint(1, most) for most in (5, 3, 3, 2))
    reach, fewer = (taps - 1) * dilation + 1, rng.randint(0, min(2, extent - 1))
    ranges = rng.choice([((0, extent),), ((0, extent), (extent, 2 * extent - fewer))])
    pad = rng.randint(0, reach - 1)
    size = (ranges[-1][1] - 1) * stride - pad + reach - rng.randint(1 - stride, reach - 1)
    levels = rng.choice([(1, 0), (0, 1), (1, 1), (1, 2), (2, 1)])
    window = Window(stride, dilation, taps, pad, max(1, size))
    if rng.random() < 0.3:  # channels
        extent = rng.randint(2, 7)
        window, ranges = Window(1, 1, 1, 0, extent), ((0, extent),)
        one = Axis(window, ranges, levels, False, rng.randint(1, 5), (rng.randint(1, 5),), rng.choice((4, 8)))
        return replace(one, fits=rng.random() < 0.7)
    return Axis(
        window, ranges, levels, rng.random() < 0.5, rng.randint(1, 5), (rng.randint(1, 5), 6), rng.choice((0, 4, 8))
    )


def seen(axis: Axis, chains: Ints) -> Ints:
    """What tables read of chains (F, T), core by core, and the largest window and pieces."""
    (of_in, of_out), whole, rows, held = axis.levels, np.zeros((1, 0), np.int64), list[Ints](), list[Ints]()
    slide = "outer" if axis.slide and of_in else ""
    for lo, hi in axis.ranges:
        fetched = windows(lo, hi, chains[:, :of_in], whole, axis.window, slide)
        held.append(windows(lo, hi, chains[:, :of_in], whole, axis.window).largest)
        rows += [fetched.full(axis.window.size), fetched.sum, fetched.partial(axis.window.size)]
        rows += [cut(hi - lo, chains[:, : k + 1]).number for k in range(chains.shape[1])]
        if axis.burst:
            rows.append(fetched.partial_windows(axis.window.size, axis.reads, axis.burst))
            out = cut(hi - lo, chains[:, :of_out])
            rows += [out.partial_windows(axis.window_out, one, axis.burst) for one in axis.writes if of_out]
    rows += (
        []
        if axis.fits
        else [np.max(held, axis=0), *(cut(axis.extent, chains[:, :k]).largest for k in (of_out, chains.shape[1]))]
    )
    return np.stack([np.broadcast_to(row, (len(chains),)) for row in rows])


@pytest.mark.parametrize("seed", range(4))
def test_no_way_to_cut_is_better_than_all_that_are_found(seed: int) -> None:
    rng, several = random.Random(seed), 0
    for _ in range(tries(100, 2000)):
        axis = drawn(rng)
        depth = max(axis.levels)
        most = tuple(rng.randint(1, axis.extent) for _ in range(depth))
        every = places(axis.extent, depth)
        sizes = [cut(axis.extent, every[:, : k + 1]).largest for k in range(depth)]
        fits = np.all([size <= limit for size, limit in zip(sizes, most, strict=True)], axis=0)
        found = ways(axis, most)
        assert found is not None
        assert bool(len(found)) == bool(fits.any())
        if len(found):
            true = seen(axis, every[fits])
            below = (seen(axis, found)[:, :, None] <= true[:, None, :]).all(axis=0)
            assert below.any(axis=0).all(), (axis, most, every[fits][~below.any(axis=0)][0])
            several += len(found) > 1
    assert several > 5


def test_larger_pieces_than_are_needed_may_be_fewer_bursts() -> None:
    """14 rows of 112 bytes in bursts of 128, up to 9 at a time: 7 + 7 take 14, 8 + 6 take 7 + 6 = 13."""
    axis = Axis(Window(1, 1, 1, 0, 56), ((0, 14),), (0, 1), False, 112, (112,), 128)
    found = ways(axis, (9,))
    assert found is not None
    bursts = cut(14, found).partial_windows(56, 112, 128)
    assert sorted(zip(cut(14, found).largest.tolist(), bursts.tolist(), strict=True))[-2:] == [(7, 14), (8, 13)]


def test_too_many_places_are_not_looked_at() -> None:
    assert ways(Axis(Window(1, 1, 3, 1, 500), ((0, 500),), (1, 2), False, 1, (1,), 0), (200, 200)) is None


def test_channels_are_cut_for_two_operands_at_once() -> None:
    """14 channels of 6 pixels (12 bytes) and 4 filters (2 bytes each), bursts of 16 bytes of 40 ticks, a tick a byte.

    68 bytes hold 5 channels of IN, 108 bytes 13 of W. IN moves once, 168 bytes in 11 bursts at least: 4 channels take
    3 (48 bytes), 2 take 2. W takes a burst a filter for up to 8 channels. 7 + 7 channels of W would be 4 + 3 of IN, 12
    bursts; 8 + 6 are 4 + 4 and 4 + 2, so 11. With 3 bursts of OUT (48 bytes) 11 + 8 + 3 = 22 take 880 ticks, 168 + 112
    + 48 = 328 bytes as many, and 14 * 4 tiles of 6 pixels a cycle each of 40 ticks 2,240: 3,448.
    """
    layer = Layer.conv("x", channels=14, filters=4, size=(3, 2))
    machine = load_machine("nmp").model_copy(
        update={"problem": "tiling", "tles": 1, "tlts": 1, "in_buffer_bytes": 68, "w_buffer_bytes": 108}
        | {"out_buffer_bytes": 400}
        | {"transfer": Transfer(model="burst", burst_ticks=40, burst_bytes=16, byte_ticks=1)}
    )
    plan = decide_space(NESTS["tiling"].build(layer, machine, Pins()), ("time",))
    assert (plan.status, plan.values["time"], plan.bound) == ("OPTIMAL", 3_448, 3_448)
