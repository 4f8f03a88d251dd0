"""The roofline: MACs a second over MACs a byte, with the roofs that no schedule of the machine exceeds.

A nest does at most ``rows * cols`` (model "array") or ``macs_per_cycle`` (model "tile") MACs of a core in a cycle. A
byte takes at least ``byte_ticks``, and its share of a whole burst. So with I MACs a byte a layer reaches at most
``min(peak, I * bandwidth)``. Source: `tso_burst_slicing` Fig. 7, without the measured roofs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hwmodels.transfer import WINDOWS
from instances.machine.glance import glance
from instances.machine.machine import Machine
from instances.machine.sections import Transfer
from instances.network.workload import Layer
from solver.plan.figures import Axis, Cloud, Point, Points

#: MACs a picosecond in GMAC/s, bytes a picosecond in GB/s.
_GIGA = 1000


@dataclass(frozen=True)
class Roofs:
    """What a machine cannot exceed; None where nothing limits it."""

    gmacs: float | None
    """10^9 MACs a second."""
    gbytes: float | None
    """10^9 bytes a second."""


@dataclass(frozen=True)
class Rate:
    """A layer: its MACs, the bytes that it moves, and its time in ticks."""

    name: str
    macs: int
    bytes: int
    ticks: int


def roofs(machine: Machine, memory: str = "") -> Roofs:
    """Return the roofs of a machine: of nests, memory banks, or a mesh; of a memory in levels by its name."""
    peak = glance(machine).peak
    gmacs = peak / 10**9 if peak and machine.timing != "transfer_only" else None
    if machine.mesh is not None:
        return Roofs(gmacs, _GIGA * machine.mesh.dram_bytes_per_cycle / machine.tick_ps)
    if machine.levels is not None:
        ticks = machine.levels.memory(memory).byte_ticks * machine.tick_ps
        return Roofs(gmacs, _GIGA / ticks if ticks else None)
    moves = [one.transfer for one in machine.off_chip] or [machine.transfer]
    buses = machine.tles if machine.dram == "per_tle" else 1
    least = min(_byte_ticks(move) for move in moves)
    return Roofs(gmacs, _GIGA * buses / (least * machine.tick_ps) if least else None)


def _byte_ticks(move: Transfer) -> float:
    """The least ticks of a byte: calls, runs, rows and refreshes are left out."""
    ticks: float = move.byte_ticks
    for one in WINDOWS:
        if size := getattr(move, one.size):
            ticks += getattr(move, one.field) / size
    return ticks


def unpadded(layer: Layer) -> int:
    """Return the MACs of a layer without those of padding, which a machine may skip."""
    sides = (
        (layer.r, layer.stride_h, layer.dilation_h, layer.kh, layer.pad_top, layer.h),
        (layer.c, layer.stride_w, layer.dilation_w, layer.kw, layer.pad_left, layer.l),
    )
    inside = [
        sum(0 <= stride * at + dilation * tap - pad < size for at in range(out) for tap in range(taps))
        for out, stride, dilation, taps, pad, size in sides
    ]
    return layer.macs * inside[0] * inside[1] // (layer.r * layer.kh * layer.c * layer.kw)


def roofline(
    machine: Machine, rates: Mapping[str, Iterable[Rate]], what: str = "layer", note: str = "", memory: str = ""
) -> Points:  # fmt: skip
    """Return the figure; `rates` are the layers by engine, of which those without MACs, bytes or time are left out.

    `memory`: of memories in levels the one whose bytes these are.
    """
    clouds = [
        Cloud(
            engine,
            tuple(
                Point(
                    one.macs / one.bytes, _GIGA * one.macs / (one.ticks * machine.tick_ps), one.name,
                    f"{one.macs:,} MACs, {one.bytes:,} bytes",
                )
                for one in rows
                if one.macs and one.bytes and one.ticks
            ),
        )
        for engine, rows in rates.items()
    ]  # fmt: skip
    limits = roofs(machine, memory)
    lines = _roofs(limits, [point.x for cloud in clouds for point in cloud.points])
    said = [
        *([f"{limits.gmacs:,.4g} GMAC/s of its units"] if limits.gmacs else []),
        *([f"{limits.gbytes:,.4g} GB/s of its memory"] if limits.gbytes else []),
    ]
    caption = (
        f"A point is a {what}: MACs a second over MACs a byte from and to {memory or 'off-chip memory'}, both axes "
        "logarithmic. "
        f"No point lies above the roofs of {machine.name}: {' and '.join(said) or 'none is known'}."
    )
    caption += f" {note}" if note else ""
    name, title = (f"roofline-{memory}", f"Roofline of {memory}") if memory else ("roofline", "Roofline")
    return Points(name, title, caption, Axis("MACs a byte", log=True), Axis("GMAC/s", log=True), (*clouds, *lines))


def _roofs(limits: Roofs, found: Sequence[float]) -> list[Cloud]:
    """The corners of the roofs over all that is drawn."""
    if not found:
        return []
    ridge = limits.gmacs / limits.gbytes if limits.gmacs and limits.gbytes else found[0]
    left, right = min(*found, ridge) / 2, max(*found, ridge) * 2
    made = []
    if limits.gmacs:
        begin = ridge if limits.gbytes else left
        made.append(Cloud("peak of the units", (Point(begin, limits.gmacs), Point(right, limits.gmacs)), "line"))
    if limits.gbytes:
        end = ridge if limits.gmacs else right
        corners = Point(left, left * limits.gbytes), Point(end, end * limits.gbytes)
        made.append(Cloud("peak of the memory", corners, "line"))
    return made
