"""MILP model of F5 latency (PuLP): assignment and flows as in `formulations.mapping.milp`, and when tasks begin.

Variables    x[i,a], y[e,a,q] over places a; start[i,p] >= 0 of the part of i on p; done[i]; L: the latency;
             a task that cannot be divided has one start, and d[i] = sum_p d[i,p] in the place of every d[i,p];
             o[i,j,p] in {0, 1}: task i comes before j on p, for pairs of which neither waits for the other
Derived      d[i,a,p] = work of i at a on p times x[i,a] + its copies times y[e,a,q]: linear in the flows, and 0 unless
             i is at a;  d[i,p] = sum_a d[i,a,p]
Objective    min L, or the period or the energy with L at most its limit
Constraints  (RUN), (FLOW), (LOAD), (CAP) as in `formulations.mapping.milp`
             (AFTER)  start[i,p] >= done[k], done[i] >= start[i,p] + d[i,p] for k before i;  L >= done[i]   (Eq. 3.5)
             (CHAIN)  done[i] >= done[k] + sum_a d[i,a,p(a)], p(a) the processor with more to do at a: implied,
                      for tasks that may be divided
             (ALONE)  o[i,j,p] + o[j,i,p] >= sum of x[i,a], x[j,a] over places with p - 1;
                      start[j,p] >= start[i,p] + d[i,p] - M*(1 - o[i,j,p])                           (Eq. 3.6)
             (BUSY)   L >= load[p]: implied, it tightens the relaxation
M            a latency that is known: no start of a better plan is later, and no block ends later
(AFTER), (CHAIN) need no M: where every two tasks wait for each other the relaxation is a shortest path.
"""

from __future__ import annotations

import pulp

from formulations.mapping.latency import blocks_of, longest, unrelated
from formulations.mapping.milp import MappingModel, flows, prices
from formulations.mapping.problem import Aim, Limits, Mapping

__all__ = ["latency_model"]


def latency_model(mapping: Mapping, aim: Aim, limits: Limits, most: int) -> MappingModel:
    """Return the model.

    Parameters
    ----------
    most : int
        A latency that some plan is known to keep, or the limit: M.
    """
    problem = pulp.LpProblem("latency", pulp.LpMinimize)
    x, busy = flows(problem, mapping)
    period, energy, loads = prices(problem, mapping, busy, limits)
    latency = pulp.LpVariable("L", 1, most, cat="Integer")
    done = [pulp.LpVariable(f"done_{i}", 0, most) for i in range(len(mapping.times))]
    blocks = blocks_of(mapping)
    starts = {key: pulp.LpVariable(f"start_{key[0]}_{key[1]}", 0, most) for key in {b.start for b in blocks.values()}}
    took = {
        b.start: pulp.LpAffineExpression([one for a, q in b.takes for one in busy[i, a, q]])
        for (i, _), b in blocks.items()
    }  # fmt: skip
    for key, start in starts.items():
        problem += done[key[0]] >= start + took[key]
        for k in mapping.graph.before[key[0]]:
            problem += start >= done[k]
    for i, able in enumerate(mapping.able):
        problem += latency >= done[i]
        if (i, -1) in starts:
            continue
        chain = pulp.LpAffineExpression([one for a in able for one in busy[i, a, longest(mapping, i, a)]])
        problem += done[i] >= chain
        for k in mapping.graph.before[i]:
            problem += done[i] >= done[k] + chain
    for load in loads:
        problem += latency >= load
    for i, j in unrelated(mapping):
        for p in range(len(mapping.processors)):
            if (i, p) not in blocks or (j, p) not in blocks:
                continue
            one, two = blocks[i, p], blocks[j, p]
            first, then = (pulp.LpVariable(f"o_{m}_{n}_{p}", cat="Binary") for m, n in ((i, j), (j, i)))
            both = pulp.lpSum(x[i, a] for a in one.places) + pulp.lpSum(x[j, a] for a in two.places)
            problem += first + then >= both - 1
            problem += starts[two.start] >= starts[one.start] + took[one.start] - most * (1 - first)
            problem += starts[one.start] >= starts[two.start] + took[two.start] - most * (1 - then)
    problem.setObjective({"latency": latency, "period": period, "energy": energy}[aim])
    return MappingModel(problem, mapping, x, {key: starts[b.start] for key, b in blocks.items()})
