"""Replay: the independent referee of every plan.

`replay` walks a nest as the machine would, core by core and step by step, with explicit addresses: it counts what
moves, prices it, follows the double-buffered pipeline, measures what lies on chip, and checks that every output is
produced exactly once. Small layers are also executed on integer tensors, tile by tile, and compared with a direct
convolution (`hwmodels.nest.replay.execute`). It shares no arithmetic with the closed forms: they may only agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hwmodels.nest.replay.cores import ReplayCore, Run, cover_faults, listened, replay_cores, unit_faults
from hwmodels.nest.replay.counts import (
    Axis,
    Boxes,
    Stored,
    bound_homes,
    boxes_of,
    energy_at,
    price,
    stored_tensors,
    times,
    transfer_at,
)
from hwmodels.nest.replay.cuts import Cuts, cut_range, holds_of, loops_of, operand_at
from hwmodels.nest.replay.execute import Execution
from hwmodels.nest.replay.execute import execute as executed_nest
from hwmodels.nest.replay.execute import work as execution_work
from hwmodels.nest.replay.walk import Between, Traffic, lined_bytes, slid, walk
from hwmodels.outcome import OPERANDS, Counts, Outcome
from hwmodels.schedule import LEVELS, Hold, Loop, Nest, Spatial, Step
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer

Ints = npt.NDArray[np.int64]
#: Layers of at most this many multiply-accumulates (or pooled elements) are executed unless told otherwise, ...
EXECUTE_WORK = 2_000_000
#: ... if their nest has at most this many steps.
EXECUTE_STEPS = 20_000
#: Nests with more innermost iterations are refused: at worst 80 bytes and 0.25 us a step.
MAX_STEPS = 64_000_000


@dataclass(frozen=True)
class Replay:
    """What happened."""

    outcome: Outcome
    """Counted by the walk."""
    faults: tuple[str, ...]
    """Everything that is wrong: memories overrun, units the machine does not have, outputs not produced once."""
    steps: int
    """Innermost iterations over all cores."""
    executed: bool
    """Whether the integer tensors were computed tile by tile and equal the direct convolution."""

    @property
    def ok(self) -> bool:
        """No faults."""
        return not self.faults


def replay(layer: Layer, machine: Machine, nest: Nest, *, execute: bool | None = None) -> Replay:
    """Walk `nest` on `machine` and report what it costs and what is wrong with it.

    Parameters
    ----------
    execute : bool, optional
        Whether to compute the layer on integers; by default only up to `EXECUTE_WORK` operations and
        `EXECUTE_STEPS` steps.

    Raises
    ------
    InputError
        If the nest is malformed for the layer, too long to walk, or asks for a count that the machine's settings
        leave undefined (uniform edge tiles with address-exact bursts; double buffering over several cores).
    """
    machine = bound_homes(layer, machine, nest)
    _check(layer, machine, nest)
    cores = replay_cores(layer, nest)
    _check_length(layer, nest, cores)
    faults = unit_faults(machine, cores) + cover_faults(layer, cores) + _buffer_faults(machine, nest)
    runs: list[Run] = []
    known: dict[object, Run] = {}
    for core in cores:
        run = _run(layer, machine, nest, core, known)
        runs.append(run)
        faults += [f for f in run.faults if f not in faults]
    outcome = _outcome(layer, machine, cores, runs)
    for memory, room in machine.memories.items():
        if outcome.occupancy_bytes[memory] > room:
            faults.append(f"memory {memory}: {outcome.occupancy_bytes[memory]:,} bytes of {room:,}")
    steps = sum(r.steps for r in runs)
    if execute is None:
        execute = execution_work(layer) <= EXECUTE_WORK and steps <= EXECUTE_STEPS
    executed = False
    if execute:
        inner, shares = [i for i in nest.items if not isinstance(i, Spatial)], [core.ranges for core in cores]
        snake = machine.snake and not nest.line
        result = executed_nest(layer, inner, shares, machine.psum_first_read, machine.sliding, snake)
        faults += list(result.faults) + _call_faults(layer, machine, runs, result)
        lined = runs[0].lined  # lines are for one core
        if lined is not None and result.places * machine.in_bytes != lined:
            faults.append(f"execution: {result.places} elements in lines, the walk counted {lined} bytes")
        executed = not result.faults
    return Replay(outcome, tuple(faults), steps, executed)


# ---- cores -------------------------------------------------------------------------------------------------------


def _check(layer: Layer, machine: Machine, nest: Nest) -> None:
    inside = ""
    for i, item in enumerate(nest.items):
        if not isinstance(item, Hold) and item.dim not in DIMS:
            raise InputError(f"nest[{i}]: unknown dimension {item.dim!r}, expected one of {', '.join(DIMS)}")
        if isinstance(item, Spatial):
            if item.over not in LEVELS:
                raise InputError(f"nest[{i}]: unknown level {item.over!r}, expected one of {', '.join(LEVELS)}")
            if inside and (inside != "tlt" or item.over == "tle"):
                raise InputError(f"nest[{i}]: cut over {item.over} stands inside {inside}; tle, tlt, then the rest")
            inside = "tlt" if item.over == "tlt" else inside
        else:
            inside = "a loop" if isinstance(item, Loop) else "a hold"
    nest.validate_for(layer)
    if nest.line and not machine.line:
        raise InputError(f"nest: holds IN in lines, machine {machine.name} has none (line)")
    if machine.edge_tiles == "uniform" and not nest.even:
        raise InputError(f"machine {machine.name}: edge_tiles 'uniform' counts equal tiles; loops with cuts have none")
    if machine.edge_tiles == "uniform" and machine.by_address:
        raise InputError(
            f"machine {machine.name}: edge_tiles 'uniform' has no addresses; "
            "use burst_count 'aligned' or edge_tiles 'true'"
        )
    if machine.timing == "double_buffered" and machine.tles * machine.tlts > 1:
        raise InputError(
            f"machine {machine.name}: overlap 'double_buffered' is defined for one core, "
            f"not {machine.tles} x {machine.tlts}; use 'serial' or 'transfer_only'"
        )


def _buffer_faults(machine: Machine, nest: Nest) -> list[str]:
    fixed = {"single": 1, "double": 2}.get(machine.buffering)
    return [
        f"Hold({hold.operand}) states {hold.buffers} buffers, the machine is {machine.buffering} buffered"
        for hold in nest.items
        if isinstance(hold, Hold) and fixed and hold.buffers not in (None, fixed)
    ]


def _check_length(layer: Layer, nest: Nest, cores: Sequence[ReplayCore]) -> None:
    # smallest pieces bound the steps from above closely enough: only nested loops of one dimension overshoot
    steps = 0
    for core in cores:
        product = 1
        for dim in DIMS:
            loops = nest.loops()[dim]
            lo, hi = core.ranges[dim]
            product *= _pieces(hi - lo, loops[-1]) if loops else 1
        steps += product
    if steps > MAX_STEPS:
        raise InputError(f"nest: about {steps:,} steps for layer {layer.name}; replay walks at most {MAX_STEPS:,}")


def _pieces(size: int, step: Step) -> int:
    return -(-size // step) if isinstance(step, int) else len(step) + 1


# ---- one core ----------------------------------------------------------------------------------------------------


def _run(layer: Layer, machine: Machine, nest: Nest, core: ReplayCore, known: dict[object, Run]) -> Run:
    """Walk one core's nest, or take the result of a core whose walk is the same number by number."""
    cuts = {d: cut_range(*core.ranges[d], steps) for d, steps in nest.loops().items()}
    holds = holds_of(nest, cuts, layer.patterns)
    levels = {op: hold.levels for op, hold in holds.items()}
    tensors = stored_tensors(layer, machine, cuts, levels)
    snake = machine.snake and not nest.line
    slide = holds["IN"].slides if machine.sliding and not snake and not layer.broadcast else None
    lines = holds["IN"].lines if nest.line else None
    if slide:
        tensors["SLID"] = tensors["IN"]
        for along in lines or (slide,):
            tensors["SLID"] = tuple(slid(t, cuts, *along) for t in tensors["SLID"])
    # the walk reads nothing but the sizes of the pieces and the extents (and where they begin) of the boxes
    sizes = tuple(hi - lo for lo, hi in core.ranges.values())
    windows = {row: transfer_at(machine, row).window_bytes for row in tensors}
    key = sizes, *(p.fingerprint(windows[row]) for row, parts in tensors.items() for p in parts)
    if key not in known:
        if machine.edge_tiles == "uniform":
            tensors = {row: tuple(_nominal(layer, nest, row, p) for p in parts) for row, parts in tensors.items()}
        known[key] = _walk_core(layer, machine, nest, Traffic(
            cuts, loops_of(nest), levels, {op: hold.visits for op, hold in holds.items()}, _buffers(machine, nest), {},
            _work(layer, machine, nest, cuts), machine.psum_first_read, machine.timing == "double_buffered", snake,
        ), tensors, lines)  # fmt: skip
    return known[key]


