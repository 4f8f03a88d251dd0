"""Re-verify a mapping from its assignment, starts, stages and buffers alone, whoever made it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from formulations.mapping.parts import parts
from formulations.mapping.pipeline import Pipeline, busy
from formulations.mapping.problem import Assignment, Mapping, Schedule, build
from hwmodels.board.task_times import estimated
from instances.errors import InputError
from instances.tasks import TaskGraph, tasks
from solver.mapping.ask import ESTIMATED, board_of
from solver.mapping.parts import parts_of
from solver.mapping.pins import Demands, demands
from solver.mapping.plan import MappingPlan
from solver.network_check import head_of, status_of
from solver.verify import unequal

__all__ = ["problems_of_mapping"]

#: Stages that a task may need: it and its copies take at most a period, and wait for at most one.
_STAGES = 3


def problems_of_mapping(plan: MappingPlan) -> list[str]:
    """Return every mismatch of a plan, one line each: all is derived again but optimality, which is the engine's."""
    return list(dict.fromkeys([*head_of(plan), *status_of(plan), *_tasks(plan)]))


def _tasks(plan: MappingPlan) -> Iterator[str]:
    try:
        graph, board = tasks(plan.network_data), board_of(plan.machine_data)
        names = [task.name for task in graph.tasks]
        if list(plan.profile) != names:
            yield f"profile: it has {len(plan.profile)} tasks, the network {len(names)}, or other ones"
            return
        rows = tuple(plan.profile.values())
        if plan.options.profile == ESTIMATED and rows != estimated(graph, board):
            yield "profile: the plan says estimated, other times are"
        wanted = demands(plan.options.pins, graph, board, rows)
        yield from unequal("options.cap", plan.options.cap, wanted.limits.cap)
        if len(set(plan.objectives)) < len(plan.objectives):
            yield f"objectives: {', '.join(plan.objectives)}: one stands twice"
        if not plan.tasks:
            if plan.processors or plan.waiting or plan.measures is not None or plan.replay.ok is not None:
                yield "a plan without tasks has no processors, waiting, measures and replay"
            return
        alone = "latency" in plan.objectives or wanted.limits.latency is not None
        yield from unequal("pipelined", plan.pipelined, not alone)
        yield from unequal("options.shares", plan.options.shares, wanted.shares)
        made = build(graph, board, plan.cpu_config, rows, plan.machine_data.tick_ps, wanted.shares)
    except (InputError, KeyError) as error:
        yield str(error)
        return
    at = _assignment(plan, graph, made)
    if isinstance(at, str):
        yield at
        return
    yield from _demanded(plan, wanted, made, at)
    yield from _derived(plan, made, at)


def _assignment(plan: MappingPlan, graph: TaskGraph, made: Mapping) -> Assignment | str:
    names = {group.name: p for p, group in enumerate(made.processors)}
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


def _demanded(plan: MappingPlan, wanted: Demands, made: Mapping, at: Assignment) -> Iterator[str]:
    """The pins."""
    if plan.cpu_config not in wanted.configurations:
        yield f"cpu_config {plan.cpu_config}: the pins ask for another one"
    for i, name in wanted.fixed.items():
        yield from unequal(f"task {made.graph.tasks[i].name}: processor", _named(made, at[i]), name)
    price, limits = made.price(at, wanted.limits.cap), wanted.limits
    if limits.period is not None and price.period > limits.period:
        yield f"period {price.period} is above the limit {limits.period}"
    latency = plan.measures.latency if plan.measures is not None else 0
    if limits.latency is not None and latency > limits.latency:
        yield f"latency {latency} is above the limit {limits.latency}"
    if limits.energy is not None and price.energy > limits.energy:
        yield f"energy {price.energy} is above the limit {limits.energy}"


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
