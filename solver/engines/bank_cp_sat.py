"""Engine ``cp-sat`` for banks: the state arcs of `formulations.banks.cp_sat`."""

from __future__ import annotations

import time
from importlib.metadata import version

from formulations.banks.cp_sat import build_arcs
from formulations.banks.graph import OutOfTime
from solver.banks.base import Asked, Decided, graph_of, tied
from solver.engines.driver_cp_sat import solve
from solver.plan import Stat

__all__ = ["run"]


def run(asked: Asked) -> Decided:
    """Solve with CP-SAT; of equal plans the fastest."""
    begun, versions = time.monotonic(), f"ortools {version('ortools')}"
    try:
        graph, left = graph_of(asked)
    except OutOfTime:
        return Decided(None, None, "NO_SOLUTION_FOUND", versions)
    built = build_arcs(graph)
    said = solve(built.model, left)
    stats: dict[str, Stat] = {"states": len(graph.number), "arcs": len(built.arcs), **said.stats}
    if said.status == "INFEASIBLE":
        return Decided(None, None, "INFEASIBLE", versions, stats)
    if not said.solved:
        return Decided(None, said.least(), "NO_SOLUTION_FOUND", versions, stats)
    plan = graph.follow(built.chosen(said.solver))
    if said.status == "FEASIBLE":
        return Decided(plan, said.least(), "FEASIBLE", versions, stats)
    fastest, proven = tied(asked, plan, begun)
    return Decided(fastest, plan.volume.total, "OPTIMAL", versions, stats, tied=proven)
