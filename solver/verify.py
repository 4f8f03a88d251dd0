"""Price a schedule, replay it, and compare: the one place where `solve` and `check` get their figures from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hwmodels.nest.homes import operand_of, settled
from hwmodels.nest.limits import compulsory_bytes, lower_bound_bytes
from hwmodels.nest.price import price
from hwmodels.nest.replay import replay
from hwmodels.outcome import MEASURES, OPERANDS, Counts, Outcome
from hwmodels.schedule import Nest
from hwmodels.transfer import ticks
from instances.machine import Machine
from instances.workload import Layer
from solver.plan import Counted, LayerCounts, Measures, Objective
from solver.tiling.plan import LayerReplay, TrafficLimits

__all__ = [
    "LITERAL_NOTE", "PlanMismatch", "Verdict", "counts_of", "gap_of", "limits_of", "measures_of", "objective_of",
    "unequal", "verify",
]  # fmt: skip

LITERAL_NOTE = (
    "priced by the paper's literal equations; replay executes the nest physically, its figures stand beside the price"
)


class PlanMismatch(RuntimeError):
    """A plan whose price, replay and engine do not agree: a defect of certile, so the plan is not handed out."""


@dataclass(frozen=True)
class Verdict:
    """The price of a schedule, what its replay found, and every disagreement between the two."""

    outcome: Outcome
    replay: LayerReplay
    faults: tuple[str, ...]


def verify(layer: Layer, machine: Machine, nest: Nest) -> Verdict:
    """Price and replay `nest`.

    Where the machine is read literally the replay is reported, not compared: the papers' equations are
    estimates that no machine executes.

    Raises
    ------
    InputError
        If the nest is malformed.
    """
    nest.validate_for(layer)
    outcome = price(layer, machine, nest)
    walked = replay(layer, machine, nest)
    literal = machine.reading == "literal"
    faults = [] if literal else [*walked.faults, *_differences(outcome, walked.outcome)]
    for memory, size in machine.memories.items():
        taken = outcome.occupancy_bytes.get(memory, 0)
        if taken > size:
            faults.append(f"memory {memory}: {taken} bytes are taken, {machine.name} has {size}")
    faults = list(dict.fromkeys(faults))
    record = LayerReplay(
        ok=walked.ok and not faults, compared=not literal, steps=walked.steps, executed=walked.executed,
        measures=measures_of(walked.outcome), faults=tuple(walked.faults), note=LITERAL_NOTE if literal else "",
    )  # fmt: skip
    if not record.ok and not literal and not faults:
        faults.append("replay is not ok and names no fault")
    return Verdict(outcome, record, tuple(faults))


def _differences(priced: Outcome, walked: Outcome) -> list[str]:
    """Name every figure in which the closed forms and the walk differ."""
    pairs = [(f"{m} [{MEASURES[m]}]", priced.measures[m], walked.measures[m]) for m in MEASURES]
    for operand in OPERANDS:
        one, two = priced.by_operand.get(operand, Counts()), walked.by_operand.get(operand, Counts())
        pairs += [(f"{operand} {kind}", count, two.to_json()[kind]) for kind, count in one.to_json().items()]
    for memory in sorted({*priced.occupancy_bytes, *walked.occupancy_bytes}):
        sizes = priced.occupancy_bytes.get(memory, 0), walked.occupancy_bytes.get(memory, 0)
        pairs.append((f"occupancy of {memory}", *sizes))
    return [f"{what}: priced {one}, replayed {two}" for what, one, two in pairs if one != two]


def measures_of(outcome: Outcome) -> Measures:
    """Return the three measures as plan data."""
    return Measures(time=outcome.time_ticks, bytes=outcome.bytes, energy=outcome.energy_fj)


def counts_of(outcome: Outcome) -> LayerCounts:
    """Return the counts as plan data."""
    rows = {o: Counted(**outcome.by_operand.get(o, Counts()).to_json()) for o in OPERANDS}
    return LayerCounts.model_validate({**outcome.total.to_json(), "by_operand": rows})


def limits_of(layer: Layer, machine: Machine) -> TrafficLimits | None:
    """Return what no plan of the layer can do without; None where a paper's printed equations are the price."""
    if machine.reading == "literal":
        return None
    return TrafficLimits(
        compulsory_bytes=compulsory_bytes(layer, machine), lower_bound_bytes=lower_bound_bytes(layer, machine)
    )


def objective_of(
    measure: str, layer: Layer, machine: Machine, outcome: Outcome, homes: Mapping[str, str] | None = None
) -> Objective:
    """Return the objective with the terms that sum to it; `homes` of the operands where the machine has several.

    Time is the transfer ticks of each operand, plus compute, plus ``layer`` (`layer_ticks` of the machine, if any),
    plus ``overlap``: what running side by side saves (negative or 0). Where the operands' counts do not explain the
    transfers, they stand as one term.
    """
    rows = {o: outcome.by_operand.get(o, Counts()) for o in OPERANDS}
    machine = settled(layer, machine, homes or {})
    if measure == "bytes":
        terms = {o: c.bytes for o, c in rows.items()}
    elif measure == "energy":
        terms = {o: machine.byte_fj_of(operand_of(o)) * c.bytes for o, c in rows.items()}
        terms["MAC"] = machine.mac_fj * layer.macs
    else:
        terms = {o: ticks(machine.transfer_of(operand_of(o)), c) for o, c in rows.items()}
        if sum(terms.values()) != outcome.transfer_ticks:
            terms = {"transfer": outcome.transfer_ticks}
        terms["compute"] = outcome.compute_ticks
        if machine.layer_ticks:
            terms["layer"] = machine.layer_ticks
        terms["overlap"] = outcome.time_ticks - sum(terms.values())
    return Objective.model_validate({"value": outcome.measures[measure], "unit": MEASURES[measure], "terms": terms})


def gap_of(value: int | None, bound: int | None) -> float | None:
    """Return ``(value - bound) / value``: 0.0 when equal, None when either is unknown."""
    if value is None or bound is None:
        return None
    return 0.0 if value == bound or value == 0 else (value - bound) / value


def unequal(where: str, stated: object, derived: object) -> Iterator[str]:
    """Yield one line if what a plan states is not what follows from its decisions."""
    if stated != derived:
        yield f"{where}: the plan says {stated}, it is {derived}"
