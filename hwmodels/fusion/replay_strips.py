"""The moments of a group of layers that runs strip by strip: what is loaded or made, and what stays on chip.

A visit is a step of rows and, inside it, a step of columns. In a visit, layer after layer: what it reads from outside
is loaded, it makes its piece, and maps whose last reader it was shrink to what later visits need. Example: two 3x3
convolutions a, b with padding 1 on 8 rows, in strips of 2 rows. When b has made rows 0..1, it has seen rows 0..2 of a;
next it needs rows 1..4, so rows 1..2 of a stay until the next step.

Layers in `Blocks` take turns: room is reserved for the sums of the last one; then, block of channels after block, room
for the block of every map between them, each layer makes its piece of it or adds it to the sums, and the maps between
shrink, the block of each. What the first one reads stays until the last is done.

Of every map its **area** on chip is three rectangles: columns behind the window (done with in this step of rows), those
of the window, and those ahead of it (of the step before).

    rows retained      behind: rows still needed after the step .. front;  window: rows needed before it .. front;
                       ahead: rows needed before it .. front before it
    rows recomputed    behind, ahead: none;  window: tail .. front
    columns retained   window: before the map is made in a visit, columns needed before .. front before; until its last
                       reader has run, needed before .. front; then needed after .. front
    columns recomputed window: none before; tail .. front; none after
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal, NamedTuple

from hwmodels.schedule import Blocks, FusedRun, Pace, Steps
from instances.workload import Layer

#: Rows or columns, from the first to before the last.
Span = tuple[int, int]
Kind = Literal["shrink", "load", "make", "reserve", "sums", "add"]
#: All channels, in place of one block of them.
ALL = -1


class AxisStep(NamedTuple):
    """A map in a step along an axis: the front before it, what the step makes, and the first needed before and after.

    Where the halo is recomputed, `need` is where the piece begins and `need_after` where that of the next step does.
    """

    before: int
    begin: int
    end: int
    need: int
    need_after: int


class Area(NamedTuple):
    """What lies on chip of a map: columns 0..low, low..high, and high..end of columns, with the rows of each."""

    low: int
    high: int
    end: int
    behind: Span
    window: Span
    ahead: Span

    @property
    def pixels(self) -> int:
        """Rows times columns of all three."""
        wide = self.low, self.high - self.low, self.end - self.high
        rows = self.behind, self.window, self.ahead
        return sum(columns * max(0, last - first) for columns, (first, last) in zip(wide, rows, strict=True))


class Moment(NamedTuple):
    """From now on a stream (number) has this area on chip; "load" and "make" bring a piece, empty if a span is.

    "sums" takes room for partial sums of a piece, "add" adds a block of channels to them, "make" then puts the result
    in their place. `block`: only these channels of a map between layers that take turns.
    """

    kind: Kind
    stream: int
    rows: Span
    columns: Span
    area: Area
    block: int = ALL


NOTHING = (0, 0)


def seen(layer: Layer, axis: str, outputs: Span) -> Span:
    """The input rows (columns) that a layer reads for some outputs, without padding."""
    if axis == "rows":
        stride, pad, size, reach = layer.stride_h, layer.pad_top, layer.h, (layer.kh - 1) * layer.dilation_h + 1
    else:
        stride, pad, size, reach = layer.stride_w, layer.pad_left, layer.l, (layer.kw - 1) * layer.dilation_w + 1
    first, last = outputs[0] * stride - pad, (outputs[1] - 1) * stride - pad + reach
    return max(0, first), min(size, last)


@dataclass(frozen=True)
class Walk:
    """A group of layers and how it runs; `layers` are those of the network."""

    layers: Sequence[Layer]
    run: FusedRun

    @property
    def visits(self) -> int:
        """Steps of rows times steps of columns."""
        return _count(self.run.rows) * _count(self.run.columns)

    def moments(self) -> Iterator[Moment]:
        """Yield what happens, visit by visit; a layer that makes nothing in a visit yields an empty piece."""
        return chain.from_iterable(self.each_visit())

    def each_visit(self) -> Iterator[list[Moment]]:
        """Yield the moments of every visit."""
        across = list(self._steps("columns"))
        for row in self._steps("rows"):
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
            for k in self._loads[t]:
                yield visit.moment("load", k, "alive")
            if t in turns:
                yield from self._turns(visit, turns[t])
            yield visit.moment("make", last - self.run.first, "alive")
            for k in dict.fromkeys((*self._ends[t], *self._ends[last])):
                if k not in range(t - self.run.first, last - self.run.first):  # these shrink turn by turn
                    yield visit.moment("shrink", k, "after")
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
        return frozenset(blocks.last - self.run.first for blocks in self.run.blocks)

    @cached_property
    def between(self) -> frozenset[int]:
        """The streams that are split into blocks."""
        return frozenset(self.turns) - self.summed

    def _turns(self, visit: _Visit, blocks: Blocks) -> Iterator[Moment]:
        """Block after block of the channels between some layers, up to the sums of the last one."""
        between = range(blocks.first - self.run.first, blocks.last - self.run.first)
        yield visit.moment("sums", between.stop, "before")
        for block in range(self.turns[between.stop]):
            for k in between:
                yield visit.moment("reserve", k, "alive", block)
            for k in between:
                yield visit.moment("make", k, "alive", block)
            yield visit.moment("add", between.stop, "before", block)
            for k in between:
                yield visit.moment("shrink", k, "after", block)

    @cached_property
    def _loads(self) -> dict[int, list[int]]:
        """Of every layer the streams that are loaded before it."""
        loads: dict[int, list[int]] = {t: [] for t in range(self.run.first, self.run.last + 1)}
        for k, stream in enumerate(self.run.streams):
            loads[stream.maker] += [k] if stream.outside else []
        return loads

    @cached_property
    def _ends(self) -> dict[int, list[int]]:
        """Of every layer the streams that it is the last to use."""
        ends: dict[int, list[int]] = {t: [] for t in range(self.run.first, self.run.last + 1)}
        for k, stream in enumerate(self.run.streams):
            ends[max((stream.maker, *stream.readers))].append(k)
        return ends

    # ---- one axis ----------------------------------------------------------------------------------------------------

    def _steps(self, axis: str) -> Iterator[list[AxisStep]]:
        """Step after step along an axis, every stream."""
        steps = self.run.rows if axis == "rows" else self.run.columns
        paces = [stream.rows if axis == "rows" else stream.columns for stream in self.run.streams]
        if steps.halo == "recompute":
            for k in range(steps.first, steps.last + 1):
                yield [_recomputed(pace, k, k == steps.last) for pace in paces]
            return
        before = [0] * len(paces)
        need = self._needs(axis, paces, before)
        for k in range(steps.first, steps.last + 1):
            front = [_clip(pace.step * k + pace.ahead, pace) for pace in paces]
            need_after = self._needs(axis, paces, front)
            yield [AxisStep(b, b, f, n, a) for b, f, n, a in zip(before, front, need, need_after, strict=True)]
            before, need = front, need_after

    def _needs(self, axis: str, paces: Sequence[Pace], fronts: Sequence[int]) -> list[int]:
        """For every stream the first row (column) that some reader has yet to see, at most its front."""
        needs = []
        for stream, front in zip(self.run.streams, fronts, strict=True):
            for u in stream.readers:
                out = u - self.run.first
                if fronts[out] < paces[out].end:
                    front = min(front, self._first_seen(self.layers[u], axis, fronts[out]))
            needs.append(front)
        return needs

    @staticmethod
    def _first_seen(layer: Layer, axis: str, output: int) -> int:
        """The first input row (column) under an output; padding holds none."""
        stride, pad = (layer.stride_h, layer.pad_top) if axis == "rows" else (layer.stride_w, layer.pad_left)
        return max(0, output * stride - pad)

    # ---- what stays --------------------------------------------------------------------------------------------------

    def area(self, stream: int, row: AxisStep, column: AxisStep, when: str) -> Area:
        """The area of a stream "before" its piece is made in a visit, "alive", or "after" its last reader has run."""
        if self.run.columns.halo == "recompute":
            place = column.need_after if when == "after" else column.begin
            low, high = place, column.end if when == "alive" else place
        else:
            low = column.need_after if when == "after" else column.need
            high = column.before if when == "before" else column.end
        end = self.run.streams[stream].columns.end
        if self.run.rows.halo == "recompute":
            return Area(low, high, end, NOTHING, (row.begin, row.end), NOTHING)
        return Area(low, high, end, (row.need_after, row.end), (row.need, row.end), (row.need, row.before))


@dataclass(frozen=True)
class _Visit:
    """A step of rows with one of columns, of every stream."""

    walk: Walk
    row: Sequence[AxisStep]
    column: Sequence[AxisStep]

    def moment(self, kind: Kind, k: int, when: str, block: int = ALL) -> Moment:
        """What happens to a stream, with its area from then on."""
        row, column = self.row[k], self.column[k]
        down, over = ((row.begin, row.end), (column.begin, column.end))
        if kind in ("shrink", "reserve"):
            down = over = NOTHING
        return Moment(kind, k, down, over, self.walk.area(k, row, column, when), block)


def channels(layer: Layer) -> int:
    """Channels of a layer's result."""
    return layer.g * layer.m


def _recomputed(pace: Pace, k: int, last: bool) -> AxisStep:
    """Step k of a map whose halo is made again."""
    begin, end = _tail(pace, k), _clip(pace.step * k + pace.ahead, pace)
    return AxisStep(begin, begin, end, begin, pace.end if last else _tail(pace, k + 1))


def _tail(pace: Pace, k: int) -> int:
    return min(_clip(pace.step * k + pace.behind, pace), _clip(pace.step * k + pace.ahead, pace))


def _clip(place: int, pace: Pace) -> int:
    return max(0, min(place, pace.end))


def _count(steps: Steps) -> int:
    return steps.last - steps.first + 1
