"""A member of a space: one skeleton with the steps that its loops may take, and what of it can matter for an objective.

Reduction of an axis (claim)
    Every table is a sum of products of non-negative vectors, one for each axis. A chain that is nowhere above another
    one in all vectors of its axis can be replaced by it: no table rises. They are those that the tables multiply
    (`Choices.log`), so nothing has to be listed by hand. Where several terms share a mask (which loop is the innermost
    real one), the masks and their complements are among them: only chains of the same pattern replace each other.
    Where IN may slide and runs are priced, chains replace each other only if they cut at the loops that it may slide
    along alike.
Chains and boxes of chains that bounds exclude are left out (`formulations.bounding`).
Which chains are listed to begin with is argued in `formulations.chains`. Double-buffered time is a sum of maxima over
the steps, not such a table: there every pair of even steps is listed and nothing is reduced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from formulations.bounding import Bounds, Box, size
from formulations.branch import Branch, Limits, within
from formulations.chains import (
    Edge,
    Sizes,
    burst_chains,
    cheapest,
    even_pairs,
    even_steps,
    grid,
    pairs,
    rounded,
    undominated,
)
from formulations.pareto import pareto
from hwmodels.bilinear import Bilinear, Ints
from hwmodels.boxes import input_windows
from hwmodels.choices import AXIS, Choices, Slides
from hwmodels.pieces import Window, cut
from hwmodels.schedule import Hold, Item, Loop, Nest
from hwmodels.skeleton import Skeleton, cores
from hwmodels.tables import nest_tables
from instances.machine import Machine
from instances.workload import DIMS, Layer

__all__ = ["Member"]

#: Products of chains above this size are bounded axis by axis before they are laid out.
_LARGE = 2_000
#: Above these extents, steps of two loops over one dimension are even steps (or multiples of the array's lanes) ...
_PAIRS = 1_024
#: Up to this extent chains of few pieces are compared by their tiles as padding clips them.
_CLIPPED = 256
#: ... and kernels above this are cut at one depth, in even steps, and the rows and columns beside them likewise.
_TAPS = 3
Steps = Mapping[str, Ints]


@dataclass(frozen=True)
class Member:
    """One skeleton with all steps that are considered.

    Attributes
    ----------
    sizes : dict of str to Sizes
        Of every dimension; for one without a loop the steps that its tile may have.
    slides : tuple of (str, int)
        The loops along which IN may slide, where that is a choice.
    full : bool
        Whether nothing may be left out.
    """

    layer: Layer
    machine: Machine
    label: Mapping[str, str]
    skeleton: Skeleton
    sizes: Mapping[str, Sizes]
    slides: Slides = ()
    full: bool = False

    @property
    def points(self) -> int:
        """Nests that the member stands for: all chains of allowed steps, slides included."""
        return prod(pairs(self.sizes[d], self.skeleton.levels(d)) for d in DIMS) * max(1, len(self.slides))

    @property
    def timeline(self) -> bool:
        """Whether time is a timeline, which nothing may be reduced for."""
        machine, buffers = self.machine, self.skeleton.buffers
        doubled = any(machine.buffers(buffers.get(op)) == 2 for op in self.layer.operands)
        return machine.timing == "double_buffered" and doubled

    def holds(self, nest: Nest) -> bool:
        """Whether the nest is one of this member's, whatever chains are listed."""
        options = [self.skeleton.last(slide) for slide in self.slides] or [self.skeleton]
        return self._allows(nest) and any(_matches(skeleton, nest) for skeleton in options)

    def _allows(self, nest: Nest) -> bool:
        """Whether all steps are among the sizes."""
        loops = nest.loops()
        inner = all((loops[d] or (self._share(d),))[-1] in self.sizes[d].inner for d in DIMS)
        return inner and all(step in self.sizes[d].outer for d in DIMS for step in loops[d][:-1])

    # ---- chains ----------------------------------------------------------------------------------------------

    def chains(self, measures: Sequence[str], *, coarse: bool = False) -> tuple[Steps, Steps]:
        """Candidate chains (T, L) and their innermost sizes (T,) per dimension; those of one axis share T.

        Parameters
        ----------
        coarse : bool
            Only a few chains of halved extents, from which to find a first good plan.
        """
        found = {d: self._halved(d) if coarse else self._listed(d, measures) for d in DIMS}
        for dim, kernel in (("r", "i"), ("c", "j")):
            found[dim], found[kernel] = self._joined(dim, kernel, found[dim], found[kernel])
        tiles = {}
        for d, chain in found.items():
            whole = np.full(len(chain), self._share(d), np.int64)
            tiles[d] = chain[:, -1] if chain.shape[1] else whole
        return found, tiles

    def _joined(self, dim: str, kernel: str, outer: Ints, taps: Ints) -> tuple[Ints, Ints]:
        """All pairs of the chains of r and i (or of c and j); where a large kernel is cut, even steps of r only."""
        one, two = np.meshgrid(np.arange(len(outer)), np.arange(len(taps)), indexing="ij")
        if self._extents(kernel)[0] > _TAPS and taps.shape[1] and not self.full:
            extents = self._extents(dim)
            even: NDArray[np.bool_] = np.all(np.isin(outer, even_steps(extents, self.sizes[dim].outer)), axis=1)
            keep = np.logical_or(even[one], taps[two, -1] == self._extents(kernel)[0])
            one, two = one[keep], two[keep]
        return outer[one.ravel()], taps[two.ravel()]

    def _share(self, dim: str) -> int:
        """The extent on the largest core."""
        return max(core.extent(dim) for core in cores(self.layer, self.skeleton.spatial))

    def _extents(self, dim: str) -> tuple[int, ...]:
        """The extents whose numbers of pieces count, the largest core's first."""
        shares = {core.extent(dim) for core in cores(self.layer, self.skeleton.spatial)}
        if self.machine.reading == "literal":
            shares |= {self.layer.extent(dim)}
        return tuple(sorted(shares, reverse=True))

    def _listed(self, dim: str, measures: Sequence[str]) -> Ints:
        depth, sizes, extents = self.skeleton.levels(dim), self.sizes[dim], self._extents(dim)
        if not depth:
            return np.zeros((1 if self._share(dim) in sizes.inner else 0, 0), np.int64)
        if self.full:
            return grid(sizes.outer, sizes.inner, depth)
        timed = "time" in measures
        if timed and self.timeline:
            return even_pairs(extents, sizes, depth) if depth > 1 else sizes.inner[:, None]
        biased = dim == "n" and self.layer.bias and self.machine.bias_bytes > 0
        if dim in "bgmn" and not timed and not biased:
            return cheapest(extents, sizes.outer, sizes.inner, depth)
        if dim in "ij":
            return self._kernel_chains(extents, sizes, depth)
        if timed and self.machine.transfer.burst_ticks:
            return burst_chains(extents, sizes, depth)
        lanes = self._lanes(dim) if timed else 0
        if depth > 1 and extents[0] > _PAIRS:
            sizes = Sizes(rounded(extents, sizes.outer, lanes), rounded(extents, sizes.inner, lanes))
        if dim in "bgmn":
            return undominated(extents, sizes.outer, sizes.inner, depth, lanes=lanes)
        skipping, edge = self._border(dim, timed=timed)
        return undominated(extents, sizes.outer, sizes.inner, depth, skipping=skipping, edge=edge)

    def _kernel_chains(self, extents: tuple[int, ...], sizes: Sizes, depth: int) -> Ints:
        if extents[0] <= _TAPS or depth == 1:
            return grid(sizes.outer, sizes.inner, depth)
        even = even_steps(extents, sizes.inner)
        late = np.stack([np.full_like(even, sizes.outer[-1]), even], axis=1)
        return np.unique(np.concatenate([np.stack([even, even], axis=1), late]), axis=0)

    def _lanes(self, dim: str) -> int:
        unit, layer = self.machine.compute, self.layer
        if unit.model != "array":
            return 0
        if layer.m == layer.n == 1:
            return unit.cols if dim == "g" else 0
        return {"m": unit.rows, "n": unit.cols}.get(dim, 0)

    def _border(self, dim: str, *, timed: bool) -> tuple[bool, Edge]:
        """Whether more pieces can skip rows, and where padding can clip pieces but the first and the last.

        Where IN slides, a last piece that the padding swallows needs no call.
        """
        window = input_windows(self.layer)[dim]
        taps = self.skeleton.levels({"r": "i", "c": "j"}[dim]) > 0
        skipping = window.reach < window.stride or (taps and window.stride > 1)
        ranges = tuple(dict.fromkeys(core.range(dim) for core in cores(self.layer, self.skeleton.spatial)))
        before, behind = (max(c) for c in zip(*(window.clipping(*r) for r in ranges), strict=True))
        stride = window.stride
        if self.machine.edge_tiles == "uniform" or self.machine.reading == "literal":
            return skipping, Edge()
        parts: tuple[Window, ...] = ()
        if (before > behind or max(before, behind) > stride) and self._share(dim) <= _CLIPPED:
            most = window.taps if taps and window.taps <= _TAPS else 0
            parts = (window, *(window.part(i, j) for i in range(most) for j in range(i + 1, most + 1)))

        def short(clip: int) -> int:
            return max((clip - 1) // stride, (clip - 2) // stride + 1 if taps and clip > 1 else 0, 0)

        swallowed = behind // stride if timed and self.slides else 0
        after = max(short(behind), swallowed)
        return skipping, Edge(short(before), after, parts, ranges, before - behind > stride)

    def _halved(self, dim: str) -> Ints:
        """Few chains: the extent halved again and again, alike in all loops or cut by the last one only."""
        depth, sizes = self.skeleton.levels(dim), self.sizes[dim]
        if not depth or not len(sizes.inner) or not len(sizes.outer):
            return self._listed(dim, ())
        share = self._share(dim)
        wanted = [-(-share // 2**k) for k in range(share.bit_length() + 1)]
        if dim in "ij":
            wanted = [share, 1]
        inner = np.unique([sizes.inner[max(0, int(np.searchsorted(sizes.inner, w, "right")) - 1)] for w in wanted])
        if depth == 1:
            return inner[:, None]
        same = np.stack([inner, inner], axis=1)
        late = np.stack([np.full_like(inner, sizes.outer[-1]), inner], axis=1)
        early = np.stack([inner, np.full_like(inner, inner[0])], axis=1)
        return np.unique(np.concatenate([same, late, early]), axis=0)

    # ---- branches --------------------------------------------------------------------------------------------

    def branch(
        self,
        measures: Sequence[str],
        at_most: Limits | None = None,
        *,
        coarse: bool = False,
        listed: Sequence[str] | None = None,
    ) -> Branch:
        """Price what can matter for these measures.

        Parameters
        ----------
        measures : sequence of {"time", "bytes", "ocm"}
            Other tables are not made.
        at_most : dict of measure to int
            Chains and choices that cannot stay within these values are dropped.
        coarse : bool
            Only a few chains, from which to find a first good plan.
        listed : sequence of str, optional
            Only the chains that matter for these measures.
        """
        limits = dict(sorted((at_most or {}).items()))  # bytes before time, which takes longer to price
        steps, tiles = self.chains(measures if listed is None else listed, coarse=coarse)
        bounds = Bounds(self.layer, self.machine, self.skeleton, steps, tiles, self.slides)
        boxes: list[Box] = [bounds.whole()]
        if not (self.full or coarse):
            bounds = self._shrunk(bounds, measures, limits)
            boxes = [*bounds.leaves(bounds.whole(), limits)]
        choices = bounds.choices(boxes)
        if self.slides and (self.full or "time" in measures):
            choices = choices.take(s=np.flatnonzero(self._slides_truly(choices)))
        if self.full:
            return self._priced(choices, measures)
        # One table after the other: the first leaves few choices for the next.
        for most in ({}, *({m: limits[m]} for m in limits if len(measures) > 1)):
            if max(choices.shape) > _LARGE:
                choices = within(self._priced(choices, tuple(most)).fitting(), most).choices
        branch = within(self._priced(choices, measures).fitting(), limits)
        return branch.sliding() if self.slides and not branch.empty else branch

    def _priced(self, choices: Choices, measures: Sequence[str]) -> Branch:
        """The branch of some choices."""
        layer, machine = self.layer, self.machine
        exact = not self.timeline
        if 0 in choices.shape:
            none = Bilinear.of([], choices.shape)
            return Branch(layer, machine, self.label, self.skeleton, choices, (none,), none, (), exact)
        tables = nest_tables(layer, machine, self.skeleton, choices, measures=measures)
        room = machine.memories
        capacity = tuple((name, table, room[name]) for name, parts in tables.capacity.items() for table in parts)
        return Branch(
            layer, machine, self.label, self.skeleton, choices, tables.time, tables.bytes, capacity, exact
        )  # fmt: skip

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

    def chains_cut(self, choices: Choices, dim: str, level: int) -> NDArray[np.bool_]:
        """Which chains (T,) cut something on every core by the loop over `dim` at `level`."""
        result = np.ones(len(choices.steps[dim]), np.bool_)
        for extent in self._extents(dim):
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
        log = Choices.logging(bounds.steps, bounds.tiles, self.slides)
        nest_tables(self.layer, self.machine, self.skeleton, log, measures=measures)
        keep = bounds.whole()
        for d, vectors in (log.log or {}).items():
            varying = [v for v in vectors.values() if len(v) > 1]
            keep[d] = pareto(np.stack(varying)) if varying else keep[d][:1]
        return keep


def _matches(skeleton: Skeleton, nest: Nest) -> bool:
    """Whether the nest has the skeleton's loops, or fewer, and its Holds, all in the skeleton's order."""
    left = list(nest.items)
    given: list[Item | str] = list(skeleton.spatial)
    for position in range(len(skeleton.order) + 1):
        given += [Hold(op, skeleton.buffers.get(op)) for op, depth in skeleton.depth.items() if depth == position]
        given += skeleton.order[position : position + 1]
    for item in given:
        loop = isinstance(item, str)
        if left and (isinstance(left[0], Loop) and left[0].dim == item if loop else left[0] == item):
            left.pop(0)
        elif not loop:
            return False
    return not left
