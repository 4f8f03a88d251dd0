"""Mapping by trying all assignments, and by the list schedulers of the field.

`everything` prices every assignment (NumPy, a block of them at a time): the reference on small networks.
`list_scheduled` is HEFT, CPOP or PEFT: tasks by rank, each where it ends first, or on the critical path's processor.
They minimise the makespan of one inference, not the period. `improved` descends from any of them, a move of one task
after the other.

Source: Topcuoglu et al. 2002 (HEFT, CPOP), Arabnejad and Barbosa 2014 (PEFT); the objective is
`heterogeneous_mapping_and_banks` Eq. 3.8.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from formulations.mapping.space import Aim, Assignment, Ints, Limits, Mapping

#: Assignments that `everything` tries at most.
MOST = 20_000_000
_BLOCK = 200_000


def assignments(mapping: Mapping) -> int:
    """How many there are."""
    return prod(map(len, mapping.able))


class Pricer:
    """Prices many assignments at once."""

    def __init__(self, mapping: Mapping, limits: Limits) -> None:
        self.mapping, self.limits = mapping, limits
        self.work = [work_table(mapping, i) for i in range(len(mapping.times))]
        self.copies = [handed_table(mapping, e) for e in range(len(mapping.graph.edges))]
        self.cores, self.watts = np.array([g.cores for g in mapping.processors]), np.array(mapping.watts)

    def __call__(self, at: Ints) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """Return periods, energies, and whether the limits are kept, of assignments of shape (number, tasks)."""
        mapping, limits = self.mapping, self.limits
        loads = np.zeros((len(at), len(mapping.processors)), dtype=np.int64)
        for i, table in enumerate(self.work):
            loads += table[at[:, i]]
        for table, (i, j) in zip(self.copies, mapping.graph.edges, strict=True):
            loads += table[at[:, i], at[:, j]]
        used = -(-100 * (loads @ self.cores) // (limits.cap * mapping.total))
        periods, energies = np.maximum(np.maximum(loads.max(axis=1), used), 1), loads @ self.watts
        kept = np.ones(len(at), dtype=bool)
        if limits.period is not None:
            kept &= periods <= limits.period
        if limits.energy is not None:
            kept &= energies <= limits.energy
        return periods, energies, kept


def work_table(mapping: Mapping, i: int) -> Ints:
    """Ticks of a task by place and processor; 0 where it cannot be."""
    table = np.zeros((len(mapping.places), len(mapping.processors)), dtype=np.int64)
    for a in mapping.able[i]:
        for p, ticks in mapping.work(i, a):
            table[a, p] = ticks
    return table


def handed_table(mapping: Mapping, e: int) -> Ints:
    """Ticks of the copies over an edge by the places of its tasks and processor."""
    places, processors = len(mapping.places), len(mapping.processors)
    table = np.zeros((places, processors, processors), dtype=np.int64)
    for a in mapping.able[mapping.graph.edges[e][0]]:
        for q in range(processors):
            for p, ticks in mapping.handed(e, a, q):
                table[a, q, p] = ticks
    return np.asarray(np.einsum("aqp,bq->abp", table, used(mapping).astype(np.int64)))


def used(mapping: Mapping) -> NDArray[np.bool_]:
    """Whether a place uses a processor."""
    processors = range(len(mapping.processors))
    return np.array([[any(q == p for p, _ in place) for q in processors] for place in mapping.places])


def everything(mapping: Mapping, limits: Limits) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield blocks of assignments that keep the limits, with their periods and energies."""
    able, price = [np.array(few) for few in mapping.able], Pricer(mapping, limits)
    total = assignments(mapping)
    for begin in range(0, total, _BLOCK):
        rest = np.arange(begin, min(total, begin + _BLOCK))
        at = np.empty((len(rest), len(able)), dtype=np.int64)
        for i, few in enumerate(able):
            at[:, i] = few[rest % len(few)]
            rest //= len(few)
        periods, energies, kept = price(at)
        yield at[kept], periods[kept], energies[kept]


def seeds(mapping: Mapping) -> list[Assignment]:
    """All tasks on one processor, as far as it can run them, the others on the first group of cores that can."""
    found = []
    for p in range(len(mapping.processors)):
        for other in mapping.host:
            at = tuple(p if p in able else other if other in able else able[0] for able in mapping.able)
            found.append(at)
    return list(dict.fromkeys(found))


def starts(mapping: Mapping) -> list[Assignment]:
    """What searches start from: the seeds and two list schedules."""
    return [*seeds(mapping), list_scheduled(mapping, "heft"), list_scheduled(mapping, "peft")]


