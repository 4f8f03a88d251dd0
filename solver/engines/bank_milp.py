"""Engine ``milp`` for banks: the state arcs of `formulations.bank_milp` with HiGHS.

The objective is divided by the gcd of its coefficients, gaps are 0 and below half a unit; the decoded plan is priced in
integers and counts as proven only if its price is within half a unit of the value that HiGHS reports. That there is no
plan is the graph's word, not HiGHS's.
"""

from __future__ import annotations

import time
from importlib.metadata import version

import pulp

from formulations.bank_graph import NEVER, OutOfTime
from formulations.bank_milp import chosen, state_arcs
from solver.bank_base import Asked, Decided, graph_of, tied
from solver.engines.solvers_milp import highs
from solver.plan import Stat

__all__ = ["run"]


def run(asked: Asked) -> Decided:
    """Solve with HiGHS; of equal plans the fastest."""
    begun, versions = time.monotonic(), f"pulp {version('pulp')}, highspy {version('highspy')}"
    try:
        graph, left = graph_of(asked)
    except OutOfTime:
        return Decided(None, None, "NO_SOLUTION_FOUND", versions)
    if graph.bytes[0] == NEVER:
        return Decided(None, None, "INFEASIBLE", versions)
    problem, arcs, unit = state_arcs(graph)
    problem.solve(highs(left))
    stats: dict[str, Stat] = {"states": len(graph.number), "arcs": len(arcs)}
    if problem.sol_status not in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        return Decided(None, None, "NO_SOLUTION_FOUND", versions, stats)
    plan = graph.follow(chosen(arcs))
    reported = float(pulp.value(problem.objective)) * unit
    if problem.sol_status != pulp.LpSolutionOptimal or abs(plan.volume.total - reported) > unit / 2:
        return Decided(plan, None, "FEASIBLE", versions, stats)
    fastest, proven = tied(asked, plan, begun)
    return Decided(fastest, plan.volume.total, "OPTIMAL", versions, stats, tied=proven)
