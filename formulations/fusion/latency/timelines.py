"""The timeline of a plan of fusion: its steps and transfers, in the best order, guards and limits that are found.

Time of a plan is the latency of this timeline, as `hwmodels.timeline.price` has it: loads come before the steps that
read them, as early as is of use and memory allows, and stores end behind the steps that make them. Weights come in
blocks and transfers of at most so many bytes (`sizes_of`), pieces of maps in as many or whole, whichever are the best.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate

import numpy as np

from formulations.clock import Clock
from formulations.fusion.group_time import Around, GroupTime
from formulations.fusion.near import Near
from formulations.fusion.nest_steps import NestSteps
from formulations.fusion.orders import WHOLE, OrderDemands, Size, queued
from formulations.fusion.schedule import GroupPrices, Layers, Runs, left_of, option_of
from formulations.fusion.steps import GroupSteps, Part, Piece, joined
from formulations.prefetch.forward import forward
from formulations.prefetch.guards import Draft, Order, When, bound, quality
from formulations.prefetch.mending import mended
from hwmodels.levels.schedule import Box, NearStep
from hwmodels.schedule import FusedRun, LayerRun, Queue
from hwmodels.timeline.price import Times, occupancy, times
from hwmodels.timeline.schedule import Timeline
from instances.errors import InputError

#: Transfers of a plan whose order is looked for (some seconds), and mended.
MOST_MOVES, MENDED = 20_000, 4_000
#: Sizes of transfers of which the order is looked for: those that are the best in a first order; all of them where one
#: has no more transfers than this.
FEW, SMALL = 2, 500
#: Runs of which steps and transfers are kept for the next plans.
KEPT = 300
#: A run with its first and last layer.
Numbered = tuple[int, int, FusedRun | LayerRun]


@dataclass(eq=False)
class Source:
    """What makes the steps of a run, with ticks and bytes of weights that stay from it on."""

    steps: GroupSteps | NestSteps
    ticks: int = 0
    bytes: int = 0

    @cached_property
    def part(self) -> Part:
        """The steps and transfers."""
        part = self.steps.part()
        part.load(("W", part.layers[0]), self.ticks, self.bytes, 1)
        return part


@dataclass(eq=False)
class _Sized:
    """A run in all sizes of transfers: what makes its steps for one, and what was made."""

    steps: Callable[[Size], GroupSteps | NestSteps]
    ticks: int
    bytes: int
    known: dict[Size, Source] = field(default_factory=dict)

    def of(self, size: Size) -> Source:
        """In one size."""
        if size not in self.known:
            self.known[size] = Source(self.steps(size), self.ticks, self.bytes)
        return self.known[size]


@dataclass(frozen=True)
class Laid:
    """A timeline with its times, and what it was made of."""

    timeline: Timeline
    times: Times
    parts: tuple[Part, ...]
    """Of every run its steps and transfers."""
    order: tuple[int, ...]
    """Numbers of the transfers of all parts, as they stand in the timeline."""
    queue: Queue | None = None
    """The order of the transfers; None where there are too many to prefetch any."""

    @property
    def ticks(self) -> int:
        """The latency."""
        return self.times.latency

    @property
    def ends(self) -> list[int]:
        """When every run has ended on the engine."""
        return [self.times.end[number - 1] for number in self._last_steps]

    def run_of(self, step: int) -> int:
        """The number of the run that a step, from 1, is part of."""
        return bisect_left(self._last_steps, step)

    @cached_property
    def _last_steps(self) -> list[int]:
        return [*accumulate(len(part.steps) for part in self.parts)]


@dataclass(frozen=True)
class _Drafted:
    """Steps and transfers of a plan, weights and maps of every run in transfers of at most so many bytes."""

    parts: Sequence[Part]
    draft: Draft
    sizes: Sequence[Size]

    @cached_property
    def first(self) -> tuple[Order, When]:
        """An order that takes little time to find."""
        order, when = forward(self.draft)
        return order, self.draft.turned(order, self.draft.earliest(order, when))[0]

    @cached_property
    def quality(self) -> tuple[int, int]:
        """Of the first order; the less, the better."""
        return quality(self.draft.clocks(*self.first))

    def laid(self, order: Order, when: When) -> Laid:
        """With its transfers in some order."""
        timeline, queue = self.draft.made(order, when), queued(self.sizes, order, when)
        return Laid(timeline, times(timeline), tuple(self.parts), queue.order, queue)


@dataclass(frozen=True)
class Carried:
    """Steps and transfers of a plan with a queue, and what makes the steps of every run."""

    laid: Laid
    sources: Sequence[GroupSteps | NestSteps]


class Timelines:
    """Timelines of plans on a machine, each found once; `demands`: of their order."""

    def __init__(self, prices: GroupPrices, layers: Layers, demands: OrderDemands) -> None:
        self.prices, self.layers, self.demands = prices, layers, demands
        self.near = prices.groups.near
        self.net, self.machine = layers.found, layers.machine
        self.room = self.machine.bank_count * self.machine.bank_bytes
        self._known: dict[Runs, Laid] = {}
        self._nears: dict[tuple[NearStep, ...], Near] = {}
        self._runs: dict[object, _Sized] = {}
        self._drafted: tuple[Runs, list[_Drafted] | None] | None = None

    def laid(self, runs: Runs, numbered: Iterable[Numbered]) -> Laid:
        """The timeline of a plan's queue, or the best one that is found.

        Raises InputError if there is no timeline with that queue.
        """
        if runs not in self._known:
            self._look(runs.near)
            each = list(numbered)
            self._known[runs] = self._found(runs, each) if runs.queue is None else self._given(each, runs.queue)
        return self._known[runs]

    def _look(self, said: tuple[NearStep, ...] = ()) -> None:
        """Have steps bring their tiles through nearer memories as a plan says, or as the table does."""
        if (own := self.prices.groups.near) is None:
            return
        if said and said not in self._nears:
            self._nears = {said: Near(own.layers, own.machine, said)}
        self.near = self._nears[said] if said else own

    def near_steps(self, runs: Runs, numbered: Iterable[Numbered]) -> list[list[list[tuple[int, Box]]]]:
        """By run and step the boxes that go through nearer memories."""
        each = [*numbered]
        laid = self.laid(runs, each)
        self._look(runs.near)
        assert self.near is not None
        first = self.demands.sizes(self.room)[:1] * len(each)
        sizes = first if laid.queue is None else _sizes(laid.queue, len(each))
        return [source.steps.boxes(self.near) for source in self._sources(each, sizes)]

    def bound(self, runs: Runs, numbered: Iterable[Numbered]) -> int:
        """What no order, guards and limits of the best timeline's steps and transfers are below."""
        return bound(self.laid(runs, numbered).timeline, self.room)

    def faults(self, queue: Queue, timeline: Timeline) -> Iterator[str]:
        """Yield what a plan's own queue does not keep."""
        most = int(occupancy(timeline).max(initial=0))
        if most > self.room:
            yield f"steps and the transfers beside them take {most:,} bytes, there are {self.room:,}"
        yield from self.demands.broken(queue, timeline)

    def _given(self, numbered: list[Numbered], queue: Queue) -> Laid:
        """The timeline of a queue."""
        if queue.by_run and len(queue.by_run) != len(numbered):
            raise InputError(f"queue: by_run has sizes for {len(queue.by_run)} runs, there are {len(numbered)}")
        parts = self._parts(numbered, _sizes(queue, len(numbered)))
        draft = Draft(joined(parts, self.demands.groups), self.room)
        if said := list(_misnamed(queue, len(draft.order))):
            raise InputError(f"queue: {'; '.join(said)}")
        when = draft.close
        for k, at in zip(queue.order, queue.when, strict=True):
            when[k] = at
        timeline = draft.made(queue.order, when)
        return Laid(timeline, times(timeline), tuple(parts), queue.order, queue)

    def about(self, runs: Runs, numbered: Iterable[Numbered]) -> Laid:
        """The timeline of the best first orders, which takes little time to find; the best one where that is known."""
        each = [*numbered]
        if runs not in self._known and runs.queue is None and not self.demands.fixed:
            drafted = self._drafts(runs, each)
            if drafted is not None and not _small(drafted):
                return drafted[0].laid(*drafted[0].first)
        return self.laid(runs, each)

    def _drafts(self, runs: Runs, numbered: list[Numbered]) -> list[_Drafted] | None:
        """Steps and transfers of all sizes, those with the best first order first; None if there are too many."""
        if self._drafted is None or self._drafted[0] != runs:
            self._look(runs.near)
            sizes = self.demands.sizes(self.room)
            sources = self._sources(numbered, [sizes[0]] * len(numbered))
            made: list[_Drafted] | None = None
            if sum(source.steps.transfers for source in sources) <= MOST_MOVES:
                several = any(isinstance(run, FusedRun) for *_, run in numbered)
                each = [[source.part for source in sources]]
                each += [self._parts(numbered, [most] * len(numbered)) for most in sizes[1:] if several]
                made = [self._draft(parts, [size] * len(parts)) for parts, size in zip(each, sizes, strict=False)]
                if not self.demands.fixed:
                    made.sort(key=lambda one: one.quality)
            self._drafted = runs, made
        return self._drafted[1]

    def _draft(self, parts: Sequence[Part], sizes: Sequence[Size]) -> _Drafted:
        return _Drafted(parts, Draft(joined(parts, self.demands.groups), self.room), sizes)

    def _found(self, runs: Runs, numbered: list[Numbered]) -> Laid:
        """The best order that is found; with too many transfers each step after its own."""
        demands, drafted = self.demands, self._drafts(runs, numbered)
        if drafted is None:
            return self._one_by_one(self._sources(numbered, demands.sizes(self.room)[:1] * len(numbered)))
        return self._ordered(drafted if demands.fixed or _small(drafted) else drafted[:FEW])

    def _ordered(self, some: Sequence[_Drafted]) -> Laid:
        """The best order of some that is found."""
        demands = self.demands
        orders = [demands.order(one.draft) for one in some]
        best = min(range(len(some)), key=lambda k: quality(some[k].draft.clocks(*orders[k])))
        order, when = orders[best]
        if not demands.fixed and len(order) <= MENDED:
            order, when = mended(some[best].draft, order, when)
        return some[best].laid(order, when)

    def resized(self, runs: Runs, numbered: Iterable[Numbered], clock: Clock) -> Laid:
        """The timeline of a plan, with sizes of transfers of their own for runs that wait, and those before them.

        One run after the other, the longest waits first, has all sizes tried in a first order, all else as it is. Then
        a full order is found, which takes no longer than that of one size for all.
        """
        each = [*numbered]
        laid = self.laid(runs, each)
        drafted = None if self.demands.fixed or laid.queue is None else self._drafts(runs, each)
        if drafted is None or laid.queue is None or laid.queue.by_run or len(laid.order) > MENDED:
            return laid
        mine = _sizes(laid.queue, len(each))
        best = now = next(one for one in drafted if [*one.sizes] == mine)
        for k in _late(laid):
            for other in drafted:
                if clock.over:
                    return laid
                if len(other.parts[k].moves) != len(best.parts[k].moves):
                    best = min(best, self._draft(*_with(best, k, other)), key=lambda one: one.quality)
        if best is now:
            return laid
        return min(laid, self._ordered([best]), key=lambda one: one.ticks)

    def spared(self, runs: Runs, numbered: Iterable[Numbered], spares: Mapping[int, int]) -> Queue:
        """The best order of a queue's transfers that is found where bytes stay free beside what steps have.

        `spares`: how many, by number of the run whose steps these are. Raises InputError for a plan without a queue.
        """
        if (queue := runs.queue) is None:
            raise InputError("too many transfers: none is prefetched")
        self._look(runs.near)
        each = [*numbered]
        sizes = _sizes(queue, len(each))
        parts = self._parts(each, sizes)
        draft, begins = Draft(joined(parts, self.demands.groups), self.room), [0]
        begins += accumulate(len(part.steps) for part in parts)
        for run, spare in spares.items():
            draft.keep(range(begins[run] + 1, begins[run + 1] + 1), spare)
        return self._ordered([_Drafted(parts, draft, sizes)]).queue or queue

    def _one_by_one(self, sources: Iterable[Source]) -> Laid:
        """Each layer or group as one step, behind its loads and ahead of its stores."""
        parts = [source.steps.whole(source.ticks) for source in sources]
        draft = Draft(joined(parts), self.room)
        order = draft.apart()
        timeline = draft.made(order, draft.close)
        return Laid(timeline, times(timeline), tuple(parts), tuple(order))

    def timeline(self, numbered: Iterable[Numbered], most: int, maps: int | None = None) -> Timeline:
        """What runs do on the engine and on the DMA queue, step by step, each load in the step that reads it.

        Weights of groups come in transfers of filters of at most so many bytes, `maps` in as many, or in others.
        """
        return joined(self.parts(numbered, most, maps))

    def parts(self, numbered: Iterable[Numbered], most: int, maps: int | None = None) -> list[Part]:
        """The steps and transfers of every run by itself."""
        self._look()
        each = [*numbered]
        return self._parts(each, [(most, maps or most)] * len(each))

    def _parts(self, numbered: Sequence[Numbered], sizes: Sequence[Size]) -> list[Part]:
        return [source.part for source in self._sources(numbered, sizes)]

    def carried(self, runs: Runs, numbered: Iterable[Numbered]) -> Carried | None:
        """The steps and transfers of a plan with what makes them; None where none is prefetched."""
        each = list(numbered)
        laid = self.laid(runs, each)
        self._look(runs.near)
        if (queue := laid.queue) is None:
            return None
        return Carried(laid, [source.steps for source in self._sources(each, _sizes(queue, len(each)))])

    def _sources(self, numbered: Sequence[Numbered], sizes: Sequence[Size]) -> list[Source]:
        """What makes the steps of every run, and what weights that stay from it on take to load."""
        made, before = list[Source](), None
        for (first, _, run), size in zip(numbered, sizes, strict=True):
            beside, more = self.room - left_of(self.net, self.machine, run)[1], (0, 0)
            if not isinstance(run, FusedRun):
                layer, size = self.layers.layer(first, run), (WHOLE, WHOLE)
                plain, ran = self.layers.outcome(layer, run.nest), self.layers.ran(first, run, before)
                more = ran.transfer_ticks - plain.transfer_ticks, ran.bytes - plain.bytes
            made.append(self._sized(first, run, beside, *more).of(size))
            before = run
        return made

    def _sized(self, first: int, run: FusedRun | LayerRun, beside: int, ticks: int, size: int) -> _Sized:
        """A run with weights that stay from it on; the same wherever in the memory it lies."""
        bare = replace(run, banks=(), residents={store: (rows, ()) for store, (rows, _) in run.residents.items()})
        key = first, bare, beside, ticks, size, self.near
        if key not in self._runs:
            if len(self._runs) == KEPT:
                self._runs.pop(next(iter(self._runs)))
            self._runs[key] = _Sized(self._steps(first, bare, beside), ticks, size)
        return self._runs[key]

    def _steps(self, first: int, run: FusedRun | LayerRun, beside: int) -> Callable[[Size], GroupSteps | NestSteps]:
        """What makes the steps of a run, in transfers of some sizes."""
        if not isinstance(run, FusedRun):
            nest = self._nest(first, run, beside)
            return lambda _: nest
        laid = self.prices.laid_out(run.first, run.last, option_of(run))
        time = GroupTime(laid.group, self.machine, Around.of(run), laid.down, laid.across, self.near)
        held, kept = laid.memory(run.residents).held(run.blocks) + beside, np.array([run.weights], np.int64)
        return lambda size: GroupSteps(time, held, kept, self.room, size[0], maps=size[1])

    def part(self, first: int, run: FusedRun | LayerRun, beside: int, most: int, maps: int) -> Part:
        """The steps of a run from a layer on, beside which so many bytes lie on chip."""
        self._look()
        return self._steps(first, run, beside)((most, maps)).part()

    def alone(self, step: int, run: LayerRun, beside: int) -> Part:
        """The steps of a layer by itself, beside which so many bytes lie on chip."""
        self._look()
        return self._nest(step, run, beside).part()

    def _nest(self, step: int, run: LayerRun, beside: int) -> NestSteps:
        reads = [self._whole(store) for store in self.net.reads[step]]
        writes = [self._whole(self.net.writes[step])]
        layer = self.layers.layer(step, run)
        return NestSteps(layer, self.machine, run.nest, beside, reads, writes, step, self.near)

    def _whole(self, store: int) -> Piece:
        """A map; with its channels, if a layer by itself makes it as others read it."""
        mine = self.net.stores[store]
        if mine.whole or len(mine.parts) != 1:
            return Piece(store, 0, mine.rows)
        maker = self.net.layers[mine.parts[0][0]]
        return Piece(store, 0, mine.rows, 0, maker.g * maker.m)


