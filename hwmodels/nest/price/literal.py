"""The source papers' printed equations, as bilinear tables: `reading = "literal"`.

The equations are the papers' estimates, not what a machine executes; `reading = "consistent"`
(`hwmodels.nest.price.tables`) is the default.

TSO (`tso_burst_slicing`), for machines with clusters
    Loads and stores alpha by Eq. 3 (IS), 4 (OS), 5 (WS) as printed: Eq. 3 has no filter trips in alpha_out; all alphas
    but alpha_out count #TLEs; T_DRAM adds up (Eq. 9); T_MAC divides by #TLTs only (Eq. 8). Every tile counts at its
    nominal size. IS holds all filters of a core, so T_M = ceil(TLE_W/#TLT) there; WS holds all N channels.
DMA paper (`optimal_tiling_dma`), for single-core machines
    T_in, T_out, T_wb by Eq. 2-4 and D_in, D_wb = D_out by Eq. 5-6: input tiles are sigma_s = T_R*S by sigma_t = T_C*S
    without halo, runs never merge, outputs move both ways at every innermost step; the OCM constraint of section 4.2.

Dimensions that the papers do not have (batch, groups) multiply every count. Each input of an element-wise layer is
moved as often as the paper's one input, in tiles of its own: of one that is broadcast smaller ones.
"""

from __future__ import annotations

import numpy as np

from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.boxes import box_terms, input_windows
from hwmodels.nest.price.choices import AXIS, Choices, Term
from hwmodels.nest.price.core import CoreTables
from hwmodels.nest.price.pieces import trips
from hwmodels.nest.price.skeleton import Core, Skeleton
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import Layer

Rows = dict[str, dict[str, list[Term]]]


def _tiles(choices: Choices) -> dict[str, Ints]:
    """Tile sizes of the dimensions that the papers cut."""
    return {d: t for d, t in choices.tiles.items() if AXIS[d] == d}


def tso_dataflow(skeleton: Skeleton) -> str:
    """Name the dataflow of a slicing skeleton: IS has no filter loop, WS has it outermost, else OS."""
    filters = _filter_dim(skeleton)
    if filters not in skeleton.order:
        return "IS"
    inside = skeleton.order[skeleton.order.index(filters) + 1 :]
    return "WS" if "r" in inside else "OS"


def _filter_dim(skeleton: Skeleton) -> str:
    """The dimension that the cores of a cluster share out."""
    return next(i.dim for i in skeleton.spatial if i.over == "tlt")


def tso_rows(layer: Layer, machine: Machine, skeleton: Skeleton, core: Core, choices: Choices) -> Rows:
    """Counts by Eq. 3-5: alpha times the counts of one nominal tile."""
    filters, dataflow = _filter_dim(skeleton), tso_dataflow(skeleton)
    slice_of = {d: _tle_slice(layer, skeleton, d) for d in ("g", "m", "r")}
    step = _tiles(choices)
    inner = {d: trips(layer.extent(d), step[d]) for d in ("b", "g", "m", "n", "c")}
    rows = trips(slice_of["r"], step["r"])
    tle_filters = trips(slice_of[filters], step[filters])
    other = "g" if filters == "m" else "m"
    base = {"b": inner["b"], "c": inner["c"], other: inner[other]}
    loads = {**base, "r": rows, "n": inner["n"]}
    alpha_in = {**loads, **({} if dataflow == "IS" else {filters: tle_filters})}
    alpha_w = {filters: tle_filters, other: inner[other]} if dataflow == "WS" else alpha_in
    alpha_out = {**base, "r": trips(layer.r, step["r"])}
    if dataflow != "IS":
        alpha_out[filters] = inner[filters]
    result: Rows = {}
    for op, alpha, factor in (("IN", alpha_in, machine.tles), ("W", alpha_w, machine.tles), ("OUT", alpha_out, 1)):
        if op == "W" and op not in layer.operands:
            continue
        tile = {
            d: np.full_like(s, layer.n) if op == "W" and dataflow == "WS" and d == "n" else s for d, s in step.items()
        }
        if dataflow == "IS":
            tile[filters] = np.full_like(step[filters], core.extent(filters))
        visits = choices.spread(alpha)
        for lacks in layer.patterns if op == "IN" else ("",):
            for kind, terms in box_terms(layer, machine, op, tile, choices, lacks).items():
                moved = [(x * visits[0] * factor, y * visits[1]) for x, y in terms]
                result.setdefault(op, {}).setdefault(kind, []).extend(moved)
    return result


def _tle_slice(layer: Layer, skeleton: Skeleton, dim: str) -> int:
    return next((i.step for i in skeleton.spatial if i.over == "tle" and i.dim == dim), layer.extent(dim))


