"""The buffers of plans, as targets of problem placement."""

from __future__ import annotations

from collections.abc import Iterable

from formulations.placement.packing import Block
from hwmodels.nest.buffers import buffers
from instances.errors import InputError
from instances.network.buffers import Buffers
from instances.network.stores import stores
from instances.problems import either, nested
from solver.plan.plan import Plan
from solver.problems.layers import is_layers
from solver.problems.runs import is_shared
from solver.uses.emit.onchip import OnChip


def buffers_of(plan: Plan) -> Buffers:
    """Return what lies on chip while a plan runs: tiles, maps that stay, strips, scratch. A layer is a time.

    Raises
    ------
    InputError
        For plans of problems that have no buffers with addresses, and plans without a schedule.
    """
    if is_layers(plan):
        blocks = dict(_of_layers(plan))
    elif is_shared(plan) and plan.schedule is not None:
        chip = OnChip(plan.network_data, plan.machine_data, stores(plan.network_data), plan.schedule, None)
        blocks = dict.fromkeys(chip.blocks(), "ocm")
    else:
        raise InputError(
            f"plan of {plan.network}: problem placement takes plans of {either(nested())} that have "
            f"layers, this is one of {plan.problem}, {plan.status}"
        )
    return Buffers(name=plan.network, buffers=tuple(block.buffer(memory) for block, memory in blocks.items()))


def _of_layers(plan: Plan) -> Iterable[tuple[Block, str]]:
    """Tiles and scratch of every layer."""
    for time, layer in enumerate(plan.layers):
        if layer.schedule is None:
            raise InputError(f"plan of {plan.network}: layer {layer.layer} has no schedule")
        for tile in buffers(layer.workload, plan.machine_data, layer.schedule):
            if tile.bytes and tile.name != "reserved":
                yield Block(f"{layer.layer}: {tile.name}", time, (tile.bytes * tile.copies,)), tile.memory
