"""Engine ``cp-sat``: the CP-SAT models of `formulations.tiling.cp_sat`, one per branch."""

from __future__ import annotations

from importlib.metadata import version

from formulations.tiling.cp_sat import build_cp_sat
from formulations.tiling.space import Space
from solver.engines.base import EngineResult, Limits
from solver.engines.driver_cp_sat import solve
from solver.engines.staged import Answer, Wanted, solve_staged


def _solve(asked: Wanted) -> Answer:
    if asked.at_most is not None and asked.at_most < 0:
        return Answer(None, 0, True)
    built = build_cp_sat(asked.branch, asked.objective, at_most=asked.at_most, levels=asked.levels, cuts=asked.cuts)
    said = solve(built.model, asked.time_limit_s)
    if said.status == "INFEASIBLE":
        return Answer(None, None if asked.at_most is None else asked.at_most + 1, True)
    return Answer(
        built.decode(said.solver) if said.solved else None, said.bound, said.status == "OPTIMAL", said.stopped
    )


def run(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Solve with CP-SAT."""
    return solve_staged(_solve, space, objectives, limits, f"ortools {version('ortools')}")
