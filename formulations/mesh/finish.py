"""Mesh: what is decided once the tile is given: PE vector, bank layout, fewer steps; and tiles to start from.

**Finishing** (`complete`, `fewer_steps`). An example: a tile of 6 x 4 results on 8 PEs. As 8 x 1 PEs it takes 1*4 = 4
cycles for each product summed, as 2 x 4 PEs 3*1 = 3. `complete` tries the vectors by their cycles, and takes the first
that has a bank layout.

Given
    a choice of tile, sides, share and keep; layer, machine and pins (`formulations.mesh`)
Variables
    P[d]    powers of two over parallel indices, with product = PEs of a unit (VECTOR)
    T[n]    for `fewer_steps`: the tile along the input channels
Objective
    `complete`: min cycles, as bytes and buffers do not depend on P. `fewer_steps`: max T[n] with an equal price in
    bytes and cycles: the same plan in fewer steps
Constraints
    the pins; (BANKS): `layout_of` has a layout of the tile for this vector
Optimal means
    Of all vectors that the pins allow the one with the fewest cycles that has a layout, as all are tried in order.

`doubled` and `hand` prove nothing: they make tiles to start from and to compare with.

**Bank layouts** (`layout_of`): how an operand's tile lies in its banks, so that every vector is served in one cycle.

Sets
    PE number N = sum of 2**i * b_i, i = 0 .. X-1, over 2**X PEs of a unit; an operand's axes
    (`instances.network.ndrange`)
Given
    the PE vector P[d] = 2**k[d]: PE N works on point (vector step)*P[d] + lane[d] along d; extents of the tile
Variables
    the bit assignment: the order of the indices with PEs along them; lane[d] takes k[d] bits of N in a row
    for each operand the order of its axes, innermost first, and their pitches in words
Derived
    address = sum over axes of pitch * (element in the tile); N moves it by sum over bits of stride_i * b_i, where the
    bit q of lane[d] has stride 2**q * step[d] * pitch of the axis that d moves; 0 if there is none
    active[d] = min(k[d], ceil(log2 T[d])): the lowest bits of lane[d], which working PEs have set; whoever has one of
    the others set has no point of the tile and idles, so that those bits have no stride
Constraints
    (BUTTERFLY) stride_i = 2**i * o_i with odd o_i, or 0: A_N = A_0 + sum of 2**i * o_i * b_i. The low bits 0 .. i of a
                bank number then depend on b_0 .. b_i only and tell apart those among them that matter, so a butterfly
                that sets bit X-1 first and bit 0 last never sends two words over one wire; PEs that differ only in bits
                with stride 0 read the same word, which it copies
    (APART)     the pitch of an axis is at least pitch * extent of the axis inside it: elements have words of their own
    (FITS)      copies * words of the tile <= input buffer, for both operands
Objective
    min words of both operands together, padding included
Optimal means
    No bit assignment, order of axes and pitches that nest need fewer words. Every parallel index moves an axis of an
    operand, so by (BUTTERFLY) the active bits of d follow one another in N: strides double from q to q+1. So all
    assignments are the orders of the indices with active bits, and of the other bits some before, between and after
    them; which of the others is which does not matter. For a given assignment and order the least
    pitch of every axis is best, from the inside out: a smaller one lets all axes around it have smaller ones. The proof
    is that there is no smaller multiple of the odd kind (BUTTERFLY) at or above the end of the inner axis (APART).

Source: `vectormesh` section II-C; its sum prints 2**X o_i b_i where the rule it cites has 2**i. That bits without
effect drop out is our reading of "serve": Eq. 6 has operands that do not depend on all PE indices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import combinations_with_replacement, permutations, product
from math import isqrt

import numpy as np

from formulations.clock import Clock
from formulations.mesh.price import KEEPS, cycles_of, fit, price, setup_of
from formulations.mesh.space import movable
from formulations.pins import Pins
from hwmodels.schedule import SHARES, AxisLayout, Choice, Layout, MeshLayout, OperandLayout
from instances.machine.machine import Machine
from instances.network.ndrange import Operand, ndrange
from instances.network.workload import DIMS, Layer

#: An index and the bit of its lane.
Bit = tuple[str, int]


def layout_of(layer: Layer, machine: Machine, choice: Choice) -> Layout | None:
    """Return the layout with the fewest words, None if no layout fits."""
    best: Layout | None = None
    for bits, low in _assignments(choice):
        found = _operands(layer, machine, choice, low)
        if found is not None and (best is None or sum(one.words for one in found) < best.words):
            best = Layout(bits, found)
            if all(one.words == one.elements for one in found):
                break
    return best


def _assignments(choice: Choice) -> Iterator[tuple[tuple[Bit, ...], dict[str, int]]]:
    """Yield all bit assignments that differ, lowest bit first, and where the active bits of each index begin."""
    active, idle = [], list[Bit]()
    for d, lanes, tile in zip(DIMS, choice.vector, choice.tile, strict=True):
        bits = lanes.bit_length() - 1
        used = min(bits, (tile - 1).bit_length())
        active += [(d, used)] if used else []
        idle += [(d, q) for q in range(used, bits)]
    for order in permutations(active):
        for before in combinations_with_replacement(range(len(idle) + 1), len(order)):
            made, low, spent = list[Bit](), dict[str, int](), 0
            for (d, used), until in zip(order, before, strict=True):
                made += idle[spent:until]
                low[d], spent = len(made), until
                made += [(d, q) for q in range(used)]
            yield (*made, *idle[spent:]), low


def _operands(
    layer: Layer, machine: Machine, choice: Choice, low: dict[str, int]
) -> tuple[OperandLayout, ...] | None:  # fmt: skip
    mesh = machine.mesh
    assert mesh is not None
    tile, found = dict(zip(DIMS, choice.tile, strict=True)), []
    for operand, size in zip(ndrange(layer).inputs, (machine.in_bytes, machine.w_bytes), strict=True):
        axes = tuple(_axis(operand, at, tile, low) for at in range(len(operand.axes)))
        if None in axes:
            return None
        best = _packed(tuple(axis for axis in axes if axis is not None), mesh.input_buffer_bytes // mesh.copies // size)
        if best is None:
            return None
        elements = 1
        for axis in best[0]:
            elements *= axis.extent
        found.append(OperandLayout(operand.name, best[0], best[1], elements))
    return tuple(found)


def _axis(operand: Operand, at: int, tile: dict[str, int], low: dict[str, int]) -> tuple[int, int, int | None] | None:
    """The number of an axis, its extent, and the power of two in its pitch (None: any); None if there is no pitch."""
    axis, power = operand.axes[at], None
    for d, step in axis.steps.items():
        if d in low:
            needed = low[d] - ((step & -step).bit_length() - 1)
            if needed < 0 or power not in (None, needed):
                return None
            power = needed
    return at, 1 + sum(step * (tile[d] - 1) for d, step in axis.steps.items()), power


@lru_cache(maxsize=100_000)
def _packed(
    axes: tuple[tuple[int, int, int | None], ...], most: int
) -> tuple[tuple[AxisLayout, ...], int] | None:  # fmt: skip
    """The order of axes and the pitches with the fewest words, None if all need more than `most`."""
    thick = [axis for axis in axes if axis[1] > 1]
    thin = [AxisLayout(at, 1, 1 if power is None else 1 << power) for at, extent, power in axes if extent == 1]
    best: tuple[tuple[AxisLayout, ...], int] | None = None
    for order in permutations(thick):
        made, end, words = [], 1, 1
        for at, extent, power in order:
            pitch = end if power is None else _odd_multiple(end, power)
            made.append(AxisLayout(at, extent, pitch))
            end, words = pitch * extent, words + pitch * (extent - 1)
        if words <= most and (best is None or words < best[1]):
            best = (*made, *thin), words
    return best


def _odd_multiple(least: int, power: int) -> int:
    """The smallest odd multiple of 2**power that is at least `least`."""
    unit = 1 << power
    odd = -(-least // unit)
    return unit * (odd + 1 - odd % 2)


def vectors(pes: int, movable: tuple[str, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of a PE vector over some indices."""
    bits = pes.bit_length() - 1
    for powers in product(range(bits + 1), repeat=len(movable)):
        if sum(powers) == bits:
            of = dict(zip(movable, powers, strict=True))
            yield tuple(1 << of.get(d, 0) for d in DIMS)


