"""CP-SAT model of F6 banks, bytes: state arcs.

Sets, parameters, variables, objective and (FLOW) as in `formulations.banks.milp`; the relaxation that CP-SAT solves at
its root is the network's, so it proves there too.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from formulations.banks.graph import Graph
from formulations.banks.states import BankPlan
from formulations.problem import Model


def build_arcs(graph: Graph) -> Model[BankPlan]:
    """Return the model."""
    model = cp_model.CpModel()
    arcs: list[tuple[int, int, cp_model.IntVar]] = []
    flows: list[tuple[list[cp_model.IntVar], list[cp_model.IntVar]]] = [([], []) for _ in graph.arcs]
    costs = []
    for at, ways in enumerate(graph.arcs):
        for onward, size in ways:
            x = model.new_bool_var(f"x{len(arcs)}")
            arcs.append((at, onward, x))
            costs.append(size)
            flows[at][0].append(x)
            flows[onward][1].append(x)
    for state, number in graph.number.items():
        if state.done != graph.walk.all:
            out, into = flows[number]
            if number == 0:
                model.add_exactly_one(out)
            else:
                model.add(sum(out) == sum(into))
    model.minimize(sum(cost * x for cost, (_, _, x) in zip(costs, arcs, strict=True)))

    def decode(solver: cp_model.CpSolver) -> BankPlan:
        return graph.follow({at: onward for at, onward, x in arcs if solver.boolean_value(x)})

    return Model(model, decode)
