"""Addresses of many small objects, each there from one step of a timeline to another.

Objects are placed in the order of their first steps, in what those leave that are there then. An object that finds no
gap as large as itself is cut: it consists of units (pixels, filters), and each of its parts has some of them. So there
is room as long as the bytes of every step are, but for gaps smaller than a unit. An example: in 6 bytes lie a in bytes
0..1, c in 4..5; d of two units of 2 bytes each comes when a has gone: a unit at 0, a unit at 2.

What stays longer than `spans` says is placed at the lowest address, the rest at the highest: some bounds are tried.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from instances.errors import InputError

Ints = NDArray[np.int64]
#: An address and so many units.
Part = tuple[int, int]
#: In steps, what is tried.
_SPANS = (0, 2, 5, 10, 20, 35, 50, 100, 200, 500, 2**40)


class NoAddresses(InputError):
    """What lies on chip fits by its bytes, and finds no addresses."""

    def __init__(self, message: str, step: int) -> None:
        super().__init__(message)
        self.step = step
        """The step that no order of objects that is tried gets beyond."""


def placed(size: Ints, unit: Ints, first: Ints, last: Ints, capacity: int) -> list[list[Part]] | int:
    """Return the parts of every object, none beyond the capacity; or the step that no order that is tried gets beyond.

    `size`: bytes, multiples of `unit`; `first`, `last`: steps; (N,) each.
    """
    span, found, far = last - first, None, 0
    for keys in ((-size, first), (-span, first), (size, first)):
        order = np.lexsort(keys).tolist()
        for most in _SPANS:
            made = _in_order(order, (size, unit, first, last), span >= most, capacity)
            if isinstance(made, int):
                far = max(far, made)
            elif found is None or _cuts(made) < _cuts(found):
                found = made
        if found is not None:
            return found
    return far


def most(size: Ints, first: Ints, last: Ints) -> Ints:
    """Return the bytes that are there in every step up to the last one; step 0 is none."""
    change = np.zeros(int(last.max(initial=0)) + 2, np.int64)
    np.add.at(change, first, size)
    np.subtract.at(change, last + 1, size)
    return np.cumsum(change)[:-1]


def _cuts(parts: Iterable[list[Part]]) -> int:
    return sum(len(some) - 1 for some in parts)


def _in_order(
    order: list[int], objects: tuple[Ints, Ints, Ints, Ints], low: NDArray[np.bool_], capacity: int
) -> list[list[Part]] | int:  # fmt: skip
    size, unit, first, last = (each.tolist() for each in objects)
    free, made = _Free(capacity), [list[Part]() for _ in size]
    ends = np.argsort(last, kind="stable").tolist()
    gone = 0
    for i in order:
        while last[ends[gone]] < first[i]:
            for address, number in made[ends[gone]]:
                free.give(address, address + number * unit[ends[gone]])
            gone += 1
        parts = free.take(size[i], unit[i], low=bool(low[i]))
        if parts is None:
            return int(first[i])
        made[i] = parts
    return made


class _Free:
    """The gaps, ascending."""

    def __init__(self, capacity: int) -> None:
        self.gaps = [(0, capacity)]

    def take(self, size: int, unit: int, *, low: bool) -> list[Part] | None:
        """Parts for an object: one, if a gap has room, else the largest gaps."""
        fits = [k for k, (begin, end) in enumerate(self.gaps) if end - begin >= size]
        if fits:
            begin, end = self.gaps[fits[0] if low else fits[-1]]
            return [(self._cut(begin if low else end - size, size), size // unit)]
        left, found = size // unit, list[tuple[int, int]]()
        for begin, end in sorted(self.gaps, key=lambda gap: gap[0] - gap[1]):
            number = min(left, (end - begin) // unit)
            if number:
                found.append((begin, number))
            left -= number
            if left == 0:
                return [(self._cut(begin, number * unit), number) for begin, number in sorted(found)]
        return None

    def _cut(self, address: int, size: int) -> int:
        """Take some bytes of a gap."""
        k = bisect(self.gaps, (address, 2**60)) - 1
        begin, end = self.gaps.pop(k)
        rest = [(begin, address), (address + size, end)]
        self.gaps[k:k] = [gap for gap in rest if gap[0] < gap[1]]
        return address

    def give(self, begin: int, end: int) -> None:
        """Some bytes are free again."""
        k = bisect(self.gaps, (begin, end))
        if k < len(self.gaps) and self.gaps[k][0] == end:
            end = self.gaps.pop(k)[1]
        if k and self.gaps[k - 1][1] == begin:
            k -= 1
            begin = self.gaps.pop(k)[0]
        self.gaps.insert(k, (begin, end))
