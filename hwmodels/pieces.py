"""Cutting a dimension in pieces, for all candidate chains of steps at once.

A step T cuts a range of n into ``ceil(n/T)`` pieces, the last one possibly smaller; the next step of the chain cuts
every piece again. An output piece [r0, r1) needs, for the kernel rows [i0, i1), the input rows ``r0*S-P+i0*D ..
(r1-1)*S-P+(i1-1)*D``, clipped to the map (docs/nest.md; TSO Eq. 1 without the clipping).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from hwmodels.bilinear import Ints
from hwmodels.places import begins

#: Chains of steps below this, in at most this many columns, have a number of their own (`_codes`).
_CODED, _COLUMNS = 2**14, 4
#: Places (chains x outputs x taps) that windows are counted for at a time.
_BLOCK = 50_000
__all__ = ["Pieces", "Window", "cut", "nominal", "piece_ends", "trips", "windows"]


@dataclass(frozen=True)
class Window:
    """A sliding window along one axis: stride, dilation, taps, padding before, map size, first place to fetch."""

    stride: int
    dilation: int
    taps: int
    pad: int
    size: int
    first: int = 0

    @property
    def reach(self) -> int:
        """Rows that one output needs: ``(K-1)*D + 1``."""
        return (self.taps - 1) * self.dilation + 1

    def nominal(self, step: Ints, taps: Ints | int | None = None) -> Ints:
        """Input extent of a full tile of `step` outputs and `taps` kernel rows (all by default), at most the map."""
        reach = self.reach if taps is None else (taps - 1) * self.dilation + 1
        extent: Ints = np.minimum((step - 1) * self.stride + reach, self.size)
        return extent

    @property
    def trivial(self) -> bool:
        """Whether every output needs its own element and no other."""
        return self.taps == self.stride == 1 and not self.pad and not self.first

    def part(self, first: int, end: int) -> Window:
        """The window of the taps [first, end)."""
        return replace(self, taps=end - first, pad=self.pad - first * self.dilation)

    def clipping(self, lo: int, hi: int) -> tuple[int, int]:
        """Rows of the window over the outputs [lo, hi) that lie before and behind what is fetched."""
        first, last = lo * self.stride - self.pad, (hi - 1) * self.stride - self.pad + self.reach
        return max(0, self.first - first), max(0, last - self.size)


class Pieces:
    """The pieces that each of T chains makes: `length` and `count`, both of shape (T, P).

    Pieces of one chain with the same length may be listed once with their count; unused places have count 0. Sums over
    the pieces are kept, because many tables ask for the same ones.
    """

    def __init__(self, length: Ints, count: Ints) -> None:
        self.length = length
        self.count = np.where(length > 0, count, 0)
        self._kept: dict[tuple[int, ...], Ints] = {}

    @cached_property
    def number(self) -> Ints:
        """Pieces that hold anything, per chain."""
        total: Ints = self.count.sum(axis=1)
        return total

    @cached_property
    def sum(self) -> Ints:
        """Sum of the lengths, per chain."""
        total: Ints = (self.length * self.count).sum(axis=1)
        return total

    @cached_property
    def largest(self) -> Ints:
        """Longest piece, per chain."""
        longest: Ints = np.where(self.count > 0, self.length, 0).max(axis=1)
        return longest

    def full(self, extent: int) -> Ints:
        """Number of pieces that span all of `extent`, per chain."""
        if (key := (extent,)) not in self._kept:
            self._kept[key] = np.where(self.length == extent, self.count, 0).sum(axis=1)
        return self._kept[key]

    def partial(self, extent: int) -> Ints:
        """Number of pieces shorter than `extent`, per chain."""
        return self.number - self.full(extent)

    def partial_windows(self, extent: int, inner_bytes: int, window: int) -> Ints:
        """Sum over the pieces shorter than `extent` of ``ceil(length*inner_bytes/window)``, per chain."""
        if (key := (extent, inner_bytes, window)) not in self._kept:
            bursts = -(-self.length * inner_bytes // window)
            self._kept[key] = np.where(self.length < extent, bursts * self.count, 0).sum(axis=1)
        return self._kept[key]

    def ceil_sum(self, unit: int) -> Ints:
        """Sum over the pieces of ``ceil(length/unit)``, per chain."""
        total: Ints = (-(-self.length // unit) * self.count).sum(axis=1)
        return total


class _Shared(Pieces):
    """The pieces of T chains that `row` (T,) names among fewer distinct ones."""

    def __init__(self, distinct: Pieces, row: Ints) -> None:
        self._distinct, self._row = distinct, row
        self._kept = {}

    @cached_property
    def length(self) -> Ints:  # type: ignore[override]
        return self._distinct.length[self._row]

    @cached_property
    def count(self) -> Ints:  # type: ignore[override]
        return self._distinct.count[self._row]

    @cached_property
    def number(self) -> Ints:
        return self._distinct.number[self._row]

    @cached_property
    def sum(self) -> Ints:
        return self._distinct.sum[self._row]

    @cached_property
    def largest(self) -> Ints:
        return self._distinct.largest[self._row]

    def full(self, extent: int) -> Ints:
        if (key := (extent,)) not in self._kept:
            self._kept[key] = self._distinct.full(extent)[self._row]
        return self._kept[key]

    def partial_windows(self, extent: int, inner_bytes: int, window: int) -> Ints:
        return self._distinct.partial_windows(extent, inner_bytes, window)[self._row]


def trips(extent: int, step: Ints) -> Ints:
    """Return ``ceil(extent/step)``."""
    return -(-extent // step)


def nominal(step: Ints, count: Ints) -> Pieces:
    """Return `count` full pieces for every step, as the papers count (`edge_tiles = "uniform"`)."""
    return Pieces(step[:, None], count[:, None])


@lru_cache(maxsize=8192)
def _cut(extent: int, chains: bytes, depth: int) -> Pieces:
    steps = np.frombuffer(chains, np.int64).reshape(-1, depth) if depth else np.zeros((1, 0), np.int64)
    placed: NDArray[np.bool_] = np.any(steps < 0, axis=1)
    if not placed.any():
        return Pieces(*_even_cut(extent, steps))
    length, count = _even_cut(extent, np.maximum(steps, 1))
    first = begins(extent, steps[placed])[0]
    free = _counted(np.where(first, piece_ends(first) - np.arange(extent), 0))
    return Pieces(*_patched((length, count), free, placed))


def _even_cut(extent: int, steps: Ints) -> tuple[Ints, Ints]:
    """Lengths and counts of the pieces that chains of steps make."""
    length = np.full((len(steps), 1), extent, np.int64)
    count = np.ones_like(length)
    for level in range(steps.shape[1]):
        step = steps[:, level, None]
        full, rest = length // step, length % step
        length = np.concatenate([np.broadcast_to(step, full.shape), rest], axis=1)
        count = np.concatenate([full * count, (rest > 0) * count], axis=1)
    return np.where(count > 0, length, 0), count


def _patched(whole: tuple[Ints, Ints], part: tuple[Ints, Ints], rows: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Replace some rows of (lengths, counts)."""
    width = max(whole[0].shape[1], part[0].shape[1])
    result = []
    for a, b in zip(whole, part, strict=True):
        wide = np.zeros((len(rows), width), np.int64)
        wide[:, : a.shape[1]] = a
        wide[rows] = 0
        wide[np.flatnonzero(rows)[:, None], np.arange(b.shape[1])] = b
        result.append(wide)
    return result[0], result[1]


