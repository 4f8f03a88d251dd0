"""The moments of a group of layers that runs strip by strip: what is loaded or made, and what stays on chip.

A visit is a step of rows and, inside it, a step of columns. In a visit, layer after layer: what it reads from outside
is loaded, it makes its piece, and maps whose last reader it was shrink to what later visits need. Example: two 3x3
convolutions a, b with padding 1 on 8 rows, in strips of 2 rows. When b has made rows 0..1, it has seen rows 0..2 of a;
next it needs rows 1..4, so rows 1..2 of a stay until the next step.

Layers in `Blocks` take turns: room is reserved for the sums of the last one, or for its piece if it adds nothing up;
then, block of channels after block, room for the block of every map between them, each layer makes its piece of it or
adds it to the sums, and the maps between shrink, the block of each. What the first one reads stays until the last is
done.

Of every map its **area** on chip is three rectangles: columns behind the window (done with in this step of rows), those
of the window, and those ahead of it (of the step before).

    rows retained      behind: rows still needed after the step .. front;  window: rows needed before it .. front;
                       ahead: rows needed before it .. front before it
    rows recomputed    behind, ahead: none;  window: tail .. front
    columns retained   window: before the map is made in a visit, columns needed before .. front before; until its last
                       reader has run, needed before .. front; then needed after .. front
    columns recomputed window: none before; tail .. front; none after

**Seen.** What readers have yet to see of the maps of a group follows from the windows of all pieces that they will
make. Example: two 3x3 convolutions a, b with padding 1, in strips of 2 rows. The windows of b on the map of a are rows
0..2, 1..4, 3..6, ...: when b has made its second piece, it has yet to see rows 3..6, and a gives back what is above.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hwmodels.schedule import Blocks, FusedRun, Pace, Steps
from instances.network.stores import Stores
from instances.network.workload import Layer

#: Rows or columns, from the first to before the last.
Span = tuple[int, int]
Kind = Literal["shrink", "load", "make", "reserve", "sums", "add"]
#: All channels, in place of one block of them.
ALL = -1


class AxisStep(NamedTuple):
    """A map in a step along an axis: the front before it, what the step makes, and the first needed before and after.

    Where the halo is recomputed, `need` is where the piece begins and `need_after` where that of the next step does.
    `seen`: for every reader of the map what it has yet to see.
    """

    before: int
    begin: int
    end: int
    need: int
    need_after: int
    seen: tuple[Seen, ...]


class Seen(NamedTuple):
    """What a reader sees of a map in a step along an axis: from `first` to before `end`; next it begins at `after`.

    `FAR` where it sees nothing; where the halo is retained `first` is what it sees next, in whatever step.
    """

    first: int
    end: int
    after: int


class Area(NamedTuple):
    """What lies on chip of a map: columns left..right with rows first..end of them, each up to before the second."""

    parts: tuple[tuple[Span, Span], ...]

    @property
    def pixels(self) -> int:
        """Rows times columns."""
        return sum((right - left) * (end - first) for (left, right), (first, end) in self.parts)


class Moment(NamedTuple):
    """From now on a stream (number) has this area on chip; "load" and "make" bring a piece, empty if a span is.

    "sums" takes room for partial sums of a piece, "add" adds a block of channels to them, "make" then puts the result
    in their place. Where nothing is added up, "add" makes a block of the piece. `block`: only these channels of a map
    between layers that take turns.
    """

    kind: Kind
    stream: int
    rows: Span
    columns: Span
    area: Area
    block: int = ALL


NOTHING = (0, 0)
#: A row or column that no map has.
FAR = 2**40
#: What lies on chip of a map "before" its piece is made in a visit, while it is "made" or loaded, and from then on when
#: so many of its readers have run.
When = Literal["before", "made"] | int


def seen(layer: Layer, axis: str, outputs: Span, lacks: str = "") -> Span:
    """The input rows (columns) that a layer reads for some outputs, without padding.

    `lacks`: the dimensions along which the input has one element only.
    """
    if axis[0] in lacks:
        return 0, 1
    if axis == "rows":
        stride, pad, size, reach = layer.stride_h, layer.pad_top, layer.h, (layer.kh - 1) * layer.dilation_h + 1
    else:
        stride, pad, size, reach = layer.stride_w, layer.pad_left, layer.l, (layer.kw - 1) * layer.dilation_w + 1
    first, last = outputs[0] * stride - pad, (outputs[1] - 1) * stride - pad + reach
    return max(0, first), min(size, last)


def as_seen(found: Stores, run: FusedRun) -> Stores:
    """The network as the layers of a group see it: of maps that are sampled those pixels alone that are loaded."""
    every = range(run.first, run.last + 1) if run.sampled else ()
    return found.sampled([t for t in every if set(run.sampled).intersection(found.reads[t])])


@dataclass(frozen=True)
class Walk:
    """A group of layers of a network, and how it runs; `found`: the network as they see it (`as_seen`)."""

    found: Stores
    run: FusedRun

    def __post_init__(self) -> None:
        object.__setattr__(self, "found", as_seen(self.found, self.run))

    @property
    def layers(self) -> Sequence[Layer]:
        """Those of the network."""
        return self.found.layers

    def sees(self, u: int, stream: int, axis: str, outputs: Span) -> Span:
        """The rows (columns) of a stream that layer u, a reader of it, reads for some outputs."""
        lacks = self.found.operand(u, self.run.streams[stream].store).lacks
        return seen(self.layers[u], axis, outputs, lacks)

    @property
    def visits(self) -> int:
        """Steps of rows times steps of columns."""
        return _count(self.run.rows) * _count(self.run.columns)

    def each_visit(self) -> Iterator[list[Moment]]:
        """Yield the moments of every visit; a layer that makes nothing in one yields an empty piece."""
        across = list(self.steps("columns"))
        for row in self.steps("rows"):
            for column in across:
                yield list(self._visit(_Visit(self, row, column)))

    def _visit(self, visit: _Visit) -> Iterator[Moment]:
        """Layer after layer, or some of them in turns."""
        turns = {blocks.first: blocks for blocks in self.run.blocks}
        for k in range(len(self.run.streams)):
            yield visit.moment("shrink", k, "before")
        t = self.run.first
        while t <= self.run.last:
            last = turns[t].last if t in turns else t
            for u in range(t, last + 1):
                for k in self._loads[u]:
                    yield visit.moment("load", k, "made")
            if t in turns:
                yield from self._turns(visit, turns[t])
            yield visit.moment("make", last - self.run.first, "made")
            for k in dict.fromkeys((*self._used(t), *self._used(last))):
                if k not in range(t - self.run.first, last - self.run.first):  # these shrink turn by turn
                    yield visit.moment("shrink", k, sum(u <= last for u in self.run.streams[k].readers))
            t = last + 1

    @cached_property
    def turns(self) -> dict[int, int]:
        """Into how many blocks of channels a stream of layers that take turns is split, or its sums are made of."""
        return {
            t - self.run.first: channels(self.layers[blocks.first]) // blocks.channels
            for blocks in self.run.blocks
            for t in range(blocks.first, blocks.last + 1)
        }

    @cached_property
    def summed(self) -> frozenset[int]:
        """The streams that are made of sums over blocks."""
        return frozenset(k for k in self.ends if self.layers[self.run.first + k].g == 1)

    @cached_property
    def ends(self) -> frozenset[int]:
        """The streams that turns end with: made of sums over blocks, or block by block in room for all channels."""
        return frozenset(blocks.last - self.run.first for blocks in self.run.blocks)

    @cached_property
    def between(self) -> frozenset[int]:
        """The streams that are split into blocks."""
        return frozenset(self.turns) - self.ends

    def _turns(self, visit: _Visit, blocks: Blocks) -> Iterator[Moment]:
        """Block after block of the channels between some layers, up to the sums or the channels of the last one."""
        between = range(blocks.first - self.run.first, blocks.last - self.run.first)
        sums = between.stop in self.summed
        when: When = "before" if sums else "made"
        yield visit.moment("sums" if sums else "reserve", between.stop, when)
        for block in range(self.turns[between.stop]):
            for k in between:
                yield visit.moment("reserve", k, "made", block)
            for k in between:
                yield visit.moment("make", k, "made", block)
            yield visit.moment("add", between.stop, when, block)
            for k in between:
                yield visit.moment("shrink", k, 1, block)

    @cached_property
    def _loads(self) -> dict[int, list[int]]:
        """Of every layer the streams that are loaded before it."""
        loads: dict[int, list[int]] = {t: [] for t in range(self.run.first, self.run.last + 1)}
        for k, stream in enumerate(self.run.streams):
            loads[stream.maker] += [k] if stream.outside else []
        return loads

    def _used(self, t: int) -> Iterator[int]:
        """The streams that a layer reads or makes."""
        for k, stream in enumerate(self.run.streams):
            if t in stream.readers or (not stream.outside and stream.maker == t):
                yield k

    # ---- one axis ----------------------------------------------------------------------------------------------------

    def steps(self, axis: str) -> Iterator[list[AxisStep]]:
        """Step after step along an axis, every stream."""
        steps = self.run.rows if axis == "rows" else self.run.columns
        paces = [stream.rows if axis == "rows" else stream.columns for stream in self.run.streams]
        if steps.halo == "recompute":
            for k in range(steps.first, steps.last + 1):
                now = [(_tail(pace, k), _clip(pace.step * k + pace.ahead, pace)) for pace in paces]
                then = [(_tail(pace, k + 1) if k < steps.last else pace.end, pace.end) for pace in paces]
                seen = self._windows(axis, now, then if k < steps.last else [NOTHING] * len(paces))
                yield [AxisStep(b, b, e, b, a, s) for (b, e), (a, _), s in zip(now, then, seen, strict=True)]
            return
        before, need = [0] * len(paces), self._needs(axis, paces, [0] * len(paces))
        for k in range(steps.first, steps.last + 1):
            front = [_clip(pace.step * k + pace.ahead, pace) for pace in paces]
            after = self._needs(axis, paces, front)
            for_all = zip(before, front, need, after, strict=True)
            yield [
                AxisStep(b, b, f, min((b, *n)), min((f, *a)),
                         tuple(Seen(one, f, then) for one, then in zip(n, a, strict=True)))
                for b, f, n, a in for_all
            ]  # fmt: skip
            before, need = front, after

    def _needs(self, axis: str, paces: Sequence[Pace], fronts: Sequence[int]) -> list[list[int]]:
        """For every stream the first row (column) that each of its readers has yet to see; FAR if it has seen all."""
        return [
            [
                self._first_seen(u, k, axis, fronts[u - self.run.first])
                if fronts[u - self.run.first] < paces[u - self.run.first].end
                else FAR
                for u in stream.readers
            ]
            for k, stream in enumerate(self.run.streams)
        ]

    def _windows(self, axis: str, now: Sequence[Span], then: Sequence[Span]) -> list[tuple[Seen, ...]]:
        """For every stream what each reader sees for what it makes in a step, and where it begins in the next one."""
        made = []
        for k, (stream, (_, end)) in enumerate(zip(self.run.streams, now, strict=True)):
            mine = []
            for u in stream.readers:
                this, following = now[u - self.run.first], then[u - self.run.first]
                first, last = self.sees(u, k, axis, this) if this[0] < this[1] else (FAR, 0)
                begins = self.sees(u, k, axis, following)[0] if following[0] < following[1] else FAR
                mine.append(Seen(first, min(last, end), begins))
            made.append(tuple(mine))
        return made

    def _first_seen(self, u: int, stream: int, axis: str, output: int) -> int:
        """The first row (column) of a stream that layer u reads for an output; padding holds none."""
        layer = self.layers[u]
        if axis[0] in self.found.operand(u, self.run.streams[stream].store).lacks:
            return 0
        stride, pad = (layer.stride_h, layer.pad_top) if axis == "rows" else (layer.stride_w, layer.pad_left)
        return max(0, output * stride - pad)

    # ---- what stays --------------------------------------------------------------------------------------------------

    def area(self, stream: int, row: AxisStep, column: AxisStep, when: When) -> Area:
        """The area of a stream from some moment on."""
        run = 0 if isinstance(when, str) else when
        needs = [
            _Need(x.after if i < run else x.first, x.end, y.first, y.end, y.after, i < run)
            for i, (x, y) in enumerate(zip(column.seen, row.seen, strict=True))
        ]
        again = self.run.rows.halo == "recompute", self.run.columns.halo == "recompute"
        if when == "made":
            needs.append(_Need(column.begin, column.end, row.begin, row.end, FAR, done=False))
        high = column.before if when == "before" else column.end
        if again[1] and when != "made":
            waiting = [need.right for need in needs if not need.done] if when != "before" else []
            there = 0 if again[0] else column.begin if when == "before" else column.need_after
            high = max([there, *waiting])
        end = self.run.streams[stream].columns.end
        parts = []
        for left, right in pairwise(sorted({0, high, end, *(min(need.left, end) for need in needs)})):
            if again[0]:
                mine = [need for need in needs if need.left <= left and not (all(again) and need.done)]
                rows = _seen(mine) if left < high else NOTHING
            else:
                top = row.end if left < high else row.before
                first = min((need.first if need.left <= left else need.after for need in needs), default=top)
                rows = min(first, top), top
            if rows[0] < rows[1]:
                parts.append(((left, right), rows))
        return Area(tuple(parts))


class _Need(NamedTuple):
    """What a reader needs of a map: columns from `left` on, those up to `right` in this visit.

    Of these it sees rows `first` to before `end` in this step of rows, and those from `after` on in later ones.
    """

    left: int
    right: int
    first: int
    end: int
    after: int
    done: bool
    """Whether it has run in this visit."""


def _seen(needs: Sequence[_Need]) -> Span:
    """The rows that some readers see."""
    return (min(need.first for need in needs), max(need.end for need in needs)) if needs else NOTHING


@dataclass(frozen=True)
class _Visit:
    """A step of rows with one of columns, of every stream."""

    walk: Walk
    row: Sequence[AxisStep]
    column: Sequence[AxisStep]

    def moment(self, kind: Kind, k: int, when: When, block: int = ALL) -> Moment:
        """What happens to a stream, with its area from then on."""
        row, column = self.row[k], self.column[k]
        down, over = ((row.begin, row.end), (column.begin, column.end))
        if kind in ("shrink", "reserve"):
            down = over = NOTHING
        return Moment(kind, k, down, over, self.walk.area(k, row, column, when), block)


def channels(layer: Layer) -> int:
    """Channels of a layer's result."""
    return layer.g * layer.m


