"""The decisions of F3 mesh: names, values, and what may be minimised (`formulations.mesh` has the model).

Pins that no plan on a machine can keep, whatever the layer, are refused before anything is searched.
"""

from __future__ import annotations

import numpy as np

from formulations.pins import Decision, Pins
from hwmodels.schedule import SHARES
from instances.errors import InputError
from instances.machine import Machine
from instances.workload import DIMS

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
