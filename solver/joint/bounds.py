"""What is known about the tile plans of one layer of a joint plan: bounds on the bytes of the best of them.

Let e(k, f) be the fewest bytes beyond reading everything once, with k rows of the input on chip and f banks for tiles.
A search of F1 at (k, f) gives a nest, and a bound that no nest is below, there and for all smaller k and f. Mostly they
are the same. Where they are not, as some nest may do better than any candidate, the bound is kept as proven, and what
was found as if it were: the first bounds the network's optimum, the second leads to the best plan.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Literal

import numpy as np

from formulations.joint.problem import NEVER, Ints
from formulations.pins import Pins
from formulations.tiling import problem as tiling
from hwmodels.nest.limits import tensor_bytes
from hwmodels.nest.price import price
from hwmodels.schedule import Nest
from instances.machine import Machine
from instances.workload import Layer

__all__ = ["Bound", "One", "Plans", "Rows", "Several"]

#: A lower bound on all nests; one on all that searches can find; what a known nest reaches.
Bound = Literal["proven", "found", "known"]
Rows = tuple[int, ...]


class Plans:
    """What is known about the plans of one layer.

    Attributes
    ----------
    searches : int
        Made so far.
    hasty : bool
        Whether nests are priced only for the rows that they were found for, as there is no time.
    proving : tuple of str
        What a search proves: the bytes, and where all nests move the same the bytes on chip.
    """

    proving: tuple[str, ...] = ("bytes",)

    def __init__(self, layer: Layer, machine: Machine, pins: Pins) -> None:
        self.layer, self.machine, self.pins = layer, machine, pins
        self.banks, self.bank_bytes = machine.ocm_banks, machine.bank_bytes
        self.nests: list[Nest] = []
        self.searches, self.hasty, self._begun = 0, False, False
        self._once: dict[int, int] = {}
        self._searched: set[tuple[Rows, int]] = set()
        self._tables: dict[object, Ints] = {}

    def once(self, rows: int) -> int:
        """Bytes of one input beyond its first rows, read once."""
        if rows not in self._once:
            single = self.layer.model_copy(update={"inputs": 1, "resident_in": (rows,)})
            self._once[rows] = tensor_bytes(single, self.machine)["IN"]
        return self._once[rows]

    @cached_property
    def fixed(self) -> int:
        """Bytes of the weights once."""
        return tensor_bytes(self.layer, self.machine).get("W", 0)

    def table(self, levels: tuple[Rows, ...], axes: tuple[int, ...], *, bound: Bound) -> Ints:
        """Bounds on e for the rows of every level of some inputs, (levels of each, banks + 1).

        Parameters
        ----------
        axes : tuple of int
            For every input of the layer its place among `levels`; -1 if it lies in DRAM.
        """
        key = levels, axes, bound
        if key not in self._tables:
            self._tables[key] = self._table(levels, axes, bound=bound)
        return self._tables[key]

    def _table(self, levels: tuple[Rows, ...], axes: tuple[int, ...], *, bound: Bound) -> Ints:
        raise NotImplementedError

    def known(self, rows: Rows, banks: int) -> bool:
        """Whether a nest is known that reaches the lower bound."""
        raise NotImplementedError

    def want(self, rows: Iterable[int]) -> None:
        """Keep upper bounds for these numbers of rows too."""

    def nest(self, rows: Rows, banks: int) -> Nest:
        """The best nest that is known."""
        raise NotImplementedError

    def quick(self, deadline: float | None = None) -> None:
        """Find some nest in no time, a better one before the deadline if there is one."""
        from solver.engines.exhaustive import Search  # late: the engines' package imports every solver

        machine = self.machine.model_copy(update={"ocm_bytes": self.banks * self.bank_bytes})
        space = tiling.build(self.layer, machine, self.pins)
        self.hasty = deadline is not None and time.monotonic() > deadline
        pick = None
        if self._begun:
            return
        if self.hasty:
            pick = Search(space.uniform(), ("bytes",), deadline=0.0).first("bytes")
        if pick is None:
            pick = Search(space, ("bytes",), deadline=deadline).first("bytes")
        if pick is not None:
            self._learn(pick.nest, (0,) * self.layer.inputs)
        self._begun = True

    def search(self, rows: Rows, banks: int, deadline: float | None) -> bool:
        """Find e(rows, banks) and all that follows from it; False if the time ran out."""
        from solver.engines.exhaustive import Search

        self.searches += 1
        space = tiling.build(self._variant(rows), self.machine, self.pins)
        most = {"ocm": banks * self.bank_bytes}
        search = Search(space, ("bytes", "ocm"), deadline=deadline, kept=most, proving=self.proving)
        pick = search.run()
        if pick is not None:
            self._learn(pick.nest, rows)
        done = not (search.stopped and search.ties)  # what breaks ties may stop
        if done:
            self._searched.add((rows, banks))
            values = pick.measures if pick is not None else {}
            self._prove(rows, banks, values, {**values, **search.bounds})
        self._tables.clear()
        return done

    def _learn(self, nest: Nest, rows: Rows) -> None:
        raise NotImplementedError

    def _prove(self, rows: Rows, banks: int, found: Mapping[str, int], bounds: Mapping[str, int]) -> None:
        """Note what a search found, and what no nest is below; nothing is in both if no nest fits."""
        raise NotImplementedError

    def _variant(self, rows: Rows) -> Layer:
        return self.layer.model_copy(update={"resident_in": rows})

    def _beyond(self, rows: Rows, moved: int) -> int:
        return moved - sum(tensor_bytes(self._variant(rows), self.machine).values())

    def _priced(self, nest: Nest, rows: Rows) -> tuple[int, int]:
        """Bytes on chip, and bytes beyond everything once."""
        outcome = price(self._variant(rows), self.machine, nest)
        return outcome.occupancy_bytes["ocm"], self._beyond(rows, outcome.bytes)


class One(Plans):
    """The plans of a layer of one input: `bounds` on e of every kind, (rows + 1, banks + 1)."""

    def __init__(self, layer: Layer, machine: Machine, pins: Pins) -> None:
        super().__init__(layer, machine, pins)
        shape = (layer.h + 1, self.banks + 1)
        self.bounds: dict[Bound, Ints] = {b: np.zeros(shape, np.int64) for b in ("proven", "found")}
        for lower in self.bounds.values():
            lower[:, 0] = NEVER
        self.upper = self.bounds["known"] = np.full(shape, NEVER, np.int64)
        self.which = np.full(shape, -1, np.int64)
        self.wanted: set[int] = set()

    def _table(self, levels: tuple[Rows, ...], axes: tuple[int, ...], *, bound: Bound) -> Ints:
        table = self.bounds[bound]
        return table[list(levels[0])] if levels else table[0]

    def known(self, rows: Rows, banks: int) -> bool:
        """Whether a nest is known that reaches the lower bound, or none better is to be found."""
        reached = bool(self.upper[rows[0], banks] == self.bounds["proven"][rows[0], banks])
        return reached or (rows, banks) in self._searched

    def want(self, rows: Iterable[int]) -> None:
        """Keep upper bounds for these numbers of rows too."""
        new = sorted(set(rows) - self.wanted)
        self.wanted |= set(new)
        for number, nest in enumerate(self.nests):
            self._spread(number, nest, new)
        self._tables.clear()

    def nest(self, rows: Rows, banks: int) -> Nest:
        """The best nest that is known."""
        return self.nests[int(self.which[rows[0], banks])]

    def _learn(self, nest: Nest, rows: Rows) -> None:
        self.nests.append(nest)
        self._spread(len(self.nests) - 1, nest, [rows[0]] if self.hasty else sorted(self.wanted | {rows[0]}))
        self._tables.clear()

    def _prove(self, rows: Rows, banks: int, found: Mapping[str, int], bounds: Mapping[str, int]) -> None:
        kinds: tuple[tuple[Bound, Mapping[str, int]], ...] = (("proven", bounds), ("found", found))
        for kind, values in kinds:
            least = self._beyond(rows, values["bytes"]) if "bytes" in values else NEVER
            below = self.bounds[kind][: rows[0] + 1, : banks + 1]
            np.maximum(below, least, out=below)

    def _spread(self, number: int, nest: Nest, rows: Iterable[int]) -> None:
        """Price a nest where other rows are on chip."""
        for k in rows:
            size, cost = self._priced(nest, (k,))
            banks = -(-size // self.bank_bytes)
            better = np.flatnonzero(self.upper[k, banks:] > cost) + banks
            self.upper[k, better], self.which[k, better] = cost, number


class Several(Plans):
    """The plans of a layer of several inputs: bounds on the banks that its least nest needs, by rows of every input."""

    proving = ("bytes", "ocm")

    def __init__(self, layer: Layer, machine: Machine, pins: Pins) -> None:
        super().__init__(layer, machine, pins)
        #: What every nest moves beyond everything once.
        self.constant = 0
        self.bounds: dict[Bound, list[tuple[Rows, int]]] = {"proven": [], "found": []}
        self._sizes: dict[tuple[int, int, int], int] = {}

    def _size(self, number: int, at: int, rows: int) -> int:
        """Bytes on chip of a nest with rows of one input there."""
        key = number, at, rows
        if key not in self._sizes:
            given = tuple(rows if k == at else 0 for k in range(self.layer.inputs))
            self._sizes[key] = self._priced(self.nests[number], given)[0]
        return self._sizes[key]

    def _needs(self, rows: tuple[Ints, ...]) -> Ints:
        """The fewest banks that a known nest takes: every input has a tile of its own, the sizes add up."""
        least = np.full(np.broadcast_shapes(*(one.shape for one in rows)), self.banks + 1, np.int64)
        for number in range(len(self.nests)):
            none = self._size(number, 0, 0)
            size = np.full(least.shape, none, np.int64)
            for at, mine in enumerate(rows):
                size += np.array([self._size(number, at, int(k)) - none for k in mine.ravel()]).reshape(mine.shape)
            least = np.minimum(least, -(-size // self.bank_bytes))
        return least

    def _least(self, rows: tuple[Ints, ...], bound: Bound = "proven") -> Ints:
        """A lower bound on the banks of all nests, or on those of nests that a search finds."""
        least = np.ones(np.broadcast_shapes(*(one.shape for one in rows)), np.int64)
        for given, banks in self.bounds[bound]:
            fewer = np.all(np.broadcast_arrays(*(one <= k for one, k in zip(rows, given, strict=True))), axis=0)
            least = np.where(fewer, np.maximum(least, banks), least)
        return least

    def _table(self, levels: tuple[Rows, ...], axes: tuple[int, ...], *, bound: Bound) -> Ints:
        whole = len(levels)
        grids = [np.array(one).reshape([-1 if a == k else 1 for a in range(whole)]) for k, one in enumerate(levels)]
        none = np.zeros([1] * len(levels), np.int64)
        rows = tuple(grids[a] if a >= 0 else none for a in axes)
        needs = self._needs(rows) if bound == "known" else self._least(rows, bound)
        needs = np.broadcast_to(needs, tuple(len(one) for one in levels))
        fits = np.arange(self.banks + 1) >= needs[..., None]
        return np.where(fits, self.constant, NEVER).astype(np.int64)

    def known(self, rows: Rows, banks: int) -> bool:
        """Whether a nest is known that fits, or that none does, or none is to be found."""
        given = tuple(np.array(k) for k in rows)
        sure = int(self._needs(given)) <= banks or int(self._least(given)) > banks
        return sure or (rows, self.banks) in self._searched

    def nest(self, rows: Rows, banks: int) -> Nest:
        """A nest that is known to fit."""
        for nest in self.nests:
            if self._priced(nest, rows)[0] <= banks * self.bank_bytes:
                return nest
        raise AssertionError("no nest is known to fit")

    def search(self, rows: Rows, banks: int, deadline: float | None) -> bool:
        """Find the least nest for these rows, in whatever banks."""
        return super().search(rows, self.banks, deadline)

    def _learn(self, nest: Nest, rows: Rows) -> None:
        self.nests.append(nest)
        self.constant = self._priced(nest, rows)[1]
        self._tables.clear()

    def _prove(self, rows: Rows, banks: int, found: Mapping[str, int], bounds: Mapping[str, int]) -> None:
        kinds: tuple[tuple[Bound, Mapping[str, int]], ...] = (("proven", bounds), ("found", found))
        for kind, values in kinds:
            if "bytes" not in values:
                self.bounds[kind].append((rows, self.banks + 1))
            elif "ocm" in values:
                self.bounds[kind].append((rows, -(-values["ocm"] // self.bank_bytes)))
