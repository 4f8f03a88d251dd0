"""A memory of so many bytes in which a group is executed: who holds which of them, and the numbers in them.

Maps lie in it pixel by pixel, in any free bytes: an element of two bytes takes two, and its number lies in the first.
What is given back is overwritten with nonsense. Nothing is ever counted here: there are bytes, or there are none left.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
NONSENSE = 10**6 + 3


class Full(Exception):
    """Nothing is left."""


class Memory:
    """Bytes, those that are free last."""

    def __init__(self, size: int) -> None:
        self.values = np.full(size, NONSENSE, np.int64)
        self._free = np.arange(size)
        self._left = size
        self.most = 0
        """The most bytes that were ever taken."""

    @property
    def taken(self) -> int:
        """Bytes that are taken now."""
        return len(self.values) - self._left

    def take(self, count: int) -> Ints:
        """Take so many bytes; raises Full."""
        if count > self._left:
            raise Full(f"{self.taken:,} of {len(self.values):,} bytes are taken, {count:,} more are needed")
        self._left -= count
        self.most = max(self.most, self.taken)
        return self._free[self._left : self._left + count].copy()

    def give(self, places: Ints) -> None:
        """Give bytes back."""
        self.values[places] = NONSENSE
        self._free[self._left : self._left + places.size] = places.ravel()
        self._left += places.size


class Strip:
    """What of a map (elements of a pixel, rows, columns) lies in a memory, each element in so many bytes."""

    def __init__(self, memory: Memory, shape: Sequence[int], size: int) -> None:
        self.memory = memory
        self.places = np.full((*shape, size), -1, np.int64)

    @property
    def bytes(self) -> int:
        """Bytes that it takes."""
        return int((self.places >= 0).sum())

    def put(self, at: tuple[slice | Ints, slice, slice], values: Ints) -> None:
        """Write elements, in new bytes where they have none; raises Full."""
        places = self.places[at]
        missing = places < 0
        places[missing] = self.memory.take(int(missing.sum()))
        self.places[at] = places
        self.memory.values[places[..., 0]] = values

    def get(self, at: tuple[slice | Ints, slice, slice]) -> Ints:
        """Read elements; -1 does not hold any, and reads nonsense."""
        places = self.places[at][..., 0]
        if not self.memory.values.size:
            return np.full(places.shape, NONSENSE, np.int64)
        read: Ints = np.where(places >= 0, self.memory.values[places], NONSENSE)
        return read

    def holds(self, at: tuple[slice | Ints, slice, slice]) -> bool:
        """Whether all elements are there."""
        return bool((self.places[at] >= 0).all())

    def drop(self, elements: slice | Ints, pixels: npt.NDArray[np.bool_]) -> None:
        """Give some pixels back, of some elements."""
        mine = self.places[elements]
        gone = pixels[None, :, :, None] & (mine >= 0)
        if gone.any():
            self.memory.give(mine[gone])
            mine[gone] = -1
            self.places[elements] = mine
