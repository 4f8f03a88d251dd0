"""Brute force for mapping: every place of every task, and for latency every order on every processor.

A case is drawn as plain numbers, like those of a board: what a copy takes depends on whether cores or accelerators are
at its ends (equal cores are merged for bounds, so copies must not tell them apart). A place is a processor, or two
with k and S - k of S shares of a task: k shares take ceil(k * time / S) + sync there (k < S), and each part hands its
shares to every other processor that has a part of a reader. Parts are tasks of their own for the referee, so that

    latency   the end of the last part (`hwmodels.board.replay.replay_mapping`); lists that wait in a circle are none
    loads     what that simulation saw each processor do
    period    max(1, max_p load[p], ceil(100 * sum_p cores[p] * load[p] / (cap * C)))
    energy    sum_p watts[p] * load[p]

All schedules are looked at, so that (EQUAL) holds both ways.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any, ClassVar, Self, cast

import numpy as np

from formulations.mapping.latency import pipelined
from formulations.mapping.problem import MappingFormulation, MappingPart, replayed
from formulations.mapping.space import Limits, Schedule, Split, parts
from formulations.mapping.space import Mapping as Instance
from hwmodels.board.replay import Seen, replay_mapping
from hwmodels.board.schedule import MappingSchedule
from instances.machine.boards import Group
from instances.network.tasks import Task, TaskGraph
from tests.adversary import cases
from tests.adversary.cases import BruteForce, Known, claimed, less_time, times
from tests.adversary.claims import Claim

#: What is left to an engine that takes longer than it ever should, seconds.
#: Processors with their shares.
Place = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Case(cases.Case):
    """Tasks on processors.

    Attributes
    ----------
    times : by task and processor, None where it cannot run
    copies : by shares (1 to `shares`), edge, processor before and after
    cores : by processor, 0 for an accelerator; the first and last tasks run on the others
    divided : tasks that may be divided
    rule : the metamorphic rule that is tried
    """

    quick: ClassVar = ("exhaustive", "heft", "single")
    slow: ClassVar = ("auto", "milp", "cp-sat", "sections", "milp-cbc", "cpop", "peft")
    rules: ClassVar = ("", "pin", "scale", "watts", "cap", "limits", "processor")

    times: tuple[tuple[int | None, ...], ...]
    edges: tuple[tuple[int, int], ...]
    copies: tuple[tuple[tuple[tuple[int, ...], ...], ...], ...]
    cores: tuple[int, ...]
    watts: tuple[int, ...]
    aim: str
    cap: int = 100
    period: int | None = None
    energy: int | None = None
    latency: int | None = None
    shares: int = 1
    divided: tuple[int, ...] = ()
    sync: int = 0

    @classmethod
    def drawn(cls, rng: random.Random) -> Case:
        """One to four tasks on up to three processors; a limit near what some schedule takes."""
        aim = rng.choice(("period", "energy", "latency"))
        number = rng.randint(1, 4 if aim != "latency" else rng.choice((3, 3, 4)))
        cores = tuple(rng.choice(((1,), (1, 1), (2, 1), (1, 1), (2, 2)))) + (0,) * rng.randint(0, 1)
        pairs = [(i, j) for j in range(number) for i in range(j)]
        edges = tuple(pair for pair in pairs if rng.randrange(5) < 3)
        shares = rng.choice((1, 1, 1, 2, 3)) if number < 4 and len(cores) < 3 else 1
        alike = rng.randrange(3) == 0
        times = []
        for _ in range(number):
            row = [rng.randint(0, 12) for _ in cores]
            row = [row[0] if alike and n == cores[0] else t for t, n in zip(row, cores, strict=True)]
            times.append(tuple(None if p and rng.randrange(8) == 0 else t for p, t in enumerate(row)))
        copies = tuple(tuple(_copies(cores, rng) for _ in edges) for _ in range(shares))
        watts = tuple(rng.randint(1, 4) * max(1, n) for n in cores)
        divided = tuple(i for i in range(number) if shares > 1 and rng.randrange(2))
        case = Case(
            tuple(times), edges, copies, cores, watts, aim, rng.choice((100, 100, 70, 40)) if aim != "latency" else 100,
            shares=shares, divided=divided, sync=rng.randint(0, 2),
        )  # fmt: skip
        if rng.randrange(2):
            made = Timetables(case)
            prices = made.prices(made.run(tuple(rng.choice(places) for places in made.places)))
            name = rng.choice([n for n in ("period", "energy", "latency") if n != case.aim])
            case = replace(case, **{name: max(1, prices[name] + rng.choice((-3, -1, 0, 2)))})  # type: ignore[arg-type]
        return case

    def ruled(self, value: int, schedule: Any) -> tuple[Self, int | None] | None:
        """The optimum pinned, other ticks or powers, or more freedom."""
        if self.rule == "pin" and self.shares == 1:
            kept = zip(self.times, schedule.tasks, strict=True)
            pinned = tuple(tuple(t if f"p{q}" == on.processor else None for q, t in enumerate(row)) for row, on in kept)
            return replace(self, times=pinned), value
        if self.rule == "scale" and self.shares == 1 and self.cap == 100 and value > 1:
            names = ("times", "copies", "period", "energy", "latency")
            return replace(self, **{name: times(getattr(self, name), 3) for name in names}), 3 * value
        if self.rule == "watts" and self.aim == "energy":
            return replace(self, watts=times(self.watts, 5), energy=times(self.energy, 5)), 5 * value
        if self.rule == "cap":
            return replace(self, cap=100), None
        if self.rule == "limits":
            return replace(self, period=None, energy=None, latency=None), None
        if self.rule != "processor":
            return None
        copies = tuple(
            tuple((*((*row, 1) for row in one), (1,) * len(one) + (0,)) for one in few) for few in self.copies
        )
        slow = tuple((*row, 3) for row in self.times)
        return replace(self, times=slow, copies=copies, cores=(*self.cores, 0), watts=(*self.watts, 2)), None

    def simpler(self) -> Iterator[Self]:
        """Without a task, an edge, shares or limits; with smaller numbers."""
        number = len(self.times)
        for i in range(number) if number > 1 else ():
            kept = [e for e, edge in enumerate(self.edges) if i not in edge]
            yield replace(
                self, times=self.times[:i] + self.times[i + 1 :],
                edges=tuple((a - (a > i), b - (b > i)) for a, b in (self.edges[e] for e in kept)),
                copies=tuple(tuple(few[e] for e in kept) for few in self.copies),
                divided=tuple(d - (d > i) for d in self.divided if d != i),
            )  # fmt: skip
        for e in range(len(self.edges)):
            copies = tuple(few[:e] + few[e + 1 :] for few in self.copies)
            yield replace(self, edges=self.edges[:e] + self.edges[e + 1 :], copies=copies)
        if self.shares > 1:
            yield replace(self, shares=1, divided=(), copies=self.copies[-1:])
        for name in ("period", "energy", "latency"):
            if getattr(self, name) is not None:
                yield replace(self, **{name: None})  # type: ignore[arg-type]
        yield from (replace(self, times=times) for times in less_time(self.times))
        if any(c for few in self.copies for one in few for row in one for c in row):
            yield replace(
                self, copies=tuple(tuple(tuple(tuple(0 for _ in r) for r in o) for o in f) for f in self.copies)
            )


# ---- brute force -----------------------------------------------------------------------------------------------------


class Timetables:
    """All schedules of a case, by the referee."""

    def __init__(self, case: Case) -> None:
        self.case = case
        ends = set(range(len(case.times))) - {i for i, _ in case.edges}
        ends |= set(range(len(case.times))) - {j for _, j in case.edges}
        self.places: list[list[Place]] = []
        for i, row in enumerate(case.times):
            able = [p for p, t in enumerate(row) if t is not None and (i not in ends or case.cores[p])]
            found: list[Place] = [((p, case.shares),) for p in able]
            if i in case.divided:
                cuts = range(1, case.shares)
                found += [((p, k), (q, case.shares - k)) for p in able for q in able if p < q for k in cuts]
            self.places.append(found)

    def run(self, at: tuple[Place, ...], order: tuple[int, ...] | None = None) -> Seen:
        """One inference, parts on a processor in the order given, or task by task."""
        case, found = self.case, [(i, p, k) for i, place in enumerate(at) for p, k in place]
        lists: list[list[int]] = [[] for _ in case.cores]
        for n in order or range(len(found)):
            lists[found[n][1]].append(n)
        return self._replay(found, lists)

    def every(self, at: tuple[Place, ...]) -> Iterator[Seen]:
        """One inference in every order of every processor that ends."""
        found = [(i, p, k) for i, place in enumerate(at) for p, k in place]
        mine = [[n for n, (_, p, _) in enumerate(found) if p == q] for q in range(len(self.case.cores))]
        for lists in product(*(permutations(few) for few in mine)):
            seen = self._replay(found, lists)
            if not seen.faults:
                yield seen

    def _replay(self, found: list[tuple[int, int, int]], lists: object) -> Seen:
        case = self.case
        rows = [[None] * len(case.cores) for _ in found]
        table = cast("list[list[int | None]]", rows)
        for n, (i, p, k) in enumerate(found):
            time = case.times[i][p] or 0
            table[n][p] = time if k == case.shares else -(-k * time // case.shares) + case.sync
        edges, copies = list[tuple[int, int]](), dict[tuple[int, int, int], int]()
        for e, (i, j) in enumerate(case.edges):
            for n, (a, p, k) in enumerate(found):
                for m, (b, q, _) in enumerate(found):
                    if (a, b) == (i, j):
                        copies[len(edges), p, q] = case.copies[k - 1][e][p][q]
                        edges.append((n, m))
        once = [[(n, 0) for n in few] for few in cast("list[list[int]]", lists)]
        return replay_mapping(edges, table, copies, once, [1] * len(edges), 0)

    def prices(self, seen: Seen) -> dict[str, int]:
        """Period, energy and latency of one schedule."""
        case = self.case
        used = sum(n * load for n, load in zip(case.cores, seen.busy, strict=True))
        period = max(1, *seen.busy, -(-100 * used // (case.cap * sum(case.cores))))
        energy = sum(w * load for w, load in zip(case.watts, seen.busy, strict=True))
        return {"period": period, "energy": energy, "latency": max(1, seen.latency)}

    def keeps(self, prices: Mapping[str, int]) -> bool:
        """Whether a schedule is within the limits."""
        most = {"period": self.case.period, "energy": self.case.energy, "latency": self.case.latency}
        return all(limit is None or prices[name] <= limit for name, limit in most.items())


def best(case: Case) -> int | None:
    """The least objective of all schedules, None without any."""
    made, least = Timetables(case), None
    alone = case.aim == "latency" or case.latency is not None
    for at in product(*made.places):
        for seen in made.every(at) if alone else (made.run(at),):
            prices = made.prices(seen)
            if made.keeps(prices) and (least is None or prices[case.aim] < least):
                least = prices[case.aim]
    return least


# ---- what engines claim ----------------------------------------------------------------------------------------------


def instance_of(case: Case) -> Instance:
    """The case as the formulation wants it."""
    number = len(case.cores)
    groups = tuple(Group(f"p{k}", n) for k, n in enumerate(case.cores))
    tasks = tuple(Task(f"t{i}", "conv", 1, max(1, case.shares), 1, 0) for i in range(len(case.times)))
    shape = len(case.edges), number, number
    table = [np.array(one, dtype=np.int64).reshape(shape) for one in case.copies]
    split = None
    if case.shares > 1:
        split = Split(case.shares, frozenset(case.divided), case.sync, np.stack(table[:-1], axis=1))
    host = tuple(p for p, n in enumerate(case.cores) if n)
    graph = TaskGraph("n", tasks, case.edges)
    return Instance(
        graph, groups, case.times, table[-1], case.watts, host, sum(case.cores), (1,) * number, 1, split
    )  # fmt: skip


def _steady(made: Instance, schedule: Schedule, period: int) -> Iterator[str]:
    """What is wrong when inference follows inference; nothing is asked of one inference alone."""
    if schedule.order or period <= 1:
        return
    flat = parts(made, schedule.at)
    seen = replayed(flat.mapping, flat.at, pipelined(flat.mapping, flat.at, period), period)
    yield from (f"a period of {period}: {fault}" for fault in seen.faults)


def _copies(cores: tuple[int, ...], rng: random.Random) -> tuple[tuple[int, ...], ...]:
    """Ticks by processor before and after; on a board they differ between cores and accelerators only."""
    ticks = {(a, b): rng.randint(0, 5) for a in (False, True) for b in (False, True)}
    number = range(len(cores))
    return tuple(tuple(0 if p == q else ticks[cores[p] > 0, cores[q] > 0] for q in number) for p in number)


class _Mapping(BruteForce[Case]):
    name = "mapping"
    kind = Case

    def claim(self, case: Case, engine: str) -> Claim:
        """Its schedule is priced by the referee."""
        made, limits = Timetables(case), Limits(case.cap, case.period, case.energy, case.latency)
        instance = instance_of(case)
        part = MappingPart("n", {(): instance}, limits, alone=case.aim == "latency")

        def judged(said: MappingSchedule) -> tuple[int, list[str]]:
            schedule = part.numbered(said)
            prices = made.prices(made.run(tuple(instance.places[a] for a in schedule.at), schedule.order))
            faults = [] if made.keeps(prices) else [f"limits are not kept: {prices}"]
            return prices[case.aim], [*faults, *_steady(instance, schedule, prices["period"])]

        return claimed(MappingFormulation(), part, case.aim, engine, judged)

    def known(self, case: Case, claims: Sequence[Claim]) -> Known:
        """All schedules."""
        return Known(best(case))


TESTER = _Mapping()
