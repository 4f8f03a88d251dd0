"""The C file of a group of layers that runs strip by strip (docs/fusion.md): its visits, and in each layer after layer.

Where elements lie is said by `solver.uses.emit.fixed_addresses` (every buffer has one address all the time) or, where
that takes more than there is, and of layers that take turns, by `solver.uses.emit.packed` (strips move, and take what
the plan counts).

**Weights** (`Filters`): those that stay, and the buffer that the others pass through. A filter (with its bias) that
stays is loaded before the first visit. The others are loaded filter by filter, in every visit in which their layer
makes something. Of a layer that adds up blocks of channels only the part of a filter that belongs to a block is loaded
for it, the bias with the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hwmodels.fusion.replay.count import weight_bytes
from hwmodels.schedule import Blocks
from solver.uses.emit.fixed_addresses import STEPS, FixedAddresses
from solver.uses.emit.frame import tensor
from solver.uses.emit.groups import Group, Part
from solver.uses.emit.packed import Packed
from solver.uses.emit.text import block, comment, function, loop, total
from solver.uses.emit.values import pitches


class Filters:
    """Writes what a group's file has for weights. `at`: the address of a buffer as C."""

    def __init__(self, group: Group, at: Callable[[str], str]) -> None:
        self.group, self.machine, self.at = group, group.machine, at

    def functions(self, k: int) -> list[str]:
        """The functions of a layer: bytes of a filter, and a filter where it stays or in the buffer."""
        layer, stay = self.group.layers[k], self.group.stay_bytes(k)
        if layer.weights == "none":
            return []
        size, taps = self.size(k), self.taps(k)
        body: list[str] = []
        if stay:
            kept = f"{self.at(f'weights {k}')} + (ptrdiff_t)f * {size}"
            body += block(f"if ((f + 1) * {size} <= {stay})", [f"return {kept};"])
        if stay == weight_bytes(layer, self.machine):
            return [*self._bytes(k), "", *self._said(k, [*body, "return NULL;"])]
        through = self.at("filter")
        body += [f"const int there = {f'certile_max(0, {stay} - f * {size})' if stay else '0'};"]
        body += [f"memcpy({through}, {kept}, (size_t)there);"] if stay % size else []
        load = f"filter_bytes_{k}({through}, f, %s, %s);"
        if k not in self.group.adding:
            calls = [load % ("there", size)]
        else:
            calls = self._part(k, load)
            if size > taps:
                calls += block("if (turn == 0)", [load % (f"certile_max(there, {taps})", size)])
        body += ["certile_dma_begin(CERTILE_W, 1);", *calls, "certile_dma_start();", "certile_dma_wait();"]
        return [*self._bytes(k), "", *self._said(k, [*body, f"return {through};"])]

    def _said(self, k: int, body: list[str]) -> list[str]:
        what = ", the part of a block of channels" if k in self.group.adding else ""
        return [*comment(f"A filter of {self.group.layers[k].name}{what}."),
                *function(f"static const unsigned char *filter_{k}", ["int f"], body)]  # fmt: skip

    def _part(self, k: int, load: str) -> list[str]:
        """Load what a filter has for the channels of a block, of that what is not there."""
        layer, channels, element = self.group.layers[k], self.group.adding[k].channels, self.machine.w_bytes
        if self.machine.w_layout == "OIHW":
            part = channels * layer.kh * layer.kw * element
            return [load % (f"certile_max(there, turn * {part})", f"(turn + 1) * {part}")]
        first = f"tap * {layer.n * element} + turn * {channels * element}"
        return block(f"for (int tap = 0; tap < {layer.kh * layer.kw}; tap++)",
                     [load % (f"certile_max(there, {first})", f"{first} + {channels * element}")])  # fmt: skip

    def _bytes(self, k: int) -> list[str]:
        size, taps = self.size(k), self.taps(k)
        bias = size - taps
        body = [
            f"const int taps = certile_min(end, {taps}) - first;",
            *block("if (taps > 0)", [
                f"unsigned char *from = w_{k}.base + (ptrdiff_t)f * {taps} + first;",
                "certile_dma_2d(to + first, from, (size_t)taps, 1, 0, 0);",
            ]),
            *(block(f"if (end > certile_max(first, {taps}))", [
                f"const int begin = certile_max(first, {taps});",
                f"unsigned char *from = bias_{k}.base + (ptrdiff_t)f * {bias} + begin - {taps};",
                "certile_dma_2d(to + begin, from, (size_t)(end - begin), 1, 0, 0);",
            ]) if bias else []),
        ]  # fmt: skip
        given = ["unsigned char *to", "int f", "int first", "int end"]
        return ["/* Bytes `first` to `end` of filter f (with its bias), to a place that begins with the filter. */",
                *function(f"static void filter_bytes_{k}", given, body)]  # fmt: skip

    def size(self, k: int) -> int:
        """Bytes of a filter with its bias."""
        layer = self.group.layers[k]
        return weight_bytes(layer, self.machine) // (layer.g * layer.m)

    def taps(self, k: int) -> int:
        """Bytes of a filter without its bias."""
        layer = self.group.layers[k]
        return layer.n * layer.kh * layer.kw * self.machine.w_bytes

    def load(self) -> list[str]:
        """Load the weights that stay."""
        lines = []
        for k, layer in enumerate(self.group.layers):
            if layer.weights == "none" or not (stay := self.group.stay_bytes(k)):
                continue
            size = self.size(k)
            lines += ["certile_dma_begin(CERTILE_W, 1);", *block(f"for (int f = 0; f * {size} < {stay}; f++)", [
                f"unsigned char *to = {self.at(f'weights {k}')} + (ptrdiff_t)f * {size};",
                f"filter_bytes_{k}(to, f, 0, certile_min({size}, {stay} - f * {size}));",
            ]), "certile_dma_start();"]  # fmt: skip
        return [*lines, "certile_dma_wait();"] if lines else []


