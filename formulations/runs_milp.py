"""MILP model of F4 engine (PuLP): the variables and constraints of `formulations.runs_cp_sat`, linear.

Constraints  (ONE)    sum_b z[b] = 1
             (COUNT)  y*w + x*v >= (I - x)*(O - y)*z[b]
             (WHOLE)  v >= r*p, p <= z[b];  A >= whole bytes*(z[b] - p)
             (WHOLE') w >= r'*q, q <= z[b];  B >= whole' bytes*(z[b] - q)
             (EACH)   A >= load*w, B >= swap*v
             (STAY)   v = 0 if partial maps may not be stored; (WHOLE') is then left out, as its bytes cannot move
A and B are sums of bytes that are all multiples of the gcd of loads and swaps: the model counts in this unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import pulp

from formulations.runs import Branch
from formulations.runs_bounds import counting

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


def runs_model(branches: Sequence[Branch], *, stay: bool = False) -> RunsModel:
    """Return the model of some choices."""
    base = min(branch.least for branch in branches)
    counts = [[(counting(game), number) for game, number in branch.games] for branch in branches]
    unit = gcd(*(branch.least - base for branch in branches)) or 0
    for few in counts:
        for at, _ in few:
            unit = gcd(unit, at.load, at.swap, at.whole_bytes, at.whole_in_bytes)
    problem, terms, largest = pulp.LpProblem("runs", pulp.LpMinimize), [], 1
    z = [pulp.LpVariable(f"z_{b}", cat="Binary") for b in range(len(branches))]
    problem += pulp.lpSum(z) == 1
    for b, branch in enumerate(branches):
        terms.append((branch.least - base) // unit * z[b])
        for g, (at, number) in enumerate(counts[b]):
            w = pulp.LpVariable(f"w_{b}_{g}", 0, max(at.whole_in, -(-at.need // at.y)), cat="Integer")
            v = pulp.LpVariable(f"v_{b}_{g}", 0, 0 if stay else max(at.whole, -(-at.need // at.x)), cat="Integer")
            A, B = pulp.LpVariable(f"A_{b}_{g}", 0), pulp.LpVariable(f"B_{b}_{g}", 0)
            p, q = pulp.LpVariable(f"p_{b}_{g}", cat="Binary"), pulp.LpVariable(f"q_{b}_{g}", cat="Binary")
            problem += at.y * w + at.x * v >= at.need * z[b]
            problem += v >= at.whole * p
            problem += p <= z[b]
            problem += at.whole_bytes // unit * (z[b] - p) <= A
            problem += w >= at.whole_in * q
            problem += q <= z[b]
            if not stay:
                problem += at.whole_in_bytes // unit * (z[b] - q) <= B
            problem += at.load // unit * w <= A
            problem += at.swap // unit * v <= B
            terms += [number * A, number * B]
            sizes = (at.whole_bytes, at.whole_in_bytes, at.load, at.swap, branch.least - base)
            largest = max(largest, number, at.need, *(size // unit for size in sizes))
    problem.setObjective(pulp.lpSum(terms))
    return RunsModel(problem, z, base, unit, largest)
