"""Engines ``milp`` (HiGHS) and ``milp-cbc`` (the CBC that PuLP carries) on the models of `formulations.tiling.milp`.

Proof and tolerance: the solvers work on floats with feasibility tolerance 1e-6. The decoded plan is re-priced in
integers; it counts as proven only if its price is what the solver reports (`solver.engines.driver_milp`), and no
capacity or earlier objective is exceeded in integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from formulations.tiling.branch import Branch
from formulations.tiling.milp import build_milp
from formulations.tiling.space import Space
from solver.engines.base import EngineResult, Limits
from solver.engines.driver_milp import MilpSolver, solve, versions
from solver.engines.staged import Answer, Wanted, solve_staged


def _solve(solver: MilpSolver, asked: Wanted) -> Answer:
    if asked.at_most is not None and asked.at_most < 0:
        return Answer(None, 0, True)
    branch, levels, excluded = asked.branch, asked.levels, list(asked.cuts)
    while True:
        built = build_milp(branch, asked.objective, at_most=asked.at_most, levels=levels, cuts=excluded)
        said = solve(solver, built.problem, asked.time_limit_s)
        unclear = asked.time_limit_s is None or not said.believed
        if said.status == "NO_SOLUTION_FOUND" and asked.at_most is not None and unclear and not said.stopped:
            # That the cut-off leaves nothing is not said or not believed: without it there is a solution to be priced.
            built = build_milp(branch, asked.objective, levels=levels, cuts=excluded)
            said = solve(solver, built.problem, asked.time_limit_s)
        if said.status == "INFEASIBLE":
            return Answer(None, None if asked.at_most is None else asked.at_most + 1, True)
        bound = None if said.bound is None or said.bound <= 0 else said.bound * built.unit
        if not said.solved:
            return Answer(None, bound, False, said.stopped)
        s, q = built.decode()
        if _within_limits(branch, levels, s, q):
            break
        if said.stopped:
            return Answer(None, bound, False, stopped=True)
        # Float tolerance let a plan through that is over a limit in integers: leave it out and go on.
        excluded.append((s, q))
    value = max(t.at(s, q) for t in branch.tables(asked.objective))
    proven = said.agrees(value / built.unit)
    return Answer((s, q), value if proven else bound, proven, said.stopped)


def _within_limits(branch: Branch, levels: Mapping[str, int], s: int, q: int) -> bool:
    fits = all(table.at(s, q) <= limit for _, table, limit in branch.capacity)
    return fits and all(t.at(s, q) <= v for m, v in levels.items() for t in branch.tables(m))


def run_highs(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Solve with HiGHS."""
    return solve_staged(partial(_solve, "highs"), space, objectives, limits, versions("highs"))


def run_cbc(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Solve with the CBC that PuLP carries."""
    return solve_staged(partial(_solve, "cbc"), space, objectives, limits, versions("cbc"))
