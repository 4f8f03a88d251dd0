"""The C file of a layer: its buffers and tiles, what a step computes, the transfers, the loops.

For every set of fetch points that cores have there is one function: of a core with less work a loop may cut nothing, so
that another one is the innermost that an operand depends on. Cores run one after the other.

Double buffering
    A step is computed one step late: its loads have been started, then the step before is computed, then all transfers
    are waited for. An operand with one buffer is loaded after the late step. A tile of OUT is stored after its last
    step, and its buffer is written again only by steps that come after another wait.

Loops (`Loops`)
    Transfers stand directly inside the innermost loop that fetches (docs/nest.md).

A step (`StepCode`)
    One row of results at a time: the totals of a row begin as zero (with the bias) or as the partial sums of the tile,
    take the products of every input channel and tap along the row, and are written back. The row lies along columns,
    or along rows for layers with one column (products of matrices).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hwmodels.nest.replay.execute import FetchPoint
from hwmodels.schedule import Hold, Item, Loop
from instances.network.workload import DIMS, REDUCTION, depends
from solver.show.pseudo_code import pseudo_code
from solver.uses.emit import tiles
from solver.uses.emit.frame import Frame, Kept, window_of
from solver.uses.emit.text import block, call, comment, function, indented, larger, loop, quotient, smaller, total
from solver.uses.emit.values import rows_of


class StepCode:
    """The functions `compute` (a step) and `finish` (partial sums of a tile become results)."""

    def __init__(self, frame: Frame) -> None:
        self.frame, layer = frame, frame.layer
        rows = layer.c == layer.l == layer.kw == 1 and not any(frame.kept_in)
        #: The dimension of results that a row lies along, and the other one.
        self.along, self.across = ("r", "c") if rows else ("c", "r")
        #: The number of a result in its row.
        self.at = total((self.along, 1), (self._lo(self.along), -1))

    def lines(self) -> list[str]:
        """Both functions."""
        final: list[str] = []
        for text in self.frame.numbers.functions:
            final += [*text, ""]
        return [*final, *self._compute(), *(["", *self._finish()] if self.frame.cut else [])]

    def _lo(self, d: str) -> str:
        return self.frame.lo(d, "s->")

    def _loop(self, d: str, body: list[str]) -> list[str]:
        return loop(d, self._lo(d), self.frame.hi(d, "s->"), body)

    def _compute(self) -> list[str]:
        frame, numbers, along = self.frame, self.frame.numbers, self.along
        longest = int(frame.found.cuts[along].lengths.max())
        target = self.frame.place("OUT", "out", {d: d for d in "bgmrc"})
        begin = f"s->fresh ? first : {numbers.read(numbers.sums, target)}" if frame.cut else "first"
        made = f"row[{self.at}]"
        kind, value = (numbers.sums, made) if frame.cut else (numbers.result, numbers.final(made))
        body = [
            f"{numbers.total} row[{longest}] = {{0}};",
            *numbers.places(f"row[{longest}]"),
            f"const {numbers.total} first = {self._first()};",
        ]
        clear = self._loop(along, [f"{made} = {begin};"])
        body += clear if longest > 1 else block("", clear)
        body += self._products()
        body += block("", self._loop(along, [numbers.write(kind, target, value)]))
        for d in (self.across, "m", "g", "b"):
            body = self._loop(d, body)
        head = ["const certile_tile *out = &s->out;"]
        head += ["const certile_tile *w = &s->w;"] if frame.layer.weights != "none" else []
        head += ["const certile_tile *bias = &s->bias;"] if self.frame.has_bias_tile else []
        said = "Compute a step, one row of results at a time."
        return function("static void compute", ["const step *s"], head + body, said)

    def _first(self) -> str:
        """What totals begin with."""
        numbers, layer = self.frame.numbers, self.frame.layer
        if not layer.bias:
            return numbers.start
        if not self.frame.has_bias_tile:
            return numbers.read(numbers.bias, f"bias_dram.base + ((ptrdiff_t)g * {layer.m} + m) * 4")
        pitch = self.frame.extents("W")[self.frame.order("W").index("m")]
        place = f"((ptrdiff_t)(g - bias->first[3]) * {pitch} + m - bias->first[4])"
        return numbers.read(numbers.bias, f"bias->base + {place} * {self.frame.machine.bias_bytes}")

    def _products(self) -> list[str]:
        """Add what every input, input channel and tap gives to the row."""
        lined, lines = bool(self.frame.lines), []
        for k in range(self.frame.layer.inputs):
            tile = [f"const certile_{'lines' if lined else 'tile'} *in = &s->in[{k}];"]
            body = tile if k in self.frame.loaded else []
            body += self._in_lines(k) if lined else self._in_tile(k)
            lines += block("", body)
        return lines

    def _weight(self) -> str:
        return self.frame.numbers.weight(self.frame.place("W", "w", {d: d for d in "gmnij"}))

    def _in_tile(self, k: int) -> list[str]:
        """Tap by tap: the results whose input is on the map."""
        along, across, numbers = self.along, self.across, self.frame.numbers
        window, over = (window_of(self.frame.layer, d) for d in (along, across))
        on_map = total(("1", window.pad), (window.tap, -window.dilation))
        until = total(("1", window.size + window.pad), (window.tap, -window.dilation))
        body = [
            f"const int begin = {larger(self._lo(along), quotient(on_map, window.stride))};",
            f"const int end = {smaller(self.frame.hi(along, 's->'), quotient(until, window.stride))};",
        ]
        weighted = self.frame.layer.weights != "none"
        body += [f"const {numbers.total} weight = {self._weight()};"] if weighted else []
        axis, at = self.frame.order("IN").index(along), window.at(along)
        kept = self.frame.kept_in[k] if self.frame.kept_in else None
        if kept:
            ring, pitch, first = "ring" if self.frame.ring(along) else "", "pitch", "first"
        else:
            ring, pitch = str(self.frame.ring(along) or ""), str(self.frame.pitches("IN", k)[along])
            first = f"in->first[{axis}]"
        place = f"line + (ptrdiff_t){f'(at % {ring})' if ring else 'at'} * {pitch}"
        lacks = self.frame.layer.patterns[k]
        place = "line" if along in lacks else place
        names = {"b": "b", "g": "g", "n": "n", across: "inside", along: at} | dict.fromkeys(lacks, "0")
        value = numbers.given(k, place, ", ".join(names[d] for d in "bgnrc"))
        body += block(f"for (int {along} = begin; {along} < end; {along}++)", [
            *([] if along in lacks else [f"const int at = {at} - {first};"]),
            numbers.add(f"row[{self.at}]", f"{'weight * ' if weighted else ''}{value}", k),
        ])  # fmt: skip
        body = self._loop(window.tap, body)
        names = {"b": "b", "g": "g", "n": "n", across: "inside"}
        line = self.frame.place("IN", "in", names, k) if k in self.frame.loaded else ""
        head = self._kept_line(k, kept, line, axis) if kept else [f"const unsigned char *line = {line};"]
        there = f"if (inside >= 0 && inside < {over.size})"
        body = [f"const int inside = {over.at(across)};", *block(there, [*head, *body])]
        return self._loop("n", self._loop(over.tap, body))

    def _kept_line(self, k: int, kept: Kept, line: str, axis: int) -> list[str]:
        """A row of the map lies where it is kept, or in the tile; one that has no tile always where it is kept."""
        size, lacks = self.frame.machine.in_bytes, self.frame.layer.patterns[k]
        place = kept.place({"b": "b", "g": "g", "n": "n", "r": "inside"}, size)
        if not line:
            columns = ["const int first = 0;", f"const ptrdiff_t pitch = {kept.column * size};"]
            return [*([] if "c" in lacks else columns), f"const unsigned char *line = {place};"]
        ring = self.frame.ring("c")
        columns = [
            *([f"const int ring = there ? {self.frame.layer.l} : {ring};"] if ring else []),
            f"const int first = there ? 0 : in->first[{axis}];",
            f"const ptrdiff_t pitch = there ? {kept.column * size} : {self.frame.pitches('IN', k)['c']};",
        ]
        return [
            f"const int there = inside < {kept.rows};", *([] if "c" in lacks else columns),
            f"const unsigned char *line = there ? {place} : {line};",
        ]  # fmt: skip

    def _in_lines(self, k: int) -> list[str]:
        """In lines every element is found by its row and column."""
        numbers = self.frame.numbers
        place = "certile_lines_at(in, b, g, n, y, x)"
        if self.frame.kept_in and (kept := self.frame.kept_in[k]):
            there = kept.place({"b": "b", "g": "g", "n": "n", "r": "y", "c": "x"}, self.frame.machine.in_bytes)
            place = f"(y < {kept.rows} ? {there} : {place})"
        value = numbers.given(k, place, "b, g, n, y, x")
        weight = f"{self._weight()} * " if self.frame.layer.weights != "none" else ""
        windows = [(name, d, window_of(self.frame.layer, d)) for name, d in (("y", "r"), ("x", "c"))]
        body = [f"const int {name} = {window.at(d)};" for name, d, window in windows]
        inside = " && ".join(f"{name} >= 0 && {name} < {window.size}" for name, _, window in windows)
        body += block(f"if ({inside})", [numbers.add(f"row[{self.at}]", f"{weight}{value}", k)])
        for d in (self.along, "j", "i", "n"):
            body = self._loop(d, body)
        return body

    def _finish(self) -> list[str]:
        """Partial sums become results where they are: elements in ascending order, each no larger than before."""
        numbers, machine, order = self.frame.numbers, self.frame.machine, self.frame.order("OUT")
        pitches = enumerate(zip(order, rows_of(self.frame.extents("OUT")), strict=True))
        number = " + ".join(f"({d} - box->lo[{k}]) * {pitch}" for k, (d, pitch) in pitches)
        value = numbers.read(numbers.sums, f"tile->base + k * {machine.psum_bytes}")
        body = [f"const ptrdiff_t k = {number};", f"const {numbers.total} sum = {value};",
                numbers.write(numbers.result, f"tile->base + k * {machine.out_bytes}", numbers.final("sum")),
        ]  # fmt: skip
        given = ["const certile_tile *tile", "const certile_box *box"]
        said = "Turn the sums of a tile into results, where they are."
        return function("static void finish", given, tiles.over_box(order, body), said)


@dataclass(frozen=True)
class _Head:
    """A loop: what stands before it and at the begin of its body, and when it is at its first and last piece."""

    before: list[str]
    head: str
    body: list[str]
    first: str
    last: str
    odd: str
    """Whether loops inside run backwards."""
    following: list[str]
    """Statements that find the piece after the current one, empty after the last."""


class Loops:
    """Writes the loops of one kind of core."""

    def __init__(self, frame: Frame, points: dict[str, FetchPoint]) -> None:
        self.frame, self.points, self.items = frame, points, frame.found.items
        self.shared = frame.moving if len(frame.cores) > 1 else ()
        #: Begin and end of the current piece of every dimension, as C texts.
        self.piece = {
            d: (f"{d}_lo", f"{d}_hi") if d in self.shared else ("0", str(frame.layer.extent(d))) for d in DIMS
        }
        self.begin = {d: lo for d, (lo, _) in self.piece.items()}
        self.numbers = dict.fromkeys(DIMS, 0)
        self.firsts: list[str] = []
        self.lasts: list[str] = []
        self.odd = "0"
        self.heads: dict[int, _Head] = {}

    def function(self, name: str) -> list[str]:
        """Return the function that runs a core."""
        body = self._body(0)
        body += block("if (held & 4)", ["close_out(out_last);"]) if self.frame.snake else []
        body += ["compute_late();"] if self.frame.late else []
        body += ["certile_dma_wait();"]
        given = [f"{d}_{end}" for d in self.shared for end in ("lo", "hi")]
        unused = [f"(void){text};" for text in given]
        return function(f"static void {name}", [f"int {text}" for text in given], unused + body)

    def _ranges(self, operand: str = "", lacks: str = "") -> list[str]:
        return [text for d in self.frame.dims(operand, lacks) for text in self.piece[d]]

    def _body(self, place: int) -> list[str]:
        lines: list[str] = []
        for operand, point in self.points.items():
            if operand == "IN" and self.frame.layer.broadcast:
                lines += self._fetch_parts(point, place)
            elif point.fetching == place:
                lines += self._fetch(operand, point)
        if place == len(self.items):
            lines += call("run", [self._first(), *self._ranges()])
        else:
            lines += self._item(self.items[place], place)
        if self.points["OUT"].fetching == place and not self.frame.snake:
            lines += call("close_out", [self._last()])
        return lines

    def _first(self) -> str:
        return " && ".join(self.firsts) or "1"

    def _last(self) -> str:
        return " && ".join(self.lasts) or "1"

    def _fetch_parts(self, point: FetchPoint, place: int) -> list[str]:
        """Inputs that are broadcast: each is fetched by the loops down to the innermost one that it depends on."""
        lines: list[str] = []
        for lacks in self.frame.patterns:
            mine = depends("IN", lacks)
            if place == max((at + 1 for at, d in point.cutting if d in mine), default=0):
                lines += call(tiles.loader(lacks), self._ranges("IN", lacks))
        return lines

    def _fetch(self, operand: str, point: FetchPoint) -> list[str]:
        frame, ranges = self.frame, self._ranges(operand)
        if operand == "OUT":
            given = [self._first()] if frame.cut and not frame.machine.psum_first_read else []
            given += [self._last()] if frame.snake else []
            return call("open_out", given + ranges)
        if operand == "W":
            return call("load_w", ranges)
        if frame.lines and point.outer is not None:
            outer, turns = self.heads[point.outer], self.heads[point.fetching - 1].first
            return [
                *outer.following,
                *call("load_in", [f"{turns} && {outer.first}", turns, "next", "next_end", *ranges]),
            ]
        if frame.rings and not frame.snake:
            slide = f"{self.heads[point.fetching - 1].first} ? 0 : {point.axis}" if point.axis is not None else "0"
            return call("load_in", [slide, *ranges])
        return call("load_in", ranges)

    def _item(self, item: Item, place: int) -> list[str]:
        if isinstance(item, Hold):
            return self._body(place + 1)
        assert isinstance(item, Loop)
        kept = self.piece[item.dim], self.numbers[item.dim], list(self.firsts), list(self.lasts), self.odd
        name = f"{item.dim}{self.numbers[item.dim]}"
        head = self.heads[place] = self._head(item, *self.piece[item.dim], name)
        self.piece[item.dim], self.odd = (name, f"{name}_end"), head.odd
        self.numbers[item.dim] += 1
        if item.dim in REDUCTION:
            self.firsts.append(head.first)
            self.lasts.append(head.last)
        lines = [*head.before, *block(head.head, [*head.body, *self._body(place + 1)])]
        self.piece[item.dim], self.numbers[item.dim], self.firsts, self.lasts, self.odd = kept
        return lines

    def _head(self, item: Loop, lo: str, hi: str, name: str) -> _Head:
        """A loop over pieces from `lo` to `hi`, the current one called `name`."""
        if item.cuts:
            return self._at_places(item, lo, hi, name)
        end = f"const int {name}_end = certile_min({name} + {item.step}, {hi});"
        if self.frame.snake:
            head, number, lines, odd = self._counted(name)
            before = [f"const int {name}_pieces = certile_ceil({hi} - {lo}, {item.step});"]
            lines += [f"const int {name} = {lo} + {number} * {item.step};", end]
            return _Head(before, head, lines, f"{name}_k == 0", f"{name}_k == {name}_pieces - 1", odd, [])
        head = f"for (int {name} = {lo}; {name} < {hi}; {name} += {item.step})"
        following = [f"const int next = {name}_end;", f"const int next_end = certile_min(next + {item.step}, {hi});"]
        return _Head([], head, [end], f"{name} == {lo}", f"{name}_end == {hi}", self.odd, following)

    def _counted(self, name: str) -> tuple[str, str, list[str], str]:
        """A loop over the numbers of pieces: its head, the number of the piece, lines that find it, its oddness."""
        k, pieces = f"{name}_k", f"{name}_pieces"
        head = f"for (int {k} = 0; {k} < {pieces}; {k}++)"
        if not self.frame.snake:
            return head, k, [], self.odd
        number = f"{name}_number"
        turned = f"{self.odd} ? {pieces} - 1 - {k} : {k}" if self.odd != "0" else k
        odd = f"(({self.odd} + {number}) & 1)" if self.odd != "0" else f"({number} & 1)"
        return head, number, [f"const int {number} = {turned};"], odd

    def _at_places(self, item: Loop, lo: str, hi: str, name: str) -> _Head:
        begin = self.begin[item.dim]
        lo, hi = (text if begin == "0" else f"{text} - {begin}" for text in (lo, hi))
        ask = f"certile_piece({name}_at, {len(item.cuts)}, {lo}, {hi}"
        head, number, lines, odd = self._counted(name)
        moved = [] if begin == "0" else [f"{name} += {begin};", f"{name}_end += {begin};"]
        before = [
            f"static const int {name}_at[] = {{{', '.join(map(str, item.cuts))}}};", f"int {name}, {name}_end;",
            f"const int {name}_pieces = {ask}, 0, &{name}, &{name}_end);",
        ]  # fmt: skip
        following = ["int next = 0, next_end = 0;", *block(
            f"if ({name}_k + 1 < {name}_pieces)",
            [f"{ask}, {name}_k + 1, &next, &next_end);", *(line.replace(name, "next") for line in moved)],
        )]  # fmt: skip
        lines += [f"{ask}, {number}, &{name}, &{name}_end);", *moved]
        return _Head(before, head, lines, f"{name}_k == 0", f"{name}_k == {name}_pieces - 1", odd, following)


def layer_file(frame: Frame, name: str, includes: Sequence[str] = ()) -> str:
    """Return the C file of a layer, `name` is that of its function; raises InputError for a malformed nest."""
    text = f"{frame.layer.name} on {frame.machine.name}\n\n{pseudo_code(frame.layer, frame.machine, frame.nest)}"
    parts = [
        [f"#include {file}" for file in ('"certile_dma.h"', '"certile_lines.h"', *includes)], comment(text),
        frame.declarations(), tiles.state(frame), StepCode(frame).lines(), tiles.evict(frame),
        tiles.compute_late(frame), *(tiles.load_in(frame, lacks) for lacks in frame.patterns), tiles.load_w(frame),
        tiles.load_weights(frame), tiles.close_out(frame), tiles.open_out(frame), tiles.run(frame),
        *(Loops(frame, points).function(f"core_{k}") for k, points in enumerate(frame.kinds)), _entry(frame, name),
    ]  # fmt: skip
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _entry(frame: Frame, name: str) -> list[str]:
    """The function that runs all cores, one after the other."""
    arguments = ["unsigned char *const in[]", "unsigned char *w", "unsigned char *bias", "unsigned char *out",
                 "unsigned char *psum"]  # fmt: skip
    body = frame.bind()
    body += call("load_weights", []) if frame.kept_w and frame.kept_w.loads else []
    if len(frame.cores) == 1:
        return function(f"void {name}", arguments, [*body, *tiles.reset(frame), *call("core_0", [])])
    rows = []
    for core in frame.cores:
        ends = [end for d in frame.moving for end in core.range(d)]
        rows.append(", ".join(map(str, (frame.kinds.index(frame.points(core)), *ends))))
    number = 1 + 2 * len(frame.moving)
    body += [
        f"/* Cores: the kind of their loops, then their ranges of {' '.join(frame.moving)}. */",
        f"static const int share[{len(rows)}][{number}] = {{", *indented(f"{{{row}}}," for row in rows), "};",
    ]  # fmt: skip
    ranges = [f"s[{k}]" for k in range(1, number)]
    runs = ["const int *s = share[k];", *tiles.reset(frame)]
    for kind in range(len(frame.kinds)):
        runs += block(f"if (s[0] == {kind})", call(f"core_{kind}", ranges))
    return function(f"void {name}", arguments, body + block(f"for (int k = 0; k < {len(rows)}; k++)", runs))
