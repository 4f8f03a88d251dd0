"""The time of a nest whose transfers overlap with compute, and with each other where every memory has its own queue.

A **step** is an iteration of the loops outside the last Stay; it computes with one tile of every operand. A **visit**
of a Stay is a run of steps with one tile of it. Every visit of IN and W has a load, unless all of the tile is there
(sliding); one of OUT has a store, and a load if it was visited before. With B buffers of a Stay (`Level.buffers`):

    load(k, i)    begins when the load of the visit of its source is done, and visit i - B is released
    released      a visit of IN or W: its last step, or the last load from it, is done; of OUT: its store is done
    step          begins when the step before, and the loads of its visits, are done, and visit i - B of OUT is released
    store(k, i)   begins when its last step, or the last store to it, is done, and the visit of its source is loaded
    queue         moves one transfer after the other, in the order in which they are issued: load(k, i) at the first
                  step of visit i - (B - 1), not before the load of its source; store(k, i) after the last step of
                  visit i; of those at one step stores first, the near ones first, then loads, those of tiles that are
                  needed first first, of these the far ones first

The time is the end of the last store. Everything follows from what was issued before, so one pass finds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from hwmodels.compiled import compiled
from hwmodels.levels.schedule import Cut, LevelNest, Stay, real, source
from hwmodels.nest.price.bilinear import Ints
from instances.errors import InputError
from instances.machine.levels import Levels
from instances.machine.machine import Machine
from instances.network.workload import DIMS, REDUCTION, RELEVANT, Layer

#: Steps that are followed.
MOST = 2_000_000
_OF = {"IN": "bgnrc", "W": "gmnij", "OUT": "bgmrc"}


@dataclass
class _Visits:
    """The visits of a Stay."""

    number: Ints
    """By step which visit it is."""
    load: Ints
    """By visit ticks of its load, -1 if there is none."""
    store: Ints
    """By visit ticks of its store, -1 if there is none (IN, W)."""
    queue: int
    above: int
    """Which Stay its tiles come from, -1: from off the chip."""
    buffers: int


class _Steps:
    """All steps of a nest: by number of loops outside, the iterations of these with the ranges of dimensions."""

    def __init__(self, layer: Layer, items: Sequence[Cut | Stay]) -> None:
        self.layer = layer
        cuts = real(layer, items)
        self.loops = [(k, item) for k, item in enumerate(items) if isinstance(item, Cut) and cuts[k]]
        self.parent: list[Ints] = []
        """By loop which iteration of those outside every iteration belongs to."""
        self.piece: list[Ints] = []
        self.ranges = [{d: (np.zeros(1, np.int64), np.full(1, layer.extent(d), np.int64)) for d in DIMS}]
        """By number of loops begin and end of every dimension: one of each iteration where a loop inside cuts it."""
        self.cut: list[dict[str, int]] = [dict.fromkeys(DIMS, 0)]
        """By number of loops how many there are down to the last one over a dimension."""
        for _, loop in self.loops:
            self._cut(loop)

    def _cut(self, loop: Cut) -> None:
        depth = len(self.parent)
        begin, end = self.range(depth, loop.dim)
        number = -(-(end - begin) // loop.step)
        total = int(number.sum())
        if total > MOST:
            raise InputError(f"nest: more than {MOST:,} steps, too many to follow transfers that overlap")
        row = np.repeat(np.arange(len(begin)), number)
        piece = np.arange(total) - np.repeat(np.cumsum(number) - number, number)
        low = begin[row] + piece * loop.step
        self.parent.append(row)
        self.piece.append(piece)
        self.ranges.append({**self.ranges[-1], loop.dim: (low, np.minimum(low + loop.step, end[row]))})
        self.cut.append({**self.cut[-1], loop.dim: depth + 1})

    @property
    def number(self) -> int:
        """How many there are."""
        return self.iterations(len(self.loops))

    def iterations(self, loops: int) -> int:
        """How many iterations so many loops have."""
        return len(self.piece[loops - 1]) if loops else 1

    def within(self, loops: int, outer: int) -> Ints:
        """Which iteration of `outer` loops those of more loops belong to."""
        found = np.arange(self.iterations(loops))
        for depth in range(loops, outer, -1):
            found = self.parent[depth - 1][found]
        return found

    def range(self, loops: int, dim: str) -> tuple[Ints, Ints]:
        """Begin and end of a dimension in every iteration of so many loops."""
        begin, end = self.ranges[loops][dim]
        place = self.within(loops, self.cut[loops][dim])
        return begin[place], end[place]

    def moving(self, at: int, operand: str) -> int:
        """How many loops there are outside an item, down to the last one that moves the tile of an operand."""
        found = [i for i, (k, loop) in enumerate(self.loops) if k < at and loop.dim in RELEVANT[operand]]
        return found[-1] + 1 if found else 0


def overlapped(layer: Layer, machine: Machine, nest: LevelNest) -> int:
    """Return the ticks of a nest on a machine whose transfers overlap; raises InputError for too many steps."""
    levels = machine.levels
    assert levels is not None
    last = max(k for k, _ in nest.stays())
    steps = _Steps(layer, nest.items[:last])
    stays = nest.stays()
    visits = [_visits(layer, machine, levels, nest, steps, k, stay) for k, stay in stays]
    compute = _ticks(layer, machine, nest, steps)
    return _followed(visits, compute, [stay.operand for _, stay in stays])


def _visits(
    layer: Layer, machine: Machine, levels: Levels, nest: LevelNest, steps: _Steps, at: int, stay: Stay
) -> _Visits:  # fmt: skip
    """Count every visit of a Stay."""
    loops = steps.moving(at, stay.operand)
    stays = [one for _, one in nest.stays()]
    price = source(stays, levels, stay)
    mine = [one for one in stays if one.operand == stay.operand]
    place = mine.index(stay)
    above = stays.index(mine[place - 1]) if place else -1
    box = {d: steps.range(loops, d) for d in DIMS if d in RELEVANT[stay.operand] or d in REDUCTION}
    sides = {d: end - begin for d, (begin, end) in box.items()}
    none = np.full(steps.iterations(loops), -1, np.int64)
    if stay.operand == "OUT":
        load, store = _results(layer, machine, box, sides, price.call_ticks, price.byte_ticks)
    else:
        moved, calls = _fetched(layer, machine, steps, loops, stay.operand, sides, box)
        load = np.where(calls > 0, calls * price.call_ticks + moved * price.byte_ticks, -1)
        store = none
    queue = levels.memories.index(price) if levels.queues == "each" else 0
    number = steps.within(len(steps.loops), loops)
    return _Visits(number, load, store, queue, above, levels.memory(stay.memory).buffers)


def _results(
    layer: Layer, machine: Machine, box: dict[str, tuple[Ints, Ints]], sides: dict[str, Ints], call: int, byte: int
) -> tuple[Ints, Ints]:  # fmt: skip
    """Ticks of loads (-1: none) and stores of the visits of OUT."""
    elements = np.asarray(prod(sides[d] for d in _OF["OUT"]))
    begun = np.all([box[d][0] == 0 for d in "nij"], axis=0)
    ended = np.all([box[d][1] == layer.extent(d) for d in "nij"], axis=0)
    load = np.where(begun, -1, call + elements * machine.psum_bytes * byte)
    store = call + elements * np.where(ended, machine.out_bytes, machine.psum_bytes) * byte
    return load, store


def _fetched(
    layer: Layer, machine: Machine, steps: _Steps, loops: int, operand: str, sides: dict[str, Ints],
    box: dict[str, tuple[Ints, Ints]],
) -> tuple[Ints, Ints]:  # fmt: skip
    """Bytes and transfers of the visits of IN or W."""
    if operand == "W":
        bias = machine.bias_bytes if layer.bias else 0
        moved = np.asarray(prod(sides[d] for d in _OF["W"])) * machine.w_bytes + sides["g"] * sides["m"] * bias
        return moved, np.ones(steps.iterations(loops), np.int64)
    along = steps.loops[loops - 1][1].dim if loops and machine.sliding else ""
    follows = np.zeros(steps.iterations(loops), np.bool_)
    if along in ("r", "c"):
        follows = steps.piece[loops - 1] > 0
    lines = []
    for d, stride, dilation, pad, taps, size in (
        ("r", layer.stride_h, layer.dilation_h, layer.pad_top, layer.kh, layer.h),
        ("c", layer.stride_w, layer.dilation_w, layer.pad_left, layer.kw, layer.l),
    ):
        begin, end = box[d]
        low = np.maximum(begin * stride - pad, 0)
        high = np.minimum((end - 1) * stride - pad + (taps - 1) * dilation + 1, size)
        if d == along:
            low[1:] = np.where(follows[1:], np.maximum(low[1:], high[:-1]), low[1:])
        lines.append(np.maximum(high - low, 0))
    elements = np.asarray(prod(sides[d] for d in "bgn")) * lines[0] * lines[1]
    return elements * layer.inputs * machine.in_bytes, (elements > 0) * layer.inputs


def _ticks(layer: Layer, machine: Machine, nest: LevelNest, steps: _Steps) -> Ints:
    """Ticks of compute of every step: the pieces that the loops inside all Stays make of its ranges."""
    unit = machine.compute
    if unit.model == "none":
        each = np.full(steps.number, layer.cycles // steps.number, np.int64)
        each[: layer.cycles % steps.number] += 1
        return each * unit.cycle_ticks
    lanes = {"g": unit.cols} if layer.m == layer.n == 1 else {"m": unit.rows, "n": unit.cols}
    last = max(k for k, _ in nest.stays())
    total, deep = np.full(steps.number, layer.inputs * unit.cycle_ticks, np.int64), len(steps.loops)
    for d in DIMS:
        begin, end = steps.ranges[deep][d]
        inner = [item.step for item in nest.items[last:] if isinstance(item, Cut) and item.dim == d]
        sides, which = np.unique(end - begin, return_inverse=True)
        cycles = np.array([_rounds(int(side), inner, lanes.get(d, 1)) for side in sides], np.int64)
        total = total * (cycles if len(cycles) == 1 else cycles[which][steps.within(deep, steps.cut[deep][d])])
    return total


def _rounds(side: int, steps: Sequence[int], lanes: int) -> int:
    """Rounds of lanes over the pieces that steps make of a range."""
    if not steps:
        return -(-side // lanes)
    full, rest = divmod(side, steps[0])
    return full * _rounds(steps[0], steps[1:], lanes) + (_rounds(rest, steps[1:], lanes) if rest else 0)


# ---- the pass --------------------------------------------------------------------------------------------------------


def _followed(visits: Sequence[_Visits], compute: Ints, operands: Sequence[str]) -> int:
    """The end of the last store."""
    stays, number = len(visits), len(compute)
    begins = [np.flatnonzero(np.diff(one.number, prepend=-1)) for one in visits]
    issued: list[Ints] = []
    for k, one in enumerate(visits):
        at = begins[k][np.maximum(np.arange(len(begins[k])) - (one.buffers - 1), 0)]
        if one.above >= 0:
            at = np.maximum(at, issued[one.above][visits[one.above].number[begins[k]]])
        issued.append(np.maximum.accumulate(at))
    jobs = []  # step, kind (0: store, 1: load), when it is needed, order, stay, visit
    for k, one in enumerate(visits):
        ends = np.append(begins[k][1:], number)
        some = np.flatnonzero(one.store >= 0)
        jobs.append(np.stack([ends[some], 0 * some, 0 * some, 0 * some - k, 0 * some + k, some]))
        every = np.arange(len(begins[k]))
        jobs.append(np.stack([issued[k], 0 * every + 1, begins[k], 0 * every + k, 0 * every + k, every]))
    table = np.concatenate(jobs, axis=1)
    table = table[:, np.lexsort(table[3::-1])]
    offset = np.cumsum([0, *(len(begin) for begin in begins)])
    loads, stores = (np.concatenate([getattr(one, name) for one in visits]) for name in ("load", "store"))
    sources = [
        np.full(len(begins[k]), -1) if one.above < 0 else offset[one.above] + visits[one.above].number[begins[k]]
        for k, one in enumerate(visits)
    ]
    near = [k for k in range(stays) if not any(other.above == k for other in visits)]
    which = np.stack([offset[k] + visits[k].number for k in near], axis=1).reshape(-1)
    outs = [int(operand == "OUT") for operand in operands]
    loaded, released, used = (np.zeros(int(offset[-1]), np.int64) for _ in range(3))
    result = np.zeros(1, np.int64)
    _pass(
        table[0], table[1], table[4], offset[table[4]] + table[5], table[5], compute, which,
        np.concatenate(sources), np.array([one.queue for one in visits]), np.array([one.buffers for one in visits]),
        np.array(outs), np.array([outs[k] for k in near]), loads, stores, loaded, released, used,
        np.zeros(64, np.int64), result,
    )  # fmt: skip
    return int(result[0])


@compiled
def _pass(
    step: Ints, kind: Ints, stay: Ints, job: Ints, visit: Ints, compute: Ints, near: Ints, source: Ints, queue: Ints,
    buffers: Ints, results: Ints, sums: Ints, load: Ints, store: Ints, loaded: Ints, released: Ints, used: Ints,
    free: Ints, result: Ints,
) -> int:  # fmt: skip
    """One pass over all jobs in their order of issue.

    `job` is which of all visits it is of, `near` those that every step computes with, `sums` which of these are of OUT;
    by visit when it is `loaded` and `released`, and its last use; by queue when it is `free`.
    """
    steps, tiles, at, now, latest = len(compute), len(sums), 0, 0, 0
    for s in range(steps + 1):
        while at < len(step) and step[at] <= s:
            k, me = stay[at], job[at]
            beyond = source[me]
            begin = 0 if beyond < 0 else loaded[beyond]
            if kind[at] == 0:
                end = max(begin, used[me], free[queue[k]]) + store[me]
                free[queue[k]] = end
                released[me] = end
                latest = max(latest, end)
                if beyond >= 0:
                    used[beyond] = max(used[beyond], end)
            else:
                if visit[at] >= buffers[k]:
                    begin = max(begin, released[me - buffers[k]])
                if load[me] >= 0:
                    begin = max(begin, free[queue[k]]) + load[me]
                    free[queue[k]] = begin
                loaded[me] = begin
                if beyond >= 0 and results[k] == 0:
                    released[beyond] = max(released[beyond], begin)
            at += 1
        if s < steps:
            for t in range(tiles):
                now = max(now, loaded[near[s * tiles + t]])
            now += compute[s]
            for t in range(tiles):
                if sums[t] == 1:
                    used[near[s * tiles + t]] = now
                else:
                    released[near[s * tiles + t]] = now
    result[0] = max(latest, now)
    return 0
