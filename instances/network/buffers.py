"""Buffers that live for some time, and the memories on chip that they may lie in.

CSV, as MiniMalloc reads and writes it: a line of heads, then a line a buffer.

    id,lower,upper,size,alignment,gaps,offset
    a,0,3,4,1,,
    b,2,9,64,16,4-6 7-8@0:16,

`lower` and `upper` are times, the upper one exclusive (heads `start` and `end`: the end inclusive). Optional columns:
`alignment`; `gaps`, times in which a buffer takes nothing, or with ``@low:high`` only these of its bytes; `offset`, the
address that it has to have; `hint`, one to begin with. certile's own: `memories` (names, the preferred one first),
`memory` (the one where it has to lie), `spill` (bytes that move if it does not lie on chip), `conflicts` (buffers that
may not share a bank with it).

JSON, format `certile-buffers/1`: the same with memories of their own,
``{"format": ..., "name": ..., "memories": [{"name": "sram", "bytes": 65536, "bank_bytes": 4096}], "buffers": [{"name":
"a", "lower": 0, "upper": 3, "size": 4}], "conflicts": [["a", "b"]]}``.
"""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, PositiveInt, model_validator

from instances.errors import InputError, choices, did_you_mean
from instances.frozen import Frozen
from instances.jsonfile import as_object, check_format, csv_rows, csv_text, decoded, parse_json, read_bytes, shown
from instances.validation import validate

#: The first field of every JSON file of buffers.
BUFFERS_FORMAT = "certile-buffers/1"
Time = Annotated[int, Field(ge=0, le=2**50)]
Bytes = Annotated[int, Field(ge=0, le=2**50)]
Size = Annotated[int, Field(ge=1, le=2**50)]
#: Heads of the CSV file, by the names that others have for them.
_HEADS = {"buffer": "id", "buffer_id": "id", "begin": "lower", "start": "lower", "end": "upper"}
_NEEDED = ("id", "lower", "upper", "size")
_KNOWN = (*_NEEDED, "alignment", "hint", "gaps", "offset", "memories", "spill", "conflicts", "memory")
_GAP = re.compile(r"(\d{1,16})-(\d{1,16})(?:@(\d{1,16}):(\d{1,16}))?")


class Extent(NamedTuple):
    """Bytes of a buffer that are taken, for some time: those from `low` to before `high` of its own."""

    lower: int
    upper: int
    low: int
    high: int


class Gap(Frozen):
    """A time in which a buffer takes nothing, or only a window of its bytes."""

    lower: Time
    upper: Time
    """`lower`, `upper`: from when to before when."""
    window: tuple[Bytes, Bytes] | None = None
    """The bytes that it still takes, from the first to before the second."""


class Buffer(Frozen):
    """A buffer: so many bytes at one address as long as it lives."""

    name: str = Field(min_length=1)
    lower: Time
    upper: Time
    """`lower`, `upper`: it lives from `lower` to before `upper`."""
    size: Size
    """Bytes."""
    alignment: PositiveInt = 1
    """Its address is a multiple of this."""
    gaps: tuple[Gap, ...] = ()
    offset: Bytes | None = None
    """The address that it has to have."""
    hint: Bytes | None = None
    """An address to begin a search with."""
    memories: tuple[str, ...] = ()
    """Where it may lie, the preferred memory first; empty: in any, all alike."""
    spill: Bytes | None = None
    """Bytes that move if it does not lie on chip; not given: it has to."""

    @model_validator(mode="after")
    def _sound(self) -> Buffer:
        if self.lower >= self.upper:
            raise ValueError(f"buffer {self.name}: lower {self.lower} has to be before upper {self.upper}")
        if self.offset is not None and self.offset % self.alignment:
            raise ValueError(f"buffer {self.name}: offset {self.offset} is no multiple of alignment {self.alignment}")
        if len(set(self.memories)) < len(self.memories):
            raise ValueError(f"buffer {self.name}: memories {', '.join(self.memories)}: one stands twice")
        gaps = sorted(self.gaps, key=lambda gap: gap.lower)
        for gap in gaps:
            low, high = gap.window or (0, 1)
            if not self.lower <= gap.lower < gap.upper <= self.upper or not 0 <= low < high <= self.size:
                raise ValueError(f"buffer {self.name}: gap {gap_text(gap)}: it is empty, or beyond the buffer")
        if any(one.upper > two.lower for one, two in pairwise(gaps)):
            raise ValueError(f"buffer {self.name}: two gaps are at one time")
        if not any(self.extents()):
            raise ValueError(f"buffer {self.name}: its gaps leave nothing of it")
        return self

    def extents(self) -> Iterator[Extent]:
        """Yield what it takes, in the order of times."""
        time = self.lower
        for gap in sorted(self.gaps, key=lambda gap: gap.lower):
            if time < gap.lower:
                yield Extent(time, gap.lower, 0, self.size)
            if gap.window is not None:
                yield Extent(gap.lower, gap.upper, *gap.window)
            time = gap.upper
        if time < self.upper:
            yield Extent(time, self.upper, 0, self.size)


