"""Walk all iterations of a nest on memories in levels, tile by tile; it shares nothing with the closed forms.

For every Stay the loops outside it are run, down to the last one that moves its tile, a box of the operand's tensor
clipped to the map: in every iteration it is fetched (OUT: written, and read back if it was there before). Where the
last of these loops advances alone, and it is one over rows or columns, IN fetches what lies beyond the end of the tile
before (docs/nest.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from hwmodels.levels.replay.execute import executed
from hwmodels.levels.replay.timeline import MOST as STEPS
from hwmodels.levels.replay.timeline import Timeline
from hwmodels.levels.schedule import Cut, LevelNest, Stay
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer

Ints = NDArray[np.int64]
#: What every operand's tile is made of.
_OF = {"IN": "bgnrc", "W": "gmnij", "OUT": "bgmrc"}
#: Iterations that are run for a Stay, at most; multiply-accumulates of layers that are also executed.
MOST, _SMALL = 30_000_000, 6000


@dataclass
class Walk:
    """What was seen."""

    bytes: dict[str, int]
    """By memory, between it and nearer ones."""
    calls: dict[str, int]
    taken: dict[str, int]
    """By memory on the chip the most bytes that lie there."""
    time: int = 0
    energy: int = 0
    faults: list[str] = field(default_factory=list)
    executed: bool = False


def walk(layer: Layer, machine: Machine, nest: LevelNest) -> Walk:
    """Run a nest; faults say where it does not fit, or, executed, where a tile lacks what is read."""
    levels = machine.levels
    assert levels is not None
    names = [one.name for one in levels.memories]
    seen = Walk(
        dict.fromkeys(names, 0), dict.fromkeys(names, 0), {m.name: m.reserved_bytes for m in levels.memories[1:]}
    )
    for at, item in enumerate(nest.items):
        if isinstance(item, Stay):
            _run(layer, machine, nest, at, item, seen)
    for one in levels.memories[1:]:
        if one.bytes is not None and seen.taken[one.name] > one.bytes:
            seen.faults.append(f"{one.name}: {seen.taken[one.name]} bytes are taken, it has {one.bytes}")
    for one in levels.memories:
        seen.time += one.call_ticks * seen.calls[one.name] + one.byte_ticks * seen.bytes[one.name]
        seen.energy += one.byte_fj * seen.bytes[one.name]
    seen.time += _cycles(layer, machine, nest) * machine.compute.cycle_ticks
    if levels.queues != "serial":
        try:
            seen.time = Timeline(layer, machine, nest).end()
        except OverflowError:
            seen.faults.append(f"more than {STEPS:,} steps, too many for the timeline")
    seen.energy += layer.macs * machine.mac_fj
    if layer.b * layer.g * layer.m * layer.n * layer.r * layer.c * layer.kh * layer.kw <= _SMALL:
        moved, faults = executed(layer, machine, nest)
        seen.executed = True
        seen.faults += faults
        if not faults and moved != seen.bytes:
            seen.faults.append(f"executed: {moved} bytes move, the walk has seen {seen.bytes}")
    return seen


def _ranges(layer: Layer, loops: Sequence[Cut]) -> tuple[dict[str, tuple[Ints, Ints]], Ints]:
    """All iterations of loops in their order: by dimension begin and end of its range; of every loop which piece."""
    ranges = {d: (np.zeros(1, np.int64), np.full(1, layer.extent(d), np.int64)) for d in DIMS}
    which = np.zeros((0, 1), np.int64)
    for loop in loops:
        begin, end = ranges[loop.dim]
        times = -(-(end - begin) // loop.step)
        if int(times.sum()) > MOST:
            raise OverflowError
        row = np.repeat(np.arange(len(begin)), times)
        number = np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times)
        ranges = {d: (b[row], e[row]) for d, (b, e) in ranges.items()}
        begin, end = ranges[loop.dim]
        begin = begin + number * loop.step
        ranges[loop.dim] = begin, np.minimum(begin + loop.step, end)
        which = np.concatenate([which[:, row], number[None, :]])
    return ranges, which


def _box(layer: Layer, operand: str, ranges: dict[str, tuple[Ints, Ints]]) -> list[tuple[Ints, Ints]]:
    """Begin and end of the tile along every axis of the tensor."""
    made = [ranges[d] for d in _OF[operand]]
    if operand == "IN":
        for axis, d, tap, stride, dilation, pad, size in (
            (3, "r", "i", layer.stride_h, layer.dilation_h, layer.pad_top, layer.h),
            (4, "c", "j", layer.stride_w, layer.dilation_w, layer.pad_left, layer.l),
        ):
            (low, high), (first, last) = ranges[d], ranges[tap]
            begin = np.maximum(low * stride - pad + first * dilation, 0)
            end = np.minimum((high - 1) * stride - pad + (last - 1) * dilation + 1, size)
            made[axis] = begin, np.maximum(begin, end)
    return made


def _moving(layer: Layer, operand: str, loops: Sequence[Cut]) -> list[Cut]:
    """The loops that cut anything, down to the last one that moves the tile."""
    pieces, found = {d: {layer.extent(d)} for d in DIMS}, list[Cut]()
    for loop in loops:
        if max(pieces[loop.dim]) > loop.step:
            found.append(loop)
        lengths = {min(loop.step, size) for size in pieces[loop.dim]}
        pieces[loop.dim] = lengths | {size % loop.step for size in pieces[loop.dim] if size % loop.step}
    dims = _OF[operand] + ("ij" if operand == "IN" else "")
    while found and found[-1].dim not in dims:
        found.pop()
    return found


def _run(layer: Layer, machine: Machine, nest: LevelNest, at: int, stay: Stay, seen: Walk) -> None:
    """Run the iterations outside a Stay."""
    operand = stay.operand
    before = [item for item in nest.items[:at] if isinstance(item, Cut)]
    loops = _moving(layer, operand, before)
    try:
        ranges, which = _ranges(layer, loops)
    except OverflowError:
        seen.faults.append(f"{operand} in {stay.memory}: more than {MOST:,} iterations, too many to walk")
        return
    box = _box(layer, operand, ranges)
    sides = [e - b for b, e in box]
    largest = prod(int(side.max()) for side in sides)
    farther = [one.memory for one in nest.items[:at] if isinstance(one, Stay) and one.operand == operand]
    levels = machine.levels
    assert levels is not None
    source = farther[-1] if farther else levels.memories[0].name
    if operand == "OUT":
        size, calls, moved = _results(layer, machine, nest, at, box)
    elif operand == "W":
        bias = machine.bias_bytes if layer.bias else 0
        moved = int(np.prod(sides, axis=0).sum()) * machine.w_bytes
        moved += int((sides[0] * sides[1]).sum()) * bias
        size = largest * machine.w_bytes + int(sides[0].max()) * int(sides[1].max()) * bias
        calls = which.shape[1]
    else:
        size = largest * layer.inputs * machine.in_bytes
        fetched = _fetched(machine, loops, which, box, sides)
        calls = int((fetched > 0).sum()) * layer.inputs
        moved = int(fetched.sum()) * layer.inputs * machine.in_bytes
    seen.taken[stay.memory] += size * levels.memory(stay.memory).buffers
    seen.bytes[source] += moved
    seen.calls[source] += calls


def _fetched(
    machine: Machine, loops: Sequence[Cut], which: Ints, box: list[tuple[Ints, Ints]], sides: list[Ints]
) -> Ints:  # fmt: skip
    """Elements of IN that are fetched in every iteration in which its tile moves."""
    if not machine.sliding or not loops or loops[-1].dim not in "rc":
        return np.asarray(np.prod(sides, axis=0))
    alone = np.zeros(which.shape[1], np.bool_)
    alone[1:] = (np.diff(which[:-1], axis=1) == 0).all(axis=0)
    axis = 3 if loops[-1].dim == "r" else 4
    begin, end = box[axis]
    reached = np.concatenate([[0], end[:-1]])
    new = np.where(alone, np.maximum(end - np.maximum(begin, reached), 0), end - begin)
    return np.asarray(np.prod([new if k == axis else side for k, side in enumerate(sides)], axis=0))


def _results(
    layer: Layer, machine: Machine, nest: LevelNest, at: int, box: list[tuple[Ints, Ints]]
) -> tuple[int, int, int]:
    """Bytes of the tile of OUT, its transfers, and the bytes that move."""
    corner = np.stack([b for b, _ in box])
    number = np.prod([e - b for b, e in box], axis=0)
    _, first, visits = np.unique(corner, axis=1, return_index=True, return_counts=True)
    once = number[first]
    written = int(once.sum()) * machine.out_bytes + int((once * (visits - 1)).sum()) * machine.psum_bytes
    read = int((once * (visits - 1)).sum()) * machine.psum_bytes
    calls = int(visits.sum()) + int((visits - 1).sum())
    nearer = [k for k, one in enumerate(nest.items) if k > at and isinstance(one, Stay) and one.operand == "OUT"]
    inside = nest.items[: nearer[0]] if nearer else nest.items
    partial = any(isinstance(one, Cut) and one.dim in "nij" and one.step < layer.extent(one.dim) for one in inside)
    element = max(machine.psum_bytes, machine.out_bytes) if partial else machine.out_bytes
    size = int(np.prod([int((e - b).max()) for b, e in box])) * element
    return size, calls, written + read


def _cycles(layer: Layer, machine: Machine, nest: LevelNest) -> int:
    """Cycles of the MAC array over the innermost pieces, one by one."""
    unit = machine.compute
    if unit.model == "none":
        return layer.cycles
    deep = layer.m == layer.n == 1
    lanes = {"g": unit.cols} if deep else {"m": unit.rows, "n": unit.cols}
    total = layer.inputs
    for d in DIMS:
        pieces = [layer.extent(d)]
        for item in nest.items:
            if isinstance(item, Cut) and item.dim == d:
                pieces = [min(item.step, size - x) for size in pieces for x in range(0, size, item.step)]
        total *= sum(-(-size // lanes.get(d, 1)) for size in pieces)
    return total
