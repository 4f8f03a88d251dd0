"""F11 fusion: groups of layers run strip by strip, nests of groups of one, and what stays on chip between groups.

Sets
    t in 0..T-1: the layers in the network's order; cuts 0..T between them
    s: the maps that may stay on chip, with levels V[s] (banks and the rows they hold), uses and birth as in F10 `joint`
    A: arcs, each a group first..last with options that read alike; axes[a]: the maps whose level matters to it
Given
    B banks, each a byte where the machine has none; write[s, v]: bytes of the rows of s beyond level v; reads[a, s, v]:
    what arc a reads of s at level v
    class[a, s, v]: levels that are alike for the room (whole on chip or not; of a group of one, the same plans)
    E[a, c, f]: the fewest bytes of weights and (of a group of one) of reading again, for classes c, in f banks
    fixed[a]: bytes that do not depend on levels                                     (all integers; banks, bytes)
Variables
    a path of arcs from cut 0 to cut T; level[s, a] for the maps alive during an arc
Objective
    min sum over the path's arcs (fixed[a] + sum_s reads[a, s, level] + E[a, class, f]) + sum_s write[s, last level]
    where f = B - sum of banks[level] of all maps alive at either end of the arc        (energy: with MACs, in fJ)
Constraints
    (SHRINK)   the level of a map does not rise from arc to arc, and changes only after an arc that uses it, or that has
               several layers: there a map may be on chip as a whole so that its strips take nothing beside it
    (ROOM)     f >= 0, and E[a, c, f] is finite
    Maps that are born and read last inside a group are not written, unless they are results of the network.
Why groups of one make it F10
    An arc of one layer has the tables of `formulations.joint.tables`: the same levels, banks and bytes.

`least` solves it by dynamic programming over cuts; a state is the level of every map alive at a cut. Of the maps that
an arc uses up only the banks that they take together and their classes matter, and likewise of those that are born:
so an arc costs (states of the maps that go on) x B x B steps, not all pairs of states. What maps take during an arc is
a multiple of the gcd of the banks of their levels, its grain: only so many banks can be free, and in bytes B is counted
in it: a row of any map of ResNet-50 takes 3,584 bytes or a multiple, so B is 219 on 768 KiB. Source: none;
docs/fusion.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import gcd, prod
from typing import Any

import numpy as np

from formulations.fusion.options import NEVER
from formulations.fusion.strips import Ints
from formulations.joint.problem import Residence
from formulations.problem import Unable

#: Numbers that dynamic programming may hold, of 8 bytes each: 512 MiB. It keeps the combinations of levels of all cuts,
#: and works on so many times those of one.
MOST_STATES, AT_A_TIME = 2**26, 6
#: Numbers that are laid out together for what is free beside maps.
_AT_ONCE = 2**20


@dataclass(frozen=True, eq=False)
class Arc:
    """A group of layers, and all that its cost depends on.

    Attributes
    ----------
    axes : tuple of int
        Residences whose level matters.
    classes, reads : tuple of ndarray (levels,)
        For every axis the class and the bytes read at each level.
    fixed, macs : int
        Bytes that do not depend on levels; MACs.
    rooms : ndarray
        Numbers of banks, ascending from 0: all that may be free, or in between bytes are those of the one below.
    table : ndarray (classes of each axis, rooms)
        Bytes by classes and room; they never rise with the room.
    options : Any
        How it runs, for `formulations.fusion.part`.
    """

    first: int
    last: int
    axes: tuple[int, ...]
    classes: tuple[Ints, ...]
    reads: tuple[Ints, ...]
    fixed: int
    macs: int
    rooms: Ints
    table: Ints
    options: Any = None

    def steps(self, classes: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """The undominated (banks, bytes) of the table for classes of the axes, fewest banks first."""
        row = self.table[classes]
        first = np.flatnonzero(np.append(True, row[1:] < row[:-1]) & (row < NEVER))
        return tuple((int(self.rooms[at]), int(row[at])) for at in first)

    def column(self, free: Ints | int) -> Ints:
        """The place of free banks in the table."""
        found: Ints = np.searchsorted(self.rooms, free, side="right") - 1
        return found

    def bytes(self, levels: Mapping[int, int], free: int) -> int:
        """Bytes of the table for levels and free banks."""
        index = tuple(int(c[levels[k]]) for k, c in zip(self.axes, self.classes, strict=True))
        return int(self.table[(*index, self.column(free))])


@dataclass(frozen=True)
class Taken:
    """An arc of a path, with the level of every map alive during it and the banks that are left."""

    arc: Arc
    levels: Mapping[int, int]
    free: int


@dataclass(frozen=True, eq=False)
class Fusion:
    """One instance; arcs by the cut that they end at.

    The cost of a path is `factors[0]` for every byte and `factors[1]` for every MAC.
    """

    banks: int
    cuts: int
    residences: tuple[Residence, ...]
    constant: int
    arcs: Mapping[int, Sequence[Arc]] = field(repr=False)
    factors: tuple[int, int] = (1, 0)

    @cached_property
    def alive(self) -> tuple[tuple[int, ...], ...]:
        """The residences that may be on chip at every cut."""
        lasting = [(k, r.born, r.uses[-1]) for k, r in enumerate(self.residences)]
        return tuple(tuple(k for k, born, last in lasting if born < cut <= last) for cut in range(self.cuts + 1))

    def held(self, arc: Arc) -> tuple[int, ...]:
        """The residences on chip during an arc: those alive at either end of it."""
        return tuple(sorted({*self.alive[arc.first], *self.alive[arc.last + 1]}))

    def grain(self, arc: Arc) -> int:
        """What all maps on chip during an arc may take together is a multiple of it."""
        return gcd(*(banks for k in self.held(arc) for banks in self.residences[k].banks)) or self.banks

    def shrinks(self, arc: Arc, k: int) -> bool:
        """Whether a level may fall after an arc: the map is there before it and used, or it matters to strips."""
        mine = self.residences[k]
        used = mine.born < arc.first and any(arc.first <= use <= arc.last for use in mine.uses)
        return used or (arc.first < arc.last and k in arc.axes)

    def without_levels(self) -> Fusion:
        """The same where no map stays on chip."""
        none = tuple(replace(r, banks=(0,), rows=(0,), write=r.write[:1]) for r in self.residences)
        arcs = {
            cut: [
                replace(a, classes=tuple(c[:1] for c in a.classes), reads=tuple(r[:1] for r in a.reads)) for a in some
            ]
            for cut, some in self.arcs.items()
        }
        return replace(self, residences=none, arcs=arcs)

    def shape(self, cut: int) -> tuple[int, ...]:
        """States of a cut."""
        return tuple(len(self.residences[k].banks) for k in self.alive[cut])

    def sizes(self, names: Sequence[int], levels: Sequence[Ints]) -> Ints:
        """Banks of residences together, an axis for the levels of each."""
        total = np.zeros((1,) * len(names), np.int64)
        for axis, k in enumerate(names):
            banks = np.array(self.residences[k].banks, np.int64)
            total = total + along(banks[levels[axis]], axis, len(names))
        return total

    def cost(self, path: Sequence[Taken]) -> int:
        """What a path costs."""
        each, per_mac = self.factors
        total = self.constant
        for step in path:
            arc = step.arc
            total += arc.fixed + arc.bytes(step.levels, step.free)
            total += sum(int(r[step.levels[k]]) for k, r in zip(arc.axes, arc.reads, strict=True))
            ended = ((k, v) for k, v in step.levels.items() if self.residences[k].uses[-1] <= arc.last)
            total += sum(self.residences[k].write[level] for k, level in ended)
        return each * total + per_mac * sum(step.arc.macs for step in path)

    def priced(self, table: Ints) -> Ints:
        """Bytes as costs, at most `NEVER`."""
        each = self.factors[0]
        cost: Ints = np.where(table < _most(each), np.minimum(table, _most(each)) * each, NEVER)
        return cost


def _most(each: int) -> int:
    """Bytes that cost `NEVER` or almost."""
    return NEVER // max(1, each)


def along(vector: Sequence[int] | Ints, axis: int, axes: int) -> Ints:
    """A vector along one of several axes."""
    return np.asarray(vector, np.int64).reshape([-1 if a == axis else 1 for a in range(axes)])


def by_cut(arcs: Iterable[Arc]) -> dict[int, list[Arc]]:
    """Return arcs by the cut that they end at."""
    made: dict[int, list[Arc]] = {}
    for arc in arcs:
        made.setdefault(arc.last + 1, []).append(arc)
    return made


class Paths:
    """Least costs from cut 0 to every cut, and the path back; raises TooLarge."""

    def __init__(self, fusion: Fusion) -> None:
        self.fusion = fusion
        self.values: list[Ints] = [np.array(fusion.constant * fusion.factors[0], np.int64)]
        sizes = [prod(fusion.shape(cut)) for cut in range(fusion.cuts + 1)]
        if AT_A_TIME * max(sizes) + sum(sizes) > MOST_STATES:
            alive = len(fusion.alive[sizes.index(max(sizes))])
            raise Unable(
                f"{alive} maps may be on chip at a time, {max(sizes):,} combinations of their rows, {sum(sizes):,} in "
                "all: more than dynamic programming takes"
            )
        for cut in range(1, fusion.cuts + 1):
            value = np.full(fusion.shape(cut), NEVER, np.int64)
            for arc in fusion.arcs.get(cut, ()):
                if self.values[arc.first].min() < NEVER:
                    value = np.minimum(value, self._onward(arc))
            self.values.append(value)

    @property
    def least(self) -> int:
        """The least cost of all paths; at least `NEVER` if there is none."""
        return int(self.values[-1].min(initial=NEVER))

    def through(self, most: int) -> dict[Arc, int]:
        """Return the arcs that a path of at most this cost may have, each with the least cost of a path through it."""
        fusion, rest = self.fusion, {self.fusion.cuts: np.zeros((), np.int64)}
        costs: dict[Arc, int] = {}
        for cut in range(fusion.cuts, 0, -1):
            for arc in fusion.arcs.get(cut, ()) if cut in rest else ():
                if self.values[arc.first].min() >= NEVER:
                    continue
                cost = int((self._onward(arc) + rest[cut]).min())
                if cost <= most:
                    costs[arc] = cost
                    before = self._backward(arc, rest[cut])
                    rest[arc.first] = np.minimum(rest[arc.first], before) if arc.first in rest else before
        return costs

    # ---- one arc -----------------------------------------------------------------------------------------------------

    def _roles(self, arc: Arc) -> tuple[list[int], list[int], list[int]]:
        """The residences that go on, are used up, and are born."""
        before, after = self.fusion.alive[arc.first], self.fusion.alive[arc.last + 1]
        going = [k for k in before if k in after]
        return going, [k for k in before if k not in after], [k for k in after if k not in before]

    def _entering(self, before: Ints, arc: Arc) -> Ints:
        """Costs before an arc, with what it reads and what is written of maps that it uses up."""
        names, (each, per_mac) = self.fusion.alive[arc.first], self.fusion.factors
        moved = np.array(arc.fixed, np.int64)
        for axis, k in enumerate(names):
            if k in arc.axes:
                moved = moved + along(arc.reads[arc.axes.index(k)], axis, len(names))
            if self.fusion.residences[k].uses[-1] <= arc.last:
                moved = moved + along(self.fusion.residences[k].write, axis, len(names))
        moved = np.minimum(moved, _most(each)) * each  # three numbers up to NEVER still fit in 64 bits
        cost: Ints = np.minimum(before + moved + min(arc.macs * per_mac, NEVER), NEVER)
        return cost

    def _onward(self, arc: Arc) -> Ints:
        """Costs at the end of an arc."""
        going, ending, born = self._roles(arc)
        names = self.fusion.alive[arc.first]
        entering = self._entering(self.values[arc.first], arc).transpose([names.index(k) for k in (*going, *ending)])
        result = self._through(arc, entering, ending, born)
        for axis in self._shrinking(arc, (*going, *born)):
            result = np.flip(np.minimum.accumulate(np.flip(result, axis), axis=axis), axis)
        return result.transpose([(*going, *born).index(k) for k in self.fusion.alive[arc.last + 1]])

    def _backward(self, arc: Arc, rest: Ints) -> Ints:
        """Costs from the begin of an arc on, for those from its end on."""
        going, ending, born = self._roles(arc)
        names = self.fusion.alive[arc.last + 1]
        leaving = rest.transpose([names.index(k) for k in (*going, *born)])
        for axis in self._shrinking(arc, (*going, *born)):
            leaving = np.minimum.accumulate(leaving, axis=axis)
        result = self._through(arc, leaving, born, ending)
        before = result.transpose([(*going, *ending).index(k) for k in self.fusion.alive[arc.first]])
        return self._entering(before, arc)

    def _shrinking(self, arc: Arc, names: Sequence[int]) -> Iterator[int]:
        """The axes of maps that go on and may shrink."""
        for axis, k in enumerate(names):
            if self.fusion.shrinks(arc, k):
                yield axis

    def _through(self, arc: Arc, values: Ints, ended: Sequence[int], begun: Sequence[int]) -> Ints:
        """Let some residences go and others come, the table of the arc between: (going, ended) to (going, begun)."""
        fusion, going, grain = self.fusion, self._roles(arc)[0], self.fusion.grain(arc)
        free = np.arange(fusion.banks % grain, fusion.banks + 1, grain)
        table = fusion.priced(arc.table)[..., arc.column(free)]
        result = np.full(tuple(len(fusion.residences[k].banks) for k in (*going, *begun)), NEVER, np.int64)
        every = [np.arange(n) for n in values.shape[: len(going)]]
        for gone in self._combinations(arc, ended):
            sizes, least = _by_size(
                values[np.ix_(*every, *gone.levels)], len(going), fusion.sizes(ended, gone.levels) // grain
            )
            for there in self._combinations(arc, going):
                some = least[np.ix_(*there.levels, np.arange(len(sizes)))]
                held = fusion.sizes(going, there.levels) // grain
                for made in self._combinations(arc, begun):
                    row = table[self._index(arc, {**gone.classes, **there.classes, **made.classes})]
                    place = np.ix_(*there.levels, *made.levels)
                    reached = _fitted(some, sizes, held, fusion.sizes(begun, made.levels) // grain, row)
                    result[place] = np.minimum(result[place], reached)
        return result

    def _combinations(self, arc: Arc, names: Sequence[int]) -> Iterator[_Combination]:
        """All combinations of classes of some residences."""
        split = []
        for k in names:
            size = len(self.fusion.residences[k].banks)
            kinds = arc.classes[arc.axes.index(k)] if k in arc.axes else np.zeros(size, np.int64)
            split.append([(int(c), np.flatnonzero(kinds == c)) for c in np.unique(kinds)])
        for chosen in product(*split):
            classes = {k: c for k, (c, _) in zip(names, chosen, strict=True)}
            yield _Combination(classes, tuple(levels for _, levels in chosen))

    def _index(self, arc: Arc, classes: Mapping[int, int]) -> tuple[int, ...]:
        return tuple(classes[k] for k in arc.axes)

    # ---- back --------------------------------------------------------------------------------------------------------

    def path(self) -> tuple[Taken, ...]:
        """The arcs of the least path, first to last."""
        fusion, found = self.fusion, []
        cut, state = fusion.cuts, dict[int, int]()
        while cut:
            value = int(self.values[cut][tuple(state[k] for k in fusion.alive[cut])])
            step = next(s for arc in fusion.arcs.get(cut, ()) if (s := self._from(arc, state, value)) is not None)
            found.append(step)
            cut, state = step.arc.first, {k: step.levels[k] for k in fusion.alive[step.arc.first]}
        return tuple(reversed(found))

    def _from(self, arc: Arc, state: Mapping[int, int], value: int) -> Taken | None:
        """The arc with levels from which a state is reached at its value; None if it is not."""
        fusion, names = self.fusion, self.fusion.alive[arc.first]
        if self.values[arc.first].min() >= NEVER:
            return None
        every = (*names, *self._roles(arc)[2])
        ranges = [np.arange(len(fusion.residences[k].banks))[self._before(arc, k, state)] for k in every]
        entering = self._entering(self.values[arc.first], arc)[np.ix_(*ranges[: len(names)])]
        free = fusion.banks - fusion.sizes(every, ranges)
        index = tuple(
            along(classes[ranges[every.index(k)]], every.index(k), len(every))
            for k, classes in zip(arc.axes, arc.classes, strict=True)
        )
        moved = np.where(free >= 0, fusion.priced(arc.table)[(*index, arc.column(np.maximum(free, 0)))], NEVER)
        total = entering.reshape(entering.shape + (1,) * (len(every) - len(names))) + moved
        if not total.size or total.min() != value:
            return None
        place = np.unravel_index(int(total.argmin()), total.shape)
        levels = {k: int(levels[at]) for k, levels, at in zip(every, ranges, place, strict=True)}
        return Taken(arc, levels, fusion.banks - sum(fusion.residences[k].banks[v] for k, v in levels.items()))

    def _before(self, arc: Arc, k: int, state: Mapping[int, int]) -> slice:
        """The levels before an arc from which a level after it may come."""
        if k not in state:
            return slice(None)
        return slice(state[k], None if self.fusion.shrinks(arc, k) else state[k] + 1)


@dataclass(frozen=True)
class _Combination:
    """A class for every residence, and its levels."""

    classes: dict[int, int]
    levels: tuple[Ints, ...]


def _by_size(part: Ints, going: int, sizes: Ints) -> tuple[Ints, Ints]:
    """The least of all levels that take as many grains: (sizes, costs with an axis of sizes last)."""
    flat = part.reshape(*part.shape[:going], -1)
    order = np.argsort(sizes.ravel(), kind="stable")
    unique, starts = np.unique(sizes.ravel()[order], return_index=True)
    return unique, np.minimum.reduceat(flat[..., order], starts, axis=-1)


def _fitted(some: Ints, sizes: Ints, held: Ints, goals: Ints, row: Ints) -> Ints:
    """The least cost for every level of what goes on and of what is born (grains `goals`); `row` by free grains."""
    banks = len(row) - 1
    wanted, where = np.unique(goals, return_inverse=True)
    full = np.full((*held.shape, int(where.max()) + 1), NEVER, np.int64)
    many = max(1, _AT_ONCE // some.size)
    for first in range(0, int(np.count_nonzero(wanted <= banks)), many):
        part = wanted[first : first + many]
        free = banks - held[..., None, None] - sizes[:, None] - part[None, :]
        cost = np.where(free >= 0, row[np.maximum(free, 0)], NEVER)
        full[..., first : first + many] = np.minimum((some[..., None] + cost).min(axis=-2), NEVER)
    return np.asarray(full[..., where.ravel()]).reshape((*held.shape, *goals.shape))
