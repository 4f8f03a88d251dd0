"""The master of engine search: memories of buffers without addresses, for CP-SAT.

Variables   x[b,m], top[m] as in `formulations.placement`
Constraints (ONE); (LOAD) in every section s the bytes of m that are alive are at most top[m] <= cap[m]
            (CUT)  for sets B of buffers of m: not all of them are in m, or top[m] >= least[B] if they are
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from formulations.placement.cuts import Cut, Split
from formulations.placement.instance import Instance
from formulations.problem import Goal


@dataclass
class Master:
    """The model, made anew as cuts come."""

    instance: Instance
    cuts: list[Cut] = field(default_factory=list)

    def model(
        self, goal: Goal
    ) -> tuple[cp_model.CpModel, Mapping[tuple[str, str], cp_model.IntVar], Mapping[str, cp_model.IntVar]]:
        """Return the model, its x and its top."""
        instance, model = self.instance, cp_model.CpModel()
        x = {(b.name, m.name): model.new_bool_var("") for b in instance.buffers for m in instance.may(b)}
        top = {m.name: model.new_int_var(0, instance.capacity[m.name], m.name) for m in instance.memories}
        for b in instance.buffers:
            chosen = [x[b.name, m.name] for m in instance.may(b)]
            (model.add_exactly_one if b.spill is None else model.add_at_most_one)(chosen)
            for m in instance.may(b):
                model.add(top[m.name] >= b.size + (b.offset or 0)).only_enforce_if(x[b.name, m.name])
        for alive in instance.whole.alive:
            for m in instance.memories:
                inside = [x[b.name, m.name] * size for b, size in alive if (b.name, m.name) in x]
                model.add(sum(inside) <= top[m.name])
        for cut in self.cuts:
            all_in = [x[b, cut.memory] for b in sorted(cut.buffers)]
            if cut.least is None:
                model.add_bool_or([literal.negated() for literal in all_in])
            else:
                model.add(top[cut.memory] >= cut.least).only_enforce_if(all_in)
        measures = measures_of(instance, x, top)
        for name, most in goal.caps.items():
            model.add(measures[name] <= most)
        if goal.below is not None:
            model.add(measures[goal.measure] <= goal.below - 1)
        model.minimize(measures[goal.measure])
        return model, x, top


def measures_of(
    instance: Instance, x: Mapping[tuple[str, str], cp_model.IntVar], top: Mapping[str, cp_model.IntVar]
) -> Mapping[str, cp_model.LinearExprT]:
    """The measures as expressions."""
    outside: list[cp_model.LinearExprT] = [
        (b.spill or 0) * (1 - sum(x[b.name, m.name] for m in instance.may(b))) for b in instance.buffers if b.spill
    ]
    displaced: list[cp_model.LinearExprT] = [
        x[b.name, m.name] * (b.size * instance.rank(b, m.name)) for b in instance.buffers for m in instance.may(b)
    ]
    return {"bytes": sum(outside), "preference": sum(displaced), "peak": sum(top.values())}


def read(
    instance: Instance, solver: cp_model.CpSolver, x: Mapping[tuple[str, str], cp_model.IntVar],
    top: Mapping[str, cp_model.IntVar],
) -> Split:  # fmt: skip
    """Return what a solution says."""
    inside = {
        m.name: [b.name for b in instance.buffers if (b.name, m.name) in x and solver.value(x[b.name, m.name])]
        for m in instance.memories
    }
    return Split(inside, {name: solver.value(variable) for name, variable in top.items()})
