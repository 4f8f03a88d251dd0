"""Where the operands of a layer lie off the chip, on machines with several memories there (`Machine.off_chip`).

Example: weights in flash, maps in SRAM: ``{"IN": "sram", "W": "flash", "OUT": "sram"}``. The rule

* a layer has one home for each operand, among those that the machine allows;
* the bias lies where W lies, partial sums where OUT lies; all inputs of a sum lie in one memory;
* a W that is a feature map itself (the product of two activations) may lie where IN may.

Once the homes are settled a machine prices every row of counts (IN, W, OUT, PSUM_READ, PSUM_WRITE) with the transfer of
its home: ``ticks = sum over rows of price(home(row), counts(row))``, ``energy = sum over rows of byte_fj(home(row)) *
bytes(row) + mac_fj * MACs``.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from hwmodels.outcome import Counts
from hwmodels.schedule import Nest
from hwmodels.transfer import ticks
from instances.errors import InputError
from instances.machine.machine import Machine, OffChip, Transfer
from instances.network.workload import Layer


def operand_of(row: str) -> str:
    """The operand that a row of counts moves: OUT for partial sums, W for the bias."""
    return {"IN": "IN", "W": "W", "BIAS": "W"}.get(row, "OUT")


def allowed(layer: Layer, machine: Machine) -> dict[str, tuple[str, ...]]:
    """The memories where each operand of a layer may lie; nothing on machines without `off_chip`."""
    if not machine.off_chip:
        return {}
    activation = layer.weights == "activation"
    return {op: machine.homes["IN" if op == "W" and activation else op] for op in layer.operands}


def assignments(layer: Layer, machine: Machine) -> tuple[dict[str, str], ...]:
    """All homes that a layer may have, the preferred names first; one empty assignment without `off_chip`."""
    may = allowed(layer, machine)
    return tuple(dict(zip(may, names, strict=True)) for names in product(*may.values()))


def machine_with_homes(layer: Layer, machine: Machine, homes: Mapping[str, str]) -> Machine:
    """The machine with these homes of a layer's operands.

    Raises InputError if an operand has no home, or one that the machine does not allow.
    """
    may = allowed(layer, machine)
    if not may:
        if homes:
            raise InputError(f"homes {_told(homes)}: machine {machine.name} has no off_chip memories to choose from")
        return machine
    for operand, names in may.items():
        if homes.get(operand) not in names:
            said = f"has no home, machine {machine.name} allows"
            if operand in homes:
                said = f"may not lie in {homes[operand]}, machine {machine.name} allows"
            raise InputError(f"layer {layer.name}: {operand} {said} {' or '.join(names)}")
    if set(homes) - set(may):
        raise InputError(f"layer {layer.name}: homes {_told(homes)} name an operand that it does not have")
    rest = {op: names[:1] for op, names in machine.homes.items()}
    return machine.model_copy(update={"homes": {**rest, **{op: (name,) for op, name in homes.items()}}})


def housed(layer: Layer, machine: Machine, nest: Nest) -> Machine:
    """The machine with the homes that a nest states; a nest without any needs a machine that leaves no choice.

    Raises InputError as `machine_with_homes` does, or if there is a choice.
    """
    only, *others = [dict(nest.homes)] if nest.homes else assignments(layer, machine)
    if others:
        raise InputError(f"layer {layer.name}: the nest says no homes, machine {machine.name} leaves a choice")
    return machine_with_homes(layer, machine, only)


def repriced(machine: Machine, **prices: int | str) -> Machine:
    """The same machine with other prices, such as ``burst_ticks=0``, in all memories off the chip."""

    def with_prices(owner: Machine | OffChip) -> dict[str, Transfer]:
        return {"transfer": owner.transfer.model_copy(update=prices)}

    if not machine.off_chip:
        return machine.model_copy(update=with_prices(machine))
    memories = tuple(memory.model_copy(update=with_prices(memory)) for memory in machine.off_chip)
    return machine.model_copy(update={"off_chip": memories})


def ticks_of(machine: Machine, rows: Mapping[str, Counts]) -> int:
    """The price of all rows, each in its home."""
    return sum(ticks(machine.transfer_of(operand_of(row)), counts) for row, counts in rows.items())


def energy_of(layer: Layer, machine: Machine, rows: Mapping[str, Counts]) -> int:
    """Femtojoules of the bytes of all rows, each in its home, and of the MACs."""
    moved = sum(machine.byte_fj_of(operand_of(row)) * counts.bytes for row, counts in rows.items())
    return moved + machine.mac_fj * layer.macs


def _told(homes: Mapping[str, str]) -> str:
    return ", ".join(f"{operand}={name}" for operand, name in homes.items())
