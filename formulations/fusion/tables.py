"""What is known of a network's groups and nests: bounds, made exact where the best path relies on them.

An example: MobileNetV2 on 128 KiB has 1,700 groups. A sketch of each says what no option of it is below; a path of
sketches and of nests' bounds is found, its groups are priced and its nests searched, and a path is found again, until
nothing on it is a bound: then no path is better. Some hundred groups are priced (`formulations.fusion.nests`: nests).

Heuristics do what compilers do with a shared memory: nothing stays; maps stay in the order in which they come; tile
plans first. Every layer is planned by itself, with its input in DRAM and on chip; then maps are given what tiles leave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import gcd

import numpy as np

from formulations.clock import Clock, TimeUp
from formulations.fusion.arcs import Grouped, Groups
from formulations.fusion.groups import NEVER
from formulations.fusion.nests import Bound, Nests, Place, Plans
from formulations.fusion.paths import Paths
from formulations.fusion.space import Arc, Fusion, Taken, by_cut

Path = tuple[Taken, ...]
#: Cost of a byte and of a MAC.
Factors = tuple[int, int]
#: An instance for arcs of groups.
Ask = Callable[[Sequence[Arc]], Fusion]
#: Groups that are priced between two searches for the least path: pricing one takes less time.
AT_ONCE = 32
#: More banks than this are not told apart where a bound is looked for that holds in more room than is asked.
PARTS = 256


class Tables:
    """Groups and nests of a network."""

    def __init__(self, groups: Groups, nests: Nests) -> None:
        self.groups, self.nests = groups, nests
        self.macs = tuple(layer.macs for layer in groups.net.layers)
        self._sketches: dict[tuple[int, int], list[Arc]] = {}
        self._priced: dict[Grouped, list[Arc]] = {}

    @property
    def priced(self) -> int:
        """Groups that have been priced."""
        return len(self._priced)

    @property
    def complete(self) -> bool:
        """Whether there are sketches of all groups."""
        return len(self._sketches) == len(self.groups.pairs)

    # ---- groups ------------------------------------------------------------------------------------------------------

    def arcs(self, clock: Clock) -> list[Arc]:
        """The arcs of all groups of several layers, exact as far as they are priced; raises TimeUp."""
        some = self.some(clock)
        if not self.complete:
            raise TimeUp
        return some

    def some(self, clock: Clock) -> list[Arc]:
        """The same, of as many groups as there is time to sketch, short ones first."""
        for pair in self.groups.pairs[len(self._sketches) :]:
            if clock.over:
                break
            self._sketches[pair] = self.groups.sketches(*pair)
        return self.refined([arc for pair in sorted(self._sketches) for arc in self._sketches[pair]])

    def refined(self, arcs: Sequence[Arc]) -> list[Arc]:
        """Arcs with what is priced by now in place of sketches."""
        return list(dict.fromkeys(exact for arc in arcs for exact in self._priced.get(arc.options, [arc])))

    def price(self, arcs: Sequence[Arc], clock: Clock) -> bool:
        """Price the sketches among some arcs; raises TimeUp; False if there is none."""
        rough = [arc for arc in arcs if sketched(arc)]
        for grouped in dict.fromkeys(arc.options for arc in rough if arc.options not in self._priced):
            clock.tick()
            self._priced[grouped] = self.groups.arcs_of(grouped.group)
        return bool(rough)

    def least_paths(self, arcs: Sequence[Arc], ask: Ask, known: Ask, clock: Clock) -> tuple[Paths, list[Arc]]:
        """The least paths whose own groups are priced, and the arcs that a better one may have; raises TimeUp.

        `ask`, `known`: instances for some arcs: with bounds, and with nests that are known.
        """
        arcs = list(arcs)
        while True:
            clock.tick()
            paths = Paths(ask(arcs))
            rough = [step.arc for step in paths.path() if sketched(step.arc)] if paths.least < NEVER else []
            if not rough:
                return paths, arcs
            reached = Paths(known([arc for arc in arcs if not sketched(arc)])).least
            costs = {arc: cost for arc, cost in paths.through(min(reached, NEVER - 1)).items() if arc.options}
            rough += sorted(filter(sketched, costs), key=costs.__getitem__)[:AT_ONCE]
            self.price(list(dict.fromkeys(rough)), clock)
            arcs = self.refined(list(costs))

    def lean(self, arcs: Sequence[Arc], factors: Factors, clock: Clock, *, stays: bool = True) -> Paths:
        """The least paths with known nests where nothing is computed again, or where no map stays; raises TimeUp."""

        def ask(arcs: Sequence[Arc]) -> Fusion:
            fusion = self.instance(factors, "known", [arc for arc in arcs if not arc.options.recomputes])
            return fusion if stays else fusion.without_levels()

        return self.least_paths(arcs, ask, ask, clock)[0]

    # ---- instances ---------------------------------------------------------------------------------------------------

    def instance(self, factors: Factors, bound: Bound, groups: Sequence[Arc]) -> Fusion:
        """The problem with these groups, and nests of one layer by their bounds or as they are known."""
        fusion, allows = self.alone(bound), self.groups.demands.allows
        alone = (arc for some in fusion.arcs.values() for arc in some if allows(arc.first, arc.last))
        return replace(fusion, arcs=by_cut((*groups, *alone)), factors=factors)

    def alone(self, bound: Bound) -> Fusion:
        """The problem without groups of several layers, in bytes, whatever pins say of groups."""
        nests, arcs = self.nests, by_cut(self.groups.with_places(self.nests.arcs(bound)))
        return Fusion(self.groups.machine.bank_count, len(self.macs), nests.residences, nests.constant, arcs)

    def known(self, factors: Factors, groups: Sequence[Arc]) -> Fusion:
        """The same with nothing but what is known to be possible."""
        return self.instance(factors, "known", [arc for arc in groups if not sketched(arc)])

    def relied(self, path: Sequence[Taken]) -> list[Place]:
        """Where a path relies on bounds that no known nest reaches."""
        places = [(self.plans(s), *self.place(s)) for s in path if s.arc.options is None]
        return [place for place in dict.fromkeys(places) if not place[0].known(*place[1:])]

    def knows(self, path: Sequence[Taken]) -> bool:
        """Whether there are nests for all groups of one layer on a path."""
        alone = self.nests.arcs("known")
        return all(alone[s.arc.first].bytes(s.levels, s.free) < NEVER for s in path if s.arc.options is None)

    def plans(self, step: Taken) -> Plans:
        """The plans of a single layer, with weights on chip or without."""
        t = step.arc.first
        return (self.nests.plans_there if step.levels.get(self.nests.shared[t]) else self.nests.plans)[t]

    def place(self, step: Taken) -> tuple[tuple[int, ...], int]:
        """Rows of every input of a single layer on chip, and banks for its tiles."""
        t = step.arc.first
        inputs = self.nests.inputs[t]
        rows = (self.nests.rows_of(t, n)[step.levels[k] if k >= 0 else 0] for n, k in enumerate(inputs))
        return tuple(rows), step.free

    def search_down(self, places: Sequence[Place], clock: Clock) -> bool:
        """Search nests there, and with more banks down from where a nest is known; False if the time ran out.

        Between how many banks a bound holds is found to a part in `PARTS` of all banks.
        """
        for plans, rows, banks in places:
            low, high, part = banks, plans.banks, max(1, plans.banks // PARTS)
            if not self.nests.search([(plans, rows, low)], clock):
                return False
            while high - low > part and not plans.known(rows, low + part):
                middle = (low + high) // 2
                if not self.nests.search([(plans, rows, middle)], clock):
                    return False
                grid = [np.array(k) for k in rows]
                same = plans.e(grid, np.array(middle), "known") <= plans.e(grid, np.array(plans.banks), "proven")
                low, high = (low, middle) if same else (middle, high)
        return True


def sketched(arc: Arc) -> bool:
    """Whether an arc is a sketch: a bound on what its group loads, no way to run it."""
    return isinstance(arc.options, Grouped) and not arc.options.options


def heavier(factors: Factors, more: Factors, cap: int, macs: Sequence[int]) -> tuple[Factors, int] | None:
    """Return costs in which a measure comes first whose optimum is `cap`, and what that optimum adds to them.

    The measure costs `more` a byte and a MAC. A unit of it counts so much that no byte or MAC within the cap outweighs
    it. None where such costs are too large to be added up: the cap stays a limit.
    """
    unit = max(1, gcd(*more))
    byte, mac, least = more[0] // unit, more[1] // unit, -(-cap // unit)
    most_bytes = least // byte if byte else 2**32
    most_macs = least // mac if mac else 2 * sum(macs)
    scale = 1 + factors[0] * most_bytes + factors[1] * most_macs
    if scale * (least + 1) > NEVER // 2:
        return None
    return (factors[0] + scale * byte, factors[1] + scale * mac), scale * least


# ---- heuristics for layers by themselves -----------------------------------------------------------------------------


def _searched(tables: Tables, clock: Clock) -> Fusion:
    """The problem with the best plan of every layer by itself, its input in DRAM and on chip."""
    for on_chip in (False, True):
        tables.nests.search(tables.nests.alone(on_chip=on_chip), clock)
    return tables.alone("known")


def _none(fusion: Fusion) -> Path:
    arcs = [fusion.arcs[cut][0] for cut in range(1, fusion.cuts + 1)]
    return tuple(Taken(arc, dict.fromkeys(fusion.held(arc), 0), fusion.banks) for arc in arcs)


def no_reuse(tables: Tables, clock: Clock) -> Path:
    """Every map through DRAM."""
    return _none(_searched(tables, clock))


def in_order(tables: Tables, clock: Clock) -> Path:
    """Map after map: as many rows as leave every layer room for some plan, if that helps."""
    return greedy(_searched(tables, clock))


def greedy(fusion: Fusion) -> Path:
    """The same for these plans."""
    path = list(_none(fusion))
    for k, mine in sorted(enumerate(fusion.residences), key=lambda one: one[1].born):
        here = slice(mine.born, mine.uses[-1] + 1)
        ways = [(level, True) for level in range(len(mine.banks) - 1, 0, -1)]
        for level, always in [*ways, (1, False)] if mine.weights else ways:
            tried = _with(fusion, path[here], k, level, always=always)
            if fusion.cost(tried) < fusion.cost(path[here]):
                path[here] = tried
                break
    there = [{}, *(step.levels for step in path)]
    return tuple(  # weights that are on chip until the next layer reads them are not loaded again
        replace(step, loads=-1) if before.get(step.loads) else step for before, step in zip(there, path, strict=False)
    )


def _with(fusion: Fusion, steps: Sequence[Taken], k: int, level: int, *, always: bool) -> list[Taken]:
    """Some steps with a residence at a level, all the time or (weights, loaded each time) while layers use it."""
    made, uses = [], fusion.residences[k].uses
    for step in steps:
        levels = {**step.levels, k: level if always or step.arc.first in uses else 0}
        free = fusion.free(step.arc, levels)
        loads = k if fusion.loads(step.arc) == k and not always else step.loads
        made.append(Taken(step.arc, levels, free, loads))
    return made


def in_sequence(tables: Tables, clock: Clock) -> Fusion:
    """Tile plans first, each layer alone: the problem of the best use of what they leave."""
    fusion = _searched(tables, clock)
    made = []
    for arc in (one for some in fusion.arcs.values() for one in some):
        alone = arc.steps((0,) * len(arc.axes))
        need = alone[-1][0] if alone else 0
        made.append(replace(arc, table=np.where(arc.rooms < need, NEVER, arc.table)))
    return replace(fusion, arcs=by_cut(made))
