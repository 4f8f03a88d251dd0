"""The strips of a group that lie one behind the other without gaps, in exactly the bytes that the plan counts.

Of a map there is what the plan counts at every moment, nothing else: of every column the rows that its readers have yet
to see, in this visit or later, and the piece while it is made. When a map grows or shrinks, what lies behind it
moves. Elements never change their order, so every move is one pass over memory. Of layers that take turns
the maps between are three strips: channels that are done in this visit, the block that is on, and those to come. The
last of these layers has sums in place of the elements of its piece until all channels are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from hwmodels.fusion.replay.count import extent
from hwmodels.schedule import FusedRun
from solver.uses.emit.groups import Group
from solver.uses.emit.text import function

#: A row or column that no map has, as a C int.
_FAR = 2**30


def with_bands(header: str, runs: Iterable[FusedRun]) -> str:
    """Return the header of strips with as many bands as maps of groups may have: two a reader, and two."""
    readers = max((len(stream.readers) for run in runs for stream in run.streams), default=1)
    return header.replace("CERTILE_BANDS = 4", f"CERTILE_BANDS = {2 * max(1, readers) + 2}")


class Packed:
    """Writes what is done with strips. `at`: the address of a buffer as C."""

    includes = ('"certile_strips.h"',)

    def __init__(self, group: Group, at: Callable[[str], str]) -> None:
        self.group, self.machine, self.run, self.at = group, group.machine, group.run, at

    @cached_property
    def strips(self) -> dict[int, int]:
        """By stream its strip; of one between layers that take turns the block that is on."""
        found, number = dict[int, int](), 0
        last = [
            k
            for blocks in self.run.blocks
            for k in range(blocks.first - self.run.first, blocks.last - self.run.first + 1)
        ]
        last = [k for k in last if k in self.group.adding] + [k for k in last if k in self.group.between]
        for k in [*(k for k in range(len(self.run.streams)) if k not in last), *last]:
            if k in self.group.between:
                found[k] = number + 1
                number += 3
            elif k in self.group.adding or not self.group.stays(k):
                found[k] = number
                number += 1
        return found

    @property
    def number(self) -> int:
        """Strips, with those of other blocks."""
        return len(self.strips) + 2 * len(self.group.between)

    def head(self, k: int) -> str:
        """What a map has on chip, for people."""
        if k not in self.strips:
            return "on chip as a whole"
        blocks = self.group.between.get(k)
        turns = f", in turns of {blocks.channels} channels" if blocks else ""
        return f"strip {self.strips[k]}{turns}{', sums first' if k in self.group.adding else ''}"

    def declarations(self) -> list[str]:
        """The strips, what is seen of them in the visit, and the block of channels that is on."""
        turn = ["static int turn; /* the block of channels that is on, of layers that take turns */"]
        seen = "static const certile_seen *row_seen, *column_seen; /* of the visit, by map and reader */"
        return [f"static certile_strip strips[{self.number}];", seen, *(turn if self.run.blocks else [])]

    def tables(self) -> list[str]:
        """What every reader of every map sees in every step of rows, and of columns."""
        lines = []
        for name, steps in (("rows", self.group.rows), ("columns", self.group.columns)):
            count = sum(len(one.seen) for one in steps[0])
            lines.append(f"static const certile_seen {name}_seen[{len(steps)}][{count}] = {{")
            for step in steps:
                cells = (", ".join(str(min(n, _FAR)) for n in seen) for one in step for seen in one.seen)
                lines.append("    {" + ", ".join(f"{{{cell}}}" for cell in cells) + "},")
            lines.append("};")
        return lines

    def begin(self) -> list[str]:
        """Before the first visit: no strip has anything."""
        lines = [
            f"for (int k = 0; k < {self.number}; k++) {{",
            f"    strips[k] = (certile_strip){{.base = {self.at('strips')}}};",
            "}",
        ]
        for k, strip in self.strips.items():
            planes, count = self._planes(k)
            blocks = self.group.between.get(k)
            sum_bytes = self.machine.psum_bytes if k in self.group.adding else self.group.element(k)
            for s in range(strip - 1, strip + 2) if blocks else [strip]:
                here = planes if not blocks else 0 if s > strip - 1 else planes * self._turns(k)
                lines.append(f"strips[{s}].planes = {here}, strips[{s}].count = {count};")
                lines.append(f"strips[{s}].element = {self.group.element(k)}, strips[{s}].sum = {sum_bytes};")
        return lines

    def begin_visit(self) -> list[str]:
        """At the beginning of a visit: where halos are made again pieces are dropped, and all blocks are to come."""
        lines = ["row_seen = rows_seen[r];", "column_seen = columns_seen[c];"]
        for k in self.strips:
            lines += [f"certile_begin_again(strips, {self.strips[k] - 1});"] if k in self.group.between else []
            if "recompute" in (self.run.rows.halo, self.run.columns.halo):
                lines.append(self._shape(k, "CERTILE_BEFORE", to_come=True))
        return lines

    def alive(self, k: int) -> list[str]:
        """Before a piece is loaded or made."""
        return [self._shape(k, "CERTILE_MADE")] if k in self.strips else []

    def done(self, k: int, readers: int) -> list[str]:
        """When so many readers of a map have run."""
        return [self._shape(k, str(readers))] if k in self.strips else []

    def _shape(self, k: int, when: str, *, to_come: bool = False) -> str:
        strip = self.strips[k] + (to_come and k in self.group.between)
        return f"shape_{k}({strip}, {when});" if k in self.group.between else f"shape_{k}({when});"

    # ---- turns -----------------------------------------------------------------------------------------------------

    def sums(self, k: int) -> list[str]:
        """Room for sums."""
        return [f"sums_{k}();"]

    def take(self, k: int) -> list[str]:
        """The next block of a map between begins."""
        return [f"certile_pass_on(strips, {self.strips[k] + 1}, {self._planes(k)[0]});", self._shape(k, "CERTILE_MADE")]

    def leave(self, k: int) -> list[str]:
        """The block that is on ends."""
        return [self._shape(k, "1"), f"certile_pass_on(strips, {self.strips[k]}, {self._planes(k)[0]});"]

    def _turns(self, k: int) -> int:
        return self.group.channels(k) // self.group.between[k].channels

    def _planes(self, k: int) -> tuple[int, int]:
        """Planes of a strip (of a block), and elements of a row and column in one."""
        channels = self.group.between[k].channels if k in self.group.between else self.group.channels(k)
        images = self.group.images(k)
        return (images, channels) if self.group.layout(k) == "HWC" else (images * channels, 1)

    # ---- places ----------------------------------------------------------------------------------------------------

    def place(self, k: int) -> list[str]:
        """Statements that return where an element of a map lies while its piece is there."""
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

    def functions(self, k: int) -> list[str]:
        """The functions that give a strip other bands, and the place of a sum."""
        if k not in self.strips:
            return []
        again = (halo == "recompute" for halo in (self.run.rows.halo, self.run.columns.halo))
        stream = self.run.streams[k]
        how = ", ".join(map(str, (stream.columns.end, len(stream.readers), *map(int, again))))
        made = [f"static const certile_passing passing_{k} = {{{how}}};", ""]
        given = ["int strip"] if k in self.group.between else []
        strip = "strip" if given else str(self.strips[k])
        body = ["certile_band bands[CERTILE_BANDS];",
                f"certile_bands(bands, {self._steps(k)}, when, &passing_{k});",
                f"certile_reshape(strips, {self.number}, {strip}, bands);"]  # fmt: skip
        if k in self.group.adding and self.group.stays(k):
            body[1] = "memset(bands, 0, sizeof bands);"
            body.append("(void)when;")
        made += [f"/* What lies on chip of map {k} from now on. */",
                 *function(f"static void shape_{k}", [*given, "int when"], body)]  # fmt: skip
        return [*made, *(self._sums(k) if k in self.group.adding else [])]

    def _steps(self, k: int) -> str:
        """The steps of a map in the visit that runs, and what its readers see."""
        first = sum(len(stream.readers) for stream in self.run.streams[:k])
        return f"&row[{k}], &column[{k}], &row_seen[{first}], &column_seen[{first}]"

    def _sums(self, k: int) -> Iterator[str]:
        yield from ("", f"/* Room for the sums of map {k}, and where one lies. */")
        yield from function(f"static void sums_{k}", [], [
            "certile_band bands[CERTILE_BANDS];",
            f"certile_bands_of_sums(bands, {self._steps(k)}, &passing_{k}, {int(self.group.stays(k))});",
            f"certile_reshape(strips, {self.number}, {self.strips[k]}, bands);",
        ])  # fmt: skip
        yield ""
        yield from function(f"static inline unsigned char *sum_{k}", ["int b", "int ch", "int y", "int x"], [
            "(void)b, (void)ch;", f"return {self._in_strip(k, self.machine.psum_bytes)};",
        ])  # fmt: skip

    # ---- transfers -------------------------------------------------------------------------------------------------

    def load(self, k: int) -> list[str]:
        """Load the piece of a map."""
        return self._transfer(k, "IN", f"certile_max(r->begin, {self.group.resident(k)})", "c->begin")

    def store(self, k: int, first: str, left: str) -> list[str]:
        """Write the piece of a result from some row and column on."""
        return self._transfer(k, "OUT", first, left)

    def _transfer(self, k: int, operand: str, first: str, left: str) -> list[str]:
        rows, columns = extent(self.group.walk, k)
        tensor = f"{operand.lower()}_{k}.base, {rows}, {columns}"
        return [
            f"const certile_band box = {{{first}, r->end, {left}, c->end, 0}};",
            f"certile_transfer(CERTILE_{operand}, {int(operand == 'IN')}, &strips[{self.strips[k]}], {tensor}, &box);",
        ]
