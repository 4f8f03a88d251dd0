"""What is said alike of all plans of whole networks."""

from __future__ import annotations

from solver.network_plan import NetworkPlan, WholePlan
from solver.report import ratio

__all__ = ["known_parts", "microseconds", "status_parts"]


def microseconds(plan: NetworkPlan, ticks: int) -> str:
    """Ticks of the plan's machine in microseconds."""
    return f"{ticks * plan.machine_data.tick_ps / 1e6:,.1f}"


def known_parts(plan: WholePlan) -> list[str]:
    """Status, value, bound and gap; why there is no plan if there is none."""
    parts = [f"{plan.network} on {plan.machine} ({plan.problem}, {plan.engine}): {plan.status}"]
    bound = "no bound" if plan.bound is None else f"bound {plan.bound:,}"
    if plan.objective is None:
        return [*parts, *([] if plan.bound is None else [bound]), *plan.conflicts]
    gap = "no gap" if plan.gap is None else f"gap {100 * plan.gap:.3g} %"
    said = plan.stats.get("proven")
    part = (
        [] if said is None or plan.status == "OPTIMAL" else [f"proven of {','.join(plan.objectives)}: {said or 'none'}"]
    )
    return [*parts, f"{plan.objectives[0]} {plan.objective.value:,} {plan.objective.unit}, {bound}, {gap}", *part]


def status_parts(plan: NetworkPlan) -> list[str]:
    """The same, and what is left to win."""
    parts = known_parts(plan)
    if plan.measures is None:
        return parts
    times = ratio(plan.measures.bytes, plan.compulsory_bytes)
    return [*parts, f"{plan.measures.bytes:,} bytes move, {times} times what must ({plan.compulsory_bytes:,})"]
