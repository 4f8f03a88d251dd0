"""The closed-form price of a layer's nest on memories in levels.

For a Stay of operand X in memory L, count by the rules of docs/nest.md, with the loops outside it down to the innermost
real one that X depends on; n_d are the pieces that these loops make of dimension d:

    W     |W| * n_b * n_r * n_c, and biases of all filters as often, for every piece of n, i and j
    IN    |b| |g| |n| * n_m * (rows of all windows) * (columns of all windows); where IN slides along rows (columns),
          a pass of that loop takes the rows of the window of all its outputs
    OUT   v = n_n * n_i * n_j visits of a tile: |OUT| * (out_bytes + 2 * (v - 1) * psum_bytes)

all in bytes between L and its source, the nearest memory beyond in which X stays (or the first memory). A tile takes
the bytes of its largest piece in L; OUT those of partial sums if a reduction is cut outside the next nearer Stay of
OUT, or anywhere for the nearest one.

    bytes@M   all bytes between memory M and nearer ones; `bytes` is bytes@ the first memory [bytes]
    energy    sum of bytes@M * byte_fj of M, and mac_fj for every product [fJ]
    time      queues "serial": one transfer or tile of compute after the other: sum of calls * call_ticks + bytes *
              byte_ticks of the source, and cycles of the MAC array over the innermost tiles; else
              `hwmodels.levels.pipeline` [ticks]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from hwmodels.levels.pipeline import overlapped
from hwmodels.levels.schedule import Cut, LevelNest, Stay, real, source
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.pieces import Pieces, Window, cut, windows
from hwmodels.outcome import Natural
from instances.errors import InputError
from instances.machine.levels import Levels
from instances.machine.machine import Machine
from instances.network.workload import DIMS, REDUCTION, RELEVANT, Layer

#: Settings of machines with which nests of levels would cost something else, or hold more.
_UNCOUNTED = (
    "ocm_bytes", "reserved_bytes", "buffering", "line", "snake", "tles", "tlts", "layer_ticks", "edge_tiles",
    "psum_first_read", "im2col_rows", "byte_fj", "overlap", "reading",
)  # fmt: skip


@dataclass(frozen=True)
class Moved:
    """What moves for one Stay, and what its tile takes."""

    operand: str
    memory: str
    source: str
    calls: Natural
    bytes: Natural
    tile_bytes: Natural


@dataclass(frozen=True)
class Cost:
    """What a nest costs."""

    moved: tuple[Moved, ...]
    measures: dict[str, int]
    compute_ticks: int
    occupancy_bytes: dict[str, int]


def levels_of(layer: Layer, machine: Machine) -> Levels:
    """The memories of a machine that can run a layer; raises InputError for what is not priced."""
    if machine.levels is None:
        raise InputError(f"machine {machine.name}: problem levels needs section levels")
    if machine.compute.model == "tile":
        raise InputError(
            f"machine {machine.name}: compute.model 'tile' is not counted in levels: 'array' or 'none' are"
        )
    fields, given = type(machine).model_fields, vars(machine)  # they are looked for, and not read
    for name in _UNCOUNTED:
        value = given[name]
        if value not in (fields[name].default, "serial"):
            raise InputError(f"machine {machine.name}: {name} {value} is not counted in levels: leave it out")
    if layer.kind == "correlation" or layer.broadcast or any(layer.resident_in) or layer.resident_out:
        what = "a correlation" if layer.kind == "correlation" else "rows on chip" if not layer.broadcast else ""
        said = f"has {what}" if what else "reads inputs that are broadcast"
        raise InputError(f"layer {layer.name} {said}: problem levels plans layers without")
    return machine.levels


def window_of(layer: Layer, axis: str) -> Window:
    """The window along rows ("r") or columns ("c")."""
    if axis == "r":
        return Window(layer.stride_h, layer.dilation_h, layer.kh, layer.pad_top, layer.h)
    return Window(layer.stride_w, layer.dilation_w, layer.kw, layer.pad_left, layer.l)


_WHOLE = np.zeros((1, 0), np.int64)


def windowed(layer: Layer, axis: str, steps: Ints, slide: str = "") -> Pieces:
    """What chains of steps (T, v) of the outputs fetch along an axis; `slide`: "outer" if IN slides along it."""
    return windows(0, layer.extent(axis), steps, _WHOLE, window_of(layer, axis), slide)


def price(layer: Layer, machine: Machine, nest: LevelNest) -> Cost:
    """Return what a nest costs; raises InputError if it is malformed, or not to be priced."""
    levels = levels_of(layer, machine)
    nest.validate_for(layer, levels)
    cuts = real(layer, nest.items)
    moved = [_moved(layer, machine, levels, nest, k, stay, cuts) for k, stay in nest.stays()]
    taken = {one.name: one.reserved_bytes for one in levels.memories[1:]}
    for one in moved:
        taken[one.memory] += one.tile_bytes * levels.memory(one.memory).buffers
    computed = compute_cycles(layer, machine, _arrays(nest.steps())) * machine.compute.cycle_ticks
    across = {one.name: sum(m.bytes for m in moved if m.source == one.name) for one in levels.memories[:-1]}
    at = {one.name: one for one in levels.memories}
    moving = sum(m.calls * at[m.source].call_ticks + m.bytes * at[m.source].byte_ticks for m in moved)
    measures = {
        "time": computed + moving if levels.queues == "serial" else overlapped(layer, machine, nest),
        "bytes": across[levels.memories[0].name],
        "energy": layer.macs * machine.mac_fj + sum(m.bytes * at[m.source].byte_fj for m in moved),
        **{f"bytes@{name}": total for name, total in across.items()},
    }
    return Cost(tuple(moved), measures, computed, taken)


def compute_cycles(layer: Layer, machine: Machine, chains: Mapping[str, Ints]) -> int:
    """Cycles of the MAC array over the innermost tiles, as in `hwmodels.nest.price.core` ("array"); or as measured."""
    unit = machine.compute
    if unit.model == "none":
        return layer.cycles
    lanes = lanes_of(layer, machine)
    found = [cut(layer.extent(d), chains[d]).ceil_sum(lanes[d])[0] if d in lanes else layer.extent(d) for d in DIMS]
    return prod(map(int, found)) * layer.inputs


def lanes_of(layer: Layer, machine: Machine) -> dict[str, int]:
    """The dimensions that lanes of the MAC array run over, and how many there are."""
    unit = machine.compute
    if unit.model != "array":
        return {}
    return {"g": unit.cols} if layer.m == layer.n == 1 else {"m": unit.rows, "n": unit.cols}


def _arrays(steps: Mapping[str, Sequence[int]]) -> dict[str, Ints]:
    return {d: np.array([row], np.int64).reshape(1, -1) for d, row in steps.items()}


def _moved(
    layer: Layer, machine: Machine, levels: Levels, nest: LevelNest, at: int, stay: Stay, cuts: Sequence[bool]
) -> Moved:
    """Count one Stay."""
    operand = stay.operand
    fetching = [k for k in range(at) if cuts[k] and _dim(nest, k) in RELEVANT[operand]]
    chains = _arrays(nest.steps(fetching[-1] + 1 if fetching else 0))
    outside = _arrays(nest.steps(at))
    pieces = {d: cut(layer.extent(d), chains[d]) for d in DIMS}
    count = {d: int(pieces[d].number[0]) for d in DIMS}
    largest = {d: int(cut(layer.extent(d), outside[d]).largest[0]) for d in DIMS}
    calls = prod(count.values())
    if operand == "W":
        bias = machine.bias_bytes if layer.bias else 0
        again = count["b"] * count["r"] * count["c"]
        total = layer.weight_elements * machine.w_bytes * again
        total += layer.g * layer.m * bias * again * prod(count[d] for d in REDUCTION)
        tile = prod(largest[d] for d in "gmnij") * machine.w_bytes + largest["g"] * largest["m"] * bias
    elif operand == "OUT":
        visits, results = prod(count[d] for d in REDUCTION), layer.b * layer.g * layer.m * layer.r * layer.c
        total = results * (machine.out_bytes + 2 * (visits - 1) * machine.psum_bytes)
        calls *= 2
        calls -= count["b"] * count["g"] * count["m"] * count["r"] * count["c"]
        tile = prod(largest[d] for d in "bgmrc") * _result_bytes(layer, machine, nest, at)
    else:
        along = _dim(nest, fetching[-1]) if fetching and machine.sliding else ""
        fetched = {a: windowed(layer, a, chains[a], "outer" if a == along else "") for a in "rc"}
        held = {a: windowed(layer, a, outside[a]) for a in "rc"}
        each = layer.b * layer.g * layer.n * layer.inputs * machine.in_bytes
        total = each * count["m"] * int(fetched["r"].sum[0]) * int(fetched["c"].sum[0])
        calls = prod(count[d] for d in "bgmn") * layer.inputs
        calls *= int(fetched["r"].number[0]) * int(fetched["c"].number[0])
        tile = prod(largest[d] for d in "bgn") * int(held["r"].largest[0]) * int(held["c"].largest[0])
        tile *= layer.inputs * machine.in_bytes
    beyond = source([one for _, one in nest.stays()], levels, stay)
    return Moved(operand, stay.memory, beyond.name, calls, total, tile)


def _dim(nest: LevelNest, k: int) -> str:
    item = nest.items[k]
    assert isinstance(item, Cut)
    return item.dim


def _result_bytes(layer: Layer, machine: Machine, nest: LevelNest, at: int) -> int:
    """Bytes of an element of OUT where it stays: of a partial sum if one comes there, or is added up there."""
    inner = next((k for k, one in nest.stays() if k > at and one.operand == "OUT"), len(nest.items))
    steps = nest.steps(inner)
    whole = all(not steps[d] or steps[d][-1] == layer.extent(d) for d in REDUCTION)
    return machine.out_bytes if whole else max(machine.out_bytes, machine.psum_bytes)
