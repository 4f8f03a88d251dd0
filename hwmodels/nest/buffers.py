"""Where the tiles of a nest lie on chip: buffers with addresses and extents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import ClassVar, Literal

from pydantic import NonNegativeInt, PositiveInt

from hwmodels.nest.price.skeleton import Core, cores
from hwmodels.nest.replay.counts import Stored, stored_tensors
from hwmodels.nest.replay.cuts import Cuts, cut_range, holds_of, row_of
from hwmodels.nest.replay.execute import AXES, FetchPoint, fetch_points
from hwmodels.nest.replay.walk import lined_bytes, lined_sizes
from hwmodels.schedule import Hold, Nest, Spatial
from instances.frozen import Sparse
from instances.jsonfile import many
from instances.machine.machine import Machine
from instances.network.workload import DIMS, REDUCTION, Layer, depends

#: The kernel's dimension along the input's rows and columns.
KERNEL = {"r": "i", "c": "j"}
Circular = Literal["", "rows", "columns", "rows columns", "lines"]
#: The axes of IN (3 rows, 4 columns) that are circular, in words.
_CIRCULAR: dict[tuple[int, ...], Circular] = {(): "", (3,): "rows", (4,): "columns", (3, 4): "rows columns"}
_SCRATCH = ("im2col", "reserved")


class Buffer(Sparse):
    """One buffer of a core."""

    LEFT_OUT: ClassVar = frozenset(("bias_bytes", "line_extents", "own_extents"))

    name: str
    """IN (IN1, IN2, ... where a layer has several inputs), W, OUT, im2col (scratch, without a layout) or reserved."""
    memory: str
    """The on-chip memory that it lies in."""
    address: NonNegativeInt
    """Of the first copy, from the start of the memory. Addresses are not aligned."""
    bytes: NonNegativeInt
    """Of one copy, all that lies in it."""
    copies: PositiveInt
    """2 with double buffering: the second one begins where the first ends, and they are used in turn."""
    element_bytes: PositiveInt
    """Of one element; of OUT the larger one of a result and a partial sum where n, i or j is cut."""
    extents: dict[str, PositiveInt]
    """Elements of the largest tile along every dimension that has more than one, in storage order (the last one is
    contiguous); for IN, r and c are rows and columns of the input. Empty for im2col and reserved. Where `circular` is
    "lines" this is the window.
    """
    circular: Circular = ""
    """Along which of "rows" and "columns" (or both: "rows columns") IN slides: row y lies at y modulo the rows of the
    buffer, columns likewise. "lines" where it lies in lines (docs/nest.md); else empty.
    """
    bias_bytes: NonNegativeInt = 0
    """Of W: what the biases of a tile take. They lie behind the weights, and are part of `bytes`, not of `extents`."""
    line_extents: dict[str, NonNegativeInt] = {}  # noqa: RUF012 - pydantic copies it
    """Of IN in lines: elements of the lines, which come first in the buffer; in storage order, like `extents`."""
    own_extents: dict[str, NonNegativeInt] = {}  # noqa: RUF012 - pydantic copies it
    """Of IN in lines: elements of the part behind the lines, which holds what a window has beyond them."""

    @property
    def end(self) -> int:
        """The first address behind the last copy."""
        return self.address + self.copies * self.bytes

    def __str__(self) -> str:
        where = f"{self.address:>8,} {self.bytes:>10,} {self.copies:>7}  {self.name:<8}"
        if self.name in _SCRATCH:
            return where.rstrip()
        text = f"{where} {self._box(self.extents)}, {many(self.element_bytes, 'byte')} each"
        if self.bias_bytes:
            text += f"; then biases, {many(self.bias_bytes, 'byte')}"
        if self.circular == "lines":
            return f"{text}; in lines of {self._box(self.line_extents)}, then its own {self._box(self.own_extents)}"
        rings = [f"{along} at their number modulo {self.extents.get(along[0], 1)}" for along in self.circular.split()]
        return text + (f"; circular: {', '.join(rings)}" if rings else "")

    def _box(self, extents: Mapping[str, int]) -> str:
        words = {"r": "rows", "c": "columns"} if self.name.startswith("IN") else {}
        return " x ".join(f"{words.get(d, d)} {n}" for d, n in extents.items()) or "one element"


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
        self.holds = holds_of(Nest(self.items), self.cuts, layer.patterns)
        levels = {operand: hold.levels for operand, hold in self.holds.items()}
        self.tensors = stored_tensors(layer, machine, self.cuts, levels)
        self.points: dict[str, FetchPoint] = fetch_points(self.items, share, machine.sliding)

    def copies(self, operand: str) -> int:
        """How many buffers the operand has."""
        hold = next(i for i in self.items if isinstance(i, Hold) and i.operand == operand)
        return self.machine.buffers(hold.buffers)

    def tiles(self, operand: str) -> tuple[Stored, ...]:
        """The tiles of an operand along the axes of its tensor; of IN for every input without its rows on chip."""
        if operand == "IN":
            return tuple(tile for _, tile in self.inputs)
        return self.tensors["PSUM" if operand == "OUT" else operand][:1]  # results are made apart from where they stay

    @property
    def inputs(self) -> tuple[tuple[int, Stored], ...]:
        """Every input that is loaded, by number (the first is 0), with its tiles without the rows on chip."""
        left = {row_of(lacks): iter(self.tensors[row_of(lacks)]) for lacks in self.layer.patterns}
        every = enumerate(zip(self.layer.patterns, self.layer.residents, strict=True))
        return tuple((k, next(left[row_of(lacks)])) for k, (lacks, rows) in every if not (rows and "r" in lacks))

    @property
    def fetches(self) -> tuple[tuple[int, str], ...]:
        """By how many items each pattern of inputs is fetched, and the pattern, one where none is broadcast."""
        cutting = self.points["IN"].cutting
        found = {}
        for lacks in dict.fromkeys(self.layer.patterns[k] for k, _ in self.inputs):
            mine = depends("IN", lacks)
            found[lacks] = max((at + 1 for at, dim in cutting if dim in mine), default=0)
        return tuple((at, lacks) for lacks, at in found.items())

    def extents(self, operand: str, tile: Stored) -> dict[str, int]:
        """The largest tile, per axis in storage order; of IN on any core, as padding clips those of the largest one."""
        number = next(k for k, mine in enumerate(self.tiles(operand)) if mine is tile)
        same = [tile, *(core.tiles(operand)[number] for core in self.others if operand == "IN")]
        axes = zip(*(one.axes for one in same), strict=True)
        return {alike[0].dims[0]: max(int(axis.extent.max()) for axis in alike) for alike in axes}

    def names(self, operand: str) -> tuple[str, ...]:
        """What its buffers are called: several inputs are numbered."""
        if operand == "IN" and self.layer.inputs > 1:
            return tuple(f"IN{k + 1}" for k, _ in self.inputs)
        return (operand,)

    def biases(self, operand: str, extents: Mapping[str, int]) -> int:
        """Bytes of the biases that lie behind a tile of W of these extents."""
        return extents["g"] * extents["m"] * self.machine.bias_bytes if operand == "W" and self.layer.bias else 0

    @property
    def snake(self) -> bool:
        """Whether loops run to and fro."""
        return self.machine.snake and not self.nest.line

    @property
    def rings(self) -> tuple[int, ...]:
        """The axes of IN (3 rows, 4 columns) along which it slides through a circular buffer."""
        if not self.machine.sliding or self.layer.broadcast:
            return ()
        if not self.snake:
            axis = self.points["IN"].axis
            return () if axis is None else (axis,)
        return tuple(sorted({AXES[d] for d in self.sliding}))

    @property
    def sliding(self) -> tuple[str, ...]:
        """In snake order the dimensions that move the window of IN, which slides where one of them moves alone."""
        if self.layer.broadcast:
            return ()
        levels = self.holds["IN"].levels
        return tuple(d for d in AXES if self.machine.sliding and len(self.cuts[d].start[levels[d]]) > 1)

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
    on chip (`Layer.resident_in`) the tiles are laid out as if their banks were one memory. Raises InputError if the
    nest is malformed for the layer or the machine.
    """
    return tuple(_laid(NestOnCore(layer, machine, nest)))


