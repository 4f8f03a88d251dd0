"""The results of a sweep as plain data: rows, plans, and machines that no other beats (`solver.uses.sweep.front`)."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from instances.errors import InputError
from instances.jsonfile import shown
from solver.calls.check import faults_of
from solver.plan.plan import Plan, digest
from solver.uses.sweep.schema import changed, complain_of, guarded, readable, unpack
from solver.uses.sweep.spec import matches, parse_filters
from solver.uses.sweep.tasks import LAYER

#: What a row says: text, number, or nothing.
Cell = str | int | float | None
Row = dict[str, Cell]
#: Columns of every row before the fields in `set`, and after them before the measures.
FIRST = ("network", "layer", "repeats", "machine")
SECOND = ("problem", "objective", "engine", "pins", "time_limit_s", "status", "value", "unit", "bound", "gap")
#: After the measures.
LAST = ("memory_bytes", "tick_ps", "stopped", "error", "task")
#: Columns that differ from run to run.
TIMES = ("seconds", "tries")

#: What cells hold, where it is not left open.
_KINDS: dict[str, type | tuple[type, ...]] = {
    "network": str, "layer": str, "repeats": int, "machine": str, "status": str, "value": int, "bound": int,
    "gap": (int, float), "memory_bytes": int, "tick_ps": int, "seconds": (int, float), "tries": int,
}  # fmt: skip

_QUERY = """
SELECT tasks.id, network, layer, repeats, machines.machine, settings, problem, objectives, engine, pins, time_limit_s,
  status, value, unit, bound, gap, measures, memory_bytes, tick_ps, stopped, error, tasks.digest, seconds, tries
