"""Plans for a small engine: for every layer its strips, the places in the banks, and the program of a strip."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hwmodels.partial_engine.schedule import EngineSchedule
from solver.parts import PartsPlan
from solver.plan import Frozen, Gap, Natural, Objective, Seconds, Stat, Status


class EngineCounts(Frozen):
    """What is counted: DRAM bytes by kind and in all, runs, additions of groups of maps, cycles, bytes of a bank."""

    inputs: Natural = 0
    weights: Natural = 0
    spilled: Natural = 0
    reloaded: Natural = 0
    results: Natural = 0
    bytes: Natural = 0
    runs: Natural = 0
    adds: Natural = 0
    cycles: Natural = 0
    peak_bytes: Natural = 0


class EngineReplay(Frozen):
    """What the replay on the banks found: `ok` is None when there is no schedule."""

    ok: bool | None
    faults: tuple[str, ...] = ()


class EngineLayer(Frozen):
    """One layer; `conflicts` says why it has no schedule."""

    layer: str
    status: Status
    objective: Objective | None
    bound: Natural | None
    gap: Gap | None
    wall_s: Seconds
    stats: dict[str, Stat]
    conflicts: tuple[str, ...] = ()
    schedule: EngineSchedule | None
    counts: EngineCounts | None
    replay: EngineReplay


class EnginePlan(PartsPlan):
    """A plan for a small engine, layer by layer."""

    PROBLEMS = ("partial_engine",)

    problem: Literal["partial_engine"]
    objectives: tuple[Literal["bytes"]]
    unit: Literal["bytes"]
    counts: EngineCounts | None
    """Sums over all layers (`peak_bytes`: the largest); None unless every layer has a schedule."""
    replay: EngineReplay
    layers: Annotated[tuple[EngineLayer, ...], Field(min_length=1)]

    @property
    def decided(self) -> bool:
        """Whether every layer has a schedule."""
        return all(layer.schedule is not None for layer in self.layers)
