"""What can be made easier, one thing at a time.

A relaxation takes no plan away and makes none dearer, so the optimum cannot get worse; if it gets better, what was
relaxed binds.

**Of a nest** pins are left out, memories have no limit, prices are nothing, lanes are other ones.

**Of other plans** pins are left out, and scalar fields of the machine are twice as good, each by itself: memories,
lanes and rates are better if larger; times, prices and energies if smaller. Sizes of elements, bursts and pages are
facts of a network or a DRAM, not of how much machine there is: they are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

from pydantic import ValidationError

from hwmodels.nest.homes import repriced
from hwmodels.nest.price.closed_form import PRICE_FIELDS
from hwmodels.transfer import PRICES
from instances.errors import InputError, choices, did_you_mean
from instances.machine.fields import rows
from instances.machine.machine import Machine, Transfer
from instances.network.buffers import Buffers
from instances.network.workload import Layer
from solver.ask.question import Question
from solver.plan.why import Cause

#: Bytes that hold every layer.
ENDLESS = 2**40
#: Memories of so many bytes are counted in KiB.
_KIB_FROM = 8192
#: What each price of a transfer is paid for.
_PAID: dict[str, Cause] = {price.field: price.cause for price in PRICES.values()}


@dataclass(frozen=True)
class Relaxed:
    """Easier conditions."""

    cause: Cause
    name: str
    change: str
    machine: Machine
    pins: tuple[str, ...]
    finer: int = 1
    """Its ticks are so many times as many as the plan's."""
    target: Buffers | None = None
    """What is planned, if that is what is relaxed."""
    amount: float = 0
    per: str = ""
    """`amount`, `per`: how much more there is of something, and its unit."""


def finer(machine: Machine, factor: int) -> Machine:
    """Return the same machine with its ticks divided in finer ones: all prices are that many times as many."""

    def prices(of: Transfer) -> Transfer:
        return of.model_copy(update={name: factor * getattr(of, name) for name in _PAID})

    memories = tuple(one.model_copy(update={"transfer": prices(one.transfer)}) for one in machine.off_chip)
    compute = machine.compute.model_copy(update={"cycle_ticks": factor * machine.compute.cycle_ticks})
    update = {"off_chip": memories, "transfer": prices(machine.transfer), "compute": compute}
    return machine.model_copy(update={**update, "layer_ticks": factor * machine.layer_ticks})


def memory_field(memory: str) -> str:
    """Return the field of a machine that says how large a memory on chip is."""
    return "ocm_bytes" if memory == "ocm" else f"{memory}_buffer_bytes"


def of_nest(layer: Layer, machine: Machine, pins: Sequence[str], objective: str) -> Iterator[Relaxed]:
    """Yield what can be relaxed of a layer, what can be changed first: pins, memories, the array; then prices."""
    asked = tuple(pins)
    yield from of_pins(machine, asked)
    memories = {memory_field(name): ENDLESS for name in machine.memories}
    for name in memories:
        roomy = machine.model_copy(update={name: ENDLESS})
        yield Relaxed("memory", name, f"{name} without limit", roomy, asked)
    if len(memories) > 1:
        roomy = machine.model_copy(update=memories)
        yield Relaxed("memory", "all buffers", "all buffers without limit", roomy, asked)
    if objective == "time":
        yield from _prices(machine, asked)
        yield from _lanes(layer, machine, asked)
    if objective == "energy":
        yield Relaxed("arithmetic", "mac_fj", "MACs of no energy", machine.model_copy(update={"mac_fj": 0}), asked)
        free = tuple(one.model_copy(update={"byte_fj": 0}) for one in machine.off_chip)
        cheap = machine.model_copy(update={"byte_fj": 0, "off_chip": free})
        yield Relaxed("traffic", "byte_fj", "bytes of no energy", cheap, asked)


def of_pins(machine: Machine, pins: tuple[str, ...]) -> Iterator[Relaxed]:
    """Yield the pins, one left out at a time, then all."""
    for pin in pins:
        rest = tuple(other for other in pins if other != pin)
        yield Relaxed("pin", pin, f"without pin {pin}", machine, rest)
    if len(pins) > 1:
        yield Relaxed("pin", "all pins", "without any pin", machine, ())


