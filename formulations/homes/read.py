"""What is asked about homes: the items of a network and where they may lie, by the machine and the pins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from formulations.homes.places import Item, Places, Table
from formulations.pins import Pins
from instances.errors import InfeasibleError, InputError, choices
from instances.machine import Machine
from instances.network import Network
from instances.tensors import Tensors, Use, alone, tensors
from instances.workload import Layer

_OPERANDS = ("IN", "W", "OUT")


def check_home_pins(machine: Machine, pins: Pins) -> None:
    """Raise InputError if a pin names a home that the machine does not have."""
    names = [memory.name for memory in machine.off_chip]
    for pin in (pin for operand in _OPERANDS for pin in pins.of(f"home_{operand}")):
        if not names:
            raise InputError(f"pin {pin}: machine {machine.name} has one memory off the chip, without a name")
        if pin.value not in names:
            raise InputError(f"pin {pin}: machine {machine.name} has {choices(names)} off the chip")


def weight_bytes(layer: Layer, machine: Machine) -> int:
    """Bytes of the constant weights and the biases of a layer."""
    biases = layer.g * layer.m if layer.bias and "W" in layer.operands else 0
    weights = layer.g * layer.m * layer.n * layer.kh * layer.kw if layer.weights == "constant" else 0
    return weights * machine.w_bytes + biases * machine.bias_bytes


def places_of(target: Layer | Network, layers: Sequence[Layer], machine: Machine, pins: Pins) -> Places:
    """Return the items of all of a network, with tables (still without values) of the layers that are planned.

    Raises
    ------
    InputError
        If some item may lie nowhere.
    """
    found = alone(target) if isinstance(target, Layer) else tensors(target)
    planned = {layer.name for layer in layers}
    items = [*_maps(found, planned, machine, pins)]
    ties: list[tuple[int, int]] = []
    tables = []
    for use in found.uses:
        mine = use.layer.name in planned
        operands = {"IN": use.reads[0]}
        if "W" in use.layer.operands:
            operands["W"] = len(items) if use.weights is None else use.weights
            if use.weights is None:
                names = _pinned(machine.homes["W"], "W", pins, f"weights of {use.layer.name}") if mine else None
                size = weight_bytes(use.layer, machine)
                weights = f"{use.layer.name}.weights"
                items.append(Item(weights, size, 0, found.last, names or machine.homes["W"], weights=True))
        operands["OUT"] = use.writes
        if mine:
            ties += [(use.reads[0], other) for other in use.reads[1:]]
            tables.append(Table(use.layer.name, operands, {}))
    rooms = {memory.name: memory.bytes for memory in machine.off_chip if memory.bytes is not None}
    return Places(tuple(items), tuple(ties), rooms, tuple(tables))


def _maps(found: Tensors, planned: Iterable[str], machine: Machine, pins: Pins) -> Iterator[Item]:
    """The maps: where their makers and all their readers find them."""
    every = tuple(memory.name for memory in machine.off_chip)
    for number, one in enumerate(found.maps):
        names = machine.homes["OUT"] if one.elements else every
        for use in found.uses:
            for operand in _roles(use, number):
                rule = machine.homes["OUT" if operand == "OUT" else "IN"]
                names = tuple(name for name in names if name in rule)
                if not names:
                    raise InputError(
                        f"map {one.name}: {operand} of layer {use.layer.name} may lie in {choices(rule)} on machine "
                        f"{machine.name}, where nobody else who makes or reads it finds it"
                    )
                if use.layer.name in planned:
                    names = _pinned(names, operand, pins, f"map {one.name}")
        size = one.elements * machine.out_bytes + one.outside * machine.in_bytes
        yield Item(one.name, size, one.first, one.last, names)


def _roles(use: Use, number: int) -> Iterator[str]:
    """The operands of a layer that a map is."""
    if number in use.reads:
        yield "IN"
    if number == use.weights:
        yield "W"
    if number == use.writes:
        yield "OUT"


def _pinned(names: tuple[str, ...], operand: str, pins: Pins, what: str) -> tuple[str, ...]:
    """Those of some homes that the pins of an operand allow."""
    left = tuple(name for name in names if pins.allows(f"home_{operand}", name))
    if not left:
        demands = ", ".join(str(p) for op in _OPERANDS for p in pins.of(f"home_{op}"))
        raise InfeasibleError(f"{what} may lie in {choices(names)} only, pins {demands} leave none of these")
    return left
