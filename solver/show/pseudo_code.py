"""A layer's plan as pseudo-code: loops, transfers and buffers, to write the code of a machine from.

A `Sum` is a sum of loop variables as a text: where pieces and windows begin and end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod

from hwmodels.nest.buffers import KERNEL, NestOnCore
from hwmodels.nest.price.boxes import input_windows
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.replay.cuts import Cuts
from hwmodels.nest.replay.execute import FetchPoint
from hwmodels.outcome import Counts
from hwmodels.schedule import Hold, Item, Loop, Nest, Spatial
from instances.jsonfile import many
from instances.machine.machine import Machine
from instances.network.workload import DIMS, REDUCTION, RELEVANT, Layer


@dataclass(frozen=True)
class Sum:
    """Loop variables, each times a number, and a number."""

    terms: tuple[tuple[str, int], ...] = ()
    constant: int = 0

    @classmethod
    def of(cls, name: str) -> Sum:
        """A variable."""
        return cls(((name, 1),))

    def __add__(self, other: Sum | int) -> Sum:
        """The sum of both; equal variables become one term."""
        if isinstance(other, int):
            return Sum(self.terms, self.constant + other)
        factors = Counter(dict(self.terms))
        factors.update(dict(other.terms))
        return Sum(tuple(factors.items()), self.constant + other.constant)

    def __mul__(self, factor: int) -> Sum:
        """All of it so many times."""
        return Sum(tuple((name, number * factor) for name, number in self.terms), self.constant * factor)

    def __str__(self) -> str:
        parts = [name if factor == 1 else f"{name}*{factor}" for name, factor in self.terms]
        parts += [str(self.constant)] if self.constant or not parts else []
        return " + ".join(parts).replace("+ -", "- ")


def least(sums: Iterable[Sum]) -> str:
    """The smallest of some sums; of those that are numbers only the smallest is named."""
    return _chosen("min", sums, largest=False)


def most(sums: Iterable[Sum]) -> str:
    """The largest of some sums, likewise."""
    return _chosen("max", sums, largest=True)


def _chosen(name: str, sums: Iterable[Sum], *, largest: bool) -> str:
    found = tuple(dict.fromkeys(sums))
    numbers = [one.constant for one in found if not one.terms]
    texts = [str(one) for one in found if one.terms]
    if numbers:
        number = str(max(numbers) if largest else min(numbers))
        texts = [number, *texts] if largest else [*texts, number]
    return texts[0] if len(texts) == 1 else f"{name}({', '.join(texts)})"


_INDENT = "  "
#: What lies along an axis of IN.
_ALONG = {3: "rows", 4: "columns"}


# ---- the code ------------------------------------------------------------------------------------------------


def pseudo_code(layer: Layer, machine: Machine, nest: Nest) -> str:
    """Return the nest as loops with the transfers where they happen; lines about the order of the loops come first.

    A transfer stands directly inside the innermost loop outside the operand's Hold that it depends on and that cuts
    something (docs/nest.md); ``to`` excludes its end. ``pieces(lo, hi, at)`` are the pieces (begin, end) of lo to hi
    that meet at those of the places that lie between. Raises InputError if the nest is malformed.
    """
    return "\n".join(_Code(NestOnCore(layer, machine, nest)).lines()) + "\n"


@dataclass(frozen=True)
class _Piece:
    """The current piece of a dimension: its begin, and sums of which the least is its end."""

    lo: Sum
    ends: tuple[Sum, ...]

    @property
    def hi(self) -> str:
        """The end as a text."""
        return least(self.ends)


class _Code:
    def __init__(self, found: NestOnCore) -> None:
        self.found, self.layer, self.machine = found, found.layer, found.machine
        self.outcome = price(found.layer, found.machine, found.nest)
        self.piece = {d: _Piece(Sum(), (Sum(constant=self.layer.extent(d)),)) for d in DIMS}
        self.begin = dict.fromkeys(DIMS, Sum())  # of the core's range, from which places are counted
        self.names: dict[str, int] = dict.fromkeys(DIMS, 0)
        self.variables: dict[int, str] = {}  # of the loops outside, by item
        self.visits: list[tuple[Loop, str, Sum]] = []

    def lines(self) -> list[str]:
        """All lines."""
        head = list(_order(self.found))
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
            self.piece[d] = _Piece(Sum.of(name), (Sum.of(f"{name}_end"),))
            places = ", ".join(str(self.begin[d] + place) for place in item.cuts)
            return f"for {name}, {name}_end in pieces({before.lo}, {before.hi}, at=[{places}]):"
        even = cuts is not None and (cuts.lengths == item.step).all()
        end = Sum.of(name) + item.step
        self.piece[d] = _Piece(Sum.of(name), (end,) if even else (end, *before.ends))
        if isinstance(item, Spatial):
            self.begin[d] = Sum.of(name)
        return f"for {name} in range({before.lo}, {before.hi}, {item.step}):"

    def _body(self, at: int) -> list[str]:
        """The lines from item `at` inwards."""
        lines: list[str] = []
        for op, point in self.found.points.items():
            if op == "IN" and self.layer.broadcast:
                lines += [self._load_part(lacks) for place, lacks in self.found.fetches if place == at]
            elif point.fetching == at:
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
        self.variables[at] = str(self.piece[item.dim].lo)
        comes_back = item.dim in REDUCTION and len(cuts.start[-1]) > len(cuts.start[-2])
        if comes_back:
            self.visits.append((item, self.variables[at], kept.lo))
        lines = [f"{head}  # {_trips(cuts)}", *(_INDENT + line for line in self._body(at + 1))]
        self.piece[item.dim], self.names[item.dim] = kept, names
        if comes_back:
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
        first = piece.lo * window.stride + taps.lo * window.dilation + -window.pad
        beyond = 1 - window.stride - window.dilation - window.pad
        ends = [a * window.stride + b * window.dilation + beyond for a in piece.ends for b in taps.ends]
        starts = [Sum(constant=window.first), first] if window.pad or window.first else [first]
        if window.clipping(0, self.layer.extent(dim))[1] > 0:
            ends.append(Sum(constant=window.size))
        return most(starts), least(ends)

    def _moved(self, counts: Counts, bytes_most: int | None = None) -> str:
        numbers = f"{many(counts.calls, 'call')}, {many(counts.segments, 'run')}, {many(counts.bytes, 'byte')} in all"
        return numbers + (f", at most {bytes_most:,} a call" if bytes_most is not None else "")

    def _load(self, operand: str, point: FetchPoint) -> str:
        found = self.found
        tiles = [found.extents(operand, tile) for tile in found.tiles(operand)]
        largest = max(
            prod(extents.values()) * found.element(operand) + found.biases(operand, extents) for extents in tiles
        )
        note = self._moved(self.outcome.by_operand[operand], largest) + self._shared(operand)
        if self.machine.timing == "double_buffered" and found.copies(operand) == 2:
            note += "; one step ahead"
        if operand == "W":
            bias = " with biases" if self.layer.bias and self.machine.bias_bytes else ""
            return f"load W[{self._box('gmnij') or 'all'}]{bias}  # {note}"
        names = ", ".join(found.names("IN"))
        note += "; every input by itself" if len(tiles) > 1 else ""
        box, slide = self._box("bgnrc", "IN"), self._slide(point)
        if not slide:
            return f"load {names}[{box}]  # {note}"
        return f"slide {names}{' in lines' if found.lines else ''}[{box}]: {slide}  # {note}"

    def _load_part(self, lacks: str) -> str:
        """The load of all inputs that are broadcast along the same dimensions."""
        found, layer = self.found, self.layer
        mine = [(k, tile) for k, tile in found.inputs if layer.patterns[k] == lacks]
        largest = max(prod(found.extents("IN", tile).values()) for _, tile in mine) * found.element("IN")
        numbers = [k for k, _ in mine]
        # beside an input of the result's shape, so that the layer is one: what that one moves is taken off
        beside, alone = (
            price(
                layer.model_copy(
                    update={
                        "inputs": len(given) + 1,
                        "broadcast": ("", *(lacks for _ in given)) if lacks and given else (),
                        "resident_in": (0, *(layer.residents[k] for k in given)) if any(layer.residents) else (),
                    }
                ),
                self.machine,
                found.nest,
            ).by_operand["IN"]
            for given in (numbers, [])
        )
        moved = Counts(**{kind: n - alone.to_json()[kind] for kind, n in beside.to_json().items()})
        note = self._moved(moved, largest)
        if self.machine.timing == "double_buffered" and found.copies("IN") == 2:
            note += "; one step ahead"
        note += "; every input by itself" if len(mine) > 1 else ""
        names = ", ".join(f"IN{k + 1}" if layer.inputs > 1 else "IN" for k in numbers)
        box = self._box("".join(d for d in "bgnrc" if d not in lacks), "IN")
        return f"load {names}[{box or 'all'}]  # {note}"

    def _slide(self, point: FetchPoint) -> str:
        """What is loaded of a tile of IN that slides; empty if all of it is."""
        if self.found.snake:
            moved = " or ".join(f"only {d}" for d in self.found.sliding)
            return (
                f"where {moved} moved, load what the tile before did not hold, on either side; else all"
                if moved
                else ""
            )
        if point.axis is None:
            return ""
        word, loop = _ALONG[point.axis], self.variables[point.fetching - 1]
        if not self.found.lines or point.outer is None:
            return f"load the {word} behind those on chip, all of them at the first piece of {loop}"
        across = _ALONG[7 - point.axis]
        return (
            f"load the {across} behind those of the pass before (at the first piece of {self.variables[point.outer]} "
            f"all) x the {word} behind those of the window before (at the first piece of {loop} all)"
        )

    def _shared(self, operand: str) -> str:
        """Whether one load serves several cores."""
        level = self.machine.broadcast.levels[operand]
        cut = [i.dim for i in self.found.spatial if level == "chip" or (level == "tle" and i.over == "tlt")]
        if self.machine.reading == "literal" or set(cut) <= RELEVANT[operand]:
            return ""
        return f"; one load for all cores{' of a cluster' * (level == 'tle')} that need the same tile"

    def _visit(self) -> tuple[str, str] | None:
        """When a visit of OUT is the first and when the last one, if there are several."""
        if not self.visits:
            return None
        if self.found.snake:
            names = " and ".join(name for _, name, _ in self.visits)
            pieces = "pieces of their passes" if len(self.visits) > 1 else "piece of its pass"
            return f"{names} at the first {pieces}", f"{names} at the last {pieces}"
        first = " and ".join(f"{name} == {begin}" for _, name, begin in self.visits)
        last = {loop.dim: self.piece[loop.dim] for loop, _, _ in self.visits}
        return first, " and ".join(f"{piece.hi} == {self.layer.extent(d)}" for d, piece in last.items())

    def _open(self) -> list[str]:
        box, visit = self._box("bgmrc"), self._visit()
        first_read = self.machine.psum_first_read
        kept = " unless they are there" if visit and self.found.snake else ""
        ahead = self.machine.timing == "double_buffered" and self.found.copies("OUT") == 2
        ways = ", both ways" if visit else ""
        note = self._moved(self.outcome.by_operand["PSUM"]) + ways + ("; one step ahead" if ahead else "")
        load = f"load partial sums OUT[{box}]{kept}  # {note}"
        if first_read:
            return [load]
        if visit is None:
            return [] if self.layer.kind == "eltwise" else [self._begin(box)]
        return [f"if {visit[0]}: {self._begin(box)}", f"else: {load}"]

    def _begin(self, box: str) -> str:
        """How a tile of OUT begins that has no partial sums."""
        return f"OUT[{box}] = {'0' if 'W' in self.layer.operands else 'neutral'}"

    def _close(self) -> list[str]:
        box, visit = self._box("bgmrc"), self._visit()
        behind = self.machine.timing == "double_buffered" and self.found.copies("OUT") == 2
        note = self._moved(self.outcome.by_operand["OUT"]) + ("; one step behind" if behind else "")
        store = f"store OUT[{box}]  # {note}"
        kept = " unless the next tile is the same" if self.found.snake else ""
        return [store] if visit is None else [f"if {visit[1]}: {store}", f"else: store partial sums OUT[{box}]{kept}"]

    def _compute(self) -> str:
        largest = {d: int(self.found.cuts[d].lengths.max()) for d in DIMS}
        shape = " x ".join(f"{d} {n}" for d, n in largest.items() if n > 1) or "one product"
        steps = prod(self.found.cuts[d].leaves for d in DIMS)
        note = f"{many(steps, 'step')}, at most {shape}"
        if "W" in self.layer.operands:
            return f"OUT += W * IN  # {note}"
        number = self.layer.inputs
        inputs = ", ".join(f"IN{k}" for k in range(1, number + 1)) if number > 1 else "IN"
        if self.layer.kind == "eltwise":
            return f"OUT = fn({inputs})  # {note}; fn: that of the layer"
        begins = "neutral: where it begins (max: the least value, sums: 0)"
        return f"OUT = fn(OUT, {inputs})  # {note}; fn: that of the layer; {begins}"


def _order(found: NestOnCore) -> Iterator[str]:
    """What is to be said of the order of the steps if the loops may run to and fro."""
    if found.snake:
        yield "# Loops run to and fro (snake): a loop runs backwards where the piece numbers of the loops outside it"
        yield "# (the lowest piece of a pass is 0) add up to an odd number. A tile that stays is not loaded again."
    elif found.machine.snake:
        yield "# All loops run forwards (not in snake order), as IN lies in lines."


def _trips(cuts: Cuts) -> str:
    """How many pieces a loop makes in all, and how large they are if not all are as large as the largest."""
    longest, last = int(cuts.lengths.max()), int(cuts.lengths[-1])
    if (cuts.lengths[:-1] != longest).any():
        return f"{cuts.leaves} pieces of at most {longest}"
    return many(cuts.leaves, "piece") + (f", last {last}" if last < longest else "")
