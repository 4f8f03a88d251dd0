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
#: Places (chains x outputs) that windows are counted for at a time.
_BLOCK = 200_000
__all__ = ["Pieces", "Window", "cut", "nominal", "trips", "windows"]


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
    spans = _Spans.of(extent, steps[placed])
    free = _counted(spans.chain, spans.end - spans.begin, int(placed.sum()))
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


def _counted(chain: Ints, length: Ints, chains: int) -> tuple[Ints, Ints]:
    """For every chain the distinct lengths above 0 of its pieces, and how often they come."""
    longest = int(length.max(initial=0)) + 1
    times = np.bincount(chain * longest + length, minlength=chains * longest).reshape(chains, longest)
    times[:, 0] = 0
    return _compact(times)


def cut(extent: int, steps: Ints) -> Pieces:
    """Cut a range of `extent` with every chain of `steps`, shape (T, L); T = 1 where L = 0."""
    return _cut(extent, np.ascontiguousarray(steps).tobytes(), steps.shape[1])


@dataclass(frozen=True)
class _Spans:
    """All pieces of some chains: the chain, where a piece begins and ends, whether it begins one of the loop before."""

    chain: Ints
    begin: Ints
    end: Ints
    fresh: NDArray[np.bool_]

    @classmethod
    def of(cls, extent: int, steps: Ints) -> _Spans:
        here, before = begins(extent, steps)
        chain, begin = np.nonzero(here)
        end = np.append(begin[1:], 0)
        return cls(chain, begin, np.where(end > 0, end, extent), before[chain, begin])


#: The taps [first, end), and whether they begin a part of the loop before.
_Part = tuple[int, int, bool]


def _parts(taps: int, chain: Ints, slide: str) -> tuple[_Part, ...]:
    """The parts that a chain (L,) cuts the taps in; the loop before matters where IN slides along the kernel."""
    spans = _Spans.of(taps, chain[None, :])
    fresh = spans.fresh if slide == "inner" else np.ones_like(spans.fresh)
    return tuple((int(i), int(j), bool(new)) for i, j, new in zip(spans.begin, spans.end, fresh, strict=True))


def _fetched(lo: int, spans: _Spans, part: _Part, window: Window, slide: str) -> Ints:
    """What a part of the kernel fetches for each piece of the outputs from `lo` on.

    Where IN slides, the window before in the same pass ends where this piece (or part) begins. Ends never fall along
    a pass, so that window covers as much as all before it.
    """
    i0, i1, new = part
    start = lo * window.stride - window.pad

    def last(end: Ints, taps: int) -> Ints:
        return np.minimum(start + (end - 1) * window.stride + (taps - 1) * window.dilation + 1, window.size)

    first = np.maximum(start + spans.begin * window.stride + i0 * window.dilation, window.first)
    if slide == "outer":
        first = np.where(spans.fresh, first, np.maximum(first, last(spans.begin, i1)))
    elif slide == "inner" and not new:
        first = np.maximum(first, last(spans.end, i0))
    return np.maximum(last(spans.end, i1) - first, 0)


def _windows(lo: int, hi: int, steps: Ints, taps: Ints, window: Window, slide: str) -> Pieces:
    """The distinct lengths of the windows of pairs of chains (T, L) and (T, L'), and how often they come.

    Few of the pairs' chains are distinct, and fewer the parts that their taps make: each is looked at once.
    """
    (outer, row), (inner, kernel) = _distinct(steps), _distinct(taps)
    given = [_parts(window.taps, chain, slide) for chain in inner]
    ways = list(dict.fromkeys(given))
    rows = max(1, _BLOCK // (hi - lo))
    blocks = [_listed(lo, hi, outer[i : i + rows], ways, window, slide) for i in range(0, len(outer), rows)]
    width = max(block.shape[-1] for block in blocks)
    found = np.concatenate([np.pad(b, ((0, 0),) * 3 + ((0, width - b.shape[-1]),)) for b in blocks], axis=2)
    length, count = found[:, np.array([ways.index(parts) for parts in given])[kernel], row]
    return Pieces(length, count)


def _listed(lo: int, hi: int, steps: Ints, ways: list[tuple[_Part, ...]], window: Window, slide: str) -> Ints:
    """Lengths and numbers of windows (2, ways, T, N): every way to cut the kernel under every chain of steps."""
    spans = _Spans.of(hi - lo, steps)
    known = {part: _fetched(lo, spans, part, window, slide) for parts in ways for part in parts}
    place = [spans.chain + number * len(steps) for number, parts in enumerate(ways) for _ in parts]
    length = [known[part] for parts in ways for part in parts]
    found = _counted(np.concatenate(place), np.concatenate(length), len(ways) * len(steps))
    return np.stack(found).reshape(2, len(ways), len(steps), -1)


def _distinct(chains: Ints) -> tuple[Ints, Ints]:
    """The distinct rows of (T, L), and for every row which of them it is."""
    code = _codes(chains)
    if code is None:
        rows, place = np.unique(chains, axis=0, return_inverse=True)
        return rows, place.ravel()
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    return chains[first], place.ravel()


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
