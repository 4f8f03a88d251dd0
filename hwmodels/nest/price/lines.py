"""IN in lines (docs/nest.md): what it moves and takes are products of vectors, one of each axis.

The two loops that slide fetch every element of a sweep once: new rows of each pass times new columns of each step, the
product of the two vectors that `hwmodels.nest.price.pieces.windows` gives for either loop; the sweep is repeated by
every loop outside the two. The buffer holds ``again * width + (rows - again) * columns`` elements of each channel: the
rows that two windows of neighbouring passes share, at most, over the widest pass, and the other rows of the largest
window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.pieces import Window, begins

Mask = NDArray[np.bool_]
#: Beyond all rows.
_FAR = 1 << 60


def _vectors(lo: int, hi: int, steps: Ints, taps: Ints, window: Window) -> tuple[Ints, Ints, Ints]:
    """Rows that two windows of a pass share, rows of the longest, and of the widest pass, for T chains.

    `steps` (T, L) are those of the output dimension down to the loop that slides, `taps` (T, L') all of the kernel's
    outside the Hold; entries below 0 are lists of places (`hwmodels.nest.price.pieces`). Of columns alike. IN in lines
    takes, for an element of its other dimensions, ``again * width + (longest - again) * columns``: `again` and
    `longest` of the outer axis, `width` and `longest` (its columns) of the inner one.
    """
    window_of = _windows(lo, hi, steps, taps, window)
    again = np.where(window_of.follows, window_of.before - window_of.first, 0).max(axis=(1, 2))
    longest = np.where(window_of.here, window_of.end - window_of.first, 0).max(axis=(1, 2), initial=0)
    there = window_of.here & (window_of.end > window_of.first)
    passes = np.flatnonzero(window_of.passes)
    ends, begins_ = (np.where(there, x, none) for x, none in ((window_of.end, -1), (window_of.first, _FAR)))
    across = [
        f.reduceat(x.reshape(-1, x.shape[2]), passes, axis=0) for f, x in ((np.maximum, ends), (np.minimum, begins_))
    ]
    per_pass = (across[0] - across[1]).max(axis=1)
    first_pass = np.flatnonzero(np.diff(passes // (hi - lo), prepend=-1))
    width = np.maximum.reduceat(per_pass, first_pass)
    return np.maximum(again, 0), longest, np.maximum(width, 0)


def line_products(
    ranges: Sequence[tuple[int, int]], steps: Sequence[tuple[Ints, Ints]], window: Sequence[Window]
) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
    """What IN in lines takes for an element of its other dimensions, as products of a vector of either loop, summed.

    Ranges, steps with those of the kernel, and windows are those of the two loops that slide, the outer one first.
    """
    (again, rows, _), (_, columns, width) = (
        _vectors(*span, *chains, one) for span, chains, one in zip(ranges, steps, window, strict=True)
    )
    return (again, width), (np.maximum(rows - again, 0), columns)


@dataclass(frozen=True)
class _Windows:
    """Windows by chain, output that begins a piece and tap that begins a part, (T, E, K); `passes` (T, E)."""

    first: Ints
    end: Ints
    before: Ints
    here: Mask
    follows: Mask
    passes: Mask


def _windows(lo: int, hi: int, steps: Ints, taps: Ints, window: Window) -> _Windows:
    """The windows of all pieces, and where the piece before it ends."""
    number = max(len(steps), len(taps))
    made, passes = (np.broadcast_to(x, (number, hi - lo)) for x in begins(hi - lo, steps))
    part = np.broadcast_to(begins(window.taps, taps)[0], (number, window.taps))
    stop, last = _ends(made), _ends(part)
    r0, i0 = lo + np.arange(hi - lo)[None, :, None], np.arange(window.taps)
    first, end = window.rows(r0, (lo + stop)[:, :, None], i0, last[:, None, :])
    before = window.rows(r0, r0, i0, last[:, None, :])[1]
    here = made[:, :, None] & part[:, None, :]
    return _Windows(np.broadcast_to(first, here.shape), end, before, here, here & ~passes[:, :, None], passes)


def _ends(first: NDArray[np.bool_]) -> Ints:
    """For every position the start of the next piece behind it."""
    extent = first.shape[1]
    here = np.where(first, np.arange(extent), extent)
    following = np.concatenate([here[:, 1:], np.full((len(here), 1), extent)], axis=1)
    ends: Ints = np.minimum.accumulate(following[:, ::-1], axis=1)[:, ::-1].astype(np.int64)
    return ends
