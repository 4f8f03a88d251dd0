"""Counting a group that runs strip by strip: every byte and multiply-accumulate, and what is missing on chip.

Of every map there is a mask of the pixels that lie on chip: a piece is added when it is loaded or made, and everything
outside the map's area is dropped whenever the area changes. A layer may read what is in the mask, and the rows that
stay on chip anyway.

A piece that is loaded or written is a DMA call, whose runs of addresses are written down as for a tile
(`hwmodels.nest.replay.counts`); so is every filter with its bias that does not stay whole, and what stays of a layer's
weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hwmodels.fusion.replay.strips import ALL, Area, Moment, Span, Walk
from hwmodels.nest.replay.counts import call_of, price
from hwmodels.schedule import FusedRun
from instances.machine.machine import Machine
from instances.network.stores import Stores
from instances.network.workload import Layer

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Counted:
    """Figures of a group.

    Attributes
    ----------
    operand_bytes : dict
        What DRAM moves, by operand: IN, W, OUT.
    macs : int
        With those that are computed again.
    work, taps : int
        The same with additions of layers without weights; shifted copies that an execution adds.
    peak_bytes : int
        The most bytes of strips, resident weights and the buffer for filters that lie on chip at once.
    ticks : int
        Visit by visit the longer of computing and of moving what it loads and writes, calls and segments included;
        weights that stay come first.
    compute_ticks : int
        Of all pieces one after the other.
    faults : tuple of str
    """

    operand_bytes: dict[str, int]
    macs: int
    work: int
    taps: int
    peak_bytes: int
    ticks: int
    compute_ticks: int
    faults: tuple[str, ...]


def weight_bytes(layer: Layer, machine: Machine) -> int:
    """Bytes of a layer's weights and biases."""
    if layer.weights == "none":
        return 0
    filters = layer.g * layer.m
    taps = layer.n * layer.kh * layer.kw
    return filters * (taps * machine.w_bytes + (machine.bias_bytes if layer.bias else 0))


def weight_owners(found: Stores, run: FusedRun) -> list[int]:
    """For every layer of a group, by its place in it, the first one that has the same weights and biases."""
    owners, first = list[int](), dict[int, int]()
    for k, t in enumerate(range(run.first, run.last + 1)):
        tensor = found.shared[t] if found.shared else -1
        one = tensor >= 0 and found.stores[tensor].biases is not None
        owners.append(first.setdefault(tensor, k) if one else k)
    return owners


def kept(mask: npt.NDArray[np.generic], area: Area, gone: int) -> None:
    """Overwrite what lies outside an area; the last two axes are rows and columns."""
    outside = np.ones(mask.shape[-2:], np.bool_)
    for (left, right), (first, end) in area.parts:
        outside[first:end, left:right] = False
    mask[..., outside] = gone


