"""Heuristics: the largest tile that fits, the DMA paper's fill-the-memory rule, and what slicing's paper does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formulations.tiling.branch import Branch, lower_bounds
from formulations.tiling.pick import Pick, stages, vector
from formulations.tiling.search import Search, best_pick
from formulations.tiling.space import Space
from hwmodels.nest.choices import Q_DIMS, S_DIMS
from hwmodels.nest.homes import repriced
from hwmodels.nest.price import price
from hwmodels.schedule import Nest
from instances.machine import Machine


def largest_tile(space: Space, wanted: tuple[str, ...]) -> Pick | None:
    """For every order of uniform Holds the largest tile (in multiply-accumulates) that fits; of these the best plan."""
    picks = []
    for branch in space.uniform().branches:
        volume = np.multiply.outer(_volume(branch, S_DIMS), _volume(branch, Q_DIMS))
        picks.append(_first(branch, np.where(branch.feasible(), volume, -1)))
    found = [p for p in picks if p is not None]
    return min(found, key=lambda p: vector(p.measures, wanted), default=None)


def fullest_memory(space: Space, wanted: tuple[str, ...]) -> Pick | None:
    """The tile that fills the most of the on-chip memory, as the DMA paper's naive setting (section 6.1) aims at.

    The first branch is used as it comes (no order or dataflow is compared), ties go to the smallest sizes.
    """
    for branch in space.uniform().branches:
        taken = sum((table.matrix() for _, table, _ in branch.capacity), np.zeros(branch.choices.shape))
        pick = _first(branch, np.where(branch.feasible(), taken, -1))
        if pick is not None:
            return pick
    return None


def first_fit(space: Space, wanted: tuple[str, ...]) -> Pick | None:
    """The best plan among few tile sizes (extents halved again and again) of one depth for all Holds, else of others.

    Example: 95 layers and a limit of 1 s. Each takes some hundredths of a second here.
    """
    first = stages(wanted, space.machine)[0]
    found = (Search(one, wanted, deadline=0.0).first(first) for one in (space.uniform(), space))
    return next((pick for pick in found if pick is not None), None)


def _volume(branch: Branch, dims: tuple[str, ...]) -> NDArray[np.float64]:
    volume: NDArray[np.float64] = np.prod([branch.choices.values(d).astype(np.float64) for d in dims], axis=0)
    return volume


def _first(branch: Branch, score: NDArray[np.float64]) -> Pick | None:
    if not score.size or score.max() < 0:
        return None
    s, q = (int(i) for i in np.unravel_index(int(score.argmax()), score.shape))
    return Pick(branch, s, q, branch.measures(s, q))


# ---- slicing's paper -------------------------------------------------------------------------------------------------


def noburst_ties(space: Space, *, worst: bool = False) -> tuple[Nest, Nest | None] | None:
    """Return the quickest of the plans that are best if bursts were free, and with `worst` the slowest one.

    Returns None if no plan fits. The slowest one is looked for among the candidates for the real price, all of them:
    only for small spaces such as the paper's (``holds=uniform``).
    """
    blind = _blind(space.machine)
    pick, _ = best_pick(space.build(blind, space.pins), ("time",))
    if pick is None:
        return None
    least, first = pick.measures["time"], price(space.layer, space.machine, pick.nest).time_ticks
    best, slow = (first, pick.nest), (first, pick.nest)
    for ticks, nest in _ties(space, blind, least, None if worst else first):
        best, slow = min(best, (ticks, nest), key=lambda one: one[0]), max(slow, (ticks, nest), key=lambda one: one[0])
    return best[1], slow[1] if worst else None


def _blind(machine: Machine) -> Machine:
    return repriced(machine, burst_ticks=0)


def _ties(space: Space, blind: Machine, least: int, most: int | None) -> Iterator[tuple[int, Nest]]:
    """By member the quickest and the slowest candidate (ticks, nest) that take `least` ticks if bursts were free.

    `most` leaves out the candidates that take more with bursts.
    """
    for member in space.members:
        real = member.branch(("time",), None if most is None else {"time": most})
        if real.empty:
            continue
        volume = replace(member, machine=blind).priced(real.choices, ("time",))
        s, q = (np.flatnonzero(lower_bounds(volume.time, side) <= least) for side in "sq")
        if not len(s) or not len(q):
            continue
        real, volume = real.take(s, q), volume.take(s, q)
        tied = volume.feasible() & (np.max([t.matrix() for t in volume.time], axis=0) <= least)
        if tied.any():
            ticks = np.max([t.matrix() for t in real.time], axis=0)
            for at in (np.where(tied, ticks, np.inf).argmin(), np.where(tied, ticks, -1).argmax()):
                row, column = divmod(int(at), ticks.shape[1])
                yield int(ticks[row, column]), real.nest(row, column)
