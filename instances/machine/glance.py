"""A machine at a glance: what it holds, computes and moves, in the units that people compare chips by.

on chip      bytes of all memories for tiles or maps
MACs         multiply-accumulates that all cores begin in a cycle, at most
peak         MACs times the clock, in 1/s
bandwidth    of each memory off the chip, in bytes/s: what a long transfer gets, bursts and rows included
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import log2

from instances.errors import InputError
from instances.machine.machine import Machine
from instances.machine.sections import Transfer

_PS = 10**12
#: A number with its unit -> what it says, and how many of the unit below it is.
_UNITS: Mapping[str, tuple[str, float]] = {
    "b": ("on_chip", 1), "kib": ("on_chip", 2**10), "mib": ("on_chip", 2**20), "kb": ("on_chip", 10**3),
    "mb": ("on_chip", 10**6), "macs": ("macs", 1), "mac": ("macs", 1), "khz": ("clock_hz", 1e3),
    "mhz": ("clock_hz", 1e6), "ghz": ("clock_hz", 1e9), "gmac/s": ("peak", 1e9), "tmac/s": ("peak", 1e12),
    "gops": ("peak", 0.5e9), "tops": ("peak", 0.5e12), "mb/s": ("bandwidth", 1e6), "gb/s": ("bandwidth", 1e9),
    "bit": ("element", 0.125),
}  # fmt: skip
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z/]+)")
_ACCEPTED = "512 KiB, 256 MACs, 2 GB/s, 1 GHz, 0.5 TOPS, 8 bit"


@dataclass(frozen=True)
class Glance:
    """What is said of a machine in a line; None for what it does not have."""

    name: str
    family: str
    on_chip: int | None
    """Bytes."""
    off_chip: tuple[tuple[str, int | None, float], ...]
    """Memories off the chip: name, bytes (None: as large as need be), bytes/s."""
    macs: int | None
    clock_hz: float | None
    element: int
    """Bytes of an input element."""
    problem: str

    @property
    def peak(self) -> float | None:
        """MACs per second."""
        return None if self.macs is None or self.clock_hz is None else self.macs * self.clock_hz

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second of the fastest memory off the chip."""
        return max((speed for _, _, speed in self.off_chip), default=None)


def glance(machine: Machine) -> Glance:
    """Return what is said of a machine in a line."""
    memories = machine.off_chip
    off_chip = (
        tuple((one.name, one.bytes, bytes_per_second(one.transfer, machine)) for one in memories)
        or ((("DRAM", None, bytes_per_second(machine.transfer, machine)),) if _priced(machine) else ())
    )  # fmt: skip
    macs, clock_hz = _computes(machine)
    if machine.levels is not None:
        far = machine.levels.memories[0]
        ticks = far.byte_ticks * machine.tick_ps
        off_chip = ((far.name, None, _PS / ticks if ticks else 0.0),)
    if machine.mesh is not None and clock_hz:
        off_chip = (("DRAM", None, float(machine.mesh.dram_bytes_per_cycle) * clock_hz),)
    return Glance(
        machine.name, machine.family, _on_chip(machine), off_chip, macs, clock_hz, machine.in_bytes, machine.problem
    )  # fmt: skip


def bytes_per_second(transfer: Transfer, machine: Machine) -> float:
    """What a long transfer gets of a memory, all clusters together where each has one of its own."""
    ticks = Fraction(transfer.byte_ticks)
    for price, size in (
        (transfer.burst_ticks, transfer.burst_bytes), (transfer.row_ticks, transfer.row_bytes),
        (transfer.refresh_ticks, transfer.refresh_bytes),
    ):  # fmt: skip
        ticks += Fraction(price, size) if size else 0
    several = machine.tles if machine.dram == "per_tle" else 1
    return float(_PS * several / (ticks * machine.tick_ps)) if ticks else 0.0


def _priced(machine: Machine) -> bool:
    return any(bytes_per_second(one, machine) for one in machine.transfers)


def _on_chip(machine: Machine) -> int | None:
    cores = machine.tles * machine.tlts
    if machine.banks is not None:
        return machine.banks.count * machine.banks.map_bytes + machine.banks.weight_bytes
    if machine.engine is not None:
        return machine.engine.banks * machine.engine.bank_bytes
    if machine.mesh is not None:
        return int(machine.mesh.global_bytes)
    return sum(machine.memories.values()) * cores or None


def _computes(machine: Machine) -> tuple[int | None, float | None]:
    """MACs in a cycle, and cycles in a second."""
    cores, made = machine.tles * machine.tlts, machine.compute
    clock = _PS / (made.cycle_ticks * machine.tick_ps) if made.cycle_ticks else None
    if machine.mesh is not None:  # a tick is a cycle
        return int(machine.mesh.rows * machine.mesh.cols * machine.mesh.pes), _PS / machine.tick_ps
    if machine.engine is not None:
        return machine.engine.dsps * machine.engine.dsp_macs, float(machine.engine.clock_hz)
    if machine.banks is not None:
        return machine.banks.filters * machine.banks.lanes, clock
    if clock is None or made.model == "none":
        return None, clock
    each = made.rows * made.cols if made.model == "array" else made.macs_per_cycle
    return cores * each * made.pixels, clock / made.pixels


def wanted(text: str) -> dict[str, float]:
    """Read what a machine is to be like: numbers with units; raises InputError for others, and for one said twice."""
    found = dict[str, float]()
    for part in filter(None, (one.strip() for one in text.split(","))):
        match = _NUMBER.fullmatch(part)
        unit = _UNITS.get(match[2].lower()) if match else None
        if match is None or unit is None or not float(match[1]):
            raise InputError(f"--like {text!r}: {part!r} is no number with a unit; accepted: {_ACCEPTED}")
        if unit[0] in found:
            raise InputError(f"--like {text!r}: {part!r} says again what was said before")
        found[unit[0]] = float(match[1]) * float(unit[1])
    if not found:
        raise InputError(f"--like {text!r}: numbers with units are accepted: {_ACCEPTED}")
    return found


def distance(one: Glance, like: Mapping[str, float]) -> float | None:
    """By how many doublings a machine differs from what is wanted, all together; None if it lacks a number of it."""
    found = [getattr(one, name) for name in like]
    if any(not value for value in found):
        return None
    return sum(abs(log2(value / goal)) for value, goal in zip(found, like.values(), strict=True))