def together(one: Buffer, two: Buffer) -> list[tuple[int, int, int, int]]:
    """What two buffers take at times at which both take something: low and high of the one, then of the other."""
    return list(
        dict.fromkeys(
            (mine.low, mine.high, its.low, its.high)
            for mine in one.extents()
            for its in two.extents()
            if mine.lower < its.upper and its.lower < mine.upper
        )
    )


class Memory(Frozen):
    """A memory on chip."""

    name: str = Field(min_length=1)
    bytes: Size
    """No buffer reaches beyond them."""
    bank_bytes: Bytes = 0
    """Of its banks, if it has some: buffers that conflict share none. 0: it is one bank."""


class Buffers(Frozen):
    """What is to be placed."""

    name: str = Field(min_length=1)
    buffers: Annotated[tuple[Buffer, ...], Field(min_length=1, max_length=100_000)]
    memories: tuple[Memory, ...] = ()
    """Empty: those of the machine."""
    conflicts: tuple[tuple[str, str], ...] = ()
    """Pairs of buffers that share no bank at one time."""

    @model_validator(mode="after")
    def _sound(self) -> Buffers:
        names = Counter(buffer.name for buffer in self.buffers)
        if repeated := [name for name, number in names.items() if number > 1]:
            raise ValueError(f"buffer {repeated[0]}: the name stands {names[repeated[0]]} times")
        for pair in self.conflicts:
            if pair[0] == pair[1] or not names.keys() >= set(pair):
                raise ValueError(f"conflict {pair[0]}, {pair[1]}: two buffers are needed")
        rooms = [memory.name for memory in self.memories]
        if len(set(rooms)) < len(rooms):
            raise ValueError(f"memories {', '.join(rooms)}: a name stands twice")
        for buffer in self.buffers if self.memories else ():
            if strange := set(buffer.memories) - set(rooms):
                raise ValueError(f"buffer {buffer.name}: memory {min(strange)}: there is {choices(rooms)}")
        return self


def load_buffers(path: str | os.PathLike[str]) -> Buffers:
    """Read a ``.csv`` or ``.json`` file of buffers; raises InputError that says what is wrong, and in which line."""
    where, data = f"buffers {os.fspath(path)}", read_bytes(path, what="buffers")
    if os.fspath(path).lower().endswith(".csv"):
        return buffers_from_csv(decoded(data, where), Path(path).name[:-4], where)
    return buffers_from_json(as_object(parse_json(data, where, comments=True), where), where)


def buffers_from_json(fields: Mapping[str, Any], where: str = "buffers") -> Buffers:
    """Read the fields of a JSON file; raises InputError."""
    check_format(fields, BUFFERS_FORMAT, where)
    return validate(Buffers, {name: value for name, value in fields.items() if name != "format"}, where)


