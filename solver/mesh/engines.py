"""Engines for the problem ``mesh``: one layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from formulations.mesh.finish import hand
from formulations.mesh.problem import SHARES
from formulations.mesh.search import Halves, best_pair
from solver.mesh.base import Answer, Asked, Decided, doubling, heuristic, restricted, searched

__all__ = ["HASTE", "MESH_ENGINES", "MeshEngine"]


@dataclass(frozen=True)
class MeshEngine:
    """A way to decide."""

    name: str
    summary: str
    proves: bool
    run: Callable[[Asked], Decided]


def _milp(asked: Asked) -> Decided:
    from solver.engines import mesh_milp  # late: the engines' package imports every solver

    return mesh_milp.run(asked)


def _cbc(asked: Asked) -> Decided:
    from solver.engines import mesh_milp

    return mesh_milp.run(asked, solver="cbc")


def _cp_sat(asked: Asked) -> Decided:
    from solver.engines import mesh_cp_sat

    return mesh_cp_sat.run(asked)


def _every_pair(found: Halves, measure: str) -> Answer:
    pair, value, done = best_pair(found, measure)
    return Answer(pair, value if done else None, empty=done and pair is None)


def _exhaustive(asked: Asked) -> Decided:
    return searched(asked, _every_pair)


def _greedy(asked: Asked) -> Decided:
    return _unproven(asked, heuristic(asked.started()))


def _unproven(asked: Asked, made: tuple[object, object] | None) -> Decided:
    from formulations.mesh.layout import Layout
    from formulations.mesh.problem import Choice

    if made is None or not isinstance(made[0], Choice) or not isinstance(made[1], Layout | None):
        return Decided(None, None, None, None, "NO_SOLUTION_FOUND")
    return Decided(made[0], made[1], asked.value(made[0]), None, "FEASIBLE")


def _hand(asked: Asked) -> Decided:
    """The paper's tile, by hand; pins and limits are not for it."""
    if not asked.teu or asked.pins.pins or asked.limits:
        return Decided(None, None, None, None, "NO_SOLUTION_FOUND", stats={"note": "a mesh without pins is needed"})
    choice = hand(asked.layer, asked.machine)
    made = asked.complete(choice) if asked.lanes else None
    made = made or Asked(asked.layer, asked.machine, "dram").complete(choice)
    return _unproven(asked, made if made is not None and asked.keeps(made[0]) else None)


def _no_sharing(asked: Asked) -> Decided:
    """Every unit fetches for itself: the optimum of that."""
    if not asked.pins.allows("share", "none"):
        return Decided(None, None, None, None, "NO_SOLUTION_FOUND", stats={"note": "pins demand sharing"})
    pins = asked.pins
    for share in SHARES:
        if share == "none":
            pins = pins.plus("share", share)
    return restricted(asked, pins, "no_sharing", _exhaustive)


MESH_ENGINES: dict[str, MeshEngine] = {
    engine.name: engine
    for engine in (
        MeshEngine("auto", "the fastest exact engine: exhaustive", True, _exhaustive),
        MeshEngine("exhaustive", "all pairs of options that may beat the best plan", True, _exhaustive),
        MeshEngine("milp", "flows over pairs of options with HiGHS", True, _milp),
        MeshEngine("milp-cbc", "flows over pairs of options with CBC", True, _cbc),
        MeshEngine("cp-sat", "products of options with CP-SAT", True, _cp_sat),
        MeshEngine("greedy", "index by index what is best, from the smallest tile", False, _greedy),
        MeshEngine("hand", "a tile as the source chooses it by hand", False, _hand),
        MeshEngine("no-sharing", "the optimum without FIFOs", False, _no_sharing),
    )
}
#: For searches that are stopped.
HASTE = MeshEngine("haste", "a tile doubled as long as it fits", False, lambda asked: _unproven(asked, doubling(asked)))
