"""Problem joint, as the rest of `solver` sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from formulations.tiling.problem import DECISIONS
from instances.errors import InputError
from solver.joint.check import problems_of_joint
from solver.joint.engines import JOINT_ENGINES, JointEngine
from solver.joint.plan import JointPlan
from solver.joint.show import joint_details, joint_status, joint_table
from solver.joint.solve import solve
from solver.problem import Derived, Problem, Target
from solver.question import Question
from solver.report import Sheet

__all__ = ["JointProblem"]


class JointProblem(Problem[JointPlan]):
    """F10: tile plans of all layers, and what stays on chip between them."""

    name = "joint"
    summary = "F10: tile plans of all layers and what stays in a shared memory between them"
    plan = JointPlan
    measures = {"bytes": "bytes", "energy": "fJ"}
    usual = "bytes"
    pins = {name: str(decision) for name, decision in DECISIONS.items()}
    auto = "dynamic"
    quick = ("greedy", "sequence", "no-reuse")
    others = {"dynamic": ("cp-sat", "dynamic"), "": ("dynamic",)}
    floors = True

    @property
    def engines(self) -> Mapping[str, JointEngine]:
        """The ways to decide."""
        return JOINT_ENGINES

    def objectives(self, asked: str | Sequence[str] | None, target: Target) -> tuple[str, ...]:
        """The measures; of plans with the fewest bytes the fastest is not looked for."""
        if "time" in (asked.split(",") if isinstance(asked, str) else asked or ()):
            raise InputError("objective time: problem joint decides bytes (or energy); the plan says how long it takes")
        return super().objectives(asked, target)

    def solve(self, question: Question) -> JointPlan:
        """Plan all layers together."""
        return solve(question)

    def derive(self, plan: JointPlan) -> Derived:
        """Replay layer by layer and bank by bank."""
        return Derived(tuple(problems_of_joint(plan)), plan.size, plan.replay.executed)

    def status(self, plan: JointPlan) -> list[str]:
        """What is known."""
        return joint_status(plan)

    def sheet(self, plan: JointPlan) -> Sheet:
        """The table."""
        return joint_table(plan)

    def details(self, plan: JointPlan, layer: str | None) -> Iterable[str]:
        """Banks layer by layer, and nests."""
        return joint_details(plan, layer)

    def question(self, plan: JointPlan) -> Question:
        """What a stored plan was asked."""
        return Question(plan.network_data, plan.machine_data, plan.objectives, "joint", pins=plan.pins)
