"""`check_network`: re-verify a plan in memory banks from its program alone, whoever made it."""

from __future__ import annotations

from collections.abc import Iterator

from hwmodels.outcome import MEASURES
from hwmodels.schedule import StageRun
from instances.errors import InputError
from instances.feature_maps import Stages
from solver.bank_plan import BankPlan
from solver.bank_solve import compulsory, figures, measures_of, objective_of, setting_of, stage_plans
from solver.plan import digest
from solver.verify import gap_of

__all__ = ["problems_of"]


def problems_of(plan: BankPlan) -> list[str]:
    """Return every mismatch of a plan, one line each: all is derived again but optimality, which is the engine's."""
    return list(dict.fromkeys([*_head(plan), *_status(plan), *_program(plan)]))


def _unequal(where: str, stated: object, derived: object) -> Iterator[str]:
    if stated != derived:
        yield f"{where}: the plan says {stated}, it is {derived}"


def _head(plan: BankPlan) -> Iterator[str]:
    yield from _unequal("network", plan.network, plan.network_data.name)
    yield from _unequal("machine", plan.machine, plan.machine_data.name)
    yield from _unequal("network_digest", plan.network_digest, digest(plan.network_data.model_dump(mode="json")))
    yield from _unequal("machine_digest", plan.machine_digest, digest(plan.machine_data.model_dump(mode="json")))
    yield from _unequal("unit", plan.unit, MEASURES[plan.objectives[0]])


def _status(plan: BankPlan) -> Iterator[str]:
    value = plan.objective.value if plan.objective else None
    yield from _unequal("gap", plan.gap, gap_of(value, plan.bound))
    if (value is not None) != bool(plan.layers):
        yield "objective: a plan has one if and only if it has layers"
    if (plan.status in ("OPTIMAL", "FEASIBLE")) != bool(plan.layers):
        yield f"status {plan.status}: a plan is OPTIMAL or FEASIBLE if and only if it has layers"
    if plan.status == "OPTIMAL" and plan.bound != value:
        yield f"status OPTIMAL with bound {plan.bound} and value {value}"
    if plan.bound is not None and value is not None and plan.bound > value:
        yield f"bound {plan.bound} is above the value {value}"


def _program(plan: BankPlan) -> Iterator[str]:
    try:
        found, _, _ = setting_of(plan.network_data, plan.machine_data)
    except InputError as error:
        yield str(error)
        return
    yield from _unequal("compulsory_bytes", plan.compulsory_bytes, compulsory(found))
    if not plan.layers:
        return
    runs = list(_runs(plan, found))
    if len(runs) < len(plan.layers):
        known = {stage.name for stage in found.stages}
        yield f"layers: {', '.join(p.layer for p in plan.layers if p.layer not in known)}: no such stage"
        return
    seen = figures(found, plan.machine_data, runs)
    yield from seen.moved.faults
    if seen.moved.faults:
        return
    yield from _unequal("measures", plan.measures, measures_of(plan.network_data, plan.machine_data, seen))
    yield from _unequal("pe_delay_ticks", plan.pe_delay_ticks, seen.delay)
    derived = objective_of(plan.objectives[0], plan.network_data, plan.machine_data, seen)
    yield from _unequal("objective", plan.objective, derived)
    if plan.replay.ok is not True or plan.replay.faults:
        yield "replay: the plan does not say ok, it is"
    for stated, made in zip(plan.layers, stage_plans(found, plan.machine_data, runs, seen), strict=True):
        for name in type(stated).model_fields:
            yield from _unequal(f"layer {stated.layer}: {name}", getattr(stated, name), getattr(made, name))


def _runs(plan: BankPlan, found: Stages) -> Iterator[StageRun]:
    stages = {stage.name: stage for stage in found.stages}
    for layer in plan.layers:
        if layer.layer in stages:
            yield layer.to_run(stages[layer.layer])
