"""Why a plan of a whole network takes what it takes: every problem but tiling and slicing.

What is relaxed are pins, one at a time, and the machine's scalar fields (`solver.why.fields`): memories, lanes and
rates are doubled, times and prices halved, each by itself, and the question is solved again. So "binds" means here:
with twice as much of it there is a better plan.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from formulations.pins import Decision
from instances.buffers import Buffers
from instances.machine import Machine
from solver.plan import Objective, Plan
from solver.problem import Problem
from solver.question import Question
from solver.tables import percent
from solver.why import rivals
from solver.why.again import Again, Found
from solver.why.binding import trials
from solver.why.fields import FieldOf, fields_of, with_field
from solver.why.headline import Facts, chosen, sentence
from solver.why.model import About, Cause, Limit, Rival, Room, Trial
from solver.why.parts import plan_splits
from solver.why.relax import Relaxed, of_pins


def about_plan(problem: Problem, plan: Plan, layer: str | None, time_limit_s: float, others: bool = True) -> About:
    """Explain a plan, or a layer of a plan whose layers are decided by themselves, within a time limit."""
    start = time.monotonic()
    asked, own = problem.question(plan), _own(problem, plan, layer)
    again = Again.of(problem, asked if layer is None else replace(asked, layers=(layer,)), time_limit_s)
    if own.value is None:
        return _without(plan, layer or "", start)
    base, first = _base(again, own)
    found = [*first, *trials(again, base, of_pins(asked.machine, asked.pins))]
    found += trials(again, base, relaxations(asked, problem.name, plan.unit))
    limits = tuple(_limits(plan, layer, base))
    facts = Facts(plan.objectives[0], plan.unit, own.value, found, None, None, limits, "", 0, 0, 0, 0)
    cause, shown = chosen(facts)
    rival = _rivals(again, base, problem) if others else []
    return About(
        layer=layer or "", cause=cause, headline=_sentence(facts, cause, shown), objective=facts.objective,
        unit=facts.unit, value=own.value, status=_status(own, plan),
        splits=_splits(problem, plan, layer), rooms=tuple(_rooms(problem, plan)), busy="", trials=tuple(found),
        knee=None, rivals=rivals.best(rival), limits=limits,
        left_out=(*(one.change for one in found if one.status == "SKIPPED"),
                  *(one.decision for one in rival if one.status == "SKIPPED")),
        solves=again.solves, wall_s=time.monotonic() - start,
    )  # fmt: skip


def relaxations(asked: Question, problem: str, unit: str) -> Iterator[Relaxed]:
    """Yield every field twice as good that may matter; where buffers bring memories, these twice as large."""
    machine, pins = asked.machine, asked.pins
    if isinstance(asked.target, Buffers) and asked.target.memories:
        yield from _memories(asked.target, machine, pins)
        return
    for one in fields_of(machine, problem):
        value = _better(one)
        if value == one.value or not _matters(one, unit):
            continue
        easier = with_field(machine, one.path, value)
        if easier is not None:
            yield Relaxed(one.cause, one.path, f"{one.path} {value:g} instead of {one.value:g}", easier, pins)


def _memories(target: Buffers, machine: Machine, pins: tuple[str, ...]) -> Iterator[Relaxed]:
    for number, memory in enumerate(target.memories):
        larger = list(target.memories)
        larger[number] = memory.model_copy(update={"bytes": 2 * memory.bytes})
        roomy = target.model_copy(update={"memories": tuple(larger)})
        change = f"memory {memory.name} {2 * memory.bytes:,} bytes instead of {memory.bytes:,}"
        yield Relaxed("memory", memory.name, change, machine, pins, target=roomy)


def _matters(one: FieldOf, unit: str) -> bool:
    """Times and energies change no bytes, and energies no time."""
    energy = one.path.endswith(("_fj", "_mw"))
    return (one.more or one.cause == "memory") if unit not in ("ticks", "fJ", "nJ") else unit != "ticks" or not energy


def _better(one: FieldOf) -> int | float:
    if one.more:
        return 2 * one.value
    return one.value // 2 if isinstance(one.value, int) else one.value / 2


def _own(problem: Problem, plan: Plan, layer: str | None) -> Found:
    """What the plan says of its first objective."""
    for claim in problem.claims(plan) if layer is not None else ():
        if claim.part == layer:
            value = claim.values[0] if claim.values else None
            return Found(claim.status, value, claim.bounds[0] if claim.bounds else None, plan)
    return Found(plan.status, plan.objective.value if plan.objective else None, plan.bound, plan)


def _status(own: Found, plan: Plan) -> Any:
    return plan.status if own.status == "SKIPPED" else own.status


def _base(again: Again, own: Found) -> tuple[Found, list[Trial]]:
    """The best that is known; if the plan is not proven, with a trial of an exact engine."""
    if own.proven:
        return own, []
    found = again.solve()
    saved = None if found.value is None or own.value is None else max(0, own.value - found.value)
    name = again.question.engine
    trial = Trial(
        cause="engine", name=name, change=f"engine {name}", status=found.status, value=found.value,
        bound=found.bound, saves=saved, binds=None if saved is None else saved > 0, exact=found.proven,
    )  # fmt: skip
    bounds = [bound for bound in (own.bound, found.bound) if bound is not None]
    values = [value for value in (own.value, found.value) if value is not None]
    return Found(found.status, min(values), max(bounds, default=None)), [trial]


def _without(plan: Plan, layer: str, start: float) -> About:
    cause: Cause = "infeasible" if plan.conflicts or plan.status == "INFEASIBLE" else "unsolved"
    said = f"no plan exists: {'; '.join(plan.conflicts) or 'no reason is stated'}"
    return About(
        layer=layer, cause=cause, headline=said if cause == "infeasible" else "no plan was found in time",
        objective=plan.objectives[0], unit=plan.unit, value=None, status=plan.status, splits=(), rooms=(), busy="",
        trials=(), knee=None, rivals=(), limits=(), left_out=(), conflicts=plan.conflicts,
        wall_s=time.monotonic() - start,
    )  # fmt: skip


def _sentence(facts: Facts, cause: Cause, shown: Trial | None) -> str:
    """The cause, with what showed it: here fields are doubled or halved, not relaxed without limit."""
    if shown is None or cause in ("pin", "engine", "compulsory", "traffic"):
        return sentence(facts, cause, shown)
    share = percent((shown.saves or 0) / facts.value) if facts.value else "0"
    least = "" if shown.exact else "at least "
    left = sum(one.status == "SKIPPED" for one in facts.trials)
    far = f"so far, with {left} of {len(facts.trials)} things not solved again: " if left else ""
    return f"{far}{_SAID.get(cause, cause)}: with {shown.change} {least}{share} % less"


_SAID: dict[Cause, str] = {
    "memory": "memory on chip too small", "bandwidth": "bound by moving data", "startup": "start-up of calls",
    "compute": "bound by computing", "processor": "bound by a processor", "layer": "time of layers beside",
    "runs": "scattered transfers", "bursts": "latency of bursts", "arithmetic": "energy of MACs",
    "balanced": "balanced: no single field twice as good is worth a twentieth",
}  # fmt: skip


def _limits(plan: Plan, layer: str | None, base: Found) -> Iterator[Limit]:
    each = [part.must.get(plan.objectives[0]) for part in plan.parts if layer in (None, part.name)]
    least = sum(one for one in each if one is not None) if each and None not in each else None
    if least is not None and plan.unit == "bytes" and plan.objectives[0] in ("bytes", "dram"):
        means = "each weight, and each input and result of the network once"
        yield Limit(name="compulsory", value=least, means=means)
    if base.bound is not None:
        yield Limit(name="solver", value=base.bound, means="the bound that the search has proven")


def _splits(problem: Problem, plan: Plan, layer: str | None) -> Any:
    if layer is None:
        return plan_splits(plan, problem.figures(plan), problem.measures)
    first = plan.objectives[0]
    part = next((one for one in plan.parts if one.name == layer), None)
    if part is None or not part.measures:
        return ()
    value = part.measures[first]
    objective = Objective(value=value, unit=plan.unit, terms=part.terms.get(first) or {part.name: value})
    return plan_splits(plan.model_copy(update={"objective": objective}), {}, problem.measures)


def _rooms(problem: Problem, plan: Plan) -> Iterator[Room]:
    """Memories, as far as the plan says what lies in them."""
    for name, used, capacity in problem.rooms(plan):
        yield Room(memory=name, used=used, capacity=capacity)


def _rivals(again: Again, base: Found, problem: Problem) -> list[Rival]:
    """Every value of every closed choice, and what quick heuristics decide."""
    formulation = getattr(problem, "formulation", None)
    decisions: Mapping[str, Decision] = getattr(formulation, "decisions", {})
    found = list(rivals.rivals(again, base, rivals.of_choices(decisions, again.question.pins)))
    quick = [name for name in problem.quick if name in problem.engines and not problem.engines[name].proves]
    return [*found, *rivals.engines(again, base, quick)]
