"""Terms of F3 mesh by kind of machine: the mesh of tile units, the systolic array, and row-stationary PEs.

DRAM bytes are counted alike (`formulations.mesh`); what differs is who reads the global buffer, and how long it
takes.

teu
    ``cycles``: product over parallel d of (sum over mesh steps of ceil(tile of the first unit / P[d])), over temporal
    d of size[d]. The first unit of a step has the largest tile.
systolic (weights stay in the PEs; after `vectormesh` [5])
    One index that is summed over (`rows`) lies along the rows, m along the columns; others take turns (passes).
    ``taps``    reads of IN: every pass over a block of filters streams its elements once; padding is not read
    ``weights`` each weight once for every tile of pixels
    ``sums``    results * passes: each pass writes a partial sum, all but the first read one: 2*sums - results
    ``cycles``  blocks * (pixels + R + C): the array fills and drains for every block
row_stationary (after `vectormesh` [6])
    A PE holds a kernel row of `filters` x `channels`; K_h rows of PEs make a set, floor(R / K_h) sets add up different
    channels, a kernel higher than R takes several folds; columns take C rows of the result.
    ``taps``    reads of IN: the rows under a strip of C result rows, once for every fold and group of filters
    ``weights``, ``sums`` as above, with passes = folds * groups of channels
    ``cycles``  strips * result columns * K_w * filters * channels of all passes; no time for filling
"""

from __future__ import annotations

import numpy as np

from formulations.mesh.tables import Cap, Columns, Ints, Linear, Setup, ceil_div, fetched, footprint, ones, up, windows

__all__ = ["caps_of", "linear_of", "terms_of"]

Terms = dict[str, Ints]


def linear_of(setup: Setup) -> dict[str, Linear]:
    """Return dram, glb and cycles as sums of terms."""
    machine, mesh = setup.machine, setup.mesh
    written = machine.out_bytes * setup.ndrange.results
    dram = Linear({"IN": machine.in_bytes, "W": machine.w_bytes}, written)
    if mesh.kind == "teu":
        return {"dram": dram, "glb": dram, "cycles": Linear({"cycles": 1})}
    sums = {"taps": machine.in_bytes, "weights": machine.w_bytes, "sums": 2 * machine.psum_bytes}
    glb = Linear(sums, written - machine.psum_bytes * setup.ndrange.results)
    factors = {"cycles": 1, "filling": mesh.rows + mesh.cols} if mesh.kind == "systolic" else {"cycles": 1}
    return {"dram": dram, "glb": glb, "cycles": Linear(factors)}


def caps_of(setup: Setup) -> tuple[Cap, ...]:
    """Return the demands on buffers."""
    machine, mesh = setup.machine, setup.mesh
    given, weights = machine.in_bytes * mesh.copies, machine.w_bytes * mesh.copies
    if mesh.kind == "teu":
        return (
            Cap("INPUT", Linear({"tile IN": given}), mesh.input_buffer_bytes),
            Cap("INPUT", Linear({"tile W": weights}), mesh.input_buffer_bytes),
            Cap("PSUM", Linear({"tile OUT": machine.psum_bytes}), mesh.psum_buffer_bytes),
        )
    both = {"tile IN": given, "tile W": weights, "tile OUT": machine.psum_bytes}
    caps = [Cap("GLOBAL", Linear(both), mesh.global_bytes)]
    if mesh.kind == "row_stationary":
        local = {"PE W": machine.w_bytes, "PE IN": machine.in_bytes, "PE OUT": machine.psum_bytes}
        caps.append(Cap("LOCAL", Linear(local), mesh.local_bytes))
    return tuple(caps)


def terms_of(setup: Setup, group: tuple[str, ...], columns: Columns) -> Terms:
    """Return the entries of all options of a group, by term."""
    given, weights = setup.ndrange.inputs
    parallel = [d for d in group if d not in setup.ndrange.temporal]
    sums = ones(columns)
    for d in parallel:
        sums = sums * columns[f"T_{up(d)}"]
    terms = {
        "IN": fetched(setup, given, group, columns), "W": fetched(setup, weights, group, columns),
        "tile IN": footprint(setup, given, group, columns), "tile W": footprint(setup, weights, group, columns),
        "tile OUT": sums,
    }  # fmt: skip
    of_kind = {"teu": _unit, "systolic": _systolic, "row_stationary": _row_stationary}[setup.mesh.kind]
    return terms | of_kind(setup, group, columns)


def _unit(setup: Setup, group: tuple[str, ...], columns: Columns) -> Terms:
    cycles = ones(columns)
    for d in group:
        size = setup.ndrange.sizes[d]
        if d in setup.ndrange.temporal:
            cycles = cycles * size
            continue
        tile, lanes, side = columns[f"T_{up(d)}"], columns[f"P_{up(d)}"], setup.units(columns[f"S_{up(d)}"])
        steps = ceil_div(ceil_div(size, tile), side)
        last = np.minimum(tile, size - (steps - 1) * side * tile)
        cycles = cycles * ((steps - 1) * ceil_div(tile, lanes) + ceil_div(last, lanes))
    return {"cycles": cycles}


