"""The strips of a group where every buffer has one address all the time.

Of every map on its way through the group there are up to three buffers, with all its channels:

    lines     rows that later steps of rows read again, over the width of the map: row y in line y modulo their number
    columns   of a step's rows, columns that the next step of columns reads again: column x at x modulo their number
    piece     what a visit loads or makes, from then on until its last reader has run

When the last reader has run, columns that stay for the next step are copied from the piece to the columns, and of
those that no step reads again the rows that stay are copied to the lines. That takes the bytes that the plan counts:
those of the halo all the time, those of a piece while it is read. Where the first piece is larger than the others a
ring may take less: rows at their number modulo its height where a step has all columns, else columns modulo its width,
in place of columns and piece. Rows that stay on chip beyond the group lie in their own place.
"""

from __future__ import annotations

from hwmodels.fusion.replay.count import extent
from solver.uses.emit.frame import box_of
from solver.uses.emit.strips import STEPS, GroupFile
from solver.uses.emit.text import block, function, loop
from solver.uses.emit.values import storage_order


class FixedAddresses(GroupFile):
    """Writes the file of a group whose buffers have one address each."""

    includes = ('"certile_lines.h"', '"certile_strips.h"')

    def _said(self, k: int) -> str:
        sizes = self.group.sizes(k)
        return f"{sizes.lines} lines, {sizes.columns} columns, pieces of {sizes.rows} x {sizes.width}"

    def _done(self, k: int, readers: int) -> list[str]:
        sizes, last = self.group.sizes(k), readers == len(self.run.streams[k].readers)
        return [f"retire_{k}();"] if last and (sizes.lines or sizes.columns) else []

    # ---- places ----------------------------------------------------------------------------------------------------

    def _term(self, k: int, rows: int, columns: int, y: str, x: str) -> str:
        """Bytes from the beginning of a buffer to an element."""
        size, channels = self.group.element(k), self.group.channels(k)
        channel, down, over = rows * columns * size, columns * size, size
        if self.group.layout(k) == "HWC":
            channel, down, over = size, columns * channels * size, channels * size
        term = f"(ptrdiff_t)ch * {channel} + (ptrdiff_t)({y}) * {down} + (ptrdiff_t)({x}) * {over}"
        return term if self.group.images(k) == 1 else f"(ptrdiff_t)b * {channels * rows * columns * size} + {term}"

    def _place(self, k: int) -> list[str]:
        sizes, width = self.group.sizes(k), extent(self.group.walk, k)[1]
        body = [STEPS.format(k=k), "(void)r, (void)c;"]
        if not sizes.rows:
            return [*body, "return NULL;"]
        if sizes.lines:
            line = self._term(k, sizes.lines, width, f"y % {sizes.lines}", "x")
            body += block("if (y < r->before)", [f"return {self._at(f'lines {k}')} + {line};"])
        if sizes.columns:
            term = self._term(k, sizes.rows, sizes.columns, "y - r->begin", f"x % {sizes.columns}")
            body += block("if (x < c->before)", [f"return {self._at(f'columns {k}')} + {term};"])
        y = f"y % {sizes.rows}" if sizes.ring == "rows" else "y - r->begin"
        x = f"x % {sizes.width}" if sizes.ring == "columns" else "x - c->begin"
        return [*body, f"return {self._at(f'piece {k}')} + {self._term(k, sizes.rows, sizes.width, y, x)};"]

    def _functions(self, k: int) -> list[str]:
        """The function for when the last reader has run: what stays leaves the piece."""
        sizes, width = self.group.sizes(k), extent(self.group.walk, k)[1]
        if not sizes.lines and not sizes.columns:
            return []
        body, resident = [STEPS.format(k=k), *block("if (r->begin >= r->end)", ["return;"])], self.group.resident(k)
        if sizes.lines:
            first = f"certile_max(certile_max(r->need_after, r->before), {resident})"
            to = f"{self._at(f'lines {k}')} + {self._term(k, sizes.lines, width, f'y % {sizes.lines}', 'x')}"
            rows, columns = (first, "r->end"), ("c->need", "c->need_after")
            body += [
                "/* Of columns that no step reads again the rows that stay. */",
                *self._copied(k, to, rows, columns),
            ]
        if sizes.columns:
            term = self._term(k, sizes.rows, sizes.columns, "y - r->begin", f"x % {sizes.columns}")
            rows, columns = (f"certile_max(r->begin, {resident})", "r->end"), (
                "certile_max(c->need_after, c->before)", "c->end",
            )  # fmt: skip
            body += ["/* Columns that the next step reads again. */",
                     *self._copied(k, f"{self._at(f'columns {k}')} + {term}", rows, columns)]  # fmt: skip
        return function(f"static void retire_{k}", [], body, f"Map {k} was read for the last time in this visit.")

    def _copied(self, k: int, to: str, rows: tuple[str, str], columns: tuple[str, str]) -> list[str]:
        """Copy elements of rows and columns, all channels."""
        body = [f"memcpy({to}, map_{k}(b, ch, y, x), {self.group.element(k)});"]
        body = block(f"for (int y = {rows[0]}; y < {rows[1]}; y++)", body)
        body = block(f"for (int x = {columns[0]}; x < {columns[1]}; x++)", body)
        return block("", loop("b", "0", str(self.group.images(k)), loop("ch", "0", str(self.group.channels(k)), body)))

    # ---- transfers -------------------------------------------------------------------------------------------------

    def _transfer(self, k: int, operand: str, first: str, left: str) -> list[str]:
        order, layer, sizes = storage_order(operand, self.machine), self.group.seen_by(k), self.group.sizes(k)
        extents = dict.fromkeys("nm", self.group.inner(k)) | {
            "b": layer.b,
            "g": layer.g,
            "r": sizes.rows,
            "c": sizes.width,
        }
        begin = {"r": "0" if sizes.ring == "rows" else "r->begin", "c": "0" if sizes.ring == "columns" else "c->begin"}
        numbers, begins = ", ".join(str(extents[d]) for d in order), ", ".join(begin.get(d, "0") for d in order)
        tile = f"{{{self._at(f'piece {k}')}, {self.group.element(k)}, {{{numbers}}}, {{{begins}}}}}"
        ends = {d: ("0", str(extents[d])) for d in "bgnm"} | {"r": (first, "r->end"), "c": (left, "c->end")}
        moves = "load" if operand == "IN" else "store"
        return [
            f"const certile_tile tile = {tile};",
            f"const certile_box box = {box_of(order, ends)};",
            f"certile_{moves}(CERTILE_{operand}, &tile, &{operand.lower()}_{k}, &box);",
        ]
