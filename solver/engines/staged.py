"""Lexicographic member-by-member solving, shared by the CP-SAT and MILP engines.

Stage i minimises the i-th objective with the earlier ones kept at their proven values. Within a stage the members of
the space are priced, cut in parts (`Branch.parts`) and solved one after the other, each asked only for plans below the
best so far; a part without one is done. With bounding, the search starts from the best plan of a first pass over few
candidates, and only what separable bounds leave over is put in the models. With double-buffered time the model
minimises a lower bound of the time; plans it finds are priced on their exact timeline and cut off until no bound is
below the best exact price; ties are then broken as `solver.engines.exhaustive` does.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from formulations.tiling.branch import Branch, lower_bounds, undominated
from formulations.tiling.member import Member
from formulations.tiling.space import Space
from solver.engines.base import EngineResult, Limits, Pick, Status, aims, proven_of, stages, told, vector
from solver.engines.exhaustive import Search
from solver.engines.floors import closed, floor, in_unit, least_of

__all__ = ["Answer", "BranchSolver", "solve_staged"]

#: Exact timelines laid out per branch before a double-buffered plan is reported with a gap.
_MAX_CUTS = 200


@dataclass(frozen=True)
class Answer:
    """A solver's answer on one branch: best plan found, proven bound, and whether nothing better exists.

    `stopped` if Ctrl-C ended the search.
    """

    choice: tuple[int, int] | None
    bound: int | None
    done: bool
    stopped: bool = False


class BranchSolver(Protocol):
    """Minimises one objective over one branch."""

    def __call__(
        self,
        branch: Branch,
        objective: str,
        at_most: int | None,
        levels: Mapping[str, int],
        cuts: Sequence[tuple[int, int]],
        limits: Limits,
    ) -> Answer:
        """Solve; only plans up to `at_most`, within `levels`, outside `cuts`."""
        ...


class _Stages:
    """The state of one lexicographic run."""

    def __init__(self, solve: BranchSolver, space: Space, objectives: tuple[str, ...], limits: Limits) -> None:
        self.solve, self.space, self.objectives, self.limits = solve, space, objectives, limits
        now = time.monotonic()
        self.deadline = None if limits.time_limit_s is None else now + limits.time_limit_s
        self.end = None if limits.end_s is None else now + limits.end_s
        self.best: Pick | None = None
        self.levels: dict[str, int] = {}
        self.bound: int | None = None
        self.settled, self.interrupted = True, False
        self.proven: tuple[str, ...] = ()
        self.models = self.choices = 0
        self.timeline = any(m.timeline for m in space.members)

    def run(self) -> None:
        """Settle all objectives, or stop where time runs out."""
        first, *rest = stages(self.objectives, self.space.machine)
        if self.limits.bounding:
            self.best = Search(self.space, self.objectives, deadline=self.deadline).first(first)
        self.heuristic = self.best is not None
        for number, key in enumerate((first, *rest)):
            if number and self.timeline and "time" in stages(self.objectives, self.space.machine):
                self._break_ties((first, *rest)[number:])
                return
            if not self._stage(key):
                self.settled = False
                return
            if self.best is None:
                return
            if key in self.aims:
                self._prove(key)
            self.levels[key] = self.best.measures[key]

    def turn(self) -> None:
        """Look for better orders of the loops, as the exhaustive search does."""
        if self.best is not None:
            search = Search(self.space, self.objectives, deadline=self.deadline, best=self.best, proven=self.proven)
            search.turn()
            self.best = search.best

    @property
    def aims(self) -> tuple[str, ...]:
        """The measures asked for."""
        return aims(self.objectives, self.space.machine)

    def _prove(self, key: str) -> None:
        """See whether nests beyond the candidates may be better; a measure is proven only if the ones before are."""
        assert self.best is not None
        search = Search(
            self.space, self.objectives, self.limits.bounding, self.deadline, best=self.best, kept=dict(self.levels)
        )
        beyond = search.beyond(key)
        if beyond is None and len(self.proven) == self.aims.index(key):
            self.proven += (key,)
        if not self.levels:
            least = self.best.measures[key] if beyond is None else beyond
            self.bound = self._in_unit(least)

    def _break_ties(self, rest: Sequence[str]) -> None:
        search = Search(self.space, self.objectives, deadline=self.deadline, best=self.best, kept=dict(self.levels))
        for key in rest:
            search.settle(key)
            if search.best is None or search.stopped:
                break
            if key in self.aims and search.whole and len(self.proven) == self.aims.index(key):
                self.proven += (key,)
            search.kept[key] = self.levels[key] = search.best.measures[key]
        self.best = search.best or self.best

    def _most(self, key: str) -> int | None:
        return None if self.best is None else self.best.measures[key] - 1

    def _members(self) -> list[Member]:
        """All members, the one of the best plan first."""

        def other(label: Mapping[str, str]) -> bool:
            return self.best is None or label != self.best.branch.label

        return sorted(self.space.members, key=lambda m: other(m.label))

    def _parts(self, member: Member, key: str) -> list[Branch]:
        """What is left of a member, in parts."""
        limits = dict(self.levels)
        most = self._most(key)
        if self.limits.bounding and most is not None:
            limits[key] = most
        branch = member.branch((*self.levels, key), limits)
        return [] if branch.empty else branch.parts()

    def _left(self) -> float | None:
        return None if self.deadline is None else self.deadline - time.monotonic()

    def _stage(self, key: str) -> bool:
        """Minimise one measure over all members; whether all were settled. Keeps the bound of the first stage."""
        bounds: list[int] = []
        settled = True
        for member in self._members():
            if (left := self._left()) is not None and left <= 0:
                hurry = self.end is not None and time.monotonic() > self.end
                bounds.append(closed(member.layer, member.machine, key) if hurry else least_of(member, key))
                settled &= self.best is not None and bounds[-1] >= self.best.measures[key]
                continue
            for branch in self._parts(member, key):
                floor = int(lower_bounds(branch.tables(key), "s").min())
                part = undominated(branch, [*self.levels, key]) if branch.exact else branch
                self.choices += sum(part.choices.shape)
                done, bound = self._branch(part, key)
                settled &= done
                bounds.append(floor if bound is None else max(floor, bound))
        if not self.levels:
            ceiling = [self.best.measures[key]] if self.best else []
            self.bound = self._in_unit(min(bounds + ceiling, default=0))
        return settled

    def _in_unit(self, least: int) -> int:
        return in_unit(self.space.layer, self.space.machine, self.objectives[0], least)

    def _branch(self, branch: Branch, key: str) -> tuple[bool, int | None]:
        """Settle one branch; returns (settled, proven bound on the stage's objective in it)."""
        cuts: list[tuple[int, int]] = []
        exact = branch.exact or "time" not in (key, *self.levels)
        while True:
            left = self._left()
            if left is not None and left <= 0:
                return False, None
            limits = replace(self.limits, time_limit_s=left)
            answer = self.solve(branch, key, self._most(key), self.levels, cuts, limits)
            self.models += 1
            if answer.stopped:  # as if the time were up
                self.interrupted, self.deadline = True, time.monotonic()
            if answer.choice is not None:
                self._take(Pick(branch, *answer.choice, branch.measures(*answer.choice)))
            if exact or answer.choice is None:
                return answer.done, answer.bound
            if len(cuts) >= _MAX_CUTS:
                return False, answer.bound
            cuts.append(answer.choice)

    def _take(self, pick: Pick) -> None:
        met = all(pick.measures[m] <= v for m, v in self.levels.items())
        better = self.best is None or vector(pick.measures, self.objectives) < vector(
            self.best.measures, self.objectives
        )
        if met and better:
            self.best = pick


def solve_staged(
    solve: BranchSolver, space: Space, objectives: tuple[str, ...], limits: Limits, versions: str
) -> EngineResult:
    """Run all stages and return the plan; OPTIMAL if the stage of every objective asked for was settled."""
    start = time.monotonic()
    state = _Stages(solve, space, objectives, limits)
    try:
        state.run()
        state.turn()
    except KeyboardInterrupt:  # the best so far, and what is proven
        state.settled = False
        if state.bound is None:
            state.bound = floor(space, objectives[0], hurry=True)
    wall = time.monotonic() - start
    stats: dict[str, object] = {
        "models": state.models, "choices": state.choices, "heuristic_start": state.heuristic
    }  # fmt: skip
    if state.interrupted:
        stats["interrupted"] = True
    if state.best is None:
        sure = state.settled and Search(space, objectives, deadline=state.deadline).beyond(state.aims[0]) is None
        none: Status = "INFEASIBLE" if sure else "NO_SOLUTION_FOUND"
        return EngineResult(none, None, None, None if sure else state.bound, wall, versions, stats)
    proven = proven_of(objectives, space.machine, state.proven)
    status: Status = "OPTIMAL" if proven == objectives else "FEASIBLE"
    stats |= told(objectives, proven, stopped=not state.settled)
    return EngineResult(status, state.best.nest, state.best.measures, state.bound, wall, versions, stats)
