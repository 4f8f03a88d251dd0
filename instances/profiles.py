"""Measured times of tasks, from a JSON or CSV file.

JSON: ``{"format": "certile-profile/1", "network": "squeezenet1_1", "unit": "us", "times": {"conv1": {"1": 14569,
"4": 3951, "gpu": 1628}, ...}}``. CSV: a line of heads, ``task,1,2,4,gpu``, then one line a task. Columns are ``1*``
(one core without threads), ``1``, ``2``, ... (cores), and accelerators; ``null``, or ``-`` in CSV, says that the task
cannot run there. A column that no task has is not asked for; a cell that is missing in a column that others have is
an error.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from instances.csvfile import csv_rows
from instances.errors import InputError
from instances.frozen import Frozen
from instances.jsonfile import Json, as_object, decoded, parse_json, read_bytes, shown
from instances.validation import validate

#: The first field of every profile file.
PROFILE_FORMAT = "certile-profile/1"
#: Microseconds by column; None where the task cannot run.
Row = dict[str, float | None]
#: The longest time of a task.
LONGEST_US = 1e9
_PER_US = {"ns": 1000.0, "us": 1.0, "ms": 0.001}


class Profile(Frozen):
    """Measured times."""

    format: Literal["certile-profile/1"] = "certile-profile/1"
    network: str = ""
    unit: Literal["ns", "us", "ms"] = "us"
    clock: Literal["busy", "alone"] = "busy"
    """"alone": measured with all other cores idle, at the clocks `alone_mhz` of the machine; times on cores are then
    scaled to its `busy_mhz`.
    """
    times: Annotated[
        dict[str, dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)] | None]], Field(min_length=1)
    ]

    def rows(self, tasks: Sequence[str], options: Sequence[str], where: str = "profile") -> tuple[Row, ...]:
        """Return the microseconds of some tasks, in their order.

        Raises
        ------
        InputError
            If a task or a column is unknown, or a cell is missing.
        """
        columns = [option for option in options if any(option in row for row in self.times.values())]
        strange = sorted({name for row in self.times.values() for name in row} - set(options))
        if strange:
            raise InputError(f"{where}: column {strange[0]!r} is no processor of the machine: {', '.join(options)} are")
        unknown = [name for name in self.times if name not in tasks]
        if unknown:
            raise InputError(f"{where}: the network has no task {unknown[0]!r}; it has {shown(list(tasks), 200)}")
        for name in tasks:
            missing = [option for option in columns if option not in self.times.get(name, {})]
            if missing:
                raise InputError(
                    f"{where}: task {name}: no time in column {missing[0]}; write null if it cannot run there"
                )
        rows = tuple({k: self._us(t) for k, t in self.times[name].items()} for name in tasks)
        for name, row in zip(tasks, rows, strict=True):
            if any(t is not None and t > LONGEST_US for t in row.values()):
                raise InputError(f"{where}: task {name}: a time is above {LONGEST_US / 1e6:.0f} s")
        return rows

    def _us(self, time: float | None) -> float | None:
        return None if time is None else time / _PER_US[self.unit]


def load_profile(path: str | os.PathLike[str]) -> Profile:
    """Read a profile from ``.json`` or ``.csv``; raises InputError that says what is wrong, and where."""
    where, data = f"profile {os.fspath(path)}", read_bytes(path, what="profile")
    if os.fspath(path).lower().endswith(".csv"):
        return validate(Profile, {"times": _table(data, where)}, where)
    fields = dict(as_object(parse_json(data, where), where))
    if fields.get("format") != PROFILE_FORMAT:
        raise InputError(
            f"{where}: field format is {shown(fields.get('format'))}, this version reads {PROFILE_FORMAT!r}"
        )
    return validate(Profile, fields, where)


def _table(data: bytes, where: str) -> dict[str, Json]:
    lines = [row for row in csv_rows(decoded(data, where).splitlines(), where) if row]
    heads = [head.strip() for head in lines[0]] if lines else []
    if heads[:1] != ["task"] or len(heads) < 2 or len(set(heads)) < len(heads):
        raise InputError(f"{where}: line 1: heads have to be task and then different columns, such as task,1,2,4,gpu")
    found: dict[str, Json] = {}
    for number, cells in enumerate(lines[1:], 2):
        name = cells[0].strip()
        if len(cells) != len(heads) or name in found:
            what = f"task {name!r} stands twice" if name in found else f"{len(cells)} cells under {len(heads)} heads"
            raise InputError(f"{where}: line {number}: {what}")
        pairs = zip(heads[1:], (cell.strip() for cell in cells[1:]), strict=True)
        found[name] = {head: _number(cell, f"{where}: line {number}, column {head}") for head, cell in pairs if cell}
    return found


def _number(cell: str, where: str) -> float | None:
    if cell == "-":
        return None
    try:
        return float(cell)
    except ValueError:
        raise InputError(f"{where}: {cell!r} is not a number; - says that the task cannot run there") from None
