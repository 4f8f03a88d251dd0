"""Targets of problem placement: files of buffers, and the buffers of plans."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal

from formulations.placement.blocks import Block
from hwmodels.nest.buffers import buffers
from instances.buffers import BUFFERS_FORMAT, Buffers, load_buffers
from instances.errors import InputError
from instances.jsonfile import parse_json, read_bytes
from instances.machine import Machine
from instances.stores import stores
from solver.joint.rows import is_shared
from solver.plan import Plan
from solver.tiling.plan import LayersPlan

#: What formats of plan files begin with.
_PLANS = ("certile-plan/", "certile-joint/")


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
        from solver.check import sound_plan  # late: it knows all problems, this one too

        plan = sound_plan(path)
        return buffers_of(plan), plan.machine_data
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


def buffers_of(plan: Plan) -> Buffers:
    """Return what lies on chip while a plan runs: tiles, maps that stay, strips, scratch. A layer is a time.

    Raises
    ------
    InputError
        For plans of problems that have no buffers with addresses, and plans without a schedule.
    """
    if isinstance(plan, LayersPlan):
        blocks = dict(_of_layers(plan))
    elif is_shared(plan) and plan.schedule is not None:
        from solver.emit.onchip import OnChip  # late: it knows how models are read

        chip = OnChip(plan.network_data, plan.machine_data, stores(plan.network_data), plan.schedule, None)
        blocks = dict.fromkeys(chip.blocks(), "ocm")
    else:
        raise InputError(
            f"plan of {plan.network}: problem placement takes plans of tiling, slicing, joint and fusion that have "
            f"layers, this is one of {plan.problem}, {plan.status}"
        )
    return Buffers(name=plan.network, buffers=tuple(block.buffer(memory) for block, memory in blocks.items()))


def _of_layers(plan: LayersPlan) -> Iterable[tuple[Block, str]]:
    """Tiles and scratch of every layer."""
    for time, layer in enumerate(plan.layers):
        if layer.schedule is None:
            raise InputError(f"plan of {plan.network}: layer {layer.layer} has no schedule")
        for tile in buffers(layer.workload, plan.machine_data, layer.schedule.to_nest()):
            if tile.bytes and tile.name != "reserved":
                yield Block(f"{layer.layer}: {tile.name}", time, (tile.bytes * tile.copies,)), tile.memory
