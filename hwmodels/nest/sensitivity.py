"""How the time of a nest depends on the machine's prices: what a calibration fits.

Model. Let x be the prices of a machine in ticks (`PRICES`: of a call, a segment, a burst, a byte, a compute cycle, a
layer). A nest whose decisions are kept takes

    T(x) = max over paths p of sum_j a[p, j] * x[j]   [ticks]

where a path is a cluster with its busiest core, or one choice of "load, compute or store" for every step that overlaps,
and a[p, j] is the integer number of times that path p pays price j. T is convex, piecewise linear and homogeneous:
``T(K*x) = K*T(x)``. Hence the counts of the path that decides are differences of two prices in integers,

    a[j] = T(K*x + e_j) - T(K*x)   for large K,

exactly where K exceeds every count and no two paths tie (at a tie: the largest count of the tied paths). No further
model is needed: whatever `hwmodels.nest.price` charges, now or later, is differentiated as it is charged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hwmodels.nest.price import price
from hwmodels.schedule import Nest
from instances.errors import InputError
from instances.machine import Machine
from instances.workload import Layer

#: The prices of problems tiling and slicing, by the name of the machine's field, and what pays them.
PRICES: dict[str, str] = {
    "layer_ticks": "layers",
    "transfer.call_ticks": "DMA calls",
    "transfer.segment_ticks": "contiguous runs",
    "transfer.burst_ticks": "burst windows",
    "transfer.row_ticks": "DRAM rows",
    "transfer.refresh_ticks": "refresh periods",
    "transfer.byte_ticks": "bytes",
    "compute.cycle_ticks": "compute cycles",
}
#: Scaled times stay below 2**this: every number on the way is exact, as an integer and as a double.
_BITS = 50


@dataclass(frozen=True)
class Sensitivity:
    """The time of a nest in ticks, and how often it pays each of some prices."""

    ticks: int
    counts: tuple[int, ...]


def prices_of(machine: Machine) -> dict[str, int]:
    """Return all prices of a machine in ticks, by field."""
    return {field: _get(machine, field) for field in PRICES}


def with_prices(machine: Machine, prices: Mapping[str, int]) -> Machine:
    """Return the machine with other prices.

    Raises
    ------
    InputError
        If a price is for something that this machine does not count.
    """
    groups: dict[str, dict[str, int]] = {}
    for field, ticks in prices.items():
        group, _, name = field.rpartition(".")
        groups.setdefault(group, {})[name] = ticks
    update: dict[str, object] = dict(groups.pop("", {}))
    for group, values in groups.items():
        update[group] = getattr(machine, group).model_copy(update=values)
    _refuse(machine, prices)
    return machine.model_copy(update=update)


def _get(machine: Machine, field: str) -> int:
    value: object = machine
    for name in field.split("."):
        value = getattr(value, name)
    return int(str(value))


def _refuse(machine: Machine, prices: Mapping[str, int]) -> None:
    for kind in ("burst", "row", "refresh"):
        if prices.get(f"transfer.{kind}_ticks") and not getattr(machine.transfer, f"{kind}_bytes"):
            raise InputError(
                f"machine {machine.name}: transfer.{kind}_ticks has a price, so transfer.{kind}_bytes must be positive"
            )


def sensitivity(layer: Layer, machine: Machine, nest: Nest, fields: Sequence[str]) -> Sensitivity:
    """Return the time of a nest and the counts of some prices (keys of `PRICES`), see the module docstring.

    Raises
    ------
    InputError
        If the machine cannot be priced (`hwmodels.nest.price`), or takes time that is none of `PRICES`.
    """
    prices = prices_of(machine)
    ticks = price(layer, machine, nest).time_ticks
    scale = 1 << max(0, _BITS - ticks.bit_length())
    scaled = {field: value * scale for field, value in prices.items()}
    if price(layer, with_prices(machine, scaled), nest).time_ticks != ticks * scale:
        raise InputError(f"machine {machine.name}: has prices beside {', '.join(PRICES)}: counts cannot be told apart")
    counts = []
    for field in fields:
        more = with_prices(machine, {**scaled, field: scaled[field] + 1})
        counts.append(price(layer, more, nest).time_ticks - ticks * scale)
    return Sensitivity(ticks, tuple(counts))
