"""What is known of nests of single layers: bounds, searches, and the arcs made of them.

Problem joint: tile plans of all layers and the rows of every feature map that stay on chip between them.

Sets
    t in 0..T-1: the layers (steps) in the network's order; s: the stores that may stay (`instances.network.stores`)
    U[s]: the steps that read s, ascending; born[s]: the first step that writes it
    V[s]: levels of s, each a number of banks and the rows that they hold; level 0 is none
    O[t, v]: plans of layer t whose inputs have the levels v, undominated in (banks, bytes)
Given
    B banks, each a byte where the machine has none; once[t, x, v]: bytes of the rows of input x beyond level v, read
    once; extra[t, v, o]: what plan o moves beyond that and beyond `fixed[t]`, and banks[t, v, o] what its tiles take;
    write[s, v]: bytes of the rows of s beyond level v                                    (integers; bytes, banks)
Variables
    level[s, u] for u in U[s]: what of s is on chip from its birth, or the use before u, until u has read it
    plan[t] in O[t, v]
Objective
    min sum_t (fixed[t] + sum_x once[t, x, level] + extra[t, levels, plan[t]]) + sum_s write[s, level[s, last use]]
Constraints
    (SHRINK)    level[s, u] >= level[s, u'] for uses u before u': what has left the chip is read from DRAM
    (CAPACITY)  sum over s on chip during t of banks of its level + banks[t, v, plan[t]] <= B for every t
Weights that several layers read
    are a store, too, whole or not at all: at a use not on chip, loaded (whole, before the layer, into banks of their
    own) or kept since the use before, which had them loaded or kept. Instead of SHRINK:
    (KEEP)      level[s, u] is kept only if level[s, u'] is loaded or kept for the use u' before; never at the first
    A layer whose weights are on chip has plans that read them there; weights that are not kept are loaded once more.
Why these rows
    Rows that leave before the last use are read from DRAM by then, so they are written once, when they are made: the
    last level says which. Which rows stay does not matter for their number; the first ones stay.
Assumes
    One layer runs after the other, in the network's order; results are made in a tile of their own and then laid where
    they stay; a store's banks are its own from its birth on (a concatenation's from its first part's).
Bytes
    Without banks k rows take k times the bytes of a row: B is all bytes, a bank one of them. Then B is large, but the
    bytes of a layer fall only where a plan of it fits (`Arc.rooms` says where), and levels are numbers of rows.
Which plans are searched
    Let e(k, f) be the fewest bytes of a layer beyond reading everything once, with k rows of its input on chip and f
    banks for tiles. It never rises with k or f: a plan for fewer rows or banks is one for more. A search of tiling at
    (k, f) gives a nest, and a bound that no nest is below, there and for all smaller k and f; the nest, priced at other
    k, is an upper bound there. `Nests` starts from e >= 0; the problem is solved with the lower bounds, a layer is
    searched where the solution relies on a bound that no known nest reaches, and it is solved again; when no such place
    is left, the solution is the optimum over all nests of tiling, although few were searched. Where a search leaves a
    gap between its nest and its bound, as some nest may do better than any candidate, so does the solution: then the
    bound is kept as proven, and what was found as if it were, which leads to the best plan.
Several inputs
    What is broadcast may be read again and again; such layers are searched as those of one input are. Of another layer
    with several inputs (a sum) k is the rows of each. All its nests move the same, so a search proves the banks that
    the least nest needs as well; every input has a tile of its own, so what rows on chip save adds up.

These are the groups of one layer of fusion (`formulations.fusion.space`), whose paths and models solve it.
Source: none; docs/joint.md.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Literal

import numpy as np

from formulations.clock import Clock
from formulations.fusion.groups import NEVER
from formulations.fusion.space import Arc, Residence
from formulations.fusion.strips import Ints
from formulations.pins import Pins
from formulations.tiling import tiling
from formulations.tiling.searched import search_nests
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.limits import tensor_bytes
from hwmodels.schedule import Nest
from instances.machine.machine import Machine
from instances.network.stores import Stores
from instances.network.workload import Layer

#: A lower bound on all nests; one on all that searches can find; what a known nest reaches.
Bound = Literal["proven", "found", "known"]
Rows = tuple[int, ...]
#: Where a solution relies on a bound: plans, rows of every input on chip and banks for tiles.
Place = tuple["Plans", Rows, int]


class Plans:
    """What is known about the plans of one layer; how many searches were made, and the seconds that they took."""

    def __init__(self, layer: Layer, machine: Machine, pins: Pins) -> None:
        self.layer, self.machine, self.pins = layer, machine, pins
        self.banks, self.bank_bytes = machine.bank_count, machine.bank_bytes
        self.several = layer.inputs > 1 and not layer.broadcast
        #: Each with the only rows that it is priced for, if there was no time for others.
        self.nests: list[tuple[Nest, Rows | None]] = []
        #: With so many rows and banks at most no nest moves less beyond everything once.
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

        `axes`: for every input of the layer its place among `levels`; -1 if it lies in DRAM.
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
        smallest, not the fastest: that is looked for where a plan keeps it (`Layers.faster` of schedule.py).
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


class Nests:
    """The layers of one network on one machine that run by themselves, with the stores that may stay."""

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

    # ---- stores ------------------------------------------------------------------------------------------------------

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
                yield Residence(at, uses[0], uses, banks, rows, (0,) * len(rows), weights=True)
            else:
                write = tuple((store.rows - (0 if store.results else k)) * each for k in rows)
                yield Residence(at, min(t for t, _ in store.parts), store.readers, banks, rows, write)

    @property
    def constant(self) -> int:
        """Bytes of writing all that never stays."""
        lasting = (store for at, store in enumerate(self.found.stores) if at not in self.number)
        return sum(store.rows * store.row_elements for store in lasting) * self.machine.out_bytes

    def rows_of(self, step: int, number: int) -> tuple[int, ...]:
        """The rows that a layer sees on chip, for every level of an input; all of it that needs no reading."""
        store, residence = self.found.stores[self.found.reads[step][number]], self.inputs[step][number]
        rows = self.residences[residence].rows if residence >= 0 else (0,)
        return tuple(store.seen(k, self.found.layers[step].input_rows(number)) for k in rows)

    # ---- arcs --------------------------------------------------------------------------------------------------------

    def arcs(self, bound: Bound) -> list[Arc]:
        """The layers as groups of one each, with lower bounds, or with what is known to be possible."""
        return [self._arc(t, bound) for t in range(len(self.plans))]

    def _arc(self, t: int, bound: Bound) -> Arc:
        plans, inputs, weights = self.plans[t], self.inputs[t], self.shared[t]
        there = [self.rows_of(t, number) for number in range(len(inputs))]
        axes = tuple(dict.fromkeys(k for k in inputs if k >= 0))
        # what needs no reading has the same rows always: an axis of one level that no residence has
        fixed = [number for number, k in enumerate(inputs) if k < 0 and there[number] != (0,)]
        levels = tuple(there[inputs.index(k)] for k in axes) + tuple(there[number] for number in fixed)
        places = tuple(
            axes.index(k) if k >= 0 else len(axes) + fixed.index(number) if number in fixed else -1
            for number, k in enumerate(inputs)
        )
        once = [[plans.once(at, one) for one in rows] for at, rows in enumerate(there)]
        reads = [np.array([o for o, k in zip(once, inputs, strict=True) if k == axis]).sum(axis=0) for axis in axes]
        again = weights >= 0 and self.residences[weights].born < t  # the first to read weights loads them in any case
        every = sum(o[0] for o, k in zip(once, inputs, strict=True) if k < 0) + (0 if again else plans.fixed)

        def table(plans: Plans) -> tuple[Ints, Ints]:
            rooms, table = plans.table(levels, places, bound=bound)
            return rooms, table.reshape(*table.shape[: len(axes)], -1)

        rooms, extra = table(plans)
        if weights >= 0:
            others, mine = table(self.plans_there[t])
            both = np.union1d(rooms, others)
            extra, mine = (
                one[..., np.searchsorted(own, both, side="right") - 1] for own, one in ((rooms, extra), (others, mine))
            )
            axes, rooms, extra = (*axes, weights), both, np.stack([extra, mine], axis=-2)
            reads.append(np.array([plans.fixed * again, 0]))
        classes = tuple(_alike(extra, axis) for axis in range(len(axes)))
        firsts = [np.unique(names, return_index=True)[1] for names in classes]
        extra = extra[np.ix_(*firsts, np.arange(len(rooms)))]
        return Arc(t, t, axes, classes, tuple(reads), every, self.found.layers[t].macs, rooms, extra)

    def alone(self, *, on_chip: bool) -> list[Place]:
        """Every layer with all banks to itself, its input in DRAM or as far on chip as it may be."""
        banks = self.machine.bank_count
        return [
            (plans, tuple(self.rows_of(t, k)[-1 if on_chip else 0] for k in range(len(self.inputs[t]))), banks)
            for t, plans in enumerate(self.plans_there if on_chip else self.plans)
        ]

    @property
    def possible(self) -> bool:
        """Whether every layer by itself may have a plan."""
        return all(int(arc.table.min()) < NEVER for arc in self.arcs("proven"))

    def floor(self) -> int:
        """A lower bound on the bytes of all choices: everything that cannot stay, once, and what must be written."""
        total = self.constant + sum(min(r.write) for r in self.residences)
        for arc in self.arcs("proven"):
            least = int(arc.table.min())
            total += arc.fixed + (least if least < NEVER else 0) + sum(int(read.min()) for read in arc.reads)
        return total

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

    def search(self, places: Iterable[Place], clock: Clock) -> bool:
        """Search there; False if the time ran out."""
        for plans, rows, banks in places:
            if clock.over or not (plans.known(rows, banks) or plans.search(rows, banks, clock)):
                return False
        return True


def _alike(table: Ints, axis: int) -> Ints:
    """For every level of an axis its class: those together that have the same plans whatever the other levels are."""
    kinds: dict[bytes, int] = {}
    names = (kinds.setdefault(table.take(v, axis).tobytes(), len(kinds)) for v in range(table.shape[axis]))
    return np.array(list(names), np.int64)


def _levels(rows: int, row_bytes: int, banks: int, bank_bytes: int) -> list[tuple[int, int]]:
    """Numbers of banks, each with the whole rows that they hold, none twice."""
    fewest = [-(-held * row_bytes // bank_bytes) for held in range(rows + 1)]
    most = [min(rows, number * bank_bytes // row_bytes) for number in fewest]
    return [
        (number, held)
        for held, (number, all_) in enumerate(zip(fewest, most, strict=True))
        if number <= banks and held == all_
    ]
