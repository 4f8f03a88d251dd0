"""Schedules of fusion: a path of arcs as runs with banks, and the price of a group of layers in closed form.

**Time** of a group (`GroupTime`): visit by visit the longer of computing and of moving, calls and segments included.

A piece of a map is a call: a box of the map as its layer reads (or writes) it, with a segment for every run of
addresses. Weights that stay are one call before all else; what is streamed is a call for every filter, with its bias.

Example: 2 rows of a map of 4 channels, 8 x 8 pixels, are 4 runs of 16 bytes where channels lie outermost (CHW), one of
64 where they lie innermost (HWC). With 5 ticks a call, 2 a segment and 1 a byte they take 77 and 71 ticks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from formulations.fusion.arcs import Grouped, Groups
from formulations.fusion.groups import Group
from formulations.fusion.memory import Memory, Option, Turns, Weights, turns_of, weights_of
from formulations.fusion.space import Taken
from formulations.fusion.strips import Ints, Mode, Strips, paces, strips
from hwmodels.schedule import Blocks, FusedRun, Steps, Stream
from hwmodels.transfer import bursts_of_segment, request, ticks
from instances.errors import InputError
from instances.machine.machine import Machine, Transfer
from instances.network.workload import Layer

#: Runs of addresses: the first one's start, bytes of each, and how many there are in a row at which distance.
Runs = tuple[int, int, tuple[tuple[int, int], ...]]


def call_ticks(transfer: Transfer, runs: Sequence[Runs]) -> int:
    """Return what one call takes that moves some runs."""
    moved = segments = bursts = 0
    for start, size, repeats in runs:
        starts = np.array([start], np.int64)
        for number, pitch in repeats:
            starts = np.add.outer(starts, np.arange(number, dtype=np.int64) * pitch).ravel()
        count = len(starts) if size else 0
        moved, segments = moved + count * size, segments + count
        if transfer.burst_bytes and count:
            one_by_one = starts.tolist() if transfer.by_address else [0] * count
            bursts += sum(bursts_of_segment(at, size, transfer.burst_bytes) for at in one_by_one)
    return ticks(transfer, request(transfer, moved, segments, bursts)) if moved else 0


class GroupTime:
    """The time of a run of a group whose steps along rows and columns are `down` and `across`."""

    def __init__(self, group: Group, machine: Machine, run: FusedRun, down: Strips, across: Strips) -> None:
        self.group, self.machine, self.run = group, machine, run
        self.down, self.across, self.net = down, across, group.net
        self.visits = down.begin.shape[1], across.begin.shape[1]

    def ticks(self) -> int:
        """All visits."""
        moving, computing = np.zeros(self.visits, np.int64), np.zeros(self.visits, np.int64)
        moving[0, 0] = sum(self._resident(t, kept) for t, kept in zip(self.group.layers, self.run.weights, strict=True))
        for k, stream in enumerate(self.group.streams):
            rows, columns = self._spans(k)
            if stream.outside:
                moving += self._boxes(k, rows, columns)
                continue
            pixels = np.multiply.outer(rows[1] - rows[0], columns[1] - columns[0])
            computing += self._cycles(k, pixels) * self.machine.compute.cycle_ticks
            moving += (pixels > 0) * self._streamed(k)
            moving += self._boxes(k, *self._new(k, rows, columns))
        return int(np.maximum(moving, computing).sum())

    # ---- pieces ------------------------------------------------------------------------------------------------------

    def _spans(self, k: int) -> tuple[Ints, Ints]:
        """What is loaded or made of a stream in every step, (2, steps) along rows and along columns."""
        rows, columns = (np.stack([s.begin[k], np.maximum(s.begin[k], s.end[k])]) for s in (self.down, self.across))
        stream = self.group.streams[k]
        if stream.outside:
            there, _ = self.run.residents.get(stream.store, (0, ()))
            height = self.net.operand(stream.maker, stream.store).rows
            rows[0] = np.minimum(np.maximum(rows[0], self.net.stores[stream.store].seen(there, height)), rows[1])
        return rows, columns

    def _new(self, k: int, rows: Ints, columns: Ints) -> tuple[Ints, Ints]:
        """What is written of it: rows and columns that no step before has made, in rows that do not stay."""
        layer, store = self.net.layers[self.group.first + k], self.net.stores[self.group.streams[k].store]
        made = [rows.copy(), columns.copy()]
        for span in made:
            before = np.maximum.accumulate(np.append(0, span[1][:-1]))
            span[0] = np.minimum(np.maximum(span[0], before), span[1])
        stay = store.seen(self.run.unwritten[k], layer.r)
        made[0][0] = np.minimum(np.maximum(made[0][0], stay), made[0][1])
        return made[0], made[1]

    def _boxes(self, k: int, rows: Ints, columns: Ints) -> Ints:
        """Ticks of a piece in every visit."""
        price, addressed = self._box(k)
        tall, at = _kinds(rows, addressed)
        wide, across = _kinds(columns, addressed)
        each = [[price(top, left, high, broad) for left, broad in wide] for top, high in tall]
        return np.array(each, np.int64)[np.ix_(at, across)]

    def _box(self, k: int) -> tuple[Callable[[int, int, int, int], int], bool]:
        """The price of a box of a stream's map, by its first row and column and its size; whether these matter."""
        stream, machine = self.group.streams[k], self.machine
        layer = self.net.layers[stream.maker]
        if stream.outside:
            _, _, height, width = self.net.operand(stream.maker, stream.store)
            batch, order = (
                1 if "b" in self.net.operand(stream.maker, stream.store).lacks else layer.b,
                machine.in_layout,
            )
        else:
            height, width, batch, order = layer.r, layer.c, layer.b, machine.out_layout
        pixel, transfer = stream.pixel, machine.transfer_of("IN" if stream.outside else "OUT")
        element = self.net.element_bytes
        planes, each = (pixel // element, element) if order == "CHW" else (batch, pixel // batch)

        def price(top: int, left: int, high: int, broad: int) -> int:
            start, row, plane = (top * width + left) * each, width * each, height * width * each
            if broad < width:
                return call_ticks(transfer, [(start, broad * each, ((planes, plane), (high, row)))])
            if high < height:
                return call_ticks(transfer, [(start, high * row, ((planes, plane),))])
            return call_ticks(transfer, [(0, planes * plane, ())])

        return price, bool(transfer.burst_bytes and transfer.by_address)

    # ---- weights -----------------------------------------------------------------------------------------------------

    def _filter(self, layer: Layer) -> tuple[int, int, int]:
        """Filters of a layer, and bytes of one and of its bias."""
        if layer.weights == "none":
            return 0, 0, 0
        taps = layer.n * layer.kh * layer.kw
        return layer.g * layer.m, taps * self.machine.w_bytes, self.machine.bias_bytes if layer.bias else 0

    def _resident(self, t: int, kept: int) -> int:
        """Ticks of loading the first bytes of a layer's weights, to stay."""
        _, size, bias = self._filter(self.net.layers[t])
        whole, rest = divmod(kept, size + bias) if kept else (0, 0)
        runs = [(0, whole * size + min(rest, size), ()), (0, whole * bias + max(0, rest - size), ())]
        return call_ticks(self.machine.transfer_of("W"), runs)

    def _streamed(self, k: int) -> int:
        """Ticks of loading what does not stay of a layer's weights, a call for every filter."""
        number, size, bias = self._filter(self.net.layers[self.group.first + k])
        first, kept = divmod(self.run.weights[self.group.owners[k]], size + bias) if number else (0, 0)
        transfer = self.machine.transfer_of("W")

        def price(at: int, gone: int) -> int:
            weights = (at * size + min(gone, size), size - min(gone, size), ())
            return call_ticks(transfer, [weights, (at * bias + max(0, gone - size), bias - max(0, gone - size), ())])

        if first == number:
            return 0
        later = range(first + 1, number)
        alike = not transfer.by_address or not later
        return price(first, kept) + (len(later) * price(0, 0) if alike else sum(price(at, 0) for at in later))

    # ---- computing ---------------------------------------------------------------------------------------------------

    def _cycles(self, k: int, pixels: Ints) -> Ints:
        """Cycles of pieces of so many pixels, each turn's share by itself."""
        layer, unit, t = self.net.layers[self.group.first + k], self.machine.compute, self.group.first + k
        if unit.model == "none":
            return np.zeros_like(pixels)
        blocks = next((one for one in self.run.blocks if one.first <= t <= one.last), None)
        first = layer if blocks is None else self.net.layers[blocks.first]
        turns = 1 if blocks is None else first.g * first.m // blocks.channels
        work = pixels * (layer.b * layer.kh * layer.kw * layer.inputs)
        if unit.model == "tile":
            work, lanes = work * (layer.g * layer.m * layer.n), unit.macs_per_cycle
        elif layer.m == layer.n == 1:
            work, lanes = work * ceil(layer.g / unit.cols), 1
        else:
            work, lanes = work * (layer.g * ceil(layer.m / unit.rows) * ceil(layer.n / unit.cols)), 1
        return turns * -(-work // (turns * lanes))


def _kinds(spans: Ints, addressed: bool) -> tuple[list[tuple[int, int]], Ints]:
    """The distinct (start, size) of spans, starts 0 where they do not matter, and which one every span is."""
    keys = np.stack([spans[0] * addressed, spans[1] - spans[0]], axis=1)
    kinds, which = np.unique(keys, axis=0, return_inverse=True)
    return [(int(start), int(size)) for start, size in kinds], which.ravel()


@dataclass(frozen=True)
class GroupPrice:
    """What a group moves, computes and holds."""

    bytes: Mapping[str, int]
    """By operand: IN, W, OUT."""
    macs: int
    peak_bytes: int
    """Bytes on chip: strips, resident weights and the buffer of a filter."""
    visits: int
    ticks: int
    """Visit by visit the longer of computing and of moving."""


def option_of(run: FusedRun) -> Option:
    """Return the option that a run is made by; raises InputError if its streams are too few, or its last map stands."""
    number = run.last - run.first
    if len(run.streams) <= number:
        raise InputError(f"{len(run.streams)} streams for {number + 1} layers")
    outside = [s.store for s in run.streams[number + 1 :]]
    last = run.streams[number]
    if min(last.rows.step, last.columns.step) < 1:
        raise InputError(
            f"the last of {number + 1} layers makes {last.rows.step} rows, {last.columns.step} columns a step"
        )
    return Option(
        last.rows.step, last.columns.step, _mode(run.rows), _mode(run.columns),
        frozenset(s for s in outside if outside.count(s) > 1),
    )  # fmt: skip


def _mode(steps: Steps) -> Mode:
    return "recompute" if steps.halo == "recompute" else "lead" if steps.first == 1 else "retain"


def streams_of(group: Group, option: Option) -> tuple[Steps, Steps, tuple[Stream, ...]]:
    """Return the steps along both axes, and the streams of a group with an option."""
    rows, down = paces(group, "rows", option.rows, option.height)
    columns, across = paces(group, "columns", option.columns, option.width)
    made = tuple(
        Stream(s.store, s.maker, s.readers, s.outside, high, wide)
        for s, high, wide in zip(group.streams, down, across, strict=True)
    )
    return rows, columns, made


class Figures:
    """Prices of groups of a network on a machine, each computed once."""

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        self._known: dict[tuple[int, int, Option], _Walked] = {}
        self._priced: dict[FusedRun, GroupPrice] = {}

    def walked(self, first: int, last: int, option: Option) -> _Walked:
        """What does not depend on what is on chip; raises InputError if the group cannot run so."""
        key = first, last, option
        if key not in self._known:
            group = Group(self.groups.net, first, last, option.twice)
            if not (option.twice <= group.shared and group.legal and group.alike):
                raise InputError(f"{self.name(first, last)} cannot run strip by strip")
            down = strips(group, "rows", [(option.rows, option.height)])
            across = strips(group, "columns", [(option.columns, option.width)])
            if down is None or across is None:
                raise InputError(f"{self.name(first, last)}: strips of {option.height} x {option.width} do not suit it")
            count = len(group.layers)
            visits = group.together((down.active[:count, 0] * across.active[:count, 0]).tolist())
            computed = down.computed[:, 0] * across.computed[:, 0]
            self._known[key] = _Walked(group, down, across, visits, tuple(map(int, computed)))
        return self._known[key]

    def name(self, first: int, last: int) -> str:
        """A group for people."""
        layers = self.groups.net.layers
        return f"layers {layers[first].name}..{layers[last].name}" if first < last else f"layer {layers[first].name}"

    def blocks_of(self, run: FusedRun) -> tuple[Blocks, ...]:
        """The layers of a run that take turns; raises InputError if they cannot."""
        turns = turns_of(Group(self.groups.net, run.first, run.last))
        end = run.first - 1
        for blocks in run.blocks:
            channels = self.groups.net.layers[min(blocks.last, run.last)].n
            suits = 0 < blocks.channels < channels and channels % blocks.channels == 0
            if not (end < blocks.first and (blocks.first, blocks.last) in turns and suits):
                name = self.name(run.first, run.last)
                raise InputError(f"{name}: layers do not take turns for {blocks.channels} of {channels} channels")
            end = blocks.last
        return run.blocks

    def price(self, run: FusedRun) -> GroupPrice:
        """Return what a run costs; raises InputError if its streams are not those of strips."""
        if run not in self._priced:
            self._priced[run] = self._price(run)
        return self._priced[run]

    def _price(self, run: FusedRun) -> GroupPrice:
        option = option_of(run)
        walked = self.walked(run.first, run.last, option)
        group, net = walked.group, self.groups.net
        if (run.rows, run.columns, run.streams) != streams_of(group, option):
            raise InputError(f"{self.name(run.first, run.last)}: its streams are not those of strips")
        sizes = weights_of(group, self.groups.weight_bytes)
        if len(run.weights) != len(sizes.bytes) or any(
            not 0 <= kept <= size for kept, size in zip(run.weights, sizes.bytes, strict=True)
        ):
            raise InputError(f"{self.name(run.first, run.last)}: weights {run.weights} of {sizes.bytes} stay")
        parts = zip(sizes.bytes, run.weights, walked.visits, strict=True)
        loaded = sum(kept + count * (size - kept) for size, kept, count in parts)
        buffer = max(
            (f for f, size, kept in zip(sizes.filters, sizes.bytes, run.weights, strict=True) if kept < size), default=0
        )
        on_chip = {s: rows for s, (rows, _) in run.residents.items()}
        strips_peak = walked.memory(run.residents).peak(self.blocks_of(run))
        read = 0
        for k, stream in enumerate(group.streams):
            if stream.outside:
                height = net.operand(stream.maker, stream.store).rows
                seen = net.stores[stream.store].seen(on_chip.get(stream.store, 0), height)
                rows = int(walked.down.beyond(k, np.array([seen]))[0, 0])
                read += rows * int(walked.across.computed[k, 0]) * stream.pixel
        written = 0
        for t, stream, kept in zip(group.layers, group.streams, run.unwritten, strict=False):
            layer = net.layers[t]
            written += (layer.r - net.stores[stream.store].seen(kept, layer.r)) * layer.c * stream.pixel
        macs = sum(
            net.layers[t].macs // (net.layers[t].r * net.layers[t].c) * walked.computed[k]
            for k, t in enumerate(group.layers)
        )
        return GroupPrice(
            {"IN": read, "W": loaded, "OUT": written}, macs, strips_peak + sum(run.weights) + buffer,
            walked.down.end.shape[1] * walked.across.end.shape[1],
            GroupTime(group, self.groups.machine, run, walked.down, walked.across).ticks(),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Walked:
    group: Group
    down: Strips
    across: Strips
    visits: tuple[int, ...]
    computed: tuple[int, ...]

    def memory(self, residents: Mapping[int, tuple[int, tuple[int, ...]]], turns: tuple[Turns, ...] = ()) -> Memory:
        """Bytes on chip beside maps that stay."""
        stores = self.group.net.stores
        whole = tuple(s for s, (rows, _) in residents.items() if rows == stores[s].rows and not stores[s].weights)
        return Memory(self.group, self.down, self.across, whole, turns)


def fused(groups: Groups, figures: Figures, taken: Taken, banks: tuple[int, ...], unwritten: tuple[int, ...],
          residents: Mapping[int, tuple[int, tuple[int, ...]]]) -> FusedRun:  # fmt: skip
    """Return the run of an arc of several layers, with the best use of the room that strips leave."""
    arc, grouped = taken.arc, taken.arc.options
    assert isinstance(grouped, Grouped)
    assert grouped.best is not None
    place = tuple(int(c[taken.levels[k]]) for k, c in zip(arc.axes, arc.classes, strict=True))
    option = grouped.options[int(grouped.best[(*place, arc.column(taken.free))])]
    walked = figures.walked(arc.first, arc.last, option)
    rows, columns, made = streams_of(walked.group, option)
    memory = walked.memory(residents, groups.demands.turns(walked.group))
    least, room = int(memory.peaks()[-1, 0, 0]), taken.free * groups.machine.bank_bytes
    weights = weights_of(walked.group, groups.weight_bytes)
    blocks = memory.fewest(_most(weights, walked.visits, room, least))
    stay = weights.resident(walked.visits, room - memory.peak(blocks))
    return FusedRun(arc.first, arc.last, rows, columns, made, stay, residents, unwritten, banks, blocks)


def _most(weights: Weights, visits: tuple[int, ...], room: int, peak: int) -> int:
    """The most bytes of strips in so much room that leave no more weights to be loaded than some peak does."""
    low, high = peak, room
    loaded = int(weights.loaded(visits, np.array([room - peak]))[0])
    while low < high:
        middle = (low + high + 1) // 2
        if int(weights.loaded(visits, np.array([room - middle]))[0]) > loaded:
            high = middle - 1
        else:
            low = middle
    return low
