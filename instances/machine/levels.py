"""Memories in levels: from the far one, off the chip, to those that the PEs compute on (problem ``levels``).

A machine with DRAM, an L2 of 512 KiB and an L1 of 64 KiB says
``"levels": {"memories": [{"name": "dram"}, {"name": "l2", "bytes": 524288}, {"name": "l1", "bytes": 65536}]}``. A
memory of 32-bit sums alone is a level of its own: ``{"name": "acc", "bytes": 65536, "operands": ["OUT"]}``.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, PositiveInt, model_validator

from instances.errors import InputError
from instances.frozen import Sparse

Operand = Literal["IN", "W", "OUT"]
OPERANDS: tuple[Operand, ...] = ("IN", "W", "OUT")
_Price = Field(default=0, ge=0)


class Level(Sparse):
    """One memory, and what moving tiles between it and the nearer ones costs."""

    LEFT_OUT: ClassVar = frozenset(("operands", "passed", "reserved_bytes", "buffers"))

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$", max_length=40)
    """A letter, then letters, digits, ``_`` or ``-``."""
    bytes: PositiveInt | None = None
    """What it holds; not given: as much as need be, which only the first memory does."""
    operands: tuple[Operand, ...] = OPERANDS
    """The operands that may lie there."""
    passed: tuple[Operand, ...] = ()
    """Those of them that need not: a plan says whether they lie there, or come to the next memory from the one before.
    """
    buffers: Literal[1, 2] = 1
    """2: every tile takes its bytes twice, so that the next one is fetched, or the last one stored, while it is in use.
    """
    reserved_bytes: int = _Price
    """Taken before any tile."""
    call_ticks: int = _Price
    """For each transfer of a tile between it and a nearer memory."""
    byte_ticks: int = _Price
    """For each byte of it."""
    byte_fj: int = _Price
    """Femtojoules for a byte that moves between it and a nearer memory."""


class Levels(Sparse):
    """The memories of a machine in levels."""

    LEFT_OUT: ClassVar = frozenset(("queues",))

    memories: tuple[Level, ...] = Field(min_length=2)
    """From the one off the chip to the nearest."""
    queues: Literal["serial", "one", "each"] = "serial"
    """What `time` counts. "serial": one transfer, or tile of compute, after the other. "one": transfers overlap with
    compute, one DMA moves them one by one. "each": what moves between a memory and nearer ones has a DMA of its own.
    """

    @model_validator(mode="after")
    def _in_order(self) -> Levels:
        names, (first, *others) = [one.name for one in self.memories], self.memories
        if len(set(names)) < len(names):
            raise ValueError(f"every memory needs a name of its own, got {', '.join(names)}")
        if first.bytes is not None or first.silent != first.LEFT_OUT:
            raise ValueError(
                f"the first memory, {first.name}, is off the chip and holds everything: give no bytes there"
            )
        for one in others:
            if one.bytes is None:
                raise ValueError(f"memory {one.name}: give its bytes; only the first memory is as large as need be")
            if one.bytes <= one.reserved_bytes:
                raise ValueError(
                    f"memory {one.name}: reserved_bytes {one.reserved_bytes} leaves nothing of {one.bytes}"
                )
            if not one.operands or len(set(one.operands)) < len(one.operands):
                raise ValueError(f"memory {one.name}: operands names one or more of IN, W, OUT, each once")
            if beyond := [operand for operand in one.passed if operand not in one.operands]:
                raise ValueError(f"memory {one.name}: {beyond[0]} cannot pass it, it may not lie there")
        if self.queues == "serial" and any(one.buffers > 1 for one in self.memories):
            raise ValueError("buffers 2 needs queues 'one' or 'each': with 'serial' nothing overlaps")
        for operand in OPERANDS:
            near = [one for one in others if operand in one.operands]
            if not near:
                raise ValueError(f"{operand} lies in no memory on the chip: name it in the operands of one")
            if operand in near[-1].passed:
                raise ValueError(f"memory {near[-1].name}: {operand} cannot pass the last memory it may lie in")
        return self

    @property
    def twice(self) -> str:
        """The first operand that several memories on the chip may hold; "" if there is none."""
        held = [operand for one in self.memories[1:] for operand in one.operands]
        return next((operand for operand in OPERANDS if held.count(operand) > 1), "")

    def memory(self, name: str) -> Level:
        """Return a memory; raises InputError if there is none of that name."""
        for one in self.memories:
            if one.name == name:
                return one
        raise InputError(f"no memory {name}, expected one of {', '.join(one.name for one in self.memories)}")
