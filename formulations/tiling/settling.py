"""Bounds of single classes of nests, piece by piece, at little work (`hwmodels.nest.price.sequences`).

Classes that differ in how the longest of their dimensions is cut share a bound: that of all ways to cut it that fit, or
of those with no larger pieces. If it is not below the plan, none of them is. Else the class is bounded by itself.
Both are done coarsely first, with the least ticks of all ways to begin and to end a piece and with few loads and stores
that differ, and exactly if that is not enough. All of it stops when more work was done than one layer is worth.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.hidden import FAR, Hidden
from hwmodels.nest.price.ranges import Mask, Ranges
from hwmodels.nest.price.sequences import Sequences, orders
from hwmodels.schedule import Step

#: Work on a layer for one plan; and on a class at most, coarse and fine.
WORK, _EACH = 8_000_000, (1_500_000, 300_000)
#: Bounds of classes with no larger pieces that may be below the plan, before no more are asked for.
_FAILED = 2
#: Ways to begin or to end a piece, and loads and stores of a loop (0: all), that are told apart: coarse and fine.
_HOW = ((1, 16), (64, 0))


@dataclass
class Work:
    """What is left of the work on a layer."""

    left: int


@dataclass
class Settled:
    """Bounds of classes of one skeleton, as far as `work` is left."""

    hidden: Hidden
    work: Work
    _shared: dict[tuple[bytes, ...], list[tuple[Ints, int]]] = field(default_factory=dict)
    """By all but the longest dimension, the largest pieces of that, and bounds."""
    ways: list[dict[str, tuple[Step, ...]]] = field(default_factory=list)
    """Loops of nests that may be better than the plan: the best where one loop cuts."""

    @property
    def may(self) -> bool:
        """Whether classes can be bounded, and work is left."""
        return self.work.left > 0 and Sequences.may(self.hidden)

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

    def shared(self, one: Ranges, below: int) -> int:
        """What no time of the class is below however its longest dimension is cut, as far as that matters."""
        return self._with_others(one, self._longest(one), below)

    def bound(self, one: Ranges, below: int) -> int:
        """What no time of the class is below, as far as that matters for plans that take `below`."""
        longest = self._longest(one)
        bound = self._with_others(one, longest, below) if longest else 0
        return bound if bound >= below else max(bound, self._raised(one, below, counted=True))

    def _with_others(self, one: Ranges, dim: str, below: int) -> int:
        """The bound of all classes that cut a dimension anyhow, with no larger pieces."""
        loops = np.array([number for number, (d, _) in enumerate(self.hidden.loops) if d == dim])
        key = (one.cuts.tobytes(), *(np.delete(x, loops, axis=0).tobytes() for pair in one.pairs for x in pair))
        known, high = self._shared.setdefault(key, []), one.high[loops, 0]
        if not known:
            self._bounded(known, one, loops, self._largest(one, loops), below)
        high = np.minimum(high, known[0][0])  # larger ones do not fit
        bounds = [bound for most, bound in known if (high <= most).all()]
        failed = sum(bound < below for _, bound in known)
        if max(bounds) < below and failed <= _FAILED and not any((high == most).all() for most, _ in known):
            self._bounded(known, one, loops, high, below)
        return max(bound for most, bound in known if (high <= most).all())

    def _bounded(self, known: list[tuple[Ints, int]], one: Ranges, loops: Ints, sizes: Ints, below: int) -> None:
        """Note the bound of all classes with no larger pieces than these."""
        some, _ = self.hidden.tightened(self._open(one, loops, sizes, 1))
        known.append((sizes, self._raised(some, below, counted=False)))

    def _open(self, one: Ranges, loops: Ints, sizes: Ints, times: int) -> Ranges:
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
            some = self._open(one, loops, np.full(len(loops), extent), extent)
            some.low[loop] = some.high[loop] = sizes
            found.append(int(sizes[self.hidden.tightened(some)[1]].max(initial=1)))
        return np.array(found)

    def _raised(self, one: Ranges, below: int, *, counted: bool) -> int:
        """The bound of a class, in whichever of the orders between Holds its loops stand; 0 for too much work."""
        bound = FAR
        for order in orders(self.hidden, one):
            bound = min(bound, self._ordered(one, order, below, counted=counted))
            if not bound:
                break
        return bound

    def _ordered(self, one: Ranges, order: tuple[int, ...], below: int, *, counted: bool) -> int:
        """The bound of a class in one order, coarse, and fine if that is not enough.

        Where one loop cuts, nothing inside begins or ends: the coarse bound is exact, and the way that has it is kept.
        """
        bound, single = 0, int(one.cuts.sum()) == 1
        for (told, levels), work in zip(_HOW, _EACH, strict=True):
            if bound >= below or not self.may:
                break
            found = Sequences(self.hidden, one, order, counted=counted, told=told, levels=levels, work=work)
            finer = found.bound
            self.work.left -= work - found.work
            if finer is None:
                break
            bound = max(bound, finer)
            if single and not counted and bound < below:
                self.ways.append(found.places)
            if found.exact:
                break
        return bound
