"""Plans of whole networks in a shared memory: a nest for every layer, and which rows of which map stay, and where.

Figures of a layer are what the replay counts.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import PositiveInt

from hwmodels.schedule import FusedRun, LayerRun
from instances.frozen import Sparse
from instances.machine import Machine
from instances.stores import Stores
from solver.network_plan import NetworkPlan
from solver.plan import Frozen, LayerCounts, Measures, Natural, Schedule
from solver.tiling.buffers import Buffer


class Resident(Sparse):
    """The first rows of a map, and the banks that hold them one after the other; without banks the bytes."""

    LEFT_OUT: ClassVar = frozenset(("banks", "bytes"))

    map: str
    rows: PositiveInt
    banks: tuple[Natural, ...] = ()
    """Left out where the memory has none."""
    bytes: PositiveInt | None = None
    """What the rows take; left out where they have banks."""


def residents_of(found: Stores, machine: Machine, run: LayerRun | FusedRun) -> tuple[Resident, ...]:
    """Return the maps on chip while a layer or a group runs, by name."""
    made = []
    for s, (rows, banks) in run.residents.items():
        store = found.stores[s]
        taken = None if machine.ocm_banks else rows * store.row_bytes(machine)
        made.append(Resident(map=store.name, rows=rows, banks=banks, bytes=taken))
    return tuple(sorted(made, key=lambda one: one.map))


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
    """Where its tiles lie; none where the memory has no banks."""
    schedule: Schedule
    """The nest; rows that are on chip are read where they are, and are no part of a tile."""
    measures: Measures
    counts: LayerCounts
    occupancy_bytes: Natural
    """What the tiles take."""
    buffers: tuple[Buffer, ...]
    """Where the tiles lie: addresses count through `banks` in their order, as if these were one memory (without banks
    they leave room for tiles alone, not for maps).
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

    problem: Literal["joint"]
    pins: tuple[str, ...]
    replay: JointReplay
    layers: tuple[JointLayer, ...]
