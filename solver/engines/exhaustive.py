"""Exhaustive search: every combination of candidates, vectorised, one objective after the other.

For one unconstrained layer this is exact and faster than any solver; CP-SAT and MILP confirm it by another route.
Stage k minimises the k-th objective among the plans that keep the values of the earlier ones. A first pass over few
candidates gives a good plan; the second looks at everything that separable lower bounds do not exclude: chains by the
least factors of all other axes (`formulations.member`), rows and columns by ``sum_k a[k,s] * min_q b[k,q]``. The first
stage ends early where the plan moves no more than any plan must (`hwmodels.limits`).

Double-buffered time is a sum of maxima over steps and no table. As the first objective it is searched exactly,
timelines in the order of their lower bounds. As a tie-break it is the best of the `TIMELINES` most promising ones, the
same for every engine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from formulations.branch import Branch, lower_bounds, within
from formulations.member import Member
from formulations.space import Space
from hwmodels.bilinear import Ints
from hwmodels.limits import compulsory_bytes
from solver.engines.base import EngineResult, Limits, Pick, Status, stages, vector

__all__ = ["Search", "best_pick", "run"]

#: Timelines that are laid out to break a tie.
TIMELINES = 300
_CHUNK = 4_000_000
Values = Mapping[str, int]


@dataclass
class Search:
    """One lexicographic search of a space.

    Attributes
    ----------
    best : Pick or None
        The best plan so far.
    kept : dict of str to int
        The values of the objectives that are settled.
    whole : bool
        Whether everything was looked at.
    looked : int
        Combinations of candidates whose value was computed.
    """

    space: Space
    objectives: tuple[str, ...]
    bounding: bool = True
    deadline: float | None = None
    best: Pick | None = None
    kept: dict[str, int] = field(default_factory=dict)
    whole: bool = True
    looked: int = 0

    def run(self) -> Pick | None:
        """Settle all objectives."""
        for measure in stages(self.objectives):
            self.settle(measure)
            if self.best is None or not self.whole:
                break
            self.kept[measure] = self.best.measures[measure]
        return self.best

    def settle(self, measure: str) -> None:
        """Minimise one measure with the earlier ones kept."""
        before = self.best
        if self.kept and any(m.timeline for m in self.space.members):
            self.best = None  # what is looked at shall not depend on how the first plan was found
        members = list(self.space.members)
        if self.bounding:
            self.first(measure)
            members.sort(key=self._promise)
        for member in members:
            if self._settled(measure):
                break
            if self._late():
                self.whole = False
                break
            self._look(member, measure)
        if before is not None:
            self._take(before)

    def first(self, measure: str) -> Pick | None:
        """Find a good plan among few candidates: those that settled the objectives before, at first very few."""
        if self.kept and (measure != "time" or "time" in self.kept):
            return self.best  # they are the same
        measures = (*self.kept, measure)
        for member in sorted(self.space.members, key=self._promise):
            if self._late():
                break
            few = {"listed": tuple(self.kept)} if self.kept else {"coarse": True}
            self._search(member.branch(measures, self._limits(measure), **few), measure)
        return self.best

    def _promise(self, member: Member) -> bool:
        return self.best is None or member.label != self.best.branch.label

    def _settled(self, measure: str) -> bool:
        if self.best is None or measure != "bytes" or self.kept or not self.bounding:
            return False
        least: int = compulsory_bytes(self.space.layer, self.space.machine)
        return self.best.measures["bytes"] <= least

    def _late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def _limits(self, measure: str) -> dict[str, int]:
        """What a plan must keep, and below what it must be to matter."""
        limits = dict(self.kept)
        if self.bounding and self.best is not None:
            limits[measure] = self.best.measures[measure] - 1
        return limits

    def _look(self, member: Member, measure: str) -> None:
        branch = member.branch((*self.kept, measure), self._limits(measure))
        self._search(branch, measure)

    def _search(self, branch: Branch, measure: str) -> None:
        for block in _blocks(branch, measure, bounding=self.bounding):
            if self._late():
                self.whole = False
                return
            if block is not branch and self.bounding:
                block = within(block, self._limits(measure))
                if block.empty:
                    continue
            self.looked += block.choices.shape[0] * block.choices.shape[1]
            values = self._values(block, measure)
            if not branch.exact and "time" in (*self.kept, measure):
                self._by_timeline(block, measure, values)
            else:
                self._least(block, measure, values)

    def _values(self, branch: Branch, measure: str) -> NDArray[np.float64]:
        """The measure of every choice (S, Q), infinite where it does not fit or exceeds what is settled."""
        values: NDArray[np.float64] = np.max([t.matrix() for t in branch.tables(measure)], axis=0).astype(np.float64)
        values[~branch.feasible()] = np.inf
        for earlier, value in self.kept.items():
            if earlier == "time" and not branch.exact:
                continue
            for table in branch.tables(earlier):
                values[table.matrix() > value] = np.inf
        return values

    def _least(self, branch: Branch, measure: str, values: NDArray[np.float64]) -> None:
        at = int(values.argmin())
        least = values.flat[at]
        if np.isfinite(least) and (self.best is None or least < self.best.measures[measure]):
            s, q = divmod(at, values.shape[1])
            self._take(self._pick(branch, s, q))

    def _pick(self, branch: Branch, s: int, q: int) -> Pick:
        outcome = branch.outcome(s, q)
        on_chip = {"ocm": max(outcome.occupancy_bytes.values())} if "ocm" in (*self.kept, *self.objectives) else {}
        return Pick(branch, s, q, {**outcome.measures, **on_chip})

    def _by_timeline(self, branch: Branch, measure: str, values: NDArray[np.float64]) -> None:
        """Lay out timelines in the order of the values, which are lower bounds, until none is below the best."""
        s, q = np.nonzero(np.isfinite(values))
        order = np.argsort(values[s, q], kind="stable")
        for number, i in enumerate(order):
            best = self.best.measures[measure] if self.best is not None else np.inf
            if values[s[i], q[i]] >= best or (self.kept and number >= TIMELINES):
                return
            if self._late():
                self.whole = False
                return
            self._take(self._pick(branch, int(s[i]), int(q[i])))

    def _take(self, pick: Pick) -> None:
        if any(pick.measures[m] > v for m, v in self.kept.items()):
            return
        if self.best is None or vector(pick.measures, self.objectives) < vector(self.best.measures, self.objectives):
            self.best = pick


def best_pick(
    space: Space, objectives: tuple[str, ...], *, bounding: bool = True, deadline: float | None = None
) -> tuple[Pick | None, bool]:
    """Return the lexicographically best plan, and whether the whole space was looked at.

    Ties beyond the full objective vector go to the plan found first, in the fixed order of members and candidates.
    """
    search = Search(space, objectives, bounding, deadline)
    return search.run(), search.whole


def floor(space: Space, measure: str) -> int | None:
    """A bound that needs no search: the least separable lower bound of all members."""
    key = "bytes" if measure == "energy" else measure
    branches = [b for m in space.members if not (b := m.branch((key,), coarse=False)).empty]
    bounds = [int(lower_bounds(b.tables(key), "s").min()) for b in branches]
    if not bounds:
        return None
    machine = space.machine
    return min(bounds) * machine.byte_fj + machine.mac_fj * space.layer.macs if measure == "energy" else min(bounds)


def _blocks(branch: Branch, measure: str, *, bounding: bool) -> Iterator[Branch]:
    """Cut a branch in row blocks of bounded size, the most promising rows first."""
    if branch.empty:
        return
    rows = max(1, _CHUNK // branch.choices.shape[1])
    if branch.choices.shape[0] <= rows:
        yield branch
        return
    if bounding:
        rows = max(1, rows // 4)  # similar rows exclude many columns
    order: Ints = np.arange(branch.choices.shape[0])
    if bounding:
        order = np.argsort(lower_bounds(branch.tables(measure), "s"), kind="stable")
    for i in range(0, len(order), rows):
        yield branch.take(s=np.sort(order[i : i + rows]))


def run(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Look at every candidate of the space."""
    start = time.monotonic()
    deadline = None if limits.time_limit_s is None else start + limits.time_limit_s
    search = Search(space, objectives, limits.bounding, deadline)
    pick = search.run()
    wall = time.monotonic() - start
    version = f"numpy {np.__version__}"
    stats: dict[str, object] = {"looked_at": search.looked}
    if pick is None:
        status: Status = "INFEASIBLE" if search.whole else "NO_SOLUTION_FOUND"
        return EngineResult(status, None, None, None, wall, version, stats)
    value = pick.measures[objectives[0]]
    proven = search.whole or bool(search.kept)
    bound = value if proven else floor(space, objectives[0])
    return EngineResult("OPTIMAL" if proven else "FEASIBLE", pick.nest, pick.measures, bound, wall, version, stats)
