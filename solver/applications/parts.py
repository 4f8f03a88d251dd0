"""What a plan of several applications says of a schedule: responses, and the simulation of release offsets."""

from __future__ import annotations

from collections.abc import Sequence

from formulations.applications.problem import Several, begins, responses
from formulations.mapping.pipeline import busy
from formulations.mapping.problem import Schedule
from hwmodels.board.replay import Referee, Repeated
from hwmodels.outcome import UNITS
from instances.applications import Application
from solver.applications.plan import (
    ApplicationPlan,
    ApplicationsMeasures,
    ApplicationsReplay,
    OrderedTask,
    SharedProcessor,
)  # fmt: skip
from solver.plan import Objective

__all__ = ["DRAWS", "hunted", "parts_of"]

#: Random offsets that a plan is simulated with.
DRAWS = 500


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
