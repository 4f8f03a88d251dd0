"""Schedules of problem hybrid: groups of stages, the sizes of their pieces, and the bank programs of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hwmodels.schedule import StageRun


@dataclass(frozen=True)
class PieceRun:
    """A bank program for pieces that are alike, and how many of them run it."""

    count: int
    stages: tuple[StageRun, ...]


@dataclass(frozen=True)
class GroupRun:
    """Stages that run piece by piece, or whole."""

    length: int
    """How many stages."""
    columns: int
    rows: int
    """`columns`, `rows`: of a piece of the last map; the whole map if it is in one piece."""
    pieces: tuple[tuple[PieceRun, ...], ...]
    """Of every kind of piece the programs."""


@dataclass(frozen=True)
class HybridRun:
    """What a hybrid plan says: how the first layer is read, and the groups in order."""

    first_layer: Literal["patches", "plain"]
    groups: tuple[GroupRun, ...]
