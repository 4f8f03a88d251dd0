"""The tile plans of every layer that the joint problem chooses among, searched only as far as its optimum needs them.

For a layer whose input has k rows on chip and whose tiles have f banks, let e(k, f) be the fewest bytes beyond reading
everything once. It never rises with k or f: a plan for fewer resident rows or banks is one for more. So one exhaustive
search of F1 at (k, f) is a lower bound for all smaller k and f, and its nest, priced at other k, an upper bound there.
`Tables` starts from e >= 0, solves the joint problem with the lower bounds, searches where its solution relies on a
bound that no known nest reaches, and starts again; when no such place is left, the solution is the optimum over all
nests of F1, although few were searched.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from formulations import tiling
from formulations.joint import NEVER, Choice, Joint, Residence, Step
from formulations.pins import Pins
from hwmodels.limits import tensor_bytes
from hwmodels.price import price
from hwmodels.schedule import Nest
from instances.errors import InputError
from instances.machine import Machine
from instances.stores import Store, Stores
from instances.workload import Layer
from solver.engines.exhaustive import Search

__all__ = ["Plans", "Tables"]


def resident(layer: Layer, rows: tuple[int, ...], kept: int = 0) -> Layer:
    """The layer with rows on chip."""
    return layer.model_copy(update={"resident_in": rows, "resident_out": kept})


class Plans:
    """What is known about the plans of one layer: `lower` and `upper` bounds on e, (rows + 1, banks + 1)."""

    def __init__(self, layer: Layer, machine: Machine, pins: Pins) -> None:
        self.layer, self.machine, self.pins = layer, machine, pins
        self.banks, self.bank_bytes = machine.ocm_banks, machine.bank_bytes
        shape = (layer.h + 1, self.banks + 1)
        self.lower, self.upper = np.zeros(shape, np.int64), np.full(shape, NEVER, np.int64)
        self.lower[:, 0] = NEVER
        self.nests: list[Nest] = []
        self.which = np.full(shape, -1, np.int64)
        self.wanted: set[int] = set()
        self.searches = 0
        self._once: dict[int, int] = {}

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

    def _variant(self, rows: int) -> Layer:
        return resident(self.layer, (rows,) * self.layer.inputs)

    def _beyond(self, rows: int, moved: int) -> int:
        variant = self._variant(rows)
        return moved - sum(tensor_bytes(variant, self.machine).values())

    def known(self, rows: int, banks: int) -> bool:
        """Whether a nest is known that reaches the lower bound."""
        return bool(self.upper[rows, banks] == self.lower[rows, banks])

    def want(self, rows: Iterable[int]) -> None:
        """Keep upper bounds for these numbers of rows too."""
        new = sorted(set(rows) - self.wanted)
        self.wanted |= set(new)
        for number, nest in enumerate(self.nests):
            self._spread(number, nest, new)

    def search(self, rows: int, banks: int, deadline: float | None) -> bool:
        """Find e(rows, banks) and all that follows from it; False if the time ran out."""
        self.searches += 1
        space = tiling.build(self._variant(rows), self.machine, self.pins)
        search = Search(space, ("bytes", "ocm"), deadline=deadline, kept={"ocm": banks * self.bank_bytes})
        pick = search.run()
        if not search.whole:
            return False
        if pick is None:
            self.lower[: rows + 1, : banks + 1] = NEVER
            return True
        least = self._beyond(rows, pick.measures["bytes"])
        below = self.lower[: rows + 1, : banks + 1]
        np.maximum(below, least, out=below)
        self.nests.append(pick.nest)
        self._spread(len(self.nests) - 1, pick.nest, sorted(self.wanted | {rows}))
        return True

    def _spread(self, number: int, nest: Nest, rows: Iterable[int]) -> None:
        """Price a nest where other rows are on chip."""
        for k in rows:
            outcome = price(self._variant(k), self.machine, nest)
            banks = -(-outcome.occupancy_bytes["ocm"] // self.bank_bytes)
            cost = self._beyond(k, outcome.bytes)
            better = np.flatnonzero(self.upper[k, banks:] > cost) + banks
            self.upper[k, better], self.which[k, better] = cost, number

    def nest(self, rows: int, banks: int) -> Nest:
        """The best nest that is known."""
        return self.nests[int(self.which[rows, banks])]


@dataclass(frozen=True)
class _Place:
    """Where a solution relies on a bound: plans, rows of the first input and banks for tiles."""

    plans: Plans
    rows: int
    banks: int


class Tables:
    """The layers, stores and plans of one network on one machine.

    Raises
    ------
    InputError
        If the machine's inputs and results have different element sizes, or a layer does not fit.
    """

    def __init__(self, found: Stores, machine: Machine, pins: Pins) -> None:
        if machine.in_bytes != machine.out_bytes:
            raise InputError(
                f"machine {machine.name}: in_bytes {machine.in_bytes} and out_bytes {machine.out_bytes} differ; "
                "a map that stays on chip is read as it was written"
            )
        self.found, self.machine, self.pins = found, machine, pins
        self.residences = tuple(self._residences())
        self.number = {r.store: k for k, r in enumerate(self.residences)}
        known: dict[object, Plans] = {}
        self.plans = [known.setdefault(layer.signature(), Plans(layer, machine, pins)) for layer in found.layers]
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
                write = tuple((store.rows - k) * self._row_bytes(store) for k in rows)
                yield Residence(at, min(t for t, _ in store.parts), store.readers, banks, rows, write)

    def rows_of(self, step: int, residence: int, *, result: bool = False) -> tuple[int, ...]:
        """The rows that a layer sees on chip, for every level of an input (or of its result)."""
        if residence < 0:
            return (0,)
        rows, layer = self.residences[residence].rows, self.found.layers[step]
        if self.found.stores[self.residences[residence].store].whole:
            return tuple((layer.r if result else layer.h) if k else 0 for k in rows)
        return rows

    # ---- problems --------------------------------------------------------------------------------------------

    def joint(self, *, lower: bool) -> Joint:
        """The problem with the lower bounds, or with what is known to be possible."""
        steps = []
        for t, (plans, inputs) in enumerate(zip(self.plans, self.inputs, strict=True)):
            table = plans.lower if lower else plans.upper
            once = tuple(tuple(plans.once(k) for k in self.rows_of(t, x)) for x in inputs)
            steps.append(Step(plans.fixed, inputs, once, table[list(self.rows_of(t, inputs[0]))]))
        staying = set(self.number)
        constant = sum(
            store.rows * self._row_bytes(store) for at, store in enumerate(self.found.stores) if at not in staying
        )
        return Joint(self.machine.ocm_banks, tuple(steps), self.residences, constant)

    def relied(self, joint: Joint, choice: Choice) -> list[_Place]:
        """Where a choice relies on bounds that no known nest reaches."""
        places: dict[tuple[int, int, int], _Place] = {}
        for t, plans in enumerate(self.plans):
            rows, banks = self.place(joint, choice, t)
            if not plans.known(rows, banks):
                places[id(plans), rows, banks] = _Place(plans, rows, banks)
        return list(places.values())

    def place(self, joint: Joint, choice: Choice, step: int) -> tuple[int, int]:
        """Rows of the first input on chip, and banks for tiles."""
        rows = self.rows_of(step, self.inputs[step][0])[joint.first_level(choice, step)]
        return rows, joint.free(choice, step)

    def alone(self, *, on_chip: bool) -> list[_Place]:
        """Every layer with all banks to itself, its input in DRAM or as far on chip as it may be."""
        places = []
        for t, plans in enumerate(self.plans):
            rows = self.rows_of(t, self.inputs[t][0])[-1 if on_chip else 0]
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

    @property
    def searches(self) -> int:
        """Searches of single layers so far."""
        return sum(plans.searches for plans in {id(p): p for p in self.plans}.values())

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
