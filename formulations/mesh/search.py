"""Mesh: the best pair of options of two merged halves, by looking at all of them; and a greedy tile.

An example: 2,000 options of b, (r, i) and (c, j) merged, and 300 of g, m and n. A measure of all 600,000 pairs is one
product of matrices, and the least entry that fits is the optimum of the member.

Sets
    U, V    options of the two halves, merged from the groups of a `formulations.mesh.space.Member`; of maps that are
            matched the halves are split otherwise (`halves`)
Given
    a[u, k], b[v, k]    terms, products over the groups of a half; key[u], key[v]; total
    f[k], c             factors and constant of a measure or buffer
    limits              the most of dram and glb [bytes] and of cycles, from objectives before and the incumbent
    forbidden           pairs that have no bank layout
Variables
    one pair (u, v)
Objective
    ``c + sum_k f[k] a[u, k] b[v, k]`` for dram, glb [bytes] and cycles;
    time [cycles] = max(cycles, ceil(dram / rate), ceil(glb / rate))
Constraints
    key[u] + key[v] = total; every buffer and every limit as such a sum; not forbidden
Optimal means
    `best_pair` looks at every pair whose keys add up. Merged options are left out if they are dominated, or exceed a
    buffer or limit with the least of each term in the other half.

`greedy` proves nothing: it changes one group's option at a time while that helps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from formulations.mesh.price import Ints, Linear, roof
from formulations.mesh.space import Group, Member, undominated
from hwmodels.schedule import Choice

#: Pairs of options that are looked at in one piece of memory.
_PIECE = 4_000_000
#: Options beyond which a merged half is not reduced again.
_REDUCED = 60_000

#: The most of each measure: dram, glb (bytes), cycles.
Limits = Mapping[str, int]


@dataclass(frozen=True)
class Halves:
    """A member's groups in two halves; a plan takes one option of each, whose keys add up."""

    member: Member
    left: Group
    right: Group
    """`left`, `right`: merged options; `left_of` and `right_of` say which options of the member's groups they stand
    for.
    """
    limits: Limits
    forbidden: set[tuple[int, int]] = field(default_factory=set)
    """Pairs without a layout."""

    @cached_property
    def pairs(self) -> int:
        """Pairs of options, whether their keys add up or not."""
        return len(self.left) * len(self.right)

    def choice(self, pair: tuple[int, int]) -> Choice:
        """The choice of a pair."""
        return self.member.choice([(self.left, pair[0]), (self.right, pair[1])])

    def values(self, what: Linear, left: Ints, right: Ints) -> Ints:
        """A sum of terms for all pairs of these options."""
        factors = self.member.vector(what)
        found: Ints = (self.left.terms[left] * factors) @ self.right.terms[right].T + what.constant
        return found

    def bounds(self, which: Group, other: Group, what: Linear) -> Ints:
        """The least of a sum for every option of one half: the least of each term in the other."""
        least = other.terms.min(axis=0, initial=0 if not len(other) else 2**62)
        found: Ints = which.terms @ (self.member.vector(what) * least) + what.constant
        return found


def halves(member: Member, limits: Limits) -> Halves:
    """Merge the groups; options that exceed a buffer or limit whatever they are paired with are left out."""
    # Maps that are matched have no filters: then rows and columns are one half each.
    order = ([0, 4], [1, 2, 3, 5]) if member.setup.layer.kind == "correlation" else ([0, 4, 5], [1, 2, 3])
    left, right = (_merged(member, [member.groups[at] for at in half], limits) for half in order)
    made = Halves(member, left, right, limits)
    for _ in range(2):
        for what, most in member.demands(limits):
            if len(left) and len(right):
                left = left.take(np.flatnonzero(made.bounds(left, right, what) <= most))
            if len(left) and len(right):
                right = right.take(np.flatnonzero(made.bounds(right, left, what) <= most))
    return Halves(member, left, right, limits)


def _merged(member: Member, groups: Sequence[Group], limits: Limits) -> Group:
    """One group whose options are the combinations of several."""
    found, total = groups[0], np.array(member.total, dtype=np.int64)
    for n, group in enumerate(groups[1:], 2):
        rest = [g for g in member.groups if len(g) and all(g is not one for one in groups[:n])]
        least = prod((g.terms.min(axis=0) for g in rest), start=np.ones_like(total, shape=1))
        found = _product(member, found, group, limits, np.asarray(least, dtype=np.int64), total)
        if len(found) <= _REDUCED:
            fixed = [name for name in found.columns if name.startswith("P_")]
            found = undominated(found, fixed, member.setup.clock)
    return found