def _parts(size: int, tile: Ints, part: Ints | int) -> Ints:
    """Pieces of at most `part` that all tiles are cut in."""
    whole, rest = size // tile, size % tile
    return whole * ceil_div(tile, part) + ceil_div(rest, part)


def _systolic(setup: Setup, group: tuple[str, ...], columns: Columns) -> Terms:
    sizes, one = setup.ndrange.sizes, ones(columns)
    terms = {"taps": one, "weights": one, "sums": one, "cycles": one, "filling": one}
    for d in group:
        tile, size = columns[f"T_{up(d)}"], sizes[d]
        trips = ceil_div(size, tile)
        by: dict[str, Ints | int]
        if d in setup.ndrange.temporal:
            passes = np.where(columns[f"S_{up(d)}"] == 1, _parts(size, tile, setup.mesh.rows), size)
            by = {"weights": size, "sums": passes, "cycles": passes, "filling": passes}
        elif d == "m":
            blocks = _parts(size, tile, setup.mesh.cols)
            by = {"taps": blocks, "weights": size, "sums": size, "cycles": blocks, "filling": blocks}
        elif d == "g":
            by = dict.fromkeys(terms, size)
        else:
            by = {"weights": trips, "sums": size, "cycles": size, "filling": trips}
        terms = {name: entry * by.get(name, 1) for name, entry in terms.items()}
    terms["taps"] = terms["taps"] * _taps(setup, group)
    return terms


def _taps(setup: Setup, group: tuple[str, ...]) -> int:
    """Reads of IN along the axes that the group moves, one for every pair of a result and a tap that is no padding."""
    total = 1
    for axis in setup.groups_of(setup.ndrange.inputs[0], group):
        names = tuple(axis.steps)
        if len(names) == 1:
            total *= axis.size if names[0] != "g" else 1
        else:
            sizes, steps = (tuple(of[d] for d in names) for of in (setup.ndrange.sizes, axis.steps))
            total *= windows((sizes[0], sizes[1]), (steps[0], steps[1]), axis.offset, axis.size, (1, 1))
    return total


def _row_stationary(setup: Setup, group: tuple[str, ...], columns: Columns) -> Terms:
    layer, mesh, one = setup.layer, setup.mesh, ones(columns)
    folds = -(-layer.kh // mesh.rows)
    sets = max(1, mesh.rows // layer.kh)
    terms = dict.fromkeys(("taps", "weights", "sums", "cycles", "PE W", "PE IN", "PE OUT"), one)
    for d in group:
        tile, size = columns[f"T_{up(d)}"], setup.ndrange.sizes[d]
        trips = ceil_div(size, tile)
        by: dict[str, Ints | int]
        if d == "m":
            held = columns["filters"]
            times = _parts(size, tile, held)
            by = {"taps": times, "weights": size, "sums": size, "cycles": times * held, "PE W": held, "PE OUT": held}
        elif d == "n":
            held = columns["channels"]
            times = _parts(size, tile, held * sets)
            by = {"taps": size, "weights": size, "sums": times, "cycles": times * held, "PE W": held, "PE IN": held}
        elif d == "r":
            strips = _parts(size, tile, mesh.cols)
            by = {"taps": _strips(setup, tile), "weights": trips, "sums": size, "cycles": strips}
        elif d == "i":
            by = {"weights": size, "sums": folds, "cycles": folds}
        elif d == "c":
            inside = fetched(setup, setup.ndrange.inputs[0], group, columns)
            by = {"taps": inside, "weights": trips, "sums": size, "cycles": size}
        elif d == "j":
            by = {"weights": size, "cycles": size, "PE W": size, "PE IN": size}
        else:
            by = {"taps": size, "weights": size if d == "g" else trips, "sums": size, "cycles": size}
        terms = {name: entry * by.get(name, 1) for name, entry in terms.items()}
    return terms


def _strips(setup: Setup, tiles: Ints) -> Ints:
    """Rows of IN under all strips of result rows, for every fold of the kernel's rows."""
    layer, mesh = setup.layer, setup.mesh
    found: dict[int, int] = {}
    for tile in {int(t) for t in tiles}:
        setup.clock.tick()
        total = 0
        for first in range(0, layer.r, tile):
            end = min(first + tile, layer.r)
            for r in range(first, end, mesh.cols):
                for i in range(0, layer.kh, mesh.rows):
                    last_r, last_i = min(r + mesh.cols, end) - 1, min(i + mesh.rows, layer.kh) - 1
                    low = max(0, r * layer.stride_h + i * layer.dilation_h - layer.pad_top)
                    high = min(layer.h, last_r * layer.stride_h + last_i * layer.dilation_h - layer.pad_top + 1)
                    total += max(0, high - low)
        found[tile] = total
    return np.array([found[int(t)] for t in tiles], dtype=np.int64)
