"""Buffers on chip, tensors off the chip, tiles and boxes of a layer, as C."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from hwmodels.nest.buffers import Buffer
from instances.network.workload import DIMS
from solver.uses.emit.frame import ZEROS, Frame, storage_order
from solver.uses.emit.text import larger, smaller, total

#: The first and the last row and column of IN that a tile needs.
EDGES = {"r": ("top", "bottom"), "c": ("left", "right")}


@dataclass(frozen=True)
class Places:
    """Where elements of a layer's operands lie."""

    frame: Frame

    def order(self, operand: str) -> str:
        """The axes of an operand in storage order."""
        return storage_order(operand, self.frame.machine)

    def axis(self, operand: str, number: int) -> int:
        """Where rows (3) or columns (4) of IN or OUT stand in storage order."""
        return self.order(operand).index("rc"[number - 3])

    def name(self, operand: str, k: int = 0) -> str:
        """The name of a buffer: inputs are numbered where there are several."""
        return f"{operand}{k + 1}" if f"{operand}{k + 1}" in self.frame.buffers else operand

    def buffer(self, operand: str, k: int = 0) -> Buffer:
        """A buffer."""
        return self.frame.buffers[self.name(operand, k)]

    def base(self, operand: str, k: int = 0) -> str:
        """The address of the first copy of a buffer."""
        memory = "ocm" if self._stays(operand) else self.buffer(operand, k).memory
        return f"certile_{memory} + {self.name(operand, k)}_AT"

    def _stays(self, operand: str) -> bool:
        """Whether an operand is no tile: weights that stay on chip."""
        return operand == "W" and self.frame.kept_w is not None

    def bytes(self, operand: str, k: int = 0) -> str:
        """The bytes of one copy."""
        return f"{self.name(operand, k)}_BYTES"

    def extents(self, operand: str, k: int = 0) -> list[int]:
        """Elements of a buffer along its axes."""
        if self._stays(operand):
            return [self.frame.layer.extent(d) for d in self.order(operand)]
        found = self.buffer(operand, k).extents
        extents = [found.get(d, 1) for d in self.order(operand)]
        for number, factor in self.frame.rings.items() if operand == "IN" else ():
            extents[self.axis("IN", number)] *= factor
        return extents

    @property
    def has_bias_tile(self) -> bool:
        """Whether biases are loaded with the weights."""
        return self.frame.layer.bias and self.frame.machine.bias_bytes > 0

    @property
    def bias_at(self) -> int:
        """Where biases begin in the buffer of W."""
        return prod(self.extents("W")) * self.frame.machine.w_bytes

    # ---- declarations ----------------------------------------------------------------------------------------------

    def lines(self) -> list[str]:
        """Constants of the buffers, the record of a step, tensors off the chip."""
        frame, layer = self.frame, self.frame.layer
        lines = ["/* Where the buffers lie, and the bytes of one copy. */"]
        for memory in dict.fromkeys(b.memory for b in frame.buffers.values()):
            lines.append(f"{frame.memories} unsigned char certile_{memory}[{frame.machine.memories[memory]}];")
        for name, buffer in frame.buffers.items():
            if name not in ("reserved", "im2col"):
                address = frame.placed.get(name, buffer.address)
                lines.append(f"enum {{ {name}_AT = {address}, {name}_BYTES = {buffer.bytes} }};")
        if frame.kept_w:
            lines.append(f"enum {{ W_AT = {frame.kept_w.address} }};")
        if any(kept and kept.memory == ZEROS for kept in frame.kept_in):
            lines.append(f"static const unsigned char certile_{ZEROS}[{frame.machine.in_bytes}];")
        lines += ["", "/* A step: its ranges, and the tiles that it works on; `fresh`: its sums begin here. */"]
        names = ", ".join(f"{d}, {d}_end" for d in frame.moving)
        lines += ["typedef struct {", *([f"    int {names};"] if names else []), "    int fresh;"]
        lines += [f"    certile_{'lines' if frame.lines else 'tile'} in[{layer.inputs}];", "    certile_tile out;"]
        lines += ["    certile_tile w;"] if frame.weighted else []
        lines += ["    certile_tile bias;"] if self.has_bias_tile else []
        tensors = [(f"in_dram[{layer.inputs}]", True), ("w_dram", self._brings_w), ("bias_dram", self._biases_lie),
                   ("out_dram", True), ("psum_dram", frame.sums)]  # fmt: skip
        return [*lines, "} step;", "", f"static certile_tensor {', '.join(name for name, there in tensors if there)};"]

    def bind(self) -> list[str]:
        """Statements that set up tensors and tiles from the pointers that the layer's function is given."""
        frame, layer = self.frame, self.frame.layer
        lines = [f"in_dram[{k}] = {self._tensor('IN', f'in[{k}]', lacks)};" for k, lacks in enumerate(layer.patterns)]
        for operand, name, there in (
            ("W", "w", self._brings_w), ("OUT", "out", True), ("PSUM", "psum", frame.sums),
        ):  # fmt: skip
            lines.append(f"{name}_dram = {self._tensor(operand, name)};" if there else f"(void){name};")
        if self._biases_lie:
            size = f"{{1, 1, 1, {layer.g}, {layer.m}}}"
            lines.append(f"bias_dram = (certile_tensor){{bias, {frame.machine.bias_bytes or 4}, {size}}};")
        else:
            lines.append("(void)bias;")
        lines += [f"now.in[{k}] = {self._input_tile(k)};" for k in sorted(frame.loaded)]
        lines += [
            f"now.{name} = {self._tile(op)};"
            for op, name in (("W", "w"), ("OUT", "out"))
            if op != "W" or frame.weighted
        ]
        if self.has_bias_tile:
            found = dict(zip(self.order("W"), self.extents("W"), strict=True))
            base = f"now.w.base + {self.bias_at}" if frame.kept_w else "NULL"
            size = f"{{1, 1, 1, {found['g']}, {found['m']}}}"
            lines.append(f"now.bias = (certile_tile){{{base}, {frame.machine.bias_bytes}, {size}, {{0}}}};")
        return lines

    @property
    def _brings_w(self) -> bool:
        """Whether weights are read from where they lie off the chip."""
        kept = self.frame.kept_w
        return kept.loads if kept else self.frame.weighted

    @property
    def _biases_lie(self) -> bool:
        """Whether biases are read from where they lie off the chip, or are there before the layer begins."""
        return self.frame.layer.bias and (self._brings_w or not self.has_bias_tile)

    def _tensor(self, operand: str, pointer: str, lacks: str = "") -> str:
        layer, machine = self.frame.layer, self.frame.machine
        sizes = {d: layer.extent(d) for d in DIMS} | ({"r": layer.h, "c": layer.l} if operand == "IN" else {})
        sizes |= dict.fromkeys(lacks, 1)
        element = {"IN": machine.in_bytes, "W": machine.w_bytes, "OUT": machine.out_bytes, "PSUM": machine.psum_bytes}
        order = self.order("OUT" if operand == "PSUM" else operand)
        size = ", ".join(str(sizes[d]) for d in order)
        return f"(certile_tensor){{{pointer}, {element[operand]}, {{{size}}}}}"

    def _tile(self, operand: str, k: int = 0) -> str:
        extents = ", ".join(map(str, self.extents(operand, k)))
        element = self.frame.machine.w_bytes if self._stays(operand) else self.buffer(operand, k).element_bytes
        return f"(certile_tile){{{self.base(operand, k)}, {element}, {{{extents}}}, {{0}}}}"

    def _input_tile(self, k: int) -> str:
        frame = self.frame
        if not frame.lines:
            return self._tile("IN", k)
        buffer = self.buffer("IN", k)
        sizes = ", ".join(map(str, (int(frame.down), *frame.lines[k])))
        letters = ", ".join(str("bgnrc".index(d)) for d in self.order("IN"))
        outer = ", ".join(str(buffer.extents.get(d, 1)) for d in "bgn")
        head = f"(certile_lines){{{self.base('IN', k)}, {buffer.element_bytes}"
        return f"{head}, {sizes}, {{{letters}}}, {{{outer}}}, {{0}}, {{0}}, {{0}}, {{0}}}}"

    # ---- boxes -----------------------------------------------------------------------------------------------------

    def edges(self, d: str, piece: tuple[str, str] | None = None) -> tuple[str, str]:
        """The input rows (columns) that a piece of r (c) and the current taps need, without padding."""
        frame, window = self.frame, self.frame.window(d)
        lo, hi = piece or (frame.lo(d), frame.hi(d))
        taps = (frame.lo(window.tap), window.dilation), (frame.hi(window.tap), window.dilation)
        first = larger("0", total((lo, window.stride), taps[0], ("1", -window.pad)))
        beyond = 1 - window.stride - window.dilation - window.pad
        return first, smaller(str(window.size), total((hi, window.stride), taps[1], ("1", beyond)))

    def window(self, lacks: str = "") -> list[str]:
        """Statements that find the input rows and columns of a tile, but for what an input has one element along."""
        lines = []
        for d, (lo, hi) in EDGES.items():
            if d in lacks:
                continue
            first, end = self.edges(d)
            lines += [f"const int {lo} = {first};", f"const int {hi} = {larger(lo, end)};"]
        return lines

    def not_resident(self, k: int, top: str, bottom: str) -> tuple[str, str]:
        """The rows of a window of an input that are not on chip already."""
        resident = self.frame.layer.residents[k]
        return (larger(str(resident), top), larger(str(resident), bottom)) if resident else (top, bottom)

    def in_box(self, k: int, order: str = "") -> str:
        """The tile of an input as a box, after `window`; its axes in storage order, or in another one."""
        ends = {d: (self.frame.lo(d), self.frame.hi(d)) for d in "bgn"} | EDGES
        ends["r"] = self.not_resident(k, *EDGES["r"])
        ends |= dict.fromkeys(self.frame.layer.patterns[k], ("0", "1"))
        return _box(order or self.order("IN"), ends)

    def whole(self, operand: str) -> str:
        """All of an operand as a box."""
        return _box(self.order(operand), {d: ("0", str(self.frame.layer.extent(d))) for d in DIMS})

    def box(self, operand: str) -> str:
        """The tile of W or OUT as a box."""
        return _box(self.order(operand), {d: (self.frame.lo(d), self.frame.hi(d)) for d in DIMS})

    # ---- elements --------------------------------------------------------------------------------------------------

    def pitches(self, operand: str, k: int = 0) -> dict[str, int]:
        """Bytes from one element of a tile to the next, along its dimensions."""
        if (kept := self.frame.kept_w) and operand == "W":
            return {d: step * self.frame.machine.w_bytes for d, step in kept.pitches.items()}
        pitch, found = self.buffer(operand, k).element_bytes, {}
        for d, extent in zip(reversed(self.order(operand)), reversed(self.extents(operand, k)), strict=True):
            found[d] = pitch
            pitch *= extent
        return found

    def place(self, operand: str, tile: str, names: Mapping[str, str], k: int = 0) -> str:
        """The address of an element of a tile; dimensions without a name are left out."""
        extents, pitches = self.extents(operand, k), self.pitches(operand, k)
        ringed = {self.axis("IN", number) for number in self.frame.rings} if operand == "IN" else set()
        terms = [f"{tile}->base"]
        for a, d in enumerate(self.order(operand)):
            if d not in names or (extents[a] == 1 and a not in ringed):
                continue
            offset = f"({names[d]} - {tile}->first[{a}])"
            offset += f" % {extents[a]}" if a in ringed else ""
            terms.append(
                f"(ptrdiff_t){offset} * {pitches[d]}" if a not in ringed else f"(ptrdiff_t)({offset}) * {pitches[d]}"
            )
        return " + ".join(terms)

    def ring(self, d: str) -> int:
        """The length of the ring along rows (r) or columns (c) of IN, 0 if they are no ring."""
        number = {"r": 3, "c": 4}[d]
        return self.extents("IN")[self.axis("IN", number)] if number in self.frame.rings else 0


def _box(order: str, ends: Mapping[str, tuple[str, str]]) -> str:
    lo, hi = (", ".join(ends[d][side] for d in order) for side in (0, 1))
    return f"{{{{{lo}}}, {{{hi}}}}}"
