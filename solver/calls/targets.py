"""Targets that are no networks: variants of layers, buffers, plans, instances of the library; by name or file.

A file that problem placement is asked of holds buffers or a plan, whose problem is imported then.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

from instances.errors import InputError
from instances.jsonfile import parse_json, read_bytes
from instances.late import late
from instances.library_format import instance, is_instance
from instances.machine.machine import Machine
from instances.network.buffers import BUFFERS_FORMAT, Buffers, load_buffers
from instances.network.variants import VARIANTS_FORMAT, Variants, list_variants, load_variants
from solver.ask.options import as_texts
from solver.plan.faces import FACES

_sound_plan = late("solver.calls.check:sound_plan")
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


def is_own(path: str | os.PathLike[str]) -> bool:
    """Whether a name or path is of such a target."""
    return is_instance(path) or _holds_variants(path) or holds_buffers(path)


def read_target(path: str | os.PathLike[str]) -> tuple[Buffers | Variants, Machine | str | None] | None:
    """Return such a target, and the machine that it brings or names; None if it is something else.

    Raises
    ------
    InputError
        If it is one, and cannot be read.
    """
    if _holds_variants(path):
        variants = load_variants(path)
        return variants, named_machine(variants)
    return read_buffers(path)


def of_library(target: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is asked with what an instance says: target, machine, pins, and if nothing is asked its objectives.

    Raises
    ------
    InputError
        If there is no such instance, or another machine is named.
    """
    one = instance(target)
    if asked["machine"] is not None:
        raise InputError(f"target {target}: it brings its machine, {one.machine.load().name}")
    return {
        **asked, "target": one.target.load(), "machine": one.machine.load(),
        "problem": asked["problem"] or one.problem, "objective": asked["objective"] or list(one.objectives),
        "pins": (*one.pins, *as_texts("pins", asked["pins"])), "layers": asked["layers"] or one.target.layers or None,
    }  # fmt: skip


def named_machine(variants: Variants) -> str | None:
    """Return the name of the machine that variants were measured on."""
    return variants.machine or None


def _holds_variants(path: str | os.PathLike[str]) -> bool:
    text = os.fspath(path)
    if text in list_variants():
        return True
    if not text.lower().endswith((".csv", ".json")) or not os.path.isfile(text):
        return False
    try:
        data = read_bytes(text)
        if text.lower().endswith(".csv"):
            heads = data.partition(b"\n")[0].decode("utf-8", "replace").strip().split(",")
            return {"layer", "variant"} <= {head.strip() for head in heads}
        fields = parse_json(data, f"file {text}", comments=True)
    except InputError:  # whoever reads it says what is wrong
        return False
    return isinstance(fields, dict) and fields.get("format") == VARIANTS_FORMAT
