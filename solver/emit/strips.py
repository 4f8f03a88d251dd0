"""The C file of a group of layers that runs strip by strip (docs/fusion.md).

Of every map on its way through the group there are up to three buffers, with all its channels:

    lines     rows that later steps of rows read again, over the width of the map: row y in line y modulo their number
    columns   of a step's rows, columns that the next step of columns reads again: column x at x modulo their number
    piece     what a visit loads or makes, from then on until its last reader has run

When the last reader has run, columns that stay for the next step are copied from the piece to the columns, and of
those that no step reads again the rows that stay are copied to the lines. That takes the bytes that the plan counts:
those of the halo all the time, those of a piece while it is read. Where the first piece is larger than the others a
ring may take less: rows at their number modulo its height where a step has all columns, else columns modulo its width,
in place of columns and piece. Rows that stay on chip beyond the group lie in their own place.

Weights: a filter (with its bias) that stays is loaded before the first visit; the others pass through one buffer,
filter by filter, in every visit in which their layer makes something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hwmodels.fusion.replay_count import extent, weight_bytes
from instances.workload import Layer
from solver.emit.frame import storage_order
from solver.emit.groups import Group, Part
from solver.emit.text import block, comment, function, loop, total
from solver.emit.values import pitches


class GroupFile:
    """Writes the file of a group. `address`: by buffer, as in `Group.blocks` without the group's name."""

    def __init__(self, group: Group, name: str, address: Mapping[str, int], includes: Sequence[str]) -> None:
        self.group, self.name, self.address, self.includes = group, name, address, includes
        self.machine, self.run = group.machine, group.run

    def text(self) -> str:
        """The file."""
        streams = range(len(self.run.streams))
        parts = [
            [f"#include {file}" for file in ('"certile_dma.h"', '"certile_lines.h"', *self.includes)],
            comment(self._head()), self._declarations(), self._tables(),
            *(self._place(k) for k in streams), *(self._retire(k) for k in streams),
            *(self._load(k) for k in streams if self.run.streams[k].outside),
            *(part for k in range(len(self.group.layers)) for part in self._layer(k)), self._entry(),
        ]  # fmt: skip
        return "\n\n".join("\n".join(part) for part in parts if part) + "\n"

    def _head(self) -> str:
        first, last = self.group.layers[0].name, self.group.layers[-1].name
        lines = [f"{first} to {last} on {self.machine.name}: strip by strip", ""]
        lines.append(f"{len(self.group.rows)} steps of rows ({self.run.rows.halo} the halo), in each "
                     f"{len(self.group.columns)} of columns ({self.run.columns.halo})")  # fmt: skip
        for k, stream in enumerate(self.run.streams):
            layer = self.group.found.layers[stream.maker]
            what = f"loaded for {layer.name}" if stream.outside else f"made by {layer.name}"
            sizes = self.group.sizes(k)
            stays = f"{sizes.lines} lines, {sizes.columns} columns"
            lines.append(f"map {k}: {what}; {stays}, pieces of {sizes.rows} x {sizes.width}")
        return "\n".join(lines)

    def _at(self, what: str) -> str:
        return f"certile_ocm + {self.address[what]}" if what in self.address else "NULL"

    def _declarations(self) -> list[str]:
        size = self.machine.memories["ocm"]
        lines = [f"extern unsigned char certile_ocm[{size}];", ""]
        lines += ["/* A step of a map along an axis: what was there, what is made, what is needed before and after. */",
                  "typedef struct {", "    int before, begin, end, need, need_after, first;", "} axis_step;", "",
                  "static const axis_step *row, *column; /* of the visit, by map */"]  # fmt: skip
        for k, layer in enumerate(self.group.layers):
            weights = f", w_{k}, bias_{k}" if layer.weights != "none" else ""
            lines.append(f"static certile_tensor out_{k}{weights};")
        for k, stream in enumerate(self.run.streams):
            lines += [f"static certile_tensor in_{k};"] if stream.outside else []
        return lines

    def _tables(self) -> list[str]:
        lines = []
        for name, steps in (("rows", self.group.rows), ("columns", self.group.columns)):
            front = [0] * len(self.run.streams)
            lines.append(f"static const axis_step {name}[{len(steps)}][{len(front)}] = {{")
            for step in steps:
                cells = [", ".join(map(str, (*one, front[k]))) for k, one in enumerate(step)]
                lines.append("    {" + ", ".join(f"{{{cell}}}" for cell in cells) + "},")
                front = [max(f, one.end) for f, one in zip(front, step, strict=True)]
            lines.append("};")
        return lines

    # ---- places ----------------------------------------------------------------------------------------------------

    def _pitches(self, k: int, rows: int, columns: int) -> tuple[int, int, int]:
        """Bytes from channel to channel, row to row, column to column of a buffer."""
        size, channels = self.group.element(k), self.group.channels(k)
        if self._layout(k) == "CHW":
            return rows * columns * size, columns * size, size
        return size, columns * channels * size, channels * size

    def _layout(self, k: int) -> str:
        return self.machine.in_layout if self.run.streams[k].outside else self.machine.out_layout

    def _term(self, k: int, rows: int, columns: int, y: str, x: str) -> str:
        channel, down, over = self._pitches(k, rows, columns)
        return f"(ptrdiff_t)ch * {channel} + (ptrdiff_t)({y}) * {down} + (ptrdiff_t)({x}) * {over}"

    def _place(self, k: int) -> list[str]:
        """Where an element of a map lies while its piece is there."""
        sizes, width, kept = self.group.sizes(k), extent(self.group.walk, k)[1], self.group.kept[k]
        body = [f"const axis_step *r = &row[{k}], *c = &column[{k}];", "(void)r, (void)c, (void)ch, (void)y, (void)x;"]
        if kept is not None:
            inner = self.group.seen_by(k).n if self.run.streams[k].outside else self.group.seen_by(k).m
            names = {"b": "0", "g": f"(ch / {inner})", "r": "y", "c": "x"} | dict.fromkeys("nm", f"(ch % {inner})")
            place = kept.place(names, self.group.element(k))
            body += block(f"if (y < {self.group.resident(k)})", [f"return {place};"])
        if not sizes.rows:
            return self._inline(k, [*body, "return NULL;"])
        if sizes.lines:
            line = self._term(k, sizes.lines, width, f"y % {sizes.lines}", "x")
            body += block("if (y < r->before)", [f"return {self._at(f'lines {k}')} + {line};"])
        if sizes.columns:
            term = self._term(k, sizes.rows, sizes.columns, "y - r->begin", f"x % {sizes.columns}")
            body += block("if (x < c->before)", [f"return {self._at(f'columns {k}')} + {term};"])
        y = f"y % {sizes.rows}" if sizes.ring == "rows" else "y - r->begin"
        x = f"x % {sizes.width}" if sizes.ring == "columns" else "x - c->begin"
        piece = self._term(k, sizes.rows, sizes.width, y, x)
        return self._inline(k, [*body, f"return {self._at(f'piece {k}')} + {piece};"])

    def _inline(self, k: int, body: list[str]) -> list[str]:
        return [f"/* Where an element of map {k} lies in this visit. */",
                *function(f"static inline unsigned char *map_{k}", ["int ch", "int y", "int x"], body)]  # fmt: skip

    def _retire(self, k: int) -> list[str]:
        """The last reader has run: what stays leaves the piece."""
        sizes, width = self.group.sizes(k), extent(self.group.walk, k)[1]
        if not sizes.lines and not sizes.columns:
            return []
        element, channels = self.group.element(k), self.group.channels(k)
        body = [f"const axis_step *r = &row[{k}], *c = &column[{k}];", "if (r->begin >= r->end) {", "    return;", "}"]
        if sizes.lines:
            to = self._term(k, sizes.lines, width, f"y % {sizes.lines}", "x")
            first = total_max("r->need_after", "r->before", str(self.group.resident(k)))
            inner = block(f"for (int y = {first}; y < r->end; y++)",
                          [f"memcpy({self._at(f'lines {k}')} + {to}, map_{k}(ch, y, x), {element});"])  # fmt: skip
            inner = block("for (int x = c->need; x < c->need_after; x++)", inner)
            body += ["/* Of columns that no step reads again the rows that stay. */"]
            body += block("", loop("ch", "0", str(channels), inner))
        if sizes.columns:
            to = self._term(k, sizes.rows, sizes.columns, "y - r->begin", f"x % {sizes.columns}")
            inner = block(f"for (int y = certile_max(r->begin, {self.group.resident(k)}); y < r->end; y++)",
                          [f"memcpy({self._at(f'columns {k}')} + {to}, map_{k}(ch, y, x), {element});"])  # fmt: skip
            inner = block("for (int x = certile_max(c->need_after, c->before); x < c->end; x++)", inner)
            body += ["/* Columns that the next step reads again. */", *loop("ch", "0", str(channels), inner)]
        return [f"/* Map {k} was read for the last time in this visit. */",
                *function(f"static void retire_{k}", [], body)]  # fmt: skip

    def _box(self, k: int, order: str, first: str) -> str:
        lo = {"b": "0", "g": "0", "n": "0", "m": "0", "r": first, "c": "c->begin"}
        layer = self.group.seen_by(k)
        g, inner = (layer.g, layer.n) if self.run.streams[k].outside else (layer.g, layer.m)
        hi = {"b": "1", "g": str(g), "n": str(inner), "m": str(inner), "r": "r->end", "c": "c->end"}
        return f"{{{{{', '.join(lo[d] for d in order)}}}, {{{', '.join(hi[d] for d in order)}}}}}"

    def _tile(self, k: int, order: str) -> str:
        """A piece as a tile."""
        layer, sizes = self.group.seen_by(k), self.group.sizes(k)
        inner = layer.n if self.run.streams[k].outside else layer.m
        extents = {"b": 1, "g": layer.g, "n": inner, "m": inner, "r": sizes.rows, "c": sizes.width}
        first = {"r": "0" if sizes.ring == "rows" else "r->begin", "c": "0" if sizes.ring == "columns" else "c->begin"}
        numbers = ", ".join(str(extents[d]) for d in order)
        firsts = ", ".join(first.get(d, "0") for d in order)
        return f"{{{self._at(f'piece {k}')}, {self.group.element(k)}, {{{numbers}}}, {{{firsts}}}}}"

    def _load(self, k: int) -> list[str]:
        order, first = storage_order("IN", self.machine), f"certile_max(r->begin, {self.group.resident(k)})"
        body = [f"const axis_step *r = &row[{k}], *c = &column[{k}];"]
        if not self.group.sizes(k).rows:
            return [f"/* Map {k} lies on chip. */", *function(f"static void load_{k}", [], [])]
        body += [
            f"const certile_tile tile = {self._tile(k, order)};",
            f"const certile_box box = {self._box(k, order, first)};",
            f"certile_load(CERTILE_IN, &tile, &in_{k}, &box);",
        ]
        return [f"/* Load the piece of map {k}. */", *function(f"static void load_{k}", [], body)]

    # ---- layers ----------------------------------------------------------------------------------------------------

    def _layer(self, k: int) -> list[list[str]]:
        layer = self.group.layers[k]
        made = [list(text) for text in self._meaning(k)]
        return [*made, self._filter(k) if layer.weights != "none" else [], self._make(k)]

    def _meaning(self, k: int) -> list[list[str]]:
        """The functions of the numbers, under names of this layer."""
        numbers = self.group.numbers[k]
        return [_renamed(text, k) for text in (numbers.tables, numbers.finished, *numbers.seen) if text]

    def _filter(self, k: int) -> list[str]:
        """A filter with its bias: where it stays, or in the buffer that filters pass through."""
        layer, stay = self.group.layers[k], self.run.weights[k]
        taps = layer.n * layer.kh * layer.kw * self.machine.w_bytes
        bias = self.machine.bias_bytes if layer.bias else 0
        size, stay = taps + bias, min(stay, weight_bytes(layer, self.machine))
        kept, through = self._at(f"weights {k}"), self._at("filter")
        whole = weight_bytes(layer, self.machine)
        record = [
            "/* Bytes `first` to `end` of filter f (with its bias), to a place that begins with the filter. */",
            *function(f"static void filter_bytes_{k}", ["unsigned char *to", "int f", "int first", "int end"], [
                f"const int taps = certile_min(end, {taps}) - first;",
                *block("if (taps > 0)", [
                    f"unsigned char *from = w_{k}.base + (ptrdiff_t)f * {taps} + first;",
                    "certile_dma_2d(to + first, from, (size_t)taps, 1, 0, 0);",
                ]),
                *(block(f"if (end > {taps})", [
                    f"const int begin = certile_max(first, {taps});",
                    f"unsigned char *from = bias_{k}.base + (ptrdiff_t)f * {bias} + begin - {taps};",
                    "certile_dma_2d(to + begin, from, (size_t)(end - begin), 1, 0, 0);",
                ]) if bias else []),
            ]), "",
        ]  # fmt: skip
        body = []
        if stay:
            body += block(f"if ((f + 1) * {size} <= {stay})", [f"return {kept} + (ptrdiff_t)f * {size};"])
        if stay < whole:
            first = f"certile_max(0, {stay} - f * {size})" if stay else "0"
            body += [f"const int there = {first};"]
            body += [f"memcpy({through}, {kept} + (ptrdiff_t)f * {size}, (size_t)there);"] if stay % size else []
            body += ["certile_dma_begin(CERTILE_W, 1);", f"filter_bytes_{k}({through}, f, there, {size});",
                     "certile_dma_start();", "certile_dma_wait();"]  # fmt: skip
            body += [f"return {through};"]
        else:
            body += ["return NULL;"]
        return [*record, f"/* A filter of {layer.name}. */",
                *function(f"static const unsigned char *filter_{k}", ["int f"], body)]  # fmt: skip

    def _make(self, k: int) -> list[str]:
        group, layer, numbers = self.group, self.group.layers[k], self.group.numbers[k]
        body = [f"const axis_step *r_ = &row[{k}], *c_ = &column[{k}];",
                *block("if (r_->begin >= r_->end || c_->begin >= c_->end)", ["return;"])]  # fmt: skip
        pixel = [f"{numbers.total} x = {self._first(k)};"]
        for number, parts in enumerate(group.parts[k]):
            for part in parts:
                pixel += self._products(k, number, part)
        done = numbers.final("x").replace("finished(", f"finished_{k}(")
        pixel.append(numbers.write(numbers.result, f"map_{k}(g * {layer.m} + m, r, c)", done))
        inner = block("for (int c = c_->begin; c < c_->end; c++)", pixel)
        inner = block("for (int r = r_->begin; r < r_->end; r++)", inner)
        if layer.weights != "none":
            inner = [f"const unsigned char *w = filter_{k}(g * {layer.m} + m);", *inner]
        loops = block(f"for (int g = 0; g < {layer.g}; g++)", block(f"for (int m = 0; m < {layer.m}; m++)", inner))
        body += ["const int b = 0;", "(void)b;", *loops, *self._store(k)]
        return [*comment(f"{layer.name}: make the piece of a visit, and write what leaves the chip."),
                *function(f"static void make_{k}", [], body)]  # fmt: skip

    def _first(self, k: int) -> str:
        layer, numbers = self.group.layers[k], self.group.numbers[k]
        if not layer.bias:
            return numbers.start
        taps = layer.n * layer.kh * layer.kw * self.machine.w_bytes
        if self.machine.bias_bytes:
            return numbers.read(numbers.bias, f"w + {taps}")
        return numbers.read(numbers.bias, f"bias_{k}.base + (ptrdiff_t)(g * {layer.m} + m) * 4")

    def _products(self, k: int, number: int, part: Part) -> list[str]:
        """Add what the channels of one map give."""
        layer, numbers = self.group.layers[k], self.group.numbers[k]
        y = total(("r", layer.stride_h), ("i", layer.dilation_h), ("1", -layer.pad_top))
        x = total(("c", layer.stride_w), ("j", layer.dilation_w), ("1", -layer.pad_left))
        value = numbers.given(number, f"map_{part.stream}(ch - {part.first}, at_y, at_x)", "b, g, n, at_y, at_x")
        value = value.replace(f"seen_{number}(", f"seen_{k}_{number}(")
        if layer.weights != "none":
            order = "nij" if self.machine.w_layout == "OIHW" else "ijn"
            sizes, pitch, terms = {"n": layer.n, "i": layer.kh, "j": layer.kw}, self.machine.w_bytes, []
            for d in reversed(order):
                terms.append(f"{d} * {pitch}")
                pitch *= sizes[d]
            weight = numbers.weight("w + (" + " + ".join(terms) + ")").replace("stage_", f"stage_{k}_")
            value = f"{weight} * {value}"
        step = [f"const int at_y = {y}, at_x = {x};", *block(
            f"if (at_y >= 0 && at_y < {layer.h} && at_x >= 0 && at_x < {layer.l})",
            [numbers.add("x", value, first=number == 0)],
        )]  # fmt: skip
        body = loop("i", "0", str(layer.kh), loop("j", "0", str(layer.kw), step))
        body = [f"const int ch = g * {layer.n} + n;",
                *block(f"if (ch >= {part.first} && ch < {part.first + part.number})", body)]  # fmt: skip
        return block("", block(f"for (int n = 0; n < {layer.n}; n++)", body))

    def _store(self, k: int) -> list[str]:
        """Write what is made for the first time, but rows that stay."""
        group, layer = self.group, self.group.layers[k]
        unwritten = group.found.stores[self.run.streams[k].store].seen(self.run.unwritten[k], layer.r)
        if unwritten >= layer.r:
            return []
        order = storage_order("OUT", self.machine)
        tile = self._tile(k, order).replace("r->", "r_->").replace("c->", "c_->")
        box = self._box(k, order, "r->begin").replace("r->", "r_->").replace("c->", "c_->")
        r, c = order.index("r"), order.index("c")
        if not group.sizes(k).rows:
            return self._store_kept(k, unwritten)
        return [
            f"const certile_tile tile = {tile};", f"certile_box box = {box};",
            f"box.lo[{r}] = certile_max(certile_max(r_->begin, r_->first), {unwritten});",
            f"box.lo[{c}] = certile_max(c_->begin, c_->first);",
            f"certile_store(CERTILE_OUT, &tile, &out_{k}, &box);", "certile_dma_wait();",
        ]  # fmt: skip

    def _store_kept(self, k: int, unwritten: int) -> list[str]:
        """Write a result that lies in its own place, element by element."""
        layer, size = self.group.layers[k], self.machine.out_bytes
        pitch = pitches("OUT", layer, self.machine)
        channel = pitch["m"] if layer.m > 1 else pitch["g"]
        place = f"((ptrdiff_t)ch * {channel} + (ptrdiff_t)r * {pitch['r']} + (ptrdiff_t)c * {pitch['c']}) * {size}"
        body = [f"certile_dma_2d(map_{k}(ch, r, c), out_{k}.base + {place}, {size}, 1, 0, 0);"]
        body = block("for (int c = certile_max(c_->begin, c_->first); c < c_->end; c++)", body)
        first = f"certile_max(certile_max(r_->begin, r_->first), {unwritten})"
        body = block(f"for (int r = {first}; r < r_->end; r++)", body)
        body = block(f"for (int ch = 0; ch < {layer.g * layer.m}; ch++)", body)
        return ["certile_dma_begin(CERTILE_OUT, 0);", *body, "certile_dma_start();", "certile_dma_wait();"]

    # ---- the group ---------------------------------------------------------------------------------------------------

    def _entry(self) -> list[str]:
        body = self._bind() + self._weights()
        visit = ["row = rows[r];", "column = columns[c];"]
        for k in range(len(self.group.layers)):
            t = self.run.first + k
            for s, stream in enumerate(self.run.streams):
                visit += [f"load_{s}();"] if stream.outside and stream.maker == t else []
            visit += ["certile_dma_wait();", f"make_{k}();"]
            for s, stream in enumerate(self.run.streams):
                sizes = self.group.sizes(s)
                if max((stream.maker, *stream.readers)) == t and (sizes.lines or sizes.columns):
                    visit.append(f"retire_{s}();")
        body += block(f"for (int r = 0; r < {len(self.group.rows)}; r++)",
                      block(f"for (int c = 0; c < {len(self.group.columns)}; c++)", visit))  # fmt: skip
        given = ["unsigned char *const in[]", "unsigned char *const out[]", "unsigned char *const w[]",
                 "unsigned char *const bias[]"]  # fmt: skip
        unused = ["(void)in, (void)w, (void)bias;"]
        return function(f"void {self.name}", given, unused + body)

    def _bind(self) -> list[str]:
        """Tensors off the chip: maps from outside by stream, results, weights and biases by layer."""
        lines = []
        for k, layer in enumerate(self.group.layers):
            lines.append(f"out_{k} = {self._tensor('OUT', layer, f'out[{k}]')};")
            if layer.weights != "none":
                lines.append(f"w_{k} = (certile_tensor){{w[{k}], 1, {{0}}}};")
                lines.append(f"bias_{k} = (certile_tensor){{bias[{k}], 1, {{0}}}};")
        for k, stream in enumerate(self.run.streams):
            if stream.outside:
                lines.append(f"in_{k} = {self._tensor('IN', self.group.seen_by(k), f'in[{k}]')};")
        return lines

    def _tensor(self, operand: str, layer: Layer, pointer: str) -> str:
        sizes = {"b": layer.b, "g": layer.g, "n": layer.n, "m": layer.m}
        sizes |= {"r": layer.h, "c": layer.l} if operand == "IN" else {"r": layer.r, "c": layer.c}
        element = self.machine.in_bytes if operand == "IN" else self.machine.out_bytes
        numbers = ", ".join(str(sizes[d]) for d in storage_order(operand, self.machine))
        return f"(certile_tensor){{{pointer}, {element}, {{{numbers}}}}}"

    def _weights(self) -> list[str]:
        """Load the weights that stay."""
        lines = []
        for k, layer in enumerate(self.group.layers):
            stay = min(self.run.weights[k], weight_bytes(layer, self.machine))
            if layer.weights == "none" or not stay:
                continue
            size = weight_bytes(layer, self.machine) // (layer.g * layer.m)
            lines += ["certile_dma_begin(CERTILE_W, 1);", *block(f"for (int f = 0; f * {size} < {stay}; f++)", [
                f"unsigned char *to = {self._at(f'weights {k}')} + (ptrdiff_t)f * {size};",
                f"filter_bytes_{k}(to, f, 0, certile_min({size}, {stay} - f * {size}));",
            ]), "certile_dma_start();"]  # fmt: skip
        return [*lines, "certile_dma_wait();"] if lines else []


def _renamed(text: Sequence[str], k: int) -> list[str]:
    """Functions and tables of a layer under names of their own in the group's file."""
    made = "\n".join(text)
    for word in ("finished", "stage_", "seen_"):
        new = {"finished": f"finished_{k}", "stage_": f"stage_{k}_", "seen_": f"seen_{k}_"}[word]
        made = made.replace(f"{word}(", f"{new}(") if word == "finished" else made.replace(word, new)
    return made.splitlines()


def total_max(*texts: str) -> str:
    """The largest of several numbers."""
    text = texts[0]
    for one in texts[1:]:
        text = f"certile_max({text}, {one})"
    return text
