"""Solving a question again under other conditions, within a time limit; nothing is solved twice."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.buffers import Buffers
from solver.ask.question import Question
from solver.calls.solve import answered
from solver.plan.plan import Plan, digest
from solver.plan.why import Known
from solver.problems.problem import Problem

#: Seconds below which it is not worth to begin.
_WORTH_S = 0.05
#: The share of the time that one solve may take.
_SHARE = 5


@dataclass(frozen=True)
class Found:
    """What solving again said."""

    status: Known
    value: int | None = None
    bound: int | None = None
    plan: Plan | None = None

    @property
    def proven(self) -> bool:
        """Whether the value is the least there is."""
        return self.value is not None and self.bound == self.value


SKIPPED = Found("SKIPPED")


@dataclass
class Again:
    """A question that is asked again and again, with other machines, pins and engines."""

    problem: Problem
    question: Question
    end: float
    """When time is up, by `time.monotonic`."""
    share_s: float
    """Seconds that one solve may take."""
    known: dict[str, Found] = field(default_factory=dict)
    solves: int = 0

    @classmethod
    def of(cls, problem: Problem, question: Question, time_limit_s: float) -> Again:
        """From now on; by the fastest exact engine, for the first objective alone."""
        first = replace(question, objectives=question.objectives[:1], jobs=1)
        first = replace(first, engine=problem.engine("auto", first.objectives))
        return cls(problem, first, time.monotonic() + time_limit_s, max(0.5, time_limit_s / _SHARE))

    @property
    def over(self) -> bool:
        """Whether time is up."""
        return self.end - time.monotonic() < _WORTH_S

    def solve(
        self, machine: Machine | None = None, pins: Sequence[str] | None = None, *, engine: str | None = None,
        target: Buffers | None = None,
    ) -> Found:  # fmt: skip
        """Solve under other conditions; `SKIPPED` if time is up, INFEASIBLE if the conditions contradict themselves."""
        asked = replace(
            self.question, machine=machine or self.question.machine,
            pins=self.question.pins if pins is None else tuple(pins), engine=engine or self.question.engine,
            target=target or self.question.target,
        )  # fmt: skip
        key = digest([asked.machine.model_dump(mode="json"), list(asked.pins), asked.engine, asked.target_json()])
        if key in self.known:
            return self.known[key]
        if self.over:
            return SKIPPED
        left = min(self.share_s, self.end - time.monotonic())
        self.solves += 1
        try:
            self.known[key] = found_of(answered(self.problem, replace(asked, time_limit_s=left)))
        except InputError:
            self.known[key] = Found("INFEASIBLE")
        return self.known[key]


def found_of(plan: Plan) -> Found:
    """Return what a plan says."""
    return Found(plan.status, plan.objective.value if plan.objective else None, plan.bound, plan)
