"""Why a layer's nest takes what it takes: problems tiling and slicing."""

from __future__ import annotations

import time
from dataclasses import replace
from math import inf

from hwmodels.nest.price.closed_form import price
from hwmodels.transfer import PRICES
from instances.machine.machine import Machine
from solver.ask.question import Question
from solver.plan.plan import Plan
from solver.plan.why import About, Cause, Knee, Limit, Rival, Room, Trial
from solver.problems.layers import LayerRow
from solver.problems.problem import Problem
from solver.problems.tiling import LayersProblem
from solver.uses.why import limits, relax, rivals
from solver.uses.why.again import Again, Found
from solver.uses.why.binding import next_memory, trials
from solver.uses.why.headline import Facts, chosen, sentence
from solver.uses.why.parts import nest_splits


def question_of(problem: Problem, plan: Plan, row: LayerRow) -> Question:
    """Return what a plan was asked about a layer; where operands have several homes, with those that it has."""
    asked = problem.question(plan)
    machine = plan.machine_data
    if row.schedule is not None and row.schedule.homes:
        homes = {**machine.homes, **{operand: (name,) for operand, name in row.schedule.homes}}
        machine = machine.model_copy(update={"homes": homes})
    options = plan.options
    return replace(asked, target=row.workload, machine=machine, full=options.full, bounding=options.bounding)


def about_layer(problem: LayersProblem, plan: Plan, row: LayerRow, time_limit_s: float, others: bool = True) -> About:
    """Explain a layer of a plan within a time limit; `others`: also what other decisions cost."""
    start = time.monotonic()
    again = Again.of(problem, question_of(problem, plan, row), time_limit_s)
    objective, unit = plan.objectives[0], plan.unit
    if row.schedule is None or row.objective is None:
        return _without(row, objective, unit, start)
    nest, machine = row.schedule, again.question.machine
    outcome = price(row.workload, machine, nest)
    base, first = _base(again, row)
    found = [*first, *_trials(again, base, row, objective)]
    bounds = tuple(limits.of_nest(row.workload, machine, dict(nest.homes), objective, base.bound))
    knee, enough = _knees(again, base, found, machine) or (None, None)
    facts = Facts(
        objective, unit, row.objective.value, found, knee, enough, bounds, limits.busy(row.workload, machine, outcome),
        outcome.total.calls, outcome.total.segments, outcome.total.bursts, outcome.bytes,
    )  # fmt: skip
    cause, shown = chosen(facts)
    rival = _rivals(again, base, problem, row) if others else []
    said = sentence(facts, cause, shown)
    if not any(one.value is not None for one in found):
        cause, said = "unsolved", "nothing was solved again: more time is needed to say what binds"
    return About(
        layer=row.layer, cause=cause, headline=said, objective=objective, unit=unit, value=facts.value,
        status=row.status, splits=nest_splits(row.workload, machine, nest, objective),
        rooms=tuple(_rooms(machine, outcome.occupancy_bytes)), busy=facts.busy, trials=tuple(found), knee=knee,
        enough=enough,
        rivals=rivals.best(rival), limits=bounds,
        left_out=(*(one.change for one in found if one.status == "SKIPPED"),
                  *(one.decision for one in rival if one.status == "SKIPPED")),
        solves=again.solves, wall_s=time.monotonic() - start,
    )  # fmt: skip


def _without(row: LayerRow, objective: str, unit: str, start: float) -> About:
    """A layer without a plan."""
    cause: Cause = "infeasible" if row.conflicts else "unsolved"
    said = f"no plan exists: {'; '.join(row.conflicts)}" if row.conflicts else "no plan was found in time"
    return About(
        layer=row.layer, cause=cause, headline=said, objective=objective, unit=unit, value=None, status=row.status,
        splits=(), rooms=(), busy="", trials=(), knee=None, rivals=(), limits=(), left_out=(),
        conflicts=row.conflicts, wall_s=time.monotonic() - start,
    )  # fmt: skip


