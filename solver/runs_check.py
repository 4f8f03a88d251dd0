"""Re-verify a plan for a small engine from its strips, places and programs alone, whoever made it."""

from __future__ import annotations

from collections.abc import Iterator

from formulations.runs_orders import from_text
from hwmodels.engine_work import engine_of, work_of
from instances.errors import InputError
from instances.workload import Layer
from solver.network_check import head_of, status_of
from solver.options import pick_layers
from solver.runs_pins import conflicts, demands
from solver.runs_plan import EngineLayer, EnginePlan, EngineSchedule
from solver.runs_solve import pick_runs_engine, totals_of, verified
from solver.verify import gap_of, unequal

__all__ = ["problems_of_engine"]


def problems_of_engine(plan: EnginePlan) -> list[str]:
    """Return every mismatch of a plan, one line each: all is derived again but optimality, which is the engine's."""
    return list(dict.fromkeys([*head_of(plan), *status_of(plan), *_layers(plan)]))


def _layers(plan: EnginePlan) -> Iterator[str]:
    try:
        engine_of(plan.machine_data)
        demands(plan.options.pins)
        asked = pick_layers(plan.network_data, plan.options.layers or None)
        proves = pick_runs_engine(plan.engine).proves
    except InputError as error:
        yield str(error)
        return
    if [row.layer for row in plan.layers] != [layer.name for layer in asked]:
        yield f"layers: the plan has {len(plan.layers)}, {len(asked)} are asked for, or other ones"
        return
    if not proves and any(row.status == "OPTIMAL" for row in plan.layers):
        yield f"status OPTIMAL: engine {plan.engine} proves nothing"
    seen: dict[tuple[object, ...], list[str]] = {}
    for row, layer in zip(plan.layers, asked, strict=True):
        key = (layer.signature(), row.model_dump_json(exclude={"layer", "wall_s"}))
        if key not in seen:
            seen[key] = list(_layer(plan, row, layer))
        yield from (f"layer {row.layer}: {text}" for text in seen[key])
    for name, value in totals_of(plan.layers).items():
        yield from unequal(name, getattr(plan, name), value)


def _layer(plan: EnginePlan, row: EngineLayer, layer: Layer) -> Iterator[str]:
    solved, value = row.status in ("OPTIMAL", "FEASIBLE"), row.objective.value if row.objective else None
    if any((part is not None) != solved for part in (row.schedule, row.counts, row.objective, row.replay.ok)):
        yield f"status {row.status}: a layer has schedule, counts, objective and replay if and only if it is solved"
        return
    yield from unequal("gap", row.gap, gap_of(value, row.bound))
    if row.bound is not None and value is not None and row.bound > value:
        yield f"bound {row.bound} is above the value {value}"
    if row.status == "OPTIMAL" and row.bound != value:
        yield f"status OPTIMAL with bound {row.bound} and value {value}"
    try:
        if row.schedule is None:
            work = work_of(layer, engine_of(plan.machine_data))
            yield from unequal("conflicts", row.conflicts, conflicts(work, plan.machine_data, plan.options.pins))
            if bool(row.conflicts) != (row.status == "INFEASIBLE"):
                yield f"status {row.status} with {len(row.conflicts)} conflicts"
            return
        if row.schedule.rows > layer.r:
            yield f"strips of {row.schedule.rows} rows: there are {layer.r}"
            return
        faults, counts, objective = verified(layer, plan.machine_data, row.schedule)
    except InputError as error:
        yield str(error)
        return
    yield from faults
    if row.conflicts:
        yield f"conflicts: a layer that is solved has none, it names {len(row.conflicts)}"
    yield from unequal("counts", row.counts, counts)
    yield from unequal("objective", row.objective, objective)
    yield from unequal("replay", (row.replay.ok, row.replay.faults), (not faults, tuple(faults)))
    yield from _demanded(plan, row.schedule)


def _demanded(plan: EnginePlan, schedule: EngineSchedule) -> Iterator[str]:
    """The pins."""
    wanted = demands(plan.options.pins)
    pairs = [("strips", schedule.strips, wanted.strips), ("in_places", schedule.in_places, wanted.inputs),
             ("part_places", schedule.part_places, wanted.parts)]  # fmt: skip
    for name, number, (least, most) in pairs:
        if not least <= number <= most:
            yield f"{name} {number}: the pins ask for {least} to {most}"
    held = {False: "dram", True: "banks"}
    yield from unequal("inputs_at", schedule.inputs_at, held[wanted.before])
    yield from unequal("results_at", schedule.results_at, held[wanted.after])
    if wanted.stay and any(step.verb == "spill" for step in from_text(schedule.program)):
        yield "spill=no: the program stores partial maps"
    fresh = int(plan.machine_data.engine is not None and plan.machine_data.engine.adds == "steps")
    yield from unequal("fresh_places", schedule.fresh_places, fresh if schedule.inputs > 1 else 0)
