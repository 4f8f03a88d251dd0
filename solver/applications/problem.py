"""Problem applications, as the rest of `solver` sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from instances.applications import Application, Applications
from instances.errors import InputError
from instances.profiles import Profile
from solver.applications.ask import ask, goals_of
from solver.applications.check import problems_of_applications
from solver.applications.engines import APPLICATION_ENGINES
from solver.applications.plan import ApplicationsPlan
from solver.applications.show import applications_details, applications_status, applications_table
from solver.mapping.ask import ESTIMATED
from solver.mapping.base import Engine
from solver.mapping.search import solved
from solver.problem import Derived, Problem, Target
from solver.question import Question
from solver.report import Sheet

__all__ = ["ApplicationsProblem"]


class ApplicationsProblem(Problem[ApplicationsPlan]):
    """F5: several networks with periods on one board."""

    name = "applications"
    summary = "F5: the same for several networks with periods, deadlines and priorities"
    plan = ApplicationsPlan
    measures = {"response": "ticks", "response:NAME": "ticks", "energy": "fJ"}
    usual = "response"
    pins = {
        "analysis": "analysis=safe (the default) or analysis=printed (Eq. 3.11): by which rule deadlines are kept",
        "cpu_config": "configuration of the cores: cpu_config=1,1,1,1; by default all are tried",
        "TASK": "the processor of a task by its name: squeezenet1_1:conv1=gpu",
    }
    takes = frozenset({"profile"})
    quick = ("apart",)
    floors = True
    others = {"exhaustive": ("cp-sat", "exhaustive"), "": ("exhaustive", "cp-sat")}

    @property
    def engines(self) -> Mapping[str, Engine]:
        """The ways to decide."""
        return APPLICATION_ENGINES

    def objectives(self, asked: str | Sequence[str] | None, target: Target) -> tuple[str, ...]:
        """Responses by application, and energy."""
        if not isinstance(target, Applications):
            raise InputError(
                "problem applications: name networks with their periods, such as squeezenet1_1@33ms,mobilenet_v1@40ms"
            )
        return goals_of(self.usual if asked is None else asked, [one.name for one in target.applications])[0]

    def solve(self, question: Question) -> ApplicationsPlan:
        """Map the tasks of all applications so that all keep their deadlines at any release offsets."""
        return solved(ask(question), APPLICATION_ENGINES[question.engine])

    def derive(self, plan: ApplicationsPlan) -> Derived:
        """Simulate again."""
        return Derived(tuple(problems_of_applications(plan)), plan.size)

    def figures(self, plan: ApplicationsPlan) -> Mapping[str, int]:
        """Measures, and the response of every application."""
        if plan.measures is None:
            return {}
        return plan.measures.model_dump() | {f"response:{row.name}": row.response or 0 for row in plan.applications}

    def status(self, plan: ApplicationsPlan) -> list[str]:
        """What is known."""
        return applications_status(plan)

    def sheet(self, plan: ApplicationsPlan) -> Sheet:
        """The table."""
        return applications_table(plan)

    def details(self, plan: ApplicationsPlan, layer: str | None) -> Iterable[str]:
        """One inference of every application by processor, or one task."""
        return applications_details(plan, layer)

    def question(self, plan: ApplicationsPlan) -> Question:
        """What a stored plan was asked; measured times are those that it has."""
        asked = [Application(**row.model_dump(exclude={"alone", "response", "seen"})) for row in plan.applications]
        return Question(
            Applications(plan.network_data, tuple(asked)), plan.machine_data, plan.objectives, "applications",
            pins=plan.options.pins,
            profile=None if plan.options.profile == ESTIMATED else Profile(times=plan.profile),
        )  # fmt: skip
