"""The order of loops between two Holds, where it matters: in snake order, and where inputs are broadcast.

**Snake order** (`turned`; docs/nest.md): the order of loops says what stays on chip at turns. Engines search nests as
if all loops ran forwards: no nest moves more bytes in snake order, so that is a plan, and by
`hwmodels.nest.price.turning` what it may still lose is known. Here the best of them is looked for among

* the `NEAR` nests that move least by an estimate, of those whose forward value is at most `SHARE` above the best plan;
* with the loops between two Holds in any order that swaps of neighbours lead to, as long as the price falls; the best
  of them also with fewer and larger steps, and with memory that goes from one tile to another: all steps as small as
  the pieces allow, one of them larger. (Forwards a tile that is larger than its pieces ask for is worth nothing.)

Estimate. X is fetched anew by each of the I passes of loops that it does not depend on. At each turn but the first one
of the last tiles stays, one of n if the loops of its own segment make n tiles, B bytes together:
``(I - 1) * B / n`` saved. IN that slides along one axis keeps at the turns of the other one what both windows share.
All engines share this step, so that they agree; it is no proof: bounds are.

**Broadcast inputs** (`orders_of`): the orders of loops between two Holds that stand for all.

Given
    an element-wise layer; D_k the dimensions that input k depends on; a nest of docs/nest.md. All inputs are held where
    IN is, but input k is moved again only by the loops down to the innermost real one over a dimension of D_k. The
    result depends on all dimensions: it is moved once whatever the order is, and so is an input of its shape.
Claim
    Let a class be the dimensions on which the same inputs depend. Of the orders of a segment's loops, those suffice in
    which the loops of a class are neighbours, that of the dimensions of all inputs is the first, and that of those of
    no broadcast input the last: one for every order of the other classes.
Proof
    Each step leaves all tiles as they are, so that no capacity changes, and moves no input more often.
    (a) Two loops of a class, x outside y: x moves inwards to y. An input that depends on both has a loop at y or inside
        it, so x, y and what was between them count for it as before (those count that it does not depend on). One that
        depends on neither is moved again by x only if a loop of its own lies inside x, which became rarer.
    (b) A loop that all depend on moves outwards: it is no loop that moves any of them again, and an input for which it
        was the innermost of its own now has its innermost one outside.
    (c) A loop that no broadcast input depends on moves inwards: it moves an input again only if a loop of that input
        lies inside it.
    With one pattern that is one order, and each input is moved once: first the loops that it depends on, then the
    others, in whose iterations it stays. With two patterns that share nothing (rows by columns) it is two orders.
Two loops over a dimension with no Hold between them become one, where the inner one is, as in
`formulations.tiling.tiling` (3): an input that depends on it has a loop there before and after; for one that does not,
(c) holds. Between the segments before and behind a Hold nothing moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from heapq import nsmallest
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from formulations.tiling.branch import Branch
from formulations.tiling.space import Pick, Space, vector
from hwmodels.nest.price.boxes import input_windows
from hwmodels.nest.price.choices import AXIS, S_DIMS
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.limits import operand_bytes
from hwmodels.nest.price.pieces import cut
from hwmodels.schedule import Hold, Item, Loop, Nest
from instances.network.workload import DIMS, RELEVANT, Layer, depends

#: Nests whose orders are tried, and how much more than the best they may move forwards.
NEAR, SHARE = 24, 0.05
#: By how many pieces fewer a loop is tried with.
FEWER = 6
Floats = NDArray[np.float64]


def turned(space: Space, objectives: tuple[str, ...], measure: str, best: Pick, late: Callable[[], bool]) -> Pick:
    """Return a plan whose turns keep more than those of the best plan found forwards, or that plan."""
    if not space.pins.allows("output", "any"):  # the order of loops is asked for
        return best
    near: list[tuple[float, int, Branch, int, int]] = []
    limit = int(best.measures[measure] * (1 + SHARE))
    for number, member in enumerate(m for m in space.members if not m.skeleton.line):
        branch = member.branch((measure,), {measure: limit})
        if not branch.empty:
            near = nsmallest(NEAR, [*near, *_promising(branch, measure, number)], key=lambda one: one[:2])
    for start in (best, *(Pick(branch, s, q, {}) for _, _, branch, s, q in near)):
        if late():
            return best
        pick = start if start.measures else Pick(start.branch, start.s, start.q, _measures(space, start.nest, best))
        best = min(best, _improved(space, objectives, pick, _swapped), key=lambda one: vector(one.measures, objectives))
    for changes in (coarser, _traded):
        if not late():
            best = _improved(space, objectives, best, changes)
    return best


def _promising(branch: Branch, measure: str, number: int) -> Iterator[tuple[float, int, Branch, int, int]]:
    """The choices of a branch with the least estimates."""
    values: Floats = np.max([t.matrix() for t in branch.tables(measure)], axis=0).astype(np.float64)
    for operand in branch.layer.operands:
        values -= _weight(branch, operand, measure) * _saved(branch, operand)
    values[~branch.feasible()] = np.inf
    few = min(NEAR, values.size - 1)
    for at in np.argpartition(values, few, axis=None)[: few + 1]:
        if np.isfinite(values.flat[at]):
            s, q = divmod(int(at), values.shape[1])
            yield float(values.flat[at]), number, branch, s, q


def _weight(branch: Branch, operand: str, measure: str) -> int:
    """What a byte of an operand adds to a measure."""
    machine = branch.machine
    ticks = machine.transfer_of(operand).byte_ticks
    return {"time": ticks, "energy": machine.byte_fj_of(operand)}.get(measure, 1)


class _Trips:
    """Trips of loops over the choices of a branch, as products of a spatial and a channel factor."""

    def __init__(self, branch: Branch) -> None:
        self.branch = branch
        self.sides = [np.ones(n) for n in branch.choices.shape]

    def times(self, dim: str, outer: int, inner: int) -> None:
        """Multiply by the pieces that the loops over a dimension from one level to another make of a piece."""
        choices, extent = self.branch.choices, self.branch.layer.extent(dim)
        made = [cut(extent, choices.steps[dim][:, :level]).number for level in (outer, inner)]
        values = (made[1] / made[0])[choices.index[AXIS[dim]]] if inner > outer else np.ones(1)
        side = 0 if AXIS[dim] in S_DIMS else 1
        self.sides[side] = self.sides[side] * values

    def matrix(self) -> Floats:
        """All choices (S, Q)."""
        product: Floats = np.multiply.outer(*self.sides)
        return product


def _saved(branch: Branch, operand: str) -> Floats:
    """Bytes of an operand that turns keep, about."""
    skeleton, layer, machine = branch.skeleton, branch.layer, branch.machine
    outside, mine = skeleton.outside(operand), RELEVANT[operand]
    first = max([0, *(k for k in skeleton.depth.values() if k < skeleton.depth[operand])])
    again, tiles = _Trips(branch), _Trips(branch)
    for dim in dict.fromkeys(outside):
        if dim not in mine:
            again.times(dim, 0, outside.count(dim))
        else:
            tiles.times(dim, outside[:first].count(dim), outside.count(dim))
    moved = operand_bytes(layer, machine)
    every = moved.get(operand, 0) * (2 * machine.psum_bytes / machine.out_bytes if operand == "OUT" else 1)
    saved: Floats = (again.matrix() - 1) * every / tiles.matrix()
    if operand == "IN" and machine.sliding:
        for dim, window in input_windows(layer).items():
            shared = max(0, window.reach - window.stride)
            rows = _Trips(branch)
            rows.times(dim, 0, outside.count(dim))
            saved += again.matrix() * every * shared * (rows.matrix() - 1) / window.size / tiles.matrix()
    return saved


def _improved(
    space: Space, objectives: tuple[str, ...], best: Pick, changes: Callable[[Layer, Nest], Iterator[Nest]]
) -> Pick:  # fmt: skip
    """The plan after changes of one kind, as long as each is better, fits and is in the space."""
    improved = True
    while improved:
        improved = False
        for nest in changes(space.layer, best.nest):
            measures = _measures(space, nest, best)
            better = measures and vector(measures, objectives) < vector(best.measures, objectives)
            if better and space.contains(nest):
                best, improved = replace(best, measures=measures, order=nest), True
                break
    return best


def _measures(space: Space, nest: Nest, like: Pick) -> dict[str, int]:
    """The price of a nest, in the measures that another plan has; nothing if it does not fit."""
    outcome, machine = price(space.layer, space.machine, nest), space.machine
    if any(size > machine.memories[name] for name, size in outcome.occupancy_bytes.items()):
        return {}
    on_chip = {"ocm": max(outcome.occupancy_bytes.values())} if "ocm" in like.measures else {}
    return {**outcome.measures, **on_chip}


def _swapped(_: Layer, nest: Nest) -> Iterator[Nest]:
    """The nest with two neighbouring loops over different dimensions swapped."""
    items = nest.items
    for at in range(len(items) - 1):
        one, two = items[at], items[at + 1]
        if isinstance(one, Loop) and isinstance(two, Loop) and one.dim != two.dim:
            yield Nest((*items[:at], two, one, *items[at + 2 :]))


def coarser(layer: Layer, nest: Nest) -> Iterator[Nest]:
    """The nest without one of its loops, or with one in steps twice as large, or larger by one."""
    items = nest.items
    for at, item in enumerate(items):
        if isinstance(item, Loop) and all(isinstance(step, int) for step in nest.loops()[item.dim]):
            outer = [one.step for one in items[:at] if isinstance(one, Loop) and one.dim == item.dim]
            size = min([layer.extent(item.dim), *outer])
            yield Nest((*items[:at], *items[at + 1 :]))
            for step in (2 * item.step, item.step + 1):
                if step < size:
                    yield Nest((*items[:at], Loop(item.dim, step), *items[at + 1 :]))


def _traded(layer: Layer, nest: Nest) -> Iterator[Nest]:
    """The nest in the smallest steps that make as many pieces, one of them larger; also with results one by one."""
    if not nest.even:
        return
    items, size = list(nest.items), {d: layer.extent(d) for d in DIMS}
    for at, item in enumerate(items):
        if isinstance(item, Loop):
            size[item.dim] = min(size[item.dim], _step(layer.extent(item.dim), -(-layer.extent(item.dim) // item.step)))
            items[at] = Loop(item.dim, size[item.dim])
    for number, item in enumerate(items):
        if isinstance(item, Loop):
            extent = layer.extent(item.dim)
            pieces = -(-extent // item.step)
            outer = [one.step for one in items[:number] if isinstance(one, Loop) and one.dim == item.dim]
            for fewer in range(pieces - 1, max(0, pieces - 1 - FEWER), -1):
                larger = _step(extent, fewer)
                if larger < min([extent, *outer]):
                    found = [*items[:number], Loop(item.dim, larger), *items[number + 1 :]]
                    yield Nest(tuple(found))
                    yield Nest(tuple(_one_by_one(layer, found)))


def _one_by_one(layer: Layer, items: Sequence[Item]) -> Iterator[Item]:
    """The items with OUT as the last Hold, an element of what the loops before the others' Holds cut."""
    (out,) = (item for item in items if isinstance(item, Hold) and item.operand == "OUT")
    last = max((at for at, item in enumerate(items) if isinstance(item, Hold) and item is not out), default=-1)
    outside = [item for item in items[: last + 1] if item is not out]
    steps = {item.dim: item.step for item in outside if isinstance(item, Loop)}
    yield from outside
    yield from (Loop(d, 1) for d in DIMS if d in RELEVANT["OUT"] and steps.get(d, layer.extent(d)) > 1)
    yield out


def _step(extent: int, pieces: int) -> int:
    """The smallest step that makes no more pieces than these."""
    return -(-extent // pieces)


#: The dimensions of the result that a row-major order cuts in this order, outermost first.
RASTER = ("b", "r", "c")


def orders_of(layer: Layer, dims: tuple[str, ...], *, row_major: bool = False) -> Iterator[tuple[str, ...]]:
    """Yield the orders of loops over some dimensions that stand for all, outermost first.

    Of a layer without broadcast inputs that is the order given; with `row_major` only orders that keep `RASTER`.
    """
    if not layer.broadcast:
        yield dims
    elif row_major:
        raster = tuple(d for d in RASTER if d in dims)
        yield from (order for order in permutations(dims) if tuple(d for d in order if d in RASTER) == raster)
    else:
        patterns = sorted({lacks for lacks in layer.patterns if lacks})
        classes: dict[tuple[bool, ...], tuple[str, ...]] = {}
        for d in dims:
            key = tuple(d in depends("IN", lacks) for lacks in patterns)
            classes[key] = (*classes.get(key, ()), d)
        first, last = (classes.pop((value,) * len(patterns), ()) for value in (True, False))
        for middle in permutations(classes.values()):
            yield (*first, *(d for part in middle for d in part), *last)