def buffers_from_csv(text: str, name: str, where: str = "buffers") -> Buffers:
    """Read the text of a CSV file; raises InputError."""
    rows = [row for row in csv_rows(io.StringIO(text), where) if any(cell.strip() for cell in row)]
    if not rows:
        raise InputError(f"{where}: is empty, a line with {','.join(_NEEDED)} is expected first")
    heads = [head.strip() for head in rows[0]]
    last = 1 if "end" in heads else 0  # of a lifetime: an end is inclusive
    heads = [_HEADS.get(head, head) for head in heads]
    for head in heads:
        if head not in _KNOWN or heads.count(head) > 1:
            said = "stands twice" if heads.count(head) > 1 else f"is not known; {did_you_mean(head, _KNOWN)}"
            raise InputError(f"{where}: column {shown(head)} {said}: columns are {', '.join(_KNOWN)}")
    if missing := [head for head in _NEEDED if head not in heads]:
        raise InputError(f"{where}: column {missing[0]} is missing: {', '.join(_NEEDED)} are needed")
    buffers, conflicts = [], dict[tuple[str, str], None]()
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(heads):
            raise InputError(f"{where}, line {number}: {len(row)} cells, the heads are {len(heads)}")
        cells = {head: cell.strip() for head, cell in zip(heads, row, strict=True)}
        buffers.append(_buffer(cells, last, f"{where}, line {number}"))
        pairs = (sorted((cells["id"], other)) for other in cells.get("conflicts", "").split())
        conflicts |= dict.fromkeys((one, two) for one, two in pairs)
    fields: dict[str, Any] = {
        "name": name or "buffers",
        "buffers": buffers,
        "conflicts": [list(pair) for pair in conflicts],
    }
    return validate(Buffers, fields, where)


def _buffer(cells: Mapping[str, str], last: int, where: str) -> dict[str, Any]:
    """The fields of a buffer, as JSON has them."""

    def number(head: str) -> int:
        if not re.fullmatch(r"\d{1,16}", cells[head]):
            raise InputError(f"{where}, column {head}: a whole number is expected, got {shown(cells[head])}")
        return int(cells[head])

    fields: dict[str, Any] = {
        "name": cells["id"], "lower": number("lower"), "upper": number("upper") + last, "size": number("size"),
    }  # fmt: skip
    for head in ("alignment", "offset", "hint", "spill"):
        if cells.get(head, "") not in ("", "-1"):  # others write -1 for no hint
            fields[head] = number(head)
    fields["memories"] = (cells.get("memory") or cells.get("memories", "")).split()
    gaps = []
    for text in cells.get("gaps", "").split():
        match = _GAP.fullmatch(text)
        if match is None:
            raise InputError(f"{where}, column gaps: 4-6 or 4-6@0:16 is expected, got {shown(text)}")
        first, after, low, high = match.groups()
        window = {} if low is None else {"window": [int(low), int(high)]}
        gaps.append({"lower": int(first), "upper": int(after) + last, **window})
    return {**fields, "gaps": gaps}


def gap_text(gap: Gap) -> str:
    """A gap as CSV files write it."""
    window = "" if gap.window is None else f"@{gap.window[0]}:{gap.window[1]}"
    return f"{gap.lower}-{gap.upper}{window}"


def buffers_to_csv(found: Buffers, places: Mapping[str, tuple[str, int]] | None = None) -> str:
    """Return the text of a CSV file; with `places` (memory and address by buffer), where they lie in column `offset`.

    A buffer without a place has an empty cell. Memories have no column in this format: what they hold is not written.
    """
    partners: dict[str, list[str]] = {}
    for one, two in found.conflicts:
        partners.setdefault(one, []).append(two)
    columns: dict[str, Sequence[object]] = {
        "id": [b.name for b in found.buffers], "lower": [b.lower for b in found.buffers],
        "upper": [b.upper for b in found.buffers], "size": [b.size for b in found.buffers],
    }  # fmt: skip
    more: dict[str, Sequence[object]] = {
        "alignment": [b.alignment if b.alignment > 1 else "" for b in found.buffers],
        "hint": ["" if b.hint is None else b.hint for b in found.buffers],
        "gaps": [" ".join(map(gap_text, b.gaps)) for b in found.buffers],
        "memories": [" ".join(b.memories) for b in found.buffers],
        "spill": ["" if b.spill is None else b.spill for b in found.buffers],
        "conflicts": [" ".join(partners.get(b.name, ())) for b in found.buffers],
        "offset": ["" if b.offset is None else b.offset for b in found.buffers],
    }
    if places is not None:
        more["offset"] = [places[b.name][1] if b.name in places else "" for b in found.buffers]
        if len({memory for memory, _ in places.values()}) > 1:
            more["memory"] = [places[b.name][0] if b.name in places else "" for b in found.buffers]
    columns |= {head: cells for head, cells in more.items() if any(cell != "" for cell in cells)}
    if "alignment" in columns:
        columns["alignment"] = [b.alignment for b in found.buffers]
    return csv_text([tuple(columns), *zip(*columns.values(), strict=True)])
