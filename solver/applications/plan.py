"""Plans of several applications: the processor of every task, its place in the order there, and the responses.

Times are in ticks of the machine, energies in femtojoules.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from solver.network_plan import WholePlan
from solver.plan import Frozen, Natural, Options


class ApplicationPlan(Frozen):
    """One application; the first one has the highest priority."""

    name: str
    operators: PositiveInt
    """Of its part of the network."""
    period_us: PositiveInt
    deadline_us: PositiveInt
    alone: Natural | None = None
    """Ticks of an inference that nothing else delays."""
    response: Natural | None = None
    """From release to the last result at most, by the plan's rule; null without a plan."""
    seen: Natural | None = None
    """The longest response in the simulation."""


class ApplicationsMeasures(Frozen):
    """All responses together, and the energy of one inference of each application."""

    response: Natural
    energy: Natural


class SharedProcessor(Frozen):
    """A logical processor, and its busy time for one inference of every application."""

    name: str
    cores: Natural
    loads: tuple[Natural, ...]


class OrderedTask(Frozen):
    """One task; those of an application on one processor run in the order of the plan."""

    task: str
    processor: str
    start: Natural
    """After the release, if nothing else delays the application."""
    time: Natural
    """What it computes, and what it copies to other processors then."""
    copies: Natural


class ApplicationsReplay(Frozen):
    """What the simulation found: `ok` is None when there is no plan; `draws` of random offsets."""

    ok: bool | None
    draws: Natural
    faults: tuple[str, ...]


class ApplicationsOptions(Options):
    """What else was asked for."""

    analysis: Literal["safe", "printed"]
    """By which rule deadlines are kept."""
    pins: tuple[str, ...]
    profile: str


class ApplicationsPlan(WholePlan):
    """A plan for several applications on the processors of a board.

    Attributes
    ----------
    network_data : Network
        All applications as parts of one network.
    """

    PROBLEMS = ("applications",)

    problem: Literal["applications"]
    objectives: Annotated[tuple[str, ...], Field(min_length=1)]
    unit: Literal["ticks", "fJ"]
    options: ApplicationsOptions
    cpu_config: tuple[PositiveInt, ...]
    applications: Annotated[tuple[ApplicationPlan, ...], Field(min_length=1)]
    measures: ApplicationsMeasures | None
    replay: ApplicationsReplay
    processors: tuple[SharedProcessor, ...]
    tasks: tuple[OrderedTask, ...]
    profile: dict[str, dict[str, Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None]]
