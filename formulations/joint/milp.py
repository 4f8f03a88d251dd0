"""MILP model of F10 joint (PuLP): one-hot levels, and plans for the levels that share them.

Sets         residences s with levels V[s] and uses U[s]; layers t; for an input classes of levels with the same plans;
             C[t] combinations of them, P[c] their plans
Parameters   banks[v], write[v], once[v]; for a plan p its banks[p] and extra[p]; B                         (integers)
Variables    x[s, u, v] in {0, 1}: level v until use u;  y[t, c, p] in {0, 1}: levels of classes c, with plan p
Objective    min sum once[v] x[s, u, v] + sum extra[p] y[t, c, p] + sum write[v] x[s, last u, v] + constant
Constraints  (ONE)       sum_v x[s, u, v] = 1
             (PLAN)      sum of y[t, c, p] over the c with a class = sum of x over its levels  (sum of all y = 1)
             (SHRINK)    sum_{v >= k} x[s, u', v] <= sum_{v >= k} x[s, u, v] for u' after u and every level k
             (KEEP)      x[s, u, kept] <= x[s, u', loaded] + x[s, u', kept] for weights and the use u' before u; 0 at
                         the first use
             (CAPACITY)  sum banks[v] x[s, u, v] + sum banks[p] y[t, c, p] <= B for every t, in grains: with g the
                         gcd of all banks[v], plan p takes floor(B / g) - floor((B - banks[p]) / g) of floor(B / g)
Extra bytes stand beside the levels that they belong to, so the relaxation is the convex hull of every layer alone; only
CAPACITY couples.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import pulp

from formulations.joint.problem import KEPT, Choice, Joint, Step
from formulations.problem import Model

Terms = list[tuple[pulp.LpVariable, int]]


def _sum(terms: Terms) -> pulp.LpAffineExpression:
    # variables may come several times; their coefficients add up
    found: dict[pulp.LpVariable, int] = {}
    for x, factor in terms:
        found[x] = found.get(x, 0) + factor
    return pulp.LpAffineExpression(found.items())


def milp(joint: Joint) -> Model[Choice]:
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
            if not at and residence.first < len(xs):
                problem += _sum([(x, 1) for x in xs[residence.first :]]) == 0
            for k in (KEPT,) if residence.weights and at else range(1, len(xs)) if at else ():
                before = [(uses[at - 1][j], -1) for j in residence.before(k)]
                problem += _sum([(x, 1) for x in xs[k:]] + before) <= 0
        cost += zip(uses[-1], residence.write, strict=True)
    for t, step in enumerate(joint.steps):
        held = {k: levels[k][joint.residences[k].use(t)] for k in joint.live[t]}
        grain = joint.grain(t)
        taken: Terms = [
            (x, b // grain) for k, xs in held.items() for x, b in zip(xs, joint.residences[k].taken(t), strict=True)
        ]
        constant += step.fixed
        for once, k in zip(step.once, step.inputs, strict=True):
            if k >= 0:
                cost += zip(held[k], once, strict=True)
            else:
                constant += once[0]
        needs, ys = _plans(problem, t, step, [held[k] for k in step.axes], cost)
        taken += [(y, joint.grains(need, grain)) for y, need in zip(ys, needs, strict=True)]
        problem += _sum(taken) <= joint.banks // grain
    unit = gcd(*(factor for _, factor in cost)) or 1
    problem.setObjective(_sum([(x, factor // unit) for x, factor in cost]))

    def decode(_: pulp.LpProblem) -> Choice:
        return joint.price(
            [[max(range(len(xs)), key=lambda v: xs[v].value() or 0.0) for xs in uses] for uses in levels]
        )

    return Model(problem, decode, constant, unit, priced=True)


def _plans(
    problem: pulp.LpProblem, t: int, step: Step, axes: Sequence[Sequence[pulp.LpVariable]], cost: Terms
) -> tuple[list[int], list[pulp.LpVariable]]:
    """Add the plans of a layer; return their banks, and the variable of each."""
    choices = list(step.choices())
    ys = [pulp.LpVariable(f"y{t}_{number}", cat="Binary") for number in range(len(choices))]
    problem += _sum([(y, 1) for y in ys] or [(pulp.LpVariable(f"n{t}", 0, 0), 1)]) == 1
    for axis, xs in enumerate(axes):
        for number, members in enumerate(step.classes(axis)):
            mine = [(y, 1) for y, (numbers, _, _) in zip(ys, choices, strict=True) if numbers[axis] == number]
            problem += _sum([*mine, *((xs[v], -1) for v in members)]) == 0
    cost += [(y, extra) for y, (_, _, extra) in zip(ys, choices, strict=True)]
    return [need for _, need, _ in choices], ys
