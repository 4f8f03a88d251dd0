"""Nests of tiny layers, one after the other: every dimension cut up to twice, loops in any order, tiles held anywhere.

    python -m tests.adversary.network_time_nests 1 300 [2]      # seeds 1 to 300, some seconds each; finds no schedule
                                                                # below the bound that certile states, or says which
    python -m tests.adversary.network_time_nests 1 300 2 two    # the same of networks of two layers

Layers have strides, padding and kernels of up to 3, one queue or two; sums take a byte or more. A nest computes a box
of filters, input channels, rows, columns and taps a step; a tile is what its operand needs for all steps of the loops
inside of where it is held. It is loaded when it is another one than before, of rows that slide what was not there. A
tile of the result that comes again leaves as sums, which are loaded for it; at last it leaves as a result. In every
step the largest tiles lie on chip. An example: taps of 3 rows outside, rows inside, each loaded by itself. The first
step adds up taps above the first row, and waits for weights alone.

Of two layers the second one reads what the first one makes, or the input, too. A map between them goes through DRAM, or
lies on chip while both run. Each of them runs by a nest, or in strips of rows; transfers of both are in any order.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from math import prod
from typing import NamedTuple

from tests.adversary.network_time import joined, planned
from tests.adversary.network_time_events import Job, Move, Search
from tests.adversary.network_time_groups import Beside, Groups, Part, beside
from tests.adversary.network_time_nets import Short, Tiny, split

#: From a first place to before a second one.
Span = tuple[int, int]
Box = tuple[Span, ...]
#: Filters (channels of layers that add none up), input channels, rows, columns, taps.
DIMS = "mnrcij"
#: Those that are added up.
ADDED = "nij"
#: The most steps and transfers of a nest that is looked at.
MOST_STEPS, MOST_MOVES = 400, 60


class Loop(NamedTuple):
    """It cuts a dimension, or the piece of it that a loop outside has, at these places."""

    dim: str
    places: tuple[int, ...]


def runs_of(box: Box, whole: Sequence[int]) -> int:
    """Runs of addresses of a box of an array, whose last dimension lies together."""
    inner = max((at for at, size in enumerate(whole) if box[at] != (0, size)), default=0)
    return size_of(box[:inner])


def size_of(box: Box) -> int:
    """Elements of a box."""
    return prod(max(0, end - begin) for begin, end in box)


class Nest:
    """A nest of a layer beside maps that stay: loops, the outermost first, and how many are outside of each tile."""

    def __init__(self, case: Tiny, t: int, loops: Sequence[Loop], held: Mapping[str, int], near: Beside) -> None:
        self.case, self.t, self.loops, self.held, self.near = case, t, loops, held, near
        self.layer, self.whole = case.made[t], case.extents(t)
        self.adds = self.layer.kind in ("conv", "full")
        self.loaded = [k for k in self.layer.reads if k not in near.maps]
        self.at = 0 if case.channels_last else 1  # rows in the box of a map

    def part(self) -> Part | None:
        """Its steps and transfers; None if there are too many, or the tiles find no room."""
        if prod(len({p for one in self.loops if one.dim == d for p in one.places}) + 1 for d in DIMS) > MOST_STEPS:
            return None
        part, now, most, came = Part(), dict[str, Box](), dict.fromkeys(self.held, 0), Counter[Box]()
        visits, boxes = self._visits(), list[list[dict[str, Span]]]()
        for path in self._paths(0, [{d: (0, size) for d, size in self.whole.items()}]):
            tiles = {name: self._tile(name, path[at]) for name, at in self.held.items()}
            loads = [move for name in ("in", "w") for move in self._load(name, tiles[name], now.get(name))]
            left = list[Move]()
            if now.get("out") != tiles["out"]:
                left += self._store(now["out"], len(boxes), came, visits) if "out" in now else ()
                loads += self._sums(tiles["out"], came)
            if loads or left or not boxes:
                boxes.append([])
            part.moves += [*left, *(replace(move, step=len(boxes)) for move in loads)]
            boxes[-1].append(path[-1])
            now |= {name: tile for name, tile in tiles.items() if size_of(tile)}
            most = {name: max(size, size_of(tiles[name])) for name, size in most.items()}
            if len(part.moves) > MOST_MOVES or self._held(most) > self.case.memory:
                return None
        part.moves += self._store(now["out"], len(boxes), came, visits)
        part.steps = [(self.case.joined(self.t, some), self._held(most)) for some in boxes]
        part.says = f"{self.t} by loops {[tuple(one) for one in self.loops]}, held {self.held}"
        return part

    def _held(self, most: Mapping[str, int]) -> int:
        """Bytes on chip, of tiles of so many elements; a result is a sum while anything that is added up is cut."""
        cut = any(one.dim in ADDED for one in self.loops)
        tiles = most["in"] * len(self.loaded) + most["w"] + most["out"] * (self.case.sums if cut else 1)
        return self.near.bytes + tiles

    def _paths(self, at: int, path: list[dict[str, Span]]) -> Iterator[list[dict[str, Span]]]:
        """Yield for every step what is left of each dimension outside of all loops, in the first one, in two, ..."""
        if at == len(self.loops):
            yield path
            return
        dim, places = self.loops[at]
        begin, end = path[-1][dim]
        for piece in pairwise([begin, *(one for one in places if begin < one < end), end]):
            yield from self._paths(at + 1, [*path, path[-1] | {dim: piece}])

    def _visits(self) -> Counter[Box]:
        """How often every tile of the result comes."""
        found, last = Counter[Box](), None
        for path in self._paths(0, [{d: (0, size) for d, size in self.whole.items()}]):
            tile = self._tile("out", path[self.held["out"]])
            found[tile] += tile != last
            last = tile
        return found

    def _tile(self, name: str, left: Mapping[str, Span]) -> Box:
        """What an operand needs for some pieces."""
        m, n, r, c, i, j = (left[d] for d in DIMS)
        if name == "out":
            return self._box(m, r, c)
        if name == "w":
            if not self.layer.filters:
                return ((0, 0),)
            return (m, i, j, n) if self.case.channels_last else (m, n, i, j)
        return self._box(n if self.adds else m, self._seen(r, i, 1), self._seen(c, j, 2))

    def _box(self, channels: Span, rows: Span, columns: Span) -> Box:
        """In the order of addresses."""
        return (rows, columns, channels) if self.case.channels_last else (channels, rows, columns)

    def _seen(self, made: Span, taps: Span, axis: int) -> Span:
        """Rows (columns) of the input for some of the result, and some taps."""
        layer, size = self.layer, self.layer.shape[axis]
        pad = layer.pad if axis == 1 or layer.shape[2] > 1 else 0
        begin = max(0, made[0] * layer.stride - pad + taps[0])
        return begin, max(begin, min(size, (made[1] - 1) * layer.stride - pad + taps[1]))

    def _load(self, name: str, tile: Box, there: Box | None) -> Iterator[Move]:
        """What a tile lacks."""
        if not size_of(tile) or tile == there:
            return
        if name == "w":
            taps = [self.whole[d] for d in ("mijn" if self.case.channels_last else "mnij")]
            ticks = self.case.weights(size_of(tile), runs_of(tile, taps))
            yield Move(True, ticks, size_of(tile), 0, queue=self.case.queues - 1)
            return
        at = self.at
        if there is not None and all(a == b for k, (a, b) in enumerate(zip(tile, there, strict=True)) if k != at):
            begin, end = tile[at]
            if there[at][0] <= begin <= end and there[at][1] <= end:
                tile = (*tile[:at], (max(begin, there[at][1]), end), *tile[at + 1 :])
        for k in self.loaded if size_of(tile) else ():
            yield self._moved(True, k, tile, 0)

    def _store(self, tile: Box, step: int, came: Counter[Box], visits: Counter[Box]) -> Iterator[Move]:
        """A result that leaves the chip, or sums, which are a map of their own each time."""
        came[tile] += 1
        if came[tile] < visits[tile]:
            yield self._off(False, tile, step, came)
        elif self.t + 1 not in self.near.maps:
            yield self._moved(False, self.t + 1, tile, step)

    def _sums(self, tile: Box, came: Counter[Box]) -> Iterator[Move]:
        """Sums that come back."""
        if came[tile]:
            yield self._off(True, tile, 0, came)

    def _off(self, load: bool, tile: Box, step: int, came: Counter[Box]) -> Move:
        """Sums of a tile that has come so often."""
        moved, number = self._moved(load, self.t + 1, tile, step), [*came].index(tile)
        store, size = 1000 * (1 + self.t + len(self.case.made) * came[tile]) + number, moved.size * self.case.sums
        ticks = moved.ticks + (size - moved.size) * self.case.byte
        return replace(moved, store=store, size=size, ticks=ticks)

    def _moved(self, load: bool, k: int, tile: Box, step: int) -> Move:
        """A box of a map."""
        ticks = self.case.moved(size_of(tile), runs_of(tile, [end for _, end in self._whole(k)]))
        return Move(load, ticks, size_of(tile), step, k, tile[self.at], tile[2 if self.at == 0 else 0])

    def _whole(self, k: int) -> Box:
        """A map."""
        channels, rows, columns = self.case.maps[k]
        return self._box((0, channels), (0, rows), (0, columns))


# ---- drawn -----------------------------------------------------------------------------------------------------------


def cut(rng: random.Random, size: int) -> list[int]:
    """Places that cut a dimension in pieces: any, or alike."""
    if rng.random() < 0.2:
        return sorted(rng.sample(range(1, size), rng.randint(1, size - 1)))
    each = rng.choice((1, 1, rng.randint(1, size)))
    return [*range(each, size, each)]


def cuts(rng: random.Random, size: int, whole: float = 0.5) -> list[tuple[int, ...]]:
    """Places of no loop (as `whole` says), of one, or of two: an outer and an inner one."""
    if size == 1 or rng.random() < whole or not (inner := cut(rng, size)):
        return []
    if len(inner) == 1 or rng.random() < 0.6:
        return [tuple(inner)]
    some = rng.randint(2, len(inner))
    return [tuple(inner[some - 1 :: some]), tuple(inner)]


def arranged(loops: Sequence[Loop]) -> list[Loop]:
    """The same; of two loops of a dimension the one that makes fewer pieces is outside."""
    left = {d: sorted((one.places for one in loops if one.dim == d), key=len) for d in DIMS}
    return [Loop(one.dim, left[one.dim].pop(0)) for one in loops]


def nest(case: Tiny, t: int, near: Beside, rng: random.Random) -> Nest:
    """A nest of a layer."""
    whole = rng.choice((0.2, 0.5, 0.7))
    loops = [Loop(d, some) for d, size in case.extents(t).items() for some in cuts(rng, size, whole)]
    rng.shuffle(loops)
    return Nest(case, t, arranged(loops), {name: rng.randint(0, len(loops)) for name in ("in", "w", "out")}, near)


def changed(one: Nest, rng: random.Random) -> Nest:
    """A nest with other loops of a dimension, or a loop or a tile at another place."""
    loops, held, what = [*one.loops], dict(one.held), rng.randrange(3)
    if what == 0:
        dim = rng.choice(DIMS)
        loops = [loop for loop in loops if loop.dim != dim]
        for places in cuts(rng, one.whole[dim]):
            loops.insert(rng.randint(0, len(loops)), Loop(dim, places))
        held = {name: min(at, len(loops)) for name, at in held.items()}
    elif what == 1 and loops:
        loops.insert(rng.randint(0, len(loops) - 1), loops.pop(rng.randrange(len(loops))))
    else:
        held[rng.choice([*held])] = rng.randint(0, len(loops))
    return Nest(one.case, one.t, arranged(loops), held, one.near)


def short(rng: random.Random, reads: int) -> Short:
    """A layer."""
    kind = rng.choice(("conv", "conv", "conv", "deep", "pool"))
    taps, stride = rng.randint(1, 3), rng.randint(1, 3)
    return kind, (reads,), rng.randint(1, 6), taps, stride, rng.randint(0, taps - 1)


def heavy(rng: random.Random, reads: int) -> Short:
    """A layer of many weights."""
    taps = rng.choice((1, 1, 1, 2, 3))
    return "conv", (reads,), rng.randint(2, 10), taps, rng.choice((1, 1, 1, 2)), rng.randint(0, taps - 1)


def layers(rng: random.Random, count: int) -> Tiny:
    """Layers, half of the time with few pixels of many channels."""
    light = rng.random() < 0.5
    while True:
        shape = rng.randint(1, 4), rng.randint(2, 8), rng.choice((1, 2, 3, 4, 7))
        if not light:
            shape = rng.randint(4, 20), rng.randint(1, 4), rng.choice((1, 1, 2, 3))
        made = tuple((short if light else heavy)(rng, rng.choice((n, 0))) for n in range(count))
        case = Tiny(
            shape, made, 1, cycle=rng.choice((1, 2, 4)), channels_last=rng.random() < 0.6,
            lanes=rng.choice(((1, 1), (1, 1), (2, 2), (4, 4), (16, 1), (1, 16))), sums=rng.choice((1, 1, 2, 4)),
        )  # fmt: skip
        if case.possible and all(max(one) <= (8 if light else 10) for one in case.maps[1:]):
            return case


def network(rng: random.Random, count: int = 1) -> Tiny:
    """Layers in a memory from where little fits up to where all does, which takes about as long as they compute."""
    case = layers(rng, count)
    weights = [made.filters * made.filter_bytes for made in case.made]
    each = [sum(case.map_bytes(k) for k in (made.reads[0], t + 1)) + weights[t] for t, made in enumerate(case.made)]
    computing = sum(case.compute(t, made.made[1], made.made[0]) for t, made in enumerate(case.made))
    byte = max(1, round(computing / sum(each) * rng.choice((0.1, 0.3, 0.7, 1, 2, 6)) * rng.uniform(0.5, 1.5)))
    case = replace(
        case, memory=max(6, round(max(each) * rng.choice((0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.5)) * rng.uniform(0.8, 1.2))),
        byte=byte, call=byte * rng.choice((0, 0, 1, 4, 20)), segment=byte * rng.choice((0, 0, 2, 8)),
    )  # fmt: skip
    return split(case, rng, each=rng.random() < 0.8) if rng.random() < 0.5 else case


class Drawn:
    """Ways to run a network, layer by layer, at random."""

    def __init__(self, case: Tiny, rng: random.Random) -> None:
        self.case, self.rng, self.groups = case, rng, Groups(case, coarse=True)
        self._strips = dict[tuple[int, Beside], list[Part]]()

    def fresh(self) -> list[Nest | Part]:
        """Any ways, beside any maps that stay."""
        between = [k for k, some in enumerate(self.case.readers) if k and some]
        stay = frozenset(k for k in between if self.rng.random() < 0.5)
        return [self._way(t, beside(self.case, t, t, stay)) for t in range(len(self.case.made))]

    def like(self, ways: Sequence[Nest | Part]) -> list[Nest | Part]:
        """The same, but for the nests of some layers."""
        return [changed(one, self.rng) if isinstance(one, Nest) and self.rng.random() < 0.7 else one for one in ways]

    def _way(self, t: int, near: Beside) -> Nest | Part:
        if len(self.case.made) > 1 and self.rng.random() < 0.2 and near.bytes < self.case.memory:
            if (t, near) not in self._strips:
                self._strips[t, near] = [*islice(self.groups.parts(t, t, near), 200)]
            if self._strips[t, near]:
                return self.rng.choice(self._strips[t, near])
        return nest(self.case, t, near, self.rng)


def job_of(ways: Sequence[Nest | Part]) -> tuple[Job, str] | None:
    """Steps and transfers of layers one after the other, and what runs; None if some do not fit, or are too many."""
    parts = list[Part]()
    for way in ways:
        part = way.part() if isinstance(way, Nest) else way
        if part is None:
            return None
        parts.append(part)
    job = joined(tuple(parts))
    return (job, "; ".join(part.says for part in parts)) if len(job.moves) <= MOST_MOVES else None


def below(case: Tiny, bound: int, rng: random.Random, seconds: float, number: int = 10**9) -> tuple[int, str] | None:
    """Ticks of a schedule that takes less than a bound, and which; None if none is found.

    Random ones are looked at, and others that are like the best ones so far.
    """
    until, seen, drawn, kept = time.monotonic() + seconds, set[Job](), Drawn(case, rng), list[list[Nest | Part]]()
    best = 2**40
    for _ in range(number):
        if time.monotonic() > until:
            break
        ways = drawn.like(rng.choice(kept[-4:])) if kept and rng.random() < 0.7 else drawn.fresh()
        made = job_of(ways)
        if made is None or made[0] in seen:
            continue
        seen.add(made[0])
        ticks = Search(made[0], case.memory, best, until=time.monotonic() + 0.1).run()
        if ticks is not None:
            best = ticks
            kept.append(ways)
            if ticks < bound:
                return ticks, made[1]
    return None


def main(first: int, last: int, seconds: float, count: int) -> None:
    """Attack the bounds of random networks."""
    stated = gaps = 0
    for seed in range(first, last + 1):
        rng = random.Random(seed)
        case = network(rng, count)
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
    numbers = [float(one) for one in sys.argv[1:] if one != "two"]
    main(int(numbers[0]), int(numbers[1]), numbers[2] if len(numbers) > 2 else 2, 1 + ("two" in sys.argv))