def _buffers(machine: Machine, nest: Nest) -> dict[str, int]:
    return {i.operand: machine.buffers(i.buffers) for i in nest.items if isinstance(i, Hold)}


def _walk_core(
    layer: Layer,
    machine: Machine,
    nest: Nest,
    traffic: Traffic,
    tensors: Mapping[str, tuple[Stored, ...]],
    lines: tuple[tuple[str, int], tuple[str, int]] | None,
) -> Run:
    cuts = traffic.cuts
    boxes: dict[str, Boxes] = {}
    for row, parts in tensors.items():
        levels = traffic.levels[{"PSUM": "OUT", "SLID": "IN"}.get(row, row)]
        shape = [len(cuts[d].start[k]) for d, k in levels.items()]
        apart = operand_at(row) == "IN"
        boxes[row] = boxes_of(parts, list(levels), shape, transfer_at(machine, row), apart=apart)
    fetched = {row: boxes["SLID"] if row == "IN" and "SLID" in boxes else boxes[row] for row in boxes if row != "SLID"}
    prices = {row: b.prices(transfer_at(machine, row)) for row, b in fetched.items()}
    between = None
    if traffic.snake and not layer.broadcast:
        levels = traffic.levels["IN"]
        shape = [len(cuts[d].start[k]) for d, k in levels.items()]
        between = Between(tensors["IN"], list(levels), shape, transfer_at(machine, "IN"), machine.sliding)
    tally = walk(replace(traffic, prices=prices, rest=between.ticks if between else None))
    rows = dict.fromkeys(OPERANDS, Counts())
    for row, tiles in fetched.items():
        rows["PSUM" if row == "PSUM" else operand_at(row)] += tiles.total(tally.moves[row])
    if between:
        rows["IN"] = sum((times(between.counts(*pair), often) for pair, often in tally.pairs.items()), Counts())
    lined = sum(lined_bytes(t, cuts, *lines) for t in tensors["IN"]) if lines else None
    return Run(
        rows=rows,
        transfer_ticks=sum(price(c, transfer_at(machine, row)) for row, c in rows.items()),
        compute_ticks=tally.compute_ticks,
        pipeline_ticks=tally.pipeline_ticks,
        steps=tally.steps,
        occupancy=_occupancy(layer, machine, nest, cuts, boxes, lined),
        lined=lined,
        faults=tally.faults,
        traffic=traffic,
        boxes=fetched,
    )


