"""What is checked alike in all plans of whole networks: names, digests, units, objectives, status, bound and gap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from hwmodels.outcome import UNITS
from solver.network_plan import SubjectPlan
from solver.plan import Frozen, GenericPlan, digest
from solver.verify import gap_of, unequal


def head_of(plan: SubjectPlan | GenericPlan, *, unit: str | None = None) -> Iterator[str]:
    """Names, digests, unit and objectives."""
    yield from unequal("network", plan.network, plan.network_data.name)
    yield from unequal("machine", plan.machine, plan.machine_data.name)
    yield from unequal("network_digest", plan.network_digest, digest(plan.network_data.model_dump(mode="json")))
    yield from unequal("machine_digest", plan.machine_digest, digest(plan.machine_data.model_dump(mode="json")))
    yield from unequal("unit", plan.unit, unit or UNITS.get(plan.objectives[0].partition(":")[0]))
    if len(set(plan.objectives)) < len(plan.objectives):
        yield f"objectives: {', '.join(plan.objectives)}: one stands twice"


def status_of(plan: SubjectPlan | GenericPlan) -> Iterator[str]:
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


def fields_of(plan: SubjectPlan, made: Mapping[str, object]) -> Iterator[str]:
    """Fields of a plan, and of its layers one by one, against those derived again."""
    for name, value in made.items():
        stated = getattr(plan, name)
        if name != "layers":
            yield from unequal(name, stated, value)
            continue
        for one, two in zip(stated, cast(tuple[Frozen, ...], value), strict=True):
            for field in type(one).model_fields:
                yield from unequal(f"layer {one.layer}: {field}", getattr(one, field), getattr(two, field))
