"""Schedules of problem placement: the memory and the address of every buffer on chip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field


@dataclass(frozen=True)
class Place:
    """Where a buffer lies."""

    buffer: str
    memory: str
    address: Annotated[int, Field(ge=0)]
    """Of its first byte, as long as it lives."""


@dataclass(frozen=True)
class Placement:
    """The buffers on chip; those that are not named lie off the chip."""

    places: tuple[Place, ...]
