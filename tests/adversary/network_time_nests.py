"""Nests of a tiny layer by itself: all its dimensions in pieces, the loops in any order, tiles held anywhere in them.

    python -m tests.adversary.network_time_nests 1 300 [2]    # seeds 1 to 300, some seconds each; finds no schedule
                                                              # below the bound that certile states, or says which

Layers have strides, padding and kernels of up to 3, one queue or two. A nest computes a box of filters, input channels,
rows, columns and taps a step; a tile is what its operand needs for all steps of the loops inside of where it is held.
It is loaded when it is another one than before, of rows that slide what was not there; a result leaves with its last
step. In every step the largest tiles lie on chip. An example: taps of 3 rows outside, rows inside, each loaded by
itself. The first step adds up taps above the first row, and waits for weights alone.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from tests.adversary.network_time import planned
from tests.adversary.network_time_events import Job, Move, Search
from tests.adversary.network_time_groups import Part
from tests.adversary.network_time_nets import Tiny, split

#: From a first place to before a second one.
Span = tuple[int, int]
Box = tuple[Span, ...]
#: Filters (channels of layers that add none up), input channels, rows, columns, taps.
DIMS = "mnrcij"


def extents(case: Tiny) -> dict[str, int]:
    """How large every dimension of the only layer is."""
    (layer,) = case.made
    adds = layer.kind in ("conv", "full")
    return dict(zip(DIMS, (layer.made[0], layer.shape[0] if adds else 1, *layer.made[1:], *layer.taps), strict=True))


def runs_of(box: Box, whole: Sequence[int]) -> int:
    """Runs of addresses of a box of an array, whose last dimension lies together."""
    inner = max((at for at, size in enumerate(whole) if box[at] != (0, size)), default=0)
    return size_of(box[:inner])


def size_of(box: Box) -> int:
    """Elements of a box."""
    size = 1
    for begin, end in box:
        size *= max(0, end - begin)
    return size


class Nest:
    """A nest: pieces of every dimension, loops from the outermost on, how many of them are outside of each tile."""

    def __init__(
        self, case: Tiny, pieces: Mapping[str, Sequence[Span]], order: Sequence[str], held: Mapping[str, int]
    ) -> None:
        (self.layer,) = case.made
        self.case, self.pieces, self.order, self.held = case, pieces, order, held
        self.adds = self.layer.kind in ("conv", "full")
        self.whole = extents(case)

    def part(self) -> Part | None:
        """Its steps and transfers; None if sums leave the chip."""
        if any(self.order.index(d) < self.held["out"] for d in "nij" if len(self.pieces[d]) > 1):
            return None
        part, now, most = Part(), dict[str, Box](), {"in": 0, "w": 0, "out": 0}
        for spans in product(*(self.pieces[d] for d in self.order)):
            step = dict(zip(self.order, spans, strict=True))
            tiles = {name: self._tile(name, step) for name in most}
            loads = [move for name in ("in", "w") for move in self._load(name, tiles[name], now.get(name))]
            left = "out" in now and now["out"] != tiles["out"]
            if left:
                part.moves.append(self._store(now["out"], len(part.steps)))
            if loads or left or not part.steps:
                part.steps.append((0, 0))
            part.moves += [replace(move, step=len(part.steps)) for move in loads]
            part.steps[-1] = (part.steps[-1][0] + self._ticks(step), 0)
            now |= {name: tile for name, tile in tiles.items() if size_of(tile)}
            most = {name: max(size, size_of(tiles[name])) for name, size in most.items()}
        part.moves.append(self._store(now["out"], len(part.steps)))
        held = most["in"] * len(self.layer.reads) + most["w"] + most["out"]
        part.steps = [(ticks, held) for ticks, _ in part.steps]
        part.says = f"{self.pieces}, loops {''.join(self.order)}, held {self.held}"
        return part

    def _tile(self, name: str, step: Mapping[str, Span]) -> Box:
        """What an operand needs for the steps of the loops inside of its place."""
        inside = self.order[self.held[name] :]
        m, n, r, c, i, j = ((0, self.whole[d]) if d in inside else step[d] for d in DIMS)
        if name == "out":
            return (r, c, m) if self.case.channels_last else (m, r, c)
        if name == "w":
            if not self.layer.filters:
                return ((0, 0),)
            return (m, i, j, n) if self.case.channels_last else (m, n, i, j)
        rows, columns = self._seen(r, i, 1), self._seen(c, j, 2)
        channels = n if self.adds else m
        return (rows, columns, channels) if self.case.channels_last else (channels, rows, columns)

    def _seen(self, made: Span, taps: Span, axis: int) -> Span:
        """Rows (columns) of the input for some of the result, and some taps."""
        layer, size = self.layer, self.layer.shape[axis]
        pad = layer.pad if axis == 1 or layer.shape[2] > 1 else 0
        begin = max(0, made[0] * layer.stride - pad + taps[0])
        return begin, max(begin, min(size, (made[1] - 1) * layer.stride - pad + taps[1]))

    def _load(self, name: str, tile: Box, there: Box | None) -> Iterator[Move]:
        if not size_of(tile) or tile == there:
            return
        if name == "w":
            taps = [self.whole[d] for d in ("mijn" if self.case.channels_last else "mnij")]
            ticks = self.case.weights(size_of(tile), runs_of(tile, taps))
            yield Move(True, ticks, size_of(tile), 0, queue=self.case.queues - 1)
            return
        at = 0 if self.case.channels_last else 1  # rows
        if there is not None and all(a == b for k, (a, b) in enumerate(zip(tile, there, strict=True)) if k != at):
            begin, end = tile[at]
            if there[at][0] <= begin <= end and there[at][1] <= end:
                tile = (*tile[:at], (max(begin, there[at][1]), end), *tile[at + 1 :])
        for k in self.layer.reads if size_of(tile) else ():
            channels, rows, columns = self.case.maps[k]
            whole = (rows, columns, channels) if self.case.channels_last else (channels, rows, columns)
            ticks = self.case.moved(size_of(tile), runs_of(tile, whole))
            yield Move(True, ticks, size_of(tile), 0, k, tile[at])

    def _store(self, tile: Box, step: int) -> Move:
        channels, rows, columns = self.case.maps[1]
        whole = (rows, columns, channels) if self.case.channels_last else (channels, rows, columns)
        return Move(False, self.case.moved(size_of(tile), runs_of(tile, whole)), size_of(tile), step, 1, (0, rows))

    def _ticks(self, step: Mapping[str, Span]) -> int:
        m, n, r, c, i, j = (end - begin for begin, end in (step[d] for d in DIMS))
        lanes = self.case.lanes
        turns = -(-m // lanes[0]) * -(-n // lanes[1]) if self.adds else -(-m // lanes[1]) * len(self.layer.reads)
        return r * c * i * j * turns * self.case.cycle


def cut(rng: random.Random, size: int) -> list[Span]:
    """Pieces of a dimension: mostly one, or alike, or single ones."""
    if size == 1 or rng.random() < 0.55:
        return [(0, size)]
    if rng.random() < 0.2:
        places = sorted(rng.sample(range(1, size), rng.randint(1, size - 1)))
        return [*zip([0, *places], [*places, size], strict=True)]
    each = rng.choice((1, 1, rng.randint(1, size)))
    return [(at, min(size, at + each)) for at in range(0, size, each)]


def nest(case: Tiny, rng: random.Random) -> Nest:
    """A nest of the only layer."""
    pieces = {d: cut(rng, size) for d, size in extents(case).items()}
    several = [d for d in DIMS if len(pieces[d]) > 1]
    order = [*rng.sample(several, len(several)), *(d for d in DIMS if d not in several)]
    held = {name: rng.randint(0, len(several)) for name in ("in", "w", "out")}
    inner = next((k for k, d in enumerate(order) if d in "nij"), len(order))
    return Nest(case, pieces, order, held | {"out": min(held["out"], inner)})


def layer(rng: random.Random) -> Tiny:
    """A layer in a memory in which it may run somehow."""
    while True:
        kind = rng.choice(("conv", "conv", "conv", "deep", "pool"))
        taps, stride = rng.randint(1, 3), rng.randint(1, 3)
        rows, columns = rng.randint(2, 8), rng.choice((1, 2, 3, 4, 7))
        shape = rng.randint(1, 4), rows, columns
        short = kind, (0,), rng.randint(1, 6), taps, stride, rng.randint(0, taps - 1)
        case = Tiny(
            shape, (short,), 1, cycle=rng.choice((1, 2, 4)), channels_last=rng.random() < 0.6,
            lanes=rng.choice(((1, 1), (1, 1), (2, 2), (4, 4))),
        )  # fmt: skip
        if not case.possible or max(case.maps[1]) > 8:
            continue
        (made,) = case.made
        every = case.map_bytes(0) + case.map_bytes(1) + made.filters * made.filter_bytes
        computing = case.compute(0, made.made[1], made.made[0])
        byte = max(1, round(computing / every * rng.choice((0.1, 0.3, 0.7, 1, 2)) * rng.uniform(0.5, 1.5)))
        case = replace(
            case, memory=max(8, round(every * rng.choice((0.4, 0.6, 0.8, 1, 1.5)))), byte=byte,
            call=byte * rng.choice((0, 1, 4, 20)), segment=byte * rng.choice((0, 0, 2)),
        )  # fmt: skip
        return split(case, rng, each=rng.random() < 0.8) if rng.random() < 0.6 else case


def below(case: Tiny, bound: int, rng: random.Random, seconds: float, number: int = 10**9) -> tuple[int, str] | None:
    """Ticks of a nest that takes less than a bound, and which, of some random ones; None if none is found."""
    until, seen = time.monotonic() + seconds, set[tuple[object, ...]]()
    for _ in range(number):
        if time.monotonic() > until:
            break
        part = nest(case, rng).part()
        if part is None or part.steps[0][1] > case.memory or len(part.moves) > 40:
            continue
        job = Job(tuple(part.steps), tuple(part.moves))
        if (job.steps, job.moves) in seen:
            continue
        seen.add((job.steps, job.moves))
        ticks = Search(job, case.memory, bound, until=time.monotonic() + 0.3).run()
        if ticks is not None:
            return ticks, part.says
    return None


def main(first: int, last: int, seconds: float) -> None:
    """Attack the bounds of random layers."""
    stated = gaps = 0
    for seed in range(first, last + 1):
        rng = random.Random(seed)
        case = layer(rng)
        plan = planned(case)
        bound, ticks = plan.part.bounds.get("time"), plan.part.measures.get("time")
        if bound is None:
            continue
        stated += 1
        gaps += ticks is not None and bound < ticks
        if (found := below(case, bound, rng, seconds)) is not None:
            print(seed, case, f"bound {bound}, {plan.part.status} {ticks}: {found[0]} by {found[1]}", flush=True)
    print(f"{stated} bounds, {gaps} below the plan")


if __name__ == "__main__":
    numbers = [float(one) for one in sys.argv[1:]]
    main(int(numbers[0]), int(numbers[1]), numbers[2] if len(numbers) > 2 else 2)
