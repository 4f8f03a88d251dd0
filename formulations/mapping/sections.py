"""Mapping latency in sections: where every task waits for one, or one for it, times before and after it add up.

Sets
    gates g        tasks that are comparable with all others: each one comes before g or after it, over some edges
    sections V_k   cut before gates: the tasks from one gate on and before the next, in topological order
    given J_k      the tasks of V_k and of later sections that read a result of a section before V_k
    readers R_k    the tasks of later sections that read a result of V_k
Given, derived
    d[i], latency as in `formulations.mapping.latency`; d[i] depends on at[i] and on at[j] of the readers j of i only
    c_k(at J_k in V_k, at R_k) = min over the other at[i] of V_k, and over its orders, of the time from the first begin
                     to the last end of its blocks
    F_0 = 0;  F_(k+1)(at J_(k+1)) = min over the at[j] of J_k that are not in J_(k+1) of F_k(at J_k) + c_k
Claim
    The least latency is max(1, F_n), n sections.
Proof
    Let g be the gate that V_k begins with. Every task of an earlier section comes before g, so it has ended when a
    part of g begins; every other task of V_k and of later ones comes after g, and begins when all parts of g have
    ended. So from the first begin of V_k to the first begin of V_(k+1) there are blocks of V_k and no others, and this
    takes no less than their least makespan, with the lengths that the places say. Sections one after the other with
    these makespans are a schedule: a processor is free when the section before has ended. The lengths of V_k depend on
    the places of V_k and R_k only; what both sides of a cut have in common is at J_k, over which F_k is tabled. Every
    edge counts in the section that it begins in, once.
Without gates there is one section. Cuts with too many places for J_k are left out: any of them may be.
    A section of one task is a table: c = max_p (work + copies). Others are searched where they matter
    (`formulations.mapping.series`).
Equal processors
    A permutation of processors that leaves times, places and copies of V_k and R_k alike leaves c_k alike: of the ends
    that it makes of each other one is searched.

Example: a fork of `a -> b, c -> d` has the gates a and d and the sections {a, b, c} and {d}. J_1 = {d}: for every place
of d the fork is decided by itself, with the copies to d.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations, product
from math import prod
from typing import ClassVar

import numpy as np

from formulations.mapping.places import Split
from formulations.mapping.search import handed_table, work_table
from formulations.mapping.space import Ints
from formulations.mapping.space import Mapping as Instance
from instances.network.tasks import TaskGraph

#: Places of the tasks that a cut is tabled over, and of all ends of a section, at most.
_STATES, _ENDS = 2_000, 100_000
#: Numbers of a table that bounds are computed with at a time.
_NUMBERS = 2_000_000
#: Longer than anything.
_FAR = 2**60


@dataclass(frozen=True)
class Section:
    """Tasks between two cuts."""

    tasks: range
    given: tuple[int, ...]
    """Those of them whose places are known from the cut before."""
    readers: tuple[int, ...]
    """Tasks of later sections that read a result of these."""

    @property
    def ends(self) -> tuple[int, ...]:
        """The tasks on whose places its makespan depends."""
        return (*self.given, *self.readers)


@dataclass(frozen=True)
class Excerpt(Instance):
    """A section whose ends are placed: an instance of its own, whose latency may be nothing."""

    shortest: ClassVar[int] = 0
    kept: tuple[tuple[int, ...], ...] = ()
    """The places of every task; nothing: those that have a time."""
    onward: Mapping[tuple[int, int, int], int] = field(default_factory=dict)
    """Ticks by task, processor and shares of the copies to later sections, if tasks may be divided; else they are part
    of the times.
    """

    @cached_property
    def able(self) -> tuple[tuple[int, ...], ...]:
        """The places that every task may be at."""
        return self.kept or super().able

    def undivided(self, graph: TaskGraph, times: tuple[tuple[int | None, ...], ...], copies: Ints) -> Excerpt:
        """Return the same with parts as its tasks."""
        return replace(self, graph=graph, times=times, copies=copies, split=None, kept=(), onward={})

    def part(self, i: int, p: int, shares: int) -> int:
        """Ticks of some shares of a task on a processor, with the copies to later sections."""
        return super().part(i, p, shares) + self.onward.get((i, p, shares), 0)

    @cached_property
    def form(self) -> object:
        """Excerpts of one form have the same schedules."""
        split = self.split
        fine = None if split is None else (split.shares, split.tasks, split.sync, split.copies.tobytes())
        return self.graph.edges, self.times, self.copies.tobytes(), self.kept, tuple(self.onward.items()), fine


def gates(graph: TaskGraph) -> list[int]:
    """Return the tasks that are comparable with all others."""
    number = len(graph.tasks)
    later, sooner = [0] * number, [0] * number
    for i in reversed(range(number)):
        for j in graph.after[i]:
            later[i] |= later[j] | 1 << j
    for i in range(number):
        for k in graph.before[i]:
            sooner[i] |= sooner[k] | 1 << k
    return [i for i in range(number) if (later[i] | sooner[i]).bit_count() == number - 1]


def sections(mapping: Instance) -> list[Section]:
    """Return the sections of a network, in their order; one alone if nothing can be cut."""
    graph, number = mapping.graph, len(mapping.times)

    def crossing(low: int, cut: int) -> tuple[int, ...]:
        """The tasks from a cut on that read a result of those before it, from `low` on."""
        return tuple(sorted({j for i, j in graph.edges if low <= i < cut <= j}))

    def many(tasks: Iterable[int]) -> int:
        return prod(len(mapping.able[i]) for i in tasks)

    cuts = [g for g in gates(graph) if g and many(crossing(0, g)) <= _STATES]
    found, begin = list[Section](), 0
    for cut in (*cuts, number):
        readers = crossing(begin, cut)
        given = tuple(i for i in crossing(0, begin) if i < cut)
        given = given or ((0,) if cut == 1 else ())  # one task alone needs no search: its place is an end
        if cut == number or many({*crossing(0, begin), *given, *readers}) <= _ENDS:
            found.append(Section(range(begin, cut), given, readers))
            begin = cut
    return found


# ---- tables ----------------------------------------------------------------------------------------------------------


class Tables:
    """Ticks of tasks by places, for all sections.

    Attributes
    ----------
    work : list of ndarray, shape (places, processors), by task
    handed : list of ndarray, shape (places, places, processors), by edge
    """

    def __init__(self, mapping: Instance) -> None:
        self.mapping = mapping
        self.work = [work_table(mapping, i) for i in range(len(mapping.times))]
        self.handed = [handed_table(mapping, e) for e in range(len(mapping.graph.edges))]
        self.out: list[list[tuple[int, int]]] = [[] for _ in mapping.times]
        for e, (i, j) in enumerate(mapping.graph.edges):
            self.out[i].append((e, j))

    def ends(self, section: Section) -> Ints:
        """All places of the ends of a section, of shape (number, ends), those of the last one fastest."""
        able = [np.array(self.mapping.able[i], dtype=np.int64) for i in section.ends]
        number = prod(map(len, able))
        grid = np.indices([len(few) for few in able]).reshape(len(able), number)
        return np.stack([few[n] for few, n in zip(able, grid, strict=True)], axis=1) if able else grid.T

    def alone(self, section: Section, at: Ints) -> Ints:
        """What a section of one task takes, by places of its ends."""
        (i,), column = section.tasks, {j: n for n, j in enumerate(section.ends)}
        here = at[:, column[i]]
        took = self.work[i][here]
        for e, j in self.out[i]:
            took = took + self.handed[e][here, at[:, column[j]]]
        return np.asarray(took.max(axis=1))

    def least(self, section: Section, at: Ints) -> Ints:
        """Lower bounds of the makespan of a section by places of its ends."""
        places, processors = len(self.mapping.places), len(self.mapping.processors)
        block = max(1, _NUMBERS // (places * places * processors))
        return np.concatenate([self._least(section, at[n : n + block]) for n in range(0, len(at), block)])

    def _least(self, section: Section, at: Ints) -> Ints:
        """Chains of tasks, each place with the copies that it makes needful, and all work over all processors."""
        able, column = self.mapping.able, {j: n for n, j in enumerate(section.ends)}
        places, processors = self.work[0].shape
        begins = {i: np.zeros((len(at), places), dtype=np.int64) for i in section.tasks}
        path, work = np.zeros(len(at), dtype=np.int64), np.zeros(len(at), dtype=np.int64)
        for i in section.tasks:
            out = np.full((len(at), places), _FAR, dtype=np.int64)  # where it cannot be
            if i in column:
                out[np.arange(len(at)), at[:, column[i]]] = 0
            else:
                out[:, able[i]] = 0
            took = np.tile(self.work[i], (len(at), 1, 1))
            fewest = {e: self.handed[e][:, able[j]].min(axis=1) for e, j in self.out[i] if j not in column}
            for e, j in self.out[i]:
                took += self.handed[e][:, at[:, column[j]]].transpose(1, 0, 2) if j in column else fewest[e]
            path = np.maximum(path, (begins[i] + took.max(axis=2) + out).min(axis=1))
            work += (took.sum(axis=2) + out).min(axis=1)
            for e, j in self.out[i]:
                if j not in begins:
                    continue
                if j in column:
                    done = (begins[i] + took.max(axis=2) + out).min(axis=1)[:, None]
                else:
                    both = (took - fewest[e])[:, :, None] + self.handed[e]
                    done = ((begins[i] + out)[:, :, None] + both.max(axis=3)).min(axis=1)
                begins[j] = np.maximum(begins[j], done)
        return np.asarray(np.maximum(path, -(-work // processors)))

    def excerpt(self, section: Section, at: Sequence[int]) -> Excerpt:
        """Return the instance of a section whose ends are at these places."""
        mapping, first = self.mapping, section.tasks.start
        placed = dict(zip(section.ends, at, strict=True))
        inner = [e for e, (i, j) in enumerate(mapping.graph.edges) if i in section.tasks and j in section.tasks]
        edges = tuple((i - first, j - first) for i, j in (mapping.graph.edges[e] for e in inner))
        times, split, onward = [], mapping.split, dict[tuple[int, int, int], int]()
        for i in section.tasks:
            beyond = [(e, mapping.places[placed[j]]) for e, j in self.out[i] if j not in section.tasks]
            row = list(mapping.times[i])
            for p, time in enumerate(row):
                for k in range(1, mapping.shares + 1) if time is not None else ():
                    ticks = sum(int(mapping.sent(e, k)[p, q]) for e, place in beyond for q, _ in place if q != p)
                    if split is None:
                        row[p] = (time or 0) + ticks
                    elif ticks:
                        onward[i - first, p, k] = ticks
            times.append(tuple(row))
        if split is not None:
            fine = frozenset(i - first for i in split.tasks if i in section.tasks)
            split = Split(split.shares, fine, split.sync, split.copies[inner])
        return Excerpt(
            TaskGraph(mapping.graph.network, mapping.graph.tasks[first : section.tasks.stop], edges),
            mapping.processors, tuple(times), mapping.copies[inner], mapping.watts,
            tuple(range(len(mapping.processors))), mapping.total, mapping.number, mapping.element_bytes, split,
            kept=tuple((placed[i],) if i in placed else mapping.able[i] for i in section.tasks), onward=onward,
        )  # fmt: skip


# ---- equal processors ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Swap:
    """A permutation of the processors: where each of them, and each place, goes."""

    processors: tuple[int, ...]
    places: tuple[int, ...]


def swap_of(mapping: Instance, processors: Sequence[int]) -> Swap:
    """Return a permutation with what it makes of places."""
    number = {place: a for a, place in enumerate(mapping.places)}
    moved = (tuple(sorted((processors[p], k) for p, k in place)) for place in mapping.places)
    return Swap(tuple(processors), tuple(number[place] for place in moved))


def swaps(mapping: Instance, section: Section) -> list[Swap]:
    """Return the permutations that leave a section and its readers alike, that of nothing first."""
    number, classes = len(mapping.processors), list[list[int]]()
    for p in range(number):
        mine = next((few for few in classes if _alike(mapping, section, few[0], p)), None)
        if mine is None:
            classes.append([p])
        else:
            mine.append(p)
    found = []
    for orders in product(*(permutations(few) for few in classes)):
        goes = list(range(number))
        for few, order in zip(classes, orders, strict=True):
            for p, q in zip(few, order, strict=True):
                goes[p] = q
        found.append(swap_of(mapping, goes))
    return found


def _alike(mapping: Instance, section: Section, p: int, q: int) -> bool:
    """Whether two processors can change places."""
    goes = list(range(len(mapping.processors)))
    goes[p], goes[q] = q, p
    places = swap_of(mapping, goes).places
    return (
        all(mapping.times[i][p] == mapping.times[i][q] for i in section.tasks)
        and all({places[a] for a in mapping.able[i]} == set(mapping.able[i]) for i in (*section.tasks, *section.ends))
        and all(np.array_equal(table, table[..., goes, :][..., goes]) for table in _copies(mapping, section))
    )


def _copies(mapping: Instance, section: Section) -> Iterator[Ints]:
    for e, (i, _) in enumerate(mapping.graph.edges):
        if i in section.tasks:
            yield mapping.copies[e]
            if mapping.split is not None:
                yield mapping.split.copies[e]
