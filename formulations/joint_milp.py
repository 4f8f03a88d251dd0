"""MILP model of F10 joint (PuLP): one-hot levels, and plans for the levels that share them.

Sets         residences s with levels V[s] and uses U[s]; layers t; classes C[t] of levels with the same plans P[c]
Parameters   banks[v], write[v], once[v]; for a plan p its banks[p] and extra[p]; B                         (integers)
Variables    x[s, u, v] in {0, 1}: level v until use u;  y[t, c, p] in {0, 1}: a level of class c, with plan p
Objective    min sum once[v] x[s, u, v] + sum extra[p] y[t, c, p] + sum write[v] x[s, last u, v] + constant
Constraints  (ONE)       sum_v x[s, u, v] = 1
             (PLAN)      sum_p y[t, c, p] = sum of x over the levels of c of the first input   (= 1 if it never stays)
             (SHRINK)    sum_{v >= k} x[s, u', v] <= sum_{v >= k} x[s, u, v] for u' after u and every level k
             (CAPACITY)  sum banks[v] x[s, u, v] + sum banks[p] y[t, c, p] <= B for every t
A class of one plan needs no y. Extra bytes stand beside the levels that they belong to, so the relaxation is the convex
hull of every layer alone; only CAPACITY couples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import pulp

from formulations.joint import Joint

__all__ = ["Milp", "milp"]

Terms = list[tuple[pulp.LpVariable, int]]


@dataclass(frozen=True)
class Milp:
    """The model, its levels (residence, use, level), and what a unit of the objective is worth.

    Attributes
    ----------
    constant : int
        Bytes beside ``unit * objective``.
    """

    problem: pulp.LpProblem
    levels: tuple[tuple[tuple[pulp.LpVariable, ...], ...], ...]
    unit: int
    constant: int

    def chosen(self) -> list[list[int]]:
        """The levels of a solution."""
        return [[max(range(len(xs)), key=lambda v: xs[v].value() or 0.0) for xs in uses] for uses in self.levels]


def _sum(terms: Terms) -> pulp.LpAffineExpression:
    # variables may come several times; their coefficients add up
    found: dict[pulp.LpVariable, int] = {}
    for x, factor in terms:
        found[x] = found.get(x, 0) + factor
    return pulp.LpAffineExpression(found.items())


def milp(joint: Joint) -> Milp:
    """Build the model."""
    problem = pulp.LpProblem("joint", pulp.LpMinimize)
    levels = tuple(
        tuple(
            tuple(pulp.LpVariable(f"x{s}_{u}_{v}", cat="Binary") for v in range(len(r.banks)))
            for u in range(len(r.uses))
        )
        for s, r in enumerate(joint.residences)
    )
    cost: Terms = []
    constant = joint.constant
    for residence, uses in zip(joint.residences, levels, strict=True):
        for at, xs in enumerate(uses):
            problem += _sum([(x, 1) for x in xs]) == 1
            for k in range(1, len(xs)) if at else ():
                problem += _sum([(x, 1) for x in xs[k:]] + [(x, -1) for x in uses[at - 1][k:]]) <= 0
        cost += zip(uses[-1], residence.write, strict=True)
    for t, step in enumerate(joint.steps):
        held = {k: levels[k][joint.residences[k].use(t)] for k in joint.live[t]}
        taken: Terms = [(x, b) for k, xs in held.items() for x, b in zip(xs, joint.residences[k].banks, strict=True)]
        constant += step.fixed
        for once, k in zip(step.once, step.inputs, strict=True):
            if k >= 0:
                cost += zip(held[k], once, strict=True)
            else:
                constant += once[0]
        first = held[step.inputs[0]] if step.inputs[0] >= 0 else ()
        constant += _plans(problem, joint.banks, t, step.classes(), first, taken, cost)
    unit = gcd(*(factor for _, factor in cost)) or 1
    problem.setObjective(_sum([(x, factor // unit) for x, factor in cost]))
    return Milp(problem, levels, unit, constant)


def _plans(
    problem: pulp.LpProblem, banks: int, t: int, classes: dict[tuple[tuple[int, int], ...], tuple[int, ...]],
    first: Sequence[pulp.LpVariable], taken: Terms, cost: Terms,
) -> int:  # fmt: skip
    """Add the plans of a layer; return the bytes that do not depend on anything."""
    room, constant = banks, 0
    for c, (plans, members) in enumerate(classes.items()):
        chosen = [(first[v], 1) for v in members] if first else []
        if not plans:
            problem += _sum(chosen) == (0 if first else 1)  # no plan: the level is impossible
        elif len(plans) == 1:
            ((need, extra),) = plans
            taken += [(x, need) for x, _ in chosen]
            cost += [(x, extra) for x, _ in chosen]
            room, constant = (room, constant) if first else (room - need, constant + extra)
        else:
            ys = [pulp.LpVariable(f"y{t}_{c}_{p}", cat="Binary") for p in range(len(plans))]
            problem += _sum([(y, 1) for y in ys] + [(x, -1) for x, _ in chosen]) == (0 if first else 1)
            taken += [(y, need) for y, (need, _) in zip(ys, plans, strict=True)]
            cost += [(y, extra) for y, (_, extra) in zip(ys, plans, strict=True)]
    problem += _sum(taken) <= room
    return constant