def improved(mapping: Mapping, limits: Limits, at: Assignment, aim: Aim) -> Assignment:
    """Move one task after the other to where it helps most, until no single move does.

    A move helps if it lessens (period, energy), or for energy (energy, period); all moves are priced at once.
    """
    price, moves = Pricer(mapping, limits), [(i, a) for i, able in enumerate(mapping.able) for a in able]
    tasks, places = (np.array(column, dtype=np.int64) for column in zip(*moves, strict=True))
    best: tuple[int, int] | None = None
    while True:
        tried = np.tile(np.array(at, dtype=np.int64), (len(moves), 1))
        tried[np.arange(len(moves)), tasks] = places
        periods, energies, kept = price(tried)
        first, second = (energies, periods) if aim == "energy" else (periods, energies)
        order = [n for n in np.lexsort((second, first)) if kept[n]]
        if not order or (best is not None and (int(first[order[0]]), int(second[order[0]])) >= best):
            return at
        best = int(first[order[0]]), int(second[order[0]])
        at = tuple(int(p) for p in tried[order[0]])


Rule = Literal["heft", "cpop", "peft"]


def list_scheduled(mapping: Mapping, rule: Rule) -> Assignment:
    """Return the assignment of a list scheduler."""
    return _Lists(mapping.whole).run(rule)


class _Lists:
    """Ranks, and an insertion-based schedule that grows task by task."""

    def __init__(self, mapping: Mapping) -> None:
        self.mapping, n = mapping, len(mapping.times)
        self.after: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        self.before: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        for e, (i, j) in enumerate(mapping.graph.edges):
            self.after[i].append((e, j))
            self.before[j].append((e, i))
        self.mean = [sum(self.time(i, p) for p in able) / len(able) for i, able in enumerate(mapping.able)]
        pairs = [(e, mapping.able[i], mapping.able[j]) for e, (i, j) in enumerate(mapping.graph.edges)]
        self.sent = [float(np.mean(mapping.copies[e][np.ix_(one, two)])) for e, one, two in pairs]
        self.at: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        self.slots: list[list[tuple[int, int]]] = [[] for _ in mapping.processors]

    def time(self, i: int, p: int) -> int:
        return self.mapping.times[i][p] or 0

    def run(self, rule: Rule) -> Assignment:
        n = len(self.mapping.times)
        up = [0.0] * n
        for i in reversed(range(n)):
            up[i] = self.mean[i] + max((self.sent[e] + up[j] for e, j in self.after[i]), default=0.0)
        if rule == "cpop":
            self._cpop(up)
        else:
            table = self._optimistic() if rule == "peft" else None
            ranks = up if table is None else [sum(row.values()) / len(row) for row in table]
            for i in self.mapping.graph.picked(lambda i: -ranks[i]):
                rest = table[i] if table else dict.fromkeys(self.mapping.able[i], 0.0)
                self._place(i, self._first_done(i, rest))
        return tuple(self.at[i] for i in range(n))

    def _cpop(self, up: list[float]) -> None:
        n = len(up)
        down = [0.0] * n
        for i in range(n):
            down[i] = max((down[k] + self.mean[k] + self.sent[e] for e, k in self.before[i]), default=0.0)
        ranks = [a + b for a, b in zip(up, down, strict=True)]
        length = max(ranks[i] for i in self.mapping.graph.first)
        critical = {i for i in range(n) if abs(ranks[i] - length) <= 1e-6 * length}
        common = [p for p in range(len(self.mapping.processors)) if any(p in self.mapping.able[i] for i in critical)]
        cost = {
            p: sum(self.time(i, p) if p in self.mapping.able[i] else self.mean[i] for i in critical) for p in common
        }
        one = min(common, key=lambda p: (cost[p], p))
        for i in self.mapping.graph.picked(lambda i: -ranks[i]):
            able = self.mapping.able[i]
            fixed = i in critical and one in able
            self._place(i, one if fixed else self._first_done(i, dict.fromkeys(able, 0.0)))

    def _first_done(self, i: int, rest: dict[int, float]) -> int:
        """Where the end of a task and what is left then come first."""
        return min(rest, key=lambda p: (self._slot(i, p)[1] + rest[p], p))

    def _optimistic(self) -> list[dict[int, float]]:
        """PEFT's table: the least time to the end once a task is done on a processor."""
        table: list[dict[int, float]] = [{} for _ in self.before]
        for i in reversed(range(len(table))):
            for p in self.mapping.able[i]:
                table[i][p] = max(
                    (
                        min(
                            table[j][q] + self.time(j, q) + (self.sent[e] if p != q else 0.0)
                            for q in self.mapping.able[j]
                        )
                        for e, j in self.after[i]
                    ),
                    default=0.0,
                )
        return table

    def _slot(self, i: int, p: int) -> tuple[int, int]:
        """The first gap on a processor that holds the task after its operands have come: begin and end."""
        copies, time = self.mapping.copies, self.time(i, p)
        begin = max((self.ends[k] + int(copies[e, self.at[k], p]) for e, k in self.before[i]), default=0)
        for start, end in self.slots[p]:
            if begin + time <= start:
                break
            begin = max(begin, end)
        return begin, begin + time

    def _place(self, i: int, p: int) -> None:
        slot = self._slot(i, p)
        self.at[i], self.ends[i] = p, slot[1]
        self.slots[p] = sorted([*self.slots[p], slot])
