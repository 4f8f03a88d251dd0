"""Executing a nest on integer tensors, tile by tile, with on-chip buffers that hold only what was fetched.

Plain Python loops over the nest, one core after the other. Reading what is not in a buffer, using partial sums that
were never written, or finishing an output twice is a fault; at the end the output is compared with a direct one.
Where IN slides, its buffer is circular: rows (or columns) lie at their number modulo the buffer's length, and only new
ones are copied in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hwmodels.schedule import Hold, Item, Loop
from instances.workload import DIMS, RELEVANT, Layer

__all__ = ["Execution", "FetchPoint", "direct", "execute", "fetch_points", "work"]

Tensor = npt.NDArray[np.int64]
Ranges = dict[str, tuple[int, int]]
Box = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Execution:
    """Faults found (none: the result equals the direct convolution), and transfers started per row."""

    faults: tuple[str, ...]
    calls: dict[str, int]


class _Fault(Exception):
    """The nest used something that was not there."""


def work(layer: Layer) -> int:
    """Multiply-accumulates, or for layers without weights the elements that are added."""
    return layer.b * layer.g * layer.m * layer.n * layer.r * layer.c * layer.kh * layer.kw * layer.inputs


@dataclass(frozen=True)
class _Data:
    """The tensors in DRAM: `inputs` of shape (b, g, n, h, l), weights (g, m, n, kh, kw), bias (g, m)."""

    inputs: tuple[Tensor, ...]
    weights: Tensor
    bias: Tensor


def _data(layer: Layer) -> _Data:
    """Small integers from a fixed seed; layers without weights add their inputs (weights of one)."""
    rng = np.random.default_rng(20)
    maps = tuple(rng.integers(-9, 10, (layer.b, layer.g, layer.n, layer.h, layer.l)) for _ in range(layer.inputs))
    shape = (layer.g, layer.m, layer.n, layer.kh, layer.kw)
    weights = rng.integers(-9, 10, shape) if "W" in layer.operands else np.ones(shape, np.int64)
    bias = rng.integers(-99, 100, (layer.g, layer.m))
    return _Data(maps, weights, bias if layer.bias else np.zeros_like(bias))


def direct(layer: Layer, data: _Data) -> Tensor:
    """The layer computed at once: one shifted copy of the padded input per kernel tap; shape (b, g, m, r, c)."""
    rows = (layer.r - 1) * layer.stride_h + (layer.kh - 1) * layer.dilation_h + 1
    cols = (layer.c - 1) * layer.stride_w + (layer.kw - 1) * layer.dilation_w + 1
    below, right = max(0, rows - layer.pad_top - layer.h), max(0, cols - layer.pad_left - layer.l)
    room = ((0, 0), (0, 0), (0, 0), (layer.pad_top, below), (layer.pad_left, right))
    out = np.zeros((layer.b, layer.g, layer.m, layer.r, layer.c), np.int64)
    for source in data.inputs:
        padded = np.pad(source, room)
        for i in range(layer.kh):
            for j in range(layer.kw):
                y, x = i * layer.dilation_h, j * layer.dilation_w
                tap = padded[:, :, :, y :: layer.stride_h, x :: layer.stride_w][:, :, :, : layer.r, : layer.c]
                out += np.einsum("bgnrc,gmn->bgmrc", tap, data.weights[:, :, :, i, j])
    return out + data.bias[None, :, :, None, None]


class _Buffer:
    """On-chip memory that holds one box of a tensor."""

    def __init__(self, box: Box, content: Tensor) -> None:
        self.box, self.content = box, content

    def view(self, box: Box) -> Tensor:
        """The part of the content at `box`, writable."""
        slices = []
        for (lo, hi), (first, last) in zip(box, self.box, strict=True):
            if lo < first or hi > last:
                raise _Fault(f"elements {lo}..{hi - 1} are used while {first}..{last - 1} are on chip")
            slices.append(slice(lo - first, hi - first))
        return self.content[tuple(slices)]


class _Ring(_Buffer):
    """A buffer that is circular along one axis: index x lies at x modulo its length; `lies` says which x does."""

    def __init__(self, box: Box, content: Tensor, axis: int, length: int) -> None:
        shape = list(content.shape)
        shape[axis] = length
        super().__init__(box, np.zeros(shape, np.int64))
        self.axis, self.length, self.lies = axis, length, np.full(length, -1)
        self.put(box, content)

    def put(self, box: Box, content: Tensor) -> None:
        """Copy a box in over what lies in its places."""
        lo, hi = box[self.axis]
        places = np.arange(lo, hi) % self.length
        if len(set(places.tolist())) < len(places):
            raise _Fault(f"{hi - lo} rows or columns do not fit in a buffer of {self.length}")
        self.box = box
        self.lies[places] = np.arange(lo, hi)
        np.moveaxis(self.content, self.axis, 0)[places] = np.moveaxis(content, self.axis, 0)

    def view(self, box: Box) -> Tensor:
        """The part of the content at `box`, copied."""
        lo, hi = box[self.axis]
        places = np.arange(lo, hi) % self.length
        if (self.lies[places] != np.arange(lo, hi)).any():
            raise _Fault(f"rows or columns {lo}..{hi - 1} are used, but not all of them are on chip")
        whole = tuple((0, self.length) if k == self.axis else side for k, side in enumerate(self.box))
        part = tuple((0, self.length) if k == self.axis else side for k, side in enumerate(box))
        ring = _Buffer(whole, self.content).view(part)
        return np.take(ring, places, axis=self.axis)


def _at(tensor: Tensor, box: Box) -> Tensor:
    return tensor[tuple(slice(lo, hi) for lo, hi in box)]


@dataclass
class _Dram:
    """The output side of DRAM: results, partial sums, and what has been written."""

    out: Tensor
    written: Tensor
    psum: Tensor
    psum_valid: Tensor
    calls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("IN", "W", "OUT", "PSUM"), 0))


def _window(layer: Layer, ranges: Ranges) -> tuple[Box, Box]:
    """The input rows and columns under a range of outputs and taps: as the window sees them, and clipped to the map."""
    (r0, r1), (c0, c1), (i0, i1), (j0, j1) = (ranges[d] for d in "rcij")
    y, x = r0 * layer.stride_h - layer.pad_top, c0 * layer.stride_w - layer.pad_left
    rows = y + i0 * layer.dilation_h, y + (r1 - 1 - r0) * layer.stride_h + (i1 - 1) * layer.dilation_h + 1
    cols = x + j0 * layer.dilation_w, x + (c1 - 1 - c0) * layer.stride_w + (j1 - 1) * layer.dilation_w + 1

    def clipped(lo: int, hi: int, size: int) -> tuple[int, int]:
        return max(lo, 0), max(max(lo, 0), min(hi, size))

    return (rows, cols), (clipped(*rows, layer.h), clipped(*cols, layer.l))


def _from(rows: tuple[int, int], first: int) -> tuple[int, int]:
    """The rows that are not resident: none before `first`."""
    return max(rows[0], first), max(rows[1], first)


@dataclass(frozen=True)
class FetchPoint:
    """Where an operand is fetched: by every iteration of the first `fetching` items.

    `axis` is the axis of IN that slides (3 rows, 4 columns) or None; the last of these items moves it.
    """

    fetching: int
    axis: int | None


def fetch_points(items: Sequence[Item], share: Ranges, sliding: bool) -> dict[str, FetchPoint]:
    """For every operand the loops outside its Hold, down to the innermost that it depends on and that cuts."""
    found = {}
    pieces = {d: [share[d]] for d in DIMS}
    cutting = []
    for at, item in enumerate(items):
        if isinstance(item, Loop):
            finer = [(x, min(x + item.step, hi)) for lo, hi in pieces[item.dim] for x in range(lo, hi, item.step)]
            if len(finer) > len(pieces[item.dim]):
                cutting.append((at, item.dim))
            pieces[item.dim] = finer
        elif isinstance(item, Hold):
            at, dim = next(((k, d) for k, d in reversed(cutting) if d in RELEVANT[item.operand]), (-1, ""))
            axis = {"r": 3, "i": 3, "c": 4, "j": 4}.get(dim) if sliding and item.operand == "IN" else None
            found[item.operand] = FetchPoint(at + 1, axis)
    return found


@dataclass(frozen=True)
class _Moment:
    """Where the walk is: the ranges after every item passed so far (position 0: before all), and at the Holds."""

    passed: tuple[Ranges, ...]
    at: dict[str, Ranges]


def _walk(items: Sequence[Item], moment: _Moment) -> Iterator[tuple[Ranges, _Moment]]:
    """Yield the ranges of every step, and what was passed on the way."""
    ranges, at = moment.passed[-1], moment.at
    for i, item in enumerate(items):
        if isinstance(item, Hold):
            at = {**at, item.operand: ranges}
            moment = _Moment((*moment.passed, ranges), at)
        elif isinstance(item, Loop):
            lo, hi = ranges[item.dim]
            for start in range(lo, hi, item.step):
                piece = {**ranges, item.dim: (start, min(start + item.step, hi))}
                yield from _walk(items[i + 1 :], _Moment((*moment.passed, piece), at))
            return
    yield ranges, moment


class _Core:
    """One core executing its share of the nest; it knows only its own sums (`taken`: products added so far)."""

    def __init__(self, layer: Layer, data: _Data, dram: _Dram, share: Ranges, how: _How) -> None:
        self.layer, self.data, self.dram, self.share, self.how = layer, data, dram, share, how
        self.taken = np.zeros_like(dram.out)
        self.visit: dict[str, Ranges] = {}
        self.previous: Ranges = {}
        self.covered = [0] * layer.inputs
        self.held: dict[str, tuple[_Buffer, ...]] = {}

    def run(self, items: Sequence[Item]) -> None:
        """Walk the whole nest and write the last tile."""
        self.holds = fetch_points(items, self.share, self.how.sliding)
        self.longest = self._longest(items)
        for ranges, moment in _walk(items, _Moment((self.share,), {})):
            for operand in self.layer.operands:
                self._bring(operand, moment)
            self._compute(ranges)
        self._evict()

    def _longest(self, items: Sequence[Item]) -> int:
        """Rows or columns of the largest tile of IN along the axis that slides."""
        axis = self.holds["IN"].axis
        if axis is None:
            return 0
        end = next(k for k, item in enumerate(items) if isinstance(item, Hold) and item.operand == "IN")
        inside = [item for item in items[:end] if isinstance(item, Loop)]
        tiles = (_window(self.layer, ranges)[1][axis - 3] for ranges, _ in _walk(inside, _Moment((self.share,), {})))
        return max(1, *(hi - lo for lo, hi in tiles), 1)

    def _bring(self, operand: str, moment: _Moment) -> None:
        hold, ranges = self.holds[operand], moment.at[operand]
        visit = moment.passed[hold.fetching]
        before = self.visit.get(operand)
        if visit == before:
            return
        if operand == "OUT":
            self._evict()
            self.held["OUT"] = (self._open(tuple(ranges[d] for d in "bgmrc")),)
        elif operand == "IN":
            same_pass = before is not None and moment.passed[hold.fetching - 1] == self.previous
            self._fetch_input(ranges, hold.axis, slide=hold.axis is not None and same_pass)
            self.previous = moment.passed[hold.fetching - 1] if hold.fetching else self.share
        else:
            box = tuple(ranges[d] for d in "gmnij")
            parts = (self.data.weights, box), (self.data.bias, box[:2])
            self.held["W"] = tuple(_Buffer(part, _at(tensor, part).copy()) for tensor, part in parts)
            self.dram.calls["W"] += 1
        self.visit[operand] = visit

    def _fetch_input(self, ranges: Ranges, axis: int | None, *, slide: bool) -> None:
        """Copy the tile of IN in, or, in the course of a pass, what lies behind the part that is there."""
        _, (rows, cols) = _window(self.layer, ranges)
        held: list[_Buffer] = []
        for at, (tensor, resident) in enumerate(zip(self.data.inputs, self.layer.residents, strict=True)):
            box: Box = (*(ranges[d] for d in "bgn"), _from(rows, resident), cols)
            if slide and axis is not None:
                lo, hi = box[axis]
                self.covered[at], lo = max(self.covered[at], hi), max(lo, self.covered[at])
                box = tuple((lo, max(lo, hi)) if k == axis else side for k, side in enumerate(box))
            elif axis is not None:
                self.covered[at] = box[axis][1]
            moves = all(lo < hi for lo, hi in box)
            self.dram.calls["IN"] += moves
            if slide:
                ring = self.held["IN"][at]
                assert isinstance(ring, _Ring)
                if moves:
                    ring.put(box, _at(tensor, box))
                held.append(ring)
            else:
                copy = box, _at(tensor, box).copy()
                held.append(_Buffer(*copy) if axis is None else _Ring(*copy, axis, self.longest))
        self.held["IN"] = tuple(held)

    def _open(self, box: Box) -> _Buffer:
        """Start a tile of OUT at zero, or read its partial sums back."""
        taken = _at(self.taken, box)
        if not taken.any() and not self.how.first_read:
            return _Buffer(box, np.zeros([hi - lo for lo, hi in box], np.int64))
        if taken.any() and not _at(self.dram.psum_valid, box).all():
            raise _Fault("partial sums are read that were never written")
        self.dram.calls["PSUM"] += 1
        return _Buffer(box, _at(self.dram.psum, box).copy())

    def _evict(self) -> None:
        """Write the tile of OUT that is on chip: a result if all its products are in, else partial sums."""
        if "OUT" not in self.held:
            return
        (buffer,) = self.held.pop("OUT")
        box = buffer.box
        if (_at(self.taken, box) == self.layer.n * self.layer.kh * self.layer.kw).all():
            _at(self.dram.out, box)[...] = buffer.content
            _at(self.dram.written, box)[...] += 1
            self.dram.calls["OUT"] += box[3][1] > self.layer.resident_out
        else:
            _at(self.dram.psum, box)[...] = buffer.content
            _at(self.dram.psum_valid, box)[...] = 1
            self.dram.calls["PSUM"] += 1

    def _compute(self, ranges: Ranges) -> None:
        """Accumulate one step's piece of work from the buffers."""
        layer = self.layer
        b, g, m, n, r, c, taps_h, taps_w = (ranges[d] for d in "bgmnrcij")
        target: Box = (b, g, m, r, c)
        out = self.held["OUT"][0].view(target)
        weights = _at(self.data.weights, (g, m, n, taps_h, taps_w))
        if "W" in layer.operands:
            kernels, biases = self.held["W"]
            weights = kernels.view((g, m, n, taps_h, taps_w))
            if all(ranges[d][0] == self.share[d][0] for d in "nij"):
                out += biases.view((g, m))[None, :, :, None, None]
        (ys, xs), (rows, cols) = _window(layer, ranges)
        for buffer, tensor, resident in zip(self.held["IN"], self.data.inputs, layer.residents, strict=True):
            patch = np.zeros([hi - lo for lo, hi in (b, g, n, ys, xs)], np.int64)
            there, moved = (rows[0], min(rows[1], resident)), _from(rows, resident)
            for part, reading in ((there, lambda box, whole=tensor: _at(whole, box)), (moved, buffer.view)):
                if part[0] < part[1] and cols[0] < cols[1]:
                    inside = reading((b, g, n, part, cols))
                    patch[:, :, :, part[0] - ys[0] : part[1] - ys[0], cols[0] - xs[0] : cols[1] - xs[0]] = inside
            for i in range(taps_h[1] - taps_h[0]):
                for j in range(taps_w[1] - taps_w[0]):
                    y, x = i * layer.dilation_h, j * layer.dilation_w
                    seen = patch[:, :, :, y :: layer.stride_h, x :: layer.stride_w]
                    tap = seen[:, :, :, : r[1] - r[0], : c[1] - c[0]]
                    out += np.einsum("bgnrc,gmn->bgmrc", tap, weights[..., i, j])
        _at(self.taken, target)[...] += np.prod([hi - lo for lo, hi in (n, taps_h, taps_w)])


@dataclass(frozen=True)
class _How:
    """Of the machine: whether the first accumulation reads its tile too, and whether IN slides."""

    first_read: bool
    sliding: bool


def execute(
    layer: Layer,
    items: Sequence[Item],
    shares: Sequence[Mapping[str, tuple[int, int]]],
    first_read: bool,
    sliding: bool = False,
) -> Execution:
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
    """
    data = _data(layer)
    want = direct(layer, data)
    if "W" not in layer.operands:
        want = want - data.bias[None, :, :, None, None]
    dram = _Dram(np.zeros_like(want), np.zeros_like(want), np.zeros_like(want), np.zeros_like(want))
    try:
        for share in shares:
            _Core(layer, data, dram, dict(share), _How(first_read, sliding)).run(items)
    except _Fault as fault:
        return Execution((f"execution: {fault}",), dram.calls)
    faults = []
    if (dram.written != 1).any():
        faults.append(f"execution: {int((dram.written != 1).sum())} output elements are not written exactly once")
    wrong = int((dram.out != want).sum())
    if wrong:
        faults.append(f"execution: {wrong} of {want.size} output elements differ from the direct convolution")
    return Execution(tuple(faults), dram.calls)
