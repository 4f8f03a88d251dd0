"""The closed-form price of one nest on one machine (`price`), and how its time depends on the prices (`sensitivity`).

**Sensitivity** is what a calibration fits. Let x be the prices of a machine in ticks (`PRICE_FIELDS`: of a call, a
segment, a burst, a byte, a compute cycle, a layer). A nest whose decisions are kept takes

    T(x) = max over paths p of sum_j a[p, j] * x[j]   [ticks]

where a path is a cluster with its busiest core, or one choice of "load, compute or store" for every step that overlaps,
and a[p, j] is the integer number of times that path p pays price j. T is convex, piecewise linear and homogeneous:
``T(K*x) = K*T(x)``. Hence the counts of the path that decides are differences of two prices in integers,

    a[j] = T(K*x + e_j) - T(K*x)   for large K,

exactly where K exceeds every count and no two paths tie (at a tie: the largest count of the tied paths). No further
model is needed: whatever `price` charges, now or later, is differentiated as it is charged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hwmodels.nest.homes import energy_of, housed, ticks_of
from hwmodels.nest.price.choices import Choices, Steps, lined, trees_of
from hwmodels.nest.price.overlap import double_buffered_ticks
from hwmodels.nest.price.pieces import chain_of
from hwmodels.nest.price.skeleton import cores, skeleton_of
from hwmodels.nest.price.snake import snake_counts
from hwmodels.nest.price.tables import nest_tables
from hwmodels.outcome import OPERANDS, Counts, Outcome
from hwmodels.schedule import Nest
from hwmodels.transfer import PRICES
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import Layer


def price(layer: Layer, machine: Machine, nest: Nest) -> Outcome:
    """Price a nest by the machine's own reading, from the same tables that the formulations optimise over.

    Raises InputError if the nest is malformed, its homes are not allowed, or the machine prices what closed forms do
    not count.
    """
    machine = housed(layer, machine, nest)
    skeleton = skeleton_of(layer, nest)
    if not nest.even and (machine.edge_tiles == "uniform" or machine.reading == "literal"):
        raise InputError(f"machine {machine.name}: only equal tiles are counted; loops with cuts have none")
    if nest.line and not machine.line:
        raise InputError(f"nest: holds IN in lines, machine {machine.name} has none (line)")
    core = cores(layer, skeleton.spatial)[0]
    loops: Steps = nest.loops()
    if nest.line:
        skeleton, loops = lined(skeleton, trees_of(core, loops), loops)
    tiles = {d: np.array([size], np.int64) for d, size in nest.tile(layer).items()}
    tables = nest_tables(layer, machine, skeleton, Choices.product(chain_of(loops), tiles), detail=True)
    rows = {row: Counts() for row in OPERANDS}
    for row, kinds in tables.counts.items():
        rows[row] = Counts(**{kind: table.at(0, 0) for kind, table in kinds.items()})
    compute = max(c.at(0, 0) for c in tables.compute)
    turning = machine.snake and not nest.line
    if turning:
        rows |= snake_counts(layer, machine, skeleton, core, loops)
    moving = ticks_of(machine, rows)
    if not tables.exact or (turning and machine.timing == "double_buffered"):
        time = double_buffered_ticks(layer, machine, skeleton, core, loops, line=nest.line) + machine.layer_ticks
    elif turning:
        time = moving + (0 if machine.timing == "transfer_only" else compute) + machine.layer_ticks
    else:
        time = max(t.at(0, 0) for t in tables.time)
    return Outcome(
        time_ticks=time,
        bytes=sum(counts.bytes for counts in rows.values()),
        energy_fj=energy_of(layer, machine, rows),
        by_operand=rows,
        transfer_ticks=moving,
        compute_ticks=compute,
        occupancy_bytes={name: max(t.at(0, 0) for t in parts) for name, parts in tables.capacity.items()},
    )


#: The prices of problems tiling and slicing, by the name of the machine's field, and what pays them.
PRICE_FIELDS: dict[str, str] = {
    "layer_ticks": "layers",
    **{f"transfer.{price.field}": price.paid for price in PRICES.values()},
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
    return {field: _get(machine, field) for field in PRICE_FIELDS}


def with_prices(machine: Machine, prices: Mapping[str, int]) -> Machine:
    """Return the machine with other prices.

    Raises InputError if a price is for something that this machine does not count.
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
    for one in PRICES.values():
        if one.size and prices.get(f"transfer.{one.field}") and not getattr(machine.transfer, one.size):
            raise InputError(
                f"machine {machine.name}: transfer.{one.field} has a price, so transfer.{one.size} must be positive"
            )


def sensitivity(layer: Layer, machine: Machine, nest: Nest, fields: Sequence[str]) -> Sensitivity:
    """Return the time of a nest and the counts of some prices (keys of `PRICE_FIELDS`), see the module docstring.

    Raises InputError if the machine cannot be priced (`price`), or takes time that is none of `PRICE_FIELDS`.
    """
    prices = prices_of(machine)
    ticks = price(layer, machine, nest).time_ticks
    scale = 1 << max(0, _BITS - ticks.bit_length())
    scaled = {field: value * scale for field, value in prices.items()}
    if price(layer, with_prices(machine, scaled), nest).time_ticks != ticks * scale:
        known = ", ".join(PRICE_FIELDS)
        raise InputError(f"machine {machine.name}: has prices beside {known}: counts cannot be told apart")
    counts = []
    for field in fields:
        more = with_prices(machine, {**scaled, field: scaled[field] + 1})
        counts.append(price(layer, more, nest).time_ticks - ticks * scale)
    return Sensitivity(ticks, tuple(counts))
