"""Executing a nest on integer tensors, tile by tile, with on-chip buffers that hold only what was fetched.

Plain Python loops over the nest, one core after the other. Reading what is not in a buffer, using partial sums that
were never written, or finishing an output twice is a fault; at the end the output is compared with a direct one. Where
IN slides, its buffer is circular: rows and columns lie at their number modulo its height and width, and only new ones
are copied in; in lines it has only the places of `hwmodels.nest.replay.tiles.Lines`. Where every operand is fetched is
found here on its own account, not from the Holds of the walk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

import numpy as np

from hwmodels.nest.replay.cores import Apart, maps_of, spread
from hwmodels.nest.replay.tiles import (
    Box,
    Buffer,
    Fault,
    Lines,
    Passes,
    Tensor,
    Torus,
    at_box,
    beyond,
    rows_from,
    window_of,
)
from hwmodels.schedule import Hold, Item, Loop
from instances.network.workload import DIMS, RELEVANT, Layer

#: The axis of IN that a dimension moves the window along.
AXES = {"r": 3, "i": 3, "c": 4, "j": 4}


@dataclass(frozen=True)
class FetchPoint:
    """Where an operand is fetched: by every iteration of the first `fetching` items.

    `axis` is the axis of IN that slides (3 rows, 4 columns) or None; the last of these items moves it. `outer` is the
    item that moves the other axis, if the two loops are neighbours: along both of them IN slides in lines.
    """

    fetching: int
    axis: int | None
    outer: int | None = None
    cutting: tuple[tuple[int, str], ...] = ()
    """The items outside the Hold that cut something, with their dimensions."""


def fetch_points(items: Sequence[Item], share: Mapping[str, tuple[int, int]], sliding: bool) -> dict[str, FetchPoint]:
    """For every operand the loops outside its Hold, down to the innermost that it depends on and that cuts."""
    found = {}
    pieces = {d: [share[d]] for d in DIMS}
    cutting = []
    for at, item in enumerate(items):
        if isinstance(item, Loop):
            finer = [piece for lo, hi in pieces[item.dim] for piece in item.pieces(lo, hi, share[item.dim][0])]
            if len(finer) > len(pieces[item.dim]):
                cutting.append((at, item.dim))
            pieces[item.dim] = finer
        elif isinstance(item, Hold):
            number = max((k + 1 for k, (_, d) in enumerate(cutting) if d in RELEVANT[item.operand]), default=0)
            at, dim = cutting[number - 1] if number else (-1, "")
            axis = AXES.get(dim) if sliding and item.operand == "IN" else None
            last = cutting[max(0, number - 2) : number]
            outer = last[0][0] if axis and {d for _, d in last} == {"r", "c"} else None
            found[item.operand] = FetchPoint(at + 1, axis, outer, tuple(cutting))
    return found


Ranges = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Execution:
    """Faults found (none: the result equals the direct convolution), transfers started per row, and places in lines.

    `places` are elements of all inputs; 0 if no input was held in lines.
    """

    faults: tuple[str, ...]
    calls: dict[str, int]
    places: int = 0


def work(layer: Layer) -> int:
    """Multiply-accumulates, or for layers without weights the elements that are added."""
    return layer.b * layer.g * layer.m * layer.n * layer.r * layer.c * layer.kh * layer.kw * layer.inputs


@dataclass(frozen=True)
class Operands:
    """The tensors in DRAM: `inputs` of shape (b, g, n, h, l), weights (g, m, n, kh, kw), bias (g, m)."""

    inputs: tuple[Tensor, ...]
    weights: Tensor
    bias: Tensor


def _data(layer: Layer) -> Operands:
    """Small integers from a fixed seed; layers without weights add their inputs (weights of one)."""
    rng = np.random.default_rng(20)
    maps = maps_of(layer, lambda shape: rng.integers(-9, 10, shape))
    shape = (layer.g, layer.m, layer.n, layer.kh, layer.kw)
    weights = rng.integers(-9, 10, shape) if layer.weights != "none" else np.ones(shape, np.int64)
    bias = rng.integers(-99, 100, (layer.g, layer.m))
    return Operands(maps, weights, bias if layer.bias else np.zeros_like(bias))


def direct(layer: Layer, data: Operands) -> Tensor:
    """The layer computed at once: one shifted copy of the padded input per kernel tap; shape (b, g, m, r, c)."""
    rows = (layer.r - 1) * layer.stride_h + (layer.kh - 1) * layer.dilation_h + 1
    cols = (layer.c - 1) * layer.stride_w + (layer.kw - 1) * layer.dilation_w + 1
    below, right = max(0, rows - layer.pad_top - layer.h), max(0, cols - layer.pad_left - layer.l)
    room = ((0, 0), (0, 0), (0, 0), (layer.pad_top, below), (layer.pad_left, right))
    out = np.zeros((layer.b, layer.g, layer.m, layer.r, layer.c), np.int64)
    for source in data.inputs:
        padded = np.pad(spread(source, layer), room)
        for i in range(layer.kh):
            for j in range(layer.kw):
                y, x = i * layer.dilation_h, j * layer.dilation_w
                tap = padded[:, :, :, y :: layer.stride_h, x :: layer.stride_w][:, :, :, : layer.r, : layer.c]
                out += np.einsum("bgnrc,gmn->bgmrc", tap, data.weights[:, :, :, i, j])
    return out + data.bias[None, :, :, None, None]


@dataclass
class _Dram:
    """The output side of DRAM: results, partial sums, and what has been written."""

    out: Tensor
    written: Tensor
    psum: Tensor
    psum_valid: Tensor
    calls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("IN", "W", "OUT", "PSUM"), 0))


class _Moment(NamedTuple):
    """Where the walk is: the ranges after every item passed so far (position 0: before all), and at the Holds.

    `odd` is 1 where the loops inside run backwards (the positions of the loops passed add up to an odd number); None:
    all run forwards.
    """

    passed: tuple[Ranges, ...]
    at: dict[str, Ranges]
    odd: int | None = None


def _walk(items: Sequence[Item], moment: _Moment) -> Iterator[tuple[Ranges, _Moment]]:
    """Yield the ranges of every step, and what was passed on the way."""
    ranges, at = moment.passed[-1], moment.at
    for i, item in enumerate(items):
        if isinstance(item, Hold):
            at = {**at, item.operand: ranges}
            moment = _Moment((*moment.passed, ranges), at, moment.odd)
        elif isinstance(item, Loop):
            begin = moment.passed[0][item.dim][0]
            parts = list(enumerate(item.pieces(*ranges[item.dim], begin)))
            for position, part in reversed(parts) if moment.odd else parts:
                odd = None if moment.odd is None else (moment.odd + position) % 2
                yield from _walk(items[i + 1 :], _Moment((*moment.passed, {**ranges, item.dim: part}), at, odd))
            return
    yield ranges, moment


class _Core:
    """One core executing its share of the nest; it knows only its own sums (`taken`: products added so far)."""

    def __init__(self, layer: Layer, data: Operands, dram: _Dram, share: Ranges, how: _How) -> None:
        self.layer, self.data, self.dram, self.share, self.how = layer, data, dram, share, how
        self.taken = np.zeros_like(dram.out)
        self.visit: dict[str, Ranges] = {}
        self.previous: Ranges = {}
        self.held: dict[str, tuple[Buffer, ...]] = {}
        self.sweep: Ranges = {}
        self.places = 0
        self.windows: dict[tuple[tuple[int, int], ...], tuple[Box, Box]] = {}

    def run(self, items: Sequence[Item]) -> None:
        """Walk the whole nest and write the last tile."""
        self.holds = fetch_points(items, self.share, self.how.sliding)
        self._measure(items)
        cutting = self.holds["IN"].cutting
        self.apart = Apart(self.layer, self.data.inputs, cutting, self.how.snake) if self.layer.broadcast else None
        for ranges, moment in _walk(items, _Moment((self.share,), {}, 0 if self.how.snake else None)):
            for operand in self.layer.operands:
                self._bring(operand, moment)
            self._compute(ranges)
        self._evict()

    def _measure(self, items: Sequence[Item]) -> None:
        """Look at all tiles of IN before the first one is fetched: how large buffers must be."""
        end = next(k for k, item in enumerate(items) if isinstance(item, Hold) and item.operand == "IN")
        outer = self.holds["IN"].outer
        steps = _walk(items[:end], _Moment((self.share,), {}))
        lined = [(self._window(ranges)[1], moment) for ranges, moment in steps] if self.how.line else []
        windows = {window for window, _ in lined} or {self._window(ranges)[1] for ranges, _ in steps}
        self.longest = tuple(max(1, *(hi - lo for lo, hi in sides), 1) for sides in zip(*windows, strict=True))
        self.passes: tuple[Passes, ...] = ()
        if self.how.line and outer is not None:
            sweeps = [(moment.passed[outer], moment.passed[outer + 1]) for _, moment in lined]
            axes = [
                [(rows_from(rows, resident), cols) for (rows, cols), _ in lined] for resident in self.layer.residents
            ]
            down = AXES[items[outer].dim]  # type: ignore[union-attr]
            self.passes = tuple(Passes(down, sides, sweeps) for sides in axes)

    def _window(self, ranges: Ranges) -> tuple[Box, Box]:
        key = ranges["r"], ranges["c"], ranges["i"], ranges["j"]
        if key not in self.windows:
            self.windows[key] = window_of(self.layer, ranges)
        return self.windows[key]

    def _bring(self, operand: str, moment: _Moment) -> None:
        if operand == "IN" and self.apart:
            self.dram.calls["IN"] += self.apart.bring(moment.passed, moment.at["IN"])
            return
        hold, ranges = self.holds[operand], moment.at[operand]
        visit = moment.passed[hold.fetching]
        if self.how.snake:
            visit = {d: ranges[d] for d in RELEVANT[operand]}
        before = self.visit.get(operand)
        if visit == before:
            return
        if operand == "OUT":
            self._evict()
            self.held["OUT"] = (self._open(tuple(ranges[d] for d in "bgmrc")),)
        elif operand == "IN":
            if self.how.snake:
                moved = [d for d in visit if before and visit[d] != before[d]]
                axis = AXES.get(moved[0]) if len(moved) == 1 and self.how.sliding else None
            else:
                now = moment.passed[hold.fetching - 1] if hold.fetching else self.share
                axis, self.previous = hold.axis if before is not None and now == self.previous else None, now
            inside = () if hold.outer is None or not self.passes else moment.passed[hold.outer : hold.outer + 2]
            self._fetch_input(ranges, axis, inside)
        else:
            box = tuple(ranges[d] for d in "gmnij")
            parts = (self.data.weights, box), (self.data.bias, box[:2])
            self.held["W"] = tuple(Buffer(part, at_box(tensor, part).copy()) for tensor, part in parts)
            self.dram.calls["W"] += 1
        self.visit[operand] = visit

    def _boxes(self, ranges: Ranges) -> list[tuple[Tensor, Box]]:
        """Every input with its tile."""
        _, (rows, cols) = self._window(ranges)
        outer = tuple(ranges[d] for d in "bgn")
        pairs = zip(self.data.inputs, self.layer.residents, strict=True)
        return [(tensor, (*outer, rows_from(rows, resident), cols)) for tensor, resident in pairs]

    def _fetch_input(self, ranges: Ranges, axis: int | None, inside: Sequence[Ranges]) -> None:
        """Copy in what is not there of the tile of IN.

        Where it slides along an axis, that is what lies beyond the tile that is there; in lines, inside a sweep and a
        pass, what neither the lines nor the window before have.
        """
        circular = self.how.sliding and (self.how.snake or self.holds["IN"].axis is not None)
        held: list[Buffer] = []
        for at, (tensor, box) in enumerate(self._boxes(ranges)):
            there, new = self.held["IN"][at] if "IN" in self.held else None, box
            if inside:
                passes = self.passes[at]
                if not isinstance(there, Lines) or self.sweep != inside[0]:
                    there = Lines(box, passes.down, passes.sizes)
                new = passes.advance(there, box, inside[1])
            elif axis is not None and there is not None:
                new = tuple(beyond(side, there.box[k]) if k == axis else side for k, side in enumerate(box))
            else:
                there = Torus(box, *self.longest) if circular else Buffer(box, np.zeros(0, np.int64))
            content = at_box(tensor, new)
            self.dram.calls["IN"] += content.size > 0
            there.move(box, new, content)
            held.append(there)
        self.held["IN"] = tuple(held)
        if inside:
            self.sweep = inside[0]
            lines = [one for one in held if isinstance(one, Lines)]
            self.places = max(self.places, sum(one.places * prod(one.outer) for one in lines))

    def _open(self, box: Box) -> Buffer:
        """Start a tile of OUT at zero, or read its partial sums back."""
        taken = at_box(self.taken, box)
        if not taken.any() and not self.how.first_read:
            return Buffer(box, np.zeros([hi - lo for lo, hi in box], np.int64))
        if taken.any() and not at_box(self.dram.psum_valid, box).all():
            raise Fault("partial sums are read that were never written")
        self.dram.calls["PSUM"] += 1
        return Buffer(box, at_box(self.dram.psum, box).copy())

    def _evict(self) -> None:
        """Write the tile of OUT that is on chip: a result if all its products are in, else partial sums."""
        if "OUT" not in self.held:
            return
        (buffer,) = self.held.pop("OUT")
        box = buffer.box
        if (at_box(self.taken, box) == self.layer.n * self.layer.kh * self.layer.kw).all():
            at_box(self.dram.out, box)[...] = buffer.content
            at_box(self.dram.written, box)[...] += 1
            self.dram.calls["OUT"] += box[3][1] > self.layer.resident_out
        else:
            at_box(self.dram.psum, box)[...] = buffer.content
            at_box(self.dram.psum_valid, box)[...] = 1
            self.dram.calls["PSUM"] += 1

    def _compute(self, ranges: Ranges) -> None:
        """Accumulate one step's piece of work from the buffers."""
        layer = self.layer
        b, g, m, n, r, c, taps_h, taps_w = (ranges[d] for d in "bgmnrcij")
        target: Box = (b, g, m, r, c)
        out = self.held["OUT"][0].view(target)
        if "W" in layer.operands:
            kernels, biases = self.held["W"]
            weights = kernels.view((g, m, n, taps_h, taps_w))
            if all(ranges[d][0] == self.share[d][0] for d in "nij"):
                out += biases.view((g, m))[None, :, :, None, None]
        else:
            weights = at_box(self.data.weights, (g, m, n, taps_h, taps_w))
        if self.apart:
            out += self.apart.read(ranges)
            at_box(self.taken, target)[...] += 1
            return
        (ys, xs), (rows, cols) = self._window(ranges)
        for buffer, tensor, resident in zip(self.held["IN"], self.data.inputs, layer.residents, strict=True):
            patch = np.zeros([hi - lo for lo, hi in (b, g, n, ys, xs)], np.int64)
            there, moved = (rows[0], min(rows[1], resident)), rows_from(rows, resident)
            for part, reading in ((there, lambda box, whole=tensor: at_box(whole, box)), (moved, buffer.view)):
                if part[0] < part[1] and cols[0] < cols[1]:
                    inside = reading((b, g, n, part, cols))
                    patch[:, :, :, part[0] - ys[0] : part[1] - ys[0], cols[0] - xs[0] : cols[1] - xs[0]] = inside
            *outer, down, right = patch.strides
            steps = down * layer.stride_h, right * layer.stride_w, down * layer.dilation_h, right * layer.dilation_w
            sizes = [hi - lo for lo, hi in (b, g, n, r, c, taps_h, taps_w)]
            seen = np.ndarray(sizes, np.int64, patch, strides=(*outer, *steps))
            out += np.einsum("bgnrcij,gmnij->bgmrc", seen, weights)
        at_box(self.taken, target)[...] += prod(hi - lo for lo, hi in (n, taps_h, taps_w))