def _nominal(layer: Layer, nest: Nest, row: str, tensor: Stored) -> Stored:
    """The papers' uniform tile: nominal steps at the Hold, at most the tensor, at an aligned address."""
    operand = operand_at(row)
    hold = next(i for i, item in enumerate(nest.items) if isinstance(item, Hold) and item.operand == operand)
    step = {d: layer.extent(d) for d in DIMS}
    step.update({i.dim: i.step for i in nest.items[:hold] if not isinstance(i, Hold)})
    axes = []
    for axis in tensor.axes:
        extent = step[axis.dims[0]]
        if axis.dims == ("r", "i"):
            extent = (extent - 1) * layer.stride_h + (step["i"] - 1) * layer.dilation_h + 1
        if axis.dims == ("c", "j"):
            extent = (extent - 1) * layer.stride_w + (step["j"] - 1) * layer.dilation_w + 1
        extents = np.full_like(axis.extent, min(extent, axis.size))
        axes.append(Axis(axis.size, axis.dims, np.zeros_like(axis.start), extents))
    return Stored(tuple(axes), tensor.element)


def _occupancy(
    layer: Layer, machine: Machine, nest: Nest, cuts: Mapping[str, Cuts], boxes: Mapping[str, Boxes], lined: int | None
) -> dict[str, int]:
    """Bytes that the largest tiles (of IN, `lined` if given) take in every memory, with scratch and reserved bytes."""
    held = dict.fromkeys(machine.memories, 0)
    unfinished = any(cuts[d].leaves > 1 for d in ("n", "i", "j"))
    buffers = _buffers(machine, nest)
    for operand in layer.operands:
        kept = ["PSUM"] if operand == "OUT" else [row for row in boxes if operand_at(row) == operand and row != "SLID"]
        tile = sum(boxes[row].largest for row in kept)  # results are made apart from where they stay
        if operand == "IN" and lined is not None:
            tile = lined
        if operand == "OUT":  # a finished tile is there before it leaves, whatever its partial sums took
            element = max(machine.psum_bytes, machine.out_bytes) if unfinished else machine.out_bytes
            tile = tile // machine.psum_bytes * element
        held[machine.memory_of(operand)] += tile * buffers[operand]
    if machine.im2col_rows:
        channels = layer.n
        if machine.im2col_channels == "tile":
            channels = nest.tile(layer)["n"] if machine.edge_tiles == "uniform" else int(cuts["n"].lengths.max())
        held["ocm"] += machine.im2col_rows * layer.kh * layer.kw * channels * machine.in_bytes
    return {memory: used + machine.reserved_bytes for memory, used in held.items()}


