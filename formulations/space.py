"""A finite search space of nests: branches, each a skeleton with candidate tile sizes and integer tables.

A branch fixes everything but the tile sizes; a plan is a branch, a spatial choice s = (T_b, T_r, T_c) and a channel
choice q = (T_g, T_m, T_n).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from formulations.pins import Pins
from hwmodels.bilinear import Bilinear, Ints
from hwmodels.core import Choices, CoreTables
from hwmodels.overlap import double_buffered_ticks
from hwmodels.schedule import Nest
from hwmodels.skeleton import Skeleton, cores
from hwmodels.tables import nest_tables
from instances.machine import Machine
from instances.workload import Layer

__all__ = ["Branch", "Space"]

#: Branches with more channel choices than this are cut, in this many parts (measured: 4 to 64 parts differ little).
_SMALL, _PARTS = 150, 12


@dataclass(frozen=True)
class Branch:
    """One skeleton with its candidate tile sizes and the tables that price them.

    Attributes
    ----------
    label : dict of str to str
        The decisions that the skeleton stands for (order; partition and dataflow).
    time : tuple of Bilinear
        Ticks are the largest of these; only a lower bound unless `exact`.
    bytes : Bilinear
    capacity : tuple of (memory, Bilinear, bytes)
        Rows ``occupancy <= bytes``.
    """

    layer: Layer
    machine: Machine
    label: Mapping[str, str]
    skeleton: Skeleton
    choices: Choices
    time: tuple[Bilinear, ...]
    bytes: Bilinear
    capacity: tuple[tuple[str, Bilinear, int], ...]
    exact: bool

    @classmethod
    def build(
        cls,
        layer: Layer,
        machine: Machine,
        label: Mapping[str, str],
        skeleton: Skeleton,
        steps: Mapping[str, Ints],
        *,
        full: bool = False,
    ) -> Branch:
        """Price all combinations of `steps` under `skeleton`; unless `full`, only those that may fit."""
        choices = Choices.product(steps)
        if not full and machine.reading == "consistent":
            choices = _fitting(layer, machine, skeleton, choices)
            if 0 in choices.shape:
                empty = Bilinear.of([], choices.shape)
                return cls(layer, machine, label, skeleton, choices, (empty,), empty, (), True)
        tables = nest_tables(layer, machine, skeleton, choices)
        size = machine.memories
        capacity = tuple((name, table, size[name]) for name, parts in tables.capacity.items() for table in parts)
        branch = cls(layer, machine, label, skeleton, choices, tables.time, tables.bytes, capacity, tables.exact)
        return branch if full else branch.fitting()

    def fitting(self) -> Branch:
        """Drop spatial choices that fit with no channel choice, and the reverse."""
        if 0 in self.choices.shape:
            return self
        s_keep = np.ones(self.choices.shape[0], np.bool_)
        q_keep = np.ones(self.choices.shape[1], np.bool_)
        for _, table, limit in self.capacity:
            s_keep &= table.b.min(axis=1) @ table.a <= limit
            q_keep &= table.a.min(axis=1) @ table.b <= limit
        return self.take(np.flatnonzero(s_keep), np.flatnonzero(q_keep))

    def take(self, s: Ints | None = None, q: Ints | None = None) -> Branch:
        """Restrict to some choices."""
        rows = tuple((name, t.take(s, q), limit) for name, t, limit in self.capacity)
        time = tuple(t.take(s, q) for t in self.time)
        return Branch(
            self.layer, self.machine, self.label, self.skeleton, self.choices.take(s, q),
            time, self.bytes.take(s, q), rows, self.exact,
        )  # fmt: skip

    def parts(self) -> list[Branch]:
        """Cut a branch with many channel choices in intervals of T_N, each with its own model.

        Within an interval the channel factors vary less, so both the separable bounds and the relaxations are much
        tighter: one model of 3,000 channel choices takes minutes where twelve take a second.
        """
        values = self.choices.values("n")
        sizes = np.unique(values)
        if self.choices.shape[1] <= _SMALL or len(sizes) < 2:
            return [self]
        groups = np.array_split(sizes, min(_PARTS, len(sizes)))
        cut = [self.take(q=np.flatnonzero(np.isin(values, group))).fitting() for group in groups]
        return [part for part in cut if not part.empty]

    @property
    def empty(self) -> bool:
        """Whether no choice is left on one side."""
        return 0 in self.choices.shape

    def tables(self, measure: str) -> tuple[Bilinear, ...]:
        """The functions whose largest value is `measure` (energy as bytes: it rises with them and nothing else)."""
        return self.time if measure == "time" else (self.bytes,)

    def feasible(self) -> NDArray[np.bool_]:
        """Matrix (S, Q) of what fits."""
        fits = np.ones(self.choices.shape, np.bool_)
        for _, table, limit in self.capacity:
            fits &= table.matrix() <= limit
        return fits

    def nest(self, s: int, q: int) -> Nest:
        """The nest of one choice."""
        return self.skeleton.nest(self.choices.tile(s, q))

    def measures(self, s: int, q: int) -> dict[str, int]:
        """Exact time, bytes and energy of one choice."""
        moved = self.bytes.at(s, q)
        if self.exact:
            time = max(t.at(s, q) for t in self.time)
        else:
            core = cores(self.layer, self.skeleton.spatial)[0]
            time = double_buffered_ticks(self.layer, self.machine, self.skeleton, core, self.choices.tile(s, q))
        energy = self.machine.byte_fj * moved + self.machine.mac_fj * self.layer.macs
        return {"time": time, "bytes": moved, "energy": energy}


def _fitting(layer: Layer, machine: Machine, skeleton: Skeleton, choices: Choices) -> Choices:
    """Drop the choices that fit the first core with no choice on the other side, before the costly tables are made."""
    tables = CoreTables(layer, machine, skeleton, cores(layer, skeleton.spatial)[0], choices)
    s_keep, q_keep = np.ones(choices.shape[0], np.bool_), np.ones(choices.shape[1], np.bool_)
    for name, table in tables.capacity(tables.footprints()).items():
        limit = machine.memories[name]
        s_keep &= table.b.min(axis=1) @ table.a <= limit
        q_keep &= table.a.min(axis=1) @ table.b <= limit
    return choices.take(np.flatnonzero(s_keep), np.flatnonzero(q_keep))


@dataclass(frozen=True)
class Space:
    """All plans a problem allows for one layer on one machine.

    Attributes
    ----------
    build : callable
        Rebuilds the space with other pins (used by `explain`).
    points : int
        Size of the unreduced space: every skeleton times every integer tile size.
    """

    problem: str
    layer: Layer
    machine: Machine
    pins: Pins
    branches: tuple[Branch, ...]
    points: int
    build: Callable[[Machine, Pins], Space]
    read: Callable[[Nest], dict[str, int | str]]

    @cached_property
    def size(self) -> dict[str, int]:
        """Points of the unreduced space, and the choices left to look at."""
        looked = sum(b.choices.shape[0] * b.choices.shape[1] for b in self.branches)
        return {"points": self.points, "candidates": looked, "branches": len(self.branches)}

    def decision(self, nest: Nest) -> dict[str, int | str]:
        """The decisions that a nest of this problem stands for."""
        return self.read(nest)

    @property
    def infeasible(self) -> bool:
        """Whether no plan fits, decided exactly."""
        return not any(bool(b.feasible().any()) for b in self.branches if not b.empty)

    def explain(self) -> tuple[str, ...]:
        """Name a minimal set of demands (memory sizes and pins) that no plan meets together; empty if one does.

        Deletion filter: drop a demand if the rest is still infeasible; what remains conflicts, and any part of it
        does not.
        """
        if not self.infeasible:
            return ()
        pins, machine = self.pins, self.machine
        memories = list(machine.memories)
        kept_memories: list[str] = []
        roomy = {m: ("ocm_bytes" if m == "ocm" else f"{m}_buffer_bytes") for m in memories}
        for memory in memories:
            wider = machine.model_copy(update={roomy[memory]: 2**50})
            if self.build(wider, pins).infeasible:
                machine = wider
            else:
                kept_memories.append(memory)
        for pin in self.pins.pins:
            fewer = pins.without(pin)
            if self.build(machine, fewer).infeasible:
                pins = fewer
        return tuple([self._smallest(m, pins) for m in kept_memories] + [f"pin {p}" for p in pins.pins])

    def _smallest(self, memory: str, pins: Pins) -> str:
        """Say how much of `memory` the least demanding plan needs."""
        update = {("ocm_bytes" if m == "ocm" else f"{m}_buffer_bytes"): 2**50 for m in self.machine.memories}
        roomy = self.build(self.machine.model_copy(update=update), pins)
        need = [
            int(max(t.matrix().min() for name, t, _ in b.capacity if name == memory))
            for b in roomy.branches
            if not b.empty
        ]
        size = self.machine.memories[memory]
        label = "memory ocm" if memory == "ocm" else f"memory {memory}"
        return (
            f"{label}: the smallest tile of {self.layer.name} needs {min(need):,} bytes, "
            f"{self.machine.name} has {size:,}"
            if need
            else label
        )
