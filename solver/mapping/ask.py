"""What is asked of problem mapping."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

from formulations.mapping.problem import Aim, Schedule, build
from formulations.mapping.problem import Mapping as Instance
from formulations.problem import Goal
from hwmodels.board.task_times import estimated, options
from instances.errors import InputError
from instances.machine import Machine
from instances.processors import Processors
from instances.profiles import Profile, Row, load_profile
from instances.tasks import TaskGraph, tasks
from solver.mapping.base import Asked, Decided
from solver.mapping.parts import parts_of
from solver.mapping.pins import demands
from solver.mapping.plan import MappingOptions, MappingPlan, MappingReplay
from solver.mapping.search import Setting
from solver.question import Question

__all__ = ["ESTIMATED", "MappingSetting", "ask", "board_of", "times_of"]

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
class MappingSetting(Setting[MappingPlan]):
    """A network on a board."""

    options: MappingOptions

    @property
    def alone(self) -> bool:
        """Whether the plan is for one inference alone."""
        return "latency" in self.goals or self.demands.limits.latency is not None

    @cached_property
    def _instances(self) -> dict[tuple[int, ...], Instance]:
        return {}

    def instance(self, configuration: tuple[int, ...]) -> Instance:
        """The network on a configuration, with the pins."""
        if configuration not in self._instances:
            board, shares = board_of(self.machine), self.demands.shares
            made = build(self.graph, board, configuration, self.rows, self.machine.tick_ps, shares)
            self._instances[configuration] = self.demands.restrict(made)
        return self._instances[configuration]

    def asked(
        self, configuration: tuple[int, ...], goal: Goal, seconds: float | None = None, known: tuple[Schedule, ...] = ()
    ) -> Asked:
        """The question about a configuration."""
        limits, most = self.demands.limits, dict(goal.caps)
        if goal.below is not None:
            most[goal.measure] = min(goal.below - 1, most.get(goal.measure, goal.below))
        for name, value in most.items():
            pinned: int | None = getattr(limits, name)
            limits = replace(limits, **{name: value if pinned is None else min(value, pinned)})
        return Asked(self.instance(configuration), cast(Aim, goal.measure), limits, seconds, known=known)

    def empty(self) -> dict[str, object]:
        """A plan without tasks."""
        return {
            "pipelined": not self.alone, "measures": None, "replay": MappingReplay(ok=None, latency=0, faults=()),
            "processors": (), "tasks": (), "waiting": (),
        }  # fmt: skip

    def parts(self, best: Decided) -> dict[str, object]:
        """The tasks of a plan, simulated."""
        assert best.schedule is not None
        instance = self.instance(best.configuration)
        return parts_of(instance, best.schedule, self.options.cap, self.goals[0], alone=self.alone)

    def plan(self, fields: Mapping[str, object]) -> tuple[MappingPlan, tuple[str, ...]]:
        """The plan, and what the simulation finds wrong."""
        plan = MappingPlan.model_validate(fields)
        return plan, plan.replay.faults

    def conflicts(self) -> tuple[str, ...]:
        """The limits."""
        limits, said = self.demands.limits, []
        instances = [self.instance(one) for one in self.demands.configurations]
        least = min(
            max(min(max(t for _, t in made.work(i, a)) for a in able) for i, able in enumerate(made.able))
            for made in instances
        )
        if limits.period is not None:
            said.append(f"period<={limits.period}: the longest task takes at least {least} ticks wherever it runs")
        if limits.latency is not None:
            said.append(f"latency<={limits.latency}: below what one inference takes within the other limits")
        if limits.energy is not None:
            said.append(f"energy<={limits.energy} fJ is below what any mapping takes within the other limits")
        return tuple(said)


def times_of(question: Question, graph: TaskGraph) -> tuple[str, tuple[Row, ...]]:
    """Return where the times of tasks come from, and the times; raises InputError as `profile_of` does."""
    profile = question.profile
    said = (
        ESTIMATED if profile is None else "given" if isinstance(profile, Profile) else f"profile {os.fspath(profile)}"
    )
    table = profile if isinstance(profile, Profile | None) else load_profile(profile)
    return said, profile_of(graph, board_of(question.machine), table, said)


def ask(question: Question) -> MappingSetting:
    """Read everything that is asked; raises InputError for bad pins and profiles."""
    graph, texts, aims = tasks(question.network), question.pins, question.objectives
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
    return MappingSetting(question, graph, rows, wanted, made)
