"""Networks on machines with a memory nearer than the shared one, against schedules of tiny ones.

    python -m tests.adversary.near 1 200            # seeds 1 to 200, a line for whatever does not agree
    python -m tests.adversary.near 1 200 cp-sat     # the same of another engine

Steps of runs are those of `network_time`; what one takes is counted here: its box goes tile by tile through the near
memory, which has nothing at the begin and at the end. Tiles cut rows, filters, and, where little fits, all; weights or
rows outside; transfers by one DMA in any order (`network_time_events`), ahead as far as there is room. So a step is
at least as free as it is for certile, whose tiles take their room twice with `buffers` 2. No schedule may be below the
bound that certile states; its plans are counted (`near_events`).

An example: a row of 4 pixels of 2 channels by a filter of a tap in one tile, a call of 5 ticks, a byte of 1, a product
of 2: (5 + 8) + (5 + 2) + 16 + (5 + 4) = 45 ticks.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, NamedTuple

from instances.errors import InputError, PlanMismatch
from instances.machine.machine import Machine
from tests.adversary.near_events import Axis, Said, Work, simulated
from tests.adversary.network_time import ENGINES, Brute, planned
from tests.adversary.network_time_events import Job, Move, Search
from tests.adversary.network_time_nests import below, network
from tests.adversary.network_time_nets import Tiny, drawn, pinned, split
from tests.adversary.network_time_replay import replayed

#: From a first place to before a second one; by dimension.
Span = tuple[int, int]
Box = dict[str, Span]
#: What a step takes that finds no room.
NEVER = 2**38
#: Transfers of a step whose orders are tried.
MOST = 9


class Tile(NamedTuple):
    """What a piece of a step has: places of the input and of its rows, elements of all operands."""

    rows: Span
    input: tuple[Any, ...]
    weights: tuple[Any, ...]
    sizes: tuple[int, int, int]
    computed: int
    sums: tuple[bool, bool]
    """Whether sums come, and whether they leave as such."""


@dataclass(frozen=True)
class Close(Tiny):
    """A tiny network with a near memory, and one of results if `acc` is not 0."""

    l1: int = 2**20
    acc: int = 0
    buffers: int = 1
    near_call: int = 0
    near_byte: int = 0

    @property
    def machine(self) -> Machine:
        """With memories behind the shared one."""
        near: list[dict[str, object]] = [{"name": "l1", "bytes": self.l1, "buffers": self.buffers}]
        if self.acc:
            near[0]["operands"] = ["IN", "W"]
            near.append({"name": "acc", "bytes": self.acc, "buffers": self.buffers, "operands": ["OUT"]})
        first = {"name": "l2", "call_ticks": self.near_call, "byte_ticks": self.near_byte}
        levels = {"queues": "each", "memories": [first, *near]}
        return Machine.model_validate(super().machine.model_dump(exclude_unset=True) | {"near": levels})

    @property
    def turns(self) -> bool:
        """No: sums would go through the near memory in parts."""
        return False

    @cached_property
    def _known(self) -> dict[object, int]:
        return {}

    def step(self, t: int, spans: Box) -> int:
        """Ticks of a box, with the tiles of the near memory."""
        box = {d: (0, size) for d, size in self.extents(t).items()} | spans
        key = t, *box.values()
        if key not in self._known:
            self._known[key] = min((self._taken(t, tiles) for tiles in self._ways(t, box)), default=NEVER)
        return self._known[key]

    def joined(self, t: int, boxes: Sequence[Box]) -> int:
        """One after the other, or as one box, if that is what they are."""
        every = super().joined(t, boxes)
        whole = {d: (min(one[d][0] for one in boxes), max(one[d][1] for one in boxes)) for d in boxes[0]}
        volume, *parts = (prod(end - begin for begin, end in one.values()) for one in (whole, *boxes))
        return min(every, self.step(t, whole)) if len(boxes) > 1 and volume == sum(parts) else every

    @property
    def roomy(self) -> bool:
        """Whether every layer has a tile that finds room as certile cuts them: the kernel whole."""
        for t, layer in enumerate(self.made):
            sizes = self.extents(t)
            best = False
            for n in {sizes["n"], 1}:
                wide = max(1, self.sums) if n < sizes["n"] else 1
                read = n * min(layer.taps[0], layer.shape[1]) * min(layer.taps[1], layer.shape[2]) * len(layer.reads)
                held = read + (n * prod(layer.taps) if layer.filters else 0)
                l1, acc = (held, wide) if self.acc else (held + wide, 0)
                best |= l1 * self.buffers <= self.l1 and acc * self.buffers <= self.acc
            if not best:
                return False
        return True

    # ---- plans of certile --------------------------------------------------------------------------------------------

    def said(self, plan: Any, t: int, spans: Box) -> int:
        """Ticks of a step of a plan: its nest, simulated."""
        box = {d: (0, size) for d, size in self.extents(t).items()} | spans
        found = self.boxed(t, box)
        for near in plan.part.schedule.near:
            if self._alike(near.layer, t) and _sizes(near.box) == found:
                seen = simulated(
                    self.work(t, box),
                    [
                        (getattr(x, "dim", ""), x.step) if hasattr(x, "dim") else (x.operand, "")
                        for x in near.nest.items
                    ],
                )
                self._rooms(seen)
                return max(seen.ticks, Tiny.step(self, t, box))
        raise AssertionError(f"no nest for {found} of layer {t} in {plan.part.schedule.near}")

    def _alike(self, s: int, t: int) -> bool:
        one, other = self.made[s], self.made[t]
        return (one.shape, one.made, one.taps, one.stride, one.pad, one.filters, len(one.reads)) == (
            other.shape,
            other.made,
            other.taps,
            other.stride,
            other.pad,
            other.filters,
            len(other.reads),
        )

    def boxed(self, t: int, box: Box) -> tuple[int, ...]:
        """Groups, filters and channels of a group, rows, columns, taps, padding at the four sides."""
        layer = self.made[t]
        m, n, r, c, i, j = (end - begin for begin, end in box.values())
        adds = layer.kind in ("conv", "full")
        pads = list[int]()
        for a, b, axis in (("r", "i", 1), ("c", "j", 2)):
            pad = layer.pad if axis == 1 or layer.shape[2] > 1 else 0
            low = box[a][0] * layer.stride - pad + box[b][0]
            high = (box[a][1] - 1) * layer.stride - pad + box[b][1]
            pads += [max(0, -low), max(0, high - layer.shape[axis])]
        return (1, m, n, r, c, i, j, *pads) if adds else (m, 1, 1, r, c, i, j, *pads)

    def work(self, t: int, box: Box) -> Work:
        """A box, for `simulated`."""
        layer = self.made[t]
        groups, m, n, r, c, i, j, top, bottom, left, right = self.boxed(t, box)
        high, wide = (r - 1) * layer.stride + i - top - bottom, (c - 1) * layer.stride + j - left - right
        return Work(
            {"b": 1, "g": groups, "m": m, "n": n, "r": r, "c": c, "i": i, "j": j},
            Axis(layer.stride, 1, top, high), Axis(layer.stride, 1, left, wide), len(layer.reads), bool(layer.filters),
            {"IN": 1, "W": 1, "OUT": 1, "PSUM": self.sums}, 0, self.near_call, self.near_byte, self.cycle,
            {"g": self.lanes[1]} if m == n == 1 else {"m": self.lanes[0], "n": self.lanes[1]},
            dict.fromkeys(("IN", "W", "OUT"), self.buffers),
        )  # fmt: skip

    def _rooms(self, seen: Said) -> None:
        held = {name: size * self.buffers for name, size in seen.held.items()}
        out = held.pop("OUT")
        l1, acc = (sum(held.values()), out) if self.acc else (sum(held.values()) + out, 0)
        if l1 > self.l1 or acc > self.acc:
            raise AssertionError(f"{l1} and {acc} bytes do not fit in {self.l1} and {self.acc}")

    # ---- tiles -------------------------------------------------------------------------------------------------------

    def _ways(self, t: int, box: Box) -> Iterator[list[Tile]]:
        """Yield ways to cut a box in tiles that find room."""
        sizes = [end - begin for begin, end in (box[d] for d in "mr")]
        found = False
        for filters, rows in product(*({-(-size // n) for n in range(1, size + 1)} for size in sizes)):
            for order in ("mr", "rm"):
                tiles = self._cut(t, box, {"m": filters, "r": rows}, order)
                if self._fits(tiles):
                    found = True
                    yield tiles
        small = {"m": 1, "r": 1, "c": 1}
        for cut in () if found else (small, small | {"n": 1}, {**small, "n": 1, "i": 1, "j": 1}):
            if self._fits(tiles := self._cut(t, box, cut, "mrcnij")):
                yield tiles
                return

    def _cut(self, t: int, box: Box, cut: dict[str, int], order: str) -> list[Tile]:
        spans = [
            [(at, min(at + cut.get(d, box[d][1]), box[d][1])) for at in range(*box[d], cut.get(d, box[d][1]))]
            for d in order
        ]  # fmt: skip
        return [self._tile(t, box | dict(zip(order, chosen, strict=True))) for chosen in product(*spans)]

    def _tile(self, t: int, box: Box) -> Tile:
        layer, (m, n, r, c, i, j) = self.made[t], (end - begin for begin, end in box.values())
        adds, whole = layer.kind in ("conv", "full"), self.extents(t)
        rows, columns = (self._window(t, box[a], box[b], axis) for a, b, axis in (("r", "i", 1), ("c", "j", 2)))
        input_ = (box["n"] if adds else box["m"], rows, columns)
        read = (n if adds else m) * max(0, rows[1] - rows[0]) * max(0, columns[1] - columns[0]) * len(layer.reads)
        weights = m * (n if adds else 1) * i * j if layer.filters else 0
        begun, ended = all(box[d][0] == 0 for d in "nij"), all(box[d][1] == whole[d] for d in "nij")
        sums = not begun, not ended
        return Tile(
            rows, input_, tuple(box[d] for d in "mnij"), (read, weights, m * r * c), Tiny.step(self, t, box), sums
        )  # fmt: skip

    def _window(self, t: int, made: Span, taps: Span, axis: int) -> Span:
        layer = self.made[t]
        pad = layer.pad if axis == 1 or layer.shape[2] > 1 else 0
        begin = max(0, made[0] * layer.stride - pad + taps[0])
        return begin, max(begin, min(layer.shape[axis], (made[1] - 1) * layer.stride - pad + taps[1]))

    def _bytes(self, tile: Tile) -> tuple[int, int]:
        """In the near memory, and in the one of results."""
        read, weights, results = tile.sizes
        results *= max(1, self.sums) if any(tile.sums) else 1
        return (read + weights, results) if self.acc else (read + weights + results, 0)

    def _fits(self, tiles: Sequence[Tile]) -> bool:
        return all(a <= self.l1 and b <= self.acc for a, b in map(self._bytes, tiles))

    def _taken(self, t: int, tiles: Sequence[Tile]) -> int:
        """The least ticks of tiles in their order: one transfer or tile after the other, or any order of transfers."""
        moves, before, inputs = list[Move](), None, len(self.made[t].reads)
        results = sum(tile.sizes[2] * max(1, self.sums) for tile in tiles)
        steps = [(tile.computed, self._bytes(tile)[0]) for tile in tiles]
        for number, tile in enumerate(tiles, 1):
            read, weights, made = tile.sizes
            if before is not None and tile.input == before.input:
                read = 0
            elif before is not None and read and tile.input[::2] == before.input[::2]:
                begin, end = tile.rows
                if before.rows[0] <= begin <= before.rows[1] <= end:  # rows slide
                    read = read * (end - before.rows[1]) // (end - begin)
            parts = [read // inputs] * inputs
            parts += [weights * (before is None or before.weights != tile.weights), made * self.sums * tile.sums[0]]
            moves += [self._moved(True, some, number) for some in parts if some]
            moves.append(self._moved(False, made * (self.sums if tile.sums[1] else 1), number))
            before = tile
        least = sum(one.ticks for one in moves) + sum(ticks for ticks, _ in steps)
        if len(tiles) > 1 and len(moves) <= MOST and results <= (self.acc or results) and least < NEVER:
            sums = any(any(tile.sums) for tile in tiles)
            search = Search(Job(tuple(steps), tuple(moves)), self.l1, least, until=time.monotonic() + 0.1)
            least = least if sums else search.run() or least
        return least

    def _moved(self, load: bool, size: int, step: int) -> Move:
        return Move(load, self.near_call + size * self.near_byte, 0 if not load and self.acc else size, step)


def close(case: Tiny, rng: random.Random) -> Close:
    """The same with a near memory: of all, or less; calls and bytes from none to dear, products from none, too."""
    layers = [(case.map_bytes(t + 1), sum(case.row_bytes(k) * case.maps[k][1] for k in one.reads),
               one.filters * one.filter_bytes) for t, one in enumerate(case.made)]  # fmt: skip
    every, least = sum(map(sum, layers)), 4
    acc = rng.choice((0, 0, 0, 1))
    whole = rng.random() < 0.6
    l1 = 8 * every * case.sums if whole else rng.randint(least, max(least, *map(sum, layers)))
    acc *= 8 * every * case.sums if whole else rng.randint(1, max(one[0] for one in layers) * case.sums)
    cycle = 0 if rng.random() < 0.2 else case.cycle
    computing = sum(case.compute(t, one.made[1], one.made[0]) for t, one in enumerate(case.made))
    byte = max(1, round(computing / every * rng.choice((0.1, 0.5, 1, 3)))) if rng.random() < 0.7 else 0
    call = max(1, round(computing / len(layers) * rng.choice((0.02, 0.1, 0.5)))) if rng.random() < 0.6 else 0
    mine = {one.name: getattr(case, one.name) for one in fields(Tiny)} | {"cycle": cycle}
    return Close(**mine, l1=l1, acc=acc, buffers=rng.choice((1, 2)), near_call=call, near_byte=byte)


def _sizes(box: Any) -> tuple[int, ...]:
    assert box.batch == 1
    assert not box.sums
    return (box.groups, box.filters, box.channels, box.rows, box.columns, box.high, box.wide,
            box.top, box.bottom, box.left, box.right)  # fmt: skip


class Seen(NamedTuple):
    """What is said of a network."""

    status: str
    bound: int | None
    time: int | None
    jobs: int
    complete: bool
    counted: bool
    faults: tuple[str, ...]


def attacked(case: Close, rng: random.Random, seconds: float, engine: str = ENGINES[0]) -> Seen:
    """Look for schedules below the bound of certile's plan, and count the plan."""
    try:
        plan = planned(case, engine)
    except PlanMismatch as error:
        return Seen("MISMATCH", None, None, 0, True, False, (str(error),))
    except InputError as error:
        wrong = () if "smallest tiles" in str(error) and not case.roomy else (str(error),)
        return Seen("refused", None, None, 0, True, False, wrong)
    part, faults = plan.part, list[str]()
    ticks, bound = part.measures.get("time"), part.bounds.get("time")
    brute = Brute(case, min(NEVER, 2**38 if bound is None else bound), seconds)
    if (best := brute.run()) is not None:
        what = [one.says for one in best.parts]
        faults.append(f"a schedule takes {best.ticks}, the bound is {bound}, the plan {part.status} {ticks}: {what}")
    if (
        bound is not None
        and case.fused is None
        and not case.height
        and (found := below(case, bound, rng, seconds / 2)) is not None
    ):
        faults.append(f"a schedule takes {found[0]}, the bound is {bound}, the plan {part.status} {ticks}: {found[1]}")
    again = replayed(case, plan) if ticks is not None else None
    if again is not None and again != ticks:
        faults.append(f"the plan takes {ticks}, counted: {again}")
    return Seen(part.status, bound, ticks, brute.jobs, brute.complete, again is not None, tuple(faults))


