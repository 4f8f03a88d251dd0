"""The time of networks with prefetch, against all schedules of tiny ones (`certile` problem fusion, objective time).

    python -m tests.adversary.network_time 1 200            # seeds 1 to 200, a line for whatever does not agree
    python -m tests.adversary.network_time 1 200 cp-sat     # the same of another engine
    python -m tests.adversary.network_time 1 200 channels   # weights in a memory of their own, every other time a queue
    python -m tests.adversary.network_time 1 200 skips      # all with layers that leave out rows and columns

All cuts, strips, turns, maps that stay, weights that stay, blocks, transfers, and all orders of the queue are tried.
The least time is compared with the time and the bound that certile states, and its plans are simulated. An example by
hand is in `test_network_time`: two layers on 3 rows of a pixel take (2 + 3) + 24 + 1 ticks in strips of a row.

Counting and simulation are of this folder alone (`network_time_nets`: layers; `network_time_groups`: strips;
`network_time_turns`: layers in turns; `network_time_alone`: layers by themselves, `network_time_nests`: cut along all
dimensions; `network_time_events`: engine and queue); what is refused is what docs/fusion.md leaves out of the space of
time.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, combinations, product
from typing import NamedTuple

from solver.calls.solve import solve
from solver.plan.plan import Plan
from tests.adversary.network_time_alone import alone
from tests.adversary.network_time_events import Job, Move, Search, simulate
from tests.adversary.network_time_groups import Beside, Groups, Part, beside
from tests.adversary.network_time_nets import Tiny, drawn, pinned, split
from tests.adversary.network_time_replay import replayed
from tests.adversary.network_time_turns import parts as turned


class Best(NamedTuple):
    """A schedule that was found."""

    ticks: int
    parts: tuple[Part, ...]
    job: Job
    order: list[int]
    when: list[int]


def joined(parts: tuple[Part, ...]) -> Job:
    """Runs one after the other."""
    steps, moves = list[tuple[int, int]](), list[Move]()
    for part in parts:
        moves += [
            Move(one.load, one.ticks, one.size, one.step + len(steps), one.store, one.rows, one.channels, one.queue)
            for one in part.moves
        ]
        steps += part.steps
    return Job(tuple(steps), tuple(moves))


@dataclass
class Brute:
    """All schedules of a network that take less than so many ticks.

    Parameters
    ----------
    seconds : float
        When it stops; it is not `complete` then.
    most : int
        Ways to run a group that are looked at.
    nests : bool
        Whether layers by themselves are cut in pieces of any sizes, too.
    coarse : bool
        Whether maps are moved whole, and filters in blocks of one size.
    """

    case: Tiny
    below: int
    seconds: float = 1e9
    most: int = 4000
    nests: bool = True
    coarse: bool = False
    complete: bool = True
    best: Best | None = None
    jobs: int = 0
    labels: int = 0
    _parts: dict[tuple[int, int, Beside], list[Part]] = field(default_factory=dict)

    def run(self) -> Best | None:
        """The best one; None if there is none."""
        self.until = time.monotonic() + self.seconds
        self.groups = Groups(self.case, coarse=self.coarse)
        paths = [
            (runs, near)
            for runs in self._cuts(len(self.case.made))
            for stay in self._stays(runs)
            if (near := [beside(self.case, *run, stay) for run in runs])
            and all(one.bytes <= self.case.memory for one in near)
        ]
        every = [[self._ways(*run, at) for run, at in zip(runs, near, strict=True)] for runs, near in paths]
        every = [ways for ways in every if all(ways)]
        for ways in sorted(every, key=lambda ways: sum(self._moving(some[0]) for some in ways)):
            for parts in self._products(
                ways, [sum(self._moving(some[0]) for some in ways[n:]) for n in range(len(ways) + 1)]
            ):
                if time.monotonic() > self.until:
                    self.complete = False
                    return self.best
                self._try(parts)
        return self.best

    def _moving(self, part: Part) -> int:
        """Ticks that some queue is busy for, at least."""
        return part.moving // self.case.queues

    def _cuts(self, count: int) -> Iterator[list[tuple[int, int]]]:
        for cuts in product((False, True), repeat=count - 1):
            ends = [t for t, cut in enumerate(cuts) if cut] + [count - 1]
            runs = [(begin, end) for begin, end in zip([0, *(e + 1 for e in ends)], ends, strict=False)]
            if all(self.case.allows(*run) for run in runs):
                yield runs

    def _stays(self, runs: list[tuple[int, int]]) -> Iterator[frozenset[int]]:
        """Maps that stay as a whole, of those that are read behind the run that makes them."""
        crossing = [
            t + 1 for first, last in runs for t in range(first, last + 1)
            if self.case.readers[t + 1] and self.case.readers[t + 1][-1] > last
        ]  # fmt: skip
        for some in chain.from_iterable(combinations(crossing, n) for n in range(len(crossing) + 1)):
            yield frozenset(some)

    def _ways(self, first: int, last: int, near: Beside) -> list[Part]:
        """All ways of a run, those that move least first."""
        key = first, last, near
        if key not in self._parts:
            found = dict[tuple[object, ...], Part]()
            every = chain(self.groups.parts(first, last, near))
            if self.case.turns:
                every = chain(every, turned(self.groups, first, last, near))
            if self.nests and first == last:
                every = chain(every, alone(self.case, first, near))
            for number, part in enumerate(every):
                if number >= self.most or time.monotonic() > self.until:
                    self.complete = False
                    break
                if self._moving(part) < self.below:
                    found.setdefault((tuple(part.steps), tuple(part.moves)), part)
            self._parts[key] = sorted(found.values(), key=self._moving)
        return self._parts[key]

    def _products(
        self, ways: list[list[Part]], least: list[int], done: tuple[Part, ...] = (), taken: int = 0
    ) -> Iterator[tuple[Part, ...]]:
        n = len(done)
        if n == len(ways):
            yield done
            return
        for part in ways[n]:
            if taken + self._moving(part) + least[n + 1] >= self.below:
                return
            yield from self._products(ways, least, (*done, part), taken + self._moving(part))

    def _try(self, parts: tuple[Part, ...]) -> None:
        if sum(part.computing for part in parts) + parts[0].opening + parts[-1].closing >= self.below:
            return
        job = joined(parts)
        search = Search(job, self.case.memory, self.below, until=self.until)
        ticks = search.run()
        self.jobs, self.labels = self.jobs + 1, self.labels + search.labels
        self.complete &= search.complete
        if ticks is not None and search.found is not None:
            again = simulate(job, self.case.memory, *search.found[1:])
            if again != ticks:
                raise AssertionError(f"{self.case}: found in {ticks}, simulated: {again}")
            self.below, self.best = ticks, Best(ticks, parts, job, *search.found[1:])


class Compared(NamedTuple):
    """What certile says of a network, and what was found."""

    status: str
    time: int | None
    bound: int | None
    brute: Brute
    coarse: Brute
    """All schedules, and those with maps moved whole and filters in blocks of one size, as certile lays plans out."""
    replayed: bool
    """Whether the plan was simulated: no layer of it runs by a nest, or in turns."""
    faults: tuple[str, ...]

    def said(self, brute: Brute) -> str:
        """How the plan compares with the schedules that were looked at, in a word."""
        best = brute.best and brute.best.ticks
        if self.time is None or best is None or best > self.time:
            word = "none" if self.time is None else "below"
        else:
            word = "equal" if best == self.time else "above"
        return word if brute.complete else f"{word}, open"

    def excess(self, brute: Brute) -> float:
        """How many times the least ticks that were found the plan takes."""
        return max(1.0, self.time / brute.best.ticks) if self.time and brute.best else 1.0


#: What else may be asked for.
WORDS = "attack", "channels", "skips"
#: Engines that decide time.
ENGINES = "dynamic", "cp-sat"


def planned(case: Tiny, engine: str = ENGINES[0]) -> Plan:
    """The plan of certile."""
    return solve(case.network, case.machine, problem="fusion", objective="time", pins=case.pins, engine=engine)


def attacked(case: Tiny, seconds: float = 1e9, engine: str = ENGINES[0]) -> tuple[Plan, Brute]:
    """Look for a schedule below the bound of certile's plan alone, which is quicker."""
    plan = planned(case, engine)
    bound = plan.part.bounds.get("time")
    brute = Brute(case, 2**40 if bound is None else bound, seconds)
    brute.run()
    return plan, brute


