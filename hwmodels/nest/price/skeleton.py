"""A nest without its step sizes: spatial cuts, the order of the loops, and the depth and buffers of every Hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise

from hwmodels.schedule import Hold, Item, Loop, Nest, Spatial, Step
from instances.errors import InputError
from instances.network.workload import DIMS, RELEVANT, Layer, depends

Range = tuple[int, int]


@dataclass(frozen=True)
class Visit:
    """How often an operand is fetched if the loop at `last` is its innermost real one."""

    again: tuple[tuple[str, int], ...]
    """The dimensions that re-fetch the operand though it does not depend on them, and how many
    loops over each count.
    """
    slide: tuple[str, int] | None
    """(str, int) or None. For IN: the dimension of that loop and its level, if the tile slides along it."""


@dataclass(frozen=True)
class Skeleton:
    """Spatial cuts, then loops in `order`; a dimension may occur several times, with shrinking steps."""

    spatial: tuple[Spatial, ...]
    order: tuple[str, ...]
    """The looped dimensions, outermost first."""
    depth: Mapping[str, int]
    """For each operand, how many of the loops are outside its Hold."""
    buffers: Mapping[str, int] = field(default_factory=dict)
    """For some operands, how many buffers their Hold states."""
    full: bool = False
    """Whether tables count every loop outside a Hold, as if the innermost one were a real loop that the operand depends
    on. Never less than the price, and the price itself where every Hold stands directly inside such a loop. Of inputs
    that are broadcast the innermost real loop is told apart all the same.
    """
    line: bool = False
    """Whether IN is held in lines: the two innermost loops outside its Hold are one over r and one over c, both real.
    """

    def outside(self, operand: str) -> tuple[str, ...]:
        """The loops outside the Hold of `operand`, outermost first."""
        return self.order[: self.depth[operand]]

    def level(self, dim: str, operand: str) -> int:
        """How many loops over `dim` are outside the Hold of `operand`."""
        return self.outside(operand).count(dim)

    def levels(self, dim: str) -> int:
        """How many loops there are over `dim`."""
        return self.order.count(dim)

    def hold(self, operand: str) -> Hold:
        """The Hold of an operand."""
        return Hold(operand, self.buffers.get(operand), self.line and operand == "IN")

    def last(self, loop: tuple[str, int]) -> Skeleton:
        """The same skeleton with this loop (dimension, level) innermost outside the Hold of IN."""
        dim, level = loop
        at = [i for i, d in enumerate(self.order) if d == dim][level]
        end = self.depth["IN"]
        order = (*self.order[:at], *self.order[at + 1 : end], dim, *self.order[end:])
        return replace(self, order=order)

    def without(self, dims: str, operand: str) -> Skeleton:
        """The same skeleton without the loops over some dimensions outside the Hold of an operand."""
        kept = [at for at, d in enumerate(self.order) if at >= self.depth[operand] or d not in dims]
        depth = {op: sum(at < k for at in kept) for op, k in self.depth.items()}
        return replace(self, order=tuple(self.order[at] for at in kept), depth=depth)

    def ordered(self) -> Skeleton:
        """The same skeleton with the loops between two Holds in a fixed order."""
        ends = [0, *sorted(set(self.depth.values())), len(self.order)]
        segments = (sorted(self.order[a:b], key=DIMS.index) for a, b in pairwise(ends))
        return replace(self, order=tuple(d for segment in segments for d in segment))

    def stripped(self, dim: str) -> Skeleton:
        """With another loop over a dimension before the two that IN in lines slides along, and none inside its Hold."""
        at = self.depth["IN"]
        inside = [k for k in range(at, len(self.order)) if self.order[k] != dim]
        depth = {op: k + 1 - sum(self.order[x] == dim for x in range(at, k)) for op, k in self.depth.items() if k >= at}
        order = (*self.order[: at - 2], dim, *self.order[at - 2 : at], *(self.order[k] for k in inside))
        return replace(self, order=order, depth={**self.depth, **depth})

    def every(self, operand: str) -> tuple[tuple[str, int], ...]:
        """The dimensions that `operand` does not depend on, with their numbers of loops outside its Hold."""
        counts = Counter(d for d in self.outside(operand) if d not in RELEVANT[operand])
        return tuple(sorted(counts.items()))

    def nest(self, steps: Mapping[str, tuple[Step, ...]], layer: Layer, *, every: bool = False) -> Nest:
        """Return the nest with these steps (or lists of places), one for every loop over a dimension.

        Loops that cut nothing are left out unless `every` one is wanted: the papers' equations tell dataflows by them.
        """
        items: list[Item] = list(self.spatial)
        size = {d: layer.extent(d) for d in DIMS}
        size.update({i.dim: i.step for i in self.spatial})
        left = {d: list(s) for d, s in steps.items()}
        pieces = {d: [(0, size[d])] for d, s in left.items() if any(not isinstance(x, int) for x in s)}
        for position in range(len(self.order) + 1):
            items += [self.hold(op) for op, depth in self.depth.items() if depth == position]
            if position < len(self.order):
                dim = self.order[position]
                step = left[dim].pop(0)
                if dim in pieces:
                    loop = _cutting(dim, step, pieces)
                    items += [loop] if loop else []
                elif isinstance(step, int) and (every or step < size[dim]):
                    items.append(Loop(dim, step))
                    size[dim] = step
        return Nest(tuple(items))

    def visits(
        self, operand: str, sliding: frozenset[str], lacks: str = "", *, merged: bool = False
    ) -> list[tuple[tuple[tuple[str, int], ...], Visit]]:
        """Group the loops outside the Hold that the operand depends on, outermost group first.

        If a loop of a group is the innermost *real* one (it cuts something; docs/nest.md), the group's `Visit` says
        how the operand is fetched: by every iteration of the loops down to that one. Loops are (dimension, level).
        Of an input that is broadcast `lacks` has the dimensions that it does not depend on. With `merged` the loops
        over a dimension are one, where the innermost is: of an input that is broadcast that is no more (for bounds).
        """
        mine = depends(operand, lacks)
        groups: list[tuple[list[tuple[str, int]], Visit]] = []
        seen: Counter[str] = Counter()
        for dim in self.outside(operand):
            if merged and seen[dim] + 1 < self.level(dim, operand):
                seen[dim] += 1
                continue
            if dim in mine:
                ended = (d for d, k in seen.items() if not merged or k == self.level(d, operand))
                again = tuple(sorted((d, seen[d]) for d in ended if d not in mine))
                slides = operand == "IN" and dim in sliding
                visit = Visit(again, (dim, seen[dim]) if slides else None)
                if groups and groups[-1][1] == visit:
                    groups[-1][0].append((dim, seen[dim]))
                else:
                    groups.append(([(dim, seen[dim])], visit))
            seen[dim] += 1
        return [(tuple(loops), visit) for loops, visit in groups]


def _cutting(dim: str, step: Step, pieces: dict[str, list[tuple[int, int]]]) -> Loop | None:
    """The loop that cuts the pieces of a core's range (from 0) again, None if it does not; `pieces` become finer.

    Places that cut nothing are left out, and places that are equal steps are stated as a step.
    """
    loop = Loop(dim, step) if isinstance(step, int) else Loop(dim, 0, step)
    finer = [piece for lo, hi in pieces[dim] for piece in loop.pieces(lo, hi, 0)]
    before, pieces[dim] = pieces[dim], finer
    if len(finer) == len(before):
        return None
    longest = max(hi - lo for lo, hi in finer)
    even = Loop(dim, longest)
    if [piece for lo, hi in before for piece in even.pieces(lo, hi, 0)] == finer:
        return even
    made = {lo for lo, _ in finer} - {lo for lo, _ in before}
    return Loop(dim, longest, tuple(sorted(made)))


def skeleton_of(layer: Layer, nest: Nest) -> Skeleton:
    """Read the skeleton of a nest; raises InputError if the nest is malformed."""
    nest.validate_for(layer)
    spatial = tuple(i for i in nest.items if isinstance(i, Spatial))
    order: list[str] = []
    depth: dict[str, int] = {}
    buffers: dict[str, int] = {}
    for item in nest.items:
        if isinstance(item, Hold):
            depth[item.operand] = len(order)
            if item.buffers:
                buffers[item.operand] = item.buffers
        elif isinstance(item, Loop):
            order.append(item.dim)
        elif order or depth:
            raise InputError("nest: a spatial item stands inside a loop or hold; spatial items come first")
    return Skeleton(spatial, tuple(order), depth, buffers)


@dataclass(frozen=True, eq=False)
class Core:
    """A core's share of the layer: the half-open range of every dimension; compared by identity, cheap to hash."""

    tle: int
    ranges: tuple[tuple[str, Range], ...]

    @cached_property
    def _range_of(self) -> dict[str, Range]:
        return dict(self.ranges)

    def range(self, dim: str) -> Range:
        """The core's range of `dim`."""
        return self._range_of[dim]

    def extent(self, dim: str) -> int:
        """The size of the core's range of `dim`."""
        lo, hi = self.range(dim)
        return hi - lo

    def smaller(self, first: Core, dims: Iterable[str] = DIMS) -> bool:
        """Whether it has less than the first core of some dimension.

        A loop that cuts something there may cut nothing here: which loop is the innermost real one may differ.
        """
        return any(self.extent(d) < first.extent(d) for d in dims)


def cores(layer: Layer, spatial: tuple[Spatial, ...]) -> tuple[Core, ...]:
    """Return every core that has work, cluster by cluster."""
    return _cores(tuple((d, layer.extent(d)) for d in DIMS), spatial)


@lru_cache(maxsize=1024)
def _cores(extents: tuple[tuple[str, int], ...], spatial: tuple[Spatial, ...]) -> tuple[Core, ...]:
    grid: list[tuple[int, dict[str, Range]]] = [(0, {d: (0, e) for d, e in extents})]
    for item in spatial:
        grown, most = [], -(-dict(extents)[item.dim] // item.step)
        for tle, ranges in grid:
            lo, hi = ranges[item.dim]
            pieces = [(a, min(a + item.step, hi)) for a in range(lo, hi, item.step)]
            for i, piece in enumerate(pieces):
                number = tle * most + i if item.over == "tle" else tle
                grown.append((number, {**ranges, item.dim: piece}))
        grid = grown
    return tuple(Core(tle, tuple(ranges.items())) for tle, ranges in grid)
