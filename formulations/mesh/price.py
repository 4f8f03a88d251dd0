"""Mesh: the decisions and pins, the price of one choice in closed form, and what it takes of every buffer.

**Price.** An example (Fig. 2 of the source): 4x4 times 4x4 on 2x2 units with tiles of 2x2 results. Each operand is read
once, 16 elements, and 16 results are written: 48 elements. Without FIFOs each operand is read twice: 80.

Sets
    g in G      groups of indices, as in `formulations.mesh.space`; a choice is one option of each
Given
    t[g, k]     terms of that option (below); factors f and constants c of measures and buffers
Derived
    dram, glb   ``c + sum_k f[k] * product_g t[g, k]`` [bytes]; cycles likewise
    time        ``max(cycles, ceil(dram / dram rate), ceil(glb / glb rate))`` [cycles], rates in bytes per cycle: the
                roofline
    over        for every buffer the same sum less its size [bytes]; the choice fits if none is above 0

The same tables are searched, so a search cannot price a plan otherwise; `hwmodels.mesh` counts it without them.

**Decisions**: names, values, and what may be minimised (`formulations.mesh` has the model). Pins that no plan on a
machine can keep, whatever the layer, are refused before anything is searched (`check_pins`).

**Tables**: what every option of a group of indices adds to each term; a price is a sum of products of them.

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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from formulations.clock import ENDLESS, Clock
from formulations.pins import Decision, Pins
from hwmodels.schedule import SHARES, Choice
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.machine.sections import LARGEST, Mesh
from instances.network.ndrange import Axis, NDRange, Operand, ndrange
from instances.network.workload import DIMS, Layer, refuse_long

Ints = NDArray[np.int64]
Columns = Mapping[str, Ints]


def ceil_div(a: Ints | int, b: Ints | int) -> Ints:
    """Return a / b, rounded up."""
    rounded: Ints = -(-np.asarray(a, dtype=np.int64) // b)
    return rounded


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
        trips = ceil_div(self.ndrange.sizes[d], columns[f"T_{d.upper()}"])
        side = self.units(columns[f"S_{d.upper()}"])
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
    return 1 + sum((step * (columns[f"T_{d.upper()}"] - 1) for d, step in axis.steps.items()), 0 * ones(columns))


def _inside(setup: Setup, axis: Axis, columns: Columns) -> Ints:
    """Elements along an axis of all tiles together, without padding."""
    names = tuple(axis.steps)
    if len(names) == 1:
        return np.full_like(ones(columns), axis.size)
    tiles = np.stack([columns[f"T_{d.upper()}"] for d in names], axis=1)
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
        sums = sums * columns[f"T_{d.upper()}"]
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
        tile, lanes, side = columns[f"T_{d.upper()}"], columns[f"P_{d.upper()}"], setup.units(columns[f"S_{d.upper()}"])
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
        tile, size = columns[f"T_{d.upper()}"], sizes[d]
        trips = ceil_div(size, tile)
        by: dict[str, Ints | int]
        if d in setup.ndrange.temporal:
            passes = np.where(columns[f"S_{d.upper()}"] == 1, _parts(size, tile, setup.mesh.rows), size)
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
        tile, size = columns[f"T_{d.upper()}"], setup.ndrange.sizes[d]
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


#: What may be minimised, with units.
MEASURES: dict[str, str] = {"dram": "bytes", "glb": "bytes", "time": "ticks"}
KEEPS = ("none", "IN", "W")
#: Decisions that only some kinds of machines have.
ONLY: dict[str, tuple[str, ...]] = {
    "P": ("teu",), "cols": ("teu",), "share": ("teu",), "rows": ("teu", "systolic"), "filters": ("row_stationary",),
    "channels": ("row_stationary",),
}  # fmt: skip

#: What may be pinned.
DECISIONS: dict[str, Decision] = {
    **{f"T_{d.upper()}": Decision(f"tile along {d}") for d in DIMS},
    **{f"P_{d.upper()}": Decision(f"PEs of a unit along {d}, a power of two") for d in DIMS},
    "filters": Decision("filters in a PE (row_stationary)"),
    "channels": Decision("channels in a PE (row_stationary)"),
    "rows": Decision("index along the rows of the mesh", DIMS),
    "cols": Decision("index along the columns of the mesh", DIMS),
    "share": Decision("operands that go through the FIFOs", tuple(SHARES)),
    "keep": Decision("operand whose tile stays", KEEPS),
}


def check_pins(pins: Pins, machine: Machine) -> None:
    """Raise InputError for pins of decisions that the machine does not have, and PEs that are no power of two."""
    mesh = machine.mesh
    if mesh is None:
        return
    powers = np.array([1 << k for k in range(mesh.pes.bit_length())], dtype=np.int64)
    for pin in pins.pins:
        kinds = ONLY.get(pin.name.partition("_")[0])
        if kinds is not None and mesh.kind not in kinds:
            raise InputError(
                f"pin {pin}: machine {machine.name} is {mesh.kind}; {pin.name} is a decision of {', '.join(kinds)}"
            )
        if pin.name.startswith("P_") and not pin.keeps(powers).any():
            raise InputError(
                f"pin {pin}: {pin.name} is a power of two, as a unit's PEs along every index are: one of "
                f"{', '.join(map(str, powers))} on {machine.name}"
            )


Objects = NDArray[np.object_]


def setup_of(
    layer: Layer, machine: Machine, share: str = "both", keep: str = "none", clock: Clock = ENDLESS
) -> Setup:  # fmt: skip
    """Return what is fixed before the tile; raises InputError if the machine cannot run the layer."""
    if machine.mesh is None:
        raise InputError(f"machine {machine.name}: problem mesh needs a mesh, such as vectormesh_128 has")
    if machine.mesh.kind != "teu" and layer.kind == "correlation":
        raise InputError(f"layer {layer.name}: machine {machine.name} ({machine.mesh.kind}) cannot match two maps")
    refuse_long(layer)
    made = Setup(layer, machine, share, keep, clock)
    for group in made.ndrange.groups:
        _countable(made, group)
    return made


def _countable(setup: Setup, group: tuple[str, ...]) -> None:
    """Raise InputError if a table entry of a group might reach `LARGEST`; reckoned in Python's integers.

    Entries are at most the sizes, times a window's elements by tile (1 + steps), times what a side or a PE adds.
    """
    mesh, axes = setup.mesh, setup.groups_of(setup.ndrange.inputs[0], group)
    most = 4 * (mesh.rows + mesh.cols + mesh.rows * mesh.cols + mesh.local_bytes)
    for d in group:
        most *= setup.ndrange.sizes[d]
    for axis in axes:
        most *= 1 + sum(axis.steps.values()) + abs(axis.offset)
        most = max(most, axis.size)
    if most >= LARGEST:
        indices = " and ".join(group)
        raise InputError(f"layer {setup.layer.name}: indices {indices} are too long to count: {most:,}, 2**53 and more")


def _columns(setup: Setup, group: tuple[str, ...], choices: Sequence[Choice]) -> Columns:
    """The options of a group that choices stand for."""
    columns: dict[str, list[int]] = {"filters": [c.filters for c in choices], "channels": [c.channels for c in choices]}
    for d in group:
        at, cols = DIMS.index(d), setup.mesh.kind == "teu"
        columns[f"T_{d.upper()}"] = [c.tile[at] for c in choices]
        columns[f"P_{d.upper()}"] = [c.vector[at] for c in choices]
        columns[f"S_{d.upper()}"] = [int(c.rows == d) + (2 if c.cols == d and cols else 0) for c in choices]
    return {name: np.array(values, dtype=np.int64) for name, values in columns.items()}


def _priced(setup: Setup, choices: Sequence[Choice]) -> Callable[[Linear], Objects]:
    """What sums of terms are for each of some choices, which share and keep the same; in Python's integers."""
    tables = [terms_of(setup, group, _columns(setup, group, choices)) for group in setup.ndrange.groups]

    def value(what: Linear) -> Objects:
        total: Objects = np.full(len(choices), what.constant, dtype=object)
        for name, factor in what.factors.items():
            total = total + factor * prod(table[name].astype(object) for table in tables)
        return total

    return value


