"""Spaces of nests, by name, and the formulations whose plans need no form of their own: a line each."""

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

__all__ = ["NESTS", "FORMULATIONS", "Builder", "Nests"]


class Builder(Protocol):
    """Builds the space of one layer on one machine; `full` leaves out the candidate reduction."""

    def __call__(self, layer: Layer, machine: Machine, pins: Pins, *, full: bool = False) -> Space:
        """Build the space; raises InputError where layer, machine or pins do not fit the problem."""
        ...


@dataclass(frozen=True)
class Nests:
    """A decision problem about the nest of one layer: what it decides and how to build its space."""

    name: str
    summary: str
    decisions: Mapping[str, Decision]
    build: Builder


NESTS: dict[str, Nests] = {
    "tiling": Nests("tiling", "F1: tile sizes and loop order of a layer on one core", tiling.DECISIONS, tiling.build),
    "slicing": Nests(
        "slicing",
        "F2: partition x dataflow x tile sizes of a layer on clusters of cores",
        slicing.DECISIONS,
        slicing.build,
    ),
}

#: Those that are a folder and a line here, and nothing else.
FORMULATIONS: tuple[problem.Formulation[Any], ...] = ()
