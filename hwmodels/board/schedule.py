"""Schedules for the processors of a board, as the referee reads them: tasks and processors by their names.

Times are in ticks of the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from hwmodels.outcome import Natural

Positive = Annotated[int, Field(ge=1)]
#: Random offsets that a plan of several applications is simulated with, and the most that a check repeats.
DRAWS, MOST_DRAWS = 500, 20_000


@dataclass(frozen=True)
class TaskPlace:
    """Where a task runs."""

    task: str
    processor: str


@dataclass(frozen=True)
class ApplicationsSchedule:
    """Several applications; the tasks of each on a processor run in the order in which they stand here."""

    cpu_config: tuple[Positive, ...]
    """The groups of cores."""
    tasks: tuple[TaskPlace, ...]
    draws: Annotated[int, Field(ge=DRAWS, le=MOST_DRAWS)] = DRAWS
    """How many release offsets it is simulated with."""


@dataclass(frozen=True)
class TaskRun(TaskPlace):
    """A task, or a part of one that is divided between two processors: then each part has a row."""

    share: Positive
    """Of the shares of the task: all of them, unless it is divided."""
    start: Natural
    """Begin in the period; of one inference alone, after its begin."""
    stage: Natural
    """In the n-th period the task works on inference ``n - stage``."""


@dataclass(frozen=True)
class Waiting:
    """Buffers for the result of a task on its way to another one; a part of a task is named ``task@processor``."""

    source: str
    target: str
    buffers: Positive


@dataclass(frozen=True)
class MappingSchedule:
    """A network in a pipeline, or one inference alone: then stages are 0, and an edge has one buffer."""

    cpu_config: tuple[Positive, ...]
    """The groups of cores."""
    tasks: tuple[TaskRun, ...]
    """In topological order."""
    waiting: tuple[Waiting, ...]
    """By edge."""
