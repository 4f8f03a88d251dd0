"""Brute force for fusion: every cut, every way to run every group, every number of rows of every map on chip.

From the first layer on, for every set of rows that maps may have on chip: the next run is a layer or a group; before it
maps may shrink, and maps that it makes for later runs take any of their rows. A map's rows that are on chip when it is
read last are never written (results of the network are), so that bytes of writing are counted then. A result may take
the place of a map, both as a whole (`tests.adversary.places`). Weights that
several layers read are on chip or not: a layer by itself that reads them may load them, and they stay or go behind
every run.

Left out is only what cannot be better: a map inside a group is not on chip beside its strips (they are never more than
the map), and, unless `every`, of numbers of rows that take the same banks only the largest is tried.

Layers that run alone move what the nests of joint move (`tests.adversary.joint` attacks these): tables that searches
left, and more searches where the best path relies on a bound. Groups of several layers load weights of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from formulations.clock import ENDLESS
from formulations.fusion.nests import Bound, Nests, Plans
from hwmodels.schedule import FusedRun, LayerRun
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.stores import Stores
from tests.adversary.fusion_groups import MODES, NEVER, Ints, Way, Ways, used_after
from tests.adversary.places import places, taken

Run = FusedRun | LayerRun
#: Rows on chip by store, in the order of stores; of weights that lie there one row.
Rows = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Rules:
    """What is allowed: groups by first and last layer, strip heights, halos, turns, results in the place of maps."""

    group: Callable[[int, int], bool] = lambda first, last: True
    height: Callable[[int], bool] = lambda height: True
    modes: Sequence[str] = MODES
    blocks: bool = True
    places: bool = True


class Step(NamedTuple):
    """A run of a path: its layers, rows on chip during it, the banks that are left for it, and results in place."""

    first: int
    last: int
    rows: Rows
    free: int
    places: tuple[tuple[int, int], ...] = ()


#: By rows on chip at a cut: the least cost, its last step, and the rows before that.
_Costs = dict[Rows, tuple[int, Step | None, Rows]]


class Paths:
    """All schedules; `factors`: what a byte and a MAC cost."""

    def __init__(
        self, network: Network, found: Stores, machine: Machine, tables: Nests, rules: Rules,
        factors: tuple[int, int] = (1, 0), *, every: bool = False,
    ) -> None:  # fmt: skip
        self.network, self.found, self.machine, self.tables = network, found, machine, tables
        self.rules, self.factors, self.every = rules, factors, every
        memory = machine.memories["ocm"]
        self.count, self.bank = (machine.ocm_banks, memory // machine.ocm_banks) if machine.ocm_banks else (memory, 1)
        self.groups: dict[tuple[int, int], Group] = {}
        self.staying = {s for s, x in enumerate(found.stores) if not x.dram and x.readers and x.parts}
        self.born = {s: min(t for t, _ in found.stores[s].parts) for s in self.staying}
        #: Weights by store, with the last layer that reads them; if layers have biases of their own they do not stay.
        self.weights = {
            s: t
            for t, s in enumerate(found.shared)
            if s >= 0 and not (found.stores[s].biases is None and machine.bias_bytes)
        }

    def best(self) -> tuple[int, int, list[Step]] | None:
        """The least cost of all nests that are known, the least that bounds leave, and the steps; None: no schedule."""
        while True:
            found = self._least("proven")
            if found is None:
                return None
            places = [p for p in map(self._place, found[1]) if p is not None and not p[0].known(p[1], p[2])]
            if not places:
                break
            self.tables.search(places, ENDLESS)
        known = self._least("known")
        return None if known is None else (known[0], found[0], known[1])

    # ---- paths -------------------------------------------------------------------------------------------------------

    def _least(self, bound: Bound) -> tuple[int, list[Step]] | None:
        """The least cost of all paths with bounds of one kind."""
        count, alone = len(self.found.layers), _Alone(self, bound)
        costs: list[_Costs] = [{} for _ in range(count + 1)]
        costs[0][()] = 0, None, ()
        for first in range(count):
            for last in range(first, count):
                if self.rules.group(first, last):
                    run = alone if last == first else self.group(first, last)
                    self._extend(costs, first, last, run.cost)
        if () not in costs[count]:
            return None
        path: list[Step] = []
        cut = count
        state: Rows = ()
        while cut:
            _, step, state = costs[cut][state]
            assert step is not None
            path.append(step)
            cut = step.first
        return costs[count][()][0], path[::-1]

    def _extend(
        self, costs: list[_Costs], first: int, last: int,
        price: Callable[[int, int, Rows, int, bool], int],
    ) -> None:  # fmt: skip
        """Add a run behind all paths to its first layer."""
        shrunk: dict[Rows, tuple[int, Rows]] = {}
        for state, (cost, _, _) in costs[first].items():
            for rows in self._shrunk(state):
                if rows not in shrunk or cost < shrunk[rows][0]:
                    shrunk[rows] = cost, state
        born = [s for s in self.staying if first <= self.born[s] <= last < self.found.stores[s].readers[-1]]
        born += [s for s in self.weights if first == last and self.found.shared[first] == s]
        for begun in product(*(self.levels(s) for s in born)):
            for before, (cost, state) in shrunk.items():
                rows = self._state({**dict(before), **dict(zip(born, begun, strict=True))})
                moved_else = self._written(first, last, dict(rows)) + self._loaded(dict(before), dict(rows))
                after = tuple((s, k) for s, k in rows if self.used(s) > last)
                for over in self._places(first, last, dict(before), dict(rows)):
                    free = self.count - sum(self.banks(s, k) for s, k in rows if s not in over)
                    moved = price(first, last, rows, free, bool(over)) if free >= 0 else NEVER
                    if moved >= NEVER:
                        continue
                    total = cost + moved + self.factors[0] * moved_else
                    if after not in costs[last + 1] or total < costs[last + 1][after][0]:
                        costs[last + 1][after] = total, Step(first, last, rows, free, tuple(over.items())), state

    def _places(
        self, first: int, last: int, before: Mapping[int, int], rows: Mapping[int, int]
    ) -> Iterator[dict[int, int]]:  # fmt: skip
        """None, and as many results as may be in the place of maps, each there as a whole."""
        yield {}
        whole = {s for s, k in rows.items() if s in self.staying and k == self.found.stores[s].rows}
        given = []
        for t in range(first, last + 1) if self.rules.places else ():
            made = self.found.writes[t]
            if made in whole and made not in before and self.used(made) > last:
                free = [s for s in places(self.network, self.found, t) if s in whole and s in before]
                given.append(
                    (made, [s for s in free if [u for u in self.found.stores[s].readers if u >= first] == [t]])
                )
        if over := taken(given):
            yield over

    def _shrunk(self, state: Rows) -> Iterator[Rows]:
        """All that may be left of rows on chip."""
        for chosen in product(*([k for k in self.levels(s) if k <= most] for s, most in state)):
            yield self._state({s: k for (s, _), k in zip(state, chosen, strict=True)})

    def _state(self, rows: Mapping[int, int]) -> Rows:
        """Rows on chip in order; weights only where they are there."""
        return tuple(sorted((s, k) for s, k in rows.items() if k or s not in self.weights))

    def levels(self, s: int) -> list[int]:
        """The numbers of rows that are tried of a store."""
        fits = [k for k in range(self.found.stores[s].rows + 1) if self.banks(s, k) <= self.count]
        if self.every:
            return fits
        return sorted({self.banks(s, k): k for k in fits}.values())

    def banks(self, s: int, rows: int) -> int:
        """Banks of some rows of a store; bytes if there are none."""
        return -(-rows * self.found.stores[s].row_bytes(self.machine) // self.bank)

    def used(self, s: int) -> int:
        """The last layer that reads a store."""
        return self.weights[s] if s in self.weights else self.found.stores[s].readers[-1]

    def _loaded(self, before: Mapping[int, int], rows: Mapping[int, int]) -> int:
        """Bytes of the weights that a run has on chip and that were not there before it."""
        come = (s for s in rows if s in self.weights and s not in before)
        return sum(self.found.stores[s].row_bytes(self.machine) for s in come)

    def _written(self, first: int, last: int, rows: Mapping[int, int]) -> int:
        """Bytes that are written of maps that a run makes or reads last."""
        total = 0
        for s, store in enumerate(self.found.stores):
            each = store.row_elements * self.machine.out_bytes
            if s not in self.staying:
                parts = sum(elements for t, elements in store.parts if first <= t <= last)
                total += parts * store.rows * self.machine.out_bytes
            elif s in rows and store.readers[-1] <= last:
                total += each * (store.rows - (0 if store.results else rows[s]))
            elif s not in rows and first <= self.born[s] <= last and store.results:
                total += each * store.rows
        return total

    def _place(self, step: Step) -> tuple[Plans, tuple[int, ...], int] | None:
        """Where a step relies on a nest of one layer."""
        if step.first < step.last:
            return None
        return self.plans(step.first, dict(step.rows)), self.seen(step.first, dict(step.rows)), step.free

    def plans(self, t: int, rows: Mapping[int, int]) -> Plans:
        """The nests of a layer, with its weights on chip or without."""
        return (self.tables.plans_there if self.found.shared[t] in rows else self.tables.plans)[t]

    def seen(self, t: int, rows: Mapping[int, int]) -> tuple[int, ...]:
        """The rows of every input of a layer that are on chip, as it sees them."""
        height = self.found.layers[t].input_rows
        return tuple(self.found.stores[s].seen(rows.get(s, 0), height(k)) for k, s in enumerate(self.found.reads[t]))

    def group(self, first: int, last: int) -> Group:
        """All ways to run a group."""
        if (first, last) not in self.groups:
            ways = Ways(
                self.network, self.found, self.machine, first, last, self.rules.height, self.rules.modes,
                self.rules.blocks,
            )  # fmt: skip
            self.groups[first, last] = Group(self, ways)
        return self.groups[first, last]

    # ---- schedules ---------------------------------------------------------------------------------------------------

    def runs(self, path: Sequence[Step]) -> list[Run]:
        """A path as a schedule: maps take the lowest free banks, if there are any, and give back their last ones."""
        final = {s: k for step in path for s, k in step.rows}
        held: dict[int, tuple[int, ...]] = {}
        made: list[Run] = []
        for step in path:
            on_chip = dict(step.rows)
            held = {s: held[s][: self.banks(s, on_chip[s])] for s in held if s in on_chip}
            over = dict(step.places)
            for s, rows in on_chip.items():
                if s not in held and s not in over:
                    held[s] = tuple(self._free(held)[: self.banks(s, rows)])
            held |= {s: held[place] for s, place in over.items()}
            residents = {s: (rows, held[s]) for s, rows in on_chip.items() if rows}
            banks = tuple(self._free(held))
            unwritten = tuple(self._unwritten(t, step, final) for t in range(step.first, step.last + 1))
            if step.first == step.last:
                nest = self.plans(step.first, on_chip).nest(self.seen(step.first, on_chip), step.free)
                made.append(LayerRun(nest, residents, unwritten[0], banks, over))
                continue
            group = self.group(step.first, step.last)
            way, stay = group.choice(step.rows, step.free, bool(over))
            given = {"weights": stay, "residents": residents, "unwritten": unwritten, "banks": banks}
            made.append(replace(way.run, **given, in_place=over))  # type: ignore[arg-type]
        return made

    def _unwritten(self, t: int, step: Step, final: Mapping[int, int]) -> int:
        s = self.found.writes[t]
        store = self.found.stores[s]
        if store.results or store.dram or s not in self.staying:
            return 0
        if s in dict(step.rows):
            return final[s]
        return 0 if used_after(self.found, s, step.last) else store.rows

    def _free(self, held: Mapping[int, tuple[int, ...]]) -> list[int]:
        taken = {bank for banks in held.values() for bank in banks}
        return [bank for bank in range(self.machine.ocm_banks) if bank not in taken]


class _Alone:
    """Layers that run alone."""

    def __init__(self, paths: Paths, bound: Bound) -> None:
        self.paths, self.bound = paths, bound
        self.known: dict[tuple[Plans, tuple[int, ...]], Ints] = {}

    def cost(self, first: int, last: int, rows: Rows, free: int, placed: bool) -> int:
        """Cost of a layer beside writing, with rows on chip and banks for its tiles."""
        paths = self.paths
        seen, plans = paths.seen(first, dict(rows)), paths.plans(first, dict(rows))
        if (plans, seen) not in self.known:
            banks = np.arange(paths.count + 1)
            self.known[plans, seen] = plans.e([np.array(k) for k in seen], banks, self.bound)
        moved = int(self.known[plans, seen][free])
        each, per_mac = paths.factors
        total = plans.fixed + sum(plans.once(k, n) for k, n in enumerate(seen)) + moved
        return NEVER if moved >= NEVER else each * total + per_mac * paths.found.layers[first].macs


class Group:
    """All ways to run a group, and the best one for rows on chip and free banks."""

    def __init__(self, paths: Paths, ways: Ways) -> None:
        self.paths, self.ways = paths, ways
        self.best: dict[tuple[Rows, int, bool], tuple[int, Way | None]] = {}
        self._peaks: dict[tuple[int, frozenset[int]], int] = {}
        self._loads: dict[tuple[int, tuple[int, ...]], int] = {}

    @cached_property
    def every(self) -> list[Way]:
        """All ways that fit if everything else is on chip for nothing."""
        room = self.paths.count * self.paths.bank
        stores = frozenset(range(len(self.paths.found.stores)))
        return [way for way in self.ways.every() if way.peak(stores & self.paths.staying) <= room]

    @cached_property
    def stores(self) -> set[int]:
        """The stores whose rows matter."""
        return {stream.store for way in self.every[:1] for stream in way.run.streams} & self.paths.staying

    def cost(self, first: int, last: int, rows: Rows, free: int, placed: bool) -> int:
        """The least cost beside writing; where results are `placed` over maps nothing is computed again."""
        if not self.every:
            return NEVER
        mine = tuple((s, k) for s, k in rows if s in self.stores)
        if (mine, free, placed) not in self.best:
            self.best[mine, free, placed] = self._best(dict(mine), free, placed)
        return self.best[mine, free, placed][0]

    def choice(self, rows: Rows, free: int, placed: bool) -> tuple[Way, tuple[int, ...]]:
        """The best way, and the bytes of weights that stay."""
        mine = tuple((s, k) for s, k in rows if s in self.stores)
        way = self.best[mine, free, placed][1]
        assert way is not None
        loaded = self.ways.weights.best(way.visits, self._room(way, dict(mine), free))
        assert loaded is not None
        return way, loaded[1]

    def _best(self, rows: Mapping[int, int], free: int, placed: bool) -> tuple[int, Way | None]:
        least: tuple[int, Way | None] = (NEVER, None)
        each, per_mac = self.paths.factors
        for way in self.every:
            if placed and "recompute" in (way.run.rows.halo, way.run.columns.halo):
                continue
            if any(rows.get(s, 0) for s in way.run.sampled):  # of these nothing is on chip
                continue
            room = self._room(way, rows, free)
            loaded = self._loaded(way.visits, room) if room >= 0 else NEVER
            if loaded < NEVER and each * loaded + per_mac * way.macs < least[0]:
                cost = each * (loaded + self._read(way, rows)) + per_mac * way.macs
                least = min(least, (cost, way), key=lambda one: one[0])
        return least

    def _loaded(self, visits: tuple[int, ...], room: int) -> int:
        key = room, visits
        if key not in self._loads:
            found = self.ways.weights.best(visits, room)
            self._loads[key] = NEVER if found is None else found[0]
        return self._loads[key]

    def _room(self, way: Way, rows: Mapping[int, int], free: int) -> int:
        """Bytes beside the strips."""
        whole = frozenset(s for s, k in rows.items() if k == self.paths.found.stores[s].rows)
        key = id(way), whole
        if key not in self._peaks:
            self._peaks[key] = way.peak(whole)
        return free * self.paths.bank - self._peaks[key]

    def _read(self, way: Way, rows: Mapping[int, int]) -> int:
        found = self.paths.found
        streams = way.run.streams
        total = 0
        for s in {stream.store for stream in streams if stream.outside}:
            maker = next(stream.maker for stream in streams if stream.outside and stream.store == s)
            height = found.layers[maker].input_rows(found.reads[maker].index(s))
            total += way.loaded(s, found.stores[s].seen(rows.get(s, 0), height))
        return total
