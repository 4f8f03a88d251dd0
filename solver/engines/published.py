"""Published heuristics, named after their papers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from formulations.tiling.branch import lower_bounds
from formulations.tiling.space import Space
from hwmodels.nest.homes import repriced
from hwmodels.nest.price import price
from hwmodels.schedule import Nest
from instances.machine import Machine
from solver.engines.base import EngineResult, Limits, guessed
from solver.engines.exhaustive import best_pick


def run_tso_noburst(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """TSO-noburst (`tso_burst_slicing` Alg. 4, lines 12-13): the best plan if bursts were free, at its real price.

    Many plans tie under the volume model. Of these the one that takes the least time with bursts is returned: what is
    left of the difference to the optimum is due to the model alone.
    """
    return guessed(space, lambda: (noburst_ties(space) or (None,))[0])


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
