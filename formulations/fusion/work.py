"""What every step of a plan computes, and which filters each of its transfers of weights brings.

Prices need ticks and bytes alone (`formulations.fusion.steps`); whoever carries a plan out needs rows and filters. An
example: a layer of 8 filters makes rows 0..3 in a visit, 4 of its filters stay. Its first step computes filters 0..3
(they come to stay) and the first block of the others, 4..5; its second step filters 6..7. Transfers of a step's weights
follow each other: first what is there for this step alone, then what stays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from formulations.fusion.steps import GroupSteps, NestSteps, Part
from hwmodels.timeline.schedule import Load
from instances.errors import InputError


class Work(NamedTuple):
    """Rows `begin` to `end` of a layer's result, columns `left` to `right`, channels (filters) `first` to `last`.

    Each up to before it.
    """

    layer: int
    begin: int
    end: int
    left: int
    right: int
    first: int
    last: int
    streamed: int = 0
    """So many of its last filters have weights that are there for this step alone."""


def work_of(source: GroupSteps | NestSteps) -> list[Work]:
    """Return what each step of a run computes.

    Raises InputError for runs whose steps are no whole rows of some filters: strips of columns, layers that take turns,
    weights of which a part of a filter stays, nests that cut more than filters.
    """
    return list(_of_nest(source) if isinstance(source, NestSteps) else _of_group(source))


def _of_group(steps: GroupSteps) -> Iterator[Work]:
    group, first = steps.group, steps.group.first
    names = f"{group.net.layers[first].name}..{group.net.layers[group.last].name}"
    if steps.counts.shape[1] > 1:
        raise InputError(f"{names}: strips have columns")
    if steps.together.any():
        raise InputError(f"{names}: layers take turns")
    if steps.gone.any():
        raise InputError(f"{names}: a part of a filter stays on chip")
    if (steps.owners != np.array(steps.layers)).any():
        raise InputError(f"{names}: some have one tensor of weights")
    spans = [steps.time.spans(k) for k in steps.layers]
    every = (each.tolist() for each in (steps.entry, steps.layer, steps.block))
    for i, (entry, k, block) in enumerate(zip(*every, strict=True)):
        layer = group.net.layers[first + k]
        outputs, row = layer.g * layer.m, entry // len(steps.layers)
        stay, fill, ahead = outputs - int(steps.streamed[0, k]), int(steps.fill[k]), int(steps.before[i])
        loaded, most = int(steps.loaded[i]), int(steps.filters[row, k])
        if block < 0:
            made = (block + ahead) * fill, (block + ahead + 1) * fill
        else:
            made = ahead * fill if block == 0 else stay + block * most, stay + block * most + loaded
        begin, end = spans[k][0][:, row].tolist()
        left, right = spans[k][1][:, 0].tolist()
        yield Work(first + k, begin, end, left, right, *made, loaded)


def _of_nest(steps: NestSteps) -> Iterator[Work]:
    layer, tiled = steps.layer, steps.tiled
    cut = [d for d in "bnrcij" if len(tiled.trees[d].start[-1]) > 1]
    if cut or (layer.g > 1 and layer.m > 1):
        raise InputError(
            f"{layer.name}: its nest cuts more than filters" if cut else f"{layer.name}: groups of filters"
        )
    _, channels = tiled.tiles("OUT", 0, "")
    for begin, end in zip(begins := np.flatnonzero(steps.begins), [*begins[1:], len(channels)], strict=True):
        yield Work(steps.number, 0, layer.r, 0, layer.c, int(channels[begin, 0]), int(channels[end - 1, 1]))


def rows_of(source: GroupSteps) -> list[tuple[int, int]]:
    """Return the rows of its stream that each transfer of a group moves; nothing of weights."""
    moves = [np.repeat(one.rows, one.number, axis=1).T for one in (source.loads, source.stores)]
    return [(int(begin), int(end)) for begin, end in np.concatenate(moves)]


def filters_of(source: GroupSteps | NestSteps, part: Part, work: list[Work]) -> list[tuple[int, int]]:
    """Return the filters, first and before which last, that each transfer of a run brings; none of other operands.

    Raises InputError where they are no whole filters.
    """
    found, mine = [(0, 0)] * len(part.moves), defaultdict[tuple[int, int], list[int]](list)
    for k, ((operand, t), one) in enumerate(zip(part.names, part.moves, strict=True)):
        if operand == "W" and isinstance(one, Load):
            mine[t, one.due].append(k)
    for (t, due), some in mine.items():
        step = work[due - 1]
        if isinstance(source, NestSteps):
            if len(some) > 1:
                raise InputError(f"{source.layer.name}: weights that other layers read stay on chip")
            found[some[0]] = (step.first, step.last) if len(mine) > 1 else (work[0].first, work[-1].last)
            continue
        each, at, left = int(source.size[t - source.group.first]), step.last - step.streamed, step.streamed
        for k in some:
            number, rest = divmod(part.moves[k].bytes, each)
            if rest:
                raise InputError(f"{source.group.net.layers[t].name}: a part of a filter is loaded")
            if left == 0:  # from here on those that stay
                at, left = step.first, -1
            found[k], at, left = (at, at + number), at + number, left - number if left > 0 else left
    return found
