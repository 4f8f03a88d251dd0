"""What is known about the tile plans of one layer of a joint plan: bounds on the bytes of the best of them.

Let e(k, f) be the fewest bytes beyond reading everything once, with k rows of the input on chip and f banks for tiles.
A search of tiling at (k, f) gives a nest, and a bound that no nest is below, there and for smaller k and f. Mostly they
are the same. Where they are not, as some nest may do better than any candidate, the bound is kept as proven, and what
was found as if it were: the first bounds the network's optimum, the second leads to the best plan.

What is broadcast may be read again and again; such layers are searched as those of one input are. Of another layer
with several inputs (a sum) k is the rows of each. All its nests move the same, so a search proves the banks
that the least nest needs as well; every input has a tile of its own, so what rows on chip save adds up.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal

import numpy as np

from formulations.clock import Clock
from formulations.joint.problem import NEVER, Ints
from formulations.pins import Pins
from formulations.tiling import tiling
from formulations.tiling.search import search_nests
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.limits import tensor_bytes
from hwmodels.schedule import Nest
from instances.machine.machine import Machine
from instances.network.workload import Layer

#: A lower bound on all nests; one on all that searches can find; what a known nest reaches.
Bound = Literal["proven", "found", "known"]
Rows = tuple[int, ...]


class Plans:
    """What is known about the plans of one layer.

    Attributes
    ----------
    nests : list of (Nest, rows or None)
        Each with the only rows that it is priced for, if there was no time for others.
    bounds : dict of list of (rows, banks, bytes)
        With so many rows and banks at most no nest moves less beyond everything once.
    searches : int
        Made so far.
    seconds : float
        That they took.
    """

    def __init__(self, layer: Layer, machine: Machine, pins: Pins) -> None:
        self.layer, self.machine, self.pins = layer, machine, pins
        self.banks, self.bank_bytes, self.several = (
            machine.bank_count,
            machine.bank_bytes,
            layer.inputs > 1 and not layer.broadcast,
        )
        self.nests: list[tuple[Nest, Rows | None]] = []
        self.bounds: dict[Bound, list[tuple[Rows, int, int]]] = {"proven": [], "found": []}
        self.searches, self.seconds = 0, 0.0
        self._begun = False
        self._once: dict[tuple[int, str], int] = {}
        self._priced: dict[tuple[int, int, int], tuple[int, int]] = {}
        self._searched: set[tuple[Rows, int]] = set()
        self._laid: dict[object, tuple[Ints, Ints]] = {}
        self._reached: dict[tuple[Rows, int], bool] = {}

    def once(self, number: int, rows: int) -> int:
        """Bytes of an input (the first is 0) beyond its first rows, read once."""
        lacks = self.layer.patterns[number]
        if (rows, lacks) not in self._once:
            alone = {"inputs": 1, "broadcast": (lacks,) if lacks else (), "resident_in": (rows,)}
            self._once[rows, lacks] = tensor_bytes(self.layer.model_copy(update=alone), self.machine)["IN"]
        return self._once[rows, lacks]

    @cached_property
    def fixed(self) -> int:
        """Bytes of the weights once."""
        return tensor_bytes(self.layer, self.machine).get("W", 0)

    # ---- bounds ------------------------------------------------------------------------------------------------------

    def table(self, levels: tuple[Rows, ...], axes: tuple[int, ...], *, bound: Bound) -> tuple[Ints, Ints]:
        """Rooms for tiles and bounds on e for the rows of every level of some inputs, (levels of each, rooms).

        Rooms are the numbers of banks at which some bound falls, and 0.

        Parameters
        ----------
        axes : tuple of int
            For every input of the layer its place among `levels`; -1 if it lies in DRAM.
        """
        key = levels, axes, bound
        if key not in self._laid:
            grids = np.ix_(*levels, [0])
            rows = tuple(grids[a] if a >= 0 else np.zeros_like(grids[-1]) for a in axes)
            rooms = self._rooms(rows, bound)
            values = self.e(rows, rooms.reshape((1,) * len(levels) + (-1,)), bound)
            falls = (values[..., 1:] != values[..., :-1]).any(axis=tuple(range(len(levels))))
            kept = np.append(True, falls)
            self._laid[key] = rooms[kept], values[..., kept]
        return self._laid[key]

    def _rooms(self, rows: Sequence[Ints], bound: Bound) -> Ints:
        """Numbers of banks between which the bounds for rows of every input are the same."""
        if bound == "known":
            sizes = [self._figures(number, rows)[0].ravel() for number in range(len(self.nests))]
            fewest = [-(-size // self.bank_bytes) for size in sizes]
        else:
            fewest = [np.array([1, *(most + 1 for _, most, _ in self.bounds[bound])])]
        rooms = np.unique(np.concatenate([np.zeros(1, np.int64), *fewest]))
        return rooms[rooms <= self.banks]

    def e(self, rows: Sequence[Ints], banks: Ints, bound: Bound) -> Ints:
        """Bounds on e for rows of every input and banks; `NEVER` where no nest fits, or none is known."""
        shape = np.broadcast_shapes(banks.shape, *(one.shape for one in rows))
        if bound == "known":
            values = np.full(shape, NEVER, np.int64)
            for number in range(len(self.nests)):
                size, moved = self._figures(number, rows)
                values = np.where(size <= banks * self.bank_bytes, np.minimum(values, moved), values)
            return values
        values = np.where(banks > 0, np.zeros(shape, np.int64), NEVER)
        for given, most, least in self.bounds[bound]:
            inside = np.logical_and.reduce(
                np.broadcast_arrays(banks <= most, *(one <= k for one, k in zip(rows, given, strict=True)))
            )
            values = np.where(inside, np.maximum(values, least), values)
        return values

    def known(self, rows: Rows, banks: int) -> bool:
        """Whether a nest is known that reaches the lower bound, or none better is to be found."""
        place = [np.array(k) for k in rows], np.array(banks)
        if (rows, banks) not in self._reached:
            self._reached[rows, banks] = bool(self.e(*place, "known") == self.e(*place, "proven"))
        return self._reached[rows, banks] or (rows, self._asked(banks)) in self._searched

    def nest(self, rows: Rows, banks: int) -> Nest:
        """The best nest that is known."""
        given, room = [np.array(k) for k in rows], banks * self.bank_bytes
        figures = [self._figures(number, given) for number in range(len(self.nests))]
        moved = [int(moved) if size <= room else NEVER for size, moved in figures]
        return self.nests[moved.index(min(moved))][0]

    def _figures(self, number: int, rows: Sequence[Ints]) -> tuple[Ints, Ints]:
        """Bytes on chip of a nest, and what it moves beyond everything once."""
        none = np.array(self._price(number, 0, 0))
        figures = none
        for at, mine in enumerate(rows):
            more = np.array([self._price(number, at, int(k)) for k in mine.ravel()]) - none
            figures = figures + more.reshape(*mine.shape, 2)
        return figures[..., 0], figures[..., 1]

    def _price(self, number: int, at: int, rows: int) -> tuple[int, int]:
        """The same with rows of one input there."""
        key = number, at, rows
        if key not in self._priced:
            nest, only = self.nests[number]
            given = tuple(rows if k == at else 0 for k in range(self.layer.inputs))
            outcome = price(self._variant(given), self.machine, nest) if only in (None, given) else None
            self._priced[key] = (NEVER, 0) if outcome is None else (
                outcome.occupancy_bytes["ocm"], self._beyond(given, outcome.bytes)
            )  # fmt: skip
        return self._priced[key]

    # ---- searches ----------------------------------------------------------------------------------------------------

    def quick(self, clock: Clock) -> None:
        """Find some nest in no time, a better one in time if there is one."""
        if self._begun:
            return
        hasty, none = clock.over, (0,) * self.layer.inputs
        machine = self.machine.model_copy(update={"ocm_bytes": self.banks * self.bank_bytes})
        space = tiling.build(self.layer, machine, self.pins)
        nest = search_nests(space.uniform(), ("bytes",), clock, first=True).nest if hasty else None
        if nest is None:
            nest = search_nests(space, ("bytes",), clock, first=True).nest
        if nest is not None:
            self._learn(nest, none if hasty else None)
        self._begun = True

    def search(self, rows: Rows, banks: int, clock: Clock) -> bool:
        """Find e(rows, banks) and all that follows from it; False if the time ran out.

        It ends early at what searches with more rows or banks have proven. Of nests that move as little it finds the
        smallest, not the fastest: that is looked for where a plan keeps it (`Layers.faster`).
        """
        self.searches += 1
        start, banks = time.monotonic(), self._asked(banks)
        space = tiling.build(self._variant(rows), self.machine, self.pins)
        least = self._everything(rows) + int(self.e([np.array(k) for k in rows], np.array(banks), "proven"))
        said = search_nests(
            space, ("bytes", "ocm"), clock, most={"ocm": banks * self.bank_bytes},
            proving=("bytes", "ocm") if self.several else ("bytes",), known={"bytes": least}, polishing=False,
        )  # fmt: skip
        self.seconds += time.monotonic() - start
        if said.nest is not None:
            self._learn(said.nest)
        if said.whole:
            self._searched.add((rows, banks))
            self._note("proven", rows, banks, {**said.measures, **said.bounds})
            self._note("found", rows, banks, said.measures)
        self._forget()
        return said.whole

    def _asked(self, banks: int) -> int:
        """The banks of a search: of several inputs it finds the least nest, in whatever banks."""
        return self.banks if self.several else banks

    def _note(self, bound: Bound, rows: Rows, banks: int, values: Mapping[str, int]) -> None:
        """Note what no nest is below; there are no values if none fits."""
        moved = self._beyond(rows, values["bytes"]) if "bytes" in values else NEVER
        self.bounds[bound].append((rows, banks, moved))
        if self.several and "ocm" in values:
            self.bounds[bound].append((rows, -(-values["ocm"] // self.bank_bytes) - 1, NEVER))

    def _learn(self, nest: Nest, only: Rows | None = None) -> None:
        self.nests.append((nest, only))
        self._forget()

    def _forget(self) -> None:
        """Tables are no longer what is known."""
        self._laid.clear()
        self._reached.clear()

    def _variant(self, rows: Rows) -> Layer:
        return self.layer.model_copy(update={"resident_in": rows})

    def _beyond(self, rows: Rows, moved: int) -> int:
        return moved - self._everything(rows)

    def _everything(self, rows: Rows) -> int:
        """Bytes of everything once, with rows of every input on chip."""
        return sum(tensor_bytes(self._variant(rows), self.machine).values())
