"""Memories off the chip: what moving tiles to and from each costs, how much it holds, and which operands may lie there.

A machine with weights in flash and feature maps in SRAM says
``"off_chip": [{"name": "sram", ...}, {"name": "flash", "writable": false, ...}]`` and
``"homes": {"IN": ["sram"], "W": ["flash"], "OUT": ["sram"]}``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field, PositiveInt, model_validator

from instances.frozen import Frozen, Sparse

Count = Field(default=0, ge=0)
#: Of every operand the names of the memories where it may lie, the preferred one first.
Homes = dict[str, tuple[str, ...]]


class Transfer(Sparse):
    """The price of moving one tile between DRAM and on-chip memory.

    ``call_ticks*calls + segment_ticks*segments + burst_ticks*bursts + row_ticks*rows
    + refresh_ticks*refreshes + byte_ticks*bytes``; the counting rules are in docs/transfer.md.
    A size of 0 (`burst_bytes`, `row_bytes`, `refresh_bytes`) means that this count is not made.
    """

    LEFT_OUT: ClassVar = frozenset[str]()
    model: Literal["volume", "burst", "dma", "lpddr4", "custom"] = "custom"
    """A name for people; the prices alone decide."""
    call_ticks: int = Count
    """For each request: start-up of the DMA."""
    segment_ticks: int = Count
    """For each run of contiguous addresses."""
    burst_ticks: int = Count
    """For each burst, a window of `burst_bytes`."""
    burst_bytes: int = Count
    """A burst."""
    burst_count: Literal["aligned", "address"] = "aligned"
    """"aligned": n bytes are ``ceil(n / burst_bytes)`` bursts. "address": the windows that the run touches."""
    row_ticks: int = Count
    """For each DRAM row of a request (tile plans refuse it)."""
    row_bytes: int = Count
    """A DRAM row."""
    refresh_ticks: int = Count
    """For each refresh period of a request (tile plans refuse it)."""
    refresh_bytes: int = Count
    """What moves in a refresh period."""
    byte_ticks: int = Count
    """For each byte."""

    @property
    def by_address(self) -> bool:
        """Whether bursts are counted by the windows that runs of addresses touch."""
        return self.burst_count == "address" and self.burst_bytes > 0

    @model_validator(mode="after")
    def _sizes(self) -> Transfer:
        for price, size in (("burst", "burst_bytes"), ("row", "row_bytes"), ("refresh", "refresh_bytes")):
            if getattr(self, f"{price}_ticks") and not getattr(self, size):
                raise ValueError(f"{price}_ticks is set, so {size} must be positive")
        return self


class OffChip(Frozen):
    """One memory off the chip."""

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$", max_length=40)
    """A letter, then letters, digits, ``_`` or ``-``."""
    transfer: Transfer
    """Prices of moving tiles between it and the chip; burst and row sizes are its own."""
    bytes: PositiveInt | None = None
    """What it holds: weights, and feature maps while they are needed; not given: as much as need be."""
    byte_fj: int = Count
    """Femtojoules for a byte that moves."""
    writable: bool = True
    """Whether results may lie there; flash is not writable."""


def home_faults(memories: Sequence[OffChip], homes: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield what is wrong with the memories and the homes that name them."""
    names = [memory.name for memory in memories]
    if len(set(names)) < len(names):
        yield f"off_chip: every memory needs a name of its own, got {', '.join(names)}"
    if unknown := sorted(set(homes) - {"IN", "W", "OUT"}):
        yield f"homes: there is no operand {', '.join(unknown)}, expected IN, W, OUT"
    if not memories and homes:
        yield "homes need off_chip, the memories that they name"
    for operand in ("IN", "W", "OUT") if memories else ():
        mine = homes.get(operand, ())
        if not mine or len(set(mine)) < len(mine):
            yield f"homes.{operand}: name one or more of {', '.join(names)}, each once, got {list(mine)}"
        for name in mine:
            if name not in names:
                yield f"homes.{operand}: there is no memory {name} off the chip, expected {', '.join(names)}"
            elif operand == "OUT" and not next(m for m in memories if m.name == name).writable:
                yield f"homes.OUT: {name} is not writable, so results cannot lie there"
