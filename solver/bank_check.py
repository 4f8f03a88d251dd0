"""`check_network`: re-verify a plan in memory banks from its program alone, whoever made it."""

from __future__ import annotations

from collections.abc import Iterator

from hwmodels.schedule import StageRun
from instances.errors import InputError
from instances.feature_maps import Stages
from solver.bank_plan import BankPlan
from solver.bank_solve import compulsory, figures, measures_of, objective_of, setting_of, stage_plans
from solver.network_check import head_of, status_of
from solver.verify import unequal

__all__ = ["problems_of"]


def problems_of(plan: BankPlan) -> list[str]:
    """Return every mismatch of a plan, one line each: all is derived again but optimality, which is the engine's."""
    return list(dict.fromkeys([*head_of(plan), *status_of(plan), *_program(plan)]))


def _program(plan: BankPlan) -> Iterator[str]:
    try:
        found, _, _ = setting_of(plan.network_data, plan.machine_data)
    except InputError as error:
        yield str(error)
        return
    yield from unequal("compulsory_bytes", plan.compulsory_bytes, compulsory(found))
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
    yield from unequal("measures", plan.measures, measures_of(plan.network_data, plan.machine_data, seen))
    yield from unequal("pe_delay_ticks", plan.pe_delay_ticks, seen.delay)
    derived = objective_of(plan.objectives[0], plan.network_data, plan.machine_data, seen)
    yield from unequal("objective", plan.objective, derived)
    if plan.replay.ok is not True or plan.replay.faults:
        yield "replay: the plan does not say ok, it is"
    for stated, made in zip(plan.layers, stage_plans(found, plan.machine_data, runs, seen), strict=True):
        for name in type(stated).model_fields:
            yield from unequal(f"layer {stated.layer}: {name}", getattr(stated, name), getattr(made, name))


def _runs(plan: BankPlan, found: Stages) -> Iterator[StageRun]:
    stages = {stage.name: stage for stage in found.stages}
    for layer in plan.layers:
        if layer.layer in stages:
            yield layer.to_run(stages[layer.layer])
