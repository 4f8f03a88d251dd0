"""`solve_applications`: map several applications to the processors of a board, each in time whatever the others do."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence

from formulations.applications.problem import Schedule, Several, begins, responses
from formulations.mapping.pipeline import busy
from hwmodels.board.replay_applications import Referee, Repeated
from hwmodels.outcome import UNITS
from instances.applications import Application, Applications
from instances.machine import Machine
from instances.profiles import Profile
from solver.applications.ask import Best, Setting, ask, in_haste, lexicographic
from solver.applications.engines import APPLICATION_ENGINES, ApplicationEngine
from solver.applications.plan import (
    APPLICATIONS_FORMAT,
    ApplicationPlan,
    ApplicationsMeasures,
    ApplicationsPlan,
    ApplicationsReplay,
    OrderedTask,
    SharedProcessor,
)  # fmt: skip
from solver.options import AUTO, unknown
from solver.plan import Objective, digest, version
from solver.verify import PlanMismatch, gap_of
from solver.watch import Watch

__all__ = ["DRAWS", "hunted", "parts_of", "pick_application_engine", "plan_of", "solve_applications"]

#: Random offsets that a plan is simulated with.
DRAWS = 500


def pick_application_engine(name: str) -> ApplicationEngine:
    """Return an engine for several applications; raises InputError with the known ones."""
    if name not in APPLICATION_ENGINES:
        raise unknown("engine for several applications", name, APPLICATION_ENGINES)
    return APPLICATION_ENGINES[name]


def solve_applications(
    target: Applications | str | os.PathLike[str],
    machine: Machine | str | os.PathLike[str],
    *,
    engine: str = AUTO,
    objective: str | Sequence[str] = "response",
    pins: str | Iterable[str] | Mapping[str, str | int] | None = None,
    profile: Profile | str | os.PathLike[str] | None = None,
    settings: str | Iterable[str] | Mapping[str, str | int] | None = None,
    time_limit_s: float | None = None,
) -> ApplicationsPlan:
    """Map the tasks of several applications to processors so that all keep their deadlines at any release offsets.

    Parameters
    ----------
    target : Applications, str or path
        ``squeezenet1_1@33ms,mobilenet_v1@40ms/35ms``, the highest priority first, or a file of them.
    machine : Machine, str or path
        One with processors, such as ``hikey970``.
    engine : str
        ``auto``, or a name from ``certile list engines``.
    objective : str or sequence of str
        ``response`` (all together, ticks), ``response:NAME`` or its number, ``energy`` (of one inference of each, fJ),
        or several of them, the first one first.
    pins : texts or mapping
        ``analysis=safe`` (the default) or ``analysis=printed`` (Eq. 3.11), ``cpu_config=1,1,1,1`` (by default all are
        tried), ``TASK=PROCESSOR`` with tasks such as ``squeezenet1_1:conv1``.
    profile : Profile or path, optional
        Measured times; estimated without.
    settings : texts or mapping
        Machine fields to override.
    time_limit_s : float, optional
        For all configurations together; then the best plan so far is returned with its bound.

    Raises
    ------
    InputError
        For bad input.
    PlanMismatch
        If engine, formulation and simulation disagree: a defect of certile.
    """
    start = time.monotonic()
    chosen, asked = (
        pick_application_engine(engine),
        ask(target, machine, objective, pins, profile, settings, time_limit_s),
    )
    with Watch(asked.options.time_limit_s) as watch:
        best = watch.run(lambda: lexicographic(asked, chosen, start), lambda: in_haste(asked))
        return plan_of(asked, chosen, best, start)


def plan_of(asked: Setting, engine: ApplicationEngine, best: Best, start: float) -> ApplicationsPlan:
    """Return the plan of an answer, simulated; raises PlanMismatch if the simulation or the proof disagrees."""
    network, machine, found = asked.target.network, asked.machine, best.found
    fields: dict[str, object] = {
        "format": APPLICATIONS_FORMAT, "certile": version(), "problem": "applications", "network": network.name,
        "machine": machine.name, "engine": engine.name, "engine_version": found.versions,
        "objectives": asked.objectives, "unit": UNITS[asked.objectives[0].partition(":")[0]],
        "status": found.status, "objective": None, "bound": found.bound, "gap": None,
        "stats": found.stats, "network_digest": digest(network.model_dump(mode="json")),
        "machine_digest": digest(machine.model_dump(mode="json")), "network_data": network, "machine_data": machine,
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
