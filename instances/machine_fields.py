"""Every field of a machine file: its unit, default and meaning, and which problems read it.

Meanings come from the texts beneath the fields of the models, units from the names of the fields (``call_ticks`` is in
ticks), types and defaults from the models. Only `_READ_BY` is written down here;
``tests/instances/test_machine_fields.py`` solves small cases of every problem and compares what they read.

``python -m instances.machine_fields`` writes the tables of docs/machines.md anew.
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
from instances.machine import Machine

PROBLEMS = (
    "tiling", "slicing", "joint", "fusion", "banks", "hybrid", "mapping", "applications", "partial_engine", "mesh",
    "placement", "selection",
)  # fmt: skip
_NESTS = ("tiling", "slicing", "joint", "fusion")
_BOARD = ("mapping", "applications")
#: Which problems read which fields. A field without an entry is read by those that read its section.
_READ_BY: dict[tuple[str, ...], str] = {
    PROBLEMS: "name description problem tick_ps sources",
    (*_NESTS, "partial_engine", "mesh"): "in_bytes w_bytes out_bytes psum_bytes",
    (*_NESTS, "banks"): "byte_fj mac_fj",
    (*_NESTS, "banks", "hybrid"): "transfer compute",
    _NESTS: """
        bias_bytes in_layout w_layout out_layout im2col_rows buffering sliding
        line snake overlap tles tlts dram layer_ticks reading edge_tiles psum_first_read off_chip homes
        transfer.segment_ticks transfer.burst_ticks transfer.burst_bytes transfer.burst_count compute.model
        compute.macs_per_cycle compute.rows compute.cols broadcast""",
    ("tiling", "slicing", "joint"): "im2col_channels",
    (*_NESTS, "placement"): "ocm_bytes reserved_bytes",
    ("tiling", "slicing", "placement"): "in_buffer_bytes w_buffer_bytes out_buffer_bytes",
    ("joint", "fusion", "placement"): "ocm_banks",
    ("banks", "hybrid"): "banks",
    (*_BOARD, "selection"): "processors",
    _BOARD: "processors.cpu.busy_mhz processors.cpu.alone_mhz",
    ("mapping",): "processors.split_sync_ns",
    ("partial_engine",): "engine",
    ("mesh",): "mesh",
    ("selection",): "platform processors.cpu.half_scale processors.accelerators.half_scale",
    (): "transfer.model requantise",
}
_READERS = {field: problems for problems, fields in _READ_BY.items() for field in fields.split()}
#: Units by the end of a field's name, the longest first.
_UNITS = {
    "bytes_per_cycle": "bytes/cycle", "macs_per_cycle": "MACs/cycle", "bytes": "bytes", "ticks": "ticks", "fj": "fJ",
    "ps": "ps", "ns": "ns", "us": "us", "mw": "mW", "mhz": "MHz", "hz": "Hz",
}  # fmt: skip
_BEGIN, _END = (
    "<!-- begin of python -m instances.machine_fields -->",
    "<!-- end of python -m instances.machine_fields -->",
)


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
        inner = _section(field)
        path = f"{section}.{name}" if section else name
        yield Row(path, _unit(name, field, inner), _default(field, inner), meanings(model)[name], readers(path))
        if inner and (not section or inner not in _TOP):
            yield from rows(inner, f"{path}[]" if _is_list(field) else path)


def readers(path: str) -> tuple[str, ...]:
    """Return the problems that read a field."""
    path = path.replace("[]", "")
    while path not in _READERS:
        path = path.rpartition(".")[0]
    return _READERS[path]


def _section(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model of a section, also of an optional or repeated one."""
    inner = [field.annotation, *get_args(field.annotation)]
    return next((kind for kind in inner if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def _is_list(field: FieldInfo) -> bool:
    return get_origin(field.annotation) is tuple


_TOP = {_section(field) for field in Machine.model_fields.values()}


def _unit(name: str, field: FieldInfo, inner: type[BaseModel] | None) -> str:
    kinds = {kind for kind in (field.annotation, *get_args(field.annotation)) if isinstance(kind, type)}
    if inner:
        return "list of sections" if _is_list(field) else "section"
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
        read_by = "every problem" if problems == PROBLEMS else ", ".join(problems) or "no problem"
        yield f"| {names} | {unit} | {default} | {meaning} | {read_by} |"
    yield ""


def page(text: str) -> str:
    """Return the text of docs/machines.md with the tables made anew."""
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n\n{tables()}\n{_END}{after}"


if __name__ == "__main__":
    path = Path(__file__).parent.parent / "docs" / "machines.md"
    path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")
