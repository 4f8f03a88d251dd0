"""The closed-form price of one nest on one machine."""

from __future__ import annotations

import numpy as np

from hwmodels.nest.abilities import snake_counts
from hwmodels.nest.choices import Choices
from hwmodels.nest.homes import energy_of, housed, ticks_of
from hwmodels.nest.loops import Steps, lined, trees_of
from hwmodels.nest.overlap import double_buffered_ticks
from hwmodels.nest.skeleton import cores, skeleton_of
from hwmodels.nest.spans import chain_of
from hwmodels.nest.tables import nest_tables
from hwmodels.outcome import OPERANDS, Counts, Outcome
from hwmodels.schedule import Nest
from instances.errors import InputError
from instances.machine import Machine
from instances.workload import Layer


def price(layer: Layer, machine: Machine, nest: Nest) -> Outcome:
    """Price a nest by the machine's own reading, from the same tables that the formulations optimise over.

    Raises
    ------
    InputError
        If the nest is malformed, its homes are not allowed, or the machine prices what closed forms do not count.
    """
    machine = housed(layer, machine, nest)
    skeleton = skeleton_of(layer, nest)
    if not nest.even and (machine.edge_tiles == "uniform" or machine.reading == "literal"):
        raise InputError(f"machine {machine.name}: only equal tiles are counted; loops with cuts have none")
    if nest.line and not machine.line:
        raise InputError(f"nest: holds IN in lines, machine {machine.name} has none (line)")
    core = cores(layer, skeleton.spatial)[0]
    loops: Steps = nest.loops()
    if nest.line:
        skeleton, loops = lined(skeleton, trees_of(core, loops), loops)
    tiles = {d: np.array([size], np.int64) for d, size in nest.tile(layer).items()}
    tables = nest_tables(layer, machine, skeleton, Choices.product(chain_of(loops), tiles), detail=True)
    rows = {row: Counts() for row in OPERANDS}
    for row, kinds in tables.counts.items():
        rows[row] = Counts(**{kind: table.at(0, 0) for kind, table in kinds.items()})
    compute = max(c.at(0, 0) for c in tables.compute)
    turning = machine.snake and not nest.line
    if turning:
        rows |= snake_counts(layer, machine, skeleton, core, loops)
    moving = ticks_of(machine, rows)
    if not tables.exact or (turning and machine.timing == "double_buffered"):
        time = double_buffered_ticks(layer, machine, skeleton, core, loops, line=nest.line) + machine.layer_ticks
    elif turning:
        time = moving + (0 if machine.timing == "transfer_only" else compute) + machine.layer_ticks
    else:
        time = max(t.at(0, 0) for t in tables.time)
    return Outcome(
        time_ticks=time,
        bytes=sum(counts.bytes for counts in rows.values()),
        energy_fj=energy_of(layer, machine, rows),
        by_operand=rows,
        transfer_ticks=moving,
        compute_ticks=compute,
        occupancy_bytes={name: max(t.at(0, 0) for t in parts) for name, parts in tables.capacity.items()},
    )
