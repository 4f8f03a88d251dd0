"""Tables of mesh: what every option of a group of indices adds to each term; a price is a sum of products of them.

Columns of an option, by index d: ``T_d`` tile, ``S_d`` sides of the mesh along it (1 rows, 2 columns, 3 both), ``P_d``
PEs along it; ``filters`` and ``channels``. Tables are integers; names and letters as in `formulations.mesh`.

**Terms** by kind of machine: the mesh of tile units, the systolic array, and row-stationary PEs.
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

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from formulations.clock import ENDLESS, Clock
from hwmodels.schedule import SHARES
from instances.machine.machine import Machine
from instances.machine.mesh import Mesh
from instances.network.ndrange import Axis, NDRange, Operand, ndrange
from instances.network.workload import Layer

Ints = NDArray[np.int64]
Columns = Mapping[str, Ints]


def ceil_div(a: Ints | int, b: Ints | int) -> Ints:
    """Return a / b, rounded up."""
    rounded: Ints = -(-np.asarray(a, dtype=np.int64) // b)
    return rounded


def up(d: str) -> str:
    """The letter of an index in names of columns."""
    return d.upper()


def roof(mesh: Mesh, measure: str) -> dict[str, int]:
    """Return what a measure is the most of, and how much of each takes one of it: the time is the roofline's."""
    rates = {"cycles": 1, "dram": mesh.dram_bytes_per_cycle, "glb": mesh.global_bytes_per_cycle}
    return rates if measure == "time" else {measure: 1}


@dataclass(frozen=True)
class Linear:
    """``constant + sum of factor * (product of a term over the groups)``."""

    factors: dict[str, int]
    constant: int = 0


@dataclass(frozen=True)
class Cap:
    """A demand: `what` is at most `limit`."""

    tag: str
    what: Linear
    limit: int


@dataclass(frozen=True)
class Setup:
    """A layer on a machine with mesh, and what is fixed before the tile is chosen."""

    layer: Layer
    machine: Machine
    share: str = "both"
    keep: str = "none"
    """`share`, `keep`: as in `hwmodels.schedule.Choice`."""
    clock: Clock = ENDLESS
    """When to stop making tables."""

    @cached_property
    def mesh(self) -> Mesh:
        """The section of the machine."""
        assert self.machine.mesh is not None
        return self.machine.mesh

    @cached_property
    def ndrange(self) -> NDRange:
        """The workload."""
        return ndrange(self.layer)

    def units(self, sides: Ints) -> Ints:
        """Units along an index, by its sides."""
        rows, cols = self.mesh.rows, self.mesh.cols
        return np.array([1, rows, cols, rows * cols], dtype=np.int64)[sides]

    def often(self, operand: str, d: str, columns: Columns) -> Ints:
        """How often an operand is fetched along an index that it does not depend on."""
        trips = ceil_div(self.ndrange.sizes[d], columns[f"T_{up(d)}"])
        side = self.units(columns[f"S_{up(d)}"])
        shared = operand in SHARES[self.share]
        if self.keep == operand:
            return np.ones_like(trips) if shared else np.minimum(side, trips)
        return ceil_div(trips, side) if shared else trips

    def groups_of(self, operand: Operand, group: tuple[str, ...]) -> list[Axis]:
        """The axes of an operand that indices of the group move."""
        return [axis for axis in operand.axes if set(axis.steps) & set(group)]


def ones(columns: Columns) -> Ints:
    """One for every option."""
    return np.ones_like(next(iter(columns.values())))


def fetched(setup: Setup, operand: Operand, group: tuple[str, ...], columns: Columns) -> Ints:
    """The part of a group in ``fetched[x]``."""
    total = ones(columns)
    for axis in setup.groups_of(operand, group):
        total = total * _inside(setup, axis, columns)
    for d in group:
        if not operand.depends(d):
            total = total * setup.often(operand.name, d, columns)
    return total


def footprint(setup: Setup, operand: Operand, group: tuple[str, ...], columns: Columns) -> Ints:
    """The part of a group in the elements of a tile, padding included: PEs address it like the rest."""
    total = ones(columns)
    for axis in setup.groups_of(operand, group):
        total = total * extent(axis, columns)
    return total


def extent(axis: Axis, columns: Columns) -> Ints:
    """Elements of a tile along an axis."""
    return 1 + sum((step * (columns[f"T_{up(d)}"] - 1) for d, step in axis.steps.items()), 0 * ones(columns))


def _inside(setup: Setup, axis: Axis, columns: Columns) -> Ints:
    """Elements along an axis of all tiles together, without padding."""
    names = tuple(axis.steps)
    if len(names) == 1:
        return np.full_like(ones(columns), axis.size)
    tiles = np.stack([columns[f"T_{up(d)}"] for d in names], axis=1)
    kinds, where = np.unique(tiles, axis=0, return_inverse=True)
    sizes = tuple(setup.ndrange.sizes[d] for d in names)
    steps, sums = tuple(axis.steps.values()), []
    for a, b in kinds:
        setup.clock.tick()
        sums.append(windows(sizes, steps, axis.offset, axis.size, (int(a), int(b))))
    return np.array(sums, dtype=np.int64)[where.reshape(-1)]


@lru_cache(maxsize=200_000)
def windows(
    sizes: tuple[int, int], steps: tuple[int, int], offset: int, size: int, tiles: tuple[int, int]
) -> int:  # fmt: skip
    """Return the elements of an axis under all tiles of two indices, each tile clipped to 0 .. size-1."""
    firsts, lasts = [], []
    for number, step, tile in zip(sizes, steps, tiles, strict=True):
        first = np.arange(0, number, tile, dtype=np.int64)
        firsts.append(first * step)
        lasts.append((np.minimum(first + tile, number) - 1) * step)
    begin = np.clip(firsts[0][:, None] + firsts[1][None, :] + offset, 0, size)
    end = np.clip(lasts[0][:, None] + lasts[1][None, :] + offset + 1, 0, size)
    return int(np.maximum(end - begin, 0).sum())


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
