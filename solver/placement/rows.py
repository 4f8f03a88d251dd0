"""What tables and pictures say of every buffer, and of every memory."""

from __future__ import annotations

from dataclasses import dataclass

from formulations.placement.part import MemoryUse
from formulations.placement.problem import in_memories
from solver.plan import Plan


@dataclass(frozen=True)
class PlacedBuffer:
    """A buffer, alive from time `lower` to before `upper`."""

    name: str
    lower: int
    upper: int
    size: int
    """Bytes."""
    memory: str | None = None
    address: int | None = None
    """`memory`, `address`: where its first byte lies; None off the chip."""


def rows_of(plan: Plan) -> list[PlacedBuffer]:
    """Return all buffers, those that are reserved in memories of the machine included; nothing without a schedule."""
    if not plan.decided:
        return []
    where = {place.buffer: (place.memory, place.address) for place in plan.schedule.places}
    given = in_memories(plan.network_data, plan.machine_data)
    return [PlacedBuffer(b.name, b.lower, b.upper, b.size, *where.get(b.name, ())) for b in given.buffers]


def memories_of(plan: Plan) -> tuple[MemoryUse, ...]:
    """Return how full memories are; nothing without a schedule."""
    return plan.part.figures or ()
