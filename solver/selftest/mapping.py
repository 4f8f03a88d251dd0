"""Brute force for F5 mapping: every place of every task, and for latency every order on every processor.

A case is drawn as plain numbers, like those of a board: what a copy takes depends on whether cores or accelerators are
at its ends (equal cores are merged for bounds, so copies must not tell them apart). A place is a processor, or two
with k and S - k of S shares of a task: k shares take ceil(k * time / S) + sync there (k < S), and each part hands its
shares to every other processor that has a part of a reader. Parts are tasks of their own for the referee, so that

    latency   the end of the last part (`hwmodels.board.replay.replay_once`); lists that wait in a circle are none
    loads     what that simulation saw each processor do
    period    max(1, max_p load[p], ceil(100 * sum_p cores[p] * load[p] / (cap * C)))
    energy    sum_p watts[p] * load[p]

All schedules are looked at, so that (EQUAL) holds both ways.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import cast

import numpy as np

from formulations.mapping.parts import parts
from formulations.mapping.pipeline import pipelined
from formulations.mapping.places import Split
from formulations.mapping.problem import Aim, Limits, Schedule
from formulations.mapping.problem import Mapping as Instance
from hwmodels.board.replay import Seen, replay_once
from instances.processors import Group
from instances.tasks import Task, TaskGraph
from solver.mapping.base import Asked
from solver.mapping.engines import MAPPING_ENGINES
from solver.mapping.parts import replayed
from solver.selftest.base import Disagreement
from solver.selftest.cases import Recorded, json_of
from solver.selftest.claims import Claim, asked, contradictions, some_engines

__all__ = ["TESTER", "Case", "Timetables", "best"]

QUICK, SLOW = ("exhaustive", "heft", "single"), ("auto", "milp", "cp-sat", "milp-cbc", "cpop", "peft")
#: What is left to an engine that takes longer than it ever should, seconds.
_LIMIT_S = 5.0
#: Processors with their shares.
Place = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Case:
    """Tasks on processors.

    Attributes
    ----------
    times : by task and processor, None where it cannot run
    copies : by shares (1 to `shares`), edge, processor before and after
    cores : by processor, 0 for an accelerator; the first and last tasks run on the others
    divided : tasks that may be divided
    rule : the metamorphic rule that is tried
    """

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
    engines: tuple[str, ...] = QUICK
    rule: str = ""


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
        return replay_once(edges, table, copies, cast("list[list[int]]", lists))

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


def claim(case: Case, engine: str) -> Claim:
    """What an engine says; its schedule is priced by the referee."""
    made, limits = Timetables(case), Limits(case.cap, case.period, case.energy, case.latency)
    wanted = Asked(instance_of(case), cast(Aim, case.aim), limits, _LIMIT_S)
    said = MAPPING_ENGINES[engine].run(wanted)
    if said.schedule is None:
        return Claim(engine, said.status, None, said.bound)
    places = tuple(wanted.mapping.places[a] for a in said.schedule.at)
    prices = made.prices(made.run(places, said.schedule.order))
    faults = [] if made.keeps(prices) else [f"limits are not kept: {prices}"]
    faults += _steady(wanted, said.schedule, prices["period"])
    return Claim(engine, said.status, prices[case.aim], said.bound, tuple(faults))


def _steady(wanted: Asked, schedule: Schedule, period: int) -> Iterator[str]:
    """What is wrong when inference follows inference; nothing is asked of one inference alone."""
    if schedule.order or period <= 1:
        return
    flat = parts(wanted.mapping, schedule.at)
    seen = replayed(flat.mapping, flat.at, pipelined(flat.mapping, flat.at, period), period)
    yield from (f"a period of {period}: {fault}" for fault in seen.faults)


class _Mapping(Recorded):
    name = "mapping"
    summary = "every assignment and every order of a few tasks on a few processors"

    def case(self, rng: random.Random) -> object:
        """One to four tasks on up to three processors; a limit near what some schedule takes."""
        case = _drawn(rng)
        if rng.randrange(2):
            made = Timetables(case)
            prices = made.prices(made.run(tuple(rng.choice(places) for places in made.places)))
            name = rng.choice([n for n in ("period", "energy", "latency") if n != case.aim])
            case = replace(case, **{name: max(1, prices[name] + rng.choice((-3, -1, 0, 2)))})  # type: ignore[arg-type]
        return case

    def run(self, case: object, rng: random.Random) -> list[Disagreement]:
        """Compare; nothing is left to chance, so that a find repeats."""
        assert isinstance(case, Case)
        claims = [asked(name, lambda name=name: claim(case, name)) for name in case.engines]  # type: ignore[misc]
        said = [*contradictions(claims, best(case), complete=True), *_rules(case)]
        return [Disagreement(self.name, line, json_of(case)) for line in said]

    def smaller(self, case: object) -> Iterator[object]:
        """Without a task, an edge, a processor, shares, limits or the rule; with smaller numbers."""
        assert isinstance(case, Case)
        return _smaller(case)


TESTER = _Mapping(Case)


# ---- cases -----------------------------------------------------------------------------------------------------------


def _drawn(rng: random.Random) -> Case:
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
    return Case(
        tuple(times), edges, copies, cores, watts, aim, rng.choice((100, 100, 70, 40)) if aim != "latency" else 100,
        shares=shares, divided=divided, sync=rng.randint(0, 2), engines=some_engines(rng, QUICK, SLOW),
        rule=rng.choice(("", "pin", "scale", "watts", "cap", "limits", "processor")),
    )  # fmt: skip


def _copies(cores: tuple[int, ...], rng: random.Random) -> tuple[tuple[int, ...], ...]:
    """Ticks by processor before and after; on a board they differ between cores and accelerators only."""
    ticks = {(a, b): rng.randint(0, 5) for a in (False, True) for b in (False, True)}
    number = range(len(cores))
    return tuple(tuple(0 if p == q else ticks[cores[p] > 0, cores[q] > 0] for q in number) for p in number)


def _rules(case: Case) -> Iterator[str]:
    """One metamorphic rule, by the quickest engine."""
    before = claim(case, "exhaustive")
    if before.status != "OPTIMAL" or before.value is None:
        return
    exact = case.shares == 1 and case.cap == 100 and before.value > 1
    if case.rule == "pin" and case.shares == 1:
        said = MAPPING_ENGINES["exhaustive"].run(
            Asked(
                instance_of(case), cast(Aim, case.aim), Limits(case.cap, case.period, case.energy, case.latency), None
            )
        )
        kept = zip(case.times, said.schedule.at if said.schedule else (), strict=True)
        pinned = replace(case, times=tuple(tuple(t if q == p else None for q, t in enumerate(r)) for r, p in kept))
        yield from _expected(before, claim(pinned, "exhaustive"), before.value, "pinned to its own assignment")
    elif case.rule == "scale" and exact:
        scaled = _scaled(case, 3)
        more = 3 * before.value
        yield from _expected(before, claim(scaled, "exhaustive"), more, "3 times all ticks and limits")
    elif case.rule == "watts" and case.aim == "energy":
        many = replace(case, watts=tuple(5 * w for w in case.watts), energy=_times(case.energy, 5))
        yield from _expected(before, claim(many, "exhaustive"), 5 * before.value, "5 times all powers")
    elif case.rule in ("cap", "limits", "processor"):
        yield from _never_worse(before, claim(_freer(case), "exhaustive"), case.rule)


def _freer(case: Case) -> Case:
    """The same with more freedom."""
    if case.rule == "cap":
        return replace(case, cap=100)
    if case.rule == "limits":
        return replace(case, period=None, energy=None, latency=None)
    copies = tuple(tuple((*((*row, 1) for row in one), (1,) * len(one) + (0,)) for one in few)
                   for few in case.copies)  # fmt: skip
    times = tuple((*row, 3) for row in case.times)
    return replace(case, times=times, copies=copies, cores=(*case.cores, 0), watts=(*case.watts, 2))


def _times(limit: int | None, factor: int) -> int | None:
    return None if limit is None else limit * factor


def _scaled(case: Case, k: int) -> Case:
    return replace(
        case, times=tuple(tuple(_times(t, k) for t in row) for row in case.times),
        copies=tuple(tuple(tuple(tuple(k * t for t in r) for r in one) for one in few) for few in case.copies),
        period=_times(case.period, k), energy=_times(case.energy, k), latency=_times(case.latency, k),
    )  # fmt: skip


def _expected(before: Claim, after: Claim, value: int, what: str) -> Iterator[str]:
    if (after.status, after.value) != ("OPTIMAL", value):
        yield f"{before}; {what}: {after}, expected {value}"


def _never_worse(before: Claim, after: Claim, what: str) -> Iterator[str]:
    if after.status != "OPTIMAL" or after.value is None or (before.value is not None and after.value > before.value):
        yield f"{before}; with more freedom ({what}): {after}"


def _smaller(case: Case) -> Iterator[Case]:
    number = len(case.times)
    yield from (replace(case, engines=(name,)) for name in case.engines if len(case.engines) > 1)
    for i in range(number) if number > 1 else ():
        kept = [e for e, edge in enumerate(case.edges) if i not in edge]
        yield replace(
            case, times=case.times[:i] + case.times[i + 1 :],
            edges=tuple((a - (a > i), b - (b > i)) for a, b in (case.edges[e] for e in kept)),
            copies=tuple(tuple(few[e] for e in kept) for few in case.copies),
            divided=tuple(d - (d > i) for d in case.divided if d != i),
        )  # fmt: skip
    for e in range(len(case.edges)):
        copies = tuple(few[:e] + few[e + 1 :] for few in case.copies)
        yield replace(case, edges=case.edges[:e] + case.edges[e + 1 :], copies=copies)
    if case.shares > 1:
        yield replace(case, shares=1, divided=(), copies=case.copies[-1:])
    if case.rule:
        yield replace(case, rule="")
    for name in ("period", "energy", "latency"):
        if getattr(case, name) is not None:
            yield replace(case, **{name: None})  # type: ignore[arg-type]
    for i, row in enumerate(case.times):
        for p, time in enumerate(row):
            for less in sorted({0, (time or 0) // 2} - {time}) if time else ():
                made = (*row[:p], less, *row[p + 1 :])
                yield replace(case, times=(*case.times[:i], made, *case.times[i + 1 :]))
    if any(c for few in case.copies for one in few for row in one for c in row):
        yield replace(case, copies=tuple(tuple(tuple(tuple(0 for _ in r) for r in o) for o in f) for f in case.copies))
