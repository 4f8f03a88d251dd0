"""Problems whose plans are for the processors of a board: how they are solved, and checked whoever made them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from instances.applications import Applications
from instances.errors import InputError
from instances.network import Network
from instances.profiles import Profile
from solver.mapping.ask import ESTIMATED
from solver.mapping.base import Engine
from solver.mapping.search import Setting, solved
from solver.network_check import head_of, status_of
from solver.network_plan import WholePlan
from solver.problem import Derived, Problem
from solver.question import Question
from solver.verify import unequal

__all__ = ["BoardProblem", "whole_us"]

P = TypeVar("P", bound=WholePlan)


def whole_us(plan: WholePlan, ticks: int | None) -> str:
    """Ticks of the plan's machine in whole microseconds."""
    return "-" if ticks is None else f"{ticks * plan.machine_data.tick_ps / 1e6:,.0f}"


class BoardProblem(Problem[P]):
    """F5."""

    takes = frozenset({"profile"})
    floors = True
    ways: Mapping[str, Engine]

    @property
    def engines(self) -> Mapping[str, Engine]:
        """The ways to decide."""
        return self.ways

    @abstractmethod
    def ask(self, question: Question) -> Setting[P]:
        """Read everything that is asked; raises InputError for bad pins and profiles."""

    @abstractmethod
    def derived(self, plan: P, setting: Any) -> Iterator[str]:
        """Yield what does not follow from the decisions of a plan that has tasks."""

    def target(self, plan: P) -> Network | Applications:
        """Return what a plan is for; raises InputError if it does not say it."""
        return plan.network_data

    def solve(self, question: Question) -> P:
        """Map tasks to processors."""
        return solved(self.ask(question), self.ways[question.engine])

    def derive(self, plan: P) -> Derived:
        """Derive and simulate all again."""
        return Derived(tuple(dict.fromkeys(self._faults(plan))), plan.size)

    def _faults(self, plan: P) -> Iterator[str]:
        stated: Any = plan
        yield from head_of(plan)
        yield from status_of(plan)
        try:
            setting = self.ask(self.question(plan))
            names = [task.name for task in setting.graph.tasks]
            if list(stated.profile) != names:
                yield f"profile: it has {len(stated.profile)} tasks, the network {len(names)}, or other ones"
                return
            if tuple(stated.profile.values()) != setting.rows:
                yield f"profile: the plan says {stated.options.profile}, other times are"
            for name, value in setting.options.model_dump(exclude={"profile", "time_limit_s", "settings"}).items():
                yield from unequal(f"options.{name}", getattr(plan.options, name), value)
            if not plan.decided:
                for name, value in setting.empty().items():
                    yield from unequal(f"a plan without tasks: {name}", getattr(plan, name), value)
                return
            if stated.cpu_config not in setting.demands.configurations:
                yield f"cpu_config {stated.cpu_config}: the pins ask for another one"
            yield from self.derived(plan, setting)
        except (InputError, KeyError, ValueError) as error:
            yield str(error)

    def question(self, plan: P) -> Question:
        """What a stored plan was asked; measured times are those that it has."""
        stated: Any = plan
        return Question(
            self.target(plan), plan.machine_data, plan.objectives, self.name, pins=stated.options.pins,
            profile=None if stated.options.profile == ESTIMATED else Profile(times=stated.profile),
        )  # fmt: skip