def together(machine: Machine) -> Relaxed:
    """Return the same without pins and without limits of memories, at once."""
    roomy = machine.model_copy(update={memory_field(name): ENDLESS for name in machine.memories})
    return Relaxed("together", "memories and pins", "memories without limit and no pins", roomy, ())


def at_price(machine: Machine, path: str, price: int) -> Machine:
    """Return the machine with another price, in all of its memories off the chip."""
    section, _, name = path.rpartition(".")
    if section == "transfer":
        return repriced(machine, **{name: price})
    if section == "compute":
        return machine.model_copy(update={"compute": machine.compute.model_copy(update={name: price})})
    return machine.model_copy(update={name: price})


def _prices(machine: Machine, pins: tuple[str, ...]) -> Iterator[Relaxed]:
    """Yield every price that is paid, left out."""
    told: dict[str, tuple[Cause, str]] = {
        "compute.cycle_ticks": ("compute", "computing for nothing"),
        "layer_ticks": ("layer", "no time of the layer's own"),
    }
    for field, what in PRICE_FIELDS.items():
        section, _, name = field.rpartition(".")
        cause, said = told[field] if field in told else (_PAID[name], f"{what} for nothing")
        owners = machine.transfers if section == "transfer" else (machine.compute if section else machine,)
        idle = section == "compute" and machine.compute.model == "none"
        if not idle and any(getattr(owner, name) for owner in owners):
            yield Relaxed(cause, field, said, at_price(machine, field, 0), pins)


