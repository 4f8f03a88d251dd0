"""MILP model of mesh (PuLP): one option of each half, and flows over the pairs that keep every demand.

Sets, parameters as in `formulations.mesh`; halves of a member as in `formulations.mesh.search`
Variables    x[u], y[v]: the options, y binary;  z[u,v] >= 0, only for pairs that keep all demands, limits and keys;  T
Objective    min sum of (value[u,v] - least)*z[u,v], or min T - least with T >= each part of the roofline
Constraints  (FLOW) sum_v z[u,v] = x[u];  sum_u z[u,v] = y[v];  sum_v y[v] = 1
Products of the halves' terms are data of the pairs here, so that the relaxation is as tight as can be: for dram and glb
it is a minimum over the pairs, exact by itself; the time couples three sums. Values stand relative to the least one and
divided by what they have in common, which keeps coefficients small.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np
import pulp

from formulations.mesh.price import Ints
from formulations.mesh.search import Halves, classes, fitting, parts
from formulations.problem import Unable

#: Pairs of options at most.
_PAIRS = 60_000


@dataclass
class MeshModel:
    """The model with its variables; its objective times `unit` plus `least` is the measure."""

    problem: pulp.LpProblem
    flows: dict[tuple[int, int], pulp.LpVariable]
    least: int
    unit: int

    def chosen(self) -> tuple[int, int]:
        """The pair of options of a solution."""
        return max(self.flows, key=lambda pair: self.flows[pair].value() or 0.0)


def model_of(found: Halves, measure: str) -> MeshModel | None:
    """Return the model, None if no pair keeps the demands; raises Unable if there are too many."""
    pairs, rows = _pairs(found, measure)
    if not len(pairs):
        return None
    least = max(int(row.min()) for row in rows)
    unit = 1 if len(rows) > 1 else gcd(*(int(v) for v in rows[0] - least)) or 1
    problem = pulp.LpProblem("mesh", pulp.LpMinimize)
    z = {(int(u), int(v)): pulp.LpVariable(f"z_{u}_{v}", 0) for u, v in pairs}
    of_left: dict[int, list[pulp.LpVariable]] = {}
    of_right: dict[int, list[pulp.LpVariable]] = {}
    for (u, v), flow in z.items():
        of_left.setdefault(u, []).append(flow)
        of_right.setdefault(v, []).append(flow)
    x = {u: pulp.LpVariable(f"x_{u}", 0, 1) for u in of_left}
    y = {v: pulp.LpVariable(f"y_{v}", cat="Binary") for v in of_right}
    found.member.setup.clock.tick()
    for u, flows in of_left.items():
        problem += pulp.lpSum(flows) == x[u]
    for v, flows in of_right.items():
        problem += pulp.lpSum(flows) == y[v]
    problem += pulp.lpSum(y.values()) == 1
    problem += pulp.lpSum(x.values()) == 1
    if len(rows) == 1:
        scaled = (rows[0] - least) // unit
        problem.setObjective(pulp.LpAffineExpression(list(zip(z.values(), scaled.tolist(), strict=True))))
    else:
        time = pulp.LpVariable("T", lowBound=0, cat="Integer")
        for row in rows:
            above = np.maximum(row - least, 0)  # what is below the least time never decides it
            problem += time >= pulp.LpAffineExpression(list(zip(z.values(), above.tolist(), strict=True)))
        problem.setObjective(time)
        problem += time <= max(int(row.max()) for row in rows) - least
    return MeshModel(problem, z, least, unit)


def _pairs(found: Halves, measure: str) -> tuple[Ints, list[Ints]]:
    """The pairs that keep everything, and their values: of the measure, or of the parts of the roofline."""
    pairs: list[Ints] = []
    rows: list[list[Ints]] = []
    number, refused = 0, Unable(f"more than {_PAIRS:,} pairs of options: too many for this engine")
    for left, right in classes(found):
        found.member.setup.clock.tick()
        if len(left) * len(right) > 50 * _PAIRS:
            raise refused
        fits = fitting(found, left, right)
        number += int(fits.sum())
        if number > _PAIRS:
            raise refused
        a, b = np.nonzero(fits)
        pairs.append(np.stack([left[a], right[b]], axis=1))
        rows.append([values[a, b] for values in parts(found, measure, left, right)])
    if not number:
        return np.zeros((0, 2), dtype=np.int64), []
    return np.concatenate(pairs), [np.concatenate(row) for row in zip(*rows, strict=True)]
