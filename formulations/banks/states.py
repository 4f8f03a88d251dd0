"""Banks, between stages: what is on chip, what a stage moves, and plans of a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from formulations.banks.tasks import Program, Task
from instances.network.feature_maps import Stage


class Resident(NamedTuple):
    """Tiles of a map on chip: its first columns (end 0, also for a map of one tile) or its last ones, from there on.

    DRAM does not have the first `unwritten` of these tiles.
    """

    map: str
    tiles: int
    end: int
    unwritten: int


class State(NamedTuple):
    """The stages that are done, as a set of bits, the last one, and what is on chip."""

    done: int = 0
    last: int = -1
    residents: tuple[Resident, ...] = ()

    def of(self, name: str) -> Resident | None:
        """What is on chip of a map."""
        for resident in self.residents:
            if resident.map == name:
                return resident
        return None


class Volume(NamedTuple):
    """Bytes between DRAM and chip by what they are."""

    load: int = 0
    weight: int = 0
    streamed: int = 0
    bias: int = 0
    write: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.load + self.weight + self.streamed + self.bias + self.write


@dataclass(frozen=True)
class Step:
    """One stage as planned."""

    stage: Stage
    source: str
    """The map that is read from the banks."""
    direction: int
    """1 if its columns are read from the last one on."""
    task: Task
    program: Program
    """`task`, `program`: what the stage finds and leaves, and its control steps."""
    after: State
    """What is on chip when it is done."""
    volume: Volume
    """Columns that have to be written because this stage loads them again, or drops them, count here."""


@dataclass(frozen=True)
class BankPlan:
    """A plan for all stages, in the order that they run."""

    steps: tuple[Step, ...]

    @property
    def volume(self) -> Volume:
        """What all stages move."""
        return Volume(*map(sum, zip(*(step.volume for step in self.steps), strict=True)))
