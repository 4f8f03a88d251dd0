"""Plans of formulations: their parts are decided one by one, priced, replayed, and checked by doing that again.

A plan has a row for every part. What stands in a row, and what a plan says of all rows, follows from the `Verdict` on
every part; so a check reads the decisions out of the rows, makes both anew, and compares.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from pydantic import ValidationError

from formulations.problem import Part
from instances.errors import InputError
from solver.claims import Claim, picked
from solver.formulated import FormulationProblem
from solver.front import Front, FrontPart, FrontPoint
from solver.network_check import head_of
from solver.network_check import status_of as status_of_plan
from solver.network_plan import WholePlan, head
from solver.plan import Objective, Options, Stat, proof, worst
from solver.problem import Derived, Explained
from solver.question import Question
from solver.search import Answer, status_of
from solver.verdict import Verdict, judged, proven_of, sum_of
from solver.verify import gap_of, unequal

#: Notes that a plan repeats.
_NOTES = 3


class PartsOptions(Options):
    """What else was asked for; no `layers` are all of them."""

    layers: tuple[str, ...]
    pins: tuple[str, ...]


class Row(Protocol):
    """What a plan says of a part."""

    @property
    def layer(self) -> str:
        """Its name."""

    def model_dump(self, *, exclude: set[str] | None = None) -> dict[str, Any]:
        """Its fields."""


class PartsPlan(WholePlan):
    """A plan whose layers are decided by themselves."""

    options: PartsOptions
    layers: tuple[Any, ...]


P = TypeVar("P", bound=PartsPlan)


class PartsProblem(FormulationProblem[P]):
    """A formulation of independent parts; a subclass says what stands in the rows of its plans."""

    takes = frozenset({"layers"})
    explains = True

    # ---- what a plan says --------------------------------------------------------------------------------------------

    @abstractmethod
    def row(self, verdict: Verdict) -> Row | None:
        """Return what a plan says of a part; None if it says nothing of parts without a schedule."""

    @abstractmethod
    def said(self, row: Any) -> Answer[Any]:
        """Return the answer that a row states, its schedule aside."""

    @abstractmethod
    def decided(self, row: Any) -> Any:
        """Return the schedule that a row states, None if it has none; raises InputError or ValidationError."""

    def totals(self, objectives: Sequence[str], verdicts: Sequence[Verdict]) -> dict[str, Any]:
        """Return what a plan says of all parts together."""
        first = objectives[0]
        values = {one.part.name: one.values[first] for one in verdicts if one.values}
        value = sum(values.values()) if len(values) == len(verdicts) else None
        bound = sum_of([one.said.bounds.get(first) for one in verdicts])
        unit = self.measures[first]
        return {
            "status": worst(one.said.status for one in verdicts), "bound": bound, "gap": gap_of(value, bound),
            "objective": None if value is None else Objective(value=value, unit=unit, terms=values),
            "conflicts": tuple(f"{one.part.name}: {line}" for one in verdicts for line in one.said.conflicts),
        }  # fmt: skip

    # ---- solving -----------------------------------------------------------------------------------------------------

    def solve(self, question: Question) -> P:
        """Decide every part, those that are alike once."""
        start = time.monotonic()
        with question.watch() as watch:
            parts = self.parts(question)
            answers = self.answers(parts, question, watch)
            verdicts = self.verified(parts, [answers[part.key] for part in parts], question)
        totals, rows = self.totals(question.objectives, verdicts), [self.row(one) for one in verdicts]
        proven = proof(question.objectives, proven_of(question.objectives, verdicts))
        notes = [f"{one.part.name}: {one.said.stats['note']}" for one in verdicts if "note" in one.said.stats]
        noted = {"note": "; ".join(notes[:_NOTES])} if notes else {}
        stats: dict[str, Stat] = {"layers": len(parts), "distinct": len(answers), **proven, **noted}
        versions = next((said.versions for said in answers.values() if said.versions), "")
        fields = head(
            question, self.name, question.engine, status=totals.pop("status"), start=start, engine_version=versions,
            unit=self.measures[question.objectives[0]], stats=stats,
        )  # fmt: skip
        options = PartsOptions(
            time_limit_s=question.time_limit_s, settings=question.settings, layers=question.layers or (),
            pins=question.pins,
        )  # fmt: skip
        layers = () if None in rows else tuple(rows)
        return self.plan.model_validate({**fields, **totals, "options": options, "layers": layers})

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of two measures: the least first one, of these the least second one; then with less of it."""
        wanted = axes or tuple(self.axes)[:2]
        if len(wanted) != 2:
            raise InputError(f"axes {','.join(wanted)}: fronts of problem {self.name} have two")
        parts = []
        for part in self.parts(question):
            points, (verdicts, proven) = list[FrontPoint](), self.lowest(part, question, (wanted[0], wanted[1]))
            for verdict in verdicts:
                row = self.row(verdict)
                body = {} if row is None else row.model_dump(exclude={"stats"})
                points.append(FrontPoint(verdict.values, body, part.label(verdict.said.schedule)))
            parts.append(FrontPart(part.name, tuple(points), complete=proven, proven=proven))
        units = {axis: self.axes[axis] for axis in wanted}
        return Front(self.name, question.subject.name, question.machine.name, units, tuple(parts))

    def explain(self, question: Question) -> Iterator[Explained]:
        """Part by part."""
        for part in self.parts(question):
            yield Explained(part.name, part.explain(), {})

    # ---- checking ----------------------------------------------------------------------------------------------------

    def derive(self, plan: P) -> Derived:
        """Price and replay every schedule again."""
        verdicts: list[Verdict] = []
        problems = tuple(dict.fromkeys(self._faults(plan, verdicts)))
        return Derived(problems, sum(one.priced is not None for one in verdicts))

    def _faults(self, plan: P, verdicts: list[Verdict]) -> Iterator[str]:
        """Yield what does not follow from the decisions of a plan; a verdict for each row that can be read."""
        yield from head_of(plan, unit=self.measures.get(plan.objectives[0]))
        yield from status_of_plan(plan)
        try:
            parts = self.parts(self.question(plan))
        except InputError as error:
            yield str(error)
            return
        if not plan.layers:
            yield from self._unplanned(plan, parts)
            return
        if [row.layer for row in plan.layers] != [part.name for part in parts]:
            names = ", ".join(row.layer for row in plan.layers), ", ".join(part.name for part in parts)
            yield f"layers: the plan has {names[0]}, there are {names[1]}"
            return
        stated = []
        for row, part in zip(plan.layers, parts, strict=True):
            try:
                stated.append((row, part, self._restated(plan, row, part)))
            except (InputError, ValidationError) as error:
                yield f"layer {part.name}: {' '.join(str(error).split())}"
        verdicts += judged((part, said) for _, part, said in stated)
        for (row, part, _), verdict in zip(stated, verdicts, strict=True):
            yield from (f"layer {part.name}: {line}" for line in self._faults_of(plan, row, verdict))
        if len(verdicts) == len(parts):
            for name, value in self.totals(plan.objectives, verdicts).items():
                yield from unequal(name, getattr(plan, name), value)

    def _restated(self, plan: P, row: Any, part: Part[Any]) -> Answer[Any]:
        """What a row states, with the status that follows from values and bounds, and with conflicts found again."""
        said, schedule = self.said(row), self.decided(row)
        if schedule is None:
            conflicts = part.explain()
            return replace(said, status="INFEASIBLE" if conflicts else "NO_SOLUTION_FOUND", conflicts=conflicts)
        measures = part.price(schedule).measures
        status = status_of({name: measures[name] for name in plan.objectives}, said.bounds, empty=False)
        return replace(said, schedule=schedule, status=status, conflicts=())

    def _faults_of(self, plan: P, row: Any, verdict: Verdict) -> Iterator[str]:
        """What does not follow from a row's decisions."""
        yield from verdict.faults
        if verdict.priced is None:
            yield from self._lost(plan, verdict)
        yield from unequal("bounds: objectives", list(verdict.said.bounds), list(plan.objectives))
        made = self.row(verdict)
        assert made is not None  # there are rows
        stated = row.model_dump()
        for name, value in made.model_dump().items():
            yield from unequal(name, stated[name], value)

    def _lost(self, plan: P, verdict: Verdict) -> Iterator[str]:
        """What a part without a schedule may not say: it has none only if quick heuristics have none."""
        if verdict.said.status == "INFEASIBLE":
            yield from (f"{name}: bound {bound} of nothing" for name, bound in verdict.said.bounds.items() if bound)
            return
        for name in self.doubting(verdict.part, plan, proves=plan.engine in self.formulation.engines):
            yield f"status NO_SOLUTION_FOUND: engine {name} has a schedule"

    def _unplanned(self, plan: P, parts: Sequence[Part[Any]]) -> Iterator[str]:
        """What a plan without rows may say."""
        if self.figures(plan) or (plan.bound is not None and plan.status == "INFEASIBLE"):
            yield "a plan without layers has no measures, and one that is infeasible no bound"
        if bool(plan.conflicts) != (plan.status == "INFEASIBLE"):
            yield f"status {plan.status} with {len(plan.conflicts)} conflicts"
        known = {f"{part.name}: {line}" for part in parts for line in (part.explain() if plan.conflicts else ())}
        yield from (f"conflicts: {line!r} is not so" for line in plan.conflicts if line not in known)

    def claims(self, plan: P) -> Iterator[Claim]:
        """Part by part; together where nothing is said of parts."""
        if not plan.layers:
            yield from super().claims(plan)
        for row in plan.layers:
            said = self.said(row)
            values, bounds = picked(plan.objectives, said.values), tuple(map(said.bounds.get, plan.objectives))
            yield Claim(row.layer, row.status, plan.objectives, values, bounds)

    def question(self, plan: P) -> Question:
        """What a stored plan was asked."""
        return Question(
            plan.network_data, plan.machine_data, plan.objectives, self.name, self.auto, pins=plan.options.pins,
            layers=plan.options.layers or None,
        )  # fmt: skip
