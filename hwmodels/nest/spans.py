"""Where the pieces of a dimension lie, for all candidate chains of steps at once.

Pieces of the outputs, and what windows over them fetch of the input: the first element of each and how many they are.
Their sizes alone are what most prices need (`hwmodels.nest.pieces`); burst windows by address need the places too
(`hwmodels.nest.addresses`).

Candidate chains are arrays of integers (`hwmodels.nest.choices`). A positive entry is a step, a negative one the number
of a list of places where a loop cuts (`hwmodels.schedule.Loop.cuts`), the same list always the same number while the
process runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.bilinear import Ints
from hwmodels.schedule import Step

#: Chains of steps below this, in at most this many columns, have a number of their own (`codes`).
_CODED, _COLUMNS = 2**14, 4
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
    """What windows fetch for pairs of chains (T, L) and (T, L'), as `hwmodels.nest.pieces.windows` counts it."""
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
