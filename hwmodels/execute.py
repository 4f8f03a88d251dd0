"""Executing a nest on integer tensors, tile by tile, with on-chip buffers that hold only what was fetched.

Plain Python loops over the nest, one core after the other. Reading outside a buffer, using partial sums that were never
written, or finishing an output twice is a fault; at the end the output is compared with a direct convolution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hwmodels.schedule import Hold, Item, Loop
from instances.workload import DIMS, RELEVANT, Layer

__all__ = ["Execution", "direct", "execute", "work"]

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
    """The input rows and columns under an output range: as the window sees them, and clipped to the map."""
    (r0, r1), (c0, c1) = ranges["r"], ranges["c"]
    y, x = r0 * layer.stride_h - layer.pad_top, c0 * layer.stride_w - layer.pad_left
    y1 = (r1 - 1) * layer.stride_h - layer.pad_top + (layer.kh - 1) * layer.dilation_h + 1
    x1 = (c1 - 1) * layer.stride_w - layer.pad_left + (layer.kw - 1) * layer.dilation_w + 1
    clipped = (max(y, 0), max(max(y, 0), min(y1, layer.h))), (max(x, 0), max(max(x, 0), min(x1, layer.l)))
    return ((y, y1), (x, x1)), clipped


def _walk(items: Sequence[Item], ranges: Ranges, at: dict[str, Ranges]) -> Iterator[tuple[Ranges, dict[str, Ranges]]]:
    """Yield the ranges of every step, with the ranges at every Hold."""
    for i, item in enumerate(items):
        if isinstance(item, Hold):
            at = {**at, item.operand: ranges}
        elif isinstance(item, Loop):
            lo, hi = ranges[item.dim]
            for start in range(lo, hi, item.step):
                yield from _walk(items[i + 1 :], {**ranges, item.dim: (start, min(start + item.step, hi))}, at)
            return
    yield ranges, at


class _Core:
    """One core executing its share of the nest; it knows only its own sums (`taken`: input channels added so far)."""

    def __init__(self, layer: Layer, data: _Data, dram: _Dram, share: Ranges, first_read: bool) -> None:
        self.layer, self.data, self.dram, self.share, self.first_read = layer, data, dram, share, first_read
        self.taken = np.zeros_like(dram.out)
        self.held: dict[str, tuple[Box, tuple[_Buffer, ...]]] = {}

    def run(self, items: Sequence[Item]) -> None:
        """Walk the whole nest and write the last tile."""
        for ranges, at in _walk(items, self.share, {}):
            for operand in self.layer.operands:
                self._bring(operand, at[operand])
            self._compute(ranges)
        self._evict()

    def _bring(self, operand: str, ranges: Ranges) -> None:
        wanted = tuple(ranges[d] for d in DIMS if d in RELEVANT[operand])
        if operand in self.held and self.held[operand][0] == wanted:
            return
        if operand == "OUT":
            self._evict()
            self.held["OUT"] = wanted, (self._open(wanted),)
            return
        b, g, m, n = (ranges[d] for d in "bgmn")
        if operand == "IN":
            _, (rows, cols) = _window(self.layer, ranges)
            box: Box = (b, g, n, rows, cols)
            found = [_Buffer(box, _at(t, box).copy()) for t in self.data.inputs]
            self.dram.calls["IN"] += len(found) if all(lo < hi for lo, hi in box) else 0
        else:
            box = (g, m, n, (0, self.layer.kh), (0, self.layer.kw))
            parts = (self.data.weights, box), (self.data.bias, (g, m))
            found = [_Buffer(part, _at(tensor, part).copy()) for tensor, part in parts]
            self.dram.calls["W"] += 1
        self.held[operand] = wanted, tuple(found)

    def _open(self, box: Box) -> _Buffer:
        """Start a tile of OUT at zero, or read its partial sums back."""
        taken = _at(self.taken, box)
        if not taken.any() and not self.first_read:
            return _Buffer(box, np.zeros([hi - lo for lo, hi in box], np.int64))
        if taken.any() and not _at(self.dram.psum_valid, box).all():
            raise _Fault("partial sums are read that were never written")
        self.dram.calls["PSUM"] += 1
        return _Buffer(box, _at(self.dram.psum, box).copy())

    def _evict(self) -> None:
        """Write the tile of OUT that is on chip: a result if all its input channels are in, else partial sums."""
        if "OUT" not in self.held:
            return
        box, (buffer,) = self.held.pop("OUT")
        if (_at(self.taken, box) == self.layer.n).all():
            _at(self.dram.out, box)[...] = buffer.content
            _at(self.dram.written, box)[...] += 1
            self.dram.calls["OUT"] += 1
        else:
            _at(self.dram.psum, box)[...] = buffer.content
            _at(self.dram.psum_valid, box)[...] = 1
            self.dram.calls["PSUM"] += 1

    def _compute(self, ranges: Ranges) -> None:
        """Accumulate one step's piece of work from the buffers."""
        layer = self.layer
        b, g, m, n, r, c = (ranges[d] for d in "bgmnrc")
        target: Box = (b, g, m, r, c)
        out = self.held["OUT"][1][0].view(target)
        weights = self.data.weights[slice(*g), slice(*m), slice(*n)]
        if "W" in layer.operands:
            kernels, biases = self.held["W"][1]
            weights = kernels.view((g, m, n, (0, layer.kh), (0, layer.kw)))
            if n[0] == self.share["n"][0]:
                out += biases.view((g, m))[None, :, :, None, None]
        (ys, xs), (rows, cols) = _window(layer, ranges)
        for buffer in self.held["IN"][1]:
            patch = np.zeros([hi - lo for lo, hi in (b, g, n, ys, xs)], np.int64)
            inside = buffer.view((b, g, n, rows, cols))
            patch[:, :, :, rows[0] - ys[0] : rows[1] - ys[0], cols[0] - xs[0] : cols[1] - xs[0]] = inside
            for i in range(layer.kh):
                for j in range(layer.kw):
                    y, x = i * layer.dilation_h, j * layer.dilation_w
                    seen = patch[:, :, :, y :: layer.stride_h, x :: layer.stride_w]
                    tap = seen[:, :, :, : r[1] - r[0], : c[1] - c[0]]
                    out += np.einsum("bgnrc,gmn->bgmrc", tap, weights[..., i, j])
        _at(self.taken, target)[...] += n[1] - n[0]


def execute(
    layer: Layer, items: Sequence[Item], shares: Sequence[Mapping[str, tuple[int, int]]], first_read: bool
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
    """
    data = _data(layer)
    want = direct(layer, data)
    if "W" not in layer.operands:
        want = want - data.bias[None, :, :, None, None]
    dram = _Dram(np.zeros_like(want), np.zeros_like(want), np.zeros_like(want), np.zeros_like(want))
    try:
        for share in shares:
            _Core(layer, data, dram, dict(share), first_read).run(items)
    except _Fault as fault:
        return Execution((f"execution: {fault}",), dram.calls)
    faults = []
    if (dram.written != 1).any():
        faults.append(f"execution: {int((dram.written != 1).sum())} output elements are not written exactly once")
    wrong = int((dram.out != want).sum())
    if wrong:
        faults.append(f"execution: {wrong} of {want.size} output elements differ from the direct convolution")
    return Execution(tuple(faults), dram.calls)
