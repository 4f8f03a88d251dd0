"""Plans of formulations with one part, the network: what `body` says of a verdict stands in the plan itself.

A check reads the schedule out of the plan, judges it anew, and compares all that follows from it.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

from pydantic import ValidationError

from formulations.problem import Part
from instances.errors import InputError
from solver.formulated import FormulationProblem
from solver.network_check import fields_of, head_of, status_of
from solver.network_plan import SubjectPlan, head
from solver.plan import Options, proof
from solver.problem import Derived
from solver.question import Question
from solver.search import Answer
from solver.verdict import Verdict, judged, proven_of
from solver.verify import unequal

P = TypeVar("P", bound=SubjectPlan)


class WholeProblem(FormulationProblem[P]):
    """A formulation whose part is the network; a subclass says what stands in its plans."""

    unasked: frozenset[str] = frozenset(("time_limit_s", "settings"))
    """Options that no question has, or that nothing follows from."""

    @abstractmethod
    def options(self, question: Question) -> Options:
        """Return what else was asked; all of it but what is `unasked` is compared by a check."""

    @abstractmethod
    def body(self, verdict: Verdict, question: Question) -> dict[str, Any]:
        """Return every field of a plan that follows from a verdict, `objective` among them, with a schedule or without.

        Head, status, bound, gap, options and stats are none of them.
        """

    @abstractmethod
    def decided(self, plan: P, part: Part[Any]) -> Any:
        """Return the schedule that a plan states, None if it has none; raises InputError or ValidationError."""

    # ---- solving -----------------------------------------------------------------------------------------------------

    def solve(self, question: Question) -> P:
        """Decide the network."""
        start = time.monotonic()
        with question.watch() as watch:
            (part,) = self.parts(question)
            said = self.answers([part], question, watch)[part.key]
            return self.made(question, part, said, start)

    def made(self, question: Question, part: Part[Any], said: Answer[Any], start: float) -> P:
        """Return the plan of an answer; raises PlanMismatch if replay or proof disagrees."""
        (verdict,) = self.verified([part], [said], question)
        fields = head(
            question, self.name, question.engine, status=said.status, start=start, engine_version=said.versions,
            bound=said.bounds.get(question.objectives[0]), gap=verdict.gap, options=self.options(question),
            stats={**said.stats, **proof(question.objectives, proven_of(question.objectives, [verdict]))},
            conflicts=said.conflicts,
        )  # fmt: skip
        return self.plan.model_validate({**fields, **self.body(verdict, question)})

    # ---- checking ----------------------------------------------------------------------------------------------------

    def derive(self, plan: P) -> Derived:
        """Price and replay the schedule again."""
        return Derived(tuple(dict.fromkeys(self.faults(plan))), plan.size)

    def faults(self, plan: P) -> Iterator[str]:
        """Yield what does not follow from the decisions of a plan."""
        yield from head_of(plan, unit=self.measures.get(plan.objectives[0]))
        yield from status_of(plan)
        try:
            question = self.question(plan)
            (part,) = self.parts(question)
            schedule = self.decided(plan, part)
            (verdict,) = judged([(part, self._stated(plan, part, schedule))])
        except (InputError, ValidationError) as error:
            yield " ".join(str(error).split())
            return
        asked = self.options(question).model_dump(exclude=set(self.unasked))
        for name, value in asked.items():
            yield from unequal(f"options.{name}", getattr(plan.options, name), value)
        yield from verdict.faults
        if schedule is None:
            yield from self._lost(plan, part)
        if not verdict.disagreements:
            yield from fields_of(plan, self.body(verdict, question))

    def _stated(self, plan: P, part: Part[Any], schedule: Any) -> Answer[Any]:
        """What a plan states of the network."""
        first = plan.objectives[0]
        said = Answer(schedule, {}, {first: plan.bound}, plan.status, stats=plan.stats, conflicts=plan.conflicts)
        return said if schedule is None else replace(said, values=part.price(schedule).measures)

    def _lost(self, plan: P, part: Part[Any]) -> Iterator[str]:
        """What a plan without a schedule may not say: there is none only if quick heuristics have none."""
        if bool(plan.conflicts) != (plan.status == "INFEASIBLE"):
            yield f"status {plan.status} with {len(plan.conflicts)} conflicts"
        if plan.status == "INFEASIBLE":
            yield from unequal("conflicts", plan.conflicts, part.explain())
        proves = plan.status == "INFEASIBLE" or plan.engine in self.formulation.engines
        for name in islice(self.doubting(part, plan, proves=proves), 1):
            yield f"status {plan.status}: engine {name} has a plan"
