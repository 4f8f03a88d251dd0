"""The timeline of a plan of fusion: its steps and transfers, in the best order, guards and limits that are found.

Time of a plan is the latency of this timeline, as `hwmodels.timeline.price` has it: loads come before the steps that
read them, as early as is of use and memory allows, and stores end behind the steps that make them. Weights come in
blocks and transfers of at most so many bytes (`sizes_of`), pieces of maps in as many or whole, whichever are the best.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from formulations.fusion.group_time import Around, GroupTime
from formulations.fusion.orders import WHOLE, OrderDemands
from formulations.fusion.schedule import GroupPrices, Layers, Runs, left_of, option_of
from formulations.fusion.steps import GroupSteps, Part, Piece, joined, nest_steps
from formulations.prefetch.guards import Draft, bound, quality
from formulations.prefetch.mending import mended
from hwmodels.schedule import FusedRun, LayerRun, Queue
from hwmodels.timeline.price import Times, occupancy, times
from hwmodels.timeline.schedule import Timeline
from instances.errors import InputError

#: Transfers of a plan whose order is looked for (some seconds).
MOST_MOVES = 20_000
#: A run with its first and last layer.
Numbered = tuple[int, int, FusedRun | LayerRun]


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
        return [self.times.end[number - 1] for number in accumulate(len(part.steps) for part in self.parts)]


class Timelines:
    """Timelines of plans on a machine, each found once; `demands`: of their order."""

    def __init__(self, prices: GroupPrices, layers: Layers, demands: OrderDemands) -> None:
        self.prices, self.layers, self.demands = prices, layers, demands
        self.net, self.machine = layers.found, layers.machine
        self.room = self.machine.bank_count * self.machine.bank_bytes
        self._known: dict[Runs, Laid] = {}

    def laid(self, runs: Runs, numbered: Iterable[Numbered]) -> Laid:
        """The timeline of a plan's queue, or the best one that is found.

        Raises InputError if there is no timeline with that queue.
        """
        if runs not in self._known:
            each = list(numbered)
            self._known[runs] = self._found(each) if runs.queue is None else self._given(each, runs.queue)
        return self._known[runs]

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
        parts = self._parts(numbered, queue.weights, queue.maps or WHOLE)
        draft = Draft(joined(parts, self.demands.groups), self.room)
        if sorted(queue.order) != draft.order or len(queue.when) != len(draft.order):
            raise InputError(
                f"queue: order and when name each of the {len(draft.order)} transfers once, "
                f"they have {len(queue.order)} and {len(queue.when)}"
            )
        when = draft.close
        for k, at in zip(queue.order, queue.when, strict=True):
            when[k] = at
        timeline = draft.made(queue.order, when)
        return Laid(timeline, times(timeline), tuple(parts), queue.order, queue)

    def _found(self, numbered: list[Numbered]) -> Laid:
        """The best order that is found; with too many transfers each step after its own."""
        demands, sizes = self.demands, self.demands.sizes(self.room)
        first = self._parts(numbered, *sizes[0])
        if sum(len(part.moves) for part in first) > MOST_MOVES:
            draft = Draft(joined(first), self.room)
            order = draft.apart()
            alone = draft.made(order, draft.close)
            return Laid(alone, times(alone), tuple(first), tuple(order))
        several = any(isinstance(run, FusedRun) for *_, run in numbered)
        each = [first, *(self._parts(numbered, *most) for most in sizes[1:] if several)]
        drafts = [Draft(joined(parts, demands.groups), self.room) for parts in each]
        orders = [demands.order(draft) for draft in drafts]
        best = min(range(len(drafts)), key=lambda k: quality(drafts[k].clocks(*orders[k])))
        order, when = orders[best] if demands.fixed else mended(drafts[best], *orders[best])
        timeline, (weights, maps) = drafts[best].made(order, when), sizes[best]
        queue = Queue(weights, None if maps == WHOLE else maps, tuple(order), tuple(when[k] for k in order))
        return Laid(timeline, times(timeline), tuple(each[best]), queue.order, queue)

    def timeline(self, numbered: Iterable[Numbered], most: int, maps: int | None = None) -> Timeline:
        """What runs do on the engine and on the DMA queue, step by step, each load in the step that reads it.

        Weights of groups come in transfers of filters of at most so many bytes, `maps` in as many, or in others.
        """
        return joined(self._parts(numbered, most, maps))

    def _parts(self, numbered: Iterable[Numbered], most: int, maps: int | None = None) -> list[Part]:
        """The same, run by run."""
        parts, before = list[Part](), None
        for first, last, run in numbered:
            beside = self.room - left_of(self.net, self.machine, run)[1]
            if isinstance(run, FusedRun):
                laid = self.prices.laid_out(first, last, option_of(run))
                time = GroupTime(laid.group, self.machine, Around.of(run), laid.down, laid.across)
                held, kept = laid.memory(run.residents).held(run.blocks), np.array([run.weights], np.int64)
                parts.append(GroupSteps(time, held + beside, kept, self.room, most, maps=maps or most).part())
            else:
                parts.append(self.alone(first, run, beside))
                layer = self.layers.layer(first, run)
                plain, whole = self.layers.outcome(layer, run.nest), self.layers.ran(first, run, before)
                parts[-1].load(("W", first), whole.transfer_ticks - plain.transfer_ticks, whole.bytes - plain.bytes, 1)
            before = run
        return parts

    def alone(self, step: int, run: LayerRun, beside: int) -> Part:
        """The steps of a layer by itself, beside which so many bytes lie on chip."""
        reads = [self._whole(store) for store in self.net.reads[step]]
        writes = [self._whole(self.net.writes[step])]
        layer = self.layers.layer(step, run)
        return nest_steps(layer, self.machine, run.nest, beside, reads, writes, step)

    def _whole(self, store: int) -> Piece:
        """A map; with its channels, if a layer by itself makes it as others read it."""
        mine = self.net.stores[store]
        if mine.whole or len(mine.parts) != 1:
            return Piece(store, 0, mine.rows)
        maker = self.net.layers[mine.parts[0][0]]
        return Piece(store, 0, mine.rows, 0, maker.g * maker.m)
