"""Joint plans on machines with several memories off the chip: one home for each operand, said by machine and pins.

Problem joint decides bytes, which are the same wherever they come from: there is nothing to choose. What is refused in
one line: homes that are open, energy that is not that of the bytes alone, and maps and weights that do not fit (all
maps are counted, also those whose rows stay on chip).
"""

from __future__ import annotations

from collections.abc import Sequence

from formulations.homes.read import check_home_pins, places_of
from formulations.pins import Pins
from instances.errors import InputError
from instances.machine import Machine
from instances.network import Network
from solver.homes.solve import fitting


def narrowed(machine: Machine, pins: Pins) -> Machine:
    """The machine with the homes that pins leave; raises InputError for those that it does not have."""
    check_home_pins(machine, pins)
    homes = {op: tuple(n for n in names if pins.allows(f"home_{op}", n)) for op, names in machine.homes.items()}
    for operand, names in homes.items():
        if not names:
            said = ", ".join(str(pin) for pin in pins.of(f"home_{operand}"))
            raise InputError(f"pin {said}: {operand} may lie in {' or '.join(machine.homes[operand])} only")
    return machine.model_copy(update={"homes": homes}) if homes else machine


def check_homes(network: Network, machine: Machine, objectives: Sequence[str]) -> None:
    """Raise InputError unless the homes are settled, fit, and do not matter to the objectives."""
    if not machine.off_chip:
        return
    for operand, names in machine.homes.items():
        if len(names) > 1:
            raise InputError(
                f"machine {machine.name}: this problem needs one home for each operand, {operand} may lie in "
                f"{' or '.join(names)}: pin home_{operand}={names[0]}, for example"
            )
    if "energy" in objectives and len({machine.byte_fj_of(operand) for operand in machine.homes}) > 1:
        raise InputError(f"machine {machine.name}: joint decides bytes, which take unlike energy here")
    products = [layer.name for layer in network.layers if layer.weights == "activation"]
    if products and machine.homes["W"] != machine.homes["IN"]:
        raise InputError(f"layer {products[0]}: both inputs are maps, which joint plans with W and IN in one home")
    fitting(places_of(network, network.layers, machine, Pins()), machine)
