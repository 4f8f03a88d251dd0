"""Map several applications to the processors of a board, each in time whatever the others do."""

from __future__ import annotations

import time
from collections.abc import Sequence

from formulations.applications.problem import Schedule, Several, begins, responses
from formulations.mapping.pipeline import busy
from hwmodels.board.replay_applications import Referee, Repeated
from hwmodels.outcome import UNITS
from instances.applications import Application
from solver.applications.ask import Best, Setting, ask, in_haste, lexicographic
from solver.applications.engines import APPLICATION_ENGINES, ApplicationEngine
from solver.applications.plan import (
    ApplicationPlan,
    ApplicationsMeasures,
    ApplicationsPlan,
    ApplicationsReplay,
    OrderedTask,
    SharedProcessor,
)  # fmt: skip
from solver.network_plan import head
from solver.plan import Objective
from solver.question import Question
from solver.verify import PlanMismatch, gap_of

__all__ = ["DRAWS", "hunted", "parts_of", "plan_of", "solve"]

#: Random offsets that a plan is simulated with.
DRAWS = 500


def solve(question: Question) -> ApplicationsPlan:
    """Map the tasks of several applications to processors so that all keep their deadlines at any release offsets.

    Raises
    ------
    InputError
        For bad input.
    PlanMismatch
        If engine, formulation and simulation disagree: a defect of certile.
    """
    start, chosen, asked = time.monotonic(), APPLICATION_ENGINES[question.engine], ask(question)
    with question.watch() as watch:
        best = watch.run(lambda: lexicographic(asked, chosen, start), lambda: in_haste(asked))
        return plan_of(asked, chosen, best, start)


def plan_of(asked: Setting, engine: ApplicationEngine, best: Best, start: float) -> ApplicationsPlan:
    """Return the plan of an answer, simulated; raises PlanMismatch if the simulation or the proof disagrees."""
    network, found = asked.target.network, best.found
    fields = head(
        asked.question, "applications", engine.name, status=found.status, start=start, engine_version=found.versions,
        bound=found.bound, stats=found.stats,
    )  # fmt: skip
    fields |= {
        "options": asked.options, "cpu_config": best.configuration or asked.demands.configurations[0], "measures": None,
        "applications": tuple(ApplicationPlan(**one.model_dump()) for one in asked.target.applications),
        "replay": ApplicationsReplay(ok=None, draws=0, faults=()), "processors": (), "tasks": (),
        "profile": {task.name: row for task, row in zip(asked.graph.tasks, asked.rows, strict=True)},
    }  # fmt: skip
    if found.schedule is None:
        why = _conflicts(asked) if found.status == "INFEASIBLE" else ()
        return ApplicationsPlan.model_validate({**fields, "conflicts": why, "wall_s": time.monotonic() - start})
    several = asked.instance(best.configuration)
    fields |= parts_of(several, found.schedule, asked.target.applications, asked.objectives[0])
    plan = ApplicationsPlan.model_validate({**fields, "wall_s": time.monotonic() - start})
    value = plan.objective.value if plan.objective else 0
    faults = [] if several.rule == "printed" else list(plan.replay.faults)
    if found.status == "OPTIMAL" and found.bound != value:
        faults.append(f"value {value}, bound {found.bound}, {found.status}")
    if faults:
        raise PlanMismatch(f"network {network.name}, engine {engine.name}: {'; '.join(faults[:5])}")
    return plan.model_copy(update={"gap": gap_of(value, found.bound)})


def hunted(several: Several, schedule: Schedule, draws: int, seed: int = 0) -> list[int]:
    """Return the longest response of every application over random release offsets.

    Raises
    ------
    ValueError
        If the schedule leaves a task out, or runs one where it cannot.
    """
    mapping, at = several.mapping, schedule.at
    number, edges = len(mapping.processors), mapping.graph.edges
    streams = [
        Repeated(
            tuple(tuple(i for i in schedule.order if i in s.tasks and at[i] == p) for p in range(number)), s.period
        )
        for s in several.streams
    ]
    copies = {
        (e, p, q): int(mapping.copies[e, p, q])
        for e in range(len(edges)) for p in range(number) for q in range(number) if p != q
    }  # fmt: skip
    return Referee(edges, mapping.times, copies, streams).hunt(draws, seed)