def fits(layer: Layer, machine: Machine, choice: Choice) -> bool:
    """Whether a choice keeps every demand on buffers (a layout aside)."""
    return all(over <= 0 for over in price(layer, machine, choice)[1].values())


def complete(layer: Layer, machine: Machine, choice: Choice, pins: Pins, *, chosen: bool) -> MeshLayout | None:
    """Return a choice with its PE vector and layout, None if there is no layout.

    `chosen`: whether the vector is part of the choice; else the one with the fewest cycles that has a layout is taken.
    """
    if machine.mesh is None or machine.mesh.kind != "teu":
        return MeshLayout(choice)
    tried = [choice] if chosen else [replace(choice, vector=v) for v in shapes(layer, machine, pins)]
    cycles = cycles_of(layer, machine, tried) if tried and not chosen else [0] * len(tried)
    for at in sorted(range(len(tried)), key=cycles.__getitem__):
        found = layout_of(layer, machine, tried[at])
        if found is not None:
            return MeshLayout(tried[at], found)
    return None


def shapes(layer: Layer, machine: Machine, pins: Pins) -> Iterator[tuple[int, ...]]:
    """Yield the PE vectors that keep the pins."""
    setup = setup_of(layer, machine)
    for vector in vectors(setup.mesh.pes, movable(setup, pins)):
        lanes = zip(DIMS, vector, strict=True)
        if all(len(pins.sizes(f"P_{d.upper()}", np.array([v], dtype=np.int64))) for d, v in lanes):
            yield vector


