"""MILP model of F4 engine (PuLP): the variables and constraints of `formulations.partial_engine.cp_sat`, linear.

Constraints  (ONE)    sum_b z[b] = 1
             (COUNT)  y*w1 + r*w2 + x*v >= (I - x)*(O - y)*z[b],  x*v1 + r'*v2 + y*w >= (I - x)*(O - y)*z[b]
             (WHOLE)  v >= r*p, parts >= the r least swaps*p, p <= z[b];  ins >= whole bytes*(z[b] - p)
             (WHOLE') w >= r'*q, ins >= the r' least loads*q, q <= z[b];  parts >= whole' bytes*(z[b] - q)
             (FULL)   y*w1' + r*w2' + x*v >= (I - 1 - x)*(O - y)*z[b];  ins >= second least load*w';
                      x*v1' + r'*v2' + y*w >= (I - x)*(O - 1 - y)*z[b];  parts >= second least swap*v'
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

from formulations.partial_engine.bounds import Counting, capped, counting
from formulations.partial_engine.space import Branch

__all__ = ["RunsModel", "runs_model"]


@dataclass
class RunsModel:
    """The model; the bytes of a solution are `base` and `unit` times its objective."""

    problem: pulp.LpProblem
    z: list[pulp.LpVariable]
    base: int
    unit: int

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
    problem, terms = pulp.LpProblem("runs", pulp.LpMinimize), []
    z = [pulp.LpVariable(f"z_{b}", cat="Binary") for b in range(len(branches))]
    problem += pulp.lpSum(z) == 1
    for b, branch in enumerate(branches):
        terms.append((branch.least - base) // unit * z[b])
        for g, (at, number) in enumerate(counts[b]):
            terms += [number * one for one in _game(problem, z[b], f"{b}_{g}", at, unit, stay=stay)]
    problem.setObjective(pulp.lpSum(terms))
    return RunsModel(problem, z, base, unit)


def _bytes(at: Counting) -> tuple[int, ...]:
    return at.load, at.swap, at.full, at.full_swap, at.back_bytes, at.whole_bytes, at.back_in_bytes, at.whole_in_bytes


def _game(
    problem: pulp.LpProblem, z: pulp.LpVariable, name: str, at: Counting, unit: int, *, stay: bool
) -> tuple[pulp.LpVariable, pulp.LpVariable]:
    """Add a game; return its bytes of inputs and of partial maps."""
    load, swap, full, full_swap, back, whole, back_in, whole_in = (size // unit for size in _bytes(at))
    most_w, most_v = at.most[0], 0 if stay else at.most[1]
    w = pulp.LpVariable(f"w_{name}", 0, most_w, cat="Integer")
    v = pulp.LpVariable(f"v_{name}", 0, most_v, cat="Integer")
    u, t = pulp.LpVariable(f"wf_{name}", 0, most_w), pulp.LpVariable(f"vf_{name}", 0, most_v)
    ins, parts = pulp.LpVariable(f"ins_{name}", 0), pulp.LpVariable(f"parts_{name}", 0)
    p, q = pulp.LpVariable(f"p_{name}", cat="Binary"), pulp.LpVariable(f"q_{name}", cat="Binary")
    rows = [
        p <= z, q <= z, v >= at.back * p, parts >= back * p, ins >= whole * (z - p), w >= at.back_in * q,
        ins >= back_in * q, ins >= load * w, ins >= full * u, parts >= swap * v,
        *([] if stay else [parts >= whole_in * (z - q), parts >= full_swap * t]),
    ]  # fmt: skip
    sides = [("w", at.ins, w, v), ("wf", at.full_ins, u, v)]
    sides += [] if stay else [("v", at.outs, v, w), ("vf", at.full_outs, t, w)]
    for side, entries, number, others in sides:
        first = pulp.LpVariable(f"{side}1_{name}", 0, entries.most, cat="Integer")
        then = pulp.LpVariable(f"{side}2_{name}", 0, max(most_w, most_v), cat="Integer")
        gains = entries.gain * first + entries.rest * then + entries.other * others
        rows += [first + then == number, gains >= entries.need * z]
    for row in rows:
        problem += row
    return ins, parts
