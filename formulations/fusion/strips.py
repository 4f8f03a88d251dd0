"""The strips of a group: what every map advances by step, what is kept, and the bytes on chip at every moment.

Along an axis (rows; columns alike) the last map of a group advances by h rows a step, and every other map m by
``h * rate_m``. With ``out`` the map that a reader u of m writes, s, p, k its stride, padding and reach:

    retain      front_m(t) = h rate_m t + off_m,   off_m = max_u (off_out - 1) s - p + k   (0 if nobody reads it here)
                a step computes rows front_m(t-1) .. front_m(t); negative steps are the warm-up, in which maps far from
                the last one get ahead, row by row as later on
    lead        the same without warm-up: step 1 makes all that maps are ahead at once
    recompute   a step computes rows begin_m(t) .. end_m(t), all that the strip t of the last map needs:
                end_m(t) = h rate_m (t+1) + off_m,   begin_m(t) = h rate_m t + low_m,   low_m = min_u low_out s - p

clipped to the rows that somebody needs. Of what is broadcast from outside there is one row, for all of the reader's:
s = p = 0, k = 1 and the rate is 0, so that it is there from the first step on; of what is made in the group for R rows
off_m is off_out / R, rounded up, and low_m is low_out / R, rounded down.

What of it lies on chip is said below (`Columns`); for that `Strips` has of every reader of a map what it has
yet to see: with out the map that it writes,
    retain, lead     first = front_out(t-1) s - p,   later = front_out(t) s - p            (FAR if out is complete)
    recompute        first = begin_out s - p,        until = (end_out - 1) s - p + k,      later: first of the next step
All of this is exact for every step, the first and last included; `Strips` holds all ways side by side.

**On chip** (`Columns`) lie, while a group runs, rows of the columns of every stream, in every state: sums of products.
A stream is *before* its piece is made (or loaded) in a visit, *made* while that happens, and from then on in the state
of how many of its readers have run in the visit. A reader of a column x needs the rows

    from `first` on    if it has yet to see x in this step of rows: x is behind `left`, the first column that it needs
    from `later` on    if not

(both as above), and the piece of the visit counts as a reader while it is made. So with S the readers
that have yet to see x, a column of the stream takes the rows

    min(end, first of S, later of the others) .. end      what is new in this step of rows ends before `high`:
                                                          behind it `before` stands for `end`
    recompute: the least first .. the greatest until of S that is not done with x, before `high`

where `high` is the front of columns; if columns are computed again, behind what readers in this visit still need and
where the next piece begins. Columns that are alike in S and in this are a **class**: rows by step of rows times columns
by step of columns, so the bytes of all streams are a product of matrices. Of one reader there are three: columns behind
the window, those of it, and those ahead. An example: a map with two readers, 3 x 3 windows and a sum, in strips of 2
rows. When the windows have run, columns that they are done with keep rows for the sum, those behind also for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import pairwise
from math import lcm
from typing import Literal

import numpy as np
import numpy.typing as npt

from formulations.fusion.groups import Axis, Group, Rate, window
from hwmodels.schedule import Pace, Steps
from instances.errors import InputError

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Mode = Literal["retain", "lead", "recompute"]
#: How a group goes along an axis: the mode, and the strip height (width) of its last map.
Way = tuple[Mode, int]
#: A row that no map has.
FAR = 2**40


@dataclass(frozen=True, eq=False)
class Strips:
    """Steps along one axis in several ways, one after the other; a way is a mode and a strip height (width)."""

    ways: tuple[Way, ...]
    first: Ints
    """Where the steps of every way begin, (ways + 1,)."""
    begin: Ints
    end: Ints
    """`begin`, `end`: what a step computes, or reads from outside, (streams, steps)."""
    first_seen: Ints
    later_seen: Ints
    until_seen: Ints
    """`first_seen`, `later_seen`, `until_seen`: what every reader of a stream has yet to see before the step and after
    it, and, where nothing is kept from step to step, before what it sees in the step ends; `FAR` and 0 if it sees
    nothing, (streams, readers, steps).
    """
    next: Ints
    """What the next step begins with, (streams, steps)."""
    again: npt.NDArray[np.bool_]
    """Whether the way recomputes, (steps,)."""
    extent: Ints
    """Rows that somebody needs, (streams,)."""

    @cached_property
    def computed(self) -> Ints:
        """Rows that are computed or read, (streams, ways)."""
        return self._sums(np.maximum(self.end - self.begin, 0))

    @cached_property
    def active(self) -> Ints:
        """Steps in which something is, (streams, ways)."""
        return self._sums((self.end > self.begin).astype(np.int64))

    @cached_property
    def skips(self) -> npt.NDArray[np.bool_]:
        """Whether a step begins behind the end of the one before, for some stream, (ways,)."""
        left: npt.NDArray[np.bool_] = np.logical_or.reduceat((self.next > self.end).any(axis=0), self.first[:-1])
        again: npt.NDArray[np.bool_] = left & np.array([mode == "recompute" for mode, _ in self.ways])
        return again

    def beyond(self, stream: int, rows: Ints) -> Ints:
        """Rows that a stream reads, when so many first rows are on chip, (ways, numbers of rows)."""
        begin, end = self.begin[stream][:, None], self.end[stream][:, None]
        counted: Ints = np.add.reduceat(np.maximum(end - np.maximum(begin, rows), 0), self.first[:-1], axis=0)
        return counted

    def most(self, values: npt.NDArray[np.float64], axis: int) -> npt.NDArray[np.float64]:
        """The most of some values by step over the steps of every way."""
        count = values.shape[axis] // len(self.ways)
        if count > 4 or not (np.diff(self.first) == count).all():
            greatest: npt.NDArray[np.float64] = np.maximum.reduceat(values, self.first[:-1], axis=axis)
            return greatest
        steps = np.moveaxis(values, axis, 0)  # many short ways: step by step is faster
        return np.moveaxis(reduce(np.maximum, (steps[k::count] for k in range(count))), 0, axis)

    def only(self, way: int) -> Strips:
        """The steps of one way, by its number."""
        return self._some(slice(self.first[way], self.first[way + 1]), (self.ways[way],))

    def some(self, ways: Sequence[int]) -> Strips:
        """The steps of some ways, in their order."""
        steps = np.concatenate([np.arange(self.first[way], self.first[way + 1]) for way in ways])
        first = np.append(0, np.cumsum(np.diff(self.first)[list(ways)]))
        return replace(self._some(steps, tuple(self.ways[way] for way in ways)), first=first)

    def distinct(self) -> Strips:
        """Of ways with the same steps the first one each."""
        found = dict[bytes, int]()
        for way, (at, end) in enumerate(pairwise(self.first.tolist())):
            seen = (self.first_seen, self.later_seen, self.until_seen)
            same = self.begin[:, at:end], self.end[:, at:end], self.next[:, at:end], *(x[..., at:end] for x in seen)
            found.setdefault(b"".join(x.tobytes() for x in same) + bytes([bool(self.again[at])]), way)
        return self.some([*found.values()]) if len(found) < len(self.ways) else self

    def sampled(self) -> Strips:
        """Two steps of every way, the first and one in the middle; a glimpse, no schedule."""
        first, last = self.first[:-1], self.first[1:]
        return self._some(np.stack([first, (first + last) // 2], axis=1).ravel(), self.ways)

    def _some(self, steps: Ints | slice, ways: tuple[Way, ...]) -> Strips:
        seen, later, until = (x[..., steps] for x in (self.first_seen, self.later_seen, self.until_seen))
        begin, end, following = (x[:, steps] for x in (self.begin, self.end, self.next))
        first = np.arange(0, begin.shape[1] + 1, begin.shape[1] // len(ways))
        return Strips(ways, first, begin, end, seen, later, until, following, self.again[steps], self.extent)

    def _sums(self, values: Ints) -> Ints:
        summed: Ints = np.add.reduceat(values, self.first[:-1], axis=1)
        return summed


def strips(group: Group, axis: Axis, ways: Sequence[Way]) -> Strips | None:
    """Return the steps of a group along an axis in those ways that give no map a broken number; None if none does.

    What is all of the last layer may be more than that, in one step still.
    """
    rates = group.rates(axis)
    if rates is None:
        return None
    sizes, suits = _suited(group, axis, rates, [size for _, size in ways])
    suiting = [(mode, size) for (mode, _), size, good in zip(ways, sizes.tolist(), suits, strict=True) if good]
    return _Walk(group, axis, rates).strips(tuple(suiting)) if suiting else None


def _suited(group: Group, axis: Axis, rates: dict[int, Rate], sizes: Sequence[int]) -> tuple[Ints, Mask]:
    """Sizes of strips, more than all of the last layer where no map has a broken number then, and which suit."""
    parts = np.array([(rate.numerator, rate.denominator) for rate in rates.values()], np.int64)
    under, whole = lcm(*parts[:, 1].tolist()), window(group.net.layers[group.last], axis).outputs
    each = np.array(sizes, np.int64)
    each = np.where(each >= whole, -(-each // under) * under, each)
    return each, (each[:, None] * parts[:, 0] % parts[:, 1] == 0).all(axis=1)


def paces(group: Group, axis: Axis, mode: Mode, size: int) -> tuple[Steps, tuple[Pace, ...]]:
    """Return the steps of a group along an axis in strips of one size, and the pace of every stream.

    As `strips`: what is all of the last layer may be more. Raises InputError for a size that does not suit the group.
    """
    rates = group.rates(axis)
    if rates is None or not (suiting := _suited(group, axis, rates, [size]))[1].all():
        raise InputError(f"strips of {size} {axis} do not suit layers {group.first} to {group.last}")
    walk = _Walk(group, axis, rates)
    step, high = walk.advance(*suiting[0])[:, 0], np.array(walk.high)
    again = mode == "recompute"
    last = max(-(-(walk.extent[k] - (0 if again else int(high[k]))) // int(step[k])) for k in walk.sinks)
    first = 1
    if mode == "retain":
        first -= max(0, *(-(-int(ahead) // int(each)) for ahead, each in zip(high, step, strict=True) if each))
    if again:
        first, last, high = 0, last - 1, high + step
    made = tuple(
        Pace(int(each), int(ahead), low, end)
        for each, ahead, low, end in zip(step, high, walk.low, walk.extent, strict=True)
    )
    return Steps("recompute" if again else "retain", first, last), made


class _Walk:
    """The lines that fronts follow, and how they are clipped."""

    def __init__(self, group: Group, axis: Axis, rates: dict[int, Rate]) -> None:
        self.group, self.axis, self.rates = group, axis, rates
        self.streams = group.streams
        self.windows = {(u, s.store): group.net.window(u, s.store, axis) for s in self.streams for u in s.readers}
        self.number = {s.maker: k for k, s in enumerate(self.streams) if not s.outside}
        count = len(self.streams)
        self.high, self.low, self.extent = [0] * count, [0] * count, [0] * count
        for k in sorted(range(count), key=lambda k: (self.streams[k].outside, -self.streams[k].maker)):
            self._line(k)

    def _line(self, k: int) -> None:
        """Offsets and needed rows of a stream, from those of its readers."""
        mine, high, low, extent = self.streams[k], [], [], []
        for u in mine.readers:
            out, seen = self.number[u], self.windows[u, mine.store]
            if seen.stride or mine.outside:
                high.append((self.high[out] - 1) * seen.stride - seen.pad + seen.reach)
                low.append(self.low[out] * seen.stride - seen.pad)
            else:  # one row for all that the reader makes
                high.append(-(-self.high[out] // seen.outputs))
                low.append(self.low[out] // seen.outputs)
            extent.append(min(seen.inputs, (self.extent[out] - 1) * seen.stride - seen.pad + seen.reach))
        if mine.result or not mine.readers:
            high.append(0)
            low.append(0)
            layer = self.group.net.layers[mine.maker]
            extent.append(layer.r if self.axis == "rows" else layer.c)
        self.high[k], self.low[k], self.extent[k] = max(high), min(low), max(extent)

    def strips(self, ways: tuple[Way, ...]) -> Strips:
        """All steps of all ways."""
        step = self.advance(*(size for _, size in ways))
        high, low, extent = np.array([self.high, self.low, self.extent], np.int64)[..., None]  # (streams, 1) each
        again = np.array([mode == "recompute" for mode, _ in ways])
        moving = step[:, 0] > 0
        ahead = np.maximum(-(-high[moving] // step[moving]).min(axis=0), 0)
        warm = np.where([mode == "retain" for mode, _ in ways], ahead, 0)
        left = (extent - np.where(again, 0, high))[self.sinks]
        first = np.cumsum([0, *(warm + (-(-left // step[self.sinks])).max(axis=0))])
        way = np.repeat(np.arange(len(ways)), np.diff(first))
        times = np.arange(first[-1]) - (first[:-1] + warm)[way] + 1
        each, repeated = step[:, way], again[way]
        end = np.clip(each * times + high, 0, extent)
        begin = np.minimum(np.clip(each * (times - 1) + np.where(repeated, low, high), 0, extent), end)
        begin[:, first[:-1]] *= again
        following = np.append(begin[:, 1:], extent, axis=1)
        following[:, first[1:] - 1] = extent
        return Strips(
            ways, first, begin, end, *self._seen(begin, end, first, repeated), following, repeated, extent[:, 0]
        )

    @property
    def sinks(self) -> list[int]:
        """The streams that the steps must bring to their end."""
        return [k for k, s in enumerate(self.streams) if s.result or not s.readers]

    def advance(self, *sizes: int) -> Ints:
        """Rows that every stream advances a step, (streams, sizes)."""
        rates = [self.rates[s.store] for s in self.streams]
        over = np.array([rate.numerator for rate in rates], np.int64)[:, None]
        under = np.array([rate.denominator for rate in rates], np.int64)[:, None]
        return np.array(sizes, np.int64) * over // under

    def _seen(self, begin: Ints, end: Ints, starts: Ints, again: npt.NDArray[np.bool_]) -> tuple[Ints, Ints, Ints]:
        """What every reader of every stream has yet to see before and after every step, and its end in the step."""
        readers = max((len(mine.readers) for mine in self.streams), default=0)
        first, later = np.full((2, len(self.streams), readers, len(again)), FAR, np.int64)
        until = np.zeros_like(first)
        for k, mine in enumerate(self.streams):
            for number, u in enumerate(mine.readers):
                out, seen = self.number[u], self.windows[u, mine.store]
                nothing = begin[out] >= np.where(again, end[out], self.extent[out])
                first[k, number] = np.where(nothing, FAR, np.maximum(begin[out] * seen.stride - seen.pad, 0))
                front = np.maximum(end[out] * seen.stride - seen.pad, 0)
                following = np.append(first[k, number, 1:], FAR)
                following[starts[1:] - 1] = FAR
                later[k, number] = np.where(again, following, np.where(end[out] >= self.extent[out], FAR, front))
                last = np.minimum((end[out] - 1) * seen.stride - seen.pad + seen.reach, end[k])
                until[k, number] = np.where(nothing, 0, last)
        return first, later, until


Floats = npt.NDArray[np.float64]
#: States of a stream; `DONE` and further: so many of its readers have run.
BEFORE, MADE, DONE = range(3)


def states_of(group: Group) -> int:
    """Return how many states the streams of a group have."""
    return DONE + 1 + max(len(stream.readers) for stream in group.streams)


@dataclass(frozen=True, eq=False)
class Columns:
    """The classes of all streams."""

    stream: Ints
    waiting: npt.NDArray[np.bool_]
    running: npt.NDArray[np.bool_]
    """`waiting`, `running`: the readers that have yet to see a column; of columns that are computed again in this
    visit, (readers + 1, classes). The piece is last.
    """
    new: npt.NDArray[np.bool_]
    """Whether what is new in this step of rows is there, (classes,)."""
    columns: Floats
    """How many columns there are, (classes, states, steps)."""


def columns_of(group: Group, across: Strips) -> Columns:
    """Return the classes of columns of a group's streams in all steps along columns."""
    codes, widths = [], []
    for state in range(states_of(group)):
        code, width = _segments(across, state)
        codes.append(code)
        widths.append(width)
    every, wide = np.stack(codes), np.stack(widths)  # (states, bits, streams, segments, steps)
    bits = np.moveaxis(every, 1, 0)
    some = wide > 0
    keys, place = np.unique(np.packbits(bits[:, some], axis=0), axis=1, return_inverse=True)
    stream = np.broadcast_to(np.arange(wide.shape[1])[:, None, None], wide.shape)[some]
    both, number = np.unique(np.stack([stream, place.ravel()]), axis=1, return_inverse=True)
    columns = np.zeros((both.shape[1], wide.shape[0], wide.shape[-1]))
    states, _, _, steps = np.nonzero(some)
    np.add.at(columns, (number.ravel(), states, steps), wide[some])
    known = np.unpackbits(keys[:, both[1]], axis=0, count=len(bits)).astype(np.bool_)
    readers = across.first_seen.shape[1] + 1
    return Columns(both[0], known[:readers], known[readers : 2 * readers], known[-1], columns)