def tso_compute(layer: Layer, machine: Machine, skeleton: Skeleton, core: Core, choices: Choices) -> list[Term]:
    """T_MAC in ticks by Eq. 7 and 8, with the printed divisor #TLTs.

    Raises InputError if a cycle is not a whole number of ticks per core.
    """
    unit = machine.compute
    if unit.model == "none":
        return []
    if unit.cycle_ticks % machine.tlts:
        raise InputError(
            f"machine {machine.name}: compute.cycle_ticks {unit.cycle_ticks} must be a multiple of tlts {machine.tlts} "
            "in the literal reading (Eq. 8 divides by #TLTs); choose a smaller tick_ps"
        )
    filters = _filter_dim(skeleton)
    step = _tiles(choices)
    if tso_dataflow(skeleton) == "IS":
        step[filters] = np.full_like(step[filters], core.extent(filters))
    whole = {d: trips(layer.extent(d), step[d]) * (1 if d in ("r", "c") else step[d]) for d in step}
    a, b = choices.spread(whole)
    tile_map = step["r"][choices.index["r"]] * step["c"][choices.index["c"]]
    cycles = -(-tile_map * layer.kh * layer.kw // unit.macs_per_cycle)
    return [(a * layer.inputs * cycles * (unit.cycle_ticks // machine.tlts), b)]


# ---- DMA paper -----------------------------------------------------------------------------------------------


def _sigma(layer: Layer, choices: Choices) -> dict[str, Ints]:
    """Input tile rows and columns: T*S without halo, at most the map."""
    win = input_windows(layer)
    return {d: np.minimum(choices.tiles[d] * win[d].stride, win[d].size) for d in ("r", "c")}


def dma_rows(layer: Layer, machine: Machine, choices: Choices) -> Rows:
    """Counts by Eq. 2-6; OUT holds both directions."""
    step, sigma = _tiles(choices), _sigma(layer, choices)
    count = {d: trips(layer.extent(d), step[d]) for d in step}
    calls_in = {d: count[d] for d in ("b", "g", "r", "c", "n")}
    bias = bool(layer.bias and machine.bias_bytes)

    def terms(calls: dict[str, Ints], size: dict[str, Ints], factor: int) -> list[Term]:
        one = {d: np.ones_like(s) for d, s in step.items()}
        a, b = choices.spread({d: calls.get(d, one[d]) * size.get(d, one[d]) for d in {*calls, *size}})
        return [(a * factor, b)]

    boxes = {d: step[d] for d in ("b", "g")}
    runs_in = {**boxes, "r": sigma["r"], "n": step["n"]}
    tile_in = {**runs_in, "c": sigma["c"]}

    def each(size: dict[str, Ints], factor: int) -> list[Term]:
        """Of all inputs, every one along its own dimensions."""
        own = ({d: s for d, s in size.items() if d not in lacks} for lacks in layer.patterns)
        return [term for mine in own for term in terms(calls_in, mine, factor)]

    runs_out = {**boxes, "r": step["r"], "m": step["m"]}
    rows: Rows = {
        "IN": {
            "calls": terms(calls_in, {}, layer.inputs),
            "segments": each(runs_in, 1),
            "bytes": each(tile_in, machine.in_bytes),
        },
        "OUT": {
            "calls": terms(count, {}, 2),
            "segments": terms(count, runs_out, 2),
            "bytes": terms(count, {**runs_out, "c": step["c"]}, 2 * machine.out_bytes),
        },
    }
    if "W" in layer.operands:
        filters, kernels = {"g": step["g"], "m": step["m"]}, {d: step[d] for d in ("g", "m", "n")}
        taps = layer.kh * layer.kw * machine.w_bytes
        rows["W"] = {
            "calls": terms(count, {}, 1),
            "segments": terms(count, filters, 1) + (terms(count, {}, 1) if bias else []),
            "bytes": terms(count, kernels, taps) + (terms(count, filters, machine.bias_bytes) if bias else []),
        }
    return rows


def dma_footprints(layer: Layer, machine: Machine, choices: Choices) -> dict[str, list[Term]]:
    """The four summands of the OCM constraint of section 4.2, in bytes."""
    step, sigma = _tiles(choices), _sigma(layer, choices)

    def term(factors: dict[str, Ints], factor: int) -> Term:
        a, b = choices.spread(factors)
        return a * factor, b

    tile_in = {"b": step["b"], "g": step["g"], "n": step["n"], **sigma}
    result = {
        "IN": [
            term({d: s for d, s in tile_in.items() if d not in lacks}, machine.in_bytes) for lacks in layer.patterns
        ],
        "OUT": [term({d: step[d] for d in ("b", "g", "m", "r", "c")}, machine.out_bytes)],
    }
    if "W" in layer.operands:
        result["W"] = [term({d: step[d] for d in ("g", "m", "n")}, layer.kh * layer.kw * machine.w_bytes)]
        if layer.bias and machine.bias_bytes:
            result["W"].append(term({"g": step["g"], "m": step["m"]}, machine.bias_bytes))
    return result


def dma_compute(tables: CoreTables) -> list[Term]:
    """Compute ticks of the consistent model (the paper models transfers only)."""
    return [(a * tables.machine.compute.cycle_ticks, b) for a, b in tables.compute_cycles()]
