"""A nest that brings a box of a layer through nearer memories, event by event, by the text of docs/levels.md alone.

Loops are run one by one. A visit of an operand's tile begins whenever a loop advances that stands outside its Stay,
down to the last one that moves the tile and cuts anything. One DMA moves what visits lack, and their results:

    load of visit i    asked for at the first step of visit i - (B - 1), has room when visit i - B is done with
    store of visit i   asked for behind its last step; at a step stores first, then what is needed first
    step               behind the step before, and the loads of its visits

An example: two tiles of 10 ticks, each with a load of 5 and a store of 3. With one buffer of each
5 + 10 + 3 + 5 + 10 + 3, as the first store goes ahead of the second load. With two 5 + 10 + 10 + 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

Span = tuple[int, int]
Ranges = Mapping[str, Span]
_OF = {"IN": "bgnrcij", "W": "gmnij", "OUT": "bgmrc"}
_SUMMED = "nij"


@dataclass(frozen=True)
class Axis:
    """How windows move along rows (columns) of what is read."""

    stride: int
    dilation: int
    before: int
    """Padding."""
    size: int
    """What there is to read."""

    def read(self, made: Span, taps: Span) -> Span:
        """From the first to behind the last one that is there."""
        low = made[0] * self.stride - self.before + taps[0] * self.dilation
        high = (made[1] - 1) * self.stride - self.before + (taps[1] - 1) * self.dilation + 1
        low = max(low, 0)
        return low, max(low, min(high, self.size))


@dataclass(frozen=True)
class Work:
    """A box, and what counts."""

    size: Mapping[str, int]
    """By dimension."""
    rows: Axis
    columns: Axis
    inputs: int
    weighted: bool
    bytes: Mapping[str, int]
    """Of an element of IN, W, OUT and of a sum (PSUM)."""
    bias: int
    """Bytes of the bias of a filter."""
    call: int
    byte: int
    cycle: int
    lanes: Mapping[str, int]
    buffers: Mapping[str, int]
    """Of every operand."""
    sliding: bool = True


@dataclass
class Said:
    """What was seen: ticks, bytes that moved, the most bytes of every operand."""

    ticks: int
    moved: int
    held: dict[str, int]
    out_calls: int
    """Transfers of results, sums that come back included."""


@dataclass
class _Visit:
    first: int
    last: int
    load: int
    """Ticks; -1: nothing is loaded."""
    store: int
    loaded: int = 0
    released: int = 0


def _cuts(loops: Sequence[tuple[str, int]], size: Mapping[str, int]) -> list[bool]:
    """Whether each loop makes more pieces of its dimension than there were."""
    found, pieces = list[bool](), {d: [n] for d, n in size.items()}
    for d, step in loops:
        after = [min(step, n - at) for n in pieces[d] for at in range(0, n, step)]
        found.append(len(after) > len(pieces[d]))
        pieces[d] = after
    return found


def _run(loops: Sequence[tuple[str, int]], ranges: list[dict[str, Span]], at: list[int]) -> Iterator[tuple[Any, Any]]:
    """Yield for every step which piece each loop is at, and ranges outside of all loops, in the first one, ..."""
    if len(at) == len(loops):
        yield tuple(at), list(ranges)
        return
    d, step = loops[len(at)]
    begin, end = ranges[-1][d]
    for number, low in enumerate(range(begin, end, step)):
        yield from _run(loops, [*ranges, ranges[-1] | {d: (low, min(low + step, end))}], [*at, number])


def simulated(work: Work, items: Sequence[tuple[str, int | str]]) -> Said:
    """Run a nest: items are (dimension, step), or (operand, "")."""
    last = max(k for k, (name, _) in enumerate(items) if name in _OF)
    loops = [(name, int(step)) for name, step in items[:last] if name not in _OF]
    inner = [(name, int(step)) for name, step in items[last:] if name not in _OF]
    real = _cuts(loops, work.size)
    steps = list(_run(loops, [{d: (0, n) for d, n in work.size.items()}], []))
    stays = [name for name, _ in items if name in _OF]
    visits, moved, held, which = dict[str, list[_Visit]](), 0, dict[str, int](), dict[str, list[int]]()
    for name in stays:
        place = next(k for k, (other, _) in enumerate(items) if other == name)
        outside = sum(other not in _OF for other, _ in items[:place])
        moving = [k for k in range(outside) if real[k] and loops[k][0] in _OF[name]]
        depth = moving[-1] + 1 if moving else 0
        some, numbers, before = list[_Visit](), list[int](), None
        for s, (at, ranges) in enumerate(steps):
            if before is None or at[:depth] != before[0]:
                load, store, size = _moved(work, name, loops[:depth], at[:depth], ranges[depth], before)
                some.append(_Visit(s, s, *(_ticks(work, name, one) for one in (load, store))))
                moved += load + store
                held[name] = max(held.get(name, 0), size)
                before = at[:depth], ranges[depth]
            some[-1].last = s
            numbers.append(len(some) - 1)
        visits[name], which[name] = some, numbers
    if any(
        d in _SUMMED and cut for (d, _), cut in zip([*loops, *inner], _cuts([*loops, *inner], work.size), strict=True)
    ):
        held["OUT"] = held["OUT"] // work.bytes["OUT"] * max(work.bytes["OUT"], work.bytes["PSUM"])
    ticks = _followed(work, stays, visits, which, [_computed(work, inner, one[-1]) for _, one in steps])
    return Said(ticks, moved, held, sum(1 + (one.load >= 0) for one in visits["OUT"]))


def _ticks(work: Work, name: str, size: int) -> int:
    return (work.inputs if name == "IN" else 1) * work.call + size * work.byte if size else -1


def _moved(
    work: Work, name: str, loops: Sequence[tuple[str, int]], at: tuple[int, ...], tile: Ranges, before: Any
) -> tuple[int, int, int]:  # fmt: skip
    """Bytes that a visit loads and stores, and those of its tile."""
    side = {d: end - begin for d, (begin, end) in tile.items()}
    if name == "W":
        size = prod(side[d] for d in "gmnij") * work.bytes["W"] + side["g"] * side["m"] * work.bias
        return size, 0, size
    if name == "OUT":
        results = prod(side[d] for d in "bgmrc")
        begun = any(tile[d][0] > 0 for d in _SUMMED)
        ended = all(tile[d][1] == work.size[d] for d in _SUMMED)
        stored = results * work.bytes["OUT" if ended else "PSUM"]
        return begun * results * work.bytes["PSUM"], stored, results * work.bytes["OUT"]
    each = prod(side[d] for d in "bgn") * work.inputs * work.bytes["IN"]
    spans = {"r": work.rows.read(tile["r"], tile["i"]), "c": work.columns.read(tile["c"], tile["j"])}
    whole = each * prod(end - begin for begin, end in spans.values())
    if before is not None and work.sliding and loops and loops[-1][0] in spans and before[0][:-1] == at[:-1]:
        d, other = loops[-1][0], before[1]
        there = (work.rows if d == "r" else work.columns).read(other[d], other["i" if d == "r" else "j"])[1]
        begin, end = spans[d]
        spans[d] = max(begin, there), max(begin, there, end)
    return each * prod(end - begin for begin, end in spans.values()), 0, whole


def _computed(work: Work, inner: Sequence[tuple[str, int]], ranges: Ranges) -> int:
    """Ticks of the PEs in a step, piece by piece of the loops inside."""
    total = work.inputs * work.cycle
    for d, (begin, end) in ranges.items():
        pieces = [end - begin]
        for step in (step for name, step in inner if name == d):
            pieces = [min(step, n - at) for n in pieces for at in range(0, n, step)]
        total *= sum(-(-n // work.lanes.get(d, 1)) for n in pieces)
    return total


def _followed(
    work: Work, stays: Sequence[str], visits: Mapping[str, list[_Visit]], which: Mapping[str, list[int]],
    computed: Sequence[int],
) -> int:  # fmt: skip
    """When the last store, or step, ends."""
    asked = list[tuple[int, int, int, int, str, int]]()
    for k, name in enumerate(stays):
        for i, one in enumerate(visits[name]):
            issue = visits[name][max(0, i - work.buffers[name] + 1)].first
            asked.append((issue, 1, one.first, k, name, i))
            if name == "OUT":
                asked.append((one.last + 1, 0, 0, -k, name, i))
    asked.sort(key=lambda one: one[:4])
    ends, free, latest = [0], 0, 0
    for s in range(len(computed) + 1):
        while asked and asked[0][0] <= s:
            _, load, _, _, name, i = asked.pop(0)
            mine, some = visits[name][i], visits[name]
            if not load:
                free = max(free, ends[mine.last + 1]) + mine.store
                mine.released = latest = free
                continue
            begin = some[i - work.buffers[name]].released if i >= work.buffers[name] else 0
            if mine.load >= 0:
                free = begin = max(begin, free) + mine.load
            mine.loaded = begin
        if s < len(computed):
            now = max([ends[-1], *(visits[name][which[name][s]].loaded for name in stays)]) + computed[s]
            ends.append(now)
            for name in stays:
                one = visits[name][which[name][s]]
                if name != "OUT" and one.last == s:
                    one.released = now
    return max(latest, ends[-1])


def covered(spans: Sequence[tuple[Span, Span, Span]], size: tuple[int, int, int]) -> bool:
    """Whether boxes of three dimensions are all of it, each place once."""
    volume = sum(prod(end - begin for begin, end in one) for one in spans)
    apart = all(
        any(a[1] <= b[0] or b[1] <= a[0] for a, b in zip(one, other, strict=True))
        for k, one in enumerate(spans) for other in spans[:k]
    )  # fmt: skip
    return (
        volume == prod(size)
        and apart
        and all(0 <= b < e <= n for one in spans for (b, e), n in zip(one, size, strict=True))
    )
