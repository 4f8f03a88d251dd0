"""What the pieces of one loop take where transfers overlap, whatever places it cuts at.

A pass is an iteration of the loops outside the loop, and with it one piece of those that loops over its dimension made
before. For every piece [a, b) that the loop may have, and every pass, `Passes` has the ticks of the steps inside it
(`hwmodels.nest.price.overlap`). They do not depend on where else the loop cuts: how much of a window is new follows
from where the piece begins, first and last visits of OUT from where it begins and ends. What operands move whose tiles
do not change in a pass is the same for all cuts: it stands before its first step and behind its last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.choices import Steps, Tree, numbered, trees_of
from hwmodels.nest.price.overlap import Part, Timeline
from hwmodels.nest.price.skeleton import Core, Skeleton
from hwmodels.schedule import Step
from instances.machine.machine import Machine
from instances.network.workload import Layer


@dataclass(frozen=True)
class Passes:
    """Ticks of N pieces in P passes; arrays are (P, N), of what stands around a pass (P,).

    With load l of the next step and store s of the step before, a piece of one step (`single`) takes
    ``max(first, l, s)``, any other ``max(first, s) + middle + max(last, l)``; `between` comes on top.
    """

    load: Ints
    first: Ints
    middle: Ints
    last: Ints
    store: Ints
    single: NDArray[np.bool_]
    head: Ints
    """What the first step of a pass loads whatever its piece is; `tail`: what the last one stores."""
    tail: Ints
    before: Ints
    """What the step before a pass takes at least; 0 of the first pass."""
    stored: Ints
    """What the step before a pass stores."""
    behind: Ints
    """What the step behind a pass takes at least; 0 of the last pass."""
    loaded: Ints
    """What the step behind a pass loads."""


def passes(
    layer: Layer,
    machine: Machine,
    skeleton: Skeleton,
    core: Core,
    steps: Steps,
    at: int,
    group: int,
    pieces: Ints,
    most: int,
) -> Passes | None:
    """Price `pieces` (N, 2) of the loop at a position of the order, between places of its piece `group`.

    `steps` say how the other loops cut, and what stands around the passes.
    """
    dim, level = numbered(skeleton.order)[at]
    trees = trees_of(core, steps)
    now = Timeline(layer, machine, skeleton, steps, trees)
    trees = {**trees, dim: _with(trees[dim], level, group, pieces, steps[dim])}
    if prod(len(tree.start[-1]) for tree in trees.values()) > most:
        return None
    some = Timeline(layer, machine, skeleton, steps, trees)
    ours = np.flatnonzero(some.levels[at].piece[dim] == group)
    inner = [part for part in some.parts if some.depth(part) > at]
    return _around(now, at, ours, inner, _of_pieces(some, at, ours, inner, len(pieces)))


def _with(tree: Tree, level: int, group: int, pieces: Ints, steps: Sequence[Step]) -> Tree:
    """The tree with all of these pieces in one group of a level, whatever they share; others as they are."""
    first, number = int(tree.first[level][group]), tree.number[level].copy()
    end = first + int(number[group])
    number[group] = len(pieces)
    one = Tree.of(int(tree.start[0][0]), int(tree.stop[0][0]), tuple(steps[:level]))
    start, stop = tree.start[level + 1], tree.stop[level + 1]
    one.add(
        np.concatenate([start[:first], pieces[:, 0], start[end:]]),
        np.concatenate([stop[:first], pieces[:, 1], stop[end:]]), number,
    )  # fmt: skip
    for step in steps[level + 1 :]:
        one.grow(step)
    return one


def _of_pieces(some: Timeline, at: int, ours: Ints, inner: Sequence[Part], pieces: int) -> dict[str, Any]:
    """What the steps of every piece take, by the operands that the loop moves."""
    begin = some.levels[at + 1].first
    end = np.append(begin[1:], some.count)
    rows = np.flatnonzero(np.isin(some.levels[at + 1].parent, ours)).reshape(len(ours), pieces)
    begin, end = begin[rows], end[rows]
    moved, busy = some.moved(inner), some.compute()
    single = end - begin == 1
    ahead = np.append(moved.ahead, 0)
    first = np.where(single, busy[begin], np.maximum(busy[begin], ahead[begin + 1]))
    last = np.where(single, busy[begin], np.maximum(busy[end - 1], moved.behind[end - 2]))
    full = np.maximum(np.maximum(busy, ahead[1:]), np.append(0, moved.behind[:-1]))
    middle = _between(full, np.minimum(begin + 1, end), np.maximum(end - 1, begin + 1)) + _between(
        moved.between, begin, end
    )
    return {
        "load": moved.ahead[begin], "first": first, "middle": middle, "last": last, "store": moved.behind[end - 1],
        "single": single,
    }  # fmt: skip


def _between(ticks: Ints, begin: Ints, end: Ints) -> Ints:
    total = np.append(0, np.cumsum(ticks))
    found: Ints = total[end] - total[begin]
    return found


def _around(now: Timeline, at: int, ours: Ints, inner: Sequence[Part], pieces: dict[str, Any]) -> Passes:
    """The passes with what stands around them."""
    begin = now.levels[at].first
    end = np.append(begin[1:], now.count)
    begin, end = begin[ours], end[ours]
    every, busy = now.moved(now.parts), now.compute()
    outer = now.moved([part for part in now.parts if part not in inner])
    ahead, behind = np.append(every.ahead, [0, 0]), np.append(every.behind, [0, 0])
    before = np.where(begin > 0, np.maximum(busy[begin - 1], behind[begin - 2] * (begin > 1)), 0)
    after = np.where(end < now.count, np.maximum(np.append(busy, 0)[end], ahead[end + 1]), 0)
    return Passes(
        **pieces, head=outer.ahead[begin], tail=outer.behind[end - 1], before=before,
        stored=behind[begin - 1] * (begin > 0), behind=after, loaded=ahead[end],
    )  # fmt: skip
