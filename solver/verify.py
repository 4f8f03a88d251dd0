"""Figures of schedules as plans state them, for `solve` and `check` alike, and how these disagree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from pydantic_core import to_jsonable_python

from hwmodels.nest.homes import operand_of, settled
from hwmodels.nest.limits import compulsory_bytes, lower_bound_bytes
from hwmodels.outcome import MEASURES, OPERANDS, Counts, Outcome
from hwmodels.transfer import ticks
from instances.errors import PlanMismatch as PlanMismatch
from instances.machine import Machine
from instances.workload import Layer
from solver.plan import Counted, LayerCounts, Measures, Objective
from solver.tiling.plan import TrafficLimits

LITERAL_NOTE = (
    "priced by the paper's literal equations; replay executes the nest physically, its figures stand beside the price"
)


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


#: Lines about one field of a plan.
_MOST = 5


def differences(where: str, stated: object, derived: object) -> Iterator[str]:
    """Yield a line for every place, five at most, where what a plan states is not what follows from its decisions."""
    yield from islice(_differences(where, to_jsonable_python(stated), to_jsonable_python(derived)), _MOST)


def _differences(where: str, one: object, two: object) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(two, dict) and one.keys() == two.keys():
        for name in one:
            yield from _differences(f"{where}.{name}", one[name], two[name])
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for number, pair in enumerate(zip(one, two, strict=True)):
            yield from _differences(f"{where}[{number}]", *pair)
    else:
        yield from unequal(where, one, two)
