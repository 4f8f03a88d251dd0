"""What a file is, and its page: a plan, a front, a benchmark, or the results of a sweep.

The page of a benchmark has its tables, and ratios as bars; that of a sweep its machines as points, those that no other
beats joined.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from instances.errors import InputError
from instances.jsonfile import Json, as_object, parse_json, read_bytes
from solver.calls.check import sound_plan
from solver.plan.figures import Axis, Bars, Cell, Series
from solver.plan.front import Front
from solver.show.page import Page, Section
from solver.show.style import slugs
from solver.show.tables import Column, Sheet
from solver.uses.bench.report import shown
from solver.uses.report.front_page import Rows, front_page, read_front, rows_page
from solver.uses.report.plan_page import plan_page, rivals
from solver.uses.sweep.front import Group, MachineSum, figure, head, machine_fronts
from solver.uses.sweep.rows import Sweep, load_sweep

#: The first bytes of a file of a sweep's results.
_SWEEP = b"SQLite format 3\0"
#: Ratios: columns of numbers between these are drawn.
_LEAST, _MOST, _BARS = 0.01, 100.0, 80


def page_of(path: str | os.PathLike[str], compare: Sequence[str] = (), time_limit_s: float | None = None) -> Page:
    """Return the page of a file.

    Parameters
    ----------
    compare : sequence of str
        Engines that a plan is compared with.
    time_limit_s : float, optional
        Seconds for each of them.

    Raises
    ------
    InputError
        If the file is missing or of no kind that has a page, or an engine cannot be asked.
    """
    name = os.fspath(path)
    raw = read_bytes(name, what="file")
    if raw.startswith(_SWEEP):
        _plans_only(compare)
        return sweep_page(name)
    if not raw.lstrip()[:1] == b"{":
        raise InputError(f"file {name}: expected a plan, a front (pareto -o), a benchmark (bench -o) or a sweep")
    data = as_object(parse_json(raw, f"file {name}"), f"file {name}")
    named = str(data.get("format", ""))
    front, bench = named == Front.FORMAT, "suite" in data and "sections" in data
    if front or bench:
        _plans_only(compare)
    if front:
        return front_page(read_front(data, f"front {name}"))
    if bench:
        return bench_page(data, f"benchmark {name}")
    plan = sound_plan(name)
    return plan_page(plan, rivals(plan, compare, time_limit_s))


def _plans_only(compare: Sequence[str]) -> None:
    if compare:
        raise InputError("--compare: for plans only")


# ---- a benchmark -----------------------------------------------------------------------------------------------------


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
    cells = [[shown(row.get(name)) for row in objects] for name in columns]
    made = [Column(name, cells[k], words=words[k]) for k, name in enumerate(columns)]
    notes = data.get("notes")
    grid = Sheet(made, list(map(str, notes)) if isinstance(notes, list) else (), str(data.get("title")))
    figures = tuple(_ratios(objects, columns, words, key)) if columns else ()
    return Section(str(data.get("title")), grids=(grid,) if columns else (), figures=figures)


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


# ---- a sweep ---------------------------------------------------------------------------------------------------------


def sweep_page(path: str | os.PathLike[str]) -> Page:
    """Return the page of a sweep's results; raises InputError if the file is damaged or something else."""
    sweep = load_sweep(path)
    groups = machine_fronts(sweep)
    axes = tuple(dict.fromkeys(head(axis, unit) for group in groups for axis, unit in group.units.items()))
    telling = [name for name in (groups[0].key if groups else ()) if len({group.key[name] for group in groups}) > 1]
    columns = ("point", "question", "machine", *sweep.fields, *axes, "layers", "proven", "front")
    rows = tuple(
        _row(group, point, telling, sweep.fields, axes) for group in groups for point in group.points
    )  # fmt: skip
    title = os.path.basename(os.fspath(path))
    found = Rows(columns, rows, axes, name="point", group="question" if telling else "")
    return rows_page(f"Sweep {title}", "Sums over the layers of a network, by machine", found, _lead(sweep, groups))


def _row(
    group: Group, point: MachineSum, telling: Sequence[str], fields: Sequence[str], axes: Sequence[str]
) -> tuple[Cell, ...]:
    values = {
        head(axis, unit): figure(point.values[axis], unit) for axis, unit in group.units.items() if axis in point.values
    }
    settings = " ".join(f"{name}={value}" for name, value in point.settings.items())
    return (
        f"{point.machine} {settings}".strip(), " ".join(str(group.key[name]) for name in telling), point.machine,
        *(point.settings.get(name) for name in fields), *(values.get(axis) for axis in axes),
        point.layers, "yes" if point.proven else "no", "yes" if point.front else "no",
    )  # fmt: skip


def _lead(sweep: Sweep, groups: Sequence[Group]) -> list[str]:
    points = [point for group in groups for point in group.points]
    tasks = ", ".join(f"{number:,} {status}" for status, number in sweep.tasks.items())
    lines = [
        f"Tasks: {tasks}.",
        f"{len(points):,} machines; {sum(point.proven for point in points):,} with a proven optimum for every layer, "
        f"{sum(point.front for point in points):,} that no other beats in all of what is drawn.",
    ]
    incomplete = sum(group.incomplete for group in groups)
    if incomplete:
        lines.append(f"Machines that lack the plan of a layer: {incomplete:,}; they are in the table, without sums.")
    return lines
