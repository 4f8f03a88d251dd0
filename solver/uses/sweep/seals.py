"""Seals of results: rows of a file that something else than a sweep has changed are not believed.

The seal of a task is a digest of all that its row says of a result and of what was asked. Rows that are not what their
seal says are left out by who reads the file, and run again by who writes it. Files of before have no table of seals:
they get one, of all their rows as they are, when they are written again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from solver.plan.plan import digest
from solver.show.console import complain
from solver.uses.sweep.schema import TABLES

#: What is sealed of a task.
_SAID = "tasks.digest, target, machine, question, status, value, unit, bound, gap, measures, stopped, error"
#: Names of changed rows in a line.
_NAMED = 3


def seal_of(values: Sequence[object]) -> str:
    """Return the seal of the values of `_SAID`."""
    return digest([repr(value) for value in values]).removeprefix("sha256:")


def seal(data: sqlite3.Connection, tasks: Collection[int]) -> None:
    """Seal some tasks as their rows are."""
    for task in tasks:
        values = data.execute(f"SELECT {_SAID} FROM tasks WHERE id = ?", (task,)).fetchone()
        data.execute("INSERT OR REPLACE INTO seals VALUES (?, ?)", (task, seal_of(values)))


def seal_older(data: sqlite3.Connection) -> None:
    """Make the table where there is none."""
    if not _sealed(data):
        data.execute("BEGIN IMMEDIATE")
        data.execute(next(text for text in TABLES.split(";\n") if text.startswith("CREATE TABLE seals")))
        done = [task for (task,) in data.execute("SELECT id FROM tasks WHERE status != 'WAITING'")]
        seal(data, done)
        data.execute("COMMIT")


def changed(data: sqlite3.Connection) -> dict[int, str]:
    """Return the tasks whose rows are not as they were written, with their names."""
    if not _sealed(data):
        return {}
    rows = data.execute(
        f"SELECT seal, tasks.id, network, layer, {_SAID} FROM tasks JOIN targets ON target = targets.id LEFT JOIN seals"
        " ON seals.task = tasks.id WHERE status != 'WAITING' ORDER BY tasks.id"
    )
    return {
        task: f"{network} {layer}".strip() for was, task, network, layer, *said in rows if was != seal_of(said)
    }  # fmt: skip


def complain_of(found: Mapping[int, str], path: Path, done: str) -> None:
    """Say in a line which rows are changed, and what is done about them."""
    if found:
        names = list(dict.fromkeys(found.values()))
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        said = (
            "1 result was changed after it was"
            if len(found) == 1
            else f"{len(found)} results were changed after they were"
        )
        named = f"{', '.join(names[:_NAMED])}{more}"
        complain("warning", f"sweep file {path}: {said} written ({named}): {done}")


def _sealed(data: sqlite3.Connection) -> bool:
    return data.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'seals'").fetchone() is not None
