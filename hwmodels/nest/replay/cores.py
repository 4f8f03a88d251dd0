"""The cores of a replay: every unit's share of the layer, faults in how they share it, what they load together.

**Together.** All cores of a machine run one program; a core with less work has fewer iterations of some loops. The
clock of an iteration is the position in every loop, outermost first, as one number. Cores of a level that read the same
part of an operand are listened to together: of the fetches of one tile at one clock, one is a transfer.

**Apart.** Inputs of an element-wise layer that are broadcast, on integers: each in a buffer of its own and fetched
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hwmodels.nest.replay.counts import Boxes
from hwmodels.nest.replay.tiles import Box, Buffer, Tensor, at_box
from hwmodels.nest.replay.walk import Places, Traffic, blocks, changes
from hwmodels.outcome import Counts
from hwmodels.schedule import Nest, Spatial
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import DIMS, RELEVANT, Layer

#: Nests that need more cores are refused.
MAX_CORES = 65_536


@dataclass(frozen=True)
class ReplayCore:
    """One core's number in its cluster and its half-open range of every dimension."""

    tle: int
    tlt: int
    ranges: Mapping[str, tuple[int, int]]


def replay_cores(layer: Layer, nest: Nest) -> list[ReplayCore]:
    """Give every unit its piece; units of a level are numbered in the order of the pieces."""
    cores = [ReplayCore(0, 0, {d: (0, layer.extent(d)) for d in DIMS})]
    for item in nest.items:
        if not isinstance(item, Spatial):
            continue
        split = []
        for core in cores:
            lo, hi = core.ranges[item.dim]
            pieces = [(a, min(a + item.step, hi)) for a in range(lo, hi, item.step)]
            if len(cores) * len(pieces) > MAX_CORES:
                raise InputError(f"nest: more than {MAX_CORES:,} cores; use larger steps in the spatial cuts")
            most = -(-layer.extent(item.dim) // item.step)
            for i, piece in enumerate(pieces):
                tle = core.tle * most + i if item.over == "tle" else core.tle
                tlt = core.tlt * most + i if item.over == "tlt" else core.tlt
                split.append(ReplayCore(tle, tlt, {**core.ranges, item.dim: piece}))
        cores = split
    return cores


def unit_faults(machine: Machine, cores: Sequence[ReplayCore]) -> list[str]:
    """Say where there are more clusters or cores than the machine has."""
    clusters: dict[int, int] = {}
    for core in cores:
        clusters[core.tle] = clusters.get(core.tle, 0) + 1
    faults = []
    if len(clusters) > machine.tles:
        faults.append(f"level tle: {len(clusters)} units of {machine.tles}")
    if max(clusters.values()) > machine.tlts:
        faults.append(f"level tlt: {max(clusters.values())} units of {machine.tlts}")
    return faults


def cover_faults(layer: Layer, cores: Sequence[ReplayCore]) -> list[str]:
    """Paint every core's share of the output and look for elements painted twice or never.

    A cut of the reduction over units paints the same outputs several times: the units' sums would never meet.
    """
    dims = ("b", "g", "m", "r", "c")
    marks = {d: sorted({0, layer.extent(d)} | {e for core in cores for e in core.ranges[d]}) for d in dims}
    at = {d: {v: i for i, v in enumerate(marks[d])} for d in dims}
    painted = np.zeros([len(marks[d]) - 1 for d in dims], np.int64)
    for core in cores:
        painted[tuple(slice(at[d][core.ranges[d][0]], at[d][core.ranges[d][1]]) for d in dims)] += 1
    faults = []
    if (painted == 0).any():
        faults.append("output: some elements belong to no core")
    if (painted > 1).any():
        faults.append("output: some elements are produced by several cores")
    return faults


Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Run:
    """What one core did: what it moves alone, how it walks, and its tiles as they are fetched."""

    rows: Mapping[str, Counts]
    transfer_ticks: int
    compute_ticks: int
    pipeline_ticks: int
    steps: int
    occupancy: Mapping[str, int]
    lined: int | None
    faults: tuple[str, ...]
    traffic: Traffic
    boxes: Mapping[str, Boxes]


def listened(operand: str, level: str, cores: Sequence[tuple[ReplayCore, Run]]) -> dict[int, Counts]:
    """Return what is loaded of an operand, by the first cluster that each load goes to.

    `level`: "tle" or "chip", cores of which one load may serve.
    """
    groups: dict[object, list[tuple[ReplayCore, Run]]] = {}
    for core, run in cores:
        place = core.tle if level == "tle" else None
        groups.setdefault((place, *(core.ranges[d] for d in sorted(RELEVANT[operand]))), []).append((core, run))
    loaded: dict[int, Counts] = {}
    known: dict[frozenset[int], Counts] = {}  # cores with equal walks count alike
    for group in groups.values():
        tle, runs = group[0][0].tle, {id(run): run for _, run in group}
        walks = frozenset(runs)
        if walks not in known:
            known[walks] = _together(operand, list(runs.values())) if len(walks) > 1 else group[0][1].rows[operand]
        loaded[tle] = loaded.get(tle, Counts()) + known[walks]
    return loaded


def _together(operand: str, runs: Sequence[Run]) -> Counts:
    """The transfers of cores that walk differently and listen to each other."""
    if operand not in runs[0].boxes:
        return Counts()
    radix = [max(int(run.traffic.cuts[d].number[k].max()) for run in runs) for d, k in runs[0].traffic.loops]
    boxes = runs[0].boxes[operand]
    number = len(boxes.kind)
    events = [clock * number + tile for clock, tile in (_fetched(run.traffic, operand, radix) for run in runs)]
    tiles = np.unique(np.concatenate(events)) % number
    return boxes.total(np.bincount(tiles, minlength=number).astype(np.int64))


def _fetched(traffic: Traffic, operand: str, radix: Sequence[int]) -> tuple[Ints, Ints]:
    """The clock and the tile of every fetch of IN or W.

    The clock is the position of an iteration in every loop as one number, `radix` the positions each loop may have.
    """
    cuts = traffic.cuts
    places, visits = Places(cuts, traffic.levels[operand]), Places(cuts, traffic.visits[operand])
    ids = {d: np.zeros(1, np.int64) for d, c in cuts.items() if c.leaves > 1}
    clocks, tiles, visit = list[Ints](), list[Ints](), -1
    for block in blocks(cuts, [(d, k) for d, k in traffic.loops if d in ids], ids):
        size = len(next(iter(block.values()))) if block else 1
        now = visits.tiles(block, size)
        at, visit = changes(now, visit), int(now[-1])
        clock = np.zeros(len(at), np.int64)
        for (d, k), number in zip(traffic.loops, radix, strict=True):
            clock *= number
            if d in block:
                leaf = block[d][at]
                clock += cuts[d].ancestor(k + 1)[leaf] - cuts[d].first[k][cuts[d].ancestor(k)[leaf]]
        clocks.append(clock)
        tiles.append(places.tiles(block, size)[at])
    return np.concatenate(clocks), np.concatenate(tiles)


Ranges = Mapping[str, tuple[int, int]]
#: The dimension along each axis of an input (batch, groups, channels of a group, rows, columns).
_AXES = "bgnrc"


def maps_of(layer: Layer, draw: Callable[[tuple[int, ...]], Tensor]) -> tuple[Tensor, ...]:
    """Draw the inputs of a layer, with one element along every dimension that they lack."""
    sizes = {"b": layer.b, "g": layer.g, "n": layer.n, "r": layer.h, "c": layer.l}
    return tuple(draw(tuple(1 if d in lacks else sizes[d] for d in _AXES)) for lacks in layer.patterns)


def spread(tensor: Tensor, layer: Layer) -> Tensor:
    """The input with the shape of the result."""
    return np.broadcast_to(tensor, (layer.b, layer.g, layer.n, layer.h, layer.l))


class Apart:
    """The buffers of all inputs, each with the iteration for which it was fetched.

    Parameters
    ----------
    maps : sequence of arrays
        The inputs off the chip.
    cutting : sequence of (int, str)
        The loops outside the Hold of IN that cut something: their place in the nest, and their dimension.
    snake : bool
        Whether an input is fetched wherever its tile is another one.
    """

    def __init__(self, layer: Layer, maps: Sequence[Tensor], cutting: Sequence[tuple[int, str]], snake: bool) -> None:
        self.layer, self.maps, self.snake = layer, maps, snake
        self.mine = [RELEVANT["IN"].difference(lacks) for lacks in layer.patterns]
        self.fetching = [max((at + 1 for at, d in cutting if d in mine), default=0) for mine in self.mine]
        self.visits: list[Ranges | None] = [None] * len(maps)
        self.held: dict[int, Buffer] = {}

    def bring(self, passed: Sequence[Ranges], here: Ranges) -> int:
        """Fetch what is needed at this moment and is not there; return how many transfers that took.

        `passed` are the ranges after every item of the nest that was passed, `here` those at the Hold.
        """
        calls = 0
        for k, tensor in enumerate(self.maps):
            visit = {d: here[d] for d in self.mine[k]} if self.snake else passed[self.fetching[k]]
            if visit != self.visits[k]:
                box = self._box(k, here, loaded=True)
                self.held[k] = Buffer(box, at_box(tensor, box).copy())
                calls += self.held[k].content.size > 0
                self.visits[k] = visit
        return calls

    def _box(self, k: int, ranges: Ranges, *, loaded: bool) -> Box:
        """The part of an input that some ranges need; of its rows those that are loaded, or that are on chip."""
        lacks, resident = self.layer.patterns[k], self.layer.residents[k]
        box = []
        for d in _AXES:
            lo, hi = (0, 1) if d in lacks else ranges[d]
            if d == "r":
                lo, hi = (max(lo, resident), max(hi, resident)) if loaded else (min(lo, resident), min(hi, resident))
            box.append((lo, hi))
        return tuple(box)

    def read(self, ranges: Ranges) -> Tensor:
        """The sum of all inputs over some ranges, read from where they are on chip."""
        sizes = tuple(ranges[d][1] - ranges[d][0] for d in _AXES)
        total = np.zeros(sizes, np.int64)
        for k, tensor in enumerate(self.maps):
            rows = [at_box(tensor, self._box(k, ranges, loaded=False))]
            beyond = self._box(k, ranges, loaded=True)
            if beyond[3][0] < beyond[3][1]:
                rows.append(self.held[k].view(beyond))
            total += np.concatenate(rows, axis=3)
        return total
