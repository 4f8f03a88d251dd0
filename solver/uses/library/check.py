"""Check instances of the library, and solutions that others found, without a solver.

Of an instance with values v and bound b:

* target, machine and the entry itself have the digests that it states;
* the decisions of the certificate, priced by closed forms and replayed by the referee, give v exactly, keep all pins,
  and fit the memories;
* b <= v_1, and status, gap and class follow from values, bounds and what engines said: no engine proves another value,
  none found a better one, none has a bound above v_1;
* of an infeasible one its conflicts are derived again, where that takes no solver.

What remains is the engines' proof that nothing is below b: only solving again shows it (`certile bench library`).
A solution of a stranger is decisions of an instance; it is judged alike, and compared with v and b.

**Decisions** are those fields of a plan file from which all others follow. What is derived (prices, counts, occupancy,
replays, names of the target) is neither stored nor read: of a schedule that a person or another tool writes down
nothing else is needed. A whole plan is decisions too; the rest of it is ignored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from formulations.problem import Part
from instances.errors import InputError
from instances.frozen import digest
from instances.jsonfile import Json, parse_json, read_bytes
from instances.library_format import Instance, instance, target_json
from instances.validation import validate_as
from solver.ask.question import Question
from solver.plan.claims import gap_of, unequal
from solver.plan.plan import Plan
from solver.problems.problem import Problem, as_json
from solver.problems.registry import pick_problem, problem_of
from solver.problems.tiling import LayersProblem
from solver.search.loop import Answer
from solver.search.verdict import verdicts_of

# ---- decisions -------------------------------------------------------------------------------------------------------


def decisions(plan: Plan) -> dict[str, Any]:
    """Return the decisions of a plan as JSON data; nothing if it has no schedule."""
    if plan.objective is None:
        return {}
    return {"parts": [{"name": row.name, "schedule": as_json(plan.types.schedule, row.schedule)} for row in plan.parts]}


@dataclass(frozen=True)
class Found:
    """What is true of decisions."""

    values: dict[str, int]
    """Of the objectives; none if something is wrong."""
    faults: tuple[str, ...]
    schedules: int = 0
    """How many were priced and replayed."""


def question_of(one: Instance) -> tuple[Problem, Question]:
    """Return what an instance asks, without an engine; raises InputError where target or machine are other ones."""
    problem, target = pick_problem(one.problem), one.target.load()
    objectives = problem.objectives(list(one.objectives), target)
    question = Question(
        target, one.machine.load(), objectives, problem.name, pins=one.pins,
        settings=one.machine.settings, layers=one.target.layers or None,
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
        verdicts = verdicts_of(zip(parts, answers, strict=True))
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
        yield validate_as(problem.types.schedule, row["schedule"], f"parts[{number}].schedule")


def with_engine(question: Question, engine: str, time_limit_s: float | None) -> Question:
    """Return a question that can be solved; raises InputError if the problem has no such engine."""
    chosen = pick_problem(question.problem).engine(engine, question.objectives)
    return replace(question, engine=chosen, time_limit_s=time_limit_s)


# ---- instances -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Checked:
    """What a check of an instance found."""

    name: str
    problem: str
    status: str
    problems: tuple[str, ...]
    """Everything that is not as the instance says, one line each."""
    schedules: int = 0
    """How many were priced and replayed."""
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether all is as it says."""
        return not self.problems


def check_instance(one: Instance) -> Checked:
    """Check an instance."""
    found, schedules, note = list(_stated(one)), 0, ""
    try:
        problem, question = question_of(one)
        if one.known.status == "INFEASIBLE":
            lines, note = _conflicts(one, [line for part in parts_of(problem, question) for line in _why(part)])
            found += lines
        else:
            said = judge(problem, question, one.certificate.plan)
            schedules = said.schedules
            found += [f"certificate: {fault}" for fault in said.faults]
            if not said.faults:
                found += unequal("known.values", one.known.values, said.values)
    except InputError as error:
        found.append(str(error))
    return Checked(one.name, one.problem, one.known.status, tuple(dict.fromkeys(found)), schedules, note)


