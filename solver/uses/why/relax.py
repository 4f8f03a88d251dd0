"""What can be made easier, one thing at a time: pins left out, memories without limit, prices of nothing, other lanes.

A relaxation takes no plan away and makes none dearer, so the optimum cannot get worse; if it gets better, what was
relaxed binds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd

from hwmodels import transfer
from hwmodels.nest.homes import repriced
from hwmodels.nest.price.closed_form import PRICES
from instances.machine.machine import Machine, Transfer
from instances.network.buffers import Buffers
from instances.network.workload import Layer
from solver.plan.why import Cause

#: Bytes that hold every layer.
ENDLESS = 2**40
#: What each price of a transfer is paid for.
_PAID: dict[str, Cause] = {price.field: price.cause for price in transfer.PRICES.values()}


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
        yield Relaxed("traffic", "byte_fj", "bytes of no energy", _without_byte_energy(machine), asked)


def of_pins(machine: Machine, pins: tuple[str, ...]) -> Iterator[Relaxed]:
    """Yield the pins, one left out at a time, then all."""
    for pin in pins:
        rest = tuple(other for other in pins if other != pin)
        yield Relaxed("pin", pin, f"without pin {pin}", machine, rest)
    if len(pins) > 1:
        yield Relaxed("pin", "all pins", "without any pin", machine, ())


def together(machine: Machine, pins: tuple[str, ...]) -> Relaxed:
    """Return the same without pins and without limits of memories, at once."""
    roomy = machine.model_copy(update={memory_field(name): ENDLESS for name in machine.memories})
    return Relaxed("together", "memories and pins", "memories without limit and no pins", roomy, ())


def _prices(machine: Machine, pins: tuple[str, ...]) -> Iterator[Relaxed]:
    """Yield every price that is paid, left out."""
    for field, what in PRICES.items():
        section, _, name = field.rpartition(".")
        if section == "transfer" and name in _PAID:
            if any(getattr(transfer, name) for transfer in machine.transfers):
                yield Relaxed(_PAID[name], field, f"{what} for nothing", repriced(machine, **{name: 0}), pins)
        elif field == "compute.cycle_ticks" and machine.compute.cycle_ticks and machine.compute.model != "none":
            free = machine.compute.model_copy(update={"cycle_ticks": 0})
            yield Relaxed("compute", field, "computing for nothing", machine.model_copy(update={"compute": free}), pins)
        elif field == "layer_ticks" and machine.layer_ticks:
            yield Relaxed("layer", field, "no time of the layer's own", machine.model_copy(update={field: 0}), pins)


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


def _without_byte_energy(machine: Machine) -> Machine:
    memories = tuple(one.model_copy(update={"byte_fj": 0}) for one in machine.off_chip)
    return machine.model_copy(update={"byte_fj": 0, "off_chip": memories})


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
