"""Make library files: ask several engines, keep the best schedule and the best bound, and say who proved what.

Let v be the least value that an engine found, b the greatest bound of the first objective that one proved. The status
is OPTIMAL if an engine said so of v (all objectives in their order), or else, of one objective, if b = v: then a
schedule of one engine and the bound of another meet. Two engines that prove different values are a defect, and nothing
is written. A family that is made again keeps what was known before where that is better.

Seconds are processor seconds of this process and its children: what else runs on the machine hardly changes them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from instances.errors import InputError, PlanMismatch
from instances.frozen import digest
from instances.jsonfile import write_atomically
from instances.library_format import (
    LIBRARY_FORMAT,
    Certificate,
    Family,
    Instance,
    Known,
    MachineOf,
    Proof,
    Target,
    load_family,
    target_json,
)
from solver.ask.names import version
from solver.ask.question import Question
from solver.plan.claims import gap_of
from solver.plan.plan import Plan
from solver.problems.problem import Problem
from solver.problems.tiling import LayersProblem
from solver.uses.library.check import decisions, judge, question_of, with_engine
from tests.library.case import Case, Cases

#: Once two engines have proven it, and these seconds are over, no further one is asked.
_QUICK_S, _AIDED_S = 2.0, 8.0
_UNAIDED = ("cp-sat", "milp", "milp-cbc")
_NO_DIGEST = "sha256:" + "0" * 64


@dataclass(frozen=True)
class Said:
    """What an engine said."""

    proof: Proof
    plan: Plan
    values: dict[str, int]
    """Of the objectives, by the referee; none without a schedule."""

    @property
    def optimal(self) -> bool:
        """Whether it proved all objectives."""
        return self.plan.status == "OPTIMAL"


def make(
    spec: Cases, folder: Path, only: Sequence[str] = (), told: Callable[[str], None] = lambda line: None, *,
    times: float = 1.0, unproven: bool = False,
) -> Family:  # fmt: skip
    """Make a family and write its file.

    Parameters
    ----------
    only : names
        These cases; the others stay as they were.
    told : function
        Is told about every case that is made, and those of which nothing was found: they stay as they were, too.
    times : float
        By how much longer engines have than the cases say.
    unproven : bool
        Only cases that are not proven, or of which nothing is known.

    Raises
    ------
    InputError
        If a case cannot be asked.
    PlanMismatch
        If two engines prove different values.
    """
    path, before = folder / f"{spec.family}.json", dict[str, Instance]()
    if path.exists():
        before = {one.name: one for one in load_family(path).instances}
    made = list[Instance]()
    for case in spec.cases():
        name = f"{spec.family}/{case.name}"
        known = before.get(name)
        if (only and case.name not in only) or (unproven and known is not None and known.difficulty != "open"):
            made += [known] if known is not None else []
            continue
        found = instance_of(replace(case, engines=tuple((engine, times * s) for engine, s in case.asked)), spec)
        if found is None:
            told(f"{name}: no engine found a plan")
            made += [known] if known is not None else []
            continue
        made.append(better(found, known))
        told(f"{name}: {found.known.status} {found.known.values} {found.difficulty}, {_asked(found)}")
        later = [one for one in before.values() if one.name not in {done.name for done in made}]
        write_atomically(path, _family(spec, [*made, *later]).to_json())  # so that nothing is lost if it is stopped
    family = _family(spec, made)
    write_atomically(path, family.to_json())
    return family


def _family(spec: Cases, made: Sequence[Instance]) -> Family:
    head = {"family": spec.family, "title": spec.title, "source": spec.source, "licence": spec.licence}
    return Family(format=LIBRARY_FORMAT, instances=tuple(made), **head)


def _asked(found: Instance) -> str:
    return ", ".join(f"{one.by} {one.status} {one.seconds:g} s" for one in found.certificate.proofs)


def instance_of(case: Case, spec: Cases) -> Instance | None:
    """Ask all engines of a case; None if none finds a plan; raises InputError and PlanMismatch as `make` does."""
    name = f"{spec.family}/{case.name}"
    target, machine = (
        Target(digest=_NO_DIGEST, **case.target),
        MachineOf(digest=_NO_DIGEST, name=case.machine, set=case.set),
    )
    target = target.model_copy(update={"digest": digest(target_json(target.found()))})
    machine = machine.model_copy(update={"digest": digest(machine.found().model_dump(mode="json"))})
    nothing = Known(status="FEASIBLE", values={}, bound=None, gap=None)
    none = Certificate(proofs=(Proof(engine="", version="", status="NO_SOLUTION_FOUND", seconds=0),))
    asked = Instance(
        name=name, problem=case.problem, target=target, machine=machine, objectives=tuple(case.objectives.split(",")),
        pins=case.pins, known=nothing, certificate=none, difficulty="open", source=spec.source, licence=spec.licence,
        tags=case.tags, note=case.note, digest=_NO_DIGEST,
    )  # fmt: skip
    problem, question = question_of(asked)
    return concluded(asked, _said(problem, question, case))


def _said(problem: Problem, question: Question, case: Case) -> list[Said]:
    """What the engines of a case say, until two have proven it and others would take long."""
    said: list[Said] = []

    def ask(engine: str, limit: float, *, aided: bool = False) -> None:
        answer = ask_engine(problem, question, engine, limit, aided=aided)
        said.extend([answer] if answer is not None else [])

    def proven() -> int:
        return sum(one.plan.status in ("OPTIMAL", "INFEASIBLE") for one in said)

    for engine, limit in case.asked:
        if proven() < 2 or sum(one.proof.seconds for one in said) < _QUICK_S:
            ask(engine, limit)
    if proven() == 1 and isinstance(problem, LayersProblem):
        ask("cp-sat", _AIDED_S, aided=True)
    return said


def seconds() -> float:
    """Return the processor seconds of this process and its children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def ask_engine(
    problem: Problem, question: Question, engine: str, limit_s: float | None, *, aided: bool = False
) -> Said | None:
    """Ask one engine, and have the referee look at its decisions; None if it cannot be asked this.

    Solvers search all of the space by themselves, unless they are `aided`: then bounds remove choices first.
    """
    try:
        asked = with_engine(question, engine, limit_s)
        asked = replace(asked, bounding=aided or engine not in _UNAIDED)
        begin = seconds()
        plan: Plan = problem.solve(asked)
        took = seconds() - begin
    except InputError:
        return None
    values: dict[str, int] = {}
    if plan.objective is not None:
        found = judge(problem, question, decisions(plan))
        if found.faults or found.values[question.objectives[0]] != plan.objective.value:
            raise PlanMismatch(f"{question.name}: engine {engine}: {plan.objective.value}, {found}")
        values = found.values
    proof = Proof(
        engine=engine, version=plan.engine_version or f"certile {version()}", status=plan.status,
        seconds=float(f"{took:.3g}"), aided=aided, value=values.get(question.objectives[0]), bound=plan.bound,
    )  # fmt: skip
    return Said(proof, plan, values)