def _counted(length: Ints) -> tuple[Ints, Ints]:
    """The distinct lengths above 0 of every row, and how often they come."""
    longest = int(length.max(initial=0)) + 1
    code = length + np.arange(len(length))[:, None] * longest
    times = np.bincount(code.ravel(), minlength=len(length) * longest).reshape(len(length), longest)
    times[:, 0] = 0
    return _compact(times)


def cut(extent: int, steps: Ints) -> Pieces:
    """Cut a range of `extent` with every chain of `steps`, shape (T, L); T = 1 where L = 0."""
    return _cut(extent, np.ascontiguousarray(steps).tobytes(), steps.shape[1])


def piece_ends(first: NDArray[np.bool_]) -> Ints:
    """For every position the start of the next piece behind it."""
    extent = first.shape[1]
    here = np.where(first, np.arange(extent), extent)
    following = np.concatenate([here[:, 1:], np.full((len(here), 1), extent)], axis=1)
    ends: Ints = np.minimum.accumulate(following[:, ::-1], axis=1)[:, ::-1].astype(np.int64)
    return ends


def _new_part(first: Ints, last: Ints, here: NDArray[np.bool_], before: NDArray[np.bool_], axis: int) -> Ints:
    """Where the part of every window begins that the windows before it in its pass did not cover."""
    covered = np.maximum.accumulate(np.where(here, last, -(2**62)), axis=axis)
    previous = np.roll(covered, 1, axis=axis)
    # Ends never fall along the axis, so earlier passes cover no more than this one; a piece of `before` starts a pass.
    return np.where(before, first, np.maximum(first, previous))


