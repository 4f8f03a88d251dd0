"""A plan of a mesh for people: a table of layers, and one layer's loops, units, PEs and banks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from hwmodels.outcome import UNITS
from instances.errors import InputError
from instances.ndrange import ndrange
from instances.workload import DIMS, Layer
from solver.mesh.plan import MeshLayer, MeshPlan
from solver.plan import Dim
from solver.report import ratio
from solver.verify import gap_of

__all__ = ["mesh_rows", "mesh_status", "show_mesh"]

_HEADS = ("layer", "tile", "sides", "PEs", "keep", "dram/kMAC", "glb/kMAC", "GMAC/s", "gap", "")


def mesh_rows(plan: MeshPlan) -> tuple[Sequence[str], list[list[str]]]:
    """Return heads and rows of the table of layers."""
    return _HEADS, [[*_row(plan, part), ""] for part in plan.layers]


def _row(plan: MeshPlan, part: MeshLayer) -> list[str]:
    macs, cost = part.workload.macs, part.measures
    sides = f"{part.rows or '-'} x {part.cols or '-'}"
    speed = macs / (cost.time * plan.machine_data.tick_ps / 1e3)
    return [
        part.layer, _sizes(part, "tile"), sides, _sizes(part, "vector") or "-", part.keep,
        f"{1000 * cost.dram / macs:.1f}", f"{1000 * cost.glb / macs:.1f}", f"{speed:.1f}",
        ", ".join(_gap(getattr(cost, aim), part.bounds.get(aim)) for aim in plan.objectives),
    ]  # fmt: skip


def _gap(value: int, bound: int | None) -> str:
    gap = gap_of(value, bound)
    return "no bound" if gap is None else f"{100 * gap:.3g} %"


def _sizes(part: MeshLayer, what: str) -> str:
    """Sizes that say something: of indices with more than one element."""
    found: dict[Dim, int] = getattr(part, what)
    return " ".join(f"{d}{found[d]}" for d in get_args(Dim) if part.workload.extent(d) > 1 and found.get(d, 1) > 1)


def mesh_status(plan: MeshPlan) -> str:
    """Return one line that says what is known: status, value, bound, gap, bytes, and simulation."""
    parts = [f"{plan.network} on {plan.machine} (mesh, {plan.engine}): {plan.status}"]
    if plan.objective is None or plan.measures is None:
        note = plan.stats.get("note")
        return "; ".join([*parts, *plan.conflicts, *([str(note)] if note else [])])
    must = sum(part.compulsory_bytes for part in plan.layers)
    parts += [
        *(_aim(aim, getattr(plan.measures, aim), plan.bounds.get(aim)) for aim in plan.objectives),
        f"DRAM {plan.measures.dram:,} bytes, {ratio(plan.measures.dram, must)} times what must ({must:,}), "
        f"global buffer {plan.measures.glb:,} bytes, {plan.measures.time:,} cycles",
        "simulation agrees" if all(part.replay.ok for part in plan.layers) else "simulation does not agree",
    ]
    return "; ".join(parts)


def _aim(aim: str, value: int, bound: int | None) -> str:
    """An objective with what is proven of it."""
    said = "no bound" if bound is None else f"bound {bound:,}, gap {_gap(value, bound)}"
    return f"{aim} {value:,} {UNITS[aim]}, {said}"


def show_mesh(plan: MeshPlan, layer: str | None = None) -> str:
    """Return the loops, units, PEs and banks of every layer, or of one.

    Raises
    ------
    InputError
        If the plan has no such layer.
    """
    found = [part for part in plan.layers if layer in (None, part.layer)]
    if not found and layer is not None:
        raise InputError(f"plan has no layer {layer!r}: it has {', '.join(p.layer for p in plan.layers) or 'none'}")
    return "\n\n".join("\n".join(_lines(plan, part)) for part in found) or mesh_status(plan)


def _lines(plan: MeshPlan, part: MeshLayer) -> list[str]:
    layer, cost, machine = part.workload, part.measures, plan.machine_data
    lines = [
        f"{part.layer} on {plan.machine}: {part.status}, dram {cost.dram:,} glb {cost.glb:,} bytes, "
        f"{cost.time:,} cycles ({cost.cycles:,} of the PEs)"
    ]
    summed = ("n",) if layer.kind == "correlation" else ("n", "i", "j")
    indent = "  "
    for d in _order(layer, part):
        lines.append(_loop(layer, part, d, indent))
        indent += "  " if lines[-1] else ""
    lines = [line for line in lines if line]
    if part.banks is not None:
        lines.append(f"{indent}# each unit: partial sums of its tile stay here")
    for d in summed:
        text = _loop(layer, part, d, indent)
        if text:
            lines.append(text)
            indent += "  "
    needed = {operand.name: operand for operand in ndrange(layer).inputs}
    kept = dict.fromkeys((part.keep,), "stays while it is the same")
    for op in ("IN", "W"):
        how = kept.get(op) or "from the global buffer"
        along = [side for side, d in (("rows", part.rows), ("columns", part.cols)) if d and not needed[op].depends(d)]
        if op not in kept and along and part.share in ("both", op):
            how += f", once for all units along {' and '.join(along)}, which pass it on through FIFOs"
        if machine.mesh is not None and machine.mesh.kind != "teu":
            how = kept.get(op) or "from DRAM into the global buffer"
        lines.append(f"{indent}load {op}: {how}")
    if part.banks is None:
        more = (
            f", {part.filters} filters x {part.channels} channels in a PE" if part.channels * part.filters > 1 else ""
        )
        lines.append(f"{indent}run the array on the tile{more}")
        return lines
    lines.append(
        f"{indent}32 PEs at a time: {_sizes(part, 'vector') or 'one'}; PE bits 0..: {' '.join(part.banks.bits)}"
    )
    for one in part.banks.operands:
        axes = ", ".join(f"axis {a.axis}: {a.extent} at pitch {a.pitch}" for a in one.axes if a.extent > 1) or "a word"
        lines.append(f"{indent}banks {one.operand}: {axes}; {one.words} words, {one.padding} of them padding")
    return lines


def _order(layer: Layer, part: MeshLayer) -> list[str]:
    parallel = [d for d in DIMS if d not in (("n",) if layer.kind == "correlation" else ("n", "i", "j"))]
    first = {"IN": "bgrcij", "W": "bnrc" if layer.kind == "correlation" else "gm"}.get(part.keep, "".join(parallel))
    return [d for d in parallel if d in first] + [d for d in parallel if d not in first]


def _loop(layer: Layer, part: MeshLayer, d: str, indent: str) -> str:
    tile, size = {str(k): v for k, v in part.tile.items()}[d], layer.extent(d)
    if tile >= size:
        return ""
    sides = [name for name, index in (("rows", part.rows), ("columns", part.cols)) if index == d]
    where = f"  # tiles side by side along {' and '.join(sides)}" if sides else ""
    return f"{indent}for {d} in 0..{size} step {tile}:{where}"
