"""Results of a sweep as tables and texts: for people, as CSV, as JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from instances.errors import InputError
from instances.jsonfile import csv_text
from solver.show.tables import ABSENT, Column, Sheet
from solver.uses.sweep.front import Group, figure, head
from solver.uses.sweep.rows import TIMES, Row, Sweep, duration, statuses
from solver.uses.sweep.tasks import ANSWERED

if TYPE_CHECKING:
    from rich.console import RenderableType

SHOW_FORMAT = "certile-sweep-show/1"
TABLE_FORMAT = "certile-sweep-table/1"
_FLAGS = ("layers", "lacking", "proven", "stopped", "front")
#: Failures that are spelled out.
_MOST = 8


# --- the table -------------------------------------------------------------------------------------------------------


def columns_of(sweep: Sweep, *, seconds: bool) -> list[str]:
    """Return the columns of the table: the same whatever workers did, unless `seconds` are wanted."""
    return [name for name in sweep.columns if seconds or name not in TIMES]


def table_csv(sweep: Sweep, *, seconds: bool = False) -> str:
    """Return all rows as CSV, in the order of the sweep; byte for byte the same for any number of workers."""
    names = columns_of(sweep, seconds=seconds)
    return csv_text([names, *([row[name] for name in names] for row in sweep.rows)])


def table_json(sweep: Sweep, *, seconds: bool = False) -> str:
    """Return all rows as JSON, a line each, likewise."""
    names = columns_of(sweep, seconds=seconds)
    rows = ",\n".join(json.dumps({name: row[name] for name in names}) for row in sweep.rows)
    return f'{{"format": "{TABLE_FORMAT}", "rows": [\n{rows}\n]}}\n'


def table_parquet(sweep: Sweep, *, seconds: bool = False) -> bytes:
    """Return all rows as a Parquet file; raises InputError if pandas or pyarrow are not installed."""
    frame = sweep.to_frame()[columns_of(sweep, seconds=seconds)]
    made = io.BytesIO()
    try:
        frame.to_parquet(made, index=False)
    except ImportError:
        raise InputError("--parquet needs pyarrow beside pandas: pip install pyarrow") from None
    return made.getvalue()


# --- the summary -----------------------------------------------------------------------------------------------------


def summary_json(sweep: Sweep, groups: Sequence[Group], *, everything: bool) -> dict[str, Any]:
    """Return what `show` says as data."""
    return {
        "format": SHOW_FORMAT, "file": sweep.path.name, "rows": len(sweep.rows), "rows_by_status": statuses(sweep.rows),
        "tasks_by_status": dict(sweep.tasks), "seconds": _seconds(sweep.rows),
        "stopped": len({row["task"] for row in sweep.rows if row["stopped"]}),
        "failures": [dict(zip(("status", "error", "rows"), one, strict=True)) for one in failures(sweep.rows)],
        "groups": [group.to_json(everything=everything) for group in groups],
    }  # fmt: skip


def _seconds(rows: Iterable[Row]) -> float:
    """Of all tasks of some rows, each once."""
    return sum({row["task"]: float(row["seconds"] or 0.0) for row in rows}.values())


def failures(rows: Iterable[Row]) -> list[tuple[str, str, int]]:
    """Return status, what is said and number of rows for everything without an answer, the most frequent first."""
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        if row["status"] not in (*ANSWERED, "WAITING"):
            key = str(row["status"]), str(row["error"] or row["stopped"] or "")
            found[key] = found.get(key, 0) + 1
    return [(*key, number) for key, number in sorted(found.items(), key=lambda item: (-item[1], item[0]))]


def summary(sweep: Sweep) -> list[str]:
    """Return what is known of a sweep, a line each."""
    said = ", ".join(f"{number:,} {status}" for status, number in sweep.tasks.items())
    total = sum(sweep.tasks.values())
    lines = [
        f"{sweep.path.name}: {len(sweep.rows):,} rows, {total:,} distinct tasks: {said}; "
        f"{duration(_seconds(sweep.rows))} of search"
    ]
    if sweep.waiting:
        lines.append(f"{sweep.waiting:,} tasks wait: certile sweep run with the same spec continues")
    stopped = {row["task"]: row["stopped"] for row in sweep.rows if row["stopped"]}
    if stopped:
        why = ", ".join(sorted({str(reason) for reason in stopped.values()}))
        lines.append(f"{len(stopped):,} tasks were stopped ({why}): their figures depend on the computer and its load")
    failed = failures(sweep.rows)
    for status, error, number in failed[:_MOST]:
        lines.append(f"{number:,} rows {status}: {error or 'no plan'}")
    if len(failed) > _MOST:
        lines.append(f"and {len(failed) - _MOST:,} more kinds of failures: certile sweep table --where status=...")
    return lines


def group_table(group: Group, *, everything: bool) -> list[RenderableType]:
    """Return the title and the table of machines that are compared."""
    shown = list(group.points) if everything else group.front
    key = ", ".join(f"{name} {value}" for name, value in group.key.items() if value not in ("", None))
    lacking = f"; {group.incomplete:,} lack a plan of some layer" if group.incomplete else ""
    if not group.units:
        return ["", f"{key}: no plan of {len(group.points):,} machines"]
    said = f"{len(group.front):,} of {len(group.points):,} machines no other beats in {', '.join(group.units)}{lacking}"
    title = f"{key}: {said}"
    if not shown:
        return ["", title]
    fields = list(dict.fromkeys(name for one in shown for name in one.settings))
    columns = [Column("machine", [one.machine for one in shown], words=True)]
    columns += [Column(name, [_cell(one.settings.get(name)) for one in shown]) for name in fields]
    columns += [
        Column(head(axis, unit), [_figure(one.values.get(axis), unit) for one in shown])
        for axis, unit in group.units.items()
    ]
    if everything:
        columns.append(Column("front", ["yes" if one.front else "" for one in shown], words=True))
    columns.append(Column("known", [_known(one.lacking, one.proven, one.stopped) for one in shown], words=True))
    return ["", title, Sheet(columns)]


def _cell(value: object) -> str:
    return ABSENT if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _figure(value: int | None, unit: str) -> str:
    if value is None:
        return ABSENT
    shown = figure(value, unit)
    return f"{shown:,}" if isinstance(shown, int) else f"{shown:,.1f}"


def _known(lacking: int, proven: bool, stopped: int) -> str:
    if lacking:
        return f"{lacking:,} layers lack a plan"
    return "proven" if proven else f"not proven, {stopped:,} stopped" if stopped else "not proven"


def machines_csv(groups: Sequence[Group], *, everything: bool) -> str:
    """Return the machines as CSV: the key of their group, fields, axes in their units, whether on the front."""
    fields = list(dict.fromkeys(name for group in groups for one in group.points for name in one.settings))
    axes = list(dict.fromkeys(axis for group in groups for axis in group.units))
    units = {axis: unit for group in groups for axis, unit in group.units.items()}
    keys = list(dict.fromkeys(name for group in groups for name in group.key))
    heads = [f"{axis} ({units[axis]})" for axis in axes]
    rows: list[Sequence[object]] = [[*keys, "machine", *fields, *heads, *_FLAGS]]
    for group in groups:
        for one in group.points if everything else group.front:
            cells = [group.key.get(name) for name in keys] + [one.machine]
            cells += [one.settings.get(name) for name in fields] + [one.values.get(axis) for axis in axes]
            flags = [one.layers, one.lacking, int(one.proven), one.stopped, int(one.front)]
            rows.append([*cells, *flags])
    return csv_text(rows)
