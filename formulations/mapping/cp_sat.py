"""CP-SAT model of F5 mapping: the variables and constraints of `formulations.mapping.milp`, all of them integers.

A flow y[e,p,q] is 0 or 1 here. Proofs come from the relaxation `formulations.mapping.problem.merged` first: equal cores
make assignments alike, and no bound rises above it soon; then this model with T at least that bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from formulations.mapping.latency import begun, scheduled
from formulations.mapping.problem import Aim, Limits, Mapping, Schedule

__all__ = ["MappingCpModel", "Terms", "cp_model_of", "flows", "prices", "weighted"]

#: Variables and their ticks.
Terms = list[tuple[cp_model.IntVar, int]]


@dataclass
class MappingCpModel:
    """The model with its variables; energies are divided by their unit."""

    model: cp_model.CpModel
    mapping: Mapping
    x: dict[tuple[int, int], cp_model.IntVar]
    """By task and place."""
    starts: dict[tuple[int, int], cp_model.IntVar] = field(default_factory=dict)
    """By task and processor, where an order is looked for."""

    def chosen(self, solver: cp_model.CpSolver) -> Schedule:
        """The schedule of a solution."""
        at = tuple(
            next(a for a in able if solver.boolean_value(self.x[i, a])) for i, able in enumerate(self.mapping.able)
        )
        begins: dict[tuple[int, int], float] = {key: solver.value(one) for key, one in self.starts.items()}
        return scheduled(self.mapping, at, begins) if begins else Schedule(at)

    def hint(self, schedule: Schedule) -> None:
        """Start from a schedule; of the blocks of a task that share a start one is known."""
        for (i, p), x in self.x.items():
            self.model.add_hint(x, schedule.at[i] == p)
        for key, start in begun(self.mapping, schedule).items() if self.starts else ():
            self.model.add_hint(self.starts[key], start)


def cp_model_of(
    mapping: Mapping, aim: Aim, limits: Limits, *, least: int = 0, most: int | None = None
) -> MappingCpModel:
    """Return the model.

    Parameters
    ----------
    least, most : int
        Bounds of the objective that are known.
    """
    model = cp_model.CpModel()
    x, busy = flows(model, mapping)
    period, energy, _ = prices(model, mapping, busy, limits)
    goal = period if aim == "period" else energy
    model.add(goal >= least)
    if most is not None:
        model.add(goal <= most)
    model.minimize(goal)
    return MappingCpModel(model, mapping, x)


def flows(
    model: cp_model.CpModel, mapping: Mapping
) -> tuple[dict[tuple[int, int], cp_model.IntVar], dict[tuple[int, int, int], Terms]]:
    """Add (RUN) and (FLOW).

    Returns
    -------
    x : dict
        By task and place whether it is there.
    busy : dict
        By task, place and processor what it keeps it busy with if it is there, copies included.
    """
    x = {(i, a): model.new_bool_var(f"x_{i}_{a}") for i, able in enumerate(mapping.able) for a in able}
    busy: dict[tuple[int, int, int], Terms] = {}
    for (i, a), one in x.items():
        for p, ticks in mapping.work(i, a):
            busy[i, a, p] = [(one, ticks)]
    for i, able in enumerate(mapping.able):
        model.add_exactly_one(x[i, a] for a in able)
    for e, (i, j) in enumerate(mapping.graph.edges):
        there: dict[int, list[cp_model.IntVar]] = {}
        for b in mapping.able[j]:
            for q, _ in mapping.places[b]:
                there.setdefault(q, []).append(x[j, b])
        y = {(a, q): model.new_bool_var(f"y_{e}_{a}_{q}") for a in mapping.able[i] for q in there}
        divided = any(len(mapping.places[b]) > 1 for b in mapping.able[j])
        for a in mapping.able[i]:
            readers = sum(y[a, q] for q in there)
            if not divided:
                model.add(readers == x[i, a])
                continue
            model.add(readers >= x[i, a])
            model.add(readers <= 2 * x[i, a])
            for q in there:
                model.add(y[a, q] <= x[i, a])
        for q, few in there.items():
            model.add(sum(y[a, q] for a in mapping.able[i]) == sum(few))
        for (a, q), one in y.items():
            for p, ticks in mapping.handed(e, a, q):
                busy[i, a, p].append((one, ticks))
    return x, busy


def weighted(terms: Terms) -> cp_model.LinearExprT:
    """Return the sum of variables times ticks."""
    return cp_model.LinearExpr.weighted_sum([v for v, _ in terms], [c for _, c in terms])


def prices(
    model: cp_model.CpModel, mapping: Mapping, busy: dict[tuple[int, int, int], Terms], limits: Limits
) -> tuple[cp_model.IntVar, cp_model.LinearExprT, list[cp_model.LinearExprT]]:
    """Add (LOAD), (CAP) and the limits; return period, energy (in its unit) and loads."""
    unit = mapping.energy_unit
    parts: list[Terms] = [[] for _ in mapping.processors]
    for (_, _, p), few in busy.items():
        parts[p] += few
    ceiling = sum(c for few in parts for _, c in few)
    top = max(1, limits.period if limits.period is not None else 100 * ceiling // limits.cap + 1)
    period, loads = model.new_int_var(1, top, "T"), [weighted(few) for few in parts]
    if limits.period is not None:
        model.add(period <= limits.period)  # may be 0: better than 1
    for load, number in zip(loads, mapping.number, strict=True):
        model.add(load <= number * period)
    used = sum(100 * g.cores * load for g, load in zip(mapping.processors, loads, strict=True))
    model.add(used <= limits.cap * mapping.total * period)
    energy = sum(w // unit * load for w, load in zip(mapping.watts, loads, strict=True))
    if limits.energy is not None:
        model.add(energy <= limits.energy // unit)
    return period, energy, loads
