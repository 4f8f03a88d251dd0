"""What the master of engine search decides, and what it learns from packing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cut:
    """Buffers that take `least` bytes of a memory if they are all there; None: they cannot all be there."""

    memory: str
    buffers: frozenset[str]
    least: int | None


@dataclass(frozen=True)
class Split:
    """What the master decides: the buffers in every memory, and the bytes that it thinks they need."""

    inside: Mapping[str, Sequence[str]]
    tops: Mapping[str, int]
