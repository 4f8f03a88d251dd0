"""What F3 mesh decides for a given tile: the PE vector and the layout; whole steps; the tile a person would take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isqrt

from formulations.mesh import Choice
from formulations.mesh_layout import Layout, layout_of, vectors
from formulations.mesh_price import price, setup_of
from formulations.mesh_space import movable
from formulations.pins import Pins
from instances.machine import Machine
from instances.workload import DIMS, Layer

__all__ = ["complete", "fewer_steps", "fits", "hand", "served"]


def fits(layer: Layer, machine: Machine, choice: Choice) -> bool:
    """Whether a choice keeps every demand on buffers (a layout aside)."""
    return all(over <= 0 for over in price(layer, machine, choice)[1].values())


def complete(
    layer: Layer, machine: Machine, choice: Choice, pins: Pins, *, chosen: bool
) -> tuple[Choice, Layout | None] | None:
    """Return a choice with its PE vector and layout, None if there is no layout.

    Parameters
    ----------
    chosen : bool
        Whether the vector is part of the choice; else the one with the fewest cycles that has a layout is taken.
    """
    if machine.mesh is None or machine.mesh.kind != "teu":
        return choice, None
    if chosen:
        found = layout_of(layer, machine, choice)
        return None if found is None else (choice, found)
    tried = [replace(choice, vector=v) for v in _vectors(layer, machine, pins)]
    for one in sorted(tried, key=lambda c: price(layer, machine, c)[0].cycles):
        found = layout_of(layer, machine, one)
        if found is not None:
            return one, found
    return None


def served(layer: Layer, machine: Machine, pins: Pins) -> bool:
    """Whether any PE vector keeps the pins."""
    if machine.mesh is None or machine.mesh.kind != "teu":
        return True
    return next(_vectors(layer, machine, pins), None) is not None


def _vectors(layer: Layer, machine: Machine, pins: Pins) -> Iterator[tuple[int, ...]]:
    mesh = machine.mesh
    assert mesh is not None
    for vector in vectors(mesh.pes, movable(setup_of(layer, machine), pins)):
        kept = (
            all(_keeps(p.op, v, int(p.value)) for p in pins.of(f"P_{d.upper()}"))
            for d, v in zip(DIMS, vector, strict=True)
        )
        if all(kept):
            yield vector


def _keeps(op: str, value: int, wanted: int) -> bool:
    return {
        "=": value == wanted, "!=": value != wanted, "<=": value <= wanted, ">=": value >= wanted,
    }.get(op, value % wanted == 0)  # fmt: skip


def fewer_steps(
    layer: Layer, machine: Machine, choice: Choice, pins: Pins, layout: Layout | None
) -> tuple[Choice, Layout | None]:
    """Return the choice with the largest tile along n that costs the same and has a layout: the fewest steps."""
    if layout is None or choice.keep != "none" or pins.of("T_N"):
        return choice, layout
    before, at = price(layer, machine, choice)[0], DIMS.index("n")
    for size in range(layer.n, choice.tile[at], -1):
        tile = (*choice.tile[:at], size, *choice.tile[at + 1 :])
        more = replace(choice, tile=tile)
        if fits(layer, machine, more) and price(layer, machine, more)[0] == before:
            found = layout_of(layer, machine, more)
            if found is not None:
                return more, found
    return choice, layout


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
    side = isqrt(sums // tile[over])
    tile["r"] = min(size["r"], side)
    tile["c"] = min(size["c"], max(1, sums // tile[over] // tile["r"]))
    if not matching:
        tile["i"], tile["j"] = size["i"], size["j"]
    lanes = dict.fromkeys(DIMS, 1) | {over: min(4, mesh.pes)}
    lanes["c" if size["c"] > 1 else "r"] = mesh.pes // lanes[over]
    made = Choice(
        tuple(tile[d] for d in DIMS), "r", over, tuple(lanes[d] for d in DIMS),
    )  # fmt: skip
    while True:
        over_by = price(layer, machine, made)[1]
        large = [d for d in _cuts(over, over_by) if made.tile[DIMS.index(d)] > 1]
        if all(by <= 0 for by in over_by.values()) or not large:
            return made
        at = DIMS.index(max(large, key=lambda d: made.tile[DIMS.index(d)]))
        made = replace(made, tile=(*made.tile[:at], made.tile[at] - 1, *made.tile[at + 1 :]))


def _cuts(over: str, over_by: dict[str, int]) -> tuple[str, ...]:
    """What to cut while a buffer overflows: filters for weights, pixels for inputs; taps are whole."""
    if over_by["INPUT tile W"] > 0 and over != "i":
        return (over,)
    return ("r", "c", over) if over == "i" else ("r", "c")
