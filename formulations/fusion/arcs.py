"""The arcs of fusion: every group with those of its options that may be best, priced for every amount of room.

An example: two layers of 56 rows may run in strips of 1 to 56 rows, of 56, 28, 14, .. columns, with two modes
along each axis: 1,232 options. A glimpse at four visits of each says what no peak is below:

    bound = W + (n - 1) E(f - glimpse)      W: bytes of all weights; n: the fewest visits of a layer with weights
                                            f: room; E: the fewest bytes of weights that do not stay

(infinite if there is no room for streaming). Options are priced exactly as long as their bound is below the best of
those before anywhere, at some room and for some maps on chip; the others are no better anywhere, and left out. Those
that compute again are compared with the ones that do not, as they read and compute no less. Only where a reader skips
rows or columns (a stride above its window) strips that compute again may leave these out: such options are all priced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from formulations.fusion.groups import AXES, NEVER, Group, Net
from formulations.fusion.memory import Memory, Option, Turns, Weights, weights_of
from formulations.fusion.near import Near
from formulations.fusion.pins import Demands
from formulations.fusion.space import Arc, Residence, along
from formulations.fusion.strips import Ints, Mode, Strips, Way, strips
from hwmodels.nest.price.limits import tensor_bytes
from instances.machine.machine import Machine

ONCE: tuple[Mode, ...] = ("lead", "retain")
MODES: tuple[Mode, ...] = (*ONCE, "recompute")
#: Groups compute at most so many times the MACs of their layers once.
MOST_AGAIN = 2


def parts_of(width: int) -> list[int]:
    """Widths of parts of rows that are tried: for 2, 4, 8, ... steps the least, down to one column."""
    return sorted({-(-width // 2**k) for k in range(1, (width - 1).bit_length() + 1)}, reverse=True)


def ways(group: Group, tall: Sequence[int], modes: Sequence[Mode]) -> tuple[Strips, Strips] | None:
    """Return how a group may go along rows, of these heights, and along columns; None if it cannot."""
    width = group.net.layers[group.last].c
    narrow: list[Way] = [(mode, part) for mode in modes for part in parts_of(width)]
    down = strips(group, "rows", [(mode, height) for mode in modes for height in tall])
    across = strips(group, "columns", [("lead", width), *narrow])
    return None if down is None or across is None else (down, across)


@dataclass(frozen=True, eq=False)
class PricedOption:
    """An option: weights loaded by classes and banks, bytes read by store and level, MACs; without one a bound."""

    option: Option | None
    table: Ints
    reads: dict[int, Ints]
    macs: int


@dataclass(frozen=True, eq=False)
class Pricing:
    """A group on a machine."""

    group: Group
    weights: Weights
    stores: tuple[int, ...]
    """Those that may lie on chip all the time."""
    turns: tuple[Turns, ...]
    """Layers that may take turns for some channels."""
    levels: dict[int, Ints]
    """For every outside store the rows on chip at each level."""
    room: Ints
    """Bytes of every number of banks, (B + 1,)."""
    down: Strips
    across: Strips
    """`down`, `across`: along rows and along columns; an option is one of each. The first keeps what is needed again.
    """

    def sketch(self) -> PricedOption | None:
        """What no option is below; None if none finds room."""
        fewest, _, least = self._least(np.arange(self._fewest.size))
        table = self._bound(fewest[:, None, None], self.room - least[..., None]).min(axis=0)
        if table.min() >= NEVER:
            return None
        return PricedOption(None, self._by_store(table), self._reads(self.down, self.across), int(self._macs.min()))

    def options(self) -> Iterator[PricedOption]:
        """Yield the options that fit and may be best, those first that compute nothing again."""
        best = np.full((2 ** len(self.stores), len(self.room)), NEVER, np.int64)
        never = np.full_like(best, NEVER)
        kinds = ~self._again, self._again & ~self._skips, self._skips
        once = sum(self.group.net.layers[t].macs for t in self.group.layers)
        for kind in kinds:
            waiting = np.flatnonzero(kind & (self._macs <= MOST_AGAIN * once))
            best = never if kind is self._skips else best
            while (following := self._next(waiting, best)) is not None:
                number, waiting = following
                i, j = (int(k) for k in np.unravel_index(number, self._again.shape))
                if (table := self._loaded(i, j, best)) is None:
                    continue
                if kind is kinds[0]:
                    best = np.minimum(best, table)
                (rows, height), (columns, width) = self.down.ways[i], self.across.ways[j]
                option = Option(height, width, rows, columns, self.group.twice, self.group.sampled)
                reads = self._reads(self.down.only(i), self.across.only(j))
                yield PricedOption(option, self._by_store(table), reads, int(self._macs[i, j]))

    # ---- all options -------------------------------------------------------------------------------------------------

    @cached_property
    def _glimpse(self) -> Ints:
        """Bytes on chip that no peak is below, (subsets of stores, ways of rows, ways of columns)."""
        return self._memory(self.down.sampled(), self.across.sampled()).peaks()

    @cached_property
    def _fewest(self) -> Ints:
        """The fewest visits of a layer that has weights, (ways of rows, ways of columns)."""
        weighty = [k for k, size in enumerate(self.weights.bytes) if size] or [0]
        fewest: Ints = self.down.active[weighty].min(axis=0)[:, None] * self.across.active[weighty].min(axis=0)
        return fewest

    @cached_property
    def _macs(self) -> Ints:
        layers = [self.group.net.layers[t] for t in self.group.layers]
        each = np.array([x.macs // (x.r * x.c) for x in layers], np.int64)
        macs: Ints = np.einsum(
            "k,ki,kj->ij", each, self.down.computed[: len(layers)], self.across.computed[: len(layers)]
        )
        return macs

    @cached_property
    def _again(self) -> npt.NDArray[np.bool_]:
        """Whether an option computes something again."""
        rows, columns = (np.array([mode == "recompute" for mode, _ in axis.ways]) for axis in (self.down, self.across))
        again: npt.NDArray[np.bool_] = rows[:, None] | columns
        return again

    @cached_property
    def _skips(self) -> npt.NDArray[np.bool_]:
        """Whether an option leaves out rows or columns that nobody reads."""
        skips: npt.NDArray[np.bool_] = self.down.skips[:, None] | self.across.skips
        return skips

    # ---- bounds ------------------------------------------------------------------------------------------------------

    def _next(self, waiting: Ints, best: Ints) -> tuple[int, Ints] | None:
        """Of options one whose bound is the least most often, and the others whose bounds are below the best."""
        if not waiting.size:
            return None
        fewest, number, least = self._least(waiting)
        bound = self._bound(fewest[:, None, None], self.room - least[..., None])  # (visits, subsets, rooms)
        place = bound.argmin(axis=0)[bound.min(axis=0) < best]
        if not place.size:
            return None
        seen = self._glimpse.reshape(len(best), -1)[:, waiting]
        chosen = np.flatnonzero(number == np.bincount(place).argmax())
        first = chosen[seen[:, chosen].sum(axis=0).argmin()]
        good = np.asarray((self._most(fewest, best)[number] >= seen.T).any(axis=1))
        good[first] = False
        return int(waiting[first]), waiting[good]

    def _least(self, options: Ints) -> tuple[Ints, Ints, Ints]:
        """Fewest visits, none twice; for every option its place there; the least glimpse of each, by subset."""
        fewest, number = np.unique(self._fewest.ravel()[options], return_inverse=True)
        least = np.full((len(fewest), len(self._glimpse)), NEVER, np.int64)
        np.minimum.at(least, number, self._glimpse.reshape(len(self._glimpse), -1)[:, options].T)
        return fewest, number, least

    def _bound(self, fewest: Ints, room: Ints) -> Ints:
        """Bytes that options with so many visits load at least in so much room beside their strips."""
        total = sum(self.weights.bytes)
        again = np.full(room.shape, NEVER, np.int64)
        for buffer, must in self.weights.buffers:
            again = np.where(room >= must, np.minimum(again, np.maximum(total + buffer - room, 0)), again)
        bound: Ints = np.where(again < NEVER, total + (fewest - 1) * again, NEVER)
        return bound

    def _most(self, fewest: Ints, best: Ints) -> Ints:
        """The most bytes of strips with which the bound for so many visits is below the best, (visits, subsets)."""
        total, times = sum(self.weights.bytes), fewest[:, None, None] - 1
        again = np.where(times > 0, (best - total - 1) // np.maximum(times, 1), NEVER)
        least = np.full(again.shape, NEVER, np.int64)
        for buffer, must in self.weights.buffers:
            least = np.minimum(least, np.maximum(must, total + buffer - again))
        most: Ints = np.where(best > total, self.room - least, -1).max(axis=2)
        return most

    # ---- one option --------------------------------------------------------------------------------------------------

    def _loaded(self, i: int, j: int, best: Ints) -> Ints | None:
        """Bytes that a way of rows and one of columns load, (subsets, rooms); None if they are nowhere below the best.

        Peaks take longest: with what was glimpsed in their place there must be something to win.
        """
        count = len(self.group.layers)
        visits = self.group.together((self.down.active[:count, i] * self.across.active[:count, j]).tolist())
        if not (self.weights.loaded(visits, self.room - self._glimpse[:, i, j, None]) < best).any():
            return None
        peak = self._memory(self.down.only(i), self.across.only(j)).peaks()[:, :, 0]
        loaded = self.weights.loaded(visits, self.room - peak)
        return loaded if (loaded < best).any() else None

    def _memory(self, down: Strips, across: Strips) -> Memory:
        return Memory(self.group, down, across, self.stores, self.turns)

    def _reads(self, down: Strips, across: Strips) -> dict[int, Ints]:
        """The least bytes that are read of every outside store, by level."""
        reads: dict[int, Ints] = {}
        for k, stream in enumerate(self.group.streams):
            if stream.outside:
                rows, columns = down.beyond(k, self.levels[stream.store]).min(axis=0), across.computed[k].min()
                read = rows * int(columns) * stream.pixel
                reads[stream.store] = reads.get(stream.store, 0) + read
        return reads

    def _by_store(self, table: Ints) -> Ints:
        """A table by subsets of stores, with an axis for each store; subsets count the first one in units."""
        axes = len(self.stores)
        return table.reshape(*(2,) * axes, len(self.room)).transpose(*range(axes - 1, -1, -1), axes)


@dataclass(frozen=True, eq=False)
class Grouped:
    """What an arc of several layers is: for classes and room the number of the best option; a sketch has none."""

    group: Group
    options: tuple[Option, ...] = ()
    best: Ints | None = None

    @property
    def recomputes(self) -> bool:
        """Whether something is computed again."""
        return any(option.recomputes for option in self.options)


@dataclass(eq=False)
class Groups:
    """All groups of a network on a machine."""

    net: Net
    machine: Machine
    residences: tuple[Residence, ...]
    demands: Demands
    near: Near | None = None
    """What steps take whose tiles go through nearer memories, where there are any."""
    weight_bytes: tuple[int, ...] = field(init=False)
    number: dict[int, int] = field(init=False)
    _rooms_of: dict[tuple[int, ...], Ints] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.weight_bytes = tuple(tensor_bytes(layer, self.machine).get("W", 0) for layer in self.net.layers)
        self.number = {r.store: k for k, r in enumerate(self.residences)}

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """First and last layers of all groups of two layers and more that pins allow, short groups first."""
        count, allows, over = len(self.net.layers), self.demands.allows, self.demands.over
        made, open_ = list[tuple[int, int]](), list(range(count))
        for more in range(1, count):
            open_ = [first for first in open_ if first + more < count and not over(first, first + more - 1)]
            made += [(first, first + more) for first in open_ if allows(first, first + more)]
        return tuple(made)

    def sketches(self, first: int, last: int) -> list[Arc]:
        """Arcs with lower bounds for a group; none if it finds no room.

        Longer groups may find room where shorter ones do not: they need fewer rows, or take turns.
        """
        priced = ((group, self._pricing(group)) for group in self.variants(first, last))
        found = ((group, pricing.sketch()) for group, pricing in priced if pricing is not None)
        return self.with_places(self._arc(group, [sketch]) for group, sketch in found if sketch is not None)

    def variants(self, first: int, last: int) -> Iterator[Group]:
        """A group for every way to load maps from outside; none if it cannot run in strips.

        Maps of several readers are loaded once or twice; those that are read with gaps whole or sampled.
        """
        group = Group(self.net, first, last)
        if not group.legal:
            return
        for twice, sampled in product(_subsets(group.shared), _subsets(group.sampleable)):
            mine = Group(self.net, first, last, twice, sampled)
            if mine.alike and all(mine.rates(axis) is not None for axis in AXES):
                yield mine

    def arcs_of(self, group: Group) -> list[Arc]:
        """The arcs of a group in place of a sketch: options that read alike, and those that compute again."""
        pricing = self._pricing(group)
        priced = [] if pricing is None else list(pricing.options())
        kept = [p for p in priced if not _again(p)]
        once, again = [self._arc(group, kept)] if kept else [], list[Arc]()
        for option in sorted(filter(_again, priced), key=lambda p: p.macs):
            arc = self._arc(group, [option])
            if not any(_dominates(other, arc) for other in (*once, *again)):
                again.append(arc)
        return [*self.with_places(once), *again]

    def with_places(self, arcs: Iterable[Arc]) -> list[Arc]:
        """Arcs, and each with results in the place of maps."""
        return [one for arc in arcs for one in (arc, *self._in_place(arc))]

    def _in_place(self, arc: Arc) -> Iterator[Arc]:
        """Yield an arc with every choice of results in the place of maps that it reads; nothing is computed again."""
        every = [self.places(t, arc.first, arc.last) for t in range(arc.first, arc.last + 1)]
        ways = [[None, *((made, place) for place in places)] for made, places in every if places]
        for chosen in product(*ways):
            pairs = tuple(pair for pair in chosen if pair is not None)
            if pairs and len({place for _, place in pairs}) == len(pairs):
                yield replace(arc, in_place=pairs)

    def places(self, t: int, first: int, last: int) -> tuple[int, tuple[int, ...]]:
        """The residence that a layer of a group makes, and those in whose place it may: nobody else there reads them.

        All of them find room as a whole, and the first is needed behind the group.
        """
        made, given = self.number.get(self.net.writes[t], -1), self._given[t]
        if made not in self.maps or not given or self.residences[made].uses[-1] <= last:
            return made, ()
        alone = [s for s in given if [u for u in self.net.stores[s].readers if u >= first] == [t]]
        found = (self.number.get(s, -1) for s in alone)
        return made, tuple(k for k in found if k in self.maps and self.residences[k].born < first)

    @cached_property
    def _given(self) -> tuple[tuple[int, ...], ...]:
        """For every layer the stores in whose place its result may be."""
        return tuple(map(self.demands.places, range(len(self.net.layers))))

    @cached_property
    def maps(self) -> tuple[int, ...]:
        """The residences that are maps and find room as a whole."""
        stores = self.net.stores
        return tuple(
            k for k, mine in enumerate(self.residences)
            if not mine.weights and mine.rows[-1] == stores[mine.store].rows
        )  # fmt: skip

    def _pricing(self, group: Group) -> Pricing | None:
        """A group on the machine; None if no strips suit it."""
        demands = self.demands
        along = ways(group, demands.heights(group), MODES if demands.recompute else ONCE)
        if along is None:
            return None
        stores = tuple(self.residences[k].store for k in self.axes(group))
        levels = {s: np.array(self._rows(s), np.int64) for s in group.outside}
        return Pricing(
            group, weights_of(group, self.weight_bytes), stores, demands.turns(group), levels,
            self.rooms(group) * self.machine.bank_bytes, *along,
        )  # fmt: skip

    def rooms(self, group: Group) -> Ints:
        """Every number of banks; without banks the bytes that the maps on chip before or after a group may leave."""
        if self.machine.ocm_banks:
            return np.arange(self.machine.ocm_banks + 1)
        key, most = tuple(self._beside(group)), self.machine.bank_count
        if key not in self._rooms_of:
            taken = np.zeros(1, np.int64)
            for k in key:
                sums = np.unique(np.add.outer(taken, np.array(self.residences[k].banks, np.int64)))
                taken = sums[sums <= most]
            self._rooms_of[key] = np.unique(np.append(0, most - taken))
        return self._rooms_of[key]

    def _beside(self, group: Group) -> Iterator[int]:
        """The residences alive at either end of a group."""
        for k, mine in enumerate(self.residences):
            if mine.born < group.first <= mine.uses[-1] or mine.born <= group.last < mine.uses[-1]:
                yield k

    def axes(self, group: Group) -> tuple[int, ...]:
        """The residences among the maps that a group reads from outside, or that are used after it."""
        outside = [self.number[s] for s in group.outside if s in self.number]
        made = [self.number[s] for s in sorted(group.made) if s in self.number]
        return (*outside, *(k for k in made if self.residences[k].uses[-1] > group.last))

    def _rows(self, store: int) -> tuple[int, ...]:
        """Rows on chip for every level, as a layer sees them."""
        if store not in self.number:
            return (0,)
        mine, found = self.residences[self.number[store]], self.net.stores[store]
        height = self.net.operand(found.readers[0], store).rows
        return tuple(found.seen(rows, height) for rows in mine.rows)

    def _arc(self, group: Group, priced: Sequence[PricedOption]) -> Arc:
        axes = self.axes(group)
        stacked = np.stack([one.table for one in priced])
        reads = priced[0].reads
        fixed = sum(int(r[0]) for s, r in reads.items() if s not in self.number)
        for store in group.made:
            mine, k = self.net.stores[store], self.number.get(store)
            inside = bool(mine.readers) and mine.readers[-1] <= group.last and mine.parts[0][0] >= group.first
            if k is not None and inside:
                fixed += self.residences[k].write[0] if mine.results else 0
            elif inside and not group.used_after(store):  # what cannot stay is written, but for what a group keeps
                fixed -= mine.rows * mine.row_elements * self.machine.out_bytes
        levels = [len(self.residences[k].banks) for k in axes]
        whole = [
            np.array([int(rows == self.net.stores[self.residences[k].store].rows) for rows in self.residences[k].rows])
            for k in axes
        ]
        for axis, k in enumerate(axes):  # what is sampled is loaded: nothing of it stays
            if self.residences[k].store in group.sampled:
                whole[axis] = (np.array(self.residences[k].rows) > 0).astype(np.int64)
                np.moveaxis(stacked, axis + 1, 0)[1] = NEVER
        read = [reads.get(self.residences[k].store, np.zeros(n, np.int64)) for k, n in zip(axes, levels, strict=True)]
        options = tuple(one.option for one in priced if one.option is not None)
        return Arc(
            group.first, group.last, axes, tuple(whole), tuple(read), fixed, priced[0].macs, self.rooms(group),
            stacked.min(axis=0), Grouped(group, options, stacked.argmin(axis=0)) if options else Grouped(group),
        )  # fmt: skip


def _subsets(stores: frozenset[int]) -> list[frozenset[int]]:
    """All subsets of some stores, the smallest first."""
    some = sorted(stores)
    return [frozenset(one) for k in range(len(some) + 1) for one in combinations(some, k)]


def _again(priced: PricedOption) -> bool:
    """Whether an option computes something again."""
    return priced.option is not None and priced.option.recomputes


def _dominates(one: Arc, other: Arc) -> bool:
    """Whether an arc of the same group never costs more, at whatever levels and in whatever room; nor more MACs."""
    more = np.full((), other.fixed - one.fixed, np.int64)
    for axis, (classes, mine, its) in enumerate(zip(one.classes, one.reads, other.reads, strict=True)):
        least = np.array([(its - mine)[classes == c].min(initial=NEVER) for c in range(one.table.shape[axis])])
        more = more + along(least, axis, len(one.axes))
    return one.macs <= other.macs and bool((one.table <= other.table + more[..., None]).all())
