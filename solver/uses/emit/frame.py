"""What the writers of a layer's C share: the nest on its cores, how it uses its buffers, and where elements lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from hwmodels.nest.buffers import Buffer, NestOnCore, buffers
from hwmodels.nest.price.skeleton import Core, cores
from hwmodels.nest.replay.execute import FetchPoint, fetch_points
from hwmodels.nest.replay.walk import lined_sizes
from hwmodels.schedule import Nest
from instances.machine.machine import Machine
from instances.network.workload import DIMS, REDUCTION, Layer, depends
from solver.uses.emit.numbers import Numbers
from solver.uses.emit.text import larger, smaller, total
from solver.uses.emit.values import rows_of, sizes_of, storage_order

#: The first and the last row and column of IN that a tile needs.
EDGES = {"r": ("top", "bottom"), "c": ("left", "right")}


@dataclass(frozen=True)
class Window:
    """How outputs and taps along rows or columns see the input."""

    tap: str
    stride: int
    dilation: int
    pad: int
    size: int

    def at(self, d: str) -> str:
        """Where a tap of a result lies along a dimension, as C."""
        return total((d, self.stride), (self.tap, self.dilation), ("1", -self.pad))


def window_of(layer: Layer, d: str) -> Window:
    """Return the window of a layer along rows (r) or columns (c)."""
    if d == "r":
        return Window("i", layer.stride_h, layer.dilation_h, layer.pad_top, layer.h)
    return Window("j", layer.stride_w, layer.dilation_w, layer.pad_left, layer.l)


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

    def lo(self, d: str, of: str = "") -> str:
        """Where the piece of a dimension begins; `of`: a prefix of the names, as of a record."""
        return f"{of}{d}" if d in self.moving else "0"

    def hi(self, d: str, of: str = "") -> str:
        """Where the piece of a dimension ends."""
        return f"{of}{d}_end" if d in self.moving else str(self.layer.extent(d))

    def dims(self, operand: str = "", lacks: str = "") -> list[str]:
        """The dimensions whose pieces a tile is found from, of those that move; without an operand all.

        Of an input that has one row or column the taps do not matter either.
        """
        taps = {tap for tap, d in (("i", "r"), ("j", "c")) if d in lacks}
        return [d for d in self.moving if not operand or d in depends(operand, lacks) - taps]

    def pieces(self, operand: str = "", lacks: str = "") -> list[str]:
        """Begin and end of these pieces, by names."""
        return [name for d in self.dims(operand, lacks) for name in (d, f"{d}_end")]

    def parameters(self, operand: str = "", lacks: str = "") -> list[str]:
        """The same as parameters."""
        return [f"int {name}" for name in self.pieces(operand, lacks)]

    @cached_property
    def patterns(self) -> tuple[str, ...]:
        """What inputs that are loaded together lack: one of nothing, if no input is broadcast."""
        return tuple(dict.fromkeys(self.layer.patterns[k] for k, _ in self.found.inputs))

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

    # ---- where elements lie on chip ------------------------------------------------------------------------------

    def order(self, operand: str) -> str:
        """The axes of an operand in storage order."""
        return storage_order(operand, self.machine)

    def axis(self, number: int) -> int:
        """Where rows (3) or columns (4) of IN stand in storage order."""
        return self.order("IN").index("rc"[number - 3])

    def name(self, operand: str, k: int = 0) -> str:
        """The name of a buffer: inputs are numbered where there are several."""
        return f"{operand}{k + 1}" if f"{operand}{k + 1}" in self.buffers else operand

    def buffer(self, operand: str, k: int = 0) -> Buffer:
        """A buffer."""
        return self.buffers[self.name(operand, k)]

    def base(self, operand: str, k: int = 0) -> str:
        """The address of the first copy of a buffer."""
        memory = "ocm" if self._stays(operand) else self.buffer(operand, k).memory
        return f"certile_{memory} + {self.name(operand, k)}_AT"

    def _stays(self, operand: str) -> bool:
        """Whether an operand is no tile: weights that stay on chip."""
        return operand == "W" and self.kept_w is not None

    def extents(self, operand: str, k: int = 0) -> list[int]:
        """Elements of a buffer along its axes."""
        if self._stays(operand):
            return [self.layer.extent(d) for d in self.order(operand)]
        found = self.buffer(operand, k).extents
        extents = [found.get(d, 1) for d in self.order(operand)]
        for number, factor in self.rings.items() if operand == "IN" else ():
            extents[self.axis(number)] *= factor
        return extents

    @property
    def has_bias_tile(self) -> bool:
        """Whether biases are loaded with the weights."""
        return self.layer.bias and self.machine.bias_bytes > 0

    @property
    def bias_at(self) -> int:
        """Where biases begin in the buffer of W."""
        return prod(self.extents("W")) * self.machine.w_bytes

    # ---- declarations ----------------------------------------------------------------------------------------------

    def declarations(self) -> list[str]:
        """Constants of the buffers, the record of a step, tensors off the chip."""
        inputs, weighted = self.layer.inputs, self.layer.weights != "none"
        lines = ["/* Where the buffers lie, and the bytes of one copy. */"]
        for memory in dict.fromkeys(b.memory for b in self.buffers.values()):
            lines.append(f"{self.memories} unsigned char certile_{memory}[{self.machine.memories[memory]}];")
        for name, buffer in self.buffers.items():
            if name not in ("reserved", "im2col"):
                address = self.placed.get(name, buffer.address)
                lines.append(f"enum {{ {name}_AT = {address}, {name}_BYTES = {buffer.bytes} }};")
        if self.kept_w:
            lines.append(f"enum {{ W_AT = {self.kept_w.address} }};")
        if any(kept and kept.memory == ZEROS for kept in self.kept_in):
            lines.append(f"static const unsigned char certile_{ZEROS}[{self.machine.in_bytes}];")
        lines += ["", "/* A step: its ranges, and the tiles that it works on; `fresh`: its sums begin here. */"]
        names = ", ".join(f"{d}, {d}_end" for d in self.moving)
        lines += ["typedef struct {", *([f"    int {names};"] if names else []), "    int fresh;"]
        lines += [f"    certile_{'lines' if self.lines else 'tile'} in[{inputs}];", "    certile_tile out;"]
        lines += ["    certile_tile w;"] if weighted else []
        lines += ["    certile_tile bias;"] if self.has_bias_tile else []
        tensors = [(f"in_dram[{inputs}]", True), ("w_dram", self._brings_w), ("bias_dram", self._biases_lie),
                   ("out_dram", True), ("psum_dram", self.sums)]  # fmt: skip
        return [*lines, "} step;", "", f"static certile_tensor {', '.join(name for name, there in tensors if there)};"]

    def bind(self) -> list[str]:
        """Statements that set up tensors and tiles from the pointers that the layer's function is given."""
        layer, machine = self.layer, self.machine
        lines = [
            f"in_dram[{k}] = {tensor('IN', f'in[{k}]', layer, machine, lacks)};"
            for k, lacks in enumerate(layer.patterns)
        ]
        for name, there in (("w", self._brings_w), ("out", True), ("psum", self.sums)):
            made = f"{name}_dram = {tensor(name.upper(), name, layer, machine)};"
            lines.append(made if there else f"(void){name};")
        if self._biases_lie:
            size = f"{{1, 1, 1, {layer.g}, {layer.m}}}"
            lines.append(f"bias_dram = (certile_tensor){{bias, {machine.bias_bytes or 4}, {size}}};")
        else:
            lines.append("(void)bias;")
        lines += [f"now.in[{k}] = {self._input_tile(k)};" for k in sorted(self.loaded)]
        lines += [f"now.w = {self._tile('W')};"] if layer.weights != "none" else []
        lines.append(f"now.out = {self._tile('OUT')};")
        if self.has_bias_tile:
            found = dict(zip(self.order("W"), self.extents("W"), strict=True))
            base = f"now.w.base + {self.bias_at}" if self.kept_w else "NULL"
            size = f"{{1, 1, 1, {found['g']}, {found['m']}}}"
            lines.append(f"now.bias = (certile_tile){{{base}, {machine.bias_bytes}, {size}, {{0}}}};")
        return lines

    @property
    def _brings_w(self) -> bool:
        """Whether weights are read from where they lie off the chip."""
        return self.kept_w.loads if self.kept_w else self.layer.weights != "none"

    @property
    def _biases_lie(self) -> bool:
        """Whether biases are read from where they lie off the chip, or are there before the layer begins."""
        return self.layer.bias and (self._brings_w or not self.has_bias_tile)

    def _tile(self, operand: str, k: int = 0) -> str:
        extents = ", ".join(map(str, self.extents(operand, k)))
        element = self.machine.w_bytes if self._stays(operand) else self.buffer(operand, k).element_bytes
        return f"(certile_tile){{{self.base(operand, k)}, {element}, {{{extents}}}, {{0}}}}"

    def _input_tile(self, k: int) -> str:
        if not self.lines:
            return self._tile("IN", k)
        buffer = self.buffer("IN", k)
        sizes = ", ".join(map(str, (int(self.down), *self.lines[k])))
        letters = ", ".join(str("bgnrc".index(d)) for d in self.order("IN"))
        outer = ", ".join(str(buffer.extents.get(d, 1)) for d in "bgn")
        head = f"(certile_lines){{{self.base('IN', k)}, {buffer.element_bytes}"
        return f"{head}, {sizes}, {{{letters}}}, {{{outer}}}, {{0}}, {{0}}, {{0}}, {{0}}}}"

    # ---- boxes -----------------------------------------------------------------------------------------------------

    def edges(self, d: str, piece: tuple[str, str] | None = None) -> tuple[str, str]:
        """The input rows (columns) that a piece of r (c) and the current taps need, without padding."""
        window = window_of(self.layer, d)
        lo, hi = piece or (self.lo(d), self.hi(d))
        taps = (self.lo(window.tap), window.dilation), (self.hi(window.tap), window.dilation)
        first = larger("0", total((lo, window.stride), taps[0], ("1", -window.pad)))
        beyond = 1 - window.stride - window.dilation - window.pad
        return first, smaller(str(window.size), total((hi, window.stride), taps[1], ("1", beyond)))

    def find_window(self, lacks: str = "") -> list[str]:
        """Statements that find the input rows and columns of a tile, but for what an input has one element along."""
        lines = []
        for d, (lo, hi) in EDGES.items():
            first, end = self.edges(d)
            lines += [f"const int {lo} = {first};", f"const int {hi} = {larger(lo, end)};"] if d not in lacks else []
        return lines

    def not_resident(self, k: int, top: str, bottom: str) -> tuple[str, str]:
        """The rows of a window of an input that are not on chip already."""
        resident = self.layer.residents[k]
        return (larger(str(resident), top), larger(str(resident), bottom)) if resident else (top, bottom)

    def in_box(self, k: int, order: str = "") -> str:
        """The tile of an input as a box, after `find_window`; its axes in storage order, or in another one."""
        ends = {d: (self.lo(d), self.hi(d)) for d in "bgn"} | EDGES
        ends["r"] = self.not_resident(k, *EDGES["r"])
        ends |= dict.fromkeys(self.layer.patterns[k], ("0", "1"))
        return box_of(order or self.order("IN"), ends)

    def whole(self, operand: str) -> str:
        """All of an operand as a box."""
        return box_of(self.order(operand), {d: ("0", str(self.layer.extent(d))) for d in DIMS})

    def box(self, operand: str) -> str:
        """The tile of W or OUT as a box."""
        return box_of(self.order(operand), {d: (self.lo(d), self.hi(d)) for d in DIMS})

    # ---- elements --------------------------------------------------------------------------------------------------

    def pitches(self, operand: str, k: int = 0) -> dict[str, int]:
        """Bytes from one element of a tile to the next, along its dimensions."""
        if (kept := self.kept_w) and operand == "W":
            return {d: step * self.machine.w_bytes for d, step in kept.pitches.items()}
        steps, size = rows_of(self.extents(operand, k)), self.buffer(operand, k).element_bytes
        return {d: step * size for d, step in zip(self.order(operand), steps, strict=True)}

    def place(self, operand: str, tile: str, names: Mapping[str, str], k: int = 0) -> str:
        """The address of an element of a tile; dimensions without a name are left out."""
        extents, pitches = self.extents(operand, k), self.pitches(operand, k)
        ringed = set(map(self.axis, self.rings)) if operand == "IN" else set()
        terms = [f"{tile}->base"]
        for a, d in enumerate(self.order(operand)):
            if d not in names or (extents[a] == 1 and a not in ringed):
                continue
            offset = f"({names[d]} - {tile}->first[{a}])"
            offset = f"({offset} % {extents[a]})" if a in ringed else offset
            terms.append(f"(ptrdiff_t){offset} * {pitches[d]}")
        return " + ".join(terms)

    def ring(self, d: str) -> int:
        """The length of the ring along rows (r) or columns (c) of IN, 0 if they are no ring."""
        number = {"r": 3, "c": 4}[d]
        return self.extents("IN")[self.axis(number)] if number in self.rings else 0


def tensor(operand: str, pointer: str, layer: Layer, machine: Machine, lacks: str = "") -> str:
    """Return a tensor off the chip as C; `lacks`: dimensions along which an input has one element."""
    sizes, like = sizes_of(operand, layer, lacks), "OUT" if operand == "PSUM" else operand
    element = getattr(machine, f"{operand.lower()}_bytes")
    numbers = ", ".join(str(sizes[d]) for d in storage_order(like, machine))
    return f"(certile_tensor){{{pointer}, {element}, {{{numbers}}}}}"


def box_of(order: str, ends: Mapping[str, tuple[str, str]]) -> str:
    """Return a box as C; begin and end by axes."""
    lo, hi = (", ".join(ends[d][side] for d in order) for side in (0, 1))
    return f"{{{{{lo}}}, {{{hi}}}}}"
