"""Engine ``milp`` for the joint problem: `formulations.joint.milp` with HiGHS.

The decoded levels are priced in integers, and count as proven only if that price is what HiGHS reports
(`solver.engines.driver_milp`).
"""

from __future__ import annotations

from formulations.joint.milp import milp
from formulations.joint.problem import NEVER, Choice, Joint
from solver.engines.driver_milp import solve, versions
from solver.joint.base import Mastered

__all__ = ["run"]


def run(joint: Joint, time_limit_s: float | None, hint: Choice | None) -> Mastered:
    """Solve; HiGHS takes no hint."""
    model, made = milp(joint), versions("highs")
    said = solve("highs", model.problem, time_limit_s)
    if said.status == "INFEASIBLE":
        return Mastered(None, NEVER, made)
    bound = said.least() * model.unit + model.constant
    if not said.solved:
        return Mastered(None, bound, made, said.stopped)
    choice = joint.price(model.chosen())
    proven = said.agrees((choice.bytes - model.constant) / model.unit)
    return Mastered(choice, choice.bytes if proven else min(choice.bytes, bound), made, said.stopped)
