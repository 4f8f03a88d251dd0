"""Referee for meshes and arrays, step by step, and for the bank layouts of a mesh, PE by PE.

**Mesh** (`replay_mesh`). Operand tiles go from the global buffer through FIFOs into the units. A unit works on one tile
of results; its partial sums stay until all products are in, then the results are written. In every step each unit needs
a box of either operand. It has it still (the operand that is kept), or a neighbour above or to the left has the same
box and passes it on (operands that are shared), or it is read from the global buffer, which streams it from DRAM.
Padding is not read. Nothing is taken from the formulation.

Source: `vectormesh` sections II-B and II-C, Fig. 2.

**Arrays** (`replay_array`). Tiles go from DRAM to the global buffer, passes from there to the PEs.
For each tile of the global buffer the passes of the array are walked through one by one: which filters, channels and
kernel taps a pass works on, which pixels it streams, which partial sums it reads and writes. Padding is not read.

Source: `vectormesh` section I and III-B, after its references [5] (systolic, weights stay) and [6] (row stationary).

**Bank layouts** (`replay_lanes`): all vectors of a tile, PE by PE, bank by bank, wire by wire.
Every vector of a tile and every product of its results is looked at: which address each PE reads, whether two PEs read
different words of one bank, and whether two words meet on a wire of the butterfly that sets the highest bit first.

Source: `vectormesh` section II-C.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from hwmodels.schedule import SHARES, Choice
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer

Box = tuple[tuple[int, int], ...]


@dataclass
class Seen:
    """What the simulation counted: bytes, cycles of PEs, products, fetches of tiles, words through FIFOs."""

    dram: int = 0
    glb: int = 0
    cycles: int = 0
    macs: int = 0
    fetches: int = 0
    fifo_words: int = 0
    steps: int = 0
    faults: list[str] = field(default_factory=list)


def pieces(size: int, tile: int) -> list[tuple[int, int]]:
    """Begin and end of every tile."""
    return [(first, min(first + tile, size)) for first in range(0, size, tile)]


def cuts_of(layer: Layer, given: Choice) -> dict[str, list[tuple[int, int]]]:
    """The tiles along every index."""
    return {d: pieces(layer.extent(d), tile) for d, tile in zip(DIMS, given.tile, strict=True)}


def boxes(layer: Layer, at: Mapping[str, tuple[int, int]]) -> dict[str, tuple[Box, Box]]:
    """Return for either operand the box that ranges of indices need, and what of it lies inside the tensor."""
    rows = _window(at["r"], at["i"], layer.stride_h, layer.dilation_h, layer.pad_top)
    cols = _window(at["c"], at["j"], layer.stride_w, layer.dilation_w, layer.pad_left)
    given = (at["b"], at["g"], at["n"], rows, cols)
    inside = (at["b"], at["g"], at["n"], _clip(rows, layer.h), _clip(cols, layer.l))
    names = "bnrc" if layer.kind == "correlation" else "gmnij"
    weights = tuple(at[d] for d in names)
    return {"IN": (given, inside), "W": (weights, weights)}


def _window(out: tuple[int, int], tap: tuple[int, int], stride: int, dilation: int, pad: int) -> tuple[int, int]:
    return out[0] * stride + tap[0] * dilation - pad, (out[1] - 1) * stride + (tap[1] - 1) * dilation - pad + 1


def _clip(span: tuple[int, int], size: int) -> tuple[int, int]:
    low = min(max(span[0], 0), size)
    return low, max(low, min(span[1], size))


def volume(box: Sequence[tuple[int, int]]) -> int:
    """Elements of a box."""
    return prod(end - begin for begin, end in box)


def replay_mesh(layer: Layer, machine: Machine, given: Choice) -> Seen:
    """Run a layer on a mesh of tile units."""
    run = _Run(layer, machine, given)
    for at in run.mesh_steps():
        run.step(at)
    results = run.written
    expected = layer.b * layer.g * layer.m * layer.r * layer.c
    expected *= layer.kh * layer.kw if layer.kind == "correlation" else 1
    if results != expected:
        run.seen.faults.append(f"results: {results} are written, the layer has {expected}")
    if run.seen.macs != layer.macs:
        run.seen.faults.append(f"products: {run.seen.macs} are made, the layer has {layer.macs}")
    run.seen.dram += results * machine.out_bytes
    run.seen.glb += results * machine.out_bytes
    return run.seen


class _Run:
    def __init__(self, layer: Layer, machine: Machine, given: Choice) -> None:
        self.layer, self.machine, self.given = layer, machine, given
        assert machine.mesh is not None
        self.mesh, self.seen, self.written = machine.mesh, Seen(), 0
        self.parallel = [d for d in DIMS if d not in (("n",) if layer.kind == "correlation" else ("n", "i", "j"))]
        self.temporal = [d for d in DIMS if d not in self.parallel]
        self.side = dict.fromkeys(DIMS, 1)
        if given.rows:
            self.side[given.rows] *= self.mesh.rows
        if given.cols:
            self.side[given.cols] *= self.mesh.cols
        self.cuts, self.vector = cuts_of(layer, given), dict(zip(DIMS, given.vector, strict=True))
        self.bytes = {"IN": machine.in_bytes, "W": machine.w_bytes}
        #: Which tile of the kept operand each unit holds.
        self.held: dict[tuple[int, int], Box] = {}
        self.taps = [
            {d: self.cuts[d][k] for d, k in zip(self.temporal, ks, strict=True)}
            for ks in product(*(range(len(self.cuts[d])) for d in self.temporal))
        ]
        #: Steps over what is summed that are counted, each so often: boxes of equally many channels count once.
        self.counted, self.repeats = self.taps, 1
        channels = self.cuts["n"]
        if len({end - begin for begin, end in channels}) == 1:
            self.counted, self.repeats = [tap for tap in self.taps if tap["n"][0] == 0], len(channels)

    def mesh_steps(self) -> Iterator[dict[str, int]]:
        """The first tile of every step, by index; the loops that the kept operand depends on are outermost."""
        zero = dict.fromkeys(DIMS, (0, 1))
        self.moved = [d for d in self.parallel if self._moves(zero, d)]
        order = [*self.moved, *(d for d in self.parallel if d not in self.moved)]
        for firsts in product(*(range(0, len(self.cuts[d]), self.side[d]) for d in order)):
            yield dict(zip(order, firsts, strict=True))

    def _moves(self, zero: dict[str, tuple[int, int]], d: str) -> bool:
        """Whether the kept operand's box moves along an index."""
        if self.given.keep == "none":
            return True
        keep = self.given.keep
        return boxes(self.layer, zero)[keep][0] != boxes(self.layer, {**zero, d: (1, 2)})[keep][0]

    def _tiles(self, first: dict[str, int], unit: tuple[int, int]) -> dict[str, tuple[int, int]] | None:
        """The results of a unit in a step, None if there are none left for it."""
        found = {}
        for d in self.parallel:
            place = 0
            if self.given.rows == d:
                place = unit[0]
            if self.given.cols == d:
                place = place * self.mesh.cols + unit[1] if self.given.rows == d else unit[1]
            at = first[d] + place
            if at >= len(self.cuts[d]):
                return None
            found[d] = self.cuts[d][at]
        return found

    def step(self, first: dict[str, int]) -> None:
        """All units, over all products of their results."""
        units = {}
        for unit in product(range(self.mesh.rows), range(self.mesh.cols)):
            tiles = self._tiles(first, unit)
            if tiles is not None:
                units[unit] = tiles
        self.seen.steps += len(self.taps)
        slowest = 0
        for tiles in units.values():
            vectors = prod(-(-(end - begin) // self.vector[d]) for d, (begin, end) in tiles.items())
            slowest = max(slowest, vectors)
            results = volume(list(tiles.values()))
            self.written += results
            self.seen.macs += results * prod(self.layer.extent(d) for d in self.temporal)
        self.seen.cycles += slowest * prod(self.layer.extent(d) for d in self.temporal)
        for operand in ("IN", "W"):
            self._move(operand, units)

    def _move(self, operand: str, units: dict[tuple[int, int], dict[str, tuple[int, int]]]) -> None:
        """Bring the tiles of an operand into all units, for all steps over what is summed."""
        first = {unit: boxes(self.layer, {**tiles, **self.taps[0]})[operand][0] for unit, tiles in units.items()}
        for unit, tiles in units.items():
            if operand == self.given.keep:
                # Units are told by index: equal boxes of other indices (r + 1, i - 1) are not looked for.
                place = tuple(tiles[d] for d in self.moved)
                if self.held.get(unit) == place:
                    continue
                self.held[unit] = place
            words = sum(volume(boxes(self.layer, {**tiles, **tap})[operand][1]) for tap in self.counted) * self.repeats
            above, left = (unit[0] - 1, unit[1]), (unit[0], unit[1] - 1)
            # The same box for the first products is the same for all of them: what is summed is the same everywhere.
            if operand in SHARES[self.given.share] and first[unit] in (first.get(above), first.get(left)):
                self.seen.fifo_words += words
                continue
            self.seen.fetches += len(self.taps)
            self.seen.glb += words * self.bytes[operand]
            self.seen.dram += words * self.bytes[operand]


Span = tuple[int, int]
Tile = dict[str, Span]
_SUMMED = ("n", "i", "j")


def replay_array(layer: Layer, machine: Machine, given: Choice) -> Seen:
    """Run a layer on a systolic or row-stationary array; tiles that are alike, and alike at borders, run once."""
    seen, known = Seen(), dict[object, Seen]()
    held: object = None
    written = 0
    for tile, first in _tiles(layer, given):
        for operand, size in (("IN", machine.in_bytes), ("W", machine.w_bytes)):
            box, inside = boxes(layer, tile)[operand]
            if operand == given.keep:
                if held == box:
                    continue
                held = box
            seen.fetches += 1
            seen.dram += size * volume(inside)
        alike = first, *(tile[d] if d in "rcij" else tile[d][1] - tile[d][0] for d in DIMS)
        if alike not in known:
            known[alike] = Seen()
            _Tile(layer, machine, given, known[alike], tile).run(first)
        one = known[alike]
        seen.glb, seen.macs, seen.cycles = seen.glb + one.glb, seen.macs + one.macs, seen.cycles + one.cycles
        seen.steps += 1
        if first:
            written += volume([tile[d] for d in DIMS if d not in _SUMMED])
    results = layer.b * layer.g * layer.m * layer.r * layer.c
    if written != results or seen.macs != layer.macs:
        seen.faults.append(f"results {written} of {results}, products {seen.macs} of {layer.macs}")
    seen.dram += results * machine.out_bytes
    seen.glb += results * machine.out_bytes
    return seen


def _tiles(layer: Layer, given: Choice) -> Iterator[tuple[Tile, bool]]:
    """Tiles in order, and whether one is the first for its results."""
    cuts, moved = cuts_of(layer, given), {"IN": "bgrc", "W": "gm"}.get(given.keep, "bgmrc")
    order = [*moved, *(d for d in "bgmrc" if d not in moved)]
    for spans in product(*(cuts[d] for d in order)):
        for at, taps in enumerate(product(*(cuts[d] for d in _SUMMED))):
            yield {**dict(zip(order, spans, strict=True)), **dict(zip(_SUMMED, taps, strict=True))}, at == 0


class _Tile:
    """The passes over one tile."""

    def __init__(self, layer: Layer, machine: Machine, given: Choice, seen: Seen, tile: Tile) -> None:
        assert machine.mesh is not None
        self.layer, self.machine, self.given, self.seen, self.tile = layer, machine, given, seen, tile
        self.mesh = machine.mesh

    def run(self, first: bool) -> None:
        """All passes; the very first one over results reads no partial sums."""
        passes = self._systolic() if self.mesh.kind == "systolic" else self._row_stationary()
        started: set[tuple[int, Span, Span]] = set()
        for g in range(*self.tile["g"]):
            for key, taps, weights, results, products, cycles in passes:
                again = not first or (g, *key) in started
                started.add((g, *key))
                self.seen.glb += taps * self.machine.in_bytes + weights * self.machine.w_bytes
                self.seen.glb += results * self.machine.psum_bytes * (2 if again else 1)
                self.seen.macs += products
                self.seen.cycles += cycles

    def _cut(self, d: str, part: int) -> list[Span]:
        low, high = self.tile[d]
        return [(low + a, low + b) for a, b in pieces(high - low, part)]

    def _lines(self, axis: str, tap: Span, out: Span) -> int:
        """Pairs of a result row (column) and a tap that lie on the map."""
        layer = self.layer
        step, reach, pad, size = {
            "r": (layer.stride_h, layer.dilation_h, layer.pad_top, layer.h),
            "c": (layer.stride_w, layer.dilation_w, layer.pad_left, layer.l),
        }[axis]
        at = np.arange(*out)[:, None] * step + np.arange(*tap)[None, :] * reach - pad
        return int(((at >= 0) & (at < size)).sum())

    def _systolic(self) -> list[tuple[tuple[Span, Span], int, int, int, int, int]]:
        """A pass: a block of filters, some values of the index along the rows, one of the others; all pixels."""
        images = self.tile["b"][1] - self.tile["b"][0]
        out = {a: self.tile[a] for a in "rc"}
        pixels = images * volume(list(out.values()))
        parts = {d: self._cut(d, self.mesh.rows if self.given.rows == d else 1) for d in _SUMMED}
        taps = {(a, part): self._lines(a, part, out[a]) for a, d in (("r", "i"), ("c", "j")) for part in parts[d]}
        found = []
        for filters in self._cut("m", self.mesh.cols):
            number = filters[1] - filters[0]
            for n, i, j in product(parts["n"], parts["i"], parts["j"]):
                rows = volume([n, i, j])
                read = images * (n[1] - n[0]) * taps["r", i] * taps["c", j]
                cycles = pixels + self.mesh.rows + self.mesh.cols
                key = filters, self.tile["r"]
                found.append((key, read, number * rows, pixels * number, pixels * number * rows, cycles))
        return found

    def _row_stationary(self) -> list[tuple[tuple[Span, Span], int, int, int, int, int]]:
        """A pass: filters and channels that PEs hold, a fold of kernel rows, a strip of result rows, all columns."""
        layer, held = self.layer, self.given
        images, columns = (self.tile[d][1] - self.tile[d][0] for d in "bc")
        sets = max(1, self.mesh.rows // layer.kh)
        across = boxes(layer, {**self.tile, "r": (0, 1), "i": (0, 1)})["IN"][1][4]
        wide, found, parts = across[1] - across[0], [], []
        for fold, (at, strip) in product(self._cut("i", self.mesh.rows), enumerate(self._cut("r", self.mesh.cols))):
            low, high = boxes(layer, {**self.tile, "r": strip, "i": fold})["IN"][1][3]
            parts.append((fold, at, strip, low, high))
        for filters, channels in product(self._cut("m", held.filters), self._cut("n", held.channels * sets)):
            for fold, at, strip, low, high in parts:
                deep, number = channels[1] - channels[0], filters[1] - filters[0]
                read = images * deep * (high - low) * wide
                loaded = number * deep * (fold[1] - fold[0]) * layer.kw if at == 0 else 0
                results = images * number * (strip[1] - strip[0]) * columns
                products = results * deep * (fold[1] - fold[0]) * layer.kw
                cycles = images * columns * layer.kw * held.filters * held.channels
                found.append(((filters, strip), read, loaded, results, products, cycles))
        return found


Ints = NDArray[np.int64]
#: For an operand: axes as (number of the axis, extent, pitch), and words.
Placed = Mapping[str, tuple[list[tuple[int, int, int]], int]]


def replay_lanes(
    layer: Layer, tile: Mapping[str, int], bits: Sequence[tuple[str, int]], placed: Placed, banks: int
) -> list[str]:
    """Return what is wrong with a layout, one line each; nothing if every vector is served in one cycle.

    `bits`: what each bit of the PE number stands for, lowest first: an index and the bit of its lane.
    """
    pes = 1 << len(bits)
    numbers = np.arange(pes, dtype=np.int64)
    lanes = {d: np.zeros(pes, dtype=np.int64) for d in DIMS}
    for at, (d, bit) in enumerate(bits):
        lanes[d] = lanes[d] + ((numbers >> at & 1) << bit)
    faults: list[str] = []
    for operand, (axes, words) in placed.items():
        faults += _axes(operand, axes, _box(layer, operand, tile)) or _apart(operand, axes, words)
        if faults:
            return faults
        for points, active in _vectors(layer, tile, lanes, bits):
            address = _address(layer, operand, axes, points)
            faults += _conflicts(operand, address, active, words, banks, len(bits))
            if faults:
                return faults
    return faults


def _box(layer: Layer, operand: str, tile: Mapping[str, int]) -> list[int]:
    """Elements of an operand's tile along its axes."""
    box, _ = boxes(layer, {d: (0, size) for d, size in tile.items()})[operand]
    return [end - begin for begin, end in box]


def _axes(operand: str, axes: Sequence[tuple[int, int, int]], box: Sequence[int]) -> list[str]:
    """Every axis of the tile is laid out once, as long as it is."""
    numbers = [number for number, _, _ in axes]
    wrong = len(set(numbers)) < len(numbers) or any(not 0 <= n < len(box) or box[n] != e for n, e, _ in axes)
    if wrong or any(extent > 1 and n not in numbers for n, extent in enumerate(box)):
        return [f"{operand}: its axes are not those of a tile of {' x '.join(map(str, box))}"]
    return []


def _apart(operand: str, axes: Sequence[tuple[int, int, int]], words: int) -> list[str]:
    """Elements of the tile share no word."""
    found = np.zeros(1, dtype=np.int64)
    for _, extent, pitch in axes:
        found = (found[:, None] + pitch * np.arange(extent, dtype=np.int64)).reshape(-1)
    if len(np.unique(found)) < len(found):
        return [f"{operand}: two elements of the tile lie in one word"]
    if int(found.max()) >= words:
        return [f"{operand}: the tile reaches word {int(found.max())}, it has {words}"]
    return []


def _vectors(
    layer: Layer, tile: Mapping[str, int], lanes: Mapping[str, Ints], bits: Sequence[tuple[str, int]]
) -> Iterator[tuple[dict[str, Ints], NDArray[np.bool_]]]:
    """Points of all PEs (steps x PEs), and which PEs work, in pieces: one channel and tap at a time."""
    width = dict.fromkeys(DIMS, 1)
    for d, _ in bits:
        width[d] *= 2
    summed = ("n",) if layer.kind == "correlation" else ("n", "i", "j")
    parallel = [d for d in DIMS if d not in summed]
    steps = [np.arange(0, tile[d], width[d], dtype=np.int64) for d in parallel]
    grid = [axis.reshape(-1, 1) for axis in np.meshgrid(*steps, indexing="ij")]
    points = {d: begin + lanes[d] for d, begin in zip(parallel, grid, strict=True)}
    active = np.ones(np.broadcast_shapes(*(p.shape for p in points.values())), dtype=bool)
    for d in parallel:
        active &= points[d] < tile[d]
    for taps in product(*(range(tile[d]) for d in summed)):
        yield points | {d: np.full((1, 1), t, dtype=np.int64) for d, t in zip(summed, taps, strict=True)}, active


def _address(layer: Layer, operand: str, axes: Sequence[tuple[int, int, int]], at: Mapping[str, Ints]) -> Ints:
    """Where the PEs read."""
    if operand == "IN":
        rows = layer.stride_h * at["r"] + layer.dilation_h * at["i"]
        cols = layer.stride_w * at["c"] + layer.dilation_w * at["j"]
        element = [at["b"], at["g"], at["n"], rows, cols]
    else:
        element = [at[d] for d in ("bnrc" if layer.kind == "correlation" else "gmnij")]
    found = np.zeros(1, dtype=np.int64)
    for number, _, pitch in axes:
        found = found + pitch * element[number]
    return found


def _conflicts(
    operand: str, address: Ints, active: NDArray[np.bool_], words: int, banks: int, bits: int
) -> list[str]:  # fmt: skip
    address = np.broadcast_to(address, active.shape)
    if not len(address):
        return []
    if int(address[active].max()) >= words:
        return [f"{operand}: a PE reads word {int(address[active].max())} of {words}"]
    low = address % banks
    numbers = np.broadcast_to(np.arange(active.shape[1], dtype=np.int64), active.shape)
    # Before bit k is set a word is where the bank's bits below say, and the PE's bits from k on.
    for k in range(bits, -1, -1):
        kept = (low & ~((1 << bits) - 1)) | (low & ((1 << k) - 1)) | (numbers >> k << k)
        if not _one_word(kept, address, active):
            what = "a bank" if k == bits else f"a wire before bit {k}"
            return [f"{operand}: two words meet at {what} in one cycle"]
    return []


def _one_word(place: Ints, address: Ints, active: NDArray[np.bool_]) -> bool:
    """Whether every place has one word in every row."""
    width = int(place.max()) + 1
    spots, words = (np.arange(len(place), dtype=np.int64)[:, None] * width + place)[active], address[active]
    last = np.zeros(len(place) * width, dtype=np.int64)
    last[spots] = words
    return bool((last[spots] == words).all())
