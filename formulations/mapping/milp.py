"""MILP model of F5 mapping (PuLP): tasks to processors, with flows over the edges.

Sets, parameters as in `formulations.mapping.problem`
Variables    x[i,p] in {0, 1}: task i is at p;  y[e,p,q] >= 0: edge e = (i, j) goes from p to q;  T in N: the period
Objective    min T, or min sum_p watts[p]*load[p]
Constraints  (RUN)    sum_p x[i,p] = 1, over the processors that can run i (Eq. 3.1; HOST: first and last tasks)
             (FLOW)   sum_q y[e,p,q] = x[i,p];  sum_p y[e,p,q] = x[j,q]: y is 1 exactly where both ends are
             (LOAD)   load[p] = sum_i time[i][p]*x[i,p] + sum_e sum_q copy[e][p][q]*y[e,p,q] <= T  (Eq. 3.7, 3.8)
             (CAP)    100 * sum_p cores[p]*load[p] <= cap * C * T
             (CLUSTER) dep[i,p] >= x[k,p] for k before i, <= sum_k x[k,p];  start[i,p] = x[i,p] and not dep[i,p];
                      both[p] = x[first,p] and x[last,p];  sum_i start[i,p] - both[p] = 1 (or <= 1)  (Eq. 3.2 to 3.4)
If tasks may be divided (`formulations.mapping.places`) x is over places a, and y[e,a,q] says that the parts at a hand
their shares to a part at processor q: then sum_a y[e,a,q] = sum over places b of j that use q of x[j,b];  y[e,a,q] <=
x[i,a]; x[i,a] <= sum_q y[e,a,q] <= 2*x[i,a].
Flows instead of y >= x + x - 1: the relaxation then sees every copy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pulp

from formulations.mapping.latency import scheduled
from formulations.mapping.problem import Aim, Limits, Mapping, Schedule

__all__ = ["MappingModel", "Terms", "flows", "model", "prices"]

#: Variables and their ticks.
Terms = list[tuple[pulp.LpVariable, int]]


@dataclass
class MappingModel:
    """The model with its variables, as `formulations.mapping.cp_sat.MappingCpModel`."""

    problem: pulp.LpProblem
    mapping: Mapping
    x: dict[tuple[int, int], pulp.LpVariable]
    starts: dict[tuple[int, int], pulp.LpVariable] = field(default_factory=dict)

    def chosen(self) -> Schedule:
        """The schedule of a solution."""
        at = tuple(
            max(able, key=lambda a: (self.x[i, a].value() or 0.0, a)) for i, able in enumerate(self.mapping.able)
        )
        begins = {key: one.value() or 0.0 for key, one in self.starts.items()}
        return scheduled(self.mapping, at, begins) if begins else Schedule(at)


def model(mapping: Mapping, aim: Aim, limits: Limits, *, clustered: Literal["", "=", "<="] = "") -> MappingModel:
    """Return the model; energies are divided by their unit.

    Parameters
    ----------
    clustered : {"", "=", "<="}
        Whether a processor runs one cluster, exactly or at most.
    """
    problem = pulp.LpProblem("mapping", pulp.LpMinimize)
    x, busy = flows(problem, mapping)
    period, energy, _ = prices(problem, mapping, busy, limits)
    problem.setObjective(period if aim == "period" else energy)
    if clustered:
        _cluster(problem, mapping, x, clustered)
    return MappingModel(problem, mapping, x)


def flows(
    problem: pulp.LpProblem, mapping: Mapping
) -> tuple[dict[tuple[int, int], pulp.LpVariable], dict[tuple[int, int, int], Terms]]:
    """Add (RUN) and (FLOW).

    Returns
    -------
    x : dict
        By task and place whether it is there.
    busy : dict
        By task, place and processor what it keeps it busy with if it is there, copies included.
    """
    x = {(i, a): pulp.LpVariable(f"x_{i}_{a}", cat="Binary") for i, able in enumerate(mapping.able) for a in able}
    busy: dict[tuple[int, int, int], Terms] = {}
    for (i, a), one in x.items():
        for p, ticks in mapping.work(i, a):
            busy[i, a, p] = [(one, ticks)]
    for i, able in enumerate(mapping.able):
        problem += pulp.lpSum(x[i, a] for a in able) == 1
    for e, (i, j) in enumerate(mapping.graph.edges):
        there: dict[int, list[pulp.LpVariable]] = {}
        for b in mapping.able[j]:
            for q, _ in mapping.places[b]:
                there.setdefault(q, []).append(x[j, b])
        y = {(a, q): pulp.LpVariable(f"y_{e}_{a}_{q}", 0, 1) for a in mapping.able[i] for q in there}
        divided = any(len(mapping.places[b]) > 1 for b in mapping.able[j])
        for a in mapping.able[i]:
            readers = pulp.lpSum(y[a, q] for q in there)
            if not divided:
                problem += readers == x[i, a]
                continue
            problem += readers >= x[i, a]
            problem += readers <= 2 * x[i, a]
            for q in there:
                problem += y[a, q] <= x[i, a]
        for q, few in there.items():
            problem += pulp.lpSum(y[a, q] for a in mapping.able[i]) == pulp.lpSum(few)
        for (a, q), one in y.items():
            for p, ticks in mapping.handed(e, a, q):
                busy[i, a, p].append((one, ticks))
    return x, busy


def prices(
    problem: pulp.LpProblem, mapping: Mapping, busy: dict[tuple[int, int, int], Terms], limits: Limits
) -> tuple[pulp.LpVariable, pulp.LpAffineExpression, list[pulp.LpAffineExpression]]:
    """Add (LOAD), (CAP) and the limits; return period, energy (in its unit) and loads."""
    unit = mapping.energy_unit
    period = pulp.LpVariable("T", lowBound=1, upBound=limits.period, cat="Integer")
    parts: list[Terms] = [[] for _ in mapping.processors]
    for (_, _, p), few in busy.items():
        parts[p] += few
    loads = [pulp.LpAffineExpression(few) for few in parts]
    for load, number in zip(loads, mapping.number, strict=True):
        problem += load <= number * period
    used = pulp.lpSum(group.cores * load for group, load in zip(mapping.processors, loads, strict=True))
    problem += used <= period * (limits.cap * mapping.total / 100)
    energy = pulp.lpSum(watts // unit * load for watts, load in zip(mapping.watts, loads, strict=True))
    if limits.energy is not None:
        problem += energy <= limits.energy // unit
    return period, energy, loads


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
