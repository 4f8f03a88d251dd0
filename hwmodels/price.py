"""The closed-form price of one nest on one machine."""

from __future__ import annotations

import numpy as np

from hwmodels.core import Choices
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
        If the nest is malformed or beyond the closed forms (a dimension looped twice).
    """
    skeleton = skeleton_of(layer, nest)
    tile = nest.tile(layer)
    choices = Choices.product({d: np.array([t], np.int64) for d, t in tile.items()})
    tables = nest_tables(layer, machine, skeleton, choices, detail=True)
    by_operand = {row: Counts() for row in OPERANDS}
    for row, kinds in tables.counts.items():
        by_operand[row] = Counts(**{kind: table.at(0, 0) for kind, table in kinds.items()})
    moved = sum(counts.bytes for counts in by_operand.values())
    if tables.exact:
        time = max(t.at(0, 0) for t in tables.time)
    else:
        time = double_buffered_ticks(layer, machine, skeleton, cores(layer, skeleton.spatial)[0], tile)
    return Outcome(
        time_ticks=time,
        bytes=moved,
        energy_fj=machine.byte_fj * moved + machine.mac_fj * layer.macs,
        by_operand=by_operand,
        transfer_ticks=tables.transfer.at(0, 0) if tables.transfer else 0,
        compute_ticks=max(c.at(0, 0) for c in tables.compute),
        occupancy_bytes={name: max(t.at(0, 0) for t in parts) for name, parts in tables.capacity.items()},
    )
