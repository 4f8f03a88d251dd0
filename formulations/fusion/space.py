"""Fusion: groups of layers run strip by strip, nests of groups of one, and what stays on chip between groups.

Sets
    t in 0..T-1: the layers in the network's order; cuts 0..T between them
    s: the maps that may stay on chip, with levels V[s] (banks and the rows they hold), uses and birth as in joint
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
    (PLACE)    an arc may have a map s in the place of a map s', which it is the last to read (`Net.in_place`): then
               both have all their rows during the arc, and s counts no banks there
    Maps that are born and read last inside a group are not written, unless they are results of the network.
Weights that several layers read
    are a residence too, whole or not at all (levels 0 and 1), and layers by themselves read them where they stay.
    Before such a layer weights may be loaded to stay, at the cost of reading them once: instead of SHRINK their level
    may rise there, and fall behind it. Groups of several layers load weights of their own; what stays goes past them.
Why groups of one make it joint
    An arc of one layer has the tables of `formulations.fusion.nests`: the same levels, banks and bytes.

`formulations.fusion.paths` solves it by dynamic programming over cuts; a state is the level of every map alive at a
cut. Of the maps that an arc uses up only the banks that they take together and their classes matter, and likewise of
those that are born: so an arc costs (states of the maps that go on) x B x B steps, not all pairs of states. What maps
take during an arc is a multiple of the gcd of the banks of their levels, its grain: only so many banks can be free, and
in bytes B is counted in it: a row of any map of ResNet-50 takes 3,584 bytes or a multiple, so B is 219 on 768 KiB.
Source: none; docs/fusion.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import gcd
from typing import Any

import numpy as np

from formulations.fusion.groups import NEVER
from formulations.fusion.strips import Ints


@dataclass(frozen=True)
class Residence:
    """A store that may stay on chip: a map, or weights that several layers read, which are there or not (1 or 0)."""

    store: int
    """Its number in the network."""
    born: int
    uses: tuple[int, ...]
    banks: tuple[int, ...]
    rows: tuple[int, ...]
    write: tuple[int, ...]
    """`banks`, `rows`, `write`: of every level."""
    weights: bool = False


@dataclass(frozen=True, eq=False)
class Arc:
    """A group of layers, and all that its cost depends on."""

    first: int
    last: int
    axes: tuple[int, ...]
    """Residences whose level matters."""
    classes: tuple[Ints, ...]
    reads: tuple[Ints, ...]
    """`classes`, `reads`: for every axis the class and the bytes read at each level, (levels,) each."""
    fixed: int
    """Bytes that do not depend on levels."""
    macs: int
    rooms: Ints
    """Numbers of banks, ascending from 0: all that may be free, or in between bytes are those of the one below."""
    table: Ints
    """Bytes by classes and room, (classes of each axis, rooms); they never rise with the room."""
    options: Any = None
    """How it runs, for `formulations.fusion.part`."""
    in_place: tuple[tuple[int, int], ...] = ()
    """Residences that it makes in the place of others that it is the last to read: all of both are on chip, and the
    banks of the first are those of the second.
    """

    @cached_property
    def over(self) -> frozenset[int]:
        """Residences that take no banks of their own."""
        return frozenset(made for made, _ in self.in_place)

    @cached_property
    def full(self) -> frozenset[int]:
        """Residences of which all is on chip."""
        return frozenset(k for pair in self.in_place for k in pair)

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
        """Bytes of the table for levels and free banks; `NEVER` where fewer than none are free."""
        if free < 0:
            return NEVER
        index = tuple(int(c[levels[k]]) for k, c in zip(self.axes, self.classes, strict=True))
        return int(self.table[(*index, self.column(free))])


@dataclass(frozen=True)
class Taken:
    """An arc of a path, with the level of every map alive during it and the banks that are left."""

    arc: Arc
    levels: Mapping[int, int]
    free: int
    loads: int = -1
    """The weights that are loaded before it, to stay; -1: none."""

    @property
    def before(self) -> dict[int, int]:
        """The levels ahead of the arc."""
        return {k: 0 if k == self.loads else level for k, level in self.levels.items()}


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
        used = (mine.born < arc.first or mine.weights) and any(arc.first <= use <= arc.last for use in mine.uses)
        return used or (arc.first < arc.last and k in arc.axes)

    def loads(self, arc: Arc) -> int:
        """The weights that may be loaded before an arc, to stay: those of a layer that others have read; -1: none."""
        shared = (k for k in arc.axes if self.residences[k].weights and self.residences[k].born < arc.first)
        return next(shared, -1)

    def barred(self, arc: Arc, k: int) -> bool:
        """Whether a residence that an arc begins is not on chip behind it: groups keep no weights for others."""
        mine = self.residences[k]
        return mine.weights and mine.born >= arc.first and k not in arc.axes

    def without_levels(self) -> Fusion:
        """The same where no map stays on chip."""
        none = tuple(replace(r, banks=(0,), rows=(0,), write=r.write[:1]) for r in self.residences)
        arcs = {
            cut: [
                replace(a, classes=tuple(c[:1] for c in a.classes), reads=tuple(r[:1] for r in a.reads))
                for a in some if not a.in_place
            ]
            for cut, some in self.arcs.items()
        }  # fmt: skip
        return replace(self, residences=none, arcs=arcs)

    def shape(self, cut: int) -> tuple[int, ...]:
        """States of a cut."""
        return tuple(len(self.residences[k].banks) for k in self.alive[cut])

    def banks_of(self, arc: Arc, k: int) -> tuple[int, ...]:
        """Banks of a residence's own during an arc, by level."""
        banks = self.residences[k].banks
        return (0,) * len(banks) if k in arc.over else banks

    def levels(self, arc: Arc, k: int) -> range:
        """The levels that a residence may have during an arc, but for what other arcs make of it."""
        count = len(self.residences[k].banks)
        return range(count - 1 if k in arc.full else 0, count)

    def free(self, arc: Arc, levels: Mapping[int, int]) -> int:
        """The banks that are left during an arc."""
        return self.banks - sum(self.banks_of(arc, k)[level] for k, level in levels.items())

    def sizes(self, arc: Arc, names: Sequence[int], levels: Sequence[Ints]) -> Ints:
        """Banks of residences during an arc together, an axis for the levels of each."""
        total = np.zeros((1,) * len(names), np.int64)
        for axis, k in enumerate(names):
            banks = np.array(self.banks_of(arc, k), np.int64)
            total = total + along(banks[levels[axis]], axis, len(names))
        return total

    def cost(self, path: Sequence[Taken]) -> int:
        """What a path costs."""
        each, per_mac = self.factors
        total = self.constant
        for step in path:
            arc = step.arc
            total += arc.fixed + arc.bytes(step.levels, step.free)
            total += sum(int(r[step.before[k]]) for k, r in zip(arc.axes, arc.reads, strict=True))
            ended = ((k, v) for k, v in step.levels.items() if self.residences[k].uses[-1] <= arc.last)
            total += sum(self.residences[k].write[level] for k, level in ended)
        return each * total + per_mac * sum(step.arc.macs for step in path)

    def priced(self, table: Ints) -> Ints:
        """Bytes as costs, at most `NEVER`."""
        each = self.factors[0]
        cost: Ints = np.where(table < most_bytes(each), np.minimum(table, most_bytes(each)) * each, NEVER)
        return cost


def most_bytes(each: int) -> int:
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
