"""A layer's plan as pseudo-code: loops, transfers and buffers, to write the code of a machine from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from hwmodels.core import input_windows
from hwmodels.execute import FetchPoint, fetch_points
from hwmodels.outcome import Counts, Outcome
from hwmodels.price import price
from hwmodels.replay_walk import Cuts, cut_range
from hwmodels.schedule import Hold, Item, Loop, Nest, Spatial
from hwmodels.skeleton import cores
from instances.machine import Machine
from instances.workload import DIMS, REDUCTION, RELEVANT, Layer
from solver.plan import LayerPlan, Plan

__all__ = ["Buffer", "buffers", "pseudo_code", "show"]

_INDENT = "  "
_AXES = {
    "IN": {"CHW": "bgnrc", "HWC": "brcgn"},
    "OUT": {"CHW": "bgmrc", "HWC": "brcgm"},
    "W": {"OIHW": "gmnij", "OHWI": "gmijn"},
}
_KERNEL = {"r": "i", "c": "j"}


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


class _Nest:
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
        self.outcome: Outcome = price(layer, machine, nest)

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

    def lengths(self, dim: str, level: int) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
        """Starts and ends of the pieces of a dimension after `level` loops."""
        return self.cuts[dim].start[level], self.cuts[dim].stop[level]

    def extents(self, operand: str) -> dict[str, int]:
        """The largest tile, per axis in storage order."""
        machine, level = self.machine, self.held(operand)
        layout = {"IN": machine.in_layout, "OUT": machine.out_layout, "W": machine.w_layout}[operand]
        found = {}
        for d in _AXES[operand][layout]:
            start, stop = self.lengths(d, level[d])
            if operand == "IN" and d in _KERNEL:
                window = input_windows(self.layer)[d]
                tap, end = self.lengths(_KERNEL[d], level[_KERNEL[d]])
                first = np.maximum(start[:, None] * window.stride - window.pad + tap * window.dilation, 0)
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
        return machine.psum_bytes if operand == "OUT" and unfinished else sizes[operand]


def buffers(layer: Layer, machine: Machine, nest: Nest) -> tuple[Buffer, ...]:
    """Lay the buffers of a core out in its memories, one after the other in the order of the Holds.

    Machines that count uniform tiles are laid out with the true largest ones, which are no larger.
    """
    return tuple(_laid(_Nest(layer, machine, nest)))


def _laid(found: _Nest) -> Iterator[Buffer]:
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


# ---- the code ------------------------------------------------------------------------------------------------


def pseudo_code(layer: Layer, machine: Machine, nest: Nest) -> str:
    """Return the nest as loops with the transfers where they happen.

    A transfer stands directly inside the innermost loop outside the operand's Hold that it depends on and that cuts
    something (docs/nest.md); ``to`` excludes its end.

    Raises
    ------
    InputError
        If the nest is malformed for the layer or the machine.
    """
    return "\n".join(_Code(_Nest(layer, machine, nest)).lines()) + "\n"


@dataclass(frozen=True)
class _Piece:
    """The current piece of a dimension: its begin and end as texts."""

    lo: str
    hi: str


class _Code:
    def __init__(self, found: _Nest) -> None:
        self.found, self.layer, self.machine = found, found.layer, found.machine
        self.piece = {d: _Piece("0", str(self.layer.extent(d))) for d in DIMS}
        self.names: dict[str, int] = dict.fromkeys(DIMS, 0)
        self.visits: list[tuple[Loop, str, str]] = []

    def lines(self) -> list[str]:
        """All lines."""
        head = []
        for depth, item in enumerate(self.found.spatial):
            units = {"tle": "clusters", "tlt": "cores of the cluster"}[item.over]
            head.append(_INDENT * depth + f"parallel {self._loop(item, None)}  # over the {units}")
        inner = self._body(0)
        return [*head, *(_INDENT * len(self.found.spatial) + line for line in inner)]

    def _loop(self, item: Loop | Spatial, cuts: Cuts | None) -> str:
        """The head of a loop; the piece becomes the loop's."""
        d, before = item.dim, self.piece[item.dim]
        name = f"{d}{self.names[d]}"
        self.names[d] += 1
        text = f"for {name} in range({before.lo}, {before.hi}, {item.step}):"
        even = cuts is not None and (cuts.lengths == item.step).all()
        end = f"{name} + {item.step}"
        self.piece[d] = _Piece(name, end if even else f"min({end}, {before.hi})")
        return text

    def _body(self, at: int) -> list[str]:
        """The lines from item `at` inwards."""
        lines: list[str] = []
        for op, point in self.found.points.items():
            if point.fetching == at:
                lines += self._open() if op == "OUT" else [self._load(op, point)]
        if at == len(self.found.items):
            lines.append(self._compute())
        else:
            lines += self._item(self.found.items[at], at)
        if self.found.points["OUT"].fetching == at:
            lines += self._close()
        return lines

    def _item(self, item: Item, at: int) -> list[str]:
        if isinstance(item, Hold):
            return self._body(at + 1)
        assert isinstance(item, Loop)
        kept, names = self.piece[item.dim], self.names[item.dim]
        cuts = self._level(item.dim)
        head = self._loop(item, cuts)
        trips = f"{cuts.leaves} pieces" + ("" if (cuts.lengths == item.step).all() else f", last {cuts.lengths[-1]}")
        if item.dim in REDUCTION:
            self.visits.append((item, self.piece[item.dim].lo, kept.lo))
        ends = self.piece[item.dim]
        lines = [f"{head}  # {trips}", *(_INDENT + line for line in self._body(at + 1))]
        assert ends
        self.piece[item.dim], self.names[item.dim] = kept, names
        if item.dim in REDUCTION:
            self.visits.pop()
        return lines

    def _level(self, dim: str) -> Cuts:
        """The pieces that the loop now opened makes."""
        level = self.names[dim] - sum(s.dim == dim for s in self.found.spatial) + 1
        cuts = self.found.cuts[dim]
        return Cuts(cuts.start[: level + 1], cuts.stop[: level + 1], cuts.first[:level], cuts.number[:level])

    # ---- statements --------------------------------------------------------------------------------------------

    def _box(self, dims: str, operand: str = "") -> str:
        """The ranges of a box; input rows and columns as the window sees them, inside the map."""
        parts = []
        for d in dims:
            piece = self.piece[d]
            if operand == "IN" and d in _KERNEL:
                lo, hi = self._window(d)
                parts.append(f"{'rows' if d == 'r' else 'columns'} {lo} to {hi}")
            elif self.layer.extent(d) > 1:
                parts.append(f"{d} {piece.lo} to {piece.hi}")
        return ", ".join(parts)

    def _window(self, dim: str) -> tuple[str, str]:
        window, piece, taps = input_windows(self.layer)[dim], self.piece[dim], self.piece[_KERNEL[dim]]
        if (piece.lo, taps.lo) == ("0", "0") and (piece.hi, taps.hi) == (
            str(self.layer.extent(dim)), str(window.taps)
        ):  # fmt: skip
            return "0", str(window.size)
        first = _affine((piece.lo, window.stride), (taps.lo, window.dilation), -window.pad)
        ends = (piece.hi, window.stride), (taps.hi, window.dilation)
        last = _affine(*ends, 1 - window.stride - window.dilation - window.pad)
        lo = f"max(0, {first})" if window.pad else first
        beyond = window.clipping(0, self.layer.extent(dim))[1] > 0
        return lo, f"min({last}, {window.size})" if beyond else last

    def _moved(self, counts: Counts, bytes_most: int | None = None) -> str:
        text = f"{counts.calls:,} calls, {counts.segments:,} runs, {counts.bytes:,} bytes in all"
        return text + (f", at most {bytes_most:,} a call" if bytes_most is not None else "")

    def _load(self, operand: str, point: FetchPoint) -> str:
        counts = self.found.outcome.by_operand[operand]
        largest = prod(self.found.extents(operand).values()) * self.found.element(operand)
        note = self._moved(counts, largest)
        if self.machine.timing == "double_buffered" and self.found.copies(operand) == 2:
            note += "; one step ahead"
        if operand == "W":
            bias = " with biases" if self.layer.bias and self.machine.bias_bytes else ""
            return f"load W[{self._box('gmnij') or 'all'}]{bias}  # {note}"
        box = self._box("bgnrc", "IN")
        if point.axis is None:
            return f"load IN[{box}]  # {note}"
        what = "rows" if point.axis == 3 else "columns"
        return f"slide IN[{box}]: load the {what} behind those on chip, all of them at the first piece  # {note}"

    def _visit(self) -> tuple[str, str] | None:
        """When a visit of OUT is the first and when the last one, if there are several."""
        if not self.visits:
            return None
        first = " and ".join(dict.fromkeys(f"{name} == 0" for _, name, _ in self.visits))
        last = {loop.dim: self.piece[loop.dim] for loop, _, _ in self.visits}
        return first, " and ".join(f"{piece.hi} == {self.layer.extent(d)}" for d, piece in last.items())

    def _open(self) -> list[str]:
        box, visit = self._box("bgmrc"), self._visit()
        psum = self.found.outcome.by_operand["PSUM"]
        if visit is None and not self.machine.psum_first_read:
            return [f"OUT[{box}] = 0"]
        ahead = self.machine.timing == "double_buffered" and self.found.copies("OUT") == 2
        note = f"{self._moved(psum)}, both ways" + ("; one step ahead" if ahead else "")
        if visit is None or self.machine.psum_first_read:
            return [f"load partial sums OUT[{box}]  # {note}"]
        return [f"if {visit[0]}: OUT[{box}] = 0", f"else: load partial sums OUT[{box}]  # {note}"]

    def _close(self) -> list[str]:
        box, visit = self._box("bgmrc"), self._visit()
        behind = self.machine.timing == "double_buffered" and self.found.copies("OUT") == 2
        note = self._moved(self.found.outcome.by_operand["OUT"]) + ("; one step behind" if behind else "")
        store = f"store OUT[{box}]  # {note}"
        return [store] if visit is None else [f"if {visit[1]}: {store}", f"else: store partial sums OUT[{box}]"]

    def _compute(self) -> str:
        largest = {d: int(self.found.cuts[d].lengths.max()) for d in DIMS}
        shape = " x ".join(f"{d} {n}" for d, n in largest.items() if n > 1) or "one product"
        steps = prod(self.found.cuts[d].leaves for d in DIMS)
        step = "OUT += W * IN" if "W" in self.layer.operands else "OUT += IN"
        return f"{step}  # {steps:,} steps, at most {shape}"


