"""A layer's plan as pseudo-code: loops, transfers and buffers, to write the code of a machine from."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from hwmodels.nest.boxes import input_windows
from hwmodels.nest.execute import FetchPoint
from hwmodels.nest.price import price
from hwmodels.nest.replay_cuts import Cuts
from hwmodels.outcome import Counts
from hwmodels.schedule import Hold, Item, Loop, Nest, Spatial
from instances.machine import Machine
from instances.workload import DIMS, REDUCTION, Layer
from solver.tiling.buffers import KERNEL, NestOnCore

_INDENT = "  "


# ---- the code ------------------------------------------------------------------------------------------------


def pseudo_code(layer: Layer, machine: Machine, nest: Nest) -> str:
    """Return the nest as loops with the transfers where they happen.

    A transfer stands directly inside the innermost loop outside the operand's Hold that it depends on and that cuts
    something (docs/nest.md); ``to`` excludes its end. ``pieces(lo, hi, at)`` are the pieces (begin, end) of lo to hi
    that meet at those of the places that lie between.

    Raises
    ------
    InputError
        If the nest is malformed for the layer or the machine.
    """
    return "\n".join(_Code(NestOnCore(layer, machine, nest)).lines()) + "\n"


@dataclass(frozen=True)
class _Piece:
    """The current piece of a dimension: its begin and end as texts."""

    lo: str
    hi: str


class _Code:
    def __init__(self, found: NestOnCore) -> None:
        self.found, self.layer, self.machine = found, found.layer, found.machine
        self.outcome = price(found.layer, found.machine, found.nest)
        self.piece = {d: _Piece("0", str(self.layer.extent(d))) for d in DIMS}
        self.begin = dict.fromkeys(DIMS, "0")  # of the core's range, from which places are counted
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
        if isinstance(item, Loop) and item.cuts:
            self.piece[d] = _Piece(name, f"{name}_end")
            places = ", ".join(_affine((self.begin[d], 1), ("0", 1), place) for place in item.cuts)
            return f"for {name}, {name}_end in pieces({before.lo}, {before.hi}, at=[{places}]):"
        even = cuts is not None and (cuts.lengths == item.step).all()
        end = f"{name} + {item.step}"
        self.piece[d] = _Piece(name, end if even else f"min({end}, {before.hi})")
        if isinstance(item, Spatial):
            self.begin[d] = name
        return f"for {name} in range({before.lo}, {before.hi}, {item.step}):"

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
        if item.dim in REDUCTION:
            self.visits.append((item, self.piece[item.dim].lo, kept.lo))
        lines = [f"{head}  # {_trips(cuts)}", *(_INDENT + line for line in self._body(at + 1))]
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
            if operand == "IN" and d in KERNEL:
                lo, hi = self._window(d)
                parts.append(f"{'rows' if d == 'r' else 'columns'} {lo} to {hi}")
            elif self.layer.extent(d) > 1:
                parts.append(f"{d} {piece.lo} to {piece.hi}")
        return ", ".join(parts)

    def _window(self, dim: str) -> tuple[str, str]:
        window, piece, taps = input_windows(self.layer)[dim], self.piece[dim], self.piece[KERNEL[dim]]
        if (piece.lo, taps.lo) == ("0", "0") and (piece.hi, taps.hi) == (
            str(self.layer.extent(dim)), str(window.taps)
        ):  # fmt: skip
            return str(window.first), str(window.size)
        first = _affine((piece.lo, window.stride), (taps.lo, window.dilation), -window.pad)
        ends = (piece.hi, window.stride), (taps.hi, window.dilation)
        last = _affine(*ends, 1 - window.stride - window.dilation - window.pad)
        lo = f"max({window.first}, {first})" if window.pad or window.first else first
        beyond = window.clipping(0, self.layer.extent(dim))[1] > 0
        return lo, f"min({last}, {window.size})" if beyond else last

    def _moved(self, counts: Counts, bytes_most: int | None = None) -> str:
        text = f"{counts.calls:,} calls, {counts.segments:,} runs, {counts.bytes:,} bytes in all"
        return text + (f", at most {bytes_most:,} a call" if bytes_most is not None else "")

    def _load(self, operand: str, point: FetchPoint) -> str:
        counts = self.outcome.by_operand[operand]
        sizes = (self.found.extents(operand, tile) for tile in self.found.tiles(operand))
        largest = max(prod(extents.values()) for extents in sizes) * self.found.element(operand)
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
        psum = self.outcome.by_operand["PSUM"]
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
        note = self._moved(self.outcome.by_operand["OUT"]) + ("; one step behind" if behind else "")
        store = f"store OUT[{box}]  # {note}"
        return [store] if visit is None else [f"if {visit[1]}: {store}", f"else: store partial sums OUT[{box}]"]

    def _compute(self) -> str:
        largest = {d: int(self.found.cuts[d].lengths.max()) for d in DIMS}
        shape = " x ".join(f"{d} {n}" for d, n in largest.items() if n > 1) or "one product"
        steps = prod(self.found.cuts[d].leaves for d in DIMS)
        step = "OUT += W * IN" if "W" in self.layer.operands else "OUT += IN"
        return f"{step}  # {steps:,} steps, at most {shape}"


def _trips(cuts: Cuts) -> str:
    """How many pieces a loop makes in all, and how large they are if not all are as large as the largest."""
    most, last = int(cuts.lengths.max()), int(cuts.lengths[-1])
    if (cuts.lengths[:-1] != most).any():
        return f"{cuts.leaves} pieces of at most {most}"
    return f"{cuts.leaves} pieces" + (f", last {last}" if last < most else "")


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
