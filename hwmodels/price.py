"""The closed-form price of one nest on one machine."""

from __future__ import annotations

import numpy as np

from hwmodels.choices import Choices
from hwmodels.outcome import OPERANDS, Counts, Outcome
from hwmodels.overlap import double_buffered_ticks
from hwmodels.schedule import Nest
from hwmodels.skeleton import cores, skeleton_of
from hwmodels.tables import nest_tables
from instances.machine import Machine
from instances.workload import Layer

__all__ = ["price"]


def price(layer: Layer, machine: Machine, nest: Nest) -> Outcome:
    """Price a nest by the machine's own reading, from the same tables that the formulations optimise over.

    Raises
    ------
    InputError
        If the nest is malformed, or the machine prices what closed forms do not count.
    """
    skeleton = skeleton_of(layer, nest)
    steps = {d: np.array([chain], np.int64).reshape(1, -1) for d, chain in nest.loops().items()}
    tiles = {d: np.array([size], np.int64) for d, size in nest.tile(layer).items()}
    choices = Choices.product(steps, tiles)
    tables = nest_tables(layer, machine, skeleton, choices, detail=True)
    by_operand = {row: Counts() for row in OPERANDS}
    for row, kinds in tables.counts.items():
        by_operand[row] = Counts(**{kind: table.at(0, 0) for kind, table in kinds.items()})
    moved = sum(counts.bytes for counts in by_operand.values())
    if tables.exact:
        time = max(t.at(0, 0) for t in tables.time)
    else:
        time = double_buffered_ticks(layer, machine, skeleton, cores(layer, skeleton.spatial)[0], nest.loops())
    return Outcome(
        time_ticks=time,
        bytes=moved,
        energy_fj=machine.byte_fj * moved + machine.mac_fj * layer.macs,
        by_operand=by_operand,
        transfer_ticks=tables.transfer.at(0, 0) if tables.transfer else 0,
        compute_ticks=max(c.at(0, 0) for c in tables.compute),
        occupancy_bytes={name: max(t.at(0, 0) for t in parts) for name, parts in tables.capacity.items()},
    )
