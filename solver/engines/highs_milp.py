"""HiGHS as all exact engines call it: one thread, no relative gap, an absolute one below half a unit of the objective.

Without presolve where the search is not slower for it: the presolve of HiGHS 1.11 calls some models infeasible that
have a solution (found on mappings with divided tasks; alike: its issues 2432 and 2446).
"""

from __future__ import annotations

import pulp

__all__ = ["highs"]


def highs(time_limit_s: float | None = None, *, presolve: bool = True) -> pulp.LpSolver:
    """Return the solver."""
    said = "choose" if presolve else "off"
    return pulp.HiGHS(msg=False, timeLimit=time_limit_s, gapRel=0.0, gapAbs=0.49, threads=1, presolve=said)
