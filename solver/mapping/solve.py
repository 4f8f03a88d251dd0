"""Map a network's tasks to the processors of a board, and verify the pipeline."""

from __future__ import annotations

import time

from formulations.mapping.latency import critical, dispatched, once
from formulations.mapping.parts import parts
from formulations.mapping.pipeline import Pipeline, pipelined
from formulations.mapping.problem import Aim, Assignment
from formulations.mapping.problem import Mapping as Instance
from hwmodels.board.replay import Seen, replay_mapping, replay_once
from hwmodels.outcome import UNITS
from solver.mapping.ask import Best, Setting, ask, in_haste, lexicographic
from solver.mapping.engines import MAPPING_ENGINES, MappingEngine
from solver.mapping.plan import (
    MappingMeasures,
    MappingPlan,
    MappingReplay,
    ProcessorPlan,
    TaskPlan,
    Waiting,
)  # fmt: skip
from solver.network_plan import head
from solver.plan import Objective
from solver.question import Question
from solver.verify import PlanMismatch, gap_of

__all__ = ["parts_of", "plan_of", "replayed", "solve"]


def solve(question: Question) -> MappingPlan:
    """Map a network's tasks to the processors of a board; one inference follows the other through them.

    With latency as an objective, or a limit of it, the plan is for one inference alone.

    Raises
    ------
    InputError
        For bad input, and if a task can run nowhere.
    PlanMismatch
        If engine, formulation and simulation disagree: a defect of certile.
    """
    start, chosen, asked = time.monotonic(), MAPPING_ENGINES[question.engine], ask(question)
    with question.watch() as watch:
        best = watch.run(lambda: lexicographic(asked, chosen, start), lambda: in_haste(asked))
        return plan_of(asked, chosen, best, start)


# ---- the plan --------------------------------------------------------------------------------------------------------


def replayed(instance: Instance, at: Assignment, pipeline: Pipeline, period: int) -> Seen:
    """Run the pipeline of an assignment; without a period (0), one inference alone."""
    number, order = len(instance.processors), sorted(range(len(at)), key=lambda i: _turn(pipeline, i))
    lists = [[(i, pipeline.stages[i]) for i in order if at[i] == p] for p in range(number)]
    copies = {
        (e, p, q): int(instance.copies[e, p, q])
        for e in range(len(instance.graph.edges)) for p in range(number) for q in range(number) if p != q
    }  # fmt: skip
    if not period:
        return replay_once(instance.graph.edges, instance.times, copies, [[i for i, _ in few] for few in lists])
    return replay_mapping(instance.graph.edges, instance.times, copies, lists, pipeline.buffers, period)


def _turn(pipeline: Pipeline, i: int) -> tuple[int, int, int, int]:
    """What comes first: tasks that take no time come before one that begins with them.

    Of several that take none at one moment those of later stages do: they free the buffers of those before them.
    """
    return pipeline.starts[i], pipeline.starts[i] + pipeline.durations[i], -pipeline.stages[i], i


def plan_of(asked: Setting, engine: MappingEngine, best: Best, start: float) -> MappingPlan:
    """Return the plan of an answer, simulated; raises PlanMismatch if the simulation or the proof disagrees."""
    network, said = asked.question.network, best.said
    configuration = best.configuration or asked.demands.configurations[0]
    fields = head(
        asked.question, "mapping", engine.name, status=said.status, start=start, engine_version=said.versions,
        bound=said.bound, stats=said.stats,
    )  # fmt: skip
    fields |= {
        "options": asked.options, "cpu_config": configuration, "pipelined": not asked.alone, "measures": None,
        "replay": MappingReplay(ok=None, latency=0, faults=()), "processors": (), "tasks": (), "waiting": (),
        "profile": {task.name: row for task, row in zip(asked.graph.tasks, asked.rows, strict=True)},
    }  # fmt: skip
    if said.at is None:
        why = _conflicts(asked) if said.status == "INFEASIBLE" else ()
        return MappingPlan.model_validate({**fields, "conflicts": why, "wall_s": time.monotonic() - start})
    instance = asked.instance(configuration)
    flat = parts(instance, said.at)
    alone = once(flat.mapping, flat.at, said.order or dispatched(flat.mapping, flat.at)) if asked.alone else None
    fields |= parts_of(instance, said.at, asked.options.cap, asked.aims[0], alone, alone=asked.alone)
    plan = MappingPlan.model_validate({**fields, "wall_s": time.monotonic() - start})
    value = plan.objective.value if plan.objective else 0
    if plan.replay.faults or (said.status == "OPTIMAL" and said.bound != value):
        faults = [*plan.replay.faults, f"value {value}, bound {said.bound}, {said.status}"]
        raise PlanMismatch(f"network {network.name}, engine {engine.name}: {'; '.join(faults[:5])}")
    return plan.model_copy(update={"gap": gap_of(value, said.bound)})


