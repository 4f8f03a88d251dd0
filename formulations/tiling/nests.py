"""The spaces of nests that layers by themselves are planned in: one core, or clusters of cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from formulations import problem
from formulations.pins import Decision, Pins
from formulations.problem import Goal
from formulations.tiling import problem as tiling
from formulations.tiling import slicing
from formulations.tiling.heuristics import first_fit, fullest_memory, largest_tile, noburst_ties
from formulations.tiling.part import Builder, NestFigures, NestPart
from formulations.tiling.pick import Pick, complete
from formulations.tiling.space import Space
from hwmodels.outcome import MEASURES
from hwmodels.schedule import Nest
from instances.machine import Machine
from instances.network import Network
from instances.workload import Layer

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
        """Return the layers by themselves: every conv and matmul layer, or those named."""
        picked = network.conv_layers if layers is None else [network.layer(name) for name in layers]
        return [NestPart(layer, machine, self.build, pins) for layer in picked]


TILING = Nests(
    "tiling", "F1: tile sizes and loop order of a layer on one core", tiling.DECISIONS, tiling.build, _HEURISTICS
)
SLICING = Nests(
    "slicing",
    "F2: partition x dataflow x tile sizes of a layer on clusters of cores",
    slicing.DECISIONS,
    slicing.build,
    {**_HEURISTICS, **_OF_SLICING},
)
#: The spaces of nests, by name.
NESTS = {space.name: space for space in (TILING, SLICING)}
