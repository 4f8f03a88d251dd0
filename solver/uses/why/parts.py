"""Where the measures of a plan go: parts that sum to them, by operand and cause.

Of a nest: bytes by `hwmodels.nest.price.causes`; energy is these bytes in their homes, and the MACs; time is these
bytes at their price, the calls, runs and bursts that they take, and computing, less what runs side by side. Bursts that
whole windows would need are told from those that cut windows cost on top; cycles that full lanes would need from the
others.

Of other plans: the terms of the objective, or what rows of layers say.

And lower bounds beside a plan, and how full the array is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from formulations.fusion.latency.events import Event
from hwmodels.nest.buffers import buffers
from hwmodels.nest.homes import housed, machine_with_homes, operand_of
from hwmodels.nest.price.causes import Share, held_outside, shares
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.limits import compulsory_bytes, least_energy, least_time, lower_bound_bytes
from hwmodels.outcome import MEASURES, OPERANDS, UNITS, Counts, Outcome
from hwmodels.schedule import Nest
from hwmodels.transfer import PRICES
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver.plan.plan import PartPlan, Plan
from solver.plan.why import Limit, Part, Split
from solver.problems.joint import is_shared
from solver.show.tables import percent
from solver.show.words import microseconds
from solver.uses.why.relax import lanes_ticks

#: What the loops of a nest run over.
DIMS = {
    "b": "images b", "g": "groups g", "m": "filters m", "n": "input channels n", "r": "rows r", "c": "columns c",
    "i": "kernel rows i", "j": "kernel columns j",
}  # fmt: skip


def nest_splits(layer: Layer, machine: Machine, nest: Nest, first: str) -> tuple[Split, ...]:
    """Return all measures of a nest in parts, the first objective first; raises InputError if it has no price."""
    outcome, moved = price(layer, machine, nest), shares(layer, machine, nest)
    on = housed(layer, machine, nest)
    told = [(one, _why(layer, machine, nest, one)) for one in moved]
    made = {
        "bytes": [Part(what=one.operand, cause=one.cause, value=one.bytes, why=why) for one, why in told],
        "time": list(_time(layer, on, outcome, told)),
        "energy": list(_energy(layer, on, told)),
    }
    order = [first, *(name for name in MEASURES if name != first)]
    return tuple(
        Split(measure=name, unit=MEASURES[name], value=outcome.measures[name], parts=tuple(_some(made[name])))
        for name in order
        if outcome.measures[name]
    )


def _some(parts: Iterable[Part]) -> Iterator[Part]:
    yield from (part for part in parts if part.value)


def _time(layer: Layer, on: Machine, outcome: Outcome, told: list[tuple[Share, str]]) -> Iterator[Part]:
    """Ticks: what moves, what is computed, and less what runs side by side."""
    left = outcome.time_ticks
    for part in [*_moving(on, outcome, told), *_computing(layer, on, outcome)]:
        left -= part.value
        yield part
    side = "overlap" if on.timing == "double_buffered" else "parallel"
    yield Part(what="overlap", cause=side, value=left, why=_SIDE[side])


_SIDE = {
    "overlap": "transfers and computing that run at the same time",
    "parallel": "clusters and cores that run side by side",
}


def _moving(on: Machine, outcome: Outcome, told: list[tuple[Share, str]]) -> Iterator[Part]:
    if sum(outcome.by_operand[op].bytes for op in OPERANDS) != sum(one.bytes for one, _ in told):
        yield Part(what="transfers", cause="printed", value=outcome.transfer_ticks)
        return
    for one, why in told:
        price_ = on.transfer_of(operand_of(one.operand)).byte_ticks
        yield Part(what=one.operand, cause=one.cause, value=price_ * one.bytes, why=why)
    for operand, counts in outcome.by_operand.items():
        yield from _latencies(on, operand, counts)


#: Counts that `_latencies` tells apart: bytes are told by why they move, bursts by whether bytes in line need them.
_APART = ("bytes", "bursts")


def _latencies(on: Machine, operand: str, counts: Counts) -> Iterator[Part]:
    """What all but the bytes themselves takes: calls, runs, bursts (and those that bytes in line would not need)."""
    transfer = on.transfer_of(operand_of(operand))
    whole = min(-(-counts.bytes // transfer.burst_bytes), counts.bursts) if transfer.burst_bytes else 0
    paid = [(one.cause, getattr(counts, name), one) for name, one in PRICES.items() if name not in _APART]
    bursts = PRICES["bursts"]
    for cause, number, one in (*paid, (bursts.cause, whole, bursts), ("alignment", counts.bursts - whole, bursts)):
        ticks = getattr(transfer, one.field)
        yield Part(what=operand, cause=cause, value=number * ticks, why=f"{number:,} {one.paid}, {ticks:,} ticks each")


def _computing(layer: Layer, on: Machine, outcome: Outcome) -> Iterator[Part]:
    busy = full_lanes(layer, on)
    if on.timing != "transfer_only":
        busy = min(busy, outcome.compute_ticks)
        yield Part(what="compute", cause="compute", value=busy)
        yield Part(what="compute", cause="lanes", value=outcome.compute_ticks - busy)
    yield Part(what="layer", cause="layer", value=on.layer_ticks)


def full_lanes(layer: Layer, on: Machine) -> int:
    """Return the ticks of computing a layer if all lanes of all cores were full all the time."""
    work = layer.b * layer.g * layer.m * layer.n * layer.r * layer.c * layer.kh * layer.kw * layer.inputs
    unit = on.compute
    lanes = {"none": 0, "tile": unit.macs_per_cycle, "array": unit.rows * unit.cols}[unit.model] * on.tles * on.tlts
    return -(-work // lanes) * unit.cycle_ticks if lanes else 0


def _energy(layer: Layer, on: Machine, told: list[tuple[Share, str]]) -> Iterator[Part]:
    for one, why in told:
        fj = on.byte_fj_of(operand_of(one.operand))
        yield Part(what=one.operand, cause=one.cause, value=fj * one.bytes, why=why)
    yield Part(what="MAC", cause="arithmetic", value=on.mac_fj * layer.macs, why=f"{layer.macs:,} MACs")


# ---- why an operand moves again --------------------------------------------------------------------------------------


def _why(layer: Layer, machine: Machine, nest: Nest, one: Share) -> str:
    """A clause about a share of the bytes."""
    loop = f"the loop over {DIMS[one.dim]}" if one.dim else ""
    if one.cause == "halo":
        return f"windows of neighbouring tiles overlap{f' ({loop})' if loop else ''}"
    if one.cause in ("again", "spilled") and one.at is not None:
        room = _room_outside(layer, machine, nest, one)
        return f"in each of {one.passes:,} passes of {loop}, as it is held inside{room}"
    plain = {
        "padding": "padding and copies that were written off the chip before the layer",
        "skipped": "rows and columns that the stride steps over",
        "kernel": f"{loop} reads rows again for the next taps",
        "bias": f"biases come along in every pass of {loop}",
        "edge": "tiles at the border are charged whole",
        "copies": f"each core loads a copy of its own ({one.passes:,} shares of {one.dim})",
        "first_read": "tiles are read before anything was added",
        "printed": "as the paper's printed equations count",
    }
    return plain.get(one.cause, "")


def _room_outside(layer: Layer, machine: Machine, nest: Nest, one: Share) -> str:
    """What holding the operand outside the loop would take."""
    operand = operand_of(one.operand)
    try:
        taken = held_outside(layer, machine, nest, operand, one.at or 0).occupancy_bytes
    except InputError:
        return ""
    over = {name: size for name, size in taken.items() if size > machine.memories.get(name, size)}
    if not over:
        return ", though it would fit outside"
    name, size = next(iter(over.items()))
    rest = {op: size for op, size in _tiles(layer, machine, nest).items() if op != operand}
    beside = ", ".join(f"{op} {size:,}" for op, size in rest.items()) if name == "ocm" else ""
    said = f" beside {beside} bytes" if beside else ""
    return f": outside, {operand}{said} would take {size:,} of {machine.memories[name]:,} bytes of {name}"


def _tiles(layer: Layer, machine: Machine, nest: Nest) -> Mapping[str, int]:
    """Bytes of the operands' tiles."""
    made = buffers(layer, machine, nest)
    return {
        op: sum(one.copies * one.bytes for one in made if one.name.rstrip("0123456789") == op) for op in layer.operands
    }


