"""On-chip buffers of integers that hold only what was copied in, for executing nests (`hwmodels.nest.replay.execute`).

A circular buffer keeps row y in row y modulo its length (columns likewise) and knows which element lies in every place:
reading one that is not there is a fault, whatever its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import starmap

import numpy as np
import numpy.typing as npt

from instances.network.workload import Layer

Tensor = npt.NDArray[np.int64]
Range = tuple[int, int]
Box = tuple[Range, ...]


class Fault(Exception):
    """The nest used something that was not there."""


def at_box(tensor: Tensor, box: Box) -> Tensor:
    """The part of a tensor at a box, writable."""
    return tensor[tuple(starmap(slice, box))]


def rows_from(rows: tuple[int, int], first: int) -> tuple[int, int]:
    """The rows that are not resident: none before `first`."""
    return max(rows[0], first), max(rows[1], first)


def beyond(side: tuple[int, int], there: tuple[int, int]) -> tuple[int, int]:
    """The part of a range that another one, moved along the axis, does not have."""
    (lo, hi), (first, end) = side, there
    if first >= end:
        return side
    return (lo, max(lo, min(hi, first))) if lo < first else (max(lo, end), max(lo, hi, end))


def window_of(layer: Layer, ranges: Mapping[str, Range]) -> tuple[Box, Box]:
    """The input rows and columns under a range of outputs and taps: as the window sees them, and clipped to the map."""
    (r0, r1), (c0, c1), (i0, i1), (j0, j1) = (ranges[d] for d in "rcij")
    y, x = r0 * layer.stride_h - layer.pad_top, c0 * layer.stride_w - layer.pad_left
    rows = y + i0 * layer.dilation_h, y + (r1 - 1 - r0) * layer.stride_h + (i1 - 1) * layer.dilation_h + 1
    cols = x + j0 * layer.dilation_w, x + (c1 - 1 - c0) * layer.stride_w + (j1 - 1) * layer.dilation_w + 1

    def clipped(lo: int, hi: int, size: int) -> tuple[int, int]:
        return max(lo, 0), max(max(lo, 0), min(hi, size))

    return (rows, cols), (clipped(*rows, layer.h), clipped(*cols, layer.l))


class Buffer:
    """On-chip memory that holds one box of a tensor."""

    def __init__(self, box: Box, content: Tensor) -> None:
        self.box, self.content = box, content

    def move(self, box: Box, new: Box, content: Tensor) -> None:
        """Become the tile `box`: copy its `new` part in."""
        self.box, self.content = box, content.copy()

    def view(self, box: Box) -> Tensor:
        """The part of the content at `box`, writable."""
        return self.content[self.within(box)]

    def within(self, box: Box) -> tuple[slice, ...]:
        """Where a box lies in the content, axis by axis (the outermost ones may do)."""
        slices = []
        for (lo, hi), (first, last) in zip(box, self.box, strict=False):
            if lo < first or hi > last:
                raise Fault(f"elements {lo}..{hi - 1} are used while {first}..{last - 1} are on chip")
            slices.append(slice(lo - first, hi - first))
        return tuple(slices)


class _Plane:
    """Places of one plane of rows and columns for every index of the axes before them, circular in both."""

    def __init__(self, outer: tuple[int, ...], rows: int, columns: int) -> None:
        self.content = np.zeros((*outer, rows, columns), np.int64)
        self.lies = np.full((rows, columns), -1, np.int64)

    def _places(self, rows: Range, columns: Range) -> tuple[tuple[Tensor, Tensor], Tensor]:
        """Where the elements of a plane lie, and a number for each of them."""
        height, width = self.lies.shape
        if rows[1] - rows[0] > height or columns[1] - columns[0] > width:
            raise Fault(f"{rows[1] - rows[0]} x {columns[1] - columns[0]} elements do not fit in {height} x {width}")
        ys, xs = np.arange(*rows)[:, None], np.arange(*columns)
        return (ys % max(height, 1), xs % max(width, 1)), ys * (1 << 32) + xs

    def put(self, rows: Range, columns: Range, content: Tensor) -> None:
        """Copy elements in over what lies in their places."""
        if rows[0] < rows[1] and columns[0] < columns[1]:
            places, names = self._places(rows, columns)
            self.lies[places] = names
            self.content[(..., *places)] = content

    def get(self, rows: Range, columns: Range) -> Tensor:
        """Read elements that must be there."""
        places, names = self._places(rows, columns)
        if (self.lies[places] != names).any():
            raise Fault(f"rows {rows[0]}..{rows[1] - 1} of columns {columns[0]}..{columns[1] - 1} are not all on chip")
        return self.content[(..., *places)]


class Torus(Buffer):
    """A buffer of IN that is circular along rows and columns; `rows`, `columns` are those of the largest tiles."""

    def __init__(self, box: Box, rows: int, columns: int) -> None:
        super().__init__(box, np.zeros(0, np.int64))
        self.plane = _Plane(tuple(hi - lo for lo, hi in box[:3]), rows, columns)

    def move(self, box: Box, new: Box, content: Tensor) -> None:
        """Become the tile `box`: copy its `new` part in over what lies in its places."""
        self.plane.put(new[3], new[4], content)
        self.box = box

    def view(self, box: Box) -> Tensor:
        """The part of the content at `box`, copied."""
        return self.plane.get(box[3], box[4])[self.within(box[:3])]


class Lines(Buffer):
    """IN in lines: `again` lines over the width of a pass, and for the columns of a window the rows beyond them.

    Rows are what the outer of the two loops moves over (axis `down`), columns what the inner one does. In a pass over
    columns the first `again` rows of the window lie in the lines and the others in the window's part. When a column is
    left, the rows that the next pass reads again are copied to the lines, over rows that nobody reads any more.
    """

    def __init__(self, box: Box, down: int, sizes: tuple[int, int, int, int]) -> None:
        again, width, beyond, columns = sizes
        super().__init__(box, np.zeros(0, np.int64))
        self.outer, self.down, self.again = tuple(hi - lo for lo, hi in box[:3]), down, again
        self.lines, self.window = _Plane(self.outer, again, width), _Plane(self.outer, beyond, columns)
        self.places = again * width + beyond * columns
        self.rows: Range = (0, 0)
        self.columns: Range = (0, 0)

    def _split(self, rows: Range) -> tuple[Range, Range]:
        """Those of some rows that belong in the lines, and in the window's part, in this pass."""
        at = self.rows[0] + self.again
        return (rows[0], min(rows[1], max(at, rows[0]))), (max(rows[0], min(at, rows[1])), rows[1])

    def enter(self, rows: Range, columns: Range, kept: Range, *, turns: bool) -> None:
        """Move on to another window (`turns`: of another pass).

        `kept` are the rows that the pass after that of the window which is left reads again. Raises Fault if rows that
        are to be kept are not there.
        """
        left = self.columns if turns else (self.columns[0], min(self.columns[1], columns[0]))
        again = max(self.rows[0], kept[0]), min(self.rows[1], kept[1])
        _, late = self._split((again[0], max(again)))
        if late[0] < late[1] and left[0] < left[1]:
            self.lines.put(late, left, self.window.get(late, left))
        self.rows, self.columns = rows, columns

    def move(self, box: Box, new: Box, content: Tensor) -> None:
        """Copy new elements of the tile `box` in."""
        rows, columns = self._turned(new)
        content = content if self.down == 3 else np.swapaxes(content, 3, 4)
        here, beyond = self._split(rows)
        cut = here[1] - here[0]
        self.lines.put(here, columns, content[..., :cut, :])
        self.window.put(beyond, columns, content[..., cut:, :])

    def view(self, box: Box) -> Tensor:
        """The part of the content at `box`, copied."""
        rows, columns = self._turned(box)
        here, beyond = self._split(rows)
        parts = [p.get(r, columns) for p, r in ((self.lines, here), (self.window, beyond)) if r[0] < r[1]]
        content = np.concatenate(parts, axis=-2)[self.within(box[:3])]
        return content if self.down == 3 else np.swapaxes(content, 3, 4)

    def _turned(self, box: Box) -> tuple[Range, Range]:
        return (box[3], box[4]) if self.down == 3 else (box[4], box[3])


