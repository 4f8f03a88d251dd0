"""What snake order moves: sums of products of vectors over the pieces of each dimension, for one nest.

Loops 1..L stand outside the Hold of an operand X, outermost first; n_j is how often loop j runs in a pass and x_j its
position (0 .. n_j - 1) in it.

**Snake.** Loop j runs backwards where x_1 + .. + x_{j-1} is odd. Between two steps one loop k advances, from x_k to
x_k + 1 or back, and the loops inside it are at an end. If x_k is odd, every loop inside k is at its first piece, before
and after. If x_k is even, the loops inside k are at their last pieces down to the first one, f, with an even number of
pieces, and at their first pieces inside f. Which of the two pieces of k comes first is decided by the sign
``(-1)**(x_1 + .. + x_{k-1})``, a product of one sign for each piece outside. So over all advances of k
(`_Advances`)

``moved = 1/2 * sum over directions, of sum over (ones, +-signs), of product over dimensions of sum over its pieces``

where the pieces of a dimension are those that the loops outside k make, each standing for the first or the last piece
in it at the Hold; for the dimension of k itself pairs of neighbours. X is fetched if its tile changes: always if it
depends on the dimension of k, else only if the two pieces of k hold different numbers of pieces of that same dimension,
one odd and one even: then f differs before and after, and loops between the two jump. In bytes, where nothing jumps and
nothing slides, this is all visits less the tiles that stay at turns,

``sum over k that X does not depend on: I_{k-1} * (ceil((n_k - 1)/2) * end_f + floor((n_k - 1)/2) * first)``,

with I_{k-1} the product over the loops outside, whole tiles summed over the dimensions that X depends on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.homes import operand_of
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.boxes import KINDS, axes_of, input_windows, runs_of
from hwmodels.nest.price.choices import KERNELS, Loops, Steps, Tree, fetching, numbered, trees_of
from hwmodels.nest.price.pieces import Pieces, Placed, Window
from hwmodels.nest.price.skeleton import Core, Skeleton
from hwmodels.outcome import Counts
from instances.machine.machine import Machine
from instances.network.workload import DIMS, RELEVANT, Layer, depends

#: Beyond all loops: no loop has an even number of pieces.
_NONE = 1 << 30
Mask = NDArray[np.bool_]


class _Ends:
    """Pieces of one dimension outside loop k, and where the loops inside them end.

    `loops` are the dimension's loops inside k down to the Hold: the number of each among all loops, and its level.
    """

    def __init__(self, tree: Tree, pieces: Ints, level: int, loops: list[int]) -> None:
        self.tree, self.pieces, self.level, self.loops = tree, pieces, level, loops
        self.trips: list[Ints] = []
        self.even = np.full(len(pieces), _NONE, np.int64)
        at = pieces
        for below, loop in enumerate(loops):
            number = tree.number[level + below][at]
            self.trips.append(number)
            self.even = np.where((self.even == _NONE) & (number % 2 == 0), loop, self.even)
            at = tree.first[level + below][at] + number - 1

    def leaves(self, last: int) -> Ints:
        """The pieces at the Hold where loops up to number `last` are at their last pieces, the others at the first."""
        at = self.pieces
        for below, loop in enumerate(self.loops):
            at = self.tree.first[self.level + below][at] + (
                self.tree.number[self.level + below][at] - 1 if loop <= last else 0
            )
        return at

    def still(self, low: int, high: int) -> Mask:
        """Whether the loops numbered low < number <= high have one piece each."""
        result = np.ones(len(self.pieces), np.bool_)
        for number, loop in zip(self.trips, self.loops, strict=True):
            if low < loop <= high:
                result &= number == 1
        return result

    def starts(self, first: int) -> Mask:
        """Whether `first` is the first even one among the loops of the other dimensions, as far as this one knows."""
        result: Mask = self.even == first if first in self.loops or first == _NONE else self.even > first
        return result


@dataclass(frozen=True)
class _Side:
    """A dimension in some advances: the tile before and after (pieces at the Hold), and the weight of each."""

    before: Ints
    after: Ints
    weight: Ints


class _Advances:
    """The counts of one operand in snake order."""

    def __init__(
        self,
        layer: Layer,
        machine: Machine,
        order: Loops,
        trees: Mapping[str, Tree],
        operand: str,
        lacks: str = "",
    ) -> None:
        self.layer, self.machine, self.order, self.trees, self.operand = layer, machine, order, trees, operand
        self.mine, self.lacks = depends(operand, lacks), lacks
        self.slides = machine.sliding and operand == "IN" and not layer.broadcast
        self.hold = {d: sum(dim == d for dim, _ in order) for d in DIMS}

    @property
    def turns(self) -> bool:
        """Whether snake order may change what is moved: a tile may stay, or slide along another axis, at a turn."""
        real = fetching(self.order, self.trees, self.operand, self.lacks)
        return any(self.order[j][0] not in self.mine for j in real) or (self.slides and len(real) > 1)

    def total(self, tensor: str, element: int, resident: int = 0) -> dict[str, int]:
        """Everything fetched (of OUT: all visits) of a tensor: "IN", "W", "OUT" or "BIAS"."""
        counter = _Counter(self, tensor, element, resident)
        origin = np.zeros(1, np.int64)
        first = counter.count(dict.fromkeys(DIMS, _Side(origin, origin, origin + 1)), None)
        twice = _add(first, first)
        for number, (dim, _) in enumerate(self.order):
            slides = dim in "rcij" and self.slides
            for sides, calm in self._classes(number):
                twice = _add(twice, counter.count(sides, None))
                if slides or dim not in self.mine:  # what does not jump stays, or all but its rest does
                    still = _only(sides, calm)
                    twice = _add(twice, counter.count(still, None), -1)
                if slides:
                    twice = _add(twice, counter.count(still, dim))
                elif dim not in self.mine and self.slides:
                    for one in "rcij":  # jumps along one axis slide too
                        jumps = _only(sides, {**calm, one: ~calm[one]})
                        twice = _add(_add(twice, counter.count(jumps, one)), counter.count(jumps, None), -1)
        return {kind: value // 2 for kind, value in twice.items()}

    def _classes(self, number: int) -> Iterator[tuple[dict[str, _Side], dict[str, Mask]]]:
        """Advances of loop `number`, and which pieces of the other dimensions of X do not jump."""
        dim, level = self.order[number]
        tree = self.trees[dim]
        outer = {d: sum(x == d for x, _ in self.order[:number]) for d in DIMS}
        inner = {d: [j for j, (x, _) in enumerate(self.order) if x == d and j > number] for d in DIMS}
        position = tree.position[level + 1]
        upper = np.flatnonzero(position > 0)
        left, right = (_Ends(tree, pieces, level + 1, inner[dim]) for pieces in (upper - 1, upper))
        others = {
            d: _Ends(t, np.arange(t.trips(outer[d])), outer[d], inner[d]) for d, t in self.trees.items() if d != dim
        }
        signs = {d: t.sign[outer[d]] for d, t in self.trees.items()}
        parent = np.repeat(tree.sign[level], tree.number[level])[upper]
        odd = position[left.pieces] % 2 == 1
        firsts = [*sorted({j for d, loops in inner.items() if d != dim for j in loops}), _NONE]
        groups = [(odd, -1, -1, {d: e.still(0, 0) for d, e in others.items()})]
        for before, after in sorted(set(zip(left.even[~odd].tolist(), right.even[~odd].tolist(), strict=True))):
            mine = ~odd & (left.even == before) & (right.even == after)
            groups += [
                (mine, min(before, f), min(after, f), {d: e.starts(f) for d, e in others.items()}) for f in firsts
            ]
        for pairs, low, high, chosen in groups:
            if not pairs.any() or not all(mask.any() for mask in chosen.values()):
                continue
            for backwards in (False, True):
                for signed in (False, True):
                    a, b = (right, left) if backwards else (left, right)
                    ends = (high, low) if backwards else (low, high)
                    weight = -1 if backwards and signed else 1
                    own = _Side(
                        a.leaves(ends[0])[pairs],
                        b.leaves(ends[1])[pairs],
                        weight * (parent if signed else np.ones_like(parent))[pairs],
                    )
                    sides, calm = {dim: own}, {}
                    for d, e in others.items():
                        weights = signs[d] if signed else np.ones_like(signs[d])
                        sides[d] = _some(_Side(e.leaves(ends[0]), e.leaves(ends[1]), weights), chosen[d])
                        if d in self.mine:
                            calm[d] = e.still(min(ends), max(ends))[chosen[d]]
                    yield sides, calm


def _some(side: _Side, mask: Mask) -> _Side:
    return _Side(side.before[mask], side.after[mask], side.weight[mask])


def _only(sides: Mapping[str, _Side], masks: Mapping[str, Mask]) -> dict[str, _Side]:
    return {d: _some(side, masks[d]) if d in masks else side for d, side in sides.items()}


def _add(one: dict[str, int], two: Mapping[str, int], factor: int = 1) -> dict[str, int]:
    return {kind: one[kind] + factor * two.get(kind, 0) for kind in one}


class _Counter:
    """Counts of the boxes of a tensor that the sides of all dimensions span."""

    def __init__(self, how: _Advances, tensor: str, element: int, resident: int) -> None:
        self.how, self.tensor, self.element = how, tensor, element
        self.kinds = KINDS - {"calls"} if tensor == "BIAS" else KINDS
        self.windows = input_windows(how.layer, resident)

    def count(self, sides: Mapping[str, _Side], slides: str | None) -> dict[str, int]:
        """Sum over all tiles after the advance; along the axis of `slides` only what the tile before does not have."""
        used: set[str] = set()

        def pieces(dim: str) -> Pieces:
            kernel = KERNELS.get(dim, "") if self.tensor == "IN" else ""
            used.update({dim, kernel})
            if kernel:
                return self._windows(dim, kernel, sides, slides in (dim, kernel))
            tree, side = self.how.trees[dim], sides[dim]
            level = self.how.hold[dim]
            begin = tree.start[level][side.after]
            return _weighted(begin, tree.stop[level][side.after] - begin, side.weight)

        axes = axes_of(self.how.layer, self.how.machine, self.tensor, pieces, self.how.lacks)
        rest = prod(int(sides[d].weight.sum()) for d in DIMS if d not in used)
        transfer = self.how.machine.transfer_of(operand_of(self.tensor))
        return {
            kind: rest * sum(constant * prod(int(v[0]) for v in vectors.values()) for constant, vectors in products)
            for kind, products in runs_of(axes, self.element, transfer, self.kinds).items()
        }

    def _windows(self, dim: str, kernel: str, sides: Mapping[str, _Side], slides: bool) -> Pieces:
        window, outer, inner = self.windows[dim], sides[dim], sides[kernel]
        lo, hi = self._interval(window, dim, kernel, outer.after, inner.after)
        if slides:
            first, end = self._interval(window, dim, kernel, outer.before, inner.before)
            back = (lo < first) & (first < end)
            hi = np.where(back, np.minimum(hi, first), hi)
            lo = np.where(~back & (first < end), np.maximum(lo, end), lo)
        weight = outer.weight[:, None] * inner.weight[None, :]
        return _weighted(lo.ravel(), np.maximum(hi - lo, 0).ravel(), weight.ravel())

    def _interval(self, window: Window, dim: str, kernel: str, outer: Ints, inner: Ints) -> tuple[Ints, Ints]:
        (r0, r1), (i0, i1) = self._range(dim, outer), self._range(kernel, inner)
        first, end = window.rows(r0[:, None], r1[:, None], i0, i1)
        return first, np.maximum(first, end)

    def _range(self, dim: str, leaves: Ints) -> tuple[Ints, Ints]:
        tree, level = self.how.trees[dim], self.how.hold[dim]
        return tree.start[level][leaves], tree.stop[level][leaves]


def _weighted(first: Ints, length: Ints, weight: Ints) -> Pieces:
    """The pieces of one chain, each counted so many times."""
    pieces = Pieces(length[None], weight[None])
    pieces.places = lambda: Placed.of(np.zeros_like(first), first, length, weight)
    return pieces


def snake_counts(layer: Layer, machine: Machine, skeleton: Skeleton, core: Core, steps: Steps) -> dict[str, Counts]:
    """Count what snake order moves: of the rows IN, W and PSUM those that it changes (results move as in any order)."""
    trees = trees_of(core, steps)
    found: dict[str, list[dict[str, int]]] = {}
    outside = numbered(skeleton.outside("IN"))
    inputs = [_Advances(layer, machine, outside, trees, "IN", lacks) for _, lacks in layer.loaded]
    if any(one.turns for one in inputs):
        found["IN"] = [
            one.total("IN", machine.in_bytes, resident)
            for one, (resident, _) in zip(inputs, layer.loaded, strict=True)
        ]  # fmt: skip
    ways = {
        op: _Advances(layer, machine, numbered(skeleton.outside(op)), trees, op) for op in layer.operands if op != "IN"
    }
    if "W" in ways and ways["W"].turns:
        found["W"] = [ways["W"].total("W", machine.w_bytes)]
        if layer.bias and machine.bias_bytes:
            found["W"].append(ways["W"].total("BIAS", machine.bias_bytes))
    if ways["OUT"].turns:
        found["PSUM"] = _partial_sums(layer, machine, ways["OUT"])
    return {row: sum((Counts(**part) for part in parts), Counts()) for row, parts in found.items()}


def _partial_sums(layer: Layer, machine: Machine, way: _Advances) -> list[dict[str, int]]:
    """Every visit but the last writes them, every one but the first reads them."""
    visits = way.total("OUT", machine.psum_bytes)
    leaves = {d: np.arange(t.trips(way.hold[d] if d in RELEVANT["OUT"] else 0)) for d, t in way.trees.items()}
    tiles = {d: _Side(x, x, np.ones_like(x)) for d, x in leaves.items()}
    once = _Counter(way, "OUT", machine.psum_bytes, 0).count(tiles, None)
    return [_add(visits, once, -1)] * 2 + [once] * machine.psum_first_read
