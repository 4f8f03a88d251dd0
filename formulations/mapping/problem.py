"""Mapping as a formulation: what may be asked, by which engines, and heuristics to compare with.

`MappingPart` says what a schedule costs, and what it is in a pipeline or of one inference alone.
An example: two tasks on one core, 10 and 4 ticks. Of one inference alone the second task starts at 10, and the latency
is 14. In a pipeline that is the period; both work on the same inference (stage 0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import cast

from formulations.mapping.board import BoardFigures, BoardPart, ProcessorLoad, Request, TaskTimes, replayed_copies
from formulations.mapping.engines import SEARCHES, Asked, clustered, exhaustive
from formulations.mapping.latency import Pipeline, busy, critical, dispatched, once, order_by, pipelined
from formulations.mapping.search import MOST, Rule, improved, list_scheduled, seeds, starts
from formulations.mapping.space import Aim, Assignment, Configuration, Limits, Parts, Price, Schedule, parts
from formulations.mapping.space import Mapping as Instance
from formulations.pins import Decision, Pins
from formulations.problem import Formulation, Goal, Priced, Replayed
from hwmodels.board.replay import Seen, replay_mapping
from hwmodels.board.schedule import MappingSchedule, TaskRun, Waiting
from hwmodels.outcome import Natural
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.tasks import tasks

#: Stages that a task may need: it and its copies take at most a period, and wait for at most one.
_STAGES = 3


@dataclass(frozen=True)
class MappingFigures(BoardFigures):
    """Of one network."""

    latency: Natural
    """From the release of an inference to its end."""
    waiting_bytes: tuple[Natural, ...]
    """What the buffers of every edge take."""


@dataclass(frozen=True)
class Worked:
    """A schedule, worked out: places by number, divided tasks in parts, the price, and when all of them run."""

    at: Assignment
    flat: Parts
    price: Price
    pipeline: Pipeline


def replayed(instance: Instance, at: Assignment, pipeline: Pipeline, period: int) -> Seen:
    """Run the pipeline of an assignment; without a period (0), one inference alone."""
    number, order = len(instance.processors), sorted(range(len(at)), key=lambda i: _turn(pipeline, i))
    lists = [[(i, pipeline.stages[i]) for i in order if at[i] == p] for p in range(number)]
    copies = replayed_copies(instance)
    return replay_mapping(instance.graph.edges, instance.times, copies, lists, pipeline.buffers, period)


def _turn(pipeline: Pipeline, i: int) -> tuple[int, int, int, int]:
    """What comes first: tasks that take no time come before one that begins with them.

    Of several that take none at one moment those of later stages do: they free the buffers of those before them.
    """
    return pipeline.starts[i], pipeline.starts[i] + pipeline.durations[i], -pipeline.stages[i], i


class MappingPart(BoardPart[Instance, MappingSchedule]):
    """The tasks of a network.

    `alone`: whether schedules are of one inference alone; else inferences follow each other in a pipeline.
    """

    searches, exhaustive = SEARCHES, staticmethod(exhaustive)

    def __init__(
        self, name: str, instances: Mapping[Configuration, Instance], limits: Limits | None = None, *,
        alone: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(name, instances)
        self.limits = limits or Limits()
        self.alone = alone or self.limits.latency is not None

    @classmethod
    def of(cls, request: Request, objectives: Sequence[str]) -> MappingPart:
        """Read what is asked; raises InputError if no configuration can run all tasks."""
        limits, alone = request.demands.limits, "latency" in objectives
        return cls(request.graph.network, request.instances(), limits, alone=alone)

    def asked(self, configuration: Configuration, goal: Goal) -> Asked:
        """The goal with the limits."""
        below = {} if goal.below is None else {goal.measure: goal.below - 1}
        limits = self.limits.within(goal.caps).within(below)
        known = goal.known
        hint = None if known is None or known.cpu_config != configuration else self.numbered(known)
        return Asked(self.instances[configuration], cast(Aim, goal.measure), limits, hint=hint)

    # ---- a schedule --------------------------------------------------------------------------------------------------

    def named(self, schedule: Schedule, configuration: Configuration) -> MappingSchedule:
        """With the usual pipeline; of one inference alone with starts that follow from the order."""
        made = self.instance(configuration)
        flat, period = parts(made, schedule.at), made.price(schedule.at, self.limits.cap).period
        if self.alone:
            pipeline = once(flat.mapping, flat.at, schedule.order or dispatched(flat.mapping, flat.at))
        else:
            pipeline = pipelined(flat.mapping, flat.at, period)
        when = zip(flat.shares, flat.at, pipeline.starts, pipeline.stages, strict=True)
        tasks = tuple(
            TaskRun(made.graph.tasks[i].name, made.processors[p].name, share, start, stage)
            for (i, share), p, start, stage in when
        )
        edges = zip(_edges(flat.mapping), pipeline.buffers, strict=True)
        return MappingSchedule(configuration, tasks, tuple(Waiting(*edge, number) for edge, number in edges))

    def numbered(self, schedule: MappingSchedule) -> Schedule:
        """The places of tasks; of one inference alone with an order of their parts."""
        made = self.worked(schedule)
        return Schedule(made.at, order_by(made.flat.mapping, made.flat.at, made.pipeline.starts) if self.alone else ())

    def worked(self, schedule: MappingSchedule) -> Worked:
        """Return a schedule in numbers, with all that follows from it; raises InputError for a malformed one."""
        made = self.instance(schedule.cpu_config)
        at = _assignment(schedule, made)
        price, flat, edges = made.price(at, self.limits.cap), parts(made, at), schedule.waiting
        if [(row.source, row.target) for row in edges] != (known := _edges(flat.mapping)):
            raise InputError(f"waiting: the plan has {len(edges)} edges, the network {len(known)}, or other ones")
        starts, stages = tuple(row.start for row in schedule.tasks), tuple(row.stage for row in schedule.tasks)
        buffers = tuple(row.buffers for row in edges)
        if max(stages) > _STAGES * len(stages):
            raise InputError(f"stages: above {_STAGES} for each of {len(stages)} tasks")
        if self.alone and (any(stages) or any(number != 1 for number in buffers)):
            raise InputError("stages, buffers: one inference alone has no stages and a buffer an edge")
        durations = busy(flat.mapping, flat.at)
        ends = [s + price.period * k + d for s, k, d in zip(starts, stages, durations, strict=True)]
        return Worked(at, flat, price, Pipeline(starts, stages, durations, buffers, max(*ends, int(self.alone))))

    def figures_of(self, schedule: MappingSchedule, walked: Replayed) -> MappingFigures:
        """Times of tasks, loads of processors, and what waits."""
        made = self.worked(schedule)
        mapping, pipeline = made.flat.mapping, made.pipeline
        graph, times = mapping.graph, [mapping.times[i][p] or 0 for i, p in enumerate(made.flat.at)]
        loads = zip(mapping.processors, made.price.loads, strict=True)
        return MappingFigures(
            tuple(TaskTimes(time, took - time) for time, took in zip(times, pipeline.durations, strict=True)),
            tuple(ProcessorLoad(group.name, group.cores, (load,)) for group, load in loads),
            pipeline.latency,
            tuple(
                number * graph.tasks[i].results * mapping.element_bytes
                for (i, _), number in zip(graph.edges, pipeline.buffers, strict=True)
            ),
        )

    def price(self, schedule: MappingSchedule) -> Priced:
        """Period and energy; of one inference alone latency, too."""
        made = self.worked(schedule)
        latency = {"latency": _latency(made)} if self.alone else {}
        terms = {"period": _period(made), "energy": _energy(made), **latency}
        return Priced({name: sum(few.values()) for name, few in terms.items()}, terms)

    def replay(self, schedule: MappingSchedule) -> Replayed:
        """Simulate the pipeline; of one inference alone both, it and the pipeline whose period is said."""
        made = self.worked(schedule)
        mapping, at, period, pipeline = made.flat.mapping, made.flat.at, made.price.period, made.pipeline
        seen = replayed(mapping, at, pipeline, 0 if self.alone else period)
        faults = list(seen.faults)
        if self.alone:
            faults += replayed(mapping, at, pipelined(mapping, at, period), period).faults
        if not faults and seen.busy != made.price.loads:
            faults.append(f"busy ticks: priced {made.price.loads}, simulated {seen.busy}")
        if seen.latency > pipeline.latency:
            faults.append(f"latency: planned {pipeline.latency}, simulated {seen.latency}")
        if faults:
            return Replayed({}, tuple(faults), {"latency": seen.latency})
        used = sum(group.cores * busy for group, busy in zip(mapping.processors, seen.busy, strict=True))
        measures = {
            "period": max(1, *seen.busy, -(-100 * used // (self.limits.cap * mapping.total))),
            "energy": sum(w * busy for w, busy in zip(mapping.watts, seen.busy, strict=True)),
            **({"latency": pipeline.latency} if self.alone else {}),  # nothing ends later: starts may be any
        }
        return Replayed(measures, counts={"latency": seen.latency})

    def contains(self, schedule: MappingSchedule) -> tuple[str, ...]:
        """Limits, and tasks that run at the same time, or too early."""
        figures = self.price(schedule).measures
        broken = [f"{name} {value} is above the limit {most}" for name, value, most in self.limits.broken(figures)]
        return (*broken, *self._late(self.worked(schedule)))

    def _late(self, made: Worked) -> Iterator[str]:
        """Tasks of a processor run one after the other, and end with the period if there is one."""
        mapping, pipeline, period = made.flat.mapping, made.pipeline, 0 if self.alone else made.price.period
        starts, names = pipeline.starts, [task.name.partition("@")[0] for task in mapping.graph.tasks]
        last: dict[int, tuple[int, str]] = {}
        for i in sorted(range(len(names)), key=lambda i: (starts[i], starts[i] + pipeline.durations[i])):
            p = made.flat.at[i]
            free, before = last.get(p, (0, ""))
            if starts[i] < free:
                where = mapping.processors[p].name
                yield f"task {names[i]}: it starts at {starts[i]} while {where} runs {before} until {free}"
            last[p] = starts[i] + pipeline.durations[i], names[i]
        for p, (end, task) in last.items():
            if period and end > period:
                yield f"task {task}: it ends at {end}, after the period {period} of {mapping.processors[p].name}"
        begun = [start + period * stage for start, stage in zip(starts, pipeline.stages, strict=True)]
        for i, j in mapping.graph.edges:
            if begun[j] < begun[i] + pipeline.durations[i]:
                yield f"task {names[j]}: it starts before the result of {names[i]} is there"

    def explain(self) -> tuple[str, ...]:
        """The limits."""
        limits, said = self.limits, []
        least = min(
            max(min(max(t for _, t in made.work(i, a)) for a in able) for i, able in enumerate(made.able))
            for made in self.instances.values()
        )
        if limits.period is not None:
            said.append(f"period<={limits.period}: the longest task takes at least {least} ticks wherever it runs")
        if limits.latency is not None:
            said.append(f"latency<={limits.latency}: below what one inference takes within the other limits")
        if limits.energy is not None:
            said.append(f"energy<={limits.energy} fJ is below what any mapping takes within the other limits")
        return tuple(said)


# ---- names and numbers -----------------------------------------------------------------------------------------------


def _edges(flat: Instance) -> list[tuple[str, str]]:
    """Edges between tasks and parts of tasks, by name."""
    return [(flat.graph.tasks[i].name, flat.graph.tasks[j].name) for i, j in flat.graph.edges]


def _assignment(schedule: MappingSchedule, made: Instance) -> Assignment:
    """The place of every task; raises InputError where it cannot be."""
    graph, names = made.graph, {group.name: p for p, group in enumerate(made.processors)}
    places = {place: a for a, place in enumerate(made.places)}
    groups = [(task, list(rows)) for task, rows in groupby(schedule.tasks, key=lambda row: row.task)]
    if [task for task, _ in groups] != [task.name for task in graph.tasks]:
        raise InputError(f"tasks: the plan has {len(groups)}, the network {len(graph.tasks)}, or other ones")
    found = []
    for i, (task, rows) in enumerate(groups):
        place = places.get(tuple((names.get(row.processor, -1), row.share) for row in rows), -1)
        if place not in made.able[i]:
            able = ", ".join(_place(made, a) for a in made.able[i])
            said = " and ".join(f"{row.processor} ({row.share} of {made.shares})" for row in rows)
            where = said if made.split else rows[0].processor
            raise InputError(f"task {task}: it cannot run on {where}, but on {able}")
        found.append(place)
    return tuple(found)


def _place(made: Instance, a: int) -> str:
    place = [(made.processors[p].name, k) for p, k in made.places[a]]
    return place[0][0] if len(place) == 1 else "+".join(f"{name}:{k}" for name, k in place)


# ---- what measures are sums of ---------------------------------------------------------------------------------------


def _energy(made: Worked) -> dict[str, int]:
    """By processor."""
    mapping = made.flat.mapping
    return {
        group.name: w * load
        for group, w, load in zip(mapping.processors, mapping.watts, made.price.loads, strict=True)
    }  # fmt: skip


def _period(made: Worked) -> dict[str, int]:
    """The busiest processor's time, copies and idle time."""
    mapping, loads = made.flat.mapping, made.price.loads
    busiest = max(range(len(loads)), key=lambda p: loads[p])
    computed = sum(mapping.times[i][p] or 0 for i, p in enumerate(made.flat.at) if p == busiest)
    name = mapping.processors[busiest].name
    return {
        f"{name} tasks": computed, f"{name} copies": loads[busiest] - computed,
        "idle, to keep the cap": made.price.period - loads[busiest],
    }  # fmt: skip


