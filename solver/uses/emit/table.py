"""A layer as a row of the tables that the check reads (certile_check.h)."""

from __future__ import annotations

from collections.abc import Mapping

from hwmodels.outcome import Counts
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer
from solver.uses.emit.values import pitches

_ROWS = ("IN", "W", "OUT", "PSUM")


def row(
    name: str, function: str, layer: Layer, machine: Machine, planned: Mapping[str, Counts], unwritten: int = 0
) -> str:
    """Return a layer with what its plan moves, as the initialiser of a `certile_layer`."""
    sizes = [layer.extent(d) for d in DIMS] + [
        layer.stride_h, layer.stride_w, layer.dilation_h, layer.dilation_w, layer.pad_top, layer.pad_left, layer.h,
        layer.l, layer.inputs, machine.in_bytes, machine.w_bytes if "W" in layer.operands else 0, machine.out_bytes,
        machine.psum_bytes, (machine.bias_bytes or 4) if layer.bias else 0,
    ]  # fmt: skip
    inputs = ", ".join(_pitches("IN", "bgnrc", layer, machine, lacks) for lacks in layer.patterns)
    others = (_pitches(operand, letters, layer, machine) for operand, letters in (("W", "gmnij"), ("OUT", "bgmrc")))
    places = ", ".join([f"{{{inputs}}}", *others])
    counts = [planned.get(operand, Counts()) for operand in _ROWS]
    moved = ", ".join(f"{{{one.calls}, {one.segments}, {one.bytes}}}" for one in counts)
    return f'    {{"{name}", {function}, {", ".join(map(str, sizes))}, {places}, {{{moved}}}, {unwritten}}},'


def _pitches(operand: str, letters: str, layer: Layer, machine: Machine, lacks: str = "") -> str:
    """The pitches of a tensor as an initialiser; 0 along what an input lacks."""
    found = {**pitches(operand, layer, machine, lacks), **dict.fromkeys(lacks, 0)}
    return f"{{{', '.join(str(found[d]) for d in letters)}}}"
