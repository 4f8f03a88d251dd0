"""Referee for the arrays beside the mesh: tiles go from DRAM to the global buffer, passes from there to the PEs.

For each tile of the global buffer the passes of the array are walked through one by one: which filters, channels and
kernel taps a pass works on, which pixels it streams, which partial sums it reads and writes. Padding is not read.

Source: `vectormesh` section I and III-B, after its references [5] (systolic, weights stay) and [6] (row stationary).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from hwmodels.mesh.replay import Seen, boxes, cuts_of, pieces, volume
from hwmodels.schedule import Choice
from instances.machine import Machine
from instances.workload import DIMS, Layer

__all__ = ["replay_array"]

Span = tuple[int, int]
Tile = dict[str, Span]
_SUMMED = ("n", "i", "j")


def replay_array(layer: Layer, machine: Machine, given: Choice) -> Seen:
    """Run a layer on a systolic or row-stationary array."""
    seen = Seen()
    held: object = None
    written = 0
    for tile, first in _tiles(layer, given):
        for operand, size in (("IN", machine.in_bytes), ("W", machine.w_bytes)):
            box, inside = boxes(layer, tile)[operand]
            if operand == given.keep:
                if held == box:
                    continue
                held = box
            seen.fetches += 1
            seen.dram += size * volume(inside)
        _Tile(layer, machine, given, seen, tile).run(first)
        seen.steps += 1
        if first:
            written += volume([tile[d] for d in DIMS if d not in _SUMMED])
    results = layer.b * layer.g * layer.m * layer.r * layer.c
    if written != results or seen.macs != layer.macs:
        seen.faults.append(f"results {written} of {results}, products {seen.macs} of {layer.macs}")
    seen.dram += results * machine.out_bytes
    seen.glb += results * machine.out_bytes
    return seen


def _tiles(layer: Layer, given: Choice) -> Iterator[tuple[Tile, bool]]:
    """Tiles in order, and whether one is the first for its results."""
    cuts, moved = cuts_of(layer, given), {"IN": "bgrc", "W": "gm"}.get(given.keep, "bgmrc")
    order = [*moved, *(d for d in "bgmrc" if d not in moved)]
    for spans in product(*(cuts[d] for d in order)):
        for at, taps in enumerate(product(*(cuts[d] for d in _SUMMED))):
            yield {**dict(zip(order, spans, strict=True)), **dict(zip(_SUMMED, taps, strict=True))}, at == 0


class _Tile:
    """The passes over one tile."""

    def __init__(self, layer: Layer, machine: Machine, given: Choice, seen: Seen, tile: Tile) -> None:
        assert machine.mesh is not None
        self.layer, self.machine, self.given, self.seen, self.tile = layer, machine, given, seen, tile
        self.mesh = machine.mesh

    def run(self, first: bool) -> None:
        """All passes; the very first one over results reads no partial sums."""
        passes = self._systolic() if self.mesh.kind == "systolic" else self._row_stationary()
        started: set[tuple[int, Span, Span]] = set()
        for g in range(*self.tile["g"]):
            for key, taps, weights, results, products, cycles in passes:
                again = not first or (g, *key) in started
                started.add((g, *key))
                self.seen.glb += taps * self.machine.in_bytes + weights * self.machine.w_bytes
                self.seen.glb += results * self.machine.psum_bytes * (2 if again else 1)
                self.seen.macs += products
                self.seen.cycles += cycles

    def _cut(self, d: str, part: int) -> list[Span]:
        low, high = self.tile[d]
        return [(low + a, low + b) for a, b in pieces(high - low, part)]

    def _lines(self, axis: str, tap: Span, out: Span) -> int:
        """Pairs of a result row (column) and a tap that lie on the map."""
        layer = self.layer
        step, reach, pad, size = {
            "r": (layer.stride_h, layer.dilation_h, layer.pad_top, layer.h),
            "c": (layer.stride_w, layer.dilation_w, layer.pad_left, layer.l),
        }[axis]
        at = np.arange(*out)[:, None] * step + np.arange(*tap)[None, :] * reach - pad
        return int(((at >= 0) & (at < size)).sum())

    def _systolic(self) -> list[tuple[tuple[Span, Span], int, int, int, int, int]]:
        """A pass: a block of filters, some values of the index along the rows, one of the others; all pixels."""
        images = self.tile["b"][1] - self.tile["b"][0]
        out = {a: self.tile[a] for a in "rc"}
        pixels = images * volume(list(out.values()))
        parts = {d: self._cut(d, self.mesh.rows if self.given.rows == d else 1) for d in _SUMMED}
        taps = {(a, part): self._lines(a, part, out[a]) for a, d in (("r", "i"), ("c", "j")) for part in parts[d]}
        found = []
        for filters in self._cut("m", self.mesh.cols):
            number = filters[1] - filters[0]
            for n, i, j in product(parts["n"], parts["i"], parts["j"]):
                rows = volume([n, i, j])
                read = images * (n[1] - n[0]) * taps["r", i] * taps["c", j]
                cycles = pixels + self.mesh.rows + self.mesh.cols
                key = filters, self.tile["r"]
                found.append((key, read, number * rows, pixels * number, pixels * number * rows, cycles))
        return found

    def _row_stationary(self) -> list[tuple[tuple[Span, Span], int, int, int, int, int]]:
        """A pass: filters and channels that PEs hold, a fold of kernel rows, a strip of result rows, all columns."""
        layer, held = self.layer, self.given
        images, columns = (self.tile[d][1] - self.tile[d][0] for d in "bc")
        sets = max(1, self.mesh.rows // layer.kh)
        across = boxes(layer, {**self.tile, "r": (0, 1), "i": (0, 1)})["IN"][1][4]
        wide, found = across[1] - across[0], []
        for filters, channels in product(self._cut("m", held.filters), self._cut("n", held.channels * sets)):
            for fold, (at, strip) in product(self._cut("i", self.mesh.rows), enumerate(self._cut("r", self.mesh.cols))):
                low, high = boxes(layer, {**self.tile, "r": strip, "i": fold})["IN"][1][3]
                deep, number = channels[1] - channels[0], filters[1] - filters[0]
                read = images * deep * (high - low) * wide
                loaded = number * deep * (fold[1] - fold[0]) * layer.kw if at == 0 else 0
                results = images * number * (strip[1] - strip[0]) * columns
                products = results * deep * (fold[1] - fold[0]) * layer.kw
                cycles = images * columns * layer.kw * held.filters * held.channels
                found.append(((filters, strip), read, loaded, results, products, cycles))
        return found
