"""MILP model of mapping (PuLP): `formulations.mapping.flows`, and clusterings.

Constraints  (CLUSTER) dep[i,p] >= x[k,p] for k before i, <= sum_k x[k,p];  start[i,p] = x[i,p] and not dep[i,p];
                      both[p] = x[first,p] and x[last,p];  sum_i start[i,p] - both[p] = 1 (or <= 1)  (Eq. 3.2 to 3.4)

Of one inference alone
Variables    a task that cannot be divided has one start, and d[i] = sum_p d[i,p] in the place of every d[i,p];
             o[i,j,p] in {0, 1}: task i comes before j on p, for pairs of which neither waits for the other
Derived      d[i,a,p] = work of i at a on p times x[i,a] + its copies times y[e,a,q]: linear in the flows, and 0 unless
             i is at a;  d[i,p] = sum_a d[i,a,p]
Constraints  (ALONE)  o[i,j,p] + o[j,i,p] >= sum of x[i,a], x[j,a] over places with p - 1;
                      start[j,p] >= start[i,p] + d[i,p] - M*(1 - o[i,j,p])                           (Eq. 3.6)
M            a latency that is known: no start of a better plan is later, and no block ends later
(AFTER), (CHAIN) need no M: where every two tasks wait for each other the relaxation is a shortest path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import pulp

from formulations.mapping.flows import Flows
from formulations.mapping.latency import blocks_of, unrelated
from formulations.mapping.space import Aim, Limits, Mapping, Schedule


def _binary(name: str) -> pulp.LpVariable:
    return pulp.LpVariable(name, cat="Binary")


def model(
    mapping: Mapping, aim: Aim, limits: Limits, *, clustered: Literal["", "=", "<="] = "", latest: int | None = None
) -> tuple[pulp.LpProblem, Callable[[], Schedule]]:
    """Return the model, and what reads the schedule of a solution.

    `clustered`: whether a processor runs one cluster, exactly or at most. `latest`: of one inference alone, a latency
    that some plan is known to keep, or the limit: M.
    """
    problem = pulp.LpProblem("mapping", pulp.LpMinimize)
    made = Flows(mapping, _binary, lambda name: pulp.LpVariable(name, 0, 1), pulp.LpAffineExpression)
    period = pulp.LpVariable("T", lowBound=1, upBound=limits.period, cat="Integer")
    energy, loads = made.priced(period, limits, whole=False)
    goal = period if aim == "period" else energy
    if latest is not None:
        latency = _timed(made, latest, loads)
        goal = latency if aim == "latency" else goal
    for row in made.rows:
        problem += row
    problem.setObjective(goal)
    if clustered:
        _cluster(problem, mapping, made.x, clustered)
    return problem, lambda: made.chosen(pulp.LpVariable.value)


def _timed(made: Flows, most: int, loads: Sequence[Any]) -> pulp.LpVariable:
    """Add blocks in time; return the latency."""
    mapping, blocks = made.mapping, blocks_of(made.mapping)
    latency = pulp.LpVariable("L", mapping.shortest, most, cat="Integer")
    done = [pulp.LpVariable(f"done_{i}", 0, most) for i in range(len(mapping.times))]
    of = {block.start: block for block in blocks.values()}
    starts = {key: pulp.LpVariable(f"start_{key[0]}_{key[1]}", 0, most) for key in of}
    took = {key: made.took(key[0], block.takes) for key, block in of.items()}
    made.starts = starts
    made.chain({key: start + took[key] for key, start in starts.items()}, done, latency, loads)
    for i, j in unrelated(mapping):
        for p in range(len(mapping.processors)):
            if (i, p) not in blocks or (j, p) not in blocks:
                continue
            one, two = blocks[i, p], blocks[j, p]
            first, then = _binary(f"o_{i}_{j}_{p}"), _binary(f"o_{j}_{i}_{p}")
            both = made.sum(made.x[i, a] for a in one.places) + made.sum(made.x[j, a] for a in two.places)
            made.rows += [
                first + then >= both - 1,
                starts[two.start] >= starts[one.start] + took[one.start] - most * (1 - first),
                starts[one.start] >= starts[two.start] + took[two.start] - most * (1 - then),
            ]
    made.starts = {key: starts[block.start] for key, block in blocks.items()}
    return latency


def _cluster(
    problem: pulp.LpProblem, mapping: Mapping, x: dict[tuple[int, int], pulp.LpVariable], clustered: str
) -> None:
    """Add (CLUSTER)."""
    last = len(mapping.times) - 1
    for p in range(len(mapping.processors)):
        starts: list[pulp.LpVariable] = []
        for i in range(len(mapping.times)):
            if (i, p) not in x:
                continue
            there = [x[k, p] for k in mapping.graph.before[i] if (k, p) in x]
            if not there:
                starts.append(x[i, p])
                continue
            start = pulp.LpVariable(f"start_{i}_{p}", 0, 1)
            problem += start >= x[i, p] - pulp.lpSum(there)
            if clustered == "=":
                problem += start <= x[i, p]
                for one in there:
                    problem += start <= 1 - one
            starts.append(start)
        both = pulp.LpVariable(f"both_{p}", 0, 1)
        ends = [x.get((0, p)), x.get((last, p))]
        for one in ends:
            problem += both <= (0 if one is None else one)
        if clustered == "=" and all(one is not None for one in ends):  # `in` compares, and PuLP overloads ==
            problem += both >= pulp.lpSum(ends) - 1
        counted = pulp.lpSum(starts) - both
        problem += (counted == 1) if clustered == "=" else (counted <= 1)
