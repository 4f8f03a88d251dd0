"""The chains of steps that a member of a space lists for each dimension: candidates, and those for lower bounds.

Which candidates are listed is argued in `formulations.tiling.chains` (steps) and `formulations.tiling.cuts` (free
pieces); where they are not proven to hold an optimum (`exact`), chains for bounds on all ways to cut are listed beside
them (`hwmodels.nest.price.relaxed`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from formulations.tiling.chains import (
    Edge,
    Sizes,
    cheapest,
    even_pairs,
    even_steps,
    grid,
    rounded,
    undominated,
    windowed_chains,
)
from formulations.tiling.cuts import Cut, complete, every_cut, free_chains, whole_windows
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.boxes import input_windows
from hwmodels.nest.price.choices import KERNELS, Slides
from hwmodels.nest.price.pieces import Window, cut
from hwmodels.nest.price.skeleton import Skeleton, cores
from hwmodels.transfer import WINDOWS
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer

#: Above these extents, steps of two loops over one dimension are even steps (or multiples of the array's lanes) ...
_PAIRS = 1_024
#: Up to this extent chains of few pieces are compared by their tiles as padding clips them.
_CLIPPED = 256
#: ... and kernels above this are cut at one depth, in even steps, and the rows and columns beside them likewise.
_TAPS = 3
#: Rows and columns are cut in free pieces up to this extent; beyond it bounds say what that may be worth.
_FREE = 256
#: Up to this extent the unreduced space has every cut there is.
_TINY = 6
Steps = Mapping[str, Ints]


@dataclass(frozen=True)
class Listing:
    """One skeleton with all steps that are considered."""

    layer: Layer
    machine: Machine
    label: Mapping[str, str]
    skeleton: Skeleton
    sizes: Mapping[str, Sizes]
    """Of every dimension; for one without a loop the steps that its tile may have."""
    slides: Slides = ()
    """The loops along which IN may slide, where that is a choice."""
    full: bool = False
    """Whether nothing may be left out."""
    even: frozenset[str] = frozenset(DIMS)
    """Dimensions that loops cut in equal steps only."""
    any_order: bool = False
    """Whether loops between two Holds may stand in any order, which matters for a timeline."""

    @property
    def timeline(self) -> bool:
        """Whether time is a timeline, which nothing may be reduced for."""
        machine, buffers = self.machine, self.skeleton.buffers
        doubled = any(machine.buffers(buffers.get(op)) == 2 for op in self.layer.operands)
        return machine.timing == "double_buffered" and doubled

    # ---- chains ----------------------------------------------------------------------------------------------

    def chains(self, measures: Sequence[str], *, coarse: bool = False) -> tuple[Steps, Steps]:
        """Candidate chains (T, L) and their innermost sizes (T,) per dimension; those of one axis share T.

        `coarse`: only a few chains of halved extents, from which to find a first good plan.
        """
        listed = self._halved if coarse else partial(self._listed, measures=measures)
        found = {d: listed(d) for d in DIMS}
        for dim, kernel in (("r", "i"), ("c", "j")):
            found[dim], found[kernel] = self._joined(dim, kernel, found[dim], found[kernel])
        return found, tiles_of(self, found)

    def _joined(self, dim: str, kernel: str, outer: Ints, taps: Ints) -> tuple[Ints, Ints]:
        """All pairs of the chains of r and i (or of c and j); where a large kernel is cut, even steps of r only."""
        one, two = np.meshgrid(np.arange(len(outer)), np.arange(len(taps)), indexing="ij")
        if self.extents(kernel)[0] > _TAPS and taps.shape[1] and not self.full:
            extents = self.extents(dim)
            even: NDArray[np.bool_] = np.all(np.isin(outer, even_steps(extents, self.sizes[dim].outer)), axis=1)
            keep = np.logical_or(even[one], taps[two, -1] == self.extents(kernel)[0])
            one, two = one[keep], two[keep]
        return outer[one.ravel()], taps[two.ravel()]

    def share(self, dim: str) -> int:
        """The extent on the largest core."""
        return self._extents[dim][0]

    def extents(self, dim: str) -> tuple[int, ...]:
        """The extents whose numbers of pieces count, the largest core's first."""
        shares = self._extents[dim]
        if self.machine.reading == "literal":
            shares = tuple(sorted({*shares, self.layer.extent(dim)}, reverse=True))
        return shares

    @cached_property
    def _extents(self) -> dict[str, tuple[int, ...]]:
        """By dimension the extents that cores have, the largest first."""
        every = cores(self.layer, self.skeleton.spatial)
        return {d: tuple(sorted({core.extent(d) for core in every}, reverse=True)) for d in DIMS}

    def _listed(self, dim: str, measures: Sequence[str]) -> Ints:
        depth, sizes, extents = self.skeleton.levels(dim), self.sizes[dim], self.extents(dim)
        if not depth:
            return np.zeros((1 if self.share(dim) in sizes.inner else 0, 0), np.int64)
        if self.full:
            return self._everything(dim)
        if self.skeleton.line and self.skeleton.outside("IN")[-3:].count(dim) == 2:
            return self._strips(dim, measures)
        timed = "time" in measures
        if timed and self.timeline:
            return even_pairs(extents, sizes, depth) if depth > 1 else sizes.inner[:, None]
        plain = dim in "bgmn" or (dim in "rc" and not timed and self._plain(dim))
        if plain and not timed and not (dim == "n" and self._biased):
            return cheapest(extents, sizes.outer, sizes.inner, depth)
        if dim in "ij":
            return self._kernel_chains(extents, sizes, depth)
        if timed and any(getattr(price, one.field) for one in WINDOWS for price in self.machine.transfers):
            return windowed_chains(extents, sizes, depth)
        lanes = self.lanes(dim) if timed else 0
        if depth > 1 and extents[0] > _PAIRS:
            sizes = Sizes(rounded(extents, sizes.outer, lanes), rounded(extents, sizes.inner, lanes))
        if dim in "bgmn":
            return undominated(extents, sizes.outer, sizes.inner, depth, lanes=lanes)
        axis = self.axis(dim, timed=timed)
        if axis is not None and not timed:
            return self._free(axis, sizes.inner)
        skipping, edge = self._border(dim, timed=timed)
        steps = undominated(extents, sizes.outer, sizes.inner, depth, skipping=skipping, edge=edge)
        return steps if axis is None else self._free(axis, sizes.inner, steps)

    def plain(self, dim: str) -> Ints:
        """The chains in bytes."""
        return self._listed(dim, ())

    def _strips(self, dim: str, measures: Sequence[str]) -> Ints:
        """Chains of two loops next to each other: strips as wide as one loop would cut, in even steps."""
        sizes, order = self.sizes[dim], list(self.skeleton.order)
        del order[order.index(dim)]
        depth = {op: k - (k >= self.skeleton.depth["IN"]) for op, k in self.skeleton.depth.items()}
        alone = replace(self.skeleton, order=tuple(order), depth=depth, line=False)
        wide = replace(self, skeleton=alone, sizes={**self.sizes, dim: Sizes.of(sizes.outer)})
        strips, inner = wide._listed(dim, measures)[:, 0], even_steps(self.extents(dim), sizes.inner)
        one, two = (grid_.ravel() for grid_ in np.meshgrid(strips, inner, indexing="ij"))
        chains = np.stack([one, two], axis=1)
        finer = cut(self.share(dim), chains).number > cut(self.share(dim), chains[:, :1]).number
        return chains[finer]

    # ---- free pieces -----------------------------------------------------------------------------------------

    def axis(self, dim: str, *, bound: bool = False, timed: bool = False) -> Cut | None:
        """Rows or columns that loops may cut in free pieces (for a `bound` whatever pins say), where that matters.

        In bytes it does not where every output needs its own element of the input and no other.
        """
        window = input_windows(self.layer)[dim] if dim in "rc" else None
        ranges = tuple(dict.fromkeys(core.range(dim) for core in cores(self.layer, self.skeleton.spatial)))
        if (
            window is None
            or (dim in self.even and not bound)
            or not self.skeleton.levels(dim)
            or self.share(dim) > _FREE
        ):
            return None
        # where pins say more than how large pieces are, bounds from free pieces would leave them aside
        if self._plain(dim) and (self._pinned(dim) or not (bound or timed)):
            return None
        ranges = tuple(sorted(ranges, key=lambda r: r[0] - r[1]))
        return Cut(window, ranges, (self.skeleton.level(dim, "IN"), self.skeleton.level(dim, "OUT")))

    def _free(self, axis: Cut, inner: Ints, *more: Ints) -> Ints:
        """Free pieces and other chains, each once."""
        lists = [free_chains(axis, inner), *more]
        if more:
            lists.append(whole_windows(axis, inner))
        rows = dict.fromkeys(tuple(int(x) for x in row) for chains in lists for row in chains)
        return np.array(list(rows), np.int64).reshape(-1, axis.depth)

    def _everything(self, dim: str) -> Ints:
        """All chains of steps; of few outputs all cuts, of more those that an optimum may need."""
        sizes, depth, axis = self.sizes[dim], self.skeleton.levels(dim), self.axis(dim)
        steps = grid(sizes.outer, sizes.inner, depth)
        if axis is None:
            return steps
        return self._free(axis, sizes.inner, steps, *([every_cut(axis, sizes.inner)] if axis.extent <= _TINY else []))

    # ---- bounds ----------------------------------------------------------------------------------------------

    def exact(self, measures: Sequence[str]) -> bool:
        """Whether the chains hold an optimum of all nests for these measures; else `branch(ideal=True)` bounds it.

        The least room on chip is that of the smallest tiles: a cut more makes none larger, and where a reduction is cut
        OUT takes the same however it is. Candidates have pieces of one, with reductions whole too; with lines and in
        snake order nests may do without these abilities.
        """
        if self.skeleton.line:
            return False
        if set(measures) <= {"ocm"} and not any(map(self._pinned, DIMS)):
            return True  # by the smallest tiles, which are candidates
        if self._able:
            return False
        if not self.skeleton.full:
            return True
        first, *others = cores(self.layer, self.skeleton.spatial)
        unequal = any(core.smaller(first) for core in others)  # there loops may cut nothing
        if "time" in measures or self.machine.edge_tiles == "uniform" or unequal:
            return False
        every = {d for d in "rc" if self.full and self.extents(d)[0] <= _TINY}  # all cuts are listed
        return not any(self._unsure(d) for d in DIMS if self.skeleton.levels(d) and d not in every)

    @property
    def _able(self) -> bool:
        """Whether machine abilities may make of some nest more than candidates do (`formulations.tiling.tiling`)."""
        return self.machine.snake or self.lines

    @property
    def lines(self) -> bool:
        """Whether IN in lines may move less than without."""
        several = self.machine.line and self.skeleton.level("r", "IN") > 0 and self.skeleton.level("c", "IN") > 0
        return several and any(w.reach > w.stride for w in input_windows(self.layer).values())

    def _unsure(self, dim: str) -> bool:
        """Whether the chains of a dimension may miss the fewest bytes."""
        if dim in "ij":
            return self.skeleton.level(dim, "IN") > 0
        if dim not in "rc":
            return dim == "n" and self.skeleton.levels(dim) > 1 and self._biased
        if self.skeleton.level(KERNELS[dim], "IN") or dim in self.even:
            return dim not in self.even
        axis = self.axis(dim)
        if axis is None:
            return not input_windows(self.layer)[dim].trivial
        return self.several(dim) or not complete(axis) or self._pinned(dim)

    def several(self, dim: str) -> bool:
        """Whether inputs have different rows on chip."""
        return dim == "r" and len(set(self.layer.residents)) > 1

    def _pinned(self, dim: str) -> bool:
        """Whether pins say more of the largest piece than what it is at most."""
        inner = self.sizes[dim].inner
        return len(inner) != int(inner.max(initial=0))

    @property
    def _biased(self) -> bool:
        return self.layer.bias and self.machine.bias_bytes > 0

    def _plain(self, dim: str) -> bool:
        """Whether rows (columns) of the input are those of the result."""
        window = input_windows(self.layer)[dim]
        ranges = [core.range(dim) for core in cores(self.layer, self.skeleton.spatial)]
        return self.skeleton.full and window.trivial and all(hi <= window.size for _, hi in ranges)

    def _kernel_chains(self, extents: tuple[int, ...], sizes: Sizes, depth: int) -> Ints:
        if extents[0] <= _TAPS or depth == 1:
            return grid(sizes.outer, sizes.inner, depth)
        even = even_steps(extents, sizes.inner)
        late = np.stack([np.full_like(even, sizes.outer[-1]), even], axis=1)
        return np.unique(np.concatenate([np.stack([even, even], axis=1), late]), axis=0)

    def lanes(self, dim: str) -> int:
        """Lanes of the MAC array along a dimension; 0 if there are none."""
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
        taps = self.skeleton.levels(KERNELS[dim]) > 0
        skipping = window.reach < window.stride or (taps and window.stride > 1)
        ranges = tuple(dict.fromkeys(core.range(dim) for core in cores(self.layer, self.skeleton.spatial)))
        before, behind = (max(c) for c in zip(*(window.clipping(*r) for r in ranges), strict=True))
        stride = window.stride
        if self.machine.edge_tiles == "uniform" or self.machine.reading == "literal":
            return skipping, Edge()
        parts: tuple[Window, ...] = ()
        if (before > behind or max(before, behind) > stride) and self.share(dim) <= _CLIPPED:
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
        share = self.share(dim)
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


def tiles_of(listing: Listing, found: Steps) -> Steps:
    """The innermost sizes of chains, of free pieces the largest."""
    tiles = {}
    for d, chain in found.items():
        whole = np.full(len(chain), listing.share(d), np.int64)
        last = chain[:, -1] if chain.shape[1] else whole
        tiles[d] = np.where(last > 0, last, cut(listing.share(d), chain).largest) if (last < 0).any() else last
    return tiles
