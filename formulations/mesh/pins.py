"""Pins of F3 mesh that no plan on a machine can keep, whatever the layer: refused before anything is searched."""

from __future__ import annotations

import numpy as np

from formulations.mesh.choice import ONLY
from formulations.pins import Pins
from instances.errors import InputError
from instances.machine import Machine

__all__ = ["check_pins"]


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
