"""How groups of layers may run, each with what it does to the clocks (`formulations.fusion.latency.products`).

An option is a group in strips of one height, with so many bytes of weights that stay while it runs; the others come in
blocks of filters. Of heights with as many steps the least is taken: it holds the fewest rows.

Two layers of which the second makes each channel from one of the first (pooling, a depthwise convolution) may take
turns: for every block of channels there is a step, with its weights, and the map between is never on chip as a whole.
Of divisors of the channels whose weights are no more than a block of weights may have (or that lanes compute at once)
those are options that need the fewest rounds of lanes: small ones leave room, large ones have fewer calls.

Maps beside a group are on chip as a whole or not at all, from the run that makes them to the last one that reads them.
A layer that is the last to read a map, element by element for the same element of its result, may put the result in the
map's place (`Net.in_place`): then both together take the room of one. Of a map as a whole only what the layer made lies
over what it has read, as nothing is made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np

from formulations.fusion.arcs import ONCE, Groups
from formulations.fusion.group_time import Around, GroupTime, lanes_of
from formulations.fusion.groups import Group
from formulations.fusion.latency.channels import Channels
from formulations.fusion.latency.products import Flow, fresh, joint, products
from formulations.fusion.memory import Memory, Option, Weights, channels_of, weights_of
from formulations.fusion.schedule import BankBook, Runs, streams_of
from formulations.fusion.space import Residence
from formulations.fusion.steps import GroupSteps, Moves, Part
from formulations.fusion.strips import Ints, Mask, Strips, strips
from hwmodels.schedule import Blocks, FusedRun, LayerRun, Nest, NetworkRun
from hwmodels.timeline.schedule import Load, Store

#: Visits of layers that are laid out together; a visit may have many steps.
AT_ONCE = 2**15
#: The most row steps of groups whose weights stay in less room than there is.
FEW = 3
#: Weights that stay have all room that strips leave, or so many quarters of it.
SHARES: tuple[int, ...] = 4, 2, 1, 0
#: Maps on chip at a cut, by the number of their residence.
There = frozenset[int]
#: Maps on chip that a group reads or makes, and the bytes that all maps on chip leave.
Place = tuple[There, int]
#: Half of the room, in place of bytes of a block.
HALF = 0
#: The nest of a layer, by number, that runs with maps on chip in so many bytes, and its steps; None if there is none.
#: Where strips suit the layer, with the most bytes of a block of weights; or the fastest of all the room, or of `HALF`.
Alone = Callable[[int, LayerRun, int, int | None], tuple[Nest, Part] | None]


@dataclass(frozen=True, eq=False)
class Way:
    """A group with an option in so much memory."""

    first: int
    last: int
    option: Option
    kept: tuple[int, ...]
    """Bytes of every layer's weights that stay."""
    place: Place
    """Maps on chip that it reads or makes, and the bytes that all maps leave."""
    matrix: Ints
    """(clocks, clocks)."""
    nest: Nest | None = None
    """Of a layer by itself without strips."""
    whole: bool = False
    """Whether most of its result is stored only at its end."""
    fresh: int = 0
    """Ticks that it begins later behind a way that is `whole` (`formulations.fusion.latency.products.fresh`)."""
    blocks: tuple[Blocks, ...] = ()
    """Layers that take turns."""
    bytes: int = 0
    """That it moves."""
    moving: tuple[int, ...] = ()
    """Of bounds (`Floors`): the least ticks of its transfers, by channel."""


class Passed(NamedTuple):
    """A way of a path, with the maps on chip before and after it."""

    way: Way
    there: There
    after: There


#: The option of a layer by itself without strips.
NESTED = Option(0, 0, "lead", "lead")
#: A group in strips: its first and last layer, maps that it reads twice, those that it samples, its way along rows.
Key = tuple[int, int, frozenset[int], frozenset[int], tuple[str, int]]


