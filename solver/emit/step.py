"""What a step computes on the tiles that lie on chip, in C.

One row of results at a time: the totals of a row begin as zero (with the bias) or as the partial sums of the tile, take
the products of every input channel and tap along the row, and are written back. The row lies along columns, or along
rows for layers with one column (products of matrices).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from solver.emit.frame import Frame, Kept
from solver.emit.places import Places
from solver.emit.text import block, function, larger, loop, quotient, smaller, total


@dataclass(frozen=True)
class StepCode:
    """The functions `compute` (a step) and `finish` (partial sums of a tile become results)."""

    frame: Frame
    places: Places

    def lines(self) -> list[str]:
        """Both functions."""
        final: list[str] = []
        numbers = self.frame.numbers
        for text in (numbers.tables, numbers.finished, *numbers.seen):
            final += [*text, ""] if text else []
        return [*final, *self._compute(), *(["", *self._finish()] if self.frame.cut else [])]

    def _lo(self, d: str) -> str:
        return f"s->{d}" if d in self.frame.moving else "0"

    def _hi(self, d: str) -> str:
        return f"s->{d}_end" if d in self.frame.moving else str(self.frame.layer.extent(d))

    @property
    def _along(self) -> str:
        """The dimension of results that a row lies along."""
        layer = self.frame.layer
        return "r" if layer.c == layer.l == layer.kw == 1 and not any(self.frame.kept_in) else "c"

    def _at(self) -> str:
        """The number of a result in its row."""
        return (
            total((self._along, 1), (self._lo(self._along), -1))
            if self._along not in self.frame.moving
            else (f"{self._along} - {self._lo(self._along)}")
        )

    def _compute(self) -> list[str]:
        frame, numbers, along = self.frame, self.frame.numbers, self._along
        across = "c" if along == "r" else "r"
        longest = int(frame.found.cuts[along].lengths.max())
        target = self.places.place("OUT", "out", {d: d for d in "bgmrc"})
        begin = f"s->fresh ? first : {numbers.read(numbers.sums, target)}" if frame.cut else "first"
        made = f"row[{self._at()}]"
        write = (
            numbers.write(numbers.sums, target, made)
            if frame.cut
            else (numbers.write(numbers.result, target, numbers.final(made)))
        )
        lo, hi = self._lo(along), self._hi(along)
        body = [
            f"{numbers.total} row[{longest}] = {{0}};",
            *numbers.places(f"row[{longest}]"),
            f"const {numbers.total} first = {self._first()};",
        ]
        body += (
            loop(along, lo, hi, [f"row[{self._at()}] = {begin};"])
            if longest > 1
            else block("", loop(along, lo, hi, [f"row[{self._at()}] = {begin};"]))
        )
        body += self._products()
        body += block("", loop(along, lo, hi, [write]))
        for d in (across, "m", "g", "b"):
            body = loop(d, self._lo(d), self._hi(d), body)
        head = ["const certile_tile *out = &s->out;"]
        head += ["const certile_tile *w = &s->w;"] if frame.weighted else []
        head += ["const certile_tile *bias = &s->bias;"] if self.places.has_bias_tile else []
        return ["/* Compute a step, one row of results at a time. */",
                *function("static void compute", ["const step *s"], head + body)]  # fmt: skip

    def _first(self) -> str:
        """What totals begin with."""
        numbers, layer = self.frame.numbers, self.frame.layer
        if not layer.bias:
            return numbers.start
        if not self.places.has_bias_tile:
            return numbers.read(numbers.bias, f"bias_dram.base + ((ptrdiff_t)g * {layer.m} + m) * 4")
        extents = dict(zip(self.places.order("W"), self.places.extents("W"), strict=True))
        pitch, size = extents["m"], self.frame.machine.bias_bytes
        place = f"((ptrdiff_t)(g - bias->first[3]) * {pitch} + m - bias->first[4])"
        return numbers.read(numbers.bias, f"bias->base + {place} * {size}")

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
        return self.frame.numbers.weight(self.places.place("W", "w", {d: d for d in "gmnij"}))

    def _taps(self, d: str, body: list[str]) -> list[str]:
        tap = self.frame.window(d).tap
        return loop(tap, self._lo(tap), self._hi(tap), body)

    def _in_tile(self, k: int) -> list[str]:
        """Tap by tap: the results whose input is on the map."""
        along = self._along
        across = "c" if along == "r" else "r"
        window, numbers = self.frame.window(along), self.frame.numbers
        on_map = total(("1", window.pad), (window.tap, -window.dilation))
        until = total(("1", window.size + window.pad), (window.tap, -window.dilation))
        body = [
            f"const int begin = {larger(self._lo(along), quotient(on_map, window.stride))};",
            f"const int end = {smaller(self._hi(along), quotient(until, window.stride))};",
        ]
        weighted = self.frame.weighted
        body += [f"const {numbers.total} weight = {self._weight()};"] if weighted else []
        axis = self.places.axis("IN", 3 if along == "r" else 4)
        at = total((along, window.stride), (window.tap, window.dilation), ("1", -window.pad))
        kept = self.frame.kept_in[k] if self.frame.kept_in else None
        if kept:
            ring, pitch, first = "ring" if self.places.ring(along) else "", "pitch", "first"
        else:
            ring, pitch = str(self.places.ring(along) or ""), str(self.places.pitches("IN", k)[along])
            first = f"in->first[{axis}]"
        place = f"line + (ptrdiff_t){f'(at % {ring})' if ring else 'at'} * {pitch}"
        lacks = self.frame.layer.patterns[k]
        place = "line" if along in lacks else place
        names = {"b": "b", "g": "g", "n": "n", across: "inside", along: at} | dict.fromkeys(lacks, "0")
        value = numbers.given(k, place, ", ".join(names[d] for d in "bgnrc"))
        body += block(f"for (int {along} = begin; {along} < end; {along}++)", [
            *([] if along in lacks else [f"const int at = {at} - {first};"]),
            numbers.add(f"row[{self._at()}]", f"{'weight * ' if weighted else ''}{value}", k),
        ])  # fmt: skip
        body = self._taps(along, body)
        window = self.frame.window(across)
        inside = total((across, window.stride), (window.tap, window.dilation), ("1", -window.pad))
        names = {"b": "b", "g": "g", "n": "n", across: "inside"}
        line = self.places.place("IN", "in", names, k) if k in self.frame.loaded else ""
        head = self._kept_line(k, kept, line, axis) if kept else [f"const unsigned char *line = {line};"]
        body = [f"const int inside = {inside};", *block(f"if (inside >= 0 && inside < {window.size})", [*head, *body])]
        return loop("n", self._lo("n"), self._hi("n"), self._taps(across, body))

    def _kept_line(self, k: int, kept: Kept, line: str, axis: int) -> list[str]:
        """A row of the map lies where it is kept, or in the tile; one that has no tile always where it is kept."""
        size, lacks = self.frame.machine.in_bytes, self.frame.layer.patterns[k]
        place = kept.place({"b": "b", "g": "g", "n": "n", "r": "inside"}, size)
        if not line:
            columns = ["const int first = 0;", f"const ptrdiff_t pitch = {kept.column * size};"]
            return [*([] if "c" in lacks else columns), f"const unsigned char *line = {place};"]
        ring = self.places.ring("c")
        columns = [
            *([f"const int ring = there ? {self.frame.layer.l} : {ring};"] if ring else []),
            f"const int first = there ? 0 : in->first[{axis}];",
            f"const ptrdiff_t pitch = there ? {kept.column * size} : {self.places.pitches('IN', k)['c']};",
        ]
        return [
            f"const int there = inside < {kept.rows};", *([] if "c" in lacks else columns),
            f"const unsigned char *line = there ? {place} : {line};",
        ]  # fmt: skip

    def _in_lines(self, k: int) -> list[str]:
        """In lines every element is found by its row and column."""
        numbers, along = self.frame.numbers, self._along
        place = "certile_lines_at(in, b, g, n, y, x)"
        if self.frame.kept_in and (kept := self.frame.kept_in[k]):
            there = kept.place({"b": "b", "g": "g", "n": "n", "r": "y", "c": "x"}, self.frame.machine.in_bytes)
            place = f"(y < {kept.rows} ? {there} : {place})"
        value = numbers.given(k, place, "b, g, n, y, x")
        weight = f"{self._weight()} * " if self.frame.weighted else ""
        body, inside = [], []
        for name, d in (("y", "r"), ("x", "c")):
            window = self.frame.window(d)
            body.append(
                f"const int {name} = {total((d, window.stride), (window.tap, window.dilation), ('1', -window.pad))};"
            )
            inside.append(f"{name} >= 0 && {name} < {window.size}")
        body += block(f"if ({' && '.join(inside)})", [numbers.add(f"row[{self._at()}]", f"{weight}{value}", k)])
        body = loop(along, self._lo(along), self._hi(along), body)
        return loop("n", self._lo("n"), self._hi("n"), self._taps("r", self._taps("c", body)))

    def _finish(self) -> list[str]:
        """Partial sums become results where they are: elements in ascending order, each no larger than before."""
        numbers, machine, places = self.frame.numbers, self.frame.machine, self.places
        order, extents = places.order("OUT"), places.extents("OUT")
        number = " + ".join(f"({d} - box->lo[{k}]) * {prod(extents[k + 1 :])}" for k, d in enumerate(order))
        value = numbers.read(numbers.sums, f"tile->base + k * {machine.psum_bytes}")
        body = [f"const ptrdiff_t k = {number};", f"const {numbers.total} sum = {value};",
                numbers.write(numbers.result, f"tile->base + k * {machine.out_bytes}", numbers.final("sum")),
        ]  # fmt: skip
        for d in reversed(order):
            a = order.index(d)
            body = block(f"for (int {d} = box->lo[{a}]; {d} < box->hi[{a}]; {d}++)", body)
        given = ["const certile_tile *tile", "const certile_box *box"]
        return ["/* Turn the sums of a tile into results, where they are. */",
                *function("static void finish", given, body)]  # fmt: skip
