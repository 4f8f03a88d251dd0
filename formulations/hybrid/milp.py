"""MILP model of F7 hybrid: chains of options as a unit flow (PuLP).

Sets         nodes (c, w): a cut point, and whether the group before it is in one piece; options o of groups [a, b)
Parameters   cost[o], of all pieces with the best programs                                      (integers)
Variables    x[o, w] in {0, 1}: whether an option is chosen behind a group of that kind; none in one piece behind one
Objective    min sum cost[o] x[o, w]
Constraints  (FLOW)  what comes into a node leaves it, but for the first node and the last cut point; one option leaves
             the first node
"""

from __future__ import annotations

from collections.abc import Mapping

import pulp

from formulations.hybrid.options import Option
from formulations.hybrid.space import Cut
from formulations.problem import Model

#: An option with its group, and what it costs.
Priced = Mapping[tuple[Cut, Option], int]


def chains(options: Priced, stages: int) -> Model[list[tuple[Cut, Option]]]:
    """Return the model."""
    problem = pulp.LpProblem("chains", pulp.LpMinimize)
    flows: dict[tuple[int, bool], list[tuple[pulp.LpVariable, int]]] = {}
    made: list[tuple[pulp.LpVariable, tuple[Cut, Option], int]] = []
    for (cut, option), cost in options.items():
        for behind in (False,) if cut.whole else (False, True):
            x = pulp.LpVariable(f"x{len(made)}", cat="Binary")
            made.append((x, (cut, option), cost))
            flows.setdefault((cut.begin, behind), []).append((x, 1))
            flows.setdefault((cut.end, cut.whole), []).append((x, -1))
    problem.setObjective(pulp.LpAffineExpression([(x, cost) for x, _, cost in made]))
    flows.setdefault((0, False), [])
    for (point, behind), terms in flows.items():
        if point < stages:
            right = 1 if (point, behind) == (0, False) else 0
            problem.addConstraint(pulp.LpConstraint(pulp.LpAffineExpression(terms), pulp.LpConstraintEQ, rhs=right))

    def decode(_: pulp.LpProblem) -> list[tuple[Cut, Option]]:
        return sorted((key for x, key, _ in made if (x.value() or 0) > 0.5), key=lambda key: key[0])

    return Model(problem, decode, priced=True)
