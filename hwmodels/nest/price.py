"""The closed-form price of one nest on one machine."""

from __future__ import annotations

import numpy as np

from hwmodels.nest.abilities import snake_counts
from hwmodels.nest.choices import Choices
from hwmodels.nest.homes import energy_of, housed, ticks_of
from hwmodels.nest.lines import lined
from hwmodels.nest.overlap import double_buffered_ticks
from hwmodels.nest.places import chain_of
from hwmodels.nest.skeleton import cores, skeleton_of
from hwmodels.nest.tables import nest_tables
from hwmodels.outcome import OPERANDS, Counts, Outcome
from hwmodels.schedule import Hold, Nest
from instances.errors import InputError
from instances.machine import Machine
from instances.workload import Layer

__all__ = ["price"]


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
    if machine.line or machine.snake:
        return _able(layer, machine, nest)
    tiles = {d: np.array([size], np.int64) for d, size in nest.tile(layer).items()}
    choices = Choices.product(chain_of(nest.loops()), tiles)
    tables = nest_tables(layer, machine, skeleton, choices, detail=True)
    by_operand = {row: Counts() for row in OPERANDS}
    for row, kinds in tables.counts.items():
        by_operand[row] = Counts(**{kind: table.at(0, 0) for kind, table in kinds.items()})
    moved = sum(counts.bytes for counts in by_operand.values())
    if tables.exact:
        time = max(t.at(0, 0) for t in tables.time)
    else:
        time = double_buffered_ticks(layer, machine, skeleton, cores(layer, skeleton.spatial)[0], nest.loops())
        time += machine.layer_ticks
    return Outcome(
        time_ticks=time,
        bytes=moved,
        energy_fj=energy_of(layer, machine, by_operand),
        by_operand=by_operand,
        transfer_ticks=tables.transfer.at(0, 0) if tables.transfer else 0,
        compute_ticks=max(c.at(0, 0) for c in tables.compute),
        occupancy_bytes={name: max(t.at(0, 0) for t in parts) for name, parts in tables.capacity.items()},
    )


def _able(layer: Layer, machine: Machine, nest: Nest) -> Outcome:
    """Price a nest on a machine with snake order or lines: other rows (and tiles of IN) in the price without them."""
    plain = price(layer, machine.model_copy(update={"line": False, "snake": False}), _unlined(nest))
    skeleton, rows, occupancy = skeleton_of(layer, nest), dict(plain.by_operand), dict(plain.occupancy_bytes)
    (core,) = cores(layer, skeleton.spatial)
    if nest.line:
        lines = lined(layer, machine, skeleton, core, nest.loops())
        if lines is not None:
            copies = machine.buffers(skeleton.buffers.get("IN"))
            rows["IN"] = lines.counts
            occupancy[machine.memory_of("IN")] += copies * (lines.buffer_bytes - lines.tile_bytes)
    elif machine.snake:
        rows |= snake_counts(layer, machine, skeleton, core, nest.loops())
    moving = ticks_of(machine, rows)
    moved = sum(row.bytes for row in rows.values())
    if machine.timing == "double_buffered":
        time = double_buffered_ticks(layer, machine, skeleton, core, nest.loops(), line=nest.line)
    else:
        time = moving + (0 if machine.timing == "transfer_only" else plain.compute_ticks)
    return Outcome(
        time_ticks=time + machine.layer_ticks,
        bytes=moved,
        energy_fj=energy_of(layer, machine, rows),
        by_operand=rows,
        transfer_ticks=moving,
        compute_ticks=plain.compute_ticks,
        occupancy_bytes=occupancy,
    )


def _unlined(nest: Nest) -> Nest:
    """The same nest without lines."""
    return Nest(tuple(Hold(i.operand, i.buffers) if isinstance(i, Hold) else i for i in nest.items))
