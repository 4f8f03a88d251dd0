"""Replay on machines with several memories off the chip: where every row of counts goes, by looking it up.

Independent of `hwmodels.nest.homes`: the schedule says where an operand lies; whether it may is looked up in the
machine.
"""

from __future__ import annotations

from collections.abc import Mapping

from hwmodels.outcome import Counts
from hwmodels.schedule import Nest
from instances.errors import InputError
from instances.machine import Machine, OffChip, Transfer
from instances.workload import Layer

__all__ = ["bound_homes", "burst_at", "energy_at", "transfer_at"]

_OPERAND = {"IN": "IN", "SLID": "IN", "W": "W", "OUT": "OUT", "PSUM": "OUT"}


def bound_homes(layer: Layer, machine: Machine, nest: Nest) -> Machine:
    """Return the machine with every operand at the home that the schedule states.

    Raises
    ------
    InputError
        If a home is missing, does not exist, is not allowed there, or cannot be written.
    """
    stated = dict(nest.homes)
    if not machine.off_chip:
        if stated:
            raise InputError(f"nest: states homes, machine {machine.name} has one memory off the chip")
        return machine
    if not stated and all(len(names) == 1 for names in machine.homes.values()):
        return machine
    known = {memory.name: memory for memory in machine.off_chip}
    homes: dict[str, tuple[str, ...]] = {operand: (names[0],) for operand, names in machine.homes.items()}
    for operand in layer.operands:
        name = stated.pop(operand, None)
        row = "IN" if operand == "W" and layer.weights == "activation" else operand
        options = next(names for op, names in machine.homes.items() if op == row)
        if name is None or name not in known or name not in options:
            raise InputError(f"nest: {operand} lies in {name}, machine {machine.name} allows {' or '.join(options)}")
        if operand == "OUT" and not known[name].writable:
            raise InputError(f"nest: results cannot be written to {name} of machine {machine.name}")
        homes[operand] = (name,)
    if stated:
        raise InputError(f"nest: homes of {', '.join(stated)}, which layer {layer.name} does not have")
    return machine.model_copy(update={"homes": homes})


def _memory(machine: Machine, row: str) -> OffChip | None:
    if not machine.off_chip:
        return None
    ((name,),) = [names for operand, names in machine.homes.items() if operand == _OPERAND[row]]
    return next(memory for memory in machine.off_chip if memory.name == name)


def transfer_at(machine: Machine, row: str) -> Transfer:
    """The prices of the memory that a row of counts moves to or from."""
    memory = _memory(machine, row)
    return machine.transfer if memory is None else memory.transfer


def burst_at(machine: Machine, row: str) -> int:
    """Bytes of a burst of that memory where its windows have addresses, else 0."""
    price = transfer_at(machine, row)
    return price.burst_bytes if price.burst_count == "address" else 0


def energy_at(machine: Machine, rows: Mapping[str, Counts]) -> int:
    """Femtojoules of all bytes, memory by memory."""
    total = 0
    for row, counts in rows.items():
        memory = _memory(machine, row)
        total += counts.bytes * (machine.byte_fj if memory is None else memory.byte_fj)
    return total
