"""F3 mesh: what is decided once the tile is given: PE vector and layout, fewer steps; and tiles to start from.

An example: a tile of 6 x 4 results on 8 PEs. As 8 x 1 PEs it takes 1*4 = 4 cycles for each product summed, as 2 x 4 PEs
3*1 = 3. `complete` tries the vectors by their cycles, and takes the first that has a bank layout.

Given
    a choice of tile, sides, share and keep; layer, machine and pins (`formulations.mesh`)
Variables
    P[d]    powers of two over parallel indices, with product = PEs of a unit (VECTOR)
    T[n]    for `fewer_steps`: the tile along the input channels
Objective
    `complete`: min cycles, as bytes and buffers do not depend on P. `fewer_steps`: max T[n] with an equal price in
    bytes and cycles: the same plan in fewer steps
Constraints
    the pins; (BANKS): `formulations.mesh.layout` has a layout of the tile for this vector
Optimal means
    Of all vectors that the pins allow the one with the fewest cycles that has a layout, as all are tried in order.

`doubled` and `hand` prove nothing: they make tiles to start from and to compare with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isqrt

import numpy as np

from formulations.clock import Clock
from formulations.mesh.choice import KEEPS
from formulations.mesh.layout import layout_of, vectors
from formulations.mesh.price import cycles_of, fit, price, setup_of
from formulations.mesh.space import movable
from formulations.pins import Pins
from hwmodels.schedule import SHARES, Choice, MeshLayout
from instances.machine import Machine
from instances.workload import DIMS, Layer


def fits(layer: Layer, machine: Machine, choice: Choice) -> bool:
    """Whether a choice keeps every demand on buffers (a layout aside)."""
    return all(over <= 0 for over in price(layer, machine, choice)[1].values())


def complete(layer: Layer, machine: Machine, choice: Choice, pins: Pins, *, chosen: bool) -> MeshLayout | None:
    """Return a choice with its PE vector and layout, None if there is no layout.

    Parameters
    ----------
    chosen : bool
        Whether the vector is part of the choice; else the one with the fewest cycles that has a layout is taken.
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
    tile["j" if matching else "m"] = 1
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
