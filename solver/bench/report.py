"""What a suite returns: titled tables for people and the same cells as JSON."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from solver.plan import Plan
from solver.progress import Progress, Silent

if TYPE_CHECKING:
    from rich.console import RenderableType

Cell = str | int | float | bool | None
T = TypeVar("T")


@dataclass
class Section:
    """One table: a title, the column heads, the rows and notes under it."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[Cell]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        """Return the rows as objects keyed by column."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": self.notes}


@dataclass
class Report:
    """The sections of one suite, in order, and figures under names of their own in JSON."""

    suite: str
    sections: list[Section] = field(default_factory=list)
    figures: Mapping[str, object] = field(default_factory=dict)
    progress: Progress = field(default_factory=Silent)

    def fill(
        self, title: str, columns: Sequence[str], cases: Collection[T], row: Callable[[T], Sequence[Cell]],
        label: Callable[[T], str] = str,
    ) -> Section:  # fmt: skip
        """Add a section with a row a case; `label` says which one is done."""
        section = self.section(title, columns)
        section.rows += map(row, self.each(cases, label))
        return section

    def section(self, title: str, columns: Sequence[str]) -> Section:
        """Add an empty section."""
        self.sections.append(Section(title, columns))
        return self.sections[-1]

    def each(self, cases: Collection[T], label: Callable[[T], str] = str) -> Iterator[T]:
        """Yield cases, and show how many are done."""
        self.progress.begin(len(cases), self.suite)
        try:
            for case in cases:
                yield case
                self.progress.advance(label(case))
        finally:
            self.progress.end()

    @property
    def table(self) -> RenderableType:
        """All sections as rich tables."""
        from rich.console import Group
        from rich.text import Text

        parts: list[RenderableType] = []
        for section in self.sections:
            parts += [Text(section.title, style="bold"), _table(section), *map(Text, section.notes), Text("")]
        return Group(*parts)

    def to_json(self) -> dict[str, object]:
        """Return the report as a JSON object."""
        return {"suite": self.suite, **self.figures, "sections": [s.to_json() for s in self.sections]}


def _table(section: Section) -> RenderableType:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for i, column in enumerate(section.columns):
        table.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
    for row in section.rows:
        table.add_row(*(_shown(cell) for cell in row))
    return table


def _shown(cell: Cell) -> str:
    from rich.markup import escape

    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:.3f}" if isinstance(cell, float) else escape(cell)


def geomean(values: Iterable[float]) -> float | None:
    """Return the geometric mean, None of nothing."""
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else None


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Return what some work gives, and the seconds that it takes."""
    start = time.monotonic()
    return work(), time.monotonic() - start


def value_of(plan: Plan) -> int | None:
    """Return the value of a plan's objective, None without a schedule."""
    return None if plan.objective is None else plan.objective.value