@dataclass(frozen=True)
class _How:
    """Whether the first accumulation reads its tile too, IN slides, loops run to and fro, IN is held in lines."""

    first_read: bool
    sliding: bool
    snake: bool
    line: bool


def execute(
    layer: Layer, items: Sequence[Item], shares: Sequence[Mapping[str, tuple[int, int]]], first_read: bool,
    sliding: bool = False, snake: bool = False,
) -> Execution:  # fmt: skip
    """Compute a layer core by core as its nest says and compare with `direct`.

    Parameters
    ----------
    items : sequence of Loop and Hold
        The nest inside its spatial cuts.
    shares : sequence of mappings
        Every core's range of every dimension.
    first_read : bool
        Whether the first accumulation reads its (zero) output tile too.
    sliding : bool
        Whether IN slides along its window.
    snake : bool
        Whether loops run to and fro.
    """
    data = _data(layer)
    want = direct(layer, data)
    if "W" not in layer.operands:
        want = want - data.bias[None, :, :, None, None]
    dram = _Dram(np.zeros_like(want), np.zeros_like(want), np.zeros_like(want), np.zeros_like(want))
    how = _How(first_read, sliding, snake, any(isinstance(i, Hold) and i.line for i in items))
    places = 0
    try:
        for share in shares:
            core = _Core(layer, data, dram, dict(share), how)
            core.run(items)
            places = max(places, core.places)
    except Fault as fault:
        return Execution((f"execution: {fault}",), dram.calls)
    faults = []
    if (dram.written != 1).any():
        faults.append(f"execution: {int((dram.written != 1).sum())} output elements are not written exactly once")
    wrong = int((dram.out != want).sum())
    if wrong:
        faults.append(f"execution: {wrong} of {want.size} output elements differ from the direct convolution")
    return Execution(tuple(faults), dram.calls, places)