def fewer_steps(layer: Layer, machine: Machine, schedule: MeshLayout, pins: Pins, clock: Clock) -> MeshLayout:
    """Return the schedule with the largest tile along n that costs the same and has a layout: the fewest steps.

    When the time is up, the schedule as it is.
    """
    choice = schedule.choice
    if schedule.layout is None or choice.keep != "none" or pins.of("T_N"):
        return schedule
    before, at = price(layer, machine, choice)[0], DIMS.index("n")
    for size in range(layer.n, choice.tile[at], -1):
        if clock.over:
            break
        more = _tiled(choice, at, size)
        if fits(layer, machine, more) and price(layer, machine, more)[0] == before:
            found = layout_of(layer, machine, more)
            if found is not None:
                return MeshLayout(more, found)
    return schedule


def _tiled(choice: Choice, at: int, size: int) -> Choice:
    """The choice with another size of the tile along an index."""
    return replace(choice, tile=(*choice.tile[:at], size, *choice.tile[at + 1 :]))


def doubled(layer: Layer, machine: Machine, pins: Pins) -> list[Choice]:
    """Return choices that keep pins and buffers, each with one size of the tile twice that before.

    The first one has the smallest tile that the pins allow; none if it does not fit. All PEs lie along the first index:
    buffers do not depend on it. A start where time is short. A size that does not fit never will: tiles only grow.
    """
    smallest = _smallest(layer, machine, pins)
    if smallest is None or not fits(layer, machine, smallest):
        return []
    chain, growing = [smallest], list(range(len(DIMS)))
    while ahead := list(_larger(layer, pins, chain[-1], growing)):
        fitting = fit(layer, machine, [choice for _, choice in ahead])
        kept = fitting.index(False) if False in fitting else len(ahead)
        chain += [choice for _, choice in ahead[:kept]]
        growing = [k for k in growing if kept < len(ahead) and k != ahead[kept][0]]
    return chain


def _larger(layer: Layer, pins: Pins, choice: Choice, growing: list[int]) -> Iterator[tuple[int, Choice]]:
    """Double one of the growing sizes after the other, each time the smallest that pins allow, as if all fitted."""
    while True:
        for at in sorted(growing, key=lambda k: choice.tile[k]):
            size = min(2 * choice.tile[at], layer.extent(DIMS[at]))
            if size > choice.tile[at] and len(pins.sizes(f"T_{DIMS[at].upper()}", np.array([size], dtype=np.int64))):
                choice = _tiled(choice, at, size)
                yield at, choice
                break
        else:
            return