def _segments(across: Strips, state: int) -> tuple[npt.NDArray[np.bool_], Ints]:
    """Runs of columns that are alike: which class, (bits, streams, segments, steps), and how wide they are."""
    count, readers, steps = across.first_seen.shape
    done = np.arange(readers)[:, None] < state - DONE
    left = np.where(done, across.later_seen, across.first_seen)
    right = np.where(done | (state == BEFORE), 0, across.until_seen)
    high = np.where(
        across.again,
        np.maximum(across.begin if state == BEFORE else across.next, right.max(axis=1, initial=0)),
        across.begin if state == BEFORE else across.end,
    )
    piece = np.full((count, 1, steps), FAR), np.zeros((count, 1, steps), np.int64)
    if state == MADE:
        piece, high = (across.begin[:, None], across.end[:, None]), across.end
    left, right = np.concatenate([left, piece[0]], axis=1), np.concatenate([right, piece[1]], axis=1)
    extent = np.broadcast_to(across.extent[:, None], high.shape)
    ends = right.max(axis=1), high, extent, np.zeros_like(high)
    places = np.concatenate([left, *(one[:, None] for one in ends)], axis=1)
    places = np.sort(np.minimum(places, extent[:, None]), axis=1)
    at = places[:, :-1]
    waiting = left[:, :, None] <= at[:, None]
    mine = np.append(~done, [[True]], axis=0)[:, None] & (at < right.max(axis=1)[:, None])[:, None]
    running = waiting & (~across.again | mine)
    new = at < high[:, None]
    code = np.concatenate([waiting, running, new[:, None]], axis=1)
    return np.moveaxis(code, 1, 0), np.diff(places, axis=1)


def rows_of(down: Strips, classes: Columns) -> Floats:
    """Return the rows of every class in all steps along rows, (classes, steps)."""
    rows = np.empty((len(classes.stream), len(down.again)))
    for at, k in enumerate(classes.stream):
        first = np.concatenate([down.first_seen[k], down.begin[None, k]])
        later, until = down.later_seen[k], np.concatenate([down.until_seen[k], down.end[None, k]])
        waiting, running = classes.waiting[:, at], classes.running[:, at]
        top = down.end[k] if classes.new[at] else down.begin[k]
        low = np.minimum(first[waiting].min(axis=0, initial=FAR), later[~waiting[:-1]].min(axis=0, initial=FAR))
        kept = np.maximum(top - low, 0)
        again = np.maximum(until[running].max(axis=0, initial=0) - first[running].min(axis=0, initial=FAR), 0)
        rows[at] = np.where(down.again, again if classes.new[at] else 0, kept)
    return rows
