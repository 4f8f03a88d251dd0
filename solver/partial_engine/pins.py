"""Pins of problem engine, and why nothing fits if nothing does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from formulations.partial_engine.problem import Demands, build
from hwmodels.partial_engine.work import Work
from instances.errors import InputError
from instances.machine import Machine

__all__ = ["conflicts", "demands"]

_NUMBERS = ("strips", "in_places", "part_places")
_PIN = re.compile(r"\s*(\w+)\s*(<=|>=|=)\s*([\w]+)\s*")


def demands(texts: Sequence[str]) -> Demands:
    """Read pins.

    Raises
    ------
    InputError
        If a pin is unknown.
    """
    wanted, chosen = Demands(), dict[str, str]()
    for text in texts:
        found = _PIN.fullmatch(text)
        name, relation, value = found.groups() if found else ("", "", "")
        if name in ("spill", "inputs", "results") and chosen.setdefault(name, value) != value:
            raise InputError(f"pin {text!r}: {name} is pinned to {chosen[name]} already")
        if name == "spill" and relation == "=" and value in ("yes", "no"):
            wanted = replace(wanted, stay=value == "no" or wanted.stay)
        elif name in ("inputs", "results") and relation == "=" and value in ("banks", "dram"):
            held = value == "banks"
            wanted = replace(wanted, before=held) if name == "inputs" else replace(wanted, after=held)
        elif name in _NUMBERS and value.isascii() and value.isdigit() and 1 <= int(value[:12]) < 2**31:
            wanted = _bounded(wanted, name, relation, int(value))
        else:
            raise InputError(
                f"pin {text!r}: problem engine knows strips=2, in_places<=4, part_places>=2 (also with =, <= or >=), "
                "spill=no, inputs=banks and results=banks"
            )
    return wanted


def _bounded(wanted: Demands, name: str, relation: str, number: int) -> Demands:
    least, most = {"strips": wanted.strips, "in_places": wanted.inputs}.get(name, wanted.parts)
    pair = least if relation == "<=" else max(least, number), most if relation == ">=" else min(most, number)
    if name == "strips":
        return replace(wanted, strips=pair)
    return replace(wanted, inputs=pair) if name == "in_places" else replace(wanted, parts=pair)


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
        f"{said}strips of {small.rows} rows take {small.bytes} bytes of every bank, {machine.name} has "
        f"{work.engine.bank_bytes}: places for input groups {small.inputs} x {small.in_place} bytes, "
        f"for partial groups {small.parts} x {small.part_place}",
    )
