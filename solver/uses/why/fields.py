"""Scalar fields of a machine: which ones make plans better, in which direction, and what they are for people.

Memories, lanes and rates are better if larger; times, prices and energies if smaller. Sizes of elements, bursts and
pages are facts of a network or a DRAM, not of how much machine there is: they are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from hwmodels.transfer import PRICES
from instances.errors import InputError, choices, did_you_mean
from instances.machine.fields import rows
from instances.machine.machine import Machine
from solver.plan.why import Cause

#: Fields by the end of their names: what they are worth, and whether more is better.
_KINDS: dict[str, tuple[Cause, bool]] = {
    "ocm_bytes": ("memory", True), "buffer_bytes": ("memory", True), "map_bytes": ("memory", True),
    "weight_bytes": ("memory", True), "bank_bytes": ("memory", True), "global_bytes": ("memory", True),
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

    Raises
    ------
    InputError
        If the machine or the problem has none of this name, or it says nothing of how good plans are.
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
