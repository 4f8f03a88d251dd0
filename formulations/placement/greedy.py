"""Heuristics: buffers are placed one by one, each where it meets none of those before.

An example: in the order of size, a (6 bytes, times 0 to 3) lies at 0, b (4 bytes, 0 to 1) above it at 6, and c (4
bytes, 1 to 3) at 6, too, since b has ended. All but `best-fit` take the lowest address; that takes the narrowest gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from hwmodels.placement.schedule import Place, Placement
from instances.network.buffers import Buffer, Memory, together

#: Orders in which buffers are placed one by one.
ORDERS: Final[Mapping[str, Callable[[Buffer], tuple[int, ...]]]] = {
    "size": lambda b: (-b.size, b.lower),
    "lifetime": lambda b: (b.lower - b.upper, -b.size),
    "area": lambda b: (-sum((e.upper - e.lower) * (e.high - e.low) for e in b.extents()), b.lower),
    "time": lambda b: (b.lower, -b.size),
}
#: By the name of a heuristic its order, and whether it takes the narrowest gap.
GREEDY: Final[Mapping[str, tuple[str, bool]]] = {
    **{name: (name, False) for name in ORDERS}, "best-fit": ("size", True),
}  # fmt: skip


@dataclass(frozen=True)
class Rooms:
    """Where buffers may be placed: memories with the most of their bytes, and who shares no bank with whom."""

    memories: Sequence[Memory]
    capacity: Mapping[str, int]
    partners: Mapping[str, frozenset[str]]


def placed(buffers: Sequence[Buffer], rooms: Rooms, name: str) -> Placement | None:
    """Place buffers by a heuristic of `GREEDY`: in the first of their memories with room, else off the chip.

    Those with an address come first, then those that have to be on chip. None if one of them finds no room.
    """
    order, narrow = ORDERS[GREEDY[name][0]], GREEDY[name][1]
    inside: dict[str, list[tuple[Buffer, int]]] = {memory.name: [] for memory in rooms.memories}
    ordered = sorted(buffers, key=lambda b: (b.offset is None, b.spill is not None, *order(b)))
    for buffer in ordered:
        for memory in memories_of(buffer, rooms.memories):
            gaps = free(buffer, memory, rooms, inside[memory.name])
            address = min(gaps, key=lambda gap: (gap[1] - gap[0] if narrow else 0, gap[0]), default=None)
            if address is not None:
                inside[memory.name].append((buffer, address[0]))
                break
        else:
            if buffer.spill is None:
                return None
    where = {b.name: Place(b.name, memory, address) for memory, rows in inside.items() for b, address in rows}
    return Placement(tuple(where[b.name] for b in buffers if b.name in where))


def memories_of(buffer: Buffer, memories: Sequence[Memory]) -> Sequence[Memory]:
    """Where a buffer may lie, the preferred memory first."""
    if not buffer.memories:
        return memories
    named = {memory.name: memory for memory in memories}
    return [named[name] for name in buffer.memories if name in named]


def free(
    buffer: Buffer, memory: Memory, rooms: Rooms, inside: Sequence[tuple[Buffer, int]]
) -> Iterator[tuple[int, int]]:
    """Yield the gaps in which a buffer may begin, each as its first address and the last one."""
    most = rooms.capacity[memory.name] - buffer.size
    taken = [(-1, -1), (most + 1, most + 1)]
    foes = rooms.partners.get(buffer.name, frozenset())
    for other, address in inside:
        if other.lower < buffer.upper and buffer.lower < other.upper:
            bank = (memory.bank_bytes or memory.bytes) if other.name in foes else 1
            taken += forbidden(buffer, other, address, bank)
    reach = -1  # no address up to here
    for (first, last), (following, _) in pairwise(sorted(taken)):
        del first
        reach = max(reach, last)
        begin = -(-(reach + 1) // buffer.alignment) * buffer.alignment
        if begin < following and begin <= most:
            if buffer.offset is None:
                yield begin, following - 1
            elif begin <= buffer.offset < following:
                yield buffer.offset, following - 1


def forbidden(buffer: Buffer, other: Buffer, address: int, bank: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of addresses, first to last, at which a buffer meets another one, or (bank > 1) shares a bank."""
    for mine_low, mine_high, its_low, its_high in together(buffer, other):
        low, high = (address + its_low) // bank * bank, -(-(address + its_high) // bank) * bank
        yield low - mine_high + 1, high - mine_low - 1
