"""`check_network`: re-verify a plan in memory banks from its program alone, whoever made it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from formulations.banks.network import Walk
from hwmodels.schedule import StageRun
from instances.errors import InputError
from instances.feature_maps import Stages
from solver.banks.base import Asked
from solver.banks.engines import BANK_ENGINES
from solver.banks.plan import FRONT, BankPlan
from solver.banks.readings import floor_of, readings
from solver.banks.solve import (
    clock_of,
    derived,
    figures,
    may_wait,
)
from solver.network_check import fields_of, head_of, status_of, undecided_of
from solver.verify import unequal

__all__ = ["problems_of"]


def problems_of(plan: BankPlan) -> list[str]:
    """Return every mismatch of a plan, one line each: all is derived again but optimality, which is the engine's."""
    return list(dict.fromkeys([*head_of(plan), *status_of(plan), *_program(plan)]))


def _program(plan: BankPlan) -> Iterator[str]:
    try:
        allowed = readings(plan.network_data, plan.machine_data, plan.options.first_layer)
        aim = "time" if plan.objectives[0] == "time" else "bytes"
        may_wait(plan.machine_data, plan.options.waiting)
    except InputError as error:
        yield str(error)
        return
    banks, clock = plan.machine_data.banks, clock_of(plan.machine_data)
    assert banks is not None
    floor = floor_of(allowed, banks, clock)
    yield from unequal("compulsory_bytes", plan.compulsory_bytes, floor.bytes)
    if not plan.layers:
        for found in allowed.values():
            yield from _undecided(plan, Asked(found, banks, clock, aim, plan.options.waiting, None))
        return
    if plan.first_layer not in allowed:
        yield f"layers: the first layer is {plan.first_layer}, it may be {' or '.join(allowed)}"
        return
    found = allowed[plan.first_layer]
    runs = list(_runs(plan, found))
    if strange := _strange(plan, found):
        yield strange
        return
    unnumbered = [run.stage.name for run in runs if not run.tiles]
    if unnumbered:
        yield f"layers: {', '.join(unnumbered)}: no tiles, the plan must say where the stage finds its map"
        return
    seen = figures(found, plan.machine_data, runs)
    yield from seen.moved.faults
    if seen.moved.faults:
        return
    if not plan.options.waiting:
        yield from _waiting(Walk(found, banks, waiting=False), runs)
    most = plan.options.time_at_most
    if most is not None and seen.ticks > most:
        yield f"options.time_at_most: {seen.ticks} ticks are more than {most}"
    if most is not None and plan.objectives != FRONT:
        yield f"objectives: {','.join(plan.objectives)}; a plan of a front (options.time_at_most) has {','.join(FRONT)}"
    yield from fields_of(plan, derived(found, plan.network_data, plan.machine_data, runs, seen, plan.objectives[0]))


def _strange(plan: BankPlan, found: Stages) -> str:
    """Layers that are no stages, or pools that are not fused as the network says; nothing if there are none."""
    known = {stage.name for stage in found.stages}
    averages = {stage.target: stage.name for stage in found.stages if stage.pooled}
    unknown = [p.layer for p in plan.layers if p.layer not in known | averages.keys()]
    if unknown:
        return f"layers: {', '.join(unknown)}: no such stage"
    names = [layer.layer for layer in plan.layers]
    behind = {name: before for before, name in pairwise(names)}
    apart = [name for name, before in averages.items() if names.count(name) != 1 or behind.get(name) != before]
    return f"layers: {', '.join(apart)}: fused with the layer before, which is another one" if apart else ""


def _undecided(plan: BankPlan, asked: Asked) -> Iterator[str]:
    """Whether there may be none: a policy that has a plan shows that there is one."""
    yield from undecided_of(plan, plan.replay.ok)
    if plan.bound is not None or plan.pe_delay_ticks is not None:
        yield "a plan without layers has no bound and no delay"
    if plan.status == "INFEASIBLE":
        for name in ("no-reuse", "double-buffer", "min-all"):
            if BANK_ENGINES[name].run(asked).plan is not None:
                yield f"status INFEASIBLE: engine {name} has a plan"
                return


def _waiting(walk: Walk, runs: Sequence[StageRun]) -> Iterator[str]:
    """With --pin residuals=dram no map waits on chip for a sum."""
    number, done = {stage.name: at for at, stage in enumerate(walk.stages)}, 0
    for run in runs:
        at, target = number[run.stage.name], run.stage.target
        done |= 1 << at
        for name, tiles in ((run.source, run.retain), (target, run.keep)):
            if tiles and walk.waits(name, done) and not walk.stays(name, done, at):
                yield f"layer {run.stage.name}: {name} waits on chip for a sum, options.waiting says no"


def _runs(plan: BankPlan, found: Stages) -> Iterator[StageRun]:
    stages = {stage.name: stage for stage in found.stages}
    for layer in plan.layers:
        if layer.layer in stages:
            yield layer.to_run(stages[layer.layer])
