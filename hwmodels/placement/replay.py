"""The referee of problem placement: time after time, which bytes of which memory are taken by whom.

It walks through the times at which something begins or ends, keeps who is there sorted by address, and compares
neighbours. It shares nothing with prices and searches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from hwmodels.schedule import Place, Placement
from instances.network.buffers import Buffer, Buffers, Memory

#: Faults that are named.
_MOST_FAULTS = 5


@dataclass(frozen=True)
class Walked:
    """What the walk found: the highest byte that was taken in every memory, bytes moved, and what is wrong.

    `displaced_bytes`: bytes of buffers, times the memories that they would rather lie in.
    """

    peaks: Mapping[str, int]
    spilled_bytes: int
    displaced_bytes: int
    faults: tuple[str, ...]


@dataclass(frozen=True)
class _Taken:
    """Bytes of a memory, from `first` to before `after`, that a buffer takes."""

    first: int
    after: int
    buffer: str


def replay(given: Buffers, schedule: Placement) -> Walked:
    """Walk through a placement."""
    places = {place.buffer: place for place in schedule.places}
    faults = list[str]()
    if len(places) < len(schedule.places):
        faults.append("a buffer is placed twice")
    moved = displaced = 0
    for buffer in given.buffers:
        for better in buffer.memories if buffer.name in places else ():
            if better == places[buffer.name].memory:
                break
            displaced += buffer.size
        if buffer.name not in places:
            moved += buffer.spill or 0
            faults += [f"buffer {buffer.name} is not on chip, where it has to be"] if buffer.spill is None else []
    peaks = {}
    for memory in given.memories:
        inside = [buffer for buffer in given.buffers if getattr(places.get(buffer.name), "memory", "") == memory.name]
        peaks[memory.name] = max((places[buffer.name].address + buffer.size for buffer in inside), default=0)
        for fault in _walk(given, memory, inside, places):
            faults.append(fault)
            if len(faults) >= _MOST_FAULTS:
                break
    return Walked(peaks, moved, displaced, tuple(faults))


def _walk(given: Buffers, memory: Memory, inside: Sequence[Buffer], places: Mapping[str, Place]) -> Iterator[str]:
    """Everything that is wrong in one memory, time after time."""
    for buffer in inside:
        address = places[buffer.name].address
        if address < 0 or address + buffer.size > memory.bytes:
            end = address + buffer.size
            yield f"buffer {buffer.name} takes bytes {address} to {end} of {memory.bytes} in {memory.name}"
        if address % buffer.alignment:
            yield f"buffer {buffer.name} lies at {address}, no multiple of {buffer.alignment}"
    foes = {frozenset(pair) for pair in given.conflicts}
    times = sorted({time for buffer in inside for time in _times(buffer)})
    for time in times[:-1]:
        taken = sorted(
            (part for buffer in inside for part in _taken(buffer, places[buffer.name].address, time)),
            key=lambda part: (part.first, part.after),
        )
        highest: _Taken | None = None
        for part in taken:
            if highest is not None and part.first < highest.after:
                yield f"time {time}: buffers {highest.buffer} and {part.buffer} share bytes of {memory.name}"
            highest = part if highest is None or part.after > highest.after else highest
        for part, other in combinations(taken, 2) if foes else ():
            if {part.buffer, other.buffer} in foes and _banks(part, memory) & _banks(other, memory):
                yield f"time {time}: buffers {part.buffer} and {other.buffer} share a bank of {memory.name}"


def _times(buffer: Buffer) -> Iterator[int]:
    """When something changes."""
    yield from (buffer.lower, buffer.upper)
    for gap in buffer.gaps:
        yield from (gap.lower, gap.upper)


def _taken(buffer: Buffer, address: int, time: int) -> Iterator[_Taken]:
    """The bytes that a buffer takes at a time."""
    if not buffer.lower <= time < buffer.upper:
        return
    for gap in buffer.gaps:
        if gap.lower <= time < gap.upper:
            if gap.window is not None:
                yield _Taken(address + gap.window[0], address + gap.window[1], buffer.name)
            return
    yield _Taken(address, address + buffer.size, buffer.name)


def _banks(part: _Taken, memory: Memory) -> set[int]:
    """The banks that bytes lie in."""
    size = memory.bank_bytes or memory.bytes
    return set(range(part.first // size, (part.after - 1) // size + 1))
