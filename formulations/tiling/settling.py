"""Bounds of single classes of nests, piece by piece, at little work (`hwmodels.nest.price.sequences`).

Classes that differ in how the longest of their dimensions is cut share a bound: that of all ways to cut it that fit, or
of those with no larger pieces. If it is not below the plan, none of them is. Else the class is bounded by itself.
Shared bounds are found coarsely first: the longest dimension in few cells, with few ways to begin and to end a piece,
and with few loads and stores that differ. They are found again, finer each time, for a class that they do not raise.
All of it stops when more work was done than one layer is worth.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.cells import PLAIN, Cells
from hwmodels.nest.price.hidden import FAR, Hidden
from hwmodels.nest.price.ranges import Mask, Ranges
from hwmodels.nest.price.sequences import Sequences, orders
from hwmodels.schedule import Step

#: Work on a layer for one plan; and the share of what is left of it that one bound is worth.
WORK, _SHARE = 32_000_000, 6
#: Shared bounds are asked for with largest pieces that differ by so much.
_APART = 9 / 8
#: From coarse to fine: ways to begin or to end a piece, loads and stores of a loop (0: all), and cells of the longest
#: dimension (0: every place) that are told apart. Classes by themselves are bounded with every place alone.
_COARSE = ((2, 20, 20), (3, 30, 30), (4, 40, 40), (8, 40, 40))
_FINE = ((1, 16, 0), (64, 0, 0))


@dataclass
class Work:
    """What is left of the work on a layer."""

    left: int

    @property
    def share(self) -> int:
        """What one bound is worth."""
        return max(self.left // _SHARE, 0)


@dataclass
class _Open:
    """All classes that cut the longest dimension in no larger pieces than `sizes`: bounds by the order of loops."""

    sizes: Ints
    some: Ranges
    bounds: dict[tuple[int, ...], int]
    finer: list[tuple[int, int, int]]
    """How they may be found again."""
    cost: float = 0.0
    """Work of the last time, by cells and ways to begin and to end a piece."""

    @property
    def bound(self) -> int:
        return min(self.bounds.values(), default=FAR)


@dataclass
class Settled:
    """Bounds of classes of one skeleton, as far as `work` is left."""

    hidden: Hidden
    work: Work
    _shared: dict[tuple[bytes, ...], list[_Open]] = field(default_factory=dict)
    """By all but the longest dimension; the first one has the largest pieces that fit."""
    ways: list[dict[str, tuple[Step, ...]]] = field(default_factory=list)
    """Loops of nests that may be better than the plan: the best where one loop cuts."""

    @property
    def may(self) -> bool:
        """Whether classes can be bounded."""
        return Sequences.may(self.hidden)

    def shares(self, some: Ranges) -> Mask:
        """Which classes have one number and one size each, but for the loops over their longest dimension (N,)."""
        known = np.all([below == above for below, above in some.pairs], axis=0)
        left = some.cuts.any(axis=0)
        for d in self._longest_first:
            at = [n for n, (dim, _) in enumerate(self.hidden.loops) if dim == d]
            cut = some.cuts[at].any(axis=0)
            known[at] |= left & cut
            left &= ~cut
        shares: Mask = known.all(axis=0) & some.cuts.any(axis=0)
        return shares

    @property
    def _longest_first(self) -> list[str]:
        """Dimensions, the longest ones first."""
        return sorted(self.hidden.extent, key=lambda d: (self.hidden.extent[d], d), reverse=True)

    def _longest(self, one: Ranges) -> str:
        """The longest dimension that a class cuts; empty if it cuts none."""
        dims = {d for number, (d, _) in enumerate(self.hidden.loops) if one.cuts[number, 0]}
        return next((d for d in self._longest_first if d in dims), "")

    def shared(self, one: Ranges, known: int, below: int) -> int:
        """What no time of the class is below however its longest dimension is cut, if that is more than is known."""
        dim = self._longest(one)
        loops = np.array([number for number, (d, _) in enumerate(self.hidden.loops) if d == dim])
        key = (one.cuts.tobytes(), *(np.delete(x, loops, axis=0).tobytes() for pair in one.pairs for x in pair))
        found, high = self._shared.setdefault(key, []), one.high[loops, 0]
        if not found and self.work.left > 0:
            found.append(self._open(one, dim, loops, self._largest(one, loops)))
        if not found:
            return known
        sizes = np.minimum(_rounded(high, self.hidden.extent[dim]), found[0].sizes)
        bound = max(x.bound for x in found if (sizes <= x.sizes).all())
        for most in (found[0].sizes, sizes):
            if not bound <= known < below or self.work.left <= 0:
                break
            some = next((x for x in found if (most == x.sizes).all()), None)
            if some is None:
                some = self._open(one, dim, loops, most)
                found.append(some)
            while bound <= known and some.finer and self.work.left > 0:
                self._refined(some, dim, below)
                bound = max(bound, some.bound)
        return max(known, bound)

    def bound(self, one: Ranges, known: int, below: int) -> int:
        """What no time of the class is below, as far as that matters for plans that take `below`."""
        if self._longest(one):
            known = self.shared(one, known, below)
        if known >= below:
            return known
        return max(known, min((self._alone(one, order, below) for order in orders(self.hidden, one)), default=0))

    def _alone(self, one: Ranges, order: tuple[int, ...], below: int) -> int:
        """The bound of a class by itself in one order, as far as that matters; 0 for too much work."""
        bound = 0
        for told, levels, _ in _FINE:
            found = Sequences(self.hidden, one, order, told=told, levels=levels, work=self.work.share)
            bound = max(bound, self._worked(found) or 0)
            if found.exact or bound >= below:
                break
        return bound

    def _open(self, one: Ranges, dim: str, loops: Ints, sizes: Ints) -> _Open:
        """All classes that cut the longest dimension in no larger pieces; one loop that cuts needs no coarse ways."""
        some, _ = self.hidden.tightened(self._opened(one, loops, sizes, 1))
        coarse = [how for how in _COARSE if self.hidden.extent[dim] >= 2 * how[2]]
        few = dim not in PLAIN or int(one.cuts.sum()) == 1 or not coarse
        return _Open(sizes, some, dict.fromkeys(orders(self.hidden, some), 0), [*(_FINE if few else coarse)])

    def _refined(self, some: _Open, dim: str, below: int) -> None:
        """Find a bound again, in the next finer way, of the orders that may be below the plan."""
        (told, levels, number), extent = some.finer.pop(0), self.hidden.extent[dim]
        places = (number or extent) * told**2
        if some.cost * places > self.work.share:
            return
        spent, exact = self.work.left, True
        for order in [order for order, bound in some.bounds.items() if bound < below]:
            found = Sequences(
                self.hidden, some.some, order, counted=False, told=told, levels=levels, work=self.work.share,
                cells=Cells(dim, -(-extent // number)) if number else Cells(),
            )  # fmt: skip
            bound = self._worked(found)
            if bound is None:
                some.finer.clear()
                break
            some.bounds[order], exact = max(some.bounds[order], bound), exact and found.exact
            if int(some.some.cuts.sum()) == 1 and some.bounds[order] < below:
                self.ways.append(found.places)
        some.cost = (spent - self.work.left) / places if number else 0.0
        if exact:
            some.finer.clear()

    def _worked(self, found: Sequences) -> int | None:
        """A bound, if it is not too much work, which is taken from what is left."""
        before = found.work
        bound = found.bound
        self.work.left -= before - found.work
        return bound

    def _opened(self, one: Ranges, loops: Ints, sizes: Ints, times: int) -> Ranges:
        """So many classes that say of some loops no more than how large pieces are at most."""
        extent, some = self.hidden.extent[self.hidden.loops[loops[0]][0]], one.take(np.zeros(times, np.int64))
        for number, (least, most) in enumerate(some.pairs):
            least[loops], most[loops] = 1, sizes.reshape(len(loops), -1) if number == 1 else extent
        return some

    def _largest(self, one: Ranges, loops: Ints) -> Ints:
        """The largest piece of each of some loops over a dimension that fits."""
        extent, found = int(self.hidden.extent[self.hidden.loops[loops[0]][0]]), list[int]()
        sizes = np.arange(1, extent + 1)
        for loop in loops:
            some = self._opened(one, loops, np.full(len(loops), extent), extent)
            some.low[loop] = some.high[loop] = sizes
            found.append(int(sizes[self.hidden.tightened(some)[1]].max(initial=1)))
        return np.array(found)


def _rounded(sizes: Ints, extent: int) -> Ints:
    """Sizes up to the next one of those that are apart."""
    steps = np.floor(np.log(extent / sizes) / np.log(_APART) + 1e-9)
    found: Ints = np.maximum(sizes, np.ceil(extent / _APART**steps).astype(np.int64))
    return found