def case_of(seed: int) -> Close:
    """A network of one to three layers: pins, strides that skip, weights in a memory of their own, many weights.

    From 5000 on those of one or two layers, which take less time.
    """
    rng = random.Random(seed)
    if seed >= 5000:
        return close(drawn(rng, 2, 3, 2), rng)
    if seed % 4 == 3:
        return close(network(rng, 1 + seed // 4 % 2), rng)
    case = drawn(rng, 3, 5, 3, rng.choice((1, 1, 2)), skips=seed % 8 == 2)
    case = pinned(case, rng) if seed % 2 else case
    return close(split(case, rng, each=seed // 2 % 2 == 0) if seed % 16 == 4 else case, rng)


def main(first: int, last: int, seconds: float, engine: str) -> None:
    """Attack random networks; print what does not agree, and what was seen."""
    seen, counts = Counter[str](), Counter[str]()
    for seed in range(first, last + 1):
        found = attacked(case_of(seed), random.Random(seed), seconds, engine)
        seen[found.status] += 1
        counts += Counter(
            jobs=found.jobs, complete=found.complete, counted=found.counted, bounds=found.bound is not None,
            tight=found.bound is not None and found.bound == found.time,
        )  # fmt: skip
        for fault in found.faults:
            print(seed, case_of(seed), fault, flush=True)
        if seed % 25 == 0 or seed == last:
            print(f"{seed}: {dict(seen)}, {dict(counts)}", flush=True)


if __name__ == "__main__":
    numbers = [float(one) for one in sys.argv[1:] if one not in ENGINES]
    asked = next((one for one in sys.argv[1:] if one in ENGINES), ENGINES[0])
    main(int(numbers[0]), int(numbers[1]), numbers[2] if len(numbers) > 2 else 2, asked)