def compared(case: Tiny, seconds: float = 1e9, engine: str = ENGINES[0]) -> Compared:
    """Compare all schedules with certile's plan."""
    plan = planned(case, engine)
    part = plan.part
    ticks, bound = part.measures.get("time"), part.bounds.get("time")
    below = 2**40 if ticks is None else ticks + 1
    brute, coarse = Brute(case, below, seconds), Brute(case, below, seconds / 2, nests=False, coarse=True)
    best, faults = brute.run(), list[str]()
    coarse.run()
    if best is not None and bound is not None and best.ticks < bound:
        faults.append(f"a schedule takes {best.ticks}, the bound is {bound}")
    if best is not None and part.status == "OPTIMAL" and ticks is not None and best.ticks < ticks:
        faults.append(f"a schedule takes {best.ticks}, {ticks} is said to be optimal")
    if best is not None and ticks is None:
        faults.append(f"a schedule takes {best.ticks}, there is no plan")
    again = replayed(case, plan) if ticks is not None else None
    if again is not None and ticks is not None and brute.complete and (best is None or best.ticks > ticks):
        faults.append(f"no schedule takes {ticks} as that of certile, the best takes {best and best.ticks}")
    if again is not None and again != ticks:
        faults.append(f"the plan takes {ticks}, simulated: {again}")
    return Compared(part.status, ticks, bound, brute, coarse, again is not None, tuple(faults))


