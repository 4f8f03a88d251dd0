"""What every step of a plan computes, and which filters each of its transfers of weights brings.

Prices need ticks and bytes alone (`formulations.fusion.steps`); whoever carries a plan out needs rows and filters. An
example: a layer of 8 filters makes rows 0..3 in a visit, 4 of its filters stay. Its first step computes filters 0..3
(they come to stay) and the first block of the others, 4..5; its second step filters 6..7. Transfers of a step's weights
follow each other: first what is there for this step alone, then what stays.

A step of layers that take turns computes a block of channels of each of them, layer after layer. An example: two layers
of 8 channels in blocks of 4; a visit has two steps, each of channels 0..3 or 4..7 of the first, then of the second.

A step of a nest computes a box: rows of some filters, with some of the input channels (`low` to `high`), of a layer
without weights with some rows of its window (`top` to `bottom`). Where these are cut the sums of a box stay on chip
from its first step, which `opens` them, to its last one, which `closes` them. An example: two halves of the channels,
one after the other, two filters at a time; four steps, the first two open.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import numpy as np

from formulations.fusion.nest_steps import NestSteps
from formulations.fusion.orders import WHOLE
from formulations.fusion.steps import GroupSteps, Part
from hwmodels.fusion.replay.strips import seen
from hwmodels.timeline.schedule import Load
from instances.errors import InputError
from instances.network.workload import Layer


class Work(NamedTuple):
    """Rows `begin` to `end` of a layer's result, columns `left` to `right`, channels (filters) `first` to `last`.

    Each up to before it.
    """

    step: int
    """Of its run, from 1; one of layers that take turns has one for each."""
    layer: int
    begin: int
    end: int
    left: int
    right: int
    first: int
    last: int
    streamed: int = 0
    """So many of its last filters have weights that are there for this step alone."""
    low: int = 0
    high: int = WHOLE
    """Input channels of a group of filters."""
    opens: bool = True
    closes: bool = True
    """Whether sums begin, and become results."""
    top: int = 0
    bottom: int = WHOLE
    """Rows of the window."""


class Brought(NamedTuple):
    """Filters `first` to `last` that a transfer brings, of each input channels `low` to `high` (excluded)."""

    first: int
    last: int
    low: int = 0
    high: int = WHOLE


class Tile(NamedTuple):
    """Rows, channels and columns of an input or a result, as its layer counts them; each up to before the last."""

    rows: tuple[int, int]
    channels: tuple[int, int]
    columns: tuple[int, int]

    def meets(self, other: Tile) -> bool:
        """Whether both have some element."""
        each = zip(self, other, strict=True)
        return all(a < d and c < b for (a, b), (c, d) in each)


def work_of(source: GroupSteps | NestSteps) -> list[Work]:
    """Return what each step of a run computes, step after step.

    Raises InputError for runs whose steps are no whole rows of some filters: strips of columns, layers that take all
    their turns in one step, weights of which a part of a filter stays, nests that cut more than rows, filters, input
    channels and, without weights, rows of windows.
    """
    return list(_of_nest(source) if isinstance(source, NestSteps) else _of_group(source))


def _of_group(steps: GroupSteps) -> Iterator[Work]:
    group, first = steps.group, steps.group.first
    names = f"{group.net.layers[first].name}..{group.net.layers[group.last].name}"
    if steps.counts.shape[1] > 1:
        raise InputError(f"{names}: strips have columns")
    if steps.joint.any():
        raise InputError(f"{names}: layers take all their turns in one step")
    if steps.gone.any():
        raise InputError(f"{names}: a part of a filter stays on chip")
    if (steps.owners != np.array(steps.layers)).any():
        raise InputError(f"{names}: some have one tensor of weights")
    spans = [steps.time.spans(k) for k in steps.layers]
    for i, (entry, run) in enumerate(zip(steps.entry.tolist(), steps.layer.tolist(), strict=True)):
        row = entry // len(steps.layers)
        for k in np.flatnonzero(steps.runs == run).tolist():
            made, streamed = _in_turn(steps, i, k) if steps.together[k] else _filters(steps, i, k, row)
            begin, end = spans[k][0][:, row].tolist()
            left, right = spans[k][1][:, 0].tolist()
            yield Work(i + 1, first + k, begin, end, left, right, *made, streamed)


def _filters(steps: GroupSteps, i: int, k: int, row: int) -> tuple[tuple[int, int], int]:
    """The filters of a step of a layer, and how many of the last ones do not stay; none in a step for a load alone."""
    if steps.idle[i]:
        return (0, 0), int(steps.loaded[i])
    block, stay = int(steps.block[i]), int(steps.outputs[k] - steps.streamed[0, k])
    fill, ahead = int(steps.fill[k]), int(steps.before[i])
    loaded, most = int(steps.loaded[i]), int(steps.filters[row, k])
    if block < 0:
        return ((block + ahead) * fill, (block + ahead + 1) * fill), loaded
    return (ahead * fill if block == 0 else stay + block * most, stay + block * most + loaded), loaded


def _in_turn(steps: GroupSteps, i: int, k: int) -> tuple[tuple[int, int], int]:
    """The channels of a layer in a step of layers that take turns, and how many of the last filters do not stay."""
    channels, block = int(steps.outputs[k] // steps.turns[0, k]), int(steps.block[i])
    streamed = int(steps.in_turns(k, np.array([i]))[0]) // max(1, int(steps.size[k]))
    return (block * channels, (block + 1) * channels), streamed


def _of_nest(steps: NestSteps) -> Iterator[Work]:
    layer, tiled = steps.layer, steps.tiled
    if cut := [d for d in ("bcj" if layer.weights == "none" else "bcij") if len(tiled.trees[d].start[-1]) > 1]:
        raise InputError(f"{layer.name}: its nest cuts {cut[0]}: more than rows, filters and input channels")
    if any(load.any() for (operand, *_), _, load, _ in steps.moved if operand == "OUT"):
        raise InputError(f"{layer.name}: partial sums leave the chip")
    every, done = tiled.ranges(), dict[tuple[int, ...], int]()
    volume = prod((stop - start for start, stop in every.values()), start=np.ones(tiled.count, np.int64))
    for step, span in enumerate(steps.spans, 1):
        box = {d: (int(start[span].min()), int(stop[span].max())) for d, (start, stop) in every.items()}
        (g, h), (m, n), (low, high), rows, (top, bottom) = (box[d] for d in "gmnri")
        whole = prod(stop - start for start, stop in box.values()) == int(volume[span].sum())
        if not whole or (h - g > 1 and (n - m, high - low) != (layer.m, layer.n)):
            raise InputError(f"{layer.name}: a step of its nest computes no rows of filters that follow each other")
        filters = g * layer.m + m, (h - 1) * layer.m + n
        before = done.get((*rows, *filters), 0)
        done[*rows, *filters] = after = before + (high - low) * (bottom - top)
        yield Work(
            step, steps.number, *rows, 0, layer.c, *filters, 0, low, high, before == 0, after == layer.n * layer.kh,
            top, bottom,
        )  # fmt: skip
    if any(count != layer.n * layer.kh for count in done.values()):
        raise InputError(f"{layer.name}: steps of its nest add channels to parts of what others add to")


def rows_read(layer: Layer, one: Work, lacks: str) -> tuple[int, int]:
    """Return the rows of an input that a step reads, as its layer counts them; `lacks`: its pattern."""
    begin, end = seen(layer, "rows", (one.begin, one.end), lacks)
    if one.bottom - one.top < layer.kh:
        at = -layer.pad_top
        begin = max(begin, at + one.begin * layer.stride_h + one.top * layer.dilation_h)
        end = min(end, at + (one.end - 1) * layer.stride_h + (one.bottom - 1) * layer.dilation_h + 1)
    return begin, max(begin, end)


def tiles_of(source: NestSteps, operand: str) -> list[Tile]:
    """Return for every step of a nest what it fetches of its only input, if anything, or the result that it adds to."""
    (part,) = (one for one, *_ in source.moved if one[0] == operand)
    first, number = source.tiled.boxes(*part)["c"]
    every = (*source.tiled.tiles(*part), np.stack([first, first + number], axis=1))
    begins = [span.start for span in source.spans]
    sides = ([(int(a), int(b)) for a, b in one[begins]] for one in every)
    return [Tile(*tile) for tile in zip(*sides, strict=True)]


def rows_of(source: GroupSteps) -> list[tuple[int, int]]:
    """Return the rows of its stream that each transfer of a group moves; nothing of weights."""
    moves = [np.repeat(one.rows, one.number, axis=1).T for one in (source.loads, source.stores)]
    return [(int(begin), int(end)) for begin, end in np.concatenate(moves)]


def filters_of(source: GroupSteps | NestSteps, part: Part, work: list[Work]) -> list[Brought]:
    """Return the filters that each transfer of a run brings; none of other operands.

    Raises InputError where they are no whole filters.
    """
    found, mine = [Brought(0, 0)] * len(part.moves), defaultdict[tuple[int, int], list[int]](list)
    for k, ((operand, t), one) in enumerate(zip(part.names, part.moves, strict=True)):
        if operand == "W" and isinstance(one, Load):
            mine[t, one.due].append(k)
    steps = {(one.layer, one.step): one for one in work}
    for (t, due), some in mine.items():
        if isinstance(source, NestSteps):
            if len(some) > 1:
                raise InputError(f"{source.layer.name}: weights that other layers read stay on chip")
            tiles = "W" in source.tiled.skeleton.depth  # if not they stay from here on: all of them
            found[some[0]] = _brought(source, due) if tiles else Brought(work[0].first, work[-1].last)
            continue
        step, each = steps[t, due], int(source.size[t - source.group.first])
        at, left = step.last - step.streamed, step.streamed
        for k in some:
            number, rest = divmod(part.moves[k].bytes, each)
            if rest:
                raise InputError(f"{source.group.net.layers[t].name}: a part of a filter is loaded")
            if left == 0:  # from here on those that stay
                at, left = step.first, -1
            found[k], at, left = Brought(at, at + number), at + number, left - number if left > 0 else left
    return found


def _brought(source: NestSteps, step: int) -> Brought:
    """The filters that are loaded for a step of a nest."""
    boxes, at, m = source.tiled.boxes("W", 0, ""), source.spans[step - 1].start, source.layer.m
    (g, groups), (first, filters), (low, number) = ((int(a[at]), int(n[at])) for a, n in (boxes[d] for d in "gmn"))
    return Brought(g * m + first, (g + groups - 1) * m + first + filters, low, low + number)
