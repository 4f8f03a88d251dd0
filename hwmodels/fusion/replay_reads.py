"""What readers have yet to see of the maps of a group, from the windows of all pieces that they will make.

Example: two 3x3 convolutions a, b with padding 1, in strips of 2 rows. The windows of b on the map of a are rows 0..2,
1..4, 3..6, ...: when b has made its second piece, it has yet to see rows 3..6, and a gives back what is above.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hwmodels.fusion.replay_strips import Span, Walk


class Window(NamedTuple):
    """Rows and columns that a layer sees for its piece, or the rows and columns of a piece."""

    rows: Span
    columns: Span


class Reads:
    """Windows by layer and visit. `begin` and `done` say how far the group is."""

    def __init__(self, walk: Walk) -> None:
        self.walk, self.run = walk, walk.run
        self.across = walk.run.columns.last - walk.run.columns.first + 1
        self.pieces: list[dict[int, Window]] = []
        """Of every visit what is made or loaded of a stream."""
        for moments in walk.each_visit():
            made = {}
            for moment in moments:
                (top, bottom), (left, right) = moment.rows, moment.columns
                if moment.kind in ("make", "load") and top < bottom and left < right:
                    made[moment.stream] = Window(moment.rows, moment.columns)
            self.pieces.append(made)
        self.visit = 0
        self.ran: set[int] = set()
        self._later = {
            (k, u): self._next_in_later_rows(k, u) for k, stream in enumerate(self.run.streams) for u in stream.readers
        }

    def begin(self, visit: int) -> None:
        """A visit begins."""
        self.visit, self.ran = visit, set()

    def done(self, layers: range) -> None:
        """Layers have made their pieces."""
        self.ran |= set(layers)

    def needed(self, k: int, shape: tuple[int, ...], after: int | None) -> npt.NDArray[np.bool_]:
        """The pixels of a stream that some reader has yet to see, or that lie between such.

        `after`: a layer of those that take turns, by its place in the group, that has run as well.
        """
        again = self.run.rows.halo == "recompute", self.run.columns.halo == "recompute"
        low, high = np.full(shape[1], shape[0]), np.zeros(shape[1], np.int64)
        furthest, rows = 0, self._piece_rows(k)
        for u in self.run.streams[k].readers:
            ran = u in self.ran or u - self.run.first == after
            now = None if ran else self._window(k, u, self.visit)
            soon = self._next_in_rows(k, u) if now is None and not all(again) else None
            furthest = max(furthest, now.columns[1] if now else 0)
            here = now or soon
            if here is not None:
                _lower(low, high, here, here.rows[1] if again[0] else shape[0])
            later = None if again[0] else self._later[k, u][self.visit // self.across]
            if later is not None:
                _lower(low, high, later, shape[0])
        y, x = np.arange(shape[0])[:, None], np.arange(shape[1])
        needed: npt.NDArray[np.bool_] = (y >= low) & (y < high)
        if again[1]:  # what the next visit makes again goes when nobody sees it in this one
            furthest = furthest if again[0] else max(furthest, self._next_column(k, shape[1]))
            needed &= (x < furthest) | (y < rows[0])
        return needed

    def _window(self, k: int, u: int, visit: int) -> Window | None:
        """What a layer sees of a stream in a visit."""
        piece = self.pieces[visit].get(u - self.run.first)
        if piece is None:
            return None
        return Window(self.walk.sees(u, k, "rows", piece.rows), self.walk.sees(u, k, "columns", piece.columns))

    def _next_in_rows(self, k: int, u: int) -> Window | None:
        """What a layer sees next of a stream in this step of rows."""
        end = (self.visit // self.across + 1) * self.across
        return next((w for v in range(self.visit + 1, end) if (w := self._window(k, u, v)) is not None), None)

    def _next_in_later_rows(self, k: int, u: int) -> list[Window | None]:
        """For every step of rows what a layer sees first of a stream in a later one."""
        found: list[Window | None] = []
        following: Window | None = None
        for step in reversed(range(len(self.pieces) // self.across)):
            found.append(following)
            visits = range(step * self.across, (step + 1) * self.across)
            windows = (self._window(k, u, v) for v in visits)
            following = next((window for window in windows if window is not None), following)
        return found[::-1]

    def _piece_rows(self, k: int) -> Span:
        """The rows that are new in this step of rows; none if nothing is made of the stream in it."""
        first = self.visit // self.across * self.across
        pieces = (self.pieces[v].get(k) for v in range(first, first + self.across))
        return next((piece.rows for piece in pieces if piece is not None), (2**40, 2**40))

    def _next_column(self, k: int, columns: int) -> int:
        """Where the next piece of a stream in this step of rows begins."""
        end = (self.visit // self.across + 1) * self.across
        pieces = (self.pieces[v].get(k) for v in range(self.visit + 1, end))
        return next((piece.columns[0] for piece in pieces if piece is not None), columns)


def _lower(low: npt.NDArray[np.int64], high: npt.NDArray[np.int64], window: Window, bottom: int) -> None:
    """A reader needs rows of columns from the first of its window on."""
    left = window.columns[0]
    low[left:], high[left:] = np.minimum(low[left:], window.rows[0]), np.maximum(high[left:], bottom)