def _tail(pace: Pace, k: int) -> int:
    return min(_clip(pace.step * k + pace.behind, pace), _clip(pace.step * k + pace.ahead, pace))


def _clip(place: int, pace: Pace) -> int:
    return max(0, min(place, pace.end))


def _count(steps: Steps) -> int:
    return steps.last - steps.first + 1


class Window(NamedTuple):
    """Rows and columns that a layer sees for its piece, or the rows and columns of a piece."""

    rows: Span
    columns: Span


class Reads:
    """Windows by layer and visit. `begin` and `done` say how far the group is."""

    def __init__(self, walk: Walk) -> None:
        self.walk, self.run = walk, walk.run
        self.across = walk.run.columns.last - walk.run.columns.first + 1
        self.pieces: list[dict[int, Window]] = []
        """Of every visit what is made or loaded of a stream."""
        for moments in walk.each_visit():
            made = {}
            for moment in moments:
                (top, bottom), (left, right) = moment.rows, moment.columns
                if moment.kind in ("make", "load") and top < bottom and left < right:
                    made[moment.stream] = Window(moment.rows, moment.columns)
            self.pieces.append(made)
        self.visit = 0
        self.ran: set[int] = set()
        self._later = {
            (k, u): self._next_in_later_rows(k, u) for k, stream in enumerate(self.run.streams) for u in stream.readers
        }

    def begin(self, visit: int) -> None:
        """A visit begins."""
        self.visit, self.ran = visit, set()

    def done(self, layers: range) -> None:
        """Layers have made their pieces."""
        self.ran |= set(layers)

    def needed(self, k: int, shape: tuple[int, ...], after: int | None) -> npt.NDArray[np.bool_]:
        """The pixels of a stream that some reader has yet to see, or that lie between such.

        `after`: a layer of those that take turns, by its place in the group, that has run as well.
        """
        again = self.run.rows.halo == "recompute", self.run.columns.halo == "recompute"
        low, high = np.full(shape[1], shape[0]), np.zeros(shape[1], np.int64)
        furthest, rows = 0, self._piece_rows(k)
        for u in self.run.streams[k].readers:
            ran = u in self.ran or u - self.run.first == after
            now = None if ran else self._window(k, u, self.visit)
            soon = self._next_in_rows(k, u) if now is None and not all(again) else None
            furthest = max(furthest, now.columns[1] if now else 0)
            here = now or soon
            if here is not None:
                _lower(low, high, here, here.rows[1] if again[0] else shape[0])
            later = None if again[0] else self._later[k, u][self.visit // self.across]
            if later is not None:
                _lower(low, high, later, shape[0])
        y, x = np.arange(shape[0])[:, None], np.arange(shape[1])
        needed: npt.NDArray[np.bool_] = (y >= low) & (y < high)
        if again[1]:  # what the next visit makes again goes when nobody sees it in this one
            furthest = furthest if again[0] else max(furthest, self._next_column(k, shape[1]))
            needed &= (x < furthest) | (y < rows[0])
        return needed

    def _window(self, k: int, u: int, visit: int) -> Window | None:
        """What a layer sees of a stream in a visit."""
        piece = self.pieces[visit].get(u - self.run.first)
        if piece is None:
            return None
        return Window(self.walk.sees(u, k, "rows", piece.rows), self.walk.sees(u, k, "columns", piece.columns))

    def _next_in_rows(self, k: int, u: int) -> Window | None:
        """What a layer sees next of a stream in this step of rows."""
        end = (self.visit // self.across + 1) * self.across
        return next((w for v in range(self.visit + 1, end) if (w := self._window(k, u, v)) is not None), None)

    def _next_in_later_rows(self, k: int, u: int) -> list[Window | None]:
        """For every step of rows what a layer sees first of a stream in a later one."""
        found: list[Window | None] = []
        following: Window | None = None
        for step in reversed(range(len(self.pieces) // self.across)):
            found.append(following)
            visits = range(step * self.across, (step + 1) * self.across)
            windows = (self._window(k, u, v) for v in visits)
            following = next((window for window in windows if window is not None), following)
        return found[::-1]

    def _piece_rows(self, k: int) -> Span:
        """The rows that are new in this step of rows; none if nothing is made of the stream in it."""
        first = self.visit // self.across * self.across
        pieces = (self.pieces[v].get(k) for v in range(first, first + self.across))
        return next((piece.rows for piece in pieces if piece is not None), (2**40, 2**40))

    def _next_column(self, k: int, columns: int) -> int:
        """Where the next piece of a stream in this step of rows begins."""
        end = (self.visit // self.across + 1) * self.across
        pieces = (self.pieces[v].get(k) for v in range(self.visit + 1, end))
        return next((piece.columns[0] for piece in pieces if piece is not None), columns)


def _lower(low: npt.NDArray[np.int64], high: npt.NDArray[np.int64], window: Window, bottom: int) -> None:
    """A reader needs rows of columns from the first of its window on."""
    left = window.columns[0]
    low[left:], high[left:] = np.minimum(low[left:], window.rows[0]), np.maximum(high[left:], bottom)