class GroupFile:
    """Writes the file of a group. `address`: by buffer, as in `Group.blocks` without the group's name."""

    def __init__(self, group: Group, name: str, address: Mapping[str, int], includes: Sequence[str]) -> None:
        self.group, self.name, self.includes = group, name, includes
        self.address = group.places(address)
        self.machine, self.run = group.machine, group.run
        self.strips = Packed(group, self._at) if group.packed else FixedAddresses(group, self._at)
        self.filters = Filters(group, self._at)

    def text(self) -> str:
        """The file."""
        parts = [
            [f"#include {file}" for file in ('"certile_dma.h"', *self.strips.includes, *self.includes)],
            comment(self._head()), self._declarations(), self._tables(),
            *(part for k in range(len(self.run.streams)) for part in self._stream(k)),
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
            lines.append(f"map {k}: {what}; {self.strips.head(k)}")
        return "\n".join(lines)

    def _at(self, what: str) -> str:
        return f"certile_ocm + {self.address[what]}" if what in self.address else "NULL"

    def _declarations(self) -> list[str]:
        size = self.machine.memories["ocm"]
        lines = [f"extern unsigned char certile_ocm[{size}];", "",
                 "static const certile_step *row, *column; /* of the visit, by map */"]  # fmt: skip
        for k, layer in enumerate(self.group.layers):
            weights = f", w_{k}, bias_{k}" if layer.weights != "none" else ""
            lines.append(f"static certile_tensor out_{k}{weights};")
        for k, stream in enumerate(self.run.streams):
            lines += [f"static certile_tensor in_{k};"] if stream.outside else []
        return [*lines, *self.strips.declarations()]

    def _tables(self) -> list[str]:
        lines = []
        for name, steps in (("rows", self.group.rows), ("columns", self.group.columns)):
            front = [0] * len(self.run.streams)
            lines.append(f"static const certile_step {name}[{len(steps)}][{len(front)}] = {{")
            for step in steps:
                cells = [", ".join(map(str, (*one[:5], front[k]))) for k, one in enumerate(step)]
                lines.append("    {" + ", ".join(f"{{{cell}}}" for cell in cells) + "},")
                front = [max(f, one.end) for f, one in zip(front, step, strict=True)]
            lines.append("};")
        return [*lines, *self.strips.tables()]

    # ---- streams -----------------------------------------------------------------------------------------------------

    def _stream(self, k: int) -> list[list[str]]:
        """The functions of a map: the place of an element, what is done with its strip, and its transfers."""
        body = ["(void)b, (void)ch, (void)y, (void)x;"]
        if self.group.kept[k] is not None:
            body += block(f"if (y < {self.group.resident(k)})", [f"return {self._kept(k)};"])
        place = [f"/* Where an element of map {k} lies in this visit. */",
                 *function(f"static inline unsigned char *map_{k}", ["int b", "int ch", "int y", "int x"],
                           [*body, *self.strips.place(k)])]  # fmt: skip
        moved = self._load(k) if self.run.streams[k].outside else self._store(k)
        return [place, self.strips.functions(k), moved]

    def _kept(self, k: int) -> str:
        """Where an element of a map lies that stays on chip."""
        kept, inner = self.group.kept[k], self.group.inner(k)
        assert kept is not None
        names = {"b": "b", "g": f"(ch / {inner})", "r": "y", "c": "x"} | dict.fromkeys("nm", f"(ch % {inner})")
        return kept.place(names, self.group.element(k))

    def _load(self, k: int) -> list[str]:
        if self.group.stays(k):
            return []
        body = [STEPS.format(k=k), *self.strips.load(k), "certile_dma_wait();"]
        return [f"/* Load the piece of map {k}. */", *function(f"static void load_{k}", [], body)]

    def _writes(self, k: int) -> bool:
        """Whether anything of a layer's result leaves the chip."""
        return k not in self.group.between and self._unwritten(k) < self.group.layers[k].r

    def _unwritten(self, k: int) -> int:
        return self.group.found.stores[self.run.streams[k].store].seen(self.run.unwritten[k], self.group.layers[k].r)

    def _store(self, k: int) -> list[str]:
        """Write what is made for the first time: rows that stay as well from their own place."""
        if not self._writes(k):
            return []
        unwritten, resident = self._unwritten(k), self.group.resident(k)
        body = [STEPS.format(k=k)]
        body += self._store_kept(k, unwritten, resident) if unwritten < resident else []
        if not self.group.stays(k):
            first = f"certile_max(certile_max(r->begin, r->first), {max(unwritten, resident)})"
            body += self.strips.store(k, first, "certile_max(c->begin, c->first)")
        name = self.group.layers[k].name
        return [*comment(f"Write the piece of {name}."),
                *function(f"static void store_{k}", [], [*body, "certile_dma_wait();"])]  # fmt: skip

    def _store_kept(self, k: int, first: int, end: int) -> list[str]:
        """Write rows of a result that lie in their own place, element by element."""
        layer, size = self.group.layers[k], self.machine.out_bytes
        pitch = pitches("OUT", layer, self.machine)
        channel = pitch["m"] if layer.m > 1 else pitch["g"]
        terms = {"b": pitch["b"], "ch": channel, "y": pitch["r"], "x": pitch["c"]}
        place = " + ".join(f"(ptrdiff_t){name} * {step * size}" for name, step in terms.items())
        body = [f"certile_dma_2d(map_{k}(b, ch, y, x), out_{k}.base + {place}, {size}, 1, 0, 0);"]
        body = block("for (int x = certile_max(c->begin, c->first); x < c->end; x++)", body)
        rows = f"int y = certile_max(certile_max(r->begin, r->first), {first}); y < certile_min(r->end, {end}); y++"
        body = block(f"for ({rows})", body)
        body = loop("b", "0", str(layer.b), loop("ch", "0", str(layer.g * layer.m), body))
        return ["certile_dma_begin(CERTILE_OUT, 0);", *block("", body), "certile_dma_start();"]

    # ---- layers ------------------------------------------------------------------------------------------------------

    def _layer(self, k: int) -> list[list[str]]:
        made = [list(text) for text in self._meaning(k)]
        return [*made, self.filters.functions(k), self._make(k), self._finish(k) if k in self.group.adding else []]

    def _meaning(self, k: int) -> list[list[str]]:
        """The functions of the numbers, under names of this layer."""
        numbers = self.group.numbers[k]
        return [_renamed(text, k) for text in (numbers.tables, numbers.finished, *numbers.seen) if text]

    def _make(self, k: int) -> list[str]:
        """Make a piece; of layers that take turns a block of its channels, or add one to the sums."""
        group, layer, numbers = self.group, self.group.layers[k], self.group.numbers[k]
        what = "make the piece of a visit"
        pixel = [f"{numbers.total} sum = {self._first(k)};", *numbers.places("sum")]
        if k in group.adding:
            what = "add a block of channels to the sums of a piece"
            at = f"sum_{k}(b, g * {layer.m} + m, r, c)"
            pixel = [f"unsigned char *const at = {at};", f"{numbers.total} sum = {numbers.read(numbers.sums, 'at')};"]
            pixel += block("if (turn == 0)", [f"sum = {self._first(k)};"])
        for number, parts in enumerate(group.parts[k]):
            for part in parts:
                pixel += self._products(k, number, part)
        if k in group.adding:
            pixel.append(numbers.write(numbers.sums, "at", "sum"))
        else:
            pixel.append(numbers.write(numbers.result, f"map_{k}(b, g * {layer.m} + m, r, c)", self._final(k)))
        weights = [f"const unsigned char *w = filter_{k}(g * {layer.m} + m);"] if layer.weights != "none" else []
        body = [*self._unless_empty(k), *self._channels(k, [*weights, *self._pixels(k, pixel)])]
        return [*comment(f"{layer.name}: {what}."), *function(f"static void make_{k}", [], body)]

    def _unless_empty(self, k: int) -> list[str]:
        return [f"const certile_step *r_ = &row[{k}], *c_ = &column[{k}];",
                *block("if (r_->begin >= r_->end || c_->begin >= c_->end)", ["return;"])]  # fmt: skip

    def _channels(self, k: int, body: list[str]) -> list[str]:
        """Go through the channels of a piece, or of a block."""
        layer, blocks = self.group.layers[k], self.group.between.get(k)
        if blocks is None:
            return block(f"for (int g = 0; g < {layer.g}; g++)", block(f"for (int m = 0; m < {layer.m}; m++)", body))
        head = f"for (int f = turn * {blocks.channels}; f < (turn + 1) * {blocks.channels}; f++)"
        return block(head, [f"const int g = f / {layer.m}, m = f % {layer.m};", *body])

    def _pixels(self, k: int, body: list[str]) -> list[str]:
        """Go through the images, rows and columns of a piece."""
        body = block("for (int c = c_->begin; c < c_->end; c++)", body)
        body = block("for (int r = r_->begin; r < r_->end; r++)", body)
        return block(f"for (int b = 0; b < {self.group.layers[k].b}; b++)", body)

    def _final(self, k: int) -> str:
        return self.group.numbers[k].final("sum").replace("finished(", f"finished_{k}(")

    def _finish(self, k: int) -> list[str]:
        """Make results of sums, each in the place of its sum, and beside it where it stays on chip."""
        layer, numbers = self.group.layers[k], self.group.numbers[k]
        pixel = [
            f"unsigned char *const at = sum_{k}(b, m, r, c);",
            f"{numbers.total} sum = {numbers.read(numbers.sums, 'at')};",
        ]
        pixel.append(numbers.write(numbers.result, "at", self._final(k)))
        if (rows := self.group.resident(k)) > 0:
            pixel += block(f"if (r < {rows})", [f"memcpy(map_{k}(b, m, r, c), at, {self.machine.out_bytes});"])
        body = [*self._unless_empty(k), "const int g = 0;", "(void)g;",
                *block(f"for (int m = 0; m < {layer.m}; m++)", self._pixels(k, pixel))]  # fmt: skip
        return [*comment(f"{layer.name}: its sums are complete."), *function(f"static void finish_{k}", [], body)]

    def _first(self, k: int) -> str:
        layer, numbers = self.group.layers[k], self.group.numbers[k]
        if not layer.bias:
            return numbers.start
        if self.machine.bias_bytes:
            return numbers.read(numbers.bias, f"w + {self.filters.taps(k)}")
        return numbers.read(numbers.bias, f"bias_{k}.base + (ptrdiff_t)(g * {layer.m} + m) * 4")

    def _products(self, k: int, number: int, part: Part) -> list[str]:
        """Add what the channels of one map give."""
        layer, numbers = self.group.layers[k], self.group.numbers[k]
        y = total(("r", layer.stride_h), ("i", layer.dilation_h), ("1", -layer.pad_top))
        x = total(("c", layer.stride_w), ("j", layer.dilation_w), ("1", -layer.pad_left))
        at = {"b": "b", "g": "g", "n": "n", "r": "at_y", "c": "at_x"} | dict.fromkeys(layer.patterns[number], "0")
        place = f"map_{part.stream}({at['b']}, ch - {part.first}, {at['r']}, {at['c']})"
        value = numbers.given(number, place, ", ".join(at.values()))
        value = value.replace(f"seen_{number}(", f"seen_{k}_{number}(")
        if layer.weights != "none":
            order = "nij" if self.machine.w_layout == "OIHW" else "ijn"
            sizes, pitch, terms = {"n": layer.n, "i": layer.kh, "j": layer.kw}, self.machine.w_bytes, []
            for d in reversed(order):
                terms.append(f"{d} * {pitch}")
                pitch *= sizes[d]
            weight = numbers.weight("w + (" + " + ".join(terms) + ")")
            value = f"{weight} * {value}"
        step = [f"const int at_y = {y}, at_x = {x};", *block(
            f"if (at_y >= 0 && at_y < {layer.h} && at_x >= 0 && at_x < {layer.l})",
            [numbers.add("sum", value, number).replace("stage_", f"stage_{k}_")],
        )]  # fmt: skip
        body = loop("i", "0", str(layer.kh), loop("j", "0", str(layer.kw), step))
        body = [f"const int ch = {at['g']} * {layer.n} + n;",
                *block(f"if (ch >= {part.first} && ch < {part.first + part.number})", body)]  # fmt: skip
        if (blocks := self.group.adding.get(k)) is not None:
            size = blocks.channels
            return block("", block(f"for (int n = turn * {size}; n < (turn + 1) * {size}; n++)", body))
        return block("", block(f"for (int n = 0; n < {layer.n}; n++)", body))

    # ---- the group ---------------------------------------------------------------------------------------------------

    def _entry(self) -> list[str]:
        """The group's function: its visits, in each layer after layer, some of them in turns."""
        turns, k, visit = {blocks.first: blocks for blocks in self.run.blocks}, 0, list[str]()
        while k < len(self.group.layers):
            blocks = turns.get(self.run.first + k)
            last = k if blocks is None else blocks.last - self.run.first
            visit += self._loads(k)
            visit += self._turns(blocks) if blocks else [*self.strips.alive(k), f"make_{k}();"]
            visit += [f"store_{last}();"] if self._writes(last) else []
            visit += [
                line
                for s, stream in enumerate(self.run.streams)
                if s not in self.group.between and self._used(s) & {self.run.first + k, self.run.first + last}
                for line in self.strips.done(s, sum(u <= self.run.first + last for u in stream.readers))
            ]
            k = last + 1
        visit = ["row = rows[r];", "column = columns[c];", *self.strips.begin_visit(), *visit]
        body = self._bind() + self.filters.load() + self.strips.begin()
        body += block(f"for (int r = 0; r < {len(self.group.rows)}; r++)",
                      block(f"for (int c = 0; c < {len(self.group.columns)}; c++)", visit))  # fmt: skip
        given = ["unsigned char *const in[]", "unsigned char *const out[]", "unsigned char *const w[]",
                 "unsigned char *const bias[]"]  # fmt: skip
        return function(f"void {self.name}", given, ["(void)in, (void)out, (void)w, (void)bias;", *body])

    def _loads(self, k: int) -> list[str]:
        """Load what layer k is the first to read from outside."""
        lines = []
        for s, stream in enumerate(self.run.streams):
            if stream.outside and stream.maker == self.run.first + k and not self.group.stays(s):
                lines += [*self.strips.alive(s), f"load_{s}();"]
        return lines

    def _used(self, s: int) -> set[int]:
        """The layers that make or read a map."""
        stream = self.run.streams[s]
        return set(stream.readers) | (set() if stream.outside else {stream.maker})

    def _turns(self, blocks: Blocks) -> list[str]:
        """Layers that take turns: block after block of channels, then the result."""
        assert isinstance(self.strips, Packed)
        first, last = blocks.first - self.run.first, blocks.last - self.run.first
        between, layer = range(first, last), self.group.layers[last]
        turn = [line for k in between for line in self.strips.take(k)]
        turn += [f"make_{k}();" for k in (*between, last)]
        turn += [line for k in between for line in self.strips.leave(k)]
        return [*self.strips.sums(last), *block(f"for (turn = 0; turn < {layer.n // blocks.channels}; turn++)", turn),
                f"finish_{last}();", *self.strips.alive(last)]  # fmt: skip

    def _bind(self) -> list[str]:
        """Tensors off the chip: maps from outside by stream, results, weights and biases by layer."""
        lines = []
        for k, layer in enumerate(self.group.layers):
            lines.append(f"out_{k} = {tensor('OUT', f'out[{k}]', layer, self.machine)};")
            if layer.weights != "none":
                lines.append(f"w_{k} = (certile_tensor){{w[{k}], 1, {{0}}}};")
                lines.append(f"bias_{k} = (certile_tensor){{bias[{k}], 1, {{0}}}};")
        for k, stream in enumerate(self.run.streams):
            if stream.outside:
                lines.append(f"in_{k} = {tensor('IN', f'in[{k}]', self.group.seen_by(k), self.machine)};")
        return lines


def _renamed(text: Sequence[str], k: int) -> list[str]:
    """Functions and tables of a layer under names of their own in the group's file."""
    made = "\n".join(text)
    for word in ("finished", "stage_", "seen_"):
        new = {"finished": f"finished_{k}", "stage_": f"stage_{k}_", "seen_": f"seen_{k}_"}[word]
        made = made.replace(f"{word}(", f"{new}(") if word == "finished" else made.replace(word, new)
    return made.splitlines()