def parts_of(
    instance: Instance, at: Assignment, cap: int, aim: Aim, pipeline: Pipeline | None = None, *, alone: bool = False
) -> dict[str, object]:
    """Return everything in a plan that follows from an assignment, with its own pipeline or a given one.

    Of one inference alone both are simulated: it, and the pipeline whose period is said.
    """
    price, names = instance.price(at, cap), [group.name for group in instance.processors]
    found, whole = parts(instance, at), instance.graph
    instance, at, graph = found.mapping, found.at, found.mapping.graph
    pipeline = pipeline or pipelined(instance, at, price.period)
    seen = replayed(instance, at, pipeline, 0 if alone else price.period)
    faults = list(seen.faults)
    if alone:
        faults += replayed(instance, at, pipelined(instance, at, price.period), price.period).faults
    if not faults and seen.busy != price.loads:
        faults.append(f"busy ticks: priced {price.loads}, simulated {seen.busy}")
    if seen.latency > pipeline.latency:
        faults.append(f"latency: planned {pipeline.latency}, simulated {seen.latency}")
    rows = []
    for i, ((task, share), p) in enumerate(zip(found.shares, at, strict=True)):
        took = instance.times[i][p] or 0
        rows.append(
            TaskPlan(
                task=whole.tasks[task].name, processor=names[p], share=share, start=pipeline.starts[i],
                stage=pipeline.stages[i], time=took,
                copies=pipeline.durations[i] - took,
            )
        )  # fmt: skip
    size = instance.element_bytes
    return {
        "measures": MappingMeasures(period=price.period, energy=price.energy, latency=pipeline.latency),
        "objective": _objective(instance, at, aim, cap, pipeline),
        "replay": MappingReplay(ok=not faults, latency=seen.latency, faults=tuple(faults)),
        "processors": tuple(
            ProcessorPlan(name=group.name, cores=group.cores, load=load)
            for group, load in zip(instance.processors, price.loads, strict=True)
        ),
        "tasks": tuple(rows),
        "waiting": tuple(
            Waiting(
                source=graph.tasks[i].name, target=graph.tasks[j].name, buffers=number,
                bytes=number * graph.tasks[i].results * size,
            )
            for (i, j), number in zip(graph.edges, pipeline.buffers, strict=True)
        ),
    }  # fmt: skip


def _objective(instance: Instance, at: Assignment, aim: Aim, cap: int, pipeline: Pipeline) -> Objective:
    """The period as the busiest processor's time, copies and idle time; the energy by processor; the longest chain."""
    price = instance.price(at, cap)
    names = [group.name for group in instance.processors]
    if aim == "energy":
        terms = {name: w * load for name, w, load in zip(names, instance.watts, price.loads, strict=True)}
    elif aim == "latency":
        chain = critical(instance, at, pipeline.starts)
        computed, took = sum(instance.times[i][at[i]] or 0 for i in chain), sum(pipeline.durations[i] for i in chain)
        terms = {"tasks": computed, "copies": took - computed, "waiting": pipeline.latency - took}
    else:
        busiest = max(range(len(names)), key=lambda p: price.loads[p])
        computed = sum(instance.times[i][p] or 0 for i, p in enumerate(at) if p == busiest)
        terms = {
            f"{names[busiest]} tasks": computed, f"{names[busiest]} copies": price.loads[busiest] - computed,
            "idle, to keep the cap": price.period - price.loads[busiest],
        }  # fmt: skip
    return Objective.model_validate({"value": sum(terms.values()), "unit": UNITS[aim], "terms": terms})


def _conflicts(asked: Setting) -> tuple[str, ...]:
    """Why there is no mapping: the limits."""
    limits, said = asked.demands.limits, []
    instances = [asked.instance(one) for one in asked.demands.configurations]
    least = min(
        max(min(max(t for _, t in made.work(i, a)) for a in able) for i, able in enumerate(made.able))
        for made in instances
    )
    if limits.period is not None:
        said.append(f"period<={limits.period}: the longest task takes at least {least} ticks wherever it runs")
    if limits.latency is not None:
        said.append(f"latency<={limits.latency}: below what one inference takes within the other limits")
    if limits.energy is not None:
        said.append(f"energy<={limits.energy} fJ is below what any mapping takes within the other limits")
    return tuple(said)
