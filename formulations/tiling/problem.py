"""Tiling and slicing as certile asks them: engines, heuristics, pins, and the spaces of nests of either.

The models are in `formulations.tiling.tiling` (one core) and `formulations.tiling.slicing` (clusters of cores).
Heuristics: the largest tile that fits, the DMA paper's fill-the-memory rule, and what slicing's paper does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations import problem
from formulations.pins import Decision, Pins
from formulations.problem import Goal
from formulations.tiling import slicing, tiling
from formulations.tiling.branch import Branch, lower_bounds
from formulations.tiling.part import Builder, NestFigures, NestPart
from formulations.tiling.search import Search, best_pick
from formulations.tiling.space import Pick, Space, complete, stages, vector
from hwmodels.nest.homes import repriced
from hwmodels.nest.price.choices import Q_DIMS, S_DIMS
from hwmodels.nest.price.closed_form import price
from hwmodels.outcome import MEASURES
from hwmodels.schedule import Nest
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.workload import Layer


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
    blind = repriced(space.machine, burst_ticks=0)
    pick, _ = best_pick(space.build(blind, space.pins), ("time",))
    if pick is None:
        return None
    least, first = pick.measures["time"], price(space.layer, space.machine, pick.nest).time_ticks
    best, slow = (first, pick.nest), (first, pick.nest)
    for ticks, nest in _ties(space, blind, least, None if worst else first):
        best, slow = min(best, (ticks, nest), key=lambda one: one[0]), max(slow, (ticks, nest), key=lambda one: one[0])
    return best[1], slow[1] if worst else None


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


#: Finds a plan of a space for measures in their order.
Guess = Callable[[Space, tuple[str, ...]], Pick | Nest | None]
Heuristic = tuple[str, Callable[[Any, Goal], Nest | None]]


def _guessed(guess: Guess, part: NestPart, goal: Goal) -> Nest | None:
    """What a heuristic finds."""
    found = guess(part.space, complete(goal.objectives or (goal.measure,)))
    nest = found.nest if isinstance(found, Pick) else found
    return None if nest is None else part.at_home(nest)


def _without_bursts(space: Space, _: tuple[str, ...]) -> Nest | None:
    """TSO-noburst (`tso_burst_slicing` Alg. 4, lines 12-13): the best plan if bursts were free, at its real price.

    Many plans tie under the volume model. Of these the one that takes the least time with bursts is returned: what is
    left of the difference to the optimum is due to the model alone.
    """
    return (noburst_ties(space) or (None,))[0]


_HEURISTICS: dict[str, Heuristic] = {
    "greedy": ("the largest tile that fits, with the best order or dataflow for it", partial(_guessed, largest_tile)),
    "naive": ("fill the on-chip memory (DMA paper, section 6.1)", partial(_guessed, fullest_memory)),
    "first-fit": ("the first plan that fits among few tile sizes, in no time", partial(_guessed, first_fit)),
}
_OF_SLICING: dict[str, Heuristic] = {
    "tso-noburst": ("the best plan if bursts were free (TSO-noburst)", partial(_guessed, _without_bursts))
}


class Nests(problem.Formulation[Nest]):
    """A decision problem about the nest of one layer: what it decides and how to build its space."""

    schedule, figures, target = Nest, NestFigures, tuple[Layer, ...]
    measures, ties = MEASURES, tuple(MEASURES)
    engines = {  # noqa: RUF012
        "exhaustive": "every candidate, vectorised; fastest for one layer, and the oracle of the others",
        "cp-sat": "CP-SAT (ortools), one model per branch",
        "milp": "MILP, perspective formulation, solved by HiGHS",
        "milp-cbc": "the same MILP solved by the CBC that PuLP carries",
    }
    quick = ("first-fit",)
    floors = halves = False

    def __init__(
        self, name: str, summary: str, decisions: Mapping[str, Decision], build: Builder,
        heuristics: Mapping[str, Heuristic],
    ) -> None:  # fmt: skip
        self.name, self.summary, self.decisions, self.build = name, summary, decisions, build
        self.heuristics = heuristics
        self.libraries = dict.fromkeys(("exhaustive", *heuristics), "numpy")

    def read(self, network: Network, machine: Machine, pins: Pins, layers: Sequence[str] | None) -> list[NestPart]:
        """Return the layers by themselves: every conv and matmul layer, or those named.

        The protocol asks for it; a solve reads them in `solver.problems.tiling.prepare`, which knows homes and kinds.
        """
        picked = network.conv_layers if layers is None else [network.layer(name) for name in layers]
        return [NestPart(layer, machine, self.build, pins) for layer in picked]


TILING = Nests(
    "tiling", "tile sizes and loop order of a layer on one core", tiling.DECISIONS, tiling.build, _HEURISTICS
)
SLICING = Nests(
    "slicing",
    "partition x dataflow x tile sizes of a layer on clusters of cores",
    slicing.DECISIONS,
    slicing.build,
    {**_HEURISTICS, **_OF_SLICING},
)
#: The spaces of nests, by name.
NESTS = {space.name: space for space in (TILING, SLICING)}
