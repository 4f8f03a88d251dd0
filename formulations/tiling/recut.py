"""Better places to cut for a nest whose transfers overlap with compute: one loop at a time, by dynamic programming.

Sets
    places x of a loop's range; pieces [a, b) between two places, no larger than what fits; passes o (iterations of the
    loops outside), which all cut alike
Costs
    of `hwmodels.nest.price.passes`: a piece with steps of its own (`single` is false) in pass o, between the store s of
    the step before and the load l of the step behind, ``max(first, s) + middle + max(last, l)``; one of a single step
    ``max(first, s, l)``
State
    F(i, j): the least of all pieces up to j, that of j itself left out, where i is the piece before j
Recursion
    F(j, k) = min_i F(i, j) + sum_o cost(j; store of i, load of k);  pieces of several steps: a part of i, one of k
Ends
    of a pass stand between those of the nest as it is. With one pass the optimum over all cuts at these places is
    found; with several, one that the next turn may improve. What is found is a nest as any other, and priced as such.
Places
    all, where these are few; else a grid, and then the places around those of the best nest, ever closer.
Source: exchange of one loop at a time; the recursion is that of shortest paths in the graph of pairs of pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from formulations.tiling.branch import Branch
from formulations.tiling.listing import tiles_of
from formulations.tiling.member import Member
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.choices import Choices, Tree, numbered
from hwmodels.nest.price.passes import Passes, passes
from hwmodels.nest.price.pieces import chain_of, code_of
from hwmodels.nest.price.skeleton import Skeleton, cores
from hwmodels.schedule import Nest, Step

#: Steps of pieces that are priced at once.
MOST_STEPS = 300_000
#: Places of a loop at a time.
PLACES = 32
#: Pieces of a dimension that are cut anew by a second loop at most.
GROUPS = 12
#: How much larger pieces at the ends of a range may be than others.
CLIPPED = 2


def cheapest_cut(found: Passes, pieces: Ints, lo: int, hi: int) -> list[int] | None:
    """Return the places between lo and hi to cut at, by the recursion of the module's docstring; None if none fit.

    `pieces` (N, 2) are sorted by where they begin.
    """
    graph = _Pairs(found, pieces, (lo, hi))
    arrived = {lo: [_Arrival(-1, graph.rows.stored, graph.starts)]}
    ways, best = dict[int, Ints](), None
    for place, behind in graph.after.items():
        if place not in arrived:
            continue
        some = arrived.pop(place)
        total = graph.ahead(behind, some)
        at = total.argmin(axis=0)
        least = np.take_along_axis(total, at[None], axis=0)[0]
        before = np.array([one.piece for one in some])[at]
        for j, row, way in zip(behind, least, before, strict=True):
            end, ways[j] = int(pieces[j, 1]), way
            if end != hi:
                arrived.setdefault(end, []).append(
                    _Arrival(j, graph.rows.store[:, j], row[: len(graph.after.get(end, []))])
                )
            elif best is None or row[0] < best[0]:
                best = int(row[0]), j
    if best is None:
        return None
    places, j, number = list[int](), best[1], 0
    while (i := int(ways[j][number])) >= 0:
        places.append(int(pieces[j, 0]))
        j, number = i, graph.after[places[-1]].index(j)
    return places[::-1]


@dataclass(frozen=True)
class _Arrival:
    """A piece that ends at a place (-1: none), what it stores in each pass, and F with every piece behind (K,)."""

    piece: int
    store: Ints
    cost: Ints


class _Pairs:
    """What pieces cost beside others, all passes together."""

    def __init__(self, found: Passes, pieces: Ints, ends: tuple[int, int]) -> None:
        self.rows, self.weight = _alike(found)
        self.middle, self.ends, self.after = found.middle.sum(axis=0), ends, dict[int, list[int]]()
        self.end = pieces[:, 1].tolist()
        for j, begin in enumerate(pieces[:, 0].tolist()):
            self.after.setdefault(begin, []).append(j)
        self.loads = np.concatenate([self.rows.load, self.rows.loaded[:, None]], axis=1)

    @property
    def starts(self) -> Ints:
        """What the step before takes, for every piece that begins a pass (K,)."""
        rows, first = self.rows, self.after.get(self.ends[0], [])
        cost: Ints = self.weight @ np.maximum(rows.before[:, None], rows.load[:, first] + rows.head[:, None])
        return cost

    def ahead(self, pieces: list[int], some: Sequence[_Arrival]) -> Ints:
        """F (I, J, K) of all pieces from a place on, behind those before it, with every piece behind each.

        Of one at the end of the pass with what stands behind it. There are as many K as any has; others say nothing.
        """
        rows, width = self.rows, max(len(self._behind(j)) for j in pieces)
        behind = np.array([(x := self._behind(j)) + [-1] * (width - len(x)) for j in pieces], np.int64)
        stored = np.stack([one.store for one in some], axis=1)
        total = np.array([one.cost for one in some])[:, :, None] + self.middle[pieces, None]
        total = np.broadcast_to(total, (*total.shape[:2], width)).copy()
        for number, weight in enumerate(self.weight.tolist()):
            begun = np.maximum(rows.first[number, pieces], stored[number, :, None])[:, :, None]
            loads, last = self.loads[number][behind], rows.last[number, pieces, None]
            single, other = rows.single[number, pieces, None], begun + np.maximum(last, loads)
            total += weight * (np.where(single, np.maximum(begun, loads), other) if single.any() else other)
        done = [n for n, j in enumerate(pieces) if self.end[j] == self.ends[1]]
        for n in done:
            total[:, n] += self.weight @ np.maximum(rows.behind, rows.store[:, pieces[n]] + rows.tail)
        return total

    def _behind(self, j: int) -> list[int]:
        """The pieces behind one; what is behind the pass stands for itself."""
        return [-1] if self.end[j] == self.ends[1] else self.after.get(self.end[j], [])


def _alike(found: Passes) -> tuple[Passes, Ints]:
    """The passes without those that are like another one, and how many each stands for."""
    names = [name for name in vars(found) if name != "middle"]
    table = np.concatenate([getattr(found, n).reshape(len(found.head), -1) for n in names], axis=1)
    first = dict[bytes, int]()
    like = np.array([first.setdefault(row.tobytes(), number) for number, row in enumerate(table)])
    at, count = np.unique(like, return_counts=True)
    return replace(found, **{name: getattr(found, name)[at] for name in vars(found)}), count


@dataclass(frozen=True)
class Cutting:
    """A nest of a member: how its loops cut, and the loop that IN slides along."""

    member: Member
    loops: Mapping[str, tuple[Step, ...]]
    slide: tuple[str, int] | None

    @classmethod
    def of(cls, member: Member, branch: Branch, s: int, q: int) -> Cutting:
        """The nest of one choice of a member's branch."""
        return cls(member, branch.choices.chain(s, q), branch.choices.slide(s))

    @property
    def skeleton(self) -> Skeleton:
        """With the loop that IN slides along innermost."""
        return self.member.skeleton.last(self.slide) if self.slide else self.member.skeleton

    @property
    def key(self) -> tuple[object, ...]:
        """What tells starts apart: loops that cut nothing yet count where others that cut now may cut less."""
        rows, seen = list[tuple[str, Step]](), dict.fromkeys(self.loops, 0)
        for d in self.skeleton.order:
            step = self.loops[d][seen[d]]
            seen[d] += 1
            rows += [(d, step)] if step != self.member.share(d) else []
        return tuple(rows), self.nest

    @property
    def nest(self) -> Nest:
        """The nest itself."""
        return self.skeleton.nest(self.loops, self.member.layer)

    def branch(self, **more: Ints) -> Branch:
        """Priced, with capacities; `more`: other chains (T, L) of some dimensions."""
        chains = chain_of(self.loops) | more
        for dim, kernel in (("r", "i"), ("c", "j")):
            most = max(len(chains[dim]), len(chains[kernel]))
            chains |= {d: np.repeat(chains[d], most // len(chains[d]), axis=0) for d in (dim, kernel)}
        choices = Choices.product(chains, tiles_of(self.member, chains), (self.slide,) if self.slide else ())
        return self.member.priced(choices, ())

    def planned(self) -> Branch | None:
        """Priced, if it fits and is a nest of the member."""
        branch = self.branch()
        return branch if branch.feasible().all() and self.member.holds(self.nest) else None

    def fits(self, dim: str, level: int) -> NDArray[np.bool_]:
        """Which sizes (E + 1,) a piece of a loop may have where padding does not clip it."""
        extent = self.member.share(dim)
        row = chain_of(self.loops)[dim]
        chains = np.repeat(row, extent, axis=0)
        chains[:, level] = np.arange(1, extent + 1)
        if dim in "rc":  # the second piece, behind one of a row
            for size in range(2, extent - 1):
                chains[size - 1, level] = code_of((1, *range(1 + size, extent)))
        fits = np.append(False, self.branch(**{dim: chains}).feasible().ravel())
        if level == len(self.loops[dim]) - 1:
            fits[np.setdiff1d(np.arange(extent + 1), self.member.sizes[dim].inner)] = False
        return fits

    def pieces(self, dim: str, level: int, places: Sequence[int]) -> Ints:
        """The pieces (N, 2) between some places that fit; at the ends of the range padding may clip larger ones."""
        fits, extent = self.fits(dim, level), self.member.share(dim)
        most = int(np.flatnonzero(fits).max(initial=0))
        found = []
        for at, a in enumerate(places):
            for b in places[at + 1 :]:
                end = dim in "rc" and (a == 0 or b == extent) and most < b - a <= most + CLIPPED
                if fits[b - a] or (end and self._alone(dim, level, a, b)):
                    found.append((a, b))
        return np.array(found, np.int64).reshape(-1, 2)

    def _alone(self, dim: str, level: int, begin: int, end: int) -> bool:
        """Whether a piece fits beside pieces of one row (or column) each."""
        others = tuple(x for x in range(1, self.member.share(dim)) if not begin < x < end)
        row = (*self.loops[dim][:level], others or self.member.share(dim), *self.loops[dim][level + 1 :])
        return replace(self, loops={**self.loops, dim: row}).planned() is not None

    def cut(self, dim: str, level: int, group: tuple[int, int], places: Sequence[int]) -> Cutting:
        """The same with other places between two places."""
        share, lo, hi = self.member.share(dim), *group
        tree = Tree.of(0, share, self.loops[dim][: level + 1])
        kept = [int(x) for x in np.setdiff1d(tree.start[level + 1], tree.start[level]) if not lo < x < hi]
        every = tuple(sorted({*kept, *places}))
        row = (*self.loops[dim][:level], every or share, *self.loops[dim][level + 1 :])
        return replace(self, loops={**self.loops, dim: row})


def may_recut(member: Member) -> bool:
    """Whether loops of a member can be cut anew: tiles are counted as they are, loops run one way."""
    machine = member.machine
    plain = machine.edge_tiles == "true" and machine.compute.model != "tile" and not machine.snake
    return plain and member.timeline and not member.skeleton.line


def starts(cutting: Cutting) -> Iterator[Cutting]:
    """Yield nests to begin with: this one; of two loops over a dimension the outer one alone, and the inner one alone.

    Of the last two some may not fit, or be no nest of the member: what is found from there may.
    """
    yield cutting
    twice = {d: row for d, row in cutting.loops.items() if len(row) > 1}
    for last in (False, True) if twice else ():
        rows = {}
        for d, row in twice.items():
            share = cutting.member.share(d)
            rows[d] = tuple(row[-1] if (level == len(row) - 1) == last else share for level in range(len(row)))
        yield replace(cutting, loops={**cutting.loops, **rows})


def in_any_order(cutting: Cutting) -> Iterator[Cutting]:
    """Yield a nest, and it with two neighbouring loops that cut, between two Holds, in the other order."""
    yield cutting
    member, skeleton = cutting.member, cutting.member.skeleton
    cuts = [at for at, (d, k) in enumerate(numbered(skeleton.order)) if cutting.loops[d][k] != member.share(d)]
    for one, two in pairwise(cuts if member.any_order else ()):
        if skeleton.order[one] != skeleton.order[two] and not any(one < at <= two for at in skeleton.depth.values()):
            order = list(skeleton.order)
            order[one], order[two] = order[two], order[one]
            yield replace(cutting, member=replace(member, skeleton=replace(skeleton, order=tuple(order))))


def climbed(cutting: Cutting, time_of: Callable[[Cutting], float], late: Callable[[], bool]) -> None:
    """Cut one loop after the other anew, as long as that saves time; `time_of` notes what it is asked about."""
    best, before = time_of(cutting), None
    while before is None or best < before:
        before = best
        for at in range(len(cutting.skeleton.order)):
            for group, spacing in _turns(cutting, at):
                if late():
                    return
                found = cut_anew(cutting, at, group, spacing)
                if found is not None and (value := time_of(found)) < best:
                    best, cutting = value, found


def _turns(cutting: Cutting, at: int) -> list[tuple[tuple[int, int], int]]:
    """The pieces of a dimension that a loop cuts, and how far apart places are."""
    dim, level = numbered(cutting.skeleton.order)[at]
    if dim in cutting.member.even:
        return []
    groups = _groups(cutting, dim, level)[:GROUPS]
    return [(group, spacing) for group in groups for spacing in _spacings(group)]


def _groups(cutting: Cutting, dim: str, level: int) -> list[tuple[int, int]]:
    tree = Tree.of(0, cutting.member.share(dim), cutting.loops[dim][:level])
    return [(int(a), int(b)) for a, b in zip(tree.start[-1], tree.stop[-1], strict=True) if b - a > 1]


def _spacings(group: tuple[int, int]) -> list[int]:
    """How far apart places are, coarse to fine."""
    width = group[1] - group[0]
    if width <= PLACES:
        return [1]
    found = [-(-width // (PLACES // 2))]
    while found[-1] > 1:
        found.append(found[-1] // 2)
    return found


def cut_anew(cutting: Cutting, at: int, group: tuple[int, int], spacing: int) -> Cutting | None:
    """The nest with one piece of a dimension cut anew by a loop; None if nothing is found."""
    member, skeleton = cutting.member, cutting.skeleton
    (core,) = cores(member.layer, skeleton.spatial)
    dim, level = numbered(skeleton.order)[at]
    tree = Tree.of(0, member.share(dim), cutting.loops[dim][: level + 1])
    begins = tree.start[level + 1]
    now = begins[(begins > group[0]) & (begins < group[1])]
    pieces = cutting.pieces(dim, level, _places(group, now, spacing))
    if not len(pieces):
        return None
    number = int(np.flatnonzero(tree.start[level] == group[0])[0])
    found = passes(member.layer, member.machine, skeleton, core, cutting.loops, at, number, pieces, MOST_STEPS)
    if found is None:
        return None
    best = cheapest_cut(found, pieces, *group)
    return None if best is None or best == [int(x) for x in now] else cutting.cut(dim, level, group, best)


def _places(group: tuple[int, int], now: Ints, spacing: int) -> list[int]:
    """Places between which pieces lie."""
    lo, hi = group
    if hi - lo <= PLACES:
        return list(range(lo, hi + 1))
    some = {lo, hi, *map(int, now)}
    if spacing * PLACES // 2 >= hi - lo:
        some |= set(range(lo, hi, spacing))
    near = [lo, hi, *map(int, now)]
    some |= {x + d for x in near for d in (-spacing, spacing)}
    return sorted(x for x in some if lo <= x <= hi)
