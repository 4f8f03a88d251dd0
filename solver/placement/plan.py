"""Plans of problem placement: memory and address of every buffer."""

from __future__ import annotations

import os
from typing import Literal

from pydantic import PositiveInt

from instances.buffers import Buffers, buffers_to_csv
from solver.network_plan import SubjectPlan
from solver.plan import Frozen, Natural, Options


class PlacedBuffer(Frozen):
    """A buffer, alive from time `lower` to before `upper`."""

    buffer: str
    lower: Natural
    upper: Natural
    size: PositiveInt
    """Bytes."""
    memory: str | None
    address: Natural | None
    """`memory`, `address`: where its first byte lies; null off the chip."""


class MemoryUse(Frozen):
    """A memory on chip."""

    name: str
    bytes: PositiveInt
    """That may be used."""
    peak: Natural
    """The bytes up to the highest one that is used."""
    load: Natural
    """The most bytes that are alive in it at one time."""


class PlacementMeasures(Frozen):
    """What is minimised."""

    bytes: Natural
    """That move for buffers off the chip."""
    preference: Natural
    """Bytes of buffers, times the memories that they would rather lie in."""
    peak: Natural
    """Up to the highest byte that is used, of all memories together."""


class PlacementReplay(Frozen):
    """What the walk through time found: `ok` is None when there is no plan."""

    ok: bool | None
    faults: tuple[str, ...]


class PlacementOptions(Options):
    """What else was asked for."""

    pins: tuple[str, ...]


class PlacementPlan(SubjectPlan):
    """A plan for buffers.

    Attributes
    ----------
    network, network_data : str, Buffers
        What is placed, and in which memories; the machine's, if the buffers bring none.
    """

    PROBLEMS = ("placement",)

    problem: Literal["placement"]
    network_data: Buffers
    objectives: tuple[str, ...]
    unit: Literal["bytes"]
    options: PlacementOptions
    measures: PlacementMeasures | None
    replay: PlacementReplay
    memories: tuple[MemoryUse, ...]
    places: tuple[PlacedBuffer, ...]

    @property
    def size(self) -> int:
        """How many buffers there are."""
        return len(self.places)

    def to_csv(self) -> str:
        """Return the buffers as a CSV file with their addresses in column `offset`, as MiniMalloc writes it."""
        places = {
            b.buffer: (b.memory, b.address) for b in self.places if b.memory is not None and b.address is not None
        }
        return buffers_to_csv(self.network_data, places)

    def file_text(self, path: str | os.PathLike[str]) -> str:
        """Return the plan as JSON, or as a CSV file if the path ends so."""
        return self.to_csv() if os.fspath(path).lower().endswith(".csv") else super().file_text(path)
