"""The spaces of nests that layers by themselves are planned in: one core, or clusters of cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from formulations import problem
from formulations.pins import Decision, Pins
from formulations.tiling import problem as tiling
from formulations.tiling import slicing
from formulations.tiling.part import Builder, NestPart
from hwmodels.outcome import MEASURES
from hwmodels.schedule import Nest
from instances.machine import Machine
from instances.network import Network


class Nests(problem.Formulation[Nest]):
    """A decision problem about the nest of one layer: what it decides and how to build its space.

    Its engines search spaces in their own order (`solver.engines`).
    """

    schedule = Nest
    measures = MEASURES
    engines: Mapping[str, str] = {}

    def __init__(self, name: str, summary: str, decisions: Mapping[str, Decision], build: Builder) -> None:
        self.name, self.summary, self.decisions, self.build = name, summary, decisions, build

    def read(self, network: Network, machine: Machine, pins: Pins, layers: Sequence[str] | None) -> list[NestPart]:
        """Return the layers by themselves: every conv and matmul layer, or those named."""
        picked = network.conv_layers if layers is None else [network.layer(name) for name in layers]
        return [NestPart(layer, machine, self.build, pins) for layer in picked]


TILING = Nests("tiling", "F1: tile sizes and loop order of a layer on one core", tiling.DECISIONS, tiling.build)
SLICING = Nests(
    "slicing",
    "F2: partition x dataflow x tile sizes of a layer on clusters of cores",
    slicing.DECISIONS,
    slicing.build,
)
