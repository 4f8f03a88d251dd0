"""Schedules of fusion: what groups (`GroupPrices`) and layers by themselves (`Layers`) cost, and paths of arcs as runs.

`runs_of` makes the schedule of a path: the run of every group and layer, with the banks that maps on chip leave it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from formulations.clock import ENDLESS, Clock
from formulations.fusion.arcs import Grouped, Groups
from formulations.fusion.group_time import Around, GroupTime, lanes_of
from formulations.fusion.groups import Group
from formulations.fusion.memory import Memory, Option, Turns, Weights, channels_of, passing_of, turns_of, weights_of
from formulations.fusion.space import Taken
from formulations.fusion.strips import Mode, Strips, paces, strips
from formulations.fusion.tables import Tables
from formulations.pins import Pins
from formulations.tiling import tiling
from formulations.tiling.searched import search_nests
from formulations.tiling.space import Space
from formulations.tiling.turns import coarser
from hwmodels.joint.price import RunFigures, ran
from hwmodels.nest.buffers import buffers
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.limits import tensor_bytes
from hwmodels.outcome import Outcome
from hwmodels.schedule import Blocks, FusedRun, Hold, LayerRun, Loop, Nest, NetworkRun, Steps, Stream
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.stores import Stores
from instances.network.workload import Layer

#: The schedule of a network.
Runs = NetworkRun[FusedRun | LayerRun]
#: Numbers of banks; none on a machine without banks.
Banks = tuple[int, ...]
#: The fastest nests of layers, by what they find on chip, room for tiles and bytes.
FastestNests = dict[tuple[object, int, int], Nest]


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
        frozenset(s for s in outside if outside.count(s) > 1), frozenset(run.sampled),
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


class GroupPrices:
    """Prices of groups of a network on a machine, each computed once."""

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        self._known: dict[tuple[int, int, Option], _LaidOut] = {}
        self._priced: dict[FusedRun, GroupPrice] = {}

    def laid_out(self, first: int, last: int, option: Option) -> _LaidOut:
        """What does not depend on what is on chip; raises InputError if the group cannot run so."""
        key = first, last, option
        if key not in self._known:
            plain = Group(self.groups.net, first, last)
            group = Group(self.groups.net, first, last, option.twice, option.sampled & plain.sampleable)
            may = option.twice <= group.shared and option.sampled <= plain.sampleable
            if not (may and group.legal and group.alike):
                raise InputError(f"{self.name(first, last)} cannot run strip by strip")
            down = strips(group, "rows", [(option.rows, option.height)])
            across = strips(group, "columns", [(option.columns, option.width)])
            if down is None or across is None:
                raise InputError(f"{self.name(first, last)}: strips of {option.height} x {option.width} do not suit it")
            count = len(group.layers)
            visits = group.together((down.active[:count, 0] * across.active[:count, 0]).tolist())
            computed = down.computed[:, 0] * across.computed[:, 0]
            self._known[key] = _LaidOut(group, down, across, visits, tuple(map(int, computed)))
        return self._known[key]

    def name(self, first: int, last: int) -> str:
        """A group for people."""
        layers = self.groups.net.layers
        return f"layers {layers[first].name}..{layers[last].name}" if first < last else f"layer {layers[first].name}"

    def blocks_of(self, run: FusedRun) -> tuple[Blocks, ...]:
        """The layers of a run that take turns; raises InputError if they cannot."""
        group = Group(self.groups.net, run.first, run.last)
        turns, end = (*turns_of(group), *passing_of(group)), run.first - 1
        for blocks in run.blocks:
            channels = channels_of(group.net.layers[min(blocks.first, run.last)])
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
        if option.sampled & run.residents.keys():
            raise InputError(f"{self.name(run.first, run.last)}: a map that is sampled is on chip")
        laid = self.laid_out(run.first, run.last, option)
        group, net = laid.group, self.groups.net
        if (run.rows, run.columns, run.streams) != streams_of(group, option):
            raise InputError(f"{self.name(run.first, run.last)}: its streams are not those of strips")
        sizes = weights_of(group, self.groups.weight_bytes)
        if len(run.weights) != len(sizes.bytes) or any(
            not 0 <= kept <= size for kept, size in zip(run.weights, sizes.bytes, strict=True)
        ):
            raise InputError(f"{self.name(run.first, run.last)}: weights {run.weights} of {sizes.bytes} stay")
        parts = zip(sizes.bytes, run.weights, laid.visits, strict=True)
        loaded = sum(kept + count * (size - kept) for size, kept, count in parts)
        buffer = max(
            (f for f, size, kept in zip(sizes.filters, sizes.bytes, run.weights, strict=True) if kept < size), default=0
        )
        on_chip = {s: rows for s, (rows, _) in run.residents.items()}
        strips_peak = laid.memory(run.residents).peak(self.blocks_of(run))
        read = 0
        for k, stream in enumerate(group.streams):
            if stream.outside:
                height = net.operand(stream.maker, stream.store).rows
                seen = net.stores[stream.store].seen(on_chip.get(stream.store, 0), height)
                rows = int(laid.down.beyond(k, np.array([seen]))[0, 0])
                read += rows * int(laid.across.computed[k, 0]) * stream.pixel
        written = 0
        for t, stream, kept in zip(group.layers, group.streams, run.unwritten, strict=False):
            layer = net.layers[t]
            written += (layer.r - net.stores[stream.store].seen(kept, layer.r)) * layer.c * stream.pixel
        macs = sum(
            net.layers[t].macs // (net.layers[t].r * net.layers[t].c) * laid.computed[k]
            for k, t in enumerate(group.layers)
        )
        return GroupPrice(
            {"IN": read, "W": loaded, "OUT": written}, macs, strips_peak + sum(run.weights) + buffer,
            laid.down.end.shape[1] * laid.across.end.shape[1],
            GroupTime(group, self.groups.machine, Around.of(run), laid.down, laid.across).ticks(run.weights),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _LaidOut:
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


# ---- layers by themselves --------------------------------------------------------------------------------------------


class Layers:
    """The layers of a network on a machine; `pins` of their nests.

    A run (`hwmodels.schedule.LayerRun`) says the nest of a layer, what is on chip while it runs, and where. Weights
    that stay are loaded before the first layer that reads them (`hwmodels.joint.price`).
    """

    def __init__(self, found: Stores, machine: Machine, pins: Pins) -> None:
        self.found, self.machine, self.pins = found, machine, pins
        self._outcomes: dict[object, Outcome] = {}
        self._fastest: dict[tuple[object, int], Nest | None] = {}

    def layer(self, step: int, run: LayerRun) -> Layer:
        """A layer with what it finds on chip."""
        return self.found.layer(step, run.rows, run.unwritten)

    def outcome(self, layer: Layer, nest: Nest) -> Outcome:
        """What a nest of a layer costs."""
        key = layer.signature(), nest
        if key not in self._outcomes:
            self._outcomes[key] = price(layer, self.machine, nest)
        return self._outcomes[key]

    def ran(self, step: int, run: LayerRun, before: LayerRun | FusedRun | None) -> Outcome:
        """What a layer costs after another run, with the loading of weights that stay."""
        outcome = self.outcome(self.layer(step, run), run.nest)
        priced = self.outcome(*ran(self.found, step, run, before))
        return replace(priced, occupancy_bytes=outcome.occupancy_bytes)  # weights that stay are no tile

    def holds(self, step: int, run: LayerRun) -> bool:
        """Whether a nest is a plan of problem tiling, with the pins."""
        return tiling.build(self.layer(step, run), self.machine, self.pins).contains(run.nest)

    def explain(self) -> tuple[str, ...]:
        """The demands that a layer cannot meet even with all banks to itself."""
        machine = self.machine.model_copy(update={"ocm_bytes": self.machine.bank_count * self.machine.bank_bytes})
        for layer in self.found.layers:
            if said := tiling.build(layer, machine, self.pins).explain():
                return tuple(f"layer {layer.name}: {line}" for line in said)
        return ("no layer by itself conflicts with the machine, all of them together do",)

    def figured(self, step: int, run: LayerRun, seen: RunFigures) -> RunFigures:
        """What is said of a layer, with where its tiles lie."""
        lie = buffers(self.layer(step, run), self.machine, run.nest)
        return replace(seen, buffers=lie, on_chip=on_chip(self.found, self.machine, run))

    def trimmed(self, step: int, run: LayerRun) -> LayerRun:
        """A run with those banks alone that the tiles take; without banks as it is."""
        taken = self.outcome(self.layer(step, run), run.nest).occupancy_bytes["ocm"]
        return replace(run, banks=run.banks[: -(-taken // self.machine.bank_bytes)])

    def faster(self, step: int, run: LayerRun, known: FastestNests, clock: Clock) -> LayerRun:
        """The fastest nest that moves as little in the room that is free; without time a coarser one."""
        layer, (free, room) = self.layer(step, run), left_of(self.found, self.machine, run)
        key = layer.signature(), room, self.outcome(layer, run.nest).bytes
        if key not in known:
            known[key] = self._faster(layer, run.nest, room, clock)
        return self.trimmed(step, replace(run, nest=known[key], banks=free))

    def fastest(self, step: int, run: LayerRun, room: int) -> Nest | None:
        """The fastest nest of a layer with the maps of a run on chip, in so many bytes."""
        layer = self.layer(step, run)
        key = layer.signature(), room
        if key not in self._fastest:
            space = tiling.build(layer, self.machine, self.pins)
            self._fastest[key] = search_nests(space, ("time",), ENDLESS, most={"ocm": room}, proving=()).nest
        return self._fastest[key]

    def in_blocks(self, step: int, run: LayerRun, room: int, most: int) -> Nest | None:
        """A nest of a layer in blocks of channels, of so many bytes of weights or of its input; None if none is of use.

        Blocks of filters are of use where inputs, weights and results find no room together: the results leave block by
        block. Of channels that are pooled they are of use where these come from DRAM: as they are stored.
        """
        layer = self.layer(step, run)
        moved, lanes = tensor_bytes(layer, self.machine), lanes_of(layer, self.machine)
        if layer.weights == "none":
            dim, size, useful = "g", moved["IN"], layer.inputs == layer.m == layer.n == 1
        else:
            dim, size, useful = "m", moved["W"], layer.g == 1 and sum(moved.values()) > room
        if not size or not useful:
            return None
        block = max(1, most * layer.extent(dim) // size)
        if block > lanes:
            block -= block % lanes
        loop, out = Loop(dim, block), Hold("OUT")
        nest = Nest((Hold("IN"), loop, Hold("W"), out) if dim == "m" else (loop, Hold("IN"), out))
        if block >= layer.extent(dim) or not self.holds(step, replace(run, nest=nest)):
            return None
        return nest if self.outcome(layer, nest).occupancy_bytes["ocm"] <= room else None

    def _faster(self, layer: Layer, nest: Nest, room: int, clock: Clock) -> Nest:
        most = {"ocm": room, "bytes": self.outcome(layer, nest).bytes}
        space = tiling.build(layer, self.machine, self.pins)
        if not clock.over:
            said = search_nests(space, ("bytes",), clock, most=most, proving=(), known=most).nest or nest
            nest = min(said, nest, key=lambda one: ((of := self.outcome(layer, one)).bytes, of.time_ticks))
        return self._coarser(layer, nest, most, space)

    def _coarser(self, layer: Layer, nest: Nest, most: Mapping[str, int], space: Space) -> Nest:
        """A nest with fewer tiles, in no more bytes and less time: without some loop, or with larger steps of it.

        A search that ends early may leave tiles of one element, of which a timeline cannot have all.
        """
        now, better = self.outcome(layer, nest), True
        while better:
            better = False
            for other in coarser(layer, nest):
                if space.contains(other):
                    outcome = self.outcome(layer, other)
                    fits = outcome.bytes <= most["bytes"] and outcome.occupancy_bytes["ocm"] <= most["ocm"]
                    if fits and outcome.time_ticks < now.time_ticks:
                        nest, now, better = other, outcome, True
                        break
        return nest


def on_chip(found: Stores, machine: Machine, run: FusedRun | LayerRun) -> dict[str, int]:
    """Return the bytes of what stays on chip while a layer or a group runs, by name."""
    rows = {found.stores[s]: count for s, (count, _) in run.residents.items()}
    return {store.name: count * store.row_bytes(machine) for store, count in rows.items()}


class BankBook:
    """Hands out banks: a map takes the lowest free ones when it is first there, and gives back its last ones.

    In bytes, without banks, nothing has a number.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._held: dict[int, Banks] = {}

    def given(
        self, sizes: Mapping[int, int], in_place: Mapping[int, int] | None = None
    ) -> tuple[Mapping[int, Banks], Banks]:
        """The banks of maps that take so many from now on, and those that are left; all maps are named.

        `in_place`: maps that take the banks of others.
        """
        if not self.machine.ocm_banks:
            return dict.fromkeys(sizes, ()), ()
        self._held = {k: banks[: sizes[k]] for k, banks in self._held.items() if k in sizes}
        self._held |= {k: self._held[place][: sizes[k]] for k, place in (in_place or {}).items()}
        free = [b for b in range(self.machine.ocm_banks) if not any(b in banks for banks in self._held.values())]
        for k, number in sizes.items():
            if k not in self._held:
                self._held[k], free = tuple(free[:number]), free[number:]
        return dict(self._held), tuple(free)


