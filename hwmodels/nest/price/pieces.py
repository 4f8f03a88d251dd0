"""Pieces of a dimension, how large they are and where they lie, for all candidate chains of steps at once.

Candidate chains are arrays of integers (`hwmodels.nest.price.choices`). A positive entry is a step, a negative one the
number of a list of places where a loop cuts (`hwmodels.schedule.Loop.cuts`), the same list always the same number while
the process runs.

**Sizes** (`Pieces`) are what most prices need. A step T cuts a range of n into ``ceil(n/T)`` pieces, the last one
possibly smaller; the next step of the chain cuts every piece again. An output piece [r0, r1) needs, for the kernel rows
[i0, i1), the input rows ``r0*S-P+i0*D .. (r1-1)*S-P+(i1-1)*D``, clipped to the map (docs/nest.md; TSO Eq. 1 without the
clipping).

**Places** (`Placed`) are needed where burst windows are counted by address (`hwmodels.nest.price.boxes`): the first
element of each piece of the outputs, and of what windows over them fetch of the input, and how many they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.price.bilinear import Ints
from hwmodels.schedule import Step

#: Chains of steps below this, in at most this many columns, have a number of their own (`codes`).
_CODED, _COLUMNS = 2**14, 4
#: Rounds of lanes that the ends of a range may take more than the fewest, to be told apart.
_ROUNDS = 64
_LISTS: list[tuple[int, ...]] = []
_CODES: dict[tuple[int, ...], int] = {}


def code_of(places: tuple[int, ...]) -> int:
    """The number of a list of places, below 0."""
    if places not in _CODES:
        _LISTS.append(places)
        _CODES[places] = -len(_LISTS)
    return _CODES[places]


def how(entry: int) -> Step:
    """What an entry of a chain stands for."""
    return entry if entry > 0 else _LISTS[-entry - 1]


def rounds(extent: Ints | int, number: Ints, most: Ints, lanes: int, fewest: Ints | None = None) -> Ints:
    """The least rounds of lanes that so many pieces of at most `most` take; with `fewest` from so many on.

    Lemma 1 of `formulations.tiling.vectors`; more pieces take no more rounds until each takes one.
    """
    whole, rest = most // lanes, most % lanes
    short = extent - number * whole * lanes
    alone = number * whole + -(-short // np.maximum(rest, 1))
    known = number if fewest is None else fewest
    least: Ints = np.maximum(known, np.where(short <= 0, -(-extent // lanes), alone))
    return least


def ended_rounds(
    extent: int, lanes: int, number: Sequence[Ints], size: Sequence[Ints], first: Sequence[Ints], last: Sequence[Ints]
) -> Ints:
    """The least rounds of lanes (N,) of pieces: how many, the largest, the first and the last are from and up to.

    So many rounds of the two ends have room for no more than `ends`; `rounds` of the others, which are two fewer.
    """
    begin, end = -(-first[0] // lanes), -(-last[0] // lanes)
    ends = np.minimum(first[1], begin * lanes) + np.minimum(last[1], end * lanes)
    full = np.maximum(first[1] // lanes - begin, 0) + np.maximum(last[1] // lanes - end, 0)
    first_rest = np.maximum(first[1] - lanes * np.maximum(first[1] // lanes, begin), 0)
    last_rest = np.maximum(last[1] - lanes * np.maximum(last[1] // lanes, end), 0)
    fewest, parts = np.maximum(number[0] - 2, 0), np.maximum(number[1] - 2, 0)
    most, least = size[1], rounds(extent, number[1], size[1], lanes, number[0])
    apart: Ints = np.full_like(most, np.iinfo(np.int64).max)
    for more in range(min(int(full.max(initial=0)), _ROUNDS) + 3):  # rounds of the ends, full ones first
        rest = (more > full) * np.maximum(first_rest, last_rest) + (more > full + 1) * np.minimum(first_rest, last_rest)
        left = np.maximum(extent - ends - lanes * np.minimum(more, full) - rest, 0)
        apart = np.minimum(apart, begin + end + more + rounds(left, parts, most, lanes, fewest))
    return np.where((number[0] >= 2) & (full <= _ROUNDS), np.maximum(least, apart), least)


def chain_of(loops: Mapping[str, Sequence[Step]]) -> dict[str, Ints]:
    """The loops of a nest as one chain (1, L) a dimension."""
    entries = {d: [x if isinstance(x, int) else code_of(x) for x in steps] for d, steps in loops.items()}
    return {d: np.array([row], np.int64).reshape(1, -1) for d, row in entries.items()}


@lru_cache(maxsize=64)
def _tables(extent: int) -> list[NDArray[np.bool_]]:
    """Where the lists of places begin pieces of a range of `extent`, (lists, E): the one table so far, if any."""
    return []


def _flags(extent: int) -> NDArray[np.bool_]:
    """Where every list of places begins pieces of a range of `extent`, (lists, E)."""
    kept = _tables(extent)
    known = len(kept[0]) if kept else 0
    if known < len(_LISTS):
        new = np.zeros((len(_LISTS) - known, extent), np.bool_)
        for row, places in enumerate(_LISTS[known:]):
            new[row, [x for x in places if x < extent]] = True
        kept[:] = [np.concatenate([kept[0], new]) if kept else new]
    return kept[0]


def begins(extent: int, steps: Ints) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which of the positions 0..extent-1 begin a piece (T, E), and which begin a piece of the level before."""
    position = np.arange(extent, dtype=np.int64)
    here = np.broadcast_to(position == 0, (len(steps), extent))
    before = here
    for level in range(steps.shape[1]):
        entries = steps[:, level]
        placed = np.flatnonzero(entries < 0)
        if len(placed) == len(entries):
            made = here | _flags(extent)[-entries - 1]
        else:
            start = np.maximum.accumulate(np.where(here, position, 0), axis=1) if level else 0
            made = (position - start) % np.maximum(entries, 1)[:, None] == 0
            if len(placed):
                made[placed] = here[placed] | _flags(extent)[-entries[placed] - 1]
        here, before = made, here
    return here, before