def _product(member: Member, one: Group, two: Group, limits: Limits, least: Ints, total: Ints) -> Group:
    """All pairs of two groups that may keep every demand."""
    kept: list[tuple[Ints, Ints]] = []
    rows = max(1, _PIECE // max(1, len(two)))
    for begin in range(0, len(one), rows):
        member.setup.clock.tick()
        part = one.terms[begin : begin + rows]
        fits = np.ones((len(part), len(two)), dtype=bool)
        for what, most in member.demands(limits):
            fits &= (part * (member.vector(what) * least)) @ two.terms.T + what.constant <= most
        if len(total):
            fits &= (one.keys[begin : begin + rows, None, :] + two.keys[None, :, :] <= total).all(axis=2)
        a, b = np.nonzero(fits)
        kept.append((a + begin, b))
    left = np.concatenate([a for a, _ in kept]) if kept else np.zeros(0, dtype=np.int64)
    right = np.concatenate([b for _, b in kept]) if kept else np.zeros(0, dtype=np.int64)
    return Group(
        (*one.columns, *two.columns), np.concatenate([one.values[left], two.values[right]], axis=1),
        one.terms[left] * two.terms[right], np.concatenate([one.shape[left], two.shape[right]], axis=1),
        one.keys[left] + two.keys[right],
    )  # fmt: skip


Pair = tuple[int, int]


def leading(found: Halves) -> tuple[Halves, Callable[[Pair], Pair]]:
    """Return the options that lead, and the pair of all options that a pair of these is.

    An option leads if none with the same keys dominates it, extents of tiles aside. Their best pair is as good as that
    of all options; only its layout may fail where another option's does not. So all options are returned once a pair is
    forbidden.
    """
    if found.forbidden:
        return found, lambda pair: pair
    clock = found.member.setup.clock
    left, right = (
        undominated(
            Group(("at",), np.arange(len(half), dtype=np.int64)[:, None], half.terms, half.shape[:, :0], half.keys),
            clock=clock,
        ).values[:, 0]
        for half in (found.left, found.right)
    )
    few = replace(found, left=found.left.take(left), right=found.right.take(right))
    return few, lambda pair: (int(left[pair[0]]), int(right[pair[1]]))


def classes(found: Halves) -> Iterator[tuple[Ints, Ints]]:
    """Yield the options of both halves whose keys add up."""
    total = np.array(found.member.total, dtype=np.int64)
    if not len(found.left) or not len(found.right):
        return
    for key in np.unique(found.left.keys, axis=0):
        left = np.flatnonzero((found.left.keys == key).all(axis=1))
        right = np.flatnonzero((found.right.keys == total - key).all(axis=1))
        if len(right):
            yield left, right


def fitting(found: Halves, left: Ints, right: Ints) -> NDArray[np.bool_]:
    """Which pairs keep every demand and limit, and are not forbidden."""
    fits = np.ones((len(left), len(right)), dtype=bool)
    for what, most in found.member.demands(found.limits):
        fits &= found.values(what, left, right) <= most
    for a, b in found.forbidden:
        fits[np.ix_(left == a, right == b)] = False
    return fits


def costs(found: Halves, measure: str, left: Ints, right: Ints) -> Ints:
    """The objective of pairs."""
    most: Ints = np.maximum.reduce(parts(found, measure, left, right))
    return most


def parts(found: Halves, measure: str, left: Ints, right: Ints) -> list[Ints]:
    """What the objective of pairs is the most of: the parts of the roofline, or the measure alone."""
    sums = found.member.measures
    rates = roof(found.member.setup.mesh, measure).items()
    values = ((found.values(sums[name], left, right), rate) for name, rate in rates)
    return [value if rate == 1 else -(-value // rate) for value, rate in values]


def best_pair(found: Halves, measure: str) -> tuple[tuple[int, int] | None, int | None, bool]:
    """Return the pair with the least objective, that, and whether all pairs were looked at before the time was up."""
    best: tuple[tuple[int, int] | None, int | None] = None, None
    for left, right in classes(found):
        rows = max(1, _PIECE // len(right))
        for begin in range(0, len(left), rows):
            if found.member.setup.clock.over:
                return *best, False
            part = left[begin : begin + rows]
            values = np.where(fitting(found, part, right), costs(found, measure, part, right), 2**62)
            at = int(values.argmin())
            a, b = divmod(at, len(right))
            if values[a, b] < 2**62 and (best[1] is None or values[a, b] < best[1]):
                best = (int(part[a]), int(right[b])), int(values[a, b])
    return *best, True


# ---- greedy ----------------------------------------------------------------------------------------------------------


def greedy(member: Member, measure: str, limits: Limits) -> Iterator[tuple[int, Choice]]:
    """Yield plans, one for every way to lay indices along sides and PEs: option by option what is best, given the rest.

    It starts from the smallest tile. Nothing is proven.
    """
    keyed = [_by_key(group) for group in member.groups]
    total = np.array(member.total, dtype=np.int64)
    for keys in product(*(list(by) for by in keyed)):
        if len(total) and (np.sum(keys, axis=0) != total).any():
            continue
        groups = [by[key] for by, key in zip(keyed, keys, strict=True)]
        picked = _descend(member, measure, limits, groups)
        if picked is not None:
            value, at = picked
            yield value, member.choice(list(zip(groups, at, strict=True)))


def _by_key(group: Group) -> dict[tuple[int, ...], Group]:
    found = {}
    for key in np.unique(group.keys, axis=0) if len(group) else []:
        found[tuple(int(k) for k in key)] = group.take(np.flatnonzero((group.keys == key).all(axis=1)))
    return found


def _descend(member: Member, measure: str, limits: Limits, groups: list[Group]) -> tuple[int, list[int]] | None:
    tiles = sum(member.vector(cap.what) for cap in member.caps)
    at = [int((group.terms @ tiles).argmin()) for group in groups]
    value: int | None = None
    for _ in range(20):
        before = list(at)
        for k, group in enumerate(groups):
            member.setup.clock.tick()
            rest = np.prod([g.terms[i] for g, i in zip(groups, at, strict=True)][:k] or [1], axis=0)
            rest = rest * np.prod([g.terms[i] for g, i in zip(groups, at, strict=True)][k + 1 :] or [1], axis=0)
            single = Group((), np.zeros((1, 0), dtype=np.int64), np.atleast_2d(rest), group.shape[:1], group.keys[:1])
            pair = Halves(member, group, single, limits)
            every, one = np.arange(len(group)), np.zeros(1, dtype=np.int64)
            values = np.where(fitting(pair, every, one), costs(pair, measure, every, one), 2**62)[:, 0]
            if values.min() < 2**62:
                at[k], value = int(values.argmin()), int(values.min())
        if at == before:
            break
    return None if value is None else (value, at)
