"""HiGHS and CBC as exact engines call them: one thread, no relative gap, an absolute one below half a unit.

HiGHS without presolve where the search is not slower for it: the presolve of HiGHS 1.11 calls some models infeasible
that have a solution (found on mappings with divided tasks; alike: its issues 2432 and 2446).
"""

from __future__ import annotations

import math

import pulp

__all__ = ["bound_by", "highs"]

_GAP = 0.49


def highs(time_limit_s: float | None = None, *, presolve: bool = True) -> pulp.LpSolver:
    """Return HiGHS."""
    said = "choose" if presolve else "off"
    return pulp.HiGHS(msg=False, timeLimit=time_limit_s, gapRel=0.0, gapAbs=_GAP, threads=1, presolve=said)


def bound_by(
    solver: str, problem: pulp.LpProblem, time_limit_s: float | None = None, *, presolve: bool = True
) -> float | None:
    """Solve by "highs" or "cbc"; return the bound, None if there is none. CBC tells none but by an optimum."""
    if solver == "highs":
        problem.solve(highs(time_limit_s, presolve=presolve))
        bound = float(problem.solverModel.getInfo().mip_dual_bound)
        return None if math.isinf(bound) else bound
    problem.solve(pulp.PULP_CBC_CMD(msg=False, timeLimit=time_limit_s, gapRel=0.0, gapAbs=_GAP, threads=1))
    if problem.sol_status != pulp.LpSolutionOptimal:
        return None
    return float(pulp.value(problem.objective) or 0.0) - _GAP
