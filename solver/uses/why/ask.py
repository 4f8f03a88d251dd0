"""`why`: explain a plan of any problem, and what more or less of a machine would be worth.

**All layers** of a plan together (`whole`): sums of their parts, and which cause costs how much.

**A plan of a whole network** (`about_plan`; every problem but tiling and slicing). What is relaxed are pins, one at a
time, and the machine's scalar fields (`solver.uses.why.relax`): memories, lanes and rates are doubled, times and
prices halved, each by itself, and the question is solved again. So "binds" means here: with twice as much of it there
is a better plan.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from formulations.pins import Decision
from instances.errors import InputError, choices
from solver.ask.names import version
from solver.ask.options import as_texts, check_time_limit
from solver.calls.check import sound_plan
from solver.plan.plan import Objective, Plan
from solver.plan.why import About, Cause, Curve, Limit, Part, Rival, Room, Split, Trial, Why
from solver.problems.joint import is_shared
from solver.problems.layers import LayerRow, is_layers, layer_rows
from solver.problems.problem import Problem
from solver.problems.registry import problem_of
from solver.problems.tiling import LayersProblem
from solver.show.tables import few, percent
from solver.uses.why.again import Again, Found, of_choices, rivals, trials
from solver.uses.why.headline import Facts, chosen, completed, sentence, without
from solver.uses.why.layers import about_layer, parts_alone, question_of
from solver.uses.why.marginal import curve
from solver.uses.why.parts import plan_splits
from solver.uses.why.relax import of_fields, of_more, of_pins


def about_plan(problem: Problem, plan: Plan, layer: str | None, time_limit_s: float, others: bool = True) -> About:
    """Explain a plan, or a layer of a plan whose layers are decided by themselves, within a time limit."""
    asked, own = problem.question(plan), _own(problem, plan, layer)
    again = Again.of(problem, asked if layer is None else replace(asked, layers=(layer,)), time_limit_s)
    if own.value is None:
        return without(plan, layer or "", plan.status, plan.conflicts)
    base, first = again.best(own)
    found = [*first, *trials(again, base, of_pins(asked.machine, asked.pins))]
    more = of_more(asked) if is_shared(plan) and plan.objectives[0] == "time" else ()
    fields = of_fields(asked, problem.name, plan.unit)
    found += trials(again, base, chain(more, fields), partial(problem.elsewhere, plan))
    facts = Facts(plan.objectives[0], plan.unit, own.value, found, tuple(_limits(plan, layer, base)))
    cause, shown = chosen(facts)
    alone = About(
        layer=layer or "", cause=cause, headline="", objective=facts.objective, unit=facts.unit, value=own.value,
        status=plan.status if own.status == "SKIPPED" else own.status, splits=_splits(problem, plan, layer),
        rooms=tuple(Room(memory=name, used=used, capacity=size) for name, used, size in problem.rooms(plan)),
        stalls=tuple(problem.stalls(plan)),
    )  # fmt: skip
    rival = _rivals(again, base, problem) if others else []
    return completed(alone, again, facts, cause, _sentence(facts, cause, shown), rival)


def _own(problem: Problem, plan: Plan, layer: str | None) -> Found:
    """What the plan says of its first objective."""
    for claim in problem.claims(plan) if layer is not None else ():
        if claim.part == layer:
            value = claim.values[0] if claim.values else None
            return Found(claim.status, value, claim.bounds[0] if claim.bounds else None)
    return Found(plan.status, plan.objective.value if plan.objective else None, plan.bound)


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


def _splits(problem: Problem, plan: Plan, layer: str | None) -> tuple[Split, ...]:
    if layer is None:
        return plan_splits(plan, problem.figures(plan), problem.measures)
    first = plan.objectives[0]
    part = next((one for one in plan.parts if one.name == layer), None)
    if part is None or not part.measures:
        return ()
    value = part.measures[first]
    objective = Objective(value=value, unit=plan.unit, terms=part.terms.get(first) or {part.name: value})
    return plan_splits(plan.model_copy(update={"objective": objective}), {}, problem.measures)


def _rivals(again: Again, base: Found, problem: Problem) -> list[Rival]:
    """Every value of every closed choice, and what quick heuristics decide."""
    formulation = getattr(problem, "formulation", None)
    decisions: Mapping[str, Decision] = getattr(formulation, "decisions", {})
    quick = [name for name in problem.doubting_engines if name in problem.engines and not problem.engines[name].proves]
    return rivals(again, base, of_choices(decisions, again.question.pins), quick)


def whole(plan: Plan, layers: Sequence[About]) -> About:
    """Return what is known of all layers: parts add up, and the cause is the one with most of the objective."""
    weights = Counter[str]()
    for one in layers:
        weights[one.cause] += one.value or 0
    cause = max(layers, key=lambda one: (weights[one.cause], one.value or 0)).cause
    splits = [
        _summed(name, unit, [split for one in layers for split in one.splits if split.measure == name])
        for name, unit in dict.fromkeys((split.measure, split.unit) for one in layers for split in one.splits)
    ]
    bounds = {name: _limit(name, layers) for name in dict.fromkeys(x.name for one in layers for x in one.limits)}
    return About(
        layer="", cause=cause, headline=_headline(plan, layers, weights), objective=plan.objectives[0],
        unit=plan.unit, value=plan.objective.value if plan.objective else None, status=plan.status,
        splits=tuple(splits), limits=tuple(one for one in bounds.values() if one is not None),
        conflicts=plan.conflicts, solves=sum(one.solves for one in layers), wall_s=sum(one.wall_s for one in layers),
    )  # fmt: skip


def _headline(plan: Plan, layers: Sequence[About], weights: Counter[str]) -> str:
    """Which causes, in how many layers, with what share of the objective."""
    said, total = [], weights.total()
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
    row = _row(plan, layer) if is_layers(plan) else None
    question = problem.question(plan) if row is None else question_of(problem, plan, row)
    for number, name in enumerate(names):
        left = max(0.0, end - time.monotonic()) / (len(names) - number)
        yield curve(Again.of(problem, question, left), row.layer if row else layer or "", name)


def _row(plan: Plan, layer: str | None) -> LayerRow:
    """The layer that is asked for, or the dearest one."""
    if layer is not None:
        found: LayerRow = plan.layer(layer)
        return found
    return max(layer_rows(plan), key=_value)
