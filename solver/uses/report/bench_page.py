"""The page of a benchmark: its tables, and ratios as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from instances.errors import InputError
from instances.jsonfile import Json
from solver.plan.figures import Axis, Bars, Series
from solver.show.markup import Grid, Head, cell_text
from solver.show.page import Page, Section
from solver.show.style import slugs

#: Ratios: columns of numbers between these are drawn.
_LEAST, _MOST, _BARS = 0.01, 100.0, 80


def bench_page(data: Mapping[str, Json], where: str) -> Page:
    """Return the page of what `certile bench -o` wrote; raises InputError if it is something else."""
    sections = data.get("sections")
    if not isinstance(sections, list) or not all(isinstance(one, dict) for one in sections):
        raise InputError(f"{where}: not a benchmark as certile bench -o writes it: no sections")
    found = [one for one in sections if isinstance(one, dict)]
    titles = [str(one.get("title")) for one in found]
    pages = tuple(_section(one, key, where) for one, key in zip(found, slugs(titles), strict=True))
    return Page(f"Benchmark {data.get('suite')}", "Tables of certile bench", pages)


def _section(data: Mapping[str, Json], key: str, where: str) -> Section:
    rows = data.get("rows")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{where}: section {data.get('title')}: rows that are objects are expected")
    objects = [row for row in rows if isinstance(row, dict)]
    columns = list(dict.fromkeys(name for row in objects for name in row))
    words = [any(isinstance(row.get(name), str) for row in objects) for name in columns]
    heads = tuple(Head(name, word) for name, word in zip(columns, words, strict=True))
    cells = tuple(tuple(_cell(row.get(name)) for name in columns) for row in objects)
    notes = data.get("notes")
    grid = Grid(str(data.get("title")), heads, cells, notes=tuple(map(str, notes)) if isinstance(notes, list) else ())
    figures = tuple(_ratios(objects, columns, words, key)) if columns else ()
    return Section(str(data.get("title")), grids=(grid,) if columns else (), figures=figures)


def _cell(value: Json) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    return cell_text(value if isinstance(value, int | str | None) else str(value))


def _ratios(rows: Sequence[Mapping[str, Json]], columns: Sequence[str], words: Sequence[bool], key: str) -> list[Bars]:
    """Bars of the columns with fractions: in a suite these are ratios, or seconds."""
    names = [", ".join(str(row.get(c)) for c, word in zip(columns, words, strict=True) if word) for row in rows]
    wanted = [
        column for column in columns
        if any(isinstance(row.get(column), float) for row in rows)
        and all(row.get(column) is None or _fits(row.get(column)) for row in rows)
    ]  # fmt: skip
    if not wanted or not all(names) or len(rows) * len(wanted) > _BARS:
        return []
    bars = [(name, column, row.get(column)) for name, row in zip(names, rows, strict=True) for column in wanted]
    values = tuple(value if isinstance(value, int | float) else None for _, _, value in bars)
    one = len(wanted) == 1
    return [
        Bars(
            f"ratios-{key}", "As bars", "The fractions of the table.", Axis(wanted[0] if one else "value"),
            tuple(name for name, _, _ in bars), (Series(wanted[0] if one else "value", values),),
            () if one else tuple(column for _, column, _ in bars),
        )
    ]  # fmt: skip


def _fits(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and _LEAST <= value <= _MOST
