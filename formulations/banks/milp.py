"""MILP model of F6 banks, bytes: state arcs (PuLP).

Sets         states v of `formulations.banks.graph`; arcs a = (v, w) that a stage joins
Parameters   bytes[a], the fewest that a program on the arc moves                                (integers)
Variables    x[a] in [0, 1]: whether the plan goes through the arc
Objective    min sum_a bytes[a] x[a]
Constraints  (FLOW)  sum of x over the arcs into v = sum over those out of v, for every v but the first and last ones;
                     the arcs out of the first state sum to 1
The matrix is a network's, so all corners are integral, and the simplex method ends in one: x need not be declared an
integer (searches for integers took 20 GB for 88,000 arcs).
"""

from __future__ import annotations

from math import gcd

import pulp

from formulations.banks.graph import Graph
from formulations.banks.states import BankPlan
from formulations.problem import Model


def state_arcs(graph: Graph) -> Model[BankPlan]:
    """Return the model."""
    costs = {(at, onward): size for at, arcs in enumerate(graph.arcs) for onward, size in arcs}
    unit = gcd(*costs.values()) or 1
    arcs = [(at, onward, pulp.LpVariable(f"x{number}", 0, 1)) for number, (at, onward) in enumerate(costs)]
    problem = pulp.LpProblem("state_arcs", pulp.LpMinimize)
    problem.setObjective(pulp.LpAffineExpression([(x, costs[at, onward] // unit) for at, onward, x in arcs]))
    flows: list[list[tuple[pulp.LpVariable, int]]] = [[] for _ in graph.arcs]
    for at, onward, x in arcs:
        flows[at].append((x, 1))
        flows[onward].append((x, -1))
    for state, number in graph.number.items():
        if state.done != graph.walk.all:
            right = 1 if number == 0 else 0
            expression = pulp.LpAffineExpression(flows[number])
            problem.addConstraint(pulp.LpConstraint(expression, pulp.LpConstraintEQ, rhs=right))

    def decode(_: pulp.LpProblem) -> BankPlan:
        return graph.follow({at: onward for at, onward, x in arcs if (x.value() or 0.0) > 0.5})

    return Model(problem, decode, unit=unit, priced=True)
