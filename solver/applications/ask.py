"""What is asked of several applications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from formulations.applications.problem import Goal as Responses
from formulations.applications.problem import Rule, Several, Stream
from formulations.mapping.problem import Limits, Schedule, build
from formulations.problem import Goal
from instances.applications import Application, Applications
from instances.errors import InputError
from instances.tasks import TaskGraph, tasks
from solver.applications.base import Asked
from solver.applications.parts import parts_of
from solver.applications.plan import ApplicationPlan, ApplicationsOptions, ApplicationsPlan, ApplicationsReplay
from solver.mapping.ask import board_of, times_of
from solver.mapping.base import Decided
from solver.mapping.pins import demands
from solver.mapping.search import Setting
from solver.options import as_texts
from solver.question import Question

__all__ = ["ApplicationsSetting", "ask", "goals_of", "rule_of"]

_US_PS = 1_000_000
#: Of one application within a period of another.
_MOST_RELEASES = 1_000


@dataclass(frozen=True)
class ApplicationsSetting(Setting[ApplicationsPlan]):
    """Applications on a board."""

    options: ApplicationsOptions

    @property
    def target(self) -> Applications:
        """The applications."""
        return self.question.applications

    @cached_property
    def _goals(self) -> dict[str, Responses]:
        names = [one.name for one in self.target.applications]
        return dict(zip(*goals_of(self.goals, names), strict=True))

    @cached_property
    def _instances(self) -> dict[tuple[int, ...], Several]:
        return {}

    def instance(self, configuration: tuple[int, ...]) -> Several:
        """The applications on a configuration, with the pins."""
        if configuration not in self._instances:
            board, tick_ps = board_of(self.machine), self.machine.tick_ps
            made = build(self.graph, board, configuration, self.rows, tick_ps, rounded=ceil)  # deadlines are real time
            streams = _streams(self.target.applications, self.graph, tick_ps)
            self._instances[configuration] = Several(self.demands.restrict(made), streams, self.options.analysis)
        return self._instances[configuration]

    def asked(
        self, configuration: tuple[int, ...], goal: Goal, seconds: float | None = None, known: tuple[Schedule, ...] = ()
    ) -> Asked:
        """The question about a configuration."""
        caps = [(self._goals[name], value) for name, value in goal.caps.items()]
        below = [] if goal.below is None else [(self._goals[goal.measure], goal.below - 1)]
        several = self.instance(configuration)
        return Asked(several, self._goals[goal.measure], seconds, (*caps, *below), known)

    def empty(self) -> dict[str, object]:
        """A plan without tasks."""
        return {
            "measures": None, "replay": ApplicationsReplay(ok=None, draws=0, faults=()), "processors": (), "tasks": (),
            "applications": tuple(ApplicationPlan(**one.model_dump()) for one in self.target.applications),
        }  # fmt: skip

    def parts(self, best: Decided) -> dict[str, object]:
        """The tasks of a plan, simulated."""
        assert best.schedule is not None
        several = self.instance(best.configuration)
        return parts_of(several, best.schedule, self.target.applications, self.goals[0])

    def plan(self, fields: Mapping[str, object]) -> tuple[ApplicationsPlan, tuple[str, ...]]:
        """The plan, and what the simulation finds wrong; the printed rule may call schedulable what is not."""
        plan = ApplicationsPlan.model_validate(fields)
        return plan, () if self.options.analysis == "printed" else plan.replay.faults

    def conflicts(self) -> tuple[str, ...]:
        """An application that is too slow even alone, or all together."""
        said = []
        several = [self.instance(one) for one in self.demands.configurations]
        for a, stream in enumerate(several[0].streams):
            least = min(one.paths[a] for one in several)
            if least > stream.deadline:
                said.append(f"{stream.name}: it takes at least {least} ticks, its deadline is {stream.deadline}")
        together = f"no mapping keeps all deadlines by the {self.options.analysis} analysis"
        return tuple(said) or (f"{together}, though no application alone is shown to be too slow",)


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


def goals_of(
    objective: str | Sequence[str], names: Sequence[str]
) -> tuple[tuple[str, ...], tuple[Responses, ...]]:  # fmt: skip
    """Read ``response``, ``response:NAME`` (or its number), ``energy``, the first one first.

    Raises
    ------
    InputError
        If one is unknown or stands twice.
    """
    known = {"response": Responses(tuple(range(len(names)))), "energy": Responses(())}
    known |= {f"response:{name}": Responses((a,)) for a, name in enumerate(names)}
    numbers = {f"response:{a}": f"response:{name}" for a, name in enumerate(names, 1)}
    found: list[str] = []
    for text in (part.strip() for whole in as_texts("objective", objective) for part in whole.split(",")):
        name = numbers.get(text, text)
        if name not in known or name in found:
            raise InputError(f"objective {text!r}: several applications minimise {', '.join(known)}, each once")
        found.append(name)
    return tuple(found), tuple(known[name] for name in found)


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


def ask(question: Question) -> ApplicationsSetting:
    """Read everything that is asked; raises InputError for bad pins and profiles."""
    made, texts = question.applications, question.pins
    goals_of(question.objectives, [one.name for one in made.applications])
    rule, rest = rule_of(texts)
    graph = tasks(made.network)
    said, rows = times_of(question, graph)
    wanted = demands(rest, graph, board_of(question.machine), rows)
    if wanted.limits != Limits() or wanted.shares > 1:
        raise InputError(
            "pins: several applications know cpu_config=1,1,1,1, TASK=PROCESSOR, analysis=safe or analysis=printed; "
            "periods and deadlines go with the applications"
        )
    options = ApplicationsOptions(
        analysis=rule, pins=texts, profile=said, time_limit_s=question.time_limit_s, settings=question.settings
    )
    return ApplicationsSetting(question, graph, rows, wanted, options)
