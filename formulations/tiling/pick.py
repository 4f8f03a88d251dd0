"""Plans of a space as searches compare them: by the measures asked for, then by all others."""

from __future__ import annotations

from dataclasses import dataclass

from formulations.tiling.bounds import stage_of
from formulations.tiling.branch import Branch
from hwmodels.outcome import MEASURES
from hwmodels.schedule import Nest
from instances.machine.machine import Machine


@dataclass(frozen=True)
class Pick:
    """One plan of a space: a branch, a spatial and a channel choice, with its exact measures.

    `order` is its nest with loops between Holds in another order, where that counts (`formulations.tiling.turns`).
    """

    branch: Branch
    s: int
    q: int
    measures: dict[str, int]
    order: Nest | None = None

    @property
    def nest(self) -> Nest:
        """The nest of the plan."""
        return self.order or self.branch.nest(self.s, self.q)


def complete(objectives: tuple[str, ...]) -> tuple[str, ...]:
    """Append the measures not named, in the fixed order that breaks ties."""
    return (*objectives, *(m for m in MEASURES if m not in objectives))


def aims(objectives: tuple[str, ...], machine: Machine) -> tuple[str, ...]:
    """The measures to prove for these objectives, by `stage_of`."""
    return tuple(dict.fromkeys(stage_of(m, machine) for m in objectives))


def stages(objectives: tuple[str, ...], machine: Machine) -> tuple[str, ...]:
    """The measures to settle one after the other."""
    return aims(complete(objectives), machine)


def vector(measures: dict[str, int], objectives: tuple[str, ...]) -> tuple[int, ...]:
    """The full objective vector of a plan."""
    return tuple(measures[m] for m in complete(objectives))
