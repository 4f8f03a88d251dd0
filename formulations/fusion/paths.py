"""The least paths of fusion by dynamic programming over cuts; `formulations.fusion.space` states the problem.

A state is the level of every residence alive at a cut. Weights that stay may be loaded before a layer: there the cost
of a level is the least of that and of those below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from formulations.fusion.groups import NEVER
from formulations.fusion.space import Arc, Fusion, Taken, along, most_bytes
from formulations.fusion.strips import Ints
from formulations.problem import Unable

#: Numbers that dynamic programming may hold, of 8 bytes each: 512 MiB. It keeps the combinations of levels of all cuts,
#: and works on so many times those of one.
MOST_STATES, AT_A_TIME = 2**26, 6
#: Numbers that are laid out together for what is free beside maps.
_AT_ONCE = 2**20


class Paths:
    """Least costs from cut 0 to every cut, and the path back; raises Unable where there are too many states."""

    def __init__(self, fusion: Fusion) -> None:
        self.fusion = fusion
        self.values: list[Ints] = [np.array(fusion.constant * fusion.factors[0], np.int64)]
        sizes = [prod(fusion.shape(cut)) for cut in range(fusion.cuts + 1)]
        if AT_A_TIME * max(sizes) + sum(sizes) > MOST_STATES:
            alive = len(fusion.alive[sizes.index(max(sizes))])
            raise Unable(
                f"{alive} maps may be on chip at a time, {max(sizes):,} combinations of their rows, {sum(sizes):,} in "
                "all: more than dynamic programming takes; use engine milp or cp-sat"
            )
        for cut in range(1, fusion.cuts + 1):
            value = np.full(fusion.shape(cut), NEVER, np.int64)
            for arc in fusion.arcs.get(cut, ()):
                if self.values[arc.first].min() < NEVER:
                    value = np.minimum(value, self._onward(arc))
            self.values.append(value)

    @property
    def least(self) -> int:
        """The least cost of all paths; at least `NEVER` if there is none."""
        return int(self.values[-1].min(initial=NEVER))

    def through(self, most: int) -> dict[Arc, int]:
        """Return the arcs that a path of at most this cost may have, each with the least cost of a path through it."""
        fusion, rest = self.fusion, {self.fusion.cuts: np.zeros((), np.int64)}
        costs: dict[Arc, int] = {}
        for cut in range(fusion.cuts, 0, -1):
            for arc in fusion.arcs.get(cut, ()) if cut in rest else ():
                if self.values[arc.first].min() >= NEVER:
                    continue
                cost = int((self._onward(arc) + rest[cut]).min())
                if cost <= most:
                    costs[arc] = cost
                    before = self._backward(arc, rest[cut])
                    rest[arc.first] = np.minimum(rest[arc.first], before) if arc.first in rest else before
        return costs

    # ---- one arc -----------------------------------------------------------------------------------------------------

    def _roles(self, arc: Arc) -> tuple[list[int], list[int], list[int]]:
        """The residences that go on, are used up, and are born."""
        before, after = self.fusion.alive[arc.first], self.fusion.alive[arc.last + 1]
        going = [k for k in before if k in after]
        return going, [k for k in before if k not in after], [k for k in after if k not in before]

    def _entering(self, before: Ints, arc: Arc) -> Ints:
        """Costs before an arc, with what it reads and what is written of maps that it uses up."""
        names, (each, per_mac) = self.fusion.alive[arc.first], self.fusion.factors
        moved = np.array(arc.fixed, np.int64)
        for axis, k in enumerate(names):
            if k in arc.axes:
                moved = moved + along(arc.reads[arc.axes.index(k)], axis, len(names))
            if self.fusion.residences[k].uses[-1] <= arc.last:
                moved = moved + along(self.fusion.residences[k].write, axis, len(names))
        moved = np.minimum(moved, most_bytes(each)) * each  # three numbers up to NEVER still fit in 64 bits
        cost: Ints = np.minimum(before + moved + min(arc.macs * per_mac, NEVER), NEVER)
        return cost

    def _loaded(self, arc: Arc, entering: Ints) -> Ints:
        """Costs before an arc once its weights may have been loaded, to stay."""
        k = self.fusion.loads(arc)
        if k < 0:
            return entering
        loaded: Ints = np.minimum.accumulate(entering, axis=self.fusion.alive[arc.first].index(k))
        return loaded

    def _onward(self, arc: Arc) -> Ints:
        """Costs at the end of an arc."""
        going, ending, born = self._roles(arc)
        names = self.fusion.alive[arc.first]
        entering = self._loaded(arc, self._entering(self.values[arc.first], arc))
        entering = entering.transpose([names.index(k) for k in (*going, *ending)])
        result = self._through(arc, entering, ending, born)
        for axis in self._shrinking(arc, (*going, *born)):
            result = np.flip(np.minimum.accumulate(np.flip(result, axis), axis=axis), axis)
        return result.transpose([(*going, *born).index(k) for k in self.fusion.alive[arc.last + 1]])

    def _backward(self, arc: Arc, rest: Ints) -> Ints:
        """Costs from the begin of an arc on, for those from its end on."""
        going, ending, born = self._roles(arc)
        names, names_before = self.fusion.alive[arc.last + 1], self.fusion.alive[arc.first]
        leaving = rest.transpose([names.index(k) for k in (*going, *born)])
        for axis in self._shrinking(arc, (*going, *born)):
            leaving = np.minimum.accumulate(leaving, axis=axis)
        result = self._through(arc, leaving, born, ending)
        before = result.transpose([(*going, *ending).index(k) for k in names_before])
        if (k := self.fusion.loads(arc)) >= 0:
            axis = names_before.index(k)
            before = np.flip(np.minimum.accumulate(np.flip(before, axis), axis=axis), axis)
        return self._entering(before, arc)

    def _shrinking(self, arc: Arc, names: Sequence[int]) -> Iterator[int]:
        """The axes of maps that go on and may shrink."""
        for axis, k in enumerate(names):
            if self.fusion.shrinks(arc, k):
                yield axis

    def _through(self, arc: Arc, values: Ints, ended: Sequence[int], begun: Sequence[int]) -> Ints:
        """Let some residences go and others come, the table of the arc between: (going, ended) to (going, begun)."""
        fusion, going, grain = self.fusion, self._roles(arc)[0], self.fusion.grain(arc)
        free = np.arange(fusion.banks % grain, fusion.banks + 1, grain)
        table = fusion.priced(arc.table)[..., arc.column(free)]
        result = np.full(tuple(len(fusion.residences[k].banks) for k in (*going, *begun)), NEVER, np.int64)
        every = [np.arange(n) for n in values.shape[: len(going)]]
        for gone in self._combinations(arc, ended):
            sizes, least = _by_size(
                values[np.ix_(*every, *gone.levels)], len(going), fusion.sizes(arc, ended, gone.levels) // grain
            )
            for there in self._combinations(arc, going):
                some = least[np.ix_(*there.levels, np.arange(len(sizes)))]
                held = fusion.sizes(arc, going, there.levels) // grain
                for made in self._combinations(arc, begun):
                    classes = {**gone.classes, **there.classes, **made.classes}
                    row = table[tuple(classes[k] for k in arc.axes)]
                    place = np.ix_(*there.levels, *made.levels)
                    reached = _fitted(some, sizes, held, fusion.sizes(arc, begun, made.levels) // grain, row)
                    result[place] = np.minimum(result[place], reached)
        return result

    def _combinations(self, arc: Arc, names: Sequence[int]) -> Iterator[_Combination]:
        """All combinations of classes of some residences."""
        split = []
        for k in names:
            size = len(self.fusion.residences[k].banks)
            kinds = arc.classes[arc.axes.index(k)] if k in arc.axes else np.zeros(size, np.int64)
            some = kinds[:1] if self.fusion.barred(arc, k) else kinds
            first = self.fusion.levels(arc, k).start
            split.append([(int(c), first + np.flatnonzero(some[first:] == c)) for c in np.unique(some[first:])])
        for chosen in product(*split):
            classes = {k: c for k, (c, _) in zip(names, chosen, strict=True)}
            yield _Combination(classes, tuple(levels for _, levels in chosen))

    # ---- back --------------------------------------------------------------------------------------------------------

    def path(self) -> tuple[Taken, ...]:
        """The arcs of the least path, first to last."""
        fusion, found = self.fusion, []
        cut, state = fusion.cuts, dict[int, int]()
        while cut:
            value = int(self.values[cut][tuple(state[k] for k in fusion.alive[cut])])
            step = next(s for arc in fusion.arcs.get(cut, ()) if (s := self._from(arc, state, value)) is not None)
            found.append(step)
            cut, state = step.arc.first, {k: step.before[k] for k in fusion.alive[step.arc.first]}
        return tuple(reversed(found))

    def _from(self, arc: Arc, state: Mapping[int, int], value: int) -> Taken | None:
        """The arc with levels from which a state is reached at its value; None if it is not."""
        fusion, names = self.fusion, self.fusion.alive[arc.first]
        if self.values[arc.first].min() >= NEVER:
            return None
        every = (*names, *self._roles(arc)[2])
        levels = ((k, np.arange(len(fusion.residences[k].banks))[self._before(arc, k, state)]) for k in every)
        ranges = [mine[mine >= fusion.levels(arc, k).start] for k, mine in levels]
        entering = self._entering(self.values[arc.first], arc)
        loaded = self._loaded(arc, entering)
        some = loaded[np.ix_(*ranges[: len(names)])]
        free = fusion.banks - fusion.sizes(arc, every, ranges)
        index = tuple(
            along(classes[ranges[every.index(k)]], every.index(k), len(every))
            for k, classes in zip(arc.axes, arc.classes, strict=True)
        )
        moved = np.where(free >= 0, fusion.priced(arc.table)[(*index, arc.column(np.maximum(free, 0)))], NEVER)
        total = some.reshape(some.shape + (1,) * (len(every) - len(names))) + moved
        if not total.size or total.min() != value:
            return None
        place = np.unravel_index(int(total.argmin()), total.shape)
        chosen = {k: int(mine[at]) for k, mine, at in zip(every, ranges, place, strict=True)}
        before = tuple(chosen[k] for k in names)
        loads = fusion.loads(arc) if loaded[before] < entering[before] else -1
        return Taken(arc, chosen, fusion.free(arc, chosen), loads)

    def _before(self, arc: Arc, k: int, state: Mapping[int, int]) -> slice:
        """The levels before an arc from which a level after it may come."""
        if k not in state:
            return slice(None)
        if self.fusion.barred(arc, k):
            return slice(state[k], 1)  # none if it is on chip behind the arc
        return slice(state[k], None if self.fusion.shrinks(arc, k) else state[k] + 1)


@dataclass(frozen=True)
class _Combination:
    """A class for every residence, and its levels."""

    classes: dict[int, int]
    levels: tuple[Ints, ...]


def _by_size(part: Ints, going: int, sizes: Ints) -> tuple[Ints, Ints]:
    """The least of all levels that take as many grains: (sizes, costs with an axis of sizes last)."""
    flat = part.reshape(*part.shape[:going], -1)
    order = np.argsort(sizes.ravel(), kind="stable")
    unique, starts = np.unique(sizes.ravel()[order], return_index=True)
    return unique, np.minimum.reduceat(flat[..., order], starts, axis=-1)


def _fitted(some: Ints, sizes: Ints, held: Ints, goals: Ints, row: Ints) -> Ints:
    """The least cost for every level of what goes on and of what is born (grains `goals`); `row` by free grains."""
    banks = len(row) - 1
    wanted, where = np.unique(goals, return_inverse=True)
    full = np.full((*held.shape, int(where.max()) + 1), NEVER, np.int64)
    many = max(1, _AT_ONCE // some.size)
    for first in range(0, int(np.count_nonzero(wanted <= banks)), many):
        part = wanted[first : first + many]
        free = banks - held[..., None, None] - sizes[:, None] - part[None, :]
        cost = np.where(free >= 0, row[np.maximum(free, 0)], NEVER)
        full[..., first : first + many] = np.minimum((some[..., None] + cost).min(axis=-2), NEVER)
    return np.asarray(full[..., where.ravel()]).reshape((*held.shape, *goals.shape))
