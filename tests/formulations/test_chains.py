"""Candidate chains: by hand, and complete in the sense of their claims, checked against the whole grid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.pareto import pareto
from formulations.tiling.chains import Edge, cheapest, divisors, even_steps, grid, undominated
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.pieces import Window, cut, windows
from tests.effort import tries


def every(extent: int) -> Ints:
    return np.arange(1, extent + 1, dtype=np.int64)


def pairs(chains: Ints) -> set[tuple[int, ...]]:
    return {tuple(int(t) for t in chain) for chain in chains}


def test_small_lists_by_hand() -> None:
    assert divisors(12).tolist() == [1, 2, 3, 4, 6, 12]
    # 7 in 7, 4, 3, 2 pieces of 1, 2, 3 (3 + 3 + 1), 4 (4 + 3), 1 piece of 7; 5 and 6 make 2 pieces as 4 does
    assert even_steps((7,), every(7)).tolist() == [1, 2, 3, 4, 7]
    # on cores with 7 and 6 a step of 6 leaves the second one whole
    assert even_steps((7, 6), every(7)).tolist() == [1, 2, 3, 4, 6, 7]
    assert pairs(grid(every(3), every(3), 2)) == {(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)}
    assert grid(every(3), np.array([2]), 1).tolist() == [[2]]
    assert pairs(cheapest((4,), every(4), every(4), 2)) == {(1, 1), (2, 2), (4, 4), (2, 1), (4, 1)}
    assert cheapest((4,), every(4), np.array([2, 3]), 1).tolist() == [[2]]


def test_a_longer_step_that_saves_a_piece_of_the_next_loop_is_kept() -> None:
    # 10 by 5 then 3: 3 + 2, 3 + 2: 4 pieces. 10 by 6 then 4: 4 + 2, 4: 3 pieces. Both make 2 pieces of the first loop.
    assert {(5, 3), (6, 4)} <= pairs(undominated((10,), every(10), every(10), 2))
    # 11 by 6 then 5: 5 + 1, 5: 3 pieces; 11 by 7 then 5 makes as many with a longer first step
    assert (6, 5) in pairs(undominated((11,), every(11), every(11), 2))
    assert (7, 5) not in pairs(undominated((11,), every(11), every(11), 2))


@given(st.integers(1, 20), st.sampled_from([0, 2, 3, 4]), st.booleans())
def test_every_chain_has_one_at_or_below_it(extent: int, lanes: int, skipping: bool) -> None:
    kept = undominated((extent,), every(extent), every(extent), 2, lanes=lanes, skipping=skipping)
    everything = grid(every(extent), every(extent), 2)

    def features(chains: Ints) -> Ints:
        once, twice = cut(extent, chains[:, :1]), cut(extent, chains)
        rows = [chains[:, 0], chains[:, 1], once.number, twice.number, twice.ceil_sum(max(1, lanes))]
        return np.stack([*rows, -once.number, -twice.number] if skipping else rows)

    mine, all_ = features(kept), features(everything)
    for column in all_.T:
        assert (mine <= column[:, None]).all(axis=0).any()


@settings(max_examples=tries(37, 150))
@given(st.data())
def test_no_padding_hides_a_smaller_tile_or_fewer_rows(data: st.DataObject) -> None:
    """For any padding up to the reach: what a chain fetches at both levels, slid or not, some kept chain undercuts."""
    stride, taps = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 5))
    extent = data.draw(st.integers(1, 14))
    pad, below = (data.draw(st.integers(0, taps - 1)) for _ in range(2))
    size = (extent - 1) * stride + taps - pad - below
    if size < 1 or (extent - 1) * stride - pad >= size:
        return
    window = Window(stride, 1, taps, pad, size)
    before, behind = window.clipping(0, extent)
    beyond = max(before, behind) > stride or before > behind
    edge = Edge(
        max(0, (before - 1) // stride), behind // stride, (window,) if beyond else (), ((0, extent),),
        before - behind > stride,
    )  # fmt: skip
    kept = undominated((extent,), every(extent), every(extent), 2, skipping=window.reach < stride, edge=edge)
    whole = np.zeros((1, 0), np.int64)

    def features(chains: Ints) -> Ints:
        rows = [chains[:, 0], chains[:, 1], cut(extent, chains[:, :1]).number, cut(extent, chains).number]
        for level in (1, 2):
            for slide in ("", "outer"):
                found = windows(0, extent, chains[:, :level], whole, window, slide)
                rows += [found.sum, found.number]
            rows.append(windows(0, extent, chains[:, :level], whole, window).largest)
        return np.stack(rows)

    mine, all_ = features(kept), features(grid(every(extent), every(extent), 2))
    for column in all_.T:
        assert (mine <= column[:, None]).all(axis=0).any()


def test_nothing_allowed_gives_nothing() -> None:
    none = np.zeros(0, np.int64)
    assert undominated((4,), every(4), none, 2).shape == (0, 2)
    assert cheapest((4,), every(4), none, 1).shape == (0, 1)


@pytest.mark.parametrize("count", [1, 3, 300])
def test_pareto_keeps_exactly_the_undominated(count: int) -> None:
    features = np.random.default_rng(7).integers(0, 6, (3, count))
    kept = set(pareto(features).tolist())
    for k in range(count):
        below = [j for j in range(count) if (features[:, j] <= features[:, k]).all()]
        better = [j for j in below if (features[:, j] < features[:, k]).any()]
        assert (k in kept) == (not better and min(below) == k)
    assert pareto(features[:0]).tolist() == [0]