def price(layer: Layer, machine: Machine, choice: Choice) -> tuple[dict[str, int], dict[str, int]]:
    """Return dram and glb [bytes], cycles of the PEs alone and the time [cycles], and what each buffer is short of.

    Raises InputError if the choice is malformed.
    """
    setup = setup_of(layer, machine, choice.share, choice.keep)
    _well_formed(setup, choice)
    value = _priced(setup, [choice])
    costs = {name: int(value(what)[0]) for name, what in linear_of(setup).items()}
    over = {f"{cap.tag} {'+'.join(cap.what.factors)}": int(value(cap.what)[0]) - cap.limit for cap in caps_of(setup)}
    time = max(-(-costs[part] // rate) for part, rate in roof(setup.mesh, "time").items())
    return costs | {"time": time}, over


def cycles_of(layer: Layer, machine: Machine, choices: Sequence[Choice]) -> list[int]:
    """Return the cycles of the PEs for well-formed choices that share and keep the same."""
    setup = setup_of(layer, machine, choices[0].share, choices[0].keep)
    cycles: list[int] = _priced(setup, choices)(linear_of(setup)["cycles"]).tolist()
    return cycles


def fit(layer: Layer, machine: Machine, choices: Sequence[Choice]) -> list[bool]:
    """Return which of some well-formed choices that share and keep the same fit in all buffers."""
    setup = setup_of(layer, machine, choices[0].share, choices[0].keep)
    value = _priced(setup, choices)
    fitting: list[bool] = np.all([value(cap.what) <= cap.limit for cap in caps_of(setup)], axis=0).tolist()
    return fitting


def _well_formed(setup: Setup, choice: Choice) -> None:
    """Raise InputError for what no option stands for."""
    workload, mesh = setup.ndrange, setup.mesh
    where = f"layer {setup.layer.name}"
    if len(choice.tile) != len(DIMS) or len(choice.vector) != len(DIMS):
        raise InputError(f"{where}: tile and vector need a number for each of {', '.join(DIMS)}")
    for d, t, lanes in zip(DIMS, choice.tile, choice.vector, strict=True):
        if not 1 <= t <= workload.sizes[d]:
            raise InputError(f"{where}: T_{d.upper()} {t} must be 1..{workload.sizes[d]}")
        if lanes < 1 or lanes & (lanes - 1) or (lanes > 1 and d in workload.temporal):
            raise InputError(f"{where}: P_{d.upper()} {lanes}: a power of two is needed, and 1 for indices summed over")
    if prod(choice.vector) != mesh.pes:
        raise InputError(f"{where}: PEs {choice.vector}: their product must be {mesh.pes}")
    if choice.share not in SHARES or choice.keep not in KEEPS:
        raise InputError(f"{where}: share {choice.share!r}, keep {choice.keep!r} are unknown")
    whole = all(choice.tile[DIMS.index(d)] == workload.sizes[d] for d in workload.temporal)
    if choice.keep != "none" and not whole:
        raise InputError(f"{where}: keep {choice.keep} needs a tile with all of {', '.join(sorted(workload.temporal))}")
    sides = {"teu": (workload.parallel, workload.parallel), "systolic": (tuple(workload.temporal), ("m",))}
    allowed = sides.get(mesh.kind, (("",), ("",)))
    if choice.rows not in allowed[0] or choice.cols not in allowed[1]:
        raise InputError(f"{where}: rows {choice.rows!r}, cols {choice.cols!r} are not for this machine")
    if mesh.kind == "row_stationary" and (choice.tile[6] < workload.sizes["i"] or choice.tile[7] < workload.sizes["j"]):
        raise InputError(f"{where}: PEs hold whole kernel rows: T_I and T_J must be {workload.sizes['i']}, ...")
    if choice.filters > choice.tile[2] or choice.channels > choice.tile[3] or min(choice.filters, choice.channels) < 1:
        raise InputError(f"{where}: filters and channels of a PE must be 1..T_M and 1..T_N")
    if mesh.kind != "row_stationary" and (choice.filters, choice.channels) != (1, 1):
        raise InputError(f"{where}: only row_stationary PEs hold several filters and channels")
