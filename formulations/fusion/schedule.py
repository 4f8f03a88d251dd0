"""Schedules of F11: a path of arcs as runs with banks, and the price of a group of layers in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from formulations.fusion.arcs import Grouped, Groups
from formulations.fusion.groups import Group
from formulations.fusion.memory import Memory, Turns, turns_of
from formulations.fusion.options import Option, Weights, weights_of
from formulations.fusion.problem import Taken
from formulations.fusion.strips import Mode, Strips, paces, strips
from formulations.fusion.times import GroupTime
from hwmodels.schedule import Blocks, FusedRun, Steps, Stream
from instances.errors import InputError


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
