"""Fusion as linear rows over Booleans, for MILP solvers and CP-SAT: `formulations.fusion.space` as a flow.

An example: in a chain of two layers an arc for both and an arc for each begin or end at cut 1; the flow goes through
the cut, or past it, and the level of the map between them flows along if it goes through.

Sets         arcs A; H[a] the maps alive at either end of arc a; V[s] their levels; steps G[a]: of every combination of
             classes the undominated (banks, bytes) of E[a]
Parameters   banks[s, v], write[s, v], reads[a, s, v], fixed[a], macs[a]; B     (integers; banks, bytes, MACs)
Variables    z[a] in {0, 1}: a is of the path;  y[a, g] in {0, 1}: with step g
             p[a, s, v] in {0, 1} for v >= 1: the level of s during a is v or more;  p[a, s, 0] = z[a]
             l[a] in {0, 1}: a loads the weights s that several layers read, to stay; costs reads[a, s, 0]
Objective    min sum (fixed[a] z[a] + bytes[g] y[a, g] + sum over v of (reads[a, s, v] - reads[a, s, v - 1]) p[a, s, v]
             and of write[s] likewise where a uses s up)                              (energy: with MACs, in fJ)
Constraints  (PATH)   sum of z over the arcs that end at a cut = sum over those that begin there; 1 at the outer cuts
             (STAIR)  p[a, s, v] <= p[a, s, v - 1]
             (STEP)   sum of y[a, g] over the g of a class = sum of p[a, s, v] - p[a, s, v + 1] over its levels v;
                      sum of y[a, g] over all g = z[a]
             (SHRINK) sum of p[a, s, v] over the arcs that begin at a cut <= that over those that end there, and
                      >= that over those that end there and keep s (`Fusion.shrinks` says which may not)
             (LOAD)   l[a] <= p[a, s, 1]; SHRINK has p[a, s, 1] - l[a] for what a begins with
             (ROOM)   sum (banks[s, v] - banks[s, v - 1]) p[a, s, v] + sum banks[g] y[a, g] <= B z[a], in grains d of
                      the arc: step g takes floor(B / d) - floor((B - banks[g]) / d) of floor(B / d)
             (PLACE)  p[a, s, v] = z[a] for the maps in one place, of which ROOM counts one
             (CAP)    another measure, likewise a sum over arcs, is at most its cap
Every arc has levels of its own, so that a level costs only where its arc is of the path, without any big constant; with
one map alone and no ROOM the rows are those of a shortest path, whose relaxation is integral.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np

from formulations.fusion.groups import NEVER
from formulations.fusion.space import Arc, Fusion, Taken
from formulations.fusion.strips import Ints
from formulations.rows import Rows, Terms
from instances.errors import InputError

#: What a byte and a MAC count, and the most of both together.
Limit = tuple[tuple[int, int], int]


@dataclass(frozen=True)
class _Place:
    """An arc's variables: z, p of every map from level 1 on, and l of weights that it may load (numbered `loads`)."""

    arc: Arc
    taken: int
    levels: Mapping[int, tuple[int, ...]]
    loads: int = -1
    load: int = -1

    def before(self, k: int, v: int) -> Terms:
        """Whether a map had level v + 1 or more ahead of the arc."""
        terms = {self.levels[k][v]: 1} if v < len(self.levels[k]) else {}
        return {**terms, self.load: -1} if k == self.loads and terms else terms


