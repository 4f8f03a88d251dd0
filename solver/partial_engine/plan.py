"""Plans for a small engine: for every layer its strips, the places in the banks, and the program of a strip."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from solver.network_plan import WholePlan
from solver.plan import Frozen, Gap, Natural, Objective, Options, Seconds, Stat, Status

__all__ = [
    "EngineCounts", "EngineLayer", "EngineOptions", "EnginePlan", "EngineReplay", "EngineSchedule",
]  # fmt: skip


class EngineSchedule(Frozen):
    """How a layer runs.

    Attributes
    ----------
    rows, strips : int
        Output rows of a strip, and how many there are; all run the same program, one after the other.
    grids : int
        Grids of runs, one after the other: the groups of a grouped convolution, or of the maps of a depthwise one.
    inputs, outputs : int
        Groups of input and of output maps of a grid.
    in_places, part_places, fresh_places : int
        Places in every bank, at addresses one after the other: for input groups, for partial groups, and for partial
        maps that are not added yet. Map k of a group lies in bank k.
    in_place_bytes, part_place_bytes : int
        Of a bank.
    inputs_at, results_at : {"dram", "banks"}
        Where inputs are before, and results afterwards. In the banks every grid has places of its own: input group i of
        grid n is in place ``n*inputs + i``.
    program : str
        Steps ``L0@1`` (load input group 0 to input place 1), ``R0.3@2`` (run of input group 0 and output group 3, the
        result to partial place 2, ``@f`` the fresh place), ``A3@2`` (add the fresh maps to those in place 2), ``P3@2``
        (store partial maps, to come back), ``B3@1`` (load them again), ``S3@2`` (store the result).
    """

    rows: PositiveInt
    strips: PositiveInt
    grids: PositiveInt
    inputs: PositiveInt
    outputs: PositiveInt
    in_places: PositiveInt
    part_places: PositiveInt
    fresh_places: Natural
    in_place_bytes: PositiveInt
    part_place_bytes: PositiveInt
    inputs_at: Literal["dram", "banks"]
    results_at: Literal["dram", "banks"]
    program: str


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


class EngineOptions(Options):
    """What else was asked for; no `layers` are all of them."""

    layers: tuple[str, ...]
    pins: tuple[str, ...]


class EnginePlan(WholePlan):
    """A plan for a small engine, layer by layer.

    Attributes
    ----------
    counts : EngineCounts, optional
        Sums over all layers (`peak_bytes`: the largest); None unless every layer has a schedule.
    """

    PROBLEMS = ("partial_engine",)
    FORMAT_1 = "certile-engine/1"

    problem: Literal["partial_engine"]
    objectives: tuple[Literal["bytes"]]
    unit: Literal["bytes"]
    options: EngineOptions
    counts: EngineCounts | None
    replay: EngineReplay
    layers: Annotated[tuple[EngineLayer, ...], Field(min_length=1)]

    @property
    def decided(self) -> bool:
        """Whether every layer has a schedule."""
        return all(layer.schedule is not None for layer in self.layers)
