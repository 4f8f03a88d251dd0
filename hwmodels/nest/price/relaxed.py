"""Pieces that no loop can beat: lower bounds for every way to cut a dimension in pieces of free sizes.

Where candidate lists are not proven to hold an optimum, a pass over these says how far from it they may be. Let t be a
loop's largest piece (for IN: with at most u taps of the kernel).

* A range of n in pieces of at most t has at least ``ceil(n/t)`` of them; the runs of a piece of length x are at least
  ``ceil(x*inner/burst)`` bursts, so all together at least ``ceil(n*inner/burst)``, and one a piece; lanes alike.
* A window over a piece of t outputs and u taps is at least the smallest of all such windows in the map, and the
  largest window at least what is used, shared among as many windows as there can be. All windows together fetch each
  row that is used once; with the kernel whole, they overlap at all places where pieces meet, of which there are at
  least ``ceil(n/t) - 1``; with the kernel in p parts, each fetches at least what `hwmodels.nest.price.parts` says.
* Where the kernel is cut in parts of at most u taps, the window of a part is at least that of u taps which is clipped
  at the begin like the first and at the end like the last ones (`part_window`): rows are cut as for that window. The
  parts' windows overlap at a place away from the borders by ``sum (u_j-1)*D+1-S``, at least ``(K-p)*D + p - p*S``.

* Of pieces that are at most so large, as larger ones do not fit, bursts are those of the best sizes (`Bound.bursts`).
* A tile of rows, columns and kernel that takes ``ceil(size/macs)`` cycles is the largest there, of at least
  ``prod ceil(E/n)`` elements where n pieces are made of E (`least_cycles`).

Each of these is at or below the true figure for every cut whose largest piece rounds to the same number of pieces, so a
table of them is a lower bound (`hwmodels.nest.price.core` with `Choices.ideal`).

**Turns.** In lines, and at the turns of snake order, a window that moves along one axis fetches the rows that the one
before it does not have, on either side. The kernel whole, let windows be in the order of the map.

* Every row that is used is fetched once at least.
* Windows begin no earlier, and end no earlier, than those before them. One that begins before the next one and ends
  behind the one before it has a row that any other one lacks, so it fetches whenever it is moved to. A window that does
  not is *idle*: it begins with the map and so does the next one, or it ends with the map and so does the one before;
  of those that padding of p rows clips there are at most ``floor(p/S)``.
* A window that spans the map makes all others idle: where two are not, none spans it. And a row of the one axis is
  fetched while the other one's window is this or that one of those that are not idle, each time by itself: either the
  row is there when that window is moved to, which fetches a part of it, or it comes later. So there are at least as
  many runs along that row.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.parts import least_calls, least_rows
from hwmodels.nest.price.pieces import Pieces, Window, cut, windows

Mask = NDArray[np.bool_]


class Bound(Pieces):
    """Pieces of which bounds are known; none is larger than `most`, if that is known.

    `unsure` says of which chains (T,) some piece may span the extent: those count no runs.
    """

    most: Ints | None = None
    unsure: Mask | None = None

    def divided(self, extent: int) -> tuple[Ints, Ints]:
        """Elements, and pieces, of which bursts are counted along an axis of this extent, (T,) each."""
        return self.sum, self.number

    def within(self, most: int | Ints) -> Bound:
        """The same, none larger than `most` (of all chains, or of each)."""
        limited = copy(self)
        least = np.broadcast_to(most, self.number.shape)
        limited.most = least if self.most is None else np.minimum(self.most, least)
        return limited

    def bursts(self, total: Ints, number: Ints, inner_bytes: int, window: int) -> Ints:
        """A burst a piece, and what so many elements need in pieces that are not too large."""
        if self.most is None or not total.size or int(total.max()) * int(number.max()) > _COVERED:
            return np.maximum(number, -(-total * inner_bytes // window))
        found = np.zeros_like(total)
        for most in np.unique(self.most):
            at = self.most == most
            pieces, elements = np.maximum(number[at], 0), total[at]
            table = _covering(int(pieces.max()), int(elements.max()), max(1, int(most)), inner_bytes, window)
            found[at] = table[pieces, elements]
        return found


#: Pieces times elements up to which bursts are counted piece by piece.
_COVERED = 1 << 20


@lru_cache(maxsize=256)
def _covering(pieces: int, total: int, most: int, inner_bytes: int, window: int) -> Ints:
    """By numbers of pieces and of elements, from 0 on, the fewest bursts of as many or more of either.

    No piece is larger than `most`. Of c bursts a piece holds ``min(floor(c*window/inner_bytes), most)`` elements.
    """
    cost = np.arange(1, max(1, -(-min(most, total) * inner_bytes // window)) + 1)
    held = np.minimum(cost * window // inner_bytes, most)
    cost, held = cost[held > 0], held[held > 0]
    found = np.zeros((pieces + 1, total + 1), np.int64)
    for number in range(1, total + 1):
        found[0, number] = (cost + found[0, np.maximum(number - held, 0)]).min()
    left = np.maximum(np.arange(total + 1)[:, None] - held, 0)
    for number in range(1, pieces + 1):
        found[number] = (cost + found[number - 1, left]).min(axis=1)
    return found


class Ideal(Bound):
    """Bounds on the pieces of T chains: their number, the sum of their lengths and the largest, arrays (T,).

    `whole` says which are one piece for sure.
    """

    unsure: Mask

    def __init__(self, number: Ints, total: Ints, largest: Ints, whole: Mask, unsure: Mask) -> None:
        self.number, self.sum, self.largest = number, total, largest
        self._alone, self.unsure = whole, unsure

    def full(self, extent: int) -> Ints:
        """Pieces that span the extent."""
        return np.where(self._alone & (self.sum >= extent), self.number, 0)

    def partial(self, extent: int) -> Ints:
        """Pieces that do not, for sure."""
        return np.where(self.unsure, 0, self.number - self.full(extent))

    def partial_windows(self, extent: int, inner_bytes: int, window: int) -> Ints:
        """A burst a piece, and what their bytes need; nothing if one may span the extent."""
        least = self.bursts(*self.divided(extent), inner_bytes, window)
        return np.where(self.partial(extent) > 0, least, 0)

    def ceil_sum(self, unit: int) -> Ints:
        """One a piece, and what their lengths need."""
        return np.maximum(self.number, -(-self.sum // unit))


class Either(Bound):
    """Some pieces for the chains of a mask (T,), others for the rest."""

    def __init__(self, mask: Mask, some: Pieces, rest: Pieces) -> None:
        self._mask, self._some, self._rest = mask, some, rest
        self.number = np.where(mask, some.number, rest.number)
        self.sum = np.where(mask, some.sum, rest.sum)
        self.largest = np.where(mask, some.largest, rest.largest)
        doubts = (one.unsure if isinstance(one, Bound) and one.unsure is not None else False for one in (some, rest))
        self.unsure = np.where(mask, *doubts)

    def full(self, extent: int) -> Ints:
        """Pieces that span the extent."""
        return np.where(self._mask, self._some.full(extent), self._rest.full(extent))

    def partial(self, extent: int) -> Ints:
        """Pieces that do not, for sure."""
        return np.where(self._mask, self._some.partial(extent), self._rest.partial(extent))

    def partial_windows(self, extent: int, inner_bytes: int, window: int) -> Ints:
        """Bursts of either."""
        some, rest = (one.partial_windows(extent, inner_bytes, window) for one in (self._some, self._rest))
        return np.where(self._mask, some, rest)


class Relaxed(Bound):
    """Pieces that are candidates, but for bursts (any sizes of as many) and fetches of nothing, `idle` at most."""

    def __init__(self, pieces: Pieces, idle: int = 0) -> None:
        self._pieces, known = pieces, pieces.number
        self.number = np.maximum(known - idle, np.minimum(known, 1)) if idle else known
        self.sum, self.largest = pieces.sum, pieces.largest

    def divided(self, extent: int) -> tuple[Ints, Ints]:
        """Elements and pieces beside those that span the extent."""
        return self._pieces.sum - self._pieces.full(extent) * extent, self.number - self.full(extent)

    def full(self, extent: int) -> Ints:
        """Pieces that span all of `extent`."""
        return np.minimum(self._pieces.full(extent), self.number)

    def partial_windows(self, extent: int, inner_bytes: int, window: int) -> Ints:
        """A burst a piece, and what their bytes need."""
        return self.bursts(*self.divided(extent), inner_bytes, window)

    def ceil_sum(self, unit: int) -> Ints:
        """One a piece, and what their lengths need."""
        return np.maximum(self.number, -(-self.sum // unit))


#: Bits of each of the three numbers of an entry.
_BITS = 20


def packed(number: Ints, largest: Ints, rounds: Ints) -> Ints:
    """Entries of chains that say how many pieces there are, how large the largest and in how many rounds of lanes."""
    entries: Ints = (number << 2 * _BITS) | (largest << _BITS) | rounds
    return entries


def unpacked(entries: Ints) -> tuple[Ints, Ints, Ints]:
    """The number of pieces, the largest and the rounds of entries."""
    low = (1 << _BITS) - 1
    return entries >> 2 * _BITS, (entries >> _BITS) & low, entries & low


class Vectors(Ideal):
    """Pieces of which number, largest and rounds of lanes are known to be possible together, or no way is below."""

    def __init__(self, extent: int, entries: Ints) -> None:
        number, largest, self._rounds = unpacked(entries)
        super().__init__(number, np.full_like(number, extent), largest, number == 1, np.zeros(len(number), np.bool_))
        self.most = largest

    def bursts(self, total: Ints, number: Ints, inner_bytes: int, window: int) -> Ints:
        """As of others; whether pieces are looked at is told by their sum, which all have, not by how many are left."""
        if total.size and int(total.max()) ** 2 > _COVERED:
            return np.maximum(number, -(-total * inner_bytes // window))
        return super().bursts(total, number, inner_bytes, window)

    def ceil_sum(self, unit: int) -> Ints:
        """The rounds, of the lanes that they are counted for."""
        return self._rounds if unit > 1 else self.sum


def ideal_cut(extent: int, most: Ints, first: int = 0) -> Ideal:
    """Bounds on cutting `extent` in pieces of at most `most` (T,), of which the first `first` elements do not count."""
    most = np.minimum(most, extent)
    return ideal_count(extent, -(-extent // most), first, most)


def ideal_count(extent: int, number: Ints, first: int = 0, largest: Ints | None = None) -> Ideal:
    """Bounds on cutting `extent` in so many pieces (T,), of which the first `first` elements do not count."""
    largest = -(-extent // number) if largest is None else largest
    whole = (number == 1) & (first == 0)
    if not first:
        return Ideal(number, np.full_like(number, extent), largest, whole, np.zeros_like(whole))
    left = np.full_like(number, max(0, extent - first))
    calls = np.maximum(-(-left // (extent - number + 1)), np.where(left > 0, number - first, 0))
    return Ideal(calls, left, np.minimum(left, 1), whole, np.zeros_like(whole))


def ideal_windows(lo: int, hi: int, most: Ints, taps: Ints, window: Window, slide: str) -> Ideal:
    """Bounds on the windows over pieces of at most `most` outputs of [lo, hi) and parts of at most `taps` taps, (T,).

    `slide`: as in `hwmodels.nest.price.pieces.windows`.
    """
    most, taps = np.broadcast_arrays(np.minimum(most, hi - lo), np.minimum(taps, window.taps))
    least, used, places = _bounds(lo, hi, window)
    parts, pieces = -(-window.taps // taps), -(-(hi - lo) // most)
    total, calls = np.full_like(most, used), np.zeros_like(most)
    if not slide:
        total += np.where(taps < window.taps, 0, _least_sums(places)[np.minimum(pieces - 1, len(places))])
    for size in np.unique(taps[taps < window.taps]):
        at = taps == size
        calls[at] = least_calls(lo, hi, window, int(size), pieces[at], slide)
        if slide != "inner":
            groups = np.ones_like(pieces[at]) if slide else None
            rows = least_rows(lo, hi, window, int(size), pieces[at], groups, more=True)
            total[at] = np.maximum(total[at], rows)
    whole, unsure = _spanning(lo, hi, window, pieces, taps)
    total = np.maximum(total, np.where(whole, window.size, 0))
    outputs, tap = _longest(hi - lo, pieces), _longest(window.taps, parts)
    nominal = np.minimum((outputs - 1) * window.stride + (tap - 1) * window.dilation + 1, window.size)
    calls = np.where(total > 0, np.maximum(calls, -(-total // nominal)), 0)  # all that is used may lie on chip
    share = _share(lo, hi, window)
    largest = np.full_like(total, share) if slide else np.maximum(least[most - 1, taps - 1], share)
    return Ideal(calls, total, largest, whole, unsure)


def ideal_once(lo: int, hi: int, pieces: Pieces, window: Window, whole: Mask, *, turning: bool = True) -> Ideal:
    """Bounds on windows of [lo, hi) of which only new rows are fetched (Turns above), as large and many as `pieces`.

    `whole` says for which chains (T,) the kernel is not cut; `turning`, whether loops run backwards too.
    """
    used, clipped = used_rows(lo, hi, window), window.clipping(lo, hi)
    before, behind = (rows // window.stride for rows in clipped)
    if window.first or max(clipped) >= window.reach:
        before = behind = hi - lo
    one = whole & (pieces.number == 1)
    new = np.where(whole, pieces.number - behind - (before if turning else 0), 0)
    number = np.where(one, 1, np.maximum(new, min(used, 1)))
    spanning = np.where(whole, pieces.number - behind - before, 0) < 2
    return Ideal(number, np.where(one, pieces.sum, used), pieces.largest, one, ~one & spanning)


def _share(lo: int, hi: int, window: Window) -> int:
    """No cut makes more windows than outputs times taps, and some window has its share of what is used."""
    used = used_rows(lo, hi, window)
    return -(-used // ((hi - lo) * window.taps))


def _longest(extent: int, number: Ints) -> Ints:
    """The largest step that makes so many pieces."""
    result: Ints = np.where(number > 1, (extent - 1) // np.maximum(number - 1, 1), extent)
    return result


def _least_sums(values: Ints) -> Ints:
    """The least sums of 0, 1, 2, .. of these values."""
    sums: Ints = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.sort(values))])
    return sums


def _spanning(lo: int, hi: int, window: Window, pieces: Ints, taps: Ints) -> tuple[Mask, Mask]:
    """Which chains, of at least so many pieces, have one window that spans the map, and which others may have some."""
    outputs = np.arange(1, hi - lo + 1)
    begin = np.stack([np.full_like(outputs, lo), hi - outputs])
    start, stop = window.rows(begin, begin + outputs, 0, window.taps)
    # inside the map a window is longest: it spans the map if it is nominally as long and lies right
    inside = (outputs - 1) * window.stride + window.reach >= window.size
    spans = np.flatnonzero(((stop - start) == window.size).any(axis=0) | inside) + 1
    least = int(spans[0]) if len(spans) else hi - lo + 1
    alone = (pieces == 1) & (taps == window.taps)
    whole = alone & bool(stop[0, -1] - start[0, -1] == window.size)
    larger = np.where(pieces > 1, (hi - lo) - pieces + 1, hi - lo)
    part = _longest(window.taps, -(-window.taps // taps))
    long = (larger - 1) * window.stride + (part - 1) * window.dilation + 1 >= window.size
    return whole, ~alone & (larger >= least) & long


@lru_cache(maxsize=1024)
def _bounds(lo: int, hi: int, window: Window) -> tuple[Ints, int, Ints]:
    """Smallest windows by outputs and taps (E, K); how many rows are used; overlaps by place."""
    extent, taps = hi - lo, window.taps
    outputs = np.arange(1, extent + 1)
    least = np.full((extent, taps), 2**40, np.int64)
    for first in range(taps):
        for end in range(first + 1, taps + 1):
            for begin in (np.full_like(outputs, lo), hi - outputs):  # what is clipped is most at the borders
                start, stop = window.rows(begin, begin + outputs, first, end)
                size = np.maximum(stop - start, 0)
                least[:, end - first - 1] = np.minimum(least[:, end - first - 1], size)
    least = np.maximum(least, _tap(lo, hi, window)[:, None])
    rows = np.arange(lo, hi)[:, None] * window.stride - window.pad + np.arange(taps)[None, :] * window.dilation
    inside = (rows >= window.first) & (rows < window.size)
    used = len(np.unique(rows[inside]))
    place = np.arange(lo + 1, hi)
    start, before = window.rows(place, place, 0, window.taps)
    overlap = np.maximum(before - start, 0)
    return least, used, overlap


def _tap(lo: int, hi: int, window: Window) -> Ints:
    """The largest, by outputs (E,), of the smallest windows of each tap: every tap is in some part."""
    outputs, tap = np.arange(1, hi - lo + 1)[:, None], np.arange(window.taps)
    sizes = []
    for begin in (np.full_like(outputs, lo), hi - outputs):
        start, stop = window.rows(begin, begin + outputs, tap, tap + 1)
        sizes.append(stop - start)
    most: Ints = np.minimum(*sizes).max(axis=1)
    return np.maximum(most, 0)


def part_window(window: Window, taps: int) -> Window:
    """A window of `taps` taps that is nowhere longer than that of any so many taps of `window`."""
    return replace(window, taps=taps, size=window.size - (window.taps - taps) * window.dilation)


def ideal_parts(
    lo: int, hi: int, steps: Ints, taps: Ints, window: Window, slide: str, *, counts: bool, more: bool = False
) -> Ideal:
    """Bounds on the windows over pieces of [lo, hi), cut by chains of steps, and parts by chains of `taps`.

    The taps may be cut anywhere, in parts of which the largest makes as many as the chain's (`least_rows`). `counts`:
    whether `steps` are numbers of pieces, or with `more` of as many at least; else they are candidates
    (`formulations.tiling.cuts`) for `part_window`.
    """
    number = max(len(steps), len(taps))
    whole = np.full(number, window.taps)
    outer = np.broadcast_to(taps[:, -2], (number,)) if taps.shape[1] > 1 else whole
    taps = np.broadcast_to(taps[:, -1], (number,)) if taps.shape[1] else whole
    steps = np.broadcast_to(steps, (number, steps.shape[1]))
    made = _made(hi - lo, steps, counts=counts)
    total, calls, largest = (np.zeros(number, np.int64) for _ in range(3))
    for size in np.unique(taps):
        at, part = taps == size, part_window(window, int(size))
        calls[at] = least_calls(lo, hi, window, int(size), made.pieces[at], slide)
        if counts:
            largest[at] = least_window(lo, hi, part)[made.pieces[at]]
        else:
            largest[at] = windows(lo, hi, steps[at], np.zeros((1, 0), np.int64), part).largest
    fetching = outer if slide == "inner" else taps  # what a part fetches, however it is cut again
    for size in np.unique(fetching):
        at = fetching == size
        groups = made.groups[at] if slide == "outer" else None
        total[at] = least_rows(lo, hi, window, int(size), made.pieces[at], groups, more=more or not made.exact)
    _, used, places = _bounds(lo, hi, window)
    if slide == "inner" and window.dilation > 1:  # rows between the taps of two parts need not be fetched
        total = np.where(taps < window.taps, 0, total)
    meet = (made.groups if slide == "outer" else made.pieces) - 1
    total = np.maximum(total, used + np.where(taps < window.taps, 0, _least_sums(places)[meet]))
    whole, unsure = _spanning(lo, hi, window, made.pieces, taps)
    if more:  # one window that spans the map, or more that skip rows
        unsure |= whole & (total < window.size)
        whole &= total >= window.size
    total = np.maximum(total, np.where(whole, window.size, 0))
    calls = np.where(total > 0, np.maximum(calls, 1), 0)  # nothing is fetched where all that is used lies on chip
    largest = np.full_like(total, _share(lo, hi, window)) if slide else largest
    return Ideal(calls, total, largest, whole, unsure)


@dataclass(frozen=True)
class _Made:
    """Pieces of chains, and of all their loops but the last, arrays (T,); `exact` if there cannot be more."""

    pieces: Ints
    groups: Ints
    exact: bool


def _made(extent: int, steps: Ints, *, counts: bool) -> _Made:
    if counts:
        columns = [np.ones(len(steps), np.int64), np.ones(len(steps), np.int64), *steps.T]
        return _Made(columns[-1], columns[-2], exact=True)
    pieces, groups = (np.broadcast_to(cut(extent, c).number, (len(steps),)) for c in (steps, steps[:, :-1]))
    return _Made(pieces, groups, exact=not steps.shape[1])


def smallest_windows(lo: int, hi: int, window: Window) -> Ints:
    """The smallest windows by outputs and taps, (E, K)."""
    return _bounds(lo, hi, window)[0]


def used_rows(lo: int, hi: int, window: Window) -> int:
    """How many rows all windows use together."""
    return _bounds(lo, hi, window)[1]


@lru_cache(maxsize=1024)
def least_window(lo: int, hi: int, window: Window) -> Ints:
    """The least that the largest window of n pieces can be, for n in 0..E (of 0: of one)."""
    extent = hi - lo
    start, stop = window.rows(np.arange(lo, hi), np.arange(lo + 1, hi + 1), 0, window.taps)
    result = np.full(extent + 1, max(0, int(stop[-1] - start[0])), np.int64)
    for size in range(int(result[0]) - 1, -1, -1):
        at = number = 0
        while at < extent and number <= extent:
            farthest = int(np.searchsorted(stop, max(size, 0) + start[at], "right"))
            at, number = max(farthest, at), number + 1
            if farthest <= at - 1 or (farthest <= at and number > extent):
                break
        if at < extent:
            break
        result[number:] = size
    return result


#: Numbers of pieces of four dimensions up to which all of them are compared.
_CYCLES = 1 << 22


def least_cycles(extents: tuple[int, ...], pieces: tuple[Ints, ...], macs: int) -> Ints:
    """The fewest cycles of at least so many pieces (T,) of each dimension, where a tile takes ``ceil(size/macs)``.

    The largest tile has ``prod ceil(E/n)`` elements at least, and every tile takes the cycles of the largest.
    """
    if prod(extents) > _CYCLES:
        tiles = np.prod(np.stack(np.broadcast_arrays(*pieces)), axis=0)
        fewest: Ints = np.maximum(tiles, -(-prod(extents) // macs))
        return fewest
    return _cycles(extents, macs)[tuple(n - 1 for n in pieces)]


@lru_cache(maxsize=64)
def _cycles(extents: tuple[int, ...], macs: int) -> Ints:
    """By numbers of pieces, from one on, the fewest cycles of as many or more."""
    numbers = np.meshgrid(*(np.arange(1, extent + 1, dtype=np.int64) for extent in extents), indexing="ij", sparse=True)
    size = np.ones((1,) * len(extents), np.int64)
    for extent, number in zip(extents, numbers, strict=True):
        size = size * -(-extent // number)
    found: Ints = -(-size // macs)
    for number in numbers:
        found = found * number
    for axis in range(len(extents)):
        back = (slice(None),) * axis + (slice(None, None, -1),)
        found = np.minimum.accumulate(found[back], axis=axis)[back]
    return found
