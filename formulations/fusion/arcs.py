"""The arcs of F11: every group with its options, priced for every amount of room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations

import numpy as np

from formulations.clock import ENDLESS, Clock
from formulations.fusion.groups import Group, Net
from formulations.fusion.options import NEVER, Option, weights_of
from formulations.fusion.pins import Demands
from formulations.fusion.problem import Arc
from formulations.fusion.strips import Ints, Mode, Strips, peaks, strips
from formulations.joint.problem import Joint, Residence
from hwmodels.nest.limits import tensor_bytes
from instances.machine import Machine

KEPT: tuple[Mode, ...] = ("lead", "retain")
MODES: tuple[Mode, ...] = (*KEPT, "recompute")


@dataclass(frozen=True, eq=False)
class Grouped:
    """What an arc of several layers is: for classes and banks the number of the best option."""

    group: Group
    options: tuple[Option, ...]
    best: Ints

    @property
    def recomputes(self) -> bool:
        """Whether something is computed again."""
        return any("recompute" in (option.rows, option.columns) for option in self.options)


@dataclass(eq=False)
class Groups:
    """All groups of a network on a machine."""

    net: Net
    machine: Machine
    residences: tuple[Residence, ...]
    demands: Demands
    weight_bytes: tuple[int, ...] = field(init=False)
    number: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self.weight_bytes = tuple(tensor_bytes(layer, self.machine).get("W", 0) for layer in self.net.layers)
        self.number = {r.store: k for k, r in enumerate(self.residences)}

    @property
    def room(self) -> int:
        """Bytes of all banks."""
        return self.machine.ocm_banks * self.machine.bank_bytes

    def arcs(self, clock: Clock = ENDLESS) -> Iterator[Arc]:
        """Yield the arcs of all groups of two layers and more; raises TimeUp.

        A group whose strips fit in no way is the end of those that begin with the same layer.
        """
        for first in range(len(self.net.layers)):
            for last in range(first + 1, len(self.net.layers)):
                clock.tick()
                group = Group(self.net, first, last)
                if not group.legal or group.rates("rows") is None or group.rates("columns") is None:
                    continue
                some = list(self.of(group))
                if self.demands.allows(first, last):
                    yield from (arc for arc in some if arc.options is not None)
                if not some or self.demands.over(first, last):
                    break

    def of(self, group: Group) -> Iterator[Arc]:
        """The arcs of a group: options that read alike together."""
        shared = sorted(group.shared)
        subsets = chain.from_iterable(combinations(shared, k) for k in range(len(shared) + 1))
        for twice in subsets:
            mine = Group(group.net, group.first, group.last, frozenset(twice))
            yield from self._alike(mine)

    def _alike(self, group: Group) -> Iterator[Arc]:
        width = group.net.layers[group.last].c
        across = strips(group, "columns", "lead", [width])
        if across is None:
            return
        kept: list[_Priced] = []
        again: list[_Priced] = []
        for mode in MODES if self.demands.recompute else KEPT:
            down = strips(group, "rows", mode, self.demands.heights(group))
            if down is not None:
                (again if mode == "recompute" else kept).extend(self._priced(group, down, across))
        if kept:
            yield self._arc(group, kept)
        for one in again:
            if one.fits and not any(_dominates(other, one) for other in kept):
                yield self._arc(group, [one])

    def _priced(self, group: Group, down: Strips, across: Strips) -> Iterator[_Priced]:
        axes, layers = self.axes(group), len(group.layers)
        peak = peaks(group, down, across, [self.residences[k].store for k in axes])
        weights = weights_of(group, self.weight_bytes)
        banks = np.arange(self.machine.ocm_banks + 1) * self.machine.bank_bytes
        per_pixel = [x.macs // (x.r * x.c) for x in (group.net.layers[t] for t in group.layers)]
        for i, j in self._best(group, peak, down, across):
            mine, visits = peak[:, i, j], [int(n) for n in down.active[:layers, i] * across.active[:layers, j]]
            computed = down.computed[:layers, i] * across.computed[:layers, j]
            macs = sum(each * int(n) for each, n in zip(per_pixel, computed, strict=True))
            table = weights.loaded(visits, banks - mine[:, None])
            table = table.reshape(*(2,) * len(axes), len(banks)).transpose(*range(len(axes) - 1, -1, -1), len(axes))
            option = Option(down.sizes[i], across.sizes[j], down.mode, across.mode, group.twice)
            yield _Priced(option, table, self._reads(group, down, across, i, j), macs)

    def _best(self, group: Group, peak: Ints, down: Strips, across: Strips) -> Iterator[tuple[int, int]]:
        """Yield the heights and widths that fit and that no other beats: in room, visits, and what is done again."""
        high, wide = self._figures(group, down, "rows"), self._figures(group, across, "columns")
        count = peak.shape[1:]
        figures = np.concatenate([
            peak.reshape(len(peak), -1), np.repeat(high, count[1], axis=1), np.tile(wide, count[0])
        ])  # fmt: skip
        fits = np.flatnonzero(peak.reshape(len(peak), -1).min(axis=0) <= self.room)
        distinct = fits[np.unique(figures[:, fits], axis=1, return_index=True)[1]]
        mine = figures[:, distinct]
        beaten = (mine[:, :, None] <= mine[:, None, :]).all(axis=0).sum(axis=0) > 1
        for place in sorted(distinct[~beaten]):
            yield int(place) // count[1], int(place) % count[1]

    def _figures(self, group: Group, steps: Strips, axis: str) -> Ints:
        """What costs depend on beside room, (figures, sizes)."""
        layers = len(group.layers)
        if steps.mode != "recompute":
            return steps.active[:layers]
        read = [
            steps.beyond(k, np.array(self._rows(stream.store) if axis == "rows" else (0,), np.int64)).T
            for k, stream in enumerate(group.streams)
            if stream.outside
        ]
        return np.concatenate([steps.active[:layers], steps.computed[:layers], *read])

    def axes(self, group: Group) -> tuple[int, ...]:
        """The residences among the maps that a group reads from outside, or that are used after it."""
        outside = [self.number[s] for s in group.outside if s in self.number]
        made = [self.number[s] for s in sorted(group.made) if s in self.number]
        return (*outside, *(k for k in made if self.residences[k].uses[-1] > group.last))

    def _reads(self, group: Group, down: Strips, across: Strips, i: int, j: int) -> dict[int, Ints]:
        """Bytes that are read of every outside store, by level (one for those that cannot stay)."""
        reads: dict[int, Ints] = {}
        for k, stream in enumerate(group.streams):
            if stream.outside:
                rows = np.array(self._rows(stream.store), np.int64)
                read = down.beyond(k, rows)[i] * int(across.computed[k, j]) * stream.pixel
                reads[stream.store] = reads.get(stream.store, 0) + read
        return reads

    def _rows(self, store: int) -> tuple[int, ...]:
        """Rows on chip for every level, as a layer sees them."""
        if store not in self.number:
            return (0,)
        mine, found = self.residences[self.number[store]], self.net.stores[store]
        reader = next(t for t in found.readers)
        return tuple(found.seen(rows, self.net.layers[reader].h) for rows in mine.rows)

    def _arc(self, group: Group, priced: Sequence[_Priced]) -> Arc:
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
        return Arc(
            group.first, group.last, axes, tuple(whole), tuple(read), fixed, priced[0].macs, stacked.min(axis=0),
            Grouped(group, tuple(one.option for one in priced), stacked.argmin(axis=0)),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Priced:
    """An option with its costs by classes and banks, and what it reads by store and level."""

    option: Option
    table: Ints
    reads: dict[int, Ints]
    macs: int

    @property
    def fits(self) -> bool:
        return bool(self.table.min() < NEVER)


def _dominates(one: _Priced, other: _Priced) -> bool:
    """Whether `one` never costs more; it reads no more by construction."""
    return bool((one.table <= other.table).all())


def singles(joint: Joint, macs: Sequence[int]) -> Iterator[Arc]:
    """Yield the arcs of one layer each, from the tables of F10."""
    for t, step in enumerate(joint.steps):
        classes, reads = [], []
        groups = [step.classes(axis) for axis in range(len(step.axes))]
        for k, members in zip(step.axes, groups, strict=True):
            names = np.zeros(len(joint.residences[k].banks), np.int64)
            for number, levels in enumerate(members):
                names[list(levels)] = number
            classes.append(names)
            given = zip(step.once, step.inputs, strict=True)
            reads.append(np.array([once for once, source in given if source == k], np.int64).sum(axis=0))
        table = step.extra[np.ix_(*([levels[0] for levels in members] for members in groups), range(joint.banks + 1))]
        fixed = step.fixed + sum(once[0] for once, k in zip(step.once, step.inputs, strict=True) if k < 0)
        yield Arc(t, t, step.axes, tuple(classes), tuple(reads), fixed, macs[t], table)
