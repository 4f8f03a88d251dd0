"""What lies on chip while a network runs: layers with the rows that stay, groups of layers, and one address for all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, permutations

import numpy as np

from formulations.placement.packing import Block
from hwmodels.fusion.replay.strips import as_seen
from hwmodels.nest.buffers import Buffer, buffers
from hwmodels.schedule import FusedRun, Hold, LayerRun, Nest
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.buffers import Buffers
from instances.network.network import Network
from instances.network.operators import Concat
from instances.network.stores import Store, Stores, inputs_of, stores
from instances.network.workload import Layer
from instances.problems import either, nested
from solver.plan.plan import Plan
from solver.problems.joint import is_shared
from solver.problems.layers import is_layers
from solver.uses.emit.chip import ChipMap
from solver.uses.emit.frame import ZEROS, Kept, KeptWeights
from solver.uses.emit.groups import Group, Part, as_read
from solver.uses.emit.meaning import Meaning
from solver.uses.emit.numbers import Numbers, integers
from solver.uses.emit.offchip import placed
from solver.uses.emit.values import Value, rows_of, storage_order

AnyRun = LayerRun | FusedRun


@dataclass(frozen=True)
class Places:
    """Addresses: of buffers by name, of maps that stay by the first layer of a run and store; and packed groups."""

    buffers: Mapping[str, int]
    maps: Mapping[tuple[int, int], int]
    packed: frozenset[int]


class OnChip:
    """The runs of a network, by layer and as groups, with addresses."""

    def __init__(
        self, network: Network, machine: Machine, found: Stores, runs: Sequence[AnyRun], meaning: Meaning | None,
        matrices: Mapping[int, Value | None] | None = None,
    ) -> None:  # fmt: skip
        self.network, self.machine, self.found, self.runs, self.meaning = network, machine, found, runs, meaning
        self.matrices = matrices or {}
        sizes = [1 if isinstance(run, LayerRun) else run.last - run.first + 1 for run in runs]
        #: The first layer of every run, which is also its first time; the end.
        self.begins = [0, *accumulate(sizes)]
        self.by_begin = dict(zip(self.begins, runs, strict=False))
        self.alone = {begin: run for begin, run in self.by_begin.items() if isinstance(run, LayerRun)}
        self.grouped = {begin: run for begin, run in self.by_begin.items() if isinstance(run, FusedRun)}
        self.chips: dict[int, ChipMap] = {}

    # ---- layers by themselves --------------------------------------------------------------------------------------

    def layer(self, t: int) -> Layer:
        """A layer with the rows that it finds on chip, and those that it never writes."""
        if (run := self.alone.get(t)) is not None:
            return self.found.layer(t, run.rows, run.unwritten)
        group = self.run_of(t)
        assert group is not None
        if spread := [s for s, readers in self.broadcast.items() if t in readers and s in group.residents]:
            raise self.no_broadcast(spread[0])
        return self.found.layer(t, {}, group.unwritten[t - group.first])

    def run_of(self, t: int) -> FusedRun | None:
        """The group that a layer is in."""
        return next((run for run in self.grouped.values() if run.first <= t <= run.last), None)

    @cached_property
    def broadcast(self) -> Mapping[int, tuple[int, ...]]:
        """Maps that layers make and others read as operands that are broadcast, and by which."""
        layers, made = self.found.layers, [bool(store.parts) for store in self.found.stores]
        read = [
            (s, t) for t, given in enumerate(self.found.reads)
            for s, lacks in zip(given, layers[t].patterns, strict=True) if lacks and made[s]
        ]  # fmt: skip
        return {s: tuple(t for one, t in read if one == s) for s, _ in read}

    def no_broadcast(self, store: int) -> InputError:
        """The refusal of an operand that is broadcast within a group and stays on chip."""
        name = self.found.stores[store].name
        return InputError(f"{name}: groups read operands that are broadcast from memory, not where they stay on chip")

    def counted(self, t: int) -> tuple[Layer, Nest]:
        """A layer that runs by itself and its nest as they count: with weights that it brings before all else."""
        layer, nest = self.layer(t), self.alone[t].nest
        if not (layer.resident_w and self._brings(t) == t):
            return layer, nest
        return layer.model_copy(update={"resident_w": False}), replace(nest, items=(Hold("W"), *nest.items))

    def _brings(self, t: int) -> int:
        """The layer that has brought the weights that layer t finds on chip."""
        s, number = self.found.shared[t], self.begins.index(t)
        while number > 0 and s in self.runs[number - 1].residents:
            number -= 1
        return self.begins[number]

    def kept_weights(self, t: int) -> KeptWeights | None:
        """Where the weights of a layer that runs by itself lie on chip."""
        s, run = self.found.shared[t], self.alone[t]
        if s not in run.residents:
            return None
        by, order = self._brings(t), storage_order("W", self.machine)
        pitches = dict(zip(order, self.weights_seen(t, by), strict=True))
        return KeptWeights(self.addresses.maps[t, s], by == t, pitches)

    def weights_seen(self, t: int, by: int) -> tuple[int, ...]:
        """The pitches of a layer's weights where another one has brought them, in storage order.

        Raises InputError if they are not the same elements in an order of axes, or biases differ.
        """
        order = storage_order("W", self.machine)
        layers = [self.found.layers[k] for k in (t, by)]
        mine, there = (tuple(map(layer.extent, order)) for layer in layers)
        store, own = self.found.shared[t], rows_of(mine)
        if t == by or self.meaning is None:
            return own
        if layers[0].weights == "activation":
            if layers[1].weights == "constant" or mine != there or self.matrices[t] != self.matrices[by]:
                raise refused(self.found, store, "their layers see a matrix in two orders")
            return own
        both = [self.meaning.trained(self.network.operator(layer.name), layer) for layer in layers]
        seen = pitches_in(both[1].weights.reshape(there), both[0].weights.reshape(mine))
        if seen is None:
            raise refused(self.found, store, "their layers have them otherwise than in an order of axes")
        if self.machine.bias_bytes and both[0].bias.tobytes() != both[1].bias.tobytes():
            raise refused(self.found, store, "biases are not the same integers")
        return seen

    @cached_property
    def tiles(self) -> Mapping[int, Sequence[Buffer]]:
        """The buffers of layers that run by themselves."""
        return {t: buffers(self.layer(t), self.machine, run.nest) for t, run in self.alone.items()}

    def inputs(self, t: int) -> list[tuple[str, int]]:
        """The operators and the stores that a layer reads."""
        layer = self.found.layers[t]
        names = inputs_of(self.network, self.network.operator(layer.name), layer)
        return list(zip(names, self.found.reads[t], strict=True))

    def names(self, t: int, s: int) -> list[str]:
        """The names under which a layer reads a store."""
        return [name for name, store in self.inputs(t) if store == s]

    def kept(self, t: int) -> tuple[tuple[Kept | None, ...], Kept | None]:
        """Where inputs and the result of a layer that runs by itself lie on chip."""
        layer = self.found.layers[t]
        read = enumerate(self.inputs(t))
        inputs = tuple(self._kept(t, s, t, name, "IN", layer.input_rows(k)) for k, (name, s) in read)
        return inputs if any(inputs) else (), self._kept(t, self.found.writes[t], t, layer.name, "OUT", layer.r)

    def _kept(self, begin: int, s: int, t: int, name: str, operand: str, extent: int) -> Kept | None:
        """Where a map lies that stays while a run lasts, as layer t reads or makes it under a name: `extent` rows."""
        run = self.by_begin[begin]
        if self.found.stores[s].zeros:
            return Kept(ZEROS, 0, extent, (), 0, 0)
        if s not in run.residents:
            return None
        layer = self.found.layers[t]
        rows = self.found.stores[s].seen(run.residents[s][0], extent)
        address = self.addresses.maps[begin, s]
        found = self.chip(s).kept(self.network.operator(layer.name), operand, name, layer, address, rows)
        if operand == "OUT" and s in run.in_place:
            self._check_place(begin, t, found)
        return found

    def _check_place(self, begin: int, t: int, made: Kept) -> None:
        """Raise InputError if elements of a result do not lie where those lie that they are made of."""
        place = self.by_begin[begin].in_place[self.found.writes[t]]
        layer, name = self.found.layers[t], self.names(t, place)[0]
        read = self._kept(begin, place, t, name, "IN", layer.h)
        if read is None or _elements(read) != _elements(made):
            said = f"the result of {layer.name} takes the place of {name}, which has another order of elements"
            raise InputError(f"{said}: no C is written")

    def chip(self, s: int) -> ChipMap:
        """How a store lies on chip."""
        if s not in self.chips:
            members = self.found.members[s]
            self.chips[s] = ChipMap(self.network, self.found.stores[s], members, self.machine, self.meaning)
        return self.chips[s]

    def numbers(self, t: int) -> Numbers:
        """How a layer computes."""
        layer = self.found.layers[t]
        if self.meaning is None:
            return integers(self.machine)
        return self.meaning.numbers(self.network.operator(layer.name), layer)

    # ---- groups ----------------------------------------------------------------------------------------------------

    def _sized(self, run: FusedRun, ringed: frozenset[int], *, packed: bool = False) -> Group:
        """A group of which only the buffers matter, some as rings."""
        return Group(as_seen(self.found, run), self.machine, run, (), (), (), ringed, packed)

    def group(self, run: FusedRun) -> Group:
        """A group with all that its C depends on."""
        layers = range(run.first, run.last + 1)
        parts = tuple(tuple(self.parts(run, t, k) for k in range(self.found.layers[t].inputs)) for t in layers)
        kept = tuple(self._kept_stream(run, k) for k in range(len(run.streams)))
        numbers = tuple(self.numbers(t) for t in layers)
        return Group(as_seen(self.found, run), self.machine, run, parts, kept, numbers, self.rings[run.first],
                     run.first in self.addresses.packed)  # fmt: skip

    def reference(self, run: FusedRun, k: int) -> tuple[int, str]:
        """Of a map from outside the reader with the most channels, and the name under which that reads it."""
        stream = run.streams[k]
        t = max(stream.readers, key=lambda u: self.found.operand(u, stream.store).elements)
        return t, self.names(t, stream.store)[0]

    def _kept_stream(self, run: FusedRun, k: int) -> Kept | None:
        stream = run.streams[k]
        if stream.outside:
            t, name = self.reference(run, k)
            return self._kept(run.first, stream.store, t, name, "IN", self.found.layers[t].h)
        maker = self.found.layers[stream.maker]
        return self._kept(run.first, stream.store, stream.maker, maker.name, "OUT", maker.r)

    def parts(self, run: FusedRun, t: int, number: int) -> tuple[Part, ...]:
        """Which channels of an input come from which stream."""
        layer, (name, s) = self.found.layers[t], self.inputs(t)[number]
        streams = [k for k, stream in enumerate(run.streams) if stream.store == s and t in stream.readers]
        seen_as = as_read(self.found, t, s)
        channels = seen_as.g * seen_as.n
        joined = any(isinstance(self.network.operator(n), Concat) for n in self.found.members[s])
        outside = [k for k in streams if run.streams[k].outside]
        mine = [k for k in outside if self.chip(s).same(self.reference(run, k)[1], name)]
        if len(streams) == 1 and (mine or not (joined or self.found.stores[s].whole)):
            return (Part(streams[0], 0, channels),)
        parts = []
        for k in streams:
            stream = run.streams[k]
            source = self.reference(run, k)[1] if stream.outside else self.found.layers[stream.maker].name
            seen, there = check_passes(self.chip(s), name, source, layer)
            parts.append(Part(k, (there.offset - seen.offset) // seen.pitch[1], there.shape[1]))
        return tuple(parts)

    @cached_property
    def rings(self) -> Mapping[int, frozenset[int]]:
        """By the first layer of a group the streams whose pieces are rings: so that it takes the least at any time."""
        return {begin: self._rings(run) for begin, run in self.grouped.items()}

    def _rings(self, run: FusedRun) -> frozenset[int]:
        def takes(ringed: frozenset[int]) -> tuple[int, int]:
            return _most(self._sized(run, ringed))

        chosen = min((frozenset[int](), frozenset(range(len(run.streams)))), key=takes)
        for _ in run.streams:
            found = min((chosen ^ {k} for k in range(len(run.streams))), key=takes)
            if takes(found) >= takes(chosen):
                break
            chosen = found
        return chosen

    # ---- addresses -------------------------------------------------------------------------------------------------

    @cached_property
    def addresses(self) -> Places:
        """Of every buffer and every map that stays; empty if each layer by itself has the addresses of its plan.

        Every buffer keeps its address while it is needed, as far as that is found; else groups are packed, the largest
        first; else maps that stay move between layers, which always fits.
        """
        if not self.grouped and not any(run.residents for run in self.runs):
            return Places({}, {}, frozenset())
        capacity = self.machine.memories["ocm"]
        for some in dict.fromkeys((self._packed, frozenset(self.grouped))):
            blocks = self._blocks(some)
            if self.machine.reserved_bytes:
                blocks.append(Block("reserved", 0, (self.machine.reserved_bytes,) * self.begins[-1]))
            if (found := placed(blocks, capacity)) is not None:
                maps = {(begin, s): found[f"map {self._places[s]}"]
                        for begin, run in self.by_begin.items() for s in run.residents}  # fmt: skip
                return Places(found, maps, some)
        return self._stacked(frozenset(self.grouped))

    @property
    def _packed(self) -> frozenset[int]:
        """Groups whose buffers have no room as they are: their layers take turns, or the plan counted less."""
        found, memory = set[int](), self.machine.memories["ocm"] - self.machine.reserved_bytes
        for begin, run in self.grouped.items():
            room = memory - sum(self._map_bytes(run, s) for s in run.residents.keys() - run.in_place.keys())
            found |= {begin} if run.blocks or _most(self._sized(run, self.rings[begin]))[0] > room else set()
        return frozenset(found)

    def blocks(self) -> list[Block]:
        """All that lies on chip, what is reserved aside, under the names of layers and maps; a layer is a time."""
        return [replace(block, name=self._called(block.name)) for block in self._blocks(self._packed)]

    def _called(self, name: str) -> str:
        what, rest = name.split(" ", 1)
        if what == "map":
            return f"map {self.found.stores[int(rest)].name}"
        run, layers = self.grouped.get(int(what)), self.found.layers
        if run is None:
            return f"{layers[int(what)].name}: {rest}"
        return f"{layers[run.first].name}..{layers[run.last].name}: {rest}"

    def _stacked(self, packed: frozenset[int]) -> Places:
        """Maps that stay one behind the other, then what a layer or a group needs: in every run anew."""
        buffers: dict[str, int] = {}
        maps: dict[tuple[int, int], int] = {}
        for begin, run in self.by_begin.items():
            end = self.machine.reserved_bytes
            for s in sorted(run.residents, key=lambda s: (s in run.in_place, s)):
                if s in run.in_place:
                    maps[begin, s] = maps[begin, run.in_place[s]]
                    continue
                maps[begin, s] = end
                end += self._map_bytes(run, s)
            for block in self._run_blocks(begin, packed):
                buffers[block.name] = end
                end += max(block.sizes)
        return Places(buffers, maps, packed)

    def _blocks(self, packed: frozenset[int]) -> list[Block]:
        """All buffers and maps, some groups packed."""
        blocks = [block for begin in self.begins[:-1] for block in self._run_blocks(begin, packed)]
        places = dict.fromkeys(self._places.values())
        return blocks + [block for s in sorted(places) if (block := self._stay(s)) is not None]

    def _run_blocks(self, begin: int, packed: frozenset[int]) -> list[Block]:
        """The buffers of a run."""
        if (run := self.grouped.get(begin)) is not None:
            return self._sized(run, self.rings[begin], packed=begin in packed).blocks(str(begin), begin)
        tiles = (b for b in self.tiles[begin] if b.bytes and b.name != "reserved")
        return [Block(f"{begin} {b.name}", begin, (b.bytes * b.copies,)) for b in tiles]

    def moves(self, begin: int) -> list[tuple[int, int, int]]:
        """Maps that lie elsewhere than in the run before: from, to, bytes, in an order in which none is overwritten."""
        number = self.begins.index(begin)
        if number == 0:
            return []
        before, run, maps = self.begins[number - 1], self.runs[number], self.addresses.maps
        moved = [(maps[before, s], maps[begin, s], self._map_bytes(run, s))
                 for s in run.residents if (before, s) in maps and maps[before, s] != maps[begin, s]]  # fmt: skip
        down = sorted(move for move in moved if move[1] < move[0])
        return down + sorted((move for move in moved if move[1] > move[0]), reverse=True)

    def _map_bytes(self, run: AnyRun, s: int) -> int:
        """Bytes of a map that stay while a run lasts."""
        rows = run.residents[s][0] if s in run.residents else 0
        return rows * self.found.stores[s].row_bytes(self.machine)

    @cached_property
    def _places(self) -> Mapping[int, int]:
        """Of every map that stays the one whose place it takes, through as many as there are; itself if none."""
        found = dict[int, int]()
        for run in self.runs:
            for s in sorted(run.residents, key=lambda s: s in run.in_place):
                found.setdefault(s, found[run.in_place[s]] if s in run.in_place else s)
        return found

    def _stay(self, place: int) -> Block | None:
        """The maps that stay in one place, each when the one before it is read: their bytes by time."""
        sizes, mine = list[int](), [s for s, at in self._places.items() if at == place]
        for (begin, run), end in zip(self.by_begin.items(), self.begins[1:], strict=True):
            sizes += [max(self._map_bytes(run, s) for s in mine)] * (end - begin)
        times = [t for t, size in enumerate(sizes) if size]
        return Block(f"map {place}", times[0], tuple(sizes[times[0] : times[-1] + 1])) if times else None


def _elements(kept: Kept) -> tuple[object, ...]:
    """Where the elements of a map lie that a layer reads or makes one by one."""
    terms = sorted((text.replace("{m}", "{n}"), pitch) for text, pitch in kept.terms)
    return kept.address, kept.offset, kept.column, terms


def no_zeros(store: Store) -> InputError:
    """The refusal of a state of zeros that a plan of groups reads from nowhere."""
    return InputError(f"{store.name}: zeros, which C of groups reads from memory and the plan from nowhere")


def check_passes(chip: ChipMap, name: str, source: str, layer: Layer) -> tuple[Value, Value]:
    """Where a map that a layer reads under a name lies, and the part of it that another name has.

    Raises InputError if it is reshaped in between: channels of the one are no channels of the other.
    """
    seen, there = chip.values.get(name), chip.values.get(source)
    if seen is None or there is None or len(seen.shape) != 4 or not _alike(seen, there):
        said = f"map {chip.store.name} is reshaped on its way through a group"
        raise InputError(f"layer {layer.name}: {said}: no C is written")
    return seen, there


def _alike(one: Value, other: Value) -> bool:
    """Whether elements lie as far apart along every axis of two tensors that has several of either."""
    if len(one.shape) != len(other.shape):
        return False
    axes = zip(one.shape, other.shape, one.pitch, other.pitch, strict=True)
    return all(mine == its for size, there, mine, its in axes if max(size, there) > 1)


def _most(group: Group) -> tuple[int, int]:
    """The most bytes that a group's buffers take at one time; of equals all bytes together."""
    blocks = group.blocks("", 0)
    by_time = [sum(b.sizes[t - b.begin] for b in blocks if b.begin <= t < b.end) for t in range(len(group.layers))]
    return max(by_time), sum(by_time)


