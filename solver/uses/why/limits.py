"""Lower bounds beside a plan, and how full the array is."""

from __future__ import annotations

from collections.abc import Iterator

from hwmodels.nest.homes import settled
from hwmodels.nest.price.limits import compulsory_bytes, least_energy, least_time, lower_bound_bytes
from hwmodels.outcome import Outcome
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver.plan.why import Limit
from solver.show.tables import percent
from solver.uses.why.parts import full_lanes
from solver.uses.why.relax import lanes_ticks


def of_nest(
    layer: Layer, machine: Machine, homes: dict[str, str], objective: str, bound: int | None
) -> Iterator[Limit]:
    """Yield the bounds of a layer on a machine; none but the solver's where a paper's equations are the price."""
    if machine.reading != "literal":
        on = settled(layer, machine, homes)
        yield from {"bytes": _bytes, "time": _time, "energy": _energy}[objective](layer, on)
    if bound is not None:
        yield Limit(name="solver", value=bound, means="the bound that the search has proven")


def _bytes(layer: Layer, on: Machine) -> Iterator[Limit]:
    yield Limit(name="compulsory", value=compulsory_bytes(layer, on), means="each needed element once")
    yield Limit(name="I/O", value=lower_bound_bytes(layer, on), means="for all memory on chip (docs/limits.md)")


def _time(layer: Layer, on: Machine) -> Iterator[Limit]:
    unit, cores = on.compute, on.tles * on.tlts
    buses = on.tles if on.dram == "per_tle" else 1
    ticks = min(transfer.byte_ticks for transfer in on.transfers)
    yield Limit(
        name="bandwidth", value=lower_bound_bytes(layer, on) * ticks // buses, means="the least bytes at their price"
    )
    if on.timing != "transfer_only":
        yield Limit(name="compute", value=full_lanes(layer, on), means="all lanes full")
        if unit.model == "array":
            shaped = lanes_ticks(layer, unit.rows, unit.cols) * unit.cycle_ticks // cores
            yield Limit(name="array", value=shaped, means=f"computing on {unit.rows} x {unit.cols} lanes")
    yield Limit(name="both", value=least_time(layer, on), means="the least of moving and computing, as they overlap")


def _energy(layer: Layer, on: Machine) -> Iterator[Limit]:
    yield Limit(name="arithmetic", value=on.mac_fj * layer.macs, means="the MACs")
    yield Limit(name="least energy", value=least_energy(layer, on), means="the MACs and the least bytes")


def busy(layer: Layer, machine: Machine, outcome: Outcome) -> str:
    """Return how many of the array's lanes are busy on average while it computes."""
    unit, ticks = machine.compute, outcome.compute_ticks
    if unit.model == "none" or not ticks:
        return ""
    share = percent(min(1.0, full_lanes(layer, machine) / ticks))
    if unit.model == "tile":
        return f"{share} % of {unit.macs_per_cycle * machine.tles * machine.tlts:,} MACs a cycle busy while it computes"
    if layer.m == layer.n == 1:
        rows, cols = 1.0, _mean(layer.g, unit.cols)
    else:
        rows, cols = _mean(layer.m, unit.rows), _mean(layer.n, unit.cols)
    said = f"the layer fills {rows:g} of {unit.rows} rows and {cols:g} of {unit.cols} columns"
    return f"{said}, this plan {share} % of all lanes while it computes"


def _mean(channels: int, lanes: int) -> float:
    """Lanes that channels fill, on average over the passes that they need."""
    return round(channels / -(-channels // lanes), 1)
