"""CP-SAT model of F10 joint: the sets, variables and constraints of `formulations.joint.milp` on Booleans.

One-hot levels and plans are exactly-one constraints; SHRINK is on the numbers of banks. The relaxation of the linear
constraints carries the proof, so it is solved in full (`linearization_level` 2): without it the bound hardly moves. A
heuristic's levels are the hint.
"""

from __future__ import annotations

from collections.abc import Sequence

from ortools.sat.python import cp_model

from formulations.joint.problem import KEPT, Choice, Joint
from formulations.problem import Model


def cp_sat(joint: Joint, hint: Choice | None = None) -> Model[Choice]:
    """Build the model."""
    model = cp_model.CpModel()
    levels = tuple(
        tuple(tuple(model.new_bool_var(f"x{s}_{u}_{v}") for v in range(len(r.banks))) for u in range(len(r.uses)))
        for s, r in enumerate(joint.residences)
    )
    cost: list[cp_model.LinearExprT] = [joint.constant]
    for residence, uses in zip(joint.residences, levels, strict=True):
        for at, xs in enumerate(uses):
            model.add_exactly_one(xs)
            for k in range(residence.first, len(xs)) if not at else ():
                model.add(xs[k] == 0)
            for k in (KEPT,) if residence.weights and at else range(1, len(xs)) if at else ():
                model.add(sum(xs[k:]) <= sum(uses[at - 1][j] for j in residence.before(k)))
        cost.append(cp_model.LinearExpr.weighted_sum(uses[-1], residence.write))
    for t, step in enumerate(joint.steps):
        held = {k: levels[k][joint.residences[k].use(t)] for k in joint.live[t]}
        grain = joint.grain(t)
        taken = [
            cp_model.LinearExpr.weighted_sum(xs, [banks // grain for banks in joint.residences[k].taken(t)])
            for k, xs in held.items()
        ]
        cost.append(step.fixed)
        for once, k in zip(step.once, step.inputs, strict=True):
            cost.append(cp_model.LinearExpr.weighted_sum(held[k], once) if k >= 0 else once[0])
        choices = list(step.choices())
        ys = [model.new_bool_var(f"y{t}_{number}") for number in range(len(choices))]
        model.add_exactly_one(ys)
        for axis, k in enumerate(step.axes):
            for number, members in enumerate(step.classes(axis)):
                mine = [y for y, (numbers, _, _) in zip(ys, choices, strict=True) if numbers[axis] == number]
                model.add(sum(mine) == sum(held[k][v] for v in members))
        taken.append(cp_model.LinearExpr.weighted_sum(ys, [joint.grains(need, grain) for _, need, _ in choices]))
        cost.append(cp_model.LinearExpr.weighted_sum(ys, [extra for _, _, extra in choices]))
        model.add(sum(taken) <= joint.banks // grain)
    model.minimize(sum(cost))
    if hint is not None:
        _hint(model, levels, hint)

    def decode(solver: cp_model.CpSolver) -> Choice:
        return joint.price(
            [[next(v for v, x in enumerate(xs) if solver.boolean_value(x)) for xs in uses] for uses in levels]
        )

    return Model(model, decode, turns=True, parameters={"linearization_level": 2})


def _hint(model: cp_model.CpModel, levels: Sequence[Sequence[Sequence[cp_model.IntVar]]], hint: Choice) -> None:
    for uses, chosen in zip(levels, hint.levels, strict=True):
        for xs, level in zip(uses, chosen, strict=True):
            for v, x in enumerate(xs):
                model.add_hint(x, v == level)
