"""The tile plans of every layer that the joint problem chooses among, searched only as far as its optimum needs them.

For a layer whose input has k rows on chip and whose tiles have f banks, let e(k, f) be the fewest bytes beyond reading
everything once. It never rises with k or f: a plan for fewer resident rows or banks is one for more. So one exhaustive
search of F1 at (k, f) is a lower bound for all smaller k and f, and its nest, priced at other k, an upper bound there.
`Tables` starts from e >= 0, solves the joint problem with the lower bounds, searches where its solution relies on a
bound that no known nest reaches, and starts again; when no such place is left, the solution is the optimum over all
nests of F1, although few were searched.

A layer of several inputs (a sum) moves the same bytes whatever its nest; there k is the rows of every input, and what
is bounded is the least number of banks that a nest fits in.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from formulations import tiling
from formulations.joint import NEVER, Choice, Ints, Joint, Residence, Step
from formulations.pins import Pins
from hwmodels.limits import tensor_bytes
from hwmodels.price import price
from hwmodels.schedule import Nest
from instances.machine import Machine
from instances.stores import Store, Stores
from instances.workload import Layer

__all__ = ["Plans", "Tables"]


Rows = tuple[int, ...]


class Plans:
    """What is known about the plans of one layer.

    Attributes
    ----------
    searches : int
        Made so far.
    """

    def __init__(self, layer: Layer, machine: Machine, pins: Pins) -> None:
        self.layer, self.machine, self.pins = layer, machine, pins
        self.banks, self.bank_bytes = machine.ocm_banks, machine.bank_bytes
        self.nests: list[Nest] = []
        self.searches = 0
        self._once: dict[int, int] = {}
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

    def table(self, levels: tuple[Rows, ...], axes: tuple[int, ...], *, lower: bool) -> Ints:
        """Bounds on e for the rows of every level of some inputs, (levels of each, banks + 1).

        Parameters
        ----------
        axes : tuple of int
            For every input of the layer its place among `levels`; -1 if it lies in DRAM.
        """
        key = levels, axes, lower
        if key not in self._tables:
            self._tables[key] = self._table(levels, axes, lower=lower)
        return self._tables[key]

    def _table(self, levels: tuple[Rows, ...], axes: tuple[int, ...], *, lower: bool) -> Ints:
        raise NotImplementedError

    def known(self, rows: Rows, banks: int) -> bool:
        """Whether a nest is known that reaches the lower bound."""
        raise NotImplementedError

    def want(self, rows: Iterable[int]) -> None:
        """Keep upper bounds for these numbers of rows too."""

    def nest(self, rows: Rows, banks: int) -> Nest:
        """The best nest that is known."""
        raise NotImplementedError

    def quick(self) -> None:
        """Find some nest in no time."""
        from solver.engines.exhaustive import Search  # late: the engines' package imports every solver

        machine = self.machine.model_copy(update={"ocm_bytes": self.banks * self.bank_bytes})
        pick = Search(tiling.build(self.layer, machine, self.pins), ("bytes",)).first("bytes")
        if pick is not None:
            self._learn(pick.nest, (0,) * self.layer.inputs)

    def search(self, rows: Rows, banks: int, deadline: float | None) -> bool:
        """Find e(rows, banks) and all that follows from it; False if the time ran out."""
        from solver.engines.exhaustive import Search

        self.searches += 1
        space = tiling.build(self._variant(rows), self.machine, self.pins)
        search = Search(space, ("bytes", "ocm"), deadline=deadline, kept={"ocm": banks * self.bank_bytes})
        pick = search.run()
        if pick is not None:
            self._learn(pick.nest, rows)
        if search.whole:
            self._prove(rows, banks, None if pick is None else self._beyond(rows, pick.measures["bytes"]))
        self._tables.clear()
        return search.whole

    def _learn(self, nest: Nest, rows: Rows) -> None:
        raise NotImplementedError

    def _prove(self, rows: Rows, banks: int, least: int | None) -> None:
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
    """The plans of a layer of one input: `lower` and `upper` bounds on e, (rows + 1, banks + 1)."""

    def __init__(self, layer: Layer, machine: Machine, pins: Pins) -> None:
        super().__init__(layer, machine, pins)
        shape = (layer.h + 1, self.banks + 1)
        self.lower, self.upper = np.zeros(shape, np.int64), np.full(shape, NEVER, np.int64)
        self.lower[:, 0] = NEVER
        self.which = np.full(shape, -1, np.int64)
        self.wanted: set[int] = set()

    def _table(self, levels: tuple[Rows, ...], axes: tuple[int, ...], *, lower: bool) -> Ints:
        table = self.lower if lower else self.upper
        return table[list(levels[0])] if levels else table[0]

    def known(self, rows: Rows, banks: int) -> bool:
        """Whether a nest is known that reaches the lower bound."""
        return bool(self.upper[rows[0], banks] == self.lower[rows[0], banks])

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
        self._spread(len(self.nests) - 1, nest, sorted(self.wanted | {rows[0]}))
        self._tables.clear()

    def _prove(self, rows: Rows, banks: int, least: int | None) -> None:
        below = self.lower[: rows[0] + 1, : banks + 1]
        np.maximum(below, NEVER if least is None else least, out=below)

    def _spread(self, number: int, nest: Nest, rows: Iterable[int]) -> None:
        """Price a nest where other rows are on chip."""
        for k in rows:
            size, cost = self._priced(nest, (k,))
            banks = -(-size // self.bank_bytes)
            better = np.flatnonzero(self.upper[k, banks:] > cost) + banks
            self.upper[k, better], self.which[k, better] = cost, number


class Several(Plans):
    """The plans of a layer of several inputs: bounds on the banks that its least nest needs, by rows of every input."""

    def __init__(self, layer: Layer, machine: Machine, pins: Pins) -> None:
        super().__init__(layer, machine, pins)
        #: What every nest moves beyond everything once.
        self.constant = 0
        self.proven: list[tuple[Rows, int]] = []
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

    def _least(self, rows: tuple[Ints, ...]) -> Ints:
        """Banks that no nest undercuts."""
        least = np.ones(np.broadcast_shapes(*(one.shape for one in rows)), np.int64)
        for given, banks in self.proven:
            fewer = np.all(np.broadcast_arrays(*(one <= k for one, k in zip(rows, given, strict=True))), axis=0)
            least = np.where(fewer, np.maximum(least, banks), least)
        return least

    def _table(self, levels: tuple[Rows, ...], axes: tuple[int, ...], *, lower: bool) -> Ints:
        whole = len(levels)
        grids = [np.array(one).reshape([-1 if a == k else 1 for a in range(whole)]) for k, one in enumerate(levels)]
        none = np.zeros([1] * len(levels), np.int64)
        rows = tuple(grids[a] if a >= 0 else none for a in axes)
        needs = np.broadcast_to((self._least if lower else self._needs)(rows), tuple(len(one) for one in levels))
        fits = np.arange(self.banks + 1) >= needs[..., None]
        return np.where(fits, self.constant, NEVER).astype(np.int64)

    def known(self, rows: Rows, banks: int) -> bool:
        """Whether a nest is known that fits, or that none does."""
        given = tuple(np.array(k) for k in rows)
        return int(self._needs(given)) <= banks or int(self._least(given)) > banks

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

    def _prove(self, rows: Rows, banks: int, least: int | None) -> None:
        if least is None:
            self.proven.append((rows, self.banks + 1))
            return
        self.proven.append((rows, -(-self._priced(self.nests[-1], rows)[0] // self.bank_bytes)))


@dataclass(frozen=True)
class _Place:
    """Where a solution relies on a bound: plans, rows of every input and banks for tiles."""

    plans: Plans
    rows: Rows
    banks: int


class Tables:
    """The layers, stores and plans of one network on one machine."""

    def __init__(self, found: Stores, machine: Machine, pins: Pins) -> None:
        self.found, self.machine, self.pins = found, machine, pins
        self.residences = tuple(self._residences())
        self.number = {r.store: k for k, r in enumerate(self.residences)}
        known: dict[object, Plans] = {}
        kinds = [One if layer.inputs == 1 else Several for layer in found.layers]
        self.plans = [
            known.setdefault(layer.signature(), kind(layer, machine, pins))
            for layer, kind in zip(found.layers, kinds, strict=True)
        ]
        self.inputs = tuple(tuple(self.number.get(s, -1) for s in given) for given in found.reads)
        for t, plans in enumerate(self.plans):
            plans.want(self.rows_of(t, self.inputs[t][0]))

    # ---- stores ----------------------------------------------------------------------------------------------

    def _row_bytes(self, store: Store) -> int:
        return store.row_elements * self.machine.out_bytes

    def _residences(self) -> Iterable[Residence]:
        for at, store in enumerate(self.found.stores):
            if store.dram or not store.readers or not store.parts:
                continue
            levels = _levels(store.rows, self._row_bytes(store), self.machine.ocm_banks, self.machine.bank_bytes)
            if len(levels) > 1:
                banks, rows = zip(*levels, strict=True)
                write = tuple((store.rows - (0 if store.results else k)) * self._row_bytes(store) for k in rows)
                yield Residence(at, min(t for t, _ in store.parts), store.readers, banks, rows, write)

    def rows_of(self, step: int, residence: int) -> tuple[int, ...]:
        """The rows that a layer sees on chip, for every level of an input."""
        if residence < 0:
            return (0,)
        one = self.residences[residence]
        return tuple(self.found.stores[one.store].seen(k, self.found.layers[step].h) for k in one.rows)

    # ---- problems --------------------------------------------------------------------------------------------

    def joint(self, *, lower: bool) -> Joint:
        """The problem with the lower bounds, or with what is known to be possible."""
        steps = []
        for t, (plans, inputs) in enumerate(zip(self.plans, self.inputs, strict=True)):
            axes = tuple(dict.fromkeys(k for k in inputs if k >= 0))
            levels = tuple(self.rows_of(t, k) for k in axes)
            once = tuple(tuple(plans.once(rows) for rows in self.rows_of(t, k)) for k in inputs)
            table = plans.table(levels, tuple(axes.index(k) if k >= 0 else -1 for k in inputs), lower=lower)
            steps.append(Step(plans.fixed, inputs, once, table))
        staying = set(self.number)
        constant = sum(
            store.rows * self._row_bytes(store) for at, store in enumerate(self.found.stores) if at not in staying
        )
        return Joint(self.machine.ocm_banks, tuple(steps), self.residences, constant)

    def relied(self, joint: Joint, choice: Choice) -> list[_Place]:
        """Where a choice relies on bounds that no known nest reaches."""
        places: dict[tuple[int, Rows, int], _Place] = {}
        for t, plans in enumerate(self.plans):
            rows, banks = self.place(joint, choice, t)
            if not plans.known(rows, banks):
                places[id(plans), rows, banks] = _Place(plans, rows, banks)
        return list(places.values())

    def place(self, joint: Joint, choice: Choice, step: int) -> tuple[Rows, int]:
        """Rows of every input on chip, and banks for tiles."""
        rows = tuple(self.rows_of(step, k)[joint.level(choice, k, step)] if k >= 0 else 0 for k in self.inputs[step])
        return rows, joint.free(choice, step)

    def alone(self, *, on_chip: bool) -> list[_Place]:
        """Every layer with all banks to itself, its input in DRAM or as far on chip as it may be."""
        places = []
        for t, plans in enumerate(self.plans):
            rows = tuple(self.rows_of(t, k)[-1 if on_chip else 0] for k in self.inputs[t])
            places.append(_Place(plans, rows, self.machine.ocm_banks))
        return places

    def floor(self) -> int:
        """Bytes that no choice undercuts: everything that cannot stay, once, and what must be written."""
        joint = self.joint(lower=True)
        total = joint.constant
        for step in joint.steps:
            least = int(step.extra.min())
            total += step.fixed + (least if least < NEVER else 0) + sum(min(once) for once in step.once)
        return total + sum(min(r.write) for r in joint.residences)

    def hurry(self) -> None:
        """Find some nest for every layer."""
        for plans in self._distinct():
            plans.quick()

    @property
    def searches(self) -> int:
        """Searches of single layers so far."""
        return sum(plans.searches for plans in self._distinct())

    def _distinct(self) -> Iterable[Plans]:
        """Equal layers share their plans."""
        return {id(plans): plans for plans in self.plans}.values()

    def search(self, places: Iterable[_Place], deadline: float | None) -> bool:
        """Search there; False if the time ran out."""
        for place in places:
            if deadline is not None and time.monotonic() > deadline:
                return False
            known = place.plans.known(place.rows, place.banks)
            if not known and not place.plans.search(place.rows, place.banks, deadline):
                return False
        return True


def _levels(rows: int, row_bytes: int, banks: int, bank_bytes: int) -> list[tuple[int, int]]:
    """Numbers of banks, each with the whole rows that they hold, none twice."""
    levels = [(0, 0)]
    for number in range(1, banks + 1):
        held = min(rows, number * bank_bytes // row_bytes)
        if held > levels[-1][1]:
            levels.append((number, held))
    return levels