def _why(part: Any) -> tuple[str, ...]:
    """Demands of a part that conflict; nothing if that takes a solver that is not there."""
    try:
        said: tuple[str, ...] = part.explain()
    except ImportError:
        return ()
    return said


def _conflicts(one: Instance, derived: Sequence[str]) -> tuple[list[str], str]:
    """What is wrong with stated conflicts, and what is not known of them."""
    stated = one.certificate.conflicts
    if not stated:
        return ["status INFEASIBLE without conflicts"], ""
    if not derived:
        return [], "conflicts are as an engine says: they take a solver"
    strange = [line for line in stated if not any(line == mine or line.endswith(mine) for mine in derived)]
    return [f"conflicts: {line!r} is not so" for line in strange], ""


def _stated(one: Instance) -> Iterator[str]:
    """What does not follow from what an instance says itself."""
    if one.digest != one.seal:
        yield f"digest: {one.digest[:18]}.. is stated, the entry has {one.seal[:18]}.."
    known, why, value = one.known, one.certificate, one.value
    if known.status == "INFEASIBLE":
        if known.values or known.bound is not None or why.plan:
            yield "status INFEASIBLE with values, a bound or a plan"
        if not why.proven_by:
            yield "status INFEASIBLE, and nobody proved it"
    elif list(known.values) != list(one.objectives):
        yield f"known.values: of {', '.join(known.values) or 'nothing'}, objectives are {', '.join(one.objectives)}"
    else:
        yield from _bounds(one)
    yield from unequal("difficulty", one.difficulty, why.difficulty)
    yield from unequal("known.gap", known.gap, gap_of(value, known.bound))
    said = {proof.by: proof for proof in why.proofs}
    for name in why.proven_by:
        proof = said.get(name)
        met = len(one.objectives) == 1 and proof is not None and value is not None and proof.bound == value
        if proof is None or not (proof.status in ("OPTIMAL", "INFEASIBLE") or met):
            yield f"proven_by: engine {name} did not prove it"
    if why.proven_by and known.status == "FEASIBLE":
        yield f"status FEASIBLE, but {', '.join(why.proven_by)} proved it"


def _bounds(one: Instance) -> Iterator[str]:
    """Values and bounds of engines against what is known."""
    known, value = one.known, one.value
    if known.bound is not None and value is not None and known.bound > value:
        yield f"bound {known.bound} is above the value {value}"
    if known.status == "OPTIMAL" and known.bound != value:
        yield f"status OPTIMAL with bound {known.bound} and value {value}"
    if known.status == "OPTIMAL" and not one.certificate.proven_by:
        yield "status OPTIMAL, and nobody proved it"
    if known.status == "FEASIBLE" and len(one.objectives) == 1 and known.bound == value:
        yield f"status FEASIBLE, but bound and value are {value}"
    bounds = [proof.bound for proof in one.certificate.proofs if proof.bound is not None]
    yield from unequal("known.bound", known.bound, max(bounds, default=None))
    for proof in one.certificate.proofs:
        if proof.status == "INFEASIBLE":
            yield f"engine {proof.by} says that there is no plan"
        if proof.value is not None and value is not None and proof.value < value:
            yield f"engine {proof.by} has a plan of {proof.value}, the best known is {value}"
        if proof.status == "OPTIMAL" and proof.value != value:
            yield f"engine {proof.by} proves {proof.value}, the best known is {value}"


# ---- what others found -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Solution:
    """What a stranger's solution is worth."""

    name: str
    """Of the instance, or of the file if none is known."""
    where: str
    values: dict[str, int]
    """None if it is not valid."""
    faults: tuple[str, ...]
    best: dict[str, int]
    """The values that are known."""
    gap: float | None = None
    """``(value - best) / value`` of the first objective; below 0 if it is better."""
    improves: bool = False
    refutes: str = ""
    """What the library claims and this solution refutes."""

    @property
    def valid(self) -> bool:
        """Whether it is a schedule of the instance."""
        return not self.faults

    def to_json(self) -> dict[str, object]:
        """Return it as a JSON object."""
        return {**asdict(self), "valid": self.valid}


