"""Mesh as a formulation: what may be asked, by which engines, and heuristics to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from formulations.clock import TimeUp
from formulations.mesh.finish import hand
from formulations.mesh.part import MeshPart
from formulations.mesh.price import DECISIONS, MEASURES, check_pins
from formulations.pins import Pins
from formulations.problem import Formulation, Goal, Unable
from hwmodels.schedule import MeshLayout
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.network import Network


def _hand(part: MeshPart, goal: Goal) -> MeshLayout | None:
    """The paper's tile, by hand; pins and caps are not for it."""
    if goal.caps:
        return None
    if part.mesh.kind != "teu" or part.pins.pins:
        raise Unable("a mesh without pins is needed")
    choice = hand(part.layer, part.machine)
    made = part.complete(choice, goal) or part.complete(choice, Goal("dram"))
    return made if made is not None and part.keeps(made, goal) else None


def _unshared(part: MeshPart, goal: Goal) -> MeshLayout | None:
    """The best plan where every unit fetches for itself."""
    if not part.pins.allows("share", "none"):
        raise Unable("pins demand sharing")
    best: MeshLayout | None = None
    for piece in part.pinned(part.pins.plus("share", "none")).pieces(goal):
        below = None if best is None else part.price(best).measures[goal.measure]
        try:
            best = piece.exact(replace(goal, below=below), "")[0] or best
        except TimeUp:
            break
    return best


class MeshFormulation(Formulation[MeshLayout]):
    """Layers on a mesh of tile units, or an array."""

    name = "mesh"
    summary = "tiles, sides, PE vectors and bank layouts of layers on a mesh of tile units, or an array"
    schedule = MeshLayout
    measures = MEASURES
    decisions = DECISIONS
    engines = {  # noqa: RUF012
        "auto": "the fastest exact engine: exhaustive",
        "exhaustive": "all pairs of options that may beat the best plan",
        "milp": "flows over pairs of options with HiGHS",
        "milp-cbc": "flows over pairs of options with CBC",
        "cp-sat": "products of options with CP-SAT",
    }
    heuristics = {  # noqa: RUF012
        "greedy": ("index by index what is best, from the smallest tile", MeshPart.greedy),
        "hand": ("a tile as the source chooses it by hand", _hand),
        "no-sharing": ("the optimum without FIFOs", _unshared),
    }
    starts = ("greedy",)
    quick = ("greedy", "hand")
    floors = False

    def read(self, network: Network, machine: Machine, pins: Pins, layers: Sequence[str] | None) -> Sequence[MeshPart]:
        """Return the layers that multiply, matching of maps too, or those named."""
        check_pins(pins, machine)
        found = [network.layer(name) for name in layers or ()]
        found = found or [layer for layer in network.layers if layer.weights != "none"]
        if not found:
            raise InputError(f"network {network.name}: no layers that multiply")
        return [MeshPart(layer, machine, pins) for layer in found]
