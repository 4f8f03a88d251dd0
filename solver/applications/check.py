"""Re-verify a plan of several applications from its processors and orders alone, whoever made it."""

from __future__ import annotations

from collections.abc import Iterator

from formulations.applications.problem import Several
from formulations.mapping.problem import Schedule
from solver.applications.ask import ApplicationsSetting
from solver.applications.parts import DRAWS, parts_of
from solver.applications.plan import ApplicationsPlan
from solver.verify import unequal

__all__ = ["applications_faults"]

#: Draws of offsets that a check repeats at most.
_MOST_DRAWS = 20_000


def applications_faults(plan: ApplicationsPlan, setting: ApplicationsSetting) -> Iterator[str]:
    """Yield every mismatch of a plan that has tasks, one line each; optimality is the engine's."""
    several = setting.instance(plan.cpu_config)
    schedule = _schedule(plan, several)
    if isinstance(schedule, str):
        yield schedule
        return
    if not DRAWS <= plan.replay.draws <= _MOST_DRAWS:
        yield f"replay: {plan.replay.draws} draws; {DRAWS} to {_MOST_DRAWS} are repeated"
        return
    asked, draws = setting.target.applications, plan.replay.draws
    for name, value in parts_of(several, schedule, asked, plan.objectives[0], draws).items():
        yield from unequal(name, getattr(plan, name), value)


def _schedule(plan: ApplicationsPlan, several: Several) -> Schedule | str:
    graph, places = several.mapping.graph, {group.name: p for p, group in enumerate(several.mapping.processors)}
    numbers = {task.name: i for i, task in enumerate(graph.tasks)}
    order = [numbers.get(row.task, -1) for row in plan.tasks]
    if sorted(order) != list(range(len(graph.tasks))):
        return f"tasks: the plan has {len(plan.tasks)}, the network {len(graph.tasks)}, or other ones"
    at = dict[int, int]()
    for i, row in zip(order, plan.tasks, strict=True):
        if any(k not in at for k in graph.before[i]):
            return f"task {row.task}: it stands before a task whose result it reads"
        at[i] = places.get(row.processor, -1)
        if at[i] not in several.mapping.able[i]:
            able = ", ".join(several.mapping.processors[p].name for p in several.mapping.able[i])
            return f"task {row.task}: it cannot run on {row.processor}, or the pins forbid it, but on {able}"
    return Schedule(tuple(at[i] for i in range(len(at))), tuple(order))