def judge_solution(one: Instance, data: Mapping[str, Any], where: str = "") -> Solution:
    """Judge decisions of an instance; whatever is wrong with them is a fault."""
    known = one.known
    try:
        found = judge(*question_of(one), data)
    except InputError as error:
        return Solution(one.name, where, {}, (str(error),), known.values)
    if found.faults:
        return Solution(one.name, where, {}, found.faults, known.values)
    mine, best = tuple(found.values.values()), tuple(known.values.values())
    gap = (mine[0] - best[0]) / mine[0] if best and mine[0] else 0.0 if best else None
    return Solution(one.name, where, found.values, (), known.values, gap, not best or mine < best, refuted(one, mine))


def refuted(one: Instance, values: tuple[int, ...]) -> str:
    """Return what the library claims of an instance and a schedule with these (first) values refutes; "": nothing."""
    known, best = one.known, tuple(one.known.values.values())[: len(values)]
    if known.status == "INFEASIBLE":
        return "status INFEASIBLE"
    if known.bound is not None and values[0] < known.bound:
        return f"bound {known.bound} of {one.objectives[0]}"
    if known.status == "OPTIMAL" and values < best:
        return f"status OPTIMAL of {', '.join(f'{name} {value}' for name, value in known.values.items())}"
    return ""


def solutions(path: str | os.PathLike[str], among: Sequence[Instance]) -> list[Solution]:
    """Judge the solutions of a file, or of all ``.json`` files of a folder.

    A file holds a plan of certile, whose instance is found by its digests; or decisions, ``{"instance": NAME, "plan":
    DECISIONS}``, or a list of these.

    Raises
    ------
    InputError
        If there is no such file, it is no JSON, or an instance is unknown.
    """
    target = Path(path)
    files = sorted(target.glob("*.json")) if target.is_dir() else [target]
    if not files:
        raise InputError(f"solutions {path}: no .json file is in this folder")
    return [found for file in files for found in _of_file(file, among)]


def _of_file(path: Path, among: Sequence[Instance]) -> Iterator[Solution]:
    where = f"solution {path}"
    data = parse_json(read_bytes(path, what="solution"), where)
    if isinstance(data, dict) and "format" in data:
        yield _of_plan(Plan.from_json(json.dumps(data), where), among, str(path))
        return
    for entry in data if isinstance(data, list) else [data]:
        yield _of_entry(entry, among, where)


def _of_entry(entry: Json, among: Sequence[Instance], where: str) -> Solution:
    """A solution that names its instance."""
    name, plan = (entry.get("instance"), entry.get("plan")) if isinstance(entry, dict) else (None, None)
    if not isinstance(name, str) or not isinstance(plan, dict):
        raise InputError(
            f'{where}: a plan file is expected, or {{"instance": NAME, "plan": DECISIONS}}, or a list of these'
        )
    mine = [one for one in among if one.name == name]
    return judge_solution(mine[0] if mine else instance(name), plan, where.removeprefix("solution "))


def _of_plan(plan: Plan, among: Sequence[Instance], where: str) -> Solution:
    """A plan file: target, machine and objectives say what it is of, and pins if there are several."""
    asked = problem_of(plan).question(plan)
    mine = [one for one in among if _same(one, plan, asked)]
    exact = [one for one in mine if sorted(one.pins) == sorted(asked.pins)]
    if len(exact or mine) != 1:
        names = ", ".join(one.name for one in exact or mine)
        said = f"{names} ask this: name one" if names else "no instance asks this of this target on this machine"
        raise InputError(f'solution {where}: {said} ({{"instance": NAME, "plan": PLAN}})')
    return judge_solution((exact or mine)[0], plan.model_dump(mode="json"), where)


def _same(one: Instance, plan: Plan, asked: Question) -> bool:
    """Whether a plan answers what an instance asks, pins aside."""
    machine = digest(plan.machine_data.model_dump(mode="json"))
    if (one.problem, one.objectives, one.machine.digest) != (plan.problem, plan.objectives, machine):
        return False
    return one.target.digest == digest(target_json(asked.target)) and one.target.layers == (asked.layers or ())
