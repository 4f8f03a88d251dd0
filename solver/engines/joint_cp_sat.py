"""Engine ``cp-sat`` for the joint problem: `formulations.joint.cp_sat`, from the greedy plan."""

from __future__ import annotations

from importlib.metadata import version

from formulations.joint.cp_sat import cp_sat
from formulations.joint.problem import NEVER, Choice, Joint
from solver.engines.driver_cp_sat import solve
from solver.joint.base import Mastered

__all__ = ["run"]


def run(joint: Joint, time_limit_s: float | None, hint: Choice | None) -> Mastered:
    """Solve."""
    versions = f"ortools {version('ortools')}"
    built = cp_sat(joint, hint)
    said = solve(built.model, time_limit_s, turns=True, parameters={"linearization_level": 2})
    if said.status == "INFEASIBLE":
        return Mastered(None, NEVER, versions)
    if not said.solved:
        return Mastered(None, said.least(), versions, said.stopped)
    choice = joint.price(built.chosen(said.solver))
    bound = choice.bytes if said.status == "OPTIMAL" else min(said.least(), choice.bytes)
    return Mastered(choice, bound, versions, said.stopped)