def parts_of(
    several: Several, schedule: Schedule, applications: Sequence[Application | ApplicationPlan], objective: str,
    draws: int = DRAWS,
) -> dict[str, object]:  # fmt: skip
    """Return everything in a plan that follows from a schedule."""
    mapping, at = several.mapping, schedule.at
    durations, begun, found = busy(mapping, at), begins(several, schedule), responses(several, schedule)
    seen, faults, rows = hunted(several, schedule, draws), list[str](), []
    for stream, one, response, longest in zip(several.streams, applications, found, seen, strict=True):
        if response is None or response > stream.deadline:
            faults.append(f"application {one.name}: no response within its deadline of {stream.deadline} ticks")
        elif longest > response:
            late = f", its deadline is {stream.deadline}" if longest > stream.deadline else ""
            faults.append(f"application {one.name}: response {response} by analysis, {longest} simulated{late}")
        rows.append(
            ApplicationPlan(
                name=one.name, operators=one.operators, period_us=one.period_us, deadline_us=one.deadline_us,
                alone=max(begun[i] + durations[i] for i in stream.tasks), response=response, seen=longest,
            )
        )  # fmt: skip
    names, graph = [group.name for group in mapping.processors], mapping.graph
    loads = [[sum(durations[i] for i in s.tasks if at[i] == p) for s in several.streams] for p in range(len(names))]
    terms = {row.name: row.response or 0 for row in rows}
    energy = mapping.price(at).energy
    if objective == "energy":
        terms = {name: w * sum(load) for name, w, load in zip(names, mapping.watts, loads, strict=True)}
    elif objective != "response":
        terms = {name: ticks for name, ticks in terms.items() if f"response:{name}" == objective}
    return {
        "measures": ApplicationsMeasures(response=sum(row.response or 0 for row in rows), energy=energy),
        "objective": Objective.model_validate(
            {"value": sum(terms.values()), "unit": UNITS[objective.partition(":")[0]], "terms": terms}
        ),
        "replay": ApplicationsReplay(ok=not faults, draws=draws, faults=tuple(faults)),
        "applications": tuple(rows),
        "processors": tuple(
            SharedProcessor(name=group.name, cores=group.cores, loads=tuple(load))
            for group, load in zip(mapping.processors, loads, strict=True)
        ),
        "tasks": tuple(
            OrderedTask(
                task=graph.tasks[i].name, processor=names[at[i]], start=begun[i], time=mapping.times[i][at[i]] or 0,
                copies=durations[i] - (mapping.times[i][at[i]] or 0),
            )
            for i in schedule.order
        ),
    }  # fmt: skip


def _conflicts(asked: Setting) -> tuple[str, ...]:
    """Why there is no schedule: an application that is too slow even alone, or all together."""
    said = []
    several = [asked.instance(one) for one in asked.demands.configurations]
    for a, stream in enumerate(several[0].streams):
        least = min(_least(one, a) for one in several)
        if least > stream.deadline:
            said.append(f"{stream.name}: it takes at least {least} ticks, its deadline is {stream.deadline}")
    together = f"no mapping keeps all deadlines by the {asked.options.analysis} analysis"
    return tuple(said) or (f"{together}, though no application alone is shown to be too slow",)


def _least(several: Several, a: int) -> int:
    """The longest of the shortest paths through an application."""
    heads, tails = several.heads, several.tails
    return max(min(heads[i][p] + tails[i][p] for p in heads[i]) for i in several.streams[a].tasks)