@dataclass(frozen=True)
class Placed:
    """Pieces of T chains, one after the other: the chain, the first index along the axis, the length and how often."""

    chain: Ints
    first: Ints
    length: Ints
    count: Ints

    @classmethod
    def of(cls, chain: Ints, first: Ints, length: Ints, count: Ints | None = None) -> Placed:
        """Leave out pieces of nothing; each of the others counts once, unless `count` says more."""
        some = length > 0
        count = np.ones_like(length) if count is None else count
        return cls(chain[some], first[some], length[some], count[some])


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

    def rows(self, r0: Ints, r1: Ints, i0: Ints | int, i1: Ints | int) -> tuple[Ints, Ints]:
        """First and end of what outputs [r0, r1) need under the taps [i0, i1), without padding and resident rows."""
        first = np.maximum(r0 * self.stride - self.pad + i0 * self.dilation, self.first)
        end = np.minimum((r1 - 1) * self.stride - self.pad + (i1 - 1) * self.dilation + 1, self.size)
        return first, end

    def part(self, first: int, end: int) -> Window:
        """The window of the taps [first, end)."""
        return replace(self, taps=end - first, pad=self.pad - first * self.dilation)

    def clipping(self, lo: int, hi: int) -> tuple[int, int]:
        """Rows of the window over the outputs [lo, hi) that lie before and behind what is fetched."""
        first, last = lo * self.stride - self.pad, (hi - 1) * self.stride - self.pad + self.reach
        return max(0, self.first - first), max(0, last - self.size)


@dataclass(frozen=True)
class Spans:
    """All pieces of some chains: the chain, where a piece begins and ends, whether it begins one of the loop before."""

    chain: Ints
    begin: Ints
    end: Ints
    fresh: NDArray[np.bool_]

    @classmethod
    def of(cls, extent: int, steps: Ints) -> Spans:
        """Cut a range of `extent` with every chain of `steps`, shape (T, L)."""
        here, before = begins(extent, steps)
        chain, begin = np.nonzero(here)
        end = np.append(begin[1:], 0)
        return cls(chain, begin, np.where(end > 0, end, extent), before[chain, begin])


