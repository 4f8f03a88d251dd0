"""What no plan of groups in strips is below, in ticks, however its weights stay, come in blocks, and are transferred.

A way of a group is bounded by a matrix (`products`) of a step for every layer and visit:

    compute     as it is; blocks of filters take as long or longer together, as many rounds as filters find room
    maps        pieces as they are; they are due when the layer begins
    weights     due by the end of the step: a layer's own in its first visit; in others what the layers of the visit up
                to it have, beyond the R bytes that stay from visits before
    memory      strips and maps beside the group, and weights that stay: those of a layer do from behind its first step
                to its last one, so beside a step lie at least R bytes less what layers have that are not at that

R counts layers with several visits alone: what the others keep is of no use. A matrix for each range of R, of which the
lower end counts for memory, and the upper end for what visits need. An example: of two layers with 60 and 40 bytes R
is 80 to 90: where the second one has not begun yet, 40 of them lie on chip; a later visit loads 10 for both.

Transfers count by their bytes alone, each at the price of its memory; what is ahead is counted in bytes, at the dearest
price of its queue, and calls of what is ahead are not known. A filter that comes again finds room beside the largest
strips (`FusedRun`).

Each step of a timeline raises the clocks (E, A1, A2) by at least as much. Blocks of a layer in a visit are steps of
which the first waits for maps, and each for its weights: so E >= S + c, and E >= A1 behind all of them. What is loaded
ahead when a step ends lies beside the strips of every later step until it is due, so A1 >= E - cap with the bytes of
strips alone: when a step begins, all its weights that are loaded ahead. Weights that stay do so in all visits
(`FusedRun`), beside the largest strips: R bytes at the most.

Two layers that take turns are one step for all blocks, whatever channels a block has. It computes what both do in no
turns: a block takes its share of that, or more, as shares and rounds of lanes are rounded up. Its maps are due when it
begins, as the first block reads them; weights of both are due by its end: the last block waits for its own. Beside it
lies what does with blocks of one channel: with c of K channels c / K of the map between are there as they are made, and
the others as they are before or behind that, which is less. The result is there as a whole, and is released at the end.
So  E' >= max(E, A1, A2 - room) + C  and  E' >= A1',  as above. Before the first step of the network a filter is loaded.

A layer by itself may run by some nest, of one of some kinds (`alone`). One that has D ticks of loads, F of them due in
its first step, S of stores, C ticks of the engine, and `own` bytes of f beside every step:

    E'  >= max(E + C, A1 + F + C, A1 + D)    it computes everything after it begins, and ends behind what it loads
    E'  >= A2 + max(F + C, D) - (f - own)    beside its first step, and its last one, lies what is yet to be stored
    A1' >= max(A1 + D, E' - (f - own))       at its end at most f - own bytes are loaded ahead
    A2' >= max(A2 + D + S, A1')              stores end behind it

D, F and S are bytes, and of weights the calls for what all memory does not hold (`Alone.bare`): what is ahead, or yet
to be stored, is known in bytes alone. An example: a call of 800 ticks for 16 bytes that are loaded while the layer
before computes; it is done when these 16 bytes lie there, and nothing waits for 800 ticks.

With several queues (`products.joint`) E' is behind A1 of each, with its own D and F. One queue for several memories is
no faster than one for each, so that is a bound, too, which knows better what is ahead (`apart`).

At both ends of a network calls are known. Before the first step nothing runs beside a transfer: it waits for its piece
of the input (a nest may begin in the padding, with none), and for weights. Let r be the filters that a last round of
lanes has, of m filters in R rounds. A first block of fewer than r leaves more than R - 1 rounds for the others, so the
layer takes R + 1 rounds in this visit: the step begins behind the loads of r filters, or of one with a round more.
Behind the last step its result is stored.

**Calls.** Transfers of a queue run one after the other, and take by themselves at least what all pieces of maps, and
the weights of every layer once, take with a call each: the least sum over cuts (`Paths.moving`) bounds the latency,
too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from formulations.fusion.arcs import Groups
from formulations.fusion.group_time import cycles_of, lanes_of
from formulations.fusion.groups import Group
from formulations.fusion.latency.alone import Alone, Axis, kinds, passed
from formulations.fusion.latency.channels import Channels, Price
from formulations.fusion.latency.options import NESTED, SHARES, Key, Lies, Options, Place, There, Way, key_of
from formulations.fusion.latency.paths import Move, Paths, State, undominated
from formulations.fusion.latency.products import BEFORE, Flow
from formulations.fusion.memory import Option, channels_of, weights_of
from formulations.fusion.orders import WHOLE
from formulations.fusion.space import Arc
from formulations.fusion.steps import GroupSteps, Moves
from formulations.fusion.strips import Ints, Mask, Strips
from hwmodels.schedule import Blocks
from instances.network.workload import Layer

#: Eighths of the most bytes of weights that may stay: as many stay at least, and at the most; fewer than all, or all.
RANGES = *((k, k + 1) for k in range(8)), (8, 8)


class Floors(Options):
    """A matrix that is below those of all options, for every group in strips and place.

    `apart`: as if every memory off the chip had a queue of its own.
    """

    def __init__(
        self, groups: Groups, alone: Sequence[Arc], suited: Callable[[int], bool], *, apart: bool = False
    ) -> None:
        super().__init__(groups, WHOLE, suited=suited)
        self.nests, self.shares = alone, (SHARES[0],)
        self.through = None  # steps are counted by what no nest of the near level is below
        self.channels = Channels.of(self.machine, apart=apart)
        self._kinds: dict[tuple[Alone, ...], Ints] = {}

    def ways(self, first: int, last: int, places: Iterable[Place]) -> dict[Place, list[Way]]:
        """Those of each place of which none is below another one everywhere, and by channel one that moves least."""
        found = super().ways(first, last, places)
        for place, some in found.items():
            if len(some) > 1:
                kept = _kept(np.stack([way.matrix for way in some]), np.array([way.moving for way in some]).T)
                found[place] = [some[k] for k in kept]
        return found

    # ---- strips ------------------------------------------------------------------------------------------------------

    def _laid(
        self, group: Group, down: Strips, across: Strips, lies: Lies, shares: Sequence[int]
    ) -> Iterator[Way]:  # fmt: skip
        lies = replace(lies, blocks=tuple(self._whole(one) for one in lies.blocks))
        at, weights = self._placed(group, down, across, lies), weights_of(group, self.groups.weight_bytes)
        sizes = np.array(weights.bytes, np.int64)
        fits = (sizes.sum() <= at.left) | (at.left >= min((one for one in weights.filters if one), default=0))
        steps = GroupSteps(at.time, at.held, np.tile(sizes, (len(at.left), 1)), WHOLE, WHOLE, at.still)
        inputs, stores, number = steps.inputs, steps.stores, steps.steps
        held, left = steps.held.ravel()[steps.entry], np.maximum(at.left, 0)
        visits, compute = _Visits(steps), self._computed(steps, held)
        due, stored = (moves.by_step(moves.bytes, number) for moves in (inputs, stores))
        channels = self.channels
        ends, alone = self._ends(steps, inputs, stores, compute), self._transfers(steps, inputs, stores, sizes)
        again, staying, every = (visits.several * sizes).sum(axis=1), self._lies(steps, visits.several), RANGES[-1][1]
        most, ways, made = np.minimum(left, again), list[Ints](), list[Ints]()
        for low, high in RANGES:  # of what stays
            least, stay = most * low // every, most * high // every - (low < high == every)
            some = fits & np.where(again > 0, least <= stay, low == 0)
            if some.any():
                needed = visits.needed(sizes, stay)[steps.entry]
                beside = np.maximum(0, (least - again)[steps.at[0]] + staying)
                flows = list[Flow]()
                for c in range(channels.number):
                    maps, own, last = due * (c == channels.inputs), needed * (c == channels.weights), channels.results
                    flows.append(Flow(
                        steps.first, compute, maps * channels.of_inputs.byte,
                        stored * (c == last) * channels.of_results.byte, maps, held + beside,
                        own * channels.of_weights.byte, own,
                    ))  # fmt: skip
                ways.append(np.flatnonzero(some))
                made.append(self._ended(self._product(flows), *ends)[ways[-1]])
        (columns, width), options = across.ways[0], len(down.ways)
        for w, matrix in _least(np.concatenate(ways), np.concatenate(made), alone, options) if ways else ():
            mode, height = down.ways[w % options]
            option = Option(height, width, mode, columns, group.twice, group.sampled)
            mine, moving = lies.blocks, tuple(alone[:, w].tolist())
            yield Way(group.first, group.last, option, (), at.places[w], matrix, blocks=mine, moving=moving)

    def _channels(self, group: Group) -> Iterable[int]:
        """One channel: the least bytes beside the others."""
        return (1,)

    def _whole(self, blocks: Blocks) -> Blocks:
        """Turns as one step."""
        return replace(blocks, channels=channels_of(self.net.layers[blocks.first]))

    def _lies(self, steps: GroupSteps, which: Mask) -> Ints:
        """Bytes beside every step where all weights of some layers stay: from behind their first step to their last."""
        change = np.zeros(steps.steps + 1, np.int64)
        for owner, (ways, first, last) in steps.read.items():
            size = steps.kept[ways, owner] * which[ways, owner]
            np.add.at(change, first + 1, size)
            np.add.at(change, last + 1, -size)
        lies: Ints = np.cumsum(change)[:-1]
        return lies

    def _computed(self, steps: GroupSteps, held: Ints) -> Ints:
        """Ticks of every step, in as many rounds as there are of the filters that find room together."""
        number, size = steps.number[steps.layer], np.maximum(steps.size, 1)[steps.layer]
        lanes = steps.lanes[steps.layer]
        most = np.clip((self.room - held) // size, 1, lanes)
        rounds = -(-number // most), np.maximum(1, -(-number // lanes))
        alone = (number > 0) & ~steps.joint
        ticks: Ints = np.where(alone, -(-steps.ticks * rounds[0] // rounds[1]), steps.ticks)
        if (near := self.groups.near) is None:
            return ticks
        for k in steps.layers:
            t, mine = steps.group.layers[k], np.flatnonzero((steps.layer == k) & ~steps.idle)
            kinds, which = steps.kinds(near, k)
            moved = np.array([near.moved(t, kind) for kind in kinds], np.int64)[which[steps.entry[mine]]]
            ticks[mine] = np.maximum(ticks[mine] + near.edges(t), moved)
        return ticks

    def _ends(
        self, steps: GroupSteps, inputs: Moves, stores: Moves, compute: Ints
    ) -> tuple[Ints | None, Ints | None]:  # fmt: skip
        """Ticks before the first step of the network and behind its last one, (ways,); None if they are others'."""
        group, begin, drain = steps.group, None, None
        if group.first == 0:
            begin = self._begins(steps, inputs, compute)
        if group.last == len(self.net.layers) - 1:
            drain = stores.by_step(stores.ticks, steps.steps)[steps.first[1:] - 1]
        return begin, drain

    def _begins(self, steps: GroupSteps, inputs: Moves, compute: Ints) -> Ints:
        """Ticks before the first step of every way, and what it computes longer if it begins then, (ways,)."""
        first = steps.first[:-1]
        k, ticks = steps.layer[first], steps.ticks[first]
        begin: Ints = inputs.by_step(inputs.ticks, steps.steps)[first]
        if not (steps.number[0] and (k == 0).all()):
            return begin
        if steps.together[0]:
            return begin + steps.time.resident(0, int(steps.size[0]))
        number, lanes, size = int(steps.number[0]), int(steps.lanes[0]), int(steps.size[0])
        rounds, last = -(-number // lanes), (number - 1) % lanes + 1
        more = np.maximum(0, ticks * (rounds + 1) // rounds - compute[first])
        several, one = (steps.time.resident(0, filters * size) for filters in (last, 1))
        loaded: Ints = np.minimum(several, one + more)
        both = self.channels.inputs == self.channels.weights
        return begin + loaded if both else np.maximum(begin, loaded)

    def _ended(self, made: Ints, begin: Ints | None, drain: Ints | None) -> Ints:
        """Matrices of groups with what the first step of the network waits for, and what is stored behind the last."""
        if begin is not None:
            made[:, :, 0] += begin[:, None]
        if drain is not None:
            made[:, -1] = np.maximum(made[:, -1], made[:, 0] + drain[:, None])
        return made

    def _transfers(self, steps: GroupSteps, inputs: Moves, stores: Moves, sizes: Ints) -> Ints:
        """Ticks of all transfers of every way, at least, (channels, ways)."""
        every = zip(steps.group.layers, sizes.tolist(), strict=True)
        taken = np.zeros((self.channels.number, len(steps.first) - 1), np.int64)
        taken[self.channels.weights] += sum(steps.time.resident(t, size) for t, size in every if size)
        for channel, moves in ((self.channels.inputs, inputs), (self.channels.results, stores)):
            taken[channel] += np.add.reduceat(moves.by_step(moves.ticks, steps.steps), steps.first[:-1])
        return taken

    # ---- nests -------------------------------------------------------------------------------------------------------

    def _by_itself(self, t: int, place: Place) -> list[Way]:
        """A way for every kind of nests (`kinds`)."""
        channels, ahead = self.channels, np.array(self.channels.ahead, np.int64)
        count, (compute, own, stored, *rest) = channels.number, self._kinds_of(t, place).T
        loads, first, moved = np.array(rest).reshape(3, count, -1).swapaxes(1, 2)  # (kinds, channels) each
        beside = place[1] - own
        matrix = np.full((len(own), count + 2, count + 2), BEFORE, np.int64)
        matrix[:, 0, 0], matrix[:, 0, 1:-1] = compute, np.maximum(loads, first + compute[:, None])
        matrix[:, 0, -1] = matrix[:, 0, -2] - beside * channels.of_results.byte
        for c in range(count):
            matrix[:, 1 + c] = matrix[:, 0] - (beside * ahead[c])[:, None]
            matrix[:, 1 + c, 1 + c] = np.maximum(matrix[:, 1 + c, 1 + c], loads[:, c])
        matrix[:, -1] = matrix[:, -2]
        matrix[:, -1, -1] = np.maximum(matrix[:, -1, -1], loads[:, -1] + stored)
        if t == 0:
            called = self._called(t, place) if count == 1 else min(1, self._called(t, place))
            matrix[:, :, 0] += called * min(channels.of_inputs.least, channels.of_weights.least)
        if t == len(self.net.layers) - 1:
            drain = np.where(stored > 0, channels.of_results.least, BEFORE)
            matrix[:, -1] = np.maximum(matrix[:, -1], matrix[:, 0] + drain[:, None])
        return [Way(t, t, NESTED, (), place, mine, moving=tuple(moving))
                for mine, moving in zip(matrix, moved.tolist(), strict=True)]  # fmt: skip

    def _kinds_of(self, t: int, place: Place) -> Ints:
        """Ticks of computing, bytes beside every step, stores; by channel loads, those for the first step, transfers.

        (kinds, columns). Transfers count with their calls, loads and stores by bytes (`Alone.bare`).
        """
        layers = tuple(self._layer(t, place, c) for c in range(self.channels.number))
        if layers not in self._kinds:
            called, each = (  # (fields of a kind, kinds, channels)
                np.array([[*kinds(layer)] for layer in some], np.int64).transpose(2, 1, 0)
                for some in (layers, [layer.bare(self.room) for layer in layers])
            )
            (compute, loads, stores, own, first), moved = each, called[1]
            moved[:, -1] += called[2, :, -1]
            computed = compute.max(axis=1)
            if self.groups.near is not None:
                computed = np.maximum(computed, self.groups.near.least(t, int(compute.min())))
            made = np.column_stack([computed, own[:, 0], stores[:, -1], loads, first, moved])
            made = np.array([*dict.fromkeys(map(tuple, made.tolist()))], np.int64)
            self._kinds[layers] = made[_undominated(made)]
        return self._kinds[layers]

    def _layer(self, t: int, place: Place, channel: int) -> Alone:
        """A layer by itself at a place, with the prices of what a channel moves."""
        layer, machine, found = self.net.layers[t], self.machine, self.groups.weight_bytes[t]
        pixels, loads = layer.b * layer.r * layer.c, self._once(self.nests[t], place[0])
        results = pixels * layer.g * layer.m
        plain = layer.g > 1 or self.net.shared[t] >= 0 or layer.weights != "constant"
        weights, others = 0 if plain else min(found, loads), 0
        if plain and not self.channels.alike:  # its weights are not of its input; those of others may be there
            others = min(found, loads) if self.net.shared[t] < 0 else 0
            loads = max(0, loads - found)
        inputs, stored = loads - weights, self._stores(Group(self.net, t, t), place[0])
        out, read = machine.out_layout == "HWC", machine.in_layout == "HWC"
        of_inputs, of_weights, of_results = self._prices(channel)
        rows, columns = _axes(layer)
        return Alone(
            int(cycles_of(layer, machine, np.array(layer.r * layer.c))) * machine.compute.cycle_ticks,
            layer.m, -(-layer.m // lanes_of(layer, machine)), weights, inputs, stored,
            results * machine.out_bytes, results * machine.psum_bytes, int(weights * _again(layer)),
            inputs * rows.span * columns.span // (rows.read * columns.read), passed(inputs, rows, columns, of_inputs),
            pixels * of_results.segment if stored and out else 0,
            inputs // (layer.n * machine.in_bytes) * of_inputs.segment if read else 0, layer.n,
            layer.n * layer.kh * layer.kw, _parts(layer, inputs), of_inputs, of_weights, of_results, place[1], others,
        )  # fmt: skip

    def _prices(self, channel: int) -> tuple[Price, Price, Price]:
        """Of inputs, weights and results; nothing where another channel moves them."""
        channels, none = self.channels, Price(0, 0, 0)
        return (
            channels.of_inputs if channel == channels.inputs else none,
            channels.of_weights if channel == channels.weights else none,
            channels.of_results if channel == channels.results else none,
        )

    def _called(self, t: int, place: Place) -> int:
        """Operands that the first step of a layer by itself reads, at least: of each there is a call before it begins.

        Of a map with padding that step may read nothing: of a row of the kernel in the padding.
        """
        weights, loads = self.groups.weight_bytes[t], self._once(self.nests[t], place[0])
        own = self.net.shared[t] < 0 < weights  # what is loaded beyond weights is of a map
        padded = any(int(inside.min()) < 0 for inside in _read(self.net.layers[t]))
        return int(own) + int(not padded and loads > own * weights)

    def _once(self, arc: Arc, near: There) -> int:
        """Bytes that a layer by itself loads at least."""
        levels = {k: -1 if k in near else 0 for k in self.groups.maps}
        reads = (int(r[levels[k]]) if k in levels else int(r.min()) for k, r in zip(arc.axes, arc.reads, strict=True))
        return arc.fixed + sum(reads)

    def _stores(self, group: Group, near: There) -> int:
        """Bytes of results that go to DRAM."""
        there = {self.residence(k).store for k in near}
        written = (t for t in group.layers if not self.unwritten(group, t, there))
        return sum(
            layer.r * layer.c * layer.b * layer.g * layer.m * self.machine.out_bytes
            for layer in (self.net.layers[t] for t in written)
        )


class _Visits:
    """The visits of ways of a group, and which layers have several."""

    def __init__(self, steps: GroupSteps) -> None:
        columns, count = steps.pixels.shape[1:]
        self.runs = steps.runs
        active: Mask = (steps.pixels > 0).reshape(-1, count)  # (visits, layers)
        self.way = np.repeat(steps.way, columns)
        begin = np.searchsorted(self.way, np.arange(len(steps.kept)))
        seen = np.cumsum(active, axis=0)
        self.first: Mask = active & (seen - (seen[begin] - active[begin])[self.way] == 1)
        self.later: Mask = active & ~self.first
        """`first`, `later`: layers that a visit is the first one of, and others that it has, (visits, layers)."""
        self.several: Mask = np.logical_or.reduceat(self.later, begin)
        """Layers with several visits, (ways, layers)."""

    def needed(self, sizes: Ints, stay: Ints) -> Ints:
        """Bytes of weights that are loaded for each layer in each visit, at least, where so many stay by way.

        All of them, in a row; those of layers that take turns for the first of these.
        """
        first, later = ((some * sizes).cumsum(axis=1) for some in (self.first, self.later))
        loaded = first + np.maximum(0, later - stay[self.way][:, None])
        each = np.diff(loaded, axis=1, prepend=0)
        needed = np.zeros_like(each)
        for k, run in enumerate(self.runs.tolist()):
            needed[:, run] += each[:, k]
        return needed.ravel()


def promising(every: Sequence[Paths], below: float) -> set[Key]:
    """The strips that are on some path whose bound is below a value, and nests in their place, by all bounds."""
    found = list[set[Key]]()
    for paths in every:
        mine = set[Key]()
        for move in through(paths, below):
            for first, last, option in {(way.first, way.last, way.option) for way in move.ways}:
                mine.add(key_of(first, last, option))
                if first == last:
                    mine.add(key_of(first, last, NESTED))
        found.append(mine)
    return set.intersection(*found)


def through(paths: Paths, below: float) -> Iterator[Move]:
    """Yield the ways that are on some path whose bound is below a value, from the last cut to the first."""
    end = np.full((1, paths.options.clocks), BEFORE, np.int64)
    end[:, paths.options.ends] = 0
    behind = {(paths.count, frozenset[int](), False): end}
    for moves in reversed(paths.moves):
        rows = dict[State, list[Ints]]()
        for move in moves:
            if move.after not in behind:
                continue
            rest = behind[move.after]  # (rows, clocks)
            onward = (rest[:, None, :, None] + move.matrix[None]).max(axis=2)  # (rows, ways, clocks)
            least = (onward[:, :, None] + paths.labels[move.state].clocks).max(axis=3).min(axis=(0, 2))
            if (least < below).any():
                yield move.some(least < below)
            rows.setdefault(move.state, []).append(onward.reshape(-1, onward.shape[2]))
        for state, some in rows.items():
            every = np.concatenate([*([behind[state]] if state in behind else []), *some])
            behind[state] = every[undominated(every, len(every))]


def _again(layer: Layer) -> Fraction:
    """Of the weights what every row of a layer needs at least, or every column, if fewer.

    None, if no row needs all rows of the kernel, or no column all columns.
    """
    least = Fraction(1)
    for inside in _read(layer):
        needed, taps = (inside >= 0).sum(axis=1), inside.shape[1]
        if int(needed.max()) < taps:
            return Fraction(0)
        least = min(least, Fraction(int(needed.min()), taps))
    return least


def _axes(layer: Layer) -> tuple[Axis, Axis]:
    """Rows and columns of an input that are read."""
    rows, columns = (np.unique(inside[inside >= 0]) for inside in _read(layer))
    return _axis(rows), _axis(columns)


def _axis(read: Ints) -> Axis:
    apart = np.diff(read)
    return Axis(len(read), 1 + int((apart > 1).sum()), int(apart.max(initial=1)) - 1, int(read[-1] - read[0]) + 1)


def _parts(layer: Layer, inputs: int) -> tuple[int, int] | None:
    """Of bytes of an input what is read again for a second part of the kernel, and what every part reads, at least."""
    found = list[tuple[Fraction, Fraction]]()
    for inside in _read(layer):
        taps = inside.shape[1]
        every = _rows(inside)
        parts = [(_rows(inside[:, :k]), _rows(inside[:, k:])) for k in range(1, taps)]
        if parts:
            again = min(one + other for one, other in parts) - every
            found.append((Fraction(again, every), Fraction(min(_rows(inside[:, [k]]) for k in range(taps)), every)))
    if not found:
        return None
    again, least = (min(one) for one in zip(*found, strict=True))
    return int(inputs * again), int(inputs * least)


def _read(layer: Layer) -> tuple[Ints, Ints]:
    """The row of the input that every tap reads for every row of the result, and columns alike; -1 in the padding."""
    axes = (
        (layer.r, layer.kh, layer.stride_h, layer.dilation_h, layer.pad_top, layer.h),
        (layer.c, layer.kw, layer.stride_w, layer.dilation_w, layer.pad_left, layer.l),
    )
    found = list[Ints]()
    for outputs, taps, stride, dilation, pad, inputs in axes:
        at = np.arange(outputs)[:, None] * stride - pad + np.arange(taps) * dilation
        found.append(np.where((at >= 0) & (at < inputs), at, -1))
    return found[0], found[1]


def _rows(inside: Ints) -> int:
    """Different rows that are read."""
    return len(np.unique(inside[inside >= 0]))


def _least(ways: Ints, matrix: Ints, taken: Ints, options: int) -> Iterator[tuple[int, Ints]]:
    """Yield those of each place, of so many options, that are kept, each with its matrix."""
    for place in range(taken.shape[1] // options):
        mine = np.flatnonzero(ways // options == place)
        for k in mine[_kept(matrix[mine], taken[:, ways[mine]])].tolist() if len(mine) else ():
            yield int(ways[k]), matrix[k]


def _kept(matrix: Ints, taken: Ints) -> list[int]:
    """Ways that no other one is below everywhere, and one with the least ticks of transfers of each queue."""
    kept = _undominated(matrix)
    kept[np.argmin(taken, axis=1)] = True
    found: list[int] = np.flatnonzero(kept).tolist()
    return found


def _undominated(matrix: Ints) -> Mask:
    """Ways whose matrix none of the others' is at most everywhere, (ways,); the first one of equal ones."""
    flat = matrix.reshape(len(matrix), -1)
    less = (flat[:, None] <= flat[None]).all(axis=2)  # (ways, ways): the first is at most the second
    less &= ~less.T | np.triu(np.ones_like(less), 1)
    return np.asarray(~less.any(axis=0))
