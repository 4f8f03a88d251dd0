"""What is wrong with the numbers of a machine file that loads: a line for each fault (``certile machines --check``).

sources   every number has one, every source a number, and none is just "assumed"
units     a clock of 1 MHz to 10 GHz, memories of 1 MB/s and more, prices of transfers below a second, energies as they
          are made: a tick in the wrong unit is a thousand times off
said      a number is what its source says: a cycle its clock, a byte its bandwidth, a memory its size, an element its
          width (`instances.machine.said` reads them). Prices are whole ticks, so 1 % is allowed, and half of a tick.
          MACs a cycle times the clock are the peak that the file names
sums      banks are whole parts of their memory; a memory in levels is no larger than all of those farther out
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import combinations_with_replacement

from pydantic import BaseModel

from instances.machine.glance import Glance, bytes_per_second, glance
from instances.machine.machine import Machine
from instances.machine.said import Said, close, said
from instances.machine.sections import Transfer

_PS = 10**12
#: Elements of operands: their widths are held against bits, the other bytes against sizes.
_ELEMENTS = frozenset(("in_bytes", "w_bytes", "out_bytes", "psum_bytes", "bias_bytes"))
#: How many of something: one of the numbers in their source, or two of them together.
_COUNTS = frozenset((
    "ocm_banks", "channel_block", "banks.count", "compute.rows", "compute.cols", "compute.pixels", "mesh.rows",
    "mesh.cols", "compute.macs_per_cycle",
))  # fmt: skip
#: Times that something takes once.
_STARTS = frozenset(("call_ticks", "layer_ticks", "burst_ticks"))
#: Sections whose bytes are no memories.
_BOARDS = frozenset(("platform", "processors"))
#: Least and most of what a number may be: Hz, bytes/s (least), ps of a price, fJ of a byte and of a MAC.
_CLOCKS, _SLOWEST, _PRICES = (1e6, 1e10), 1e6, (0, 1e12)
_ENERGIES = {"byte_fj": (10, 10**7), "mac_fj": (1, 10**6)}
#: How far a peak may be from what is said of it, as 600 GOPS of 288 MACs at 1 GHz; and a price in coarse ticks.
_PEAK, _COARSE = 0.05, 0.1


def faults(machine: Machine) -> list[str]:
    """What is wrong with a machine, a line each, by kind: sources, units, what is said, sums."""
    seen = glance(machine)
    return [*_unsourced(machine), *_units(machine, seen), *_differing(machine, seen), *_sums(machine)]


# ---- sources --------------------------------------------------------------------------------------------------------


def _unsourced(machine: Machine) -> Iterator[str]:
    """The numbers that no source is stated for, the sources of no number, and those that say nothing."""
    stated = set(machine.sources)
    for name in sorted(_numbers(machine)):
        if not _of(name, stated):
            yield f"{name}: no source"
    for name in sorted(stated - {path for path, _, _ in _fields(machine, "")}):
        yield f"sources.{name}: the file has no such field"
    for name, text in machine.sources.items():
        words = text.lower().removeprefix("assumed").strip(" .:")
        if not any(letter.isalpha() for letter in words):
            yield f"sources.{name}: {text!r} says nothing; name a document, or write 'assumed: why'"


def _of(name: str, stated: Iterable[str]) -> str:
    """The entry of `sources` that covers a field: its own, or that of the section it is in; "" if there is none."""
    parts = name.split(".")
    return next((key for k in range(len(parts), 0, -1) if (key := ".".join(parts[:k])) in stated), "")


def _numbers(machine: Machine) -> dict[str, float]:
    """Numbers of a file that are not those that a field has if nothing is said, by their place in it."""
    return {
        path: float(value) for path, value, default in _fields(machine, "")
        if isinstance(value, int | float | Fraction) and not isinstance(value, bool) and value != default
    }  # fmt: skip


def _fields(model: BaseModel, before: str) -> Iterator[tuple[str, object, object]]:
    """Every field by its place, with its value and what it is if nothing is said."""
    for name, field in type(model).model_fields.items():
        value, path = getattr(model, name), f"{before}{name}"
        yield path, value, field.get_default(call_default_factory=True)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, BaseModel):
                part = f".{label}" if isinstance(value, tuple) and (label := getattr(one, "name", "")) else ""
                yield from _fields(one, f"{path}{part}.")


# ---- units ----------------------------------------------------------------------------------------------------------


def _units(machine: Machine, seen: Glance) -> Iterator[str]:
    """Numbers that no machine has: a unit is wrong, or the tick."""
    if seen.clock_hz and not _within(seen.clock_hz, _CLOCKS):
        yield f"{_clock_field(machine)}: a clock of {_hertz(seen.clock_hz)}; 1 MHz to 10 GHz are plausible"
    for name, value in _numbers(machine).items():
        last = name.split(".")[-1]
        if last == "byte_ticks" and (rate := _PS / (value * machine.tick_ps)) < _SLOWEST:
            yield f"{name}: {value:,.0f} ticks of {machine.tick_ps:,} ps a byte are {_rate(rate)}, below 1 MB/s"
        elif last.endswith("_ticks") and not _within(value * machine.tick_ps, _PRICES):
            yield f"{name}: {value * machine.tick_ps / _PS:,.3g} s; a second and more is no price of one"
        elif last in _ENERGIES and not _within(value, _ENERGIES[last]):
            least, most = _ENERGIES[last]
            yield f"{name}: {value / 1000:,.10g} pJ; {least / 1000:g} to {most / 1000:,g} pJ are plausible"
        elif last == "burst_bytes" and int(value) & (int(value) - 1):
            yield f"{name}: {value:,.0f}; bursts are powers of two"
        elif last in _ELEMENTS and value > 16:
            yield f"{name}: an element of {value:,.0f} bytes; 1 to 16 are plausible: are these bits?"


def _within(value: float, limits: tuple[float, float]) -> bool:
    return limits[0] <= value <= limits[1]


def _clock_field(machine: Machine) -> str:
    """The field that says how long a cycle is."""
    if machine.engine is not None:
        return "engine.clock_hz"
    return "tick_ps" if machine.mesh is not None else "compute.cycle_ticks"


# ---- what is said ---------------------------------------------------------------------------------------------------


def _differing(machine: Machine, seen: Glance) -> Iterator[str]:
    """Numbers that are not what their source, or the description, says."""
    clock = seen.clock_hz
    if clock and (key := _of(_clock_field(machine), machine.sources)):
        yield from _clock(_clock_field(machine), clock, said(machine.sources[key]), machine)
    yield from _tick(machine)
    for name, value in _numbers(machine).items():
        if not (key := _of(name, machine.sources)):
            continue
        text, last = said(machine.sources[key]), name.split(".")[-1]
        if last == "byte_ticks":
            yield from _bandwidth(name, value, text, machine, clock)
        elif last.endswith("bytes_per_cycle") and clock:
            yield from _streamed(name, value * clock, text)
        elif name in _COUNTS:
            yield from _count(name, value, text, machine)
        elif last in _STARTS:
            yield from _start(name, value * machine.tick_ps, text, clock)
        elif last in _ENERGIES:
            if text.energies and not any(close(value, one) for one in text.energies):
                told = _either(f"{one / 1000:g}" for one in text.energies)
                yield f"{name}: {value / 1000:g} pJ; its source says {told} pJ"
        elif last in _ELEMENTS:
            if text.widths and 8 * value not in text.widths:
                yield f"{name}: {8 * value:.0f} bits; its source says {_either(f'{one}' for one in text.widths)} bits"
        elif (last == "bytes" or last.endswith("_bytes")) and name.split(".")[0] not in _BOARDS:
            yield from _size(name, value, text, machine)
    yield from _peak(machine, seen)


def _clock(name: str, clock: float, text: Said, machine: Machine) -> Iterator[str]:
    """A clock is that of its source, as nearly as ticks can say."""
    step = machine.tick_ps * machine.compute.pixels / 2
    if not text.clocks:
        yield f"{name}: {_hertz(clock)} by the file; its source names no clock (write: 500 MHz)"
    elif not any(close(clock, one) or _rounded(_PS / clock, _PS / one, step) for one in text.clocks):
        yield f"{name}: {_hertz(clock)} by the file; its source says {_either(map(_hertz, text.clocks))}"


def _tick(machine: Machine) -> Iterator[str]:
    """A clock, or a byte of a bandwidth, that a tick is chosen for is a whole number of ticks."""
    text = said(machine.sources.get("tick_ps", ""))
    chosen = [(one, _hertz(one)) for one in text.clocks] + [(one, f"a byte at {_rate(one)}") for one in text.rates]
    for value, shown in chosen:
        ticks = _PS / value / machine.tick_ps
        if not close(ticks, max(1, round(ticks))) and not any(
            close(_PS / value, n * machine.tick_ps) for n in map(float, text.whole)
        ):
            yield f"tick_ps: {shown} takes {ticks:,.3g} ticks of {machine.tick_ps:,} ps, no whole number of them"


def _bandwidth(name: str, value: float, text: Said, machine: Machine, clock: float | None) -> Iterator[str]:
    """A byte takes as long as the source says: so many bytes a second, or a cycle."""
    period = value * machine.tick_ps
    clocks = [*text.clocks, *said(machine.sources.get("tick_ps", "")).clocks, *((clock,) if clock else ())]
    rates = [*text.several(text.rates), *(word * hertz for word in text.words for hertz in clocks)]
    all_in = bytes_per_second(_transfer(machine, name), machine) if "transfer" in name else _PS / period
    shown = f"{name}: {_rate(_PS / period)} by the file; its source"
    if not rates:
        yield f"{shown} names no bandwidth (write: 8 GB/s, or 8 bytes a cycle)"
    elif not any(
        close(_PS / period, one) or close(all_in, one) or _rounded(period, _PS / one, machine.tick_ps / 2)
        for one in rates if one
    ):  # fmt: skip
        yield f"{shown} says {_either(map(_rate, text.rates or rates))}"


def _transfer(machine: Machine, name: str) -> Transfer:
    """The prices that a ``byte_ticks`` is one of."""
    section, memory = name.split(".")[:2]
    return next(
        (one.transfer for one in machine.off_chip if (section, memory) == ("off_chip", one.name)), machine.transfer
    )


def _streamed(name: str, rate: float, text: Said) -> Iterator[str]:
    """Bytes of a cycle, times the clock."""
    if text.rates and not any(close(rate, one) for one in text.rates):
        yield f"{name}: {_rate(rate)} by the file; its source says {_either(map(_rate, text.rates))}"


def _count(name: str, value: float, text: Said, machine: Machine) -> Iterator[str]:
    """How many of something: one of the numbers of the text, or two of them, or as many as fill the memory."""
    known = {*text.times, *text.macs, *(a * b for a, b in combinations_with_replacement(text.times, 2))}
    filled = name == "ocm_banks" and any(close(value * one, machine.ocm_bytes or 0) for one in text.sizes)
    if text.times and value not in known and not filled:
        yield f"{name}: {value:,.0f}; its source says {_either(f'{one:,}' for one in sorted(text.times))}"


def _start(name: str, taken: float, text: Said, clock: float | None) -> Iterator[str]:
    """A start-up takes the time that is said, or the cycles."""
    clocks = [*text.clocks, *((clock,) if clock else ())]
    named = [_PS / one for one in text.clocks] + [n * _PS / one for n in text.cycles for one in clocks]
    named += [sum(text.cycles) * _PS / one for one in clocks if len(text.cycles) > 1]
    if named and not any(close(taken, one, _COARSE / 2) for one in named):
        told = _either(f"{one / 1000:,.4g}" for one in named)
        yield f"{name}: {taken / 1000:,.4g} ns by the file; its source says {told} ns"


def _rounded(one: float, other: float, step: float) -> bool:
    """Whether a time is another one in ticks that are coarse beside it."""
    return abs(one - other) <= step and close(one, other, _COARSE)


def _size(name: str, value: float, text: Said, machine: Machine) -> Iterator[str]:
    """A memory has the bytes that its source says, or so many parts of them."""
    if not text.sizes:
        return
    found = [*text.several(text.sizes), *map(float, text.whole), sum(text.sizes)]
    if name.endswith("reserved_bytes"):  # the source may say what is left
        found += [memory - one for memory in machine.memories.values() for one in text.sizes]
    low, high = min(text.sizes), max(text.sizes)
    ranged = "to" in machine.sources[_of(name, machine.sources)].split() and low <= value <= high
    if not ranged and not any(abs(value - one) < 1 for one in found):
        yield f"{name}: {_bytes(value)} by the file; its source says {_either(map(_bytes, text.sizes))}"


def _peak(machine: Machine, seen: Glance) -> Iterator[str]:
    """MACs a cycle, the clock and what both make together are those of the description and of the sources."""
    texts = {"description": machine.description} | {
        f"sources.{name}": text for name, text in machine.sources.items() if name.split(".")[0] in ("compute", "mesh")
    }
    for where, text in texts.items():
        read = said(text)
        if seen.macs and read.macs and seen.macs not in {round(one) for one in read.several(map(float, read.macs))}:
            yield f"{where}: says {_either(f'{one:,}' for one in read.macs)} MACs, the file has {seen.macs:,} a cycle"
        if seen.peak and read.peaks and not any(close(seen.peak, one, _PEAK) for one in read.several(read.peaks)):
            told = _either(f"{one / 1e9:,.4g}" for one in read.peaks)
            yield f"{where}: says {told} GMAC/s, the file makes {seen.peak / 1e9:,.4g} ({seen.macs:,} MACs a cycle)"
    clocks = said(machine.description).clocks
    if seen.clock_hz and clocks and not any(close(seen.clock_hz, one) for one in clocks):
        yield f"description: says {_either(map(_hertz, clocks))}, the file has a clock of {_hertz(seen.clock_hz)}"


# ---- sums -----------------------------------------------------------------------------------------------------------


def _sums(machine: Machine) -> Iterator[str]:
    """Memories whose parts do not make the whole."""
    if machine.ocm_banks and machine.ocm_bytes and machine.ocm_bytes % machine.ocm_banks:
        rest = machine.ocm_bytes % machine.ocm_banks
        yield f"ocm_banks: {machine.ocm_banks} equal banks leave {rest} of {machine.ocm_bytes:,} bytes"
    if machine.banks is not None and machine.banks.map_bytes % machine.banks.count:
        rest = machine.banks.map_bytes % machine.banks.count
        yield f"banks.count: {machine.banks.count} equal banks leave {rest} of {machine.banks.map_bytes:,} bytes"
    memories = machine.levels.memories if machine.levels is not None else ()
    for k, near in enumerate(memories):
        far = [one for one in memories[:k] if set(one.operands) & set(near.operands) and one.bytes]
        if near.bytes and far and all(near.bytes > (one.bytes or 0) for one in far):
            names = _either(one.name for one in far)
            yield f"levels.memories.{near.name}.bytes: {_bytes(near.bytes)}, larger than {names}, which is farther out"


def _either(texts: Iterable[str]) -> str:
    """One of several, each once."""
    return " or ".join(dict.fromkeys(texts))


def _hertz(value: float) -> str:
    return f"{value / 1e6:,.4g} MHz"


def _rate(value: float) -> str:
    return f"{value / 1e9:,.4g} GB/s"


def _bytes(value: float) -> str:
    return f"{value:,.0f} bytes"
