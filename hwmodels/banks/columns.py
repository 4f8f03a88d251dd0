"""Cycles of the columns of a result: closed form of what a convolution reads from banks that are read in words.

A 3x3 kernel over columns of 35 pixels of 48 bytes, words of 64: the second column of a tile begins at byte 1680 of its
bank, 16 bytes into a word. Its first window, rows 0 and 1 below the padding, has weights that begin 48 bytes into their
word: no bubble. The second one begins at byte 1680 too, its weights at 0: a word is read before the first product, a
cycle more.

Sets
    x, columns of the result in the order of the pass; y, its rows; t, kernel columns inside the map
Given
    N bytes of a word (`Banks.lanes`); C bytes of a pixel, R rows of a column, P columns of a tile; rows a to b - 1 of
    the kernel that lie inside the map at y, the first one over the row r of the map
Cycles
    cycles(x) = sum over y and t of ``ceil(b*C / N) - floor(a*C / N) + bubble(x, y, t)``
    place(x, t) = ``(p mod P) * R * C`` with p the place of the map's column in the pass
    bubble(x, y, t) = 1 if ``a*C mod N < (place + r*C) mod N`` (the first word has to be read before products begin),
    and the word ``(place + r*C) div N`` of this tile is not the one read last; else 0

A tile that begins again with columns of the tile before it (`hwmodels.banks.steps`) lies in its bank as if it did not.

Source: the public MIDAP simulator of 2020-09-02 (its alignment submodule; there a tile that begins again lies at the
bank's first byte).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from instances.feature_maps import FeatureMap, Reads, Stage
from instances.machine import Banks

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Columns:
    """What the columns of a result take, in the order of the pass."""

    cycles: tuple[int, ...]
    """Of every column of the result, for one group."""
    touched: tuple[tuple[tuple[int, int], ...], ...]
    """For every column of the result the places (in the pass) of the map's columns that its first pixel reads, each
    with the cycles ahead of it.
    """
    pixel: int = 0
    """Cycles of the first pixel of the first one that takes any."""

    def __hash__(self) -> int:
        return hash(self.cycles)


@lru_cache(maxsize=2048)
def column_cycles(stage: Stage, banks: Banks, source: FeatureMap, results: int, *, backwards: bool = False) -> Columns:
    """Return the cycles of every column of the result, for one group, in the order of the pass.

    Parameters
    ----------
    source : FeatureMap
        What the stage reads.
    results : int
        Columns of the result.
    backwards : bool
        Whether the pass begins with the last column.
    """
    if stage.kind == "patches":
        return Columns((stage.tap_cycles,) * results, ((),) * results, stage.first_cycles)
    if stage.kind == "sum":
        return Columns((stage.tap_cycles,) * results, tuple(((x, 0),) for x in range(results)))
    firsts = [x * stage.stride - stage.before for x in range(results)]
    places = [
        [place for t in range(stage.taps) if 0 <= (place := first + t * stage.dilation) < source.columns]
        for first in (reversed(firsts) if backwards else firsts)
    ]
    cycles = tuple(stage.tap_cycles * len(one) for one in places)
    if backwards:  # the kernel is mirrored too: its columns are read in the order of the pass
        places = [[source.columns - 1 - place for place in reversed(one)] for one in places]
    if stage.reads is None:
        first = stage.first_cycles
        pixel = first * next((len(one) for one in places if one), 0)
        return Columns(cycles, tuple(tuple((p, at * first) for at, p in enumerate(one)) for one in places), pixel)
    more, ahead = _bubbles(stage.reads, banks.lanes, source.tile(banks), tuple(map(tuple, places)))
    touched, pixel = [], 0
    for one, bubbles in zip(places, ahead, strict=True):
        *spent, end = accumulate((stage.first_cycles + bubble for bubble in bubbles), initial=0)
        touched.append(tuple(zip(one, spent, strict=True)))
        pixel = pixel or end
    return Columns(tuple(n + m for n, m in zip(cycles, more, strict=True)), tuple(touched), pixel)


@lru_cache(maxsize=2048)
def _bubbles(
    reads: Reads, word: int, tile: int, places: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Bubbles of every column of the result, by the places in the pass of the columns that its window reads.

    Also those of its first pixel, by place.
    """
    tops = np.arange(reads.results) * reads.stride - reads.before
    begin, end = np.maximum(0, -tops), np.minimum(reads.high, reads.rows - tops)
    inside = end > begin
    tops, begin, end = tops[inside], begin[inside], end[inside]
    counts = [len(one) for one in places]
    flat, column = np.array([p for one in places for p in one], dtype=np.int64), reads.rows * reads.pixel
    tiles, base = flat // tile, flat % tile * column
    pixels = len(tops)
    if not pixels or not len(flat):
        return (0,) * len(places), tuple((0,) * count for count in counts)
    # in the order in which they are read: by column of the result, by its row, by column of the map
    owner = np.repeat(np.arange(len(places)), counts)
    order = np.concatenate([_by_row(at, n, pixels) for at, n in zip(np.cumsum(counts) - counts, counts, strict=True)])
    taken, row = order // pixels, order % pixels
    first = base[taken] + (tops + begin)[row] * reads.pixel
    last = (base[taken] + (tops + end)[row] * reads.pixel - 1) // word
    late = (begin[row] * reads.pixel) % word < first % word
    again = np.zeros(len(order), dtype=bool)
    again[1:] = (first[1:] // word == last[:-1]) & (tiles[taken][1:] == tiles[taken][:-1])
    found = late & ~again
    ahead = np.zeros(len(flat), dtype=np.int64)
    if inside[0]:
        ahead[taken[row == 0]] = found[row == 0]
    by_column = np.split(ahead, np.cumsum(counts)[:-1])
    more = np.bincount(owner[taken], weights=found, minlength=len(places)).astype(np.int64).tolist()
    return tuple(more), tuple(tuple(one.tolist()) for one in by_column)


def _by_row(at: int, count: int, pixels: int) -> Ints:
    """Numbers ``place * pixels + row`` of `count` places from `at` on, row by row."""
    grid = (np.arange(count)[:, None] + at) * pixels + np.arange(pixels)[None, :]
    return grid.T.reshape(-1).astype(np.int64)