class Measures(Mapping[str, int]):
    """Measures of a plan, of which time is found when it is asked for."""

    def __init__(self, known: Mapping[str, int], time: Callable[[], int]) -> None:
        self._known, self._time = known, time

    def __getitem__(self, name: str) -> int:
        return self._time() if name == "time" else self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._known, "time"))

    def __len__(self) -> int:
        return len(self._known) + 1

    def __reduce__(self) -> tuple[type, tuple[dict[str, int]]]:
        """As numbers for another process."""
        return dict, (dict(self),)


def _late(laid: Laid) -> list[int]:
    """Runs that wait for transfers, and those before them, by the ticks that they wait."""
    waits = Counter[int]()
    for one in laid.times.waits:
        k = laid.run_of(one.step)
        waits[k] += one.ticks
        waits[k - 1] += one.ticks
    return [k for k, _ in waits.most_common() if k >= 0]


def _with(drafted: _Drafted, k: int, other: _Drafted) -> tuple[list[Part], list[Size]]:
    """Parts and sizes with those of another for one run."""
    parts, sizes = [*drafted.parts], [*drafted.sizes]
    parts[k], sizes[k] = other.parts[k], other.sizes[k]
    return parts, sizes


def _sizes(queue: Queue, runs: int) -> list[Size]:
    """The most bytes of blocks of weights and of transfers of maps, by run."""
    return [(weights, maps or WHOLE) for weights, maps in queue.by_run or ((queue.weights, queue.maps),) * runs]


def _small(drafted: Sequence[_Drafted]) -> bool:
    """Whether an order takes little time to find."""
    return min(len(one.draft.order) for one in drafted) <= SMALL


def _misnamed(queue: Queue, number: int) -> Iterator[str]:
    """Yield what is wrong with the numbers of a queue's transfers."""
    if len(queue.order) != number or len(queue.when) != number:
        yield (
            f"blocks of {queue.weights:,} bytes make {number} transfers, order has {len(queue.order)} of them, "
            f"when {len(queue.when)}"
        )
    seen = Counter(queue.order)
    if wrong := [k for k, times in seen.items() if k >= number or times > 1]:
        yield f"order names transfer {wrong[0]} {'twice' if seen[wrong[0]] > 1 else f'of {number}'}"
