"""Homes: in which memory off the chip every feature map and every layer's weights of a network lie.

A machine with SRAM and flash off the chip, say: maps fit the SRAM, and so do the weights of some layers. Which?

Sets
    x in X  items: the maps of a network (what is concatenated is one) and the weights (with biases) of every layer
    h in H  memories off the chip; H[x] those where x may lie, by the machine and the pins
    t in T  layers that are planned; items[t] those that its operands are: IN, W (if it has one), OUT
    A[t]    assignments: a home in H[x] for every x of items[t]
    s in S  times: the operators at which some item is made
Given
    bytes[x]; first[x], last[x] between which x is there (weights: always); room[h] bytes, or no end of them
    value[t, a, k]: measure k (in the order asked for) of the best plan of layer t with homes a         (integers)
Variables
    home[x] in H[x]
Objective
    min lexicographically, for k = 1, 2, ..: sum_t value[t, (home[x] for x in items[t]), k]; then the sum over x of the
    place of home[x] among H[x], so that what nobody asks for lies where the machine prefers it
Constraints
    (ONE)   every item has one home: the result of a layer lies where all its readers find it
    (TIE)   home[x] = home[y] for inputs x, y of one sum, which is priced with one home for IN
    (ROOM)  sum over x with home[x] = h and first[x] <= s <= last[x] of bytes[x] <= room[h] for all h, s
Why the sum of best plans is the best plan
    Once the homes are settled layers share nothing: of plans with these homes the best is the sum of each layer's best,
    in the first measure, then among these in the second, and so on. All homes are looked at.
Assumes
    One layer runs after the other in the network's order; weights are put in place before the first inference; a map
    lies in one memory whole. Fragmentation of a memory is not looked at.
Optimal means
    No plan of any layers' nests with any homes is better, if value is proven for every t, a; with bounds of the first
    measure in place of values the same model gives a bound of all plans.

Encodings: `formulations.homes.cp_sat`, `formulations.homes.milp`. Source: none; docs/off_chip.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product

__all__ = ["Chosen", "Item", "Places", "Table"]

#: Homes of the items, by number.
Chosen = tuple[str, ...]


@dataclass(frozen=True)
class Item:
    """A map, or the weights of a layer.

    Attributes
    ----------
    bytes, first, last : int
    homes : tuple of str
        H[x], the preferred one first.
    weights : bool
        Whether it is weights.
    """

    name: str
    bytes: int
    first: int
    last: int
    homes: tuple[str, ...]
    weights: bool = False


@dataclass(frozen=True)
class Table:
    """A planned layer: the items of its operands, and the measures of its best plan for their homes.

    Attributes
    ----------
    operands : dict of str to int
        IN, W (if there is one) and OUT -> item; of a sum the first of its inputs.
    values : dict of tuple of str to tuple of int
        By the homes of the operands, in their order; none where no plan is known.
    """

    layer: str
    operands: Mapping[str, int]
    values: Mapping[tuple[str, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Places:
    """One instance; `rooms` has the memories that are bounded."""

    items: tuple[Item, ...]
    ties: tuple[tuple[int, int], ...]
    rooms: Mapping[str, int]
    tables: tuple[Table, ...]

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

    def price(self, chosen: Chosen) -> tuple[int, ...] | None:
        """The measures of all layers together; None where some layer has no plan for these homes."""
        rows = [table.values.get(tuple(chosen[x] for x in table.operands.values())) for table in self.tables]
        found = [row for row in rows if row is not None]
        return tuple(map(sum, zip(*found, strict=True))) if len(found) == len(rows) else None

    def taste(self, chosen: Chosen) -> int:
        """The sum of the places of the homes among those allowed."""
        return sum(item.homes.index(name) for item, name in zip(self.items, chosen, strict=True))

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
