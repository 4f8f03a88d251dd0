"""The least time of a class of nests, piece by piece: shortest paths through the pieces of every loop, loop in loop.

Sets
    loops l = 0..K-1 that cut something, outermost first; an iteration of a loop has a piece [a, b) of its dimension
    a class says how many pieces there are and how large, the first and the last one too (`hwmodels.nest.price.ranges`)
Ticks
    with two buffers ``T = L_0 + sum_k max(C_k, L_(k+1), S_(k-1)) + S_(N-1)`` over the steps k: where loop l goes on to
    its next piece, the operands that loop l or one inside it fetches are loaded and stored. Their tiles are known by
    the pieces of the loops outside l, the next piece, and the first (last) pieces of the loops inside l
State
    V(l, pieces outside; s, t): the least sum over the steps of an iteration of the loops outside l, with s stored
    behind its first step and t loaded ahead of its last one. Behind all loops it is max(C, s, t)
Recursion
    V(l; s, t) = min over pieces p_1..p_n of sum_i V(l+1, p_i; s_i, t_i), s_1 = s, s_i the store of p_(i-1), t_n = t,
    t_i the load of p_(i+1). A piece says with which pieces the loops inside begin and end, so that loads and stores are
    exact, and in how many pieces a loop inside cuts it that is over the same dimension
Claim
    Every nest of the class is such a choice of pieces. It is one that cuts a dimension alike in all iterations of the
    loops between, which the recursion does not ask for: so V is a bound, and the least time itself where one dimension
    is cut. Pieces with equal sizes, equal rows of IN and equal ends take equal ticks, wherever they are: one stands for
    all.
What one buffer moves stands between the steps, as tables count it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations, product
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.homes import operand_of
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.boxes import shape_of
from hwmodels.nest.price.choices import KERNELS, fetched, numbered
from hwmodels.nest.price.hidden import Hidden
from hwmodels.nest.price.ranges import Ranges
from hwmodels.schedule import Step
from instances.network.workload import DIMS, REDUCTION, RELEVANT

#: More than any sum of ticks; of sequences that do not exist.
_NEVER = 2**56
#: Choices of ends of a piece at most.
_ENDS = 400

Span = tuple[int, int]
#: By dimension the piece that the loops outside have.
Place = dict[str, Span]
#: By loop the piece that it begins (ends) with.
Ends = dict[int, Span]


class _TooMuch(Exception):
    """More work than was allowed."""


@dataclass(frozen=True)
class _Loop:
    """A loop that cuts, and from where to where its numbers and sizes are."""

    dim: str
    sizes: Span
    first: Span
    last: Span
    number: Span


class _Piece(NamedTuple):
    span: Span
    place: Place
    first: Ends
    last: Ends
    inner: int
    """Pieces of a loop inside over the same dimension; 0 if any number."""
    load: int
    """What is loaded where its loop goes on to it; `head`: if it is the first piece of all."""
    store: int
    """What is stored where its loop goes on from it; `tail`: if it is the last piece of all."""
    head: int
    tail: int


class _Asked(NamedTuple):
    """With which pieces loops begin and end, and in how many pieces they cut."""

    first: Ends
    last: Ends
    number: dict[int, int]


def cutting(of: Hidden, some: Ranges) -> tuple[list[int], dict[str, int]]:
    """The loops that cut in one class, as the skeleton has them, and how many of them are outside each Hold."""
    at = {loop: n for n, loop in enumerate(of.loops)}
    order = [at[d, k + 1] for d, k in numbered(of.skeleton.order)]
    real = [position for position, n in enumerate(order) if some.cuts[n, 0]]
    outside = {op: sum(position < of.skeleton.depth[op] for position in real) for op in of.ops}
    return [order[position] for position in real], outside


def orders(of: Hidden, some: Ranges) -> Iterator[tuple[int, ...]]:
    """Yield the loops that cut in all orders between Holds with each Hold directly inside a loop of its operand.

    The loop that IN slides along is the last one outside its Hold.
    """
    loops, outside = cutting(of, some)
    ends = sorted({0, *outside.values(), len(loops)})
    slide = of.loops.index((of.slide[0], of.slide[1] + 1)) if of.slide else -1
    for parts in product(*(permutations(loops[a:b]) for a, b in pairwise(ends))):
        order = tuple(n for part in parts for n in part)
        last = {op: order[end - 1] for op, end in outside.items() if end}
        slides = slide not in order or last["IN"] == slide
        if slides and all(of.loops[n][0] in RELEVANT[op] for op, n in last.items()):
            yield order


class Sequences:
    """The least time of one class, of which it is known which loops cut; in one of their `orders`.

    `counted`: as many pieces as the class says, else any number. `told`: so many ways to begin, and to end, are told
    apart of a piece at most; if it has more, the least load and the least store of all stand for them. `work`: what is
    left of the work that may be done, in units of about a microsecond.
    """

    def __init__(
        self, of: Hidden, some: Ranges, order: Sequence[int] | None = None, *, counted: bool = True, told: int = 64,
        work: int = 1_000_000,
    ) -> None:  # fmt: skip
        self.of, self.some, self.counted, self.told, self.work = of, some, counted, told, work
        self.layer, self.machine, self.doubled = of.layer, of.priced, of.doubled
        self.range = {d: of.core.range(d) for d in DIMS}
        self._alike: dict[tuple[object, ...], Span] = {}
        self._ways: _Ways | None = None
        loops, outside = cutting(of, some)
        self.loops = [self._loop(of.loops[n][0], n) for n in (loops if order is None else order)]
        dims = [one.dim for one in self.loops]
        self.depth = {op: fetched(dims[: outside[op]], op) for op in of.ops}
        last = self.depth["IN"] - 1
        self.slide = last if self.machine.sliding and last >= 0 and self.loops[last].dim in "rcij" else -1
        self.inside = [
            next((x for x in range(number + 1, len(self.loops)) if self.loops[x].dim == one.dim), -1)
            for number, one in enumerate(self.loops)
        ]

    def _loop(self, d: str, n: int) -> _Loop:
        fewest, most, _, high, *ends = (int(x[n, 0]) for pair in self.some.pairs for x in pair)
        if d in KERNELS.values():
            return _Loop(d, (1, high), (1, high), (1, high), (fewest, most))
        lo, hi = self.range[d]
        least = max(1, hi - lo - (most - 1) * high)
        return _Loop(d, (least, high), (ends[0], ends[1]), (ends[2], ends[3]), (fewest, most))

    @staticmethod
    def may(of: Hidden) -> bool:
        """Whether what steps compute follows from their pieces."""
        return of.machine.compute.model in ("array", "none")

    @classmethod
    def known(cls, of: Hidden, some: Ranges) -> NDArray[np.bool_]:
        """Of which classes the least time is known this way (N,)."""
        return some.told & cls.may(of)

    def spend(self, work: int) -> None:
        """Take some work from what is allowed; raises an exception of its own if that is not enough."""
        if work > self.work:
            raise _TooMuch
        self.work -= work

    @property
    def bound(self) -> int | None:
        """What no time of the class is below; None where that takes more work than allowed."""
        zero = np.zeros(1, np.int64)
        try:
            time = int(self._block(0, dict(self.range), zero, zero, _Asked({}, {}, {}))[0, 0])
        except _TooMuch:
            return None
        sums = self.of.sums(self.some)
        alone = sum(int(sums[op][0]) for op in self.of.ops if op not in self.doubled)
        alone += 0 if "OUT" in self.doubled else int(sums["PSUM"][0])
        return time + alone + self.machine.layer_ticks

    @property
    def places(self) -> dict[str, tuple[Step, ...]]:
        """Steps of all loops, the one that cuts at the places of the least time; of a bound that was found."""
        (loop,), ways = self.loops, self._ways
        assert ways is not None
        path = ways.path(*self.range[loop.dim])
        found: dict[str, tuple[Step, ...]] = {}
        for d in DIMS:
            lo, hi = self.range[d]
            levels = [number for number, (dim, _) in enumerate(self.of.loops) if dim == d]
            found[d] = tuple(
                tuple(x - lo for x in path) if loop.dim == d and self.some.cuts[number, 0] else hi - lo
                for number in levels
            )
        return found

    # ---- pieces ----------------------------------------------------------------------------------------------------

    def _may(self, at: int, a: int, b: int) -> bool:
        """Whether a loop may have the piece [a, b)."""
        one, (lo, hi), size = self.loops[at], self.range[self.loops[at].dim], b - a
        kernel = one.dim in KERNELS.values()
        return (
            one.sizes[0] <= size <= one.sizes[1]
            and (kernel or a != lo or one.first[0] <= size <= one.first[1])
            and (kernel or b != hi or one.last[0] <= size <= one.last[1])
        )

    def _same(self, d: str, a: int, b: int) -> Span:
        """The first piece met that takes the same ticks, with the same pieces inside."""
        if d in KERNELS.values():
            return a, b
        lo, hi = self.range[d]
        key: tuple[object, ...] = (d, b - a, a == lo, b == hi)
        if d in KERNELS:
            window = self.of.windows[d]
            before = min(a * window.stride - window.pad - window.first, 0)
            behind = max((b - 1) * window.stride - window.pad + window.reach - window.size, 0)
            key = (*key, before, behind)
        return self._alike.setdefault(key, (a, b))

    def _spans(self, at: int, place: Place, number: Span) -> list[Span]:
        """The pieces of a loop on the ways through a piece that have so many, by where they begin."""
        (a, b), (least, most) = place[self.loops[at].dim], self.loops[at].sizes
        self.spend((b - a) * max(0, min(most, b - a) - least + 1))
        ahead, found = {a: (0, 0)}, list[Span]()
        for x in range(a, b):
            for y in range(x + least, min(x + most, b) + 1) if x in ahead else ():
                if self._may(at, x, y):
                    found.append((x, y))
                    ahead[y] = _more(ahead[x], ahead.get(y))
        behind, kept = {b: (0, 0)}, list[Span]()
        for x, y in reversed(found):
            if y in behind:
                kept.append((x, y))
                behind[x] = _more(behind[y], behind.get(x))
        return [
            (x, y)
            for x, y in reversed(kept)
            if ahead[x][0] + 1 + behind[y][0] <= number[1] and ahead[x][1] + 1 + behind[y][1] >= number[0]
        ]

    def _ends(self, at: int, place: Place, inner: int, *, last: bool) -> list[Ends]:
        """With which pieces the loops inside one may begin (end), of those that loads (stores) depend on."""
        ops = [op for op in self.doubled if op == "OUT" or not last]
        found: list[tuple[Ends, Place]] = [({}, place)]
        for x in range(at + 1, len(self.loops)):
            d = self.loops[x].dim
            if not any(x < self.depth[op] and d in RELEVANT[op] for op in ops):
                continue
            found = [
                ({**ends, x: span}, {**there, d: span})
                for ends, there in found
                for span in self._beginning(x, there[d], inner if x == self.inside[at] else 0, last=last)
            ]
            if len(found) > _ENDS:
                raise _TooMuch
        return [ends for ends, _ in found]

    def _beginning(self, at: int, piece: Span, number: int, *, last: bool) -> Iterator[Span]:
        """Yield the pieces that a loop may begin (end) another piece with, which it cuts in so many (0: any number)."""
        (a, b), (least, most) = piece, self.loops[at].sizes
        if number:
            least = max(least, b - a - (number - 1) * most)
            most = min(most, b - a - number + 1) if number > 1 else b - a
        for size in range(least, min(most, b - a) + 1):
            span = (b - size, b) if last else (a, a + size)
            if self._may(at, *span):
                yield self._same(self.loops[at].dim, *span)

    def _pieces(self, at: int, place: Place, spans: list[Span]) -> tuple[list[_Piece], dict[Span, Ints]]:
        """Pieces of a loop that differ, and which of them each span may be."""
        d, found, made, which = self.loops[at].dim, list[_Piece](), dict[Span, Ints](), dict[Span, Ints]()
        for span in spans:
            same = self._same(d, *span)
            if same not in made:
                begin = len(found)
                for inner in self._inner(at, span):
                    found += self._told(at, same, {**place, d: same}, inner)
                made[same] = np.arange(begin, len(found))
            which[span] = made[same]
        return found, which

    def _told(self, at: int, span: Span, place: Place, inner: int) -> Iterator[_Piece]:
        """Yield a piece by the pieces that it may begin and end with; one with the least ticks where these are many."""
        firsts = [
            (ends, self._load(at, place, ends), 0 if at else self._load(0, place, ends, begin=True))
            for ends in self._ends(at, place, inner, last=False)
        ]
        lasts = [
            (ends, self._store(at, place, ends), 0 if at else self._store(0, place, ends, end=True))
            for ends in self._ends(at, place, inner, last=True)
        ]
        for ticks in (firsts, lasts):
            if len(ticks) > self.told:
                ticks[:] = [({}, min(x for _, x, _ in ticks), min(x for _, _, x in ticks))]
        for first, load, head in firsts:
            for last, store, tail in lasts:
                yield _Piece(span, place, first, last, inner, load, store, head, tail)

    def _inner(self, at: int, span: Span) -> Iterable[int]:
        """In how many pieces a loop inside may cut a piece that is over the same dimension; 0 for any number."""
        x = self.inside[at]
        if x < 0 or at in self.inside or not self.counted:
            return [0]
        size, most = span[1] - span[0], self.loops[x].sizes[1]
        return range(-(-size // most), min(size, self.loops[x].number[1] - self.loops[at].number[0] + 1) + 1)

    # ---- ticks -----------------------------------------------------------------------------------------------------

    def _box(self, op: str, place: Place, ends: Ends) -> Place:
        """The tile of an operand where the loops inside have these pieces."""
        if not self.depth[op]:
            return {d: self.range[d] for d in RELEVANT[op]}
        box = {d: place[d] for d in RELEVANT[op]}
        for x, span in ends.items():
            if x < self.depth[op] and self.loops[x].dim in box:
                box[self.loops[x].dim] = span
        return box

    def _price(self, tensor: str, extent: dict[str, int], element: int, *, call: bool = True) -> int:
        price = self.machine.transfer_of(operand_of(tensor))
        run, segments, whole = element, 1, True
        for d, size in reversed(shape_of(self.layer, self.machine, tensor)):
            run, segments = (run * extent[d], segments) if whole else (run, segments * extent[d])
            whole = whole and extent[d] == size
        if not run * segments:
            return 0
        ticks = price.segment_ticks * segments + price.byte_ticks * segments * run + (price.call_ticks if call else 0)
        return ticks + (price.burst_ticks * segments * -(-run // price.burst_bytes) if price.burst_bytes else 0)

    def _load(self, at: int, place: Place, first: Ends, *, begin: bool = False) -> int:
        """What is loaded where a loop goes on to a piece; or in the first step of all."""
        ops = [op for op in self.doubled if begin or at < self.depth[op]]
        slide = self.loops[at].dim if at == self.slide and not begin else ""
        return sum(self._loaded(op, place, self._box(op, place, first), slide) for op in ops)

    def _loaded(self, op: str, place: Place, box: Place, slide: str) -> int:
        machine, extent = self.machine, {d: b - a for d, (a, b) in box.items()}
        if op == "OUT":
            first = not self.depth[op] or all(place[d][0] == self.range[d][0] for d in REDUCTION)
            return 0 if first and not machine.psum_first_read else self._price("PSUM", extent, machine.psum_bytes)
        if op == "IN":
            extent |= {d: self._rows(d, box[d], box[kernel], slide) for d, kernel in KERNELS.items()}
            return len(self.layer.loaded) * self._price("IN", extent, machine.in_bytes)
        ticks = self._price("W", extent, machine.w_bytes)
        if self.layer.bias and machine.bias_bytes:
            ticks += self._price("BIAS", extent, machine.bias_bytes, call=False)
        return ticks

    def _rows(self, d: str, outputs: Span, taps: Span, slide: str) -> int:
        """Rows (columns) of IN that are fetched; sliding along outputs or taps, those behind the piece before."""
        window = self.of.windows[d]
        begin = max(outputs[0] * window.stride - window.pad + taps[0] * window.dilation, window.first)
        end = (outputs[1] - 1) * window.stride - window.pad + (taps[1] - 1) * window.dilation + 1
        end = min(end, window.size)
        if slide in (d, KERNELS[d]):
            x = outputs[0] - 1 if slide == d else outputs[1] - 1
            tap = taps[0] - 1 if slide != d else taps[1] - 1
            begin = max(begin, min(x * window.stride - window.pad + tap * window.dilation + 1, window.size))
        return max(end - begin, 0)

    def _store(self, at: int, place: Place, last: Ends, *, end: bool = False) -> int:
        """What is stored where a loop goes on from a piece; or behind all."""
        if "OUT" not in self.doubled or not (end or at < self.depth["OUT"]):
            return 0
        extent = {d: b - a for d, (a, b) in self._box("OUT", place, last).items()}
        final = not self.depth["OUT"] or all(place[d][1] == self.range[d][1] for d in REDUCTION)
        name, element = ("OUT", self.machine.out_bytes) if final else ("PSUM", self.machine.psum_bytes)
        return self._price(name, extent, element)

    def _compute(self, place: Place) -> int:
        unit, layer = self.machine.compute, self.layer
        if unit.model == "none":
            return 0
        size = {d: b - a for d, (a, b) in place.items()}
        if layer.m == layer.n == 1:
            size["g"] = -(-size["g"] // unit.cols)
        else:
            size["m"], size["n"] = -(-size["m"] // unit.rows), -(-size["n"] // unit.cols)
        return prod(size.values()) * layer.inputs * unit.cycle_ticks

    # ---- paths -----------------------------------------------------------------------------------------------------

    def _block(self, at: int, place: Place, stored: Ints, loaded: Ints, asked: _Asked) -> Ints:
        """V (stored, loaded) of an iteration of the loops outside one, which begins and ends as asked."""
        if at == len(self.loops):
            time: Ints = np.maximum(np.maximum(self._compute(place), stored[:, None]), loaded[None, :])
            alone = 0 if at else self._load(-1, place, {}, begin=True) + self._store(-1, place, {}, end=True)
            return time + alone
        number = self.loops[at].number
        if at in self.inside:
            number = (asked.number[at],) * 2 if asked.number.get(at) else (1, number[1])
        spans = self._spans(at, place, number)
        pieces, which = self._pieces(at, place, spans)
        if not pieces:
            return np.full((len(stored), len(loaded)), _NEVER)
        ways = _Ways(self, at, pieces, number, asked)
        if not at:
            self._ways = ways
        return ways.least(place[self.loops[at].dim], which, stored, loaded)


class _Ways:
    """All ways to cut one piece by one loop."""

    def __init__(self, of: Sequences, at: int, pieces: list[_Piece], number: Span, asked: _Asked) -> None:
        self.of, self.at, self.pieces, self.number, self.asked = of, at, pieces, number, asked
        self.stores, self.store = np.unique([p.store for p in pieces], return_inverse=True)
        self.loads, self.load = np.unique([p.load for p in pieces], return_inverse=True)
        nested = of.counted and of.inside[at] >= 0 and at not in of.inside
        further = of.loops[of.inside[at]].number if nested else number
        self.sums = (max(0, further[0] - number[1]), further[1] - number[0]) if nested else (0, 0)
        self.inner = np.array([p.inner - 1 if nested else 0 for p in pieces])  # pieces more than one of a loop inside
        self.step = int(of.counted)
        self.counts = self.step * number[1] + 1, self.sums[1] + 1
        self._walked: tuple[Mapping[Span, Ints], dict[int, Ints], Ints] = {}, {}, np.zeros(0, np.int64)

    def least(self, piece: Span, which: Mapping[Span, Ints], stored: Ints, loaded: Ints) -> Ints:
        """V (stored, loaded): a shortest path through places, with what is stored before and loaded behind each."""
        self._paid(which, len(stored))
        costs, own, more = self._costs(stored, loaded), len(stored), len(loaded)
        first = np.array([_agree(p.first, p.span, self.asked.first, self.at) for p in self.pieces])
        last = np.array([_agree(p.last, p.span, self.asked.last, self.at) for p in self.pieces])
        least = np.full((own, more), _NEVER)
        # before a place, all but the load behind it paid: (pieces, of those inside, store before, load behind, stored)
        paid: dict[int, Ints] = {}
        for (x, y), some in which.items():
            some = some[first[some]] if x == piece[0] else some
            some = some[last[some]] if y == piece[1] else some
            if not len(some) or (x != piece[0] and x not in paid):
                continue
            if y == piece[1]:
                least = np.minimum(least, self._closed(paid.get(x), costs, some, own, more))
                continue
            to = paid.setdefault(y, np.full((*self.counts, len(self.stores), len(self.loads), own), _NEVER))
            if x == piece[0]:
                self._begun(to, costs[:, :own, more:], some)
            else:
                self._passed(to, paid[x], costs[:, own:, more:], some)
        self._walked = which, paid, costs
        return least

    def path(self, begin: int, end: int) -> list[int]:
        """The places of a way from begin to end that takes the least time, of several pieces and any number of them."""
        _, x, p, s = min(self._arrivals(begin, end, None))
        found = [x]
        while True:
            load, store, value = int(self.load[p]), s, int(self._walked[1][x][0, 0, s, self.load[p], 0])
            (_, x, p, s), *_ = (
                one for one in self._arrivals(begin, x, load) if one[0] == value and self.store[one[2]] == store
            )
            if x == begin:
                return found[::-1]
            found.append(x)

    def _arrivals(self, begin: int, end: int, load: int | None) -> Iterator[tuple[int, int, int, int]]:
        """Yield least times up to a place with a load behind it (None: the end), and how they arrive there.

        That is where the last piece begins, which one it is, and the store before it.
        """
        which, paid, costs = self._walked
        behind, closing = (0, True) if load is None else (1 + load, False)
        for (x, y), some in which.items():
            for p in some if y == end else ():
                tail = self.pieces[p].tail if closing else 0
                if x == begin and not closing:
                    yield int(costs[p, 0, behind]) + self.pieces[p].head, x, int(p), 0
                elif x in paid:
                    before = paid[x][0, 0, :, self.load[p], 0] + costs[p, 1:, behind] + tail
                    yield from ((int(value), x, int(p), s) for s, value in enumerate(before))

    def _paid(self, which: Mapping[Span, Ints], own: int) -> None:
        """Take what the work is from what is allowed, if it is enough."""
        edges = sum(len(some) for some in which.values())
        size = len(self.stores) * len(self.loads) * own * self.counts[0] * self.counts[1]
        self.of.spend(25 * (len(which) + len(self.pieces)) + edges * size // 1500)

    def _costs(self, stored: Ints, loaded: Ints) -> Ints:
        """V of what is inside each piece, for what is stored before it and loaded behind: asked, or of other pieces."""
        stores, of_store = np.unique(np.concatenate([stored, self.stores]), return_inverse=True)
        loads, of_load = np.unique(np.concatenate([loaded, self.loads]), return_inverse=True)
        inside = self.of.inside[self.at]
        blocks = [
            self.of._block(
                self.at + 1, p.place, stores, loads,
                _Asked(p.first, p.last, {**self.asked.number, inside: p.inner}),
            )
            for p in self.pieces
        ]  # fmt: skip
        costs: Ints = np.stack(blocks)[:, of_store][:, :, of_load]
        return costs

    def _begun(self, to: Ints, costs: Ints, some: Ints) -> None:
        """The first pieces."""
        for p in some:
            if self.inner[p] < self.counts[1] and self.step < self.counts[0]:
                target = to[self.step, self.inner[p], self.store[p]]
                np.minimum(target, costs[p].T + self.pieces[p].head, out=target)

    def _passed(self, to: Ints, before: Ints, costs: Ints, some: Ints) -> None:
        """Pieces behind others."""
        here = before[:, :, :, self.load[some]]
        now = (here[:, :, :, :, None] + costs[some].transpose(1, 0, 2)[None, None, :, :, :, None]).min(axis=2)
        counts, sums = self.counts
        for number, p in enumerate(some):
            inner = self.inner[p]
            target = to[self.step :, inner:, self.store[p]]
            np.minimum(target, now[: counts - self.step, : max(sums - inner, 0), number], out=target)

    def _closed(self, before: Ints | None, costs: Ints, some: Ints, own: int, more: int) -> Ints:
        """The last pieces, and the only one (`before` is None) if there may be one."""
        least = np.full((own, more), _NEVER)
        for p in some:
            inner, tail = int(self.inner[p]), self.pieces[p].tail
            low, high = max(self.sums[0] - inner, 0), self.sums[1] - inner + 1
            if before is None:
                if self.number[0] <= 1 and low <= 0 < high:
                    least = np.minimum(least, costs[p, :own, :more] + self.pieces[p].head + tail)
                continue
            fewest = max(self.number[0] - 1, 0) if self.of.counted else 0
            ways = before[fewest : self.counts[0] - self.step, low : max(high, 0), :, self.load[p]]
            if ways.size:
                total = ways.min(axis=(0, 1))[:, :, None] + costs[p, own:, None, :more]
                least = np.minimum(least, total.min(axis=0) + tail)
        return least


def _more(one: Span, other: Span | None) -> Span:
    """The fewest and the most pieces on ways with one more, or on other ways."""
    low, high = one[0] + 1, one[1] + 1
    return (low, high) if other is None else (min(low, other[0]), max(high, other[1]))


def _agree(ends: Ends, span: Span, asked: Ends, at: int) -> bool:
    """Whether a piece, and what it begins or ends with, is what is asked for, as far as something is."""
    return all(asked.get(x, mine) == mine for x, mine in ((at, span), *ends.items()))
