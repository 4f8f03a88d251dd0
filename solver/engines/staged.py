"""Lexicographic branch-by-branch solving, shared by the CP-SAT and MILP engines.

Stage i minimises the i-th objective with the earlier ones kept at their proven values. Within a stage the branches are
cut in parts (`Branch.parts`) and solved one after the other, each asked only for plans below the best so far; a branch
without one is done. Stages beyond the first run on the choices that separable bounds leave over. With double-buffered
time the model minimises a lower bound of the time; plans it finds are priced on their exact timeline and cut off until
no bound is below the best exact price.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from formulations.dominance import undominated
from formulations.space import Branch, Space
from solver.engines.base import EngineResult, Limits, Pick, Status, complete, vector
from solver.engines.exhaustive import lower_bounds, within
from solver.engines.greedy import largest_tile

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


@dataclass
class _State:
    best: Pick | None = None
    bound: int | None = None
    proven: bool = True
    models: int = 0


def solve_staged(
    solve: BranchSolver, space: Space, objectives: tuple[str, ...], limits: Limits, versions: str
) -> EngineResult:
    """Run all stages and return the plan with the proof of the first objective."""
    start = time.monotonic()
    deadline = None if limits.time_limit_s is None else start + limits.time_limit_s
    wanted = complete(objectives)
    state = _State(best=largest_tile(space, wanted) if limits.bounding else None)
    heuristic = state.best is not None
    levels: dict[str, int] = {}
    for stage, measure in enumerate(m for m in wanted if m != "energy" or wanted[0] == "energy"):
        key = "bytes" if measure == "energy" else measure
        if key in levels:
            continue
        complete_stage = _stage(solve, space, measure, key, levels, state, limits, deadline, wanted)
        if stage == 0:
            state.bound, state.proven = _first_bound(state, measure, complete_stage)
        if not complete_stage or state.best is None:
            break
        levels[key] = state.best.measures[key]
    wall = time.monotonic() - start
    stats: dict[str, object] = {"models": state.models, "heuristic_start": heuristic}
    if state.best is None:
        none: Status = "INFEASIBLE" if state.proven else "NO_SOLUTION_FOUND"
        return EngineResult(none, None, None, None, wall, versions, stats)
    status: Status = "OPTIMAL" if state.proven else "FEASIBLE"
    return EngineResult(status, state.best.nest, state.best.measures, state.bound, wall, versions, stats)


def _first_bound(state: _State, measure: str, done: bool) -> tuple[int | None, bool]:
    if done:
        return (state.best.measures[measure] if state.best else None), True
    return state.bound, False


def _stage(
    solve: BranchSolver,
    space: Space,
    measure: str,
    key: str,
    levels: Mapping[str, int],
    state: _State,
    limits: Limits,
    deadline: float | None,
    wanted: tuple[str, ...],
) -> bool:
    """Minimise one measure over all branches; whether every branch was settled. Keeps the bound of the first stage."""
    bounds: list[int] = []
    settled = True
    branches = [part for b in space.branches if not b.empty for part in b.parts()]
    for branch in sorted(branches, key=lambda b: _promise(b, key, state.best)):
        for earlier, value in levels.items():
            branch = within(branch, earlier, value) if not branch.empty else branch
        if limits.bounding and state.best is not None and not branch.empty:
            branch = within(branch, key, state.best.measures[key])
        if branch.empty:
            continue
        floor = int(lower_bounds(branch.tables(key), "s").min())
        if branch.exact:
            branch = undominated(branch, [*levels, key])
        done, bound = _branch(solve, branch, measure, key, levels, state, limits, deadline, wanted)
        settled &= done
        bounds.append(floor if bound is None else max(floor, bound))
    if not levels:
        ceiling = [state.best.measures[key]] if state.best else []
        lowest = min(bounds + ceiling, default=0)
        machine = space.machine
        state.bound = lowest if measure == key else lowest * machine.byte_fj + machine.mac_fj * space.layer.macs
    return settled


def _promise(branch: Branch, key: str, best: Pick | None) -> tuple[bool, int]:
    """Sort key: the skeleton of the best plan so far first, then by separable lower bound."""
    return best is None or branch.label != best.branch.label, int(lower_bounds(branch.tables(key), "s").min())


def _branch(
    solve: BranchSolver,
    branch: Branch,
    measure: str,
    key: str,
    levels: Mapping[str, int],
    state: _State,
    limits: Limits,
    deadline: float | None,
    wanted: tuple[str, ...],
) -> tuple[bool, int | None]:
    """Settle one branch; returns (settled, proven bound on the stage's objective in it)."""
    cuts: list[tuple[int, int]] = []
    exact = branch.exact or (key != "time" and "time" not in levels)
    while True:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            return False, None
        at_most = None if state.best is None else state.best.measures[key] - 1
        answer = solve(branch, key, at_most, levels, cuts, replace(limits, time_limit_s=left))
        state.models += 1
        if answer.choice is not None:
            pick = Pick(branch, *answer.choice, branch.measures(*answer.choice))
            met = all(pick.measures[m] <= v for m, v in levels.items())
            if met and (state.best is None or vector(pick.measures, wanted) < vector(state.best.measures, wanted)):
                state.best = pick
        if exact or answer.choice is None:
            return answer.done, answer.bound
        if len(cuts) >= _MAX_CUTS:
            return False, answer.bound
        cuts.append(answer.choice)
