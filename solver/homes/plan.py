"""What a plan says about homes: every map and all weights of the network with the memory where each lies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from formulations.homes.places import Chosen, Item, Places, Table
from solver.plan import Frozen

Natural = Annotated[int, Field(ge=0)]


class HomeItem(Frozen):
    """A map, or the weights of a layer."""

    name: str
    bytes: Natural
    first: Natural
    last: Natural
    """`first`, `last`: the operators between which it is there."""
    weights: bool
    homes: Annotated[tuple[str, ...], Field(min_length=1)]
    """Where it may lie, by the machine and the pins."""
    home: str | None
    """Where it lies; None where there is no plan."""


class LayerHomes(Frozen):
    """The items (by number) that the operands of a layer are."""

    layer: str
    operands: dict[str, Natural]


class HomesPlan(Frozen):
    """Homes of a whole network."""

    items: tuple[HomeItem, ...]
    ties: tuple[tuple[Natural, Natural], ...]
    """Items that are read together, as inputs of one sum."""
    layers: tuple[LayerHomes, ...]
    peaks: dict[str, Natural]
    """The most bytes at a time in every memory off the chip."""

    @classmethod
    def of(cls, places: Places, chosen: Chosen | None) -> HomesPlan:
        """What a plan says of these homes."""
        homes: Sequence[str | None] = chosen or [None] * len(places.items)
        return cls(
            items=tuple(
                HomeItem(
                    name=item.name, bytes=item.bytes, first=item.first, last=item.last, weights=item.weights,
                    homes=item.homes, home=home,
                )
                for item, home in zip(places.items, homes, strict=True)
            ),
            ties=places.ties,
            layers=tuple(LayerHomes(layer=t.layer, operands=dict(t.operands)) for t in places.tables),
            peaks={name: size for name, (size, _) in places.peaks(chosen).items()} if chosen else {},
        )  # fmt: skip

    def places(self, rooms: dict[str, int]) -> Places:
        """The instance that was solved, without values."""
        items = [Item(i.name, i.bytes, i.first, i.last, i.homes, i.weights) for i in self.items]
        tables = [Table(one.layer, one.operands, {}) for one in self.layers]
        return Places(tuple(items), self.ties, rooms, tuple(tables))

    @property
    def chosen(self) -> Chosen | None:
        """The homes, None where there is no plan."""
        found = tuple(item.home for item in self.items if item.home is not None)
        return found if len(found) == len(self.items) else None