def _latency(made: Worked) -> dict[str, int]:
    """The longest chain of tasks."""
    mapping, at, pipeline = made.flat.mapping, made.flat.at, made.pipeline
    chain = critical(mapping, at, pipeline.starts)
    computed, took = sum(mapping.times[i][at[i]] or 0 for i in chain), sum(pipeline.durations[i] for i in chain)
    return {"tasks": computed, "copies": took - computed, "waiting": pipeline.latency - took}


def _best(make: Callable[[Asked], Iterable[Assignment]]) -> Callable[[MappingPart, Goal], MappingSchedule | None]:
    """The best of some assignments, each in its usual order where an order counts."""
    return lambda part, goal: part.best(goal, lambda asked: asked.scheduled(make(asked)))


def _listed(rule: Rule) -> Callable[[MappingPart, Goal], MappingSchedule | None]:
    return _best(lambda asked: [list_scheduled(asked.mapping, rule)])


def _evolved(asked: Asked, *, seeded: bool) -> list[Assignment]:
    from formulations.mapping.genetic import evolve  # late: DEAP

    return [evolve(asked, seeded=seeded)]


class MappingFormulation(Formulation[MappingSchedule]):
    """Tasks of a network on the processors of a board."""

    name = "mapping"
    summary = "which processor of a board runs which task of a network, in a pipeline"
    schedule, figures = MappingSchedule, MappingFigures
    whole = True
    measures = {"period": "ticks", "energy": "fJ", "latency": "ticks"}  # noqa: RUF012
    decisions = {  # noqa: RUF012
        "cpu_config": Decision("configuration of the cores: cpu_config=1,1,1,1; by default all are tried"),
        "cap": Decision("percent of the cores that may be busy: cap=50"),
        "period": Decision("most ticks from one inference to the next: period<=20000"),
        "latency": Decision("most ticks of one inference alone: latency<=20000"),
        "energy": Decision("most fJ an inference: energy<=100000000000000"),
        "split": Decision("split=on: a task may be divided between two processors, in quarters; split=8: in eighths"),
        "TASK": Decision("the processor of a task by its name: conv1=gpu"),
    }
    engines = {  # noqa: RUF012
        "auto": "latency in sections; milp, then cp-sat if that does not prove: the best bound of all",
        "sections": "latency section by section between tasks that all others wait for; else cp-sat",
        "milp": "edge flows with HiGHS",
        "milp-cbc": "edge flows with CBC",
        "cp-sat": "edge flows with CP-SAT, after a bound from merged cores",
        "exhaustive": f"all assignments, up to {MOST:,}",
    }
    heuristics = {  # noqa: RUF012
        "clustering": (
            "the source's task clustering (Eq. 3.1 to 3.8), the best of them", partial(clustered, kind="=")
        ),
        "clustering-most": ("task clustering with idle processors allowed", partial(clustered, kind="<=")),
        "heft": ("earliest finish by upward rank", _listed("heft")),
        "cpop": ("the critical path on one processor", _listed("cpop")),
        "peft": ("earliest finish with a look ahead", _listed("peft")),
        "descent": (
            "from the heuristics below and above on, one task moved at a time while that helps",
            _best(lambda asked: [improved(asked.mapping, asked.limits, at, asked.aim) for at in starts(asked.mapping)]),
        ),
        "ga": ("genetic, from the heuristics below on", _best(partial(_evolved, seeded=True))),
        "ga-unseeded": ("genetic, from random assignments", _best(partial(_evolved, seeded=False))),
        "single": ("one processor runs all that it can", _best(lambda asked: seeds(asked.mapping))),
    }  # fmt: skip
    quick = ("heft", "peft", "cpop", "single", "descent")
    libraries = {"ga": "deap", "ga-unseeded": "deap"}  # noqa: RUF012

    def read(
        self, network: Network, machine: Machine, pins: Pins, layers: Sequence[str] | None
    ) -> Sequence[MappingPart]:
        """Return the tasks in a pipeline, or one inference alone if its latency is pinned."""
        return [MappingPart.of(Request.of(tasks(network), machine, pins.to_json()), ())]
