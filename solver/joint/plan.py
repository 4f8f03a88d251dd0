"""Plans of whole networks in a shared memory: a nest for every layer, and which rows of which map stay in which banks.

Figures of a layer are what the replay counts.
"""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from solver.network_plan import NetworkPlan
from solver.plan import Frozen, LayerCounts, Measures, Natural, Schedule
from solver.tiling.buffers import Buffer


class Resident(Frozen):
    """The first rows of a map, and the banks that hold them one after the other."""

    map: str
    rows: PositiveInt
    banks: tuple[Natural, ...]


class JointLayer(Frozen):
    """One layer."""

    layer: str
    """The operator's name."""
    reads: tuple[str, ...]
    """The map of every input."""
    writes: str
    """The map that the result is in, or a part of."""
    on_chip: tuple[Resident, ...]
    """All maps that are on chip while the layer runs: its inputs as far as they are, its result as far as it stays, and
    what waits for others.
    """
    unwritten: Natural
    """How many first rows of the result are never written to DRAM: they are on chip until they were last read."""
    banks: tuple[Natural, ...]
    """Where its tiles lie."""
    schedule: Schedule
    """The nest; rows that are on chip are read where they are, and are no part of a tile."""
    measures: Measures
    counts: LayerCounts
    occupancy_bytes: Natural
    """What the tiles take."""
    buffers: tuple[Buffer, ...] | None = None
    """Where the tiles lie: addresses count through `banks` in their order, as if these were one memory. None in plans
    that earlier versions wrote.
    """


class JointReplay(Frozen):
    """What the walk through all layers found: `ok` is None when there is no plan."""

    ok: bool | None
    executed: Natural
    faults: tuple[str, ...]


class JointPlan(NetworkPlan):
    """A plan of a network in a shared memory.

    Attributes
    ----------
    measures : Measures or None
        Sums over the layers, which run one after the other.
    """

    PROBLEMS = ("joint",)
    FORMAT_1 = "certile-joint/1"

    problem: Literal["joint"]
    pins: tuple[str, ...]
    replay: JointReplay
    layers: tuple[JointLayer, ...]
