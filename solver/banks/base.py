"""What every engine for the problem ``banks`` takes and returns."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from formulations.banks.bounds import Point
from formulations.banks.front import Aim, Found, decide
from formulations.banks.graph import Graph
from formulations.banks.network import Walk
from formulations.banks.states import BankPlan
from formulations.banks.times import Times
from hwmodels.banks.clock import Clock
from instances.feature_maps import Stages
from instances.machine import Banks
from solver.plan import Stat, Status

__all__ = ["Asked", "Decided", "graph_of", "tied"]


@dataclass(frozen=True)
class Asked:
    """What an engine is asked: `objective` is "bytes" or "time".

    Attributes
    ----------
    rivals : tuple of Point
        What plans of other stages cost; an engine that heeds them looks for what beats them only, and says OPTIMAL
        without a plan if there is none.
    """

    found: Stages
    banks: Banks
    clock: Clock
    objective: str
    waiting: bool
    time_limit_s: float | None
    rivals: tuple[Point, ...] = ()

    @property
    def walk(self) -> Walk:
        """The states of the stages."""
        return Walk(self.found, self.banks, waiting=self.waiting)

    @property
    def times(self) -> Times:
        """What plans take."""
        return Times(self.walk, self.clock)

    def front(self, aim: Aim, time_limit_s: float | None) -> Found:
        """Search all labels; raises InputError if a stage has no program in these banks."""
        return decide(
            self.found, self.banks, self.clock, aim, waiting=self.waiting, time_limit_s=time_limit_s,
            rivals=self.rivals,
        )  # fmt: skip


@dataclass(frozen=True)
class Decided:
    """An engine's answer; `bound` is in the unit of the objective, `tied` whether no equal plan is better in the other.

    OPTIMAL is about the objective alone.
    """

    plan: BankPlan | None
    bound: int | None
    status: Status
    versions: str = ""
    stats: dict[str, Stat] = field(default_factory=dict)
    tied: bool = True


def graph_of(asked: Asked) -> tuple[Graph, float | None]:
    """Return the graph of states, and the seconds left.

    Raises
    ------
    OutOfTime
        If the time limit passes first.
    """
    until = None if asked.time_limit_s is None else time.monotonic() + asked.time_limit_s
    graph = Graph(asked.walk, until=until)
    return graph, None if until is None else max(0.01, until - time.monotonic())


def tied(asked: Asked, plan: BankPlan, begun: float) -> tuple[BankPlan, bool]:
    """Return the fastest of the plans that move as many bytes as `plan`, which a solver has proven to be the fewest.

    Also whether it is proven to be that; `plan` itself if the time limit, counted from `begun`, passes first.
    """
    limit = asked.time_limit_s
    left = None if limit is None else max(0.01, limit - (time.monotonic() - begun))
    said = replace(asked, rivals=()).front("bytes", left)
    same = [one for one, _ in said.plans if one.volume.total == plan.volume.total]
    return (same[0] if same else plan), bool(said.proven and same)
