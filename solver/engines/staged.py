"""Solvers in place of the exhaustive search of candidates, shared by the CP-SAT and MILP engines.

Objectives, limits, bounds of what is left open and proofs beyond the candidates are those of the exhaustive search.
Here members of the space are priced, cut in parts (`Branch.parts`) and solved one after the other, each asked only for
plans below the best so far; a part without one is done. With bounding, the search starts from the best plan of a first
pass over few candidates, and only what separable bounds leave over is put in the models. With double-buffered time the
model minimises a lower bound of the time; plans it finds are priced on their exact timeline and cut off until no bound
is below the best exact price; ties are then broken as by the exhaustive search.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from formulations.tiling.branch import Branch, lower_bounds, undominated
from formulations.tiling.member import Member
from formulations.tiling.pick import Pick, stages
from formulations.tiling.search import Search
from formulations.tiling.space import Space
from solver.engines.base import EngineResult, Limits
from solver.engines.exhaustive import decided

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


@dataclass(frozen=True)
class Wanted:
    """What is asked of a branch: the least objective up to `at_most`, within `levels`, outside `cuts`."""

    branch: Branch
    objective: str
    at_most: int | None
    levels: Mapping[str, int]
    cuts: Sequence[tuple[int, int]]
    time_limit_s: float | None


#: Minimises one objective over one branch.
BranchSolver = Callable[[Wanted], Answer]


class _Staged(Search):
    """A search that asks a solver for the best candidates of a member."""

    def __init__(self, solve: BranchSolver, space: Space, objectives: tuple[str, ...], limits: Limits) -> None:
        deadline, end = limits.ends()
        super().__init__(space, objectives, limits.bounding, deadline, end=end)
        self.solve, self.timeline = solve, any(member.timeline for member in space.members)
        self.models = self.choices = 0
        self.heuristic = self.interrupted = self._doubt = False

    @property
    def stats(self) -> dict[str, object]:
        """Figures for the plan."""
        said: dict[str, object] = {
            "models": self.models, "choices": self.choices, "heuristic_start": self.heuristic
        }  # fmt: skip
        return {**said, "interrupted": True} if self.interrupted else said

    def settle(self, measure: str) -> None:
        """Minimise one measure, proven only by solvers that were done; ties are broken whatever work it takes."""
        self._allowance, self._long, self._doubt = None, False, False
        super().settle(measure)
        if self._doubt and self.whole and self.best is not None:
            self.whole, self.bound = False, self.best.measures[measure]

    def first(self, measure: str) -> Pick | None:
        """Find a good plan among few candidates; a solver that only breaks ties needs none."""
        if self.kept and not self.timeline:
            return self.best
        pick = super().first(measure)
        self.heuristic |= not self.kept and pick is not None
        return pick

    def _settled(self, measure: str) -> bool:
        """Not before every member was asked: the solvers confirm what no plan can be below."""
        return False

    def _look(self, member: Member, measure: str) -> None:
        """Solve what is left of a member in parts, and see whether nests beyond its candidates may be better."""
        if self.kept and self.timeline and "time" in stages(self.objectives, self.space.machine):
            super()._look(member, measure)
            return
        branch = member.branch((*self.kept, measure), self._limits(measure))
        for cut in () if branch.empty else branch.parts():
            part = undominated(cut, [*self.kept, measure]) if cut.exact else cut
            self.choices += sum(part.choices.shape)
            bound = self._model(part, measure)
            if bound is not None:
                self._stop(measure, max(bound, int(lower_bounds(cut.tables(measure), "s").min())))
        if measure in self.aims and not member.exact((*self.kept, measure)):
            if self._late():
                self._stop(measure, self._least_of(member, measure))
            else:
                self.open(member, measure)

    def _model(self, branch: Branch, measure: str) -> int | None:
        """Solve one part; return a bound on what is left open in it, None if nothing is."""
        cuts: list[tuple[int, int]] = []
        exact = branch.exact or "time" not in (measure, *self.kept)
        while True:
            left = None if self.deadline is None else self.deadline - time.monotonic()
            if left is not None and left <= 0:
                return 0
            most = None if self.best is None else self.best.measures[measure] - 1
            answer = self.solve(Wanted(branch, measure, most, self.kept, cuts, left))
            self.models += 1
            if answer.stopped:  # as if the time were up
                self.interrupted, self.deadline = True, time.monotonic()
            if answer.choice is not None:
                self._take(Pick(branch, *answer.choice, branch.measures(*answer.choice)))
            if answer.done and (exact or answer.choice is None):
                return None
            if exact or answer.choice is None or len(cuts) >= _MAX_CUTS:
                self._doubt = True
                return answer.bound or 0
            cuts.append(answer.choice)


def solve_staged(
    solve: BranchSolver, space: Space, objectives: tuple[str, ...], limits: Limits, versions: str
) -> EngineResult:
    """Settle all objectives and return the plan; OPTIMAL if every objective asked for was proven."""
    return decided(_Staged(solve, space, objectives, limits), versions)