def left_of(found: Stores, machine: Machine, run: LayerRun | FusedRun) -> tuple[Banks, int]:
    """Return the banks that no map on chip has during a run, and the bytes that maps leave."""
    if not machine.ocm_banks:
        own = run.residents.keys() - run.in_place.keys()
        return (), machine.bank_count - sum(run.residents[s][0] * found.stores[s].row_bytes(machine) for s in own)
    taken_banks = {bank for _, banks in run.residents.values() for bank in banks}
    free = tuple(bank for bank in range(machine.ocm_banks) if bank not in taken_banks)
    return free, len(free) * machine.bank_bytes


# ---- a path as runs --------------------------------------------------------------------------------------------------


def runs_of(path: Sequence[Taken], tables: Tables, layers: Layers, prices: GroupPrices) -> Runs:
    """Return a path as a schedule with the best nests that are known."""
    groups = tables.groups
    residences = groups.residences
    final = {k: v for s in path for k, v in s.levels.items() if residences[k].uses[-1] <= s.arc.last}
    book, made = BankBook(groups.machine), list[FusedRun | LayerRun]()
    for step in path:
        sizes = {k: residences[k].banks[level] for k, level in step.levels.items() if level}
        held, free = book.given(sizes, dict(step.arc.in_place))
        in_place = {residences[k].store: residences[place].store for k, place in step.arc.in_place}
        residents = {
            residences[k].store: (residences[k].rows[level], held[k]) for k, level in step.levels.items() if level
        }
        unwritten = tuple(_unwritten(groups, t, step, final) for t in range(step.arc.first, step.arc.last + 1))
        if step.arc.options is None:
            nest = tables.plans(step).nest(*tables.place(step))
            made.append(layers.trimmed(step.arc.first, LayerRun(nest, residents, unwritten[0], free, in_place)))
        else:
            made.append(replace(fused(groups, prices, step, free, unwritten, residents), in_place=in_place))
    return NetworkRun(tuple(made))


