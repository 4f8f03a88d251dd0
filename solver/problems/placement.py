"""Problem placement, as the rest of `solver` sees it: how its plans are shown.

`PlacedBuffer` is what tables and pictures say of a buffer. Drawn is every memory with its buffers, addresses over time;
`picture` does so in letters: time to the right, addresses upwards, a letter for every buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from formulations.placement.problem import MemoryUse, PlacementFormulation, in_memories
from instances.errors import InputError
from instances.network.buffers import Buffers, buffers_to_csv
from instances.problems import either, nested
from solver.plan.figures import Axis, Bars, Box, Boxes, Figure, Series
from solver.plan.plan import Plan
from solver.problems.problem import Problem, Target
from solver.show.common import layer_axis
from solver.show.style import slugs
from solver.show.tables import ABSENT, Column, Sheet, name_column
from solver.show.words import agreement


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


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_COLUMNS, _ROWS = 72, 16


def picture(plan: Plan, memory: MemoryUse) -> Iterator[str]:
    """Yield the lines; of many times every so-many-th is shown, and of an address range whoever is at its begin."""
    known = {b.name: b for b in plan.network_data.buffers}
    rows = [b for b in rows_of(plan) if b.memory == memory.name and b.name in known]
    letters = {b.name: _LETTERS[k % len(_LETTERS)] for k, b in enumerate(rows)}
    times = sorted({extent.lower for b in rows for extent in known[b.name].extents()})
    shown = times[:: -(-len(times) // _COLUMNS) or 1]
    lines = min(_ROWS, memory.peak)
    used = f"{memory.peak:,} of {memory.bytes:,} bytes"
    yield f"{memory.name}: {used}; addresses upwards, times {times[0] if times else 0} on to the right"
    for line in reversed(range(lines)):
        address = memory.peak * line // lines
        cells = ""
        for time in shown:
            there = [
                letters[b.name] for b in rows for e in known[b.name].extents()
                if e.lower <= time < e.upper and e.low <= address - (b.address or 0) < e.high
            ]  # fmt: skip
            cells += there[0] if there else "."
        yield f"{address:>12,}  {cells}"
    if len(rows) <= len(_LETTERS):
        yield "  ".join(f"{letters[b.name]} {b.name}" for b in rows)


_GROUPS = 7


def _memory(plan: Plan, memory: MemoryUse, key: str) -> Boxes:
    """A memory; neighbours have different colours, which mean nothing else."""
    boxes = tuple(_boxes(plan, memory))
    end = max((box.x_end for box in boxes), default=1)
    begin = min((box.x for box in boxes), default=0)
    caption = (
        f"A box is a buffer: when it lives, to the right, and where, upwards. {memory.peak:,} of {memory.bytes:,} "
        f"bytes are used, at most {memory.load:,} live at one time; the line is the end of the memory."
    )
    steps = end <= 12
    time = Axis("time", ticks=layer_axis([str(k) for k in range(int(end))]).ticks) if steps else Axis("time")
    axis = Axis(time.title, ticks=time.ticks, limits=(begin, end))
    limit = memory.bytes if memory.bytes <= 2 * memory.peak else None
    groups = tuple(f"colour {k + 1}" for k in range(_GROUPS))
    return Boxes(
        key, f"Memory {memory.name}", caption, axis, Axis("address (bytes)"), groups, boxes, limit=limit, keyed=False
    )


def _boxes(plan: Plan, memory: MemoryUse) -> Iterator[Box]:
    known = {buffer.name: buffer for buffer in plan.network_data.buffers}
    mine = [b for b in rows_of(plan) if b.memory == memory.name and b.address is not None and b.name in known]
    for number, place in enumerate(mine):
        at = place.address or 0
        for extent in known[place.name].extents():
            note = f"{place.size:,} bytes at {at:,}, times {place.lower} to {place.upper}"
            yield Box(extent.lower, extent.upper, at + extent.low, at + extent.high, place.name, number % _GROUPS, note)


def _use(plans: Mapping[str, Plan]) -> Bars:
    """How full every memory is: what lives at one time at most, and what lies free below the highest byte."""
    bars = [(memory, engine) for engine, plan in plans.items() for memory in memories_of(plan)]
    order = list(dict.fromkeys(memory.name for memory, _ in bars))
    bars.sort(key=lambda bar: order.index(bar[0].name))
    return Bars(
        "use", "How full memories are",
        "The most that lives at one time: no placement needs less. Beside it what the highest byte lies above that, "
        "and (the mark) the size of the memory.",
        Axis("bytes"), tuple(memory.name for memory, _ in bars),
        (
            Series("lives at one time", tuple(memory.load for memory, _ in bars)),
            Series("beyond that", tuple(max(0, memory.peak - memory.load) for memory, _ in bars)),
        ),
        tuple(engine for _, engine in bars) if len(plans) > 1 else (),
        tuple(memory.bytes for memory, _ in bars), "size",
    )  # fmt: skip


class PlacementProblem(Problem):
    """Memory and address of every buffer."""

    front_axes = ("bytes", "peak")

    def __init__(self) -> None:
        super().__init__(PlacementFormulation())

    # ---- what is asked -----------------------------------------------------------------------------------------------

    def objectives(self, asked: str | Sequence[str] | None, target: Target) -> tuple[str, ...]:
        """The measures; raises InputError unless there are buffers to place."""
        if not isinstance(target, Buffers):
            raise InputError(
                f"target {getattr(target, 'name', '')}: problem placement takes buffers: a .csv or .json file of them, "
                f"or a plan of problem {either(nested(), 'or')}"
            )
        return super().objectives(asked, target)

    # ---- what a plan says --------------------------------------------------------------------------------------------

    def file_text(self, plan: Plan, path: str) -> str | None:
        """Return the buffers with their addresses in column `offset`, as MiniMalloc writes them, for a CSV file."""
        if not path.lower().endswith(".csv") or not plan.decided:
            return None
        return buffers_to_csv(plan.network_data, {b.buffer: (b.memory, b.address) for b in plan.schedule.places})

    def rooms(self, plan: Plan) -> Iterator[tuple[str, int, int]]:
        """Return how full memories are."""
        yield from ((memory.name, memory.peak, memory.bytes) for memory in memories_of(plan))

    # ---- showing -----------------------------------------------------------------------------------------------------

    def items(self, plan: Plan) -> list[tuple[str, object]]:
        """The buffers."""
        return [(row.name, row) for row in rows_of(plan)]

    def said(self, plan: Plan) -> Iterator[str]:
        """How full memories are."""
        for memory in memories_of(plan):
            used = f"{memory.peak:,} of {memory.bytes:,} bytes of {memory.name}"
            yield f"{used}, at most {memory.load:,} at one time"
        yield agreement(plan)

    def sheet(self, plan: Plan) -> Sheet:
        """A row a buffer."""
        rows = rows_of(plan)
        return Sheet(
            [
                name_column("buffer", [b.name for b in rows]),
                Column(
                    "address", [ABSENT if b.address is None else f"{b.address:,}" for b in rows], "of the first byte"
                ),
                Column("bytes", [f"{b.size:,}" for b in rows]),
                Column("from", [str(b.lower) for b in rows], "when it begins to live"),
                Column("to", [str(b.upper) for b in rows], "before when it lives"),
                Column("memory", [b.memory or "off the chip" for b in rows], words=True, spare=1),
            ]
        )

    def drawings(self, plan: Plan, plans: Mapping[str, Plan]) -> list[Figure]:
        """Every memory, addresses over time."""
        keys = slugs(memory.name for memory in memories_of(plan))
        maps = [_memory(plan, memory, f"memory-{key}") for memory, key in zip(memories_of(plan), keys, strict=True)]
        return [*maps, _use(plans)]

    def details(self, plan: Plan, layer: str | None) -> Iterator[str]:
        """A map of every memory over time, and all buffers; or one buffer with those that it meets."""
        if layer is None:
            for memory in memories_of(plan):
                yield from (*picture(plan, memory), "")
        for b in rows_of(plan):
            if layer in (None, b.name):
                where = "off the chip" if b.memory is None else f"{b.memory} {b.address:,} to {_end(b):,}"
                yield f"{b.name}: {where}, {b.size:,} bytes, times {b.lower} to {b.upper}"
        if layer is not None:
            yield from _beside(plan, next(b for b in rows_of(plan) if b.name == layer))


def _end(buffer: PlacedBuffer) -> int:
    return (buffer.address or 0) + buffer.size


def _beside(plan: Plan, buffer: PlacedBuffer) -> Iterator[str]:
    """Those alive at the same time in the same memory."""
    for other in sorted(rows_of(plan), key=lambda b: b.address or 0):
        alive = other.lower < buffer.upper and buffer.lower < other.upper
        if other.name != buffer.name and other.memory == buffer.memory is not None and alive:
            yield f"  beside {other.name}: {other.address:,} to {_end(other):,}, times {other.lower} to {other.upper}"


PROBLEM = PlacementProblem
