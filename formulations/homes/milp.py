"""MILP model of `formulations.homes.problem` (PuLP).

Variables    x[i, h] in {0, 1}: item i lies in h;  y[t, a] in {0, 1}: layer t has homes a
Objective    min sum (value[t, a, k] - least[t, k]) y[t, a], in units of the gcd of these
Constraints  (ONE)    sum_h x[i, h] = 1
             (TABLE)  sum over a with home h for operand i of y[t, a] = x[i, h] for all i in items[t], h in H[i]
             (TIE)    x[i, h] = x[j, h]
             (ROOM)   sum bytes[i] x[i, h] <= room[h] for every memory and time
             (KEPT)   sum (value[t, a, j] - least[t, j]) y[t, a] <= kept[j] - sum_t least[t, j] for measures j < k
For one layer alone (TABLE) is the convex hull of its assignments; only (ROOM) and shared items couple.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import pulp

from formulations.homes.space import TASTE, Chosen, Places
from formulations.problem import Goal, Model

#: Variables with what each costs beyond the least of its layer, and the sum of the least.
_Costs = tuple[list[tuple[pulp.LpVariable, int]], int]


def milp(places: Places, goal: Goal, out: Sequence[Chosen] = ()) -> Model[Chosen]:
    """Build the model; homes in `out` are left out."""
    problem = pulp.LpProblem("homes", pulp.LpMinimize)
    homes = [
        {name: pulp.LpVariable(f"x{number}_{k}", cat="Binary") for k, name in enumerate(item.homes)}
        for number, item in enumerate(places.items)
    ]
    for xs in homes:
        problem += pulp.lpSum(xs.values()) == 1
    for one, two in places.ties:
        for name in {*homes[one], *homes[two]}:
            problem += homes[one].get(name, 0) == homes[two].get(name, 0)
    for name, room in places.rooms.items():
        for time in places.times:
            there = [x for x in places.there(time) if name in homes[x] and places.items[x].bytes]
            if there:
                problem += pulp.lpSum(places.items[x].bytes * homes[x][name] for x in there) <= room
    for chosen in out:
        problem += pulp.lpSum(xs[name] for xs, name in zip(homes, chosen, strict=True)) <= len(chosen) - 1
    ys = _tables(problem, places, homes)
    for measure, most in goal.caps.items():
        costs, constant = _costs(places, ys, measure)
        unit = _unit(costs)
        problem += pulp.lpSum(cost // unit * y for y, cost in costs) <= (most - constant) // unit
    if goal.measure == TASTE:
        costs, constant = [(x, k) for xs in homes for k, x in enumerate(xs.values()) if k], 0
    else:
        costs, constant = _costs(places, ys, goal.measure)
    unit = _unit(costs)
    problem.setObjective(pulp.lpSum(cost // unit * y for y, cost in costs))
    return Model(
        problem, lambda _: tuple(max(xs, key=lambda name: xs[name].value() or 0.0) for xs in homes), constant, unit,
        priced=True,
    )  # fmt: skip


def _tables(
    problem: pulp.LpProblem, places: Places, of: Sequence[dict[str, pulp.LpVariable]]
) -> list[dict[tuple[str, ...], pulp.LpVariable]]:
    """The assignments of every layer."""
    found = []
    for t, table in enumerate(places.tables):
        ys = {names: pulp.LpVariable(f"y{t}_{number}", cat="Binary") for number, names in enumerate(table.values)}
        for place, item in enumerate(table.operands.values()):
            for name, x in of[item].items():
                problem += pulp.lpSum(y for names, y in ys.items() if names[place] == name) == x
        found.append(ys)
    return found


def _costs(places: Places, chosen: Sequence[dict[tuple[str, ...], pulp.LpVariable]], measure: str) -> _Costs:
    costs, constant = [], 0
    for of, ys in zip(places.costs(measure), chosen, strict=True):
        least = min(of.values())
        constant += least
        costs += [(ys[names], cost - least) for names, cost in of.items() if cost > least]
    return costs, constant


def _unit(costs: Sequence[tuple[pulp.LpVariable, int]]) -> int:
    return gcd(*(cost for _, cost in costs)) or 1
