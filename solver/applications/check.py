"""Re-verify a plan of several applications from its processors and orders alone, whoever made it."""

from __future__ import annotations

from collections.abc import Iterator

from formulations.applications.problem import Several
from formulations.mapping.problem import Limits, Schedule
from hwmodels.board.task_times import estimated
from instances.applications import Application
from instances.errors import InputError
from instances.tasks import tasks
from solver.applications.ask import goals_of, rule_of, several_of
from solver.applications.parts import DRAWS, parts_of
from solver.applications.plan import ApplicationsPlan
from solver.mapping.ask import ESTIMATED, board_of
from solver.mapping.pins import demands
from solver.network_check import head_of, status_of
from solver.verify import unequal

__all__ = ["problems_of_applications"]

#: Draws of offsets that a check repeats at most.
_MOST_DRAWS = 20_000


def problems_of_applications(plan: ApplicationsPlan) -> list[str]:
    """Return every mismatch of a plan, one line each: all is derived again but optimality, which is the engine's."""
    return list(dict.fromkeys([*head_of(plan), *status_of(plan), *_body(plan)]))


def _body(plan: ApplicationsPlan) -> Iterator[str]:
    try:
        asked = [Application(**one.model_dump(exclude={"alone", "response", "seen"})) for one in plan.applications]
        names = [name for one in asked for name in [one.name] * one.operators]
        operators = [operator.name.partition(":")[0] for operator in plan.network_data.operators]
        if names != operators or len({one.name for one in asked}) < len(asked):
            yield "applications: their operators are not those of the network"
            return
        goals_of(plan.objectives, [one.name for one in asked])
        rule, rest = rule_of(plan.options.pins)
        yield from unequal("options.analysis", plan.options.analysis, rule)
        graph, board = tasks(plan.network_data), board_of(plan.machine_data)
        if list(plan.profile) != [task.name for task in graph.tasks]:
            yield f"profile: it has {len(plan.profile)} tasks, the network {len(graph.tasks)}, or other ones"
            return
        rows = tuple(plan.profile.values())
        if plan.options.profile == ESTIMATED and rows != estimated(graph, board):
            yield "profile: the plan says estimated, other times are"
        wanted = demands(rest, graph, board, rows)
        if wanted.limits != Limits() or wanted.shares > 1 or plan.cpu_config not in wanted.configurations:
            yield f"cpu_config {plan.cpu_config}, or a limit: the pins ask for another one"
        if not plan.tasks:
            figures = [one for row in plan.applications for one in (row.alone, row.response, row.seen)]
            if plan.processors or plan.measures is not None or plan.replay.ok is not None or set(figures) != {None}:
                yield "a plan without tasks has no processors, measures, responses and replay"
            return
        several = several_of(asked, graph, plan.machine_data, plan.cpu_config, rows, wanted, rule)
        schedule = _schedule(plan, several)
    except (InputError, KeyError, ValueError) as error:
        yield str(error)
        return
    if isinstance(schedule, str):
        yield schedule
        return
    if not DRAWS <= plan.replay.draws <= _MOST_DRAWS:
        yield f"replay: {plan.replay.draws} draws; {DRAWS} to {_MOST_DRAWS} are repeated"
        return
    derived = parts_of(several, schedule, asked, plan.objectives[0], plan.replay.draws)
    for name, value in derived.items():
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