@dataclass(frozen=True, eq=False)
class Lies:
    """What lies on chip at some places: streams whose maps stay, (places, streams); bytes of strips, and the most."""

    places: Sequence[Place]
    there: Mask
    held: Ints
    """(places, row steps, layers, column steps)."""
    peaks: Ints
    """(places, ways)."""
    blocks: tuple[Blocks, ...] = ()
    """Layers that take turns."""


@dataclass(frozen=True, eq=False)
class _Placed:
    """Ways at some places, place by place."""

    time: GroupTime
    places: Sequence[Place]
    """Of every way, once for each place."""
    held: Ints
    """(places x row steps, layers, column steps)."""
    left: Ints
    """Bytes that strips leave at the most, (places x ways,)."""
    still: Mask
    """(places x ways, streams)."""


def key_of(first: int, last: int, option: Option) -> Key:
    """A group with an option, among those that are allowed."""
    return first, last, option.twice, option.sampled, (option.rows, option.height)


def by_step(part: Part, channels: Channels) -> tuple[Ints, Ints, Ints]:
    """Ticks and bytes of steps, of loads that are due in them by channel, and of stores that they release.

    (2, steps) each; of loads (channels, 2, steps).
    """
    loads, stores = np.zeros((channels.number, 2, len(part.steps)), np.int64), np.zeros((2, len(part.steps)), np.int64)
    for one in part.moves:
        if isinstance(one, Load):
            loads[channels.queues.index(one.queue), :, one.due - 1] += one.ticks, one.bytes
        else:
            stores[:, one.released - 1] += one.ticks, one.bytes
    return np.array([(one.ticks, one.bytes) for one in part.steps], np.int64).T, loads, stores


def flows_of(part: Part, channels: Channels) -> list[Flow]:
    """The steps and transfers of a layer by itself, as one way; by channel."""
    steps, loads, stores = by_step(part, channels)
    first = np.array([0, len(part.steps)])
    return [
        Flow(first, steps[0], load[0], stores[0] * (c == channels.results), load[1], steps[1], *np.zeros_like(steps))
        for c, load in enumerate(loads)
    ]


