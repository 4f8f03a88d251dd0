"""F1 tiling: tile sizes and loop order of one layer on one core.

Sets
    d in D = {b, g, m, n, r, c} tiled dimensions; o in O loop orders; op in {IN, W, OUT}
Given
    E[d] extent; mem[k] bytes of memory k; prices of `instances.machine`        (integers; bytes, ticks)
Variables
    o in O; T[d] in {1..E[d]} ("free") or the divisors of E[d] ("divisors", the paper's)
Objective
    min lexicographically any order of time [ticks], bytes, energy [fJ]; ties by the remaining ones in this order
Constraints
    (CHOOSE)    one order, one size per dimension
    (CAPACITY)  sum over op in memory k of footprint[op](T) (twice if double buffered) + scratch + reserved <= mem[k]
    (COST)      objective >= price of the nest, a sum of products of a spatial and a channel factor (`hwmodels.core`)
Nest
    Loop(o1) .. Loop(o6) Hold(IN) Hold(W) Hold(OUT): all operands held at one common depth. An operand is re-fetched by
    the loops outside and at its innermost relevant loop; loops of one trip are no loops (docs/nest.md).
Candidates
    Orders: three stand for all 720. All operands depend on g, so g outermost never adds a re-fetch. IN and OUT depend
    on b, r, c alike and W on none of them, so they may stand together: placed innermost they spare W, else nothing. Of
    m and n, the inner one spares IN (m) or keeps OUT on chip (n). Hence g b r c n m ("IS", the paper's Listing 1.1), g
    b r c m n ("OS"), g m n b r c ("WS"); every other order re-fetches, operand by operand, at least as often as one of
    these with the same tile sizes and footprints. Sizes: `formulations.candidates`.
Assumes
    the kernel is not cut; operands are held at one common depth; no sliding-window reuse between tiles.
Optimal means
    no plan with one common hold depth, any integer (or divisor) tile sizes and any loop order is better in the stated
    objective.

Source: `optimal_tiling_dma` section 4 (Eq. 1-6, Listing 1.1); `reading = "literal"` prices by its printed equations.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from formulations.candidates import divisors, reduce_sizes
from formulations.pins import Decision, Pins
from formulations.space import Branch, Space
from hwmodels.bilinear import Ints
from hwmodels.schedule import Nest
from hwmodels.skeleton import Core, Skeleton, cores, skeleton_of
from instances.errors import InputError
from instances.machine import Machine
from instances.workload import DIMS, Layer

__all__ = ["DECISIONS", "ORDERS", "build"]

#: The three orders that stand for all, outermost loop first.
ORDERS: dict[str, tuple[str, ...]] = {
    "IS": ("g", "b", "r", "c", "n", "m"),
    "OS": ("g", "b", "r", "c", "m", "n"),
    "WS": ("g", "m", "n", "b", "r", "c"),
}

DECISIONS: dict[str, Decision] = {
    **{f"T_{d.upper()}": Decision(f"tile size of dimension {d}") for d in DIMS},
    "sizes": Decision("free (any integer) or divisors (of the extent, as in the DMA paper)", ("free", "divisors")),
    "order": Decision(
        "any, paper (r c n m, Listing 1.1), IS, OS, WS, or loop letters outermost first such as mnrc",
        ("any", "paper", *ORDERS),
        open=True,
    ),
}


def build(layer: Layer, machine: Machine, pins: Pins, *, full: bool = False) -> Space:
    """Build the space of tiling plans.

    Raises
    ------
    InputError
        If the machine has several cores, or a pinned order is no order of the loops.
    """
    if machine.tles * machine.tlts > 1:
        raise InputError(
            f"problem tiling plans one core, machine {machine.name} has {machine.tles * machine.tlts}: use slicing"
        )
    core = cores(layer, ())[0]
    steps = {d: _sizes(layer, machine, pins, d, core, full) for d in DIMS}
    branches = []
    orders = _orders(layer, machine, pins)
    for name, order in orders.items():
        if all(len(s) for s in steps.values()):
            loops = tuple(d for d in order if layer.extent(d) > 1)
            skeleton = Skeleton((), loops, dict.fromkeys(layer.operands, len(loops)))
            branches.append(Branch.build(layer, machine, {"order": name}, skeleton, steps, full=full))
    points = prod(layer.extent(d) for d in DIMS) * len(orders)
    return Space(
        "tiling", layer, machine, pins, tuple(b for b in branches if not b.empty), points,
        lambda m, p: build(layer, m, p, full=full), lambda nest: read(layer, nest),
    )  # fmt: skip


def _sizes(layer: Layer, machine: Machine, pins: Pins, dim: str, core: Core, full: bool) -> Ints:
    extent = layer.extent(dim)
    free = pins.allows("sizes", "free")
    if not free and not pins.allows("sizes", "divisors"):
        return np.zeros(0, np.int64)
    sizes = np.arange(1, extent + 1, dtype=np.int64) if free else divisors(extent)
    sizes = pins.sizes(f"T_{dim.upper()}", sizes)
    # The claim of `candidates` is about sums; a double-buffered timeline is a sum of maxima, so there nothing is
    # dropped.
    keep_all = full or machine.timing == "double_buffered"
    return sizes if keep_all else reduce_sizes(layer, machine, dim, sizes, [core])


def _orders(layer: Layer, machine: Machine, pins: Pins) -> Mapping[str, tuple[str, ...]]:
    """The orders to look at, without those that coincide because a dimension has extent 1."""
    asked = [p.value for p in pins.of("order") if p.op == "=" and p.value != "any"]
    orders = dict(ORDERS)
    if asked:
        orders = {name: _order(name) for name in asked[:1] if len(set(asked)) == 1}
    if machine.reading == "literal":
        orders = {name: order for name, order in orders.items() if order == ORDERS["IS"]}
    banned = {p.value for p in pins.of("order") if p.op == "!="}
    distinct: dict[tuple[str, ...], str] = {}
    for name, order in orders.items():
        if name not in banned:
            distinct.setdefault(_canonical(layer, order), name)
    return {name: orders[name] for name in distinct.values()}


def _canonical(layer: Layer, order: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(d for d in order if layer.extent(d) > 1)


def _order(name: str) -> tuple[str, ...]:
    if name == "paper":
        return ORDERS["IS"]
    if name in ORDERS:
        return ORDERS[name]
    letters = name.replace(",", "")
    if len(set(letters)) != len(letters) or not letters or set(letters) - set(DIMS):
        raise InputError(
            f"pin order={name}: expected any, paper, IS, OS, WS or distinct letters of {''.join(DIMS)}, outermost first"
        )
    missing = [d for d in ("g", "b", "r", "c", "m", "n") if d not in letters]
    return (*missing, *letters)


def read(layer: Layer, nest: Nest) -> dict[str, int | str]:
    """Return the order of the loops that run more than once, and all tile sizes."""
    skeleton = skeleton_of(layer, nest)
    tile = nest.tile(layer)
    order = "".join(d for d in skeleton.order if tile[d] < layer.extent(d))
    return {"order": order or "-", **{f"T_{d.upper()}": tile[d] for d in DIMS if layer.extent(d) > 1}}
