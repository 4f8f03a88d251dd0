"""A group of layers that runs strip by strip, as its C sees it: buffers of every map, and where inputs come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from formulations.placement.packing import Block
from hwmodels.fusion.replay.count import Count, extent, resident_rows, weight_bytes, weight_owners
from hwmodels.fusion.replay.strips import AxisStep, Walk
from hwmodels.schedule import Blocks, FusedRun
from instances.machine.machine import Machine
from instances.network.stores import Stores
from instances.network.workload import Layer
from solver.uses.emit.frame import Kept
from solver.uses.emit.kinds import require
from solver.uses.emit.numbers import Numbers


@dataclass(frozen=True)
class Part:
    """Channels of a layer's input: those of a stream of the group."""

    stream: int
    first: int
    number: int
    begin: int = 0
    """The channel of the stream that is the first of them."""
    flat: tuple[int, int] | None = None
    """Rows and columns of the stream, if its elements are channels of one pixel for the reader."""


@dataclass(frozen=True)
class Sizes:
    """Of a stream: lines, columns that stay, rows and columns of a piece; all zero where its whole map stays anyway."""

    lines: int
    columns: int
    rows: int
    width: int
    ring: str = ""
    """"rows" or "columns" where the piece is a ring along them."""


@dataclass(frozen=True)
class Group:
    """A group, and all that its C depends on. `parts`: by layer and input; `kept`: by stream, of results and inputs."""

    found: Stores
    """The network as its layers see it (`hwmodels.fusion.replay.strips.as_seen`)."""
    machine: Machine
    run: FusedRun
    parts: Sequence[Sequence[Sequence[Part]]]
    kept: Sequence[Kept | None]
    numbers: Sequence[Numbers]
    ringed: frozenset[int] = frozenset()
    """The streams whose pieces are rings, if that may be."""
    packed: bool = False
    """Whether its strips lie one behind the other without gaps and move, in the bytes that the plan counts."""

    @cached_property
    def walk(self) -> Walk:
        """How it runs."""
        return Walk(self.found, self.run)

    @property
    def layers(self) -> Sequence[Layer]:
        """Its layers."""
        return self.found.layers[self.run.first : self.run.last + 1]

    @cached_property
    def rows(self) -> list[list[AxisStep]]:
        """The steps of rows of every stream."""
        return list(self.walk.steps("rows"))

    @cached_property
    def columns(self) -> list[list[AxisStep]]:
        """The steps of columns of every stream."""
        return list(self.walk.steps("columns"))

    @cached_property
    def adding(self) -> Mapping[int, Blocks]:
        """Layers that add up blocks of channels, by their numbers in the group."""
        every = {blocks.last - self.run.first: blocks for blocks in self.run.blocks}
        return {k: blocks for k, blocks in every.items() if self.layers[k].g == 1}

    @cached_property
    def passing(self) -> Mapping[int, Blocks]:
        """Layers that turns end with, and add nothing up."""
        every = {blocks.last - self.run.first: blocks for blocks in self.run.blocks}
        return {k: blocks for k, blocks in every.items() if k not in self.adding}

    @cached_property
    def between(self) -> Mapping[int, Blocks]:
        """Layers (and their streams) that make block after block of channels."""
        return {t - self.run.first: blocks for blocks in self.run.blocks for t in range(blocks.first, blocks.last)}

    def inner(self, k: int) -> int:
        """Channels of a stream in each of its groups of channels."""
        layer = self.seen_by(k)
        return layer.n if self.run.streams[k].outside else layer.m

    def channels(self, k: int) -> int:
        """Channels of a stream."""
        return self.seen_by(k).g * self.inner(k)

    def images(self, k: int) -> int:
        """Images of a stream."""
        return self.seen_by(k).b

    def layout(self, k: int) -> str:
        """The order of a stream's axes."""
        return self.machine.in_layout if self.run.streams[k].outside else self.machine.out_layout

    def seen_by(self, k: int) -> Layer:
        """The layer whose tensor a stream is: its maker, or of a map from outside the reader with the most channels."""
        stream = self.run.streams[k]
        if not stream.outside:
            return self.found.layers[stream.maker]
        seen = (as_read(self.found, u, stream.store) for u in stream.readers)
        return max(seen, key=lambda layer: layer.g * layer.n)

    def off_chip(self, k: int) -> Layer:
        """The layer that reads a map from outside as it lies there, where that is sampled with all its pixels."""
        layer, pitch = self.seen_by(k), self.found.pitch.get(self.run.streams[k].maker)
        return layer if pitch is None else layer.model_copy(update={"h": pitch.rows, "l": pitch.columns})

    def element(self, k: int) -> int:
        """Bytes of an element of a stream."""
        return self.machine.in_bytes if self.run.streams[k].outside else self.machine.out_bytes

    def resident(self, k: int) -> int:
        """Rows of a stream that stay on chip."""
        return resident_rows(self.found, self.walk, k)

    def stays(self, k: int) -> bool:
        """Whether the whole map of a stream stays on chip anyway."""
        store = self.run.streams[k].store
        return store in self.run.residents and self.run.residents[store][0] == self.found.stores[store].rows

    def sizes(self, k: int) -> Sizes:
        """The buffers of a stream."""
        if self.stays(k):
            return Sizes(0, 0, 0, 0)
        rows, columns = [step[k] for step in self.rows], [step[k] for step in self.columns]
        down, over = self.run.rows.halo == "retain", self.run.columns.halo == "retain"
        lines = max(max(s.end - s.need_after, s.before - s.need) for s in rows) if down else 0
        wide = max(max(s.end - s.need_after, s.before - s.need) for s in columns) if over and len(columns) > 1 else 0
        if k in self.ringed and len(columns) == 1 and lines > 0:
            return Sizes(0, 0, max(s.end - s.need for s in rows), max(s.end - s.begin for s in columns), "rows")
        if k in self.ringed and wide > 0:
            width = max(s.end - s.need for s in columns)
            return Sizes(max(0, lines), 0, max(s.end - s.begin for s in rows), width, "columns")
        return Sizes(
            max(0, lines), max(0, wide), max(s.end - s.begin for s in rows), max(s.end - s.begin for s in columns)
        )  # fmt: skip

    def filter_bytes(self, k: int) -> int:
        """Bytes of a filter of a layer with its bias."""
        return filter_bytes(self.layers[k], self.machine)

    @cached_property
    def passed_bytes(self) -> int:
        """The buffer that filters pass through."""
        parts = [k for k, layer in enumerate(self.layers) if self.run.weights[k] < weight_bytes(layer, self.machine)]
        return max(map(self.filter_bytes, parts), default=0)

    @cached_property
    def peak(self) -> int:
        """The most bytes that the plan counts."""
        return Count(self.machine, self.walk).run_all().peak_bytes

    def stay_bytes(self, k: int) -> int:
        """Bytes of weights of a layer that stay."""
        return min(self.run.weights[k], weight_bytes(self.layers[k], self.machine))

    def places(self, address: Mapping[str, int]) -> Mapping[str, int]:
        """The addresses of all buffers; where strips are packed those of weights and of the first strip."""
        if not self.packed:
            return address
        ends = [*accumulate(map(self.stay_bytes, range(len(self.layers))), initial=address["packed"])]
        found = {f"weights {k}": end for k, end in enumerate(ends[:-1])}
        return found | {"filter": ends[-1], "strips": ends[-1] + self.passed_bytes}

    def blocks(self, name: str, begin: int) -> list[Block]:
        """The group's buffers; a time for every layer, from `begin` on."""
        number, found = len(self.layers), list[Block]()
        if self.packed:
            return [Block(f"{name} packed", begin, (self.peak,) * number)]

        def add(what: str, size: int, first: int = 0, last: int = number - 1) -> None:
            if size:
                found.append(Block(f"{name} {what}", begin + first, (size,) * (last - first + 1)))

        for k, stream in enumerate(self.run.streams):
            pixel, sizes = self.images(k) * self.channels(k) * self.element(k), self.sizes(k)
            add(f"lines {k}", sizes.lines * extent(self.walk, k)[1] * pixel)
            add(f"columns {k}", sizes.columns * sizes.rows * pixel)
            first, last = stream.maker - self.run.first, max((stream.maker, *stream.readers)) - self.run.first
            first, last = (0, number - 1) if sizes.ring else (first, last)
            add(f"piece {k}", sizes.rows * sizes.width * pixel, first, last)
        for k in range(number):
            add(f"weights {k}", self.stay_bytes(k))
        add("filter", self.passed_bytes)
        return found


