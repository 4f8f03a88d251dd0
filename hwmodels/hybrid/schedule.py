"""Hybrid plans as plain data: a `HybridRun` is groups of stages that run piece by piece, or whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import PositiveInt

from hwmodels.schedule import StageRun


@dataclass(frozen=True)
class PieceRun:
    """A bank program for pieces that are alike, and how many of them run it."""

    count: PositiveInt
    stages: tuple[StageRun, ...]
    """In the order that they run: s0, s1, ... are the stages of the group. Maps have the names of the stages that make
    them, those from outside are m0, m1, ...
    """


@dataclass(frozen=True)
class GroupRun:
    """Stages that run piece by piece, or whole."""

    length: PositiveInt
    """How many stages."""
    columns: PositiveInt
    rows: PositiveInt
    """`columns`, `rows`: of a piece of the last map; the whole map if it is in one piece."""
    pieces: tuple[tuple[PieceRun, ...], ...]
    """Of every kind of piece the programs."""


@dataclass(frozen=True)
class HybridRun:
    """What a hybrid plan says: how the first layer is read, and the groups in order."""

    first_layer: Literal["patches", "plain"]
    groups: tuple[GroupRun, ...]
