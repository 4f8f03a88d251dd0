"""Shortest paths through the places of one loop: all ways to cut a piece, as `hwmodels.nest.price.sequences` asks.

State
    F(y; c, k, s, t, u): the least of the pieces up to a place y, what is loaded behind them (t) not yet paid: c pieces,
    in which a loop inside makes k pieces more, s stored behind them, and u stored before the first of all
Recursion
    F(y; s = store of p, t) = min over pieces p = [x, y) and s' of F(x; s', load of p) + V(p; s', t)
    where numbers are counted with c and k one more each, or as many as p says. Of all pieces that begin at a place at
    once; the last pieces end in the places that are asked for, together with what stands behind them.
Levels
    V rises with what is loaded and stored. Where more of these differ than are asked for, a few stand for those up to
    the next one, so that F is no more than it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.price.bilinear import Ints

#: More than any sum of ticks; of sequences that do not exist.
NEVER = 2**56
#: Values of F that one loop may have at a time.
_MOST = 20_000_000
#: Work of a place, in units of `Sequences`.
PLACE = 60

Span = tuple[int, int]
#: By dimension the piece that the loops outside have.
Place = dict[str, Span]
#: By loop the piece that it begins (ends) with.
Ends = dict[int, Span]


class Piece(NamedTuple):
    """A piece of a loop, with what the loops inside begin and end with."""

    span: Span
    place: Place
    first: Ends
    last: Ends
    inner: int
    """Pieces of a loop inside over the same dimension; 0 if any number."""
    load: int
    """What is loaded where its loop goes on to it; `head`: if it is the first piece of all."""
    store: int
    """What is stored where its loop goes on from it; `tail`: if it is the last piece of all."""
    head: int
    tail: int


class Asked(NamedTuple):
    """With which pieces loops begin and end, and in how many pieces they cut."""

    first: Ends
    last: Ends
    number: dict[int, int]


@dataclass(frozen=True)
class Sized:
    """A loop that cuts, and from where to where its numbers and sizes are."""

    dim: str
    sizes: Span
    first: Span
    last: Span
    number: Span


class Blocks(Protocol):
    """What a walk asks of the loops inside (`hwmodels.nest.price.sequences`)."""

    counted: bool
    levels: int
    exact: bool
    work: int
    loops: list[Sized]
    inside: list[int]
    """By loop the next one inside over the same dimension; -1 if there is none."""

    def spend(self, work: int) -> None:
        """Take some work from what is allowed."""

    def blocks(self, at: int, pieces: Sequence[Piece], stored: Ints, loaded: Ints, asked: Sequence[Asked]) -> Ints:
        """V (pieces, stored, loaded) of what is inside each piece."""


@dataclass(frozen=True)
class Edges:
    """From where to where pieces reach, and which they are (E,), by where they begin; last pieces reach an end each."""

    begin: Ints
    end: Ints
    piece: Ints

    @classmethod
    def of(cls, begin: Ints, end: Ints, which: Ints, alike: Sequence[Span]) -> Edges:
        """Of spans (M,), each of which may be any of the pieces from and up to so many, by its kind."""
        ranges = np.array(alike)[which]
        count = ranges[:, 1] - ranges[:, 0]
        span = np.repeat(np.arange(len(begin)), count)
        piece = ranges[span, 0] + np.arange(len(span)) - (np.cumsum(count) - count)[span]
        return cls(begin[span], end[span], piece)

    def take(self, at: Ints | NDArray[np.bool_]) -> Edges:
        """Some of them."""
        return Edges(self.begin[at], self.end[at], self.piece[at])

    def bounds(self, places: int) -> list[int]:
        """Where those of each place begin."""
        found: list[int] = np.searchsorted(self.begin, np.arange(places + 1)).tolist()
        return found


def numbers_of(begin: Ints, end: Ints, places: int) -> tuple[Ints, Ints]:
    """The fewest and the most spans on ways from place 0 to each; `NEVER` and less than any where there is no way."""
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], end[order]
    low, high = np.full(places + 1, NEVER), np.full(places + 1, -NEVER)
    low[0] = high[0] = 0
    bounds = np.searchsorted(begin, np.arange(places + 1))
    for x, (a, b) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        if a < b and high[x] >= 0:
            to = end[a:b]
            low[to] = np.minimum(low[to], low[x] + 1)
            high[to] = np.maximum(high[to], high[x] + 1)
    return low, high


def _leveled(ticks: Sequence[int], most: int) -> tuple[Ints, Ints]:
    """Different ticks, no more than so many (0: all), and which of them is the largest that is no more than each."""
    found, which = np.unique(ticks, return_inverse=True)
    if not most or len(found) <= most:
        return found, which
    _, first, level = np.unique((found - found[0]) * most // (found[-1] - found[0] + 1), return_index=True,
                                return_inverse=True)  # fmt: skip
    return found[first], level[which]


class Walk:
    """All ways to cut one piece by one loop."""

    def __init__(self, of: Blocks, at: int, pieces: list[Piece], number: Span, asked: Asked) -> None:
        self.of, self.at, self.pieces, self.number, self.asked = of, at, pieces, number, asked
        self.stores, self.store = _leveled([p.store for p in pieces], of.levels)
        self.loads, self.load = _leveled([p.load for p in pieces], of.levels)
        of.exact &= len(self.stores) * len(self.loads) == len({p.store for p in pieces}) * len({p.load for p in pieces})
        self.head, self.tail = (np.array(ticks) for ticks in zip(*((p.head, p.tail) for p in pieces), strict=True))
        nested = of.counted and of.inside[at] >= 0 and at not in of.inside
        further = of.loops[of.inside[at]].number if nested else number
        self.sums = (max(0, further[0] - number[1]), further[1] - number[0]) if nested else (0, 0)
        self.inner = np.array([p.inner - 1 if nested else 0 for p in pieces])  # pieces more than one of a loop inside
        self.step = int(of.counted)
        self.counts = self.step * number[1] + 1, self.sums[1] + 1
        self._used = np.zeros(0, np.int64)  # places where pieces begin
        self._walked: tuple[Edges, Edges, Ints, Ints] | None = None

    def least(self, edges: Edges, last: Edges, ends: int, stored: Ints, loaded: Ints) -> Ints:
        """V (ends, stored, loaded), with what is stored before and loaded behind all; `edges` lead to further ones."""
        edges, last, self._used = _used(edges, last)
        places = len(self._used)
        self._paid(len(edges.begin) + len(last.begin), places, len(stored), len(loaded))
        costs, own, more = self._costs(stored, loaded), len(stored), len(loaded)
        first = np.array([_agree(p.first, p.span, self.asked.first, self.at) for p in self.pieces])
        final = np.array([_agree(p.last, p.span, self.asked.last, self.at) for p in self.pieces])
        edges = edges.take(first[edges.piece] | (edges.begin > 0))
        last = last.take((first[last.piece] | (last.begin > 0)) & final[last.piece])
        paid = np.full((places, len(self.stores), *self.counts, len(self.loads), own), NEVER)
        least = np.full((ends, own, more), NEVER)
        at, behind = edges.bounds(places), last.bounds(places)
        for x in range(places):
            if x and paid[x].min() >= NEVER:
                continue
            to, some = last.end[behind[x] : behind[x + 1]], last.piece[behind[x] : behind[x + 1]]
            if len(some):
                self._closed(least, to, paid[x] if x else None, costs, some)
            to, some = edges.end[at[x] : at[x + 1]], edges.piece[at[x] : at[x + 1]]
            if x and len(some):
                self._passed(paid, to, paid[x], costs[:, own:, more:], some)
            elif len(some) and self.step < self.counts[0]:
                now = costs[some, :own, more:].transpose(0, 2, 1) + self.head[some, None, None]
                self._reached(paid, to, now[:, None, None], some)
        self._walked = edges, last, paid, costs
        return least

    @property
    def path(self) -> list[int]:
        """The places of a way to the only end that takes the least time, of several pieces and any number of them."""
        assert self._walked is not None
        _, x, p, s = min(self._arrivals(0, None))
        found = [x]
        while True:
            load, store, value = int(self.load[p]), s, int(self._walked[2][x, s, 0, 0, self.load[p], 0])
            (_, x, p, s), *_ = (
                one for one in self._arrivals(x, load) if one[0] == value and self.store[one[2]] == store
            )
            if not x:
                return [int(self._used[x]) for x in found[::-1]]
            found.append(x)

    def _arrivals(self, end: int, load: int | None) -> Iterator[tuple[int, int, int, int]]:
        """Yield least times up to a place with a load behind it (None: the end), and how they arrive there.

        That is where the last piece begins, which one it is, and the store before it.
        """
        assert self._walked is not None
        edges, last, paid, costs = self._walked
        behind, some = (0, last) if load is None else (1 + load, edges)
        for n in np.flatnonzero(some.end == end):
            x, p = int(some.begin[n]), int(some.piece[n])
            if x:
                tail = self.pieces[p].tail if load is None else 0
                before = paid[x, :, 0, 0, self.load[p], 0] + costs[p, 1:, behind] + tail
                yield from ((int(value), x, p, s) for s, value in enumerate(before) if value < NEVER)
            elif load is not None:
                yield int(costs[p, 0, behind]) + self.pieces[p].head, x, p, 0

    def _paid(self, edges: int, places: int, own: int, more: int) -> None:
        """Take what the work is from what is allowed, if it is enough."""
        size = len(self.stores) * len(self.loads) * own * self.counts[0] * self.counts[1]
        costs = len(self.pieces) * (len(self.stores) + own) * (len(self.loads) + more)
        work = PLACE * places + 20 * len(self.pieces) + (edges * size + costs) // 400
        self.of.spend(work if places * size <= _MOST else self.of.work + 1)

    def _costs(self, stored: Ints, loaded: Ints) -> Ints:
        """V of what is inside each piece, for what is stored before it and loaded behind: asked, or of other pieces."""
        stores, of_store = np.unique(np.concatenate([stored, self.stores]), return_inverse=True)
        loads, of_load = np.unique(np.concatenate([loaded, self.loads]), return_inverse=True)
        inside = self.of.inside[self.at]
        asked = [Asked(p.first, p.last, {**self.asked.number, inside: p.inner}) for p in self.pieces]
        costs: Ints = self.of.blocks(self.at + 1, self.pieces, stores, loads, asked)[:, of_store][:, :, of_load]
        return costs

    def _passed(self, paid: Ints, to: Ints, before: Ints, costs: Ints, some: Ints) -> None:
        """Pieces behind others: the least over what these store."""
        here = before[:, :, :, self.load[some]]  # (stores, counts, counts inside, pieces, stored)
        now = np.full((len(some), *self.counts, costs.shape[2], before.shape[-1]), NEVER)
        for s in range(len(self.stores)):
            one = here[s].transpose(2, 0, 1, 3)[:, :, :, None, :] + costs[some, s][:, None, None, :, None]
            np.minimum(now, one, out=now)
        self._reached(paid, to, now[:, : self.counts[0] - self.step], some)

    def _reached(self, paid: Ints, to: Ints, now: Ints, some: Ints) -> None:
        """Note what pieces take up to where they end: (pieces, counts, counts inside, loads, stored)."""
        for more in np.unique(self.inner[some]).tolist():
            at = np.flatnonzero(self.inner[some] == more)
            key, least = _least(to[at] * len(self.stores) + self.store[some[at]], now[at])
            y, s = np.divmod(key, len(self.stores))
            least = least[:, :, : max(self.counts[1] - more, 0)]
            rows = slice(self.step, self.step + least.shape[1]), slice(more, more + least.shape[2])
            there = paid[y, s]
            there[:, rows[0], rows[1]] = np.minimum(there[:, rows[0], rows[1]], least)
            paid[y, s] = there

    def _closed(self, least: Ints, to: Ints, before: Ints | None, costs: Ints, some: Ints) -> None:
        """Note the last pieces; the only one (`before` is None) if there may be one."""
        _, own, more = least.shape
        for inner in np.unique(self.inner[some]).tolist():
            at = np.flatnonzero(self.inner[some] == inner)
            low, high = max(self.sums[0] - inner, 0), max(self.sums[1] - inner + 1, 0)
            pieces, tail = some[at], self.tail[some[at], None, None]
            if before is None:
                if self.number[0] > 1 or low or not high:
                    continue
                total = costs[pieces, :own, :more] + self.head[pieces, None, None] + tail
            else:
                fewest = max(self.number[0] - 1, 0) if self.of.counted else 0
                ways = before[:, fewest : self.counts[0] - self.step, low:high]
                if not ways.size:
                    continue
                here, total = ways.min(axis=(1, 2))[:, self.load[pieces]], np.full((len(at), own, more), NEVER)
                for s in range(len(self.stores)):
                    np.minimum(total, here[s][:, :, None] + costs[pieces, own + s, None, :more] + tail, out=total)
            key, best = _least(to[at], total)
            least[key] = np.minimum(least[key], best)


def _used(edges: Edges, last: Edges) -> tuple[Edges, Edges, Ints]:
    """Those that lead to places where some begin, between these alone; and the places, by their numbers."""
    places = np.unique(np.concatenate([[0], edges.begin, last.begin]))
    further = edges.take(np.isin(edges.end, places))
    begins, ends = np.searchsorted(places, further.begin), np.searchsorted(places, further.end)
    return Edges(begins, ends, further.piece), replace(last, begin=np.searchsorted(places, last.begin)), places


def _least(key: Ints, values: Ints) -> tuple[Ints, Ints]:
    """Different keys, and the least values (N, ...) of each."""
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    return key[order][first], np.minimum.reduceat(values[order], first, axis=0)


def _agree(ends: Ends, span: Span, asked: Ends, at: int) -> bool:
    """Whether a piece, and what it begins or ends with, is what is asked for, as far as something is."""
    return all(asked.get(x, mine) == mine for x, mine in ((at, span), *ends.items()))
