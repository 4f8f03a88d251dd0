"""Targets of problem placement that are files: of buffers, and plans, whose problems are imported then."""

from __future__ import annotations

import os
from typing import Literal

from instances.buffers import BUFFERS_FORMAT, Buffers, load_buffers
from instances.errors import InputError
from instances.jsonfile import parse_json, read_bytes
from instances.late import late
from instances.machine import Machine
from solver.faces import FACES

_sound_plan = late("solver.check:sound_plan")
#: What formats of plan files begin with.
_PLANS = "certile-plan/"


def holds_buffers(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one of buffers, or a plan."""
    return _kind(path) != ""


def read_buffers(path: str | os.PathLike[str]) -> tuple[Buffers, Machine | None] | None:
    """Return the buffers of a file, and the machine of a plan; None if it is a file of something else.

    Raises
    ------
    InputError
        If it is a file of buffers, or a plan, and cannot be read; if a plan says what does not follow from its
        decisions.
    """
    kind = _kind(path)
    if kind == "plan":
        plan = _sound_plan(path)
        return FACES["buffers_of"](plan), plan.machine_data
    return (load_buffers(path), None) if kind else None


def _kind(path: str | os.PathLike[str]) -> Literal["", "buffers", "plan"]:
    """What a file is, by its ending and its first field."""
    text = os.fspath(path)
    if text.lower().endswith(".csv"):
        return "buffers"
    if not text.lower().endswith(".json") or not os.path.isfile(text):
        return ""
    try:
        data = parse_json(read_bytes(text), f"file {text}", comments=True)
    except InputError:  # whoever reads it says what is wrong
        return ""
    named = str(data.get("format")) if isinstance(data, dict) else ""
    return "buffers" if named == BUFFERS_FORMAT else "plan" if named.startswith(_PLANS) else ""
