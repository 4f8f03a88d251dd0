"""The strips of a group that lie one behind the other without gaps, in exactly the bytes that the plan counts.

Of a map there is what the plan counts at every moment, nothing else: of every column the rows that its readers have yet
to see, in this visit or later, and the piece while it is made. When a map grows or shrinks, what lies behind it
moves. Elements never change their order, so every move is one pass over memory. Of layers that take turns
the maps between are three strips: channels that are done in this visit, the block that is on, and those to come. The
last of these layers, if it adds them up, has sums in place of the elements of its piece until all channels are added.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from hwmodels.fusion.replay.count import extent
from hwmodels.schedule import Blocks, FusedRun
from solver.uses.emit.strips import GroupFile
from solver.uses.emit.text import block, function

#: A row or column that no map has, as a C int.
_FAR = 2**30


def with_bands(header: str, runs: Iterable[FusedRun]) -> str:
    """Return the header of strips with as many bands as maps of groups may have: two a reader, and two."""
    readers = max((len(stream.readers) for run in runs for stream in run.streams), default=1)
    return header.replace("CERTILE_BANDS = 4", f"CERTILE_BANDS = {2 * max(1, readers) + 2}")


class Packed(GroupFile):
    """Writes the file of a group whose strips move."""

    @cached_property
    def strips(self) -> dict[int, int]:
        """By stream its strip; of one between layers that take turns the block that is on."""
        found, number, between, adding = dict[int, int](), 0, self.group.between, self.group.adding
        others = [k for k in range(len(self.run.streams)) if k not in {*between, *adding}]
        for k in [*others, *adding, *between]:
            if k in between:
                found[k] = number + 1
                number += 3
            elif k in adding or not self.group.stays(k):
                found[k] = number
                number += 1
        return found

    @property
    def _number(self) -> int:
        """Strips, with those of other blocks."""
        return len(self.strips) + 2 * len(self.group.between)

    def _said(self, k: int) -> str:
        if k not in self.strips:
            return "on chip as a whole"
        blocks = self.group.between.get(k)
        turns = f", in turns of {blocks.channels} channels" if blocks else ""
        return f"strip {self.strips[k]}{turns}{', sums first' if k in self.group.adding else ''}"

    def _declarations(self) -> list[str]:
        """Also the strips, what is seen of them in the visit, and the block of channels that is on."""
        turn = ["static int turn; /* the block of channels that is on, of layers that take turns */"]
        seen = "static const certile_seen *row_seen, *column_seen; /* of the visit, by map and reader */"
        strips = f"static certile_strip strips[{self._number}];"
        return [*super()._declarations(), strips, seen, *(turn if self.run.blocks else [])]

    def _tables(self) -> list[str]:
        """Also what every reader of every map sees in every step of rows, and of columns."""
        lines = super()._tables()
        for name, steps in (("rows", self.group.rows), ("columns", self.group.columns)):
            count = sum(len(one.seen) for one in steps[0])
            lines.append(f"static const certile_seen {name}_seen[{len(steps)}][{count}] = {{")
            for step in steps:
                cells = (", ".join(str(min(n, _FAR)) for n in seen) for one in step for seen in one.seen)
                lines.append("    {" + ", ".join(f"{{{cell}}}" for cell in cells) + "},")
            lines.append("};")
        return lines

    def _begin(self) -> list[str]:
        """No strip has anything."""
        empty = f"strips[k] = (certile_strip){{.base = {self._at('strips')}}};"
        lines = block(f"for (int k = 0; k < {self._number}; k++)", [empty])
        for k, strip in self.strips.items():
            planes, count = self._planes(k)
            blocks = self.group.between.get(k)
            sum_bytes = self.machine.psum_bytes if k in self.group.adding else self.group.element(k)
            for s in range(strip - 1, strip + 2) if blocks else [strip]:
                turns = self.group.channels(k) // blocks.channels if blocks else 1
                here = planes if not blocks else 0 if s > strip - 1 else planes * turns
                lines.append(f"strips[{s}].planes = {here}, strips[{s}].count = {count};")
                lines.append(f"strips[{s}].element = {self.group.element(k)}, strips[{s}].sum = {sum_bytes};")
        return lines

    def _begin_visit(self) -> list[str]:
        """Where halos are made again pieces are dropped, and all blocks are to come."""
        lines = ["row_seen = rows_seen[r];", "column_seen = columns_seen[c];"]
        for k in self.strips:
            lines += [f"certile_begin_again(strips, {self.strips[k] - 1});"] if k in self.group.between else []
            if "recompute" in (self.run.rows.halo, self.run.columns.halo):
                lines.append(self._shape(k, "CERTILE_BEFORE", to_come=True))
        return lines

    def _alive(self, k: int) -> list[str]:
        return [self._shape(k, "CERTILE_MADE")] if k in self.strips else []

    def _done(self, k: int, readers: int) -> list[str]:
        return [self._shape(k, str(readers))] if k in self.strips else []

    def _shape(self, k: int, when: str, *, to_come: bool = False) -> str:
        strip = self.strips[k] + (to_come and k in self.group.between)
        return f"shape_{k}({strip}, {when});" if k in self.group.between else f"shape_{k}({when});"

    def _turns(self, blocks: Blocks) -> list[str]:
        """Block after block of channels, of each first the maps between and then the sums; then the result.

        Where nothing is added up the result is there from the first block on.
        """
        first, last = blocks.first - self.run.first, blocks.last - self.run.first
        between, turn = range(first, last), list[str]()
        for k in between:
            turn += [f"certile_pass_on(strips, {self.strips[k] + 1}, {self._planes(k)[0]});", *self._alive(k)]
        turn += [f"make_{k}();" for k in (*between, last)]
        for k in between:
            turn += [self._shape(k, "1"), f"certile_pass_on(strips, {self.strips[k]}, {self._planes(k)[0]});"]
        turns = self.group.channels(first) // blocks.channels
        turn = block(f"for (turn = 0; turn < {turns}; turn++)", turn)
        if last in self.group.passing:
            return [*self._alive(last), *turn]
        return [f"sums_{last}();", *turn,
                f"finish_{last}();", *self._alive(last)]  # fmt: skip

    def _planes(self, k: int) -> tuple[int, int]:
        """Planes of a strip (of a block), and elements of a row and column in one."""
        channels = self.group.between[k].channels if k in self.group.between else self.group.channels(k)
        images = self.group.images(k)
        return (images, channels) if self.group.layout(k) == "HWC" else (images * channels, 1)

    # ---- places ----------------------------------------------------------------------------------------------------

    def _place(self, k: int) -> list[str]:
        return [f"return {self._in_strip(k, self.group.element(k))};" if k in self.strips else "return NULL;"]

    def _in_strip(self, k: int, element: int) -> str:
        """Where an element (of so many bytes) is in a strip."""
        channel, number = "ch", self.group.channels(k)
        if k in self.group.between:
            number = self.group.between[k].channels
            channel = f"ch - turn * {number}"
        strip = f"&strips[{self.strips[k]}]"
        if self.group.layout(k) == "HWC":
            return f"certile_in_strip({strip}, b, y, x) + ({channel}) * {element}"
        return f"certile_in_strip({strip}, b * {number} + {channel}, y, x)"

    def _functions(self, k: int) -> list[str]:
        """The functions that give a strip other bands, and the place of a sum."""
        if k not in self.strips:
            return []
        again = (halo == "recompute" for halo in (self.run.rows.halo, self.run.columns.halo))
        stream = self.run.streams[k]
        how = ", ".join(map(str, (stream.columns.end, len(stream.readers), *map(int, again))))
        made = [f"static const certile_passing passing_{k} = {{{how}}};", ""]
        given = ["int strip"] if k in self.group.between else []
        strip = "strip" if given else str(self.strips[k])
        found = [f"certile_bands(bands, {self._steps(k)}, when, &passing_{k});"]
        if k in self.group.adding and self.group.stays(k):
            found = ["memset(bands, 0, sizeof bands);", "(void)when;"]
        reshape = f"certile_reshape(strips, {self._number}, {strip}, bands);"
        body = ["certile_band bands[CERTILE_BANDS];", found[0], reshape, *found[1:]]
        made += function(
            f"static void shape_{k}", [*given, "int when"], body, f"What lies on chip of map {k} from now on."
        )
        return [*made, *(self._sums(k) if k in self.group.adding else [])]

    def _steps(self, k: int) -> str:
        """The steps of a map in the visit that runs, and what its readers see."""
        first = sum(len(stream.readers) for stream in self.run.streams[:k])
        return f"&row[{k}], &column[{k}], &row_seen[{first}], &column_seen[{first}]"

    def _sums(self, k: int) -> list[str]:
        room = [
            "certile_band bands[CERTILE_BANDS];",
            f"certile_bands_of_sums(bands, {self._steps(k)}, &passing_{k}, {int(self.group.stays(k))});",
            f"certile_reshape(strips, {self._number}, {self.strips[k]}, bands);",
        ]
        place = ["(void)b, (void)ch;", f"return {self._in_strip(k, self.machine.psum_bytes)};"]
        given = ["int b", "int ch", "int y", "int x"]
        made = function(f"static void sums_{k}", [], room, f"Room for the sums of map {k}, and where one lies.")
        return ["", *made, "", *function(f"static inline unsigned char *sum_{k}", given, place)]

    # ---- transfers -------------------------------------------------------------------------------------------------

    def _transfer(self, k: int, operand: str, first: str, left: str) -> list[str]:
        rows, columns = extent(self.group.walk, k)
        tensor = f"{operand.lower()}_{k}.base, {rows}, {columns}"
        return [
            f"const certile_band box = {{{first}, r->end, {left}, c->end, 0}};",
            f"certile_transfer(CERTILE_{operand}, {int(operand == 'IN')}, &strips[{self.strips[k]}], {tensor}, &box);",
        ]
