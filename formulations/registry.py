"""The formulations, by name: spaces of nests, and those that implement `formulations.problem`, a line each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from formulations import problem
from formulations.pins import Decision, Pins
from formulations.tiling import problem as tiling
from formulations.tiling import slicing
from formulations.tiling.space import Space
from instances.machine import Machine
from instances.workload import Layer

__all__ = ["FORMULATIONS", "PROBLEMS", "Builder", "Formulation"]


class Builder(Protocol):
    """Builds the space of one layer on one machine; `full` leaves out the candidate reduction."""

    def __call__(self, layer: Layer, machine: Machine, pins: Pins, *, full: bool = False) -> Space:
        """Build the space; raises InputError where layer, machine or pins do not fit the problem."""
        ...


@dataclass(frozen=True)
class Formulation:
    """One decision problem: what it decides and how to build its space."""

    name: str
    summary: str
    decisions: Mapping[str, Decision]
    build: Builder


FORMULATIONS: dict[str, Formulation] = {
    "tiling": Formulation(
        "tiling", "F1: tile sizes and loop order of a layer on one core", tiling.DECISIONS, tiling.build
    ),
    "slicing": Formulation(
        "slicing",
        "F2: partition x dataflow x tile sizes of a layer on clusters of cores",
        slicing.DECISIONS,
        slicing.build,
    ),
}

#: Those that are a folder and a line here, and nothing else.
PROBLEMS: tuple[problem.Formulation[Any], ...] = ()
