"""Re-verify a plan for a small engine from its strips, places and programs alone, whoever made it.

Everything is derived again but optimality, which is the engine's; a bound is refuted if an order in passes moves fewer
bytes. A layer without a schedule carries nothing but why: conflicts if none fits, which are found again, or an engine
that gives up, which is asked again.
"""

from __future__ import annotations

from collections.abc import Iterator

from formulations.partial_engine.bounds import branch_bound
from formulations.partial_engine.orders import from_text
from formulations.partial_engine.problem import Problem, build
from hwmodels.partial_engine.work import engine_of, work_of
from instances.errors import InputError
from instances.workload import Layer
from solver.network_check import head_of, status_of
from solver.options import AUTO, pick_layers
from solver.partial_engine.base import RunsAsked, best_passes
from solver.partial_engine.engines import RUNS_ENGINES
from solver.partial_engine.pins import conflicts, demands
from solver.partial_engine.plan import EngineLayer, EnginePlan, EngineReplay, EngineSchedule
from solver.partial_engine.solve import totals_of, verified
from solver.verify import gap_of, unequal

__all__ = ["problems_of_engine"]


def problems_of_engine(plan: EnginePlan) -> tuple[tuple[str, ...], int]:
    """Return every mismatch of a plan, one line each, and how many schedules were re-priced and replayed."""
    replayed: list[str] = []
    problems = tuple(dict.fromkeys([*head_of(plan), *status_of(plan), *_layers(plan, replayed)]))
    return problems, len(replayed)


def _layers(plan: EnginePlan, replayed: list[str]) -> Iterator[str]:
    try:
        engine_of(plan.machine_data)
        demands(plan.options.pins)
        asked = pick_layers(plan.network_data, plan.options.layers or None)
    except InputError as error:
        yield str(error)
        return
    if [row.layer for row in plan.layers] != [layer.name for layer in asked]:
        yield f"layers: the plan has {len(plan.layers)}, {len(asked)} are asked for, or other ones"
        return
    seen: dict[tuple[object, ...], tuple[list[str], bool]] = {}
    for row, layer in zip(plan.layers, asked, strict=True):
        key = (layer.signature(), row.model_dump_json(exclude={"layer", "wall_s"}))
        if key not in seen:
            seen[key] = _layer(plan, row, layer)
        problems, done = seen[key]
        yield from (f"layer {row.layer}: {text}" for text in problems)
        replayed += [row.layer] * done
    for name, value in totals_of(plan.layers).items():
        yield from unequal(name, getattr(plan, name), value)


def _layer(plan: EnginePlan, row: EngineLayer, layer: Layer) -> tuple[list[str], bool]:
    """The mismatches of a layer, and whether its schedule was re-priced and replayed."""
    solved = row.status in ("OPTIMAL", "FEASIBLE")
    if any((part is not None) != solved for part in (row.schedule, row.counts, row.objective, row.replay.ok)):
        said = "a layer has schedule, counts, objective and replay if and only if it is solved"
        return [f"status {row.status}: {said}"], False
    problems: list[str] = []
    try:
        problem = build(work_of(layer, engine_of(plan.machine_data)), plan.machine_data, demands(plan.options.pins))
        problems += _bound(row, problem)
        if row.schedule is None:
            return problems + list(_unsolved(plan, row, problem)), False
        if row.schedule.rows > layer.r:
            return [*problems, f"strips of {row.schedule.rows} rows: there are {layer.r}"], False
        return problems + list(_scheduled(plan, row, layer, row.schedule)), True
    except InputError as error:
        return [*problems, str(error)], False


def _bound(row: EngineLayer, problem: Problem) -> Iterator[str]:
    """A bound against the value, and against orders in passes with all strips and places that fit."""
    value = row.objective.value if row.objective else None
    yield from unequal("gap", row.gap, gap_of(value, row.bound))
    if row.status == "OPTIMAL" and row.bound != value:
        yield f"status OPTIMAL with bound {row.bound} and value {value}"
    if row.bound is None:
        return
    if value is None:
        yield f"bound {row.bound}: a layer without a schedule has none"
        return
    if row.bound > value:
        yield f"bound {row.bound} is above the value {value}"
    bounds = sorted((branch_bound(branch, stay=problem.stay), n) for n, branch in enumerate(problem.branches))
    for branch in (problem.branches[n] for least, n in bounds if least < row.bound):
        found = best_passes(problem, branch)
        if found.bytes < row.bound:
            places = f"{branch.x} input and {branch.y} partial places"
            yield f"bound {row.bound}: {branch.strips} strips with {places} move {found.bytes} bytes"
            return


def _unsolved(plan: EnginePlan, row: EngineLayer, problem: Problem) -> Iterator[str]:
    """What a layer without a schedule says."""
    yield from unequal("replay", row.replay, EngineReplay(ok=None))
    yield from unequal("conflicts", row.conflicts, conflicts(problem.work, plan.machine_data, plan.options.pins))
    if bool(row.conflicts) != (row.status == "INFEASIBLE"):
        yield f"status {row.status} with {len(row.conflicts)} conflicts"
    engine = RUNS_ENGINES.get(plan.engine, RUNS_ENGINES[AUTO])
    if problem.branches and not (engine.gives_up and engine.run(RunsAsked(problem, None)).found is None):
        yield f"status {row.status}: engine {plan.engine} finds a schedule"


def _scheduled(plan: EnginePlan, row: EngineLayer, layer: Layer, schedule: EngineSchedule) -> Iterator[str]:
    """A schedule and its figures."""
    faults, counts, objective = verified(layer, plan.machine_data, schedule)
    yield from faults
    if row.conflicts:
        yield f"conflicts: a layer that is solved has none, it names {len(row.conflicts)}"
    yield from unequal("counts", row.counts, counts)
    yield from unequal("objective", row.objective, objective)
    yield from unequal("replay", row.replay, EngineReplay(ok=not faults, faults=tuple(faults)))
    yield from _demanded(plan, schedule)


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
