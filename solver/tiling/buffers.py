"""Where the tiles of a nest lie on chip: buffers with addresses and extents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from hwmodels.nest.bilinear import Ints
from hwmodels.nest.boxes import input_windows
from hwmodels.nest.execute import FetchPoint, fetch_points
from hwmodels.nest.replay_walk import Cuts, cut_range
from hwmodels.nest.skeleton import cores
from hwmodels.schedule import Hold, Loop, Nest, Spatial
from instances.machine import Machine
from instances.workload import DIMS, REDUCTION, Layer

__all__ = ["KERNEL", "Buffer", "NestOnCore", "buffers"]

_AXES = {
    "IN": {"CHW": "bgnrc", "HWC": "brcgn"},
    "OUT": {"CHW": "bgmrc", "HWC": "brcgm"},
    "W": {"OIHW": "gmnij", "OHWI": "gmijn"},
}
#: The kernel's dimension along the input's rows and columns.
KERNEL = {"r": "i", "c": "j"}


@dataclass(frozen=True)
class Buffer:
    """One buffer of a core.

    Attributes
    ----------
    memory, name : str
        The memory it lies in; IN, W, OUT (the second one of two: IN'), im2col or reserved.
    address, size : int
        In bytes from the start of the memory.
    extents : dict of str to int
        Of the largest tile, per axis in storage order (input rows and columns under r and c).
    element : int
        Bytes an element.
    circular : str
        "rows" or "columns" where IN slides along them, else empty.
    """

    memory: str
    name: str
    address: int
    size: int
    extents: dict[str, int]
    element: int
    circular: str = ""

    def __str__(self) -> str:
        where = f"{self.address:>8,} {self.size:>10,}  {self.name:<8}"
        if not self.extents:
            return where.rstrip()
        words = {"r": "rows", "c": "columns"} if self.name.startswith("IN") else {}
        text = " x ".join(f"{words.get(d, d)} {n}" for d, n in self.extents.items() if n > 1) or "one element"
        ring = f"; circular: {self.circular} at their number modulo {self._length}" if self.circular else ""
        return f"{where} {text}, {self.element} bytes each{ring}"

    @property
    def _length(self) -> int:
        return self.extents["r" if self.circular == "rows" else "c"]


class NestOnCore:
    """What the texts need to know of a nest on its largest core."""

    def __init__(self, layer: Layer, machine: Machine, nest: Nest) -> None:
        self.layer, self.machine, self.nest = layer, machine, nest
        self.spatial = tuple(i for i in nest.items if isinstance(i, Spatial))
        self.items = tuple(i for i in nest.items if not isinstance(i, Spatial))
        core = cores(layer, self.spatial)[0]
        share = {d: core.range(d) for d in DIMS}
        loops = nest.loops()
        self.cuts: dict[str, Cuts] = {d: cut_range(*share[d], loops[d]) for d in DIMS}
        self.points: dict[str, FetchPoint] = fetch_points(self.items, share, machine.sliding)

    def held(self, operand: str) -> dict[str, int]:
        """How many loops over each dimension stand outside the Hold."""
        count = dict.fromkeys(DIMS, 0)
        for item in self.items:
            if isinstance(item, Hold) and item.operand == operand:
                break
            if isinstance(item, Loop):
                count[item.dim] += 1
        return count

    def copies(self, operand: str) -> int:
        """How many buffers the operand has."""
        hold = next(i for i in self.items if isinstance(i, Hold) and i.operand == operand)
        return self.machine.buffers(hold.buffers)

    def lengths(self, dim: str, level: int) -> tuple[Ints, Ints]:
        """Starts and ends of the pieces of a dimension after `level` loops."""
        return self.cuts[dim].start[level], self.cuts[dim].stop[level]

    def extents(self, operand: str) -> dict[str, int]:
        """The largest tile, per axis in storage order."""
        machine, level = self.machine, self.held(operand)
        layout = {"IN": machine.in_layout, "OUT": machine.out_layout, "W": machine.w_layout}[operand]
        found = {}
        for d in _AXES[operand][layout]:
            start, stop = self.lengths(d, level[d])
            if operand == "IN" and d in KERNEL:
                window = input_windows(self.layer)[d]
                tap, end = self.lengths(KERNEL[d], level[KERNEL[d]])
                first = np.maximum(start[:, None] * window.stride - window.pad + tap * window.dilation, window.first)
                last = (stop[:, None] - 1) * window.stride - window.pad + (end - 1) * window.dilation + 1
                found[d] = int(np.maximum(np.minimum(last, window.size) - first, 0).max())
            else:
                found[d] = int((stop - start).max())
        return found

    def element(self, operand: str) -> int:
        """Bytes of an element on chip."""
        machine = self.machine
        unfinished = any(self.cuts[d].leaves > 1 for d in REDUCTION)
        sizes = {"IN": machine.in_bytes, "W": machine.w_bytes, "OUT": machine.out_bytes}
        unfinished_out = operand == "OUT" and unfinished
        return max(machine.psum_bytes, machine.out_bytes) if unfinished_out else sizes[operand]


def buffers(layer: Layer, machine: Machine, nest: Nest) -> tuple[Buffer, ...]:
    """Lay the buffers of a core out in its memories, one after the other in the order of the Holds.

    Machines that count uniform tiles are laid out with the true largest ones, which are no larger.
    """
    return tuple(_laid(NestOnCore(layer, machine, nest)))


def _laid(found: NestOnCore) -> Iterator[Buffer]:
    machine, layer = found.machine, found.layer
    top = dict.fromkeys(machine.memories, 0)

    def place(memory: str, name: str, size: int, extents: dict[str, int], element: int, circular: str = "") -> Buffer:
        buffer = Buffer(memory, name, top[memory], size, extents, element, circular)
        top[memory] += size
        return buffer

    if machine.reserved_bytes:
        for memory in machine.memories:
            yield place(memory, "reserved", machine.reserved_bytes, {}, 1)
    for item in found.items:
        if isinstance(item, Hold):
            op, extents, element = item.operand, found.extents(item.operand), found.element(item.operand)
            circular = {3: "rows", 4: "columns"}.get(found.points[op].axis or 0, "")
            size = prod(extents.values()) * element
            size += extents["g"] * extents["m"] * machine.bias_bytes if op == "W" and layer.bias else 0
            for copy in range(found.copies(op)):
                for number in range(layer.inputs if op == "IN" else 1):
                    name = op + (f"{number + 1}" if op == "IN" and layer.inputs > 1 else "") + "'" * copy
                    yield place(machine.memory_of(op), name, size, extents, element, circular)
    if machine.im2col_rows:
        tile = machine.im2col_channels == "tile"
        channels = int(found.cuts["n"].lengths.max()) if tile else layer.n
        size = machine.im2col_rows * layer.kh * layer.kw * channels * machine.in_bytes
        yield place("ocm", "im2col", size, {}, machine.in_bytes)
