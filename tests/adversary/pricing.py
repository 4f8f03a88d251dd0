"""Prices for searches: what a nest costs by the rules of docs/nest.md, operand by operand, many nests a second.

The loops over one dimension cut it whatever the other loops do, so the tiles of an operand are the products of the
pieces of its dimensions, and every count is a product over axes. For an operand X held inside loops l_1 .. l_k:

    prefix   l_1 .. l_p, l_p the innermost of them that is real and that X depends on
    often    product over the dimensions that X does not depend on of their pieces in the prefix
    bytes    often * element * product over axes of (sum of the extents of the pieces)
    calls    often * product over axes of (pieces of positive extent)
    runs     axes from the inside: while all inner extents are whole a piece that is whole joins them, one that is not
             begins a run; a box that is broken already has a run for every index
    bursts   the same with ceil(run / burst) for every run that begins, or with the windows it touches
    OUT      every tile leaves once as a result; often - 1 times it leaves and comes back as partial sums

Axes of input rows and columns have a piece for every pair of pieces of r, i (c, j): clipped to the map and to the rows
that are not resident, and, along the loop that slides, without what lay there before. A timeline of double buffering is
no product: there `Priced.time` is the largest of the sums that run side by side, which is never above it.

Nothing here is shared with the closed forms or with replay; a find of a search is confirmed by replay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from hwmodels.schedule import Step
from instances.machine.machine import Machine
from instances.network.workload import DIMS, RELEVANT, Layer
from tests.adversary.boxes import Axis, Cut, Span, cut, largest, levels, plain, priced, real, window

#: A loop (dimension, how it cuts) or a Hold (operand, buffers or None).
Item = tuple[str, Step | None]
#: A cut over units: dimension, step, level.
Spread = tuple[str, int, str]
#: By dimension its pieces.
Pieces = Mapping[str, tuple[Span, ...]]
_WINDOWS = {"r": "i", "c": "j"}


class Core(NamedTuple):
    """The cluster of a core and its range of every dimension, in the order of `DIMS`."""

    tle: int
    spans: tuple[Span, ...]


class Cost(NamedTuple):
    """One operand on one core: bytes of its largest tile (OUT: elements), bytes moved, ticks of loads and of stores."""

    tile: int
    moved: int
    load: int
    store: int


class Priced(NamedTuple):
    """What a nest costs; `over` is by how much memories are overrun, as a share of their size; `room` bytes on chip."""

    time: int
    bytes: int
    energy: int
    over: float
    room: int


#: Operand, cluster (None: the chip) and ranges of cores that load together.
_Load = tuple[str, int | None, tuple[Span, ...]]


class _Share(NamedTuple):
    """Of one core: bytes and ticks by operand, room, ticks of computing, and what a timeline takes at least."""

    moved: Mapping[str, tuple[int, int]]
    room: Mapping[str, int]
    compute: int
    flow: int


class Pricer:
    """Prices the nests of a layer on a machine; remembers what an operand costs inside the loops it was seen in."""

    def __init__(self, layer: Layer, machine: Machine) -> None:
        self.layer, self.machine, self.uniform = layer, machine, machine.edge_tiles == "uniform"
        self.rows = (layer.stride_h, layer.dilation_h, layer.pad_top, layer.h)
        self.columns = (layer.stride_w, layer.dilation_w, layer.pad_left, layer.l)
        self._cores: dict[tuple[Spread, ...], tuple[Core, ...]] = {}
        self._costs: dict[object, Cost] = {}

    def cores(self, spread: tuple[Spread, ...]) -> tuple[Core, ...]:
        """Return every unit's share."""
        if spread not in self._cores:
            shares = [Core(0, tuple((0, self.layer.extent(d)) for d in DIMS))]
            for d, step, over in spread:
                at, split = DIMS.index(d), []
                most = -(-self.layer.extent(d) // step)
                for one in shares:
                    for k, span in enumerate(cut(*one.spans[at], 0, step)):
                        tle = one.tle * most + k if over == "tle" else one.tle
                        split.append(Core(tle, (*one.spans[:at], span, *one.spans[at + 1 :])))
                shares = split
            self._cores[spread] = tuple(shares)
        return self._cores[spread]

    def price(self, spread: tuple[Spread, ...], items: Sequence[Item]) -> Priced:
        """Price one nest."""
        rooms = dict.fromkeys(self.machine.memories, 0)
        times: dict[int, list[int]] = {}
        known: dict[tuple[Span, ...], _Share] = {}
        bus, chip = dict[_Load, tuple[int, int, int]](), dict[_Load, tuple[int, int, int]]()
        for core in self.cores(spread):
            key = self._alike(core.spans)
            if key not in known:
                known[key] = self._core(spread, core.spans, items)
            _, room, compute, flow = known[key]
            rooms = {name: max(most, room[name]) for name, most in rooms.items()}
            row = times.setdefault(core.tle, [0, 0, 0])
            row[1], row[2] = max(row[1], compute), row[2] + flow
            for name, cost in known[key].moved.items():
                level = self.machine.broadcast.levels.get(name, "none")
                spans = tuple(core.spans if level == "none" else (core.spans[DIMS.index(d)] for d in RELEVANT[name]))
                for group, place in ((bus, core.tle), (chip, None if level == "chip" else core.tle)):
                    most = group.get((name, place, spans), (0, 0, 0))  # who loads most loads for all
                    group[name, place, spans] = (core.tle, max(most[1], cost[0]), max(most[2], cost[1]))
        for tle, _, ticks in bus.values():
            times[tle][0] += ticks
        moved = sum(size for _, size, _ in chip.values())
        byte_fj = {name: self.machine.byte_fj_of(name) for name in self.layer.operands}
        over = sum(max(0, rooms[name] - size) / size for name, size in self.machine.memories.items())
        energy = sum(byte_fj[name] * size for (name, *_), (_, size, _) in chip.items())
        energy += self.machine.mac_fj * self.layer.macs
        time = self._time(list(times.values()), sum(ticks for _, _, ticks in chip.values()))
        return Priced(time + self.machine.layer_ticks, moved, energy, over, sum(rooms.values()))

    def _alike(self, spans: tuple[Span, ...]) -> tuple[Span, ...]:
        """Shares of one price: of dimensions without a window only the size counts, unless addresses do."""
        if any(transfer.burst_count == "address" for transfer in self.machine.transfers):
            return spans
        return tuple(span if d in "rcij" else (0, span[1] - span[0]) for d, span in zip(DIMS, spans, strict=True))

    def _time(self, rows: Sequence[Sequence[int]], once: int) -> int:
        """The time of all clusters, `once` if their transfers add up."""
        if self.machine.timing == "double_buffered":
            return sum(flow for _, _, flow in rows)
        counted = self.machine.timing == "serial"
        if self.machine.dram == "shared":
            return once + (max(row[1] for row in rows) if counted else 0)
        return max(row[0] + (row[1] if counted else 0) for row in rows)

    def _core(self, spread: tuple[Spread, ...], spans: tuple[Span, ...], items: Sequence[Item]) -> _Share:
        loops: list[Cut] = []
        held: list[tuple[str, Step | None, Cost]] = []
        for name, how in items:
            if name in RELEVANT:
                held.append((name, how, self.cost(spread, spans, name, tuple(loops))))
            elif how is not None:
                loops.append((name, how))
        pieces = {d: levels(*spans[DIMS.index(d)], tuple(h for x, h in loops if x == d))[0][-1] for d in DIMS}
        room = dict.fromkeys(self.machine.memories, self.machine.reserved_bytes)
        moved, loads, stores = dict[str, tuple[int, int]](), {1: 0, 2: 0}, {1: 0, 2: 0}
        cut = any(len(pieces[d]) > 1 for d in "nij")
        element = max(self.machine.psum_bytes, self.machine.out_bytes) if cut else self.machine.out_bytes
        for name, how, cost in held:
            number = self.machine.buffers(how if isinstance(how, int) else None)
            moved[name] = cost.moved, cost.load + cost.store
            loads[number] += cost.load
            stores[number] += cost.store
            room[self.machine.memory_of(name)] += cost.tile * number * (element if name == "OUT" else 1)
        if self.machine.im2col_rows:
            room["ocm"] += self._scratch(spread, loops, pieces)
        compute = self._compute(spread, loops, pieces)
        return _Share(moved, room, compute, max(compute, loads[2], stores[2]) + loads[1] + stores[1])

    def _scratch(self, spread: tuple[Spread, ...], loops: Sequence[Cut], pieces: Mapping[str, Sequence[Span]]) -> int:
        machine, layer = self.machine, self.layer
        channels = layer.n
        if machine.im2col_channels == "tile":
            channels = max(b - a for a, b in pieces["n"])
            if self.uniform:
                channels = self._nominal(spread, loops)["n"]
        return machine.im2col_rows * layer.kh * layer.kw * channels * machine.in_bytes

    def _nominal(self, spread: tuple[Spread, ...], loops: Sequence[Cut]) -> dict[str, int]:
        """The stated step of every dimension inside these loops; of free places the largest piece."""
        step = {d: self.layer.extent(d) for d in DIMS} | {d: size for d, size, _ in spread}
        for d in {d for d, _ in loops}:
            hows = tuple(h for x, h in loops if x == d)
            last = hows[-1]
            step[d] = last if isinstance(last, int) else max(b - a for a, b in levels(0, step[d], hows)[0][-1])
        return step

    def _compute(self, spread: tuple[Spread, ...], loops: Sequence[Cut], pieces: Mapping[str, Sequence[Span]]) -> int:
        unit, layer = self.machine.compute, self.layer
        if unit.model == "none":
            return 0
        if unit.model == "tile":
            tile = self._nominal(spread, loops)
            cycles = prod(tile[d] for d in "bgnm") * -(-prod(tile[d] for d in "rcij") // unit.macs_per_cycle)
            return cycles * layer.inputs * unit.cycle_ticks * prod(len(spans) for spans in pieces.values())
        lanes = {"g": unit.cols} if layer.m == layer.n == 1 else {"m": unit.rows, "n": unit.cols}
        cycles = prod(sum(-(-(b - a) // lanes.get(d, 1)) for a, b in spans) for d, spans in pieces.items())
        return cycles * layer.inputs * unit.cycle_ticks

    # ---- one operand -------------------------------------------------------------------------------------------------

    def cost(self, spread: tuple[Spread, ...], spans: tuple[Span, ...], operand: str, loops: tuple[Cut, ...]) -> Cost:
        """Return what an operand costs that a core with these ranges holds inside some loops."""
        key = (spread if self.uniform else ()), spans, operand, loops
        if key not in self._costs:
            inside = dict(zip(DIMS, spans, strict=True))
            if operand == "IN" and self.layer.broadcast:  # every input has tiles of its own, fetched by themselves
                each = [self._new(spread, inside, operand, loops, k) for k in range(self.layer.inputs)]
                self._costs[key] = Cost(
                    *map(sum, zip(*((x.tile, x.moved, x.load, x.store) for x in each), strict=True))
                )
            else:
                self._costs[key] = self._new(spread, inside, operand, loops)
        return self._costs[key]

    def _new(
        self, spread: tuple[Spread, ...], spans: Mapping[str, Span], operand: str, loops: tuple[Cut, ...],
        number: int | None = None,
    ) -> Cost:  # fmt: skip
        mine = RELEVANT[operand] - set("" if number is None else self.layer.patterns[number])
        fetch = [k for k, counts in enumerate(real(spans, loops)) if counts and loops[k][0] in mine]
        prefix = loops[: fetch[-1] + 1] if fetch else ()
        cuts = {d: levels(*spans[d], tuple(h for x, h in loops if x == d)) for d in mine}
        often = 1
        for d in DIMS:
            if d not in mine:
                often *= len(levels(*spans[d], tuple(h for x, h in prefix if x == d))[0][-1])
        pieces = {d: found[0][-1] for d, found in cuts.items()}
        if self.uniform:  # every piece counts as one of the stated size that begins at 0
            nominal = self._nominal(spread, loops)
            pieces = {d: ((0, min(nominal[d], self.layer.extent(d))),) * len(spans) for d, spans in pieces.items()}
        if operand == "OUT":
            return self._out(pieces, often)
        if operand == "W":
            return self._weights(pieces, often)
        slide: tuple[str, tuple[int, ...]] | None = None
        if self.machine.sliding and prefix and prefix[-1][0] in "rcij":
            d = prefix[-1][0]
            # the loops over d that follow the prefix cut nothing: the last real one groups the pieces
            slide = d, cuts[d][1][sum(x == d for x, _ in prefix) - 1]
        return self._inputs(pieces, often, slide, number)

    def _inputs(
        self, pieces: Pieces, often: int, slide: tuple[str, tuple[int, ...]] | None, number: int | None
    ) -> Cost:  # fmt: skip
        tile = moved = ticks = 0
        order, price = "bgnrc" if self.machine.in_layout == "CHW" else "brcgn", self.machine.transfer_of("IN")
        if number is not None:
            order = "".join(d for d in order if d not in self.layer.patterns[number])
        for resident in self.layer.residents if number is None else self.layer.residents[number : number + 1]:
            if number is not None and resident and "r" in self.layer.patterns[number]:
                continue  # its only row is there
            whole = [self._input_axis(d, pieces, resident, None) for d in order]
            slid = [self._input_axis(d, pieces, resident, slide) for d in order] if slide else whole
            size, paid = priced(slid, self.machine.in_bytes, price)
            tile += self.machine.in_bytes * largest(whole)
            moved += size * often
            ticks += paid * often
        return Cost(tile, moved, ticks, 0)

    def _input_axis(self, d: str, pieces: Pieces, resident: int, slide: tuple[str, tuple[int, ...]] | None) -> Axis:
        if d not in _WINDOWS:
            return self._axis(d, pieces)
        tap, shape = _WINDOWS[d], self.rows if d == "r" else self.columns
        if self.uniform:  # nothing is clipped
            resident, shape = 0, (*shape[:2], 0, shape[3])
        groups = slide[1] if slide and slide[0] in (d, tap) else ()
        along = slide is not None and slide[0] == tap
        return window(pieces[d], pieces[tap], shape, resident if d == "r" else 0, groups, along)

    def _axis(self, d: str, pieces: Pieces, resident: int = 0) -> Axis:
        return plain(pieces[d], self.layer.extent(d), 0 if self.uniform else resident)

    def _weights(self, pieces: Pieces, often: int) -> Cost:
        order = "gmnij" if self.machine.w_layout == "OIHW" else "gmijn"
        price = self.machine.transfer_of("W")
        axes = [self._axis(d, pieces) for d in order]
        size, ticks = priced(axes, self.machine.w_bytes, price)
        tile = self.machine.w_bytes * largest(axes)
        if self.layer.bias and self.machine.bias_bytes:
            beside = len(pieces["n"]) * len(pieces["i"]) * len(pieces["j"])
            more, paid = priced(axes[:2], self.machine.bias_bytes, price, beside=True)
            size, ticks = size + more * beside, ticks + paid * beside
            tile += self.machine.bias_bytes * largest(axes[:2])
        return Cost(tile, size * often, ticks * often, 0)

    def _out(self, pieces: Pieces, often: int) -> Cost:
        order = "bgmrc" if self.machine.out_layout == "CHW" else "brcgm"
        price, resident = self.machine.transfer_of("OUT"), self.layer.resident_out
        final = [self._axis(d, pieces, resident if d == "r" else 0) for d in order]
        kept = [self._axis(d, pieces) for d in order]
        size, paid = priced(final, self.machine.out_bytes, price)
        back, sums = priced(kept, self.machine.psum_bytes, price)
        leave, come = often - 1, often if self.machine.psum_first_read else often - 1
        return Cost(largest(kept), size + back * (leave + come), sums * come, paid + sums * leave)
