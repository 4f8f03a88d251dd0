"""Pieces of dimensions, boxes that are products of them, and what moving these takes, for `tests.adversary.pricing`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod

from hwmodels.schedule import Step
from instances.machine.machine import Transfer

#: The loops of a nest.
Cut = tuple[str, Step]
Span = tuple[int, int]
#: An axis: its size, and how many pieces have which extent and which begin.
Axis = tuple[int, tuple[tuple[tuple[int, int], int], ...]]


@lru_cache(maxsize=1 << 16)
def levels(
    lo: int, hi: int, hows: tuple[Step, ...]
) -> tuple[tuple[tuple[Span, ...], ...], tuple[tuple[int, ...], ...]]:
    """Cut [lo, hi) by the loops of one dimension: the pieces of every level, and how many each piece is cut in."""
    pieces: list[tuple[Span, ...]] = [((lo, hi),)]
    numbers: list[tuple[int, ...]] = []
    for how in hows:
        parts = [cut(a, b, lo, how) for a, b in pieces[-1]]
        numbers.append(tuple(len(part) for part in parts))
        pieces.append(tuple(span for part in parts for span in part))
    return tuple(pieces), tuple(numbers)


def cut(a: int, b: int, lo: int, how: Step) -> list[Span]:
    """Cut the piece [a, b) of a range that begins at `lo`."""
    marks = list(range(a, b, how)) if isinstance(how, int) else [a, *(lo + x for x in how if a < lo + x < b)]
    return list(zip(marks, [*marks[1:], b], strict=True))


def real(spans: Mapping[str, Span], loops: Sequence[Cut]) -> list[bool]:
    """Say of every loop whether it makes more pieces of its dimension than there were."""
    done: dict[str, tuple[Step, ...]] = {}
    found = []
    for d, how in loops:
        before, hows = done.get(d, ()), (*done.get(d, ()), how)
        found.append(len(levels(*spans[d], hows)[0][-1]) > len(levels(*spans[d], before)[0][-1]))
        done[d] = hows
    return found


@lru_cache(maxsize=1 << 16)
def plain(spans: tuple[Span, ...], size: int, resident: int) -> Axis:
    """Pieces of an axis without a window, without its first `resident` indices."""
    pieces = Counter((max(0, b - max(a, resident)), max(a, resident)) for a, b in spans)
    return size, tuple(sorted(pieces.items()))


@lru_cache(maxsize=1 << 16)
def window(
    outs: tuple[Span, ...], taps: tuple[Span, ...], shape: tuple[int, int, int, int], resident: int,
    groups: tuple[int, ...], along_taps: bool,
) -> Axis:  # fmt: skip
    """Pieces of an input axis; `groups` are the lengths of the rows of pieces that follow each other if IN slides."""
    stride, dilation, pad, size = shape
    pieces: Counter[tuple[int, int]] = Counter()
    for still in outs if along_taps else taps:
        moving = iter(taps if along_taps else outs)
        for length in groups or (len(taps if along_taps else outs),):
            there = -1  # the end of what was there before
            for _ in range(length):
                one = next(moving)
                (a, b), (i, j) = (still, one) if along_taps else (one, still)
                first = max(a * stride - pad + i * dilation, resident)
                end = min((b - 1) * stride - pad + (j - 1) * dilation + 1, size)
                begin = max(first, there) if groups and there >= 0 else first
                pieces[max(0, end - begin), begin] += 1
                there = max(there, end, first)
    return size, tuple(sorted(pieces.items()))


def priced(axes: Sequence[Axis], element: int, price: Transfer, *, beside: bool = False) -> tuple[int, int]:
    """Bytes and ticks of all boxes whose ranges are products of these; `beside` others they ride in their calls."""
    whole, runs, windows, calls, size, inner, burst = 1, 0, 0, 1, element, element, price.burst_bytes
    for length, pieces in reversed(axes):
        total = some = full = begun = 0
        for (extent, _), number in pieces:
            total += extent * number
            if extent == length:
                full += number
            elif extent:
                some += number
                begun += number * -(-extent * inner // burst) if burst else 0
        runs = runs * total + whole * some
        windows = windows * total + whole * begun
        whole *= full
        calls *= some + full
        size *= total
        inner *= length
    if price.burst_count == "address" and burst:
        windows = _touched(axes, element, burst)
    windows += whole * -(-inner // burst) if burst else 0
    ticks = price.segment_ticks * (runs + whole) + price.burst_ticks * windows + price.byte_ticks * size
    return size, ticks + (0 if beside else price.call_ticks * calls)


def _touched(axes: Sequence[Axis], element: int, burst: int) -> int:
    """The windows that runs of boxes touch which some axis breaks, axis by axis from outside.

    `begins` says how many choices of outer indices begin at each byte of a window.
    """
    windows, begins = 0, {0: 1}
    for k, (length, pieces) in enumerate(axes):
        pitch = element * prod(size for size, _ in axes[k + 1 :])
        whole = prod(sum(n for (extent, _), n in inner if extent == size) for size, inner in axes[k + 1 :])
        moved: Counter[int] = Counter()
        for (extent, first), number in pieces:
            for start, often in begins.items() if whole and extent < length else ():
                end = (start + first * pitch) % burst + extent * pitch
                windows += whole * number * often * -(-end // burst) if extent else 0
            for x in range(first, first + extent):
                moved[x * pitch % burst] += number
        after: Counter[int] = Counter()
        for start, often in begins.items():
            for shift, number in moved.items():
                after[(start + shift) % burst] += often * number
        begins = after
    return windows


def largest(axes: Sequence[Axis]) -> int:
    """Elements of the largest box."""
    return prod(max(extent for (extent, _), _ in pieces) for _, pieces in axes)
