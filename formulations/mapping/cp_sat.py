"""CP-SAT model of mapping: `formulations.mapping.flows`, all of its variables integers.

A flow y[e,p,q] is 0 or 1 here. Proofs come from the relaxation `formulations.mapping.space.merged` first: equal cores
make assignments alike, and no bound rises above it soon; then this model with T at least that bound.

Of one inference alone a block is an optional interval
Constraints  (BLOCK)  d[i,p] = what i and the copies of its result take on p                              (Eq. 3.7)
             (ALONE)  no two blocks on a processor overlap                                                (Eq. 3.6)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ortools.sat.python import cp_model

from formulations.mapping.flows import Flows, Terms
from formulations.mapping.latency import blocks_of
from formulations.mapping.space import Aim, Limits, Mapping, Schedule


@dataclass
class MappingCpModel:
    """The model with its variables."""

    model: cp_model.CpModel
    flows: Flows

    def chosen(self, solver: cp_model.CpSolver) -> Schedule:
        """The schedule of a solution."""
        return self.flows.chosen(solver.value)

    def hint(self, schedule: Schedule) -> None:
        """Start from a schedule."""
        for variable, value in self.flows.hints(schedule):
            self.model.add_hint(variable, value)


def _weighted(terms: Terms) -> cp_model.LinearExprT:
    return cp_model.LinearExpr.weighted_sum([v for v, _ in terms], [c for _, c in terms])


def flows(model: cp_model.CpModel, mapping: Mapping) -> Flows:
    """Return tasks at places; their rows are still to be added."""
    return Flows(mapping, model.new_bool_var, model.new_bool_var, _weighted)


def cp_model_of(
    mapping: Mapping, aim: Aim, limits: Limits, *, least: int = 0, most: int | None = None, latest: int | None = None
) -> MappingCpModel:
    """Return the model.

    `least`, `most`: bounds of the objective that are known. `latest`: of one inference alone, a latency that the plans
    that are looked for keep.
    """
    model = cp_model.CpModel()
    made = flows(model, mapping)
    ceiling = sum(c for few in made.busy.values() for _, c in few)
    top = max(1, limits.period if limits.period is not None else 100 * ceiling // limits.cap + 1)
    period = model.new_int_var(1, top, "T")
    if limits.period is not None:
        made.rows.append(period <= limits.period)  # may be 0: better than 1
    energy, loads = made.priced(period, limits, whole=True)
    goal = period if aim == "period" else energy
    if latest is not None:
        latency = _timed(model, made, latest, loads)
        goal = latency if aim == "latency" else goal
    for row in (*made.rows, goal >= least, *(() if most is None else (goal <= most,))):
        model.add(row)
    model.minimize(goal)
    return MappingCpModel(model, made)


def _timed(model: cp_model.CpModel, made: Flows, latest: int, loads: Sequence[Any]) -> cp_model.IntVar:
    """Add blocks in time; return the latency."""
    mapping, x, rows, blocks = made.mapping, made.x, made.rows, blocks_of(made.mapping)
    latency = model.new_int_var(mapping.shortest, max(mapping.shortest, latest), "L")
    rows.append(latency <= latest)  # may be 0: better than 1
    done = [model.new_int_var(0, latest, f"done_{i}") for i in range(len(mapping.times))]
    of = {block.start: block for block in blocks.values()}
    starts, ends, took = ({key: model.new_int_var(0, latest, f"{n}_{key}") for key in of} for n in "sed")
    lanes: list[list[cp_model.IntervalVar]] = [[] for _ in mapping.processors]
    for (i, p), block in blocks.items():
        key, there = block.start, x[i, block.places[0]]
        if len(block.places) > 1:
            there = model.new_bool_var(f"at_{i}_{p}")
            rows.append(there == made.sum(x[i, a] for a in block.places))
        lanes[p].append(model.new_optional_interval_var(starts[key], took[key], ends[key], there, f"b_{i}_{p}"))
    for key, block in of.items():
        rows += [took[key] == made.took(key[0], block.takes), ends[key] == starts[key] + took[key]]
    made.starts = starts
    made.chain(ends, done, latency, loads)
    for lane in lanes:
        model.add_no_overlap(lane)
    made.starts = {key: starts[block.start] for key, block in blocks.items()}
    return latency
