"""Suites as tables of cases, and what they return: titled tables for people and the same cells as JSON.

All of them are run by `Suite`; one serves every problem that has none of its own (`compared`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from instances.errors import InputError
from instances.problems import PROBLEMS as LINES
from solver.ask.progress import Progress, Silent
from solver.calls.solve import solve
from solver.plan.plan import Plan
from solver.problems.registry import PROBLEMS
from solver.show.page import cell_text
from solver.show.tables import Column, Sheet

if TYPE_CHECKING:
    from rich.console import RenderableType

Cell = str | int | float | bool | None
T = TypeVar("T")
#: What problems without examples are asked, and for how long.
_NETWORK, _LIMIT_S = "lenet5", 60.0


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
        for one in self.sections:
            cells = zip(*([shown(cell) for cell in row] for row in one.rows), strict=True)
            columns = zip(one.columns, cells if one.rows else [()] * len(one.columns), strict=True)
            sheet = Sheet([Column(head, texts, words=k == 0) for k, (head, texts) in enumerate(columns)])
            parts += [Text(one.title, style="bold"), sheet, *map(Text, one.notes), Text("")]
        return Group(*parts)

    def to_json(self) -> dict[str, object]:
        """Return the report as a JSON object."""
        return {"suite": self.suite, **self.figures, "sections": [s.to_json() for s in self.sections]}


def label_of(case: Any) -> str:
    """Return what a case is called while it is run."""
    return " ".join(map(label_of, case)) if isinstance(case, tuple) else str(getattr(case, "name", case))


@dataclass(frozen=True)
class Table:
    """A table of a suite, before anything is solved."""

    title: str
    heads: Sequence[str]
    cases: Collection[Any]
    """A row each."""
    row: Callable[..., Sequence[Any]]
    """The cells of a case; a tuple is taken as its arguments."""
    notes: Sequence[str] = ()
    more: Collection[Any] = ()
    """Cases that are run only if they are asked for."""
    several: bool = False
    """Whether a case has several rows."""
    label: Callable[[Any], str] = label_of

    def chosen(self, only: str) -> list[Any]:
        """Return the cases whose label has a text in it; all but `more` if there is none."""
        return [case for case in (*self.cases, *self.more) if only in self.label(case)] if only else list(self.cases)

    def fill(self, report: Report, cases: Collection[Any]) -> None:
        """Add the rows of these cases to a report, in a section of their own."""
        section = report.section(self.title, self.heads)
        for case in report.each(cases, self.label):
            found = self.row(*case) if isinstance(case, tuple) else self.row(case)
            section.rows += found if self.several else [found]
        section.notes += self.notes


@dataclass(frozen=True)
class Suite:
    """Tables that are filled in turn; `after`: figures of all of them, and notes that depend on what came out."""

    name: str
    tables: Sequence[Table] | Callable[[], Sequence[Table]]
    """A function makes those whose cases take time."""
    after: Callable[[Report], None] = lambda report: None

    def __call__(self, progress: Progress, only: str = "") -> Report:
        """Run the suite, or the rows with a text in their label; raises InputError if there are none.

        A table without a case is left out.
        """
        report = Report(self.name, progress=progress)
        tables = self.tables() if callable(self.tables) else self.tables
        for table in tables:
            if cases := table.chosen(only):
                table.fill(report, cases)
        if not report.sections:
            known = (table.label(case) for table in tables for case in (*table.chosen(""), *table.more))
            raise InputError(f"--only {only}: no row; there are {', '.join(known)}")
        self.after(report)
        return report


def shown(cell: object) -> str:
    """Return a cell for people: yes or no, thousands apart, three digits of fractions."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:.3f}" if isinstance(cell, float) else cell_text(cell if isinstance(cell, int | None) else str(cell))


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


def agreed(what: str, proven: Iterable[object]) -> None:
    """Raise RuntimeError if engines prove different optima: a defect of certile."""
    if len(found := set(proven)) > 1:
        raise RuntimeError(f"{what}: optima {found}")


# ---- problems without a suite of their own ---------------------------------------------------------------------------


def compared(name: str) -> Suite:
    """Return the suite of any problem: its examples, all engines beside each other, heuristics over the optimum."""
    problem: Any = PROBLEMS[name]
    examples = problem.formulation.examples or ((_NETWORK, LINES[name].template),)
    heads = ["network", "machine", "engine", "status", "value", "ratio", "s"]
    return Suite(name, [Table(problem.summary, heads, examples, partial(_compared, name), several=True)])


def _compared(problem: str, network: str, machine: str) -> list[list[Cell]]:
    plans = [
        solve(network, machine, problem=problem, engine=engine, time_limit_s=_LIMIT_S)
        for engine in PROBLEMS[problem].engines
    ]
    agreed(f"{network} on {machine}", (value_of(plan) for plan in plans if plan.status == "OPTIMAL"))
    best = min((value for plan in plans if (value := value_of(plan)) is not None), default=None)
    return [
        [network, machine, one.engine, one.status, value_of(one), over(value_of(one), best), one.wall_s]
        for one in plans
    ]  # fmt: skip


def over(value: int | None, least: int | None) -> float | None:
    """Return a value over another one; None without both."""
    return value / least if value is not None and least else None
