"""Decisions: those fields of a plan file from which all others follow, taken out of a plan and read back.

What is derived (prices, counts, occupancy, replays, names of the target) is neither stored nor read: of a schedule that
a person or another tool writes down nothing else is needed. A whole plan is decisions too; the rest of it is ignored.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from formulations.problem import Part
from formulations.tiling.part import NestPart
from instances.errors import InputError
from instances.library_format import Instance
from instances.validation import explain_faults, validate_as
from solver.generic import GenericProblem, as_json
from solver.mapping.board import BoardProblem
from solver.options import pick_layers, pick_pins
from solver.plan import GenericPlan, Plan
from solver.problem import Problem
from solver.problems import pick_problem
from solver.question import Question
from solver.search import Answer
from solver.tiling.problem import LayersProblem
from solver.verdict import judged
from solver.whole import WholeProblem

#: Fields, and of records in them their fields; None: all of it.
Fields = Mapping[str, "Fields | None"]

#: By problem.
DECISIONS: Mapping[str, Fields] = {
    "mapping": {
        "cpu_config": None, "tasks": dict.fromkeys(("task", "processor", "share", "start", "stage")),
        "waiting": dict.fromkeys(("source", "target", "buffers")),
    },
    "applications": {"cpu_config": None, "tasks": {"task": None, "processor": None}, "replay": {"draws": None}},
}  # fmt: skip


# ---- out of a plan ---------------------------------------------------------------------------------------------------


def decisions(plan: Plan) -> dict[str, Any]:
    """Return the decisions of a plan as JSON data; nothing if it has no schedule."""
    if plan.objective is None:
        return {}
    if isinstance(plan, GenericPlan):
        schedule = GenericPlan.TYPES[plan.problem].schedule
        return {"parts": [{"name": row.name, "schedule": as_json(schedule, row.schedule)} for row in plan.parts]}
    return dict(_kept(plan.model_dump(mode="json"), DECISIONS[plan.problem]))


def _kept(data: Any, fields: Fields | None) -> Any:
    """Only these fields, without those that say nothing."""
    if isinstance(data, list):
        return [_kept(one, fields) for one in data]
    if fields is None or not isinstance(data, dict):
        return _full(data)
    return {name: _kept(data[name], inner) for name, inner in fields.items() if data.get(name) not in (None, {})}


def _full(data: Any) -> Any:
    """The same without fields that are null."""
    if isinstance(data, list):
        return [_full(one) for one in data]
    return {k: _full(v) for k, v in data.items() if v is not None} if isinstance(data, dict) else data


# ---- back ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """What is true of decisions."""

    values: dict[str, int]
    """Of the objectives; none if something is wrong."""
    faults: tuple[str, ...]
    schedules: int = 0
    """How many were priced and replayed."""


def question_of(instance: Instance) -> tuple[Problem[Any], Question]:
    """Return what an instance asks, without an engine; raises InputError where target or machine are other ones."""
    problem, target = pick_problem(instance.problem), instance.target.load()
    objectives = problem.objectives(list(instance.objectives), target)
    question = Question(
        target, instance.machine.load(), objectives, problem.name, pins=instance.pins,
        settings=instance.machine.settings, layers=instance.target.layers or None,
    )  # fmt: skip
    return problem, question


def parts_of(problem: Problem[Any], question: Question) -> Sequence[Part[Any]]:
    """Return what is decided, in the order of a plan."""
    if isinstance(problem, LayersProblem):
        target: Any = question.target
        if question.machine.off_chip:
            raise InputError(
                f"machine {question.machine.name}: the library has one memory off the chip for {problem.name}"
            )
        pins = pick_pins(question.pins, problem.formulation)
        layers, build = pick_layers(target, question.layers), problem.formulation.build
        return [NestPart(layer, question.machine, build, pins) for layer in layers]
    if not isinstance(problem, GenericProblem | WholeProblem):
        raise InputError(f"problem {problem.name}: the library has no instances of it")
    return problem.parts(question)


def judge(problem: Problem[Any], question: Question, data: Mapping[str, Any]) -> Found:
    """Price and replay decisions; whatever is wrong with them is a fault."""
    try:
        parts = parts_of(problem, question)
        schedules = _schedules(problem, question, parts, data)
        answers = [Answer(one, {}, dict.fromkeys(question.objectives), "FEASIBLE") for one in schedules]
        verdicts = judged(zip(parts, answers, strict=True))
    except InputError as error:
        return Found({}, (str(error),))
    faults = tuple(f"{one.part.name}: {line}" for one in verdicts for line in one.faults)
    if faults:
        return Found({}, faults, len(verdicts))
    values = {name: sum(one.values[name] for one in verdicts) for name in question.objectives}
    return Found(values, (), len(verdicts))


def _schedules(
    problem: Problem[Any], question: Question, parts: Sequence[Part[Any]], data: Mapping[str, Any]
) -> list[Any]:
    """The schedule of every part; raises InputError."""
    if isinstance(problem, GenericProblem):
        return list(_of_parts(problem, parts, data))
    made = _read(problem, question, data)
    try:
        if isinstance(problem, BoardProblem):
            return [problem.placed(made, parts[0])]
        found = [problem.decided(made, parts[0])]  # type: ignore[attr-defined]
    except ValidationError as error:
        raise InputError(" ".join(str(error).split())) from None
    if None in found:
        raise InputError("there is no schedule")
    return found


def _of_parts(problem: GenericProblem, parts: Sequence[Part[Any]], data: Mapping[str, Any]) -> Iterator[Any]:
    """The schedules of parts, whose other fields are ignored; raises InputError."""
    rows = data.get("parts")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError("parts: a list of objects is needed, with name and schedule each")
    if [row.get("name") for row in rows] != [part.name for part in parts]:
        raise InputError(f"parts: {len(rows)} of them, expected {', '.join(part.name for part in parts)}")
    for number, row in enumerate(rows):
        if row.get("schedule") is None:
            raise InputError(f"parts[{number}]: there is no schedule")
        yield validate_as(problem.types.schedule, row["schedule"], f"parts[{number}].schedule")


def _read(problem: Problem[Any], question: Question, data: Mapping[str, Any]) -> Any:
    """A plan with these decisions and nothing that follows from them; raises InputError."""
    fields = _completed(problem.name, question, dict(data))
    spec = DECISIONS[problem.name]
    head = {
        "problem": problem.name, "network": question.name, "machine_data": question.machine,
        "objectives": question.objectives, "pins": question.pins,
    }  # fmt: skip
    head["network_data"] = question.subject
    kept = {name: fields[name] for name in spec if name in fields}
    return _built(problem.plan, kept, spec, "").model_copy(update=head)


def _completed(problem: str, question: Question, data: dict[str, Any]) -> dict[str, Any]:
    """How many simulations are drawn if nothing is said."""
    if problem == "applications" and "replay" not in data:
        from formulations.applications.part import DRAWS

        return {**data, "replay": {"draws": DRAWS}}
    return data


def _built(model: type[BaseModel], data: Any, spec: Fields | None, where: str) -> Any:
    """A record with these fields; those that follow are missing. Raises InputError for others that are."""
    if not isinstance(data, dict):
        raise InputError(f"{where or 'decisions'}: an object is needed")
    if spec is None:  # all of it is decided
        return _valid(model, data, where)
    made = {}
    for name, field in model.model_fields.items():
        at = f"{where}.{name}" if where else name
        if name in data:
            made[name] = _value(field.annotation, data[name], spec.get(name), at)
        elif name in spec and field.is_required() and not _optional(field):
            raise InputError(f"decisions: field {at} is missing")
        else:
            made[name] = None if field.is_required() else field.get_default(call_default_factory=True)
    return model.model_construct(**made)


def _value(annotation: Any, data: Any, spec: Fields | None, where: str) -> Any:
    """A field's value, records in it built by `_built`."""
    models = [one for one in _members(annotation) if isinstance(one, type) and issubclass(one, BaseModel)]
    rows = [one for one in _members(annotation) if get_origin(one) is tuple]
    if spec is not None and isinstance(data, dict) and models:
        return _built(models[0], data, spec, where)
    if spec is not None and isinstance(data, list) and rows:
        inner = get_args(rows[0])[0]
        return tuple(_value(inner, one, spec, f"{where}[{n}]") for n, one in enumerate(data))
    return _valid(annotation, data, where)


def _valid(annotation: Any, data: Any, where: str) -> Any:
    try:
        return TypeAdapter(annotation).validate_python(data)
    except ValidationError as error:
        model = annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else BaseModel
        raise InputError(f"{where or 'decisions'}: {explain_faults(error, model)}") from None


def _members(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def _optional(field: FieldInfo) -> bool:
    return type(None) in _members(field.annotation)


def with_engine(question: Question, engine: str, time_limit_s: float | None) -> Question:
    """Return a question that can be solved; raises InputError if the problem has no such engine."""
    chosen = pick_problem(question.problem).engine(engine, question.objectives)
    return replace(question, engine=chosen, time_limit_s=time_limit_s)
