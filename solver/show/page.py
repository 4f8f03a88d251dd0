"""A page: sections with facts, tables, figures and parts in detail, written as one HTML file that loads nothing.

Every text that comes from elsewhere is escaped here, and nowhere else.

The plotting library lies in the page, packed by gzip and base64 (2 MB instead of 5), and is unpacked by the browser
when the first figure comes into view. Every figure has its numbers in a table below it. The same page is always the
same bytes.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib import resources, util
from pathlib import Path
from string import Template

from instances.errors import InputError
from solver.ask.names import version
from solver.plan.figures import Block, Cell, Fact, Figure
from solver.show.interactive import Dict, drawn
from solver.show.style import slugs, spoken
from solver.show.tables import ABSENT, Column, Sheet, printable

#: Rows from which on a table scrolls in its box.
_TALL = 20


def text(said: str) -> str:
    """Return a text for HTML, in elements and attributes, without control characters."""
    return escape(printable(said), quote=True)


def lines(said: str) -> str:
    """Return several lines for HTML."""
    return "\n".join(text(line) for line in said.splitlines())


def sheet_of(heads: Sequence[str], rows: Sequence[Sequence[Cell]], caption: str) -> Sheet:
    """Return a table of cells; a column that has a text is one of words."""
    cells = list(zip(*rows, strict=True)) or [()] * len(heads)
    columns = [
        Column(head, list(map(cell_text, of)), words=any(isinstance(cell, str) and cell for cell in of))
        for head, of in zip(heads, cells, strict=True)
    ]
    return Sheet(columns, caption=caption)


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


def grid_html(sheet: Sheet, *, sorts: bool = True) -> str:
    """Return a table, all its columns, in a box of its own; with `sorts` a button in every head."""
    columns, rows = sheet.columns, list(zip(*(column.cells for column in sheet.columns), strict=True))
    heads = "".join(_head(column, sorts) for column in columns)
    body = "\n".join(_row(columns, row) for row in rows)
    totals = [column.total for column in columns]
    foot = f"\n<tfoot>{_row(columns, totals)}</tfoot>" if any(totals) else ""
    tall = " tall" if len(rows) > _TALL else ""
    box = (
        f'<div class="scroll{tall}" role="region" tabindex="0" aria-label="{text(sheet.caption)}">\n<table>'
        f"<caption>{text(sheet.caption)}</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>{foot}\n"
        "</table>\n</div>"
    )
    notes = "".join(f"\n<p>{text(note)}</p>" for note in sheet.notes)
    legend = "".join(f"<li><b>{text(name)}</b>: {text(means)}</li>" for name, means in sheet.legend)
    below = f'\n<details class="legend"><summary>What the columns mean</summary><ul>{legend}</ul></details>'
    return box + notes + below * bool(legend)


def _head(column: Column, sorts: bool) -> str:
    kind = "" if column.words else ' class="n"'
    if not sorts:
        return f'<th scope="col"{kind}>{text(column.head)}</th>'
    return f'<th scope="col"{kind} aria-sort="none"><button type="button">{text(column.head)}</button></th>'


def _row(columns: Sequence[Column], cells: Sequence[str]) -> str:
    first, *others = zip(columns, cells, strict=True)
    number = "" if first[0].words else ' class="n"'
    parts = [f'<th scope="row"{number}>{text(first[1])}</th>']
    parts += [f'<td class="{"w" if column.words else "n"}">{text(cell)}</td>' for column, cell in others]
    return f"<tr>{''.join(parts)}</tr>"


def figure_html(figure: Figure, key: str, height: int, level: int) -> str:
    """Return a figure with its caption and its numbers, under a heading of a `level`.

    Its id is `key` behind ``figure-``; until it is drawn `height` pixels are kept free.
    """
    table = figure.table()
    grid = sheet_of(table.columns, table.rows, f"Data of the figure: {figure.title}")
    label = f'role="img" aria-label="{text(figure.alt)}"'
    return (
        f'<figure id="figure-{key}">\n<h{level}>{text(figure.title)}</h{level}>\n'
        f'<div class="plot" {label} data-figure="{key}" style="min-height:{height}px"></div>\n'
        f"<figcaption>{text(figure.caption)}\n<details><summary>Data of this figure</summary>\n{grid_html(grid)}\n"
        f"</details></figcaption>\n</figure>"
    )


#: Of every figure (by `id`) its key on the page, and its height in pixels.
Known = dict[int, tuple[str, int]]
#: What a status means, with a sign that does not depend on colour.
STATUS = {
    "OPTIMAL": ("✓", "no plan of the stated space is better"),
    "FEASIBLE": ("≥", "a plan that is verified, not proven to be the best"),
    "INFEASIBLE": ("✕", "proven: no plan meets all demands"),
    "PROVEN": ("✓", "no other plan is on the front"),
    "NO_SOLUTION_FOUND": ("?", "no plan was found, none is excluded"),
}


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading of its own; all but the title may be missing."""

    title: str
    status: str = ""
    """One of `STATUS`, or another word."""
    lead: tuple[str, ...] = ()
    """Sentences."""
    facts: tuple[Fact, ...] = ()
    grids: tuple[Sheet, ...] = ()
    figures: tuple[Figure, ...] = ()
    blocks: tuple[Block, ...] = ()
    folded: tuple[tuple[str, tuple[Fact, ...]], ...] = ()
    """Facts that are shown on request, by title."""


