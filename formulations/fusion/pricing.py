"""The options of one group that may be best, with the bytes that each loads in every amount of room.

Whole rows are priced for all strip heights. Strips of parts of rows need more visits and more halo; they are priced
exactly only where a glimpse says that they may be better: the bytes on chip in one visit in the middle, which no peak
is below. An option is dominated, and left out, if another one of the group computes and reads no more, has no higher
peak whatever maps lie on chip anyway, and runs no layer in more visits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from formulations.fusion.groups import Group
from formulations.fusion.options import NEVER, Option, Weights
from formulations.fusion.strips import Ints, Mode, Strips, glimpse, peaks, strips

KEPT: tuple[Mode, ...] = ("lead", "retain")
MODES: tuple[Mode, ...] = (*KEPT, "recompute")
#: Groups compute at most so many times the MACs of their layers once.
MOST_AGAIN = 2


def parts_of(width: int) -> list[int]:
    """Widths of parts of rows that are tried: for 2, 4, 8, ... steps the least."""
    return sorted({-(-width // 2**k) for k in range(1, width.bit_length())} - {width}, reverse=True)


@dataclass(frozen=True, eq=False)
class Priced:
    """An option: weights loaded by classes and banks, bytes read by store and level, MACs."""

    option: Option
    table: Ints
    reads: dict[int, Ints]
    macs: int

    @property
    def fits(self) -> bool:
        """Whether there is room for it at all."""
        return bool(self.table.min() < NEVER)

    @property
    def again(self) -> bool:
        """Whether it computes something again."""
        return "recompute" in (self.option.rows, self.option.columns)


@dataclass(frozen=True, eq=False)
class Pricing:
    """A group on a machine.

    Attributes
    ----------
    stores : tuple of int
        Those that may lie on chip all the time.
    levels : dict of ndarray
        For every outside store the rows on chip at each level.
    room : ndarray (B + 1,)
        Bytes of every number of banks.
    tall : list of int
        The strip heights to try.
    modes : tuple of str
    """

    group: Group
    weights: Weights
    stores: tuple[int, ...]
    levels: dict[int, Ints]
    room: Ints
    tall: list[int]
    modes: tuple[Mode, ...]

    def options(self) -> Iterator[Priced]:
        """Yield the options that fit and that no other one dominates, those of whole rows first."""
        width = self.group.net.layers[self.group.last].c
        downs = [down for mode in self.modes if (down := strips(self.group, "rows", mode, self.tall)) is not None]
        whole = strips(self.group, "columns", "lead", [width])
        if whole is None:
            return
        known: list[_Point] = []
        for down in downs:
            peak = peaks(self.group, down, whole, self.stores)[:, :, 0]
            for i in range(len(down.sizes)):
                yield from self._taken(known, down, whole, i, 0, peak[:, i])
        narrow = parts_of(width)
        for mode in self.modes if narrow else ():
            across = strips(self.group, "columns", mode, narrow)
            for down in downs if across is not None else ():
                assert across is not None
                for i, j in self._promising(known, down, across):
                    one, two = down.only(i), across.only(j)
                    yield from self._taken(known, one, two, 0, 0, peaks(self.group, one, two, self.stores)[:, 0, 0])

    def _promising(self, known: Sequence[_Point], down: Strips, across: Strips) -> Iterator[tuple[int, int]]:
        """Yield sizes that a glimpse does not rule out, those with the fewest visits first."""
        count = len(self.group.layers)
        peak = glimpse(self.group, down, across, self.stores)
        fewest = down.active[:count].min(axis=0)[:, None] * across.active[:count].min(axis=0)[None, :]
        macs = np.einsum("k,ki,kj->ij", np.array(self._per_pixel), down.computed[:count], across.computed[:count])
        good = (peak.min(axis=0) <= self.room[-1]) & (macs <= MOST_AGAIN * self._once)
        for point in known:
            good &= ~((point.peak[:, None, None] <= peak).all(axis=0) & (max(point.visits) <= fewest))
        places = np.argwhere(good)
        for i, j in places[np.argsort(fewest[good], kind="stable")]:
            yield int(i), int(j)

    def _taken(
        self, known: list[_Point], down: Strips, across: Strips, i: int, j: int, peak: Ints
    ) -> Iterator[Priced]:  # fmt: skip
        """The option, if it fits and is not dominated."""
        count = len(self.group.layers)
        visits = tuple(int(n) for n in down.active[:count, i] * across.active[:count, j])
        computed = down.computed[:count, i] * across.computed[:count, j]
        macs = sum(each * int(n) for each, n in zip(self._per_pixel, computed, strict=True))
        again = "recompute" in (down.mode, across.mode)
        if peak.min() > self.room[-1] or macs > MOST_AGAIN * self._once:
            return
        if any(p.dominates(peak, visits) for p in known):
            return
        if not again:
            known.append(_Point(peak, visits))
        table, axes = self.weights.loaded(visits, self.room - peak[:, None]), len(self.stores)
        table = table.reshape(*(2,) * axes, len(self.room)).transpose(*range(axes - 1, -1, -1), axes)
        option = Option(down.sizes[i], across.sizes[j], down.mode, across.mode, self.group.twice)
        priced = Priced(option, table, self._reads(down, across, i, j), macs)
        if priced.fits:
            yield priced

    @cached_property
    def _per_pixel(self) -> list[int]:
        return [x.macs // (x.r * x.c) for x in (self.group.net.layers[t] for t in self.group.layers)]

    @cached_property
    def _once(self) -> int:
        return sum(self.group.net.layers[t].macs for t in self.group.layers)

    def _reads(self, down: Strips, across: Strips, i: int, j: int) -> dict[int, Ints]:
        """Bytes that are read of every outside store, by level."""
        reads: dict[int, Ints] = {}
        for k, stream in enumerate(self.group.streams):
            if stream.outside:
                read = down.beyond(k, self.levels[stream.store])[i] * int(across.computed[k, j]) * stream.pixel
                reads[stream.store] = reads.get(stream.store, 0) + read
        return reads


@dataclass(frozen=True, eq=False)
class _Point:
    """What an option that computes nothing again takes: its peak for every subset of stores on chip, its visits."""

    peak: Ints
    visits: tuple[int, ...]

    def dominates(self, peak: Ints, visits: tuple[int, ...]) -> bool:
        """Whether another option takes no less of anything."""
        return bool((self.peak <= peak).all()) and all(a <= b for a, b in zip(self.visits, visits, strict=True))
