"""MILP model of F5 latency (PuLP): assignment and flows as in `formulations.mapping_milp`, and when tasks begin.

Variables    x[i,p], y[e,p,q]; start[i] >= 0; L: the latency;
             o[i,j] in {0, 1}: task i comes before j, for pairs of which neither waits for the other
Derived      d[i] = sum_p time[i][p]*x[i,p] + sum over e = (i, j), p, q of copy[e][p][q]*y[e,p,q]: linear, exact
Objective    min L, or the period or the energy with L at most its limit
Constraints  (RUN), (FLOW), (LOAD), (CAP) as in `formulations.mapping_milp`
             (AFTER)  start[j] >= start[i] + d[i] for e = (i, j);  L >= start[i] + d[i] for the last tasks  (Eq. 3.5)
             (ALONE)  o[i,j] + o[j,i] >= x[i,p] + x[j,p] - 1;
                      start[j] >= start[i] + d[i] - M*(1 - o[i,j])                                (Eq. 3.6)
             (BUSY)   L >= load[p]: implied, it tightens the relaxation
M            a latency that is known: no start of a better plan is later, and no block ends later
A block's length is linear in the flows, so (AFTER) needs no M: without pairs that wait for nothing of each other the
relaxation is a shortest path.
"""

from __future__ import annotations

import pulp

from formulations.latency import unrelated
from formulations.mapping import Aim, Limits, Mapping
from formulations.mapping_milp import MappingModel, flows, prices

__all__ = ["latency_model"]


def latency_model(mapping: Mapping, aim: Aim, limits: Limits, most: int) -> tuple[MappingModel, list[pulp.LpVariable]]:
    """Return the model and the starts.

    Parameters
    ----------
    most : int
        A latency that some plan is known to keep, or the limit: M.
    """
    problem = pulp.LpProblem("latency", pulp.LpMinimize)
    x, busy = flows(problem, mapping)
    period, energy, loads = prices(problem, mapping, busy, limits)
    starts = [pulp.LpVariable(f"start_{i}", 0, most) for i in range(len(mapping.times))]
    latency = pulp.LpVariable("L", 1, most, cat="Integer")
    ends = [
        start + pulp.LpAffineExpression([term for p in able for term in busy[i, p]])
        for i, (start, able) in enumerate(zip(starts, mapping.able, strict=True))
    ]
    for i, j in mapping.graph.edges:
        problem += starts[j] >= ends[i]
    for i in mapping.graph.last:
        problem += latency >= ends[i]
    for load in loads:
        problem += latency >= load
    for i, j in unrelated(mapping):
        first, then = (pulp.LpVariable(f"o_{a}_{b}", cat="Binary") for a, b in ((i, j), (j, i)))
        for p in set(mapping.able[i]) & set(mapping.able[j]):
            problem += first + then >= x[i, p] + x[j, p] - 1
        problem += starts[j] >= ends[i] - most * (1 - first)
        problem += starts[i] >= ends[j] - most * (1 - then)
    problem.setObjective({"latency": latency, "period": period, "energy": energy}[aim])
    return MappingModel(problem, x, len(mapping.times)), starts
