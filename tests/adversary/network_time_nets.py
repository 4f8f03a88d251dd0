"""Tiny networks on tiny machines, and what a layer of them counts: windows, filters, cycles, ticks of transfers.

An example: ("conv", (0,), 2, 3, 1, 1) reads the input of the network (map 0) with 2 filters of 3 x 3 taps, stride 1 and
padding 1; its result is map 1. On 4 rows of 3 columns and 1 channel it computes 12 pixels of 9 taps, for as many
filters at once as the array has rows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Conv, Eltwise, Input, MatMul, Operator, Pool

#: Kind, operands (0: the input, n: the result of layer n), filters, taps, stride and padding.
Short = tuple[str, tuple[int, ...], int, int, int, int]


@dataclass(frozen=True)
class Layer:
    """A layer as it is counted here; rows and columns of its operands and of its result."""

    kind: str
    reads: tuple[int, ...]
    shape: tuple[int, int, int]
    """Channels, rows, columns of each operand."""
    made: tuple[int, int, int]
    taps: tuple[int, int]
    stride: int
    pad: int

    @property
    def filters(self) -> int:
        """With weights; 0 without."""
        return self.made[0] if self.kind in ("conv", "deep", "full") else 0

    @property
    def filter_bytes(self) -> int:
        """Of one filter."""
        return self.taps[0] * self.taps[1] * (1 if self.kind == "deep" else self.shape[0]) if self.filters else 0

    @property
    def elementwise(self) -> bool:
        """Whether its result may take the place of an operand."""
        return not self.filters and self.taps == (1, 1) and self.stride == 1 and self.shape == self.made

    @property
    def skips(self) -> bool:
        """Whether it reads single pixels of a map, and none between them."""
        strides = self.kind in ("conv", "deep", "pool") and self.stride > 1
        return strides and self.taps == (1, 1) and self.pad == 0

    @property
    def sampled(self) -> Layer:
        """The same on a map of those pixels alone that it reads."""
        return replace(self, shape=(self.shape[0], *self.made[1:]), stride=1)

    @property
    def moves(self) -> int:
        """Rows of an operand from one row of the result to the next; a layer of one row moves by all of them."""
        return max(self.stride, self.shape[1]) if self.made[1] == 1 else self.stride

    def first(self, row: int) -> int:
        """The first row of an operand under a row of the result, in front of it where that is padding."""
        return row * self.moves - self.pad

    def needed(self, rows: int) -> int:
        """Rows of an operand for so many first rows of the result."""
        return min(self.shape[1], max(0, self.first(rows - 1) + self.taps[0])) if rows > 0 else 0


@dataclass(frozen=True)
class Tiny:
    """A network, a memory, and prices."""

    shape: tuple[int, int, int]
    """Channels, rows, columns of the input."""
    layers: tuple[Short, ...]
    memory: int
    banks: int = 0
    call: int = 0
    segment: int = 0
    byte: int = 1
    cycle: int = 1
    lanes: tuple[int, int] = (1, 1)
    """Filters, and channels, at once."""
    channels_last: bool = True
    fused: tuple[int, int] | None = None
    """Layers that must run in one group."""
    height: int = 0
    """Of all strips, if it is given."""
    least: int = 1
    """Layers of a group."""
    flash: tuple[int, int, int] | None = None
    """Ticks of a call, a segment and a byte of a memory of its own for weights, if there is one."""
    each: bool = False
    """Whether both memories have a queue."""
    sums: int = 1
    """Bytes of a sum that lacks products: those of nests; what else is counted here has sums of a byte."""

    @property
    def turns(self) -> bool:
        """Whether layers may take turns."""
        return True

    # ---- what is counted ---------------------------------------------------------------------------------------------

    @cached_property
    def made(self) -> list[Layer]:
        """Its layers; those that do not fit their operands are refused with ValueError."""
        maps, made = [self.shape], list[Layer]()
        for kind, reads, filters, taps, stride, pad in self.layers:
            shape = maps[reads[0]]
            channels, rows, columns = shape
            if any(maps[k] != shape for k in reads):
                raise ValueError("operands differ")
            if kind in ("add", "full", "global"):
                stride, pad = 1, 0
                window = (1, 1) if kind == "add" else (rows, columns)
                size = (rows, columns) if kind == "add" else (1, 1)
            else:
                window = taps, taps if columns > 1 else 1
                wide = (columns + 2 * pad - taps) // stride + 1 if columns > 1 else 1
                size = (rows + 2 * pad - taps) // stride + 1, wide
                if min(size) < 1 or rows + 2 * pad < taps or (columns > 1 and columns + 2 * pad < taps):
                    raise ValueError("no window fits")
                if columns > 1 and (wide - 1) * stride - pad + taps < columns:
                    raise ValueError("columns that nobody reads")
            result = (filters if kind in ("conv", "full") else channels, *size)
            made.append(Layer(kind, reads, shape, result, window, stride, pad))
            maps.append(result)
        return made

    @cached_property
    def maps(self) -> list[tuple[int, int, int]]:
        """Channels, rows, columns; the first is the input."""
        return [self.shape, *(layer.made for layer in self.made)]

    @cached_property
    def readers(self) -> list[list[int]]:
        """The layers that read every map."""
        return [[t for t, layer in enumerate(self.made) if k in layer.reads] for k in range(len(self.maps))]

    def row_bytes(self, k: int) -> int:
        """Of a row of a map."""
        return self.maps[k][0] * self.maps[k][2]

    def map_bytes(self, k: int) -> int:
        """Of a map, in whole banks."""
        size = self.row_bytes(k) * self.maps[k][1]
        return size if not self.banks else -(-size // (self.memory // self.banks)) * (self.memory // self.banks)

    def compute(self, t: int, rows: int, filters: int, channels: int = 0) -> int:
        """Ticks of so many rows of a layer, of so many of its filters (or channels), and input channels."""
        layer = self.made[t]
        pixels, taps = rows * layer.made[2], layer.taps[0] * layer.taps[1]
        if layer.kind in ("conv", "full"):
            turns = -(-filters // self.lanes[0]) * -(-(channels or layer.shape[0]) // self.lanes[1])
        else:
            turns = -(-filters // self.lanes[1]) * len(layer.reads)
        return pixels * taps * turns * self.cycle

    def step(self, t: int, spans: dict[str, tuple[int, int]]) -> int:
        """Ticks of the engine for a box of a layer: places of m, n, r, c, i and j; those that are missing are whole."""
        layer = self.made[t]
        m, n, r, c, i, j = (
            end - begin for begin, end in ({d: (0, size) for d, size in self.extents(t).items()} | spans).values()
        )  # fmt: skip
        taps = layer.made[2] * layer.taps[0] * layer.taps[1]
        return self.compute(t, r, m, n) * (c * i * j) // taps

    def said(self, plan: Any, t: int, spans: dict[str, tuple[int, int]]) -> int:
        """Ticks of a box in a plan of certile."""
        del plan
        return self.step(t, spans)

    def joined(self, t: int, boxes: Sequence[dict[str, tuple[int, int]]]) -> int:
        """Ticks of boxes that one step makes."""
        return sum(self.step(t, one) for one in boxes)

    def extents(self, t: int) -> dict[str, int]:
        """Filters (channels of layers that add none up), input channels, rows, columns, taps of a layer."""
        layer = self.made[t]
        adds = layer.kind in ("conv", "full")
        return dict(zip("mnrcij", (layer.made[0], layer.shape[0] if adds else 1, *layer.made[1:], *layer.taps),
                        strict=True))  # fmt: skip

    def box(self, k: int, rows: int, channels: int = 0) -> int:
        """Ticks of moving so many rows of a map, of all or some of its channels."""
        every, high, wide = self.maps[k]
        channels = channels or every
        last, first = 1 if channels == every else rows * wide, 1 if rows == high else channels
        runs = last if self.channels_last else first
        return self.moved(rows * wide * channels, runs)

    def moved(self, size: int, runs: int = 1) -> int:
        """Ticks of a transfer."""
        return self.call + runs * self.segment + size * self.byte if size else 0

    def weights(self, size: int, runs: int = 1) -> int:
        """Ticks of a transfer of weights."""
        call, segment, byte = self.flash or (self.call, self.segment, self.byte)
        return call + runs * segment + size * byte if size else 0

    @property
    def queues(self) -> int:
        """How many there are; weights are moved by the last one."""
        return 2 if self.each else 1

    @property
    def free_calls(self) -> bool:
        """Whether transfers take as long in parts."""
        return not any((self.call, self.segment, *(self.flash or ())[:2]))

    @property
    def pinnable(self) -> bool:
        """Whether its pins are of its layers."""
        return self.fused is None or self.fused[1] < len(self.layers)

    def allows(self, first: int, last: int) -> bool:
        """Whether these layers may run together."""
        if last - first + 1 < self.least:
            return False
        if self.fused is None or last < self.fused[0] or first > self.fused[1]:
            return True
        return first <= self.fused[0] and self.fused[1] <= last

    # ---- for certile -------------------------------------------------------------------------------------------------

    @property
    def machine(self) -> Machine:
        """One core with a shared memory."""
        order = ("HWC", "OHWI") if self.channels_last else ("CHW", "OIHW")
        near, far = (
            {"model": "dma", "call_ticks": call, "segment_ticks": segment, "byte_ticks": byte}
            for call, segment, byte in ((self.call, self.segment, self.byte), self.flash or (0, 0, 0))
        )
        memories: dict[str, object] = {"transfer": near, "byte_fj": 1}
        if self.flash:
            memories = {
                "off_chip": [{"name": "near", "transfer": near}, {"name": "far", "transfer": far, "writable": False}],
                "homes": {"IN": ["near"], "W": ["far"], "OUT": ["near"]},
                "channels": "each" if self.each else "one",
            }
        return Machine.model_validate({
            "name": "tiny", "tick_ps": 1, "ocm_bytes": self.memory, "ocm_banks": self.banks, "sliding": True,
            "buffering": "single", "mac_fj": 1, **memories, "bias_bytes": 0, "psum_bytes": self.sums, "in_bytes": 1,
            "w_bytes": 1, "out_bytes": 1, "in_layout": order[0], "out_layout": order[0], "w_layout": order[1],
            "compute": {"model": "array", "rows": self.lanes[0], "cols": self.lanes[1], "cycle_ticks": self.cycle},
        })  # fmt: skip

    @property
    def pins(self) -> list[str]:
        """What certile is asked for."""
        fused = [f"fuse=n{self.fused[0] + 1}..n{self.fused[1] + 1}"] if self.fused else []
        length = [f"length>={self.least}"] if self.least > 1 else []
        return fused + length + ([f"strip={self.height}"] if self.height else [])

    @property
    def network(self) -> Network:
        """The operators."""
        flat = self.shape[1:] == (1, 1)
        made: list[Operator] = [Input(name="in", shape=(1, self.shape[0]) if flat else (1, *self.shape))]
        for n, layer in enumerate(self.made, 1):
            name, inputs = f"n{n}", tuple(made[k].name for k in layer.reads)
            shape: tuple[int, ...] = (1, *layer.made)
            pads = (layer.pad, layer.pad if layer.shape[2] > 1 else 0) * 2
            stride = (layer.stride, layer.stride if layer.shape[2] > 1 else 1)
            if layer.kind == "add":
                made.append(Eltwise(name=name, inputs=inputs, shape=made[layer.reads[0]].shape, fn="add"))
            elif flat:
                made.append(MatMul(name=name, inputs=inputs, shape=shape[:2], out_features=layer.made[0]))
            elif layer.kind == "pool":
                made.append(Pool(name=name, inputs=inputs, shape=shape, fn="max", kernel=layer.taps, pad=pads,
                                 stride=stride))  # fmt: skip
            elif layer.kind == "global":
                made.append(Pool(name=name, inputs=inputs, shape=shape, fn="global_avg"))
            else:
                groups = layer.shape[0] if layer.kind == "deep" else 1
                made.append(Conv(name=name, inputs=inputs, shape=shape, filters=layer.made[0], kernel=layer.taps,
                                 pad=pads, stride=stride, groups=groups))  # fmt: skip
        return Network(name="tiny", operators=tuple(made))

    # ---- drawn -------------------------------------------------------------------------------------------------------

    @property
    def possible(self) -> bool:
        """Whether all layers fit, and one reads the input; of a single pixel matrices are multiplied."""
        try:
            flat = self.shape[1:] == (1, 1) and any(layer.kind not in ("full", "add") for layer in self.made)
            return bool(self.made and self.readers[0]) and sum(self.filters) <= 12 and not flat
        except ValueError:
            return False

    @property
    def filters(self) -> list[int]:
        """Of every layer."""
        return [layer.filters for layer in self.made]

    def simpler(self) -> Iterator[Tiny]:
        """Yield networks with less of something."""
        for n, (kind, reads, filters, taps, stride, pad) in enumerate(self.layers):
            rest = [(k, tuple(o - (o > n) for o in some), *more) for k, some, *more in self.layers[n + 1 :]]
            yield replace(self, layers=(*self.layers[:n], *rest))  # type: ignore[arg-type]
            for other in ((kind, reads, filters - 1, taps, stride, pad), (kind, reads, filters, 1, stride, 0)):
                if other != self.layers[n] and filters > 1 - (other[2] == filters):
                    yield replace(self, layers=(*self.layers[:n], other, *self.layers[n + 1 :]))
        for k, size in enumerate(self.shape):
            if size > 1:
                yield replace(self, shape=(*self.shape[:k], size - 1, *self.shape[k + 1 :]))  # type: ignore[arg-type]
        yield from (replace(self, call=0), replace(self, segment=0), replace(self, banks=0))
        if self.flash:
            yield from (replace(self, flash=None, each=False), replace(self, flash=(0, 0, self.flash[2])))
        yield from (
            replace(self, cycle=1),
            replace(self, byte=1),
            replace(self, height=0),
            replace(self, memory=self.memory - 1),
        )


def drawn(
    rng: random.Random, most: int = 4, rows: int = 4, filters: int = 3, results: int = 1, *, skips: bool = False
) -> Tiny:  # fmt: skip
    """A network of one to `most` layers, on a memory from where little but a layer fits up to where all does.

    At most so many of its maps are results, which no layer reads. `skips`: some layers leave out rows and columns.
    """
    while True:
        flat = rng.randrange(8) == 0 and not skips
        shape = rng.randint(1, 4 if flat else 3), 1, 1
        if not flat:
            shape = shape[0], rng.randint(2, rows), rng.choice((1, 3, 3, 4, 5) if skips else (1, 1, 2, 3))
        layers = list[Short]()
        for n in range(rng.choice((1, 2, 2, 3, 3, most))):
            if n > 1 and rng.randrange(3) == 0:
                layers.append(("add", tuple(sorted(rng.sample(range(n + 1), 2))), 0, 1, 1, 0))
                continue
            kinds: tuple[str, ...] = ("full",) if flat else ("conv", "conv", "conv", "deep", "pool", "global", "full")
            taps, stride, pad = rng.choice(((1, 1, 0), (3, 1, 1), (3, 1, 1), (2, 2, 0), (3, 2, 1), (2, 1, 0)))
            source = n if rng.randrange(4) else rng.randint(0, n)
            if skips and rng.randrange(2):
                kinds, taps, stride, pad = ("conv", "conv", "deep", "pool"), 1, rng.choice((2, 2, 3)), 0
                source = source if rng.randrange(3) else 0
            layers.append((rng.choice(kinds), (source,), rng.randint(1, filters), taps, stride, pad))
        case = Tiny(shape, tuple(layers), 1)
        if not case.possible or sum(not some for some in case.readers) > results:
            continue
        if skips and not any(layer.skips for layer in case.made):
            continue
        need = _alone(case)
        most_bytes = sum(case.map_bytes(k) for k in range(len(case.maps)))
        most_bytes += sum(layer.filters * layer.filter_bytes for layer in case.made)
        memory = round(need + (most_bytes - need) * rng.choice((0, 0.1, 0.2, 0.3, 0.5, 0.7, 1)) * rng.random())
        banks = rng.choice((0, 0, 4, 8))
        memory = -(-memory // banks) * banks if banks else memory
        case = replace(
            case, memory=memory, banks=banks, cycle=rng.choice((1, 1, 2, 4)),
            lanes=rng.choice(((1, 1), (1, 1), (2, 2), (4, 4), (1, 4))), channels_last=rng.random() < 0.6,
        )  # fmt: skip
        computing = sum(case.compute(t, layer.made[1], layer.made[0]) for t, layer in enumerate(case.made))
        # mostly the engine and the queue are busy for about as long
        byte = round(computing / most_bytes * rng.uniform(0.4, 2)) if rng.randrange(4) else rng.choice((1, 2, 4))
        byte = max(1, byte)
        return replace(case, byte=byte, call=byte * rng.choice((0, 0, 1, 4, 20)), segment=byte * rng.choice((0, 0, 2)))


def pinned(case: Tiny, rng: random.Random) -> Tiny:
    """The same, all or some layers in one group, mostly, and in strips of one height, sometimes."""
    count = len(case.made)
    if count > 1:
        last = count - 1 if rng.randrange(4) else rng.randint(1, count - 1)
        case = replace(case, fused=(rng.randint(0, last - 1) if rng.randrange(4) == 0 else 0, last))
    rows = case.made[case.fused[1] if case.fused else 0].made[1]
    if rng.randrange(3) == 0 and case.fused and case.fused == (0, count - 1):
        case = replace(case, height=-(-rows // rng.randint(1, rows)))
    return case


def split(case: Tiny, rng: random.Random, *, each: bool) -> Tiny:
    """The same with weights in a memory of their own, which is slower mostly."""
    byte = max(1, round(case.byte * rng.choice((0.5, 1, 2, 4))))
    return replace(case, flash=(byte * rng.choice((0, 0, 1, 4)), byte * rng.choice((0, 0, 2)), byte), each=each)


def _alone(case: Tiny) -> int:
    """Bytes in which every layer runs by itself in strips of a row, filter by filter."""
    return max(
        sum((layer.needed(1) + 1) * case.row_bytes(k) for k in layer.reads) + layer.filter_bytes
        + case.row_bytes(t + 1)
        for t, layer in enumerate(case.made)
    )  # fmt: skip


def pieces(number: int) -> Iterator[Sequence[int]]:
    """Yield all ways to cut so many things in pieces, the sizes in order."""
    if number == 0:
        yield ()
    for first in range(1, number + 1):
        for rest in pieces(number - first):
            yield (first, *rest)
