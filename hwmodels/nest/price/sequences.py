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
Cells
    a long dimension may be cut by cells alone (`hwmodels.nest.price.cells`), in any number of pieces. Pieces that loops
    inside begin (end) with are told apart in bands of sizes then, each by its least load (store)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise, permutations, product
from math import prod

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.homes import operand_of
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.boxes import shape_of
from hwmodels.nest.price.cells import Cells
from hwmodels.nest.price.choices import KERNELS, fetched, numbered
from hwmodels.nest.price.hidden import Hidden
from hwmodels.nest.price.ranges import Ranges
from hwmodels.nest.price.walks import NEVER, PLACE, Asked, Edges, Ends, Piece, Place, Sized, Span, Walk, numbers_of
from hwmodels.schedule import Step
from instances.network.workload import DIMS, REDUCTION, RELEVANT

#: Every place by itself.
_EACH = Cells()
#: So many pieces, the first and the last of which are known, are all known.
_KNOWN = 3
#: Choices of ends of a piece at most.
_ENDS = 400


class TooMuch(Exception):
    """More work than was allowed."""


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
    apart of a piece at most; if it has more, the least load and the least store of all stand for them. `levels`: so
    many different loads, and stores, of the pieces of a loop at most, which stand for those up to the next one; 0 for
    all. `cells`: a dimension of `PLAIN` whose cuts are told apart by their cells alone, where pieces are not counted.
    `work`: what is left of the work that may be done, in units of about a microsecond.
    """

    def __init__(
        self, of: Hidden, some: Ranges, order: Sequence[int] | None = None, *, counted: bool = True, told: int = 64,
        levels: int = 0, cells: Cells = _EACH, work: int = 1_000_000,
    ) -> None:  # fmt: skip
        self.cells = cells
        self.of, self.some, self.counted, self.told, self.levels, self.work = of, some, counted, told, levels, work
        self.layer, self.machine, self.doubled = of.layer, of.priced, of.doubled
        self.range = {d: of.core.range(d) for d in DIMS}
        self._alike: dict[tuple[object, ...], Span] = {}
        self._seen: dict[tuple[str, int, int], Span] = {}
        self.exact = not cells.dim  # nothing stands for others
        self._walk: Walk | None = None
        self._sized: dict[object, Ints] = {}
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

    def _loop(self, d: str, n: int) -> Sized:
        fewest, most, _, high, *ends = (int(x[n, 0]) for pair in self.some.pairs for x in pair)
        if d in KERNELS.values():
            return Sized(d, (1, high), (1, high), (1, high), (fewest, most))
        lo, hi = self.range[d]
        least = max(1, hi - lo - (most - 1) * high)
        return Sized(d, (least, high), (ends[0], ends[1]), (ends[2], ends[3]), (fewest, most))

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
            raise TooMuch
        self.work -= work

    @property
    def bound(self) -> int | None:
        """What no time of the class is below; None where that takes more work than allowed."""
        zero = np.zeros(1, np.int64)
        if any(self.inside[x] >= 0 for x in self.inside if x >= 0) or self._about > self.work:
            return None  # three loops over a dimension are in no space
        try:
            time = int(self.block(0, dict(self.range), zero, zero, Asked({}, {}, {}))[0, 0])
        except TooMuch:
            return None
        sums = self.of.sums(self.some)
        alone = sum(int(sums[op][0]) for op in self.of.ops if op not in self.doubled)
        alone += 0 if "OUT" in self.doubled else int(sums["PSUM"][0])
        return time + alone + self.machine.layer_ticks

    @property
    def _about(self) -> int:
        """About how much work it is to go through the places of all loops inside pieces of all sizes."""
        total, blocks, size = 0, 1, {d: hi - lo for d, (lo, hi) in self.range.items()}
        many = list[int]()
        for at, one in enumerate(self.loops):
            once = at in self.inside and self._anywhere(at, {one.dim: (0, 0)}, Asked({}, {}, {}))
            cell = self.cells.size if one.dim == self.cells.dim else 1
            few = one.number[1] if self.counted and one.number[1] <= _KNOWN else size[one.dim]
            places, most = min(size[one.dim] // cell, few), min(one.sizes[1], size[one.dim])
            total += PLACE * places * (blocks // many[self.inside.index(at)] if once else blocks)
            many.append(max(1, min((most - one.sizes[0] + 1) // cell, few)))
            blocks, size[one.dim] = blocks * many[-1], (one.sizes[0] + most) // 2
        return total

    @property
    def places(self) -> dict[str, tuple[Step, ...]]:
        """Steps of all loops, the one that cuts at the places of the least time; of a bound that was found."""
        (loop,), walk = self.loops, self._walk
        assert walk is not None
        path = walk.path
        found: dict[str, tuple[Step, ...]] = {}
        for d in DIMS:
            lo, hi = self.range[d]
            levels = [number for number, (dim, _) in enumerate(self.of.loops) if dim == d]
            found[d] = tuple(
                tuple(path) if loop.dim == d and self.some.cuts[number, 0] else hi - lo for number in levels
            )
        return found

    # ---- pieces ----------------------------------------------------------------------------------------------------

    def _may(self, at: int, a: Ints, b: Ints) -> NDArray[np.bool_]:
        """Whether a loop may have the pieces [a, b)."""
        one, (lo, hi), size = self.loops[at], self.range[self.loops[at].dim], b - a
        may: NDArray[np.bool_] = (one.sizes[0] <= size) & (size <= one.sizes[1])
        if one.dim in KERNELS.values():
            return may
        first, last = ((ends[0] <= size) & (size <= ends[1]) for ends in (one.first, one.last))
        may = may & (first | (a != lo)) & (last | (b != hi))
        return may

    def _same(self, d: str, a: int, b: int) -> Span:
        """The first piece met that takes the same ticks, with the same pieces inside."""
        if (d, a, b) not in self._seen:
            key = (d, *(int(x) for x in self._key(d, np.array(a), np.array(b))))
            self._seen[d, a, b] = self._alike.setdefault(key, (a, b))
        return self._seen[d, a, b]

    def _key(self, d: str, a: Ints, b: Ints) -> tuple[Ints, ...]:
        """What tells pieces [a, b) of a dimension apart."""
        lo, hi = self.range[d]
        if d in KERNELS.values():
            return a, b
        key: tuple[Ints, ...] = (b - a, a == lo, b == hi)
        if d in KERNELS:
            window = self.of.windows[d]
            before = np.minimum(a * window.stride - window.pad - window.first, 0)
            behind = np.maximum((b - 1) * window.stride - window.pad + window.reach - window.size, 0)
            key = (*key, before, behind)
        return key

    def _spans(self, at: int, place: Place, number: Span) -> tuple[Ints, Ints]:
        """The pieces of a loop on the ways through a piece that have so many, by where they begin; where they end."""
        (a, b), (least, most) = place[self.loops[at].dim], self.loops[at].sizes
        sizes = np.arange(least, min(most, b - a) + 1)
        few = number[1] <= _KNOWN
        begin, end = self._few_spans(at, a, b, sizes, number[1]) if few else self._every_span(a, b, sizes)
        self.spend(10 * len(sizes) + len(begin) // 50)
        may = (a <= begin) & (begin < end) & (end <= b) & self._may(at, begin, end)
        begin, end = begin[may], end[may]
        places = np.unique(np.concatenate([[a, b], begin, end]))
        x, y, z = np.searchsorted(places, begin), np.searchsorted(places, end), len(places) - 1
        ahead, behind = numbers_of(x, y, z), numbers_of(z - y, z - x, z)
        low, high = (before[x] + after[z - y] + 1 for before, after in zip(ahead, behind, strict=True))
        kept = (low <= number[1]) & (high >= number[0])
        return begin[kept], end[kept]

    @staticmethod
    def _every_span(a: int, b: int, sizes: Ints) -> tuple[Ints, Ints]:
        """All spans from a up to b of such sizes, and some beyond."""
        begin = np.repeat(np.arange(a, b), len(sizes))
        return begin, begin + np.tile(sizes, b - a)

    def _few_spans(self, at: int, a: int, b: int, sizes: Ints, number: int) -> tuple[Ints, Ints]:
        """All pieces of a loop that cuts [a, b) in three or fewer, so many at most."""
        sizes = sizes[sizes < b - a]
        first = a + sizes[self._may(at, np.array(a), a + sizes)]
        last = b - sizes[self._may(at, b - sizes, np.array(b))]
        begin, end = [np.array([a])], [np.array([b])]
        if number >= 2:
            begin, end = [*begin, first * 0 + a, last], [*end, first, last * 0 + b]
        if number >= 3:
            begin, end = [*begin, np.repeat(first, len(last))], [*end, np.tile(last, len(first))]
        order = np.argsort(np.concatenate(begin), kind="stable")
        return np.concatenate(begin)[order], np.concatenate(end)[order]

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
                raise TooMuch
        return [ends for ends, _ in found]

    def _beginning(self, at: int, piece: Span, number: int, *, last: bool) -> Iterator[Span]:
        """Yield the pieces that a loop may begin (end) another piece with, which it cuts in so many (0: any number)."""
        (a, b), (least, most) = piece, self.loops[at].sizes
        if self.loops[at].dim == self.cells.dim:
            lo, most = self.range[self.cells.dim][0], min(most, b - a + self.cells.spare)
            yield from ((lo, lo + size) for size in self._bands(at) if size <= most)
            return
        if number:
            least = max(least, b - a - (number - 1) * most)
            most = min(most, b - a - number + 1) if number > 1 else b - a
        sizes = np.arange(least, min(most, b - a) + 1)
        may = self._may(at, b - sizes, np.array(b)) if last else self._may(at, np.array(a), a + sizes)
        some = sizes[may].tolist()
        if self.told == 1 and len(some) > 2 and self.loops[at].dim not in KERNELS.values():
            some, self.exact = [some[0], some[-1]], False  # between them ticks rise with the size
        self.spend(10 * len(some))
        for size in some:
            yield self._same(self.loops[at].dim, *((b - size, b) if last else (a, a + size)))

    def _bands(self, at: int) -> Ints:
        """The least sizes of bands of a loop's pieces that loads and stores are told apart by, where cells are."""
        most = self.loops[at].sizes[1]
        return np.unique(1 + most * np.arange(self.told) // self.told)

    def _band(self, at: int, asked: Span | None) -> Span:
        """The sizes from and up to which a piece is asked for."""
        if asked is None:
            return 1, self.loops[at].sizes[1] + 1
        least = asked[1] - asked[0]
        return least, min((x for x in self._bands(at).tolist() if x > least), default=self.loops[at].sizes[1] + 1)

    def _pieces(self, at: int, place: Place, begin: Ints, end: Ints) -> tuple[list[Piece], list[Span], Ints]:
        """Pieces of a loop that differ; from and up to which of them are alike, and which of these each span is."""
        d, found, alike = self.loops[at].dim, list[Piece](), list[Span]()
        if not len(begin):
            return found, alike, begin
        _, first, which = np.unique(np.stack(self._key(d, begin, end)), axis=1, return_index=True, return_inverse=True)
        for a, b in zip(begin[first].tolist(), end[first].tolist(), strict=True):
            same, before = self._same(d, a, b), len(found)
            for inner in self._inner(at, (a, b)):
                found += self._told(at, same, {**place, d: same}, inner)
            alike.append((before, len(found)))
        return found, alike, which.ravel()

    def _told(self, at: int, span: Span, place: Place, inner: int) -> Iterator[Piece]:
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
                self.exact = False
                ticks[:] = [({}, min(x for _, x, _ in ticks), min(x for _, _, x in ticks))]
        for first, load, head in firsts:
            for last, store, tail in lasts:
                yield Piece(span, place, first, last, inner, load, store, head, tail)

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

    def block(self, at: int, place: Place, stored: Ints, loaded: Ints, asked: Asked) -> Ints:
        """V (stored, loaded) of an iteration of the loops outside one, which begins and ends as asked."""
        if at == len(self.loops):
            time = np.maximum(np.maximum(self._compute(place), stored[:, None]), loaded[None, :])
            alone = 0 if at else self._load(-1, place, {}, begin=True) + self._store(-1, place, {}, end=True)
            found: Ints = time + alone
            return found
        number = self.loops[at].number
        if at in self.inside:
            number = (asked.number[at],) * 2 if asked.number.get(at) else (1, number[1])
        if self._anywhere(at, place, asked):
            return self._told_once(at, place, stored, loaded, asked)
        if self.loops[at].dim == self.cells.dim:
            only: Ints = self._by_cells(at, place, stored, loaded, asked)[0]
            return only
        begin, end = self._spans(at, place, number)
        pieces, alike, which = self._pieces(at, place, begin, end)
        if not pieces:
            return np.full((len(stored), len(loaded)), NEVER)
        walk, (a, b) = Walk(self, at, pieces, number, asked), place[self.loops[at].dim]
        if not at:
            self._walk = walk
        edges = Edges.of(begin - a, end - a, which, alike)
        further = edges.end < b - a
        last = edges.take(~further)
        last.end[:] = 0
        least: Ints = walk.least(edges.take(further), last, 1, stored, loaded)[0]
        return least

    def _anywhere(self, at: int, place: Place, asked: Asked) -> bool:
        """Whether a loop, inside one over the same dimension, takes the same ticks wherever the piece is that it cuts.

        Nothing may be asked for, and the piece may not be all there is; where cells are told apart it is so always.
        """
        d = self.loops[at].dim
        if d == self.cells.dim:
            return at in self.inside
        moved = at not in self.inside or self.counted or d in {*KERNELS, *KERNELS.values()}
        return not (moved or place[d] == self.range[d] or any(x >= at for x in (*asked.first, *asked.last)))

    def _told_once(self, at: int, place: Place, stored: Ints, loaded: Ints, asked: Asked) -> Ints:
        """V (stored, loaded) of such a loop: found once for pieces of all sizes."""
        d = self.loops[at].dim
        (lo, hi), (a, b), others = self.range[d], place[d], tuple(sorted((x, s) for x, s in place.items() if x != d))
        ends, coarse = tuple(tuple(sorted(x.items())) for x in asked), d == self.cells.dim
        s, t = np.arange(len(stored)), np.arange(len(loaded))
        if coarse and self.inside.index(at) < at - 1:
            s, t = stored // self._tick, loaded // self._tick
            stored = loaded = np.arange(max(int(s.max()), int(t.max()), self.levels) + 1) * self._tick
        key = at, a == lo, others, stored.tobytes(), loaded.tobytes(), ends
        if key not in self._sized:
            self._sized[key] = (
                self._by_cells(at, place, stored, loaded, asked)
                if coarse
                else self._every(at, place, stored, loaded, begins=a == lo)
            )
        least: Ints = self._sized[key][self.cells.number(b - a) if coarse else 2 * (b - a) + (b == hi)]
        found: Ints = least[s][:, t]
        return found

    @cached_property
    def _tick(self) -> int:
        """By so many ticks stores and loads are told apart for a loop inside one that is not the next one outside."""
        size = dict[str, int]()
        for one in self.loops:
            size.setdefault(one.dim, one.sizes[1])
        place = {d: (lo, min(lo + size.get(d, hi), hi)) for d, (lo, hi) in self.range.items()}
        most = max(self._load(-1, place, {}, begin=True), self._store(-1, place, {}, end=True))
        return most // max(self.levels, 1) + 1

    def _by_cells(self, at: int, place: Place, stored: Ints, loaded: Ints, asked: Asked) -> Ints:
        """V (ends, stored, loaded) with cuts told apart by their cells; inside another loop, of all numbers of them."""
        one, inner = self.loops[at], at in self.inside
        (lo, hi), begins = self.range[one.dim], place[one.dim][0] == self.range[one.dim][0]
        outer = self.loops[self.inside.index(at)].sizes[1] if inner else hi - lo
        ways = self.cells.within(min(outer, hi - lo), begins=begins) if inner else self.cells.whole(hi - lo)
        self.spend(len(ways.begin) // 20)
        ways = ways.take(ways.size <= one.sizes[1])
        (first, last), asked = (self._band(at, ends.get(at)) for ends in asked[:2]), _without(asked, at)
        ways = self.cells.banded(ways, first, last, whole=self.inside[at] < 0)
        begin = np.where(((ways.begin == 0) & begins) | (ways.size == hi - lo), lo, lo + 1)
        pieces, alike, which = self._pieces(at, place, begin, begin + ways.size)
        if not pieces:
            return np.full((ways.ends, len(stored), len(loaded)), NEVER)
        edges, final = (
            Edges.of(ways.begin[some], ways.end[some], which[some], alike) for some in (~ways.last, ways.last)
        )
        walk = Walk(self, at, pieces, (1 if inner else one.number[0], one.number[1]), asked)
        return walk.least(edges, final, ways.ends, stored, loaded)

    def _every(self, at: int, place: Place, stored: Ints, loaded: Ints, *, begins: bool) -> Ints:
        """V (ends, stored, loaded) of pieces of all sizes: two ends each, as others are behind the piece or none is.

        `begins`: pieces that begin the range; they do not end it.
        """
        (lo, hi), one = self.range[self.loops[at].dim], self.loops[at]
        most = min(self.loops[self.inside.index(at)].sizes[1], hi - lo - 1)
        size = np.arange(one.sizes[0], min(one.sizes[1], most) + 1)
        self.spend(most * len(size) // 20)
        begin = np.concatenate([size * 0 + lo + (not begins), size * 0 + lo + 1, hi - size])
        end = begin + np.tile(size, 3)
        kind = np.repeat(np.arange(3), len(size))
        may = self._may(at, begin, end) & np.where(kind == 2, (begin > lo) & (not begins), end < hi)
        begin, end, kind = begin[may], end[may], kind[may]
        pieces, alike, which = self._pieces(at, place, begin, end)
        ends = 2 * (most + 1)
        if not pieces:
            return np.full((ends, len(stored), len(loaded)), NEVER)
        which, size = np.tile(which, most), np.tile(end - begin, most)
        x, kind = np.repeat(np.arange(most), len(kind)), np.tile(kind, most)
        there = (x + size <= most) & ((kind == 2) | ((kind == 0) == (x == 0)))
        x, y, kind, which = x[there], (x + size)[there], kind[there], which[there]
        last = Edges.of(x, 2 * y + (kind == 2), which, alike)
        some = (kind < 2) & (y < most)
        edges = Edges.of(x[some], y[some], which[some], alike)
        walk = Walk(self, at, pieces, (1, one.number[1]), Asked({}, {}, {}))
        return walk.least(edges, last, ends, stored, loaded)

    def blocks(self, at: int, pieces: Sequence[Piece], stored: Ints, loaded: Ints, asked: Sequence[Asked]) -> Ints:
        """The same of the loops inside each piece of a loop (pieces, stored, loaded)."""
        if at == len(self.loops):
            busy = np.array([self._compute(piece.place) for piece in pieces])
            found: Ints = np.maximum(busy[:, None, None], np.maximum(stored[:, None], loaded))
            return found
        return np.stack([self.block(at, p.place, stored, loaded, ask) for p, ask in zip(pieces, asked, strict=True)])


def _without(asked: Asked, at: int) -> Asked:
    """The same, but nothing of one loop."""
    first, last = ({x: span for x, span in ends.items() if x != at} for ends in asked[:2])
    return Asked(first, last, asked.number)
