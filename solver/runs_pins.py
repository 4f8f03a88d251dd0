"""Pins of problem engine, and why nothing fits if nothing does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from formulations.runs import Demands, build
from hwmodels.engine_work import Work
from instances.errors import InputError
from instances.machine import Machine

__all__ = ["conflicts", "demands"]

_FIELDS = {"strips": "strips", "in_places": "inputs", "part_places": "parts"}
_PIN = re.compile(r"\s*(\w+)\s*(<=|>=|=)\s*([\w]+)\s*")


def demands(texts: Sequence[str]) -> Demands:
    """Read pins.

    Raises
    ------
    InputError
        If a pin is unknown.
    """
    wanted = Demands()
    for text in texts:
        found = _PIN.fullmatch(text)
        name, relation, value = found.groups() if found else ("", "", "")
        if name == "spill" and relation == "=" and value in ("yes", "no"):
            wanted = replace(wanted, stay=value == "no" or wanted.stay)
        elif name in _FIELDS and value.isascii() and value.isdigit() and 1 <= int(value[:12]) < 2**31:
            least, most = getattr(wanted, _FIELDS[name])
            number = int(value)
            least = max(least, number) if relation != "<=" else least
            most = min(most, number) if relation != ">=" else most
            wanted = replace(wanted, **{_FIELDS[name]: (least, most)})
        else:
            raise InputError(
                f"pin {text!r}: problem engine knows strips=2, in_places<=4, part_places>=2 (also with =, <= or >=), "
                "and spill=no"
            )
    return wanted


def conflicts(work: Work, machine: Machine, texts: Sequence[str]) -> tuple[str, ...]:
    """Return why no choice of strips and places fits: a minimal set of pins, and the bank; nothing if one does."""
    if build(work, machine, demands(texts)).branches:
        return ()
    kept = list(texts)
    for text in texts:
        fewer = [other for other in kept if other != text]
        if not build(work, machine, demands(fewer)).branches:
            kept = fewer
    small = build(work, machine, demands(kept)).smallest
    said = f"pins {', '.join(kept)}: " if kept else ""
    groups = f"layer {work.layer.name} has {work.layer.r} rows, {work.inputs} input and {work.outputs} output groups"
    if small.rows == 0 or small.bytes <= work.engine.bank_bytes:
        return (f"{said}{groups}, which leaves no such strips and places",)
    return (
        f"{said}strips of {small.rows} rows with {small.inputs} input places of {small.in_place} bytes and "
        f"{small.parts} partial places of {small.part_place} bytes take {small.bytes} bytes of every bank, "
        f"{machine.name} has {work.engine.bank_bytes}",
    )