@dataclass(frozen=True)
class Page:
    """All that stands on a page, the proof first."""

    title: str
    subtitle: str
    sections: tuple[Section, ...] = field(default=())

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All figures that have something to draw, in order."""
        return tuple(figure for section in self.sections for figure in _figures(section))


def _figures(section: Section) -> Iterator[Figure]:
    inside = (figure for block in section.blocks for figure in block.figures)
    yield from (figure for figure in (*section.figures, *inside) if not figure.empty)


def to_html(page: Page) -> str:
    """Return the page as one HTML text; raises InputError if plotly is not installed."""
    figures = page.figures
    data = dict(zip(slugs(figure.key for figure in figures), map(drawn, figures), strict=True))
    known = {id(figure): (key, _height(made)) for figure, (key, made) in zip(figures, data.items(), strict=True)}
    ids = [f"part-{key}" for key in slugs(section.title for section in page.sections)]
    named = list(zip(page.sections, ids, strict=True))
    here = resources.files(__package__)
    return Template((here / "page.html").read_text(encoding="utf-8")).substitute(
        title=text(page.title), subtitle=text(page.subtitle), version=text(version()),
        style=(here / "style.css").read_text(encoding="utf-8").rstrip(),
        script=(here / "page.js").read_text(encoding="utf-8").rstrip(),
        contents="\n".join(f'<li><a href="#{key}">{text(section.title)}</a></li>' for section, key in named),
        sections="\n".join(_section(section, key, known) for section, key in named),
        figures=_inside_script(json.dumps(data, separators=(",", ":"))), library=_library() if figures else "",
    )  # fmt: skip


def _height(made: Dict) -> int:
    layout = made["layout"]
    height = layout.get("height") if isinstance(layout, dict) else None
    return height if isinstance(height, int) else 0


def _inside_script(data: str) -> str:
    """JSON that cannot end the element that it stands in."""
    return data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _library() -> str:
    """The plotting library, packed; raises InputError if plotly is not installed."""
    found = util.find_spec("plotly")
    folders = list(found.submodule_search_locations or ()) if found is not None else []
    files = [Path(folder) / "package_data" / "plotly.min.js" for folder in folders]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise InputError('a report needs plotly: pip install "certile[report]"')
    return base64.b64encode(gzip.compress(file.read_bytes(), 9, mtime=0)).decode()


def _section(section: Section, key: str, known: Known) -> str:
    parts = [f'<section id="{key}" aria-labelledby="{key}-head">\n<h2 id="{key}-head">{text(section.title)}</h2>']
    if section.status:
        parts.append(status_html(section.status))
    parts += [f"<p>{text(sentence)}</p>" for sentence in section.lead]
    if section.facts:
        parts.append(facts_html(section.facts))
    parts += [grid_html(grid) for grid in section.grids]
    parts += [figure_html(figure, *known[id(figure)], 3) for figure in section.figures if not figure.empty]
    parts += [_block(block, known) for block in section.blocks]
    parts += [
        f"<details><summary>{text(title)}</summary>\n{facts_html(facts)}\n</details>" for title, facts in section.folded
    ]
    return "\n".join([*parts, "</section>"])


def status_html(status: str) -> str:
    """Return a status with its sign and what it means."""
    sign, means = STATUS.get(status, ("", ""))
    said = f"{sign} {status.replace('_', ' ')}".strip()
    return f'<p class="status {text(status)}"><span>{text(said)}</span>{text(means)}</p>'


def _block(block: Block, known: Known) -> str:
    """A part in detail, folded."""
    inside = [f"<p>{text(sentence)}</p>" for sentence in block.sentences]
    inside += [figure_html(figure, *known[id(figure)], 4) for figure in block.figures if not figure.empty]
    if block.text:
        label = text(f"{block.name} in detail")
        code = f"<pre>{lines(block.text)}</pre>"
        inside.append(f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">{code}</div>')
    line = f'<span class="quiet">{text(block.line)}</span>' if block.line else ""
    return (
        f'<details class="part"><summary><h3>{text(block.name)}</h3>{line}</summary>\n'
        + "\n".join(inside)
        + "\n</details>"
    )
