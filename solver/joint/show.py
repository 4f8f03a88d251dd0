"""A plan in a shared memory for people: a table of the layers, the banks by layer, and a layer's nest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import cycle, islice

from instances.errors import InputError
from instances.stores import stores
from solver.joint.check import runs_in
from solver.joint.plan import JointLayer, JointPlan
from solver.network_show import microseconds, status_parts
from solver.tiling.show import pseudo_code, workload_text

__all__ = ["joint_rows", "joint_status", "show_joint"]

_HEADS = ("layer", "moves (bytes)", "IN", "W", "OUT", "PSUM", "time (us)", "on chip (rows)", "banks for tiles", "tile")
#: Letters of a row of banks: maps by turns, then tiles, then free.
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def joint_status(plan: JointPlan) -> str:
    """Return one line that says what is known: status, value, bound, gap, what is left to win, and replay."""
    parts = status_parts(plan)
    if plan.measures is None:
        return "; ".join(parts)
    parts.append(f"{microseconds(plan, plan.measures.time)} us one layer after the other")
    parts.append("replay agrees" if plan.replay.ok else "replay does not agree")
    return "; ".join(parts)


def joint_rows(plan: JointPlan) -> tuple[Sequence[str], list[list[str]]]:
    """Return heads and rows of the table of layers."""
    rows = []
    for row in plan.layers:
        moved = [f"{row.counts.by_operand[op].bytes:,}" for op in ("IN", "W", "OUT", "PSUM")]
        held = ", ".join(f"{one.map} {one.rows}" for one in row.on_chip)
        sizes = " ".join(f"{k[2:]} {v}" for k, v in row.schedule.decision.items() if k.startswith("T_"))
        rows.append(
            [
                row.layer,
                f"{row.counts.bytes:,}",
                *moved,
                microseconds(plan, row.measures.time),
                held,
                str(len(row.banks)),
                sizes,
            ]
        )
    return _HEADS, rows


def show_joint(plan: JointPlan, layer: str | None = None) -> str:
    """Return the banks layer by layer, or one layer with its nest.

    Raises
    ------
    InputError
        If the plan has no such layer.
    """
    names = [row.layer for row in plan.layers]
    if layer is not None and layer not in names:
        raise InputError(f"plan of {plan.network} has no layer {layer!r}; it has {', '.join(names)}")
    if layer is not None:
        return "\n".join(_layer(plan, names.index(layer)))
    return "\n".join([joint_status(plan), "", *_banks(plan)])


def _banks(plan: JointPlan) -> list[str]:
    """One line a layer: a letter for every bank, and what the letters stand for."""
    width = max((len(row.layer) for row in plan.layers), default=0)
    letters: dict[str, str] = {}
    turns = cycle(_LETTERS)
    lines = ["a letter is a map that is on chip, # a tile, . a free bank", ""]
    for row in plan.layers:
        there = {one.map for one in row.on_chip}
        letters = {name: letter for name, letter in letters.items() if name in there}
        for name in (one.map for one in row.on_chip if one.map not in letters):
            letters[name] = next((x for x in islice(turns, len(_LETTERS)) if x not in letters.values()), "?")
        said = ", ".join(f"{letters[one.map]} {one.map} ({one.rows} rows)" for one in row.on_chip)
        lines.append(f"{row.layer:<{width}}  {_line(row, letters, plan.machine_data.ocm_banks)}  {said}".rstrip())
    return lines


def _line(row: JointLayer, letters: dict[str, str], number: int) -> str:
    owner = {bank: letters[one.map] for one in row.on_chip for bank in one.banks} | dict.fromkeys(row.banks, "#")
    return "".join(owner.get(bank, ".") for bank in range(number))


def _layer(plan: JointPlan, at: int) -> Iterable[str]:
    found, row, machine = stores(plan.network_data), plan.layers[at], plan.machine_data
    runs = runs_in(plan, found)
    if isinstance(runs, str):
        raise InputError(f"plan of {plan.network}: {runs}")
    layer = found.layer(at, runs[at].rows, runs[at].unwritten)
    yield f"{row.layer}: {workload_text(layer)}, on {plan.machine}"
    yield f"{row.counts.bytes:,} bytes move, {microseconds(plan, row.measures.time)} us"
    for one in row.on_chip:
        part = " and ".join(
            [f"input {k + 1}" for k, name in enumerate(row.reads) if name == one.map]
            + ["the result"] * (row.writes == one.map)
        )
        yield f"{one.rows} rows of {one.map} ({part or 'for other layers'}) lie in banks {_ranges(one.banks)}"
    if row.unwritten:
        yield f"the first {row.unwritten} rows of the result are never written to DRAM"
    yield f"tiles take {row.occupancy_bytes:,} bytes in banks {_ranges(row.banks)}"
    if len(set(layer.residents)) > 1:
        rows = ", ".join(map(str, layer.residents))
        yield f"inputs have {rows} rows on chip; loads name the rows of the one with the fewest"
    yield ""
    yield pseudo_code(layer, machine, runs[at].nest)


def _ranges(banks: Sequence[int]) -> str:
    """Numbers as ranges: 0-3, 7."""
    parts: list[list[int]] = []
    for bank in sorted(banks):
        if parts and bank == parts[-1][-1] + 1:
            parts[-1].append(bank)
        else:
            parts.append([bank])
    return ", ".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts)
