"""What windows fetch at least over all ways to cut a kernel in parts, by the number of pieces of the outputs.

Let a part be the taps [i, j) and its reach ``(j-i-1)*D + 1``. Over n pieces of E outputs

* it fetches ``(E-n)*S + n*reach`` rows, less what is clipped: at the begin, at the end, and at the n-1 places where
  pieces meet, those where most is clipped first; and every row that its taps use. Where it slides along the outputs
  and is no shorter than the stride, groups of pieces count as one piece; a shorter part shares no rows with the next.
* its window over a piece is empty if the piece lies among the outputs whose last tap is before what is fetched, or
  whose first one is behind the map; where it slides, also if the window before has reached the end of the map.

Both are sums over the parts, so the least over all partitions of the taps is a shortest path from tap 0 to tap K.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.pieces import Window

#: More than any sum.
_FAR = 1 << 60


def least_rows(
    lo: int, hi: int, window: Window, part: int, pieces: Ints, groups: Ints | None = None, *, more: bool = False
) -> Ints:
    """The fewest rows that windows over the outputs [lo, hi) fetch together, (T,).

    Parameters
    ----------
    part : int
        Taps of the largest part, or any number that makes as many equal parts.
    pieces : ndarray (T,)
        Of the outputs.
    groups : ndarray (T,), optional
        Of pieces, where parts that are no shorter than the stride slide along the pieces of each.
    more : bool
        Whether there may be more pieces and groups than these.
    """
    if groups is None:
        least = _rows(lo, hi, window, part)
        return (_or_more(least) if more else least)[pieces]
    (groups, pieces), at = np.unique(np.stack([groups, pieces]), axis=1, return_inverse=True)
    boxes, costs = _boxes(lo, hi, window), list[Ints]()
    for end, cost in enumerate(map(_or_more, boxes) if more else boxes, 1):
        reach = (end - np.arange(end) - 1) * window.dilation + 1
        costs.append(np.where((reach >= window.stride)[:, None], cost[:, groups], cost[:, pieces]))
    return _least(costs, part)[at.ravel()]


def _or_more(least: Ints) -> Ints:
    """The least from each number of pieces on, the last axis."""
    result: Ints = np.minimum.accumulate(least[..., ::-1], axis=-1)[..., ::-1]
    return result


def least_calls(lo: int, hi: int, window: Window, part: int, pieces: Ints, slide: str) -> Ints:
    """The fewest windows over the outputs [lo, hi) that hold anything, (T,), of at least so many `pieces`."""
    return _calls(lo, hi, window, part, slide)[pieces]


@lru_cache(maxsize=1024)
def _rows(lo: int, hi: int, window: Window, part: int) -> Ints:
    return _least(_boxes(lo, hi, window), part)


@lru_cache(maxsize=1024)
def _calls(lo: int, hi: int, window: Window, part: int, slide: str) -> Ints:
    return _least(_filled(lo, hi, window, slide), part)


def _least(costs: Sequence[Ints], part: int) -> Ints:
    """The least sum of costs (j, T) of the parts [i, j) over the partitions whose largest part is such a one."""
    taps, number = len(costs), -(-len(costs) // part)
    least, most = -(-taps // number), taps if number == 1 else (taps - 1) // (number - 1)
    some = np.full((taps + 1, costs[0].shape[1]), _FAR)  # with a part of `least` taps or more
    none = some.copy()
    none[0] = 0
    for end, cost in enumerate(costs, 1):
        first, short = max(0, end - most), max(0, end - most, end - least + 1)
        either = np.minimum(some[first:short], none[first:short]) + cost[first:short]
        none[end] = (none[short:end] + cost[short:]).min(axis=0, initial=_FAR)
        some[end] = (some[short:end] + cost[short:]).min(axis=0, initial=_FAR)
        some[end] = np.minimum(some[end], either.min(axis=0, initial=_FAR))
    result: Ints = some[taps]
    return result


def _place(lo: int, hi: int, window: Window) -> Ints:
    """Where every tap lies for every output, (E, K)."""
    starts = np.arange(lo, hi, dtype=np.int64)[:, None] * window.stride - window.pad
    return starts + np.arange(window.taps, dtype=np.int64) * window.dilation


@lru_cache(maxsize=64)
def _boxes(lo: int, hi: int, window: Window) -> list[Ints]:
    """Rows of the parts [i, j), i < j, at least: (j, E+1) by pieces, for j = 1..K."""
    place, extent = _place(lo, hi, window), hi - lo
    early, late = np.maximum(window.first - place, 0), np.maximum(place + 1 - window.size, 0)
    number = np.arange(1, extent + 1)[:, None]
    result = []
    for end in range(1, window.taps + 1):
        reach = (end - np.arange(end) - 1) * window.dilation + 1
        lost = np.zeros((extent, end), np.int64)
        np.cumsum(-np.sort(-(early[1:, :end] + late[:-1, end - 1, None]), axis=0), axis=0, out=lost[1:])
        lost += early[0, :end] + late[-1, end - 1]
        boxes = np.maximum((extent - number) * window.stride + number * reach - lost, _used(place, window, end))
        result.append(np.pad(boxes.T, ((0, 0), (1, 0))))
    return result


def _used(place: Ints, window: Window, end: int) -> Ints:
    """The rows that the taps [i, end) use, for i = 0..end-1."""
    used, number = np.zeros(window.size, np.bool_), []
    for tap in range(end - 1, -1, -1):
        here = place[:, tap]
        used[here[(here >= window.first) & (here < window.size)]] = True
        number.append(np.count_nonzero(used))
    return np.array(number[::-1], np.int64)


@lru_cache(maxsize=256)
def _filled(lo: int, hi: int, window: Window, slide: str) -> list[Ints]:
    """Windows of the parts [i, j), i < j, that hold anything, at least: (j, E+1) by pieces, for j = 1..K."""
    place, extent = _place(lo, hi, window), hi - lo
    before, behind = (place < window.first).sum(axis=0), (place >= window.size).sum(axis=0)
    number, result = np.arange(extent + 1), []
    for end in range(1, window.taps + 1):
        after = behind[:end]
        if slide == "outer":  # the window of the output before ends with the map
            after = np.maximum(after, np.count_nonzero(place[:-1, end - 1] + 1 >= window.size))
        elif slide == "inner":  # that of the tap before does
            reached = place[:, :end] - window.dilation + 1 >= window.size
            after = np.where(np.arange(end) > 0, np.maximum(after, reached.sum(axis=0)), after)
        empty = np.minimum(before[end - 1] + after, extent)[:, None]
        # one piece that holds something cannot be empty; a last one may end where all is fetched
        most = np.where(empty < extent, number - (number > 0), number) if slide != "inner" else number
        result.append(number - np.minimum(empty, most))
    return result
