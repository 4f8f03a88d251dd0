"""What the writers of a layer's C share: the nest on its cores, its buffers, and how they are used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from hwmodels.nest.buffers import Buffer, NestOnCore, buffers
from hwmodels.nest.price.skeleton import Core, cores
from hwmodels.nest.replay.execute import FetchPoint, fetch_points
from hwmodels.nest.replay.slides import lined_sizes
from hwmodels.schedule import Nest
from instances.machine.machine import Machine
from instances.network.workload import DIMS, REDUCTION, Layer, depends
from solver.uses.emit.numbers import Numbers

#: Axes of the operands in storage order, by layout; input rows and columns stand under r and c.
AXES = {
    "IN": {"CHW": "bgnrc", "HWC": "brcgn"},
    "OUT": {"CHW": "bgmrc", "HWC": "brcgm"},
    "W": {"OIHW": "gmnij", "OHWI": "gmijn"},
}


def storage_order(operand: str, machine: Machine) -> str:
    """Return the axes of an operand off the chip, outermost first."""
    return AXES[operand][{"IN": machine.in_layout, "W": machine.w_layout, "OUT": machine.out_layout}[operand]]


def pieces_of(operand: str, lacks: str = "") -> frozenset[str]:
    """Return the dimensions whose pieces a tile is found from; without an operand all of them.

    Of an input that has one row or column the taps do not matter either.
    """
    taps = {tap for tap, d in (("i", "r"), ("j", "c")) if d in lacks}
    return depends(operand, lacks) - taps if operand else frozenset(DIMS)


@dataclass(frozen=True)
class Window:
    """How outputs and taps along rows or columns see the input."""

    tap: str
    stride: int
    dilation: int
    pad: int
    size: int


@dataclass(frozen=True)
class Kept:
    """Where the first rows of a map lie on chip while a layer runs; places are in elements."""

    memory: str
    address: int
    rows: int
    """Of the layer's tensor."""
    terms: tuple[tuple[str, int], ...]
    """Texts with {b}, {g}, {n} (or {m}) and {r}, each with its pitch."""
    column: int
    """The pitch of columns."""
    offset: int
    """From the address to the tensor's first element."""

    def place(self, names: Mapping[str, str], element: int) -> str:
        """The address of an element, of the first column if c has no name."""
        terms = [f"(ptrdiff_t)({text.format(**names)}) * {pitch * element}" for text, pitch in self.terms]
        if "c" in names:
            terms.append(f"(ptrdiff_t)({names['c']}) * {self.column * element}")
        return " + ".join([f"certile_{self.memory} + {self.address + self.offset * element}", *terms])


#: What an input of zeros is read from: one element, for all places.
ZEROS = "zeros"


@dataclass(frozen=True)
class KeptWeights:
    """Where the weights of a layer lie on chip while it runs, its biases behind them."""

    address: int
    loads: bool
    """Whether the layer brings them, before all else."""
    pitches: Mapping[str, int]
    """From one weight to the next along g, m, n, i and j, in elements: as the layer has them that brought them."""