FROM points JOIN targets ON points.target = targets.id JOIN machines ON points.machine = machines.id
JOIN questions ON points.question = questions.id JOIN tasks ON points.task = tasks.id ORDER BY position
"""


@dataclass(frozen=True)
class Sweep:
    """The results of a sweep, read once."""

    path: Path
    rows: Sequence[Row]
    """One a point, in the order of the file that asked them; all have the same keys (`columns`). What stands in
    `stopped` ended the search early: another run may find more, or less.
    """
    fields: tuple[str, ...]
    """Machine fields that were swept; a row has the value, None where its grid does not set it."""
    measures: tuple[str, ...]
    """Measures of plans: `time` in ticks of `tick_ps` ps, `bytes`, `energy` in fJ, and those of other problems."""
    tasks: Mapping[str, int]
    """Number of distinct tasks by status."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The keys of a row, in order."""
        return (*FIRST, *self.fields, *SECOND, *self.measures, *LAST, *TIMES)

    @property
    def waiting(self) -> int:
        """Tasks that have not run."""
        return self.tasks.get("WAITING", 0)

    def where(self, filters: Iterable[str]) -> Sweep:
        """Return the rows for which all filters hold: ``layer=conv1``, ``ocm_bytes>=64KiB``, ``status!=OPTIMAL``.

        Raises
        ------
        InputError
            For a filter that cannot be read, or a column that there is not.
        """
        wanted = parse_filters(filters, self.columns)
        kept = [
            row for row in self.rows
            if all(matches("none" if row[name] is None else str(row[name]), text) for name, text in wanted)
        ]  # fmt: skip
        return replace(self, rows=kept)

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame; raises InputError if pandas is not installed."""
        try:
            import pandas
        except ImportError:
            raise InputError("to_frame needs pandas: pip install certile[pandas]") from None
        return pandas.DataFrame(list(self.rows), columns=list(self.columns))

    def plan(self, row: Row) -> Plan:
        """Return the plan of a row, under the names of its network and layer.

        Raises
        ------
        InputError
            If the row has no plan: its task has not run, or failed; or its plan is not what the row says, or says what
            does not follow from its decisions.
        """
        with closing(readable(self.path)) as data, guarded(self.path, reads=True):
            found = _plan(data, self.path, row)
        value = None if found.objective is None else found.objective.value
        stated = {"status": found.status, "value": value, "bound": found.bound}
        faults = [f"{name} {stated[name]}, its row {row[name]}" for name in stated if stated[name] != row[name]]
        faults = [f"it says {faults[0]}"] if faults else faults_of(found)
        if faults:
            raise InputError(f"sweep file {self.path}: the plan of {_label(row)} is refused: {faults[0][:300]}")
        return found


def load_sweep(path: str | os.PathLike[str]) -> Sweep:
    """Read a file of results, also while a sweep writes it.

    Raises
    ------
    InputError
        If it is missing, damaged, or something else.
    """
    where = Path(path)
    with closing(readable(where)) as data, guarded(where, reads=True):
        aside = changed(data)
        complain_of(aside, where, "left out")
        tasks = Counter(status for n, status in data.execute("SELECT id, status FROM tasks") if n not in aside)
        found = list(_rows(data, aside))
    fields = tuple(dict.fromkeys(name for _, settings, _ in found for name in settings))
    measures = tuple(dict.fromkeys(name for _, _, values in found for name in values))
    sweep = Sweep(where, [], fields, measures, dict(sorted(tasks.items())))
    rows: Iterator[Row] = ({**settings, **values, **row} for row, settings, values in found)
    names = sweep.columns
    return replace(sweep, rows=[{name: row.get(name) for name in names} for row in rows])


def _split(settings: Sequence[str]) -> list[tuple[str, str]]:
    """Fields and values of ``F=V``."""
    return [(name, value) for name, _, value in (text.partition("=") for text in settings)]


def _value(text: str) -> Cell:
    """A value of a field: a number if it is one."""
    return int(text) if text.lstrip("-").isdecimal() else text


def _rows(
    data: sqlite3.Connection, aside: Container[int] = ()
) -> Iterator[tuple[Row, dict[str, Cell], dict[str, int]]]:
    names = (*FIRST, "settings", *SECOND, "measures", *LAST, *TIMES)
    for number, *values in data.execute(_QUERY):
        if number in aside:
            continue
        row: dict[str, Any] = dict(zip(names, values, strict=True))
        settings = {name: _value(text) for name, text in _split(json.loads(row.pop("settings")))}
        measures: dict[str, int] = json.loads(row.pop("measures") or "{}")
        row["pins"] = " ".join(json.loads(row["pins"]))
        row["time_limit_s"] = row["time_limit_s"] or None
        row["error"] = (row["error"] or "").replace(LAYER, row["layer"])
        for name in ("value", "bound"):
            row[name] = int(row[name]) if isinstance(row[name], str) else row[name]
        for name, kinds in _KINDS.items():
            if row[name] is not None and not isinstance(row[name], kinds):
                raise ValueError(f"column {name} holds {shown(row[name])}")
        if not all(isinstance(value, int) for value in measures.values()):
            raise ValueError(f"column measures holds {shown(measures)}")
        yield row, settings, measures


def duration(seconds: float) -> str:
    """Return ``42 s``, ``3 min 20 s``, ``5 h 10 min``."""
    whole = round(seconds)
    if whole < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 2 * 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def statuses(rows: Iterable[Row]) -> dict[str, int]:
    """Return how many rows have which status."""
    return dict(sorted(Counter(str(row["status"]) for row in rows).items()))


def _label(row: Row) -> str:
    return f"{row['network']} {row['layer']}".strip()


def _plan(data: sqlite3.Connection, path: Path, row: Row) -> Plan:
    name = _label(row)
    found = data.execute(
        "SELECT plans.data, dictionaries.data FROM plans JOIN tasks ON task = tasks.id LEFT JOIN dictionaries ON"
        " dictionary = dictionaries.id WHERE digest = ?", (row["task"],),
    ).fetchone()  # fmt: skip
    if found is None:
        raise InputError(f"sweep file {path}: no plan of {name}: its status is {row['status']}")
    try:
        fields = json.loads(unpack(found[1], found[0]))
    except ValueError as error:
        raise InputError(f"sweep file {path}: the plan of {name} is damaged: {error}") from None
    for words, machine, texts in data.execute(
        "SELECT dictionaries.data, machines.data, settings FROM points JOIN machines ON points.machine = machines.id"
        " JOIN tasks ON points.task = tasks.id LEFT JOIN dictionaries ON machines.dictionary = dictionaries.id"
        " WHERE tasks.digest = ? AND machines.machine = ? ORDER BY position",
        (row["task"], row["machine"]),
    ):
        set_ = json.loads(texts)
        if all(row.get(name) == _value(value) for name, value in _split(set_)):
            fields |= {
                "machine_data": json.loads(unpack(words, machine)),
                "options": {**fields["options"], "settings": set_},
            }
            break
    return Plan.from_json(json.dumps(_named(fields, row)), f"sweep file {path}")


def _named(fields: dict[str, Any], row: Row) -> dict[str, Any]:
    """The fields of a plan under the names of a row: a task is solved under no name."""
    named = {**fields, "machine_digest": digest(fields["machine_data"])}
    if row["layer"]:
        name = str(row["layer"])

        def renamed(texts: list[str]) -> list[str]:
            return [text.replace(LAYER, name) for text in texts]

        parts = [{**part, "name": name, "conflicts": renamed(part["conflicts"])} for part in fields["parts"]]
        layers = [{**layer, "name": name} for layer in fields["network_data"]]
        named |= {
            "parts": parts, "network_data": layers, "conflicts": renamed(fields["conflicts"]), "network": name,
            "network_digest": digest(layers),
        }  # fmt: skip
    return named