# ---- other plans -----------------------------------------------------------------------------------------------------


def plan_splits(plan: Plan, figures: Mapping[str, int], units: Mapping[str, str]) -> tuple[Split, ...]:
    """Return the objective of a plan in its terms, then other measures as far as its rows say."""
    if plan.objective is None:
        return ()
    first, timed = plan.objectives[0], is_shared(plan)
    made = [_split(first, plan.objective.unit, plan.objective.value, plan.objective.terms)]
    if timed and first == "time":
        made = [_over_time(plan, plan.objective.value)]
    rows = plan.parts
    for name, value in figures.items():
        if timed and name == "time" != first:
            made.append(_over_time(plan, value))
        elif name != first and value:
            terms = _of_rows(name, rows)
            terms = terms if sum(terms.values()) == value else {"all": value}
            made.append(_split(name, units.get(name, UNITS.get(name, "")), value, terms))
    return tuple(made)


def _split(name: str, unit: str, value: int, terms: Mapping[str, int]) -> Split:
    parts = (Part(what=what, cause="", value=term) for what, term in terms.items())
    return Split(measure=name, unit=unit, value=value, parts=tuple(_some(parts)))


#: Waits that are named.
_NAMED = 3


def _over_time(plan: Plan, latency: int) -> Split:
    """The time of a network with prefetch: steps that compute, what they wait for, and what is stored at the end."""
    steps = [one for one in plan.timeline if one.lane == "engine"]
    busy = sum(one.end - one.begin for one in steps)
    needed = sum(full_lanes(layer, plan.machine_data) for layer in plan.network_data.layers)
    needed = needed if plan.options.profile is None else busy  # of what was measured nothing is known
    parts = [Part(what="compute", cause="compute", value=min(busy, needed)),
             Part(what="compute", cause="lanes", value=busy - min(busy, needed))]  # fmt: skip
    for what in ("weights", "maps", "stores"):
        late = sorted((one for one in steps if one.waits and _kind(one) == what), key=lambda one: -one.waits)
        longest = "; ".join(f"{microseconds(plan, one.waits)} us before {one.what} (step {one.step}) for "
                            f"{one.waits_for}" for one in late[:_NAMED])  # fmt: skip
        why = f"by {len(late)} step{'s' * (len(late) > 1)}, the longest: {longest}"
        parts.append(Part(what=what, cause="waits", value=sum(one.waits for one in late), why=why))
    drain = latency - max((one.end for one in steps), default=0)
    parts.append(Part(what="stores", cause="drain", value=drain))
    return Split(measure="time", unit=MEASURES["time"], value=latency, parts=tuple(_some(parts)))


