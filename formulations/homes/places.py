"""The instance of problem homes: items, where they may lie, and what layers cost then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product

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
