"""The least latency over all paths of options, with all orders of their transfers, to the tick: for small networks.

**Space.** What is decided, for a network on a machine with B bytes on chip:

SETS        sizes z of transfers: bytes of blocks of weights, and of pieces of maps; cuts 0..T with maps on chip; ways
            from one cut to another (`Options`: a group in strips of a height with weights that stay, or a layer by
            itself with a nest), each with its steps and transfers for z (`Part`)
VARIABLES   z; a path of ways from cut 0 to cut T that meet with the same maps on chip; of its timeline the order of the
            queue, a guard of every load, a limit of every store
CONSTRAINTS those of `formulations.prefetch.guards`: bytes of every step; what is loaded is stored before
OBJECTIVE   min latency of the timeline (`hwmodels.timeline.price`), ticks

**Sizes** are those that dynamic programming tries (`OrderDemands.sizes`) and, where there are few, all others that make
different transfers: any number of filters of a layer, with any number of rows of a map (`sizes_of`).

**Search.** Paths are enumerated, those that are not below the least first, and the order of each is decided by one
CP-SAT model (`formulations.prefetch.cp_sat`) that looks for less than the best that is known. The search ends when
no path that is left may be below the best. (One model of all paths at once would have a Boolean for every transfer of a
way and every step of all ways that may come before it, most of them of paths that a bound rules out.)

**Bounds of a path.** Clocks x = (E, A1, A2 | E, A1, A2 | Q), ticks: twice those of `products`, and the ticks of all
transfers. A way raises them by a max-plus matrix in three blocks:

    calls count     loads and stores take their ticks; what is loaded ahead in b bytes takes at most b r ticks, where r
                    is the most ticks a byte of any transfer, rounded up
    bytes count     transfers take their bytes at the least price, and b bytes ahead take just that
    Q               the queue does one transfer after the other

Of several queues each has an A1 and a Q of its own, the last one, which stores, A2, too (`products.joint`).

No event of a timeline is before these clocks: when step t ends, all later loads that have begun lie beside it, and when
it begins, all stores that have not ended. The latency is max(E, A2, Q) at the last cut. `behind` has, for a state,
rows of as many: of every way to the end what it adds to each clock, without those that others are nowhere above. So a
path up to a state is not below  min over rows of max_j (x_j + row_j),  and a whole one not below `guards.bound`.

**Example.** One step of 10 ticks, loads of 6 and 4 ticks before it and a store of 5 behind it, in no more bytes than it
has: E = 20, A1 = 20, A2 = 25, Q = 15, so it takes 25. Where 3 of its bytes were loaded ahead, by 3 ticks sooner: 22.

**What is outside**, and what bounds of time (`bounds`) cover: other bytes of weights that stay, blocks of several
sizes, other nests. So the least latency of this space is no bound for those, and a plan is OPTIMAL only where it meets
the bound of `Floors`. What is proven of this space stands beside it (`least_of_options` among the figures of a plan).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from itertools import count, product
from math import inf

import numpy as np

from formulations.clock import Clock
from formulations.fusion.arcs import Groups
from formulations.fusion.latency.channels import Channels
from formulations.fusion.latency.options import Options, Passed, There, Way, by_step
from formulations.fusion.latency.paths import Paths, undominated
from formulations.fusion.latency.products import BEFORE, Flow, joint, products
from formulations.fusion.orders import WHOLE, OrderDemands, Size, queued
from formulations.fusion.steps import Part, joined
from formulations.fusion.strips import Ints
from formulations.prefetch.guards import Draft, Order, When, bound, quality
from formulations.prefetch.mending import mended
from formulations.problem import Unable
from hwmodels.schedule import FusedRun, LayerRun, Queue
from hwmodels.timeline.schedule import Timeline

#: The most options of groups that are looked at, from every state of maps on chip to every other one; and the most
#: paths that are open at a time.
MOST_OPTIONS, MOST_OPEN = 4_000, 300_000
#: The most sizes of transfers beside those that dynamic programming tries.
MOST_SIZES = 64
#: One in so many turns is of a path that is whole.
STRIDE = 50
#: A cut, and the maps on chip there.
State = tuple[int, There]
#: The steps of a run from a layer on, beside which so many bytes lie; in blocks of weights and pieces of maps.
PartOf = Callable[[int, FusedRun | LayerRun, int, int, int], Part]


@dataclass(frozen=True, eq=False)
class Arc:
    """A way from a state to another one, with its steps for one size of transfers."""

    way: Way
    before: State
    after: State
    part: Part
    matrix: Ints
    """(clocks, clocks)."""


@dataclass(frozen=True, order=True)
class Candidate:
    """A path with its steps and transfers; `least`: what no order of them is below."""

    least: int
    number: int
    arcs: tuple[Arc, ...] = field(compare=False)
    size: Size = field(compare=False)
    timeline: Timeline = field(compare=False)

    @property
    def path(self) -> list[Passed]:
        """Its ways, with the maps on chip before and behind each."""
        return [Passed(arc.way, arc.before[1], arc.after[1]) for arc in self.arcs]

    def queue(self, order: Order, when: When) -> Queue:
        """An order as a plan has it."""
        return queued([self.size] * len(self.arcs), order, when)


@dataclass(order=True)
class _Entry:
    least: int
    number: int
    state: State = field(compare=False)
    clocks: Ints = field(compare=False)
    arcs: tuple[Arc, ...] = field(compare=False)
    of: int = field(compare=False)
    """The number of the size of transfers."""


class Whole:
    """All paths of some options; raises Unable if these are too many, and TimeUp.

    Parameters
    ----------
    every : sequence of Options
        With blocks of every size; their ways are put together.
    """

    def __init__(
        self, every: Sequence[Options], demands: OrderDemands, part: PartOf, clock: Clock, longest: int
    ) -> None:  # fmt: skip
        self.options, self.demands, self.clock, self.part = every[0], demands, clock, part
        self.room, self.count = self.options.room, len(self.options.net.layers)
        self.sizes, self.numbers = sizes_of(self.options.groups, demands), count()
        self.left: float = 0
        self.ways = self._ways(every, longest)
        self.looked = sum(map(len, self.ways.values()))
        """Ways from one state to another, of all sizes."""

    def _ways(self, every: Sequence[Options], longest: int) -> dict[tuple[State, State], list[Way]]:
        """Ways by the states that they join, those that are alike once."""
        found: dict[tuple[State, State], dict[object, Way]] = defaultdict(dict)
        for options in every:
            for moves in Paths(options, self.clock, longest, 1).moves:
                for move in moves:
                    mine = found[move.state[:2], move.after[:2]]
                    for way in move.ways:
                        mine.setdefault((way.option, way.kept, way.nest, way.blocks), way)
            if (number := sum(map(len, found.values()))) > MOST_OPTIONS:
                raise Unable(too_many(number))
        return {key: [*ways.values()] for key, ways in found.items()}

    @cached_property
    def arcs(self) -> list[dict[State, list[Arc]]]:
        """By size of transfers the arcs from every state, of ways whose steps find room."""
        made = []
        for size in self.sizes:
            self.clock.tick()
            known: dict[Way, Part] = {}
            for ways in self.ways.values():
                for way in (way for way in ways if way not in known):
                    known[way] = self.part(way.first, self.options.run(way), self.room - way.place[1], *size)
            made.append(self._joined(known))
        return made

    def _joined(self, parts: dict[Way, Part]) -> dict[State, list[Arc]]:
        channels = self.options.channels
        ratio = ratio_of(parts.values(), channels)
        found: dict[State, list[Arc]] = defaultdict(list)
        for (before, after), ways in self.ways.items():
            for way in ways:
                part = parts[way]
                if max(step.bytes for step in part.steps) <= self.room:
                    matrix = matrix_of(part, self.room, ratio, channels, ahead=self.demands.ahead)
                    found[before].append(Arc(way, before, after, part, matrix))
        return found

    def behind(self, arcs: dict[State, list[Arc]]) -> dict[State, Ints]:
        """By state what the clocks there are raised by until the end, at the least, (rows, clocks)."""
        rows = {(self.count, frozenset[int]()): np.array([last_of(self.options.channels)], np.int64)}
        for state in sorted(arcs, key=lambda state: -state[0]):
            some = [
                (rows[arc.after][:, :, None] + arc.matrix[None]).max(axis=1)
                for arc in arcs[state] if arc.after in rows
            ]  # fmt: skip
            if some:
                every = np.concatenate(some)
                rows[state] = every[undominated(every, len(every))]
        return rows

    def candidates(self, below: Callable[[], float]) -> Iterator[Candidate]:
        """Yield paths that may take less than is asked for, each once, those first that are known to be not below less.

        `left` is what those that are left are not below, the one that is yielded included. One in every STRIDE turns is
        of a path that is whole, although one that is not may be below it: what is found there rules others out.
        """
        start, seen, rows = (0, frozenset[int]()), set[Timeline](), [*map(self.behind, self.arcs)]
        open_, ready = list[_Entry](), list[Candidate]()
        zero = np.zeros(len(last_of(self.options.channels)), np.int64)
        for of, mine in enumerate(rows):
            if start in mine:
                heappush(open_, _Entry(_least(zero, mine[start]), -of, start, zero, (), of))
        for turn in count(len(rows)):
            first, second = (heap[0].least if heap else inf for heap in (open_, ready))
            self.left = min(first, second)
            if self.left >= below():
                return
            self.clock.tick()
            if second <= first or (second < below() and turn % STRIDE == 0):
                yield heappop(ready)
            elif first < below():
                entry = heappop(open_)
                if entry.state[0] < self.count:
                    for made in self._onward(entry, rows[entry.of], below()):
                        heappush(open_, made)
                elif (whole := self._candidate(entry)).timeline not in seen:
                    seen.add(whole.timeline)
                    heappush(ready, whole)
            if len(open_) > MOST_OPEN:
                raise Unable(f"engine cp-sat stops at {MOST_OPEN:,} open paths of {self.looked:,} options")

    def _onward(self, entry: _Entry, rows: dict[State, Ints], below: float) -> Iterator[_Entry]:
        """Yield a path with a way more, all that may take less."""
        for arc in self.arcs[entry.of].get(entry.state, ()):
            if arc.after in rows:
                clocks = (arc.matrix + entry.clocks).max(axis=1)
                least = max(entry.least, _least(clocks, rows[arc.after]))
                if least < below:
                    yield _Entry(least, -next(self.numbers), arc.after, clocks, (*entry.arcs, arc), entry.of)

    def _candidate(self, entry: _Entry) -> Candidate:
        timeline = joined([arc.part for arc in entry.arcs], self.demands.groups)
        least = max(entry.least, bound(timeline, self.room))
        return Candidate(least, next(self.numbers), entry.arcs, self.sizes[entry.of], timeline)

    def quick(self, made: Candidate) -> tuple[Order, When, int]:
        """An order that is found quickly, and its latency."""
        draft = Draft(made.timeline, self.room)
        order, when = self.demands.order(draft)
        if not self.demands.fixed:
            order, when = mended(draft, order, when)
        return order, when, quality(draft.clocks(order, when))[0]


def sizes_of(groups: Groups, demands: OrderDemands) -> list[tuple[int, int]]:
    """Sizes of transfers: those that dynamic programming tries, and if there are few all that differ.

    Those are any number of filters of a layer, and any number of rows of a map.
    """
    net, room, most = groups.net, groups.machine.bank_count * groups.machine.bank_bytes, demands.transfer or WHOLE
    filters = {
        k * size // number
        for layer, size in zip(net.layers, groups.weight_bytes, strict=True) if (number := layer.g * layer.m) and size
        for k in range(1, number + 1)
    }  # fmt: skip
    rows = {k * store.row_bytes(groups.machine) for store in net.stores for k in range(1, store.rows + 1)}
    largest, every = min(room, most), demands.sizes(room)
    blocks, pieces = (
        sorted(size for size in sizes if 0 < size <= largest) or [largest] for sizes in (filters, rows)
    )  # fmt: skip
    if len(blocks) * len(pieces) > MOST_SIZES:
        return every
    return list(dict.fromkeys((*every, *product(blocks, pieces))))


def too_many(options: int) -> str:
    """Why engine cp-sat does not look at so many options."""
    return (
        f"engine cp-sat looks at {MOST_OPTIONS:,} options of groups at the most, here are {options:,} or more: of the "
        "plan of engine dynamic the order of transfers is decided in windows"
    )


def ratio_of(parts: Iterable[Part], channels: Channels) -> list[int]:
    """The most ticks a byte of any transfer, rounded up; by channel."""
    most = [0] * channels.number
    for one in (one for part in parts for one in part.moves):
        c = channels.queues.index(one.queue)
        most[c] = max(most[c], -(-one.ticks // max(1, one.bytes)))
    return most


def last_of(channels: Channels) -> list[int]:
    """What the clocks of a path add to its end: nothing, but of A1 of the last queue, which A2 is behind."""
    block = [0] * channels.number + [BEFORE, 0]
    return [*block, *block, *[0] * channels.number]


def matrix_of(part: Part, room: int, ratio: Sequence[int], channels: Channels, *, ahead: bool = True) -> Ints:
    """What steps do to the clocks at least, (clocks, clocks); `ahead`: whether transfers run beside steps."""
    ticks, loads, stores = by_step(part, channels)
    first, none, block = np.array([0, len(part.steps)]), np.zeros_like(stores), channels.number + 2
    count = 2 * block + channels.number
    made = np.full((count, count), BEFORE, np.int64)
    bytes_ = np.array(channels.least)[:, None]
    each = (
        (loads[:, 0], stores[0], ratio),
        (loads[:, 1] * bytes_, stores[1] * channels.least[-1], channels.least),
    )
    for at, (load, store, price) in zip((0, block), each, strict=True):
        flows = [
            Flow(first, ticks[0], load[c], store * (c == channels.results), loads[c, 1], ticks[1], *none)
            for c in range(channels.number)
        ]
        mine = slice(at, at + block)
        made[mine, mine] = products(joint(flows, room, price, price[-1], alone=not ahead), first)[0]
    for c, moved in enumerate(loads[:, 0].sum(axis=1).tolist()):
        made[2 * block + c, 2 * block + c] = moved + stores[0].sum() * (c == channels.results)
    return made


def _least(clocks: Ints, rows: Ints) -> int:
    """What no path is below with such clocks, and one of the rows behind it."""
    return int((rows + clocks).max(axis=1).min())
