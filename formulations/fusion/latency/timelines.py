"""The timeline of a plan of fusion: its steps and transfers, in the best order, guards and limits that are found.

Time of a plan is the latency of this timeline, as `hwmodels.timeline.price` has it: loads come before the steps that
read them, as early as is of use and memory allows, and stores end behind the steps that make them. Weights come in
blocks and transfers of at most so many bytes (`sizes_of`), pieces of maps in as many or whole, whichever are the best.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from formulations.fusion.group_time import Around, GroupTime
from formulations.fusion.latency.options import Runs
from formulations.fusion.schedule import GroupPrices, Layers, left_of, option_of
from formulations.fusion.steps import WHOLE, GroupSteps, Part, Piece, joined, nest_steps
from formulations.prefetch.guards import Draft, apart, bound, quality
from formulations.prefetch.mending import mended
from hwmodels.schedule import FusedRun, LayerRun
from hwmodels.timeline.price import Times, times
from hwmodels.timeline.schedule import Timeline

#: Transfers of a plan whose order is looked for (some seconds), and the most bytes of one of weights.
MOST_MOVES, MOST_BYTES = 20_000, 2**16
#: A run with its first and last layer.
Numbered = tuple[int, int, FusedRun | LayerRun]


@dataclass(frozen=True)
class Laid:
    """A timeline with its times."""

    timeline: Timeline
    times: Times
    steps: tuple[int, ...] = ()
    """Of every run how many."""
    ahead: bool = True
    """Whether loads are prefetched; not where there are too many transfers."""

    @property
    def ticks(self) -> int:
        """The latency."""
        return self.times.latency

    @property
    def ends(self) -> list[int]:
        """When every run has ended on the engine."""
        return [self.times.end[number - 1] for number in accumulate(self.steps)]


def sizes_of(room: int) -> tuple[int, int, int]:
    """The most bytes of blocks and transfers of weights that are tried: an eighth of the memory, half, a quarter.

    At least 4 KiB, at most 64 KiB: 64, 32 and 16 KiB on 512 KiB and more.
    """
    most = min(MOST_BYTES, 2 ** max(12, (room // 8).bit_length() - 1))
    return most, most // 2, most // 4


class Timelines:
    """Timelines of plans on a machine, each found once."""

    def __init__(self, prices: GroupPrices, layers: Layers) -> None:
        self.prices, self.layers = prices, layers
        self.net, self.machine = layers.found, layers.machine
        self.room = self.machine.bank_count * self.machine.bank_bytes
        self._known: dict[Runs, Laid] = {}

    def laid(self, runs: Runs, numbered: Iterable[Numbered]) -> Laid:
        """The best timeline that is found; with too many transfers one step and transfer after the other."""
        if runs not in self._known:
            self._known[runs] = self._laid(list(numbered))
        return self._known[runs]

    def bound(self, runs: Runs, numbered: Iterable[Numbered]) -> int:
        """What no order, guards and limits of the best timeline's steps and transfers are below."""
        return bound(self.laid(runs, numbered).timeline, self.room)

    def _laid(self, numbered: list[Numbered]) -> Laid:
        sizes = sizes_of(self.room)
        first = self._parts(numbered, sizes[0])
        if sum(len(part.moves) for part in first) > MOST_MOVES:
            alone = apart(joined(first))
            return Laid(alone, times(alone), tuple(len(part.steps) for part in first), ahead=False)
        more = ((sizes[0], WHOLE), *((most, most) for most in sizes[1:]))
        several = any(isinstance(run, FusedRun) for *_, run in numbered)
        each = [first, *(self._parts(numbered, *most) for most in more if several)]
        drafts = [Draft(joined(parts), self.room) for parts in each]
        orders = [draft.soon() for draft in drafts]
        best = min(range(len(drafts)), key=lambda k: quality(drafts[k].clocks(*orders[k])))
        timeline = drafts[best].made(*mended(drafts[best], *orders[best]))
        return Laid(timeline, times(timeline), tuple(len(part.steps) for part in each[best]))

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
                parts[-1].load(whole.transfer_ticks - plain.transfer_ticks, whole.bytes - plain.bytes, 1)
            before = run
        return parts

    def alone(self, step: int, run: LayerRun, beside: int) -> Part:
        """The steps of a layer by itself, beside which so many bytes lie on chip."""
        reads = [self._whole(store) for store in self.net.reads[step]]
        writes = [self._whole(self.net.writes[step])]
        return nest_steps(self.layers.layer(step, run), self.machine, run.nest, beside, reads, writes)

    def _whole(self, store: int) -> Piece:
        """A map; with its channels, if a layer by itself makes it as others read it."""
        mine = self.net.stores[store]
        if mine.whole or len(mine.parts) != 1:
            return Piece(store, 0, mine.rows)
        maker = self.net.layers[mine.parts[0][0]]
        return Piece(store, 0, mine.rows, 0, maker.g * maker.m)
