"""What is drawn of placements: every memory with its buffers, addresses over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from formulations.placement.part import MemoryUse
from solver.pages.common import layer_axis
from solver.pages.data import Axis, Bars, Box, Boxes, Figure, Series
from solver.pages.style import slugs
from solver.placement.rows import memories_of, rows_of
from solver.plan import Plan

_GROUPS = 7


def figures(plan: Plan, others: Mapping[str, Plan]) -> list[Figure]:
    """Return all figures."""
    keys = slugs(memory.name for memory in memories_of(plan))
    maps = [_memory(plan, memory, f"memory-{key}") for memory, key in zip(memories_of(plan), keys, strict=True)]
    return [*maps, _use({plan.engine: plan, **others})]


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