def concluded(asked: Instance, said: Sequence[Said]) -> Instance | None:
    """Return an instance with what engines know together, None for nothing; raises PlanMismatch if they disagree."""
    if not said:
        raise InputError(f"{asked.name}: no engine can be asked")
    proofs, first = tuple(one.proof for one in said), asked.objectives[0]
    none = [one for one in said if one.plan.status == "INFEASIBLE"]
    planned = [one for one in said if one.values]
    if none and planned:
        raise PlanMismatch(f"{asked.name}: {none[0].proof.engine} proves that there is no plan, there is one")
    if none:
        known = Known(status="INFEASIBLE", values={}, bound=None, gap=None)
        conflicts = none[0].plan.conflicts or _of_layers(none[0].plan)
        why = Certificate(
            proofs=proofs, proven_by=tuple(dict.fromkeys(one.proof.by for one in none)), conflicts=conflicts
        )
        return _with(asked, known, why)
    if not planned:
        return None
    best = min(planned, key=lambda one: tuple(one.values.values()))
    proven = {tuple(one.values.values()) for one in planned if one.optimal}
    if len(proven) > 1 or (proven and proven != {tuple(best.values.values())}):
        raise PlanMismatch(f"{asked.name}: proven {proven}, found {best.values}")
    value, bound = best.values[first], max((p.bound for p in proofs if p.bound is not None), default=None)
    if bound is not None and bound > value:
        raise PlanMismatch(f"{asked.name}: bound {bound}, but a plan of {value}")
    by = tuple(dict.fromkeys(one.proof.by for one in said if one.optimal))
    if not by and len(asked.objectives) == 1:
        by = tuple(dict.fromkeys(proof.by for proof in proofs if proof.bound == value))
    known = Known(
        status="OPTIMAL" if by else "FEASIBLE", values=best.values, bound=bound, gap=gap_of(value, bound)
    )  # fmt: skip
    return _with(asked, known, Certificate(proofs=proofs, proven_by=by, plan=decisions(best.plan)))


def _of_layers(plan: Plan) -> tuple[str, ...]:
    """Conflicts of plans that state them layer by layer."""
    rows = getattr(plan, "layers", ())
    return tuple(line for row in rows for line in getattr(row, "conflicts", ()))


def _with(asked: Instance, known: Known, why: Certificate) -> Instance:
    made = {"known": known, "certificate": why, "difficulty": why.difficulty}
    return asked.model_copy(update=made).sealed()


def better(found: Instance, before: Instance | None) -> Instance:
    """Return what is better known; of the same value and bound the new one."""
    asked = ("problem", "target", "machine", "objectives", "pins")
    if before is None or any(getattr(found, name) != getattr(before, name) for name in asked):
        return found
    old, new = before.known, found.known
    if old.status != "FEASIBLE" and new.status == "FEASIBLE":
        return before
    if old.status == new.status == "FEASIBLE":
        values = (tuple(old.values.values()), -(old.bound or 0)), (tuple(new.values.values()), -(new.bound or 0))
        return before if values[0] < values[1] else found
    return found
