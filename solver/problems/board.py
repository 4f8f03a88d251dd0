"""Problems whose plans are for the processors of a board: what is asked, and tasks as tables and pictures say them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from formulations.mapping.board import Request
from formulations.problem import Formulation
from instances.network.tasks import tasks
from solver.ask.question import Question
from solver.plan.plan import Plan
from solver.problems.problem import Problem


@dataclass(frozen=True)
class TaskRow:
    """A task, or a part of one that is divided, on its processor; times are in ticks."""

    task: str
    processor: str
    start: int
    """In the period, after the begin of one inference, or after the release of its application."""
    time: int
    """What it computes."""
    copies: int
    """What it copies to other processors then."""
    stage: int = 0
    """In the n-th period it works on inference ``n - stage``."""
    share: int = 1
    of: int = 1
    """`share`, `of`: how many shares of the task, and how many there are."""

    @property
    def name(self) -> str:
        """The task, and the share of it that a part is."""
        return self.task if self.share == self.of else f"{self.task} {self.share}/{self.of}"

    @property
    def part(self) -> str:
        """What it is called where results wait."""
        return self.task if self.share == self.of else f"{self.task}@{self.processor}"


class BoardProblem(Problem):
    """Tasks on processors; a subclass has their rows (`layer_rows`), and what is shown of all."""

    item = "task"

    def __init__(self, formulation: Formulation[Any]) -> None:
        super().__init__(formulation)
        self.takes = frozenset({"profile"})

    def request(self, question: Question, pins: tuple[str, ...]) -> Request:
        """Read pins and times; raises InputError for bad ones."""
        return Request.of(tasks(question.network), question.machine, pins, question.profile)

    def items(self, plan: Plan) -> list[tuple[str, object]]:
        """The tasks."""
        return [(row.task, row) for row in self.layer_rows(plan)]

    def names(self, plan: Plan) -> list[str]:
        """The tasks, divided ones once."""
        return list(dict.fromkeys(row.task for row in self.layer_rows(plan)))


def whole_us(plan: Plan, ticks: int) -> str:
    """Ticks of the plan's machine in whole microseconds."""
    return f"{ticks * plan.machine_data.tick_ps / 1e6:,.0f}"
