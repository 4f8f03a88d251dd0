"""Buffers of one memory as tables: sections of time, bytes, alignments, fixed addresses, and who shares no bank.

**Tables** (`Packing`) of whole numbers are what the search for addresses reads:

    boxes   (buffers, 8)  columns `BEGIN` .. `AFTER` below
    high    (..)          bytes that buffer b takes in section s, at ``boxes[b, START] + s - boxes[b, BEGIN]``
    links   (.., 2)       buffers that share no bank with b, in rows ``boxes[b, FIRST]`` to before ``boxes[b, AFTER]``,
                          and the most bytes that they take while b takes some, too
    limits  (4,)          `CAPACITY`, `BANK` bytes, `NODES` that were visited, the `MOST` nodes

`Split` is what the master of engine search decides, `Cut` what it learns from packing. `Block` has bytes on chip by
time, as those who write C count them: a size for every time, and what may be shared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Final

import numpy as np
from numpy.typing import NDArray

from instances.network.buffers import Buffer, Gap

Ints = NDArray[np.int64]
#: Columns of boxes: sections, the begin of its bytes, the most of them, what its address is a multiple of, the address
#: that it has to have (-1: none), and the rows of its links.
BEGIN: Final = 0
END: Final = 1
START: Final = 2
SIZE: Final = 3
ALIGN: Final = 4
FIXED: Final = 5
FIRST: Final = 6
AFTER: Final = 7
CAPACITY: Final = 0
BANK: Final = 1
NODES: Final = 2
MOST: Final = 3


@dataclass(frozen=True)
class Packing:
    """Buffers to be placed in one memory.

    Sections are the times that matter: between two of them something has ended and something else has begun since.
    Whatever overlaps at any time overlaps in a section.
    """

    buffers: Sequence[Buffer]
    partners: Mapping[int, Sequence[int]]
    """By number the buffers that share no bank with it at one time."""
    bank_bytes: int

    @cached_property
    def exact(self) -> bool:
        """Whether every extent begins at the first byte of its buffer: else tables count the bytes below it, too."""
        return all(extent.low == 0 for buffer in self.buffers for extent in buffer.extents())

    @cached_property
    def sections(self) -> Sequence[tuple[int, int]]:
        """Begin and end of every section, in the order of time."""
        extents = [extent for buffer in self.buffers for extent in buffer.extents()]
        begins, ends = {e.lower for e in extents}, {e.upper for e in extents}
        found, begun = list[tuple[int, int]](), 0
        grown = False
        for time in sorted(begins | ends):
            if time in ends and grown:
                found.append((begun, time))
                grown = False
            if time in begins:
                begun, grown = time, True
        return found

    @cached_property
    def unit(self) -> int:
        """What all addresses, and so all peaks, may be multiples of: the least ones are sums of these."""
        sizes = [bytes_ for buffer in self.buffers for extent in buffer.extents() for bytes_ in extent[2:]]
        others = [b.alignment for b in self.buffers if b.alignment > 1] + [b.offset or 0 for b in self.buffers]
        banks = [self.bank_bytes] if self.linked else []
        return gcd(*sizes, *others, *banks) or 1

    @cached_property
    def linked(self) -> bool:
        """Whether there are buffers that share no bank."""
        return any(self.partners.values())

    @cached_property
    def _shares(self) -> Sequence[Mapping[int, int]]:
        """By buffer its bytes, counted from its first one, in every section where it takes some."""
        starts, found = np.array([begin for begin, _ in self.sections]), []
        for buffer in self.buffers:
            shares = dict[int, int]()
            for extent in buffer.extents():
                first = int(np.searchsorted(starts, extent.lower, side="right")) - 1
                for s in range(max(first, 0), len(starts)):
                    begin, end = self.sections[s]
                    if begin >= extent.upper:
                        break
                    if end > extent.lower:
                        shares[s] = max(extent.high, shares.get(s, 0))
            found.append(shares)
        return found

    def tables(self, order: Sequence[int] | Ints) -> tuple[Ints, Ints, Ints]:
        """Return boxes, bytes and links of the buffers in an order, as `formulations.placement.explore` reads them."""
        boxes = np.zeros((len(order), 8), dtype=np.int64)
        high, links, number = list[int](), list[tuple[int, int]](), {int(b): k for k, b in enumerate(order)}
        for k, b in enumerate(map(int, order)):
            buffer, shares = self.buffers[b], self._shares[b]
            boxes[k, [BEGIN, END]] = min(shares), max(shares) + 1
            boxes[k, [START, SIZE]] = len(high), max(shares.values()) // self.unit
            boxes[k, ALIGN] = max(1, buffer.alignment // self.unit)
            boxes[k, FIXED] = -1 if buffer.offset is None else buffer.offset // self.unit
            high += [shares.get(s, 0) // self.unit for s in range(min(shares), max(shares) + 1)]
            boxes[k, FIRST] = len(links)
            for other in self.partners.get(b, ()):
                if common := [self._shares[other][s] for s in shares if s in self._shares[other]]:
                    links.append((number[other], max(common) // self.unit))
            boxes[k, AFTER] = len(links)
        rows = np.array(links, dtype=np.int64).reshape(-1, 2)
        return boxes, np.array(high, dtype=np.int64), np.ascontiguousarray(rows)

    @cached_property
    def alive(self) -> Sequence[Sequence[tuple[Buffer, int]]]:
        """The buffers of every section, and the bytes that each takes there."""
        extents = [(buffer, extent) for buffer in self.buffers for extent in buffer.extents()]
        return [
            [(buffer, e.high - e.low) for buffer, e in extents if e.lower < end and begin < e.upper]
            for begin, end in self.sections
        ]

    @cached_property
    def load(self) -> Ints:
        """Bytes taken in every section, of shape (sections,)."""
        return np.array([sum(size for _, size in alive) for alive in self.alive], dtype=np.int64)

    @cached_property
    def least(self) -> int:
        """No addresses reach less: the most bytes at one time, and the tops of fixed buffers."""
        tops = [b.offset + b.size for b in self.buffers if b.offset is not None]
        return max([int(self.load.max(initial=0)), *(b.size for b in self.buffers), *tops], default=0)

    def keys(self, letters: str) -> Ints:
        """What buffers are ordered by, of shape (letters, buffers): T, W, A (`formulations.placement.search`)."""
        width = np.array([sum(e.upper - e.lower for e in b.extents()) for b in self.buffers], dtype=np.int64)
        area = [sum((e.upper - e.lower) * e.high for e in b.extents()) for b in self.buffers]
        known = {"T": np.full(len(width), -1, dtype=np.int64), "W": width, "A": np.array(area, dtype=np.int64)}
        return np.stack([known[letter] for letter in letters])

    def order(self, letters: str) -> Ints:
        """The numbers of the buffers, the largest first."""
        sums = np.zeros(len(self.sections), dtype=np.int64)
        for shares in self._shares:
            for s, number in shares.items():
                sums[s] += number
        total = np.array([max(sums[s] for s in shares) for shares in self._shares], dtype=np.int64)
        order: Ints = np.lexsort([-np.where(row < 0, total, row) for row in reversed(self.keys(letters))])
        return order

    def parts(self) -> list[Packing]:
        """Those that have nothing to do with each other: no buffer of one lives when one of another does."""
        begun = sorted(range(len(self.buffers)), key=lambda b: self.buffers[b].lower)
        groups, end = list[list[int]](), -1
        for b in begun:
            if self.buffers[b].lower >= end:
                groups.append([])
            groups[-1].append(b)
            end = max(end, self.buffers[b].upper)
        return [self.of(group) for group in groups]

    def of(self, numbers: Sequence[int]) -> Packing:
        """Some of the buffers."""
        place = {b: k for k, b in enumerate(numbers)}
        partners = {place[b]: [place[o] for o in self.partners.get(b, ()) if o in place] for b in numbers}
        return Packing([self.buffers[b] for b in numbers], partners, self.bank_bytes)


@dataclass(frozen=True)
class Cut:
    """Buffers that take `least` bytes of a memory if they are all there; None: they cannot all be there."""

    memory: str
    buffers: frozenset[str]
    least: int | None


@dataclass(frozen=True)
class Split:
    """What the master decides: the buffers in every memory, and the bytes that it thinks they need."""

    inside: Mapping[str, Sequence[str]]
    tops: Mapping[str, int]


@dataclass(frozen=True)
class Block:
    """A buffer: bytes by time, one after the other from `begin` on, at one address all the time."""

    name: str
    begin: int
    sizes: tuple[int, ...]

    @property
    def end(self) -> int:
        """The time after the last one."""
        return self.begin + len(self.sizes)

    def buffer(self, *memories: str) -> Buffer:
        """The same with gaps where it takes less than its most."""
        size, gaps = max(self.sizes), list[Gap]()
        for time, number in enumerate(self.sizes, self.begin):
            if number < size:
                window = (0, number) if number else None
                if gaps and (gaps[-1].upper, gaps[-1].window) == (time, window):
                    gaps[-1] = gaps[-1].model_copy(update={"upper": time + 1})
                else:
                    gaps.append(Gap(lower=time, upper=time + 1, window=window))
        return Buffer(
            name=self.name, lower=self.begin, upper=self.end, size=size, gaps=tuple(gaps), memories=memories
        )  # fmt: skip
