"""A map of a memory: time to the right, addresses upwards, a letter for every buffer."""

from __future__ import annotations

from collections.abc import Iterator

from formulations.placement.part import MemoryUse
from solver.placement.rows import rows_of
from solver.plan import Plan

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
