"""Brute force for several applications: every processor of every task, every order of every processor.

The objective is a response by rule, not one that is seen, so the rules of the problem are computed here once more, from
their text alone: every path through an application is walked by recursion, the response R[a] is the first of 1, 2, ...
that its inequality holds for. Lists of tasks that wait in a circle are no schedule. Then releases are simulated
(`hwmodels.board.replay.Referee`): with the safe rule no application is ever later than its R, whatever
offsets.

    safe      R >= L'[a] + sum over h < a of ceil((R + R[h]) / P[h]) * sum over p used by a of W[h][p]
              L'[a]: the longest path, B[a][p] added wherever it comes to a processor p
              B[a][p]: the longest task of lower priority there
    printed   R  = max over i of (longest path through i) + B[a][at[i]] + sum over h < a of floor(P[a] / P[h]) * W[h][p]

All schedules are looked at, so that (EQUAL) holds both ways.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations, product
from typing import Any, ClassVar, Self

import numpy as np

from formulations.applications.problem import ApplicationsFormulation, ApplicationsPart
from formulations.applications.space import Several, Stream
from formulations.mapping.space import Mapping as Instance
from hwmodels.board.replay import Referee, Repeated
from hwmodels.board.schedule import ApplicationsSchedule
from instances.machine.boards import Group
from instances.network.tasks import Task, TaskGraph
from tests.adversary import cases
from tests.adversary.cases import BruteForce, Known, claimed, less_time, times
from tests.adversary.claims import Claim

#: Release offsets that are simulated.
_DRAWS = 12
#: By application the tasks of every processor, in order.
Lists = tuple[tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True)
class Case(cases.Case):
    """Applications on processors that they share."""

    quick: ClassVar = ("exhaustive", "apart")
    slow: ClassVar = ("cp-sat",)
    rules: ClassVar = ("", "scale", "processor", "deadlines", "watts")

    sizes: tuple[int, ...]
    """Tasks by application; tasks are numbered through, the highest priority first."""
    periods: tuple[int, ...]
    deadlines: tuple[int, ...]
    times: tuple[tuple[int | None, ...], ...]
    """By task and processor, None where it cannot run."""
    edges: tuple[tuple[int, int], ...]
    copies: tuple[tuple[tuple[int, ...], ...], ...]
    """By edge, processor before and after."""
    cores: int
    """Processors from the first on that are cores, on which the first and last tasks run."""
    watts: tuple[int, ...]
    goal: tuple[int, ...]
    """The applications whose responses are minimised together; none: energy."""
    safe: bool = True

    @property
    def streams(self) -> list[range]:
        """The tasks of every application."""
        ends = [sum(self.sizes[:a]) for a in range(len(self.sizes) + 1)]
        return [range(first, end) for first, end in pairwise(ends)]

    @classmethod
    def drawn(cls, rng: random.Random) -> Case:
        """Two or three applications of one to three tasks, up to three processors."""
        sizes = tuple(rng.choice(((1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (1, 3), (4, 1), (1, 1, 1), (2, 1, 1))))
        cores, gpus = rng.choice(((1, 0), (2, 0), (2, 0), (1, 1), (2, 1)))
        number, busy = cores + gpus, rng.choice((3, 6))
        times = tuple(
            tuple(rng.randint(0, busy) if p < cores or rng.randrange(3) else None for p in range(number))
            for _ in range(sum(sizes))
        )
        alone = rng.randrange(3) == 0
        if alone:  # most tasks have one place only, and in turn the order matters
            sizes, kept = rng.choice(((4, 1), (4, 1), (5,), (3, 2))), range(number)
            only = [rng.randrange(cores) for _ in range(sum(sizes))]
            times = tuple(
                tuple(rng.randint(1, busy) if p == one or rng.randrange(8) == 0 else None for p in kept) for one in only
            )
        starts = [sum(sizes[:a]) for a in range(len(sizes))]
        edges = tuple(
            (s + i, s + j)
            for s, size in zip(starts, sizes, strict=True) for j in range(size) for i in range(j) if rng.randrange(2)
        )  # fmt: skip
        copies = tuple(
            tuple(tuple(0 if p == q else rng.randint(0, 3) for q in range(number)) for p in range(number))
            for _ in edges
        )
        periods = tuple(rng.randint(30, 60) if alone else rng.randint(4, 40) for _ in sizes)
        deadlines = tuple(rng.choice((p, p, rng.randint(max(1, p // 2), p))) for p in periods)
        goal = rng.choice(((), (0,), (len(sizes) - 1,), tuple(range(len(sizes)))))
        goal = (0,) if alone else goal
        watts = tuple(rng.randint(1, 3) for _ in range(number))
        return Case(
            sizes, periods, deadlines, times, edges, copies, cores, watts, goal, safe=rng.randrange(3) > 0,
        )  # fmt: skip

    def ruled(self, value: int, schedule: Any) -> tuple[Self, int | None] | None:
        """Other ticks or powers, later deadlines, or a processor more."""
        if self.rule == "scale":  # responses are ceilings of ticks over ticks, so all of them scale
            ticks = {name: times(getattr(self, name), 3) for name in ("times", "copies", "periods", "deadlines")}
            return replace(self, **ticks), 3 * value
        if self.rule == "watts":
            return replace(self, watts=times(self.watts, 5)), value if self.goal else 5 * value
        if self.rule == "deadlines":
            return replace(self, deadlines=self.periods), None
        copies = tuple((*((*row, 1) for row in one), (1,) * len(one) + (0,)) for one in self.copies)
        slow = tuple((*row, 2) for row in self.times)
        return replace(self, times=slow, copies=copies, watts=(*self.watts, 2)), None

    def simpler(self) -> Iterator[Self]:
        """Without an application or an edge; with smaller numbers."""
        for a, stream in enumerate(self.streams) if len(self.sizes) > 1 else ():
            kept = [e for e, (i, _) in enumerate(self.edges) if i not in stream]
            less = len(stream)
            yield replace(
                self, sizes=self.sizes[:a] + self.sizes[a + 1 :], periods=self.periods[:a] + self.periods[a + 1 :],
                deadlines=self.deadlines[:a] + self.deadlines[a + 1 :],
                times=self.times[: stream.start] + self.times[stream.stop :],
                edges=tuple(tuple(i - less * (i >= stream.stop) for i in self.edges[e]) for e in kept),  # type: ignore[misc]
                copies=tuple(self.copies[e] for e in kept), goal=tuple(g - (g > a) for g in self.goal if g != a),
            )  # fmt: skip
        for e in range(len(self.edges)):
            yield replace(
                self, edges=self.edges[:e] + self.edges[e + 1 :], copies=self.copies[:e] + self.copies[e + 1 :]
            )
        yield from (replace(self, times=times) for times in less_time(self.times))


# ---- brute force -----------------------------------------------------------------------------------------------------


class Schedules:
    """All schedules of a case and what the rules say of them."""

    def __init__(self, case: Case) -> None:
        self.case = case
        tasks, processors = range(len(case.times)), range(len(case.watts))
        inner = {i for i, _ in case.edges} & {j for _, j in case.edges}
        self.able = [
            [p for p in processors if case.times[i][p] is not None and (i in inner or p < case.cores)] for i in tasks
        ]

    def every(self) -> Iterator[tuple[tuple[int, ...], Lists]]:
        """Assignments with the lists of every application."""
        for at in product(*self.able):
            few = [
                [permutations([i for i in stream if at[i] == p]) for p in range(len(self.case.watts))]
                for stream in self.case.streams
            ]
            for lists in product(*(list(product(*mine)) for mine in few)):
                yield at, lists

    def took(self, at: Sequence[int]) -> list[int]:
        """Ticks of every task with the copies of its result."""
        found = [self.case.times[i][p] or 0 for i, p in enumerate(at)]
        for e, (i, j) in enumerate(self.case.edges):
            found[i] += self.case.copies[e][at[i]][at[j]] if at[i] != at[j] else 0
        return found

    def energy(self, at: Sequence[int]) -> int:
        """Femtojoules of one inference of each."""
        return sum(self.case.watts[p] * ticks for p, ticks in zip(at, self.took(at), strict=True))

    def responses(self, at: Sequence[int], lists: Lists) -> list[int] | None:
        """Of every application by the rule; None if a deadline is missed or lists wait in a circle."""
        case, took, found = self.case, self.took(at), list[int]()
        for a, stream in enumerate(case.streams):
            before: dict[int, list[int]] = {j: [i for i, k in case.edges if k == j] for j in stream}
            for few in lists[a]:
                for i, j in pairwise(few):
                    before[j].append(i)
            block = [max((took[j] for s in case.streams[a + 1 :] for j in s if at[j] == p), default=0)
                     for p in range(len(case.watts))]  # fmt: skip
            paths = _paths(before)
            if paths is None:
                return None
            response = self._safe if case.safe else self._printed
            one = response(a, at, took, block, paths, found)
            if one is None:
                return None
            found.append(one)
        return found

    def _safe(
        self, a: int, at: Sequence[int], took: Sequence[int], block: Sequence[int], paths: Sequence[Sequence[int]],
        earlier: Sequence[int],
    ) -> int | None:  # fmt: skip
        case, used = self.case, {at[i] for i in self.case.streams[a]}
        comes = [[k for k, i in enumerate(path) if k == 0 or at[path[k - 1]] != at[i]] for path in paths]
        alone = max(
            sum(took[i] for i in path) + sum(block[at[path[k]]] for k in come)
            for path, come in zip(paths, comes, strict=True)
        )
        work = [sum(took[i] for i in case.streams[h] if at[i] in used) for h in range(a)]
        for response in range(alone, case.deadlines[a] + 1):
            if response >= alone + sum(-(-(response + earlier[h]) // case.periods[h]) * work[h] for h in range(a)):
                return response
        return None

    def _printed(
        self, a: int, at: Sequence[int], took: Sequence[int], block: Sequence[int], paths: Sequence[Sequence[int]],
        earlier: Sequence[int],
    ) -> int | None:  # fmt: skip
        case, worst = self.case, 0
        for path in paths:
            for i in path:
                others = [
                    case.periods[a] // case.periods[h] * sum(took[k] for k in case.streams[h] if at[k] == at[i])
                    for h in range(a)
                ]
                worst = max(worst, sum(took[k] for k in path) + block[at[i]] + sum(others))
        return worst if worst <= case.deadlines[a] else None

    def value(self, at: Sequence[int], lists: Lists) -> int | None:
        """The objective, None if a deadline is missed."""
        found = self.responses(at, lists)
        if found is None:
            return None
        return sum(found[a] for a in self.case.goal) if self.case.goal else self.energy(at)

    def late(self, at: Sequence[int], lists: Lists, rng: random.Random) -> list[str]:
        """Applications that a simulation sees end after their response."""
        case, found = self.case, self.responses(at, lists)
        if found is None:
            return []
        copies = {
            (e, p, q): ticks
            for e, one in enumerate(case.copies)
            for p, r in enumerate(one)
            for q, ticks in enumerate(r)
        }
        streams = [Repeated(mine, period) for mine, period in zip(lists, case.periods, strict=True)]
        referee, said = Referee(case.edges, case.times, copies, streams), list[str]()
        for _ in range(_DRAWS):
            offsets = [rng.randrange(period) for period in case.periods]
            seen = referee.run(offsets, 4 * max(case.periods))
            said += [
                f"response {r} of application {a}, offsets {offsets} take {longest}"
                for a, (r, longest) in enumerate(zip(found, seen, strict=True)) if longest > r
            ]  # fmt: skip
        return said


def _paths(before: Mapping[int, Sequence[int]]) -> list[list[int]] | None:
    """All paths that begin and end where nothing goes on; None if there is a circle."""
    after: dict[int, list[int]] = {i: [j for j in before if i in before[j]] for i in before}
    found: list[list[int]] = []

    def onward(path: list[int]) -> bool:
        if len(path) > len(before):
            return False
        if not after[path[-1]]:
            found.append(path)
        return all(onward([*path, j]) for j in after[path[-1]])

    begun = all(onward([i]) for i in before if not before[i])
    covered = {i for path in found for i in path}
    return found if begun and covered == set(before) else None


def best(case: Case) -> int | None:
    """The least objective of all schedules, None if every one misses a deadline."""
    made = Schedules(case)
    return min((v for at, lists in made.every() if (v := made.value(at, lists)) is not None), default=None)


# ---- what engines claim ----------------------------------------------------------------------------------------------


def instance_of(case: Case) -> Several:
    """The case as the formulation wants it."""
    number = len(case.watts)
    groups = tuple(Group(f"p{k}", int(k < case.cores)) for k in range(number))
    graph = TaskGraph("n", tuple(Task(f"t{i}", "conv", 1, 1, 1, 0) for i in range(len(case.times))), case.edges)
    copies = np.array(case.copies, dtype=np.int64).reshape(len(case.edges), number, number)
    mapping = Instance(
        graph, groups, case.times, copies, case.watts, tuple(range(case.cores)), case.cores, (1,) * number, 1
    )  # fmt: skip
    streams = tuple(
        Stream(f"a{a}", stream, case.periods[a], case.deadlines[a]) for a, stream in enumerate(case.streams)
    )
    return Several(mapping, streams, "safe" if case.safe else "printed")


class _Applications(BruteForce[Case]):
    name = "applications"
    kind = Case

    def claim(self, case: Case, engine: str) -> Claim:
        """The responses of its schedule are computed here."""
        part = ApplicationsPart("n", {(): instance_of(case)})
        measure = next(name for name, goal in part.goals.items() if goal.streams == case.goal)

        def judged(said: ApplicationsSchedule) -> tuple[int | None, list[str]]:
            made, schedule = Schedules(case), part.numbered(said)
            at = schedule.at
            lists = tuple(
                tuple(tuple(i for i in schedule.order if i in stream and at[i] == p) for p in range(len(case.watts)))
                for stream in case.streams
            )
            value = made.value(at, lists)
            if value is None:
                return None, ["its schedule misses a deadline"]
            return value, made.late(at, lists, random.Random(0)) if case.safe else []

        return claimed(ApplicationsFormulation(), part, measure, engine, judged)

    def known(self, case: Case, claims: Sequence[Claim]) -> Known:
        """All schedules."""
        return Known(best(case))


TESTER = _Applications()
