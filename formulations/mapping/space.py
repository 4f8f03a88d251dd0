"""Mapping: which processor runs which task of a network, one inference after the other in a pipeline.

Places
    Below at[i] is one processor. If tasks may be divided, it is a place, which may be two processors, each with some
    shares of the task (below). Then time, copy and load are those of the parts.
Sets
    tasks i in topological order; edges e = (i, j); processors p (groups of cores, accelerators); C cores in all
Given
    time[i][p]      ticks of task i on p; None where it cannot run
    copy[e][p][q]   ticks to hand the result of i from p to q; 0 on the same processor
    host            processors where the first and the last tasks run: the groups of cores
    cores[p], watts[p] (fJ a tick), cap (percent of all cores that may be busy on average)
Variables
    at[i]           the processor of task i
Derived
    load[p] = sum over i at p of (time[i][p] + sum over e = (i, j) of copy[e][p][at[j]])            (Eq. 3.7)
    period  = max(1, max_p load[p], ceil(100 * sum_p cores[p]*load[p] / (cap * C)))                     (Eq. 3.8, 3.9)
    energy  = sum_p watts[p]*load[p]                                                                 (3.3.4.2)
Objectives
    min period [ticks]: the time from one inference to the next; min energy [fJ]; the front of both;
    min latency [ticks]: of one inference alone, which also has an order of tasks (`formulations.mapping.latency`)
Constraints
    (RUN)      at[i] can run i
    (HOST)     the first tasks (none before them) and the last ones run on the host
    (CAP)      the cores are busy at most cap percent of the time: a longer period keeps it too
    (CLUSTER)  only if asked for: a processor runs one connected part of the network, but that of the first task may run
               the part of the last one too (Eq. 3.2 to 3.4; "<=" instead of "=" lets processors idle)
Optimal means
    No other assignment has a smaller objective. In the steady state every processor repeats its tasks once a period,
    each on the inference that has come so far, so that precedence (Eq. 3.5, 3.6) delays results but not the period.

Source: `heterogeneous_mapping_and_banks` 3.3.1, 3.3.4; the sender of a result is busy with copying it (Eq. 3.7).

**Places**. A task runs on one processor, or is divided between two of them (data parallelism in a layer).

Sets
    S shares, equal parts of the output rows or channels of a task; places a: every processor p with all S shares, and,
    if tasks may be divided, {(p, k), (q, S - k)} for p < q and k = 1 .. S - 1
Given
    work[i][p][k]     ticks of k shares of task i on p: ceil(k * time[i][p] / S) + sync for k < S; sync is what a part
                      waits for the other one
    copy[e][k][p][q]  ticks to hand k shares of the result of i from p to q
Meaning
    Each part reads the whole of every operand: output channels need it, output rows a share and its border. So a part
    of task i hands its shares to every other processor that has a part of a reader, and there they are joined where
    they are put (Eq. 3.7 for parts). A share of a row's time is assumed for a share of the rows; rows need not divide.
    Divided are tasks that compute or move each result on its own: no inputs, reshapes and normalising functions.

Source: the intra-layer parallelism of `heterogeneous_mapping_and_banks` 3.3.2 between processors; ours.

**Parts** of divided tasks as tasks of their own: what a place stands for once the assignment is known. A task that is
divided between p and q becomes two tasks, each fixed to its processor; an edge becomes one for each pair of parts.
Loads, pipelines and timetables of the result are those of the assignment, so that only the choice of places knows of
divided tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hwmodels.board.price import ALONE, copied_ps
from instances.errors import InputError
from instances.machine.boards import Group, Processors
from instances.network.tasks import TaskGraph

#: Processors, each with its shares of a task.
Place = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Split:
    """How tasks may be divided."""

    shares: int
    """S."""
    tasks: frozenset[int]
    """Those that may be divided."""
    sync: int
    """Ticks."""
    copies: NDArray[np.int64]
    """Of 1, 2, ... shares."""

    def work(self, time: int, shares: int) -> int:
        """Ticks of some shares of a task that takes `time` in all."""
        return time if shares == self.shares else -(-shares * time // self.shares) + self.sync

    def merged(self, whole: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the least that copies of all shares take if the result may be divided: long copies may gain by it."""
        both = self.copies + self.copies[:, ::-1]
        return np.minimum(whole, both.min(axis=1)) if self.shares > 1 else whole