@dataclass(frozen=True)
class Frame:
    """A layer, its machine and its nest, as C code sees them."""

    layer: Layer
    machine: Machine
    nest: Nest
    numbers: Numbers
    memories: str = "extern"
    """"extern", or "static": the layer has memories of its own."""
    kept_in: tuple[Kept | None, ...] = ()
    """Of every input the rows that lie on chip already; none if empty."""
    kept_out: Kept | None = None
    """The rows of the result that stay on chip."""
    kept_w: KeptWeights | None = None
    """Weights that lie on chip already, or stay there for later layers."""
    placed: Mapping[str, int] = field(default_factory=dict)
    """By buffer its address, if it is not the one of the plan of the layer by itself."""

    @cached_property
    def found(self) -> NestOnCore:
        """The nest on the largest core."""
        return NestOnCore(self.layer, self.machine, self.nest)

    @cached_property
    def cores(self) -> tuple[Core, ...]:
        """All cores, in the order in which they run."""
        return cores(self.layer, self.found.spatial)

    @cached_property
    def kinds(self) -> tuple[dict[str, FetchPoint], ...]:
        """Every set of fetch points that a core has."""
        kinds: list[dict[str, FetchPoint]] = []
        for core in self.cores:
            if (points := self.points(core)) not in kinds:
                kinds.append(points)
        return tuple(kinds)

    def points(self, core: Core) -> dict[str, FetchPoint]:
        """Where a core fetches every operand."""
        return fetch_points(self.found.items, {d: core.range(d) for d in DIMS}, self.machine.sliding)

    @property
    def weighted(self) -> bool:
        """Whether there are weights, wherever they lie."""
        return self.layer.weights != "none"

    @property
    def loaded(self) -> frozenset[int]:
        """The inputs that have tiles, by number: not those of one row that is on chip."""
        return frozenset(k for k, _ in self.found.inputs)

    @cached_property
    def buffers(self) -> Mapping[str, Buffer]:
        """The buffers by name."""
        return {buffer.name: buffer for buffer in buffers(self.layer, self.machine, self.nest)}

    @cached_property
    def moving(self) -> tuple[str, ...]:
        """The dimensions that a loop or the cores cut; the others are whole in every step."""
        cut = {item.dim for item in self.nest.items if not hasattr(item, "operand")}
        return tuple(d for d in DIMS if d in cut)

    def lo(self, d: str) -> str:
        """Where the piece of a dimension begins."""
        return d if d in self.moving else "0"

    def hi(self, d: str) -> str:
        """Where the piece of a dimension ends."""
        return f"{d}_end" if d in self.moving else str(self.layer.extent(d))

    def parameters(self, operand: str = "", lacks: str = "") -> list[str]:
        """The pieces that an operand depends on, as parameters; without an operand all that move."""
        mine = pieces_of(operand, lacks)
        return [f"int {name}" for d in self.moving if d in mine for name in (d, f"{d}_end")]

    def pieces(self, operand: str, lacks: str = "") -> list[str]:
        """The names of those parameters."""
        return [text.removeprefix("int ") for text in self.parameters(operand, lacks)]

    @cached_property
    def patterns(self) -> tuple[str, ...]:
        """What inputs that are loaded together lack: one of nothing, if no input is broadcast."""
        return tuple(dict.fromkeys(self.layer.patterns[k] for k, _ in self.found.inputs))

    def window(self, d: str) -> Window:
        """The window along rows (r) or columns (c)."""
        layer = self.layer
        if d == "r":
            return Window("i", layer.stride_h, layer.dilation_h, layer.pad_top, layer.h)
        return Window("j", layer.stride_w, layer.dilation_w, layer.pad_left, layer.l)

    # ---- how the nest runs -------------------------------------------------------------------------------------

    @property
    def snake(self) -> bool:
        """Whether loops run to and fro."""
        return self.machine.snake and not self.nest.line

    @property
    def late(self) -> bool:
        """Whether a step is computed while the next one is loaded."""
        return self.machine.timing == "double_buffered"

    @cached_property
    def cut(self) -> bool:
        """Whether sums of a tile are complete only after several steps."""
        return any(self.found.cuts[d].leaves > 1 for d in REDUCTION)

    @property
    def sums(self) -> bool:
        """Whether partial sums may move."""
        return self.cut or self.machine.psum_first_read

    @cached_property
    def rings(self) -> Mapping[int, int]:
        """Axes of IN (3 rows, 4 columns) that are circular -> how many largest tiles they are long."""
        if not self.machine.sliding or self.lines or self.layer.broadcast:
            return {}
        if self.snake:
            return {3: 1, 4: 1}
        axes = {points["IN"].axis for points in self.kinds} - {None}
        twice = self.late and self.found.copies("IN") == 2 and len(axes) == 1
        return {axis: 2 if twice else 1 for axis in axes if axis is not None}

    def doubled(self, operand: str) -> bool:
        """Whether two tiles of an operand lie on chip, one of them on its way."""
        if self.found.copies(operand) == 1 or not self.late:
            return False
        return operand != "IN" or (not self.lines and (not self.rings or 2 in self.rings.values()))

    def halves(self, operand: str) -> bool:
        """Whether tiles of an operand lie in two buffers in turn."""
        return self.doubled(operand) and not (operand == "IN" and self.rings)

    @property
    def counts_held(self) -> bool:
        """Whether it matters which operands have a tile on chip."""
        return self.snake or 2 in self.rings.values()

    @cached_property
    def lines(self) -> Sequence[tuple[int, int, int, int]]:
        """Of every input in lines: rows that are read again, the width of a pass; further rows, columns of a window."""
        loops = self.found.lines
        return [lined_sizes(tile, self.found.cuts, *loops) for tile in self.found.tiles("IN")] if loops else []

    @property
    def down(self) -> bool:
        """Whether the outer one of the loops that slide in lines is over rows."""
        return self.found.lines is not None and self.found.lines[0][0] == "r"