# ---- one tensor of weights of several layers -----------------------------------------------------------------------


def refused(found: Stores, store: int, said: str) -> InputError:
    """The refusal of weights that stay on chip."""
    names = [one.name for one, s in zip(found.layers, found.shared, strict=True) if s == store]
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return InputError(f"weights that stay on chip between {shown}: {said}: of that C is written from memory only")


def pitches_in(there: np.ndarray, mine: np.ndarray) -> tuple[int, ...] | None:
    """Return the pitches of an array's axes where its elements lie in another order of axes; None if in no order.

    Both have the same elements. The order is found by comparing them.
    """
    if there.size != mine.size:
        return None
    if there.tobytes() == mine.tobytes():
        return rows_of(mine.shape)
    axes = [(size, pitch) for size, pitch in zip(there.shape, rows_of(there.shape), strict=True) if size > 1]
    flat, sizes = there.reshape([size for size, _ in axes]), [size for size in mine.shape if size > 1]
    for order in permutations(range(len(axes))):
        if [axes[a][0] for a in order] == sizes and flat.transpose(order).tobytes() == mine.tobytes():
            steps = iter(axes[a][1] for a in order)
            return tuple(next(steps) if size > 1 else 1 for size in mine.shape)
    return None


# ---- buffers as targets of problem placement -----------------------------------------------------------------------