def _unwritten(groups: Groups, t: int, step: Taken, final: Mapping[int, int]) -> int:
    """Rows of a result that never go to DRAM: those on chip until the last use, all of a map inside a group."""
    at = groups.net.writes[t]
    store, k = groups.net.stores[at], groups.number.get(at)
    if store.results or store.dram:
        return 0
    if k is not None and k in step.levels:
        return groups.residences[k].rows[final[k]]
    return 0 if Group(groups.net, step.arc.first, step.arc.last).used_after(at) else store.rows


def fused(groups: Groups, prices: GroupPrices, taken: Taken, banks: tuple[int, ...], unwritten: tuple[int, ...],
          residents: Mapping[int, tuple[int, tuple[int, ...]]]) -> FusedRun:  # fmt: skip
    """Return the run of an arc of several layers, with the best use of the room that strips leave."""
    arc, grouped = taken.arc, taken.arc.options
    assert isinstance(grouped, Grouped)
    assert grouped.best is not None
    place = tuple(int(c[taken.levels[k]]) for k, c in zip(arc.axes, arc.classes, strict=True))
    option = grouped.options[int(grouped.best[(*place, arc.column(taken.free))])]
    laid = prices.laid_out(arc.first, arc.last, option)
    rows, columns, made = streams_of(laid.group, option)
    memory = laid.memory(residents, groups.demands.turns(laid.group))
    least, room = int(memory.peaks()[-1, 0, 0]), taken.free * groups.machine.bank_bytes
    weights = weights_of(laid.group, groups.weight_bytes)
    blocks = memory.fewest(_most(weights, laid.visits, room, least))
    stay = weights.resident(laid.visits, room - memory.peak(blocks))
    return FusedRun(arc.first, arc.last, rows, columns, made, stay, residents, unwritten, banks, blocks,
                    sampled=tuple(sorted(option.sampled)))  # fmt: skip


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
