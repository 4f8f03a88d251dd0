"""What is asked of problem mapping, and the search through the configurations of a board's cores."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import get_args

from formulations.mapping.floor import floor
from formulations.mapping.problem import Aim, Limits, build
from formulations.mapping.problem import Mapping as Instance
from hwmodels.board.task_times import estimated, options
from instances.errors import InputError
from instances.machine import Machine
from instances.processors import Processors
from instances.profiles import Profile, Row, load_profile
from instances.tasks import TaskGraph, tasks
from solver.mapping.base import Asked, Decided, value_of
from solver.mapping.engines import HASTE, MappingEngine
from solver.mapping.pins import Demands, demands
from solver.mapping.plan import MappingOptions
from solver.plan import Stat, Status, proof
from solver.question import Question

__all__ = [
    "ESTIMATED",
    "Best",
    "Setting",
    "ask",
    "below",
    "board_of",
    "decided",
    "in_haste",
    "left",
    "lexicographic",
    "times_of",
]

#: Where times come from if there is no profile.
ESTIMATED = "estimated"


def board_of(machine: Machine) -> Processors:
    """Return the processors of a machine; raises InputError if it has none."""
    if machine.processors is None:
        raise InputError(f"machine {machine.name}: problem mapping needs processors, such as galaxy_s9 has")
    return machine.processors


def profile_of(graph: TaskGraph, board: Processors, profile: Profile | None, where: str) -> tuple[Row, ...]:
    """Return the microseconds of all tasks: measured ones at the clock of busy cores, else estimated.

    Raises
    ------
    InputError
        If the profile does not fit the network and the board.
    """
    if profile is None:
        return estimated(graph, board)
    rows = profile.rows([task.name for task in graph.tasks], options(board), where)
    if profile.clock == "busy":
        return rows
    cpu = board.cpu
    scales: dict[str, float] = {}
    for n, mhz in enumerate(cpu.alone_mhz, 1):
        if mhz is not None:
            scales[str(n)] = mhz / cpu.busy_mhz
    if "1" in scales:
        scales["1*"] = scales["1"]
    for name in {name for row in rows for name in row}:
        if name.rstrip("*").isdigit() and name not in scales:
            raise InputError(
                f"{where}: clock alone: the machine does not say at what clock {name} cores run (alone_mhz)"
            )
    return tuple({k: None if t is None else t * scales.get(k, 1.0) for k, t in row.items()} for row in rows)


@dataclass(frozen=True)
class Setting:
    """Everything that is asked."""

    question: Question
    graph: TaskGraph
    rows: tuple[Row, ...]
    demands: Demands
    options: MappingOptions
    aims: tuple[Aim, ...]

    @property
    def alone(self) -> bool:
        """Whether the plan is for one inference alone."""
        return "latency" in self.aims or self.demands.limits.latency is not None

    @property
    def machine(self) -> Machine:
        """The board."""
        return self.question.machine

    def instance(self, configuration: tuple[int, ...]) -> Instance:
        """The network on a configuration, with the pins."""
        board = board_of(self.machine)
        made = build(self.graph, board, configuration, self.rows, self.machine.tick_ps, self.demands.shares)
        return self.demands.restrict(made)


@dataclass(frozen=True)
class Best:
    """An answer, the configuration that it is for, and its value."""

    said: Decided
    configuration: tuple[int, ...]
    value: int | None


def times_of(question: Question, graph: TaskGraph) -> tuple[str, tuple[Row, ...]]:
    """Return where the times of tasks come from, and the times; raises InputError as `profile_of` does."""
    profile = question.profile
    said = (
        ESTIMATED if profile is None else "given" if isinstance(profile, Profile) else f"profile {os.fspath(profile)}"
    )
    table = profile if isinstance(profile, Profile | None) else load_profile(profile)
    return said, profile_of(graph, board_of(question.machine), table, said)


def ask(question: Question) -> Setting:
    """Read everything that is asked; raises InputError for bad pins and profiles."""
    graph, texts = tasks(question.network), question.pins
    aims = tuple(aim for name in question.objectives for aim in get_args(Aim) if aim == name)
    said, rows = times_of(question, graph)
    wanted = demands(texts, graph, board_of(question.machine), rows)
    limits = wanted.limits
    once = "latency" in aims or limits.latency is not None
    if once and any(text.startswith("cap") for text in texts) and "period" not in aims and limits.period is None:
        raise InputError(
            "pin cap: how busy cores are is counted over periods, and one inference alone has none: "
            "add period to the objectives or pin period<=N"
        )
    made = MappingOptions(
        cap=wanted.limits.cap, shares=wanted.shares, pins=texts, profile=said, time_limit_s=question.time_limit_s,
        settings=question.settings,
    )  # fmt: skip
    return Setting(question, graph, rows, wanted, made, aims)


def decided(asked: Setting, engine: MappingEngine, aim: Aim, limits: Limits, seconds: float | None) -> Best:
    """The best of all configurations: each has to beat those before it.

    Raises
    ------
    InputError
        If no configuration can run all tasks.
    """
    start, best = time.monotonic(), Best(Decided(None, None, "INFEASIBLE"), (), None)
    instances = _able(asked)
    bounds: list[int | None] = []
    stats: dict[str, Stat] = {}
    for number, (configuration, instance) in enumerate(instances.items()):
        if number and seconds is not None and time.monotonic() - start > seconds:
            bounds += [floor(one, aim) for one in list(instances.values())[number:]]
            break
        left = _left(seconds, start, len(instances) - number)
        one = _heard(engine, Asked(instance, aim, below(limits, aim, best.value), left))
        where = "" if len(instances) == 1 else f" ({','.join(map(str, configuration))})"
        stats |= {f"{name}{where}": value for name, value in one.stats.items()}
        if one.status != "INFEASIBLE":
            stopped = engine.proves or one.stats.get("interrupted")
            bounds.append(max(floor(instance, aim), one.bound or 0) if stopped else one.bound)
        if one.at is not None:
            best = Best(one, configuration, value_of(instance, one.at, aim, limits, one.order))
        elif best.value is None and one.status != "INFEASIBLE":
            best = Best(one, configuration, None)
        if one.stats.get("interrupted"):
            stats["interrupted"] = True
            bounds += [floor(one, aim) for one in list(instances.values())[number + 1 :]]
            break
    known = [bound for bound in bounds if bound is not None]
    bound = (
        None if len(known) < len(bounds) else min([*known, *([] if best.value is None else [best.value])], default=None)
    )
    status: Status = "NO_SOLUTION_FOUND" if bounds else "INFEASIBLE"  # bounds: of all that are not refuted
    if best.value is not None:
        status = "OPTIMAL" if bound == best.value else "FEASIBLE"
    return replace(best, said=replace(best.said, bound=bound, status=status, stats=stats))


def _heard(engine: MappingEngine, asked: Asked) -> Decided:
    """Run an engine; if it is stopped, the best of the usual starts stands for what it had not returned yet."""
    try:
        return engine.run(asked)
    except KeyboardInterrupt:
        quick = HASTE.run(asked)
        return replace(quick, stats={**quick.stats, "interrupted": True})


def in_haste(asked: Setting) -> Best:
    """The best of the usual starts on all configurations, for a search that was stopped before it had anything."""
    best = decided(asked, HASTE, asked.aims[0], asked.demands.limits, None)
    floors = [floor(one, asked.aims[0]) for one in _able(asked).values()]
    bound = min([*floors, *([] if best.value is None else [best.value])])
    stats: dict[str, Stat] = {**best.said.stats, "interrupted": True, **proof(asked.aims, ())}
    status: Status = "NO_SOLUTION_FOUND" if best.value is None else "FEASIBLE"
    return replace(best, said=replace(best.said, bound=bound, status=status, stats=stats))


def _able(asked: Setting) -> dict[tuple[int, ...], Instance]:
    """The configurations that can run all tasks."""
    found: dict[tuple[int, ...], Instance] = {}
    fault: InputError | None = None
    for configuration in asked.demands.configurations:
        instance = asked.instance(configuration)
        try:
            instance.able  # noqa: B018
        except InputError as error:
            fault = fault or error
        else:
            found[configuration] = instance
    if fault is not None and not found:
        raise fault
    return found


def below(limits: Limits, aim: Aim, value: int | None) -> Limits:
    """The limits of what is better than a value."""
    if value is None:
        return limits
    if aim == "latency":
        return replace(limits, latency=value - 1)
    return replace(limits, period=value - 1) if aim == "period" else replace(limits, energy=value - 1)


def _left(seconds: float | None, start: float, shares: int) -> float | None:
    """Seconds for the next of some configurations."""
    return None if seconds is None else max(0.1, (seconds - (time.monotonic() - start)) / shares)


def lexicographic(asked: Setting, engine: MappingEngine, start: float) -> Best:
    """The first objective, then every other one among what is as good in those before it."""
    limits = asked.demands.limits
    best = decided(asked, engine, asked.aims[0], limits, left(asked, start))
    proven = [asked.aims[0]] if best.said.status == "OPTIMAL" else []
    for before, aim in pairwise(asked.aims):
        if best.value is None or best.said.stats.get("interrupted"):
            break
        limits = below(limits, before, _value(asked, best, before) + 1)
        then = decided(asked, engine, aim, limits, left(asked, start))
        if then.said.status == "OPTIMAL" and before in proven:
            proven.append(aim)
        if then.said.status != "OPTIMAL":
            best = replace(best, said=replace(best.said, status="FEASIBLE"))
        if then.said.at is not None and then.value is not None and then.value <= _value(asked, best, aim):
            said = replace(best.said, at=then.said.at, order=then.said.order)
            best = replace(best, said=said, configuration=then.configuration)
        if then.said.stats.get("interrupted"):
            best = replace(best, said=replace(best.said, stats={**best.said.stats, "interrupted": True}))
    stats = {**best.said.stats, **proof(asked.aims, proven)}
    return replace(best, said=replace(best.said, stats=stats))


def _value(asked: Setting, best: Best, aim: Aim) -> int:
    assert best.said.at is not None
    instance = asked.instance(best.configuration)
    return value_of(instance, best.said.at, aim, asked.demands.limits, best.said.order)


def left(asked: Setting, start: float) -> float | None:
    """Seconds of the time limit that are left."""
    limit = asked.options.time_limit_s
    return None if limit is None else max(0.1, limit - (time.monotonic() - start))