def _work(layer: Layer, machine: Machine, nest: Nest, cuts: Mapping[str, Cuts]) -> dict[str, Ints]:
    """Compute time of a step as one factor per dimension's piece, in ticks (TSO Eq. 7; or the MAC array)."""
    unit = machine.compute
    size = {d: c.lengths for d, c in cuts.items()}
    if unit.model == "none":
        return {"b": np.zeros(cuts["b"].leaves, np.int64)}
    if unit.model == "tile":
        tile = nest.tile(layer)
        cycles = tile["b"] * tile["g"] * tile["n"] * tile["m"]
        cycles *= -(-(tile["r"] * tile["c"] * tile["i"] * tile["j"]) // unit.macs_per_cycle)
        return {"b": np.full(cuts["b"].leaves, cycles * layer.inputs * unit.cycle_ticks, np.int64)}
    if layer.m == layer.n == 1:
        size["g"] = -(-size["g"] // unit.cols)
    else:
        size["m"], size["n"] = -(-size["m"] // unit.rows), -(-size["n"] // unit.cols)
    size["b"] = size["b"] * (layer.inputs * unit.cycle_ticks)
    return size


# ---- the whole machine -------------------------------------------------------------------------------------------


def _outcome(layer: Layer, machine: Machine, cores: Sequence[ReplayCore], runs: Sequence[Run]) -> Outcome:
    rows, moving = _moved(machine, cores, runs)
    computing: dict[int, int] = {}
    measured = layer.cycles * machine.compute.cycle_ticks if machine.compute.model == "none" else 0
    for core, run in zip(cores, runs, strict=True):
        computing[core.tle] = max(computing.get(core.tle, 0), run.compute_ticks + measured)
    transfer_ticks = sum(price(counts, transfer_at(machine, row)) for row, counts in rows.items())
    if machine.timing == "double_buffered":
        time = sum(r.pipeline_ticks for r in runs)
    else:
        if machine.timing == "transfer_only":
            computing = dict.fromkeys(computing, 0)
        if machine.dram == "shared":
            time = transfer_ticks + max(computing.values())
        else:
            time = max(moving[t] + computing[t] for t in moving)
    size = sum(c.bytes for c in rows.values())
    return Outcome(
        time_ticks=time + machine.layer_ticks,
        bytes=size,
        energy_fj=energy_at(machine, rows) + machine.mac_fj * layer.macs,
        by_operand=rows,
        transfer_ticks=transfer_ticks,
        compute_ticks=max(r.compute_ticks for r in runs) + measured,
        occupancy_bytes={m: max(r.occupancy[m] for r in runs) for m in machine.memories},
    )


def _moved(
    machine: Machine, cores: Sequence[ReplayCore], runs: Sequence[Run]
) -> tuple[dict[str, Counts], dict[int, int]]:
    """What the DRAM moves by row, and the ticks of the transfers that every cluster takes part in."""
    rows = {row: sum((r.rows[row] for r in runs), Counts()) for row in OPERANDS}
    moving: dict[int, int] = {}
    for core, run in zip(cores, runs, strict=True):
        moving[core.tle] = moving.get(core.tle, 0) + run.transfer_ticks
    if len(cores) == 1 or machine.broadcast.none or machine.reading == "literal":
        return rows, moving
    own = list(zip(cores, runs, strict=True))
    for operand, level in machine.broadcast.levels.items():
        if level == "none":
            continue
        rows[operand] = sum(listened(operand, level, own).values(), Counts())
        for core, run in own:
            moving[core.tle] -= price(run.rows[operand], transfer_at(machine, operand))
        for tle, counts in listened(operand, "tle", own).items():
            moving[tle] += price(counts, transfer_at(machine, operand))
    return rows, moving


def _call_faults(layer: Layer, machine: Machine, runs: Sequence[Run], result: Execution) -> list[str]:
    """The execution fetched tiles on its own account: it must have begun as many transfers as the cores did."""
    faults = []
    for row, calls in result.calls.items():
        counted = sum(run.rows[row].calls for run in runs)
        nominal = row == "IN" and machine.edge_tiles == "uniform"  # counts tiles of padding alone as full ones
        if calls != counted and not (nominal and calls < counted):
            faults.append(f"execution: {calls} {row} transfers of layer {layer.name}, the walk counted {counted}")
    return faults