def _base(again: Again, row: LayerRow) -> tuple[Found, list[Trial]]:
    """The best that is known under the plan's own conditions; if it is not proven, with an exact engine's trial."""
    value = row.objective.value if row.objective else None
    own = Found(row.status, value, row.bound)
    if own.proven:
        return own, []
    found = again.solve()
    trial = Trial(
        cause="engine", name=again.question.engine, change=f"engine {again.question.engine}", status=found.status,
        value=found.value, bound=found.bound, exact=found.proven,
        saves=None if found.value is None or value is None else max(0, value - found.value),
        binds=None if found.value is None or value is None else found.value < value,
    )  # fmt: skip
    bounds = [bound for bound in (own.bound, found.bound) if bound is not None]
    values = [one for one in (value, found.value) if one is not None]
    return Found(found.status, min(values), max(bounds, default=None)), [trial]


def _trials(again: Again, base: Found, row: LayerRow, objective: str) -> list[Trial]:
    machine, pins = again.question.machine, again.question.pins
    paid = _paid(row, machine)
    asked = sorted(relax.of_nest(row.workload, machine, pins, objective), key=lambda one: -paid.get(one.cause, inf))
    found = list(trials(again, base, asked))
    nothing = all(not one.saves for one in found if one.cause in ("pin", "memory"))
    if pins and nothing and not base_is_least(row, objective):
        found += trials(again, base, [relax.together(machine, pins)])
    return found


def _paid(row: LayerRow, machine: Machine) -> dict[Cause, int]:
    """Ticks of the plan by what they are paid for: the dearest price is left out first, after what can be changed."""
    counts = row.counts
    if counts is None:
        return {}
    on = machine.transfers[0]
    computing = max(0, row.objective.terms.get("compute", 0)) if row.objective else 0
    paid: dict[Cause, int] = {"compute": computing, "layer": machine.layer_ticks}
    for name, one in PRICES.items():
        paid[one.cause] = paid.get(one.cause, 0) + getattr(counts, name) * getattr(on, one.field)
    return paid


def base_is_least(row: LayerRow, objective: str) -> bool:
    """Whether a layer moves no more than each needed element once."""
    least = row.part.must.get("bytes")
    return objective == "bytes" and row.objective is not None and row.objective.value == least


def _knees(again: Again, base: Found, found: list[Trial], machine: Machine) -> tuple[Knee, Knee] | None:
    """Sizes of the memory that saves most without limit: the next that helps, and the one that is enough."""
    alone = [one for one in found if one.cause == "memory" and one.saves and one.name != "all buffers"]
    most = max(alone, key=lambda one: one.saves or 0, default=None)
    if most is None:
        return None
    memory = next(name for name in machine.memories if relax.memory_field(name) == most.name)
    return next_memory(again, base, memory, relax.ENDLESS)


def _rivals(again: Again, base: Found, problem: LayersProblem, row: LayerRow) -> list[Rival]:
    decisions = problem.formulation.decisions
    demands = rivals.of_nest(decisions, row.workload, row.decision or {}, again.question.pins)
    return list(rivals.rivals(again, base, demands))


def _rooms(machine: Machine, taken: dict[str, int]) -> list[Room]:
    return [Room(memory=name, used=taken.get(name, 0), capacity=size) for name, size in machine.memories.items()]


def parts_alone(plan: Plan, row: LayerRow) -> About:
    """Return where a layer's measures go, with nothing solved again."""
    objective, unit = plan.objectives[0], plan.unit
    if row.schedule is None or row.objective is None:
        return _without(row, objective, unit, time.monotonic())
    nest, machine = row.schedule, plan.machine_data
    outcome = price(row.workload, machine, nest)
    bounds: tuple[Limit, ...] = tuple(
        limits.of_nest(row.workload, machine, dict(nest.homes), objective, row.bound)
    )  # fmt: skip
    return About(
        layer=row.layer, cause="unsolved", headline="nothing was solved again: ask for this layer, or give more time",
        objective=objective, unit=unit, value=row.objective.value, status=row.status,
        splits=nest_splits(row.workload, machine, nest, objective),
        rooms=tuple(_rooms(machine, outcome.occupancy_bytes)),
        busy=limits.busy(row.workload, machine, outcome), trials=(), knee=None, rivals=(), limits=bounds,
        left_out=("everything",),
    )  # fmt: skip
