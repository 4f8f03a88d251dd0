"""What a layer is for an engine of e_in x e_out maps: runs, additions, strips of rows, and the cycles of each.

A grid of I groups of e_in input maps and O groups of e_out output maps takes I*O runs; every run but the first one of
an output group makes partial maps that are added to those before: ``(I - 1)*O`` additions. Maps are padded with zero
maps to whole groups: a run takes as long with fewer maps, but only real maps are moved. Where every map has a kernel of
its own (depthwise, pooling) a run takes as many maps as the engine has lanes, and nothing is added.

Cycles: a run takes the most of its products (taps over the taps of a cycle, each output pixel), of the pixels it reads
from a bank, and of those it writes; an addition reads every bank twice a pixel.

Source: `partial_cnn_engine` V.I (64 -> 128: 32 runs, 24 additions; 128 -> 128: 64 and 56; 128 -> 256: 128 and 112).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from instances.errors import InputError
from instances.machine.machine import Machine
from instances.machine.sections import PartialEngine
from instances.network.network import Network
from instances.network.workload import Layer, refuse_long


@dataclass(frozen=True)
class Grid:
    """Groups of maps: every input group with every output group is a run; `number` equal grids follow each other."""

    in_maps: tuple[int, ...]
    out_maps: tuple[int, ...]
    number: int


class Strip(NamedTuple):
    """Some output rows of every map, and how many input rows they need."""

    rows: int
    in_rows: int


@lru_cache(maxsize=65536)
def _touched(first: int, end: int, stride: int, kernel: int, dilation: int, pad: int, size: int) -> int:
    """How many of `size` input rows (or columns) some output row of a range needs."""
    if dilation == 1 and kernel >= stride:
        return max(0, min(size, (end - 1) * stride + kernel - pad) - max(0, first * stride - pad))
    needed = {r * stride + i * dilation - pad for r in range(first, end) for i in range(kernel)}
    return sum(0 <= row < size for row in needed)


@dataclass(frozen=True)
class Work:
    """A layer on an engine."""

    layer: Layer
    engine: PartialEngine
    grids: tuple[Grid, ...]
    rate: int
    """Taps multiplied in a cycle."""

    @property
    def inputs(self) -> int:
        """I: input groups of a grid."""
        return len(self.grids[0].in_maps)

    @property
    def outputs(self) -> int:
        """O: output groups of a grid."""
        return len(self.grids[0].out_maps)

    @cached_property
    def runs(self) -> int:
        """Runs of the layer, if it is computed in one strip."""
        return sum(grid.number for grid in self.grids) * self.inputs * self.outputs

    @cached_property
    def adds(self) -> int:
        """Additions of groups of partial maps, if it is computed in one strip."""
        return sum(grid.number for grid in self.grids) * (self.inputs - 1) * self.outputs

    @property
    def fresh(self) -> int:
        """Places in every bank for partial maps that are not added yet: 1 if additions are steps of their own."""
        return int(self.engine.adds == "steps" and self.inputs > 1)

    def strips(self, rows: int) -> tuple[Strip, ...]:
        """The layer in strips of so many output rows; the last one may be smaller."""
        x = self.layer
        ends = [(first, min(x.r, first + rows)) for first in range(0, x.r, rows)]
        shape = x.stride_h, x.kh, x.dilation_h, x.pad_top, x.h
        return tuple(Strip(end - first, _touched(first, end, *shape)) for first, end in ends)

    @property
    def apart(self) -> bool:
        """Whether every map has a kernel of its own."""
        return _apart(self.layer)

    @cached_property
    def in_columns(self) -> int:
        """Input columns that are read."""
        x = self.layer
        return _touched(0, x.c, x.stride_w, x.kw, x.dilation_w, x.pad_left, x.l)

    def run_cycles(self, strip: Strip) -> int:
        """Cycles of a run."""
        x = self.layer
        pixels = strip.rows * x.c
        return max(pixels * -(-x.kh * x.kw // self.rate), strip.in_rows * self.in_columns, pixels)

    def add_cycles(self, strip: Strip) -> int:
        """Cycles of an addition."""
        return 2 * strip.rows * self.layer.c if self.engine.adds == "steps" else 0

    def cycles(self, rows: int | None = None) -> int:
        """Cycles of the layer, in strips of so many rows or in one."""
        strips = self.strips(rows or self.layer.r)
        return sum(self.runs * self.run_cycles(s) + self.adds * self.add_cycles(s) for s in strips)


def engine_of(machine: Machine) -> PartialEngine:
    """Return the engine of a machine; raises InputError if it has none."""
    if machine.engine is None:
        raise InputError(f"machine {machine.name}: problem partial_engine needs an engine, such as partial_cnn_16 has")
    return machine.engine


def work_of(layer: Layer, engine: PartialEngine) -> Work:
    """Return a convolution, a product with constant weights, or a pooling as work for an engine.

    Raises InputError if the layer is of another kind or has a batch.
    """
    refuse_long(layer)
    if layer.kind in ("eltwise", "resample") or layer.weights == "activation":
        raise InputError(f"layer {layer.name}: runs of an engine are convolutions, products with constants or poolings")
    if layer.b != 1:
        raise InputError(f"layer {layer.name}: batch {layer.b}; an engine takes one image at a time")
    if _apart(layer):
        full, rest = divmod(layer.g, engine.lanes)
        found = [(engine.lanes, full), (rest, 1 if rest else 0)]
        grids = tuple(Grid((maps,), (maps,), number) for maps, number in found if number)
        return Work(layer, engine, grids, engine.window_taps)
    grid = Grid(tuple(_cut(layer.n, engine.e_in)), tuple(_cut(layer.m, engine.e_out)), layer.g)
    return Work(layer, engine, (grid,), engine.pair_taps)


def _apart(layer: Layer) -> bool:
    return layer.n == layer.m == 1 and (layer.g > 1 or layer.kind == "pool")


def _cut(maps: int, most: int) -> Iterable[int]:
    return (min(most, maps - first) for first in range(0, maps, most))


@dataclass(frozen=True)
class Part:
    """What a layer takes on an engine of any size: `run` cycles of a run, `add` cycles of an addition of maps."""

    maps_in: int
    maps_out: int
    groups: int
    """`maps_in`, `maps_out`, `groups`: maps of a group; a depthwise layer (`apart`) or a sum (no runs) has groups of
    one.
    """
    apart: bool
    run: int
    add: int

    def cycles(self, e_in: int, e_out: int) -> int:
        """Cycles with runs of e_in x e_out maps."""
        if not self.run:
            return self.add * -(-self.groups // e_out)
        if self.apart:
            return self.run * -(-self.groups // min(e_in, e_out))
        inputs, outputs = -(-self.maps_in // e_in), -(-self.maps_out // e_out)
        return self.groups * outputs * (inputs * self.run + (inputs - 1) * self.add)


def network_parts(network: Network, engine: PartialEngine) -> dict[Part, int]:
    """Return what an inference takes, every layer in one strip, and how often.

    Layers whose result is a single pixel (global pooling, the classifier) run on the CPU beside the engine (V.I);
    element-wise sums are additions of maps, which read every bank twice a pixel. Raises InputError if a layer is of a
    kind that the engine does not compute.
    """
    parts: Counter[Part] = Counter()
    for x in network.layers:
        if x.r * x.c == 1:
            continue
        if x.kind == "eltwise":
            parts[Part(1, 1, x.g * x.b, True, 0, (x.inputs - 1) * 2 * x.r * x.c)] += 1
            continue
        work = work_of(x, engine)
        strip = work.strips(x.r)[0]
        parts[Part(x.n, x.m, x.g, work.apart, work.run_cycles(strip), work.add_cycles(strip))] += 1
    return dict(parts)


def network_cycles(network: Network, engine: PartialEngine) -> int:
    """Return the engine's cycles for an inference; as `network_parts`."""
    parts = network_parts(network, engine)
    return sum(number * part.cycles(engine.e_in, engine.e_out) for part, number in parts.items())


def run_pixels(network: Network, engine: PartialEngine) -> int:
    """Return the output pixels of all runs of an inference, but of depthwise layers and poolings; as `network_parts`.

    Where a run makes a pixel of its maps in a cycle at best (V: each has one bank), an inference takes at least as many
    cycles, whatever additions, depthwise layers, larger kernels and transfers take.
    """
    works = [work_of(x, engine) for x in network.layers if x.kind != "eltwise" and x.r * x.c > 1]
    return sum(work.runs * work.layer.r * work.layer.c for work in works if not work.apart)