def _affine(one: tuple[str, int], two: tuple[str, int], constant: int) -> str:
    """``one*a + two*b + constant`` without what is zero, one or a number already."""
    terms = []
    for text, factor in (one, two):
        if text.isdigit():
            constant += int(text) * factor
        elif factor == 1:
            terms.append(text)
        else:
            terms.append(f"{text}*{factor}" if text.isidentifier() else f"({text})*{factor}")
    if constant or not terms:
        terms.append(str(constant))
    return " + ".join(terms).replace("+ -", "- ")


# ---- plans ---------------------------------------------------------------------------------------------------


def show(plan: Plan, layer: str | None = None) -> str:
    """Return one layer of a plan as text, or all.

    Raises
    ------
    InputError
        If the plan has no such layer.
    """
    rows = plan.layers if layer is None else (plan.layer(layer),)
    return "\n".join(_layer_text(plan, row) for row in rows)


def _layer_text(plan: Plan, row: LayerPlan) -> str:
    lines = [f"{row.layer}: {_workload(row.workload)}, on {plan.machine}"]
    if row.schedule is None or row.objective is None or row.measures is None:
        why = f": {'; '.join(row.conflicts)}" if row.conflicts else ""
        return "\n".join([*lines, f"{row.status}, there is no schedule{why}", ""])
    known = "no bound" if row.bound is None else f"bound {row.bound:,}"
    lines.append(f"{plan.objectives[0]} {row.objective.value:,} {row.objective.unit} ({row.status}, {known})")
    if row.limits is not None:
        limit = row.limits.lower_bound_bytes
        lines.append(f"{row.measures.bytes:,} bytes move; no plan moves fewer than {limit:,}")
    machine, nest = plan.machine_data, row.schedule.to_nest()
    for memory, size in machine.memories.items():
        mine = [b for b in buffers(row.workload, machine, nest) if b.memory == memory]
        left = size - sum(b.size for b in mine)
        lines += ["", f"memory {memory}, {size:,} bytes of a core, {left:,} free:", " address      bytes  buffer"]
        lines += [str(b) for b in mine]
    lines += ["", pseudo_code(row.workload, machine, nest)]
    if machine.timing == "double_buffered":
        lines += [
            "time = loads of the first step + sum over the steps of max(compute, loads of the next, stores of the one "
            "before) + stores of the last;",
            "operands with one buffer are loaded and stored between the steps",
            "",
        ]
    return "\n".join(lines)


def _workload(layer: Layer) -> str:
    """A layer in words."""
    if layer.kind == "matmul":
        return f"matmul {layer.r}x{layer.n} by {layer.n}x{layer.m}" + (f", {layer.b * layer.g} times" * (layer.g > 1))
    shape = f"{layer.h}x{layer.l}x{layer.g * layer.n} -> {layer.r}x{layer.c}x{layer.g * layer.m}"
    parts = [f"{layer.kind} {shape}"]
    if layer.kh * layer.kw > 1:
        parts.append(f"kernel {layer.kh}x{layer.kw}")
    if (layer.stride_h, layer.stride_w) != (1, 1):
        parts.append(f"stride {layer.stride_h}x{layer.stride_w}")
    if (layer.dilation_h, layer.dilation_w) != (1, 1):
        parts.append(f"dilation {layer.dilation_h}x{layer.dilation_w}")
    if layer.pad_top or layer.pad_left:
        parts.append(f"padding {layer.pad_top} above, {layer.pad_left} left")
    parts += [f"{layer.g} groups"] * (layer.g > 1) + [f"batch {layer.b}"] * (layer.b > 1)
    return ", ".join(parts)