def _kind(step: Event) -> str:
    """Of what a step waits for."""
    if step.waits_lane == "store":
        return "stores"
    return "weights" if step.waits_for.startswith("weights of ") else "maps"


def _of_rows(name: str, rows: Iterable[PartPlan]) -> dict[str, int]:
    """A measure by its terms; of a part that says none by the part."""
    terms: dict[str, int] = {}
    for row in rows:
        alone = {row.name: row.measures[name]} if name in row.measures else {}
        for what, value in (row.terms.get(name) or alone).items():
            terms[what] = terms.get(what, 0) + value
    return terms


# ---- lower bounds ----------------------------------------------------------------------------------------------------


def limits(
    layer: Layer, machine: Machine, homes: dict[str, str], objective: str, bound: int | None, gap: str = ""
) -> Iterator[Limit]:
    """Yield the bounds of a layer on a machine; none but the solver's where a paper's equations are the price.

    `gap`: of what nests the solver's bound is, none of which is known to attain it.
    """
    if machine.reading != "literal":
        on = machine_with_homes(layer, machine, homes)
        yield from {"bytes": _bytes_limits, "time": _time_limits, "energy": _energy_limits}[objective](layer, on)
    if bound is not None:
        left = f"; of nests {gap}; none is known that reaches it" if gap else ""
        yield Limit(name="solver", value=bound, means=f"the bound that the search has proven{left}")


def _bytes_limits(layer: Layer, on: Machine) -> Iterator[Limit]:
    yield Limit(name="compulsory", value=compulsory_bytes(layer, on), means="each needed element once")
    yield Limit(name="I/O", value=lower_bound_bytes(layer, on), means="for all memory on chip (docs/limits.md)")


def _time_limits(layer: Layer, on: Machine) -> Iterator[Limit]:
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


def _energy_limits(layer: Layer, on: Machine) -> Iterator[Limit]:
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
