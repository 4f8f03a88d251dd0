"""What a step of a network takes whose tiles go through memories nearer than the shared one.

A step makes a **box** of a layer: rows, columns and filters of its result, of some input channels and rows of the
kernel. All of it lies in the shared memory, and all that it reads. A `LevelNest` brings it to the memories behind
(`Machine.near`), tile by tile, with transfers that overlap (`hwmodels.levels.pipeline`), and begins and ends with
nothing there.

    ticks(box) = time of the nest
                 + (parts)  calls * call_ticks + sums * psum_bytes * byte_ticks

Where a box adds up a part of what a result needs (`Box.sums`), its results are sums: they come before and go behind,
one after the other, in as many transfers as the nest has for its results, and take `psum_bytes` each.

Example: of a 3x3 layer of 8 x 8 pixels with padding, rows 4 to 7 read 5 rows: one of the window is padding.
"""

from __future__ import annotations

from dataclasses import dataclass

from hwmodels.levels.pipeline import overlapped
from hwmodels.levels.price import Cost, price
from hwmodels.levels.schedule import NearStep, layer_of, near_machine
from hwmodels.outcome import Natural
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import Layer


@dataclass(frozen=True)
class NearPrice:
    """What a step takes, and moves between the shared memory and the next one."""

    ticks: Natural
    bytes: Natural


def near_ticks(layer: Layer, machine: Machine, step: NearStep) -> int:
    """The ticks of `near_price` alone, of a nest that is known to fit; `machine`: the near one of the box."""
    if step.box.sums:
        return _priced(layer, machine, step).ticks
    return overlapped(layer_of(layer, step.box), machine, step.nest)


def near_price(layer: Layer, machine: Machine, step: NearStep) -> NearPrice:
    """Return what a step takes; raises InputError for a nest that is malformed, or does not fit."""
    return _priced(layer, near_machine(machine, step.box.sums), step)


def _priced(layer: Layer, mine: Machine, step: NearStep) -> NearPrice:
    cost = price(layer_of(layer, step.box), mine, step.nest)
    assert mine.levels is not None
    for one in mine.levels.memories[1:]:
        if one.bytes is not None and cost.occupancy_bytes[one.name] > one.bytes:
            raise InputError(
                f"layer {layer.name}: {one.name} has {one.bytes:,} bytes, tiles take {cost.occupancy_bytes[one.name]:,}"
            )
    calls, moved = _sums(cost, step, mine)
    first = mine.levels.memories[0]
    ticks = cost.measures["time"] + calls * first.call_ticks + moved * first.byte_ticks
    return NearPrice(ticks, cost.measures["bytes"] + moved)


def _sums(cost: Cost, step: NearStep, machine: Machine) -> tuple[int, int]:
    """Transfers and bytes of sums that come before."""
    if not step.box.sums:
        return 0, 0
    box = step.box
    results = box.batch * box.groups * box.filters * box.rows * box.columns
    return sum(one.calls for one in cost.moved if one.operand == "OUT"), results * machine.psum_bytes
