"""What a plan of problem mapping says of an assignment: its pipeline, or one inference alone, simulated."""

from __future__ import annotations

from formulations.mapping.latency import critical, dispatched, once
from formulations.mapping.parts import parts
from formulations.mapping.pipeline import Pipeline, pipelined
from formulations.mapping.problem import Assignment, Schedule
from formulations.mapping.problem import Mapping as Instance
from hwmodels.board.replay import Seen, replay_mapping, replay_once
from hwmodels.outcome import UNITS
from solver.mapping.plan import MappingMeasures, MappingReplay, ProcessorPlan, TaskPlan, Waiting
from solver.plan import Objective

__all__ = ["parts_of", "replayed"]


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


def parts_of(
    instance: Instance, schedule: Schedule, cap: int, aim: str, pipeline: Pipeline | None = None, *, alone: bool = False
) -> dict[str, object]:
    """Return everything in a plan that follows from a schedule, with its own pipeline or a given one.

    Of one inference alone both are simulated: it, and the pipeline whose period is said.
    """
    price, names = instance.price(schedule.at, cap), [group.name for group in instance.processors]
    found, whole = parts(instance, schedule.at), instance.graph
    instance, at, graph = found.mapping, found.at, found.mapping.graph
    if pipeline is None and alone:
        pipeline = once(instance, at, schedule.order or dispatched(instance, at))
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


def _objective(instance: Instance, at: Assignment, aim: str, cap: int, pipeline: Pipeline) -> Objective:
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
