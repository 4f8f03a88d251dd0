"""F5 mapping, a network on a board: what a schedule costs, and what it is in a pipeline or of one inference alone.

An example: two tasks on one core, 10 and 4 ticks. Of one inference alone the second task starts at 10, and the latency
is 14. In a pipeline that is the period; both work on the same inference (stage 0).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from formulations.mapping.board import BoardPart, Request, replayed_copies
from formulations.mapping.engines import SEARCHES, Asked, exhaustive
from formulations.mapping.latency import critical, dispatched, once
from formulations.mapping.parts import Parts, parts
from formulations.mapping.pipeline import Pipeline, pipelined
from formulations.mapping.problem import Aim, Assignment, Configuration, Limits, Price, Schedule
from formulations.mapping.problem import Mapping as Instance
from formulations.problem import Goal, Priced, Replayed
from hwmodels.board.replay import Seen, replay_mapping, replay_once


@dataclass(frozen=True)
class Timed(Schedule):
    """A schedule with a pipeline of its own, not the usual one."""

    pipeline: Pipeline | None = None


@dataclass(frozen=True)
class Worked:
    """A schedule, worked out: divided tasks in parts, the price, and when all of them run."""

    flat: Parts
    price: Price
    pipeline: Pipeline


def replayed(instance: Instance, at: Assignment, pipeline: Pipeline, period: int) -> Seen:
    """Run the pipeline of an assignment; without a period (0), one inference alone."""
    number, order = len(instance.processors), sorted(range(len(at)), key=lambda i: _turn(pipeline, i))
    lists = [[(i, pipeline.stages[i]) for i in order if at[i] == p] for p in range(number)]
    edges, copies = instance.graph.edges, replayed_copies(instance)
    if not period:
        return replay_once(edges, instance.times, copies, [[i for i, _ in few] for few in lists])
    return replay_mapping(edges, instance.times, copies, lists, pipeline.buffers, period)


def _turn(pipeline: Pipeline, i: int) -> tuple[int, int, int, int]:
    """What comes first: tasks that take no time come before one that begins with them.

    Of several that take none at one moment those of later stages do: they free the buffers of those before them.
    """
    return pipeline.starts[i], pipeline.starts[i] + pipeline.durations[i], -pipeline.stages[i], i


class MappingPart(BoardPart[Instance]):
    """The tasks of a network.

    Attributes
    ----------
    alone : bool
        Whether schedules are of one inference alone; else inferences follow each other in a pipeline.
    """

    searches, exhaustive = SEARCHES, staticmethod(exhaustive)

    def __init__(
        self, name: str, instances: Mapping[Configuration, Instance], limits: Limits | None = None, *,
        alone: bool = False, request: Request | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name, instances, request)
        self.limits = limits or Limits()
        self.alone = alone or self.limits.latency is not None

    @classmethod
    def of(cls, request: Request, objectives: Sequence[str]) -> MappingPart:
        """Read what is asked; raises InputError if no configuration can run all tasks."""
        limits, alone = request.demands.limits, "latency" in objectives
        return cls(request.graph.network, request.instances(), limits, alone=alone, request=request)

    def asked(self, configuration: Configuration, goal: Goal) -> Asked:
        """The goal with the limits."""
        below = {} if goal.below is None else {goal.measure: goal.below - 1}
        limits = self.limits.within(goal.caps).within(below)
        hint = goal.known if goal.known is not None and goal.known.configuration == configuration else None
        return Asked(self.instances[configuration], cast(Aim, goal.measure), limits, hint=hint)

    # ---- a schedule --------------------------------------------------------------------------------------------------

    def worked(self, schedule: Schedule) -> Worked:
        """Return a schedule with its own pipeline, or the usual one; raises InputError for another configuration."""
        made = self.instance(schedule)
        price, flat = made.price(schedule.at, self.limits.cap), parts(made, schedule.at)
        pipeline = schedule.pipeline if isinstance(schedule, Timed) else None
        if pipeline is None and self.alone:
            pipeline = once(flat.mapping, flat.at, schedule.order or dispatched(flat.mapping, flat.at))
        return Worked(flat, price, pipeline or pipelined(flat.mapping, flat.at, price.period))

    def price(self, schedule: Schedule) -> Priced:
        """Period and energy; of one inference alone latency, too."""
        made = self.worked(schedule)
        latency = {"latency": _latency(made)} if self.alone else {}
        terms = {"period": _period(made), "energy": _energy(made), **latency}
        return Priced({name: sum(few.values()) for name, few in terms.items()}, terms)

    def replay(self, schedule: Schedule) -> Replayed:
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

    def contains(self, schedule: Schedule) -> tuple[str, ...]:
        """Limits, and tasks that run at the same time, or too early."""
        figures = self.price(schedule).measures
        broken = [f"{name} {value} is above the limit {most}" for name, value, most in self.limits.broken(figures)]
        made = self.instance(schedule)
        able = all(a in few for a, few in zip(schedule.at, made.able, strict=True))
        return (*broken, *(() if able else ("a task runs where it cannot",)), *self._late(self.worked(schedule)))

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
