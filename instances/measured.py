"""Measured times, from files: rows of a calibration (CSV), and profiles of tasks on a board (JSON or CSV).

**Rows** say what was run, by which plan, and how long it took. Heads, in any order; those in brackets may be left out,
as may their cells:

================  =================================================================================================
network           bundled name, ``.json`` or ``.onnx`` file: all its conv and matmul layers, one after the other
layer             one layer of the network; or, without a network, a convolution in words:
                  ``channels=64 filters=64 size=56x56 kernel=3x3 [stride=1x1 pad=1 groups=1 dilation=1x1 batch=1]``
plan              a plan file of problem tiling or slicing instead of both: its schedules were measured
[pins]            demands that the measured plan met, with ``;`` between: ``holds=uniform;partition=KS``
[engine]          who chose the measured plan (``certile list engines``): ``tso-noburst``; else the best plan
[objective]       what was minimised: ``bytes,time``; else ``time``
measured, unit    a number in ``ps``, ``ns``, ``us``, ``ms``, ``s``, ``ticks`` or ``cycles`` (of compute) of the
                  machine, or ``%ocm``: bytes of the on-chip memory that the plan takes, in per cent of it.
                  Instead of both heads one that is a unit: ``us``
[name]            what to call the row
[group]           rows that are left out together (``--leave-out``); else the network, plan or layer
[note]            for people
================  =================================================================================================

Lines that begin with ``#`` are for people. Paths are looked for beside the CSV file first.

**Profiles** are the measured times of a network's tasks, or of its layers.

JSON: ``{"format": "certile-profile/1", "network": "squeezenet1_1", "unit": "us", "times": {"conv1": {"1": 14569,
"4": 3951, "gpu": 1628}, ...}}``. CSV: a line of heads, ``task,1,2,4,gpu``, then one line a task. Columns are ``1*``
(one core without threads), ``1``, ``2``, ... (cores), and accelerators; ``null``, or ``-`` in CSV, says that the task
cannot run there. A column that no task has is not asked for; a cell that is missing in a column that others have is
an error. Of layers on a machine with one core column ``1`` has the times of all of them (`Profile.layers`).
"""

from __future__ import annotations

import csv
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from instances.errors import InputError, choices, did_you_mean
from instances.frozen import Frozen
from instances.jsonfile import (
    BUNDLED_NAME,
    Json,
    as_object,
    bundled,
    check_format,
    csv_rows,
    decoded,
    parse_json,
    read_bytes,
    shown,
)  # fmt: skip
from instances.machine.machine import Compute, Machine
from instances.network.stores import Stores
from instances.network.workload import Layer
from instances.validation import validate

#: Picoseconds of the units of time.
UNITS_PS: dict[str, int] = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
_UNITS = (*UNITS_PS, "ticks", "cycles", "%ocm")
_HEADS = ("network", "layer", "plan", "pins", "engine", "objective", "measured", "unit", "name", "group", "note")
_SOURCES = ("network", "layer", "plan")
#: More rows than this are no table of measurements.
MOST_ROWS = 10_000
#: Longer than this (in ps, or ticks) is a typing error, and beyond what is exact.
_LARGEST = 10**15
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,2})?")
_SIZES = ("channels", "filters", "size", "kernel", "stride", "pad", "groups", "dilation", "batch")


@dataclass(frozen=True)
class Measured:
    """One row: a measured value (exactly as written) in a unit, and what was measured."""

    line: int
    """In the file."""
    network: str
    """Empty where not given, as `layer` and `plan` are."""
    layer: str
    plan: str
    pins: tuple[str, ...]
    engine: str
    """Empty: the best plan."""
    objective: str
    """Empty: time."""
    value: Fraction
    unit: str
    name: str
    """Never empty, nor is `group`."""
    group: str

    @property
    def occupancy(self) -> bool:
        """Whether memory was measured, not time."""
        return self.unit == "%ocm"


@dataclass(frozen=True)
class MeasuredRows:
    """All rows of a file, what to call it, and the SHA-256 of its bytes."""

    source: str
    digest: str
    rows: tuple[Measured, ...]


