"""Layers, decisions and plans in words: what tables, status lines and pseudo-code call them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from instances.network.workload import Layer
from solver.plan.plan import Plan
from solver.show.tables import ABSENT, Column, percent, ratio

#: Names that an exporter made: 321, n12, node_conv2d_12, Conv_12.
_MADE = re.compile(r"\W*(n?\d*|node_\w+|[A-Za-z]+(2d|2D)?_\d+)")
_SIZES = {
    "B": "batch", "G": "groups", "M": "output channels", "N": "input channels", "R": "rows", "C": "columns",
    "I": "kernel rows", "J": "kernel columns",
}  # fmt: skip
_MEANS = {
    "partition": "what clusters share out, KS output channels, OFM rows of the result",
    "loop order": "outermost first, letters are loops, from IN, W, OUT inwards a tile of inputs, weights, results "
    "stays on chip",
    "buffers": "operands that have two, or lie in lines",
    "off chip": "the memory where an operand lies",
}


# ---- layers -------------------------------------------------------------------------------------------------------


def label(name: str, layer: Layer | None) -> str:
    """Return the name of a layer, and its kind and shape beside a name that says nothing: ``321 conv 3x3 ...``."""
    if layer is None or not _MADE.fullmatch(name):
        return name
    return f"{name} {_short(layer)}".lstrip()


def labels(names: Sequence[str], layers: Sequence[Layer]) -> list[str]:
    """Return the label of every name, of layers or of other parts of a network."""
    known = {layer.name: layer for layer in layers}
    return [label(name, known.get(name)) for name in names]


def _short(layer: Layer) -> str:
    """Kind, kernel, channels and the size of the result: ``conv 3x3 64>128 56x56``."""
    inputs, outputs = layer.g * layer.n, layer.g * layer.m
    parts: list[str] = [layer.kind]
    if layer.kind == "conv" or layer.kh * layer.kw > 1:
        parts.append(f"{layer.kh}x{layer.kw}")
    parts.append(f"{inputs}>{outputs}" if layer.kind in ("conv", "matmul") else f"{outputs}")
    parts.append(f"{layer.r} rows" if layer.kind == "matmul" else f"{layer.r}x{layer.c}")
    return " ".join(parts + [f"{layer.g} groups"] * (layer.g > 1 and layer.kind == "conv"))


def workload_text(layer: Layer) -> str:
    """Return all that there is to say of a layer."""
    if layer.kind == "matmul":
        return f"matmul {layer.r}x{layer.n} by {layer.n}x{layer.m}" + (f", {layer.b * layer.g} times" * (layer.g > 1))
    shape = f"{layer.h}x{layer.l}x{layer.g * layer.n} -> {layer.r}x{layer.c}x{layer.g * layer.m}"
    parts = [f"{layer.kind} {shape}"]
    if layer.kh * layer.kw > 1:
        parts.append(f"kernel {layer.kh}x{layer.kw}")
    if (layer.stride_h, layer.stride_w) != (1, 1):
        parts.append(f"stride {layer.stride_h}x{layer.stride_w}")
    if (layer.dilation_h, layer.dilation_w) != (1, 1):
        parts.append(f"dilation {layer.dilation_h}x{layer.dilation_w}")
    below = (layer.r - 1) * layer.stride_h + (layer.kh - 1) * layer.dilation_h + 1 - layer.pad_top - layer.h
    right = (layer.c - 1) * layer.stride_w + (layer.kw - 1) * layer.dilation_w + 1 - layer.pad_left - layer.l
    if max(layer.pad_top, layer.pad_left, below, right) > 0:
        sides = f"{layer.pad_top} above, {max(below, 0)} below, {layer.pad_left} left, {max(right, 0)} right"
        parts.append(f"padding {sides}")
    parts += [f"{layer.g} groups"] * (layer.g > 1) + [f"batch {layer.b}"] * (layer.b > 1)
    return ", ".join(parts)


# ---- decisions of a nest --------------------------------------------------------------------------------------------

Decision = Mapping[str, int | str]


def decision_text(decision: Decision) -> str:
    """Return decisions in one line: ``KS; W | r | OUT | n | IN; M=4 N=1``."""
    return "; ".join(_words(decision).values())


def decision_columns(decisions: Sequence[Decision | None]) -> list[Column]:
    """Return the columns of a table for the nests of its rows; None is a row without one."""
    rows = [_words(decision or {}) for decision in decisions]
    heads = sorted({head for row in rows for head in row}, key=list(_words(_ALL)).index)
    sizes = {size[0] for row in rows for size in row.get("tile", "").split()}
    tile = ", ".join(f"{d} {what}" for d, what in _SIZES.items() if d in sizes)
    if any("<=" in row.get("tile", "") for row in rows):
        tile += ", <= pieces of free sizes up to this"
    means = {**_MEANS, "tile": tile}
    return [Column(head, [row.get(head, ABSENT) for row in rows], means.get(head, ""), words=True) for head in heads]


#: Every decision, in the order of the columns.
_ALL: Decision = {"partition": "", "dataflow": "", "loops": "IN", "T_M": 1, "held": "lines", "home_IN": "flash"}


def _words(decision: Decision) -> dict[str, str]:
    """Head of a column -> what was decided. Of tiles of free sizes the largest is named: ``R<=5``."""
    found = {name: str(decision[name]) for name in ("partition", "dataflow") if name in decision}
    if "loops" in decision:
        # Letters of loops that follow each other stay together: W | r c | OUT
        found["loop order"] = re.sub(r" (?=[A-Z])|(?<=[A-Z]) ", " | ", str(decision["loops"]))
    sizes = {name.removeprefix("T_"): size for name, size in decision.items() if name.startswith("T_")}
    if sizes:
        found["tile"] = " ".join(f"{d}{'<=' if f'cuts_{d}' in decision else '='}{n}" for d, n in sizes.items())
    double = [name.removeprefix("buffers_") for name, n in decision.items() if name.startswith("buffers_") and n == 2]
    held = [f"two for {', '.join(double)}"] * bool(double) + [str(decision[k]) for k in ("held",) if k in decision]
    if held:
        found["buffers"] = ", ".join(held)
    homes = [f"{name.removeprefix('home_')} in {n}" for name, n in decision.items() if name.startswith("home_")]
    if homes:
        found["off chip"] = ", ".join(homes)
    return found


# ---- plans ----------------------------------------------------------------------------------------------------------

#: Of every measure its unit, what is left out first where there is no room, and what the legend says.
_MEASURES = {"time": (" (us)", 2, ""), "bytes": ("", 1, "to and from off-chip memory"), "energy": (" (uJ)", 3, "")}


def microseconds(plan: Plan, ticks: int) -> str:
    """Ticks of the plan's machine in microseconds."""
    return f"{ticks * plan.machine_data.tick_ps / 1e6:,.1f}"