def _smallest(layer: Layer, machine: Machine, pins: Pins) -> Choice | None:
    setup = setup_of(layer, machine)
    workload, kind = setup.ndrange, setup.mesh.kind
    along = {"teu": (movable(setup, pins),) * 2, "systolic": (tuple(sorted(workload.temporal)), ("m",))}
    rows, cols = along.get(kind, (("",), ("",)))
    words = {"rows": rows, "cols": cols, "share": tuple(SHARES), "keep": KEEPS}
    named = {name: next((v for v in values if not v or pins.allows(name, v)), None) for name, values in words.items()}
    held = {"m": _least(pins, "filters", 1, layer.m), "n": _least(pins, "channels", 1, layer.n)}
    sizes = {}
    for d in DIMS:
        whole = d in workload.temporal and (named["keep"] != "none" or (kind == "row_stationary" and d in "ij"))
        low = workload.sizes[d] if whole else held.get(d) or 1
        sizes[d] = _least(pins, f"T_{d.upper()}", low, workload.sizes[d])
    if None in (*named.values(), *held.values(), *sizes.values()):
        return None
    return Choice(
        tuple(sizes[d] or 1 for d in DIMS), named["rows"] or "", named["cols"] or "", (setup.mesh.pes, *(1,) * 7),
        named["share"] or "", named["keep"] or "", held["m"] or 1, held["n"] or 1,
    )  # fmt: skip


def _least(pins: Pins, name: str, low: int, high: int) -> int | None:
    """The smallest size that the pins allow."""
    allowed = pins.sizes(name, np.arange(low, high + 1, dtype=np.int64))
    return int(allowed[0]) if len(allowed) else None


def hand(layer: Layer, machine: Machine) -> Choice:
    """Return a tile as section II-B describes it: "manually choose a valid tile size", results as square as can be.

    Filters (displacements for spatial matching) go along the columns of the mesh and pixels along its rows, as j and i
    of Fig. 2; 8 PEs along pixels times 4 along filters; a tile of partial sums half as many filters as pixels, cut
    until inputs fit, kernel taps whole if they can be. The paper prints no tile: this is our reading.
    """
    mesh = machine.mesh
    assert mesh is not None
    matching = layer.kind == "correlation"
    over = "i" if matching else "m" if layer.m > 1 else "g"
    size = {d: layer.extent(d) for d in DIMS}
    sums = mesh.psum_buffer_bytes // machine.psum_bytes
    tile = dict.fromkeys(DIMS, 1)
    tile[over] = min(size[over], max(1, isqrt(sums // 2)))
    side = max(1, isqrt(sums // tile[over]))
    tile["r"] = min(size["r"], side)
    tile["c"] = min(size["c"], max(1, sums // tile[over] // tile["r"]))
    if not matching:
        tile["i"], tile["j"] = size["i"], size["j"]
    lanes = dict.fromkeys(DIMS, 1) | {over: min(4, mesh.pes)}
    lanes["c" if size["c"] > 1 else "r"] = mesh.pes // lanes[over]
    made = Choice(tuple(tile[d] for d in DIMS), "r", over, tuple(lanes[d] for d in DIMS))
    while True:
        over_by = price(layer, machine, made)[1]
        large = [d for d in _cuts(over, over_by) if made.tile[DIMS.index(d)] > 1]
        if all(by <= 0 for by in over_by.values()) or not large:
            return made
        at = DIMS.index(max(large, key=lambda d: made.tile[DIMS.index(d)]))
        made = _tiled(made, at, made.tile[at] - 1)


def _cuts(over: str, over_by: dict[str, int]) -> tuple[str, ...]:
    """What to cut while a buffer overflows: filters for weights, pixels for inputs; taps are whole."""
    if over_by["INPUT tile W"] > 0 and over != "i":
        return (over,)
    return ("r", "c", over) if over == "i" else ("r", "c")