#: The taps [first, end), and whether they begin a part of the loop before.
Part = tuple[int, int, bool]


def parts_of(taps: int, chain: Ints, slide: str) -> tuple[Part, ...]:
    """The parts that a chain (L,) cuts the taps in; the loop before matters where IN slides along the kernel."""
    spans = Spans.of(taps, chain[None, :])
    fresh = spans.fresh if slide == "inner" else np.ones_like(spans.fresh)
    return tuple((int(i), int(j), bool(new)) for i, j, new in zip(spans.begin, spans.end, fresh, strict=True))


def fetched(lo: int, spans: Spans, part: Part, window: Window, slide: str) -> tuple[Ints, Ints]:
    """What a part of the kernel fetches for each piece of the outputs from `lo` on: the first row, and how many.

    Where IN slides, the window before in the same pass ends where this piece (or part) begins. Ends never fall along
    a pass, so that window covers as much as all before it.
    """
    i0, i1, new = part
    begin, stop = lo + spans.begin, lo + spans.end
    first, end = window.rows(begin, stop, i0, i1)
    if slide == "outer":
        first = np.where(spans.fresh, first, np.maximum(first, window.rows(begin, begin, i0, i1)[1]))
    elif slide == "inner" and not new:
        first = np.maximum(first, window.rows(begin, stop, i0, i0)[1])
    return first, np.maximum(end - first, 0)


def placed_cut(extent: int, steps: Ints, lo: int) -> Placed:
    """The pieces that chains of steps (T, L) make of the range from `lo` on."""
    spans = Spans.of(extent, steps)
    return Placed.of(spans.chain, lo + spans.begin, spans.end - spans.begin)


def placed_windows(lo: int, hi: int, steps: Ints, taps: Ints, window: Window, slide: str) -> Placed:
    """What windows fetch for pairs of chains (T, L) and (T, L'), as `windows` counts it."""
    kernels, kernel = distinct(taps)
    lists = []
    for number, chain in enumerate(kernels):
        rows = np.flatnonzero(kernel == number)
        spans = Spans.of(hi - lo, steps[rows])
        for part in parts_of(window.taps, chain, slide):
            lists.append((rows[spans.chain], *fetched(lo, spans, part, window, slide)))
    return Placed.of(*(np.concatenate(column) for column in zip(*lists, strict=True)))


def distinct(chains: Ints) -> tuple[Ints, Ints]:
    """The distinct rows of (T, L), and for every row which of them it is."""
    code = codes(chains)
    if code is None:
        rows, place = np.unique(chains, axis=0, return_inverse=True)
        return rows, place.ravel()
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    return chains[first], place.ravel()


def codes(*chains: Ints) -> Ints | None:
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


#: Places (chains x outputs) that windows are counted for at a time.
_BLOCK = 200_000
__all__ = ["Pieces", "Window", "cut", "nominal", "trips", "windows"]


