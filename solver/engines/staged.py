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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from formulations.branch import Branch, lower_bounds, undominated
from formulations.space import Space
from solver.engines.base import EngineResult, Limits, Pick, Status, stages, vector
from solver.engines.exhaustive import Search

__all__ = ["Answer", "BranchSolver", "solve_staged"]

#: Exact timelines laid out per branch before a double-buffered plan is reported with a gap.
_MAX_CUTS = 200


@dataclass(frozen=True)
class Answer:
    """A solver's answer on one branch: best plan found, proven bound, and whether nothing better exists."""

    choice: tuple[int, int] | None
    bound: int | None
    done: bool


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
        self.deadline = None if limits.time_limit_s is None else time.monotonic() + limits.time_limit_s
        self.best: Pick | None = None
        self.levels: dict[str, int] = {}
        self.bound: int | None = None
        self.proven = True
        self.models = self.choices = 0
        self.timeline = any(m.timeline for m in space.members)

    def run(self) -> None:
        """Settle all objectives, or stop where time runs out."""
        first, *rest = stages(self.objectives)
        if self.limits.bounding:
            self.best = Search(self.space, self.objectives, deadline=self.deadline).first(first)
        self.heuristic = self.best is not None
        self.proven = self._stage(first)
        if not self.proven or self.best is None:
            return
        self.bound = self.best.measures[self.objectives[0]]
        self.levels[first] = self.best.measures[first]
        if self.timeline and "time" in stages(self.objectives):
            self._break_ties(rest)
            return
        for key in rest:
            if not self._stage(key):
                return
            self.levels[key] = self.best.measures[key]

    def _break_ties(self, rest: Sequence[str]) -> None:
        search = Search(self.space, self.objectives, deadline=self.deadline, best=self.best, kept=dict(self.levels))
        for key in rest:
            search.settle(key)
            if search.best is None or not search.whole:
                break
            search.kept[key] = search.best.measures[key]
        self.best = search.best or self.best

    def _most(self, key: str) -> int | None:
        return None if self.best is None else self.best.measures[key] - 1

    def _branches(self, key: str) -> Iterator[Branch]:
        """What is left of every member, the one of the best plan first."""

        def other(label: Mapping[str, str]) -> bool:
            return self.best is None or label != self.best.branch.label

        for member in sorted(self.space.members, key=lambda m: other(m.label)):
            limits = dict(self.levels)
            most = self._most(key)
            if self.limits.bounding and most is not None:
                limits[key] = most
            branch = member.branch((*self.levels, key), limits)
            if not branch.empty:
                yield from branch.parts()

    def _stage(self, key: str) -> bool:
        """Minimise one measure over all members; whether all were settled. Keeps the bound of the first stage."""
        bounds: list[int] = []
        settled = True
        for branch in self._branches(key):
            floor = int(lower_bounds(branch.tables(key), "s").min())
            part = undominated(branch, [*self.levels, key]) if branch.exact else branch
            self.choices += sum(part.choices.shape)
            done, bound = self._branch(part, key)
            settled &= done
            bounds.append(floor if bound is None else max(floor, bound))
        if not self.levels:
            ceiling = [self.best.measures[key]] if self.best else []
            lowest = min(bounds + ceiling, default=0)
            machine = self.space.machine
            energy = self.objectives[0] == "energy"
            self.bound = lowest * machine.byte_fj + machine.mac_fj * self.space.layer.macs if energy else lowest
        return settled

    def _branch(self, branch: Branch, key: str) -> tuple[bool, int | None]:
        """Settle one branch; returns (settled, proven bound on the stage's objective in it)."""
        cuts: list[tuple[int, int]] = []
        exact = branch.exact or "time" not in (key, *self.levels)
        while True:
            left = None if self.deadline is None else self.deadline - time.monotonic()
            if left is not None and left <= 0:
                return False, None
            limits = replace(self.limits, time_limit_s=left)
            answer = self.solve(branch, key, self._most(key), self.levels, cuts, limits)
            self.models += 1
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
    """Run all stages and return the plan with the proof of the first objective."""
    start = time.monotonic()
    state = _Stages(solve, space, objectives, limits)
    state.run()
    wall = time.monotonic() - start
    stats: dict[str, object] = {
        "models": state.models, "choices": state.choices, "heuristic_start": state.heuristic
    }  # fmt: skip
    if state.best is None:
        none: Status = "INFEASIBLE" if state.proven else "NO_SOLUTION_FOUND"
        return EngineResult(none, None, None, None, wall, versions, stats)
    status: Status = "OPTIMAL" if state.proven else "FEASIBLE"
    return EngineResult(status, state.best.nest, state.best.measures, state.bound, wall, versions, stats)