def measure_columns(
    plan: Plan, rows: Sequence[Mapping[str, int] | None], total: Mapping[str, int] | None
) -> list[Column]:  # fmt: skip
    """Return time, bytes and energy of the rows and their sums, the objective first; None of rows without a plan."""
    first = plan.objectives[0]

    def shown(name: str, row: Mapping[str, int] | None) -> str:
        if not row:
            return ABSENT
        value = row[name]
        if name == "time":
            return microseconds(plan, value)
        return f"{value:,}" if name == "bytes" else f"{value / 1e9:,.1f}"

    columns = []
    for name in dict.fromkeys((first, "bytes", "time", "energy")):
        unit, spare, means = _MEASURES[name]
        cells = [shown(name, row) for row in rows]
        columns.append(Column(name + unit, cells, means, shown(name, total), spare=0 if name == first else spare))
    return columns


def known_parts(plan: Plan) -> list[str]:
    """Status, value, bound and gap; why there is no plan if there is none."""
    parts = [f"{plan.network} on {plan.machine} ({plan.problem}, {plan.engine}): {plan.status}"]
    bound = "no bound" if plan.bound is None else f"bound {plan.bound:,}"
    if plan.objective is None:
        note = [str(plan.stats["note"])] if "note" in plan.stats and not plan.conflicts else []
        return [*parts, *([] if plan.bound is None else [bound]), *plan.conflicts, *note]
    gap = "no gap" if plan.gap is None else f"gap {percent(plan.gap)} %"
    said = plan.stats.get("proven")
    part = (
        [] if said is None or plan.status == "OPTIMAL" else [f"proven of {','.join(plan.objectives)}: {said or 'none'}"]
    )
    return [*parts, f"{plan.objectives[0]} {plan.objective.value:,} {plan.objective.unit}, {bound}, {gap}", *part]


def bytes_moved(plan: Plan) -> str:
    """Return what a plan of one part moves, beside what must."""
    moved, must = plan.part.measures["bytes"], plan.part.must["bytes"]
    return f"{moved:,} bytes move, {ratio(moved, must)} times what must ({must:,})"


def agreement(plan: Plan, what: str = "replay") -> str:
    """Return whether the replay of every part agrees with its price."""
    return f"{what} agrees" if all(row.replay and row.replay.ok for row in plan.parts) else f"{what} does not agree"


def ratios(plan: Plan, others: Mapping[str, Plan]) -> str:
    """Return one line that compares other engines."""
    parts = []
    for name, other in others.items():
        if other.objective is None or plan.objective is None:
            parts.append(f"{name} has no plan")
        else:
            parts.append(f"{name} {ratio(other.objective.value, plan.objective.value)}")
    return f"{plan.objectives[0]} of others over {plan.engine}: {', '.join(parts)}"