def buffers_of(plan: Plan) -> Buffers:
    """Return what lies on chip while a plan runs: tiles, maps that stay, strips, scratch. A layer is a time.

    Raises
    ------
    InputError
        For plans of problems that have no buffers with addresses, and plans without a schedule.
    """
    if is_layers(plan):
        blocks = dict(_of_layers(plan))
    elif is_shared(plan) and plan.schedule is not None:
        chip = OnChip(plan.network_data, plan.machine_data, stores(plan.network_data), plan.schedule, None)
        blocks = dict.fromkeys(chip.blocks(), "ocm")
    else:
        raise InputError(
            f"plan of {plan.network}: problem placement takes plans of {either(nested())} that have "
            f"layers, this is one of {plan.problem}, {plan.status}"
        )
    return Buffers(name=plan.network, buffers=tuple(block.buffer(memory) for block, memory in blocks.items()))


def _of_layers(plan: Plan) -> Iterable[tuple[Block, str]]:
    """Tiles and scratch of every layer."""
    for time, layer in enumerate(plan.layers):
        if layer.schedule is None:
            raise InputError(f"plan of {plan.network}: layer {layer.layer} has no schedule")
        for tile in buffers(layer.workload, plan.machine_data, layer.schedule):
            if tile.bytes and tile.name != "reserved":
                yield Block(f"{layer.layer}: {tile.name}", time, (tile.bytes * tile.copies,)), tile.memory