class Linear(Rows):
    """The rows of an instance under limits on measures."""

    def __init__(self, fusion: Fusion, limits: Sequence[Limit] = ()) -> None:
        super().__init__()
        self.fusion = fusion
        self._bytes: Terms = defaultdict(int)
        self._macs: Terms = defaultdict(int)
        fewest = self._fewest()
        self._places = [
            self._place(arc, arc.macs + fewest[arc.first] - fewest[cut])
            for cut, arcs in sorted(self.fusion.arcs.items())
            for arc in arcs
            if arc.first in fewest
        ]
        self._most = fewest.get(self.fusion.cuts, 0)
        for cut in range(self.fusion.cuts + 1):
            self._cut(cut)
        for factors, most in limits:
            terms, constant = self._measured(factors)
            self.limit(terms, most - constant)
        self.minimise(*self._measured(self.fusion.factors))

    def path(self, value: Callable[[int], bool]) -> tuple[Taken, ...]:
        """Return the path of a solution; raises InputError if it is none."""
        chosen = {place.arc.first: place for place in self._places if value(place.taken)}
        path, cut, fusion = list[Taken](), 0, self.fusion
        while cut < fusion.cuts:
            if cut not in chosen:
                raise InputError(f"the solver's path has no arc from cut {cut}")
            place = chosen[cut]
            levels = {k: sum(map(value, ps)) for k, ps in place.levels.items()}
            free = fusion.free(place.arc, levels)
            if place.arc.bytes(levels, free) >= NEVER:
                raise InputError(f"the solver's arc from cut {cut} finds no room")
            loaded = place.load >= 0 and value(place.load)
            path.append(Taken(place.arc, levels, free, place.loads if loaded else -1))
            cut = place.arc.last + 1
        return tuple(path)

    # ---- rows --------------------------------------------------------------------------------------------------------

    def _fewest(self) -> dict[int, int]:
        """The fewest MACs up to every cut that a path leads to: what arcs have beyond them is small."""
        fewest = {0: 0}
        for cut in range(1, self.fusion.cuts + 1):
            ways = [fewest[a.first] + a.macs for a in self.fusion.arcs.get(cut, ()) if a.first in fewest]
            if ways:
                fewest[cut] = min(ways)
        return fewest

    def _measured(self, factors: tuple[int, int]) -> tuple[Terms, int]:
        """A measure as a sum over variables, and its constant."""
        each, per_mac = factors
        total: Terms = defaultdict(int)
        for terms, factor in ((self._bytes, each), (self._macs, per_mac)):
            for x, n in terms.items():
                total[x] += factor * n
        return {x: n for x, n in total.items() if n}, each * self.fusion.constant + per_mac * self._most

    def _place(self, arc: Arc, macs: int) -> _Place:
        """An arc with its variables, STAIR, STEP and ROOM."""
        fusion, taken = self.fusion, self.new()
        steps = self._steps(arc)
        room = fusion.banks - min((banks for _, banks, _ in steps), default=fusion.banks + 1)
        levels = {
            k: tuple(self.new() for banks in fusion.banks_of(arc, k)[1:] if banks <= room and not fusion.barred(arc, k))
            for k in fusion.held(arc)
        }
        place = self._loading(_Place(arc, taken, levels))
        for k, ps in levels.items():
            for before, after in pairwise((taken, *ps)):
                self.add({before: 1, after: -1}, 0, None)
            if k in arc.full:
                every = len(ps) == len(fusion.residences[k].banks) - 1
                self.add({taken: 1, ps[-1]: -1} if every else {taken: 1}, 0, 0)
        ys = [self.new() for _ in steps]
        self.add({**dict.fromkeys(ys, 1), taken: -1}, 0, 0)
        for axis, k in enumerate(arc.axes):
            for kind in np.unique(arc.classes[axis]):
                terms = self._of_class(place, k, np.flatnonzero(arc.classes[axis] == kind))
                for y, (kinds, _, _) in zip(ys, steps, strict=True):
                    terms[y] = -1 if kinds[axis] == kind else 0
                self.add(terms, 0, 0)
        grain = fusion.grain(arc)
        whole = fusion.banks // grain
        room_row: Terms = {taken: -whole}
        for k in levels:
            self._rising(room_row, place, k, [banks // grain for banks in fusion.banks_of(arc, k)])
        needs = {y: whole - (fusion.banks - banks) // grain for y, (_, banks, _) in zip(ys, steps, strict=True)}
        self.add({**room_row, **needs}, None, 0)
        self._bytes.update({y: size for y, (_, _, size) in zip(ys, steps, strict=True)})
        self._macs[taken] += macs
        self._moved(place)
        return place

    def _loading(self, place: _Place) -> _Place:
        """LOAD: an arc loads weights only where they are on chip during it."""
        k = self.fusion.loads(place.arc)
        if k < 0 or not place.levels[k]:
            return place
        load = self.new()
        self.add({place.levels[k][0]: 1, load: -1}, 0, None)
        self._bytes[load] = int(place.arc.reads[place.arc.axes.index(k)][0])
        return replace(place, loads=k, load=load)

    def _steps(self, arc: Arc) -> list[tuple[tuple[int, ...], int, int]]:
        """The steps of an arc for which there is room beside the smallest levels of their classes."""
        banks = [np.array(self.fusion.banks_of(arc, k)) for k in arc.axes]
        kinds = [[int(kind) for kind in np.unique(classes)] for classes in arc.classes]
        made = []
        for chosen in product(*kinds):
            least = sum(int(b[c == kind].min()) for b, c, kind in zip(banks, arc.classes, chosen, strict=True))
            made += [(chosen, room, size) for room, size in arc.steps(chosen) if room + least <= self.fusion.banks]
        return made

    def _of_class(self, place: _Place, k: int, levels: Sequence[int] | Ints) -> Terms:
        """Whether the level of a map is one of these."""
        stair, terms = (place.taken, *place.levels[k]), Terms()
        for v in levels:
            for at, sign in ((v, 1), (v + 1, -1)):
                if at < len(stair):
                    terms[stair[at]] = terms.get(stair[at], 0) + sign
        return terms

    def _rising(self, terms: Terms, place: _Place, k: int, values: Sequence[int] | Ints) -> None:
        """Add what a level of a map is worth."""
        terms[place.taken] = terms.get(place.taken, 0) + int(values[0])
        for p, (before, after) in zip(place.levels[k], pairwise(values), strict=False):
            terms[p] = terms.get(p, 0) + int(after) - int(before)

    def _moved(self, place: _Place) -> None:
        """The bytes of an arc that are no step's: as `formulations.fusion.space` counts them."""
        arc, fusion = place.arc, self.fusion
        self._bytes[place.taken] += arc.fixed
        for k in fusion.alive[arc.first]:
            if k in arc.axes:
                self._rising(self._bytes, place, k, arc.reads[arc.axes.index(k)])
            if fusion.residences[k].uses[-1] <= arc.last:
                self._rising(self._bytes, place, k, fusion.residences[k].write)

    def _cut(self, cut: int) -> None:
        """PATH and SHRINK."""
        ending = [place for place in self._places if place.arc.last + 1 == cut]
        begin = [place for place in self._places if place.arc.first == cut]
        inner = 0 < cut < self.fusion.cuts
        terms = {p.taken: 1 for p in begin} | {p.taken: -1 if inner else 1 for p in ending}
        self.add(terms, 0 if inner else 1, 0 if inner else 1)
        for k in self.fusion.alive[cut] if inner else ():
            fixed = [place for place in ending if not self.fusion.shrinks(place.arc, k)]
            for v in range(len(self.fusion.residences[k].banks) - 1):
                after = {x: n for place in begin for x, n in place.before(k, v).items()}
                before, kept = (
                    {place.levels[k][v]: 1 for place in some if v < len(place.levels[k])} for some in (ending, fixed)
                )
                if before == kept:
                    self.add({**after, **dict.fromkeys(before, -1)}, 0, 0)
                    continue
                self.add({**after, **dict.fromkeys(before, -1)}, None, 0)
                if kept:
                    self.add({**after, **dict.fromkeys(kept, -1)}, 0, None)
