"""A priced branch: one skeleton with candidate chains of steps, and integer tables over its choices.

A plan is a branch, a spatial choice s (chains of b, of r with i, of c with j, and the loop that IN slides along) and a
channel choice q (chains of g, m, n).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from formulations.pareto import pareto
from hwmodels.nest.price.bilinear import Bilinear, Ints
from hwmodels.nest.price.choices import S_DIMS, Choices
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.pipeline import Pipeline
from hwmodels.nest.price.skeleton import Skeleton
from hwmodels.outcome import Outcome
from hwmodels.schedule import Nest
from instances.machine.machine import Machine
from instances.network.workload import Layer

#: Branches with more channel choices than this are cut, in this many parts (measured: 4 to 64 parts differ little).
_SMALL, _PARTS = 150, 12
#: Combinations that are looked at at once.
_CHUNK = 4_000_000
#: Most that a measure may be.
Limits = Mapping[str, int]


@dataclass(frozen=True)
class Branch:
    """One skeleton with candidate chains and the tables that price them."""

    layer: Layer
    machine: Machine
    label: Mapping[str, str]
    """The decisions that the skeleton stands for (partition, order, which operand is held outermost)."""
    skeleton: Skeleton
    choices: Choices
    time: tuple[Bilinear, ...]
    """Ticks are the largest of these (none if time was not asked for); only a lower bound unless `exact`."""
    bytes: Bilinear
    """Empty if bytes were not asked for."""
    capacity: tuple[tuple[str, Bilinear, int], ...]
    """Rows ``occupancy <= bytes``."""
    exact: bool
    energy: Bilinear
    """Empty if energy was not asked for."""
    pipelines: tuple[Pipeline, ...] = ()
    """With transfers that overlap: no time is below what it says (`raised`)."""

    def fitting(self) -> Branch:
        """Drop spatial choices that fit with no channel choice, and the reverse."""
        if self.empty:
            return self
        s_keep = np.ones(self.choices.shape[0], np.bool_)
        q_keep = np.ones(self.choices.shape[1], np.bool_)
        for _, table, limit in self.capacity:
            s_keep &= table.b.min(axis=1) @ table.a <= limit
            q_keep &= table.a.min(axis=1) @ table.b <= limit
        if s_keep.all() and q_keep.all():
            return self
        return self.take(np.flatnonzero(s_keep), np.flatnonzero(q_keep))

    def possible(self, limits: Limits) -> NDArray[np.bool_]:
        """Which spatial choices may fit, and stay within the limits, with some channel choice."""
        keep = np.ones(self.choices.shape[0], np.bool_)
        for _, table, room in self.capacity:
            keep &= lower_bounds((table,), "s") <= room
        for measure, limit in limits.items():
            keep &= lower_bounds(self.tables(measure), "s") <= limit
        return keep

    def take(self, s: Ints | None = None, q: Ints | None = None) -> Branch:
        """Restrict to some choices."""
        rows = tuple((name, t.take(s, q), limit) for name, t, limit in self.capacity)
        time = tuple(t.take(s, q) for t in self.time)
        return Branch(
            self.layer, self.machine, self.label, self.skeleton, self.choices.take(s, q),
            time, self.bytes.take(s, q), rows, self.exact, self.energy.take(s, q),
            tuple(one.take(s, q) for one in self.pipelines),
        )  # fmt: skip

    def sliding(self) -> Branch:
        """Drop slides that another slide of the same chains is never above."""
        index = self.choices.index
        changes = np.any([np.diff(index[d], prepend=-1) != 0 for d in S_DIMS], axis=0)
        chains = np.cumsum(changes) - 1  # the slides of equal chains stand side by side
        place = np.full((int(chains.max()) + 1, len(self.choices.slides)), -1)
        place[chains, index["slide"]] = np.arange(len(chains))
        tables = (*self.time, self.bytes, *(t for _, t, _ in self.capacity))
        rows = np.concatenate([t.a for t in tables])
        for one, two in permutations(range(place.shape[1]), 2):
            both = np.flatnonzero((place[:, one] >= 0) & (place[:, two] >= 0))
            beaten = (rows[:, place[both, two]] <= rows[:, place[both, one]]).all(axis=0)
            place[both[beaten], one] = -1
        return self.take(s=np.sort(place[place >= 0]))

    def parts(self) -> list[Branch]:
        """Cut a branch with many channel choices in intervals of T_N, each with its own model.

        Within an interval the channel factors vary less, so both the separable bounds and the relaxations are much
        tighter: one model of 3,000 channel choices takes minutes where twelve take a second.
        """
        if self.empty or self.choices.shape[1] <= _SMALL:
            return [self]
        values = self.choices.values("n")
        sizes = np.unique(values)
        if len(sizes) < 2:
            return [self]
        groups = np.array_split(sizes, min(_PARTS, len(sizes)))
        cut = [self.take(q=np.flatnonzero(np.isin(values, group))).fitting() for group in groups]
        return [part for part in cut if not part.empty]

    @property
    def empty(self) -> bool:
        """Whether no choice is left on one side."""
        return 0 in self.choices.shape

    def tables(self, measure: str) -> tuple[Bilinear, ...]:
        """The functions whose largest value is `measure`.

        "ocm" is the bytes taken on chip.
        """
        if measure == "ocm":
            return tuple(table for _, table, _ in self.capacity)
        if measure == "energy":
            return (self.energy,)
        return self.time if measure == "time" else (self.bytes,)

    def feasible(self) -> NDArray[np.bool_]:
        """Matrix (S, Q) of what fits."""
        fits = np.ones(self.choices.shape, np.bool_)
        for _, table, limit in self.capacity:
            fits &= table.matrix() <= limit
        return fits

    def nest(self, s: int, q: int) -> Nest:
        """The nest of one choice."""
        slide = self.choices.slide(s)
        skeleton = self.skeleton.last(slide) if slide else self.skeleton
        return skeleton.nest(self.choices.chain(s, q), self.layer, every=self.machine.reading == "literal")

    def measures(self, s: int, q: int) -> dict[str, int]:
        """Exact time, bytes and energy of one choice; never above the tables (docs/tiling.md)."""
        return self.outcome(s, q).measures

    def outcome(self, s: int, q: int) -> Outcome:
        """The exact price of one choice."""
        return price(self.layer, self.machine, self.nest(s, q))


#: A choice of a branch.
Choice = tuple[Branch, int, int]
#: Choices of a branch, and their values.
Block = tuple[Branch, NDArray[np.float64]]


def lower_bounds(tables: Sequence[Bilinear], side: str) -> Ints:
    """Separable lower bound of the largest of `tables` for every choice of `side` ("s" or "q")."""
    if side == "s":
        bounds = [t.b.min(axis=1, initial=2**62) @ t.a for t in tables]
    else:
        bounds = [t.a.min(axis=1, initial=2**62) @ t.b for t in tables]
    largest: Ints = np.max(bounds, axis=0)
    return largest


def within(branch: Branch, limits: Limits) -> Branch:
    """Drop the choices that cannot stay within the limits on some measures, until nothing more drops."""
    while not branch.empty:
        shape = branch.choices.shape
        for side in ("s", "q"):
            keep = np.ones(branch.choices.shape[side == "q"], np.bool_)
            for measure, limit in limits.items():
                keep &= lower_bounds(branch.tables(measure), side) <= limit
            if not keep.all():
                branch = branch.take(**{side: np.flatnonzero(keep)})
                if branch.empty:
                    return branch
        branch = branch.fitting()
        if branch.choices.shape == shape:
            return branch
    return branch


def undominated(branch: Branch, measures: Sequence[str]) -> Branch:
    """Drop the choices that are superfluous for these measures and all capacities.

    A spatial choice s is superfluous if another choice s' has ``a[k, s'] <= a[k, s]`` in every row k of every objective
    and capacity table: with the channel factors non-negative, replacing s by s' in any plan lowers no value. The same
    holds for channel choices. Of equal choices the first is kept.
    """

    def tables(b: Branch) -> list[Bilinear]:
        return [t for m in measures for t in b.tables(m)] + [t for _, t, _ in b.capacity]

    if branch.empty:
        return branch
    branch = branch.take(s=pareto(np.concatenate([t.a for t in tables(branch)])))
    return branch.take(q=pareto(np.concatenate([t.b for t in tables(branch)])))


def smallest(branch: Branch, values: NDArray[np.float64]) -> tuple[int, Choice]:
    """The least of the values of a branch, and the choice that has it."""
    s, q = np.unravel_index(int(values.argmin()), values.shape)
    return int(values[s, q]), (branch, int(s), int(q))


def blocks(branch: Branch, measure: str, *, bounding: bool) -> Iterator[Branch]:
    """Cut a branch in row blocks of bounded size, the most promising rows first."""
    if branch.empty:
        return
    rows = max(1, _CHUNK // branch.choices.shape[1])
    if branch.choices.shape[0] <= rows:
        yield branch
        return
    if bounding:
        rows = max(1, rows // 4)  # similar rows exclude many columns
    order: Ints = np.arange(branch.choices.shape[0])
    if bounding:
        order = np.argsort(lower_bounds(branch.tables(measure), "s"), kind="stable")
    for i in range(0, len(order), rows):
        yield branch.take(s=np.sort(order[i : i + rows]))
