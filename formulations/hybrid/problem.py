"""F7 hybrid as a formulation: what may be asked, by which engines, and the published techniques to compare with."""

from __future__ import annotations

from collections.abc import Sequence

from formulations.hybrid.heuristics import hybrid_paper, per_layer, pure_fusion
from formulations.hybrid.part import HybridPart
from formulations.hybrid.space import DECISIONS
from formulations.pins import Pins
from formulations.problem import Formulation
from hwmodels.hybrid.replay import HybridFigures
from hwmodels.hybrid.schedule import HybridRun
from instances.machine import Machine
from instances.network import Network


class HybridFormulation(Formulation[HybridRun]):
    """Which stages run together, piece by piece, in memory banks."""

    name = "hybrid"
    summary = "F7: which layers are fused, in pieces of which size, with a bank program for every piece"
    schedule = HybridRun
    figures = HybridFigures
    whole = True
    measures = {"bytes": "bytes", "time": "ticks"}  # noqa: RUF012
    decisions = DECISIONS
    engines = {  # noqa: RUF012
        "dynamic": "shortest path over cut points; groups searched as far as needed, programs as in banks",
        "milp": "chains of all options, each searched, with HiGHS: small networks, or few pieces by pins",
        "cp-sat": "the same with CP-SAT",
    }
    heuristics = {  # noqa: RUF012
        "per-layer": ("nothing is fused: the policy MIN, for time HIDE", per_layer),
        "pure-fusion": ("every block in pieces whose maps all fit on chip, as few as can be", pure_fusion),
        "hybrid-paper": ("as published: of every block the best number of pieces, by MIN, or HIDE", hybrid_paper),
    }  # fmt: skip
    quick = ("per-layer",)
    starts = ("hybrid-paper",)

    def read(
        self, network: Network, machine: Machine, pins: Pins, layers: Sequence[str] | None
    ) -> Sequence[HybridPart]:
        """Return the network."""
        return [HybridPart(network, machine, pins)]
