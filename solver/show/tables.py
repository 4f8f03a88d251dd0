"""Tables for people: columns with names and units, a legend below, folded to the width of the terminal.

A narrow terminal folds words, then leaves out the columns that say least and names them: nothing is cut off silently.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from solver.plan.front import Front, FrontPart
    from solver.plan.plan import PartPlan

#: A cell where there is nothing to say.
ABSENT = "-"
#: What the legend says of gaps.
GAP = "above the least possible, at most (0: nothing is less)"
#: Columns of a table that goes to a file or a pipe.
_WIDE = 200
#: A column of words is at least so wide, if a cell is; words are folded if they are longer than the second.
_NARROW, _LONG = 14, 24
_BETWEEN = 2


def console() -> Console:
    """Return the console of stdout: as wide as the terminal, or wide and plain where there is none."""
    from rich.console import Console

    return Console(width=None if _known_width() else _WIDE, highlight=False, soft_wrap=False)


def _known_width() -> bool:
    return sys.stdout.isatty() or "COLUMNS" in os.environ


def render(*things: RenderableType) -> str:
    """Return tables and texts as they are to appear on stdout; in a file or a pipe a text stays one line."""
    from rich.text import Text

    out = console()
    with out.capture() as captured:
        for thing in things:
            if not isinstance(thing, str):
                out.print(thing)
                continue
            thing = "\n".join(map(printable, thing.split("\n")))
            if _known_width():
                out.print(Text(thing), overflow="fold")
            else:
                out.print(thing, markup=False, overflow="ignore", no_wrap=True, crop=False)
    return "\n".join(line.rstrip() for line in captured.get().split("\n"))


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    head: str
    """With the unit: ``time (us)``."""
    cells: Sequence[str]
    """One a row."""
    means: str = ""
    """What the legend says of it; empty if the head says all."""
    total: str = ""
    """Its cell in the row below the others."""
    words: bool = False
    """Whether the cells are words, which stand on the left and may be folded; numbers are not."""
    spare: int = 0
    """0: it always stands. Others are left out where the terminal is too narrow, the largest number first."""

    def __post_init__(self) -> None:
        """Let names of files do nothing to a terminal."""
        for name in ("head", "total", "means"):
            object.__setattr__(self, name, printable(getattr(self, name)))
        object.__setattr__(self, "cells", [printable(cell) for cell in self.cells])

    def _widest(self) -> int:
        return max(map(len, (self.head, self.total, *self.cells)))

    def _least(self) -> int:
        """The width that folding can reach: heads are folded between words, numbers are not."""
        head = max(map(len, self.head.split()), default=0)
        if not self.words:
            return max(head, *map(len, (self.total, *self.cells)))
        longest = max((len(word) for text in (self.total, *self.cells) for word in text.split()), default=0)
        return min(self._widest(), max(head, _NARROW, min(_LONG, longest)))


@dataclass(frozen=True)
class Sheet:
    """A table with a legend and notes below it."""

    columns: Sequence[Column]
    notes: Sequence[str] = ()
    caption: str = ""
    """For a page."""

    @property
    def legend(self) -> list[tuple[str, str]]:
        """What heads mean, without their units, each once."""
        said = ((column.head.split(" (")[0], column.means) for column in self.columns if column.means)
        return list(dict.fromkeys(said))

    def __rich_console__(self, out: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the table as wide as there is room."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        kept = self._kept(options.max_width)
        table = Table(box=box.SIMPLE_HEAD, padding=(0, _BETWEEN - 1, 0, 0), pad_edge=False, show_edge=False)
        for column, width in zip(kept, _widths(kept, options.max_width), strict=True):
            table.add_column(
                Text(column.head), justify="left" if column.words else "right", width=width, overflow="fold"
            )
        for row in zip(*(column.cells for column in kept), strict=True):
            table.add_row(*(Text(cell) for cell in row))
        if any(column.total for column in kept):
            table.add_section()
            table.add_row(*(Text(column.total) for column in kept))
        yield table
        below = [f"{name}: {means}" for name, means in Sheet(kept).legend]
        lines = ["; ".join(below)] * bool(below)
        if left := [column.head for column in self.columns if column not in kept]:
            lines.append(
                f"left out in {options.max_width} columns: {', '.join(left)}; {_room(self.columns)} columns show all"
            )
        for line in [*([""] if lines or self.notes else []), *lines, *self.notes]:
            yield Text(printable(line), overflow="fold")

    def _kept(self, width: int) -> list[Column]:
        """The columns for which there is room."""
        kept = list(self.columns)
        while _room(kept) > width and any(column.spare for column in kept):
            most = max(column.spare for column in kept)
            kept = [column for column in kept if column.spare < most]
        return kept


def _room(columns: Sequence[Column]) -> int:
    return sum(column._least() + _BETWEEN for column in columns) - _BETWEEN


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """Give what is left to those that lack most."""
    found = [column._least() for column in columns]
    lacking = [column._widest() - least for column, least in zip(columns, found, strict=True)]
    for _ in range(min(sum(lacking), width - _room(columns))):
        most = max(range(len(found)), key=lambda k: lacking[k])
        found[most] += 1
        lacking[most] -= 1
    return found


def names_table(rows: Mapping[str, str], head: tuple[str, str]) -> Sheet:
    """Return a table of names with one line about each."""
    return Sheet([Column(head[0], list(rows), words=True), Column(head[1], list(rows.values()), words=True)])


def rows_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Sheet:
    """Return a table of texts; the first and the last column are words, the others numbers."""
    cells = list(zip(*rows, strict=True)) or [()] * len(heads)
    last = len(heads) - 1
    return Sheet([Column(head, cells[k], words=k in (0, last)) for k, head in enumerate(heads)])


def front_table(front: Front) -> Sheet:
    """Return the table of a front: one row a point, its axes and its decisions in short."""
    rows = [(part, point) for part in front.parts for point in part.points or [None]]
    first = {id(part): part.points[0] if part.points else None for part in front.parts}
    axes = [
        Column(f"{axis} ({unit})", [ABSENT if point is None else f"{point.values[axis]:,}" for _, point in rows])
        for axis, unit in front.units.items()
    ]
    names = [f"{part.name or front.network}{_note(part)}" if point is first[id(part)] else "" for part, point in rows]
    more = list(next((point.details for _, point in rows if point is not None), {}))
    axes += [Column(head, [ABSENT if point is None else point.details[head] for _, point in rows]) for head in more]
    decided = [ABSENT if point is None else point.label for _, point in rows]
    labels = [Column("decisions", decided, words=True)] if any(decided) else []
    return Sheet([Column("part", names, words=True), *axes, *labels])


def _note(part: FrontPart) -> str:
    """What is not known of a part of a front."""
    if not part.points:
        return " (INFEASIBLE)" if part.complete else " (time ran out)"
    return " (incomplete)" if not part.complete else "" if part.proven else " (not proven)"


def front_line(front: Front) -> str:
    """Return one line that says how sure a front is."""
    number = sum(len(part.points) for part in front.parts)
    said = "proven: no other plan is on the front" if front.proven else "not all of the front is proven"
    return f"{number} plans, {said}; each replayed"


def percent(gap: float | None) -> str:
    """Return a gap in per cent; one that is not zero is never shown as zero."""
    if gap is None:
        return ABSENT
    return "0" if gap == 0 else f"{100 * gap:.2f}" if gap >= 0.00005 else "<0.01"


def ratio(value: int | None, reference: int | None) -> str:
    """Return ``value / reference`` with three digits, or a dash."""
    if value is None or reference is None:
        return ABSENT
    if reference == 0:
        return "1.000" if value == 0 else "inf"
    return f"{value / reference:.3f}"


def conflicts_of(rows: Sequence[PartPlan]) -> list[str]:
    """Return a note for every layer that is infeasible."""
    return [f"{row.name} is INFEASIBLE: {'; '.join(row.conflicts)}" for row in rows if row.conflicts]


def name_column(what: str, names: Sequence[str], more: str = "") -> Column:
    """Return the first column of a table, with the number of rows and `more` at its end: ``2 layers``."""
    total = f"{len(names)} {what}" + "s" * (len(names) != 1) + more
    return Column(what, names, total=total, words=True)


def few(names: Sequence[str], most: int = 3) -> str:
    """Return some names, and how many more there are."""
    return ", ".join(map(printable, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


def printable(text: str) -> str:
    """Return a text without control characters, which a file's names may hold."""
    return "".join(ch if ch.isprintable() else "?" for ch in text)
