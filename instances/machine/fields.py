"""Every field of a machine file: its unit, default and meaning, and which problems read it.

Meanings come from the texts beneath the fields of the models, units from the names of the fields (``call_ticks`` is in
ticks), types and defaults from the models, who reads it from the lines of `instances.problems`:
``tests/instances/test_machine_fields.py`` solves small cases of every problem and compares what they read.

``python -m instances.machine.fields`` writes the tables of docs/machines.md anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from instances.frozen import meanings
from instances.machine.machine import Machine
from instances.problems import COMMON, PROBLEMS, meant

#: Fields that no problem reads: for people, and for C.
_UNREAD = "transfer.model requantise"
#: Units by the end of a field's name, the longest first.
_UNITS = {
    "bytes_per_cycle": "bytes/cycle", "macs_per_cycle": "MACs/cycle", "bytes": "bytes", "ticks": "ticks", "fj": "fJ",
    "ps": "ps", "ns": "ns", "us": "us", "mw": "mW", "mhz": "MHz", "hz": "Hz",
}  # fmt: skip
_BEGIN, _END = (f"<!-- {edge} of python -m instances.machine.fields -->" for edge in ("begin", "end"))


class Row(NamedTuple):
    """A field of a machine file."""

    path: str
    """As ``--set`` takes it: ``transfer.byte_ticks``; ``[]`` stands for each entry of a list."""
    unit: str
    """Unit, or the values that are accepted, or "section" (its fields have rows of their own)."""
    default: str
    """JSON, "required", "not given", or "" for a section."""
    meaning: str
    problems: tuple[str, ...]
    """The problems that read it."""

    @property
    def section(self) -> str:
        """The section that the field is in; "" for the fields of the machine itself."""
        return self.path.rpartition(".")[0]


def rows(model: type[BaseModel] = Machine, section: str = "") -> Iterator[Row]:
    """Yield the fields of a machine, each section's after it; a section that stands at top level is explained there."""
    for name, field in model.model_fields.items():
        inner = section_of(field)
        path = f"{section}.{name}" if section else name
        yield Row(path, _unit(name, field, inner), _default(field, inner), meanings(model)[name], readers(path))
        if inner and (not section or inner not in _TOP):
            yield from rows(inner, f"{path}[]" if _is_list(field) else path)


def readers(path: str) -> tuple[str, ...]:
    """Return the problems that read a field."""
    path, named = path.replace("[]", ""), _readers()
    while path not in named:
        path = path.rpartition(".")[0]
    return named[path]


def _readers() -> dict[str, tuple[str, ...]]:
    """By field those that read it, as far as lines name it."""
    named: dict[str, tuple[str, ...]] = dict.fromkeys(_UNREAD.split(), ())
    for problem, line in PROBLEMS.items():
        for field in f"{COMMON} {line.reads}".split():
            named[field] = (*named.get(field, ()), problem)
    return named


def section_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model of a section, also of an optional or repeated one."""
    inner = [field.annotation, *get_args(field.annotation)]
    return next((kind for kind in inner if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def _is_list(field: FieldInfo) -> bool:
    return get_origin(field.annotation) is tuple


_TOP = {section_of(field) for field in Machine.model_fields.values()}


def _unit(name: str, field: FieldInfo, inner: type[BaseModel] | None) -> str:
    kinds = {kind for kind in (field.annotation, *get_args(field.annotation)) if isinstance(kind, type)}
    if inner:
        return "list of sections" if _is_list(field) else "section"
    if name == "problem":
        return ", ".join(f"`{value}`" for value in meant())
    if get_origin(field.annotation) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(field.annotation))
    if bool in kinds:
        return "`false`, `true`"
    if str in kinds:
        return {tuple: "list of texts", dict: "by name"}.get(get_origin(field.annotation), "text")  # type: ignore[arg-type]
    unknown = "factor" if "float" in str(field.annotation) else "count"
    return next((unit for end, unit in _UNITS.items() if f"_{name}".endswith(f"_{end}")), unknown)


def _default(field: FieldInfo, inner: type[BaseModel] | None) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "" if inner else "not given" if value is None else f"`{json.dumps(value)}`"


# --- docs/machines.md ------------------------------------------------------------------------------------------------


def tables() -> str:
    """Return the tables in Markdown, one for each section."""
    found: dict[str, list[Row]] = {}
    for row in rows():
        found.setdefault(row.section, []).append(row)
    return "\n".join(line for section, fields in found.items() for line in _table(section, fields))


def _table(section: str, fields: list[Row]) -> Iterator[str]:
    yield f"### {f'Section `{section}`' if section else 'The machine'}\n"
    yield "| field | unit or values | default | meaning | read by |\n|---|---|---|---|---|"
    for (_, *cells), alike in groupby(fields, lambda row: ("", *row[1:])):
        unit, default, meaning, problems = cells
        names = ", ".join(f"`{row.path.removeprefix(f'{section}.')}`" for row in alike)
        meaning = re.sub(r"docs/(\w+\.md)", r"[\1](\1)", meaning.replace("``", "`").replace("|", "\\|"))
        read_by = "every problem" if problems == tuple(PROBLEMS) else ", ".join(problems) or "no problem"
        yield f"| {names} | {unit} | {default} | {meaning} | {read_by} |"
    yield ""


def page(text: str) -> str:
    """Return the text of docs/machines.md with the tables made anew."""
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n\n{tables()}\n{_END}{after}"


if __name__ == "__main__":
    path = Path(__file__).parents[2] / "docs" / "machines.md"
    path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")