def filter_bytes(layer: Layer, machine: Machine) -> int:
    """Return the bytes of a filter of a layer with its bias."""
    return weight_bytes(layer, machine) // (layer.g * layer.m)


def refuse(group: Group) -> None:
    """Raise InputError for a group that no C is written of."""
    owners = weight_owners(group.found, group.run)
    names, apart = ", ".join(layer.name for layer in group.layers), all(owner >= k for k, owner in enumerate(owners))
    require(apart, f"layers {names}", "some have one tensor of weights in a group")
    for k, stream in enumerate(group.run.streams):
        readers = (as_read(group.found, u, stream.store) for u in stream.readers)
        check_images(group.found, stream.store, [group.seen_by(k), *readers])


def as_read(found: Stores, step: int, store: int) -> Layer:
    """A layer with what it reads of a store as its input: one element along dimensions that this lacks."""
    sizes = {"b": "b", "g": "g", "r": "h", "c": "l"}
    return found.layers[step].model_copy(update={sizes[d]: 1 for d in found.operand(step, store).lacks})


def check_images(found: Stores, store: int, layers: Sequence[Layer]) -> None:
    """Raise InputError if layers of a group see a map as several images and as one."""
    where, name = f"layers {layers[0].name} to {layers[-1].name}", found.stores[store].name
    require(len({layer.b for layer in layers}) == 1, where, f"{name} is read as several images and as one")
