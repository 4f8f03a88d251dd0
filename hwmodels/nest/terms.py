"""What sums to the measures of a nest: its time, bytes and energy by operand."""

from __future__ import annotations

from collections.abc import Mapping

from hwmodels.nest.homes import operand_of, settled
from hwmodels.outcome import OPERANDS, Counts, Outcome
from hwmodels.transfer import ticks
from instances.machine import Machine
from instances.workload import Layer


def terms_of(
    measure: str, layer: Layer, machine: Machine, outcome: Outcome, homes: Mapping[str, str] | None = None
) -> dict[str, int]:
    """Return the terms that sum to a measure; `homes` of the operands where the machine has several.

    Time is the transfer ticks of each operand, plus compute, plus ``layer`` (`layer_ticks` of the machine, if any),
    plus ``overlap``: what running side by side saves (negative or 0). Where the operands' counts do not explain the
    transfers, they stand as one term.
    """
    rows = {o: outcome.by_operand.get(o, Counts()) for o in OPERANDS}
    machine = settled(layer, machine, homes or {})
    if measure == "bytes":
        return {o: c.bytes for o, c in rows.items()}
    if measure == "energy":
        terms = {o: machine.byte_fj_of(operand_of(o)) * c.bytes for o, c in rows.items()}
        return {**terms, "MAC": machine.mac_fj * layer.macs}
    terms = {o: ticks(machine.transfer_of(operand_of(o)), c) for o, c in rows.items()}
    if sum(terms.values()) != outcome.transfer_ticks:
        terms = {"transfer": outcome.transfer_ticks}
    terms["compute"] = outcome.compute_ticks
    if machine.layer_ticks:
        terms["layer"] = machine.layer_ticks
    return {**terms, "overlap": outcome.time_ticks - sum(terms.values())}
