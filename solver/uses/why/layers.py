"""Why a layer's nest takes what it takes: problems tiling and slicing."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from hwmodels.nest.price.closed_form import price
from hwmodels.transfer import PRICES
from instances.machine.machine import Machine
from solver.ask.question import Question
from solver.plan.plan import Plan
from solver.plan.why import About, Cause, Knee, Room, Trial
from solver.problems.layers import LayerRow
from solver.problems.problem import Problem
from solver.problems.tiling import LayersProblem
from solver.uses.why import relax
from solver.uses.why.again import Again, Found, next_memory, of_nest, rivals, trials
from solver.uses.why.headline import Facts, chosen, completed, sentence, without
from solver.uses.why.parts import busy, limits, nest_splits


def question_of(problem: Problem, plan: Plan, row: LayerRow) -> Question:
    """Return what a plan was asked about a layer; where operands have several homes, with those that it has."""
    asked = problem.question(plan)
    machine = plan.machine_data
    if row.schedule is not None and row.schedule.homes:
        homes = {**machine.homes, **{operand: (name,) for operand, name in row.schedule.homes}}
        machine = machine.model_copy(update={"homes": homes})
    options = plan.options
    return replace(asked, target=row.workload, machine=machine, full=options.full, bounding=options.bounding)


def parts_alone(plan: Plan, row: LayerRow) -> About:
    """Return where a layer's measures go, with nothing solved again."""
    return _alone(plan, row, plan.machine_data)


def _alone(plan: Plan, row: LayerRow, machine: Machine) -> About:
    if row.schedule is None or row.objective is None:
        return without(plan, row.layer, row.status, row.conflicts)
    layer, nest, objective = row.workload, row.schedule, plan.objectives[0]
    outcome = price(layer, machine, nest)
    taken = outcome.occupancy_bytes
    return About(
        layer=row.layer, cause="unsolved", headline="nothing was solved again: ask for this layer, or give more time",
        objective=objective, unit=plan.unit, value=row.objective.value, status=row.status,
        splits=nest_splits(layer, machine, nest, objective),
        rooms=tuple(Room(memory=name, used=taken.get(name, 0), capacity=n) for name, n in machine.memories.items()),
        busy=busy(layer, machine, outcome), left_out=("everything",),
        limits=tuple(limits(layer, machine, dict(nest.homes), objective, row.bound, _gap(row))),
    )  # fmt: skip


def _gap(row: LayerRow) -> str:
    """What the search says of a bound that is not met."""
    return str(row.stats.get("gap", ""))


def about_layer(problem: LayersProblem, plan: Plan, row: LayerRow, time_limit_s: float, others: bool = True) -> About:
    """Explain a layer of a plan within a time limit; `others`: also what other decisions cost."""
    again = Again.of(problem, question_of(problem, plan, row), time_limit_s)
    objective, machine = plan.objectives[0], again.question.machine
    alone = _alone(plan, row, machine)
    if row.schedule is None or alone.value is None:
        return alone
    base, first = again.best(Found(row.status, alone.value, row.bound))
    found = [*first, *_trials(again, base, row, objective)]
    outcome = price(row.workload, machine, row.schedule)
    gap = _gap(row) if base.bound == row.bound else ""
    bounds = tuple(limits(row.workload, machine, dict(row.schedule.homes), objective, base.bound, gap))
    knees = _knees(again, base, found, machine) or (None, None)
    facts = Facts(
        objective, plan.unit, alone.value, found, bounds, knees[0], knees[1], alone.busy, outcome.total, outcome.bytes
    )
    cause, shown = chosen(facts)
    said = sentence(facts, cause, shown)
    if not any(one.value is not None for one in found):
        cause, said = "unsolved", "nothing was solved again: more time is needed to say what binds"
    demands = of_nest(problem.formulation.decisions, row.workload, row.decision or {}, again.question.pins)
    return completed(alone, again, facts, cause, said, rivals(again, base, demands) if others else [])


def _trials(again: Again, base: Found, row: LayerRow, objective: str) -> list[Trial]:
    machine, pins = again.question.machine, again.question.pins
    paid = _paid(row, machine)
    asked = sorted(relax.of_nest(row.workload, machine, pins, objective), key=lambda one: -paid.get(one.cause, inf))
    found = list(trials(again, base, asked))
    nothing = all(not one.saves for one in found if one.cause in ("pin", "memory"))
    if pins and nothing and not base_is_least(row, objective):
        found += trials(again, base, [relax.together(machine)])
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
