"""Stands in for the package of that name, which the simulator imports and which needs a compiler: as far as it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


class OrderedSet:
    """A set in the order in which things were added."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self._items = dict.fromkeys(items)

    def add(self, item: object) -> None:
        """Add one."""
        self._items[item] = None

    def update(self, items: Iterable[Any]) -> None:
        """Add some."""
        self._items.update(dict.fromkeys(items))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __getitem__(self, at: Any) -> Any:
        found = list(self._items)[at]
        return OrderedSet(found) if isinstance(at, slice) else found

    def __or__(self, other: Iterable[Any]) -> OrderedSet:
        return OrderedSet([*self._items, *other])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OrderedSet) and list(self) == list(other)

    __hash__ = object.__hash__

    def __copy__(self) -> OrderedSet:
        return OrderedSet(self._items)
