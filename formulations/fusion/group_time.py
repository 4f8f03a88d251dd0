"""What the pieces of a group take: ticks of computing and of moving, calls and segments included.

A piece of a map is a call: a box of the map as its layer reads (or writes) it, with a segment for every run of
addresses. Weights that stay are one call before all else; what is streamed is a call for every filter, with its bias.

Example: 2 rows of a map of 4 channels, 8 x 8 pixels, are 4 runs of 16 bytes where channels lie outermost (CHW), one of
64 where they lie innermost (HWC). With 5 ticks a call, 2 a segment and 1 a byte they take 77 and 71 ticks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from formulations.fusion.groups import Group
from formulations.fusion.near import Near
from formulations.fusion.strips import Ints, Strips
from hwmodels.schedule import Blocks, FusedRun
from hwmodels.transfer import bursts_of_segment, request, ticks
from instances.machine.machine import Machine, Transfer
from instances.network.stores import Pitch
from instances.network.workload import Layer

#: Runs of addresses: the first one's start, bytes of each, and how many there are in a row at which distance.
AddressRuns = tuple[int, int, tuple[tuple[int, int], ...]]


def ticks_of_call(transfer: Transfer, runs: Sequence[AddressRuns]) -> int:
    """Return what one call takes that moves some runs; those that adjoin are one."""
    moved = segments = bursts = 0
    for start, size, repeats in runs:
        starts = np.array([start], np.int64)
        for number, pitch in repeats:
            starts = np.add.outer(starts, np.arange(number, dtype=np.int64) * pitch).ravel()
        starts = starts if size else starts[:0]
        heads = np.flatnonzero(np.diff(starts, prepend=-size - 1) != size)
        moved, segments = moved + len(starts) * size, segments + len(heads)
        if transfer.burst_bytes:
            sizes = np.diff(np.append(heads, len(starts))) * size
            begins = starts[heads] * transfer.by_address
            each = zip(begins.tolist(), sizes.tolist(), strict=True)
            bursts += sum(bursts_of_segment(at, long, transfer.burst_bytes) for at, long in each)
    return ticks(transfer, request(transfer, moved, segments, bursts)) if moved else 0


@dataclass(frozen=True)
class Around:
    """What matters of a group beside its strips."""

    rows: Mapping[int, int]
    """By store from outside how many first rows are on chip while the group runs."""
    unwritten: Sequence[int]
    """Of every layer how many first rows of its result never go to DRAM."""
    blocks: tuple[Blocks, ...] = ()
    """Layers that take turns."""

    @classmethod
    def of(cls, run: FusedRun) -> Around:
        """Read it from a run."""
        return cls({s: rows for s, (rows, _) in run.residents.items()}, run.unwritten, run.blocks)


class GroupTime:
    """Ticks of the pieces of a group whose steps along rows and columns are `down` (of several ways) and `across`."""

    def __init__(
        self, group: Group, machine: Machine, around: Around, down: Strips, across: Strips, near: Near | None = None
    ) -> None:  # fmt: skip
        self.group, self.machine, self.around, self.near = group, machine, around, near
        self.down, self.across, self.net = down, across, group.net

    def ticks(self, weights: Sequence[int]) -> int:
        """Visit by visit the longer of computing and of moving, when so many bytes of every layer's weights stay."""
        moving, computing = np.zeros((2, self.down.begin.shape[1], self.across.begin.shape[1]), np.int64)
        moving[0, 0] = sum(self.resident(t, kept) for t, kept in zip(self.group.layers, weights, strict=True))
        for k, stream in enumerate(self.group.streams):
            rows, columns = self.spans(k)
            if stream.outside:
                moving += self.boxes(k, rows, columns)
                continue
            pixels = np.multiply.outer(rows[1] - rows[0], columns[1] - columns[0])
            computing += self.cycles(k, pixels) * self.machine.compute.cycle_ticks
            moving += (pixels > 0) * self.streamed(k, weights[self.group.owners[k]])
            moving += self.boxes(k, *self.new(k, rows, columns))
        return int(np.maximum(moving, computing).sum())

    # ---- pieces ------------------------------------------------------------------------------------------------------

    def spans(self, k: int) -> tuple[Ints, Ints]:
        """What is loaded or made of a stream in every step, (2, steps) along rows and along columns."""
        rows, columns = (np.stack([s.begin[k], np.maximum(s.begin[k], s.end[k])]) for s in (self.down, self.across))
        stream = self.group.streams[k]
        if stream.outside:
            there = self.around.rows.get(stream.store, 0)
            height = self.net.operand(stream.maker, stream.store).rows
            rows[0] = np.minimum(np.maximum(rows[0], self.net.stores[stream.store].seen(there, height)), rows[1])
        return rows, columns

    def new(self, k: int, rows: Ints, columns: Ints) -> tuple[Ints, Ints]:
        """What is written of it: rows and columns that no step before has made, in rows that do not stay."""
        layer, store = self.net.layers[self.group.first + k], self.net.stores[self.group.streams[k].store]
        made = [rows.copy(), columns.copy()]
        for span, axis in zip(made, (self.down, self.across), strict=True):
            span[0] = np.minimum(np.maximum(span[0], _ends_before(span[1], axis.first)), span[1])
        stay = store.seen(self.around.unwritten[k], layer.r)
        made[0][0] = np.minimum(np.maximum(made[0][0], stay), made[0][1])
        return made[0], made[1]

    def boxes(self, k: int, rows: Ints, columns: Ints) -> Ints:
        """Ticks of a piece in every visit."""
        price, addressed = self._box(k)
        tall, at = _kinds(rows, addressed)
        wide, across = _kinds(columns, addressed)
        each = [[price(top, left, high, broad) for left, broad in wide] for top, high in tall]
        return np.array(each, np.int64)[np.ix_(at, across)]

    def pieces(self, k: int, rows: Ints, columns: Ints) -> Ints:
        """Ticks of pieces of these rows and columns, (2, pieces) each."""
        price, addressed = self._box(k)
        at = np.array([1, 1, 1, 1]) if addressed else np.array([0, 0, 1, 1])
        boxes = np.stack([rows[0], columns[0], rows[1] - rows[0], columns[1] - columns[0]], axis=1) * at
        kinds, which = np.unique(boxes, axis=0, return_inverse=True)
        return np.array([price(*map(int, box)) for box in kinds], np.int64)[which.ravel()]

    def _box(self, k: int) -> tuple[Callable[[int, int, int, int], int], bool]:
        """The price of a box of a stream's map, by its first row and column and its size; whether these matter."""
        stream, machine = self.group.streams[k], self.machine
        layer = self.net.layers[stream.maker]
        if stream.outside:
            _, _, height, width = self.net.operand(stream.maker, stream.store)
            batch, order = (
                1 if "b" in self.net.operand(stream.maker, stream.store).lacks else layer.b,
                machine.in_layout,
            )
        else:
            height, width, batch, order = layer.r, layer.c, layer.b, machine.out_layout
        pixel, transfer = stream.pixel, machine.transfer_of("IN" if stream.outside else "OUT")
        element = self.net.element_bytes
        planes, each = (pixel // element, element) if order == "CHW" else (batch, pixel // batch)
        if stream.outside and stream.maker in self.net.pitch:
            return self._sampled(self.net.pitch[stream.maker], planes, each), transfer.by_address

        def price(top: int, left: int, high: int, broad: int) -> int:
            start, row, plane = (top * width + left) * each, width * each, height * width * each
            if broad < width:
                return ticks_of_call(transfer, [(start, broad * each, ((planes, plane), (high, row)))])
            if high < height:
                return ticks_of_call(transfer, [(start, high * row, ((planes, plane),))])
            return ticks_of_call(transfer, [(0, planes * plane, ())])

        return price, transfer.by_address

    def _sampled(self, pitch: Pitch, planes: int, each: int) -> Callable[[int, int, int, int], int]:
        """The price of a box of a map of which pixels are left out, counted in those that are read.

        A run is a pixel of `each` bytes, or all of a row where columns are neighbours; the last one of a row (a plane)
        may adjoin the first one of the next.
        """
        transfer, row = self.machine.transfer_of("IN"), pitch.columns * each

        def price(top: int, left: int, high: int, broad: int) -> int:
            start = top * pitch.down * row + left * pitch.across * each
            rows = (planes, pitch.rows * row), (high, pitch.down * row)
            if pitch.across == 1:
                return ticks_of_call(transfer, [(start, broad * each, rows)])
            return ticks_of_call(transfer, [(start, each, (*rows, (broad, pitch.across * each)))])

        return price

    # ---- weights -----------------------------------------------------------------------------------------------------

    def filters(self, k: int) -> tuple[int, int]:
        """Filters of a layer, and bytes of one with its bias; 0 if it has none."""
        number, size, bias = self._filter(self.net.layers[self.group.first + k])
        return number, size + bias

    def _filter(self, layer: Layer) -> tuple[int, int, int]:
        """Filters of a layer, and bytes of one and of its bias."""
        if layer.weights == "none":
            return 0, 0, 0
        taps = layer.n * layer.kh * layer.kw
        return layer.g * layer.m, taps * self.machine.w_bytes, self.machine.bias_bytes if layer.bias else 0

    def resident(self, t: int, kept: int) -> int:
        """Ticks of loading the first bytes of a layer's weights, to stay."""
        _, size, bias = self._filter(self.net.layers[t])
        whole, rest = divmod(kept, size + bias) if kept else (0, 0)
        runs = [(0, whole * size + min(rest, size), ()), (0, whole * bias + max(0, rest - size), ())]
        return ticks_of_call(self.machine.transfer_of("W"), runs)

    def streamed(self, k: int, kept: int) -> int:
        """Ticks of loading what does not stay of a layer's weights, a call for every filter."""
        number, size, bias = self._filter(self.net.layers[self.group.first + k])
        first, rest = divmod(kept, size + bias) if number else (0, 0)
        transfer = self.machine.transfer_of("W")

        def price(at: int, gone: int) -> int:
            weights = (at * size + min(gone, size), size - min(gone, size), ())
            return ticks_of_call(transfer, [weights, (at * bias + max(0, gone - size), bias - max(0, gone - size), ())])

        if first == number:
            return 0
        later = range(first + 1, number)
        alike = not transfer.by_address or not later
        return price(first, rest) + (len(later) * price(0, 0) if alike else sum(price(at, 0) for at in later))

    # ---- computing ---------------------------------------------------------------------------------------------------

    def round(self, k: int) -> int:
        """Filters that the lanes compute at once."""
        return lanes_of(self.net.layers[self.group.first + k], self.machine)

    def cycles(self, k: int, pixels: Ints) -> Ints:
        """Cycles of pieces of so many pixels, each turn's share by itself."""
        t = self.group.first + k
        blocks = next((one for one in self.around.blocks if one.first <= t <= one.last), None)
        first = self.net.layers[t if blocks is None else blocks.first]
        turns = 1 if blocks is None else first.g * first.m // blocks.channels
        return cycles_of(self.net.layers[t], self.machine, pixels, turns)


def lanes_of(layer: Layer, machine: Machine) -> int:
    """Filters (or channels, of which each is computed by itself) that the lanes compute at once."""
    unit = machine.compute
    if unit.model != "array" or layer.g > 1 < layer.m:
        return 1
    return unit.cols if layer.m == layer.n == 1 else unit.rows


def cycles_of(layer: Layer, machine: Machine, pixels: Ints, turns: int = 1) -> Ints:
    """Cycles of pieces of so many pixels of a layer, in so many turns.

    Where they were measured (`Layer.cycles`), a turn of a piece takes its share of the pixels and turns, rounded up: so
    pieces that make a layer once take no less than the layer together, and each at most a cycle more than its share.
    """
    unit = machine.compute
    if unit.model == "none":
        return turns * -(-layer.cycles * pixels // (turns * layer.r * layer.c))
    work = pixels * (layer.b * layer.kh * layer.kw * layer.inputs)
    if unit.model == "tile":
        work, lanes = work * (layer.g * layer.m * layer.n), unit.macs_per_cycle
    elif layer.m == layer.n == 1:
        work, lanes = work * ceil(layer.g / unit.cols), 1
    else:
        work, lanes = work * (layer.g * ceil(layer.m / unit.rows) * ceil(layer.n / unit.cols)), 1
    return turns * -(-work // (turns * lanes))


def _ends_before(end: Ints, first: Ints) -> Ints:
    """The furthest that the steps of a way have come before each step; `first`: where the steps of every way begin."""
    lift = np.repeat(np.arange(len(first) - 1), np.diff(first)) * (int(end.max(initial=0)) + 1)
    before = np.append(0, np.maximum.accumulate(end + lift)[:-1]) - lift
    before[first[:-1]] = 0
    return before


def _kinds(spans: Ints, addressed: bool) -> tuple[list[tuple[int, int]], Ints]:
    """The distinct (start, size) of spans, starts 0 where they do not matter, and which one every span is."""
    keys = np.stack([spans[0] * addressed, spans[1] - spans[0]], axis=1)
    kinds, which = np.unique(keys, axis=0, return_inverse=True)
    return [(int(start), int(size)) for start, size in kinds], which.ravel()
