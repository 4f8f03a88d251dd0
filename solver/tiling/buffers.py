"""Where the tiles of a nest lie on chip: buffers with addresses and extents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Literal

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt

from hwmodels.nest.execute import FetchPoint, fetch_points
from hwmodels.nest.replay_counts import Stored, stored_tensors
from hwmodels.nest.replay_cuts import Cuts, cut_range, holds_of
from hwmodels.nest.replay_slides import lined_bytes
from hwmodels.nest.skeleton import Core, cores
from hwmodels.schedule import Hold, Nest, Spatial
from instances.machine import Machine
from instances.workload import DIMS, REDUCTION, Layer

_AXES = {
    "IN": {"CHW": "bgnrc", "HWC": "brcgn"},
    "OUT": {"CHW": "bgmrc", "HWC": "brcgm"},
    "W": {"OIHW": "gmnij", "OHWI": "gmijn"},
}
#: The kernel's dimension along the input's rows and columns.
KERNEL = {"r": "i", "c": "j"}
Circular = Literal["", "rows", "columns", "lines"]
#: The direction in which IN slides, by the axis of its fetches.
_CIRCULAR: dict[int, Circular] = {3: "rows", 4: "columns"}
_SCRATCH = ("im2col", "reserved")


class Buffer(BaseModel):
    """One buffer of a core."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """IN (IN1, IN2, ... where a layer has several inputs), W, OUT, im2col or reserved."""
    memory: str
    """The on-chip memory that it lies in."""
    address: NonNegativeInt
    bytes: NonNegativeInt
    """`address`, `bytes`: from the start of the memory; of one copy."""
    copies: PositiveInt
    """2 with double buffering: the second one begins where the first ends."""
    element_bytes: PositiveInt
    """Of one element."""
    extents: dict[str, PositiveInt]
    """Elements of the largest tile along every dimension that has more than one, in storage order (the last one is
    contiguous); input rows and columns under r and c. Empty for im2col and reserved.
    """
    circular: Circular = ""
    """"rows" or "columns" where IN slides along them (row y lies at y modulo the rows of the buffer); "lines" where it
    lies in lines, which take less than the tile (docs/nest.md); else empty.
    """

    @property
    def end(self) -> int:
        """The first address behind the last copy."""
        return self.address + self.copies * self.bytes

    def __str__(self) -> str:
        where = f"{self.address:>8,} {self.bytes:>10,} {self.copies:>7}  {self.name:<8}"
        if self.name in _SCRATCH:
            return where.rstrip()
        words = {"r": "rows", "c": "columns"} if self.name.startswith("IN") else {}
        text = " x ".join(f"{words.get(d, d)} {n}" for d, n in self.extents.items()) or "one element"
        length = self.extents.get(self.circular[:1], 1)
        ring = f"; circular: {self.circular} at their number modulo {length}" if self.circular else ""
        ring = "; in lines" if self.circular == "lines" else ring
        return f"{where} {text}, {self.element_bytes} bytes each{ring}"


class NestOnCore:
    """What the texts need to know of a nest on a core, by default on the largest one."""

    def __init__(self, layer: Layer, machine: Machine, nest: Nest, core: Core | None = None) -> None:
        nest.validate_for(layer)
        self.layer, self.machine, self.nest = layer, machine, nest
        self.spatial = tuple(i for i in nest.items if isinstance(i, Spatial))
        self.items = tuple(i for i in nest.items if not isinstance(i, Spatial))
        every = cores(layer, self.spatial)
        self.others = () if core else tuple(NestOnCore(layer, machine, nest, one) for one in _clipped(every))
        share = {d: (core or every[0]).range(d) for d in DIMS}
        loops = nest.loops()
        self.cuts: dict[str, Cuts] = {d: cut_range(*share[d], loops[d]) for d in DIMS}
        self.holds = holds_of(Nest(self.items), self.cuts)
        levels = {operand: hold.levels for operand, hold in self.holds.items()}
        self.tensors = stored_tensors(layer, machine, self.cuts, levels)
        self.points: dict[str, FetchPoint] = fetch_points(self.items, share, machine.sliding)

    def copies(self, operand: str) -> int:
        """How many buffers the operand has."""
        hold = next(i for i in self.items if isinstance(i, Hold) and i.operand == operand)
        return self.machine.buffers(hold.buffers)

    def tiles(self, operand: str) -> tuple[Stored, ...]:
        """The tiles of an operand along the axes of its tensor; of IN for every input without its rows on chip."""
        row = "PSUM" if operand == "OUT" else operand  # results are made apart from where they stay
        return self.tensors[row] if operand == "IN" else self.tensors[row][:1]

    def extents(self, operand: str, tile: Stored) -> dict[str, int]:
        """The largest tile, per axis in storage order; of IN on any core, as padding clips those of the largest one."""
        number = next(k for k, mine in enumerate(self.tiles(operand)) if mine is tile)
        same = [tile, *(core.tiles(operand)[number] for core in self.others if operand == "IN")]
        layout = {"IN": self.machine.in_layout, "OUT": self.machine.out_layout, "W": self.machine.w_layout}[operand]
        axes = zip(*(one.axes for one in same), strict=True)
        sizes = [max(int(axis.extent.max()) for axis in alike) for alike in axes]
        return dict(zip(_AXES[operand][layout], sizes, strict=True))

    @property
    def lines(self) -> tuple[tuple[str, int], tuple[str, int]] | None:
        """The two loops that IN slides along in lines, dimension and level; None if it does not."""
        return self.holds["IN"].lines if self.nest.line else None

    def element(self, operand: str) -> int:
        """Bytes of an element on chip."""
        machine = self.machine
        unfinished = any(self.cuts[d].leaves > 1 for d in REDUCTION)
        sizes = {"IN": machine.in_bytes, "W": machine.w_bytes, "OUT": machine.out_bytes}
        unfinished_out = operand == "OUT" and unfinished
        return max(machine.psum_bytes, machine.out_bytes) if unfinished_out else sizes[operand]


def _clipped(every: Sequence[Core]) -> Iterator[Core]:
    """A core for every range of rows and of columns but those of the first core."""
    for d in "rc":
        first = {core.range(d): core for core in reversed(every)}
        yield from (core for share, core in first.items() if share != every[0].range(d))


def buffer_lines(placed: Iterable[Buffer]) -> Iterator[str]:
    """Return buffers as lines of text, below a head."""
    yield " address      bytes  copies  buffer"
    yield from map(str, placed)


def buffers(layer: Layer, machine: Machine, nest: Nest) -> tuple[Buffer, ...]:
    """Lay the buffers of a core out in its memories, one after the other in the order of the Holds.

    Machines that count uniform tiles are laid out with the true largest ones, which are no larger. Of a layer with rows
    on chip (`Layer.resident_in`) the tiles are laid out as if their banks were one memory.

    Raises
    ------
    InputError
        If the nest is malformed for the layer or the machine.
    """
    return tuple(_laid(NestOnCore(layer, machine, nest)))


def _laid(found: NestOnCore) -> Iterator[Buffer]:
    machine, layer = found.machine, found.layer
    top = dict.fromkeys(machine.memories, 0)

    def place(
        memory: str, name: str, size: int, element: int, extents: dict[str, int], copies: int, circular: Circular = ""
    ) -> Buffer:
        begin = top[memory]
        top[memory] += size * copies
        return Buffer(
            name=name, memory=memory, address=begin, bytes=size, copies=copies, element_bytes=element,
            extents={d: n for d, n in extents.items() if n > 1}, circular=circular,
        )  # fmt: skip

    if machine.reserved_bytes:
        for memory in machine.memories:
            yield place(memory, "reserved", machine.reserved_bytes, 1, {}, 1)
    for item in found.items:
        if isinstance(item, Hold):
            op, element, tiles = item.operand, found.element(item.operand), found.tiles(item.operand)
            lines = found.lines if op == "IN" else None
            ring: Circular = "lines" if lines else _CIRCULAR.get(found.points[op].axis or 0, "")
            for number, tile in enumerate(tiles, 1):
                extents = found.extents(op, tile)
                size = lined_bytes(tile, found.cuts, *lines) if lines else prod(extents.values()) * element
                size += extents["g"] * extents["m"] * machine.bias_bytes if op == "W" and layer.bias else 0
                name = f"{op}{number}" if len(tiles) > 1 else op
                yield place(machine.memory_of(op), name, size, element, extents, found.copies(op), ring)
    if machine.im2col_rows:
        of_tile = machine.im2col_channels == "tile"
        channels = int(found.cuts["n"].lengths.max()) if of_tile else layer.n
        size = machine.im2col_rows * layer.kh * layer.kw * channels * machine.in_bytes
        yield place("ocm", "im2col", size, machine.in_bytes, {}, 1)
