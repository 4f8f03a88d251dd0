"""Layers and decisions in words: what tables, plans and pseudo-code call them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from instances.network.workload import Layer
from solver.show.tables import ABSENT, Column

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
