"""Vectors of all ways to cut a dimension without windows (Lemmas 1 and 2) against every way there is."""

from __future__ import annotations

import random
from itertools import accumulate, pairwise

import numpy as np
import pytest

from formulations.tiling.chains import even_steps, grid
from formulations.tiling.entries import entry
from formulations.tiling.vectors import attained, fewest_pieces, rounds, vectors
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.pieces import cut, ended_rounds
from hwmodels.nest.price.relaxed import Vectors, packed, unpacked
from tests.effort import tries


def compositions(number: int) -> list[list[int]]:
    """All lists of positive integers with this sum."""
    return [[first, *rest] for first in range(1, number + 1) for rest in compositions(number - first)] or [[]]


def every_vector(extent: int, lanes: int, depth: int) -> set[tuple[int, ...]]:
    """Of every way to cut: groups, the largest, pieces, the largest, rounds."""
    found = set()
    for pieces in compositions(extent):
        inner = (len(pieces), max(pieces), sum(-(-x // lanes) for x in pieces))
        for numbers in compositions(len(pieces)) if depth == 2 else ():
            groups = [sum(pieces[a:b]) for a, b in pairwise((0, *accumulate(numbers)))]
            found.add((len(groups), max(groups), *inner))
        if depth == 1:
            found.add(inner)
    return found


def figures(chains: Ints) -> Ints:
    """The vectors (K, T) of chains of packed entries."""
    sizes = [x for k in range(chains.shape[1]) for x in unpacked(chains[:, k])[:2]]
    return np.stack([*sizes, unpacked(chains[:, -1])[2]])


@pytest.mark.parametrize("extent", range(1, tries(9, 12)))
@pytest.mark.parametrize("depth", [1, 2])
def test_no_way_to_cut_is_missed_and_every_vector_is_attained(extent: int, depth: int) -> None:
    even = even_steps((extent,), np.arange(1, extent + 1))
    for lanes in (1, 2, 3, 4, 5):
        found = vectors(extent, lanes, even[:, None] if depth == 1 else grid(even, even, 2))
        least, true = figures(found), np.array(sorted(every_vector(extent, lanes, depth))).T
        below = (least[:, :, None] <= true[:, None, :]).all(axis=0)
        assert below.any(axis=0).all(), (lanes, true[:, ~below.any(axis=0)])
        for vector, row in zip(least.T, found, strict=True):
            chain = attained(extent, lanes, tuple(map(int, row)))
            assert chain is not None
            made = np.array([chain])
            levels = [cut(extent, made[:, : k + 1]) for k in range(depth)]
            got = [int(x[0]) for one in levels for x in (one.number, one.largest)]
            assert [*got, int(levels[-1].ceil_sum(lanes)[0])] <= vector.tolist()
            assert tuple(vector.tolist()) in set(map(tuple, true.T.tolist()))


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_pieces_of_a_vector_are_those_of_its_way_to_cut(lanes: int) -> None:
    for pieces in compositions(7):
        ends = np.array([[entry(tuple(accumulate(pieces)))]])
        true, rounds_ = cut(7, ends), sum(-(-x // lanes) for x in pieces)
        made = Vectors(7, packed(*(np.array([x]) for x in (len(pieces), max(pieces), rounds_))))
        for of in (lambda one: one.number, lambda one: one.largest, lambda one: one.full(7), lambda one: one.partial(7),
                   lambda one: one.sum, lambda one: one.ceil_sum(lanes), lambda one: one.ceil_sum(1)):  # fmt: skip
            assert int(of(made)[0]) == int(of(true)[0]), pieces


def test_a_class_holds_the_sizes_that_make_as_few_pieces() -> None:
    """Of 10 in two pieces the largest has 5 to 9; on 4 lanes 5 + 5 take 4 rounds, 6 + 4 three, as do 4 + 4 + 2."""
    assert figures(vectors(10, 4, np.array([[5]]))).T.tolist() == [[2, 5, 4], [3, 5, 3], [2, 6, 3]]


def test_lanes_by_hand() -> None:
    """128 filters in 3 pieces of at most 43 on 16 lanes take 9 rounds: 3 pieces of 32 leave 32, in 3 rests of 11."""
    assert rounds(128, np.array([3]), np.array([43]), 16).tolist() == [9]
    assert rounds(128, np.array([3]), np.array([48]), 16).tolist() == [8]


def test_rounds_of_pieces_whose_ends_are_known_by_hand() -> None:
    """192 filters in 5 pieces on 16 lanes, 7 first: one round for these, 12 for the other 185: 13, and not 12.

    Of 64 in 3 pieces of at most 30 with 2 first the last has 30 at most, so 32 are left for one piece: there is no cut.
    """
    ranges = [(5, 5), (1, 50), (7, 7), (1, 50)], [(5, 5), (1, 50), (1, 50), (1, 50)], [(3, 3), (1, 30), (2, 2), (1, 30)]
    seven, free, none = ([[np.array([x]) for x in pair] for pair in one] for one in ranges)
    assert ended_rounds(192, 16, *seven).tolist() == [13]
    assert ended_rounds(192, 16, *free).tolist() == [12]
    assert ended_rounds(64, 16, *none)[0] > 4


@pytest.mark.parametrize("lanes", [1, 2, 3, 4])
def test_rounds_of_pieces_whose_ends_are_known_against_all_cuts(lanes: int) -> None:
    # Random ranges of numbers, sizes and ends of 9: no cut takes fewer rounds, and mostly one takes as many.
    rng, met, tried = random.Random(lanes), 0, 0
    every = [(len(x), max(x), x[0], x[-1], sum(-(-y // lanes) for y in x)) for x in compositions(9)]
    for _ in range(2000):
        ranges = [tuple(sorted((rng.randint(1, most), rng.randint(1, most)))) for most in (4, 9, 9, 9)]
        taken = [
            x[4] for x in every if all(low <= y <= high for y, (low, high) in zip(x[:4], ranges, strict=True))
        ]  # fmt: skip
        if not taken:
            continue
        least = int(ended_rounds(9, lanes, *([np.array([x]) for x in pair] for pair in ranges))[0])
        assert least <= min(taken), (ranges, least, min(taken))
        met, tried = met + (least == min(taken)), tried + 1
    assert met > 0.7 * tried > 100


def test_two_loops_by_hand() -> None:
    """1,024 in 18 groups of at most 57: each has 3 pieces of 16 and one of at most 9, so 72 pieces and not 64."""
    one = fewest_pieces(1024, np.array([18, 18, 22]), np.array([57, 64, 48]), np.array([16]))
    assert one.tolist() == [72, 64, 64]
