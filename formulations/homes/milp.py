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
from dataclasses import dataclass
from math import gcd

import pulp

from formulations.homes.problem import Chosen, Places

__all__ = ["Milp", "milp"]


@dataclass(frozen=True)
class Milp:
    """The model: its homes (item, home), and ``unit * objective + constant`` as the value."""

    problem: pulp.LpProblem
    homes: tuple[tuple[pulp.LpVariable, ...], ...]
    places: Places
    unit: int
    constant: int

    def chosen(self) -> Chosen:
        """The homes of a solution."""
        return tuple(
            item.homes[max(range(len(xs)), key=lambda k: xs[k].value() or 0.0)]
            for item, xs in zip(self.places.items, self.homes, strict=True)
        )

    def exclude(self, chosen: Chosen) -> None:
        """Leave out one way to choose homes."""
        mine = [xs[item.homes.index(h)] for item, xs, h in zip(self.places.items, self.homes, chosen, strict=True)]
        self.problem.addConstraint(pulp.lpSum(mine) <= len(mine) - 1)


def milp(places: Places, measure: int | None, kept: Sequence[int] = ()) -> Milp:
    """Build the model; `measure` and `kept` as in `formulations.homes.cp_sat.cp_sat`."""
    problem = pulp.LpProblem("homes", pulp.LpMinimize)
    homes = tuple(
        tuple(pulp.LpVariable(f"x{number}_{k}", cat="Binary") for k in range(len(item.homes)))
        for number, item in enumerate(places.items)
    )
    of = [dict(zip(item.homes, xs, strict=True)) for item, xs in zip(places.items, homes, strict=True)]
    for xs in homes:
        problem += pulp.lpSum(xs) == 1
    for one, two in places.ties:
        for name in {*of[one], *of[two]}:
            problem += pulp.lpSum([of[one][name]] if name in of[one] else []) == pulp.lpSum(
                [of[two][name]] if name in of[two] else []
            )
    for name, room in places.rooms.items():
        for time in places.times:
            there = [x for x in places.there(time) if name in of[x] and places.items[x].bytes]
            if there:
                problem += pulp.lpSum(places.items[x].bytes * of[x][name] for x in there) <= room
    chosen = _tables(problem, places, of)
    for number, most in enumerate(kept):
        costs, constant = _costs(places, chosen, number)
        unit = gcd(*(cost for _, cost in costs)) or 1
        problem += pulp.lpSum(cost // unit * y for y, cost in costs) <= (most - constant) // unit
    if measure is None:
        costs, constant = [(x, k) for xs in homes for k, x in enumerate(xs) if k], 0
    else:
        costs, constant = _costs(places, chosen, measure)
    unit = gcd(*(cost for _, cost in costs)) or 1
    problem.setObjective(pulp.lpSum(cost // unit * y for y, cost in costs))
    return Milp(problem, homes, places, unit, constant)


def _tables(
    problem: pulp.LpProblem, places: Places, of: Sequence[dict[str, pulp.LpVariable]]
) -> list[list[pulp.LpVariable]]:
    """The assignments of every layer, in the order of its table."""
    found = []
    for t, table in enumerate(places.tables):
        ys = [pulp.LpVariable(f"y{t}_{number}", cat="Binary") for number in range(len(table.values))]
        for place, item in enumerate(table.operands.values()):
            for name, x in of[item].items():
                mine = [y for y, names in zip(ys, table.values, strict=True) if names[place] == name]
                problem += pulp.lpSum(mine) == x
        found.append(ys)
    return found


def _costs(
    places: Places, chosen: Sequence[Sequence[pulp.LpVariable]], measure: int
) -> tuple[list[tuple[pulp.LpVariable, int]], int]:
    """What each assignment costs beyond the least of its layer, and the sum of the least."""
    costs, constant = [], 0
    for table, ys in zip(places.tables, chosen, strict=True):
        least = min(value[measure] for value in table.values.values())
        constant += least
        costs += [(y, v[measure] - least) for y, v in zip(ys, table.values.values(), strict=True) if v[measure] > least]
    return costs, constant
