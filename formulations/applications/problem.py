"""Applications as certile asks it: engines, heuristics, pins; the model is in `formulations.applications.space`.

An example: two networks at 5 and 8 ms. A schedule is the processor of every task and an order; its responses follow by
the rule, and the referee draws release offsets and may see no longer ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from formulations.applications.search import MOST, SEARCHES, Asked, evolved, exhaustive
from formulations.applications.space import Goal as Responses
from formulations.applications.space import Rule, Several, Stream, begins, responses
from formulations.mapping.board import BoardFigures, BoardPart, ProcessorLoad, Request, TaskTimes, replayed_copies
from formulations.mapping.latency import busy
from formulations.mapping.space import Configuration, Limits, Schedule
from formulations.pins import Decision, Pins
from formulations.problem import Formulation, Goal, Priced, Replayed
from hwmodels.board.replay import Referee, Repeated
from hwmodels.board.schedule import ApplicationsSchedule, TaskPlace
from hwmodels.outcome import Natural
from instances.applications import Application, Applications
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.tasks import TaskGraph, tasks

_US_PS = 1_000_000
#: Of one application within a period of another.
_MOST_RELEASES = 1_000


def rule_of(pins: Sequence[str]) -> tuple[Rule, tuple[str, ...]]:
    """Return the rule of a pin ``analysis=``, safe by default, and the other pins."""
    rest, rules = [], list[Rule]()
    for pin in pins:
        name, _, value = (part.strip() for part in pin.partition("="))
        if name != "analysis":
            rest.append(pin)
        elif value in ("safe", "printed") and not rules:
            rules.append("safe" if value == "safe" else "printed")
        else:
            raise InputError(f"pin {pin!r}: analysis=safe or analysis=printed, once")
    return (rules[0] if rules else "safe"), tuple(rest)


def hunted(several: Several, schedule: Schedule, draws: int, seed: int = 0) -> list[int]:
    """Return the longest response of every application over random release offsets.

    Raises ValueError if the schedule leaves a task out, or runs one where it cannot.
    """
    mapping, at = several.mapping, schedule.at
    number, edges = len(mapping.processors), mapping.graph.edges
    streams = [
        Repeated(
            tuple(tuple(i for i in schedule.order if i in s.tasks and at[i] == p) for p in range(number)), s.period
        )
        for s in several.streams
    ]
    return Referee(edges, mapping.times, replayed_copies(mapping), streams).hunt(draws, seed)


@dataclass(frozen=True)
class ApplicationsFigures(BoardFigures):
    """Of several."""

    starts: tuple[Natural, ...]
    """When every task begins after the release, if nothing else delays its application."""
    alone: tuple[Natural, ...]
    """What an inference of every application takes that nothing else delays."""


class ApplicationsPart(BoardPart[Several, ApplicationsSchedule]):
    """Applications, the highest priority first."""

    searches, exhaustive = SEARCHES, staticmethod(exhaustive)

    @classmethod
    def of(cls, request: Request, applications: Sequence[Application], rule: Rule) -> ApplicationsPart:
        """Read what is asked; raises InputError for bad pins, or if no configuration can run all tasks."""
        if request.demands.limits != Limits() or request.demands.shares > 1:
            raise InputError(
                "pins: several applications know cpu_config=1,1,1,1, TASK=PROCESSOR, analysis=safe or "
                "analysis=printed; periods and deadlines go with the applications"
            )
        streams = _streams(applications, request.graph, request.machine.tick_ps)
        found = request.instances(ceil)  # deadlines are real time
        instances = {name: Several(made, streams, rule) for name, made in found.items()}
        return cls(request.graph.network, instances)

    @property
    def several(self) -> Several:
        """On any configuration."""
        return next(iter(self.instances.values()))

    @property
    def goals(self) -> dict[str, Responses]:
        """What measures sum up."""
        streams = self.several.streams
        each = {f"response:{stream.name}": Responses((a,)) for a, stream in enumerate(streams)}
        return {"response": Responses(tuple(range(len(streams)))), **each, "energy": Responses(())}

    def asked(self, configuration: Configuration, goal: Goal) -> Asked:
        """The goal with its caps."""
        below = {} if goal.below is None else {goal.measure: goal.below - 1}
        goals, caps = self.goals, [*goal.caps.items(), *below.items()]
        known = goal.known
        known = () if known is None or known.cpu_config != configuration else (self.numbered(known),)
        most = tuple((goals[name], value) for name, value in caps)
        return Asked(self.instances[configuration], goals[goal.measure], most, known=known)

    # ---- a schedule --------------------------------------------------------------------------------------------------

    def named(self, schedule: Schedule, configuration: Configuration) -> ApplicationsSchedule:
        """The tasks in their order."""
        mapping = self.instance(configuration).mapping
        rows = [(mapping.graph.tasks[i].name, mapping.processors[schedule.at[i]].name) for i in schedule.order]
        return ApplicationsSchedule(configuration, tuple(TaskPlace(*row) for row in rows))

    def numbered(self, schedule: ApplicationsSchedule) -> Schedule:
        """The processor of every task, and their order."""
        mapping = self.instance(schedule.cpu_config).mapping
        graph, places = mapping.graph, {group.name: p for p, group in enumerate(mapping.processors)}
        numbers = {task.name: i for i, task in enumerate(graph.tasks)}
        order = [numbers.get(row.task, -1) for row in schedule.tasks]
        if sorted(order) != list(range(len(graph.tasks))):
            raise InputError(f"tasks: the plan has {len(order)}, the network {len(graph.tasks)}, or other ones")
        at = dict[int, int]()
        for i, row in zip(order, schedule.tasks, strict=True):
            if any(k not in at for k in graph.before[i]):
                raise InputError(f"task {row.task}: it stands before a task whose result it reads")
            at[i] = places.get(row.processor, -1)
            if at[i] not in mapping.able[i]:
                able = ", ".join(mapping.processors[p].name for p in mapping.able[i])
                raise InputError(
                    f"task {row.task}: it cannot run on {row.processor}, or the pins forbid it, but on {able}"
                )
        return Schedule(tuple(at[i] for i in range(len(at))), tuple(order))

    def figures_of(self, said: ApplicationsSchedule, walked: Replayed) -> ApplicationsFigures:
        """Times of tasks, loads of processors, and what applications take alone."""
        several, schedule = self.instance(said.cpu_config), self.numbered(said)
        mapping, at = several.mapping, schedule.at
        durations, begun = busy(mapping, at), begins(several, schedule)
        times = {i: mapping.times[i][p] or 0 for i, p in enumerate(at)}
        return ApplicationsFigures(
            tuple(TaskTimes(times[i], durations[i] - times[i]) for i in schedule.order),
            tuple(
                ProcessorLoad(group.name, group.cores, tuple(load))
                for group, load in zip(mapping.processors, _loads(several, schedule), strict=True)
            ),
            tuple(begun[i] for i in schedule.order),
            tuple(max(begun[i] + durations[i] for i in stream.tasks) for stream in several.streams),
        )

    def price(self, said: ApplicationsSchedule) -> Priced:
        """Responses by the rule, 0 where there is none, and energy."""
        several, schedule = self.instance(said.cpu_config), self.numbered(said)
        mapping, found = several.mapping, responses(several, schedule)
        every = {stream.name: r or 0 for stream, r in zip(several.streams, found, strict=True)}
        each = {f"response:{name}": {name: response} for name, response in every.items()}
        loads = [sum(row) for row in _loads(several, schedule)]
        names = [group.name for group in mapping.processors]
        energy = {name: w * load for name, w, load in zip(names, mapping.watts, loads, strict=True)}
        terms = {"response": every, **each, "energy": energy}
        return Priced({name: sum(few.values()) for name, few in terms.items()}, terms)

    def replay(self, said: ApplicationsSchedule) -> Replayed:
        """Simulate release offsets: a response that is not exceeded stands as it is.

        The printed rule may call schedulable what is not, so that what exceeds it is no fault of a schedule.
        """
        several, schedule, measures = self.instance(said.cpu_config), self.numbered(said), self.price(said).measures
        seen = hunted(several, schedule, said.draws)
        counts = {stream.name: longest for stream, longest in zip(several.streams, seen, strict=True)}
        mapping, at = several.mapping, schedule.at
        energy = sum(mapping.watts[p] * (mapping.times[i][p] or 0) for i, p in enumerate(at)) + sum(
            mapping.watts[at[i]] * int(mapping.copies[e, at[i], at[j]])
            for e, (i, j) in enumerate(mapping.graph.edges) if at[i] != at[j]
        )  # fmt: skip
        late = self._late(several, schedule, counts)
        return Replayed({**measures, "energy": energy}, late, counts, compared=several.rule != "printed")

    def _late(self, several: Several, schedule: Schedule, seen: Mapping[str, int]) -> tuple[str, ...]:
        """Return deadlines that are missed, and responses that the simulation exceeds."""
        faults = []
        for stream, response in zip(several.streams, responses(several, schedule), strict=True):
            if response is None or response > stream.deadline:
                faults.append(f"application {stream.name}: no response within its deadline of {stream.deadline} ticks")
            elif (longest := seen.get(stream.name, 0)) > response:
                late = f", its deadline is {stream.deadline}" if longest > stream.deadline else ""
                faults.append(f"application {stream.name}: response {response} by analysis, {longest} simulated{late}")
        return tuple(faults)

    def contains(self, said: ApplicationsSchedule) -> tuple[str, ...]:
        """Deadlines by the rule."""
        return self._late(self.instance(said.cpu_config), self.numbered(said), {})

    def explain(self) -> tuple[str, ...]:
        """An application that is too slow even alone, or all together."""
        said, several = [], self.several
        for a, stream in enumerate(several.streams):
            least = min(one.paths[a] for one in self.instances.values())
            if least > stream.deadline:
                said.append(f"{stream.name}: it takes at least {least} ticks, its deadline is {stream.deadline}")
        together = f"no mapping keeps all deadlines by the {several.rule} analysis"
        return tuple(said) or (f"{together}, though no application alone is shown to be too slow",)


def _loads(several: Several, schedule: Schedule) -> list[list[int]]:
    """Busy ticks by processor and application."""
    at, durations = schedule.at, busy(several.mapping, schedule.at)
    number = range(len(several.mapping.processors))
    return [[sum(durations[i] for i in s.tasks if at[i] == p) for s in several.streams] for p in number]


def _streams(applications: Sequence[Application], graph: TaskGraph, tick_ps: int) -> tuple[Stream, ...]:
    """Return the applications with their tasks, in ticks."""
    begin, found = 0, []
    for one in applications:
        number = sum(task.name.startswith(f"{one.name}:") for task in graph.tasks)
        period, deadline = (us * _US_PS // tick_ps for us in (one.period_us, one.deadline_us))
        if not deadline:
            raise InputError(f"application {one.name}: deadline {one.deadline_us} us is below a tick of {tick_ps} ps")
        found.append(Stream(one.name, range(begin, begin + number), period, deadline))
        begin += number
    shortest, longest = min(one.period for one in found), max(one.period for one in found)
    if longest > _MOST_RELEASES * shortest:
        raise InputError(
            f"applications: the longest period is {longest // shortest:,} times the shortest; at most "
            f"{_MOST_RELEASES} releases of one within a period of another are analysed and simulated"
        )
    return tuple(found)


class ApplicationsFormulation(Formulation[ApplicationsSchedule]):
    """Several networks with periods on one board."""

    name = "applications"
    summary = "the same for several networks with periods, deadlines and priorities"
    schedule, figures, target = ApplicationsSchedule, ApplicationsFigures, Applications
    whole = True
    measures = {"response": "ticks", "response:NAME": "ticks", "energy": "fJ"}  # noqa: RUF012
    decisions = {  # noqa: RUF012
        "analysis": Decision(
            "analysis=safe (the default) or analysis=printed (Eq. 3.11): by which rule deadlines are kept"
        ),
        "cpu_config": Decision("configuration of the cores: cpu_config=1,1,1,1; by default all are tried"),
        "TASK": Decision("the processor of a task by its name: squeezenet1_1:conv1=gpu"),
    }
    engines = {  # noqa: RUF012
        "auto": "cp-sat",
        "cp-sat": "flows, paths and releases with CP-SAT, from the best start",
        "exhaustive": f"all schedules, up to {MOST:,} assignments",
    }
    heuristics = {  # noqa: RUF012
        "ga": ("genetic by SPEA2: all responses and energy", lambda part, goal: part.best(goal, evolved)),
        "apart": (
            "each application on one processor, or a list schedule: the best of these",
            lambda part, goal: part.best(goal, Asked.starts),
        ),
    }
    quick = ("apart",)
    libraries = {"ga": "deap"}  # noqa: RUF012

    def read(
        self, network: Applications, machine: Machine, pins: Pins, layers: Sequence[str] | None
    ) -> Sequence[ApplicationsPart]:
        """Return all applications together."""
        rule, others = rule_of(pins.to_json())
        return [ApplicationsPart.of(Request.of(tasks(network.network), machine, others), network.applications, rule)]
