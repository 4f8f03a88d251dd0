"""How the tiles of OUT follow each other where transfers overlap with compute: a lower bound on time.

Sets
    tiles q = 1..Q of OUT in the order of their last stores, e_q elements each, E in all; none has more than P, all are
    multiples of u (what no loop outside the Hold of OUT cuts); S_q = e_1 + .. + e_q
Ticks
    a store takes at least ``c + beta*e``, the compute of a tile ``kappa*e``; the loads up to a tile's last step at
    least Lam(q), the sum over IN and W of the largest of what is known of each (`Need`):
        what the first step loads;
        what S_q results need (each of m filters has pixels results, each pixel m), in calls of at most P_X elements;
        a call for every tile of OUT but `idle` ones, where each has tiles of its own;
        all of it, where every tile of OUT needs all; q times, where moreover it goes through several tiles of it
Paths
    of ``L2(0) + sum_k max(C(k), L2(k+1), S2(k-1)) + S2(last)``, with any of the three in the place of each maximum, for
    every q, with F loaded ahead of the first step, A in all, and G computed in a step:
        T >= F + kappa*S_q + sum_(p >= q) (c + beta*e_p)
        T >= Lam(q) + G + sum_(p >= q) (c + beta*e_p)
        T >= Lam(q + 1) + sum_(p >= q) (c + beta*e_p)      if all that q + 1 needs is loaded ahead of its first step
        T >= max(A, Lam(Q)) + G + c + beta*e_Q
        T >= Lam(q) + kappa*sum_(p >= q) e_p + the last store      as before, of loads ahead of the first step of q
    Until a tile has its results its loads and steps pass; its store, and that of every tile behind it, is in a later
    step. What one buffer moves between the steps comes on top.
Bound
    With R_k = the elements of the last k tiles, ``S_q = E - R_(k-1)`` at ``q = Q - k + 1``: every path is a limit on
    R_k that rises with R_(k-1) and R_(k-2). So the largest R_k follows from the largest ones before, and a time T is
    possible only if R_Q = E is reached for some Q. The least such T is found by halving, all in integers. Q is tried
    one by one from the fewest on; the last of these stands for all larger ones, with its own loads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.price.bilinear import Bilinear, Ints

#: Numbers of tiles that are tried one by one; choices with more tiles at least are not looked at.
_TRIED, _MOST = 16, 128
#: Choices that are looked at, the least bounds first, and so many at a time.
_MANY, _CHUNK = 3_000, 1_000
#: Gaps below a share of 1 / _CLOSE are left as they are.
_CLOSE = 1_000
#: More than any tile has.
_LARGEST = 2**62


#: Choices, numbers of their tiles, and whether these stand for larger ones too, (M,) each.
_Items = tuple[Ints, Ints, NDArray[np.bool_]]


@dataclass(frozen=True)
class Room:
    """So much of a memory is left for tiles that take at least ``rate`` bytes an element together."""

    limit: int
    taken: Bilinear
    """By all operands with their smallest tiles."""
    own: Bilinear
    """By these of them."""
    rate: Fraction
    sure: Bilinear
    """0 where nothing can be said."""

    def most(self, s: Ints, q: Ints) -> Ints:
        """The most elements (N,) of some choices."""
        left = self.limit - _at(self.taken, s, q) + _at(self.own, s, q)
        most = np.maximum(left, 0) * self.rate.denominator // self.rate.numerator
        return np.where(_at(self.sure, s, q) > 0, most, _LARGEST)


@dataclass(frozen=True)
class Need:
    """What S results need of IN, or of W: ``ceil(S * elements / share)`` elements at least."""

    elements: int
    share: int
    byte: int
    """Ticks of an element."""
    call: int
    """Ticks of a call without its bytes."""
    copies: int
    """Inputs of these sizes."""
    idle: int
    """Tiles of OUT that may need no call, though each has tiles of its own."""
    largest: int
    rooms: tuple[Room, ...]
    """P_X is at most `largest`, and what there is room for."""
    first: Bilinear
    """Ticks that the first step loads."""
    own: Bilinear
    """1 where no two tiles of OUT share a tile of it."""
    ready: Bilinear
    """0 where a part of the kernel, which may lie in the padding, is all that a step loads."""
    whole: Bilinear
    """1 where every tile of OUT needs all of it."""
    held: Bilinear
    """0 where every tile of OUT goes through several tiles of it."""


@dataclass(frozen=True)
class Pipeline:
    """The tiles of OUT of all choices."""

    elements: int
    """E."""
    call: int
    """c."""
    byte: int
    """beta."""
    lanes: int
    """What `work` is times too large."""
    level: int
    """0 of tiles of OUT, below 0 of groups of them, above 0 of their parts."""
    together: bool
    """Whether all loads of a tile are ahead of its first step."""
    tile: Bilinear
    tiles: tuple[Room, ...]
    """A group has a store for every so many elements at least: as `largest` and `rooms`, of a tile of OUT."""
    largest: Bilinear
    rooms: tuple[Room, ...]
    """P is at most `largest`, and what there is room for."""
    unit: Bilinear
    """u."""
    fewest: Bilinear
    """Q at least."""
    work: Bilinear
    """kappa*E, times `lanes`."""
    step: Bilinear
    """G, of the first step; `last`: of the last one."""
    last: Bilinear
    fill: Bilinear
    """F; `drain`: what the last step stores at least."""
    drain: Bilinear
    reads: Bilinear
    """A; of groups without partial sums, which come back behind their first steps."""
    alone: Bilinear
    """What one buffer moves."""
    once: Bilinear
    """1 where no reduction is cut: all compute of a tile is behind its loads."""
    needs: tuple[Need, ...]

    def take(self, s: Ints | None = None, q: Ints | None = None) -> Pipeline:
        """Restrict to some choices."""
        return cast(Pipeline, _taken(self, s, q))

    def raised(self, s: Ints, q: Ints, least: Ints, below: int, *, searching: bool) -> Ints:
        """A bound (N,) on the time of some choices, `least` being one: `below` if none below that is possible.

        `searching`: what is possible is at least what is possible for some of them.
        """
        found, order, low = least.copy(), np.argsort(least, kind="stable"), below
        if (below - int(least.min(initial=below))) * _CLOSE < below:
            return found
        for first in range(0, min(len(order), _MANY), _CHUNK):
            some = order[first : first + _CHUNK]
            some = some[least[some] < low]
            if not len(some):
                break
            every = _Tiles(self, s[some], q[some])
            items = every.numbers(below)
            fine = every.possible(*items, below - 1)
            known = every.fewest <= _MOST
            found[some[known & ~np.isin(np.arange(len(some)), items[0][fine])]] = below
            if not known.all():
                low = min(low, int(least[some[~known]].min()))
            if searching:
                low = every.least(_some(items, fine), least[some], low)
        if len(order) > _MANY:
            low = min(low, int(least[order[_MANY]]))
        return np.maximum(found, low) if searching else found


def _some(items: _Items, at: NDArray[Any]) -> _Items:
    return items[0][at], items[1][at], items[2][at]


class _Tiles:
    """The numbers of some choices (s, q), arrays (N,)."""

    def __init__(self, pipeline: Pipeline, s: Ints, q: Ints) -> None:
        self.pipeline = pipeline
        self.of = _values(pipeline, s, q)
        self.needs = [_values(need, s, q) for need in pipeline.needs]
        self.fewest = np.maximum(self.of["fewest"], -(-pipeline.elements // self.of["largest"]))

    def numbers(self, below: int) -> _Items:
        """Choices with numbers of tiles to try, and whether these stand for larger ones too; none of many tiles."""
        pipeline, some = self.pipeline, np.flatnonzero(self.fewest <= _MOST)
        most = (below - 1 - pipeline.byte * pipeline.elements) // pipeline.call if pipeline.call else below
        count = np.clip(most - self.fewest[some] + 1, 1, _TRIED)
        where = np.repeat(np.arange(len(some)), count)
        place = np.arange(len(where)) - np.repeat(np.cumsum(count) - count, count)
        return some[where], self.fewest[some][where] + place, place == _TRIED - 1

    def least(self, items: _Items, least: Ints, below: int) -> int:
        """The least time that is possible for some choice with a number of tiles, each from its own bound on."""
        low, high = int(least[items[0]].min(initial=below)), below
        while low < high:
            middle = (low + high) // 2
            fine = np.flatnonzero(least[items[0]] <= middle)
            fine = fine[self.possible(*_some(items, fine), middle)]
            if len(fine):  # what is not possible then is not the least
                items, high = _some(items, fine), middle
            else:
                low = middle + 1
        return high

    def possible(self, where: Ints, tiles: Ints, more: NDArray[np.bool_], time: int) -> NDArray[np.bool_]:
        """Whether so many tiles of OUT of some choices may follow each other in that time."""
        total, most = self.pipeline.elements, self.of["largest"]
        result, going = np.zeros(len(where), np.bool_), np.arange(len(where))
        left = before = np.zeros(len(where), np.int64)
        number = 0
        while len(going):
            number += 1
            at, wanted = where[going], tiles[going]
            unit = self.of["unit"][at]
            now = self._most(at, wanted, number, left[going], before[going], time)
            now = np.minimum(now, left[going] + most[at])
            now = np.minimum(now, total - np.maximum(wanted - number, 0) * unit) // unit * unit
            result[going[now >= total]] = True
            ended = (wanted <= number) & (~more[going] | (now <= left[going]))
            before, left = left, left.copy()
            left[going] = now
            going = going[(now < total) & (now >= number * unit) & ~ended]
        return result

    def _most(self, at: Ints, tiles: Ints, number: int, left: Ints, before: Ints, time: int) -> Ints:
        """Most elements of the last `number` tiles; one less have `left` at most, two less `before`."""
        of, one = {name: v[at] for name, v in self.of.items()}, self.pipeline
        done, tile, within = one.elements - left, np.maximum(tiles - number + 1, 1), time - of["alone"]
        known = (done, tile) if one.together else (np.zeros_like(done), tile - 1)
        begun = self._loads(at, tiles, tile, *known, first=not one.together)  # ahead of the tile's first step
        behind = within - begun - of["drain"]  # for the compute of the tile and of all behind it
        told = (of["once"] > 0) & (of["work"] > 0)
        computed: Ints = np.where(told, behind * one.lanes * one.elements // np.maximum(of["work"], 1), _LARGEST)
        if one.level > 0:
            return computed
        if one.level < 0:
            loads = np.maximum(begun, of["reads"]) if number == 1 and one.together else begun
            stores = np.minimum(within - of["fill"], within - of["step"] - loads)
        else:
            loads = self._loads(at, tiles, tile, done, tile)
            made = of["work"] * done // (one.lanes * one.elements)
            stores = np.minimum(within - of["fill"] - made, within - of["step"] - loads)
            if number == 1:
                stores = np.minimum(stores, within - np.maximum(of["reads"], loads) - of["last"])
            else:
                ahead = self._loads(at, tiles, tile + 1, done, tile, first=True)
                if one.together:
                    every = self._loads(at, tiles, tile + 1, one.elements - before, tile + 1)
                    ahead = np.where(of["once"] > 0, every, ahead)
                stores = np.minimum(stores, within - ahead)
        byte, call = one.byte, one.call
        most = np.minimum((stores - call * number) // byte, stores * of["tile"] // (byte * of["tile"] + call))
        least: Ints = np.minimum(most, computed)
        return least

    def _loads(self, at: Ints, tiles: Ints, tile: Ints, done: Ints, loops: Ints, *, first: bool = False) -> Ints:
        """Lam of a tile: `done` results, a call for every tile up to `tile`, all of it `loops` times.

        `first`: ahead of the first step of that tile, which loads something of it where it is `ready`.
        """
        total = np.zeros(len(at), np.int64)
        for need, values in zip(self.pipeline.needs, self.needs, strict=True):
            of = {name: v[at] for name, v in values.items()}
            some, every = (-(-x * need.elements // need.share) for x in (done, self.pipeline.elements))
            with_own = tile - (of["ready"] == 0) if first else tile
            own = of["own"] * np.minimum(with_own, np.maximum(tiles - need.idle, 0))
            calls = np.maximum(-(-some // of["largest"]), own)
            ticks = need.copies * (need.byte * some + need.call * calls)
            whole = need.copies * (need.byte * every + need.call * np.maximum(-(-every // of["largest"]), 1))
            again = np.where(of["held"] > 0, 1, loops)
            total += np.maximum(np.maximum(ticks, of["whole"] * again * whole), of["first"])
        return total


def _taken(one: Any, s: Ints | None, q: Ints | None) -> Any:
    """The same of some choices: of all tables in it."""
    if isinstance(one, Bilinear):
        return one.take(s, q)
    if isinstance(one, tuple):
        return tuple(_taken(x, s, q) for x in one)
    if isinstance(one, Pipeline | Need | Room):
        return replace(one, **{name: _taken(x, s, q) for name, x in vars(one).items()})
    return one


def _at(table: Bilinear, s: Ints, q: Ints) -> Ints:
    """Its values (N,) at some choices."""
    values: Ints = (table.a[:, s] * table.b[:, q]).sum(axis=0)
    return values


def _values(tables: Need | Pipeline, s: Ints, q: Ints) -> dict[str, Ints]:
    """What all tables of one are at some choices, and how large tiles may be."""
    found = {name: _at(table, s, q) for name, table in vars(tables).items() if isinstance(table, Bilinear)}
    largest = tables.largest if isinstance(tables, Need) else found["largest"]
    found["largest"] = _most(largest, tables.rooms, s, q)
    if isinstance(tables, Pipeline):
        found["tile"] = _most(found["tile"], tables.tiles, s, q)
    return found


def _most(largest: Ints | int, rooms: tuple[Room, ...], s: Ints, q: Ints) -> Ints:
    most: Ints = np.minimum.reduce([np.broadcast_to(largest, s.shape), *(room.most(s, q) for room in rooms)])
    return np.maximum(1, most)
