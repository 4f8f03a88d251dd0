"""CSV files read with suspicion, and written so that no spreadsheet takes a name for a formula.

A cell that begins with ``=``, ``+``, ``-``, ``@`` or a tab, and is no number, is written with an apostrophe before it,
which is what spreadsheets themselves put there for a text; it is taken off again when the file is read.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

from instances.errors import InputError

_FORMULA = re.compile(r"[=+\-@\t\r].", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def csv_rows(lines: Iterable[str], where: str) -> list[list[str]]:
    """Return the cells of every line of a CSV file; raises InputError if it is none."""
    try:
        return [[_plain(cell) for cell in row] for row in csv.reader(lines)]
    except csv.Error as error:
        raise InputError(f"{where}: not CSV: {error}") from None


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as the text of a CSV file; None is an empty cell."""
    made = io.StringIO()
    csv.writer(made, lineterminator="\n").writerows([_cell(cell) for cell in row] for row in rows)
    return made.getvalue()


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and _is_formula(value) else value


def _plain(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _is_formula(cell[1:]) else cell


def _is_formula(text: str) -> bool:
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None
