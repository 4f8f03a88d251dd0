"""What engines say of one configuration of a board, for tests."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np

from formulations.clock import Clock
from formulations.mapping.engines import Asked
from formulations.mapping.latency import Order
from formulations.mapping.problem import MappingFormulation, MappingPart
from formulations.mapping.space import Configuration, Ints, Limits, Mapping, Schedule, Split
from formulations.problem import Goal, Stats
from instances.machine.boards import Group
from instances.network.network import Network
from instances.network.tasks import Task, TaskGraph
from solver import Plan, solve
from solver.plan.plan import Status
from solver.search.loop import decide_part

ENGINES = (*MappingFormulation.engines, *MappingFormulation.heuristics)


def instance(
    times: Sequence[Sequence[int | None]], edges: Sequence[tuple[int, int]], copy: int | Ints = 0,
    cores: int | Sequence[int] | None = None, watts: Sequence[int] | None = None, *, each: int = 0, shares: int = 1,
    sync: int = 0, divided: Collection[int] | None = None, split: Split | None = None, host: tuple[int, ...] = (),
) -> Mapping:  # fmt: skip
    """Tasks on groups of so many `cores`, or on so many single ones (all, if nothing is said), then accelerators.

    Handing over takes `copy` ticks, or as a table says; of tasks in `shares` k of these take `copy` + k `each`.
    """
    number = len(times[0])
    sizes = (1,) * (number if cores is None else cores) if cores is None or isinstance(cores, int) else tuple(cores)
    groups = [Group(f"cpu{k}", sizes[k]) if k < len(sizes) else Group(f"acc{k}", 0) for k in range(number)]
    between = np.zeros((len(edges), shares, number, number), dtype=np.int64)
    between += np.asarray(copy)[..., None, :, :] if np.ndim(copy) else copy
    between += each * np.arange(1, shares + 1)[:, None, None]
    between[..., range(number), range(number)] = 0
    graph = TaskGraph("n", tuple(Task(f"t{i}", "conv", 1, 9, 1, 0) for i in range(len(times))), tuple(edges))
    if shares > 1:
        split = Split(shares, frozenset(range(len(times)) if divided is None else divided), sync, between[:, :-1])
    return Mapping(
        graph, tuple(groups), tuple(map(tuple, times)), between[:, -1], tuple(watts or (1,) * number),
        host or tuple(range(len(sizes))), sum(sizes), (1,) * number, 4, split,
    )  # fmt: skip


def orders(made: Mapping) -> Iterator[Order]:
    """All orders of its tasks."""
    for order in permutations(range(len(made.times))):
        place = {i: n for n, i in enumerate(order)}
        if all(place[i] < place[j] for i, j in made.graph.edges):
            yield order


def planned(network: Network | str, machine: str = "galaxy_s9", **options: Any) -> Plan:
    """Solve problem mapping."""
    return solve(network, machine, problem="mapping", **options)


@dataclass(frozen=True)
class Said:
    """An answer for one objective."""

    schedule: Schedule | None
    status: Status
    bound: int | None
    stats: Stats


class Knowing(MappingPart):
    """A part of which something is known."""

    least: int = 0
    known: tuple[Schedule, ...] = ()

    def asked(self, configuration: Configuration, goal: Goal) -> Asked:
        return replace(super().asked(configuration, goal), least=self.least, known=self.known)


def answer(
    engine: str, made: Mapping, aim: str, limits: Limits | None = None, seconds: float = 20, *, least: int = 0,
    known: tuple[Schedule, ...] = (),
) -> Said:  # fmt: skip
    """Decide; a lower bound and some schedules may be known."""
    part = Knowing("n", {(): made}, limits, alone=aim == "latency")
    part.least, part.known = least, known
    said = decide_part(MappingFormulation(), part, (aim,), engine, Clock.of(seconds))
    schedule = None if said.schedule is None else part.numbered(said.schedule)
    return Said(schedule, said.status, said.bounds[aim], dict(said.stats))
