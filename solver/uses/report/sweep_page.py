"""The page of a sweep: its machines as points, those that no other beats joined."""

from __future__ import annotations

import os
from collections.abc import Sequence

from solver.plan.figures import Cell
from solver.show.page import Page
from solver.uses.report.front_page import Rows, rows_page
from solver.uses.sweep.front import Group, MachineSum, figure, head, machine_fronts
from solver.uses.sweep.rows import Sweep, load_sweep

#: The first bytes of a file of results.
MAGIC = b"SQLite format 3\0"


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
