"""Plans of mappings: the processor of every task, when it runs in a period, and how many results wait between tasks.

Times are in ticks of the machine, energies in femtojoules.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from solver.network_plan import WholePlan
from solver.plan import Frozen, Natural, Options


class MappingMeasures(Frozen):
    """From one inference to the next, of one inference, and from an inference's release to its end.

    Without a pipeline `latency` is that of one inference alone, `period` what its assignment reaches in a pipeline.
    """

    period: PositiveInt
    energy: Natural
    latency: Natural


class ProcessorPlan(Frozen):
    """A logical processor: `load` is its busy time in a period."""

    name: str
    cores: Natural
    load: Natural


class TaskPlan(Frozen):
    """One task, or a part of a task that is divided between two processors: then each part has a row."""

    task: str
    processor: str
    share: PositiveInt
    """Of the options' `shares`; all of them if the task is whole."""
    start: Natural
    """Begin in the period; of one inference alone, after its begin."""
    stage: Natural
    """In the n-th period the task works on inference ``n - stage``."""
    time: Natural
    """What it computes, and what it copies to other processors then."""
    copies: Natural


class Waiting(Frozen):
    """Buffers for the result of a task on its way to another one; a part of a task is named ``task@processor``."""

    source: str
    target: str
    buffers: PositiveInt
    bytes: Natural


class MappingReplay(Frozen):
    """What the simulation of many inferences found: `ok` is None when there is no plan."""

    ok: bool | None
    latency: Natural
    faults: tuple[str, ...]


class MappingOptions(Options):
    """What else was asked for."""

    cap: Annotated[int, Field(ge=1, le=100)]
    """Percent of the cores that may be busy."""
    shares: Annotated[int, Field(ge=1, le=8)]
    """Into how many equal shares a task may be divided, for two processors; 1: tasks are whole."""
    pins: tuple[str, ...]
    profile: str


class MappingPlan(WholePlan):
    """A plan for the processors of a board."""

    PROBLEMS = ("mapping",)

    problem: Literal["mapping"]
    objectives: Annotated[tuple[Literal["period", "energy", "latency"], ...], Field(min_length=1)]
    unit: Literal["ticks", "fJ"]
    options: MappingOptions
    cpu_config: tuple[PositiveInt, ...]
    """The groups of cores."""
    pipelined: bool
    """Whether inferences follow each other; else the starts are of one inference alone, with stages 0 and one buffer an
    edge.
    """
    measures: MappingMeasures | None
    replay: MappingReplay
    processors: tuple[ProcessorPlan, ...]
    tasks: tuple[TaskPlan, ...]
    waiting: tuple[Waiting, ...]
    profile: dict[str, dict[str, Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None]]
    """Microseconds by task and by what it may run on (``1*``, ``1``, ``2``, ..., accelerators); null: it cannot."""
