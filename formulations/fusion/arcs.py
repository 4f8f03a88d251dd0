"""The arcs of F11: every group with its options, priced for every amount of room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, combinations

import numpy as np

from formulations.fusion.groups import Group, Net
from formulations.fusion.options import NEVER, Option, weights_of
from formulations.fusion.pins import Demands
from formulations.fusion.pricing import MODES, ONCE, Priced, Pricing, ways
from formulations.fusion.problem import Arc, along
from formulations.fusion.strips import Ints
from formulations.joint.problem import KEPT, NOT, Joint, Residence
from hwmodels.nest.limits import tensor_bytes
from instances.machine import Machine


@dataclass(frozen=True, eq=False)
class Grouped:
    """What an arc of several layers is: for classes and room the number of the best option; a sketch has none."""

    group: Group
    options: tuple[Option, ...] = ()
    best: Ints | None = None

    @property
    def recomputes(self) -> bool:
        """Whether something is computed again."""
        return any(option.recomputes for option in self.options)


@dataclass(eq=False)
class Groups:
    """All groups of a network on a machine."""

    net: Net
    machine: Machine
    residences: tuple[Residence, ...]
    demands: Demands
    weight_bytes: tuple[int, ...] = field(init=False)
    number: dict[int, int] = field(init=False)
    _rooms_of: dict[tuple[int, ...], Ints] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.weight_bytes = tuple(tensor_bytes(layer, self.machine).get("W", 0) for layer in self.net.layers)
        self.number = {r.store: k for k, r in enumerate(self.residences)}

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """First and last layers of all groups of two layers and more that pins allow, short groups first."""
        count, allows, over = len(self.net.layers), self.demands.allows, self.demands.over
        made, open_ = list[tuple[int, int]](), list(range(count))
        for more in range(1, count):
            open_ = [first for first in open_ if first + more < count and not over(first, first + more - 1)]
            made += [(first, first + more) for first in open_ if allows(first, first + more)]
        return tuple(made)

    def sketches(self, first: int, last: int) -> list[Arc]:
        """Arcs with lower bounds for a group; none if it finds no room.

        Longer groups may find room where shorter ones do not: they need fewer rows, or take turns.
        """
        group = Group(self.net, first, last)
        suits = group.legal and group.rates("rows") is not None and group.rates("columns") is not None
        return list(self._sketched(group)) if suits else []

    def _sketched(self, group: Group) -> Iterator[Arc]:
        """An arc with lower bounds for every way to read shared maps once or twice."""
        shared = sorted(group.shared)
        for twice in chain.from_iterable(combinations(shared, k) for k in range(len(shared) + 1)):
            mine = Group(group.net, group.first, group.last, frozenset(twice))
            pricing = self._pricing(mine) if mine.alike else None
            if pricing is not None and (sketch := pricing.sketch()) is not None:
                yield self._arc(mine, [sketch])

    def exact(self, group: Group) -> list[Arc]:
        """The arcs of a group in place of a sketch: options that read alike, and those that compute again."""
        pricing = self._pricing(group)
        priced = [] if pricing is None else list(pricing.options())
        kept = [p for p in priced if not _again(p)]
        arcs = [self._arc(group, kept)] if kept else []
        for option in sorted(filter(_again, priced), key=lambda p: p.macs):
            arc = self._arc(group, [option])
            if not any(_dominates(other, arc) for other in arcs):
                arcs.append(arc)
        return arcs

    def _pricing(self, group: Group) -> Pricing | None:
        demands = self.demands
        along = ways(group, demands.heights(group), MODES if demands.recompute else ONCE)
        if along is None:
            return None
        stores = tuple(self.residences[k].store for k in self.axes(group))
        levels = {s: np.array(self._rows(s), np.int64) for s in group.outside}
        return Pricing(
            group, weights_of(group, self.weight_bytes), stores, demands.turns(group), levels,
            self.rooms(group) * self.machine.bank_bytes, *along,
        )  # fmt: skip

    def rooms(self, group: Group) -> Ints:
        """Every number of banks; without banks the bytes that the maps on chip before or after a group may leave."""
        if self.machine.ocm_banks:
            return np.arange(self.machine.ocm_banks + 1)
        key, most = tuple(self._beside(group)), self.machine.bank_count
        if key not in self._rooms_of:
            taken = np.zeros(1, np.int64)
            for k in key:
                sums = np.unique(np.add.outer(taken, np.array(self.residences[k].banks, np.int64)))
                taken = sums[sums <= most]
            self._rooms_of[key] = np.unique(np.append(0, most - taken))
        return self._rooms_of[key]

    def _beside(self, group: Group) -> Iterator[int]:
        """The residences alive at either end of a group."""
        for k, mine in enumerate(self.residences):
            if mine.born < group.first <= mine.uses[-1] or mine.born <= group.last < mine.uses[-1]:
                yield k

    def axes(self, group: Group) -> tuple[int, ...]:
        """The residences among the maps that a group reads from outside, or that are used after it."""
        outside = [self.number[s] for s in group.outside if s in self.number]
        made = [self.number[s] for s in sorted(group.made) if s in self.number]
        return (*outside, *(k for k in made if self.residences[k].uses[-1] > group.last))

    def _rows(self, store: int) -> tuple[int, ...]:
        """Rows on chip for every level, as a layer sees them."""
        if store not in self.number:
            return (0,)
        mine, found = self.residences[self.number[store]], self.net.stores[store]
        height = self.net.operand(found.readers[0], store).rows
        return tuple(found.seen(rows, height) for rows in mine.rows)

    def _arc(self, group: Group, priced: Sequence[Priced]) -> Arc:
        axes = self.axes(group)
        stacked = np.stack([one.table for one in priced])
        reads = priced[0].reads
        fixed = sum(int(r[0]) for s, r in reads.items() if s not in self.number)
        for store in group.made:
            mine, k = self.net.stores[store], self.number.get(store)
            inside = bool(mine.readers) and mine.readers[-1] <= group.last and mine.parts[0][0] >= group.first
            if k is not None and inside:
                fixed += self.residences[k].write[0] if mine.results else 0
            elif inside and not group.used_after(store):  # what cannot stay is written, but for what a group keeps
                fixed -= mine.rows * mine.row_elements * self.machine.out_bytes
        levels = [len(self.residences[k].banks) for k in axes]
        whole = [
            np.array([int(rows == self.net.stores[self.residences[k].store].rows) for rows in self.residences[k].rows])
            for k in axes
        ]
        read = [reads.get(self.residences[k].store, np.zeros(n, np.int64)) for k, n in zip(axes, levels, strict=True)]
        options = tuple(one.option for one in priced if one.option is not None)
        return Arc(
            group.first, group.last, axes, tuple(whole), tuple(read), fixed, priced[0].macs, self.rooms(group),
            stacked.min(axis=0), Grouped(group, options, stacked.argmin(axis=0)) if options else Grouped(group),
        )  # fmt: skip


def _again(priced: Priced) -> bool:
    """Whether an option computes something again."""
    return priced.option is not None and priced.option.recomputes


def _dominates(one: Arc, other: Arc) -> bool:
    """Whether an arc of the same group never costs more, at whatever levels and in whatever room; nor more MACs."""
    more = np.full((), other.fixed - one.fixed, np.int64)
    for axis, (classes, mine, its) in enumerate(zip(one.classes, one.reads, other.reads, strict=True)):
        least = np.array([(its - mine)[classes == c].min(initial=NEVER) for c in range(one.table.shape[axis])])
        more = more + along(least, axis, len(one.axes))
    return one.macs <= other.macs and bool((one.table <= other.table + more[..., None]).all())


def staying(residences: Iterable[Residence]) -> tuple[Residence, ...]:
    """Return the residences of F10 as those of F11: weights are on chip or not, arcs say whether they load them."""
    return tuple(
        replace(one, banks=_ends(one.banks), rows=_ends(one.rows), write=_ends(one.write)) if one.weights else one
        for one in residences
    )


def _ends(levels: Sequence[int]) -> tuple[int, ...]:
    return levels[NOT], levels[KEPT]


def singles(joint: Joint, macs: Sequence[int]) -> Iterator[Arc]:
    """Yield the arcs of one layer each, from the tables of F10; the first that reads weights loads them once."""
    for t, step in enumerate(joint.steps):
        classes, reads, fixed = [], [], step.fixed
        groups = [step.classes(axis) for axis in range(len(step.axes))]
        for k, members in zip(step.axes, groups, strict=True):
            names = np.zeros(len(joint.residences[k].banks), np.int64)
            for number, levels in enumerate(members):
                names[list(levels)] = number
            given = zip(step.once, step.inputs, strict=True)
            read = np.array([once for once, source in given if source == k], np.int64).sum(axis=0)
            if joint.residences[k].weights:
                names, read = names[[NOT, KEPT]], read[[NOT, KEPT]]
                if joint.residences[k].born == t:
                    fixed, read = fixed + int(read[0]), np.zeros_like(read)
            classes.append(names)
            reads.append(read)
        table = step.extra[np.ix_(*([levels[0] for levels in members] for members in groups), range(len(step.rooms)))]
        fixed += sum(once[0] for once, k in zip(step.once, step.inputs, strict=True) if k < 0)
        yield Arc(t, t, step.axes, tuple(classes), tuple(reads), fixed, macs[t], step.rooms, table)
