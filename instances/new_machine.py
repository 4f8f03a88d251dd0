"""Machine files to begin with: the numbers of a bundled machine, and above every field what it means.

JSON has no comments; the loader leaves out keys that begin with ``//``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel

from instances.errors import InputError, choices
from instances.jsonfile import Json, shown
from instances.load import load_machine
from instances.machine.fields import Row, rows
from instances.problems import PROBLEMS


def machine_template(problem: str = "tiling") -> str:
    """Return the text of a machine file for a problem: the fields that it reads, each with a comment.

    Raises InputError if there is no such problem.
    """
    if problem not in PROBLEMS:
        raise InputError(f"unknown problem {shown(problem)}: expected {choices(PROBLEMS)}")
    base = PROBLEMS[problem].template
    head: dict[str, Json] = {
        "//": f"A machine for problem {problem}, with the numbers of {base}. Change them; fields with a default may "
        "go. Keys that begin with // are comments. docs/machines.md has all fields."
    }
    fields = dict(_commented(load_machine(base), "", problem, {row.path: row for row in rows()}))
    fields |= {"problem": problem} if PROBLEMS[problem].machines else {}
    fields |= {
        "name": "my_machine", "description": f"made from {base}",
        "sources": {"template": f"all numbers are those of {base}"},
    }  # fmt: skip
    return json.dumps(head | fields, indent=1) + "\n"


def _commented(model: BaseModel, section: str, problem: str, known: Mapping[str, Row]) -> Iterator[tuple[str, Json]]:
    """Yield keys and values: what the problem reads, and what has to be there; a comment before each field."""
    said = ""
    for name, field in type(model).model_fields.items():
        row = known.get(f"{section}{name}") or known[f"transfer.{name}"]  # a memory off the chip has prices like it
        value = getattr(model, name)
        read = problem in row.problems
        needed = field.is_required() or name == "transfer"
        if value in (None, (), {}) or not (read or needed or value != field.get_default(call_default_factory=True)):
            continue
        if row.meaning != said:
            yield f"//{name}", _comment(row) + ("" if read else f" Problem {problem} does not read it.")
        said = row.meaning
        yield name, _value(value, row.path, problem, known)


def _comment(row: Row) -> str:
    default = f"default {row.default}" if row.default.startswith("`") else row.default
    about = "; ".join(text for text in (row.unit, default) if text and text != "section")
    return f"{row.meaning} ({about})".replace("`", "").replace('"', "'").removesuffix(" ()")


def _value(value: object, path: str, problem: str, known: Mapping[str, Row]) -> Json:
    if isinstance(value, BaseModel):
        return dict(_commented(value, f"{path}.", problem, known))
    if isinstance(value, Sequence) and value and isinstance(value[0], BaseModel):
        first, *others = [dict(_commented(part, f"{path}[].", problem, known)) for part in value]
        return [first, *({key: v for key, v in part.items() if not key.startswith("//")} for part in others)]
    return json.loads(json.dumps(value))  # type: ignore[no-any-return]
