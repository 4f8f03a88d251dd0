"""CP-SAT model of F7 hybrid: chains of options.

Sets, parameters, variables, objective and (FLOW) as in `formulations.hybrid.milp`.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from formulations.hybrid.milp import Priced
from formulations.hybrid.options import Option
from formulations.hybrid.space import Cut
from formulations.problem import Model


def build_chains(options: Priced, stages: int) -> Model[list[tuple[Cut, Option]]]:
    """Return the model."""
    model = cp_model.CpModel()
    flows: dict[tuple[int, bool], tuple[list[cp_model.IntVar], list[cp_model.IntVar]]] = {(0, False): ([], [])}
    made: list[tuple[cp_model.IntVar, tuple[Cut, Option], int]] = []
    for (cut, option), cost in options.items():
        for behind in (False,) if cut.whole else (False, True):
            x = model.new_bool_var(f"x{len(made)}")
            made.append((x, (cut, option), cost))
            flows.setdefault((cut.begin, behind), ([], []))[0].append(x)
            flows.setdefault((cut.end, cut.whole), ([], []))[1].append(x)
    for (point, behind), (out, into) in flows.items():
        if (point, behind) == (0, False):
            model.add_exactly_one(out)
        elif point < stages:
            model.add(sum(out) == sum(into))
    model.minimize(sum(cost * x for x, _, cost in made))

    def decode(solver: cp_model.CpSolver) -> list[tuple[Cut, Option]]:
        return sorted((key for x, key, _ in made if solver.boolean_value(x)), key=lambda key: key[0])

    return Model(model, decode)
