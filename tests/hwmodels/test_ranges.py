"""Ranges of numbers and sizes of pieces: what is tightened holds all nests that a class held."""

from __future__ import annotations

import random
from dataclasses import fields
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.price.hidden import Hidden
from hwmodels.nest.price.ranges import Ranges
from hwmodels.nest.price.skeleton import cores, skeleton_of
from hwmodels.schedule import Hold, Loop, Nest
from instances.network.workload import Layer
from tests.small import machine

EXTENT = 9


def told(cuts: list[int]) -> list[int]:
    """How many pieces, the largest, the first and the last."""
    sizes = np.diff([0, *cuts, EXTENT])
    return [len(sizes), int(sizes.max()), int(sizes[0]), int(sizes[-1])]


def every() -> NDArray[np.int64]:
    """All ways to cut with two loops (4, 2, 3^8): a place is cut by the outer one, the inner one or neither."""
    found = list[list[list[int]]]()
    for by in product(range(3), repeat=EXTENT - 1):
        outer, all_ = ([x + 1 for x, loop in enumerate(by) if loop in some] for some in ((1,), (1, 2)))
        found.append([told(outer), told(all_)])
    return np.array(found, np.int64).transpose(2, 1, 0)


def inside(one: Ranges, nests: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which nests a class says are in it."""
    held = [(below <= nests[k]) & (nests[k] <= above) for k, (below, above) in enumerate(one.pairs)]
    cuts = np.stack([nests[0, 0] > 1, nests[0, 1] > nests[0, 0]])
    flags = (one.cuts <= cuts) & (cuts <= one.cuts_most)
    return np.all([*held, flags], axis=(0, 1))


def test_tightened_classes_hold_the_same_nests() -> None:
    # Ranges around one way to cut, of some quantities and up to all; tightened twice, as classes that are split are.
    layer = Layer.conv("x", channels=EXTENT, filters=1, size=(1, 1))
    nest = Nest((Loop("n", 3), Hold("IN"), Loop("n", 1), Hold("W"), Hold("OUT")))
    (core,) = cores(layer, ())
    hidden = Hidden(layer, machine(ocm_bytes=10**4), skeleton_of(layer, nest), core, None)
    nests, rng, excluded = every(), random.Random(3), 0
    for _ in range(800):
        known, spread = nests[:, :, rng.randrange(nests.shape[2])], rng.choice((0, 1, 2))
        rows = [
            [bound for k in range(4) for bound in around(rng, int(known[k, loop]), spread)] for loop in range(2)
        ]  # fmt: skip
        table = np.array(rows, np.int64)
        one = Ranges.of(*(table[:, k : k + 1].copy() for k in range(8)))
        some, fits = hidden.tightened(one)
        again, still = hidden.tightened(some)
        held = inside(one, nests)
        assert fits.all()
        assert still.all()
        for tighter in (some, again):
            assert (inside(tighter, nests) == held).all(), (rows, [getattr(tighter, f.name).T for f in fields(tighter)])
        excluded += int(spread and not np.array_equal(some.pairs, one.pairs))
    assert excluded > 300


def around(rng: random.Random, known: int, spread: int) -> tuple[int, int]:
    """From and up to, around what is known."""
    if rng.random() < 0.2:
        return 1, EXTENT
    return max(1, known - rng.randint(0, spread)), min(EXTENT, known + rng.randint(0, spread))
