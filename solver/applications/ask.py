"""What is asked of several applications, and the search through the configurations of a board's cores."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from formulations.applications.problem import Goal, Rule, Several, Stream, floor
from formulations.mapping.problem import Limits, build
from instances.applications import Application, Applications
from instances.errors import InputError
from instances.machine import Machine
from instances.profiles import Row
from instances.tasks import TaskGraph, tasks
from solver.applications.base import Asked, Found
from solver.applications.engines import APPLICATION_ENGINES, ApplicationEngine
from solver.applications.plan import ApplicationsOptions
from solver.mapping.ask import board_of, times_of
from solver.mapping.pins import Demands, demands
from solver.options import as_texts
from solver.plan import Status, proof
from solver.question import Question

__all__ = ["Best", "Setting", "ask", "goals_of", "in_haste", "lexicographic", "rule_of", "several_of"]

_US_PS = 1_000_000
#: Of one application within a period of another.
_MOST_RELEASES = 1_000


@dataclass(frozen=True)
class Setting:
    """Everything that is asked."""

    question: Question
    graph: TaskGraph
    rows: tuple[Row, ...]
    demands: Demands
    options: ApplicationsOptions
    goals: tuple[Goal, ...]

    @property
    def target(self) -> Applications:
        """The applications."""
        return self.question.applications

    @property
    def machine(self) -> Machine:
        """The board."""
        return self.question.machine

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names of the goals."""
        return self.question.objectives

    def instance(self, configuration: tuple[int, ...]) -> Several:
        """The applications on a configuration, with the pins."""
        applications, rule = self.target.applications, self.options.analysis
        return several_of(applications, self.graph, self.machine, configuration, self.rows, self.demands, rule)


@dataclass(frozen=True)
class Best:
    """An answer, and the configuration that it is for."""

    found: Found
    configuration: tuple[int, ...]
    value: int | None


def several_of(
    applications: Sequence[Application], graph: TaskGraph, machine: Machine, configuration: tuple[int, ...],
    rows: Sequence[Row], wanted: Demands, rule: Rule,
) -> Several:  # fmt: skip
    """Return the applications on a configuration: times in ticks rounded up, so that deadlines hold in real time."""
    made = build(graph, board_of(machine), configuration, rows, machine.tick_ps, rounded=ceil)
    return Several(wanted.restrict(made), _streams(applications, graph, machine.tick_ps), rule)


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


def goals_of(objective: str | Sequence[str], names: Sequence[str]) -> tuple[tuple[str, ...], tuple[Goal, ...]]:
    """Read ``response``, ``response:NAME`` (or its number), ``energy``, the first one first.

    Raises
    ------
    InputError
        If one is unknown or stands twice.
    """
    known = {"response": Goal(tuple(range(len(names)))), "energy": Goal(())}
    known |= {f"response:{name}": Goal((a,)) for a, name in enumerate(names)}
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


def ask(question: Question) -> Setting:
    """Read everything that is asked; raises InputError for bad pins and profiles."""
    made, texts = question.applications, question.pins
    _, goals = goals_of(question.objectives, [one.name for one in made.applications])
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
    return Setting(question, graph, rows, wanted, options, goals)


def lexicographic(asked: Setting, engine: ApplicationEngine, start: float) -> Best:
    """The first objective, then each further one among what is as good."""
    limit = asked.options.time_limit_s

    def left(shares: int) -> float | None:
        return None if limit is None else max(0.1, (limit - (time.monotonic() - start)) / shares)

    first = best = _decided(asked, engine, asked.goals[0], (), left(len(asked.goals)))
    interrupted = bool(first.found.stats.get("interrupted"))
    caps, proven = list[tuple[Goal, int]](), int(best.found.status == "OPTIMAL")  # objectives from the first one on
    for number, goal in enumerate(asked.goals[1:], 1):
        if best.value is None or interrupted:
            break
        caps.append((asked.goals[number - 1], best.value))
        then = _decided(asked, engine, goal, tuple(caps), left(len(asked.goals) - number))
        proven += proven == number and then.found.status == "OPTIMAL"
        interrupted = interrupted or bool(then.found.stats.get("interrupted"))
        if then.value is None:
            break
        best = then
    status: Status = first.found.status
    if first.value is not None:
        status = "OPTIMAL" if proven == len(asked.goals) else "FEASIBLE"
    stats = {**first.found.stats, **proof(asked.objectives, asked.objectives[:proven])}
    stats |= {"interrupted": True} if interrupted else {}
    found = replace(first.found, schedule=best.found.schedule, status=status, stats=stats)
    return replace(first, found=found, configuration=best.configuration)


def in_haste(asked: Setting) -> Best:
    """The best of the usual starts, for a search that was stopped before it had anything."""
    goal, apart = asked.goals[0], APPLICATION_ENGINES["apart"]
    best = _decided(asked, apart, goal, (), None)
    floors = [floor(asked.instance(one), goal) for one in asked.demands.configurations]
    bound = min([*floors, *([] if best.value is None else [best.value])])
    stats = {**best.found.stats, "interrupted": True, **proof(asked.objectives, ())}
    return replace(best, found=replace(best.found, bound=bound, stats=stats))


def _decided(
    asked: Setting, engine: ApplicationEngine, goal: Goal, caps: tuple[tuple[Goal, int], ...], seconds: float | None
) -> Best:
    """The best of all configurations: each has to beat those before it."""
    start, best = time.monotonic(), Best(Found(None, None, "INFEASIBLE"), (), None)
    bounds: list[int | None] = []
    configurations = asked.demands.configurations
    for number, configuration in enumerate(configurations):
        gone = time.monotonic() - start
        if number and seconds is not None and gone > seconds:
            bounds += [floor(asked.instance(one), goal) for one in configurations[number:]]
            break
        several = asked.instance(configuration)
        limit = None if seconds is None else max(0.1, (seconds - gone) / (len(configurations) - number))
        below = caps if best.value is None else (*caps, (goal, best.value - 1))
        try:
            one = engine.run(Asked(several, goal, limit, below))
        except KeyboardInterrupt:
            one = APPLICATION_ENGINES["apart"].run(Asked(several, goal, limit, below))
            one = replace(one, stats={"interrupted": True})
        if one.status != "INFEASIBLE":
            stopped = engine.proves or one.stats.get("interrupted")
            bounds.append(max(floor(several, goal), one.bound or 0) if stopped else one.bound)
        if one.schedule is not None:
            best = Best(one, configuration, several.value(one.schedule, goal))
        elif best.value is None and one.status != "INFEASIBLE":
            best = Best(one, configuration, None)
        if one.stats.get("interrupted"):
            best = replace(best, found=replace(best.found, stats={**best.found.stats, "interrupted": True}))
            bounds += [floor(asked.instance(one), goal) for one in configurations[number + 1 :]]
            break
    known = [bound for bound in bounds if bound is not None]
    bound = None
    if len(known) == len(bounds):
        bound = min([*known, *([] if best.value is None else [best.value])], default=None)
    status: Status = "NO_SOLUTION_FOUND" if bounds else "INFEASIBLE"  # bounds: of all that are not refuted
    if best.value is not None:
        status = "OPTIMAL" if bound == best.value else "FEASIBLE"
    return replace(best, found=replace(best.found, bound=bound, status=status))
