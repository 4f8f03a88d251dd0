"""Buffers to be placed: in which memories they may lie, what a placement costs, and what no placement is below.

**Heuristics** (`placed`): buffers are placed one by one, each where it meets none of those before.
An example: in the order of size, a (6 bytes, times 0 to 3) lies at 0, b (4 bytes, 0 to 1) above it at 6, and c (4
bytes, 1 to 3) at 6, too, since b has ended. All but `best-fit` take the lowest address; that takes the narrowest gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

from formulations.pins import Pins
from formulations.placement.packing import Packing
from hwmodels.schedule import Place, Placement
from instances.network.buffers import Buffer, Buffers, Memory, together

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


#: Buffers that a conflict names.
_NAMED = 6


class Instance:
    """All buffers, and the memories with what pins leave of them."""

    def __init__(self, given: Buffers, pins: Pins) -> None:
        self.given = given
        caps = [int(pin.value) for pin in pins.of("cap")]
        self.capacity = {m.name: min([m.bytes, *caps]) for m in given.memories}
        self.spill = {pin.value for pin in pins.of("spill")}
        self.buffers = tuple(map(self._asked, given.buffers))
        self.numbers = {buffer.name: number for number, buffer in enumerate(self.buffers)}

    def _asked(self, buffer: Buffer) -> Buffer:
        """A buffer as the pin `spill` says: off the chip it is written and read once, if the file says nothing."""
        if "no" in self.spill:
            return buffer.model_copy(update={"spill": None})
        if "yes" in self.spill and buffer.spill is None:
            return buffer.model_copy(update={"spill": 2 * buffer.size})
        return buffer

    @property
    def asked(self) -> Buffers:
        """The buffers with what pins say."""
        return self.given.model_copy(update={"buffers": self.buffers})

    @property
    def memories(self) -> Sequence[Memory]:
        """The preferred one first."""
        return self.given.memories

    @cached_property
    def rooms(self) -> Rooms:
        """What heuristics have to know."""
        partners: dict[str, set[str]] = {}
        for pair in self.given.conflicts:
            for one, two in (pair, pair[::-1]):
                partners.setdefault(one, set()).add(two)
        return Rooms(self.memories, self.capacity, {name: frozenset(of) for name, of in partners.items()})

    def may(self, buffer: Buffer) -> list[Memory]:
        """The memories that are large enough for a buffer, the preferred one first."""
        top = buffer.size + (buffer.offset or 0)
        return [m for m in memories_of(buffer, self.memories) if top <= self.capacity[m.name]]

    def rank(self, buffer: Buffer, memory: str) -> int:
        """How many memories are preferred."""
        return buffer.memories.index(memory) if buffer.memories else 0

    def packing(self, names: Sequence[str], memory: Memory) -> Packing:
        """Some buffers as those of one memory."""
        place = {name: k for k, name in enumerate(names)}
        partners = {
            place[name]: sorted(place[o] for o in self.rooms.partners.get(name, ()) if o in place) for name in names
        }
        buffers = [self.buffers[self.numbers[name]] for name in names]
        return Packing(buffers, partners, memory.bank_bytes or memory.bytes)

    @cached_property
    def whole(self) -> Packing:
        """All buffers, as if they lay in one memory without banks."""
        return Packing(self.buffers, {}, 0)

    # ---- bounds ------------------------------------------------------------------------------------------------------

    @cached_property
    def plain(self) -> tuple[str, ...]:
        """Why it is plain that not all that has to be on chip fits; nothing if it is not."""
        for buffer in self.buffers:
            if buffer.spill is None and not self.may(buffer):
                rooms = ", ".join(f"{self.capacity[m.name]:,} in {m.name}" for m in memories_of(buffer, self.memories))
                top = buffer.size + (buffer.offset or 0)
                return (f"buffer {buffer.name} needs {top:,} bytes, there are {rooms or 'none'}",)
        room, needed = sum(self.capacity.values()), [b for b in self.buffers if b.spill is None]
        packing = Packing(needed, {}, 0)
        for (begin, _), alive in zip(packing.sections, packing.alive, strict=True):
            if (load := sum(size for _, size in alive)) > room:
                most = sorted(alive, key=lambda row: -row[1])[:_NAMED]
                names = ", ".join(f"{b.name} {size:,}" for b, size in most)
                more = f" and {len(alive) - _NAMED} more" if len(alive) > _NAMED else ""
                return (f"{load:,} bytes are alive at time {begin}, there are {room:,}: {names}{more}",)
        return ()

    @cached_property
    def least_load(self) -> int:
        """The most bytes at one time of what has to be on chip."""
        needed = [b for b in self.buffers if b.spill is None]
        return Packing(needed, {}, 0).least if needed else 0

    @cached_property
    def least_spill(self) -> int:
        """Bytes that move whatever is placed where: in the fullest section the cheapest that makes room, in parts."""
        room, least = sum(self.capacity.values()), 0
        for alive in self.whole.alive:
            beyond, cost = sum(size for _, size in alive) - room, 0
            prices = [(b.spill, size) for b, size in alive if b.spill is not None]
            for price, size in sorted(prices, key=lambda row: row[0] / row[1]):
                if beyond <= 0:
                    break
                cost += price * min(size, beyond) // size
                beyond -= size
            least = max(least, cost)
        return least
