"""A member of a space: one skeleton with the steps that its loops may take, and what of it can matter for an objective.

Reduction of an axis (claim)
    Every table is a sum of products of non-negative vectors, one for each axis. A chain that is nowhere above another
    one in all vectors of its axis can be replaced by it: no table rises. They are those that the tables multiply
    (`Choices.log`), so nothing has to be listed by hand. Where several terms share a mask (which loop is the innermost
    real one), the masks and their complements are among them: only chains of the same pattern replace each other.
    Where IN may slide and runs are priced, chains replace each other only if they cut at the loops that it may slide
    along alike.
Chains and boxes of chains that bounds exclude are left out (`formulations.tiling.bounding`).
Which chains are listed to begin with is argued in `formulations.tiling.chains`. Double-buffered time is a sum of maxima
over the steps, not such a table: there every pair of even steps is listed and nothing is reduced; places that are not
even are found by `formulations.tiling.recut`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from formulations.pareto import pareto
from formulations.tiling.bounding import Bounds, Box, joined, size
from formulations.tiling.branch import Branch, Limits, within
from formulations.tiling.chains import pairs
from formulations.tiling.classes import classes_of, finer, inner_tile, made
from formulations.tiling.listing import Listing, tiles_of
from hwmodels.nest.price.bilinear import Bilinear, Ints
from hwmodels.nest.price.choices import AXIS, Choices
from hwmodels.nest.price.pieces import cut
from hwmodels.nest.price.skeleton import Skeleton
from hwmodels.nest.price.tables import nest_tables
from hwmodels.schedule import Item, Loop, Nest
from instances.network.workload import DIMS

#: Products of chains above this size are bounded axis by axis before they are laid out.
_LARGE = 2_000
#: Spatial choices that are priced at a time where there are more, unless more than this share of the first is left.
_BLOCK, _WORTH = 30_000, 0.6
#: Spatial choices that are priced together at most, but for those of one part.
_TOGETHER = 1_000_000


@dataclass(frozen=True)
class Member(Listing):
    """A skeleton with the chains of steps that it lists, priced."""

    @property
    def points(self) -> int:
        """Nests that the member stands for: all chains of allowed steps, slides included."""
        return prod(pairs(self.sizes[d], self.skeleton.levels(d)) for d in DIMS) * max(1, len(self.slides))

    def holds(self, nest: Nest) -> bool:
        """Whether the nest is one of this member's, whatever chains are listed."""
        options = [self.skeleton.last(slide) for slide in self.slides] or [self.skeleton]
        if self.machine.snake or (self.timeline and self.any_order):  # the order of loops between Holds is free
            options, nest = [self.skeleton.ordered()], nest.ordered()
        finer = self.machine.compute.model == "tile"
        return self._allows(nest) and any(_matches(skeleton, nest, finer=finer) for skeleton in options)

    def _allows(self, nest: Nest) -> bool:
        """Whether all steps, and the largest of free pieces, are among the sizes."""
        loops: dict[str, list[Loop]] = {d: [i for i in nest.items if isinstance(i, Loop) and i.dim == d] for d in DIMS}
        if any(loop.cuts and d in self.even for d in DIMS for loop in loops[d]):
            return False
        inner = all((loops[d][-1].step if loops[d] else self.share(d)) in self.sizes[d].inner for d in DIMS)
        return inner and all(loop.cuts or loop.step in self.sizes[d].outer for d in DIMS for loop in loops[d][:-1])

    @property
    def unlined(self) -> Member:
        """The same loops without lines, whose bounds hold with them too."""
        return replace(self, skeleton=replace(self.skeleton, line=False)) if self.skeleton.line else self

    @cached_property
    def crowded(self) -> bool:
        """Whether not even the smallest tiles that are allowed fit; if not, larger ones may not fit either.

        A loop outside a Hold makes tiles no larger, smaller steps do not, and reductions are cut or not: what no nest
        of these loops is below is the least over both.
        """
        sizes = {d: self.sizes[d].inner for d in DIMS}
        if self.skeleton.line or not all(len(inner) for inner in sizes.values()):
            return False
        free = {d: self.skeleton.levels(d) > 0 for d in DIMS}
        ends = [sorted({int(sizes[d][0]), int(sizes[d][-1])}) if d in "nij" else [int(sizes[d][0])] for d in DIMS]
        for chosen in product(*(e if free[d] else [self.share(d)] for d, e in zip(DIMS, ends, strict=True))):
            step = dict(zip(DIMS, chosen, strict=True))
            steps = {d: np.full((1, self.skeleton.levels(d)), step[d], np.int64) for d in DIMS}
            choices = Choices.product(steps, {d: np.array([step[d]], np.int64) for d in DIMS}, self.slides[:1])
            bound = replace(choices, ideal={d: "steps" for d in DIMS if free[d]})
            if self.priced(bound, ()).feasible().any():
                return False
        return True

    # ---- branches --------------------------------------------------------------------------------------------

    def branch(
        self, measures: Sequence[str], at_most: Limits | None = None, *, coarse: bool = False,
        listed: Sequence[str] | None = None,
    ) -> Branch:  # fmt: skip
        """Price what can matter for these measures.

        Parameters
        ----------
        measures : sequence of {"time", "bytes", "energy", "ocm"}
            Other tables are not made.
        at_most : dict of measure to int
            Chains and choices that cannot stay within these values are dropped.
        coarse : bool
            Only a few chains, from which to find a first good plan.
        listed : sequence of str, optional
            Only the chains that matter for these measures.
        """
        some = [*self.branches(measures, at_most, coarse=coarse, listed=listed)]
        return some[0] if len(some) == 1 else self.priced(joined([one.choices for one in some]), measures)

    def branches(
        self, measures: Sequence[str], at_most: Limits | None = None, *, coarse: bool = False,
        listed: Sequence[str] | None = None,
    ) -> Iterator[Branch]:  # fmt: skip
        """Yield the same in as many branches as memory asks for, one at least."""
        found = self.chains(measures if listed is None else listed, coarse=coarse)
        bounds = Bounds(self.layer, self.machine, self.skeleton, *found, self.slides)
        yield from self._left(bounds, measures, at_most or {}, everything=coarse)

    def bounds(self, measures: Sequence[str], at_most: Limits | None = None) -> Iterator[Branch]:
        """Yield tables that are lower bounds for all ways to cut the dimensions, as `branches` those of candidates."""
        for one in () if self.skeleton.line else classes_of(self, measures):  # those without lines are below all
            bounds = Bounds(self.layer, self.machine, self.skeleton, one.steps, one.tiles, one.slides(self), one.ideal)
            yield from self._left(bounds, measures, at_most or {})

    def finer(self, branch: Branch, measures: Sequence[str], at_most: Limits) -> Iterator[Branch]:
        """Yield tighter bounds on what choices of `bounds` stand for."""
        one = finer(self, branch.choices, measures)
        bounds = Bounds(self.layer, self.machine, self.skeleton, one.steps, one.tiles, one.slides(self), one.ideal)
        yield from self._left(bounds, measures, at_most)

    def made(self, branch: Branch, s: int, q: int) -> Iterator[Branch]:
        """Yield nests that a choice of bounds stands for, as branches of one choice, if some are known that fit."""
        steps = made(self, branch.choices, s, q)
        if steps is None:
            return
        slide = branch.choices.slide(s)
        for one, chains in [(self, steps), *self._finished(steps)]:
            choices = Choices.product(chains, tiles_of(one, chains), (slide,) if slide else ())
            only = one.priced(choices, ())
            if only.feasible().all() and self.holds(only.nest(0, 0)):
                yield only

    def _finished(self, steps: Mapping[str, Ints]) -> Iterator[tuple[Member, dict[str, Ints]]]:
        """Yield the same with loops inside all Holds, where a core computes whole tiles and smaller ones take less."""
        inner = inner_tile(self, steps) if self.machine.compute.model == "tile" else {}
        if inner:
            dims = tuple(d for d in DIMS if d in inner)
            skeleton = replace(self.skeleton, order=(*self.skeleton.order, *dims))
            more = {d: np.array([[inner[d]]], np.int64) for d in dims}
            chains = {d: np.concatenate([row, more[d]], axis=1) if d in more else row for d, row in steps.items()}
            yield replace(self, skeleton=skeleton), chains

    def _left(
        self, bounds: Bounds, measures: Sequence[str], at_most: Limits, *, everything: bool = False
    ) -> Iterator[Branch]:
        """Yield what bounds do not exclude, unless `everything` is asked for."""
        limits = dict(sorted(at_most.items()))  # bytes before time, which takes longer to price
        boxes: list[Box] = [bounds.whole()]
        if not (self.full or everything):
            bounds = self._shrunk(bounds, measures, limits)
            boxes = [*bounds.leaves(bounds.whole(), limits)]
        if self.full:
            yield self.priced(self._slid(bounds.choices(boxes), measures), measures)
            return
        parts = ([part] for part in bounds.parts(boxes, limits)) if bounds.many(boxes) else iter([boxes])
        sifted = (self._sifted(self._slid(bounds.choices(p), measures), limits) for p in parts)
        for some in _together(sifted, bounds.choices([])):
            yield self._narrow(some, measures, limits)

    def _narrow(self, choices: Choices, measures: Sequence[str], limits: Limits) -> Branch:
        """The branch of choices that fit and stay within the limits."""
        # One table after the other: the first leaves few choices for the next.
        for most in ({}, *({m: limits[m]} for m in limits if len(measures) > 1)):
            if max(choices.shape) > _LARGE:
                choices = within(self.priced(choices, tuple(most)).fitting(), most).choices
        branch = within(self.priced(choices, measures).fitting(), limits)
        return branch.sliding() if choices.slides and not branch.empty else branch

    def _slid(self, choices: Choices, measures: Sequence[str]) -> Choices:
        """Without those that do not slide, or lie in lines, as their tables say."""
        if choices.slides and choices.ideal is not None:
            return choices.take(s=np.flatnonzero(self._may_slide(choices)))
        if choices.slides and (self.full or "time" in measures):
            return choices.take(s=np.flatnonzero(self._slides_truly(choices)))
        if self.skeleton.line:
            return choices.take(s=np.flatnonzero(self._lines_truly(choices)))
        return choices

    def priced(self, choices: Choices, measures: Sequence[str]) -> Branch:
        """The branch of some choices."""
        layer, machine = self.layer, self.machine
        exact = not self.timeline
        if 0 in choices.shape:
            none = Bilinear.of([], choices.shape)
            return Branch(layer, machine, self.label, self.skeleton, choices, (none,), none, (), exact, none)
        tables = nest_tables(layer, machine, self.skeleton, choices, measures=measures)
        room = machine.memories
        capacity = tuple((name, table, room[name]) for name, parts in tables.capacity.items() for table in parts)
        return Branch(
            layer, machine, self.label, self.skeleton, choices, tables.time, tables.bytes, capacity, exact,
            tables.energy, tables.pipelines,
        )  # fmt: skip

    def _sifted(self, choices: Choices, limits: Limits) -> Choices:
        """Without the spatial choices that their own bounds exclude, where there are many.

        In blocks that slide along one loop each: these need no terms of the other slides, and stay in the processor's
        cache. A block drops only what exceeds a capacity or a limit with every channel choice, as `within` does.
        """
        if choices.shape[0] <= _BLOCK or not choices.shape[1]:
            return choices
        slide = choices.index["slide"]
        kept = []
        for number in range(max(1, len(self.slides))):
            rows = np.flatnonzero(slide == number)
            count = -(-len(rows) // _BLOCK)
            for first in range(count):
                block = self._possible(choices, rows[first::count], limits)
                if not first and len(block) * count > _WORTH * len(rows):  # so it is with the other blocks
                    kept.append(rows)
                    break
                kept.append(block)
        return choices.take(s=np.sort(np.concatenate(kept)))

    def _possible(self, choices: Choices, rows: Ints, limits: Limits) -> Ints:
        """Which of some spatial choices may fit and stay within the limits, one after the other."""
        for most in ({}, *({m: limit} for m, limit in limits.items())):
            if not len(rows):  # a price of nothing has no tables
                return rows
            rows = rows[self.priced(choices.take(s=rows), tuple(most)).possible(most)]
        return rows

    def _slides_truly(self, choices: Choices) -> NDArray[np.bool_]:
        """Which spatial choices slide along a loop that cuts something, or have none along a window.

        IN slides along its last loop in any case, so the others are not what their tables say. They move no less, so
        bytes need no such care; a slid tile of few columns may have more runs than a whole row.
        """
        real = []
        for dim, level in self.slides:
            chains = self.chains_cut(choices, dim, level)
            real.append(chains[choices.index[AXIS[dim]]])
        stacked = np.stack(real)
        chosen = stacked[choices.index["slide"], np.arange(choices.shape[0])]
        result: NDArray[np.bool_] = chosen | ~stacked.any(axis=0)
        return result

    def _lines_truly(self, choices: Choices) -> NDArray[np.bool_]:
        """Which spatial choices cut rows and columns by the two innermost loops outside the Hold of IN."""
        truly = np.ones(choices.shape[0], np.bool_)
        for dim in ("r", "c"):
            chains = self.chains_cut(choices, dim, self.skeleton.level(dim, "IN") - 1)
            truly &= chains[choices.index[dim]]
        return truly

    def _may_slide(self, choices: Choices) -> NDArray[np.bool_]:
        """Which spatial choices of a bound slide along a loop that may cut something, as far as this can be told.

        A nest that cuts nothing slides along nothing: it is priced as if it slid along any of them.
        """
        may, ideal = np.ones((len(self.slides), choices.shape[0]), np.bool_), choices.ideal or {}
        for number, (dim, level) in enumerate(self.slides):
            if ideal.get(dim) == "exact":
                may[number] = self.chains_cut(choices, dim, level)[choices.index[AXIS[dim]]]
            elif ideal.get(dim) == "counts":
                made = choices.steps[dim]
                may[number] = (made[:, level] > (made[:, level - 1] if level else 1))[choices.index[AXIS[dim]]]
            elif dim in "ij":
                taps, chain = self.layer.extent(dim), choices.steps[dim]
                before = chain[:, level - 1] if level else np.full(len(chain), taps)
                same = (before == chain[:, level]) & (-(-taps // before) != -(-taps // (before + 1)))
                may[number] = ~(same | (before == taps) & (chain[:, level] == taps))[choices.index[AXIS[dim]]]
        chosen = may[choices.index["slide"], np.arange(choices.shape[0])]
        result: NDArray[np.bool_] = chosen | ~may.any(axis=0)
        return result

    def chains_cut(self, choices: Choices, dim: str, level: int) -> NDArray[np.bool_]:
        """Which chains (T,) cut something on every core by the loop over `dim` at `level`."""
        result = np.ones(len(choices.steps[dim]), np.bool_)
        for extent in self.extents(dim):
            chain = choices.steps[dim]
            result &= cut(extent, chain[:, : level + 1]).number > cut(extent, chain[:, :level]).number
        return result

    def _shrunk(self, bounds: Bounds, measures: Sequence[str], limits: Limits) -> Bounds:
        """Without the chains that bounds exclude, and those that others can replace."""
        for measure in limits or {"": 0}:
            if size(bounds.whole()) > _LARGE:
                most = {measure: limits[measure]} if measure else {}
                bounds = bounds.within(bounds.bounded(bounds.whole(), most))
        if size(bounds.whole()) and not (self.timeline and "time" in measures):
            bounds = bounds.within(self._reduced(bounds, measures))
            if size(bounds.whole()) > _LARGE:
                bounds = bounds.within(bounds.bounded(bounds.whole(), limits))
        return bounds

    def _reduced(self, bounds: Bounds, measures: Sequence[str]) -> Box:
        """The chains that no others of their axis can replace."""
        log = Choices.logging(bounds.steps, bounds.tiles, bounds.slides, bounds.ideal)
        nest_tables(self.layer, self.machine, self.skeleton, log, measures=measures)
        keep = bounds.whole()
        for d, vectors in (log.log or {}).items():
            varying = [v for v in vectors.values() if len(v) > 1]
            keep[d] = pareto(np.stack(varying)) if varying else keep[d][:1]
        return keep


def _together(parts: Iterator[Choices], nothing: Choices) -> Iterator[Choices]:
    """Yield choices of several parts as one, as long as they are not too many; nothing if there are none."""
    some, made = list[Choices](), False
    for part in parts:
        some.append(part)
        if sum(one.shape[0] for one in some) > _TOGETHER:
            yield joined(some)
            some, made = [], True
    if some or not made:
        yield some[0] if len(some) == 1 else joined([nothing, *some])


def _matches(skeleton: Skeleton, nest: Nest, *, finer: bool) -> bool:
    """Whether the nest has the skeleton's loops, or fewer, and its Holds, all in the skeleton's order.

    Where smaller tiles take fewer cycles (`finer`) more loops may stand inside all Holds.
    """
    left = list(nest.items)
    given: list[Item | str] = list(skeleton.spatial)
    for position in range(len(skeleton.order) + 1):
        given += [skeleton.hold(op) for op, depth in skeleton.depth.items() if depth == position]
        given += skeleton.order[position : position + 1]
    for item in given:
        loop = isinstance(item, str)
        if left and (isinstance(left[0], Loop) and left[0].dim == item if loop else left[0] == item):
            left.pop(0)
        elif not loop:
            return False
    return not left or (finer and all(isinstance(item, Loop) and not item.cuts for item in left))