class Passes:
    """The windows of IN over a whole nest, as passes over columns inside sweeps over rows; rows as in `Lines`.

    `sizes`: of the buffer: rows that are read again, columns of the widest pass, other rows and columns of the window.
    """

    def __init__(
        self, down: int, windows: list[tuple[Range, Range]], keys: list[tuple[dict[str, Range], dict[str, Range]]]
    ) -> None:
        self.down = down
        self.now: dict[str, Range] = {}
        self.covered_rows: Range = (0, 0)
        rows = [(w if down == 3 else w[::-1])[0] for w in windows]
        columns = [(w if down == 3 else w[::-1])[1] for w in windows]
        self.after: dict[str, Range] = {}
        again = width = 0
        reach: Range = columns[0]
        for at, (sweep, now) in enumerate(keys):
            if at and now == keys[at - 1][1]:
                reach = _hull(reach, columns[at])
            else:
                if at and sweep == keys[at - 1][0]:
                    self.after[str(keys[at - 1][1])] = rows[at]
                    both = max(rows[at][0], rows[at - 1][0]), min(rows[at][1], rows[at - 1][1])
                    again = max(again, both[1] - both[0])
                reach = columns[at]
            width = max(width, reach[1] - reach[0])
        tallest, widest = (max(hi - lo for lo, hi in sides) for sides in (rows, columns))
        self.sizes = again, width, tallest - again, widest

    def advance(self, lines: Lines, box: Box, now: dict[str, Range]) -> Box:
        """Move the window to a tile in the pass `now`; return the part of it that is to be fetched."""
        rows, columns = (box[3], box[4]) if self.down == 3 else (box[4], box[3])
        turns = now != self.now
        fresh = lines.rows == lines.columns == (0, 0)
        if turns:
            self.covered_rows = (0, 0) if fresh else lines.rows
        new_rows = _after(rows, self.covered_rows)
        new_columns = columns if turns else _after(columns, lines.columns)
        lines.enter(rows, columns, rows if turns else self.after.get(str(now), (0, 0)), turns=turns)
        self.now = now
        parts = (new_rows, new_columns) if self.down == 3 else (new_columns, new_rows)
        return (*box[:3], *parts)


def _after(side: Range, there: Range) -> Range:
    """The part of a range that lies beyond another one, which begins before it."""
    if there[0] >= there[1]:
        return side
    lo = max(side[0], there[1])
    return lo, max(lo, side[1])


def _hull(one: Range, two: Range) -> Range:
    """The least range that has both (empty ones count nowhere)."""
    if one[0] >= one[1] or two[0] >= two[1]:
        return two if one[0] >= one[1] else one
    return min(one[0], two[0]), max(one[1], two[1])