def _lanes(layer: Layer, machine: Machine, pins: tuple[str, ...]) -> Iterator[Relaxed]:
    """Yield an array whose lanes are all full whatever the channels, and the best shape with as many lanes.

    The first is one lane that is as fast as all of them: no shape is faster.
    """
    unit, name = machine.compute, "compute.rows x compute.cols"
    lanes = unit.rows * unit.cols
    if unit.model != "array" or machine.reading == "literal" or lanes == 1 or not unit.cycle_ticks:
        return
    factor = lanes // gcd(lanes, unit.cycle_ticks)
    one = unit.model_copy(update={"rows": 1, "cols": 1, "cycle_ticks": factor * unit.cycle_ticks // lanes})
    full = finer(machine, factor).model_copy(update={"compute": one})
    yield Relaxed("array", name, "all lanes full, whatever the channels", full, pins, factor)
    if (shape := best_lanes(layer, machine)) is not None:
        other = unit.model_copy(update={"rows": shape[0], "cols": shape[1]})
        said = f"as many lanes in {shape[0]} rows and {shape[1]} columns"
        yield Relaxed("array", name, said, machine.model_copy(update={"compute": other}), pins)


def lanes_ticks(layer: Layer, rows: int, cols: int) -> int:
    """Return the cycles of a layer in one tile on an array of `rows` output and `cols` input channels."""
    places = layer.b * layer.r * layer.c * layer.kh * layer.kw * layer.inputs
    if layer.m == layer.n == 1:
        return places * -(-layer.g // cols)
    return places * layer.g * -(-layer.m // rows) * -(-layer.n // cols)


def best_lanes(layer: Layer, machine: Machine) -> tuple[int, int] | None:
    """Return another shape of an array with as many lanes on which the layer takes the fewest cycles, None if none is.

    Of shapes that are equally fast the one whose rows are nearest to the machine's.
    """
    unit = machine.compute
    if unit.model != "array" or machine.reading == "literal":
        return None
    lanes = unit.rows * unit.cols
    shapes = [(rows, lanes // rows) for rows in range(1, lanes + 1) if lanes % rows == 0]
    best = min(shapes, key=lambda shape: (lanes_ticks(layer, *shape), abs(shape[0] - unit.rows)))
    return best if lanes_ticks(layer, *best) < lanes_ticks(layer, unit.rows, unit.cols) else None


# ---- fields of a machine ---------------------------------------------------------------------------------------------

#: Fields by the end of their names: what they are worth, and whether more is better.
_KINDS: dict[str, tuple[Cause, bool]] = {
    "ocm_bytes": ("memory", True), "buffer_bytes": ("memory", True), "map_bytes": ("memory", True),
    "weight_bytes": ("memory", True), "bank_bytes": ("memory", True), "global_bytes": ("memory", True),
    "memories.bytes": ("memory", True),
    "local_bytes": ("memory", True), "memory_bytes": ("memory", True), "reserved_bytes": ("memory", False),
    "banks.count": ("memory", True), "engine.banks": ("memory", True), "mesh.banks": ("memory", True),
    **{price.field: (price.cause, False) for price in PRICES.values()}, "layer_ticks": ("layer", False),
    "bytes_per_cycle": ("bandwidth", True), "byte_ps": ("bandwidth", False), "move_ps": ("bandwidth", False),
    "memcpy_us": ("bandwidth", False), "map_us": ("bandwidth", False), "unmap_us": ("bandwidth", False),
    "send_ns": ("bandwidth", False), "receive_ns": ("bandwidth", False), "serial_ns": ("bandwidth", False),
    "call_ns": ("startup", False), "sync_ns": ("startup", False),
    "cycle_ticks": ("compute", False), "stage_cycles": ("compute", False), "macs_per_cycle": ("compute", True),
    "rows": ("compute", True), "cols": ("compute", True), "banks.filters": ("compute", True),
    "banks.lanes": ("compute", True), "engine.e_in": ("compute", True), "engine.e_out": ("compute", True),
    "mesh.pes": ("compute", True), "tles": ("compute", True), "tlts": ("compute", True),
    "mac_ps": ("processor", False), "result_ps": ("processor", False), "reduction_ns": ("processor", False),
    "speedup": ("processor", True), "element_ps": ("processor", False), "power_mw": ("processor", False),
    "mac_fj": ("arithmetic", False), "byte_fj": ("traffic", False),
}  # fmt: skip
#: Short names for `--marginal`, the first field that the machine has.
NAMES: dict[str, tuple[str, ...]] = {
    "memory": ("ocm_bytes", "banks.map_bytes", "engine.bank_bytes", "mesh.global_bytes"),
    "bandwidth": ("transfer.byte_ticks", "mesh.dram_bytes_per_cycle"),
    "clock": ("compute.cycle_ticks",),
    "rows": ("compute.rows", "mesh.rows", "banks.filters"),
    "cols": ("compute.cols", "mesh.cols", "banks.lanes"),
}


@dataclass(frozen=True)
class FieldOf:
    """A scalar field of a machine."""

    path: str
    """As ``--set`` takes it, with places in lists: ``processors.accelerators[0].mac_ps``."""
    unit: str
    value: int | float
    cause: Cause
    more: bool
    """Whether plans get better as it grows."""


def fields_of(machine: Machine, problem: str) -> Iterator[FieldOf]:
    """Yield the fields that a problem reads and that make plans better; memories first."""
    data, seen = machine.model_dump(mode="json"), list[FieldOf]()
    for row in rows():
        if problem in row.problems and (kind := _kind(row.path)) is not None:
            for path, value in _values(data, row.path):
                seen.append(FieldOf(path, row.unit, value, *kind))
    order: tuple[Cause, ...] = ("memory", "bandwidth", "startup", "processor", "compute")
    yield from sorted(seen, key=lambda one: order.index(one.cause) if one.cause in order else len(order))


def field_of(machine: Machine, problem: str, name: str) -> FieldOf:
    """Return a field by its path or short name.

    Raises InputError if the machine or the problem has none of this name, or it says nothing of how good plans are.
    """
    known = {one.path: one for one in fields_of(machine, problem)}
    for path in (name, *NAMES.get(name, ())):
        if path in known:
            return known[path]
    memories = [one.path for one in known.values() if one.cause == "memory"]
    if memories and name in ("memory", *NAMES["memory"]):
        raise InputError(f"--marginal {name}: {machine.name} has other memories: name {choices(memories)}")
    hint = did_you_mean(name, [*known, *NAMES], 2, 0.5)
    short = [short for short, paths in NAMES.items() if any(path in known for path in paths)]
    raise InputError(f"--marginal {name}: {hint}problem {problem} has {choices([*short, *known])}")


def _kind(path: str) -> tuple[Cause, bool] | None:
    plain = path.replace("[]", "")
    return next((kind for end, kind in _KINDS.items() if f"._{plain}".endswith((f".{end}", f"_{end}"))), None)


def _values(data: Any, path: str, before: str = "") -> Iterator[tuple[str, int | float]]:
    """The positive numbers at a path, with their own paths."""
    name, _, rest = path.partition(".")
    many, name = name.endswith("[]"), name.removesuffix("[]")
    value = data.get(name) if isinstance(data, dict) else None
    places = enumerate(value) if many and isinstance(value, list) else [(None, value)]
    for number, item in places:
        here = f"{before}{name}" if number is None else f"{before}{name}[{number}]"
        if rest:
            yield from _values(item, rest, f"{here}.")
        elif isinstance(item, int | float) and not isinstance(item, bool) and item > 0:
            yield here, item


def with_field(machine: Machine, path: str, value: int | float) -> Machine | None:
    """Return the machine with another value of a field; None if no machine has it."""
    data = machine.model_dump(mode="json")
    at: Any = data
    *way, last = path.replace("]", "").replace("[", ".").split(".")
    for name in way:
        at = at[int(name)] if name.isdigit() else at[name]
    at[last] = value
    try:
        return Machine.model_validate(data)
    except (ValidationError, InputError):
        return None


def of_fields(asked: Question, problem: str, unit: str) -> Iterator[Relaxed]:
    """Yield every field twice as good that may matter; where buffers bring memories, these twice as large."""
    machine, pins = asked.machine, asked.pins
    if isinstance(asked.target, Buffers) and asked.target.memories:
        yield from _memories(asked.target, machine, pins)
        return
    for one in fields_of(machine, problem):
        value = _better(one)
        if value == one.value or not _matters(one, unit):
            continue
        easier = with_field(machine, one.path, value)
        if easier is not None:
            yield Relaxed(one.cause, one.path, f"{one.path} {value:g} instead of {one.value:g}", easier, pins)


def of_more(asked: Question) -> Iterator[Relaxed]:
    """Yield a little more of a shared memory (a sixteenth of it, whole banks), and 1 GB/s more, each by itself.

    So the value of a KiB and of a GB/s can be told. Rates are whole ticks a byte: ticks are divided in finer ones.
    """
    machine, pins, price = asked.machine, asked.pins, asked.machine.transfer.byte_ticks
    size, banks = machine.ocm_bytes or 0, machine.ocm_banks
    bank = size // banks if banks else min(1024, size)
    if bank:
        number = max(1, size // (16 * bank))
        more, unit = number * bank, ("KiB", 1024) if size >= _KIB_FROM else ("byte", 1)
        roomy = {"ocm_bytes": size + more, "ocm_banks": banks and banks + number}
        easier = machine.model_copy(update=roomy)
        yield Relaxed("memory", "ocm_bytes", f"{more:,} bytes more on chip", easier, pins,
                      amount=more / unit[1], per=unit[0])  # fmt: skip
    period = price * machine.tick_ps  # ps a byte; a GB/s more: 1000 / (1000 / period + 1)
    if price and asked.profile is None:
        part = gcd(1000 + period, 1000 * price)
        factor = (1000 + period) // part
        easier = at_price(finer(machine, factor), "transfer.byte_ticks", 1000 * price // part)
        rate = 1000 / period
        change = f"{rate + 1:.4g} instead of {rate:.4g} GB/s"
        yield Relaxed("bandwidth", "transfer.byte_ticks", change, easier, pins, factor, amount=1, per="GB/s")


def _memories(target: Buffers, machine: Machine, pins: tuple[str, ...]) -> Iterator[Relaxed]:
    for number, memory in enumerate(target.memories):
        larger = list(target.memories)
        larger[number] = memory.model_copy(update={"bytes": 2 * memory.bytes})
        roomy = target.model_copy(update={"memories": tuple(larger)})
        change = f"memory {memory.name} {2 * memory.bytes:,} bytes instead of {memory.bytes:,}"
        yield Relaxed("memory", memory.name, change, machine, pins, target=roomy)


def _matters(one: FieldOf, unit: str) -> bool:
    """Times and energies change no bytes, and energies no time."""
    energy = one.path.endswith(("_fj", "_mw"))
    return (one.more or one.cause == "memory") if unit not in ("ticks", "fJ", "nJ") else unit != "ticks" or not energy


def _better(one: FieldOf) -> int | float:
    if one.more:
        return 2 * one.value
    return one.value // 2 if isinstance(one.value, int) else one.value / 2
