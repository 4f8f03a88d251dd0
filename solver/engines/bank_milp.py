"""Engine ``milp`` for banks: the state arcs of `formulations.banks.milp` with HiGHS.

The decoded plan is priced in integers and counts as proven only if its price is what HiGHS reports
(`solver.engines.driver_milp`). That there is no plan is the graph's word, not HiGHS's.
"""

from __future__ import annotations

import time

from formulations.banks.graph import NEVER, OutOfTime
from formulations.banks.milp import chosen, state_arcs
from solver.banks.base import Asked, Decided, graph_of, tied
from solver.engines.driver_milp import solve, versions
from solver.plan import Stat

__all__ = ["run"]


def run(asked: Asked) -> Decided:
    """Solve with HiGHS; of equal plans the fastest."""
    begun, made = time.monotonic(), versions("highs")
    try:
        graph, left = graph_of(asked)
    except OutOfTime:
        return Decided(None, None, "NO_SOLUTION_FOUND", made)
    if graph.bytes[0] == NEVER:
        return Decided(None, None, "INFEASIBLE", made)
    problem, arcs, unit = state_arcs(graph)
    said = solve("highs", problem, left)
    stats: dict[str, Stat] = {"states": len(graph.number), "arcs": len(arcs), **said.stats}
    if not said.solved:
        return Decided(None, None, "NO_SOLUTION_FOUND", made, stats)
    plan = graph.follow(chosen(arcs))
    if not said.agrees(plan.volume.total / unit):
        return Decided(plan, None, "FEASIBLE", made, stats)
    fastest, proven = tied(asked, plan, begun)
    return Decided(fastest, plan.volume.total, "OPTIMAL", made, stats, tied=proven)
