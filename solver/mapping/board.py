"""Problems whose plans are for the processors of a board: what stands in all of them, and how it is read back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, TypeVar

from formulations.mapping.board import ESTIMATED, BoardPart, Request
from formulations.mapping.problem import Schedule
from formulations.problem import Part
from hwmodels.outcome import UNITS
from instances.applications import Applications
from instances.errors import InputError
from instances.network import Network
from instances.profiles import Profile
from instances.tasks import tasks
from solver.network_plan import WholePlan
from solver.plan import Objective
from solver.question import Question
from solver.verdict import Verdict
from solver.whole import WholeProblem

P = TypeVar("P", bound=WholePlan)


def whole_us(plan: WholePlan, ticks: int | None) -> str:
    """Ticks of the plan's machine in whole microseconds."""
    return "-" if ticks is None else f"{ticks * plan.machine_data.tick_ps / 1e6:,.0f}"


class BoardProblem(WholeProblem[P]):
    """F5."""

    takes = frozenset({"profile"})
    unasked = frozenset({"profile", "time_limit_s", "settings"})

    @abstractmethod
    def planned(self, verdict: Verdict, question: Question) -> dict[str, Any]:
        """Return what a plan says of a verdict beside configuration, times of tasks and objective."""

    @abstractmethod
    def placed(self, plan: Any, part: Any) -> Schedule:
        """Return the schedule of a plan that has tasks; raises InputError where it is none."""

    def target(self, plan: P) -> Network | Applications:
        """Return what a plan is for; raises InputError if it does not say it."""
        return plan.network_data

    def request(self, question: Question) -> Request:
        """Read pins and times; raises InputError for bad ones."""
        return Request.of(tasks(question.network), question.machine, question.pins, question.profile)

    def body(self, verdict: Verdict, question: Question) -> dict[str, Any]:
        """Return everything in a plan that follows from a schedule, or from having none."""
        request, schedule = _request(verdict.part), verdict.said.schedule
        first, objective = question.objectives[0], None
        if verdict.priced is not None:
            unit, terms = UNITS[first.partition(":")[0]], verdict.priced.terms[first]
            objective = Objective.model_validate({"value": sum(terms.values()), "unit": unit, "terms": terms})
        return {
            "cpu_config": request.demands.configurations[0] if schedule is None else schedule.configuration,
            "profile": {task.name: row for task, row in zip(request.graph.tasks, request.rows, strict=True)},
            "objective": objective, **self.planned(verdict, question),
        }  # fmt: skip

    def decided(self, plan: P, part: Any) -> Schedule | None:
        """Return the schedule of a plan, with the times that it says."""
        stated: Any = plan
        request = _request(part)
        names = [task.name for task in request.graph.tasks]
        if list(stated.profile) != names:
            raise InputError(f"profile: it has {len(stated.profile)} tasks, the network {len(names)}, or other ones")
        if tuple(stated.profile.values()) != request.rows:
            raise InputError(f"profile: the plan says {stated.options.profile}, other times are")
        return self.placed(plan, part) if plan.decided else None

    def faults(self, plan: P) -> Iterator[str]:
        """Yield what does not follow from the decisions of a plan."""
        where = "" if plan.decided else "a plan without tasks: "
        yield from (f"{where}{line}" for line in super().faults(plan))

    def question(self, plan: P) -> Question:
        """What a stored plan was asked; measured times are those that it has."""
        stated: Any = plan
        return Question(
            self.target(plan), plan.machine_data, plan.objectives, self.name, self.auto, pins=stated.options.pins,
            profile=None if stated.options.profile == ESTIMATED else Profile(times=stated.profile),
        )  # fmt: skip


def _request(part: Part[Any]) -> Request:
    assert isinstance(part, BoardPart)
    assert part.request is not None  # as `parts` has made it
    return part.request