@dataclass
class Tally:
    """What was seen so far."""

    networks: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    every: Counter[str] = field(default_factory=Counter)
    blocks: Counter[str] = field(default_factory=Counter)
    tight: int = 0
    """Networks in which some schedule takes what the bound says."""
    simulated: int = 0
    jobs: int = 0
    labels: int = 0
    worst: tuple[float, int] = 1.0, 0
    worst_blocks: tuple[float, int] = 1.0, 0
    sums: tuple[float, float] = 0.0, 0.0

    def add(self, seed: int, found: Compared) -> None:
        """Count a network."""
        brute, coarse = found.brute, found.coarse
        self.networks += 1
        self.statuses[found.status] += 1
        self.every[found.said(brute)] += 1
        self.blocks[found.said(coarse)] += 1
        self.tight += brute.best is not None and brute.best.ticks == found.bound
        self.simulated += found.replayed
        self.jobs, self.labels = self.jobs + brute.jobs + coarse.jobs, self.labels + brute.labels + coarse.labels
        each = found.excess(brute), found.excess(coarse)
        self.worst = max(self.worst, (each[0], seed))
        self.worst_blocks = max(self.worst_blocks, (each[1], seed))
        self.sums = self.sums[0] + each[0] - 1, self.sums[1] + each[1] - 1


def smallest(case: Tiny, seconds: float, engine: str) -> Tiny:
    """A case with less of everything in which something does not agree either."""
    while True:
        for one in case.simpler():
            if one != case and one.memory > 0 and one.possible and one.pinnable and _faulty(one, seconds, engine):
                case = one
                break
        else:
            return case


def _faulty(case: Tiny, seconds: float, engine: str) -> bool:
    return bool(compared(case, seconds, engine).faults)


def attack(first: int, last: int, seconds: float, engine: str) -> None:
    """Look for schedules below the bounds of larger networks."""
    seen, jobs, labels, gaps = Counter[str](), 0, 0, 0.0
    for seed in range(first, last + 1):
        rng = random.Random(seed)
        case = pinned(drawn(rng, 4, rng.choice((4, 6, 9)), rng.choice((3, 4, 8)), 1 + seed % 2), rng)
        plan, brute = attacked(case, seconds, engine)
        jobs, labels = jobs + brute.jobs, labels + brute.labels
        seen[f"{plan.part.status}{'' if brute.complete else ' (open)'}"] += 1
        bound, ticks = plan.part.bounds.get("time"), plan.part.measures.get("time")
        gaps += 1 - bound / ticks if bound and ticks else 0
        if brute.best is not None:
            print(seed, case, f"{brute.best.ticks} is below {plan.part.bounds}, {plan.part.measures}", flush=True)
        if seed % 50 == 0:
            print(f"{seed}: {dict(seen)}, {jobs} jobs, {labels} labels, gaps {gaps:.1f}", flush=True)
    print(f"{dict(seen)}, {jobs} jobs, {labels} labels, gaps {gaps:.1f}")


def skipping(rng: random.Random) -> Tiny:
    """A network with layers that leave out rows and columns, now and then with two results."""
    return drawn(rng, 3, 5, 2, rng.choice((1, 1, 2)), skips=True)


def main(
    first: int, last: int, seconds: float, engine: str, *, channels: bool = False, skips: bool = False
) -> None:  # fmt: skip
    """Compare random networks, every other one with pins; print what does not agree, and how many do."""
    tally = Tally()
    for seed in range(first, last + 1):
        rng = random.Random(seed)
        case = skipping(rng) if skips or seed % 3 == 0 else drawn(rng)
        case = pinned(case, rng) if seed % 2 else case
        case = split(case, rng, each=seed // 2 % 2 == 0) if channels else case
        found = compared(case, seconds, engine)
        tally.add(seed, found)
        for fault in found.faults:
            print(seed, case, fault, flush=True)
        if found.faults:
            print(seed, "smallest:", smallest(case, seconds, engine), flush=True)
        if seed % 50 == 0 or seed == last:
            print(tally, flush=True)


if __name__ == "__main__":
    numbers = [float(one) for one in sys.argv[1:] if one not in (*WORDS, *ENGINES)]
    asked = next((one for one in sys.argv[1:] if one in ENGINES), ENGINES[0])
    begin, end, budget = int(numbers[0]), int(numbers[1]), numbers[2] if len(numbers) > 2 else 5
    if "attack" in sys.argv:
        attack(begin, end, budget, asked)
    else:
        main(begin, end, budget, asked, channels="channels" in sys.argv, skips="skips" in sys.argv)
