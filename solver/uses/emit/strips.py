"""The C file of a group of layers that runs strip by strip (docs/fusion.md): its visits, and in each layer after layer.

Where elements lie is said by `solver.uses.emit.fixed_addresses` (every buffer has one address all the time) or, where
that takes more than there is, and of layers that take turns, by `solver.uses.emit.packed` (strips move, and take what
the plan counts).

**Weights**: those that stay, and the buffer that the others pass through. A filter (with its bias) that stays is loaded
before the first visit. The others are loaded filter by filter, in every visit in which their layer makes something. Of
a layer that adds up blocks of channels only the part of a filter that belongs to a block is loaded for it, the bias
with the first one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from hwmodels.fusion.replay.count import weight_bytes
from hwmodels.schedule import Blocks
from instances.network.stores import Pitch
from solver.uses.emit.computing import Computing
from solver.uses.emit.frame import tensor
from solver.uses.emit.groups import Group
from solver.uses.emit.text import block, comment, function, loop
from solver.uses.emit.values import pitches

#: The steps of a map in the visit that runs.
STEPS = "const certile_step *r = &row[{k}], *c = &column[{k}];"


class GroupFile(Computing, ABC):
    """Writes the file of a group. `address`: by buffer, as in `Group.blocks` without the group's name."""

    group: Group
    includes: tuple[str, ...] = ('"certile_strips.h"',)

    def __init__(self, group: Group, name: str, address: Mapping[str, int], includes: Sequence[str]) -> None:
        self.group, self.name, self.includes = group, name, ('"certile_dma.h"', *self.includes, *includes)
        self.address = group.places(address)
        self.machine, self.run = group.machine, group.run

    def text(self) -> str:
        """The file."""
        parts = [
            [f"#include {file}" for file in self.includes],
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
            lines.append(f"map {k}: {what}; {self._said(k)}")
        return "\n".join(lines)

    def _at(self, what: str) -> str:
        """The address of a buffer as C."""
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
        return lines

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
        return lines

    # ---- what depends on where elements lie --------------------------------------------------------------------------

    @abstractmethod
    def _said(self, k: int) -> str:
        """What a map has on chip, for people."""

    @abstractmethod
    def _place(self, k: int) -> list[str]:
        """Statements that return where an element of a map lies while its piece is there."""

    @abstractmethod
    def _functions(self, k: int) -> list[str]:
        """The functions of a map's strip."""

    @abstractmethod
    def _transfer(self, k: int, operand: str, first: str, left: str) -> list[str]:
        """Load the piece of a map (IN), or write that of a result (OUT), from some row and column on."""

    @abstractmethod
    def _done(self, k: int, readers: int) -> list[str]:
        """When so many readers of a map have run."""

    def _begin(self) -> list[str]:
        """Before the first visit."""
        return []

    def _begin_visit(self) -> list[str]:
        return []

    def _alive(self, k: int) -> list[str]:
        """Before a piece is loaded or made."""
        return []

    def _turns(self, blocks: Blocks) -> list[str]:
        """Layers that take turns."""
        raise NotImplementedError

    # ---- streams -----------------------------------------------------------------------------------------------------

    def _stream(self, k: int) -> list[list[str]]:
        """The functions of a map: the place of an element, what is done with its strip, and its transfers."""
        body = ["(void)b, (void)ch, (void)y, (void)x;"]
        if (kept := self.group.kept[k]) is not None:
            inner = self.group.inner(k)
            names = {"b": "b", "g": f"(ch / {inner})", "r": "y", "c": "x"} | dict.fromkeys("nm", f"(ch % {inner})")
            there = kept.place(names, self.group.element(k))
            body += block(f"if (y < {self.group.resident(k)})", [f"return {there};"])
        head, given = f"static inline unsigned char *map_{k}", ["int b", "int ch", "int y", "int x"]
        place = function(head, given, [*body, *self._place(k)], f"Where an element of map {k} lies in this visit.")
        return [place, self._functions(k), self._loaded(k) if self.run.streams[k].outside else self._stored(k)]

    def _loaded(self, k: int) -> list[str]:
        if self.group.stays(k):
            return []
        if (pitch := self.group.found.pitch.get(self.run.streams[k].maker)) is not None:
            moved = self._sampled(k, pitch)
        else:
            moved = self._transfer(k, "IN", f"certile_max(r->begin, {self.group.resident(k)})", "c->begin")
        body = [STEPS.format(k=k), *moved, "certile_dma_wait();"]
        return function(f"static void load_{k}", [], body, f"Load the piece of map {k}.")

    def _sampled(self, k: int, pitch: Pitch) -> list[str]:
        """Load the piece of a map that is sampled: pixels, or elements where channels lie apart, one by one."""
        layer, size = self.group.off_chip(k), self.group.element(k)
        each, channels = pitches("IN", layer, self.machine), self.group.channels(k)
        apart = self.group.layout(k) == "CHW"
        terms = {"b": each["b"], "ch": each["n"] if layer.n > 1 else each["g"], "y": pitch.down * each["r"],
                 "x": pitch.across * each["c"]}  # fmt: skip
        place = " + ".join(f"(ptrdiff_t){name} * {step * size}" for name, step in terms.items())
        run = size if apart else size * channels
        body = [f"certile_dma_2d(map_{k}(b, ch, y, x), in_{k}.base + {place}, {run}, 1, 0, 0);"]
        for axis, span in (("x", "c"), ("y", "r")):
            body = block(f"for (int {axis} = {span}->begin; {axis} < {span}->end; {axis}++)", body)
        body = loop("ch", "0", str(channels), body) if apart else ["const int ch = 0;", *body]
        body = block("", loop("b", "0", str(layer.b), body))
        return block("if (r->begin < r->end && c->begin < c->end)",
                     ["certile_dma_begin(CERTILE_IN, 1);", *body, "certile_dma_start();"])  # fmt: skip

    def _writes(self, k: int) -> bool:
        """Whether anything of a layer's result leaves the chip."""
        return k not in self.group.between and self._unwritten(k) < self.group.layers[k].r

    def _unwritten(self, k: int) -> int:
        return self.group.found.stores[self.run.streams[k].store].seen(self.run.unwritten[k], self.group.layers[k].r)

    def _stored(self, k: int) -> list[str]:
        """Write what is made for the first time: rows that stay as well from their own place."""
        if not self._writes(k):
            return []
        unwritten, resident = self._unwritten(k), self.group.resident(k)
        body = [STEPS.format(k=k)]
        body += self._store_kept(k, unwritten, resident) if unwritten < resident else []
        if not self.group.stays(k):
            first = f"certile_max(certile_max(r->begin, r->first), {max(unwritten, resident)})"
            body += self._transfer(k, "OUT", first, "certile_max(c->begin, c->first)")
        return [*comment(f"Write the piece of {self.group.layers[k].name}."),
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
        body = loop("b", "0", str(layer.b), loop("ch", "0", str(layer.g * layer.m), block(f"for ({rows})", body)))
        return ["certile_dma_begin(CERTILE_OUT, 0);", *block("", body), "certile_dma_start();"]

    # ---- layers ------------------------------------------------------------------------------------------------------

    def _layer(self, k: int) -> list[list[str]]:
        """The functions of a layer; those of its numbers under names of this layer."""
        return [
            *self._functions_of(k),
            self._filter(k),
            self._make(k),
            self._finish(k) if k in self.group.adding else [],
        ]

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
        body = [f"const unsigned char *w = filter_{k}(g * {layer.m} + m);"] if layer.weights != "none" else []
        body += self._pixels(k, pixel)
        if (blocks := group.between.get(k) or group.passing.get(k)) is None:
            body = block(f"for (int g = 0; g < {layer.g}; g++)", block(f"for (int m = 0; m < {layer.m}; m++)", body))
        else:
            head = f"for (int f = turn * {blocks.channels}; f < (turn + 1) * {blocks.channels}; f++)"
            body = block(head, [f"const int g = f / {layer.m}, m = f % {layer.m};", *body])
        return [*comment(f"{layer.name}: {what}."),
                *function(f"static void make_{k}", [], [*self._unless_empty(k), *body])]  # fmt: skip

    def _channels(self, k: int) -> tuple[str, str]:
        if k not in self.group.adding:
            return super()._channels(k)
        size = self.group.adding[k].channels
        return f"turn * {size}", f"(turn + 1) * {size}"

    def _unless_empty(self, k: int) -> list[str]:
        return [f"const certile_step *r_ = &row[{k}], *c_ = &column[{k}];",
                *block("if (r_->begin >= r_->end || c_->begin >= c_->end)", ["return;"])]  # fmt: skip

    def _pixels(self, k: int, body: list[str]) -> list[str]:
        """Go through the images, rows and columns of a piece."""
        body = block("for (int c = c_->begin; c < c_->end; c++)", body)
        body = block("for (int r = r_->begin; r < r_->end; r++)", body)
        return block(f"for (int b = 0; b < {self.group.layers[k].b}; b++)", body)

    def _finish(self, k: int) -> list[str]:
        """Make results of sums, each in the place of its sum, and beside it where it stays on chip."""
        layer, numbers = self.group.layers[k], self.group.numbers[k]
        pixel = [
            f"unsigned char *const at = sum_{k}(b, m, r, c);",
            f"{numbers.total} sum = {numbers.read(numbers.sums, 'at')};",
            numbers.write(numbers.result, "at", self._final(k)),
        ]
        if (rows := self.group.resident(k)) > 0:
            pixel += block(f"if (r < {rows})", [f"memcpy(map_{k}(b, m, r, c), at, {self.machine.out_bytes});"])
        body = [*self._unless_empty(k), "const int g = 0;", "(void)g;",
                *block(f"for (int m = 0; m < {layer.m}; m++)", self._pixels(k, pixel))]  # fmt: skip
        return [*comment(f"{layer.name}: its sums are complete."), *function(f"static void finish_{k}", [], body)]

    # ---- weights -----------------------------------------------------------------------------------------------------

    def _filter(self, k: int) -> list[str]:
        """The functions of a layer: bytes of a filter, and a filter where it stays or in the buffer."""
        layer, stay, size, taps = (
            self.group.layers[k],
            self.group.stay_bytes(k),
            self.group.filter_bytes(k),
            self._taps(k),
        )
        if layer.weights == "none":
            return []
        kept, through = f"{self._at(f'weights {k}')} + (ptrdiff_t)f * {size}", self._at("filter")
        body = block(f"if ((f + 1) * {size} <= {stay})", [f"return {kept};"]) if stay else []
        if stay == weight_bytes(layer, self.machine):
            body.append("return NULL;")
        else:
            body += [f"const int there = {f'certile_max(0, {stay} - f * {size})' if stay else '0'};"]
            body += [f"memcpy({through}, {kept}, (size_t)there);"] if stay % size else []
            load = f"filter_bytes_{k}({through}, f, %s, %s);"
            calls = [load % ("there", size)]
            if k in self.group.adding:
                calls = self._part(k, load)
                if size > taps:
                    calls += block("if (turn == 0)", [load % (f"certile_max(there, {taps})", size)])
            body += ["certile_dma_begin(CERTILE_W, 1);", *calls, "certile_dma_start();", "certile_dma_wait();"]
            body.append(f"return {through};")
        what = ", the part of a block of channels" if k in self.group.adding else ""
        return [*self._filter_bytes(k), "", *comment(f"A filter of {layer.name}{what}."),
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

    def _filter_bytes(self, k: int) -> list[str]:
        taps = self._taps(k)
        body = [
            f"const int taps = certile_min(end, {taps}) - first;",
            *block("if (taps > 0)", [
                f"unsigned char *from = w_{k}.base + (ptrdiff_t)f * {taps} + first;",
                "certile_dma_2d(to + first, from, (size_t)taps, 1, 0, 0);",
            ]),
        ]  # fmt: skip
        if bias := self.group.filter_bytes(k) - taps:
            body += block(f"if (end > certile_max(first, {taps}))", [
                f"const int begin = certile_max(first, {taps});",
                f"unsigned char *from = bias_{k}.base + (ptrdiff_t)f * {bias} + begin - {taps};",
                "certile_dma_2d(to + begin, from, (size_t)(end - begin), 1, 0, 0);",
            ])  # fmt: skip
        given = ["unsigned char *to", "int f", "int first", "int end"]
        said = "Bytes `first` to `end` of filter f (with its bias), to a place that begins with the filter."
        return function(f"static void filter_bytes_{k}", given, body, said)

    def _load_weights(self) -> list[str]:
        """Load the weights that stay."""
        lines = []
        for k, layer in enumerate(self.group.layers):
            if layer.weights == "none" or not (stay := self.group.stay_bytes(k)):
                continue
            size = self.group.filter_bytes(k)
            lines += ["certile_dma_begin(CERTILE_W, 1);", *block(f"for (int f = 0; f * {size} < {stay}; f++)", [
                f"unsigned char *to = {self._at(f'weights {k}')} + (ptrdiff_t)f * {size};",
                f"filter_bytes_{k}(to, f, 0, certile_min({size}, {stay} - f * {size}));",
            ]), "certile_dma_start();"]  # fmt: skip
        return [*lines, "certile_dma_wait();"] if lines else []

    # ---- the group ---------------------------------------------------------------------------------------------------

    def _entry(self) -> list[str]:
        """The group's function: its visits, in each layer after layer, some of them in turns."""
        turns, k, visit = {blocks.first: blocks for blocks in self.run.blocks}, 0, list[str]()
        while k < len(self.group.layers):
            blocks, first = turns.get(self.run.first + k), self.run.first + k
            end = first if blocks is None else blocks.last
            for s, stream in enumerate(self.run.streams):  # what this layer is the first to read from outside
                if stream.outside and stream.maker == first and not self.group.stays(s):
                    visit += [*self._alive(s), f"load_{s}();"]
            visit += self._turns(blocks) if blocks else [*self._alive(k), f"make_{k}();"]
            k = end - self.run.first
            visit += [f"store_{k}();"] if self._writes(k) else []
            for s, stream in enumerate(self.run.streams):
                used = {*stream.readers, *([] if stream.outside else [stream.maker])}
                if s not in self.group.between and used & {first, end}:
                    visit += self._done(s, sum(u <= end for u in stream.readers))
            k += 1
        visit = ["row = rows[r];", "column = columns[c];", *self._begin_visit(), *visit]
        body = self._bind() + self._load_weights() + self._begin()
        body += block(f"for (int r = 0; r < {len(self.group.rows)}; r++)",
                      block(f"for (int c = 0; c < {len(self.group.columns)}; c++)", visit))  # fmt: skip
        given = ["unsigned char *const in[]", "unsigned char *const out[]", "unsigned char *const w[]",
                 "unsigned char *const bias[]"]  # fmt: skip
        return function(f"void {self.name}", given, ["(void)in, (void)out, (void)w, (void)bias;", *body])

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
                lines.append(f"in_{k} = {tensor('IN', f'in[{k}]', self.group.off_chip(k), self.machine)};")
        return lines
