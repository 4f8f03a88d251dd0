"""MILP model of F4 engine (PuLP): the variables and constraints of `formulations.runs_cp_sat`, linear.

Constraints  (ONE)    sum_b z[b] = 1
             (COUNT)  y*w + x*v >= (I - x)*(O - y)*z[b]
             (WHOLE)  v >= r*p, parts >= the r least swaps*p, p <= z[b];  ins >= whole bytes*(z[b] - p)
             (WHOLE') w >= r'*q, ins >= the r' least loads*q, q <= z[b];  parts >= whole' bytes*(z[b] - q)
             (FULL)   y*w' + x*v >= (I - 1 - x)*(O - y)*z[b];  ins >= second least load*w';
                      y*w + x*v' >= (I - x)*(O - 1 - y)*z[b];  parts >= second least swap*v'
             (EACH)   ins >= load*w, parts >= swap*v
             (STAY)   v = 0 if partial maps may not be stored; parts is then not bounded
All bytes are multiples of a unit, the gcd of all of them: the model counts in this unit. Bytes beyond those of a known
order count as one more than these, which keeps coefficients small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import pulp

from formulations.runs import Branch
from formulations.runs_bounds import Counting, capped, counting

__all__ = ["RunsModel", "runs_model"]


@dataclass
class RunsModel:
    """The model; the bytes of a solution are `base` and `unit` times its objective.

    Attributes
    ----------
    largest : int
        The largest coefficient.
    """

    problem: pulp.LpProblem
    z: list[pulp.LpVariable]
    base: int
    unit: int
    largest: int

    def chosen(self) -> int:
        """The choice of a solution, as a number."""
        return max(range(len(self.z)), key=lambda b: self.z[b].value() or 0.0)


def runs_model(branches: Sequence[Branch], known: int, *, stay: bool = False) -> RunsModel:
    """Return the model of some choices; some order moves `known` bytes."""
    base = min(branch.least for branch in branches)
    counts = [[(counting(game), number) for game, number in branch.games] for branch in branches]
    sizes = [branch.least - base for branch in branches] + [n for few in counts for at, _ in few for n in _bytes(at)]
    unit = max(1, gcd(*sizes))
    most = ((known - base) // unit + 1) * unit
    counts = [[(capped(at, most), number) for at, number in few] for few in counts]
    problem, terms, largest = pulp.LpProblem("runs", pulp.LpMinimize), [], 1
    z = [pulp.LpVariable(f"z_{b}", cat="Binary") for b in range(len(branches))]
    problem += pulp.lpSum(z) == 1
    for b, branch in enumerate(branches):
        terms.append((branch.least - base) // unit * z[b])
        for g, (at, number) in enumerate(counts[b]):
            terms += [number * one for one in _game(problem, z[b], f"{b}_{g}", at, unit, stay=stay)]
            largest = max(largest, number, at.need, *(n // unit for n in (*_bytes(at), branch.least - base)))
    problem.setObjective(pulp.lpSum(terms))
    return RunsModel(problem, z, base, unit, largest)


def _bytes(at: Counting) -> tuple[int, ...]:
    return at.load, at.swap, at.full, at.full_swap, at.back_bytes, at.whole_bytes, at.back_in_bytes, at.whole_in_bytes


def _game(
    problem: pulp.LpProblem, z: pulp.LpVariable, name: str, at: Counting, unit: int, *, stay: bool
) -> tuple[pulp.LpVariable, pulp.LpVariable]:
    """Add a game; return its bytes of inputs and of partial maps."""
    load, swap, full, full_swap, back, whole, back_in, whole_in = (size // unit for size in _bytes(at))
    w = pulp.LpVariable(f"w_{name}", 0, max(at.back_in, -(-at.need // at.y)), cat="Integer")
    u = pulp.LpVariable(f"u_{name}", 0, -(-at.full_need // at.y), cat="Integer")
    t = pulp.LpVariable(f"t_{name}", 0, -(-at.full_swap_need // at.x), cat="Integer")
    v = pulp.LpVariable(f"v_{name}", 0, 0 if stay else max(at.back, -(-at.need // at.x)), cat="Integer")
    ins, parts = pulp.LpVariable(f"ins_{name}", 0), pulp.LpVariable(f"parts_{name}", 0)
    p, q = pulp.LpVariable(f"p_{name}", cat="Binary"), pulp.LpVariable(f"q_{name}", cat="Binary")
    rows = [
        at.y * w + at.x * v >= at.need * z, at.y * u + at.x * v >= at.full_need * z, p <= z, q <= z,
        v >= at.back * p, parts >= back * p, ins >= whole * (z - p), w >= at.back_in * q, ins >= back_in * q,
        ins >= load * w, ins >= full * u, parts >= swap * v,
    ]  # fmt: skip
    if not stay:
        rows += [parts >= whole_in * (z - q), at.y * w + at.x * t >= at.full_swap_need * z, parts >= full_swap * t]
    for row in rows:
        problem += row
    return ins, parts
