"""What is asked about homes: the items of a network, where they may lie, and what layers cost then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from formulations.pins import Pins
from instances.errors import InfeasibleError, InputError, choices
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.tasks import Tensors, Use, alone, tensors
from instances.network.workload import Layer

#: Homes of the items, by number.
Chosen = tuple[str, ...]
#: The measure that breaks ties: the places of the homes among those allowed.
TASTE = "places"


@dataclass(frozen=True)
class Item:
    """A map, or the weights of a layer."""

    name: str
    bytes: int
    first: int
    last: int
    homes: tuple[str, ...]
    """H[x], the preferred one first."""
    weights: bool = False
    """Whether it is weights."""


@dataclass(frozen=True)
class Table:
    """A planned layer: the items of its operands, and the measures of its best plan for their homes."""

    layer: str
    operands: Mapping[str, int]
    """IN, W (if there is one) and OUT -> item; of a sum the first of its inputs."""
    values: Mapping[tuple[str, ...], tuple[int, ...]]
    """By the homes of the operands, in their order; none where no plan is known."""


@dataclass(frozen=True)
class Places:
    """One instance."""

    items: tuple[Item, ...]
    ties: tuple[tuple[int, int], ...]
    rooms: Mapping[str, int]
    """Bytes of the memories that are bounded."""
    tables: tuple[Table, ...]
    measures: tuple[str, ...] = ()
    """Names of the measures in the tables."""

    @cached_property
    def times(self) -> tuple[int, ...]:
        """S: when the bytes in a memory may be the most."""
        return tuple(sorted({item.first for item in self.items}))

    def there(self, time: int) -> Iterator[int]:
        """The items that are there at a time."""
        return (x for x, item in enumerate(self.items) if item.first <= time <= item.last)

    def assignments(self, operands: Mapping[str, int]) -> Iterator[dict[str, str]]:
        """A[t]: the homes that operands may have, those of equal items equal."""
        numbers = tuple(dict.fromkeys(operands.values()))
        for names in product(*(self.items[x].homes for x in numbers)):
            home = dict(zip(numbers, names, strict=True))
            yield {operand: home[x] for operand, x in operands.items()}

    def costs(self, measure: str) -> list[dict[tuple[str, ...], int]]:
        """What the assignments of every layer cost."""
        k = self.measures.index(measure)
        return [{homes: value[k] for homes, value in table.values.items()} for table in self.tables]

    def peaks(self, chosen: Chosen) -> dict[str, tuple[int, int]]:
        """The most bytes in every memory, and when."""
        found: dict[str, tuple[int, int]] = {}
        for time in self.times:
            taken: dict[str, int] = {}
            for x in self.there(time):
                taken[chosen[x]] = taken.get(chosen[x], 0) + self.items[x].bytes
            for name, size in taken.items():
                if size > found.get(name, (0, 0))[0]:
                    found[name] = size, time
        return found

    def faults(self, chosen: Chosen) -> Iterator[str]:
        """Yield which constraints some homes break."""
        for item, name in zip(self.items, chosen, strict=True):
            if name not in item.homes:
                yield f"{item.name} may not lie in {name}, only in {' or '.join(item.homes)}"
        for x, y in self.ties:
            if chosen[x] != chosen[y]:
                yield f"{self.items[x].name} and {self.items[y].name} are read together, in {chosen[x]} and {chosen[y]}"
        for name, (size, time) in self.peaks(chosen).items():
            if size > self.rooms.get(name, size):
                yield self.overflow(chosen, name, time)

    def overflow(self, chosen: Chosen, name: str, time: int) -> str:
        """Say what does not fit a memory."""
        mine = [self.items[x] for x in self.there(time) if chosen[x] == name]
        weights = sum(item.bytes for item in mine if item.weights)
        maps = [item for item in mine if not item.weights and item.bytes]
        made = max(maps, key=lambda item: item.first).name if maps else "the begin"
        size = sum(item.bytes for item in mine)
        return (
            f"memory {name} off the chip: {size:,} bytes of {self.rooms[name]:,} "
            f"({weights:,} of weights, {size - weights:,} of the {len(maps)} maps alive at {made})"
        )


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
    weights = layer.weight_elements if layer.weights == "constant" else 0
    return weights * machine.w_bytes + biases * machine.bias_bytes


def places_of(target: Layer | Network, layers: Sequence[Layer], machine: Machine, pins: Pins) -> Places:
    """Return the items of all of a network, with tables (still without values) of the layers that are planned.

    Raises InputError if some item may lie nowhere.
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
