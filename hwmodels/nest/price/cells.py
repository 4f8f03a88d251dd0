"""Few places for many: cuts of a long dimension by the cell that they are in, for lower bounds on all of them.

Example
    960 channels in cells of 24: a piece from cell 3 up to cell 5 has 25 channels or more, as its cuts may be at 95 and
    at 120. Instead of 960 places to cut at there are 40.
Given
    a dimension of H elements, of which ticks depend by sizes alone and rise with them; cells of q elements. A cut at x
    is in cell floor(x/q), and a piece that goes on by k cells spans them
Claim
    A piece that spans k cells has max(1, (k-1)*q + 1) elements at least; kq if it begins the range; and
    H - (X+1)*q + 1 if it ends the range and begins in cell X. So with the least of these each, no sequence of pieces
    is slower than what it stands for.
    Pieces that span no cell have one element at least, and one of these stands for several in a row: with V(s, t) the
    ticks of a piece with s stored behind its first step and t loaded ahead of its last one, which is s and t at least,
    ``V(s, l) + V'(s', t) >= V(s, 0) + t >= V(s, t)``, and V'(s, t) in the same way: so it is the first or the last one
    of all, where sizes of these are asked for. So each cell is a place twice: without such a piece and behind it.
    A loop inside another one over the same dimension cuts a piece that spans K cells in pieces that span K together.
    What stands for it has (K-1)*q + 1 elements, or Kq: K is the number of cells that these fill. One element stands
    for no cell, too: by the same argument nothing inside it is cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.price.bilinear import Ints

#: Dimensions whose ticks depend on sizes alone and rise with them.
PLAIN = frozenset("bgm")


class Ways(NamedTuple):
    """Pieces that stand for others (E,): from and up to which place, or to which end; elements; which are last ones."""

    begin: Ints
    end: Ints
    size: Ints
    last: NDArray[np.bool_]
    ends: int

    def take(self, some: NDArray[np.bool_]) -> Ways:
        """Some of them."""
        return Ways(self.begin[some], self.end[some], self.size[some], self.last[some], self.ends)


@dataclass(frozen=True)
class Cells:
    """Cells of so many elements along a dimension; of one element none are needed."""

    dim: str = ""
    size: int = 1

    def number(self, elements: int) -> int:
        """Cells that a piece spans which such a one stands for; none if it has one element."""
        return -(-elements // self.size) if elements > 1 else 0

    def whole(self, extent: int) -> Ways:
        """All ways to cut the whole range, to the only end."""
        last = (extent - 1) // self.size
        begin, end, size, _ = self._further(last, begins=True)
        final = np.arange(2 * last + 2)
        rest = np.maximum(extent - (final // 2 + 1) * self.size + 1, 1)
        return self._all((begin, end, size), (final, final * 0, np.where(final == 0, extent, rest)), 1)

    def within(self, most: int, *, begins: bool) -> Ways:
        """All ways to cut pieces of up to so many elements, to an end for each number of cells.

        `begins`: pieces that begin the range.
        """
        last = -(-most // self.size)
        begin, end, size, cell = self._further(last, begins=begins)
        return self._all((begin, end, size), (begin, cell, size), last + 1)

    @property
    def spare(self) -> int:
        """So many elements more at most has a piece than what stands for it."""
        return 2 * self.size - 2

    def banded(self, ways: Ways, first: tuple[int, int], last: tuple[int, int], *, whole: bool) -> Ways:
        """Those whose first pieces, and last ones, may have sizes from and up to some.

        `whole`: no loop cuts them further, so that they have the least of these sizes.
        """
        size, most = ways.size.copy(), ways.size + self.spare
        kept = np.ones(len(size), np.bool_)
        for at, (least, end) in ((ways.begin == 0, first), (ways.last, last)):
            kept &= ~at | ((ways.size < end) & (most >= least))
            if whole:
                size[at] = np.maximum(size[at], least)
        return ways._replace(size=size).take(kept)

    def _further(self, last: int, *, begins: bool) -> tuple[Ints, Ints, Ints, Ints]:
        """Pieces from place to place: begins, ends, elements, and the cells where they end."""
        cell, behind, more = (x.ravel() for x in np.indices((last + 1, 2, last + 1)))
        some = (cell + more <= last) & ((more > 0) | (behind == 0))
        cell, behind, more = cell[some], behind[some], more[some]
        begin, end = 2 * cell + behind, np.where(more > 0, 2 * (cell + more), 2 * cell + 1)
        size = np.where((begin == 0) & begins, more * self.size, (more - 1) * self.size + 1)
        return begin, end, np.maximum(size, 1), cell + more

    @staticmethod
    def _all(some: tuple[Ints, ...], last: tuple[Ints, ...], ends: int) -> Ways:
        """Those that lead further and last ones, by where they begin."""
        begin, end, size = (np.concatenate(both) for both in zip(some, last, strict=True))
        order = np.argsort(begin, kind="stable")
        final = order >= len(some[0])
        return Ways(begin[order], end[order], size[order], final, ends)