def list_measured() -> dict[str, str]:
    """Return the bundled rows: name -> first line of their file."""
    files = bundled("measured_rows", ".csv")
    return {name: file.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") for name, file in files.items()}


def load_measured(name_or_path: str | os.PathLike[str]) -> MeasuredRows:
    """Read measured rows: bundled by name, or from a ``.csv`` file.

    Raises InputError with the line and the column of the first fault, and what would be accepted.
    """
    text = os.fspath(name_or_path)
    known = bundled("measured_rows", ".csv")
    if text in known:
        return _read(known[text].read_bytes(), f"rows {text}", text, None)
    if BUNDLED_NAME.fullmatch(text) and not Path(text).exists():
        hint = did_you_mean(text, known, 2, 0.5)
        raise InputError(f"unknown rows {shown(text)}: {hint}give a .csv file or one of {', '.join(known)}")
    return _read(read_bytes(text, what="rows"), f"rows {text}", Path(text).name, Path(text).parent)


def _read(data: bytes, where: str, source: str, folder: Path | None) -> MeasuredRows:
    lines = list(_lines(decoded(data, where), where))
    if not lines:
        raise InputError(f"{where}: no line of heads, such as network,pins,measured,unit")
    heads = _heads(lines[0][1], f"{where}: line {lines[0][0]}")
    rows = tuple(_row(number, cells, heads, where, folder) for number, cells in lines[1:])
    if not rows:
        raise InputError(f"{where}: no row under the heads")
    if len(rows) > MOST_ROWS:
        raise InputError(f"{where}: {len(rows)} rows, at most {MOST_ROWS} are read")
    names: dict[str, int] = {}
    for row in rows:
        if row.name in names:
            raise InputError(
                f"{where}: line {row.line}: row {shown(row.name)} stands in line {names[row.name]} already; "
                "column name tells rows apart"
            )
        names[row.name] = row.line
    return MeasuredRows(source, f"sha256:{hashlib.sha256(data).hexdigest()}", rows)


def _lines(text: str, where: str) -> Iterator[tuple[int, list[str]]]:
    """The lines that are neither empty nor for people, with their numbers."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            (cells,) = csv.reader([line], strict=True)
        except csv.Error as error:
            raise InputError(f"{where}: line {number}: not CSV: {error}") from None
        yield number, [cell.strip() for cell in cells]


def _heads(cells: list[str], where: str) -> list[str]:
    heads = [cell.lower() for cell in cells]
    for head in heads:
        if head not in (*_HEADS, *_UNITS):
            hint = did_you_mean(head, (*_HEADS, *_UNITS), 1)
            raise InputError(f"{where}: unknown head {shown(head)}: {hint}known: {', '.join((*_HEADS, *_UNITS))}")
        if heads.count(head) > 1:
            raise InputError(f"{where}: head {head} stands twice")
    units = [head for head in heads if head in _UNITS]
    if (len(units), len({"measured", "unit"} & set(heads))) not in ((0, 2), (1, 0)):
        raise InputError(f"{where}: give heads measured and unit, or instead of both one head that is a unit, as us")
    if not set(_SOURCES) & set(heads):
        raise InputError(f"{where}: one of the heads {choices(_SOURCES)} is needed")
    return heads


def _row(number: int, cells: list[str], heads: list[str], where: str, folder: Path | None) -> Measured:
    where = f"{where}: line {number}"
    if len(cells) != len(heads):
        raise InputError(f"{where}: {len(cells)} cells under {len(heads)} heads")
    by_head = dict.fromkeys(_HEADS, "") | dict(zip(heads, cells, strict=True))
    head = next((h for h in heads if h in _UNITS), "measured")
    unit = head if head != "measured" else by_head["unit"]
    if unit not in _UNITS:
        raise InputError(f"{where}, column unit: {shown(unit)} is no unit: expected {', '.join(_UNITS)}")
    value = parse_number(by_head[head], f"{where}, column {head}")
    if value <= 0 or value * UNITS_PS.get(unit, 1) > _LARGEST:
        raise InputError(f"{where}, column {head}: {by_head[head]} {unit} is no positive time below 1000 s")
    if unit == "%ocm" and value > 100:
        raise InputError(f"{where}, column {head}: {by_head[head]} is above 100 per cent")
    if by_head["plan"] and (by_head["network"] or by_head["pins"] or by_head["engine"] or by_head["objective"]):
        said = "a plan says all itself: leave network, pins, engine and objective empty beside it"
        raise InputError(f"{where}: {said}")
    if not any(by_head[source] for source in _SOURCES):
        raise InputError(f"{where}: one of {choices(_SOURCES)} must say what was measured")
    if by_head["layer"] and not (by_head["network"] or by_head["plan"]):
        parse_layer(by_head["layer"], f"{where}, column layer")
    pins = tuple(pin.strip() for pin in by_head["pins"].split(";") if pin.strip())
    what = [by_head["network"] or Path(by_head["plan"]).name, by_head["layer"], ";".join(pins), by_head["engine"]]
    return Measured(
        line=number, network=_beside(by_head["network"], folder), layer=by_head["layer"],
        plan=_beside(by_head["plan"], folder), pins=pins, engine=by_head["engine"], objective=by_head["objective"],
        value=value, unit=unit, name=by_head["name"] or " ".join(filter(None, what)),
        group=by_head["group"] or next(text for text in (what[0], by_head["layer"]) if text),
    )  # fmt: skip


def _beside(text: str, folder: Path | None) -> str:
    """A path as seen from the rows' file if something is there, else as it stands."""
    if not text or folder is None or BUNDLED_NAME.fullmatch(text) or Path(text).is_absolute():
        return text
    beside = folder / text
    return str(beside) if beside.exists() else text


def parse_number(text: str, where: str) -> Fraction:
    """Read a decimal number exactly; raises InputError for others."""
    if not _NUMBER.fullmatch(text) or len(text) > 40:
        what = f"{shown(text)} is not a number" if text else "a number is missing"
        raise InputError(f"{where}: {what}: write digits with a point, for example 12.5")
    return Fraction(text)


def parse_layer(text: str, where: str) -> Layer:
    """Read a convolution in words; the name of the layer is the text.

    Raises InputError for unknown or missing words, sizes that are no sizes, or a layer that cannot be.
    """
    example = "channels=64 filters=64 size=56x56 kernel=3x3 pad=1"
    words: dict[str, tuple[int, int]] = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        parts = value.lower().split("x")
        pair = name in ("size", "kernel", "stride", "pad", "dilation")
        if name not in _SIZES or not equals:
            raise InputError(f"{where}: {shown(word)} is not NAME=SIZE with one of {choices(_SIZES)}: {example}")
        if name in words:
            raise InputError(f"{where}: {name} stands twice")
        if not all(re.fullmatch(r"[0-9]{1,7}", p) for p in parts) or len(parts) > (2 if pair else 1):
            raise InputError(f"{where}: {shown(word)} is no size{' such as 3x3' if pair else ''}: {example}")
        words[name] = int(parts[0]), int(parts[-1])
    for name in ("channels", "filters", "size"):
        if name not in words:
            raise InputError(f"{where}: {name} is missing: {example}")
    one, pad = (1, 1), words.get("pad", (0, 0))
    try:
        return Layer.conv(
            text, channels=words["channels"][0], filters=words["filters"][0], size=words["size"],
            kernel=words.get("kernel", one), stride=words.get("stride", one), pad=(*pad, *pad),
            dilation=words.get("dilation", one), groups=words.get("groups", one)[0], batch=words.get("batch", one)[0],
        )  # fmt: skip
    except (ValueError, ZeroDivisionError) as error:
        raise InputError(f"{where}: {shown(text)} cannot be: {error}") from None


#: The first field of every profile file.
PROFILE_FORMAT = "certile-profile/1"
#: Microseconds by column; None where the task cannot run.
Row = dict[str, float | None]
#: The longest time of a task.
LONGEST_US = 1e9
#: The column of a machine with one core, and what products of a layer's ticks with its pixels or filters are below.
CORE, _MOST = "1", 2**62
_PER_US = {"ns": 1000.0, "us": 1.0, "ms": 0.001}


class Profile(Frozen):
    """Measured times."""

    format: Literal["certile-profile/1"] = "certile-profile/1"
    network: str = ""
    unit: Literal["cycles", "ns", "us", "ms"] = "us"
    """"cycles": of compute, on a machine that has them (`instances.machine.machine.Compute`)."""
    clock: Literal["busy", "alone"] = "busy"
    """"alone": measured with all other cores idle, at the clocks `alone_mhz` of the machine; times on cores are then
    scaled to its `busy_mhz`.
    """
    times: Annotated[
        dict[str, dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)] | None]], Field(min_length=1)
    ]

    def rows(self, tasks: Sequence[str], options: Sequence[str], where: str = "profile") -> tuple[Row, ...]:
        """Return the microseconds of some tasks, in their order.

        Raises InputError if a task or a column is unknown, or a cell is missing.
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
        if self.unit not in _PER_US:
            raise InputError(f"{where}: unit {self.unit}: a board has no cycle of its own, write ns, us or ms")
        per_us = _PER_US[self.unit]
        rows = tuple({k: t if t is None else t / per_us for k, t in self.times[name].items()} for name in tasks)
        for name, row in zip(tasks, rows, strict=True):
            if any(t is not None and t > LONGEST_US for t in row.values()):
                raise InputError(f"{where}: task {name}: a time is above {LONGEST_US / 1e6:.0f} s")
        return rows

    def layers(self, layers: Sequence[Layer], machine: Machine) -> tuple[Layer, ...]:
        """Return the layers of a network with their times in ticks, rounded up, as cycles of `measured`.

        Raises InputError with all that is wrong: layers that are unknown, missing, or take too long, columns that are
        no core, and a machine that does not compute layer by layer.
        """
        if wrong := [*self._misnamed([layer.name for layer in layers]), *self._unsuited(machine)]:
            raise InputError(f"profile: {'; '.join(wrong)}")
        cycle_ps = machine.compute.cycle_ticks * machine.tick_ps
        unit_ps = cycle_ps if self.unit == "cycles" else UNITS_PS[self.unit]
        made = []
        for layer in layers:  # decimals as they are written
            ticks = ceil(Fraction(str(self.times[layer.name][CORE])) * unit_ps / machine.tick_ps)
            made.append(layer.model_copy(update={"cycles": ticks}))
        long = [one.name for one in made if one.cycles * max(one.r * one.c, one.g * one.m) >= _MOST]
        if long:
            raise InputError(f"profile: {', '.join(long)}: too long, ticks times pixels or filters reach 2**62")
        return tuple(made)

    def _misnamed(self, names: Sequence[str]) -> Iterator[str]:
        """What is wrong with names of layers and columns."""
        if unknown := [name for name in self.times if name not in names]:
            yield f"the network has no layers {shown(unknown, 200)}"
        if missing := [name for name in names if self.times.get(name, {}).get(CORE) is None]:
            yield f"no time in column {CORE} of layers {shown(missing, 200)}"
        if strange := sorted({column for row in self.times.values() for column in row} - {CORE}):
            yield f"columns {shown(strange, 200)}: times of layers stand in column {CORE}"

    def _unsuited(self, machine: Machine) -> Iterator[str]:
        """What of a machine does not suit times of whole layers."""
        if self.clock == "alone":
            yield "clock alone is for boards"
        if machine.timing != "serial":
            yield f"machine {machine.name}: times of whole layers need overlap serial, it has {machine.timing}"
        if self.unit == "cycles" and not machine.compute.cycle_ticks:
            yield f"unit cycles: compute.cycle_ticks of {machine.name} is 0, write a unit of time"


def measured(machine: Machine) -> Machine:
    """Return a machine that computes as a profile says: nothing by itself, and a cycle of a layer is a tick."""
    return machine.model_copy(update={"compute": Compute(model="none", cycle_ticks=1)})


def timed(found: Stores, machine: Machine, profile: Profile | None) -> Stores:
    """Return the layers of a network with their measured times, if there are any; raises InputError as `layers`."""
    return found if profile is None else replace(found, layers=profile.layers(found.layers, machine))


def load_profile(path: str | os.PathLike[str]) -> Profile:
    """Read a profile from ``.json`` or ``.csv``; raises InputError that says what is wrong, and where."""
    where, data = f"profile {os.fspath(path)}", read_bytes(path, what="profile")
    if os.fspath(path).lower().endswith(".csv"):
        return validate(Profile, {"times": _table(data, where)}, where)
    fields = dict(as_object(parse_json(data, where), where))
    check_format(fields, PROFILE_FORMAT, where)
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
