"""Targets that are no networks: variants of layers, buffers, plans, instances of the library; by name or file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from instances.buffers import Buffers
from instances.commons import instance, is_instance
from instances.errors import InputError
from instances.jsonfile import parse_json, read_bytes
from instances.machine import Machine
from instances.variants import VARIANTS_FORMAT, Variants, list_variants, load_variants
from solver.options import as_texts
from solver.placement.files import holds_buffers, read_buffers


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