def places_of(processors: int, split: Split | None) -> tuple[Place, ...]:
    """Return all places, the whole processors first and in their order."""
    if split is None:
        return tuple(((p, 1),) for p in range(processors))
    whole: list[Place] = [((p, split.shares),) for p in range(processors)]
    pairs = [
        ((p, k), (q, split.shares - k))
        for p in range(processors) for q in range(p + 1, processors) for k in range(1, split.shares)
    ]  # fmt: skip
    return (*whole, *pairs)


#: What is minimised.
Aim = Literal["period", "energy", "latency"]
#: How the cores are grouped.
Configuration = tuple[int, ...]
#: The processor of every task; if tasks may be divided, its place.
Assignment = tuple[int, ...]
#: Tasks, each one after those it reads from; of divided tasks their parts.
Order = tuple[int, ...]
Ints = NDArray[np.int64]
_US_PS = 1_000_000
#: Sums up to which all engines count in 64 bits.
_LARGEST = 2**62


@dataclass(frozen=True)
class Price:
    """What an assignment costs: ticks from one inference to the next, femtojoules, and busy ticks by processor."""

    period: int
    energy: int
    loads: tuple[int, ...]


@dataclass(frozen=True)
class Schedule:
    """The processor of every task, and where it counts an order of the tasks: those of a processor follow it."""

    at: Assignment
    order: Order = ()


@dataclass(frozen=True)
class Limits:
    """What has to be kept: percent of the cores that may be busy, the longest period, the most energy and latency."""

    cap: int = 100
    period: int | None = None
    energy: int | None = None
    latency: int | None = None

    def broken(self, figures: Table[str, int]) -> Iterator[tuple[str, int, int]]:
        """Yield name, value and limit of figures that are above theirs."""
        for name, value in figures.items():
            most = getattr(self, name)
            if most is not None and value > most:
                yield name, value, most

    def within(self, most: Table[str, int]) -> Limits:
        """The same, and no more of some figures than this."""
        known = {name: getattr(self, name) for name in most}
        return replace(self, **{n: value if known[n] is None else min(value, known[n]) for n, value in most.items()})


