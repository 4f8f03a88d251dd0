"""Bounds on the time of nests whose transfers overlap with compute: branch and bound over numbers and sizes of pieces.

Nodes are classes of nests (`hwmodels.nest.price.ranges`), each with a bound (`hwmodels.nest.price.hidden`). Roots are
all ways to cut every dimension, one for each loop that IN may slide along, and for each number of equal parts that the
largest part of the kernel makes. Classes with the least bounds are split first, in two by one of their ranges: the
widest of the numbers of pieces, or else of sizes, those of first and last pieces behind the others; before that by
which loops cut. A class of which all of that is known is bounded once more, piece by piece, and before that as soon as
only the cuts of its longest dimension are open (`formulations.tiling.settling`). Skeletons share nests: of classes in
which the same loops cut, in the same order between the same Holds, one is kept. No nest of a skeleton is below the
least bound that is left of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import inf

import numpy as np

from formulations.tiling.listing import Listing
from formulations.tiling.settling import WORK, Settled, Work
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.choices import KERNELS
from hwmodels.nest.price.hidden import Hidden
from hwmodels.nest.price.ranges import Loop, Mask, Ranges
from hwmodels.nest.price.sequences import cutting, orders
from hwmodels.nest.price.skeleton import cores
from hwmodels.schedule import Step
from instances.machine.machine import Machine
from instances.network.workload import RELEVANT, Layer

#: Classes that are bounded at most, those at first, and those that are split at a time.
NODES, FIRST, _BATCH = 250_000, 25_000, 1_000
#: Classes that are bounded piece by piece at a time; and those whose nests plans are looked for from.
_LOTS, STARTS = 50, 32
#: What is known of a class: not yet which loops cut; which do; its bound however the longest dimension is cut; its own.
_OPEN, _TOLD, _SHARED, _SETTLED = range(4)
#: How much more numbers of pieces count than the largest piece where the next range to split is chosen, and ends less.
_NUMBERS, _ENDS = 100.0, 0.05
#: How close values are below which nests are looked for, each in one of so many parts of the time that is left; and how
#: many such searches may end with classes that are open.
_CLOSE, _PARTS, _FAILED = 0.01, 4, 2
#: Loops that cut, with what is known of each, between one Hold and the next.
Between = tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]


@dataclass(frozen=True)
class Least:
    """The least bound of a search, and the class that has it, the only one of `ranges`."""

    bound: int
    hidden: Hidden
    ranges: Ranges

    @property
    def loops(self) -> Iterator[tuple[dict[str, tuple[Step, ...]], tuple[str, int] | None]]:
        """Yield loops that the class stands for, in equal steps and with its ends, and the one that IN slides along."""
        for even in (True, False):
            yield self._cut(even=even), self.hidden.slide

    def _cut(self, *, even: bool) -> dict[str, tuple[Step, ...]]:
        """Loops that make as many pieces as the class has at least, by dimension: equal ones, or with its ends."""
        found: dict[str, tuple[Step, ...]] = {}
        for d, extent in self.hidden.extent.items():
            levels = [self.hidden.loops.index((d, k + 1)) for k in range(self.hidden.levels[d])]
            numbers = [1, *(int(self.ranges.fewest[n, 0]) for n in levels)]
            found[d] = tuple(-(-extent // number) for number in numbers[1:])
            if not even and d not in KERNELS.values() and len({*numbers}) == 2:  # one loop cuts
                cutting = next(k for k, number in enumerate(numbers[1:]) if number > 1)
                ends = (int(x[levels[cutting], 0]) for x in (self.ranges.first, self.ranges.last))
                found[d] = tuple(
                    places(extent, numbers[-1], *ends) if k == cutting else extent for k in range(len(levels))
                )
        return found


def places(extent: int, number: int, first: int, last: int) -> Step:
    """Where to cut in so many pieces, the first and the last of such sizes, the others alike."""
    middle = extent - first - last
    if number == 2:
        return (first,)
    if middle < number - 2:
        return -(-extent // number)
    return tuple(first + middle * k // (number - 2) for k in range(number - 1))


def may_split(layer: Layer, machine: Machine) -> bool:
    """Whether bounds of this kind hold: tiles are counted as they are, and inputs are read whole, in one order."""
    plain = all(one == (0, "") for one in layer.loaded) and not layer.resident_out
    return plain and machine.edge_tiles == "true" and not (machine.snake or machine.line)


class Splitting:
    """The least bounds of some skeletons, for plans that get better: each goes on where the one before ended."""

    def __init__(self, listings: Sequence[Listing]) -> None:
        self._listings, self._work, self._searches = listings, Work(0), list[tuple[int, _Search]]()
        self._hidden = [(number, hidden) for number, one in enumerate(listings) for hidden in _bounds(one)]
        self._settled = [Settled(hidden, self._work) for _, hidden in self._hidden]

    @property
    def nodes(self) -> int:
        """Classes that were bounded."""
        return sum(search.nodes for _, search in self._searches)

    def least_times(self, below: int, late: Callable[[], bool], most: float = inf) -> list[Least | None]:
        """Return the least bound of all nests of each skeleton; None if none is below `below`, which is up to `MOST`.

        All are searched together, so that the least of all is raised first: it is the bound of a layer. A nest of
        several skeletons may count for one of them alone. `late` says when to split no further, `most` how many classes
        there may be.
        """
        self._work.left = WORK
        if not self._searches:
            self._begin(below)
        for _, search in self._searches:
            search.lower(below)
        while self.nodes < min(most, NODES) and not late():
            first = min((search for _, search in self._searches), key=lambda search: search.bound)
            if first.bound >= below or not first.step():
                break
        every = range(len(self._listings))
        return [_least(below, [search for at, search in self._searches if at == number]) for number in every]

    def raised(self, least: int, below: int, by: Callable[[float], Callable[[], bool]]) -> int:
        """Return a bound of all nests of the skeletons between a known one, `least`, and a plan of `below`.

        A search for nests below a value halfway ends much earlier than one for nests below the plan: of classes above
        the value nothing more is asked. Where it ends without a class, the value is a bound. `by` shares time out.
        """
        failed, plan = 0, below
        while below - least > _CLOSE * plan and failed < _FAILED:
            middle = (least + below) // 2
            found = [one.bound for one in Splitting(self._listings).least_times(middle, by(_PARTS)) if one is not None]
            least, failed = max(least, min(found, default=middle)), failed + bool(found)
            below = middle if found else below
        return least

    def _begin(self, below: int) -> None:
        """Bound the roots of all searches."""
        owners = dict[object, int]()
        for (number, hidden), settled in zip(self._hidden, self._settled, strict=True):
            search = _Search(self._listings[number], settled, below, owners)
            search.begin(_roots(self._listings[number], hidden))
            self._searches.append((number, search))

    def ways(self) -> Iterator[tuple[int, dict[str, tuple[Step, ...]], tuple[str, int] | None]]:
        """Yield the number of a skeleton, loops of it that may be better than the plan, and what IN slides along."""
        for (number, hidden), settled in zip(self._hidden, self._settled, strict=True):
            while settled.ways:
                yield number, settled.ways.pop(), hidden.slide

    def starts(self, below: int) -> Iterator[tuple[int, dict[str, tuple[Step, ...]], tuple[str, int] | None]]:
        """Yield the same of loops that the least classes of some searches stand for, the least ones first."""
        some = [(number, search.least) for number, search in self._searches if search.bound < below]
        for number, least in sorted(some, key=lambda one: one[1].bound)[:STARTS]:
            for steps, slide in least.loops:
                yield number, steps, slide


def _least(below: int, searches: Sequence[_Search]) -> Least | None:
    first = min(searches, key=lambda search: search.bound)
    return first.least if first.bound < below else None


def _bounds(listing: Listing) -> Iterator[Hidden]:
    """Yield what bounds nests that slide along each loop, or along none."""
    (core,) = cores(listing.layer, listing.skeleton.spatial)
    for slide in listing.slides or (None,):
        yield Hidden(listing.layer, listing.machine, listing.skeleton, core, slide)


def _roots(listing: Listing, hidden: Hidden) -> Ranges:
    """All nests: a class for each way to cut the kernel; pieces are of sizes that the listing allows."""
    loops = [loop for loop in hidden.loops if loop[0] in KERNELS.values()]
    known = {loop: _allowed(listing, loop) for loop in hidden.loops if loop not in loops}
    parts = [[_parts(hidden.extent[d], number) for number in _numbers(hidden.extent[d])] for d, _ in loops]
    every = [dict(zip(loops, chosen, strict=True)) for chosen in product(*parts)]
    nested = [one for one in every if all(one[d, k][0] >= one[d, k - 1][0] for d, k in loops if k > 1)]
    if hidden.slide and hidden.slide[0] in KERNELS.values() and any(d in KERNELS for d, _ in listing.slides):
        d, at = hidden.slide  # whole kernels slide along rows or columns
        nested = [one for one in nested if one[d, at + 1][0] > (one[d, at][0] if at else 1)]
    return hidden.classes([known | one for one in nested])


def _allowed(listing: Listing, loop: Loop) -> tuple[int, int, int, int]:
    """Numbers and largest pieces of a loop."""
    (d, level), extent = loop, listing.share(loop[0])
    sizes = listing.sizes[d].inner if level == listing.skeleton.levels(d) else listing.sizes[d].outer
    return (1, extent, int(sizes.min()), int(sizes.max())) if len(sizes) else (1, extent, 1, extent)


def _numbers(taps: int) -> list[int]:
    """Numbers of parts that equal steps make."""
    return sorted({-(-taps // size) for size in range(1, taps + 1)})


def _parts(taps: int, number: int) -> tuple[int, int, int, int]:
    """Numbers and largest parts of the cuts whose largest part makes so many equal ones."""
    least, most = -(-taps // number), (taps - 1) // (number - 1) if number > 1 else taps
    return number, taps - least + 1, least, most


class _Search:
    """Classes that are open, with their bounds; and the best of those that cannot be split.

    `owners` has the search that classes in which the same loops cut are left to.
    """

    def __init__(self, listing: Listing, settled: Settled, below: int, owners: dict[object, int]) -> None:
        self.hidden, self.nodes, self._below = settled.hidden, 0, below
        self._listing, self._settled, self._owners = listing, settled, owners
        self._open, self._bounds, self._stage = self.hidden.classes([]), np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._known, self._done = self.hidden.classes([]), below

    @property
    def bound(self) -> int:
        """No nest is below it, if it is below what plans are."""
        return int(min(self._done, self._bounds.min(initial=self._below)))

    @property
    def least(self) -> Least:
        """The class whose bound it is."""
        known = self._done <= self.bound
        some = self._known if known else self._open.take(np.array([self._bounds.argmin()]))
        return Least(self.bound, self.hidden, some)

    def begin(self, roots: Ranges) -> None:
        """Bound the roots."""
        self._add(roots, np.zeros(len(roots), np.int64), np.full(len(roots), _OPEN))

    def lower(self, below: int) -> None:
        """Leave the classes that hold no nest below a better plan."""
        if below < self._below:
            some = self._bounds < below
            self._open, self._bounds, self._stage = self._open.take(some), self._bounds[some], self._stage[some]
            self._below, self._done = below, min(self._done, below)

    def step(self) -> bool:
        """Split the classes with the least bounds; whether there were some below what is known."""
        some = np.flatnonzero(self._bounds < self._done)
        if not len(some):
            return False
        some = some[np.argsort(self._bounds[some], kind="stable")[:_BATCH]]
        classes, bounds, stage = self._taken(some)
        points = (stage > _OPEN) & _points(classes)
        rest = ~self._settle(classes, bounds, stage, points)
        self._put(classes.take(~rest), bounds[~rest], stage[~rest])
        done = np.flatnonzero(points & rest)
        if len(done) and bounds[done].min() < self._done:
            first = int(done[bounds[done].argmin()])
            self._known, self._done = classes.take(np.array([first])), int(bounds[first])
        for where, parts in (((stage == _OPEN) & rest, flagged), ((stage > _OPEN) & rest & ~points, halves)):
            at = np.flatnonzero(where)
            if len(at):
                self._add(parts(classes.take(at)), np.tile(bounds[at], 2), np.tile(stage[at], 2))
        return True

    def _settle(self, classes: Ranges, bounds: Ints, stage: Ints, points: Mask) -> Mask:
        """Bound some of the classes that are to be bounded piece by piece; which are (or will be), if any may."""
        due = points & (stage < _SETTLED)
        due |= (stage == _TOLD) & self._settled.shares(classes)
        due &= self._settled.may
        for at in np.flatnonzero(due)[:_LOTS]:
            one, settle = classes.take(np.array([at])), self._settled.bound if points[at] else self._settled.shared
            known = int(bounds[at])
            bounds[at] = settle(one, known, self._below)
            if points[at] or bounds[at] == known:
                stage[at] = _SETTLED if points[at] else _SHARED
        return due

    def _taken(self, at: Ints) -> tuple[Ranges, Ints, Ints]:
        """Some classes, which are no longer open."""
        rest = np.ones(len(self._bounds), np.bool_)
        rest[at] = False
        found = self._open.take(at), self._bounds[at], self._stage[at]
        self._open, self._bounds, self._stage = self._open.take(rest), self._bounds[rest], self._stage[rest]
        return found

    def _put(self, classes: Ranges, bounds: Ints, stage: Ints) -> None:
        """Keep the classes that may hold a nest below the plan."""
        below = bounds < self._below
        self._open = Ranges.joined([self._open, classes.take(below)])
        self._bounds, self._stage = np.append(self._bounds, bounds[below]), np.append(self._stage, stage[below])

    def _add(self, classes: Ranges, bounds: Ints, stage: Ints) -> None:
        """Bound some classes; none is below the bound of what it was split from."""
        self.nodes += len(classes)
        classes, found = self.hidden.bound(classes)
        bounds, stage = np.maximum(found, bounds), stage.copy()
        fresh = (stage == _OPEN) & classes.told
        stage[fresh] = _TOLD
        for at in np.flatnonzero(fresh & (bounds < self._below)):
            one = classes.take(np.array([at]))
            owner = self._owners.setdefault(self._key(one), id(self))
            if owner != id(self) or next(orders(self.hidden, one), None) is None:
                bounds[at] = self._below
        self._put(classes, bounds, stage)

    def _key(self, one: Ranges) -> object:
        """What tells which loops cut, in any order between which Holds: all nests of a class."""
        hidden = self.hidden
        loops, outside = cutting(hidden, one)
        known = [
            (hidden.loops[n][0], tuple(int(x[n, 0]) for pair in one.pairs[:2] for x in pair))
            if hidden.loops[n][0] in KERNELS.values()
            else (hidden.loops[n][0], _allowed(self._listing, hidden.loops[n]))
            for n in loops
        ]
        ends = sorted({0, *outside.values(), len(loops)})
        between = tuple(tuple(sorted(known[a:b])) for a, b in pairwise(ends))
        buffers = tuple(sorted((op, end, hidden.buffers[op]) for op, end in outside.items()))
        d, level = hidden.slide or ("", 0)
        told = between, d if d and hidden.loops.index((d, level + 1)) in loops else ""
        if mirrors(hidden, loops, outside):
            told = min(told, _mirrored(*told))
        return hidden.skeleton.spatial, told, buffers


def mirrors(hidden: Hidden, loops: Sequence[int], outside: Mapping[str, int]) -> bool:
    """Whether nests take the same ticks with columns for rows, if these loops cut, so many of them outside each Hold.

    Rows are like columns, kernels are whole, and tiles of IN and OUT have some of the channels: as these are stored
    innermost, every place of the map is a run.
    """
    dims, machine = [hidden.loops[n][0] for n in loops], hidden.machine
    square = hidden.windows["r"] == hidden.windows["c"] and hidden.core.range("r") == hidden.core.range("c")
    innermost = machine.in_layout == machine.out_layout == "HWC"
    channels = all(not {*RELEVANT[op]}.isdisjoint({*"gmn"} & {*dims[: outside[op]]}) for op in ("IN", "OUT"))
    return square and innermost and channels and {*dims}.isdisjoint(KERNELS.values())


def _mirrored(between: Between, slide: str) -> tuple[Between, str]:
    """The same loops with columns for rows."""
    mirror = {"r": "c", "c": "r"}
    found = tuple(tuple(sorted((mirror.get(d, d), known) for d, known in part)) for part in between)
    return found, mirror.get(slide, slide)


def _points(classes: Ranges) -> Mask:
    """Which classes have one number and one size each."""
    known: Mask = np.all([(below == above).all(axis=0) for below, above in classes.pairs], axis=0)
    return known


def flagged(classes: Ranges) -> Ranges:
    """Split each class by the first loop that may cut: those where it does not, then those where it does."""
    at = np.arange(len(classes))
    loop, lower, upper = (classes.cuts < classes.cuts_most).argmax(axis=0), classes.take(at), classes.take(at)
    lower.cuts_most[loop, at] = 0
    upper.cuts[loop, at] = 1
    return Ranges.joined([lower, upper])


def halves(classes: Ranges) -> Ranges:
    """Split each class by its widest range: the lower halves, then the upper ones."""
    pairs = classes.pairs
    wide = np.stack([above / below - 1 for below, above in pairs])
    wide *= np.array([_NUMBERS, 1.0, _ENDS, _ENDS])[:, None, None]
    kind, loop = np.divmod(wide.reshape(-1, len(classes)).argmax(axis=0), wide.shape[1])
    lower, upper = classes.take(np.arange(len(classes))), classes.take(np.arange(len(classes)))
    for number, (below, above) in enumerate(pairs):
        at = np.flatnonzero(kind == number)
        first, last = below[loop[at], at], above[loop[at], at]
        middle = (first + last) // 2 if number == 1 else np.sqrt(first * last.astype(np.float64)).astype(np.int64)
        middle = np.clip(middle, first, np.maximum(last - 1, first))
        lower.pairs[number][1][loop[at], at] = middle
        upper.pairs[number][0][loop[at], at] = middle + 1
    return Ranges.joined([lower, upper])