class Count:
    """Takes the moments of a walk one after the other."""

    def __init__(self, machine: Machine, walk: Walk) -> None:
        self.machine, self.walk, self.run = machine, walk, walk.run
        self.found = found = walk.found
        self.streams, self.owners = walk.run.streams, weight_owners(found, walk.run)
        self.residents = walk.run.residents
        self.on_chip = [self._mask(k) for k in range(len(self.streams))]
        self.made = [self._mask(k) for k in range(len(self.streams))]
        self.resident_rows = [resident_rows(found, walk, k) for k in range(len(self.streams))]
        self.sizes = [self._pixel_bytes(k) for k in range(len(self.streams))]
        self.room = [self._room_of_pixel(k) for k in range(len(self.streams))]
        self.held = [0] * len(self.streams)
        self.by_block = {k: np.zeros(len(self.on_chip[k]), np.int64) for k in walk.between}
        self.sums = 0
        self.total = 0
        self.bytes = {"IN": 0, "W": 0, "OUT": 0}
        self.macs = self.work = self.taps = self.strips = self.cycles = self.ticks = self.moving = 0
        self.streaming: dict[int, int] = {}
        self.faults: dict[tuple[int, int], str] = {}

    def run_all(self) -> Counted:
        """Walk the group."""
        for k, (layer, stay) in enumerate(zip(self._layers(), self.run.weights, strict=True)):
            self.bytes["W"] += min(stay, weight_bytes(layer, self.machine)) if self.owners[k] == k else 0
            self.moving += self._filters(layer, 0, stay) if self.owners[k] == k else 0
        for moments in self.walk.each_visit():
            begun = self.cycles
            for moment in moments:
                self._take(moment)
            self.ticks += max(self.moving, (self.cycles - begun) * self.machine.compute.cycle_ticks)
            self.moving = 0
        self._unmade()
        peak = self.strips + sum(self.run.weights) + self._filter_buffer()
        computing = self.cycles * self.machine.compute.cycle_ticks
        faults = tuple(self.faults.values())
        return Counted(self.bytes, self.macs, self.work, self.taps, peak, self.ticks, computing, faults)

    # ---- calls -------------------------------------------------------------------------------------------------------

    def _box(self, k: int, operand: str, rows: Span, columns: Span) -> int:
        """Ticks of one call that moves a piece of a stream's map, whose first byte begins a window."""
        stream, machine = self.streams[k], self.machine
        high, wide = rows[1] - rows[0], columns[1] - columns[0]
        height, width = extent(self.walk, k)
        batch = self.walk.layers[stream.maker].b
        if stream.outside and "b" in self.found.operand(stream.maker, stream.store).lacks:
            batch = 1
        element = machine.in_bytes if operand == "IN" else machine.out_bytes
        channels = self.sizes[k] // (element * batch)
        if stream.outside and stream.maker in self.found.pitch:
            return self._sampled(k, batch, channels, rows, columns)
        place = rows[0] * width + columns[0]
        if (machine.in_layout if operand == "IN" else machine.out_layout) == "CHW":
            shape, box = (batch, channels, height, width), (batch, channels, high, wide)
        else:
            shape, box, place = (batch, height, width, channels), (batch, high, wide, channels), place * channels
        transfer = machine.transfer_of(operand)
        return price(call_of([(shape, box, element, place * element)], transfer), transfer)

    def _sampled(self, k: int, batch: int, channels: int, rows: Span, columns: Span) -> int:
        """The same of a map of which pixels are left out: what is moved is marked in the map as it lies."""
        machine, transfer = self.machine, self.machine.transfer_of("IN")
        down, across, height, width = self.found.pitch[self.streams[k].maker]
        planes, each = (batch * channels, 1) if machine.in_layout == "CHW" else (batch, channels)
        moved = np.zeros((planes, height, width, each), np.int8)
        spans = (
            slice(first * step, (end - 1) * step + 1, step) for (first, end), step in ((rows, down), (columns, across))
        )
        moved[(slice(None), *spans)] = 1
        runs = np.flatnonzero(np.diff(moved.ravel(), prepend=0, append=0)).reshape(-1, 2).tolist()
        element = machine.in_bytes
        parts = [((moved.size,), (end - begin,), element, begin * element) for begin, end in runs]
        return price(call_of(parts, transfer), transfer)

    def _filters(self, layer: Layer, first: int, end: int) -> int:
        """Ticks of one call for the bytes `first` to `end` of a layer's filters, each with its bias behind it."""
        if first >= end:
            return 0
        transfer, number = self.machine.transfer_of("W"), layer.g * layer.m
        each = weight_bytes(layer, self.machine) // number
        bias = self.machine.bias_bytes if layer.bias else 0
        parts = []
        for size, behind in ((each - bias, 0), (bias, each - bias)):
            low, high = (at // each * size + min(size, max(0, at % each - behind)) for at in (first, end))
            if high > low:
                parts.append(((number * size,), (high - low,), 1, low))
        return price(call_of(parts, transfer), transfer)

    def _streamed(self, k: int) -> int:
        """Ticks of what of a layer's weights does not stay, filter by filter."""
        if k not in self.streaming:
            layer = self._layers()[k]
            size, stay = weight_bytes(layer, self.machine), self.run.weights[self.owners[k]]
            each = max(1, size // (layer.g * layer.m))
            self.streaming[k] = sum(
                self._filters(layer, max(stay, at), at + each) for at in range(stay // each * each, size, each)
            )
        return self.streaming[k]

    # ---- moments -----------------------------------------------------------------------------------------------------

    def _take(self, moment: Moment) -> None:
        k, (top, bottom), (left, right) = moment.stream, moment.rows, moment.columns
        blocks = slice(None) if moment.block == ALL or k in self.walk.ends else slice(moment.block, moment.block + 1)
        self._hold(k, moment.area, blocks)
        result = moment.kind == "make" and k in self.walk.ends  # in place of its sums, or made in blocks
        pixels = (bottom - top) * (right - left) if top < bottom and left < right else 0
        if moment.kind == "sums" or result:
            layer = self.walk.layers[self.run.first + k]
            each = layer.b * layer.g * layer.m * max(self.machine.psum_bytes, self.machine.out_bytes)
            self.sums = 0 if result else pixels * each
        if moment.kind in ("make", "reserve", "add"):
            self.strips = max(self.strips, self.total + self.sums)
        if moment.kind == "load" and pixels:
            new = max(0, bottom - max(top, self.resident_rows[k]))
            self.bytes["IN"] += new * (right - left) * self.sizes[k]
            self.moving += self._box(k, "IN", (bottom - new, bottom), (left, right))
        if moment.kind in ("make", "add") and pixels and not result:
            self._make(k, moment, pixels)
        if moment.kind in ("make", "load") and pixels:
            self.on_chip[k][blocks, top:bottom, left:right] = True
            if moment.kind == "make":
                self._write(k, moment)
            self.made[k][blocks, top:bottom, left:right] = True

    def _hold(self, k: int, area: Area, blocks: slice) -> None:
        """Some blocks of a stream have an area from now on."""
        kept(self.on_chip[k][blocks], area, 0)
        held = area.pixels * self.room[k]
        if k in self.by_block:
            self.by_block[k][blocks] = held // len(self.by_block[k])
            held = int(self.by_block[k].sum())
        self.total += held - self.held[k]
        self.held[k] = held

    def _make(self, k: int, moment: Moment, pixels: int) -> None:
        """A layer computes a piece, or a block of its channels, or adds a block to its sums: what it reads is there.

        A block takes its share of the multiply-accumulates. Streamed weights are counted with the first one.
        """
        t, rows, columns = self.run.first + k, moment.rows, moment.columns
        layer, turns = self.walk.layers[t], 1 if moment.block == ALL else self.walk.turns[k]
        per_pixel = layer.b * layer.g * layer.m * layer.n * layer.kh * layer.kw // turns
        self.macs += per_pixel * pixels if layer.weights != "none" else 0
        self.work += per_pixel * layer.inputs * pixels
        self.cycles += self._cycles(layer, pixels, turns)
        self.taps += layer.inputs * layer.kh * layer.kw
        if moment.block in (ALL, 0):
            self.bytes["W"] += max(0, weight_bytes(layer, self.machine) - self.run.weights[self.owners[k]])
            self.moving += self._streamed(k)
        for source, stream in enumerate(self.streams):
            if t not in stream.readers or (t, source) in self.faults:
                continue
            block = moment.block if source in self.walk.between else ALL
            window = self.walk.sees(t, source, "rows", rows), self.walk.sees(t, source, "columns", columns)
            if not self._there(source, block, *window):
                self.faults[t, source] = (
                    f"layer {layer.name}: rows {window[0][0]} to {window[0][1] - 1}, columns {window[1][0]} to "
                    f"{window[1][1] - 1} of {self._name(source)} are not all on chip when it makes its rows "
                    f"{rows[0]} to {rows[1] - 1}, columns {columns[0]} to {columns[1] - 1}"
                )

    def _there(self, k: int, block: int, rows: Span, columns: Span) -> bool:
        """Whether a window of a stream is on chip: in the rows that stay, or in the strips."""
        (top, bottom), (left, right) = rows, columns
        blocks = slice(None) if block == ALL else slice(block, block + 1)
        border = min(bottom, max(top, self.resident_rows[k]))
        stays = self.streams[k].outside or bool(self.made[k][blocks, top:border, left:right].all())
        return stays and bool(self.on_chip[k][blocks, border:bottom, left:right].all())

    def _write(self, k: int, moment: Moment) -> None:
        """Count what is written of a piece: pixels that are made for the first time, in rows that do not stay.

        Maps between layers that take turns are for these alone, and never written.
        """
        t, (top, bottom), (left, right) = self.run.first + k, moment.rows, moment.columns
        first = max(top, self.found.stores[self.streams[k].store].seen(self.run.unwritten[k], self.walk.layers[t].r))
        if first < bottom:
            new = ~self.made[k][:, first:bottom, left:right]
            self.bytes["OUT"] += int(new.sum()) * self.sizes[k] // len(new)
            rows, columns = (np.flatnonzero(new.any(axis=axes)) for axes in ((0, 2), (0, 1)))
            if rows.size:  # what is new is a box: rows above are made, and columns before in these rows
                self.moving += self._box(
                    k, "OUT", (first + int(rows[0]), first + int(rows[-1]) + 1),
                    (left + int(columns[0]), left + int(columns[-1]) + 1),
                )  # fmt: skip

    def _cycles(self, layer: Layer, pixels: int, turns: int) -> int:
        """Cycles of a piece, or of a turn's share of it, with the lanes full as far as channels fill them.

        Of a measured layer they are a share of its cycles, rounded up.
        """
        unit, taps = self.machine.compute, layer.b * layer.kh * layer.kw * layer.inputs * pixels
        if unit.model == "none":
            return -(-layer.cycles * pixels // (turns * layer.r * layer.c))
        if unit.model == "tile":
            return -(-taps * layer.g * layer.m * layer.n // (turns * unit.macs_per_cycle))
        if layer.m == layer.n == 1:
            return -(-taps * -(-layer.g // unit.cols) // turns)
        return -(-taps * layer.g * -(-layer.m // unit.rows) * -(-layer.n // unit.cols) // turns)

    # ---- the end -----------------------------------------------------------------------------------------------------

    def _unmade(self) -> None:
        """Name layers whose results are needed and not complete."""
        for k, t in enumerate(range(self.run.first, self.run.last + 1)):
            layer, store = self.walk.layers[t], self.found.stores[self.found.writes[t]]
            made: Mask = np.logical_and.reduce(self.made[k])
            needed = store.dram or store.results or any(u > self.run.last for u in store.readers)
            missing = made.size - int(made.sum())
            if needed and missing:
                self.faults[t, -1] = f"layer {layer.name}: {missing} of {made.size} pixels are never made"

    def _filter_buffer(self) -> int:
        """Bytes of the largest filter among layers whose weights do not all stay."""
        largest = 0
        for layer, owner in zip(self._layers(), self.owners, strict=True):
            size = weight_bytes(layer, self.machine)
            if self.run.weights[owner] < size:
                largest = max(largest, size // (layer.g * layer.m))
        return largest

    # ---- sizes -------------------------------------------------------------------------------------------------------

    def _layers(self) -> list[Layer]:
        return [self.walk.layers[t] for t in range(self.run.first, self.run.last + 1)]

    def _mask(self, k: int) -> Mask:
        """Pixels of a stream by blocks of its channels."""
        blocks = self.walk.turns[k] if k in self.walk.between else 1
        return np.zeros((blocks, *extent(self.walk, k)), np.bool_)

    def _pixel_bytes(self, k: int) -> int:
        """Bytes of a pixel of a stream."""
        stream, layers = self.streams[k], self.walk.layers
        if not stream.outside:
            layer = layers[stream.maker]
            return layer.b * layer.g * layer.m * self.machine.out_bytes
        return max(self.found.operand(u, stream.store).elements for u in stream.readers) * self.machine.in_bytes

    def _room_of_pixel(self, k: int) -> int:
        """Bytes that a pixel of a stream takes beside the maps that stay; none if its whole store stays."""
        store = self.streams[k].store
        whole = store in self.residents and self.residents[store][0] == self.found.stores[store].rows
        return 0 if whole else self.sizes[k]

    def _name(self, k: int) -> str:
        return self.found.stores[self.streams[k].store].name


def extent(walk: Walk, stream: int) -> tuple[int, int]:
    """Rows and columns of the map of a stream."""
    mine = walk.run.streams[stream]
    if mine.outside:
        given = walk.found.operand(mine.maker, mine.store)
        return given.rows, given.columns
    layer = walk.layers[mine.maker]
    return layer.r, layer.c


def resident_rows(found: Stores, walk: Walk, stream: int) -> int:
    """Rows of the map of a stream that lie on chip while the group runs."""
    store = walk.run.streams[stream].store
    rows = walk.run.residents[store][0] if store in walk.run.residents else 0
    return found.stores[store].seen(rows, extent(walk, stream)[0])
