"""Order the runs of layers on a small engine with banks, and verify the programs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from formulations.partial_engine.orders import as_text, from_text, price
from formulations.partial_engine.problem import Demands, Problem, branch_at, build
from hwmodels.partial_engine.replay import replay_engine
from hwmodels.partial_engine.work import engine_of, work_of
from instances.errors import InputError
from instances.machine import Machine
from instances.workload import Layer
from solver.network_plan import head
from solver.options import pick_layers
from solver.partial_engine.base import RunsAsked, RunsFound
from solver.partial_engine.engines import RUNS_ENGINES, RunsEngine, in_haste
from solver.partial_engine.pins import conflicts, demands
from solver.partial_engine.plan import (
    EngineCounts,
    EngineLayer,
    EngineOptions,
    EnginePlan,
    EngineReplay,
    EngineSchedule,
)
from solver.plan import Objective, Stat, worst
from solver.question import Question
from solver.verify import PlanMismatch, gap_of
from solver.watch import Watch

__all__ = ["solve", "totals_of", "verified"]

#: Kinds of DRAM bytes, the terms of the objective.
_KINDS = ("inputs", "weights", "spilled", "reloaded", "results")


def solve(question: Question) -> EnginePlan:
    """Plan every convolution of a network, or the layers named, each with its maps in DRAM before and after.

    Raises
    ------
    InputError
        For bad input.
    PlanMismatch
        If engine, formulation and replay disagree: a defect of certile.
    """
    start, chosen, texts = time.monotonic(), RUNS_ENGINES[question.engine], question.pins
    limit, real = question.time_limit_s, question.machine
    engine_of(real)
    demands(texts)
    asked = pick_layers(question.network, question.layers)
    known: dict[tuple[object, ...], tuple[EngineLayer, str]] = {}
    rows, versions = [], ""
    with question.watch() as watch:
        for layer in asked:
            if layer.signature() not in known:
                known[layer.signature()] = _planned(layer, real, chosen, texts, watch)
            row, said = known[layer.signature()]
            versions = versions or said
            rows.append(row.model_copy(update={"layer": layer.name}))
    options = EngineOptions(layers=question.layers or (), pins=texts, time_limit_s=limit, settings=question.settings)
    stats: dict[str, Stat] = {"layers": len(rows), "distinct": len(known)}
    fields = head(
        question, "partial_engine", chosen.name, status=worst(row.status for row in rows), start=start,
        engine_version=versions,
        stats=stats,
    )  # fmt: skip
    return EnginePlan.model_validate({**fields, **totals_of(rows), "options": options, "layers": tuple(rows)})


def _planned(
    layer: Layer, machine: Machine, engine: RunsEngine, pins: Sequence[str], watch: Watch
) -> tuple[EngineLayer, str]:
    """Plan a layer, in haste if the search is stopped; also the versions of the solver."""
    start = time.monotonic()
    work = work_of(layer, engine_of(machine))
    problem = build(work, machine, demands(pins))
    row = EngineLayer(
        layer=layer.name, status="INFEASIBLE", objective=None, bound=None, gap=None, wall_s=0.0, stats={},
        schedule=None, counts=None, replay=EngineReplay(ok=None),
    )  # fmt: skip
    if not problem.branches:
        why = conflicts(work, machine, pins)
        return row.model_copy(update={"conflicts": why, "wall_s": time.monotonic() - start}), ""
    said = watch.run(lambda: engine.run(RunsAsked(problem, watch.clock.left)), lambda: in_haste(problem))
    watch.heard(said.stats)
    done: dict[str, object] = {
        "status": said.status,
        "bound": said.bound,
        "stats": said.stats,
        "wall_s": time.monotonic() - start,
    }
    if said.found is None:
        return row.model_copy(update=done), said.versions
    schedule = _schedule(problem, said.found)
    faults, counts, objective = verified(layer, machine, schedule)
    if objective.value != said.found.bytes or (said.status == "OPTIMAL" and said.bound != objective.value):
        faults.append(f"engine says {said.found.bytes} bytes, bound {said.bound}, {said.status}")
    if faults:
        raise PlanMismatch(f"layer {layer.name}, engine {engine.name}: {'; '.join(faults[:5])}")
    done |= {"schedule": schedule, "counts": counts, "objective": objective, "replay": EngineReplay(ok=True)}
    done |= {"gap": gap_of(objective.value, said.bound), "wall_s": time.monotonic() - start}
    return row.model_copy(update=done), said.versions


def _schedule(problem: Problem, found: RunsFound) -> EngineSchedule:
    branch, wanted = found.branch, problem.wanted
    game, grids = branch.games[0][0], sum(number for _, number in branch.games)
    return EngineSchedule(
        rows=branch.rows, strips=branch.strips, grids=grids, inputs=game.inputs, outputs=game.outputs,
        in_places=branch.x, part_places=branch.y, fresh_places=problem.fresh, in_place_bytes=branch.in_place,
        part_place_bytes=branch.part_place, inputs_at="banks" if wanted.before else "dram",
        results_at="banks" if wanted.after else "dram", program=as_text(found.steps),
    )  # fmt: skip


def verified(layer: Layer, machine: Machine, schedule: EngineSchedule) -> tuple[list[str], EngineCounts, Objective]:
    """Price and replay a schedule; return faults, what the replay counts, and the objective with its terms.

    Raises
    ------
    InputError
        If the program is malformed.
    """
    try:
        steps = from_text(schedule.program)
    except ValueError as error:
        raise InputError(f"layer {layer.name}: program: {error}") from None
    work, places = work_of(layer, engine_of(machine)), (schedule.in_places, schedule.part_places)
    held = schedule.inputs_at == "banks", schedule.results_at == "banks"
    wanted = Demands(before=held[0], after=held[1])
    branch = branch_at(work, machine, schedule.rows, places[0], places[1], wanted)
    seen = replay_engine(layer, machine, schedule.rows, places, steps, held=held)
    faults = list(seen.faults)
    if not faults:
        value = branch.fixed + sum(number * price(game, steps) for game, number in branch.games)
        pairs = [
            ("bytes", value, seen.bytes), ("runs", work.runs * branch.strips, seen.runs),
            ("additions", work.adds * branch.strips, seen.adds), ("cycles", work.cycles(schedule.rows), seen.cycles),
            ("spilled", seen.spilled, seen.reloaded), ("strips", branch.strips, schedule.strips),
            ("grids", sum(grid.number for grid in work.grids), schedule.grids),
            ("groups", (work.inputs, work.outputs), (schedule.inputs, schedule.outputs)),
            ("bytes of places", (branch.in_place, branch.part_place),
             (schedule.in_place_bytes, schedule.part_place_bytes)),
        ]  # fmt: skip
        faults += [f"{what}: priced {one}, replayed {two}" for what, one, two in pairs if one != two]
    counts = EngineCounts(
        **{kind: getattr(seen, kind) for kind in _KINDS}, bytes=seen.bytes, runs=seen.runs, adds=seen.adds,
        cycles=seen.cycles, peak_bytes=seen.peak,
    )  # fmt: skip
    return faults, counts, _objective(counts)


def _objective(counts: EngineCounts) -> Objective:
    return Objective(value=counts.bytes, unit="bytes", terms={kind: getattr(counts, kind) for kind in _KINDS})


# ---- sums ------------------------------------------------------------------------------------------------------------


def totals_of(rows: Sequence[EngineLayer]) -> dict[str, object]:
    """Return everything in a plan that is summed over its layers."""
    status, counts, objective, bound = worst(row.status for row in rows), None, None, None
    replay = EngineReplay(ok=None)
    if all(row.counts is not None for row in rows):
        counts = _summed([row.counts for row in rows if row.counts is not None])
        objective = _objective(counts)
        faults = [f"{row.layer}: {fault}" for row in rows for fault in row.replay.faults]
        replay = EngineReplay(ok=all(row.replay.ok for row in rows), faults=tuple(faults))
    if all(row.bound is not None for row in rows):
        bound = sum(row.bound for row in rows if row.bound is not None)
    value = objective.value if objective else None
    return {
        "status": status, "objective": objective, "bound": bound, "gap": gap_of(value, bound), "counts": counts,
        "replay": replay, "conflicts": tuple(_conflicting(rows)),
    }  # fmt: skip


def _conflicting(rows: Sequence[EngineLayer]) -> Iterator[str]:
    for row in rows:
        yield from (f"{row.layer}: {text}" for text in row.conflicts)


def _summed(counts: Sequence[EngineCounts]) -> EngineCounts:
    names = [name for name in EngineCounts.model_fields if name != "peak_bytes"]
    sums = {name: sum(getattr(one, name) for one in counts) for name in names}
    return EngineCounts(**sums, peak_bytes=max(one.peak_bytes for one in counts))
