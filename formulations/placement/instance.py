"""Buffers to be placed: in which memories they may lie, what a placement costs, and what no placement is below."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from formulations.pins import Pins
from formulations.placement.greedy import Rooms, memories_of
from formulations.placement.packing import Packing
from formulations.problem import Priced
from hwmodels.placement.schedule import Placement
from instances.errors import InputError, choices
from instances.network.buffers import Buffer, Buffers, Memory

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

    # ---- prices ------------------------------------------------------------------------------------------------------

    def price(self, schedule: Placement) -> Priced:
        """Bytes of what is off the chip, bytes that lie where others are preferred, and bytes of memories."""
        where = {place.buffer: place for place in schedule.places}
        names = [m.name for m in self.memories]
        for name, place in where.items():
            if name not in self.numbers or place.memory not in names:
                raise InputError(
                    f"place {name} in {place.memory}: there are memories {choices(names)} and no such buffer"
                )
        if len(where) < len(schedule.places):
            raise InputError("a buffer is placed twice")
        outside = {b.name: b.spill or 0 for b in self.buffers if b.name not in where}
        tops = dict.fromkeys(names, 0)
        displaced = 0
        for name, place in where.items():
            buffer = self.buffers[self.numbers[name]]
            if buffer.memories and place.memory not in buffer.memories:
                raise InputError(f"buffer {name}: {place.memory} is none of its memories {choices(buffer.memories)}")
            tops[place.memory] = max(tops[place.memory], place.address + buffer.size)
            displaced += buffer.size * self.rank(buffer, place.memory)
        return Priced(
            {"bytes": sum(outside.values()), "preference": displaced, "peak": sum(tops.values())},
            {"bytes": outside, "peak": tops},
        )

    def contains(self, schedule: Placement) -> tuple[str, ...]:
        """Fixed addresses and the pin `cap`."""
        faults = []
        for place in schedule.places:
            buffer = self.buffers[self.numbers[place.buffer]]
            if buffer.offset is not None and place.address != buffer.offset:
                faults.append(f"buffer {buffer.name} lies at {place.address}, it has to at {buffer.offset}")
            if place.address + buffer.size > self.capacity[place.memory]:
                faults.append(
                    f"buffer {buffer.name} reaches beyond {self.capacity[place.memory]} bytes of {place.memory}"
                )
        return tuple(faults)

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