class Options:
    """The options of all groups of a network on a machine.

    Parameters
    ----------
    groups : Groups
    most : int
        The most bytes of a block of weights.
    alone : optional
        How a layer runs by itself without strips.
    allowed : optional
        Of strips those that may be best; all, if it is not given.
    in_order : bool
        Whether stores are ahead of the loads behind them.
    suited : optional
        Whether strips suit a layer by itself (`suits`), where not all strips are allowed.
    """

    def __init__(
        self, groups: Groups, most: int, alone: Alone | None = None, allowed: Container[Key] | None = None,
        *, in_order: bool = False, suited: Callable[[int], bool] | None = None,
    ) -> None:  # fmt: skip
        self.groups, self.net, self.machine, self.through = groups, groups.net, groups.machine, groups.near
        self.most, self.alone, self.shares, self.allowed = most, alone, SHARES, allowed
        self.in_order, self.suited = in_order, suited or cache(self.suits)
        self._places = cache(groups.places)
        self.apart = not groups.demands.order.ahead
        self.room = self.machine.bank_count * self.machine.bank_bytes
        self.channels = Channels.of(self.machine)
        self._groups: dict[tuple[int, int], tuple[Group, ...]] = {}
        self._strips: dict[Hashable, tuple[Strips, Strips] | None] = {}

    @property
    def clocks(self) -> int:
        """Clocks of a label."""
        return self.channels.number + (1 if self.in_order else 2)

    @property
    def ends(self) -> list[int]:
        """The clocks that latency is not below: of the engine, and of what every channel has done in the end."""
        return [0, *range(1, self.channels.number), self.clocks - 1]

    # ---- maps --------------------------------------------------------------------------------------------------------

    def alive(self, cut: int) -> tuple[int, ...]:
        """Those that may be on chip at a cut."""
        every = self.groups.residences
        return tuple(k for k in self.groups.maps if every[k].born < cut <= every[k].uses[-1])

    def residence(self, k: int) -> Residence:
        """A map that may stay."""
        return self.groups.residences[k]

    def bytes(self, maps: There) -> int:
        """What maps take, whole banks."""
        return sum(self.residence(k).banks[-1] for k in maps) * self.machine.bank_bytes

    def states(self, cut: int) -> list[There]:
        """Maps that may be on chip together at a cut."""
        alive = self.alive(cut)
        every = chain.from_iterable(combinations(alive, n) for n in range(len(alive) + 1))
        return [frozenset(some) for some in every if self.bytes(frozenset(some)) <= self.room]

    # ---- groups ------------------------------------------------------------------------------------------------------

    def of(self, first: int, last: int) -> tuple[Group, ...]:
        """A group that may run in strips, for every way to load maps from outside; none if it cannot."""
        if (first, last) not in self._groups:
            allowed = self.groups.demands.allows(first, last)
            self._groups[first, last] = tuple(self.groups.variants(first, last)) if allowed else ()
        return self._groups[first, last]

    def near(self, first: int, last: int, there: There, after: There) -> tuple[There, int]:
        """Of maps on chip before and after a group those that it reads or makes, and what all leave of the memory."""
        maps = there | after
        free = self.room - self.bytes(maps - self.in_place(first, last, there, after).keys())
        return frozenset(k for k in maps if self._touched(first, last, k)), free

    def in_place(self, first: int, last: int, there: There, after: There) -> dict[int, int]:
        """Maps after a group that lie where maps before it lay."""
        found = dict[int, int]()
        for made, places in (self._places(t, first, last) for t in range(first, last + 1)):
            free = [k for k in places if k in there and k not in found.values()]
            if made in after and free:
                found[made] = free[0]
        return found

    def ways(self, first: int, last: int, places: Iterable[Place]) -> dict[Place, list[Way]]:
        """All options of a group, for each of some places (`near`)."""
        found: dict[Place, list[Way]] = {place: [] for place in places}
        for group in self.of(first, last) if found else ():
            free = [place for place in found if not any(self._on_chip(s, place[0]) for s in group.sampled)]
            for way in self._ways(group, free) if free else ():
                found[way.place].append(way)
        if first == last and self._may_tile(first):
            for place in found:
                found[place] += self._by_itself(first, place)
        return found

    def _may_tile(self, t: int) -> bool:
        """Whether a layer may run by itself without strips."""
        return self.groups.demands.allows(t, t) and (self.allowed is None or key_of(t, t, NESTED) in self.allowed)

    def suits(self, t: int) -> bool:
        """Whether strips suit a layer by itself, with nothing else on chip."""
        return any(True for group in self.of(t, t) for _ in self._ways(group, [(frozenset(), self.room)]))

    def _by_itself(self, t: int, place: Place) -> list[Way]:
        """A layer with a nest, if there is one: the fastest; where strips suit it, in blocks of channels.

        Strips that load many weights again, or few at a time, may be far off where weights find no room, or where bytes
        of weights and of maps are not alike: then the fastest in any case, of all the room and of half of it, which
        leaves the other half to what is ahead.
        """
        sizes = [self.most] if self.suited(t) else [None]
        weights, free = self.groups.weight_bytes[t], place[1]
        heavy = free == self.room < weights if self.channels.alike else free < 2 * weights
        if heavy:
            sizes = list(dict.fromkeys((*sizes, None, HALF)))
        every = (self.alone and self.alone(t, self.bare(t, place[0]), place[1], most) for most in sizes)
        found = dict(made for made in every if made)
        return [self._nested(t, place, nest, part) for nest, part in found.items()]

    def _nested(self, t: int, place: Place, nest: Nest, part: Part) -> Way:
        """A layer with a nest."""
        matrix = self._product(flows_of(part, self.channels))[0]
        last = any(pieces for one, pieces in zip(part.moves, part.pieces, strict=True) if isinstance(one, Store))
        moved = sum(one.bytes for one in part.moves)
        return Way(t, t, NESTED, (), place, matrix, nest, whole=last, bytes=moved)

    def _product(self, flows: Sequence[Flow]) -> Ints:
        """What the steps of every way do to the clocks together; `flows`: by channel."""
        channels = self.channels
        each = joint(
            flows, self.room, channels.ahead, channels.of_results.byte, in_order=self.in_order, alone=self.apart
        )
        return products(each, flows[-1].first)

    def bare(self, t: int, maps: There) -> LayerRun:
        """A layer by itself, without a nest, with maps on chip."""
        residents = {self.residence(k).store: (self.residence(k).rows[-1], ()) for k in sorted(maps)}
        return LayerRun(Nest(()), residents, self.unwritten(Group(self.net, t, t), t, residents), ())

    def _touched(self, first: int, last: int, k: int) -> bool:
        store = self.net.stores[self.residence(k).store]
        return any(first <= t <= last for t in store.readers) or any(first <= t <= last for t, _ in store.parts)

    def _along(self, group: Group) -> tuple[Strips, Strips] | None:
        key = group.first, group.last, group.twice, group.sampled
        if key not in self._strips:
            layer, allowed = self.net.layers[group.last], set(self.groups.demands.heights(group))
            tall = sorted({-(-layer.r // n) for n in range(1, layer.r + 1)} & allowed, reverse=True) or sorted(allowed)
            down = strips(group, "rows", [(mode, height) for mode in ONCE for height in tall])
            across = strips(group, "columns", [("lead", layer.c)])
            self._strips[key] = None if down is None or across is None else (down.distinct(), across)
        return self._strips[key]

    def _ways(self, group: Group, places: Sequence[Place]) -> Iterator[Way]:
        """The options that find room at some places."""
        along = self._along(group)
        if along is None:
            return
        for blocks in ((), *self._turns(group)):
            yield from self._in_turns(group, *along, places, blocks)

    def _turns(self, group: Group) -> Iterator[tuple[Blocks, ...]]:
        """Turns of a group of two layers."""
        pair = group.first, group.last
        if len(group.layers) == 2 and pair in self.groups.demands.passing(group):
            yield from ((Blocks(*pair, size),) for size in self._channels(group))

    def _channels(self, group: Group) -> Iterable[int]:
        """Channels of blocks of turns: of no more bytes than a block of weights may have, or than a round of lanes.

        Of these all that need the fewest rounds.
        """
        layer = self.net.layers[group.first]
        count, lanes = channels_of(layer), lanes_of(layer, self.machine)
        most = max(1, self.most * count // self.groups.weight_bytes[group.first])
        rounds = {size: count // size * -(-size // lanes) for size in range(1, count) if count % size == 0}

        def best(least: int) -> list[int]:
            some = [size for size in rounds if size <= max(most, least)]
            fewest = min(rounds[size] for size in some)
            return [size for size in some if rounds[size] == fewest]

        return dict.fromkeys((*best(lanes), *best(1)))

    def _in_turns(
        self, group: Group, down: Strips, across: Strips, places: Sequence[Place], blocks: tuple[Blocks, ...]
    ) -> Iterator[Way]:  # fmt: skip
        """The same, with layers that take turns."""
        each = Memory(group, down, across, ()).by_stream(blocks)
        there = np.array([[self._on_chip(s.store, near) for s in group.streams] for near, _ in places])
        held = np.einsum("ps,msrla->mprla", (~there).astype(np.int64), each).max(axis=0)
        peaks = np.maximum.reduceat(held.max(axis=(2, 3)), down.first[:-1], axis=1)  # (places, ways)
        free = np.array([free for _, free in places], np.int64)
        good = [w for w in np.flatnonzero((peaks < free[:, None]).any(axis=0)).tolist() if self._allows(group, down, w)]
        if not good:
            return
        few = [w for w in good if down.first[w + 1] - down.first[w] <= FEW]  # what does not stay is loaded in each
        for some, shares in ((good, self.shares[:1]), (few, self.shares[1:])):
            if some and shares:
                steps, mine = np.isin(np.repeat(np.arange(len(down.ways)), np.diff(down.first)), some), down.some(some)
                together = max(1, AT_ONCE // held[0, steps].size)
                for at in range(0, len(places), together):
                    now = slice(at, at + together)
                    lies = Lies(places[now], there[now], held[now][:, steps], peaks[now][:, some], blocks)
                    yield from self._laid(group, mine, across, lies, shares)

    def _allows(self, group: Group, down: Strips, way: int) -> bool:
        key = group.first, group.last, group.twice, group.sampled, down.ways[way]
        return self.allowed is None or key in self.allowed

    def _laid(
        self, group: Group, down: Strips, across: Strips, lies: Lies, shares: Sequence[int]
    ) -> Iterator[Way]:  # fmt: skip
        """The same for strips that are known, with weights that stay in so many quarters of the room."""
        at = self._placed(group, down, across, lies)
        weights, time = weights_of(group, self.groups.weight_bytes), at.time
        known = [self._kept(weights, time, at.left)] if shares[0] < SHARES[0] else []
        for share in shares:
            kept = self._kept(weights, time, at.left * share // SHARES[0])
            new = np.array([(kept != one).any(axis=1) for one in known]).all(axis=0)
            known.append(kept)
            if new.any():
                buffer = np.where(kept < weights.bytes, weights.filters, 0).max(axis=1)
                fits = new & (kept.sum(axis=1) + buffer <= at.left)
                made = GroupSteps(time, at.held, kept, self.room, self.most, at.still)
                yield from self._priced(made, at.places, fits)

    def _placed(self, group: Group, down: Strips, across: Strips, lies: Lies) -> _Placed:
        free = np.array([free for _, free in lies.places], np.int64)
        held = lies.held + (self.room - free)[:, None, None, None]
        around = Around({}, [self.unwritten(group, t, ()) for t in group.layers], lies.blocks)
        lasting = [s.outside or not self._written(s.store) for s in group.streams]
        return _Placed(
            GroupTime(group, self.machine, around, down, across, self.through),
            [place for place in lies.places for _ in down.ways],
            held.reshape(-1, *held.shape[2:]),
            (free[:, None] - lies.peaks).ravel(),
            np.repeat(lies.there & lasting, len(down.ways), axis=0),
        )

    def _on_chip(self, store: int, near: There) -> bool:
        return any(self.residence(k).store == store for k in near)

    def _written(self, store: int) -> bool:
        """Whether a map is written in any case."""
        mine = self.net.stores[store]
        return mine.dram or mine.results > 0

    def _kept(self, weights: Weights, time: GroupTime, left: Ints) -> Ints:
        """Bytes of weights that stay in so many bytes, whole filters, way after way."""
        count, sizes = len(time.group.layers), np.maximum(1, np.array(weights.filters, np.int64))
        active = (time.down.active[:count] * time.across.active[:count]).T.tolist()
        ways, kept = len(active), np.empty((len(left), count), np.int64)
        for w, some in enumerate(active):
            kept[w::ways] = weights.residents(time.group.together(some), np.maximum(left[w::ways], 0))
        return kept - kept % sizes

    def _fresh(self, steps: GroupSteps, loads: Moves) -> Ints:
        """Ticks of loads in the first visit, by step, of what the layer before makes."""
        group, stores, rows = steps.group, self.net.stores, steps.rows
        just = [s.outside and any(t == group.first - 1 for t, _ in stores[s.store].parts) for s in group.streams]
        second = np.where(np.diff(rows) > 1, steps.starts[(rows[:-1] + 1) % rows[-1], 0, 0], steps.first[1:])
        way = np.searchsorted(steps.first, loads.step, side="right") - 1
        first = (loads.stream >= 0) & np.array(just)[loads.stream] & (loads.step < second[way])
        return np.bincount(loads.step, loads.number * loads.ticks * first, steps.steps).astype(np.int64)

    def _by_channel(self, loads: Moves, each: Ints, steps: int) -> Ints:
        """The sum of the ticks or bytes of loads, (channels, steps)."""
        of = np.where(loads.stream < 0, self.channels.weights, self.channels.inputs)
        return np.stack([loads.by_step(each * (of == c), steps) for c in range(self.channels.number)])

    def _priced(self, steps: GroupSteps, places: Sequence[Place], fits: Mask) -> Iterator[Way]:
        """Those that fit, with their matrices."""
        fits = fits & (np.maximum.reduceat(steps.bytes, steps.first[:-1]) <= self.room)
        fits &= (steps.turns[:, steps.together] > 1).all(axis=1)
        if not fits.any():
            return
        loads, stores, number = steps.loads, steps.stores, steps.steps
        ticks, due = (self._by_channel(loads, each, number) for each in (loads.ticks, loads.bytes))
        stored, none = stores.by_step(stores.ticks, number), np.zeros(number, np.int64)
        flows = [
            Flow(steps.first, steps.ticks, ticks[c], stored * (c == self.channels.results), due[c], steps.bytes, none,
                 none)
            for c in range(self.channels.number)
        ]  # fmt: skip
        made = self._product(flows)
        late = fresh(flows[-1], self._fresh(steps, loads))
        moved = np.add.reduceat(due.sum(axis=0) + stores.by_step(stores.bytes, number), steps.first[:-1])
        group, ways, down = steps.group, steps.time.down.ways, steps.time.down
        last = (down.end - down.begin)[len(group.layers) - 1, down.first[1:] - 1]
        whole = (2 * last > self.net.layers[group.last].r).tolist()
        for w in np.flatnonzero(fits).tolist():
            (mode, height), (columns, width) = ways[w % len(ways)], steps.time.across.ways[0]
            kept = tuple(steps.kept[w].tolist())
            option = Option(height, width, mode, columns, group.twice, group.sampled)
            at, behind, size = whole[w % len(ways)], int(late[w]), int(moved[w])
            yield Way(group.first, group.last, option, kept, places[w], made[w], whole=at, fresh=behind,
                      blocks=steps.time.around.blocks, bytes=size)  # fmt: skip

    # ---- runs --------------------------------------------------------------------------------------------------------

    def runs(self, path: Sequence[Passed]) -> Runs:
        """A path as a schedule."""
        book, made = BankBook(self.machine), list[FusedRun | LayerRun]()
        for way, there, after in path:
            maps = there | after
            over = self.in_place(way.first, way.last, there, after)
            held, free = book.given({k: self.residence(k).banks[-1] for k in sorted(maps)}, over)
            placed = {self.residence(k).store: self.residence(place).store for k, place in over.items()}
            made.append(self._run(way, held, free, placed))
        return NetworkRun(tuple(made))

    def run(self, way: Way) -> FusedRun | LayerRun:
        """A way by itself as a run: no bank has a number, and no result is in the place of a map."""
        return self._run(way, dict.fromkeys(way.place[0], ()), (), {})

    def _run(
        self, way: Way, held: Mapping[int, tuple[int, ...]], free: tuple[int, ...], placed: Mapping[int, int]
    ) -> FusedRun | LayerRun:  # fmt: skip
        """A way as a run, with the banks of all maps on chip, those that are free, and maps in the place of others."""
        residents = {self.residence(k).store: (self.residence(k).rows[-1], held[k]) for k in sorted(held)}
        group = Group(self.net, way.first, way.last, way.option.twice, way.option.sampled)
        unwritten = tuple(self.unwritten(group, t, residents) for t in group.layers)
        if way.nest is not None:
            return LayerRun(way.nest, residents, unwritten[0], free, placed)
        streams = streams_of(group, way.option)
        sampled = tuple(sorted(group.sampled))
        return FusedRun(
            way.first, way.last, *streams, way.kept, residents, unwritten, free, way.blocks, placed, sampled
        )

    def unwritten(self, group: Group, t: int, there: Container[int]) -> int:
        """Rows of a result that never go to DRAM."""
        at = self.net.writes[t]
        stays = at in there or not group.used_after(at)
        return self.net.stores[at].rows if stays and not self._written(at) else 0