def _laid(found: NestOnCore) -> Iterator[Buffer]:
    machine, layer = found.machine, found.layer
    top = dict.fromkeys(machine.memories, 0)

    def place(memory: str, name: str, size: int, element: int, copies: int = 1, **more: object) -> Buffer:
        begin = top[memory]
        top[memory] += size * copies
        fields = {
            "name": name, "memory": memory, "address": begin, "bytes": size, "copies": copies, "element_bytes": element,
        }  # fmt: skip
        return Buffer.model_validate({"extents": {}, **fields, **more})

    if machine.reserved_bytes:
        for memory in machine.memories:
            yield place(memory, "reserved", machine.reserved_bytes, 1)
    for item in found.items:
        if isinstance(item, Hold):
            op = item.operand
            for name, tile in zip(found.names(op), found.tiles(op), strict=True):
                size, more = _tile(found, op, tile)
                yield place(machine.memory_of(op), name, size, found.element(op), found.copies(op), **more)
    if machine.im2col_rows:
        of_tile = machine.im2col_channels == "tile"
        channels = int(found.cuts["n"].lengths.max()) if of_tile else layer.n
        size = machine.im2col_rows * layer.kh * layer.kw * channels * machine.in_bytes
        yield place("ocm", "im2col", size, machine.in_bytes)


def _tile(found: NestOnCore, operand: str, tile: Stored) -> tuple[int, dict[str, object]]:
    """The bytes of a buffer, and what is said of its inside."""
    extents = found.extents(operand, tile)
    biases = found.biases(operand, extents)
    size = prod(extents.values()) * found.element(operand) + biases
    said: dict[str, object] = {"extents": {d: n for d, n in extents.items() if n > 1}, "bias_bytes": biases}
    if operand != "IN":
        return size, said
    if found.lines is None:
        return size, said | {"circular": _CIRCULAR[found.rings]}
    (outer, _), (inner, _) = found.lines
    again, width, beyond, columns = lined_sizes(tile, found.cuts, *found.lines)
    said |= {"circular": "lines"}
    for part, sides in (("line_extents", (again, width)), ("own_extents", (beyond, columns))):
        sizes = {**extents, outer: sides[0], inner: sides[1]}
        said[part] = {d: n for d, n in sizes.items() if n != 1}
    return lined_bytes(tile, found.cuts, *found.lines), said
