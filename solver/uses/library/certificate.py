"""Decisions: those fields of a plan file from which all others follow, taken out of a plan and read back.

What is derived (prices, counts, occupancy, replays, names of the target) is neither stored nor read: of a schedule that
a person or another tool writes down nothing else is needed. A whole plan is decisions too; the rest of it is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from formulations.problem import Part
from instances.errors import InputError
from instances.library_format import Instance
from instances.validation import validate_as
from solver.ask.question import Question
from solver.plan.plan import Plan
from solver.problems.problem import Problem, as_json
from solver.problems.registry import pick_problem
from solver.problems.tiling import LayersProblem
from solver.search.loop import Answer
from solver.search.verdict import judged

# ---- out of a plan ---------------------------------------------------------------------------------------------------


def decisions(plan: Plan) -> dict[str, Any]:
    """Return the decisions of a plan as JSON data; nothing if it has no schedule."""
    if plan.objective is None:
        return {}
    schedule = Plan.TYPES[plan.problem].schedule
    return {"parts": [{"name": row.name, "schedule": as_json(schedule, row.schedule)} for row in plan.parts]}


# ---- back ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """What is true of decisions."""

    values: dict[str, int]
    """Of the objectives; none if something is wrong."""
    faults: tuple[str, ...]
    schedules: int = 0
    """How many were priced and replayed."""


def question_of(instance: Instance) -> tuple[Problem, Question]:
    """Return what an instance asks, without an engine; raises InputError where target or machine are other ones."""
    problem, target = pick_problem(instance.problem), instance.target.load()
    objectives = problem.objectives(list(instance.objectives), target)
    question = Question(
        target, instance.machine.load(), objectives, problem.name, pins=instance.pins,
        settings=instance.machine.settings, layers=instance.target.layers or None,
    )  # fmt: skip
    return problem, question


def parts_of(problem: Problem, question: Question) -> Sequence[Part[Any]]:
    """Return what is decided, in the order of a plan."""
    if isinstance(problem, LayersProblem) and question.machine.off_chip:
        raise InputError(f"machine {question.machine.name}: the library has one memory off the chip for {problem.name}")
    return problem.parts(question)


def judge(problem: Problem, question: Question, data: Mapping[str, Any]) -> Found:
    """Price and replay decisions; whatever is wrong with them is a fault."""
    try:
        parts = parts_of(problem, question)
        schedules = list(_of_parts(problem, parts, data))
        answers = [Answer(one, {}, dict.fromkeys(question.objectives), "FEASIBLE") for one in schedules]
        verdicts = judged(zip(parts, answers, strict=True))
    except InputError as error:
        return Found({}, (str(error),))
    faults = tuple(f"{one.part.name}: {line}" for one in verdicts for line in one.faults)
    if faults:
        return Found({}, faults, len(verdicts))
    values = {name: sum(one.values[name] for one in verdicts) for name in question.objectives}
    return Found(values, (), len(verdicts))


def _of_parts(problem: Problem, parts: Sequence[Part[Any]], data: Mapping[str, Any]) -> Iterator[Any]:
    """The schedules of parts, whose other fields are ignored; raises InputError."""
    rows = data.get("parts")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError("parts: a list of objects is needed, with name and schedule each")
    if [row.get("name") for row in rows] != [part.name for part in parts]:
        raise InputError(f"parts: {len(rows)} of them, expected {', '.join(part.name for part in parts)}")
    for number, row in enumerate(rows):
        if row.get("schedule") is None:
            raise InputError(f"parts[{number}]: there is no schedule")
        yield validate_as(Plan.TYPES[problem.name].schedule, row["schedule"], f"parts[{number}].schedule")


def with_engine(question: Question, engine: str, time_limit_s: float | None) -> Question:
    """Return a question that can be solved; raises InputError if the problem has no such engine."""
    chosen = pick_problem(question.problem).engine(engine, question.objectives)
    return replace(question, engine=chosen, time_limit_s=time_limit_s)