def _windows(lo: int, hi: int, steps: Ints, taps: Ints, window: Window, slide: str) -> Pieces:
    # In blocks of chains that stay in the processor's cache.
    rows = max(1, _BLOCK // ((hi - lo) * (window.taps if taps.shape[1] else 1)))
    blocks = [
        _window_lengths(lo, hi, steps[i : i + rows], taps[i : i + rows], window, slide)
        for i in range(0, max(1, len(steps)), rows)
    ]
    width = max(length.shape[1] for length, _ in blocks)
    length, count = (
        np.concatenate([np.pad(a, ((0, 0), (0, width - a.shape[1]))) for a in x]) for x in zip(*blocks, strict=True)
    )
    return Pieces(length, count)


def _window_lengths(lo: int, hi: int, steps: Ints, taps: Ints, window: Window, slide: str) -> tuple[Ints, Ints]:
    """The distinct lengths of each chain's windows, and how often they come."""
    r_begin, r_before = begins(hi - lo, steps)
    r0, r1 = lo + np.arange(hi - lo), lo + piece_ends(r_begin)
    if taps.shape[1]:
        i_begin, i_before = begins(window.taps, taps)
        i0, i1 = np.arange(window.taps), piece_ends(i_begin)
    else:  # one part begins at the first tap
        i_begin = i_before = np.ones((len(taps), 1), np.bool_)
        i0, i1 = np.zeros(1, np.int64), np.full((len(taps), 1), window.taps)
    # axes: chain, output position, kernel position
    first = np.maximum(
        (r0 * window.stride - window.pad)[None, :, None] + (i0 * window.dilation)[None, None, :], window.first
    )
    ends = ((r1 - 1) * window.stride - window.pad)[:, :, None] + ((i1 - 1) * window.dilation)[:, None, :] + 1
    last = np.minimum(ends, window.size)
    here = r_begin[:, :, None] & i_begin[:, None, :]
    first = np.broadcast_to(first, np.broadcast_shapes(first.shape, last.shape))
    if slide == "outer":
        first = _new_part(first, last, here, np.broadcast_to(r_before[:, :, None], last.shape), 1)
    elif slide == "inner":
        first = _new_part(first, last, here, np.broadcast_to(i_before[:, None, :], last.shape), 2)
    return _counted(np.where(here, np.maximum(last - first, 0), 0).reshape(len(last), -1))


def _compact(times: Ints) -> tuple[Ints, Ints]:
    """From how often (T, N) each length 0..N-1 comes, the lengths that do and their numbers."""
    chain, length = np.nonzero(times)
    number = (times > 0).sum(axis=1)
    column = np.arange(len(chain)) - np.repeat(np.cumsum(number) - number, number)
    squeezed = np.zeros((2, len(times), max(1, int(number.max(initial=0)))), np.int64)
    squeezed[0, chain, column], squeezed[1, chain, column] = length, times[chain, length]
    return squeezed[0], squeezed[1]


def _codes(*chains: Ints) -> Ints | None:
    """One number for each row of some chains side by side, the same in every call; None if one has no place for it.

    Entries from -_CODED to _CODED have one (steps, and the numbers of lists of places).
    """
    columns = [column for chain in chains for column in chain.T]
    if any(int(np.abs(column).max(initial=0)) > _CODED for column in columns) or len(columns) > _COLUMNS:
        return None
    code = np.zeros(max(len(c) for c in chains), np.int64)
    for column in columns:
        code = code * (2 * _CODED + 1) + (column + _CODED)
    return code


class _Known:
    """The windows of chains with these codes, ascending, to be found again for some of them."""

    def __init__(self, code: Ints, pieces: Pieces) -> None:
        self.code, self.pieces = code, pieces

    def place(self, code: Ints) -> Ints | None:
        """The rows of these chains, if all are known."""
        row: Ints = np.minimum(np.searchsorted(self.code, code), len(self.code) - 1)
        return row if (self.code[row] == code).all() else None


@lru_cache(maxsize=1024)
def _known(lo: int, hi: int, depth: int, taps_depth: int, window: Window, slide: str) -> list[_Known]:
    """The largest set of chains so far, if any."""
    return []


@lru_cache(maxsize=8192)
def _shared(
    lo: int, hi: int, outer: bytes, depth: int, inner: bytes, taps_depth: int, window: Window, slide: str
) -> Pieces:
    steps = np.frombuffer(outer, np.int64).reshape(-1, depth) if depth else np.zeros((1, 0), np.int64)
    taps = np.frombuffer(inner, np.int64).reshape(-1, taps_depth) if taps_depth else np.zeros((1, 0), np.int64)
    number = max(len(steps), len(taps))
    steps, taps = (np.broadcast_to(s, (number, s.shape[1])) for s in (steps, taps))
    code = _codes(steps, taps) if number else None
    if code is None:
        return _windows(lo, hi, steps, taps, window, slide)
    largest = _known(lo, hi, depth, taps_depth, window, slide)
    if largest and (row := largest[0].place(code)) is not None:
        return _Shared(largest[0].pieces, row)
    ordered, first, row = np.unique(code, return_index=True, return_inverse=True)
    found = _windows(lo, hi, steps[first], taps[first], window, slide)
    if not largest or len(ordered) > len(largest[0].code):
        largest[:] = [_Known(ordered, found)]
    return _Shared(found, row.ravel())


def windows(lo: int, hi: int, steps: Ints, taps: Ints, window: Window, slide: str = "") -> Pieces:
    """Return the input pieces under the output range [lo, hi), per chain of `steps` (T, L) and of `taps` (T or 1, L').

    Parameters
    ----------
    slide : {"", "outer", "inner"}
        Count only what the window before in the same pass did not cover, along the innermost loop over the outputs
        ("outer") or over the kernel ("inner").
    """
    if window.trivial and hi <= window.size:
        return cut(hi - lo, steps)
    if not len(steps):
        none = np.zeros((0, 1), np.int64)
        return Pieces(none, none)
    return _shared(
        lo, hi, np.ascontiguousarray(steps).tobytes(), steps.shape[1],
        np.ascontiguousarray(taps).tobytes(), taps.shape[1], window, slide,
    )  # fmt: skip
