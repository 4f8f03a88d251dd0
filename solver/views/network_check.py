"""What is checked alike in all plans: status, objective, bound and gap."""

from __future__ import annotations

from collections.abc import Iterator

from solver.plan.plan import Plan
from solver.plan.verify import gap_of, unequal


def status_of(plan: Plan) -> Iterator[str]:
    """Status, objective, bound and gap against each other."""
    value, solved = plan.objective.value if plan.objective else None, plan.status in ("OPTIMAL", "FEASIBLE")
    yield from unequal("gap", plan.gap, gap_of(value, plan.bound))
    if (value is not None) != plan.decided:
        yield "objective: a plan has one if and only if it has layers"
    if solved != plan.decided:
        yield f"status {plan.status}: a plan is OPTIMAL or FEASIBLE if and only if it has layers"
    if plan.decided and plan.conflicts:
        yield f"conflicts: a plan that has layers has none, it names {len(plan.conflicts)}"
    if plan.status == "OPTIMAL" and plan.bound != value:
        yield f"status OPTIMAL with bound {plan.bound} and value {value}"
    if plan.bound is not None and value is not None and plan.bound > value:
        yield f"bound {plan.bound} is above the value {value}"
