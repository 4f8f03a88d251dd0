"""HTML of facts, tables and figures: every text that comes from elsewhere is escaped here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from solver.plan.figures import Cell, Fact, Figure, Table
from solver.show.style import spoken
from solver.show.tables import ABSENT, Sheet, printable

#: Rows from which on a table scrolls in its box.
_TALL = 20


def text(said: str) -> str:
    """Return a text for HTML, in elements and attributes, without control characters."""
    return escape(printable(said), quote=True)


def lines(said: str) -> str:
    """Return several lines for HTML."""
    return "\n".join(text(line) for line in said.splitlines())


@dataclass(frozen=True)
class Head:
    """The head of a column, and whether its cells are words."""

    title: str
    words: bool = False


@dataclass(frozen=True)
class Grid:
    """A table of texts as it stands on a page."""

    caption: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[str, ...], ...]
    foot: tuple[str, ...] = ()
    """The row of sums; none if there is none."""
    legend: tuple[Fact, ...] = ()
    """What the heads mean."""
    notes: tuple[str, ...] = field(default=())


def grid_of_sheet(sheet: Sheet, caption: str) -> Grid:
    """Return the table of a plan as a table of a page, all its columns."""
    columns = sheet.columns
    rows = tuple(zip(*(column.cells for column in columns), strict=True))
    foot = tuple(column.total for column in columns)
    legend = {column.head.split(" (")[0]: column.means for column in columns if column.means}
    return Grid(
        caption, tuple(Head(column.head, column.words) for column in columns), rows, foot if any(foot) else (),
        tuple(Fact(name, means) for name, means in legend.items()), tuple(sheet.notes),
    )  # fmt: skip


def grid_of_table(table: Table, caption: str) -> Grid:
    """Return the numbers behind a figure as a table of a page."""
    words = [
        any(isinstance(cell, str) and cell for cell in cells)
        for cells in (zip(*table.rows, strict=True) if table.rows else [() for _ in table.columns])
    ]
    heads = tuple(Head(title, is_words) for title, is_words in zip(table.columns, words, strict=True))
    return Grid(caption, heads, tuple(tuple(map(cell_text, row)) for row in table.rows))


def cell_text(cell: Cell) -> str:
    """Return a cell as a text."""
    if cell is None:
        return ABSENT
    return cell if isinstance(cell, str) else spoken(cell)


# ---- HTML ------------------------------------------------------------------------------------------------------------


def facts_html(facts: Iterable[Fact]) -> str:
    """Return names with what is so."""
    return "<dl>\n" + "\n".join(map(_fact, facts)) + "\n</dl>"


def _fact(fact: Fact) -> str:
    note = f' <span class="quiet">{text(fact.note)}</span>' if fact.note else ""
    return f"<dt>{text(fact.name)}</dt><dd>{text(fact.value)}{note}</dd>"


def grid_html(grid: Grid, *, sorts: bool = True) -> str:
    """Return a table in a box of its own; with `sorts` a button in every head."""
    heads = "".join(_head(head, sorts) for head in grid.heads)
    body = "\n".join(_row(grid.heads, row) for row in grid.rows)
    foot = f"\n<tfoot>{_row(grid.heads, grid.foot)}</tfoot>" if grid.foot else ""
    tall = " tall" if len(grid.rows) > _TALL else ""
    box = (
        f'<div class="scroll{tall}" role="region" tabindex="0" aria-label="{text(grid.caption)}">\n<table>'
        f"<caption>{text(grid.caption)}</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>{foot}\n"
        "</table>\n</div>"
    )
    notes = "".join(f"\n<p>{text(note)}</p>" for note in grid.notes)
    legend = "".join(f"<li><b>{text(one.name)}</b>: {text(one.value)}</li>" for one in grid.legend)
    below = f'\n<details class="legend"><summary>What the columns mean</summary><ul>{legend}</ul></details>' * bool(
        legend
    )
    return box + notes + below


def _head(head: Head, sorts: bool) -> str:
    kind = "" if head.words else ' class="n"'
    if not sorts:
        return f'<th scope="col"{kind}>{text(head.title)}</th>'
    return f'<th scope="col"{kind} aria-sort="none"><button type="button">{text(head.title)}</button></th>'


def _row(heads: Sequence[Head], cells: Sequence[str]) -> str:
    first, *others = zip(heads, cells, strict=True)
    number = "" if first[0].words else ' class="n"'
    parts = [f'<th scope="row"{number}>{text(first[1])}</th>']
    parts += [f'<td class="{"w" if head.words else "n"}">{text(cell)}</td>' for head, cell in others]
    return f"<tr>{''.join(parts)}</tr>"


def figure_html(figure: Figure, key: str, height: int, level: int) -> str:
    """Return a figure with its caption and its numbers.

    Parameters
    ----------
    key : str
        Its id, behind ``figure-``.
    height : int
        Pixels that are kept free until it is drawn.
    level : int
        Of its heading.
    """
    grid = grid_of_table(figure.table(), f"Data of the figure: {figure.title}")
    label = f'role="img" aria-label="{text(figure.alt)}"'
    return (
        f'<figure id="figure-{key}">\n<h{level}>{text(figure.title)}</h{level}>\n'
        f'<div class="plot" {label} data-figure="{key}" style="min-height:{height}px"></div>\n'
        f"<figcaption>{text(figure.caption)}\n<details><summary>Data of this figure</summary>\n{grid_html(grid)}\n"
        f"</details></figcaption>\n</figure>"
    )
