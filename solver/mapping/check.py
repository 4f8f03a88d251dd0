"""Re-verify a mapping from its assignment, starts, stages and buffers alone, whoever made it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from formulations.mapping.parts import parts
from formulations.mapping.pipeline import Pipeline, busy
from formulations.mapping.problem import Assignment, Mapping, Schedule
from solver.mapping.ask import MappingSetting
from solver.mapping.parts import parts_of
from solver.mapping.plan import MappingPlan
from solver.verify import unequal

__all__ = ["mapping_faults"]

#: Stages that a task may need: it and its copies take at most a period, and wait for at most one.
_STAGES = 3


def mapping_faults(plan: MappingPlan, setting: MappingSetting) -> Iterator[str]:
    """Yield every mismatch of a plan that has tasks, one line each; optimality is the engine's."""
    made = setting.instance(plan.cpu_config)
    at = _assignment(plan, made)
    if isinstance(at, str):
        yield at
        return
    yield from unequal("pipelined", plan.pipelined, not setting.alone)
    yield from _kept(plan, setting)
    yield from _derived(plan, made, at)


def _assignment(plan: MappingPlan, made: Mapping) -> Assignment | str:
    graph, names = made.graph, {group.name: p for p, group in enumerate(made.processors)}
    places = {place: a for a, place in enumerate(made.places)}
    groups = [(task, list(rows)) for task, rows in groupby(plan.tasks, key=lambda row: row.task)]
    if [task for task, _ in groups] != [task.name for task in graph.tasks]:
        return f"tasks: the plan has {len(groups)}, the network {len(graph.tasks)}, or other ones"
    found = []
    for i, (task, rows) in enumerate(groups):
        place = places.get(tuple((names.get(row.processor, -1), row.share) for row in rows), -1)
        if place not in made.able[i]:
            able = ", ".join(_named(made, a) for a in made.able[i])
            said = " and ".join(f"{row.processor} ({row.share} of {made.shares})" for row in rows)
            return f"task {task}: it cannot run on {said if made.split else rows[0].processor}, but on {able}"
        found.append(place)
    return tuple(found)


def _named(made: Mapping, a: int) -> str:
    place = [(made.processors[p].name, k) for p, k in made.places[a]]
    return place[0][0] if len(place) == 1 else "+".join(f"{name}:{k}" for name, k in place)


def _kept(plan: MappingPlan, setting: MappingSetting) -> Iterator[str]:
    """The limits."""
    figures, limits = {} if plan.measures is None else plan.measures.model_dump(), setting.demands.limits
    for name, value in figures.items():
        most = getattr(limits, name)
        if most is not None and value > most:
            yield f"{name} {value} is above the limit {most}"


def _derived(plan: MappingPlan, made: Mapping, at: Assignment) -> Iterator[str]:
    """Every figure, and the pipeline by simulation."""
    flat = parts(made, at)
    graph = flat.mapping.graph
    edges = [(graph.tasks[i].name, graph.tasks[j].name) for i, j in graph.edges]
    if [(row.source, row.target) for row in plan.waiting] != edges:
        yield f"waiting: the plan has {len(plan.waiting)} edges, the network {len(edges)}, or other ones"
        return
    if max(row.stage for row in plan.tasks) > _STAGES * len(plan.tasks):
        yield f"stages: above {_STAGES} for each of {len(plan.tasks)} tasks"
        return
    durations, period = busy(flat.mapping, flat.at), made.price(at, plan.options.cap).period
    if not plan.pipelined:
        if any(row.stage for row in plan.tasks) or any(row.buffers != 1 for row in plan.waiting):
            yield "stages, buffers: one inference alone has no stages and a buffer an edge"
            return
        period = 0
    starts, stages = tuple(row.start for row in plan.tasks), tuple(row.stage for row in plan.tasks)
    ends = [s + period * k + d for s, k, d in zip(starts, stages, durations, strict=True)]
    pipeline = Pipeline(
        starts, stages, durations, tuple(row.buffers for row in plan.waiting), max(*ends, int(not plan.pipelined))
    )
    yield from _overlaps(plan, durations, period)
    for i, j in graph.edges:
        if starts[j] + period * stages[j] < ends[i]:
            yield f"task {plan.tasks[j].task}: it starts before the result of {plan.tasks[i].task} is there"
    derived = parts_of(made, Schedule(at), plan.options.cap, plan.objectives[0], pipeline, alone=not plan.pipelined)
    for name, value in derived.items():
        yield from unequal(name, getattr(plan, name), value)


def _overlaps(plan: MappingPlan, durations: tuple[int, ...], period: int) -> Iterator[str]:
    """Tasks of a processor run one after the other, and end with the period if there is one."""
    last: dict[str, tuple[int, str]] = {}
    for row, duration in sorted(
        zip(plan.tasks, durations, strict=True), key=lambda pair: (pair[0].start, pair[0].start + pair[1])
    ):
        free, before = last.get(row.processor, (0, ""))
        if row.start < free:
            yield f"task {row.task}: it starts at {row.start} while {row.processor} runs {before} until {free}"
        last[row.processor] = row.start + duration, row.task
    for name, (end, task) in last.items():
        if period and end > period:
            yield f"task {task}: it ends at {end}, after the period {period} of {name}"