class Pieces:
    """The pieces that each of T chains makes: `length` and `count`, both of shape (T, P).

    Pieces of one chain with the same length may be listed once with their count; unused places have count 0. Sums over
    the pieces are kept, because many tables ask for the same ones.

    Attributes
    ----------
    places : callable, optional
        Lists where the pieces lie.
    once : (int, int), optional
        The range that the pieces of every chain cover, each index once.
    kept : dict
        Sums over the pieces that tables asked for.
    """

    places: Callable[[], Placed] | None = None
    once: tuple[int, int] | None = None

    _base: Pieces | None = None
    _row: Ints

    def __init__(self, length: Ints, count: Ints) -> None:
        self._length = length
        self._count = np.where(length > 0, count, 0)
        self.kept: dict[tuple[object, ...], Ints] = {}

    def take(self, row: Ints) -> Pieces:
        """The pieces of T chains that `row` (T,) names among these; sums are made once for all."""
        taken = Pieces.__new__(Pieces)
        taken._base, taken._row, taken.kept = self, row, {}
        return taken

    @property
    def length(self) -> Ints:
        """Lengths of the pieces."""
        return self._length if self._base is None else self._base.length[self._row]

    @property
    def count(self) -> Ints:
        """How often each comes."""
        return self._count if self._base is None else self._base.count[self._row]

    @cached_property
    def placed(self) -> Placed:
        """Where the pieces lie; raises TypeError if these pieces have no places (nominal tiles)."""
        if self.places is None:
            raise TypeError("these pieces have sizes, but no places")
        return self.places()

    @cached_property
    def number(self) -> Ints:
        """Pieces that hold anything, per chain."""
        number: Ints = self._count.sum(axis=1) if self._base is None else self._base.number[self._row]
        return number

    @cached_property
    def sum(self) -> Ints:
        """Sum of the lengths, per chain."""
        if self._base is not None:
            return self._base.sum[self._row]
        total: Ints = (self._length * self._count).sum(axis=1)
        return total

    @cached_property
    def largest(self) -> Ints:
        """Longest piece, per chain."""
        if self._base is not None:
            return self._base.largest[self._row]
        longest: Ints = np.where(self._count > 0, self._length, 0).max(axis=1)
        return longest

    def sized(self, tiles: Pieces) -> Pieces:
        """The same, of which as much lies on chip as of others: what is fetched may be less."""
        result = copy(self)
        result.largest = tiles.largest
        return result

    def full(self, extent: int) -> Ints:
        """Number of pieces that span all of `extent`, per chain."""
        if (key := (extent,)) not in self.kept:
            if self._base is None:
                self.kept[key] = np.where(self._length == extent, self._count, 0).sum(axis=1)
            else:
                self.kept[key] = self._base.full(extent)[self._row]
        return self.kept[key]

    def partial(self, extent: int) -> Ints:
        """Number of pieces shorter than `extent`, per chain."""
        return self.number - self.full(extent)

    def partial_windows(self, extent: int, inner_bytes: int, window: int) -> Ints:
        """Sum over the pieces shorter than `extent` of ``ceil(length*inner_bytes/window)``, per chain."""
        if self._base is not None:
            return self._base.partial_windows(extent, inner_bytes, window)[self._row]
        if (key := (extent, inner_bytes, window)) not in self.kept:
            bursts = -(-self._length * inner_bytes // window)
            self.kept[key] = np.where(self._length < extent, bursts * self._count, 0).sum(axis=1)
        return self.kept[key]

    def ceil_sum(self, unit: int) -> Ints:
        """Sum over the pieces of ``ceil(length/unit)``, per chain."""
        total: Ints = (-(-self.length // unit) * self.count).sum(axis=1)
        return total


def trips(extent: int, step: Ints) -> Ints:
    """Return ``ceil(extent/step)``."""
    return -(-extent // step)


def nominal(step: Ints, count: Ints) -> Pieces:
    """Return `count` full pieces for every step, as the papers count (`edge_tiles = "uniform"`)."""
    return Pieces(step[:, None], count[:, None])


@lru_cache(maxsize=8192)
def _cut(extent: int, chains: bytes, depth: int, lo: int) -> Pieces:
    steps = np.frombuffer(chains, np.int64).reshape(-1, depth) if depth else np.zeros((1, 0), np.int64)
    placed: NDArray[np.bool_] = np.any(steps < 0, axis=1)
    length, count = _even_cut(extent, np.maximum(steps, 1))
    if placed.any():
        spans = Spans.of(extent, steps[placed])
        free = _counted(spans.chain, spans.end - spans.begin, int(placed.sum()))
        length, count = _patched((length, count), free, placed)
    pieces = Pieces(length, count)
    pieces.places, pieces.once = (lambda: placed_cut(extent, steps, lo)), (lo, lo + extent)
    return pieces


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


def cut(extent: int, steps: Ints, lo: int = 0) -> Pieces:
    """Cut a range of `extent` from `lo` on with every chain of `steps`, shape (T, L); T = 1 where L = 0."""
    return _cut(extent, np.ascontiguousarray(steps).tobytes(), steps.shape[1], lo)


def _windows(lo: int, hi: int, steps: Ints, taps: Ints, window: Window, slide: str) -> Pieces:
    """The distinct lengths of the windows of pairs of chains (T, L) and (T, L'), and how often they come.

    Few of the pairs' chains are distinct, and fewer the parts that their taps make: each is looked at once.
    """
    (outer, row), (inner, kernel) = distinct(steps), distinct(taps)
    given = [parts_of(window.taps, chain, slide) for chain in inner]
    ways = list(dict.fromkeys(given))
    rows = max(1, _BLOCK // (hi - lo))
    blocks = [_listed(lo, hi, outer[i : i + rows], ways, window, slide) for i in range(0, len(outer), rows)]
    width = max(block.shape[-1] for block in blocks)
    found = np.concatenate([np.pad(b, ((0, 0),) * 3 + ((0, width - b.shape[-1]),)) for b in blocks], axis=2)
    length, count = found[:, np.array([ways.index(parts) for parts in given])[kernel], row]
    return Pieces(length, count)


def _listed(lo: int, hi: int, steps: Ints, ways: list[tuple[Part, ...]], window: Window, slide: str) -> Ints:
    """Lengths and numbers of windows (2, ways, T, N): every way to cut the kernel under every chain of steps."""
    spans = Spans.of(hi - lo, steps)
    known = {part: fetched(lo, spans, part, window, slide)[1] for parts in ways for part in parts}
    place = [spans.chain + number * len(steps) for number, parts in enumerate(ways) for _ in parts]
    length = [known[part] for parts in ways for part in parts]
    found = _counted(np.concatenate(place), np.concatenate(length), len(ways) * len(steps))
    return np.stack(found).reshape(2, len(ways), len(steps), -1)


def _compact(times: Ints) -> tuple[Ints, Ints]:
    """From how often (T, N) each length 0..N-1 comes, the lengths that do and their numbers."""
    chain, length = np.nonzero(times)
    number = (times > 0).sum(axis=1)
    column = np.arange(len(chain)) - np.repeat(np.cumsum(number) - number, number)
    squeezed = np.zeros((2, len(times), max(1, int(number.max(initial=0)))), np.int64)
    squeezed[0, chain, column], squeezed[1, chain, column] = length, times[chain, length]
    return squeezed[0], squeezed[1]


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
    pieces = _looked_up(lo, hi, steps, taps, window, slide)
    pieces.places = lambda: placed_windows(lo, hi, steps, taps, window, slide)
    return pieces


def _looked_up(lo: int, hi: int, steps: Ints, taps: Ints, window: Window, slide: str) -> Pieces:
    """The windows, of the largest set of chains so far where it has them all."""
    code = codes(steps, taps) if len(steps) else None
    if code is None:
        return _windows(lo, hi, steps, taps, window, slide)
    largest = _known(lo, hi, steps.shape[1], taps.shape[1], window, slide)
    if largest and (row := largest[0].place(code)) is not None:
        return largest[0].pieces.take(row)
    ordered, first, row = np.unique(code, return_index=True, return_inverse=True)
    wide = _windows(lo, hi, steps[first], taps[first], window, slide)
    if not largest or len(ordered) > len(largest[0].code):
        largest[:] = [_Known(ordered, wide)]
    return wide.take(row.ravel())


def windows(lo: int, hi: int, steps: Ints, taps: Ints, window: Window, slide: str = "") -> Pieces:
    """Return the input pieces under the output range [lo, hi), per chain of `steps` (T, L) and of `taps` (T or 1, L').

    `slide`: count only what the window before in the same pass did not cover, along the innermost loop over the outputs
    ("outer") or over the kernel ("inner").
    """
    if window.trivial and hi <= window.size:
        return cut(hi - lo, steps, lo)
    if not len(steps):
        none = np.zeros((0, 1), np.int64)
        return Pieces(none, none)
    return _shared(
        lo, hi, np.ascontiguousarray(steps).tobytes(), steps.shape[1],
        np.ascontiguousarray(taps).tobytes(), taps.shape[1], window, slide,
    )  # fmt: skip
