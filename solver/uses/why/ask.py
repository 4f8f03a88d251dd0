"""`why`: explain a plan of any problem, and what more or less of a machine would be worth.

**All layers** of a plan together (`whole`): sums of their parts, and which cause costs how much.

**A plan of a whole network** (`about_plan`; every problem but tiling and slicing). What is relaxed are pins, one at a
time, and the machine's scalar fields (`solver.uses.why.fields`): memories, lanes and rates are doubled, times and
prices halved, each by itself, and the question is solved again. So "binds" means here: with twice as much of it there
is a better plan.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from formulations.pins import Decision
from instances.errors import InputError, choices
from instances.machine.machine import Machine
from instances.network.buffers import Buffers
from solver.ask.names import version
from solver.ask.options import as_texts, check_time_limit
from solver.ask.question import Question
from solver.calls.check import sound_plan
from solver.plan.plan import Objective, Plan
from solver.plan.why import About, Cause, Curve, Limit, Part, Rival, Room, Split, Trial, Why
from solver.problems.layers import LayerRow, is_layers, layer_rows
from solver.problems.problem import Problem
from solver.problems.registry import problem_of
from solver.problems.tiling import LayersProblem
from solver.show.tables import few, percent
from solver.uses.why import rivals
from solver.uses.why.again import Again, Found
from solver.uses.why.binding import trials
from solver.uses.why.fields import FieldOf, fields_of, with_field
from solver.uses.why.headline import Facts, chosen, sentence
from solver.uses.why.layers import about_layer, parts_alone, question_of
from solver.uses.why.marginal import curve
from solver.uses.why.parts import plan_splits
from solver.uses.why.relax import Relaxed, of_pins


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


def whole(plan: Plan, layers: Sequence[About]) -> About:
    """Return what is known of all layers: parts add up, and the cause is the one with most of the objective."""
    objective = plan.objectives[0]
    weights = Counter[str]()
    for one in layers:
        weights[one.cause] += one.value or 0
    cause = max(layers, key=lambda one: (weights[one.cause], one.value or 0)).cause
    splits = [
        _summed(name, unit, [split for one in layers for split in one.splits if split.measure == name])
        for name, unit in dict.fromkeys((split.measure, split.unit) for one in layers for split in one.splits)
    ]
    total = sum(weights.values())
    bounds = {name: _limit(name, layers) for name in dict.fromkeys(x.name for one in layers for x in one.limits)}
    return About(
        layer="", cause=cause, headline=_headline(plan, layers, weights, total), objective=objective, unit=plan.unit,
        value=plan.objective.value if plan.objective else None, status=plan.status, splits=tuple(splits), rooms=(),
        busy="", trials=(), knee=None, rivals=(), limits=tuple(one for one in bounds.values() if one is not None),
        left_out=(), conflicts=plan.conflicts, solves=sum(one.solves for one in layers),
        wall_s=sum(one.wall_s for one in layers),
    )  # fmt: skip


def _headline(plan: Plan, layers: Sequence[About], weights: Counter[str], total: int) -> str:
    """Which causes, in how many layers, with what share of the objective."""
    said = []
    for cause, value in weights.most_common():
        names = [one.layer for one in layers if one.cause == cause]
        share = percent(value / total) if total else "0"
        number = f"{len(names)} layer{'s' * (len(names) > 1)}"
        said.append(f"{cause} in {number} ({few(names)}; {share} % of {plan.objectives[0]})")
    return "; ".join(said)


def _summed(measure: str, unit: str, splits: Sequence[Split]) -> Split:
    parts = Counter[tuple[str, str]]()
    for split in splits:
        for part in split.parts:
            parts[part.what, part.cause] += part.value
    made = tuple(Part(what=what, cause=cause, value=value) for (what, cause), value in parts.items() if value)
    return Split(measure=measure, unit=unit, value=sum(split.value for split in splits), parts=made)


def _limit(name: str, layers: Sequence[About]) -> Limit | None:
    """The sum of a bound over all layers, None if one has none."""
    found = [limit for one in layers for limit in one.limits if limit.name == name]
    if len(found) < len(layers):
        return None
    return Limit(name=name, value=sum(limit.value for limit in found), means=f"{found[0].means}, summed")


#: Seconds for solving again, if nothing is said.
TIME_LIMIT_S = 60.0
#: Seconds below which a layer is not begun.
_LEAST_S = 1.0


def why(
    plan: Plan | str | os.PathLike[str],
    layer: str | None = None,
    *,
    marginal: str | Iterable[str] = (),
    time_limit_s: float | None = None,
    rivals: bool = True,
) -> Why:
    """Say where the time or the bytes of a plan go, what binds, and what other decisions cost.

    Parameters
    ----------
    layer : str, optional
        Only this layer, where layers are decided by themselves.
    marginal : names, optional
        Instead the objective over these machine fields (``ocm_bytes``, ``bandwidth``): solved again on a grid.
    time_limit_s : float, optional
        For solving again, 60 by default. What was not solved again is named.
    rivals : bool
        Whether to solve for the next-best decisions, too.

    Raises
    ------
    InputError
        If the plan has no such layer, the machine no such field, or the plan file cannot be read or says what
        does not follow from its decisions.
    """
    found = plan if isinstance(plan, Plan) else sound_plan(plan)
    limit = check_time_limit(time_limit_s) or TIME_LIMIT_S
    problem, names = problem_of(found), as_texts("marginal", marginal)
    _check_layer(found, layer)
    parts: tuple[About, ...] = ()
    curves: tuple[Curve, ...] = ()
    if names:
        curves = tuple(_curves(problem, found, layer, names, limit))
    elif is_layers(found) and isinstance(problem, LayersProblem):
        parts = tuple(_layers(problem, found, layer, limit, rivals))
    else:
        parts = (about_plan(problem, found, layer, limit, rivals),)
    return Why(
        certile=version(), problem=found.problem, network=found.network, machine=found.machine, engine=found.engine,
        parts=parts, curves=curves,
    )  # fmt: skip


def _check_layer(plan: Plan, layer: str | None) -> None:
    if layer is None:
        return
    names = [part.name for part in plan.parts]
    if "layers" not in problem_of(plan).takes:
        raise InputError(f"--layer {layer}: a plan of problem {plan.problem} is explained as a whole")
    if layer not in names:
        raise InputError(f"plan of {plan.network} has no layer {layer!r}; it has {choices(names)}")


def _layers(problem: LayersProblem, plan: Plan, layer: str | None, limit: float, rivals: bool) -> Iterator[About]:
    """The layer that is asked for; else all together, then each, the dearest ones solved again first."""
    rows = [row for row in layer_rows(plan) if layer in (None, row.layer)]
    end, made = time.monotonic() + limit, dict[str, About]()
    own = [row for row in rows if row.same_as is None or row.same_as not in {one.layer for one in rows}]
    for number, row in enumerate(sorted(own, key=_value, reverse=True)):
        left = end - time.monotonic()
        share = left / min(len(own) - number, 3)
        made[row.layer] = about_layer(problem, plan, row, share, rivals) if left > _LEAST_S else parts_alone(plan, row)
    every = [made[row.layer] if row.layer in made else _copy(row, made) for row in rows]
    if len(every) > 1:
        yield whole(plan, every)
    yield from every


def _copy(row: LayerRow, made: dict[str, About]) -> About:
    """What is known of a layer that equals another one."""
    return made[str(row.same_as)].model_copy(update={"layer": row.layer, "solves": 0, "wall_s": 0.0})


def _value(row: LayerRow) -> int:
    return row.objective.value if row.objective else 0


def _curves(problem: Problem, plan: Plan, layer: str | None, names: Sequence[str], limit: float) -> Iterator[Curve]:
    """The objective of the plan, or of a layer, over each field."""
    end = time.monotonic() + limit
    for number, name in enumerate(names):
        left = max(0.0, end - time.monotonic()) / (len(names) - number)
        if is_layers(plan):
            row = _row(plan, layer)
            question = question_of(problem, plan, row)
            yield curve(Again.of(problem, question, left), row.layer, name)
        else:
            question = problem.question(plan)
            yield curve(Again.of(problem, question, left), layer or "", name)


def _row(plan: Plan, layer: str | None) -> LayerRow:
    """The layer that is asked for, or the dearest one."""
    if layer is not None:
        found: LayerRow = plan.layer(layer)
        return found
    return max(layer_rows(plan), key=_value)