@dataclass(frozen=True)
class Mapping:
    """One configuration of a board and a network on it."""

    graph: TaskGraph
    processors: tuple[Group, ...]
    times: tuple[tuple[int | None, ...], ...]
    """By task and processor, None where it cannot run."""
    copies: Ints
    watts: tuple[int, ...]
    """Femtojoules a tick."""
    host: tuple[int, ...]
    total: int
    """Cores of the CPU."""
    number: tuple[int, ...]
    """How many processors each one stands for: more than one if equal groups are merged (`merged`)."""
    element_bytes: int
    split: Split | None = None
    shortest: ClassVar[int] = 1
    """What no latency is below."""

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Where tasks may be: the processors, in their order, and if tasks may be divided pairs of them."""
        return places_of(len(self.processors), self.split)

    @property
    def shares(self) -> int:
        """How many shares a task has."""
        return 1 if self.split is None else self.split.shares

    @property
    def whole(self) -> Mapping:
        """The same with no task divided; its assignments are assignments here too."""
        return replace(self, split=None)

    def undivided(self, graph: TaskGraph, times: tuple[tuple[int | None, ...], ...], copies: Ints) -> Mapping:
        """Return the same with parts as its tasks."""
        return replace(self, graph=graph, times=times, copies=copies, split=None)

    @cached_property
    def able(self) -> tuple[tuple[int, ...], ...]:
        """The places that every task may be at, whole processors first."""
        ends = {*self.graph.first, *self.graph.last}
        able = []
        for i, times in enumerate(self.times):
            found = tuple(p for p, t in enumerate(times) if t is not None and (i not in ends or p in self.host))
            if not found:
                where = "the cores, where first and last tasks run" if i in ends else "any processor"
                raise InputError(f"network {self.graph.network}: task {self.graph.tasks[i].name} cannot run on {where}")
            able.append(found)
        if self.split is None:
            return tuple(able)
        pairs = range(len(self.processors), len(self.places))
        return tuple(
            (*found, *(a for a in pairs if i in self.split.tasks and all(p in found for p, _ in self.places[a])))
            for i, found in enumerate(able)
        )

    def part(self, i: int, p: int, shares: int) -> int:
        """Ticks of some shares of a task on a processor that can run it."""
        time = self.times[i][p] or 0
        return time if self.split is None else self.split.work(time, shares)

    def sent(self, e: int, shares: int) -> Ints:
        """Ticks to hand some shares over an edge, by processors."""
        if self.split is None or shares == self.split.shares:
            return np.asarray(self.copies[e])
        return np.asarray(self.split.copies[e, shares - 1])

    def work(self, i: int, a: int) -> list[tuple[int, int]]:
        """Processors and ticks of a task at a place."""
        return [(p, self.part(i, p, k)) for p, k in self.places[a]]

    def handed(self, e: int, a: int, q: int) -> list[tuple[int, int]]:
        """Processors and ticks of the copies from a place to a processor."""
        return [(p, int(self.sent(e, k)[p, q])) for p, k in self.places[a] if p != q]

    @property
    def energy_unit(self) -> int:
        """What every energy is a multiple of."""
        return gcd(*self.watts) or 1

    def loads(self, at: Sequence[int]) -> tuple[int, ...]:
        """Busy ticks of every processor."""
        loads = [0] * len(self.processors)
        for i, a in enumerate(at):
            for p, ticks in self.work(i, a):
                loads[p] += ticks
        for e, (i, j) in enumerate(self.graph.edges):
            for q, _ in self.places[at[j]]:
                for p, ticks in self.handed(e, at[i], q):
                    loads[p] += ticks
        return tuple(loads)

    def price(self, at: Sequence[int], cap: int = 100) -> Price:
        """What an assignment costs."""
        loads = self.loads(at)
        used = sum(group.cores * load for group, load in zip(self.processors, loads, strict=True))
        period = max(1, *loads, -(-100 * used // (cap * self.total)))
        return Price(period, sum(w * load for w, load in zip(self.watts, loads, strict=True)), loads)


def build(
    graph: TaskGraph, board: Processors, configuration: Sequence[int], times: Sequence[dict[str, float | None]],
    tick_ps: int, shares: int = 1, rounded: Callable[[float], int] = round,
) -> Mapping:  # fmt: skip
    """Return a network on one configuration of a board.

    Parameters
    ----------
    times : sequence of dict
        For every task its microseconds by option (`hwmodels.board.price.options`).
    shares : int
        Into how many tasks may be divided; 1: they are whole.
    rounded : callable
        Times to ticks: to the nearest, or up (``math.ceil``) where deadlines are kept.

    Raises
    ------
    InputError
        If the configuration does not use the cores of the board once each, or an option has no time.
    """
    if tuple(configuration) not in board.configurations:
        known = ", ".join("(" + ",".join(map(str, one)) + ")" for one in board.configurations)
        raise InputError(f"configuration {tuple(configuration)}: known are {known}")
    groups = board.groups(tuple(configuration))
    rows = tuple(tuple(_ticks(row, option, tick_ps, rounded) for option in run_as(groups)) for row in times)
    powers = {one.name: one.power_mw for one in board.accelerators}
    scale = tick_ps  # mW * ps = 10**-15 J
    watts = tuple(
        powers[group.name] * scale if not group.cores else board.cpu.power_mw * scale * group.cores // board.cpu.cores
        for group in groups
    )
    copies = _copies(graph, board, groups, tick_ps, shares, shares, rounded)
    split = None
    if shares > 1:
        some = [_copies(graph, board, groups, tick_ps, k, shares, rounded) for k in range(1, shares)]
        fine = frozenset(i for i, task in enumerate(graph.tasks) if task.divisible and task.results >= shares)
        split = Split(shares, fine, rounded(board.split_sync_ns * _US_PS / 1000 / tick_ps), np.stack(some, axis=1))
    host = tuple(p for p, group in enumerate(groups) if group.cores)
    total = sum(max((t for t in row if t is not None), default=0) for row in rows) + int(copies.max(initial=0)) * len(
        copies
    )
    if 100 * board.cpu.cores * total > _LARGEST or max(watts) * total > _LARGEST:
        raise InputError(
            f"network {graph.network}: its times add up to {total} ticks of {tick_ps} ps: choose a larger tick_ps"
        )
    return Mapping(
        graph, groups, rows, copies, watts, host, board.cpu.cores, (1,) * len(groups), board.element_bytes, split
    )


def _copies(
    graph: TaskGraph, board: Processors, groups: Sequence[Group], tick_ps: int, shares: int, whole: int,
    rounded: Callable[[float], int],
) -> Ints:  # fmt: skip
    """Ticks to hand some shares of results over, by edge and processors."""
    copies = np.zeros((len(graph.edges), len(groups), len(groups)), dtype=np.int64)
    for e, (i, _) in enumerate(graph.edges):
        size = -(-graph.tasks[i].results * shares // whole) * board.element_bytes
        for p, before in enumerate(groups):
            for q, after in enumerate(groups):
                if p != q:
                    ps = copied_ps(size, board.copying, out=not before.cores, into=not after.cores)
                    copies[e, p, q] = rounded(ps / tick_ps)
    return copies


def run_as(groups: Sequence[Group]) -> Iterable[str]:
    """How tasks run on processors: where no group has two cores, without threads (3.3.6, C1)."""
    alone = all(group.cores < 2 for group in groups)
    for group in groups:
        yield group.name if not group.cores else ALONE if alone else str(group.cores)


def _ticks(
    row: dict[str, float | None], option: str, tick_ps: int, rounded: Callable[[float], int]
) -> int | None:  # fmt: skip
    time = row.get(option)
    return None if time is None else rounded(time * _US_PS / tick_ps)


def merged(mapping: Mapping) -> Mapping:
    """Return the relaxation in which equal groups of cores are one processor that has room for all of their tasks.

    Copies within it take no time, so its optimum is a bound; far fewer assignments are alike. A task divided within it
    is whole here, which takes no longer but for copies that gain by being divided: they take the least of both.
    """
    alike: dict[object, list[int]] = {}
    for p, group in enumerate(mapping.processors):
        same = mapping.watts[p], tuple(row[p] for row in mapping.times)
        alike.setdefault((group.cores, *same) if group.cores else group.name, []).append(p)
    copies, split = mapping.copies, mapping.split
    if split is not None and len(alike) < len(mapping.processors):
        copies = split.merged(copies)
    kept, number = [few[0] for few in alike.values()], [len(few) for few in alike.values()]
    return Mapping(
        mapping.graph, tuple(mapping.processors[p] for p in kept),
        tuple(tuple(row[p] for p in kept) for row in mapping.times), copies[:, kept][:, :, kept],
        tuple(mapping.watts[p] for p in kept), tuple(k for k, p in enumerate(kept) if p in mapping.host),
        mapping.total, tuple(number), mapping.element_bytes,
        None if split is None else replace(split, copies=split.copies[:, :, kept][:, :, :, kept]),
    )  # fmt: skip


def clusters(mapping: Mapping, at: Sequence[int]) -> tuple[int, ...]:
    """Return how many clusters begin on every processor, that of first and last task counted once (Eq. 3.2 to 3.4)."""
    found = [0] * len(mapping.processors)
    for i, p in enumerate(at):
        found[p] += not any(at[k] == p for k in mapping.graph.before[i])
    if at[0] == at[-1]:
        found[at[0]] -= 1
    return tuple(found)


@dataclass(frozen=True)
class Parts:
    """An assignment without divided tasks."""

    mapping: Mapping
    at: Assignment
    shares: tuple[tuple[int, int], ...]
    """By part its task and how many shares of it."""


def parts(mapping: Mapping, at: Assignment) -> Parts:
    """Return the parts of an assignment; of whole tasks, the same."""
    if mapping.split is None:
        return Parts(mapping, at, tuple((i, 1) for i in range(len(at))))
    found = [(i, p, k) for i, a in enumerate(at) for p, k in mapping.places[a]]
    number, graph = len(mapping.processors), mapping.graph
    nodes: list[list[int]] = [[] for _ in at]
    named, rows = [], []
    for n, (i, p, k) in enumerate(found):
        nodes[i].append(n)
        task, took = graph.tasks[i], mapping.part(i, p, k)
        share, name = -(-task.results * k // mapping.shares), f"{task.name}@{mapping.processors[p].name}"
        named.append(task if k == mapping.shares else replace(task, name=name, results=share))
        rows.append(tuple(took if q == p else None for q in range(number)))
    edges, copies = [], []
    for e, (i, j) in enumerate(graph.edges):
        for n in nodes[i]:
            edges += [(n, m) for m in nodes[j]]
            copies += [mapping.sent(e, found[n][2])] * len(nodes[j])
    table = np.array(copies, dtype=np.int64).reshape(len(edges), number, number)
    flat = mapping.undivided(replace(graph, tasks=tuple(named), edges=tuple(edges)), tuple(rows), table)
    return Parts(flat, tuple(p for _, p, _ in found), tuple((i, k) for i, _, k in found))
