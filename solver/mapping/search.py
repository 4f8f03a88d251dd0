"""The search for plans of a board, shared by `mapping` and `applications`: objectives and configurations of the cores.

Objective k is minimised over what is as good as the best so far in those before it. Every configuration has to beat
those before it; the bound is the least of what is known of each, by its engine or without a search.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from formulations.clock import Clock
from formulations.mapping.problem import Schedule
from formulations.problem import Goal
from instances.errors import InputError
from instances.machine import Machine
from instances.profiles import Row
from instances.tasks import TaskGraph
from solver.mapping.base import Asking, Decided, Engine, quickly
from solver.mapping.pins import Demands
from solver.network_plan import WholePlan, head
from solver.plan import Options, Stat, Status, proof
from solver.question import Question
from solver.verify import PlanMismatch, gap_of

__all__ = ["Setting", "decided", "lexicographic", "plan_of", "solved"]

P = TypeVar("P", bound=WholePlan)


@dataclass(frozen=True)
class Setting(ABC, Generic[P]):
    """Everything that is asked."""

    question: Question
    graph: TaskGraph
    rows: tuple[Row, ...]
    demands: Demands
    options: Options

    @property
    def machine(self) -> Machine:
        """The board."""
        return self.question.machine

    @property
    def goals(self) -> tuple[str, ...]:
        """The objectives."""
        return self.question.objectives

    @abstractmethod
    def asked(
        self, configuration: tuple[int, ...], goal: Goal, seconds: float | None = None, known: tuple[Schedule, ...] = ()
    ) -> Asking:
        """Return the question about one configuration; raises InputError if some task cannot run there."""

    @abstractmethod
    def empty(self) -> dict[str, object]:
        """Return what the body of a plan says that decides nothing."""

    @abstractmethod
    def parts(self, best: Decided) -> dict[str, object]:
        """Return everything in a plan that follows from an answer."""

    @abstractmethod
    def conflicts(self) -> tuple[str, ...]:
        """Return why there is no plan."""

    @abstractmethod
    def plan(self, fields: Mapping[str, object]) -> tuple[P, tuple[str, ...]]:
        """Return a plan, and what its replay finds wrong."""


# ---- the search ------------------------------------------------------------------------------------------------------


def decided(
    setting: Setting[Any], run: Callable[[Any], Decided], goal: Goal, clock: Clock, known: Decided | None = None
) -> Decided:
    """Return the best of all configurations.

    Parameters
    ----------
    run : callable
        The engine, for one configuration.
    known : Decided, optional
        An answer with a schedule to start from.

    Raises
    ------
    InputError
        If no configuration can run all tasks.
    """
    best, left, interrupted = Decided(None, None, "INFEASIBLE"), _able(setting, goal), False
    bounds: list[int] = []
    stats: dict[str, Stat] = {}
    many = len(left) > 1
    while left:
        configuration = next(iter(left))
        floor, share = left.pop(configuration), clock.share(len(left) + 1).left
        mine = known is not None and known.configuration == configuration and known.schedule
        asked = setting.asked(configuration, replace(goal, below=best.value), share, (mine,) if mine else ())
        late = interrupted or (bool(bounds) and clock.over)
        if best.value is not None and (late or floor >= best.value):
            bounds.append(floor)
            continue
        said = _heard(quickly if late else run, asked)
        interrupted = interrupted or said.interrupted
        where = f" ({','.join(map(str, configuration))})" if many else ""
        stats |= {f"{name}{where}": value for name, value in said.stats.items()}
        if said.status != "INFEASIBLE":
            bounds.append(max(floor, said.bound or 0))
        if said.schedule is not None or (best.value is None and said.status != "INFEASIBLE"):
            best = replace(said, configuration=configuration)
    stats |= {"interrupted": True} if interrupted else {}
    bound = min([*bounds, *([] if best.value is None else [best.value])], default=None)
    status: Status = "NO_SOLUTION_FOUND" if bounds else "INFEASIBLE"  # bounds: of all that are not refuted
    if best.value is not None:
        status = "OPTIMAL" if bound == best.value else "FEASIBLE"
    return replace(best, bound=bound, status=status, stats=stats)


def _heard(run: Callable[[Any], Decided], asked: Asking) -> Decided:
    """Run an engine; if it is stopped, the best of the usual starts stands for what it had not returned yet."""
    try:
        return run(asked)
    except KeyboardInterrupt:
        quick = quickly(asked)
        return replace(quick, stats={**quick.stats, "interrupted": True})


def _able(setting: Setting[Any], goal: Goal) -> dict[tuple[int, ...], int]:
    """The configurations that can run all tasks, with what nothing on them is below."""
    floors: dict[tuple[int, ...], int] = {}
    fault: InputError | None = None
    for configuration in setting.demands.configurations:
        try:
            floors[configuration] = setting.asked(configuration, goal).floor()
        except InputError as error:
            fault = fault or error
    if fault is not None and not floors:
        raise fault
    return floors


def lexicographic(setting: Setting[Any], run: Callable[[Any], Decided], clock: Clock) -> Decided:
    """Return the best in the first objective, then in every other one among what is as good in those before it."""
    best: Decided | None = None
    proven: list[str] = []
    caps: dict[str, int] = {}
    for number, name in enumerate(setting.goals):
        share = clock.share(len(setting.goals) - number)
        then = decided(setting, run, Goal(name, dict(caps)), share, best)
        if then.status == "OPTIMAL" and len(proven) == number:
            proven.append(name)
        if best is None:
            best = then
        elif then.schedule is not None:
            best = replace(best, schedule=then.schedule, configuration=then.configuration)
        if then.interrupted:
            best = replace(best, stats={**best.stats, "interrupted": True})
        if then.value is None or then.interrupted:
            break
        caps[name] = then.value
    assert best is not None
    status: Status = best.status if best.status != "OPTIMAL" or len(proven) == len(setting.goals) else "FEASIBLE"
    return replace(best, status=status, stats={**best.stats, **proof(setting.goals, proven)})


# ---- the plan --------------------------------------------------------------------------------------------------------


def solved(setting: Setting[P], engine: Engine) -> P:
    """Return the plan of an engine; the best of the usual starts if that is stopped before it has anything."""
    start = time.monotonic()
    with setting.question.watch() as watch:
        best = watch.run(
            lambda: lexicographic(setting, engine.run, watch.clock),
            lambda: lexicographic(setting, _stopped, Clock.of(0.0)),
        )
        return plan_of(setting, engine, best, start)


def _stopped(asked: Asking) -> Decided:
    return replace(quickly(asked), stats={"interrupted": True})


def plan_of(setting: Setting[P], engine: Engine, best: Decided, start: float) -> P:
    """Return the plan of an answer, simulated; raises PlanMismatch if the simulation or the proof disagrees."""
    question = setting.question
    fields = head(
        question, question.problem, engine.name, status=best.status, start=start, engine_version=best.versions,
        bound=best.bound, stats=best.stats, options=setting.options,
        cpu_config=best.configuration or setting.demands.configurations[0],
        profile={task.name: row for task, row in zip(setting.graph.tasks, setting.rows, strict=True)},
    )  # fmt: skip
    fields |= setting.empty()
    if best.schedule is not None:
        fields |= setting.parts(best)
    elif best.status == "INFEASIBLE":
        fields["conflicts"] = setting.conflicts()
    plan, faults = setting.plan({**fields, "wall_s": time.monotonic() - start})
    if plan.objective is None:
        return plan
    value = plan.objective.value
    if best.status == "OPTIMAL" and best.bound != value:
        faults = (*faults, f"value {value}, bound {best.bound}, {best.status}")
    if faults:
        raise PlanMismatch(f"network {plan.network}, engine {engine.name}: {'; '.join(faults[:5])}")
    return plan.model_copy(update={"gap": gap_of(value, best.bound)})
