"""The tile plans of every layer that the joint problem chooses among, searched only as far as its optimum needs them.

For a layer whose input has k rows on chip and whose tiles have f banks, let e(k, f) be the fewest bytes beyond reading
everything once. It never rises with k or f: a plan for fewer resident rows or banks is one for more. So one exhaustive
search of tiling at (k, f) is a lower bound for all smaller k and f, and its nest, priced at other k, an upper one.
`Tables` starts from e >= 0, solves the joint problem with the lower bounds, searches where its solution relies on a
bound that no known nest reaches, and starts again; when no such place is left, the solution is the optimum over all
nests of tiling, although few were searched. Where a search leaves a gap between its nest and its bound
(`formulations.joint.plans`), so does the solution.

A layer of several inputs (a sum) moves the same bytes whatever its nest; there k is the rows of every input, and what
is bounded is the least number of banks that a nest fits in.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from formulations.clock import Clock
from formulations.joint.plans import Bound, Plans, Rows
from formulations.joint.problem import NEVER, NOT, Choice, Ints, Joint, Residence, Step
from formulations.pins import Pins
from instances.machine.machine import Machine
from instances.network.stores import Stores

#: Where a solution relies on a bound: plans, rows of every input and banks for tiles.
_Place = tuple[Plans, Rows, int]


class Tables:
    """The layers, stores and plans of one network on one machine."""

    def __init__(self, found: Stores, machine: Machine, pins: Pins) -> None:
        self.found, self.machine, self.pins = found, machine, pins
        self.residences = tuple(self._residences())
        self.number = {r.store: k for k, r in enumerate(self.residences)}
        known: dict[object, Plans] = {}
        self.plans = [known.setdefault(layer.signature(), Plans(layer, machine, pins)) for layer in found.layers]
        self.inputs = tuple(tuple(self.number.get(s, -1) for s in given) for given in found.reads)
        self.shared = tuple(self.number.get(s, -1) for s in found.shared)
        on_chip = [
            layer.model_copy(update={"resident_w": w >= 0}) for layer, w in zip(found.layers, self.shared, strict=True)
        ]
        #: The same with weights on chip, where these may stay.
        self.plans_there = [known.setdefault(layer.signature(), Plans(layer, machine, pins)) for layer in on_chip]

    # ---- stores ----------------------------------------------------------------------------------------------

    def _residences(self) -> Iterable[Residence]:
        for at, store in enumerate(self.found.stores):
            if not store.weights and (store.dram or not store.readers or not store.parts):
                continue
            each = store.row_bytes(self.machine)
            levels = _levels(store.rows, each, self.machine.bank_count, self.machine.bank_bytes)
            if len(levels) <= 1 or (store.biases is None and self.machine.bias_bytes):
                continue
            banks, rows = zip(*levels, strict=True)
            if store.weights:
                uses = tuple(t for t, s in enumerate(self.found.shared) if s == at)
                yield Residence(at, uses[0], uses, (*banks, banks[-1]), (*rows, rows[-1]), (0, 0, 0), weights=True)
            else:
                write = tuple((store.rows - (0 if store.results else k)) * each for k in rows)
                yield Residence(at, min(t for t, _ in store.parts), store.readers, banks, rows, write)

    def rows_of(self, step: int, number: int) -> tuple[int, ...]:
        """The rows that a layer sees on chip, for every level of an input; all of it that needs no reading."""
        store, residence = self.found.stores[self.found.reads[step][number]], self.inputs[step][number]
        rows = self.residences[residence].rows if residence >= 0 else (0,)
        return tuple(store.seen(k, self.found.layers[step].input_rows(number)) for k in rows)

    # ---- problems --------------------------------------------------------------------------------------------

    def joint(self, *, bound: Bound) -> Joint:
        """The problem with lower bounds, or with what is known to be possible."""
        steps = [self._step(t, bound) for t in range(len(self.plans))]
        constant = sum(
            store.rows * store.row_elements for at, store in enumerate(self.found.stores) if at not in self.number
        )
        return Joint(self.machine.bank_count, tuple(steps), self.residences, constant * self.machine.out_bytes)

    def _step(self, step: int, bound: Bound) -> Step:
        plans, inputs, weights = self.plans[step], self.inputs[step], self.shared[step]
        there = [self.rows_of(step, number) for number in range(len(inputs))]
        axes = tuple(dict.fromkeys(k for k in inputs if k >= 0))
        # what needs no reading has the same rows always: an axis of one level that no residence has
        fixed = [number for number, k in enumerate(inputs) if k < 0 and there[number] != (0,)]
        levels = tuple(there[inputs.index(k)] for k in axes) + tuple(there[number] for number in fixed)
        places = tuple(
            axes.index(k) if k >= 0 else len(axes) + fixed.index(number) if number in fixed else -1
            for number, k in enumerate(inputs)
        )
        once = tuple(tuple(plans.once(at, one) for one in rows) for at, rows in enumerate(there))

        def table(plans: Plans) -> tuple[Ints, Ints]:
            rooms, table = plans.table(levels, places, bound=bound)
            return rooms, table.reshape(*table.shape[: len(axes)], -1)

        rooms, extra = table(plans)
        if weights < 0:
            return Step(plans.fixed, inputs, once, extra, rooms)
        others, mine = table(self.plans_there[step])
        both = np.union1d(rooms, others)
        extra, mine = (
            one[..., np.searchsorted(own, both, side="right") - 1] for own, one in ((rooms, extra), (others, mine))
        )
        loads = plans.fixed, plans.fixed, 0
        return Step(0, (*inputs, weights), (*once, loads), np.stack([extra, mine, mine], axis=-2), both)

    def relied(self, joint: Joint, choice: Choice) -> list[_Place]:
        """Where a choice relies on bounds that no known nest reaches."""
        places = [self.place(joint, choice, t) for t in range(len(self.plans))]
        return [place for place in dict.fromkeys(places) if not place[0].known(*place[1:])]

    def place(self, joint: Joint, choice: Choice, step: int) -> _Place:
        """Plans with weights on chip or without, rows of every input on chip, and banks for tiles."""
        rows = tuple(
            self.rows_of(step, number)[joint.level(choice, k, step) if k >= 0 else 0]
            for number, k in enumerate(self.inputs[step])
        )
        weights = self.shared[step]
        there = weights >= 0 and joint.level(choice, weights, step) != NOT
        return (self.plans_there if there else self.plans)[step], rows, joint.free(choice, step)

    def alone(self, *, on_chip: bool) -> list[_Place]:
        """Every layer with all banks to itself, its input in DRAM or as far on chip as it may be."""
        banks = self.machine.bank_count
        return [
            (plans, tuple(self.rows_of(t, k)[-1 if on_chip else 0] for k in range(len(self.inputs[t]))), banks)
            for t, plans in enumerate(self.plans_there if on_chip else self.plans)
        ]

    @property
    def possible(self) -> bool:
        """Whether every layer by itself may have a plan."""
        return all(int(step.extra.min()) < NEVER for step in self.joint(bound="proven").steps)

    def floor(self) -> int:
        """A lower bound on the bytes of all choices: everything that cannot stay, once, and what must be written."""
        joint = self.joint(bound="proven")
        total = joint.constant
        for step in joint.steps:
            least = int(step.extra.min())
            total += step.fixed + (least if least < NEVER else 0) + sum(min(once) for once in step.once)
        loaded = sum(self.plans[r.born].fixed for r in self.residences if r.weights)
        return total + loaded + sum(min(r.write) for r in joint.residences)

    def hurry(self, clock: Clock) -> None:
        """Find some nest for every layer, a good one as far as there is time."""
        distinct = list(self._distinct())
        for number, plans in enumerate(distinct):
            plans.quick(clock.share(len(distinct) - number))

    @property
    def searches(self) -> int:
        """Searches of single layers so far."""
        return sum(plans.searches for plans in self._distinct())

    @property
    def seconds(self) -> float:
        """What these took."""
        return sum(plans.seconds for plans in self._distinct())

    def _distinct(self) -> Iterable[Plans]:
        """Equal layers share their plans."""
        return {id(plans): plans for plans in (*self.plans, *self.plans_there)}.values()

    def search(self, places: Iterable[_Place], clock: Clock) -> bool:
        """Search there; False if the time ran out."""
        for plans, rows, banks in places:
            if clock.over or not (plans.known(rows, banks) or plans.search(rows, banks, clock)):
                return False
        return True


def _levels(rows: int, row_bytes: int, banks: int, bank_bytes: int) -> list[tuple[int, int]]:
    """Numbers of banks, each with the whole rows that they hold, none twice."""
    fewest = [-(-held * row_bytes // bank_bytes) for held in range(rows + 1)]
    most = [min(rows, number * bank_bytes // row_bytes) for number in fewest]
    return [
        (number, held)
        for held, (number, all_) in enumerate(zip(fewest, most, strict=True))
        if number <= banks and held == all_
    ]
