"""Plans of layers, each by itself: problems tiling and slicing."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from hwmodels.nest.buffers import Buffer
from instances.errors import InputError
from instances.workload import Layer
from solver.homes.plan import HomesPlan
from solver.plan import (
    Frozen,
    Gap,
    LayerCounts,
    Measure,
    Measures,
    Natural,
    Objective,
    Options,
    Plan,
    Schedule,
    Seconds,
    Stat,
    Status,
    Unit,
)  # fmt: skip

#: The engine of plans that nobody decided here: a mapping was given, priced and replayed (docs/mappings.md).
GIVEN = "given"


class LayerReplay(Frozen):
    """What the independent walk over the schedule found."""

    ok: bool
    """No fault, and (where `compared`) the same figures as the price."""
    compared: bool
    """False where the machine is priced by a paper's literal equations, which no machine executes."""
    steps: Natural
    """Innermost iterations walked."""
    executed: bool
    """Whether the layer was also computed tile by tile on integers and equals the direct convolution."""
    measures: Measures
    faults: tuple[str, ...]
    note: str


class PlanReplay(Frozen):
    """Replay of all layers: `ok` is None when nothing could be replayed."""

    ok: bool | None
    layers: Natural
    executed: Natural
    note: str


class TrafficLimits(Frozen):
    """Bytes that no plan of the layer can do without (docs/limits.md)."""

    compulsory_bytes: Natural
    """Every needed input, weight and output once."""
    lower_bound_bytes: Natural
    """The same or the I/O lower bound for the machine's memory, whichever is larger."""


class LayerPlan(Frozen):
    """The plan of one layer. Fields are None where there is nothing to say, never 0 or infinity."""

    layer: str
    workload: Layer
    status: Status
    objective: Objective | None
    bound: Natural | None
    gap: Gap | None
    wall_s: Seconds
    """Seconds spent on building and deciding; 0 when the answer was taken from an identical layer (`same_as`)."""
    schedule: Schedule | None
    decision: dict[str, int | str] | None
    """The decisions of `schedule`, beside its nest."""
    measures: Measures | None
    counts: LayerCounts | None
    occupancy_bytes: dict[str, Natural] | None
    replay: LayerReplay | None
    conflicts: tuple[str, ...]
    """For an infeasible layer: a minimal set of demands that cannot be met together."""
    size: dict[str, int]
    """Nests of the search space; 2^53 stands for that many or more."""
    stats: dict[str, Stat]
    """Engine statistics."""
    same_as: str | None
    """The layer before that it equals, whose plan it has."""
    limits: TrafficLimits | None = None
    """None without a schedule, and in the literal reading, whose counts are a paper's estimates."""
    buffers: tuple[Buffer, ...] | None = None
    """Where the tiles lie on chip (on the core with the largest tiles, others alike); None without a schedule."""


class LayersOptions(Options):
    """What else was asked for, so that the call can be repeated."""

    full: bool
    bounding: bool


class LayersPlan(Plan):
    """A plan of one or more layers; docs/files.md explains every key."""

    PROBLEMS = ("tiling", "slicing")

    objectives: Annotated[tuple[Measure, ...], Field(min_length=1)]
    unit: Unit
    pins: tuple[str, ...]
    options: LayersOptions
    measures: Measures | None
    """Sums over all layers; None unless every layer has a schedule."""
    replay: PlanReplay
    layers: Annotated[tuple[LayerPlan, ...], Field(min_length=1)]
    homes: HomesPlan | None = None
    """On machines with several memories off the chip where every map and all weights of the network lie. Status and
    bound are then those over all homes, the layers' ones for the homes that they have.
    """

    @model_serializer(mode="wrap")
    def _without_none(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {k: v for k, v in write(self).items() if k not in ("homes", "conflicts", "stats") or v}

    def layer(self, name: str) -> LayerPlan:
        """Return the plan of the layer called `name`; raises InputError if there is none."""
        for plan in self.layers:
            if plan.layer == name:
                return plan
        known = ", ".join(p.layer for p in self.layers)
        raise InputError(f"plan of {self.network} has no layer {name!r}; it has {known}")
