"""Engine ``milp`` for the joint problem: `formulations.joint_milp` with HiGHS.

Gaps are 0 and below half a unit of the objective (the gcd of its coefficients); the decoded levels are priced in
integers, and count as proven only if that price is within half a unit of what HiGHS reports.
"""

from __future__ import annotations

import math
from importlib.metadata import version

import pulp

from formulations.joint import NEVER, Choice, Joint
from formulations.joint_milp import milp
from solver.engines.solvers_milp import highs
from solver.joint_base import Mastered

__all__ = ["run"]


def run(joint: Joint, time_limit_s: float | None, hint: Choice | None) -> Mastered:
    """Solve; HiGHS takes no hint."""
    versions = f"pulp {version('pulp')}, highspy {version('highspy')}"
    model = milp(joint)
    model.problem.solve(highs(time_limit_s, presolve=False))
    if model.problem.sol_status == pulp.LpSolutionInfeasible:
        return Mastered(None, NEVER, versions)
    bound = _bound(model.problem) * model.unit + model.constant
    if model.problem.sol_status not in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        return Mastered(None, math.ceil(bound), versions)
    choice = joint.price(model.chosen())
    reported = float(pulp.value(model.problem.objective)) * model.unit + model.constant
    if model.problem.sol_status == pulp.LpSolutionOptimal and abs(choice.bytes - reported) <= model.unit / 2:
        return Mastered(choice, choice.bytes, versions)
    return Mastered(choice, min(choice.bytes, math.ceil(bound)), versions)


def _bound(problem: pulp.LpProblem) -> float:
    """The dual bound of a search that was cut short, less what its floats may be off by; 0 if there is none."""
    try:
        found = float(problem.solverModel.getInfo().mip_dual_bound)
    except (AttributeError, TypeError):
        return 0.0
    return max(0.0, found * (1 - 1e-9) - 1e-6) if math.isfinite(found) else 0.0
