"""Mesh: the decisions and pins, the price of one choice in closed form, and what it takes of every buffer.

**Price.** An example (Fig. 2 of the source): 4x4 times 4x4 on 2x2 units with tiles of 2x2 results. Each operand is read
once, 16 elements, and 16 results are written: 48 elements. Without FIFOs each operand is read twice: 80.

Sets
    g in G      groups of indices, as in `formulations.mesh.space`; a choice is one option of each
Given
    t[g, k]     terms of that option (`formulations.mesh.tables`); factors f and constants c of measures and buffers
Derived
    dram, glb   ``c + sum_k f[k] * product_g t[g, k]`` [bytes]; cycles likewise
    time        ``max(cycles, ceil(dram / dram rate), ceil(glb / glb rate))`` [cycles], rates in bytes per cycle: the
                roofline
    over        for every buffer the same sum less its size [bytes]; the choice fits if none is above 0

The same tables are searched, so a search cannot price a plan otherwise; `hwmodels.mesh` counts it without them.

**Decisions**: names, values, and what may be minimised (`formulations.mesh` has the model). Pins that no plan on a
machine can keep, whatever the layer, are refused before anything is searched (`check_pins`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from formulations.clock import ENDLESS, Clock
from formulations.mesh.tables import Columns, Linear, Setup, caps_of, linear_of, roof, terms_of, up
from formulations.pins import Decision, Pins
from hwmodels.schedule import SHARES, Choice
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.machine.mesh import LARGEST
from instances.network.workload import DIMS, Layer, refuse_long

#: What may be minimised, with units.
MEASURES: dict[str, str] = {"dram": "bytes", "glb": "bytes", "time": "ticks"}
KEEPS = ("none", "IN", "W")
#: Decisions that only some kinds of machines have.
ONLY: dict[str, tuple[str, ...]] = {
    "P": ("teu",), "cols": ("teu",), "share": ("teu",), "rows": ("teu", "systolic"), "filters": ("row_stationary",),
    "channels": ("row_stationary",),
}  # fmt: skip

_UPPER = {d: d.upper() for d in DIMS}
#: What may be pinned.
DECISIONS: dict[str, Decision] = {
    **{f"T_{u}": Decision(f"tile along {d}") for d, u in _UPPER.items()},
    **{f"P_{u}": Decision(f"PEs of a unit along {d}, a power of two") for d, u in _UPPER.items()},
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


Objects = npt.NDArray[np.object_]


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
        columns[f"T_{up(d)}"] = [c.tile[at] for c in choices]
        columns[f"P_{up(d)}"] = [c.vector[at] for c in choices]
        columns[f"S_{up(d)}"] = [int(c.rows == d) + (2 if c.cols == d and cols else 0) for c in choices]
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

    Raises
    ------
    InputError
        If the choice is malformed.
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
            raise InputError(f"{where}: T_{up(d)} {t} must be 1..{workload.sizes[d]}")
        if lanes < 1 or lanes & (lanes - 1) or (lanes > 1 and d in workload.temporal):
            raise InputError(f"{where}: P_{up(d)} {lanes}: a power of two is needed, and 1 for indices summed over")
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
